"""What management tells of credit, on real links: who granted and who holds how much, what waits, since when."""

from __future__ import annotations

from router.core.addressing.address import masked
from router.management.snapshot import CreditRow, PartyRow, Row
from router.runtime import Runtime
from router.views.credit import busy_behind
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench
from tests.helpers.peer import PeerSender, message

LINE = (("A", "B"), ("B", "C"))


def credit(router: Runtime, key: str = "M0topic") -> CreditRow:
    """The row of one address, which a list of all has too."""
    view = RuntimeView(router, [], [])
    (row,) = view.rows_of_address(CreditRow, key)
    assert isinstance(row, CreditRow)
    assert row in list(view.rows(CreditRow))
    return row


def parties(router: Runtime, key: str = "M0topic") -> list[PartyRow]:
    """The rows of one address; the list of all has the same."""
    view = RuntimeView(router, [], [])
    found = [row for row in view.rows_of_address(PartyRow, key) if isinstance(row, PartyRow)]
    everybody = [row for row in view.rows(PartyRow) if isinstance(row, PartyRow) and row.key == key]
    assert by_identity(found) == by_identity(everybody)
    assert len({row.identity for row in found}) == len(found)
    return found


def by_identity(rows: list[PartyRow]) -> list[PartyRow]:
    return sorted(rows, key=lambda row: row.identity)


def roles(rows: list[PartyRow]) -> list[str]:
    return [row.role for row in rows]


def send_all(bench: Bench, *senders: PeerSender, settled: bool = False) -> None:
    """Send as long as there is credit."""
    while any(sender.credit > 0 for sender in senders):
        for sender in senders:
            if sender.credit > 0:
                sender.send(message(1), settled=settled)
        bench.advance(0.01)


# Anycast


def test_a_stalled_subscriber_is_seen_from_the_blocked_publishers_to_itself(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c, container="worker").receiver("topic", credit=3)
    senders = [bench.client(a, container=f"api-{number}").sender("topic") for number in (1, 2)]
    other = bench.client(b, container="api-3").sender("topic")
    send_all(bench, *senders, other)
    stalled_at = bench.now
    bench.advance(7.5)
    row = credit(a)
    assert (row.granted, row.held_by_publishers, row.held_by_circuits, row.is_open, row.has_subscriber) == (
        (0, 0, 0, True, True)
    )
    assert (row.publisher_count, row.blocked_count, row.blocked_seconds) == (2, 2, 7)
    assert (row.waiting_count, row.oldest_wait_seconds, row.departed_count) == (2, 7, 0)
    out, *publishers = parties(a)
    assert (out.role, out.neighbor, out.root, out.container, out.granted, out.weight) == (
        ("circuit out", "B", "C", "B", 0, 2)
    )
    assert [(p.role, p.container, p.held, p.weight, p.waiting_count) for p in publishers] == [
        ("publisher", "api-1", 0, 1, 1),
        ("publisher", "api-2", 0, 1, 1),
    ]
    assert {p.zero_credit_seconds for p in publishers} == {p.oldest_wait_seconds for p in publishers} == {7}
    between = parties(b)
    assert roles(between) == ["circuit out", "circuit in", "publisher"]
    assert [(p.neighbor, p.root, p.weight, p.held) for p in between[:2]] == [("C", "C", 3, 0), ("A", "C", 2, 0)]
    worker, incoming = parties(c)
    assert (worker.role, worker.container, worker.granted, worker.unsettled_count, worker.zero_credit_seconds) == (
        ("subscriber", "worker", 0, 3, None)
    )
    assert (incoming.role, incoming.neighbor, incoming.weight) == ("circuit in", "B", 3)
    assert (credit(c).waiting_count, credit(c).subscriber_count, credit(c).publisher_count) == (0, 1, 0)
    receiver.flow(100)
    bench.advance(0.05)
    assert bench.now - stalled_at > 7
    row = credit(a)
    assert (row.blocked_count, row.blocked_seconds, row.waiting_count) == (0, 0, 0)
    assert {p.zero_credit_seconds for p in parties(a)} == {None}


