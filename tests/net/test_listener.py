"""Listening sockets: crowds come in at once."""

from __future__ import annotations

import collections
import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from mesh_config.models import HttpSettings, ListenerSettings
from router.core.errors import LocalError
from router.net import listener
from router.net.http_server import HttpCounters, HttpServer
from router.net.listener import MOST_WAITING, AcceptedConnection, Listener, Refusal


def test_a_listener_for_which_no_file_is_left_is_an_error_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_files(*_: object) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(socket, "socket", without_files)
    with pytest.raises(LocalError, match=r"cannot listen on 127\.0\.0\.1:5672: Too many open files"):
        Listener(ListenerSettings(host="127.0.0.1", port=5672))
    with pytest.raises(LocalError, match=r"cannot listen for HTTP on 127\.0\.0\.1:8080: Too many"):
        HttpServer(HttpSettings(host="127.0.0.1", port=8080), lambda *_: None, HttpCounters(), lambda _: None)  # type: ignore[arg-type,return-value]


def test_a_host_name_with_an_address_of_ipv6_alone_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = socket.getaddrinfo

    def look_up(host: object, port: object, family: int = 0, *rest: int, **options: int) -> list[tuple[object, ...]]:
        if host != "six.example":
            return list(looked_up(host, port, family, *rest, **options))  # type: ignore[call-overload]
        if family == socket.AF_INET:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 0, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    bound = Listener(ListenerSettings(host="six.example", port=0))
    assert bound.host == "::1"
    bound.close()


