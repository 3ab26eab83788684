"""Egress pool: the credit toward one egress router, and those who draw on it at this one.

    U = capacity - what the claimants hold - messages of the core        U >= 0 whenever credit is dealt.

Claimants are the incoming circuits and, all together, the local publishers. Credit on a circuit is always backed: it is
set aside out of the capacity until it is used or returned. Shares follow the busy publishers behind each claimant, so
that publishers share equally wherever they are: equal shares for each claimant would not (parking lot). Credit goes out
in batches, since each costs a frame.

Source: docs/explanation/credit.md#who-gets-how-much.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from math import inf

from router.core.forwarding.credit_actions import (
    KEPT,
    REFUSED,
    CreditAction,
    DrainCircuit,
    GrantCircuit,
    Key,
    ReturnCredit,
    Send,
    TellNeighborSubscribersWithdrew,
    TellWeight,
)
from router.core.forwarding.credit_pool import Claimant, CreditPool, total_weight
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.credit_states import POOL_TRANSITIONS, PoolEvent, PoolState
from router.core.forwarding.egress_load import EgressLoad, LoadToldToNeighbor
from router.core.forwarding.fair_queue import FairQueue
from router.core.ids_and_conditions import RouterId

BATCHES = 4
"""Number of batches in which a claimant's target is dealt: each costs a frame."""
WANTED_S = 10.0
"""Time for which credit is kept ready toward an egress after it was last the best choice, seconds."""
UNREACHABLE = int(PoolState.UNREACHABLE)
AWAITED = int(PoolState.AWAITED)
OPEN = int(PoolState.OPEN)
CLOSED = int(PoolState.CLOSED)


class IncomingCircuit(Claimant):
    """Incoming circuit: a neighbor's link toward the egress."""

    __slots__ = ("answer_due", "late", "neighbor", "neighbor_weight", "report", "unreturned", "was_told_closed")

    def __init__(self, key: Key, neighbor: RouterId, timing: CreditTiming) -> None:
        Claimant.__init__(self, key, timing.first_window, timing.look_s)
        self.neighbor = neighbor
        self.report = LoadToldToNeighbor()
        """Load at the egress as its neighbor was told."""
        self.neighbor_weight = 0
        """Weight of the circuit in a multicast's tree, as its neighbor told it."""
        self.was_told_closed = False
        """Whether the neighbor was told, in a multicast's tree, that nobody is live, and got no credit since."""
        self.answer_due = inf
        """Time until which its neighbor has to answer the last drain, seconds."""
        self.unreturned = 0
        """Credit that was asked back and is overdue. Others have it now; the neighbor gets none until it is returned or
        used."""
        self.late = 0
        """Number of messages whose ends are overdue; their credit is for others."""


class PartlyArrivedMessage:
    """Message of a circuit that is not there as a whole: it is counted, and not to be sent yet."""

    __slots__ = ("circuit", "is_late", "since")

    def __init__(self, circuit: IncomingCircuit, now: float) -> None:
        self.circuit = circuit
        self.since = now
        self.is_late = False
        """Whether the message's end is overdue, so that its credit is for others."""


