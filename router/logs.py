"""Logging: one line for each change of state, as `key=value` or JSON, to standard error.

A line must never cost a router more than its own making. So lines are handed to a thread, which alone waits for whoever
reads them, be it a pipe, a file on a full disk, a terminal or the journal; they are bounded, and what finds no room or
can't be written is counted. What peers chose is escaped and cut, and of lines that are alike only so many are written.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from router.core.terminal_escaping import MOST_NAME_CHARACTERS, escaped

_rich = sys.modules.get("rich")
sys.modules["rich"] = None  # type: ignore[assignment]
try:  # it looks for rich, 4 MB of memory in each router, to show tracebacks in colors, which nobody here asks for
    import structlog
finally:
    if _rich is None:
        del sys.modules["rich"]
    else:
        sys.modules["rich"] = _rich

MOST_HELD_BYTES: Final = 1_048_576
"""Maximum size of the lines that wait to be written, bytes; as many may be on their way at the same time."""
RETRY_S: Final = 1.0
"""Pause after lines that could not be written, until the next ones are tried, seconds."""
CLOSE_S: Final = 2.0
"""Maximum wait at the end of the process for lines that are to be written, seconds."""
MOST_TRACEBACK_CHARACTERS: Final = 20_000
MOST_TEXT_CHARACTERS: Final = 1000
LONG_TEXTS: Final = ("reason", "message", "expected", "place", "key")
"""Fields with sentences, and with what stands in settings files; all others are cut like names."""

BURST_LINES: Final = 100
"""Number of lines of one event and one host that are written in a row before `LINES_PER_S` bounds them."""
LINES_PER_S: Final = 10.0
"""Rate at which lines of one event and one host are written after a burst, per second."""
OWN_BURST_LINES: Final = 5000
OWN_LINES_PER_S: Final = 100.0
"""Rate at which lines of an event that names no host are written after a burst of `OWN_BURST_LINES`, per second: a
router that comes up may reach a thousand others at once."""
MOST_KINDS: Final = 1000
"""Maximum number of pairs of event and host that are told apart; further hosts share one of each event."""
MOST_RECENT: Final = 1000
"""Number of lines that are remembered."""
MOST_RECENT_CHARS: Final = 1000
"""Maximum number of characters of a line that is remembered."""
SUMMARY_S: Final = 10.0
"""Time until it is said how many lines were left out, seconds."""


class LineBucket:
    """Lines of one event and one host: a token bucket."""

    __slots__ = ("event", "host", "left_out", "since", "tokens", "updated")

    def __init__(self, event: str, host: str, tokens: float, now: float) -> None:
        self.event = event
        self.host = host
        self.tokens = tokens
        self.updated = now
        self.left_out = 0
        """Number of lines that were not written and not summed up yet."""
        self.since = math.inf
        """Time at which the first line in `left_out` was left out, seconds."""


class RateLimit:
    """Decides which lines are too many, by event and host."""

    def __init__(self, *, burst: float = BURST_LINES, lines_per_s: float = LINES_PER_S) -> None:
        self._burst = burst
        self._lines_per_s = lines_per_s
        self._kinds: dict[tuple[str, str], LineBucket] = {}
        self._left_out: dict[tuple[str, str], LineBucket] = {}

    def admits(self, event: str, host: str, now: float) -> bool:
        """Whether a line is to be written; one that is not is counted.

        Args:
            event: the line's.
            host: the peer's, without port; empty when the line is about none.
            now: seconds, monotonic.
        """
        if host and (event, host) not in self._kinds and len(self._kinds) >= MOST_KINDS:
            self._forget_full(now)
            if len(self._kinds) >= MOST_KINDS:
                host = "others"
        burst, rate = (self._burst, self._lines_per_s) if host else (OWN_BURST_LINES, OWN_LINES_PER_S)
        kind = self._kinds.get((event, host))
        if kind is None:
            kind = self._kinds[event, host] = LineBucket(event, host, burst, now)
        kind.tokens = min(burst, kind.tokens + (now - kind.updated) * rate)
        kind.updated = now
        if kind.tokens >= 1:
            kind.tokens -= 1
            return True
        if not kind.left_out:
            kind.since = now
            self._left_out[event, host] = kind
        kind.left_out += 1
        return False

    def _forget_full(self, now: float) -> None:
        """Forget kinds of which nothing was written for so long that they are like new ones."""
        rest_s = self._burst / self._lines_per_s
        self._kinds = {key: kind for key, kind in self._kinds.items() if kind.left_out or now - kind.updated < rest_s}

    @property
    def next_summary(self) -> float:
        """Time at which `summaries` has something, seconds; infinity when no line was left out."""
        return next(iter(self._left_out.values())).since + SUMMARY_S if self._left_out else math.inf

    def summaries(self, now: float) -> list[tuple[str, str, int]]:
        """Event, host and number of the lines that were left out up to `SUMMARY_S` ago.

        Args:
            now: seconds, monotonic.
        """
        found = []
        for key, kind in list(self._left_out.items()):
            if kind.since + SUMMARY_S > now:
                break  # they stand in the order of their times
            found.append((kind.event, kind.host, kind.left_out))
            kind.left_out = 0
            del self._left_out[key]
        return found


class LineWriter:
    """Writes lines to a descriptor by a thread of its own: `put` neither blocks nor raises, whatever becomes of them.

    Args:
        fd: blocking or not; None to count everything as dropped.
        dropped: makes the line that says how many were dropped; empty for none.
        most_bytes: lines that may wait.
        due: makes further lines when it is their time, and says how many seconds there are until then.
    """

    def __init__(
        self,
        fd: int | None,
        dropped: Callable[[int], bytes],
        *,
        most_bytes: int = MOST_HELD_BYTES,
        retry_s: float = RETRY_S,
        due: Callable[[bool], tuple[list[bytes], float]] = lambda is_last: ([], math.inf),
    ) -> None:
        self._fd = fd
        self._dropped_line = dropped
        self._most_bytes = most_bytes
        self._retry_s = retry_s
        self._due = due
        # Reentrant: while it is held, the collector of garbage may run what writes a line.
        self._changed = threading.Condition(threading.RLock())
        self._lines: list[bytes] = []
        self._held = 0
        self._dropped = 0
        self._is_closed = self._is_woken = False
        self._is_torn = False
        """Whether the last line was written in part."""
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Have *line*, with its end, written, or counted as dropped."""
        with self._changed:
            if self._held + len(line) > self._most_bytes:
                self._dropped += 1
                return
            self._lines.append(line)
            self._held += len(line)
            self._changed.notify()

    def wake(self) -> None:
        """Ask `due` anew: it may have something earlier than it said."""
        with self._changed:
            self._is_woken = True
            self._changed.notify()

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Write what is there.

        Args:
            timeout_s: seconds to wait at most for whoever reads it.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        lost = 0
        """Number of lines that could not be written, and of which nobody was told yet."""
        is_closed = False
        wait_s = 0.0
        while not is_closed:
            lines, dropped, is_closed = self._take(wait_s)
            more, wait_s = self._due(is_closed)
            lines += more
            if not lines and not dropped:
                continue
            before = self._dropped_line(lost) if lost else b""
            lines.insert(0, b"\n" + before if self._is_torn else before)
            lines.append(self._dropped_line(dropped) if dropped else b"")
            counts = [lost, *[1] * (len(lines) - 2), dropped]
            """Number of lines of which nobody is told when a line is not written, by line."""
            lost = self._write(lines, counts)
            if lost:
                self._rest()

    def _take(self, wait_s: float) -> tuple[list[bytes], int, bool]:
        """Take what is to write, once there is something or *wait_s* is over; with the number dropped behind it."""
        with self._changed:
            if not (self._lines or self._dropped or self._is_closed or self._is_woken) and wait_s > 0:
                self._changed.wait(None if wait_s == math.inf else wait_s)
            self._is_woken = False
            lines, self._lines, self._held = self._lines, [], 0
            dropped, self._dropped = self._dropped, 0
            return lines, dropped, self._is_closed

    def _rest(self) -> None:
        end = time.monotonic() + self._retry_s
        with self._changed:
            while not self._is_closed and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)

    def _write(self, lines: list[bytes], counts: list[int]) -> int:
        """Write *lines*. Returns: the sum of the *counts* of those that could not be written."""
        data = memoryview(b"".join(lines))
        at = 0
        while at < len(data):
            try:
                if self._fd is None:
                    raise OSError
                at += os.write(self._fd, data[at:])
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._fd or 0, select.POLLOUT)
                poll.poll(int(1000 * self._retry_s))
            except OSError:
                break
        else:
            self._is_torn = False
            return 0
        if at:
            self._is_torn = data[at - 1] != ord("\n")
        ends = accumulate(map(len, lines))
        return sum(count for count, end in zip(counts, ends, strict=True) if end > at)


