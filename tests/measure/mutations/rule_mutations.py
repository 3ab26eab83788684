"""Mutations of the credit rule: each is one thing that the machines would do wrong, as a change of their source.

Source: docs/explanation/credit.md, of which each breaks a sentence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

FORWARDING: Final = Path("router", "core", "forwarding")


@attrs.frozen
class Mutation:
    """One change of a module.

    Args:
        name: what is wrong then, in words.
        module: name of a module of `router.core.forwarding`.
        old: text that stands there once.
        new: text that stands there instead.
    """

    name: str
    module: str
    old: str
    new: str

    @property
    def path(self) -> Path:
        """The module below the folder that has the packages."""
        return FORWARDING / f"{self.module}.py"

    def apply(self, root: Path) -> None:
        """Change the module below *root*.

        Raises:
            ValueError: the old text doesn't stand there once.
        """
        path = root / self.path
        path.write_text(self.applied(path.read_text(encoding="utf-8")), encoding="utf-8")

    def applied(self, source: str) -> str:
        """Change the text of the module.

        Raises:
            ValueError: the old text doesn't stand there once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"{self.path}: {self.old!r} stands there {source.count(self.old)} times: {self.name}")
        return source.replace(self.old, self.new)


MUTATIONS: Final = (
    # Pools: what is dealt is backed
    Mutation(
        "credit that circuits hold is dealt a second time",
        "pool_toward_egress",
        "dealt = self.local.out + self.unbacked.out + self.out\n",
        "dealt = self.local.out + self.unbacked.out\n",
    ),
    Mutation(
        "credit that local publishers were allotted is dealt a second time",
        "pool_toward_egress",
        "dealt = self.local.out + self.unbacked.out + self.out\n",
        "dealt = self.unbacked.out + self.out\n",
    ),
    Mutation(
        "credit of a circuit that is gone is lost",
        "pool_toward_egress",
        "        self.out -= circuit.out\n",
        "",
    ),
    Mutation(
        "a message on a circuit uses none of its credit",
        "pool_toward_egress",
        "            self.take_from(circuit, 1)\n",
        "            pass\n",
    ),
    # Pools: what is needed comes back
    Mutation(
        "idle circuits are not drained for those who wait",
        "pool_toward_egress",
        "return self.ask_unused([c for c in self.circuits.values() if c.out > 0], self.timing.idle_s, now)",
        "return inf",
    ),
    Mutation(
        "a drain that crosses the last use of the credit is waited for",
        "credit_pool",
        "            claimant.is_draining = False\n",
        "            pass\n",
    ),
    Mutation(
        "a subscriber's drain is answered while its credit is lent",
        "pool_toward_egress",
        "if self.free() >= self.returning or (self.is_at_egress and self.is_late(now)):",
        "if True:",
    ),
    Mutation(
        "a subscriber's drain is answered by the bound alone",
        "pool_toward_egress",
        "if self.free() >= self.returning or (self.is_at_egress and self.is_late(now)):",
        "if self.is_at_egress and self.is_late(now):",
    ),
    Mutation(
        "local publishers keep what they were allotted and do not use",
        "pool_toward_egress",
        "        self.local.out -= credit\n        return credit\n",
        "        return 0\n",
    ),
    Mutation(
        "credit that is not backed any more is not taken back",
        "credit_pool_scheduler",
        "        elif free < 0 and pool.debt_since + self._timing.debt_s <= now:\n            lacking = -free\n",
        "",
    ),
    # Pools: whoever waits is known upstream
    Mutation(
        "the weight leaves out publishers behind circuits",
        "pool_toward_egress",
        "                weight += circuit.weight\n",
        "                pass\n",
    ),
    # Publishers
    Mutation(
        "credit taken back from a publisher is lent again at once",
        "publisher_credit",
        "LoweredCredit(publisher, credit, now + self._timing.quarantine_s)",
        "LoweredCredit(publisher, credit, now)",
    ),
    Mutation(
        "messages that wait are not counted as lent",
        "publisher_credit",
        "        standing = publisher.standing()\n",
        "        standing = publisher.held + publisher.lowered\n",
    ),
    Mutation(
        "a message that finds no credit is not met by one",
        "publisher_credit",
        "            self._actions.append(Grant(key, 1))\n",
        "            pass\n",
    ),
    Mutation(
        "messages whose publishers have left count as nobody's",
        "publisher_credit",
        "        self.departed += change\n        self.demand += self.departed > 0\n",
        "        self.departed += change\n",
    ),
    Mutation(
        "more is lent than is backed",
        "publisher_credit",
        "self._grant(publisher, min(missing, allotted - self.backed), allotted, now)",
        "self._grant(publisher, missing, allotted, now)",
    ),
    Mutation(
        "a publisher that has used its credit asks for no turn",
        "credit_pool_scheduler",
        "        if self._unlent < publisher.goal - publisher.held:\n            self.is_due = True\n        elif",
        "        if",
    ),
    Mutation(
        "idle publishers keep their credit while others wait",
        "credit_pool_scheduler",
        "            due = min(due, self.publishers.lower_idle(now))\n",
        "            pass\n",
    ),
    # Multicast trees
    Mutation(
        "a tree has the credit of its best branch, not of its worst",
        "multicast_tree",
        "capacity = min(capacity, branch.credit)",
        "capacity = min(capacity, max([each.credit for each in self._live]))",
    ),
    Mutation(
        "a branch below which nobody is live still decides",
        "tree_branch",
        "return not self.is_closed and not self.is_excluded",
        "return not self.is_excluded",
    ),
    Mutation(
        "a tree without live branches says nothing upstream",
        "multicast_tree",
        "            pool.close()\n",
        "            pass\n",
    ),
    # Local subscribers, and their credit among the trees
    Mutation(
        "a copy takes no credit of the shares of trees",
        "subscriber_credit_pool",
        "        self.take_from(part, 1)\n        self.capacity -= 1\n",
        "        self.capacity -= 1\n",
    ),
    Mutation(
        "every tree is dealt all that the subscribers can take",
        "subscriber_credit_pool",
        "return self.capacity - self.out\n",
        "return self.capacity - min((part.out for part in self.parts.values()), default=0)\n",
    ),
    Mutation(
        "the order in which trees are served is never changed",
        "subscriber_credit_pool",
        "        if self._quiet_since + patience_s > now:\n",
        "        if True:\n",
    ),
    Mutation(
        "trees keep what they do not use",
        "subscriber_credit_pool",
        "return self.ask_unused(holders, hold_s, now)",
        "return inf",
    ),
    Mutation(
        "a subscriber that stalls is never excluded",
        "multicast_subscribers",
        "            if subscriber.zero_since + self.patience.grace_s > now:\n                break\n",
        "            break\n",
    ),
    Mutation(
        "an excluded subscriber never counts again",
        "multicast_subscribers",
        "            self._readmit(subscriber, now)  # at once if it can hold up nobody\n",
        "            break\n",
    ),
)
