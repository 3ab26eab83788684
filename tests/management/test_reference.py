"""The reference says what the schema says."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.management.reference import reference_text
from router.management.schema import EntityType
from tests.management.fakes import types

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "management.md"


def test_the_page_is_the_one_made_from_the_schema() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_text()


@pytest.mark.parametrize("kind", types(), ids=lambda kind: kind.short_name)
def test_every_attribute_stands_there(kind: EntityType) -> None:
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {kind.short_name}\n")[2].partition("\n## ")[0]
    assert section
    for attribute in kind.attributes.values():
        assert f"| `{attribute.name}` |" in section
        assert attribute.doc.endswith((".", "null.")), attribute.name
