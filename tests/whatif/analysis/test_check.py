"""Limits: each is kept or broken as the tables say, what can't be told is not kept, and the command fails with 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from mesh_config.models import Treatment
from router.cli import main
from router.whatif.analysis.check import LimitResult, Limits, check
from router.whatif.analysis.offered_deliveries import deliveries
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.report import finish_run
from router.whatif.scenarios.run_request import Request
from router.whatif.wording import percent
from tests.whatif.naive import Naive
from tests.whatif.runs import everything, made
from tests.whatif.small import address, demand, mesh, site

REQUEST = Request(families="links:1-2,routers:1,srlg", growth="1:1.5:0.5")


@pytest.fixture(scope="module")
def model() -> Model:
    """One that has everything, and an address whose subscribers are all at one router."""
    whole = everything(14, 24)
    return attrs.evolve(
        whole,
        addresses=[*whole.addresses, address("lone")],
        subscribers=[*whole.subscribers, site("lone", "r05")],
        demands=[*whole.demands, demand("r01", "lone", 3)],
    )


@pytest.fixture(scope="module")
def whole(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(model, tmp_path_factory.mktemp("check") / "run")


def run(model: Model, folder: Path, request: Request = REQUEST) -> Path:
    made(model, request, folder, engine="local", workers=1)
    finish_run.complete_run(folder, model)
    return folder


def answer(folder: Path, model: Model, **limits: Any) -> LimitResult:
    (found,) = check(folder, Limits(**limits), model)
    return found


def rows(folder: Path, variant: str = "base") -> list[dict[str, Any]]:
    found = [row for row in read_table(folder, "scenario").to_pylist() if row["variant"] == variant]
    for row in found:
        row["living_pairs"] = row["unreachable_pairs"] - row["dead_end_pairs"]
    return found


MEASURES = {
    "max_util": "max_utilisation",
    "max_lost_pairs": "living_pairs",
    "max_lost_msgs": "lost_msgs_per_s",
    "max_dead_addresses": "dead_addresses",
    "max_starved_publishers": "starved_publishers",
    "max_stretch": "stretch_p99",
    "max_delay_ms": "delay_p99_ms",
}


@pytest.mark.parametrize("limit", MEASURES)
@pytest.mark.parametrize("variant", ["base", "growth 1.5"])
def test_a_limit_is_kept_up_to_the_worst_scenario_and_broken_below(
    whole: Path, model: Model, limit: str, variant: str
) -> None:
    column = MEASURES[limit]
    values = {row["scenario"]: row[column] or 0 for row in rows(whole, variant)}
    worst = max(values.values())
    assert worst > 0, "or the test tells nothing"
    assert answer(whole, model, **{limit: worst}, variant=variant).is_kept
    less = worst - 1 if isinstance(worst, int) else worst * 0.999
    found = answer(whole, model, **{limit: less}, variant=variant)
    assert not found.is_kept
    over = sorted((number for number in values if values[number] > less), key=lambda at: (-values[at], at))
    assert found.scenarios == tuple(over[:5])
    assert found.count == len(over)
    assert len(found.faults) == min(5, len(over))
    assert found.faults[0].startswith(f"scenario {over[0]}: ")


def test_only_the_families_that_are_asked_for_count(whole: Path, model: Model) -> None:
    for family in ("links:1", "links:2", "routers:1"):
        worst = max(row["max_utilisation"] for row in rows(whole) if row["family"] in (family, "none"))
        assert answer(whole, model, max_util=worst, families=(family,)).is_kept
        assert not answer(whole, model, max_util=worst * 0.999, families=(family,)).is_kept


def test_utilisation_when_nothing_fails_has_a_limit_of_its_own(whole: Path, model: Model) -> None:
    base = rows(whole)[0]["max_utilisation"]
    assert answer(whole, model, max_base_util=base).is_kept
    assert not answer(whole, model, max_base_util=base * 0.999).is_kept


def test_single_points_of_failure_can_be_allowed(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-A C-D")
    folder = run(model, tmp_path / "run", Request())
    found = answer(folder, model, no_single_point_of_failure=True)
    assert not found.is_kept
    assert [fault.partition(":")[0] for fault in found.faults] == ["link C--D", "router C"]
    assert not answer(folder, model, no_single_point_of_failure=True, allowed=("C",)).is_kept
    assert answer(folder, model, no_single_point_of_failure=True, allowed=("C", "C--D")).is_kept
    ring = mesh("A-B B-C C-A")
    assert answer(run(ring, tmp_path / "ring", Request()), ring, no_single_point_of_failure=True).is_kept


def test_single_points_of_failure_of_a_changed_mesh_are_its_own(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-A C-D")
    folder = run(model, tmp_path / "run", Request(links=("A,D,1",)))
    assert not answer(folder, model, no_single_point_of_failure=True).is_kept
    assert answer(folder, model, no_single_point_of_failure=True, variant="changed").is_kept
    # Not played by themselves, they are found all the same.
    folder = run(model, tmp_path / "other", Request(families="links:2", costs=("A--B=2",)))
    found = answer(folder, model, no_single_point_of_failure=True, variant="changed")
    assert [fault.partition(":")[0] for fault in found.faults] == ["link C--D", "router C"]


def test_availability_is_kept_when_its_lower_end_is(whole: Path, model: Model) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    share = summary["availability"]["demand"]
    assert 0 < share["at_least"] < share["at_most"] < 1
    assert answer(whole, model, min_availability=share["at_least"]).is_kept
    between = (share["at_least"] + share["at_most"]) / 2
    found = answer(whole, model, min_availability=between)
    assert not found.is_kept
    rest = percent(summary["availability"]["residual"])
    assert found.faults == (f"{rest} of the time is not covered by the scenarios: more of them may give an answer",)


def test_what_breaks_a_limit_never_looks_like_it(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"capacity_msgs": 1000.0, "demands": [demand("A", "B", 450.4, is_address=False)]}
    model = mesh("A-B", **parts)
    folder = run(model, tmp_path / "run", Request(families="links:1"))
    found = answer(folder, model, max_util=0.45)
    assert (found.limit, found.found) == ("--max-util 0.45", "45.04 % utilisation")
    assert found.faults == ("scenario 0: nothing: 45.04 % on A--B from A",)
    assert answer(folder, model, max_util=0.45041).found == "at most 45.04 % utilisation"
    assert answer(folder, model, max_lost_msgs=450.0).found == "450.4 msg/s lost"
    rated = attrs.evolve(model, links=[attrs.evolve(model.links[0], failures_per_year=1.0, repair_hours=876.0)])
    found = answer(run(rated, tmp_path / "rated", Request(families="links:1")), rated, min_availability=0.91)
    assert found.limit == "--min-availability 0.91"
    assert found.found.startswith("at least 90.9 % of all messages, at most 90.9 %")


def test_credit_that_is_short_breaks_its_limit(tmp_path: Path) -> None:
    model = mesh(
        "A-B~5", addresses=[address("q")], subscribers=[site("q", "B", credit=9)], demands=[demand("A", "q", 1000)]
    )
    found = answer(run(model, tmp_path / "run", Request()), model, enough_credit=True)
    assert (found.is_kept, found.faults) == (False, ("q at B: 10 needed by 1 path, 9 configured",))
    enough = attrs.evolve(model, subscribers=[site("q", "B", credit=10)])
    assert (
        answer(run(enough, tmp_path / "enough", Request()), enough, enough_credit=True).found
        == "1 path with enough credit"
    )
    more = attrs.evolve(
        enough,
        addresses=[address("q"), address("r")],
        subscribers=[*enough.subscribers, site("r", "B")],
        demands=[demand("A", "q", 1000), demand("A", "r", 1), demand("B", "A", 1, is_address=False)],
    )
    found = answer(run(more, tmp_path / "more", Request()), more, enough_credit=True)
    assert found.is_kept
    unknown = "(without 1 path of which credit or delay is not known)"
    assert found.found == f"1 path with enough credit {unknown}"
    said = json.loads((tmp_path / "more" / "summary.json").read_text())
    assert said["credit"] == {"paths": 3, "known": 1, "unknown": 1, "short": 0, "worst": []}
    (verdict,) = (it for it in said["verdicts"] if it["topic"] == "credit")
    assert verdict["note"] == f"The credit is enough for the rate on 1 path {unknown}."


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_util": 1.0}, "no capacities"),
        ({"max_base_util": 1.0}, "no capacities"),
        ({"max_delay_ms": 1.0}, "no delays"),
        ({"min_availability": 0.9}, "no failure and repair rates"),
        ({"enough_credit": True}, "no credit"),
    ],
)
def test_what_a_run_cannot_tell_is_not_kept(limits: dict[str, Any], why: str, tmp_path: Path) -> None:
    model = mesh(
        "A-B B-C C-A", addresses=[address("q")], subscribers=[site("q", "B")], demands=[demand("A", "q", 1000)]
    )
    found = answer(run(model, tmp_path / "run", Request()), model, **limits)
    assert not found.is_kept
    assert found.found.startswith("can't be determined: ")
    assert why in found.found


def test_credit_of_a_mesh_that_sends_nothing_to_subscribers_cannot_be_told(tmp_path: Path) -> None:
    model = mesh("A-B", addresses=[address("q")], subscribers=[site("q", "B", credit=9)])
    folder = run(model, tmp_path / "run", Request())
    for limit in ("enough_credit", "enough_credit_always"):
        found = answer(folder, model, **{limit: True})
        assert (found.is_kept, found.found) == (False, "can't be determined: the model sends nothing to subscribers")


def test_what_is_counted_is_told_in_its_number(tmp_path: Path) -> None:
    demands = [demand("A", "q", 1)]
    model = mesh("A-B", addresses=[address("q")], subscribers=[site("q", "B")], demands=demands)
    folder = run(model, tmp_path / "run", Request(families="routers:1"))
    assert answer(folder, model, max_dead_addresses=0).found == "1 address without a subscriber"
    assert answer(folder, model, max_starved_publishers=0).faults == ("scenario 2: router B: 1 publisher",)
    assert answer(folder, model, max_lost_pairs=0).found == "at most 0 pairs that lose connectivity"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"variant": "growth 1.6"}, "no variant `growth 1.6`; .* did you mean `growth 1.5`?"),
        ({"families": ("link:1",)}, "no family `link:1`; .* did you mean `links:1`?"),
        ({"allowed": ("r0",)}, "no router, link or group `r0`; did you mean `r"),
    ],
)
def test_names_that_are_not_there_are_refused(whole: Path, model: Model, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        check(whole, Limits(**limits), model)


# The command


def command(*words: object) -> Any:
    return CliRunner().invoke(main, ["whatif", "check", *map(str, words)])


def test_the_command_fails_with_1_when_a_limit_is_broken_and_names_the_scenario(whole: Path) -> None:
    kept = command(whole, "--max-util", "1000%", "--max-lost-pairs", 10**6)
    assert (kept.exit_code, kept.output.count("kept")) == (0, 2)
    broken = command(whole, "--max-util", "1%", "--max-lost-pairs", 10**6)
    assert broken.exit_code == 1
    worst = max(rows(whole), key=lambda row: row["max_utilisation"])
    assert "broken  --max-util 0.01: " in broken.output
    assert f"scenario {worst['scenario']}: " in broken.output
    assert "and " in broken.output.splitlines()[6]


def test_the_command_writes_json(whole: Path) -> None:
    done = command(whole, "--no-single-point-of-failure", "--json")
    (found,) = json.loads(done.stdout)
    assert found["limit"] == "--no-single-point-of-failure"
    assert done.exit_code == (0 if found["is_kept"] else 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no limit is given"),
        (("--max-util", "much"), "no share"),
        (("--max-util", "80"), "did you mean 80%, or 0.8?"),
        (("--min-availability", "99.9"), "did you mean 99.9%, or 0.999?"),
        (("--max-util", "0.5", "--variant", "growth"), "no variant `growth`"),
    ],
)
def test_input_that_cannot_be_used_ends_with_2(whole: Path, words: tuple[str, ...], said: str) -> None:
    done = command(whole, *words)
    assert done.exit_code == 2
    assert said in done.output


def test_a_folder_that_is_no_run_ends_with_2(tmp_path: Path) -> None:
    done = command(tmp_path, "--max-util", "0.5")
    assert done.exit_code == 2
    assert "no run" in done.output


def test_credit_and_availability_are_those_of_the_variant(tmp_path: Path) -> None:
    model = mesh(
        "A-B~1 B-C~1 C-A~5",
        addresses=[address("q")],
        subscribers=[site("q", "B", credit=10, service_ms=10)],
        demands=[demand("A", "q", 100)],
    )
    rates = {"failures_per_year": 10.0, "repair_hours": 10.0}
    model = attrs.evolve(model, links=[attrs.evolve(link, **rates) for link in model.links])
    request = Request(families="links:1", growth="1:50:49", moves=("q,B,C",), costs=("A--C=9",))
    folder = run(model, tmp_path / "run", request)
    assert answer(folder, model, enough_credit=True).is_kept
    short = answer(folder, model, enough_credit=True, variant="growth 50")
    # 5,000 msg/s, each for 10 ms and 2 ms on the way.
    assert (short.is_kept, short.faults) == (False, ("q at B: 60 needed by 1 path, 10 configured",))
    moved = answer(folder, model, enough_credit=True, variant="changed, growth 50")
    assert moved.faults == ("q at C: 70 needed by 1 path, 10 configured",)
    base, grown = (answer(folder, model, min_availability=0.9, variant=name) for name in ("base", "growth 50"))
    assert base.found == grown.found
    assert base.found.endswith(", if 3 routers without failure and repair rates never fail")
    cut = attrs.evolve(model, links=[link for link in model.links if link.id != "A--C"])
    folder = run(cut, tmp_path / "cut", Request(families="links:1", moves=("q,B,C",)))
    one, two = (answer(folder, cut, min_availability=0.9, variant=name) for name in ("base", "changed"))
    assert one.found > two.found, "by way of one link, or of two"


def test_utilisation_is_that_of_links_whose_capacity_is_known(tmp_path: Path) -> None:
    model = mesh("A-B B-C", capacity_msgs=100.0, demands=[demand("A", "C", 50, is_address=False)])
    one = attrs.evolve(model, links=[attrs.evolve(model.links[0], capacity_msgs=None), model.links[1]])
    found = answer(run(one, tmp_path / "one", Request()), one, max_util=0.8)
    assert found.is_kept
    assert found.found == "at most 50 % utilisation (without 1 link of which no capacity is known)"
    folder = run(model, tmp_path / "added", Request(links=("A,C,1,delay_ms=5",)))
    assert answer(folder, model, max_util=0.8).found == "at most 50 % utilisation"
    found = answer(folder, model, max_util=0.8, variant="changed")
    assert "without 1 link of which no capacity is known" in found.found
    none = attrs.evolve(model, links=[attrs.evolve(link, capacity_msgs=None) for link in model.links])
    folder = run(none, tmp_path / "none", Request(links=("A,C,1,capacity_msgs=10",)))
    for variant in ("base", "changed"):
        assert "the model has no capacities" in answer(folder, none, max_util=0.8, variant=variant).found


def test_no_delay_can_be_told_where_no_path_is_the_only_one(tmp_path: Path) -> None:
    model = mesh("A-B~1 B-C~1", demands=[demand("A", "C", 50, is_address=False)])
    made(model, Request(), tmp_path / "run", engine="local", routing="ecmp")
    finish_run.complete_run(tmp_path / "run", model)
    found = answer(tmp_path / "run", model, max_delay_ms=5)
    assert (found.is_kept, found.found) == (False, "can't be determined: no path is the only one with --routing ecmp")


# Availability and credit by family


def test_availability_counts_only_the_families_that_are_asked_for(whole: Path, model: Model) -> None:
    def bounds(*families: str) -> tuple[float, float]:
        weights = {row["scenario"]: row for row in rows(whole) if row["family"] in ("none", *families)}
        played = sum(row["probability"] for row in weights.values())
        lost = sum(row["probability"] * row["lost_msgs_per_s"] for row in weights.values()) / deliveries(model)
        return 1 - lost - (1 - played), 1 - lost

    assert bounds("links:1")[0] < bounds("links:1", "links:2")[0], "or the test tells nothing"
    for families in (("links:1",), ("links:1", "links:2"), ("routers:1",)):
        least, most = bounds(*families)
        assert answer(whole, model, min_availability=least - 1e-9, families=families).is_kept
        found = answer(whole, model, min_availability=(least + most) / 2, families=families)
        assert not found.is_kept
        assert "of the time is not covered by the scenarios" in found.faults[0]


def test_credit_is_looked_at_in_every_scenario_of_a_family(tmp_path: Path) -> None:
    # 2 ms there and back are 2 credits; without A - B it is 20 ms.
    model = mesh(
        "A-B~1 A-C~5 C-B~5",
        addresses=[address("q")],
        subscribers=[site("q", "B", credit=10)],
        demands=[demand("A", "q", 1000)],
    )
    folder = run(model, tmp_path / "run", Request())
    assert answer(folder, model, enough_credit=True, families=("links:1",)).is_kept
    found = answer(folder, model, enough_credit_always=True, families=("routers:1",))
    assert (found.is_kept, found.found) == (True, "enough credit on every path in 4 scenarios")
    assert not answer(folder, model, enough_credit_always=True).is_kept
    found = answer(folder, model, enough_credit_always=True, families=("links:1",))
    assert (found.limit, found.is_kept, found.found, found.count) == (
        "--enough-credit-always", False, "1 scenario with paths short of credit", 1,
    )  # fmt: skip
    (row,) = [row for row in rows(folder) if row["failed_links"] == ["A--B"]]
    assert found.scenarios == (row["scenario"],)
    assert found.faults == (f"scenario {row['scenario']}: link A--B: q at B: 20 needed, 10 configured",)


# Delays of addresses and classes


def slow_ring(**parts: Any) -> Model:
    """A - B - C - D - A, a hop of 1 ms each but D - A, which takes 7; q at C, and clients everywhere."""
    return mesh(
        "A-B~1 B-C~1 C-D~1 D-A~7",
        addresses=[address("q"), address("news", Treatment.MULTICAST), address("a=b")],
        subscribers=[site("q", "C"), site("news", "B"), site("news", "D"), site("a=b", "A")],
        demands=[
            demand("A", "q", 100),
            demand("D", "q", 1),
            demand("C", "news", 5),
            attrs.evolve(demand("A", "q", 300), klass="gold"),
            attrs.evolve(demand("B", "A", 7, is_address=False), klass="gold"),
        ],
        **parts,
    )


@pytest.fixture(scope="module")
def ring_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(slow_ring(), tmp_path_factory.mktemp("ring") / "run", Request(families="links:1,routers:1"))


def by_hand(folder: Path, model: Model, text: str | None, klass: str | None) -> dict[int, float]:
    """Delay of 99 % of the messages by scenario, worked out from nothing by the naive evaluation."""
    naive = Naive(model)
    found = {}
    for row in rows(folder):
        state = naive.state(row["failed_links"], row["failed_routers"])
        sent: list[tuple[int, float]] = []
        for each in model.demands:
            if (text is not None and each.address != text) or (klass is not None and each.klass != klass):
                continue
            if each.address is None:
                ends = [str(each.dst)] if state.is_joined(each.src, str(each.dst)) else []
            else:
                there = state.reachable(each.src, each.address)
                is_all = naive.treatment[each.address] is Treatment.MULTICAST
                ends = [to.router for far, to in there if is_all or far == there[0][0]]
            is_shared = each.address is not None and naive.treatment[each.address] is Treatment.CLOSEST
            share = each.msgs_per_s / (len(ends) if is_shared and ends else 1)
            sent += [(state.delay_us(each.src, end), share) for end in ends]
        total, passed = sum(share for _, share in sent), 0.0
        for delay, share in sorted(sent):
            passed += share
            if passed >= 0.99 * total - 1e-9:
                found[row["scenario"]] = delay / 1000
                break
    return found


@pytest.mark.parametrize(("text", "klass"), [("q", None), ("news", None), (None, "gold"), (None, "default")])
def test_delays_have_limits_by_address_and_by_class(ring_run: Path, text: str | None, klass: str | None) -> None:
    model = slow_ring()
    values = by_hand(ring_run, model, text, klass)
    worst = max(values.values())
    assert worst > values[0], "or the test tells nothing of failures"
    name, option = (text, "max_address_delay_ms") if text else (klass, "max_class_delay_ms")
    assert answer(ring_run, model, **{option: {name: worst}}).is_kept
    for most in (worst - 0.001, values[0] - 0.001):
        found = answer(ring_run, model, **{option: {name: most}})
        assert not found.is_kept
        assert found.limit == f"--{option.replace('_', '-')} {name}={most:g}"
        over = sorted((at for at in values if values[at] > most), key=lambda at: (-values[at], at))
        assert found.scenarios == tuple(over[:5])
        assert found.count == len(over)
        assert "for 99 % of the messages" in found.found


def test_delays_of_every_address_are_those_that_the_naive_evaluation_finds(whole: Path, model: Model) -> None:
    for text in ("rpc", "news", "lone"):
        values = by_hand(whole, model, text, None)
        worst = max(values.values())
        assert answer(whole, model, max_address_delay_ms={text: worst}).is_kept
        assert not answer(whole, model, max_address_delay_ms={text: worst - 0.001}).is_kept


def test_delays_of_an_address_that_can_not_be_told_are_not_within_limits(tmp_path: Path) -> None:
    model = mesh("A-B", addresses=[address("q")], subscribers=[site("q", "B")], demands=[demand("A", "q", 1)])
    found = answer(run(model, tmp_path / "run", Request()), model, max_address_delay_ms={"q": 5})
    assert (found.is_kept, found.found) == (False, "can't be determined: the model has no delays of links")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-address-delay-ms", "p=3"], "no address `p`; expected one of a=b, news, q"),
        (["--max-class-delay-ms", "golf=3"], "no class of demands `golf`; expected one of default, gold"),
        (["--max-address-delay-ms", "q"], "'q'; expected ADDRESS=MS, with a number of milliseconds"),
        (["--max-class-delay-ms", "gold=-1"], "expected CLASS=MS"),
        (["--max-address-delay-ms", "q=1", "--max-address-delay-ms", "q=2"], "`q` has a limit already"),
    ],
)
def test_limits_of_delays_that_make_no_sense_are_refused(ring_run: Path, options: list[str], words: str) -> None:
    done = CliRunner().invoke(main, ["whatif", "check", str(ring_run), *options])
    assert done.exit_code == 2
    assert words in done.output


def test_a_limit_of_what_no_scenario_has_is_kept_and_says_why(tmp_path: Path) -> None:
    model = mesh("A")
    found = answer(run(model, tmp_path / "run", Request()), model, max_stretch=2)
    assert (found.is_kept, found.found) == (True, "no pair of routers keeps a path in any scenario")


def test_an_address_may_have_an_equals_sign(ring_run: Path) -> None:
    done = CliRunner().invoke(main, ["whatif", "check", str(ring_run), "--max-address-delay-ms", "a=b=3"])
    assert done.exit_code == 0, done.output
    assert "kept    --max-address-delay-ms a=b=3: no message arrives in any scenario" in done.output
