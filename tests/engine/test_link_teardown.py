"""Clients with many links that leave: nobody waits for all of these to be taken away."""

from __future__ import annotations

import copy
import itertools
import os

import pytest

from router.ended_connection_reaper import LINKS_AT_ONCE, MESSAGES_AT_ONCE, UNBINDING_S
from router.engine.connection import SEARCHED_SESSIONS
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug, allocated
from tests.helpers.peer import Peer, Sent, message

MULTICAST = "openstack.org/om/rpc/multicast/topic"
MANY = 10 * LINKS_AT_ONCE


def crowd(bench: Bench, router: Runtime, address: str, credit: int = 10) -> Peer:
    """A client with very many subscribers of one address."""
    peer = bench.client(router)
    session = peer.session()
    for _ in range(MANY):
        peer.receiver(address, credit=credit, session=session)
    bench.run()
    return peer


def plug_of(peer: Peer) -> Plug:
    plug = peer.wire.ends[1]
    assert isinstance(plug, Plug)
    return plug


@pytest.mark.parametrize("address", [MULTICAST, "balanced"])
def test_links_of_a_client_that_leaves_are_taken_away_some_at_a_time(bench: Bench, address: str) -> None:
    router = bench.router("A")
    peer = crowd(bench, router, address)
    plug = plug_of(peer)
    plug.give_end()
    left = [len(plug.connection.links)]
    gone: list[int] = []
    router.teardowns.when_gone(plug.connection, lambda: gone.append(len(plug.connection.links)))
    while router.teardowns.has(plug.connection):
        assert router.next_deadline() <= bench.now
        router.handle_deadline()
        left.append(len(plug.connection.links))
    assert left == list(range(MANY - LINKS_AT_ONCE, -1, -LINKS_AT_ONCE))
    assert gone == [0]
    router.teardowns.when_gone(plug.connection, lambda: gone.append(1))
    assert gone == [0, 1]
    assert router.next_deadline() > bench.now
    assert router.fib.find(address) is None


@pytest.mark.parametrize("settled", [False, True])
def test_nothing_is_lost_to_links_that_wait_to_be_taken_away(bench: Bench, settled: bool) -> None:
    router = bench.router("A")
    peer = crowd(bench, router, "balanced")
    sender = bench.client(router).sender("balanced")
    stays = bench.client(router).receiver("balanced", credit=2 * MANY).accepting()
    bench.run()
    plug_of(peer).give_end()
    assert router.teardowns.has(plug_of(peer).connection)
    sent = []
    for number in range(LINKS_AT_ONCE):
        assert sender.credit > 0
        sent.append(sender.send(message(str(number)), settled=settled))
        bench.run()
    bench.advance(1)
    assert sorted(map(int, stays.bodies)) == list(range(LINKS_AT_ONCE))
    assert settled or {one.outcome for one in sent} == {"accepted"}


def attach(handle: int, address: str, *, is_receiver: bool) -> bytes:
    ends = frames.source(address), frames.target(address)
    return frames.write(0x12, [f"link {handle}", handle, is_receiver, None, None, *ends, None, None, 0])


def test_a_link_closed_for_a_fault_in_a_session_that_has_ended_is_forgotten(bench: Bench) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["hasty"]) + frames.write(0x11, [None, 0, 1000, 1000]))
    for handle in range(LINKS_AT_ONCE):
        stranger.write(attach(handle, "balanced", is_receiver=True))
    stranger.write(attach(LINKS_AT_ONCE, "nobody", is_receiver=False))
    bench.run()
    (connection,) = router.connections.values()
    stranger.write(frames.write(0x14, [LINKS_AT_ONCE, 0, b"t", 0], payload=message("beyond its credit")))
    stranger.write(frames.write(0x17, []))
    bench.run()
    assert router.teardowns.has(connection)
    assert (len(connection.closed_links), connection.refused.count) == (1, 1)
    bench.advance(1)
    assert not router.teardowns.has(connection)
    assert (len(connection.closed_links), connection.refused.count) == (0, 0)


