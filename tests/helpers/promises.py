"""Random plays on real routers joined by real AMQP bytes, and what the promises say of them, counted from outside.

Who holds what is read from the clients' own links, who was sent what from the bytes on the wires; the routers are asked
only for what nobody else can see. A *calm* play has sending, granting and attaching: the sums hold at every movement of
bytes. In a *soft* one subscribers lower, drain and pause, and publishers leave: nothing pre-settled is lost, and the
sums hold again later. In a *rough* one connections are lost, paths change and subscribers leave as well.
"""

from __future__ import annotations

import enum
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs
from proton import Delivery

from router.core.forwarding.anycast_scheduler import AnycastScheduler
from router.core.forwarding.multicast_scheduler import MulticastScheduler
from router.dataplane.links import EgressCircuitLink
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, End, Plug, Wire
from tests.helpers.frames import Frame
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Received, Sent, message

MANY = 2**31
"""A link-credit from here on is a negative one, or would be taken for it."""
FORWARDING = {"held_message_bytes": 3000, "session_window_frames": 8, "waiting_s": 3600.0, "unfinished_s": 3600.0}
"""So small that messages are held, streamed and stopped; and what waits for a paused subscriber does not expire."""
IDLE_S = 2.0
"""Circuits that nobody needs are ended after this."""
SMALL, MEDIUM, LARGE = 10, 1500, 12_000
"""Bytes of bodies: the last is streamed and not held."""
SHAPES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("A", ()),
    ("AB", (("A", "B"),)),
    ("ABC", (("A", "B"), ("B", "C"))),
    ("ABC", (("A", "B"), ("B", "C"), ("A", "C"))),
    ("ABCD", (("A", "B"), ("B", "C"), ("C", "D"))),
    ("ABCD", (("A", "B"), ("B", "C"), ("C", "D"), ("A", "D"))),
)
BALANCED, CLOSEST, FANOUT = "balanced", "exclusive.x", "broadcast.x"
REPLY = "reply"
"""Stands for reply addresses: one for each subscriber."""


class Kind(enum.Enum):
    """How much happens."""

    CALM = "calm"
    SOFT = "soft"
    ROUGH = "rough"


class WatchedWire(Wire):
    """A wire that remembers how far each end had written when the other end was handed something."""

    def __init__(self, one: End, other: End, piece: int) -> None:
        super().__init__(one, other, piece)
        self.marks: list[tuple[int, int]] = []
        """Bytes that a client had written, and what the router had written before it read them."""
        self.held_s = 0.0

    def move(self) -> bool:
        plug = self.ends[1]
        before = len(self.log[1]) + (len(plug.written) if isinstance(plug, Plug) else 0)
        length = len(self.log[0])
        moved = super().move()
        if len(self.log[0]) > length:
            self.marks.append((len(self.log[0]), before))
        return moved


class WatchedBench(Bench):
    """A bench that calls `watch` after each movement of bytes on a wire, and remembers all wires."""

    def __init__(self, *, piece: int = 0, seed: int = 1, shares_turns: bool = False) -> None:
        super().__init__(piece=piece, seed=seed, shares_turns=shares_turns)
        self.watch: Callable[[], None] = lambda: None
        self.all_wires: list[WatchedWire] = []

    def wire(self, one: End, other: End) -> Wire:
        wire = WatchedWire(one, other, self.piece)
        watched = wire.move

        def move() -> bool:
            moved = watched()
            if moved:
                self.watch()
            return moved

        wire.move = move  # type: ignore[method-assign]
        self.wires.append(wire)
        self.all_wires.append(wire)
        return wire


@attrs.define(eq=False)
class Cast:
    """A message of a play."""

    key: str
    caster: Caster
    sent: Sent
    is_settled: bool
    is_whole: bool = True
    is_aborted: bool = False
    takers: list[Taker] = attrs.field(factory=list)
    """Subscribers that got it, in order."""
    verdicts: list[str] = attrs.field(factory=list)
    """What they said of it."""

    @property
    def is_over(self) -> bool:
        """It will not be delivered any more: it is aborted, or its publisher was told that it is not."""
        return self.is_aborted or (not self.is_settled and bool(self.sent.outcomes))


