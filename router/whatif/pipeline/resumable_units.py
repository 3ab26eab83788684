"""Played parts of an unfinished run: units of work that Spark has committed, and chunks that are files.

Either engine can go on with what the other one has left, since the rows are the same.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from router.whatif.formats.parquet_file import read_parquet
from router.whatif.pipeline.atomic_files import write_run_files
from router.whatif.pipeline.chunk_evaluator import BASE_LOADS, WORST_LOADS, OutputFile
from router.whatif.pipeline.chunk_files_as_rows import DATA, NAME, TABLE
from router.whatif.pipeline.run_storage import LocalStorage, RunStorage
from router.whatif.pipeline.table_files import COMMITTED, SUFFIX
from router.whatif.pipeline.table_layouts import ADDRESS_IMPACT, OF_LINKS, PAIR_IMPACT, SCENARIO, SCENARIO_LOAD
from router.whatif.scenarios.scenario_plan import Chunk

PLAYED: Final = "played"
"""Folder in that of the run with a folder for each unit."""
LEFT: Final = "left"
"""Folder in that of the run with the files of chunks, when Spark goes on with a run that the local engine began."""
TABLES: Final = (PAIR_IMPACT.name, SCENARIO_LOAD.name, ADDRESS_IMPACT.name, WORST_LOADS, BASE_LOADS, SCENARIO.name)
"""Tables of the scenarios, in the order in which they are written."""

_UNIT: Final = re.compile(r"unit=(\d+)-(\d+)")
_PART: Final = re.compile(r"part-(\d+)-\d+" + re.escape(SUFFIX))


@attrs.frozen
class ChunkRange:
    """A unit of work: consecutive chunks, by the numbers of the first and the last."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """Name of the folder of the unit."""
        return f"unit={self.first:07}-{self.last:07}"

    @classmethod
    def of_name(cls, name: str) -> ChunkRange | None:
        """Unit whose folder has this name; None for the name of any other folder."""
        match = _UNIT.fullmatch(name)
        return None if match is None else cls(int(match[1]), int(match[2]))


def committed_units(storage: RunStorage) -> list[ChunkRange]:
    """Units of a run that Spark has committed, by their first chunks."""
    found = (ChunkRange.of_name(name) for name in storage.children(PLAYED))
    units = [unit for unit in found if unit is not None and storage.exists(f"{PLAYED}/{unit.name}/{COMMITTED}")]
    return sorted(units, key=lambda unit: unit.first)


def chunks_in_units(storage: RunStorage) -> set[int]:
    """Numbers of the chunks that are in units of a run that Spark has committed."""
    return {number for unit in committed_units(storage) for number in range(unit.first, unit.last + 1)}


def chunks_in_files(folder: Path) -> set[int]:
    """Numbers of the chunks whose files the local engine has written into the run in *folder*, all of them."""
    places = (folder / SCENARIO.name, folder / LEFT / SCENARIO.name)
    names = (path.name for place in places for path in place.glob(f"part-*{SUFFIX}"))
    return {int(match[1]) for match in map(_PART.fullmatch, names) if match is not None}


def clear_uncommitted(storage: RunStorage) -> None:
    """Remove units that Spark has begun and not committed; it overwrites such tables itself."""
    for name in storage.children(PLAYED):
        if ChunkRange.of_name(name) is not None and not storage.exists(f"{PLAYED}/{name}/{COMMITTED}"):
            storage.remove(f"{PLAYED}/{name}")


def set_files_aside(folder: Path) -> None:
    """Put the files of chunks where tables that Spark makes aren't in their way."""
    for name in TABLES:
        for file in sorted((folder / name).glob(f"part-*{SUFFIX}")):
            if _PART.fullmatch(file.name):
                target = folder / LEFT / name / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)


def files_left(folder: Path, chunk: Chunk) -> Iterator[OutputFile]:
    """Read the files of a chunk that have been set aside. Yields what `Evaluator.evaluate` would."""
    for name in TABLES:
        for file in sorted((folder / LEFT / name).glob(f"part-{chunk.number:07}-*{SUFFIX}")):
            yield OutputFile(name=f"{name}/{file.name}", data=file.read_bytes())


def units_to_files(folder: Path) -> None:
    """Make files of chunks of what Spark has committed in the run in *folder*, for the local engine to go on."""
    storage = LocalStorage(folder)
    for name in (*TABLES, *(layout.name for layout in OF_LINKS)):
        # Tables of all of them, whole or not, which will be made again.
        for made in storage.children(name):
            if not _PART.fullmatch(made):
                storage.remove(f"{name}/{made}")
    for name in TABLES:
        for file in sorted((folder / LEFT / name).glob(f"*{SUFFIX}")):
            (folder / name).mkdir(exist_ok=True)
            file.replace(folder / name / file.name)
    for unit in committed_units(storage):
        place = folder / PLAYED / unit.name
        for name in TABLES:
            for file in sorted((place / f"{TABLE}={name}").glob(f"*{SUFFIX}")):
                rows = read_parquet(file, [NAME, DATA]).to_pylist()
                write_run_files(folder, (OutputFile(name=row[NAME], data=row[DATA]) for row in rows))
        shutil.rmtree(place)
