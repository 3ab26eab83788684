"""Neighbors that ask for more work than their share: they wait, and others don't."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pytest
from proton import int32

from router.control_pacer import (
    ALL_BURST_S,
    BURST_S,
    BUSY_SHARE,
    CREDIT_S,
    LONGEST_PAUSE_S,
    PIECE_BYTES,
    PIECE_S,
    QUIET_SHARE,
    ControlPacer,
)
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.engine import message_codec
from router.runtime import Runtime
from tests.engine.test_raw_neighbor import join, live
from tests.helpers.engine import Bench
from tests.helpers.neighbor import ALL_TO, Neighbor, control_message

WORK_S = PIECE_S
"""What a control message takes here, in seconds that are counted and don't pass."""
NEWS = 4000
"""Messages of a greedy neighbor."""


def count_work(router: Runtime) -> None:
    """Have the router believe that it takes WORK_S to handle a control message that is no HELLO."""
    received = router.control.received
    router.pacer.measure = lambda: WORK_S * (sum(received.values()) - received["HELLO"])


def flood(raw: Neighbor, count: int) -> None:
    """Advertise *count* addresses, each in a message of its own."""
    for number in range(count):
        raw._change([f"M0n{number}"], [], [3])


def test_a_neighbor_s_news_get_their_share_of_the_time_and_no_more(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    count_work(a)
    flood(raw, NEWS)
    for _ in range(3):  # until it has used up what it may use at once
        bench.advance(1.0)
        raw.hello()
    before = a.pacer.measure()
    for _ in range(5):
        bench.advance(1.0)
        raw.hello()
    assert 0.15 <= (a.pacer.measure() - before) / 5 <= 0.25
    for _ in range(20):
        bench.advance(1.0)
        raw.hello()
    assert a.control.address_counts()[RouterId("RAW")] == NEWS
    assert b.control.address_counts()[RouterId("RAW")] == NEWS
    assert a.pacer.at == math.inf


def test_what_leads_to_nothing_gets_its_share_of_the_time_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    assert raw.control_out is not None
    work_s = [0.0]
    decode = message_codec.decode_control

    def decode_slowly(data: bytes) -> object:
        work_s[0] += 100 * WORK_S
        return decode(data)

    monkeypatch.setattr(message_codec, "decode_control", decode_slowly)
    a.pacer.measure = lambda: work_s[0]
    for _ in range(200):
        raw.control_out.send(b"nothing that can be read", settled=True)
    for _ in range(3):  # until it has used up what it may use at once
        bench.advance(1.0)
        raw.hello()
    before = work_s[0]
    for _ in range(5):
        bench.advance(1.0)
        raw.hello()
        assert RouterId("B") in a.fib.routes
        assert RouterId("A") in b.fib.routes
    assert 0.15 <= (work_s[0] - before) / 5 <= 0.25


def test_hellos_go_ahead_of_news_that_wait(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    count_work(a)
    flood(raw, NEWS)
    for _ in range(20):
        bench.advance(0.5)
        raw.hello()
        assert RouterId("RAW") in a.fib.routes
        assert RouterId("B") in a.fib.routes
        assert RouterId("A") in b.fib.routes
        assert a.pacer.at < bench.now + 1, "nothing waits"


def test_another_neighbor_s_news_wait_for_one_message_and_the_pauses_around_it(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    count_work(a)
    flood(raw, NEWS)
    bench.run()
    bench.client(b).receiver("new", credit=1)
    bench.advance(2 * LONGEST_PAUSE_S)
    assert "new" in a.control.addresses()
    assert a.control.address_counts()[RouterId("RAW")] < NEWS


def relay(raw: Neighbor, opcode: str, origin: str, body: Mapping[str, Any]) -> None:
    """Pass on what another router has said."""
    assert raw.control_out is not None
    message = control_message(ALL_TO, opcode, origin, body, f"0/{origin}", [f"0/{origin}", f"0/{raw.id}"])
    raw.control_out.send(message, settled=True)


def test_news_that_a_neighbor_passes_on_do_not_wait_behind_a_flood_that_it_passes_on(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    count_work(a)
    flood_size = NEWS // 2
    for number in range(flood_size):
        origin = f"X{number % 30}"
        peers = {f"X{(number + far) % 30}": int32(1) for far in range(1, 10)}
        state = {"id": origin, "area": "0", "ls_seq": int32(number), "peers": peers}
        relay(raw, "LSU", origin, {"instance": int32(1), "ls_seq": int32(number), "ls": state})
    bench.advance(1.0)
    for number in range(1, 6):
        relay(raw, "MAU", "HONEST", {"mobile_seq": number, "hints": [int32(3)], "add": [f"M0new{number}"], "del": []})
        raw.hello()
        bench.advance(LONGEST_PAUSE_S)
        assert a.control.received["MAU"] == number
    assert a.control.received["LSU"] < 0.75 * flood_size, "the flood waits"


def test_two_greedy_neighbors_take_turns_in_one_share(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    greedy = [join(bench, a, dials=True), join(bench, a, dials=True, name="RAW2")]
    count_work(a)
    for raw in greedy:
        flood(raw, NEWS)
    for _ in range(5):  # until they have used up what they may use at once
        bench.advance(1.0)
        for raw in greedy:
            raw.hello()
    before = a.pacer.measure()
    for _ in range(5):
        bench.advance(1.0)
        for raw in greedy:
            raw.hello()
    assert 0.15 <= (a.pacer.measure() - before) / 5 <= 0.25
    counts = a.control.address_counts()
    assert abs(counts[RouterId("RAW")] - counts[RouterId("RAW2")]) <= 50


def new_pacer() -> ControlPacer:
    return ControlPacer(share=0.2, most_bytes=100_000, hello_pause_s=1.0, measure=lambda: 0.0, look_at=lambda _: None)


def exhaust(pacer: ControlPacer, connection: ConnectionId, now: float) -> None:
    """Have a neighbor use up its allowance, and a message of it wait."""
    pacer.note(connection, 4, 2 * BURST_S)
    pacer.charge(now)
    pacer.keep(connection, b"news", now)


def test_who_has_its_allowance_does_not_wait_for_the_pauses_of_who_has_not() -> None:
    pacer = new_pacer()
    greedy, honest = ConnectionId(1), ConnectionId(2)
    assert pacer.may_pass(greedy, b"flood", 1.0)
    exhaust(pacer, greedy, 1.0)
    pacer.keep(greedy, b"more", 1.0)
    assert pacer.take(2.0) == (greedy, b"news")
    pacer.rest(0.2, 2.0)
    assert pacer.at == pytest.approx(3.0), "a fifth of the time"
    assert pacer.take(2.0) is None
    pacer.keep(honest, b"news", 2.1)
    assert pacer.at == pytest.approx(2.1)
    assert pacer.take(2.1) == (honest, b"news")
    pacer.rest(0.2, 2.1)
    assert pacer.at == pytest.approx(3.0), "neither does it make them longer"


def test_others_don_t_wait_for_the_time_it_takes_to_read_a_flood() -> None:
    pacer = new_pacer()
    greedy, honest = ConnectionId(1), ConnectionId(2)
    pacer.may_pass(greedy, b"flood", 1.0)
    pacer.may_pass(honest, b"news", 1.0)
    pacer.charge(1.0)
    for millisecond in range(100):  # a tenth of the time, and nothing of it is handled
        now = 2.0 + millisecond / 1000
        pacer.note_read(greedy, 0.0001, now)
        if not pacer.may_pass(greedy, b"flood", now):
            pacer.keep(greedy, b"flood", now)
    assert pacer.may_pass(honest, b"news", 2.1)
    pacer.note(honest, 4, 0.001)
    pacer.charge(2.1)
    pacer.keep(honest, b"news", 2.1)
    pacer.note_read(greedy, 0.001, 2.2)
    assert pacer.take(2.2) == (honest, b"news"), "what was read of the other one is not on its account"


def test_reading_a_flood_puts_off_its_own_messages_for_a_bounded_time() -> None:
    pacer = new_pacer()
    greedy = ConnectionId(1)
    assert pacer.may_pass(greedy, b"flood", 1.0)
    pacer.note_read(greedy, 5.0, 1.0)
    assert not pacer.may_pass(greedy, b"flood", 1.0)
    pacer.keep(greedy, b"flood", 1.0)
    assert 1.0 < pacer.at <= 1.0 + LONGEST_PAUSE_S
    assert pacer.take(1.0) is None
    assert pacer.take(pacer.at) == (greedy, b"flood")


def test_no_pause_is_longer_than_the_longest_whatever_has_come_together() -> None:
    pacer = new_pacer()
    one, other = ConnectionId(1), ConnectionId(2)
    for _ in range(20):
        pacer.may_pass(one, b"news", 1.0)
        pacer.note(one, 4, LONGEST_PAUSE_S)
        pacer.charge(1.0)
    assert pacer.may_pass(other, b"news", 1.001 + LONGEST_PAUSE_S)


def test_the_neighbor_that_has_used_least_is_next() -> None:
    pacer = new_pacer()
    for number in range(1, 5):
        connection = ConnectionId(number)
        pacer.may_pass(connection, b"news", 1.0)
        pacer.note(connection, 4, 0.1 * number)
        pacer.charge(1.0)
    order = (ConnectionId(3), ConnectionId(1), ConnectionId(4), ConnectionId(2))
    for connection in order:
        pacer.keep(connection, b"news", 1.0)
    found = [taken[0] for _ in order if (taken := pacer.take(1.001)) is not None]
    assert found == sorted(order)


def test_who_has_been_there_for_long_is_not_behind_those_who_come() -> None:
    pacer = new_pacer()
    old, new = ConnectionId(1), ConnectionId(2)
    for second in range(1, 100):
        assert pacer.may_pass(old, b"news", float(second))
        pacer.note(old, 4, 0.1)
        pacer.charge(float(second))
    pacer.keep(new, b"flood", 100.0)
    pacer.note(new, 4, 0.1 + 2 * CREDIT_S)
    pacer.charge(100.0)
    pacer.keep(old, b"news", 100.0)
    assert pacer.take(101.0) == (old, b"news")


def test_what_paced_neighbors_use_is_not_taken_from_the_others() -> None:
    pacer = new_pacer()
    greedy = [ConnectionId(number) for number in range(1, 4)]
    for connection in greedy:
        assert pacer.may_pass(connection, b"flood", 1.0 + connection)
        exhaust(pacer, connection, 1.0 + connection)
    for second in range(10, 100):
        pacer.keep(greedy[second % 3], b"more", float(second))
        pacer.note(greedy[second % 3], 4, 0.3)
        pacer.charge(float(second))
    assert pacer.may_pass(ConnectionId(9), b"news", 100.0)


def test_one_that_comes_again_and_again_has_no_more_than_all_together() -> None:
    now = 0.0
    pacer = new_pacer()
    used = 0.0
    for number in range(100):
        connection = ConnectionId(number)
        for _ in range(1000):
            now += 0.1 * PIECE_S
            if pacer.may_pass(connection, b"news", now):
                pacer.note(connection, 4, 0.9 * PIECE_S)
                pacer.charge(now)
                used += 0.9 * PIECE_S
        pacer.forget(connection)
    assert used == pytest.approx(min(QUIET_SHARE * now, ALL_BURST_S + 0.2 * now), rel=0.1)


@pytest.mark.parametrize(
    ("busy", "share"), [(0.0, QUIET_SHARE), (0.5, (QUIET_SHARE + BUSY_SHARE) / 2), (1.0, BUSY_SHARE)]
)
def test_the_busier_a_router_is_the_less_it_uses_for_control_messages(busy: float, share: float) -> None:
    now = control_s = others_s = 0.0
    pacer = new_pacer()
    pacer.measure = lambda: control_s + others_s
    while now < 1.0:
        now += 0.1 * PIECE_S
        others_s += busy * 0.1 * PIECE_S
        if pacer.may_pass(ConnectionId(1), b"news", now):
            now += 0.2 * PIECE_S
            control_s += 0.2 * PIECE_S
            pacer.note(ConnectionId(1), 4, 0.2 * PIECE_S)
            pacer.charge(now)
    assert control_s / now == pytest.approx(share, rel=0.15)


def test_messages_are_handled_in_pieces_with_pauses_in_proportion() -> None:
    pacer = new_pacer()
    one, other = ConnectionId(1), ConnectionId(2)

    def takes(connection: ConnectionId, now: float) -> bool:
        if not pacer.may_pass(connection, b"news", now):
            return False
        pacer.note(connection, 4, 0.6 * PIECE_S)
        return True

    assert [takes(one, 1.0) for _ in range(3)] == [True, True, False]
    assert not takes(other, 1.0), "the piece is that of all"
    assert pacer.keep(one, b"news", 1.0) is None, "nobody is told: it has used up nothing"
    pacer.charge(1.0)
    assert not takes(one, 1.1), "not before what waits"
    assert pacer.at == pytest.approx(1.0 + (1.2 * 1.2 - 1) * PIECE_S / QUIET_SHARE), "after the piece and a pause"
    assert pacer.take(1.1) == (one, b"news")
    pacer.rest(PIECE_S, 1.1)
    assert pacer.at == math.inf
    assert takes(one, 1.2)


@pytest.mark.parametrize(("used_s", "pause_s"), [(2 * PIECE_S, 3 * PIECE_S / QUIET_SHARE), (1.0, LONGEST_PAUSE_S)])
def test_after_a_message_that_took_long_comes_a_longer_pause(used_s: float, pause_s: float) -> None:
    pacer = new_pacer()
    one, other = ConnectionId(1), ConnectionId(2)
    assert pacer.may_pass(one, b"news", 1.0)
    pacer.note(one, 4, used_s)
    pacer.charge(1.0)
    assert not pacer.may_pass(other, b"news", 1.0 + 0.8 * pause_s)
    assert pacer.may_pass(other, b"news", 1.0 + 1.01 * pause_s)


def test_what_a_long_message_takes_is_known_before_another_one_is_taken() -> None:
    pacer = new_pacer()
    one = ConnectionId(1)
    long = bytes(PIECE_BYTES)
    assert pacer.may_pass(one, long, 1.0)
    pacer.note(one, len(long), 0.0)
    assert not pacer.may_pass(one, b"news", 1.0)
    pacer.charge(1.0)
    assert pacer.may_pass(one, b"news", 1.0)


def test_what_waits_is_bounded_and_what_was_dropped_is_asked_for(bench: Bench) -> None:
    a = bench.router("A", forwarding={"control_message_bytes": 1_048_576})
    raw = join(bench, a, dials=True)
    a.pacer.measure = itertools.count().__next__
    keys = [f"M0{number}{'x' * 900}" for number in range(500)]
    for _ in range(30):
        raw._change(keys, [], [3] * len(keys))
        raw._change([], keys, [])
    raw._change(keys, [], [3] * len(keys))
    bench.run()
    assert a.pacer.counters()["control_unread"] > 0
    a.pacer.measure = lambda: 0.0
    live(bench, raw, 60)
    assert a.control.address_counts()[RouterId("RAW")] == 500


def test_what_waits_of_a_neighbor_goes_with_it(bench: Bench) -> None:
    a = bench.router("A")
    raw = join(bench, a, dials=True)
    count_work(a)
    flood(raw, 1000)
    bench.run()
    raw.peer.wire.cut()
    bench.advance(1.0)
    taken = a.control.received["MAU"]
    bench.advance(10)
    assert a.control.received["MAU"] == taken


def test_an_empty_message_is_charged_though_it_has_no_byte() -> None:
    pacer = new_pacer()
    sender = ConnectionId(1)
    assert pacer.may_pass(sender, b"", 1.0)
    pacer.note(sender, 0, 0.1)
    pacer.charge(1.0)
    assert pacer.at > 1.0
