"""Looks at what changes, each second or so: in turns that take place anyway, where there are some."""

from __future__ import annotations

from itertools import pairwise

from router.core.recording.recorded_control_plane import RecordedControlPlane
from router.run_to_completion import EARLY_LOOK_S, LOOK_S
from tests.helpers.engine import Bench


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
