"""Credit lent to publishers: those of one anycast address at one router, what each holds, and what of theirs waits.

Each publisher may have one credit that nothing backs, as credit or as one message waiting here. Everything beyond that
is lent out of what the router has been allotted:

    lent = sum over publishers of max(0, out + waiting - 1)      X = allotted - lent     X >= 0 whenever credit is lent.

A client cannot be asked what it has left: proton neither announces `available` nor answers a drain by itself. So demand
shows only by use, and credit taken back counts as held for a quarantine, since messages sent on it may be under way. A
publisher may have some of its own again at once, as far as that is backed: a link's credit is a limit to the number of
its messages, and one that is lowered and raised again is never above what it was.

No method's work grows with the number of idle publishers: each state that matters is a queue of its own.

Source: docs/explanation/credit.md#who-gets-how-much; AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from math import inf

from router.core.forwarding.credit_actions import CreditAction, Grant, Key
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.doubling_window import NO_BOUND, DoublingWindow
from router.core.forwarding.fair_queue import FairQueue


class LoweredCredit:
    """Credit that was taken back from a publisher at one time, and that it may still use."""

    __slots__ = ("credit", "publisher", "until")

    def __init__(self, publisher: Publisher, credit: int, until: float) -> None:
        self.publisher = publisher
        self.credit = credit
        """Messages."""
        self.until = until
        """End of the quarantine, seconds."""


class Publisher(DoublingWindow):
    """Publisher's link. It outlives the link while pre-settled messages of it wait."""

    __slots__ = (
        "active_at",
        "client",
        "coming",
        "excess",
        "held",
        "is_attached",
        "is_busy",
        "is_wanting",
        "key",
        "lent",
        "lowered",
        "quarantined",
        "queue",
        "returning",
    )

    def __init__(self, key: Key, client: Key, look_s: float) -> None:
        DoublingWindow.__init__(self, 1, look_s)
        self.key = key
        self.client = client
        """Client that the publisher belongs to: messages of several ones leave by turns."""
        self.goal = 1
        self.held = 0
        """Credit on its link."""
        self.lowered = 0
        """Credit taken back from it that it may still use."""
        self.quarantined: list[LoweredCredit] = []
        """Credit in quarantine by the time when it was taken back, the oldest first."""
        self.queue: dict[Key, None] = {}
        """Messages of the publisher that wait here, also those that are not there as a whole, oldest first."""
        self.coming = 0
        """Number of messages in `queue` that are not there as a whole."""
        self.excess = 0
        """Number of transfers since it was last lent credit that found none, and none that was taken back a short time
        ago."""
        self.lent = 0
        """Part that the publisher has of `LocalPublishers.lent`."""
        self.returning = 0
        """Part of that which nobody has lent any more when the quarantine ends."""
        self.active_at = -inf
        """Time at which it last sent, or could not and was made able to, seconds."""
        self.is_attached = True
        self.is_busy = False
        self.is_wanting = False
        """Whether the publisher is among those that made use of credit since they were last looked at."""

    def standing(self) -> int:
        """Credit that it may still use, and its messages that wait."""
        return self.held + self.lowered + len(self.queue)

    def kept(self) -> int:
        """Credit that the publisher always keeps: the one that nothing backs, or 0 if a message in parts uses that."""
        return 0 if self.coming else 1


Queue = OrderedDict[Publisher, None]


