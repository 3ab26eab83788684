"""Each short text that users meet by itself, in a list of options, columns or metrics, can be read by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import click
import pytest

from mesh_config import models
from router.cli import main
from router.management.metrics import SPECS
from router.management.schema import TYPES
from router.whatif.pipeline.table_layouts import LAYOUTS

LOGS = Path(__file__).parent.parent / "docs" / "reference" / "logs.md"
LEANING = re.compile(
    r"(Of|The same|As|So many|So much|And|Those|Their|Them|Whether (that|it)|Why|How often|In each|Most|Least)\b"
    r"|With (?!-|`|credit:)|\.\.\.|[a-z]+ |\W(?<!`)"
)
"""How a text begins that needs the one before it, or a question that nobody has asked."""
WORDS = re.compile(
    r"\b(so many|so much|for so long|alone[.;:,)]|alone$|of late|lose each other|who asks|as above|likewise|in between"
    r"|the mesh as it is|mesh of now)"
)
"""Words that say which thing is meant only to who knows."""


def _help_texts() -> Iterator[tuple[str, str]]:
    def of(command: click.Command, path: str) -> Iterator[tuple[str, str]]:
        yield path, command.help or ""
        yield f"{path} (short)", command.short_help or command.get_short_help_str(200)
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"{path} {option.opts[-1]}", option.help or ""
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                found = command.get_command(click.Context(command), name)
                assert found is not None
                yield from of(found, f"{path} {name}")

    yield from of(main, "amqp-mesh")


def _metric_texts() -> Iterator[tuple[str, str]]:
    for name, spec in SPECS.items():
        yield name, spec.doc


def _schema_texts() -> Iterator[tuple[str, str]]:
    for entity in TYPES.values():
        yield entity.name, entity.doc
        for name, attribute in entity.attributes.items():
            yield f"{entity.name} {name}", attribute.doc


def _setting_texts() -> Iterator[tuple[str, str]]:
    for kind in vars(models).values():
        if isinstance(kind, type) and attrs.has(kind):
            for field in attrs.fields(kind):
                if doc := field.metadata.get("doc"):
                    yield f"{kind.__name__} {field.name}", doc


def _column_texts() -> Iterator[tuple[str, str]]:
    for layout in LAYOUTS.values():
        yield layout.name, layout.doc
        for column in layout.columns:
            yield f"{layout.name} {column.name}", column.doc


SOURCES = {
    "help": (_help_texts, 300),
    "metrics": (_metric_texts, 50),
    "schema": (_schema_texts, 250),
    "settings": (_setting_texts, 100),
    "columns": (_column_texts, 150),
}
"""Where texts come from, and how many there are at least."""


@pytest.mark.parametrize("source", SOURCES)
def test_each_text_can_be_read_by_itself(source: str) -> None:
    texts, least = SOURCES[source]
    found = list(texts())
    assert len(found) >= least
    leaning = [f"{where}: {text}" for where, text in found if not text or LEANING.match(text) or WORDS.search(text)]
    assert not leaning, "\n".join(leaning)
