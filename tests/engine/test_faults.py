"""Faults of the program itself: each ends what it happened to, is logged once, and leaves no table behind it wrong."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from proton import Disposition

from router.binding.proton_functions import NULL
from router.core.events import Action, Event, InstallRouter
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.anycast_controller import AnycastController
from router.dataplane.links import IngressLink, new_transfer
from router.runtime import Runtime
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import message

Read = Callable[[], list[str]]


@pytest.fixture
def faults(capsys: pytest.CaptureFixture[str]) -> Read:
    """The events of the log that tell of faults, since it was read last."""

    def read() -> list[str]:
        lines = capsys.readouterr()
        words = re.sub(r"\x1b\[[0-9;]*m", "", lines.out + lines.err).split()
        events = [word.removeprefix("event=") for word in words]
        return [event for event in events if event.endswith("_fault") or event == "installed_anew"]

    return read


class Bug(Action):
    """An order that nobody can carry out."""


def broken(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("a bug")


def mesh(bench: Bench) -> tuple[Runtime, Runtime]:
    """Routers A, which has a fault, and B; two addresses with subscribers at B, none known at A yet."""
    a, b = bench.router("A", is_forgiving=True), bench.router("B")
    bench.join(a, b)
    bench.advance(2)
    return a, b


def spoil(router: Runtime, name: str, bug: Action) -> None:
    """Let the next actions of the control plane begin with *bug*."""
    driver = getattr(router.control, name)

    def spoiled(*arguments: Any, **words: Any) -> list[Action]:
        actions = driver(*arguments, **words)
        if actions:
            setattr(router.control, name, driver)
            return [bug, *actions]
        return list(actions)

    setattr(router.control, name, spoiled)


IMPOSSIBLE = InstallRouter(router=RouterId("Z"), connection=ConnectionId(99), next_hop=RouterId("Z"), cost=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("bug", [Bug(), IMPOSSIBLE], ids=["unknown", "half done"])
def test_after_a_failed_action_the_others_are_carried_out_and_the_fib_is_right(
    bench: Bench, faults: Read, bug: Action
) -> None:
    a, b = mesh(bench)
    faults()
    a.fib.install_router(RouterId("Z"), ConnectionId(1), RouterId("Z"), 1, now=bench.now)  # what a fault has left
    a.fib.install_address("old", RouterId("B"), None)
    spoil(a, "handle", bug)
    receiver = bench.client(b).receiver("topic", credit=5).accepting()
    bench.advance(2)
    assert faults()[-1:] == ["installed_anew"] or "installed_anew" in faults()
    assert set(a.fib.routes) == {"B"}
    assert a.fib.find("old") is None
    entry = a.fib.find("topic")
    assert entry is not None
    assert set(entry.remotes) == {"B"}
    sender = bench.client(a).sender("topic")
    bench.run()
    sender.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]
    a.fib.check_invariants()


def test_what_fails_again_while_all_is_installed_anew_is_tried_again_after_a_pause(bench: Bench, faults: Read) -> None:
    a, b = mesh(bench)
    bench.client(b).receiver("topic", credit=5)
    bench.advance(2)
    faults()
    installed = a.control.installed
    a.control.installed = lambda: [Bug(), *installed()]  # type: ignore[method-assign]
    a._resync.want(bench.now)
    a.handle([], bench.now)
    bench.advance(0.5)
    assert faults().count("action_fault") <= 1
    bench.advance(10)
    assert 2 <= faults().count("installed_anew") <= 8
    a.control.installed = installed  # type: ignore[method-assign]
    bench.advance(60)
    faults()
    bench.advance(60)
    assert faults() == []


def test_an_event_that_fails_keeps_no_other_from_being_handled(bench: Bench, faults: Read) -> None:
    a, b = mesh(bench)
    receiver = bench.client(a).receiver("one", credit=1)
    a.events.extend(["nonsense"])  # type: ignore[list-item]
    other = bench.client(a).receiver("other", credit=1)
    bench.advance(2)
    assert receiver.is_attached
    assert other.is_attached
    assert {"one", "other"} <= set(a.control.own_addresses())
    assert b.fib.find("one") is not None
    assert b.fib.find("other") is not None
    assert "installed_anew" in faults()


def test_a_subscription_of_which_the_control_plane_did_not_hear_is_told_anew(bench: Bench) -> None:
    a, b = mesh(bench)
    handle = a.control.handle

    def deaf(events: Sequence[Event], *, now: float) -> list[Action]:
        a.control.handle = handle  # type: ignore[method-assign]
        a.control.failing = events[0]
        raise ZeroDivisionError("a bug")

    a.control.handle = deaf  # type: ignore[method-assign]
    bench.client(a).receiver("topic", credit=1)
    bench.advance(2)
    assert b.fib.find("topic") is not None


def test_a_control_plane_that_fails_at_its_deadline_rests_and_goes_on(bench: Bench, faults: Read) -> None:
    a, b = mesh(bench)
    driver = a.control.handle_deadline
    a.control.handle_deadline = broken  # type: ignore[method-assign]
    faults()
    bench.advance(2.5)
    assert 1 <= faults().count("turn_fault") <= 4
    a.control.handle_deadline = driver  # type: ignore[method-assign]
    bench.advance(5)
    assert set(a.fib.routes) == {"B"}
    assert set(b.fib.routes) == {"A"}


def test_a_handler_that_raises_ends_its_connection_only(bench: Bench, faults: Read) -> None:
    router = bench.router("A", is_forgiving=True)
    good = bench.client(router, container="good")
    receiver = good.receiver("topic", credit=5).accepting()
    bench.run()
    attached = router._peers.link_attached
    router._peers.link_attached = broken  # type: ignore[method-assign]
    bad = bench.client(router, container="bad")
    bad.receiver("topic", credit=5)
    bench.run()
    router._peers.link_attached = attached  # type: ignore[method-assign]
    assert faults() == ["connection_fault"]
    assert [it.peer.container for it in router.connections.values() if it.peer and not it.is_ending] == ["good"]
    sender = good.sender("topic")
    bench.run()
    sender.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]


def test_a_flush_that_raises_ends_its_connection_only(bench: Bench, faults: Read) -> None:
    router = bench.router("A", is_forgiving=True)
    good, bad = bench.client(router, container="good"), bench.client(router, container="bad")
    receiver = good.receiver("topic", credit=5).accepting()
    lost = bad.receiver("other", credit=5)
    bench.run()
    assert lost.is_attached
    (connection,) = (it for it in router.connections.values() if it.peer and it.peer.container == "bad")
    aborted: list[bool] = []
    router.flushers[connection.id] = broken
    router.aborters[connection.id] = lambda: aborted.append(True)
    sender = good.sender("other")
    bench.run()
    for number in range(3):
        if sender.credit:
            sender.send(message(number))
        bench.run()
    assert faults() == ["connection_fault"]
    assert aborted
    bench.wires[-1].cut()
    sender = good.sender("topic")
    bench.run()
    sender.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]
    assert router.fib.find("other") is None or not router.fib.find("other").subscribers  # type: ignore[union-attr]


def test_a_connection_whose_end_fails_is_forgotten_with_all_other_links(faults: Read) -> None:
    bench = Bench()
    router = bench.router("A", is_forgiving=True)
    client = bench.client(router)
    for name in ("a", "b", "c"):
        client.receiver(name, credit=1)
    bench.run()
    detach = router._peers._client_links.detach
    left = [True]

    def fail_once(connection: Any, handle: Any) -> None:
        if left:
            left.pop()
            broken()
        detach(connection, handle)

    router._peers._client_links.detach = fail_once  # type: ignore[method-assign]
    bench.wires[-1].cut()
    bench.run()
    assert "connection_fault" in faults()
    assert not router.connections
    assert sum(1 for entry in router.fib.entries() if getattr(entry, "subscribers", None)) == 1


def test_a_turn_that_would_have_no_end_is_ended_and_others_are_served(bench: Bench, faults: Read) -> None:
    a, _ = mesh(bench)
    before = set(a.connections)
    restless = bench.client(a)
    bench.run()
    (number,) = a.connections.keys() - before
    receiver = bench.client(a).receiver("topic", credit=5).accepting()
    sender = bench.client(a).sender("topic")
    bench.run()
    flush = a.flushers[number]

    def again() -> None:
        flush()
        a.connections[number].port.touch()

    a.flushers[number] = again
    restless.sender("other")
    bench.run()
    assert "turn_fault" in faults()
    sender.send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]


class FailsOnce(OrderedDict[Any, Any]):
    """Subscribers with credit; who looks whether there are any meets a fault, once."""

    is_spent = False

    def __bool__(self) -> bool:
        if self.is_spent:
            return len(self) > 0
        self.is_spent = True
        raise ZeroDivisionError("a bug")


def fail_next_send(router: Runtime) -> None:
    """Let the next message to a subscriber of "topic" at this router meet a fault."""
    controller = router.data_plane.credit_manager.find(router.fib.find("topic"))
    assert isinstance(controller, AnycastController)
    controller._able = FailsOnce(controller._able)


def test_a_message_whose_sending_fails_ends_alone_and_the_address_goes_on(bench: Bench, faults: Read) -> None:
    router = bench.router("A", is_forgiving=True)
    receiver = bench.client(router).receiver("topic", credit=1).accepting()
    senders = [bench.client(router).sender("topic") for _ in range(3)]
    senders[0].send(message("first"))
    bench.run()
    failing, waiting = senders[0].send(message("failing")), senders[1].send(message("waiting"))
    bench.run()
    fail_next_send(router)
    receiver.flow(10)
    bench.run()
    assert faults() == ["message_fault"]
    assert (failing.outcome, waiting.outcome) == ("modified", "accepted")
    later = [sender.send(message("later")) for sender in senders]
    bench.run()
    assert [sent.outcome for sent in later] == ["accepted"] * 3
    assert receiver.bodies == ["first", "waiting", *["later"] * 3]
    assert faults() == []


def test_a_message_that_comes_in_a_turn_with_a_fault_waits_for_the_next_credit(bench: Bench, faults: Read) -> None:
    router = bench.router("A", is_forgiving=True)
    client = bench.client(router)
    receiver = client.receiver("topic", credit=1).accepting()
    first, second = bench.client(router).sender("topic"), client.sender("topic")
    first.send(message("first"))
    bench.run()
    failing = first.send(message("failing"))
    bench.run()
    fail_next_send(router)
    receiver.flow(1)
    queued = second.send(message("queued"))  # in the same write
    bench.run()
    assert failing.outcome == "modified"
    receiver.flow(10)
    bench.run()
    assert queued.outcome == "accepted"
    assert faults() == ["message_fault"]


def test_a_message_that_fails_on_its_second_way_keeps_no_other_from_it(bench: Bench, faults: Read) -> None:
    router = bench.router("A", is_forgiving=True)
    receiver = bench.client(router).receiver("other", credit=10).accepting()
    failing = router.fib.attach("one")
    failing.service, failing.service_bytes = broken, 1000
    other = router.fib.find("other")
    assert other is not None
    for entry in (failing, other):
        transfer = new_transfer(None, NULL, bench.now)
        transfer.is_complete = transfer.is_settled = True
        transfer.append(message("x"))
        transfer.entry = entry
        router.data_plane.settlement.strand(transfer)
    faults()
    router.settle()
    bench.run()
    assert faults() == ["message_fault"]
    assert receiver.bodies == ["x"]


class FaultyRate:
    """A bound of messages in a second that can't be asked."""

    wait = take = broken


def test_a_fault_while_a_paused_link_is_read_ends_its_own_connection(bench: Bench, faults: Read) -> None:
    router = bench.router("A", is_forgiving=True, forwarding={"held_message_bytes": 1000})
    subscriber = bench.client(router, container="subscriber")
    receiver = subscriber.receiver("topic", credit=10)
    plug = subscriber.wire.ends[1]
    assert isinstance(plug, Plug)
    plug.room, subscriber.wire.is_still = 100_000, True
    sender = bench.client(router, container="publisher").sender("topic")
    sender.send(message("x" * 300_000))
    sender.send(message("next"))
    bench.run()
    (link,) = [link for link in router.data_plane.links if isinstance(link, IngressLink)]
    assert link.is_paused
    link.rate = FaultyRate()  # type: ignore[assignment]
    faults()
    subscriber.give(bytes(plug.written))
    delivery = receiver.link.current
    delivery.update(Disposition.REJECTED)
    delivery.settle()
    plug.give(subscriber.take())  # the sender's link is read on in this turn
    assert faults() == ["connection_fault"]
    assert [it.peer.container for it in router.connections.values() if it.peer and not it.is_ending] == ["subscriber"]
