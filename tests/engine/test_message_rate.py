"""Rates of messages: what is beyond them waits with its sender, and nothing is lost."""

from __future__ import annotations

import pytest

from router.core.policy.message_rate import MessageRate, TokenBucket
from router.dataplane.backpressure import TURN_BYTES
from router.dataplane.links import IngressLink
from tests.engine.test_policy import enter, everything
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.peer import message


@pytest.mark.parametrize("target", ["x", None])
@pytest.mark.parametrize("settled", [True, False])
def test_messages_are_taken_at_the_rate_and_none_is_lost(bench: Bench, target: str | None, settled: bool) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=100), everything("other")))
    received = enter(bench, router, "other").receiver("x", credit=1000).accepting()
    sender = enter(bench, router).sender(target)
    bench.run()
    for number in range(300):
        sender.send(message(number, address="x"), settled=settled)
    bench.run()
    counts = []
    for _ in range(5):
        bench.advance(0.5)
        counts.append(len(received.messages))
    assert counts == pytest.approx([50, 100, 150, 200, 250], abs=3)
    bench.advance(1)
    assert received.bodies == list(range(300))


def test_a_second_s_worth_may_come_at_once(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=100),))
    received = enter(bench, router).receiver("x", credit=1000).accepting()
    sender = enter(bench, router).sender("x")
    bench.advance(2)
    for number in range(150):
        sender.send(message(number))
    bench.run()
    assert len(received.messages) == pytest.approx(100, abs=2)


def test_the_links_of_a_connection_share_its_rate_and_other_connections_have_theirs(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=100),))
    received = enter(bench, router).receiver("x", credit=2000).accepting()
    busy, other = enter(bench, router), enter(bench, router)
    senders = [busy.sender("x") for _ in range(4)]
    fifth = other.sender("x")
    bench.run()
    for number in range(100):
        for sender in senders:
            sender.send(message("busy"))
        if number < 90:
            fifth.send(message("other"))
    bench.advance(1)
    assert received.bodies.count("busy") == pytest.approx(100, abs=3)
    assert received.bodies.count("other") == pytest.approx(90, abs=12)


def test_the_connections_of_a_user_share_the_rate_of_the_user(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s_of_user=100), everything("other")))
    received = enter(bench, router, "other").receiver("x", credit=2000).accepting()
    senders = [enter(bench, router).sender("x") for _ in range(4)]
    bench.run()
    for sender in senders:
        for number in range(100):
            sender.send(message(number))
    bench.advance(2)
    assert len(received.messages) == pytest.approx(200, abs=5)
    bench.advance(3)
    assert len(received.messages) == 400


@pytest.mark.parametrize("is_of_user", [True, False])
def test_senders_that_share_a_rate_have_equal_parts_of_it(bench: Bench, is_of_user: bool) -> None:
    rights = everything(messages_per_s_of_user=100) if is_of_user else everything(messages_per_s=100)
    router = bench.router("A", vhosts=(rights, everything("other")))
    received = enter(bench, router, "other").receiver("x", credit=2000).accepting()
    clients = [enter(bench, router) for _ in range(4)] if is_of_user else [enter(bench, router)] * 4
    senders = [client.sender("x") for client in clients]
    bench.run()
    for _ in range(200):
        for number, sender in enumerate(senders):
            sender.send(message(number))
    bench.advance(4)
    assert len(received.bodies) == pytest.approx(400, abs=10)
    assert min(received.bodies.count(number) for number in range(4)) > 80


def test_attaching_anew_is_no_way_round_a_rate(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=10),))
    received = enter(bench, router).receiver("x", credit=10_000).accepting()
    client = enter(bench, router)
    session = client.session()
    for number in range(50):
        sender = client.sender("x", session=session)
        sender.send(message(number), settled=True)
        bench.run()
        sender.close()
        bench.run()
    assert received.bodies == list(range(50))  # what is whole when its link goes is lost no more than without a rate
    late = client.sender("x", session=session)
    late.send(message("late"))
    bench.advance(4.5)
    assert "late" not in received.bodies
    bench.advance(1)
    assert "late" in received.bodies


def test_a_slowed_sender_holds_up_neither_others_nor_its_own_receivers(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=1), everything("other")))
    slow = enter(bench, router)
    mine = slow.receiver("y", credit=100).accepting()
    received = enter(bench, router, "other").receiver("x", credit=1000).accepting()
    flood = slow.sender("x")
    others = enter(bench, router, "other")
    bench.run()
    for number in range(100):
        flood.send(message(number))
    bench.run()
    free = others.sender("y")
    bench.run()
    for number in range(50):
        free.send(message(number))
    bench.run()
    assert mine.bodies == list(range(50))
    assert len(received.messages) <= 2


