"""What a service manager hears, at a real socket."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from router.net.service_notifier import ALIVE, READY, ServiceNotifier


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


def heard(manager: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(manager.recv(1000))
        except BlockingIOError:
            return found


def environment(manager: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname(), **more}


def test_it_is_told_what_happens(manager: socket.socket) -> None:
    notifier = ServiceNotifier.from_environment(environment(manager))
    notifier.ready()
    notifier.stopping(41.5)
    assert heard(manager) == [READY, b"STOPPING=1\nEXTEND_TIMEOUT_USEC=41500000"]
    notifier.close()
    notifier.ready()
    assert heard(manager) == []


async def test_a_loop_that_runs_says_so_three_times_in_the_period(
    manager: socket.socket, autojump_clock: MockClock
) -> None:
    notifier = ServiceNotifier.from_environment(environment(manager, WATCHDOG_USEC="30000000"))
    with trio.move_on_after(59):
        await notifier.keep_telling()
    assert heard(manager) == [ALIVE] * 6
    notifier.close()


@pytest.mark.parametrize("period", ["", "0", "x", "-1"])
async def test_without_a_watchdog_nothing_is_said(manager: socket.socket, period: str) -> None:
    notifier = ServiceNotifier.from_environment(environment(manager, WATCHDOG_USEC=period))
    await notifier.keep_telling()
    assert heard(manager) == []
    notifier.close()


def test_a_watchdog_of_another_process_is_not_ours(manager: socket.socket) -> None:
    for pid, period_s in ((os.getpid(), 1.0), (os.getpid() + 1, math.inf)):
        variables = environment(manager, WATCHDOG_USEC="1000000", WATCHDOG_PID=str(pid))
        notifier = ServiceNotifier.from_environment(variables)
        assert notifier.watchdog_s == period_s
        notifier.close()


def test_a_manager_that_is_gone_or_does_not_read_stops_nothing(tmp_path: Path, manager: socket.socket) -> None:
    gone = ServiceNotifier(str(tmp_path / "nobody"), 1)
    gone.ready()
    gone.close()
    unread = ServiceNotifier.from_environment(environment(manager))
    for _ in range(10_000):
        unread.ready()
    assert 0 < len(heard(manager)) < 10_000
    unread.close()


def test_an_abstract_socket_is_found_by_its_at() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("")  # the system chooses an abstract name
        name = sock.getsockname()
        assert isinstance(name, bytes)
        notifier = ServiceNotifier("@" + name[1:].decode())
        notifier.ready()
        assert sock.recv(100) == READY
        notifier.close()


def test_without_a_manager_nothing_happens() -> None:
    notifier = ServiceNotifier.from_environment({"WATCHDOG_USEC": "1000000"})
    notifier.ready()
    assert notifier.watchdog_s == math.inf