def test_a_connection_that_is_removed_meanwhile_leaves_nothing(bench: Bench) -> None:
    router = bench.router("A")
    peer = crowd(bench, router, MULTICAST)
    plug = plug_of(peer)
    plug.give_end()
    assert router.teardowns.has(plug.connection)
    peer.wire.cut()
    assert not router.teardowns.has(plug.connection)
    assert router.fib.find(MULTICAST) is None
    bench.advance(1)


def test_what_a_connection_had_is_given_back_some_at_a_time(bench: Bench) -> None:
    router = bench.router("A")
    peer = crowd(bench, router, MULTICAST)
    plug_of(peer).give_end()
    while router.teardowns.has(plug_of(peer).connection):
        router.handle_deadline()
    before = allocated()
    peer.wire.cut()
    steps = 0
    while router.next_deadline() <= bench.now:
        router.handle_deadline()
        steps += 1
    assert steps == MANY // LINKS_AT_ONCE
    assert before - allocated() > 1000 * MANY or not before, "AddressSanitizer has an allocator that counts nothing"


def test_of_very_many_sessions_fewer_are_given_back_at_a_time(bench: Bench) -> None:
    router = bench.router("A")
    peer = bench.client(router)
    count = 2 * SEARCHED_SESSIONS
    for _ in range(count):
        peer.session()
    bench.run()
    connection = plug_of(peer).connection
    peer.wire.cut()
    while connection.is_unbinding():
        os.sched_yield()
    bench.now += UNBINDING_S
    steps = 0
    while router.next_deadline() <= bench.now:
        router.handle_deadline()
        steps += 1
    assert steps == pytest.approx(3 * count / LINKS_AT_ONCE, rel=0.1), "each counts for three links"


def unsettled(bench: Bench, router: Runtime) -> tuple[Peer, list[Sent]]:
    """A subscriber that gives no outcome, and what was sent to it."""
    peer, sender = bench.client(router), bench.client(router).sender("balanced")
    peer.receiver("balanced", credit=3 * MESSAGES_AT_ONCE)
    bench.run()
    sent = []
    for number in range(3 * MESSAGES_AT_ONCE):
        sent.append(sender.send(message(str(number))))
        if number % 100 == 0:
            bench.run()
    bench.run()
    return peer, sent


@pytest.mark.slow
def test_messages_of_a_subscriber_that_leaves_get_their_outcomes_some_at_a_time(bench: Bench) -> None:
    router = bench.router("A")
    peer, sent = unsettled(bench, router)
    told = []
    plug_of(peer).give_end()
    while router.teardowns.has(plug_of(peer).connection):
        told.append(router.data_plane.settlement.count)
        router.handle_deadline()
    bench.run()
    assert told == [2 * left * MESSAGES_AT_ONCE for left in (2, 1, 0)]
    assert {one.outcome for one in sent} == {"modified"}
    assert router.data_plane.is_quiet()


@pytest.mark.slow
def test_who_comes_while_a_subscriber_leaves_is_sent_what_is_new(bench: Bench) -> None:
    router = bench.router("A")
    peer, sent = unsettled(bench, router)
    plug_of(peer).give_end()
    stays = bench.client(router).receiver("balanced", credit=10).accepting()
    sender = bench.client(router).sender("balanced")
    bench.run()
    new = sender.send(message("new"))
    bench.run()
    assert stays.bodies == ["new"]
    assert new.outcome == "accepted"
    assert {one.outcome for one in sent} == {"modified"}


def test_several_that_leave_at_once_all_go(bench: Bench) -> None:
    router = bench.router("A")
    peers = [crowd(bench, router, MULTICAST), crowd(bench, router, "balanced")]
    for peer in peers:
        plug_of(peer).give_end()
    bench.advance(0)
    assert not any(router.teardowns.has(plug_of(peer).connection) for peer in peers)
    assert not list(router.fib.entries())


