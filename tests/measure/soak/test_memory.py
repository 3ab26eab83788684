"""Memory over many rounds of the same work. Run by `tox -e soak`, which shows the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_config.generators import generate
from tests.helpers.processes import MeshProcesses, wait_until
from tests.helpers.reply_addresses import open_and_close, resident_kb

ADDRESSES = 10_000
ROUNDS = 6


def test_the_memory_of_closed_reply_addresses_is_given_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        router = mesh["R1"]
        url, pid = router.url(), router.pid
        before = resident_kb(pid)
        peaks: list[int] = []
        afterwards: list[int] = []

        def has_given_back() -> bool:
            return resident_kb(pid) < before + (peaks[0] - before) // 3

        for _ in range(ROUNDS):
            assert len(open_and_close(url, ADDRESSES, lambda: peaks.append(resident_kb(pid)))) == ADDRESSES
            wait_until(has_given_back, lambda: f"{resident_kb(pid)} kB, before {before} kB, peak {peaks[0]} kB", 10)
            afterwards.append(resident_kb(pid))
        with capsys.disabled():
            print(f"\n{ADDRESSES} reply addresses: {before} kB before, {peaks} kB when open, {afterwards} kB later")
        # The allocators keep some for the next time; what counts is that rounds do not add up.
        assert afterwards[-1] - afterwards[1] < (peaks[0] - before) // 10
