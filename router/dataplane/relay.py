"""The forwarding loop: what arrives on a link leaves on another.

`pump` works through a connection's events. Deliveries and flows of registered links are handled here, to the end,
without an object made per event; any other event is returned to the engine. The walk of a message: `_take` reads its
bytes, `_route` finds the address, `_dispatch` chooses an egress (`core.forwarding.treatments`), `Egress` writes it,
`Settlement` brings the outcome back.

Written for two speeds (design, section 8): ints, bytes and handles, no closures.
"""

from __future__ import annotations

from typing import Final

from mesh_config.models import ForwardingSettings, Treatment
from router.binding.handles import (
    ACCEPTED,
    DELIVERY,
    LINK_FLOW,
    NULL,
    TRANSPORT,
    Handle,
    address_of,
    ffi,
    pn_collector_next,
    pn_delivery_aborted,
    pn_delivery_clear,
    pn_delivery_link,
    pn_delivery_partial,
    pn_delivery_pending,
    pn_delivery_settle,
    pn_delivery_settled,
    pn_delivery_updated,
    pn_event_delivery,
    pn_event_link,
    pn_event_type,
    pn_link_advance,
    pn_link_current,
    pn_link_drained,
    pn_link_get_drain,
    pn_link_queued,
    pn_link_recv,
    pn_unsettled_head,
    pn_unsettled_next,
)
from router.core.addressing.address import is_reserved, with_vhost
from router.core.errors import RemoteProtocolError
from router.core.forwarding.fib import AddressEntry, Fib, Route, Subscriber
from router.core.forwarding.treatments import choose, next_local
from router.core.terms import ConnectionId
from router.dataplane.egress import Egress
from router.dataplane.fanout import Fanout
from router.dataplane.interface import (
    DONE,
    HOLDING,
    NEW,
    STREAM_BUFFER_BYTES,
    STREAMING,
    WAITING,
    EgressLink,
    IngressLink,
    LinkCounters,
    Port,
    Transfer,
)
from router.dataplane.sections import scan
from router.dataplane.settlement import RELEASE, Settlement
from router.dataplane.waiting import WaitingRoom

ANNOTATION_BYTES: Final = 65536
"""What a message may have grown by on its way, so that no router refuses what another one has passed on."""