class PoolTowardEgress(CreditPool):
    """Credit toward one egress.

    Args:
        egress: the router whose subscribers granted it; ours when they are local.
        number: of the egress; what is returned for a message that is to be sent there.
        actions: where what is to be done is added.
    """

    def __init__(self, egress: RouterId, number: int, actions: list[CreditAction], timing: CreditTiming) -> None:
        CreditPool.__init__(self, timing)
        self.egress = egress
        self.number = number
        self._actions = actions
        self.state: int = PoolState.UNREACHABLE
        self.cost = 0
        """Cost of the path; 0 at the egress itself."""
        self.next_hop: RouterId | None = None
        """Neighbor toward the egress; None at the egress itself, and when there is not one neighbor alone."""
        self.is_at_egress = False
        """Whether the credit is that of local subscribers: this router then says when they have withdrawn for long."""
        self.circuits: dict[Key, IncomingCircuit] = {}
        self.local = Claimant(None, timing.first_window, timing.look_s)
        """Claimant for all local publishers together."""
        self.core: OrderedDict[Key, None] = OrderedDict()
        """Messages that came on credit and wait: for a turn, or after a withdrawal or a change of path."""
        self.coming: dict[Key, PartlyArrivedMessage] = {}
        """Messages of circuits that are not there as a whole."""
        self.late = 0
        """Number of messages in `coming` that are late."""
        self._late_at = inf
        """Time at which the next message in `coming` may be late, seconds."""
        self.uncredited = FairQueue()
        """Messages that came on no credit of this address: datagrams, and those of anonymous senders."""
        self.unbacked = Claimant(None, timing.first_window, timing.look_s)
        """Claimant for the messages in `uncredited` while somebody else needs credit; else they take what there is."""
        self.opens_early = False
        """Whether publishers may have the one credit that nothing backs before subscribers elsewhere told of theirs, a
        round trip away: a publisher that casts and exits has no time to wait for it."""
        self.told_weight = 0
        self.turns = 0
        """Number of local messages that were sent here in turn with other egresses, since these were the nearest."""
        self.asked: dict[IncomingCircuit, None] = {}
        """Circuits that may have a drain to answer."""
        self.load = EgressLoad()
        """Load of the egress: messages at its subscribers."""
        self.distance = 0.0
        """Worth of the path's cost, messages."""
        self.wanted_until = -inf
        """Time until which local messages are expected here in spite of credit toward nearer egresses, seconds."""
        self.is_missed = False
        """Whether there was no credit the last time that a local message would have gone here."""

    def free(self) -> int:
        """U of the rule, messages."""
        dealt = self.local.out + self.unbacked.out + self.out
        return self.capacity - dealt - len(self.core) - len(self.coming) + self.late

    def holders(self) -> Iterable[Claimant]:
        """Incoming circuits. The local publishers give back what they were allotted without being asked."""
        return self.circuits.values()

    @property
    def has_path(self) -> bool:
        """Whether the egress is reachable and has subscribers."""
        return self.state != UNREACHABLE

    @property
    def is_open(self) -> bool:
        """Whether there was credit since the last close."""
        return self.state == OPEN

    @property
    def is_closed(self) -> bool:
        """Whether all subscribers have withdrawn, and upstream was told."""
        return self.state == CLOSED

    def lets_lend(self, is_lending: bool) -> bool:
        """Whether publishers may have the one credit that nothing backs, on account of this egress.

        Args:
            is_lending: they have it, on account of another one.
        """
        return self.state == OPEN or (self.state == AWAITED and (is_lending or self.opens_early))

    # What happens

    def enter(self, event: PoolEvent) -> None:
        """Go where *event* leads from the present state."""
        self.state = int(POOL_TRANSITIONS[PoolState(self.state), event])

    def set_capacity(self, credit: int, returning: int, now: float, is_withdrawn: bool) -> None:
        """Set what downstream says, messages.

        Args:
            credit: unspent.
            returning: how much of it is asked back.
            now: seconds.
            is_withdrawn: all local subscribers have taken theirs back.
        """
        assert self.state != UNREACHABLE or credit == 0, "credit for nowhere"
        if credit > 0 and self.state != OPEN:
            self.enter(PoolEvent.CREDIT)
        # Credit that is merely used up closes nothing, however long the subscriber works on it.
        self.withdrawn_at = min(self.withdrawn_at, now) if is_withdrawn and credit == 0 else inf
        self.capacity = credit
        self.set_returning(min(returning, credit), now)

    def set_path(
        self, cost: int, next_hop: RouterId | None, distance: float, now: float, load: EgressLoad | None = None
    ) -> None:
        """See `EgressPath`; *distance*: worth of the cost, messages."""
        if load is not None:
            self.load = load
        if self.has_path and self.next_hop != next_hop:
            self.reset(now)
        if not self.has_path:
            self.enter(PoolEvent.PATH_FOUND)
        self.cost, self.next_hop, self.distance = cost, next_hop, distance
        self.is_at_egress = next_hop is None
        self.opens_early = not self.is_at_egress

    def open_early(self, may_open: bool) -> None:
        """Set whether publishers may have the credit that nothing backs before subscribers elsewhere grant any."""
        self.opens_early = may_open

    def lose_path(self, now: float) -> list[Key]:
        """Note at *now* (seconds) that the egress is out of reach, or has no subscribers any more.

        Returns: messages that came for it on no publisher's credit, forgotten here.
        """
        self.reset(now)
        self.enter(PoolEvent.PATH_LOST)
        self.next_hop = None
        lost = [*self.core, *self.coming, *self.uncredited.clear()]
        self.core.clear()
        for message in list(self.coming):
            self._forget_coming(message)
        self._weigh_uncredited()
        return lost

    def reset(self, now: float) -> None:
        """Forget the own circuit at *now* (seconds), which is lost or leads elsewhere.

        Nothing is granted on the next one yet. Claimants keep theirs for a while.
        """
        self.capacity = self.local.out = self.unbacked.out = self.told_weight = 0
        self.withdrawn_at = inf
        self.set_returning(0, now)

    def remove_circuit(self, key: Key) -> None:
        """Forget a circuit that is gone, with the credit that it held."""
        circuit = self.circuits.pop(key)
        self.out -= circuit.out
        self.asked.pop(circuit, None)

    def drained(self, key: Key, credit: int) -> None:
        """Take back *credit* (messages) that a neighbor returned on a circuit: all that it had."""
        circuit = self.circuits[key]
        circuit.unreturned = 0
        self.returned(circuit, credit)
        self.forget_claim(circuit)

    def expect_answers(self, now: float) -> None:
        """Count credit as returned that a neighbor does not return in time, at *now* (seconds).

        Where it is silent, or keeps what it holds, others would go without for as long as its connection lasts. What
        it sends on that credit all the same waits here for other credit.
        """
        for circuit in list(self.asked):
            if not circuit.is_draining:
                del self.asked[circuit]
            elif circuit.answer_due <= now:
                circuit.unreturned += circuit.out
                self.take_from(circuit, circuit.out)
                del self.asked[circuit]

    def expect_wholes(self, now: float) -> None:
        """Count the credit of messages as free whose ends have not come in time, at *now* (seconds).

        A neighbor that goes on with them slowly would keep it from others. Once they are whole they wait here for
        other credit.
        """
        if self._late_at > now:
            return
        self._late_at = inf
        for message in self.coming.values():
            if message.is_late:
                continue
            due = message.since + self.timing.drain_bound_s
            if due <= now:
                message.is_late = True
                message.circuit.late += 1
                self.late += 1
            else:
                # One deadline for many: each by itself would give a turn.
                self._late_at = min(self._late_at, max(due, now + self.timing.idle_s))

    def arrived(self, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """Take a message that arrives on a circuit at *now* (seconds). See `CreditScheduler.arrived`."""
        circuit = self.circuits[key]
        if circuit.out > 0:
            self.take_from(circuit, 1)
        elif circuit.unreturned > 0:
            circuit.unreturned -= 1
            if not circuit.unreturned:
                self.forget_claim(circuit)
        else:
            self._actions.append(GrantCircuit(key, 1))
        circuit.use(now, 2 * self.capacity, circuit.out)
        if self.state == UNREACHABLE:
            return REFUSED
        if is_ready and self.capacity > 0 and not self.core:
            self.spend(now)
            return self.number
        if is_ready:
            self.core[message] = None
        else:
            self.coming[message] = PartlyArrivedMessage(circuit, now)
            self._late_at = min(self._late_at, now + self.timing.drain_bound_s)
        return KEPT

    def ready(self, message: Key) -> None:
        """Let a message leave that had begun to arrive."""
        self._forget_coming(message)
        self.core[message] = None

    def _forget_coming(self, message: Key) -> None:
        unfinished = self.coming.pop(message)
        if unfinished.is_late:
            unfinished.circuit.late -= 1
            self.late -= 1

    def drop(self, message: Key) -> bool:
        """Forget a message of the core. Returns: whether it was here."""
        if message in self.core:
            del self.core[message]
            return True
        if message in self.coming:
            self._forget_coming(message)
            return True
        if not self.uncredited.discard(message):
            return False
        self._weigh_uncredited()
        return True

    def add_uncredited(self, message: Key, client: Key) -> None:
        """See `AnycastScheduler.add_uncredited`."""
        self.uncredited.add(message, client)
        self._weigh_uncredited()

    def _weigh_uncredited(self) -> None:
        self.set_weight(self.unbacked, self.uncredited.client_count())
        if not self.unbacked.weight:
            self.unbacked.out = 0

    def set_weight(self, claimant: Claimant, weight: int) -> None:
        """Set how many busy publishers are behind *claimant*."""
        if claimant.weight == 0 and weight > 0:
            self.forget_claim(claimant)
        claimant.weight = weight

    def spend(self, now: float) -> None:
        """Send one message downstream at *now* (seconds); of local subscribers to one that drains, if any does."""
        assert self.capacity > 0, "sent without a subscriber's credit"
        self.capacity -= 1
        if self.returning:
            self.set_returning(self.returning - 1, now)

    # Local messages that have a choice of egresses

    def choose(self, now: float) -> None:
        """Note that the next local message goes here, at *now* (seconds)."""
        self.is_missed = False
        self.wanted_until = now + WANTED_S

    def pass_over(self, is_better: bool, now: float) -> bool:
        """Note that the next local message goes elsewhere for want of credit here.

        Args:
            is_better: it would have gone here otherwise, so more credit is asked for.
            now: seconds.
        Returns: whether that is new, and reason for a turn.
        """
        is_new = is_better and self.wanted_until <= now
        self.is_missed = is_better
        if is_better:
            self.wanted_until = now + WANTED_S
        return is_new

    def take_turn(self, least: int) -> None:
        """Count a local message that went here in turn; as if there had been *least* before it, if it had fewer."""
        self.turns = max(self.turns, least) + 1

    def forget_turns(self) -> None:
        """Count turns anew, since the egresses that take turns are others."""
        self.turns = 0

    # Dealing

    def claimants(self) -> list[Claimant]:
        """List those that may be dealt credit, in order of joining; no circuit from the own next hop: it is a loop."""
        found: list[Claimant] = [
            c
            for c in self.circuits.values()
            if c.weight > 0 and not (c.is_draining or c.unreturned or c.late) and c.neighbor != self.next_hop
        ]
        if self.local.weight > 0:
            found.append(self.local)
        if self.unbacked.weight > 0:
            found.append(self.unbacked)
        return found

    def serve_core(self, now: float) -> None:
        """Send what came by circuits at *now* (seconds), as far as there is credit."""
        while self.core and self.capacity > 0:
            message, _ = self.core.popitem(last=False)
            self.spend(now)
            self._actions.append(Send(message, self.egress))

    def serve_uncredited(self, is_contended: bool, now: float) -> None:
        """Send what came on no credit of this address, as far as there is some.

        Args:
            is_contended: others need credit too, so that these get no more than they were dealt.
            now: seconds.
        """
        while self.uncredited and self.capacity > 0 and (self.unbacked.out > 0 or not is_contended):
            if self.unbacked.out > 0:
                self.unbacked.out -= 1
            else:
                self.unbacked.served += 1 / self.unbacked.weight
            message = self.uncredited.pop()
            self._weigh_uncredited()
            self.spend(now)
            self._actions.append(Send(message, self.egress))

    def deal(self, waiting: int, now: float) -> None:
        """Allot what is free. What downstream asks back is for messages that wait, here and upstream, and nobody else.

        Args:
            waiting: local messages that wait and have nothing allotted yet.
            now: seconds.
        """
        claimants = self.claimants()
        before = self.free()
        if before > self.returning and claimants:
            self._deal(claimants, before - self.returning, now)
        if self.returning and (free := self.free()) > 0:
            credit = min(free, waiting)
            self.local.out += credit
            # Whether something waits upstream only a circuit's answer tells: it is dealt credit and drained of it.
            asked: list[Claimant] = [
                c for c in self.circuits.values() if c in claimants and c.out == 0 and not c.has_returned
            ]
            if asked and free > credit:
                self._deal(asked, free - credit, now)
        assert self.free() >= min(0, before), "dealt more than is backed"

    def _deal(self, claimants: list[Claimant], free: int, now: float) -> None:
        total = total_weight(claimants)
        before = {d: d.out for d in claimants if self._is_worth(d, free, total, d.out)}
        level = self.share_out(list(before), total, free, BATCHES)
        is_left = False
        for claimant, out in before.items():
            credit = claimant.out - out
            if credit and not self._is_worth(claimant, credit, total, out):
                # Others were served before it. What is left is for them rather than for nobody.
                claimant.out = out
                claimant.served -= credit / claimant.weight
                is_left = True
            elif credit:
                free -= credit
                if out == 0:
                    claimant.since = now
                if claimant.key is not None:
                    self.out += credit
                    self._actions.append(GrantCircuit(claimant.key, credit))
        self.limit_claims(claimants, total, level)
        if is_left:
            self._deal([d for d in claimants if d.key is None or d.out != before.get(d)], free, now)

    def target(self, claimant: Claimant, total: int) -> int:
        """Most that a claimant may hold, messages.

        That is twice its share, so that it never runs dry while its own top-up is on the way, and no more than its
        window, or two for each of its publishers.
        """
        if not claimant.weight:
            return 0
        window = max(claimant.window, 2 * claimant.weight)
        return max(1, min(self.capacity, 2 * self.capacity * claimant.weight // total, window))

    def _is_worth(self, claimant: Claimant, credit: int, total: int, out: int) -> bool:
        """Whether *credit* is worth a frame for one that holds *out*: it is much, or urgent. Locally none is sent."""
        target = self.target(claimant, total)
        return claimant.key is None or 4 * out <= target or 4 * min(credit, target - out) >= target

    # Taking back

    def starves_circuits(self) -> bool:
        """Whether a neighbor with busy publishers has next to nothing."""
        return bool(self.circuits) and self.is_starving(self.claimants())

    def has_busy_neighbors(self) -> bool:
        """Whether publishers behind a circuit need credit."""
        return bool(self.circuits) and bool([c for c in self.claimants() if c.key is not None])

    def return_unlent(self, unlent: int, now: float) -> int:
        """Take back for the backlogged what local publishers were allotted and do not use at *now* (seconds).

        Args:
            unlent: X, messages.
            now: seconds.
        Returns: how much was taken back.
        """
        excess = self.local.out
        is_idle = excess > 0 and (self.local.is_slow or self.local.since + self.timing.idle_s <= now)
        if is_idle:
            self.local.rest(self.timing.first_window)
        else:
            excess -= self.target(self.local, max(1, total_weight(self.claimants())))
        credit = max(0, min(excess, unlent))
        self.local.out -= credit
        return credit

    def drain_idle(self, now: float) -> float:
        """Drain circuits that use little or none of their credit at *now* (seconds). Returns: as `ask_unused`."""
        self.ask_unused([c for c in self.circuits.values() if c.out > 0 and c.is_slow], -inf, now)
        return self.ask_unused([c for c in self.circuits.values() if c.out > 0], self.timing.idle_s, now)

    def drain_unneeded(self, now: float) -> float:
        """Drain circuits that need no credit, before others are backlogged for it at *now* (seconds).

        Such are those of our own next hop, used or not, and those with much credit and nobody busy behind them.

        Returns: as `ask_unused`.
        """
        much = self.timing.first_window
        looping = [c for c in self.circuits.values() if c.neighbor == self.next_hop and c.out > 0]
        self.ask_unused(looping, -inf, now)
        unneeded = [c for c in self.circuits.values() if c.weight == 0 and c.out > much]
        return self.ask_unused(unneeded, self.timing.busy_s, now)

    def ask(self, claimant: Claimant, now: float) -> None:
        """Drain a circuit at *now* (seconds)."""
        assert claimant.key is not None, "the local publishers are not drained"
        claimant.rest(self.timing.first_window)
        self.recall(self.circuits[claimant.key], now)

    def recall(self, circuit: IncomingCircuit, now: float) -> None:
        """Drain a circuit at *now* (seconds), whatever it is used for."""
        circuit.is_draining = True
        circuit.answer_due = now + self.timing.drain_bound_s
        self.asked[circuit] = None
        self._actions.append(DrainCircuit(circuit.key))

    def answer_drain(self, now: float) -> None:
        """Give back what downstream asked for, once it is lent to nobody at *now* (seconds)."""
        if not self.returning:
            return
        if self.free() >= self.returning or (self.is_at_egress and self.is_late(now)):
            self.capacity -= self.returning
            self.set_returning(0, now)
            self._actions.append(ReturnCredit(self.egress))
            self.note_debt(now)

    # Telling

    def close_if_withdrawn(self, now: float) -> None:
        """Close the pool when all local subscribers have withdrawn for the linger at *now* (seconds)."""
        if self.state == OPEN and self.is_at_egress and self.withdrawn_at + self.timing.linger_s <= now:
            self.close()

    def close(self) -> None:
        """Close the pool, since the egress's subscribers have withdrawn, and pass it on."""
        self.enter(PoolEvent.WITHDRAWN)
        self.withdrawn_at = inf
        for circuit in self.circuits.values():
            self._actions.append(TellNeighborSubscribersWithdrew(circuit.key))

    def tell_weight(self) -> None:
        """Tell the next hop the weight when it is another: at once when all or nothing, else by a quarter."""
        if self.is_at_egress or self.state == UNREACHABLE:
            return
        weight = self.local.weight + self.unbacked.weight + bool(self.core or self.coming)
        for circuit in self.circuits.values():
            if circuit.neighbor != self.next_hop:
                weight += circuit.weight
        told = self.told_weight
        if weight != told and (not weight or not told or 4 * abs(weight - told) >= told):
            self.told_weight = weight
            self._actions.append(TellWeight(self.egress, weight))

    def next_deadline(self) -> float:
        """Tell the time at which something is due without an event, whether others are backlogged or not, seconds."""
        due = self._late_at
        for circuit in self.asked:
            if circuit.is_draining:
                due = min(due, circuit.answer_due)
        if self.is_at_egress:
            if self.state == OPEN:
                due = min(due, self.withdrawn_at + self.timing.linger_s)
            due = min(due, self.returning_since + self.timing.drain_bound_s)
        return min(due, self.debt_since + self.timing.debt_s)

    def check_invariants(self) -> None:
        """Check that counts are possible, and that a turn left a debt only with its time noted.

        Raises: AssertionError when not.
        """
        assert 0 <= self.returning <= self.capacity, "more is asked back than there is"
        assert self.local.out >= 0
        assert self.unbacked.out >= 0
        assert self.late == sum(message.is_late for message in self.coming.values())
        assert self.unbacked.weight == self.uncredited.client_count()
        assert self.state != UNREACHABLE or self.capacity == 0
        CreditPool.check_invariants(self)
