"""Writes what follows from the table of proton's functions (`cdef.py`): `python -m router.binding.generate`.

`generated_functions.py` has a name for each function, for interpreted code; `generated_declarations.py` has the table
as cffi reads it without a parser of C, which would take each start 30 ms and 2 MB; `generated_functions.pxi` declares
them for compiled modules, once to the C compiler and once to Cython, and is a part of `proton_functions.pxd`. All are
kept with the sources; a test compares them with the table.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Final

import cffi
from cffi.recompiler import make_py_source

from router.binding.cdef import PROTON

FOLDER: Final = Path(__file__).parent
_PROTOTYPE: Final = re.compile(r"^(.+?)(pni?_\w+)\((.*)\);$", re.MULTILINE)
_STRUCTS: Final = ("pn_bytes_t", "pn_delivery_tag_t")

_HEAD: Final = "Generated from cdef.py by `python -m router.binding.generate`: change that file, not this one."

_TITLE: Final = (
    "# Proton's functions, as compiled modules call them; those that pass structs or varying arguments are C's alone."
)

_PYTHON: Final = '''"""Proton's functions under their own names, as interpreted code calls them.

{head}
"""

from __future__ import annotations

from typing import Any, Final

from router.binding.library import lib

{functions}
'''

_CYTHON: Final = '''{title}
# {head}

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdbool.h>
    #include <stdint.h>
    #include <sys/types.h>

{prototypes}
    """
{functions}
'''


def prototypes() -> list[tuple[str, str, list[str]]]:
    """The table's functions: result, name, arguments, as C has them."""
    return [
        (result.strip(), name, [] if arguments == "void" else arguments.split(", "))
        for result, name, arguments in _PROTOTYPE.findall(PROTON)
    ]


def python() -> str:
    """The text of `generated_functions.py`."""
    lines = [f"{name}: Final[Any] = lib.{name}" for _, name, _ in prototypes()]
    return _PYTHON.format(head=_HEAD, functions="\n".join(lines))


def declarations() -> str:
    """The text of `generated_declarations.py`."""
    ffi = cffi.FFI()
    ffi.cdef(PROTON)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "declarations.py"
        make_py_source(ffi, "router.binding.generated_declarations", str(file))
        _, _, text = file.read_text(encoding="utf-8").partition("\n")
    return f"# {_HEAD}\n{text}"


def cython() -> str:
    """The text of `generated_functions.pxi`."""
    # With its typedefs: C needs those of structs; all others are numbers there as in Cython.
    table = "\n".join(f"    {line}" if line else "" for line in PROTON.strip().splitlines())
    return _CYTHON.format(
        title=_TITLE,
        head=_HEAD,
        prototypes=table,
        functions="\n".join(
            f"    {_result(result)}{name}({', '.join(map(_argument, arguments))}) noexcept"
            for result, name, arguments in prototypes()
            if not {result, *arguments} & {*_STRUCTS, "..."}
        ),
    )


def _result(kind: str) -> str:
    # Signed, so that differences of sizes can be negative.
    kind = "Py_ssize_t" if kind == "size_t" else _argument(kind)
    return kind if kind.endswith("*") else f"{kind} "


def _argument(kind: str) -> str:
    if re.fullmatch(r"pn_\w+_t|uintptr_t", kind):
        return "Handle"
    return {"bool": "bint", "ssize_t": "Py_ssize_t"}.get(kind, kind)


def main() -> None:
    """Write the files."""
    (FOLDER / "generated_declarations.py").write_text(declarations(), encoding="utf-8")
    (FOLDER / "generated_functions.py").write_text(python(), encoding="utf-8")
    (FOLDER / "generated_functions.pxi").write_text(cython(), encoding="utf-8")


if __name__ == "__main__":
    main()
