"""The one task that waits for all sockets that carry AMQP: what is ready at the same time is one turn.

Trio could wait for each socket by a task of its own; a wake-up of a task costs several times what a message does. So
all sockets are in one epoll instance, and trio waits for that. From each socket that is ready a piece is read, then all
that this has caused is settled and written: however many clients call at once, a server gets their calls in one write.

Who wants little goes first. What light channels have is settled and written before heavy ones are read, and these have
their turn only until `HEAVY_S` is over, whoever has waited longest first: so a call waits for a piece or two of a flood
on other connections, however many they are.

A conversation of a client and a server by this router comes back within microseconds. While it does, the kernel is
asked to wait for it, `LINGER_MS` at most, without going back to trio; other tasks have their turn at least that often.
Only when their turns take longer, as those of many connections that come and go, the sockets have as much time as they.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final, Protocol

import trio

LINGER_MS: Final = 1
"""Longest wait of trio's other tasks, milliseconds: what epoll counts in. It is as long as their last turn if that was
longer."""
LONGEST_ROUNDS_S: Final = 0.05
"""Longest wait of trio's other tasks, however long their last turn was."""
MOST_READY: Final = 64
"""Sockets of one turn."""
HEAVY_S: Final = 100e-6
"""After so long of a round no further heavy channel has its turn: a few pieces of small messages."""
FAULT_PAUSE_S: Final = 0.1
"""After a fault that is no channel's, which may come again at once."""
OUT: Final = select.EPOLLOUT


class Channel(Protocol):
    """A socket that is waited for."""

    is_heavy: bool
    """It had much to read the last time; who waits for room to write is heavy too."""
    served: int
    """The poller's own: the number of its last turn as a heavy one, or of the last one before it came."""

    def read(self) -> None:
        """Take what the kernel has, or a bounded piece of it."""

    def write(self) -> None:
        """Write on: the kernel takes more."""

    def go_on(self) -> None:
        """Take more of what was read: it is as it asked for by `Poller.go_on`."""

    def fail(self, error: Exception) -> None:
        """Reading or writing has raised: end this one, so that the others are served on. Must not raise."""


class RoundHandler(Protocol):
    """Handler of what a round has read."""

    def begin(self, now: float) -> None:
        """Begin a round.

        Args:
            now: seconds, monotonic.
        """

    def settle_round(self) -> bool:
        """End a round: handle what follows from it, and write. Returns: whether the next one is due at once."""

    def turn_fault(self, error: Exception) -> None:
        """Tell of a fault in the begin or the end of a round. Must not raise."""


