"""Whether the folder of a run has all that was written into it: a run of which a part is missing answers wrongly.

The table `run` has the number of scenarios and, in the metadata of its file, the number of rows of every table. The
ends of the other files say how many rows are there, so nothing else of them is read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from router.whatif.formats.parquet_file import parquet_schema, read_parquet
from router.whatif.pipeline.table_files import SUFFIX, files_of, read_table, row_count
from router.whatif.pipeline.table_layouts import LAYOUTS, OF_LINKS, OF_SCENARIOS, RUN, SCENARIO, TableError

ROWS: Final = b"rows"
"""Key of the metadata with the number of rows by table. Runs of versions before it have only that of scenarios."""
LEFT: Final = "left.json"
"""File in a copy of a run with the names of the tables that were not copied."""
SUMMARY: Final = "summary.json"
WHOLE: Final = "all of what `amqp-mesh whatif run` wrote: copy the whole folder, or run again"


def write_row_counts(folder: Path) -> None:
    """Note in the table `run` how many rows each table of a run has, when all of them are there."""
    (file,) = files_of(folder, RUN.name)
    table = read_parquet(file)
    counts = {name: row_count(folder, name) for name in LAYOUTS if (folder / name).is_dir()}
    metadata = {**(table.schema.metadata or {}), ROWS: json.dumps(counts).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), file)


def write_left(folder: Path, names: Sequence[str]) -> None:
    """Note in a copy of a run which tables were not copied."""
    (folder / LEFT).write_text(json.dumps(list(names)), encoding="utf-8")


def has_tables(folder: Path) -> bool:
    """Whether there are tables that only the folder of a run has."""
    # A folder in which runs lie may have one with the name of a table.
    return any((folder / RUN.name).glob(f"*{SUFFIX}")) or any(
        any((folder / layout.name).glob(f"{pattern}{SUFFIX}"))
        for layout in (*OF_SCENARIOS, *OF_LINKS)
        for pattern in ("*", "variant=*/*", "variant=*/family=*/*")
    )


def check_complete(folder: Path) -> None:
    """Compare the rows that the tables of a run have with those that were written.

    Raises: TableError that names the first table that is missing, or has other rows
    """
    left = json.loads((folder / LEFT).read_text(encoding="utf-8")) if (folder / LEFT).is_file() else ()
    for name, wanted in _row_counts(folder).items():
        if name in left:
            continue
        what = "scenarios" if name == SCENARIO.name else "rows"
        try:
            count = row_count(folder, name)
        except TableError:
            raise TableError(f"{folder / name}: no such table, which had {wanted:,} {what}; expected {WHOLE}") from None
        if count != wanted:
            raise TableError(f"{folder / name}: {count:,} of {wanted:,} {what} are there; expected {WHOLE}")


def _row_counts(folder: Path) -> Mapping[str, int]:
    """Rows that each table had when it was written, by the table `run`."""
    if not any((folder / RUN.name).glob(f"*{SUFFIX}")):
        said = _summed_up(folder)
        had = "" if said is None else f"; {SUMMARY} says that the run has {said:,} scenarios"
        raise TableError(f"{folder / RUN.name}: no such table{had}; expected {WHOLE}")
    rows = read_table(folder, RUN.name, ["scenarios"]).to_pylist()
    if len(rows) != 1:
        raise TableError(f"{folder / RUN.name}: {len(rows)} rows; expected one")
    metadata = parquet_schema(files_of(folder, RUN.name)[0]).metadata or {}
    counts: dict[str, int] = json.loads(metadata.get(ROWS, b"{}"))
    known = {name: count for name, count in counts.items() if name in LAYOUTS}  # a later version may have others
    return {SCENARIO.name: rows[0]["scenarios"], **known}


def _summed_up(folder: Path) -> int | None:
    """The number of scenarios in the summary of a run; None where it doesn't say."""
    try:
        return int(json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["run"]["scenarios"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
