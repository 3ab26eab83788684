"""The tables of docs/explanation/architecture.md and CONTRIBUTING.md have each folder, and say what it may import."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import router
from tests.test_layering import MODULES, RINGS, WHATIF, Step, below, may_import, ring_of

ROOT = Path(__file__).parents[1]
ROUTER = Path(router.__file__).parent
ARCHITECTURE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
WHATIF_ROW = "[what its packages may](#what-if)"
GENERAL = "router/"
"""What names in the tables leave out."""


def section(heading: str) -> str:
    return ARCHITECTURE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(text: str) -> Iterator[tuple[str, str]]:
    """First and last column of a table's rows, without its head."""
    for line in re.findall(r"^\| (.+) \|$", text, re.MULTILINE):
        cells = line.split(" | ")
        if cells[0].startswith("`"):
            yield cells[0].strip("`"), cells[-1]


def path_of(module: str) -> str:
    """`core/linkstate/spf.py` of a module, `core/policy/` of a package; both without the first word."""
    path = module.replace(".", "/").removeprefix("router/")
    return f"{path}/" if MODULES[module].name == "__init__.py" else f"{path}.py"


def shown(imported: Sequence[str]) -> str:
    """Own modules between backquotes, others as they are; the parts of cffi and attrs are theirs."""
    own = [each for each in imported if each.partition(".")[0] in ("router", "mesh_config")]
    others = [each for each in imported if each not in own and not each.startswith("_")]
    if {"router", "mesh_config"} <= set(own):
        return ", ".join(["everything", *others])
    return ", ".join([*(f"`{each.removeprefix('router.')}`" for each in own), *others])


def may(folder: str, prefix: str) -> str:
    """The column of one folder: what all of it may import, and what more parts of it may.

    Args:
        folder: dotted name of a folder or a module.
        prefix: what names of parts leave out, as `core/`.
    """
    ring = ring_of(folder)
    more: dict[tuple[str, ...], list[str]] = {}
    for part in RINGS:
        if part.folder != ring.folder and below(part.folder, folder):
            extra = tuple(each for each in (*part.ours, *part.others) if not may_import(ring, each))
            if shown(extra):
                more.setdefault(extra, []).append(f"`{path_of(part.folder).removeprefix(prefix)}`")
    found = [shown((*ring.ours, *ring.others)) or "nothing"]
    found += [f"{shown(extra)} in {', '.join(places)}" for extra, places in more.items()]
    return "; ".join(found)


TOP = sorted(
    [f"router.{path.name}" for path in ROUTER.iterdir() if (path / "__init__.py").is_file()]
    + [f"router.{path.stem}" for path in ROUTER.glob("*.py") if not path.stem.startswith("__")]
    + ["mesh_config"]
)
FOLDERS = {("" if name == "mesh_config" else GENERAL) + path_of(name): name for name in TOP}


def test_each_folder_and_each_module_beside_them_has_one_row() -> None:
    assert sorted(name for name, _ in rows(section("The folders"))) == sorted(FOLDERS)


@pytest.mark.parametrize("path", FOLDERS)
def test_the_table_says_what_a_folder_may_import(path: str) -> None:
    (said,) = (cell for name, cell in rows(section("The folders")) if name == path)
    name = FOLDERS[path]
    assert said == (WHATIF_ROW if name == "router.whatif" else may(name, f"{name.removeprefix('router.')}/"))


@pytest.mark.parametrize("step", WHATIF, ids=lambda step: step.package)
def test_the_table_of_what_if_says_what_its_packages_may_import(step: Step) -> None:
    table = dict(rows(section("What-if")))
    assert len(table) == len(WHATIF)
    path = path_of(step.folder).removeprefix("whatif/")
    assert table[path] == may(step.folder, f"whatif/{step.package}/").replace("`whatif.", "`")


def test_the_map_of_contributors_has_each_folder() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("\n## Set up\n")[0]
    assert [path for path in FOLDERS if path.endswith("/") and f"`{path}" not in text] == []
