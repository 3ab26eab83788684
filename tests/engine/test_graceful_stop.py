"""A router that stops gives clients back what waits for credit, and still passes replies on."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from mesh_config.models import LinkStateSettings
from router.core.addressing.address import AddressKind
from router.dataplane.links import PublisherLink
from router.graceful_stop import HAND_BACK_S, REPLIES_S, take_no_more
from router.management.snapshot import ConnectionRow
from router.runtime import Runtime
from router.views.runtime import RuntimeView
from tests.engine.test_policy import enter, everything
from tests.helpers.engine import Bench
from tests.helpers.peer import message

FANOUT = "broadcast/many"


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


def test_multicasts_reach_who_is_still_attached_to_a_router_that_stops(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    there = bench.client(b)
    subscribers = [bench.client(a).receiver(FANOUT, credit=100).accepting()]
    subscribers.append(there.receiver(FANOUT, credit=100).accepting())
    single = there.receiver("single", credit=100).accepting()
    client = bench.client(a)
    sender, other = client.sender(FANOUT), client.sender("single")
    bench.advance(1.0)
    b.stop_taking()
    quiet: list[bool] = []
    b.tell_quiet(lambda: quiet.append(True))
    for number in range(20):
        sender.send(message(number))
        other.send(message(number))
        bench.advance(0.1)
    assert quiet, "what goes on doesn't hold up the stop"
    assert [one.bodies for one in subscribers] == [list(range(20))] * 2
    assert [one.outcome for one in sender.sent] == ["accepted"] * 20
    assert single.bodies == []
    subscribers.append(there.receiver(f"{FANOUT}/more", credit=100).accepting())
    bench.advance(1.0)
    assert f"{FANOUT}/more" in {entry.text for entry in a.fib.entries() if entry.remotes}
    there.close()
    bench.advance(1.0)
    assert not any(entry.remotes for entry in a.fib.entries() if entry.kind is AddressKind.MOBILE)


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


class Callers:
    """A caller and a server of one router."""

    def __init__(self, bench: Bench, **settings: float) -> None:
        self.bench = bench
        self.router = bench.router("A", **settings)
        self.caller = bench.client(self.router)
        self.replies = self.caller.receiver(None, dynamic=True, credit=100).accepting()
        self.requests = self.caller.sender("requests")
        self.server = bench.client(self.router)
        self.server.receiver("requests", credit=100).accepting()
        self.server.receiver(None, dynamic=True, credit=100)
        self.answers = self.server.sender(self.replies.address)
        bench.run()

    def ask(self, count: int = 1, *, settled: bool = False) -> None:
        for _ in range(count):
            self.requests.send(message("request"), settled=settled)
        self.bench.run()

    def answer(self, count: int = 1, *, settled: bool = True) -> None:
        for _ in range(count):
            self.answers.send(message("reply"), settled=settled)
        self.bench.run()

    def unanswered(self) -> list[int]:
        """Requests of each connection, the caller's first."""
        return [connection.count_unanswered_requests() for connection in self.router.connections.values()]


def test_requests_that_were_accepted_and_not_answered_are_counted(bench: Bench) -> None:
    callers = Callers(bench)
    assert callers.unanswered() == [0, 0]
    callers.ask(5)
    assert callers.unanswered() == [5, 0]
    callers.answer(2)
    callers.answer(2, settled=False)
    assert callers.unanswered() == [1, 0]
    callers.ask(3, settled=True)
    assert callers.unanswered() == [1, 0]
    rows = RuntimeView(callers.router, [], [])._connections()
    assert [row.unanswered_count for row in rows if isinstance(row, ConnectionRow)] == [1, 0]


def test_links_that_are_gone_count_as_well(bench: Bench) -> None:
    callers = Callers(bench)
    callers.ask(5)
    callers.answer(5)
    callers.requests.close()
    bench.run()
    callers.requests = callers.caller.sender("requests")
    callers.ask(2)
    assert callers.unanswered() == [2, 0]
    other = callers.caller.receiver(None, dynamic=True, credit=10).accepting()
    bench.run()
    callers.replies.close()
    bench.run()
    assert callers.unanswered() == [2, 0]
    callers.answers = callers.server.sender(other.address)
    callers.answer(2)
    assert callers.unanswered() == [0, 0]


