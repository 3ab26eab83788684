"""Plans of links and upgrades, and costs of links: compared with all there are, on small meshes; as commands."""

from __future__ import annotations

import errno
import itertools
import json
import os
import random
import sys
from pathlib import Path
from types import FrameType

import attrs
import pytest
from click.testing import CliRunner

from mesh_config.findings import SettingsError
from mesh_config.generators import generate
from mesh_config.loader import load_mesh
from mesh_config.render import render_mesh
from router.cli import main
from router.cli.whatif.optimise import optimise
from router.cli.whatif.plan import plan
from router.whatif.analysis.cost_search import CostLimits, better_costs
from router.whatif.analysis.failure_sweep import TRIES, FailureSweep
from router.whatif.analysis.upgrade_plan import PlanLimits, PlanSearch
from router.whatif.formats import model_folder
from router.whatif.formats.details_file import with_details
from router.whatif.formats.importer import import_model
from router.whatif.formats.mesh_settings import built_in_treatment, links_by_id
from router.whatif.formats.model_folder import read_model, write_model
from router.whatif.formats.price_file import PricedChange, PricedOptions, read_prices
from router.whatif.model.demands import Demand
from router.whatif.model.elements import Group, GroupKind, LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model, with_costs, with_links
from router.whatif.scenarios.scenario_plan import families_of
from tests.whatif import small

FAMILIES = families_of("links:1,routers:1")
SIX = "ABCDEF"


def mesh(seed: int) -> tuple[Model, PricedOptions]:
    """Six routers in a tree and a link, all sending to all, and prices of three links and of two upgrades of each."""
    rng = random.Random(seed)
    ends = [(SIX[rng.randrange(number)], SIX[number]) for number in range(1, 6)]
    free = [pair for pair in itertools.combinations(SIX, 2) if pair not in ends]
    rng.shuffle(free)
    ends.append(free.pop())
    links = [
        LinkEdge(id=f"{a}--{b}", a=a, b=b, cost=rng.randint(1, 3), capacity_msgs=rng.choice([60.0, 90.0, 120.0]))
        for a, b in sorted(ends)
    ]
    model = Model(
        name="six",
        routers=[RouterNode(id=name) for name in SIX],
        links=links,
        demands=[
            Demand(src=a, dst=b, msgs_per_s=float(rng.randint(1, 20)), msg_bytes=100.0)
            for a, b in itertools.permutations(SIX, 2)
        ],
    )
    model.check()
    builds = [
        PricedChange(
            link=LinkEdge(id=f"{a}--{b}", a=a, b=b, cost=rng.randint(1, 3), capacity_msgs=150.0),
            price=rng.randint(3, 9),
        )
        for a, b in free[:4]
    ]
    upgrades = [
        PricedChange(link=attrs.evolve(link, capacity_msgs=(link.capacity_msgs or 0) * times), price=price)
        for link in links
        for times, price in ((2.0, 2.0), (4.0, 3.0))
    ]
    return model, PricedOptions(builds=tuple(builds), upgrades=tuple(upgrades))


def is_kept(model: Model, limits: PlanLimits) -> bool:
    sweep = FailureSweep.of(model, FAMILIES)
    return (limits.max_util is None or sweep.max_utilisation <= limits.max_util) and (
        limits.max_lost_pairs is None or sweep.lost_pairs <= limits.max_lost_pairs
    )


