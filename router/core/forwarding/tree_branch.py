"""Branch of a multicast tree: the circuit to a child, and for how long it holds up the others until it counts no more.

A neighbor excludes its own slow subscribers after the grace, and grants again. One whose branch had no credit for much
longer, while publishers waited, and that took next to nothing in that time, does not do so: its branch is excluded as a
slow subscriber is, until it grants. Who is nearer to the ingress router waits for longer, so that of a chain of routers
the one next to the fault acts, and no other.

Times are seconds, monotonic. Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

from math import inf

from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.ids_and_conditions import RouterId

GRACES = 4
"""Number of times the grace, besides `EXTRA_S`, for which a branch may hold up the others: longer than any honest
neighbor, also one whose subscribers are few, slow, and shared with the trees of other routers."""
EXTRA_S = 1.0
HOP_S = 0.25
"""Time for which a branch may hold up the others beyond that for each router that is reached by it, seconds: there are
more of them at each hop upstream. More than the time in which an exclusion farther away shows here."""
MOST_ROUTERS = 20
"""Maximum number of routers that are counted for `HOP_S`: neighbors tell how many there are."""
MOST_TAKEN = 1
"""Maximum number of messages that a branch takes while it holds up the others: one that took more has not done so all
that time."""


class TreeBranch:
    """Branch to a child, which a copy of each message goes to.

    It outlives its circuit, and the neighbor's being a child, as far as it is of note what it has held up.

    Args:
        neighbor: the child.
        patience: the settings of this router; its neighbor's are taken to be alike.
    """

    __slots__ = (
        "_is_holding",
        "_noted_at",
        "_patience",
        "credit",
        "excluded_at",
        "held_s",
        "is_closed",
        "is_draining",
        "missed",
        "neighbor",
        "pause_s",
        "readmitted_at",
        "routers",
        "taken",
        "told_weight",
    )

    def __init__(self, neighbor: RouterId, patience: ExclusionTiming) -> None:
        self.neighbor = neighbor
        self._patience = patience
        self.lose_circuit()
        self.routers = 1
        """Number of routers reached by this branch, its neighbor included."""
        self.held_s = 0.0
        """Time for which it held up the others since it last took enough."""
        self.taken = 0
        """Messages that it took in that time."""
        self.missed = 0
        """Number of copies that went past the branch."""
        self.excluded_at = inf
        """Time since which it is excluded, seconds; `inf` when it counts."""
        self.readmitted_at = -inf
        self.pause_s = 0.0
        """Minimum length of the exclusion, seconds: 0 for the first time, since the fault may be none of the
        branch's."""
        self._is_holding = False
        self._noted_at = 0.0

    def lose_circuit(self) -> None:
        """Forget what its circuit had. What it holds up is remembered."""
        self.credit = 0
        """Credit that is unspent, messages."""
        self.is_draining = False
        """Whether the branch asks for its credit back."""
        self.is_closed = False
        """Whether nobody below the branch is live."""
        self.told_weight = 0
        """Number of busy publishers upstream, as the branch was told."""

    @property
    def is_counting(self) -> bool:
        """Whether its credit decides what may come."""
        return not self.is_closed and not self.is_excluded

    @property
    def is_excluded(self) -> bool:
        """Whether it does not count, since it held up the others for too long."""
        return self.excluded_at < inf

    @property
    def is_of_note(self) -> bool:
        """Whether anything is to be remembered of it when it is a child no more, and may come back."""
        return self.held_s > 0.0 or self._is_holding or self.is_excluded or self.pause_s > 0.0

    @property
    def limit_s(self) -> float:
        """Time for which it may hold up the others, seconds."""
        return GRACES * self._patience.grace_s + EXTRA_S + HOP_S * min(self.routers, MOST_ROUTERS)

    def note(self, now: float, *, is_holding: bool) -> None:
        """Count the time up to *now*, and tell whether it holds up the others from now on.

        What it held up is forgotten when it has taken enough since; and when it has taken one message, and since then
        there was none to wait for it for as long as it may hold up the others.
        """
        if self._is_holding:
            self.held_s += now - self._noted_at
        has_rested = not self._is_holding and self.taken > 0 and self._noted_at + self.limit_s < now
        if self.taken > MOST_TAKEN or has_rested:
            self.held_s, self.taken = 0.0, 0
        self._is_holding, self._noted_at = is_holding, now

    @property
    def due(self) -> float:
        """Time at which it will have held up the others for too long, seconds; `inf` while it does not."""
        return self._noted_at + self.limit_s - self.held_s if self._is_holding else inf

    def exclude(self, now: float) -> bool:
        """Let it count no more from *now* (seconds) on; for longer each time, if it was excluded a short time ago.

        Returns: whether it was not.
        """
        patience = self._patience
        is_first = self.readmitted_at + self.limit_s + patience.longest_pause_s < now
        self.pause_s = 0.0 if is_first else patience.longer_pause_s(self.pause_s)
        self.excluded_at = now
        self._is_holding = False
        return is_first

    def readmit(self, now: float, *, has_granted: bool) -> None:
        """Let it count again.

        Args:
            now: seconds.
            has_granted: it is given the whole time anew. Else it counts since it holds up nobody now, and what it held
                up before is remembered for when it does again.
        """
        self.excluded_at = inf
        self.readmitted_at = now
        if has_granted:
            self.held_s, self.taken = 0.0, 0

    @property
    def returns_at(self) -> float:
        """Time from which it may count again, seconds; `inf` when it counts or has not granted."""
        return self.excluded_at + self.pause_s if self.credit > 0 and not self.is_draining else inf
