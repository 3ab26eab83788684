"""Findings of the loader and the checks: where, what was found, what was expected, what is nearest."""

from __future__ import annotations

import difflib
import enum
import json
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import attrs

Step = str | int
"""One step of a key path: a key, or a place in a list counted from 0."""

MOST_COMPARED: Final = 5
"""Words of equal likeness among which that with the nearest characters is taken: of versions the nearest one."""
MOST_HINTS: Final = 20
"""Maximum number of faults of one kind for which the nearest of all names of a mesh is looked for: that takes long."""
MOST_SHOWN: Final = 255
"""Maximum number of characters of a name that is shown whole, the longest that an id may have."""
FIRST_SHOWN: Final = 57
"""Number of characters that are shown of a longer name, its first ones."""
_PLAIN_KEY = re.compile(r"[\w-]+")
_LONG_NAME: Final = re.compile(rf"`(?!amqp-mesh )([^`]{{{MOST_SHOWN + 1},}})`")
"""Pattern of a long name in an error, but not of a command, which is to be copied."""
_MAGIC: Final = {
    b"\x1f\x8b": "it is compressed (gzip)",
    b"PK\x03\x04": "it is compressed (zip)",
    b"BZh": "it is compressed (bzip2)",
    b"\xfd7zXZ\x00": "it is compressed (xz)",
    b"\x28\xb5\x2f\xfd": "it is compressed (Zstandard)",
    b"\xff\xfe": "it is UTF-16",
    b"\xfe\xff": "it is UTF-16",
    b"PAR1": "it is Parquet",
}
"""Kinds of files that are no UTF-8, by their first bytes."""


def _with_short_names(text: str) -> str:
    return _LONG_NAME.sub(lambda found: f"`{found[1][:FIRST_SHOWN]}...`", text)


def _unless_long(text: str | None) -> str | None:
    return None if text is not None and len(text) > MOST_SHOWN else text


class Severity(enum.StrEnum):
    """Whether the settings can be used as they are."""

    ERROR = "error"
    WARNING = "warning"


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that is wrong, or looks wrong, with the settings."""

    severity: Severity
    file: str | None = None
    """Path of the file as the operator gave it; None for settings that come from no file."""
    line: int | None = None
    """Counted from 1."""
    key: str = ""
    """Key path, for instance `routers.A.listeners[0].port`; empty for the whole file."""
    message: str = attrs.field(converter=_with_short_names)
    """The fault that was found."""
    expected: str = attrs.field(default="", converter=_with_short_names)
    """The values that may stand there; empty where the message says it."""
    nearest: str | None = attrs.field(default=None, converter=_unless_long)
    """The right key or value most like the one found."""

    @property
    def place(self) -> str:
        """File and line, as far as they are known: `mesh.yaml:7`."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)

    def __str__(self) -> str:
        """One line in the manner of compilers, so that editors can jump to the place."""
        head = f"{self.place}: " if self.place else ""
        key = f"{self.key}: " if self.key else ""
        expected = f"; expected {self.expected}" if self.expected else ""
        nearest = f"; did you mean `{self.nearest}`?" if self.nearest is not None else ""
        return f"{head}{self.severity}: {key}{self.message}{expected}{nearest}"


def not_utf8(file: str | None, error: UnicodeDecodeError, *, lines_before: int = 0) -> Finding:
    """Tell where a file is no UTF-8.

    Args:
        file: as the operator gave it.
        error: of decoding the file, or a piece of it.
        lines_before: lines of the file that end before that piece.
    """
    what = next((words for magic, words in _MAGIC.items() if error.object.startswith(magic)), None)
    if what is not None and not lines_before:
        expected = "the file that is in it" if "compressed" in what else "a file saved as UTF-8"
        message = f"cannot be read: {what}"
        return Finding(severity=Severity.ERROR, file=file, message=message, expected=expected)
    return Finding(
        severity=Severity.ERROR,
        file=file,
        line=lines_before + error.object.count(b"\n", 0, error.start) + 1,
        message=f"cannot be read: byte {error.object[error.start]:#04x} is not UTF-8",
        expected="a file saved as UTF-8",
    )


class SettingsError(Exception):
    """A file, or one router of it, cannot be used; `findings` has everything that is wrong with it."""

    is_of_input: ClassVar[bool] = True
    """Whether what was given is at fault; else what was to be done with it has failed."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


def has_errors(findings: Iterable[Finding]) -> bool:
    """Whether one of them forbids the use of the settings."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, in the order of files and lines."""
    once = dict.fromkeys(findings)
    return tuple(sorted(once, key=lambda it: (it.file or "", it.line or 0, it.key, it.severity, it.message)))


def key_path(steps: Sequence[Step]) -> str:
    """Steps as operators write them: `routers.A.listeners[0]`; unusual keys are put in quotes."""
    parts: list[str] = []
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            shown = step if len(step) <= MOST_SHOWN else f"{step[:FIRST_SHOWN]}..."
            parts.append(("." if parts else "") + (shown if _PLAIN_KEY.fullmatch(step) else json.dumps(shown)))
    return "".join(parts)


def nearest(found: str, known: Iterable[str]) -> str | None:
    """The known word most like the one found, case and `-` or `_` apart; None if none is like it."""
    by_folded: dict[str, str] = {}
    for word in known:
        by_folded.setdefault(_folded(word), word)
    word = _folded(found)
    close = difflib.get_close_matches(word, list(by_folded), n=MOST_COMPARED, cutoff=0.6)
    if not close:
        return None
    matcher = difflib.SequenceMatcher(b=word)

    def likeness(other: str) -> tuple[float, int]:
        matcher.set_seq1(other)
        return matcher.ratio(), -sum(abs(ord(one) - ord(two)) for one, two in zip(word, other, strict=False))

    return by_folded[max((other for other in by_folded if other in close), key=likeness)]


def _folded(word: str) -> str:
    return word.casefold().replace("_", "-")
