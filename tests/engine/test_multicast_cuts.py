"""Each multicast comes exactly once to each subscriber that has a path throughout, while connections are cut.

tests/measure/stress has more of it, and real processes.
"""

from __future__ import annotations

import pytest

from tests.helpers.cuts import MESHES, Cuts


@pytest.mark.parametrize("edges", MESHES.values(), ids=MESHES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_multicast_comes_exactly_once_while_links_are_cut(edges: tuple[str, ...], seed: int) -> None:
    play = Cuts(edges, seed)
    play.run(cuts=15)
    play.settle()
    assert len(play.sent) > 100
    assert not play.faults()
