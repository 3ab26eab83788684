"""Demands from tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from mesh_config.findings import SettingsError
from mesh_config.models import Treatment
from router.whatif.formats import csv_parquet, model_folder
from router.whatif.formats.demand_file import with_demand_file
from router.whatif.formats.mesh_settings import built_in_treatment
from router.whatif.model.demands import Demand
from router.whatif.model.mesh_model import Model, with_demands
from tests.helpers.examples import examples
from tests.whatif.models import models, square

HEAD = "src,dst,address,msgs_per_s,msg_bytes,class\n"


def read(file: Path, model: Model | None = None) -> tuple[Model, list[str]]:
    found, warnings = with_demand_file(model or square(), file, built_in_treatment)
    return found, [str(finding).removeprefix(str(file)) for finding in warnings]


def of_csv(tmp_path: Path, text: str, model: Model | None = None) -> tuple[Model, list[str]]:
    file = tmp_path / "demands.csv"
    file.write_text(text, encoding="utf-8")
    return read(file, model)


def of_parquet(tmp_path: Path, table: dict[str, Any]) -> tuple[Model, list[str]]:
    file = tmp_path / "demands.parquet"
    pq.write_table(pa.table(table), file)
    return read(file)


def faults(tmp_path: Path, text: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        of_csv(tmp_path, text)
    return [str(finding).removeprefix(f"{tmp_path}/demands.csv") for finding in caught.value.findings]


def test_rows_of_csv_take_the_place_of_the_demands(tmp_path: Path) -> None:
    text = (
        "\ufeffsrc, class ,dst,address,msg_bytes,msgs_per_s\r\n"
        "A,rpc,B,,100,2.5\r\n"
        "\r\n"
        '"A",,,"/orders",1e3,1\r\n'
        " C ,,D,,0,0"
    )
    model, warnings = of_csv(tmp_path, text)
    assert list(model.demands) == [
        Demand(src="A", address="orders", msgs_per_s=1.0, msg_bytes=1000.0),
        Demand(src="A", dst="B", msgs_per_s=2.5, msg_bytes=100.0, klass="rpc"),
        Demand(src="C", dst="D", msgs_per_s=0.0, msg_bytes=0.0),
    ]
    assert warnings == []


def test_columns_that_nobody_needs_may_be_absent(tmp_path: Path) -> None:
    model, _ = of_csv(tmp_path, "src,dst,msgs_per_s,msg_bytes\nA,B,1,2\n")
    assert list(model.demands) == [Demand(src="A", dst="B", msgs_per_s=1.0, msg_bytes=2.0)]
    empty, _ = of_csv(tmp_path, HEAD)
    assert len(empty.demands) == 0


def test_the_diagonal_of_a_matrix_is_left_out(tmp_path: Path) -> None:
    model, _ = of_csv(tmp_path, HEAD + "A,A,,0,1,\nA,B,,1,1,\n")
    assert len(model.demands) == 1


def test_parquet_may_have_any_type_of_number_and_text(tmp_path: Path) -> None:
    model, _ = of_parquet(
        tmp_path,
        {
            "src": pa.array(["A", "B", "A"]).dictionary_encode(),
            "address": pa.array(["orders", "orders", None], pa.large_string()),
            "dst": pa.array([None, None, "D"], pa.string()),
            "msgs_per_s": pa.array([1, 2, 3], pa.int16()),
            "msg_bytes": pa.array([1.5, 2.5, 3.5], pa.float32()),
        },
    )
    assert [(it.src, it.dst, it.address, it.msgs_per_s, it.msg_bytes, it.klass) for it in model.demands] == [
        ("A", None, "orders", 1.0, 1.5, "default"),
        ("A", "D", None, 3.0, 3.5, "default"),
        ("B", None, "orders", 2.0, 2.5, "default"),
    ]


@given(model=models())
@settings(max_examples=examples(30))
def test_both_forms_give_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, model: Model) -> None:
    folder = tmp_path_factory.mktemp("demands")
    table = model_folder.demand_table(model.demands)
    pq.write_table(table, folder / "x.parquet")
    (folder / "x.csv").write_text(
        HEAD
        + "".join(",".join("" if it is None else str(it) for it in row.values()) + "\n" for row in table.to_pylist())
    )
    bare = with_demands(model, ())
    for file in (folder / "x.parquet", folder / "x.csv"):
        assert read(file, bare)[0] == model


def test_new_addresses_get_a_treatment_and_a_warning(tmp_path: Path) -> None:
    model, warnings = of_csv(tmp_path, HEAD + "A,,broadcast/x,1,1,\nA,,order,1,1,\nA,,orders,1,1,\n")
    assert {it.text: it.treatment for it in model.addresses} == {
        "broadcast/x": Treatment.MULTICAST,
        "order": Treatment.BALANCED,
        "orders": Treatment.CLOSEST,
    }
    assert warnings == [
        ":2: warning: address: address `broadcast/x` has no subscriber",
        ":3: warning: address: address `order` has no subscriber; did you mean `orders`?",
    ]


def test_a_demand_too_small_to_count_is_told(tmp_path: Path) -> None:
    words = "counts as 0{}: rates are whole millionths of messages/s"
    _, warnings = of_csv(tmp_path, HEAD + "A,B,,1e-6,1,\nA,B,,1e-7,1,\nB,A,,0,1,\n")
    assert warnings == [f":3: warning: msgs_per_s: 1e-07 {words.format('')}"]
    _, warnings = of_csv(tmp_path, HEAD + "A,B,,1e-7,1,\n" * 3)
    assert warnings == [f":2: warning: msgs_per_s: 1e-07 {words.format(', as in 2 rows more')}"]


RATE = "expected a number from 0 to 1000000000000 (messages/s)"
SIZE = "expected a number from 0 to 1000000000000 (bytes)"


def test_all_faults_are_told_with_their_lines(tmp_path: Path) -> None:
    text = HEAD + (
        "A,B,,10,100,rpc\n"
        "\n"
        "a,B,,x,100,\n"
        '"A\n",b,,1,-100,\n'
        "E,B,orders,,100,x\n"
        "E,,,nan,100,x\n"
        "A,B\n"
        ",C,,inf,1_0,\n"
        "A,A,,1,0x10,\n"
    )
    assert faults(tmp_path, text) == [
        ":4: error: msgs_per_s: the text \"x\"; " + RATE,
        ":4: error: src: no router `a`; expected a router of the model; did you mean `A`?",
        ":5: error: dst: no router `b`; expected a router of the model; did you mean `B`?",
        ":5: error: msg_bytes: -100.0 is out of range; " + SIZE,
        ":7: error: dst: there is an `address` too; expected one of them",
        ":7: error: msgs_per_s: nothing; " + RATE,
        ":7: error: src: no router `E`, in 2 rows; expected a router of the model",
        ":8: error: dst: neither `dst` nor `address`; expected one of them",
        ':8: error: msgs_per_s: the text "nan"; ' + RATE,
        ":9: error: 2 values; expected 6: src, dst, address, msgs_per_s, msg_bytes, class",
        ":10: error: msg_bytes: the text \"1_0\"; " + SIZE,
        ':10: error: msgs_per_s: the text "inf"; ' + RATE,
        ":10: error: src: nothing; expected a router of the model",
        ":11: error: dst: where the messages come from; expected another router",
        ":11: error: msg_bytes: the text \"0x10\"; " + SIZE,
    ]  # fmt: skip


def test_rows_of_parquet_are_told_by_number(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        of_parquet(
            tmp_path, {"src": ["A", "X"], "dst": ["B", "B"], "msgs_per_s": [1.0, None], "msg_bytes": [1.0, -1.0]}
        )
    assert [str(it).removeprefix(f"{tmp_path}/demands.parquet: error: ") for it in caught.value.findings] == [
        "msg_bytes: row 2: -1.0 is out of range; " + SIZE,
        "msgs_per_s: row 2: nothing; " + RATE,
        "src: row 2: no router `X`; expected a router of the model",
    ]


def test_of_many_faults_the_first_are_told_and_all_counted(tmp_path: Path) -> None:
    told = faults(tmp_path, HEAD + "A,B,,-1,1,\n" * 50 + "A\n" * 30)
    assert len(told) == 42
    assert [line for line in told if not line.startswith((":2", ":3", ":4", ":5", ":6", ":7", ":8", ":9", ":1"))] == [
        (
            ": error: 30 rows of another length, the first 20 are shown; expected 6: src, dst, address, msgs_per_s,"
            " msg_bytes, class"
        ),
        f": error: 50 rows have such a `msgs_per_s`, the first 20 are shown; {RATE}",
    ]


def test_a_quotation_mark_that_nothing_closes_is_told_with_its_line(tmp_path: Path) -> None:
    words = (
        ":3: error: a value of more than 131072 characters; expected a shorter one, or the quotation mark that ends it"
    )
    assert words in faults(tmp_path, HEAD + "A,B,,1,1,\n" + 'A,"B,1,100\n' + "A,B,,1,100,x\n" * 30_000)
    told = faults(tmp_path, HEAD + "A,B,,1,1,\n" + f"A,B,,1,1,{'x' * 131_073}\nE,B,,1,1,\n")
    assert words in told
    assert ": error: src: row 3: no router `E`; expected a router of the model" in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1: error: the file is empty; expected the columns src, msgs_per_s, msg_bytes"),
        ("src\tdst\n", ":1: error: `tab` between the columns; expected commas"),
        ("src,dst,msgs_per_s,msg_byte\n", (":1: error: unknown column `msg_byte`;"
                                          " did you mean `msg_bytes`?")),
        ("src;dst;msgs_per_s;msg_bytes\n", ":1: error: `;` between the columns; expected commas"),
        ("src,src,dst,msgs_per_s,msg_bytes\n", ":1: error: column `src` occurs twice; expected each column once"),
        (HEAD + "A,B,,1e10,1e9,\n", (": error: demands: all demands together come to 1e+19 bytes/s;"
                                   " expected at most 4.84e+18")),
    ],
)  # fmt: skip
def test_what_is_no_table_of_demands_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in faults(tmp_path, text)
    if "," not in text:
        assert len(faults(tmp_path, text)) == 1


def test_files_that_cannot_be_read_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"nowhere.csv: error: cannot be read: No such file"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        read(tmp_path)
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(b"PAR1 and more")
    with pytest.raises(SettingsError, match=r"spoilt.parquet: error: cannot be read"):
        read(spoilt)
    spoilt = tmp_path / "spoilt.csv"
    spoilt.write_bytes(HEAD.encode() + b"\xff,B,,1,1,\n")
    with pytest.raises(SettingsError, match=r"spoilt.csv:2: error: cannot be read"):
        read(spoilt)
    with pytest.raises(SettingsError, match="column `src` is of type int64; expected text"):
        of_parquet(tmp_path, {"src": [1], "msgs_per_s": [1], "msg_bytes": [1]})
    with pytest.raises(SettingsError, match="column `msg_bytes` is of type bool; expected numbers"):
        of_parquet(tmp_path, {"src": ["A"], "msgs_per_s": [1], "msg_bytes": [True]})
    monkeypatch.setattr(csv_parquet, "MAX_ROWS", 1)
    with pytest.raises(SettingsError, match="2 rows; expected at most 1"):
        of_csv(tmp_path, HEAD + "A,B,,1,1,\nA,B,,1,1,\n")
    with pytest.raises(SettingsError, match="2 rows; expected at most 1"):
        of_parquet(tmp_path, {"src": ["A", "A"], "msgs_per_s": [1, 1], "msg_bytes": [1, 1]})
    monkeypatch.setattr(csv_parquet, "MAX_BYTES", 10)
    with pytest.raises(SettingsError, match="the file is too large; expected at most 0 GiB"):
        of_csv(tmp_path, HEAD)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("before", [0, 3_000_000])
def test_bytes_that_are_no_text_are_told_by_their_place(tmp_path: Path, before: int) -> None:
    row = b"A,B,a,1,100,x\n"
    good = HEAD.encode() + row * (before // len(row))
    file = tmp_path / "demands.csv"
    file.write_bytes(good + b"A,\xc3")  # and too short besides
    line = good.count(b"\n") + 1
    words = f"demands.csv:{line}: error: cannot be read: byte 0xc3 is not UTF-8; expected a file saved as"
    with pytest.raises(SettingsError, match=words):
        read(file)
