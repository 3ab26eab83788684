"""Peers that take what they can: what they may not do, and what they may not make a router keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from proton import char, symbol, ubyte, ushort

from mesh_config.models import Role
from router.binding.library import ffi, lib
from router.binding.proton_data import MOST_PROPERTIES
from router.dataplane.message_sender import MAX_STREAMS
from router.engine.byte_streams import ByteStreams
from router.engine.connection import MAX_REFUSED, MAX_UNANSWERED, Connection
from router.guard.frame_guard import FrameGuard
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug, RawEnd, allocated
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


def test_of_very_many_properties_the_first_are_read(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    properties = {symbol("product"): "x"} | {symbol(f"key {number}"): number for number in range(200)}
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["talker", *[None] * 8, properties]))
    bench.run()
    (connection,) = router.connections.values()
    assert connection.peer is not None
    assert list(connection.peer.properties) == ["product", *(f"key {number}" for number in range(MOST_PROPERTIES - 1))]


def test_properties_that_cannot_be_read_are_none(bench: Bench) -> None:
    router = bench.router("A")
    for number, properties in enumerate((["a list"], {symbol("good"): 1, symbol("half a pair"): char("\ud800")})):
        stranger = bench.raw(router)
        stranger.write(frames.AMQP_HEADER + frames.write(0x10, [f"talker {number}", *[None] * 8, properties]))
        bench.run()
    assert [dict(connection.peer.properties) for connection in router.connections.values() if connection.peer] == [
        {},
        {},
    ]


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


def test_proton_writes_nothing_to_standard_error_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    streams = ByteStreams(FrameGuard(is_server=False, max_frame_bytes=512, channel_max=9))
    connection, transport = lib.pn_connection(), streams._transport
    lib.pn_transport_bind(transport, connection)
    lib.pn_connection_open(connection)
    session = lib.pn_session(connection)
    lib.pn_session_open(session)
    lib.pn_transport_pending(transport)  # writes the Begin, which the peer answers
    answer = frames.AMQP_HEADER + frames.write(0x10, ["small"])
    answer += frames.write(0x11, [ushort(0), 0, 100, 100, 0])  # its handle-max
    lib.pn_transport_capacity(transport)
    ffi.memmove(ffi.cast("char *", lib.pn_transport_tail(transport)), answer, len(answer))
    lib.pn_transport_process(transport, len(answer))
    for name in (b"one", b"other"):
        lib.pn_link_open(lib.pn_sender(session, name))
    lib.pn_transport_pending(transport)
    assert capfd.readouterr().err == ""
    lib.pn_transport_unbind(transport)
    lib.pn_transport_free(transport)
    lib.pn_connection_free(connection)


def test_more_sessions_than_the_channel_max_end_the_connection(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, max_sessions=3)
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


def test_refused_links_that_end_with_their_sessions_cost_nothing(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["patient"]))
    attempt = frames.write(0x11, BEGIN) + receiver_attach("again", "_topo/bad", handle=0) + frames.write(0x17, [])
    for number in range(MAX_REFUSED + 20):
        stranger.write(attempt)
        if number % 100 == 0:
            bench.run()
    bench.run()
    found = [frame.name for frame in frames.read(stranger.read)]
    assert (found.count("detach"), found.count("end")) == (MAX_REFUSED + 20, MAX_REFUSED + 20)
    assert not closing(stranger.read)


def test_a_session_has_a_bound_of_its_own(bench: Bench) -> None:
    router = bench.router("A", forwarding={"max_session_links": 100})
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["many"]) + frames.write(0x11, BEGIN))
    for handle in range(110):
        stranger.write(receiver_attach(f"r{handle}", "topic", handle=handle))
    bench.run()
    assert [frame.name for frame in frames.read(stranger.read)].count("detach") == 10
    assert not closing(stranger.read)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("max_sessions", [3, 16, 40])
def test_streams_leave_channels_for_what_a_neighbor_begins(bench: Bench, max_sessions: int) -> None:
    a, b = bench.router("A"), bench.router("B")
    bench.join(a, b, max_sessions=max_sessions)
    bench.advance(5)
    ends = [(a, bench.client(b)), (b, bench.client(a))]
    receivers = [receiver.receiver(f"to {router.me}", credit=100).accepting() for router, receiver in ends]
    bench.advance(1)
    begun = []
    for router, receiver in zip((a, b), receivers, strict=True):
        publisher = bench.client(router)
        whole = message("x" * 200_000, address=receiver.link.source.address)
        begun += [(publisher.sender(None).begin(whole[:50_000]), whole[50_000:]) for _ in range(max_sessions)]
    bench.run()
    for router in (a, b):
        (port,) = router.data_plane.ports.values()
        assert len(port.streams) == max_sessions // 16
        assert router.connections[port.id].free_channels > 0
    for one, rest in begun:
        one.end(rest)
    bench.advance(1)
    assert [len(receiver.messages) for receiver in receivers] == [max_sessions, max_sessions]
    bench.advance(30)
    assert [len(router.fib.routes) for router in (a, b)] == [1, 1], "there are heartbeats"


def test_a_neighbor_that_may_have_too_few_sessions_is_told_so(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")
    reasons = [end.connection.end_reason for end in bench.join(a, b, max_sessions=1).ends if isinstance(end, Plug)]
    assert ["need 2 sessions" in str(reason) for reason in reasons] == [True, True]


# What the engine would take on trust


def opened(bench: Bench, router: Runtime, *parts: bytes, **listener: Any) -> RawEnd:
    """A peer that has opened, begun a session, and written *parts*."""
    stranger = bench.raw(router, **listener)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["peer"]) + frames.write(0x11, BEGIN))
    bench.run()
    stranger.write(b"".join(parts))
    bench.run()
    return stranger


def sender_attach(name: str, address: str, *, handle: int = 0) -> bytes:
    terminus = (frames.source(address), frames.target(address))
    return frames.write(0x12, [name, handle, False, None, None, *terminus, None, None, 0])


def flow(*fields: object) -> bytes:
    return frames.write(0x13, [0, 100, 0, 100, *fields])


def flows(read: bytes | bytearray) -> list[frames.Frame]:
    return [frame for frame in frames.read(read) if frame.name == "flow"]


TRANSFER = frames.write(0x14, [0, 0, b"t", 0], payload=message("x"))
SETTLED_AS_SENDER = frames.write(0x15, [False, 0, 0, True])


@pytest.mark.parametrize(
    "parts",
    [
        [TRANSFER],
        [TRANSFER, frames.write(0x16, [0, True]), SETTLED_AS_SENDER],
        [TRANSFER, SETTLED_AS_SENDER, frames.write(0x16, [0, True])],
        [flow(0, 0, 10), TRANSFER, SETTLED_AS_SENDER],
    ],
)
def test_a_transfer_on_the_handle_of_a_receiver_ends_the_connection(bench: Bench, parts: list[bytes]) -> None:
    stranger = opened(bench, bench.router("A"), receiver_attach("r", "topic"), *parts)
    assert ["amqp:not-allowed" in error for error in closing(stranger.read)] == [True]


@pytest.mark.parametrize("ends", [(1, 0), (0, 1), (1,), (0,), ()])
def test_a_begin_that_answers_none_of_the_router_ends_the_connection(bench: Bench, ends: tuple[int, ...]) -> None:
    again = frames.write(0x11, [ushort(0), *BEGIN[1:]], channel=1)
    parts = [frames.write(0x17, [], channel=channel) for channel in ends]
    stranger = opened(bench, bench.router("A"), receiver_attach("r", "topic"), again, *parts)
    assert ["amqp:not-allowed" in error for error in closing(stranger.read)] == [True]


def test_a_neighbor_answers_each_begin_once(bench: Bench) -> None:
    router = bench.router("A")
    end = RawEnd()
    bench.raw_ends.append(bench.wire(end, bench.plug(router, role=Role.INTER_ROUTER, is_server=False)))
    end.write(frames.SASL_HEADER + frames.write(0x40, [symbol("ANONYMOUS")], kind=1))
    end.write(frames.write(0x44, [ubyte(0)], kind=1))
    end.write(frames.AMQP_HEADER + frames.write(0x10, ["B"]))
    bench.run()
    begins = [frame for frame in frames.read(end.read) if frame.name == "begin"]
    assert begins
    for begin in begins:
        end.write(frames.write(0x11, [ushort(begin.channel), *BEGIN[1:]], channel=begin.channel))
    bench.run()
    assert not closing(end.read)
    end.write(frames.write(0x11, [ushort(begins[0].channel), *BEGIN[1:]], channel=99))
    bench.run()
    assert ["amqp:not-allowed" in error for error in closing(end.read)] == [True]


@pytest.mark.parametrize("answers", [True, False])
def test_a_neighbor_that_detaches_the_control_links_unheard_is_left_and_why(bench: Bench, answers: bool) -> None:
    plug = bench.plug(bench.router("A"), role=Role.INTER_ROUTER, is_server=False)
    end = RawEnd()
    bench.raw_ends.append(bench.wire(end, plug))
    end.write(frames.SASL_HEADER + frames.write(0x40, [symbol("ANONYMOUS")], kind=1))
    end.write(frames.write(0x44, [ubyte(0)], kind=1))
    end.write(frames.AMQP_HEADER + frames.write(0x10, ["B"]))
    bench.run()
    asked = list(frames.read(end.read))
    for frame in asked:
        if frame.name == "begin":
            end.write(frames.write(0x11, [ushort(frame.channel), *BEGIN[1:]], channel=frame.channel))
    refusal = frames.Described(frames.ulong(0x1D), [symbol("qd:forbidden"), "not for routers"])
    for frame in asked:
        if frame.name == "attach":
            if answers:  # as qdrouterd does
                fields = [*frame.fields[:2], not frame.field(2), 0, 0, frame.field(5), frame.field(6)]
            else:
                fields = [*frame.fields[:2], not frame.field(2), 0, 0, None, None]
            if frame.field(2):
                fields += [None, None, 0]  # a sender's initial-delivery-count
            end.write(frames.write(0x12, fields, channel=frame.channel))
            end.write(frames.write(0x16, [frame.field(1), True, refusal], channel=frame.channel))
    bench.run()
    assert len(closing(end.read)) == 1
    assert not plug.connection.was_of_use
    assert str(plug.connection.end_reason).endswith("wants no neighbor: qd:forbidden: not for routers")


@pytest.mark.parametrize("piece", [0, 1])
def test_what_came_before_a_violation_still_counts(piece: int) -> None:
    bench = Bench(piece=piece)
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=10).accepting()
    stranger = opened(bench, router, sender_attach("s", "topic"))
    stranger.write(TRANSFER + frames.write(0x14, [5, 1, b"u", 0]))
    bench.run()
    assert receiver.bodies == ["x"]
    assert ["amqp:session:unattached-handle" in error for error in closing(stranger.read)] == [True]
    bench.close()


@pytest.mark.parametrize("header", [b"\x16\x03\x01\x00\xa5\x01", b"GET / HTTP/1.1\r\n", b"AMQP\x00\x00\x09\x01"])
def test_a_header_that_is_not_served_is_answered_with_the_one_that_is(bench: Bench, header: bytes) -> None:
    stranger = bench.raw(bench.router("A"))
    stranger.write(header)
    bench.run()
    assert bytes(stranger.read[:8]) == frames.AMQP_HEADER
    assert stranger.was_closed


# Flows with echo


def test_a_flow_with_echo_of_a_receiver_is_answered_with_the_state_of_its_link(bench: Bench) -> None:
    stranger = opened(
        bench, bench.router("A"), receiver_attach("r", "topic", handle=4), flow(4, 0, 7, None, False, True)
    )
    (answer,) = flows(stranger.read)
    assert (answer.flow("handle"), answer.flow("delivery_count"), answer.flow("link_credit")) == (0, 0, 7)


def test_a_flow_with_echo_of_a_sender_is_answered_with_its_credit(bench: Bench) -> None:
    router = bench.router("A", forwarding={"publisher_window": 20})
    bench.client(router).receiver("topic", credit=20).accepting()
    stranger = opened(bench, router, sender_attach("s", "topic"))
    granted = flows(stranger.read)[-1]
    before = len(stranger.read)
    stranger.write(flow(0, 0, 0, None, False, True))
    bench.run()
    (answer,) = flows(stranger.read[before:])
    assert answer.fields == granted.fields


def test_a_flow_with_echo_without_a_handle_is_answered_with_the_state_of_the_session(bench: Bench) -> None:
    stranger = opened(bench, bench.router("A"), flow(None, None, None, None, None, True))
    (answer,) = flows(stranger.read)
    assert answer.flow("next_incoming_id") == 0
    assert answer.flow("incoming_window") > 0
    assert answer.flow("next_outgoing_id") == 0
    assert answer.flow("handle") is None


@pytest.mark.parametrize("credit", [0, 10])
def test_a_drain_with_echo_is_answered_by_one_flow(any_bench: Bench, credit: int) -> None:
    stranger = opened(any_bench, any_bench.router("A"), receiver_attach("r", "topic"), flow(0, 0, credit))
    stranger.write(flow(0, 0, credit, None, True, True))
    any_bench.advance(2)
    (answer,) = flows(stranger.read)
    told = [answer.flow(name) for name in ("handle", "delivery_count", "link_credit", "drain")]
    assert told == [0, credit, 0, True]


@pytest.mark.parametrize("asks", [None, False])
@pytest.mark.parametrize("before", [0, 10])
def test_a_drain_without_credit_is_answered_by_one_flow(any_bench: Bench, before: int, asks: bool | None) -> None:
    stranger = opened(any_bench, any_bench.router("A"), receiver_attach("r", "topic"), flow(0, 0, before))
    assert not flows(stranger.read)
    for number in (1, 2):
        stranger.write(flow(0, 0, 0, None, True, *([] if asks is None else [asks])))
        any_bench.advance(2)
        assert len(flows(stranger.read)) == number
    told = [flows(stranger.read)[-1].flow(name) for name in ("handle", "delivery_count", "link_credit", "drain")]
    assert told == [0, 0, 0, True]


def test_a_drain_that_comes_with_its_attach_is_answered_behind_it(any_bench: Bench) -> None:
    stranger = opened(any_bench, any_bench.router("A"), receiver_attach("r", "topic"), flow(0, 0, 0, None, True))
    names = [frame.name for frame in frames.read(stranger.read) if frame.name in ("attach", "flow")]
    assert names == ["attach", "flow"]


def test_a_drain_that_crosses_the_last_message_is_answered_by_one_flow(any_bench: Bench) -> None:
    router = any_bench.router("A")
    stranger = opened(any_bench, router, receiver_attach("r", "topic"), flow(0, 0, 1))
    any_bench.client(router).sender("topic").send(message())
    any_bench.run()
    stranger.write(flow(0, 0, 1, None, True))  # as if the message had not come yet
    any_bench.advance(2)
    (answer,) = flows(stranger.read)
    assert [answer.flow(name) for name in ("delivery_count", "link_credit", "drain")] == [1, 0, True]


def test_a_sender_that_asks_while_it_is_granted_credit_hears_of_it_once(bench: Bench) -> None:
    router = bench.router("A")
    bench.client(router).receiver("topic", credit=20)
    stranger = opened(bench, router, sender_attach("s", "topic"), flow(0, 0, 0, None, False, True))
    (granted,) = flows(stranger.read)
    assert granted.flow("link_credit") > 0


def test_after_the_answer_to_no_credit_nothing_more_comes(bench: Bench) -> None:
    router = bench.router("A")
    stranger = opened(bench, router, receiver_attach("r", "topic"), flow(0, 0, 5))
    sender = bench.client(router).sender("topic")
    for number in range(3):
        sender.send(message(number))
    bench.run()
    stranger.write(flow(0, 2, 0, None, False, True))
    for number in range(3):
        sender.send(message(number))
    bench.run()
    names = [frame.name for frame in frames.read(stranger.read) if frame.name in ("transfer", "flow")]
    assert names == ["transfer"] * 3 + ["flow"]
    answer = flows(stranger.read)[-1]
    assert (answer.flow("delivery_count"), answer.flow("link_credit"), answer.flow("next_outgoing_id")) == (3, 0, 3)


@pytest.mark.parametrize("piece", [0, 1, 7])
def test_flows_with_echo_are_answered_behind_what_the_flows_of_the_same_read_cause(piece: int) -> None:
    bench = Bench(piece=piece)
    router = bench.router("A")
    sender = bench.client(router).sender("topic")
    parts = [
        receiver_attach("r", "topic"),
        flow(0, 0, 1),
        flow(0, 0, 3, None, False, True),
        flow(0, 0, 2),
        flow(None, None, None, None, None, True),
    ]
    stranger = opened(bench, router, *parts)
    for number in range(3):
        sender.send(message(number))
    bench.run()
    assert flows(stranger.read)[-1].flow("handle") is None
    if not piece:
        assert [frame.flow("link_credit") for frame in flows(stranger.read)] == [2, None]
    assert [frame.name for frame in frames.read(stranger.read)].count("transfer") == 2
    bench.close()


def test_echo_is_answered_while_a_neighbor_reads_nothing_once_it_reads_again(bench: Bench) -> None:
    router = bench.router("A")
    stranger = opened(bench, router, receiver_attach("r", "topic"))
    bench.raw_ends[-1].ends[1].room = 0  # type: ignore[attr-defined]
    before = len(stranger.read)
    for _ in range(1000):
        stranger.write(flow(0, 0, 7, None, False, True))
    bench.run()
    bench.raw_ends[-1].ends[1].room = 100_000  # type: ignore[attr-defined]
    bench.run()
    assert 1 <= len(flows(stranger.read[before:])) <= 1000


# Work that one piece of what was read may be


@pytest.mark.parametrize(
    ("frame", "most"),
    [
        (lambda number: receiver_attach(str(number), "topic", handle=number), 4),
        (lambda number: frames.write(0x11, BEGIN, channel=number + 1), 10),
        (lambda number: frames.write(0x15, [True, 0, 999]), 2),
    ],
    ids=["links", "sessions", "dispositions"],
)
def test_what_is_much_work_is_done_in_several_turns(bench: Bench, frame: Callable[[int], bytes], most: int) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, max_sessions=1000)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["busy"]) + frames.write(0x11, BEGIN))
    bench.run()
    plug = bench.wires[-1].ends[1]
    assert isinstance(plug, Plug)
    handle, turns = plug.handle, []

    def count(connection: Connection) -> None:
        turns.append(connection)
        handle(connection)

    plug.handle = count
    stranger.write(b"".join(map(frame, range(100))) + frames.write(0x18, []))
    bench.run()
    assert len(turns) >= 100 // most
    assert [found.name for found in frames.read(stranger.read)].count("close") == 1
    assert stranger.was_closed


def test_the_rest_of_what_was_read_is_left_while_its_peer_has_too_much_here(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["busy"]) + frames.write(0x11, BEGIN))
    bench.run()
    plug = bench.wires[-1].ends[1]
    assert isinstance(plug, Plug)
    handle = plug.handle

    def stop(connection: Connection) -> None:
        handle(connection)
        plug.port.charge.stop_reading(True)

    plug.handle = stop
    stranger.write(b"".join(receiver_attach(str(number), "topic", handle=number) for number in range(100)))
    bench.run()
    attached = len(plug.connection.links)
    assert 0 < attached < 100
    plug.handle = handle
    plug.port.charge.stop_reading(False)
    bench.run()
    assert len(plug.connection.links) == 100