def cheapest(model: Model, prices: PricedOptions, limits: PlanLimits) -> float | None:
    """The price of the cheapest plan, by trying all sets of links, each with all sets of upgrades."""
    by_link: dict[str, list[PricedChange | None]] = {link.id: [None] for link in model.links}
    for upgrade in prices.upgrades:
        by_link[upgrade.link.id].append(upgrade)
    found: list[float] = []
    for count in range(len(prices.builds) + 1):
        for builds in itertools.combinations(prices.builds, count):
            wider = with_links(model, [build.link for build in builds])
            sweep = FailureSweep.of(wider, FAMILIES)
            if limits.max_lost_pairs is not None and sweep.lost_pairs > limits.max_lost_pairs:
                continue
            price = sum(build.price for build in builds)
            loads = {link.id: load[0] / 1e6 for link, load in zip(wider.links, sweep.loads, strict=True)}
            if limits.max_util is not None:
                for link in wider.links:
                    prices_of = [
                        0.0 if choice is None else choice.price
                        for choice in by_link.get(link.id, [None])
                        if loads[link.id]
                        <= limits.max_util * ((link if choice is None else choice.link).capacity_msgs or 0)
                    ]
                    price += min(prices_of, default=float("inf"))
            found.append(price)
    best = min(found, default=float("inf"))
    return None if best == float("inf") else best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "limits", [PlanLimits(max_util=0.8), PlanLimits(max_util=1.0, max_lost_pairs=0), PlanLimits(max_lost_pairs=4)]
)
def test_a_plan_is_the_cheapest_of_all_and_keeps_the_limits(seed: int, limits: PlanLimits) -> None:
    model, prices = mesh(seed)
    search = PlanSearch(model, prices, limits, FAMILIES)
    found = search.find()
    assert found.price == cheapest(model, prices, limits)
    assert found.is_cheapest == (found.price is not None)
    if found.price is not None:
        assert found.price == sum(each.price for each in (*found.builds, *found.upgrades))
        assert is_kept(search.planned(found), limits)
    # With few tries it says what every plan costs at least.
    hasty = PlanSearch(model, prices, limits, FAMILIES).find(tries=3)
    assert hasty.tries <= 3
    if found.price is not None:
        assert hasty.at_least <= found.price <= (hasty.price or found.price)


def test_single_points_of_failure_are_those_of_check(tmp_path: Path) -> None:
    model, prices = mesh(2)
    limits = PlanLimits(no_single_point_of_failure=True)
    every = tuple(
        PricedChange(link=LinkEdge(id=f"{a}--{b}#9", a=a, b=b, capacity_msgs=500.0), price=5.0)
        for a, b in itertools.combinations(SIX, 2)
    )
    search = PlanSearch(model, attrs.evolve(prices, builds=every), limits, FAMILIES)
    found = search.find()
    assert found.is_cheapest
    write_model(search.planned(found), tmp_path / "planned")
    for words in (
        ["run", str(tmp_path / "planned"), "-o", str(tmp_path / "run"), "--no-report", "--engine", "local"],
        ["check", str(tmp_path / "run"), "--no-single-point-of-failure"],
    ):
        done = CliRunner().invoke(main, ["whatif", *words])
        assert done.exit_code == 0, done.output
    # The same one as it is doesn't.
    assert PlanSearch(model, PricedOptions(builds=(), upgrades=()), limits, FAMILIES).find().price is None


PRICES = """
new_links: [{a: C, b: A, price: 8}]
upgrades: [{link: A--B, capacity_msgs: 90, price: 2}, {link: "*", times: 3, price: 4}]
"""


def line() -> Model:
    """A to B to C, 50 msg/s to both."""
    model = Model(
        name="line",
        routers=[RouterNode(id=name) for name in "ABC"],
        links=[LinkEdge(id=f"{a}--{b}", a=a, b=b, capacity_msgs=60.0) for a, b in ("AB", "BC")],
        demands=[Demand(src="A", dst=dst, msgs_per_s=50.0, msg_bytes=1.0) for dst in "BC"],
    )
    model.check()
    return model


