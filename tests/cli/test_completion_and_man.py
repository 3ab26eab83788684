"""Completion of shells and manual pages, made from the commands."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from router.cli import COMMANDS, main

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_asks_the_program(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_AMQP_MESH_COMPLETE={shell}_complete" in result.output


def test_bash_can_read_its_completion() -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    subprocess.run([bash, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [((), "tr", {"trace"}), (("stat",), "li", {"links", "listeners"}), (("send", "x"), "--us", {"--user"})],
)
def test_commands_words_and_options_are_completed(words: tuple[str, ...], begun: str, offered: set[str]) -> None:
    found = ShellComplete(main, {}, "amqp-mesh", "_AMQP_MESH_COMPLETE").get_completions(list(words), begun)
    assert {each.value for each in found} == offered


def test_each_command_has_a_manual_page_with_all_its_options(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["man", str(tmp_path)])
    assert result.exit_code == 0, result.output
    names = {path.name for path in tmp_path.iterdir()}
    assert {"amqp-mesh.1", *(f"amqp-mesh-{name}.1" for name in COMMANDS)} <= names
    assert "amqp-mesh-config-check.1" in names
    page = (tmp_path / "amqp-mesh-stat.1").read_text(encoding="utf-8")
    assert page.startswith('.TH "AMQP-MESH-STAT" "1"')
    assert all(f"\\-\\-{name}" in page for name in ("where", "watch", "ca", "timeout"))
    assert ".B \\-h, \\-\\-help" in page
    for path in tmp_path.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        assert all(line.split()[0] in (".TH", ".SH", ".TP", ".PP", ".B", ".BR") for line in lines if line[:1] in ".'")


def test_a_page_that_cannot_be_written_is_named_and_not_the_file_beside_it() -> None:
    result = CliRunner().invoke(main, ["man", "/proc/self"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: /proc/self/amqp-mesh.1: cannot be written: ")


def test_tests_run_commands_through_the_program() -> None:
    """Click keeps the option for help that a command has first: after it was run alone it has no `-h`."""
    alone = [f"{path}:{line}" for path in TESTS.rglob("*.py") for line in commands_run_alone(path)]
    assert alone == []


def test_a_command_that_a_test_runs_alone_is_found(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    imports = "from router.cli import main\nfrom router.cli.stat import stat\n"
    path.write_text(f"{imports}CliRunner().invoke(stat, [])\nCliRunner().invoke(main, ['stat'])\n", encoding="utf-8")
    assert commands_run_alone(path) == [3]


def commands_run_alone(path: Path) -> list[int]:
    """The lines of a test file that call `invoke` with what it imports from the command line, but for the program."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = {
        alias.asname or alias.name
        for node in modules
        if (node.module or "").startswith("router.cli")
        for alias in node.names
    } - {"main"}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return [
        node.lineno
        for node in calls
        if isinstance(node.func, ast.Attribute)
        and node.func.attr == "invoke"
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in names
    ]
