"""Links, and the passage of one message, which the engine and the data plane have in common.

They carry state and no rules. The engine makes an object for each link on which messages come or go, on the `Port` of
its connection. A message's `Transfer` belongs to the data plane.

Sizes are bytes, credit is messages; `handle` fields are proton's pointers and valid as long as the link is registered.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

import cython

from router.core.forwarding.egress_load import EgressLoad
from router.core.forwarding.fib import MULTICAST, AddressEntry
from router.core.ids_and_conditions import ConnectionId, LinkId, RouterId
from router.dataplane.arrival_progress import ArrivalProgress
from router.dataplane.connection_port import UNWRITTEN_ROOM, Port
from router.dataplane.link_counters import LinkCounters
from router.dataplane.scan_result import Scan
from router.dataplane.section_scanner import MAX_LEADING_BYTES
from router.dataplane.section_tracker import SectionTracker
from router.dataplane.sender_rights import ReadingRate

if TYPE_CHECKING:  # it knows links too
    from router.dataplane.credit_controller import CreditController
if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        NULL,
        Handle,
        pn_link_credit,
        pn_link_flow,
        pn_link_queued,
        pn_link_session,
        pn_session_outgoing_bytes,
    )
    from router.dataplane.transfer_stages import NEW, SENT, STREAM_BUFFER_BYTES

SIZES_ROOM: Final = 64
"""Sizes of pre-settled messages that a link keeps before it looks which are written."""
HEAD_BYTES: Final = MAX_LEADING_BYTES + 32
"""Maximum number of bytes that the scanner looks at."""
SMALL_BYTES: Final = 4096
"""Maximum size of parts of a message that together become one, bytes."""


class IngressLink:
    """A link on which messages arrive: what publishers' links, circuits and data links have in common."""

    __slots__ = (
        "address", "asks_other_router", "backlog_bytes", "controller", "counters", "current", "current_bytes", "entry",
        "handle", "id", "in_flight", "is_gone", "is_numbered", "is_paused", "most_bytes", "name", "port", "progress",
        "rate", "sections", "session", "streams", "user_id", "was_lowered", "window", "withheld",
    )  # fmt: skip

    def __init__(self, link_id: LinkId, port: Port, handle: Handle, name: str, *, window: int) -> None:
        self.id = link_id
        self.port = port
        self.handle = handle
        self.session: Handle = pn_link_session(handle)
        self.name = name
        self.window = window
        """Maximum number of messages under way, credit included."""
        self.most_bytes = 0
        """Largest message that its sender was told to send; 0 without a limit."""
        self.entry: AddressEntry | None = None
        """The address of its target; None for a sender that names it in each message, and on data links."""
        self.address: str | None = None
        """Address of the target as the client gave it, with its virtual host."""
        self.rate: ReadingRate | None = None
        """Bound of the messages that are read of it in a second; None for none."""
        self.user_id: bytes | None = None
        """The only `user-id` that its messages may have; None for any."""
        self.asks_other_router = False
        """Whether the messages are for management of another router, which doesn't know what their sender may do."""
        self.sections: SectionTracker | None = None
        """Tracker of the sections of messages where policy goes by what stands in them; else None."""
        self.controller: CreditController | None = None
        """Controller that decides about the link's credit; None for a link with a window."""
        self.withheld = 0
        """Credit that it is to get once its connection is no longer above its mark."""
        self.was_lowered = False
        """Credit of it was taken back: its sender may have used that before it heard, and a proton then loses count."""
        self.current: Transfer | None = None
        """Message of which more parts will come."""
        self.current_bytes = 0
        """Number of bytes read of `current`; kept where there is a limit."""
        self.progress: ArrivalProgress | None = None
        """Progress of `current`, once a part of it was read and not the end (`unfinished_deliveries.py`)."""
        self.in_flight = 0
        self.backlog_bytes = 0
        """Bytes of the link's messages that wait here for credit."""
        self.is_numbered = False
        """Whether multicasts may come on the link with their numbers as tags."""
        self.is_paused = False
        self.is_gone = False  # its handle must not be used any more
        self.streams: dict[ConnectionId, EgressLargeMessagesLink] = {}
        """Streaming link on which a message of this one went, by neighbor: all later ones follow there, in order."""
        self.counters = LinkCounters()

    def shares_session(self) -> bool:
        """Whether messages of other senders come in its session: of a neighbor's data links, when these share one."""
        return False

    def change_credit(self, change: int) -> None:
        """Grant *change* messages more; below zero, take that many back."""
        self.was_lowered |= change < 0
        pn_link_flow(self.handle, change)
        self.port.touch()


