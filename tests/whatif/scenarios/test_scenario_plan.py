"""Scenario numbers: a bijection with failures, probabilities that add up, samples that depend on no order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.whatif.model.elements import Group, GroupKind, LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model
from router.whatif.scenarios.combination_numbers import VECTOR_LIMIT, Shuffle, rank, ranks, unrank
from router.whatif.scenarios.failure_families import FailureCandidates, Family, Groups, Maintenance
from router.whatif.scenarios.scenario_plan import Chunk, Chunks, Plan, PlanError, families_of


def ring(
    count: int = 6,
    *,
    failures: float | None = None,
    groups: tuple[Group, ...] = (),
    sites: dict[str, str] | None = None,
) -> Model:
    """Routers A, B, ... in a ring, links between neighbors."""
    names = [chr(ord("A") + place) for place in range(count)]
    ends = [tuple(sorted((one, other))) for one, other in itertools.pairwise([*names, names[0]])]
    return Model(
        routers=[
            RouterNode(id=name, site=(sites or {}).get(name), failures_per_year=failures, repair_hours=10)
            for name in names
        ],
        links=[LinkEdge(id=f"{a}--{b}", a=a, b=b, failures_per_year=failures, repair_hours=20) for a, b in ends],
        groups=groups,
    )


DUCT = Group(name="duct", kind=GroupKind.SRLG, links=("A--B", "C--D"))
WINDOW = Group(name="window", kind=GroupKind.MAINTENANCE, links=("C--D",), routers=("F",))


def plan_of(model: Model, text: str, *more: Family, sample: int | None = None, seed: int = 0) -> Plan:
    return Plan.of([("base", FailureCandidates.of(model))], [*families_of(text), *more], sample=sample, seed=seed)


# Combinations


@given(st.integers(1, 70), st.data())
def test_a_combination_and_its_number_belong_together(things: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, min(things, 6)))
    number = data.draw(st.integers(0, math.comb(things, size) - 1))
    (members,) = unrank(ranks([number]), things, size).tolist()
    assert members == sorted(set(members))
    assert all(0 <= member < things for member in members)
    assert rank(members) == number


def test_numbers_count_every_combination_once() -> None:
    found = unrank(ranks(range(math.comb(9, 3))), 9, 3).tolist()
    assert sorted(map(tuple, found)) == list(itertools.combinations(range(9), 3))


@given(st.integers(VECTOR_LIMIT, math.comb(2000, 9) - 1))
def test_numbers_beyond_64_bits_are_exact(number: int) -> None:
    (members,) = unrank(ranks([number]), 2000, 9).tolist()
    assert rank(members) == number


def test_many_at_once_are_as_one_by_one() -> None:
    numbers = ranks(range(1000, 3000))
    alone = [unrank(np.array([number], dtype=object), 40, 4)[0].tolist() for number in numbers.tolist()]
    assert unrank(numbers, 40, 4).tolist() == alone


# Samples


@given(st.integers(1, 2**100), st.integers(0, 5), st.data())
def test_a_shuffle_and_its_inverse_belong_together(size: int, seed: int, data: st.DataObject) -> None:
    shuffle = Shuffle(size, seed, "links:3")
    place = data.draw(st.integers(0, size - 1))
    value = shuffle.at(place)
    assert 0 <= value < size
    assert shuffle.place_of(value) == place
    if size < VECTOR_LIMIT:
        assert shuffle.places(place, place + 1).tolist() == [value]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 65, 1000])
def test_a_shuffle_has_every_number_once(size: int) -> None:
    assert sorted(Shuffle(size, 1, "").places(0, size).tolist()) == list(range(size))


def test_a_sample_depends_on_its_seed_and_place_alone() -> None:
    model = ring(20)
    whole = plan_of(model, "links:4", sample=500, seed=7)
    failures = [whole.failure(number).links for number in range(len(whole))]
    assert len(whole) == 501
    assert len(set(failures)) == 501, "without repetition"
    longer = plan_of(model, "links:4", sample=600, seed=7)
    assert [longer.failure(number).links for number in range(len(whole))] == failures
    backwards = [whole.failure(number).links for number in reversed(range(len(whole)))]
    assert backwards[::-1] == failures
    other = plan_of(model, "links:4", sample=500, seed=8)
    assert {other.failure(number).links for number in range(1, 501)} != set(failures[1:])


def test_a_sample_is_spread_over_the_whole_population() -> None:
    plan = plan_of(ring(26), "links:2", sample=100, seed=1)
    seen = {link for number in range(1, 101) for link in plan.failure(number).links}
    assert len(seen) == 26
    assert len(plan_of(ring(26), "links:1", sample=100)) == 27, "a smaller family is played in full"


def test_a_sample_of_an_immense_population_can_be_taken() -> None:
    model = Model(
        routers=[RouterNode(id=f"r{number:04}") for number in range(1001)],
        links=[LinkEdge(id=f"r{n:04}--r{n + 1:04}", a=f"r{n:04}", b=f"r{n + 1:04}") for n in range(1000)],
    )
    plan = plan_of(model, "links:10", sample=50)
    for number in range(1, 51):
        failure = plan.failure(number)
        assert len(set(failure.links)) == 10
        assert plan.number(links=failure.links) == number
    with pytest.raises(PlanError, match="scenarios"):
        plan_of(model, "links:10")
    with pytest.raises(PlanError, match="too many"):
        plan_of(model, "links:16+routers:16", sample=50)


# Plans


def test_scenario_0_is_the_mesh_as_it_is() -> None:
    failure = plan_of(ring(), "links:1").failure(0)
    assert (failure.family, failure.links, failure.routers) == ("none", (), ())


def test_families_follow_each_other_without_a_gap() -> None:
    model = ring(sites={"A": "north", "B": "north", "C": "south"}, groups=(DUCT, WINDOW))
    plan = plan_of(model, "links:2,routers:1,srlg,sites,links:1+routers:1", Maintenance("window"))
    assert len(plan) == 1 + 15 + 6 + 1 + 2 + 36 + (1 + 3 + 5)
    families = [plan.failure(number).family for number in range(len(plan))]
    assert [family for family, _ in itertools.groupby(families)] == [
        "none", "links:2", "routers:1", "srlg", "sites", "links:1+routers:1", "maintenance",
    ]  # fmt: skip
    with pytest.raises(PlanError, match="there is no scenario 70; expected a number from 0 to 69"):
        plan.failure(70)


def test_every_failure_has_its_own_number() -> None:
    model = ring(groups=(DUCT, WINDOW), sites={"A": "north", "B": "north"})
    plan = plan_of(model, "links:1-3,routers:2,srlg,sites,links:1+routers:1-2", Maintenance("window"))
    for number in range(len(plan)):
        failure = plan.failure(number)
        links, routers = failure.links, failure.routers
        if failure.family in ("srlg", "sites"):
            links, routers = (), ()
        assert plan.number(links=links, routers=routers, group=failure.group) == number


def test_a_failure_that_is_not_played_has_no_number() -> None:
    plan = plan_of(ring(groups=(DUCT,)), "links:1")
    assert plan.number(links=("A--B", "B--C")) is None
    assert plan.number(group="duct") is None
    with pytest.raises(PlanError, match=r"no link `A--Bee`.*did you mean `A--B`"):
        plan.number(links=("A--Bee",))


def test_a_group_fails_with_every_member() -> None:
    plan = plan_of(ring(groups=(DUCT,), sites={"B": "north", "E": "north"}), "srlg,sites")
    assert plan.failure(1).links == ("A--B", "C--D")
    assert plan.failure(2).routers == ("B", "E")
    assert plan.failure(2).group == "north"


def test_a_site_may_be_given_as_a_group() -> None:
    north = Group(name="north", kind=GroupKind.SITE, routers=("B",), links=("D--E",))
    plan = plan_of(ring(groups=(north,), sites={"B": "north", "E": "north"}), "sites")
    assert len(plan) == 2
    assert plan.failure(1).routers == ("B",)


def test_maintenance_holds_a_group_down_while_each_other_thing_fails() -> None:
    plan = plan_of(ring(groups=(WINDOW,)), "links:1", Maintenance("window"))
    failures = [plan.failure(number) for number in range(7, len(plan))]
    assert [(failure.links, failure.routers) for failure in failures] == [
        (("C--D",), ("F",)),
        (("A--B", "C--D"), ("F",)),
        (("B--C", "C--D"), ("F",)),
        (("C--D", "D--E"), ("F",)),
        (("C--D",), ("A", "F")),
        (("C--D",), ("B", "F")),
        (("C--D",), ("C", "F")),
        (("C--D",), ("D", "F")),
        (("C--D",), ("E", "F")),
    ]
    assert plan.number(links=("B--C",), group="window") == 9


def test_a_variant_with_one_more_link_has_scenarios_of_its_own() -> None:
    model, more = ring(), ring()
    more = Model(routers=more.routers, links=[*more.links, LinkEdge(id="A--D", a="A", b="D")])
    plan = Plan.of(
        [("base", FailureCandidates.of(model)), ("changed", FailureCandidates.of(more))], families_of("links:1")
    )
    assert len(plan) == 7 + 8
    assert plan.failure(7).variant == "changed"
    assert plan.failure(7).family == "none"
    assert plan.number(links=("A--D",), variant="changed") == 9
    chunks = plan.chunks()
    assert [(chunk.variant, chunk.first, chunk.stop) for chunk in chunks] == [(0, 0, 7), (1, 7, 15)]


def test_chunks_hold_every_scenario_once() -> None:
    plan = plan_of(ring(26), "links:3")
    numbers = [number for chunk in plan.chunks() for number in range(chunk.first, chunk.stop)]
    assert numbers == list(range(len(plan)))
    assert len(plan.chunks()) > 16


def test_a_chunk_is_found_by_its_number_and_its_variant() -> None:
    few, many = FailureCandidates.of(ring()), FailureCandidates.of(ring(20))
    plan = Plan.of([("base", few), ("changed", many)], families_of("links:1,links:3"))
    chunks = plan.chunks()
    every = list(chunks)
    assert [chunks[number] for number in range(len(chunks))] == every
    assert [chunk.number for chunk in every] == list(range(len(chunks)))
    for variant in range(2):
        numbers = [chunk.number for chunk in every if chunk.variant == variant]
        assert list(chunks.of_variant(variant)) == numbers
    for number in (-1, len(chunks)):
        with pytest.raises(IndexError):
            chunks[number]


@given(st.lists(st.builds(range, st.integers(0, 9), st.integers(0, 99), st.integers(1, 9)), max_size=6))
def test_chunks_come_variant_by_variant_and_are_numbered_from_0(starts: list[range]) -> None:
    chunks = Chunks(tuple(starts))
    plain = [
        (variant, first, min(first + each.step, each.stop)) for variant, each in enumerate(starts) for first in each
    ]
    wanted = [Chunk(number=at, variant=it[0], first=it[1], stop=it[2]) for at, it in enumerate(plain)]
    assert list(chunks) == [chunks[number] for number in range(len(chunks))] == wanted
    for variant in range(len(starts)):
        assert [chunks[number] for number in chunks.of_variant(variant)] == [
            chunk for chunk in wanted if chunk.variant == variant
        ]


class CountingStarts(tuple[range, ...]):
    """Starts of chunks by variant that count how often all variants are looked through."""

    looks = 0

    def __iter__(self) -> Iterator[range]:
        CountingStarts.looks += 1
        return super().__iter__()


def test_variants_are_not_looked_through_for_each_chunk() -> None:
    chunks = Chunks(CountingStarts([range(at, at + 30, 10) for at in range(0, 300, 30)]))
    CountingStarts.looks = 0
    every = list(chunks)
    assert [chunks[number] for number in range(len(chunks))] == every
    assert len(every) == 30
    assert CountingStarts.looks == 0


def test_more_scenarios_than_are_held_in_the_end_are_refused() -> None:
    words = "121,095,301 scenarios; expected at most 100,000,000: fewer failures at once, or --sample"
    with pytest.raises(PlanError, match=words):
        plan_of(ring(900), "links:3")


@pytest.mark.parametrize("text", ["links:" + "9" * 5000, "routers:1-" + "1" * 5000, "links:\uff11"])
def test_a_number_of_thousands_of_digits_is_refused(text: str) -> None:
    with pytest.raises(PlanError, match="--fail"):
        families_of(text)


def test_batches_say_what_single_failures_say() -> None:
    plan = plan_of(ring(8, failures=2.0, groups=(DUCT,)), "links:2,srlg,routers:1", sample=20, seed=3)
    for section, first, batch in plan.batches(0, len(plan)):
        for place, (links, routers) in enumerate(batch):
            failure = plan.failure(first + place)
            elements = plan.variants[section.variant].elements
            assert tuple(elements.links[link] for link in links) == failure.links
            assert tuple(elements.routers[router] for router in routers) == failure.routers
            assert batch.probability is not None
            assert batch.probability[place] == failure.probability


# Probabilities


@given(st.floats(0.0, 200.0).filter(lambda rate: rate == 0 or rate > 1e-9))
def test_the_probabilities_of_all_failures_sum_to_one(failures: float) -> None:
    model = ring(3, failures=failures)
    plan = plan_of(model, "links:1-3,routers:1-3,links:1-3+routers:1-3")
    assert len(plan) == 2**6
    total = math.fsum(plan.failure(number).probability or 0.0 for number in range(len(plan)))
    assert (total == pytest.approx(1.0, abs=1e-12)) is (failures > 0)


def test_a_failure_is_as_likely_as_its_rates_say() -> None:
    plan = plan_of(ring(3, failures=8.76), "links:2")
    up, down = 1 / 1.02, 0.02 / 1.02  # 20 hours to repair, 8.76 times a year
    routers_up = (1 / 1.01) ** 3
    assert plan.failure(0).probability == pytest.approx(up**3 * routers_up)
    assert plan.failure(1).probability == pytest.approx(up * down**2 * routers_up)


def test_a_group_is_as_likely_as_its_rates_say() -> None:
    model = ring(
        4, groups=(Group(name="duct", kind=GroupKind.SRLG, links=("A--B",), failures_per_year=1, repair_hours=87.6),)
    )
    plan = plan_of(model, "srlg")
    assert plan.failure(0).probability == pytest.approx(1 / 1.01)
    assert plan.failure(1).probability == pytest.approx(0.01 / 1.01)


def test_during_maintenance_what_is_down_is_not_uncertain() -> None:
    plan = plan_of(
        ring(3, failures=8.76, groups=(Group(name="w", kind=GroupKind.MAINTENANCE, routers=("A",)),)),
        "links:1",
        Maintenance("w"),
    )
    alone = plan.failure(4)
    assert alone.probability == pytest.approx((1 / 1.02) * (1 / 1.01) ** 2), "one link and two routers are left"


@given(st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4), min_size=1), st.data())
def test_during_maintenance_probabilities_are_products_of_what_is_left(
    links: set[int], routers: set[int], data: st.DataObject
) -> None:
    model = ring(5, failures=3.0)
    held = Group(
        name="window",
        kind=GroupKind.MAINTENANCE,
        links=tuple(model.links[at].id for at in sorted(links)),
        routers=tuple(model.routers[at].id for at in sorted(routers)),
    )
    elements = FailureCandidates.of(attrs.evolve(model, groups=(held,)))
    family = Maintenance("window")
    number = data.draw(st.integers(0, family.count(elements) - 1))
    batch = family.batch(elements, np.array([number]))
    ((down_links, down_routers),) = batch
    left = [
        (odds, place in down_links.tolist())
        for place, odds in enumerate(elements.link_odds)
        if place not in links and not routers.intersection(elements.ends[place])
    ]
    left += [
        (odds, place in down_routers.tolist())
        for place, odds in enumerate(elements.router_odds)
        if place not in routers
    ]
    wanted = math.prod((odds if is_down else 1.0) / (1.0 + odds) for odds, is_down in left)
    assert batch.probability is not None
    assert batch.probability[0] == pytest.approx(wanted)


def test_without_rates_there_are_no_probabilities() -> None:
    assert plan_of(ring(), "links:1").failure(1).probability is None


# What operators write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("links:2", ["links:2"]),
        ("links:1-2, routers:1", ["links:1", "links:2", "routers:1"]),
        ("srlg,sites,srlg", ["srlg", "sites"]),
        ("routers:1+links:2", ["links:2+routers:1"]),
    ],
)
def test_families_are_read(text: str, expected: list[str]) -> None:
    assert [family.text for family in families_of(text)] == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lnks:2", "`lnks:2`.*did you mean `links:2`"),
        ("links", "expected such as links:1.*did you mean `links:1`"),
        ("router=2", "did you mean `routers:2`"),
        ("links:0", "expected numbers from 1 to 16"),
        ("links:2-1", "the lower one first"),
        ("links:1+links:1", "has links twice"),
        ("srgl", "did you mean `srlg`"),
        ("", "expected such as"),
    ],
)
def test_families_that_cannot_be_are_refused(text: str, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        families_of(text)


def test_groups_that_are_not_there_are_refused() -> None:
    with pytest.raises(PlanError, match=r"no group `widow`.*did you mean `window`"):
        plan_of(ring(groups=(WINDOW,)), "links:1", Maintenance("widow"))
    with pytest.raises(PlanError, match=r"no group `nope`; expected one of window$"):
        plan_of(ring(groups=(WINDOW,)), "links:1", Maintenance("nope"))
    with pytest.raises(PlanError, match=r"no group `nope`; expected a group; the model has none$"):
        plan_of(ring(), "links:1", Maintenance("nope"))
    with pytest.raises(PlanError, match="--fail: no family is named; expected such as links:1"):
        plan_of(ring(), "")
    with pytest.raises(PlanError, match="no group of kind srlg"):
        plan_of(ring(), "srlg")
    assert Groups(GroupKind.SRLG).text == "srlg"


@pytest.mark.parametrize("text", ["links:6", "routers:6", "links:1-6", "links:6+routers:1"])
def test_more_failures_at_once_than_there_are_things_are_refused(text: str) -> None:
    with pytest.raises(PlanError, match=r"--fail: `.*6.*`: the mesh has 5 links and 5 routers; expected fewer"):
        plan_of(ring(5), text)


def test_a_mesh_without_links_has_single_failures_of_routers() -> None:
    alone = Model(routers=[RouterNode(id="A")])
    assert len(plan_of(alone, "links:1,routers:1")) == 2
