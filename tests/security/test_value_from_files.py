"""Files that may be replaced while a router runs: when they are read again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from router.core.errors import LocalError
from router.security.value_from_files import RETRY_S, ValueFromFiles


def test_a_file_that_may_be_read_again_is_read(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)

    def read() -> str:
        if not file.stat().st_mode & stat.S_IRGRP:
            raise LocalError("may not be read")
        return file.read_text(encoding="utf-8")

    content = ValueFromFiles([str(file)], read)
    file.write_text("new key", encoding="utf-8")
    file.chmod(0o600)
    assert (content.refresh(0.0), content.problem) == ("may not be read", "may not be read")
    file.chmod(0o640)
    assert (content.refresh(0.0), content.problem) == ("", "")
    assert content.content == "new key"


def test_what_could_not_be_read_is_tried_again_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("old", encoding="utf-8")
    readings: list[str] = []
    faults = ["", "too many open files", "too many open files", ""]

    def read() -> str:
        fault = faults[len(readings)]
        readings.append(fault)
        if fault:
            raise LocalError(fault)
        return file.read_text(encoding="utf-8")

    content = ValueFromFiles([str(file)], read)
    file.write_text("another", encoding="utf-8")
    assert content.refresh(0.0) == "too many open files"
    assert content.refresh(0.9 * RETRY_S) == ""
    assert len(readings) == 2
    assert (content.refresh(RETRY_S), content.problem) == ("", "too many open files"), "it is said once"
    assert content.refresh(1.9 * RETRY_S) == ""
    assert content.content == "old"
    assert (content.refresh(2 * RETRY_S), content.problem) == ("", "")
    assert content.content == "another"
    content.refresh(100 * RETRY_S)
    assert len(readings) == 4, "what was read is not read again"


@pytest.mark.parametrize("now", [0.0, RETRY_S, None])
def test_what_has_not_changed_is_not_read_again(tmp_path: Path, now: float | None) -> None:
    file = tmp_path / "key"
    file.write_text("x", encoding="utf-8")
    content = ValueFromFiles([str(file)], object)
    first = content.content
    assert content.refresh(now) == ""
    assert content.content is first
