"""Sums of what the demonstration's clients report: rates, latencies, errors, and which message came where.

Times are seconds of the monotonic clock.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

import attrs

from router.cli.demo.blueprint import ANY, CALLERS, CUT, DESTINATIONS, SERVERS

CUT_STREAM = (CUT[1], SERVERS[CUT[0]])
"""The calls that go over the link that is cut."""
RECENT_S = 3.0
"""Time that counts as now, seconds."""
UNDERWAY_S = 0.5
"""Time after the cut in which a call may have met a router that did not know of it yet: on a busy machine."""


def percentile(values: Iterable[float], share: float) -> float:
    """Find the smallest of *values* that is not exceeded by *share* of them; NaN when there are none.

    Args:
        values: in any order.
        share: 0 to 1.
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


@attrs.define
class PhaseCalls:
    """The calls of one stream before or after the cut."""

    latencies: array[float] = attrs.field(factory=lambda: array("d"))
    """Latencies of the answered calls, seconds."""
    errors: int = 0
    servers: Counter[str] = attrs.field(factory=Counter)
    """Calls answered, by server."""

    @property
    def calls(self) -> int:
        """Calls made, answered or not."""
        return len(self.latencies) + self.errors


@attrs.define
class CallStream:
    """The calls of one caller to one destination."""

    router: str
    """Router to which the caller is attached."""
    where: str
    """A server's name, or `ANY`."""
    before: PhaseCalls = attrs.field(factory=PhaseCalls)
    after: PhaseCalls = attrs.field(factory=PhaseCalls)
    recent: deque[tuple[float, float, str]] = attrs.field(factory=lambda: deque(maxlen=10000))
    """The last calls: the time of the end of each, how long it took, and who answered."""

    @property
    def phases(self) -> tuple[PhaseCalls, PhaseCalls]:
        """Calls before the cut, and calls after it."""
        return self.before, self.after

    def forget_old(self, now: float) -> None:
        """Let `recent` be the last `RECENT_S`.

        Args:
            now: seconds.
        """
        while self.recent and self.recent[0][0] < now - RECENT_S:
            self.recent.popleft()


@attrs.define
class Casts:
    """Casts of one kind: who sent which when, and who got it."""

    sent: dict[str, float] = attrs.field(factory=dict)
    received: dict[str, Counter[str]] = attrs.field(factory=lambda: {name: Counter() for name in SERVERS.values()})
    """Number of times that each cast came, by server."""

    def count(self) -> int:
        """All that the servers got."""
        return sum(counter.total() for counter in self.received.values())


@attrs.define
class Measures:
    """Everything that was reported."""

    began_at: float = math.nan
    cut_at: float = math.inf
    streams: dict[tuple[str, str], CallStream] = attrs.field(
        factory=lambda: {(router, where): CallStream(router, where) for router in CALLERS for where in DESTINATIONS}
    )
    casts: Casts = attrs.field(factory=Casts)
    """One server gets each."""
    fanouts: Casts = attrs.field(factory=Casts)
    """Each server gets each."""
    failures: list[str] = attrs.field(factory=list)
    """Calls that failed and needn't have."""
    underway: list[str] = attrs.field(factory=list)
    """Calls and casts that were lost on the link as it was cut."""
    resumed_at: float = math.inf
    """End of the first call of `CUT_STREAM` that was begun after the cut, so it has come by another way."""

    def add_call(self, router: str, where: str, began: float, ended: float, server: str, error: str) -> None:
        """Count a call that has ended.

        Args:
            router: that the caller is attached to.
            where: router of the server that was called.
            began: seconds.
            ended: seconds.
            server: who answered; empty with an error.
            error: its text; empty when there was none.
        """
        stream = self.streams[router, where]
        phase = stream.before if ended < self.cut_at else stream.after
        if error:
            phase.errors += 1
            text = (
                f"call of {CALLERS[router]} to {where} failed after {ended - began:.1f} s{self._when(began)}: {error}"
            )
            (self.underway if self._may_be_lost(router, where, began, ended) else self.failures).append(text)
            return
        phase.latencies.append(ended - began)
        phase.servers[server] += 1
        stream.recent.append((ended, ended - began, server))
        if (router, where) == CUT_STREAM and began >= self.cut_at:
            self.resumed_at = min(self.resumed_at, ended)

    def _may_be_lost(self, router: str, where: str, began: float, ended: float) -> bool:
        """Whether request or reply may have been on the link as it was cut: nothing can bring that back."""
        is_by_link = router == CUT[1] and where in (SERVERS[CUT[0]], ANY)
        return is_by_link and began < self.cut_at + UNDERWAY_S and ended > self.cut_at

    def is_missing(self) -> bool:
        """Whether a cast is still to come."""
        return bool(next(self._lost(), None))

    def cast_faults(self) -> list[str]:
        """Count what was lost or came twice and shouldn't have; to be called once, at the end.

        What was lost on the link as it was cut is added to `underway`.
        """
        faults: list[str] = []
        for text, is_excused in self._lost():
            (self.underway if is_excused else faults).append(text)
        for kind, casts in (("cast", self.casts), ("fanout cast", self.fanouts)):
            for server, counter in casts.received.items():
                faults += [f"{server} got {kind} {ident} {n} times" for ident, n in counter.items() if n > 1]
                faults += [f"{server} got {kind} {ident}, which nobody sent" for ident in counter.keys() - casts.sent]
        for ident in self.casts.sent:
            if sum(ident in counter for counter in self.casts.received.values()) > 1:
                faults.append(f"cast {ident} came to several servers")
        return faults

    def _lost(self) -> Iterator[tuple[str, bool]]:
        """Each cast that did not arrive, and whether it may have been lost on the link as it was cut."""
        for ident, at in self.casts.sent.items():
            if not any(ident in counter for counter in self.casts.received.values()):
                yield f"cast {ident} was lost{self._when(at)}", self._was_underway(ident, at)
        for server, counter in self.fanouts.received.items():
            for ident, at in self.fanouts.sent.items():
                if ident not in counter:  # on the link as it was cut, it is sent again by the other way
                    yield f"fanout cast {ident} did not reach {server}{self._when(at)}", False

    def _when(self, at: float) -> str:
        time_ms = 1000 * (self.cut_at - at)
        return f", sent {abs(time_ms):.0f} ms {'before' if time_ms > 0 else 'after'} the cut"

    def _was_underway(self, ident: str, at: float) -> bool:
        return ident.startswith(CALLERS[CUT[1]]) and abs(at - self.cut_at) < UNDERWAY_S


def rate(streams: Sequence[CallStream], now: float, began_at: float) -> float:
    """Calls answered per second, lately.

    Args:
        streams: those that are counted together.
        now: seconds.
        began_at: when calls began, seconds.
    """
    time_s = min(RECENT_S, now - began_at)
    return sum(len(stream.recent) for stream in streams) / time_s if time_s > 0 else 0.0
