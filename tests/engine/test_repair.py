"""What a router keeps of multicasts that have passed, for how long, and to whom it sends it again."""

from __future__ import annotations

import attrs
import pytest

from router.binding import proton_functions as pn
from router.core.ids_and_conditions import RouterId
from router.dataplane.links import IngressDatagramLink
from router.dataplane.multicast_repair import MOST_STREAMS
from router.engine import neighbor_links
from router.runtime import Runtime
from tests.helpers.engine import Bench, Wire
from tests.helpers.peer import PeerReceiver, PeerSender, message

NEWS = "broadcast/news"
KEEP_S = 2.0


def subscribe(bench: Bench, router: Runtime) -> PeerReceiver:
    return bench.client(router).receiver(NEWS, credit=1000)


def publish(bench: Bench, router: Runtime, count: int, size: int = 10) -> None:
    sender = bench.client(router).sender(NEWS)
    bench.advance(0.1)
    for number in range(count):
        sender.send(message(f"{number}".rjust(size)))
        bench.run()


def test_nothing_is_kept_where_no_other_router_has_subscribers(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = subscribe(bench, a)
    bench.advance(0.1)
    publish(bench, a, 20)
    assert len(receiver.messages) == 20
    assert [router.data_plane.repair.kept_bytes for router in (a, b)] == [0, 0]


@pytest.mark.parametrize(("limit", "kept"), [(100_000, 9), (10_000, 0), (0, 0)])
def test_what_is_kept_is_bounded_in_bytes_by_the_oldest_being_forgotten(bench: Bench, limit: int, kept: int) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"), forwarding={"kept_multicast_bytes": limit})
    receivers = [subscribe(bench, router) for router in (b, c)]
    bench.advance(0.1)
    publish(bench, a, 30, size=10_000)
    assert [len(receiver.messages) for receiver in receivers] == [30, 30]
    for router in (a, b):
        assert kept * 10_000 <= router.data_plane.repair.kept_bytes <= limit


def test_what_is_kept_is_forgotten_after_its_time(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"kept_multicast_s": KEEP_S})
    subscribe(bench, b)
    bench.advance(0.1)
    publish(bench, a, 5)
    bench.advance(KEEP_S / 2)
    assert a.data_plane.repair.kept_bytes > 0
    bench.advance(KEEP_S / 2 + 1.0)
    assert a.data_plane.repair.kept_bytes == 0


def test_of_addresses_without_kept_multicasts_nothing_is_remembered(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"kept_multicast_s": KEEP_S})
    subscribe(bench, b)
    standing = bench.client(a).sender(NEWS)
    for number in range(10):
        receiver = bench.client(b).receiver(f"broadcast/{number}", credit=10)
        passing = bench.client(a).sender(f"broadcast/{number}")
        bench.advance(0.1)
        passing.send(message("once"))
        standing.send(message("again and again"))
        bench.advance(KEEP_S / 2)
        assert receiver.bodies == ["once"]
        receiver.close()
        passing.close()
    assert 1 <= len(a.data_plane.repair.subscribers) <= 4


def test_what_is_kept_goes_to_new_children_but_not_to_whom_it_came_from(bench: Bench) -> None:
    routers = bench.mesh(("A", "F"), ("B", "C"), ("C", "D"), ("D", "E"), ("E", "F"))
    wire = bench.join(routers[0], routers[1])
    bench.advance(2)
    receivers = [subscribe(bench, router) for router in routers]
    bench.advance(1)
    publish(bench, routers[0], 10)
    wire.cut()
    bench.advance(1)
    assert [len(receiver.messages) for receiver in receivers] == [10] * 6
    # D had its copies from C, and is E's child now; B and C, which have become children, had them before.
    assert [router.data_plane.repair.resent for router in routers] == [0, 0, 0, 0, 10, 0]


