"""The address space that this process may take, where it has a limit (`ulimit -v`).

Proton does not look whether each allocation succeeds: at the limit it would write over what is not its own. So a router
has to stay below.
"""

from __future__ import annotations

import ctypes
import math
import resource
from pathlib import Path
from typing import Final

from mesh_config.models import MIB
from router.core.errors import LocalError

TAKEN_PER_BYTE: Final = 6
"""Bytes of address space for each of the mark: 1.75 times that may be held, in up to three times the memory."""
OWN_BYTES: Final = 128 * MIB
"""Address space that a router takes after this was asked: stacks and arenas of threads, modules, tables."""
LEAST_HELD_BYTES: Final = 4 * MIB
"""Minimum room for what peers send, bytes, as that of the setting `process_bytes`: with less a router is of no use."""
_M_ARENA_MAX: Final = -8
"""Parameter of `mallopt` for the number of arenas. Source: malloc.h of the GNU C library."""


def share_one_malloc_arena() -> None:
    """Have all threads of this process allocate from one arena of malloc.

    Else each thread that allocates beside another has one of its own, which reserves 64 MiB of address space, 128 as
    it begins, and keeps about a megabyte for good. Few threads of a router allocate at a time: one runs Python. Other C
    libraries than GNU's have no arenas.

    Source: mallopt(3).
    """
    c_library = ctypes.CDLL(None)
    if hasattr(c_library, "mallopt"):
        c_library.mallopt(_M_ARENA_MAX, 1)


def most_held_bytes() -> float:
    """Bytes that may be held for peers in the limit of the address space; infinity without one.

    Source: proc(5), `/proc/pid/statm`: the first number is the size of the address space in pages.

    Raises:
        LocalError: the limit leaves too little.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    used = pages * resource.getpagesize() + OWN_BYTES
    most = (limit - used) // TAKEN_PER_BYTE
    if most < LEAST_HELD_BYTES:
        least = used + TAKEN_PER_BYTE * LEAST_HELD_BYTES
        found = f"the address space of this process may have {limit // MIB} MiB at most (`ulimit -v`)"
        raise LocalError(f"{found}; expected {math.ceil(least / MIB)} MiB at least, or no limit")
    return most
