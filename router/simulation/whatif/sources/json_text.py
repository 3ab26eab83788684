"""JSON to values of which each mapping knows its line."""

from __future__ import annotations

import json
import json.scanner
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn

from router.simulation.whatif.sources.reading import Faults


class JsonObject(dict[str, Any]):
    """A mapping of a file."""

    line: int = 0
    """Where it begins, from 1."""


class _Decoder(json.JSONDecoder):
    """The standard decoder, its mappings made by us."""

    def __init__(self, text: str) -> None:
        super().__init__(parse_constant=_refuse_constant)
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


def read(text: str, faults: Faults) -> Any:
    """The one value of *text*; its mappings are JsonObjects. Raises: SettingsError."""
    try:
        return _Decoder(text).decode(text)
    except json.JSONDecodeError as error:
        faults.fail(f"not readable as JSON: {error.msg}", line=error.lineno)
    except _TwiceError as error:
        faults.fail(f"key `{error.name}` is given twice", line=error.line, expected="each key once")
    except RecursionError:
        faults.fail("nested too deep")
    except ValueError as error:  # digits without end, NaN
        faults.fail(f"not readable as JSON: {error}")
    raise AssertionError("fail() raises")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
