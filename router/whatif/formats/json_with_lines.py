"""JSON to values of which each mapping knows its line."""

from __future__ import annotations

import json
import json.scanner
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, Final, NoReturn

from router.whatif.formats.input_file import FileFindings

SPACE: Final = " \t\n\r"
"""What JSON allows between its words."""
EXCERPT: Final = 20
"""Characters shown of where a text stops being JSON."""


class JsonObject(dict[str, Any]):
    """A mapping of a file."""

    line: int = 0
    """Where it begins, from 1."""


class _Decoder(json.JSONDecoder):
    """The standard decoder, its mappings made by us."""

    def __init__(self, text: str) -> None:
        super().__init__(parse_constant=_refuse_constant, parse_int=_whole_number)
        self._newlines = [place for place, character in enumerate(text) if character == "\n"]
        # The interpreted scanner: the one in C makes mappings itself, and tells nobody where they begin.
        self.parse_object = self._object
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _object(
        self, start: tuple[str, int], strict: bool, scan_once: Callable[..., Any], *_: object
    ) -> tuple[JsonObject, int]:
        line = bisect_right(self._newlines, start[1] - 1) + 1

        def whole(pairs: list[tuple[str, Any]]) -> JsonObject:
            found = JsonObject(pairs)
            found.line = line
            if len(found) != len(pairs):
                names = [name for name, _ in pairs]
                twice = next(name for name in names if names.count(name) > 1)
                raise _TwiceError(twice, line)
            return found

        return json.decoder.JSONObject(start, strict, scan_once, None, whole)  # type: ignore[attr-defined, no-any-return]


class _TwiceError(ValueError):
    """A mapping has a key twice."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(name)
        self.name = name
        self.line = line


class _NumberError(ValueError):
    """Something stands for a number that can't be one."""


def read(text: str, faults: FileFindings) -> Any:
    """The one value of *text*; its mappings are JsonObjects. Raises: SettingsError."""
    try:
        return _Decoder(text).decode(text)
    except json.JSONDecodeError as error:
        # In our own words, and at a place of our own: both differ by the version of Python.
        place = _offending_place(text, error.pos)
        faults.fail(f"not readable as JSON {_told(text, place)}", line=text.count("\n", 0, place) + 1)
    except _TwiceError as error:
        faults.fail(f"key `{error.name}` is given twice", line=error.line, expected="each key once")
    except RecursionError:
        faults.fail("nested too deep")
    except _NumberError as error:
        faults.fail(f"not readable as JSON: {error}")
    raise AssertionError("fail() raises")


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


def _refuse_constant(name: str) -> NoReturn:
    raise _NumberError(f"{name} is no number")


def _whole_number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise _NumberError(f"a number of {len(digits)} digits") from None
