"""The names that programs and notebooks import from `router.whatif`."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import attrs
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from router import whatif
from router.whatif import Options, Request, Run, grown, open_run, play, read_model, with_costs, without, write_model
from router.whatif.library.notebook_display import html_table, text_table
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import LAYOUTS, TableError
from router.whatif.report.pictures import class_of
from router.whatif.report.themed_matplotlib_svg import LIGHT
from router.whatif.scenarios.scenario_plan import PlanError
from router.whatif.wording import failure_of
from tests.whatif.runs import assert_equal, everything, made

LOCAL = Options(engine="local")
LOADS = Options(engine="local", loads="changed")
REQUEST = Request(families="links:1,routers:1,srlg", growth="1:2:1")
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return play(everything(), tmp_path_factory.mktemp("library") / "run", REQUEST, LOADS)


def test_names_are_those_that_are_promised() -> None:
    library = importlib.import_module("router.whatif.library")
    assert whatif.__all__ == library.__all__
    assert all(getattr(whatif, name) is getattr(library, name) for name in whatif.__all__)
    assert set(whatif.__all__) <= set(dir(whatif))
    with pytest.raises(AttributeError, match="has no attribute 'plan'"):
        whatif.plan  # noqa: B018
    page = (ROOT / "docs/how_to/what-if-notebook.md").read_text(encoding="utf-8")
    assert [name for name in whatif.__all__ if f"`{name}" not in page] == [], "each is documented"


def test_a_piece_of_what_if_is_imported_without_the_library() -> None:
    code = (
        "import sys, router.whatif.model.mesh_model; print([m for m in ('matplotlib', 'pyarrow') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def test_a_run_is_that_of_the_pipeline(done: Run, tmp_path: Path) -> None:
    made(everything(), REQUEST, tmp_path / "run", loads="changed")
    assert_equal(done.folder, tmp_path / "run")
    assert open_run(str(done.folder)).model == everything()


def test_tables_as_arrow_and_pandas(done: Run) -> None:
    assert {"scenario", "link_worst", "router_spof", "run"} <= set(done.tables)
    for name in done.tables:
        stored = read_table(done.folder, name)
        assert done.arrow(name).select(stored.column_names).equals(stored), name
    frame = done.pandas("scenario", ["scenario", "max_utilisation"])
    assert list(frame.columns) == ["scenario", "max_utilisation"]
    assert frame.max_utilisation.tolist() == done.arrow("scenario")["max_utilisation"].to_pylist()


def test_rows_by_scenario_have_variant_and_family(done: Run) -> None:
    scenarios = {row["scenario"]: row for row in done.arrow("scenario").to_pylist()}
    for name in ("pair_impact", "scenario_load", "address_impact"):
        rows = done.arrow(name).to_pylist()
        assert len({row["variant"] for row in rows}) == 2, name
        for row in rows:
            scenario = scenarios[row["scenario"]]
            assert (row["variant"], row["family"]) == (scenario["variant"], scenario["family"])
    few = done.arrow("scenario_load", ["family", "link"])
    assert few.equals(done.arrow("scenario_load").select(["family", "link"]))
    assert done.arrow("link_load").column_names == read_table(done.folder, "link_load").column_names


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same run, whose files have the partition in their folders' names."""
    folder = tmp_path_factory.mktemp("spark") / "it's {a}[1] b%20*"
    return play(everything(), folder, REQUEST, Options(engine="spark", loads="changed"))


def test_tables_as_spark_has_them(done: Run, by_spark: Run, spark: SparkSession) -> None:
    assert_equal(done.folder, by_spark.folder)
    for run in (done, by_spark):
        for name, key in (("scenario", ["scenario"]), ("address_impact", ["scenario", "address"])):
            frame = run.spark(name, spark)
            table = run.arrow(name)
            assert frame.columns == table.column_names
            rows = [row.asDict() for row in frame.orderBy(*key).collect()]
            assert rows == table.to_pylist()


