"""Explanations: what they say is what the mesh does, and what is not there is refused with the nearest name."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.cli import main
from router.whatif.analysis.explain import (
    BaseAndScenario,
    Explanation,
    explain_address,
    explain_link,
    explain_pair,
    explain_router,
    explain_scenario,
)
from router.whatif.analysis.spof import spof_rows
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.report import finish_run
from router.whatif.scenarios.run_request import Request
from router.whatif.wording import listed
from tests.whatif.runs import everything, losing, made, relieved
from tests.whatif.small import address, demand, mesh, models, site


def square(**parts: Any) -> Model:
    """A - B - C - D - A, and E at C."""
    return mesh(
        "A-B~1 B-C~1 C-D~2 D-A~2 C-E~1",
        capacity_msgs=100.0,
        addresses=[address("q"), address("news", Treatment.MULTICAST)],
        subscribers=[site("q", "E", credit=1), site("news", "B"), site("news", "D")],
        demands=[
            demand("A", "C", 30, is_address=False),
            demand("A", "q", 50),
            demand("C", "news", 20),
            demand("E", "A", 10, is_address=False),
        ],
        **parts,
    )


def without_capacity(model: Model, link: str) -> Model:
    links = [attrs.evolve(one, capacity_msgs=None) if one.id == link else one for one in model.links]
    return attrs.evolve(model, links=links)


def rows(found: Explanation, title: str) -> list[dict[str, object]]:
    listing = next(each for each in found.listings if each.title.startswith(title))
    return [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]


def said(found: Explanation) -> str:
    return "\n".join(found.sentences)


# Scenarios


def test_a_scenario_tells_who_loses_whom_and_what_is_lost() -> None:
    found = explain_scenario(BaseAndScenario.of_model(square(), down=["C"]))
    assert found.title == "Router C down"
    assert "6 ordered pairs of routers that are up lose connectivity." in said(found)
    assert "E can't reach A, B and D." in said(found)
    assert "130 msg/s reach nobody, 100 % of what should arrive." in said(found)
    assert rows(found, "Affected addresses")[0] == {
        "address": "q", "subscriber routers left": 1, "subscriber routers lost": 0, "starved publishers": 1,
        "msg/s lost": 50.0,
    }  # fmt: skip
    assert found.marks.failed_routers == {"C"}


def test_a_scenario_tells_what_gets_more_to_carry_and_which_paths_grow() -> None:
    found = explain_scenario(BaseAndScenario.of_model(square(), down=["B--C"]))
    assert "All routers that are up still reach each other, as far as they did before." in said(found)
    assert "Every message still finds its way." in said(found)
    assert "The busiest link is A--D from A to D: 80 %, 0 % when nothing fails." in said(found)
    more = rows(found, "Links whose load rises")
    assert (more[0]["link"], more[0]["msg/s before"], more[0]["msg/s"]) == ("A--D", 0, 80)
    assert rows(found, "Paths that grow")[0] == {
        "from": "B", "to": "C", "cost before": 1, "cost": 3, "path": "B - A - D - C",
    }  # fmt: skip


@pytest.mark.parametrize(("down", "sentence"), [(["B"], "No two routers are up."), (["A", "B"], "No router is up.")])
def test_of_less_than_two_routers_it_is_not_said_that_they_reach_each_other(down: list[str], sentence: str) -> None:
    found = explain_scenario(BaseAndScenario.of_model(mesh("A-B"), down=down))
    assert sentence in found.sentences
    assert "reach each other" not in said(found)


def test_nothing_down_is_the_mesh_as_it_is() -> None:
    found = explain_scenario(BaseAndScenario.of_model(square()))
    assert found.title == "Nothing down"
    assert found.sentences[0] == "Nothing fails: this is the base state of the mesh."
    assert "Every message still finds its way." in said(found)


@given(models(), st.data())
def test_any_scenario_of_any_mesh_is_explained_as_the_kernel_has_it(model: Model, data: st.DataObject) -> None:
    names = [router.id for router in model.routers] + [link.id for link in model.links]
    down = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=3))
    subject = BaseAndScenario.of_model(model, down=down)
    found = explain_scenario(subject)
    kernel = subject.now.kernel
    lost = kernel.unreachable_pairs - kernel.dead_end_pairs
    assert any(re.match(f"{lost:,} ordered pairs? of routers that are up lose", it) for it in found.sentences) == bool(
        lost
    )
    json.dumps(found.plain(), allow_nan=False)


# Links and routers


def test_a_link_tells_what_it_carries_and_what_its_loss_does() -> None:
    found = explain_link(BaseAndScenario.of_model(square()), "C--E")
    assert "It joins C and E at cost 1, 1 ms one way, and can carry 100 msg/s each way." in said(found)
    assert (
        "without it 8 ordered pairs of other routers lose connectivity and 1 demand of others finds no subscriber,"
        in said(found)
    )
    assert "60 msg/s then reach nobody." in said(found)
    assert [(row["from"], row["msg/s"]) for row in rows(found, "Load by direction")] == [("C", 50), ("E", 10)]
    assert rows(found, "Demands on the link: all 2") == [
        {"from": "A", "to": "E", "address": "q", "msg/s": 50.0},
        {"from": "E", "to": "A", "address": None, "msg/s": 10.0},
    ]


def test_listings_are_as_long_as_is_asked(tmp_path: Path) -> None:
    subject = BaseAndScenario.of_model(square())
    subject.shown = 1
    assert [row["to"] for row in rows(explain_link(subject, "C--E"), "Demands on the link: the largest 1 of 2")] == [
        "E"
    ]
    write_model(square(), tmp_path)
    found = CliRunner().invoke(main, ["whatif", "explain", str(tmp_path), "--link", "C--E", "--limit", "1"])
    assert "Demands on the link: the largest 1 of 2" in found.output


def test_a_parallel_link_says_which_is_in_use() -> None:
    model = mesh("A-B:2 A-B:1")
    subject = BaseAndScenario.of_model(model)
    assert "Of 2 parallel links it stands by, A--B#2 is in use." in said(explain_link(subject, "A--B"))
    assert "Of 2 parallel links it is the one in use." in said(explain_link(subject, "A--B#2"))


def test_a_router_tells_its_clients_its_links_and_what_its_loss_does() -> None:
    found = explain_router(BaseAndScenario.of_model(square()), "E")
    assert "It has 1 neighbor." in said(found)
    assert "Its publishers send 10 msg/s." in said(found)
    assert "It is the only router with subscribers of q." in said(found)
    assert "Without it all others still reach each other, as far as they do now." in said(found)
    assert "It is a single point of failure: without it 1 address has no subscriber and 1 demand of others" in said(
        found
    )
    assert "60 msg/s then reach nobody, with the messages from and to itself." in said(found)
    (row,) = rows(found, "Its links")
    assert (row["neighbor"], row["msg/s out"], row["msg/s in"]) == ("C", 10, 50)


# Pairs


def test_a_pair_tells_its_path_what_takes_it_away_and_the_ways_around() -> None:
    found = explain_pair(BaseAndScenario.of_model(square()), "A", "E")
    assert found.sentences[0] == "The path: A - B - C - E (cost 3, 3 ms one way)."
    assert "To q: 50 msg/s." in said(found)
    assert "Without any one of these there is no path. 1 router: C; 1 link: C--E." in said(found)
    assert [(row["without link"], row["cost"], row["path"]) for row in rows(found, "When one link")] == [
        ("A--B", 3, "A - D - C - E"), ("B--C", 3, "A - D - C - E"), ("C--E", None, "none"),
    ]  # fmt: skip
    assert found.marks.path == ("A--B", "B--C", "C--E")


def test_a_pair_in_a_scenario_tells_both_paths() -> None:
    found = explain_pair(BaseAndScenario.of_model(square(), down=["B"]), "A", "E")
    assert found.sentences[:2] == (
        "With router B down the path is A - D - C - E (cost 3, 5 ms one way).",
        "When nothing fails: A - B - C - E (cost 3, 3 ms one way).",
    )
    assert (found.marks.path, found.marks.old_path) == (("A--D", "C--D", "C--E"), ("A--B", "B--C", "C--E"))
    cut = explain_pair(BaseAndScenario.of_model(square(), down=["C--E"]), "A", "E")
    assert cut.sentences[0] == "With link C--E down there is no path."


def test_pairs_without_a_path_and_of_one_router_are_told() -> None:
    assert "There is no path between them" in said(explain_pair(BaseAndScenario.of_model(mesh("A-B C")), "A", "C"))
    assert "They are the same router" in said(explain_pair(BaseAndScenario.of_model(mesh("A-B C")), "A", "A"))


# Addresses


def test_an_address_tells_who_sends_to_whom_and_whether_credit_is_enough() -> None:
    found = explain_address(BaseAndScenario.of_model(square()), "q")
    assert "It is closest: each message goes to the nearest router with subscribers." in said(found)
    assert "All of it reaches a subscriber." in said(found)
    assert "All its subscribers are at E: without that router it has none." in said(found)
    assert "keeps some of its publishers from all subscribers: link C--E, router C and router E." in said(found)
    (row,) = rows(found, "Messages offered")
    assert (row["from"], row["to"], row["round trip, ms"], row["credit needed"], row["enough"]) == (
        "A",
        "E",
        6,
        1,
        "yes",
    )


def test_what_finds_no_credit_is_said_to_be_offered_and_not_sent() -> None:
    model = mesh(
        "A-B~1",
        addresses=[address("q", Treatment.BALANCED)],
        subscribers=[site("q", "B", credit=1, service_ms=8)],
        demands=[demand("A", "q", 250)],
    )
    found = explain_address(BaseAndScenario.of_model(model), "q")
    assert "150 msg/s of it, from A, reach nobody." in said(found)
    assert "What finds no credit is listed below as offered to the nearest router with subscribers." in said(found)
    (row,) = rows(found, "Messages offered on each path")
    assert (row["msg/s offered"], row["msg/s possible"], row["enough"]) == (250, 100, "no")
    cut = explain_address(BaseAndScenario.of_model(model, down=["A--B"]), "q")
    assert "offered" not in said(cut), "no credit would help"


def test_a_multicast_survives_the_loss_of_one_of_its_routers() -> None:
    found = explain_address(BaseAndScenario.of_model(square()), "news")
    assert "It has subscribers at 2 routers, so that no single router takes all of them away." in said(found)
    found = explain_address(BaseAndScenario.of_model(square(), down=["B"]), "news")
    assert "All its subscribers that are left are at D: without that router it has none." in said(found)
    assert {row["router"]: row["state"] for row in rows(found, "Subscribers")} == {"B": "down", "D": "up"}


# With something down


def tailed(*down: str, **parts: Any) -> BaseAndScenario:
    """A - B - D - C - A, and E at D, with some things down."""
    return BaseAndScenario.of_model(mesh("A-B A-C B-D C-D D-E", **parts), down=down)


def test_the_loss_of_a_link_or_router_is_told_on_top_of_what_is_down() -> None:
    found = explain_link(tailed("A--B"), "C--D")
    assert "It is a single point of failure: without it 12 ordered pairs of other routers lose connectivity." in said(
        found
    )
    found = explain_router(tailed("A--B"), "C")
    assert "It is a single point of failure: without it 6 ordered pairs of other routers lose connectivity." in said(
        found
    )
    found = explain_router(tailed("D"), "B")
    assert "Without it all others still reach each other, as far as they do now." in said(found)


def test_what_is_lost_already_is_not_lost_again() -> None:
    subject = tailed("D--E", demands=[demand("A", "E", 5, is_address=False), demand("C", "D", 7, is_address=False)])
    assert "Without it all others still reach each other" in said(explain_link(subject, "A--B"))
    assert "7 msg/s more then reach nobody" in said(explain_router(subject, "D"))
    found = explain_router(subject, "E")
    assert "Without it all others still reach each other" in said(found)
    assert "then reach nobody" not in said(found)


def test_what_gets_more_to_carry_is_compared_with_what_it_carries_now() -> None:
    demands = [demand("A", "B", 5, is_address=False), demand("A", "D", 3, is_address=False)]
    subject = tailed("A--C", demands=demands)
    assert not any(each.title.startswith("When it fails") for each in explain_link(subject, "C--D").listings)
    assert not any(each.title.startswith("When it fails") for each in explain_link(subject, "A--C").listings)


def test_what_is_down_itself_is_told_no_loss() -> None:
    for found in (explain_link(tailed("D--E"), "D--E"), explain_link(tailed("E"), "D--E")):
        assert "It is down." in said(found)
        assert "ithout it" not in said(found)
    found = explain_router(tailed("E", addresses=[address("q")], subscribers=[site("q", "E")]), "E")
    assert found.sentences[1:] == ("It is down.", "It has subscribers of q.")


def test_a_router_is_the_only_one_left_with_subscribers() -> None:
    subject = tailed("E", addresses=[address("q")], subscribers=[site("q", "E"), site("q", "A")])
    assert "It is the only router left with subscribers of q." in said(explain_router(subject, "A"))


def test_of_parallel_links_one_that_is_up_is_in_use() -> None:
    def told(link: str, *down: str) -> str:
        return said(explain_link(BaseAndScenario.of_model(mesh("A-B A-B A-B"), down=down), link))

    assert "Of 3 parallel links it is the one in use." in told("A--B#2", "A--B")
    assert "Of 3 parallel links it stands by, A--B#2 is in use." in told("A--B#3", "A--B")
    assert "Of 3 parallel links A--B#2 is in use. It" not in told("A--B", "A--B")
    assert "Of 3 parallel links A--B#2 is in use." in told("A--B", "A--B")
    assert "Of 3 parallel links none is up." in told("A--B", "A")


def test_of_parallel_links_the_cheapest_share_where_traffic_is_split() -> None:
    def told(link: str, *down: str) -> str:
        subject = BaseAndScenario(mesh("A-B A-B A-B:2"), links=down, is_split=True)
        return said(explain_link(subject, link))

    assert "Of 3 parallel links it shares evenly with A--B#2." in told("A--B")
    assert "Of 3 parallel links A--B and A--B#2 share evenly." in told("A--B#3")
    assert "Of 3 parallel links it stands by, A--B is in use." in told("A--B#3", "A--B#2")


def test_a_pair_tells_what_takes_the_path_away_that_is_left() -> None:
    found = explain_pair(tailed("A--B"), "A", "D")
    assert "Without any one of these too there is no path. 1 router: C; 2 links: A--C and C--D." in said(found)
    assert [(row["without link"], row["path"]) for row in rows(found, "When one link")] == [
        ("A--C", "none"), ("C--D", "none"),
    ]  # fmt: skip
    found = explain_pair(tailed("D--E"), "A", "D")
    assert "No further failure of another router or a link takes every path away." in said(found)
    assert [row["times"] for row in rows(explain_pair(tailed("A--B"), "A", "B"), "When one link")] == [None] * 3


def test_a_pair_without_a_path_is_told_nothing_more_that_takes_it_away() -> None:
    for down in (["D--E"], ["E"], ["D"]):
        found = explain_pair(tailed(*down), "A", "E")
        assert "there is no path." in found.sentences[0]
        assert found.sentences[1].startswith("When nothing fails: A - ")
        assert len(found.sentences) == 2
        assert not found.listings


def test_an_address_tells_what_takes_it_away_on_top_of_what_is_down() -> None:
    parts = {
        "addresses": [address("q")],
        "subscribers": [site("q", "D"), site("q", "E")],
        "demands": [demand("A", "q", 5)],
    }
    assert "from all subscribers: router D." in said(explain_address(tailed(**parts), "q"))
    found = explain_address(tailed("A--B", **parts), "q")
    assert "from all subscribers: link A--C, link C--D, router C and router D." in said(found)
    found = explain_address(tailed("E", **parts), "q")
    assert "from all subscribers: router D." in said(found)
    found = explain_address(tailed("D", "E", **parts), "q")
    assert "All its subscribers are down." in said(found)
    assert "Each of these" not in said(found)


@given(models(), st.data())
def test_what_is_said_of_a_loss_is_what_both_failures_do_beyond_the_first(model: Model, data: st.DataObject) -> None:
    routers = [router.id for router in model.routers]
    names = routers + [link.id for link in model.links]
    down = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=2))
    more = data.draw(st.sampled_from(names))
    now = BaseAndScenario.of_model(model, down=down)
    then = BaseAndScenario.of_model(model, down=[*down, *({more} - set(down))])
    gone = [lost_pairs(subject, set(then.routers)) for subject in (now, then)]
    found = explain_router(now, more) if more in routers else explain_link(now, more)
    lost = len(gone[1] - gone[0])
    assert (f"without it {lost:,} ordered pair" in said(found)) == bool(lost)


def lost_pairs(subject: BaseAndScenario, dead: set[str]) -> set[tuple[int, int]]:
    """Those of routers that are not dead."""
    src, dst = subject.now.kernel.lost_pairs()
    places = {subject.router(router) for router in dead}
    return {pair for pair in zip(src.tolist(), dst.tolist(), strict=True) if not places & set(pair)}


# Single points of failure


def lent(*credit: int | None, **parts: Any) -> Model:
    """A - B - C - A, with A's publisher of a balanced address and its subscribers at B and C, and credit there."""
    return mesh(
        "A-B~1 B-C~1 A-C~1",
        addresses=[address("work", Treatment.BALANCED)],
        subscribers=[site("work", router, credit=each) for router, each in zip("BC", credit, strict=True)],
        demands=[demand("A", "work", 100)],
        **parts,
    )


