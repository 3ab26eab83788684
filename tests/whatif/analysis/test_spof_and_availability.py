"""Answers from a run's tables: single points of failure, availability, and all that a run is given at its end."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings

from mesh_config.models import Treatment
from router.cli import main
from router.whatif.analysis import scenario_outcomes, suggest
from router.whatif.analysis.availability import Availability, Range, availability, calm_losses
from router.whatif.analysis.connectivity import analyse
from router.whatif.analysis.link_placement import Goal
from router.whatif.analysis.offered_deliveries import deliveries, deliveries_to
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.analysis.spof import spof_rows
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.elements import Group, GroupKind, RouterNode
from router.whatif.model.geography import EARTH_RADIUS_KM
from router.whatif.model.mesh_model import Model, with_links
from router.whatif.pipeline.run_folder import model_of
from router.whatif.pipeline.table_files import read_table, validate
from router.whatif.report import SUMMARY, finish_run
from router.whatif.scenarios.run_request import Request
from tests.helpers.examples import examples
from tests.whatif.naive import Naive
from tests.whatif.runs import everything, made
from tests.whatif.small import address, demand, mesh, models, site


def run(model: Model, folder: Path, request: Request) -> Path:
    made(model, request, folder, engine="local", workers=1)
    finish_run.complete_run(folder, model)
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    request = Request(families="links:1-2,routers:1,srlg,sites", maintenance=("window",), growth="2")
    return run(everything(), tmp_path_factory.mktemp("answers") / "run", request)


@pytest.mark.parametrize("name", ["router_spof", "credit_plan", "placement"])
def test_a_run_has_the_tables_of_answers(whole: Path, name: str) -> None:
    table = read_table(whole, name)
    assert table.num_rows
    validate(table, name)


def test_a_run_keeps_its_model(whole: Path) -> None:
    assert model_of(whole) == everything()
    assert json.loads((whole / SUMMARY).read_text())["model"]["sha256"] == everything().digest()


# Single points of failure


def naive_spof(model: Model) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Pairs, dead addresses and starved publishers by kind and element, each played by the slow evaluator."""
    naive = Naive(model)
    calm = naive.base
    found = {}
    elements: list[tuple[str, str, list[str], list[str]]] = []
    elements += [("link", link.id, [link.id], []) for link in model.links]
    elements += [("router", router.id, [], [router.id]) for router in model.routers]
    for group in model.groups:
        if group.kind is not GroupKind.MAINTENANCE:
            elements.append((str(group.kind), group.name, list(group.links), list(group.routers)))
    for kind, name, links, routers in elements:
        now = naive.state(links, routers)
        pairs = sum(src not in routers and dst not in routers for src, dst in naive.unreachable(now))
        dead = len(naive.dead_addresses(now)) - len(naive.dead_addresses(calm))
        starved = max(0, len(now.starved) - len(calm.starved))
        if pairs or dead or starved:
            found[kind, name] = (pairs, dead, starved)
    return found


def measured(rows: Any) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {
        (row["kind"], row["element"]): (row["unreachable_pairs"], row["dead_addresses"], row["starved_publishers"])
        for row in rows
    }


@settings(max_examples=examples(60))
@given(models(most=6))
def test_single_points_of_failure_are_those_that_trying_everything_finds(model: Model) -> None:
    network = Network.of(model)
    assert measured(spof_rows(None, model, network, Kernel(network))) == naive_spof(model)


def test_a_run_finds_the_same_whatever_it_has_played(tmp_path: Path) -> None:
    model = everything()
    expected = naive_spof(attrs.evolve(model, routers=[attrs.evolve(it, site=None) for it in model.routers]))
    for number, families in enumerate(("links:1,routers:1,srlg", "links:1", "links:2")):
        rows = read_table(run(model, tmp_path / str(number), Request(families=families)), "router_spof").to_pylist()
        assert measured(row for row in rows if row["kind"] != "site") == expected
        played = {row["kind"] for row in rows if row["scenario"] is not None}
        assert played <= {"link", "router", "srlg"}
        assert ("link" in played) == ("links:1" in families)


# Availability