@attrs.define(eq=False)
class Caster:
    """A publisher."""

    peer: Peer
    link: PeerSender
    address: str
    home: str
    number: int
    is_anonymous: bool = False
    """It names its address in each message."""
    casts: list[Cast] = attrs.field(factory=list)
    begun: tuple[Cast, bytes] | None = None
    """A message of which parts are still to come."""
    is_gone: bool = False

    @property
    def queued(self) -> int:
        """Messages that have not left its process."""
        return int(self.link.link.queued)

    @property
    def held(self) -> int:
        """Credit that it has."""
        return self.link.credit + self.queued

    @property
    def posted(self) -> list[Cast]:
        """Messages that have left its process as a whole."""
        whole = [cast for cast in self.casts if cast.is_whole]
        return whole[: max(0, len(whole) - self.queued)]


@attrs.define(eq=False)
class Taker:
    """A subscriber."""

    peer: Peer
    link: PeerReceiver
    address: str
    home: str
    target: int
    style: str
    """When it tops up: `each` message, at `half`, the whole `batch`, or `never`."""
    is_gone: bool = False
    is_paused: bool = False
    drained_at: float | None = None
    """When it asked for its credit back."""
    is_strict: bool = False
    """It accepts everything."""

    def top_up(self) -> None:
        """Grant what its style says."""
        credit = self.link.credit
        if self.is_paused or self.is_gone or self.drained_at is not None:
            return
        if self.style == "each" and credit < self.target:
            self.link.flow(1)
        elif (self.style == "half" and 2 * credit <= self.target) or (self.style == "batch" and credit <= 0):
            self.link.flow(self.target - credit)