def test_requests_of_who_has_no_reply_address_do_not_count(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    client.receiver("requests", credit=10).accepting()
    sent = client.sender("requests").send(message("request"))
    bench.run()
    assert sent.outcome == "accepted"
    assert [connection.count_unanswered_requests() for connection in router.connections.values()] == [0]


@asynccontextmanager
async def stopping(router: Runtime) -> AsyncIterator[None]:
    """The router takes no more beside what is done here, and has done so in the end."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(take_no_more, router, is_told=False))
        yield


async def test_a_stop_ends_soon_when_all_is_answered(autojump_clock: object) -> None:
    callers = Callers(Bench())
    callers.ask(3)
    callers.answer(3)
    began = trio.current_time()
    async with stopping(callers.router):
        pass
    assert trio.current_time() - began == pytest.approx(REPLIES_S + HAND_BACK_S)


async def test_a_stop_waits_until_each_reply_has_come(autojump_clock: object) -> None:
    callers = Callers(Bench())
    callers.ask(3)
    began = trio.current_time()
    async with stopping(callers.router):
        await trio.sleep(1)
        callers.answer(2)
        callers.ask()
        await trio.sleep(1)
        assert callers.requests.sent[-1].outcome is None
        callers.answer()
    callers.bench.run()
    assert len(callers.replies.messages) == 3
    assert callers.requests.sent[-1].outcome == "released"
    assert 2 + HAND_BACK_S <= trio.current_time() - began < 2.5


@pytest.mark.parametrize(("replies_s", "within_s", "ends_after_s"), [(4.0, math.inf, 4.0), (50.0, 5.0, 4.5), (0, 5, 0)])
async def test_a_stop_waits_no_longer_than_it_may_and_hands_back_even_then(
    replies_s: float, within_s: float, ends_after_s: float, autojump_clock: object
) -> None:
    callers = Callers(Bench(), shutdown_replies_s=replies_s)
    callers.ask()
    began = trio.current_time()
    with trio.move_on_after(within_s) as scope:
        async with stopping(callers.router):
            await trio.sleep(0.01)
            callers.bench.run()
            callers.ask()
    assert not scope.cancelled_caught
    callers.bench.run()
    assert [sent.outcome for sent in callers.requests.sent] == ["accepted", "released"]
    assert trio.current_time() - began == pytest.approx(ends_after_s + HAND_BACK_S, abs=0.11)


def test_after_a_drain_is_resumed_publishers_hold_what_subscribers_grant(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    receiver = client.receiver("address", credit=10)
    sender = client.sender("address")
    router.stop_taking()
    bench.advance(1)
    router.hand_back()
    bench.run()
    assert sender.credit > 11
    released = sender.send(message("while drained"))
    bench.run()
    assert released.outcome == "released"
    router.take_again()
    router.settle()
    bench.advance(1)
    assert 1 <= sender.credit <= 11
    for number in range(20):
        if sender.credit > 0:
            sender.send(message(number))
        bench.run()
    assert len(receiver.messages) == 10
    assert sender.credit == 0


def test_what_a_resumed_drain_has_released_is_owed_no_more(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=10),))
    receiver = enter(bench, router).receiver("x", credit=1000).accepting()
    sender = enter(bench, router).sender("x")
    for _ in range(20):
        bench.advance(1)
        for _ in range(min(sender.credit, 9)):
            sender.send(message("use"))
        bench.run()
    bench.advance(2)
    for _ in range(30):
        sender.send(message("unread"))
    bench.run()
    router.stop_taking()
    bench.advance(0.1)
    (link,) = [link for link in router.data_plane.links if isinstance(link, PublisherLink)]
    assert link.owed > 0
    router.hand_back()
    bench.advance(10)
    router.take_again()
    router.settle()
    bench.advance(1)
    assert link.controller is not None
    assert sender.credit == link.controller.publishers.attached[link].held > 0
    assert receiver.messages


@pytest.mark.parametrize("target", ["address", None])
def test_what_waits_for_credit_is_handed_back_too(bench: Bench, target: str | None) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("address", credit=1).accepting()
    sender = bench.client(router).sender(target)
    sent = []
    for number in range(2):
        sent.append(sender.send(message(number, address="address")))
        bench.run()
    assert [each.outcome for each in sent] == ["accepted", None]
    router.stop_taking()
    bench.advance(1)
    router.hand_back()
    bench.run()
    assert [each.outcome for each in sent] == ["accepted", "released"]
    assert receiver.bodies == [0]
