"""Listening sockets: crowds come in at once."""

from __future__ import annotations

import collections
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
import trio.testing

from mesh_config.models import ListenerSettings
from router.net.listener import AT_ONCE, AcceptedConnection, Listener, Refusal


async def test_of_a_crowd_a_few_are_accepted_between_the_turns_of_others(
    autojump_clock: trio.testing.MockClock,  # it stands still while there is work: a busy machine doesn't shorten turns
) -> None:
    # In a busy process a wake-up comes once in a millisecond: one connection for each would be few.
    listener = Listener(ListenerSettings(host="127.0.0.1", port=0, max_connections=15 * AT_ONCE))
    crowd = [socket.create_connection((listener.host, listener.port)) for _ in range(15 * AT_ONCE + 4)]
    turn = 0
    served: list[int] = []
    full: list[tuple[Listener, Refusal, str]] = []

    async def serve(sock: socket.socket, settings: ListenerSettings, guest: AcceptedConnection) -> None:
        served.append(turn)
        with sock:
            await trio.sleep_forever()

    async def count_turns() -> None:
        nonlocal turn
        while True:
            await trio.lowlevel.checkpoint()
            turn += 1

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(count_turns)
            nursery.start_soon(listener.accept, nursery, serve, lambda *told: full.append(told), trio.Lock())
            while len(served) + listener.refused < len(crowd):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(served) == 15 * AT_ONCE
    assert listener.refused == 4
    assert full == [(listener, Refusal.FULL, "127.0.0.1")]
    assert max(collections.Counter(served).values()) <= 2 * AT_ONCE  # tasks of a pass run in any order
    assert max(served) - min(served) <= 4 * 15
    listener.close()
    for sock in crowd:
        sock.close()


class Stand:
    """A listener, its guests and whom it has refused."""

    def __init__(self, **settings: int) -> None:
        spare = os.dup(0)  # the lowest descriptor that is free
        os.close(spare)
        files = settings.pop("files", 1000)
        self.listener = Listener(ListenerSettings(host="127.0.0.1", port=0, **settings), files=spare + files)
        self.crowd: list[socket.socket] = []
        self.guests: list[AcceptedConnection] = []
        self.given_up: list[AcceptedConnection] = []
        self.refused: list[tuple[Refusal, str]] = []
        self.leaving = trio.Lock()

    async def serve(self, sock: socket.socket, settings: ListenerSettings, guest: AcceptedConnection) -> None:
        over = trio.Event()
        self.guests.append(guest)

        def give_up(reason: str) -> None:
            assert "max_handshakes" in reason
            self.given_up.append(guest)
            over.set()

        guest.served_by(give_up)
        try:
            await over.wait()
        finally:
            self.guests.remove(guest)
            sock.close()

    async def come(self, count: int, host: str = "127.0.0.1") -> None:
        """Connections of *host*, accepted or refused when this returns."""
        seen = self.listener.count + self.listener.refused + len(self.given_up)
        for _ in range(count):
            address = (self.listener.host, self.listener.port)
            self.crowd.append(socket.create_connection(address, source_address=(host, 0)))
        with trio.fail_after(20):
            while self.listener.count + self.listener.refused + len(self.given_up) < seen + count:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def stand(**settings: int) -> AsyncIterator[Stand]:
    bench = Stand(**settings)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            bench.listener.accept,
            nursery,
            bench.serve,
            lambda _, reason, host: bench.refused.append((reason, host)),
            bench.leaving,
        )
        yield bench
        nursery.cancel_scope.cancel()
    bench.listener.close()
    for sock in bench.crowd:
        sock.close()
    assert not bench.listener._of_host
    assert not bench.listener._handshakes


async def test_a_host_has_no_more_connections_than_its_bound_and_others_come_in() -> None:
    async with stand(max_connections_of_host=2) as bench:
        await bench.come(4)
        assert len(bench.guests) == 2
        assert bench.refused == [(Refusal.HOST_FULL, "127.0.0.1")] * 2
        await bench.come(1, "127.0.0.2")
        assert [guest.host for guest in bench.guests] == ["127.0.0.1", "127.0.0.1", "127.0.0.2"]


async def test_of_too_many_that_say_nothing_the_oldest_goes_and_those_that_spoke_stay() -> None:
    async with stand(max_handshakes=2) as bench:
        await bench.come(1)
        (spoke,) = bench.guests
        spoke.opened()
        await bench.come(1)
        (oldest,) = (guest for guest in bench.guests if guest is not spoke)
        await bench.come(1)
        assert bench.given_up == []
        await bench.come(1)
        assert bench.given_up == [oldest]
        assert spoke in bench.guests
        assert bench.listener.refused == 0


async def test_a_connection_whose_descriptor_is_for_others_is_refused_and_told_once() -> None:
    async with stand(files=6) as bench:  # the crowd is of this process too
        await bench.come(5)
        assert bench.listener.refused > 1
        assert bench.refused == [(Refusal.FILES_SHORT, "127.0.0.1")]


async def test_nobody_is_accepted_while_others_wait_to_leave() -> None:
    async with stand() as bench:
        await bench.come(1)
        async with bench.leaving:
            bench.crowd.append(socket.create_connection((bench.listener.host, bench.listener.port)))
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert len(bench.guests) == 1
        with trio.fail_after(20):
            while len(bench.guests) < 2:
                await trio.lowlevel.checkpoint()
