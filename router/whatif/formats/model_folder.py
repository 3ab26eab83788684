"""A model as a folder: `model.json`, which says what it is, and a Parquet file for each part.

A folder appears whole or not at all: it is written beside its place and then renamed.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mesh_config.findings import Finding
from mesh_config.models import Treatment
from mesh_config.value_rules import fields_of, kind_of
from mesh_config.yaml_text import Place
from router import __version__
from router.whatif.formats.csv_parquet import numbered
from router.whatif.formats.folder_replacement import place_of, replace_folder
from router.whatif.formats.input_file import in_file
from router.whatif.formats.parquet_file import ParquetFileError, read_parquet
from router.whatif.model.demands import NOBODY, Demands
from router.whatif.model.elements import (
    AddressNode,
    Group,
    GroupKind,
    LinkCounter,
    LinkEdge,
    RouterNode,
    SubscriberSite,
)
from router.whatif.model.mesh_model import Model, ModelError

FORMAT: Final = 1
HEAD: Final = "model.json"
PARTS: Final[Mapping[str, type[attrs.AttrsInstance]]] = {
    "routers": RouterNode,
    "links": LinkEdge,
    "addresses": AddressNode,
    "subscribers": SubscriberSite,
    "groups": Group,
    "counters": LinkCounter,
}
"""Parts of a model with a row for each object; the demands are columns already."""

DEMAND_SCHEMA: Final = pa.schema(
    [
        pa.field("src", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("dst", pa.dictionary(pa.int32(), pa.string())),
        pa.field("address", pa.dictionary(pa.int32(), pa.string())),
        pa.field("msgs_per_s", pa.float64(), nullable=False),
        pa.field("msg_bytes", pa.float64(), nullable=False),
        pa.field("class", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    ]
)
"""Schema of demands, as in a file of demands."""
WRITTEN: Final = "a folder that `amqp-mesh whatif import` or `snapshot` wrote"
OTHERS: Final = ("model", "expected", "high")
"""Folders of models in what isn't one: in that of a run, and of a forecast."""
LATER: Final = frozenset({"cost_back"})
"""Columns that models of this format had not from the beginning."""
_TYPES: Final = {str: pa.string(), int: pa.int64(), float: pa.float64(), Treatment: pa.string(), GroupKind: pa.string()}