def test_a_host_name_with_addresses_of_both_kinds_is_bound_at_that_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET6, 1, 6, "", ("::1", 0, 0, 0)), (socket.AF_INET, 1, 6, "", ("127.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    assert listener.address_of(ListenerSettings(host="both.example")) == "127.0.0.1"


async def test_of_a_crowd_a_few_are_accepted_between_the_turns_of_others(
    autojump_clock: trio.testing.MockClock,  # it stands still while there is work: a busy machine doesn't shorten turns
) -> None:
    # In a busy process a wake-up comes once in a millisecond: one connection for each would be few.
    listener = Listener(ListenerSettings(host="127.0.0.1", port=0, max_connections=15))
    crowd = [socket.create_connection((listener.host, listener.port)) for _ in range(19)]
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
            nursery.start_soon(listener.accept, nursery, serve, lambda *told: full.append(told))
            while len(served) + listener.refused < len(crowd):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(served) == 15
    assert listener.refused == 4
    assert full == [(listener, Refusal.FULL, "127.0.0.1")]
    assert max(collections.Counter(served).values()) <= 2  # tasks of a pass run in any order
    assert max(served) - min(served) <= 4 * 15
    listener.close()
    for sock in crowd:
        sock.close()


class TickingClock(trio.abc.Clock):
    """A clock that goes on by a tenth of a millisecond whenever it is read."""

    now = 0.0

    def start_clock(self) -> None:
        """It goes from the start."""

    def current_time(self) -> float:
        self.now += 0.0001
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return max(0.0, deadline - self.now)


class AbortedPeers:
    """A listening socket all of whose peers are gone before they are accepted, a thousand in a row."""

    def __init__(self, sock: socket.socket) -> None:
        self.fileno = sock.fileno
        self.close = sock.close
        self.tries = 0

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        self.tries += 1
        if self.tries % 1000 == 0:
            raise BlockingIOError
        raise ConnectionAbortedError


def test_peers_that_are_gone_before_they_are_accepted_keep_nobody_waiting() -> None:
    async def count_in_a_turn() -> int:
        listener = Listener(ListenerSettings(host="127.0.0.1", port=0))
        aborted = AbortedPeers(listener._sock)
        listener._sock = aborted  # type: ignore[assignment]
        with socket.create_connection((listener.host, listener.port)):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(listener.accept, nursery, None, lambda *_: None)
                while not aborted.tries:
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        listener.close()
        return aborted.tries

    assert trio.run(count_in_a_turn, clock=TickingClock()) <= 10


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
        self.reasons: list[str] = []
        self._over: dict[AcceptedConnection, trio.Event] = {}
        self.refused: list[tuple[Refusal, str]] = []

    async def serve(self, sock: socket.socket, settings: ListenerSettings, guest: AcceptedConnection) -> None:
        over = self._over[guest] = trio.Event()
        self.guests.append(guest)

        def give_up(reason: str) -> None:
            assert "max_handshakes" in reason
            self.given_up.append(guest)
            self.reasons.append(reason)
            over.set()

        guest.served_by(give_up)
        try:
            await over.wait()
        finally:
            self.guests.remove(guest)
            sock.close()

    def end(self, guest: AcceptedConnection) -> None:
        """Be through with one."""
        self._over[guest].set()

    async def come(self, count: int, host: str = "127.0.0.1", *, is_counted: bool = True) -> None:
        """Connections of *host*, accepted or refused when this returns; not *is_counted*: others may go meanwhile."""
        seen = self.listener.count + self.listener.refused + len(self.given_up)
        for _ in range(count):
            address = (self.listener.host, self.listener.port)
            self.crowd.append(socket.create_connection(address, source_address=(host, 0)))
        with trio.fail_after(20):
            while is_counted and self.listener.count + self.listener.refused + len(self.given_up) < seen + count:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked(0.0 if is_counted else 0.05)


@asynccontextmanager
async def stand(**settings: int) -> AsyncIterator[Stand]:
    bench = Stand(**settings)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            bench.listener.accept,
            nursery,
            bench.serve,
            lambda _, reason, host: bench.refused.append((reason, host)),
        )
        yield bench
        nursery.cancel_scope.cancel()
    bench.listener.close()
    for sock in bench.crowd:
        sock.close()
    assert not bench.listener._of_host
    assert not bench.listener._handshakes
    assert not bench.listener._waiting
    assert not bench.listener._ended_of_host


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


@pytest.mark.parametrize(("most", "others"), [(1, "1 other that waits"), (2, "2 others that wait")])
async def test_who_is_given_up_for_others_is_told_how_many_they_are(most: int, others: str) -> None:
    async with stand(max_handshakes=most) as bench:
        for _ in range(most + 1):
            await bench.come(1)
        assert bench.reasons == [f"no Open yet, and {others} for one (max_handshakes)"]


async def test_a_connection_whose_descriptor_is_for_others_is_refused_and_told_once() -> None:
    async with stand(files=6) as bench:  # the crowd is of this process too
        await bench.come(5)
        assert bench.listener.refused > 1
        assert bench.refused == [(Refusal.FILES_SHORT, "127.0.0.1")]
        assert 0 < bench.listener.short_of_files_at <= trio.current_time()


async def test_who_comes_waits_for_ended_ones_of_its_host_and_no_others() -> None:
    async with stand() as bench:
        await bench.come(1)
        (ended,) = bench.guests
        ended.ended()
        await bench.come(2)
        assert bench.guests == [ended]
        await bench.come(1, "127.0.0.2")
        assert [guest.host for guest in bench.guests] == ["127.0.0.1", "127.0.0.2"]
        bench.end(ended)
        await trio.testing.wait_all_tasks_blocked()
        assert [guest.host for guest in bench.guests] == ["127.0.0.2", "127.0.0.1", "127.0.0.1"]


async def test_who_has_ended_while_it_waited_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SHORT_S", -1.0)
    async with stand() as bench:
        await bench.come(1)
        (ended,) = bench.guests
        ended.ended()
        await bench.come(3)
        for sock in bench.crowd[1:3]:
            sock.close()
        bench.end(ended)
        await trio.testing.wait_all_tasks_blocked()
        assert len(bench.guests) == bench.listener.count == 1


async def test_no_more_are_accepted_than_may_wait_and_those_that_have_ended_make_room() -> None:
    async with stand(files=3000) as bench:
        await bench.come(1)
        (ended,) = bench.guests
        ended.ended()
        await bench.come(MOST_WAITING)
        bench.crowd.append(socket.create_connection((bench.listener.host, bench.listener.port)))
        for _ in range(100):
            await trio.lowlevel.checkpoint()
        assert bench.listener.count == 1 + MOST_WAITING
        for sock in bench.crowd[1:91]:
            sock.close()
        with trio.fail_after(20):
            while bench.listener.count > 1 + MOST_WAITING - 90 + 1 or bench.listener.accepted < 1 + MOST_WAITING + 1:
                await trio.lowlevel.checkpoint()
        bench.end(ended)
        with trio.fail_after(20):
            while len(bench.guests) < MOST_WAITING - 90 + 1:
                await trio.lowlevel.checkpoint()
        assert bench.listener.refusals[Refusal.HANDSHAKES_FULL] == 0


async def test_those_that_wait_are_closed_with_their_listener() -> None:
    async with stand() as bench:
        await bench.come(1)
        bench.guests[0].ended()
        await bench.come(2)
        last = bench.crowd.pop()
    with last:
        assert last.recv(1) == b""
    assert bench.listener.count == 0


async def test_one_that_waits_is_closed_when_too_many_say_nothing() -> None:
    async with stand(max_handshakes=4) as bench:
        await bench.come(1)
        (ended,) = bench.guests
        ended.opened()
        ended.ended()
        await bench.come(1)
        await bench.come(3, "127.0.0.2")
        assert len(bench.guests) == 4
        await bench.come(1, "127.0.0.2", is_counted=False)
        assert bench.crowd[1].recv(1) == b""
        assert len(bench.guests) == 5
        bench.end(ended)
        await trio.testing.wait_all_tasks_blocked()
        assert len(bench.guests) == bench.listener.count == 4
