"""Messages that are passed on in parts, or come in parts, while others wait for the same subscriber."""

from __future__ import annotations

import itertools

import pytest

from router.dataplane.settlement import END_IS_NEAR_S
from router.dataplane.slow_streams import DEBT_SHARE, LOOK_S, MOST_DEBT_S, STREAM_BYTES_S
from router.runtime import Runtime
from tests.engine.test_circuits import attach, join
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import PeerSender, Sent, message

ADDRESS = "openstack.org/om/rpc/anycast/openstack/topic"
EXCEEDED = "amqp:resource-limit-exceeded"
HELD_BYTES = 10_000
LARGE = message("x" * 200_000)[:50_000]
"""The first part of a message that is passed on before its end has come."""
SOON_S = MOST_DEBT_S + 3 * LOOK_S
"""A stream that stands still while others wait is given up by then."""
REST_S = MOST_DEBT_S / DEBT_SHARE
"""A debt has passed after this."""


def line_of(bench: Bench, count: int) -> list[Runtime]:
    """So many routers in a line."""
    settings = {"held_message_bytes": HELD_BYTES}
    if count == 1:
        return [bench.router("A", forwarding=settings)]
    return bench.mesh(*itertools.pairwise("ABC"[:count]), forwarding=settings)


def is_given_up(sender: PeerSender, sent: Sent) -> bool:
    """Whether a sender was told that its message is given up, and nothing else."""
    name = sent.condition.name if sent.condition is not None else None
    return (sender.closed, sent.outcome, name) == (None, "rejected", EXCEEDED)


def senders(bench: Bench, router: Runtime, count: int) -> list[PeerSender]:
    """So many senders, each of its own client."""
    found = [bench.client(router).sender(ADDRESS) for _ in range(count)]
    bench.advance(1)
    return found


def send_at(bench: Bench, sent: Sent, bytes_s: float, seconds: float) -> None:
    """Send more parts of a message at a pace."""
    for _ in range(round(seconds / LOOK_S)):
        sent.part(b"x" * int(bytes_s * LOOK_S))
        bench.advance(LOOK_S)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_stream_that_stands_still_is_given_up_soon_while_others_wait(bench: Bench, count: int) -> None:
    routers = line_of(bench, count)
    receiver = bench.client(routers[-1]).receiver(ADDRESS, credit=10).accepting()
    slow, other = senders(bench, routers[0], 2)
    sent = slow.begin(LARGE)
    bench.run()
    assert receiver.partial
    behind = other.send(message("small"))
    bench.advance(SOON_S)
    assert is_given_up(slow, sent)
    assert sent.condition is not None
    assert "8 MiB/s while others waited" in str(sent.condition.description)
    assert (receiver.aborted, receiver.bodies, behind.outcome) == (1, ["small"], "accepted")
    sent.end(LARGE)  # which nobody gets
    following = slow.send(message("next"))
    bench.run()
    assert (receiver.bodies, following.outcome) == (["small", "next"], "accepted")


@pytest.mark.parametrize("share", [0.001, 0.5])
def test_a_stream_that_is_slow_is_given_up_while_others_wait(bench: Bench, share: float) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    slow, other = senders(bench, router, 2)
    sent = slow.begin(LARGE)
    other.send(message("small"))
    send_at(bench, sent, share * STREAM_BYTES_S, MOST_DEBT_S / (1 - share) - 2 * LOOK_S)
    assert slow.closed is None
    send_at(bench, sent, share * STREAM_BYTES_S, 4 * LOOK_S)
    assert is_given_up(slow, sent)
    assert receiver.bodies == ["small"]


def test_a_neighbor_waits_behind_a_stream_too(bench: Bench) -> None:
    near, far = line_of(bench, 2)
    receiver = bench.client(near).receiver(ADDRESS, credit=10).accepting()
    (slow,), (other,) = senders(bench, near, 1), senders(bench, far, 1)
    sent = slow.begin(LARGE)
    bench.run()
    behind = other.send(message("small"))
    bench.advance(SOON_S)
    assert is_given_up(slow, sent)
    assert (receiver.bodies, behind.outcome) == (["small"], "accepted")