def brute_force(model: Model) -> tuple[float, float]:
    """Shares of messages delivered and of pairs connected, over every state of links and routers there is."""
    naive = Naive(model)
    parts = [("link", link.id, link) for link in model.links] + [("router", it.id, it) for it in model.routers]
    odds = {(kind, name): it.failures_per_year * it.repair_hours / 8760 for kind, name, it in parts}
    sent = deliveries(model)
    served = connected = 0.0
    for states in itertools.product((False, True), repeat=len(parts)):
        down = [key for key, is_down in zip(odds, states, strict=True) if is_down]
        chance = math.prod(odds[key] if key in down else 1.0 for key in odds) / math.prod(
            1 + it for it in odds.values()
        )
        now = naive.state(
            [name for kind, name in down if kind == "link"], [name for kind, name in down if kind == "router"]
        )
        served += chance * (1 - now.lost[0] / 1e6 / sent)
        connected += chance * len(now.distance) / len(naive.base.distance)
    return served, connected


def rated(model: Model) -> Model:
    """With rates at which much is down."""
    return attrs.evolve(
        model,
        routers=[
            attrs.evolve(it, failures_per_year=200.0, repair_hours=3.0 + at) for at, it in enumerate(model.routers)
        ],
        links=[attrs.evolve(it, failures_per_year=300.0, repair_hours=2.0 + at) for at, it in enumerate(model.links)],
    )


def small() -> Model:
    return rated(
        mesh(
            "A-B B-C C-A C-D",
            addresses=[address("q"), address("all", Treatment.MULTICAST)],
            subscribers=[site("q", "D"), site("all", "A"), site("all", "D")],
            demands=[demand("A", "q", 10), demand("B", "all", 5), demand("D", "B", 7, is_address=False)],
        )
    )


def of(folder: Path) -> Availability:
    found = availability(folder, model_of(folder), calm_losses(model_of(folder)))
    assert found is not None
    return found


def test_availability_is_a_range_that_holds_the_truth_and_narrows(tmp_path: Path) -> None:
    model = small()
    truth = brute_force(model)
    width = 1.0
    for number, families in enumerate(
        (
            "links:1,routers:1",
            "links:1-2,routers:1-2,links:1+routers:1",
            "links:1-4,routers:1-4,links:1-4+routers:1-4",
        )
    ):
        found = of(run(model, tmp_path / str(number), Request(families=families)))
        assert found.demand is not None
        assert found.pairs is not None
        for share, true in zip((found.demand, found.pairs), truth, strict=True):
            assert share.at_least <= true + 1e-9
            assert share.at_most >= true - 1e-9
        assert found.demand.at_most - found.demand.at_least < width
        width = found.demand.at_most - found.demand.at_least
        assert found.residual == pytest.approx(1 - found.coverage)
    # At the last everything was played: the range is a point.
    assert found.residual == pytest.approx(0, abs=1e-9)
    assert (found.demand.at_least, found.pairs.at_least) == (pytest.approx(truth[0]), pytest.approx(truth[1]))


def test_addresses_and_pairs_have_their_own(tmp_path: Path) -> None:
    model = small()
    found = of(run(model, tmp_path / "run", Request(families="links:1-4,routers:1-4,links:1-4+routers:1-4")))
    up = {it.id: 1 / (1 + it.failures_per_year * it.repair_hours / 8760) for it in (*model.routers, *model.links)}
    addresses = {it.address: it for it in found.addresses}
    # `q` has a subscriber while D lives; its messages arrive while A, C and D live and are joined.
    assert addresses["q"].subscribed.at_least == pytest.approx(up["D"])
    direct, around = up["A--C"], up["A--B"] * up["B"] * up["B--C"]
    joined = up["A"] * up["C"] * up["D"] * up["C--D"] * (direct + (1 - direct) * around)
    assert addresses["q"].demand.at_least == pytest.approx(joined)
    pairs = {(it.src, it.dst): it.connected.at_least for it in found.worst_pairs}
    assert pairs["A", "D"] == pairs["D", "A"] == pytest.approx(joined)


def test_what_rounding_leaves_of_an_availability_is_nothing() -> None:
    never = Range.of(0.1 + 0.2, 0.7 - 2**-53)
    assert 1 - (0.1 + 0.2) - (0.7 - 2**-53) > 0, "so much is left of sums"
    assert (never.at_least, Range.of(1 - 2**-53, 0.0).at_most) == (0.0, 0.0)
    assert Range.of(0.25, 0.25) == Range(at_least=0.5, at_most=0.75)
    assert Range.of(1.5, 0.0) == Range(at_least=0.0, at_most=0.0)
    assert Range.of(-0.5, 0.0) == Range(at_least=1.0, at_most=1.0)


