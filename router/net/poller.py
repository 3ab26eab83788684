"""The one task that waits for all sockets that carry AMQP: what is ready at the same time is one turn.

Trio could wait for each socket by a task of its own; a wake-up of a task costs several times what a message does. So
all sockets are in one epoll instance. In a router's process it is the poller that waits, for as long as no other task
of trio has something to do: trio's own epoll instance is among its sockets, and trio's next deadline is its own
(`trio_state.py`). A message that comes alone takes one wake-up, and nothing of trio. Elsewhere, such as in tests with a
clock of their own, trio waits for the poller's epoll instance.

From each socket that is ready a piece is read, then all that this has caused is settled and written: however many
clients call at once, a server gets their calls in one write.

Who wants little goes first. What light channels have is settled and written before heavy ones are read, and these have
their turn only until `HEAVY_S` is over, whoever has waited longest first: so a call waits for a piece or two of a flood
on other connections, however many they are.

Other tasks have their turn as soon as no socket is ready, and else after `LINGER_MS`. Only when their turns take
longer, as those of many connections that come and go, the sockets have as much time as they.
"""

from __future__ import annotations

import select
from array import array
from collections.abc import Callable
from math import inf
from typing import Final

import cython
import trio

from router.net import trio_state

if not cython.compiled:  # else they come by the .pxd
    from router.net.epoll import MOST_READY, wait_ready

LINGER_MS: Final = 1
"""Maximum wait of trio's other tasks while sockets are ready, milliseconds; as long as their last turn if that was
longer, up to `LONGEST_ROUNDS_S`."""
LONGEST_ROUNDS_S: Final = 0.05
"""Maximum wait of trio's other tasks, seconds, however long their last turn was."""
HEAVY_S: Final = 100e-6
"""Time of a round after which no further heavy socket has its turn, seconds: a few pieces of small messages."""
ATTACHING_PAUSE: Final = 3.0
"""Pause between turns of connections that attach and detach in bulk, in parts of what a turn took: others keep three
quarters of the time."""
CALLING_S: Final = 0.002
"""Time after a single message in which connections that attach and detach in bulk have no turn, seconds, even if
nothing else is ready: a client that makes calls one by one is idle for a moment between two of them."""
SHARED_S: Final = 0.1
"""Time after a single message in which heavy sockets leave room for the next one, seconds."""
FAULT_PAUSE_S: Final = 0.1
"""Pause after a fault that is no socket's, which may come again at once, seconds."""
LONGEST_WAIT_MS: Final = 60_000
"""Maximum time until the poller looks at trio again, milliseconds."""
OUT: Final = select.EPOLLOUT
EVENTS: Final = 0xFFFF_FFFF
"""Mask of the events of what is ready, beside the descriptor. It is declared as a number of C: a literal of this size
would be an object."""