class Play:
    """One play: a mesh, its clients, and what happens.

    Args:
        addresses: that clients attach to.
        has_anonymous: some publishers name the address in each message. No credit is dealt for these, so no sum holds.
        forwarding: settings that differ.
    """

    def __init__(
        self,
        seed: int,
        kind: Kind,
        *,
        addresses: tuple[str, ...] = (BALANCED, CLOSEST),
        has_anonymous: bool = False,
        forwarding: dict[str, Any] | None = None,
    ) -> None:
        self.rng = rng = random.Random(seed)
        self.kind = kind
        self.kinds_of_addresses = addresses
        self.addresses = [address for address in addresses if address != REPLY]
        self.has_anonymous = has_anonymous
        self.has_sums = not has_anonymous
        names, edges = rng.choice(SHAPES)
        piece = rng.choice((0, 0, 0, 50, 700))
        self.sizes = (SMALL,) if piece == 50 else (SMALL, SMALL, SMALL, MEDIUM, LARGE)
        self.bench = WatchedBench(piece=piece, seed=seed, shares_turns=seed % 2 == 1)
        if FANOUT in addresses:  # which is held as a whole, and has a bound
            self.sizes = tuple(size for size in self.sizes if size < LARGE)
        self.names = list(names)
        for name in names:
            self.bench.router(name, forwarding={**FORWARDING, "circuit_idle_s": IDLE_S, **(forwarding or {})})
        self.edges: dict[tuple[str, str], Wire] = {}
        for edge in edges:
            self.join(edge)
        self.bench.advance(1)
        self.clients = {name: [self.bench.client(self.router(name)) for _ in range(2)] for name in names}
        self.casters: list[Caster] = []
        self.takers: list[Taker] = []
        self.everything: dict[str, Cast] = {}
        self.old: set[str] = set()
        """Messages under way when the sums came to hold again."""
        self.log: list[str] = []
        self.steps = 0
        self.is_lossy = has_anonymous or (FANOUT in addresses and kind is not Kind.CALM)
        """Messages may have been lost with a connection or a subscriber, or passed by those that had withdrawn."""
        homes = rng.sample(self.names, min(len(self.names), rng.randint(1, 2)))
        for home in homes:
            for address in addresses:
                self.subscribe(address, home)
        self.bench.advance(0.05)  # until all routers know; a nearer egress that comes later takes from a farther one
        for _ in range(rng.randint(1, 5)):
            self.publish()
        self.bench.watch = self.look if kind is Kind.CALM and self.has_sums else self.look_roughly

    def router(self, name: str) -> Runtime:
        """A router by its name."""
        return self.bench.routers[name]

    def join(self, edge: tuple[str, str]) -> None:
        """Connect two routers."""
        self.edges[edge] = self.bench.join(self.router(edge[0]), self.router(edge[1]))

    def client(self) -> tuple[str, Peer]:
        """Somebody's connection."""
        home = self.rng.choice(self.names)
        return home, self.rng.choice(self.clients[home])

    # Attaching

    def subscribe(self, address: str | None = None, home: str | None = None) -> None:
        """A subscriber of some kind attaches."""
        rng = self.rng
        home = home or rng.choice(self.names)
        peer = rng.choice(self.clients[home])
        target = rng.choice((1, 2, 5, 20, 100))
        style = rng.choice(("each", "half", "batch", "never"))
        address = address or rng.choice(self.kinds_of_addresses)
        if address == REPLY:
            link = peer.receiver(None, dynamic=True, credit=target)
            address = str(link.address)
            self.addresses.append(address)
        else:
            link = peer.receiver(address, credit=target, run=False)
        taker = Taker(peer, link, address, home, target, style)
        link.policy = lambda received: self.took(taker, received)
        self.takers.append(taker)

    def publish(self) -> None:
        """A publisher attaches somewhere."""
        home, peer = self.client()
        address = self.rng.choice(self.addresses)
        is_anonymous = self.has_anonymous and address != FANOUT and self.rng.random() < 0.5
        link = peer.sender(None if is_anonymous else address, run=False)
        self.casters.append(Caster(peer, link, address, home, len(self.casters), is_anonymous))

    def attached(self) -> list[Caster]:
        """Publishers that are there."""
        return [caster for caster in self.casters if not caster.is_gone]

    def listening(self, address: str | None = None) -> list[Taker]:
        """Subscribers that are there."""
        found = [taker for taker in self.takers if not taker.is_gone]
        return [taker for taker in found if taker.address == address] if address else found

    # Messages

    def took(self, taker: Taker, received: Received) -> None:
        """A subscriber got a message."""
        key = str(received.body).partition(" ")[0]
        cast = self.everything[key]
        is_copy = taker.address == FANOUT
        assert taker not in cast.takers, f"{key} came twice to one subscriber"
        was_given_back = cast.verdicts[-1:] == ["released"]
        assert is_copy or was_given_back or not cast.takers, f"{key} came twice"
        assert not cast.is_aborted, f"{key} was aborted"
        if not (is_copy or cast.caster.is_gone):
            said = cast.sent.outcomes
            may_have_been_seen = self.is_lossy and said == ["modified"]
            assert not said or may_have_been_seen, f"{key} came after its outcome {said}"
        cast.takers.append(taker)
        self.settle(taker, cast, received)
        taker.top_up()

    def settle(self, taker: Taker, cast: Cast, received: Received) -> None:
        """Say something of a message."""
        verdict = "accepted"
        if not taker.is_strict and self.rng.random() < 0.1:
            verdict = self.rng.choice(("released", "rejected", "modified"))
        if received.was_settled or verdict == "accepted":
            received.settle()
        elif verdict == "released":
            received.settle(Delivery.RELEASED)
        elif verdict == "rejected":
            received.reject("amqp:not-allowed", "no")
        else:
            received.modify(failed=True, undeliverable=False)
        if not received.was_settled:
            cast.verdicts.append(verdict)

    def next(self, caster: Caster, *, is_settled: bool, begin: bool = False) -> None:
        """A publisher sends a message, or begins one."""
        size = self.rng.choice(self.sizes)
        key = f"{caster.number}.{len(caster.casts)}"
        fields = {"address": caster.address} if caster.is_anonymous else {}
        data = message(f"{key} " + "x" * size, **fields)
        if begin:
            at = self.rng.randint(0, len(data) - 1)
            cast = Cast(key, caster, caster.link.begin(data[:at]), is_settled, is_whole=False)
            caster.begun = (cast, data[at:])
        else:
            cast = Cast(key, caster, caster.link.send(data, settled=is_settled), is_settled)
        caster.casts.append(cast)
        self.everything[key] = cast

    def end(self, caster: Caster) -> None:
        """Send the rest of a message that is begun."""
        if caster.begun is not None:
            cast, rest = caster.begun
            caster.begun = None
            cast.is_whole = True
            cast.sent.end(rest)
            if cast.is_settled:
                cast.sent.settle()

    def abort(self, caster: Caster) -> None:
        """Give up a message that is begun."""
        if caster.begun is not None:
            cast, _ = caster.begun
            caster.begun = None
            cast.is_aborted = True
            cast.sent.abort()

    # What happens

    def act(self) -> None:
        """Something happens."""
        acts = {
            Kind.CALM: CALM,
            Kind.SOFT: CALM + SOFT,
            Kind.ROUGH: CALM + SOFT + ROUGH,
        }[self.kind]
        name = self.rng.choice(acts)
        self.log.append(name)
        getattr(self, f"do_{name}")()

    def someone(self) -> Caster | None:
        casters = self.attached()
        return self.rng.choice(casters) if casters else None

    def somebody(self) -> Taker | None:
        takers = self.listening()
        return self.rng.choice(takers) if takers else None

    def do_send(self, count: int = 1) -> None:
        caster = self.someone()
        if caster is not None and caster.begun is None:
            is_settled = self.rng.random() < 0.6
            for _ in range(count):
                self.next(caster, is_settled=is_settled)

    def do_burst(self) -> None:
        self.do_send(self.rng.randint(2, 40))

    def do_begin(self) -> None:
        caster = self.someone()
        if caster is not None and caster.begun is None:
            self.next(caster, is_settled=self.rng.random() < 0.5, begin=True)

    def do_end(self) -> None:
        caster = self.someone()
        if caster is not None:
            self.end(caster)

    def do_abort(self) -> None:
        caster = self.someone()
        if caster is not None:
            self.abort(caster)

    def do_attach(self) -> None:
        if len(self.attached()) < 12:
            self.publish()

    def do_grant(self) -> None:
        taker = self.somebody()
        if taker is not None and not taker.is_paused and taker.link.credit < 200:
            taker.drained_at = None
            taker.link.flow(self.rng.choice((1, 1, 3, 20)))

    def do_wake(self) -> None:
        """One that tops up late does so."""
        taker = self.somebody()
        if taker is not None and not taker.is_paused and taker.drained_at is None and taker.link.credit <= 0:
            taker.link.flow(taker.target - taker.link.credit)

    def do_run(self) -> None:
        self.bench.run()

    def do_move(self) -> None:
        self.bench.step(self.rng.choices(self.bench.wires, k=self.rng.randint(1, 6)))

    def do_hold(self) -> None:
        self.rng.choice(self.bench.wires).is_still = True

    def do_free(self) -> None:
        for wire in self.bench.wires:
            wire.is_still = False

    def do_wait(self) -> None:
        waits = (0.001, 0.01, 0.02, 0.05, 0.1, 0.1, 1.2) if self.kind is Kind.CALM else WAITS
        self.wait(self.rng.choice(waits))

    def wait(self, seconds: float) -> None:
        """Let time pass. A client may be slow, but not slower than the quarantine, and a neighbor not seem dead."""
        for wire in self.bench.wires:
            assert isinstance(wire, WatchedWire)
            wire.held_s = wire.held_s + seconds if wire.is_still else 0.0
            is_between_routers = isinstance(wire.ends[0], Plug)
            most = 0.5 if is_between_routers else 1.5 if self.kind is Kind.ROUGH else 0.04
            if wire.held_s > most:
                wire.is_still = False
        self.bench.advance(seconds)

    # Soft: subscribers take credit back, publishers leave

    def do_lower(self) -> None:
        taker = self.somebody()
        if taker is not None and taker.link.credit > 0:
            taker.drained_at = None  # which a flow without drain takes back
            taker.link.flow(-self.rng.randint(1, taker.link.credit))

    def do_pause(self) -> None:
        taker = self.somebody()
        if taker is not None:
            taker.is_paused = True
            if taker.link.credit > 0:
                taker.drained_at = None
                taker.link.flow(-taker.link.credit)

    def do_resume(self) -> None:
        for taker in self.listening():
            if taker.is_paused:
                taker.is_paused = False
                taker.link.flow(taker.target)
                return

    def do_drain(self) -> None:
        taker = self.somebody()
        if taker is not None and not taker.is_paused:
            taker.link.drain(self.rng.choice((0, 0, 1, 10)))
            taker.drained_at = self.bench.now

    def do_leave(self) -> None:
        caster = self.someone()
        if caster is not None and self.rng.random() < 0.5:
            if caster.queued or caster.begun is not None:
                return  # what never left its process is nobody's loss
            caster.is_gone = True
            self.depart(caster.link)

    def depart(self, link: PeerSender | PeerReceiver) -> None:
        # proton takes the answer to a session that has ended meanwhile for a fault
        if self.kind is Kind.ROUGH and link.is_attached and self.rng.random() < 0.2:
            link.end_session()
        elif self.rng.random() < 0.5:
            link.close()
        else:
            link.detach()

    # Rough: subscribers leave, connections are lost, paths change

    def do_subscribe(self) -> None:
        if len(self.listening()) < 6:
            self.subscribe()

    def do_unsubscribe(self) -> None:
        taker = self.somebody()
        if taker is not None and self.rng.random() < 0.5:
            self.is_lossy = True
            taker.is_gone = True
            self.depart(taker.link)

    def do_lose_client(self) -> None:
        if self.rng.random() > 0.4:
            return
        self.is_lossy = True
        home, lost = self.client()
        lost.wire.cut()
        for caster in self.casters:
            caster.is_gone |= caster.peer is lost
        for taker in self.takers:
            taker.is_gone |= taker.peer is lost
        peers = self.clients[home]
        peers[peers.index(lost)] = self.bench.client(self.router(home))

    def do_cut(self) -> None:
        if not self.edges or self.rng.random() > 0.4:
            return
        self.is_lossy = True
        edge = self.rng.choice(sorted(self.edges))
        self.edges.pop(edge).cut()

    def do_reroute(self) -> None:
        if len(self.names) < 2:
            return
        left, right = sorted(self.rng.sample(self.names, 2))
        if (left, right) not in self.edges and self.rng.random() < 0.6:
            self.is_lossy = True
            self.do_free()
            self.join((left, right))

    # What must hold

    def look(self) -> None:
        """Promise 1, counted from outside: at every movement of bytes."""
        self.steps += 1
        for address in self.addresses:
            casters = [caster for caster in self.casters if caster.address == address]
            takers = self.listening(address)
            there = [caster for caster in casters if not caster.is_gone]
            held = sum(caster.held for caster in there)
            if address == FANOUT:
                for taker in takers:
                    inside = sum(self.is_missing(cast, taker) for one in casters for cast in one.posted)
                    assert held + inside <= taker.link.credit + len(there), self.sums(address, held, inside)
            else:
                inside = sum(self.is_inside(cast) for caster in casters for cast in caster.posted)
                granted = sum(taker.link.credit for taker in takers)
                # the first message to a reply address is a datagram, and its publisher may have the next one by then
                own = len(there) * (2 if is_reply(address) else 1)
                assert held + inside <= granted + own, self.sums(address, held, inside)

    def is_inside(self, cast: Cast) -> bool:
        return not (cast.is_over or cast.takers or cast.key in self.old)

    def is_missing(self, cast: Cast, taker: Taker) -> bool:
        """Whether a copy is still to come."""
        return not (cast.is_aborted or taker in cast.takers or cast.key in self.old)

    def sums(self, address: str, held: int, inside: int) -> str:
        takers = [(taker.home, taker.link.credit) for taker in self.listening(address)]
        casters = [(c.home, c.held, c.queued) for c in self.attached() if c.address == address]
        return f"promise 1 at {address}: held {held}, in the mesh {inside}, granted {takers}, publishers {casters}"

    def look_roughly(self) -> None:
        self.steps += 1

    def check(self) -> None:
        """After each step: every account agrees, no message waits where it should not, and no router had a fault."""
        self.bench.check()
        for peers in self.clients.values():
            assert not any(peer.closed for peer in peers), [(peer.closed, peer.description) for peer in peers]
        assert not any(wire.is_cut for wire in self.edges.values())
        for router in self.bench.routers.values():
            for controller in router.data_plane.credit_manager:
                controller.machine.check_invariants()  # type: ignore[attr-defined]
            if self.kind is Kind.CALM:
                self.check_waiting(router)
            for connection in router.connections.values():
                for link in connection.links.values():
                    if isinstance(link, EgressCircuitLink):
                        # behind one that is being written: what its credit was set aside for
                        assert not link.waiting or link.current is not None, "a message waits on a circuit"
        for caster in self.casters:
            for cast in caster.casts:
                assert len(cast.sent.outcomes) <= 1, (cast.key, cast.sent.outcomes)
        self.check_drains()

    def check_waiting(self, router: Runtime) -> None:
        """Promise 2: in calm times nothing waits but at its publisher's router, or behind one that is being written."""
        for controller in router.data_plane.credit_manager:
            machine = controller.machine
            if any(taker.link.partial for taker in self.takers):
                continue
            if isinstance(machine, AnycastScheduler):
                is_datagram = controller.entry.text.startswith("temp.")  # the first to a reply address
                assert is_datagram or not any(pool.core for pool in machine.pools.values()), (
                    "messages wait on their way"
                )
            elif isinstance(machine, MulticastScheduler):
                assert not any(tree.pool.core for tree in machine.trees.values()), "messages wait on their way"

    def check_drains(self) -> None:
        """Promise 7: a drain is answered within the bound, and a round trip, unless a message is being written."""
        for taker in self.listening():
            if taker.drained_at is None:
                continue
            if taker.link.credit <= 0:
                taker.drained_at = None
                continue
            is_writing = any(c.begun is not None and c.address == taker.address for c in self.casters)
            if is_writing or any(wire.is_still for wire in self.bench.wires):
                taker.drained_at = max(taker.drained_at, self.bench.now)
            assert self.bench.now <= taker.drained_at + 1.3, f"no answer to a drain: {taker.link.credit} left"

    # The end

    def settle_down(self) -> None:
        """All that is broken is repaired, and everybody wants messages; later the sums hold again, but for old ones."""
        self.do_free()
        for caster in self.casters:
            if caster.is_gone:
                caster.begun = None
            else:
                self.end(caster)
        for left, right in zip(self.names, self.names[1:], strict=False):
            if (left, right) not in self.edges:
                self.join((left, right))
        self.bench.advance(5 if self.kind is Kind.ROUGH else 0.1)
        for address in self.kinds_of_addresses:
            if address != REPLY and not self.listening(address):
                self.subscribe(address)
        for taker in self.listening():
            taker.is_paused, taker.drained_at, taker.is_strict = False, None, True
            taker.style, taker.target = "half", max(5, taker.target)
            taker.link.flow(max(1, taker.target - taker.link.credit))
        self.bench.advance(0.5)
        self.old = {key for key, cast in self.everything.items() if not (cast.is_over or cast.takers)}
        self.old |= {key for key, cast in self.everything.items() if cast.caster.address == FANOUT}
        if self.has_sums:
            self.bench.watch = self.look

    def is_done(self) -> bool:
        """Whether everything that can be delivered is."""
        for caster in self.attached():
            if not self.listening(caster.address):
                continue  # a reply address that is gone
            if caster.queued:
                return False
            for cast in caster.casts:
                if not cast.is_aborted and not (cast.sent.outcomes if not cast.is_settled else self.is_there(cast)):
                    return False
        return True

    def is_there(self, cast: Cast) -> bool:
        return bool(cast.takers) or self.is_lossy

    def finish(self, limit_s: float = 20.0) -> None:
        """Everything arrives that can; then everybody leaves, and nothing is left."""
        for _ in range(int(limit_s / 0.1)):
            self.bench.advance(0.1)
            if self.is_done():
                break
        else:
            raise AssertionError(f"no end: {self.stuck()}")
        self.bench.advance(1.5)
        self.check()
        self.check_outcomes()
        self.check_order()
        self.leave_all()

    def stuck(self) -> list[str]:
        """What did not arrive."""
        found = []
        for caster in self.attached():
            lost = [c.key for c in caster.casts if not (c.is_aborted or c.takers or c.sent.outcomes)]
            if lost or caster.queued:
                found.append(f"{caster.address} from {caster.home}: {caster.held} held, {caster.queued} queued, {lost}")
        return found + [f"{taker.address} at {taker.home}: {taker.link.credit}" for taker in self.listening()]

    def check_outcomes(self) -> None:
        """Promise 3, and an outcome means what it says."""
        for caster in self.casters:
            for cast in caster.casts:
                outcome = cast.sent.outcome
                if cast.is_settled or cast.is_aborted:
                    if cast.is_settled and cast.is_whole and not cast.is_aborted and not self.is_lossy:
                        assert cast.takers, f"{cast.key} was lost"
                    continue
                if not caster.is_gone and self.listening(caster.address):
                    assert outcome is not None, f"{cast.key} has no outcome"
                if caster.address == FANOUT:
                    continue
                if outcome in ("accepted", "rejected"):
                    assert cast.verdicts[-1:] == [outcome], (cast.key, outcome, cast.verdicts)
                elif outcome == "released":
                    assert cast.verdicts[-1:] in ([], ["released"]), (cast.key, cast.verdicts)
                    assert cast.verdicts or not cast.takers, f"{cast.key} was delivered and released"
                if not self.is_lossy and not caster.is_gone:
                    assert cast.takers, f"{cast.key} was lost"

    def check_order(self) -> None:
        """What one publisher sent to one subscriber came in its order."""
        if self.kind is Kind.ROUGH:
            return
        last: dict[tuple[int, Taker], int] = {}
        for taker in self.takers:
            for received in taker.link.messages:
                number, index = map(int, str(received.body).partition(" ")[0].split("."))
                assert last.get((number, taker), -1) < index, f"{number}.{index} came late"
                last[number, taker] = index

    def leave_all(self) -> None:
        """Promise 6: the last subscribers leave, then all others; after a while nothing is left of them."""
        self.bench.watch = self.look_roughly
        for taker in self.listening():
            taker.is_gone = True
            taker.link.close()
        self.bench.advance(0.2)
        for caster in self.attached():
            # nobody is told that a reply address is gone: its router releases what comes
            most = int(is_reply(caster.address))
            assert caster.is_anonymous or caster.held <= most, f"{caster.held} credit without a subscriber"
            caster.link.close()
            if caster.queued:
                caster.peer.wire.cut()  # proton would not detach before these are sent
        self.bench.advance(2 * IDLE_S + 3)
        for router in self.bench.routers.values():
            check_empty(router)
        for wire in self.bench.all_wires:
            check_frames(wire)
        self.bench.close()


