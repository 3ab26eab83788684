"""Folders that take the place of others as a whole."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def place_of(target: Path) -> Path:
    """Find the place that *target* names: of a symbolic link the one it leads to, so that the link stays.

    Raises: OSError when the link can't be followed, such as one that leads to itself.
    """
    if not target.is_symlink():
        return target
    with suppress(FileNotFoundError, NotADirectoryError):  # it may lead to what is still to be made
        target.stat()
    return Path(os.path.realpath(target))


def replace_folder(new: Path, target: Path) -> None:
    """Give a folder its place; what is there is removed, and put back when the new one can't have its place.

    Args:
        new: the folder, on the same file system; it is gone afterwards.
        target: its place, no link: see `place_of`. What earlier, interrupted replacements have left beside it goes too.
    Raises: OSError
    """
    place_folder(new, target)
    remove_replaced(target)


def place_folder(new: Path, target: Path) -> None:
    """Give a folder its place; what is there has another name then, and gets its own back when this fails.

    Args:
        new: the folder, on the same file system; it is gone afterwards.
        target: its place, no link: see `place_of`.
    Raises: OSError
    """
    old = _name_for_removal(target)
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def put_aside(folder: Path, target: Path) -> Path:
    """Give a folder that is to be removed another name, so that nobody begins a run in one of which parts are gone.

    Args:
        folder: it is gone afterwards.
        target: the place beside which it goes, from where `remove_replaced` removes it at the latest.
    Returns: its new place.
    Raises: OSError
    """
    aside = _name_for_removal(target)
    folder.rename(aside)
    return aside


def _name_for_removal(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")


def remove_replaced(target: Path) -> None:
    """Remove what has had the place *target*, as far as that can be done."""
    for rest in target.parent.glob(f".{glob.escape(target.name)}.*.old"):
        shutil.rmtree(rest, ignore_errors=True)
