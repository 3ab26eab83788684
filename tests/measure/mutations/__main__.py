"""Spoil the credit rule, one thing at a time, and show which random plays notice: a table, a row for each mutation.

    python -m tests.measure.mutations                    all of them
    python -m tests.measure.mutations drain quarantine   those with one of these words in their names
    python -m tests.measure.mutations --plays 100        seeds of each of the five kinds; 40 by default

Each is made in a copy of the installed packages' sources, which runs interpreted. The exit status is 1 when no play
noticed one of them, or when plays break laws of the rule as it is.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
from rich.text import Text

import mesh_config
import router
import tests
from tests.helpers import tables
from tests.measure.mutations.rule_mutations import MUTATIONS, Mutation

PLAYS = 40
LIMIT_S = 600
SHOWN_CHARS = 60
"""Of what a play says."""


@attrs.frozen
class Verdict:
    """What plays said of a mutation."""

    play: str
    """The one that noticed it; empty when none did."""
    what: str
    count: int
    """Plays up to that one."""


def copy_sources(folder: Path) -> Path:
    """Copy the packages and the tests' helpers into *folder*, without what is compiled. Returns: the folder."""
    for package in (router, mesh_config, tests):
        assert package.__file__ is not None
        source = Path(package.__file__).parent
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "vectors"))
    return folder


def judge(mutation: Mutation | None, sources: Path, plays: int) -> Verdict:
    """Play with a mutated rule, or with the rule as it is.

    Args:
        mutation: what is spoilt.
        sources: folder with the packages as they are.
        plays: seeds of each kind.
    """
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-mutation-") as folder:
        copy = shutil.copytree(sources, Path(folder) / "copy")
        if mutation is not None:
            mutation.apply(copy)
        found = subprocess.run(
            [sys.executable, "-m", "tests.measure.mutations.plays", str(plays)],
            cwd=copy,
            env={**os.environ, "AMQP_MESH_SPEED": "interpreted", "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    last = found.stdout.splitlines()[-1:]
    if not last:
        raise RuntimeError(f"no play began: {found.stderr}")
    play, what, count = last[0].split("\t")
    return Verdict(play, what, int(count))


def chosen(words: Sequence[str]) -> list[Mutation]:
    """The mutations with one of *words* in their names; all without any."""
    return [one for one in MUTATIONS if not words or any(word in one.name for word in words)]


def main() -> None:
    """Try them and print."""
    parser = argparse.ArgumentParser(prog="mutations", description="Spoil the credit rule, and see who notices.")
    parser.add_argument("words", nargs="*", metavar="word", help="of a mutation's name; all without any")
    parser.add_argument("--plays", type=int, default=PLAYS, help=f"seeds of each kind of play; {PLAYS} by default")
    options = parser.parse_args()
    mutations = chosen(options.words)
    if not mutations:
        parser.error(f"no mutation has {' or '.join(options.words)} in its name")
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-mutations-") as folder:
        sources = copy_sources(Path(folder))
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # each waits for a process
            verdicts = list(pool.map(lambda one: judge(one, sources, options.plays), [None, *mutations]))
    table = tables.table(first="what is wrong")
    for title in ("noticed by", "as", "after plays"):
        table.add_column(title, overflow="fold")
    for mutation, verdict in zip([None, *mutations], verdicts, strict=True):
        is_right = bool(verdict.play) == (mutation is not None)
        name = mutation.name if mutation is not None else "nothing"
        play = Text(verdict.play or "nobody", style="" if is_right else "bold red")
        table.add_row(Text(name), play, Text(verdict.what[:SHOWN_CHARS]), Text(str(verdict.count)))
    console = tables.console()
    console.print(table)
    noticed = sum(bool(verdict.play) for verdict in verdicts[1:])
    console.print(f"{noticed} of {len(mutations)} noticed")
    if verdicts[0].play:
        console.print(f"the rule as it is: {verdicts[0].what} in {verdicts[0].play}")
    sys.exit(noticed < len(mutations) or bool(verdicts[0].play))


if __name__ == "__main__":
    main()
