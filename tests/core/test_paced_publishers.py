"""Publishers that send at a pace: how long their messages wait for credit, also when a link is cut."""

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
    routers: str,
    *,
    credit: int,
    every_s: float,
    seed: int,
    top_up: GrantHabit = GrantHabit.EACH,
) -> dict[str, float]:
    """Cut A - C under publishers at *routers*, whose subscriber is at A.

    Returns: the longest time from the offer of a message to its arrival, by router, seconds, of those after that.
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


def test_a_stream_elsewhere_has_its_part_of_batches_beside_paced_publishers() -> None:
    """What is taken back for it is not given again to those from whom it was taken."""
    mesh = AnycastMesh([("A", "C")], client_delay_s=0.0005)
    mesh.add_subscriber("A", credit=200, top_up=GrantHabit.BATCH)
    mesh.run_for(0.5)
    stream, *paced = (mesh.add_publisher(router) for router in "CAA")
    before = 0
    for step in range(4000):
        if step == 2000:
            before = mesh.delivered_of[stream.key]
        stream.offer(max(0, 20 - stream.backlog))
        for publisher, every in zip(paced, (5, 10), strict=True):
            publisher.offer(step % every == 0)
        mesh.run_for(0.001)
    assert mesh.delivered_of[stream.key] - before > 900, "450 messages a second"
    assert not any(publisher.backlog for publisher in paced)


def test_what_a_subscriber_has_taken_back_is_given_to_nobody_again() -> None:
    mesh = AnycastMesh([], routers=["A"])
    leaves = mesh.add_subscriber("A", credit=500)
    mesh.add_subscriber("A", credit=10, top_up=None)
    mesh.run_for(0.5)
    publisher = mesh.add_publisher("A")
    publisher.offer(1000)
    mesh.run_for(1.0)
    publisher.backlog = 0
    mesh.run_for(0.01)
    mesh.remove_subscriber(leaves)
    mesh.run_for(0.045)
    publisher.offer(1000)
    mesh.run_for(1.0)
    waits = sum(len(router.local_publishers.waiting) for router in mesh.routers.values())
    assert waits <= 20, "it was lowered before it sent them"


def test_neighbors_that_were_silent_have_no_claim_to_what_others_got_meanwhile() -> None:
    mesh = AnycastMesh([("A", "B"), ("B", "C")], client_delay_s=0.0005)
    mesh.add_subscriber("B", credit=20, top_up=GrantHabit.EACH, service_s=0.002)
    home = mesh.add_publisher("B")
    elsewhere = [mesh.add_publisher(router) for router in 10 * "AC"]
    for publisher in (home, *elsewhere):
        publisher.offer(10**6)
    mesh.run_for(3.0)
    delays = [wires.delay_s for wires in mesh._wires.values()]
    for wire in mesh._wires.values():
        wire.delay_s = 2.0
    mesh.run_for(2.0)
    for wire, delay_s in zip(mesh._wires.values(), delays, strict=True):
        wire.delay_s = delay_s
    mesh.run_for(0.5)
    before = mesh.delivered_of[home.key]
    mesh.run_for(2.0)
    assert mesh.delivered_of[home.key] - before > 40, "its part is one of 21 of 500 a second"
