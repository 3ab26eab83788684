"""A neighbor that lies: in the name of the routers themselves, of a third one, or of thousands that there are not."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from proton import char, int32

from mesh_config.models import LinkStateSettings, Role
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import MAX_BOOT_JUMP, MAX_FIRST, MAX_INT, MAX_JUMP
from router.engine.connection import CIRCUITS, LSU_PUSH
from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.engine.test_raw_neighbor import join, live
from tests.helpers.engine import Bench
from tests.helpers.neighbor import ALL_TO, Neighbor, control_message
from tests.helpers.peer import Peer, message

MA_TO = "_topo/0/all/qdrouter.ma"


def spoken_for(bench: Bench) -> tuple[Neighbor, list[Runtime]]:
    """The neighbor RAW of A, in a line of A, B and C that has been there for long; each has a subscriber."""
    routers = bench.mesh(("A", "B"), ("B", "C"))
    for router in routers:
        bench.client(router).receiver(f"of/{router.me}", credit=1000).accepting()
    bench.advance(10)
    return join(bench, routers[0], dials=True), routers


def check_whole(bench: Bench, routers: list[Runtime]) -> None:
    """Everybody reaches everybody, by the control plane's word and with messages."""
    for router in routers:
        for other in routers:
            if other is router:
                continue
            assert other.me in router.fib.routes, f"{router.me} has no way to {other.me}"
            assert f"of/{other.me}" in router.control.addresses()
            assert other.me in router.control.addresses()[f"of/{other.me}"]
            sent = bench.client(router).sender(None).send(message("x", address=f"of/{other.me}"))
            bench.run()
            bench.advance(0.1)
            assert sent.outcome == "accepted"


def lie(raw: Neighbor, victim: Runtime, kind: str, seq: int, boots: int, trace: list[str]) -> None:
    """Speak in the name of *victim*."""
    control = victim.control
    base: dict[str, Any] = {"id": str(victim.me), "instance": control.instance + boots}
    if kind == "RA":
        raw.say(ALL_TO, "RA", {**base, "ls_seq": seq, "mobile_seq": seq}, trace=trace)
    elif kind == "LSU":
        inner = {"id": str(victim.me), "area": "0", "ls_seq": seq, "peers": {"RAW": int32(1)}}
        raw.say(ALL_TO, "LSU", {**base, "ls_seq": seq, "ls": inner}, trace=trace)
    elif kind == "MAU":
        body = {"id": str(victim.me), "mobile_seq": seq, "exist": [], "hints": []}
        raw.say("amqp:/_topo/0/A/qdrouter.ma", "MAU", body, trace=trace)
    else:
        change = {"add": ["M0of/nobody"], "del": [f"M0of/{victim.me}"], "hints": [int32(3)]}
        for one in (control.mobile_seq + 1, seq):
            raw.say(MA_TO, "MAU", {"id": str(victim.me), "mobile_seq": one, **change}, trace=trace)


LIES = (
    ("RA", 1000, 0),
    ("RA", 1000, 1000),
    ("RA", MAX_FIRST, 0),
    ("RA", MAX_FIRST, MAX_JUMP),
    ("RA", MAX_FIRST, MAX_BOOT_JUMP),
    ("LSU", 1000, 0),
    ("LSU", 1000, 1000),
    ("LSU", MAX_JUMP, 0),
    ("LSU", MAX_FIRST, 1000),
    ("MAU", 1000, 0),
    ("MAU", MAX_FIRST, 0),
    ("MAU of changes", 1000, 0),
    ("MAU of changes", MAX_JUMP, 0),
)
"""Kinds of message, with their numbers and by how many boots the victim is said to be newer."""
TRACES = (["0/RAW"], ["0/B", "0/RAW"], ["0/C", "0/B", "0/RAW"])
VICTIMS = {1: "a neighbor", 2: "one hop on"}
IN_ALL_WAYS = (("RA", MAX_FIRST, MAX_JUMP), ("MAU of changes", MAX_JUMP, 0))
"""Lies that the gate tells of each victim with each trace; `tox -e slow` tells the others so, too."""
TOLD = [
    pytest.param(
        *(*lie, trace, victim),
        marks=[] if lie in IN_ALL_WAYS or (trace, victim) == (TRACES[1], 1) else pytest.mark.slow,
        id="-".join(map(str, (*lie, len(trace), VICTIMS[victim]))),
    )
    for lie in LIES
    for trace in TRACES
    for victim in VICTIMS
]


