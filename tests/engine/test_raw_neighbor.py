"""A neighbor of another make, from either side: it is listed, reached, and reaches everything."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from proton import Described, int32, symbol, ulong

from mesh_config.models import ConnectorSettings, Role
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.neighbor import HELLO_TO, Neighbor
from tests.helpers.peer import Peer, Received, decode, message

ROUTING = {"role": Role.INTER_ROUTER}


def join(
    bench: Bench,
    router: Runtime,
    *,
    dials: bool,
    pairs: int = 1,
    cost: int = 1,
    name: str = "RAW",
    offered: tuple[str, ...] = (),
) -> Neighbor:
    """The neighbor *name* of *router*, their HELLOs exchanged."""
    properties = {"qd.inter-router-cost": cost}
    peer = Peer(bench.run, container=name, sasl=dials, is_server=not dials, properties=properties, offered=offered)
    peer.wire = bench.wire(peer, bench.plug(router, role=Role.INTER_ROUTER, is_server=dials))
    bench.peers.append(peer)
    neighbor = Neighbor(name, peer, dials=dials, pairs=pairs)
    if not dials:
        peer.connection.open()
    bench.run()
    if dials:
        neighbor.attach()
        bench.run()
    live(bench, neighbor, 3)
    return neighbor


def live(bench: Bench, neighbor: Neighbor, seconds: int) -> None:
    """Let time pass for a neighbor that says HELLO each second."""
    for _ in range(seconds):
        neighbor.hello()
        neighbor.advertise()
        bench.advance(1.0)


@pytest.fixture(params=["dials", "dials, 22 links", "listens"])
def joined(request: pytest.FixtureRequest, bench: Bench) -> tuple[Neighbor, list[Runtime]]:
    """The neighbor of A; behind A there is B."""
    routers = bench.mesh(("A", "B"))
    dials = request.param != "listens"
    return join(bench, routers[0], dials=dials, pairs=10 if "22" in request.param else 1), routers


def test_every_router_lists_it_and_it_lists_every_router(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    for router in routers:
        assert "RAW" in router.fib.routes
        assert {node.id for node in router.control.nodes()} == {"A", "B", "RAW"} - {router.me}
    assert raw.heard == {"A"}
    assert raw.known == {"A": {"B": 1, "RAW": 1}, "B": {"A": 1}}


def test_every_link_is_attached_and_mirrored(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, _ = joined
    if raw.attached_by_other:
        # we dialled: a control pair, then ten data pairs by priority, each terminus with its bare symbol
        kinds = [("qd.router", 1), *[("qd.router-data", 10)]]
        for capability, count in kinds:
            for direction in ("in", "out"):
                assert raw.attached_by_other.count((direction, capability, capability)) == count
        assert len(raw.attached_by_other) == 22
        return
    attaches = [frame.fields for frame in frames.read(raw.peer.wire.log[1]) if frame.name == "attach"]
    assert len(attaches) == len(raw.peer.links)
    for link, fields in zip(raw.peer.links, attaches, strict=True):
        assert (fields[0], link.closed) == (link.name, None)
        kind = "qd.router" if link in (raw.control_in, raw.control_out) else "qd.router-data"
        source, target = fields[5].value, fields[6].value
        assert (source[2], source[10]) == ("link-detach", kind)
        assert (target[2], target[6]) == ("link-detach", kind)
    assert all(sender.credit >= 200 for sender in (*raw.data_out, raw.control_out))  # type: ignore[union-attr]


def test_open_says_what_a_router_says(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, _ = joined
    connection = raw.peer.connection
    assert connection.remote_container == "A"
    assert connection.remote_properties["qd.annotations-version"] == 1
    assert set(connection.remote_offered_capabilities) >= {"ANONYMOUS-RELAY", "qd.streaming-links"}


def test_a_cost_beyond_all_bounds_is_a_large_one(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    join(bench, routers[0], dials=True, cost=2**63 - 1)
    assert [router.fib.routes["RAW"].cost for router in routers] == [2**31 - 1, 2**31]


@pytest.mark.parametrize("where", [0, 1], ids=["its neighbor", "one hop on"])
@pytest.mark.parametrize("kind", ["attached", "anonymous"])
def test_it_is_reached_from_everywhere(
    bench: Bench, joined: tuple[Neighbor, list[Runtime]], where: int, kind: str
) -> None:
    raw, routers = joined
    raw.subscribe("raw/service")
    bench.run()
    client = bench.client(routers[where])
    sender = client.sender("raw/service" if kind == "attached" else None)
    assert sender.credit > 0
    own = {symbol("x-opt-mine"): "kept"}
    acts: list[tuple[str, Callable[[Received], None]]] = [
        ("accepted", lambda one: one.settle()),
        ("rejected", lambda one: one.reject("raw:no", "not here", {symbol("a"): 1})),
        ("modified", lambda one: one.modify(failed=False, undeliverable=True)),
        ("released", lambda one: one.settle(one.delivery.RELEASED)),
    ]
    for outcome, act in acts:
        raw.on_data = lambda _, received, act=act: act(received)  # type: ignore[misc]
        sent = sender.send(message(outcome, address="raw/service", annotations=own))
        bench.run()
        assert sent.outcome == outcome
        if outcome == "rejected":
            assert sent.condition is not None
            assert (sent.condition.name, sent.condition.info) == ("raw:no", {"a": 1})
        found, received = raw.received[-1]
        assert found.body == outcome
        assert not received.was_settled
        names = list(found.annotations)
        assert names[0] == "x-opt-mine"
        assert all(name.startswith("x-opt-qd.") for name in names[1:])
        # a circuit carries no annotations: what comes by one seems to enter the mesh where it becomes a datagram
        origin = "A" if kind == "attached" else routers[where].me
        assert found.annotations["x-opt-qd.ingress"] == f"0/{origin}"
        assert found.annotations["x-opt-qd.trace"] == (["0/A"] if origin == "A" else ["0/B", "0/A"])
        assert found.annotations.get("x-opt-qd.to", found.address) == "raw/service"
    raw.on_data = None
    sender.send(message("settled", address="raw/service"), settled=True)
    bench.run()
    assert raw.received[-1][1].was_settled


@pytest.mark.parametrize("where", [0, 1], ids=["its neighbor", "one hop on"])
def test_it_reaches_everything(bench: Bench, joined: tuple[Neighbor, list[Runtime]], where: int) -> None:
    raw, routers = joined
    client = bench.client(routers[where])
    mobile = client.receiver("mesh/service", credit=100)
    reply = client.receiver(None, dynamic=True, credit=100)
    bench.run()
    assert raw.addresses[str(routers[where].me)] == {"M0mesh/service"}
    for receiver, address in ((mobile, "mesh/service"), (reply, str(reply.address))):
        sent = [
            raw.send("to", address),
            raw.send("override", "something/else", override=address),
            raw.send("annotated", address, annotations={symbol("x-opt-mine"): 5}),
            raw.send("priority", address, priority=9, link=len(raw.data_out) - 1),
        ]
        raw.send("settled", address, settled=True)
        bench.run()
        assert sorted(receiver.bodies) == ["annotated", "override", "priority", "settled", "to"]
        by_body = {one.body: one for one in receiver.messages}
        assert decode(by_body["annotated"].data).annotations == {"x-opt-mine": 5}
        assert not decode(by_body["to"].data).annotations
        by_body["to"].settle()
        by_body["override"].reject("mesh:no", "why", {symbol("b"): 2})
        by_body["annotated"].modify(failed=True, undeliverable=False)
        by_body["priority"].settle(by_body["priority"].delivery.RELEASED)
        bench.run()
        assert [one.outcome for one in sent] == ["accepted", "rejected", "modified", "released"]
        assert sent[1].condition is not None
        assert sent[1].condition.info == {"b": 2}


def test_what_goes_nowhere_is_released(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, _ = joined
    sent = [
        raw.send("x", "nobody"),
        raw.send("x", "amqp:/_topo/0/B/temp.gone"),
        raw.send("x", "amqp:/_topo/0/nowhere/temp.x"),
        raw.send("x", "amqp:/_topo/0/A/qdrouter"),
        raw.send("x", "amqp:/_topo/0/B/temp.x", trace=["0/B", "0/RAW"]),
    ]
    bench.run()
    assert [one.outcome for one in sent] == ["released"] * 5


def test_wrong_annotations_are_rejected_and_the_link_goes_on(
    bench: Bench, joined: tuple[Neighbor, list[Runtime]]
) -> None:
    raw, routers = joined
    receiver = bench.client(routers[0]).receiver("topic", credit=9).accepting()
    bad = raw.data_out[0].send(message("x", address="topic", annotations={symbol("x-opt-qd.trace"): "no list"}))
    worse = raw.data_out[0].send(b"\x00\x53\x99\xff\xff")
    bench.run()
    assert bad.outcome == worse.outcome == "rejected"
    assert bad.condition is not None
    assert worse.condition is not None
    assert (bad.condition.name, worse.condition.name) == ("amqp:invalid-field", "amqp:decode-error")
    good = raw.send("fine", "topic")
    bench.run()
    assert good.outcome == "accepted"
    assert receiver.bodies == ["fine"]


def test_a_message_of_several_frames_crosses_both_ways(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    raw.subscribe("raw/service")
    raw.on_data = lambda _, received: received.settle()
    client = bench.client(routers[1])
    receiver = client.receiver("mesh/service", credit=5).accepting()
    sent = [raw.send("x" * 300_000, "mesh/service"), client.sender("raw/service").send(message("y" * 300_000))]
    bench.run()
    assert receiver.bodies == ["x" * 300_000]
    assert raw.received[0][0].body == "y" * 300_000
    assert [one.outcome for one in sent] == ["accepted"] * 2


def test_credit_comes_and_goes_with_its_subscription(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    senders = [bench.client(router).sender("raw/service") for router in routers]
    assert [sender.credit for sender in senders] == [0, 0]
    raw.subscribe("raw/service")
    bench.run()
    assert all(sender.credit > 0 for sender in senders)
    raw.unsubscribe("raw/service")
    bench.run()
    assert [sender.credit for sender in senders] == [0, 0]


def test_the_end_of_its_control_link_is_the_end_of_the_neighbor(
    bench: Bench, joined: tuple[Neighbor, list[Runtime]]
) -> None:
    raw, routers = joined
    raw.subscribe("raw/service")
    client = bench.client(routers[1])
    sender = client.sender("raw/service")
    unsettled = sender.send(message("x"))
    bench.run()
    assert raw.received
    assert raw.control_out is not None
    raw.control_out.close()
    bench.run()
    bench.advance(0.1)
    for router in routers:
        assert "RAW" not in router.fib.routes
    assert sender.credit == 0
    raw.received[0][1].settle()  # what was sent before is still the subscriber's to settle
    bench.run()
    assert unsettled.outcome == "accepted"


def test_the_end_of_the_control_session_is_so_too(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    assert raw.control_out is not None
    raw.control_out.end_session()
    bench.run()
    bench.advance(0.1)
    assert "RAW" not in routers[0].fib.routes
    # it comes back in a new session of the same connection
    raw.heard.clear()
    raw.has_heard_me = False
    if raw.attached_by_other:
        return
    raw.data_out.clear()
    raw.data_in.clear()
    raw.attach()
    bench.run()
    live(bench, raw, 3)
    assert "RAW" in routers[1].fib.routes


def test_its_silence_is_its_end(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    _, routers = joined
    bench.advance(4)
    for router in routers:
        assert "RAW" not in router.fib.routes


def test_its_death_fails_what_was_sent(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    raw.subscribe("raw/service")
    sent = [bench.client(router).sender("raw/service").send(message("x")) for router in routers]
    bench.run()
    assert len(raw.received) == 2
    raw.peer.wire.cut()
    bench.run()
    assert [(one.outcome, one.failed) for one in sent] == [("modified", True)] * 2


def test_duplicates_of_a_multicast_are_dropped(bench: Bench) -> None:
    # A qdrouterd sends a multicast along every path: two of them here, as two ways from the origin to B.
    a, b = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    receivers = [bench.client(router).receiver("broadcast.x", credit=9) for router in (a, b)]
    bench.run()
    first = raw.send("x", "broadcast.x")
    # the copy that came round by a router behind B: no path of RAW's tree enters A from there
    duplicate = raw.send("x", "broadcast.x", ingress="B", trace=["0/B", "0/RAW"])
    bench.run()
    assert [receiver.bodies for receiver in receivers] == [["x"], ["x"]]
    assert first.outcome == "accepted"
    assert duplicate.outcome == "released"


def test_a_client_link_on_a_neighbors_connection_is_refused_and_nothing_else(
    bench: Bench, joined: tuple[Neighbor, list[Runtime]]
) -> None:
    raw, routers = joined
    assert raw.peer.receiver("topic", credit=5).closed == "qd:no-route-to-dest"
    live(bench, raw, 2)
    assert "RAW" in routers[1].fib.routes


def test_a_control_message_that_is_none_is_ignored(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    assert raw.control_out is not None
    for data in (b"rubbish", b"", message("no map"), message({"id": 5}, properties={"opcode": "RA"}, address="x")):
        raw.control_out.send(data, settled=True)
        raw.control_out.send(data)
    bench.run()
    live(bench, raw, 2)
    assert "RAW" in routers[1].fib.routes
    assert raw.control_out.credit > 100


class OtherDialect(Neighbor):
    """A router whose control messages no router of this kind can read, as those of a skrouterd."""

    def say(self, *_: object, **__: object) -> None:
        """Write one."""
        if self.control_out is not None:
            self.control_out.send(b"\0\x80SKPR--RA\xa1\x01x", settled=True)


def test_one_that_speaks_another_dialect_is_no_neighbor_of_the_connector(bench: Bench) -> None:
    router = bench.router("A")
    plug = bench.plug(router, role=Role.INTER_ROUTER, is_server=False)
    plug.connection.settings = ConnectorSettings(name="c")
    peer = Peer(bench.run, container="RAW", is_server=True)
    peer.wire = bench.wire(peer, plug)
    bench.peers.append(peer)
    stranger = OtherDialect("RAW", peer, dials=False)
    peer.connection.open()
    bench.advance(3)
    stranger.hello()
    bench.run()
    known = router.mesh_presence.connectors["c"]
    assert (known.is_present, plug.connection.was_of_use) == (False, False)
    assert known.reason.endswith("no section has the descriptor 0x534b50522d2d5241 (SKPR--RA)")
    Neighbor.say(stranger, HELLO_TO, "HELLO", {"instance": int32(1), "seen": []})
    bench.run()
    assert (known.is_present, known.reason, plug.connection.was_of_use) == (True, "", True)


def test_more_control_messages_than_one_window(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    for _ in range(1000):
        raw.hello()
        bench.run()
    live(bench, raw, 1)
    assert "RAW" in routers[1].fib.routes


def test_a_multicast_that_comes_back_to_its_ingress_router_is_dropped(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    raw = join(bench, a, dials=True)
    raw.subscribe("broadcast.x", hint=1)
    receivers = [bench.client(router).receiver("broadcast.x", credit=9) for router in (a, b)]
    bench.client(a).sender("broadcast.x").send(message("x"))
    bench.advance(0.1)
    ((_, received),) = raw.received
    assert decode(received.data).annotations[symbol("x-opt-qd.trace")] == ["0/A"]
    raw.send("x", "broadcast.x", ingress="A", trace=["0/OTHER", "0/RAW"], settled=True)
    bench.advance(0.1)
    assert [receiver.bodies for receiver in receivers] == [["x"], ["x"]]


def test_why_a_neighbor_refuses_with_its_open_is_logged(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    why = Described(ulong(0x1D), [symbol("amqp:not-allowed"), "its ports are shut"])
    raw = bench.raw(bench.router("A"), role=Role.INTER_ROUTER)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, [""]) + frames.write(0x18, [why]))
    bench.run()
    lines = capsys.readouterr()
    log = lines.out + lines.err
    assert "its ports are shut" in log
    assert "container id" not in log


@pytest.mark.parametrize("where", [0, 1], ids=["its neighbor", "one hop on"])
@pytest.mark.parametrize("kind", ["attached", "anonymous"])
def test_replies_reach_the_clients_of_its_edge_routers(
    bench: Bench, joined: tuple[Neighbor, list[Runtime]], where: int, kind: str
) -> None:
    raw, routers = joined
    address = "amqp:/_edge/E1/temp.x"
    sender = bench.client(routers[where]).sender(address if kind == "attached" else None)
    bench.run()
    assert sender.closed is None
    early = sender.send(message("early", address=address))
    bench.run()
    assert early.outcome == "released"
    raw.host_edge("E1")
    bench.run()
    raw.on_data = lambda _, received: received.settle()
    sent = sender.send(message("reply", address=address))
    bench.run()
    assert sent.outcome == "accepted"
    (found, received) = raw.received[-1]
    assert found.body == "reply"
    assert decode(received.data).annotations.get(symbol("x-opt-qd.to"), found.address) == address
    raw.lose_edge("E1")
    bench.run()
    late = sender.send(message("late", address=address))
    bench.run()
    assert late.outcome == "released"


def test_nobody_receives_in_the_name_of_an_edge_router(bench: Bench, joined: tuple[Neighbor, list[Runtime]]) -> None:
    raw, routers = joined
    raw.host_edge("E1")
    bench.run()
    client = bench.client(routers[0])
    assert client.receiver("_edge/E1/temp.x", credit=1).closed == "qd:no-route-to-dest"
    assert client.receiver("_edge/E1", credit=1).closed is not None
