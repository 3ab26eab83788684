"""Calls of one client beside somebody who asks for all links, of which there are very many, again and again.

The client and its server are on connections of their own in this process, whoever asks in another one, as
`amqp-mesh stat links --watch` does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs

from mesh_config.generators import generate
from mesh_config.models import MeshSettings
from router.bench.measuring import RunResult
from router.bench.measuring import measure as measure_load
from router.cli.management import ManagementClient
from tests.measure.credit.tasks import Parent, Task
from tests.measure.scale.beside import CALLS, TURNS, client_first, p99, path, routers_first
from tests.measure.scale.links import Crowd
from tests.measure.scale.stand import Stand, Table

SIZES = (20_000,)
CALLS_S = 4.0
WARM_S = 0.2
QUERIES_S = 60.0
"""For one answer."""
IDLE_S = 600.0
"""For which nothing may be said on a connection."""


@attrs.frozen
class Asked:
    """Answers that somebody got."""

    queries: int
    links: int
    """In the last one."""
    seconds: float


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """How long calls take."""
    table = Table("calls of one client beside one that asks for all links, so many as the size says, all the time")
    with stand.mesh(_patient(generate("line", 1))) as bench, client_first():
        routers_first(bench)
        crowd = Crowd(bench)
        for size in sizes:
            crowd.grow(size)
            idle, beside, asked = [], [], []
            for _ in range(TURNS):
                idle.append(_calls(bench.url()))
                with Task(ask, bench.url()) as task:
                    assert task.hear() == "asking"
                    beside.append(_calls(bench.url()))
                    task.tell("enough")
                    asked.append(task.hear())
            assert min(each.links for each in asked) >= size
            for name, runs in (("idle", idle), ("beside", beside)):
                table.add(size, f"{name}: calls", _middle([run.per_s for run in runs]), "/s")
                table.add(size, f"{name}: p50", _middle([run.p50_us or 0.0 for run in runs]) / 1e6)
                table.add(size, f"{name}: p99", _middle(list(map(p99, runs))) / 1e6)
                table.add(size, f"{name}: longest of the turns' p99", max(map(p99, runs)) / 1e6)
            table.add(size, "an answer with all links took", _middle([it.seconds / it.queries for it in asked]), "s")
    return table


def _patient(mesh: MeshSettings) -> MeshSettings:
    """With listeners that wait for the links' connections, which say nothing while calls are measured."""
    routers = {
        key: attrs.evolve(
            router, listeners=tuple(attrs.evolve(each, idle_timeout_s=IDLE_S) for each in router.listeners)
        )
        for key, router in mesh.routers.items()
    }
    return attrs.evolve(mesh, routers=routers)


def _calls(url: str) -> RunResult:
    return measure_load(CALLS, path(url), seconds=CALLS_S, warm_s=WARM_S)


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def ask(parent: Parent, url: str) -> Asked:
    """In a process: ask until it is told that it is enough. Returns: what it got."""
    queries = links = 0
    with ManagementClient(url, timeout_s=QUERIES_S) as client:
        parent.tell("asking")
        began = time.monotonic()
        while not queries or not parent.has_said:
            links = len(client.query("router.link"))
            queries += 1
        return Asked(queries=queries, links=links, seconds=time.monotonic() - began)
