"""Connections between real routers are cut while multicasts pass. tests/measure/stress has the long run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.measure.stress.cuts import CutRing, play

pytestmark = pytest.mark.interop

CUTS = 5


@pytest.mark.slow
def test_a_multicast_comes_exactly_once_while_connections_are_cut(tmp_path: Path) -> None:
    with CutRing(tmp_path) as ring:
        ring.mesh.start()
        ring.mesh.wait_converged()
        played = play(ring, cuts=CUTS, seed=1)
        assert played.said["sent"] > 100
        assert played.faults() == {}
        assert set(ring.mesh.terminate().values()) == {0}
