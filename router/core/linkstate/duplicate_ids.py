"""Router ids that two routers have: each overrules what the other says in its name, without end."""

from __future__ import annotations

import math
from typing import Final

import attrs

from router.core.events import Report
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender

MANY: Final = 4
"""Number of times in a row that an id is spoken for by another router from which on it is taken for one of two."""
PAUSE_S: Final = 5.0
"""Time without a repeat after which the next one counts as the first again, seconds."""
OLDER_PAUSE_S: Final = 600.0
"""Time without an older boot number after which the next one counts as the first again, seconds: a distant router tells
of it only each time that it advertises itself."""
LEAST_START: Final = 1000
"""Minimum difference of the boot numbers of two starts, microseconds; a router that overrules another one adds less to
its own."""
MOST_IDS: Final = 64
"""Maximum number of ids counted at a time; more are not told of."""


@attrs.define
class _Repeats:
    count: int = 0
    at: float = -math.inf
    """Time of the last one, seconds."""


class _RecentIds:
    """Counts of what ids had lately, for a few ids at a time: they may be made up."""

    def __init__(self, pause_s: float) -> None:
        """*pause_s*: time without anything, seconds, after which an id begins anew."""
        self._pause_s = pause_s
        self.repeats: dict[RouterId, _Repeats] = {}

    def count(self, router: RouterId, now: float) -> int:
        """Count once more for *router* at *now* (seconds). Returns: times in a row; 0 if too many ids are counted."""
        if router not in self.repeats and len(self.repeats) >= MOST_IDS:
            self.repeats = {each: one for each, one in self.repeats.items() if now - one.at <= self._pause_s}
            if len(self.repeats) >= MOST_IDS:
                return 0
        repeats = self.repeats.setdefault(router, _Repeats())
        repeats.count = repeats.count + 1 if now - repeats.at <= self._pause_s else 1
        repeats.at = now
        return repeats.count


class DuplicateIds:
    """Reports of what is said in the name of routers, and of ids that two have; what goes on is told of once."""

    def __init__(self, sender: ControlMessageSender) -> None:
        self._sender = sender
        self._raised = _RecentIds(PAUSE_S)
        self._older = _RecentIds(OLDER_PAUSE_S)

    def report_older(self, router: RouterId, instance: int, now: float) -> None:
        """Report that somebody says an older boot number of *router*, long after the newer one was heard.

        Args:
            router: another one.
            instance: the older number.
            now: seconds, monotonic.
        """
        if self._older.count(router, now) == 1:
            self._report(router, instance)

    def report_overruled(self, neighbor: RouterId, instance: int, ls_seq: int, now: float) -> None:
        """Report that this router overrules what *neighbor* passed on in its name.

        Args:
            neighbor: who passed it on.
            instance: boot number of what was said.
            ls_seq: sequence of its link state.
            now: seconds, monotonic.
        """
        if not self._is_told(self._sender.router_id, instance, now):
            self._sender.do(Report.warning("own_word_overruled", neighbor=neighbor, instance=instance, ls_seq=ls_seq))

    def report_raised(self, instance: int) -> None:
        """Report that this router took the boot number *instance* to overrule it."""
        repeats = self._raised.repeats.get(self._sender.router_id)
        if repeats is None or repeats.count < MANY:
            self._sender.do(Report.warning("boot_number_raised", instance=instance))

    def report_restarted(self, router: RouterId, before: int | None, instance: int, now: float) -> None:
        """Report that *router* has started anew, or has overruled a message in its name.

        Args:
            router: another one.
            before: its boot number until now; None when it had none.
            instance: the number of its new start.
            now: seconds, monotonic.
        """
        is_raise = before is not None and instance - before < LEAST_START
        if not (is_raise and self._is_told(router, instance, now)):
            self._sender.do(Report.info("router_restarted", remote=router, instance=instance))

    def lasting(self, within_s: float, now: float) -> list[RouterId]:
        """Ids that two distant routers have had within *within_s* seconds before *now* (seconds), sorted."""
        return sorted(
            router for router, each in self._raised.repeats.items() if each.count >= MANY and now - each.at <= within_s
        )

    def _is_told(self, router: RouterId, instance: int, now: float) -> bool:
        """Whether it is known, by now, that two routers have the id *router*."""
        count = self._raised.count(router, now)
        if count == MANY:
            self._report(router, instance)
        return count >= MANY

    def _report(self, router: RouterId, instance: int) -> None:
        self._sender.do(Report.warning("duplicate_router_id", id=router, instance=instance))
