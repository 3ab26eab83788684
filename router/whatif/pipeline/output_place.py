"""Places that are to be written, checked before any work is begun for them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from router.whatif.pipeline.run_staging import run_error


def check_output_place(out: Path, *, is_whole: bool = True) -> None:
    """Check whether a folder, or file, can be made at a place, by making one beside it that goes at once.

    Args:
        out: the place.
        is_whole: whether it appears as a whole, and so is made beside its place; else files are added to a folder.
    Raises: RunError when nothing can be written there.
    """
    folder = out.absolute().parent if is_whole else out.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent  # those that aren't there are made
    expected = "a place in a folder that can be written"
    if not folder.is_dir():
        raise run_error(out, f"{folder} is a file", expected)
    try:
        with tempfile.TemporaryDirectory(prefix=".amqp-mesh-", dir=folder):
            pass
    except OSError as error:
        raise run_error(out, f"nothing can be written into {folder}: {error.strerror or error}", expected) from error