@pytest.mark.slow
def test_views_have_variant_and_family_whoever_wrote_the_tables(done: Run, by_spark: Run, spark: SparkSession) -> None:
    here, there = done.views(spark, "here_"), by_spark.views(spark, "there_")
    assert [name.removeprefix("here_") for name in here] == [name.removeprefix("there_") for name in there]
    for name in ("pair_impact", "scenario_load", "address_impact"):
        one, two = (spark.table(f"{place}_{name}") for place in ("here", "there"))
        assert one.columns == two.columns == done.arrow(name).column_names
        assert one.columns[-2:] == ["variant", "family"]
        assert one.count() == two.count() == done.arrow(name).num_rows > 0
        assert one.exceptAll(two).isEmpty()
    joined = spark.sql("SELECT count(*) FROM here_pair_impact JOIN here_scenario USING (scenario, variant, family)")
    assert joined.first() == (done.arrow("pair_impact").num_rows,)
    assert spark.table("here_demands").count() == len(done.model.demands)


def test_columns_of_views_say_what_they_are(done: Run, spark: SparkSession) -> None:
    done.views(spark, prefix="about_")
    said = {row.col_name: row.comment for row in spark.sql("DESCRIBE about_address_impact").collect()}
    layouts = [LAYOUTS[name] for name in ("address_impact", "scenario")]
    docs = {column.name: column.doc for layout in reversed(layouts) for column in layout.columns}
    assert said == {name: docs[name] for name in said}
    assert {"variant", "family", "starved_publishers"} <= said.keys()


def test_a_changed_model_is_run(tmp_path: Path) -> None:
    model = everything()
    changed = grown(with_costs(without(model, routers=["r11"]), {model.links[0].id: 9}), 2)
    write_model(changed, tmp_path / "model")
    assert read_model(tmp_path / "model") == changed
    run = play(changed, tmp_path / "run", families="links:1", options=LOCAL)
    assert run.model == changed
    assert run.arrow("scenario").num_rows == 1 + len(changed.links)
    assert not (run.folder / "report.html").exists()
    assert play(changed, tmp_path / "run", options=LOCAL, has_report=True).folder.joinpath("report.html").exists()


def test_what_a_notebook_shows(done: Run) -> None:
    page = done._repr_html_()
    assert all(f"<td>{each.label}</td>" in page for each in done.verdicts())
    charts = done.charts()
    assert {"mesh", "loads", "losses", "growth", "failures", "utilisations", "heat"} <= set(charts)
    for chart in charts.values():
        assert ET.fromstring(chart._repr_svg_()).tag.endswith("svg")
        assert chart.caption
        assert "var(--" not in chart.svg, "colors of the report's page"
    assert repr(done) == f"<Run {str(done.folder)!r}>"
    assert repr(charts["loads"]).startswith("<Drawing ")


def test_the_chart_of_failures_has_the_worst_of_them_in_order(done: Run) -> None:
    svg = done.charts()["failures"].svg
    rows = [row for row in done.arrow("scenario").to_pylist() if row["variant"] == "base" and row["scenario"] > 0]
    rows.sort(key=lambda row: (-row["max_utilisation"], row["scenario"]))
    names = [(failure_of(row), row["max_utilisation_link"]) for row in rows[:15]]
    shown = re.findall(r">([^<>]*) \N{RIGHTWARDS ARROW} ([^<>]*)<", unescape(svg))
    assert len(shown) == len(names) == 15
    assert max(len(name) for name, _ in names) > 27, "one is cut"
    for (name, link), (words, there) in zip(names, shown, strict=True):
        assert there == link
        assert words == (name if len(name) <= 27 else name[:26] + "\N{HORIZONTAL ELLIPSIS}")


