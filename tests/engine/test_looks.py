"""Turns by time: looks at what changes, in turns that take place anyway, and deadlines that messages have put off."""

from __future__ import annotations

from itertools import pairwise

import pytest

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.recording.recorded_control_plane import RecordedControlPlane
from router.run_to_completion import EARLY_LOOK_S, LOOK_S
from tests.helpers.engine import Bench
from tests.helpers.peer import message

BUSY_S = CreditTiming().busy_s


def test_a_look_takes_place_with_the_hellos(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    looks: list[float] = []
    a.tell_look(lambda: looks.append(bench.now))
    bench.advance(20)  # HELLOs come a little earlier each second: by then one was due a moment before a look
    looks.clear()
    bench.advance(20)
    assert all(LOOK_S - EARLY_LOOK_S <= later - one <= LOOK_S for one, later in pairwise(looks))
    assert len(looks) >= 19
    plane = a.recorder.plane
    assert isinstance(plane, RecordedControlPlane)
    deadlines = {now for segment in plane.segments() for now, events, _ in segment.calls if events is None}
    assert set(looks) <= deadlines


def test_a_router_without_neighbors_looks_each_second(bench: Bench) -> None:
    a = bench.router("A")
    looks: list[float] = []
    a.tell_look(lambda: looks.append(bench.now))
    bench.advance(10.5)
    assert len(looks) == 10


def test_a_fault_in_a_look_keeps_no_hello_from_being_said(bench: Bench) -> None:
    def look() -> None:
        raise RuntimeError("a fault of ours")

    a, b = bench.router("A", is_forgiving=True), bench.router("B")
    bench.join(a, b)
    a.tell_look(look)
    bench.advance(10)
    assert "A" in b.fib.routes
    assert a.control.sent["HELLO"] >= 10


def test_a_deadline_that_messages_have_put_off_is_no_reason_for_a_turn(bench: Bench) -> None:
    router = bench.router("A")
    sender = bench.client(router).sender("topic")
    bench.client(router).receiver("topic", credit=100).accepting()
    turns: list[float] = []
    router.tell_deadlines(changed=lambda: None, came=lambda: turns.append(bench.now))
    bench.advance(2)
    for _ in range(2):
        sender.send(message("busy"))
        bench.run()
        bench.now += BUSY_S / 2
    put_off = router.next_deadline()
    bench.now = put_off
    router.handle_time()
    assert not turns
    assert router.scheduled == pytest.approx(put_off + BUSY_S / 2)
    bench.now = router.scheduled
    router.handle_time()
    assert turns == [bench.now], "its publisher is busy no more"
