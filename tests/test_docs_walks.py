"""The walks of a message and of an update name the modules that both really pass, in the order in which they do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import router
from router.speed import INTERPRETED, VARIABLE

ROOT = Path(__file__).parent.parent
PAGES = {name: ROOT / "docs" / "explanation" / f"{name}.md" for name in ("walk-of-a-message", "walk-of-an-update")}
PICTURES = [ROOT / "docs" / "pictures" / f"{name}.svg" for name in PAGES]
PACKAGE = Path(router.__file__).parent


@pytest.fixture(scope="module")
def rounds() -> list[list[str]]:
    """The modules that rounds of a router entered, while messages passed it and a neighbor was lost."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.helpers.message_walk"],
        env={**os.environ, VARIABLE: INTERPRETED, "PYTHONPATH": os.pathsep.join(map(str, (PACKAGE.parent, ROOT)))},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    return [line.split() for line in ran.stdout.splitlines() if line.startswith("router/")]


def modules(page: str, mark: str) -> list[str]:
    """What the table behind a mark names."""
    table = PAGES[page].read_text(encoding="utf-8").partition(f"<!-- {mark} -->")[2].strip().partition("\n\n")[0]
    return [f"router/{name}" for name in re.findall(r"^\| [\d ]*\| `([\w/]+\.py)`", table, re.MULTILINE)]


def is_passed(named: list[str], entered: list[str]) -> bool:
    """Whether the named modules were entered in their order, with or without others between them."""
    rest = iter(entered)
    return all(name in rest for name in named)


@pytest.mark.parametrize(
    ("page", "mark", "first", "count"),
    [
        ("walk-of-a-message", "there", "router/net/poller.py", 15),
        ("walk-of-a-message", "back", "router/net/poller.py", 7),
        ("walk-of-an-update", "lost", "router/net/pump.py", 19),
    ],
)
def test_a_walk_passes_the_modules_of_its_page_in_their_order(
    rounds: list[list[str]], page: str, mark: str, first: str, count: int
) -> None:
    named = modules(page, mark)
    assert named[0] == first
    assert len(named) == count
    assert any(is_passed(named, entered) for entered in rounds), named


def test_the_architecture_says_how_many_modules_a_message_passes() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    assert f"a message passes {len(set(modules('walk-of-a-message', 'there')))} modules" in page


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_a_walk_names_are_there(page: str) -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGES[page].read_text(encoding="utf-8")))
    there = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    ends = {Path(name).name for name in there}
    assert {name for name in named if name not in there and ("/" in name or name not in ends)} == set()


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_classes_that_a_picture_of_a_walk_names_are_there(picture: Path) -> None:
    bold = re.findall(r'font-weight="bold"[^>]*>([A-Z]\w+)<', picture.read_text(encoding="utf-8"))
    source = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert len(bold) > 3
    assert [name for name in bold if not re.search(rf"^class {name}\b", source, re.MULTILINE)] == []
