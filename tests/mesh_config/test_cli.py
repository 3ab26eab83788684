"""The commands below `amqp-mesh config`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mesh_config.generators import generate
from mesh_config.loader import load_mesh, load_router
from router.cli import main

GOOD = "routers:\n  A: {listeners: [{port: 7, role: inter-router}]}\n  B: {connectors: [{to: A, cost: 3}]}\n"
WARNING = "router: {id: A, listeners: [{host: 0.0.0.0}]}\n"
BAD = "router:\n  id: A\n  lsteners: []\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name, text in (("good", GOOD), ("warning", WARNING), ("bad", BAD)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in ("good", "warning", "bad", "out.svg", "absent/out")}


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["config", *words])


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("good", 0, "1 file: 0 errors, 0 warnings"),
        ("warning", 0, "1 file: 0 errors, 1 warning"),
        (
            "bad",
            1,
            ":3: error: router.lsteners: unknown key `lsteners`; did you mean `listeners`?",
        ),
    ],
)
def test_check_exits_with_1_for_errors_only(files: dict[str, str], name: str, status: int, words: str) -> None:
    result = run("check", files[name])
    assert result.exit_code == status
    assert words in result.output


def test_check_counts_over_all_files(files: dict[str, str]) -> None:
    result = run("check", files["good"], files["warning"], files["bad"], "absent")
    assert result.exit_code == 1
    assert "4 files: 2 errors, 1 warning\n" in result.output
    assert "absent: error: cannot be read: No such file" in result.output


def test_files_that_the_settings_of_a_pipe_name_are_checked_too(tmp_path: Path) -> None:
    text = f"router: {{id: A, listeners: [{{sasl: [PLAIN], plain_without_tls: true, users_file: {tmp_path}/none}}]}}\n"
    for words in ((), ("--router", "A")):
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
        result = run("check", "--files", f"/dev/fd/{reading}", *words)
        os.close(reading)
        assert result.exit_code == 1
        assert f"router.listeners[0].users_file: {tmp_path}/none: cannot be read: No such file" in result.output
        assert "1 file: 1 error, 0 warnings" in result.output


def test_check_writes_json(files: dict[str, str]) -> None:
    result = run("check", "--json", files["bad"])
    assert result.exit_code == 1
    assert json.loads(result.output) == [
        {
            "severity": "error",
            "file": files["bad"],
            "line": 3,
            "key": "router.lsteners",
            "message": "unknown key `lsteners`",
            "expected": "",
            "nearest": "listeners",
        }
    ]
    assert json.loads(run("check", "--json", files["good"]).output) == []


def test_render_writes_a_file_that_loads_to_the_same_router(files: dict[str, str], tmp_path: Path) -> None:
    for option in ((), ("--brief",)):
        out = str(tmp_path / "b.yaml")
        assert run("render", files["good"], "--router", "B", *option, "-o", out).exit_code == 0
        assert load_router(out) == load_router(files["good"], "B")
    assert "idle_timeout_s: 16.0" in run("render", files["good"], "--router", "B").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("render", "good"), "the file has several routers"),
        (("render", "good", "--router", "C"), "no router `C`"),
        (("render", "bad"), "did you mean `listeners`?"),
        (("graph", "bad"), "did you mean `listeners`?"),
    ],
)
def test_a_file_that_is_wrong_is_told_on_standard_error(
    files: dict[str, str], words: tuple[str, ...], message: str
) -> None:
    result = run(*(files.get(word, word) for word in words))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr


def test_graph_is_dot_unless_a_picture_is_asked_for(files: dict[str, str]) -> None:
    assert '"A" -- "B" [label="3"];' in run("graph", files["good"]).output
    assert run("graph", files["good"], "--dot").output == run("graph", files["good"]).output
    picture = run("graph", files["good"], "--svg").output
    assert picture.startswith("<svg ")
    assert run("graph", files["good"], "-o", files["out.svg"]).output == ""
    found = run("graph", files["good"], "-o", "out.png")
    assert found.exit_code == 2
    assert "--output out.png: expected a name that ends in one of .dot, .gv, .svg, or --svg or --dot" in found.output
    assert Path(files["out.svg"]).read_text(encoding="utf-8") == picture


def test_an_output_that_cannot_be_written_is_told(files: dict[str, str]) -> None:
    result = run("schema", "-o", files["absent/out"])
    assert result.exit_code == 1
    assert "No such file" in result.stderr


def test_generate_writes_the_mesh_of_the_seed(tmp_path: Path) -> None:
    out = str(tmp_path / "mesh.yaml")
    words = ("generate", "geometric", "--routers", "9", "--seed", "3", "--base-port", "4000", "-o", out)
    assert run(*words).exit_code == 0
    assert load_mesh(out) == generate("geometric", 9, seed=3, base_port=4000)


def test_generate_refuses_what_has_no_such_size() -> None:
    result = run("generate", "fat-tree", "--routers", "6")
    assert result.exit_code == 2
    assert "the nearest has 5" in result.stderr


def test_schema_and_reference_are_written() -> None:
    assert json.loads(run("schema").output)["title"].startswith("Settings of an amqp-mesh router")
    assert run("reference").output.startswith("# Settings\n")
