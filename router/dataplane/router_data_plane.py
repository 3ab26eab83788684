"""The data plane of a router: its parts, made here, and its links, which come and go.

What arrives on a link leaves on another. The walk of a message: `LinkEventReader` takes its bytes, `Forwarder` finds
its address, the controller of that or else `Forwarder` finds where it goes, `MessageSender` writes it, `Settlement`
brings the outcome back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import cython

from mesh_config.models import ForwardingSettings
from router.core.addressing.address import AddressKind
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.ids_and_conditions import ConnectionId
from router.dataplane.connection_port import Port
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.data_plane import DataPlane
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.link_counters import LinkCounters
from router.dataplane.link_event_reader import LinkEventReader
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLink,
    IngressCircuitLink,
    IngressDatagramLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
)
from router.dataplane.message_forwarder import Forwarder
from router.dataplane.message_sender import LOW_WATER_BYTES, MessageSender
from router.dataplane.multicast_repair import MulticastRepair
from router.dataplane.settlement import RELEASE, Settlement
from router.dataplane.slow_streams import SlowStreams
from router.dataplane.transfer_lifecycle import StageError
from router.dataplane.turn_clock import TurnClock
from router.dataplane.unfinished_deliveries import UnfinishedDeliveries
from router.dataplane.waiting_messages import WaitingMessages

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        NULL,
        Handle,
        pn_link_credit,
        pn_link_queued,
        pn_unsettled_head,
        pn_unsettled_next,
        set_link_context,
    )
    from router.dataplane.transfer_stages import QUEUED, STRANDED, WAITING

HANDED_BACK: Final = 1000
"""Credit that a publisher gets of a router that stops, to have its messages released."""


class RouterDataPlane(DataPlane):
    """The data plane of one router process: makes its parts, and is how those made first call those made later."""

    def __init__(self, fib: Fib, settings: ForwardingSettings, faults: InternalErrorHandlers, *, instance: int) -> None:
        """*instance* differs from that of every earlier run of this router."""
        self.fib = fib
        self.clock = TurnClock()
        self.ports: dict[ConnectionId, Port] = {}
        """Ports of connections to neighbors."""
        self.current_settings = CurrentSettings(settings)
        self.links: dict[IngressLink | EgressLink, None] = {}
        self.gone_ingress = LinkCounters()
        """Messages of all links that are gone, so that totals never fall."""
        self.gone_egress = LinkCounters()
        self.gone_ingress_of: dict[ConnectionId, LinkCounters] = {}
        self.gone_egress_of: dict[ConnectionId, LinkCounters] = {}
        """Messages of links that are gone, by neighbor's connection: circuits come and go while it lasts."""
        # What is made first calls what is made later by methods of this object.
        self.settlement = Settlement(self.clock, self._resume, fib.times)
        self.waiting = WaitingMessages(self.clock, self.current_settings, self.settlement, self._expired)
        self.streams = SlowStreams(self.clock)
        self.egress = MessageSender(fib.me, self.settlement, self.waiting, self.streams, self._spared)
        self.repair = MulticastRepair(fib, self.ports, self.current_settings, self.egress, instance)
        self._forwarder = Forwarder(
            self.clock,
            fib,
            self.ports,
            self.current_settings,
            self.settlement,
            self.egress,
            self.waiting,
            self.streams,
            self.repair,
            self._end_circuit,
            faults,
        )
        self.credit_manager = self._forwarder.credit_manager
        self.unfinished = UnfinishedDeliveries(self.current_settings)
        self._reader = LinkEventReader(
            self.clock,
            self.settlement,
            self.waiting,
            self.egress,
            self._forwarder,
            self.credit_manager,
            self.unfinished,
            faults,
        )
        self.reader = self._reader
        # Held twice: Cython calls methods directly only through the attribute declared with the concrete class.

    def take_settings(self, settings: ForwardingSettings) -> None:
        """Go by other bounds from now on.

        Args:
            settings: with those of credit as they were at the start (`mesh_config.change_plan.FORWARDING_AT_START`).
        """
        self.current_settings.forwarding = settings

    def set_now(self, now: float) -> None:
        """Tell the time *now*, seconds, monotonic: before each batch of events."""
        self.clock.set(now)

    # What happens elsewhere

    def sent(self) -> int:
        """See `LinkEventHandler.sent`."""
        return self._reader.sent()

    def flowed(self, link: EgressLink) -> None:
        """Take note that a link may have credit or room."""
        try:
            self._forwarder.flowed(link)
        except StageError as error:
            self._forwarder.end_faulty(error)

    def reconsider(self, entry: AddressEntry) -> None:
        """Move credit, and what waits: others than before take the messages of an address."""
        self._forwarder.reconsider(entry)

    def hand_back(self) -> None:
        """Let clients send what they have, and release it from now on, with what waits here; replies excepted."""
        self._forwarder.set_handing_back(True)
        mobile = [entry for entry in self.fib.entries() if entry.kind is AddressKind.MOBILE]
        for transfer in [each for entry in mobile for each in entry.waiting]:
            if isinstance(transfer, Transfer) and isinstance(transfer.ingress, PublisherLink):
                self._forwarder.forget(transfer)
                self.settlement.settle(transfer, RELEASE)
        for link in self._publishers():
            link.change_credit(HANDED_BACK)

    def _publishers(self) -> list[PublisherLink]:
        """Clients' links to addresses that other routers may serve too."""
        links = [link for link in self.links if isinstance(link, PublisherLink)]
        return [link for link in links if link.entry is not None and link.entry.kind is AddressKind.MOBILE]

    def take_again(self) -> None:
        """Undo `hand_back`: give publishers the credit of subscribers again, and forward what they publish."""
        for link in self._publishers():
            link.owed = 0  # what lay unread has been released
            unused = pn_link_credit(link.handle) - pn_link_queued(link.handle)
            if unused > 0:
                link.change_credit(-unused)  # there is no subscriber's credit behind it
        self._forwarder.set_handing_back(False)
        self.settlement.set_stopping(False)
        self.credit_manager.resume()

    def publish(self, to: str, data: bytes) -> None:
        """Send a whole message of this process itself, pre-settled, to an address."""
        self._forwarder.publish(to, data)

    def retry_stranded(self) -> None:
        """Send what lost its way before it was written by another."""
        self._forwarder.retry_stranded()

    def written(self, port: Port) -> None:
        """Go on with what was stopped until a connection has written some of its output."""
        if port.blocked and port.unwritten_bytes <= LOW_WATER_BYTES:
            for session, links in list(port.blocked.items()):
                if session == NULL:
                    has_drained = not (port.is_laden or port.is_leaving)
                else:
                    has_drained = self.egress.has_drained(next(iter(links)))  # so have all others of its session
                if has_drained:
                    del port.blocked[session]
                    self._go_on_sending(port, session, links)
        if port.paused:
            paused = port.paused
            port.paused = {}
            for source in paused:
                if source.is_gone or not source.is_paused:
                    continue
                if self._reader.backpressure.has_to_wait(source):
                    port.paused[source] = None
                else:
                    self._reader.resume_safely(source)

    def _go_on_sending(self, port: Port, session: Handle, links: dict[EgressLink, None]) -> None:
        """Let links send more, those after which too much is unwritten again excepted."""
        for link in links:
            if port.unwritten_bytes > LOW_WATER_BYTES:
                port.block(link, session)
            else:
                self.flowed(link)

    def release(self, port: Port, links: Iterable[IngressLink | EgressLink]) -> None:
        """Read a connection, whose links these are, and give what it is to get: it is no longer above its mark."""
        for link in links:
            if isinstance(link, IngressLink):
                if link.controller is not None:
                    link.controller.give_withheld(link)
                self.settlement.top_up(link)
        self.read_stopped(port)

    def give_up_held(self, links: Iterable[IngressLink | EgressLink]) -> None:
        """Give up what isn't whole of these links: nothing more is read from their connection."""
        for link in list(links):
            if isinstance(link, IngressLink) and link.current is not None:
                self._forwarder.hold_less(link.current)

    def read_stopped(self, port: Port) -> None:
        """Read the links again that were not read since their connection has sent too much."""
        stopped, port.stopped = port.stopped, {}
        for source in stopped:
            if source.is_paused and not source.is_gone:
                self._reader.resume_safely(source)

    def has_unread(self) -> bool:
        """Whether links have more to read, or copies are to be written, which was left to the next turn."""
        return bool(self._reader.backpressure.unread) or self.credit_manager.copying.has_more()

    def go_on(self) -> None:
        """Begin a turn: go on with these."""
        self._reader.go_on()
        if self.credit_manager.copying.has_more():
            self.credit_manager.copying.go_on()
        if self._reader.violations.links:
            self._reader.violations.close()

    # Links come and go

    def _register(self, link: IngressLink | EgressLink) -> None:
        self.links[link] = None
        set_link_context(link.handle, link)

    def _unregister(self, link: IngressLink | EgressLink) -> None:
        if self.links.pop(link, link) is None:
            set_link_context(link.handle, None)

    def transfers_on(self, link: IngressLink | EgressLink) -> list[Transfer]:
        """The messages without outcome that have come or gone by one link, oldest first."""
        found = []
        delivery = pn_unsettled_head(link.handle)
        while delivery:
            transfer = self.settlement.find(delivery)
            if transfer is not None:
                found.append(transfer)
            delivery = pn_unsettled_next(delivery)
        return found

    def add_publisher(self, link: PublisherLink) -> None:
        """Take in a link on which messages of a client may arrive from now on, and give its first credit."""
        self._register(link)
        link.attached_at = self.clock.now
        entry = link.entry
        if entry is not None:
            entry.publishers[link] = None
            if self.credit_manager.serves(entry):
                self.credit_manager.of(entry).add_publisher(link)
        self.settlement.top_up(link)

    def add_data_link(self, link: IngressDatagramLink) -> None:
        """Take in a link on which datagrams of a neighbor may arrive from now on, and give its first credit."""
        self._register(link)
        link.port.count_in_session(link.session, 1)
        self.settlement.top_up(link)

    def add_circuit(self, link: IngressCircuitLink) -> None:
        """Take in a neighbor's circuit, on which messages may arrive from now on; it gets credit by its weight.

        One to a service of this process gets a window: the service takes whatever comes at once, and grants nothing.
        """
        self._register(link)
        entry = link.entry
        if entry is not None and self.credit_manager.serves(entry):
            self.credit_manager.of(entry).add_circuit(link)
        else:
            link.window = self.credit_manager.window
            self.settlement.top_up(link)

    def circuits_told(
        self, port: Port, weights: Mapping[str, int], closed: Sequence[str], loads: Mapping[str, tuple[int, int]]
    ) -> None:
        """Take a neighbor's word on circuits. What is gone meanwhile is of no interest.

        Args:
            port: the connection to the neighbor.
            weights: busy publishers behind its own circuits, by link name.
            closed: names of our circuits whose subscribers have withdrawn.
            loads: messages of others and subscribers to which our circuits lead, by link name.
        """
        for name, weight in weights.items():
            circuit = port.circuits_in.get(name)
            if circuit is not None and circuit.controller is not None:
                circuit.controller.set_weight(circuit, weight)
        for name in closed:
            own = port.circuits_out.get(name)
            if own is not None and own.controller is not None:
                own.controller.closed(own)
        for name, (messages, subscribers) in loads.items():
            own = port.circuits_out.get(name)
            if own is not None and own.load is not None:
                own.load.told(messages, subscribers, self.clock.now)

    # What parts ask of parts that were made after them

    def _resume(self, link: IngressLink) -> None:
        self._reader.resume_safely(link)  # it may be another connection's turn than that of the link

    def _expired(self, transfer: Transfer) -> None:
        self.credit_manager.expired(transfer)

    def _spared(self, link: EgressLink) -> None:
        controller = link.controller
        if controller is not None:
            controller.flowed(link)

    def _end_circuit(self, link: EgressCircuitLink) -> None:
        self.remove_egress(link)
        link.port.close_circuit(link)

    def add_egress(self, link: EgressLink) -> None:
        """Take in a link on which messages may leave from now on."""
        self._register(link)
        if isinstance(link, SubscriberLink):
            link.attached_at = self.clock.now
            link.controller = self.credit_manager.find(link.entry)

    def remove_ingress(self, link: IngressLink) -> None:
        """Forget a link that is gone. What is complete goes on; else it ends, and downstream where it was begun."""
        self._reader.end(link)
        self._unregister(link)
        settlement = self.settlement
        delivery = pn_unsettled_head(link.handle)
        while delivery:
            transfer = settlement.forget(delivery)
            if transfer is not None and transfer.ingress is link:
                settlement.tell_leaving(transfer)
                settlement.lose_ingress(transfer)
                transfer.ingress = None
                if not transfer.is_complete:
                    self._forwarder.drop_incomplete(transfer)
                elif transfer.state in (WAITING, QUEUED, STRANDED):
                    # An unsettled message whose sender leaves while it waits was never delivered.
                    self._forwarder.forget(transfer)
                    settlement.finish(transfer)
            delivery = pn_unsettled_next(delivery)
        link.current = None
        link.is_gone = True
        link.port.stopped.pop(link, None)
        if isinstance(link, IngressDatagramLink):
            link.port.count_in_session(link.session, -1)
        self.egress.unbind(link)
        self.gone_ingress.add(link.counters)
        if link.port.is_router:
            self.gone_ingress_of.setdefault(link.port.id, LinkCounters()).add(link.counters)
        if link.controller is not None:
            if isinstance(link, PublisherLink):
                link.controller.remove_publisher(link)
            elif isinstance(link, IngressCircuitLink):
                link.controller.remove_circuit(link)
        if link.entry is not None:
            link.entry.publishers.pop(link, None)
            self.fib.forget(link.entry)

    def lose_messages(self, link: IngressLink | EgressLink, most: int) -> int:
        """Give messages that were to leave on a link their outcomes, at most so many: it is about to go.

        Returns: how many. Fewer than *most*: there are no more of them.
        """
        return self.egress.lose(link, most) if isinstance(link, EgressLink) else 0

    def remove_egress(self, link: EgressLink) -> None:
        """Forget a link that is gone, and give its messages their outcomes. The caller withdraws the subscription."""
        self._unregister(link)
        self.egress.lost(link)
        self.gone_egress.add(link.counters)
        if link.port.is_router:
            self.gone_egress_of.setdefault(link.port.id, LinkCounters()).add(link.counters)
        if isinstance(link, EgressCircuitLink):
            self.credit_manager.circuit_gone(link)
        elif isinstance(link, SubscriberLink) and link.controller is not None:
            link.controller.subscriber_gone(link)

    def next_deadline(self) -> float:
        """Time at which `handle_deadline` is due, seconds; infinity when never."""
        due = min(self.unfinished.due, self._reader.backpressure.slowed_due, self.streams.due)
        other = self.waiting.next_deadline()
        if other < due:
            due = other
        other = self.credit_manager.next_deadline()
        return min(due, other, self.settlement.untold_due)

    def handle_deadline(self, now: float) -> None:
        """Release messages that have waited too long, and look at credit by its times.

        Args:
            now: seconds, monotonic.
        """
        try:
            self.waiting.handle_deadline(now)
        except StageError as error:  # the others are due still
            self._forwarder.end_faulty(error)
        if self._reader.backpressure.slowed_due <= now:
            self._reader.resume_slowed(now)
        if self.settlement.untold_due <= now:
            self.settlement.tell_early(now)
        if self.unfinished.due <= now:
            self._reader.violations.give_up_stalled(now)
        if self.streams.due <= now:
            self._reader.violations.give_up_slow(self.streams.given_up())
        self.credit_manager.handle_deadline(now)

    def is_quiet(self) -> bool:
        """Whether every unsettled delivery has its outcome, and nothing waits."""
        return not (self.settlement.count or self.waiting.count or self.credit_manager.copying.has_more())
