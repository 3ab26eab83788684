"""Files of chunks as rows of Spark: joined to larger ones, and written by it as they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from router.whatif.pipeline import chunk_files_as_rows
from router.whatif.pipeline.chunk_evaluator import file_name, output_file
from router.whatif.pipeline.chunk_files_as_rows import DATA, FAMILY, MAGIC, VARIANT, joined
from router.whatif.pipeline.run_storage import LocalStorage
from router.whatif.pipeline.spark_tables import write_files
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.scenarios.scenario_plan import Chunk
from tests.whatif.small import mesh

SCHEMA = pa.schema([("scenario", pa.int64()), ("load", pa.float64())])
SECTIONS = ((1, "base", "none"), (40, "base", "links:1"), (100, "more", "none"))


def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
    """Files of chunks of so many scenarios, two rows of each."""
    first = 0
    for number, size in enumerate(sizes):
        scenarios = [each for each in range(first, first + size) for _ in range(2)]
        table = pa.table({"scenario": scenarios, "load": [each / 3 for each in scenarios]}, schema=SCHEMA)
        chunk = Chunk(number=number, variant=0, first=first, stop=first + size)
        files = [output_file(file_name("scenario_load", number), table)]
        yield from chunk_files_as_rows.rows(chunk, "base", FailureCandidates.of(mesh("A-B")), files)
        first += size


def files_of(*sizes: int) -> list[tuple[str, str, list[int]]]:
    """Variant, family and scenarios of the files that are made."""
    found = []
    for batch in joined(SECTIONS, SCHEMA, batches(*sizes)):
        for row in batch.to_pylist():
            table = pq.read_table(pa.BufferReader(row[DATA] + MAGIC))
            assert table.schema.equals(SCHEMA)
            assert table.column("load").to_pylist() == [each / 3 for each in table.column("scenario").to_pylist()]
            found.append((row[VARIANT], row[FAMILY], table.column("scenario").to_pylist()[::2]))
    return found


@pytest.mark.parametrize("sizes", [(100,), (1,) * 100, (30, 5, 65), (1, 39, 60)])
def test_each_file_has_one_variant_and_family_however_chunks_lie(sizes: tuple[int, ...]) -> None:
    assert files_of(*sizes) == [
        ("base", "none", [0]),
        ("base", "links:1", list(range(1, 40))),
        ("more", "none", list(range(40, 100))),
    ]


def test_no_rows_make_no_file() -> None:
    assert files_of() == files_of(0, 0) == []


def test_a_file_ends_when_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_files_as_rows, "ROW_GROUP", 8)
    monkeypatch.setattr(chunk_files_as_rows, "FILE_BYTES", 300)
    found = files_of(*[4] * 25)
    assert len(found) > 6
    assert [number for _, _, numbers in found for number in numbers] == list(range(100))
    assert {found[0][:2], found[1][:2], found[-1][:2]} == {each[1:] for each in SECTIONS}


def test_files_get_their_names_after_they_are_committed_also_later(spark: SparkSession, tmp_path: Path) -> None:
    function = partial(joined, SECTIONS, SCHEMA)
    rows = spark.range(0, 1, 1, 1).mapInArrow(
        lambda _: function(batches(30, 30, 40)), f"{VARIANT} string, {FAMILY} string, {DATA} binary"
    )
    storage = LocalStorage(tmp_path)
    write_files(rows, storage, "loads")
    names = storage.files("loads")
    assert [name.split("/")[1:3] for name in names] == [
        ["variant=base", "family=links%3A1"],
        ["variant=base", "family=none"],
        ["variant=more", "family=none"],
    ]
    assert not storage.files("loads", ".txt")
    assert storage.files("loads", ".crc") == ["loads/._SUCCESS.crc"], "no sums of files that are no more"
    assert spark.read.parquet(str(tmp_path / "loads")).count() == 200
    late = tmp_path / names[0]
    late.rename(late.with_suffix(".txt"))  # a run that ended before all had theirs
    write_files(rows, storage, "loads")
    assert storage.files("loads") == names, "what is committed isn't written again"
