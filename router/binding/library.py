"""Proton's C library, opened a second time, by cffi, with the declarations of `cdef.py`."""

from __future__ import annotations

from typing import Any, Final

import cproton_ffi

from router.binding.generated_declarations import ffi

__all__ = ["ffi", "lib"]

lib: Final[Any] = ffi.dlopen(cproton_ffi.__file__)
