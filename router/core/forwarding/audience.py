"""The local subscribers of a multicast address: who counts, and what they can take together.

A subscriber counts from its first grant on: it gets a copy of every message, and no message is sent while it has no
credit. One that stays at zero beyond the grace while others are held up by it is excluded: it counts no more and misses
copies, until it holds half its usual grant again and has paused. The pause doubles with each relapse, so that whoever
comes back only to stall again holds up the others for less and less of the time.

Times are seconds, monotonic; credit is messages. Source: design, section 6.
"""

from __future__ import annotations

import math

import attrs

from router.core.forwarding.orders import Key


@attrs.frozen(kw_only=True)
class Patience:
    """How long a subscriber without credit may hold up the others, seconds."""

    grace_s: float = 1.0
    """At zero for so long, it is excluded."""
    first_pause_s: float = 1.0
    """It stays excluded for at least so long."""
    longest_pause_s: float = 60.0
    """The pause doubles up to this. A subscriber that was excluded again within this time after it came back has
    relapsed; one that holds any credit at all comes back after this, whatever its usual grant was."""


class Subscriber:
    """One local subscriber."""

    __slots__ = (
        "credit",
        "excluded_at",
        "is_draining",
        "is_live",
        "is_withdrawn",
        "key",
        "missed",
        "pause_s",
        "readmitted_at",
        "usual",
        "zero_since",
    )

    def __init__(self, key: Key) -> None:
        self.key = key
        self.credit = 0
        """What it can take now."""
        self.is_draining = False
        """It asks for its credit back."""
        self.is_live = False
        """It counts."""
        self.is_withdrawn = False
        """It took its credit back by itself."""
        self.usual = 0
        """The largest credit that it had after a grant, while live."""
        self.zero_since = math.inf
        """Since when it is live without credit."""
        self.excluded_at = math.inf
        """Since when it is excluded; `math.inf` when it is live or has never granted."""
        self.readmitted_at = -math.inf
        self.pause_s = 0.0
        """From its last exclusion on."""
        self.missed = 0
        """Copies that went past it."""

    @property
    def is_excluded(self) -> bool:
        """Whether it has counted, and does not now."""
        return self.excluded_at < math.inf


