"""A TCP relay that reads the AMQP frames that pass: what two programs grant and send each other, seen from between.

    ledger = Ledger()
    with FrameRelay(port_of_the_router, ledger.hear) as relay:
        ...                                   # a client connects to relay.port
        print(ledger.to("news"))

It slows down what passes, so it is for counting, not for timing.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

import attrs

from tests.helpers import frames
from tests.helpers.relay import Relay

OnFrame = Callable[[int, int, bytes], None]
"""Called with the number of the connection, the side that wrote, and a whole frame."""


class FrameReader:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self, data: bytes) -> Iterator[bytes]:
        """The frames that are whole now, protocol headers left out."""
        data = self._rest + data
        at = 0
        while at + 8 <= len(data):
            if data.startswith(b"AMQP", at):
                at += 8
                continue
            (size,) = struct.unpack_from(">I", data, at)
            if at + size > len(data):
                break
            yield data[at : at + size]
            at += size
        self._rest = data[at:]


def performative(frame: bytes) -> str:
    """Name of a frame's performative, without decoding it; `heartbeat` without one."""
    start = 4 * frame[4]
    return frames.NAMES.get(frame[start + 2], "unknown") if len(frame) > start else "heartbeat"


class FrameRelay(Relay):
    """A relay that cuts what passes into frames."""

    def __init__(self, target: int, on_frame: OnFrame) -> None:
        """*target* is a port of loopback. *on_frame* is called by the relay's thread."""
        readers: defaultdict[tuple[int, int], FrameReader] = defaultdict(FrameReader)

        def hear(number: int, side: int, data: bytes) -> None:
            for frame in readers[number, side].read(data):
                on_frame(number, side, frame)

        super().__init__(target, on_bytes=hear)


class FrameCounter:
    """How many frames of each performative have passed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def hear(self, _number: int, _side: int, frame: bytes) -> None:
        """For a relay."""
        self.counts[performative(frame)] += 1


@attrs.define
class LinkEntry:
    """What passed on one link."""

    address: str
    granted: int = 0
    """Messages that its receiver has granted since it attached."""
    sent: int = 0
    """Messages that were begun on it."""
    most_unspent: int = 0
    """Highest value of `unspent`."""
    overruns: int = 0
    """Messages that were begun without credit."""
    empty: int = 0
    """Messages without a byte: what pyngus sends in place of one that expired."""
    in_a_message: bool = False

    @property
    def unspent(self) -> int:
        """Credit that is granted and not used, messages."""
        return self.granted - self.sent


class Ledger:
    """Keeps an account of every link of the connections that pass a relay."""

    def __init__(self) -> None:
        self.links: list[LinkEntry] = []
        self._by_name: dict[tuple[int, str, int], LinkEntry] = {}
        self._by_handle: dict[tuple[int, int, int, int], LinkEntry] = {}
        self._starts: dict[int, int] = {}
        """The sender's initial delivery count, by identity of the entry."""

    def hear(self, number: int, side: int, frame: bytes) -> None:
        """For a relay."""
        name = performative(frame)
        if name == "attach":
            self._attached(number, side, next(frames.read(frame)))
        elif name == "flow":
            self._granted(number, side, next(frames.read(frame)))
        elif name == "transfer":
            self._sent(number, side, next(frames.read(frame)))

    def to(self, part: str) -> LinkEntry:
        """The one link whose address has *part* in it.

        Raises: LookupError when there is none, or more.
        """
        found = [entry for entry in self.links if part in entry.address]
        if len(found) != 1:
            raise LookupError(f"{len(found)} links to {part}, among {[entry.address for entry in self.links]}")
        return found[0]

    def _attached(self, number: int, side: int, frame: frames.Frame) -> None:
        name, handle, is_receiver = str(frame.field(0)), int(frame.field(1)), bool(frame.field(2))
        receiver = side if is_receiver else 1 - side
        entry = self._by_name.get((number, name, receiver))
        if entry is None:
            # A sender's address is that of its target, a receiver's that of its source.
            terminus = frame.field(5 if is_receiver else 6)
            address = terminus.value[0] if terminus is not None and terminus.value else None
            entry = self._by_name[number, name, receiver] = LinkEntry(str(address or ""))
            self.links.append(entry)
        self._by_handle[number, side, frame.channel, handle] = entry
        if not is_receiver:
            self._starts[id(entry)] = int(frame.field(9) or 0)

    def _granted(self, number: int, side: int, frame: frames.Frame) -> None:
        handle, credit = frame.flow("handle"), frame.flow("link_credit")
        if handle is None or credit is None:
            return
        entry = self._by_handle.get((number, side, frame.channel, int(handle)))
        if entry is None or not self._is_receiver(number, side, entry):
            return
        start = self._starts.get(id(entry), 0)
        count = frame.flow("delivery_count")
        entry.granted = (int(count) - start if count is not None else 0) + int(credit)
        entry.most_unspent = max(entry.most_unspent, entry.unspent)

    def _is_receiver(self, number: int, side: int, entry: LinkEntry) -> bool:
        return any(key[0] == number and key[2] == side for key, value in self._by_name.items() if value is entry)

    def _sent(self, number: int, side: int, frame: frames.Frame) -> None:
        entry = self._by_handle.get((number, side, frame.channel, int(frame.field(0))))
        if entry is None:
            return
        if not entry.in_a_message:
            entry.sent += 1
            entry.overruns += entry.unspent < 0
        entry.in_a_message = bool(frame.field(5))
        entry.empty += not frame.payload and not entry.in_a_message
