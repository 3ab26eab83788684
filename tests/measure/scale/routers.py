"""Routers of a mesh: what the control plane of each does for one event. In one process, under virtual time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from router.simulation.mesh import Mesh
from tests.measure.scale.stand import Stand, Table

SIZES = (25, 50, 100, 200)
NEIGHBORS = 4
EVENTS = 10
SETTLE_S = 0.5
"""Virtual time that each event is given."""


def measure(_: Stand, sizes: Sequence[int]) -> Table:
    """CPU of all control planes together, for each of them."""
    table = Table("routers of a mesh with 4 neighbors each: CPU of each control plane for an event somewhere")
    for size in sizes:
        _at(table, size)
    return table


def _at(table: Table, size: int) -> None:
    mesh = Mesh.of_edges(edges(size), seed=1, bodies=True)

    def add(what: str, act: Callable[[], object], times: int = 1) -> None:
        table.add(size, what, _cpu(act) / times / size)

    add("all start", lambda: mesh.run_for(20.0))
    quiet = _cpu(lambda: mesh.run_for(20.0)) / 20
    table.add(size, "nothing, for a second", quiet / size)
    names = sorted(router.id for router in mesh.living())

    def each(act: Callable[[int], object]) -> None:
        for number in range(EVENTS):
            act(number)
            mesh.run_for(SETTLE_S)

    add("an address is subscribed", lambda: each(lambda n: mesh.subscribe(names[n], f"a{n}")), EVENTS)
    add("and unsubscribed", lambda: each(lambda n: mesh.unsubscribe(names[n], f"a{n}")), EVENTS)
    add("a link is cut", lambda: each(lambda n: mesh.disconnect(mesh.wires[n])), EVENTS)
    add("and is back", lambda: each(lambda n: mesh.reconnect(mesh.wires[n])), EVENTS)
    add("a router dies", lambda: each(lambda n: mesh.kill(names[n + size // 2])), EVENTS)
    add("and starts anew", lambda: each(lambda n: mesh.restart(names[n + size // 2])), EVENTS)


def edges(count: int) -> list[tuple[str, str, int]]:
    """A ring, and chords at random until each router has four neighbors on average."""
    rng = random.Random(count)
    names = [f"r{number:03}" for number in range(count)]
    pairs = {(number, (number + 1) % count) for number in range(count)}
    while len(pairs) < count * NEIGHBORS // 2:
        near, far = rng.sample(range(count), 2)
        if (near, far) not in pairs and (far, near) not in pairs:
            pairs.add((near, far))
    return [(names[near], names[far], 1) for near, far in sorted(pairs)]


def _cpu(act: Callable[[], object]) -> float:
    before = time.process_time()
    act()
    return time.process_time() - before
