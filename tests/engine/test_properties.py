"""Whatever clients do, in whatever order: one outcome for each delivery, nothing twice or out of order, nothing left.

A machine attaches, sends (whole, in parts, settled or not), settles, grants, detaches and cuts connections over one and
over two routers; at the end the last subscribers take everything and each account is looked at.
"""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from proton import Delivery

from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Received, Sent, message

ADDRESSES = ("balanced", "unicast.x", "exclusive.x")
HELD = {"held_message_bytes": 3000, "publisher_window": 8, "router_window": 6, "session_window_frames": 4}
"""So small that all of it happens."""
SMALL, MEDIUM, LARGE = 10, 1500, 40_000
"""Bytes of bodies, each of which fits one frame; parts make several of them."""


@attrs.define(eq=False)
class Publisher:
    client: Peer
    link: PeerSender
    address: str
    number: int
    count: int = 0
    is_gone: bool = False
    open_part: tuple[Sent, bytes] | None = None
    """A message that is begun, and what is left of it."""
    unsettled: list[tuple[Sent, int]] = attrs.field(factory=list)
    aborted: set[int] = attrs.field(factory=set)


@attrs.define(eq=False)
class Subscriber:
    client: Peer
    link: PeerReceiver
    address: str
    is_gone: bool = False
    settled: int = 0


