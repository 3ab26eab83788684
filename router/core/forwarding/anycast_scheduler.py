"""Scheduler of an anycast address at one router: pools of credit, and toward which egress its messages go.

The mesh has no credit of its own. What subscribers grant is dealt in pools (`pool_toward_egress.py`), one for each
egress router, and lent to the local publishers (`credit_pool_scheduler.py`). Here is which pools there are, as paths
come and go, and which of them has the next message.

Source: docs/explanation/credit.md#who-gets-how-much.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

import attrs

from router.core.forwarding.credit_actions import Key
from router.core.forwarding.credit_pool_scheduler import CreditPoolScheduler
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.egress_load import RENEW_S, TELL_S, EgressLoad
from router.core.forwarding.pool_toward_egress import PoolTowardEgress
from router.core.ids_and_conditions import RouterId

MADE_UP: Final = 16
"""Maximum number of missed turns that an egress which lacked credit catches up on."""


@attrs.frozen
class EgressPath:
    """Path to an egress router."""

    cost: int
    """0 for this router itself."""
    next_hop: RouterId | None
    """Neighbor on the way there; None for this router itself."""
    load: EgressLoad | None = None
    """Messages at its subscribers, counted by the caller; None leaves it as it is."""


class AnycastScheduler(CreditPoolScheduler):
    """Scheduler of the credit of one anycast address at one router.

    Args:
        is_closest: only the nearest egresses are used, while they have subscribers; else the one with the least
            expected wait, among those toward which there is credit.
        distance: unsettled messages per subscriber that a unit of a path's cost is worth.
    """

    def __init__(self, *, timing: CreditTiming | None = None, is_closest: bool = False, distance: float = 0.0) -> None:
        CreditPoolScheduler.__init__(self, timing or CreditTiming())
        self._is_closest = is_closest
        self._distance = distance
        self._seen_loads: list[int] = []
        """Loads when they were last looked at: messages at an egress and, of these, those of each neighbor."""
        self._moved_at = -inf
        """Time at which these were last found changed, seconds."""

    # Paths

    def set_paths(self, paths: Mapping[RouterId, EgressPath], now: float) -> list[Key]:
        """Set which routers have subscribers and how each is reached. A new next hop has granted nothing yet.

        Args:
            paths: by egress; all others have no subscribers any more or cannot be reached.
            now: seconds.
        Returns: messages that have nowhere to go now, forgotten here: those that came for a lost egress on no
            publisher's credit, and when no egress is left all that wait.
        """
        lost: list[Key] = []
        for egress in sorted(egress for egress, pool in self.pools.items() if pool.has_path and egress not in paths):
            pool = self.pools[egress]
            lost += pool.lose_path(now)
            if not pool.circuits:
                self.forget_pool(egress)
        for egress in sorted(paths):
            path = paths[egress]
            self.pool(egress).set_path(path.cost, path.next_hop, path.cost * self._distance, now, path.load)
        self._choose_candidates()
        if not self.candidates:
            waiting = list(self.publishers.waiting)
            for message in waiting:
                self.publishers.drop(message)
            lost += waiting
        return lost

    def circuit_lost(self, egress: RouterId, now: float) -> None:
        """Note that the own circuit toward *egress* is gone *now* (seconds), or can be made again after it could not.

        Its weight will be told anew.
        """
        self.pools[egress].reset(now)
        self.is_steady = False

    def closed(self, egress: RouterId) -> None:
        """Note that the subscribers at *egress* have withdrawn, as the next hop tells."""
        pool = self.pools.get(egress)
        if pool is not None and pool.has_path and pool.capacity == 0:
            pool.close()
            self.is_steady = False

    def requeue(self, message: Key, egress: RouterId) -> bool:
        """Let a message look for credit that is on nobody's account.

        Its path was lost before anybody had seen it, or no credit could be granted for it. It goes before all others.

        Args:
            message: what actions name it by, not in use.
            egress: where it belongs; when that is out of reach it goes to another one.
        Returns: whether it is kept; False when no subscriber can be reached any more.
        """
        pool = self._pool_or_nearest(egress)
        if pool is not None:
            pool.core[message] = None
        return pool is not None

    def add_uncredited(self, message: Key, egress: RouterId, client: Key) -> bool:
        """Let a message look for credit that came on none of this address: a datagram, or one of an anonymous sender.

        Args:
            message: what actions name it by, not in use.
            egress: where it belongs; when that is out of reach it goes to another one.
            client: whose it is, or the neighbor by which it came: they have turns.
        Returns: whether it is kept; False when no subscriber can be reached any more.
        """
        pool = self._pool_or_nearest(egress)
        if pool is not None:
            pool.add_uncredited(message, client)
        return pool is not None

    def _pool_or_nearest(self, egress: RouterId) -> PoolTowardEgress | None:
        """Find the pool toward *egress*, or the nearest one that can be reached, for a message that will be there."""
        self.is_steady = False
        pool = self.pools.get(egress)
        return pool if pool is not None and pool.has_path else next(iter(self.candidates), None)

    def _choose_candidates(self) -> None:
        pools = sorted((p for p in self.pools.values() if p.has_path), key=lambda pool: (pool.cost, pool.egress))
        if self._is_closest:
            pools = [pool for pool in pools if pool.cost == pools[0].cost]
            if pools != self.candidates:
                for pool in pools:
                    pool.forget_turns()
        self.candidates = pools
        self.is_steady = False
        chosen = set(pools)
        for pool in self.pools.values():
            if pool not in chosen:
                pool.local.out = pool.local.weight = 0

    # Loads

    @property
    def has_choice(self) -> bool:
        """Whether loads are looked at."""
        return not self._is_closest and len(self.candidates) > 1

    def told_circuits(self) -> list[Key]:
        """Find the circuits whose neighbors are told of loads: all, where there is a choice of egresses."""
        return [key for pool in self.candidates for key in pool.circuits] if self.has_choice else []

    def reports(self, unsettled: Mapping[Key, int], now: float) -> tuple[list[tuple[Key, int, int]], float]:
        """Find the neighbors that are to be told of loads *now*.

        Args:
            unsettled: messages without an outcome of each of `told_circuits`.
            now: seconds.
        Returns: circuits, each with the messages of others at its egress and the subscribers there; and when to ask
            again, seconds.
        """
        found: list[tuple[Key, int, int]] = []
        due = inf
        if not self.has_choice:
            return found, due
        seen: list[int] = []
        is_unsettled = False
        for pool in self.candidates:
            is_unsettled = is_unsettled or (pool.load.unsettled > 0 and bool(pool.circuits))
            for circuit in pool.circuits.values():
                own = unsettled[circuit.key]
                seen += (pool.load.messages(now), own)
                time = circuit.report.next_time(pool.load, own, now)
                if time <= now:
                    found.append((circuit.key, *circuit.report.tell(pool.load, own, now)))
                    time = circuit.report.next_time(pool.load, own, now)
                due = min(due, time)
        if seen != self._seen_loads:
            self._seen_loads, self._moved_at = seen, now
        if is_unsettled:  # outcomes change a load, and give no turn; the longer there were none the later it is looked
            due = min(due, now + min(max(now - self._moved_at, TELL_S), RENEW_S))
        return found, due

    # The choice

    def next_pool(self, now: float) -> PoolTowardEgress | None:
        """Choose the pool of the next local message at *now* (seconds); None when there is credit toward no egress."""
        return self._choose(now) if len(self.candidates) > 1 else CreditPoolScheduler.next_pool(self, now)

    def _choose(self, now: float) -> PoolTowardEgress | None:
        """Choose among several egresses for the next local message; None when there is credit toward none."""
        if self._is_closest:
            able = [pool for pool in self.candidates if pool.local.out > 0 and pool.capacity > 0]
            return self._next_in_turn(able) if able else None
        chosen: PoolTowardEgress | None = None
        least = 0.0
        latest = 0
        for pool in self.candidates:
            latest = max(latest, pool.load.chosen)
            if pool.local.out > 0 and pool.capacity > 0:
                wait = pool.distance + pool.load.wait(now)
                if chosen is None or wait < least or (wait == least and pool.load.chosen < chosen.load.chosen):
                    chosen, least = pool, wait
        for pool in self.candidates:
            if pool.local.out <= 0 or pool.capacity <= 0:
                # It would have been better, so credit is asked for. This message does not wait for it.
                is_better = chosen is not None and pool.distance + pool.load.wait(now) < least
                if pool.pass_over(is_better, now):
                    self.is_due = True
        if chosen is not None:
            chosen.load.chosen = latest + 1
            chosen.choose(now)
        return chosen

    def _next_in_turn(self, able: list[PoolTowardEgress]) -> PoolTowardEgress:
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
        chosen.take_turn(most - MADE_UP)
        return chosen

    def is_wanted(self, pool: PoolTowardEgress, nearer: int, demand: int, now: float) -> bool:
        """Whether local publishers are to draw on *pool* at *now* (seconds).

        On that of a farther egress only when the nearer ones do not do, or when it was lately the better choice.
        """
        return self._is_closest or nearer <= demand or bool(self.publishers.waiting) or pool.wanted_until > now

    def is_missed(self, pool: PoolTowardEgress) -> bool:
        """Whether local messages go elsewhere for want of credit here, though it is the turn of this egress.

        Their publishers are not backlogged, and others would keep for ever what they do not use.
        """
        if len(self.candidates) < 2 or pool.local.weight == 0 or pool.local.out > 0:
            return False
        return self._is_closest or pool is self.candidates[0] or pool.is_missed
