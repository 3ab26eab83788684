"""Faults, one after the other, on real processes; the ledger of all messages, and a table of what it came to.

    python -m tests.measure.chaos                          ten of every kind
    python -m tests.measure.chaos kill cut --count 50      fifty of these
    python -m tests.measure.chaos --minutes 60 --seed 2    as many as fit

Exit status: 1 when something happened that must never be, else 0.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.helpers.processes import COMMAND
from tests.measure.chaos.faults import FAULTS
from tests.measure.chaos.run import Run
from tests.measure.chaos.stage import Stage
from tests.measure.chaos.tables import show


def main() -> int:
    """Returns: the exit status."""
    parser = argparse.ArgumentParser(
        prog="chaos", description="Let connections, processes and clients fail, and count."
    )
    parser.add_argument("faults", nargs="*", help=f"kinds, by default all: {', '.join(FAULTS)}")
    parser.add_argument("--count", type=int, default=10, help="of each kind")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no fault after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1000.0, help="messages a second of each publisher, at most")
    parser.add_argument("--calls", action="store_true", help="let oslo.messaging call meanwhile")
    parser.add_argument("--router-command", type=shlex.split, default=COMMAND, help="what starts a router")
    options = parser.parse_args()
    unknown = sorted(set(options.faults) - set(FAULTS))
    if unknown:
        parser.error(f"no fault {unknown[0]}; there are {', '.join(FAULTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of all that ends the processes
    chosen = [FAULTS[name] for name in dict.fromkeys(options.faults or FAULTS)]
    with (
        tempfile.TemporaryDirectory(prefix="amqp-mesh-chaos-") as folder,
        Stage(Path(folder), rate=options.rate, command=options.router_command) as stage,
    ):
        run = Run(stage, options.seed, calls=options.calls)
        try:
            run.play(chosen, options.count, time.monotonic() + options.minutes * 60)
        except KeyboardInterrupt:
            pass  # what it came to until then
        show(run)
    return 1 if stage.ledger.violations else 0


if __name__ == "__main__":
    sys.exit(main())
