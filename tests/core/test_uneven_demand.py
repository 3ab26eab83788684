"""Publishers that send a little again and again beside streams: what they hold, and what they have a claim to later.

None of them is ever idle, so that can't tell them from busy ones; docs/explanation/credit.md#how-credit-comes-back
says how they are told.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit, SimPublisher

LINE = [("R1", "R2"), ("R2", "R3")]


def pace(
    mesh: AnycastMesh,
    paced: list[SimPublisher],
    every_s: float,
    duration_s: float,
    streams: Iterable[SimPublisher] = (),
) -> None:
    """Let each of *paced* offer a message every so often, in turn, and *streams* as many as they can send."""
    end = mesh.network.now + duration_s
    while mesh.network.now < end:
        for publisher in paced:
            publisher.offer(1)
            for stream in streams:
                stream.offer(max(0, 20 - stream.backlog))
            mesh.run_for(every_s / len(paced))


@pytest.mark.parametrize("top_up", [GrantHabit.HALF, GrantHabit.FULL])
@pytest.mark.parametrize("rush", [300, 1000])
@pytest.mark.parametrize("home", ["R1", "R2", "R3"])
def test_streams_elsewhere_get_at_once_what_paced_publishers_hold_and_do_not_use(
    home: str, rush: int, top_up: GrantHabit
) -> None:
    every_s = 0.018  # less than `idle_s`
    mesh, paced, streams = hoarded_mesh(home, rush, every_s, top_up)
    for _ in range(3):
        before = [mesh.delivered_of.get(stream.key, 0) for stream in streams]
        pace(mesh, paced, every_s, 0.25, streams)
        received = [mesh.delivered_of[stream.key] - count for stream, count in zip(streams, before, strict=True)]
        assert min(received) > 100, received
    assert not any(publisher.backlog for publisher in paced), "they have what they use"
    mesh.check_invariants()


@pytest.mark.parametrize("every_s", [0.003, 0.012])
@pytest.mark.parametrize("home", ["R1", "R3"])
def test_streams_wait_no_longer_than_a_second_for_what_holders_use_less_slowly(home: str, every_s: float) -> None:
    mesh, paced, streams = hoarded_mesh(home, 1000, every_s, GrantHabit.HALF)
    pace(mesh, paced, every_s, 1.0, streams)
    before = dict(mesh.delivered_of)
    pace(mesh, paced, every_s, 0.25, streams)
    received = [mesh.delivered_of[stream.key] - before.get(stream.key, 0) for stream in streams]
    assert min(received) > 100, received


def hoarded_mesh(
    home: str, rush: int, every_s: float, top_up: GrantHabit
) -> tuple[AnycastMesh, list[SimPublisher], list[SimPublisher]]:
    """Let two publishers at *home* use much at first, and then little. Returns: these, and streams elsewhere."""
    mesh = AnycastMesh(LINE)
    mesh.add_subscriber("R1", credit=500, top_up=top_up)
    paced = [mesh.add_publisher(home) for _ in range(2)]
    mesh.run_for(0.5)
    for publisher in paced:
        publisher.offer(rush)
    assert mesh.run_until_true(lambda: not any(publisher.backlog for publisher in paced), limit_s=30.0)
    pace(mesh, paced, every_s, 0.7)
    streams = [mesh.add_publisher(place) for place in ("R1", "R2", "R3") if place != home]
    return mesh, paced, streams


@pytest.mark.parametrize(("home", "other"), [("R1", "R3"), ("R3", "R1"), ("R2", "R3"), ("R2", "R2")])
def test_a_stream_goes_on_beside_a_publisher_that_sent_little_for_long_and_then_much(home: str, other: str) -> None:
    mesh = AnycastMesh(LINE)
    mesh.add_subscriber("R1", credit=500)
    mesh.run_for(0.3)
    stream, late = mesh.add_publisher(home), mesh.add_publisher(other)
    for at in range(500):
        stream.offer(20)
        late.offer(at % 2)
        mesh.run_for(0.004)
    for _ in range(10):
        before = dict(mesh.delivered_of)
        for _ in range(10):
            for publisher in (stream, late):
                publisher.offer(max(0, 60 - publisher.backlog))
            mesh.run_for(0.002)
        received = [mesh.delivered_of[publisher.key] - before[publisher.key] for publisher in (stream, late)]
        assert min(received) > 100, received
