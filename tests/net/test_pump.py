"""Sockets of a runtime: a peer that neither reads nor writes is given up, whatever is still to be written to it."""

from __future__ import annotations

import contextlib
import random
import socket

import pytest
import trio
import trio.testing

from mesh_config.models import ListenerSettings, RouterSettings
from router.core.ids_and_conditions import Condition
from router.net.poller import Poller
from router.net.pump import Pump
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.peer import message

FANOUT = "openstack.org/om/rpc/multicast/openstack/topic"
HEARTBEAT = b"\0\0\0\x08\x02\0\0\0"


@pytest.mark.parametrize("is_closed_by_us", [False, True])
async def test_a_peer_that_does_not_read_is_given_up_in_time(is_closed_by_us: bool) -> None:
    # A hundred times as fast; autojump would not wait for the kernel.
    clock = trio.testing.MockClock(rate=100)

    def main() -> None:
        trio.run(deaf_peer, is_closed_by_us, clock=clock)

    await trio.to_thread.run_sync(main)


async def deaf_peer(is_closed_by_us: bool) -> None:
    """It is silent too; when we have written Close, it sends heartbeats for ever."""
    runtime = Runtime(RouterSettings(id="A"), clock=trio.current_time, instance=1, rng=random.Random(1))
    connection = runtime.new_connection(ListenerSettings(idle_timeout_s=5), is_server=True)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    poller = Poller(trio.current_time, runtime)
    pump = Pump(ours, connection, runtime, poller)
    runtime.add_connection(connection, pump.flush)
    attach = ["r", 0, True, None, None, frames.source(FANOUT), frames.target(FANOUT)]
    theirs.sendall(
        frames.AMQP_HEADER
        + frames.write(0x10, ["deaf"])
        + frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
        + frames.write(0x12, attach)
        + frames.write(0x13, [None, 2**31 - 1, 0, 2**31 - 1, 0, 0, 10_000, None, False])
    )
    with ours, theirs, trio.fail_after(6000):  # a minute of the kernel's, on a machine that is busy
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            nursery.start_soon(serve, pump, nursery.cancel_scope)
            while runtime.fib.find(FANOUT) is None:
                await trio.lowlevel.checkpoint()
            for _ in range(200):
                runtime.data_plane.publish(FANOUT, message(b"x" * 10_000))
            runtime.turn(connection)
            if is_closed_by_us:
                connection.close(Condition.RESOURCE_LIMIT_EXCEEDED)
                runtime.turn(connection)
                nursery.start_soon(beat, theirs)
    assert connection.is_closed
    assert connection.end_reason is not None
    runtime.remove_connection(connection)
    poller.close()


async def beat(sock: socket.socket) -> None:
    with contextlib.suppress(BrokenPipeError):  # it is given up
        while True:
            sock.sendall(HEARTBEAT)
            await trio.sleep(1)


async def serve(pump: Pump, others: trio.CancelScope) -> None:
    await pump.run()
    others.cancel()


async def test_connections_that_end_at_once_leave_one_by_one_and_cost_no_rounds_meanwhile() -> None:
    runtime = Runtime(RouterSettings(id="A"), clock=trio.current_time, instance=1, rng=random.Random(1))
    poller = Poller(trio.current_time, runtime)
    left: list[int] = []
    passes = 0

    async def serve_one(pump: Pump) -> None:
        await pump.run()
        left.append(passes)

    async def count_passes() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    pairs = [socket.socketpair() for _ in range(50)]
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            nursery.start_soon(count_passes)
            async with poller.leaving:
                for ours, _ in pairs:
                    ours.setblocking(False)
                    connection = runtime.new_connection(ListenerSettings(), is_server=True)
                    pump = Pump(ours, connection, runtime, poller)
                    runtime.add_connection(connection, pump.flush)
                    nursery.start_soon(serve_one, pump)
                await trio.lowlevel.checkpoint()
                for _, theirs in pairs:
                    theirs.close()
                while poller.leaving.statistics().tasks_waiting < len(pairs):
                    await trio.lowlevel.checkpoint()
                rounds = poller.rounds
                for _ in range(100):
                    await trio.lowlevel.checkpoint()
                assert poller.rounds == rounds
                assert left == []
                assert [ours.fileno() for ours, _ in pairs] == [-1] * len(pairs), "their descriptors are free at once"
            while len(left) < len(pairs):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(set(left)) == len(left)
    poller.close()


async def test_who_has_not_said_who_it_is_waits_for_those_who_are_served() -> None:
    runtime = Runtime(RouterSettings(id="A"), clock=trio.current_time, instance=1, rng=random.Random(1))
    poller = Poller(trio.current_time, runtime)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    connection = runtime.new_connection(ListenerSettings(), is_server=True)
    pump = Pump(ours, connection, runtime, poller)
    runtime.add_connection(connection, pump.flush)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            nursery.start_soon(pump.run)
            assert pump.is_heavy
            theirs.sendall(frames.AMQP_HEADER)
            rounds = poller.rounds
            while poller.rounds == rounds:
                await trio.lowlevel.checkpoint()
            assert pump.is_heavy
            theirs.sendall(frames.write(0x10, ["who"]))
            while connection.peer is None:
                await trio.lowlevel.checkpoint()
            assert not pump.is_heavy
            theirs.close()
            while ours.fileno() >= 0:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    poller.close()
