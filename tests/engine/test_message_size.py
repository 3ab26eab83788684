"""Sizes of messages: what a listener announces is kept to, and what a receiver announces is respected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from router.dataplane.settlement import END_IS_NEAR_S
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.peer import Peer, message

EXCEEDED = "amqp:link:message-size-exceeded"
ANYCAST = "openstack.org/om/rpc/anycast/openstack/topic"
MULTICAST = "openstack.org/om/rpc/multicast/openstack/topic"


def limited(bench: Bench, router: Any, most: int) -> Peer:
    """A client at a listener with a limit."""
    return bench.client(router, listener={"max_message_bytes": most})


def taking(most: int) -> Callable[[Any], None]:
    """For `Peer.receiver`: announce the largest message."""

    def announce(link: Any) -> None:
        link.max_message_size = most

    return announce


def of_size(size: int) -> bytes:
    """A message of so many bytes."""
    data = message("x" * size)
    data = message("x" * (2 * size - len(data)))
    assert len(data) == size
    return data


# What the listener announces


@pytest.mark.parametrize(("most", "told"), [(0, 0), (1000, 1000), (2**40, 2**40)])
def test_the_size_of_the_listener_is_announced_to_publishers(bench: Bench, most: int, told: int) -> None:
    client = limited(bench, bench.router("A"), most)
    assert client.sender(ANYCAST).link.remote_max_message_size == told
    assert client.sender(None).link.remote_max_message_size == told
    assert client.receiver(ANYCAST).link.remote_max_message_size == 0


@pytest.mark.parametrize("target", [ANYCAST, MULTICAST, None])
@pytest.mark.parametrize("settled", [False, True])
def test_a_larger_message_closes_its_link_and_nothing_else(any_bench: Bench, target: str | None, settled: bool) -> None:
    client = limited(any_bench, any_bench.router("A"), 1000)
    session = client.session()
    other = client.sender(target, session=session)
    sender = client.sender(target, session=session)
    address = target or ANYCAST
    receiver = client.receiver(address, credit=100).accepting()
    any_bench.run()
    exact = of_size(1000) if target else message("y", address=address)
    sender.send(exact)
    any_bench.run()
    sent = sender.send(of_size(1001), settled=settled)
    any_bench.run()
    assert (sender.closed, sender.was_closed) == (EXCEEDED, True)
    assert "1000 bytes" in sender.description
    assert sent.outcome == (None if settled else "rejected")
    assert client.closed is None
    other.send(exact)
    any_bench.run()
    assert [one.data for one in receiver.messages] == [exact, exact]
    again = client.sender(target, session=session)
    again.send(exact)
    any_bench.run()
    assert len(receiver.messages) == 3


def test_a_message_in_parts_closes_its_link_as_soon_as_it_is_too_large(any_bench: Bench) -> None:
    router = any_bench.router("A", forwarding={"held_message_bytes": 10_000})
    client = limited(any_bench, router, 50_000)
    receiver = any_bench.client(router).receiver(ANYCAST, credit=10).accepting()
    sender = client.sender(ANYCAST)
    data = of_size(80_000)
    sent = sender.begin(data[:45_000])
    any_bench.run()
    assert sender.closed is None
    assert receiver.partial  # it is too large to be held, and goes on in parts
    sent.part(data[45_000:50_001])
    any_bench.run()
    assert sender.closed == EXCEEDED
    assert sent.outcome == "rejected"
    assert (receiver.aborted, receiver.messages) == (1, [])


def test_what_still_comes_on_a_closed_link_is_thrown_away_and_holds_up_no_other(bench: Bench) -> None:
    router = bench.router("A", forwarding={"session_window_frames": 8})
    receiver = bench.client(router).receiver(ANYCAST, credit=1000).accepting()
    raw = bench.raw(router, max_message_bytes=100)
    raw.write(
        frames.AMQP_HEADER
        + frames.write(0x10, ["raw"])
        + frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
        + frames.write(0x12, ["large", 0, False, None, None, frames.source("a"), frames.target(ANYCAST), None, None, 0])
        + frames.write(0x12, ["small", 1, False, None, None, frames.source("a"), frames.target(ANYCAST), None, None, 0])
    )
    bench.run()
    # A peer that does not read what it is told: forty frames of one message, and another link beside it.
    for number in range(40):
        ids = [0, b"0"] if number == 0 else [None, None]
        raw.write(frames.write(0x14, [0, *ids, None, None, number < 39], payload=b"x" * 100))
        bench.run()
    raw.write(frames.write(0x14, [1, 1, b"1"], payload=message("small")))
    bench.run()
    found = list(frames.read(raw.read))
    detaches = [frame for frame in found if frame.name == "detach"]
    assert [(frame.fields[0], frame.fields[1], str(frame.fields[2].value[0])) for frame in detaches] == [
        (0, True, EXCEEDED)
    ]
    assert not [frame for frame in found if frame.name in ("close", "end")]
    assert receiver.bodies == ["small"]
    # Clients take each for another outcome.
    assert len([frame for frame in found if frame.name == "disposition" and frame.fields[1] == 0]) == 1
    windows = [frame.flow("incoming_window") for frame in found if frame.name == "flow"]
    assert windows[-1] >= 4
    # The handle of a link that is gone would end the connection of a peer that minds it.
    assert {frame.flow("handle") for frame in found if frame.name == "flow"} <= {None, 0, 1}
    raw.write(frames.write(0x16, [0, True]))
    bench.run()
    (connection,) = [each for each in router.connections.values() if each.peer and each.peer.container == "raw"]
    assert (connection.refused.count, len(connection.closed_links)) == (0, 0)


FIRST = frames.write(0x14, [0, 0, b"0", None, None, True], payload=message("x" * 2000))
MIDDLE = frames.write(0x14, [0, None, None, None, None, True], payload=b"x")
LAST = frames.write(0x14, [0, None, None, None, None, False], payload=b"x")
ABORT = frames.write(0x14, [0, None, None, None, None, False, None, None, None, True])
SETTLED = frames.write(0x15, [False, 0, None, True])


def dispositions_of(raw: RawEnd) -> list[tuple[int, bool | None]]:
    """Outcomes that were written to it, and whether they were settled."""
    found = [frame for frame in frames.read(raw.read) if frame.name == "disposition"]
    return [(int(frame.fields[4].descriptor), frame.field(3)) for frame in found]


def large_sender(bench: Bench, router: Runtime, address: str, **listener: Any) -> RawEnd:
    """A client that writes the frames of a message by itself."""
    raw = bench.raw(router, **listener)
    termini = [frames.source("a"), frames.target(address)]
    raw.write(
        frames.AMQP_HEADER
        + frames.write(0x10, ["raw"])
        + frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
        + frames.write(0x12, ["large", 0, False, None, None, *termini, None, None, 0])
    )
    bench.run()
    return raw


@pytest.mark.parametrize(
    ("behind", "dispositions"),
    [
        ([FIRST, LAST], [True]),
        ([FIRST, MIDDLE, MIDDLE, LAST], [True]),
        ([FIRST + MIDDLE, LAST], [True]),
        ([FIRST, ABORT], []),
        ([FIRST + ABORT], []),
        ([FIRST, SETTLED, LAST], []),
        ([FIRST, SETTLED, ABORT], []),
    ],
)
@pytest.mark.parametrize("most", [0, 100])
def test_a_rejection_before_the_end_is_told_once(
    bench: Bench, behind: list[bytes], dispositions: list[bool | None], most: int
) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 1000})
    address = ANYCAST if most else MULTICAST  # the link of the one is closed, that of the other stays
    bench.client(router).receiver(address, credit=10)
    raw = large_sender(bench, router, address, max_message_bytes=most)
    bench.advance(1)
    for data in behind:
        raw.write(data)
        bench.run()
    found = [frame for frame in frames.read(raw.read) if frame.name == "disposition"]
    is_closed_for_it = most > 0 and FIRST + ABORT not in behind
    # On a link that is closed nothing is settled until the peer has closed it too.
    assert [frame.field(3) for frame in found] == ([None] if is_closed_for_it else dispositions)
    assert all(int(frame.fields[4].descriptor) == 0x25 for frame in found)


@pytest.mark.parametrize("is_far", [False, True])
def test_an_outcome_in_the_middle_of_a_message_is_told_once_whatever_follows(bench: Bench, is_far: bool) -> None:
    near, far = bench.mesh(("A", "B"), forwarding={"held_message_bytes": 1000})
    receiver = bench.client(far if is_far else near).receiver(ANYCAST, credit=10)
    bench.run()
    raw = large_sender(bench, near, ANYCAST)
    raw.write(FIRST)
    bench.run()
    assert receiver.partial
    receiver.link.close()
    bench.run()
    for _ in range(5):
        raw.write(MIDDLE)
        bench.run()
    assert dispositions_of(raw) == []
    raw.write(LAST)
    bench.run()
    ((outcome, is_settled),) = dispositions_of(raw)
    assert (outcome > 0x24, is_settled) == (True, True)


def test_who_does_not_end_a_message_hears_of_its_outcome_all_the_same(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 1000})
    bench.client(router).receiver(MULTICAST, credit=10)
    raw = large_sender(bench, router, MULTICAST)
    raw.write(FIRST)
    bench.advance(END_IS_NEAR_S / 2)
    assert dispositions_of(raw) == []
    bench.advance(END_IS_NEAR_S)
    assert dispositions_of(raw) == [(0x25, None)]
    raw.write(LAST)
    bench.run()
    assert dispositions_of(raw) == [(0x25, None), (0x25, True)]


def test_who_has_not_ended_a_message_hears_of_its_outcome_when_the_router_stops(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 1000})
    bench.client(router).receiver(MULTICAST, credit=10)
    raw = large_sender(bench, router, MULTICAST)
    raw.write(FIRST)
    bench.run()
    assert dispositions_of(raw) == []
    router.stop_taking()
    bench.run()
    assert dispositions_of(raw) == [(0x25, None)]


@pytest.mark.parametrize("ends", ["detach", "end", "cut"])
def test_a_closed_link_is_forgotten_however_its_client_goes(bench: Bench, ends: str) -> None:
    router = bench.router("A")
    client = limited(bench, router, 100)
    client.receiver(ANYCAST, credit=10)
    sender = client.sender(ANYCAST)
    client.wire.is_still = False
    sender.send(of_size(101))
    if ends == "end":
        sender.end_session()
    elif ends == "cut":
        client.wire.cut()
    bench.run()
    for connection in router.connections.values():
        assert (connection.refused.count, len(connection.closed_links)) == (0, 0)


# What a receiver announces


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("target", [ANYCAST, None])
def test_a_message_larger_than_its_receiver_takes_is_rejected(bench: Bench, target: str | None, settled: bool) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver(ANYCAST, credit=5, prepare=taking(1000)).accepting()
    sender = bench.client(a).sender(target)
    large = message("x" * 2000, address=ANYCAST)
    small = message("small", address=ANYCAST)
    for _ in range(10):  # none of these uses any credit of the receiver
        bench.advance(0.2)
        sent = sender.send(large, settled=settled)
        bench.advance(0.2)
        assert sent.outcome == (None if settled else "rejected")
        assert settled or (sent.condition is not None and sent.condition.name == EXCEEDED)
    assert receiver.messages == []
    for _ in range(5):
        sender.send(small)
        bench.advance(0.2)
    assert receiver.bodies == ["small"] * 5
    assert receiver.credit == 0


def test_a_message_that_becomes_too_large_as_it_comes_is_aborted_and_rejected(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 10_000})
    receiver = bench.client(router).receiver(ANYCAST, credit=5, prepare=taking(50_000)).accepting()
    sender = bench.client(router).sender(ANYCAST)
    data = message("x" * 80_000)
    sent = sender.begin(data[:40_000])
    bench.run()
    assert receiver.partial == data[: len(receiver.partial)] != b""
    sent.part(data[40_000:60_000])
    bench.run()
    assert (receiver.aborted, sent.outcome) == (1, None)
    sent.end(data[60_000:])
    bench.run()
    assert sent.outcome == "rejected"
    sender.send(message("next"))
    bench.run()
    assert receiver.bodies == ["next"]


@pytest.mark.parametrize("size", [2000, 200_000])
def test_a_multicast_larger_than_one_receiver_takes_reaches_the_others(bench: Bench, size: int) -> None:
    a, b = bench.mesh(("A", "B"))
    small = bench.client(b).receiver(MULTICAST, credit=5, prepare=taking(1000)).accepting()
    large = bench.client(b).receiver(MULTICAST, credit=100).accepting()
    sender = bench.client(a).sender(MULTICAST)
    for _ in range(10):
        bench.advance(0.2)
        sender.send(message("x" * size))
    bench.advance(1)
    assert (len(small.messages), len(large.messages)) == (0, 10)
    for _ in range(3):
        sender.send(message("small"))
        bench.advance(0.2)
    assert small.bodies == ["small"] * 3
    assert {sent.outcome for sent in sender.sent} == {"accepted"}