@pytest.mark.parametrize(("kind", "seq", "boots", "trace", "victim"), TOLD)
def test_a_lie_about_another_router_is_overruled_within_a_second(
    bench: Bench, kind: str, seq: int, boots: int, trace: list[str], victim: int
) -> None:
    raw, routers = spoken_for(bench)
    for _ in range(3):
        lie(raw, routers[victim], kind, seq, boots, trace)
        bench.advance(1.0)
        raw.hello()
    check_whole(bench, routers)
    bench.client(routers[victim]).receiver("later", credit=10).accepting()
    bench.advance(1.0)
    for router in routers:
        assert routers[victim].me in router.control.addresses()["later"]
    live(bench, raw, 2)


@pytest.mark.parametrize("kind", ["RA", "LSU", "MAU", "MAU of changes"])
@pytest.mark.parametrize("boots", [0, 2**62])
def test_what_is_near_the_end_of_all_numbers_is_not_believed(bench: Bench, kind: str, boots: int) -> None:
    raw, routers = spoken_for(bench)
    instance = routers[2].control.instance
    lie(raw, routers[2], kind, MAX_INT, boots, ["0/RAW"])
    bench.advance(0.5)
    check_whole(bench, routers)
    assert routers[2].control.instance <= instance + 1


@pytest.mark.parametrize("kind", ["RA", "LSU", "MAU of changes"])
def test_a_name_that_nobody_can_write_cuts_no_other_neighbor(bench: Bench, kind: str) -> None:
    raw, routers = spoken_for(bench)
    lie(raw, routers[2], kind, 1000, 1000, [char("\ud800"), "0/RAW"])
    bench.advance(1.0)
    raw.hello()
    check_whole(bench, routers)


def test_lies_without_end_are_answered_a_few_times_a_second(bench: Bench) -> None:
    raw, routers = spoken_for(bench)
    before = routers[1].control.own_node().ls_seq
    for number in range(100):
        lie(raw, routers[1], "RA", 1000 + number, number + 1, ["0/RAW"])
        bench.advance(0.01)
    raw.hello()
    bench.advance(1.0)
    assert routers[1].control.own_node().ls_seq - before <= 5
    check_whole(bench, routers)


