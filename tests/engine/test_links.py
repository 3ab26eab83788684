"""Sessions and links: pipelined as oslo.messaging writes them, used again, taken away, refused."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Condition, Data, Described, Endpoint, Link, Terminus, symbol, ulong
from structlog.testing import capture_logs

from mesh_config.models import Role
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, least_growth, settle_modes
from tests.helpers.peer import Peer, PeerLink, message


def links_of(router: Runtime) -> int:
    return sum(len(connection.links) for connection in router.connections.values())


# Many


def test_begin_attach_and_flow_are_granted_before_any_answer(any_bench: Bench) -> None:
    router = any_bench.router("A")
    stranger = any_bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["pyngus"]))
    for channel in range(3):
        source, target = frames.source(f"topic/{channel}"), frames.target(f"topic/{channel}")
        stranger.write(frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1], channel=channel))
        stranger.write(frames.write(0x12, [f"l{channel}", 0, True, None, None, source, target], channel=channel))
        # no next-incoming-id: the router's begin is not there yet
        flow = [None, 2**31 - 1, 0, 2**31 - 1, 0, 0, 100, None, False]
        stranger.write(frames.write(0x13, flow, channel=channel))
    any_bench.run()
    names = [frame.name for frame in frames.read(stranger.read)]
    assert names.count("begin") == names.count("attach") == 3
    assert "detach" not in names
    publisher = any_bench.client(router)
    for channel in range(3):
        publisher.sender(f"topic/{channel}").send(message("x"), settled=True)
    any_bench.run()
    transfers = [frame for frame in frames.read(stranger.read) if frame.name == "transfer"]
    assert sorted(frame.channel for frame in transfers) == [0, 1, 2]


@pytest.mark.slow
def test_hundreds_of_sessions_with_one_link_each(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    receivers = [client.receiver(f"topic/{n}", credit=5, run=False).accepting() for n in range(400)]
    senders = [client.sender(f"topic/{n}", run=False) for n in range(400)]
    bench.run()
    sent = [sender.send(message(n)) for n, sender in enumerate(senders)]
    bench.run()
    assert [receiver.bodies for receiver in receivers] == [[n] for n in range(400)]
    assert {one.outcome for one in sent} == {"accepted"}
    for link in (*receivers, *senders):
        link.close()
        link.end_session()
    bench.run()
    assert links_of(router) == 0
    assert not list(router.fib.entries())


def test_many_links_in_one_session(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    session = client.session()
    receivers = [client.receiver(f"t/{n}", credit=1, session=session, run=False).accepting() for n in range(200)]
    senders = [client.sender(f"t/{n}", session=session, run=False) for n in range(200)]
    bench.run()
    for n, sender in enumerate(senders):
        sender.send(message(n))
    bench.run()
    assert [receiver.bodies for receiver in receivers] == [[n] for n in range(200)]


@pytest.mark.slow
def test_channels_are_used_again_and_nothing_is_kept(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)

    def round_trip() -> None:
        receiver = client.receiver("topic", credit=2, name="r", run=False).accepting()
        sender = client.sender("topic", name="s")
        sender.send(message("m"))
        bench.run()
        assert receiver.bodies == ["m"]
        for link in (receiver, sender):
            link.close()
            link.end_session()
        bench.run()
        for link in (receiver, sender):
            link.link.session.free()
        client.links.clear()
        for log in client.wire.log:
            log.clear()

    def round_trips() -> None:
        for _ in range(200):
            round_trip()

    round_trips()
    growth = least_growth(round_trips)
    channels = {frame.channel for frame in frames.read(client.wire.log[1])}
    assert channels <= {0, 1, 2, 3}
    assert links_of(router) == 0
    assert growth < 50_000  # a link of proton alone is about 1 KiB


def test_too_many_links_are_refused_and_the_others_stay(bench: Bench) -> None:
    router = bench.router("A", forwarding={"max_links": 3})
    client = bench.client(router)
    links = [client.receiver(f"t/{n}", credit=1) for n in range(5)]
    assert [link.closed for link in links] == [None] * 3 + ["amqp:resource-limit-exceeded"] * 2
    links[0].close()
    bench.run()
    assert client.receiver("again", credit=1).closed is None


# Attached again


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
def test_a_link_is_attached_again_under_its_name(any_bench: Bench, closed: bool) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router)
    publisher = client.sender("topic")
    session = client.session()
    for round_number in range(3):
        receiver = client.receiver("topic", credit=1, name="same", session=session).accepting()
        sent = publisher.send(message(round_number))
        any_bench.run()
        assert receiver.bodies == [round_number]
        assert sent.outcome == "accepted"
        receiver.close() if closed else receiver.detach()
        any_bench.run()
        assert receiver.was_closed is closed
        receiver.free()
        assert links_of(router) == 1


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
def test_detach_and_attach_in_a_new_session_in_one_write(any_bench: Bench, closed: bool) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router)
    publisher = client.sender("topic")
    first = client.receiver("topic", credit=1, name="same")
    first.close() if closed else first.detach()
    second = client.receiver("topic", credit=1, name="same", run=False).accepting()
    any_bench.run()
    assert second.closed is None
    sent = publisher.send(message("for the second"))
    any_bench.run()
    assert second.bodies == ["for the second"]
    assert sent.outcome == "accepted"
    assert links_of(router) == 2


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "detached"])
@pytest.mark.parametrize("handle", [0, 1])
def test_detach_and_attach_in_the_same_session_in_one_write(any_bench: Bench, closed: bool, handle: int) -> None:
    router = any_bench.router("A")
    stranger = any_bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["x"]) + frames.write(0x11, [None, 0, 99, 99]))
    used = 0
    stranger.write(frames.write(0x12, ["same", used, True, None, None, frames.source("topic")]))
    for _ in range(3):
        stranger.write(frames.write(0x16, [used, closed]))
        used = handle
        stranger.write(frames.write(0x12, ["same", used, True, None, None, frames.source("topic")]))
    stranger.write(frames.write(0x13, [None, 99, 0, 99, used, 0, 5, None, False]))
    any_bench.run()
    assert [frame.name for frame in frames.read(stranger.read)].count("attach") == 4
    any_bench.client(router).sender("topic").send(message("x"), settled=True)
    any_bench.run()
    (transfer,) = (frame for frame in frames.read(stranger.read) if frame.name == "transfer")
    last = [frame for frame in frames.read(stranger.read) if frame.name == "attach"][-1]
    assert transfer.field(0) == last.field(1)
    assert links_of(router) == 2


def test_the_same_name_twice_in_two_sessions_are_two_links(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    one = client.receiver("topic", credit=1, name="same").accepting()
    two = client.receiver("topic", credit=1, name="same").accepting()
    sender = client.sender("topic")
    sender.send(message(1))
    sender.send(message(2))
    bench.run()
    assert sorted(one.bodies + two.bodies) == [1, 2]


def test_a_name_attached_twice_in_one_session_ends_that_connection_alone(any_bench: Bench) -> None:
    router = any_bench.router("A")
    other = any_bench.client(router)
    receiver = other.receiver("topic", credit=9).accepting()
    stranger = any_bench.raw(router)
    attach = frames.write(0x12, ["same", 0, True, None, None, frames.source("topic")])
    again = frames.write(0x12, ["same", 1, True, None, None, frames.source("topic")])
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["x"]) + frames.write(0x11, [None, 0, 9, 9]))
    stranger.write(attach + again)
    any_bench.run()
    assert list(frames.read(stranger.read))[-1].name == "close"
    other.sender("topic").send(message("still here"))
    any_bench.run()
    assert receiver.bodies == ["still here"]


# Taken away


def test_a_detach_with_an_error_is_answered(any_bench: Bench) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router)
    receiver = client.receiver("topic", credit=1)
    receiver.link.condition = Condition("amqp:internal-error", "I am broken")
    receiver.close()
    any_bench.run()
    assert receiver.closed == ""
    assert receiver.was_closed
    assert links_of(router) == 0


def test_end_with_an_error_takes_the_links_of_that_session_alone(any_bench: Bench) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router)
    session = client.session()
    gone = [client.receiver("a", credit=1, session=session), client.sender("b", session=session)]
    stays = client.receiver("b", credit=1).accepting()
    session.condition = Condition("amqp:session:errant-link", "no more")
    session.close()
    any_bench.run()
    assert session.state & Endpoint.REMOTE_CLOSED
    assert links_of(router) == 1
    assert gone[0].closed is None  # the end says it for all of them
    sent = client.sender("b").send(message("x"))
    any_bench.run()
    assert stays.bodies == ["x"]
    assert sent.outcome == "accepted"


def test_unsettled_messages_of_an_ended_session_get_their_outcomes(any_bench: Bench) -> None:
    router = any_bench.router("A")
    one, other = any_bench.client(router), any_bench.client(router)
    session = one.session()
    one.receiver("topic", credit=1, session=session)
    sender = other.sender("topic")
    seen, unseen = sender.send(message(1)), sender.send(message(2))
    any_bench.run()
    session.close()
    any_bench.run()
    assert (seen.outcome, seen.failed, unseen.outcome) == ("modified", True, "released")


def test_detach_and_end_of_its_session_in_one_write(any_bench: Bench) -> None:
    router = any_bench.router("A")
    client = any_bench.client(router)
    for _ in range(3):
        receiver, sender = client.receiver("topic", credit=1), client.sender("topic")
        sender.send(message("x"))
        for link in (receiver, sender):
            link.close()
            link.end_session()
        any_bench.run()
    assert client.closed is None
    assert links_of(router) == 0


# Refused


def attach_refused(client: Peer, link: PeerLink) -> tuple[str | None, str]:
    return link.closed, link.description


@pytest.mark.parametrize("capability", ["qd.router", "qd.router-data", "qd.router-edge-downlink"])
@pytest.mark.parametrize("side", ["receiver", "sender"])
def test_router_capabilities_are_forbidden_to_clients(bench: Bench, capability: str, side: str) -> None:
    router = bench.router("A")
    client = bench.client(router)

    def claim(link: Link) -> None:
        link.source.capabilities.put_symbol(symbol(capability))
        link.target.capabilities.put_symbol(symbol(capability))

    attach = client.receiver if side == "receiver" else client.sender
    link = attach(None, prepare=claim)
    assert link.closed == "qd:forbidden"
    assert client.closed is None
    assert links_of(router) == 0


@pytest.mark.parametrize("capability", ["qd.waypoint", "qd.waypoint.1", "qd.waypoint_2", "qd.fallback"])
@pytest.mark.parametrize("is_array", [False, True])
@pytest.mark.parametrize("side", ["receiver", "sender"])
def test_capabilities_that_ask_for_what_is_not_there_are_refused(
    bench: Bench, capability: str, is_array: bool, side: str
) -> None:
    router = bench.router("A")
    client = bench.client(router)

    def claim(link: Link) -> None:
        asked = (link.source if side == "receiver" else link.target).capabilities
        if is_array:
            asked.put_array(False, Data.SYMBOL)
            asked.enter()
            asked.put_symbol(symbol("queue"))
        asked.put_symbol(symbol(capability))

    attach = client.receiver if side == "receiver" else client.sender
    assert attach_refused(client, attach("topic", prepare=claim)) == (
        "amqp:not-implemented",
        f"{capability} is not offered here",
    )
    assert client.closed is None
    assert links_of(router) == 0


def granted(client: Peer) -> list[list[Any]]:
    """Of each attach that the router wrote: the fields of the terminus that is the router's own."""
    attaches = [frame for frame in frames.read(client.wire.log[1]) if frame.name == "attach"]
    return [frame.field(6 if frame.field(2) else 5).value for frame in attaches]


