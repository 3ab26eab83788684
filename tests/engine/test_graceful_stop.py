"""A router that stops gives clients back what waits for credit, and still passes replies on."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from mesh_config.models import LinkStateSettings
from router.graceful_stop import take_no_more
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


@pytest.mark.parametrize("hold_down_s", [0.005, 2.0])
async def test_others_have_new_paths_before_a_router_that_stops_takes_nothing_more(
    autojump_clock: object, hold_down_s: float
) -> None:
    bench = Bench()
    a, b, c, d = (bench.router(name, link_state=LinkStateSettings(spf_hold_down_s=hold_down_s)) for name in "ABCD")
    for one, other in ((a, b), (b, d), (a, c), (c, d)):
        bench.join(one, other)
    bench.advance(30 * hold_down_s)  # the pauses grow while changes go on
    before = a.fib.route(d.me)
    assert before is not None
    assert before.next_hop == b.me
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(take_no_more, b, is_told=True))
        while not b.data_plane.settlement.is_stopping:
            await trio.sleep(0.05)
            bench.advance(0.05)
        nursery.cancel_scope.cancel()
    after = a.fib.route(d.me)
    assert after is not None
    assert after.next_hop == c.me
