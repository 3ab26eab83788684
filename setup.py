"""Compiles the hot path with Cython: every module of `router` that has a `.pxd` beside it (see `router/speed.py`).

All of them are linked into one library, which takes less memory than one of each.

Where no C compiler works the wheel is built without: the same modules then run interpreted, slower. With
AMQP_MESH_SPEED=compiled that is an error instead; with AMQP_MESH_SPEED=interpreted nothing is compiled. Everything else
about the package stands in pyproject.toml.
"""

from __future__ import annotations

import os
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer

OPTIONS = {
    "language_level": 3,
    "annotation_typing": False,  # types of the compiled code stand in the .pxd alone
    "embedsignature": True,
    "emit_code_comments": False,
    "initializedcheck": False,
    "wraparound": True,
    "profile": bool(os.environ.get("AMQP_MESH_PROFILE")),
}
SPEED = os.environ.get("AMQP_MESH_SPEED")
# Sanitizers and the like; see CONTRIBUTING.md.
FLAGS = os.environ.get("AMQP_MESH_CFLAGS", "-O2 -g0").split()
# As Python itself is compiled: setuptools leaves it out where the environment has CFLAGS.
ALWAYS = ["-DNDEBUG", "-fwrapv"]
# Newer compilers take it for an error whatever they are told.
STRICT = ["-Werror=incompatible-pointer-types"]
# What was compiled in another way must not be taken for up to date.
IS_USUAL = "AMQP_MESH_CFLAGS" not in os.environ and not OPTIONS["profile"]
FOLDER = "build" if IS_USUAL else f"build/{zlib.crc32(repr((FLAGS, OPTIONS)).encode()):08x}"

# As in router/speed.py.
LIBRARY = "router._compiled"
DECLARATIONS = (
    "byte_stream_limits",
    "c_arrays",
    "epoll",
    "guard_constants",
    "proton_functions",
    "section_codes",
    "transfer_stages",
)


class BuildWhatIsThere(build_py):
    """Copies the packages into a new folder: pip builds in the clone, where modules of an earlier version may lie."""

    def run(self) -> None:
        """See `build_py`."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildOneLibrary(build_ext):
    """Compiles the modules of a library side by side, those that have changed, and links them all."""

    def build_extensions(self) -> None:
        """See `build_ext`."""
        compile_all = self.compiler.compile

        def compile_changed(sources: list[str], output_dir: str, **options: object) -> list[str]:
            made = self.compiler.object_filenames(sources, output_dir=output_dir)
            changed = [source for source, item in zip(sources, made, strict=True) if self.force or newer(source, item)]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(lambda source: compile_all([source], output_dir=output_dir, **options), changed))
            return made

        self.compiler.compile = compile_changed
        super().build_extensions()


modules = [path.with_suffix(".py") for path in sorted(Path("router").rglob("*.pxd")) if path.stem not in DECLARATIONS]
# The C, where scripts/build-wheel builds for several Pythons: it is the same for each.
SHARED = Path("build/shared")
in_c = SHARED if SHARED.exists() else Path(FOLDER, "cython")
if SPEED != "interpreted" and not (SHARED / "complete").exists():
    extensions = [Extension(".".join(path.with_suffix("").parts), [str(path)]) for path in modules]
    cythonize(extensions, compiler_directives=OPTIONS, build_dir=str(in_c), nthreads=os.cpu_count())
    if SHARED.exists():
        (SHARED / "complete").touch()
library = Extension(
    LIBRARY,
    [str(in_c / path.with_suffix(".c")) for path in modules],
    extra_compile_args=[*ALWAYS, *FLAGS, *STRICT],
    extra_link_args=[flag for flag in FLAGS if flag.startswith("-fsanitize")],
    optional=SPEED != "compiled",
)
setup(
    ext_modules=[] if SPEED == "interpreted" else [library],
    cmdclass={"build_py": BuildWhatIsThere, "build_ext": BuildOneLibrary},
    options={"build": {"build_base": FOLDER}},
)