ASKED = [
    (Terminus.CONFIGURATION, Terminus.EXPIRE_NEVER, 60),
    (Terminus.DELIVERIES, Terminus.EXPIRE_WITH_CONNECTION, 0),
    (Terminus.DELIVERIES, Terminus.EXPIRE_WITH_SESSION, 2**32 - 1),
]


@pytest.mark.parametrize(("durability", "expiry", "timeout"), ASKED)
@pytest.mark.parametrize("side", ["receiver", "sender"])
def test_the_answer_grants_nothing_that_would_outlive_the_link(
    bench: Bench, durability: int, expiry: int, timeout: int, side: str
) -> None:
    client = bench.client(bench.router("A"))

    def ask(link: Link) -> None:
        own = link.source if side == "receiver" else link.target
        own.durability, own.expiry_policy, own.timeout = durability, expiry, timeout

    link = (client.receiver if side == "receiver" else client.sender)("topic", prepare=ask)
    theirs = link.link.remote_source if side == "receiver" else link.link.remote_target
    assert (theirs.address, theirs.durability, theirs.timeout) == ("topic", Terminus.NONDURABLE, 0)
    assert theirs.expiry_policy == Terminus.EXPIRE_WITH_LINK
    assert str(granted(client)[0][2]) == "link-detach"


