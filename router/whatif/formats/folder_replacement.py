"""Folders that take the place of others as a whole."""

from __future__ import annotations

import glob
import secrets
import shutil
from pathlib import Path


def replace_folder(new: Path, target: Path) -> None:
    """Give a folder its place; what is there is removed, and put back when the new one can't have its place.

    Args:
        new: the folder, on the same file system; it is gone afterwards.
        target: its place. What earlier, interrupted replacements have left beside it is removed too.
    Raises: OSError
    """
    old = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    is_replaced = target.exists()
    if is_replaced:
        target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if is_replaced:
            old.rename(target)
        raise
    for rest in target.parent.glob(f".{glob.escape(target.name)}.*.old"):
        shutil.rmtree(rest, ignore_errors=True)
