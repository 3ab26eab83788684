"""Measure how routers grow, on real processes, and print tables.

    python -m tests.measure.scale                                 everything
    python -m tests.measure.scale links addresses                 some of it
    python -m tests.measure.scale connections --sizes 500 1000    at other sizes

Each table has a row for what was measured, a column for each size, and the exponent with which it grows: 0 when it does
not depend on the size, 1 when it doubles with it.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.helpers.processes import COMMAND
from tests.measure.scale.stand import Stand
from tests.measure.scale.tables import show

SUBJECTS = (
    "beside",
    "hostile",
    "secured",
    "connections",
    "links",
    "queried",
    "addresses",
    "audiences",
    "circuits",
    "requesters",
    "visitors",
    "routers",
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scale", description="Measure how routers grow.")
    parser.add_argument("what", nargs="*", metavar="what", help=f"some of {', '.join(SUBJECTS)}; all by default")
    parser.add_argument("--sizes", nargs="+", type=int, help="instead of those of the subject")
    parser.add_argument("--router-command", type=shlex.split, default=COMMAND, help="what starts a router")
    parser.add_argument(
        "--compare", action="append", default=[], metavar="NAME=PLAIN,TLS,SCRAM,PID", help="of `secured`: see there"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.what) - set(SUBJECTS))
    if unknown:
        parser.error(f"no {unknown[0]}; there are {', '.join(SUBJECTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of all that ends the processes
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-scale-") as folder:
        stand = Stand(Path(folder), options.router_command, options.compare)
        for what in options.what or SUBJECTS:
            subject = importlib.import_module(f"tests.measure.scale.{what}")
            began = time.monotonic()
            show(subject.measure(stand, options.sizes or subject.SIZES))
            print(f"{what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
