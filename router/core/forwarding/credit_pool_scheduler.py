"""Pool scheduler: the publishers of one address at one router, and the pools that they and neighbors draw on.

What the pools allot to the local publishers, of all pools together, is lent to these (`publisher_credit.py`). A message
waits at its ingress router only and leaves it with a subscriber's credit set aside for it, so over any number of
routers

    credit held by publishers + messages not yet sent to a subscriber <= credit granted + publishers attached

as long as nobody withdraws credit or leaves; afterwards again once what was lent on it has come back.

Base of the scheduler of an anycast address (`anycast_scheduler.py`), which chooses among several pools, and of that of
a multicast tree, which has one.

Source: docs/explanation/credit.md#who-gets-how-much; AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations

from math import inf

from router.core.forwarding.credit_actions import (
    KEPT,
    REFUSED,
    CreditAction,
    Key,
    Send,
    TellNeighborSubscribersWithdrew,
)
from router.core.forwarding.credit_scheduler import CreditScheduler, CreditTiming
from router.core.forwarding.credit_states import PoolEvent
from router.core.forwarding.pool_toward_egress import IncomingCircuit, PoolTowardEgress
from router.core.forwarding.publisher_credit import LocalPublishers, Publisher
from router.core.ids_and_conditions import RouterId


class CreditPoolScheduler(CreditScheduler):
    """Scheduler of pools: deals, lends, takes back, and sends the messages that have credit."""

    def __init__(self, timing: CreditTiming) -> None:
        CreditScheduler.__init__(self)
        self._timing = timing
        self.publishers = LocalPublishers(self.actions, timing)
        self.pools: dict[RouterId, PoolTowardEgress] = {}
        self._free_numbers: list[int] = []
        """Numbers in `egresses` of pools that are gone: neighbors choose the ids, so there is no end of these."""
        self.candidates: list[PoolTowardEgress] = []
        """Pools that local messages may go to, nearest first."""
        self._is_stopping = False
        """Whether publishers are given no credit any more."""
        self._is_lending = False
        """Whether publishers have at least one credit each, or are being given it."""
        self._debt_since = inf
        """Time since which X is below 0, seconds; infinity while it is not."""
        self.is_due = True
        """Whether something has happened since the last turn that another would do something about."""
        self._unlent = 0
        """X when it was last added up, and since then in step with what was sent at once."""
        self._left_halves = 0
        """Twice the credit kept for messages whose publishers have gone, while other publishers are busy: they get half
        of each allocation."""
        self._rest_at = -inf
        """Time from which all credit that is not lent is for messages whose publishers have gone, seconds."""
        self._is_satisfied = False
        """Whether no publisher waits for credit."""
        self.is_steady = False
        """Whether credit may be lent without looking at anything else: nothing is owed, asked back or closed."""

    def is_open(self) -> bool:
        """Whether publishers may have credit: a reachable subscriber has granted some, and not all have withdrawn.

        One that is new to publishers who have credit already, since the others left, has not withdrawn either, nor has
        one elsewhere of which nothing was heard yet.
        """
        if self._is_stopping:
            return False
        for pool in self.pools.values():
            if pool.lets_lend(self._is_lending):
                return True
        return False

    def has_enough(self) -> bool:
        """Whether more credit would change nothing before the next message comes."""
        for pool in self.pools.values():
            if pool.circuits:
                return False
        return self._is_satisfied

    def is_unused(self) -> bool:
        """Whether nobody wants credit: no publisher, no circuit, no message."""
        publishers = self.publishers
        if publishers.attached or publishers.waiting or publishers.coming:
            return False
        for pool in self.pools.values():
            if pool.circuits or pool.core or pool.coming or pool.uncredited:
                return False
        return True

    def allotted(self) -> int:
        """Count what the local publishers may use, messages."""
        allotted = 0
        for pool in self.candidates:
            allotted += pool.local.out
        return allotted

    def _count_unlent(self) -> int:
        """Add up X of the rule, messages: what they may use and is not lent. Below 0 more is lent than there is."""
        return self.allotted() - self.publishers.backed

    # Publishers

    def add_publisher(self, key: Key, held: int = 0, client: Key | None = None) -> None:
        """Take up a publisher of a client (None: of its own), or one that has *held* credit already, 0 or 1."""
        self.publishers.add(key, held, client)

    def remove_publisher(self, key: Key) -> None:
        """Forget a publisher that is gone.

        Complete pre-settled messages of it are the mesh's and stay; the others that wait must be dropped with `drop`.
        """
        self.publishers.remove(key)
        self.is_steady = False

    def published(self, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """See `CreditScheduler.published`."""
        publishers = self.publishers
        publisher = publishers.attached[key]
        was_busy = publisher.is_busy
        pool: PoolTowardEgress | None = None
        if is_ready and was_busy and self.is_steady and publisher.held > 0 and not publishers.waiting:
            pool = self.candidates[0] if len(self.candidates) == 1 else self.next_pool(now)
            if pool is not None and pool.local.out > 0 and pool.capacity > 0:
                lent = publishers.lent
                publishers.pass_on(publisher, now)
                self._spend_local(pool, now)
                self._unlent += lent - publishers.lent - 1
                self._look_after(publisher, pool, now)
                return pool.number
        publishers.published(key, message, now, is_ready=is_ready)
        result = KEPT if self._keep_published(message) else REFUSED
        if is_ready and len(publishers.waiting) == 1:
            pool = self.next_pool(now)
            if pool is not None:
                publishers.sent(now)
                self._spend_local(pool, now)
                result = pool.number
        if self.is_steady and was_busy and not publishers.waiting:
            self._unlent = self._count_unlent()
            self._look_after(publisher, pool, now)
        else:
            self.is_due = True
        return result

    def _look_after(self, publisher: Publisher, pool: PoolTowardEgress | None, now: float) -> None:
        """See to credit after a message was sent in calm, to *pool* if it did not wait: by a turn where that takes one.

        A publisher is topped up when it has half of its goal left. Of several pools each is to be kept filled, or
        messages go elsewhere though it has credit.
        """
        if len(self.candidates) > 1 and pool is not None and 4 * pool.local.out <= pool.local.goal:
            self.is_due = True
        if 2 * publisher.held > publisher.goal:
            return
        if self._unlent < publisher.goal - publisher.held:
            self.is_due = True
        elif not self.is_due:
            allotted = self.allotted()
            self.publishers.top_up(publisher, allotted, now)
            self._unlent = allotted - self.publishers.backed

    def ready(self, message: Key) -> bool:
        """Let a message leave of which the first part had arrived. Returns: whether it is kept."""
        if message in self.publishers.coming:
            self.publishers.ready(message)
            return self._keep_published(message)
        pool = next((pool for pool in self.pools.values() if message in pool.coming), None)
        if pool is not None:
            pool.ready(message)
        return pool is not None

    def _keep_published(self, message: Key) -> bool:
        if not self.candidates:
            self.publishers.drop(message)
        return bool(self.candidates)

    def drop(self, message: Key) -> bool:
        """Forget a message that may wait here. Returns: whether it did wait."""
        return self.publishers.drop(message) or any(pool.drop(message) for pool in self.pools.values())

    # Pools and circuits

    def add_pool(self, name: RouterId) -> PoolTowardEgress:
        """Make the only pool that there is to be, called *name* where an egress is asked for."""
        pool = self.pool(name)
        pool.enter(PoolEvent.PATH_FOUND)
        self.candidates = [pool]
        return pool

    def set_capacity(
        self, egress: RouterId, credit: int, now: float, returning: int = 0, is_withdrawn: bool = False
    ) -> bool:
        """Set the unspent credit from downstream: of all live local subscribers, or of the own circuit.

        Args:
            egress: router whose subscribers granted it.
            credit: as it is now, messages.
            now: seconds.
            returning: how much of it is asked back by a drain; it will be returned, unless it is used before.
            is_withdrawn: every local subscriber has lowered its credit to 0 or had it back by a drain, and none has
                granted since; not so if one has used up its credit. Never for a circuit: see `closed`.
        Returns: whether a turn is of use.
        """
        pool = self.pools[egress]
        is_more = credit >= pool.capacity > 0 and not (returning or pool.returning)
        pool.set_capacity(credit, returning, now, is_withdrawn=is_withdrawn)
        if not is_more:
            self.is_steady = False
        # A publisher that has credit comes for more when it has used it.
        return not (is_more and self._is_satisfied) or pool.starves_circuits()

    def pool(self, egress: RouterId) -> PoolTowardEgress:
        """Find the pool toward *egress*, or make it."""
        pool = self.pools.get(egress)
        if pool is None:
            if self._free_numbers:
                number = self._free_numbers.pop()
                self.egresses[number] = egress
            else:
                number = len(self.egresses)
                self.egresses.append(egress)
            pool = self.pools[egress] = PoolTowardEgress(egress, number, self.actions, self._timing)
        return pool

    def forget_pool(self, egress: RouterId) -> None:
        """Forget the pool toward *egress*, which has no path and no circuits any more; its number is for the next."""
        self._free_numbers.append(self.pools.pop(egress).number)

    def add_circuit(self, egress: RouterId, key: Key, neighbor: RouterId) -> None:
        """Take up a circuit that *neighbor* attached toward *egress*, perhaps before this router knows a path there."""
        pool = self.pool(egress)
        assert key not in pool.circuits, f"circuit {key} attached twice"
        pool.circuits[key] = IncomingCircuit(key, neighbor, self._timing)
        if pool.is_closed:
            self.actions.append(TellNeighborSubscribersWithdrew(key))

    def remove_circuit(self, egress: RouterId, key: Key) -> None:
        """Forget a circuit that is gone, with the credit that it held.

        Its unsettled messages that wait are to be dropped.
        """
        pool = self.pools[egress]
        pool.remove_circuit(key)
        if not (pool.circuits or pool.has_path):
            self.forget_pool(egress)

    def set_weight(self, egress: RouterId, key: Key, weight: int) -> None:
        """Set how many busy publishers are behind a circuit, as its neighbor tells."""
        pool = self.pools[egress]
        pool.set_weight(pool.circuits[key], weight)

    def arrived(self, root: RouterId, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """See `CreditScheduler.arrived`: a message waits if its credit was withdrawn."""
        pool = self.pools[root]
        result = pool.arrived(key, message, now, is_ready=is_ready)
        if pool.core:
            pool.serve_core(now)
        circuit = pool.circuits[key]
        if pool.core or pool.returning or pool.free() < 0:
            self.is_steady = False
            self.is_due = True
        elif 4 * circuit.out <= circuit.goal:
            self.is_due = True
        return result

    def circuit_drained(self, egress: RouterId, key: Key, credit: int) -> None:
        """Take back *credit* (messages) that a neighbor returned on a circuit."""
        self.pools[egress].drained(key, credit)

    # The turn

    def set_stopping(self, is_stopping: bool) -> None:
        """See `CreditScheduler.set_stopping`."""
        self._is_stopping = is_stopping

    def turn(self, now: float) -> list[CreditAction]:
        """Send, deal, lend and take back at *now* (seconds). Returns: all that is to be done, in order."""
        self.is_due = False
        self.publishers.expire(now)
        for pool in self.pools.values():
            pool.close_if_withdrawn(now)
            if pool.asked:
                pool.expect_answers(now)
            pool.expect_wholes(now)
            pool.serve_core(now)
        self._serve_waiting(now)
        self._weigh(now)
        for pool in self.pools.values():
            # Local messages that wait and have nothing allotted anywhere are a drain's last chance to be sent.
            waiting = (
                len(self.publishers.waiting) - self.allotted() if pool.returning and pool in self.candidates else 0
            )
            out = pool.local.out
            pool.deal(max(0, waiting), now)
            if pool.local.out > out and self.publishers.left:
                self._left_halves += pool.local.out - out
                self._rest_at = now + self._timing.idle_s
        self._serve_waiting(now)
        for pool in self.pools.values():
            if pool.uncredited:
                pool.serve_uncredited(bool(self.publishers.waiting) or pool.has_busy_neighbors(), now)
            # Before lending: what came back for a debt must not be lent again.
            self._pay(pool, now)
        is_more = self._lend(now)
        due = self._take_back(now)
        self._weigh(now)
        for pool in self.pools.values():
            pool.answer_drain(now)
            pool.tell_weight()
            due = min(due, pool.next_deadline())
        self._deadline = now if is_more else due
        self._unlent = self._count_unlent()
        if self._unlent > 0 and self.publishers.left and self._rest_at > now:
            self._deadline = min(self._deadline, self._rest_at)
        self._is_satisfied = not (self.publishers.is_backlogged or self.publishers.wanting_again)
        self.is_steady = self.is_open() and self._debt_since == inf
        for pool in self.pools.values():
            is_quiet = pool.debt_since == inf and not (pool.returning or pool.core or pool.uncredited)
            self.is_steady = self.is_steady and is_quiet
        return self.take_actions()

    def next_deadline(self) -> float:
        """See `CreditScheduler.next_deadline`: publishers that go on put it off without a turn."""
        return min(self._deadline, self.publishers.next_deadline())

    def _serve_waiting(self, now: float) -> None:
        """Send what waits at *now* (seconds), as far as there is credit for it.

        What publishers have left behind, or came without a link of its own, has turns with the others, and while these
        are busy half of what is dealt. The rest it gets as well when they have not used that for a while.
        """
        publishers = self.publishers
        room = 0
        if publishers.left:
            room = max(0, self._count_unlent())
            if publishers.is_anybody_busy and now < self._rest_at:
                room = min(room, self._left_halves // 2)
        else:
            self._left_halves = 0
        while publishers.waiting:
            has_left = room > 0 and bool(publishers.left)
            has_own = len(publishers.waiting) > len(publishers.left)
            pool = self.next_pool(now) if has_left or has_own else None
            if pool is None:
                return
            if has_left and (publishers.is_left_next or not has_own):
                message = publishers.sent_left()
                room -= 1
                self._left_halves = max(0, self._left_halves - 2)
            else:
                message = publishers.sent(now)
            self._spend_local(pool, now)
            self.actions.append(Send(message, pool.egress))

    def next_pool(self, now: float) -> PoolTowardEgress | None:
        """Find the pool of the next local message at *now* (seconds); None when there is credit in none."""
        for pool in self.candidates:
            if pool.local.out > 0 and pool.capacity > 0:
                return pool
        return None

    def _spend_local(self, pool: PoolTowardEgress, now: float) -> None:
        """Take a credit for a publisher's message off what was allotted to all of them."""
        pool.local.out -= 1
        pool.local.use(now, 2 * pool.capacity, pool.local.out)
        pool.spend(now)

    def _weigh(self, now: float) -> None:
        """Count local publishers as claimants of the pools that are to have credit for them."""
        demand = self.publishers.demand
        if not demand and self.publishers.attached:
            demand = 1  # for the first credit, before there is a message that waits for it
            for pool in self.candidates:
                if pool.is_open:
                    demand = 0
        nearer = 0
        for pool in self.candidates:
            pool.set_weight(pool.local, demand if self.is_wanted(pool, nearer, demand, now) else 0)
            nearer += pool.local.out

    def is_wanted(self, pool: PoolTowardEgress, nearer: int, demand: int, now: float) -> bool:
        """Whether local publishers are to draw on *pool* at *now* (seconds).

        Args:
            pool: one of `candidates`.
            nearer: credit that they have of pools before it, messages.
            demand: busy ones.
            now: seconds.
        """
        return True

    def is_missed(self, pool: PoolTowardEgress) -> bool:
        """Whether local messages go elsewhere for want of credit in *pool*, though it is its turn."""
        return False

    def _lend(self, now: float) -> bool:
        if self.is_open():
            self._is_lending = True
            allotted = self.allotted()
            if self.publishers.wanting_again and not self._owes_others():
                self.publishers.give_again(allotted, now)
            return self.publishers.lend(allotted, now)
        if self._is_lending:
            self._is_lending = False
            self.publishers.lower_all(now)
        return False

    def _owes_others(self) -> bool:
        """Whether what comes back is for others: asked back, backed by nothing, or a neighbor has next to none."""
        for pool in self.pools.values():
            free = pool.free()
            if pool.returning or free < 0 or (free == 0 and pool.starves_circuits()):
                return True
        return False

    def _take_back(self, now: float) -> float:
        """Look for what the backlogged need, and for a debt of publishers.

        Returns: when to look again without an event, seconds.
        """
        due = inf
        is_scarce = False
        is_hungry = self.is_open() and self.publishers.is_backlogged
        for pool in self.pools.values():
            if pool.circuits:
                due = min(due, pool.drain_unneeded(now))
            is_backlogged = pool.starves_circuits() or (is_hungry and pool.local.weight > 0)
            if is_backlogged and pool.free() <= pool.returning:
                is_scarce = True
                unlent = self._count_unlent()
                if pool.return_unlent(unlent, now):
                    due = now
                elif pool.local.out > 0 and unlent > 0:
                    due = min(due, pool.local.since + self._timing.idle_s)
                due = min(due, pool.drain_idle(now))
            elif self.is_missed(pool) and pool.free() <= pool.returning:
                due = min(due, pool.drain_idle(now))
        if is_scarce:
            due = min(due, self.publishers.lower_idle(now))
        return min(due, self._back(now))

    def _pay(self, pool: PoolTowardEgress, now: float) -> None:
        """Take back what *pool* lacks: at once when downstream asks for it, else after a while, as most debts pass."""
        free = pool.free()
        pool.note_debt(now)
        lacking = 0
        if pool.returning and free < pool.returning:
            lacking = pool.returning - free
        elif free < 0 and pool.debt_since + self._timing.debt_s <= now:
            lacking = -free
        if lacking:
            unlent = self._count_unlent()
            credit = max(0, min(lacking, unlent, pool.local.out))
            pool.local.out -= credit
            missing = min(pool.ask_for(lacking - credit, now), pool.local.out)
            if missing:
                self.publishers.lower_for(missing - min(0, unlent), now)
            if free < 0:
                pool.renew_debt(now)

    def _back(self, now: float) -> float:
        """Take back what is lent beyond what was allotted, when it stays so. Returns: when to look again, seconds."""
        unlent = self._count_unlent()
        if unlent >= 0:
            self._debt_since = inf
        elif self._debt_since == inf:
            self._debt_since = now
        elif self._debt_since + self._timing.debt_s <= now:
            self.publishers.lower_for(-unlent, now)
            self._debt_since = now
        return self._debt_since + self._timing.debt_s

    def check_invariants(self) -> None:
        """Check that sums fit and that a turn left nothing undone. Raises: AssertionError."""
        self.publishers.check_invariants()
        for pool in self.pools.values():
            pool.check_invariants()
            assert pool.has_path or pool.circuits
            assert self.egresses[pool.number] == pool.egress
            assert pool.load.unsettled >= 0, "more outcomes than messages"
            assert not (pool.core and pool.capacity), "the core waits beside credit"
        assert self.allotted() == sum(pool.local.out for pool in self.pools.values())
        publishers = self.publishers
        is_ready = len(publishers.waiting) > len(publishers.left)
        assert not (is_ready and any(p.local.out and p.capacity for p in self.candidates))