class Relay:
    """The data plane of one router process."""

    def __init__(self, fib: Fib, settings: ForwardingSettings) -> None:
        self.fib = fib
        self.now = 0.0
        """Seconds, monotonic; set by the caller before each batch of events."""
        self.ports: dict[ConnectionId, Port] = {}
        self.session_window_frames = settings.session_window_frames
        self._settings = settings
        self._links: dict[int, IngressLink | EgressLink] = {}
        self.gone_ingress = LinkCounters()
        """Messages of all links that are gone, so that totals never fall."""
        self.gone_egress = LinkCounters()
        self.settlement = Settlement(settings)
        self.settlement.read = self._read
        self.waiting = WaitingRoom(settings, self.settlement)
        self.egress = Egress(fib.me, self.settlement)
        self._fanout = Fanout(fib, self.ports, settings, self.egress, self.settlement)
        self._scratch = ffi.new("char[]", 65536)
        self._scratch_size = 65536

    # Events

    def pump(self, collector: Handle) -> Handle:
        """Handle events until one that is not the data plane's own: that one, or NULL when there are no more."""
        while True:
            event = pn_collector_next(collector)
            if event == NULL:
                if self.settlement.freed:
                    self._spill_freed()
                return NULL
            kind = pn_event_type(event)
            if kind == DELIVERY:
                delivery = pn_event_delivery(event)
                link = self._links.get(address_of(pn_delivery_link(delivery)))
                if link is None:
                    return event
                if isinstance(link, EgressLink):
                    self.settlement.disposed(link, delivery)
                    if link.is_stream or link.waiting:
                        self.flowed(link)
                else:
                    self._arrived(link, delivery)
            elif kind == LINK_FLOW:
                link = self._links.get(address_of(pn_event_link(event)))
                if link is None:
                    return event
                if isinstance(link, EgressLink):
                    self.flowed(link)
            elif kind != TRANSPORT:
                return event

    def flowed(self, link: EgressLink) -> None:
        """A link may have credit or room: send what is committed to it, then what waits at its address."""
        self.egress.flowed(link)
        entry = link.entry
        if entry is not None and entry.waiting and entry.treatment is not Treatment.MULTICAST:
            while link.has_credit():
                transfer = self.waiting.leave(entry)
                if transfer is None:
                    break
                self._send_to_subscriber(transfer, link)
        if pn_link_get_drain(link.handle):
            self._drain(link)

    def _drain(self, link: EgressLink) -> None:
        """Give back the credit that is left, once all that there was for it is written."""
        is_idle = link.current is None and not link.waiting and not pn_link_queued(link.handle)
        if is_idle and pn_link_drained(link.handle):
            link.port.touch()

    def written(self, port: Port) -> None:
        """The connection has written some of its output: go on with what was stopped because of it."""
        if port.blocked:
            for link in list(port.blocked):
                if self.egress.has_drained(link):
                    port.blocked.discard(link)
                    self.flowed(link)
        if port.paused:
            paused = port.paused
            port.paused = []
            for source in paused:
                if source.is_paused and not source.is_gone:
                    source.is_paused = False
                    self._read(source)
                    source.port.touch()  # its session has room again, which its peer must be told

    # Reading

    def _arrived(self, link: IngressLink, delivery: Handle) -> None:
        if pn_delivery_updated(delivery):
            pn_delivery_clear(delivery)
            transfer = self.settlement.transfers.get(address_of(delivery))
            if transfer is not None and transfer.is_complete and pn_delivery_settled(delivery):
                # The sender does not wait for the outcome: there is nobody left to tell it.
                transfer.is_settled = True
                self.settlement.leave_ingress(transfer)
                return
        if not link.is_paused:
            self._read(link)

    def _read(self, link: IngressLink) -> None:
        while not link.is_paused:
            delivery = pn_link_current(link.handle)
            if delivery == NULL or not self._take(link, delivery):
                return

    def _take(self, link: IngressLink, delivery: Handle) -> bool:
        """Read what is there of the current delivery. Returns whether the link has moved on to the next."""
        transfer = link.current
        if pn_delivery_aborted(delivery):
            self._aborted(link, delivery)
            return True
        pending = pn_delivery_pending(delivery)
        is_complete = not pn_delivery_partial(delivery)
        if transfer is None:
            if pending == 0:
                if is_complete:
                    self._swallow(link, delivery)
                return bool(is_complete)
            transfer = self._begin(link, delivery)
        elif self._must_pause(link, transfer) or (pending == 0 and not is_complete):
            return False
        data = self._receive(link.handle, pending) if pending else b""
        if is_complete:
            self._complete(link, transfer, delivery)
        self._progress(transfer, data)
        return bool(is_complete)

    def _begin(self, link: IngressLink, delivery: Handle) -> Transfer:
        transfer = Transfer(link, delivery, self.now)
        link.current = transfer
        link.in_flight += 1
        link.counters.deliveries += 1
        self.settlement.transfers[address_of(delivery)] = transfer
        self.settlement.top_up(link)  # a transfer that crossed a lowering: never a link-credit below zero on the wire
        return transfer

    def _complete(self, link: IngressLink, transfer: Transfer, delivery: Handle) -> None:
        transfer.is_complete = True
        link.current = None
        if pn_delivery_settled(delivery):
            transfer.is_settled = True
            transfer.ingress_delivery = None
            self.settlement.transfers.pop(address_of(delivery), None)
            link.counters.presettled += 1
            pn_delivery_settle(delivery)  # advances the link too
        else:
            pn_link_advance(link.handle)
        if link.port.is_router:
            self.settlement.top_up(link)

    def _swallow(self, link: IngressLink, delivery: Handle) -> None:
        """A transfer without a byte: pyngus writes one for each message that expired while it waited for credit."""
        if not pn_delivery_settled(delivery):
            transfer = self._begin(link, delivery)
            self._complete(link, transfer, delivery)
            self.settlement.settle(transfer, RELEASE)
            return
        pn_delivery_settle(delivery)
        self.settlement.top_up(link)

    def _receive(self, handle: Handle, size: int) -> bytes:
        if size > self._scratch_size:
            self._scratch = ffi.new("char[]", size)
            self._scratch_size = size
        count = pn_link_recv(handle, self._scratch, size)
        data = bytes(ffi.buffer(self._scratch, count)) if count > 0 else b""
        if self._scratch_size > STREAM_BUFFER_BYTES:
            self._scratch = ffi.new("char[]", 65536)
            self._scratch_size = 65536
        return data

    def _must_pause(self, link: IngressLink, transfer: Transfer) -> bool:
        """Whether no more of it should be read now, since what was read cannot be sent on."""
        egress = transfer.egress
        if transfer.state == STREAMING and egress is not None and self.egress.is_full(egress):
            link.is_paused = True
            egress.port.paused.append(link)
            return True
        if transfer.state == WAITING and len(transfer.data) > STREAM_BUFFER_BYTES and self._is_large(transfer):
            link.is_paused = True  # until it is sent or settled (`Settlement.resume`)
            return True
        return False

    def _is_large(self, transfer: Transfer) -> bool:
        egress = transfer.egress
        return (egress is not None and egress.is_router) or len(transfer.data) > self._settings.held_message_bytes

    def _aborted(self, link: IngressLink, delivery: Handle) -> None:
        transfer = link.current
        link.current = None
        if transfer is not None:
            self.settlement.transfers.pop(address_of(delivery), None)
            transfer.ingress_delivery = None
        pn_delivery_settle(delivery)
        if transfer is not None:
            self._drop_incomplete(transfer)
        link.port.touch()

    def _drop_incomplete(self, transfer: Transfer) -> None:
        """Its sender gave it up or is gone before the last part came."""
        self.waiting.give_up(transfer)
        transfer.is_complete = True
        egress = transfer.egress
        if transfer.state == STREAMING:
            self.settlement.leave_egress(transfer)
        self.settlement.finish(transfer)
        if egress is not None:
            self.flowed(egress)

    # Routing

    def publish(self, to: str, data: bytes) -> None:
        """Send a whole message of this process itself, pre-settled, to an address."""
        transfer = Transfer(None, None, self.now)
        transfer.is_complete = transfer.is_settled = True
        transfer.data = data
        transfer.entry = self.fib.find(to)
        transfer.to = to
        self._dispatch(transfer)

    def _progress(self, transfer: Transfer, data: bytes) -> None:
        """More of the message is there, or its end."""
        state = transfer.state
        egress = transfer.egress
        if transfer.is_complete and egress is not None and egress.is_router and transfer.ingress is not None:
            transfer.ingress.streams[egress.port.id] = egress
        if state == STREAMING:
            self.egress.stream(transfer, data)
            return
        if state == DONE:
            if transfer.is_complete:
                self.settlement.leave_ingress(transfer)
            return
        if not transfer.data:
            transfer.data = data
        else:
            if isinstance(transfer.data, bytes):
                transfer.data = bytearray(transfer.data)  # a copy for each part would cost the square of the size
            transfer.data += data
        if state == NEW:
            self._route(transfer)
        elif state == HOLDING:
            self._hold(transfer, len(data))
        elif transfer.entry is not None and transfer.egress is None:
            transfer.entry.waiting_bytes += len(data)

    def _route(self, transfer: Transfer) -> None:
        """Find the address entry, as soon as enough of the message is there."""
        link = transfer.ingress
        assert link is not None
        if transfer.entry is not None:
            self._dispatch(transfer)  # it was known already, and the message's first sections were not there
            return
        try:
            if link.entry is not None:
                transfer.entry = link.entry
                transfer.to = link.address
            elif not self._read_address(transfer, link):
                return
        except RemoteProtocolError as error:
            self.settlement.reject_for(transfer, error)
            return
        if transfer.state == DONE:
            return
        if transfer.entry is None:
            self.settlement.settle(transfer, RELEASE)
            return
        if not link.port.is_router:
            transfer.entry.ingress += 1
        self._dispatch(transfer)

    def _read_address(self, transfer: Transfer, link: IngressLink) -> bool:
        """The destination of a message that names it itself. Returns False when more bytes are needed."""
        port = link.port
        found = scan(transfer.data, transfer.is_complete, from_client=not port.is_router)
        if found is None:
            return False
        transfer.scan = found
        to = found.to_override if port.is_router and found.to_override is not None else found.to
        transfer.to = found.to_override if port.is_router else None
        if to is None:
            raise RemoteProtocolError("routing failure: no address present")
        if port.is_router:
            if self.fib.me in found.trace:
                self.settlement.settle(transfer, RELEASE)
                return True
            if found.ingress is None and port.neighbor is not None:
                found.ingress, found.trace = port.neighbor, (port.neighbor,)
        elif port.vhost is not None:
            to = transfer.to = with_vhost(to, port.vhost)
        if not is_reserved(to):
            transfer.entry = self.fib.find(to)
        return True

    def _dispatch(self, transfer: Transfer) -> None:
        """Send it, hold its parts, or let it wait."""
        entry = transfer.entry
        if entry is None:
            self.settlement.settle(transfer, RELEASE)
        elif entry.service is not None or entry.treatment is Treatment.MULTICAST:
            if transfer.is_complete:
                self._deliver_whole(transfer, entry)
            else:
                assert transfer.ingress is not None
                self._start_holding(transfer, transfer.ingress.port)
        else:
            self._dispatch_anycast(transfer, entry)

    def _deliver_whole(self, transfer: Transfer, entry: AddressEntry) -> None:
        if entry.service is None:
            if not entry.remotes or self._look_into(transfer):
                self._fanout.send(transfer, entry)
            return
        data = bytes(transfer.data)
        self.settlement.settle(transfer, ACCEPTED)
        entry.service(data)

    def _dispatch_anycast(self, transfer: Transfer, entry: AddressEntry) -> None:
        # a message that has not waited yet must not overtake one that does
        must_wait = bool(entry.waiting) and bool(entry.subscribers)
        target = None if must_wait else self._choose(transfer, entry)
        if target is not None:
            self._send_to(transfer, target)
        elif entry.subscribers:
            self.waiting.enter(transfer, entry, self.now)
        else:
            self.settlement.settle(transfer, RELEASE)

    def _choose(self, transfer: Transfer, entry: AddressEntry) -> Subscriber | Route | None:
        passed = transfer.scan.trace if transfer.scan is not None else ()
        return choose(entry, self.fib.routes, passed, self._settings.publisher_window)

    def _send_to(self, transfer: Transfer, target: Subscriber | Route) -> None:
        if isinstance(target, Route):
            self._send_to_router(transfer, target)
            return
        assert isinstance(target, EgressLink)
        self._send_to_subscriber(transfer, target)

    def _send_to_subscriber(self, transfer: Transfer, link: EgressLink) -> None:
        if transfer.is_complete or len(transfer.data) > self._settings.held_message_bytes:
            self.egress.send(transfer, link)
        else:
            self._start_holding(transfer, link.port)

    def _spill_freed(self) -> None:
        freed, self.settlement.freed = self.settlement.freed, []
        for entry in freed:
            self._spill(entry)

    def _spill(self, entry: AddressEntry) -> None:
        """Local subscribers have no credit for what waits at a balanced address: send it to routers that take more."""
        while entry.waiting and entry.treatment is Treatment.BALANCED:
            transfer = self.waiting.oldest(entry)
            target = self._choose(transfer, entry) if transfer is not None else None
            if transfer is None or target is None:
                return
            self.waiting.leave(entry)
            transfer.state = NEW
            self._send_to(transfer, target)

    def _send_to_router(self, transfer: Transfer, route: Route) -> None:
        port = self.ports.get(route.connection)
        if port is None or not port.data_links:
            self.settlement.settle(transfer, RELEASE)
            return
        if not self._look_into(transfer):
            return
        entry = transfer.entry
        if not transfer.is_settled and entry is not None and route.router in entry.remotes:
            entry.remotes[route.router] += 1
            transfer.remote = route.router
        source = transfer.ingress
        stream = source.streams.get(port.id) if source is not None else None
        if stream is not None and source is not None:
            if self.egress.must_follow(stream):
                self.egress.commit(transfer, stream)
                return
            del source.streams[port.id]
        links = port.data_links
        if not transfer.is_complete:
            self.egress.commit_stream(transfer, port)
        elif len(links) == 1:
            self.egress.commit(transfer, links[0])
        else:
            assert transfer.scan is not None
            self.egress.commit(transfer, links[min(transfer.scan.priority, len(links) - 1)])

    def _look_into(self, transfer: Transfer) -> bool:
        """Read the sections among which this router's annotations go. False when it is rejected, or more must come."""
        if transfer.scan is None:
            try:
                transfer.scan = scan(transfer.data, transfer.is_complete, stop_at_annotations=True, from_client=True)
            except RemoteProtocolError as error:
                self.settlement.reject_for(transfer, error)
        return transfer.scan is not None

    # Holding and waiting

    def _start_holding(self, transfer: Transfer, port: Port) -> None:
        """Collect the parts of a message that a client must get whole, on the account of a connection."""
        transfer.state = HOLDING
        transfer.held_for = port
        port.held_bytes += len(transfer.data)
        self._hold(transfer, 0)

    def _hold(self, transfer: Transfer, added: int) -> None:
        port = transfer.held_for
        assert port is not None
        port.held_bytes += added
        settings = self._settings
        limit = settings.held_message_bytes
        if transfer.ingress is not None and transfer.ingress.port.is_router:
            limit += ANNOTATION_BYTES
        if transfer.is_complete:
            self._stop_holding(transfer)
        elif len(transfer.data) > limit or port.held_bytes > settings.held_connection_bytes:
            self._too_large_to_hold(transfer)

    def _stop_holding(self, transfer: Transfer) -> None:
        self.settlement.unhold(transfer)
        transfer.state = NEW
        self._dispatch(transfer)

    def _too_large_to_hold(self, transfer: Transfer) -> None:
        """It streams to its subscriber from now on, or is refused where that cannot be."""
        entry = transfer.entry
        assert entry is not None
        self.settlement.unhold(transfer)
        if entry.service is not None or entry.treatment is Treatment.MULTICAST:
            # DEV-9: a multicast is held whole at each router, so its size has a bound.
            self.settlement.reject_for(transfer, MessageTooLarge(self._settings.held_message_bytes))
            return
        target = next_local(entry)
        if isinstance(target, EgressLink):
            self.egress.send(transfer, target)
        elif entry.subscribers:
            self.waiting.enter(transfer, entry, self.now)
        else:
            transfer.state = NEW
            self._dispatch(transfer)

    def reconsider(self, entry: AddressEntry) -> None:
        """Who takes the messages of an address has changed: move credit, and what waits."""
        is_open = entry.is_open
        if entry.waiting and (not entry.subscribers or entry.treatment is Treatment.MULTICAST):
            for _ in range(len(entry.waiting)):
                transfer = self.waiting.leave(entry)
                if transfer is None:
                    break
                transfer.state = NEW
                if is_open:
                    self._dispatch(transfer)
                else:
                    self.settlement.settle(transfer, RELEASE)
        self._spill(entry)
        for link in entry.publishers:
            assert isinstance(link, IngressLink)
            self.settlement.top_up(link)

    # Links come and go

    def add_ingress(self, link: IngressLink) -> None:
        """Messages may arrive on it from now on; gives its first credit."""
        self._links[address_of(link.handle)] = link
        if link.entry is not None:
            link.entry.publishers.add(link)
        self.settlement.top_up(link)

    def add_egress(self, link: EgressLink) -> None:
        """Messages may leave on it from now on."""
        self._links[address_of(link.handle)] = link

    def remove_ingress(self, link: IngressLink) -> None:
        """The link is gone. What is complete goes on; what is not ends here, and downstream where it was begun."""
        self._links.pop(address_of(link.handle), None)
        settlement = self.settlement
        delivery = pn_unsettled_head(link.handle)
        while delivery:
            transfer = settlement.transfers.pop(address_of(delivery), None)
            if transfer is not None and transfer.ingress is link:
                transfer.ingress_delivery = None
                transfer.ingress = None
                if not transfer.is_complete:
                    self._drop_incomplete(transfer)
                elif transfer.state == WAITING:
                    # An unsettled message whose sender leaves while it waits was never delivered.
                    self.waiting.give_up(transfer)
                    settlement.finish(transfer)
            delivery = pn_unsettled_next(delivery)
        link.current = None
        link.is_gone = True
        self.gone_ingress.add(link.counters)
        if link.entry is not None:
            link.entry.publishers.discard(link)
            self.fib.forget(link.entry)

    def remove_egress(self, link: EgressLink) -> None:
        """The link is gone: its messages get their outcomes. The caller withdraws the subscription."""
        self._links.pop(address_of(link.handle), None)
        self.egress.lost(link)
        self.gone_egress.add(link.counters)

    def is_quiet(self) -> bool:
        """Whether every unsettled delivery has its outcome."""
        return not self.settlement.transfers


class MessageTooLarge(RemoteProtocolError):
    """A multicast above the size that a router holds."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"message is larger than the {limit} bytes that a multicast may have")
