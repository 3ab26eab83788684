"""Files of many micro-batches become one, and no row is lost or there twice, whenever it is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from router.whatif.telemetry.compaction import compact, part_name


def add(folder: Path, number: int) -> None:
    pq.write_table(pa.table({"number": [number]}), folder / part_name(number, 1000 + number))


def numbers(folder: Path) -> list[int]:
    """In the order of files by name, which is how they are read."""
    return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file)["number"].to_pylist()]


def test_blocks_of_micro_batches_become_one_file_and_blocks_of_these_too(tmp_path: Path) -> None:
    for number in range(20):
        if number != 5:  # one without rows
            add(tmp_path, number)
        compact(tmp_path, number, (4, 16))
    assert numbers(tmp_path) == [number for number in range(20) if number != 5]
    assert [file.name for file in sorted(tmp_path.iterdir())] == [
        part_name(0, 1015), part_name(16, 1016), part_name(17, 1017), part_name(18, 1018), part_name(19, 1019),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "calls"), [("replace", 0), *(("unlink", calls) for calls in range(4))])
def test_interrupted_and_done_again_it_leaves_each_row_once(
    name: str, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        add(tmp_path, number)
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
            compact(tmp_path, 4, (4,))
    assert set(numbers(tmp_path)) == set(range(5)), "none is lost meanwhile"
    compact(tmp_path, 4, (4,))
    assert numbers(tmp_path) == list(range(5))