def test_a_plan_is_told_and_written(tmp_path: Path) -> None:
    write_model(line(), tmp_path / "model")
    file = tmp_path / "prices.yaml"
    file.write_text(PRICES)
    words = ["whatif", "plan", str(tmp_path / "model"), "--prices", str(file), "--max-util", "80%"]
    done = CliRunner().invoke(main, [*words, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    # 100 msg/s on A--B: 180 are enough, 90 are not; B--C is at 83 %.
    assert [(step["kind"], step["link"], step["capacity_msgs"]) for step in told["steps"]] == [
        ("upgrade", "A--B", 180.0),
        ("upgrade", "B--C", 180.0),
    ]
    assert (told["price"], told["is_cheapest"]) == (8.0, True)
    done = CliRunner().invoke(main, [*words, "--max-lost-pairs", "0", "-o", str(tmp_path / "planned")])
    assert done.exit_code == 0, done.output
    assert "no plan is cheaper" in done.stdout
    assert {link.id for link in read_model(tmp_path / "planned").links} == {"A--B", "A--C", "B--C"}
    file.write_text("upgrades: [{link: A--B, times: 2, price: 1}]")
    done = CliRunner().invoke(main, [*words, "--max-lost-pairs", "0"])
    assert done.exit_code == 1
    said = "no combination of the priced changes satisfies --max-lost-pairs 0 and --max-util 0.8; 1 mesh evaluated"
    assert said in done.stdout
    done = CliRunner().invoke(main, [*words, "--json"])
    assert json.loads(done.stdout)["broken"] == ["--max-util 0.8"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fail", "srlg"], "`srlg`: the model has no group of kind srlg"),
        (["--fail", "links:9"], "`links:9`: the mesh has 2 links and 3 routers; expected fewer failures at once"),
        (["--allow", "R33"], "no router, link or group `R33`; expected one of A, B, C, A--B, B--C"),
    ],
)
def test_a_plan_refuses_failures_and_elements_that_are_not_there(
    options: list[str], words: str, tmp_path: Path
) -> None:
    write_model(line(), tmp_path / "model")
    (tmp_path / "prices.yaml").write_text(PRICES)
    asked = ["whatif", "plan", str(tmp_path / "model"), "--prices", str(tmp_path / "prices.yaml"), "--max-util", "9"]
    done = CliRunner().invoke(main, [*asked, *options])
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.parametrize("text", ["links:4", "links:16"])
def test_too_many_failures_are_refused_before_they_are_played(text: str) -> None:
    words = r"scenarios; expected at most 100,000,000: fewer failures at once, or --sample of a run"
    with pytest.raises(SettingsError, match=words):
        FailureSweep.of(small.mesh(" ".join(f"a{at}-a{at + 1}" for at in range(300))), families_of(text))


@pytest.mark.parametrize(("routing", "price"), [("mesh", 2.0), ("ecmp", 0.0)])
def test_a_plan_for_a_run_routes_as_the_run_does(routing: str, price: float, tmp_path: Path) -> None:
    """100 msg/s from A to D go over one path, or half of them over each of two, and 60 are what a link carries."""
    demands = [small.demand("A", "D", 100.0, is_address=False)]
    model = small.mesh("A-B A-C B-D C-D D-E", capacity_msgs=60.0, demands=demands)
    model = attrs.evolve(model, groups=[Group(name="far", kind=GroupKind.SRLG, routers=("E",))])
    write_model(model, tmp_path / "model")
    (tmp_path / "prices.yaml").write_text('upgrades: [{link: "*", times: 2, price: 1}]')
    run = str(tmp_path / "run")
    words = ["run", str(tmp_path / "model"), "-o", run, "--routing", routing, "--engine", "local", "--no-report"]
    done = CliRunner().invoke(main, ["whatif", *words, "--fail", "srlg"])
    assert done.exit_code == 0, done.output
    kept = CliRunner().invoke(main, ["whatif", "check", run, "--max-util", "1"])
    assert kept.exit_code == (0 if price == 0 else 1)
    words = ["plan", run, "--prices", str(tmp_path / "prices.yaml"), "--max-util", "1", "--fail", "srlg", "--json"]
    done = CliRunner().invoke(main, ["whatif", *words])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["price"] == price


def test_what_has_the_place_of_a_plan_is_told_before_it_is_searched(tmp_path: Path) -> None:
    write_model(line(), tmp_path / "model")
    (tmp_path / "prices.yaml").write_text("no prices")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note").touch()
    words = ["plan", str(tmp_path / "model"), "--prices", str(tmp_path / "prices.yaml"), "--max-util", "80%"]
    done = CliRunner().invoke(main, ["whatif", *words, "-o", str(tmp_path / "notes")])
    assert done.exit_code == 2
    expected = "error: it exists and has other contents; expected a new folder, or a model to replace"
    assert done.output == f"{tmp_path / 'notes'}: {expected}\n"


def test_a_plan_that_cannot_be_written_is_told_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_model(line(), tmp_path / "model")
    (tmp_path / "prices.yaml").write_text(PRICES)
    monkeypatch.setattr(model_folder, "write_model", full)
    words = ["plan", str(tmp_path / "model"), "--prices", str(tmp_path / "prices.yaml"), "--max-util", "80%"]
    done = CliRunner().invoke(main, ["whatif", *words, "-o", str(tmp_path / "planned")])
    assert done.exit_code == 1
    assert "price 8; no plan is cheaper" in done.stdout
    assert "No space left on device" in done.stderr
    assert "planned model" not in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "upgrades: [{link: A-B, times: 2, price: 1}]",
            "no link `A-B`; expected a link of the model; did you mean `A--B`?",
        ),
        ("upgrades: [{link: B--A, times: 2, price: 1}]", "expected a link of the model; did you mean `A--B`?"),
        ("upgrades:\n  - {link: A--Z, times: x}\n", "prices.yaml:2: error: upgrades[0].link: no link `A--Z`"),
        ("new_links:\n  - {a: A, b: A, price: 1}\n", "prices.yaml:2: error: new_links[0]: a link from"),
        ("", "prices.yaml:1: error: the file is empty; expected `new_links` or `upgrades`"),
        (
            "upgrades: [{link: A--B, times: 2, capacity_msgs: 3000, price: 1}]",
            "`times` and a capacity; expected `times`, or a capacity",
        ),
        (
            "upgrades: [{link: A--B, capacity_msgs: 5, price: 1}]",
            "upgrades[0].capacity_msgs: 5 is less than `A--B` can carry now; expected at least ",
        ),
        ("new_links: [{a: A, b: D, price: 1}]", "no router `D`"),
        ("new_links: [{a: A, b: A, price: 1}]", "a link from `A` to itself; expected two routers"),
        ("upgrades: [{link: A--B, price: 1}]", "nothing is more; expected `times`, or a capacity"),
        ("upgrades: [{link: A--B, times: 2}]", "price"),
        ("upgrade: []", "did you mean `upgrades`?"),
    ],
)
def test_prices_that_cannot_be_are_told_by_their_place(text: str, words: str, tmp_path: Path) -> None:
    write_model(line(), tmp_path / "model")
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    done = CliRunner().invoke(
        main, ["whatif", "plan", str(tmp_path / "model"), "--prices", str(file), "--max-util", "1"]
    )
    assert done.exit_code == 2
    assert words in done.output
    assert "prices.yaml" in done.output