class PublisherLink(IngressLink):
    """A client's link on which messages arrive."""

    __slots__ = ("attached_at", "most_window", "owed", "used")

    def __init__(
        self,
        link_id: LinkId,
        port: Port,
        handle: Handle,
        name: str,
        *,
        window: int,
        most_window: int,
        most_bytes: int,
        entry: AddressEntry | None,
        address: str | None,
    ) -> None:
        """Begin with *window*, which may grow to *most_window*, messages."""
        IngressLink.__init__(self, link_id, port, handle, name, window=window)
        self.most_bytes = most_bytes
        self.entry = entry
        self.address = address
        self.most_window = most_window
        """Limit of its window's growth, messages."""
        self.used = 0
        """Number of messages to where somebody is since the window last changed, while it may grow."""
        self.attached_at = 0.0
        """Time at which it came, seconds."""
        self.owed = 0
        """Credit that is to be taken back and was in use: kept back from the next grants."""

    def bind_messages(self, user_id: bytes | None, *, asks_other_router: bool) -> None:
        """Let receivers read in its messages what policy has looked at.

        Args:
            user_id: the only one that they may have; None for any.
            asks_other_router: they are for management of another router, so their `reply-to` is looked at.
        """
        self.user_id = user_id
        self.asks_other_router = asks_other_router
        if user_id is not None or asks_other_router or self.entry is None:
            self.sections = SectionTracker()


class IngressCircuitLink(IngressLink):
    """A neighbor's circuit to an address."""

    __slots__ = ("root",)

    def __init__(
        self,
        link_id: LinkId,
        port: Port,
        handle: Handle,
        name: str,
        *,
        root: RouterId,
        entry: AddressEntry,
        address: str,
    ) -> None:
        """Begin the circuit of a tree with *root*: its egress router or, for a multicast, its ingress router."""
        IngressLink.__init__(self, link_id, port, handle, name, window=0)
        self.entry = entry
        self.address = address
        self.root = root
        self.is_numbered = port.takes_numbers and entry.treatment is MULTICAST


class IngressDatagramLink(IngressLink):
    """A neighbor's link for datagrams, which name their addresses."""

    __slots__ = ()

    def __init__(self, link_id: LinkId, port: Port, handle: Handle, name: str, *, window: int) -> None:
        IngressLink.__init__(self, link_id, port, handle, name, window=window)
        self.is_numbered = port.takes_numbers

    def shares_session(self) -> bool:
        """See `IngressLink.shares_session`: a qdrouterd has one session for all large messages."""
        return self.port.data_sessions.get(self.session, 0) > 1


class IngressLargeMessagesLink(IngressDatagramLink):
    """A neighbor's data link for large messages: what comes on it may be held up without holding up others."""

    __slots__ = ()


