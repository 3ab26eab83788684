"""Multicast credit machines joined: promises as laws of random plays, and their figures.

The promises are in docs/explanation/credit.md#what-is-promised.

The gate has a sample; `AMQP_MESH_CREDIT_PLAYS` sets how many plays of each kind are run, from seed 0, and `pytest -s`
shows what they came to.
"""

from __future__ import annotations

import os

import pytest

from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.ids_and_conditions import RouterId
from router.testing.anycast_mesh import jain_index
from router.testing.clients import GrantHabit, SimPublisher, SimSubscriber
from router.testing.links import OneWayWire
from router.testing.multicast_mesh import MulticastMesh
from tests.helpers.examples import examples
from tests.helpers.multicast_plays import Kind, MulticastPlay, calm_play, disturbed_play

PLAYS = int(os.environ.get("AMQP_MESH_CREDIT_PLAYS", "0"))
CHUNKS = 5
LINE = [("R1", "R2"), ("R2", "R3")]
LONG_LINE = [*LINE, ("R3", "R4"), ("R4", "R5")]
STAR = [("R1", "R2"), ("R1", "R3"), ("R1", "R4")]
RING = [("R1", "R2"), ("R2", "R3"), ("R3", "R4"), ("R4", "R1")]
ENDLESS = 10**9
SERVICE_S = 0.002
"""A subscriber's time for a message where much time passes, so that not too many do."""
GRACE_S = ExclusionTiming().grace_s