def test_the_answer_repeats_no_filter_property_capability_or_copying_not_served(bench: Bench) -> None:
    client = bench.client(bench.router("A"))

    def ask(link: Link) -> None:
        link.source.distribution_mode = Terminus.DIST_MODE_COPY
        link.source.filter.put_object({symbol("selector"): "colour = 'red'"})
        link.source.properties.put_object({symbol("supported-dist-modes"): symbol("copy")})
        link.source.capabilities.put_symbol(symbol("shared"))

    receiver = client.receiver("topic", prepare=ask)
    source = receiver.link.remote_source
    assert source.distribution_mode == Terminus.DIST_MODE_MOVE
    assert [source.filter.next(), source.properties.next(), source.capabilities.next()] == [None, None, None]
    assert receiver.link.remote_properties is None


@pytest.mark.parametrize(("lifetime", "is_kept"), [(0x2B, True), (0x2C, False), (0x2E, False)])
def test_a_dynamic_address_is_granted_the_lifetime_of_its_link_and_no_other(
    bench: Bench, lifetime: int, is_kept: bool
) -> None:
    client = bench.client(bench.router("A"))

    def ask(link: Link) -> None:
        link.source.properties.put_object({symbol("lifetime-policy"): Described(ulong(lifetime), [])})

    receiver = client.receiver(None, dynamic=True, prepare=ask)
    assert receiver.address
    fields = granted(client)[0]
    kept = fields[5] if len(fields) > 5 else None
    assert (kept is not None) == is_kept
    if kept is not None:
        assert int(kept["lifetime-policy"].descriptor) == lifetime