def test_the_weight_of_a_multicast_counts_publishers(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("multicast/topic", credit=3).accepting()
    send_all(bench, *(bench.client(a, container=f"api-{number}").sender("multicast/topic") for number in range(3)))
    bench.advance(0.1)
    assert len(receiver.bodies) == 3
    assert busy_behind(c.fib.find("multicast/topic")) == 3
    weights = [
        party.weight
        for router in (a, b, c)
        for party in parties(router, "M0multicast/topic")
        if party.role.startswith("circuit")
    ]
    assert weights == [3, 3, 3, 3]


def test_what_is_granted_at_one_end_is_held_at_the_other(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    bench.client(c).receiver("topic", credit=40).accepting()
    sender = bench.client(a).sender("topic")
    for _ in range(20):
        sender.send(message(1))
        bench.advance(0.005)
    rows = [credit(router) for router in (a, b, c)]
    assert rows[0].held_by_publishers == sender.credit > 1
    for near, far in ((a, b), (b, c)):
        outgoing = next(party for party in parties(near) if party.role == "circuit out")
        incoming = next(party for party in parties(far) if party.role == "circuit in")
        assert outgoing.granted == incoming.held > 0
        assert credit(near).granted == outgoing.granted
        assert credit(far).held_by_circuits == incoming.held
    subscriber = parties(c)[0]
    assert subscriber.granted == subscriber.brokered == rows[2].granted == 20


def test_only_what_is_brokered_of_a_large_grant_can_be_dealt(bench: Bench) -> None:
    router = bench.router("A", forwarding={"brokered_messages": 50})
    bench.client(router).receiver("topic", credit=2**31 - 1)
    (subscriber,) = parties(router)
    assert subscriber.brokered == subscriber.granted == 2**31 - 1  # as long as nobody draws on it
    assert credit(router).is_open
    bench.client(router).sender("topic")
    subscriber = parties(router)[0]
    assert (subscriber.granted, subscriber.brokered) == (2**31 - 1, 50)


def test_credit_that_nobody_has_looked_at_since_it_was_granted_is_told_as_it_is(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=1).accepting()
    publisher = bench.client(router)
    publisher.sender("topic").send(message(1))
    bench.advance(0.1)
    publisher.wire.cut()
    bench.advance(5.0)
    assert len(receiver.messages) == 1
    receiver.flow(1)
    bench.advance(0.1)
    (subscriber,) = parties(router)
    assert (subscriber.granted, subscriber.brokered) == (1, 1)


def test_credit_taken_back_from_a_publisher_is_told_as_long_as_it_is_in_quarantine(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=8).accepting()
    sender = bench.client(router).sender("topic")
    for _ in range(4):
        sender.send(message(1))
        bench.advance(0.005)
    held = credit(router).held_by_publishers
    assert held > 1
    receiver.flow(-receiver.credit)
    bench.advance(0.031)
    row, publisher = credit(router), parties(router)[-1]
    assert (row.held_by_publishers, row.lowered) == (publisher.held, publisher.lowered) == (1, held - 1)
    assert parties(router)[0].is_withdrawn
    bench.advance(0.1)
    assert credit(router).lowered == 0


def test_a_publisher_is_blocked_from_its_attach_or_from_the_close_of_its_address(bench: Bench) -> None:
    router = bench.router("A")
    bench.client(router).sender("topic")
    bench.advance(3.5)
    row = credit(router)
    assert (row.blocked_seconds, row.has_subscriber, row.is_open) == (3, False, False)
    receiver = bench.client(router).receiver("topic")
    assert (credit(router).has_subscriber, credit(router).is_open, credit(router).blocked_count) == (True, False, 1)
    receiver.flow(1)
    bench.advance(60)
    assert (credit(router).blocked_count, credit(router).is_open) == (0, True)
    receiver.flow(-1)
    bench.advance(3.5)
    row = credit(router)
    assert (row.blocked_count, row.blocked_seconds, row.is_open) == (1, 2, False)  # after the linger


def test_messages_of_publishers_that_left_are_counted(bench: Bench) -> None:
    router = bench.router("A")
    bench.client(router).receiver("topic", credit=1)
    client = bench.client(router)
    sender = client.sender("topic")
    send_all(bench, sender, settled=True)
    sender.close()
    bench.advance(2)
    row = credit(router)
    assert (row.waiting_count, row.departed_count, row.publisher_count, row.blocked_count) == (1, 1, 0, 0)
    assert row.oldest_wait_seconds == 2


def test_a_publisher_to_a_reply_address_holds_its_one_credit(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    requester = bench.client(c).receiver(None, dynamic=True, credit=100).accepting()
    assert requester.address is not None
    text = masked(requester.address.rpartition("/")[2])
    sender = bench.client(a).sender(requester.address)
    key = f"RC/{text}"
    for _ in range(2):
        row = credit(a, key)
        assert (row.publisher_count, row.held_by_publishers, row.blocked_count, row.is_open) == (1, 1, 0, True)
        assert (parties(a, key)[-1].role, parties(a, key)[-1].held) == ("publisher", 1)
        sender.send(message(1))
        bench.run()
    assert parties(c, f"L{text}")[0].granted > 90


def test_a_subscriber_that_drains_is_told(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=8).accepting()
    sender = bench.client(router).sender("topic")
    for _ in range(4):
        sender.send(message(1))
        bench.advance(0.005)
    receiver.drain()
    bench.run()
    assert [(p.role, p.is_draining) for p in parties(router)] == [("subscriber", True), ("publisher", False)]
    bench.advance(0.2)
    subscriber = parties(router)[0]
    assert (subscriber.is_draining, subscriber.granted) == (False, 0)


def test_an_egress_behind_a_neighbor_without_circuits_has_a_window(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"max_circuits": 0, "publisher_window": 9})
    bench.client(b).receiver("topic", credit=4)
    sender = bench.client(a).sender("topic")
    sender.send(message(1))
    bench.run()
    window, publisher = parties(a)
    assert (window.role, window.neighbor, window.root, window.granted, window.unsettled_count) == (
        ("window", "B", "B", 8, 1)
    )
    assert (window.identity, window.container, window.connection_id) == ("window/M0topic/B/B", None, None)
    assert publisher.role == "publisher"
    assert credit(a).granted == 8


# Multicast


def test_a_multicast_shows_who_holds_it_up_and_who_is_excluded(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    healthy = bench.client(b, container="healthy").receiver("broadcast/x", credit=100).accepting()
    stalled = bench.client(a, container="stalled").receiver("broadcast/x", credit=2)
    sender = bench.client(a).sender("broadcast/x")
    send_all(bench, sender)
    key = "M0broadcast/x"
    bench.advance(0.5)
    row = credit(a, key)
    assert (row.granted, row.blocked_count, row.waiting_count) == (0, 1, 1)
    subscriber, out, publisher = parties(a, key)
    assert (subscriber.role, subscriber.container, subscriber.granted) == ("subscriber", "stalled", 0)
    assert (subscriber.zero_credit_seconds, subscriber.excluded_seconds) == (0, None)
    assert (out.role, out.neighbor, out.root) == ("circuit out", "B", "A")
    assert out.granted > 0
    assert (publisher.held, publisher.waiting_count) == (0, 1)
    bench.advance(1)
    sender.send(message(2))
    bench.advance(2)
    subscriber = parties(a, key)[0]
    assert (subscriber.zero_credit_seconds, subscriber.excluded_seconds, subscriber.missed_count) == (None, 2, 2)
    for _ in range(5):
        sender.send(message(3))
        bench.advance(0.005)
    row = credit(a, key)
    assert row.granted == next(party.granted for party in parties(a, key) if party.role == "circuit out") > 0
    assert row.held_by_publishers == sender.credit
    assert credit(b, key).granted == healthy.credit == parties(b, key)[0].granted
    assert credit(b, key).held_by_circuits == row.granted
    assert stalled.credit == 0


def test_a_child_without_circuits_has_a_window(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"max_circuits": 0})
    bench.client(b).receiver("broadcast/x", credit=4)
    bench.client(a).sender("broadcast/x")
    window = parties(a, "M0broadcast/x")[0]
    assert (window.role, window.neighbor, window.root, window.identity) == (
        ("window", "B", "A", "window/M0broadcast/x/A/B")
    )
    assert window.granted > 0


# Which there are


def test_addresses_without_anybody_here_and_keys_of_nothing_have_no_rows(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.client(b).receiver("topic", credit=4)
    view = RuntimeView(a, [], [])
    kinds: list[type[Row]] = [CreditRow, PartyRow]
    for kind in kinds:
        assert len(view.rows(kind)) == 0
        for key in ("M0topic", "M0", "", "L", "Ltopic", "RB/x", "M0$management", "L$management", "X", "M0_topo/0/B/x"):
            assert len(view.rows_of_address(kind, key)) == 0


def test_the_list_is_in_the_order_of_the_keys_whoever_came_first(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    for name in ("b", "a", "c"):
        client.receiver(name)
    assert [row.identity for row in RuntimeView(router, [], []).rows(CreditRow)] == ["M0a", "M0b", "M0c"]