CALM = (
    "send", "send", "burst", "burst", "begin", "end", "end", "abort", "attach", "grant", "wake", "wake",
    "run", "run", "move", "move", "hold", "free", "wait", "wait", "wait",
)  # fmt: skip
SOFT = ("lower", "pause", "resume", "resume", "drain", "drain", "leave", "wake", "burst", "wait")
ROUGH = ("subscribe", "subscribe", "unsubscribe", "lose_client", "cut", "reroute", "reroute")
WAITS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.1, 0.5, 1.2, 60.0)


def is_reply(address: str) -> bool:
    """Whether it was given by a router."""
    return address.startswith("amqp:")


def check_empty(router: Runtime) -> None:
    """No client is left, for longer than any circuit is kept: nor is any of what served them."""
    data_plane = router.data_plane
    credit_manager = data_plane.credit_manager
    assert not list(credit_manager), [controller.entry.text for controller in credit_manager]
    assert not credit_manager.touched
    assert data_plane.settlement.count == 0
    for port in data_plane.ports.values():
        assert not port.circuits_in
        assert not port.circuits_out
        assert not port.paused
        assert port.held_bytes == 0
    for entry in router.fib.entries():
        assert entry.service is not None, f"{entry.text} is not forgotten"
    assert next(iter(credit_manager.retired), None) is None


