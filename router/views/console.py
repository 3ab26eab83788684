"""State of the mesh and of one router for the console: one JSON page, made in steps between events.

The mesh is what this router knows of it: its link state, and its memory of what is absent. What is wrong at other
routers, and how much they do, they are asked for (`mesh_status_poller`), as long as somebody looks. Addresses and
connections are its own; of very many, those that matter most. Rates are worked out in the browser from totals.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from heapq import nlargest
from typing import Final, TypeVar

from mesh_config.models import ListenerSettings, Mechanism, Role, TlsMode
from router import __version__
from router.core.forwarding.fib import AddressEntry
from router.core.terminal_escaping import shell_word
from router.engine.connection import Connection
from router.management.merged_problems import ProblemNearestCause, merged
from router.management.problem_kinds import NOTICES
from router.management.snapshot import LazyRows, MeshLinkRow, NodeRow, ProblemRow
from router.net.listener import Listener
from router.runtime import Runtime
from router.views.credit import credit_row, may_be_blocked
from router.views.link_address_rows import address_row, passed
from router.views.mesh_status_poller import MeshStatusPoller, ToldTraffic
from router.views.neighbor_traffic_totals import neighbor_traffic
from router.views.runtime import RuntimeView

MOST_ROWS: Final = 200
"""Maximum number of addresses, and of connections, on one page."""
MOST_ROUTERS: Final = 1000
MOST_LINKS: Final = 4000
TABLES_S: Final = 0.9
"""Time for which rows of addresses and connections, of which there are most, are given again, seconds."""
AT_ONCE: Final = 200
"""Number of things looked at in one step."""
ROWS_AT_ONCE: Final = 10
"""Number of rows made in one step."""
MOST_PROBLEMS: Final = 200
MOST_CHARS: Final = 200
"""Maximum length of a text that a peer chose."""

DEFAULT_URL: Final = "amqp://127.0.0.1:5672"
"""Address at which commands look for a router without `--url`."""
LOOPBACK_OF_ALL: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound
"""Address by which this machine reaches a listener that is bound to all addresses, by the listener's host."""

Thing = TypeVar("Thing")
Fields = dict[str, object]