def test_all_that_is_wrong_with_prices_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(
        "new_links:\n  - {a: A, b: X, price: 1}\n  - {a: A, b: A, price: 1}\n"
        "upgrades:\n  - {link: A--Z, times: 2, price: 1}\n  - {link: A--B, price: 1}\n"
    )
    with pytest.raises(SettingsError) as caught:
        read_prices(file, line())
    assert [(it.line, it.message) for it in caught.value.findings] == [
        (2, "no router `X`"),
        (3, "a link from `A` to itself"),
        (5, "no link `A--Z`"),
        (6, "nothing is more"),
    ]


def test_a_link_that_could_be_built_has_the_delay_of_fibre(tmp_path: Path) -> None:
    """As one of `--details` has: else the paths over it would look faster than they can be."""
    file = tmp_path / "prices.yaml"
    model = line()
    places = {router.id: float(number) for number, router in enumerate(model.routers)}
    model = attrs.evolve(
        model,
        routers=[attrs.evolve(router, latitude=0.0, longitude=places[router.id]) for router in model.routers],
    )
    first, last = model.routers[0].id, model.routers[-1].id
    ends = f"a: {last}, b: {first}, price: 1"
    file.write_text(f"new_links: [{{{ends}}}, {{{ends}, delay_ms: 3}}]\n", encoding="utf-8")
    straight, told = (build.link for build in read_prices(file, model).builds)
    assert straight.delay_ms == pytest.approx(places[last] * 111.195 / 200, rel=1e-4)
    assert told.delay_ms == 3
    details = tmp_path / "details.yaml"
    details.write_text(f"new_links: [{{a: {last}, b: {first}}}]\n", encoding="utf-8")
    detailed = {link.id: link for link in with_details(model, details, built_in_treatment).links}
    assert detailed[straight.id].delay_ms == straight.delay_ms


def test_every_link_is_upgraded_but_those_that_can_carry_as_much(tmp_path: Path) -> None:
    wide = attrs.evolve(line().links[1], capacity_msgs=100.0)
    model = attrs.evolve(line(), links=[line().links[0], wide])
    file = tmp_path / "prices.yaml"
    for text, expected in (
        ('{link: "*", capacity_msgs: 90, price: 1}', {"A--B": (90, None)}),
        ('{link: "*", capacity_msgs: 90, capacity_bytes: 7, price: 1}', {"A--B": (90, 7), "B--C": (100, 7)}),
        ('{link: "*", times: 2, price: 1}', {"A--B": (120, None), "B--C": (200, None)}),
    ):
        file.write_text(f"upgrades: [{text}]")
        links = [each.link for each in read_prices(file, model).upgrades]
        assert {link.id: (link.capacity_msgs, link.capacity_bytes) for link in links} == expected


# Costs


