"""Publishers farther away than credit may lie idle, beside near ones, at a subscriber that is never without work.

What is granted to far ones is on the way for longer than idle credit is left to anybody; see
docs/explanation/credit.md#what-is-promised.
"""

from __future__ import annotations

import pytest

from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit

LINE = [("R1", "R2"), ("R2", "R3")]
SERVICE_S = 0.001
DURATION_S = 3.0


def served(round_trip_s: float, credit: int) -> tuple[list[int], list[int]]:
    """Messages of five publishers at the subscriber's router, and of five two hops away; all have more to send."""
    mesh = AnycastMesh(LINE, delay_s=round_trip_s / 4)
    mesh.add_subscriber("R1", credit=credit, top_up=GrantHabit.EACH, service_s=SERVICE_S)
    mesh.run_for(1.0)
    publishers = [mesh.add_publisher(router) for router in 5 * ["R1"] + 5 * ["R3"]]
    for publisher in publishers:
        publisher.offer(10**9)
    mesh.run_for(2.0)
    before = dict(mesh.delivered_of)
    mesh.run_for(DURATION_S)
    counts = [mesh.delivered_of.get(publisher.key, 0) - before.get(publisher.key, 0) for publisher in publishers]
    mesh.check_invariants()
    return counts[:5], counts[5:]


@pytest.mark.parametrize("credit", [10, 100])
@pytest.mark.parametrize("round_trip_s", [0.04, 0.16])
def test_a_busy_subscriber_is_never_without_work_for_far_publishers_who_get_less(
    round_trip_s: float, credit: int
) -> None:
    at_the_egress, elsewhere = served(round_trip_s, credit)
    assert sum(at_the_egress) + sum(elsewhere) >= 0.95 * DURATION_S / SERVICE_S
    assert sum(elsewhere) >= 2 * DURATION_S / round_trip_s, "some in each round trip"


def test_a_far_client_of_a_busy_subscriber_sends_one_message_in_each_round_trip() -> None:
    mesh = AnycastMesh([], routers=["R1"])
    mesh.add_subscriber("R1", credit=100, top_up=GrantHabit.EACH, service_s=SERVICE_S)
    mesh.run_for(1.0)
    near = mesh.add_publisher("R1")
    mesh.client_delay_s = 0.005
    far = mesh.add_publisher("R1")
    for publisher in (near, far):
        publisher.offer(10**9)
    mesh.run_for(1.0)
    before = dict(mesh.delivered_of)
    mesh.run_for(DURATION_S)
    counts = [mesh.delivered_of[publisher.key] - before[publisher.key] for publisher in (near, far)]
    assert sum(counts) == pytest.approx(DURATION_S / SERVICE_S, rel=0.05), "the subscriber is never without work"
    assert 0.7 * DURATION_S / 0.01 < counts[1] <= DURATION_S / 0.01
