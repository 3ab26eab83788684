"""Files of many micro-batches become one, and no row is lost or there twice, whenever it is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from router.whatif.formats.history_file_names import file_name, history_files
from router.whatif.telemetry.compaction import compact


def add(folder: Path, number: int) -> None:
    pq.write_table(pa.table({"number": [number]}), folder / file_name(number, 1000 + number))


def numbers(folder: Path) -> list[int]:
    """In the order of files by name, which is how they are read."""
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file)["number"].to_pylist()]


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_blocks_of_micro_batches_become_one_file_and_blocks_of_these_too(tmp_path: Path) -> None:
    for number in range(25):
        if number != 5:  # one without rows
            add(tmp_path, number)
        compact(tmp_path, number, (4, 16))
    # Of the last block there are both.
    assert names(tmp_path) == sorted(
        [file_name(0, 1015, 16), file_name(16, 1019, 4), file_name(20, 1023, 4)]
        + [file_name(number, 1000 + number) for number in range(20, 25)]
    )
    pieces = [pq.read_table(tmp_path / name)["number"].to_pylist() for name in names(tmp_path)[:2]]
    assert pieces == [[number for number in range(16) if number != 5], [16, 17, 18, 19]]
    assert sorted(set(numbers(tmp_path))) == [number for number in range(25) if number != 5]


def test_files_that_a_reader_lists_stay_for_a_whole_block_at_least(tmp_path: Path) -> None:
    listed: list[list[Path]] = []
    for number in range(40):
        add(tmp_path, number)
        compact(tmp_path, number, (4, 16))
        listed.append(history_files(tmp_path))
        read = [row for file in listed[-1] for row in pq.read_table(file)["number"].to_pylist()]
        assert read == list(range(number + 1)), "each row once"
        for files in listed[-4:]:
            assert all(file.exists() for file in files)


@pytest.mark.parametrize("count", [3, 5, 17, 40])
def test_another_job_that_counts_from_zero_again_loses_no_rows(count: int, tmp_path: Path) -> None:
    for job in range(3):
        for number in range(count):
            row = 100 * job + number
            pq.write_table(pa.table({"number": [row]}), tmp_path / file_name(number, 1000 + row))
            compact(tmp_path, number, (4, 16))
            read = [row for file in history_files(tmp_path) for row in pq.read_table(file)["number"].to_pylist()]
            written = [100 * earlier + each for earlier in range(job) for each in range(count)]
            assert sorted(read) == [*written, *range(100 * job, row + 1)], "each row once"
    assert len(names(tmp_path)) < 40


def test_a_clock_that_was_set_back_costs_no_rows(tmp_path: Path) -> None:
    for number, ended in enumerate((1009, 1001, 1002, 1003)):
        pq.write_table(pa.table({"number": [number]}), tmp_path / file_name(number, ended))
    for number in (4, 8):
        compact(tmp_path, number, (4,))
        assert set(numbers(tmp_path)) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("name", "calls", "number"), [("replace", 0, 4), *(("unlink", calls, 8) for calls in range(4))]
)
def test_interrupted_and_done_again_it_leaves_each_row_once(
    name: str, calls: int, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in range(5):
        add(tmp_path, each)
    if number == 8:
        compact(tmp_path, 4, (4,))
    real: Callable[..., object] = getattr(Path, name)
    done = 0

    def failing(path: Path, *args: object) -> object:
        nonlocal done
        if done == calls:
            raise KeyboardInterrupt
        done += 1
        return real(path, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Path, name, failing)
        with pytest.raises(KeyboardInterrupt):
            compact(tmp_path, number, (4,))
    assert set(numbers(tmp_path)) == set(range(5)), "none is lost meanwhile"
    assert not list(tmp_path.glob("*.tmp")), "nor is a part of a file left"
    for again in (4, 8):
        compact(tmp_path, again, (4,))
    assert numbers(tmp_path) == list(range(5))