class PolledSocket:
    """A socket that is waited for."""

    def __init__(self, is_heavy: bool = False) -> None:
        self.is_heavy = is_heavy
        """Whether the socket had much to read the last time; one that waits for room to write counts as heavy too."""
        self.is_attaching = False
        """Whether the socket had more links and sessions that begin and end than a turn takes."""
        self.served = 0
        """Number of the socket's last turn as a heavy one, or of the last one before it came; the poller's own."""

    def read(self) -> None:
        """Take what the kernel has, or a bounded piece of it."""
        raise NotImplementedError

    def write(self) -> None:
        """Write on: the kernel takes more."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Take more of what was read: it is as it asked for by `Poller.go_on`."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        """End this socket, whose reading or writing has raised, so that the others are served on. Must not raise."""
        raise NotImplementedError


class RoundHandler:
    """Handler of the begin and the end of each round, and of the time that is due."""

    def __init__(self) -> None:
        self.scheduled = inf
        """Time of the next deadline as far as the timer knows, seconds. Where the poller has the thread, it is that."""

    def begin(self, now: float) -> None:
        """Begin a round.

        Args:
            now: seconds, monotonic.
        """
        raise NotImplementedError

    def settle_round(self) -> bool:
        """End a round: handle what follows from it, and write. Returns: whether the next one is due at once."""
        raise NotImplementedError

    def handle_time(self) -> bool:
        """Handle what is due once `scheduled` has come, and schedule anew. Returns: whether a round is due at once."""
        raise NotImplementedError

    def turn_fault(self, error: Exception) -> None:
        """Tell of a fault in the begin or the end of a round. Must not raise."""
        raise NotImplementedError


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
        self._fd = self._epoll.fileno()
        self._ready = array("Q", bytes(8 * MOST_READY))
        self._trio: trio_state.TrioState | None = None
        """None: trio waits for the sockets."""
        self._trio_fd = -1
        self._channels: dict[int, PolledSocket] = {}
        self._serving: PolledSocket | None = None
        """Socket whose turn it is; None between them."""
        self._is_due = False
        """Whether the next round is due, though no socket may be ready."""
        self._unfinished: dict[int, None] = {}
        """Descriptors of sockets that go on, whatever the kernel has."""
        self.leaving = trio.Lock()
        """Lock for the end of a socket's task, which takes long: sockets have their turn between two of them, and none
        is accepted before the tasks that wait for it have left."""
        self._rested = 0.0
        """Time at which trio's other tasks had their last turn, seconds."""
        self._away_s = 0.0
        """Time that the last turn of trio's other tasks took, seconds."""
        self._heavy_turns = 0
        self._heavy_debt_s = 0.0
        """Time that heavy channels have taken beyond their share of the rounds."""
        self._attaching_at = -inf
        """Time from which connections that attach and detach in bulk may have a turn while others want one, seconds."""
        self._begun = 0.0
        """Begin of the round, seconds."""
        self._singles_at = -inf
        """Time of the last single message, seconds."""
        self.is_shared = True
        """Whether there was a single message lately, so that pieces of heavy sockets are to be short."""
        self.rounds = 0
        """Number of rounds of reading and writing since the start."""

    def add(self, fd: int, channel: PolledSocket) -> None:
        """Wait for what the socket has to read."""
        self._channels[fd] = channel
        channel.served = self._heavy_turns  # else a new socket would go before all that have waited
        self._epoll.register(fd, select.EPOLLIN)

    def change(self, fd: int, *, reads: bool, writes: bool) -> None:
        """Set what to wait for from now on."""
        self._epoll.modify(fd, (select.EPOLLIN if reads else 0) | (select.EPOLLOUT if writes else 0))

    def go_on(self, fd: int) -> None:
        """Have a channel go on in the next rounds, though its socket may not be ready."""
        self._unfinished[fd] = None

    def share(self) -> None:
        """Note that a socket has had single messages in this round, for which a client may wait."""
        self._singles_at = self._begun

    def remove(self, fd: int) -> None:
        """Stop polling a socket. To be called before it is closed."""
        self._channels.pop(fd, None)
        self._unfinished.pop(fd, None)
        try:
            self._epoll.unregister(fd)
        except OSError:
            pass  # it was never added: the system had no room for it

    async def take_thread(self) -> bool:
        """Have the thread wait here from now on, for what trio's other tasks wait for too; the clock must be trio's.

        Returns: False where this trio, or its clock, is not made for it.
        """
        self._trio = state = await trio_state.watch()
        if state is None:
            return False
        self._trio_fd = state.fd
        self._epoll.register(state.fd, select.EPOLLIN)
        return True

    async def run(self) -> None:
        """Serve the channels until cancelled, whatever their turns raise."""
        try:
            await self._serve_on()
        finally:
            if self._trio is not None:
                trio_state.unwatch(self._trio)

    async def _serve_on(self) -> None:
        while True:
            try:
                is_idle = self._serve_rounds()
            except Exception as error:  # a fault of ours must end one channel at most, and not the router
                channel, self._serving = self._serving, None
                self._is_due = True
                if channel is not None:
                    channel.fail(error)
                    await trio.lowlevel.checkpoint()
                else:
                    self._turns.turn_fault(error)
                    await trio.sleep(FAULT_PAUSE_S)
                continue
            if is_idle:
                await trio.lowlevel.wait_readable(self._fd)
                self._rested = self._clock()
            else:
                left = self._clock()
                await trio.lowlevel.checkpoint()
                self._rested = self._clock()
                self._away_s = self._rested - left

    def _serve_rounds(self) -> bool:
        """Serve until trio's other tasks are due. Returns: whether no socket is ready, and trio is to wait for them."""
        if self._trio is not None and trio.current_effective_deadline() == -inf:
            return False  # canceled while it was due: trio can tell it only when it gives way
        is_due = self._is_due or bool(self._unfinished)
        self._is_due = False
        while True:
            deadline = inf if self._trio is None else self._trio.next_deadline()
            timeout_ms = 0 if is_due or self._trio is None else self._time_to_wait(deadline)
            count = wait_ready(self._epoll, self._fd, self._ready, timeout_ms)
            now = self._clock()
            if self._trio is None:
                is_trio_due = True
            else:
                is_trio_due = deadline <= now or self._is_trio_due(count)
                if self._turns.scheduled <= now:
                    is_due = self._turns.handle_time() or is_due or bool(self._unfinished)
            if is_due or count > 1 or (count == 1 and self._ready[0] >> 32 != self._trio_fd):
                is_due = self._serve(count, now) or bool(self._unfinished)
                if is_trio_due and now - self._rested >= max(LINGER_MS / 1000, min(self._away_s, LONGEST_ROUNDS_S)):
                    self._is_due = is_due
                    return False
            elif is_trio_due:
                return self._trio is None

    def _time_to_wait(self, until: float) -> int:
        """Time until another task of trio, or the handler, is due, milliseconds, as far as that is known.

        Args:
            until: trio's next deadline, seconds.
        """
        state = self._trio
        assert state is not None
        if state.has_runnable():
            return 0
        if self._turns.scheduled < until:
            until = self._turns.scheduled
        now = self._clock()
        wait_ms = (until - now) * 1000
        if wait_ms <= 0:
            return 0
        return LONGEST_WAIT_MS if wait_ms >= LONGEST_WAIT_MS else int(wait_ms) + 1

    def _is_trio_due(self, count: int) -> bool:
        """Whether trio has a task to go on with, or is one of the *count* things that are ready."""
        state = self._trio
        assert state is not None
        if state.has_runnable():
            return True
        for at in range(count):
            if self._ready[at] >> 32 == self._trio_fd:
                return True
        return False

    def _serve(self, count: int, now: float) -> bool:
        """Serve the sockets that are ready, and channels that go on. Returns: whether the next round is due at once."""
        channels = self._channels
        heavy = self._ready_to_go_on(count) if self._unfinished else []
        self._begin(now)
        for at in range(count):
            fd = self._ready[at] >> 32
            events = self._ready[at] & EVENTS
            channel = channels.get(fd)
            if channel is None:
                continue  # another one of this round has ended it, or it is trio
            if channel.is_heavy or events & OUT:
                heavy.append((channel.served, fd, events))
            else:
                self._serving = channel
                channel.read()
        is_any_light = self._serving is not None
        self._serving = None
        if now < self._attaching_at and heavy:
            heavy = self._allowed(heavy, is_any_light or now < self._singles_at + CALLING_S)
        if not heavy:
            return self._turns.settle_round()
        if is_any_light:
            is_due = self._turns.settle_round()
            if self._heavy_debt_s > 0:
                self._heavy_debt_s -= HEAVY_S
                return is_due
            now = self._clock()
            self._begin(now)
        self.is_shared = now < self._singles_at + SHARED_S
        is_attaching = self._serve_heavy(heavy, now + HEAVY_S)
        self._serving = None
        self._heavy_debt_s = self._clock() - now - HEAVY_S
        is_due = self._turns.settle_round()
        if is_attaching:
            end = self._clock()
            self._attaching_at = end + ATTACHING_PAUSE * (end - now)
        return is_due

    def _allowed(self, heavy: list[tuple[int, int, int]], is_shared: bool) -> list[tuple[int, int, int]]:
        """Choose those of *heavy* that have their turn though it is too early for ones whose links come and go.

        That is too early only where others want a turn: heavy ones, or others than these (*is_shared*).
        """
        others = [each for each in heavy if each[1] in self._channels and not self._channels[each[1]].is_attaching]
        return others if others or is_shared else heavy

    def _ready_to_go_on(self, count: int) -> list[tuple[int, int, int]]:
        """Sockets left unfinished by an earlier round that epoll does not report: reported ones are read anyway."""
        named = {self._ready[at] >> 32 for at in range(count)}
        return [(self._channels[fd].served, fd, 0) for fd in self._unfinished if fd not in named]

    def _serve_heavy(self, heavy: list[tuple[int, int, int]], end: float) -> bool:
        """Serve the heavy sockets that have waited longest, one at least; the kernel names the others again.

        Returns: whether links of one of them come and go.
        """
        is_attaching = False
        heavy.sort()
        for _, fd, events in heavy:
            channel = self._channels.get(fd)
            if channel is None:
                continue  # as above
            self._serving = channel
            self._heavy_turns += 1
            channel.served = self._heavy_turns
            is_attaching = is_attaching or channel.is_attaching
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
                break
        return is_attaching

    def _begin(self, now: float) -> None:
        self.rounds += 1
        self._begun = now
        self._turns.begin(now)

    def close(self) -> None:
        """Give the descriptor back."""
        self._epoll.close()
