"""A gigabyte in one message through three router processes. Run by `tox -e soak`, which shows the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.streaming import PACES, cross_three

SIZE = 1_000_000_000
ROOM_BYTES = 64 * 1024 * 1024
"""What each router may take beyond what it has at rest."""


@pytest.mark.parametrize("pace", PACES)
def test_a_gigabyte_crosses_three_routers_in_little_memory(
    tmp_path: Path, pace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds, grown = cross_three(tmp_path, SIZE, PACES[pace])
    with capsys.disabled():
        sizes = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in grown.items())
        print(f"\n1 GB, {pace} subscriber: {seconds:.1f} s, {SIZE / seconds / 1e6:.0f} MB/s; beyond rest: {sizes}")
    assert max(grown.values()) < ROOM_BYTES
