"""Differences: each change is named once, its effect is that of the mesh, and gates fail when they should."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import given

from mesh_config.models import Treatment
from router.cli import main
from router.whatif.analysis.diff import (
    MEASURES,
    Difference,
    ModelElementChange,
    changes,
    compare,
    compare_models,
    compare_runs,
)
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.elements import Group, GroupKind, LinkCounter
from router.whatif.model.mesh_model import Model, with_costs, without
from router.whatif.report import finish_run
from router.whatif.scenarios.run_request import Request
from tests.whatif.runs import everything, made
from tests.whatif.small import address, demand, mesh, models, site


def square() -> Model:
    return mesh(
        "A-B B-C C-D D-A",
        capacity_msgs=100.0,
        addresses=[address("q")],
        subscribers=[site("q", "C", credit=5)],
        demands=[demand("A", "q", 10), demand("B", "D", 20, is_address=False)],
    )


@given(models(), models())
def test_a_model_differs_from_itself_in_nothing_and_from_others_in_what_is_said(one: Model, other: Model) -> None:
    same = compare_models(one, one)
    assert same.is_none
    assert list(same.worsenings()) == []
    found = list(changes(one, other))
    assert bool(found) == (summed(one) != summed(other))
    assert len({(change.part, change.key, change.what) for change in found}) == len(found)


def summed(model: Model) -> tuple[Model, dict[tuple[object, ...], float]]:
    """A model without demands, and these: that several rows say together what one could is no difference."""
    found: dict[tuple[object, ...], float] = {}
    for row in (model.demands[number] for number in range(len(model.demands))):
        key = row.src, row.dst, row.address, row.klass
        found[key] = found.get(key, 0.0) + row.msgs_per_s
    return attrs.evolve(model, demands=[]), found


@given(models(), models())
def test_there_and_back_changes_are_the_same_the_other_way_round(one: Model, other: Model) -> None:
    turned = {"added": "removed", "removed": "added"}
    there = {(it.part, it.key, it.what, str(it.before), str(it.after)) for it in changes(one, other)}
    back = {
        (it.part, it.key, turned.get(it.what, it.what), str(it.after), str(it.before)) for it in changes(other, one)
    }
    assert there == back


def test_each_kind_of_change_is_named() -> None:
    before = square()
    after = attrs.evolve(
        before,
        links=[attrs.evolve(link, cost=3) if link.id == "A--B" else link for link in before.links if link.id != "C--D"],
        addresses=[address("q", Treatment.BALANCED)],
        subscribers=[site("q", "C", credit=9), site("q", "D")],
        demands=[demand("A", "q", 15), demand("C", "A", 1, is_address=False)],
        groups=[Group(name="duct", kind=GroupKind.SRLG, links=("A--B",))],
    )
    assert list(changes(before, after)) == [
        ModelElementChange(part="links", key="A--B", what="cost", before=1, after=3),
        ModelElementChange(part="links", key="C--D", what="removed"),
        ModelElementChange(
            part="addresses", key="q", what="treatment", before=Treatment.CLOSEST, after=Treatment.BALANCED
        ),
        ModelElementChange(part="subscribers", key="q at C", what="credit", before=5, after=9),
        ModelElementChange(part="subscribers", key="q at D", what="added"),
        ModelElementChange(part="demands", key="A to address q", what="msgs_per_s", before=10.0, after=15.0),
        ModelElementChange(part="demands", key="B to router D", what="removed", before=20.0),
        ModelElementChange(part="demands", key="C to router A", what="added", after=1.0),
        ModelElementChange(part="groups", key="duct", what="added"),
    ]


def test_a_cost_moves_paths_and_loads() -> None:
    before = square()
    found = compare_models(before, with_costs(before, {"A--B": 9}))
    assert (found.impact.longer, found.impact.lost_count, found.impact.gained_count) == (2, 0, 0)
    assert found.impact.moved >= 2
    moved = {(it.link, it.src): (it.before, it.after) for it in found.impact.links}
    assert moved["A--B", "A"] == (10, 0)
    assert moved["A--B", "B"] == (20, 0)
    assert moved["A--D", "A"] == (20, 10)
    assert not list(found.worsenings())


def test_a_gone_router_is_no_lost_pair_a_link_may_make_some_and_points_of_failure() -> None:
    before = square()
    gone = compare_models(before, without(before, routers=["D"]))
    assert gone.impact.lost_count == 0
    assert [(row["kind"], row["element"]) for row in gone.new_spof] == [
        ("link", "A--B"), ("link", "B--C"), ("router", "B"),
    ]  # fmt: skip
    cut = compare_models(before, without(before, links=["A--B", "C--D"]))
    assert cut.impact.lost_count == 8
    said = list(cut.worsenings())
    assert said[0] == "8 pairs of routers lost the path: A to B, A to C, B to A and 5 more"
    assert said[1] == "30 msg/s reach nobody, 0 msg/s before"
    back = compare_models(without(before, links=["A--B", "C--D"]), before)
    assert (back.impact.gained_count, list(back.worsenings())) == (8, [])
    assert {row["element"] for row in back.gone_spof} >= {"B--C", "A--D"}


@given(models(most=5))
def test_a_mesh_without_one_link_has_the_impact_that_its_failure_has(model: Model) -> None:
    network = Network.of(model)
    kernel = Kernel(network)
    for place, link in enumerate(network.links[:2]):
        found = compare_models(model, without(model, links=[link]), has_spof=False).impact
        kernel.fail([place], [])
        assert found.lost_count == kernel.unreachable_pairs
        assert found.lost_after == kernel.lost_rate / 1e6
        _, _, old, new = kernel.changed_pairs()
        assert found.longer == int((new > old).sum())
        kernel.restore()


def test_counters_of_two_snapshots_give_what_passed_between_them() -> None:
    def counted(*rows: tuple[str, str, int]) -> Model:
        counters = [LinkCounter(link=link, src=src, messages=messages) for link, src, messages in rows]
        return attrs.evolve(square(), counters=counters)

    before = counted(("A--B", "A", 100), ("A--B", "B", 50), ("B--C", "B", 7))
    after = counted(("A--B", "A", 180), ("A--B", "B", 20), ("C--D", "C", 9))
    found = compare_models(before, after)
    # A connection that was made anew counts from 0.
    assert found.counters == (("A--B", "A", 80), ("A--B", "B", 20))
    assert found.is_none


def test_other_sizes_and_another_kind_of_destination_are_changes() -> None:
    sent = [demand("A", "B", 3, size=10)]
    before = mesh("A-B", addresses=[address("B")], subscribers=[site("B", "B")], demands=sent)
    larger = attrs.evolve(before, demands=[demand("A", "B", 3, size=20)])
    assert list(changes(before, larger)) == [
        ModelElementChange(part="demands", key="A to address B", what="msg_bytes", before=10.0, after=20.0)
    ]
    other = attrs.evolve(before, demands=[demand("A", "B", 3, is_address=False, size=10)])
    assert {(it.key, it.what) for it in changes(before, other)} == {
        ("A to address B", "removed"),
        ("A to router B", "added"),
    }


# Runs


def run(model: Model, folder: Path, request: Request | None = None, **options: str) -> Path:
    made(model, request or Request(families="links:1,routers:1"), folder, engine="local", workers=1, **options)
    finish_run.complete_run(folder, model)
    return folder


def test_runs_are_compared_scenario_by_scenario(tmp_path: Path) -> None:
    before = square()
    after = without(before, links=["C--D"])
    found = compare(run(before, tmp_path / "before"), run(after, tmp_path / "after"))
    assert found.run is not None
    assert (found.run.common, found.run.only_before, found.run.only_after) == (8, 1, 0)
    assert found.run.worse["living_pairs"] == 5
    assert found.run.better["living_pairs"] == 0
    assert found.run.highest["living_pairs"] == (0, 8)
    assert {row["element"] for row in found.new_spof} == {"A--B", "A--D", "B--C", "A", "B"}
    worst = next(it for it in found.run.changes if it.measure == "living_pairs")
    assert (worst.fails, worst.before, worst.after) == ("link A--B", 0, 8)
    assert "pairs losing connectivity in the worst scenario: 8, 0 before" in list(found.worsenings())


def test_utilisation_is_compared_where_it_is_known_what_links_can_carry(tmp_path: Path) -> None:
    known = square()
    unknown = attrs.evolve(known, links=[attrs.evolve(link, capacity_msgs=None) for link in known.links])
    runs = {name: run(model, tmp_path / name) for name, model in (("known", known), ("unknown", unknown))}
    for name, is_compared in (("known", True), ("unknown", False)):
        found = compare(runs["known"], runs[name])
        assert found.run is not None
        assert ("max_utilisation" in found.run.highest) == is_compared


def test_runs_are_compared_as_they_route(tmp_path: Path) -> None:
    demands = [demand("A", "C", 40, is_address=False)]
    one, two = (mesh("A-B B-C C-D D-A", demands=demands * times) for times in (1, 2))
    first = run(one, tmp_path / "first", routing="ecmp")
    found = compare(first, run(two, tmp_path / "second", routing="ecmp"))
    assert {(it.link, it.src, it.before, it.after) for it in found.impact.links} == {
        ("A--B", "A", 20, 40), ("A--D", "A", 20, 40), ("B--C", "B", 20, 40), ("C--D", "D", 20, 40),
    }  # fmt: skip
    assert found.impact.moved == 0
    other = compare(run(one, tmp_path / "third"), first)
    assert [(it.what, it.before, it.after) for it in other.changes] == [("routing", "mesh", "ecmp")]


def test_many_scenarios_are_compared_without_an_object_for_each(tmp_path: Path) -> None:
    made(everything(20, 40), Request(families="links:1,links:3"), tmp_path / "run", engine="local", workers=1)
    runs = [Outcomes.read(tmp_path / "run") for _ in range(2)]
    tracemalloc.start()
    try:
        found = compare_runs(runs[0], runs[1], MEASURES)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.common == len(runs[0]) > 9_000
    assert peak < 200 * found.common, "some numbers of each scenario"


def test_what_only_one_run_has_played_makes_it_no_worse(tmp_path: Path) -> None:
    model = square()
    folders = [
        run(model, tmp_path / name, Request(families="links:1", growth=growth))
        for name, growth in (("one", ""), ("other", "3"))
    ]
    found = compare(*folders)
    assert found.run is not None
    assert (found.run.common, found.run.only_after) == (5, 5)
    assert list(found.worsenings()) == []
    assert all(before == after for before, after in found.run.highest.values())


def test_a_run_differs_in_nothing_from_itself_and_from_its_model(tmp_path: Path) -> None:
    model = everything()
    one = run(model, tmp_path / "one", Request(families="links:1-2", growth="2"))
    other = run(model, tmp_path / "other", Request(families="links:1-2", growth="2"))
    assert compare(one, other).is_none
    write_model(model, tmp_path / "model")
    found: Difference = compare(one, tmp_path / "model")
    assert found.is_none
    assert found.run is None


# The command


def command(*words: object) -> Any:
    return CliRunner().invoke(main, ["whatif", "diff", *map(str, words)])


def test_the_command_gates(tmp_path: Path) -> None:
    write_model(square(), tmp_path / "before")
    write_model(without(square(), links=["A--B"]), tmp_path / "worse")
    write_model(
        attrs.evolve(square(), groups=[Group(name="g", kind=GroupKind.SRLG, links=("A--B",))]), tmp_path / "other"
    )
    before, worse, other = (tmp_path / name for name in ("before", "worse", "other"))
    assert command(before, before, "--exit-code", "--no-worse").exit_code == 0
    assert "no difference" in command(before, before).output
    assert command(before, worse).exit_code == 0
    assert command(before, worse, "--no-worse").exit_code == 1
    assert command(before, other, "--no-worse").exit_code == 0
    assert command(before, other, "--exit-code").exit_code == 1
    assert command(before, tmp_path / "none").exit_code == 2
    said = command(before, worse).output
    assert "A--B" in said
    assert "New single points of failure" in said
    assert "Worse" in said


def test_the_command_writes_json(tmp_path: Path) -> None:
    one = run(square(), tmp_path / "one")
    other = run(without(square(), links=["A--B"]), tmp_path / "other")
    found = json.loads(command(one, other, "--json").stdout)
    assert found["is_none"] is False
    assert found["worse"]
    assert found["changes"][0] == {"part": "links", "key": "A--B", "what": "removed", "before": None, "after": None}
    assert found["run"]["common"] == 8


def test_two_numbers_that_differ_do_not_look_alike(tmp_path: Path) -> None:
    before = mesh("A-B", capacity_msgs=1000.0, demands=[demand("A", "B", 100, is_address=False)])
    after = attrs.evolve(before, demands=[demand("A", "B", 100.4, is_address=False)])
    request = Request(families="links:1")
    done = command(run(before, tmp_path / "one", request), run(after, tmp_path / "other", request), "--no-worse")
    assert done.exit_code == 1
    said = [" ".join(line.split()) for line in done.output.splitlines()]
    assert "demands A to router B msgs_per_s 100 100.4" in said
    assert "A--B A 100 100.4 0.4" in said
    assert "messages/s lost 1 0 100 100.4" in said
    assert "messages/s lost in the worst scenario: 100.4, 100 before" in said
    assert "highest utilisation in the worst scenario: 10.04 %, 10 % before" in said


def test_utilisation_is_compared_with_a_word_on_links_without_capacity(tmp_path: Path) -> None:
    before = mesh("A-B B-C", capacity_msgs=1000.0, demands=[demand("A", "C", 100, is_address=False)])
    after = attrs.evolve(before, demands=[demand("A", "C", 200, is_address=False)])
    request = Request(families="links:1", links=("A,C,1,delay_ms=5",))
    one, other = run(before, tmp_path / "one", request), run(after, tmp_path / "other", request)
    plain = run(before, tmp_path / "plain", Request(families="links:1"))
    word = "without 1 link of which no capacity is known"
    assert f"highest utilisation in the worst scenario: 20 %, 10 % before ({word})" in command(one, other).output
    assert f"Utilisation is {word}, 0 before." in command(plain, other).output
    assert "no capacity" not in command(plain, plain).output


def test_a_gate_says_how_many_scenarios_it_has_compared_and_refuses_to_compare_none(tmp_path: Path) -> None:
    model = square()
    write_model(model, tmp_path / "model")
    links, routers = (run(model, tmp_path / name, Request(families=f"{name}:1")) for name in ("links", "routers"))
    both = run(model, tmp_path / "both")
    done = command(links, both, "--no-worse")
    assert (done.exit_code, "5 in both are compared; 0 only before, 4 only after." in done.output) == (0, True)
    apart = command(links, routers, "--no-worse")
    assert (apart.exit_code, "the runs have no failure in common" in apart.output) == (2, True)
    assert command(links, routers).exit_code == 0
    for pair in ((both, tmp_path / "model"), (tmp_path / "model", both)):
        mixed = command(*pair, "--no-worse")
        said = f"{both} is a run and {tmp_path / 'model'} a model; expected two runs, or two models"
        assert (mixed.exit_code, said in mixed.output) == (2, True)
        assert "no scenario is compared" in command(*pair).output


@pytest.mark.parametrize("words", [("--exit-code",), ("--no-worse",), ("--json",)])
def test_a_folder_that_is_neither_model_nor_run_ends_with_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    done = command(tmp_path / "empty", tmp_path / "empty", *words)
    assert done.exit_code == 2
    assert "it is no model" in done.output
