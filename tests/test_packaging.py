"""What a user gets from the wheel."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import proton
import pytest

import mesh_config
import router
from router import speed
from router.binding import library


def test_the_oldest_python_named_is_the_one_required() -> None:
    # .ci/run takes the oldest and the newest from the classifiers.
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [word.rpartition(" ")[2] for word in project["classifiers"] if ":: Python :: 3." in word]
    assert project["requires-python"] == f">={versions[0]}"
    assert versions == [f"3.{minor}" for minor in range(11, 11 + len(versions))]


def pins(name: str) -> set[str]:
    lines = (Path(__file__).parent.parent / "requirements" / name).read_text(encoding="utf-8").splitlines()
    return {line.partition(" ")[0] for line in lines if re.match(r"[\w.-]+==", line)}


def test_the_set_up_for_the_router_alone_has_the_same_versions_without_spark() -> None:
    whole, alone = pins("dev.txt"), pins("dev-router.txt")
    assert alone < whole
    names = {line.partition("==")[0] for line in alone}
    assert {"cython", "hypothesis", "oslo-messaging", "pytest", "ruff", "towncrier"} <= names
    assert {name.partition("==")[0] for name in whole} - names >= {"pyspark", "py4j", "pyarrow"}


@pytest.mark.parametrize("package", [router, mesh_config], ids=["router", "mesh_config"])
def test_the_tested_package_is_the_installed_one(package: object, site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    assert Path(package.__file__).resolve().parent.parent == site_packages


@pytest.mark.parametrize("package", [router, mesh_config], ids=["router", "mesh_config"])
def test_packages_are_typed(package: object) -> None:
    assert Path(package.__file__).with_name("py.typed").is_file()


def test_version_is_the_one_of_the_distribution(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    assert importlib.metadata.version("amqp-mesh") == router.__version__


def test_the_wheel_carries_nothing_but_the_two_packages(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    files = importlib.metadata.files("amqp-mesh") or []
    top = {file.parts[0] for file in files if ".." not in file.parts}
    assert {name for name in top if not name.endswith(".dist-info")} == {"router", "mesh_config"}


def test_hot_modules_are_there_compiled_as_source_and_with_their_declarations(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    files = {str(file) for file in importlib.metadata.files("amqp-mesh") or []}
    for name in speed.hot_modules():
        path = name.replace(".", "/")
        assert {f"{path}.py", f"{path}.pxd"} <= files
    assert [file for file in files if file.endswith(".so")] == [f"router/{speed.LIBRARY.name}"]
    assert not [file for file in files if file.endswith((".c", ".pyx"))]
    assert not [file for file in files if file.endswith(".html") and f"{file[:-5]}.pxd" in files]  # Cython's remarks


def test_what_the_report_is_made_of_is_in_the_wheel(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    files = {str(file) for file in importlib.metadata.files("amqp-mesh") or []}
    parts = ("page.css", "page.html", "page.js", "summary.schema.json")
    assert {f"router/whatif/report/{name}" for name in parts} <= files


def test_the_command_is_installed(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="amqp-mesh")
    assert command.load() is not None


def test_proton_was_compiled_with_tls_and_cyrus_sasl(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    hint = "libssl-dev, libsasl2-dev or pkg-config was missing; see `pip cache remove python-qpid-proton`"
    assert proton.SSL.present(), hint
    assert proton.SASL.extended(), hint


def test_what_is_compiled_has_no_assertions(site_packages: Path | None) -> None:
    if site_packages is None:
        pytest.skip("a developer's checkout")
    assert not library.has_assertions()
    assert library.FAILED_ASSERTION not in speed.LIBRARY.read_bytes()


def test_a_proton_with_assertions_is_known_by_what_it_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "proton.c"
    source.write_text("#include <assert.h>\nint decode(const char *bytes) { assert(bytes); return *bytes; }\n")
    found = {}
    for flag in ("-UNDEBUG", "-DNDEBUG"):
        compiled = tmp_path / f"proton{flag}.so"
        subprocess.run(["cc", "-shared", "-fPIC", flag, "-o", compiled, source], check=True, timeout=60)
        monkeypatch.setattr(library.cproton_ffi, "__file__", str(compiled))
        found[flag] = library.has_assertions()
    assert found == {"-UNDEBUG": True, "-DNDEBUG": False}


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (["no-such-python"], {}, "error: no no-such-python: name the Python of the environment that amqp-mesh is in"),
        ([sys.executable], {"CC": "false"}, "error: false is no gcc, by which this is done"),
        (["EMPTY"], {}, "has no pip"),
    ],
)
def test_what_cannot_be_optimized_is_said_at_once(
    words: list[str], environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    if words == ["EMPTY"]:
        venv.create(tmp_path / "empty")
        words = [str(tmp_path / "empty/bin/python")]
    script = Path(__file__).parent.parent / "scripts/optimize"
    done = subprocess.run(
        [script, *words], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
