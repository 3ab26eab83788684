"""Where one more link helps most: the closed form is what working it all out again gives, for every candidate."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from router.whatif.analysis import link_placement, suggest
from router.whatif.analysis.connectivity import analyse
from router.whatif.analysis.link_placement import Goal, LinkGain
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.mesh_model import Model
from router.whatif.scenarios.run_request import Request
from tests.whatif.runs import made
from tests.whatif.small import address, demand, mesh, site

Edge = tuple[int, int, int]
"""Both ends and the cost; parallel ones may be there."""


@st.composite
def meshes(draw: st.DrawFn, *, most: int = 8) -> tuple[int, list[Edge]]:
    """Any multigraph, connected or not."""
    nodes = draw(st.integers(2, most))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = draw(st.lists(st.tuples(ends, st.integers(1, 5)), max_size=2 * nodes))
    return nodes, [(a, b, cost) for (a, b), cost in edges]


def graph(nodes: int, edges: Sequence[Edge]) -> Any:
    made: Any = nx.MultiGraph()
    made.add_nodes_from(range(nodes))
    made.add_edges_from((a, b, {"cost": cost}) for a, b, cost in edges)
    return made


def distances(nodes: int, edges: Sequence[Edge]) -> link_placement.Floats:
    found = np.full((nodes, nodes), np.inf)
    for root, reached in nx.all_pairs_dijkstra_path_length(graph(nodes, edges), weight="cost"):
        for node, cost in reached.items():
            found[root, node] = cost
    return found


def pairs_lost(nodes: int, edges: Sequence[Edge]) -> int:
    """Ordered pairs of living nodes that lose connectivity, over every single failure, by trying each."""
    whole = graph(nodes, edges)

    def connected(among: Any, without: int | None = None) -> int:
        parts = [len(part) for part in nx.connected_components(among)]
        assert without is None or without not in among
        return sum(size * (size - 1) for size in parts)

    lost = 0
    for edge in list(whole.edges(keys=True)):
        rest = whole.copy()
        rest.remove_edge(*edge)
        lost += connected(whole) - connected(rest)
    for node in range(nodes):
        rest = whole.copy()
        rest.remove_node(node)
        # Pairs with the failed node at an end are lost in any case.
        own = len(nx.node_connected_component(whole, node)) - 1
        lost += connected(whole) - 2 * own - connected(rest, node)
    return lost


def total(distance: link_placement.Floats, weight: link_placement.Floats, among: Any) -> float:
    return float((np.where(among, distance, 0.0) * weight).sum()) / 2


@given(meshes(), st.integers(1, 4))
def test_every_distance_with_one_more_link_is_what_dijkstra_finds(mesh: tuple[int, list[Edge]], cost: int) -> None:
    nodes, edges = mesh
    before = distances(nodes, edges)
    for u in range(nodes):
        for v in range(u + 1, nodes):
            after = link_placement.with_link(before, u, v, cost)
            assert (after == distances(nodes, [*edges, (u, v, cost)])).all()


@given(meshes(), st.integers(1, 4), st.data())
def test_the_gain_of_every_candidate_is_what_working_it_out_again_gives(
    mesh: tuple[int, list[Edge]], cost: int, data: st.DataObject
) -> None:
    nodes, edges = mesh
    before = distances(nodes, edges)
    rates = data.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1), st.integers(0, 9))))
    for weight in (link_placement.even_weight(nodes), link_placement.weight_of(rates, nodes)):
        all_at_once = link_placement.gains(before, weight, cost)
        assert all_at_once is not None
        for u in range(nodes):
            for v in range(u + 1, nodes):
                after = distances(nodes, [*edges, (u, v, cost)])
                had = np.isfinite(before)
                wanted = total(before, weight, had) - total(after, weight, had)
                assert link_placement.shorter_by(before, weight, u, v, cost) == wanted
                assert all_at_once[u, v] == all_at_once[v, u] == wanted


@given(meshes(), st.integers(1, 4))
def test_pairs_saved_by_every_candidate_are_what_trying_every_failure_gives(
    mesh: tuple[int, list[Edge]], cost: int
) -> None:
    nodes, edges = mesh
    connectivity = analyse(nodes, [(a, b) for a, b, _ in edges])
    saved = link_placement.saved_pairs(connectivity)
    before = pairs_lost(nodes, edges)
    for u in range(nodes):
        for v in range(u + 1, nodes):
            if connectivity.component[u] == connectivity.component[v]:
                assert saved[u, v] == saved[v, u] == before - pairs_lost(nodes, [*edges, (u, v, cost)])
            else:
                assert saved[u, v] == 0


class Counted(np.ndarray[Any, np.dtype[Any]]):
    """Numbers that count the results of all arithmetic with them."""

    results = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(each) if isinstance(each, Counted) else each for each in inputs]
        found = getattr(ufunc, method)(*plain, **options)
        Counted.results += np.size(found)
        return np.asarray(found).view(Counted)


def work_of_saved_pairs(nodes: int) -> int:
    """Results of the arithmetic of `saved_pairs` on a tree in which every second node is an articulation point."""
    connectivity = analyse(nodes, [(at, (at - 1) // 2) for at in range(1, nodes)])
    Counted.results = 0
    link_placement.saved_pairs(attrs.evolve(connectivity, component=connectivity.component.view(Counted)))
    return Counted.results


def test_work_for_saved_pairs_grows_as_the_number_of_pairs() -> None:
    assert 0 < work_of_saved_pairs(80) < 5 * work_of_saved_pairs(40)


@given(meshes(), st.integers(1, 4), st.sampled_from(Goal), st.integers(1, 6), st.data())
def test_the_best_links_are_the_best_of_all_candidates(
    mesh: tuple[int, list[Edge]], cost: int, goal: Goal, count: int, data: st.DataObject
) -> None:
    nodes, edges = mesh
    before = distances(nodes, edges)
    rates = data.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1), st.integers(0, 9))))
    weight = link_placement.weight_of(rates, nodes) if goal is Goal.TRAFFIC else link_placement.even_weight(nodes)
    connectivity = analyse(nodes, [(a, b) for a, b, _ in edges])
    effort = np.array(data.draw(st.lists(st.integers(0, 2), min_size=nodes**2, max_size=nodes**2))).reshape(
        nodes, nodes
    )
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=nodes**2, max_size=nodes**2))).reshape(nodes, nodes)
    every = []
    for u in range(nodes):
        for v in range(u + 1, nodes):
            after = link_placement.with_link(before, u, v, cost)
            joined = int(np.isfinite(after).sum() - np.isfinite(before).sum())
            new = np.isfinite(after) & ~np.isfinite(before)
            if joined:
                amount = -total(after, weight, new)
            elif goal is Goal.RESILIENCE:
                amount = float(pairs_lost(nodes, edges) - pairs_lost(nodes, [*edges, (u, v, cost)]))
            else:
                amount = link_placement.shorter_by(before, weight, u, v, cost)
            if allowed[u, v] and (joined or amount > 0):
                every.append(LinkGain(joined_pairs=joined, amount=amount, u=u, v=v))
    every.sort(key=lambda one: (-one.joined_pairs, -one.amount, effort[one.u, one.v], one.u, one.v))
    told: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        # Large distances are judged one candidate after the other.
        patch.setattr(link_placement, "MOST_CELLS", data.draw(st.sampled_from([0, 10**6])))
        found = link_placement.best_links(
            before, weight, cost, connectivity, goal=goal, count=count, allowed=allowed,
            effort=effort.astype(np.float64), progress=lambda done, of: told.append((done, of)),
        )  # fmt: skip
    assert found == every[:count]
    assert all(done <= of for done, of in told)


@given(meshes(most=10))
def test_bridges_and_articulation_points_are_those_of_networkx(mesh: tuple[int, list[Edge]]) -> None:
    nodes, edges = mesh
    found = analyse(nodes, [(a, b) for a, b, _ in edges])
    whole = graph(nodes, edges)
    ends = {frozenset(edges[link][:2]) for link in found.bridges}
    assert ends == {frozenset(edge[:2]) for edge in nx.bridges(whole)}
    assert set(found.cuts) == set(nx.articulation_points(nx.Graph(whole)))
    for link in range(len(edges)):
        rest = graph(nodes, [edge for at, edge in enumerate(edges) if at != link])
        _same_parts(found.labels_without_link(link), rest)
    for node in range(nodes):
        labels = found.labels_without_node(node)
        rest = whole.copy()
        rest.remove_node(node)
        assert labels[node] == -1
        _same_parts(labels, rest)
        own = nx.node_connected_component(whole, node) - {node}
        parts = [len(part) for part in nx.connected_components(rest.subgraph(own))]
        assert found.parts_without_node(node) == sorted(parts, reverse=True)
        assert found.pairs_split_by_node(node) == len(own) ** 2 - sum(size**2 for size in parts)


def _same_parts(labels: Any, rest: Any) -> None:
    for part in nx.connected_components(rest):
        among = {int(labels[node]) for node in part}
        assert len(among) == 1
        assert {node for node in rest if int(labels[node]) in among} == part


def test_a_long_line_needs_no_recursion() -> None:
    nodes = 5000
    found = analyse(nodes, [(at, at + 1) for at in range(nodes - 1)])
    assert len(found.bridges) == nodes - 1
    assert found.pairs_split_by_node(nodes // 2) == 2 * (nodes // 2) * (nodes - 1 - nodes // 2)


def test_a_ring_is_best_cut_in_half() -> None:
    nodes = 12
    edges = [(at, (at + 1) % nodes, 1) for at in range(nodes)]
    before = distances(nodes, edges)
    connectivity = analyse(nodes, [(a, b) for a, b, _ in edges])
    weight = link_placement.even_weight(nodes)
    best = link_placement.best_links(before, weight, 1, connectivity, goal=Goal.DISTANCE, count=6)
    assert [(one.u, one.v) for one in best] == [(at, at + 6) for at in range(6)]
    assert link_placement.mean_distance(before, link_placement.even_weight(nodes)) == pytest.approx(36 / 11)
    assert not link_placement.best_links(
        before, link_placement.even_weight(nodes), 1, connectivity, goal=Goal.RESILIENCE, count=6
    )


# Messages


def test_multicasts_are_no_part_of_what_a_link_saves() -> None:
    # One copy of `all` goes along A-B-C-D, whoever listens there: no path of its own for each is made shorter.
    links, sites = "A-B B-C C-D D-E", [site("all", "C"), site("all", "D"), site("q", "E")]
    addresses = [address("all", Treatment.MULTICAST), address("q")]
    model = mesh(links, addresses=addresses, subscribers=sites, demands=[demand("A", "all", 100), demand("A", "q", 3)])
    network = Network.of(model)
    given = suggest.SuggestInput(model, network, Kernel(network), suggest.SuggestOptions())
    rows = suggest.link_rows(given, Goal.TRAFFIC)
    assert (rows[0]["a"], rows[0]["b"], rows[0]["before"], rows[0]["after"]) == ("A", "E", 12, 3)


def test_links_that_relieve_the_busiest_are_found_where_there_are_multicasts_alone() -> None:
    model = mesh(
        "A-B B-C C-D",
        capacity_msgs=100.0,
        addresses=[address("all", Treatment.MULTICAST)],
        subscribers=[site("all", "C")],
        demands=[demand("A", "all", 40), demand("B", "all", 10)],
    )
    network = Network.of(model)
    whole = suggest.SuggestInput(model, network, Kernel(network), suggest.SuggestOptions())
    assert suggest.link_rows(whole, Goal.TRAFFIC) == []
    best = suggest.utilisation_rows(whole)[0]
    assert (best["before"], best["after"]) == (0.5, 0.4)


# The command


def suggested(model: Model, folder: Path, *words: str, routing: str = "mesh") -> list[dict[str, Any]]:
    """What `suggest` says of a run of a model, without a word on subscribers."""
    made(model, Request(families="routers:1"), folder, engine="local", workers=1, routing=routing)
    write_model(model, folder / "model")
    done = CliRunner().invoke(main, ["whatif", "suggest", str(folder), "--no-subscribers", "--json", *words])
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


@pytest.mark.parametrize(
    ("links", "rates", "as_mesh", "as_ecmp"),
    [
        # A has two ways to E, and what B sends goes along one of them.
        ("A-B B-C C-D D-E E-F F-G G-H A-H", {"AE": 40, "BE": 30}, (0.7, 0.4), (0.5, 0.4)),
        # With A--D there are two ways to C.
        ("A-B B-C C-D", {"AC": 40, "AD": 10}, (0.5, 0.4), (0.5, 0.3)),
    ],
)
def test_utilisation_is_that_of_the_routing_of_the_run(
    links: str,
    rates: dict[str, float],
    as_mesh: tuple[float, float],
    as_ecmp: tuple[float, float],
    tmp_path: Path,
) -> None:
    demands = [demand(src, dst, rate, is_address=False) for (src, dst), rate in rates.items()]
    model = mesh(links, capacity_msgs=100.0, demands=demands)
    for routing, expected in (("mesh", as_mesh), ("ecmp", as_ecmp)):
        best = suggested(model, tmp_path / routing, "--goal", "utilisation", routing=routing)[0]
        assert (best["before"], best["after"]) == expected, routing


def test_it_is_said_when_places_of_subscribers_would_help_and_no_link(tmp_path: Path) -> None:
    # Each link to the middle is full, whatever else there is.
    star = mesh(
        "A-B A-C A-D",
        capacity_msgs=10.0,
        addresses=[address("x")],
        subscribers=[site("x", "A")],
        demands=[demand(src, "x", 10) for src in "BCD"],
    )
    write_model(star, tmp_path / "model")
    words = ["whatif", "suggest", str(tmp_path / "model"), "--goal", "utilisation"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("no new link would help by utilisation\n\nSubscribers to add")
    assert "no new link" not in CliRunner().invoke(main, [*words, "--no-links"]).output
