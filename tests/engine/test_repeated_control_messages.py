"""HELLOs and advertisements that come again as they are: they are read once, and count each time."""

from __future__ import annotations

import pytest

from router.core.errors import DecodeError
from router.core.events import ControlReceived
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.control_message_sender import ALL_LINK_STATE_TO
from router.core.linkstate.messages import Hello, RouterAdvertisement
from router.core.recording.recorded_control_plane import RecordedControlPlane
from router.engine import message_codec
from router.engine.control_links import REMEMBERED
from router.engine.message_codec import LONGEST_TRACE, MOST_REMEMBERED_BYTES, decode_control, encode_control
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


def passed_on(number: int, trace: list[str]) -> bytes:
    """Bytes of an advertisement that has been at the routers of a trace."""
    message = RouterAdvertisement(id=RouterId("B"), instance=1, ls_seq=number, mobile_seq=0)
    return encode_control(ALL_LINK_STATE_TO, message, RouterId("B"), [RouterId(name) for name in trace])


def test_what_is_remembered_of_messages_passed_on_has_a_bound_in_bytes() -> None:
    for number in range(2 * message_codec.REMEMBERED):
        passed_on(number, ["B", "A"])
        passed_on(number, [f"{number:0200}"] * LONGEST_TRACE)
    sizes = [len(each) for each in message_codec._remembered.values()]
    assert len(sizes) <= message_codec.REMEMBERED
    assert max(sizes) <= MOST_REMEMBERED_BYTES
    assert passed_on(1, ["B", "A"]) is passed_on(1, ["B", "A"])


@pytest.mark.parametrize("trace", [["B"] * (LONGEST_TRACE + 1), ["x" * 256]])
def test_a_trace_that_no_path_has_is_not_read(trace: list[str]) -> None:
    assert decode_control(passed_on(1, ["B"] * LONGEST_TRACE)).trace == ("B",) * LONGEST_TRACE
    with pytest.raises(DecodeError):
        decode_control(passed_on(1, trace))
