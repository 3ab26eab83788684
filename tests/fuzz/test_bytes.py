"""Whatever bytes arrive, the router answers or closes the connection with an AMQP error, nothing else.

Streams of clients and of neighbors, recorded or made here, are damaged and fed in pieces of any size. Two other clients
go on exchanging messages, and no fault of the router's own is ever reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mesh_config.models import Role
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.examples import examples
from tests.helpers.frames import AMQP_HEADER, source, target, write
from tests.helpers.peer import message
from tests.wire import vectors

EXAMPLES = examples(150)
FRAMES = sorted(vectors.files("frames"))
CONTROL = sorted(vectors.files("control"))


@cache
def client_frames() -> tuple[bytes, ...]:
    """What a client writes that does a little of everything."""
    data = message("hello", address="fuzz")
    return (
        AMQP_HEADER,
        write(0x10, ["fuzzer", "host", frames.uint(4096)]),
        write(0x11, [None, 0, 100, 100]),
        write(0x12, ["receiver", 0, True, None, None, source("fuzz"), target("fuzz")]),
        write(0x13, [None, 100, 0, 100, 0, 0, 10, None, False]),
        write(0x12, ["sender", 1, False, None, None, source("fuzz"), target("fuzz"), None, None, 0]),
        write(0x14, [1, 0, b"a", 0], payload=data),
        write(0x14, [1, 1, b"b", 0, None, True], payload=data[:9]),
        write(0x14, [1, 1, b"b", 0, None, False], payload=data[9:]),
        write(0x14, [1, 2, b"c", 0, True], payload=data),
        write(0x15, [True, 0, 1, True, frames.Described(frames.ulong(0x24), [])]),
        write(0x11, [None, 0, 100, 100], channel=7),
        write(0x12, ["anonymous", 0, False, None, None, None, target("")], channel=7),
        write(0x14, [0, 0, b"d", 0], payload=data, channel=7),
        write(0x14, [0, 1, b"e", 0, None, True], payload=data[:30], channel=7),
        write(0x14, [0, None, None, None, None, None, None, None, None, True], channel=7),
        write(0x13, [0, 100, 0, 100, 0, 0, 0, None, True, True]),
        write(0x16, [0, True]),
        write(0x17, [], channel=7),
        write(0x16, [1, False]),
        write(0x12, ["receiver", 0, True, None, None, source("fuzz"), target("fuzz")]),
        write(0x18, []),
    )


@cache
def neighbor_frames() -> tuple[bytes, ...]:
    """What a qdrouterd wrote: the set-up, then each control message that was recorded."""
    stream = vectors.load("frames/setup-stream-connector-side.bin").data
    parts = list(split(stream))
    for number, file in enumerate(CONTROL):
        tag = number.to_bytes(8, "little")
        parts.append(write(0x14, [1, 1000 + number, tag, 0, True], payload=vectors.load(file).data))
    return tuple(parts)


def split(stream: bytes) -> Iterator[bytes]:
    """The headers and frames of a stream."""
    at = 0
    while at < len(stream):
        size = 8 if stream.startswith(b"AMQP", at) else int.from_bytes(stream[at : at + 4], "big")
        yield stream[at : at + size]
        at += size


@st.composite
def damaged(draw: st.DrawFn, parts: tuple[bytes, ...]) -> bytes:
    """Frames left out, doubled, moved or cut; then bytes changed, put in or taken out."""
    chosen = list(parts)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(chosen) - 1))
        act = draw(st.integers(0, 4))
        if act == 0 and len(chosen) > 1:
            del chosen[at]
        elif act == 1:
            chosen.insert(at, chosen[draw(st.integers(0, len(chosen) - 1))])
        elif act == 2:
            other = draw(st.integers(0, len(chosen) - 1))
            chosen[at], chosen[other] = chosen[other], chosen[at]
        elif act == 3:
            chosen[at] = chosen[at][: draw(st.integers(0, len(chosen[at])))]
        else:
            chosen.insert(at, vectors.load(draw(st.sampled_from(FRAMES))).data)
    data = bytearray(b"".join(chosen))
    for _ in range(draw(st.integers(0, 6))):
        if not data:
            break
        at = draw(st.integers(0, len(data) - 1))
        act = draw(st.integers(0, 2))
        if act == 0:
            data[at] = draw(st.sampled_from((0, 1, 0x40, 0x45, 0x7F, 0x80, 0xC0, 0xD0, 0xFF)) | st.integers(0, 255))
        elif act == 1:
            data[at:at] = draw(st.binary(max_size=8))
        else:
            del data[at : at + draw(st.integers(1, 8))]
    return bytes(data)


def check(data: bytes, piece: int, role: Role) -> None:
    """Feed *data* and see that nothing happens but what AMQP has for it."""
    bench = Bench(piece=piece)
    router = bench.router("A")
    witness = bench.client(router)
    receiver = witness.receiver("fuzz", credit=1000).accepting()
    elsewhere = witness.receiver("witness", credit=1000).accepting()
    stranger = bench.raw(router, role=role)
    stranger.write(data)
    bench.run()
    bench.advance(0.5)
    check_answer(stranger)
    sent = witness.sender("witness").send(message("still here"))
    bench.run()
    assert elsewhere.bodies == ["still here"]
    assert sent.outcome == "accepted"
    assert witness.closed is None
    assert receiver.closed is None
    bench.close()


def check_answer(stranger: RawEnd) -> None:
    """All that the router wrote is valid, and says nothing of a fault of its own."""
    for frame in frames.read(stranger.read):
        if frame.name in ("close", "end", "detach"):
            error = frame.fields[-1] if frame.fields else None
            if isinstance(error, frames.Described):
                assert error.value[0] != "amqp:internal-error", error.value
    if stranger.was_closed and stranger.read:
        names = [frame.name for frame in frames.read(stranger.read)]
        assert not names or names[-1] in ("close", "sasl-outcome", "sasl-mechanisms"), names


slow = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
pieces = st.sampled_from((0, 0, 1, 5, 100))


@slow
@given(damaged(client_frames()), pieces)
def test_a_damaged_stream_of_a_client(data: bytes, piece: int) -> None:
    check(data, piece, Role.NORMAL)


@slow
@given(damaged(neighbor_frames()), pieces)
def test_a_damaged_stream_of_a_neighbor(data: bytes, piece: int) -> None:
    check(data, piece, Role.INTER_ROUTER)


@slow
@given(st.binary(max_size=200), st.booleans(), pieces)
def test_random_bytes(data: bytes, header: bool, piece: int) -> None:
    check(AMQP_HEADER + data if header else data, piece, Role.NORMAL)


@slow
@given(damaged((*client_frames()[:6],)), st.binary(max_size=100), pieces)
def test_random_messages_on_a_valid_link(head: bytes, payload: bytes, piece: int) -> None:
    transfers = b"".join(
        write(0x14, [1, number, bytes([number]), 0, number == 0], payload=payload) for number in (0, 1)
    )
    check(b"".join(client_frames()[:6]) + transfers + head[-40:], piece, Role.NORMAL)


@pytest.mark.parametrize("role", list(Role))
def test_the_whole_streams_do_no_harm(role: Role) -> None:
    check(b"".join(client_frames()), 0, role)
    check(b"".join(neighbor_frames()), 0, role)


@pytest.mark.parametrize("file", FRAMES)
@pytest.mark.parametrize("role", list(Role))
def test_recorded_frames_out_of_place(file: str, role: Role) -> None:
    check(AMQP_HEADER + write(0x10, ["x"]) + vectors.load(file).data, 0, role)


@pytest.mark.parametrize("where", [7, 8, 9], ids=["offered", "desired", "properties"])
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(
    "value",
    [
        b"\xc1\x0a\x02\xa3\x01a\x73\x7f\xff\xff\xff",  # a char that Unicode does not have
        b"\xc1\x04\x02\x45\x40",  # a list as key
        b"\xc1\x06\x02\xa3\x02\xff\xfe\x40",  # a symbol that is no ASCII
        b"\xd1\x00\x00\x00\x05\xff\xff\xff\xff\x40",  # a count that cannot be
        b"\xc0\xff\x01" * 80,  # lists within lists, cut off
        b"\x00" * 200,  # descriptors of descriptors
    ],
)
def test_an_open_that_python_has_no_value_for(value: bytes, where: int, role: Role) -> None:
    fields = b"\xa1\x01x" + b"\x40" * (where - 1) + value
    body = b"\x00\x53\x10\xd0" + (len(fields) + 4).to_bytes(4, "big") + (where + 1).to_bytes(4, "big") + fields
    check(AMQP_HEADER + (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body, 0, role)