# Bytes on the wires


def numbered(log: bytearray) -> Iterator[tuple[int, Frame]]:
    """The frames of a log, each with the number of bytes before it."""
    at = 0
    for frame in frames.read(log):
        while log.startswith(b"AMQP", at):
            at += 8
        yield at, frame
        at += frame.size


def check_frames(wire: WatchedWire) -> None:
    """Promise 7, read from the bytes: no credit below zero, and no subscriber was sent more than it granted."""
    is_of_client = isinstance(wire.ends[0], Peer)
    for log in wire.log[is_of_client:]:
        for frame in frames.read(log):
            if frame.name == "flow" and frame.flow("link_credit") is not None:
                assert 0 <= frame.flow("link_credit") < MANY, frame
    if is_of_client:
        check_grants(wire)


def check_grants(wire: WatchedWire) -> None:
    """Each message of the router was within what its subscriber had granted, as far as the router had read."""
    limits = list(grants(wire))
    links: dict[tuple[int, int], str] = {}
    sent: Counter[str] = Counter()
    known: dict[str, int] = {}
    partial: set[str] = set()
    for at, frame in numbered(wire.log[1]):
        while limits and limits[0][0] <= at:
            _, name, limit = limits.pop(0)
            known[name] = max(limit, sent[name]) if limit < known.get(name, 0) else limit
        if frame.name == "attach":
            links[frame.channel, int(frame.field(1))] = str(frame.field(0))
        elif frame.name == "transfer":
            name = links[frame.channel, int(frame.field(0))]
            if name not in partial:
                sent[name] += 1
                assert sent[name] <= known.get(name, 0), f"{name} was sent more than it granted"
            (partial.add if frame.field(5) and not frame.field(9) else partial.discard)(name)


