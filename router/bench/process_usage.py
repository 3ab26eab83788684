"""Processor time and memory of processes, as /proc tells them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that these processes have used so far, to a millisecond or so.

    A process that is gone counts nothing; where a thread has ended, or the system doesn't count in nanoseconds, it is
    to 10 ms.
    """
    return sum(map(_cpu_seconds, pids))


def _cpu_seconds(pid: int) -> float:
    used_s = 0.0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            used_s += int(file.read_text(encoding="ascii").split()[0]) / 1e9
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    # This counts threads that have ended too, though in ticks only.
    return max(used_s, (int(fields[11]) + int(fields[12])) / _TICKS)


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:
        return 0


def is_there(pid: int) -> bool:
    """Whether a process runs, and what it uses can be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in {"Z", "X"}  # it has ended, and nobody has asked how


def processor() -> str:
    """Name of the machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return "unknown"
