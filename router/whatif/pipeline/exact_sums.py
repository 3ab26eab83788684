"""Sums of reals that don't depend on the order of the summands: exact, and rounded once, as `math.fsum` makes them."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MANTISSA_BITS: Final = 53
PART_BITS: Final = 18
"""Number of bits in a part of a mantissa: so small that the sum of one part of a hundred million reals is exact."""


def exact_sums(places: NDArray[Any], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Sum up reals by group.

    A real is a whole number of at most 53 bits times a power of two. Parts of these are added for each power, which a
    real can do exactly for a hundred million of them.

    Args:
        places: group of each value, from 0.
        values: finite.
        count: of groups.
    """
    fractions, powers = np.frexp(values)
    whole = np.ldexp(fractions, MANTISSA_BITS).astype(np.int64)
    parts = []
    for power in np.unique(powers[whole != 0]).tolist():
        here = powers == power
        left = whole[here]
        for shift in (2 * PART_BITS, PART_BITS, 0):  # the sign goes with the uppermost: `>>` rounds down
            part = left >> shift
            left = left - (part << shift)
            parts.append(np.ldexp(np.bincount(places[here], part, count), power - MANTISSA_BITS + shift))
    found = np.zeros(count)
    if parts:
        table = np.stack(parts)
        for place in np.flatnonzero(table.any(axis=0)).tolist():
            found[place] = math.fsum(table[:, place].tolist())
    return found
