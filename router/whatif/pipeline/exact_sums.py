"""Sums of reals that don't depend on the order of the summands: exact, and rounded once, as `math.fsum` makes them."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MANTISSA_BITS: Final = 53
_LOW_BITS: Final = 27
_LOW: Final = (1 << _LOW_BITS) - 1


def exact_sums(places: NDArray[Any], values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Sum up reals by group.

    A real is a whole number of at most 53 bits times a power of two. Halves of these are added for each power, which a
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
        # The sign goes with the upper half: an arithmetic shift rounds down.
        for half, shift in ((whole[here] >> _LOW_BITS, _LOW_BITS), (whole[here] & _LOW, 0)):
            sums = np.bincount(places[here], half, count)
            parts.append(np.ldexp(sums, power - MANTISSA_BITS + shift))
    found = np.zeros(count)
    if parts:
        table = np.stack(parts)
        for place in np.flatnonzero(table.any(axis=0)).tolist():
            found[place] = math.fsum(table[:, place].tolist())
    return found
