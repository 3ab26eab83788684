"""Who has a turn when: light channels first, then heavy ones, whoever has waited longest first."""

from __future__ import annotations

import itertools
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from router.net.poller import HEAVY_S, LINGER_MS, LONGEST_ROUNDS_S, PolledSocket, Poller, RoundHandler


class Always(PolledSocket):
    """A channel whose socket is always ready."""

    def __init__(self, stand: Stand, name: str, *, is_heavy: bool = False, writes: bool = False) -> None:
        super().__init__(is_heavy)
        self.name = name
        self.on_read: Callable[[], object] = lambda: None
        self._stand = stand
        self.ours, self.theirs = socket.socketpair()
        self.theirs.send(b"x")
        stand.sockets += [self.ours, self.theirs]
        stand.poller.add(self.ours.fileno(), self)
        if writes:
            stand.poller.change(self.ours.fileno(), reads=False, writes=True)

    def read(self) -> None:
        self._stand.tell(self.name)
        self.on_read()

    def write(self) -> None:
        self._stand.tell(self.name + " writes")

    def go_on(self) -> None:
        self._stand.tell(self.name + " goes on")

    def fail(self, error: Exception) -> None:
        self._stand.tell(f"{self.name} fails: {error}")
        self._stand.poller.remove(self.ours.fileno())