def test_the_heat_map_has_the_utilisation_of_each_link_in_each_failure(
    done: Run, by_spark: Run, tmp_path: Path
) -> None:
    svg = done.charts()["heat"].svg
    assert by_spark.charts()["heat"].svg == svg
    whole = play(everything(), tmp_path / "run", REQUEST, Options(engine="local", loads="all"))
    assert whole.charts()["heat"].svg == svg, "what isn't listed is as it is without a failure"
    rows = [row for row in whole.arrow("scenario").to_pylist() if row["variant"] == "base" and row["scenario"]]
    rows.sort(key=lambda row: (-row["max_utilisation"], row["scenario"]))
    numbers = [row["scenario"] for row in rows[:20]]
    shown = re.findall(r">([^<>]*), ([^<>]*) \N{RIGHTWARDS ARROW} [^<>]*<", unescape(svg))
    worst = {(row["link"], row["src"]): row["worst_utilisation"] for row in whole.arrow("link_worst").to_pylist()[:40]}
    assert {link for link, _ in shown} == {link for (link, _), most in worst.items() if most > 0}
    ranks = [worst[link, src] for link, src in shown]
    assert ranks == sorted(ranks, reverse=True)
    loads = {(row["scenario"], row["link"], row["src"]): row for row in whole.arrow("scenario_load").to_pylist()}
    cells = [loads[number, link, src] for number in numbers for link, src in shown]
    drawn = Counter(re.findall(r"fill: (#[0-9a-f]{6})", svg))
    classes = Counter(class_of(row["utilisation"]) for row in cells)
    for at, count in classes.items():
        assert drawn[LIGHT[f"load-{at}"]] == count + 1, "and one in the legend"
    crosses = len(re.findall(r"<use ", svg))
    assert crosses >= sum(row["is_down"] for row in cells) > 0


def test_nothing_is_drawn_of_failures_that_load_nothing(tmp_path: Path) -> None:
    model = attrs.evolve(everything(), demands=())
    charts = play(model, tmp_path / "run", families="links:1", options=LOCAL).charts()
    assert not {"failures", "utilisations", "heat"} & set(charts)


def test_things_are_explained(done: Run) -> None:
    whole = done.explain(router="r03", down=["r02"])
    assert repr(whole) == whole.text
    assert text_table("T", ("a", "b", "c"), [(1350.0, 0.0, None), (1350, True, "x")]).splitlines() == [
        "T", "a      b    c", "1,350  0", "1,350  yes  x",
    ]  # fmt: skip
    assert "<td>1,350</td><td>0</td><td></td>" in html_table("T", ("a", "b", "c"), [(1350.0, 0.0, None)])
    assert "r03" in whole.text.splitlines()[0]
    listing = whole.explanation.listings[0]
    assert f"<caption>{listing.title}</caption>" in whole._repr_html_()
    lines = whole.text.splitlines()
    shown = lines[lines.index(listing.title) + 1 :]
    assert shown[0].startswith(listing.columns[0])
    assert shown[1].startswith(str(listing.rows[0][0]))
    ET.fromstring(whole.drawing.svg)
    first = done.arrow("scenario").to_pylist()[1]
    assert first["failed_links"][0] in done.explain(scenario=1).text
    assert "rpc" in done.explain(address="rpc").text
    assert "r01" in done.explain(pair=("r01", "r02")).text
    link = first["failed_links"][0]
    assert link in done.explain(link=link).text
    turned = "--".join(reversed(link.split("--")))
    with pytest.raises(TableError, match=f"no link `{turned}` in the model; did you mean `{link}`"):
        done.explain(link=turned)


def test_demands_are_listed_by_links_and_by_causes_of_loss(done: Run) -> None:
    table = done.link_demands()
    for row in done.arrow("link_load").to_pylist():
        if row["variant"] == "base":
            here = (pc.field("link") == row["link"]) & (pc.field("src") == row["src"])
            assert sum(table.filter(here)["msgs_per_s"].to_pylist()) == pytest.approx(row["msgs_per_s"])
    link = table["link"][0].as_py()
    assert done.link_demands(link=link).equals(table.filter(pc.field("link") == link))
    assert len(done.explain(link=link, limit=1).explanation.listings[1].rows) == 1
    for row in done.arrow("scenario").to_pylist()[::20]:
        lost = done.lost_demands(scenario=row["scenario"])
        assert sum(lost["msgs_per_s"].to_pylist()) == pytest.approx(row["lost_msgs_per_s"])
    with pytest.raises(TableError, match="no link `nowhere` in the model"):
        done.link_demands(link="nowhere")


