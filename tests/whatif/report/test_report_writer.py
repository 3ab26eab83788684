"""The report of a run: what it says, and what a real browser makes of it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.whatif import report
from router.whatif.analysis import suggest
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.model.elements import RouterNode
from router.whatif.model.mesh_model import Model, with_demands
from router.whatif.pipeline import run as runs
from router.whatif.pipeline.run_folder import model_of
from router.whatif.pipeline.scenario_extremes import POINT_SCHEMA, POINTS, points_of
from router.whatif.pipeline.table_files import read_table
from router.whatif.report import finish_run, html_page
from router.whatif.report.html_page import page
from router.whatif.report.json_summary import schema
from router.whatif.report.pictures import pictures, rising
from router.whatif.report.router_positions import positions
from router.whatif.report.run_facts import facts_of
from router.whatif.report.themed_matplotlib_svg import DARK, LIGHT, STAND_INS
from router.whatif.report.verdicts import verdicts
from router.whatif.scenarios.run_request import Request
from router.whatif.wording import counted, per_year, percent
from tests.whatif import browser
from tests.whatif.runs import everything, made
from tests.whatif.small import address, demand, mesh, models, site

REQUEST = Request(families="links:1-2,routers:1,srlg", maintenance=("window",), growth="1:2:0.5")
EVIL = "x<b>&$a_1$"
"""A name that is markup and mathematics, if it is taken for that."""


def evil() -> Model:
    return mesh(
        f"A-{EVIL} {EVIL}-C C-A C-D",
        demands=[demand("A", EVIL, 5, is_address=False), demand("D", "A", 9, is_address=False)],
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a mesh that has everything, with its report."""
    return run(everything(), REQUEST, tmp_path_factory.mktemp("report") / "run")


def run(model: Model, request: Request, folder: Path) -> Path:
    made(model, request, folder, engine="local", workers=1)
    finish_run.complete_run(folder, model)
    return folder


# What it says


def test_the_summary_is_as_its_schema_says(whole: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(json.loads((whole / report.SUMMARY).read_text()), schema())


@pytest.mark.parametrize(
    "model",
    [
        mesh("A"),
        mesh("A-B"),
        mesh("A-B C-D", demands=[demand("A", "D", 1, is_address=False)]),
        evil(),
    ],
    ids=["one router", "no demand", "two parts", "evil names"],
)
def test_small_and_strange_meshes_have_a_report_too(model: Model, tmp_path: Path) -> None:
    folder = run(model, Request(), tmp_path / "run")
    jsonschema.validate(json.loads((folder / report.SUMMARY).read_text()), schema())
    assert "<h1>" in (folder / report.PAGE).read_text()


def test_the_worst_scenarios_are_the_worst(whole: Path) -> None:
    summary = json.loads((whole / report.SUMMARY).read_text())
    rows = [row for row in read_table(whole, "scenario").to_pylist() if row["variant"] == "base"]
    failing = [row for row in rows if row["family"] != "none"]
    worst = summary["worst"]
    assert worst["lost_msgs_per_s"]["lost_msgs_per_s"] == max(row["lost_msgs_per_s"] for row in rows)
    assert worst["max_utilisation"]["max_utilisation"] == max(row["max_utilisation"] for row in failing)
    assert worst["stretch_p99"]["stretch_p99"] == max(row["stretch_p99"] or 0 for row in rows)
    pairs = max(row["unreachable_pairs"] - row["dead_end_pairs"] for row in rows)
    assert worst["living_pairs"]["unreachable_pairs"] - worst["living_pairs"]["dead_end_pairs"] == pairs


def test_links_are_shown_in_their_worse_direction(whole: Path) -> None:
    summary = json.loads((whole / report.SUMMARY).read_text())
    rows = [row for row in read_table(whole, "link_worst").to_pylist() if row["variant"] == "base"]
    for link in summary["links"]:
        both = [row["worst_utilisation"] for row in rows if row["link"] == link["link"]]
        assert link["worst_utilisation"] == max(both)
    shown = [link["worst_utilisation"] for link in summary["links"]]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] == max(row["worst_utilisation"] for row in rows)


def test_growth_is_a_curve_of_all_its_steps(whole: Path) -> None:
    summary = json.loads((whole / report.SUMMARY).read_text())
    assert [(each["name"], each["growth"]) for each in summary["variants"]] == [
        ("base", 1), ("growth 1.5", 1.5), ("growth 2", 2),
    ]  # fmt: skip
    worst = [each["worst_utilisation"] for each in summary["variants"]]
    assert worst == sorted(worst)
    assert "growth" in {picture.name for picture in pictures(facts_of(whole, model_of(whole)))}


