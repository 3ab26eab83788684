"""Folders on file systems of Hadoop's client: HDFS, S3A and whatever else Spark's driver can write.

All goes through the FileSystem of the session's own Java process, with its settings and credentials: where the
executors write, the driver reads and writes too, and nothing is to be configured twice. Only small files go this way,
and copies of tables to a disk of this machine. Through Spark Connect there is no such process here.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from router.whatif.pipeline.missing_hadoop_client import client_error
from router.whatif.pipeline.run_staging import RunError, run_error
from router.whatif.pipeline.run_storage import RunStorage
from router.whatif.pipeline.spark_failures import MAX_WORDS
from router.whatif.pipeline.table_files import SUFFIX, without_patterns

JAVA_ERRORS: Final = (Py4JError, PySparkException)
"""Exceptions of Java as they come here: some classes of them pyspark makes exceptions of its own of."""
_EXCEPTION: Final = re.compile(r"^(?:\w+\.)+(\w+): ")
_MORE: Final = re.compile(r"; For more details see: .*")


class HadoopStorage(RunStorage):
    """A folder by its address.

    Args:
        session: of Spark, whose driver is here.
        address: with its scheme, such as `hdfs://name/whatif/run`.
    Raises: RunError when it isn't to be reached from here.
    """

    def __init__(self, session: SparkSession, address: str) -> None:
        self._address = address.rstrip("/")
        try:
            context: Any = session.sparkContext
        except PySparkException as error:  # Spark Connect
            words = "through Spark Connect only folders that are mounted here can be written"
            raise run_error(address, words, "--master instead of --remote, or a mounted folder") from error
        self._java = context._jvm.org.apache.hadoop.fs
        self._settings = context._jsc.hadoopConfiguration()
        try:
            self._system = self._path("").getFileSystem(self._settings)
        except JAVA_ERRORS as error:
            hadoop = str(context._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
            raise client_error(self._address, _words(error), hadoop) from error

    def __str__(self) -> str:
        return self._address

    def beside(self, name: str) -> HadoopStorage:
        """Another folder in the same one as this. *name*: that of the folder."""
        found = object.__new__(HadoopStorage)
        found.__dict__.update(self.__dict__)
        found._address = f"{self._address.rpartition('/')[0]}/{name}"
        return found

    @property
    def name(self) -> str:
        """Name of the folder; empty for a whole file system."""
        return PurePosixPath(self._address.partition("://")[2].partition("/")[2]).name

    def address(self, name: str, *, is_read: bool = True) -> str:
        """See `RunStorage`."""
        whole = f"{self._address}/{name}" if name else self._address
        return without_patterns(whole) if is_read else whole

    def exists(self, name: str) -> bool:
        """See `RunStorage`."""
        with self._errors():
            return bool(self._system.exists(self._path(name)))

    def is_folder(self) -> bool:
        """Whether it is there, and no file."""
        with self._errors():
            place = self._path("")
            return bool(self._system.exists(place) and self._system.getFileStatus(place).isDirectory())

    def children(self, name: str) -> list[str]:
        """See `RunStorage`."""
        if not self.exists(name):
            return []
        with self._errors():
            return sorted(str(each.getPath().getName()) for each in self._system.listStatus(self._path(name)))

    def files(self, name: str, suffix: str = SUFFIX) -> list[str]:
        """See `RunStorage`."""
        found: list[str] = []
        if not self.exists(name):
            return found
        with self._errors():
            for each in self._system.listStatus(self._path(name)):
                child = f"{name}/{each.getPath().getName()}" if name else str(each.getPath().getName())
                if each.isDirectory():
                    found += self.files(child, suffix)
                elif child.endswith(suffix):
                    found.append(child)
        return sorted(found)

    def size(self, name: str) -> int:
        """Bytes of all that is in a folder; 0 where it isn't there."""
        if not self.exists(name):
            return 0
        with self._errors():
            return int(self._system.getContentSummary(self._path(name)).getLength())

    def read(self, name: str) -> bytes:
        """See `RunStorage`."""
        with tempfile.TemporaryDirectory(prefix="amqp-mesh-") as folder:
            self.fetch(name, Path(folder) / "file")
            return (Path(folder) / "file").read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """See `RunStorage`."""
        with tempfile.TemporaryDirectory(prefix="amqp-mesh-") as folder:
            file = Path(folder) / "file"
            file.write_bytes(data)
            beside = f"{name}.{secrets.token_hex(8)}.tmp"
            self.put(file, beside)
            self.remove(name)
            self._rename(self._path(beside), self._path(name))

    def create(self, name: str, data: bytes) -> bool:
        """Write a small file unless it is there. Returns: whether it wasn't."""
        try:
            stream = self._system.create(self._path(name), False)
        except JAVA_ERRORS as error:
            if "AlreadyExists" in _words(error) or self.exists(name):
                return False
            raise run_error(self._address, _words(error), "") from error
        with self._errors():
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
        return True

    def make(self) -> None:
        """Make the folder."""
        with self._errors():
            self._system.mkdirs(self._path(""))

    def rename_file(self, name: str, other: str) -> None:
        """See `RunStorage`."""
        self._rename(self._path(name), self._path(other))

    def remove(self, name: str) -> None:
        """See `RunStorage`."""
        with self._errors():
            self._system.delete(self._path(name), True)

    def rename(self, other: HadoopStorage) -> None:
        """Give the folder the place of *other*, where nothing is. Stores of objects copy it, file by file."""
        self._rename(self._path(""), other._path(""))

    def place(self, other: HadoopStorage) -> None:
        """Give the folder the place of *other*, as `place_folder` does."""
        old = other.for_removal()
        try:
            if other.exists(""):
                other.rename(old)
            self.rename(other)
        except BaseException:
            if old.exists("") and not other.exists(""):
                old.rename(other)
            raise

    def for_removal(self) -> HadoopStorage:
        """Folder beside this one, which isn't there; `remove_replaced` removes it."""
        return self.beside(f".{self.name}.{secrets.token_hex(4)}.old")

    def remove_replaced(self) -> None:
        """Remove what has had the place of this folder, as far as that can be done."""
        folder = self.beside("")
        with contextlib.suppress(RunError):
            for name in folder.children(""):
                if name.startswith(f".{self.name}.") and name.endswith(".old"):
                    folder.remove(name)

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file, or a folder with all that is in it, to a place of this machine where nothing is."""
        with self._errors():
            # Without the files of checksums that Hadoop puts beside each.
            self._system.copyToLocalFile(False, self._path(name), self._java.Path(target.absolute().as_uri()), True)

    def put(self, source: Path, name: str) -> None:
        """Copy a file or folder of this machine; what is there is replaced."""
        self.remove(name)
        with self._errors():
            self._system.copyFromLocalFile(False, True, self._java.Path(source.absolute().as_uri()), self._path(name))

    def _rename(self, source: Any, target: Any) -> None:
        with self._errors():
            if not self._system.rename(source, target):
                raise run_error(self._address, f"{source.getName()} can't be renamed to {target.getName()}", "")

    def _path(self, name: str) -> Any:
        return self._java.Path(f"{self._address}/{name}" if name else f"{self._address}/")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except JAVA_ERRORS as error:
            raise run_error(self._address, _words(error), "") from error


def _words(error: Exception) -> str:
    """Put the exception of Java into a line."""
    text = str(error.java_exception.toString() if isinstance(error, Py4JJavaError) else error)
    lines = text.splitlines() or [""]
    return _EXCEPTION.sub(lambda match: f"{match[1]}: ", _MORE.sub("", lines[0]))[:MAX_WORDS]
