"""What has passed between two readings of a mesh's counters: all of it, once, whatever has begun anew in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.whatif.formats.live_snapshot import checked_model, collect
from router.whatif.model.elements import LinkEdge
from router.whatif.telemetry.link_counters import (
    ALL,
    Connection,
    Reading,
    RouterCounters,
    entered,
    from_text,
    merged,
    passed,
    read,
    to_text,
)
from tests.whatif.formats.test_live_snapshot import Answers, connection, node

SECOND = 1_000_000


def counted(out: int, back: int, *, peer: str = "B", cost: int = 1, is_standby: bool = False) -> Connection:
    """A connection with so many messages, of ten bytes each."""
    return Connection(
        peer=peer, cost=cost, is_standby=is_standby,
        messages_out=out, messages_in=back, bytes_out=10 * out, bytes_in=10 * back,
    )  # fmt: skip


def at(second: int, instance: int = 1, **connections: Connection) -> RouterCounters:
    """A router as it was read; connections by `c` and their identity."""
    by_identity = {name.removeprefix("c"): one for name, one in connections.items()}
    return RouterCounters(instance=instance, at=second * SECOND, connections=by_identity)


def rows(before: Reading, after: Reading, *links: LinkEdge) -> list[tuple[str, str, int, bool]]:
    return [(row.link, row.src, row.messages, row.is_reset) for row in passed(before, after, links)]


def test_each_direction_has_what_its_sender_sent() -> None:
    before, after = {"A": at(1, c1=counted(5, 7))}, {"A": at(3, c1=counted(25, 8))}
    forth, back = passed(before, after)
    assert (forth.link, forth.src, forth.dst, forth.messages, forth.bytes) == ("A--B", "A", "B", 20, 200)
    assert (back.link, back.src, back.dst, back.messages, back.bytes) == ("A--B", "B", "A", 1, 10)
    assert (forth.begun, forth.ended, forth.is_reset) == (SECOND, 3 * SECOND, False)


def test_what_was_before_the_first_reading_is_not_counted() -> None:
    assert rows({}, {"A": at(1, c1=counted(5, 7))}) == []


def test_a_new_connection_counts_from_its_beginning() -> None:
    before, after = {"A": at(1, c1=counted(500, 700))}, {"A": at(2, c2=counted(3, 4))}
    assert rows(before, after) == [("A--B", "A", 3, True), ("A--B", "B", 4, True)]


def test_a_router_that_has_started_anew_counts_from_its_beginning() -> None:
    # Identities begin anew too: it is another connection of the same number, with more or less on it.
    before = {"A": at(1, 1, c1=counted(5, 7))}
    for count in (2, 5, 90):
        after = {"A": at(2, 2 * SECOND, c1=counted(count, 0))}
        assert rows(before, after) == [("A--B", "A", count, True), ("A--B", "B", 0, True)]


def test_a_router_that_could_not_be_asked_is_made_up_for() -> None:
    first = {"A": at(1, c1=counted(5, 0)), "B": at(1, c1=counted(50, 0, peer="C"))}
    second = merged(first, {"B": at(2, c1=counted(60, 0, peer="C"))})
    third = merged(second, {"A": at(4, c1=counted(9, 0)), "B": at(4, c1=counted(60, 0, peer="C"))})
    assert [(row.link, row.messages, row.begun // SECOND) for row in passed(first, second) if row.src == "B"] == [
        ("B--C", 10, 1)
    ]
    assert [(row.link, row.messages, row.begun // SECOND) for row in passed(second, third) if row.src == "A"] == [
        ("A--B", 4, 1)
    ]


def test_a_router_that_could_not_be_asked_for_a_week_is_forgotten() -> None:
    week_s = 7 * 86400
    before = {"A": at(1), "B": at(1)}
    assert sorted(merged(before, {"B": at(1 + week_s)})) == ["A", "B"]
    assert sorted(merged(before, {"B": at(2 + week_s)})) == ["B"]
    assert merged(before, {}) == before


def test_a_later_router_is_counted_from_its_start_one_that_was_out_of_reach_is_not() -> None:
    before = {"B": at(5, c1=counted(0, 0, peer="C"))}
    young, old = at(9, 6 * SECOND, c1=counted(8, 0)), at(9, 4 * SECOND, c1=counted(8, 0))
    assert ("A--B", "A", 8, True) in rows(before, merged(before, {"A": young}))
    assert rows(before, merged(before, {"A": old})) == []
    later = merged({"A": old}, {"A": at(10, 4 * SECOND, c1=counted(9, 0))})
    assert ("A--B", "A", 1, False) in rows({"A": old}, later)


def test_parallel_connections_have_the_models_ids_and_keep_them_when_one_breaks() -> None:
    links = [LinkEdge(id="cheap", a="A", b="B", cost=1), LinkEdge(id="dear", a="A", b="B", cost=5)]
    before = {"A": at(1, c1=counted(5, 0, cost=5), c2=counted(7, 0))}
    both = {"A": at(2, c1=counted(6, 0, cost=5), c2=counted(9, 0))}
    one = {"A": at(3, c1=counted(8, 0, cost=5))}
    assert [row[:3] for row in rows(before, both, *links) if row[1] == "A"] == [("cheap", "A", 2), ("dear", "A", 1)]
    assert [row[:3] for row in rows(both, one, *links) if row[1] == "A"] == [("dear", "A", 2)]
    assert [row[:3] for row in rows(before, both) if row[1] == "A"] == [("A--B", "A", 2), ("A--B#2", "A", 1)]


def test_a_link_that_the_model_has_not_gets_an_id_of_its_own() -> None:
    before, after = {"A": at(1, c1=counted(0, 0), c2=counted(0, 0))}, {"A": at(2, c1=counted(1, 0), c2=counted(2, 0))}
    known = LinkEdge(id="A--B", a="A", b="B")
    assert {row[0] for row in rows(before, after, known)} == {"A--B", "A--B#2"}


@given(st.lists(st.tuples(st.integers(1, 2), st.booleans(), st.sampled_from(["in", "out"])), max_size=5), st.randoms())
def test_a_snapshot_and_a_watch_give_parallel_connections_the_same_ids(
    parallel: list[tuple[int, bool, str]], rng: random.Random
) -> None:
    told = [
        connection("B", identity=str(identity), cost=cost, isStandby=is_standby, dir=way, deliveriesOut=identity)
        for identity, (cost, is_standby, way) in enumerate(parallel, start=8)
    ]
    rng.shuffle(told)
    nodes = [node("A", {"B": 1}), node("B", {"A": 1})]
    mesh = Answers([each | {"instance": 1} for each in nodes], {"A": {"connection": told}})
    model, _ = checked_model(collect(mesh), "amqp://a")
    counters = {it.link: it.messages for it in model.counters if it.src == "A"}
    begun = {"A": at(0), "B": at(0)}
    assert {it.link: it.messages for it in passed(begun, read(mesh, lambda: SECOND)) if it.src == "A"} == counters


def test_a_reading_that_was_kept_before_directions_were_still_counts() -> None:
    kept = '{"A":[1,1000000,{"1":["B",1,false,5,7,50,70]}]}'
    assert from_text(kept) == {"A": at(1, c1=counted(5, 7))}


# What has entered


def counting(second: int, instance: int = 1, *, clients: tuple[int, int] = (0, 0), **counts: int) -> RouterCounters:
    return RouterCounters(
        instance=instance, at=second * SECOND, connections={}, entered=dict(sorted(counts.items())), clients=clients
    )


def entries(before: Reading, after: Reading) -> list[tuple[str, int, bool]]:
    return [(row.address, row.messages, row.is_reset) for row in entered(before, after)]


def test_each_address_has_what_entered_and_all_together_a_row_in_any_case() -> None:
    before = {"A": counting(1, orders=5, news=7)}
    after = {"A": counting(3, clients=(40, 4000), orders=25, news=7, jobs=2)}
    assert entries(before, after) == [(ALL, 22, False), ("jobs", 2, False), ("orders", 20, False)]
    first = next(iter(entered(before, after)))
    assert (first.router, first.begun, first.ended, first.msg_bytes) == ("A", SECOND, 3 * SECOND, 100.0)
    assert entries(after, {"A": counting(4, orders=25, news=7, jobs=2)}) == [(ALL, 0, False)]
    assert next(iter(entered(after, {"A": counting(4)}))).msg_bytes is None


def test_an_address_or_a_router_that_counts_anew_counts_from_its_beginning() -> None:
    before = {"A": counting(1, orders=5, news=7)}
    assert entries(before, {"A": counting(2, orders=3, news=8)}) == [
        (ALL, 4, False), ("news", 1, False), ("orders", 3, True),
    ]  # fmt: skip
    assert entries(before, {"A": counting(2, 2 * SECOND, orders=9)}) == [(ALL, 9, True), ("orders", 9, True)]


def test_nothing_is_said_of_a_router_that_was_not_asked_for_its_addresses() -> None:
    assert entries({"A": at(1)}, {"A": counting(2, orders=9)}) == []
    assert entries({"A": counting(1, orders=1)}, {"A": at(2)}) == []
    assert entries({}, {"A": counting(1, orders=9)}) == []
    young, old = counting(9, 6 * SECOND, orders=8), counting(9, 4 * SECOND, orders=8)
    before = {"B": counting(5)}
    assert entries(before, {"A": young}) == [(ALL, 8, True), ("orders", 8, True)]
    assert entries(before, {"A": old}) == []


names = st.sampled_from("ABCD")
connections = st.builds(counted, st.integers(0, 99), st.integers(0, 99), peer=names, cost=st.integers(1, 3))
readings = st.dictionaries(
    names,
    st.builds(
        RouterCounters,
        instance=st.integers(0, 2**53),
        at=st.integers(0, 2**53),
        connections=st.dictionaries(st.integers(1, 99).map(str), connections, max_size=3),
        entered=st.none() | st.dictionaries(st.text(max_size=3), st.integers(0, 2**53), max_size=3),
    ),
    max_size=4,
)


@given(readings)
def test_a_reading_is_the_same_after_having_been_text(reading: Reading) -> None:
    assert from_text(to_text(reading)) == reading
    assert to_text(from_text(to_text(reading))) == to_text(reading)


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[Reading], int]:
    """What is read of a router A while its one link carries messages, breaks, and A starts anew; and what it carried
    since the first reading, as far as A lived to tell."""
    instance, identity, count, total = 1, 1, draw(st.integers(0, 9)), 0
    found: list[Reading] = [{"A": at(1, instance, c1=counted(count, 0))}]
    for second in range(2, draw(st.integers(2, 14))):
        more = draw(st.integers(0, 5))
        match draw(st.sampled_from(["carry", "carry", "break", "restart", "away"])):
            case "carry":
                count += more
            case "break":
                identity, count = identity + 1, more
            case "restart":
                instance, identity, count = second * SECOND, 1, more
            case "away":
                found.append({})
                continue
        total += more
        found.append({"A": at(second, instance, **{f"c{identity}": counted(count, 0)})})
    return found, total


@given(lives())
def test_intervals_follow_each_other_and_add_up_to_what_was_counted(life: tuple[list[Reading], int]) -> None:
    readings, wanted = life
    before: Reading = {}
    total, ended = 0, SECOND
    for reading in readings:
        after = merged(before, reading)
        for row in passed(before, after):
            if row.src == "A":
                assert row.begun == ended
                ended = row.ended
                total += row.messages
        before = after
    assert total == wanted


# Reading


@attrs.define
class Fake:
    """What management of a mesh says; routers that are `deaf` do not answer."""

    nodes: list[dict[str, Any]]
    connections: dict[str | None, list[dict[str, Any]]]
    deaf: set[str | None] = attrs.field(factory=set)
    addresses: dict[str | None, list[dict[str, Any]]] = attrs.field(factory=dict)

    def query(self, kind: str, attributes: tuple[str, ...], *, router: str | None) -> list[dict[str, Any]]:
        if router in self.deaf:
            raise ConnectionError("no answer")
        found = self.nodes if kind == "router.node" else self.connections[router]
        if kind == "router.address":
            found = self.addresses[router]
        return [{name: row[name] for name in attributes} for row in found]

    def attached_to(self) -> str:
        return "B"


def row(identity: str, container: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "identity": identity, "container": container, "role": "inter-router", "opened": True, "cost": 2,
        "isStandby": False, "deliveriesIn": 1, "deliveriesOut": 2, "bytesIn": 30, "bytesOut": None, "dir": "out",
        "properties": {"product": "amqp-mesh"},
    }  # fmt: skip
    return usual | changes


def moments() -> Iterator[int]:
    yield from range(100, 200)


def test_each_reachable_router_is_asked_once_and_each_link_is_told_by_one_end() -> None:
    nodes = [
        {"id": "A", "isReachable": True, "instance": 11},
        {"id": "B", "isReachable": True, "instance": 22},
        {"id": "C", "isReachable": False, "instance": None},
    ]
    mesh = Fake(
        nodes,
        {
            "A": [row("7", "B"), row("8", "client", role="normal"), row("9", "B", opened=False)],
            None: [row("3", "A"), row("4", "C")],
        },
    )
    clock = moments()
    found = read(mesh, lambda: next(clock))
    assert sorted(found) == ["A", "B"]
    assert (found["A"].instance, found["A"].at, found["B"].at) == (11, 100, 101)
    assert list(found["A"].connections) == ["7"]
    assert list(found["B"].connections) == ["4"]
    assert found["A"].connections["7"] == Connection(
        peer="B", cost=2, is_standby=False, messages_out=2, messages_in=1, bytes_out=0, bytes_in=30
    )


def test_a_link_to_a_router_of_another_make_is_told_by_the_other_end_whatever_its_id() -> None:
    foreign = {"properties": {"product": "qpid-dispatch-router"}}
    mesh = Fake(
        [{"id": name, "isReachable": True, "instance": 1} for name in "ABC"],
        {None: [row("3", "A", **foreign), row("4", "C", **foreign), row("5", "x", role="normal", properties={})]},
        deaf={"A", "C"},
    )
    before = read(mesh, lambda: SECOND)
    assert [one.peer for one in before["B"].connections.values()] == ["A", "C"]
    mesh.connections = {None: [each | {"deliveriesOut": 9} for each in mesh.connections[None]]}
    model = LinkEdge(id="wire", a="A", b="B")
    found = passed(before, read(mesh, lambda: 2 * SECOND), (model,))
    assert [(it.link, it.src, it.dst, it.messages) for it in found] == [
        ("B--C", "B", "C", 7), ("B--C", "C", "B", 0), ("wire", "B", "A", 7), ("wire", "A", "B", 0),
    ]  # fmt: skip


def test_addresses_of_clients_are_read_and_how_much_these_send() -> None:
    # Most addresses are those to which others send.
    keys = {"M0orders": 7, "M1copies": 1, "Mareply": 3, "Lheartbeat": 5, "RA": 9, "M0news": 0}
    mesh = Fake(
        [{"id": "B", "isReachable": True, "instance": 1}],
        {None: [row("3", "x", role="normal"), row("4", "y", role="normal", deliveriesIn=5), row("5", "C")]},
        addresses={None: [{"key": key, "deliveriesIngress": count} for key, count in keys.items()]},
    )
    found = read(mesh, lambda: 1, has_addresses=True)["B"]
    assert found.entered == {"copies": 1, "orders": 7, "reply": 3}
    assert found.clients == (6, 60)
    assert read(mesh, lambda: 1)["B"].entered is None


def test_one_that_has_just_gone_is_left_out_but_who_is_asked_must_answer() -> None:
    nodes = [{"id": name, "isReachable": True, "instance": 1} for name in "AB"]
    mesh = Fake(nodes, {None: [row("4", "C")]}, deaf={"A"})
    assert sorted(read(mesh, lambda: 1)) == ["B"]
    mesh.deaf = {None}
    with pytest.raises(ConnectionError):
        read(mesh, lambda: 1)
