"""Demands by the links that carry them, and those that reach nobody: they add up to what the kernel counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import ItemsView
from itertools import pairwise
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.whatif.analysis.explain import BaseAndScenario
from router.whatif.analysis.link_demands import (
    LINK_DEMAND,
    LOST_DEMAND,
    NO_CREDIT,
    NO_PATH,
    NO_SUBSCRIBER,
    ROUTER_DOWN,
    link_demands,
    lost_demands,
)
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_layouts import TableError
from tests.whatif.small import address, demand, mesh, models, site


def square(**parts: Any) -> Model:
    """A - B - C - D - A, and E at C."""
    return mesh(
        "A-B~1 B-C~1 C-D~2 D-A~2 C-E~1",
        addresses=[address("q", Treatment.BALANCED), address("news", Treatment.MULTICAST)],
        subscribers=[site("q", "E", credit=1, service_ms=100.0), site("news", "B"), site("news", "D")],
        demands=[
            demand("A", "C", 30, is_address=False),
            demand("A", "q", 50),
            demand("C", "news", 20),
            demand("E", "A", 10, is_address=False),
        ],
        **parts,
    )


def routes_of(model: Model, *down: str) -> Any:
    return BaseAndScenario.of_model(model, down=down).now


def micro(value: float) -> int:
    return round(value * MICRO)


def test_each_demand_is_listed_at_each_link_that_carries_it() -> None:
    table = link_demands(routes_of(square()))
    assert table.schema.equals(LINK_DEMAND.schema)
    taken = pytest.approx(1000 / 106, abs=1e-5)  # by the law of credit: 6 ms there and back, 100 ms at the subscriber
    assert [tuple(row.values()) for row in table.to_pylist() if row["demand_src"] == "A"] == [
        ("A--B", "A", "B", "A", "C", None, 30.0),
        ("A--B", "A", "B", "A", "E", "q", taken),
        ("B--C", "B", "C", "A", "C", None, 30.0),
        ("B--C", "B", "C", "A", "E", "q", taken),
        ("C--E", "C", "E", "A", "E", "q", taken),
    ]


def test_a_multicast_has_one_copy_on_a_link() -> None:
    table = link_demands(routes_of(square(), "B--C")).to_pylist()
    news = [
        (row["link"], row["src"], row["demand_dst"], row["msgs_per_s"]) for row in table if row["address"] == "news"
    ]
    assert news == [("A--B", "A", None, 20.0), ("A--D", "D", None, 20.0), ("C--D", "C", None, 20.0)]


def test_each_lost_demand_has_its_cause() -> None:
    table = lost_demands(routes_of(square()))
    assert [(row["address"], row["cause"]) for row in table.to_pylist()] == [("q", NO_CREDIT)]
    table = lost_demands(routes_of(square(), "E"))
    assert table.schema.equals(LOST_DEMAND.schema)
    causes = {(row["demand_src"], row["demand_dst"], row["address"]): row["cause"] for row in table.to_pylist()}
    assert causes == {("A", None, "q"): NO_SUBSCRIBER, ("E", "A", None): ROUTER_DOWN}
    table = lost_demands(routes_of(square(), "C--E", "D"))
    causes = {(row["demand_src"], row["demand_dst"], row["address"]): row["cause"] for row in table.to_pylist()}
    assert causes == {
        ("A", None, "q"): NO_PATH, ("C", "D", "news"): ROUTER_DOWN, ("E", "A", None): NO_PATH,
    }  # fmt: skip


@given(models(), st.data())
def test_demands_of_any_scenario_add_up_to_what_the_kernel_counts(model: Model, data: st.DataObject) -> None:
    names = [router.id for router in model.routers] + [link.id for link in model.links]
    subject = BaseAndScenario.of_model(model, down=data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3)))
    kernel, network = subject.now.kernel, subject.network
    table = link_demands(subject.now)
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for row in table.to_pylist():
        sums[row["link"], row["src"]] += micro(row["msgs_per_s"])
    loads = kernel.loads()[0].tolist()
    names_of = [network.directed_link(number)[:2] for number in range(len(loads))]
    assert sums == {name: load for name, load in zip(names_of, loads, strict=True) if load}
    for place, link in enumerate(network.links):
        assert link_demands(subject.now, place).equals(table.filter(pc.field("link") == link))
    lost = lost_demands(subject.now).to_pylist()
    assert sum(micro(row["msgs_per_s"]) for row in lost) == kernel.lost_rate
    single = {each.text for each in model.addresses if each.treatment is not Treatment.MULTICAST}
    starved = {
        (row["demand_src"], row["address"]) for row in lost if row["address"] in single and row["cause"] != ROUTER_DOWN
    }
    copies = Counter((row["demand_src"], row["address"]) for row in lost if row["address"] not in {None, *single})
    sites = Counter(site.address for site in model.subscribers)
    starved |= {key for key, missed in copies.items() if missed == max(1, sites[key[1]])}
    living = {key for key in starved if key[0] not in subject.routers}
    # Beside these the kernel counts demands that send nothing.
    silent = {(it.src, it.address) for it in map(model.demands.__getitem__, range(len(model.demands))) if it.address}
    assert len(living) <= kernel.starved_publishers <= len(living) + len(silent - starved)


class CountingLinks(dict[tuple[int, int], int]):
    """Links by their ends that count how often all of them are looked through."""

    looks = 0

    def items(self) -> ItemsView[tuple[int, int], int]:
        self.looks += 1
        return super().items()


@pytest.mark.parametrize("routers", [3, 20])
def test_links_are_not_looked_through_for_each_copy_of_a_multicast(routers: int) -> None:
    names = [f"r{at:02}" for at in range(routers)]
    model = mesh(
        " ".join(f"{one}-{other}" for one, other in pairwise(names)),
        addresses=[address("news", Treatment.MULTICAST)],
        subscribers=[site("news", name) for name in names],
        demands=[demand(name, "news", 1) for name in names],
    )
    routes = routes_of(model)
    links = routes.used_links = CountingLinks(routes.used_links)
    assert len(link_demands(routes)) == routers * (routers - 1)
    assert links.looks == 2


def test_split_demands_have_no_links() -> None:
    with pytest.raises(TableError, match="split over equal paths"):
        link_demands(BaseAndScenario(square(), is_split=True).now)
