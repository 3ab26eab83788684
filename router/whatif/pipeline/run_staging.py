"""The folder of a run while it is under way: beside its place, under another name, until everything is in it.

A chunk is done when the file of its scenarios is there, which is written last and appears whole or not at all, or when
the unit of work that it is in has been committed by Spark. So a run that was killed can be resumed, and what stands
under the final name is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from mesh_config.findings import Finding, SettingsError, Severity
from router.whatif.formats.folder_replacement import place_folder, place_of, put_aside, remove_replaced
from router.whatif.pipeline.aggregate import STAGE
from router.whatif.pipeline.atomic_files import write_atomically
from router.whatif.pipeline.resumable_units import LEFT, PLAYED, chunks_in_files, chunks_in_units, clear_uncommitted
from router.whatif.pipeline.run_storage import LocalStorage
from router.whatif.pipeline.table_layouts import RUN

IDENTITY: Final = "input.json"
LOCK: Final = "lock"
SPARK_LOG: Final = "spark.log"


class RunError(SettingsError):
    """A run that can't be begun, resumed or ended; `findings` has why."""


class RunExecutionError(RunError):
    """A run that failed on its way, of which nothing that was asked for is at fault."""

    is_of_input = False


def run_error(
    place: object | None,
    message: str,
    expected: str = "",
    *,
    key: str = "",
    near: str | None = None,
    kind: type[RunError] = RunError,
) -> RunError:
    """A RunError, or one of another kind, of one finding; *place* is a file or folder, *key* a field or variable."""
    file = None if place is None else str(place)
    finding = Finding(severity=Severity.ERROR, file=file, key=key, message=message, expected=expected, nearest=near)
    return kind([finding])


class LocalRunStaging:
    """The folder of a run that is under way.

    Args:
        out: where the run shall be in the end.
    """

    def __init__(self, out: Path) -> None:
        self.out = place_of(out)
        self.path = self.out.parent / f".{self.out.name}.partial"
        self.storage = LocalStorage(self.path)
        self._lock: IO[str] | None = None

    def open(self, identity: Mapping[str, object], *, is_resumed: bool) -> set[int]:
        """Make the folder, or take what an interrupted run has left.

        Args:
            identity: what the tables depend on, as JSON knows it.
            is_resumed: whether chunks that are there are kept.
        Returns: numbers of chunks that are done.
        Raises: RunError
        """
        self._check_place()
        self._lock = lock_folder(self.path, self.out)
        try:
            begin_or_resume(self.path, identity, is_resumed=is_resumed)
        except BaseException:
            self.close()
            raise
        for rest in self.path.glob("*.tmp"):
            rest.unlink()
        clear_uncommitted(self.storage)
        return self._done()

    @property
    def log(self) -> Path:
        """Log of Spark."""
        return self.path / SPARK_LOG

    def gather(self) -> None:
        """Have here what answers are made of, as it is."""

    def close(self) -> None:
        """Let others have the folder; where nothing is done it goes."""
        if self._lock is not None:
            # Else `finish` was interrupted when the folder had its name: the one that is there is another run's.
            if _is_lock_of(self.path, self._lock) and not self._done():
                shutil.rmtree(put_aside(self.path, self.out))
            self._unlock()

    def _done(self) -> set[int]:
        return chunks_in_files(self.path) | chunks_in_units(self.storage)

    def finish(self) -> None:
        """Everything is there: give the folder its name. A run that has that name is replaced."""
        for name in (*STAGE, PLAYED, LEFT):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for rest in self.path.glob("*.log"):
            rest.unlink()
        place_folder(self.path, self.out)
        # From here on another run may have made the folder anew, and even have replaced this one.
        for name in (IDENTITY, LOCK):
            (self.out / name).unlink(missing_ok=True)
        self._unlock()
        remove_replaced(self.out)

    def _unlock(self) -> None:
        assert self._lock is not None
        self._lock.close()
        self._lock = None

    def _check_place(self) -> None:
        if self.out.name in ("", ".."):  # `/`, `.`: in the end it could not be given its name
            raise run_error(self.out, "not a named folder", "a new folder, or a run to replace")
        if not self.out.exists():
            return
        if not self.out.is_dir():
            raise run_error(self.out, "it exists and is a file", "a new folder, or a run to replace")
        if any(self.out.iterdir()) and not (self.out / RUN.name).is_dir():
            raise run_error(self.out, "it exists and has other contents", "a new folder, or a run to replace")


def lock_folder(path: Path, out: object) -> IO[str]:
    """Make a folder for unfinished work, unless it is there, and lock it until the file that is returned is closed.

    Args:
        path: the folder.
        out: place of the result, named in errors.
    Raises: RunError when another process has it.
    """
    path.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(BlockingIOError, FileNotFoundError), contextlib.ExitStack() as kept:
        lock = kept.enter_context((path / LOCK).open("w", encoding="utf-8"))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Else it was locked after the process that had it renamed or removed the folder.
        if _is_lock_of(path, lock):
            kept.pop_all()
            return lock
    raise run_error(out, "another run is writing there", "another folder, or to wait until it ends")


def _is_lock_of(path: Path, lock: IO[str]) -> bool:
    """Whether an open file is the lock of a folder, not of one that had its name before."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), (path / LOCK).stat())
    except FileNotFoundError:
        return False


def begin_or_resume(path: Path, identity: Mapping[str, object], *, is_resumed: bool) -> None:
    """Keep what an interrupted run has left in a locked folder, if it is to go on, or remove it.

    Args:
        path: the folder.
        identity: what the results depend on, as JSON knows it.
        is_resumed: whether what is there is kept.
    Raises: RunError when what is kept differs in its identity.
    """
    file = path / IDENTITY
    if is_resumed and file.exists():
        check_identity(path, identity, json.loads(file.read_text(encoding="utf-8")))
        return
    for rest in path.iterdir():
        if rest.is_dir():
            shutil.rmtree(rest)
        elif rest.name != LOCK:
            rest.unlink()
    write_atomically(file, json.dumps(identity, sort_keys=True).encode())


def check_identity(place: object, wanted: Mapping[str, object], there: Mapping[str, object]) -> None:
    """Check whether a run that was interrupted is the one that shall go on.

    Args:
        place: of its folder.
        wanted: what the tables depend on.
        there: the same of the interrupted run, as JSON knows it.
    Raises: RunError
    """
    # What JSON makes of it: tuples are lists.
    plain = json.loads(json.dumps(wanted))
    differing = sorted(key for key in plain.keys() | there.keys() if plain.get(key) != there.get(key))
    if differing:
        raise run_error(
            place,
            f"the interrupted run differs in {', '.join(differing)}",
            "the same model and options, or a run without --resume",
        )