def test_what_nobody_rates_has_no_availability(tmp_path: Path) -> None:
    folder = run(mesh("A-B"), tmp_path / "run", Request())
    assert availability(folder, model_of(folder), calm_losses(model_of(folder))) is None


def test_maintenance_does_not_count_as_time(tmp_path: Path) -> None:
    group = Group(name="window", kind=GroupKind.MAINTENANCE, routers=("D",))
    model = attrs.evolve(small(), groups=[group])
    plain = of(run(model, tmp_path / "plain", Request()))
    held = of(run(model, tmp_path / "held", Request(maintenance=("window",), growth="2")))
    assert plain == held


def test_a_multicast_counts_once_for_each_router_with_subscribers() -> None:
    model = small()
    assert deliveries_to(model) == {"q": 10, "all": 10}
    assert deliveries(model) == 27


# Suggestions and credit


def test_what_a_link_gains_is_what_the_mesh_with_it_has() -> None:
    model = everything()
    network = Network.of(model)
    whole = suggest.SuggestInput(model, network, Kernel(network), suggest.SuggestOptions(count=8, cost=2))
    for goal in Goal:
        rows = suggest.link_rows(whole, goal)
        assert rows, goal
        gains = [row["gain"] for row in rows]
        assert gains == sorted(gains, reverse=True)
        for row in rows:
            link = attrs.evolve(model.links[0], id="new", a=row["a"], b=row["b"], cost=2)
            changed = with_links(model, [link])
            network = Network.of(changed)
            again = suggest.SuggestInput(changed, network, Kernel(network), suggest.SuggestOptions(cost=2))
            if goal is Goal.DISTANCE:
                count = len(model.routers)
                assert row["after"] == pytest.approx(again.distance.sum() / (count * (count - 1)))
            elif goal is Goal.TRAFFIC:
                # Messages keep the destinations that they have.
                assert row["after"] == pytest.approx((again.distance * whole.traffic()).sum() / 2)
            else:
                found = again.connectivity
                left = sum(found.pairs_split_by_link(each) for each in found.bridges)
                left += sum(found.pairs_split_by_node(each) for each in found.cuts)
                assert row["after"] == left


def test_a_link_that_relieves_the_busiest_is_played() -> None:
    names = "ABCDEFGH"
    ring = " ".join(f"{one}-{other}" for one, other in itertools.pairwise([*names, names[0]]))
    model = mesh(
        ring,
        capacity_msgs=100.0,
        demands=[demand("A", "E", 40, is_address=False), demand("B", "E", 30, is_address=False)],
    )
    network = Network.of(model)
    options = suggest.SuggestOptions(count=3)
    rows = suggest.utilisation_rows(suggest.SuggestInput(model, network, Kernel(network), options))
    best = rows[0]
    assert (best["measure"], best["before"]) == ("max_utilisation", 0.7)
    assert best["after"] == 0.4


def test_parts_of_a_mesh_are_joined_first_where_the_largest_are() -> None:
    model = mesh("A-B B-C D-E F")
    network = Network.of(model)
    whole = suggest.SuggestInput(model, network, Kernel(network), suggest.SuggestOptions())
    best = suggest.join_rows(whole)[0]
    assert (best["measure"], best["gain"]) == ("unreachable_pairs", 12)
    assert (best["a"], best["b"]) == ("B", "D")


def test_links_can_be_bounded_in_length() -> None:
    places = {"A": 0.0, "B": 1.0, "C": 2.0, "D": 3.0}
    routers = [RouterNode(id=name, latitude=0.0, longitude=east) for name, east in places.items()]
    model = attrs.evolve(mesh("A-B B-C C-D"), routers=routers)
    network = Network.of(model)
    degree_km = 2 * math.pi * EARTH_RADIUS_KM / 360
    found = suggest.kilometres(model)
    assert found[0, 3] == pytest.approx(3 * degree_km)
    for most, expected in ((2.5 * degree_km, {("A", "C"), ("B", "D")}), (1.5 * degree_km, set()), (None, {("A", "D")})):
        whole = suggest.SuggestInput(model, network, Kernel(network), suggest.SuggestOptions(count=9, max_km=most))
        pairs = {(row["a"], row["b"]) for row in suggest.link_rows(whole, Goal.DISTANCE)}
        assert expected <= pairs
        assert all(found[ord(a) - 65, ord(b) - 65] <= (most or 1e9) for a, b in pairs)


def command(*words: object) -> Any:
    return CliRunner().invoke(main, ["whatif", *map(str, words)])


