"""The documentation says nothing that the program refutes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import mesh_config
import router
from mesh_config.check import check_file
from mesh_config.findings import Severity

ROOT = Path(__file__).parent.parent
SOURCES = [path for package in (router, mesh_config) for path in Path(package.__file__).parent.rglob("*.py")]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


YAML_BLOCKS = [
    pytest.param(block, id=f"{page_id(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    if re.search(r"^routers?:$", block, re.MULTILINE)
]


@pytest.mark.parametrize("block", YAML_BLOCKS)
def test_meshes_of_the_documentation_are_right(block: str, tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(block, encoding="utf-8")
    findings = check_file(file)
    # A mesh of several machines has listeners that are no loopback: a warning that nothing in the file can help.
    assert [
        finding
        for finding in findings
        if finding.severity is Severity.ERROR or "is open to other machines" not in finding.message
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("folder", ["dataplane", "core/forwarding"])
def test_every_module_that_messages_pass_has_a_row_that_says_what_it_does(folder: str) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = {
        name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+\.py)`", row)
    }
    modules = {path.name for path in (ROOT / "router" / folder).glob("*.py")} - {"__init__.py"}
    assert modules - rows == set()


def test_every_marked_deviation_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "deviations.md").read_text(encoding="utf-8")
    explained = re.findall(r"^## (DEV-\d+): ", page, re.MULTILINE)
    marked = {mark for path in SOURCES for mark in re.findall(r"DEV-\d+", path.read_text(encoding="utf-8"))}
    assert set(explained) - marked == {"DEV-12"}, "the one that is the absence of something"
    assert marked <= set(explained)
    assert [f"DEV-{number}" for number in range(1, len(explained) + 1)] == explained


# The reference of log lines

LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def log_calls() -> Iterator[tuple[str, str, set[str]]]:
    """Every (event, level, fields) that the sources log, or have reported by the core."""
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args):
                level = call.func.attr if isinstance(call.func, ast.Attribute) else ""
                if level not in LEVELS:
                    continue
                fields = {word.arg for word in call.keywords if word.arg is not None}
                if "exc_info" in fields:  # that is how it is given; what is written is called otherwise
                    fields = fields - {"exc_info"} | {"exception"}
                for event in event_names(call.args[0], function):
                    yield event, LEVELS[level], fields | ({"exception"} if level == "exception" else set())


def event_names(argument: ast.expr, function: ast.AST) -> Iterator[str]:
    """The first argument of a call that logs: a constant, or a variable that is one of several."""
    if isinstance(argument, ast.Name):
        assigned = (
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == argument.id for target in node.targets)
        )
        for value in assigned:
            if isinstance(value, ast.IfExp):
                yield from event_names(value.body, function)
                yield from event_names(value.orelse, function)
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value


def documented_logs() -> Mapping[str, tuple[set[str], set[str]]]:
    """The rows of the page: levels and fields of each event."""
    page = (ROOT / "docs" / "reference" / "logs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|([^|]*)\| [^|]+\|$", page, re.MULTILINE)
    return {event: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields))) for event, levels, fields in rows}


def test_the_reference_of_logs_has_every_event_with_its_levels_and_fields() -> None:
    levels: dict[str, set[str]] = defaultdict(set)
    fields: dict[str, set[str]] = defaultdict(set)
    for event, level, words in log_calls():
        levels[event].add(level)
        fields[event] |= words
    documented = documented_logs()
    # Its level is that of the finding, and what a finding doesn't have is left out.
    assert documented["settings_finding"] == (
        {severity.value for severity in Severity},
        {"place", "key", "message", "expected", "nearest"},
    )
    assert {event: (levels[event], fields[event]) for event in levels} == {
        event: row for event, row in documented.items() if event != "settings_finding"
    }
