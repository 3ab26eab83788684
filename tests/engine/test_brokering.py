"""Exact credit on real links: circuits, reply addresses, changes of path, and what is left when nobody needs it."""

from __future__ import annotations

import gc

import pytest

from router.core.linkstate.messages import MobileAddressUpdate
from router.dataplane.anycast_controller import AnycastController
from router.engine import control_writer
from tests.helpers.engine import Bench
from tests.helpers.peer import message

LINE = (("A", "B"), ("B", "C"))


def test_replies_cross_the_mesh_first_as_a_datagram_and_then_on_a_circuit(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    requester = bench.client(c).receiver(None, dynamic=True, credit=100).accepting()
    sender = bench.client(a).sender(requester.address)
    assert sender.credit == 1
    sent = []
    for number in range(10):
        sent.append(sender.send(message(number)))
        bench.run()
        circuits = len(next(iter(a.data_plane.ports.values())).circuits_out)
        assert circuits == (number > 0)
    assert requester.bodies == list(range(10))
    assert [one.outcome for one in sent] == ["accepted"] * 10


def test_a_fault_with_one_address_stops_no_other(bench: Bench) -> None:
    router = bench.router("A", is_forgiving=True)
    client = bench.client(router)
    receivers = [client.receiver(address, credit=5).accepting() for address in ("bad", "good")]
    senders = [client.sender(address) for address in ("bad", "good")]
    entry = router.fib.find("bad")
    assert entry is not None
    controller = router.data_plane.credit_manager.of(entry)

    controller.windowed[router.me] = "broken"  # type: ignore[assignment]
    for sender in senders:
        sender.send(message("x"))
    bench.run()
    assert receivers[0].bodies == ["x"], "sent as it came, before the turn that fails"
    assert receivers[1].bodies == ["x"]


def test_a_publisher_gets_no_credit_for_a_requester_that_nobody_reaches(bench: Bench) -> None:
    a, _ = bench.mesh(("A", "B"))
    sender = bench.client(a).sender("_topo/0/Z/temp.x")
    assert sender.credit == 0


def test_a_requester_that_leaves_ends_the_circuits_of_its_reply_address(bench: Bench) -> None:
    routers = bench.mesh(*LINE, forwarding={"circuit_idle_s": 5.0})
    requester = bench.client(routers[2])
    receiver = requester.receiver(None, dynamic=True, credit=100).accepting()
    clients = [bench.client(router) for router in routers]
    senders = [client.sender(receiver.address) for client in clients]
    for number in range(3):
        for sender in senders:
            sender.send(message(number))
        bench.run()
    assert len(receiver.messages) == 9
    assert any(port.circuits_out for port in routers[0].data_plane.ports.values())
    receiver.close()
    bench.run()
    late = [sender.send(message("late")) for sender in senders[:2]]
    bench.advance(0.2)
    assert [one.outcome for one in late] == ["released"] * 2
    again = senders[0].send(message("again"))
    bench.advance(0.2)
    assert again.outcome == "released"
    for client in clients:
        client.close()
    bench.advance(20)
    for router in routers:
        assert not list(router.data_plane.credit_manager)
        assert not any(port.circuits_in or port.circuits_out for port in router.data_plane.ports.values())


def test_circuits_are_ended_when_nobody_needs_them(bench: Bench) -> None:
    routers = bench.mesh(*LINE, forwarding={"circuit_idle_s": 5.0})
    receiver = bench.client(routers[2]).receiver("topic", credit=10).accepting()
    sender = bench.client(routers[0]).sender("topic")
    sender.send(message(1))
    bench.advance(4)
    ports = [port for router in routers for port in router.data_plane.ports.values()]
    assert sum(len(port.circuits_out) for port in ports) == 2
    bench.advance(8)
    assert sum(len(port.circuits_out) + len(port.circuits_in) for port in ports) == 0
    sent = sender.send(message(2))
    bench.advance(1)
    assert receiver.bodies == [1, 2]
    assert sent.outcome == "accepted"


def test_a_change_of_path_moves_the_circuit_and_outcomes_still_come_by_the_old_one(bench: Bench) -> None:
    a, b, _ = bench.mesh(*LINE)
    c = bench.routers["C"]
    receiver = bench.client(c).receiver("topic", credit=10)
    sender = bench.client(a).sender("topic")
    first = sender.send(message(1))
    bench.run()
    bench.join(a, c)
    bench.advance(0.5)
    second = sender.send(message(2))
    bench.advance(0.1)
    assert receiver.bodies == [1, 2]
    for received in receiver.messages:
        received.settle()
    bench.run()
    assert (first.outcome, second.outcome) == ("accepted", "accepted")
    bench.advance(2)
    assert not any(port.circuits_in for port in b.data_plane.ports.values())


def test_messages_of_several_routers_meet_at_one_subscriber(bench: Bench) -> None:
    routers = bench.mesh(*LINE)
    receiver = bench.client(routers[2]).receiver("topic", credit=5).accepting()
    senders = [bench.client(router).sender("topic") for router in routers for _ in range(2)]
    sent = [sender.send(message(number)) for number in range(20) for sender in senders]
    for _ in range(400):
        bench.advance(0.01)
        receiver.flow(max(0, 5 - receiver.credit))
        if len(receiver.messages) == len(sent):
            break
    assert len(receiver.messages) == len(sent)
    assert {one.outcome for one in sent} == {"accepted"}


def test_a_drain_is_answered_across_the_mesh_after_what_waits(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    sender, other = bench.client(a).sender("topic"), bench.client(a).sender("topic")
    sender.send(message(1))
    bench.run()
    sender.send(message(2))
    other.send(message(3))
    bench.run()
    assert receiver.bodies == [1]
    receiver.drain(5)
    bench.advance(0.1)
    assert sorted(receiver.bodies) == [1, 2, 3]
    assert receiver.credit == 0
    assert receiver.link.drained() == 3


def test_a_get_with_a_time_out_works_across_the_mesh(bench: Bench) -> None:
    """A receiver that asks for one message, waits, and takes its credit back."""
    a, _, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic").accepting()
    sender = bench.client(a).sender("topic")
    for number in range(5):
        receiver.flow(1)
        bench.advance(0.5)
        receiver.drain(0)
        bench.advance(1.2)
        assert receiver.credit == 0
        assert len(receiver.messages) == number
        sender.send(message(number))
        bench.advance(0.2)
        receiver.flow(1)
        bench.advance(0.2)
        assert receiver.bodies == list(range(number + 1))


def test_a_subscriber_that_grants_all_and_reads_nothing_costs_its_publishers_credit(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    deaf = bench.client(c)
    receiver = deaf.receiver("topic", credit=2**31 - 1)
    publisher = bench.client(a)
    sender = publisher.sender("topic")
    deaf.wire.ends[1].room = 0  # type: ignore[attr-defined]
    sent = [sender.send(message("x" * 10_000), settled=True) for _ in range(2000)]
    bench.advance(2)
    assert sender.credit <= 1 - (len(sent) - 1000)
    for router in bench.routers.values():
        assert sum(entry.waiting_bytes for entry in router.fib.entries()) < 4_000_000
    deaf.wire.ends[1].room = float("inf")  # type: ignore[attr-defined]
    for _ in range(200):
        bench.advance(0.1)
    assert len(receiver.messages) == 2000


def controllers() -> int:
    return sum(isinstance(one, AnycastController) for one in gc.get_objects())


def test_nothing_is_left_of_an_address_for_the_collector(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    gc.collect()
    before = controllers()
    gc.disable()
    try:
        for _ in range(10):
            receiver = client.receiver(None, dynamic=True, credit=10).accepting()
            sender = client.sender(receiver.address)
            sender.send(message("x"))
            bench.run()
            assert receiver.bodies == ["x"]
            sender.close()
            receiver.close()
            bench.run()
        assert not list(router.data_plane.credit_manager)
        bench.advance(5)
        assert controllers() <= before
    finally:
        gc.enable()


def test_a_message_to_all_neighbors_is_encoded_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    *others, hub = bench.mesh(*(("H", leaf) for leaf in ("A", "B", "C", "D")))
    encoded: list[object] = []
    encode = control_writer.encode_control

    def counted(to: str, message: object, *rest: object) -> object:
        encoded.append(message)
        return encode(to, message, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(control_writer, "encode_control", counted)
    bench.client(hub).receiver("topic", credit=1)
    bench.advance(1)
    assert all(router.fib.find("topic") is not None for router in others)
    assert sum(isinstance(message, MobileAddressUpdate) and message.id == "H" for message in encoded) == 1


def test_a_fault_of_the_control_plane_keeps_nobody_from_being_written(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    router = bench.router("A", is_forgiving=True)
    client = bench.client(router)
    receiver = client.receiver("good", credit=5).accepting()
    sender = client.sender("good")
    router.events.append("nonsense")  # type: ignore[arg-type]
    sender.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]
    lines = capsys.readouterr()
    assert "turn_fault" in lines.out + lines.err
