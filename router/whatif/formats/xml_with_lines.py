"""XML to elements that know their line. Entities are refused: a few of them blow up to gigabytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.parsers import expat

import attrs

from router.whatif.formats.input_file import FileFindings

MAX_DEPTH: Final = 100
MAX_ELEMENTS: Final = 5_000_000


@attrs.define(kw_only=True)
class Element:
    """An element; names are without their namespace."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    """All that stands directly in it, without blanks around."""
    children: list[Element] = attrs.field(factory=list)

    def all(self, tag: str) -> Iterator[Element]:
        """The children of that name."""
        return (child for child in self.children if child.tag == tag)

    def first(self, *tags: str) -> Element | None:
        """The first child of the first name, the first child in it of the second, and so on; None if there is none."""
        found: Element | None = self
        for tag in tags:
            found = next(found.all(tag), None) if found is not None else None
        return found


class _RefusedError(Exception):
    """What no reader of ours takes."""


class _Reading:
    """One pass over a text."""

    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._texts: list[list[str]] = []
        self._count = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._entity

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= MAX_DEPTH:
            raise _RefusedError(f"nested too deep; expected at most {MAX_DEPTH} levels")
        if self._count > MAX_ELEMENTS:
            raise _RefusedError(f"too many elements; expected at most {MAX_ELEMENTS}")
        element = Element(
            tag=name.rpartition(" ")[2],
            attributes={key.rpartition(" ")[2]: value for key, value in attributes.items()},
            line=self.parser.CurrentLineNumber,
        )
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)
        self._texts.append([])

    def _end(self, _: str) -> None:
        self._open.pop().text = "".join(self._texts.pop()).strip()

    def _data(self, text: str) -> None:
        if self._texts:
            self._texts[-1].append(text)

    def _entity(self, *_: object) -> None:
        raise _RefusedError("an entity is declared; expected none")


def read(text: str, faults: FileFindings) -> Element:
    """The root element of *text*. Raises: SettingsError."""
    reading = _Reading()
    try:
        reading.parser.Parse(text, True)
    except expat.ExpatError as error:
        faults.fail(f"not readable as XML: {expat.ErrorString(error.code)}", line=error.lineno)
    except _RefusedError as error:
        message, _, expected = str(error).partition("; expected ")
        faults.fail(message, line=reading.parser.CurrentLineNumber, expected=expected)
    assert reading.root is not None, "a document without an element is an ExpatError"
    return reading.root
