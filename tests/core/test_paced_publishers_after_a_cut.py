"""Publishers that send at a pace, and a link that is cut: how long messages wait while credit takes another way."""

from __future__ import annotations

from collections import deque

import pytest

from router.core.ids_and_conditions import RouterId
from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit

EACH_TO_ALL = ["AB", "AC", "AD", "BC", "BD", "CD"]
STEP_S = 0.0005
CUT_S = 1.4985
"""Time of the cut since the first message, seconds: not while one is on its way."""
END_S = 2.5


def longest_waits(
    routers: str, *, credit: int, every_s: float, seed: int, top_up: GrantHabit = GrantHabit.EACH
) -> dict[str, float]:
    """Cut A - C under publishers at *routers*, whose subscriber is at A.

    Returns: the longest time from the offer of a message to its arrival, by router, seconds, of those after the cut.
    """
    mesh = AnycastMesh([(left, right) for left, right in EACH_TO_ALL], seed=seed, client_delay_s=0.0005)
    publishers = {router: mesh.add_publisher(router) for router in routers}
    router_of = {publisher.key: router for router, publisher in publishers.items()}
    subscriber = mesh.add_subscriber("A", credit=credit, top_up=top_up)
    mesh.run_for(0.5)
    offered: dict[str, deque[float]] = {router: deque() for router in routers}
    longest = dict.fromkeys(routers, 0.0)
    received = 0
    for step in range(round(END_S / STEP_S)):
        if step % round(every_s / STEP_S) == 0:
            for router, publisher in publishers.items():
                publisher.offer(1)
                offered[router].append(mesh.network.now)
        if step == round(CUT_S / STEP_S):
            mesh.cut(RouterId("A"), RouterId("C"))
            longest = dict.fromkeys(routers, 0.0)
        mesh.run_for(STEP_S)
        for message in subscriber.received[received:]:
            router = router_of[mesh.publisher_of[message]]
            longest[router] = max(longest[router], mesh.network.now - offered[router].popleft())
        received = len(subscriber.received)
    assert not mesh.lost_count
    mesh.check_invariants()
    return longest


@pytest.mark.parametrize("top_up", [GrantHabit.EACH, GrantHabit.HALF, GrantHabit.FULL])
@pytest.mark.parametrize("seed", range(5))
def test_a_publisher_waits_for_the_news_of_another_way_and_not_for_its_quarantine(
    top_up: GrantHabit, seed: int
) -> None:
    """It holds a lot of credit that nothing backs any more; it is taken back, and given again as the new way grows."""
    assert longest_waits("C", credit=100, every_s=0.005, seed=seed, top_up=top_up)["C"] < 0.012


@pytest.mark.parametrize("every_s", [0.005, 0.03])
@pytest.mark.parametrize("seed", range(5))
def test_who_gives_credit_to_those_that_come_by_another_way_does_not_wait_for_it(every_s: float, seed: int) -> None:
    waits = longest_waits("BCD", credit=1000, every_s=every_s, seed=seed)
    assert waits["B"] < 0.005
    assert waits["D"] < 0.005
