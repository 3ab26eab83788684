"""Router ids that two routers have: each overrules what the other says in its name, without end."""

from __future__ import annotations

import math
from typing import Final

import attrs

from router.core.events import Report
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender

MANY: Final = 4
"""Times in a row that an id is spoken for by another one, from which on it is taken for one of two routers."""
PAUSE_S: Final = 5.0
"""After which the next time is the first again, seconds."""
LEAST_START: Final = 1000
"""Between the boot numbers of two starts, microseconds; a router that overrules another one adds less to its own."""
MOST_IDS: Final = 64
"""Counted at a time; more are not told of."""


@attrs.define
class _Repeats:
    count: int = 0
    at: float = -math.inf
    """Time of the last one, seconds."""


class DuplicateIds:
    """Reports of what is said in the name of routers, and of ids that two have; what goes on is told of once."""

    def __init__(self, sender: ControlMessageSender) -> None:
        self._sender = sender
        self._repeats: dict[RouterId, _Repeats] = {}
        self._older: set[RouterId] = set()

    def report_older(self, router: RouterId, instance: int) -> None:
        """Report, once, that somebody says an older boot number of *router*, long after the newer one was heard."""
        if router not in self._older:
            self._older.add(router)
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
        repeats = self._repeats.get(self._sender.router_id)
        if repeats is None or repeats.count < MANY:
            self._sender.do(Report.warning("boot_number_raised", instance=instance))

    def report_restarted(self, router: RouterId, before: int | None, instance: int, now: float) -> None:
        """Report that *router* has started anew, or has overruled somebody.

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
            router for router, each in self._repeats.items() if each.count >= MANY and now - each.at <= within_s
        )

    def _is_told(self, router: RouterId, instance: int, now: float) -> bool:
        """Whether it is known, by now, that two routers have the id *router*."""
        if router not in self._repeats and len(self._repeats) >= MOST_IDS:
            self._repeats = {each: one for each, one in self._repeats.items() if now - one.at <= PAUSE_S}
            if len(self._repeats) >= MOST_IDS:
                return False
        repeats = self._repeats.setdefault(router, _Repeats())
        repeats.count = repeats.count + 1 if now - repeats.at <= PAUSE_S else 1
        repeats.at = now
        if repeats.count == MANY:
            self._report(router, instance)
        return repeats.count >= MANY

    def _report(self, router: RouterId, instance: int) -> None:
        self._sender.do(Report.warning("duplicate_router_id", id=router, instance=instance))
