"""Processor time and memory of processes, as /proc tells them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that these processes have used so far, to 10 ms. A process that is gone counts nothing."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:
        return 0


def processor() -> str:
    """Name of the machine's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return "unknown"
