"""Inputs for one entry point that are led by coverage: those that reach new lines are kept and changed further.

    AMQP_MESH_SPEED=interpreted python -m tests.fuzz.guided NAME SECONDS [COUNT]

Runs the interpreted modules under atheris, with libFuzzer's mutations and those of `mutation` by turns. Of what it
keeps, short inputs that are enough for all lines that were reached go into `corpus/NAME.hex`. A find ends it with
libFuzzer's status, and is shown; `volume.py` makes it short.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Final

import atheris

from tests.fuzz import corpus

MOST: Final = 1000
"""Bytes of an input that is kept: longer ones hardly reach what short ones don't."""


def fuzz(name: str, arguments: list[str]) -> None:
    """One run of libFuzzer, which ends the process."""
    importlib.import_module("router")  # which says how hot modules are found: atheris is to go before that
    with atheris.instrument_imports(include=["router", "mesh_config"], enable_loader_override=False):
        from tests.fuzz.volume import ALL  # noqa: PLC0415
    entry = ALL[name]
    mutator = entry.mutator([*corpus.kept(name), *corpus.finds(name).values()])

    def changed(data: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        made = atheris.Mutate(data, most) if rng.random() < 0.6 else mutator.next(rng)
        return made[:most]

    def one(data: bytes) -> None:
        entry.check(data)

    atheris.Setup([sys.argv[0], *arguments], one, custom_mutator=changed, internal_libfuzzer=True)
    atheris.Fuzz()


def main(name: str, seconds: int, count: int = -1) -> int:
    """Fuzz, then keep what is new. Returns: the status of libFuzzer."""
    from tests.fuzz.coverage import enough  # noqa: PLC0415
    from tests.fuzz.volume import ALL  # noqa: PLC0415

    entry = ALL[name]
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-fuzz.") as place:
        found, start, finds = folders = [Path(place) / it for it in ("found", "start", "finds")]
        for folder in folders:
            folder.mkdir()
        old = [*entry.seeds(), *corpus.kept(name), *corpus.finds(name).values()]
        for number, data in enumerate(old):
            (start / f"{number:06}").write_bytes(data)
        options = [f"-max_total_time={seconds}", f"-runs={count}", f"-max_len={entry.max_bytes}"]
        options += ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={finds}/"]
        status = _child(name, [str(found), str(start), *options])
        for file in sorted(finds.iterdir()):
            print(f"{name}: {file.name}: {file.read_bytes().hex()}", flush=True)
        new = [file.read_bytes() for file in found.iterdir()]
    kept, lines, all_lines = enough(entry, [*old, *new], MOST)
    corpus.keep(name, kept)
    print(f"{name}: {len(new)} inputs found, {len(kept)} kept, {lines} of {all_lines} lines", flush=True)
    return status


def _child(name: str, arguments: list[str]) -> int:
    return subprocess.run([sys.executable, "-m", "tests.fuzz.guided", name, *arguments], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) > 3 and not sys.argv[2].isdigit():
        fuzz(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
