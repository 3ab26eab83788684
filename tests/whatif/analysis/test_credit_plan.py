"""The credit that paths need: the law, who shares whose credit, and what simulated credit machines really reach."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.cli import main
from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit
from router.whatif.analysis.credit_plan import MOST_PAIRS, ClientCreditHabits, credit_rows, credit_table
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import CREDIT_UNIT, Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import read_table
from tests.whatif.small import address, demand, mesh, models, site

Row = Mapping[str, Any]


def plan(model: Model, terms: ClientCreditHabits | None = None) -> list[Row]:
    network = Network.of(model)
    return list(credit_rows(RoutingState(network, Kernel(network)), model, terms or ClientCreditHabits()))


def one_path(rate: float, way_ms: float, **of_site: Any) -> Model:
    return mesh(
        f"A-B~{way_ms}",
        addresses=[address("q")],
        subscribers=[site("q", "B", **of_site)],
        demands=[demand("A", "q", rate)],
    )


# The law


@pytest.mark.parametrize(
    ("rate", "round_trip_ms", "needed"),
    # As in docs/explanation/credit.md.
    [(1000, 1, 1), (10_000, 1, 10), (100_000, 0.2, 20), (1000, 5, 5), (10_000, 20, 200), (100_000, 100, 10_000)],
)
def test_needed_is_the_rate_times_the_round_trip(rate: float, round_trip_ms: float, needed: int) -> None:
    (row,) = plan(one_path(rate, round_trip_ms / 2, credit=needed))
    assert row["rtt_ms"] == round_trip_ms
    assert (row["needed"], row["is_enough"]) == (needed, True)
    assert row["limit_msgs_per_s"] == pytest.approx(needed / (round_trip_ms / 1000))


@pytest.mark.parametrize(
    ("batch", "needed"), [(1, 10), (2, 11), (50, 59), (None, 18)], ids=["each", "two", "fifty", "half"]
)
def test_a_subscriber_that_grants_in_batches_needs_more(batch: int | None, needed: int) -> None:
    # 1,000/s for 4 ms there and back and 6 ms of service are 10 at any time.
    model = one_path(1000, 2, credit=needed, service_ms=6)
    (row,) = plan(model, ClientCreditHabits(batch=batch))
    assert (row["rtt_ms"], row["service_ms"], row["needed"], row["is_enough"]) == (4, 6, needed, True)
    assert row["limit_msgs_per_s"] == pytest.approx(1000)
    short = one_path(1000, 2, credit=needed - 1, service_ms=6)
    (row,) = plan(short, ClientCreditHabits(batch=batch))
    assert row["is_enough"] is False


@given(st.integers(0, 10**9), st.none() | st.integers(1, 200))
def test_what_is_needed_can_be_used_and_one_less_cannot(work: int, batch: int | None) -> None:
    terms = ClientCreditHabits(batch=batch)
    needed = terms.needed(work * 10**6)
    assert terms.usable(needed) * CREDIT_UNIT >= work * 10**6
    least = max(1, -(-work * 10**6 // CREDIT_UNIT))
    assert terms.usable(needed - 1) < least


def test_time_between_clients_and_their_routers_counts_too() -> None:
    (row,) = plan(one_path(1000, 2), ClientCreditHabits(client_us=500))
    assert (row["rtt_ms"], row["needed"]) == (6, 6)


def test_rounding_is_exact() -> None:
    # One message in a million seconds more than ten at a time.
    (row,) = plan(one_path(1000.000001, 5))
    assert row["needed"] == 11
    (row,) = plan(one_path(1000, 5))
    assert row["needed"] == 10


# Who shares


def test_paths_to_one_router_share_its_credit() -> None:
    model = mesh(
        "A-C~5 B-C~5",
        addresses=[address("q")],
        subscribers=[site("q", "C", credit=15)],
        demands=[demand("A", "q", 1000), demand("B", "q", 1000)],
    )
    rows = plan(model)
    assert [(row["src"], row["needed"], row["shared_needed"]) for row in rows] == [("A", 10, 20), ("B", 10, 20)]
    assert not any(row["is_enough"] for row in rows)
    assert [row["limit_msgs_per_s"] for row in rows] == [pytest.approx(750), pytest.approx(750)]


def test_a_multicast_needs_credit_at_every_router_with_subscribers() -> None:
    model = mesh(
        "A-B~5 B-C~5",
        addresses=[address("all", Treatment.MULTICAST)],
        subscribers=[site("all", router, credit=15) for router in "ABC"],
        demands=[demand("A", "all", 1000)],
    )
    rows = plan(model)
    assert [(row["dst"], row["needed"], row["is_enough"]) for row in rows] == [
        ("A", 1, True), ("B", 10, True), ("C", 20, False),
    ]  # fmt: skip


def test_balanced_spills_to_the_next_router_and_the_rest_is_a_need_at_the_nearest() -> None:
    model = mesh(
        "A-B~5 B-C~5",
        addresses=[address("q", Treatment.BALANCED)],
        subscribers=[site("q", "B", credit=10), site("q", "C", credit=10)],
        demands=[demand("A", "q", 1400)],
    )
    rows = plan(model)
    assert [(row["dst"], row["msgs_per_s"], row["is_enough"]) for row in rows] == [("B", 1000, True), ("C", 400, True)]
    more = plan(mesh_like(model, 2000))
    assert [(row["dst"], row["msgs_per_s"], row["needed"], row["is_enough"]) for row in more] == [
        ("B", 1500, 15, False), ("C", 500, 10, True),
    ]  # fmt: skip


def mesh_like(model: Model, rate: float) -> Model:
    return mesh(
        "A-B~5 B-C~5",
        addresses=model.addresses,
        subscribers=model.subscribers,
        demands=[demand("A", "q", rate)],
    )


def test_what_is_not_known_is_null() -> None:
    model = mesh(
        "A-B B-C~1",
        addresses=[address("q"), address("r")],
        subscribers=[site("q", "A", credit=5), site("r", "C")],
        demands=[demand("C", "q", 10), demand("B", "r", 10)],
    )
    q, r = plan(model)
    assert (q["rtt_ms"], q["needed"], q["configured"], q["limit_msgs_per_s"], q["is_enough"]) == (
        None, None, 5, None, None,
    )  # fmt: skip
    assert (r["rtt_ms"], r["needed"], r["configured"], r["limit_msgs_per_s"], r["is_enough"]) == (
        2, 1, None, None, None,
    )  # fmt: skip


def test_demands_for_routers_have_rows_without_credit() -> None:
    model = mesh("A-B~5 C", demands=[demand("A", "B", 300, is_address=False), demand("A", "C", 3, is_address=False)])
    (row,) = plan(model)
    assert (row["address"], row["src"], row["dst"], row["needed"], row["configured"]) == ("B", "A", "B", 3, None)


# Against the rest of the program


@given(models(treatments=[Treatment.CLOSEST, Treatment.BALANCED]), st.data())
def test_flows_load_links_as_the_kernel_does(model: Model, data: st.DataObject) -> None:
    network = Network.of(model)
    kernel = Kernel(network)
    links = data.draw(st.sets(st.integers(0, len(network.links) - 1), max_size=2)) if network.links else set()
    routers = data.draw(st.sets(st.integers(0, len(network.routers) - 1), max_size=1))
    kernel.fail(sorted(links), sorted(routers))
    routes = RoutingState(network, kernel, links, routers)
    loads = np.zeros(2 * len(network.links), dtype=np.int64)
    lost = 0
    sent = [(flow.src, flow.dst, flow.rate) for flow in routes.flows()]
    pairs = zip(network.demand_src, network.demand_dst, network.demand_rate, strict=True)
    sent += [(int(src), int(dst) if routes.path(src, dst) else None, int(rate)) for src, dst, rate in pairs]
    for src, dst, rate in sent:
        if dst is None:
            lost += rate
            continue
        path = routes.path(src, dst)
        for link, (one, other) in zip(routes.links(path), pairwise(path), strict=True):
            loads[2 * link + (one > other)] += rate
    assert (kernel.loads()[0] == loads).all()
    assert kernel.lost_rate == lost


@given(models())
def test_all_delays_at_once_are_those_one_by_one(model: Model) -> None:
    network = Network.of(model)
    routes = RoutingState(network, Kernel(network))
    delay, known, is_there = routes.delay_matrix()
    for src in range(len(network.routers)):
        for dst in range(len(network.routers)):
            assert is_there[src, dst] == bool(routes.path(src, dst))
            if routes.path(src, dst):
                assert (delay[src, dst], known[src, dst]) == routes.delay_us(src, dst)
            else:
                assert (delay[src, dst], known[src, dst]) == (0, False)


@given(models(), st.booleans())
def test_where_traffic_is_split_the_round_trip_is_that_of_the_slowest_path(model: Model, is_directed: bool) -> None:
    if is_directed:
        links = [attrs.evolve(link, cost_back=4 - link.cost) for link in model.links]
        model = attrs.evolve(model, links=links)
    network = Network.of(model)
    routes = RoutingState(network, Kernel(network, is_split=True))
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(network.routers)))
    for place, link in enumerate(model.links):
        a, b = int(network.link_a[place]), int(network.link_b[place])
        for (src, dst), cost in zip(((a, b), (b, a)), link.costs, strict=True):
            graph.add_edge(src, dst, cost=cost, delay=link.delay_ms)
    delay, is_known, is_there = routes.longest_delay_matrix()
    for src in graph:
        for dst in graph:
            assert is_there[src, dst] == nx.has_path(graph, src, dst)
            if not is_there[src, dst]:
                continue
            slowest, all_known = 0, True
            for path in nx.all_shortest_paths(graph, src, dst, weight="cost"):
                steps = []
                for one, other in pairwise(path):
                    least = min(edge["cost"] for edge in graph[one][other].values())
                    steps.append([edge["delay"] for edge in graph[one][other].values() if edge["cost"] == least])
                slowest = max(slowest, sum(max(round(1000 * (delay or 0)) for delay in step) for step in steps))
                all_known = all_known and all(delay is not None for step in steps for delay in step)
            assert (delay[src, dst], is_known[src, dst]) == (slowest, all_known)
            assert routes.longest_delay_us(src, dst) == (slowest, all_known)


def test_credit_of_a_run_that_splits_is_told_as_it_was_run(tmp_path: Path) -> None:
    # Two ways of the same cost, one of 2 ms and one of 14.
    model = mesh(
        "A-B~1 B-D~1 A-C~7 C-D~7",
        addresses=[address("q")],
        subscribers=[site("q", "D", credit=10)],
        demands=[demand("A", "q", 1000)],
    )
    write_model(model, tmp_path / "model")
    for routing, needed in (("mesh", 4), ("ecmp", 28)):
        out = tmp_path / routing
        words = ["whatif", "run", str(tmp_path / "model"), "-o", str(out), "--routing", routing]
        assert CliRunner().invoke(main, [*words, "--no-report", "--engine", "local"]).exit_code == 0
        assert [row["needed"] for row in read_table(out, "credit_plan").to_pylist()] == [needed]
        found = CliRunner().invoke(main, ["whatif", "credit", str(out), "--json"])
        assert [row["needed"] for row in json.loads(found.stdout)] == [needed]


@given(models())
def test_the_table_of_any_mesh_is_valid_and_keeps_the_law(model: Model) -> None:
    network = Network.of(model)
    rows = credit_table(network, Kernel(network), model).to_pylist()
    for row in rows:
        assert row["msgs_per_s"] > 0
        if row["needed"] is not None:
            busy_s = (row["rtt_ms"] + (row["service_ms"] or 0)) / 1000
            assert row["needed"] >= max(1, row["msgs_per_s"] * busy_s * (1 - 1e-9))
            if row["limit_msgs_per_s"] is not None:
                assert row["limit_msgs_per_s"] * busy_s <= row["configured"] * (1 + 1e-9)
                assert row["is_enough"] is (row["configured"] >= row["shared_needed"])


def test_of_many_demands_for_routers_those_that_need_the_most_are_listed() -> None:
    names = [f"r{at:03}" for at in range(120)]
    ring = " ".join(f"{one}-{other}~1" for one, other in pairwise([*names, names[0]]))
    rates = [(src, dst, 1.0 + at % 97) for src in names for at, dst in enumerate(names) if src != dst]
    model = mesh(ring, demands=[demand(src, dst, rate, is_address=False) for src, dst, rate in rates])
    rows = plan(model)
    assert len(rows) == MOST_PAIRS < len(rates)
    listed = {(row["src"], row["dst"]) for row in rows}
    least = min(row["msgs_per_s"] * row["rtt_ms"] for row in rows)
    network = Network.of(model)
    routes = RoutingState(network, Kernel(network))
    place = {router: at for at, router in enumerate(network.routers)}
    for src, dst, rate in rates[::7]:
        if (src, dst) not in listed:
            assert 2 * routes.delay_us(place[src], place[dst])[0] / 1000 * rate <= least + 1e-9


@pytest.mark.parametrize(
    ("hops", "credit", "top_up"), [(1, 10, GrantHabit.EACH), (2, 40, GrantHabit.EACH), (2, 40, GrantHabit.HALF)]
)
def test_simulated_credit_machines_reach_what_the_plan_allows_and_no_more(
    hops: int, credit: int, top_up: GrantHabit
) -> None:
    names = "ABC"[: hops + 1]
    real = AnycastMesh(list(pairwise(names)), delay_s=0.002, jitter_s=0, client_delay_s=0.0005)
    subscriber = real.add_subscriber(names[-1], credit=credit, top_up=top_up)
    publisher = real.add_publisher("A")
    publisher.offer(10**6)
    real.network.run_until(1.0)
    before = len(subscriber.received)
    real.network.run_until(3.0)
    reached = (len(subscriber.received) - before) / 2
    model = mesh(
        " ".join(f"{one}-{other}~2" for one, other in pairwise(names)),
        addresses=[address("q")],
        subscribers=[site("q", names[-1], credit=credit)],
        demands=[demand("A", "q", reached)],
    )
    (row,) = plan(model, ClientCreditHabits(batch=1 if top_up is GrantHabit.EACH else None, client_us=500))
    # Batches are reckoned with as they are at their worst, so that more may pass.
    assert row["limit_msgs_per_s"] * 0.85 <= reached <= credit / (row["rtt_ms"] / 1000) * 1.01
    # Messages come in bursts, of which the time measured has one more or less.
    assert top_up is GrantHabit.HALF or row["needed"] <= credit + 1