def test_what_was_delivered_is_not_sent_again_when_one_of_the_data_links_ends(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = subscribe(bench, b)
    bench.advance(1)
    (connection,) = a.connections.values()
    links = a.neighbor(connection.id)
    assert links is not None
    before = set(b.data_plane.links)
    links._attach(connection.new_session(), neighbor_links.DATA, is_sender=True)
    bench.advance(0.1)
    (gone,) = set(b.data_plane.links) - before
    assert isinstance(gone, IngressDatagramLink)
    publish(bench, a, 10)
    pn.pn_link_close(gone.handle)
    gone.port.touch()
    bench.advance(0.1)
    assert len(connection.port.data_links) == 1
    bench.join(a, bench.router("C"))
    bench.advance(1)
    assert receiver.bodies == [str(number).rjust(10) for number in range(10)]
    assert a.data_plane.repair.resent == 0


@pytest.mark.parametrize("lives", [2, 5])
def test_copies_come_once_however_often_their_router_starts_again_meanwhile(bench: Bench, lives: int) -> None:
    b, c = bench.mesh(("B", "C"))
    receivers = [subscribe(bench, router) for router in (b, c)]
    sent = []
    for life in range(lives):
        a = bench.router("A")
        # In the last life C is a child of B, which sends it again what it keeps of all lives.
        wires = [bench.join(a, router) for router in ((c, b) if life < lives - 1 else (b,))]
        bench.advance(0.3)
        client = bench.client(a)
        sender = client.sender(NEWS)
        bench.advance(0.1)
        for number in range(5):
            sent.append(f"{life}.{number}")
            sender.send(message(sent[-1]))
            bench.run()
        for wire in (client.wire, *wires):
            wire.cut()
        bench.run()
        del bench.routers["A"]
    bench.advance(5)
    for receiver in receivers:
        assert sorted(receiver.bodies) == sent


@pytest.mark.parametrize("killed", ["B", "BC"])
def test_subscribers_of_a_router_that_started_again_get_nothing_from_before(bench: Bench, killed: str) -> None:
    ring = "ABCD"
    bench.mesh(*zip(ring, ring[1:] + ring[:1], strict=True))
    receivers = {router: [subscribe(bench, bench.routers[router])] for router in "ABC"}
    bench.advance(1)
    sender = bench.client(bench.routers["A"]).sender(NEWS)
    bench.advance(0.1)
    sent: list[str] = []

    def publish_some() -> None:
        for _ in range(10):
            sent.append(str(len(sent)))
            sender.send(message(sent[-1]))
            bench.run()

    since = dict.fromkeys("ABC", 0)
    for router in killed:
        publish_some()
        runtime = bench.routers[router]
        for wire in bench.wires:
            if any(getattr(end, "runtime", None) is runtime for end in wire.ends):
                wire.cut()
        bench.run()
        del bench.routers[router]
        bench.advance(0.3)
        bench.router(router)
        since[router] = len(sent)
        receivers[router].append(subscribe(bench, bench.routers[router]))
        at = ring.index(router)
        for neighbor in (ring[at - 1], ring[(at + 1) % 4]):
            bench.join(bench.routers[router], bench.routers[neighbor])
        bench.advance(1)
    publish_some()
    bench.advance(6)
    for router, (*_, last) in receivers.items():
        assert last.bodies == sent[since[router] :], f"the last subscriber at {router}"


def full_mesh(bench: Bench) -> dict[str, Wire]:
    for name in "ABCD":
        bench.router(name)
    wires = {edge: bench.join(*(bench.routers[name] for name in edge)) for edge in ("AB", "AC", "AD", "BC", "BD", "CD")}
    bench.advance(2)
    return wires


def cut_with_late_news(bench: Bench, wires: dict[str, Wire], sender: PeerSender, text: str) -> None:
    """Cut A-C and send at C while B, the new way to A, knows of it by nobody but C."""
    for edge in ("AB", "BD"):
        wires[edge].is_still = True
    wires["AC"].cut()
    sender.send(message(text))
    bench.run()
    for edge in ("AB", "BD"):
        wires[edge].is_still = False


def test_a_multicast_comes_by_a_router_that_heard_late_of_the_subscriber_below_it(bench: Bench) -> None:
    wires = full_mesh(bench)
    receivers = [subscribe(bench, bench.routers[name]) for name in "AD"]
    bench.advance(1)
    sender = bench.client(bench.routers["C"]).sender(NEWS)
    bench.advance(1)
    sender.send(message("before"))
    bench.advance(1)
    cut_with_late_news(bench, wires, sender, "after")
    bench.advance(2)
    assert [receiver.bodies for receiver in receivers] == [["before", "after"]] * 2


def test_who_granted_after_a_multicast_passed_is_not_sent_it_again(bench: Bench) -> None:
    wires = full_mesh(bench)
    early = subscribe(bench, bench.routers["D"])
    late = bench.client(bench.routers["A"]).receiver(NEWS, credit=0)
    bench.advance(1)
    sender = bench.client(bench.routers["C"]).sender(NEWS)
    bench.advance(1)
    cut_with_late_news(bench, wires, sender, "missed")
    bench.advance(1)
    late.flow(10)
    bench.advance(1)
    sender.send(message("got"))
    bench.advance(1)
    assert (early.bodies, late.bodies) == (["missed", "got"], ["got"])


def join_without_numbers(bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, *neighbors: Runtime) -> None:
    """Join a router that neither numbers multicasts nor says that it keeps to trees, as a qdrouterd."""
    router = bench.router(name)
    link_state = router.control._link_state
    own_update = link_state.own_update
    monkeypatch.setattr(link_state, "own_update", lambda: attrs.evolve(own_update(), has_trees=False))
    with monkeypatch.context() as patch:
        patch.setattr(neighbor_links, "NUMBERS", "nobody has this")
        for neighbor in neighbors:
            bench.join(router, neighbor)
        bench.advance(2)


def test_what_has_gone_by_way_of_a_router_without_numbers_is_not_sent_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = bench.mesh(("A", "B"))
    c = bench.router("C")
    wire = bench.join(b, c)
    join_without_numbers(bench, monkeypatch, "Q", a, c)
    receivers = [subscribe(bench, router) for router in (a, b, c)]
    bench.advance(1)
    for _ in range(2):
        wire.cut()
        bench.advance(2)
        publish(bench, a, 10)
        publish(bench, b, 10)
        wire = bench.join(b, c)
        bench.advance(2)
        publish(bench, a, 10)
    assert [len(receiver.messages) for receiver in receivers] == [60, 60, 60]


def test_names_of_routers_that_a_neighbor_makes_up_are_no_trees(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    subscribe(bench, b)
    bench.advance(0.1)
    entry = a.fib.attach(NEWS)
    for number in range(100):
        a.data_plane.repair.keep(entry, RouterId(f"X{number}"), b"t" * 16, message("x"), (), bench.now)
    assert a.data_plane.repair.kept_bytes > 0
    assert len(a.fib._trees) <= 2


def test_numbers_of_multicasts_grow_with_these_and_not_with_their_addresses(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    addresses = [f"broadcast/{number}" for number in range(10)]
    for address in addresses:
        bench.client(b).receiver(address, credit=10)
    bench.advance(0.5)
    repair = a.data_plane.repair

    def number(address: str) -> int:
        entry = a.fib.find(address)
        assert entry is not None
        tag = repair.number(entry)
        assert tag is not None
        return int.from_bytes(tag[8:], "big")

    given = [number(address) for address in addresses * 2]
    assert max(given) <= len(given)
    entry = a.fib.find(addresses[0])
    assert entry is not None
    for other in range(MOST_STREAMS):
        repair.is_new(entry, RouterId(f"other {other}"), bytes(8) + (1).to_bytes(8, "big"))
    assert number(addresses[0]) > max(given), "others take it for new though it was forgotten here"


def test_a_copy_that_found_no_way_is_sent_when_there_is_one(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"max_circuits": 0})
    receiver = subscribe(bench, b)
    sender = bench.client(a).sender(NEWS)
    bench.advance(1)
    repair, ports = a.data_plane.repair, a.data_plane.ports
    connection = a.fib.routes[RouterId("B")].connection
    port = ports.pop(connection)  # it has ended, and its routes are those of before
    sender.send(message("late"))
    bench.run()
    assert receiver.bodies == []
    ports[connection] = port
    repair.trees_changed(bench.now)
    bench.advance(0.1)
    assert receiver.bodies == ["late"]
    assert repair.resent == 1


def test_credit_that_came_while_its_tree_was_forgotten_is_used_later(bench: Bench) -> None:
    a, b, c, _ = bench.mesh(("A", "D"), ("B", "C"), ("B", "D"))
    wire = bench.join(a, b)
    bench.advance(3)
    receiver = subscribe(bench, c)
    publish(bench, a, 1)
    bench.advance(1)
    receiver.flow(-receiver.credit)
    bench.peers[-1].wire.cut()
    bench.advance(3)
    wire.cut()
    bench.advance(3)
    receiver.flow(3)
    bench.advance(1)
    publish(bench, a, 1)
    bench.advance(1)
    assert len(receiver.messages) == 2