def seeds(chunk: int, default: int) -> range:
    count = max(1, (PLAYS or examples(default)) // CHUNKS)
    return range(chunk * count, (chunk + 1) * count)


# Random plays


class Totals:
    """What plays came to; shown with `pytest -s`."""

    def __init__(self) -> None:
        self.plays = self.steps = self.messages = self.missed = self.released = self.lost = 0
        self.held_up_s = 0.0

    def add(self, play: MulticastPlay) -> None:
        self.plays += 1
        self.steps += play.mesh.steps
        self.messages += play.mesh.published
        self.missed += sum(play.mesh.missed.values())
        self.released += play.mesh.released_count
        self.lost += play.mesh.lost_count
        self.held_up_s = max(self.held_up_s, play.held_up_s)

    def __str__(self) -> str:
        return (
            f"{self.plays} plays, {self.steps} steps, {self.messages} messages, {self.missed} copies missed,"
            f" {self.released} messages released, {self.lost} lost, held up for {self.held_up_s:.3f} s at most"
        )


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.timeout(3600 if PLAYS else 300)
def test_in_calm_plays_the_sums_hold_at_each_step_and_all_get_each_message_once(chunk: int) -> None:
    total = Totals()
    for seed in seeds(chunk, 15):
        total.add(calm_play(seed))
    print(total)


@pytest.mark.parametrize("kind", [Kind.UNRULY, Kind.ROUGH])
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.timeout(3600 if PLAYS else 300)
def test_live_subscribers_miss_nothing_and_afterwards_the_sums_hold_again(chunk: int, kind: Kind) -> None:
    total = Totals()
    for seed in seeds(chunk, 15):
        total.add(disturbed_play(seed, kind))
    print(total)


def test_the_same_seed_gives_the_same_play() -> None:
    def outcome() -> tuple[int, int, float]:
        play = MulticastPlay(7, Kind.ROUGH)
        for _ in range(40):
            play.act()
        return play.mesh.steps, play.mesh.published, play.mesh.network.now

    assert outcome() == outcome()


# Copies


def carried(mesh: MulticastMesh) -> dict[tuple[str, str], int]:
    """Count the messages on each wire from now on."""
    counts: dict[tuple[str, str], int] = {}
    for name, wire in mesh._wires.items():
        counts[name] = 0

        def carry(message: int, arrive: object, wire: OneWayWire = wire, name: tuple[str, str] = name) -> None:
            counts[name] += 1
            OneWayWire.carry(wire, message, arrive)  # type: ignore[arg-type]

        wire.carry = carry  # type: ignore[method-assign]
    return counts


@pytest.mark.parametrize(
    ("edges", "subscribed", "used"),
    [
        (LINE, "R3 R3 R3", "R1-R2 R2-R3"),
        (LINE, "R1 R2", "R1-R2"),
        (STAR, "R2 R3 R4 R4", "R1-R2 R1-R3 R1-R4"),
        (RING, "R2 R3 R4", "R1-R2 R1-R4 R2-R3"),
    ],
)
def test_one_copy_crosses_each_link_of_the_tree_and_none_another(
    edges: list[tuple[str, str]], subscribed: str, used: str
) -> None:
    mesh = MulticastMesh(edges)
    subscribers = [mesh.add_subscriber(name, credit=10) for name in subscribed.split()]
    mesh.run_for(0.05)
    counts = carried(mesh)
    mesh.add_publisher("R1").offer(50)
    mesh.run_for(1.0)
    assert all(subscriber.received == list(range(1, 51)) for subscriber in subscribers)
    assert {"-".join(name): count for name, count in counts.items() if count} == dict.fromkeys(used.split(), 50)


def test_messages_of_one_publisher_arrive_in_order_at_every_subscriber() -> None:
    mesh = MulticastMesh(STAR)
    subscribers = [mesh.add_subscriber(name, credit=7, top_up=GrantHabit.BATCH) for name in ("R1", "R2", "R3", "R4")]
    mesh.run_for(0.05)
    mesh.add_publisher("R2").offer(200)
    mesh.run_for(1.0)
    assert all(subscriber.received == list(range(1, 201)) for subscriber in subscribers)


# Stalled subscribers


def stalled(
    edges: list[tuple[str, str]], where: str, credit: int = 5
) -> tuple[MulticastMesh, SimSubscriber, SimPublisher]:
    """A subscriber at each router, one more at *where* that grants *credit* once, and a publisher at R1."""
    mesh = MulticastMesh(edges)
    for name in mesh.routers:
        mesh.add_subscriber(name, credit=50, top_up=GrantHabit.EACH, service_s=SERVICE_S)
    slow = mesh.add_subscriber(where, credit=credit)
    mesh.run_for(0.1)
    slow.is_paused = True
    publisher = mesh.add_publisher("R1")
    publisher.offer(ENDLESS)
    assert mesh.run_until_true(lambda: len(slow.received) == credit, limit_s=1.0)
    return mesh, slow, publisher


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
def test_a_stalled_subscriber_stops_publishers_for_the_grace_and_then_costs_nothing(where: str) -> None:
    mesh, slow, publisher = stalled(LINE, where)
    mesh.run_for(GRACE_S - 0.02)
    before = publisher.sent
    mesh.run_for(0.01)
    assert publisher.sent == before, "held up"
    mesh.run_for(0.02)
    assert publisher.sent > before, "a round trip after the grace"
    before = publisher.sent
    mesh.run_for(0.2)
    with_stalled = publisher.sent - before
    mesh.remove_subscriber(slow)
    mesh.run_for(0.05)
    before = publisher.sent
    mesh.run_for(0.2)
    assert with_stalled == pytest.approx(publisher.sent - before, rel=0.1)
    assert mesh.missed[slow.link] > 50, "its router sees them, since another subscriber there is live"
    for subscriber in mesh.subscribers:
        assert subscriber.received == list(range(1, len(subscriber.received) + 1)), "nobody else misses any"


def test_a_router_whose_only_subscriber_stalls_leaves_the_tree_until_it_is_back() -> None:
    mesh = MulticastMesh(LINE)
    mesh.add_subscriber("R1", credit=50, top_up=GrantHabit.EACH, service_s=SERVICE_S)
    slow = mesh.add_subscriber("R3", credit=5)
    mesh.run_for(0.1)
    slow.is_paused = True
    publisher = mesh.add_publisher("R1")
    publisher.offer(ENDLESS)
    mesh.run_for(GRACE_S + 0.1)
    counts = carried(mesh)
    mesh.run_for(0.9)
    assert not any(counts.values()), "copies for nobody"
    slow.resume()
    mesh.run_for(0.1)
    before = len(slow.received)
    sent = publisher.sent
    mesh.run_for(0.5)
    assert len(slow.received) - before == pytest.approx(publisher.sent - sent, abs=10)


@pytest.mark.parametrize("where", ["R1", "R3"])
def test_one_that_grants_a_little_now_and_then_holds_up_the_others_ever_more_seldom(where: str) -> None:
    mesh, slow, publisher = stalled(LINE, where, credit=1)
    held_up = 0
    for _ in range(120):
        if slow.link.granted == 0:
            slow.resume()
            slow.is_paused = True
        before = publisher.sent
        publisher.backlog = 5
        publisher.pump()
        mesh.run_for(0.5)
        held_up += publisher.sent < before + 5
        publisher.backlog = 0
        mesh.run_for(1.0)
    assert 2 <= held_up <= 8, "once for each doubling of the pause"


def dripping(where: str, *, count: int, every_s: float, duration_s: float) -> tuple[MulticastMesh, int, int]:
    """One at *where* grants *count* each *every_s*, for so long, beside one at each router; a publisher at R1.

    Returns: the mesh, what the publisher could send, and what the slow one has missed.
    """
    mesh, slow, publisher = stalled(LINE, where, credit=count)
    before = publisher.sent
    for _ in range(int(duration_s / every_s)):
        mesh.run_for(every_s)
        if slow.link.granted == 0:
            slow.resume()
            slow.is_paused = True
    return mesh, publisher.sent - before, mesh.missed.get(slow.link, 0)


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
@pytest.mark.parametrize("every_s", [0.55, 0.9])
def test_one_that_grants_one_credit_in_each_grace_holds_up_the_others_for_little(where: str, every_s: float) -> None:
    mesh, sent, missed = dripping(where, count=1, every_s=every_s, duration_s=10.0)
    assert sent > 0.5 * 10.0 / SERVICE_S, "in pauses of 1, 2 and 4 seconds the others are served"
    assert missed > 0.9 * sent, "its router sees them all"
    mesh.run_for(0.1)
    for subscriber in mesh.subscribers:
        if subscriber.credit > 1:
            assert subscriber.received == list(range(1, len(subscriber.received) + 1)), "nobody else misses any"


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
@pytest.mark.parametrize(("count", "every_s"), [(100, 0.5), (20, 0.1), (10, 0.25)])
def test_one_that_grants_in_bursts_or_is_moderately_slower_misses_nothing(
    where: str, count: int, every_s: float
) -> None:
    _, sent, missed = dripping(where, count=count, every_s=every_s, duration_s=10.0)
    assert sent == pytest.approx(10.0 / every_s * count, rel=0.15)
    assert missed == 0


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
def test_a_subscriber_that_attaches_and_has_not_granted_yet_stops_nobody(where: str) -> None:
    mesh = MulticastMesh(LINE)
    mesh.add_subscriber("R2", credit=50, top_up=GrantHabit.EACH, service_s=SERVICE_S)
    publisher = mesh.add_publisher("R1")
    publisher.offer(ENDLESS)
    mesh.run_for(0.1)
    mesh.add_subscriber(where, credit=0)
    before = publisher.sent
    longest_s = 0.0
    for _ in range(100):
        since = mesh.network.now
        assert mesh.run_until_true(lambda before=publisher.sent: publisher.sent > before, limit_s=2.0)  # type: ignore[misc]
        longest_s = max(longest_s, mesh.network.now - since)
        mesh.run_for(0.001)
    assert publisher.sent > before
    assert longest_s < 0.02, "the news, and a round trip"


def test_a_lone_subscriber_that_works_long_on_its_credit_misses_nothing() -> None:
    mesh = MulticastMesh(LINE)
    slow = mesh.add_subscriber("R3", credit=1, top_up=GrantHabit.EACH, service_s=5.0)
    mesh.add_publisher("R1").offer(10)
    mesh.run_for(60.0)
    assert slow.received == list(range(1, 11))


# Sharing among ingress routers


@pytest.mark.parametrize("placing", [(2, 2, 2, 2, 2), (1, 2, 0, 0, 7)])
@pytest.mark.parametrize(
    ("subscribed", "credit", "top_up", "least"),
    [
        ("R1 R2 R3 R4 R5", 50, GrantHabit.HALF, 10_000),
        ("R1", 50, GrantHabit.HALF, 15_000),
        ("R1 R3 R5", 20, GrantHabit.BATCH, 3_000),
        ("R1 R2 R3 R4 R5", 5, GrantHabit.EACH, 1_500),
        ("R1 R5", 1, GrantHabit.EACH, 500),
    ],
)
def test_busy_publishers_share_equally_wherever_they_are(
    placing: tuple[int, ...], subscribed: str, credit: int, top_up: GrantHabit, least: int
) -> None:
    mesh = MulticastMesh(LONG_LINE)
    for name in subscribed.split():
        mesh.add_subscriber(name, credit=credit, top_up=top_up)
    mesh.run_for(0.05)
    publishers = [mesh.add_publisher(f"R{place}") for place, count in enumerate(placing, 1) for _ in range(count)]
    for publisher in publishers:
        publisher.offer(ENDLESS)
    mesh.run_for(0.1)
    before = dict(mesh.departed_of)
    duration_s = 400 / least
    mesh.run_for(duration_s)
    shares = [mesh.departed_of[p.key] - before.get(p.key, 0) for p in publishers]
    assert jain_index(shares) >= 0.95, shares
    assert sum(shares) / duration_s >= least
    mesh.check_invariants()


def test_trees_of_several_routers_do_not_hold_what_the_others_lack() -> None:
    # At the end of each batch there is less credit at a router than there are trees. Each shared as a pool is, two
    # trees hold what the other lacks until it lies idle: 203 messages a second.
    mesh = MulticastMesh(LINE)
    for name in mesh.routers:
        mesh.add_subscriber(name, credit=20, top_up=GrantHabit.BATCH)
    mesh.run_for(0.05)
    for publisher in [mesh.add_publisher(name) for name in mesh.routers for _ in range(3)]:
        publisher.offer(ENDLESS)
    mesh.run_for(0.1)
    before = len(mesh.departed_at)
    mesh.run_for(0.1)
    assert len(mesh.departed_at) - before > 1000


def test_a_burst_has_the_credit_that_publishers_of_other_routers_do_not_use() -> None:
    mesh = MulticastMesh(LONG_LINE)
    for name in mesh.routers:
        mesh.add_subscriber(name, credit=100)
    others = [mesh.add_publisher(name) for name in mesh.routers for _ in range(2)]
    for _ in range(20):
        for publisher in others:
            publisher.offer(1)
        mesh.run_for(0.05)
    burst = mesh.add_publisher("R1")
    burst.offer(1000)
    since = mesh.network.now
    while burst.backlog:
        for publisher in others:
            publisher.offer(1)
        mesh.run_for(0.05)
    assert mesh.network.now - since < 0.3


# Opening, closing, drains


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
def test_lowering_to_zero_takes_all_credit_after_the_linger_and_resuming_gives_it(
    where: str,
) -> None:
    mesh = MulticastMesh(LINE)
    subscriber = mesh.add_subscriber("R1", credit=20)
    publishers = [mesh.add_publisher(where) for _ in range(3)]
    publishers[0].offer(1)
    mesh.run_for(0.5)
    subscriber.pause(is_lowering=True)
    mesh.run_for(0.9)
    assert all(publisher.link.credit for publisher in publishers)
    mesh.run_for(0.2)
    assert not any(publisher.link.credit for publisher in publishers)
    subscriber.resume()
    mesh.run_for(0.02)
    assert all(publisher.link.credit for publisher in publishers)


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
def test_the_last_subscriber_gone_takes_back_all_and_releases_what_waits(where: str) -> None:
    mesh = MulticastMesh(LINE)
    subscriber = mesh.add_subscriber("R1", credit=5)
    publishers = [mesh.add_publisher(where) for _ in range(3)]
    mesh.run_for(0.5)
    subscriber.is_paused = True
    for publisher in publishers:
        publisher.offer(10)
    mesh.run_for(0.5)
    assert len(mesh.open) == 3
    mesh.remove_subscriber(subscriber)
    mesh.run_for(0.5)
    assert mesh.released_count == 3
    assert not any(publisher.link.credit for publisher in publishers)


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
def test_a_settled_stream_whose_sender_leaves_after_its_last_send_arrives_whole(where: str) -> None:
    mesh = MulticastMesh(LINE)
    subscribers = [mesh.add_subscriber(name, credit=25, top_up=GrantHabit.BATCH) for name in ("R1", "R3")]
    mesh.run_for(0.05)
    publisher = mesh.add_publisher(where)
    publisher.offer(500)
    assert mesh.run_until_true(lambda: publisher.backlog == 0, limit_s=30.0)
    mesh.remove_publisher(publisher)
    mesh.run_for(1.0)
    assert all(subscriber.received == list(range(1, 501)) for subscriber in subscribers)


@pytest.mark.parametrize("where", ["R1", "R2", "R3"])
def test_a_drain_brings_what_waits_at_any_router_and_is_then_answered(where: str) -> None:
    mesh = MulticastMesh(LINE)
    mesh.add_subscriber("R2", credit=50)
    getter = mesh.add_subscriber("R1", credit=1)
    publisher = mesh.add_publisher(where)
    mesh.run_for(0.5)
    getter.is_paused = True
    publisher.offer(2)
    mesh.run_for(0.3)
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


# Changes of path


def test_after_a_connection_is_lost_messages_go_another_way_and_then_none_is_missed() -> None:
    mesh = MulticastMesh(RING, news_s=0.01)
    subscribers = [mesh.add_subscriber(name, credit=20) for name in ("R2", "R3", "R4")]
    mesh.run_for(0.1)
    publisher = mesh.add_publisher("R1")
    publisher.offer(ENDLESS)
    mesh.run_for(0.02)
    mesh.cut(RouterId("R1"), RouterId("R2"))
    mesh.run_for(0.05)
    before = publisher.sent
    mesh.run_for(0.05)
    assert publisher.sent > before + 50, "the news, and a round trip"
    publisher.backlog = 0
    mesh.run_for(0.1)
    for subscriber in subscribers:
        late = [message for message in subscriber.received if message > before]
        assert late == list(range(before + 1, publisher.sent + 1))
