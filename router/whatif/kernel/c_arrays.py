"""Arrays of C numbers for the compiled kernel: how both speeds reach into the same memory.

Interpreted code indexes an `array.array` as it is. Compiled code takes a pointer to what it holds (`c_arrays.pxd`), and
keeps the array too, since that owns the memory. Nothing is checked there: an index out of range is a fault of ours that
the interpreted form shows.
"""

from __future__ import annotations

from array import array
from typing import Final

FAR: Final = 0x3FFFFFFF
"""Distance where there is no path, and cost of a link that is down; two of them still fit into 32 bits."""
NONE: Final = -1
"""Stands for none in an array of places."""
CAUSES: Final = 10
"""Scenarios that are kept for each link, the worst ones."""
CLOSEST: Final = 0
BALANCED: Final = 1
MULTICAST: Final = 2
"""Treatments, as places in `network_arrays.TREATMENTS`."""
BOUNDED: Final = 3
"""Balanced, and credit bounds what some subscribers take."""


def bytes_of(cells: array[int]) -> array[int]:
    """View as 8-bit ints, type code `b`."""
    return cells


def shorts(cells: array[int]) -> array[int]:
    """View as 16-bit ints, type code `h`."""
    return cells


def ints(cells: array[int]) -> array[int]:
    """View as 32-bit ints, type code `i`."""
    return cells


def longs(cells: array[int]) -> array[int]:
    """Cells of 64 bits, type code `q`."""
    return cells


def doubles(cells: array[float]) -> array[float]:
    """Cells of 64 bits, type code `d`."""
    return cells
