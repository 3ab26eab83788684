"""Credit of an anycast address at one router, dealt among those who draw on it.

The mesh has no credit of its own. What subscribers grant is dealt in *pools* (`egress_pool.py`), one for each egress
router; what the local publishers are allotted of all pools together is lent to them (`publisher_credit.py`). A message
waits at its ingress router only and leaves it with a subscriber's credit set aside for it, so over any number of
routers

    credit held by publishers + messages not yet sent to a subscriber <= credit granted + publishers attached

as long as nobody withdraws credit or leaves; afterwards again once what was lent on it has come back.

Pure: events are methods, `turn` is called once after each batch of them and at `next_deadline`, and what is to be done
is returned (`credit_actions.py`). Times are seconds, monotonic; credit is messages.

Source: docs/explanation/credit.md#who-gets-how-much; AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from router.core.forwarding.credit_actions import KEPT, REFUSED, CloseCircuit, CreditAction, Key, Send
from router.core.forwarding.credit_scheduler import CreditScheduler, CreditTiming
from router.core.forwarding.credit_states import PoolEvent
from router.core.forwarding.egress_load import TELL_S, EgressLoad
from router.core.forwarding.egress_pool import EgressPool, IncomingCircuit
from router.core.forwarding.publisher_credit import LocalPublishers, Publisher
from router.core.ids_and_conditions import RouterId

MADE_UP: Final = 16
"""Turns that an egress may be behind others that are equally near; what it missed beyond that is not made up."""
WANTED_S: Final = 10.0
"""Credit is kept ready toward an egress that was the best choice, for so long after the last time."""


class AnycastScheduler(CreditScheduler):
    """Credit of one anycast address at one router.

    Args:
        is_closest: only the nearest egresses are used, while they have subscribers; else the one with the least
            expected wait, among those toward which there is credit.
        distance: unsettled messages per subscriber that a unit of a path's cost is worth.
    """

    def __init__(self, *, timing: CreditTiming | None = None, is_closest: bool = False, distance: float = 0.0) -> None:
        CreditScheduler.__init__(self)
        self._timing = timing or CreditTiming()
        self._is_closest = is_closest
        self._distance = distance
        self.publishers = LocalPublishers(self.actions, self._timing)
        self.pools: dict[RouterId, EgressPool] = {}
        self._candidates: list[EgressPool] = []
        """Pools that local messages may go to, nearest first."""
        self.is_stopping = False
        """Publishers are given no credit any more."""
        self._is_lending = False
        """Publishers have at least one credit each, or are being given it."""
        self._debt_since = math.inf
        """Since when X is below 0, seconds."""
        self._deadline = math.inf
        self.is_due = True
        """Something has happened since the last turn that another would do something about."""
        self._unlent = 0
        """X when it was last added up, and since then in step with what was sent at once."""
        self._is_sated = False
        """No publisher waits for credit."""
        self._is_calm = False
        """Credit may be lent without looking at anything else: nothing is owed, asked back or closed."""

    @property
    def is_open(self) -> bool:
        """Whether publishers may have credit: a reachable subscriber has granted some, and not all have withdrawn.

        One that is new to publishers who have credit already, since the others left, has not withdrawn either, nor has
        one elsewhere of which nothing was heard yet.
        """
        return self._has_opened()

    def _has_opened(self) -> bool:
        if self.is_stopping:
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
        return self._is_sated

    def is_unused(self) -> bool:
        """Whether nobody wants credit: no publisher, no circuit, no message."""
        publishers = self.publishers
        if publishers.attached or publishers.waiting or publishers.coming:
            return False
        for pool in self.pools.values():
            if pool.circuits or pool.core or pool.coming:
                return False
        return True

    def allotted(self) -> int:
        """Count what the local publishers may use, messages."""
        allotted = 0
        for pool in self._candidates:
            allotted += pool.local.out
        return allotted

    # Publishers

    def add_publisher(self, key: Key, held: int = 0) -> None:
        """Take up a publisher that attached, or one that has *held* credit already, 0 or 1, from its router."""
        self.publishers.add(key, held)

    def remove_publisher(self, key: Key) -> None:
        """Forget a publisher that is gone. Complete pre-settled messages of it are the mesh's and stay; the others that
        wait must be dropped with `drop`."""
        self.publishers.remove(key)
        self._is_calm = False

    def published(self, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """Take a message that a publisher sent: it is sent on, or waits as the youngest.

        Args:
            message: what actions name it by, not in use.
            now: seconds.
            is_ready: it may leave; else its first part arrived, and it may leave from `ready` on.
        Returns: the number of the egress that it is to be sent to, `KEPT`, or `REFUSED` when no subscriber can be
            reached any more.
        """
        publishers = self.publishers
        publisher = publishers.attached[key]
        was_busy = publisher.is_busy
        if is_ready and was_busy and self._is_calm and publisher.held > 0 and not publishers.waiting:
            pool = self._candidates[0] if len(self._candidates) == 1 else self._choose(now)
            if pool is not None and pool.local.out > 0 and pool.capacity > 0:
                lent = publishers.lent
                publishers.pass_on(publisher, now)
                self._spend_local(pool, now)
                self._unlent += lent - publishers.lent - 1
                self._look_after(publisher, now)
                return pool.number
        publishers.published(key, message, now, is_ready=is_ready)
        result = KEPT if self._keep_published(message) else REFUSED
        if is_ready and len(publishers.waiting) == 1:
            pool = self._next_pool(now)
            if pool is not None:
                publishers.sent(now)
                self._spend_local(pool, now)
                result = pool.number
        if self._is_calm and was_busy and not publishers.waiting:
            self._unlent = self.allotted() - publishers.lent
            self._look_after(publisher, now)
        else:
            self.is_due = True
        return result

    def _look_after(self, publisher: Publisher, now: float) -> None:
        """Top up a publisher whose message was sent in calm, or ask for a turn when there is nothing more to lend."""
        if self._unlent <= 0:
            self.is_due = True
        elif 2 * publisher.held <= publisher.goal and not self.is_due:
            allotted = self.allotted()
            self.publishers.top_up(publisher, allotted, now)
            self._unlent = allotted - self.publishers.lent

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
        if not self._candidates:
            self.publishers.drop(message)
        return bool(self._candidates)

    def requeue(self, message: Key, egress: RouterId) -> bool:
        """Let a message look for credit that is on nobody's account: its path was lost before anybody had seen it, or
        no credit could be granted for it. It goes before all others.

        Args:
            egress: where it belongs; when that is out of reach it goes to another one.
        Returns: whether it is kept; False when no subscriber can be reached any more.
        """
        pool = self.pools.get(egress)
        if pool is None or not pool.has_path:
            pool = next(iter(self._candidates), None)
        if pool is not None:
            pool.core[message] = None
            self._is_calm = False
        return pool is not None

    def drop(self, message: Key) -> bool:
        """Forget a message that may wait here. Returns: whether it did wait."""
        return self.publishers.drop(message) or any(pool.drop(message) for pool in self.pools.values())

    # Paths

    def set_path(
        self, egress: RouterId, *, cost: int, next_hop: RouterId | None, now: float, load: EgressLoad | None = None
    ) -> None:
        """Note that *egress* has subscribers, and how it is reached. A new next hop has granted nothing yet.

        Args:
            cost: of the path; 0 for this router itself.
            next_hop: neighbor on the way there; None for this router itself.
            now: seconds.
            load: messages at its subscribers, counted by the caller; None leaves it as it is.
        """
        pool = self._pool(egress)
        if load is not None:
            pool.load = load
        pool.distance = cost * self._distance
        if pool.has_path and pool.next_hop != next_hop:
            pool.reset(now)
        if not pool.has_path:
            pool.enter(PoolEvent.PATH_FOUND)
        pool.cost, pool.next_hop = cost, next_hop
        pool.opens_early = next_hop is not None
        self._choose_candidates()

    def circuit_lost(self, egress: RouterId, now: float) -> None:
        """Note that the own circuit toward *egress* is gone *now* (seconds), or can be made again after it could not.
        Its weight will be told anew."""
        self.pools[egress].reset(now)
        self._is_calm = False

    def remove_path(self, egress: RouterId, now: float) -> list[Key]:
        """Note that *egress* has no subscribers any more or cannot be reached.

        Args:
            now: seconds.
        Returns: messages that have nowhere to go now, forgotten here: those that came for it by circuits, and when it
            was the last egress all that wait.
        """
        pool = self.pools[egress]
        pool.reset(now)
        pool.enter(PoolEvent.PATH_LOST)
        pool.next_hop = None
        lost = [*pool.core, *pool.coming]
        pool.core.clear()
        pool.coming.clear()
        if not pool.circuits:
            del self.pools[egress]
        self._choose_candidates()
        if not self._candidates:
            waiting = list(self.publishers.waiting)
            for message in waiting:
                self.publishers.drop(message)
            lost += waiting
        return lost

    def set_capacity(
        self, egress: RouterId, credit: int, now: float, returning: int = 0, is_withdrawn: bool = False
    ) -> bool:
        """Set the unspent credit from downstream: of all live local subscribers, or of the own circuit.

        Args:
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
            self._is_calm = False
        # Who has some comes for more when it has used it.
        return not (is_more and self._is_sated) or pool.starves_circuits()

    def closed(self, egress: RouterId) -> None:
        """Note that the subscribers at *egress* have withdrawn, as the next hop tells."""
        pool = self.pools.get(egress)
        if pool is not None and pool.has_path and pool.capacity == 0:
            pool.close()
            self._is_calm = False

    def _pool(self, egress: RouterId) -> EgressPool:
        if egress not in self.pools:
            if egress not in self.egresses:
                self.egresses.append(egress)
            number = self.egresses.index(egress)
            self.pools[egress] = EgressPool(egress, number, self.actions, self._timing)
        return self.pools[egress]

    def _choose_candidates(self) -> None:
        pools = sorted((p for p in self.pools.values() if p.has_path), key=lambda pool: (pool.cost, pool.egress))
        if self._is_closest:
            pools = [pool for pool in pools if pool.cost == pools[0].cost]
            if pools != self._candidates:
                for pool in pools:
                    pool.turns = 0
        self._candidates = pools
        self._is_calm = False
        for pool in self.pools.values():
            if pool not in pools:
                pool.local.out = pool.local.weight = 0

    # Circuits

    def add_circuit(self, egress: RouterId, key: Key, neighbor: RouterId) -> None:
        """Take up a circuit that *neighbor* attached toward *egress*, perhaps before this router knows a path there."""
        pool = self._pool(egress)
        assert key not in pool.circuits, f"circuit {key} attached twice"
        pool.circuits[key] = IncomingCircuit(key, neighbor, self._timing.first_window)
        if pool.is_closed:
            self.actions.append(CloseCircuit(key))

    def remove_circuit(self, egress: RouterId, key: Key) -> None:
        """Forget a circuit that is gone, with the credit that it held. Its unsettled messages that wait are to be
        dropped."""
        pool = self.pools[egress]
        pool.remove_circuit(key)
        if not (pool.circuits or pool.has_path):
            del self.pools[egress]

    def set_weight(self, egress: RouterId, key: Key, weight: int) -> None:
        """Set how many busy publishers are behind a circuit, as its neighbor tells."""
        pool = self.pools[egress]
        pool.set_weight(pool.circuits[key], weight)

    def arrived(self, root: RouterId, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """Take a message that came on a circuit: it is sent on, or waits if its credit was withdrawn.

        Args:
            root: the circuit's egress router.
            now: seconds.
            is_ready: it may leave; else its first part arrived, and it may leave from `ready` on.
        Returns: the number of the egress that it is to be sent to, `KEPT`, or `REFUSED` when it cannot be reached any
            more.
        """
        pool = self.pools[root]
        result = pool.arrived(key, message, now, is_ready=is_ready)
        if pool.core:
            pool.serve_core(now)
        circuit = pool.circuits[key]
        if pool.core or pool.returning or pool.free() < 0:
            self._is_calm = False
            self.is_due = True
        elif 4 * circuit.out <= circuit.goal:
            self.is_due = True
        return result

    def circuit_drained(self, egress: RouterId, key: Key, credit: int) -> None:
        """Take back *credit* (messages) that a neighbor returned on a circuit."""
        pool = self.pools[egress]
        pool.returned(pool.circuits[key], credit)

    def reports(self, unsettled_of: Callable[[Key], int], now: float) -> tuple[list[tuple[Key, int, int]], float]:
        """Find the neighbors behind circuits that are to be told of loads, where there is a choice of egresses.

        Args:
            unsettled_of: messages of a circuit that have no outcome.
            now: seconds.
        Returns: circuits, each with the messages of others at its egress and the subscribers there; and when to ask
            again, seconds.
        """
        found: list[tuple[Key, int, int]] = []
        due = math.inf
        if not self.has_choice:
            return found, due
        for pool in self._candidates:
            for circuit in pool.circuits.values():
                own = unsettled_of(circuit.key)
                time = circuit.report.next_time(pool.load, own, now)
                if time <= now:
                    found.append((circuit.key, *circuit.report.tell(pool.load, own, now)))
                    time = circuit.report.next_time(pool.load, own, now)
                if pool.load.unsettled:
                    time = min(time, now + TELL_S)  # outcomes change a load, and give no turn
                due = min(due, time)
        return found, due

    # The turn

    def turn(self, now: float) -> list[CreditAction]:
        """Send, deal, lend and take back at *now* (seconds). Returns: all that is to be done, in order."""
        self.is_due = False
        self.publishers.expire(now)
        for pool in self.pools.values():
            pool.close_if_withdrawn(now)
            pool.serve_core(now)
        self._serve_waiting(now)
        self._weigh(now)
        for pool in self.pools.values():
            # Local messages that wait and have nothing allotted anywhere are a drain's last chance to be sent.
            waiting = (
                len(self.publishers.waiting) - self.allotted() if pool.returning and pool in self._candidates else 0
            )
            pool.deal(max(0, waiting), now)
        self._serve_waiting(now)
        for pool in self.pools.values():
            # Before lending: what came back for a debt must not be lent again.
            self._pay(pool, now)
        is_more = self._lend(now)
        due = self._take_back(now)
        self._weigh(now)
        for pool in self.pools.values():
            pool.answer_drain(now)
            pool.tell_weight()
            due = min(due, pool.next_deadline())
        self._deadline = now if is_more else min(due, self.publishers.next_deadline())
        self._unlent = self.allotted() - self.publishers.lent
        self._is_sated = not self.publishers.is_backlogged
        self._is_calm = self._has_opened() and self._debt_since == math.inf
        for pool in self.pools.values():
            self._is_calm = self._is_calm and pool.debt_since == math.inf and not (pool.returning or pool.core)
        return self.take_actions()

    def next_deadline(self) -> float:
        """Tell the time at which `turn` is due without an event, seconds; in the past for at once, `math.inf` for
        never."""
        return self._deadline

    def _serve_waiting(self, now: float) -> None:
        while self.publishers.waiting:
            pool = self._next_pool(now)
            if pool is None:
                return
            message = self.publishers.sent(now)
            self._spend_local(pool, now)
            self.actions.append(Send(message, pool.egress))

    def _next_pool(self, now: float) -> EgressPool | None:
        """Find the egress for the next local message; None when there is credit toward none."""
        if len(self._candidates) != 1:
            return self._choose(now)
        pool = self._candidates[0]
        return pool if pool.local.out > 0 and pool.capacity > 0 else None

    @property
    def has_choice(self) -> bool:
        """Whether loads are looked at."""
        return not self._is_closest and len(self._candidates) > 1

    def _choose(self, now: float) -> EgressPool | None:
        """Choose among several egresses for the next local message; None when there is credit toward none."""
        if self._is_closest:
            able = [pool for pool in self._candidates if pool.local.out > 0 and pool.capacity > 0]
            return self._next_in_turn(able) if able else None
        chosen: EgressPool | None = None
        least = 0.0
        latest = 0
        for pool in self._candidates:
            latest = max(latest, pool.load.chosen)
            if pool.local.out > 0 and pool.capacity > 0:
                wait = pool.distance + pool.load.wait(now)
                if chosen is None or wait < least or (wait == least and pool.load.chosen < chosen.load.chosen):
                    chosen, least = pool, wait
        for pool in self._candidates:
            if pool.local.out <= 0 or pool.capacity <= 0:
                # It would have been better, so credit is asked for. This message does not wait for it.
                pool.is_missed = chosen is not None and pool.distance + pool.load.wait(now) < least
                if pool.is_missed:
                    self.is_due = self.is_due or pool.wanted_until <= now
                    pool.wanted_until = now + WANTED_S
        if chosen is not None:
            chosen.load.chosen = latest + 1
            chosen.wanted_until = now + WANTED_S
            chosen.is_missed = False
        return chosen

    def _next_in_turn(self, able: list[EgressPool]) -> EgressPool:
        """Choose the one of several egresses with credit that had the fewest turns, of equals the first.

        Credit may be late by a round trip at one of them. It makes up for what it missed, or less would go wherever
        that happens more often.
        """
        chosen = able[0]
        most = 0
        for pool in able:
            if pool.turns < chosen.turns:
                chosen = pool
            most = max(most, pool.turns)
        chosen.turns = max(chosen.turns, most - MADE_UP) + 1
        return chosen

    def _spend_local(self, pool: EgressPool, now: float) -> None:
        """Take a credit for a publisher's message off what was allotted to all of them."""
        pool.local.out -= 1
        pool.local.use(now, 2 * pool.capacity)
        pool.spend(now)

    def _weigh(self, now: float) -> None:
        """Count local publishers toward the nearest egress; toward a farther one only when the nearer do not do, or it
        was lately the better choice."""
        demand = self.publishers.demand
        if not demand and self.publishers.attached:
            demand = 1  # for the first credit, before there is a message that waits for it
            for pool in self._candidates:
                if pool.is_open:
                    demand = 0
        nearer = 0
        for pool in self._candidates:
            is_wanted = self._is_closest or nearer <= demand or bool(self.publishers.waiting) or pool.wanted_until > now
            pool.set_weight(pool.local, demand if is_wanted else 0)
            nearer += pool.local.out

    def _lend(self, now: float) -> bool:
        if self._has_opened():
            self._is_lending = True
            return self.publishers.lend(self.allotted(), now)
        if self._is_lending:
            self._is_lending = False
            self.publishers.lower_all(now)
        return False

    def _take_back(self, now: float) -> float:
        """Look for what the backlogged need, and for a debt of publishers.

        Returns: when to look again without an event, seconds.
        """
        due = math.inf
        is_scarce = False
        for pool in self.pools.values():
            if pool.circuits:
                pool.drain_loops()
                due = min(due, pool.drain_unneeded(now))
            is_backlogged = pool.starves_circuits() or (pool.local.weight > 0 and self._is_hungry)
            if is_backlogged and pool.free() <= pool.returning:
                is_scarce = True
                unlent = self.allotted() - self.publishers.lent
                if pool.return_unlent(unlent, now):
                    due = now
                elif pool.local.out > 0 and unlent > 0:
                    due = min(due, pool.local.since + self._timing.idle_s)
                due = min(due, pool.drain_idle(now))
            elif self._is_missed(pool) and pool.free() <= pool.returning:
                due = min(due, pool.drain_idle(now))
        if is_scarce:
            due = min(due, self.publishers.lower_idle(now))
        return min(due, self._back(now))

    @property
    def _is_hungry(self) -> bool:
        return self._has_opened() and self.publishers.is_backlogged

    def _is_missed(self, pool: EgressPool) -> bool:
        """Whether local messages go elsewhere for want of credit here, though it is the turn of this egress: their
        publishers are not backlogged, and others would keep for ever what they do not use."""
        if len(self._candidates) < 2 or pool.local.weight == 0 or pool.local.out > 0:
            return False
        return self._is_closest or pool is self._candidates[0] or pool.is_missed

    def _pay(self, pool: EgressPool, now: float) -> None:
        """Take back what *pool* lacks: at once when downstream asks for it, else after a while, as most debts pass."""
        free = pool.free()
        pool.note_debt(now)
        lacking = 0
        if pool.returning and free < pool.returning:
            lacking = pool.returning - free
        elif free < 0 and pool.debt_since + self._timing.debt_s <= now:
            lacking = -free
        if lacking:
            unlent = self.allotted() - self.publishers.lent
            credit = max(0, min(lacking, unlent, pool.local.out))
            pool.local.out -= credit
            missing = min(pool.ask_for(lacking - credit), pool.local.out)
            if missing:
                self.publishers.lower_for(missing - min(0, unlent), now)
            if free < 0:
                pool.debt_since = now  # again after the same time, if it has not come back

    def _back(self, now: float) -> float:
        """Take back what is lent beyond what was allotted, when it stays so. Returns: when to look again, seconds."""
        unbacked = self.publishers.lent - self.allotted()
        if unbacked <= 0:
            self._debt_since = math.inf
        elif self._debt_since == math.inf:
            self._debt_since = now
        elif self._debt_since + self._timing.debt_s <= now:
            self.publishers.lower_for(unbacked, now)
            self._debt_since = now
        return self._debt_since + self._timing.debt_s

    def check_invariants(self) -> None:
        """Check that sums fit and that a turn left nothing undone. Raises: AssertionError."""
        self.publishers.check_invariants()
        for pool in self.pools.values():
            pool.check_invariants()
            assert pool.has_path or pool.circuits
            assert pool.load.unsettled >= 0, "more outcomes than messages"
            assert not (pool.core and pool.capacity), "the core waits beside credit"
        assert self.allotted() == sum(pool.local.out for pool in self.pools.values())
        assert not (self.publishers.waiting and any(p.local.out and p.capacity for p in self._candidates))
