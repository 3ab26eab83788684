"""The kernel says what a naive evaluation says, of any mesh and any failure."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.whatif.kernel import scenario_loop
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network, NetworkError
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, SubscriberSite
from router.whatif.model.mesh_model import Model
from tests.whatif.meshes import (
    Both,
    Failure,
    everybody,
    everything,
    meshes_and_failures,
    model_of,
    random_failure,
    random_model,
)
from tests.whatif.naive import Naive, TreeRule, rule_by_greatest_id, rule_by_id_alone


@given(meshes_and_failures())
@example((model_of([], routers="A"), [([], ["A"])]))
@example((model_of([("A", "B"), ("A", "B")], demands=everybody("AB")), [(["A--B"], []), (["A--B", "A--B#2"], [])]))
def test_any_failure_does_what_a_naive_evaluation_says(mesh: tuple[Model, list[Failure]]) -> None:
    model, failures = mesh
    both = Both(model)
    assert both.differences() == []
    for failure in failures:
        both.fail(failure)
        assert both.differences(failure) == []
        both.kernel.restore()
    assert both.differences() == []


@given(meshes_and_failures())
def test_any_failure_does_what_a_naive_evaluation_says_with_equal_splitting(mesh: tuple[Model, list[Failure]]) -> None:
    model, failures = mesh
    both = Both(model, is_split=True)
    assert both.differences() == []
    for failure in failures:
        both.fail(failure)
        assert both.differences(failure) == []
        both.kernel.restore()
    assert both.differences() == []


@given(meshes_and_failures(is_directed=True), st.randoms(use_true_random=False))
def test_costs_may_differ_by_direction_where_traffic_is_split(
    mesh: tuple[Model, list[Failure]], rng: random.Random
) -> None:
    model, failures = mesh
    both = Both(model, is_split=True)
    assert both.differences() == []
    for links, routers in failures:
        both.fail((links, routers))
        assert both.differences((links, routers)) == []
        whole = everything(both.kernel)
        both.kernel.restore()
        held = [link for link in links if rng.random() < 0.6]
        both.kernel.hold([both.links[link] for link in held], [])
        both.fail((links, routers))
        assert everything(both.kernel) == whole
        both.kernel.release()
    assert both.differences() == []


@given(meshes_and_failures(most_routers=6))
def test_without_percentiles_all_else_is_the_same(mesh: tuple[Model, list[Failure]]) -> None:
    both = Both(mesh[0])
    terse = Kernel(both.network, has_percentiles=False)
    size = len(both.network.routers)
    for links, routers in [([], []), *mesh[1]]:
        both.fail((links, routers))
        terse.fail([both.links[link] for link in links], [both.routers[router] for router in routers])
        assert (terse.delay_p99_us, terse.longest_delay_us()) == (-1, -1)
        assert [column.tolist() for column in terse.loads()] == [column.tolist() for column in both.kernel.loads()]
        assert terse.address_impact() == both.kernel.address_impact()
        for src in range(size):
            for dst in range(size):
                if both.kernel.distance(src, dst) >= 0:
                    assert terse.delay_us(src, dst) == both.kernel.delay_us(src, dst)
        terse.restore()
        both.kernel.restore()


def test_a_mesh_has_one_cost_for_both_directions() -> None:
    model = model_of([("A", "B"), ("B", "C")], demands=everybody("ABC"))
    model = attrs.evolve(model, links=[attrs.evolve(link, cost_back=3) for link in model.links])
    with pytest.raises(NetworkError, match="link A--B and 1 more have another cost in each direction, and a mesh"):
        Kernel(Network.of(model))
    kernel = Kernel(Network.of(model), is_split=True)
    assert kernel.distances().tolist() == [[0, 1, 2], [3, 0, 1], [6, 3, 0]]


@given(meshes_and_failures(), st.booleans(), st.randoms(use_true_random=False))
def test_what_fails_on_top_of_what_is_held_down_does_what_all_of_it_does(
    mesh: tuple[Model, list[Failure]], is_split: bool, rng: random.Random
) -> None:
    model, failures = mesh
    both = Both(model, is_split=is_split)
    for links, routers in failures:
        held = [link for link in links if rng.random() < 0.6], [router for router in routers if rng.random() < 0.6]
        numbers = [both.links[link] for link in held[0]], [both.routers[router] for router in held[1]]
        both.kernel.hold(*numbers)
        assert both.differences(held) == []
        both.fail((links, routers))
        assert both.differences((links, routers)) == []
        on_top = everything(both.kernel)
        both.kernel.restore()
        assert both.differences(held) == []
        both.kernel.release()
        both.fail((links, routers))
        assert everything(both.kernel) == on_top
        both.kernel.restore()
    assert both.differences() == []


@given(meshes_and_failures(), st.randoms(use_true_random=False))
def test_scenarios_in_a_row_do_what_they_do_alone(mesh: tuple[Model, list[Failure]], rng: random.Random) -> None:
    model, failures = mesh
    both = Both(model)
    # Rows of scenarios with something in common.
    rows = [
        ([*links, *extra[0]], [*routers, *extra[1]])
        for links, routers in failures
        for extra in [random_failure(rng, model) for _ in range(rng.randint(1, 8))]
    ]
    numbers = [([both.links[link] for link in ls], [both.routers[router] for router in rs]) for ls, rs in rows]
    links = [link for ls, _ in numbers for link in ls]
    routers = [router for _, rs in numbers for router in rs]
    link_offsets = np.cumsum([0, *(len(ls) for ls, _ in numbers)]).tolist()
    router_offsets = np.cumsum([0, *(len(rs) for _, rs in numbers)]).tolist()
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario_loop, "LEAST_RUN", 3)
        for place in scenario_loop.fail_one_by_one(both.kernel, links, link_offsets, routers, router_offsets):
            assert place == len(found)
            found.append(everything(both.kernel))
    for failure, expected in zip(numbers, found, strict=True):
        both.kernel.fail(*failure)
        assert everything(both.kernel) == expected
        both.kernel.restore()


def test_what_scenarios_in_a_row_have_in_common_is_found() -> None:
    pairs = [([a, b], []) for b in range(1, 5) for a in range(b)]
    assert scenario_loop.run_with_shared_failures(pairs, 0) == (2, ([0], []))
    assert scenario_loop.run_with_shared_failures(pairs, 1) == (3, ([2], []))
    assert scenario_loop.run_with_shared_failures(pairs, 3) == (6, ([3], []))
    assert scenario_loop.run_with_shared_failures([([1], []), ([1], [])], 0) == (1, ([], []))
    held = [([7, link], [5]) for link in range(4)]
    assert scenario_loop.run_with_shared_failures(held, 0) == (4, ([7], [5]))
    assert scenario_loop.run_with_shared_failures(held, 3) == (4, ([7, 3], [5]))


def test_whoever_stops_in_the_middle_leaves_nothing_failed() -> None:
    kernel = Kernel(Network.of(line()))
    for _ in scenario_loop.fail_one_by_one(kernel, [0, 1], [0, 2], [], [0, 0]):
        break
    assert (kernel.is_failing, kernel.unreachable_pairs) == (False, 0)


@pytest.mark.parametrize("costs", [(1,), (1, 2, 3), (1, 10, 50, 1000)], ids=str)
def test_a_larger_mesh_too(costs: tuple[int, ...], rng: random.Random) -> None:
    model = random_model(rng, 25, 50, costs)
    both = Both(model)
    for _ in range(8):
        failure = random_failure(rng, model)
        both.fail(failure)
        assert both.differences(failure) == []
        both.kernel.restore()
    assert both.differences() == []


# Ties.

TIES = (
    # Two ways of the same length.
    [("A", "B", 1), ("B", "D", 1), ("A", "C", 1), ("C", "D", 1)],
    # Of two predecessors at the same cost C is the nearer one, and B has the lesser id.
    [("A", "B", 2), ("B", "D", 1), ("A", "C", 1), ("C", "D", 2)],
)


def tie(number: int) -> Model:
    ends = TIES[number]
    return model_of([(a, b) for a, b, _ in ends], costs=[cost for *_, cost in ends], demands=everybody("ABCD"))


@pytest.mark.parametrize(
    ("number", "rule"), [(0, rule_by_greatest_id), (1, rule_by_id_alone)], ids=["greatest id", "id before distance"]
)
def test_a_wrong_tie_break_is_noticed(number: int, rule: TreeRule) -> None:
    model = tie(number)
    assert Both(model).differences() == []
    assert any("next hop" in text for text in Both(model, Naive(model, rule)).differences())


@pytest.mark.parametrize("rule", [rule_by_greatest_id, rule_by_id_alone])
def test_random_meshes_with_ties_notice_a_wrong_tie_break(rule: TreeRule) -> None:
    rng = random.Random(1)
    noticed = 0
    for _ in range(30):
        model = random_model(rng, 7, 12, (1, 2))
        failure = random_failure(rng, model)
        both = Both(model, Naive(model, rule))
        both.fail(failure)
        noticed += any(text.startswith("load") for text in both.differences(failure))
    assert noticed >= 5


# What can be read.


def line() -> Model:
    """A - B - C, subscribers at C; A and B send to all."""
    return model_of(
        [("A", "B"), ("B", "C")],
        addresses=[
            AddressNode(text="all", treatment=Treatment.MULTICAST),
            AddressNode(text="one", treatment="closest"),
        ],
        subscribers=[SubscriberSite(address=text, router="C") for text in ("all", "one")]
        + [SubscriberSite(address="all", router="B")],
        demands=[
            Demand(src="A", address="all", msgs_per_s=2.0, msg_bytes=10.0),
            Demand(src="A", address="one", msgs_per_s=3.0, msg_bytes=10.0),
            Demand(src="B", address="one", msgs_per_s=5.0, msg_bytes=10.0),
            Demand(src="A", dst="C", msgs_per_s=7.0, msg_bytes=10.0),
        ],
    )


def test_a_multicast_loads_each_link_once_and_others_as_often_as_they_pass() -> None:
    kernel = Kernel(Network.of(line()))
    rates, sizes = kernel.loads()
    assert rates.tolist() == [12_000_000, 0, 17_000_000, 0]
    assert sizes.tolist() == [120_000_000, 0, 170_000_000, 0]
    assert kernel.max_utilisation == 1.0
    assert kernel.network.directed_link(kernel.max_utilisation_link) == ("B--C", "B", "C")
    assert (kernel.unreachable_pairs, kernel.components, kernel.lost_rate) == (0, 1, 0)


def test_what_is_cut_off_is_told_by_pair_address_and_link() -> None:
    kernel = Kernel(Network.of(line()))
    kernel.fail([1], [])
    assert (kernel.unreachable_pairs, kernel.dead_end_pairs, kernel.components) == (4, 0, 2)
    assert [array.tolist() for array in kernel.lost_pairs()] == [[0, 1, 2, 2], [2, 2, 0, 1]]
    assert [array.tolist() for array in kernel.changed_pairs()] == [[0, 1, 2, 2], [2, 2, 0, 1], [2, 1, 2, 1], [-1] * 4]
    assert kernel.changed_links().tolist() == [0, 2]
    # To `all`: the copy for C; to `one`: both publishers.
    assert kernel.address_impact() == [(0, 2, 0, 0, 2_000_000), (1, 1, 0, 2, 8_000_000)]
    assert (kernel.lost_rate, kernel.starved_publishers, kernel.dead_addresses) == (17_000_000, 2, 0)
    assert kernel.path(0, 2) == []
    assert (kernel.stretch_p50, kernel.stretch_p99) == (1000, 1000)


def test_pairs_with_a_failed_router_are_told_apart() -> None:
    kernel = Kernel(Network.of(line()))
    kernel.fail([], [2])
    assert (kernel.unreachable_pairs, kernel.dead_end_pairs, kernel.components) == (4, 4, 1)
    assert [array.tolist() for array in kernel.lost_pairs()] == [[], []]
    assert [array.tolist() for array in kernel.lost_pairs(with_dead_ends=True)] == [[0, 1, 2, 2], [2, 2, 0, 1]]
    assert kernel.address_impact() == [(0, 1, 1, 0, 2_000_000), (1, 0, 1, 2, 8_000_000)]
    assert kernel.dead_addresses == 1


def test_a_matrix_of_distances_and_the_trees_of_multicasts_can_be_read() -> None:
    kernel = Kernel(Network.of(tie(0)))
    assert kernel.distances().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
    assert kernel.tree(0) == [-1, 0, 0, 1]
    assert kernel.tree(3) == [1, 3, 3, -1]
    kernel.fail([0, 1], [])
    assert kernel.distances()[0].tolist() == [0, -1, -1, -1]


def test_of_parallel_links_the_next_one_takes_over() -> None:
    model = model_of([("A", "B")] * 3, costs=[2, 1, 1], demands=everybody("AB"))
    kernel = Kernel(Network.of(model))
    assert kernel.loads()[0].tolist() == [0, 0, 10**6, 10**6, 0, 0]
    kernel.fail([1], [])
    assert kernel.loads()[0].tolist() == [0, 0, 0, 0, 10**6, 10**6]
    assert kernel.changed_links().tolist() == [2, 3, 4, 5]
    assert (kernel.unreachable_pairs, kernel.stretch_p50) == (0, 1000)
    kernel.restore()
    kernel.fail([2, 1], [])
    assert kernel.loads()[0].tolist() == [10**6, 10**6, 0, 0, 0, 0]
    assert (kernel.unreachable_pairs, kernel.stretch_p50) == (0, 2000)


def test_of_parallel_links_those_that_cost_the_least_share_where_traffic_is_split() -> None:
    model = model_of([("A", "B")] * 3 + [("A", "C"), ("C", "B")], costs=[4, 2, 2, 1, 1], demands=everybody("AB", 3.0))
    kernel = Kernel(Network.of(model), is_split=True)
    ids = kernel.network.links
    assert ids == ("A--B", "A--B#2", "A--B#3", "A--C", "B--C")

    def sent() -> list[float]:
        return (kernel.loads()[0][::2] / MICRO).tolist()  # type: ignore[no-any-return]

    assert sent() == [0, 1, 1, 1, 1]
    kernel.fail([1], [])
    assert sent() == [0, 0, 1.5, 1.5, 1.5]
    assert kernel.changed_links().tolist() == list(range(2, 10))
    kernel.restore()
    kernel.fail([1, 2], [])
    assert sent() == [0, 0, 0, 3, 3]
    kernel.restore()
    kernel.fail([1, 2, 3], [])
    assert sent() == [3, 0, 0, 0, 0]
    kernel.restore()
    kernel.fail([0], [])  # that nobody used
    assert sent() == [0, 1, 1, 1, 1]


def test_a_multicast_takes_the_next_parallel_link_where_traffic_is_split() -> None:
    model = model_of(
        [("A", "B")] * 2,
        addresses=[AddressNode(text="all", treatment=Treatment.MULTICAST)],
        subscribers=[SubscriberSite(address="all", router="B")],
        demands=[Demand(src="A", address="all", msgs_per_s=2.0, msg_bytes=10.0)],
    )
    kernel = Kernel(Network.of(model), is_split=True)
    assert kernel.loads()[0].tolist() == [2_000_000, 0, 0, 0]
    kernel.fail([0], [])
    assert kernel.loads()[0].tolist() == [0, 0, 2_000_000, 0]
    kernel.restore()
    kernel.fail([], [1])
    assert kernel.loads()[0].tolist() == [0, 0, 0, 0]
    kernel.restore()
    assert kernel.loads()[0].tolist() == [2_000_000, 0, 0, 0]


def test_numpy_numbers_are_taken_too_and_the_same_failure_twice_counts_once() -> None:
    kernel = Kernel(Network.of(line()))
    kernel.fail(np.array([1, 1], dtype=np.int32), np.array([2, 2], dtype=np.int32))
    assert (kernel.unreachable_pairs, kernel.components) == (4, 1)


# Faults of the caller.


def test_nothing_fails_on_top_of_a_failure() -> None:
    kernel = Kernel(Network.of(line()))
    kernel.fail([0], [])
    with pytest.raises(RuntimeError, match="`restore` comes first"):
        kernel.fail([1], [])
    with pytest.raises(RuntimeError, match="`restore` and `release` come first"):
        kernel.hold([1], [])
    kernel.restore()
    kernel.restore()
    kernel.hold([1], [])
    with pytest.raises(RuntimeError, match="`restore` and `release` come first"):
        kernel.hold([0], [])
    kernel.release()
    kernel.release()
    kernel.fail([1], [])
    kernel.release()
    assert kernel.unreachable_pairs == 0


@pytest.mark.parametrize(
    ("links", "routers", "words"),
    [
        ([2], [], "no link 2; there are 2"),
        ([-1], [], "no link -1"),
        ([], [3], "no router 3"),
        ([], [-1], "no router -1"),
    ],
)
def test_what_is_not_there_can_not_fail(links: list[int], routers: list[int], words: str) -> None:
    kernel = Kernel(Network.of(line()))
    with pytest.raises(IndexError, match=words):
        kernel.fail(links, routers)
    with pytest.raises(IndexError, match=words):
        kernel.hold(links, routers)
    assert not kernel.is_failing
    assert not kernel.is_holding
    kernel.fail([0], [])
    assert kernel.components == 2


def test_routers_that_are_not_there_have_no_paths() -> None:
    kernel = Kernel(Network.of(line()))
    with pytest.raises(IndexError, match="no router 3; there are 3"):
        kernel.distance(0, 3)
    with pytest.raises(IndexError, match="no router -1; there are 3"):
        kernel.next_hop(-1, 0)


def test_demands_that_do_not_fit_are_refused() -> None:
    demands = [Demand(src="A", address="all", msgs_per_s=1e12, msg_bytes=0.0)]
    sites = [SubscriberSite(address="all", router=router) for router in "ABCDE"]
    model = model_of(
        [("A", "B"), ("B", "C"), ("C", "D"), ("D", "E")],
        addresses=[AddressNode(text="all", treatment=Treatment.MULTICAST)],
        subscribers=sites,
        demands=demands,
    )
    with pytest.raises(NetworkError, match=r"5e\+12 messages/s.* expected 4\.61e\+12 at most"):
        Network.of(model)


def test_more_bytes_than_64_bits_have_millionths_are_counted_in_a_larger_unit() -> None:
    def kernel(size: float, capacity: float) -> Kernel:
        demands = [
            Demand(src=src, dst=dst, msgs_per_s=3e4, msg_bytes=size) for src, dst in ("AB", "BA", "AC", "CA", "BC")
        ]
        model = model_of([("A", "B"), ("B", "C"), ("A", "C")], demands=demands)
        links = [attrs.evolve(link, capacity_bytes=capacity) for link in model.links]
        return Kernel(Network.of(attrs.evolve(model, links=links)))

    small, large = kernel(1e6, 7e10), kernel(1e12, 7e16)
    assert (small.network.byte_shift, large.network.byte_shift) == (0, 15)
    for failed in ([], [0], [0, 1]):
        for each in (small, large):
            each.fail(failed, [])
        assert large.max_utilisation == pytest.approx(small.max_utilisation, rel=1e-12)
        assert large.max_utilisation_link == small.max_utilisation_link
        sizes = [each.network.byte_rates(each.loads()[1]) / MICRO for each in (small, large)]
        assert sizes[1] == pytest.approx(1e6 * sizes[0], rel=1e-12)
        assert large.loads()[0].tolist() == small.loads()[0].tolist()
        lost = [float(each.network.byte_rates(np.array(each.lost_bytes))) / MICRO for each in (small, large)]
        assert lost[1] == pytest.approx(1e6 * lost[0], rel=1e-12)
        for each in (small, large):
            each.restore()


def test_bytes_beyond_the_largest_unit_are_refused() -> None:
    demands = [Demand(src="A", address="all", msgs_per_s=1e9, msg_bytes=1e9)]
    model = model_of(
        [("A", "B"), ("B", "C"), ("C", "D"), ("D", "E")],
        addresses=[AddressNode(text="all", treatment=Treatment.MULTICAST)],
        subscribers=[SubscriberSite(address="all", router=router) for router in "ABCDE"],
        demands=demands,
    )
    with pytest.raises(NetworkError, match=r"5e\+18 bytes/s, a multicast .* expected 4\.84e\+18 at most"):
        Network.of(model)


def test_a_variant_with_another_unit_of_bytes_is_measured_as_its_base() -> None:
    model = model_of([("A", "B")], demands=everybody("AB", 1e6, 1e6))
    base = Kernel(Network.of(model))
    grown = Network.of(attrs.evolve(model, demands=everybody("AB", 8e6, 1e6)))
    assert (base.network.byte_shift, grown.byte_shift) == (0, 2)
    assert Kernel(grown.measured_as(base.network, base.busiest())).max_utilisation == 8.0


def test_nobody_can_write_to_a_base_state_through_what_is_read() -> None:
    kernel = Kernel(Network.of(line()))
    kernel.loads()[0][:] = 7
    kernel.distances()[:] = 7
    assert kernel.loads()[0].tolist() == [12_000_000, 0, 17_000_000, 0]
    assert kernel.distance(0, 2) == 2
