"""The flight recorder: writes to a file what moved the control plane lately, when something has gone wrong.

It writes on a fault of this program, to a directory that the settings name, and when an operator asks for it. Encoding
and writing are done by a thread, and nothing that goes wrong here touches the router.
"""

from __future__ import annotations

import math
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from mesh_config.models import RecorderSettings
from router import __version__
from router.core.controlplane import ControlPlane
from router.core.recording.recorded_control_plane import OutsideFault, RecordedControlPlane, Segment
from router.core.recording.recording_format import encode, standing

SIGNAL: Final = "signal"
"""The reason of a recording that somebody has asked for."""
START: Final = "start"
"""Reason that is told for a recording in place of which none could be written."""
FAULT_PAUSE_S: Final = 60.0
"""Minimum time between two recordings because of faults, seconds: those in between are marked in the next one."""
SUFFIX: Final = ".recording"
MOST_NAME_CHARACTERS: Final = 100
"""Maximum number of characters of a router's id in the name of a file."""
PIECES_AT_ONCE: Final = 8
"""Number of pieces encoded before the router's own thread has its turn."""
CLOSE_S: Final = 2.0
"""Maximum wait at the end of the process for a recording that is being written, seconds."""


def create(path: Path) -> int:
    """A descriptor of a new file that its owner alone may read.

    Raises:
        OSError: it can't be made, or is there already.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


class FlightRecorder:
    """Recorder that keeps the calls of one router's control plane, and writes them.

    Args:
        clock: seconds, monotonic.
        new_file: makes a file: see `create`.
    """

    def __init__(
        self,
        control: ControlPlane,
        settings: RecorderSettings,
        *,
        clock: Callable[[], float],
        log: Any,
        new_file: Callable[[Path], int] = create,
    ) -> None:
        self._control = control
        self._settings = settings
        self._clock = clock
        self._log = log
        self._new_file = new_file
        self.plane: ControlPlane | RecordedControlPlane = control
        """Control plane to be driven in the place of the real one."""
        self._writer: threading.Thread | None = None
        self._fault_at = -math.inf
        """Time at which a recording because of a fault was begun last, seconds."""
        self._told = ""
        """Reason why the last recording because of a fault was not written; said once."""
        if settings.max_bytes:
            try:
                self.plane = RecordedControlPlane(
                    control,
                    max_bytes=settings.max_bytes,
                    max_calls=settings.max_calls,
                    now=clock(),
                    on_fault=self._fail,
                )
            except Exception as error:  # a router without a recorder is better than none
                self._fail(error)

    def check_directory(self) -> None:
        """Tell in time when no recording can be written to the directory of the settings. Never raises."""
        directory = self._settings.directory
        if directory is not None and not os.access(directory, os.W_OK | os.X_OK):
            why = "is no directory" if not Path(directory).is_dir() else "may not be written to"
            self._tell_of_failure(START, directory, why)

    # Faults and signals

    def fault(self, what: str, of: object = "") -> None:
        """A boundary has caught a fault of this program. Never raises.

        Args:
            what: the event of the log.
            of: what it happened to.
        """
        if not isinstance(self.plane, RecordedControlPlane):
            return
        now = self._clock()
        self.plane.keep(now, None, OutsideFault(what, str(of)))
        if self._settings.directory is None or now < self._fault_at + FAULT_PAUSE_S:
            return
        self._fault_at = now
        self.write(what)

    def write(self, reason: str) -> None:
        """Have all that is kept written to a new file, by a thread. Never raises.

        Without a directory in the settings it is the system's one for temporary files.
        """
        try:
            refusal = self._begin(reason)
        except Exception as error:  # see `_fail`
            self._fail(error)
            return
        if refusal:
            self._tell_of_failure(reason, "", refusal)

    def close(self) -> None:
        """Wait for a recording that is being written, for `CLOSE_S` at most."""
        if self._writer is not None:
            self._writer.join(CLOSE_S)

    def _begin(self, reason: str) -> str:
        """Begin to write. Returns: why not, or nothing."""
        if not isinstance(self.plane, RecordedControlPlane):
            return "the recorder is off"
        if self._writer is not None and self._writer.is_alive():
            return "another recording is being written"
        written = datetime.now(UTC)
        header = {
            "program": __version__,
            "router": self._control.router_id,
            "instance": self._control.instance,
            "reason": reason,
            "written": written.isoformat(timespec="seconds"),
        }
        segments = self.plane.segments()
        end = standing(self._control, self._clock())
        self._writer = threading.Thread(
            target=self._write_file, args=(header, segments, end), name="recorder", daemon=True
        )
        self._writer.start()
        return ""

    def _fail(self, error: Exception) -> None:
        """A fault of the recorder itself: without one the router goes on as before."""
        self.plane = self._control
        self._log.error("recorder_fault", exc_info=error)

    # In a thread

    def _write_file(self, header: Mapping[str, object], segments: Sequence[Segment], end: Mapping[str, object]) -> None:
        reason, path = str(header["reason"]), ""
        try:
            folder = Path(self._settings.directory or tempfile.gettempdir())
            path = str(folder)
            prefix = f"amqp-mesh-{_file_word(self._control.router_id)}-"
            there = sum(each.name.startswith(prefix) and each.name.endswith(SUFFIX) for each in folder.iterdir())
            if there >= self._settings.max_files:
                refusal = f"as many recordings of this router are there already as `max_files` allows: {there}"
                self._tell_of_failure(reason, path, refusal)
                return
            file = folder / f"{prefix}{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{time.time_ns()}{SUFFIX}"
            path = str(file)
            fd = self._new_file(file)
            try:
                size = _write_pieces(fd, encode(header, segments, end))
            except BaseException:
                file.unlink(missing_ok=True)  # half of one would take room where there may be none left
                raise
            self._told = ""
            calls = sum(len(segment.calls) for segment in segments)
            has_state = any(segment.state is not None for segment in segments)
            self._log.info("recording_written", path=path, reason=reason, calls=calls, bytes=size, has_state=has_state)
        except OSError as error:
            self._tell_of_failure(reason, path, error.strerror or str(error))
        except Exception as error:  # this thread has no boundary but this one
            self._log.error("recorder_fault", exc_info=error)

    def _tell_of_failure(self, reason: str, path: str, why: str) -> None:
        if reason != SIGNAL and why == self._told:
            return
        self._told = why
        self._log.warning("recording_failed", path=path, of=reason, reason=why)


def _write_pieces(fd: int, pieces: Iterable[str]) -> int:
    """Write *pieces* of text to *fd* and close it. Returns: bytes written."""
    size = 0
    with os.fdopen(fd, "wb", buffering=65536) as file:
        for number, piece in enumerate(pieces):
            size += file.write(piece.encode("ascii"))
            if number % PIECES_AT_ONCE == 0:
                time.sleep(0)  # gives the interpreter to a router that wants it
        file.flush()
    return size


def _file_word(router: str) -> str:
    """*router*, as every file system takes it."""
    return "".join(one if one.isascii() and (one.isalnum() or one in "._") else "_" for one in router)[
        :MOST_NAME_CHARACTERS
    ]
