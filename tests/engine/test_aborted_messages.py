"""Messages that their sender gives up: the credit that they came on comes back, and comes back once."""

from __future__ import annotations

import pytest

from router.runtime import Runtime
from tests.engine.test_policy import everything
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerSender, message

FIRST_BYTES = bytes.fromhex("00537045")
"""A header section without fields: what policy looks at comes later."""


def with_policy(bench: Bench) -> Runtime:
    """A router on which the properties of messages are looked at before they go anywhere."""
    return bench.router("A", vhosts=(everything(),))


@pytest.fixture(params=[False, True], ids=["no policy", "policy"])
def client(request: pytest.FixtureRequest, bench: Bench) -> Peer:
    """A client of a router, with or without rules about the properties of messages."""
    router = with_policy(bench) if request.param else bench.router("A")
    return bench.client(router, hostname="shop")


def abort(bench: Bench, client: Peer, sender: PeerSender, data: bytes, *, is_together: bool = False) -> None:
    """Begin a message with *data* and abort it; both arrive at the same time if *is_together*."""
    sent = sender.begin(data)
    if not is_together:
        bench.run()
        sent.abort()
    else:
        begun = client.take()
        sent.abort()
        client.wire.ends[1].give(begun + client.take())
    bench.run()


@pytest.mark.parametrize("is_together", [False, True], ids=["in two turns", "in one"])
@pytest.mark.parametrize("data", [b"", FIRST_BYTES, message("x" * 100)[:50]], ids=["nothing", "header", "half"])
def test_aborted_messages_cost_a_publisher_no_credit(
    bench: Bench, client: Peer, data: bytes, is_together: bool
) -> None:
    receiver = client.receiver("topic", credit=5).accepting()
    sender = client.sender("topic")
    for _ in range(20):
        abort(bench, client, sender, data, is_together=is_together)
        assert 1 <= sender.credit <= 6
    sender.send(message("whole"))
    bench.run()
    assert receiver.bodies == ["whole"]


@pytest.mark.parametrize("is_together", [False, True], ids=["in two turns", "in one"])
def test_aborted_messages_cost_an_anonymous_sender_no_credit(bench: Bench, client: Peer, is_together: bool) -> None:
    sender = client.sender(None)
    for _ in range(2 * sender.credit):
        abort(bench, client, sender, FIRST_BYTES, is_together=is_together)
        assert sender.credit > 0


@pytest.mark.parametrize("data", [FIRST_BYTES, message("x" * 100)[:50]], ids=["header", "half"])
def test_aborting_the_first_message_to_a_reply_address_costs_no_credit(bench: Bench, data: bytes) -> None:
    for name in ("A", "B"):
        bench.router(name, vhosts=(everything(),))
    here, there = bench.mesh(("A", "B"))
    replies = bench.client(there, hostname="shop").receiver(None, credit=10, dynamic=True).accepting()
    client = bench.client(here, hostname="shop")
    sender = client.sender(replies.address)
    for _ in range(3):
        assert sender.credit == 1
        abort(bench, client, sender, data)
    sender.send(message("reply"))
    bench.run()
    assert replies.bodies == ["reply"]


def test_an_abort_after_a_rejection_gives_no_credit_a_second_time(bench: Bench) -> None:
    client = bench.client(with_policy(bench), hostname="shop")
    client.receiver("topic", credit=5)
    sender = client.sender("topic")
    for _ in range(20):
        sent = sender.begin(bytes.fromhex("005373450053704500"))  # properties before the header
        bench.run()
        assert sent.outcome == "rejected"
        sent.abort()
        bench.run()
        assert 1 <= sender.credit <= 6
