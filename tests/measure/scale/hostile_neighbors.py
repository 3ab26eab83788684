"""Kinds of hostile neighbors: routers that say more than they may, or what others have to work out at length.

Each joins the mesh in order, as a router R0 beside R1, and then does what its name says over and over.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
from proton import UNDESCRIBED, Array, Data, int32, symbol

from mesh_config.models import ListenerSettings, MeshSettings, Role
from router import __version__
from tests.helpers.frames import AMQP_HEADER, Described, uint, ulong, write
from tests.helpers.neighbor import control_message

if TYPE_CHECKING:
    from tests.measure.scale.hostile import Connect

OPEN, BEGIN, ATTACH, FLOW, TRANSFER = range(0x10, 0x15)
MIXED: Final = 2
FULL: Final = 2**31 - 1
R0, R1 = "R0", "R1"
EVERYBODY: Final = "amqp:/_topo/0/all/qdrouter"
HELLO_S: Final = 0.3
PART_BYTES: Final = 30_000
"""Of a message in one frame."""
ADDRESSES: Final = 500
"""In one message,"""
MESSAGES: Final = 100
"""and so many messages until they are withdrawn."""
ROUTERS: Final = 300
"""Of a dense graph: each is a neighbor of each."""
LIST_LENGTH: Final = 30_000
CIRCUITS: Final = 5000
ABILITIES: Final = ("ANONYMOUS-RELAY", "amqp-mesh.lsu-push.1", "amqp-mesh.circuits.1", "amqp-mesh.multicast-numbers.1")
_boots = itertools.count(int(time.time() * 1000))


def with_neighbors(settings: MeshSettings) -> MeshSettings:
    """*settings* with a further listener at each router, for neighbors."""
    listener = ListenerSettings(role=Role.INTER_ROUTER)
    routers = {
        name: attrs.evolve(router, listeners=(*router.listeners, listener)) for name, router in settings.routers.items()
    }
    return attrs.evolve(settings, routers=routers)


class Neighbor:
    """A member of the mesh, as far as R1 can tell."""

    def __init__(self, connect: Connect) -> None:
        self.instance = next(_boots)
        self._client = connect(None)
        self._number = 0
        self._hello_at = 0.0
        offered = Array(UNDESCRIBED, Data.SYMBOL, *map(symbol, ABILITIES))
        properties = {symbol("product"): "amqp-mesh", symbol("version"): __version__, symbol("qd.conn-id"): int32(1)}
        opening = [R0, "host", uint(65536), uint(8191), None, None, None, offered, offered, properties]
        self.write(AMQP_HEADER + write(OPEN, opening))
        for channel, capability in enumerate(("qd.router", "qd.router-data")):
            ends = [
                Described(ulong(code), [None] * null + [symbol(capability)]) for code, null in ((0x28, 10), (0x29, 6))
            ]
            self.write(
                write(BEGIN, [None, 0, FULL, FULL, 100], channel=channel)
                + write(ATTACH, [f"{capability} in", 0, True, MIXED, 0, *ends], channel=channel)
                + write(ATTACH, [f"{capability} out", 1, False, MIXED, 0, *ends, None, None, 0], channel=channel)
                + write(FLOW, [0, FULL, 0, FULL, 0, 0, 100_000], channel=channel)
            )
        self.hello([])
        self.rest(0.05)
        self.hello()
        self.say(link_state(self, R0, {R1: 1}, 2))
        self.rest(0.05)

    def write(self, data: bytes) -> None:
        """Write frames."""
        self._client.write(data, 5)

    def rest(self, seconds: float) -> None:
        """Only read for so long."""
        self._client.rest(seconds)

    def leave(self) -> None:
        """Close the connection without a word."""
        self._client.close()

    def hello(self, seen: Sequence[str] = (R1,)) -> None:
        """Say whom it has heard."""
        self._hello_at = time.monotonic()
        body = {"instance": self.instance, "seen": list(seen)}
        self._send(control("amqp:/_local/qdhello", "HELLO", R0, body))

    def say(self, message: bytes) -> None:
        """Send a control message, after a HELLO when one is due."""
        if time.monotonic() > self._hello_at + HELLO_S:
            self.hello()
        self._send(message)

    def _send(self, message: bytes) -> None:
        parts = [message[at : at + PART_BYTES] for at in range(0, len(message), PART_BYTES)]
        tag = b"%d" % self._number
        for number, part in enumerate(parts, 1):
            self.write(write(TRANSFER, [1, self._number, tag, 0, True, number < len(parts)], payload=part))
        self._number += 1


def control(to: str, opcode: str, origin: str, body: Mapping[str, Any]) -> bytes:
    """A control message of *origin*, which came by R0."""
    trace = [f"0/{origin}"] if origin == R0 else [f"0/{origin}", f"0/{R0}"]
    return control_message(to, opcode, origin, body, trace[0], trace)


def link_state(neighbor: Neighbor, origin: str, peers: Mapping[str, int], sequence: int) -> bytes:
    """An LSU."""
    costs = {peer: int32(cost) for peer, cost in peers.items()}
    state = {"id": origin, "area": "0", "ls_seq": sequence, "peers": costs}
    body = {"instance": neighbor.instance, "ls_seq": sequence, "ls": state}
    return control(EVERYBODY, "LSU", origin, body)


def addresses(sequence: int, **lists: Sequence[str]) -> bytes:
    """An MAU."""
    return control("_topo/0/all/qdrouter.ma", "MAU", R0, {"mobile_seq": sequence, **lists})


def _names(number: int) -> list[str]:
    return [f"M0{number}/{at}" for at in range(ADDRESSES)]


def advertised_addresses(connect: Connect) -> None:
    """Five hundred addresses a message, advertised and withdrawn in turns."""
    neighbor = Neighbor(connect)
    sequences = itertools.count(1)
    while True:
        for number in range(MESSAGES):
            neighbor.say(addresses(next(sequences), add=_names(number), **{"del": []}))
        for number in range(MESSAGES):
            neighbor.say(addresses(next(sequences), add=[], **{"del": _names(number)}))


def long_lists(connect: Connect) -> None:
    """Lists of thirty thousand addresses, each another one: about as many as are read."""
    neighbor = Neighbor(connect)
    lists = [
        addresses(sequence, exist=[f"M0{sequence:x}/{at:x}" for at in range(LIST_LENGTH)]) for sequence in range(1, 31)
    ]
    for one in lists:
        neighbor.say(one)
    for _ in range(10):
        neighbor.rest(0.1)
        neighbor.hello()


def dense_graphs(connect: Connect) -> None:
    """The link state of three hundred routers that are all neighbors of each other, with other costs each time."""
    neighbor = Neighbor(connect)
    routers = [f"T{number}" for number in range(ROUTERS)]
    neighbor.say(link_state(neighbor, R0, {R1: 1, **dict.fromkeys(routers, 1)}, 3))
    for turn in itertools.count(1):
        for number, router in enumerate(routers):
            costs = {other: 1 + (turn + number + at) % 3 for at, other in enumerate(routers) if other != router}
            neighbor.say(link_state(neighbor, router, {**costs, R0: 1}, turn))


def returning(connect: Connect) -> None:
    """A neighbor that tells all it may, leaves and comes again."""
    messages = [addresses(sequence, add=_names(sequence), **{"del": []}) for sequence in range(1, 41)]
    while True:
        neighbor = Neighbor(connect)
        for message in messages:
            neighbor.say(message)
        neighbor.rest(0.05)
        neighbor.leave()


def flapping(connect: Connect) -> None:
    """A neighbor that hears R1 and hears it not, as fast as it can say so."""
    neighbor = Neighbor(connect)
    for sequence in itertools.count(3):
        is_heard = sequence % 2
        neighbor.hello([R1] if is_heard else [])
        neighbor.say(link_state(neighbor, R0, {R1: 1} if is_heard else {}, sequence))


def many_circuits(connect: Connect) -> None:
    """Five thousand circuits for addresses of nobody, each in a session of its own."""
    neighbor = Neighbor(connect)
    for number in range(CIRCUITS):
        address = Described(
            ulong(0x29), [f"nobody/{number}", None, None, None, None, None, symbol("amqp-mesh.circuit")]
        )
        fields = [f"c{number}", 0, False, MIXED, 0, Described(ulong(0x28), []), address, None, None, 0]
        properties = {symbol("amqp-mesh.egress"): R1}
        attach = write(ATTACH, [*fields, None, None, None, properties], channel=2 + number)
        neighbor.write(write(BEGIN, [None, 0, FULL, FULL, 1], channel=2 + number) + attach)
        if number % 100 == 0:
            neighbor.hello()
    neighbor.rest(0.2)


KINDS: tuple[Callable[[Connect], None], ...] = (
    advertised_addresses,
    long_lists,
    dense_graphs,
    returning,
    flapping,
    many_circuits,
)
