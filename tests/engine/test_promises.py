"""The promises of credit on real links: random plays, and each case that once broke one, by its name.

The gate has a sample of plays; `AMQP_MESH_PROMISE_PLAYS` sets how many of each kind are run, from seed 0, and
`pytest -s` shows what they came to.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.helpers import promises
from tests.helpers.engine import Bench
from tests.helpers.examples import examples
from tests.helpers.peer import message
from tests.helpers.promises import Kind

PLAYS = int(os.environ.get("AMQP_MESH_PROMISE_PLAYS", "0"))
CHUNKS = 5


LONG = pytest.mark.timeout(36_000 if PLAYS else 600)
ALL = [pytest.param(kind, id=kind.value) for kind in Kind]
PARTS = [0, *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(1, CHUNKS))]


def play(kind: Kind, default: int, chunk: int = 0, **options: Any) -> None:
    """Plays of a kind, *default* of them when the environment does not say how many, in `CHUNKS` parts."""
    count = max(1, (PLAYS or examples(default)) // CHUNKS)
    steps = messages = 0
    for seed in range(chunk * count, (chunk + 1) * count):
        found = promises.run(seed, kind, **options)
        steps += found.steps
        messages += len(found.everything)
    print(f"{count} {kind.value} plays, {steps} movements of bytes, {messages} messages")


@LONG
@pytest.mark.parametrize("chunk", PARTS)
@pytest.mark.parametrize("kind", ALL)
def test_promises_hold_whatever_clients_and_neighbors_do(kind: Kind, chunk: int) -> None:
    play(kind, 25, chunk)


@pytest.mark.slow
@LONG
@pytest.mark.parametrize("kind", ALL)
def test_promises_hold_for_multicasts(kind: Kind) -> None:
    # a stalled subscriber is not excluded in calm times, or the sums would not be of the same subscribers
    play(kind, 25, addresses=(promises.FANOUT,), forwarding={"grace_s": 3600.0 if kind is Kind.CALM else 1.0})


@pytest.mark.slow
@LONG
@pytest.mark.parametrize("kind", [Kind.CALM, Kind.SOFT])
def test_promises_hold_for_reply_addresses(kind: Kind) -> None:
    play(kind, 25, addresses=(promises.REPLY, promises.BALANCED))


@pytest.mark.slow
@LONG
def test_datagrams_of_anonymous_senders_between_messages_on_credit() -> None:
    play(Kind.ROUGH, 25, has_anonymous=True)


@pytest.mark.slow
@LONG
@pytest.mark.parametrize("forwarding", [{"max_circuits": 1}, {"brokered_messages": 2}], ids=str)
def test_narrow_settings(forwarding: dict[str, int]) -> None:
    play(Kind.ROUGH, 25, forwarding=forwarding)


# Cases


def test_the_credit_of_a_subscriber_that_left_is_not_used(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    stays, leaves = bench.client(router).receiver("topic").accepting(), client.receiver("topic", credit=1)
    sender = client.sender("topic")
    leaves.close()
    bench.run()
    sent = sender.send(message(1))
    bench.run()
    stays.flow(1)
    bench.run()
    assert stays.bodies == [1]
    assert sent.outcome == "accepted"


def test_a_message_that_comes_with_a_lowering_is_not_sent_on_what_was_lowered(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    receiver, sender = client.receiver("topic", credit=5).accepting(), client.sender("topic")
    sender.send(message(1))
    bench.run()
    receiver.flow(-receiver.credit)
    sender.send(message(2))
    bench.run()  # both in one turn, the lowering first
    assert client.closed is None
    assert receiver.bodies == [1]
    receiver.flow(1)
    bench.run()
    assert receiver.bodies == [1, 2]


def test_credit_is_not_counted_twice_when_another_subscriber_grants_in_the_same_turn(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    busy = client.receiver("topic", credit=1)
    senders = [client.sender("topic") for _ in range(14)]
    senders[0].send(message(0))
    bench.run()
    idle = bench.client(router).receiver("topic", credit=10).accepting()
    assert all(sender.credit for sender in senders)
    senders[0].send(message(1))
    data = client.take()
    busy.flow(1)
    data += client.take()
    for number, sender in enumerate(senders[1:], start=2):
        sender.send(message(number))
    client.wire.ends[1].give(data + client.take())
    bench.run()
    assert client.closed is None
    assert len(busy.messages) + len(idle.messages) == 2 + 10
    idle.flow(10)
    bench.run()
    assert len(busy.messages) + len(idle.messages) == 15
