"""Start programs that die with their parent, however it ends.

A process of its own does that rather than code between fork and exec (`preexec_fn`). Such code may hang where the
parent has threads, and for it Python calls functions in the parent, right after the fork, in which the exception of a
signal's handler is lost: a parent that was told to end doesn't. The order to the kernel outlives `exec`, and the
process keeps its id. This file imports nothing of the package, to start at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
"""Source: prctl(2)."""
_NOT_STARTED = 127
"""Exit status with which shells end, too."""


def mortal(command: Sequence[str]) -> list[str]:
    """The words of a process that becomes *command* and dies with this one.

    Start it in the main thread: the kernel takes the end of the thread that started a process for its parent's death. A
    program that cannot be started is told of on standard error.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: int, command: list[str]) -> None:
    """Tell the kernel to kill this process when *parent* dies, and become *command*.

    Args:
        parent: process id.
        command: program and arguments.
    Raises: OSError when the command can not be started.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it died before the kernel was told
        sys.exit(1)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
        sys.exit(_NOT_STARTED)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
