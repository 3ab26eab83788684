"""JSON to values of which each mapping knows its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from router.whatif.formats.input_file import FileFindings

SPACE: Final = " \t\n\r"
"""Characters that JSON allows between its words."""
EXCERPT: Final = 20
"""Characters shown of where a text stops being JSON."""
_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\n]')
"""Texts, so that what stands in them is passed over; borders of mappings; ends of lines."""


class JsonObject(dict[str, Any]):
    """A mapping of a file."""

    line: int = 0
    """Line at which it begins, from 1."""


def read(text: str, faults: FileFindings) -> Any:
    """The one value of *text*; its mappings are JsonObjects. Raises: SettingsError."""
    lines = _lines_of_mappings(text)

    def mapping(pairs: list[tuple[str, Any]]) -> JsonObject:
        # The decoder calls this where a mapping ends, so in the order of `lines`.
        found = JsonObject(pairs)
        found.line = next(lines)
        if len(found) != len(pairs):
            seen = set()
            for name, _ in pairs:
                if name in seen:
                    faults.fail(f"key `{name}` is given twice", line=found.line, expected="each key once")
                seen.add(name)
        return found

    def constant(name: str) -> None:
        faults.fail(f"not readable as JSON: {name} is no number")

    def whole_number(digits: str) -> int:
        try:
            return int(digits)
        except ValueError:
            faults.fail(f"not readable as JSON: a number of {len(digits)} digits")
            raise

    try:
        return json.loads(text, object_pairs_hook=mapping, parse_constant=constant, parse_int=whole_number)
    except json.JSONDecodeError as error:
        # In our own words, and at a place of our own: both differ by the version of Python.
        place = _offending_place(text, error.pos)
        faults.fail(f"not readable as JSON {_told(text, place)}", line=text.count("\n", 0, place) + 1)
    except RecursionError:
        faults.fail("nested too deep")


def _lines_of_mappings(text: str) -> Iterator[int]:
    """The line in which each mapping begins, in the order in which they end."""
    line, begun = 1, []
    for match in _MARKS.finditer(text):
        mark = match[0]
        if mark == "\n":
            line += 1
        elif mark == "{":
            begun.append(line)
        elif mark == "}":
            yield begun.pop()


def _offending_place(text: str, place: int) -> int:
    """The bracket after a comma that should not be there, which some versions of Python name, others the comma."""
    before, after = text[:place].rstrip(SPACE), text[place + 1 :].lstrip(SPACE)
    if text[place : place + 1] == "," and before[-1:] not in ("", "[", "{", ",", ":") and after[:1] in ("]", "}"):
        return len(text) - len(after)
    return place


def _told(text: str, place: int) -> str:
    if place >= len(text):
        return "to its end: it ends too early"
    rest = text[place : place + EXCERPT].partition("\n")[0]
    return f"from `{rest}` on" if rest else "beyond the end of this line"
