"""The account of bytes: whatever a peer sends, what is held because of it stays near its mark, and others go on."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from router.dataplane.connection_port import Port
from router.engine.connection import Connection
from router.engine.memory_meter import DUE_BYTES
from router.peer_memory_account import FAR, WINDOW_BYTES
from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import Peer, PeerReceiver, Sent, message

MIB = 1024 * 1024
MARK = MIB
FORWARDING = {"connection_bytes": MARK, "session_window_frames": 4}
WINDOW = 4 * 32768
"""Of a session, with that setting."""
TO_NODE = {"type": "org.amqp.management", "name": "self"}
FANOUT = "openstack.org/om/rpc/multicast/openstack/topic"


def plug_of(peer: Peer) -> Plug:
    """The router's end of a client's wire."""
    plug = peer.wire.ends[1]
    assert isinstance(plug, Plug)
    return plug


def connection_of(peer: Peer) -> Connection:
    """The router's end of a client's connection."""
    return plug_of(peer).connection


def set_properties(link: Any, properties: dict[str, str]) -> None:
    """Put properties into an attach."""
    link.properties = properties


def held(peer: Peer) -> int:
    """What the router holds because of a client, bytes, counted now."""
    connection = connection_of(peer)
    connection.weigh()
    port = connection.port
    return port.charge.taken_bytes + port.charge.given_bytes + port.charge.unread_bytes


def fill(bench: Bench, router: Runtime, *, links: int = 20, size: int = 200_000) -> Peer:
    """A client whose messages wait for a subscriber that takes none: one on each of its links."""
    publisher = bench.client(router)
    bench.client(router).receiver("stalled", credit=1)
    senders = [publisher.sender("stalled") for _ in range(links)]
    for sender in senders:
        sender.send(message("x" * size))
    bench.run()
    return publisher


def test_messages_that_wait_stop_their_connection_near_its_mark(bench: Bench) -> None:
    publisher = fill(bench, bench.router("A", forwarding=FORWARDING))
    assert connection_of(publisher).port.is_over
    port = connection_of(publisher).port
    assert MARK < held(publisher) - port.charge.unread_bytes <= MARK + 200_000 + WINDOW
    assert port.charge.unread_bytes <= 20 * WINDOW


def test_other_connections_go_on_beside_one_above_its_mark(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    fill(bench, router)
    receiver = bench.client(router).receiver("other", credit=100).accepting()
    sender = bench.client(router).sender("other")
    sent = [sender.send(message("x" * 10_000)) for _ in range(50)]
    bench.run()
    assert len(receiver.messages) == 50
    assert {one.outcome for one in sent} == {"accepted"}


def test_all_that_was_stopped_arrives_once_the_subscriber_takes_it(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    publisher = bench.client(router)
    receiver = bench.client(router).receiver("stalled", credit=1).accepting()
    sent = [publisher.sender("stalled").send(message("x" * 200_000)) for _ in range(20)]
    bench.run()
    assert connection_of(publisher).port.is_over
    receiver.flow(100)
    bench.advance(1)
    assert len(receiver.messages) == 20
    assert {one.outcome for one in sent} == {"accepted"}
    assert not connection_of(publisher).port.is_over
    assert held(publisher) == 0


def test_a_client_above_its_mark_receives_and_grants_as_before(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    publisher = fill(bench, router)
    receiver = publisher.receiver("other", credit=5).accepting()
    sender = bench.client(router).sender("other")
    for _ in range(20):
        sender.send(message("x"))
    bench.run()
    assert len(receiver.messages) == 5
    receiver.flow(15)
    bench.run()
    assert len(receiver.messages) == 20


def test_its_own_subscriber_can_end_what_holds_a_client_above_its_mark(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    client = bench.client(router)
    receiver = client.receiver("stalled", credit=1).accepting()
    for _ in range(20):
        client.sender("stalled").send(message("x" * 200_000))
    bench.run()
    assert connection_of(client).port.is_over
    receiver.flow(100)
    bench.advance(1)
    assert len(receiver.messages) == 20


def test_publishers_above_the_mark_get_no_credit_until_it_is_over(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    publisher = fill(bench, router)
    sender = publisher.sender("other")
    anonymous = publisher.sender(None)
    receiver = bench.client(router).receiver("other", credit=100).accepting()
    bench.run()
    assert (sender.credit, anonymous.credit) == (0, 1)  # one, for a question to the router
    bench.client(router).receiver("stalled", credit=100).accepting()
    bench.advance(1)
    assert anonymous.credit > 0
    sender.send(message("x"))
    bench.advance(1)
    assert len(receiver.messages) == 1


def test_many_sessions_together_have_no_more_unread_than_the_mark(bench: Bench) -> None:
    router = bench.router("A", forwarding={"connection_bytes": 8 * MIB})
    publisher = bench.client(router)
    receiver = bench.client(router).receiver("stalled", credit=1).accepting()
    sent = [publisher.sender("stalled").send(message("x" * 500_000)) for _ in range(50)]
    bench.run()
    port = connection_of(publisher).port
    assert port.is_over
    assert not port.is_stopped
    assert held(publisher) <= 16 * MIB
    receiver.flow(100)
    bench.advance(1)
    assert {one.outcome for one in sent} == {"accepted"}


def test_a_message_in_parts_above_the_mark_is_no_longer_held(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    publisher = bench.client(router)
    receiver = bench.client(router).receiver("topic", credit=1).accepting()
    sent = [publisher.sender("topic").begin(message("x" * 150_000)[:-10]) for _ in range(20)]
    bench.run()
    assert connection_of(publisher).port.is_over
    for one in sent:
        one.end(b"x" * 10)
    receiver.flow(100)
    bench.advance(1)
    assert len(receiver.messages) == 20


def begin_multicasts(bench: Bench, router: Runtime) -> tuple[Peer, list[Sent]]:
    """A publisher with 40 multicasts of 150 kB, each without its end."""
    publisher = bench.client(router)
    bench.client(router).receiver(FANOUT, credit=100).accepting()
    senders = [publisher.sender(FANOUT) for _ in range(40)]
    sent = [sender.begin(message("x" * 150_000)[:-10]) for sender in senders]
    bench.run()
    return publisher, sent


def test_multicasts_in_parts_above_the_mark_are_held_until_whole(bench: Bench) -> None:
    publisher, sent = begin_multicasts(bench, bench.router("A", forwarding=FORWARDING))
    assert connection_of(publisher).port.is_over
    for one in sent:
        one.end(b"x" * 10)
    bench.advance(1)
    assert {one.outcome for one in sent} == {"accepted"}
    assert held(publisher) == 0


def test_multicasts_in_parts_are_rejected_above_the_process_mark(bench: Bench) -> None:
    publisher, sent = begin_multicasts(bench, bench.router("A", forwarding={"process_bytes": 4 * MIB}))
    bench.advance(1)
    for one in sent:
        one.part(b"x")
    bench.run()
    for one in sent:
        one.end(b"x" * 9)
    bench.advance(1)
    assert {one.outcome for one in sent} == {"accepted", "rejected"}
    assert held(publisher) == 0


def test_the_process_mark_stops_who_has_more_than_a_share(bench: Bench) -> None:
    router = bench.router("A", forwarding={"process_bytes": 4 * MIB, "session_window_frames": 4})
    large = [fill(bench, router, links=10, size=200_000) for _ in range(3)]
    small = bench.client(router).sender("other")
    receiver = bench.client(router).receiver("other", credit=100).accepting()
    bench.advance(0.2)
    assert router.account.is_over
    assert all(connection_of(one).port.is_over for one in large)
    sent = [small.send(message("x")) for _ in range(20)]
    bench.run()
    assert len(receiver.messages) == 20
    assert {one.outcome for one in sent} == {"accepted"}
    assert router.account.total <= 6 * MIB  # all of it came at one instant
    bench.client(router).receiver("stalled", credit=1000).accepting()
    bench.advance(1)
    assert not router.account.is_over
    assert router.account.total < MIB


def test_messages_of_senders_that_left_are_bounded_by_the_process_mark(bench: Bench) -> None:
    router = bench.router("A", forwarding={"process_bytes": 4 * MIB})
    for number in range(20):
        bench.client(router).receiver(f"stalled/{number}", credit=1)
        publisher = bench.client(router)
        publisher.sender(f"stalled/{number}").send(message("x" * MIB), settled=True)
        bench.run()
        publisher.wire.cut()
        bench.advance(0.2)
    assert router.account.total <= 6 * MIB


def test_messages_that_a_subscriber_never_settles_are_charged_to_it(bench: Bench) -> None:
    router = bench.router("A", forwarding={"connection_bytes": MARK})
    subscriber = bench.client(router)
    receiver = subscriber.receiver("topic", credit=100_000)
    publisher = bench.client(router)
    senders = [publisher.sender("topic") for _ in range(20)]
    for _ in range(15):
        for sender in senders:
            for _ in range(10):
                sender.send(message("x"))
        bench.run()
    assert connection_of(subscriber).port.is_laden
    assert len(receiver.messages) < 2500
    receiver.accepting()
    bench.advance(1)
    assert not connection_of(subscriber).port.is_laden
    assert len(receiver.messages) == 3000


def test_large_messages_that_a_subscriber_does_not_read_wait_elsewhere(bench: Bench) -> None:
    router = bench.router("A", forwarding={"connection_bytes": MARK})
    subscriber = bench.client(router)
    receivers = [subscriber.receiver(f"topic/{number}", credit=10).accepting() for number in range(20)]
    plug_of(subscriber).room = 0
    publishers = [bench.client(router) for _ in range(20)]
    for number, publisher in enumerate(publishers):
        publisher.sender(f"topic/{number}").send(message("x" * 300_000))
    bench.run()
    port = connection_of(subscriber).port
    assert port.is_laden
    assert not port.is_stopped
    assert port.leaving_bytes <= MARK + 300_000
    plug_of(subscriber).room = math.inf
    bench.advance(1)
    assert [len(receiver.messages) for receiver in receivers] == 20 * [1]
    assert not port.is_laden


@pytest.mark.slow
def test_outcomes_that_a_publisher_hardly_reads_are_charged_to_it(bench: Bench) -> None:
    router = bench.router("A", forwarding={"connection_bytes": MARK})
    receiver = bench.client(router).receiver("topic", credit=1_000_000).accepting()
    publisher = bench.raw(router)
    publisher.write(frames.AMQP_HEADER + frames.write(0x10, ["p"]))
    for channel in range(100):
        termini = [frames.source("topic"), frames.target("topic")]
        publisher.write(frames.write(0x11, [None, 0, 1000, 1000], channel=channel))
        publisher.write(frames.write(0x12, ["s", 0, False, None, None, *termini, None, None, 0], channel=channel))
    bench.run()
    plug = bench.raw_ends[0].ends[1]
    assert isinstance(plug, Plug)
    number = 0
    while not plug.port.is_over:
        plug.room = 0
        for channel in range(100):
            publisher.write(frames.write(0x14, [0, number, b"%d" % number, 0], channel=channel, payload=message("x")))
        bench.run()
        plug.room = 100
        plug.take()
        number += 1
        assert number < 400
    plug.room = math.inf
    bench.advance(1)
    assert not plug.port.is_over
    assert len(receiver.messages) == 100 * number


def test_unread_answers_stop_the_socket_and_then_close_it(bench: Bench) -> None:
    router = bench.router("A", forwarding={"connection_bytes": MARK, "stopped_s": 5.0})
    client = bench.client(router)
    plug = plug_of(client)
    plug.room = 0
    properties = {"what": "x" * 20_000}
    for number in range(600):
        client.receiver(f"topic/{number}", prepare=lambda link: set_properties(link, properties), run=False)
    bench.run()
    port = plug.connection.port
    assert port.is_over
    assert port.is_stopped
    assert port.charge.taken_bytes <= MARK + WINDOW_BYTES + 6 * DUE_BYTES  # of 12 MB and their answers
    plug.room = math.inf
    bench.advance(4.5)
    assert client.closed is None
    bench.advance(1)
    assert client.closed == "amqp:resource-limit-exceeded"


def test_a_client_above_its_mark_can_ask_the_router_what_is_wrong(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    serve_management(router)
    client = fill(bench, router)
    assert connection_of(client).port.is_over
    replies = client.receiver(None, dynamic=True, credit=10).accepting()
    properties = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.connection", **TO_NODE}
    for sender in (client.sender("$management"), client.sender(None)):
        for _ in range(2):
            sender.send(
                message({}, address="$management", reply_to=replies.address, correlation_id=1, properties=properties)
            )
            bench.advance(0.1)
    assert len(replies.messages) == 4
    assert connection_of(client).port.is_over


def test_above_the_mark_one_message_is_begun_whose_address_is_not_known(bench: Bench) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    client = fill(bench, router)
    before = held(client) - connection_of(client).port.charge.unread_bytes
    for _ in range(10):
        client.sender(None).send(message("x" * 100_000, address="stalled"))
    bench.run()
    after = held(client) - connection_of(client).port.charge.unread_bytes
    assert after <= before + 100_000


def test_nothing_is_above_a_mark_once_all_connections_are_gone(bench: Bench) -> None:
    router = bench.router("A", forwarding={"process_bytes": 4 * MIB, "connection_bytes": MARK})
    peers = [fill(bench, router, links=10) for _ in range(5)]
    bench.advance(0.2)
    for peer in peers:
        peer.wire.cut()
    bench.advance(1)
    account = router.account
    assert (account.is_over, account.connections_over) == (False, 0)
    assert account.total < 64 * 1024  # as last counted


SMALL_PROCESS = {"process_bytes": 4 * MIB, "session_window_frames": 4}


def overload_between(bench: Bench) -> tuple[list[Runtime], PeerReceiver, list[Sent]]:
    """Routers A and B; a subscriber at B without credit, for which so much comes from A that B is above its mark."""
    a, b = bench.mesh(("A", "B"), forwarding=SMALL_PROCESS)
    receiver = bench.client(b).receiver("topic").accepting()
    bench.advance(1)
    sent = []
    for _ in range(10):
        sender = bench.client(a).sender(None)
        sent += [sender.send(message("x" * 80_000, address="topic")) for _ in range(4)]
    bench.advance(1)
    return [a, b], receiver, sent


def port_to(router: Runtime, neighbor: Runtime) -> Port:
    """Of a router's connection to a neighbor."""
    return next(port for port in router.data_plane.ports.values() if port.neighbor == neighbor.me)


