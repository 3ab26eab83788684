"""Windows of sessions and numbers that wrap around, frame by frame."""

from __future__ import annotations

import pytest

from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.peer import message

FULL = 2**31 - 1
PAYLOAD = message("x" * 50)


def begin(window: int, *, channel: int) -> bytes:
    return frames.write(0x11, [None, 0, window, FULL], channel=channel)


def receiver(address: str, credit: int, window: int, *, channel: int, handle: int = 0) -> bytes:
    source, target = frames.source(address), frames.target(address)
    name = f"{address}/{channel}/{handle}"
    return frames.write(0x12, [name, handle, True, None, None, source, target], channel=channel) + frames.write(
        0x13, [None, window, 0, FULL, handle, 0, credit], channel=channel
    )


def opened(bench: Bench, router: Runtime) -> RawEnd:
    raw = bench.raw(router)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["raw", None, 512]))
    return raw


def transfers(raw: RawEnd, channel: int) -> list[int]:
    """Handles of the transfers that the router wrote on a channel."""
    found = [frame for frame in frames.read(raw.read) if frame.name == "transfer"]
    return [frame.fields[0] for frame in found if frame.channel == channel]


# A subscriber's session


@pytest.mark.parametrize("distance", [1, 2])
def test_a_session_whose_window_is_closed_by_its_subscriber_stops_no_other(bench: Bench, distance: int) -> None:
    routers = [bench.router("A")] if distance == 1 else bench.mesh(("A", "B"))
    raw = opened(bench, routers[-1])
    raw.write(begin(2, channel=0) + begin(FULL, channel=1))
    raw.write(receiver("slow", 100, 2, channel=0) + receiver("beside", 100, 2, channel=0, handle=1))
    raw.write(receiver("fast", 100, FULL, channel=1))
    bench.run()
    client = bench.client(routers[0])
    senders = {name: client.sender(name) for name in ("slow", "beside", "fast")}
    for _ in range(20):
        bench.advance(0.1)
        for sender in senders.values():
            if sender.credit:
                sender.send(PAYLOAD, settled=True)
        bench.run()
    assert len(transfers(raw, 0)) == 2
    assert len(transfers(raw, 1)) == 20
    # two frames more, and then as many as there are
    raw.write(frames.write(0x13, [0, 4, 0, FULL], channel=0))
    bench.run()
    assert len(transfers(raw, 0)) == 4
    raw.write(frames.write(0x13, [0, FULL, 0, FULL], channel=0))
    bench.advance(1)
    sent = [len(senders[name].sent) for name in ("slow", "beside")]
    assert [transfers(raw, 0).count(handle) for handle in (0, 1)] == sent
    assert sum(sent) > 30


def test_a_session_whose_window_is_closed_in_the_middle_of_a_message_goes_on_with_it(bench: Bench) -> None:
    router = bench.router("A")
    raw = opened(bench, router)
    raw.write(begin(3, channel=0) + begin(FULL, channel=1))
    raw.write(receiver("large", 100, 3, channel=0) + receiver("small", 100, FULL, channel=1))
    bench.run()
    client = bench.client(router)
    data = message("y" * 5000)
    sent = client.sender("large").send(data, settled=False)
    small = client.sender("small")
    for _ in range(50):
        small.send(PAYLOAD, settled=True)
        bench.run()
    assert len(transfers(raw, 0)) == 3
    assert len(transfers(raw, 1)) == 50
    assert sent.outcome is None
    raw.write(frames.write(0x13, [0, FULL, 0, FULL], channel=0))
    bench.run()
    parts = [frame for frame in frames.read(raw.read) if frame.name == "transfer" and frame.channel == 0]
    assert b"".join(frame.payload for frame in parts) == data
    assert [bool(frame.field(5)) for frame in parts] == [True] * (len(parts) - 1) + [False]


# Numbers of 32 bits


@pytest.mark.parametrize("first", [0, 2**31 - 3, 2**31, 2**32 - 3])
def test_a_publishers_delivery_count_may_wrap_around(bench: Bench, first: int) -> None:
    router = bench.router("A")
    subscriber = bench.client(router).receiver("topic", credit=1000).accepting()
    raw = opened(bench, router)
    source, target = frames.source("a"), frames.target("topic")
    raw.write(frames.write(0x11, [None, first, FULL, FULL]))
    raw.write(frames.write(0x12, ["p", 0, False, None, None, source, target, None, None, first]))
    bench.run()
    for number in range(10):
        flow = [frame for frame in frames.read(raw.read) if frame.name == "flow" and frame.flow("handle") == 0][-1]
        limit = flow.flow("delivery_count") + flow.flow("link_credit")
        left = (limit - (first + number)) % 2**32
        assert 0 < left <= 1001, (number, left)
        raw.write(frames.write(0x14, [0, (first + number) % 2**32, b"%d" % number, 0, False], payload=message(number)))
        bench.run()
    assert subscriber.bodies == list(range(10))
    outcomes = [frame for frame in frames.read(raw.read) if frame.name == "disposition"]
    ranges = [(frame.fields[1], frame.field(2)) for frame in outcomes]
    settled = [number for low, high in ranges for number in range(low, (low if high is None else high) + 1)]
    assert settled == [(first + number) % 2**32 for number in range(10)]


