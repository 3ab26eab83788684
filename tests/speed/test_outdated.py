"""pytest says which modules have to be compiled again, whichever of the files that Cython reads was changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers.outdated import outdated

SOURCES = {
    "__init__.py": "",
    "hot.py": "",
    "hot.pxd": "from {package}.functions cimport f\ncdef class Hot:\n    pass\n",
    "functions.pxd": 'include "generated.pxi"\n',
    "generated.pxi": "cdef extern from *:\n    int f()\n",
    "other.py": "",
    "other.pxd": "",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two modules, one of which uses declarations of others; they were compiled after all was written."""
    folder = tmp_path / "package"
    folder.mkdir()
    for name, text in SOURCES.items():
        (folder / name).write_text(text.format(package=folder.name))
        os.utime(folder / name, (1000, 1000))
    (folder / "library").touch()
    os.utime(folder / "library", (2000, 2000))
    return folder


def names(folder: Path) -> list[str]:
    return outdated({name: folder / f"{name}.py" for name in ("hot", "other")}, folder / "library")


def test_a_module_that_was_compiled_after_its_sources_is_up_to_date(package: Path) -> None:
    assert names(package) == []


@pytest.mark.parametrize("changed", ["hot.py", "hot.pxd", "functions.pxd", "generated.pxi"])
def test_a_module_is_outdated_when_a_file_that_it_is_compiled_from_has_changed(package: Path, changed: str) -> None:
    os.utime(package / changed, (3000, 3000))
    assert names(package) == ["hot"]