@pytest.mark.parametrize("capabilities", [["queue"], ["topic"], ["queue", "shared", "global"], ["temporary-queue"]])
def test_unknown_capabilities_are_ignored(bench: Bench, capabilities: list[str]) -> None:
    client = bench.client(bench.router("A"))
    receiver = client.receiver("jms", credit=1, capabilities=capabilities).accepting()
    assert receiver.closed is None

    def want(link: Link) -> None:
        for capability in capabilities:
            link.target.capabilities.put_symbol(symbol(capability))

    sent = client.sender("jms", prepare=want).send(message("x"))
    bench.run()
    assert sent.outcome == "accepted"
    assert receiver.bodies == ["x"]


def test_a_transaction_coordinator_is_refused_with_a_null_target(bench: Bench) -> None:
    client = bench.client(bench.router("A"))

    def coordinate(link: Link) -> None:
        link.target.type = Terminus.COORDINATOR

    link = client.sender(None, prepare=coordinate)
    assert link.closed == "amqp:precondition-failed"
    attach = next(frame for frame in frames.read(client.wire.log[1]) if frame.name == "attach")
    assert attach.field(6) is None
    assert client.closed is None


def test_a_receiver_without_an_address_is_refused(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    link = client.receiver(None, credit=1)
    assert link.closed == "amqp:invalid-field"


@pytest.mark.parametrize("name", ["qdhello", "qdrouter", "qdrouter.ma"])
@pytest.mark.parametrize("form", ["_local/{}", "amqp:/_topo/0/A/{}", "_topo/0/all/{}", "_topo/0/B/{}"])
def test_addresses_of_the_routing_protocol_are_for_routers(bench: Bench, name: str, form: str) -> None:
    client = bench.client(bench.router("A"))
    address = form.format(name)
    assert client.receiver(address, credit=1).closed == "amqp:unauthorized-access"
    assert client.sender(address).closed == "amqp:unauthorized-access"
    sent = client.sender(None).send(message("x", address=address))
    bench.run()
    assert sent.outcome == "released"


@pytest.mark.parametrize("address", ["_topo/0/B/x", "_topo/7/B/temp.x", "_edge/E/temp.x", "_topo/0/all/x", "_topo"])
def test_nobody_receives_from_another_router(bench: Bench, address: str) -> None:
    client = bench.client(bench.router("A"))
    assert client.receiver(address, credit=1).closed == "qd:no-route-to-dest"


@pytest.mark.parametrize("address", ["_edge/E", "_topo/0/all/x", "_topo", "/"])
def test_nobody_sends_where_nothing_can_be(bench: Bench, address: str) -> None:
    client = bench.client(bench.router("A"))
    assert client.sender(address).closed in ("qd:no-route-to-dest", "amqp:invalid-field")


def ordinary(peer: Peer, session: Any = None) -> list[PeerLink]:
    return [peer.receiver("news", credit=1, session=session), peer.sender("news", session=session)]


def test_clients_are_not_served_where_routers_connect(bench: Bench) -> None:
    router = bench.router("A")
    peer = bench.client(router, sasl=True, container="B", listener={"role": Role.INTER_ROUTER})
    assert [link.closed for link in ordinary(peer)] == ["qd:connection-role"] * 2
    session = peer.session()

    def control(link: Link) -> None:
        link.source.capabilities.put_symbol(symbol("qd.router"))
        link.target.capabilities.put_symbol(symbol("qd.router"))

    peer.receiver(None, session=session, prepare=control)
    peer.sender(None, session=session, prepare=control)
    assert [link.closed for link in ordinary(peer)] == ["qd:no-route-to-dest"] * 2
    # an array of capabilities is not a router's way to say it (docs/reference/inter-router-protocol.md#links)
    assert peer.receiver(None, capabilities=["qd.router"]).closed == "qd:no-route-to-dest"
    assert peer.closed is None


def test_the_host_of_a_router_at_the_wrong_listener_is_an_address_without_brackets(bench: Bench) -> None:
    listening, dialling = bench.router("A"), bench.router("B")
    listened = bench.plug(listening)
    listened.connection.host = "[::1]:40000"
    bench.wire(bench.plug(dialling, role=Role.INTER_ROUTER, is_server=False), listened)
    bench.run()
    bench.advance(0.1)
    assert [peer.host for peer in listening.mesh_presence.misdirected.values()] == ["::1"]


def test_a_router_that_connects_where_clients_do_leaves_and_it_is_told_once(bench: Bench) -> None:
    with capture_logs() as lines:
        listening, dialling = bench.router("A"), bench.router("B")
        dialled = bench.plug(dialling, role=Role.INTER_ROUTER, is_server=False)
        bench.wire(dialled, bench.plug(listening))
        bench.run()
        bench.advance(0.1)
    reason = "qd:forbidden: this listener is for clients, not for routers"
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["attach_refused"]
    assert str(dialled.connection.end_reason).endswith(f"wants no neighbor: {reason}")
    assert not dialled.connection.was_of_use
    assert not listening.connections
    assert not dialling.connections


# What an attach says


def test_the_answer_repeats_the_termini_and_the_settle_mode(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    receiver = client.receiver(
        "topic", credit=1, prepare=settle_modes(snd_settle_mode=Link.SND_SETTLED, rcv_settle_mode=Link.RCV_SECOND)
    )
    assert receiver.address == "topic"
    assert receiver.link.remote_target.address == "topic"
    assert receiver.link.remote_snd_settle_mode == Link.SND_SETTLED
    assert receiver.link.remote_rcv_settle_mode == Link.RCV_FIRST


def test_a_dynamic_target_gets_an_address_that_others_send_to(bench: Bench) -> None:
    client = bench.client(bench.router("A"))

    def dynamic(link: Link) -> None:
        link.target.dynamic = True

    link = client.sender(None, prepare=dynamic)
    assert link.address is not None
    receiver = client.receiver(link.address, credit=1).accepting()
    link.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]
