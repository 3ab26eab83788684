"""Each multicast comes exactly once to each subscriber that has a path throughout, while connections are cut."""

from __future__ import annotations

import pytest

from tests.helpers.cuts import Cuts

RING = ("AB", "BC", "CD", "DA")
TWO_RINGS = ("AB", "BC", "CD", "DA", "CE", "EF", "FA")
LADDER = ("AB", "BC", "DE", "EF", "AD", "BE", "CF")


@pytest.mark.parametrize("edges", [RING, TWO_RINGS, LADDER], ids=["ring", "two-rings", "ladder"])
@pytest.mark.parametrize("seed", range(4))
def test_a_multicast_comes_exactly_once_while_links_are_cut(edges: tuple[str, ...], seed: int) -> None:
    play = Cuts(edges, seed)
    play.run(cuts=15)
    play.settle()
    assert len(play.sent) > 100
    assert not play.faults()
