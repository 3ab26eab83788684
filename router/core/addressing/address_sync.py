"""Synchronization of mobile addresses: tells other routers which have subscribers here, keeps theirs.

Each router numbers the changes of its addresses (`mobile_seq`) and floods each change (a differential MAU). Whoever
missed one notices the gap and asks for everything (MAR, answered by an absolute MAU). What an unreachable router had is
kept, so that it is there again with the router, unless that has changed or started anew in between.

Source: docs/reference/inter-router-protocol.md#mobile-addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import attrs

from mesh_config.models import LinkStateSettings, Treatment
from router.core.addressing.address import MAX_ADDRESS_BYTES, is_edge_address, is_reserved_mobile, volatile_owner
from router.core.addressing.address_list_parts import (
    MOST_CHANGED_BYTES_OF_ALL,
    MOST_LIST_AGE_S,
    MOST_LISTS,
    MOST_PARTS,
    PARTS,
    IncomingAddressList,
    OutgoingAddressList,
    pieces,
)
from router.core.addressing.fib_update_queue import FibUpdateQueue
from router.core.events import (
    ControlReceived,
    FirstSubscriberAttached,
    InstallAddress,
    LastSubscriberLeft,
    Report,
    WithdrawAddress,
)
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.control_message_sender import ALL_ADDRESSES_TO, ControlMessageSender, addresses_to
from router.core.linkstate.due_routers import DueRouters
from router.core.linkstate.link_state_requests import retry_s
from router.core.linkstate.messages import (
    HINT_OF_TREATMENT,
    MAX_FIRST,
    MAX_JUMP,
    MobileAddressRequest,
    MobileAddressUpdate,
    mobile_address,
    mobile_key,
)


@attrs.define(kw_only=True, eq=False)
class RemoteSubscriptions:
    """Addresses held of one other router, and how new they are."""

    seq: int = 0
    """Sequence of the state that `addresses` shows."""
    newest: int = 0
    """Newest sequence that is known to exist."""
    relayed: int = 0
    """Sequence of the newest differential update passed on."""
    addresses: dict[str, Treatment | None] = attrs.field(factory=dict)
    is_installed: bool = False
    """Whether the router is reachable, so that the forwarding side knows its addresses."""
    ask_at: float | None = None
    """Time to ask (again) for everything, seconds; not None from the moment a gap was noticed."""
    asked: int = 0
    is_refused: bool = False
    """Whether something that the router advertised was refused, and told of."""
    arriving: IncomingAddressList | None = None
    """Parts of an answer that have come."""


class AddressSync:
    """Mobile addresses of this router and of all others."""

    def __init__(self, sender: ControlMessageSender, settings: LinkStateSettings) -> None:
        self.router_id = sender.router_id
        self.mobile_seq = 0
        """Number of changes of this router's own addresses since it started."""
        self.own: dict[str, Treatment] = {}
        """Addresses with local subscribers."""
        self.routers: dict[RouterId, RemoteSubscriptions] = {}
        """Subscriptions at other routers, by router, as far as anything was heard of its addresses."""
        self._absent: dict[RouterId, RemoteSubscriptions] = {}
        """Subscriptions at routers that can't be reached, which are in `routers` too."""
        self._sender = sender
        self._settings = settings
        self._advertised: dict[str, Treatment] = {}
        self._touched: dict[str, None] = {}
        self._questions: dict[RouterId, tuple[MobileAddressRequest, ConnectionId]] = {}
        """Requests for everything that are to be answered, each with the connection that it came by."""
        self._lists: dict[int, OutgoingAddressList] = {}
        """Lists of this router's addresses that are read in parts, by `mobile_seq`, the last used at the end.

        They are kept by state and not by who asks: many ask at the same time, and an id may be made up."""
        self._asks = DueRouters()
        self._installation = FibUpdateQueue()
        self._count = 0
        """Addresses of all other routers together."""
        self._changed_bytes = 0
        """Estimated memory of the changes that wait for the ends of lists, of all routers together."""

    @property
    def count(self) -> int:
        """Addresses of all other routers together."""
        return self._count

    def absent_subscribers(self, address: str) -> list[RouterId]:
        """Find the routers that can't be reached now and had subscribers of a mobile address, sorted."""
        return sorted(router for router, held in self._absent.items() if address in held.addresses)

    # This router's own

    def add(self, event: FirstSubscriberAttached) -> None:
        """Note that an address has its first local subscriber, or another treatment."""
        self.own[event.address] = event.treatment
        self._touched[event.address] = None

    def remove(self, event: LastSubscriberLeft) -> None:
        """Note that an address has lost its last local subscriber."""
        del self.own[event.address]
        self._touched[event.address] = None

    def overrule(self, mobile_seq: int) -> None:
        """Others take *mobile_seq* for this router's: go beyond it, so that they ask for everything."""
        if mobile_seq > self.mobile_seq:
            self.mobile_seq = mobile_seq + 1
            self._lists.clear()

    def settle(self, now: float) -> bool:
        """End a turn: tell others what changed in it, and answer requests.

        Args:
            now: seconds, monotonic.
        Returns: whether `mobile_seq` rose.
        """
        is_change = bool(self._touched) and self._tell()
        for request, via in self._questions.values():
            self._answer(request, via, now)
        self._questions.clear()
        while self._lists and self._lists[next(iter(self._lists))].asked_at + MOST_LIST_AGE_S <= now:
            del self._lists[next(iter(self._lists))]
        return is_change

    def _answer(self, request: MobileAddressRequest, via: ConnectionId, now: float) -> None:
        is_in_parts = request.parts > 0
        state = request.part_seq if request.part else self.mobile_seq
        answer = self._lists.pop(state, None) if is_in_parts else None
        if answer is None:
            answer = OutgoingAddressList(self.router_id, self.mobile_seq, self._advertised, in_parts=is_in_parts)
        first = request.part if request.part_seq == answer.mobile_seq else 0
        end = min(first + max(1, min(request.parts, MOST_PARTS)), answer.count)
        for number in range(first, end):
            self._sender.send(request.id, addresses_to(request.id), answer.part(number), via)
        if answer.count > 1:  # who has the last part is not the only one that reads it
            answer.note_question(now)
            self._lists[answer.mobile_seq] = answer
            if len(self._lists) > MOST_LISTS:
                del self._lists[next(iter(self._lists))]

    def _tell(self) -> bool:
        # Compared with what was told last, so what came and went within the turn is not told at all.
        gone = [a for a in self._touched if a in self._advertised and a not in self.own]
        new = [a for a in self._touched if a in self.own and self._advertised.get(a) != self.own[a]]
        self._touched.clear()
        if not gone and not new:
            return False
        for address in gone:
            del self._advertised[address]
        self._advertised.update((address, self.own[address]) for address in new)
        for added, deleted in zip_longest(pieces(new), pieces(gone), fillvalue=()):
            self._flood(added, deleted)
        return True

    def _flood(self, new: Sequence[str], gone: Sequence[str]) -> None:
        self.mobile_seq += 1
        update = MobileAddressUpdate(
            id=self.router_id,
            mobile_seq=self.mobile_seq,
            add=tuple(mobile_key(address) for address in new),
            delete=tuple(mobile_key(address) for address in gone),
            hints=tuple(HINT_OF_TREATMENT[self.own[address]] for address in new),
        )
        self._sender.flood(ALL_ADDRESSES_TO, update)

    # Messages

    def on_request(self, received: ControlReceived, message: MobileAddressRequest) -> None:
        """Note a MAR; it is answered at the end of the turn, with what changed in the turn."""
        if message.id != self.router_id and message.have_seq < self.mobile_seq:
            self._questions[message.id] = (message, received.connection)

    def on_advertised(self, router: RouterId, mobile_seq: int, now: float) -> None:
        """Note how far *router* has got.

        Args:
            router: that has told of itself in an RA.
            mobile_seq: newest state of its addresses.
            now: seconds, monotonic.
        """
        held = self.routers.get(router)
        if held is None:
            if mobile_seq == 0:
                return
            held = self._made(router)
        held.newest = max(held.newest, mobile_seq)
        self._want_rest(router, held, now)

    def on_update(self, received: ControlReceived, message: MobileAddressUpdate, now: float) -> None:
        """Handle a MAU of a router that is known.

        Args:
            received: the event that brought it.
            message: what it says.
            now: seconds, monotonic.
        """
        if message.id == self.router_id:
            return
        held = self.routers.get(message.id)
        if held is None:
            held = self._made(message.id)
        if message.mobile_seq > max(held.newest + MAX_JUMP, MAX_FIRST):
            return
        if not message.is_absolute and message.mobile_seq > held.relayed:
            held.relayed = message.mobile_seq
            self._sender.relay(received, message, received.to, is_news=True)
            self._sender.tell_origin(received, message, addresses_to(message.id))
        # DEV-16: a qdrouterd floods along every path, so copies are common; it asks for everything at each copy.
        if message.mobile_seq <= held.seq:
            return
        if message.exist is not None and message.mobile_seq > held.newest:
            # It speaks of what nobody has advertised: if it is a lie, its router shall know.
            claim = MobileAddressUpdate(id=message.id, mobile_seq=message.mobile_seq)
            self._sender.send(message.id, addresses_to(message.id), claim, None)
        held.newest = max(held.newest, message.mobile_seq)
        if message.exist is not None:
            self._on_part(held, message, now)
        elif message.mobile_seq == held.seq + 1:
            self._change(message.id, held, message)
            self._follow(message.id, held)
        elif held.arriving is not None:
            room_bytes = MOST_CHANGED_BYTES_OF_ALL - self._changed_bytes
            self._changed_bytes += held.arriving.keep(message, room_bytes)
        self._want_rest(message.id, held, now)

    def on_hearsay(self, received: ControlReceived, message: MobileAddressUpdate, now: float) -> None:
        """Handle a MAU of a neighbor that another router sent on: only a reason to ask that neighbor, in a while.

        Args:
            received: the event that brought it.
            message: what it says.
            now: seconds, monotonic.
        """
        held = self.routers.get(message.id)
        if held is None:
            held = self._made(message.id)
        if not held.newest < message.mobile_seq <= max(held.newest + MAX_JUMP, MAX_FIRST):
            return
        held.newest = message.mobile_seq
        claim = MobileAddressUpdate(id=message.id, mobile_seq=message.mobile_seq)
        self._sender.tell_origin(received, claim, addresses_to(message.id))
        if held.ask_at is None and held.is_installed:
            held.ask_at = now + retry_s(self._settings, 1)
            self._asks.set(message.id, held.ask_at)

    def _on_part(self, held: RemoteSubscriptions, message: MobileAddressUpdate, now: float) -> None:
        """Take all addresses of a router, or a part of them.

        What is in it is there at once, what is not is withdrawn with the last part.
        """
        arriving = held.arriving
        if message.part == 0 and (arriving is None or arriving.mobile_seq != message.mobile_seq):
            self._end_list(held)
            arriving = held.arriving = IncomingAddressList(message.mobile_seq)
        if arriving is None or not arriving.is_next(message):
            return  # one was lost, and is asked for again
        assert message.exist is not None
        arriving.next_part += 1
        for key, treatment in zip(message.exist, message.treatments(), strict=True):
            address = mobile_address(key)
            if address is not None and self._install(message.id, held, address, treatment):
                arriving.addresses.add(address)
        held.asked = 0
        if arriving.next_part < message.parts:
            if held.ask_at is not None:
                held.ask_at = max(held.ask_at, now + retry_s(self._settings, 1))
            if arriving.next_part % PARTS == 0:
                self._ask_for(message.id, held)
            return
        gone = [address for address in held.addresses if address not in arriving.addresses]
        for address in gone:
            del held.addresses[address]
        self._count -= len(gone)
        if held.is_installed and gone:
            self._installation.withdraw(message.id, gone)
        held.seq = arriving.mobile_seq
        held.ask_at = None
        self._follow(message.id, held)

    def _follow(self, router: RouterId, held: RemoteSubscriptions) -> None:
        """End a list whose state is reached, and take the changes that follow it."""
        arriving = held.arriving
        if arriving is None or arriving.mobile_seq > held.seq:
            return
        self._end_list(held)
        while (change := arriving.changes.get(held.seq + 1)) is not None:
            self._change(router, held, change)

    def _end_list(self, held: RemoteSubscriptions) -> None:
        """Forget the parts that have come, with the changes that wait for the others."""
        if held.arriving is not None:
            self._changed_bytes -= held.arriving.changed_bytes
            held.arriving = None

    # Reachability

    def reach(self, router: RouterId, now: float) -> None:
        """Install the addresses of *router*, which is reachable now.

        Args:
            router: another one.
            now: seconds, monotonic.
        """
        held = self.routers.get(router)
        if held is None:
            return
        held.is_installed = True
        self._absent.pop(router, None)
        self._installation.reach(router, held.addresses)
        self._want_rest(router, held, now)

    def lose(self, router: RouterId) -> None:
        """Withdraw the addresses of *router*, which is unreachable now; what it had is kept."""
        held = self.routers.get(router)
        if held is None:
            return
        self._installation.lose(router, held.addresses)
        held.is_installed = False
        self._absent[router] = held
        self._end_list(held)
        held.ask_at = None
        held.asked = 0

    def forget(self, router: RouterId) -> None:
        """Forget the addresses of *router*, which started anew or is gone for good."""
        held = self.routers.pop(router, None)
        self._absent.pop(router, None)
        if held is not None:
            self._count -= len(held.addresses)
            self._end_list(held)
            if held.is_installed:
                self._installation.lose(router, held.addresses)

    # Asking

    def next_deadline(self) -> float:
        """Time at which `ask` or `install` has something to do, seconds; `math.inf` when never."""
        return min(self._asks.next, self._installation.next_deadline())

    def install(self, now: float) -> None:
        """Tell the forwarding side of addresses of routers that were reached or lost.

        Args:
            now: seconds, monotonic.
        """
        for action in self._installation.take(now):
            self._sender.do(action)

    def ask(self, now: float) -> None:
        """Ask for the addresses that are due.

        Args:
            now: seconds, monotonic.
        """
        self._asks.ask(now, lambda router: self._ask(router, now))

    def _ask(self, router: RouterId, now: float) -> bool:
        """Ask for the addresses of *router*, if they are still wanted. Returns: whether a request was written."""
        held = self.routers.get(router)
        if held is None or held.ask_at is None:
            return False
        is_due = held.ask_at <= now
        if is_due:
            self._ask_for(router, held)
            held.asked += 1
            held.ask_at = now + retry_s(self._settings, held.asked)
        self._asks.set(router, held.ask_at)
        return is_due

    def _ask_for(self, router: RouterId, held: RemoteSubscriptions) -> None:
        arriving = held.arriving
        request = MobileAddressRequest(
            id=self.router_id,
            have_seq=held.seq,
            parts=PARTS,
            part=arriving.next_part if arriving is not None else 0,
            part_seq=arriving.mobile_seq if arriving is not None else 0,
        )
        self._sender.send(router, addresses_to(router), request, None)

    def _want_rest(self, router: RouterId, held: RemoteSubscriptions, now: float) -> None:
        if held.newest <= held.seq:
            self._end_list(held)
            held.ask_at = None
            held.asked = 0
        elif held.ask_at is None and held.is_installed:
            held.ask_at = now
            self._asks.set(router, now)

    def _made(self, router: RouterId) -> RemoteSubscriptions:
        held = self.routers[router] = RemoteSubscriptions(is_installed=router in self._sender.routes)
        if not held.is_installed:
            self._absent[router] = held
        return held

    # What the forwarding side gets

    def _change(self, router: RouterId, held: RemoteSubscriptions, message: MobileAddressUpdate) -> None:
        """Take the next change."""
        held.seq = message.mobile_seq
        for key, treatment in zip(message.add, message.treatments(), strict=True):
            address = mobile_address(key)
            if address is not None:
                self._install(router, held, address, treatment)
        for key in message.delete:
            address = mobile_address(key)
            if address is not None and address in held.addresses:
                self._withdraw(router, held, address)

    def _install(self, router: RouterId, held: RemoteSubscriptions, address: str, treatment: Treatment | None) -> bool:
        """Keep an address of *router*. Returns: whether there was room for it."""
        if address not in held.addresses:
            if not self._has_room(router, held, address):
                return False
            self._count += 1
        elif held.addresses[address] == treatment:
            return True
        held.addresses[address] = treatment
        if held.is_installed:
            self._change_one(InstallAddress(address=address, router=router, treatment=treatment))
        return True

    def _change_one(self, action: InstallAddress | WithdrawAddress) -> None:
        if not self._installation.change(action):
            self._sender.do(action)

    def _has_room(self, router: RouterId, held: RemoteSubscriptions, address: str) -> bool:
        """Whether *router* may have one more address, and this one; what is refused is told of once."""
        settings = self._settings
        owner = volatile_owner(address)
        is_reserved = is_reserved_mobile(address) and not is_edge_address(address)
        if is_reserved or (owner is not None and owner != router):
            reason = "it is not that router's to receive from"
        elif "\0" in address:
            reason = "it has a NUL"
        elif len(address) > MAX_ADDRESS_BYTES:
            reason = f"it is longer than {MAX_ADDRESS_BYTES} bytes"
        elif len(held.addresses) >= settings.max_router_addresses:
            reason = f"the router has more than {settings.max_router_addresses}"
        elif self._count >= settings.max_addresses:
            reason = f"all routers together have more than {settings.max_addresses}"
        else:
            return True
        if not held.is_refused:
            held.is_refused = True
            self._sender.do(Report.warning("address_refused", remote=router, address=address[:100], reason=reason))
        return False

    def _withdraw(self, router: RouterId, held: RemoteSubscriptions, address: str) -> None:
        del held.addresses[address]
        self._count -= 1
        if held.is_installed:
            self._change_one(WithdrawAddress(address=address, router=router))

    def check_invariants(self) -> None:
        """Assert that sequences agree, nothing is left untold, and what is missing is asked for while it can be."""
        assert self._advertised == self.own
        assert not self._touched
        assert not self._questions
        assert self._count == sum(len(held.addresses) for held in self.routers.values())
        arriving = [held.arriving for held in self.routers.values() if held.arriving is not None]
        assert self._changed_bytes == sum(each.changed_bytes for each in arriving)
        assert self._absent == {router: held for router, held in self.routers.items() if not held.is_installed}
        for router, held in self.routers.items():
            assert router != self.router_id
            assert held.seq <= held.newest
            assert held.is_installed == (router in self._sender.routes)
            is_behind = held.seq < held.newest
            assert (held.ask_at is not None) == (is_behind and held.is_installed)
            assert held.arriving is None or (is_behind and held.arriving.mobile_seq > held.seq)
            assert held.ask_at is None or (router in self._asks and self._asks.next <= held.ask_at)
