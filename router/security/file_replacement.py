"""Replacement of a file: whoever reads it meanwhile, or after a full disk, has the old one or the new one, whole."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def replace_file(path: str, text: str, *, mode: int) -> None:
    """Write *text* to a file, in UTF-8, by another one that takes its place.

    What is there and no regular file, such as a terminal or a FIFO, is written to as it is.

    Args:
        path: of the file; where it is a link, that to which it leads is replaced.
        text: all that it is to have.
        mode: permissions of a new file; one that is there keeps its own, and its owner.
    Raises:
        OSError: it cannot be written, and is as it was.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    owner = target.stat() if target.exists() else None
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode if owner is None else 0o600)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if owner is not None:
                os.fchmod(file.fileno(), owner.st_mode & 0o777)
                if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