def test_who_takes_all_credit_away_is_a_single_point_of_failure() -> None:
    subject = BaseAndScenario.of_model(lent(0, 50))
    harm = "without it 1 demand of others finds no subscriber, or none with credit left."
    assert f"It is a single point of failure: {harm}" in said(explain_router(subject, "C"))
    assert "single point" not in said(explain_router(subject, "B"))
    found = explain_address(subject, "work")
    assert "from all subscribers, or from those with credit left: router C." in said(found)
    assert "Each of these" not in said(explain_address(BaseAndScenario.of_model(lent(50, 50)), "work"))
    assert "Each of these" not in said(explain_address(BaseAndScenario.of_model(lent(None, None)), "work"))


def test_who_takes_more_from_a_publisher_that_is_short_already_is_named() -> None:
    # A credit lets 500 msg/s pass in a round trip of 2 ms.
    subject = BaseAndScenario.of_model(attrs.evolve(lent(0, 1), demands=[demand("A", "work", 600)]))
    assert "those with credit left: link A--C and router C." in said(explain_address(subject, "work"))
    subject = BaseAndScenario.of_model(attrs.evolve(lent(0, 1), demands=[demand("A", "work", 600)]), down=["C"])
    assert "Each of these" not in said(explain_address(subject, "work"))