class EgressLink:
    """A link on which messages leave: what subscribers' links, circuits and data links have in common."""

    __slots__ = (
        "address", "controller", "counters", "current", "current_bytes", "default_outcome", "handle", "has_aborted",
        "id", "is_answering", "is_gone", "is_presettled", "load", "most_bytes", "name", "outstanding", "port",
        "session", "settled_sizes", "waiting", "waiting_bytes",
    )  # fmt: skip

    def __init__(self, link_id: LinkId, port: Port, handle: Handle, name: str) -> None:
        self.id = link_id
        self.port = port
        self.handle = handle
        self.session: Handle = pn_link_session(handle)
        self.name = name
        self.address: str | None = None
        self.controller: CreditController | None = None
        """Controller that decides what is sent on the link; None where nobody deals its credit, and once a circuit is
        to go."""
        self.has_aborted = False
        """Whether the link is gone with messages that were not written: the engine counts them for ever, and writes no
        Detach."""
        self.is_answering = False
        """Whether credit that the peer's drain asks for may be given back, once all before it is written."""
        self.is_gone = False  # its handle must not be used any more
        self.is_presettled = False
        """Whether the subscriber asked for settled messages (snd-settle-mode), so that it gives no outcome."""
        self.current: Transfer | None = None
        """Message of which more parts will follow; nothing else can be sent before its end."""
        self.current_bytes = 0
        """Number of bytes taken over for sending of a message that is not complete; kept where there is a limit."""
        self.default_outcome: tuple[int, bool, bool] | None = None
        """Outcome of what the receiver settles without one: state, and delivery-failed and undeliverable-here of a
        MODIFIED."""
        self.most_bytes = 0
        """Largest message that its receiver announced to take; 0 without a limit."""
        self.outstanding = 0
        self.load: EgressLoad | None = None
        """Load that a subscriber that can take a message, or our own circuit, is part of; None where there is no
        choice."""
        self.waiting: OrderedDict[Transfer, None] = OrderedDict()
        """Messages that must go out on this link and no other, oldest first."""
        self.waiting_bytes = 0
        self.settled_sizes: deque[int] = deque()
        """Sizes of pre-settled messages, of which proton does not tell whether they are written; the last ones."""
        self.counters = LinkCounters()

    def end(self) -> None:
        """Send no further message on it: its session has ended."""
        if self.current is None:
            self.current = new_transfer(None, NULL, 0.0)

    def unwritten_bytes(self) -> int:
        """Bytes that its session has to write."""
        unwritten: int = pn_session_outgoing_bytes(self.session)
        return unwritten - self.port.lost_bytes.get(self.session, 0) if self.port.lost_bytes else unwritten

    def note_settled(self, size: int) -> None:
        """Note a pre-settled message of so many bytes that was sent on it."""
        sizes = self.settled_sizes
        sizes.append(size)
        if len(sizes) >= SIZES_ROOM and len(sizes) > 2 * (queued := pn_link_queued(self.handle)):
            while len(sizes) > queued:
                sizes.popleft()

    def lose_settled(self) -> None:
        """Count the pre-settled messages as lost that are not written: its handle goes."""
        queued = pn_link_queued(self.handle)
        lost = sum(list(self.settled_sizes)[-queued:]) if queued else 0
        lost = min(lost, self.unwritten_bytes())  # of the first of them a part may be written
        if lost:
            self.port.lost_bytes[self.session] = self.port.lost_bytes.get(self.session, 0) + lost
            self.port.lose_unwritten(lost)

    def can_send(self) -> bool:
        """Whether the peer granted credit, nothing is half sent and not too much is unwritten or not taken."""
        if self.current is not None or pn_link_credit(self.handle) <= 0:
            return False
        if self.port.is_laden or self.port.is_leaving:
            self.port.block(self, NULL)
            return False
        if self.is_full():
            self.port.block(self, self.session)
            return False
        return True

    def is_full(self) -> bool:
        """Whether too much is unwritten, of its session or of its connection."""
        return self.port.unwritten_bytes > STREAM_BUFFER_BYTES or self.unwritten_bytes() > STREAM_BUFFER_BYTES

    def backlog(self) -> int:
        """Messages that will leave on it before any other."""
        return len(self.waiting)

    def is_idle(self) -> bool:
        """Whether everything that was to leave on it is written."""
        return self.current is None and not self.waiting and not pn_link_queued(self.handle)

    def has_credit(self) -> bool:
        """Whether a message of its address may go out on it at once."""
        return not self.waiting and self.can_send()


