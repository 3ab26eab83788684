"""Check whether a history of counters can be forecast from, before Spark is started.

Statistics in the files say of most of them that their values are sound; only of the others columns are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from mesh_config.findings import nearest
from router.whatif.forecasting.demand_history import COLUMNS, MOMENT, NUMBER, TEXT
from router.whatif.formats.history_file_names import history_files
from router.whatif.formats.parquet_file import parquet_metadata, parquet_schema, read_row_group
from router.whatif.pipeline.run_staging import RunError, run_error
from router.whatif.pipeline.table_layouts import ADDRESS_RATE

WRITTEN: Final = "a folder that `amqp-mesh whatif watch --addresses -o` writes"
UNKNOWN_SIZES: Final = "msg_bytes"
"""The column that may be null: what sent nothing has no size."""
SHOWN: Final = 5
"""Routers that are named."""


def check_history(history: Path, routers: Collection[str]) -> None:
    """Check the files of a history.

    Args:
        history: folder with the table `address_rate`.
        routers: of the model.
    Raises: RunError; ParquetFileError for a file that can't be read.
    """
    files = history_files(history / ADDRESS_RATE.name)
    if not files:
        raise _no_history(history)
    for file in files:  # of which there are few, since they are put together
        _check_columns(file)
    if not any(parquet_metadata(file).num_rows for file in files):
        raise run_error(history / ADDRESS_RATE.name, "the history is empty", WRITTEN)
    for file in files:
        for name, what in COLUMNS.items():
            _check_values(file, name, what)
    if not any(map(_has_totals, files)):
        expected = "for each interval of a router a row of all that entered there, whose `address` is the empty text"
        raise run_error(history / ADDRESS_RATE.name, "no row has an empty `address`", expected)
    _check_routers(history, files, routers)


def is_of(kind: pa.DataType, what: str) -> bool:
    """Whether a column may have what one of COLUMNS has.

    Args:
        kind: type of the column.
        what: one of those in COLUMNS.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if what == MOMENT:
        return bool(pa.types.is_timestamp(kind) and kind.tz is not None)
    if what == TEXT:
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def no_router_known(place: Path, found: Iterable[str], which: str = "its routers") -> RunError:
    """The error of a history that is about routers of another mesh.

    Args:
        place: of the history.
        found: ids of its routers.
        which: routers these are, in words.
    """
    names = sorted(found)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    message = f"none of {which} is in the model: {', '.join(f'`{name}`' for name in names[:SHOWN])}{more}"
    return run_error(place, message, "a history of the mesh that the model is of")


def _no_history(history: Path) -> RunError:
    message, expected = "it has no history of addresses", WRITTEN
    if any(history.glob("*.parquet")):
        message = "files of the table are there, and not its folder"
        expected = f"the folder in which the folder `{ADDRESS_RATE.name}` with these files is"
        if history.resolve().name == ADDRESS_RATE.name:
            message, expected = "it is the table itself", f"the folder above: {history.resolve().parent}"
    return run_error(history, message, expected)


def _check_columns(file: Path) -> None:
    """Check whether a file of a history has what is used of it. Raises: RunError, ParquetFileError."""
    schema = parquet_schema(file)
    is_empty = not parquet_metadata(file).num_rows
    others = [name for name in schema.names if name not in ADDRESS_RATE.names]
    for name in COLUMNS:
        if name not in schema.names:
            like = nearest(name, others)
            message = f"no column `{name}`" + (f", but `{like}`" if like else "")
            expected = f"the columns {', '.join(COLUMNS)}"
            raise run_error(file, message, expected, near=name if like else None)
    for name, what in COLUMNS.items():
        kind = schema.field(name).type
        if not is_of(kind, what):
            if is_empty:
                raise run_error(file, "the file is empty", f"rows with the columns {', '.join(COLUMNS)}")
            said = "has no values" if pa.types.is_null(kind) else f"is of type {kind}"
            raise run_error(file, f"column `{name}` {said}", what)


def _check_values(file: Path, name: str, what: str) -> None:
    """Refuse null, negative and infinite values. Raises: RunError that names the first row."""
    for group, first, statistics in _groups(file, name):
        if _is_sound(statistics, name, what):
            continue
        values = pa.chunked_array(read_row_group(file, group, name).columns[0].chunks)
        wrong = pc.is_null(values) if name != UNKNOWN_SIZES else pa.array([False] * len(values))
        if what == NUMBER:
            amounts = _amounts(values)
            is_amount = pc.and_(pc.greater_equal(amounts, 0.0), pc.is_finite(amounts))
            wrong = pc.or_(wrong, pc.fill_null(pc.invert(is_amount), fill_value=False))
        at = pc.index(wrong, pa.scalar(True)).as_py()
        if at >= 0:
            value = values[at].as_py()
            said = f"`{name}` is {'null' if value is None else value}"
            raise run_error(file, f"row {first + at}, counted from 0: {said}", _expected(name, what))


def _expected(name: str, what: str) -> str:
    if name == "address":
        return "an address, or the empty text in the row of all that entered at the router"
    return f"{what} from 0" if what == NUMBER else what


def _amounts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.float64())


def _is_sound(statistics: Any, name: str, what: str) -> bool:
    """Whether statistics of a part of a column say so."""
    if statistics is None or not statistics.has_null_count or (statistics.null_count and name != UNKNOWN_SIZES):
        return False
    # They leave out what is not a number.
    is_whole = statistics.physical_type in ("INT32", "INT64")
    return what != NUMBER or (is_whole and statistics.has_min_max and statistics.min >= 0)


def _groups(file: Path, name: str) -> Iterator[tuple[int, int, Any]]:
    """Number, first row, and statistics of a column, of each part of a file."""
    metadata, first = parquet_metadata(file), 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = (group.column(at) for at in range(group.num_columns))
        yield number, first, next(each.statistics for each in columns if each.path_in_schema == name)
        first += group.num_rows


def _has_totals(file: Path) -> bool:
    """Whether a row has an empty address."""
    for group, _, statistics in _groups(file, "address"):
        if statistics is not None and statistics.has_min_max:
            if statistics.min in ("", b""):
                return True
        elif "" in _texts(file, group, "address"):
            return True
    return False


def _check_routers(history: Path, files: Iterable[Path], routers: Collection[str]) -> None:
    """Refuse a history without any router of the model. Raises: RunError."""
    known, found = set(routers), set[str]()
    for file in files:
        for group, _, _ in _groups(file, "router"):
            found |= _texts(file, group, "router")
            if found & known:
                return
    raise no_router_known(history, found)


def _texts(file: Path, group: int, name: str) -> set[str]:
    return set(read_row_group(file, group, name).columns[0].unique().to_pylist())