class Stand(RoundHandler):
    """A poller, and what happens in it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cost_s = 0.0
        """Of one turn of a channel."""
        self.rounds: list[list[str]] = []
        """Who had a turn, up to each time that all was written."""
        self.faults: list[str] = []
        self.sockets: list[socket.socket] = []
        self.poller = Poller(lambda: self.now, self)

    def tell(self, what: str) -> None:
        self.now += self.cost_s
        self.rounds[-1].append(what)

    def begin(self, now: float) -> None:
        assert now <= self.now
        self.rounds.append([])

    def turn_fault(self, error: Exception) -> None:
        self.faults.append(str(error))

    def settle_round(self) -> bool:
        self.now += LINGER_MS / 1000  # so that the poller leaves other tasks their turn
        return False

    async def until(self, count: int) -> list[list[str]]:
        """Let the poller go on. Returns: the first *count* rounds."""
        with trio.fail_after(60):
            while len(self.rounds) < count:
                await trio.lowlevel.checkpoint()
        return self.rounds[:count]


@asynccontextmanager
async def stand(cost_s: float) -> AsyncIterator[Stand]:
    bench = Stand()
    bench.cost_s = cost_s
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.poller.run)
        yield bench
        nursery.cancel_scope.cancel()
    bench.poller.close()
    for sock in bench.sockets:
        sock.close()


async def test_what_light_channels_cause_is_written_before_heavy_ones_are_read() -> None:
    async with stand(0.0) as bench:
        channels = [Always(bench, "flood", is_heavy=True), Always(bench, "call"), Always(bench, "reply")]
        assert await bench.until(4) == [["call", "reply"], ["flood"], ["call", "reply"], ["flood"]]
        channels[0].is_heavy = False
        began = len(bench.rounds)
        assert sorted((await bench.until(began + 1))[began]) == ["call", "flood", "reply"]


async def test_who_waits_for_room_to_write_is_heavy() -> None:
    async with stand(0.0) as bench:
        Always(bench, "large", writes=True)
        Always(bench, "call")
        assert await bench.until(2) == [["call"], ["large writes"]]


async def test_heavy_channels_have_their_turn_until_their_time_is_over_and_all_have_it() -> None:
    async with stand(HEAVY_S / 1.5) as bench:
        for name in "abc":
            Always(bench, name, is_heavy=True)
        turns = await bench.until(6)
        assert all(len(turn) == 2 for turn in turns)
        assert sorted(itertools.chain.from_iterable(turns)) == sorted("abc" * 4)
    async with stand(HEAVY_S) as bench:
        for name in "abc":
            Always(bench, name, is_heavy=True)
        turns = await bench.until(6)
        assert all(len(turn) == 1 for turn in turns)
        assert turns[:3] == turns[3:]
        assert len({name for (name,) in turns}) == 3


async def test_heavy_turns_that_take_longer_are_paid_back_by_rounds_of_light_ones_alone() -> None:
    async with stand(2.5 * HEAVY_S) as bench:
        Always(bench, "flood", is_heavy=True)
        call = Always(bench, "call")
        assert await bench.until(6) == [["call"], ["flood"], ["call"], ["call"], ["call"], ["flood"]]
        bench.poller.change(call.ours.fileno(), reads=False, writes=False)
        began = len(bench.rounds)
        told = (await bench.until(began + 2))[began:]
        assert told == [["flood"], ["flood"]], "nobody waits while no light channel has anything"


@pytest.mark.parametrize("is_heavy", [False, True])
async def test_whose_links_come_and_go_leaves_others_three_quarters_of_the_time(is_heavy: bool) -> None:
    async with stand(HEAVY_S / 4) as bench:
        crowd = Always(bench, "crowd", is_heavy=True)
        crowd.is_attaching = True
        rounds = await bench.until(4)
        assert rounds == [["crowd"]] * 4, "nobody else wants a turn"
        other = Always(bench, "other", is_heavy=is_heavy)
        began = len(bench.rounds)
        told = (await bench.until(began + 42))[began:]
        assert 8 <= sum("crowd" in each for each in told) <= 11
        bench.poller.remove(other.ours.fileno())
        began = len(bench.rounds)
        assert (await bench.until(began + 5))[began + 4] == ["crowd"]


async def test_whose_links_come_and_go_rests_a_moment_after_others_single_messages() -> None:
    async with stand(HEAVY_S / 4) as bench:
        crowd = Always(bench, "crowd", is_heavy=True)
        crowd.is_attaching = True
        crowd.on_read = bench.poller.share
        told = await bench.until(41)
        assert 20 <= told.count(["crowd"]) <= 21, "rounds take a millisecond here, so every other one"
        assert told.count([]) == 41 - told.count(["crowd"])


async def test_who_comes_has_no_turn_before_those_that_have_waited() -> None:
    async with stand(HEAVY_S) as bench:
        old = [Always(bench, name, is_heavy=True) for name in "ab"]
        await bench.until(4)
        began = len(bench.rounds)
        new = [Always(bench, name, is_heavy=True) for name in "cdef"]
        told = list(itertools.chain.from_iterable((await bench.until(began + 6))[began:]))
        assert set(told[:3]) >= {channel.name for channel in old}
        assert set(told) == {channel.name for channel in old + new}


class Others(trio.abc.Instrument):
    """Tasks that take *cost_s* each time the poller leaves them their turn."""

    def __init__(self, bench: Stand, cost_s: float) -> None:
        self._bench = bench
        self._cost_s = cost_s
        self._began = 0
        self.rounds: list[int] = []
        """Of the poller between two of their turns."""

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.endswith("Poller.run"):
            self.rounds.append(len(self._bench.rounds) - self._began)
            self._began = len(self._bench.rounds)
            self._bench.now += self._cost_s


@pytest.mark.parametrize("cost_s", [0.01, 10.0])
async def test_sockets_have_as_much_time_as_other_tasks_took_and_a_bounded_one(cost_s: float) -> None:
    async with stand(0.0) as bench:
        Always(bench, "call")
        others = Others(bench, cost_s)
        trio.lowlevel.add_instrument(others)
        await bench.until(600)
        trio.lowlevel.remove_instrument(others)
    most = min(cost_s, LONGEST_ROUNDS_S) / (LINGER_MS / 1000)  # each round takes so long here
    assert len(others.rounds) > 8
    assert others.rounds[3:] == pytest.approx([most] * len(others.rounds[3:]), abs=2)


async def test_one_that_an_earlier_one_of_the_round_has_ended_has_no_turn() -> None:
    async with stand(0.0) as bench:
        first, second = (Always(bench, name, is_heavy=True) for name in "ab")

        def end() -> None:
            bench.tell("a")
            if second.ours.fileno() >= 0:
                bench.poller.remove(second.ours.fileno())
                second.ours.close()

        first.read = end  # type: ignore[method-assign]
        assert await bench.until(2) == [["a"], ["a"]]


async def test_who_goes_on_has_turns_behind_light_ones_though_its_socket_is_not_ready() -> None:
    async with stand(0.0) as bench:
        Always(bench, "call")
        unready = Always(bench, "rest", is_heavy=True)
        fd = unready.ours.fileno()
        bench.poller.change(fd, reads=False, writes=False)
        bench.poller.go_on(fd)
        began = len(bench.rounds)
        told = (await bench.until(began + 4))[began:]
        assert sorted(told, key=len)[:4] == told
        assert list(itertools.chain.from_iterable(told)).count("rest goes on") == 1
        bench.poller.go_on(fd)
        bench.poller.remove(fd)
        began = len(bench.rounds)
        assert all(turn == ["call"] for turn in (await bench.until(began + 2))[began:])


async def test_who_goes_on_and_is_ready_has_one_turn() -> None:
    async with stand(0.0) as bench:
        ready = Always(bench, "rest", is_heavy=True)
        bench.poller.go_on(ready.ours.fileno())
        assert await bench.until(2) == [["rest"], ["rest"]]


@pytest.mark.parametrize("is_heavy", [False, True])
@pytest.mark.parametrize("writes", [False, True])
async def test_one_whose_turn_raises_is_ended_and_the_others_are_served_on(is_heavy: bool, writes: bool) -> None:
    async with stand(0.0) as bench:
        broken = Always(bench, "a", is_heavy=is_heavy, writes=writes)

        def raise_it() -> None:
            raise ValueError("broken")

        broken.read = broken.write = raise_it  # type: ignore[method-assign]
        Always(bench, "b")
        rounds = await bench.until(6)
        told = list(itertools.chain.from_iterable(rounds))
        assert told.count("a fails: broken") == 1
        assert told.count("b") >= 3
        assert bench.faults == []


@pytest.mark.parametrize("name", ["begin", "settle_round"])
async def test_a_round_that_raises_is_told_of_and_the_next_one_comes(name: str) -> None:
    async with stand(0.0) as bench:
        method = getattr(bench, name)
        left = [2]

        def raise_at_first(*arguments: float) -> object:
            if left[0]:
                left[0] -= 1
                raise ValueError("broken")
            return method(*arguments)

        setattr(bench, name, raise_at_first)
        Always(bench, "a")
        rounds = await bench.until(5)
        assert bench.faults == ["broken", "broken"]
        assert ["a"] in rounds