class SubscriberLink(EgressLink):
    """A client's link on which messages leave."""

    __slots__ = ("attached_at", "brokered", "deferred", "entry", "is_withdrawn", "unspent")

    def __init__(
        self,
        link_id: LinkId,
        port: Port,
        handle: Handle,
        name: str,
        *,
        entry: AddressEntry,
        address: str,
        is_presettled: bool,
        most_bytes: int,
    ) -> None:
        EgressLink.__init__(self, link_id, port, handle, name)
        self.entry = entry
        """The address that it subscribes to."""
        self.attached_at = 0.0
        """Time at which it attached, seconds."""
        self.address = address
        self.is_presettled = is_presettled
        self.most_bytes = most_bytes
        self.brokered = 0  # the part of its credit that is being dealt
        self.unspent = 0  # its credit when its last flow was looked at, less what was sent since
        self.is_withdrawn = False  # it took its credit back, and did not merely have it used up
        self.deferred = 0  # copies that were left for the next turns (`local_copier.py`)

    def backlog(self) -> int:
        """Messages that will leave on it before any other."""
        return len(self.waiting) + self.deferred

    def is_idle(self) -> bool:
        """Whether everything that was to leave on it is written."""
        return not self.deferred and EgressLink.is_idle(self)


CircuitKey = Any
"""Key of a circuit of ours: an egress router, or an ingress router and a child of this one in its tree."""


class EgressCircuitLink(EgressLink):
    """Our own circuit to a neighbor, for one address."""

    __slots__ = ("idle_since", "is_refused", "key", "root", "weight")

    def __init__(self, link_id: LinkId, port: Port, handle: Handle, name: str, *, root: RouterId, address: str) -> None:
        """Begin the circuit of a tree with *root*: its egress router or, for a multicast, its ingress router."""
        EgressLink.__init__(self, link_id, port, handle, name)
        self.address = address
        self.root = root
        self.key: CircuitKey = None
        """Key by which the controller knows it that made it."""
        self.weight = 0  # the busy publishers that the neighbor was told of
        self.idle_since = 0.0  # time at which it was last of use, seconds
        self.is_refused = False  # the neighbor did not take it


class EgressDatagramLink(EgressLink):
    """A link to a neighbor for datagrams."""

    __slots__ = ()


class EgressLargeMessagesLink(EgressDatagramLink):
    """A data link for large messages: nothing else is held up by what is written on it part by part."""

    __slots__ = ("bound",)

    def __init__(self, link_id: LinkId, port: Port, handle: Handle, name: str) -> None:
        EgressLink.__init__(self, link_id, port, handle, name)
        self.bound = 0  # ingress links whose messages all go on it


