"""Sockets of a runtime: a peer that neither reads nor writes is given up, whatever is still to be written to it."""

from __future__ import annotations

import random
import socket

import trio
import trio.testing

from mesh_config.models import ListenerSettings, RouterSettings
from router.net.poller import Poller
from router.net.pump import Pump
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.peer import message

FANOUT = "openstack.org/om/rpc/multicast/openstack/topic"


async def test_a_peer_that_neither_reads_nor_writes_is_given_up_in_time() -> None:
    # A hundred times as fast; autojump would not wait for the kernel.
    clock = trio.testing.MockClock(rate=100)

    def main() -> None:
        trio.run(deaf_peer, clock=clock)

    await trio.to_thread.run_sync(main)


async def deaf_peer() -> None:
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
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            nursery.start_soon(serve, pump, nursery.cancel_scope)
            while runtime.fib.find(FANOUT) is None:
                await trio.lowlevel.checkpoint()
            for _ in range(200):
                runtime.relay.publish(FANOUT, message(b"x" * 10_000))
            runtime.turn(connection)
    assert connection.is_closed
    assert connection.fault is not None
    runtime.remove_connection(connection)
    poller.close()
    theirs.close()


async def serve(pump: Pump, others: trio.CancelScope) -> None:
    await pump.run()
    others.cancel()