@pytest.mark.parametrize(
    ("boots", "trace"),
    [
        (0, TRACES[0]),
        (1000, TRACES[1]),
        pytest.param(0, TRACES[1], marks=pytest.mark.slow),
        pytest.param(1000, TRACES[0], marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", ["RA", "LSU", "MAU", "MAU of changes"])
def test_lies_without_end_about_a_neighbor_take_nothing_of_it_away(
    bench: Bench, kind: str, boots: int, trace: list[str]
) -> None:
    raw, routers = spoken_for(bench)
    for number in range(100):
        lie(raw, routers[1], kind, 1000 * (number + 1), boots + number, trace)
        for _ in range(5):
            bench.advance(0.01)
            assert RouterId("B") in routers[0].fib.routes
            assert RouterId("B") in routers[0].control.addresses()["of/B"]
        if number % 10 == 0:
            raw.hello()
    bench.advance(1.0)
    check_whole(bench, routers)


# Names


@pytest.mark.parametrize("name", ["$management", "$other", "_local/x", "_x", "amq.rabbitmq.reply-to.B.secret"])
def test_reserved_names_are_not_taken_from_neighbors(bench: Bench, name: str) -> None:
    raw, routers = spoken_for(bench)
    for router in routers[:2]:
        serve_management(router)
    raw.subscribe(name)
    raw.subscribe("of/RAW")
    bench.run()
    for router in routers:
        assert "of/RAW" in router.control.addresses()
        assert name not in router.control.addresses()
    raw.received.clear()
    client = bench.client(routers[1])
    client.sender(None).send(message("x", address=name))
    client.sender("$management").send(message("x"))
    bench.advance(0.5)
    assert not raw.received


def test_a_router_s_own_volatile_addresses_are_taken_from_it(bench: Bench) -> None:
    raw, routers = spoken_for(bench)
    raw.subscribe("amq.rabbitmq.reply-to.RAW.mine")
    bench.run()
    assert "amq.rabbitmq.reply-to.RAW.mine" in routers[2].control.addresses()


# How much


def test_of_more_routers_than_a_neighbor_may_bring_nothing_is_kept(bench: Bench) -> None:
    router = bench.router("A", link_state=LinkStateSettings(max_neighbor_routers=50))
    b = bench.router("B")
    bench.join(router, b)
    raw = join(bench, router, dials=True)
    for number in range(300):
        body = {"id": f"forged{number}", "instance": 1, "ls_seq": 1, "mobile_seq": 0}
        raw.say(ALL_TO, "RA", body)
    bench.advance(0.5)
    assert router.control.known_routers <= 51
    assert b.control.known_routers <= 52
    c = bench.router("C")
    bench.join(b, c)
    bench.advance(2)
    assert RouterId("C") in router.fib.routes
    bench.advance(70)
    assert router.control.known_routers <= 3


def test_of_more_peers_than_a_neighbor_may_tell_of_nothing_is_kept(bench: Bench) -> None:
    router = bench.router("A", link_state=LinkStateSettings(max_neighbor_peers=100))
    b = bench.router("B")
    bench.join(router, b)
    raw = join(bench, router, dials=True)
    names = [f"forged{number}" for number in range(20)]

    def tell(name: str, seq: int, peers: dict[str, int]) -> None:
        body = {"id": name, "instance": 1, "ls_seq": seq, "ls": {"id": name, "ls_seq": seq, "peers": peers}}
        raw.say(ALL_TO, "LSU", body)

    for name in names:
        tell(name, 1, {other: 1 for other in names if other != name})
    bench.advance(0.5)
    told = [node for node in router.control.nodes() if node.id in names and node.peers]
    assert [len(node.peers) for node in told] == [19] * 5
    tell("forged0", 2, {"RAW": 1})  # what is no more makes room
    tell("forged7", 2, dict.fromkeys(names[:18], 1))
    bench.advance(0.5)
    peers = {node.id: len(node.peers) for node in router.control.nodes()}
    assert (peers["forged0"], peers["forged7"]) == (1, 17)
    c = bench.router("C")  # and from others news is taken
    bench.join(b, c)
    bench.advance(2)
    assert RouterId("C") in router.fib.routes


def test_more_control_messages_than_may_be_are_dropped_and_made_up_for(bench: Bench) -> None:
    router = bench.router("A", link_state=LinkStateSettings(max_control_messages=10))
    raw = join(bench, router, dials=True)
    for number in range(1000):
        raw._change([f"M0n{number}"], [], [3])
    bench.run()
    assert router.control.counters()["control_excess"] > 500
    for _ in range(60):
        raw.hello()
        bench.advance(1.0)
    raw.advertise()
    bench.advance(1.0)
    assert router.control.address_counts()[RouterId("RAW")] == 1000


def test_of_more_addresses_than_a_router_may_have_nothing_is_kept(bench: Bench) -> None:
    router = bench.router("A", link_state=LinkStateSettings(max_router_addresses=100))
    raw = join(bench, router, dials=True)
    raw._change([f"M0n{number}" for number in range(200)], [], [3] * 200)
    bench.run()
    assert router.control.address_counts()[RouterId("RAW")] == 100
    raw._change([], [f"M0n{number}" for number in range(150)], [])
    raw._change(["M0later"], [], [3])
    bench.run()
    assert "later" in router.control.addresses()


LEAST = 1024 * 1024
"""Smallest `control_message_bytes` that there may be."""


def large_list(raw: Neighbor, size: int, to: str) -> None:
    """Send a list of addresses, in a control message of so many bytes, on to another router."""

    def body(room: int) -> dict[str, Any]:
        return {"mobile_seq": 1, "exist": ["M0" + "x" * room], "hints": [int32(3)]}

    to = f"amqp:/_topo/0/{to}/qdrouter.ma"
    trail = (f"0/{raw.id}", [f"0/{raw.id}"])
    head = len(control_message(to, "MAU", raw.id, body(1000), *trail)) - 1000
    raw.say(to, "MAU", body(size - head))


@pytest.mark.parametrize("limits", [(LEAST, LEAST), (4 * LEAST, LEAST)])
def test_what_the_next_router_would_refuse_is_not_passed_on(bench: Bench, limits: tuple[int, int]) -> None:
    for name, limit in zip("AB", limits, strict=True):
        bench.router(name, forwarding={"control_message_bytes": limit})
    a, b, _ = bench.mesh(("A", "B"), ("B", "C"))
    raw = join(bench, a, dials=True)
    large_list(raw, limits[0] - 4, to="C")
    bench.advance(0.5)
    assert b.me in a.fib.routes, "its neighbor does not end the connection"
    assert b.me in a.control.adjacent()
    assert a.control_writer.dropped["too_large"] == 1


def test_a_neighbor_that_announces_no_largest_control_message_gets_any(bench: Bench) -> None:
    router = bench.router("A")
    raw = join(bench, router, dials=True)
    other = join(bench, router, dials=True, name="OTHER")
    large_list(raw, 2 * LEAST, to="OTHER")
    bench.advance(0.5)
    assert {len(each) > LEAST for each in other.addresses["RAW"]} == {True}
    assert router.control_writer.dropped["too_large"] == 0


@pytest.mark.parametrize("is_of_our_kind", [False, True])
def test_a_router_of_our_kind_that_announces_no_size_is_taken_to_have_our_own(
    bench: Bench, is_of_our_kind: bool
) -> None:
    """Older versions announce none, and end the connection for what is larger than their setting."""
    router = bench.router("A", forwarding={"control_message_bytes": LEAST})
    raw = join(bench, router, dials=True)
    offered = (LSU_PUSH,) if is_of_our_kind else ()
    other = join(bench, router, dials=True, name="OTHER", offered=offered)
    large_list(raw, LEAST - 4, to="OTHER")
    bench.advance(0.5)
    assert bool(other.addresses.get("RAW")) is not is_of_our_kind
    assert router.control_writer.dropped["too_large"] == int(is_of_our_kind)


def test_a_neighbor_may_send_what_was_announced_to_it_after_a_lower_bound_is_set(bench: Bench) -> None:
    router = bench.router("A", forwarding={"control_message_bytes": 4 * LEAST})
    raw = join(bench, router, dials=True)
    lower = attrs.evolve(router.data_plane.current_settings.forwarding, control_message_bytes=LEAST)
    router.data_plane.take_settings(lower)
    large_list(raw, 2 * LEAST, to="A")
    bench.advance(0.5)
    assert raw.peer.closed is None
    assert router.control.address_counts()[RouterId("RAW")] == 0, "it is longer than an address may be"


def pose(bench: Bench, router: Runtime, as_whom: Runtime) -> Neighbor:
    """Another router of our kind by the id of one that is there, and that started later."""
    properties = {"qd.inter-router-cost": 1}
    peer = Peer(bench.run, container=str(as_whom.me), sasl=True, properties=properties, offered=(LSU_PUSH, CIRCUITS))
    peer.wire = bench.wire(peer, bench.plug(router, role=Role.INTER_ROUTER))
    bench.peers.append(peer)
    raw = Neighbor(str(as_whom.me), peer, dials=True, instance=as_whom.control.instance + 5)
    bench.run()
    raw.attach()
    bench.run()
    return raw


def posing(bench: Bench, boots: int) -> tuple[Neighbor, list[Runtime]]:
    """A poser at A as C, with a boot number that is so much higher, and the true routers in a line."""
    routers = bench.mesh(("A", "B"), ("B", "C"))
    for router in routers:
        bench.client(router).receiver(f"of/{router.me}", credit=1000).accepting()
    bench.advance(40)
    raw = pose(bench, routers[0], routers[2])
    raw.instance = routers[2].control.instance + boots
    return raw, routers


@pytest.mark.parametrize("seconds", [1, 2, 10])
@pytest.mark.parametrize("boots", [5, 0, -1])
def test_the_true_router_is_reached_when_one_of_its_id_has_gone(bench: Bench, seconds: int, boots: int) -> None:
    raw, routers = posing(bench, boots)
    live(bench, raw, seconds)
    raw.peer.close()
    bench.run()
    bench.advance(1.0)
    check_whole(bench, routers)


@pytest.mark.parametrize("boots", [5, 0, -1])
def test_a_router_by_the_id_of_one_that_is_there_is_refused_soon(
    bench: Bench, boots: int, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, routers = posing(bench, boots)
    live(bench, raw, 5)
    lines = capsys.readouterr()
    assert "reason='router id C is in use: others have heard later news of it'" in lines.out + lines.err
    check_whole(bench, routers)


def test_a_second_router_of_one_id_at_one_neighbor_is_among_those_refused_there(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.routers["the first B"] = b
    bench.join(bench.router("B"), a)
    bench.advance(3)
    (refused,) = a.mesh_presence.refused_routers.values()
    taken = "router id B is in use: another router with the same id is connected to the same neighbor"
    assert (refused.container, refused.reason) == ("B", taken)
    assert set(a.fib.routes) == {"B"}
    assert set(b.fib.routes) == {"A"}


def test_a_router_that_is_only_named_is_asked_nothing_by_operators(bench: Bench) -> None:
    raw, routers = spoken_for(bench)
    view = serve_management(routers[0])
    inner = {"id": "RAW", "area": "0", "ls_seq": 50, "peers": {"A": int32(1), "ghost": int32(1)}}
    raw.say(ALL_TO, "LSU", {"instance": int32(raw.instance), "ls_seq": 50, "ls": inner})
    bench.advance(0.5)
    assert "ghost" in routers[0].fib.routes
    assert list(view.reachable_routers()) == ["A", "B", "C", "RAW"]
