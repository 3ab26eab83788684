"""The local subscribers of a multicast address: who counts, and what they can take together.

A subscriber counts from its first grant on: it gets a copy of every message, and no message is sent while it has no
credit. One that stays at zero beyond the grace while others are held up by it is excluded: it counts no more and misses
copies, until it holds half its usual grant again and has paused. The pause doubles with each relapse, so that whoever
comes back only to stall again holds up the others for less and less of the time.

One that grants a little within each grace is judged by what it takes in one, its *window*: it is excluded too if
messages waited for its credit nearly all that time and it took next to nothing of what others could have taken.

One that leaves while it is waited for has held up the others as well, and may come back as another one. So the time is
counted for which those that have left held them up, and while that is more than a tenth of the time those that came
after them are waited for no longer: they have what is sent while they hold credit.

Times are seconds, monotonic; credit is messages. Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

from math import inf

import attrs

from router.core.forwarding.credit_actions import Key
from router.core.forwarding.credit_states import SUBSCRIBER_TRANSITIONS, SubscriberEvent, SubscriberState
from router.core.forwarding.timer_queue import TimerQueue

HELD_UP_PART = 0.9
"""Part of its window for which a subscriber that is judged had no credit and held up others: it took that long to
grant, and not they."""
FAR_BELOW = 10
"""Divisor of the median credit of live subscribers: one that took no more than the quotient, or one message, took next
to nothing."""
DESERTED_PART = 0.1
"""Part of the time that subscribers which leave while they are waited for may hold up the others."""
AGE_FOR_S = 60.0
"""Age from which a subscriber is always waited for, seconds for each second that those which left have held up
others."""
MOST_COUNTED = 1000
"""Maximum credit of a subscriber that is compared with others', messages: whoever takes more than 100 in a window
always counts as live."""


# Python 3.11 takes long to find a member of an enumeration by its class.
NEW, READY, STALLED, EXCLUDED = SubscriberState


@attrs.frozen(kw_only=True)
class ExclusionTiming:
    """Times for which a subscriber without credit may hold up the others, seconds."""

    grace_s: float = 1.0
    """Time without credit after which a subscriber is excluded; also the window in which it has to take more than next
    to nothing."""
    first_pause_s: float = 1.0
    """Minimum time for which a subscriber stays excluded."""
    longest_pause_s: float = 60.0
    """Maximum pause: it doubles up to this. A subscriber that was excluded again within this time after it came back
    has relapsed; one that holds any credit at all comes back after this, whatever its usual grant was."""

    def longer_pause_s(self, pause_s: float) -> float:
        """Find the pause of one that has relapsed after one of *pause_s*, or of the first time after 0 s, seconds."""
        return min(max(2 * pause_s, self.first_pause_s), self.longest_pause_s)


class Subscriber:
    """Local subscriber of a multicast."""

    __slots__ = (
        "credit",
        "excluded_at",
        "granted_at",
        "held_from",
        "held_s",
        "is_draining",
        "is_excluded",
        "is_live",
        "is_withdrawn",
        "key",
        "missed",
        "pause_s",
        "readmitted_at",
        "state",
        "usual",
        "window_from",
        "zero_since",
    )

    def __init__(self, key: Key) -> None:
        self.key = key
        self.credit = 0
        """Messages that it can take now."""
        self.is_draining = False
        """Whether the subscriber asks for its credit back."""
        self.state = NEW
        self.is_live = False
        """Whether the subscriber counts."""
        self.is_excluded = False
        """Whether the subscriber has counted, and does not now."""
        self.is_withdrawn = False
        """Whether the subscriber took its credit back by itself."""
        self.usual = 0
        """Largest credit that the subscriber had after a grant, while live."""
        self.zero_since = inf
        """Time since which the subscriber is live without credit, seconds; `inf` while it is not."""
        self.held_from = 0.0
        """Value of `MulticastSubscribers.held_s` at `zero_since`."""
        self.held_s = 0.0
        """Time for which the subscriber had no credit in its window while others were held up, until its last grant,
        seconds; when it is excluded, the time for which it held them up before."""
        self.window_from = 0
        """Messages that had been sent when its window began."""
        self.excluded_at = inf
        """Time since which the subscriber is excluded, seconds; `inf` when it is live or has never granted."""
        self.granted_at = inf
        """Time of its first grant."""
        self.readmitted_at = -inf
        self.pause_s = 0.0
        """Minimum length of the exclusion, from the last one on, seconds."""
        self.missed = 0
        """Number of copies that went past the subscriber."""

    @property
    def live_since(self) -> float:
        """Time since which the subscriber counts without a break; `inf` while it does not."""
        return max(self.granted_at, self.readmitted_at) if self.is_live else inf

    def enter(self, event: SubscriberEvent) -> None:
        """Go where *event* leads from the present state."""
        self.state = SUBSCRIBER_TRANSITIONS[self.state, event]
        self.is_live = self.state is READY or self.state is STALLED
        self.is_excluded = self.state is EXCLUDED


class MulticastSubscribers:
    """Local subscribers of one multicast address at one router.

    A message costs time by the number of its copies. All else costs the same however many subscribers there are, or
    grows with the logarithm of their number.

    Attributes:
        patience: how long one without credit may hold up the others.
        is_elsewhere: other routers have subscribers too, which a stalled one here may hold up.
    """

    def __init__(self, patience: ExclusionTiming) -> None:
        self.patience = patience
        self.subscribers: dict[Key, Subscriber] = {}
        self.draining: dict[Key, Subscriber] = {}
        """Subscribers that ask for their credit back."""
        self.is_elsewhere = False
        self._live: dict[Key, Subscriber] = {}
        """Subscribers that count, in the order in which they came to."""
        self._excluded: dict[Key, Subscriber] = {}
        self._zero: dict[Key, Subscriber] = {}
        """Live subscribers without credit, the one that has had none for longest first."""
        self._limits = TimerQueue()
        """Live subscribers by the number of messages to all until they have no credit. It counts all that were sent, so
        that one more changes nothing."""
        self._sent = 0
        """Number of messages sent to all that were live."""
        self._drains = 0
        """Number of live subscribers that ask for their credit back."""
        self._willing = 0
        """Number of live subscribers that have not taken their credit back."""
        self._returns = TimerQueue()
        """Excluded subscribers by when they count again, if nothing changes."""
        self._windows = TimerQueue()
        """Live subscribers by when their windows end."""
        self._held_s = 0.0
        self._noted_at = 0.0
        self._is_pressed = False
        """Whether publishers have waited since `_noted_at` while somebody could take what they have."""
        self._hasty: dict[Key, Subscriber] = {}
        """Stalled subscribers that the others don't wait for."""
        self._deserted_s = 0.0
        """Time for which subscribers that have left held up the others, less the part that they may, at
        `_deserted_at`."""
        self._deserted_at = 0.0
        """Time at which `_deserted_s` was last computed, seconds."""
        self._deserted_to = 0.0
        """Value of `held_s` up to which `_deserted_s` is counted: what several held up at once counts once."""
        self._typical = (-inf, 0)
        """Time at which it was last looked up what half the live ones can take, and what that was."""

    # What stands

    @property
    def live(self) -> list[Subscriber]:
        """Subscribers that count, in the order in which they came to."""
        return list(self._live.values())

    @property
    def has_live(self) -> bool:
        """Whether any subscriber counts."""
        return bool(self._live)

    @property
    def capacity(self) -> int:
        """Messages of which every live subscriber can take a copy; 0 when none is live."""
        return int(self._limits.next()) - self._sent if self._live else 0

    @property
    def is_draining(self) -> bool:
        """Whether a live subscriber asks for its credit back."""
        return self._drains > 0

    @property
    def is_withdrawn(self) -> bool:
        """Whether all that are live took their credit back."""
        return self._willing == 0

    # What happens

    def add(self, key: Key) -> None:
        """Add a subscriber that attached.

        It does not count before it grants, or each attach would hold up the others.
        """
        assert key not in self.subscribers, f"subscriber {key} attached twice"
        self.subscribers[key] = Subscriber(key)

    def set_elsewhere(self, is_elsewhere: bool) -> None:
        """Set whether other routers have subscribers too."""
        self.is_elsewhere = is_elsewhere

    def remove(self, key: Key, now: float) -> None:
        """Forget a subscriber that is gone, at *now* (seconds), but not what it held up as it left."""
        subscriber = self.subscribers.pop(key)
        self._note_deserter(subscriber, now)
        self._leave_out(subscriber)
        self._limits.cancel(subscriber)
        self._windows.cancel(subscriber)
        for table in (self._live, self._excluded, self._zero, self._hasty, self.draining):
            table.pop(key, None)

    def _note_deserter(self, subscriber: Subscriber, now: float) -> None:
        """Count for how long one that leaves held up the others, if they still wait for it, or gave it up."""
        held_s = min(self._held_by(subscriber, now), self.held_s(now) - self._deserted_to)
        if held_s > 0:
            self._deserted_s = min(self._deserted(now) + held_s, self.patience.longest_pause_s)
            self._deserted_at = now
            self._deserted_to = self.held_s(now)

    def _held_by(self, subscriber: Subscriber, now: float) -> float:
        """Sum up for how long a subscriber held up the others in its window, or before it was excluded, seconds."""
        is_counted = subscriber.is_excluded or self._windows.time_of(subscriber) < inf
        held_s = subscriber.held_s if is_counted else 0.0
        return held_s + (self.held_s(now) - subscriber.held_from if subscriber.state is STALLED else 0.0)

    def _deserted(self, now: float) -> float:
        return max(0.0, self._deserted_s - DESERTED_PART * (now - self._deserted_at))

    def _is_waited_for(self, subscriber: Subscriber, now: float) -> bool:
        """Whether the others wait for a subscriber at zero: not while those that came like it leave like that."""
        deserted_s = self._deserted(now)
        return deserted_s <= self.patience.grace_s or now - subscriber.granted_at >= AGE_FOR_S * deserted_s

    def changed(self, key: Key, credit: int, now: float, is_draining: bool = False, is_withdrawn: bool = False) -> None:
        """Set what a subscriber can take.

        Args:
            key: the subscriber.
            credit: as it is at *now*, messages.
            now: seconds.
            is_draining: it asks for it back; `AnswerSubscriberDrain` will follow, unless all is used before.
            is_withdrawn: it has lowered its credit to 0; not so if it has used it up.
        """
        subscriber = self.subscribers[key]
        self._leave_out(subscriber)
        if credit > 0 and subscriber.state is NEW:
            subscriber.enter(SubscriberEvent.GRANTS)
            subscriber.granted_at = now
            self._live[key] = subscriber
        if subscriber.is_live and credit > subscriber.credit:
            subscriber.usual = max(subscriber.usual, credit)
            if subscriber.state is STALLED:
                self._note_grant(subscriber, now)
        subscriber.credit = credit
        subscriber.is_draining = is_draining and credit > 0
        subscriber.is_withdrawn = credit == 0 and (is_withdrawn or subscriber.is_withdrawn)
        self._count(subscriber, now)

    def _leave_out(self, subscriber: Subscriber) -> None:
        """Undo `_count`: it is about to change."""
        self._returns.cancel(subscriber)
        if subscriber.is_live:
            self._drains -= subscriber.is_draining
            self._willing -= not subscriber.is_withdrawn

    def _count(self, subscriber: Subscriber, now: float) -> None:
        """Keep sums and tables true: it has changed."""
        key = subscriber.key
        if subscriber.is_draining:
            self.draining[key] = subscriber
        else:
            self.draining.pop(key, None)
        if subscriber.is_live:
            limit = subscriber.credit + self._sent
            if limit != self._limits.time_of(subscriber):
                self._limits.set(subscriber, limit)
            self._drains += subscriber.is_draining
            self._willing += not subscriber.is_withdrawn
        if subscriber.is_live and subscriber.credit == 0:
            if subscriber.state is READY:
                self._stall(subscriber, now)
        else:
            if subscriber.state is STALLED:
                subscriber.enter(SubscriberEvent.GRANTS)
            subscriber.zero_since = inf
            self._zero.pop(key, None)
            self._hasty.pop(key, None)
        if subscriber.is_excluded and subscriber.credit > 0 and not subscriber.is_draining:
            self._put_off(subscriber)

    def _stall(self, subscriber: Subscriber, now: float) -> None:
        subscriber.enter(SubscriberEvent.NO_CREDIT)
        subscriber.zero_since = now
        subscriber.held_from = self.held_s(now)
        self._zero[subscriber.key] = subscriber
        if not self._is_waited_for(subscriber, now):
            self._hasty[subscriber.key] = subscriber

    def _put_off(self, subscriber: Subscriber) -> None:
        is_usual = subscriber.pause_s == 0 or 2 * subscriber.credit >= subscriber.usual
        pause_s = subscriber.pause_s if is_usual else self.patience.longest_pause_s
        self._returns.set(subscriber, subscriber.excluded_at + pause_s)

    def spend(self, now: float) -> tuple[list[Key], list[Key]]:
        """Send one message to all that are live at *now* (seconds).

        Returns: keys that get a copy, and keys that miss it.
        """
        self._sent += 1
        for subscriber in self._live.values():
            assert subscriber.credit > 0, "sent without a subscriber's credit"
            subscriber.credit -= 1
            if subscriber.credit == 0:
                self._stall(subscriber, now)
                if subscriber.is_draining:
                    subscriber.is_draining = False
                    self._drains -= 1
                    del self.draining[subscriber.key]
        return list(self._live), self._miss(self._excluded)

    def miss(self) -> list[Key]:
        """Let one message go past all subscribers. Returns: those that miss it, but for those that never granted."""
        return [*self._miss(self._live), *self._miss(self._excluded)]

    def _miss(self, subscribers: dict[Key, Subscriber]) -> list[Key]:
        for subscriber in subscribers.values():
            subscriber.missed += 1
        return list(subscribers)

    def drained(self, subscriber: Subscriber, now: float) -> None:
        """Take from a subscriber all that it had granted: it got it back at *now* (seconds)."""
        self._leave_out(subscriber)
        subscriber.credit = 0
        subscriber.is_draining = False
        subscriber.is_withdrawn = True
        self._count(subscriber, now)

    # Windows

    def press(self, now: float, *, is_wanted: bool) -> None:
        """End a turn at *now* (seconds): from here on the others are held up, or they are not.

        Args:
            now: seconds.
            is_wanted: publishers wait for credit.
        """
        self._held_s, self._noted_at = self.held_s(now), now
        self._is_pressed = is_wanted and self._is_held_up

    def held_s(self, now: float) -> float:
        """Sum up for how long publishers have waited, ever, while somebody could take what they have, seconds.

        Args:
            now: seconds.
        """
        return self._held_s + (now - self._noted_at if self._is_pressed else 0.0)

    def _note_grant(self, subscriber: Subscriber, now: float) -> None:
        """Begin the window of a live one that grants and was at zero when it came to that, if it is in none."""
        held_s = self.held_s(now) - subscriber.held_from
        if self._windows.time_of(subscriber) < inf:
            subscriber.held_s += held_s
        elif self.patience.grace_s > 0:
            subscriber.held_s = held_s
            subscriber.window_from = self._sent  # nothing is sent while it is at zero
            self._windows.set(subscriber, subscriber.zero_since + self.patience.grace_s)

    def _judge(self, subscriber: Subscriber, judged_at: float, now: float) -> None:
        """End a window: exclude a subscriber that has held up the others and taken next to nothing."""
        held_s = subscriber.held_s
        if subscriber.zero_since < inf:
            held_s += self.held_s(now) - subscriber.held_from
        window_s = now - judged_at + self.patience.grace_s
        taken = self._sent - subscriber.window_from
        is_alone = len(self._live) == 1 and not self.is_elsewhere
        if is_alone or held_s < HELD_UP_PART * window_s or taken > MOST_COUNTED // FAR_BELOW:
            return
        if taken <= 1 or FAR_BELOW * taken <= self._typical_credit(now):
            self._give_up(subscriber, now, held_s)

    def _typical_credit(self, now: float) -> int:
        """Find what half of the live ones can take at once, as it is or was a short time ago.

        One that can take very much tells nothing of the others.
        """
        looked_at, credit = self._typical
        if looked_at + self.patience.grace_s / FAR_BELOW <= now:
            credits_ = sorted(subscriber.credit for subscriber in self._live.values())
            credit = min(credits_[len(credits_) // 2], MOST_COUNTED)
            self._typical = (now, credit)
        return credit

    # Time

    def update(self, now: float) -> None:
        """Exclude and readmit subscribers whose time has come at *now* (seconds).

        Excluded is who is at zero for too long or takes next to nothing; readmitted is who has come back.
        """
        while isinstance(subscriber := self._returns.first(), Subscriber):
            if self._returns.next() > now and (self.is_elsewhere or self._live):
                break
            self._readmit(subscriber, now)  # at once if it can hold up nobody
        if self._is_pressed and self._is_held_up:
            for subscriber in list(self._hasty.values()):
                self._exclude(subscriber, now, 0.0, 0.0)
        while self._is_held_up and self._zero:
            subscriber = next(iter(self._zero.values()))
            if subscriber.zero_since + self.patience.grace_s > now:
                break
            self._give_up(subscriber, now, self._held_by(subscriber, now))
        while (judged_at := self._windows.next()) <= now:
            judged = self._windows.first()
            assert isinstance(judged, Subscriber)
            self._windows.cancel(judged)
            self._judge(judged, judged_at, now)

    @property
    def _is_held_up(self) -> bool:
        """Whether any subscriber could take messages if those at zero did not count: the only one holds up nobody."""
        return self.is_elsewhere or len(self._live) > len(self._zero)

    def _give_up(self, subscriber: Subscriber, now: float, held_s: float) -> None:
        """Exclude a subscriber that has held up the others for too long."""
        is_relapse = subscriber.readmitted_at + self.patience.longest_pause_s >= now
        pause_s = self.patience.longer_pause_s(subscriber.pause_s if is_relapse else 0.0)
        self._exclude(subscriber, now, pause_s, held_s)

    def _exclude(self, subscriber: Subscriber, now: float, pause_s: float, held_s: float) -> None:
        self._leave_out(subscriber)
        subscriber.pause_s = pause_s
        subscriber.held_s = held_s
        subscriber.enter(SubscriberEvent.TAKES_TOO_LITTLE)
        self._limits.cancel(subscriber)
        self._windows.cancel(subscriber)
        subscriber.excluded_at = now
        del self._live[subscriber.key]
        self._excluded[subscriber.key] = subscriber
        self._count(subscriber, now)

    def _readmit(self, subscriber: Subscriber, now: float) -> None:
        self._leave_out(subscriber)
        if 2 * subscriber.credit < subscriber.usual:
            subscriber.usual = subscriber.credit  # its habit has changed
        subscriber.enter(SubscriberEvent.COMES_BACK)
        subscriber.readmitted_at = now
        subscriber.excluded_at = inf
        del self._excluded[subscriber.key]
        self._live[subscriber.key] = subscriber
        self._count(subscriber, now)

    def next_deadline(self) -> float:
        """Tell the time at which `update` has something to do, seconds."""
        due = inf
        if self._is_held_up and self._zero:
            due = next(iter(self._zero.values())).zero_since + self.patience.grace_s
            if self._is_pressed and self._hasty:
                due = min(due, next(iter(self._hasty.values())).zero_since)
        subscriber = self._returns.first()
        if isinstance(subscriber, Subscriber):
            can_hold_up = self.is_elsewhere or self._live
            due = min(due, self._returns.next() if can_hold_up else subscriber.excluded_at)
        return min(due, self._windows.next())

    def check_invariants(self) -> None:
        """Check that states are possible and that sums fit. Raises: AssertionError when not."""
        for subscriber in self.subscribers.values():
            assert subscriber.credit >= 0
            assert (subscriber.state is STALLED) == (subscriber.is_live and subscriber.credit == 0)
            assert (subscriber.zero_since < inf) == (subscriber.state is STALLED)
            assert (subscriber.excluded_at < inf) == subscriber.is_excluded
            assert subscriber.credit == 0 or subscriber.is_live or subscriber.is_excluded
            assert not (subscriber.is_draining and subscriber.credit == 0)
            assert subscriber.is_live or self._windows.time_of(subscriber) == inf
        everybody = self.subscribers.items()
        assert self._live == {key: s for key, s in everybody if s.is_live}
        assert self._excluded == {key: s for key, s in everybody if s.is_excluded}
        assert self._zero == {key: s for key, s in everybody if s.zero_since < inf}
        assert self._hasty.keys() <= self._zero.keys()
        assert self.draining == {key: s for key, s in everybody if s.is_draining}
        assert self.capacity == min((s.credit for s in self._live.values()), default=0)
        assert self.is_draining == any(s.is_draining for s in self._live.values())
        assert self.is_withdrawn == all(s.is_withdrawn for s in self._live.values())
        since = [s.zero_since for s in self._zero.values()]
        assert since == sorted(since)
