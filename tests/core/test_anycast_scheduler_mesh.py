"""Credit machines joined: promises as laws of random plays, and their figures on a line of three.

The promises are in docs/explanation/credit.md#what-is-promised.
The gate has a sample; `AMQP_MESH_CREDIT_PLAYS` sets how many plays of each kind are run, from seed 0, and `pytest -s`
shows what they came to.
"""

from __future__ import annotations

import os
import random

import pytest

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.ids_and_conditions import RouterId
from router.simulation.network import Network, NetworkConditions
from router.testing.anycast_mesh import AnycastMesh, jain_index
from router.testing.clients import GrantHabit, SimPublisher
from router.testing.links import FIRST_COUNT, AmqpLink, OneWayWire, serial_difference
from tests.helpers.credit_plays import Play, calm_play, rough_play
from tests.helpers.examples import examples

PLAYS = int(os.environ.get("AMQP_MESH_CREDIT_PLAYS", "0"))
CHUNKS = 10
LINE = [("R1", "R2"), ("R2", "R3")]


def seeds(chunk: int, default: int) -> range:
    count = max(1, (PLAYS or examples(default)) // CHUNKS)
    return range(chunk * count, (chunk + 1) * count)


# Random plays


class Totals:
    """What plays came to; shown with `pytest -s`."""

    def __init__(self) -> None:
        self.plays = self.steps = self.messages = self.released = self.lost = 0

    def add(self, play: Play) -> None:
        self.plays += 1
        self.steps += play.mesh.steps
        self.messages += play.mesh.published
        self.released += play.mesh.released_count
        self.lost += play.mesh.lost_count

    def __str__(self) -> str:
        return (
            f"{self.plays} plays, {self.steps} steps, {self.messages} messages, {self.released} released,"
            f" {self.lost} lost on the way on a connection or in a router that ended"
        )


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.timeout(3600 if PLAYS else 300)
def test_in_calm_plays_the_sums_hold_at_every_step_and_every_message_arrives_once(chunk: int) -> None:
    total = Totals()
    for seed in seeds(chunk, 150):
        total.add(calm_play(seed))
    print(total)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.timeout(3600 if PLAYS else 300)
def test_after_rough_plays_the_sums_hold_again_and_every_message_is_accounted_for(chunk: int) -> None:
    total = Totals()
    for seed in seeds(chunk, 400):
        total.add(rough_play(seed))
    print(total)


def test_the_same_seed_gives_the_same_play() -> None:
    def outcome() -> tuple[int, int, float]:
        play = Play(7, is_rough=True)
        for _ in range(40):
            play.act()
        return play.mesh.steps, play.mesh.published, play.mesh.network.now

    assert outcome() == outcome()


def test_a_client_slower_than_the_quarantine_breaks_the_sum_and_the_plays_notice() -> None:
    """The laws are not hollow: without a quarantine the same play breaks them."""
    with pytest.raises(AssertionError, match="promise"):
        recall_play(quarantine_s=0.0)
    recall_play(quarantine_s=0.05)


def recall_play(quarantine_s: float) -> None:
    mesh = AnycastMesh([], routers=["R1"], client_delay_s=0.015, timing=CreditTiming(quarantine_s=quarantine_s))
    play = Play(0, is_rough=False)
    play.mesh, play.publishers = mesh, []
    mesh.on_step = play.check_calm
    subscriber = mesh.add_subscriber("R1", credit=10, top_up=GrantHabit.BATCH, service_s=0.0)
    first, second = play.publishers = [mesh.add_publisher("R1"), mesh.add_publisher("R1")]
    mesh.run_for(0.2)
    first.offer(20)
    mesh.run_for(0.1)
    subscriber.service_s = 0.5
    second.offer(6)
    mesh.run_for(0.04)
    for publisher in (first, second):
        publisher.offer(20)
        mesh.run_for(0.004)
    mesh.run_for(1.0)


# Fairness and promptness, on a line of three routers


PLACINGS = ((4, 3, 3), (1, 1, 8), (0, 0, 10))
"""Publishers at each router of the line."""
SUBSCRIBERS = (
    (100, GrantHabit.EACH, 0.001, 2.0),
    (100, GrantHabit.BATCH, 0.001, 2.0),
    (5, GrantHabit.HALF, 0.0, 0.5),
    (5, GrantHabit.FULL, 0.001, 1.0),
    (1, GrantHabit.EACH, 0.0, 0.5),
)
"""Credit, when it is granted anew, seconds for a message, and seconds that are looked at."""
FASTEST = (100, GrantHabit.HALF, 0.0, 0.2)
"""The one that takes ten times as many messages as the others, and as much longer to play."""


@pytest.mark.parametrize(
    ("placing", "credit", "top_up", "service_s", "duration_s"),
    [
        *((placing, *subscriber) for subscriber in SUBSCRIBERS for placing in PLACINGS),
        (PLACINGS[0], *FASTEST),
        *(pytest.param(placing, *FASTEST, marks=pytest.mark.slow) for placing in PLACINGS[1:]),
    ],
)
def test_ten_busy_publishers_share_equally_wherever_they_are(
    placing: tuple[int, ...], credit: int, top_up: GrantHabit, service_s: float, duration_s: float
) -> None:
    mesh = AnycastMesh(LINE)
    mesh.add_subscriber("R1", credit=credit, top_up=top_up, service_s=service_s)
    publishers = [mesh.add_publisher(f"R{place}") for place, count in enumerate(placing, 1) for _ in range(count)]
    for publisher in publishers:
        publisher.offer(10**9)
    mesh.run_for(0.3)  # who hears of the subscriber first is alone for a while
    before = dict(mesh.delivered_of)
    mesh.run_for(duration_s)
    shares = [mesh.delivered_of[p.key] - before.get(p.key, 0) for p in publishers]
    assert jain_index(shares) >= 0.95, shares
    mesh.check_invariants()


@pytest.mark.parametrize("credit", [1, 5, 100])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_one_busy_among_a_thousand_gets_credit_at_once_and_the_idle_cost_nothing(credit: int, hops: int) -> None:
    mesh = AnycastMesh(LINE)
    home = f"R{1 + hops}"
    subscriber = mesh.add_subscriber("R1", credit=credit, top_up=GrantHabit.BATCH, service_s=0.001)
    busy, *idle = [mesh.add_publisher(home) for _ in range(1000)]
    mesh.run_for(0.5)
    router = mesh.routers[RouterId(home)]
    assert all(publisher.link.credit == 1 for publisher in idle)
    flows = sum(publisher.link.flows for publisher in idle)
    orders = router.orders
    waits = []
    busy.offer(10**9)
    for _ in range(20):
        subscriber.pause(is_lowering=False)
        mesh.run_for(0.3)
        assert mesh.granted() == 0
        sent = busy.sent
        subscriber.resume()
        since = mesh.network.now
        assert mesh.run_until_true(lambda sent=sent: busy.sent > sent, limit_s=0.1)  # type: ignore[misc]
        waits.append(mesh.network.now - since)
        mesh.run_for(0.01)
    assert max(waits) < 0.01
    assert sum(publisher.link.flows for publisher in idle) == flows, "idle publishers cost no frame"
    assert router.orders - orders <= 3 * busy.sent


def stalled_line(credit: int) -> tuple[AnycastMesh, list[SimPublisher]]:
    mesh = AnycastMesh(LINE)
    subscriber = mesh.add_subscriber("R1", credit=credit)
    subscriber.is_paused = True  # grants once, and stalls
    publishers = [mesh.add_publisher(f"R{1 + number % 3}") for number in range(9)]
    for publisher in publishers:
        publisher.offer(1000)
    mesh.run_for(5.0)
    return mesh, publishers


@pytest.mark.parametrize("credit", [1, 5, 100])
def test_for_a_stalled_subscriber_each_publisher_has_one_message_at_its_router(credit: int) -> None:
    mesh, publishers = stalled_line(credit)
    assert mesh.waiting_in_core() == 0
    assert len(mesh.open) + sum(p.link.credit for p in publishers) <= mesh.granted() + len(publishers)
    assert sum(mesh.delivered_of.values()) == credit, "all that was granted was used"
    for router in mesh.routers.values():
        machine = router.machine
        assert len(machine.publishers.waiting) <= len(machine.publishers.attached)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_a_settled_stream_whose_sender_leaves_after_its_last_send_arrives_whole(hops: int) -> None:
    mesh = AnycastMesh(LINE)
    mesh.add_subscriber("R1", credit=250, top_up=GrantHabit.BATCH)
    publisher = mesh.add_publisher(f"R{1 + hops}")
    publisher.offer(5000)
    assert mesh.run_until_true(lambda: publisher.backlog == 0, limit_s=30.0)
    mesh.remove_publisher(publisher)
    assert mesh.run_until_true(lambda: not mesh.open, limit_s=5.0)
    assert sum(mesh.delivered_of.values()) == 5000


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_lowering_to_zero_takes_all_credit_after_the_linger_and_resuming_gives_it(
    hops: int,
) -> None:
    mesh = AnycastMesh(LINE)
    subscriber = mesh.add_subscriber("R1", credit=20)
    publishers = [mesh.add_publisher(f"R{1 + hops}") for _ in range(3)]
    publishers[0].offer(1)
    mesh.run_for(0.5)
    subscriber.pause(is_lowering=True)
    mesh.run_for(0.9)
    assert all(publisher.link.credit for publisher in publishers)
    mesh.run_for(0.2)
    assert not any(publisher.link.credit for publisher in publishers)
    subscriber.resume()
    mesh.run_for(0.01)
    assert all(publisher.link.credit for publisher in publishers)


def test_a_subscriber_busy_on_its_one_credit_closes_nothing_though_another_withdrew() -> None:
    mesh = AnycastMesh(LINE)
    mesh.add_subscriber("R1", credit=1, top_up=GrantHabit.EACH, service_s=5.0)
    other = mesh.add_subscriber("R1", credit=1, top_up=GrantHabit.EACH, service_s=5.0)
    publishers = [mesh.add_publisher("R3") for _ in range(3)]
    publishers[0].offer(1)
    mesh.run_for(0.5)
    (other if not other.received else next(iter(mesh.subscribers))).pause(is_lowering=True)
    mesh.run_for(3.0)
    assert mesh.granted() == 0
    assert all(publisher.link.credit for publisher in publishers)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_a_drain_brings_what_waits_at_any_router_and_is_then_answered(hops: int) -> None:
    mesh = AnycastMesh(LINE)
    getter = mesh.add_subscriber("R1", credit=1)
    publisher = mesh.add_publisher(f"R{1 + hops}")
    mesh.run_for(0.5)
    getter.is_paused = True
    publisher.offer(2)
    mesh.run_for(0.5)
    assert len(getter.received) == 1
    assert len(mesh.open) == 1, "the second waits"
    for count in (2, 2):
        getter.is_paused = False
        getter.resume()
        getter.is_paused = True
        getter.drain()
        mesh.run_for(0.3)
        assert len(getter.received) == count
        assert not getter.link.is_draining
        assert getter.link.granted == 0
    assert max(getter.drained_s) < 0.06, "a quarantine and the round trips"


# The links of the simulation themselves


def test_delivery_counts_wrap() -> None:
    assert serial_difference(5, 2**32 - 5) == 10
    assert serial_difference(2**32 - 5, 5) == -10


def test_a_links_credit_survives_wrap_drain_and_a_lowering_that_crosses_transfers() -> None:
    network = Network(random.Random(1), NetworkConditions())
    forth, back = (OneWayWire(network, random.Random(1), 0.001, 0.0) for _ in range(2))
    link = AmqpLink(forth, back)
    received: list[int] = []
    link.on_transfer = received.append
    link.grant(30)
    link.flush()

    def settle() -> None:
        while network.next_time() < float("inf"):
            network.step()

    settle()
    for message in range(25):
        link.send(message)
    link.grant(-30)
    link.flush()
    settle()
    assert (link.credit, link.granted) == (0, -25)
    link.grant(25 + 3)
    link.flush()
    settle()
    assert link.credit == 3
    link.give_back()
    settle()
    assert (link.credit, link.granted) == (0, 0)
    assert link.sent_count == link.seen_count == (FIRST_COUNT + 28) % 2**32
    assert received == list(range(25))
