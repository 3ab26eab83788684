"""Proton's C library, opened a second time, by cffi, with the declarations of `cdef.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import cproton_ffi

from router.binding.generated_declarations import ffi

__all__ = ["ffi", "has_assertions", "lib"]

lib: Final[Any] = ffi.dlopen(cproton_ffi.__file__)

FAILED_ASSERTION: Final = b"__assert_"
"""Prefix of the name of the function that the C library calls when an assertion fails."""


def has_assertions() -> bool:
    """Whether proton was compiled with its assertions: what one of them denies ends the process."""
    return FAILED_ASSERTION in Path(cproton_ffi.__file__).read_bytes()
