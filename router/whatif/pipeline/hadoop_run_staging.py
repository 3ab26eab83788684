"""A run whose folder is on a file system of Hadoop's client: made there by Spark, copied from there to be asked.

The executors write all that grows with the number of scenarios. What the driver adds, it makes in a folder of this
machine of copies of the tables that answers are made of, and puts beside them in the end; then the folder gets its
name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from router.whatif.pipeline.aggregate import STAGE
from router.whatif.pipeline.hadoop_storage import HadoopStorage
from router.whatif.pipeline.resumable_units import PLAYED, chunks_in_units, clear_uncommitted
from router.whatif.pipeline.run_completeness import write_left
from router.whatif.pipeline.run_staging import IDENTITY, LOCK, RunError, check_identity, run_error
from router.whatif.pipeline.spark_masters import SparkAddress
from router.whatif.pipeline.spark_session import LOG, session
from router.whatif.pipeline.table_layouts import ADDRESS_IMPACT, OF_LINKS, OF_SCENARIOS, PAIR_IMPACT, RUN, SCENARIO_LOAD

MAY_BE_LARGE: Final = (PAIR_IMPACT.name, ADDRESS_IMPACT.name)
"""Tables that are not copied where they are large: then no pairs are named, and no scenarios of an address."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of such a table that is copied, bytes."""


@contextlib.contextmanager
def unfinished(out: str, address: SparkAddress) -> Iterator[HadoopRunStaging]:
    """Start Spark, or take this thread's session, for a run whose folder is elsewhere.

    Args:
        out: address of the folder.
        address: of Spark.
    Raises: RunError when Spark can't be started, or the folder isn't to be reached.
    """
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-") as folder, session(address, Path(folder) / LOG) as found:
        yield HadoopRunStaging(HadoopStorage(found, out), Path(folder) / "run")


