"""Circuits between our own routers as links: attached, refused, closed and lost, many at once and many in turn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cproton
import pytest
from proton import Condition, Data, Link, int32, symbol

from mesh_config.models import MIB, Role
from router.binding import proton_functions as pn
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import RouterId
from router.dataplane.connection_port import Port
from router.dataplane.links import EgressCircuitLink
from router.dataplane.router_data_plane import RouterDataPlane
from router.engine.circuits import MAX_NAMES
from router.engine.connection import CIRCUITS, LSU_PUSH, MAX_REFUSED, MOST_SPARED, STREAMING_LINKS, Connection
from router.engine.control_links import CONTROL_BACKLOG, CONTROL_BACKLOG_BYTES, MOST_BACKLOG_BYTES
from router.engine.neighbor_links import NeighborLinks
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug, Wire, allocated, least_growth
from tests.helpers.neighbor import Neighbor
from tests.helpers.peer import Peer, PeerSender, message

A, B = RouterId("A"), RouterId("B")
NEWS = "broadcast/news"
"""A multicast."""


def port_of(router: Runtime) -> Port:
    (port,) = router.data_plane.ports.values()
    return port


def connection_of(router: Runtime) -> Connection:
    return router.connections[port_of(router).id]


def links_to(router: Runtime) -> NeighborLinks:
    return router._peers.neighbors[port_of(router).id]


def run(bench: Bench) -> None:
    """A turn for what the test has done, then whatever follows."""
    for router in bench.routers.values():
        for connection in list(router.connections.values()):
            router.turn(connection)
    bench.run()


def open_circuit(router: Runtime, address: str, root: str = "B", *, is_multicast: bool = False) -> EgressCircuitLink:
    port = port_of(router)
    assert port.open_circuit is not None
    link = port.open_circuit(address, RouterId(root), is_multicast)
    assert link is not None
    return link


def close_circuit(router: Runtime, link: EgressCircuitLink) -> None:
    """As the data plane does it."""
    router.data_plane.remove_egress(link)
    link.port.close_circuit(link)


def check_nothing_under_way(*routers: Runtime) -> None:
    """Every circuit is attached on both sides, and every session of another is spare."""
    for router in routers:
        circuits, port = links_to(router).circuits, port_of(router)
        assert circuits is not None
        assert [circuits._held, circuits._unsaid, circuits._unanswered, circuits._closing] == [{}, {}, set(), set()]
        assert len(circuits._handles) == len(port.circuits_out)
        assert connection_of(router).refused.count == 0
        assert connection_of(router).end_reason is None
    one, other = map(port_of, routers)
    assert set(one.circuits_out) == set(other.circuits_in)
    assert set(other.circuits_out) == set(one.circuits_in)


@pytest.fixture
def pair(bench: Bench) -> list[Runtime]:
    """Two routers that are neighbors."""
    return bench.mesh(("A", "B"))


# A neighbor that attaches what it likes


def join(bench: Bench, router: Runtime, *, offered: tuple[str, ...] = (CIRCUITS,)) -> Neighbor:
    """The neighbor RAW of *router*, which dials."""
    peer = Peer(bench.run, container="RAW", sasl=True, offered=offered)
    peer.wire = bench.wire(peer, bench.plug(router, role=Role.INTER_ROUTER))
    bench.peers.append(peer)
    neighbor = Neighbor("RAW", peer, dials=True)
    bench.run()
    neighbor.attach()
    bench.run()
    for _ in range(3):
        neighbor.hello()
        neighbor.advertise()
        bench.advance(1.0)
    return neighbor


def attach(
    raw: Neighbor,
    address: str | None = "topic",
    properties: Any = None,
    *,
    name: str | None = None,
    session: Any = None,
    capability: str = "amqp-mesh.circuit",
) -> PeerSender:
    """A circuit of RAW's."""

    def describe(link: Link) -> None:
        link.source.address = None
        link.target.capabilities.put_symbol(symbol(capability))
        link.properties = {symbol("amqp-mesh.egress"): "A"} if properties is None else properties

    return raw.peer.sender(address, prepare=describe, name=name, session=session)


def take_circuits(raw: Neighbor, answer: Callable[[Link], None]) -> list[Link]:
    """Have RAW *answer* the circuits that it is asked to take, which are in the list that is returned."""
    links: list[Link] = []

    def on_link(link: Link) -> None:
        links.append(link)
        answer(link)

    raw.peer.on_link = on_link
    return links


