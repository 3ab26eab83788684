"""Proton's C library, opened a second time, by cffi, with the declarations of `cdef.py`."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import cproton_ffi

from router.binding.generated_declarations import ffi

# Compiled modules look for proton's functions among those that are visible in the whole process.
ctypes.CDLL(cproton_ffi.__file__, mode=ctypes.RTLD_GLOBAL)

__all__ = ["ffi", "lib"]

lib: Final[Any] = ffi.dlopen(cproton_ffi.__file__)
