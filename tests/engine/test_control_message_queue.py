"""Messages of many origins that wait of one neighbor: who says little doesn't wait behind who says much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import int32

from router.control_message_queue import (
    MESSAGE_BYTES,
    MOST_FLOWS,
    ControlMessageQueue,
    origin_of,
)
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import (
    CircuitStates,
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
)
from router.engine.message_codec import encode_control
from tests.helpers.neighbor import control_message

C = RouterId("C")


def said_by(origin: str, number: int = 0, size: int = 0) -> bytes:
    return encode_control(
        "_topo/0/all/qdrouter.ma",
        MobileAddressUpdate(id=RouterId(origin), mobile_seq=number, add=("M0" + "x" * size,), hints=(3,)),
        RouterId(origin),
        [RouterId(origin)],
    )


def taken(queue: ControlMessageQueue, count: int) -> list[str]:
    """The origins of the next messages."""
    return [origin_of(queue.take()).decode() for _ in range(count)]


@pytest.mark.parametrize(
    "message",
    [
        Hello(id=C, instance=1, seen=(RouterId("A"),)),
        RouterAdvertisement(id=C, instance=1, ls_seq=1, mobile_seq=1),
        LinkStateRequest(id=C),
        LinkStateUpdate(id=C, instance=1, ls_seq=1, peers={RouterId("A"): 1}, has_trees=True),
        MobileAddressUpdate(id=C, mobile_seq=1, add=("M0a",), hints=(3,)),
        MobileAddressRequest(id=C, have_seq=1),
        CircuitStates(id=C, weights={"one": 1}),
    ],
    ids=lambda message: message.opcode,
)
def test_the_origin_of_each_kind_of_message_is_found(message: ControlMessage) -> None:
    assert origin_of(encode_control("amqp:/_topo/0/all/qdrouter", message, C, [RouterId("B"), C])) == b"C"


def test_the_origin_is_found_in_a_message_as_proton_writes_it() -> None:
    written = control_message("amqp:/_topo/0/all/qdrouter", "RA", "C", {"instance": int32(1)}, "0/B", ["0/C", "0/B"])
    assert origin_of(written) == b"C"


@pytest.mark.parametrize("message", [b"", b"news", b"\x02id\xa1", b"\x02id\x43", b"\x02id\xa1\xff"])
def test_what_names_no_origin_is_of_none(message: bytes) -> None:
    assert origin_of(message) == b""


def test_who_says_little_goes_before_who_says_much() -> None:
    queue = ControlMessageQueue()
    for number in range(300):
        for origin in range(30):
            queue.add(said_by(f"X{origin}", number))
    taken(queue, 5000)
    for number in range(10):
        queue.add(said_by("D", number))
        assert taken(queue, 62)[0] == "D"


def test_who_is_through_with_what_it_said_has_one_turn_in_a_round() -> None:
    queue = ControlMessageQueue()
    for number in range(1000):
        queue.add(said_by("X", number))
    queue.add(said_by("D"))
    served = {"X": 0, "D": 0}
    for _ in range(1000):
        (origin,) = taken(queue, 1)
        served[origin] += 1
        if origin == "D":
            queue.add(said_by("D"))
    assert abs(served["D"] - served["X"]) <= 20, "by bytes, which differ by a few"


def test_a_flood_in_many_names_that_never_waits_long_does_not_hold_up_the_others() -> None:
    queue = ControlMessageQueue()
    served = []
    for number in range(2000):
        queue.add(said_by(f"X{number % 100}", number))
        queue.add(said_by(f"X{(number + 50) % 100}", number))
        served += taken(queue, 1)
        if number == 1000:
            for each in range(3):
                queue.add(said_by("D", each))
    at = [place for place, origin in enumerate(served) if origin == "D"]
    assert len(at) == 3
    assert at[0] == 1001
    assert at[2] <= 1001 + 2 * 101


def test_messages_of_one_origin_stay_in_their_order() -> None:
    queue = ControlMessageQueue()
    messages = [said_by(f"X{number % 3}", number, number * 7 % 50) for number in range(60)]
    for message in messages:
        queue.add(message)
    found = [queue.take() for _ in messages]
    for origin in (b"X0", b"X1", b"X2"):
        own = [message for message in messages if origin_of(message) == origin]
        assert [message for message in found if origin_of(message) == origin] == own


def test_what_is_too_much_is_taken_from_the_longest_flow_and_is_the_oldest_there() -> None:
    queue = ControlMessageQueue()
    queue.add(said_by("D"))
    for number in range(100):
        queue.add(said_by("X", number))
    queue.add(said_by("E"))
    assert queue.shorten(10 * (len(said_by("X")) + MESSAGE_BYTES)) == 92
    left = [queue.take() for _ in range(len(queue))]
    assert [origin_of(message) for message in left].count(b"D") == 1
    assert said_by("E") in left
    assert [message for message in left if origin_of(message) == b"X"] == [said_by("X", n) for n in range(92, 100)]


def test_one_message_stays_however_long_it_is() -> None:
    queue = ControlMessageQueue()
    queue.add(bytes(1000))
    assert queue.shorten(10) == 0
    assert queue.take() == bytes(1000)
    with pytest.raises(LookupError):
        queue.take()


def test_flows_are_bounded_and_so_is_what_is_remembered_of_them() -> None:
    queue = ControlMessageQueue()
    for number in range(2 * MOST_FLOWS):
        queue.add(said_by(f"X{number}"))
        assert len(queue._flows) <= MOST_FLOWS + 1
    while len(queue) > 1:
        queue.take()
        queue.add(said_by("D"))
        queue.take()
        assert len(queue._line) == len(queue._flows)
    queue.take()
    assert (queue.bytes, len(queue._flows), len(queue._line)) == (0, 0, 0)


@given(st.lists(st.one_of(st.tuples(st.integers(0, 4), st.integers(0, 3000)), st.none(), st.integers(0, 9000))))
def test_whatever_comes_and_goes_is_accounted_for(
    steps: list[tuple[int, int] | int | None],
) -> None:
    queue = ControlMessageQueue()
    kept: list[bytes] = []
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            kept.append(said_by(f"X{step[0]}", number, step[1]))
            queue.add(kept[-1])
        elif isinstance(step, int):
            queue.shorten(step)
            assert queue.bytes <= step or len(queue) <= 1
            waiting = [message for flow in queue._flows.values() for message in flow.messages]
            kept = [message for message in kept if message in waiting]
        elif kept:
            message = queue.take()
            assert message == next(each for each in kept if origin_of(each) == origin_of(message))
            kept.remove(message)
        assert len(queue) == len(kept)
        assert queue.bytes == sum(len(message) + MESSAGE_BYTES for message in kept)