def test_a_fast_stream_is_let_be_while_others_wait(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    fast, other = senders(bench, router, 2)
    sent = fast.begin(LARGE)
    behind = other.send(message("small"))
    send_at(bench, sent, 1.1 * STREAM_BYTES_S, 3)
    assert behind.outcome is None
    sent.end()
    bench.run()
    assert (sent.outcome, behind.outcome, receiver.aborted) == ("accepted", "accepted", 0)


def test_a_slow_stream_is_let_be_while_nobody_waits(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    slow, idle = senders(bench, router, 2)
    sent = slow.begin(LARGE)
    send_at(bench, sent, 10_000, 20)
    sent.end()
    bench.run()
    assert (sent.outcome, receiver.aborted, idle.link.credit) == ("accepted", 0, 1)


def test_a_slow_stream_is_let_be_while_another_server_takes_the_others(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    first = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    second = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    slow, other = senders(bench, router, 2)
    sent = slow.begin(LARGE)
    bench.run()
    for _ in range(5):
        behind = other.send(message("small"))
        bench.advance(SOON_S)
        assert behind.outcome == "accepted"
    sent.end()
    bench.run()
    assert (slow.closed, sent.outcome, first.aborted + second.aborted) == (None, "accepted", 0)


def test_a_sender_is_not_to_blame_for_a_slow_subscriber(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    subscriber = bench.client(router)
    receiver = subscriber.receiver(ADDRESS, credit=10).accepting()
    sender, other = senders(bench, router, 2)
    plug = subscriber.wire.ends[1]
    assert isinstance(plug, Plug)
    plug.room = 0
    sent = sender.begin(LARGE * 50)
    behind = other.send(message("small"))
    bench.advance(20 * SOON_S)
    assert sender.closed is None
    plug.room = 1e9
    sent.end()
    bench.run()
    assert (sent.outcome, behind.outcome, receiver.aborted) == ("accepted", "accepted", 0)


def test_after_slow_streams_none_is_begun_for_a_while_if_others_wait(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ADDRESS, credit=2).accepting()
    slow, other, *large = senders(bench, router, 5)
    sent = slow.begin(LARGE)
    other.send(message("small"))
    bench.advance(SOON_S)
    assert is_given_up(slow, sent)
    other.send(message("waits"))
    refused = large[0].begin(LARGE)
    bench.run()
    assert refused.outcome is None
    bench.advance(END_IS_NEAR_S)
    assert (refused.outcome, large[0].closed) == ("rejected", None)
    assert refused.condition is not None
    assert "send it later" in str(refused.condition.description)
    receiver.flow(2)
    bench.run()
    assert receiver.bodies == ["small", "waits"]
    alone = large[1].begin(LARGE)
    alone.end()
    bench.run()
    assert alone.outcome == "accepted"  # nobody waits
    bench.advance(REST_S)
    other.send(message("waits too"))
    later = large[2].begin(LARGE)
    bench.run()
    assert later.outcome is None  # as the debt has passed
    receiver.flow(10)
    later.end()
    bench.run()
    assert later.outcome == "accepted"


@pytest.mark.parametrize(("debt_s", "seconds", "begins"), [
    (0.6 * MOST_DEBT_S, 0.0, True), (0.6 * MOST_DEBT_S, 1.0, False),
    (SOON_S, 0.0, False), (0.4 * MOST_DEBT_S, 1.0, True),
])  # fmt: skip
def test_half_of_the_debt_is_kept_for_messages_that_come_fast(
    bench: Bench, debt_s: float, seconds: float, begins: bool
) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ADDRESS, credit=3).accepting()
    slow, other, large = senders(bench, router, 3)
    sent = slow.begin(LARGE)
    other.send(message("small"))
    bench.advance(debt_s)
    sent.end()
    bench.run()
    assert receiver.bodies[-1] == "small"
    other.send(message("takes the last credit"))
    other.send(message("waits"))
    later = large.begin(LARGE[: HELD_BYTES // 2])
    bench.advance(seconds)
    later.part(LARGE[HELD_BYTES // 2 :])
    bench.advance(END_IS_NEAR_S)
    assert (later.outcome is None) is begins


def test_messages_that_come_in_parts_keep_no_credit_from_others(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    others = senders(bench, router, 2)
    unfinished = []
    for sender in senders(bench, router, 30):
        unfinished.append(sender.begin(message("in parts")[:10]))
        bench.advance(0.05)
    for round_ in range(5):
        calls = [other.send(message(str(round_))) for other in others]
        bench.advance(0.3)
        assert [call.outcome for call in calls] == ["accepted", "accepted"]
        receiver.flow(2)
    receiver.flow(len(unfinished))
    for sent in unfinished:
        sent.end(message("in parts")[10:])
    bench.advance(1)
    assert {sent.outcome for sent in unfinished} == {"accepted"}
    assert receiver.bodies.count("in parts") == len(unfinished)


def test_messages_that_come_in_parts_keep_no_credit_from_other_routers(bench: Bench) -> None:
    near, far = line_of(bench, 2)
    receiver = bench.client(far).receiver(ADDRESS, credit=10).accepting()
    (other,) = senders(bench, far, 1)
    for sender in senders(bench, near, 30):
        sender.begin(message("in parts")[:10])
        bench.advance(0.05)
    for round_ in range(5):
        call = other.send(message(str(round_)))
        bench.advance(0.3)
        assert call.outcome == "accepted"
    assert receiver.bodies == [str(round_) for round_ in range(5)]


def test_messages_in_parts_of_a_neighbor_keep_no_credit_from_others_for_long(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver(ADDRESS, credit=10).accepting()
    bench.run()
    raw = join(bench, router)
    circuits = [attach(raw, ADDRESS) for _ in range(10)]
    bench.run()
    for _ in range(3):
        weights = {circuit.link.name: 1 for circuit in circuits}
        raw.say("amqp:/_local/amqp-mesh.circuits", "CIRCUITS", {"id": "RAW", "pv": 1, "weights": weights, "closed": []})
        bench.advance(0.1)
    (other,) = senders(bench, router, 1)
    begun = [circuit.begin(message("in parts")[:10]) for circuit in circuits if circuit.link.credit]
    bench.run()
    assert len(begun) > 5
    for _ in range(4):
        raw.hello()
        bench.advance(0.5)
    for round_ in range(5):
        call = other.send(message(str(round_)))
        bench.advance(0.1)
        assert call.outcome == "accepted"
    for sent in begun:
        sent.end(message("in parts")[10:])
    receiver.flow(len(begun))
    raw.hello()
    bench.advance(0.5)
    assert {sent.outcome for sent in begun} == {"accepted"}
