"""Models in folders."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from mesh_config.findings import SettingsError
from router.whatif.formats import model_folder
from router.whatif.model.mesh_model import Model, ModelError, without
from tests.helpers.examples import examples
from tests.whatif.models import models, square


@given(model=models())
@settings(max_examples=examples(30))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, model: Model) -> None:
    folder = tmp_path_factory.mktemp("store") / "model"
    model_folder.write_model(attrs.evolve(model, origin="somewhere"), folder)
    found = model_folder.read_model(folder)
    assert found == model
    assert (found.digest(), found.origin) == (model.digest(), "somewhere")


def test_a_model_takes_the_place_of_another_and_leaves_nothing_beside(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model_folder.write_model(square(), folder)
    smaller = without(square(), routers=["D"])
    model_folder.write_model(smaller, folder)
    assert model_folder.read_model(folder) == smaller
    assert list(tmp_path.iterdir()) == [folder]


def test_an_empty_folder_may_be_taken(tmp_path: Path) -> None:
    model_folder.write_model(square(), tmp_path)
    assert model_folder.read_model(tmp_path) == square()


def test_whatever_else_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("dear")
    (tmp_path / "file").write_text("x")
    for name in ("letters", "file"):
        with pytest.raises(ModelError, match="it exists and has other contents; expected a new folder"):
            model_folder.write_model(square(), tmp_path / name)
    assert (tmp_path / "letters" / "a.txt").read_text() == "dear"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "letters"]


def test_nothing_is_left_of_a_model_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "model"
    model_folder.write_model(square(), folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(OSError, match="No space left"):
            model_folder.write_model(without(square(), routers=["D"]), folder)
    assert model_folder.read_model(folder) == square()
    assert list(tmp_path.iterdir()) == [folder]
    with pytest.raises(ModelError):
        model_folder.write_model(attrs.evolve(square(), routers=()), folder)
    assert model_folder.read_model(folder) == square()


def test_the_demands_are_a_file_that_an_import_takes(tmp_path: Path) -> None:
    model_folder.write_model(square(), tmp_path)
    table = pq.read_table(tmp_path / "demands.parquet")
    assert table.column_names == ["src", "dst", "address", "msgs_per_s", "msg_bytes", "class"]
    assert table.to_pylist()[0] == {
        "src": "A",
        "dst": "C",
        "address": None,
        "msgs_per_s": 10.0,
        "msg_bytes": 100.0,
        "class": "default",
    }


def change_head(folder: Path, **values: object) -> None:
    head = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(head | values))


def test_a_model_from_before_costs_had_a_direction_is_read(tmp_path: Path) -> None:
    model_folder.write_model(square(), tmp_path)
    file = tmp_path / "links.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["cost_back"]), file)
    assert model_folder.read_model(tmp_path).links == square().links


def test_who_names_a_run_is_told_where_its_model_is(tmp_path: Path) -> None:
    model_folder.write_model(square(), tmp_path / "model")
    with pytest.raises(SettingsError, match=r"it is no model: .*; expected the model that is in it: ") as caught:
        model_folder.read_model(tmp_path)
    assert str(tmp_path / "model") in str(caught.value)


def test_who_names_a_file_of_a_mesh_is_told_how_to_make_a_model_of_it(tmp_path: Path) -> None:
    file = tmp_path / "my mesh.yaml"
    file.write_text("mesh: {name: small}", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        model_folder.read_model(file)
    expected = f"the folder of a model: `amqp-mesh whatif import '{file}' -o MODEL` makes one"
    assert str(caught.value).startswith(f"{file}: error: it is a file; expected {expected}")


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_who_names_nothing_is_told_that_nothing_is_there(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SettingsError, match=r"(no such folder|it is no model).*; expected a folder that `amqp-mesh "):
        model_folder.read_model(tmp_path / place)


def change_column(folder: Path, part: str, name: str, values: list[object]) -> None:
    """Write other values into the first rows of a column."""
    file = folder / f"{part}.parquet"
    table = pq.read_table(file)
    kind = table.schema.field(name).type if values == [None] else None
    column = pa.array(values * table.num_rows, kind)
    pq.write_table(table.set_column(table.column_names.index(name), name, column), file)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (
            lambda it: (it / "model.json").unlink(),
            "error: the model has no model.json; expected all of what `amqp-mesh whatif import` wrote",
        ),
        (lambda it: (it / "model.json").write_text("{"), "model.json: error: cannot be read"),
        (lambda it: (it / "model.json").write_text("[" * 100_000), "model.json: error: nested too deep"),
        (lambda it: (it / "model.json").write_text("[]"), "model.json: error: it is not what a model has"),
        (lambda it: change_head(it, format=99), "model.json: error: format 99, written by amqp-mesh"),
        (lambda it: change_head(it, name="other"), "its digest is another"),
        (lambda it: (it / "links.parquet").unlink(), "links.parquet: error: cannot be read: No such file"),
        (lambda it: (it / "links.parquet").write_bytes(b"PAR1"), "links.parquet: error: cannot be read: "),
        (
            lambda it: (it / "demands.parquet").write_bytes((it / "links.parquet").read_bytes()),
            "demands.parquet: error: column `src` is missing; it has id, a, b, ",
        ),
        (
            lambda it: (it / "links.parquet").write_bytes((it / "routers.parquet").read_bytes()),
            "links.parquet: error: column `a` is missing; it has id, site, ",
        ),
        (
            lambda it: change_column(it, "links", "a", [None]),
            "error: column `a` has no value in row 1; expected the links",
        ),
        (
            lambda it: change_column(it, "routers", "id", [{"x": 1}]),
            "error: column `id` is of the type struct<x: int64>, not",
        ),
        (
            lambda it: change_column(it, "links", "cost", ["dear"]),
            "error: column `cost` is of the type string, not int64;",
        ),
        (
            lambda it: change_column(it, "demands", "src", [None]),
            "error: column `src` has no value in row 1; expected the d",
        ),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path, spoil: object, expected: str) -> None:
    model_folder.write_model(square(), tmp_path)
    assert callable(spoil)
    spoil(tmp_path)
    with pytest.raises(SettingsError) as caught:
        model_folder.read_model(tmp_path)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
