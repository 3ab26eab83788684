"""Compiles the hot path with Cython: every module of `router` that has a `.pxd` beside it (see `router/speed.py`).

Where no C compiler works the wheel is built without: the same modules then run interpreted, slower. With
AMQP_MESH_SPEED=compiled that is an error instead; with AMQP_MESH_SPEED=interpreted nothing is compiled. Everything else
about the package stands in pyproject.toml.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

OPTIONS = {
    "language_level": 3,
    "annotation_typing": False,  # types of the compiled code stand in the .pxd alone
    "embedsignature": True,
    "initializedcheck": False,
    "wraparound": True,
    "profile": bool(os.environ.get("AMQP_MESH_PROFILE")),
}
SPEED = os.environ.get("AMQP_MESH_SPEED")
# Sanitizers and the like; see CONTRIBUTING.md.
FLAGS = os.environ.get("AMQP_MESH_CFLAGS", "-O2 -g0").split()
# Newer compilers take it for an error whatever they are told.
STRICT = ["-Werror=incompatible-pointer-types"]
# What was compiled in another way must not be taken for up to date.
IS_USUAL = "AMQP_MESH_CFLAGS" not in os.environ and not OPTIONS["profile"]
FOLDER = "build" if IS_USUAL else f"build/{zlib.crc32(repr((FLAGS, OPTIONS)).encode()):08x}"

# As in router/speed.py.
DECLARATIONS = (
    "byte_stream_limits",
    "c_arrays",
    "epoll",
    "guard_constants",
    "proton_functions",
    "section_codes",
    "transfer_stages",
)

modules = [path.with_suffix(".py") for path in sorted(Path("router").rglob("*.pxd")) if path.stem not in DECLARATIONS]
extensions = [
    Extension(
        ".".join(path.with_suffix("").parts),
        [str(path)],
        extra_compile_args=[*FLAGS, *STRICT],
        extra_link_args=[flag for flag in FLAGS if flag.startswith("-fsanitize")],
    )
    for path in modules
    if SPEED != "interpreted"
]
# The C, where scripts/build-wheel builds for several Pythons: it is the same for each.
SHARED = Path("build/shared")
if (SHARED / "complete").exists():
    compiled = extensions
    for extension in compiled:
        extension.sources = [str(SHARED / Path(source).with_suffix(".c")) for source in extension.sources]
else:
    in_c = str(SHARED) if SHARED.exists() else f"{FOLDER}/cython"
    compiled = cythonize(extensions, compiler_directives=OPTIONS, build_dir=in_c, nthreads=os.cpu_count())
    if SHARED.exists():
        (SHARED / "complete").touch()
for extension in compiled:
    extension.optional = SPEED != "compiled"  # cythonize doesn't hand it on
setup(ext_modules=compiled, options={"build": {"build_base": FOLDER}, "build_ext": {"parallel": os.cpu_count()}})
