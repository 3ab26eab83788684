"""HELLOs and advertisements that come again as they are: they are read once, and count each time."""

from __future__ import annotations

from router.core.events import ControlReceived
from router.core.linkstate.messages import Hello
from router.core.recording.recorded_control_plane import RecordedControlPlane
from router.engine.control_links import REMEMBERED
from router.runtime import Runtime
from tests.engine.test_raw_neighbor import join
from tests.helpers.engine import Bench


def hellos(router: Runtime) -> list[ControlReceived]:
    """Those that the control plane was told of, in their order."""
    plane = router.recorder.plane
    assert isinstance(plane, RecordedControlPlane)
    events = [event for segment in plane.segments() for _, some, _ in segment.calls for event in some or ()]
    return [event for event in events if isinstance(event, ControlReceived) and isinstance(event.message, Hello)]


def test_a_hello_that_comes_again_is_read_once(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    before = len(hellos(a))
    bench.advance(10)
    heard = hellos(a)[before:]
    assert len(heard) >= 10
    assert len({id(each) for each in heard}) == 1
    assert "B" in a.fib.routes


def test_a_hello_that_says_something_else_is_read(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.advance(3)
    bench.join(bench.router("C"), b)
    bench.advance(2)
    message = hellos(a)[-1].message
    assert isinstance(message, Hello)
    assert message.seen == ("A", "C")


def test_no_neighbor_has_more_than_so_many_messages_remembered(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    for _ in range(2 * REMEMBERED):
        raw.ls_seq += 1
        raw.advertise()
    bench.advance(3)
    links = [a.neighbor(connection) for connection in a.connections]
    assert max(len(each.control.remembered) for each in links if each is not None) == REMEMBERED
