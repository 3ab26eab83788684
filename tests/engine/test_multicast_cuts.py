"""Each multicast comes exactly once to each subscriber that has a path throughout, while connections are cut.

tests/measure/stress has more of it, and real processes.
"""

from __future__ import annotations

import pytest

from tests.helpers.cuts import FEW, MESHES, Cuts


@pytest.mark.parametrize(
    "is_everywhere",
    [pytest.param(True, id="all subscribe", marks=pytest.mark.slow), pytest.param(False, id="few subscribe")],
)
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_multicast_comes_exactly_once_while_links_are_cut(mesh: str, is_everywhere: bool, seed: int) -> None:
    play = Cuts(MESHES[mesh], seed, "" if is_everywhere else FEW[mesh])
    play.run(cuts=10)
    play.settle()
    assert len(play.sent) > 50
    assert not play.faults()
