"""What operators know of a mesh beside its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_config.findings import SettingsError
from mesh_config.models import Treatment
from router.whatif.formats.details_file import with_details
from router.whatif.formats.importer import completed
from router.whatif.formats.mesh_settings import built_in_treatment
from router.whatif.model.elements import Group, GroupKind, SubscriberSite
from router.whatif.model.mesh_model import Model
from tests.whatif.models import square


def detailed(tmp_path: Path, text: str, model: Model | None = None) -> Model:
    file = tmp_path / "groups.yaml"
    file.write_text(text, encoding="utf-8")
    return with_details(model or square(), file, built_in_treatment)


def faults(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        detailed(tmp_path, text)
    return [str(finding).removeprefix(f"{tmp_path}/groups.yaml") for finding in caught.value.findings]


def test_everything_that_may_be_said_of_a_mesh(tmp_path: Path) -> None:
    model = detailed(
        tmp_path,
        """\
defaults:
  router: {failures_per_year: 0.5, repair_hours: 6}
  link: {failures_per_year: 2, capacity_bytes: 1.25e8}
routers:
  - {id: A, site: west, latitude: 52.5, longitude: 13.4, failures_per_year: 3}
links:
  - {id: A--B, cost: 7, delay_ms: 1.5, capacity_bytes: 1000, capacity_msgs: 5}
addresses:
  - {text: /news/, treatment: multicast}
subscribers:
  - {address: "amqp:/orders", router: A}
  - {address: orders, router: C, credit: 7}
  - {address: broadcast/all, router: B, count: 3, credit: 30, service_ms: 2}
  - {address: news, router: D}
groups:
  - {name: window, kind: maintenance, routers: [B, A]}
  - {name: duct, kind: srlg, links: [C--D, A--B], repair_hours: 8}
""",
    )
    routers = {router.id: router for router in model.routers}
    assert (routers["A"].site, routers["A"].latitude, routers["A"].failures_per_year) == ("west", 52.5, 3.0)
    assert (routers["A"].repair_hours, routers["B"].failures_per_year, routers["B"].site) == (6.0, 0.5, "east")
    links = {link.id: link for link in model.links}
    assert (links["A--B"].cost, links["A--B"].delay_ms, links["A--B"].capacity_bytes) == (7, 1.5, 1000.0)
    assert (links["A--B"].capacity_msgs, links["C--D"].capacity_bytes, links["C--D"].cost) == (5.0, 1.25e8, 1)
    assert {address.text: address.treatment for address in model.addresses} == {
        "orders": Treatment.CLOSEST,
        "news": Treatment.MULTICAST,
        "broadcast/all": Treatment.MULTICAST,
    }
    assert model.subscribers == (
        SubscriberSite(address="broadcast/all", router="B", count=3, credit=30, service_ms=2.0),
        SubscriberSite(address="news", router="D"),
        SubscriberSite(address="orders", router="A"),
        SubscriberSite(address="orders", router="C", credit=7),
    )
    assert model.groups == (
        Group(name="duct", kind=GroupKind.SRLG, links=("A--B", "C--D"), repair_hours=8.0),
        Group(name="window", kind=GroupKind.MAINTENANCE, routers=("A", "B")),
    )


def test_planned_links_are_added_and_have_what_links_have(tmp_path: Path) -> None:
    model = detailed(
        tmp_path,
        """\
defaults: {link: {capacity_msgs: 50}}
routers: [{id: A, latitude: 50, longitude: 8}, {id: C, latitude: 52, longitude: 8}]
""",
    )
    model = detailed(
        tmp_path,
        """\
defaults: {link: {capacity_msgs: 70}}
new_links:
  - {a: C, b: A, cost: 3}
  - {a: A, b: B, delay_ms: 2, capacity_msgs: 9}
groups: [{name: trench, kind: srlg, links: [A--C, "A--B#2"]}]
""",
        model,
    )
    links = {link.id: link for link in model.links}
    assert (links["A--C"].a, links["A--C"].b, links["A--C"].cost, links["A--C"].capacity_msgs) == ("A", "C", 3, 70.0)
    assert links["A--C"].delay_ms == pytest.approx(1.112, abs=0.001), "fibre along two degrees"
    assert (links["A--B#2"].delay_ms, links["A--B#2"].capacity_msgs) == (2.0, 9.0)
    assert links["A--B"].capacity_msgs == 50.0
    assert len(links) == len(square().links) + 2


def test_planned_links_lead_from_one_router_to_another(tmp_path: Path) -> None:
    assert faults(tmp_path, "new_links:\n  - {a: A, b: X}\n  - {a: B, b: B}\n  - {a: A}\n") == [
        ":2: error: new_links[0].b: no router `X`; expected a router of the model",
        ":3: error: new_links[1]: a link from `B` to itself; expected two routers",
        ":4: error: new_links[2].b: `b` is missing; expected text",
    ]


def test_defaults_take_nothing_away(tmp_path: Path) -> None:
    model = detailed(tmp_path, "links: [{id: A--B, failures_per_year: 9}]")
    model = detailed(tmp_path, "defaults: {link: {failures_per_year: 1}}", model)
    assert [link.failures_per_year for link in model.links] == [9.0, 1.0, 1.0, 1.0]


def test_defaults_of_a_later_file_replace_those_of_an_earlier_one_alone(tmp_path: Path) -> None:
    usual = "defaults: {link: {capacity_msgs: 1000, delay_ms: 1}, router: {repair_hours: 3}}"
    other = "defaults: {link: {capacity_msgs: 400}, router: {repair_hours: 4}}"
    texts = (
        f"{usual}\nlinks: [{{id: A--B, capacity_msgs: 50}}]\n",
        f"{other}\nlinks: [{{id: B--C, capacity_msgs: 60}}]\n",
        "defaults: {link: {capacity_msgs: 300}}\n",
    )
    files = [tmp_path / f"{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    model, _ = completed(square(), details=files, demands=None)
    capacities = {link.id: link.capacity_msgs for link in model.links}
    assert capacities == {"A--B": 50, "B--C": 60, "C--D": 300, "A--D": 300}
    assert {link.delay_ms for link in model.links} == {1}
    assert {router.repair_hours for router in model.routers} == {4}


def test_nothing_said_changes_nothing(tmp_path: Path) -> None:
    assert detailed(tmp_path, "groups: []") == square()


def test_all_faults_are_told_with_their_lines(tmp_path: Path) -> None:
    text = """\
