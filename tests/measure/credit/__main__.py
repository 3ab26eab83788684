"""Measure the figures of credit on real processes and print them as one table.

    python -m tests.measure.credit            all of them, some minutes
    python -m tests.measure.credit 1 3 8      some of them

Exit status: 1 when one is not met, else 0.
"""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path

from router.cli.management_errors import ManagementError
from tests.helpers.oslo import OsloError
from tests.helpers.processes import COMMAND
from tests.measure.credit import (
    balanced,
    busy_among_idle,
    fairness,
    fanout,
    held_credit,
    presettled_stream,
    rpc,
    slow_server,
    stalled_sibling,
    stalled_subscriber,
)
from tests.measure.credit.stand import Row, Stand
from tests.measure.credit.table import show
from tests.measure.credit.tasks import TaskError

FIGURES = {
    1: held_credit,
    2: stalled_subscriber,
    3: presettled_stream,
    4: stalled_sibling,
    5: busy_among_idle,
    6: rpc,
    7: slow_server,
    8: fairness,
    9: fanout,
    10: balanced,
}


def main() -> int:
    """Returns: the exit status."""
    parser = argparse.ArgumentParser(prog="credit", description="Measure the figures of credit on real processes.")
    parser.add_argument("figures", nargs="*", type=int, help=f"numbers, by default {min(FIGURES)} to {max(FIGURES)}")
    parser.add_argument("--router-command", type=shlex.split, default=COMMAND, help="what starts a router")
    parser.add_argument(
        "--against", type=shlex.split, help="what starts a router of another version, to compare figure 6 with"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.figures) - set(FIGURES))
    if unknown:
        parser.error(f"no figure {unknown[0]}; there are {min(FIGURES)} to {max(FIGURES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of all that ends the processes
    chosen = sorted(set(options.figures)) or sorted(FIGURES)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-credit-") as folder:
        stand = Stand(Path(folder), options.router_command, options.against)
        for number in chosen:
            rows += measure(number, stand)
    show(rows, {number: figure.TITLE for number, figure in FIGURES.items()})
    return 1 if any(row.is_met is False for row in rows) else 0


def measure(number: int, stand: Stand) -> list[Row]:
    """The rows of one figure; one that breaks off has a row that says so."""
    began = time.monotonic()
    rows: list[Row] = []
    try:
        for row in FIGURES[number].measure(stand):
            rows.append(row)
            verdict = {True: "met", False: "NOT MET", None: "reported"}[row.is_met]
            print(f"{number}: {row.what}: {row.measured} ({verdict})", file=sys.stderr, flush=True)
    except (AssertionError, LookupError, ManagementError, OsloError, OSError, TaskError) as error:
        print(f"{number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        first = (str(error).strip() or type(error).__name__).splitlines()
        rows.append(Row(number, "the rest", f"broke off: {first[0][:100]}", "an end", is_met=False))
    print(f"{number}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