def test_a_session_that_ends_with_many_links_is_answered_when_all_are_gone(bench: Bench) -> None:
    router = bench.router("A")
    raw = bench.raw(router)
    begin = frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
    attaches = [
        frames.write(0x12, [str(number), number, True, None, None, frames.source("balanced"), frames.target("t")])
        + frames.write(0x13, [0, 2**31 - 1, 0, 2**31 - 1, number, 0, 10])
        for number in range(MANY)
    ]
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["many"]) + begin + b"".join(attaches))
    stays, sender = bench.client(router).receiver("balanced", credit=MANY).accepting(), bench.client(router)
    bench.run()
    publisher = sender.sender("balanced")
    bench.run()
    read = len(raw.read)
    raw.write(frames.write(0x17, []) + begin + attaches[0])
    bench.run()
    told = [found.name for found in frames.read(raw.read[read:])]
    assert told == ["begin", "attach"]  # the channel is in use again, and the End is still to come
    before = len(stays.messages)
    sent = []
    for number in range(LINKS_AT_ONCE):
        sent.append(publisher.send(message(str(number))))
        bench.run()
    bench.advance(1)
    names = [found.name for found in frames.read(raw.read[read:])]
    assert names.count("end") == 1
    assert names.count("transfer") + len(stays.messages) - before == LINKS_AT_ONCE
    assert names.index("transfer") > names.index("attach")
    raw.write(frames.write(0x18, []))
    bench.run()
    assert raw.was_closed


def test_a_connection_that_ends_while_its_sessions_do_leaves_nothing(bench: Bench) -> None:
    router = bench.router("A")
    peer = crowd(bench, router, MULTICAST)
    peer.links[0].link.session.close()
    bench.run()
    plug = plug_of(peer)
    assert router.teardowns.has(plug.connection)
    plug.give_end()
    bench.advance(1)
    assert not router.teardowns.has(plug.connection)
    assert router.fib.find(MULTICAST) is None


def test_a_link_that_went_while_it_waited_takes_no_other_with_it(bench: Bench) -> None:
    router = bench.router("A")
    peer = crowd(bench, router, MULTICAST)
    plug = plug_of(peer)
    plug.give_end()
    links = plug.connection.links
    *_, last = links
    waits = links[last]
    links[last] = other = copy.copy(waits)
    while router.teardowns.has(plug.connection):
        router.handle_deadline()
    assert list(links.values()) == [other]
    links[last] = waits
    router.teardowns.begin(plug.connection, [waits], bench.now)
    router.handle_deadline()
    assert not links


def circuits_of_publishers(bench: Bench) -> tuple[Runtime, Plug]:
    """A router with a circuit for each of very many publishers at a neighbor, and its end of the wire to that."""
    near, far = bench.router("A"), bench.router("B")
    plug = bench.join(near, far).ends[0]
    bench.advance(5)
    subscriber, publisher = bench.client(near), bench.client(far)
    theirs, ours = publisher.session(), subscriber.session()
    for number in range(MANY):
        subscriber.receiver(f"unicast/{number}", credit=2, session=ours)
    bench.advance(5)
    for number in range(MANY):
        publisher.sender(f"unicast/{number}", session=theirs)
    bench.advance(5)
    assert isinstance(plug, Plug)
    assert len(plug.connection.port.circuits_in) == MANY
    return near, plug


def test_circuits_of_a_lost_neighbor_are_taken_away_some_at_a_time(bench: Bench) -> None:
    router, plug = circuits_of_publishers(bench)
    port = plug.connection.port
    plug.give_end()
    left = [len(port.circuits_in)]
    while router.teardowns.has(plug.connection):
        router.handle_deadline()
        left.append(len(port.circuits_in))
    assert left[0] >= MANY - LINKS_AT_ONCE
    assert all(one - other <= LINKS_AT_ONCE for one, other in itertools.pairwise(left))
    assert left[-1] == 0
    bench.advance(5)
    publisher = bench.client(router)
    senders = [publisher.sender(f"unicast/{number}") for number in range(MANY)]
    bench.run()
    for sender in senders:
        sender.send(message("one"))
    bench.advance(5)
    assert {sender.credit for sender in senders} == {2}, "nothing is left with a circuit that is gone"
