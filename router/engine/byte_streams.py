"""The two streams of bytes of one connection, between its socket and proton.

What a socket has is read straight into the engine's buffer, and looked at by the guard before the engine is. What the
engine has to say is written straight from its buffer. Nothing here waits, and nothing knows what the bytes are for.
"""

from __future__ import annotations

from typing import Final

import cython

from router.binding import proton_functions as pn
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition
from router.guard.frame_guard import FrameGuard

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        NULL,
        bytes_at,
        pn_transport_capacity,
        pn_transport_closed,
        pn_transport_get_frames_input,
        pn_transport_head,
        pn_transport_pending,
        pn_transport_pop,
        pn_transport_process,
        pn_transport_tail,
        pni_transport_grow_capacity,
        push,
        read_tail,
        silence,
        write_head,
    )
    from router.engine.byte_stream_limits import (
        LEAST_FAIR_PIECE_BYTES,
        LEAST_PIECE_BYTES,
        MOST_PIECE_BYTES,
        MOST_SHARED_PIECE_BYTES,
        PIECE_COPIES,
        PIECE_FRAMES,
    )

ANSWER_COPIES: Final = 400
"""Number of copies that a Begin or Attach of the peer counts as: it takes 50 us and more, and thousands may come in a
row."""
LARGE_BYTES: Final = 16_000
"""Minimum size of a write that more may follow, bytes: the kernel is told to wait for it."""
FRAME_BYTES: Final = 64
"""Bytes that an encoded frame takes which is not to be written yet, such as an outcome."""
MANY_COPIES: Final = 64
"""Number of copies caused by one piece from which on others go before the connection."""


def bounded(size: int, least: int, most: int) -> int:
    """The size that is nearest to *size*, from *least* to *most*, bytes."""
    return min(most, max(least, size))


