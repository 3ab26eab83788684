"""Multicasts exactly once: numbered where they enter, taken once, and sent again where the tree has changed.

The ingress router numbers its multicasts, for each address by itself. Their delivery-tags between our routers have
the instance of the ingress router, eight bytes, and the number, eight more. A router takes each number once, from
whichever neighbor it comes, and keeps the message for some seconds. When paths change, a copy may have been lost with
its link, or have passed before this router had the child that needs it. So a child that has not been sent a kept
message gets it, as a datagram: no credit was set aside for it. So does one that was passed over, since it said that
nobody below it is live, and grants now: it may have said so before it had heard who is below it.

A qdrouterd floods, and takes and passes on no numbers. Where the path to a router led by way of one when a message
passed, that router had its copy without a number, and could not tell another one. So it is sent none of it again.

A router of which the subscribers were not known yet when a message passed is sent none of it either. What is sent again
says how old it is, since it may pass such a router on its way to another: subscribers that were not live then don't get
it. Behind the number four bytes of its tag have its age then, milliseconds.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from math import inf
from typing import Final

import cython

from router.core.errors import PeerProtocolError
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.forwarding.sequence_window import SequenceWindow
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.connection_port import Port
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.links import new_transfer
from router.dataplane.message_sender import MessageSender
from router.dataplane.section_scanner import scan

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import NULL

MOST_STREAMS: Final = 10000
"""Maximum number of pairs of an address and an ingress router that are remembered; those longest unused are
forgotten."""
MOST_INSTANCES: Final = 16
"""Maximum number of remembered instances of an ingress router: what it sent before it started again may still be under
way, or be kept and sent again, and it may start again several times meanwhile."""
KEPT_BYTES: Final = 256
"""Bytes that a kept message takes beside its own."""
EXPIRY_S: Final = 1.0
"""Time within which what was kept for long enough is forgotten, seconds; with the next one, if that comes before."""
NEVER: Final = inf
"""Deadline that never comes. It is declared as a number of C: the next deadline is asked for in each turn."""


class Stream:
    """The multicasts of one address that entered at one router."""

    __slots__ = ("number", "windows")

    def __init__(self) -> None:
        self.number = 0
        """Number given last to a multicast that entered at this router."""
        self.windows: dict[bytes, SequenceWindow] = {}
        """Windows by instance of the ingress router, the last one last."""


class KeptMulticast:
    """A multicast that has passed."""

    __slots__ = ("at", "data", "entry", "flooded", "ingress", "sent_to", "tag")

    at: float
    """Time at which it passed, seconds."""
    data: bytes
    """Message without annotations of routers."""
    entry: AddressEntry
    flooded: frozenset[RouterId]
    """Routers that were to have it without a number."""
    ingress: RouterId
    tag: bytes
    sent_to: tuple[RouterId, ...]
    """Neighbors that have it, as far as is known: it came from one, and was sent to the others."""


class KnownSubscribers:
    """Subscribers of one address at other routers, while multicasts to it are kept."""

    __slots__ = ("kept", "since")

    def __init__(self, routers: Iterable[RouterId]) -> None:
        """Begin with *routers*, whose subscribers were known before the first of these multicasts."""
        self.kept = 0
        """Multicasts to the address that are kept."""
        self.since: dict[RouterId, float] = dict.fromkeys(routers, -inf)
        """Time since which each router is known to have subscribers, seconds."""


class MulticastRepair:
    """Memory of the multicasts that have passed a router.

    Args:
        instance: of this run of the router; another one each time.
    """

    def __init__(
        self,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        settings: CurrentSettings,
        egress: MessageSender,
        instance: int,
    ) -> None:
        self._fib = fib
        self._ports = ports
        self._egress = egress
        self._settings = settings
        self._instance = instance.to_bytes(8, "big", signed=True)
        self._streams: OrderedDict[tuple[str, RouterId], Stream] = OrderedDict()
        self._highest = 0
        """Highest number given to a multicast of any address: an address that is new here goes on from it."""
        self._kept: deque[KeptMulticast] = deque()
        """Multicasts that are kept, oldest first."""
        self.kept_bytes = 0
        """Number of bytes of all kept multicasts, `KEPT_BYTES` for each included."""
        self.subscribers: dict[str, KnownSubscribers] = {}
        """Subscribers of each address to which a multicast is kept."""
        self.resent = 0
        """Number of copies that were sent again since the start."""
        self._changed_at = -inf
        """Time at which trees changed last, seconds."""
        self.is_due = False
        """Whether `send_again` has something to do, beside when trees have changed."""

    # Numbers

    def number(self, entry: AddressEntry) -> bytes | None:
        """The tag of a multicast that enters here; None when no other router has subscribers."""
        if not entry.remotes:
            return None
        stream = self._stream(entry.text, self._fib.me)
        if not stream.number:
            stream.number = self._highest  # it may have been forgotten, with numbers up to this one
        stream.number += 1
        self._highest = max(self._highest, stream.number)
        number: bytes = stream.number.to_bytes(8, "big")
        tag = self._instance + number
        self.is_new(entry, self._fib.me, tag)  # so that a copy which comes back is not
        return tag

    def is_new(self, entry: AddressEntry, ingress: RouterId, tag: bytes, is_first: bool = True) -> bool:
        """Whether the multicast of that tag, which entered at *ingress*, is here for the first time.

        Args:
            entry: of its address.
            ingress: the router that has numbered it.
            tag: instance of that router, and number.
            is_first: it is sent for the first time, and not again.
        """
        windows = self._stream(entry.text, ingress).windows
        instance = tag[:8]
        window = windows.get(instance)
        if window is None:
            if len(windows) >= MOST_INSTANCES:
                del windows[next(iter(windows))]
            window = windows[instance] = SequenceWindow()
        return window.see(int.from_bytes(tag[8:], "big"), is_first)

    def _stream(self, text: str, ingress: RouterId) -> Stream:
        streams = self._streams
        key = (text, ingress)
        stream = streams.get(key)
        if stream is None:
            stream = streams[key] = Stream()
            if len(streams) > MOST_STREAMS:
                streams.popitem(last=False)
        else:
            streams.move_to_end(key)
        return stream

    # What is kept

    def keep(
        self,
        entry: AddressEntry,
        ingress: RouterId,
        tag: bytes,
        data: bytes,
        sent_to: tuple[RouterId, ...],
        now: float,
    ) -> None:
        """Remember a multicast that has been sent on; not when no other router has subscribers.

        Args:
            data: without annotations of routers.
            sent_to: neighbors that have it.
            now: seconds, monotonic.
        """
        if not entry.remotes:
            return
        known = self.subscribers.get(entry.text)
        if known is None:
            known = self.subscribers[entry.text] = KnownSubscribers(entry.remotes)
        known.kept += 1
        kept = KeptMulticast()
        kept.at, kept.data, kept.entry, kept.ingress, kept.tag, kept.sent_to = now, data, entry, ingress, tag, sent_to
        is_known = ingress == self._fib.me or ingress in self._fib.routes  # a neighbor may make up any name
        kept.flooded = self._fib.flooded(ingress) if is_known else frozenset()
        self._kept.append(kept)
        self.kept_bytes += len(data) + KEPT_BYTES
        while self.kept_bytes > self._settings.forwarding.kept_multicast_bytes:
            self._forget_oldest()
        self.expire(now)

    def _forget_oldest(self) -> None:
        kept = self._kept.popleft()
        self.kept_bytes -= len(kept.data) + KEPT_BYTES
        known = self.subscribers[kept.entry.text]
        known.kept -= 1
        if not known.kept:
            del self.subscribers[kept.entry.text]

    def expire(self, now: float) -> None:
        """Forget what has been kept for long enough.

        Args:
            now: seconds, monotonic.
        """
        while self._kept and self._kept[0].at + self._settings.forwarding.kept_multicast_s <= now:
            self._forget_oldest()

    def next_deadline(self) -> float:
        """Time at which `expire` is due, seconds; infinity when never."""
        return self._kept[0].at + self._settings.forwarding.kept_multicast_s + EXPIRY_S if self._kept else NEVER

    # What changes

    def subscribers_changed(self, entry: AddressEntry, now: float) -> None:
        """Note that other routers have subscribers of an address than before.

        Args:
            now: seconds, monotonic.
        """
        known = self.subscribers.get(entry.text)
        if known is not None:
            known.since = {router: known.since.get(router, now) for router in entry.remotes}

    def lost(self, neighbor: RouterId) -> None:
        """Note that what was sent to a neighbor may not have arrived: its connection has ended, all links with it."""
        for kept in self._kept:
            if neighbor in kept.sent_to:
                kept.sent_to = tuple(router for router in kept.sent_to if router != neighbor)

    def trees_changed(self, now: float) -> None:
        """Send what is kept to those children that have not been sent it.

        Args:
            now: seconds, monotonic.
        """
        self._changed_at = now
        self.send_again(now)

    def branch_reopened(self, now: float) -> None:
        """Note that a child takes messages again that was passed over, since it said that nobody below it is live.

        It may have said so before it knew of those that were live, if trees have changed a short time ago.

        Args:
            now: seconds, monotonic.
        """
        if now - self._changed_at <= self._settings.forwarding.kept_multicast_s:
            self.is_due = True

    def send_again(self, now: float) -> None:
        """Send what is kept to those children that have not been sent it, as after `branch_reopened`.

        Args:
            now: seconds, monotonic.
        """
        self.is_due = False
        self.expire(now)
        children: dict[tuple[str, RouterId, frozenset[RouterId]], list[tuple[RouterId, Port, float]]] = {}
        for kept in self._kept:
            key = (kept.entry.text, kept.ingress, kept.flooded)
            found = children.get(key)
            if found is None:
                found = children[key] = self._children(kept.entry, kept.ingress, kept.flooded)
            for neighbor, port, since in found:
                if since <= kept.at and neighbor not in kept.sent_to:
                    kept.sent_to = (*kept.sent_to, neighbor)
                    self._send(kept, port, now)

    def _children(
        self, entry: AddressEntry, ingress: RouterId, flooded: frozenset[RouterId]
    ) -> list[tuple[RouterId, Port, float]]:
        """Children that take numbers, and since when it is known that there are subscribers below each, seconds.

        Args:
            entry: of the address.
            ingress: router in which the tree has its root.
            flooded: routers whose subscribers do not count.
        """
        fib = self._fib
        known_since = self.subscribers[entry.text].since
        found = []
        for route in fib.multicast_hops(entry, ingress) if ingress == fib.me or ingress in fib.routes else []:
            port = self._ports.get(route.connection)
            if port is not None and port.takes_numbers and port.data_links:
                below = fib.below(ingress, route.next_hop)
                missing = below - flooded
                since = min((since for router, since in known_since.items() if router in missing), default=inf)
                found.append((route.next_hop, port, since))
        return found

    def _send(self, kept: KeptMulticast, port: Port, now: float) -> None:
        transfer = new_transfer(None, NULL, now)
        transfer.is_complete = transfer.is_settled = True
        transfer.append(kept.data)
        transfer.entry, transfer.to, transfer.tag = kept.entry, kept.entry.text, kept.tag
        transfer.age_s = max(now - kept.at, 0.001)
        try:
            found = scan(kept.data, True, stop_at_annotations=True, from_client=True)
        except PeerProtocolError:
            return  # it is no message, and can't be a datagram
        assert found is not None
        found.ingress = kept.ingress
        transfer.scan = found
        data = self._egress.leading_for(transfer, kept.data, to_router=True)
        self._egress.copy(data, transfer, port.data_links[0])
        port.touch()
        self.resent += 1
