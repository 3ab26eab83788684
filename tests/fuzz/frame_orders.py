"""Scripts of frames that are well formed each, in orders that a seed makes: mostly allowed ones, and some that are not.

    python -m tests.fuzz.frame_orders FIRST COUNT

plays COUNT scripts, with seeds from FIRST on, to a router whose engine is real, and writes each seed to standard error
before it begins: the last one tells what ended the process. Peers are clients, neighbors that dial and neighbors that
were dialled. A script keeps account of what it has begun and attached, so that it comes far before it breaks a rule.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

from proton import symbol, ubyte, ushort

from mesh_config.models import Role
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.frames import AMQP_HEADER, SASL_HEADER, Described, source, target, ulong, write
from tests.helpers.peer import message

STEPS = 40
"""Frames of a script, at most."""
WRONG_ONE_IN = 30
"""So many frames, and one of them breaks a rule on purpose."""
ADDRESSES = ("fuzz", "other", "multicast/x", "", "_topo/bad", "_local/x")
CAPABILITIES = ("qd.router", "qd.router-data", "amqp-mesh.circuit")


class Script:
    """What one peer writes, step by step."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sessions: dict[int, dict[int, bool]] = {}
        """Handles of each channel, and whether the peer is the receiver."""
        self.transfers: dict[int, int] = {}
        """The next delivery-id of each channel."""
        self.partial: dict[tuple[int, int], int] = {}
        self.answered: set[int] = set()
        self.read: bytearray = bytearray()

    def step(self) -> bytes:
        """The next frame, or a few."""
        wrong = self.chance.random() * WRONG_ONE_IN < 1
        channel = self._channel(wrong)
        if channel is None:
            return self._begin(wrong)
        acts: list[Callable[[int, bool], bytes]] = [
            self._attach, self._attach, self._transfer, self._transfer, self._transfer, self._flow, self._flow,
            self._flow, self._disposition, self._disposition, self._detach,
        ]  # fmt: skip
        number = self.chance.randrange(len(acts) + 2)
        if number < len(acts):
            return acts[number](channel, wrong)
        if number == len(acts):
            return self._begin(wrong)
        return self._end(channel) if self.chance.random() < 0.4 else b"\0\0\0\x08\x02\0\0\0"

    def _channel(self, wrong: bool) -> int | None:
        if wrong and self.chance.random() < 0.3:
            return self.chance.choice((0, 1, 2, 9, 65535))
        return self.chance.choice(list(self.sessions)) if self.sessions else None

    def _handle(self, channel: int, wrong: bool, *, is_receiver: bool | None = None) -> int | None:
        if wrong:
            return self.chance.choice((0, 1, 2, 70, 2**31 - 1, 2**31, 2**32 - 1))
        handles = self.sessions.get(channel, {})
        fitting = [handle for handle, role in handles.items() if is_receiver in (None, role)]
        return self.chance.choice(fitting) if fitting else None

    def _begun(self) -> list[int]:
        """Channels on which the router has begun and that were not answered."""
        found: dict[int, bool] = {}
        try:
            for frame in frames.read(self.read):
                if frame.name == "begin":
                    found[frame.channel] = frame.field(0) is None
        except (AssertionError, KeyError, IndexError):
            pass  # not whole yet
        return [channel for channel, is_own in found.items() if is_own and channel not in self.answered]

    def _begin(self, wrong: bool) -> bytes:
        chance = self.chance
        free = [channel for channel in (0, 1, 2, 3, 300) if wrong or channel not in self.sessions]
        if not free:
            return b""
        channel = chance.choice(free)
        remote: object = None
        begun = self._begun()
        if wrong and chance.random() < 0.7:
            remote = ushort(chance.choice((0, 1, 2, 3, 7, 65535)))
        elif begun and chance.random() < 0.9:
            self.answered.add(begun[0])
            remote = ushort(begun[0])
        self.sessions[channel] = {}
        self.transfers[channel] = first = chance.choice((0, 5, 2**32 - 2))
        window = chance.choice((0, 1, 3, 100, 2**31 - 1, 2**32 - 1))
        fields = [remote, first, window, 2**31 - 1, *([chance.choice((0, 3, 255))] if chance.random() < 0.2 else [])]
        return write(0x11, fields, channel=channel)

    def _end(self, channel: int) -> bytes:
        self.sessions.pop(channel, None)
        return write(0x17, [self._error()] if self.chance.random() < 0.2 else [], channel=channel)

    def _error(self) -> Described:
        return Described(ulong(0x1D), [symbol("amqp:internal-error"), "because"])

    def _attach(self, channel: int, wrong: bool) -> bytes:
        chance = self.chance
        handles = self.sessions.setdefault(channel, {})
        handle = chance.choice((0, 1, 2, 3, 70, 100_000, 2**31 - 1))
        if wrong:
            handle = self._handle(channel, True) or 0
        elif handle in handles:
            return b""
        is_receiver = chance.random() < 0.5
        handles[handle] = is_receiver
        address = chance.choice(ADDRESSES)
        capabilities = [symbol(chance.choice(CAPABILITIES))] if chance.random() < 0.3 else []
        extra = [None, None, None, None, None, capabilities[0]] if capabilities else []
        name = chance.choice(("a", "b", "c", f"n{chance.randrange(1000)}"))
        ends = (
            Described(ulong(0x28), [address, *([None] * 9), *capabilities]) if chance.random() < 0.9 else None,
            Described(ulong(0x29), [address, *extra]) if chance.random() < 0.9 else None,
        )
        modes = [ubyte(chance.randrange(3)), ubyte(chance.randrange(2))] if chance.random() < 0.3 else [None, None]
        if chance.random() < 0.1:
            ends = (source(address), target(address))
        count = chance.choice((0, 5, 2**32 - 1))
        return write(0x12, [name, handle, is_receiver, *modes, *ends, None, None, count], channel=channel)

    def _detach(self, channel: int, wrong: bool) -> bytes:
        handle = self._handle(channel, wrong)
        if handle is None:
            return b""
        self.sessions.get(channel, {}).pop(handle, None)
        self.partial.pop((channel, handle), None)
        fields: list[object] = [handle, self.chance.random() < 0.6]
        return write(0x16, [*fields, self._error()] if self.chance.random() < 0.2 else fields, channel=channel)

    def _transfer(self, channel: int, wrong: bool) -> bytes:
        chance = self.chance
        handle = self._handle(channel, wrong and chance.random() < 0.5, is_receiver=None if wrong else False)
        if handle is None:
            return b""
        number = self.partial.get((channel, handle))
        if number is None or (wrong and chance.random() < 0.3):
            number = self.transfers.get(channel, 0)
            self.transfers[channel] = (number + 1) % 2**32
        more = chance.random() < 0.3
        aborted = chance.random() < 0.1
        if more and not aborted:
            self.partial[channel, handle] = number
        else:
            self.partial.pop((channel, handle), None)
        data = message("x", address=chance.choice(ADDRESSES) or None)
        payload = chance.choice((data, data, data[:9], data[9:], b"", bytes(3000)))
        settled = chance.choice((None, False, True))
        fields = [handle, number, b"tag", 0, settled, more, None, None, None, aborted]
        return write(0x14, fields, channel=channel, payload=payload)

    def _flow(self, channel: int, wrong: bool) -> bytes:
        chance = self.chance
        handle = self._handle(channel, wrong) if chance.random() < 0.9 else None
        count = chance.choice((0, 1, 5, 2**32 - 1, None)) if handle is not None else None
        credit = chance.choice((0, 1, 10, 10, 1000, 2**31, 2**32 - 1)) if handle is not None else None
        window = chance.choice((0, 1, 100, 2**31 - 1, 2**32 - 1))
        start = chance.choice((None, 0, 0, 1, 50))
        fields = [start, window, self.transfers.get(channel, 0), 100, handle, count, credit, None]
        return write(0x13, [*fields, chance.random() < 0.2, chance.random() < 0.3], channel=channel)

    def _disposition(self, channel: int, wrong: bool) -> bytes:
        chance = self.chance
        first = chance.choice((0, 0, 1, 2, 5, 2**32 - 2, 2**32 - 1, self.transfers.get(channel, 0)))
        last = chance.choice((None, first, (first + chance.randrange(9)) % 2**32, (first + 2**31 - 1) % 2**32))
        if wrong:
            last = chance.choice((0, 2**31 + 5, 2**32 - 1))
        code = chance.choice((0x23, 0x24, 0x24, 0x24, 0x25, 0x26, 0x27, 0x33, None))
        inner: list[object] = [self._error()] if code == 0x25 and chance.random() < 0.5 else []
        state = Described(ulong(code), inner) if code is not None else None
        return write(0x15, [chance.random() < 0.6, first, last, chance.random() < 0.7, state], channel=channel)