@pytest.mark.parametrize("credit", [1, 2**31 - 1, 2**31, 2**32 - 1])
def test_a_receiver_may_grant_any_number_of_credits(bench: Bench, credit: int) -> None:
    router = bench.router("A")
    raw = opened(bench, router)
    raw.write(begin(FULL, channel=0) + receiver("topic", credit, FULL, channel=0))
    bench.run()
    sender = bench.client(router).sender("topic")
    for _ in range(10):
        if sender.credit:
            sender.send(PAYLOAD, settled=True)
            bench.run()
    assert len(transfers(raw, 0)) == min(credit, 10)


# Credit that is taken back while transfers are on their way


def subscribed(bench: Bench, *, credit: int, window: int) -> RawEnd:
    """A subscriber whose session takes *window* transfers; it has got them, and fifty messages were sent."""
    router = bench.router("A")
    raw = opened(bench, router)
    raw.write(begin(window, channel=0) + receiver("topic", credit, window, channel=0))
    sender = bench.client(router).sender("topic")
    bench.run()
    for number in range(50):
        sender.send(message(number), settled=True)
        bench.run()
    assert len(transfers(raw, 0)) == window
    return raw


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize(("credit", "behind"), [(0, 0), (0, 1), (0, 2), (1, 2)])
def test_nothing_comes_on_credit_taken_back_behind_a_closed_window(
    bench: Bench, credit: int, behind: int, echo: bool
) -> None:
    raw = subscribed(bench, credit=50, window=2)
    raw.write(frames.write(0x13, [2, 0, 0, FULL, 0, 2 - behind, credit, None, False, echo]))
    bench.run()
    raw.write(frames.write(0x13, [2, 1000, 0, FULL]))
    bench.run()
    assert len(transfers(raw, 0)) == 2
    raw.write(frames.write(0x13, [2, 1000, 0, FULL, 0, 2, 5]))
    bench.run()
    assert len(transfers(raw, 0)) == 7, "what waited comes with new credit"


@pytest.mark.parametrize("stated", [0, 1, 2, 3], ids="seen {}".format)
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("with_link", [False, True])
def test_a_window_taken_back_behind_what_is_on_its_way_is_closed(
    bench: Bench, stated: int, is_wide: bool, with_link: bool
) -> None:
    raw = subscribed(bench, credit=1000, window=3)
    link = [0, 0, 1000] if with_link else []
    flow = frames.write(0x13, [stated, 0, 0, FULL, *link])
    if is_wide:
        assert flow[11] == 0xD0
        rest = flow[20 + (2 if stated == 0 else 3) :]  # behind the two fields, as they were written
        fields = b"\x70" + stated.to_bytes(4, "big") + b"\x70\0\0\0\0" + rest
        flow = flow[4:12] + (len(fields) + 4).to_bytes(4, "big") + flow[16:20] + fields
        flow = (len(flow) + 4).to_bytes(4, "big") + flow
    raw.write(flow)
    bench.run()
    assert len(transfers(raw, 0)) == 3
    raw.write(frames.write(0x13, [3, 2, 0, FULL]))
    bench.run()
    assert len(transfers(raw, 0)) == 5


@pytest.mark.parametrize("credit", [2**31, 2**32 - 1])
def test_an_echo_of_much_credit_doesn_t_say_that_there_is_none(bench: Bench, credit: int) -> None:
    raw = opened(bench, bench.router("A"))
    raw.write(begin(FULL, channel=0) + receiver("topic", 1, FULL, channel=0))
    raw.write(frames.write(0x13, [0, FULL, 0, FULL, 0, 0, credit, None, False, True]))
    bench.run()
    answer = [frame for frame in frames.read(raw.read) if frame.name == "flow"][-1]
    assert answer.flow("link_credit") == FULL


def test_credit_taken_back_on_one_of_two_links_of_a_name_ends_their_connection_alone(bench: Bench) -> None:
    router = bench.router("A")
    raw, beside = opened(bench, router), opened(bench, router)

    def flow(credit: int, *, channel: int, drains: bool) -> bytes:
        return frames.write(0x13, [0, FULL, 0, FULL, 0, 0, credit, 0, drains], channel=channel)

    for channel, address, credit in ((1, "jobs/a", 100), (0, "jobs/b", FULL)):
        attach = frames.write(
            0x12,
            ["twice", 0, True, None, None, frames.source(address), frames.target(address)],
            channel=channel,
        )
        raw.write(begin(FULL, channel=channel) + attach + flow(credit, channel=channel, drains=channel == 1))
        bench.run()
    raw.write(flow(0, channel=1, drains=True))  # as if it had not seen the drain: a hundred below zero
    bench.run()
    (closed,) = [frame for frame in frames.read(raw.read) if frame.name == "close"]
    assert "2 links have this name" in str(closed.fields)
    beside.write(begin(FULL, channel=0) + receiver("jobs/c", 1, FULL, channel=0))
    bench.run()
    assert [frame.name for frame in frames.read(beside.read)][-1] in ("attach", "flow")


@pytest.mark.parametrize("window", [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1], ids=hex)
def test_a_window_of_any_size_is_one(bench: Bench, window: int) -> None:
    router = bench.router("A")
    raw = opened(bench, router)
    raw.write(begin(window, channel=0) + receiver("wide", 100, window, channel=0))
    bench.run()
    sender = bench.client(router).sender("wide")
    for number in range(1, 9):
        sender.send(PAYLOAD, settled=True)
        bench.run()
        raw.write(frames.write(0x13, [number, window, 0, FULL, 0, number, 100]))  # as many clients state it anew
        bench.run()
    assert len(transfers(raw, 0)) == 8