class Transfer:
    """The passage of one message through this router."""

    __slots__ = (
        "age_s", "arrived", "data", "egress", "egress_delivery", "entry", "given_bytes", "held_for", "ingress",
        "ingress_delivery", "is_brokered", "is_coming", "is_complete", "is_ready", "is_settled", "leaving",
        "leaving_at", "leaving_bytes", "load", "may_stream", "parts", "scan", "scanned_bytes", "size", "state", "tag",
        "to", "waits_until",
    )  # fmt: skip

    ingress: IngressLink | None
    ingress_delivery: Handle
    """NULL when its sender settled it, or is gone."""
    arrived: float
    state: int
    is_complete: bool
    is_settled: bool
    is_brokered: bool
    """Whether a controller has taken the message: it used the credit that it came on."""
    is_coming: bool
    """Whether a controller counts the message, and it is held until it is whole."""
    may_stream: bool
    """Whether the message is too large to be held, and goes on part by part."""
    is_ready: bool
    """Whether the bytes are already as they will leave."""
    data: bytes
    """First bytes that arrived and were not sent on, in one piece."""
    parts: list[bytes] | None
    """Pieces that arrived after `data`; None when there are none."""
    size: int
    """Bytes of `data` and `parts`."""
    leaving: deque[bytes] | None
    """Pieces of a large message being sent that the engine was not given yet; of the first, `leaving_at` bytes were."""
    leaving_at: int
    """Number of bytes of the first piece in `leaving` that the engine was given."""
    leaving_bytes: int
    """Number of bytes of the message being sent that the engine was not given."""
    given_bytes: int
    """Number of bytes of the message that the engine was given to send."""
    scan: Scan | None
    scanned_bytes: int
    """Number of bytes at the message's begin in which the leading sections were looked for, and did not end."""
    tag: bytes | None
    """Delivery-tag between routers of a multicast that has a number (`multicast_repair.py`); None for other
    messages."""
    age_s: float
    """Age of a multicast that is sent again, since its first copies were sent, seconds; else 0."""
    to: str | None
    """Value of `x-opt-qd.to` for the next router."""
    entry: AddressEntry | None
    egress: EgressLink | None
    egress_delivery: Handle
    load: EgressLoad | None
    """Load of the egress router that a datagram is part of; None for other messages."""
    waits_until: float
    """Time up to which it may wait but for its `ttl`, seconds; infinity when there is no bound, or it never waited."""
    held_for: Port | None

    def append(self, data: bytes) -> None:
        """Add what has arrived: nothing is copied but small parts, which would take more room than they have."""
        parts = self.parts
        if not self.size:
            self.data = data
        elif parts is None:
            if len(self.data) + len(data) <= SMALL_BYTES:
                self.data += data
            else:
                self.parts = [data]
        elif len(parts[-1]) + len(data) <= SMALL_BYTES:
            parts[-1] += data
        else:
            parts.append(data)
        self.size += len(data)

    def whole(self) -> bytes:
        """Join what arrived and was not sent on to one piece."""
        if self.parts is not None:
            self.data = b"".join([self.data, *self.parts])
            self.parts = None
        return self.data

    def head(self) -> bytes:
        """The beginning of that, in one piece: as much as is ever looked at, if so much is there."""
        while self.parts is not None and len(self.data) < HEAD_BYTES:
            self.data += self.parts.pop(0)
            if not self.parts:
                self.parts = None
        return self.data

    def has_all(self, data: bytes) -> bool:
        """Whether *data*, which is the beginning of the message, is the whole."""
        return self.is_complete and len(data) == self.size

    def clear(self) -> None:
        """Free what arrived: it is not needed any more."""
        self.data = b""
        self.parts = None
        self.size = 0


def new_transfer(ingress: IngressLink | None, delivery: Handle, now: float) -> Transfer:
    """The passage of a message that begins now, seconds. A call of the class would make objects of the arguments."""
    transfer = Transfer.__new__(Transfer)
    transfer.ingress = ingress
    transfer.ingress_delivery = delivery
    transfer.arrived = now
    transfer.state = NEW
    transfer.is_complete = transfer.is_settled = transfer.is_brokered = transfer.is_coming = False
    transfer.may_stream = transfer.is_ready = False
    transfer.data = b""
    transfer.parts = transfer.leaving = None
    transfer.size = transfer.scanned_bytes = transfer.leaving_at = transfer.leaving_bytes = 0
    transfer.given_bytes = 0
    transfer.scan = transfer.to = transfer.entry = transfer.egress = transfer.load = transfer.held_for = None
    transfer.egress_delivery = NULL
    if not cython.compiled:
        transfer.tag, transfer.age_s = None, 0.0  # in C it is so from the start
    transfer.waits_until = inf
    return transfer


def local_subscribers(entry: AddressEntry) -> list[SubscriberLink]:
    """The subscribers of an address at this router."""
    return cast("list[SubscriberLink]", entry.subscribers)  # the FIB knows them by what it asks of them


def keep_unwritten(port: Port, transfer: Transfer) -> None:
    """Keep a message that was sent to a neighbor: it may have to be sent a second time."""
    port.unwritten.append(transfer)
    if len(port.unwritten) > port.unwritten_room:  # on a busy connection the kernel never has all of it
        port.unwritten = [one for one in port.unwritten if one.state == SENT]
        port.unwritten_room = 2 * len(port.unwritten) + UNWRITTEN_ROOM


def forget_unwritten(port: Port) -> None:
    """Forget what may be unwritten: the kernel has all of it, and no message need be sent a second time."""
    port.unwritten_bytes = 0
    for transfer in port.unwritten:
        if transfer.state == SENT:
            transfer.clear()
    port.unwritten.clear()
