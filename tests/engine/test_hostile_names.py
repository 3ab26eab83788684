"""Names with a NUL, which proton takes for their end: nobody gets at another address, or at another name, by one."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Data, Described, symbol, ulong

from mesh_config.models import Role
from router.engine.circuits import CIRCUIT
from router.views.management_service import serve_management
from tests.helpers import frames
from tests.helpers.engine import Bench, RawEnd
from tests.helpers.peer import message

BEGIN = [None, 0, 2**31 - 1, 2**31 - 1]
INVALID = "amqp:invalid-field"


def attach(source: str, target: str, *, is_receiver: bool, name: str = "link", handle: int = 0) -> bytes:
    """An attach frame."""
    termini = [frames.source(source), frames.target(target)]
    return frames.write(0x12, [name, handle, is_receiver, None, None, *termini, None, None, 0])


def opened(bench: Bench, router: Any, **listener: Any) -> RawEnd:
    """A peer with a session."""
    raw = bench.raw(router, **listener)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["raw"]) + frames.write(0x11, BEGIN))
    bench.run()
    return raw


def conditions(raw: RawEnd, name: str) -> list[str]:
    """The conditions of frames of a kind."""
    place = 2 if name == "detach" else 0
    return [str(frame.fields[place].value[0]) for frame in frames.read(raw.read) if frame.name == name]


@pytest.mark.parametrize("is_receiver", [False, True])
@pytest.mark.parametrize("address", ["a\0b", "a\0", "\0", "$management\0x", "_local/\0x", "a" * 300 + "\0"])
def test_a_link_with_a_nul_in_its_address_is_refused(any_bench: Bench, address: str, is_receiver: bool) -> None:
    router = any_bench.router("A")
    serve_management(router)
    own = any_bench.client(router).receiver("a", credit=10)
    raw = opened(any_bench, router)
    raw.write(attach(address, "other", is_receiver=True) if is_receiver else attach("o", address, is_receiver=False))
    any_bench.run()
    assert conditions(raw, "detach") == [INVALID]
    answer = next(frame for frame in frames.read(raw.read) if frame.name == "attach")
    assert answer.field(5 if is_receiver else 6) is None
    assert [entry.text for entry in router.fib.entries() if entry.subscribers] == ["a"]
    assert not own.messages
    raw.write(attach("a", "a", is_receiver=is_receiver, name="right", handle=1))
    any_bench.run()
    assert conditions(raw, "detach") == [INVALID]  # the connection goes on


@pytest.mark.parametrize("is_receiver", [False, True])
def test_a_link_with_a_nul_in_the_address_at_its_own_side_is_refused(bench: Bench, is_receiver: bool) -> None:
    raw = opened(bench, bench.router("A"))
    raw.write(attach("a", "o\0x", is_receiver=True) if is_receiver else attach("o\0x", "a", is_receiver=False))
    bench.run()
    assert conditions(raw, "detach") == [INVALID]


def test_a_name_of_a_link_with_a_nul_ends_the_connection(any_bench: Bench) -> None:
    raw = opened(any_bench, any_bench.router("A"))
    raw.write(attach("a", "a", is_receiver=True, name="x\0a"))
    any_bench.run()
    assert conditions(raw, "close") == [INVALID]


@pytest.mark.parametrize("fields", [["B\0C"], ["B", "host\0name"]])
@pytest.mark.parametrize("role", [Role.NORMAL, Role.INTER_ROUTER])
def test_an_open_with_a_nul_in_a_name_ends_the_connection(bench: Bench, role: Role, fields: list[str]) -> None:
    router = bench.router("A")
    raw = bench.raw(router, role=role)
    raw.write(frames.AMQP_HEADER + frames.write(0x10, fields))
    bench.run()
    assert conditions(raw, "close") == [INVALID]
    assert "B" not in router.fib.routes


def test_a_message_to_an_address_with_a_nul_goes_to_no_other(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    victims = [bench.client(router).receiver("a", credit=10) for router in routers]
    sender = bench.client(routers[0]).sender(None)
    bench.run()
    properties = Data()  # proton's own message would be cut
    properties.put_object(Described(ulong(0x73), [None, None, "a\0b"]))
    sent = sender.send(properties.encode() + message("x"))
    bench.run()
    assert sent.outcome == "released"
    assert [victim.messages for victim in victims] == [[], []]


def test_a_circuit_to_an_address_with_a_nul_is_refused(bench: Bench) -> None:
    router = bench.router("A")
    bench.client(router).receiver("a", credit=10)
    capabilities = [symbol("amqp-mesh.circuits.1")]
    raw = bench.raw(router, role=Role.INTER_ROUTER)
    raw.write(
        frames.AMQP_HEADER
        + frames.write(0x10, ["RAW", None, None, None, None, None, None, capabilities, capabilities])
        + frames.write(0x11, BEGIN)
    )
    target = Described(ulong(0x29), ["a\0b", 0, symbol("session-end"), 0, False, None, symbol(CIRCUIT)])
    properties = {symbol("amqp-mesh.egress"): "A"}
    termini = [frames.source("a"), target]
    raw.write(frames.write(0x12, ["c", 0, False, None, None, *termini, None, None, 0, None, None, None, properties]))
    bench.run()
    assert conditions(raw, "detach") == [INVALID]
    detach = next(frame for frame in frames.read(raw.read) if frame.name == "detach")
    assert "NUL" in detach.fields[2].value[1]


@pytest.mark.parametrize("address", ["a\x1bb", "a\nb", "a\u202eb", "a\x7f"])
def test_other_control_characters_are_part_of_an_address(bench: Bench, address: str) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver(address, credit=10)
    sender = bench.client(router).sender(address)
    bench.run()
    sender.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]
