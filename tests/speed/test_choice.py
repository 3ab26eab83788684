"""Which speed is used: by the environment, by what was compiled, and what the command line and the log say of it."""

from __future__ import annotations

import os
import subprocess
import sys
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
    speed.choose(None, speed.hot_modules())[0] == speed.INTERPRETED and "AMQP_MESH_TEST_INSTALLED" not in os.environ,
    reason="nothing is compiled: `python setup.py build_ext --inplace`",
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
        pytest.param("", speed.COMPILED, marks=needs_compiled),
        pytest.param(speed.COMPILED, speed.COMPILED, marks=needs_compiled),
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


@pytest.mark.parametrize("words", [["--version"], ["run", "mesh.yaml"], ["config", "check", "mesh.yaml"]])
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


def sources(folder: Path, *, compiled: int) -> dict[str, Path]:
    """Three modules, so many of which have an extension beside them."""
    modules = {f"router.m{number}": folder / f"m{number}.py" for number in range(3)}
    for path in list(modules.values())[:compiled]:
        path.with_suffix(speed.SUFFIX).touch()
    return modules


def test_all_compiled_is_compiled(tmp_path: Path) -> None:
    assert speed.choose(None, sources(tmp_path, compiled=3)) == (speed.COMPILED, "")


def test_none_compiled_is_interpreted_and_says_why(tmp_path: Path) -> None:
    assert speed.choose(None, sources(tmp_path, compiled=0)) == (
        speed.INTERPRETED,
        "it was not built, or no C compiler worked then",
    )


def test_one_that_is_not_compiled_has_all_of_them_interpreted(tmp_path: Path) -> None:
    modules = sources(tmp_path, compiled=2)
    assert speed.choose(None, modules) == (speed.INTERPRETED, "router.m2 is not compiled")
    with pytest.raises(
        speed.SpeedUnavailable, match=r"^AMQP_MESH_SPEED is 'compiled', but router\.m2 is not compiled$"
    ):
        speed.choose(speed.COMPILED, modules)


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
