"""Listening sockets: crowds come in at once."""

from __future__ import annotations

import socket

import trio
import trio.testing

from mesh_config.models import ListenerSettings
from router.net.listener import AT_ONCE, Listener


async def test_a_crowd_is_accepted_at_once() -> None:
    # In a busy process a wake-up comes once in a millisecond: one connection for each would be few.
    listener = Listener(ListenerSettings(host="127.0.0.1", port=0, max_connections=AT_ONCE - 4))
    crowd = [socket.create_connection((listener.host, listener.port)) for _ in range(AT_ONCE)]
    turn = 0
    served: list[int] = []
    full: list[Listener] = []

    async def serve(sock: socket.socket, settings: ListenerSettings) -> None:
        served.append(turn)
        sock.close()

    async def count_turns() -> None:
        nonlocal turn
        while True:
            await trio.lowlevel.checkpoint()
            turn += 1

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            nursery.start_soon(listener.accept, nursery, serve, full.append)
            while len(served) + listener.refused < len(crowd):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(served) == AT_ONCE - 4
    assert listener.refused == 4
    assert full == [listener]
    assert max(served) - min(served) <= 1
    listener.close()
    for sock in crowd:
        sock.close()