class Mesh(RuleBasedStateMachine):
    """The machine; subclasses say how many routers there are."""

    count = 1

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        if self.count == 1:
            self.routers = [self.bench.router("A", forwarding=HELD)]
        else:
            names = "ABC"[: self.count]
            self.routers = self.bench.mesh(*itertools.pairwise(names), forwarding=HELD)
        self.publishers: list[Publisher] = []
        self.subscribers: list[Subscriber] = []
        self.clients: list[Peer] = []
        self.luck = 0
        """Times that bytes moved since somebody left: leaving is rare, else little arrives."""

    @initialize()
    def begin(self) -> None:
        for router in self.routers:
            self.clients += [self.bench.client(router), self.bench.client(router)]
        for index, address in enumerate(ADDRESSES):
            self.publish(index, address)
            self.subscribe(len(self.clients) - 1 - index, address, 3)
        self.bench.run()

    # Attaching

    @precondition(lambda self: self.living(self.publishers) < 6)
    @rule(client=st.integers(0, 9), address=st.sampled_from(ADDRESSES))
    def publish(self, client: int, address: str) -> None:
        peer = self.clients[client % len(self.clients)]
        link = peer.sender(address, run=False)
        self.publishers.append(Publisher(peer, link, address, len(self.publishers)))

    @precondition(lambda self: self.living(self.subscribers) < 6)
    @rule(client=st.integers(0, 9), address=st.sampled_from(ADDRESSES), credit=st.integers(0, 5))
    def subscribe(self, client: int, address: str, credit: int) -> None:
        peer = self.clients[client % len(self.clients)]
        link = peer.receiver(address, credit=credit, run=False)
        self.subscribers.append(Subscriber(peer, link, address))

    # Sending

    @rule(who=st.integers(0, 9), sizes=st.lists(st.sampled_from((SMALL, SMALL, MEDIUM, LARGE)), min_size=1, max_size=5))
    def send(self, who: int, sizes: list[int]) -> None:
        self.send_all(who, sizes, settled=False)

    @rule(who=st.integers(0, 9), sizes=st.lists(st.sampled_from((SMALL, MEDIUM, LARGE)), min_size=1, max_size=3))
    def send_settled(self, who: int, sizes: list[int]) -> None:
        self.send_all(who, sizes, settled=True)

    def send_all(self, who: int, sizes: list[int], *, settled: bool) -> None:
        publisher = self.publisher(who)
        if publisher is None or publisher.open_part is not None:
            return
        for size in sizes:
            sent = publisher.link.send(self.next(publisher, size), settled=settled)
            if not settled:
                publisher.unsettled.append((sent, publisher.count))

    @rule(who=st.integers(0, 9), size=st.sampled_from((SMALL, MEDIUM, LARGE)), cut=st.floats(0, 1))
    def send_a_part(self, who: int, size: int, cut: float) -> None:
        publisher = self.publisher(who)
        if publisher is not None and publisher.open_part is None:
            data = self.next(publisher, size)
            at = int(len(data) * cut)
            sent = publisher.link.begin(data[:at])
            publisher.open_part = (sent, data[at:])
            publisher.unsettled.append((sent, publisher.count))

    @rule(who=st.integers(0, 9))
    def send_the_rest(self, who: int) -> None:
        publisher = self.publisher(who)
        if publisher is not None and publisher.open_part is not None:
            sent, rest = publisher.open_part
            publisher.open_part = None
            sent.end(rest)

    @rule(who=st.integers(0, 9))
    def abort(self, who: int) -> None:
        publisher = self.publisher(who)
        if publisher is not None and publisher.open_part is not None:
            sent, _ = publisher.open_part
            publisher.open_part = None
            publisher.aborted.add(publisher.count)
            publisher.unsettled = [one for one in publisher.unsettled if one[0] is not sent]
            sent.abort()

    # Taking

    @rule(who=st.integers(0, 9), credit=st.integers(1, 5))
    def grant(self, who: int, credit: int) -> None:
        subscriber = self.subscriber(who)
        if subscriber is not None:
            subscriber.link.flow(credit)

    @rule(who=st.integers(0, 9))
    def drain(self, who: int) -> None:
        subscriber = self.subscriber(who)
        if subscriber is not None:
            subscriber.link.drain(0)

    @rule(who=st.integers(0, 9), which=st.integers(0, 9), outcome=st.integers(0, 5))
    def settle(self, who: int, which: int, outcome: int) -> None:
        subscriber = self.subscriber(who)
        if subscriber is None:
            return
        mine = [one for one in subscriber.link.messages if not is_done(one)]
        if mine:
            settle(mine[which % len(mine)], outcome)

    # Leaving

    @precondition(lambda self: self.luck > 2)
    @rule(who=st.integers(0, 9), closed=st.booleans(), session=st.booleans())
    def publisher_leaves(self, who: int, closed: bool, session: bool) -> None:
        self.luck = 0
        publisher = self.publisher(who)
        if publisher is not None:
            publisher.is_gone = True
            leave(publisher.link, closed, session)

    @precondition(lambda self: self.luck > 2)
    @rule(who=st.integers(0, 9), closed=st.booleans(), session=st.booleans())
    def subscriber_leaves(self, who: int, closed: bool, session: bool) -> None:
        self.luck = 0
        subscriber = self.subscriber(who)
        if subscriber is not None:
            subscriber.is_gone = True
            leave(subscriber.link, closed, session)

    @precondition(lambda self: self.luck > 4)
    @rule(which=st.integers(0, 9))
    def a_connection_is_lost(self, which: int) -> None:
        self.luck = 0
        index = which % len(self.clients)
        lost = self.clients[index]
        lost.wire.cut()
        for one in (*self.publishers, *self.subscribers):
            one.is_gone = one.is_gone or one.client is lost
        self.clients[index] = self.bench.client(self.routers[index // 2])

    # Time

    @rule()
    def run(self) -> None:
        self.luck += 1
        self.bench.run()

    @rule()
    def run_and_take(self) -> None:
        """Everybody who has something takes it and wants more."""
        self.luck += 1
        self.bench.run()
        for subscriber in self.subscribers:
            if not subscriber.is_gone:
                todo = [one for one in subscriber.link.messages if not is_done(one)]
                for received in todo:
                    settle(received, len(subscriber.link.messages) % 6)
                if todo:
                    subscriber.link.flow(len(todo))
        self.bench.run()

    @rule(end=st.integers(0, 9))
    def move_one_wire(self, end: int) -> None:
        self.clients[end % len(self.clients)].wire.move()

    @invariant()
    def accounts_agree(self) -> None:
        self.bench.check()

    def teardown(self) -> None:
        for index in range(10):
            self.send_the_rest(index)
        self.bench.run()
        for subscriber in self.subscribers:
            if not subscriber.is_gone:
                subscriber.link.policy = lambda received: settle(received, 0)
                for received in subscriber.link.messages:
                    if not is_done(received):
                        settle(received, 0)
                subscriber.link.flow(1000)
        self.bench.run()
        self.bench.advance(70)  # what found nobody has waited long enough
        self.check_outcomes()
        self.check_order()
        self.bench.close()

    # Looking

    def check_outcomes(self) -> None:
        for publisher in self.publishers:
            if publisher.is_gone:
                continue
            for sent, number in publisher.unsettled:
                if publisher.link.credit < 0 or not sent.outcomes:
                    # it never left its sender: nobody is there to take it
                    assert not self.is_open(publisher.address), (publisher.address, number, sent)
                    continue
                assert sent.outcome in ("accepted", "rejected", "released", "modified"), sent
                assert sent.is_settled

    def is_open(self, address: str) -> bool:
        return any(one.address == address and not one.is_gone for one in self.subscribers)

    def check_order(self) -> None:
        seen: set[tuple[int, int]] = set()
        for subscriber in self.subscribers:
            last: dict[int, int] = {}
            for received in subscriber.link.messages:
                publisher, number, *_ = str(received.body).split()
                key = (int(publisher), int(number))
                assert key not in seen, f"{key} came twice"
                seen.add(key)
                assert number not in self.publishers[key[0]].aborted
                assert last.get(key[0], 0) < key[1], f"{key} came behind {last}"
                last[key[0]] = key[1]

    def next(self, publisher: Publisher, size: int) -> bytes:
        publisher.count += 1
        return message(f"{publisher.number} {publisher.count} " + "x" * size)

    def publisher(self, who: int) -> Publisher | None:
        living = [one for one in self.publishers if not one.is_gone]
        return living[who % len(living)] if living else None

    def subscriber(self, who: int) -> Subscriber | None:
        living = [one for one in self.subscribers if not one.is_gone]
        return living[who % len(living)] if living else None

    def living(self, ones: list[Any]) -> int:
        return sum(1 for one in ones if not one.is_gone)


def is_done(received: Received) -> bool:
    return received.was_settled or bool(received.delivery.local_state)


def settle(received: Received, outcome: int) -> None:
    if received.was_settled:
        received.delivery.settle()
    elif outcome < 2:
        received.settle()
    elif outcome == 2:
        received.settle(Delivery.RELEASED)
    elif outcome == 3:
        received.reject("amqp:not-allowed", "no")
    else:
        received.modify(failed=outcome == 4, undeliverable=False)


def leave(link: PeerSender | PeerReceiver, closed: bool, session: bool) -> None:
    if session:
        link.end_session()
    elif closed:
        link.close()
    else:
        link.detach()


class OneRouter(Mesh):
    count = 1


class TwoRouters(Mesh):
    count = 2


class ThreeRouters(Mesh):
    count = 3


@pytest.mark.parametrize(
    ("machine", "examples"),
    [
        pytest.param(OneRouter, 60, id="one router"),
        pytest.param(TwoRouters, 40, id="two routers", marks=pytest.mark.slow),
        pytest.param(ThreeRouters, 15, id="three routers", marks=pytest.mark.slow),
    ],
)
def test_one_outcome_for_each_delivery_and_nothing_left(machine: type[Mesh], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            phases=[Phase.generate],  # a play that fails is short enough, and making it shorter takes minutes
        ),
    )