def test_a_neighbor_above_its_mark_gets_no_credit_and_stays(bench: Bench) -> None:
    (a, b), receiver, sent = overload_between(bench)
    port = port_to(b, a)
    assert port.is_over
    beside = bench.client(b).receiver("other", credit=10).accepting()
    bench.advance(30)
    waiting = bench.client(a).sender("other").send(message("x"))
    bench.advance(1)
    assert [link.withheld for link in port.circuits_in.values() if link.address == "other"] != [0]
    assert (beside.messages, waiting.outcome) == ([], None)
    assert b.me in a.fib.routes
    assert a.me in b.fib.routes
    receiver.flow(100)
    bench.advance(5)
    assert not port.is_over
    assert {one.outcome for one in [waiting, *sent]} == {"accepted"}


def test_messages_of_a_neighbor_far_above_its_mark_are_released(bench: Bench) -> None:
    (a, b), receiver, _ = overload_between(bench)
    port = port_to(b, a)
    beside = bench.client(b).receiver("other", credit=10)
    senders = [bench.client(a).sender("other") for _ in range(2)]
    receiver.flow(100)
    bench.advance(5)
    assert not port.is_over
    port.is_over = port.is_stopped = True  # as between two looks
    sent = [sender.send(message(body)) for sender, body in zip(senders, ("x", "x" * 200_000), strict=True)]
    bench.run()
    assert [one.outcome for one in sent] == ["released", "released"]
    assert beside.messages == []
    bench.advance(1)