def accept(link: Link) -> None:
    link.target.copy(link.remote_target)
    link.source.copy(link.remote_source)
    link.open()


def refuse(link: Link) -> None:
    link.target.type = link.target.UNSPECIFIED
    link.open()
    link.condition = Condition("amqp:resource-limit-exceeded", "enough")
    link.close()


# Attached


def test_the_open_says_that_circuits_are_taken(bench: Bench) -> None:
    raw = join(bench, bench.router("A"))
    assert CIRCUITS in raw.peer.connection.remote_offered_capabilities
    assert CIRCUITS in raw.peer.connection.remote_desired_capabilities


@pytest.mark.parametrize(
    ("address", "root", "found"),
    [
        ("topic", "B", "topic"),
        ("topic", "Z", "topic"),
        ("amqp:/_topo/0/B/reply.x", "B", "reply.x"),
        ("_topo/0/Z/temp.x", "Z", "temp.x"),
        ("amqp:/exclusive/x/", "B", "exclusive/x"),
    ],
)
def test_the_neighbor_knows_address_and_egress_and_gives_no_credit(
    bench: Bench, pair: list[Runtime], address: str, root: str, found: str
) -> None:
    a, b = pair
    bench.client(b).receiver("amqp:/_topo/0/B/reply.x")  # else nobody would be behind that one
    link = open_circuit(a, address, root)
    assert (link.root, link.address) == (root, address)
    run(bench)
    (other,) = port_of(b).circuits_in.values()
    assert port_of(a).circuits_out == {link.name: link}
    assert (other.name, other.root, other.address, other.window) == (link.name, root, address, 0)
    assert other.entry is not None
    assert other.entry.text == found
    assert pn.pn_link_credit(link.handle) == 0
    check_nothing_under_way(a, b)


