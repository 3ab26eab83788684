"""Files that appear whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from router.whatif.pipeline.chunk_evaluator import OutputFile


@contextmanager
def whole_file(target: Path, *, folder: Path | None = None) -> Iterator[Path]:
    """Let a file be written that appears whole or not at all.

    Args:
        target: path of the file; what is there is replaced.
        folder: where it is until it is whole, on the same file system; None: that of *target*.
    Returns: path at which it is written.
    Raises: OSError, which names *target* where it is about that; nothing is left of it then.
    """
    beside = (folder or target.parent) / f".{secrets.token_hex(8)}.tmp"
    try:
        yield beside
        beside.replace(target)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and (error.filename is None or Path(error.filename) == beside):
            error.filename = str(target)  # a full disk names none
        raise


def write_atomically(target: Path, data: bytes, *, folder: Path | None = None) -> None:
    """Write a file that appears whole or not at all, see `whole_file`.

    Args:
        target: path of the file.
        data: all of it.
        folder: where it is until it is whole.
    Raises: OSError
    """
    with whole_file(target, folder=folder) as beside:
        beside.write_bytes(data)


def write_run_files(folder: Path, pieces: Iterable[OutputFile]) -> None:
    """Write files in their order, each as a whole or not at all."""
    for piece in pieces:
        target = folder / piece.name
        target.parent.mkdir(exist_ok=True)
        write_atomically(target, piece.data, folder=folder)
