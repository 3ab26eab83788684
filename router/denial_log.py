"""Log of what policy denies: the first of a kind at once, then once a minute how many more there were.

A client that is denied something asks again and again, and what it asks for is its own choice: so lines go by virtual
host, user and kind, and not by attempt.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import attrs

from router.core.ids_and_conditions import ConnectionId
from router.core.policy.denial import Denied

Asker = Callable[[], tuple[ConnectionId, str] | None]

SUMMARY_S: Final = 60.0
"""Time between two lines about denials of a kind, seconds."""
MOST_KINDS: Final = 1000
"""Maximum number of combinations of kind, virtual host and user that are told apart; the rest share a line for each
kind."""


@attrs.define(eq=False)
class _Denials:
    """Denials of one kind that no line has told of."""

    due: float
    """Time of the next line, seconds."""
    more: int = 0
    last: str = ""
    reason: str = ""


class DenialLog:
    """Lines about denials."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._kinds: dict[tuple[str, str, str], _Denials] = {}
        self.due = math.inf
        """Time at which `report` has something to do, seconds."""

    def note(self, denied: Denied, vhost: str, user: str, what: str, now: float, asker: Asker) -> None:
        """Take note of a denial.

        Args:
            denied: it.
            vhost: virtual host; empty where there is none.
            user: who asked.
            what: the client asked for, such as an address.
            now: seconds, monotonic.
            asker: called for the connection of who asked, and its remote host; None where several may have.
        """
        key = (denied.kind.value, vhost, user)
        if key not in self._kinds and len(self._kinds) >= MOST_KINDS:
            key = (denied.kind.value, "", "others")
        known = self._kinds.get(key)
        if known is None:
            self._kinds[key] = _Denials(due=now + SUMMARY_S)
            self.due = min(self.due, now + SUMMARY_S)
            connection, host = asker() or ("", "")
            self._log.warning(
                "policy_denied",
                connection=connection,
                host=host,
                what=denied.kind.value,
                vhost=vhost,
                user=user,
                asked=what,
                condition=str(denied.condition),
                reason=str(denied),
            )
            return
        known.more += 1
        known.last, known.reason = what, str(denied)

    def report(self, now: float) -> None:
        """Tell of those that there were meanwhile, and forget the kinds of which there were none.

        Args:
            now: seconds, monotonic.
        """
        for key, known in list(self._kinds.items()):
            if known.due > now:
                continue
            if not known.more:
                del self._kinds[key]
                continue
            names = dict(zip(("what", "vhost", "user"), key, strict=True))
            self._log.warning("policy_denied", **names, asked=known.last, more=known.more, reason=known.reason)
            known.due, known.more = now + SUMMARY_S, 0
        self.due = min((known.due for known in self._kinds.values()), default=math.inf)
