"""The folder of a run on whatever file system it lies: what makes a run asks this one, and names no path.

Names are relative to the folder, with `/` between their parts; the empty one is the folder itself.
"""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from pathlib import Path, PurePosixPath
from typing import Final

from router.whatif.pipeline.atomic_files import write_atomically
from router.whatif.pipeline.table_files import SUFFIX, address_for_spark

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_elsewhere(place: object) -> bool:
    """Whether a place is named by a scheme, as `hdfs://name/run` is, and so by a file system of Hadoop's client."""
    return _SCHEME.match(str(place)) is not None


class RunStorage(ABC):
    """A folder, its files and its other folders."""

    @abstractmethod
    def __str__(self) -> str:
        """The place, as errors name it."""

    @abstractmethod
    def address(self, name: str, *, is_read: bool = True) -> str:
        """Name a file or folder as Spark takes it. *is_read*: whether Spark reads it, and understands patterns."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether a file or folder is there."""

    @abstractmethod
    def children(self, name: str) -> list[str]:
        """Names of what is in a folder, sorted; none where it isn't there."""

    @abstractmethod
    def files(self, name: str, suffix: str = SUFFIX) -> list[str]:
        """Files of tables, or with another suffix, in a folder and in all below it, relative to the run's, sorted."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Read a small file."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Write a small file, which appears whole or not at all."""

    @abstractmethod
    def rename_file(self, name: str, other: str) -> None:
        """Give a file another name, which nothing has. On stores of objects it is copied."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens where nothing is."""


class LocalStorage(RunStorage):
    """A folder that this machine sees, and all of Spark's under the same path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return str(self.folder)

    def address(self, name: str, *, is_read: bool = True) -> str:
        """See `RunStorage`."""
        return address_for_spark(self.folder / name, is_read=is_read)

    def exists(self, name: str) -> bool:
        """See `RunStorage`."""
        return (self.folder / name).exists()

    def children(self, name: str) -> list[str]:
        """See `RunStorage`."""
        place = self.folder / name
        return sorted(path.name for path in place.iterdir()) if place.is_dir() else []

    def files(self, name: str, suffix: str = SUFFIX) -> list[str]:
        """See `RunStorage`."""
        found = (self.folder / name).rglob(f"*{suffix}")
        return sorted(str(PurePosixPath(path.relative_to(self.folder))) for path in found)

    def read(self, name: str) -> bytes:
        """See `RunStorage`."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """See `RunStorage`."""
        write_atomically(self.folder / name, data)

    def rename_file(self, name: str, other: str) -> None:
        """See `RunStorage`."""
        place = self.folder / name
        place.rename(self.folder / other)
        place.with_name(f".{place.name}.crc").unlink(missing_ok=True)  # Hadoop's checksums

    def remove(self, name: str) -> None:
        """See `RunStorage`."""
        place = self.folder / name
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
