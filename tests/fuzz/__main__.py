"""Fuzz every entry point for bytes and files, in volume and by coverage, and print a table.

    python -m tests.fuzz                                    everything: many hours
    python -m tests.fuzz sections frames --seconds 600      some of it
    python -m tests.fuzz --inputs 0                         by coverage only

Volume is what compiled modules do, ten million inputs for each that takes bytes and a million for each kind of file;
then interpreted ones are led by coverage, which needs atheris. AMQP_MESH_FUZZ_CORPUS is where found inputs are kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys

from tests.fuzz.volume import ALL
from tests.helpers.tables import console, table

BYTES, FILES = 10_000_000, 1_000_000
VOLUME = re.compile(r": (\d+) inputs, (\d+) of them read, (\d+) finds, .*?, (\d+)/s, (\d+) MiB")
GUIDED = re.compile(r"number_of_executed_units: (\d+)")
LINES = re.compile(r", (\d+ of \d+) lines")
HEAD = ("entry point", "inputs", "read", "finds", "inputs/s", "MiB", "by coverage", "lines reached")


def main() -> int:
    """Run what was asked for. Returns: 1 when there is a find."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Fuzz entry points for bytes and files.")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(ALL)}; all by default")
    parser.add_argument("--inputs", type=int, help=f"of each; by default {BYTES}, of files {FILES}; 0: no volume")
    parser.add_argument("--seconds", type=int, default=600, help="by coverage, for each; 0: none of it")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(ALL))
    if unknown:
        parser.error(f"no {unknown[0]}; there are {', '.join(ALL)}")
    rows, status = [], 0
    for name in options.names or ALL:
        count = options.inputs if options.inputs is not None else FILES if ALL[name].is_file else BYTES
        told, failed = _told("volume", name, count, options.seed) if count else ("", 0)
        figures = VOLUME.search(told)
        guided = lines = ""
        if options.seconds and importlib.util.find_spec("atheris") is not None:
            said, broken = _told("guided", name, options.seconds, speed="interpreted")
            failed |= broken
            guided, lines = ((found[1] if found else "") for found in (GUIDED.search(said), LINES.search(said)))
        rows.append((name, *(figures.groups() if figures else ("",) * 5), guided, lines))
        status |= failed != 0
    shown = table(*HEAD[1:], first=HEAD[0])
    for row in rows:
        shown.add_row(*row)
    console().print(shown)
    return status


def _told(module: str, *arguments: object, speed: str = "") -> tuple[str, int]:
    """What a module writes, which is shown when there is a find; its status."""
    environment = {**os.environ, **({"AMQP_MESH_SPEED": speed} if speed else {})}
    command = [sys.executable, "-m", f"tests.fuzz.{module}", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    print(f"{module} {' '.join(map(str, arguments))}: status {done.returncode}", file=sys.stderr, flush=True)
    if done.returncode:
        print(done.stdout, done.stderr[-5000:], flush=True)
    return done.stdout + done.stderr, done.returncode


if __name__ == "__main__":
    sys.exit(main())
