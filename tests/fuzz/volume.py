"""Millions of inputs for one entry point, made of its seeds and of what is kept in `corpus/` and `finds/`.

    python -m tests.fuzz.volume NAME COUNT [SEED]

A find is shown once for each place where it comes out, made as short as possible, and makes the status 1. SIGTERM ends
it early; its figures are told all the same.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from router import speed
from tests.fuzz import corpus
from tests.fuzz.entry_points import ENTRY_POINTS, EntryPoint
from tests.fuzz.files import FILES

ALL: Final = {**ENTRY_POINTS, **FILES}
SLOW_S: Final = 0.5
"""Processor time of one input that is a find of its own: none of them is longer than some KiB."""
CODE: Final = ("/router/", "/mesh_config/")
SHOWN: Final = 20


def fault(entry: EntryPoint, data: bytes) -> tuple[str, str]:
    """Where an input breaks a promise, and how; nothing for one that doesn't."""
    began = time.thread_time()
    try:
        entry.check(data)
    except Exception as error:  # noqa: BLE001 (whatever comes out is a find)
        frames = traceback.extract_tb(error.__traceback__)
        last = next((it for it in reversed(frames) if any(part in it.filename for part in CODE)), frames[-1])
        if isinstance(error, AssertionError):
            last = frames[-1]
        return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}", traceback.format_exc()
    if time.thread_time() - began > SLOW_S:
        return "slow", f"{time.thread_time() - began:.2f} s"
    return "", ""


def shortest(entry: EntryPoint, data: bytes, where: str) -> bytes:
    """*data* without what need not be there to break the same promise."""
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if fault(entry, shorter)[0] == where:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def run(
    entry: EntryPoint, count: int, seed: int, ended: Sequence[object] = ()
) -> tuple[dict[str, tuple[bytes, str]], int, int]:
    """So many inputs.

    Args:
        ended: becomes true when it is enough.
    Returns: finds by their places, how many inputs there were, and how many were read.
    """
    rng = Random(seed)
    mutator = entry.mutator([*corpus.kept(entry.name), *corpus.finds(entry.name).values()])
    found: dict[str, tuple[bytes, str]] = {}
    taken = 0
    slowest = 0.0
    clock, check = time.thread_time, entry.check
    done = 0
    while done < count and not ended:
        done += 1
        data = mutator.next(rng)
        began = clock()
        try:
            taken += check(data) is not None
        except Exception:  # noqa: BLE001 (whatever comes out is a find)
            where, told = fault(entry, data)
            if where and where not in found and len(found) < SHOWN:
                found[where] = (shortest(entry, data, where), told)
        spent = clock() - began
        if spent > slowest:
            slowest = spent
            if spent > SLOW_S and "slow" not in found and fault(entry, data)[0] == "slow":
                found["slow"] = (data, f"{spent:.2f} s")
    print(f"{entry.name}: slowest input {slowest * 1e3:.1f} ms", file=sys.stderr)
    return found, done, taken


def main(name: str, count: int, seed: int = 1) -> int:
    """One run, told in a line. Returns: the status."""
    entry = ALL[name]
    began, used = time.monotonic(), time.process_time()
    ended: list[object] = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(None))
    found, count, taken = run(entry, count, seed, ended)
    used = time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name} ({speed.SPEED}): {count} inputs, {taken} of them read, {len(found)} finds, {used:.0f} s of processor, "
        f"{time.monotonic() - began:.0f} s, {count / used:.0f}/s, {memory} MiB",
        flush=True,
    )
    for where, (data, told) in found.items():
        print(f"--- {where}\n{data.hex()}\n{data!r}\n{told}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:])))
