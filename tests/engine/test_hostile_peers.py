"""Peers that take what they can: what they may not do, and what they may not make a router keep."""

from __future__ import annotations

import pytest

from mesh_config.models import Role
from router.dataplane.egress import MAX_STREAMS
from router.engine.connection import MAX_REFUSED, MAX_SESSION_LINKS, MAX_UNANSWERED
from tests.helpers import frames
from tests.helpers.engine import Bench, allocated
from tests.helpers.peer import message

BEGIN = [None, 0, 2**31 - 1, 2**31 - 1]


def receiver_attach(name: str, address: str, *, handle: int = 0) -> bytes:
    return frames.write(0x12, [name, handle, True, None, None, frames.source(address), frames.target(address)])


def closing(read: bytes | bytearray) -> list[str]:
    return [str(frame.fields[0]) for frame in frames.read(read) if frame.name == "close"]


# Order of frames


@pytest.mark.parametrize("role", [Role.NORMAL, Role.INTER_ROUTER])
def test_nothing_is_attached_before_the_open(bench: Bench, role: Role) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, role=role, vhost_prefix=role is Role.NORMAL)
    stranger.write(frames.AMQP_HEADER + frames.write(0x11, BEGIN) + receiver_attach("r", "topic"))
    bench.run()
    assert not list(router.fib.entries())
    assert "amqp:connection:framing-error" in closing(stranger.read)[0]


@pytest.mark.parametrize("role", [Role.NORMAL, Role.INTER_ROUTER])
def test_a_second_open_ends_the_connection(bench: Bench, role: Role) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, role=role)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["one"]))
    bench.run()
    stranger.write(frames.write(0x10, ["other"]))
    bench.run()
    assert "amqp:connection:framing-error" in closing(stranger.read)[0]
    assert not router.connections or not router._peers.neighbors


def test_heartbeats_that_are_wanted_all_the_time_are_refused(bench: Bench) -> None:
    stranger = bench.raw(bench.router("A"))
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["hasty", None, None, None, 1]))
    bench.run()
    assert "amqp:resource-limit-exceeded" in closing(stranger.read)[0]


def test_answers_beyond_the_handle_max_of_the_peer_end_the_connection(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["small"]) + frames.write(0x11, [*BEGIN, 0]))
    stranger.write(receiver_attach("one", "topic", handle=0) + receiver_attach("other", "topic", handle=1))
    bench.run()
    assert closing(stranger.read)
    assert not list(router.fib.entries())


def test_more_sessions_than_the_channel_max_end_the_connection(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, max_sessions=10)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["many"]))
    stranger.write(100 * (frames.write(0x11, BEGIN) + frames.write(0x17, [])))
    bench.run()
    assert closing(stranger.read)


# Memory


def test_refused_links_that_are_never_detached_have_a_bound(bench: Bench) -> None:
    router = bench.router("A", forwarding={"max_links": 10})
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["many"]) + frames.write(0x11, BEGIN))
    for handle in range(MAX_REFUSED + 20):
        stranger.write(receiver_attach(f"r{handle}", "_topo/bad", handle=handle))
        if handle % 100 == 0:
            bench.run()
    bench.run()
    assert "amqp:resource-limit-exceeded" in closing(stranger.read)[0]


def test_a_session_has_a_bound_of_its_own(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["many"]) + frames.write(0x11, BEGIN))
    for handle in range(MAX_SESSION_LINKS + 10):
        stranger.write(receiver_attach(f"r{handle}", "topic", handle=handle))
    bench.run()
    assert [frame.name for frame in frames.read(stranger.read)].count("detach") == 10
    assert not closing(stranger.read)


def test_links_that_come_and_go_while_nothing_is_read_have_a_bound(bench: Bench) -> None:
    router = bench.router("A", forwarding={"max_links": 10})
    stranger = bench.raw(router)
    bench.raw_ends[-1].ends[1].room = 1000  # type: ignore[attr-defined]
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["deaf"]) + frames.write(0x11, BEGIN))
    before = allocated()
    for number in range(5 * MAX_UNANSWERED):
        stranger.write(receiver_attach(f"r{number}", "topic") + frames.write(0x16, [0, True]))
    bench.raw_ends[-1].move()
    assert allocated() - before < 150_000_000
    bench.raw_ends[-1].cut()
    bench.run()


def test_sessions_that_come_and_go_while_nothing_is_read_have_a_bound(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, max_sessions=10)
    bench.raw_ends[-1].ends[1].room = 1000  # type: ignore[attr-defined]
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["deaf"]))
    before = allocated()
    for _ in range(5 * MAX_UNANSWERED):
        stranger.write(frames.write(0x11, BEGIN) + frames.write(0x17, []))
    bench.raw_ends[-1].move()
    assert allocated() - before < 150_000_000
    bench.raw_ends[-1].cut()
    bench.run()


# Credit


def test_messages_given_up_at_once_cost_no_credit(bench: Bench) -> None:
    router = bench.router("A", forwarding={"publisher_window": 4})
    receiver = bench.client(router).receiver("topic", credit=100).accepting()
    sender = bench.client(router).sender("topic")
    for _ in range(20):
        begun = sender.begin(message("x"))
        begun.abort()
        bench.run()
    assert sender.credit > 0
    sender.send(message("y"))
    bench.run()
    assert receiver.bodies == ["y"]


# Streams between routers


def test_messages_that_wait_for_a_stream_get_an_outcome_when_the_neighbor_is_lost(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.client(b).receiver("topic", credit=1000)
    publisher = bench.client(a)
    sent = [publisher.sender("topic").begin(message("x" * 50)) for _ in range(MAX_STREAMS + 5)]
    bench.run()
    for one in sent:
        one.part(bytes(1000))
    bench.run()
    entry = a.fib.find("topic")
    assert entry is not None
    assert entry.waiting_bytes == 0
    for wire in bench.wires:
        if all(hasattr(end, "runtime") for end in wire.ends):
            wire.cut()
    bench.run()
    for one in sent:
        one.end()
    bench.run()
    bench.advance(1)
    assert [one.outcome for one in sent].count(None) == 0


def test_messages_that_wait_for_a_stream_are_on_no_account_of_their_address(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver("topic", credit=1000).accepting()
    publisher = bench.client(a)
    sent = [publisher.sender("topic").begin(message("x" * 50)) for _ in range(MAX_STREAMS + 5)]
    bench.run()
    for one in sent:
        one.part(bytes(1000))
    bench.run()
    sent[-1].abort()
    bench.run()
    entry = a.fib.find("topic")
    assert entry is not None
    assert entry.waiting_bytes == 0
    for one in sent[:-1]:
        one.end()
    bench.run()
    assert len(receiver.messages) == len(sent) - 1
    assert entry.waiting_bytes == 0
