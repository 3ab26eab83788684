"""What must hold of any mesh, whatever the numbers: sums, conservation, other names, other ways to the same result."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
import sys
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router import speed
from router.whatif.kernel import network_arrays
from router.whatif.kernel.incremental_order_statistics import IncrementalOrderStatistics
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.kernel.worst_utilisation import WorstUtilisations
from router.whatif.model.demands import Demand
from router.whatif.model.mesh_model import Model, without
from tests.whatif.meshes import (
    COSTS,
    Failure,
    everybody,
    everything,
    meshes,
    meshes_and_failures,
    model_of,
    random_failure,
    random_model,
)


def pairs_only(model: Model) -> Model:
    """The model with its demands between routers alone."""
    return attrs.evolve(model, demands=[demand for demand in model.demands if demand.dst is not None])


def failed(kernel: Kernel, model: Model, failure: Failure) -> None:
    """Have that fail; links and routers go by their ids."""
    links = [kernel.network.links.index(link) for link in failure[0]]
    kernel.fail(links, [kernel.network.routers.index(router) for router in failure[1]])


def states(model: Model, failures: list[Failure], *, is_split: bool = False) -> Iterator[Kernel]:
    """The base state and one with each failure."""
    kernel = Kernel(Network.of(model), is_split=is_split)
    yield kernel
    for failure in failures:
        failed(kernel, model, failure)
        yield kernel
        kernel.restore()


@given(meshes_and_failures(), st.booleans())
def test_the_loads_of_all_links_are_the_demands_times_their_hops(
    mesh: tuple[Model, list[Failure]], is_split: bool
) -> None:
    model, failures = pairs_only(mesh[0]), mesh[1]
    if is_split:  # all costs equal, so that all shortest paths of a pair have as many hops
        model = attrs.evolve(model, links=[attrs.evolve(link, cost=1) for link in model.links])
    for kernel in states(model, failures, is_split=is_split):
        network = kernel.network
        for kind, demands in enumerate((network.demand_rate, network.demand_bytes)):
            hops = [
                len(kernel.path(int(src), int(dst))[1:])
                for src, dst in zip(network.demand_src, network.demand_dst, strict=True)
            ]
            assert kernel.loads()[kind].sum() == (demands * np.array(hops, dtype=np.int64)).sum()


@given(meshes_and_failures(), st.booleans())
def test_what_enters_a_router_leaves_it(mesh: tuple[Model, list[Failure]], is_split: bool) -> None:
    model, failures = pairs_only(mesh[0]), mesh[1]
    for kernel in states(model, failures, is_split=is_split):
        network = kernel.network
        surplus = np.zeros(len(network.routers), dtype=np.int64)
        for src, dst, rate in zip(network.demand_src, network.demand_dst, network.demand_rate, strict=True):
            if kernel.distance(int(src), int(dst)) >= 0:
                surplus[src] += rate
                surplus[dst] -= rate
        for number, rate in enumerate(kernel.loads()[0]):
            _, src, dst = network.directed_link(number)
            surplus[network.routers.index(src)] -= rate
            surplus[network.routers.index(dst)] += rate
        assert not surplus.any()


@given(meshes_and_failures(), st.booleans())
def test_what_is_neither_lost_nor_starved_arrives(mesh: tuple[Model, list[Failure]], is_split: bool) -> None:
    model, failures = pairs_only(mesh[0]), mesh[1]
    for kernel in states(model, failures, is_split=is_split):
        network = kernel.network
        ends = zip(network.demand_src.tolist(), network.demand_dst.tolist(), network.demand_rate.tolist(), strict=True)
        assert kernel.lost_rate == sum(rate for src, dst, rate in ends if kernel.distance(src, dst) < 0)


@given(meshes_and_failures())
def test_distances_are_the_same_in_both_directions_and_keep_the_triangle(mesh: tuple[Model, list[Failure]]) -> None:
    for kernel in states(*mesh):
        found = kernel.distances().astype(np.float64)
        found[found < 0] = np.inf
        assert (found == found.T).all()
        assert (found[:, :, np.newaxis] + found[np.newaxis] >= found[:, np.newaxis]).all()


@given(meshes_and_failures())
def test_every_router_on_a_path_agrees_about_the_rest_of_it(mesh: tuple[Model, list[Failure]]) -> None:
    # So hop by hop a message takes the path that the tree of its first router shows.
    kernel = next(states(mesh[0], []))
    size = len(kernel.network.routers)
    for src in range(size):
        tree = kernel.tree(src)
        for dst in range(size):
            path = kernel.path(src, dst)
            assert all(tree[after] == before for before, after in pairwise(path))
            assert (tree[dst] >= 0) == (len(path) > 1)


@given(meshes_and_failures(), st.booleans())
def test_a_failure_leaves_the_mesh_that_was_made_without_it(mesh: tuple[Model, list[Failure]], is_split: bool) -> None:
    model, failures = mesh
    for failure, kernel in zip([([], []), *failures], states(model, failures, is_split=is_split), strict=True):
        if len(failure[1]) == len(model.routers):
            continue
        rest = without(model, links=failure[0], routers=failure[1])
        fresh = Kernel(Network.of(rest), is_split=is_split)
        old, new = kernel.network, fresh.network
        for kind in (0, 1):
            found, expected = kernel.loads()[kind], fresh.loads()[kind]
            for link in old.links:
                for direction in (0, 1):
                    load = found[2 * old.links.index(link) + direction]
                    assert load == (expected[2 * new.links.index(link) + direction] if link in new.links else 0)
        kept = [old.routers.index(router) for router in new.routers]
        assert (kernel.distances()[np.ix_(kept, kept)] == fresh.distances()).all()
        for src, one in enumerate(kept):
            for dst, other in enumerate(kept):
                hop, expected_hop = kernel.next_hop(one, other), fresh.next_hop(src, dst)
                assert (None if hop < 0 else old.routers[hop]) == (
                    None if expected_hop < 0 else new.routers[expected_hop]
                )
        assert (kernel.components, kernel.delay_p95_us) == (fresh.components, fresh.delay_p95_us) or (
            kernel.network.has_delays and not new.has_delays
        )


@given(meshes_and_failures())
def test_a_failure_does_the_same_whatever_failed_before(mesh: tuple[Model, list[Failure]]) -> None:
    model, failures = mesh
    after_others = [everything(kernel) for kernel in states(model, failures)]
    alone = [everything(next(states(model, [])))]
    for failure in failures:
        _, kernel = states(model, [failure])
        failed(kernel, model, failure)
        alone.append(everything(kernel))
    assert after_others == alone


@given(meshes(), st.randoms(use_true_random=False))
def test_other_names_in_the_same_order_change_nothing(model: Model, rng: random.Random) -> None:
    failures = [random_failure(rng, model) for _ in range(3)]
    found = [everything(kernel) for kernel in states(model, failures)]
    again = []
    kernel = Kernel(Network.of(renamed(model, {router.id: f"x{router.id}" for router in model.routers})))
    again.append(everything(kernel))
    for links, routers in failures:
        failed(kernel, model, (links, [f"x{router}" for router in routers]))
        again.append(everything(kernel))
        kernel.restore()
    assert found == again


@given(meshes(), st.randoms(use_true_random=False))
def test_other_names_change_no_load_where_every_path_is_the_only_shortest(model: Model, rng: random.Random) -> None:
    # Powers of two: no two sets of links cost the same.
    costs = [1 << place for place in range(14)]
    rng.shuffle(costs)
    links = [attrs.evolve(link, cost=cost) for link, cost in zip(model.links, costs, strict=False)]
    model = pairs_only(attrs.evolve(model, links=links))
    ids = [router.id for router in model.routers]
    names = dict(zip(ids, rng.sample(ids, len(ids)), strict=True))
    other = renamed(model, names)
    failure = random_failure(rng, model)
    (_, one), (_, two) = (
        states(model, [failure]),
        states(other, [(failure[0], [names[router] for router in failure[1]])]),
    )
    failed(one, model, failure)
    failed(two, other, (failure[0], [names[router] for router in failure[1]]))
    assert directed(one, names) == directed(two, {name: name for name in ids})
    for name in ("unreachable_pairs", "lost_rate", "stretch_p95", "components", "max_utilisation", "delay_p99_us"):
        assert getattr(one, name) == getattr(two, name)


def renamed(model: Model, names: dict[str, str]) -> Model:
    """The model with other router ids; links keep theirs."""
    links = []
    for link in model.links:
        a, b = sorted((names[link.a], names[link.b]))
        links.append(attrs.evolve(link, a=a, b=b))
    return attrs.evolve(
        model,
        routers=[attrs.evolve(router, id=names[router.id]) for router in model.routers],
        links=links,
        subscribers=[attrs.evolve(site, router=names[site.router]) for site in model.subscribers],
        demands=[
            attrs.evolve(demand, src=names[demand.src], dst=None if demand.dst is None else names[demand.dst])
            for demand in model.demands
        ],
    )


def directed(kernel: Kernel, names: dict[str, str]) -> dict[tuple[str, str], int]:
    """Loads by link and the new name of the router that sends."""
    found = {}
    for number, rate in enumerate(kernel.loads()[0].tolist()):
        link, src, _ = kernel.network.directed_link(number)
        found[link, names[src]] = rate
    return found


def test_twice_the_demand_is_twice_the_load() -> None:
    ends = [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D")]
    one = Kernel(Network.of(model_of(ends, demands=everybody("ABCD", 0.5))))
    two = Kernel(Network.of(model_of(ends, demands=everybody("ABCD", 1.0))))
    for kernel in (one, two):
        kernel.fail([2], [])
    assert (2 * one.loads()[0] == two.loads()[0]).all()
    assert one.max_utilisation == two.max_utilisation  # both by their own base state


def test_demands_of_one_pair_add_up_exactly() -> None:
    # As floats, a tenth ten times is not one.
    demands = [Demand(src="A", dst="B", msgs_per_s=0.1, msg_bytes=1.0, klass=str(number)) for number in range(10)]
    kernel = Kernel(Network.of(model_of([("A", "B")], demands=demands)))
    assert kernel.loads()[0].tolist() == [MICRO, 0]


@given(meshes_and_failures(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_worst_scenarios_are_those_of_sorting_all_in_whatever_parts(
    mesh: tuple[Model, list[Failure]], parts: int, rng: random.Random
) -> None:
    model, failures = mesh
    failures = failures * 6  # the same loads from several scenarios
    numbers = rng.sample(range(1000), len(failures))
    kernel = Kernel(Network.of(model))
    base = shares_of(kernel)
    kept = [WorstUtilisations(kernel) for _ in range(parts)]
    rows = []
    for number, failure in zip(numbers, failures, strict=True):
        failed(kernel, model, failure)
        kept[number % parts].offer(number)
        shares, loads = shares_of(kernel), zip(*(column.tolist() for column in kernel.loads()), strict=True)
        rows += [
            (link, -share, number, *load)
            for link, (share, before, load) in enumerate(zip(shares, base, loads, strict=True))
            if share > before
        ]
        kernel.restore()
    assert all(len(worst.rows()[0]) <= 20 * len(model.links) for worst in kept)
    found = [
        (link, -share, number, rate, size)
        for worst in kept
        for link, number, share, rate, size in zip(*(column.tolist() for column in worst.rows()), strict=True)
    ]
    assert first_ten(sorted(found)) == first_ten(sorted(rows))
    if parts == 1:
        assert found == first_ten(sorted(rows))
    kept[0].clear()
    assert len(kept[0].rows()[0]) == 0


def shares_of(kernel: Kernel) -> list[float]:
    """Utilisation of each directed link, of what the kernel tells."""
    loads = np.column_stack(kernel.loads())
    limits = np.repeat(kernel.network.link_capacity, 2, axis=0)
    if np.isinf(limits).all():
        busiest = np.column_stack(kernel.base_loads()).max(axis=0, initial=0)
        limits[:] = np.where(busiest > 0, busiest, np.inf)
    return (loads / limits).max(axis=1, initial=0).tolist()  # type: ignore[no-any-return]


def first_ten(rows: list[Any]) -> list[Any]:
    """Of each link."""
    return [row for place, row in enumerate(rows) if place < 10 or rows[place - 10][0] != row[0]]


# One source, two speeds.

ROUNDS = 12


def digest() -> str:
    """Of all that the kernel says about many meshes and failures."""
    rng = random.Random(7)
    found = hashlib.sha256()
    for number in range(ROUNDS):
        costs = rng.choice(COSTS)
        model = random_model(rng, rng.randint(2, 14), rng.randint(2, 30), costs, is_directed=number % 6 == 3)
        failures = [random_failure(rng, model) for _ in range(6)]
        for kernel in states(model, failures, is_split=number % 3 == 0):
            found.update(repr(everything(kernel)).encode())
        kernel.hold(range(min(2, len(model.links))), [])
        failed(kernel, model, failures[0])
        found.update(repr(everything(kernel)).encode())
        worst = WorstUtilisations(kernel)
        worst.offer(number)
        found.update(repr([column.tolist() for column in worst.rows()]).encode())
    return found.hexdigest()


def said_interpreted_and_compiled(function: str) -> list[str]:
    """What a function of this module returns, as text, at both speeds."""
    other = speed.INTERPRETED if speed.SPEED == speed.COMPILED else speed.COMPILED
    if other == speed.COMPILED and not speed.LIBRARY.exists():
        pytest.skip("nothing is compiled: `scripts/build`")
    root = Path(__file__).parents[3]
    said = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import {function}; print({function}())"],
        env={**os.environ, speed.VARIABLE: other},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert said.returncode == 0, said.stderr
    return [said.stdout.strip(), str(globals()[function]())]


def test_compiled_and_interpreted_say_the_same_bit_for_bit() -> None:
    interpreted, compiled = said_interpreted_and_compiled("digest")
    assert interpreted == compiled


# Meshes of thousands of routers, without one: a percent of so many pairs is beyond 32 bits.

MANY = 4_800 * 4_799
RISES = (50, 95, 99)


def percentiles_of_many() -> list[int]:
    """The percentiles of RISES, and of one percent less, of MANY numbers that rise just where these ranks are."""
    ranks = [(percent * MANY + 99) // 100 for percent in RISES]
    values = array("q")
    for number, (first, stop) in enumerate(pairwise([0, *(rank - 1 for rank in ranks), MANY + 1])):
        values += array("q", [number]) * (stop - first)
    statistics = IncrementalOrderStatistics(values)
    return [statistics.percentile(percent - less) for percent in RISES for less in (0, 1)]


def test_percentiles_of_tens_of_millions_of_pairs_are_those_of_a_sort_at_both_speeds() -> None:
    assert said_interpreted_and_compiled("percentiles_of_many") == [str([1, 0, 2, 1, 3, 2])] * 2


def test_a_rank_that_no_number_has_is_refused() -> None:
    statistics = IncrementalOrderStatistics(array("q", [3, 5, 8, 0]))
    assert [statistics.at(rank) for rank in (1, 2, 3)] == [3, 5, 8]
    for rank in (-(2**40), 0, 4, 2**40):
        with pytest.raises(IndexError, match=f"no rank {rank}; there are 3 numbers"):
            statistics.at(rank)
    with pytest.raises(IndexError, match="no rank 0; there are 0 numbers"):
        IncrementalOrderStatistics(array("q", [0])).percentile(99)


def test_the_kernel_computes_in_64_bits_and_keeps_small_numbers_in_arrays_only() -> None:
    """Routers squared times the size of a cell, and sums over addresses, don't fit into a C int."""
    files = sorted(Path(network_arrays.__file__).parent.glob("*.pxd"))
    scalars = {file.name: re.findall(r"(?<![\w.])(?:cython\.)?int\b(?!\*)", file.read_text("utf-8")) for file in files}
    assert {name for name, found in scalars.items() if found} == set()
    assert "path_delays.pxd" in scalars