def test_a_multicast_names_its_ingress(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    (wire,) = bench.wires
    mark = len(wire.log[0])
    link = open_circuit(a, NEWS, "A", is_multicast=True)
    run(bench)
    (other,) = port_of(b).circuits_in.values()
    assert other.root == "A"
    begin, attached = (frame for frame in frames.read(wire.log[0][mark:]) if frame.name in ("begin", "attach"))
    assert (begin.name, attached.name, attached.channel) == ("begin", "attach", begin.channel)
    name, _, role, snd_settle_mode, _, _, target = attached.fields[:7]
    assert (name, role, int(snd_settle_mode)) == (link.name, False, 2)
    assert target.value[0] == NEWS
    assert isinstance(target.value[6], symbol)
    assert target.value[6] == "amqp-mesh.circuit"
    assert attached.fields[13] == {"amqp-mesh.ingress": "A"}
    assert type(attached.fields[13]["amqp-mesh.ingress"]) is str


def test_each_circuit_is_alone_in_its_session(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    links = [open_circuit(a, "topic") for _ in range(20)] + [open_circuit(b, "topic", "A") for _ in range(20)]
    run(bench)
    assert len({link.session for link in links}) == 40
    assert len({link.name for link in links}) == 40
    check_nothing_under_way(a, b)


def test_circuits_however_their_bytes_are_cut(any_bench: Bench) -> None:
    a, b = any_bench.mesh(("A", "B"))
    links = [open_circuit(a, "topic"), open_circuit(a, NEWS, "A", is_multicast=True), open_circuit(a, NEWS)]
    run(any_bench)
    assert [link.is_gone for link in links] == [False, False, True]
    close_circuit(a, links[0])
    run(any_bench)
    assert list(port_of(b).circuits_in) == [links[1].name]
    check_nothing_under_way(a, b)


@pytest.mark.parametrize("offered", [(), ("amqp-mesh.lsu-push.1",)])
def test_there_are_none_with_a_neighbor_that_does_not_take_them(bench: Bench, offered: tuple[str, ...]) -> None:
    router = bench.router("A")
    raw = join(bench, router, offered=offered)
    assert port_of(router).open_circuit is None
    assert attach(raw).closed == "qd:no-route-to-dest"
    assert raw.peer.closed is None


# Refused


def test_a_circuit_of_another_make_is_taken(bench: Bench) -> None:
    router = bench.router("A")
    link = attach(join(bench, router), name="mine")
    assert link.closed is None
    assert port_of(router).circuits_in["mine"].root == "A"
    assert link.address == "topic"
    assert link.link.remote_snd_settle_mode == Link.SND_MIXED


EGRESS, INGRESS = symbol("amqp-mesh.egress"), symbol("amqp-mesh.ingress")


@pytest.mark.parametrize(
    ("address", "properties", "condition", "words"),
    [
        ("topic", {}, "amqp:invalid-field", "one of"),
        ("topic", {symbol("else"): "A"}, "amqp:invalid-field", "one of"),
        ("topic", {EGRESS: "A", INGRESS: "A"}, "amqp:invalid-field", "one of"),
        ("topic", {EGRESS: 5}, "amqp:invalid-field", "egress names no router"),
        ("topic", {EGRESS: b"A"}, "amqp:invalid-field", "egress names no router"),
        ("topic", {EGRESS: ""}, "amqp:invalid-field", "egress names no router"),
        ("topic", {EGRESS: "all"}, "amqp:invalid-field", "egress names no router"),
        ("topic", {EGRESS: "A/B"}, "amqp:invalid-field", "egress names no router"),
        (NEWS, {INGRESS: ["A"]}, "amqp:invalid-field", "ingress names no router"),
        (None, {EGRESS: "A"}, "amqp:invalid-field", "needs an address"),
        ("", {EGRESS: "A"}, "amqp:invalid-field", "needs an address"),
        ("/", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to /"),
        ("_local/x", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to _local/x"),
        ("_topo/0/all/x", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to"),
        ("_topo/0/A/qdrouter", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to"),
        ("_topo/0/B/qdrouter.ma", {EGRESS: "B"}, "amqp:invalid-field", "no circuit leads to"),
        ("_topo/7/A/x", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to"),
        ("_edge/E/x", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to"),
        ("_topo", {EGRESS: "A"}, "amqp:invalid-field", "no circuit leads to"),
        ("topic", {INGRESS: "A"}, "amqp:precondition-failed", "topic is balanced at router A"),
        (NEWS, {EGRESS: "A"}, "amqp:precondition-failed", f"{NEWS} is multicast at router A"),
        ("_topo/0/A/temp.x", {EGRESS: "A"}, "amqp:not-found", "nobody receives from _topo/0/A/temp.x"),
        ("_topo/0/Z/temp.x", {INGRESS: "Z"}, "amqp:precondition-failed", "is closest at router A"),
    ],
)
def test_what_is_no_circuit_is_refused_and_leaves_nothing(
    bench: Bench, address: str | None, properties: dict[Any, Any], condition: str, words: str
) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    link = attach(raw, address, properties)
    assert link.closed == condition
    assert words in link.description
    assert not port_of(router).circuits_in
    assert not list(router.fib.entries())
    assert connection_of(router).refused.count == 0
    assert attach(raw).closed is None


@pytest.mark.parametrize("properties", [None, "A", ["amqp-mesh.egress", "A"], {"amqp-mesh.egress": "A", 5: 6}, {5: 6}])
def test_link_properties_of_any_kind_are_read_or_refused(bench: Bench, properties: Any) -> None:
    router = bench.router("A")
    raw = join(bench, router)

    def describe(link: Link) -> None:
        link.target.capabilities.put_symbol(symbol("amqp-mesh.circuit"))
        if properties is not None:
            Data(cproton.pn_link_properties(link._impl)).put_object(properties)

    is_fine = isinstance(properties, dict) and "amqp-mesh.egress" in properties
    assert raw.peer.sender("topic", prepare=describe).closed == (None if is_fine else "amqp:invalid-field")


def test_a_second_circuit_in_one_session_is_refused(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    session = raw.peer.session()
    first, second = attach(raw, session=session), attach(raw, session=session)
    assert (first.closed, second.closed) == (None, "amqp:not-allowed")
    first.close()
    bench.run()
    assert attach(raw, session=session).closed is None


def test_a_second_circuit_of_one_name_is_refused(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    first, second = attach(raw, name="same"), attach(raw, name="same")
    assert (first.closed, second.closed) == (None, "amqp:not-allowed")
    assert list(port_of(router).circuits_in) == ["same"]
    first.close()
    bench.run()
    assert attach(raw, name="same").closed is None


def test_a_router_that_wants_to_receive_on_a_circuit_is_refused(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)

    def describe(link: Link) -> None:
        link.source.capabilities.put_symbol(symbol("amqp-mesh.circuit"))
        link.properties = {EGRESS: "A"}

    assert raw.peer.receiver("topic", prepare=describe).closed == "qd:no-route-to-dest"


def test_circuits_are_for_routers(bench: Bench) -> None:
    client = bench.client(bench.router("A"), offered=(CIRCUITS,))

    def describe(link: Link) -> None:
        link.target.capabilities.put_symbol(symbol("amqp-mesh.circuit"))
        link.properties = {EGRESS: "A"}

    client.sender("topic", prepare=describe)
    client.receiver("topic", credit=1)
    assert not any(router.data_plane.ports for router in bench.routers.values())


@pytest.mark.parametrize("answer", [refuse, accept])
def test_a_refusal_is_told_and_the_session_is_used_again(bench: Bench, answer: Callable[[Link], None]) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    take_circuits(raw, answer)
    link = open_circuit(router, "topic", "RAW")
    run(bench)
    assert link.is_gone is link.is_refused is (answer is refuse)
    if answer is refuse:
        again = open_circuit(router, "topic", "RAW")
        assert again.session == link.session
        run(bench)
        assert again.is_refused
        assert not port_of(router).circuits_out


@pytest.mark.parametrize(("how", "has_error"), [("close", True), ("close", False), ("detach", False)])
def test_a_circuit_that_the_neighbor_ends(bench: Bench, how: str, has_error: bool) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    others = take_circuits(raw, accept)
    link = open_circuit(router, "topic", "RAW")
    run(bench)
    if has_error:
        others[0].condition = Condition("amqp:internal-error", "broken")
    getattr(others[0], how)()
    bench.run()
    assert link.is_gone
    assert link.is_refused is has_error
    assert not port_of(router).circuits_out
    assert len(connection_of(router).links) == 2
    link.port.close_circuit(link)  # which crossed that
    run(bench)
    assert raw.peer.closed is None


# Bounds


def test_both_ways_together_have_a_bound(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"max_circuits": 5})
    for _ in range(3):
        open_circuit(a, "topic")
    run(bench)
    for _ in range(2):
        open_circuit(b, "topic", "A")
    run(bench)
    for router in (a, b):
        port = port_of(router)
        assert port.open_circuit is not None
        assert port.open_circuit("topic", A, False) is None
    close_circuit(a, next(iter(port_of(a).circuits_out.values())))
    run(bench)
    open_circuit(b, "topic", "A")
    run(bench)
    check_nothing_under_way(a, b)


def test_what_crosses_beyond_the_bound_is_refused(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"max_circuits": 5})
    ones = [open_circuit(a, "topic") for _ in range(5)]
    others = [open_circuit(b, "topic", "A") for _ in range(3)]
    run(bench)
    assert {link.is_refused for link in others} == {True}
    assert sum(link.is_refused for link in ones) == 3
    assert len(port_of(a).circuits_out) == 2
    check_nothing_under_way(a, b)


def test_no_circuits_at_all(bench: Bench) -> None:
    router, _ = bench.mesh(("A", "B"), forwarding={"max_circuits": 0})
    port = port_of(router)
    assert port.open_circuit is not None
    assert port.open_circuit("topic", B, False) is None


def test_links_have_a_bound_that_holds_for_circuits_too(bench: Bench) -> None:
    router = bench.router("A", forwarding={"max_links": 4})
    raw = join(bench, router)
    links = [attach(raw) for _ in range(4)]
    assert [link.closed for link in links] == [None, None, *["amqp:resource-limit-exceeded"] * 2]
    port = port_of(router)
    assert port.open_circuit is not None
    assert port.open_circuit("topic", B, False) is None


@pytest.mark.parametrize("sessions", [4, 12, 64, 1000])
def test_sessions_never_exceed_the_channels_of_both(bench: Bench, sessions: int) -> None:
    a, b = bench.router("A"), bench.router("B")
    dialled = bench.plug(a, role=Role.INTER_ROUTER, is_server=False)
    listening = bench.plug(b, role=Role.INTER_ROUTER, max_sessions=sessions)
    bench.wire(dialled, listening)
    bench.run()
    bench.advance(5)
    links = []
    for router, root in ((a, B), (b, A)):
        port = port_of(router)
        assert port.open_circuit is not None
        while (link := port.open_circuit("topic", root, False)) is not None:
            links.append(link)
    run(bench)
    bench.advance(1)
    open_links = [link for link in links if not link.is_gone]
    assert [link for link in links if link.is_refused] == [link for link in links if link.is_gone]
    assert len(open_links) == len(port_of(a).circuits_out) + len(port_of(b).circuits_out)
    assert sessions // 2 <= len(open_links) <= sessions or (sessions < 50 and len(open_links) < sessions)
    check_nothing_under_way(a, b)


def test_a_neighbor_that_refuses_thousands_keeps_the_connection(bench: Bench) -> None:
    a = bench.router("A")
    b = bench.router("B", forwarding={"max_circuits": 10})
    bench.join(a, b)
    bench.advance(5)
    links = [open_circuit(a, "topic") for _ in range(5 * MAX_REFUSED)]
    run(bench)
    assert sum(link.is_refused for link in links) == 5 * MAX_REFUSED - 10
    assert len(port_of(b).circuits_in) == 10
    check_nothing_under_way(a, b)


# Closed


def test_a_circuit_is_closed_and_its_session_used_again(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    first = open_circuit(a, "topic")
    run(bench)
    close_circuit(a, first)
    run(bench)
    assert not port_of(a).circuits_out
    assert not port_of(b).circuits_in
    assert len(connection_of(a).links) == len(connection_of(b).links) == 2
    assert not list(b.fib.entries())
    again = open_circuit(a, "other")
    assert again.session == first.session
    run(bench)
    assert [link.address for link in port_of(b).circuits_in.values()] == ["other"]
    check_nothing_under_way(a, b)


def test_a_circuit_is_closed_before_its_answer(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    close_circuit(a, open_circuit(a, "topic"))  # in the same write
    run(bench)
    check_nothing_under_way(a, b)
    link = open_circuit(a, "topic")
    a.turn(connection_of(a))  # in the next one
    close_circuit(a, link)
    run(bench)
    refused = open_circuit(a, NEWS)
    a.turn(connection_of(a))
    close_circuit(a, refused)
    run(bench)
    assert not port_of(b).circuits_in
    assert not list(b.fib.entries())
    check_nothing_under_way(a, b)


def test_a_circuit_is_closed_before_it_was_its_turn_to_be_attached(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    links = [open_circuit(a, f"topic/{n}") for n in range(MOST_SPARED + 30)]
    port_of(a).tell_circuits({link.name: 1 for link in links}, ())
    for link in links[-20:]:
        close_circuit(a, link)
    run(bench)
    assert set(port_of(b).circuits_in) == {link.name for link in links[:-20]}
    check_nothing_under_way(a, b)


def test_a_close_waits_for_what_was_sent(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    others = take_circuits(raw, accept)
    link = open_circuit(router, "topic", "RAW")
    run(bench)
    delivery = pn.new_delivery(link.handle, 1)
    pn.pn_link_send(link.handle, b"hello", 5)
    pn.pn_link_advance(link.handle)
    pn.pn_delivery_settle(delivery)
    close_circuit(router, link)
    mark = len(raw.peer.wire.log[1])
    run(bench)
    assert not [frame for frame in frames.read(raw.peer.wire.log[1][mark:]) if frame.name == "detach"]
    others[0].flow(1)
    bench.run()
    names = [frame.name for frame in frames.read(raw.peer.wire.log[1][mark:])]
    assert [name for name in names if name in ("transfer", "detach")] == ["transfer", "detach"]
    again = open_circuit(router, "topic", "RAW")
    assert again.session == link.session


def test_a_session_with_bytes_that_were_never_written_is_not_used_again(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    others = take_circuits(raw, accept)
    link = open_circuit(router, "topic", "RAW")
    run(bench)
    pn.new_delivery(link.handle, 1)
    pn.pn_link_send(link.handle, b"hello", 5)
    others[0].close()
    bench.run()
    sessions = connection_of(router).free_channels
    assert open_circuit(router, "topic", "RAW").session != link.session
    others[0].session.close()
    bench.run()
    assert connection_of(router).free_channels == sessions


# Lost


@pytest.mark.parametrize("state", ["attached", "under way", "held", "closing", "spare"])
def test_nothing_is_left_when_the_connection_is_lost(bench: Bench, pair: list[Runtime], state: str) -> None:
    a, b = pair
    links = [open_circuit(a, f"topic/{n}") for n in range(1000 if state == "held" else 5)]
    links += [open_circuit(b, f"topic/{n}", "A") for n in range(5)]
    if state not in ("under way", "held"):
        run(bench)
    if state in ("closing", "spare"):
        for link in links[:5]:
            close_circuit(a, link)
    if state == "spare":
        run(bench)
    ports = [port_of(router) for router in pair]
    (wire,) = bench.wires
    wire.cut()
    bench.run()
    for router, port in zip(pair, ports, strict=True):
        assert not port.circuits_in
        assert not port.circuits_out
        assert port.open_circuit is None
        assert not router.connections
        assert not router.data_plane.links
        assert not list(router.fib.entries())
    assert {link.is_gone for link in links} == {True}
    links[-1].port.close_circuit(links[-1])
    links[-1].port.tell_circuits({links[-1].name: 1}, [])


@pytest.mark.parametrize("state", ["attached", "closing", "spare"])
def test_the_neighbor_ends_the_session_of_a_circuit_of_ours(bench: Bench, state: str) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    others = take_circuits(raw, accept)
    room = connection_of(router).free_channels
    link = open_circuit(router, "topic", "RAW")
    run(bench)
    if state != "attached":
        close_circuit(router, link)
    if state == "spare":
        run(bench)
    others[0].session.close()
    bench.run()
    assert link.is_gone
    assert connection_of(router).free_channels == room
    assert not open_circuit(router, "topic", "RAW").is_gone
    run(bench)
    assert len(others) == 2
    assert connection_of(router).end_reason is None


@pytest.mark.parametrize("how", ["detach", "end", "both"])
def test_the_neighbor_ends_a_circuit_of_its_own(bench: Bench, how: str) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    room = connection_of(router).free_channels
    for _ in range(3):
        link = attach(raw, name="same")
        assert len(port_of(router).circuits_in) == 1
        if how != "end":
            link.close()
        if how != "detach":
            link.end_session()
        bench.run()
        assert not port_of(router).circuits_in
        assert not list(router.fib.entries())
        assert len(connection_of(router).links) == 2
        if how != "detach":
            assert connection_of(router).free_channels == room
    assert raw.peer.closed is None


# Told


class Listening:
    """A relay, but for the words on circuits, which somebody else hears."""

    def __init__(self, relay: RouterDataPlane, circuits_told: Callable[..., object]) -> None:
        self._relay = relay
        self.circuits_told = circuits_told

    def __getattr__(self, name: str) -> object:
        return getattr(self._relay, name)


def listen(router: Runtime, circuits_told: Callable[..., object]) -> None:
    """Have the words of neighbors on circuits told to *circuits_told* instead."""
    router._peers._data_plane = Listening(router.data_plane, circuits_told)  # type: ignore[assignment]


def test_weights_and_closed_circuits_are_told(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    told: list[tuple[Port, dict[str, int], tuple[str, ...]]] = []
    listen(b, lambda port, weights, closed, loads: told.append((port, weights, closed)))
    link = open_circuit(a, "topic")
    run(bench)
    before = dict(b.control.counters())
    port_of(a).tell_circuits({link.name: 7, "gone": 3}, ["its own", "another"])
    run(bench)
    port = port_of(b)
    assert told == [(port, {link.name: 7}, ()), (port, {}, ("its own", "another"))]
    assert b.control.counters() == before


def test_the_weight_of_a_circuit_comes_behind_its_attach(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    told: dict[str, int] = {}

    def circuits_told(port: Port, weights: dict[str, int], closed: tuple[str, ...], loads: object) -> None:
        assert set(weights) <= set(port.circuits_in)
        told.update(weights)

    listen(b, circuits_told)
    weights = {open_circuit(a, f"topic/{n}").name: n for n in range(3 * MOST_SPARED)}
    port_of(a).tell_circuits(weights, ())
    run(bench)
    bench.advance(0.001)  # one of them is taken in the next turn
    assert told == weights


def test_many_names_go_in_several_messages(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    told: list[tuple[str, ...]] = []
    listen(b, lambda port, weights, closed, loads: told.append(closed))
    names = [f"circuit/{n}" for n in range(2 * MAX_NAMES + 1)]
    port_of(a).tell_circuits({}, names)
    run(bench)
    bench.advance(0.001)  # one of them is taken in the next turn
    assert [len(one) for one in told] == [MAX_NAMES, MAX_NAMES, 1]
    assert [name for one in told for name in one] == names
    port_of(a).tell_circuits({}, ())
    run(bench)
    assert len(told) == 3


def test_only_a_neighbor_with_circuits_is_heard_on_them(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    router, other = bench.router("A"), bench.router("B")
    bench.join(router, other)
    raw = join(bench, router, offered=())
    counts = [one.control.counters()["control_ignored"] for one in (router, other)]
    listen(router, lambda *_: pytest.fail("it was told"))
    capsys.readouterr()
    for to in ("amqp:/_local/amqp-mesh.circuits", "amqp:/_topo/0/B/qdrouter", "amqp:/_topo/0/all/qdrouter"):
        raw.say(to, "CIRCUITS", {"weights": {"x": int32(5)}, "closed": []})
    bench.run()
    assert [one.control.counters()["control_ignored"] for one in (router, other)] == counts
    lines = capsys.readouterr()
    assert (lines.out + lines.err).count("control_message_ignored") == 1  # of a connection


def test_what_a_neighbor_tells_is_never_passed_on(bench: Bench) -> None:
    router, other = bench.router("A"), bench.router("B")
    bench.join(router, other)
    raw = join(bench, router)
    wire = bench.wires[0]
    mark = len(wire.log[0])
    for to in ("amqp:/_local/amqp-mesh.circuits", "amqp:/_topo/0/B/qdrouter", "amqp:/_topo/0/all/qdrouter"):
        raw.say(to, "CIRCUITS", {"weights": {"x": int32(5)}, "closed": ["y"]})
    bench.run()
    assert b"CIRCUITS" not in wire.log[0][mark:]
    assert "control_received_CIRCUITS" not in router.control.counters()


@pytest.mark.parametrize("body", [{"weights": {"x": -1}, "closed": []}, {"weights": {}, "closed": "x"}, {}])
def test_a_malformed_word_is_ignored(bench: Bench, body: dict[str, Any]) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    listen(router, lambda *_: pytest.fail("it was told"))
    raw.say("amqp:/_local/amqp-mesh.circuits", "CIRCUITS", body)
    bench.run()
    assert raw.peer.closed is None


def test_clients_have_no_say_in_circuits(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    for address in ("_local/amqp-mesh.circuits", "amqp:/_topo/0/A/amqp-mesh.circuits"):
        assert client.sender(address).closed == "amqp:unauthorized-access"


def test_a_neighbor_that_takes_no_control_messages_is_closed_in_its_own_turn(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    other = bench.client(router)
    connection = connection_of(router)
    assert raw.control_in is not None
    raw.control_in.policy = None
    port = port_of(router)
    for _ in range(CONTROL_BACKLOG + 300):
        port.tell_circuits({}, ["x"])
    assert not connection.is_ending  # whoever asked for it goes on undisturbed
    router.turn(next(one for one in router.connections.values() if one is not connection))
    assert connection.is_ending
    bench.run()
    assert raw.peer.closed == "amqp:resource-limit-exceeded"
    assert other.closed is None


def held_up(bench: Bench, router: Runtime, wire: Wire) -> Plug:
    """Let the other end of *wire* read nothing until as much waits for it as may; return that end."""
    (plug,) = (end for end in wire.ends if isinstance(end, Plug) and end.runtime is router)
    plug.room = 0
    control = links_to(router).control
    while control.send(bytes(MIB), may_drop=True) is None:
        router.turn(connection_of(router))
        bench.run()
    return plug


def test_of_what_a_neighbor_does_not_read_the_rest_is_dropped(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router)
    assert raw.peer.wire is not None
    held_up(bench, router, raw.peer.wire)
    connection, control = connection_of(router), links_to(router).control
    assert control.send(b"is asked for again", may_drop=True) == "backlog"
    assert control.send(b"is not", may_drop=False) is None
    router.account.weigh(connection)
    assert connection.port.charge.given_bytes >= CONTROL_BACKLOG_BYTES
    while pn.pn_session_outgoing_bytes(pn.pn_link_session(control.outgoing)) <= MOST_BACKLOG_BYTES:
        control.send(bytes(MIB), may_drop=False)
    with pytest.raises(PeerProtocolError, match="not read"):
        control.send(b"too much", may_drop=False)


def test_a_neighbor_that_reads_slowly_stays_and_learns_all_addresses(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")
    wire = bench.join(a, b)
    bench.advance(5)
    plug = held_up(bench, a, wire)
    addresses = [f"news/{number}" for number in range(20)]
    client = bench.client(a)
    for address in addresses:
        client.receiver(address)
        bench.advance(0.01)
    assert a.control_writer.dropped["backlog"] > 0
    assert not connection_of(a).is_ending
    plug.room = math.inf
    bench.run()
    bench.advance(60)
    assert connection_of(a).end_reason is None
    assert set(addresses) <= set(b.control.addresses())


def test_circuits_that_a_neighbor_cannot_be_told_of_end_its_connection(bench: Bench) -> None:
    router = bench.router("A", forwarding={"control_message_bytes": MIB})
    raw = join(bench, router, offered=(CIRCUITS, LSU_PUSH))
    port_of(router).tell_circuits({}, [f"{number:01100}" for number in range(MAX_NAMES)])
    run(bench)
    assert raw.peer.closed == "amqp:resource-limit-exceeded"
    assert f"{MIB} are taken" in str(raw.peer.connection.remote_condition.description)


def test_the_session_of_a_stream_that_a_neighbor_detaches_is_ended(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router, offered=(CIRCUITS, STREAMING_LINKS))
    raw.subscribe("raw/service")
    bench.run()
    room = connection_of(router).free_channels
    sender = bench.client(router).sender(None)
    for _ in range(3):
        begun = sender.begin(message("x" * 200_000, address="raw/service")[:100_000])
        bench.run()
        assert connection_of(router).free_channels == room - 1
        link = raw.data_in[-1].link
        link.close()
        begun.abort()
        bench.run()
        assert link.session.state & Link.REMOTE_CLOSED
        link.session.close()
        bench.run()
        assert connection_of(router).free_channels == room
        assert connection_of(router).end_reason is None


# Many


def test_as_many_as_there_may_be_at_once(bench: Bench, pair: list[Runtime]) -> None:
    a, b = pair
    before = allocated()
    links = [open_circuit(a, f"topic/{n}") for n in range(3000)]
    run(bench)
    assert len(port_of(b).circuits_in) == 3000
    assert allocated() - before < 3000 * 25_000  # both sides together
    check_nothing_under_way(a, b)
    for link in links:
        close_circuit(a, link)
    run(bench)
    assert not port_of(b).circuits_in
    check_nothing_under_way(a, b)


def test_as_many_circuits_as_there_may_be_leave_channels_for_streams(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")
    channels = 16 * MOST_SPARED + 600
    bench.join(a, b, max_sessions=channels)
    bench.advance(5)
    receiver = bench.client(b).receiver("service", credit=10).accepting()
    bench.advance(1)
    open_one = port_of(a).open_circuit
    assert open_one is not None
    while open_one("topic", RouterId("B"), False) is not None:
        a.turn(connection_of(a))
        bench.run()
    assert connection_of(a).free_channels == 2 * MOST_SPARED
    whole = message("x" * 200_000, address="service")
    begun = bench.client(a).sender(None).begin(whole[:100_000])
    bench.run()
    assert len(port_of(a).streams) == 1
    begun.end(whole[100_000:])
    bench.run()
    assert len(receiver.messages) == 1


@pytest.mark.parametrize("count", [3000, pytest.param(12_000, marks=pytest.mark.slow)])
def test_circuits_come_and_go_in_few_sessions_and_nothing_is_kept(
    bench: Bench, pair: list[Runtime], count: int
) -> None:
    a, b = pair
    live: list[EgressCircuitLink] = []

    def pass_through(number: int) -> None:
        for n in range(number):
            live.append(open_circuit(a, f"topic/{n}"))
            if len(live) == 10:
                close_circuit(a, live.pop(0))
            a.turn(connection_of(a))
            bench.run()
            for log in bench.wires[0].log:
                log.clear()

    pass_through(1000)
    room = connection_of(a).free_channels
    assert least_growth(lambda: pass_through(count // 3)) < 250_000
    assert connection_of(a).free_channels == connection_of(b).free_channels == room > 32768 - 30
    for link in live:
        close_circuit(a, link)
    run(bench)
    assert not list(b.fib.entries())
    check_nothing_under_way(a, b)
