"""Places that are to be written, checked before any work is begun for them."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from router.whatif.formats.folder_replacement import place_of
from router.whatif.pipeline.run_staging import run_error

OF_FILE_SYSTEMS: Final = "lost+found"
"""Folder at the root of a file system, where whoever mounts one for this has put nothing."""


def check_output_place(out: Path, *, is_whole: bool = True) -> None:
    """Check whether a folder, or file, can be made at a place, by making one beside it that goes at once.

    Args:
        out: the place.
        is_whole: whether it appears as a whole, and so is made beside its place; else files are added to a folder.
    Raises: RunError when nothing can be written there.
    """
    expected = "a place in a folder that can be written"
    try:
        folder = place_of(out).absolute().parent if is_whole else place_of(out).absolute()
    except OSError as error:
        raise run_error(out, f"nothing can be written there: {error.strerror or error}", expected) from error
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent  # those that aren't there are made
    if not folder.is_dir():
        raise run_error(out, f"{folder} is a file", expected)
    try:
        with tempfile.TemporaryDirectory(prefix=".amqp-mesh-", dir=folder):
            pass
    except OSError as error:
        raise run_error(out, f"nothing can be written into {folder}: {error.strerror or error}", expected) from error


def check_own_folder(folder: Path, marks: Collection[str], early: Collection[str], expected: str) -> None:
    """Check whether files may be added to a folder: it is new, empty, or has what was written there before.

    Args:
        folder: the place, with no file in its way.
        marks: names of what tells the folder by itself.
        early: names of what is there before any of these, and tells it where nothing else is.
        expected: the folders that may be given, in words.
    Raises: RunError when something else is in it.
    """
    if not folder.is_dir():
        return
    names = {path.name for path in folder.iterdir() if path.name != OF_FILE_SYSTEMS and not path.name.startswith(".")}
    if names.isdisjoint(marks) and not names <= set(early):
        raise run_error(folder, "it exists and has other contents", expected)
