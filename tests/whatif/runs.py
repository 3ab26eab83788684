"""Runs for tests: a mesh that has everything, and what two runs have in common."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from mesh_config.models import Treatment
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, Group, GroupKind, LinkEdge, RouterNode, SubscriberSite, link_ids
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run import Options, RunSummary, run
from router.whatif.pipeline.table_files import are_equal, read_table
from router.whatif.pipeline.table_layouts import OF_LINKS, OF_SCENARIOS, RUN, SCENARIO_LOAD, SUMMARIES
from router.whatif.scenarios.run_request import Request

TABLES = tuple(layout.name for layout in (*OF_SCENARIOS, *OF_LINKS, *SUMMARIES, RUN) if layout != SCENARIO_LOAD)
"""Those that a run always writes by itself."""


def everything(routers: int = 12, links: int = 20, seed: int = 1) -> Model:
    """Parallel links, a leaf, capacities, delays, rates, groups of each kind, addresses of each treatment."""
    rng = random.Random(seed)
    ids = [f"r{number:02}" for number in range(routers)]
    ends = [(ids[rng.randrange(number)], ids[number]) for number in range(1, routers)]
    while len(ends) < links:
        one, other = rng.sample(ids, 2)
        ends.append((min(one, other), max(one, other)))
    made = [
        LinkEdge(
            id=name,
            a=a,
            b=b,
            cost=rng.randint(1, 4),
            delay_ms=rng.randint(1, 30) / 4,
            capacity_msgs=rng.choice([None, 500.0, 1000.0]),
            capacity_bytes=rng.choice([None, 1e6]),
            failures_per_year=rng.choice([1.0, 4.0]),
            repair_hours=6.0,
        )
        for name, (a, b) in zip(link_ids(ends), ends, strict=True)
    ]
    names = {Treatment.CLOSEST: "rpc", Treatment.BALANCED: "work", Treatment.MULTICAST: "news"}
    sites = [
        SubscriberSite(address=text, router=router, credit=rng.choice([None, 10]), service_ms=2.0)
        for text in names.values()
        for router in rng.sample(ids, 3)
    ]
    demands = [
        Demand(src=src, dst=dst, msgs_per_s=rng.randint(1, 999) / 8, msg_bytes=rng.randint(50, 4000))
        for src in ids
        for dst in rng.sample(ids, 4)
        if src != dst
    ]
    demands += [
        Demand(src=src, address=text, msgs_per_s=rng.randint(1, 9999) / 16, msg_bytes=700.0)
        for text in names.values()
        for src in rng.sample(ids, 4)
    ]
    groups = [
        Group(name="duct", kind=GroupKind.SRLG, links=tuple(sorted(link.id for link in made[:4])), failures_per_year=1),
        Group(name="mixed", kind=GroupKind.SRLG, links=(made[5].id,), routers=(ids[2], ids[3])),
        Group(name="window", kind=GroupKind.MAINTENANCE, links=(made[7].id,), routers=(ids[4],)),
    ]
    model = Model(
        name="everything",
        routers=[
            RouterNode(
                id=name, site=f"site{number % 4}", failures_per_year=0.5 if number % 3 else None, repair_hours=12.0
            )
            for number, name in enumerate(ids)
        ],
        links=made,
        addresses=[AddressNode(text=text, treatment=treatment) for treatment, text in names.items()],
        subscribers=sites,
        demands=demands,
        groups=groups,
    )
    model.check()
    return model


def losing() -> Model:
    """A mesh that loses messages while nothing fails: of an isolated router, and to what nobody subscribes to."""
    ids = ("A", "B", "C", "D")
    links = [LinkEdge(id=f"{a}--{b}", a=a, b=b, failures_per_year=10, repair_hours=87.6) for a, b in ("AB", "BD")]
    model = Model(
        routers=[RouterNode(id=name, failures_per_year=1, repair_hours=87.6) for name in ids],
        links=links,
        addresses=[
            AddressNode(text="island", treatment=Treatment.CLOSEST),
            AddressNode(text="nobody", treatment=Treatment.MULTICAST),
            AddressNode(text="served", treatment=Treatment.MULTICAST),
        ],
        subscribers=[SubscriberSite(address=text, router=at) for text, at in (("island", "B"), ("served", "D"))],
        demands=[
            Demand(src=src, address=text, msgs_per_s=rate, msg_bytes=10.0)
            for src, text, rate in (("A", "island", 100), ("C", "island", 50), ("A", "nobody", 34), ("A", "served", 7))
        ],
        groups=[Group(name="window", kind=GroupKind.MAINTENANCE, links=("A--B",))],
    )
    model.check()
    return model


def held_down() -> Model:
    """A triangle whose address loses messages in maintenance alone, which takes both links of its publisher."""
    links = [LinkEdge(id=f"{a}--{b}", a=a, b=b, failures_per_year=10, repair_hours=87.6) for a, b in ("AB", "AC", "BC")]
    model = Model(
        routers=[RouterNode(id=name) for name in "ABC"],
        links=links,
        addresses=[AddressNode(text="q", treatment=Treatment.CLOSEST)],
        subscribers=[SubscriberSite(address="q", router="B")],
        demands=[Demand(src="A", address="q", msgs_per_s=5, msg_bytes=10.0)],
        groups=[Group(name="window", kind=GroupKind.MAINTENANCE, links=("A--B", "A--C"))],
    )
    model.check()
    return model


def relieved() -> Model:
    """A mesh that starves two publishers of `q` while nothing fails, and loses nothing when r1--r2 is down.

    `idle` loses no messages, since its publisher sends none, but nobody subscribes to it.
    """
    ids = ("r0", "r1", "r2", "r3")
    ends = [("r0", "r1"), ("r0", "r2"), ("r0", "r3"), ("r1", "r2"), ("r1", "r2")]
    numbers = ((4, 8), (3, 17), (1, 48), (2, 46), (3, 5))
    links = [
        LinkEdge(id=name, a=a, b=b, cost=cost, delay_ms=delay, failures_per_year=10, repair_hours=87.6)
        for name, (a, b), (cost, delay) in zip(link_ids(ends), ends, numbers, strict=True)
    ]
    model = Model(
        routers=[RouterNode(id=name) for name in ids],
        links=links,
        addresses=[
            AddressNode(text="idle", treatment=Treatment.CLOSEST),
            AddressNode(text="q", treatment=Treatment.BALANCED),
        ],
        subscribers=[
            SubscriberSite(address="q", router="r1", credit=5, service_ms=3.0),
            SubscriberSite(address="q", router="r3", credit=3, service_ms=14.0),
        ],
        demands=[
            Demand(src="r0", address="q", msgs_per_s=153.0, msg_bytes=1.0),
            Demand(src="r2", address="q", msgs_per_s=62.0, msg_bytes=1.0),
            Demand(src="r1", address="idle", msgs_per_s=0.0, msg_bytes=1.0),
        ],
    )
    model.check()
    return model


def made(model: Model, request: Request, out: Path, **options: Any) -> RunSummary:
    """A run without a report, by the local engine unless another one is named: there may be a session of Spark."""
    return run(model, request, out, Options(**{"engine": "local", **options}))


def assert_equal(one: Path, other: Path) -> None:
    """The same rows in each table, bit for bit."""
    loads = [SCENARIO_LOAD.name] if any((folder / SCENARIO_LOAD.name).exists() for folder in (one, other)) else []
    for name in (*TABLES, *loads):
        left, right = read_table(one, name), read_table(other, name)
        assert left.num_rows == right.num_rows, name
        assert are_equal(left, right, name), name


def nothing_beside(out: Path) -> bool:
    """Whether the folder of a run is all that is there."""
    return [path.name for path in out.parent.iterdir() if out.name in path.name] == [out.name]