class Poller:
    """Waits for sockets and tells their channels."""

    def __init__(self, clock: Callable[[], float], turns: RoundHandler) -> None:
        """Make a poller that has no sockets yet.

        Args:
            clock: seconds, monotonic.
            turns: told of the begin and the end of each round of reading and writing.
        """
        self._clock = clock
        self._turns = turns
        self._epoll = select.epoll()
        self._channels: dict[int, Channel] = {}
        self._serving: Channel | None = None
        """Channel whose turn it is; None between them."""
        self._is_late = False
        """A round ended by a fault: what it has caused is still to be settled."""
        self._unfinished: dict[int, None] = {}
        """Descriptors of channels that go on, whatever the kernel has."""
        self.leaving = trio.Lock()
        """For the end of a channel's task, which takes long: the sockets have their turn between two of them, and
        nobody is accepted before those who wait for it have left."""
        self._heavy_turns = 0
        self._heavy_debt_s = 0.0
        """Time that heavy channels have taken beyond their share of the rounds."""
        self.rounds = 0
        """Rounds of reading and writing since the start."""

    def add(self, fd: int, channel: Channel) -> None:
        """Wait for what the socket has to read."""
        self._channels[fd] = channel
        channel.served = self._heavy_turns  # else who comes would go before all that have waited
        self._epoll.register(fd, select.EPOLLIN)

    def change(self, fd: int, *, reads: bool, writes: bool) -> None:
        """Set what to wait for from now on."""
        self._epoll.modify(fd, (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if writes else 0))

    def go_on(self, fd: int) -> None:
        """Have a channel go on in the next rounds, though its socket may not be ready."""
        self._unfinished[fd] = None

    def remove(self, fd: int) -> None:
        """Before the socket is closed."""
        self._channels.pop(fd, None)
        self._unfinished.pop(fd, None)
        try:
            self._epoll.unregister(fd)
        except OSError:
            pass  # it was never added: the system had no room for it

    async def run(self) -> None:
        """Serve the channels until cancelled, whatever their turns raise."""
        while True:
            try:
                await self._serve_rounds()
            except Exception as error:  # a fault of ours must end one channel at most, and not the router
                channel, self._serving = self._serving, None
                self._is_late = True
                if channel is not None:
                    channel.fail(error)
                    await trio.lowlevel.checkpoint()
                else:
                    self._turns.turn_fault(error)
                    await trio.sleep(FAULT_PAUSE_S)

    async def _serve_rounds(self) -> None:
        poll, clock = self._epoll.poll, self._clock
        linger_s = LINGER_MS / 1000
        rested = served = clock()
        away_s = 0.0
        """Of the last turn of trio's other tasks."""
        is_talk = False
        """True when the last input came soon after the one before it."""
        is_due = self._is_late or bool(self._unfinished)
        self._is_late = False
        while True:
            ready = poll(linger_s if is_talk and not is_due else 0, MOST_READY)
            now = clock()
            if ready or is_due:
                is_talk = now - served < linger_s
                is_due = self._serve(ready, now) or bool(self._unfinished)
                served = now
                if now - rested >= max(linger_s, min(away_s, LONGEST_ROUNDS_S)):
                    left = clock()
                    await trio.lowlevel.checkpoint()
                    rested = clock()
                    away_s = rested - left
            else:
                is_talk = False
                await trio.lowlevel.wait_readable(self._epoll.fileno())
                rested = clock()

    def _serve(self, ready: list[tuple[int, int]], now: float) -> bool:
        channels = self._channels
        heavy = self._ready_to_go_on(ready) if self._unfinished else []
        self._begin(now)
        for fd, events in ready:
            channel = channels.get(fd)
            if channel is None:
                continue  # another one of this round has ended it
            if channel.is_heavy or events & OUT:
                heavy.append((channel.served, fd, events))
            else:
                self._serving = channel
                channel.read()
        is_any_light = self._serving is not None
        self._serving = None
        if not heavy:
            return self._turns.settle_round()
        if is_any_light:
            is_due = self._turns.settle_round()
            if self._heavy_debt_s > 0:
                self._heavy_debt_s -= HEAVY_S
                return is_due
            now = self._clock()
            self._begin(now)
        self._serve_heavy(heavy, now + HEAVY_S)
        self._serving = None
        self._heavy_debt_s = self._clock() - now - HEAVY_S
        return self._turns.settle_round()

    def _ready_to_go_on(self, ready: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
        """Those that go on though they are not ready: who is goes on when it is read."""
        named = {fd for fd, _ in ready}
        return [(self._channels[fd].served, fd, 0) for fd in self._unfinished if fd not in named]

    def _serve_heavy(self, heavy: list[tuple[int, int, int]], end: float) -> None:
        """Those that have waited longest, one at least; the kernel names the others again."""
        heavy.sort()
        for _, fd, events in heavy:
            channel = self._channels.get(fd)
            if channel is None:
                continue  # as above
            self._serving = channel
            self._heavy_turns += 1
            channel.served = self._heavy_turns
            goes_on = fd in self._unfinished
            if goes_on:
                del self._unfinished[fd]
            if events & OUT:
                channel.write()
            if events & ~OUT:
                channel.read()
            elif goes_on:
                channel.go_on()
            if self._clock() >= end:
                return

    def _begin(self, now: float) -> None:
        self.rounds += 1
        self._turns.begin(now)

    def close(self) -> None:
        """Give the descriptor back."""
        self._epoll.close()