@pytest.mark.parametrize("seed", range(4))
def test_costs_lower_the_worst_and_what_is_told_is_so(seed: int) -> None:
    model, prices = mesh(seed)
    model = with_links(model, [build.link for build in prices.builds])
    limits = CostLimits(changes=2, max_cost=8, least={link.id: 1 for link in model.links[:-1]}, tries=400)
    found = better_costs(model, FAMILIES, limits)
    assert found.before == FailureSweep.of(model, FAMILIES).max_utilisation
    assert found.after == FailureSweep.of(with_costs(model, found.costs), FAMILIES).max_utilisation
    assert found.after <= found.before
    assert len(found.costs) <= 2
    assert set(found.costs) <= set(limits.least)
    # No step of one link from there is better; all that one link can do is looked at here.
    ones = [
        FailureSweep.of(with_costs(model, {link: cost}), FAMILIES).max_utilisation
        for link in limits.least
        for cost in (1, 2, 3, 4, 6)
    ]
    assert found.after <= min(ones) or len(found.costs) == 2


MESH = """\
mesh: {name: square}
defaults: {listener: {host: 127.0.0.1}}
routers:
  A:
    listeners: [{port: 5901, role: inter-router}]
  B:  # north
    listeners: [{port: 5902, role: inter-router}]
    connectors: [{to: A}]
  C:
    listeners: [{port: 5903, role: inter-router}]
    connectors:
      - to: A  # south
        cost: 1
      - to: D
  D:
    listeners: [{port: 5904, role: inter-router}]
    connectors: [{to: B}]
"""


def test_both_searches_play_as_many_meshes_unless_they_are_told() -> None:
    defaults = {option.default for command in (plan, optimise) for option in command.params if option.name == "tries"}
    assert defaults == {TRIES}


