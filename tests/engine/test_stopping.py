"""A router that stops gives clients back what waits for credit, and still passes replies on."""

from __future__ import annotations

from tests.helpers.engine import Bench
from tests.helpers.peer import message


def test_what_waits_for_credit_is_released_when_the_router_stops(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    server = client.receiver("address", credit=10).accepting()
    sender = client.sender("address")
    first = sender.send(message("first"))
    bench.run()
    assert first.outcome == "accepted"
    router.stop_taking()
    bench.run()
    assert sender.credit == 0
    waiting = [sender.send(message(number)) for number in range(3)]
    bench.run()
    assert [one.outcome for one in waiting] == [None] * 3
    router.hand_back()
    bench.run()
    assert [one.outcome for one in waiting] == ["released"] * 3
    assert len(server.messages) == 1


def test_replies_pass_while_the_router_gives_back_what_waits(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    replies = client.receiver(None, dynamic=True, credit=10).accepting()
    server = client.sender(replies.address)
    bench.run()
    router.stop_taking()
    router.hand_back()
    bench.run()
    reply = server.send(message("reply"))
    bench.run()
    assert reply.outcome == "accepted"
    assert len(replies.messages) == 1