defaults: {link: {failure_per_year: 2, repair_hours: -4}, routers: {}}
routers:
  - {id: a}
  - {site: x}
links:
  - {id: B--A, cost: 0}
  - {id: A--B, capacity_bytes: fast}
  - {id: A--B, a: A}
  - {id: B--C}
  - {id: B--C}
addresses: {text: orders}
subscribers:
  - {address: orders, router: E, count: 0}
  - {address: orders, router: c}
  - {address: orders, router: c}
group: 3
groups:
  - {name: duct 7, kind: slrg, links: [A--C, A--B]}
  - {name: duct 8, kind: site}
  - {name: duct 9, kind: site, links: [A--B, A-C], routers: [d]}
"""
    assert faults(tmp_path, text) == [
        (
            ":1: error: defaults.link.failure_per_year: unknown key `failure_per_year`;"
            " did you mean `failures_per_year`?"
        ),
        (
            ":1: error: defaults.link.repair_hours: -4.0 is out of range; expected a number from 0 to 1000000 (hours);"
            " did you mean `0`?"
        ),
        ":1: error: defaults.routers: unknown key `routers`; did you mean `router`?",
        ":3: error: routers[0].id: no router `a`; expected a router of the model; did you mean `A`?",
        ":4: error: routers[1].id: `id` is missing; expected text",
        ":6: error: links[0].cost: 0 is out of range; expected a whole number from 1 to 65535; did you mean `1`?",
        ":6: error: links[0].id: no link `B--A`; expected a link of the model; did you mean `A--B`?",
        (
            ':7: error: links[1].capacity_bytes: the text "fast";'
            " expected a number from 1e-06 to 4000000000000000000 (bytes/s)"
        ),
        (
            ":8: error: links[2].a: unknown key `a`; expected one of id, cost, delay_ms, capacity_msgs, capacity_bytes,"
            " failures_per_year, repair_hours"
        ),
        ":10: error: links[4]: `B--C` is given twice, first in line 9; expected each once",
        ":11: error: addresses: a mapping; expected a list",
        (
            ":13: error: subscribers[0].count: 0 is out of range;"
            " expected a whole number from 1 to 1000000 (subscribers); did you mean `1`?"
        ),
        ":13: error: subscribers[0].router: no router `E`; expected a router of the model",
        ":14: error: subscribers[1].router: no router `c`; expected a router of the model; did you mean `C`?",
        ":15: error: subscribers[2]: `orders at c` is given twice, first in line 14; expected each once",
        ":15: error: subscribers[2].router: no router `c`; expected a router of the model; did you mean `C`?",
        ":16: error: group: unknown key `group`; did you mean `groups`?",
        (
            ':18: error: groups[0].kind: the text "slrg"; expected one of `srlg`, `site`, `maintenance`;'
            " did you mean `srlg`?"
        ),
        ":18: error: groups[0].links[0]: no link `A--C`; expected a link of the model; did you mean `A--B`?",
        ":19: error: groups[1]: nothing belongs to it; expected `links` or `routers`",
        ":20: error: groups[2].links[1]: no link `A-C`; expected a link of the model",
        ":20: error: groups[2].routers[0]: no router `d`; expected a router of the model; did you mean `D`?",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [(":1: error: the file is empty; expected a mapping with `defaults`, `routers`, `links`, `new_links`,"
 " `addresses`, `subscribers`, `groups`")]),
        ("- a", [(":1: error: a list; expected a mapping with `defaults`, `routers`, `links`, `new_links`,"
                 " `addresses`, `subscribers`, `groups`")]),
        ("groups: [\n", [(":2: error: not readable as YAML: while parsing a flow node,"
                         " did not find expected node content")]),
        ("groups: [{name: g, kind: srlg, routers: [A, A]}]",
         [": error: groups.g: a member is given twice; expected each member once"]),
        ("subscribers: [{address: '/', router: A}]",
         [(": error: addresses.\"\".text: the text \"\" is empty; expected"
" text, not empty and without control characters"),
          (": error: subscribers.\"\".A.address: the text \"\" is empty; expected text,"
          " not empty and without control characters")]),
    ],
)  # fmt: skip
def test_a_file_that_says_nothing_usable_is_refused(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert faults(tmp_path, text) == expected
