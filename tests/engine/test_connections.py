"""Connections: layers, protocol headers, limits of Open, silence, and the ways in which they end."""

from __future__ import annotations

from collections.abc import Callable

import proton
import pytest
from proton import Transport

from mesh_config.models import Role
from router.core.ids_and_conditions import Condition
from router.engine.connection import Connection
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, message


@pytest.mark.parametrize("sasl", [False, True], ids=["no SASL layer", "ANONYMOUS"])
def test_a_client_with_and_without_a_sasl_layer_enters_by_the_same_listener(any_bench: Bench, sasl: bool) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router, sasl=sasl)
    receiver = client.receiver("news", credit=1).accepting()
    sent = client.sender("news").send(message("hello"))
    any_bench.run()
    assert receiver.bodies == ["hello"]
    assert sent.outcome == "accepted"
    written = client.wire.log[1]
    assert written.startswith(frames.SASL_HEADER if sasl else frames.AMQP_HEADER)


def test_open_carries_product_version_and_what_the_router_offers(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    properties = client.connection.remote_properties
    assert client.connection.remote_container == "A"
    assert properties["product"] == "amqp-mesh"
    assert properties["version"]
    assert "ANONYMOUS-RELAY" in client.connection.remote_offered_capabilities


@pytest.mark.parametrize(
    "opening",
    [
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x01\x01\x00\x0a",
        b"AMQP\x00\x02\x00\x00",
        b"GET / HTTP/1.1\r\nHost: router\r\n\r\n",
        b"\x00" * 64,
        b"AMQP\x00\x01\x00\x00\x00\x00\x00\x03\x02\x00\x00\x00",
    ],
    ids=["AMQP 0-9-1", "AMQP 0-8", "AMQP 2.0", "HTTP", "zeros", "a frame of three bytes"],
)
def test_who_speaks_something_else_gets_a_valid_header_and_the_end(any_bench: Bench, opening: bytes) -> None:
    router = any_bench.router("A")
    stranger = any_bench.raw(router)
    stranger.write(opening)
    any_bench.run()
    assert stranger.was_closed
    assert bytes(stranger.read[:8]) in (frames.AMQP_HEADER, frames.SASL_HEADER)
    assert not router.connections


def test_tls_where_there_is_none_is_closed(any_bench: Bench) -> None:
    # An AMQP header in answer to it would say nothing to a TLS library.
    router = any_bench.router("A")
    stranger = any_bench.raw(router)
    stranger.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    any_bench.run()
    assert stranger.was_closed
    assert not router.connections


def test_who_closes_before_a_word_leaves_nothing(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.has_ended = True
    bench.run()
    assert not router.connections


def test_a_silent_client_is_closed_after_the_idle_timeout(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router, listener={"idle_timeout_s": 4.0})
    opens = [frame for frame in frames.read(client.wire.log[1]) if frame.name == "open"]
    assert opens[0].field(4) == 2000  # half of it is announced: docs/reference/inter-router-protocol.md#the-connection
    client.wire.is_still = True
    bench.advance(3.5)
    assert router.connections
    bench.advance(1.0)
    client.wire.is_still = False
    bench.run()
    assert client.closed == "amqp:resource-limit-exceeded"
    assert not router.connections


@pytest.mark.parametrize(("idle_timeout_s", "announced_ms"), [(16.0, 3000), (0.0, 3000), (2.0, 1000)])
def test_a_silent_router_is_closed_whatever_the_idle_timeout(
    bench: Bench, idle_timeout_s: float, announced_ms: int
) -> None:
    router = bench.router("A")
    neighbor = bench.client(router, listener={"role": Role.INTER_ROUTER, "idle_timeout_s": idle_timeout_s})
    opens = [frame for frame in frames.read(neighbor.wire.log[1]) if frame.name == "open"]
    assert opens[0].field(4) == announced_ms
    neighbor.wire.is_still = True
    bench.advance(2 * announced_ms / 1000 + 1)
    neighbor.wire.is_still = False
    bench.run()
    assert not router.connections


def test_heartbeats_keep_a_quiet_connection_open_both_ways(bench: Bench) -> None:
    def impatient(transport: Transport) -> None:
        transport.idle_timeout = 5

    router = bench.router("A")
    client = bench.client(router, configure=impatient, listener={"idle_timeout_s": 7.0})
    bench.advance(60)
    assert client.closed is None
    assert client.fault is None
    beats = [frame for frame in frames.read(client.wire.log[1]) if frame.name == "heartbeat"]
    assert 60 / 2.5 <= len(beats) <= 60  # at least one in each 2.5 s, which is what the client's Open asks for


def test_no_idle_timeout_means_no_heartbeats_of_the_peer(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router, listener={"idle_timeout_s": 0})
    client.wire.is_still = True
    bench.advance(1000)
    client.wire.is_still = False
    bench.run()
    assert client.closed is None


def test_no_frame_is_larger_than_the_peer_takes(bench: Bench) -> None:
    def small(transport: Transport) -> None:
        transport.max_frame_size = 700

    router = bench.router("A")
    client = bench.client(router, configure=small)
    receiver = client.receiver("news", credit=1).accepting()
    sender = client.sender("news")
    sent = sender.send(message("x" * 5000))
    bench.run()
    assert receiver.bodies == ["x" * 5000]
    assert sent.outcome == "accepted"
    assert max(frame.size for frame in frames.read(client.wire.log[1])) <= 700


def test_a_frame_above_our_own_limit_closes_the_connection(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, max_frame_bytes=512)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["big"]))
    bench.run()
    assert not stranger.was_closed
    stranger.write(frames.write(0x11, [None, 0, 100, 100, None, None, None, "x" * 600]))
    bench.run()
    assert stranger.was_closed
    last = list(frames.read(stranger.read))[-1]
    assert last.name == "close"
    assert last.field(0) is not None