@given(models())
def test_what_the_table_calls_a_single_point_of_failure_is_explained_as_one(model: Model) -> None:
    subject = BaseAndScenario.of_model(model)
    network = Network.of(model)
    table = {(row["kind"], row["element"]) for row in spof_rows(None, model, network, Kernel(network))}
    for router in model.routers:
        is_told = "It is a single point of failure" in said(explain_router(subject, router.id))
        assert is_told == (("router", router.id) in table)
    for link in model.links:
        is_told = "It is a single point of failure" in said(explain_link(subject, link.id))
        assert is_told == (("link", link.id) in table)


@given(models(), st.booleans(), st.data())
def test_what_an_address_is_said_to_hang_by_is_what_starves_others(
    model: Model, is_bounded: bool, data: st.DataObject
) -> None:
    if not model.addresses:
        return
    text = data.draw(st.sampled_from([each.text for each in model.addresses]))
    links, routers = [link.id for link in model.links], sorted(router.id for router in model.routers)
    down = data.draw(st.lists(st.sampled_from(routers + links), unique=True, max_size=2))
    if not is_bounded:
        model = attrs.evolve(model, subscribers=[attrs.evolve(each, credit=None) for each in model.subscribers])
    wanted = [f"link {name}" for name in links if name not in down and starves(model, text, down, name)]
    wanted += [f"router {name}" for name in routers if name not in down and starves(model, text, down, name)]
    subject = BaseAndScenario.of_model(model, down=down)
    told = said(explain_address(subject, text)).partition("Each of these by itself")[2]
    if is_bounded:  # some of it may be lost beside
        assert not wanted or told
    else:
        assert told.partition(": ")[2] == (f"{listed(wanted, most=8)}." if wanted else "")


