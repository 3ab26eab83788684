"""Neighbors that fall silent and come back on the same connection: traffic flows again, whatever was on its way."""

from __future__ import annotations

from typing import Any

import pytest

from router.runtime import Runtime
from tests.helpers.engine import Bench
from tests.helpers.peer import PeerSender, Received, message

ANYCAST = "openstack.org/om/rpc/anycast/topic"
MULTICAST = "openstack.org/om/rpc/multicast/topic"


def circuits_in(runtime: Runtime) -> list[Any]:
    return [link for one in runtime.connections.values() for link in one.port.circuits_in.values()]


def send_all(bench: Bench, senders: list[PeerSender], seconds: float) -> None:
    """As much as there is credit for."""
    for _ in range(int(seconds / 0.05)):
        for sender in senders:
            for _ in range(min(sender.credit, 3)):
                sender.send(message("x"))
        bench.run()
        bench.advance(0.05)


@pytest.mark.parametrize("address", [ANYCAST, MULTICAST])
@pytest.mark.parametrize("silent_s", [2.0, 4.5])
def test_circuits_are_whole_when_a_neighbor_has_been_silent(bench: Bench, address: str, silent_s: float) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    wires = bench.wires[:2]
    receiver = bench.client(c).receiver(address, credit=20_000).accepting()
    publisher = bench.client(a)
    senders = [publisher.sender(address) for _ in range(2)]
    bench.advance(1)
    send_all(bench, senders, 1)
    for wire in wires:
        wire.is_still = True
    send_all(bench, senders, silent_s)
    for wire in wires:
        wire.is_still = False
    bench.advance(1)
    for wire, (one, other) in zip(wires, ((a, b), (b, c)), strict=True):
        if wire.is_cut:
            bench.join(one, other)  # as a connector does
    bench.advance(1)
    before = len(receiver.messages)
    send_all(bench, senders, 6)
    assert len(receiver.messages) - before >= 300
    assert all(sender.credit > 0 for sender in senders)
    for runtime in (b, c):
        assert len(circuits_in(runtime)) == 1
    if address == ANYCAST:
        for sender in senders:
            unanswered = [sent for sent in sender.sent if sent.outcome is None]
            assert len(unanswered) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("address", [ANYCAST, MULTICAST])
def test_a_link_that_carries_nothing_any_more_holds_nobody_up_for_long(bench: Bench, address: str) -> None:
    # Its connection lasts longer than that, and so would the credit that the neighbor behind it holds.
    a, b, c = bench.mesh(("A", "B"), ("B", "C"), ("C", "A"))
    receiver = bench.client(c).receiver(address, credit=20)
    used = 0

    def take(received: Received) -> None:
        nonlocal used
        received.settle()
        used += 1
        if used % 10 == 0:  # as proton's prefetch does
            receiver.flow(10)

    receiver.policy = take
    senders = [bench.client(router).sender(address) for router in (a, b, b, b, b)]
    bench.advance(1)

    def least_sent(seconds: float) -> int:
        """How many that publisher could send that could send the fewest."""
        before = [len(sender.sent) for sender in senders]
        send_all(bench, senders, seconds)
        return min(len(sender.sent) - count for sender, count in zip(senders, before, strict=True))

    assert least_sent(1) > 10
    bench.wires[1].is_still = True
    least_sent(4)
    assert least_sent(1) > 10
    assert len(b.connections) == 6, "the silent one is still there"


def test_a_connection_between_routers_is_closed_after_twice_the_age_of_a_hello(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    (wire,) = bench.wires
    wire.is_still = True
    bench.advance(5)
    assert a.connections
    assert b.connections
    bench.advance(2)
    wire.is_still = False
    bench.run()
    assert not a.connections
    assert not b.connections
    bench.join(a, b)  # as a connector does
    bench.advance(1)
    assert len(a.fib.routes) == len(b.fib.routes) == 1


def test_a_connection_that_stands_by_between_routers_is_kept(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), ("A", "B"))
    bench.advance(60)
    assert len(a.connections) == len(b.connections) == 2
    assert [view.is_standby for view in a.control.neighbors()].count(True) == 1


def test_a_neighbor_at_rest_is_told_nothing_but_hellos(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    (connection,) = a.connections.values()
    bench.advance(60)
    before, links = connection._frames_written(), a.neighbor(connection.id)
    assert links is not None
    sent = links.control_ends()[0].count
    bench.advance(600)
    written = connection._frames_written() - before
    told = links.control_ends()[0].count - sent
    assert told >= 600
    assert written <= told + 10, "credit for them is given for many at once"
