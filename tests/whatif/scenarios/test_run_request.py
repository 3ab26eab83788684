"""What operators ask of a run: changes, growth, and what is said when it can't be."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from mesh_config.models import Treatment
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, LinkEdge, RouterNode, SubscriberSite
from router.whatif.model.mesh_model import Model, ModelError
from router.whatif.scenarios.run_request import Request, growth_factors
from router.whatif.scenarios.scenario_plan import PlanError

MODEL = Model(
    routers=[RouterNode(id=name) for name in "ABC"],
    links=[LinkEdge(id="A--B", a="A", b="B"), LinkEdge(id="B--C", a="B", b="C", cost=2)],
    addresses=[AddressNode(text="q", treatment=Treatment.CLOSEST)],
    subscribers=[SubscriberSite(address="q", router="C", count=2, credit=200, service_ms=1.5)],
    demands=[Demand(src="A", address="q", msgs_per_s=10, msg_bytes=100)],
)


def variants(**fields: object) -> dict[str, Model]:
    return dict(Request(**fields).variants(MODEL))  # type: ignore[arg-type]


def test_what_is_not_changed_is_the_mesh_as_it_is() -> None:
    assert variants() == {"base": MODEL}


def test_all_changes_together_are_one_variant() -> None:
    found = variants(
        costs=("A--B=7",), links=("C,A,3", "B,A,4"), moves=("q,C,B",), subscribers=("q,A",), growth="1:1.5:0.25"
    )
    assert list(found) == [
        "base", "changed", "growth 1.25", "changed, growth 1.25", "growth 1.5", "changed, growth 1.5",
    ]  # fmt: skip
    changed = found["changed"]
    assert [(link.id, link.cost) for link in changed.links] == [("A--B", 7), ("A--B#2", 4), ("A--C", 3), ("B--C", 2)]
    assert changed.subscribers == (
        SubscriberSite(address="q", router="A", count=1, credit=100, service_ms=1.5),
        SubscriberSite(address="q", router="B", count=2, credit=200, service_ms=1.5),
    )
    assert found["changed, growth 1.5"].demands[0].msgs_per_s == 15
    assert found["base"] == MODEL


def test_what_is_said_of_an_added_link_is_its_own() -> None:
    links = ("A,C,3,delay_ms=1.5, capacity_bytes=1e6", "A,C,3")
    _, known, unknown, _ = variants(links=links)["changed"].links
    assert (known.id, known.delay_ms, known.capacity_msgs, known.capacity_bytes) == ("A--C", 1.5, None, 1e6)
    assert (unknown.id, unknown.delay_ms, unknown.capacity_bytes) == ("A--C#2", None, None)


def test_subscribers_that_come_to_others_join_them() -> None:
    (site,) = variants(subscribers=("q,C",))["changed"].subscribers
    assert (site.count, site.credit) == (3, 300)
    assert variants(moves=("q,C,C",))["changed"] == MODEL


SITES = attrs.evolve(
    MODEL,
    subscribers=[
        SubscriberSite(address="q", router="A", count=4, credit=0, service_ms=None),
        SubscriberSite(address="q", router="B", count=1, credit=10, service_ms=1.0),
        SubscriberSite(address="q", router="C", count=3, credit=600, service_ms=5.0),
    ],
)


@pytest.mark.parametrize(
    ("fields", "router", "expected"),
    [
        ({"subscribers": ("q,C",)}, "C", (4, 800, 5.0)),
        ({"subscribers": ("q,A",)}, "A", (5, 0, None)),
        ({"moves": ("q,B,C",)}, "C", (4, 610, 4.0)),
        ({"moves": ("q,C,B",)}, "B", (4, 610, 4.0)),
        ({"moves": ("q,A,C",)}, "C", (7, 600, None)),
        ({"moves": ("q,C,A",)}, "A", (7, 600, None)),
    ],
)
def test_who_joins_others_is_like_them_or_makes_a_mean_with_them(
    fields: dict[str, Any], router: str, expected: tuple[int, int, float | None]
) -> None:
    changed = dict(Request(**fields).variants(SITES))["changed"]
    (site,) = (each for each in changed.subscribers if each.router == router)
    assert (site.count, site.credit, site.service_ms) == expected


def test_subscribers_that_grant_nothing_are_no_more_generous_elsewhere() -> None:
    model = attrs.evolve(MODEL, subscribers=[SubscriberSite(address="q", router="C", count=4, credit=0)])
    changed = dict(Request(subscribers=("q,A",)).variants(model))["changed"]
    assert [(site.router, site.count, site.credit) for site in changed.subscribers] == [("A", 1, 0), ("C", 4, 0)]


@pytest.mark.parametrize(
    ("text", "factors"),
    [("1:2:0.5", "1.5 2"), ("0.9:1.1:0.1", "0.9 1.1"), ("1.10", "1.1"), ("1", ""), ("", ""), ("10:30:10", "10 20 30")],
)
def test_growth_has_both_its_ends(text: str, factors: str) -> None:
    assert " ".join(map(str, growth_factors(text))) == factors


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"growth": "1:2"}, "--growth: `1:2`; expected FROM:TO:STEP"),
        ({"growth": "0:2:1"}, "each above 0"),
        ({"growth": "1:nan:1"}, "each above 0"),
        ({"growth": "2:1:0.1"}, "`2:1:0.1`: FROM, 2, is above TO, 1; .*; did you mean `1:2:0.1`"),
        ({"growth": "1:2:5"}, "no step ends at TO, 2; .*this one ends at 1; did you mean `1:2:1`"),
        ({"growth": "1:2:0.3"}, "no step ends at TO, 2; .*this one ends at 1.9; did you mean `1:2:0.25`"),
        ({"growth": "0.0000001:123456.789:500"}, "this one ends at 123000.0000001$"),
        ({"growth": "2e6"}, "--growth: `2000000`: demands: growth by 2000000.0; expected a factor from 0 to 1000000"),
        ({"families": ("links:1",)}, r"families: \('links:1',\); expected text, as after `--fail`"),
        ({"growth": 2}, "growth: 2; expected text, as after `--growth`"),
        ({"sample": -1}, "sample: -1; expected a whole number from 1"),
        ({"sample": 1.5}, "sample: 1.5; expected a whole number from 1"),
        ({"seed": None}, "seed: None; expected a whole number from 0"),
        ({"growth": "1:2:0.00001"}, "100001 steps"),
        ({"growth": "1:2:1e-40"}, "--growth: `1:2:1e-40` has too many steps; expected 1 to 1000 steps"),
        ({"growth": "1e9999999"}, "each above 0"),
        ({"growth": "1:2:1e-9999999"}, "each above 0"),
        ({"costs": ("A--B",)}, "--cost: `A--B`; expected LINK=COST"),
        ({"costs": ("A--B=x",)}, "`x` is no cost"),
        ({"costs": ("A--B=" + "1" * 5000,)}, "` is no cost; expected a whole number from 1"),
        ({"links": ("A,B," + "1" * 5000,)}, "` is no cost; expected a whole number from 1"),
        ({"costs": ("A--Bee=3",)}, "no link `A--Bee`.*did you mean `A--B`"),
        ({"costs": ("B--A=3",)}, "no link `B--A`.*did you mean `A--B`"),
        ({"costs": ("A--B=0",)}, "cost"),
        ({"costs": ("A--B=2", "A--B=3")}, "--cost: `A--B=3`: the cost of `A--B` is given twice; expected each link"),
        (
            {"links": ("A,C,3,delay=1",)},
            "`A,C,3,delay=1`: `delay=1`; expected FIELD=NUMBER, each once, of delay_ms, capacity_msgs, capacity_bytes",
        ),
        ({"links": ("A,C,3,delay_ms=1,delay_ms=2",)}, "`delay_ms=2`; expected FIELD=NUMBER, each once"),
        ({"links": ("A,C,3,delay_ms=soon",)}, "`soon` is no number; expected delay_ms=NUMBER"),
        ({"links": ("A,C,3,delay_ms=-1",)}, "delay_ms"),
        ({"links": ("A,C,3,capacity_msgs=nan",)}, "capacity_msgs"),
        ({"links": ("A,3",)}, "--add-link: `A,3`; expected A,B,COST"),
        ({"links": ("A,Z,3",)}, "Z"),
        ({"links": ("A,Z,C,3",)}, "--add-link: `A,Z,C,3`; expected A,B,COST, A and B routers"),
        (
            {"moves": ("q,A,B",)},
            "--move-subscriber: `q,A,B`: the model has no subscriber of `q` at `A`; expected one of C",
        ),
        ({"moves": ("z,A,B",)}, "--move-subscriber: `z,A,B`: the model has no subscriber of `z`; expected one of q"),
        ({"costs": ("A-B=2",)}, "--cost: `A-B=2`: the model has no link `A-B`; did you mean `A--B`?"),
        ({"costs": ("A--B=70000",)}, "--cost: links.A--B.cost: 70000 is out of range"),
        ({"links": ("A,G,2",)}, "--add-link: `A,G,2`: the model has no router `G`; expected one of A, B and C"),
        ({"subscribers": ("new,C",)}, "--add-subscriber: `new,C`: the model has no address `new`; expected one of"),
        ({"moves": ("q,A",)}, "expected ADDRESS,FROM,TO"),
        ({"moves": ("q,C,Z",)}, "Z"),
        ({"subscribers": ("q",)}, "expected ADDRESS,ROUTER"),
        ({"subscribers": ("r,A",)}, "r"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, object], words: str) -> None:
    with pytest.raises((PlanError, ModelError), match=words):
        variants(**fields)


def test_one_text_alone_is_given_as_it_is() -> None:
    assert Request(links="A,C,2", costs=["A--B=3"]) == Request(links=("A,C,2",), costs=("A--B=3",))


def test_a_request_reads_back() -> None:
    request = Request(families="links:2", maintenance=("window",), costs=("A--B=7",), sample=5, seed=3)
    assert Request.from_json(request.to_json()) == request


def test_a_link_can_be_added_between_routers_whose_ids_have_commas() -> None:
    model = Model(routers=[RouterNode(id=router) for router in ("a", "a,b", "b,c", "c", "x=1")])
    (_, changed), *_ = [
        item for item in Request(links=("a,b , x=1,2,delay_ms=3",)).variants(model) if item[0] != "base"
    ]
    (link,) = changed.links
    assert (link.a, link.b, link.cost, link.delay_ms) == ("a,b", "x=1", 2, 3.0)
    with pytest.raises(
        PlanError, match="`a` and `b,c` or `a,b` and `c`; expected router ids that can be distinguished"
    ):
        list(Request(links=("a,b,c,1",)).variants(model))
