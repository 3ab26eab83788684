"""How many examples hypothesis makes where a test says so, in proportion to its profile."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
"""Examples of a test that does not say how many, in hypothesis' own profile."""


def examples(count: int) -> int:
    """So many as the profile takes in place of *count*: fewer under `--hypothesis-profile quick`."""
    return max(1, count * settings().max_examples // USUAL)