def test_a_channel_above_channel_max_closes_the_connection_with_a_framing_error(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, max_sessions=4)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["many"]))
    for channel in range(4):
        stranger.write(frames.write(0x11, [None, 0, 100, 100], channel=channel))
    bench.run()
    assert not stranger.was_closed
    found = list(frames.read(stranger.read))
    assert found[0].field(3) == 3
    assert [frame.name for frame in found[1:]] == ["begin"] * 4
    stranger.write(frames.write(0x11, [None, 0, 100, 100], channel=4))
    bench.run()
    last = list(frames.read(stranger.read))[-1]
    assert last.name == "close"
    assert str(last.field(0).value[0]) == "amqp:connection:framing-error"


def test_close_with_an_error_is_answered(any_bench: Bench) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router)
    client.receiver("news", credit=1)
    client.connection.condition = proton.Condition("amqp:internal-error", "going down")
    client.connection.close()
    any_bench.run()
    assert client.closed == ""
    assert not router.connections
    assert router.fib.find("news") is None


def test_close_behind_detaches_in_one_burst_is_answered(any_bench: Bench) -> None:
    # oslo.messaging goes this way, and waits for our Close.
    router = any_bench.router("A")
    client = any_bench.client(router)
    links = [client.receiver(f"news/{number}", credit=1) for number in range(3)]
    links[0].detach()
    links[1].close()
    links[2].close()
    client.connection.close()
    any_bench.run()
    assert client.closed == ""
    assert not router.connections


def test_each_end_has_its_reason(bench: Bench) -> None:
    router = bench.router("A")

    def reason(end: Callable[[Peer, Connection], object]) -> str | None:
        client = bench.client(router)
        (connection,) = router.connections.values()
        end(client, connection)
        bench.run()
        assert not router.connections
        return connection.end_reason

    def refuse(_: Peer, connection: Connection) -> None:
        router.begin(bench.now)
        router.refuse(connection, Condition.UNAUTHORIZED_ACCESS, "no longer a user")
        router.settle()

    def go_down(client: Peer, _: Connection) -> None:
        client.connection.condition = proton.Condition("amqp:internal-error", "going down")
        client.connection.close()

    def close(_: Peer, connection: Connection) -> None:
        router.begin(bench.now)
        connection.close()
        router.settle()

    assert reason(lambda client, _: client.connection.close()) == "the other side closed it in order"
    assert reason(go_down) == "amqp:internal-error: going down"
    assert reason(refuse) == "this router closed it: amqp:unauthorized-access: no longer a user"
    assert reason(close) == "this router closed it in order"
    assert str(reason(lambda client, _: client.wire.cut())).startswith("broken off without a Close")

    def cut_while_written(client: Peer, connection: Connection) -> None:
        connection.sent_end()
        client.wire.cut()

    assert str(reason(cut_while_written)).startswith("broken off without a Close")


def test_the_end_of_one_connection_is_nothing_to_the_others(bench: Bench) -> None:
    router = bench.router("A")
    one, other = bench.client(router), bench.client(router, container="other")
    receiver = other.receiver("news", credit=10).accepting()
    sender = other.sender("news")
    one.receiver("news", credit=10)
    one.wire.cut()
    bench.run()
    sent = [sender.send(message(number)) for number in range(4)]
    bench.run()
    assert receiver.bodies == [0, 1, 2, 3]
    assert [one.outcome for one in sent] == ["accepted"] * 4


def test_a_neighbor_with_our_own_id_is_refused(bench: Bench) -> None:
    router = bench.router("A")
    peer = bench.client(router, sasl=True, container="A", listener={"role": Role.INTER_ROUTER})
    assert peer.closed == "amqp:not-allowed"
    assert "A" in peer.description
    bench.advance(1)
    assert not router.connections


def test_a_neighbor_without_an_id_is_refused(bench: Bench) -> None:
    router = bench.router("A")
    peer = bench.client(router, sasl=True, container="", listener={"role": Role.INTER_ROUTER})
    assert peer.closed == "amqp:invalid-field"


def test_a_refused_neighbor_that_goes_on_attaches_nothing(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, role=Role.INTER_ROUTER, stays=True)
    attach = frames.write(0x12, ["link", 0, True, None, None, frames.source("topic"), None])
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["A"]) + frames.write(0x11, [None, 0, 100, 100]) + attach)
    bench.run()
    written = [frame.name for frame in frames.read(stranger.read)]
    assert written[0] == "open"
    assert "close" in written
    assert not list(router.fib.entries())


def test_a_connection_that_we_closed_subscribes_to_nothing(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router, stays=True)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["A"]) + frames.write(0x11, [None, 0, 100, 100]))
    stranger.write(frames.write(0x12, ["link", 0, True, None, None, frames.source("topic"), None]))
    stranger.write(frames.write(0x13, [None, 100, 0, 100, 0, 0, 10, None, False]))
    bench.run()
    sender = bench.client(router).sender("topic")
    assert sender.credit > 0
    stranger.write(frames.write(0x14, [77, 0, b"x", 0]))
    bench.run()
    assert stranger.was_closed
    assert sender.credit == 0
    assert router.connections
