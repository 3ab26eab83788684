"""Base of all readers: files of a bounded size, and findings collected until the whole file has been looked at."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs

from mesh_config.findings import Finding, SettingsError, Severity, Step, has_errors, in_order, not_utf8
from mesh_config.value_rules import SettingsClass, expectation, fault_of, field_of, found_words, kind_of
from mesh_config.yaml_text import Place

MAX_TEXT_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of YAML, JSON, XML and SNDlib text, bytes: they are kept in memory as trees, at ten to thirty times
their size."""
MAX_FINDINGS: Final = 100
"""Errors told of one file; what is beyond them is counted."""
FilePath = str | os.PathLike[str]


class FileFindings:
    """Findings about one file."""

    def __init__(self, file: FilePath) -> None:
        self.file = os.fspath(file)
        self._findings: list[Finding] = []

    def add(
        self,
        message: str,
        *,
        line: int | None = None,
        key: tuple[Step, ...] = (),
        expected: str = "",
        nearest: str | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Note that something is wrong at a line (from 1), or at a key path, or both."""
        place = Place(file=self.file, line=line, path=key)
        self._findings.append(place.finding(message, expected=expected, nearest=nearest, severity=severity))

    def warn(self, message: str, *, line: int | None = None, key: tuple[Step, ...] = (), expected: str = "") -> None:
        """Note that something looks wrong, but the file can be used."""
        self.add(message, line=line, key=key, expected=expected, severity=Severity.WARNING)

    def extend(self, findings: Iterable[Finding]) -> None:
        """Findings of others about the same file."""
        self._findings.extend(findings)

    def fail(
        self, message: str, *, line: int | None = None, expected: str = "", nearest: str | None = None
    ) -> NoReturn:
        """Give up the file: something is so wrong that the rest of it can't be looked at.

        Raises: SettingsError, always.
        """
        self.add(message, line=line, expected=expected, nearest=nearest)
        raise SettingsError(_first(in_order(self._findings)))

    def check(self) -> tuple[Finding, ...]:
        """The warnings, in order. Raises: SettingsError with all findings when there is an error among them."""
        found = in_order(self._findings)
        if has_errors(found):
            raise SettingsError(_first(found))
        return found

    def need_regular(self) -> None:
        """Give up what can be read only once, where it is read more often.

        Raises: SettingsError when the file is a pipe or a device.
        """
        path = Path(self.file)
        if path.exists() and not path.is_file() and not path.is_dir():  # a folder is told when it is read
            self.fail("a pipe or a device", expected="a regular file")

    def amount(self, text: object, *, line: int | None = None, key: tuple[Step, ...] = ()) -> float | None:
        """Any number that *text* is, finite; None, and a finding, when it is none."""
        value = number_of(text)
        if value is None:
            self.add(found_words(text), line=line, key=key, expected="a number")
        return value

    def number(
        self, text: object, cls: SettingsClass, field: str, *, line: int | None = None, key: tuple[Step, ...] = ()
    ) -> Any:
        """Read *text* as a field of a model's class, int or float as the field has it; None when it can't be.

        Args:
            text: a number, or text of one.
            cls: of the model.
            field: its name there.
            line: of the file, if there are lines.
            key: steps to it in the file.
        """
        attribute = field_of(cls, field)
        is_whole = kind_of(attribute.type).base is int
        value = number_of(text)
        # 10.0 is a whole number in files that have no others.
        if value is None or (is_whole and not value.is_integer()):
            self.add(found_words(text), line=line, key=(*key, field), expected=expectation(attribute))
            return None
        result = int(value) if is_whole else value
        fault = fault_of(attribute, result)
        if fault is None:
            return result
        self.add(fault.message, line=line, key=(*key, field), expected=fault.expected, nearest=fault.nearest)
        return None


def read_text(path: FilePath) -> str:
    """The text of a file.

    Raises: SettingsError when it can't be read, is too large, or is not UTF-8.
    """
    faults = FileFindings(path)
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_TEXT_BYTES + 1)
        if len(raw) > MAX_TEXT_BYTES:
            faults.fail("the file is too large", expected=f"at most {MAX_TEXT_BYTES // 1024 // 1024} MiB")
        return raw.decode("utf-8-sig")
    except OSError as error:
        faults.fail(f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        faults.extend([not_utf8(faults.file, error)])
        faults.check()
    raise AssertionError("a fault is raised")


def in_file(findings: Iterable[Finding], file: FilePath) -> tuple[Finding, ...]:
    """Findings that know no file, as findings about *file*."""
    return tuple(attrs.evolve(it, file=os.fspath(file)) if it.file is None else it for it in findings)


def number_of(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and "_" in value:
        return None  # Python's own idea of a number
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _first(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    if len(findings) <= MAX_FINDINGS:
        return findings
    rest = Finding(
        severity=Severity.ERROR,
        file=findings[0].file,
        message=f"{len(findings)} findings; the first {MAX_FINDINGS} are shown",
    )
    return (*findings[:MAX_FINDINGS], rest)