class LocalPublishers:
    """Local publishers of the address, and the messages of theirs that wait.

    Args:
        actions: where what is to be done is added.
    """

    def __init__(self, actions: list[CreditAction], timing: CreditTiming) -> None:
        self._actions = actions
        self._timing = timing
        self.attached: dict[Key, Publisher] = {}
        self.waiting: OrderedDict[Key, Publisher] = OrderedDict()
        """Messages that may leave, each with its publisher, oldest first."""
        self._turns = FairQueue()
        """Messages of publishers that are there, by turns of the clients; empty until there is one to choose."""
        self.left = FairQueue()
        """Messages of publishers that have left, and of clients that had none, by turns of the clients."""
        self.is_left_next = False
        """Whether the next message is one of `left`."""
        self.coming: dict[Key, Publisher] = {}
        """Messages that are not there as a whole: counted as waiting, and not to be sent yet."""
        self.departed = 0
        """Messages that wait or come and whose publishers are not here."""
        self.lent = 0
        """Credit that must be backed."""
        self.lowered = 0
        """Credit that will come back at the ends of quarantines."""
        self.returning = 0
        """Part of `lent` that ends with the quarantines."""
        self.demand = 0
        """Number of publishers that are busy, and one for all messages of others: the weight of this router's own."""
        self._recent: Queue = OrderedDict()
        """Publishers active within `busy_s`, the least recent first."""
        self._starved: Queue = OrderedDict()
        """Publishers that have sent, and now neither hold nor wait."""
        self._fresh: Queue = OrderedDict()
        """Publishers that never sent anything, and hold nothing."""
        self._wanting: Queue = OrderedDict()
        """Publishers that made use of credit since they were last looked at: round robin."""
        self.wanting_again: Queue = OrderedDict()
        """Publishers among `_wanting` from which credit was taken back that is in quarantine."""
        self._holders: Queue = OrderedDict()
        """Publishers that hold credit which must be backed, the least recently used first: more than one, or any beside
        a message that comes in parts, which is their first."""
        self._slow: Queue = OrderedDict()
        """Publishers that had used little of what they held when that was last looked at."""
        self._quarantined: deque[LoweredCredit] = deque()
        """Credit in quarantine, the oldest first."""

    @property
    def is_backlogged(self) -> bool:
        """Whether a publisher can do nothing without more credit."""
        return bool(self.waiting or self._starved or self._fresh)

    @property
    def backed(self) -> int:
        """Credit that must be backed of publishers that are there. What others have left waits for the rest."""
        return self.lent - self.departed

    @property
    def is_anybody_busy(self) -> bool:
        """Whether a publisher that is there makes use of credit, or waits for it."""
        return self.demand > (self.departed > 0)

    # Who is there

    def add(self, key: Key, held: int = 0, client: Key | None = None) -> None:
        """Add a publisher that attached. What it has to send nobody can know, so it counts as busy until it has credit.

        Args:
            key: the publisher.
            held: credit that it has already, 0 or 1, messages.
            client: whose it is; None for a client of its own.
        """
        assert key not in self.attached, f"publisher {key} attached twice"
        publisher = self.attached[key] = Publisher(key, key if client is None else client, self._timing.look_s)
        publisher.held = held
        self._update(publisher)

    def remove(self, key: Key) -> None:
        """Forget a publisher that detached.

        Its messages stay; those that were never delivered must be dropped by `drop`.
        """
        publisher = self.attached.pop(key)
        self._use_lowered(publisher, publisher.lowered)
        publisher.held = 0
        publisher.is_attached = False
        self._depart(len(publisher.queue))
        for message in publisher.queue:
            if message in self.waiting:
                self.left.add(message, publisher.client)
                self._turns.discard(message)
        if publisher.is_wanting:
            self._want_nothing(publisher)
        for queue in (self._recent, self._slow):
            queue.pop(publisher, None)
        self._update(publisher)

    # Messages

    def published(self, key: Key, message: Key, now: float, is_ready: bool = True) -> None:
        """Take a message of a publisher at *now* (seconds); it waits as its youngest, once it is `ready`.

        A transfer that crossed a lowering finds no credit: it is accepted and met by one credit in the same turn. So a
        link-credit below zero is never written, which a client that is not proton would read as four billion.
        """
        publisher = self.attached[key]
        if publisher.held > 0:
            publisher.held -= 1
        else:
            if publisher.lowered > 0:
                self._use_lowered(publisher, 1)
            else:
                publisher.excess += 1
            self._actions.append(Grant(key, 1))
        publisher.queue[message] = None
        if is_ready:
            self._wait(message, publisher)
        else:
            self.coming[message] = publisher
            publisher.coming += 1
        self._use(publisher, now)
        if publisher in self._holders:
            self._holders.move_to_end(publisher)
        self._was_active(publisher, now)
        self._want(publisher)
        self._update(publisher)

    def add_uncredited(self, message: Key, client: Key) -> None:
        """Let a message of *client* wait that came on no credit of this address: as if its publisher had left it."""
        publisher = Publisher(None, client, self._timing.look_s)
        publisher.is_attached = False
        publisher.queue[message] = None
        self._depart(1)
        self._wait(message, publisher)
        self._update(publisher)

    def pass_on(self, publisher: Publisher, now: float) -> None:
        """Send a message of a busy publisher that holds credit as it arrives at *now* (seconds).

        `published` and `sent` in one.
        """
        publisher.held -= 1
        self._use(publisher, now)
        if publisher.active_at != now:
            # If it has sent another message at this time, it is at the ends of the queues already.
            self._was_active(publisher, now)
            if publisher.held > 1:
                self._holders.move_to_end(publisher)
        if not publisher.is_wanting:
            self._want(publisher)
        if publisher.held > 1:
            publisher.lent -= 1
            self.lent -= 1
        else:
            self._update(publisher)

    def _use(self, publisher: Publisher, now: float) -> None:
        if publisher.use(now, NO_BOUND, publisher.held):
            if publisher.was_slow:
                self._slow[publisher] = None
            else:
                self._slow.pop(publisher, None)

    def _want(self, publisher: Publisher) -> None:
        self._wanting[publisher] = None
        publisher.is_wanting = True
        if publisher.lowered:
            self.wanting_again[publisher] = None

    def _want_nothing(self, publisher: Publisher) -> None:
        del self._wanting[publisher]
        publisher.is_wanting = False
        if publisher.lowered:
            del self.wanting_again[publisher]

    def ready(self, message: Key) -> None:
        """Let a message leave that had begun to arrive."""
        publisher = self.coming.pop(message)
        publisher.coming -= 1
        self._wait(message, publisher)
        self._update(publisher)

    def _wait(self, message: Key, publisher: Publisher) -> None:
        self.waiting[message] = publisher
        if not publisher.is_attached:
            self.left.add(message, publisher.client)
        elif self._turns or 1 < len(self.waiting) == len(self.left) + 1:
            # It has its turn though it is the only one: `sent` must not look for it among all that others have left.
            self._turns.add(message, publisher.client)

    def sent(self, now: float) -> Key:
        """Let the next message of a publisher that is there leave at *now* (seconds): of clients in turn, the oldest.

        So one with many publishers holds nobody up. Returns: the message.
        """
        if len(self.waiting) == 1:
            message, publisher = self.waiting.popitem()
            self._turns.clear()
        else:
            if not self._turns:
                for one, owner in self.waiting.items():
                    if owner.is_attached:
                        self._turns.add(one, owner.client)
            message = self._turns.pop()
            publisher = self.waiting.pop(message)
        self.is_left_next = True
        self._leaves(message, publisher)
        # While it waited its publisher could not show that it has more to send.
        self._was_active(publisher, now)
        self._want(publisher)
        self._update(publisher)
        return message

    def sent_left(self) -> Key:
        """Let the next message leave whose publisher is not here, of clients in turn. Returns: the message."""
        message = self.left.pop()
        publisher = self.waiting.pop(message)
        self.is_left_next = False
        self._leaves(message, publisher)
        self._update(publisher)
        return message

    def _leaves(self, message: Key, publisher: Publisher) -> None:
        del publisher.queue[message]
        if not publisher.is_attached:
            self._depart(-1)

    def _depart(self, change: int) -> None:
        self.demand -= self.departed > 0
        self.departed += change
        self.demand += self.departed > 0

    def _was_active(self, publisher: Publisher, now: float) -> None:
        publisher.active_at = now
        self._recent[publisher] = None
        self._recent.move_to_end(publisher)

    def drop(self, message: Key) -> bool:
        """Forget a waiting message: it expired, or its sender left before it was delivered.

        Returns: whether it was here.
        """
        publisher = self.waiting.pop(message, None)
        if publisher is None:
            publisher = self.coming.pop(message, None)
            if publisher is None:
                return False
            publisher.coming -= 1
        self._turns.discard(message)
        self.left.discard(message)
        self._leaves(message, publisher)
        if publisher.is_attached:
            self._want(publisher)
        self._update(publisher)
        return True

    # Credit

    def give_again(self, allotted: int, now: float) -> None:
        """Give busy publishers of what was taken back from them, as far as it is backed without what is to come back.

        Args:
            allotted: what the router's own publishers may use, messages.
            now: seconds.
        """
        while self.wanting_again and allotted > self.backed - self.returning:
            publisher = next(iter(self.wanting_again))
            credit = min(self._missing(publisher, allotted), publisher.lowered, allotted - self.backed + self.returning)
            self._want_nothing(publisher)
            if credit > 0:
                self._use_lowered(publisher, credit)
                self._give(publisher, credit, now)

    def lend(self, allotted: int, now: float) -> bool:
        """Give one credit to each that has none, then more to busy ones as far as it is backed.

        Args:
            allotted: what the router's own publishers may use, messages.
            now: seconds.
        Returns: whether more are to be served at once, in another turn.
        """
        if allotted < self.backed:
            return False
        left = self._timing.slice_size
        for queue in (self._starved, self._fresh):
            # The first unit of each is not charged, so giving it leaves X as it is.
            while queue and left:
                publisher = next(iter(queue))
                if queue is self._starved:
                    # Without credit it could show no demand: else the first of several that use one gets the rest.
                    self._was_active(publisher, now)
                self._grant(publisher, 1, allotted, now)
                left -= 1
        while self._wanting and allotted > self.backed:
            self.top_up(next(iter(self._wanting)), allotted, now)
        return bool(self._starved or self._fresh)

    def top_up(self, publisher: Publisher, allotted: int, now: float) -> None:
        """Give one that has made use of its credit more, as far as it is backed.

        Args:
            publisher: one of those attached.
            allotted: what the router's own publishers may use, messages.
            now: seconds.
        """
        if publisher.is_wanting:
            self._want_nothing(publisher)
        missing = self._missing(publisher, allotted)
        if missing:
            self._grant(publisher, min(missing, allotted - self.backed), allotted, now)

    def _missing(self, publisher: Publisher, allotted: int) -> int:
        """Credit up to what it may hold; 0 when it has more than half: it comes again when it next uses some."""
        target = allotted // max(1, self.demand) + 1
        # Lowered credit that it may still use counts as lent, but is no reason to let it wait.
        has = publisher.held + len(publisher.queue)
        publisher.window = min(publisher.window, 2 * target)
        publisher.goal = min(publisher.window, target)
        return publisher.goal - has if 2 * has <= publisher.goal else 0

    def _grant(self, publisher: Publisher, credit: int, allotted: int, now: float) -> None:
        self._give(publisher, credit, now)
        assert self.backed <= allotted, "lent more than is backed"

    def _give(self, publisher: Publisher, credit: int, now: float) -> None:
        if publisher.held <= 1:
            publisher.since = now
        publisher.held += credit
        publisher.excess = 0
        self._update(publisher)
        self._actions.append(Grant(publisher.key, credit))

    def lower_idle(self, now: float) -> float:
        """Take back, but for what is `kept`, what was not used for a while at *now* (seconds), or little of it.

        Returns: when the next one will be due, seconds.
        """
        while self._slow:
            publisher, _ = self._slow.popitem(last=False)
            if publisher.is_slow and publisher.held > publisher.kept():
                self._lower(publisher, publisher.kept(), now)
        while self._holders:
            publisher = next(iter(self._holders))
            due = publisher.since + self._timing.idle_s
            if due > now:
                return due
            self._lower(publisher, publisher.kept(), now)
        return inf

    def lower_for(self, credit: int, now: float) -> None:
        """Take back until *credit* (messages) is on its way back, the least recently used first, but what is `kept`.

        Args:
            credit: messages.
            now: seconds.
        """
        while self._holders and self.lowered < credit:
            publisher = next(iter(self._holders))
            self._lower(publisher, publisher.kept(), now)

    def lower_all(self, now: float) -> None:
        """Take back everything at *now* (seconds): the address closed."""
        for publisher in self.attached.values():
            if publisher.held > 0:
                self._lower(publisher, 0, now)

    def _lower(self, publisher: Publisher, to: int, now: float) -> None:
        credit = publisher.held - to
        publisher.held = to
        publisher.since = now
        publisher.rest(1)
        self._count_lowered(publisher, credit)
        lowered = LoweredCredit(publisher, credit, now + self._timing.quarantine_s)
        publisher.quarantined.append(lowered)
        self._quarantined.append(lowered)
        self._update(publisher)
        self._actions.append(Grant(publisher.key, -credit))

    def _count_lowered(self, publisher: Publisher, change: int) -> None:
        publisher.lowered += change
        self.lowered += change
        if publisher.lowered and publisher.is_wanting:
            self.wanting_again.setdefault(publisher)
        else:
            self.wanting_again.pop(publisher, None)

    def _use_lowered(self, publisher: Publisher, credit: int) -> None:
        """Count *credit* of a publisher as in quarantine no more: what it may use last was taken back first."""
        self._count_lowered(publisher, -credit)
        while credit > 0:
            latest = publisher.quarantined[-1]
            used = min(credit, latest.credit)
            latest.credit -= used
            credit -= used
            if not latest.credit:
                publisher.quarantined.pop()

    # Time

    def expire(self, now: float) -> None:
        """End what is over at *now* (seconds): quarantines, and counting as busy."""
        while self._recent:
            publisher = next(iter(self._recent))
            if publisher.active_at + self._timing.busy_s > now:
                break
            del self._recent[publisher]
            if publisher.held > self._timing.first_window:
                self._lower(publisher, 1, now)  # before others are backlogged: they would have to wait for it
            self._update(publisher)
        while self._quarantined and self._quarantined[0].until <= now:
            oldest = self._quarantined.popleft()
            if oldest.credit:
                publisher = oldest.publisher
                del publisher.quarantined[0]
                self._count_lowered(publisher, -oldest.credit)
                self._update(publisher)

    def next_deadline(self) -> float:
        """Tell the time at which `expire` has something to do, seconds."""
        due = inf
        if self._recent:
            publisher = next(iter(self._recent))
            due = publisher.active_at + self._timing.busy_s
        if self._quarantined:
            due = min(due, self._quarantined[0].until)
        return due

    def _update(self, publisher: Publisher) -> None:
        """Keep sums and queues true after a change of *publisher*."""
        standing = publisher.standing()
        is_attached = publisher.is_attached
        lent = max(0, standing - is_attached)
        self.lent += lent - publisher.lent
        publisher.lent = lent
        returning = min(lent, publisher.lowered)
        self.returning += returning - publisher.returning
        publisher.returning = returning
        # A publisher without credit counts as busy: it can't show its demand by using some. One whose message still
        # comes in parts needs none.
        waits = len(publisher.queue) - publisher.coming
        is_busy = is_attached and (waits > 0 or standing == 0 or publisher in self._recent)
        self.demand += is_busy - publisher.is_busy
        publisher.is_busy = is_busy
        if is_attached and standing == 0:
            (self._starved if publisher.active_at > -inf else self._fresh).setdefault(publisher)
        else:
            self._starved.pop(publisher, None)
            self._fresh.pop(publisher, None)
        if publisher.held > publisher.kept():
            self._holders.setdefault(publisher)
        else:
            self._holders.pop(publisher, None)
        if not is_busy and publisher.is_wanting:
            self._want_nothing(publisher)

    def check_invariants(self) -> None:
        """Check that sums and queues fit the publishers. Raises: AssertionError when not."""
        assert not self._turns or len(self._turns) == len(self.waiting) - len(self.left)
        assert len(self.left) == sum(not owner.is_attached for owner in self.waiting.values())
        messages = (*self.waiting.values(), *self.coming.values())
        places = {**self.waiting, **self.coming}
        everybody = {*self.attached.values(), *messages}
        assert self.lent == sum(p.lent for p in everybody)
        assert self.lowered == sum(p.lowered for p in everybody)
        assert self.returning == sum(p.returning for p in everybody)
        assert self.demand == sum(p.is_busy for p in everybody) + (self.departed > 0)
        assert self.departed == sum(not owner.is_attached for owner in messages)
        for publisher in everybody:
            assert publisher.held >= 0
            assert publisher.lowered >= 0
            assert list(publisher.queue) == [message for message in places if places[message] is publisher]
            assert publisher.lent == max(0, publisher.standing() - publisher.is_attached)
            firm = max(0, publisher.held + len(publisher.queue) - publisher.is_attached)
            assert publisher.returning == publisher.lent - firm
            assert (publisher in self._holders) == (publisher.held > publisher.kept())
            assert publisher.lowered == sum(lowered.credit for lowered in publisher.quarantined)
            assert publisher.is_wanting == (publisher in self._wanting)
            assert (publisher in self.wanting_again) == (publisher.is_wanting and publisher.lowered > 0)
            is_starved = publisher.is_attached and publisher.standing() == 0
            assert (publisher in self._starved or publisher in self._fresh) == is_starved
        lowered = [lowered for lowered in self._quarantined if lowered.credit]
        assert len(lowered) == sum(len(p.quarantined) for p in everybody)
        queues = (
            self._recent,
            self._starved,
            self._fresh,
            self._wanting,
            self.wanting_again,
            self._holders,
            self._slow,
        )
        for queue in queues:
            assert all(p.is_attached for p in queue)