class Audience:
    """All local subscribers of one multicast address at one router.

    Attributes:
        is_elsewhere: other routers have subscribers too, which a stalled one here may hold up.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.subscribers: dict[Key, Subscriber] = {}
        self.is_elsewhere = False
        self.missed = 0
        """Copies that went past subscribers, in all, departed ones too."""

    # What stands

    @property
    def live(self) -> list[Subscriber]:
        """Those that count, in the order of attaching."""
        return [s for s in self.subscribers.values() if s.is_live]

    @property
    def excluded(self) -> list[Subscriber]:
        """Those that counted once and do not now, in the order of attaching."""
        return [s for s in self.subscribers.values() if s.is_excluded]

    @property
    def capacity(self) -> int:
        """Messages of which every live subscriber can take a copy; 0 when none is live."""
        return min((s.credit for s in self.subscribers.values() if s.is_live), default=0)

    @property
    def is_draining(self) -> bool:
        """Whether a live subscriber asks for its credit back."""
        return any(s.is_draining for s in self.subscribers.values() if s.is_live)

    @property
    def is_withdrawn(self) -> bool:
        """Whether all that are live took their credit back."""
        return all(s.is_withdrawn for s in self.subscribers.values() if s.is_live)

    # What happens

    def add(self, key: Key) -> None:
        """A subscriber attached. It does not count before it grants, or each attach would hold up the others."""
        assert key not in self.subscribers, f"subscriber {key} attached twice"
        self.subscribers[key] = Subscriber(key)

    def remove(self, key: Key) -> None:
        """A subscriber is gone."""
        del self.subscribers[key]

    def changed(self, key: Key, credit: int, now: float, *, is_draining: bool, is_withdrawn: bool) -> None:
        """What a subscriber can take now."""
        subscriber = self.subscribers[key]
        if credit > 0 and not (subscriber.is_live or subscriber.is_excluded):
            subscriber.is_live = True
        if subscriber.is_live:
            if credit > subscriber.credit:
                subscriber.usual = max(subscriber.usual, credit)
            self._set_live_credit(subscriber, credit, now)
        subscriber.credit = credit
        subscriber.is_draining = is_draining and credit > 0
        subscriber.is_withdrawn = credit == 0 and (is_withdrawn or subscriber.is_withdrawn)

    def _set_live_credit(self, subscriber: Subscriber, credit: int, now: float) -> None:
        subscriber.credit = credit
        subscriber.zero_since = math.inf if credit > 0 else min(subscriber.zero_since, now)

    def spend(self, now: float) -> tuple[list[Key], list[Key]]:
        """One message is sent to all that are live. Returns: who gets a copy, and who misses it."""
        live, excluded = self.live, self.excluded
        for subscriber in live:
            assert subscriber.credit > 0, "sent without a subscriber's credit"
            self._set_live_credit(subscriber, subscriber.credit - 1, now)
            subscriber.is_draining = subscriber.is_draining and subscriber.credit > 0
        return [s.key for s in live], self._miss(excluded)

    def miss(self) -> list[Key]:
        """One message goes past all subscribers. Returns: who misses it, which is not who has never granted."""
        return self._miss([s for s in self.subscribers.values() if s.is_live or s.is_excluded])

    def _miss(self, subscribers: list[Subscriber]) -> list[Key]:
        for subscriber in subscribers:
            subscriber.missed += 1
        self.missed += len(subscribers)
        return [s.key for s in subscribers]

    def drained(self, subscriber: Subscriber, now: float) -> None:
        """A subscriber got back all it had granted."""
        subscriber.credit = 0
        subscriber.is_draining = False
        subscriber.is_withdrawn = True
        if subscriber.is_live:
            self._set_live_credit(subscriber, 0, now)

    # Time

    def update(self, now: float) -> None:
        """Exclude who is at zero for too long, and readmit who has come back."""
        for subscriber in self.subscribers.values():
            if self._back_at(subscriber) <= now:
                self._readmit(subscriber, now)
        if not self._is_held_up:
            return
        for subscriber in self.subscribers.values():
            if subscriber.zero_since + self._patience.grace_s <= now:
                self._exclude(subscriber, now)

    @property
    def _is_held_up(self) -> bool:
        """Whether somebody could take messages if those at zero did not count: the only one holds up nobody."""
        return self.is_elsewhere or any(s.is_live and s.credit > 0 for s in self.subscribers.values())

    def _exclude(self, subscriber: Subscriber, now: float) -> None:
        patience = self._patience
        is_relapse = subscriber.readmitted_at + patience.longest_pause_s >= now
        pause_s = 2 * subscriber.pause_s if is_relapse else patience.first_pause_s
        subscriber.pause_s = min(pause_s, patience.longest_pause_s)
        subscriber.is_live = False
        subscriber.zero_since = math.inf
        subscriber.excluded_at = now

    def _readmit(self, subscriber: Subscriber, now: float) -> None:
        if 2 * subscriber.credit < subscriber.usual:
            subscriber.usual = subscriber.credit  # its habit has changed
        subscriber.is_live = True
        subscriber.readmitted_at = now
        subscriber.excluded_at = math.inf

    def _back_at(self, subscriber: Subscriber) -> float:
        """When an excluded one counts again if nothing changes, seconds."""
        if not subscriber.is_excluded or subscriber.credit == 0 or subscriber.is_draining:
            return math.inf
        if not (self.is_elsewhere or self.live):
            return subscriber.excluded_at  # it can hold up nobody
        is_usual = 2 * subscriber.credit >= subscriber.usual
        return subscriber.excluded_at + (subscriber.pause_s if is_usual else self._patience.longest_pause_s)

    def next_deadline(self) -> float:
        """When `update` has something to do, seconds."""
        due = math.inf
        if self._is_held_up:
            due = min((s.zero_since for s in self.subscribers.values()), default=math.inf) + self._patience.grace_s
        return min((due, *(self._back_at(s) for s in self.subscribers.values())))

    def check_invariants(self) -> None:
        """Raises: AssertionError when a state is impossible."""
        for subscriber in self.subscribers.values():
            assert subscriber.credit >= 0
            assert not (subscriber.is_live and subscriber.is_excluded)
            assert (subscriber.zero_since < math.inf) == (subscriber.is_live and subscriber.credit == 0)
            assert subscriber.credit == 0 or subscriber.is_live or subscriber.is_excluded
            assert not (subscriber.is_draining and subscriber.credit == 0)