def test_what_cannot_be_is_said(done: Run, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="is no run; expected a folder that"):
        open_run(tmp_path)
    with pytest.raises(TableError, match="did you mean 'scenario'"):
        done.pandas("scenarios")
    with pytest.raises(TableError, match=r"has no table 'link_rate'; did you mean 'link_worst'\? There are scenario, "):
        done.arrow("link_rate")
    with pytest.raises(TableError, match=r"table run has no column 'wall'; did you mean 'wall_s'\? There are model, "):
        done.arrow("run", ["wall"])
    with pytest.raises(ValueError, match="link and router are given; expected only one of link, router, pair, address"):
        done.explain(link="a", router="b")
    with pytest.raises(PlanError, match=r"families: `wires:1`; expected such as "):
        play(everything(), tmp_path / "run", families="wires:1", options=LOCAL)
    with pytest.raises(PlanError, match=r"links: `A,B`; expected A,B,COST, A and B routers"):
        play(everything(), tmp_path / "run", links="A,B", options=LOCAL)
    with pytest.raises(
        PlanError, match=r" scenarios; expected at most [\d,]+: fewer failures at once, or sample of a run"
    ):
        play(everything(60, 120), tmp_path / "run", families="links:8", options=LOCAL)
    with pytest.raises(TypeError, match="request is given, and families too"):
        play(everything(), tmp_path / "run", REQUEST, LOCAL, families="links:1")
    assert list(tmp_path.iterdir()) == []


def test_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(everything(), tmp_path / "now")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/how_to/what-if-notebook.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for cell in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        tree = ast.parse(cell)
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - this project's own page
    worst = names["worst"]
    run = names["run"]
    assert isinstance(run, Run)
    rows = run.arrow("scenario").filter(run.arrow("scenario")["variant"].to_numpy(zero_copy_only=False) == "base")
    assert max(rows["max_utilisation"].to_pylist()) == worst.max_utilisation.iloc[0]  # type: ignore[attr-defined]
    assert (tmp_path / "losses.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_errors_are_imported_from_where_the_functions_are(done: Run, tmp_path: Path) -> None:
    for name, call in {
        "ModelError": lambda: with_costs(done.model, {done.model.links[0].id: 1.5}),  # type: ignore[dict-item]
        "SettingsError": lambda: whatif.import_model(tmp_path / "none.yaml"),
        "PlanError": lambda: play(done.model, tmp_path / "out", growth="x"),
        "TableError": lambda: open_run(tmp_path),
        "RunError": lambda: play(done.model, tmp_path / ".."),
    }.items():
        with pytest.raises(getattr(whatif, name)):
            call()


def test_one_text_is_one_name_in_questions_about_a_run(done: Run) -> None:
    assert done.explain(router="r03", down="r02").text == done.explain(router="r03", down=["r02"]).text
    assert done.link_demands(down="r02").equals(done.link_demands(down=["r02"]))
    assert done.lost_demands(down="r02").equals(done.lost_demands(down=["r02"]))
    assert done.arrow("scenario", "variant").column_names == ["variant"]
    with pytest.raises(ValueError, match=r"pair is 'r1'; expected ids of two routers: \(from, to\)"):
        done.explain(pair="r1")  # type: ignore[arg-type]
    with pytest.raises(TableError, match="down is 3 of type int; expected ids of routers and links"):
        done.explain(down=3)  # type: ignore[arg-type]


def test_a_table_that_was_not_asked_for_says_how_to_ask(tmp_path: Path) -> None:
    run = play(everything(), tmp_path / "run", families="links:1", options=LOCAL)
    with pytest.raises(TableError, match=r"has no table 'scenario_load'; expected a run with loads .*`--loads all` or"):
        run.pandas("scenario_load")


def test_an_argument_of_play_that_there_is_not_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"play\(\) has no argument `family`; did you mean `families`\?"):
        play(everything(), tmp_path / "run", family="links:1")
    with pytest.raises(TypeError, match=r"play\(\) has no argument `engine`; expected options=Options\(engine=...\)"):
        play(everything(), tmp_path / "run", engine="local")
    with pytest.raises(TypeError, match=r"play\(\) has no argument `xyz`; expected one of families, maintenance, "):
        play(everything(), tmp_path / "run", xyz=1)
    with pytest.raises(PlanError, match=r"links: \('A', 'B'\); expected a text, as after `--add-link`, or a list"):
        play(everything(), tmp_path / "run", links=[("A", "B")], options=LOCAL)
    with pytest.raises(PlanError, match="maintenance: 5; expected a text"):
        play(everything(), tmp_path / "run", maintenance=5, options=LOCAL)
