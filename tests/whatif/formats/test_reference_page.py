"""The page about files is the one that is made from the program, and its examples are right."""

from __future__ import annotations

import re
from pathlib import Path

from mesh_config.generators import generate
from mesh_config.render import render_mesh
from router.whatif.formats.importer import import_model
from router.whatif.formats.reference_page import reference_text

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "whatif-files.md"


def test_the_page_is_the_one_made_from_the_fields() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_text()


def test_the_examples_of_the_page_can_be_imported(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    mesh, details, demands = tmp_path / "mesh.yaml", tmp_path / "groups.yaml", tmp_path / "demands.csv"
    mesh.write_text(render_mesh(generate("ring", 4)))
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    details.write_text(example)
    (table,) = re.findall(r"^```text\n(src,.*?)^```$", page, re.MULTILINE | re.DOTALL)
    demands.write_text(table)
    model, warnings = import_model(mesh, details=[details], demands=demands)
    assert warnings == ()
    assert (len(model.groups), len(model.demands), len(model.subscribers)) == (2, 2, 1)
