"""Ranges of scenarios as partitions of a DataFrame, without looking at its rows.

Spark's own `repartitionByRange` runs all of a query once more to see where its rows are. Here that is known: numbers of
scenarios have no gaps. Spark puts a row where the hash of a key says, so each range gets a key whose hash is its place.
"""

from __future__ import annotations

import math
from typing import Final

from pyspark.sql import DataFrame

from router.whatif.pipeline.spark_session import functions_of

RANGE_SCENARIOS: Final = 250_000
"""In a partition at most, of rows that are few for each."""
FEWEST_SCENARIOS: Final = 2_048
"""In a partition, while there is one for each core."""

_MASK: Final = 0xFFFFFFFF
_SEED: Final = 42


def by_range(rows: DataFrame, scenarios: int, cores: int, *, most: int = RANGE_SCENARIOS) -> DataFrame:
    """Put rows into as many partitions as there are ranges, the first range first.

    Args:
        rows: with a column `scenario`.
        scenarios: how many there are, numbered from 0.
        cores: that shall have something to do.
        most: scenarios in a partition.
    """
    count = min(math.ceil(scenarios / min(most, FEWEST_SCENARIOS)), max(2 * cores, math.ceil(scenarios / most)))
    sql = functions_of(rows)
    keys = sql.array(*map(sql.lit, keys_of(count)))
    place = sql.floor(sql.col("scenario") / sql.lit(math.ceil(scenarios / count))).cast("int")
    return rows.repartition(count, sql.get(keys, place))


def keys_of(count: int) -> list[int]:
    """Find for each of *count* partitions a key that Spark puts there."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < count:
        found.setdefault(_hash(key) % count, key)
        key += 1
    return [found[place] for place in range(count)]


def _hash(key: int) -> int:
    """Spark's hash of an int: MurmurHash3 of 32 bits, with sign."""
    block = _rotated(key * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    mixed = (_rotated(_SEED ^ block, 13) * 5 + 0xE6546B64) & _MASK
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    mixed ^= mixed >> 16
    return mixed - 2**32 if mixed >= 2**31 else mixed


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