def starves(model: Model, text: str, down: list[str], name: str) -> bool:
    """Whether more publishers of an address are starved when something else fails too; those at it don't count."""
    # With nothing else in the mesh the kernel's count is that of the address.
    alone = attrs.evolve(model, demands=[each for each in model.demands if each.address == text])
    before = BaseAndScenario.of_model(
        attrs.evolve(alone, demands=[each for each in alone.demands if each.src != name]), down=down
    )
    then = BaseAndScenario.of_model(alone, down=[*down, name])
    return then.now.kernel.starved_publishers > before.now.kernel.starved_publishers


# Runs, and names


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain") / "run"
    model = everything()
    request = Request(families="links:1-2,routers:1,srlg", growth="2", maintenance=("window",))
    made(model, request, folder, engine="local", workers=1)
    finish_run.complete_run(folder, model)
    return folder


def test_a_scenario_of_a_run_is_played_again_as_it_was(whole: Path) -> None:
    table = read_table(whole, "scenario").to_pylist()
    for row in table[:: max(1, len(table) // 40)]:
        subject = BaseAndScenario.of_run(whole, scenario=row["scenario"])
        kernel = subject.now.kernel
        assert kernel.unreachable_pairs == row["unreachable_pairs"]
        assert kernel.lost_rate / 1e6 == row["lost_msgs_per_s"]
        assert kernel.max_utilisation == row["max_utilisation"]
        assert explain_scenario(subject).title.startswith(f"Scenario {row['scenario']}: ")


@pytest.mark.parametrize("routing", ["mesh", "ecmp"])
def test_a_scenario_is_explained_as_its_run_routes_and_measures(routing: str, tmp_path: Path) -> None:
    model = without_capacity(square(), "A--D")
    request = Request(families="links:1", growth="1:3:1", costs=("A--B=3",))
    made(model, request, tmp_path / "run", engine="local", routing=routing)
    finish_run.complete_run(tmp_path / "run", model)
    for row in read_table(tmp_path / "run", "scenario").to_pylist():
        subject = BaseAndScenario.of_run(tmp_path / "run", scenario=row["scenario"])
        assert subject.now.kernel.max_utilisation == row["max_utilisation"]
        assert subject.now.kernel.utilisations().max() == row["max_utilisation"]
    done = CliRunner().invoke(main, ["whatif", "explain", str(tmp_path / "run"), "--scenario", "1"])
    assert ("split over all shortest paths (ECMP)" in done.output) == (routing == "ecmp")


def test_what_a_run_found_is_told_of_links_pairs_and_addresses(whole: Path) -> None:
    subject = BaseAndScenario.of_run(whole)
    link = read_table(whole, "link_worst").to_pylist()[0]["link"]
    assert rows(explain_link(subject, link), "Worst scenarios of the run")
    pair = next(row for row in read_table(whole, "pair_impact").to_pylist() if row["is_lost"])
    assert rows(explain_pair(subject, pair["src"], pair["dst"]), "Scenarios of the run without a path")
    impact = read_table(whole, "address_impact").to_pylist()[0]
    assert rows(explain_address(subject, impact["address"]), "Worst of the ")


def test_an_address_that_always_loses_messages_is_told_so(tmp_path: Path) -> None:
    made(losing(), Request(families="links:1,routers:1", growth="2"), tmp_path / "run", workers=1)
    finish_run.complete_run(tmp_path / "run", losing())
    for variant in ("base", "growth 2"):
        subject = BaseAndScenario.of_run(tmp_path / "run", variant=variant)
        told = rows(explain_address(subject, "island"), "Worst of all 7 scenarios of the run: messages are lost while")
        assert [row["what is down"] for row in told] == ["link A--B", "router B", "router A", "nothing", "router C"]
        assert rows(explain_address(subject, "served"), "Worst of the 5 scenarios of the run that affect it")


def test_scenarios_that_lose_less_are_not_among_the_worst_of_all(tmp_path: Path) -> None:
    made(relieved(), Request(families="links:1"), tmp_path / "run", workers=1)
    finish_run.complete_run(tmp_path / "run", relieved())
    subject = BaseAndScenario.of_run(tmp_path / "run")
    told = rows(explain_address(subject, "q"), "Worst of all 6 scenarios of the run")
    assert [row["what is down"] for row in told][-1] == "nothing"
    idle = explain_address(subject, "idle")
    assert not idle.listings, "no message is lost, and nothing changes"
    calm = rows(explain_scenario(subject), "Addresses that lose messages or have starved publishers")
    assert [row["address"] for row in calm] == ["q", "idle"]


def test_a_scenario_and_its_own_variant_may_be_given_both(whole: Path) -> None:
    row = next(row for row in read_table(whole, "scenario").to_pylist() if row["variant"] != "base")
    subject = BaseAndScenario.of_run(whole, scenario=row["scenario"], variant=row["variant"])
    assert subject.variant == row["variant"]
    with pytest.raises(TableError, match=f"is of variant `{row['variant']}`"):
        BaseAndScenario.of_run(whole, scenario=row["scenario"], variant="another")


def test_what_a_run_found_is_told_of_one_variant(tmp_path: Path) -> None:
    model = square()
    made(model, Request(families="links:1", growth="2"), tmp_path / "run", engine="local", workers=1)
    finish_run.complete_run(tmp_path / "run", model)
    table = read_table(tmp_path / "run", "scenario").to_pylist()
    variants = {row["scenario"]: row["variant"] for row in table}
    assert len(set(variants.values())) == 2
    for variant in set(variants.values()):
        subject = BaseAndScenario.of_run(tmp_path / "run", variant=variant)
        pairs = rows(explain_pair(subject, "A", "E"), "Scenarios of the run without a path: 1,")
        assert [(row["what is down"], variants[row["scenario"]]) for row in pairs] == [("link C--E", variant)]
        found = rows(explain_address(subject, "q"), "Worst of the 1 scenarios")
        assert [(row["what is down"], variants[row["scenario"]]) for row in found] == [("link C--E", variant)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scenario", "999999"), "no scenario 999999"),
        (("--variant", "grown"), "no variant `grown`"),
        (("--down", "r0"), "no router, link or group `r0`"),
        (("--link", "r00-r01"), "no link `r00-r01` in the model; did you mean `r00--r01`?"),
        (("--router", "R01"), "no router `R01` in the model; did you mean `r01`?"),
        (("--address", "wrok"), "no address `wrok` in the model; did you mean `work`?"),
        (("--pair", "r00", "r99"), "no router `r99` in the model"),
        (("--down", "Z"), "no router, link or group `Z` in the model; expected one of r00, r01, "),
        (("--scenario", "1", "--down", "r01"), "the scenario already says what is down"),
        (("--scenario", "1", "--variant", "x2"), "scenario 1 is of variant `base`; expected it, or no variant"),
        (("--link", "x", "--router", "y"), "only one of them"),
        (("--picture", "x.png"), "ends in .svg"),
    ],
)
def test_what_is_not_there_is_refused_with_2(whole: Path, words: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(main, ["whatif", "explain", str(whole), *words])
    assert done.exit_code == 2
    assert message in done.output


def test_the_command_says_it_draws_it_and_writes_json(whole: Path, tmp_path: Path) -> None:
    picture = tmp_path / "it.svg"
    done = CliRunner().invoke(main, ["whatif", "explain", str(whole), "--scenario", "5", "--picture", str(picture)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith("Scenario 5: link ")
    drawn = picture.read_text()
    assert drawn.startswith("<?xml")
    assert "var(--" not in drawn
    assert ">down<" in drawn
    done = CliRunner().invoke(main, ["whatif", "explain", str(whole), "--address", "work", "--json"])
    assert json.loads(done.output)["title"] == "Address work"


def test_a_model_alone_can_be_asked_too(tmp_path: Path) -> None:
    write_model(square(), tmp_path / "model")
    done = CliRunner().invoke(
        main, ["whatif", "explain", str(tmp_path / "model"), "--down", "C--E", "--pair", "A", "E"]
    )
    assert done.exit_code == 0, done.output
    assert "With link C--E down there is no path." in done.output
    done = CliRunner().invoke(main, ["whatif", "explain", str(tmp_path / "model"), "--scenario", "1"])
    assert done.exit_code == 2
    assert "is no run" in done.output


def test_a_group_is_down_as_a_whole(whole: Path) -> None:
    subject = BaseAndScenario.of_run(whole, down=["mixed"])
    assert subject.routers == ("r02", "r03")
    assert len(subject.links) == 1
    with pytest.raises(TableError, match="mixd"):
        BaseAndScenario.of_run(whole, down=["mixd"])
