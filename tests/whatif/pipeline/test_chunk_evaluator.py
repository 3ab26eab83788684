"""The tables of a run, against the same worked out anew for every scenario in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from router.whatif.model.elements import Group, GroupKind
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import read_table, validate
from router.whatif.scenarios.run_request import Request
from tests.whatif.naive import Naive, State
from tests.whatif.runs import TABLES, everything, made
from tests.whatif.small import demand, mesh

REQUEST = Request(
    families="links:1-2,routers:1,srlg,sites,links:1+routers:1", maintenance=("window",), costs=("r00--r01=9",)
)
MICRO = 1_000_000


@attrs.frozen
class Played:
    """A run, and the meshes of its variants as the naive evaluator has them."""

    folder: Path
    naive: Mapping[str, Naive]
    states: dict[int, State]

    def rows(self, name: str) -> list[dict[str, Any]]:
        return list(read_table(self.folder, name).to_pylist())


@pytest.fixture(scope="module")
def model() -> Model:
    return everything()


@pytest.fixture(scope="module")
def played(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("evaluate") / "run"
    made(model, REQUEST, folder, engine="local", workers=1, pairs="changed", loads="all")
    naive = {name: Naive(variant) for name, variant in REQUEST.variants(model)}
    states = {
        row["scenario"]: naive[row["variant"]].state(row["failed_links"], row["failed_routers"])
        for row in read_table(folder, "scenario").to_pylist()
    }
    return Played(folder, naive, states)


@pytest.mark.parametrize("name", [*TABLES, "scenario_load"])
def test_every_table_is_as_its_layout_says(played: Played, name: str) -> None:
    assert validate(read_table(played.folder, name), name).num_rows


def test_every_scenario_does_what_it_does_when_worked_out_anew(played: Played) -> None:
    for row in played.rows("scenario"):
        naive, now = played.naive[row["variant"]], played.states[row["scenario"]]
        lost = naive.unreachable(now)
        assert row["unreachable_pairs"] == len(lost)
        assert row["dead_end_pairs"] == sum(not {*pair} <= now.alive for pair in lost)
        assert row["lost_msgs_per_s"] == now.lost[0] / MICRO
        assert row["lost_bytes_per_s"] == now.lost[1] / MICRO
        assert row["dead_addresses"] == len(naive.dead_addresses(now))
        assert row["starved_publishers"] == len(now.starved)
        assert row["components"] == naive.components(now)
        for percent in (50, 95, 99):
            assert row[f"stretch_p{percent}"] == naive.stretch(now, percent) / 1000
            assert row[f"delay_p{percent}_ms"] == naive.delay_us(now, percent) / 1000
        shares = naive.utilisation(now, played.naive["base"])
        assert row["max_utilisation"] == max(shares.values())
        assert shares[row["max_utilisation_link"], row["max_utilisation_src"]] == row["max_utilisation"]


def test_a_group_fails_as_a_whole(played: Played, model: Model) -> None:
    groups = {group.name: group for group in model.groups}
    naive = played.naive["base"]
    rows = [row for row in played.rows("scenario") if row["family"] == "srlg" and row["variant"] == "base"]
    assert [row["group"] for row in rows] == ["duct", "mixed"]
    for row in rows:
        group = groups[row["group"]]
        whole = naive.state(group.links, group.routers)
        assert row["lost_msgs_per_s"] == whole.lost[0] / MICRO
        assert row["unreachable_pairs"] == len(naive.unreachable(whole))


def test_each_member_of_a_group_counts(tmp_path: Path) -> None:
    group = Group(name="duct", kind=GroupKind.SRLG, links=("A--B", "C--D"), routers=("E",))
    model = mesh("A-B B-C C-D A-D A-E C-E", groups=[group])
    made(model, Request(families="srlg"), tmp_path / "run", engine="local")
    row = read_table(tmp_path / "run", "scenario").to_pylist()[1]
    assert (row["failed_links"], row["failed_routers"]) == (["A--B", "C--D"], ["E"])
    # A and D apart from B and C; without any member of the group nothing but E itself would be cut off.
    assert (row["components"], row["unreachable_pairs"], row["dead_end_pairs"]) == (2, 16, 8)
    naive = Naive(model)
    for links, routers in ((["C--D"], ["E"]), (["A--B"], ["E"]), (["A--B", "C--D"], [])):
        assert naive.components(naive.state(links, routers)) == 1


def test_every_changed_pair_is_listed(played: Played) -> None:
    rows = defaultdict(dict)
    for row in played.rows("pair_impact"):
        rows[row["scenario"]][row["src"], row["dst"]] = (row["base_cost"], row["cost"], row["is_lost"])
    variants = {row["scenario"]: row["variant"] for row in played.rows("scenario")}
    for number, now in played.states.items():
        before = played.naive[variants[number]].base.distance
        expected = {
            pair: (cost, now.distance.get(pair), pair not in now.distance)
            for pair, cost in before.items()
            if {*pair} <= now.alive and now.distance.get(pair) != cost
        }
        assert rows[number] == expected


def test_lost_pairs_are_those_of_the_changed_ones_that_have_no_path(
    played: Played, model: Model, tmp_path: Path
) -> None:
    expected = [row for row in played.rows("pair_impact") if row["is_lost"]]
    made(model, REQUEST, tmp_path / "lost", engine="local", workers=1, pairs="lost")
    assert read_table(tmp_path / "lost", "pair_impact").to_pylist() == expected
    made(model, REQUEST, tmp_path / "none", engine="local", workers=1, pairs="none")
    assert read_table(tmp_path / "none", "pair_impact").num_rows == 0


def test_loads_are_those_of_the_mesh_as_it_is(played: Played) -> None:
    for row in played.rows("link_load"):
        naive = played.naive[row["variant"]]
        link = next(link for link in naive.model.links if link.id == row["link"])
        assert {row["src"], row["dst"]} == {link.a, link.b}
        assert row["msgs_per_s"] == naive.base.loads[link.id, row["src"], 0] / MICRO
        assert row["bytes_per_s"] == naive.base.loads[link.id, row["src"], 1] / MICRO
        assert (row["capacity_msgs_per_s"], row["capacity_bytes_per_s"]) == (link.capacity_msgs, link.capacity_bytes)
        shares = naive.utilisation(naive.base, played.naive["base"])
        assert row["utilisation"] == shares.get((link.id, row["src"]), 0.0)


def test_the_worst_loads_and_their_causes_are_those_of_all_scenarios(played: Played) -> None:
    variants = {row["scenario"]: row["variant"] for row in played.rows("scenario")}
    base = played.naive["base"]
    shares = {number: played.naive[variants[number]].utilisation(now, base) for number, now in played.states.items()}
    rows = played.rows("link_worst")
    assert any(len(row["scenarios"]) == 10 for row in rows)
    for row in rows:
        naive, key = played.naive[row["variant"]], (row["link"], row["src"])
        before = naive.utilisation(naive.base, played.naive["base"]).get(key, 0.0)
        ranks = sorted(
            (-shares[number].get(key, 0.0), number)
            for number, variant in variants.items()
            if variant == row["variant"] and shares[number].get(key, 0.0) > before
        )[:10]
        assert row["scenarios"] == [number for _, number in ranks]
        assert row["scenario_utilisation"] == [-share for share, _ in ranks]
        for place, column in enumerate(("msgs_per_s", "bytes_per_s")):
            loads = [played.states[number].loads[*key, place] / MICRO for _, number in ranks]
            assert row[f"scenario_{column}"] == loads
            assert row[f"worst_{column}"] == (loads or [naive.base.loads[*key, place] / MICRO])[0]
        assert row["base_msgs_per_s"] == naive.base.loads[*key, 0] / MICRO
        assert row["base_utilisation"] == before
        assert row["worst_utilisation"] == (row["scenario_utilisation"] or [before])[0]


def test_the_worst_case_of_a_link_is_told_by_what_it_has_less_of(tmp_path: Path) -> None:
    """Without B--D many small messages go by E, without C--D few large ones: it is bytes that get short."""
    demands = [demand("B", "D", 50, is_address=False, size=10), demand("C", "D", 1, is_address=False, size=9000)]
    model = mesh("B-D C-D B-E C-E D-E", capacity_msgs=1000.0, demands=demands)
    model = attrs.evolve(model, links=[attrs.evolve(link, capacity_bytes=10_000.0) for link in model.links])
    made(model, Request(families="links:1"), tmp_path / "run", engine="local")
    failed = {row["scenario"]: row["failed_links"] for row in read_table(tmp_path / "run", "scenario").to_pylist()}
    rows = read_table(tmp_path / "run", "link_worst").to_pylist()
    (row,) = (row for row in rows if (row["link"], row["src"]) == ("D--E", "E"))
    assert [failed[number] for number in row["scenarios"]] == [["C--D"], ["B--D"]]
    assert row["scenario_utilisation"] == [0.9, 0.05]
    assert (row["worst_msgs_per_s"], row["worst_bytes_per_s"], row["worst_utilisation"]) == (1, 9000, 0.9)


def test_the_load_of_every_link_is_listed_for_every_scenario(played: Played) -> None:
    variants = {
        row["scenario"]: (row["variant"], row["failed_links"], row["failed_routers"]) for row in played.rows("scenario")
    }
    found = defaultdict(dict)
    for row in played.rows("scenario_load"):
        values = (row["msgs_per_s"], row["bytes_per_s"], row["utilisation"], row["is_down"], row["dst"])
        found[row["scenario"]][row["link"], row["src"]] = values
    for number, (variant, links, routers) in variants.items():
        naive, now = played.naive[variant], played.states[number]
        shares = naive.utilisation(now, played.naive["base"])
        expected = {}
        for link in naive.model.links:
            is_down = link.id in links or bool({link.a, link.b} & {*routers})
            for src, dst in ((link.a, link.b), (link.b, link.a)):
                loads = [now.loads[link.id, src, place] / MICRO for place in range(2)]
                expected[link.id, src] = (*loads, shares.get((link.id, src), 0.0), is_down, dst)
        assert found[number] == expected


@pytest.mark.parametrize("routing", ["mesh", "ecmp"])
def test_changed_loads_are_those_of_all_that_the_mesh_does_not_have(routing: str, tmp_path: Path) -> None:
    request = Request(families="links:1,routers:1", growth="2", links=("r00,r09,1",))
    for loads in ("changed", "all", "none"):
        made(everything(), request, tmp_path / loads, engine="local", loads=loads, routing=routing)
    variant = {row["scenario"]: row["variant"] for row in read_table(tmp_path / "all", "scenario").to_pylist()}
    base = {
        (row["variant"], row["link"], row["src"]): (row["msgs_per_s"], row["bytes_per_s"])
        for row in read_table(tmp_path / "all", "link_load").to_pylist()
    }
    rows = read_table(tmp_path / "all", "scenario_load").to_pylist()
    changed = [
        row
        for row in rows
        if base[variant[row["scenario"]], row["link"], row["src"]] != (row["msgs_per_s"], row["bytes_per_s"])
    ]
    assert 0 < len(changed) < len(rows)
    assert read_table(tmp_path / "changed", "scenario_load").to_pylist() == changed
    assert not (tmp_path / "none" / "scenario_load").exists()
    said = {loads: read_table(tmp_path / loads, "run").column("loads").to_pylist() for loads in ("changed", "all")}
    assert said == {"changed": ["changed"], "all": ["all"]}


def test_links_without_capacity_are_measured_by_the_busiest_one_of_the_mesh_as_it_is(tmp_path: Path) -> None:
    demands = [demand("A", "B", 30, is_address=False), demand("C", "B", 10, is_address=False)]
    model = mesh("A-B B-C C-A", demands=demands)
    request = Request(families="links:1", growth="1:3:1", costs=("A--B=9",), links=("B,C,1,capacity_msgs=100",))
    made(model, request, tmp_path / "run", engine="local")
    found = {
        row["variant"]: row["max_utilisation"]
        for row in read_table(tmp_path / "run", "scenario").to_pylist()
        if row["family"] == "none"
    }
    assert [found[name] for name in ("base", "growth 2", "growth 3")] == [1, 2, 3]
    # All of it goes from C to B.
    assert [found[name] for name in ("changed", "changed, growth 2")] == pytest.approx([4 / 3, 8 / 3])


def test_addresses_that_lose_something_are_listed(played: Played) -> None:
    rows: dict[int, dict[str, tuple[Any, ...]]] = defaultdict(dict)
    for row in played.rows("address_impact"):
        rows[row["scenario"]][row["address"]] = (
            row["subscriber_routers"],
            row["lost_subscriber_routers"],
            row["starved_publishers"],
            row["lost_msgs_per_s"],
        )
    for row in played.rows("scenario"):
        naive, now = played.naive[row["variant"]], played.states[row["scenario"]]
        expected = {}
        for address in naive.model.addresses:
            sites = {site.router for site in naive.sites[address.text]}
            gone = sites - now.alive
            starved = sum(text == address.text for _, text in now.starved)
            if gone or starved or now.missing[address.text]:
                expected[address.text] = (len(sites) - len(gone), len(gone), starved, now.missing[address.text] / MICRO)
        assert rows[row["scenario"]] == expected


def test_the_run_says_what_it_covers(played: Played) -> None:
    (row,) = played.rows("run")
    covered = [
        each["probability"]
        for each in played.rows("scenario")
        if each["variant"] == "base" and each["family"] != "maintenance"
    ]
    assert row["coverage"] == pytest.approx(sum(covered))
    assert 0.9 < row["coverage"] < 1
    assert row["residual"] == 1 - row["coverage"]
    assert row["scenarios"] == len(played.states)


def test_a_mesh_without_links_or_demands_can_be_run(tmp_path: Path) -> None:
    model = mesh("A B C")
    made(model, Request(families="routers:1"), tmp_path / "run", engine="local")
    rows = read_table(tmp_path / "run", "scenario").to_pylist()
    assert [row["components"] for row in rows] == [3, 2, 2, 2]
    assert all(row["max_utilisation_link"] is None and row["stretch_p50"] is None for row in rows)
    assert read_table(tmp_path / "run", "link_worst").num_rows == 0