class HadoopRunStaging:
    """The folder of a run that is under way, beside its place, as `LocalRunStaging` is.

    Args:
        out: where the run shall be in the end.
        path: folder of this machine for what the driver makes.
    """

    def __init__(self, out: HadoopStorage, path: Path) -> None:
        self.out = out
        self.path = path
        self.storage = out.beside(f".{out.name}.partial")
        self._copied: set[str] = set()
        self._lock: bytes | None = None
        """Contents of the lock, which no other has, while it is held."""

    @property
    def log(self) -> Path:
        """Log of Spark."""
        return self.path.with_name(LOG)

    def open(self, identity: Mapping[str, object], *, is_resumed: bool) -> set[int]:
        """Make the folder, or take what an interrupted run has left. See `LocalRunStaging.open`.

        Raises: RunError
        """
        self._check_place()
        self.storage.make()
        self._take_lock()
        if is_resumed and self.storage.exists(IDENTITY):
            try:
                check_identity(str(self.storage), identity, json.loads(self.storage.read(IDENTITY)))
            except BaseException:
                self._unlock()
                raise
        else:
            for name in self.storage.children(""):
                if name != LOCK:
                    self.storage.remove(name)
            self.storage.write(IDENTITY, json.dumps(identity, sort_keys=True).encode())
        clear_uncommitted(self.storage)
        self.path.mkdir()
        return self._done()

    def gather(self) -> None:
        """Copy here what answers are made of."""
        names = [layout.name for layout in (*OF_SCENARIOS, *OF_LINKS)]
        left = too_large(self.storage, names)
        for name in names:
            if name not in left:
                self.storage.fetch(name, self.path / name)
                self._copied.add(name)

    def finish(self) -> None:
        """Everything is there: put what was made here beside it, and give the folder its name."""
        for file in sorted(self.path.iterdir()):
            if file.name not in self._copied:
                self.storage.put(file, file.name)
        for name in (*STAGE, PLAYED):
            self.storage.remove(name)
        self.storage.place(self.out)
        self._lock = None  # from here on another run may have made the folder anew
        for name in (IDENTITY, LOCK):
            self.out.remove(name)
        self.out.remove_replaced()

    def close(self) -> None:
        """Let others have the folder; where nothing is done it goes."""
        # Where the lock is another one, `finish` was interrupted when the folder had its name.
        if self._lock is not None and self._lock_text() == self._lock:
            if self._done():
                self._unlock()
            else:
                # Under another name, so that nobody begins a run in a folder of which parts are gone.
                gone = self.out.for_removal()
                self.storage.rename(gone)
                gone.remove("")
        self._lock = None

    def _done(self) -> set[int]:
        return chunks_in_units(self.storage)

    def _check_place(self) -> None:
        expected = "a new folder, or a run to replace"
        if not self.out.name:
            raise run_error(self.out, "not a named folder", expected)
        if self.out.exists("") and not self.out.is_folder():
            raise run_error(self.out, "it exists and is a file", expected)
        if self.out.children("") and not self.out.exists(RUN.name):
            raise run_error(self.out, "it exists and has other contents", expected)

    def _take_lock(self) -> None:
        # A file system of Hadoop's has no locks: it is a file, which a run that was killed has left.
        host = socket.gethostname()
        mine = json.dumps({"host": host, "pid": os.getpid(), "id": secrets.token_hex(8)}).encode()
        while not self.storage.create(LOCK, mine):
            text = self._lock_text()
            if text is None:
                continue  # its run has ended just now
            holder = _holder(text)
            if holder is None or holder[0] != host or _is_running(holder[1]) or not self._remove_lock_of(text):
                who = "" if holder is None else f": process {holder[1]} of host {holder[0]}"
                raise run_error(
                    self.out,
                    f"another run is writing there{who}",
                    f"another folder, or to wait until it ends (if it no longer runs, remove {self.storage}/{LOCK})",
                )
        self._lock = mine

    def _lock_text(self) -> bytes | None:
        """Contents of the lock, None when it isn't there."""
        try:
            return self.storage.read(LOCK)
        except RunError:
            if self.storage.exists(LOCK):
                raise
            return None

    def _remove_lock_of(self, text: bytes) -> bool:
        """Remove the lock that a run has left, unless another one has done so and has a lock of its own by now.

        Args:
            text: contents of the lock, which no other has.
        Returns: False when another run is about to do it.
        """
        claim = f"{LOCK}.{hashlib.sha256(text).hexdigest()}"
        if not self.storage.create(claim, b""):
            return False
        try:
            if self._lock_text() == text:
                self.storage.remove(LOCK)
        finally:
            self.storage.remove(claim)
        return True

    def _unlock(self) -> None:
        self.storage.remove(LOCK)
        self._lock = None


def _holder(text: bytes) -> tuple[str, int] | None:
    """Host and process that a lock names; None where it is not all there: a run has just begun to write it."""
    try:
        said = json.loads(text)
        return str(said["host"]), int(said["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def too_large(storage: HadoopStorage, names: Collection[str]) -> list[str]:
    """Names of the tables that are not copied: loads by scenario, and those of MAY_BE_LARGE that are large."""
    large = {name for name in MAY_BE_LARGE if name in names and storage.size(name) > MOST_BYTES}
    return [name for name in names if name == SCENARIO_LOAD.name or name in large]


def copy_run(place: str, folder: Path, address: SparkAddress | None = None) -> tuple[str, ...]:
    """Copy a run, or a model, to this machine, so that it can be asked there.

    Args:
        place: address of its folder.
        folder: where nothing is.
        address: of Spark, which reads it; None: this thread's session, or one of this machine.
    Returns: tables that are left there, see `too_large`.
    Raises: RunError when it isn't there, or Spark can't be started.
    """
    with (
        tempfile.TemporaryDirectory(prefix="amqp-mesh-") as logs,
        session(address or SparkAddress(), Path(logs) / LOG) as found,
    ):
        storage = HadoopStorage(found, place)
        names = storage.children("")
        if not names:
            raise run_error(place, "it is neither a run nor a model", "the folder that `amqp-mesh whatif run -o` wrote")
        folder.mkdir()
        left = too_large(storage, names)
        for name in names:
            if name not in left:
                storage.fetch(name, folder / name)
        write_left(folder, left)
        return tuple(left)
