"""Control messages of neighbors that ask for more work than their share: they wait, and are handled one by one.

Each neighbor has an allowance of the router's time, enough for what a mesh tells one who joins it, and all have one
together, since a neighbor may come again and again. Who has used it up is *paced*: its messages are kept here, and all
such neighbors together get `share` of the time, since after each message of theirs there is a pause in proportion to
what it took. Before that, too, messages of all neighbors are handled in pieces of `PIECE_S`, with pauses three times as
long, and nine times as long while the router is busy with what clients send: who calls beside them waits for one piece
at most, and keeps nine tenths of the router. A message can't be divided, so the pause after one that took longer grows
with the square of that: few calls meet it. Reading what comes can't be put off. It counts as the neighbor's own: its
messages pause for it, and nobody else's.

Of those that wait, the neighbor is next that has used least, as in start-time fair queueing; who isn't paced goes
before those who are, and doesn't wait for their pauses. Of one neighbor's messages those of origins that say little are
ahead (`ControlMessageQueue`), and HELLOs ahead of all that waits, so that a neighbor isn't lost for its news. What is
beyond `most_bytes` is dropped, as if it had been lost: the protocol asks for it again.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Final

import attrs

from router.control_message_queue import ControlMessageQueue
from router.core.ids_and_conditions import ConnectionId
from router.core.linkstate.control_message_sender import HELLO_TO

BURST_S: Final = 0.5
"""Time that a neighbor may use at once after it has used none for long, seconds."""
ALL_BURST_S: Final = 10 * BURST_S
"""Time that all neighbors together may use at once after they have used none for long, seconds."""
PIECE_S: Final = 0.0005
"""Time for which control messages are handled before others have their turn, seconds."""
PIECE_BYTES: Final = 16_384
"""Bytes of messages that are handled at once: what they take is known only afterwards."""
QUIET_SHARE: Final = 1 / 4
"""Part of the time that messages handled in pieces get while the router has nothing else to do."""
BUSY_SHARE: Final = 1 / 10
"""Part of the time that messages handled in pieces get while the router is busy with other work."""
LOOK_S: Final = 0.0001
"""Shortest time over which it is judged how busy the router is, seconds."""
LONGEST_PAUSE_S: Final = 0.25
"""Maximum pause after a message, seconds, however long it took."""
CREDIT_S: Final = 0.05
"""Time that a neighbor which begins to wait may catch up on those that wait already, seconds."""
KEPT_PART: Final = 15 / 16
"""Part of the bytes that may wait to which they are shortened when they are more: seldom."""
MOST_HELLO_BYTES: Final = 16_384
"""Size above which a HELLO waits like other messages, bytes."""
HELLO_HEAD_BYTES: Final = 1024
"""Size of a message's beginning, in which it says where to, bytes."""
_HELLO: Final = HELLO_TO.removeprefix("amqp:/").encode()


class FirstPacingEvent(enum.Enum):
    """First occurrence of something with a connection, worth a line in the log."""

    WAITED = "waited"
    """First message of the connection that has to wait."""
    DROPPED = "dropped"
    """First message of the connection that is dropped, since there is no room for it."""


@attrs.define(eq=False)
class TimeAllowance:
    """Time that may be used: it grows with the time that goes by, up to `most_s`."""

    most_s: float
    since: float
    """Time at which `left_s` was left, seconds."""
    left_s: float = attrs.field(init=False)

    @left_s.default
    def _full(self) -> float:
        return self.most_s

    def refill(self, share: float, now: float) -> None:
        """Add *share* of the time until *now* (seconds)."""
        if now > self.since:
            self.left_s = min(self.most_s, self.left_s + (now - self.since) * share)
        self.since = now

    def use(self, used_s: float, most_debt_s: float = BURST_S) -> None:
        """Take off *used_s*, down to a debt of *most_debt_s* (both in seconds)."""
        self.left_s = max(-most_debt_s, self.left_s - used_s)