class ConsoleSource:
    """Makes the console's page.

    Args:
        runtime: the router.
        view: its rows.
        questions: asks other routers.
        listeners: of the router; by one of them commands reach it.
    """

    def __init__(
        self, runtime: Runtime, view: RuntimeView, questions: MeshStatusPoller, listeners: Sequence[Listener] = ()
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._questions = questions
        self._listeners = listeners
        self._tables: list[str] = []
        """Addresses and connections, as the page has them."""
        self._tables_at = -math.inf
        """Time at which `_tables` was made, seconds, monotonic."""

    def page(self) -> Generator[None, None, bytes]:
        """Make the page, a piece with each step."""
        runtime = self._runtime
        expected = runtime.mesh_presence.expected
        counts = yield from runtime.fib.count_in_pieces(AT_ONCE)
        yield from self._view.prepare(ProblemRow)
        problems = self._problems()
        yield
        routers, links = self._routers(), self._links()
        parts: Fields = {
            "at": time.time(),
            "me": runtime.me,
            "mesh": expected.name if expected is not None else "",
            "version": __version__,
            "uptime": runtime.clock() - runtime.mesh_presence.started,
            "totals": {
                "routers": len(routers),
                "routers_here": 1 + len(runtime.fib.routes),
                "links": len(links),
                "problems": len(problems),
                "notices": sum(each.row["kind"] in NOTICES for each in problems),
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
        suffix = url_suffix(self._listeners)
        parts["problems"] = [_shown_problem(each, suffix) for each in problems[:MOST_PROBLEMS]]
        yield
        parts["routers"] = yield from _made(routers.page(0, MOST_ROUTERS), self._router)
        parts["links"] = yield from _made(links.page(0, MOST_LINKS), self._link())
        if runtime.clock() - self._tables_at >= TABLES_S:
            self._tables_at = runtime.clock()
            tables: Fields = {"tables_at": time.time()}
            tables["addresses"] = yield from self._addresses()
            tables["connections"] = yield from self._connections()
            self._tables = yield from _written(tables)
        pieces = yield from _written(parts)
        return f"{{{','.join((*pieces, *self._tables))}}}".encode()

    # The mesh

    def _problems(self) -> list[ProblemNearestCause]:
        """Problems here and elsewhere, those that several routers see alike, once."""
        own = ((self._runtime.me, _problem(row)) for row in self._view.rows(ProblemRow))
        return merged((*own, *self._questions.problems()))

    def _routers(self) -> LazyRows:
        """This router and all others; where not all have room on the page, those first that can't be reached."""
        rows, routes = self._view.rows(NodeRow), self._runtime.fib.routes
        return rows.begun_with(lambda numbered: numbered[1] not in routes) if len(rows) > MOST_ROUTERS else rows

    def _links(self) -> LazyRows:
        """All links; where not all have room on the page, those first that are absent."""
        rows, known = self._view.rows(MeshLinkRow), self._runtime.mesh_presence.links
        return rows.begun_with(lambda pair: not known[pair].is_present) if len(rows) > MOST_LINKS else rows

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
        own = ToldTraffic(time.time(), neighbor_traffic(self._runtime))

        def traffic(one: str, other: str) -> Fields:
            """Totals of a link as an end of it tells them: this router, if it is one."""
            for end, far in sorted(((one, other), (other, one)), key=lambda ends: ends[0] != me):
                told = own if end == me else self._questions.traffic(end)
                totals = told.by_neighbor.get(far) if told is not None else None
                if told is None or totals is None:
                    continue
                back, there, bytes_back, bytes_there = totals
                if end != one:
                    there, back, bytes_there, bytes_back = back, there, bytes_back, bytes_there
                return {
                    "told_at": told.at,
                    "there": there,
                    "back": back,
                    "bytes_there": bytes_there,
                    "bytes_back": bytes_back,
                }
            return {}

        def make(row: MeshLinkRow) -> Fields:
            return {
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
                **traffic(row.one, row.other),
            }

        return make

    # This router

    def _addresses(self) -> Generator[None, None, list[Fields]]:
        def weight(entry: AddressEntry) -> tuple[int, int, int]:
            return may_be_blocked(entry) and entry.is_open, len(entry.waiting), entry.ingress + entry.egress

        chosen = yield from _largest(list(self._runtime.fib.entries()), weight)
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
        port, peer = connection.port, connection.peer
        messages = passed(connection, self._runtime.data_plane)
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


def with_url(command: str, suffix: str) -> str:
    """A *command* with the options by which it reaches this router; others, such as openssl, ask no router."""
    return command + suffix if command.startswith("amqp-mesh ") else command


def url_suffix(listeners: Iterable[Listener]) -> str:
    """Option by which commands on this machine reach the router; empty where they do without, or can't.

    Of the listeners for clients one is taken that needs least: that of no virtual host, without TLS, and for everybody.
    """
    found = [each for each in listeners if each.settings.role is Role.NORMAL]
    if not found:
        return ""

    def needs(listener: Listener) -> tuple[bool, ...]:
        settings = listener.settings
        is_for_all = not settings.sasl or Mechanism.ANONYMOUS in settings.sasl
        return settings.vhost is not None or settings.vhost_prefix, _has_tls_alone(settings), not is_for_all

    chosen = min(found, key=needs)
    host = LOOPBACK_OF_ALL.get(chosen.host, chosen.host)
    scheme = "amqps" if _has_tls_alone(chosen.settings) else "amqp"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{chosen.port}"
    return "" if url == DEFAULT_URL else f" --url {shell_word(url)}"


def _has_tls_alone(settings: ListenerSettings) -> bool:
    return settings.tls is not None and settings.tls_mode is not TlsMode.OPTIONAL


def _written(parts: Fields) -> Generator[None, None, list[str]]:
    """Members of a JSON object, one in each step."""
    pieces = []
    for key, value in parts.items():
        pieces.append(f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}")
        yield
    return pieces


def _shown_problem(problem: ProblemNearestCause, suffix: str) -> Fields:
    return {
        **problem.row,
        "command": with_url(problem.command, suffix),
        "router": problem.seen_by[0],
        "also": problem.also_at,
        "at": [router for beside in problem.beside for router in beside.seen_by],
        "beside": list(problem.told_beside()),
    }


def _problem(row: object) -> Fields:
    assert isinstance(row, ProblemRow)
    return {
        "kind": row.kind,
        "subject": row.subject,
        "sentence": row.sentence,
        "since": row.since,
        "command": row.command,
        "last": row.last,
        "closeness": row.closeness,
        "about": row.about,
        "explains": row.explains,
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
    """Find the items with the most weight, heaviest first; each step examines some of them."""
    best: list[Thing] = []
    for begin in range(0, len(things), AT_ONCE):
        best = nlargest(MOST_ROWS, [*best, *things[begin : begin + AT_ONCE]], key=weight)
        yield
    return best