def grants(wire: WatchedWire) -> Iterator[tuple[int, str, int]]:
    """What a client granted: what the router had written before it read it, the link, and the most it may send."""
    links: dict[tuple[int, int], str] = {}
    marks = iter(wire.marks)
    end, before = next(marks, (0, 0))
    best: dict[str, int] = {}
    for at, frame in numbered(wire.log[0]):
        while at >= end:
            end, before = next(marks)
            best = {}
        if frame.name == "attach":
            links[frame.channel, int(frame.field(1))] = str(frame.field(0))
        elif frame.name == "flow" and frame.flow("handle") is not None:
            name = links[frame.channel, int(frame.flow("handle"))]
            credit = int(frame.flow("link_credit"))
            credit -= 2 * MANY * (credit >= MANY)  # proton's way to say that more is under way than it wants
            limit = int(frame.flow("delivery_count") or 0) + credit
            # several in one piece of bytes: the router may send between them
            best[name] = max(best.get(name, limit), limit)
            yield before, name, best[name]


def run(seed: int, kind: Kind, steps: int = 60, **options: Any) -> Play:
    """A whole play."""
    play = Play(seed, kind, **options)
    for _ in range(play.rng.randint(steps // 4, steps)):
        play.act()
        play.check()
    play.settle_down()
    play.finish()
    return play
