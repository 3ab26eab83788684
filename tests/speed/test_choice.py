"""Which speed is used: by the environment, by what was compiled, and what the command line and the log say of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mesh_config.generators import generate
from router import __version__, speed
from router.cli.management import ManagementClient
from tests.helpers.processes import MeshProcesses

ENDINGS = {speed.COMPILED: ".so", speed.INTERPRETED: ".py"}

WHERE_FROM = """
import importlib, router
from router.speed import SPEED, hot_modules
print(SPEED)
for name in hot_modules():
    print(name, importlib.import_module(name).__file__)
"""

needs_compiled = pytest.mark.skipif(
    not speed.LIBRARY.exists() and "AMQP_MESH_TEST_INSTALLED" not in os.environ,
    reason="nothing is compiled: `scripts/build`",
)


def python(*words: str, wanted: str | None) -> subprocess.CompletedProcess[str]:
    """What a Python of its own says, with that in the environment."""
    environment = {name: value for name, value in os.environ.items() if name != speed.VARIABLE}
    if wanted is not None:
        environment[speed.VARIABLE] = wanted
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("wanted", "used"),
    [
        pytest.param(None, speed.COMPILED, marks=needs_compiled),
        pytest.param("", speed.COMPILED, marks=[needs_compiled, pytest.mark.slow]),
        pytest.param(speed.COMPILED, speed.COMPILED, marks=[needs_compiled, pytest.mark.slow]),
        (speed.INTERPRETED, speed.INTERPRETED),
    ],
)
def test_every_hot_module_is_loaded_at_the_speed_that_was_asked_for(wanted: str | None, used: str) -> None:
    said = python("-c", WHERE_FROM, wanted=wanted)
    assert said.returncode == 0, said.stderr
    first, *loaded = said.stdout.splitlines()
    assert first == used
    files = dict(line.split() for line in loaded)
    assert set(files) == set(speed.hot_modules())
    assert {Path(file).suffix for file in files.values()} == {ENDINGS[used]}


def test_this_very_process_has_the_speed_that_it_says() -> None:
    assert {Path(sys.modules[name].__file__).suffix for name in speed.hot_modules() if name in sys.modules} <= {
        ENDINGS[speed.SPEED]
    }


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        pytest.param(speed.COMPILED, "compiled", marks=needs_compiled),
        (speed.INTERPRETED, "interpreted: AMQP_MESH_SPEED says so"),
    ],
)
def test_the_version_says_which_speed_and_why(wanted: str, words: str) -> None:
    said = python("-m", "router", "--version", wanted=wanted)
    assert (said.returncode, said.stdout, said.stderr) == (0, f"amqp-mesh {__version__}, {words}\n", "")


@pytest.mark.parametrize(
    "words",
    [["--version"], ["run", "mesh.yaml"], pytest.param(["config", "check", "mesh.yaml"], marks=pytest.mark.slow)],
)
def test_a_speed_that_there_is_not_is_one_line_and_no_traceback(words: list[str]) -> None:
    said = python("-m", "router", *words, wanted="fast")
    assert said.returncode == 1
    assert said.stdout == ""
    assert said.stderr == "Error: AMQP_MESH_SPEED is 'fast'; expected 'compiled' or 'interpreted'\n"


def test_nobody_imports_a_hot_module_at_a_speed_that_was_not_asked_for() -> None:
    said = python("-c", "import router.dataplane.router_data_plane", wanted="fast")
    assert said.stderr.splitlines()[-1] == (
        "router.speed.SpeedUnavailable: AMQP_MESH_SPEED is 'fast'; expected 'compiled' or 'interpreted'"
    )


def test_with_the_library_it_is_compiled(tmp_path: Path) -> None:
    (tmp_path / "library").touch()
    assert speed.choose(None, tmp_path / "library") == (speed.COMPILED, "")


def test_without_the_library_it_is_interpreted_and_says_why(tmp_path: Path) -> None:
    why = "it was not built, or no C compiler worked then"
    assert speed.choose(None, tmp_path / "library") == (speed.INTERPRETED, why)
    with pytest.raises(speed.SpeedUnavailable, match=f"^AMQP_MESH_SPEED is 'compiled', but {why}$"):
        speed.choose(speed.COMPILED, tmp_path / "library")


@needs_compiled
def test_each_hot_module_can_be_the_first_that_is_imported() -> None:
    firsts = "router.core.forwarding.fib", "router.whatif.kernel.graph", "router.dataplane.links", "router.bench.tally"
    for name in firsts:
        said = python("-c", f"import {name}", wanted=speed.COMPILED)
        assert (said.returncode, said.stderr) == (0, "")


@needs_compiled
def test_a_module_that_the_library_lacks_is_named_and_what_to_do() -> None:
    words = """
from router import speed
modules = dict(speed.hot_modules())
speed.hot_modules = lambda: {**modules, "router.core.brand_new": "router/core/brand_new.py"}
import router.core.brand_new
"""
    said = python("-c", words, wanted=speed.COMPILED)
    last = said.stderr.splitlines()[-1]
    assert last.startswith("ImportError: router.core.brand_new can't be loaded from ")
    assert last.endswith("build it again: scripts/build")


def test_last_words_of_names_are_different_since_the_library_is_searched_by_them() -> None:
    names = Counter(name.rpartition(".")[2] for name in speed.hot_modules())
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize("wanted", [pytest.param(None, marks=needs_compiled), speed.INTERPRETED])
def test_the_log_and_management_say_which_speed(
    wanted: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(speed.VARIABLE, raising=False)
    if wanted:
        monkeypatch.setenv(speed.VARIABLE, wanted)
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        assert mesh["R1"].wait_log("started").fields["speed"] == (wanted or speed.COMPILED)
        with ManagementClient(mesh.url("R1"), timeout_s=5) as client:
            (row,) = client.query("router", ["speed"])
        assert row == {"speed": wanted or speed.COMPILED}
        mesh.terminate()
        warnings = mesh["R1"].log_lines("interpreted")
    assert [(line.level, line.fields["reason"]) for line in warnings] == (
        [("warning", "AMQP_MESH_SPEED says so")] if wanted else []
    )
