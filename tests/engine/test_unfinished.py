"""Messages that their senders do not finish: nobody else waits for them for ever, nor do they keep memory."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import pytest

from mesh_config.models import ForwardingSettings
from router.dataplane.links import IngressLink
from router.dataplane.unfinished_deliveries import UnfinishedDeliveries
from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.engine.test_raw_neighbor import join, live
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug, RawEnd
from tests.helpers.peer import Peer, PeerSender, Sent, message

ANYCAST = "openstack.org/om/rpc/anycast/openstack/topic"
MULTICAST = "openstack.org/om/rpc/multicast/openstack/topic"
EXCEEDED = "amqp:resource-limit-exceeded"
HELD_BYTES = 10_000
AHEAD_BYTES = 2_000_000
"""Where half of it is held: so much is read for a subscriber that takes no more."""
WINDOW_S = ForwardingSettings().unfinished_s
LEAST_BYTES = ForwardingSettings().unfinished_bytes
LATEST_S = WINDOW_S * 5 / 4
"""The sender of one that does not move is given up by then."""
DATA = message("x" * 200_000)
HALF = DATA[:50_000]


def line_of(bench: Bench, count: int, **forwarding: Any) -> list[Runtime]:
    """So many routers in a line."""
    settings = {"held_message_bytes": HELD_BYTES, **forwarding}
    if count == 1:
        return [bench.router("A", forwarding=settings)]
    return bench.mesh(*itertools.pairwise("ABC"[:count]), forwarding=settings)


def raw_sender(bench: Bench, router: Runtime) -> RawEnd:
    """A peer with a sender, handle 0."""
    raw = bench.raw(router, idle_timeout_s=0)
    raw.write(
        frames.AMQP_HEADER
        + frames.write(0x10, ["raw"])
        + frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
        + frames.write(0x12, ["s", 0, False, None, None, frames.source("a"), frames.target(ANYCAST), None, None, 0])
    )
    bench.advance(1)
    return raw


def detached(raw: RawEnd) -> list[str]:
    """The conditions with which its links were detached."""
    return [str(frame.fields[2].value[0]) for frame in frames.read(raw.read) if frame.name == "detach"]


def is_given_up(sender: PeerSender, sent: Sent) -> bool:
    """Whether a sender was told that its message is given up."""
    return (sender.closed, sent.outcome) == (EXCEEDED, "rejected")


def slow(bench: Bench, sent: Sent, size: int, every_s: float, seconds: float) -> None:
    """Send *size* bytes of a message at a time."""
    for _ in range(int(seconds / every_s)):
        sent.part(b"x" * size)
        bench.advance(every_s)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_streamed_message_that_stands_still_is_given_up(bench: Bench, count: int) -> None:
    routers = line_of(bench, count)
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    stuck, others = bench.client(routers[0]).sender(ANYCAST), bench.client(routers[0]).sender(ANYCAST)
    bench.run()
    sent = stuck.begin(HALF)
    bench.run()
    assert receiver.partial
    bench.advance(WINDOW_S - 1)
    assert stuck.closed is None
    bench.advance(LATEST_S - WINDOW_S + 1)
    assert is_given_up(stuck, sent)
    assert "32768 bytes" in stuck.description
    behind = others.send(message("small"))
    bench.run()
    assert (receiver.aborted, receiver.bodies) == (1, ["small"])
    assert behind.outcome == "accepted"


@pytest.mark.parametrize("ends", [[None, True], [False, None]], ids=["aborts", "ends"])
def test_a_sender_that_is_given_up_may_abort_or_end_its_message(bench: Bench, ends: list[bool | None]) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ANYCAST, credit=10).accepting()
    raw = raw_sender(bench, router)
    raw.write(frames.write(0x14, [0, 0, b"0", None, None, True], payload=HALF[:20_000]))
    bench.advance(LATEST_S)
    assert detached(raw) == [EXCEEDED]
    more, aborted = ends
    raw.write(frames.write(0x14, [0, None, None, None, None, more, None, None, None, aborted]))
    raw.write(frames.write(0x16, [0, True]))
    bench.run()
    (connection,) = [each for each in router.connections.values() if each.peer and each.peer.container == "raw"]
    assert (connection.refused.count, len(connection.closed_links)) == (0, 0)
    other = bench.client(router).sender(ANYCAST)
    bench.run()
    other.send(message("small"))
    bench.run()
    assert receiver.bodies == ["small"]


def test_a_presettled_message_that_stands_still_is_given_up_and_counted(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ANYCAST, credit=10).accepting()
    raw = raw_sender(bench, router)
    for number in range(2):
        raw.write(
            frames.write(
                0x14, [0, *([0, b"0"] if not number else [None, None]), None, True, True], payload=HALF[:20_000]
            )
        )
    bench.run()
    assert receiver.partial
    bench.advance(LATEST_S)
    assert detached(raw) == [EXCEEDED]
    assert (receiver.aborted, receiver.messages) == (1, [])
    assert router.data_plane.gone_ingress.dropped == 1
    assert not [frame for frame in frames.read(raw.read) if frame.name == "disposition"]


@pytest.mark.parametrize("count", [1, 2])
def test_a_byte_now_and_then_does_not_hold_a_subscriber(bench: Bench, count: int) -> None:
    routers = line_of(bench, count)
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    stuck = bench.client(routers[0]).sender(ANYCAST)
    bench.run()
    sent = stuck.begin(HALF)
    slow(bench, sent, 1, 10, 2 * LATEST_S)
    assert is_given_up(stuck, sent)
    assert receiver.aborted == 1


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("held_bytes", [HELD_BYTES, 1_000_000])
def test_a_slow_sender_that_goes_on_is_let_be(bench: Bench, count: int, held_bytes: int) -> None:
    routers = line_of(bench, count, held_message_bytes=held_bytes)
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    sender = bench.client(routers[0]).sender(ANYCAST)
    bench.run()
    sent = sender.begin(DATA[:1000])
    rest = DATA[1000:]
    step_s = WINDOW_S / 4 - 0.5
    step = LEAST_BYTES // 4 + 1
    for at in range(0, len(rest), step):
        bench.advance(step_s)
        sent.part(rest[at : at + step])
    sent.end()
    bench.run()
    assert (sender.closed, sent.outcome) == (None, "accepted")
    assert [one.data for one in receiver.messages] == [DATA]


@pytest.mark.parametrize("address", [ANYCAST, MULTICAST, "$management", None])
def test_a_held_message_that_is_not_finished_is_given_up(bench: Bench, address: str | None) -> None:
    (router,) = line_of(bench, 1)
    serve_management(router)
    receiver = bench.client(router).receiver(address if address in (ANYCAST, MULTICAST) else ANYCAST, credit=1)
    sender, others = bench.client(router).sender(address), bench.client(router).sender(ANYCAST)
    bench.run()
    sent = sender.begin(message("x" * 5000, address=ANYCAST)[:4000])
    bench.run()
    links = [link for link in router.data_plane.links if isinstance(link, IngressLink)]
    port = next(link for link in links if link.address == address).port
    assert port.held_bytes == 4000
    bench.advance(LATEST_S)
    assert is_given_up(sender, sent)
    assert port.held_bytes == 0
    if address == ANYCAST:  # the one credit that it had taken is there for others
        others.send(message("small"))
        bench.advance(1)
        assert receiver.bodies == ["small"]


def test_a_message_without_a_byte_that_is_not_finished_is_given_up(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ANYCAST, credit=1).accepting()
    raw = raw_sender(bench, router)
    raw.write(frames.write(0x14, [0, 0, b"0", None, None, True]))
    bench.advance(LATEST_S)
    assert detached(raw) == [EXCEEDED]
    other = bench.client(router).sender(ANYCAST)
    bench.advance(1)
    other.send(message("small"))
    bench.run()
    assert receiver.bodies == ["small"]


def test_time_in_which_its_subscriber_takes_nothing_does_not_count(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    subscriber = bench.client(router)
    receiver = subscriber.receiver(ANYCAST, credit=10).accepting()
    sender = bench.client(router).sender(ANYCAST)
    bench.run()
    plug = subscriber.wire.ends[1]
    assert isinstance(plug, Plug)
    plug.room = 0
    sent = sender.begin(DATA)
    bench.advance(WINDOW_S / 2)
    sent.part(DATA)
    bench.advance(10 * WINDOW_S)
    assert sender.closed is None
    plug.room = 1e9
    bench.advance(WINDOW_S / 2 - 1)
    assert sender.closed is None
    sent.end()
    bench.run()
    assert sent.outcome == "accepted"
    assert len(receiver.messages[0].data) == 2 * len(DATA)


def test_a_window_that_another_link_has_closed_is_no_excuse(bench: Bench) -> None:
    (router,) = line_of(bench, 1, session_window_frames=4)
    own = bench.client(router)
    own.receiver("slow", credit=10)
    receiver = bench.client(router).receiver(ANYCAST, credit=10).accepting()
    hostile = bench.client(router)
    session = hostile.session()
    stuck, filler = hostile.sender(ANYCAST, session=session), hostile.sender("slow", session=session)
    other = bench.client(router).sender(ANYCAST)
    bench.run()
    plug = own.wire.ends[1]
    assert isinstance(plug, Plug)
    plug.room = 0
    stuck.begin(HALF)
    bench.run()
    filler.begin(b"x" * 3_000_000)
    bench.run()
    assert session.outgoing_bytes > 0  # the window is closed
    bench.advance(LATEST_S)
    assert stuck.closed == EXCEEDED
    other.send(message("small"))
    bench.run()
    assert (receiver.bodies, filler.closed) == (["small"], None)


@pytest.mark.parametrize("count", [1, 2])
def test_of_two_large_messages_of_a_session_one_does_not_block_the_other(bench: Bench, count: int) -> None:
    routers = line_of(bench, count, session_window_frames=4)
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    peer = bench.client(routers[0])
    session = peer.session()
    first, second = (peer.sender(ANYCAST, session=session) for _ in range(2))
    bench.run()
    going = first.begin(HALF)
    bench.run()
    waiting = second.begin(b"x" * 3_000_000)
    bench.run()
    assert session.outgoing_bytes == 0  # all of it was read
    for sent in (going, waiting):
        sent.end(DATA)
        bench.run()
    assert (going.outcome, waiting.outcome) == ("accepted", "accepted")
    assert [len(found.data) for found in receiver.messages] == [len(HALF) + len(DATA), 3_000_000 + len(DATA)]


@pytest.mark.parametrize("count", [1, 2])
def test_a_subscriber_that_stops_reading_blocks_no_message_that_has_begun(bench: Bench, count: int) -> None:
    routers = line_of(bench, count, session_window_frames=4, held_message_bytes=AHEAD_BYTES // 2)
    subscriber = bench.client(routers[-1])
    stopped = subscriber.receiver("stopped", credit=10).accepting()
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    peer = bench.client(routers[0])
    session = peer.session()
    first, second = peer.sender(ANYCAST, session=session), peer.sender("stopped", session=session)
    bench.run()
    room_of(subscriber, 0)
    going = first.begin(HALF)
    bench.run()
    held_up = second.begin(b"x" * AHEAD_BYTES)
    bench.run()
    for number in range(3):
        going.end(DATA)
        bench.run()
        assert (going.outcome, len(receiver.messages)) == ("accepted", number + 1)
        going = first.begin(HALF)
        bench.run()
    room_of(subscriber, 1e9)
    held_up.end()
    bench.run()
    assert held_up.outcome == "accepted"
    assert len(stopped.messages[0].data) == AHEAD_BYTES


def room_of(client: Peer, room: float) -> None:
    """Have a client take so many bytes more."""
    plug = client.wire.ends[1]
    assert isinstance(plug, Plug)
    plug.room = room


@pytest.mark.parametrize("begins", ["before", "behind"])
@pytest.mark.parametrize("size", [AHEAD_BYTES, 3 * AHEAD_BYTES])
def test_a_message_that_nobody_takes_does_not_block_others_of_a_neighbor(bench: Bench, size: int, begins: str) -> None:
    (router,) = line_of(bench, 1, session_window_frames=4, held_message_bytes=AHEAD_BYTES // 2)
    neighbor = join(bench, router, dials=True)
    neighbor.attach_large_message_links(3)
    subscriber = bench.client(router)
    subscriber.receiver("stopped", credit=10).accepting()
    receiver = bench.client(router).receiver(ANYCAST, credit=10).accepting()
    live(bench, neighbor, 3)
    room_of(subscriber, 0)
    stuck_on, *others = neighbor.data_out[-3:]
    data = neighbor.encoded("x" * 200_000, ANYCAST)
    sent = [other.begin(data[:50_000]) for other in others] if begins == "before" else []
    bench.run()
    stuck = stuck_on.begin(neighbor.encoded("x" * size, "stopped"))
    bench.run()
    sent = sent or [other.begin(data[:50_000]) for other in others]
    for each in sent:
        each.end(data[50_000:])
    if size > AHEAD_BYTES:
        live(bench, neighbor, int(2 * WINDOW_S))
        assert [each.outcome for each in (stuck, *sent)] == [None] * 3
        live(bench, neighbor, int(LATEST_S))
        stuck.end()
    live(bench, neighbor, 1)
    assert [each.outcome for each in sent] == ["accepted"] * 2
    assert [len(one) for one in receiver.bodies] == [200_000] * 2
    assert stuck.outcome == ("rejected" if size > AHEAD_BYTES else None)
    if stuck.condition is not None:
        assert stuck.condition.description.startswith(f"nobody took more of it for {2 * WINDOW_S:g} s")


@pytest.mark.parametrize("is_first", [True, False], ids=["the large one goes first", "the others go first"])
@pytest.mark.parametrize("count", [1, 2])
def test_messages_that_wait_whole_do_not_block_another_one_of_their_session(
    bench: Bench, count: int, is_first: bool
) -> None:
    routers = line_of(bench, count, session_window_frames=4)
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    peer = bench.client(routers[0])
    session = peer.session()
    first, second = (peer.sender(ANYCAST, session=session) for _ in range(2))
    occupies = bench.client(routers[0]).sender(ANYCAST)
    bench.run()
    occupying = occupies.begin(HALF)
    bench.run()
    going = [first.begin(HALF)] if is_first else []
    bench.run()
    whole = [second.send(message("x" * 2_000_000)) for _ in range(3)]  # behind the first of them it isn't read
    bench.run()
    going = going or [first.begin(HALF)]
    for sent in (occupying, *going):
        sent.end(DATA)
        bench.run()
    bench.advance(1.0)
    assert [sent.outcome for sent in (occupying, *going, *whole)] == ["accepted"] * 5
    assert len(receiver.messages) == 5


@pytest.mark.parametrize("count", [1, 2])
def test_a_message_that_waits_makes_room_when_another_begins_in_its_session(bench: Bench, count: int) -> None:
    routers = line_of(bench, count, session_window_frames=4)
    subscriber, peer = bench.client(routers[-1]), bench.client(routers[0])
    subscriber.receiver(ANYCAST, credit=10).accepting()
    subscriber.receiver("other", credit=10).accepting()
    session = peer.session()
    first, second = peer.sender(ANYCAST, session=session), peer.sender("other", session=session)
    occupies = bench.client(routers[0]).sender(ANYCAST)
    bench.run()
    occupying = occupies.begin(HALF)
    bench.run()
    waiting = first.begin(b"x" * 1_100_000)  # enough to be read no more
    bench.run()
    going = second.begin(HALF)
    bench.run()
    waiting.part(b"x" * 3_000_000)
    bench.run()
    going.end(DATA)
    bench.run()
    assert (going.outcome, waiting.outcome, session.outgoing_bytes) == ("accepted", None, 0)
    for sent in (occupying, waiting):
        sent.end(DATA)
        bench.run()
    assert (occupying.outcome, waiting.outcome) == ("accepted", "accepted")


def test_a_message_that_waits_for_credit_and_is_not_read_is_let_be(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    first = bench.client(router).receiver(ANYCAST, credit=1).accepting()
    sender = bench.client(router).sender(ANYCAST)
    bench.run()
    first.drain()
    sent = sender.begin(b"x" * 3_000_000)
    bench.advance(10 * WINDOW_S)
    assert sender.closed is None
    first.flow(1)
    bench.advance(1)
    assert first.partial
    bench.advance(LATEST_S)
    assert is_given_up(sender, sent)


def test_a_neighbor_that_does_not_give_up_is_told_to(bench: Bench) -> None:
    patient = bench.router("A", forwarding={"held_message_bytes": HELD_BYTES, "unfinished_s": 86400.0})
    strict = bench.router("B", forwarding={"held_message_bytes": HELD_BYTES})
    bench.join(patient, strict)
    bench.advance(5)
    receiver = bench.client(strict).receiver(ANYCAST, credit=10).accepting()
    stuck, others = bench.client(patient).sender(ANYCAST), bench.client(patient).sender(ANYCAST)
    bench.run()
    sent = stuck.begin(HALF)
    bench.run()
    assert receiver.partial
    bench.advance(2 * WINDOW_S - 1)
    assert sent.outcome is None
    bench.advance(LATEST_S)
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == EXCEEDED
    assert stuck.closed is None  # what the neighbor's client sends is not for this router to end
    behind = others.send(message("small"))
    bench.run()
    assert (receiver.aborted, receiver.bodies, behind.outcome) == (1, ["small"], "accepted")
    sent.abort()
    bench.run()
    assert stuck.send(message("next")).link is not None
    bench.run()
    assert receiver.bodies == ["small", "next"]


@pytest.mark.parametrize("count", [2, 3])
def test_a_datagram_that_is_not_finished_is_given_up(bench: Bench, count: int) -> None:
    routers = line_of(bench, count)
    receiver = bench.client(routers[-1]).receiver(ANYCAST, credit=10).accepting()
    client: Peer = bench.client(routers[0])
    stuck, others = client.sender(None), client.sender(None)
    bench.run()
    sent = stuck.begin(message("x" * 200_000, address=ANYCAST)[:150_000])
    bench.run()
    assert receiver.partial
    behind = others.send(message("small", address=ANYCAST))
    bench.advance(LATEST_S)
    assert is_given_up(stuck, sent)
    assert (receiver.aborted, receiver.bodies, behind.outcome) == (1, ["small"], "accepted")


def test_messages_in_parts_one_after_the_other_are_no_unfinished_message(bench: Bench) -> None:
    (router,) = line_of(bench, 1)
    receiver = bench.client(router).receiver(ANYCAST, credit=1000).accepting()
    sender = bench.client(router).sender(ANYCAST)
    bench.run()
    data = message("x" * 100)
    for _ in range(20):  # at each look one of them is not finished
        sent = sender.begin(data[:50])
        bench.advance(WINDOW_S / 8)
        sent.end(data[50:])
    bench.advance(1)
    assert len(receiver.messages) == 20
    assert sender.closed is None
    bench.advance(WINDOW_S)
    assert router.data_plane.unfinished.due == float("inf")


def begun_in_a_session(bench: Bench, count: int) -> tuple[UnfinishedDeliveries, list[Sent], list[IngressLink]]:
    """What a router knows of so many messages begun on links of one session; the messages; and their links."""
    (router,) = line_of(bench, 1)
    bench.client(router).receiver(ANYCAST, credit=1000)
    client = bench.client(router)
    session = client.session()
    begun = [client.sender(ANYCAST, session=session).begin(bytes(100)) for _ in range(count)]
    bench.run()
    links = [link for link in router.data_plane.links if isinstance(link, IngressLink)]
    return router.data_plane.unfinished, begun, links


def test_a_look_for_another_unfinished_message_copies_no_list_of_them(bench: Bench) -> None:
    unfinished, begun, links = begun_in_a_session(bench, 300)
    assert [link.progress is None for link in links] == [False] * len(begun)
    tracemalloc.start()
    try:
        assert unfinished.has_sibling(links[0])
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        assert all(unfinished.has_sibling(link) for link in links)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 8 * len(begun)


def test_messages_that_have_come_to_their_ends_are_no_unfinished_siblings(bench: Bench) -> None:
    unfinished, begun, links = begun_in_a_session(bench, 3)
    first, *others = links
    for sent, is_alone in zip(begun[1:], (False, True), strict=True):
        assert unfinished.has_sibling(first)
        sent.end()
        bench.run()
        assert unfinished.has_sibling(first) is not is_alone
    assert [link.progress is None for link in (first, *others)] == [False, True, True]
