"""Questions to the management nodes of other routers, for the console: what is wrong there, and how much they do.

A question travels as any client's does, as a message to `_topo/0/<router>/$management`; the answers come to a local
address of this router. Some are asked each time, in turn, so that a large mesh costs no more than a small one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs
import trio

from router.core.addressing.address import MANAGEMENT, router_address
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.engine import message_codec
from router.management.schema import OWN_PREFIX, PREFIX
from router.runtime import Runtime

CONSOLE: Final = "$console"
"""Local address to which answers come."""
AT_ONCE: Final = 40
"""Maximum number of routers asked at one time."""
OLD_S: Final = 15.0
"""Time for which an answer is shown, seconds."""
PATIENCE_S: Final = 0.3
"""Maximum wait for answers, seconds; those that were waited for in vain the last time are not waited for."""
MOST_PROBLEMS: Final = 20
"""Maximum number of problems of one router."""
MOST_THINGS: Final = 5
"""Maximum number of words in one list of a problem."""
MOST_BYTES: Final = 65536
"""Maximum size of one answer, bytes: that of a router with about 1,200 neighbors."""
MOST_VALUES: Final = 10_000
"""Maximum number of values in one answer, six of which tell of a neighbor."""
ROOM_BYTES: Final = 16_384
"""Size of the answers of one router that is read, beside the two largest of all, bytes: what takes much time to read
must not take that of others."""
MOST_CHARS: Final = 500
PROBLEMS: Final = "problem"
ROUTER: Final = "router"
PROBLEM_TEXTS: Final = ("kind", "subject", "sentence", "command")
PROBLEM_NUMBERS: Final = ("since", "last", "closeness")
PROBLEM_THINGS: Final = ("about", "explains")
"""Attributes of a problem that are lists of words."""
TRAFFIC: Final = "neighborTraffic"
FIGURES: Final = {
    "connectionCount": "connections",
    "waitingCount": "waiting",
    "deliveriesIngress": "in",
    "deliveriesEgress": "out",
    "deliveriesTransit": "transit",
}
"""Attributes of a router, and what the console calls them."""
QUESTIONS: Final[Mapping[str, tuple[float, tuple[str, ...]]]] = {
    PROBLEMS: (0.4, (*PROBLEM_TEXTS, *PROBLEM_NUMBERS, *PROBLEM_THINGS)),
    ROUTER: (0.9, (*FIGURES, TRAFFIC)),
}
"""Pause between two questions to one router, seconds, and attributes that are asked for, by kind of entity."""


@attrs.frozen
class ToldTraffic:
    """Totals that a router has told of its neighbors."""

    at: float
    """Time of it, seconds since 1970."""
    by_neighbor: Mapping[str, Sequence[int]]
    """Messages received and sent, bytes received and sent, by neighbor."""


@attrs.define
class RouterAnswers:
    """Answers of one router, and when they came, seconds, monotonic."""

    asked_at: dict[str, float] = attrs.field(factory=dict)
    """Time at which a router was last asked, by kind of entity, seconds, monotonic."""
    answered_at: float = -1e9
    silent: set[str] = attrs.field(factory=set)
    """Kinds of entities of which the last answer was waited for in vain."""
    problems: list[dict[str, object]] = attrs.field(factory=list)
    figures: dict[str, object] = attrs.field(factory=dict)
    traffic: ToldTraffic | None = None

    def due(self, now: float) -> list[str]:
        """The kinds of entities of which it is to be asked, at *now*, seconds."""
        return [kind for kind, (pause_s, _) in QUESTIONS.items() if now - self.asked_at.get(kind, -1e9) > pause_s]


class MeshStatusPoller:
    """Asks the routers that can be reached, and keeps their last answers.

    Args:
        runtime: of this router.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._answers: dict[RouterId, RouterAnswers] = {}
        self._token = secrets.token_hex(8)
        """Random part of the correlation ids of requests: only routers that were asked can know it."""
        self._room = 0
        """Number of bytes of answers that are still read: a router that floods this address must not take the time
        of others."""
        self._awaited: set[tuple[RouterId, str]] = set()
        """Routers and kinds of which answers are waited for."""
        self._are_here = trio.Event()
        """Event that is set once no answers are awaited."""

    async def gather(self) -> None:
        """Ask the routers that were asked longest ago, and wait a little for the answers; the first time for all."""
        with trio.move_on_after(PATIENCE_S) as patience:
            while self.ask():
                await self._are_here.wait()
                if all(each.asked_at for each in self._answers.values()):
                    break
        if patience.cancelled_caught:
            for router, kind in self._awaited:
                if router in self._answers:
                    self._answers[router].silent.add(kind)

    def ask(self) -> bool:
        """Ask the routers that were asked longest ago. Returns: whether there were any."""
        runtime = self._runtime
        runtime.fib.serve(CONSOLE, self._take, MOST_BYTES)  # each time: there may have been another console meanwhile
        now = runtime.clock()
        reachable = runtime.fib.routes
        self._answers = {router: self._answers.get(router) or RouterAnswers() for router in sorted(reachable)}
        due = sorted(
            (max(each.asked_at.values(), default=-1e9), router)
            for router, each in self._answers.items()
            if each.due(now)
        )[:AT_ONCE]
        self._awaited.clear()
        self._are_here = trio.Event()
        if not due:
            return False
        self._room = 2 * MOST_BYTES + ROOM_BYTES * len(due)
        runtime.begin(now)
        for _, router in due:
            answers = self._answers[router]
            for kind in answers.due(now):
                answers.asked_at[kind] = now
                if kind not in answers.silent:
                    self._awaited.add((router, kind))
                runtime.data_plane.publish(router_address(router, MANAGEMENT), self._question(router, kind))
        runtime.settle()
        self._look_whether_all_are_here()
        return True

    def _question(self, router: RouterId, kind: str) -> bytes:
        return message_codec.encode_message(
            message_codec.Message(
                to=router_address(router, MANAGEMENT),
                reply_to=router_address(self._runtime.me, CONSOLE),
                correlation_id=f"{kind} {router} {self._token}",
                application_properties={
                    "operation": "QUERY",
                    "type": f"{PREFIX}management",
                    "name": "self",
                    "entityType": f"{OWN_PREFIX if kind == PROBLEMS else PREFIX}{kind}",
                    "count": message_codec.int32(MOST_PROBLEMS),
                    "offset": message_codec.int32(0),
                },
                body={"attributeNames": list(QUESTIONS[kind][1])},
            )
        )

    def _take(self, data: bytes, _: ConnectionId | None) -> bool:
        """Take an answer; whatever else comes here is ignored."""
        if self._token.encode() not in data or len(data) > self._room:
            return True
        self._room -= len(data)
        try:
            message = message_codec.decode_message(data, max_values=MOST_VALUES)
        except message_codec.UnreadableMessage:
            return True
        kind, router, token = (*str(message.correlation_id).split(" ", 2), "", "")[:3]
        known = self._answers.get(RouterId(router))
        if known is None or token != self._token or not isinstance(message.body, Mapping):
            return True
        self._awaited.discard((RouterId(router), kind))
        names, results = message.body.get("attributeNames"), message.body.get("results")
        if isinstance(names, list) and isinstance(results, list):
            rows = [dict(zip(map(str, names), row, strict=False)) for row in results if isinstance(row, list)]
            self._keep(known, kind, rows)
        self._look_whether_all_are_here()
        return True

    def _keep(self, known: RouterAnswers, kind: str, rows: list[dict[str, object]]) -> None:
        known.answered_at = self._runtime.clock()
        known.silent.discard(kind)
        if kind == PROBLEMS:
            known.problems = [_problem(row) for row in rows[:MOST_PROBLEMS]]
        elif kind == ROUTER and rows:
            known.figures = {ours: _number(rows[0].get(theirs)) for theirs, ours in FIGURES.items()}
            known.figures["told_at"] = time.time()
            known.traffic = ToldTraffic(time.time(), _traffic(rows[0].get(TRAFFIC)))

    def _look_whether_all_are_here(self) -> None:
        if not self._awaited:
            self._are_here.set()

    def problems(self) -> Iterator[tuple[RouterId, Mapping[str, object]]]:
        """Routers, each with a problem that it has told of."""
        now = self._runtime.clock()
        for router, answers in self._answers.items():
            if now - answers.answered_at < OLD_S:
                yield from ((router, problem) for problem in answers.problems)

    def figures(self, router: str) -> Mapping[str, object]:
        """Totals of another router; none of this one, and of one that has not answered lately."""
        answers = self._recent(router)
        return answers.figures if answers is not None else {}

    def traffic(self, router: str) -> ToldTraffic | None:
        """The traffic of another router with its neighbors; None where it has not told of it lately."""
        answers = self._recent(router)
        return answers.traffic if answers is not None else None

    def _recent(self, router: str) -> RouterAnswers | None:
        answers = self._answers.get(RouterId(router))
        return answers if answers is not None and self._runtime.clock() - answers.answered_at < OLD_S else None


def _problem(row: Mapping[str, object]) -> dict[str, object]:
    found: dict[str, object] = {name: str(row.get(name) or "")[:MOST_CHARS] for name in PROBLEM_TEXTS}
    found |= {name: _number(row.get(name)) for name in PROBLEM_NUMBERS}
    if found["closeness"] is None:
        found["closeness"] = 1
    for name in PROBLEM_THINGS:
        told = row.get(name)
        found[name] = [str(each)[:MOST_CHARS] for each in told[:MOST_THINGS]] if isinstance(told, list) else []
    return found


def _traffic(told: object) -> dict[str, list[int]]:
    """Totals by neighbor, as far as they are some."""
    if not isinstance(told, Mapping):
        return {}
    return {
        str(neighbor): [int(each) for each in totals]
        for neighbor, totals in told.items()
        if isinstance(totals, list) and len(totals) == 4 and all(isinstance(each, int) for each in totals)
    }


def _number(value: object) -> int | None:
    """A whole number that another router sent; None of anything else."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None
