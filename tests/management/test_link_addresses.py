"""Addresses of links in `router.link`, of circuits above all: by them an operator finds where messages leave."""

from __future__ import annotations

import pytest

from router.management.snapshot import LinkRow
from router.runtime import Runtime
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench
from tests.helpers.peer import message


def addresses(router: Runtime) -> set[tuple[str, str, str | None]]:
    """Type, direction and address of each link but control links and data links."""
    rows = [row for row in RuntimeView(router, [], []).rows(LinkRow) if isinstance(row, LinkRow)]
    return {
        (row.link_type, row.link_dir, row.owning_addr)
        for row in rows
        if row.owning_addr is not None and row.link_type != "router-control"
    }


@pytest.mark.parametrize("address", ["jobs", "broadcast/jobs"], ids=["anycast", "multicast"])
def test_a_circuit_has_its_address_at_both_ends(address: str) -> None:
    bench = Bench()
    a, b, c = (bench.router(name) for name in "ABC")
    bench.join(a, b)
    bench.join(b, c)
    bench.advance(5.0)
    bench.client(c).receiver(address, credit=10)
    bench.run()
    bench.client(a).sender(address)
    bench.run()
    key = f"M0{address}"
    assert addresses(a) == {("endpoint", "in", key), ("inter-router", "out", key)}
    assert addresses(b) == {("inter-router", "in", key), ("inter-router", "out", key)}
    assert addresses(c) == {("inter-router", "in", key), ("endpoint", "out", key)}


def test_a_circuit_of_replies_has_the_address_that_their_sender_shows() -> None:
    bench = Bench()
    a, b = (bench.router(name) for name in "AB")
    bench.join(a, b)
    bench.advance(5.0)
    replies = bench.client(a).receiver(None, dynamic=True, credit=10)
    bench.run()
    server = bench.client(b).sender(replies.address)
    bench.run()
    for _ in range(3):  # the first goes without a circuit
        server.send(message("x"))
        bench.run()
    found = addresses(b)
    (key,) = {address for _, _, address in found}
    assert found == {("endpoint", "in", key), ("inter-router", "out", key)}
    assert str(key).startswith("RA/temp.")
