"""`amqp-mesh`, and `python -m router`.

Signals of a router that would end its process are held back before anything else is imported: that takes a second, and
who starts routers may signal one at once.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

HELD_BACK: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that stay blocked until the router can take them, and again when it has stopped: while Python ends, a second
one would change the status that says that it stopped in order."""


def main() -> None:
    """Run the command line."""
    _open_closed_streams()
    if sys.argv[1:2] == ["run"]:
        signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    is_python_interrupted = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_python_interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # to end without a traceback here, and behind the command
    from router.cli import main as commands  # noqa: PLC0415 - see above
    from router.cli.stdout_errors import checked_output  # noqa: PLC0415 - see above

    try:
        if is_python_interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with checked_output():
            commands(prog_name="amqp-mesh")
    finally:
        if is_python_interrupted:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_closed_streams() -> None:
    """Have input that was closed come from nowhere, errors go there, and output be an error once there is some.

    The lowest descriptor that is free is taken, which is that of the closed one: no socket gets it. That of output is
    open for reading alone, so that what was asked for is not lost in silence, nor messages that `receive` takes.
    """
    for name, mode, flags in (("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))  # noqa: SIM115 - to the end


if __name__ == "__main__":
    main()
