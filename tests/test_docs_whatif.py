"""The pages on what-if show what the commands really write, and name no option that there isn't."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from router.cli import main
from router.cli.whatif import whatif
from router.whatif.library.sql_views import MODEL_PARTS
from router.whatif.library.variant_and_family_columns import implied_columns
from router.whatif.pipeline.table_layouts import OF_SCENARIOS

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorials" / "what-if.md"
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    if "amqp-mesh whatif" in page.read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def shown_output() -> ModuleType:
    """docs/shown_output.py, which is no package's."""
    spec = importlib.util.spec_from_file_location("shown_output", ROOT / "docs" / "shown_output.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_shows_what_its_commands_write(shown_output: ModuleType, tmp_path: Path) -> None:
    page = TUTORIAL.read_text(encoding="utf-8")
    real = shown_output.pasted(page, shown_output.play(page, tmp_path))
    assert shown_output.masked(real).splitlines() == shown_output.masked(page).splitlines(), (
        "run docs/shown_output.py docs/tutorials/what-if.md, then read what it has written"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "examples"], "it tells how to tidy up"


@pytest.mark.slow
def test_the_tutorial_says_why_availability_is_lower_with_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = " ".join(TUTORIAL.read_text(encoding="utf-8").split())
    (double,) = re.findall(r"\(`--fail (links:1-2,\S+)`\)", page)
    files = ROOT / "examples" / "what-if"
    uncovered, lost, hours = [], [], []

    def said_by(*words: str) -> str:
        found = CliRunner().invoke(main, ["whatif", *words], catch_exceptions=False)
        assert found.exit_code == 0, found.output
        return found.stdout

    monkeypatch.chdir(tmp_path)
    for name, details in (("map", ["details"]), ("plan", ["details", "decision"])):
        options = [word for each in details for word in ("--details", str(files / f"{each}.yaml"))]
        demands = str(files / "demands.csv")
        said_by("import", str(files / "Geant2012.graphml"), "-o", name, *options, "--demands", demands)
        said_by("run", name, "-o", f"{name}-one", "--fail", "links:1,routers:1,srlg")
        told = json.loads(Path(f"{name}-one", "summary.json").read_text(encoding="utf-8"))["availability"]
        uncovered.append(f"{100 * told['residual']:.2f} %")
        lost.append(told["lost_msgs_per_s"])
        two = said_by("run", name, "-o", f"{name}-two", "--fail", double)
        hours += re.findall(r"^Availability: .* at most (.*) a year are lost", two, re.MULTILINE)
    assert lost[1] < lost[0]
    assert f"last {uncovered[1]} of the time instead of {uncovered[0]}." in page
    assert f"at most {hours[1]} a year are lost, and {hours[0]} before." in page


FILE = re.compile(r"`([\w-]+\.\w+)`[^`]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A file that a page shows: a sentence that ends with its name and a colon, and a block."""
GATES = ("whatif check ", "whatif diff out-before out-after --no-worse")
"""Of commands, how those begin that may end with 1, as the page says."""


@pytest.mark.slow
def test_the_recipes_run_as_they_stand(
    shown_output: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how_to" / "what-if.md").read_text(encoding="utf-8")
    files = dict(FILE.findall(page))
    assert sorted(files) == ["demands.csv", "details.yaml", "gate.sh", "groups.yaml", "prices.yaml", "tuesday.yaml"]
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    shown = {command.replace("\\\n", " "): output for command, output in shown_output.commands(page)}
    gate = files["gate.sh"].replace('"$WORK/', '"gate-').splitlines()
    for command in (*shown, *(line for line in gate if line.startswith("amqp-mesh "))):
        program, _, words = command.partition(" ")
        if program == "pip" or words.startswith("whatif snapshot "):  # there is no live mesh
            continue
        assert program == "amqp-mesh"
        found = CliRunner().invoke(main, shlex.split(words))
        assert found.exit_code in ((0, 1) if words.startswith(GATES) else (0,)), f"{command}\n{found.output}"
        if shown.get(command):
            real = "".join(f"{line.rstrip()}\n" for line in found.stdout.splitlines())
            assert real == shown[command], command


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_history_to_try_a_forecast_with_gives_what_the_page_shows(
    shown_output: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "how_to" / "what-if-forecast.md").read_text(encoding="utf-8")
    (section,) = re.findall(r"^## A history to try it with\n.*?(?=^## )", page, re.MULTILINE | re.DOTALL)
    for name, text in FILE.findall(section):
        Path(name).write_text(text, encoding="utf-8")
    Path("examples").symlink_to(ROOT / "examples")
    programs = {"amqp-mesh": (sys.executable, "-m", "router"), "python": (sys.executable,)}
    for command, output in shown_output.commands(section):
        program, *words = shlex.split(command.replace("\\\n", " "))
        done = subprocess.run([*programs[program], *words], stdout=subprocess.PIPE, text=True, timeout=300, check=True)
        assert [line.rstrip() for line in done.stdout.splitlines()] == output.splitlines(), command


def test_the_page_on_sql_names_all_views_and_the_tables_without_a_variant() -> None:
    page = (ROOT / "docs" / "how_to" / "what-if-sql.md").read_text(encoding="utf-8")
    parts = re.search(r"The parts of the model are views\ntoo: (.*?)\.\n", page, re.DOTALL)
    assert parts is not None
    assert set(re.findall(r"`(\w+)`", parts[1])) == set(MODEL_PARTS)
    bare = {layout.name for layout in OF_SCENARIOS if "variant" in implied_columns(layout.name)}
    tables = re.search(r"Without the views, (.*?) of a run by the local engine", page)
    assert tables is not None
    assert set(re.findall(r"`(\w+)`", tables[1])) == bare


def asked(page: Path, shown_output: ModuleType) -> list[str]:
    """Every `amqp-mesh whatif ...` of a page, in blocks of commands and in words."""
    text = page.read_text(encoding="utf-8")
    lines = [command.replace("\\\n", " ") for command, _ in shown_output.commands(text)]
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines += block.replace("\\\n", " ").splitlines()
    words = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"`(amqp-mesh\s+whatif [^`]+)`", words)
    # Not as far as a comment, nor what follows in a shell.
    found = (re.match(r"amqp-mesh\s+whatif +(?!\.)([^|;&>#]+)", line) for line in lines)
    return [match[1] for match in found if match]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_commands_and_options_that_there_are(page: Path, shown_output: ModuleType) -> None:
    context = click.Context(whatif)
    for line in asked(page, shown_output):
        name, *rest = shlex.split(line)
        command = whatif.get_command(context, name)
        assert command is not None, line
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        known |= {"--help"}
        missing = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in known]
        assert not missing, line