@attrs.define(eq=False)
class NeighborAllowance(TimeAllowance):
    """Allowance of one connection to a neighbor, and what waits of it."""

    hello_at: float = -math.inf
    """Time of the last HELLO that has gone ahead, seconds."""
    reading: TimeAllowance = attrs.field(factory=lambda: TimeAllowance(PIECE_S, -math.inf))
    """Allowance for reading what it sends, which can't be put off."""
    reads_until: float = -math.inf
    """End of the pause after reading, seconds: for messages of this neighbor, and of nobody else."""
    waiting: ControlMessageQueue = attrs.field(factory=ControlMessageQueue)
    used_s: float = 0.0
    """Time that the neighbor is taken to have used, seconds: the less, the sooner is its turn."""
    is_paced: bool = False
    """Whether the neighbor has used up its allowance, and something of it waits."""
    has_waited: bool = False
    has_lost: bool = False


class ControlPacer:
    """The allowances of all neighbors.

    Args:
        share: part of the router's time for neighbors that have used up their own.
        most_bytes: of one neighbor that may wait.
        hello_pause_s: between two HELLOs of one neighbor that go ahead, seconds.
        measure: seconds that the router has used.
        look_at: told when a message may be taken, seconds.
    """

    def __init__(
        self,
        *,
        share: float,
        most_bytes: int,
        hello_pause_s: float,
        measure: Callable[[], float],
        look_at: Callable[[float], None],
    ) -> None:
        self.measure = measure
        self.at = math.inf
        """Time at which the next message may be taken, seconds; infinity when none waits."""
        self.held = 0
        """Number of messages that have waited."""
        self.dropped = 0
        """Number of messages that were dropped, since there was no room for them."""
        self._look_at = look_at
        self._share = share
        self._most_bytes = most_bytes
        self._hello_pause_s = hello_pause_s
        self._neighbors: dict[ConnectionId, NeighborAllowance] = {}
        self._turns: dict[ConnectionId, NeighborAllowance] = {}
        """Neighbors of which something waits; the one that had its turn is moved to the end."""
        self._all = TimeAllowance(ALL_BURST_S, -math.inf)
        self._piece = TimeAllowance(PIECE_S, -math.inf)
        self._pieces_share = QUIET_SHARE
        """Part of the time that messages handled in pieces get now, between `BUSY_SHARE` and `QUIET_SHARE`."""
        self._control_s = 0.0
        """Time used for control messages since the start, seconds."""
        self._looked_at = (-math.inf, 0.0, 0.0)
        """Time of the last look at how busy the router is, what it had used by then, and what of it for control
        messages, seconds."""
        self._rests_until = -math.inf
        self._paced_until = -math.inf
        """End of the pause of neighbors that are paced, seconds."""
        self._level_s = -math.inf
        """Time that the neighbor had used whose turn it was last, or that used most while none waited, seconds."""
        self._took_paced = False
        """Whether the message taken last was of a neighbor that is paced."""
        self._charged: dict[ConnectionId, int] = {}
        """Bytes of the messages that are handled next, by connection."""
        self._charged_bytes = 0
        """Bytes of the messages that are handled next, of all connections."""
        self._used_s = 0.0
        """Time used for the messages that are handled next so far, seconds."""

    def measure_by(self, measure: Callable[[], float]) -> None:
        """Ask *measure* from now on for the seconds that the router has used."""
        self.measure = measure

    def take_settings(self, *, share: float, most_bytes: int) -> None:
        """Go by other bounds from now on.

        Args:
            share: of all time that control messages may take, 0 to 1.
            most_bytes: of messages of one neighbor that may wait.
        """
        self._share = share
        self._most_bytes = most_bytes

    def may_pass(self, connection: ConnectionId, message: bytes, now: float) -> bool:
        """Whether a message may be handled at once.

        Args:
            connection: the one that it came by.
            message: its bytes.
            now: seconds, monotonic.
        """
        neighbor = self._neighbors.get(connection)
        if neighbor is not None and self._is_free(neighbor):
            return True  # what time has added since is not needed
        neighbor = self._neighbor(connection, now)
        self._refill_piece(now)
        neighbor.reading.refill(self._pieces_share, now)
        is_free = self._is_free(neighbor)
        if not is_free and neighbor.hello_at + self._hello_pause_s <= now and _is_hello(message):
            neighbor.hello_at = now
            return True
        return is_free

    def _is_free(self, neighbor: NeighborAllowance) -> bool:
        may_be_read = not neighbor.waiting and neighbor.reading.left_s > 0
        return may_be_read and self._has_time(neighbor) and self.is_piece_left()

    def is_piece_left(self) -> bool:
        """Whether one more message may be handled before others have their turn."""
        return self._used_s < self._piece.left_s and self._charged_bytes < PIECE_BYTES

    def keep(self, connection: ConnectionId, message: bytes, now: float) -> FirstPacingEvent | None:
        """Have a message wait.

        Args:
            connection: the one that it came by.
            message: its bytes.
            now: seconds, monotonic.
        Returns: what has happened to this connection for the first time.
        """
        neighbor = self._neighbor(connection, now)
        if connection not in self._turns:
            self._turns[connection] = neighbor
            neighbor.used_s = max(neighbor.used_s, self._level_s - CREDIT_S)
        neighbor.waiting.add(message)
        self.held += 1
        is_paced = self._is_paced(neighbor)
        self.at = min(self.at, max(now, self._due(neighbor)))
        self._look_at(self.at)
        if self._shorten(neighbor) and not neighbor.has_lost:
            neighbor.has_lost = True
            return FirstPacingEvent.DROPPED
        if not is_paced or neighbor.has_waited:
            return None  # one that waits for the next turn alone is not told of
        neighbor.has_waited = True
        return FirstPacingEvent.WAITED

    def _shorten(self, neighbor: NeighborAllowance) -> int:
        """Drop what is too much. Returns: messages dropped."""
        if neighbor.waiting.bytes <= self._most_bytes:
            return 0
        dropped = neighbor.waiting.shorten(int(self._most_bytes * KEPT_PART))
        self.dropped += dropped
        return dropped

    def _is_paced(self, neighbor: NeighborAllowance) -> bool:
        """Whether it has used up its allowance since it began to wait."""
        neighbor.is_paced = neighbor.is_paced or not self._has_time(neighbor)
        return neighbor.is_paced

    def _has_time(self, neighbor: NeighborAllowance) -> bool:
        return neighbor.left_s > 0 and self._all.left_s > 0

    def _due(self, neighbor: NeighborAllowance) -> float:
        """Time at which its next message may be taken, seconds."""
        return max(self._rests_until, self._own_due(neighbor))

    def _own_due(self, neighbor: NeighborAllowance) -> float:
        """Time at which a neighbor's next message may be taken but for the pause that all have, seconds."""
        return max(neighbor.reads_until, self._paced_until) if self._is_paced(neighbor) else neighbor.reads_until

    def _next_due(self) -> float:
        return min(map(self._due, self._turns.values()), default=math.inf)

    def take(self, now: float) -> tuple[ConnectionId, bytes] | None:
        """The message whose turn it is at *now* (seconds); None when none may be taken."""
        ready = [connection for connection, neighbor in self._turns.items() if self._own_due(neighbor) <= now]
        if not ready:
            self.at = self._next_due()
            return None
        connection = min(ready, key=self._rank)  # the first of those that are equal
        neighbor = self._turns.pop(connection)
        self._took_paced = neighbor.is_paced
        self._level_s = max(self._level_s, neighbor.used_s)
        message = neighbor.waiting.take()
        if neighbor.waiting:
            self._turns[connection] = neighbor
        else:
            neighbor.is_paced = False
        return connection, message

    def _rank(self, connection: ConnectionId) -> tuple[bool, float]:
        neighbor = self._turns[connection]
        return neighbor.is_paced, neighbor.used_s

    def rest(self, used_s: float, now: float) -> None:
        """Pause after a message that was taken.

        Args:
            used_s: what it took, seconds.
            now: seconds, monotonic.
        """
        if self._took_paced:
            self._paced_until = max(self._paced_until, now) + used_s / self._share
        self.at = self._next_due()

    def note(self, connection: ConnectionId, size: int, used_s: float) -> None:
        """Note that a message was taken, and that what follows from it is handled next.

        Args:
            connection: by which it came.
            size: its bytes.
            used_s: what taking it took, seconds.
        """
        self.add(used_s)
        size = max(1, size)  # one without a byte takes time too, and may be the only one
        self._charged[connection] = self._charged.get(connection, 0) + size
        self._charged_bytes += size

    def note_read(self, connection: ConnectionId, used_s: float, now: float) -> None:
        """Note that reading a message took *used_s*, whether it is handled next or has to wait.

        Others don't wait for it: a flood that is read would keep them waiting for as long as it lasts.

        Args:
            connection: by which it came.
            used_s: seconds.
            now: seconds, monotonic.
        """
        self._control_s += used_s
        neighbor = self._neighbor(connection, now)
        self._bill(neighbor, used_s)
        neighbor.reading.refill(self._pieces_share, now)
        neighbor.reading.use(used_s, self._pieces_share * LONGEST_PAUSE_S)
        if neighbor.reading.left_s < 0:
            neighbor.reads_until = now - neighbor.reading.left_s / self._pieces_share

    def add(self, used_s: float) -> None:
        """Note that *used_s* (seconds) were used for the messages that are handled next."""
        self._used_s += used_s
        self._control_s += used_s

    def charge(self, now: float) -> None:
        """Put what the messages noted took on the accounts of those who sent them.

        Args:
            now: seconds, monotonic.
        """
        used_s, self._used_s = self._used_s, 0.0
        if not self._charged:
            return
        total, self._charged_bytes = self._charged_bytes, 0
        self._pause(used_s, now)
        for connection, size in self._charged.items():
            self._charge_one(connection, used_s * size / total, now)
        self._charged.clear()
        self.at = self._next_due()

    def charge_at_once(self, connection: ConnectionId, used_s: float, now: float) -> None:
        """Charge a message from which nothing follows that is handled next.

        Args:
            connection: by which it came.
            used_s: what taking it took, seconds.
            now: seconds, monotonic.
        """
        self._control_s += used_s
        self._pause(used_s, now)
        self._charge_one(connection, used_s, now)
        self.at = self._next_due()

    def _pause(self, used_s: float, now: float) -> None:
        """Have messages of all neighbors pause for *used_s*, seconds."""
        self._refill_piece(now)
        self._piece.use(self._pieces_share * self._pause_after(used_s), self._pieces_share * LONGEST_PAUSE_S)
        self._rests_until = max(self._rests_until, now - self._piece.left_s / self._pieces_share)

    def _charge_one(self, connection: ConnectionId, used_s: float, now: float) -> None:
        """Put *used_s*, seconds, on the account of a neighbor, or on that of all if its connection is gone."""
        self._all.refill(self._share, now)
        neighbor = self._neighbors.get(connection)
        if neighbor is None:
            self._all.use(used_s)
        else:
            neighbor.refill(self._share, now)
            self._bill(neighbor, used_s)

    def _bill(self, neighbor: NeighborAllowance, used_s: float) -> None:
        if neighbor.left_s > 0 and not neighbor.is_paced:
            self._all.use(used_s)  # what the others use has its pauses, and must not use up what these have
        neighbor.use(used_s)
        if not self._turns:
            self._level_s = max(self._level_s, neighbor.used_s)
        neighbor.used_s += used_s

    def _pause_after(self, used_s: float) -> float:
        """Pause that others are owed after *used_s*, both in seconds."""
        of_a_long_one = used_s * used_s / PIECE_S / QUIET_SHARE
        return min(max(used_s / self._pieces_share, of_a_long_one), LONGEST_PAUSE_S)

    def _refill_piece(self, now: float) -> None:
        """Add to what is left of a piece: the less, the more the router has used for others since the last look."""
        looked_at, used_before_s, control_before_s = self._looked_at
        if now - looked_at >= LOOK_S:
            used_s, control_s = self.measure(), self._control_s
            spent_s = control_s - control_before_s
            busy = (used_s - used_before_s - spent_s) / max(LOOK_S, now - looked_at - spent_s)
            self._pieces_share = QUIET_SHARE - (QUIET_SHARE - BUSY_SHARE) * min(1.0, max(0.0, busy))
            self._looked_at = now, used_s, control_s
        self._piece.refill(self._pieces_share, now)

    def forget(self, connection: ConnectionId) -> None:
        """Forget a connection that is gone, and what waits of it."""
        self._neighbors.pop(connection, None)
        if self._turns.pop(connection, None) is not None:
            self.at = self._next_due()

    def counters(self) -> dict[str, int]:
        """Counts since the start, by name."""
        return {"control_waited": self.held, "control_unread": self.dropped}

    def _neighbor(self, connection: ConnectionId, now: float) -> NeighborAllowance:
        neighbor = self._neighbors.get(connection)
        if neighbor is None:
            neighbor = self._neighbors[connection] = NeighborAllowance(BURST_S, now)
        else:
            neighbor.refill(self._share, now)
        return neighbor


def _is_hello(message: bytes) -> bool:
    return len(message) <= MOST_HELLO_BYTES and _HELLO in message[:HELLO_HEAD_BYTES]
