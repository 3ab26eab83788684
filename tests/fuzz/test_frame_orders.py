"""No order of frames ends the router, or keeps it from serving others.

Each batch of scripts has a process of its own: what a peer could do to the engine's memory would end it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = int(os.environ.get("AMQP_MESH_FUZZ_SCRIPTS", "400"))
"""Scripts in all; `tox -e fuzz` plays more of them."""
FIRST = int(os.environ.get("AMQP_MESH_FUZZ_SEED", "1"))
BATCHES = 4
SHOWN_CHARACTERS = 3000


@pytest.mark.parametrize("batch", [0, *(pytest.param(batch, marks=pytest.mark.slow) for batch in range(1, BATCHES))])
def test_no_order_of_frames_ends_the_router(batch: int) -> None:
    count = max(1, SCRIPTS // BATCHES)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.frame_orders", str(FIRST + batch * count), str(count)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-SHOWN_CHARACTERS:]
    print(done.stderr.splitlines()[-1])
