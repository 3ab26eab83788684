"""A large message through three router processes: each stays small, also when the subscriber reads slowly or stops.

A gigabyte crosses in `tests/measure/soak/test_large_message.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.streaming import PACES, cross_three

pytestmark = pytest.mark.interop

SIZE = 120_000_000
ROOM_BYTES = 64 * 1024 * 1024
"""What each router may take beyond what it has at rest. A message twice as large may take no more."""


@pytest.mark.parametrize(
    "pace", ["slow", *(pytest.param(pace, marks=pytest.mark.slow) for pace in ("fast", "stopping"))]
)
def test_a_large_message_crosses_three_routers_in_little_memory(tmp_path: Path, pace: str) -> None:
    _, grown = cross_three(tmp_path, SIZE, PACES[pace])
    assert max(grown.values()) < ROOM_BYTES, grown
