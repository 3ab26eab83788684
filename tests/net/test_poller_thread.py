"""The poller that waits for trio too: a message alone takes no turn of trio, and trio's tasks miss nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from router.net import trio_state
from router.net.poller import PolledSocket, Poller, RoundHandler

ROOT = Path(__file__).parents[2]


class Echo(PolledSocket):
    """A channel that sends back what it reads."""

    def __init__(self, poller: Poller) -> None:
        super().__init__()
        self.ours, self.theirs = socket.socketpair()
        self.theirs.settimeout(60)
        poller.add(self.ours.fileno(), self)

    def read(self) -> None:
        self.ours.send(self.ours.recv(100))

    def call(self) -> None:
        self.theirs.send(b"x")
        assert self.theirs.recv(100) == b"x"


class Rounds(RoundHandler):
    def __init__(self) -> None:
        super().__init__()
        self.came: list[float] = []

    def begin(self, now: float) -> None:
        pass

    def settle_round(self) -> bool:
        return False

    def handle_time(self) -> bool:
        self.came.append(self.scheduled)
        self.scheduled = trio.current_time() + 60
        return False


class Waits(trio.abc.Instrument):
    """Counts how often trio itself looks at its sockets."""

    def __init__(self) -> None:
        self.count = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


@asynccontextmanager
async def stand() -> AsyncIterator[tuple[Poller, Rounds, Echo]]:
    rounds = Rounds()
    poller = Poller(trio.current_time, rounds)
    echo = Echo(poller)
    assert await poller.take_thread(), "this trio keeps its state otherwise: see router/net/trio_state.py"
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(poller.run)
            yield poller, rounds, echo
            nursery.cancel_scope.cancel()
    poller.close()
    echo.ours.close()
    echo.theirs.close()


async def test_a_message_that_comes_alone_takes_no_turn_of_trio() -> None:
    waits = Waits()

    def call_often() -> int:
        echo.call()  # by then the poller waits
        before = waits.count
        for _ in range(20):
            echo.call()
        return waits.count - before

    async with stand() as (_, _, echo):
        trio.lowlevel.add_instrument(waits)
        assert await trio.to_thread.run_sync(call_often) == 0
        trio.lowlevel.remove_instrument(waits)


async def test_a_task_goes_on_at_its_deadline_while_no_socket_is_ready() -> None:
    async with stand() as (_, rounds, _):
        for _ in range(3):
            await trio.sleep(0.002)
        assert rounds.came == []


async def test_the_handler_is_told_of_its_time() -> None:
    async with stand() as (_, rounds, _):
        rounds.scheduled = at = trio.current_time() + 0.002
        await trio.sleep(0.004)
        assert rounds.came == [at]


async def run_until(event: trio.Event, poller: Poller, timed: Rounds) -> None:
    """Run a poller whose handler has a time soon, until *event* is set."""
    assert await poller.take_thread()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            timed.scheduled = trio.current_time() + 0.002
            nursery.start_soon(poller.run)
            await event.wait()
            nursery.cancel_scope.cancel()
    poller.close()


async def test_a_channel_that_is_to_go_on_since_a_time_came_goes_on() -> None:
    gone_on = trio.Event()

    class Stopped(Echo):
        def go_on(self) -> None:
            gone_on.set()

    class Timed(Rounds):
        def handle_time(self) -> bool:
            poller.go_on(stopped.ours.fileno())
            return super().handle_time()

    poller = Poller(trio.current_time, timed := Timed())
    stopped = Stopped(poller)
    await run_until(gone_on, poller, timed)
    stopped.ours.close()
    stopped.theirs.close()


async def test_a_round_that_is_due_after_a_time_came_is_not_waited_for() -> None:
    gone_on = trio.Event()

    class Timed(Rounds):
        def handle_time(self) -> bool:
            super().handle_time()
            return True

        def settle_round(self) -> bool:
            gone_on.set()
            return False

    poller = Poller(trio.current_time, timed := Timed())
    await run_until(gone_on, poller, timed)


async def test_a_task_that_waits_for_a_socket_of_its_own_is_woken() -> None:
    async with stand():
        ours, theirs = trio.socket.socketpair()
        with ours, theirs:
            await trio.to_thread.run_sync(os.write, theirs.fileno(), b"hello")
            threading.Timer(0.001, os.write, (theirs.fileno(), b"later")).start()
            assert await ours.recv(5) == b"hello"
            assert await ours.recv(5) == b"later"


async def test_a_task_hears_of_a_signal() -> None:
    async with stand():
        with trio.open_signal_receiver(signal.SIGUSR1) as signals:
            threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            async for number in signals:
                assert number == signal.SIGUSR1
                break


async def test_a_task_that_a_round_wakes_goes_on_though_sockets_stay_ready() -> None:
    woken = trio.Event()

    class Waking(Echo):
        def read(self) -> None:
            woken.set()

    async with stand() as (poller, _, _):
        waking = Waking(poller)  # what it has is never read
        waking.theirs.send(b"x")
        await woken.wait()
        poller.remove(waking.ours.fileno())
        waking.ours.close()
        waking.theirs.close()


@pytest.mark.parametrize("count", [1, 5])
async def test_tasks_that_never_wait_and_sockets_have_turns(count: int) -> None:
    steps = [0] * count

    async def spin(number: int) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            steps[number] += 1

    async with stand() as (_, _, echo), trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(spin, number)
        await trio.to_thread.run_sync(echo.call)
        nursery.cancel_scope.cancel()
    assert all(steps)


async def test_a_virtual_clock_keeps_the_thread(autojump_clock: trio.testing.MockClock) -> None:
    poller = Poller(trio.current_time, Rounds())
    assert not await poller.take_thread()
    poller.close()


def test_a_trio_that_keeps_its_state_otherwise_keeps_the_thread() -> None:
    assert trio_state.find(object()) is None


async def test_a_poller_canceled_before_its_first_turn_leaves_the_thread() -> None:
    async with stand():
        pass
    await trio.sleep(0.001)
    await trio.testing.wait_all_tasks_blocked()


async def test_a_poller_canceled_in_the_turn_of_another_task_leaves_the_thread() -> None:
    async with stand():
        for _ in range(10):  # trio tosses for who is first
            await trio.lowlevel.checkpoint()
    await trio.sleep(0.001)
    await trio.testing.wait_all_tasks_blocked()


INTERRUPTED = """
import os, signal, threading, trio
from tests.net.test_poller_thread import stand

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started it in the background has it ignored

async def main():
    async with stand():
        threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGINT)).start()
        await trio.sleep_forever()

trio.run(main)
"""


def test_an_interrupt_ends_it() -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=ROOT, stderr=subprocess.PIPE, timeout=60)
    assert b"KeyboardInterrupt" in ended.stderr
