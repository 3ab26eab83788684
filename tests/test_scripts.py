"""The scripts name tests that are there, and build the wheel when something that goes into it has changed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.spark_presence import OF_SPARK

CLONE = Path(__file__).parents[1]
SCRIPTS = CLONE / "scripts"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What `install_wheel` reads, in small: its build and its pip note that they were called."""
    for name in ("setup.py", "MANIFEST.in", "README.md", "LICENSE", "NOTICE", "pyproject.toml"):
        (tmp_path / name).write_text(name)
    for name in ("router/a.py", "router/a.pxd", "mesh_config/b.py", "requirements/dev.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPTS / "setup.sh", tmp_path / "scripts")
    for path, line in (
        (tmp_path / "scripts" / "build-wheel", "echo built >>calls"),
        (programs / "pip", "exit 0"),
        (programs / "amqp-mesh", "exit 0"),
    ):
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
    return tmp_path


def builds(clone: Path, extras: str = "demo") -> int:
    """How often the wheel was built in all, after one more call."""
    command = f'set -euo pipefail; . scripts/setup.sh; install_wheel "$PWD/venv" {extras}'
    subprocess.run(["bash", "-c", command], cwd=clone, check=True, timeout=60)
    return len((clone / "calls").read_text().splitlines())


def test_the_wheel_is_not_built_again_when_nothing_has_changed(clone: Path) -> None:
    assert [builds(clone), builds(clone)] == [1, 1]
    (clone / "router" / "a.so").touch()
    assert builds(clone) == 1


@pytest.mark.parametrize(
    "name", ["router/a.py", "router/a.pxd", "mesh_config/b.py", "setup.py", "requirements/dev.txt"]
)
def test_the_wheel_is_built_again_when_one_of_its_sources_has_changed(clone: Path, name: str) -> None:
    builds(clone)
    (clone / name).write_text("changed")
    assert [builds(clone), builds(clone)] == [2, 2]


def test_the_wheel_is_built_again_after_a_build_that_failed(clone: Path) -> None:
    builds(clone)
    (clone / "router" / "a.py").write_text("changed")
    build = clone / "scripts" / "build-wheel"
    working = build.read_text()
    build.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(subprocess.CalledProcessError):
        builds(clone)
    build.write_text(working)
    assert builds(clone) == 2


def test_a_module_that_is_gone_is_not_built_again(tmp_path: Path) -> None:
    for name in ("setup.py", "README.md", "LICENSE", "NOTICE", "MANIFEST.in", "pyproject.toml"):
        shutil.copy(CLONE / name, tmp_path)
    for name in ("router/__init__.py", "router/gone.py", "router/gone.pxd", "mesh_config/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('__version__ = "1.0"\n' if name == "router/__init__.py" else "")

    def built() -> set[str]:
        command = [sys.executable, "setup.py", "-q", "build"]
        environment = {**os.environ, "AMQP_MESH_SPEED": "interpreted"}
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=60)
        return {path.name for path in (tmp_path / "build").rglob("router/*")}

    assert "gone.py" in built()
    (tmp_path / "router" / "gone.py").unlink()
    (tmp_path / "router" / "gone.pxd").unlink()
    assert built() == {"__init__.py"}


def test_proton_is_compiled_as_the_readme_has_it_and_without_assertions() -> None:
    (flags,) = re.findall(r'^PROTON_CFLAGS="(.*)"$', (SCRIPTS / "setup.sh").read_text(encoding="utf-8"), re.MULTILINE)
    assert "-DNDEBUG" in flags.split()
    assert f'$ export CFLAGS="{flags}" ' in (CLONE / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("wanted", "builds"), [("", 1), ("compiled", 1), ("interpreted", 0)])
def test_one_command_compiles_what_has_changed_and_tests(tmp_path: Path, wanted: str, builds: int) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("build", "pytest"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    (tmp_path / "setup.py").write_text("print('compiles')")
    (tmp_path / "test_one.py").write_text("def test_one(): pass")
    said = subprocess.run(
        ["scripts/pytest", "-q", "test_one.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHON": sys.executable, "AMQP_MESH_SPEED": wanted},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    assert said.count("compiles") == builds
    assert "1 passed" in said


@pytest.mark.parametrize("script", [".ci/run", *(f"scripts/{path.name}" for path in sorted(SCRIPTS.iterdir()))])
def test_a_script_is_one_that_bash_can_read(script: str) -> None:
    subprocess.run(["bash", "-n", CLONE / script], check=True, timeout=60)


def test_pinned_versions_of_both_set_ups_are_renewed_together(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPTS / "lock", tmp_path / "scripts")
    shutil.copy(CLONE / "pyproject.toml", tmp_path)
    (tmp_path / "uv").write_text("#!/bin/sh\necho $*\n")
    (tmp_path / "uv").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(
        [tmp_path / "scripts" / "lock", "-P", "trio"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout.splitlines()
    files = [re.search(r"--output-file requirements/([\w-]+)\.txt ", line) for line in said]
    names = [found.group(1) for found in files if found is not None]
    assert names == ["dev", "dev-router", "audit", "run", "build"]
    for line, name in zip(said, names, strict=True):
        assert (f"--extra {name} " in line) is (name in ("dev", "dev-router", "audit"))
        assert ("--generate-hashes" in line) is (name in ("run", "build"))
        assert "-P trio" in line


@pytest.mark.parametrize("name", ["run", "build"])
def test_what_is_run_and_built_is_pinned_by_hashes_to_the_versions_that_are_tested(name: str) -> None:
    text = (CLONE / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    pin = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
    pinned = pin.findall(text)
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pinned) > 1
    assert all("--hash=sha256:" in block for block in blocks)
    tested = pin.findall((CLONE / "requirements" / "dev.txt").read_text(encoding="utf-8"))
    names = {key for key, _ in tested}
    assert {one for one in pinned if one[0] in names} <= set(tested)
    if name == "run":
        assert {key for key, _ in pinned} <= names
        assert "python-qpid-proton" in names


def expanded(words: list[str]) -> list[str]:
    """Names that the shell makes of words with braces."""
    command = "printf '%s\\n' " + " ".join(words)
    return subprocess.run(
        ["bash", "-c", command], check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()


@pytest.mark.parametrize("script", [".ci/run", "scripts/test"])
def test_tests_that_a_script_names_are_there(script: str) -> None:
    named = expanded(re.findall(r"(?<=[\s(])tests/[^\s)]+", (CLONE / script).read_text()))
    assert len(named) > 10, "the words of the script are no longer found"
    assert [name for name in named if not (CLONE / name).exists()] == []


def test_tests_and_programs_that_tox_names_are_there() -> None:
    text = (CLONE / "tox.ini").read_text()
    named = re.findall(r"\btests/[\w./]+", text)
    programs = [name.replace(".", "/") for name in re.findall(r"\btests(?:\.\w+)+", text)]
    assert len(named) > 8
    assert len(programs) > 6
    assert [name for name in named if not (CLONE / name).exists()] == []
    files = [[CLONE / f"{name}.py", CLONE / name / "__main__.py"] for name in programs]
    assert [either for either in files if not any(file.is_file() for file in either)] == []


WITHOUT_SPARK = """
import os
import sys

os.environ.pop("AMQP_MESH_TEST_INSTALLED", None)
sys.modules.update(dict.fromkeys(["pyspark", "py4j", "pyarrow", "pandas", "lxml", "sphinx", "myst_parser", "furo"]))
"""
"""Begins a program that finds no more modules than are installed for the router alone."""


@pytest.mark.slow
def test_without_spark_pytest_leaves_out_what_needs_it_and_says_so() -> None:
    program = f"{WITHOUT_SPARK}import pytest\nsys.exit(pytest.main(['--collect-only', '-q', '-p', 'no:cacheprovider']))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CLONE, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "tests/test_layering.py::" in done.stdout
    assert not any(f"tests/{name}" in done.stdout for name in OF_SPARK)


def test_without_spark_pytest_says_what_is_missing_for_what_is_named() -> None:
    runs = f"sys.exit(min(pytest.main([f'tests/{{name}}', '-p', 'no:cacheprovider']) for name in {OF_SPARK}))"
    program = f"{WITHOUT_SPARK}import pytest\n{runs}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CLONE, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    said = [line for line in done.stderr.splitlines() if line]
    assert said == [f"ERROR: tests/{name} needs Spark: pip install -r requirements/dev.txt" for name in OF_SPARK]


def test_a_build_of_the_docs_says_in_a_line_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "begin.py").write_text(WITHOUT_SPARK)
    program = f"#!/bin/sh\ncat {shlex.quote(str(tmp_path / 'begin.py'))} - | {shlex.quote(sys.executable)} -\n"
    (tmp_path / "python").write_text(program)
    (tmp_path / "python").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [SCRIPTS / "build-docs"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    lacking = "sphinx, myst_parser, furo, pyspark, pyarrow, lxml"
    assert done.stderr == f"scripts/build-docs needs {lacking}: pip install -r requirements/dev.txt\n"


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("12.fix.md", True),
        ("+slow-subscribers.fix.md", True),
        ("slow-subscribers.fix.md", False),  # would come out as (#slow-subscribers)
        ("12-slow.fix.md", False),
        ("+slow-subscribers.md", False),
    ],
)
def test_a_note_for_users_has_an_issue_number_or_a_plus(name: str, is_good: bool, tmp_path: Path) -> None:
    shutil.copytree(CLONE / "newsfragments", tmp_path / "newsfragments")
    (tmp_path / "newsfragments" / name).write_text("Slow subscribers are faster.\n")
    for program in ("scripts/check-news", "bin/towncrier"):
        (tmp_path / program).parent.mkdir()
    shutil.copy(SCRIPTS / "check-news", tmp_path / "scripts")
    (tmp_path / "bin" / "towncrier").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "towncrier").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["scripts/check-news"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode == 0) is is_good
    assert is_good or f"{name}: its name must be NUMBER.KIND.md or +WORDS.KIND.md" in done.stderr
