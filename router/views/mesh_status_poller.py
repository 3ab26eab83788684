"""Questions to the management nodes of other routers, for the console: what is wrong there, and how much they do.

A question travels as any client's does, as a message to `_topo/0/<router>/$management`; the answers come to a local
address of this router. Some are asked each time, in turn, so that a large mesh costs no more than a small one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from router.core.addressing.address import MANAGEMENT, router_address
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.engine import codec
from router.management.schema import OWN_PREFIX, PREFIX
from router.runtime import Runtime

CONSOLE: Final = "$console"
"""Local address to which answers come."""
AT_ONCE: Final = 40
"""Routers asked at one time."""
PAUSE_S: Final = 0.9
"""Between two questions to one router."""
OLD_S: Final = 15.0
"""An answer is shown for so long."""
MOST_PROBLEMS: Final = 20
"""Problems of one router."""
MOST_BYTES: Final = 65536
"""Of one answer."""
MOST_VALUES: Final = 2000
MOST_CHARS: Final = 500
PROBLEMS: Final = "problem"
PROBLEM: Final = ("kind", "subject", "sentence", "since", "command", "causeElsewhere")
FIGURES: Final = {
    "connectionCount": "connections",
    "waitingCount": "waiting",
    "deliveriesIngress": "in",
    "deliveriesEgress": "out",
    "deliveriesTransit": "transit",
}
"""Attributes of a router, and what the console calls them."""


@attrs.define
class RouterAnswers:
    """Answers of one router, and when they came, seconds, monotonic."""

    asked_at: float = -1e9
    answered_at: float = -1e9
    problems: list[dict[str, object]] = attrs.field(factory=list)
    figures: dict[str, object] = attrs.field(factory=dict)


class MeshStatusPoller:
    """Asks the routers that can be reached, and keeps their last answers.

    Args:
        runtime: of this router.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._answers: dict[RouterId, RouterAnswers] = {}
        self._token = secrets.token_hex(8)
        """Whoever answers knows it, and nobody else."""
        self._room = 0
        """Answers that are still read: whoever floods this address must not take the time of others."""

    def ask(self) -> None:
        """Ask those that were asked longest ago."""
        runtime = self._runtime
        runtime.fib.serve(CONSOLE, self._take, MOST_BYTES)  # each time: there may have been another console meanwhile
        now = runtime.clock()
        reachable = runtime.fib.routes
        self._answers = {router: self._answers.get(router) or RouterAnswers() for router in sorted(reachable)}
        due = sorted((each.asked_at, router) for router, each in self._answers.items() if now - each.asked_at > PAUSE_S)
        if not due:
            return
        self._room = 4 * min(AT_ONCE, len(due))
        runtime.begin(now)
        for _, router in due[:AT_ONCE]:
            self._answers[router].asked_at = now
            for kind, names in ((PROBLEMS, PROBLEM), ("router", tuple(FIGURES))):
                runtime.data_plane.publish(router_address(router, MANAGEMENT), self._question(router, kind, names))
        runtime.settle()

    def _question(self, router: RouterId, kind: str, names: tuple[str, ...]) -> bytes:
        return codec.encode_message(
            codec.Message(
                to=router_address(router, MANAGEMENT),
                reply_to=router_address(self._runtime.me, CONSOLE),
                correlation_id=f"{kind} {router} {self._token}",
                application_properties={
                    "operation": "QUERY",
                    "type": f"{PREFIX}management",
                    "name": "self",
                    "entityType": f"{OWN_PREFIX if kind == PROBLEMS else PREFIX}{kind}",
                    "count": codec.int32(MOST_PROBLEMS),
                    "offset": codec.int32(0),
                },
                body={"attributeNames": list(names)},
            )
        )

    def _take(self, data: bytes, _: ConnectionId | None) -> bool:
        """Take an answer; whatever else comes here is ignored."""
        if self._room <= 0:
            return True
        self._room -= 1
        try:
            message = codec.decode_message(data, max_values=MOST_VALUES)
        except codec.UnreadableMessage:
            return True
        kind, router, token = (*str(message.correlation_id).split(" ", 2), "", "")[:3]
        known = self._answers.get(RouterId(router))
        if known is None or token != self._token or not isinstance(message.body, Mapping):
            return True
        names, results = message.body.get("attributeNames"), message.body.get("results")
        if not isinstance(names, list) or not isinstance(results, list):
            return True
        rows = [dict(zip(map(str, names), row, strict=False)) for row in results if isinstance(row, list)]
        known.answered_at = self._runtime.clock()
        if kind == PROBLEMS:
            known.problems = [{name: _plain(row.get(name)) for name in PROBLEM} for row in rows[:MOST_PROBLEMS]]
        elif kind == "router" and rows:
            known.figures = {ours: _plain(rows[0].get(theirs)) for theirs, ours in FIGURES.items()}
        return True

    def problems(self) -> Iterator[dict[str, object]]:
        """Problems that other routers have told of."""
        now = self._runtime.clock()
        for router, answers in self._answers.items():
            if now - answers.answered_at < OLD_S:
                yield from ({"router": router, **problem} for problem in answers.problems)

    def figures(self, router: str) -> Mapping[str, object]:
        """Totals of another router; none of this one, and of one that has not answered of late."""
        answers = self._answers.get(RouterId(router))
        if answers is None or self._runtime.clock() - answers.answered_at >= OLD_S:
            return {}
        age_s = self._runtime.clock() - answers.answered_at
        return {**answers.figures, "told_at": time.time() - age_s}


def _plain(value: object) -> object:
    """A value that another router sent, as JSON can hold it."""
    if value is None or isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else str(value)[:MOST_CHARS]
