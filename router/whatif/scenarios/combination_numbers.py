"""Numbers for combinations, and a shuffled order of numbers that has no memory: what scenario numbers are made of.

A combination of k of n things has a number by the combinatorial number system: `c1 < c2 < ... < ck` is
`C(c1, 1) + C(c2, 2) + ... + C(ck, k)`, which counts from 0 to C(n, k) - 1 without a gap, and does not depend on n.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[Any]
"""Numbers of combinations: int64 where all of them fit, else Python's integers."""
Members = NDArray[np.int32]

VECTOR_LIMIT: Final = 2**62
"""Numbers below are worked out by numpy, many at once."""
SAMPLE_LIMIT: Final = 2**126
"""Maximum number of things that can be put in a shuffled order."""


def ranks(numbers: Sequence[int] | range) -> Ranks:
    """Numbers as an array, of int64 if they fit."""
    large = max(numbers, default=0) >= VECTOR_LIMIT
    return np.array(numbers, dtype=object if large else np.int64)


def rank(members: Sequence[int]) -> int:
    """The number of a combination. *members* ascend, from 0."""
    return sum(math.comb(member, place) for place, member in enumerate(members, start=1))


def unrank(numbers: Ranks, things: int, size: int) -> Members:
    """Combinations by their numbers.

    Args:
        numbers: each less than C(*things*, *size*).
        things: number of things to choose from.
        size: members of a combination.
    Returns: a row for each number, *size* members ascending, each less than *things*.
    """
    found = np.empty((len(numbers), size), dtype=np.int32)
    if numbers.dtype == object or math.comb(things, size) >= VECTOR_LIMIT:
        for row, number in enumerate(numbers):
            found[row] = _unrank_one(int(number), things, size)
        return found
    rest = numbers.astype(np.int64, copy=True)
    for place in range(size, 0, -1):
        table = np.array(_binomials(things, place), dtype=np.int64)
        member = np.searchsorted(table, rest, side="right") - 1
        rest -= table[member]
        found[:, place - 1] = member
    return found


def _unrank_one(number: int, things: int, size: int) -> list[int]:
    members = []
    for place in range(size, 0, -1):
        table = _binomials(things, place)
        member = bisect.bisect_right(table, number) - 1
        number -= table[member]
        members.append(member)
    return members[::-1]


@lru_cache(maxsize=64)
def _binomials(things: int, place: int) -> tuple[int, ...]:
    """C(c, place) for c from 0 to things - 1."""
    return tuple(math.comb(member, place) for member in range(things))


_MASK64: Final = 2**64 - 1
_ROUNDS: Final = 6


def _mixed(value: Any) -> Any:
    """The finalizer of splitmix64: of an integer below 2**64, or of an array of uint64."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK64
    return value ^ (value >> 31)


def _mixed_array(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    one, two = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
    values = (values ^ (values >> np.uint64(30))) * one
    values = (values ^ (values >> np.uint64(27))) * two
    return values ^ (values >> np.uint64(31))


@attrs.frozen
class Shuffle:
    """The numbers below *size* in a shuffled order that *seed* and *label* decide, any of them without those before.

    A Feistel network over the next larger even number of bits; what falls outside is sent through it again.
    So the i-th sample of a population depends on (seed, i) alone, and no two samples are the same.
    """

    size: int = attrs.field(validator=attrs.validators.in_(range(1, SAMPLE_LIMIT + 1)))
    seed: int
    label: str

    @property
    def _half(self) -> int:
        """Bits of one half of a number."""
        return max(1, (max(self.size - 1, 1).bit_length() + 1) // 2)

    def _keys(self) -> list[int]:
        text = f"{self.seed}/{self.label}/{self.size}".encode()
        digest = hashlib.blake2b(text, digest_size=8 * _ROUNDS).digest()
        return [int.from_bytes(digest[place : place + 8], "little") for place in range(0, len(digest), 8)]

    def places(self, first: int, stop: int) -> Ranks:
        """Numbers at places *first* to *stop* - 1."""
        if self.size >= VECTOR_LIMIT:
            return np.array([self.at(place) for place in range(first, stop)], dtype=object)
        values = np.arange(first, stop, dtype=np.uint64)
        outside = np.ones(len(values), dtype=bool)
        while outside.any():
            values[outside] = self._once(values[outside])
            outside = values >= np.uint64(self.size)
        return values.astype(np.int64)

    def at(self, place: int) -> int:
        """Number at one place."""
        half = self._half
        mask = 2**half - 1
        while True:
            left, right = place >> half, place & mask
            for key in self._keys():
                left, right = right, left ^ (_mixed((right + key) & _MASK64) & mask)
            place = left << half | right
            if place < self.size:
                return place

    def place_of(self, value: int) -> int:
        """Place at which *value* stands: `place_of(at(place)) == place`."""
        half = self._half
        mask = 2**half - 1
        while True:
            left, right = value >> half, value & mask
            for key in reversed(self._keys()):
                left, right = right ^ (_mixed((left + key) & _MASK64) & mask), left
            value = left << half | right
            if value < self.size:
                return value

    def _once(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        half = np.uint64(self._half)
        mask = np.uint64(2**self._half - 1)
        left, right = values >> half, values & mask
        for key in self._keys():
            left, right = right, left ^ (_mixed_array(right + np.uint64(key)) & mask)
        return left << half | right
