"""Content made of files that may be replaced while a router runs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from router.core.errors import LocalError

Content = TypeVar("Content")
RETRY_S: Final = 10.0
"""Time after which files that could not be used are read again though they look the same, seconds: the fault may have
been elsewhere, such as too few descriptors."""


class ValueFromFiles(Generic[Content]):
    """Content of files, as they were when they were read last; while they can't be read, as it was before.

    `refresh` blocks, and may be called in a thread: `content` is another one at once.
    """

    def __init__(self, files: Sequence[str | None], read: Callable[[], Content], first: Content | None = None) -> None:
        """Read the files.

        Args:
            files: their paths, None where there is none.
            read: makes the content of them; raises LocalError when they cannot be used.
            first: content until they are read, which is not done here then.
        Raises:
            LocalError: a file cannot be used; says which and why.
        """
        self._files = tuple(file for file in files if file is not None)
        self._read = read
        self.problem = ""
        """Fault of the files as they are; empty when there is none."""
        self._seen: tuple[object, ...] = ()
        self._retry_at = math.inf
        self.content: Content
        if first is not None:
            self.content = first
            return
        self._seen = self._marks()
        self.content = read()

    @property
    def seen(self) -> tuple[object, ...]:
        """Each file with its mark as it was when it was read last, another one once the file is."""
        return self._seen

    def refresh(self, now: float | None = None) -> str:
        """Read them again if they are others, or could not be used `RETRY_S` ago.

        Args:
            now: seconds, monotonic; None: as it is.
        Returns: what is wrong with them; empty when nothing is, or nothing has changed.
        """
        now = time.monotonic() if now is None else now
        marks = self._marks()
        is_other = marks != self._seen
        if not is_other and now < self._retry_at:
            return ""
        self._seen = marks
        before = self.problem
        try:
            self.content = self._read()
            self.problem, self._retry_at = "", math.inf
        except LocalError as error:
            self.problem, self._retry_at = str(error), now + RETRY_S
        return self.problem if is_other or self.problem != before else ""

    def _marks(self) -> tuple[object, ...]:
        return tuple((file, _mark(file)) for file in self._files)


def _mark(file: str) -> tuple[int, ...] | None:
    """Mark of a file, another one when the file is, or who may read it; None when it can't be looked at."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    rights = (found.st_mode, found.st_uid, found.st_gid, found.st_ctime_ns)
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size, *rights)
