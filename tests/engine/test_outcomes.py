"""Settlement end to end: every outcome with its fields, from subscriber to publisher, over one and three routers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from proton import Delivery, Described, Link, symbol, ulong

from router.binding.proton_data import MOST_OUTCOME_BYTES
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd, least_growth, settle_modes
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Received, Sent, message


class Pair:
    """A publisher and a subscriber of one address, at one router or at both ends of a line."""

    def __init__(self, bench: Bench, routers: list[Runtime]) -> None:
        self.bench = bench
        self.first, self.last = routers[0], routers[-1]
        self.client: Peer = bench.client(self.first, container="publisher")
        self.server: Peer = bench.client(self.last, container="subscriber")
        self.receiver: PeerReceiver = self.server.receiver("service", credit=100)
        self.sender: PeerSender = self.client.sender("service")

    def run(self) -> None:
        self.bench.run()


@pytest.fixture(params=["one router", "one router, bytewise", "three routers"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    bench = Bench(piece=1 if "bytewise" in request.param else 0)
    routers = bench.mesh(("A", "B"), ("B", "C")) if request.param == "three routers" else [bench.router("A")]
    yield Pair(bench, routers)
    bench.close()


def test_accepted(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    assert sent.outcomes == []
    pair.receiver.messages[0].settle()
    pair.run()
    assert sent.outcome == "accepted"
    assert sent.delivery.settled


def test_rejected_with_condition_description_and_info(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.receiver.messages[0].reject("my:condition", "I don't like it", {symbol("why"): "too blue", symbol("n"): 7})
    pair.run()
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert (sent.condition.name, sent.condition.description) == ("my:condition", "I don't like it")
    assert sent.condition.info == {"why": "too blue", "n": 7}


def test_an_outcome_that_says_too_much_is_cut_to_what_each_peer_takes(pair: Pair) -> None:
    """One disposition may be for thousands of messages: each of their senders would be told all of it."""
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.receiver.messages[0].reject("my:condition", "é" * 10_000, {symbol("why"): "too blue"})
    pair.run()
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == "my:condition"
    assert sent.condition.description == "é" * ((MOST_OUTCOME_BYTES - len("my:condition")) // 2)
    assert not sent.condition.info


def test_rejected_without_a_condition(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.receiver.messages[0].settle(Delivery.REJECTED)
    pair.run()
    assert sent.outcome == "rejected"
    assert sent.condition is None


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("undeliverable", [False, True])
@pytest.mark.parametrize("annotations", [None, {symbol("x-opt-tries"): 3}])
def test_modified_with_its_flags_and_annotations(
    pair: Pair, failed: bool, undeliverable: bool, annotations: dict[Any, Any] | None
) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.receiver.messages[0].modify(failed=failed, undeliverable=undeliverable, annotations=annotations)
    pair.run()
    assert sent.outcome == "modified"
    assert (sent.failed, sent.undeliverable) == (failed, undeliverable)
    assert (sent.annotations or None) == annotations


def test_released(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.receiver.messages[0].settle(Delivery.RELEASED)
    pair.run()
    assert sent.outcome == "released"


def test_received_is_not_passed_on(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    delivery = pair.receiver.messages[0].delivery
    delivery.local.section_number = 1
    delivery.update(Delivery.RECEIVED)
    pair.run()
    assert sent.outcomes == []
    delivery.update(Delivery.ACCEPTED)
    delivery.settle()
    pair.run()
    assert sent.outcome == "accepted"
    dispositions = [frame for frame in frames.read(pair.client.wire.log[1]) if frame.name == "disposition"]
    assert [int(frame.field(4).descriptor) for frame in dispositions] == [0x24]


def test_settled_without_an_outcome_may_have_been_seen(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.receiver.messages[0].delivery.settle()
    pair.run()
    assert (sent.outcome, sent.failed) == ("modified", True)


def test_rcv_settle_mode_second_settles_in_two_steps(pair: Pair) -> None:
    receiver = pair.server.receiver("other", credit=5, prepare=settle_modes(rcv_settle_mode=Link.RCV_SECOND))
    sent = pair.client.sender("other").send(message("x"))
    pair.run()
    delivery = receiver.messages[0].delivery
    delivery.update(Delivery.ACCEPTED)
    pair.run()
    assert sent.outcome == "accepted"
    assert sent.delivery.settled
    assert delivery.settled  # the router settles on the outcome, the receiver after it
    delivery.settle()
    pair.run()


def test_a_publisher_that_asks_for_second_is_told_first(pair: Pair) -> None:
    sender = pair.client.sender("service", prepare=settle_modes(rcv_settle_mode=Link.RCV_SECOND))
    assert sender.link.remote_rcv_settle_mode == Link.RCV_FIRST
    pair.receiver.accepting()
    sent = sender.send(message("x"))
    pair.run()
    assert sent.outcome == "accepted"


def test_pre_settled_stays_pre_settled(pair: Pair) -> None:
    for number in range(5):
        pair.sender.send(message(number), settled=True)
    pair.run()
    assert pair.receiver.bodies == [0, 1, 2, 3, 4]
    assert all(received.was_settled for received in pair.receiver.messages)
    assert pair.first.data_plane.settlement.count == 0
    assert pair.last.data_plane.settlement.count == 0


def test_a_subscriber_of_settled_messages_accepts_by_being_written_to(pair: Pair) -> None:
    receiver = pair.server.receiver("other", credit=5, prepare=settle_modes(snd_settle_mode=Link.SND_SETTLED))
    sent = pair.client.sender("other").send(message("x"))
    pair.run()
    assert [received.was_settled for received in receiver.messages] == [True]
    assert sent.outcome == "accepted"


def test_a_publisher_that_settles_early_is_told_nothing_more(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    sent.settle()
    pair.run()
    pair.receiver.messages[0].settle()
    pair.run()
    assert sent.outcomes == []
    again = pair.sender.send(message("y"))
    pair.run()
    pair.receiver.messages[1].settle()
    pair.run()
    assert again.outcome == "accepted"


def test_outcomes_come_back_in_any_order_each_to_its_own(pair: Pair) -> None:
    sent = [pair.sender.send(message(number)) for number in range(6)]
    pair.run()
    acts: list[Callable[[Received], None]] = [
        lambda r: r.settle(),
        lambda r: r.settle(Delivery.RELEASED),
        lambda r: r.reject("a:b", "c"),
        lambda r: r.modify(failed=True, undeliverable=True),
        lambda r: r.settle(),
        lambda r: r.modify(failed=False, undeliverable=False),
    ]
    for index in (4, 1, 5, 0, 3, 2):
        acts[index](pair.receiver.messages[index])
        if index % 2:
            pair.run()
    pair.run()
    assert [one.outcome for one in sent] == ["accepted", "released", "rejected", "modified", "accepted", "modified"]


def test_a_disposition_for_a_range_settles_each_of_it(pair: Pair) -> None:
    sent = [pair.sender.send(message(number)) for number in range(50)]
    pair.run()
    for received in pair.receiver.messages:
        received.settle()
    pair.run()
    assert [one.outcome for one in sent] == ["accepted"] * 50
    # many deliveries, few frames, on the publisher's connection too
    assert len([f for f in frames.read(pair.client.wire.log[1]) if f.name == "disposition"]) <= 3


# Whoever is lost


def test_a_lost_subscriber_releases_what_was_not_sent_and_fails_what_was(pair: Pair) -> None:
    slow = pair.server.receiver("slow", credit=3)
    sender = pair.client.sender("slow")
    sent = [sender.send(message(number)) for number in range(6)]
    pair.run()
    assert slow.bodies == [0, 1, 2]
    slow.messages[0].settle()
    pair.run()
    slow.close()
    pair.run()
    # the last two never left their sender: one message is all that waits for a subscriber
    assert [one.outcome for one in sent] == ["accepted", "modified", "modified", "released", None, None]
    assert [one.failed for one in sent[1:3]] == [True, True]


def raw_subscriber(bench: Bench, router: Runtime, window: int, frame_bytes: int = 32768) -> RawEnd:
    """A subscriber of `topic` whose session takes so many frames (*window*), of a size (bytes)."""
    raw = bench.raw(router)
    raw.write(
        frames.AMQP_HEADER
        + frames.write(0x10, ["raw", None, frame_bytes])
        + frames.write(0x11, [None, 0, window, 100])
        + frames.write(0x12, ["r", 0, True, None, None, frames.source("topic"), frames.target("topic")])
        + frames.write(0x13, [0, window, 0, 100, 0, 0, 5])
    )
    bench.run()
    return raw


@pytest.mark.parametrize("how", ["detach", "end", "close", "cut"])
@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("size", [1500, 100_000, 2_000_000])
def test_a_lost_subscriber_fails_what_it_has_seen_a_part_of(bench: Bench, size: int, window: int, how: str) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 1_000_000})
    raw = raw_subscriber(bench, router, window, 512 if size < 2000 else 32768)
    sender = bench.client(router).sender("topic")
    bench.run()
    sent = [sender.send(message("x" * size)) for _ in range(2)]
    bench.run()
    assert len([frame for frame in frames.read(raw.read) if frame.name == "transfer"]) == window
    if how == "cut":
        bench.raw_ends[0].cut()
    else:
        raw.write(frames.write({"detach": 0x16, "end": 0x17, "close": 0x18}[how], [0] if how == "detach" else []))
    bench.advance(2)
    assert [one.outcome for one in sent] == ["modified" if window else "released", "released"]
    assert sent[0].failed == bool(window)


@pytest.mark.parametrize("in_one_write", [False, True])
@pytest.mark.parametrize("size", [100_000, 2_000_000])
def test_who_gives_a_message_up_half_read_may_end_its_session(bench: Bench, size: int, in_one_write: bool) -> None:
    """Proton may not free the link twice: AddressSanitizer sees that each time, the allocator only sometimes."""
    router = bench.router("A", forwarding={"held_message_bytes": 1_000_000})
    for _ in range(10):
        raw = raw_subscriber(bench, router, 1)
        sender = bench.client(router).sender("topic")
        bench.run()
        sent = sender.send(message("x" * size))
        bench.run()
        given_up = frames.write(0x15, [True, 0, None, True, Described(ulong(0x26), [])])
        end = frames.write(0x17, [])
        for octets in (given_up + end,) if in_one_write else (given_up, end):
            raw.write(octets)
            bench.run()
        bench.advance(2)
        assert sent.outcome == "released"
        assert [frame.name for frame in frames.read(raw.read)][-1] == "end"


def test_whose_publisher_has_died_half_way_may_end_its_session(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 1_000_000})
    for _ in range(10):
        raw = raw_subscriber(bench, router, 1)
        client = bench.client(router)
        sender = client.sender("topic")
        bench.run()
        sender.begin(message("x" * 2_000_000)[:1_500_000])
        bench.run()
        assert [frame.name for frame in frames.read(raw.read)].count("transfer") == 1
        client.wire.cut()
        bench.advance(2)
        raw.write(frames.write(0x17, []))
        bench.advance(2)
        assert [frame.name for frame in frames.read(raw.read)][-1] == "end"


@pytest.mark.parametrize(
    "state",
    [
        Described(ulong(0x25), [Described(ulong(0x1D), [symbol("app:no"), "nope"])]),
        Described(ulong(0x25), [None]),
        Described(ulong(0x26), []),
    ],
    ids=["rejected with words", "rejected", "released"],
)
def test_a_sender_that_leaves_within_a_message_hears_what_its_subscriber_said(bench: Bench, state: Described) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 100_000})
    raw = raw_subscriber(bench, router, 1000)
    client = bench.client(router)
    sender = client.sender("topic")
    bench.run()
    sent = sender.begin(message("x" * 2_000_000)[:400_000])
    bench.run()
    raw.write(frames.write(0x15, [True, 0, None, True, state]))
    bench.run()
    assert sent.outcome is None, "the end may be near"
    sender.close()
    bench.advance(3)
    told = [frame for frame in frames.read(client.wire.log[1]) if frame.name == "disposition"]
    assert [frame.fields[4].descriptor for frame in told] == [state.descriptor]


def test_a_lost_connection_does_the_same(pair: Pair) -> None:
    slow = pair.server.receiver("slow", credit=2)
    sender = pair.client.sender("slow")
    sent = [sender.send(message(number)) for number in range(4)]
    pair.run()
    assert slow.bodies == [0, 1]
    pair.server.wire.cut()
    pair.run()
    assert [one.outcome for one in sent] == ["modified", "modified", "released", None]
    assert sender.credit <= 0


def test_another_subscriber_takes_over_what_waits(pair: Pair) -> None:
    slow = pair.server.receiver("slow", credit=1)
    sender = pair.client.sender("slow")
    sent = [sender.send(message(number)) for number in range(3)]
    pair.run()
    other = pair.server.receiver("slow").accepting()
    slow.close()
    pair.run()
    assert sent[0].outcome == "modified"
    other.flow(10)
    pair.run()
    assert other.bodies == [1, 2]
    assert [one.outcome for one in sent[1:]] == ["accepted", "accepted"]


def test_a_publisher_that_leaves_takes_back_what_waits_unsettled(pair: Pair) -> None:
    receiver = pair.server.receiver("slow", credit=1)
    senders = [pair.client.sender("slow") for _ in range(3)]
    senders[0].send(message("first"))
    pair.run()
    senders[1].send(message("unsettled"))
    senders[2].send(message("settled"), settled=True)
    pair.run()
    for sender in senders:
        sender.close()
    pair.run()
    receiver.flow(10)
    pair.run()
    # a complete pre-settled message is the mesh's and stays
    assert receiver.bodies == ["first", "settled"]


def told(peer: Peer) -> list[frames.Frame]:
    """Outcomes and detaches that a router wrote."""
    return [frame for frame in frames.read(peer.wire.log[1]) if frame.name in ("disposition", "detach")]


@pytest.mark.parametrize("leave", ["close", "detach"])
def test_a_publisher_that_leaves_hears_that_its_message_may_have_been_seen(pair: Pair, leave: str) -> None:
    pair.sender.send(message("x"))
    pair.run()
    getattr(pair.sender, leave)()
    pair.run()
    disposition, detach = told(pair.client)
    assert (disposition.field(1), disposition.field(3), detach.name) == (0, True, "detach")
    assert disposition.field(4) == Described(ulong(0x27), [True, False])  # modified, delivery-failed
    pair.receiver.messages[0].settle()
    pair.run()
    assert len(told(pair.client)) == 2


@pytest.mark.parametrize("leave", ["close", "detach"])
def test_a_publisher_that_leaves_hears_that_what_waits_was_not_seen(pair: Pair, leave: str) -> None:
    pair.server.receiver("slow", credit=1)
    first, second = (pair.client.sender("slow") for _ in range(2))
    first.send(message("first"))
    pair.run()
    second.send(message("waits"))
    pair.run()
    getattr(second, leave)()
    pair.run()
    disposition, _ = told(pair.client)
    assert (disposition.field(3), disposition.field(4)) == (True, Described(ulong(0x26), []))  # released


def test_a_publisher_that_leaves_does_not_disturb_what_was_sent(pair: Pair) -> None:
    sent = pair.sender.send(message("x"))
    pair.run()
    pair.client.wire.cut()
    pair.run()
    assert sent.outcomes == []
    pair.receiver.messages[0].settle()
    pair.run()
    assert pair.first.data_plane.settlement.count == 0
    assert pair.last.data_plane.settlement.count == 0


# Between routers


def test_a_lost_path_fails_what_was_sent(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    wire = bench.wires[0]
    client, server = bench.client(a), bench.client(b)
    receiver = server.receiver("service", credit=2)
    sender = client.sender("service")
    sent = [sender.send(message(number)) for number in range(4)]
    bench.run()
    assert receiver.bodies == [0, 1]
    wire.cut()
    bench.run()
    # the third waited at A, since nobody had credit for it, and the last one at its sender
    assert [one.outcome for one in sent] == ["modified", "modified", "released", None]
    assert sender.credit <= 0
    receiver.messages[0].settle()
    receiver.flow(10)
    bench.run()
    # A has called them failed, so they must not come now as if nothing had happened
    assert receiver.bodies == [0, 1]


def test_what_another_router_refuses_comes_back_as_it_said(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    client = bench.client(a)
    sender = client.sender(None)
    sent = sender.send(message("x", address="amqp:/_topo/0/B/temp.gone"))
    bench.run()
    assert sent.outcome == "released"
    assert b.fib.routes


def test_delivery_tags_and_order_survive_a_thousand_messages(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    client, server = bench.client(a), bench.client(b)
    receiver = server.receiver("service", credit=2000).accepting()
    sender = client.sender("service")
    sent = []
    for _ in range(10):
        sent += [sender.send(message(len(sent) + n)) for n in range(100)]
        bench.run()
    assert receiver.bodies == list(range(1000))
    assert {one.outcome for one in sent} == {"accepted"}


@pytest.mark.slow
def test_thousands_of_messages_leave_nothing_behind(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    client, server = bench.client(a), bench.client(b)
    receiver = server.receiver("service", credit=100).accepting()
    sender = client.sender("service")

    def burst() -> None:
        for number in range(100):
            sender.send(message(number), settled=number % 3 == 0)
        bench.run()
        assert len(receiver.messages) == 100
        receiver.messages.clear()
        sender.sent.clear()
        receiver.flow(100)
        for wire in bench.wires:
            for log in wire.log:
                log.clear()

    def bursts() -> None:
        for _ in range(3):
            burst()

    bursts()
    assert least_growth(bursts) < 100_000  # a delivery of proton alone is about 1 KiB


# In whatever form they are written


SYMBOLS = {
    "accepted": Described(symbol("amqp:accepted:list"), []),
    "rejected": Described(
        symbol("amqp:rejected:list"),
        [Described(symbol("amqp:error:list"), [symbol("my:no"), "why", {symbol("n"): 7}])],
    ),
    "released": Described(symbol("amqp:released:list"), []),
    "modified": Described(symbol("amqp:modified:list"), [False, True, {symbol("x-opt-tries"): 3}]),
}


class RawSubscriber:
    """A subscriber that writes its frames itself, and a publisher, at one router or at both ends of a line."""

    def __init__(self, bench: Bench, routers: list[Runtime], default: Any = None) -> None:
        self.bench = bench
        self.raw = bench.raw(routers[-1])
        source = Described(symbol("amqp:source:list"), ["service", *[None] * 7, default])
        self.raw.write(frames.AMQP_HEADER + frames.write(0x10, ["raw"]) + frames.write(0x11, [None, 0, 99, 99]))
        self.raw.write(frames.write(0x12, ["link", 0, True, None, None, source, frames.target("service")]))
        self.raw.write(frames.write(0x13, [0, 99, 0, 99, 0, 0, 9]))
        bench.run()
        self.sender = bench.client(routers[0]).sender("service")
        bench.run()

    def answered(self, state: Any, *, hole: bytes = b"") -> Sent:
        """What a publisher is told when the subscriber settles its message with *state*.

        *hole*: what it writes instead of a binary of eight number signs.
        """
        sent = self.sender.send(message("x"))
        self.bench.run()
        number = [frame.fields[1] for frame in frames.read(self.raw.read) if frame.name == "transfer"][-1]
        frame = frames.write(0x15, [True, number, None, True, state])
        self.raw.write(frame.replace(b"\xa0\x08" + b"#" * 8, hole) if hole else frame)
        self.bench.run()
        return sent


@pytest.fixture(params=["one router", "one router, bytewise", "three routers"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[Bench, list[Runtime]]]:
    bench = Bench(piece=1 if "bytewise" in request.param else 0)
    yield bench, bench.mesh(("A", "B"), ("B", "C")) if request.param == "three routers" else [bench.router("A")]
    bench.close()


@pytest.mark.parametrize("outcome", SYMBOLS)
def test_an_outcome_whose_descriptor_is_a_symbol(place: tuple[Bench, list[Runtime]], outcome: str) -> None:
    sent = RawSubscriber(*place).answered(SYMBOLS[outcome])
    assert (sent.outcome, sent.delivery.settled) == (outcome, True)
    if outcome == "rejected":
        assert sent.condition is not None
        assert (sent.condition.name, sent.condition.description) == ("my:no", "why")
        assert sent.condition.info == {"n": 7}
    if outcome == "modified":
        assert (sent.failed, sent.undeliverable, sent.annotations) == (False, True, {"x-opt-tries": 3})


@pytest.mark.parametrize(
    "value", [b"\xa1\x08abcd\xff\xfegh", b"\x30#########", b"\xc1\x02\x01\x40\x40\x40\x40\x40\x40\x40"]
)
def test_what_a_subscriber_says_with_an_outcome_can_be_read_by_a_publisher(
    place: tuple[Bench, list[Runtime]], value: bytes
) -> None:
    subscriber = RawSubscriber(*place)
    error = Described(ulong(0x1D), [symbol("my:no"), "why", {symbol("n"): b"#" * 8}])
    sent = subscriber.answered(Described(ulong(0x25), [error]), hole=value)
    is_read = value[0] == 0xA1
    assert sent.outcome == "rejected"
    told = sent.condition and (sent.condition.name, sent.condition.description, sent.condition.info)
    assert told == (("my:no", "why", {"n": "abcd??gh"}) if is_read else None)
    sent = subscriber.answered(Described(ulong(0x27), [False, True, {symbol("n"): b"#" * 8}]), hole=value)
    assert (sent.outcome, sent.undeliverable) == ("modified", True)
    assert sent.annotations == ({"n": "abcd??gh"} if is_read else None)
    assert subscriber.answered(SYMBOLS["accepted"]).outcome == "accepted"


@pytest.mark.parametrize("outcome", ["accepted", "rejected", "released"])
def test_a_range_over_a_delivery_that_is_settled_leaves_its_outcome(
    place: tuple[Bench, list[Runtime]], outcome: str
) -> None:
    subscriber = RawSubscriber(*place)
    sent = [subscriber.sender.send(message("x")) for _ in range(3)]
    subscriber.bench.run()
    other = "accepted" if outcome != "accepted" else "rejected"
    one = frames.write(0x15, [True, 1, None, True, SYMBOLS[outcome]])
    subscriber.raw.write(one + frames.write(0x15, [True, 0, 2, True, SYMBOLS[other]]))
    subscriber.bench.run()
    assert [each.outcomes for each in sent] == [[other], [outcome], [other]]


def test_received_with_a_symbol_is_not_passed_on_either(place: tuple[Bench, list[Runtime]]) -> None:
    subscriber = RawSubscriber(*place)
    sent = subscriber.sender.send(message("x"))
    subscriber.bench.run()
    received = Described(symbol("amqp:received:list"), [1, ulong(5)])
    subscriber.raw.write(frames.write(0x15, [True, 0, None, False, received]))
    subscriber.bench.run()
    assert sent.outcomes == []
    subscriber.raw.write(frames.write(0x15, [True, 0, None, True, SYMBOLS["accepted"]]))
    subscriber.bench.run()
    assert sent.outcome == "accepted"


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("my:no", "my:no"),
        (b"my:no", "my:no"),
        ("n\xfc", "n??"),
        (None, "amqp:internal-error"),
        (5, "amqp:internal-error"),
    ],
)
def test_a_rejection_whose_condition_is_no_symbol_keeps_its_description(
    place: tuple[Bench, list[Runtime]], condition: Any, name: str
) -> None:
    error = Described(ulong(0x1D), [condition, "I don't like it"])
    sent = RawSubscriber(*place).answered(Described(ulong(0x25), [error]))
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert (sent.condition.name, sent.condition.description) == (name, "I don't like it")


@pytest.mark.parametrize("outcome", ["accepted", "rejected", "released", "modified"])
@pytest.mark.parametrize("is_symbol", [False, True])
def test_what_is_settled_without_an_outcome_has_the_default_outcome_of_its_source(
    place: tuple[Bench, list[Runtime]], outcome: str, is_symbol: bool
) -> None:
    default = SYMBOLS[outcome]
    if not is_symbol:
        codes = {"accepted": 0x24, "rejected": 0x25, "released": 0x26, "modified": 0x27}
        default = Described(ulong(codes[outcome]), default.value)
    subscriber = RawSubscriber(*place, default)
    sent = subscriber.answered(None)
    assert sent.outcome == outcome
    if outcome == "modified":
        assert (sent.failed, sent.undeliverable) == (False, True)
    assert subscriber.answered(SYMBOLS["accepted"]).outcome == "accepted", "an outcome that is given counts"


def test_a_transfer_whose_state_has_a_symbol_arrives(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("service", credit=9).accepting()
    bench.run()
    raw = bench.raw(router)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["raw"]) + frames.write(0x11, [None, 0, 99, 99]))
    termini = [frames.source("service"), frames.target("service")]
    raw.write(frames.write(0x12, ["link", 0, False, None, None, *termini, None, None, 0]))
    bench.run()
    states = [None, *SYMBOLS.values(), Described(symbol("amqp:received:list"), [0, ulong(0)])]
    for number, state in enumerate(states):
        fields = [0, number, bytes((number,)), 0, False, False, None, state]
        raw.write(frames.write(0x14, fields, payload=message(number)))
        bench.run()
    assert receiver.bodies == list(range(len(states)))
    answers = [frame for frame in frames.read(raw.read) if frame.name == "disposition"]
    assert {int(frame.field(4).descriptor) for frame in answers} == {0x24}
