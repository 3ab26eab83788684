"""State of the mesh and of one router for the console: one JSON page, made in steps between events.

The mesh is what this router knows of it: its link state, and its memory of what is absent. What is wrong at other
routers, and how much they do, they are asked for (`mesh_questions`), as long as somebody looks. Addresses and
connections are its own; of very many, those that matter most. Rates are worked out in the browser from totals.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final, TypeVar

from router import __version__
from router.core.forwarding.fib import AddressEntry
from router.engine.connection import Connection
from router.management.problem_causes import by_urgency
from router.management.snapshot import SEEN_BY_ALL, MeshLinkRow, NodeRow, ProblemRow
from router.runtime import Runtime
from router.views.credit import credit_row, may_be_blocked
from router.views.link_address_rows import address_row, passed
from router.views.mesh_status_poller import MeshStatusPoller
from router.views.runtime import RuntimeView

MOST_ROWS: Final = 200
"""Addresses, and connections, of one page."""
MOST_ROUTERS: Final = 1000
MOST_LINKS: Final = 4000
AT_ONCE: Final = 200
"""Things looked at in one step,"""
ROWS_AT_ONCE: Final = 10
"""and rows made in one."""
MOST_PROBLEMS: Final = 200
MOST_CHARS: Final = 200
"""Of a text that a peer chose."""

Thing = TypeVar("Thing")
Fields = dict[str, object]


class ConsoleSource:
    """Makes the console's page.

    Args:
        runtime: the router.
        view: its rows.
        questions: asks other routers.
    """

    def __init__(self, runtime: Runtime, view: RuntimeView, questions: MeshStatusPoller) -> None:
        self._runtime = runtime
        self._view = view
        self._questions = questions

    def page(self) -> Generator[None, None, bytes]:
        """Make the page, a piece with each step."""
        runtime = self._runtime
        self._questions.ask()
        yield
        expected = runtime.watch.expected
        counts = yield from runtime.fib.count_in_pieces(AT_ONCE)
        yield from self._view.prepare(ProblemRow)
        problems = self._problems()
        yield
        parts: Fields = {
            "at": time.time(),
            "me": runtime.me,
            "mesh": expected.name if expected is not None else "",
            "version": __version__,
            "uptime": runtime.clock() - runtime.watch.started,
            "totals": {
                "addresses": runtime.fib.entry_count(),
                "connections": len(runtime.connections),
                "waiting": runtime.data_plane.waiting.count,
                "held_bytes": runtime.account.total,
                "mark_bytes": runtime.account.process_mark,
                "in": counts.ingress,
                "out": counts.egress,
                "transit": counts.transit,
            },
        }
        yield
        parts["problems"] = problems
        yield
        parts["routers"] = yield from _made(self._view.rows(NodeRow).page(0, MOST_ROUTERS), self._router)
        parts["links"] = yield from _made(self._view.rows(MeshLinkRow).page(0, MOST_LINKS), self._link())
        parts["addresses"] = yield from self._addresses()
        parts["connections"] = yield from self._connections()
        pieces = []
        for key, value in parts.items():
            pieces.append(f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}")
            yield
        return f"{{{','.join(pieces)}}}".encode()

    # The mesh

    def _problems(self) -> list[Fields]:
        """Problems here and elsewhere; those that several routers see alike, once, as the first tells it."""
        found: dict[tuple[object, ...], Fields] = {}
        for each in (*map(self._own_problem, self._view.rows(ProblemRow)), *self._questions.problems()):
            router = "" if each["kind"] in SEEN_BY_ALL else each["router"]
            found.setdefault((each["kind"], each["subject"], router), each)
        return [
            {**problem, "also": [each["router"] for each in also]}
            for problem, also in by_urgency(list(found.values()))[:MOST_PROBLEMS]
        ]

    def _own_problem(self, row: object) -> Fields:
        assert isinstance(row, ProblemRow)
        return {
            "router": self._runtime.me,
            "kind": row.kind,
            "subject": row.subject,
            "sentence": row.sentence,
            "since": row.since,
            "command": row.command,
            "causeElsewhere": row.cause_elsewhere,
        }

    def _router(self, row: NodeRow) -> Fields:
        return {
            "id": row.id,
            "here": row.is_reachable,
            "configured": row.is_configured,
            "since": row.since,
            "reason": row.reason,
            "flaps": row.flap_count,
            "recent": row.recent_flaps,
            "last_reason": row.last_flap_reason,
            "cost": row.cost,
            "hop": row.next_hop,
            "addresses": row.address_count,
            **self._questions.figures(row.id),
        }

    def _link(self) -> Callable[[MeshLinkRow], Fields]:
        me = self._runtime.me
        traffic = self._neighbor_traffic()

        def make(row: MeshLinkRow) -> Fields:
            found: Fields = {
                "one": row.one,
                "other": row.other,
                "state": row.state,
                "cost": row.cost,
                "configured_cost": row.configured_cost,
                "since": row.since,
                "reason": row.reason,
                "flaps": row.flap_count,
                "recent": row.recent_flaps,
                "last_reason": row.last_flap_reason,
            }
            if me in (row.one, row.other):
                found |= traffic.get(row.other if row.one == me else row.one, {})
            return found

        return make

    def _neighbor_traffic(self) -> Mapping[str, Fields]:
        """Totals of the links of this router, by neighbor."""
        runtime, data_plane = self._runtime, self._runtime.data_plane
        found: dict[str, dict[str, int]] = {}
        gone = runtime.traffic.neighbors
        for connection in runtime.connections.values():
            name = connection.port.neighbor
            if name is None:
                continue
            before = gone.get(name)
            totals = found.setdefault(
                name,
                {
                    "in": before.messages_in if before else 0,
                    "out": before.messages_out if before else 0,
                    "bytes_in": before.bytes_in if before else 0,
                    "bytes_out": before.bytes_out if before else 0,
                },
            )
            messages = passed(
                connection, data_plane.gone_ingress_of.get(connection.id), data_plane.gone_egress_of.get(connection.id)
            )
            totals["in"] += messages.received
            totals["out"] += messages.sent
            octets = runtime.octets[connection.id]()
            if octets is not None:
                totals["bytes_in"] += octets.received
                totals["bytes_out"] += octets.sent
        return {name: dict(totals) for name, totals in found.items()}

    # This router

    def _addresses(self) -> Generator[None, None, list[Fields]]:
        def weight(entry: AddressEntry) -> tuple[int, int, int]:
            return may_be_blocked(entry) and entry.is_open, len(entry.waiting), entry.ingress + entry.egress

        chosen = yield from _largest(self._runtime.fib.all_entries(), weight)
        now = self._runtime.clock()
        found = yield from _made(chosen, lambda entry: self._address(entry, now))
        return found

    def _address(self, entry: AddressEntry, now: float) -> Fields:
        row, credit = address_row(entry, now), credit_row(entry, now)
        return {
            "key": row.key[:MOST_CHARS],
            "treatment": row.distribution,
            "subscribers": row.subscriber_count,
            "publishers": row.publisher_count,
            "remotes": list(row.remote_host_routers)[:MOST_ROWS],
            "own": row.in_process,
            "granted": credit.granted,
            "held": credit.held_by_publishers,
            "blocked": credit.blocked_count if credit.has_subscriber else 0,
            "blocked_s": credit.blocked_seconds if credit.has_subscriber else 0,
            "waiting": row.waiting_count,
            "oldest_s": row.oldest_wait_seconds,
            "unsettled": row.tracked_deliveries,
            "in": row.deliveries_ingress,
            "out": row.deliveries_egress,
            "transit": row.deliveries_transit,
            "dropped": row.dropped_count,
        }

    def _connections(self) -> Generator[None, None, list[Fields]]:
        def weight(connection: Connection) -> tuple[bool, bool, int]:
            port = connection.port
            return port.is_over or port.is_stopped or port.is_laden, port.neighbor is not None, connection.moved_bytes

        chosen = yield from _largest(list(self._runtime.connections.values()), weight)
        known = self._runtime.connections
        return (yield from _made((each for each in chosen if each.id in known), self._connection))

    def _connection(self, connection: Connection) -> Fields:
        data_plane, port, peer = self._runtime.data_plane, connection.port, connection.peer
        messages = passed(
            connection, data_plane.gone_ingress_of.get(connection.id), data_plane.gone_egress_of.get(connection.id)
        )
        read = self._runtime.octets.get(connection.id)
        octets = read() if read is not None else None
        return {
            "id": str(connection.id),
            "container": (peer.container if peer is not None else "")[:MOST_CHARS],
            "host": connection.host,
            "neighbor": port.neighbor,
            "user": connection.user[:MOST_CHARS],
            "since": self._runtime.clock() - connection.since,
            "links": len(connection.links),
            "in": messages.received,
            "out": messages.sent,
            "bytes_in": octets.received if octets is not None else None,
            "bytes_out": octets.sent if octets is not None else None,
            "held_bytes": port.charge.total_bytes,
            "reading": "nothing" if port.is_stopped else "no messages" if port.is_over else "all",
            "sending": "nothing" if port.is_laden else "all",
        }


def _made(things: Iterable[object], make: Callable[..., Fields]) -> Generator[None, None, list[Fields]]:
    """The rows of *things*, some in each step."""
    found = []
    for number, thing in enumerate(things):
        found.append(make(thing))
        if number % ROWS_AT_ONCE == ROWS_AT_ONCE - 1:
            yield
    yield
    return found


def _largest(things: Sequence[Thing], weight: Callable[[Thing], tuple[int, ...]]) -> Generator[None, None, list[Thing]]:
    """Those with the most weight, heaviest first; some are looked at in each step."""
    best: list[Thing] = []
    for begin in range(0, len(things), AT_ONCE):
        best = nlargest(MOST_ROWS, [*best, *things[begin : begin + AT_ONCE]], key=weight)
        yield
    return best
