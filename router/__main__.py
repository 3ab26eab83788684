"""`amqp-mesh`, and `python -m router`.

Signals of a router that would end its process are held back before anything else is imported: that takes a second, and
who starts routers may signal one at once.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

HELD_BACK: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""They come to the router when it has started."""


def main() -> None:
    """Run the command line."""
    _open_closed_streams()
    if sys.argv[1:2] == ["run"]:
        signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
    from router.cli import main as commands  # noqa: PLC0415 - see above
    from router.cli.stdout_errors import checked_output  # noqa: PLC0415 - see above

    with checked_output():
        commands(prog_name="amqp-mesh")


def _open_closed_streams() -> None:
    """Have input and output that were closed come from, and go to, nowhere.

    The lowest descriptor that is free is taken, which is that of the closed one: no socket gets it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


if __name__ == "__main__":
    main()