def test_captions_of_curves_give_an_example_that_is_true(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-D D-A", demands=[demand("A", "C", 8, is_address=False)])
    facts = facts_of(run(model, Request(families="links:1-2"), tmp_path / "run"), model)
    captions = {picture.name: picture.caption for picture in pictures(facts)}
    # Of the six pairs of links each that cuts off A or C, or both from each other, loses all: four of them.
    assert re.search(r"example: [1-4] scenarios? of links:2 loses? 100 % or more", captions["losses"])
    # Each of four links that fails alone makes its own neighbors go round: 3 instead of 1.
    assert "of the scenarios 99 % of the paths cost at most 3 times" in captions["stretches"]


def test_of_more_families_than_can_be_told_apart_a_picture_says_which_it_has(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-D D-A", demands=[demand("A", "C", 8, is_address=False)])
    facts = facts_of(run(model, Request(families="links:2"), tmp_path / "run"), model)
    (family,) = (each for each in facts.families if each.family == "links:2" and each.variant == "base")
    rows = [row for row in facts.curves if row["family"] == "links:2"]
    many = attrs.evolve(
        facts,
        families=[attrs.evolve(family, family=f"group {number:02}") for number in range(14)],
        curves=[
            {**row, "family": f"group {number:02}", "value": row["value"] * (1 + number) / 14}
            for number in range(14)
            for row in rows
        ],
    )
    (drawn,) = (each for each in pictures(many) if each.name == "losses")
    assert drawn.caption.startswith("A line for each of the 12 families of scenarios that lose most, of 14 that lose")
    assert [f"group {number:02}" in drawn.svg for number in range(14)] == [False] * 2 + [True] * 12


def test_a_changed_mesh_has_curves_of_its_own(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-A", capacity_msgs=10.0, demands=[demand("A", "B", 6, is_address=False)])
    folder = run(model, Request(costs=("A--B=5",), growth="1:2:0.5"), tmp_path / "run")
    summary = json.loads((folder / report.SUMMARY).read_text())
    jsonschema.validate(summary, schema())
    assert sorted((each["is_changed"], each["growth"]) for each in summary["variants"]) == [
        (is_changed, growth) for is_changed in (False, True) for growth in (1, 1.5, 2)
    ]
    (drawn,) = (each for each in pictures(facts_of(folder, model)) if each.name == "growth")
    assert "changed, worst case" in drawn.svg
    assert drawn.caption == (
        "The dashed line is the capacity. "
        "When nothing fails no link is overloaded up to 1.5 times today's demand; "
        "in the worst case no link is overloaded up to 1.5 times today's demand."
    )
    once = run(model, Request(growth="1:2:1"), tmp_path / "once")
    (drawn,) = (each for each in pictures(facts_of(once, model)) if each.name == "growth")
    assert "When nothing fails no link is overloaded with today's demand; in the worst case" in drawn.caption


def test_variants_with_other_demands_are_no_growth(tmp_path: Path) -> None:
    """Such as the periods of a forecast."""
    model = mesh("A-B B-C C-A", capacity_msgs=10.0, demands=[demand("A", "B", 6, is_address=False)])
    more = with_demands(model, [demand("A", "B", 30, is_address=False)])
    folder = tmp_path / "run"
    runs.run(
        model,
        Request(),
        folder,
        runs.Options(engine="local"),
        finish=lambda path: finish_run.complete_run(path, model),
        others=[("period -1", more), ("period 0", model)],
    )
    summary = json.loads((folder / report.SUMMARY).read_text())
    jsonschema.validate(summary, schema())
    assert [(each["name"], each["growth"]) for each in summary["variants"]] == [
        ("base", 1), ("period -1", None), ("period 0", None),
    ]  # fmt: skip
    facts = facts_of(folder, model)
    assert "growth" not in {picture.name for picture in pictures(facts)}
    assert "Growth headroom" not in {verdict.label for verdict in verdicts(facts)}


@pytest.mark.parametrize(
    ("capacity", "costs", "links", "expected"),
    [
        (
            40.0,
            ("A--B=5",),
            (),
            {
                "With the changes": ("worse", "bad", "The busiest link has 100 % while nothing fails, not 75 %."),
                "Growth headroom": (
                    "1 x",
                    "fair",
                    "With 1.25 times the messages the busiest link has 94 %, and 125 % in the worst case.",
                ),
                "Growth headroom with the changes": (
                    "1 x",
                    "fair",
                    "With 1.25 times the messages the busiest link has 125 %, and 125 % in the worst case.",
                ),
            },
        ),
        (
            None,
            (),
            ("A,B,1",),
            {
                "With the changes": (
                    "no difference",
                    "fair",
                    "The same load of the busiest link and the same loss, also in the worst case.",
                ),
            },
        ),
        (
            20.0,
            (),
            ("A,D,1",),
            {
                "With the changes": (
                    "better",
                    "good",
                    (
                        "The busiest link has 150 % in the worst case, not 200 %; "
                        "at most 0 msg/s lost, not 10 msg/s; "
                        "pairs without a path in the worst case: 0, not 6. "
                        "Without 1 link of which no capacity is known."
                    ),
                ),
                "Growth headroom": (
                    "none",
                    "bad",
                    "Without growth the busiest link has 150 %, and 200 % in the worst case.",
                ),
                "Growth headroom with the changes": (
                    "none",
                    "bad",
                    (
                        "With only the changes the busiest link has 150 %, and 150 % in the worst case. "
                        "Without 1 link of which no capacity is known."
                    ),
                ),
            },
        ),
    ],
)
def test_verdicts_tell_what_changes_and_growth_do(
    capacity: float | None,
    costs: tuple[str, ...],
    links: tuple[str, ...],
    expected: dict[str, tuple[str, str, str]],
    tmp_path: Path,
) -> None:
    demands = [demand("A", "B", 30, is_address=False), demand("A", "D", 10, is_address=False)]
    model = mesh("A-B B-C C-A C-D", capacity_msgs=capacity, demands=demands)
    request = Request(families="links:1", growth="1:2:0.25", costs=costs, links=links)
    folder = run(model, request, tmp_path / "run")
    found = {it.label: (it.value, it.state.value, it.note) for it in verdicts(facts_of(folder, model))}
    assert {label: found[label] for label in found if label in expected or "grow" in label} == expected


def test_what_was_not_played_is_not_said_to_be_more(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-A", demands=[demand("A", "C", 5, is_address=False)])
    links = [attrs.evolve(link, failures_per_year=20.0, repair_hours=100.0) for link in model.links]
    rated = attrs.evolve(model, links=links)
    folder = run(rated, Request(families="links:2"), tmp_path / "run")
    note = {it.label: it.note for it in verdicts(facts_of(folder, rated))}["Availability"]
    assert "% of the time is not covered by the scenarios." in note


def test_a_utilisation_above_all_never_looks_like_all(tmp_path: Path) -> None:
    model = mesh("A-B", capacity_msgs=1000.0, demands=[demand("A", "B", 1004, is_address=False)])
    folder = run(model, Request(families="links:1", growth="1:2:0.5"), tmp_path / "run")
    found = {it.label: it for it in verdicts(facts_of(folder, model))}
    assert found["Busiest link"].value == "100.4 %"
    assert "busiest link has 100.4 %" in found["Growth headroom"].note


def test_what_would_help_shows_a_gain_however_small() -> None:
    row = {"measure": "load", "before": 100.4, "after": 100.0, "gain": 0.4}
    shown = {column.title: column.shown(row) for column in html_page.gain_columns()}
    assert (shown["before"], shown["after"]) == ("100.4", "100")


def test_verdicts_name_what_is_wrong(tmp_path: Path) -> None:
    model = mesh(
        "A-B B-C C-A C-D", demands=[demand("A", "D", 30, is_address=False), demand("A", "B", 10, is_address=False)]
    )
    folder = run(model, Request(families="links:1,routers:1"), tmp_path / "run")
    found = {verdict.label: verdict for verdict in verdicts(facts_of(folder, model))}
    spof = found["Single points of failure"]
    assert (spof.value, spof.state) == ("2", "bad")
    assert spof.note == "The worst is link C--D: 6 pairs lose connectivity, 30 msg/s lost."
    lost = found["Most demand lost"]
    assert lost.value == "100 %"
    assert lost.note.startswith("40 msg/s, with the messages from and to itself, in scenario ")
    assert lost.note.endswith(": router A.")


def test_to_join_a_mesh_makes_it_no_worse(tmp_path: Path) -> None:
    model = mesh("A-B C-D")
    folder = run(model, Request(families="links:1", links=("B,C,1",)), tmp_path / "run")
    found = {it.label: it for it in verdicts(facts_of(folder, model))}["With the changes"]
    assert (found.value, found.state) == ("better", "good")
    assert found.note == (
        "Pairs without a path while nothing fails: 0, not 8; pairs without a path in the worst case: 8, not 10."
    )


def test_what_is_lost_while_nothing_fails_is_told_and_is_no_harm_of_failures(tmp_path: Path) -> None:
    rates = {"failures_per_year": 10.0, "repair_hours": 10.0}
    model = mesh(
        "A-B B-C C-A Z",
        addresses=[address("jobs"), address("nobody")],
        subscribers=[site("jobs", "B"), site("jobs", "C")],
        demands=[demand("A", "jobs", 30), demand("Z", "jobs", 90), demand("A", "nobody", 5)],
    )
    model = attrs.evolve(model, links=[attrs.evolve(link, **rates) for link in model.links])
    facts = facts_of(run(model, Request(families="links:1"), tmp_path / "run"), model)
    assert [family.harmful for family in facts.families] == [0]
    found = {it.address: it for it in facts.addresses}
    assert (found["nobody"].dead, found["nobody"].worst_lost_msgs_per_s) == (4, 5)
    assert (found["jobs"].dead, found["jobs"].worst_lost_msgs_per_s) == (0, 90)
    (said,) = (it for it in verdicts(facts) if it.topic == "availability")
    assert said.note.endswith(" Without rates, and taken never to fail: 4 routers.")
    assert facts.availability is not None
    served = {it.address: it for it in facts.availability.addresses}
    assert served["nobody"].demand.at_most == pytest.approx(1 - facts.availability.coverage)
    assert served["nobody"].subscribed.at_most == pytest.approx(1 - facts.availability.coverage)
    assert served["jobs"].demand.at_most == pytest.approx(1 - 0.75 * facts.availability.coverage)
    # What is lost is told from what no scenario covers.
    share = facts.availability.demand
    assert share is not None
    told = page(facts, verdicts(facts), [])
    assert f"In the scenarios of the run {per_year(1 - share.at_most)} a year are lost; another " in told
    assert f" another {per_year(share.at_most - share.at_least)} a year are not covered." in told


def test_suggestions_for_subscribers_are_shown(tmp_path: Path) -> None:
    model = mesh("A-B B-C C-D", addresses=[address("q")], subscribers=[site("q", "A")], demands=[demand("D", "q", 9)])
    page = (run(model, Request(), tmp_path / "run") / report.PAGE).read_text()
    assert "What would help: better routers for subscribers." in page
    assert "where one more subscriber helps most." in page


@pytest.mark.parametrize(("most", "is_said"), [(3, True), (4, False)])
def test_a_report_says_what_is_not_looked_for_in_a_large_mesh(
    most: int, is_said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggest, "MOST_ROUTERS", most)
    monkeypatch.setattr(html_page, "MOST_ROUTERS", most)
    folder = run(mesh("A-B B-C C-D"), Request(), tmp_path / "run")
    measures = {row["measure"] for row in read_table(folder, "placement").to_pylist()}
    assert ("mean_cost" in measures) != is_said
    assert ("use amqp-mesh whatif suggest" in (folder / report.PAGE).read_text()) == is_said


def test_written_again_a_report_is_the_same(whole: Path) -> None:
    before = [(whole / name).read_bytes() for name in (report.PAGE, report.SUMMARY)]
    report.write(whole, model_of(whole))
    assert [(whole / name).read_bytes() for name in (report.PAGE, report.SUMMARY)] == before


def test_a_report_is_bounded_whatever_the_size_of_the_mesh(tmp_path: Path) -> None:
    names = [f"r{at:03}" for at in range(300)]
    ring = " ".join(f"{one}-{other}" for one, other in itertools.pairwise([*names, names[0]]))
    chords = " ".join(f"{names[at]}-{names[at * 7 % 300]}" for at in range(1, 300, 2) if at * 6 % 300)
    sent = [demand(src, names[at * 11 % 300], 5, is_address=False) for at, src in enumerate(names) if at * 10 % 300]
    folder = run(mesh(f"{ring} {chords}", demands=sent), Request(), tmp_path / "run")
    assert (folder / report.PAGE).stat().st_size < 1_000_000
    assert (folder / report.SUMMARY).stat().st_size < 200_000


# Parts of it


@given(st.lists(st.integers(0, 5) | st.floats(0, 1e6), min_size=1, max_size=600))
def test_a_thinned_curve_keeps_its_ends_and_lies_on_the_values(values: list[float]) -> None:
    distinct, counts = np.unique(np.array(values, dtype=np.float64), return_counts=True)
    points = points_of("base", "all", "stretch_p50", (distinct, counts, np.cumsum(counts)), len(values))
    rows = sorted((dict(zip(POINT_SCHEMA.names, point, strict=True)) for point in points), key=lambda row: row["rank"])
    ordered = sorted(values, reverse=True)
    assert len(rows) <= 2 * POINTS
    assert [ordered[row["rank"] - 1] for row in rows] == [row["value"] for row in rows]
    assert (rows[0]["rank"], rows[-1]["rank"]) == (1, len(values))
    share, found = rising(rows)
    assert (found[0], found[-1], share[-1]) == (min(values), max(values), 1)
    for part, value in zip(share, found, strict=True):
        assert part == pytest.approx(sum(each <= value for each in values) / len(values))


@given(models())
def test_every_router_has_a_place_of_its_own_and_always_the_same(model: Model) -> None:
    found = positions(model)
    assert found.shape == (len(model.routers), 2)
    assert np.isfinite(found).all()
    assert len({(round(x, 6), round(y, 6)) for x, y in found.tolist()}) == len(model.routers)
    assert (positions(model) == found).all()


def test_a_map_puts_routers_where_they_are_and_placeless_ones_near_their_neighbors() -> None:
    known = [RouterNode(id=f"r{at}", latitude=50.0 + at, longitude=10.0 + 2 * at) for at in range(5)]
    model = Model(routers=[*known, RouterNode(id="s")], links=mesh("r4-s r0-r1").links)
    found = positions(model)
    assert (np.diff(found[:5], axis=0) > 0).all()
    assert np.hypot(*(found[5] - found[4])) < np.hypot(*(found[5] - found[3]))


def test_the_two_sets_of_colors_have_the_same_names() -> None:
    assert LIGHT.keys() == DARK.keys() > STAND_INS.keys()
    assert len(set(STAND_INS.values())) == len(STAND_INS)


# The page, without a browser


class Reader(HTMLParser):
    """Elements of a page with their attributes; ids; what is linked to; and that all are closed."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(file: Path) -> Reader:
    reader = Reader()
    reader.feed(file.read_text(encoding="utf-8"))
    assert not reader.open
    return reader


def test_the_page_is_well_formed_and_its_links_lead_somewhere(whole: Path) -> None:
    elements = read(whole / report.PAGE).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    linked = {attributes.get("href") or "" for tag, attributes in elements if tag in ("a", "use")}
    assert {link for link in linked if not (link.startswith("#") and link[1:] in ids)} == set()


def test_the_page_needs_nothing_from_elsewhere(whole: Path) -> None:
    text = (whole / report.PAGE).read_text()
    for tag, attributes in read(whole / report.PAGE).elements:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert not re.search(r"@import|https?://|url\((?!#)", text)
    assert "default-src 'none'" in text


def test_tables_have_captions_and_heads_and_pictures_have_names(whole: Path) -> None:
    elements = read(whole / report.PAGE).elements
    tags = [tag for tag, _ in elements]
    assert tags.count("table") == tags.count("caption") == tags.count("thead") >= 8
    assert all(attributes.get("scope") == "col" for tag, attributes in elements if tag == "th")
    drawn = [attributes for tag, attributes in elements if tag == "svg"]
    assert len(drawn) == 5
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in drawn)
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_no_color_is_left_that_only_stands_in_for_another(whole: Path) -> None:
    assert not re.search("#0f0f[0-9a-f]{2}", (whole / report.PAGE).read_text())


# The page in a browser


def test_a_browser_shows_all_tables_and_has_nothing_to_say(whole: Path, tmp_path: Path) -> None:
    page = browser.opened(whole / report.PAGE, tmp_path)
    assert page.console == ()
    tags = [tag for tag, _ in read(whole / report.PAGE).elements]
    assert page.dom.count("<table>") == tags.count("table")
    # The page's own script has run: its heads are buttons now.
    assert page.dom.count("<button") == tags.count("th")


PROBE = Path(__file__).with_name("probe.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (420, False), (400, True)])
def test_in_wide_and_small_windows_light_and_dark_all_can_be_read(
    whole: Path, tmp_path: Path, width: int, is_dark: bool
) -> None:
    found: Any = browser.probed(whole / report.PAGE, tmp_path, PROBE, width=width, is_dark=is_dark)
    assert found["dark"] is is_dark
    # Contrast of all text to what is behind it, as WCAG 2 asks for.
    assert found["faint"] == []
    # Nothing but tables, each in a frame of its own, is wider than the window.
    assert found["width"][0] <= found["width"][1] == width
    assert found["outside"] == []
    # The mesh keeps its size, and is moved in its frame.
    assert all(100 < each <= width for each in found["svg"])
    assert found["mesh"] >= min(width, 700)
    assert found["small"] >= 8
    # Heads sort: numbers first from the largest on, names from the first on.
    (first, falling_values), (second, rising_values) = found["sorted"]
    assert (first, second) == ("descending", "ascending")
    assert falling_values == sorted(falling_values, reverse=True)
    assert rising_values == sorted(rising_values)
    order, other, names = found["names"]
    assert (order, other) == ("ascending", None)
    assert names == sorted(
        names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    )


FAIL = """
const at = (place) => document.querySelector(`[data-place="${place}"]`);
const seen = [];
for (const place of [0, %d, %d]) {
  at(place).querySelector(".hit").dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const states = [...document.querySelectorAll("#mesh-picture [data-place]")].map((each) => each.dataset.state);
  seen.push([
    document.querySelector("#failing").selectedOptions[0].textContent,
    document.querySelector("#failing-said").textContent,
    states,
    getComputedStyle(at(0).querySelector(".shown")).stroke,
  ]);
}
return seen;
"""


def test_who_clicks_an_element_sees_what_its_failure_does(whole: Path, tmp_path: Path) -> None:
    """A link, then a router, then the router again, which brings back the mesh as it is."""
    model = model_of(whole)
    router = len(model.links) + 3
    link, node, none = browser.probed(whole / report.PAGE, tmp_path, FAIL % (router, router))
    rows = {tuple(row["failed_links"] + row["failed_routers"]): row for row in outcomes_of(whole)}
    for found, name, kind in ((link, model.links[0].id, "link"), (node, model.routers[3].id, "router")):
        row = rows[name,]
        assert found[0] == f"{kind} {name}"
        lost = row["unreachable_pairs"] - row["dead_end_pairs"]
        assert (f"{counted(lost, 'pair')} of living routers" in found[1].lower()) == bool(lost)
        assert f"at {percent(row['max_utilisation'])}." in found[1]
    assert link[2][0] == "x"
    assert node[2][router] == "x"
    down = {at for at, it in enumerate(model.links) if model.routers[3].id in (it.a, it.b)}
    assert {at for at, state in enumerate(node[2][: len(model.links)]) if state == "x"} == down
    assert none[:2] == ["nothing", ""]
    assert set(none[2]) == {""}
    assert link[3] not in (none[3], "none")


def outcomes_of(folder: Path) -> list[Any]:
    """Scenarios of the mesh as it is in which one thing fails."""
    return [row for _, _, row in Outcomes.read(folder).alone() if row["group"] is None]


def test_every_card_has_a_verdict_and_says_what_would_help(whole: Path) -> None:
    found = {each.label: each for each in verdicts(facts_of(whole, model_of(whole)))}
    assert {each.state.value for each in found.values()} <= {"good", "fair", "bad", "unknown"}
    page = (whole / report.PAGE).read_text()
    assert page.count('class="sign" role="img"') == len(found)
    spof = found["Single points of failure"]
    best = max(
        (row for row in read_table(whole, "placement").to_pylist() if row["measure"] == "cut_pairs"),
        key=lambda row: row["gain"],
    )
    assert spof.remedy.startswith(f"One more link between {best['a']} and {best['b']}: pairs losing connectivity ")
    assert page.count("What would help:</em>") == sum(bool(each.remedy) for each in found.values()) > 1


def test_names_are_never_taken_for_markup_or_mathematics(tmp_path: Path) -> None:
    folder = run(evil(), Request(), tmp_path / "run")
    page = browser.opened(folder / report.PAGE, tmp_path)
    assert page.console == ()
    assert "<b>" not in page.dom
    assert page.dom.count("x&lt;b&gt;&amp;$a_1$") > 5
    # In the picture of the mesh too.
    drawing = page.dom[page.dom.index("<svg") : page.dom.index("</svg>")]
    assert "x&lt;b&gt;&amp;$a_1$" in drawing
