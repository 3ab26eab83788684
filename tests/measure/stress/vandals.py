"""Clients that die: in the handshake, with half a frame or half a message, with messages that they never settle.

python -m tests.measure.stress.vandals SECONDS RATE SEED PORT...

A process of its own, so that the ends that stay are not slowed down; it speaks AMQP by hand. Prints how many there
were.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator

from proton import Described, symbol, ulong

from tests.helpers.frames import AMQP_HEADER, SASL_HEADER, source, target, uint, write
from tests.measure.stress.ends import SIZES, VANDAL, encode

ADDRESSES = ("stress/a", "stress/b", "stress/settled", "openstack.org/om/rpc/multicast/openstack/stress")
ALIVE = 40
"""How many there are at a time, about."""
RESET = struct.pack("ii", 1, 0)

Stages = Iterator[bytes]


def opened(rng: random.Random) -> bytes:
    """A connection with a session."""
    sasl = SASL_HEADER + write(0x41, [symbol("ANONYMOUS"), b"vandal"], kind=1) if rng.random() < 0.5 else b""
    frames = write(0x10, [f"vandal-{rng.getrandbits(40)}", "host", uint(4096)]) + write(0x11, [None, 0, 1000, 1000])
    return sasl + AMQP_HEADER + frames


def shy(rng: random.Random) -> Stages:
    """Only a handshake."""
    yield opened(rng)
    yield write(0x18, [])


def hoarder(rng: random.Random) -> Stages:
    """Takes messages and settles none."""
    yield opened(rng)
    yield write(0x12, ["hoard", 0, True, None, None, source(rng.choice(ADDRESSES)), target("")])
    yield write(0x13, [0, 1000, 0, 1000, 0, 0, rng.choice((1, 5, 50)), None, False])
    yield write(0x13, [0, 1000, 0, 1000, 0, 0, 100, None, rng.random() < 0.3, True])
    if rng.random() < 0.5:
        yield write(0x16, [0, True])


def blabber(rng: random.Random) -> Stages:
    """Sends messages, the last of them not to its end."""
    anonymous = rng.random() < 0.2
    yield opened(rng)
    address = rng.choice(ADDRESSES)
    yield write(0x12, ["blab", 0, False, None, None, None, target("" if anonymous else address), None, None, 0])
    whole = b"" if not anonymous else _to(address)
    for number in range(rng.randrange(4)):
        message = whole + encode(VANDAL, number, rng.choice(SIZES[:5]))
        yield write(0x14, [0, number, bytes([number]), 0, rng.random() < 0.3], payload=message)
    message = whole + encode(VANDAL, 9, 20_000)
    for at in range(0, rng.randrange(len(message)), 3_000):
        yield write(0x14, [0, 9, b"9", 0, None, True], payload=message[at : at + 3_000])
    if rng.random() < 0.3:
        yield write(0x14, [0, 9, b"9", 0, None, False, None, None, None, True])


def _to(address: str) -> bytes:
    """The properties section of a message that names its address."""
    text = address.encode()
    fields = b"\x40\x40\xa1" + bytes([len(text)]) + text
    return b"\x00\x53\x73\xc0" + bytes([len(fields) + 1, 3]) + fields


def restless(rng: random.Random) -> Stages:
    """Attaches and detaches, begins and ends; has reply addresses."""
    yield opened(rng)
    for number in range(rng.randrange(1, 12)):
        dynamic = Described(ulong(0x28), [None, uint(0), symbol("never"), uint(0), True])
        yield write(0x12, [f"reply-{number}", number, True, None, None, dynamic, target("")])
        yield write(0x12, [f"s-{number}", number + 20, False, None, None, None, target(ADDRESSES[0]), None, None, 0])
        if rng.random() < 0.6:
            yield write(0x16, [number, True])
    yield write(0x17, [])
    yield write(0x11, [None, 0, 1000, 1000]) + write(0x18, [])


def raving(rng: random.Random) -> Stages:
    """Says what is no AMQP."""
    yield opened(rng)
    yield rng.randbytes(rng.randrange(1, 60))


KINDS: tuple[Callable[[random.Random], Stages], ...] = (shy, hoarder, hoarder, blabber, blabber, restless, raving)


class Vandal:
    """One of them, with its socket."""

    def __init__(self, port: int, rng: random.Random) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._sock.setblocking(False)
        self._stages = rng.choice(KINDS)(rng)
        self._rng = rng

    def act(self) -> bool:
        """Say the next thing, or half of it. Returns whether it lives on."""
        data = next(self._stages, b"")
        try:
            if self._rng.random() < 0.5:
                with contextlib.suppress(BlockingIOError):
                    self._sock.recv(65_536)
            if self._rng.random() < 0.06:
                self._sock.send(data[: self._rng.randrange(len(data) + 1)])
                return False
            return self._sock.send(data) > 0
        except BlockingIOError:
            return True
        except OSError:
            return False

    def die(self) -> None:
        """Without a word; mostly even without the end of TCP."""
        if self._rng.random() < 0.7:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._sock.close()


def rave(seconds: float, rate: float, seed: int, ports: list[int]) -> int:
    """Let so many be born each second. Returns how many there were."""
    rng = random.Random(seed)
    born = 0
    alive: list[Vandal] = []
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        if born < passed * rate:
            alive.append(Vandal(rng.choice(ports), rng))
            born += 1
        elif len(alive) < ALIVE // 2:
            time.sleep(0.001)
        if alive:
            at = rng.randrange(len(alive))
            if not alive[at].act() or len(alive) > ALIVE:
                alive.pop(at).die()
    for vandal in alive:
        vandal.die()
    return born


if __name__ == "__main__":
    print(rave(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), [int(port) for port in sys.argv[4:]]))
