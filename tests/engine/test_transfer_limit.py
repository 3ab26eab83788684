"""Senders that take no notice of their credit: their links are closed, and others wait behind nothing of theirs."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Described, symbol, ulong

from mesh_config.models import Role
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.peer import message

EXCEEDED = "amqp:link:transfer-limit-exceeded"
FULL = 2**31 - 1
TOPIC = "openstack.org/om/rpc/anycast/openstack/topic"
CAST = "openstack.org/om/rpc/multicast/openstack/topic"


def attached(bench: Bench, router: Runtime, address: str | None) -> RawEnd:
    """A client with a sender at handle 0."""
    raw = bench.raw(router)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["reckless"]) + frames.write(0x11, [None, 0, FULL, FULL]))
    target = frames.target(address) if address else Described(ulong(0x29), [None])
    raw.write(frames.write(0x12, ["sender", 0, False, None, None, frames.source("me"), target, None, None, 0]))
    bench.run()
    return raw


def transfer(number: int, data: bytes, *, settled: bool, aborted: bool = False) -> bytes:
    fields: list[Any] = [0, number, number.to_bytes(4, "big"), 0, settled]
    if aborted:
        fields += [False, None, None, None, True]
    return frames.write(0x14, fields, payload=data)


def limit(raw: RawEnd) -> int:
    """The highest delivery-count plus credit that the sender was ever told."""
    flows = [frame for frame in frames.read(raw.read) if frame.name == "flow"]
    return max((f.flow("delivery_count") + f.flow("link_credit") for f in flows if f.flow("handle") == 0), default=0)


def detached(raw: RawEnd) -> list[str]:
    """Conditions of its links that were closed."""
    return [str(f.fields[2].value[0]) for f in frames.read(raw.read) if f.name == "detach" and f.field(2) is not None]


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("address", [TOPIC, CAST, None])
def test_a_transfer_beyond_every_limit_that_was_told_closes_its_link(
    any_bench: Bench, address: str | None, settled: bool
) -> None:
    router = any_bench.router("A", forwarding={"anonymous_window": 20})
    receiver = any_bench.client(router).receiver(address or TOPIC, credit=3)
    raw = attached(any_bench, router, address)
    data = message("x", address=address or TOPIC)
    for number in range(100):
        raw.write(transfer(number, data, settled=settled))
    any_bench.run()
    assert detached(raw) == [EXCEEDED]
    assert not [f for f in frames.read(raw.read) if f.name == "close"]
    assert len(receiver.messages) <= 3
    assert [link.name for link in router.data_plane.links] == [receiver.name]


@pytest.mark.parametrize("address", [TOPIC, CAST, None])
def test_others_are_served_as_if_nobody_ignored_its_credit(bench: Bench, address: str | None) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver(address or TOPIC, credit=1).accepting()
    honest = bench.client(router).sender(address)
    raw = attached(bench, router, address)
    data = message("flood", address=address or TOPIC)
    for number in range(500):
        raw.write(transfer(number, data, settled=True))
    bench.run()
    honest.send(message("honest", address=address or TOPIC))
    for _ in range(10):
        bench.advance(0.1)
        receiver.flow(1)
        bench.run()
    assert "honest" in receiver.bodies


@pytest.mark.parametrize("aborted", [False, True])
def test_empty_and_aborted_transfers_count_too(bench: Bench, aborted: bool) -> None:
    router = bench.router("A")
    bench.client(router).receiver(TOPIC, credit=3)
    raw = attached(bench, router, TOPIC)
    for number in range(100):
        raw.write(transfer(number, b"", settled=True, aborted=aborted))
    bench.run()
    assert detached(raw) == [EXCEEDED]


def test_what_crosses_the_flow_that_takes_credit_back_is_taken(any_bench: Bench) -> None:
    router = any_bench.router("A", forwarding={"waiting_messages": 1000})
    client = any_bench.client(router)
    receiver = client.receiver(TOPIC, credit=50).accepting()
    raw = attached(any_bench, router, TOPIC)
    number = 0
    data = message("x")
    for _ in range(30):  # a busy one is given more
        while number < limit(raw):
            raw.write(transfer(number, data, settled=True))
            number += 1
        any_bench.run()
        receiver.flow(max(0, 50 - receiver.credit))
        any_bench.run()
    told = limit(raw)
    assert told > number + 1
    any_bench.advance(8.0)  # it stands still, and its credit is taken back
    (link,) = [link for link in router.data_plane.links if link.name == "sender"]
    assert link.was_lowered
    before = len(receiver.messages)
    for one in range(number, told):
        raw.write(transfer(one, data, settled=True))
    any_bench.run()
    assert not detached(raw)
    assert len(receiver.messages) == before + told - number


def test_a_neighbor_beyond_its_credit_is_cut_off(bench: Bench) -> None:
    router = bench.router("A", forwarding={"router_window": 5})
    raw = bench.raw(router, role=Role.INTER_ROUTER)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["B"]) + frames.write(0x11, [None, 0, FULL, FULL]))
    for handle, capability in enumerate(("qd.router", "qd.router-data")):
        ends = [
            Described(ulong(code), [None] * empty + [symbol(capability)]) for code, empty in ((0x28, 10), (0x29, 6))
        ]
        raw.write(frames.write(0x12, [f"link{handle}", handle, False, None, None, *ends, None, None, 0]))
    bench.run()
    for number in range(100):
        fields = [1, number, number.to_bytes(4, "big"), 0, True]
        raw.write(frames.write(0x14, fields, payload=message("x", address="nobody")))
    bench.run()
    assert [str(f.fields[0].value[0]) for f in frames.read(raw.read) if f.name == "close"] == [EXCEEDED]