class _Log:
    """Objects that `configure` has made: the rate limit, and the writer with its own lines."""

    def __init__(self, fd: int | None, chain: Sequence[Any], wrapper: Any, fields: Mapping[str, object]) -> None:
        self._limit = RateLimit()
        self._lock = threading.RLock()
        self._own: Any = structlog.wrap_logger(
            structlog.ReturnLogger(), processors=[*chain, _as_line], wrapper_class=wrapper
        ).bind(**fields)
        self.writer = LineWriter(fd, self._dropped, due=self._due)

    def admit(self, _: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Processor: leave out what is too many."""
        with self._lock:
            was_none = self._limit.next_summary == math.inf
            is_admitted = self._limit.admits(line["event"], host_of(line.get("host")), time.monotonic())
        if not is_admitted:
            if was_none:
                self.writer.wake()
            raise structlog.DropEvent
        return line

    def put(self, _: object, __: str, line: Any) -> str:
        """Processor: the last one."""
        self.writer.put(_as_line(_, __, line))
        raise structlog.DropEvent

    def _dropped(self, count: int) -> bytes:
        line: bytes | None = self._own.warning("lines_dropped", count=count)
        return line or b""

    def _due(self, is_last: bool) -> tuple[list[bytes], float]:
        now = time.monotonic()
        with self._lock:
            found = self._limit.summaries(math.inf if is_last else now)
            wait_s = self._limit.next_summary - now
        made = [self._own.warning("more_like_this", of=event, host=host, count=count) for event, host, count in found]
        return [line for line in made if line], max(0.0, wait_s)


_log: _Log | None = None


class RecentLines:
    """The last lines, and how many there were of each level: what management asks for."""

    def __init__(self) -> None:
        self.level = logging.INFO
        """Least severe lines that are written."""
        self.is_json = False
        """Whether lines are written as JSON."""
        self.lines: deque[tuple[float, str, str]] = deque(maxlen=MOST_RECENT)
        """Time in seconds since 1970, level and text of each that was written."""
        self.counts: Counter[str] = Counter()
        """Number of lines by level, also of those that were not written."""

    def count(self, _: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Processor: count a line, and leave it out where its level isn't written."""
        level = str(line["level"])
        self.counts[level] += 1
        if logging.getLevelNamesMapping()[level.upper()] < self.level:
            raise structlog.DropEvent
        return line

    def remember(self, _: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """Processor: remember a line that is escaped and not rendered yet."""
        texts = (
            f"{key}={value}" for key, value in line.items() if key not in ("event", "level", "timestamp", "router")
        )
        self.lines.append((time.time(), str(line["level"]), " ".join((str(line["event"]), *texts))[:MOST_RECENT_CHARS]))
        return line


recent = RecentLines()
"""Lines that this process has written last."""


def set_level(level: str) -> None:
    """Write lines from *level* on: debug, info, warning, error; `none` for none."""
    recent.level = logging.CRITICAL + 1 if level == "none" else logging.getLevelNamesMapping()[level.upper()]


def get_level() -> str:
    """Least severe lines that are written, in a word; `none` for none."""
    return "none" if recent.level > logging.CRITICAL else logging.getLevelName(recent.level).lower()


FORMATS: Final = ("key-value", "json")
"""Forms of a line."""


def set_format(form: str) -> None:
    """Write lines in one of FORMATS from now on."""
    assert form in FORMATS
    recent.is_json = form == "json"


def get_format() -> str:
    """Return the name in FORMATS of the format in which lines are written."""
    return FORMATS[recent.is_json]


FIRST: Final = ("timestamp", "level", "event")
"""Fields that stand first in a line."""
_as_words = structlog.processors.LogfmtRenderer(key_order=FIRST, bool_as_flag=False)


def render(logger: Any, method: str, line: structlog.typing.EventDict) -> Any:
    """Processor: make the text of a line whose values are escaped."""
    if not recent.is_json:
        return _as_words(logger, method, line)
    ordered = {key: line.pop(key) for key in FIRST if key in line} | dict(line)
    for key, value in ordered.items():
        if isinstance(value, float) and not math.isfinite(value):
            ordered[key] = str(value)  # JSON has no such number
    return json.dumps(ordered, ensure_ascii=False)


def configure(level: str = "info", *, form: str = FORMATS[0], **fields: object) -> None:
    """Write lines from *level* (debug, info, warning, error) on to standard error, by a thread: `close` ends it.

    Args:
        level: least severe lines that are written; `none` for none.
        form: one of FORMATS.
        fields: of the lines that the log has to say of itself.
    """
    global _log  # noqa: PLW0603  structlog is configured for the whole process too
    close()
    set_level(level)
    set_format(form)
    # All of them come to `RecentLines.count`, which leaves out what is below a level that may change.
    wrapper = structlog.make_filtering_bound_logger(logging.DEBUG)
    chain: list[Any] = [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        escape_values,
        recent.remember,
        render,
    ]
    _log = log = _Log(_standard_error(), [structlog.processors.add_log_level, *chain], wrapper, fields)
    structlog.configure(
        processors=[structlog.processors.add_log_level, recent.count, log.admit, *chain, log.put],
        wrapper_class=wrapper,
        logger_factory=structlog.ReturnLoggerFactory(),
        cache_logger_on_first_use=False,
    )
    sys.unraisablehook = _unraisable


def close() -> None:
    """Write what is there, within `CLOSE_S`; lines that come later are lost."""
    global _log
    log, _log = _log, None
    if log is not None:
        log.writer.close()
        sys.unraisablehook = sys.__unraisablehook__


def get(**fields: object) -> Any:
    """A logger that adds *fields* to each line."""
    return structlog.get_logger().bind(**fields)


def host_of(value: object) -> str:
    """The host of a peer, without its port, which a line may have or not: `::1`, `[::1]:5672`."""
    text = str(value or "")
    host, colon, _ = text.rpartition(":")
    if not colon or (":" in host and not host.startswith("[")):
        return text
    return host.strip("[]")


def escape_values(_: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Processor: escape and cut what peers may have chosen."""
    for key, value in line.items():
        if key == "exception":
            text = str(value)[-MOST_TRACEBACK_CHARACTERS:]  # what was raised stands at the end
            line[key] = "\n".join(map(escaped, text.split("\n")))
        elif value is not None and not isinstance(value, bool | int | float):
            line[key] = escaped(str(value), MOST_TEXT_CHARACTERS if key in LONG_TEXTS else MOST_NAME_CHARACTERS)
    return line


def _as_line(_: object, __: str, line: Any) -> bytes:
    return str(line).encode("utf-8", "backslashreplace") + b"\n"


def _standard_error() -> int | None:
    """Return the descriptor of standard error; None when there is none.

    Descriptors 0 to 2 that were closed are opened again, so that no socket takes the place of a standard stream.
    """
    is_there = _is_open(2)
    while not all(map(_is_open, range(3))):
        os.open(os.devnull, os.O_RDWR)
    return 2 if is_there else None


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _unraisable(found: Any) -> None:
    """Log what was raised where nothing can be raised, instead of waiting for whoever reads standard error."""
    get().error("unraisable", where=repr(found.object), exc_info=found.exc_value)