def test_unfinished_messages_of_many_connections_are_bounded_together(bench: Bench) -> None:
    router = bench.router("A", forwarding={**SMALL_PROCESS, "stopped_s": 5.0})
    bench.client(router).receiver("topic", credit=1)
    publishers: list[Peer] = []
    unfinished: list[Sent] = []
    for _ in range(20):
        publishers.append(publisher := bench.client(router))
        data = message("x" * 400_000, address="topic")[:-10]
        unfinished += [publisher.sender(None).begin(data) for _ in range(4)]
        bench.run()
        bench.advance(0.2)
    assert router.account.is_over
    assert router.account.total <= 1.75 * 4 * MIB + 20 * 192 * 1024
    assert not any(one.outcome == "accepted" for one in unfinished)
    bench.advance(12)
    assert router.account.total <= FAR * 4 * MIB  # some were closed; proton keeps the buffers of the others' messages
    beside = bench.client(router).receiver("beside", credit=20).accepting()
    honest = bench.client(router).sender("beside")
    sent = [honest.send(message("x" * 1000)) for _ in range(20)]
    bench.run()
    assert (len(beside.messages), {one.outcome for one in sent}) == (20, {"accepted"})
    for publisher in publishers:
        publisher.wire.cut()
    bench.advance(1)
    assert not router.account.is_over
    assert router.account.total < MIB


@pytest.mark.parametrize(("size", "is_much"), [(1_000_000, True), (10_000, False)])
def test_what_was_held_for_a_client_that_is_gone_goes_back_to_the_system(
    bench: Bench, size: int, is_much: bool
) -> None:
    router = bench.router("A")
    publisher = fill(bench, router, size=size)
    publisher.wire.cut()
    bench.run()
    assert (router.trim_at < math.inf) is is_much


def test_windows_of_new_sessions_go_by_the_settings_that_were_taken_over(bench: Bench) -> None:
    router = bench.router("A", forwarding={"session_window_frames": 64})
    peer = bench.raw(router)
    peer.write(frames.AMQP_HEADER + frames.write(0x10, ["raw"]))
    for channel, count in enumerate((64, 8)):
        forwarding = attrs.evolve(router.settings.forwarding, session_window_frames=count)
        router.take_settings(attrs.evolve(router.settings, forwarding=forwarding))
        peer.write(frames.write(0x11, [None, 0, 100, 100], channel=channel))
        bench.run()
        begins = [int(frame.fields[2]) for frame in frames.read(peer.read) if frame.name == "begin"]
        assert begins[channel:] == [count]
