"""Completion of shells and manual pages, made from the commands."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from router.cli import COMMANDS, main


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