def head(script: Script, is_dialled: bool) -> bytes:
    """What stands before the first session."""
    chance = script.chance
    sasl = b""
    if is_dialled:
        sasl = SASL_HEADER + write(0x40, [symbol("ANONYMOUS")], kind=1) + write(0x44, [ubyte(0)], kind=1)
    elif chance.random() < 0.3:
        sasl = SASL_HEADER + write(0x41, [symbol("ANONYMOUS")], kind=1)
    if chance.random() < 0.03:
        sasl += chance.choice((SASL_HEADER, write(0x41, [symbol("X")], kind=1), write(0x11, [None, 0, 1, 1])))
    channel_max = chance.choice((None, None, ushort(3), ushort(65535)))
    options = [frames.uint(chance.choice((512, 4096))), channel_max] if chance.random() < 0.5 else []
    return sasl + AMQP_HEADER + write(0x10, [f"peer{chance.randrange(3)}", "host", *options])


def play(seed: int) -> tuple[int, str]:
    """One script. Returns: its frames, and how the router ended it, empty where it did not."""
    script = Script(seed)
    chance = script.chance
    bench = Bench(piece=chance.choice((0, 0, 0, 1, 7)))
    router = bench.router("A")
    witness = bench.client(router)
    witness.receiver("fuzz", credit=chance.choice((0, 3, 1000))).accepting()
    publisher = witness.sender("fuzz")
    elsewhere = witness.receiver("witness", credit=10).accepting()
    role = chance.choice((Role.NORMAL, Role.NORMAL, Role.INTER_ROUTER))
    is_dialled = role is Role.INTER_ROUTER and chance.random() < 0.5
    end = RawEnd(stays=chance.random() < 0.2)
    script.read = end.read
    bench.raw_ends.append(bench.wire(end, bench.plug(router, role=role, is_server=not is_dialled, max_sessions=400)))
    end.write(head(script, is_dialled))
    bench.run()
    steps = chance.randrange(1, STEPS)
    for _ in range(steps):
        end.write(script.step())
        if chance.random() < 0.5:
            bench.run()
        if chance.random() < 0.1:
            publisher.send(message("to all", address="fuzz"))
        if chance.random() < 0.03:
            bench.advance(chance.choice((0.1, 2.0)))
    if chance.random() < 0.3:
        end.write(write(0x18, []) + script.step())
    bench.run()
    bench.advance(0.5)
    told = [frame for frame in frames.read(end.read) if frame.name == "close"]
    error = told[0].field(0) if told else None
    condition = str(error.value[0]) if isinstance(error, Described) else "closed" if told else ""
    assert condition != "amqp:internal-error", f"seed {seed}: {error}"
    sent = witness.sender("witness").send(message("still here"))
    bench.run()
    assert sent.outcome == "accepted", f"seed {seed}: the witness is not served"
    assert elsewhere.bodies == ["still here"]
    bench.close()
    return steps, condition


def main(first: int, count: int) -> None:
    """Play so many scripts, and count how they ended."""
    ended: dict[str, int] = {}
    total = 0
    for seed in range(first, first + count):
        print(seed, file=sys.stderr, flush=True)
        steps, condition = play(seed)
        total += steps
        ended[condition] = ended.get(condition, 0) + 1
    print(f"{count} scripts, {total} steps:", dict(sorted(ended.items())), file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