def test_a_large_message_in_parts_counts_once(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=1),))
    received = enter(bench, router).receiver("x", credit=10).accepting()
    sender = enter(bench, router).sender("x")
    bench.run()
    sender.send(message("z" * 1_000_000))
    bench.run()
    assert len(received.messages) == 1


def test_nothing_is_left_of_a_slowed_sender_that_leaves(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=1),))
    enter(bench, router).receiver("x", credit=1000).accepting()
    client = enter(bench, router)
    sender = client.sender("x")
    bench.run()
    for number in range(50):
        sender.send(message(number))
    bench.run()
    assert router.data_plane.reader.backpressure.slowed
    client.wire.cut()
    bench.advance(2)
    assert not router.data_plane.reader.backpressure.slowed


class ObservedRate:
    """A rate of which it is counted how often the links that share it were looked at."""

    looks = 0

    def __init__(self, rate: MessageRate) -> None:
        self._rate = rate

    def wait(self, now: float) -> float:
        ObservedRate.looks += 1
        return self._rate.wait(now)

    def bottleneck(self, now: float) -> TokenBucket:
        return self._rate.bottleneck(now)

    def take(self) -> None:
        self._rate.take()


@pytest.mark.parametrize("is_of_user", [True, False])
def test_looks_at_slowed_links_grow_with_messages_and_not_with_links(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_of_user: bool
) -> None:
    rights = everything(messages_per_s_of_user=100) if is_of_user else everything(messages_per_s=100)
    router = bench.router("A", vhosts=(rights, everything("other")))
    received = enter(bench, router, "other").receiver("x", credit=2000).accepting()
    clients = [enter(bench, router) for _ in range(50)] if is_of_user else [enter(bench, router)] * 50
    senders = [client.sender("x", run=False) for client in clients for _ in range(3)]
    bench.run()
    for link in router.data_plane.links:
        if isinstance(link, IngressLink):
            assert link.rate is not None
            link.rate = ObservedRate(link.rate)
    for number, sender in enumerate(senders):
        for _ in range(2):
            sender.send(message(number))
    bench.run()
    monkeypatch.setattr(ObservedRate, "looks", 0)
    bench.advance(1)
    assert len(received.messages) == pytest.approx(100, abs=3)
    assert ObservedRate.looks < 6 * len(received.messages)
    bench.advance(2)
    assert sorted(received.bodies) == sorted([*range(len(senders))] * 2)


def test_slowed_links_with_more_than_a_turn_has_room_for_are_all_read(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=1000), everything("other")))
    received = enter(bench, router, "other").receiver("x", credit=2000).accepting()
    client = enter(bench, router)
    senders = [client.sender("x") for _ in range(20)]
    for number, sender in enumerate(senders):
        for _ in range(2):
            sender.send(message(f"{number}".rjust(TURN_BYTES // 4)))
    bench.run()
    assert len(router.data_plane.reader.backpressure.slowed) == len(senders)
    bench.advance(0.5)
    assert sorted(int(body) for body in received.bodies) == sorted([*range(len(senders))] * 2)


class CountedRate:
    """A rate that allows everything and counts it."""

    def __init__(self) -> None:
        self.taken = 0

    def wait(self, now: float) -> float:
        return 0

    def take(self) -> None:
        self.taken += 1


def test_a_message_counts_once_however_often_its_link_is_read_before_it_begins(bench: Bench) -> None:
    router = bench.router("A")
    received = bench.client(router).receiver("x", credit=10).accepting()
    raw = bench.raw(router)
    raw.write(
        frames.AMQP_HEADER
        + frames.write(0x10, ["raw"])
        + frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
        + frames.write(0x12, ["x", 0, False, None, None, frames.source("a"), frames.target("x"), None, None, 0])
    )
    bench.run()
    (link,) = [link for link in router.data_plane.links if isinstance(link, IngressLink)]
    link.rate = rate = CountedRate()
    raw.write(frames.write(0x14, [0, 0, b"0", None, None, True]))
    bench.run()
    for _ in range(3):
        raw.write(frames.write(0x14, [0, None, None, None, None, True]))
        bench.run()
    raw.write(frames.write(0x14, [0, None, None, None, None, False], payload=message("late")))
    bench.run()
    assert received.bodies == ["late"]
    assert rate.taken == 1