def test_costs_become_a_diff_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(MESH)
    model, _ = import_model(file)
    # By way of B goes what goes to D; the way by C has more room.
    room = {"A--B": 100.0, "B--D": 100.0, "A--C": 1000.0, "C--D": 1000.0}
    links = [attrs.evolve(link, capacity_msgs=room[link.id]) for link in model.links]
    demands = [Demand(src="A", dst="D", msgs_per_s=90.0, msg_bytes=1.0)]
    write_model(attrs.evolve(model, links=links, demands=demands), tmp_path / "model")
    words = ["whatif", "optimise", str(tmp_path / "model"), "--mesh", str(file), "--fail", "routers:1", "--json"]
    done = CliRunner().invoke(main, [*words, "--keep", "A--B"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["costs"] == []  # if C dies all goes by B
    # A failure in which all goes by C.
    risk = Group(name="duct", kind=GroupKind.SRLG, links=("A--B",))
    write_model(attrs.evolve(model, links=links, demands=demands, groups=[risk]), tmp_path / "model")
    done = CliRunner().invoke(main, [*words[:-3], "--fail", "srlg", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["before"], told["after"]) == (0.9, 0.09)
    (change,) = told["costs"]
    changed = [line for line in told["diff"].splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert len(changed) == 2
    assert f"cost: {change['after']}" in changed[1]
    # The file as it is then has these costs, and all else.
    patched = tmp_path / "patched.yaml"
    patched.write_text(_patched(MESH, told["diff"]))
    assert {link.id: link.cost for link in import_model(patched)[0].links} == {
        **{link.id: link.cost for link in model.links},
        change["link"]: change["after"],
    }
    assert "# south" in patched.read_text()
    assert load_mesh(patched).routers.keys() == load_mesh(file).routers.keys()


SQUARE_OF_CAPACITIES = {"A--B": 100.0, "B--D": 100.0, "A--C": 1000.0, "C--D": 1000.0}


def square(file: Path, folder: Path) -> None:
    """Write the model of MESH in which all goes by B, and has more room by C."""
    model, _ = import_model(file)
    links = [attrs.evolve(link, capacity_msgs=SQUARE_OF_CAPACITIES[link.id]) for link in model.links]
    demands = [Demand(src="A", dst="D", msgs_per_s=90.0, msg_bytes=1.0)]
    risk = Group(name="duct", kind=GroupKind.SRLG, links=("A--B",))
    write_model(attrs.evolve(model, links=links, demands=demands, groups=[risk]), folder)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_diff_has_the_ends_of_lines_of_the_file(end: str, mark: str, tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    # The last connector, whose cost is changed, is on the last line, which has no end.
    text = (mark + MESH.rstrip("\n")).replace("\n", end)
    file.write_bytes(text.encode())
    square(file, tmp_path / "model")
    words = ["whatif", "optimise", str(tmp_path / "model"), "--mesh", str(file), "--fail", "srlg", "--json"]
    done = CliRunner().invoke(main, [*words, "--keep", "A--B"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [change["link"] for change in told["costs"]] == ["B--D"]
    *_, context, old, no_end, new, last = told["diff"].split("\n")[:-1]
    assert (no_end, last) == (2 * ("\\ No newline at end of file",))
    assert [context[1:], old[1:]] == text.split("\n")[-2:]
    assert (context[0], old[0], new[0]) == (" ", "-", "+")
    assert new[1:] != old[1:]
    assert len([line for line in told["diff"].split("\n") if line.startswith(("-", "+"))]) == 4


def test_costs_are_not_sought_for_a_run_with_splitting(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(MESH)
    square(file, tmp_path / "model")
    words = ["run", str(tmp_path / "model"), "-o", str(tmp_path / "run"), "--routing", "ecmp", "--no-report"]
    done = CliRunner().invoke(main, ["whatif", *words, "--engine", "local"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["whatif", "optimise", str(tmp_path / "run")])
    assert done.exit_code == 2
    assert f"{tmp_path / 'run'}: a run with --routing ecmp; costs are sought for single paths" in done.stderr


def test_a_mesh_file_that_has_changed_since_the_model_was_made_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(MESH)
    square(file, tmp_path / "model")
    file.write_text(MESH.replace("cost: 1", "cost: 7").replace("[{to: B}]", "[{to: B}, {to: A}]"))
    done = CliRunner().invoke(main, ["whatif", "optimise", str(tmp_path / "model"), "--mesh", str(file)])
    assert done.exit_code == 0, done.output
    assert f"warning: {file} has links that the model lacks, which were left out: A--D\n" in done.stderr
    words = "has other costs of links than the model, whose costs were taken: A--C\n"
    assert f"warning: {file} {words}" in done.stderr


def _patched(text: str, diff: str) -> str:
    """The text after a diff whose one hunk changes one line."""
    lines = diff.splitlines()
    (old,), (new,) = (
        [line[1:] for line in lines if line.startswith(sign) and not line.startswith(3 * sign)] for sign in "-+"
    )
    assert text.count(old) == 1
    return text.replace(old, new)


def test_links_of_a_mesh_file_are_worked_out_a_few_times_however_many_they_are(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(render_mesh(generate("line", 12)), encoding="utf-8")
    model, _ = import_model(file)
    links = [attrs.evolve(link, capacity_msgs=10.0) for link in model.links]
    write_model(attrs.evolve(model, links=links), tmp_path / "model")
    calls: list[str] = []

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is links_by_id.__code__:
            calls.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        done = CliRunner().invoke(main, ["whatif", "optimise", str(tmp_path / "model"), "--mesh", str(file)])
    finally:
        sys.setprofile(None)
    assert done.exit_code == 0, done.output
    assert 0 < len(calls) <= 3


def test_a_mesh_that_is_no_regular_file_is_refused_as_that(tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(MESH)
    square(file, tmp_path / "model")
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as pipe:
        pipe.write(MESH)
        pipe.close()
        words = ["whatif", "optimise", str(tmp_path / "model"), "--mesh", f"/dev/fd/{reading}", "--fail", "srlg"]
        done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"/dev/fd/{reading}: error: a pipe or a device; expected a regular file\n"


def test_a_mesh_file_that_lacks_links_of_the_model_is_told(tmp_path: Path) -> None:
    write_model(small.mesh("R1-R2 R2-R3", capacity_msgs=10.0), tmp_path / "line")
    write_model(small.mesh("X-Y", capacity_msgs=10.0), tmp_path / "other")
    file = tmp_path / "mesh.yaml"
    file.write_text(render_mesh(generate("line", 2)), encoding="utf-8")
    done = CliRunner().invoke(main, ["whatif", "optimise", str(tmp_path / "line"), "--mesh", str(file)])
    assert done.exit_code == 0
    assert f"warning: {file} lacks links of the model, whose costs stay: R2--R3\n" in done.stderr
    done = CliRunner().invoke(main, ["whatif", "optimise", str(tmp_path / "other"), "--mesh", str(file)])
    assert done.exit_code == 2
    assert (
        f"{file}: it has no link of the model (X--Y); expected the mesh file that the model was made from"
        in done.stderr
    )