def write_model(model: Model, folder: str | os.PathLike[str]) -> None:
    """Write a model, in place of the one that is there already.

    Raises:
        ModelError: the model can't be used, or the place is taken by something that is no model.
        OSError: it can't be written, and is named; nothing of it is left then.
    """
    model.check()
    target = place_of(Path(folder))
    check_model_place(target)
    beside = target.parent / f".{target.name}.{secrets.token_hex(4)}"
    beside.mkdir(parents=True)
    try:
        for part in PARTS:
            pq.write_table(_table(part, getattr(model, part)), beside / f"{part}.parquet")
        pq.write_table(demand_table(model.demands), beside / "demands.parquet")
        head = {
            "format": FORMAT,
            "name": model.name,
            "origin": model.origin,
            "sha256": model.digest(),
            "version": __version__,
            "counts": {part: len(getattr(model, part)) for part in (*PARTS, "demands")},
        }
        (beside / HEAD).write_text(json.dumps(head, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        replace_folder(beside, target)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
            error.filename = str(target)  # a full disk names none
        raise


def check_model_place(folder: str | os.PathLike[str]) -> None:
    """Check whether a model may have a place. Raises: ModelError when something that is no model has it."""
    target = Path(folder)
    if target.exists() and not (target / HEAD).is_file() and not _is_empty(target):
        message = "it exists and has other contents"
        raise ModelError([_place(target).finding(message, expected="a new folder, or a model to replace")])


def read_model(folder: str | os.PathLike[str]) -> Model:
    """The model in a folder.

    Raises: ModelError when there is none, or it isn't what was written.
    """
    target = Path(folder)
    head = _head(target)
    try:
        parts = {part: list(_objects(_part(target, part), cls)) for part, cls in PARTS.items()}
        demands = _demands(_part(target, "demands"))
    except ParquetFileError as error:
        raise ModelError(error.findings) from error
    except (pa.ArrowException, TypeError, ValueError) as error:
        message = f"the model can't be read: {error}".splitlines()[0]
        raise ModelError([_place(target).finding(message, expected="what `whatif import` wrote")]) from error
    model = Model(name=str(head["name"]), origin=str(head["origin"]), demands=demands, **parts)
    try:
        model.check()
    except ModelError as error:
        raise ModelError(in_file(error.findings, target)) from error
    if model.digest() != head["sha256"]:
        message = "the model is not the one that was written: its digest is another"
        raise ModelError([_place(target / HEAD).finding(message, expected=str(head["sha256"]))])
    return model


def demand_table(demands: Demands) -> pa.Table:
    """Demands with the columns that a file of demands has."""
    names = pa.array(demands.names, pa.string())

    def texts(numbers: NDArray[np.int32]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers == NOBODY), names)

    columns = [
        texts(demands.src),
        texts(demands.dst),
        texts(demands.address),
        pa.array(demands.msgs_per_s),
        pa.array(demands.msg_bytes),
        texts(demands.klass),
    ]
    return pa.Table.from_arrays(columns, schema=DEMAND_SCHEMA)


def _demands(table: pa.Table) -> Demands:
    numbers: dict[str, int] = {}

    def number(text: str | None) -> int:
        return NOBODY if text is None else numbers.setdefault(text, len(numbers))

    found = {name: table.column(name).combine_chunks() for name in DEMAND_SCHEMA.names}
    columns = [numbered(found[name], number) for name in ("src", "dst", "address", "class")]
    amounts = {name: found[name].to_numpy() for name in ("msgs_per_s", "msg_bytes")}
    return Demands.of_columns(tuple(numbers), *columns, **amounts)


def _table(part: str, items: tuple[attrs.AttrsInstance, ...]) -> pa.Table:
    schema = _schema(part)
    columns = [pa.array([getattr(item, name) for item in items], schema.field(name).type) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def _schema(part: str) -> pa.Schema:
    if part not in PARTS:
        return DEMAND_SCHEMA
    fields = fields_of(PARTS[part])
    return pa.schema([pa.field(field.name, _type(field), nullable=_is_optional(field)) for field in fields])


def _part(folder: Path, part: str) -> pa.Table:
    """Read the table of a part. Raises: ParquetFileError; ModelError when a column is missing, or is another one."""
    file = folder / f"{part}.parquet"
    table = read_parquet(file)
    faults = [fault for field in _schema(part) if (fault := _fault_of(table, field)) is not None]
    if faults:
        raise ModelError([_place(file).finding(faults[0], expected=f"the {part}, as `whatif import` wrote them")])
    return table


def _fault_of(table: pa.Table, wanted: pa.Field) -> str | None:
    """The fault of the column of *table* that is to be as *wanted*; None where there is none."""
    name = wanted.name
    if name not in table.column_names:
        has = f"column `{name}` is missing; it has {', '.join(table.column_names)}"
        return None if name in LATER else has
    column = table.column(name)
    if column.null_count and not wanted.nullable:
        return f"column `{name}` has no value in row {column.is_null().to_pylist().index(True) + 1}"
    try:
        column.cast(wanted.type)
    except pa.ArrowException:
        return f"column `{name}` is of the type {column.type}, not {wanted.type}"
    return None


def _objects(table: pa.Table, cls: type[attrs.AttrsInstance]) -> Iterator[Any]:
    fields = {field.name: kind_of(field.type) for field in fields_of(cls)}
    for row in table.to_pylist():
        values = {name: row[name] for name in fields if name in row or name not in LATER}
        for name, kind in fields.items():
            if name not in values:
                continue
            if kind.is_list:
                values[name] = tuple(values[name])
            elif kind.base in (Treatment, GroupKind):
                values[name] = kind.base(values[name])
        yield cls(**values)


def _type(field: attrs.Attribute[Any]) -> pa.DataType:
    kind = kind_of(field.type)
    return pa.list_(_TYPES[kind.base]) if kind.is_list else _TYPES[kind.base]


def _is_optional(field: attrs.Attribute[Any]) -> bool:
    return kind_of(field.type).is_optional


def _head(folder: Path) -> dict[str, Any]:
    """Read `model.json`. Raises: ModelError."""
    place = _place(folder / HEAD)
    if folder.is_file():
        command = f"amqp-mesh whatif import {shlex.quote(str(folder))} -o MODEL"
        expected = f"the folder of a model: `{command}` makes one of a file of a mesh"
        raise ModelError([_place(folder).finding("it is a file", expected=expected)])
    try:
        head = json.loads((folder / HEAD).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError([_no_model(folder)]) from error
    except OSError as error:
        raise ModelError([place.finding(f"cannot be read: {error.strerror or error}")]) from error
    except ValueError as error:
        raise ModelError([place.finding(f"cannot be read: {error}", expected="JSON")]) from error
    except RecursionError as error:
        raise ModelError([place.finding("nested too deep", expected="what a model has")]) from error
    needed = {"format", "name", "origin", "sha256"}
    if not isinstance(head, dict) or not needed <= set(head):
        raise ModelError([place.finding("it is not what a model has", expected=", ".join(sorted(needed)))])
    if head["format"] != FORMAT:
        message = f"format {head['format']}, written by amqp-mesh {head.get('version')}"
        raise ModelError([place.finding(message, expected=f"format {FORMAT}: import the model again")])
    return head


def _no_model(folder: Path) -> Finding:
    """Say which part of a model is missing in a folder, or where the model of a run or a forecast lies."""
    place = _place(folder)
    if not folder.exists():
        return place.finding("no such folder", expected=WRITTEN)
    others = [each for each in OTHERS if (folder / each / HEAD).is_file()]
    if others:
        there = " or ".join(str(folder / each) for each in others)
        return place.finding(f"it is no model: it has no {HEAD}", expected=f"the model that is in it: {there}")
    if any((folder / f"{part}.parquet").is_file() for part in PARTS):
        return place.finding(f"the model has no {HEAD}", expected="all of what `amqp-mesh whatif import` wrote")
    return place.finding(f"it is no model: it has no {HEAD}", expected=WRITTEN)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def _place(path: Path) -> Place:
    return Place(file=str(path), line=None, path=())
