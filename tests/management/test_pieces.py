"""What is asked of a router with very much is answered in pieces, between which messages pass."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from itertools import pairwise

import attrs
import pytest

from router.core.ids_and_conditions import RouterId
from router.engine.message_codec import Message
from router.management.node import ManagementNode
from router.management.snapshot import AddressRow, CreditRow, PartyRow, RouterRow, Row
from router.mesh_presence import ExpectedMesh
from router.views import console
from router.views.console import ConsoleSource
from router.views.mesh_status_poller import MeshStatusPoller
from router.views.router_row import AT_ONCE
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench
from tests.helpers.peer import message

COUNT = 1500


@pytest.fixture(scope="module")
def crowded() -> RuntimeView:
    """The view of a router with 1,500 addresses, each with a subscriber; some messages wait, some are under way."""
    bench = Bench()
    a = bench.router("A")
    client = bench.client(a)
    session = client.session()
    for number in range(COUNT):
        client.receiver(f"x/{number:04}", credit=number % 2, session=session)
    bench.run()
    sender = bench.client(a).sender(None)
    bench.run()
    for number in range(200):
        sender.send(message("x", address=f"x/{number:04}"))
        bench.run()
    return RuntimeView(a, [], [])


def result_of(work: Generator[None, None, bytes]) -> bytes:
    while True:
        try:
            next(work)
        except StopIteration as done:
            return bytes(done.value)


def pauses(work: Iterator[None]) -> int:
    return sum(1 for _ in work)


@pytest.mark.parametrize("kind", [RouterRow, AddressRow, CreditRow, PartyRow])
def test_rows_that_need_a_look_at_all_there_is_are_prepared_in_pieces(crowded: RuntimeView, kind: type[Row]) -> None:
    at_once = list(crowded.rows(kind))
    assert pauses(crowded.prepare(kind)) >= COUNT // AT_ONCE
    prepared = list(crowded.rows(kind))
    if kind is RouterRow:
        (row,) = prepared
        assert isinstance(row, RouterRow)
        assert (row.addr_count, row.link_count, row.waiting_count, row.unsettled_count) == (
            COUNT,
            COUNT + 1,
            100,
            100,
        )
        assert (row.deliveries_ingress, row.deliveries_egress) == (200, 100)
        changes = {"memory_usage": 0, "uptime_seconds": 0}
        at_once, prepared = ([attrs.evolve(each, **changes) for each in rows] for rows in (at_once, prepared))
    assert prepared == at_once
    assert len(prepared) >= (1 if kind is RouterRow else COUNT)
    if kind is AddressRow:
        assert all(one.identity < other.identity for one, other in pairwise(prepared))


def test_what_goes_while_it_is_looked_at_is_left_out(crowded: RuntimeView) -> None:
    bench = Bench()
    a = bench.router("A")
    client = bench.client(a)
    session = client.session()
    links = [client.receiver(f"x/{number}", credit=1, session=session) for number in range(3 * AT_ONCE)]
    bench.run()
    view = RuntimeView(a, [], [])
    for kind in (RouterRow, PartyRow, AddressRow):
        work = view.prepare(kind)
        next(work)
        for _ in range(20):
            links.pop().close()
        bench.run()
        pauses(work)
        rows = list(view.rows(kind))
        assert len(rows) == {RouterRow: 1, PartyRow: len(links), AddressRow: len(links) + 20}[kind]


def test_a_read_and_a_page_of_the_console_are_made_in_pieces(crowded: RuntimeView) -> None:
    properties: dict[str, object] = {"operation": "READ", "type": "org.apache.qpid.dispatch.router"}
    request = Message(to="$management", reply_to="answers", application_properties=properties)
    assert pauses(ManagementNode(crowded).work(request)) >= 2 * COUNT // AT_ONCE
    source = ConsoleSource(crowded._runtime, crowded, MeshStatusPoller(crowded._runtime))
    assert pauses(source.page()) >= 3 * COUNT // AT_ONCE


def test_a_page_without_room_for_all_has_the_absent_first_and_counts_all(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    for name, most in (("MOST_ROUTERS", 3), ("MOST_LINKS", 2), ("MOST_PROBLEMS", 1)):
        monkeypatch.setattr(console, name, most)
    a = bench.mesh(*((one, other) for one, other in pairwise("ABCDE")))[0]
    routers: dict[RouterId, str | None] = {RouterId(each): None for each in "ABCDEYZ"}
    links = {(RouterId("E"), RouterId("Z")): 1}
    a.mesh_presence.expect(ExpectedMesh(name="mesh", routers=routers, links=links), a.clock())
    bench.advance(120.0)
    source = ConsoleSource(a, RuntimeView(a, [], []), MeshStatusPoller(a))
    found = json.loads(result_of(source.page()))
    assert [(it["id"], it["here"]) for it in found["routers"]] == [("A", True), ("Y", False), ("Z", False)]
    assert [(it["one"], it["other"]) for it in found["links"]] == [("E", "Z"), ("A", "B")]
    assert len(found["problems"]) == 1
    totals = {key: found["totals"][key] for key in ("routers", "routers_here", "links", "problems")}
    assert totals == {"routers": 7, "routers_here": 5, "links": 5, "problems": 2}


def test_notices_without_room_on_the_page_are_counted_as_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "MOST_PROBLEMS", 1)
    bench = Bench()
    a, b, c = (bench.router(each) for each in "ABC")
    wires = [bench.join(a, b), bench.join(a, c)]
    bench.advance(5)
    for wire in wires:
        wire.cut()
    bench.advance(5)
    for other in (b, c):
        bench.join(a, other)
    bench.advance(5)
    found = json.loads(result_of(ConsoleSource(a, RuntimeView(a, [], []), MeshStatusPoller(a)).page()))
    assert [each["kind"] for each in found["problems"]] == ["lost-for-a-while"]
    assert (found["totals"]["problems"], found["totals"]["notices"]) == (2, 2)
