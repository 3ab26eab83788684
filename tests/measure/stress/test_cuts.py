"""Multicasts while hundreds of connections between routers are cut: of bytes in one process, and real ones.

Run by `tox -e stress`, which shows the figures.
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from router import speed
from tests.helpers.cuts import FEW, MESHES, Cuts
from tests.measure.stress.cuts import CutRing, play

CUTS = int(os.environ.get("AMQP_MESH_STRESS_CUTS", "200"))
SEEDS = int(os.environ.get("AMQP_MESH_STRESS_SEEDS", "10"))
FIRST_SEED = 100
"""Those before are the suite's."""
CUTS_OF_SEED = 15


@pytest.mark.timeout(300 * SEEDS)
def test_a_multicast_comes_exactly_once_while_wires_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    cuts = sent = copies = 0
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        for mesh, at in product(MESHES, (None, FEW)):
            play = Cuts(MESHES[mesh], seed, at[mesh] if at else "")
            play.run(cuts=CUTS_OF_SEED)
            play.settle()
            assert play.faults() == [], (seed, mesh, at)
            cuts += CUTS_OF_SEED
            sent += len(play.sent)
            copies += len(play.sent) * len(play.receivers)
        with capsys.disabled():
            print(f"\n{speed.SPEED}, {cuts} cuts: {sent} multicasts, {copies} copies", end="", flush=True)


@pytest.mark.timeout(10 * CUTS + 300)
def test_a_multicast_comes_exactly_once_while_connections_are_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with CutRing(tmp_path) as ring:
        ring.mesh.start()
        ring.mesh.wait_converged()

        def tell(cut: int, sent: int) -> None:
            if cut % 10 == 0:
                with capsys.disabled():
                    print(f"\n{speed.SPEED}, {cut} cuts: {sent} multicasts", end="", flush=True)

        played = play(ring, cuts=CUTS, seed=1, tell=tell)
        with capsys.disabled():
            print(f"\n{played.cuts} cuts: {dict(played.said)}")
        assert played.faults() == {}
        assert set(ring.mesh.terminate().values()) == {0}