@pytest.mark.parametrize(
    ("placed", "status", "said"),
    [
        ("", 2, "Error: --max-km: no router of the model has a latitude and a longitude\n"),
        ("AB", 0, "no new link to routers without latitude and longitude: C, D\n"),
        ("ABCD", 0, ""),
    ],
)
def test_links_whose_length_nobody_knows_are_told_of(placed: str, status: int, said: str, tmp_path: Path) -> None:
    routers = [
        RouterNode(id=name, latitude=0.0 if name in placed else None, longitude=0.0 if name in placed else None)
        for name in "ABCD"
    ]
    write_model(attrs.evolve(mesh("A-B B-C C-D"), routers=routers), tmp_path / "model")
    told = command("suggest", tmp_path / "model", "--no-subscribers", "--max-km", 5)
    lines = [line for line in told.stderr.splitlines(keepends=True) if "looking for" not in line]
    assert (told.exit_code, "".join(lines)) == (status, said)


def test_the_commands_suggest_and_credit_answer_for_models_and_runs(whole: Path, tmp_path: Path) -> None:
    write_model(everything(), tmp_path / "model")
    for folder in (whole, tmp_path / "model"):
        rows = json.loads(command("suggest", folder, "--count", 2, "--json").stdout)
        assert {row["kind"] for row in rows} >= {"link", "move", "addition"}
        assert max(row["rank"] for row in rows) == 2
        rows = json.loads(command("credit", folder, "--json").stdout)
        table = read_table(whole, "credit_plan").to_pylist()
        assert sorted(map(str, rows)) == sorted(map(str, table))
    done = command("suggest", whole, "--goal", "utilisation", "--no-subscribers")
    assert (done.exit_code, done.stdout.count("Links, by")) == (0, 1)
    done = command("credit", whole, "--address", "work", "--limit", 1, "--batch", "half", "--client-ms", 1)
    assert done.exit_code == 0
    assert "more: see --limit" in done.output
    well = {row["address"] for row in rows} - {row["address"] for row in rows if row["is_enough"] is False}
    done = command("credit", whole, "--address", min(well), "--short")
    assert done.output == "no path is known to be short of credit\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("suggest", "--address", "nope"), "no address `nope`"),
        (("suggest", "--no-links", "--no-subscribers"), "nothing is left to look for"),
        (("credit", "--address", "wrok"), "no address `wrok` in the model; did you mean `work`?"),
        (("credit", "--batch", "many"), "expected a number of messages from 1, or `half`"),
        (("credit", "--down", "r99"), "no router, link or group `r99`"),
    ],
)
def test_what_is_not_there_is_refused_with_2(whole: Path, words: tuple[str, ...], message: str) -> None:
    done = command(words[0], whole, *words[1:])
    assert done.exit_code == 2
    assert message in done.output


def test_the_command_report_writes_it_again_and_says_it_in_short(whole: Path) -> None:
    done = command("report", whole)
    assert done.exit_code == 0
    assert "Single points of failure: " in done.output
    assert done.output.rstrip().endswith("report.html, " + str(whole / SUMMARY))


def test_bridges_of_a_mesh_with_parallel_links_are_none() -> None:
    model = mesh("A-B A-B B-C")
    network = Network.of(model)
    ends = list(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True))
    assert [network.links[link] for link in analyse(3, ends).bridges] == ["B--C"]
    assert np.array_equal(analyse(3, ends).labels_without_link(0), [0, 0, 0])


def test_outcomes_of_many_scenarios_are_read_by_columns_and_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(
        everything(), tmp_path / "run", Request(families="links:1-2,srlg", maintenance=("window",), growth="2")
    )
    whole = Outcomes.read(folder)
    places = [7, 0, len(whole) - 1, 7]
    wanted = whole.rows(places), list(whole.alone()), whole.values("family"), whole.row_of(11)
    masks = [
        whole.having(name, value) for name, value in (("variant", "growth 2"), ("family", "srlg"), ("family", "x"))
    ]
    monkeypatch.setattr(scenario_outcomes, "WHOLE_ROWS", 0)
    found = Outcomes.read(folder)
    assert (found.rows(places), list(found.alone()), found.values("family"), found.row_of(11)) == wanted
    for mask, name, value in zip(masks, ("variant", "family", "family"), ("growth 2", "srlg", "x"), strict=True):
        assert mask.any() == (value != "x")
        assert (found.having(name, value) == mask).all()