class ByteStreams:
    """Streams of bytes read from a connection's socket, and written to it."""

    def __init__(self, guard: FrameGuard) -> None:
        """*guard* sees what the peer writes before the engine does."""
        self._guard = guard
        self._transport = pn.pn_transport()
        silence(self._transport)
        self.end_reason: str | None = None
        """Reason why the connection ended; None while it has not."""
        self.is_ending = False
        """Whether the end of the connection was reported; only bytes are still to be written."""
        self.is_closing = False
        """Whether our Close is on its way."""
        self.moved_bytes = 0
        """Bytes read and written since what is held for the peer was counted (`memory_meter.py`)."""
        self._violation: PeerProtocolError | None = None
        """Violation that the guard has found."""
        self._piece = LEAST_PIECE_BYTES
        """Maximum number of bytes to read next, by the number of frames."""
        self._fair_piece = MOST_PIECE_BYTES
        """Maximum number of bytes to read next, by the number of copies they cause for others."""
        self._count = 0
        """Number of bytes that the last read brought."""
        self._may_have_more = False
        """Whether the last read brought as much as it asked for, so that the socket may have more."""
        self._copies = 0
        """Messages that have left because of the last read; Begins and Attaches count as `ANSWER_COPIES` each."""
        self._rest = b""
        """Bytes that were read and wait for a later turn, since what is before them is enough work for now."""
        self._seen = 0
        """Number of pending bytes that the guard has seen already."""
        self.unanswered = 0
        """Begins and Attaches of the peer since everything was last written."""
        self._frames_before = 0
        """Frames that had been written when everything was last written."""

    def capacity(self) -> int:
        """Bytes that can be fed now; negative when no more are wanted."""
        return int(pn_transport_capacity(self._transport))

    def tail(self, size: int) -> memoryview:
        """Memory for the next *size* bytes, at most `capacity`; then call `received`."""
        return pn.memory_at(pn_transport_tail(self._transport), size)

    def received(self, size: int) -> None:
        """Take in bytes that stand in `tail`. What they cause is handled by `dispatch`; then see `has_rest`.

        Args:
            size: bytes.
        """
        self._take(size)
        self.moved_bytes += size

    def unread(self, data: bytes) -> None:
        """Take back bytes that were read before the engine was there; `has_rest` tells of them.

        Args:
            data: what comes before everything that is still to be read.
        """
        self._rest = data + self._rest

    def has_rest(self) -> bool:
        """Whether the engine was not given all that was read: `go_on` is due, before anything more is read."""
        return bool(self._rest) and pn_transport_capacity(self._transport) > 0

    def go_on(self) -> None:
        """Let the engine have more of what was read; what that causes is handled by `dispatch`."""
        rest = self._rest
        size = min(len(rest), pn_transport_capacity(self._transport))
        pn.memory_at(pn_transport_tail(self._transport), size)[:] = rest[:size]
        self._rest = b""
        self._take(size)
        self._rest += rest[size:]

    def _take(self, size: int) -> None:
        """Let the engine have what stands in its buffer, as far as the guard lets it pass."""
        guard = self._guard
        tail = pn_transport_tail(self._transport)
        kept = guard.kept
        passed = guard.feed(bytes_at(tail - kept, kept + size), kept + size) - kept
        for at, right in guard.corrections:
            pn.memory_at(tail - kept + at, len(right))[:] = right
        if guard.is_broken:
            self._break(passed)
            return
        if passed < size:
            self._rest = bytes(pn.memory_at(tail + passed, size - passed))
            size = passed
        pn_transport_process(self._transport, size)
        end = pn_transport_tail(self._transport)
        if end != NULL and end != tail - kept + guard.kept and pn_transport_capacity(self._transport) >= 0:
            # The guard would look at what isn't there.
            self._violation = PeerProtocolError("the engine lost count", condition=Condition.INTERNAL_ERROR)
            pn.report_error(self._transport, str(Condition.INTERNAL_ERROR), "the engine lost count")

    def end_because(self, reason: str | None) -> None:
        """Note why the connection ends. The first reason counts; a fault of bytes is noted as they are read."""
        self.end_reason = self.end_reason or reason

    def _break(self, passed: int) -> None:
        """Take no more from a peer that has violated the protocol, and tell it so."""
        guard = self._guard
        if passed > 0:
            pn_transport_process(self._transport, passed)
        if self._violation is not None:
            return
        self.end_because(guard.description)
        self._violation = PeerProtocolError(guard.description, condition=Condition(guard.condition))
        if guard.is_header_wrong:
            # The answer is the header that is served here, and then the end. The engine must not take it for TLS.
            pn.memory_at(pn_transport_tail(self._transport), 8)[:] = 8 * b"\xff"
            pn_transport_process(self._transport, 8)
        else:
            pn.report_error(self._transport, guard.condition, guard.description)

    def fill(self, fd: int, is_shared: bool) -> int:
        """Read a piece from a non-blocking socket; what that causes is handled by `dispatch`.

        Where there is a rest, the engine is given more of that instead.

        Args:
            fd: descriptor of the socket.
            is_shared: whether others have single messages: they wait for one piece, which is then a smaller one.
        Returns: bytes read; 0 when the peer has ended; -1 when nothing was there; below that an error, as `-1 - errno`.
        """
        if self._rest:
            self.go_on()
            return 1
        fair = 2 * self._fair_piece  # at most doubled: messages with many copies may follow flows, which have none
        if self._copies:
            fair = min(fair, PIECE_COPIES * self._count // self._copies)
        self._fair_piece = bounded(fair, LEAST_FAIR_PIECE_BYTES, MOST_PIECE_BYTES)
        self._copies = 0
        before = pn_transport_get_frames_input(self._transport)
        most = min(self._piece, self._fair_piece)
        if is_shared and most > MOST_SHARED_PIECE_BYTES:
            most = MOST_SHARED_PIECE_BYTES
        count = self._read(fd, most)
        if count > 0:
            frames = pn_transport_get_frames_input(self._transport) - before
            self._piece = bounded(PIECE_FRAMES * count // max(1, frames), LEAST_PIECE_BYTES, MOST_PIECE_BYTES)
            self._count = count
            self.moved_bytes += count
        self._may_have_more = count == most
        return count

    def _read(self, fd: int, most: int) -> int:
        """Read until nothing more is there, or *most* bytes, straight into the engine's buffer.

        The buffer of a connection that fills it grows, up to the largest frame. Returns: as `fill`.
        """
        total = 0
        while total < most:
            capacity = pn_transport_capacity(self._transport)
            if capacity <= 0:
                break
            size = min(capacity, most - total)
            count = read_tail(self._transport, fd, size)
            if count <= 0:
                return total or count
            self._take(count)
            total += count
            if self._rest:
                break
            if count == capacity:
                pni_transport_grow_capacity(self._transport, 2 * capacity)
            if count < size:
                break
        return total

    def is_heavy(self) -> bool:
        """Whether others go before it: there is more to read than was read last, or that has caused many copies."""
        return self._may_have_more or self._copies >= MANY_COPIES or self.has_rest()

    def is_attaching(self) -> bool:
        """Whether there is more to read than links and sessions that begin and end, which were enough work for now."""
        return self._guard.has_endpoints and self.has_rest()

    def has_single_messages(self) -> bool:
        """Whether what was read last was a few small messages, and no more was there: somebody waits for each."""
        return self._copies > 0 and self._count < LEAST_PIECE_BYTES and not self._may_have_more

    def empty(self, fd: int, most: int) -> int:
        """Write what is pending to a non-blocking socket, straight from the engine's buffer.

        Args:
            fd: descriptor of the socket.
            most: bytes after which no further piece is written.
        Returns: bytes written when these were all; -1 when there are more than the kernel takes now, or than *most*; -2
            when nothing will ever be written again; below that an error, as `-2 - errno`.
        """
        count = self._write(fd, most)
        if count >= 0 and self._has_more_to_say():
            more = self._write(fd, most)
            count = count + more if more >= 0 else more
        return count

    def _write(self, fd: int, most: int) -> int:
        total = 0
        is_held = False
        while True:
            size = self._writable()
            if size <= 0:
                total = total if size == 0 else -2
                break
            if total >= most:
                total = -1
                break
            count = write_head(self._transport, fd, size)
            if count < 0:
                total = -1 if count == -1 else count - 1
                break
            is_held = size >= LARGE_BYTES
            self.sent(count)
            total += count
        if is_held:
            push(fd)
        return total

    def received_end(self) -> None:
        """The peer sends nothing more."""
        pn.pn_transport_close_tail(self._transport)

    def pending(self) -> int:
        """Bytes that wait to be written; negative when nothing will ever be written again."""
        size = self._writable()
        if size == 0 and self._has_more_to_say():
            size = self._writable()
        return int(size)

    def _writable(self) -> int:
        """Bytes that can be written now, which the guard has seen and put right; negative for the end."""
        size: int = pn_transport_pending(self._transport)
        if size <= 0:
            return size
        own = self._guard.own
        if size > self._seen:
            new = pn_transport_head(self._transport) + self._seen
            own.watch(bytes_at(new, size - self._seen), size - self._seen)
            self._seen = size
            if own.corrections:
                for at, right in own.corrections:
                    pn.memory_at(new + at, len(right))[:] = right
                own.corrections.clear()
        return int(size - own.unfinished())

    def _has_more_to_say(self) -> bool:
        """Whether there may be more to write, now that everything is written."""
        if not self.unanswered and not self._guard.has_questions:
            return False
        if self.unanswered:
            self._check_answers()
        if self._guard.has_questions and not self.is_closing:
            for channel, body in self._guard.answers():
                pn.send_frame(self._transport, channel, body)
        return True

    def _owe_frame(self) -> None:
        if not self.unanswered:
            self._frames_before = self._frames_written()
        self.unanswered += 1

    def _check_answers(self) -> None:
        """Everything is written: see that the answers are among it.

        When one would be beyond the peer's handle-max, or the channel-max, proton writes nothing any more and tells
        nobody. Such a connection would take messages for ever and pass on none.
        """
        if self._frames_written() - self._frames_before < self.unanswered and not self.is_ending:
            self.end_because("answers beyond handle-max or channel-max")
            self.received_end()
        self.unanswered = 0
        self._guard.asked_bytes = 0

    def _frames_written(self) -> int:
        return int(pn.pn_transport_get_frames_output(self._transport))

    def head(self, size: int) -> memoryview:
        """The first *size* pending bytes; then call `sent`."""
        return pn.memory_at(pn_transport_head(self._transport), size)

    def sent(self, size: int) -> None:
        """Forget what is written.

        Args:
            size: bytes, from the begin of what is pending.
        """
        pn_transport_pop(self._transport, size)
        self._seen -= size
        self.moved_bytes += size

    def unwritten_bytes(self) -> int:
        """Number of own bytes that the peer does not take: those pending, and an estimate of the frames behind them."""
        return self._seen + FRAME_BYTES * max(0, self._frames_written() - self._guard.own.frames)

    def sent_end(self) -> None:
        """Note that nothing more can be written."""
        pn.pn_transport_close_head(self._transport)

    def tick(self, now: float) -> float | None:
        """Keep heartbeats and the idle timeout.

        Args:
            now: seconds, monotonic.
        Returns: when to call again, seconds on the same clock, or None.
        """
        deadline = pn.pn_transport_tick(self._transport, max(1, round(now * 1000)))
        return deadline / 1000 if deadline else None

    @property
    def is_closed(self) -> bool:
        """Whether both directions have ended."""
        return bool(pn_transport_closed(self._transport))
