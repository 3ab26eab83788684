"""Files that are replaced: what cannot be written leaves what was there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from router.security.file_replacement import replace_file


def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mesh.yaml"
    path.write_text("old", encoding="utf-8")

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(str(path), "new", mode=0o666)
    assert path.read_text(encoding="utf-8") == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_keeps_its_permissions_and_a_link_its_place(tmp_path: Path) -> None:
    path, link = tmp_path / "mesh.yaml", tmp_path / "link"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    link.symlink_to(path)
    replace_file(str(link), "new", mode=0o666)
    assert link.is_symlink()
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_new_file_has_the_permissions_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "users"
    replace_file(str(path), "new", mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_regular_file_is_written_to_and_stays(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(str(fifo), "new", mode=0o666)
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert fifo.is_fifo()
