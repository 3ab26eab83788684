"""The documentation says nothing that the program refutes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mesh_config
import router
from mesh_config.check import check_file

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
    assert check_file(file) == ()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_every_marked_deviation_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "deviations.md").read_text(encoding="utf-8")
    explained = re.findall(r"^## (DEV-\d+): ", page, re.MULTILINE)
    marked = {mark for path in SOURCES for mark in re.findall(r"DEV-\d+", path.read_text(encoding="utf-8"))}
    assert marked <= set(explained)
    assert [f"DEV-{number}" for number in range(1, len(explained) + 1)] == explained
