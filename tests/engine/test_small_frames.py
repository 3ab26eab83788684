"""Peers that take small frames, 512 bytes at the least: nothing larger is written to them.

Source: AMQP 1.0 part 2, 2.7.1 (max-frame-size) and 2.8.15 (frame-size-too-small).
"""

from __future__ import annotations

from typing import Any

import pytest
from proton import Described, Transport, symbol, ulong

from mesh_config.models import Role
from router.core.ids_and_conditions import Condition
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.peer import Peer, message

LEAST = 512
TOO_SMALL = str(Condition.FRAME_SIZE_TOO_SMALL)


def small_client(bench: Bench, **options: Any) -> Peer:
    def configure(transport: Transport) -> None:
        transport.max_frame_size = LEAST

    router = bench.routers.get("A") or bench.router("A")
    return bench.client(router, configure=configure, **options)


def small_stranger(bench: Bench, **listener: Any) -> RawEnd:
    """A peer that has begun a session, and takes small frames."""
    router = bench.routers.get("A") or bench.router("A")
    stranger = bench.raw(router, **listener)
    begin = frames.write(0x11, [None, 0, 100, 100])
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["small", None, LEAST]) + begin)
    bench.run()
    return stranger


def attach(name: str, address: str, *, is_receiver: bool, outcomes: object = None) -> bytes:
    source = Described(ulong(0x28), [address, 0, symbol("session-end"), 0, False, None, None, None, None, outcomes])
    return frames.write(0x12, [name, 0, is_receiver, 0, 0, source, frames.target(address)])


def largest(read: bytes | bytearray) -> int:
    return max(frame.size for frame in frames.read(bytes(read)))


@pytest.mark.parametrize("kind", ["sender", "receiver"])
def test_of_a_link_whose_answer_is_too_large_only_that_link_is_refused(bench: Bench, kind: str) -> None:
    client = small_client(bench)
    healthy = client.receiver("short", credit=1)
    long = getattr(client, kind)("z" * 450)
    assert long.closed == TOO_SMALL
    assert str(LEAST) in long.description
    client.sender("short").send(message("still here"))
    bench.run()
    assert healthy.bodies == ["still here"]
    assert (client.closed, client.fault) == (None, None)
    assert largest(client.wire.log[1]) <= LEAST


@pytest.mark.parametrize("is_receiver", [False, True])
@pytest.mark.parametrize("size", [1, 100, 120, 140, 160, 180, 200, 300, 450, 1000])
def test_each_answer_to_an_attach_fits_or_says_that_none_does(bench: Bench, size: int, is_receiver: bool) -> None:
    for name_size in (1, 90, 250, 300, 383, 384, 385, 400, 900):
        for address in ("a" * size, "$" + "a" * size):
            stranger = small_stranger(bench)
            stranger.write(attach("n" * name_size, address, is_receiver=is_receiver))
            bench.run()
            assert largest(stranger.read) <= LEAST
            last = [frame for frame in frames.read(stranger.read) if frame.name in ("attach", "detach", "close")][-1]
            if last.name == "close":
                assert name_size > 380
            assert last.name != "close" or f"'{TOO_SMALL}'" in str(last.fields[0])
            if size + name_size < 50 and address[0] == "a":
                assert last.name == "attach"


def test_outcomes_that_an_answer_repeats_count_too(bench: Bench) -> None:
    stranger = small_stranger(bench)
    outcomes = [symbol("o" * 200)] * 3
    stranger.write(attach("r", "news", is_receiver=True, outcomes=outcomes))
    bench.run()
    assert largest(stranger.read) <= LEAST
    assert TOO_SMALL in str(list(frames.read(stranger.read))[-1].fields)


def test_a_dynamic_address_that_is_too_long_is_refused(bench: Bench) -> None:
    bench.router("A" * 255)
    bench.routers["A"] = bench.routers["A" * 255]
    client = small_client(bench)
    refused = client.receiver(None, dynamic=True, name="n" * 100)
    assert refused.closed == TOO_SMALL
    assert client.receiver(None, dynamic=True, name="n").address
    assert client.fault is None
    assert largest(client.wire.log[1]) <= LEAST


def test_a_name_that_no_answer_can_have_closes_the_connection(bench: Bench) -> None:
    stranger = small_stranger(bench)
    stranger.write(attach("n" * 900, "news", is_receiver=True))
    bench.run()
    close = list(frames.read(stranger.read))[-1]
    assert close.name == "close"
    assert TOO_SMALL in str(close.fields[0])
    assert close.size <= LEAST


def test_a_close_with_a_long_text_fits(bench: Bench) -> None:
    client = small_client(bench)
    router = bench.routers["A"]
    (connection,) = router.connections.values()
    connection.close(Condition.INTERNAL_ERROR, "é" * 5000)
    router.turn(connection)
    bench.run()
    assert client.closed == str(Condition.INTERNAL_ERROR)
    assert set(client.description) == {"é"}
    assert largest(client.wire.log[1]) <= LEAST


def test_a_neighbor_with_small_frames_gets_none_that_are_larger(bench: Bench) -> None:
    stranger = small_stranger(bench, role=Role.INTER_ROUTER)
    stranger.write(attach("n" * 380, "z" * 1000, is_receiver=False))
    bench.run()
    opened, *others = frames.read(stranger.read)  # the dialling side writes its Open before it knows
    assert opened.name == "open"
    assert others[-1].name == "detach"
    assert max(frame.size for frame in others) <= LEAST
