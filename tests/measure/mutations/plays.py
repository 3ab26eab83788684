"""Run random plays until one breaks a law: with the packages that are found first, so in a copy with the mutated ones.

    python -m tests.measure.mutations.plays COUNT

Prints the play that broke a law and what it said, and how many were played; exit status 1 when one did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from tests.helpers import credit_plays, multicast_plays
from tests.helpers.multicast_plays import Kind

KINDS: dict[str, Callable[[int], object]] = {
    "calm": credit_plays.calm_play,
    "rough": credit_plays.rough_play,
    "multicast calm": multicast_plays.calm_play,
    "multicast unruly": lambda seed: multicast_plays.disturbed_play(seed, Kind.UNRULY),
    "multicast rough": lambda seed: multicast_plays.disturbed_play(seed, Kind.ROUGH),
}
"""Each plays a seed to its end, and raises when a law is broken."""


def played(count: int) -> Iterator[tuple[int, str, Exception | None]]:
    """Play *count* seeds of each kind, by turns.

    Yields: plays so far, name of the last one, and what it broke; a machine whose rule is spoilt may raise anything.
    """
    number = 0
    for seed in range(count):
        for kind, play in KINDS.items():
            number += 1
            try:
                play(seed)
            except NameError:
                raise  # that is no rule spoilt, but a mutation that is no program
            except Exception as error:  # a machine whose rule is spoilt may raise anything
                yield number, f"{kind} {seed}", error
            else:
                yield number, f"{kind} {seed}", None


def main() -> None:
    """Play until a law is broken."""
    number = 0
    for number, name, error in played(int(sys.argv[1])):
        if error is not None:
            what = " ".join(str(error).split()) or "an invariant"
            print(f"{name}\t{type(error).__name__}: {what}\t{number}")
            sys.exit(1)
    print(f"\t\t{number}")


if __name__ == "__main__":
    main()
