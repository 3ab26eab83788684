"""The digital twin of a mesh: how long its control planes take to agree, from a cold start and after each failure.

The planes are those of the routers, under virtual time, in a mesh of a model's links or of a well-known shape. Each
time they are right when networkx says so: every route has the cost of a shortest path.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

import attrs

from mesh_config.generators import SEEDED, generate
from mesh_config.models import LinkStateSettings
from mesh_config.yaml_text import Place
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.throttle import ROUTERS_A_PAUSE
from router.simulation.mesh import Mesh, Wire
from router.simulation.mesh_invariants import Distances, distances_of, first_differences
from router.whatif.convergence.simulation_parameters import SimulationParameters
from router.whatif.model.mesh_model import Model, ModelError

STEP_S: Final = 0.01
"""Time between two looks whether all are right, seconds. Results do not depend on it."""
LIMIT_S: Final = 60.0
"""Time after which, plus three times `hello_max_age_s`, a mesh that is not right is given up, seconds."""
UNASKED: Final = frozenset({"HELLO", "RA"})
"""Messages that are sent without any reason but time."""

Row = dict[str, object]


class EventKind(StrEnum):
    """Kind of an event that happens to a mesh."""

    START = "start"
    """All routers start at once."""
    LINK = "link"
    """A connection breaks, and both its ends are told."""
    ROUTER = "router"
    """A process is killed; its machine ends its connections."""
    SILENT_LINK = "silent-link"
    """A link carries nothing any more, and nobody is told."""
    SILENT_ROUTER = "silent-router"
    """A machine is gone, and nobody is told."""
    REPAIR = "repair"
    """Kind of the event that brings back what failed last."""
    CALM = "calm"
    """Time passes without events."""


CAN_FAIL: Final = (EventKind.LINK, EventKind.ROUTER, EventKind.SILENT_LINK, EventKind.SILENT_ROUTER)
FAILURES: Final = (EventKind.LINK, EventKind.ROUTER, EventKind.LINK, EventKind.ROUTER, EventKind.SILENT_ROUTER)
"""Kinds in the order in which they take turns, unless other ones are asked for."""


@attrs.frozen(kw_only=True)
class TwinTopology:
    """Source of a twin's mesh: the routers and links of a model, or a shape that is generated."""

    name: str
    """Name of the model or the shape."""
    routers: int
    """Number of routers."""
    ids: tuple[str, ...] | None = None
    """Ids of the routers of a model, those without links too; None: a shape."""
    links: tuple[tuple[str, str, int, float | None], ...] = ()
    """Links of a model: two routers, cost, and one-way delay in seconds or None."""

    @classmethod
    def of_model(cls, model: Model) -> TwinTopology:
        """The routers and links of a model, with their delays.

        Raises: ModelError when links have another cost in each direction.
        """
        wrong = [link.id for link in model.links if link.costs[0] != link.costs[1]]
        if wrong:
            place = Place(file=None, line=None, path=("links", wrong[0], "cost_back"))
            message = "another cost in each direction, and routers of a mesh use the larger one for both"
            raise ModelError([place.finding(message, expected="the same cost both ways")])
        ids = tuple(router.id for router in model.routers)
        links = (
            (link.a, link.b, link.cost, None if link.delay_ms is None else link.delay_ms / 1000) for link in model.links
        )
        return cls(name=model.name, routers=len(ids), ids=ids, links=tuple(links))


@attrs.frozen(kw_only=True)
class TwinCase:
    """One run of a twin."""

    ground: TwinTopology
    seed: int
    """Seed of the shape, where it takes one, of delays and jitter, and of the choice of failures."""
    timers: LinkStateSettings = LinkStateSettings()
    conditions: SimulationParameters = SimulationParameters()
    failures: int = 20
    kinds: tuple[EventKind, ...] = FAILURES
    """Kinds of failures, which take turns."""
    is_repaired: bool = True
    """True when what has failed is back before the next failure; else failures add up."""
    calm_s: float = 0.0
    """Time without events at the end in which refreshes are counted, seconds."""

    def head(self) -> Row:
        """Columns that all its rows have in common, but for the size of its mesh."""
        return {"mesh": self.ground.name, "seed": self.seed, **attrs.asdict(self.timers)}


