"""Become another program that dies with its parent: `python launcher.py PARENT_PID PROGRAM [ARGUMENTS]`.

A process of its own rather than code between fork and exec (`preexec_fn`), where a parent with threads may hang. The
order to the kernel outlives `exec`, and the process keeps its id. It imports nothing of the package, to start at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""Source: prctl(2)."""


def main(parent: int, command: list[str]) -> None:
    """Tell the kernel to kill this process when *parent* dies, and become *command*."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it died before the kernel was told
        sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
