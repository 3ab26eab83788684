"""The model: one form, everything wrong told, changed models."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.whatif.model.demands import Demand, Demands
from router.whatif.model.elements import (
    AddressNode,
    Group,
    GroupKind,
    LinkCounter,
    LinkEdge,
    RouterNode,
    SubscriberSite,
    free_link_id,
    link_ids,
)
from router.whatif.model.mesh_model import (
    Model,
    ModelError,
    grown,
    with_costs,
    with_demands,
    with_groups,
    with_links,
    with_subscribers,
    without,
)
from tests.whatif.models import edges, models, square

PARTS = ("routers", "links", "addresses", "subscribers", "demands", "groups", "counters")


def faults(call: Callable[[], object]) -> list[str]:
    """All that is wrong, one line each."""
    with pytest.raises(ModelError) as caught:
        call()
    return [str(finding).removeprefix("error: ") for finding in caught.value.findings]


@given(models(), st.randoms(use_true_random=False))
def test_a_model_is_the_same_in_whatever_order_it_is_made(model: Model, rng: random.Random) -> None:
    model.check()
    shuffled = {}
    for part in PARTS:
        items = list(getattr(model, part))
        rng.shuffle(items)
        shuffled[part] = items
    again = Model(name=model.name, origin="elsewhere", **shuffled)
    assert again == model
    assert again.digest() == model.digest()


@pytest.mark.parametrize(
    "change",
    [
        lambda it: attrs.evolve(it, name="other"),
        lambda it: with_costs(it, {"A--B": 2}),
        lambda it: grown(it, 1.5),
        lambda it: without(it, links=["A--D"]),
        lambda it: with_groups(it, ()),
        lambda it: with_subscribers(it, removed=[("orders", "C")]),
        lambda it: attrs.evolve(it, counters=()),
        lambda it: attrs.evolve(it, addresses=[attrs.evolve(it.addresses[0], treatment="multicast")]),
        lambda it: with_demands(it, [*it.demands, it.demands[0]]),
    ],
)
def test_every_change_is_another_model(change: Callable[[Model], Model]) -> None:
    model = square()
    assert change(model) != model
    assert change(model).digest() != model.digest()


def test_whole_numbers_and_negative_zeros_make_no_other_model() -> None:
    one = Model(routers=[RouterNode(id="A", latitude=0.0)])
    other = Model(routers=[RouterNode(id="A", latitude=-0.0)])
    third = Model(routers=[RouterNode(id="A", latitude=0)])
    assert one.digest() == other.digest() == third.digest()
    rates = [Demands.of([Demand(src="A", dst="B", msgs_per_s=rate, msg_bytes=0.0)]).digest() for rate in (0, 0.0, -0.0)]
    assert len(set(rates)) == 1


def test_demands_are_a_sequence_and_columns_in_one_order() -> None:
    rows = [
        Demand(src="B", dst="A", msgs_per_s=1.0, msg_bytes=5.0),
        Demand(src="A", address="x", msgs_per_s=3.0, msg_bytes=4.0),
        Demand(src="A", dst="B", msgs_per_s=2.0, msg_bytes=4.0, klass="bulk"),
        Demand(src="A", dst="B", msgs_per_s=1.0, msg_bytes=4.0, klass="bulk"),
    ]
    found = Demands.of(rows)
    assert list(found) == [rows[1], rows[3], rows[2], rows[0]]
    assert found[1:3] == (rows[3], rows[2])
    assert found[-1] == rows[0]
    assert (len(found), found.names) == (4, ("A", "B", "bulk", "default", "x"))
    assert found.src.tolist() == [0, 0, 0, 1]
    assert found.dst.tolist() == [-1, 1, 1, 0]
    assert Demands.of(found) is found
    assert found.places(["B", "A"]).tolist() == [1, 0, -1, -1, -1]
    with pytest.raises(ValueError, match="read-only"):
        found.src[0] = 1
    assert found.chosen(np.array([False, False, False, True])).names == ("A", "B", "default")
    assert Demands.of(()).names == ()
    assert list(Demands.of(())) == []


def test_links_are_named_by_their_ends_and_parallel_ones_counted() -> None:
    assert link_ids([("B", "A"), ("A", "C"), ("A", "B"), ("B", "A")]) == ["A--B", "A--C", "A--B#2", "A--B#3"]
    # Two pairs of routers that would have the same text.
    assert link_ids([("a--b", "c"), ("a", "b--c")]) == ["a--b--c", "a--b--c#2"]


class Looked:
    """Ids that are taken; those that are looked for are noted."""

    def __init__(self, *taken: str) -> None:
        self.taken = taken
        self.asked: list[object] = []

    def __contains__(self, name: object) -> bool:
        self.asked.append(name)
        return name in self.taken


def test_a_free_id_is_the_first_one_and_no_more_are_made_than_are_looked_for() -> None:
    taken = Looked("A--B", "A--B#2", "A--B#4", *(f"A--C#{number}" for number in range(2, 1000)))
    assert free_link_id("B", "A", taken) == "A--B#3"
    assert taken.asked == ["A--B", "A--B#2", "A--B#3"]
    assert free_link_id("A", "C", taken) == "A--C"


BAD = {
    "no router": (Model(), ["routers: no router; expected at least one"]),
    "values out of range": (
        Model(
            routers=[RouterNode(id="A b", latitude=91.0, longitude=float("nan")), RouterNode(id="B")],
            links=[attrs.evolve(edges("BB")[0], id="B--B", cost=0, capacity_msgs=0.0)],
        ),
        [
            (
                'routers."A b".id: the text "A b" has a blank, which it may not have;'
                " expected a word of 1 to 255 visible characters, without blanks and `/`, and not `all`"
            ),
            (
                'routers."A b".latitude: 91.0 is out of range; expected a number from -90 to 90 (degrees);'
                " did you mean `90`?"
            ),
            'routers."A b".longitude: nan is out of range; expected a number from -180 to 180 (degrees)',
            "links.B--B.cost: 0 is out of range; expected a whole number from 1 to 65535; did you mean `1`?",
            (
                "links.B--B.capacity_msgs: 0.0 is out of range; expected a number from 1e-06 to 9000000000000"
                " (messages/s); did you mean `1e-06`?"
            ),
            "links.B--B: router `B` is both ends of it; expected two routers",
        ],
    ),
    "ends": (
        attrs.evolve(square(), links=[LinkEdge(id="x", a="B", b="A"), LinkEdge(id="y", a="A", b="b")], groups=()),
        [
            "links.x: `a` is `B` and `b` is `A`; expected the smaller id as `a`; did you mean `A`?",
            "links.y.b: no router `b`; expected a router of the model; did you mean `B`?",
            "counters.A--B.link: no link `A--B`; expected a link of the model",
        ],
    ),
    "twice": (
        attrs.evolve(
            square(),
            routers=[*square().routers, RouterNode(id="A")],
            addresses=[*square().addresses, *square().addresses],
            subscribers=[*square().subscribers, *square().subscribers],
        ),
        [
            "routers.A: it occurs twice; expected each once",
            "addresses.orders: it occurs twice; expected each once",
            "subscribers.orders.C: it occurs twice; expected each once",
        ],
    ),
    "subscribers": (
        attrs.evolve(square(), subscribers=[SubscriberSite(address="order", router="c", count=0)]),
        [
            (
                "subscribers.order.c.count: 0 is out of range; expected a whole number from 1 to 1000000 (subscribers);"
                " did you mean `1`?"
            ),
            "subscribers.order.c.router: no router `c`; expected a router of the model; did you mean `C`?",
            "subscribers.order.c.address: no address `order`; expected an address of the model; did you mean `orders`?",
        ],
    ),
    "groups": (
        attrs.evolve(
            square(),
            groups=[
                Group(name="g", kind=GroupKind.SITE, links=("A-B",), routers=("E", "A", "A")),
                Group(name="h", kind=GroupKind.SITE),
            ],
        ),
        [
            "groups.g.links: no link `A-B`; expected a link of the model; did you mean `A--B`?",
            "groups.g.routers: no router `E`; expected a router of the model",
            "groups.g: a member is given twice; expected each member once",
            "groups.h: nothing belongs to it; expected `links` or `routers`",
        ],
    ),
    "counters": (
        attrs.evolve(square(), counters=[LinkCounter(link="A--B", src="C", messages=-1)]),
        [
            (
                f"counters.A--B.C.messages: -1 is out of range; expected a whole number from 0 to {2**63 - 1}"
                " (messages); did you mean `0`?"
            ),
            "counters.A--B.src: router `C` is no end of it; expected one of its ends",
        ],
    ),
    "demands": (
        attrs.evolve(
            square(),
            demands=[
                Demand(src="A", dst="A", msgs_per_s=1.0, msg_bytes=1.0),
                Demand(src="A", dst="B", address="orders", msgs_per_s=-1.0, msg_bytes=1.0),
                Demand(src="B", msgs_per_s=1.0, msg_bytes=float("inf")),
                Demand(src="E", address="order", msgs_per_s=float("nan"), msg_bytes=1.0),
            ],
        ),
        [
            "demands[3].src: no router `E`; expected a router of the model",
            "demands[3].address: no address `order`; expected an address of the model; did you mean `orders`?",
            "demands[1]: both `dst` and `address`; expected one of them",
            "demands[2]: neither `dst` nor `address`; expected one of them",
            "demands[0].dst: `A` is where the messages come from; expected another router",
            (
                "demands[1].msgs_per_s: -1.0 is out of range; expected a number from 0 to 1000000000000 (messages/s);"
                " did you mean `0`?"
            ),
            "demands[3].msgs_per_s: nan is out of range; expected a number from 0 to 1000000000000 (messages/s)",
            (
                "demands[2].msg_bytes: inf is out of range; expected a number from 0 to 1000000000000 (bytes);"
                " did you mean `1000000000000`?"
            ),
        ],
    ),
    "more than can be counted": (
        attrs.evolve(square(), demands=[Demand(src="A", dst="B", msgs_per_s=1e10, msg_bytes=1e9)]),
        ["demands: all demands together come to 1e+19 bytes/s; expected at most 4.84e+18"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_everything_that_is_wrong_is_told_at_once(name: str) -> None:
    model, expected = BAD[name]
    assert faults(model.check) == expected


def test_of_many_equal_faults_the_first_are_told_and_all_counted() -> None:
    many = [Demand(src="A", dst=f"X{number:02}", msgs_per_s=1.0, msg_bytes=1.0) for number in range(30)]
    told = faults(attrs.evolve(square(), demands=many).check)
    assert len(told) == 21
    assert told[-1] == "demands: 30 demands have a dst that is not in the model, the first 20 are shown"


def test_without_takes_away_all_that_belongs_to_a_router() -> None:
    model = without(square(), routers=["C"])
    assert [router.id for router in model.routers] == ["A", "B", "D"]
    assert [link.id for link in model.links] == ["A--B", "A--D"]
    assert model.subscribers == ()
    assert [demand.address for demand in model.demands] == ["orders"]  # a publisher without a subscriber is one still
    assert model.groups[0].links == ("A--B",)
    assert without(square(), routers=["B"]).counters == ()
    gone = without(square(), links=["A--B", "B--C"], routers=["D"])
    assert gone.groups == ()
    assert len(gone.demands) == 2


@given(models(), st.data())
def test_a_changed_model_can_be_used(model: Model, data: st.DataObject) -> None:
    ids = [router.id for router in model.routers]
    routers = data.draw(st.sets(st.sampled_from(ids), max_size=len(ids) - 1))
    found = without(model, routers=routers)
    assert not routers & {name for demand in found.demands for name in (demand.src, demand.dst)}
    assert len(found.demands) == sum(not {it.src, it.dst} & routers for it in model.demands)
    bigger = grown(model, 2.0)
    assert [it.msgs_per_s for it in bigger.demands] == pytest.approx([2 * it.msgs_per_s for it in model.demands])


def test_subscribers_move_and_are_added() -> None:
    moved = with_subscribers(square(), [SubscriberSite(address="orders", router="A")], removed=[("orders", "C")])
    assert [(site.router, site.count) for site in moved.subscribers] == [("A", 1)]
    more = with_subscribers(square(), [SubscriberSite(address="orders", router="C", count=9)])
    assert [(site.router, site.count) for site in more.subscribers] == [("C", 9)]
    new = attrs.evolve(square(), addresses=[*square().addresses, AddressNode(text="x", treatment="balanced")])
    assert len(with_subscribers(new, [SubscriberSite(address="x", router="A")]).subscribers) == 2


def test_links_and_costs_change() -> None:
    more = with_links(square(), [LinkEdge(id="A--C", a="A", b="C", cost=3)])
    assert [(link.id, link.cost) for link in more.links][:2] == [("A--B", 1), ("A--C", 3)]
    assert {link.id: link.cost for link in with_costs(square(), {"A--D": 7}).links}["A--D"] == 7


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        (("A", "C"), [("A--C", "A", "C", 1, None)]),
        (("C", "A", 4), [("A--C", "A", "C", 4, None)]),
        ([("A", "C"), ("C", "A", 2)], [("A--C", "A", "C", 1, None), ("A--C#2", "A", "C", 2, None)]),
        ("C,A,3,delay_ms=5", [("A--C", "A", "C", 3, 5.0)]),
        (["A,C,1", "B,D,2"], [("A--C", "A", "C", 1, None), ("B--D", "B", "D", 2, None)]),
        ({"a": "D", "b": "B", "delay_ms": 1.5}, [("B--D", "B", "D", 1, 1.5)]),
        (
            [{"a": "A", "b": "B"}, {"id": "x", "a": "A", "b": "C"}],
            [("A--B#2", "A", "B", 1, None), ("x", "A", "C", 1, None)],
        ),
        (LinkEdge(id="y", a="A", b="C", cost=9), [("y", "A", "C", 9, None)]),
    ],
)
def test_a_link_is_added_in_whatever_form_it_is_said(links: object, expected: list[tuple[object, ...]]) -> None:
    before = {link.id for link in square().links}
    added = [link for link in with_links(square(), links).links if link.id not in before]
    assert [(link.id, link.a, link.b, link.cost, link.delay_ms) for link in added] == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda: with_costs(square(), {"A-B": 2}), "links.A-B: the model has no link `A-B`"),
        (lambda: with_costs(square(), {"A--B": 70000}), "links.A--B.cost: 70000 is out of range"),
        (lambda: without(square(), routers=["a"]), "routers.a: the model has no router `a`"),
        (lambda: without(square(), routers=["A", "B", "C", "D"]), "routers: no router"),
        (lambda: with_links(square(), edges("AB")), "links.A--B: it occurs twice"),
        (
            lambda: with_links(square(), [{"a": "A"}]),
            "links: {'a': 'A'}: `b` is missing; expected a dict of id, a, b, cost",
        ),
        (
            lambda: with_links(square(), {"a": "A", "b": "C", "costs": 2}),
            ": no field `costs`; expected a dict of id, a, b",
        ),
        (lambda: with_links(square(), "A,C,x"), "links: `A,C,x`: `x` is no cost; expected a whole number from 1"),
        (lambda: with_links(square(), "A,C"), "links: `A,C`; expected A,B,COST, A and B routers"),
        (lambda: with_links(square(), ("A", "Z", 2)), "links.A--Z"),
        (
            lambda: with_links(square(), [("A", "C", "2")]),
            "links: the cost '2' of type str; expected a whole number from 1",
        ),
        (
            lambda: with_links(square(), 7),
            "links: 7 of type int; expected a list of links, each a LinkEdge, a text such as",
        ),
        (lambda: with_links(square(), [("A", 2)]), "links: ('A', 2) of type tuple; expected a list of links, each"),
        (lambda: with_groups(square(), ["g"]), "groups: 'g' of type str"),  # type: ignore[list-item]
        (lambda: with_demands(square(), [{"src": "A"}]), "of type dict; expected a list of Demand"),  # type: ignore[list-item]
        (lambda: with_subscribers(square(), removed=[("orders", "D")]), "has no subscriber `orders at D`"),
        (lambda: grown(square(), float("nan")), "demands: growth by nan; expected a factor"),
        (lambda: grown(square(), -1), "demands: growth by -1"),
        (lambda: grown(square(), "2"), "demands: growth by '2' of type str; expected a factor from 0"),  # type: ignore[arg-type]
        (lambda: grown(square(), True), "demands: growth by True of type bool"),
        (lambda: grown(square(), 10**400), "; expected a factor from 0 to 1000000"),
        (
            lambda: with_costs(square(), {"A--B": 1.5}),  # type: ignore[dict-item]
            "links.A--B.cost: 1.5 of type float; expected a whole number from 1 to 65535",
        ),
        (lambda: with_costs(square(), {"A--B": True}), "links.A--B.cost: True of type bool"),
        (lambda: with_costs(square(), {"A--B": float("nan")}), "cost: nan of type float"),  # type: ignore[dict-item]
        (lambda: with_costs(square(), {"A--B": "3"}), "cost: '3' of type str"),  # type: ignore[dict-item]
        (lambda: with_costs(square(), [("A--B", 3)]), "expected a dict of costs by link id"),  # type: ignore[arg-type]
        (lambda: with_links(square(), [("A", "C", True)]), "the cost True of type bool"),
        (
            lambda: with_links(square(), {"a": "A", "b": "C", "delay_ms": "3"}),
            "links.A--C.delay_ms: '3' of type str; expected a number from 0 to 1000000 (milliseconds), or None",
        ),
        (lambda: with_links(square(), {"a": "A", "b": "C", "id": 5}), "links.5.id: 5 of type int; expected text"),
        (
            lambda: with_demands(square(), [Demand(src="A", dst="B", msgs_per_s="1", msg_bytes=2)]),  # type: ignore[arg-type]
            "demands[0].msgs_per_s: '1' of type str; expected a number",
        ),
        (
            lambda: with_demands(square(), [Demand(src="A", dst="B", msgs_per_s=True, msg_bytes=2)]),
            "demands[0].msgs_per_s: True of type bool",
        ),
        (
            lambda: with_groups(square(), [Group(name="g", kind="rack", links=("A--B",))]),  # type: ignore[arg-type]
            "groups.g.kind: 'rack' of type str; expected one of `srlg`, `site`, `maintenance`",
        ),
        (
            lambda: with_groups(square(), [Group(name="g", kind=GroupKind.SRLG, links=(1,))]),  # type: ignore[arg-type]
            "groups.g.links: (1,) of type tuple; expected a list of texts",
        ),
        (
            lambda: with_subscribers(square(), [SubscriberSite(address="orders", router="A", count=1.5)]),  # type: ignore[arg-type]
            ".count: 1.5 of type float; expected a whole number",
        ),
        (lambda: without(square(), routers=7), "routers: 7 of type int; expected ids of routers"),  # type: ignore[arg-type]
    ],
)
def test_a_change_that_cannot_be_made_is_refused(change: Callable[[], Model], expected: str) -> None:
    assert any(expected in line for line in faults(change))


def test_one_text_is_one_name_and_not_its_letters() -> None:
    assert without(square(), routers="A") == without(square(), routers=["A"])
    assert without(square(), links="A--B") == without(square(), links=["A--B"])
    one = Group(name="g", kind=GroupKind.SRLG, links="A--B")  # type: ignore[arg-type]
    assert with_groups(square(), [one]) == with_groups(square(), one)  # type: ignore[arg-type]
    assert with_groups(square(), [one]).groups[0].links == ("A--B",)


def test_numbers_of_numpy_are_numbers_of_a_model() -> None:
    three = np.int64(3)
    assert with_costs(square(), {"A--B": three}).digest() == with_costs(square(), {"A--B": 3}).digest()  # type: ignore[dict-item]
    assert with_links(square(), ("A", "C", three)).digest() == with_links(square(), ("A", "C", 3)).digest()
    said = {"a": "A", "b": "C", "delay_ms": np.float32(2.5)}
    assert with_links(square(), said) == with_links(square(), {**said, "delay_ms": 2.5})
    assert grown(square(), np.float32(2)) == grown(square(), 2) == grown(square(), np.int8(2))  # type: ignore[arg-type]


def test_a_model_with_values_of_another_kind_is_not_used() -> None:
    odd = attrs.evolve(square().links[0], cost=1.5)  # type: ignore[arg-type]
    assert faults(attrs.evolve(square(), links=(odd, *square().links[1:])).check) == [
        f"links.{odd.id}.cost: 1.5 of type float; expected a whole number from 1 to 65535"
    ]