def run_case(case: TwinCase, told: Callable[[Row], None] = lambda _: None) -> list[Row]:
    """Run a twin through its start and all failures.

    Args:
        case: mesh, timers, seed and failures.
        told: called for each row as soon as it is known.
    Returns: rows of the table `convergence`, in the order of events.
    """
    with _without_collector():
        rows = []
        for row in Twin(case).rows():
            told(row)
            rows.append(row)
        return rows


class Twin:
    """A mesh and what happens to it."""

    def __init__(self, case: TwinCase) -> None:
        self.case = case
        self.mesh = _mesh(case)
        self._rng = random.Random(f"failures {case.seed}")
        self._links = len({frozenset(router.id for router in wire.ends) for wire in self.mesh.wires})
        self._sizes: Row = {"routers": len(self.mesh.routers), "links": len(self.mesh.wires)}
        self._whole: Distances | None = None
        """Distances while nothing has failed."""
        self._count = 0

    def rows(self) -> Iterator[Row]:
        """Let everything happen, and tell what came of it."""
        yield self._event(EventKind.START, "", lambda: None)
        for number in range(self.case.failures):
            kind = self.case.kinds[number % len(self.case.kinds)]
            target = self._target(kind)
            if target is None:
                continue  # nothing of that kind is left that could fail
            what, fail, repair = target
            yield self._event(kind, what, fail)
            if self.case.is_repaired:
                yield self._event(EventKind.REPAIR, what, repair)
        if self.case.calm_s > 0:
            yield self._calm()

    # What happens

    def _target(self, kind: EventKind) -> tuple[str, Callable[[], None], Callable[[], None]] | None:
        """Something that may fail: its name, its failure, its repair."""
        mesh = self.mesh
        if kind in (EventKind.LINK, EventKind.SILENT_LINK):
            wires = [wire for wire in mesh.wires if wire.is_up and not wire.is_silent]
            if not wires:
                return None
            wire = self._rng.choice(wires)
            if kind is EventKind.LINK:
                return _name(wire), lambda: mesh.disconnect(wire), lambda: mesh.reconnect(wire)
            return _name(wire), lambda: mesh.silence(wire), lambda: mesh.silence(wire, is_silent=False)
        living = sorted(router.id for router in mesh.living())
        if len(living) < 2:
            return None
        victim = self._rng.choice(living)
        fail = mesh.kill if kind is EventKind.ROUTER else mesh.vanish
        return victim, lambda: fail(victim), lambda: mesh.restart(victim)

    def _event(self, kind: EventKind, what: str, happen: Callable[[], None]) -> Row:
        mesh = self.mesh
        before = _Counts.of(mesh)
        began = mesh.now
        happen()
        wrong = self._settle()
        changed = [max(0.0, router.forwarding.changed_at - began) for router in mesh.living()]
        known = [max(0.0, router.forwarding.known_at - began) for router in mesh.living()]
        return {
            **self.case.head(),
            **self._sizes,
            "event": self._next(),
            "kind": kind.value,
            "what": what,
            "converge_s": max(changed, default=0.0) if not wrong else None,
            "known_s": max(known, default=0.0) if not wrong else None,
            "wrong": wrong,
            "period_s": mesh.now - began,
            **before.until(_Counts.of(mesh), is_asked=True),
        }

    def _calm(self) -> Row:
        mesh = self.mesh
        before, began = _Counts.of(mesh), mesh.now
        mesh.run_for(self.case.calm_s)
        return {
            **self.case.head(),
            **self._sizes,
            "event": self._next(),
            "kind": EventKind.CALM.value,
            "what": "",
            "converge_s": None,
            "known_s": None,
            "wrong": len(first_differences(mesh, self._distances())),
            "period_s": mesh.now - began,
            **before.until(_Counts.of(mesh), is_asked=False),
        }

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    # Until all is right

    def _settle(self) -> int:
        """Run until all planes are right and none has anything left to compute. Returns: what is wrong at the limit."""
        mesh, timers = self.mesh, self.case.timers
        limit = mesh.now + LIMIT_S + 3 * timers.hello_max_age_s
        # The longest pause between two computations; what comes later is caused by nothing that happened before.
        quiet_s = 0.05 + 2 * timers.spf_hold_down_s * (2 + len(mesh.routers) // ROUTERS_A_PAUSE)
        distances = self._distances()
        while True:
            wrong = first_differences(mesh, distances)
            if not wrong:
                mesh.run_for(quiet_s)
                wrong = first_differences(mesh, distances)
            if not wrong:
                return 0
            if mesh.now >= limit:
                return len(wrong)
            mesh.run_for(STEP_S)

    def _distances(self) -> Distances:
        graph = self.mesh.graph()
        is_whole = graph.number_of_edges() == self._links and len(graph) == len(self.mesh.routers)
        if not is_whole:
            return distances_of(graph)
        if self._whole is None:
            self._whole = distances_of(graph)
        return self._whole


@attrs.frozen(kw_only=True)
class _Counts:
    """Counts of what all routers have done so far."""

    sent: Mapping[RouterId, Mapping[str, int]]
    sent_bytes: Mapping[RouterId, Mapping[str, int]]
    spf_runs: Mapping[RouterId, int]
    dijkstra_runs: Mapping[RouterId, int]
    busy_s: float

    @classmethod
    def of(cls, mesh: Mesh) -> _Counts:
        """Current values of the counters."""
        living = list(mesh.living())
        return cls(
            sent={router.id: dict(router.sent) for router in mesh.routers.values()},
            sent_bytes={router.id: dict(router.sent_bytes) for router in mesh.routers.values()},
            spf_runs={router.id: router.plane.spf_runs for router in living},
            dijkstra_runs={router.id: router.plane.dijkstra_runs for router in living},
            busy_s=mesh.machine.busy_s if mesh.machine is not None else 0.0,
        )

    def until(self, after: _Counts, *, is_asked: bool) -> Row:
        """Count what they have done since; *is_asked*: without what they send for no other reason than time."""
        left_out = UNASKED if is_asked else frozenset[str]()

        def grown(old: Mapping[RouterId, Mapping[str, int]], new: Mapping[RouterId, Mapping[str, int]]) -> list[int]:
            return [
                sum(count - old[router].get(opcode, 0) for opcode, count in counts.items() if opcode not in left_out)
                for router, counts in new.items()
            ]

        def runs(old: Mapping[RouterId, int], new: Mapping[RouterId, int]) -> int:
            # One that has started anew counts from nothing.
            return sum(
                count - old.get(router, 0) if count >= old.get(router, 0) else count for router, count in new.items()
            )

        messages, volume = grown(self.sent, after.sent), grown(self.sent_bytes, after.sent_bytes)
        return {
            "messages": sum(messages),
            "bytes": sum(volume),
            "messages_busiest": max(messages),
            "bytes_busiest": max(volume),
            "spf_runs": runs(self.spf_runs, after.spf_runs),
            "dijkstra_runs": runs(self.dijkstra_runs, after.dijkstra_runs),
            "processor_s": after.busy_s - self.busy_s,
        }


def _name(wire: Wire) -> str:
    return "--".join(sorted(router.id for router in wire.ends))


def _mesh(case: TwinCase) -> Mesh:
    """The mesh of a case, all routers starting."""
    conditions = case.conditions
    mesh = Mesh(
        seed=case.seed,
        settings=case.timers,
        conditions=conditions.network,
        detection_s=conditions.detection_s,
        detection_jitter_s=conditions.detection_jitter_s,
        is_shared=True,
        cpu_costs=conditions.cpu_costs,
        counts_bytes=True,
        keeps_reports=False,
    )
    ground = case.ground
    links: Sequence[tuple[str, str, int, float | None]] = ground.links
    names = sorted(ground.ids or ())
    if ground.ids is None:
        shape = generate(ground.name, ground.routers, **({"seed": case.seed} if ground.name in SEEDED else {}))
        names = sorted(shape.routers)
        links = [
            (name, connector.to, connector.cost, None)
            for name in names
            for connector in shape.routers[name].connectors
            if connector.to is not None
        ]
    for name in names:
        mesh.add_router(name)
    for near, far, cost, delay_s in links:
        mesh.connect(near, far, cost, delay_s=delay_s)
    return mesh


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's collector would look at millions of objects again and again, of which none is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
