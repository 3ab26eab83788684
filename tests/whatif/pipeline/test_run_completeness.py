"""A run is looked at when it is opened: one of which something is missing or damaged is refused, whoever asks it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from mesh_config.findings import SettingsError
from router.cli import main
from router.whatif.analysis.diff import compare
from router.whatif.library import open_run
from router.whatif.pipeline.run import Options, run
from router.whatif.pipeline.run_completeness import ROWS, write_left
from router.whatif.pipeline.table_layouts import ADDRESS_IMPACT, PAIR_IMPACT, RUN, SCENARIO, TableError
from router.whatif.report.finish_run import complete_run
from router.whatif.scenarios.run_request import Request
from tests.whatif.runs import everything

QUESTIONS = (
    ("check", "RUN", "--max-util", "1"),
    ("explain", "RUN", "--scenario", "3"),
    ("report", "RUN"),
    ("diff", "RUN", "RUN"),
    ("credit", "RUN"),
    ("suggest", "RUN"),
    ("forecast", "HISTORY", "--model", "RUN", "-o", "OUT"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with its report, of 3 files for each table of scenarios at least."""
    out = tmp_path_factory.mktemp("whole") / "run"
    model = everything()

    def finish(folder: Path) -> None:
        complete_run(folder, model)

    run(model, Request(families="links:1-2,routers:1", growth="2"), out, Options(engine="local"), finish=finish)
    assert len(list((out / SCENARIO.name).iterdir())) > 2
    return out


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy, to be spoilt."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def asked(words: tuple[str, ...], folder: Path) -> Result:
    history = folder.parent / "history"
    history.mkdir(exist_ok=True)
    places = {"RUN": folder, "HISTORY": history, "OUT": folder.parent / "out"}
    return CliRunner().invoke(main, ["whatif", *(str(places.get(word, word)) for word in words)])


def is_refused(done: Result, *said: str) -> bool:
    assert done.exit_code == 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    (line,) = done.stderr.splitlines()
    return all(word in line for word in said)


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: words[0])
def test_a_run_without_some_scenarios_answers_nothing(folder: Path, words: tuple[str, ...]) -> None:
    files = sorted((folder / SCENARIO.name).iterdir())
    total = sum(pq.read_metadata(file).num_rows for file in files)
    gone = pq.read_metadata(files[0]).num_rows
    files[0].unlink()
    said = f"{folder / SCENARIO.name}: {total - gone} of {total} scenarios are there; expected all"
    assert is_refused(asked(words, folder), said)
    with pytest.raises(TableError, match="scenarios are there"):
        open_run(folder)


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: words[0])
@pytest.mark.parametrize("name", [RUN.name, SCENARIO.name, PAIR_IMPACT.name, "link_worst", "model"])
def test_a_run_without_a_table_or_its_model_answers_nothing(folder: Path, name: str, words: tuple[str, ...]) -> None:
    shutil.rmtree(folder / name)
    assert is_refused(asked(words, folder), f"{folder / name}: no such")


def test_without_the_table_run_the_summary_says_how_many_scenarios_there_were(folder: Path) -> None:
    count = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["run"]["scenarios"]
    shutil.rmtree(folder / RUN.name)
    with pytest.raises(TableError, match=f"says that the run has {count:,} scenarios"):
        open_run(folder)


def test_rows_of_other_tables_than_scenarios_are_counted_as_well(folder: Path) -> None:
    file = next((folder / ADDRESS_IMPACT.name).iterdir())
    rows = pq.read_table(file)
    pq.write_table(rows.slice(1), file)
    with pytest.raises(TableError, match=r"address_impact: [\d,]+ of [\d,]+ rows are there"):
        open_run(folder)


def test_scenarios_are_counted_in_a_run_that_says_nothing_of_other_tables(folder: Path) -> None:
    (file,) = (folder / RUN.name).iterdir()
    table = pq.read_table(file)
    kept = {key: value for key, value in table.schema.metadata.items() if key != ROWS}
    pq.write_table(table.replace_schema_metadata(kept), file)
    assert open_run(folder).tables
    next((folder / SCENARIO.name).iterdir()).unlink()
    with pytest.raises(TableError, match="scenarios are there"):
        open_run(folder)


def test_a_copy_may_lack_what_was_not_copied(folder: Path) -> None:
    shutil.rmtree(folder / PAIR_IMPACT.name)
    write_left(folder, [PAIR_IMPACT.name])
    assert PAIR_IMPACT.name not in open_run(folder).tables


def test_a_folder_in_which_a_run_and_a_model_lie_is_no_run(folder: Path) -> None:
    shutil.copytree(folder / "model", folder.parent / "model")
    done = asked(("explain", "RUN"), folder.parent)
    assert is_refused(done, "it is no model", f"expected the model that is in it: {folder.parent / 'model'}")


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: words[0])
def test_a_damaged_file_of_a_run_is_named_in_one_line(folder: Path, words: tuple[str, ...]) -> None:
    file = sorted((folder / SCENARIO.name).iterdir())[1]
    file.write_bytes(b"garbage" * 40)
    assert is_refused(asked(words, folder), f"{file}: error: cannot be read: ", "expected a whole file of Parquet")


def test_a_damaged_page_is_named_in_one_line(folder: Path) -> None:
    for file in (folder / "link_worst").iterdir():
        data = file.read_bytes()
        file.write_bytes(data[:4] + b"\xff" * 400 + data[404:])
    assert is_refused(asked(("report", "RUN"), folder), f"{file}: error: cannot be read: ")


def test_a_damaged_run_is_a_settings_error_of_the_library(folder: Path) -> None:
    next((folder / RUN.name).iterdir()).write_bytes(b"")
    for ask in (open_run, lambda place: compare(place, place)):
        with pytest.raises(SettingsError, match="cannot be read"):
            ask(folder)
