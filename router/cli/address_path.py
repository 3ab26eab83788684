"""Paths of an address through the mesh: from a router, hop by hop, to each router with subscribers.

Each router on the way is asked for what it alone knows: its next hop, its credit for the next one, its subscribers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Final

import attrs

from mesh_config.findings import nearest
from router.cli.flooding_clients import FloodingClient, ask_flooding_clients
from router.cli.management import ManagementClient
from router.cli.management_errors import ForeignRouterError, ManagementError, RefusedError
from router.cli.stat_credit import ask_credit
from router.core.addressing.address import AddressKind, parse_address, with_vhost
from router.core.ids_and_conditions import RouterId

MOST_HOPS: Final = 64
"""Routers in a path at most: there is a loop while the mesh changes."""
MOST_VHOSTS: Final = 200
"""Virtual hosts that are asked for an address that is none outside them; one takes about a millisecond."""
MOST_COMPARED: Final = 5_000
"""Addresses among which the one most like a wrong one is looked for."""
DISTANCE_MESSAGES: Final = 0.1
"""Worth of a unit of cost, by default, in messages for each subscriber: docs/explanation/balanced.md."""

NODE: Final = ("id", "isReachable", "nextHop", "cost", "linkCosts", "reason")
CONNECTION: Final = ("container", "role", "isStandby", "deliveriesOut", "roundTripMicros")

Row = Mapping[str, Any]


@attrs.define
class RouterState:
    """State of one router, as far as it concerns the address."""

    id: str
    nodes: dict[str, Row] = attrs.field(factory=dict)
    """All routers, as this one knows them."""
    connections: dict[str, Row] = attrs.field(factory=dict)
    """Connections to neighbors, by neighbor."""
    credit: Row | None = None
    parties: Sequence[Row] = ()
    address: Row | None = None
    rates: dict[str, float] = attrs.field(factory=dict)
    """Messages a second toward each neighbor, of all addresses."""
    error: str | None = None
    """Reason why it can't be asked."""
    is_foreign: bool = False
    """Whether the router is none of amqp-mesh."""

    @property
    def subscribers(self) -> list[Row]:
        """Subscribers that are attached there."""
        return [row for row in self.parties if row["role"] == "subscriber"]


@attrs.frozen(kw_only=True)
class Hop:
    """One step of a path."""

    router: str
    to: str
    cost: int | None
    rate: float | None
    """Messages a second on the link, of all addresses."""
    round_trip_ms: float | None
    granted: int | None
    """Credit that the next router has granted for this address and egress; None where there is no circuit yet."""
    waiting: int
    oldest_s: int
    unsettled: int
    error: str | None = None


@attrs.frozen(kw_only=True)
class Path:
    """The way to one router with subscribers."""

    egress: str
    cost: int | None
    hops: Sequence[Hop]
    subscribers: Sequence[Row]
    """Parties of credit at the egress."""
    error: str | None
    """Reason why the path, or its end, isn't known."""
    is_foreign: bool = False
    """Whether the path leads to a router that is none of amqp-mesh, which can't be asked what is there, or behind
    it."""

    @property
    def wait(self) -> float:
        """Messages that one more would wait for at the egress, with what the distance is worth."""
        able = [row for row in self.subscribers if row["granted"]]
        held = sum(row["unsettledCount"] + row["waitingCount"] for row in self.subscribers)
        return (held // len(able) if able else float("inf")) + DISTANCE_MESSAGES * (self.cost or 0)


@attrs.frozen(kw_only=True)
class Trace:
    """All paths from one router."""

    address: str
    start: str
    treatment: str | None
    """None for an address that the router doesn't know."""
    publishers: Sequence[Row]
    paths: Sequence[Path]
    """The most likely first."""
    absent: Sequence[str]
    """Routers that the first one misses, and why."""
    vhost: str = ""
    """Virtual host whose clients mean another address by that name, where nobody subscribes to this one."""
    of_vhosts: Sequence[str] = ()
    """Addresses that clients of virtual hosts name so, where nobody subscribes to this one."""
    near: str | None = None
    """The address most like it that has subscribers, where nobody subscribes to this one under any name."""
    floods: Sequence[FloodingClient] = ()
    """Clients, anywhere, that send more to it than is taken."""


class PathFinder:
    """Asks routers for an address, each once."""

    def __init__(self, client: ManagementClient, attached: str, address: str) -> None:
        self._client = client
        self._attached = attached
        self._address = address
        self._states: dict[str, RouterState] = {}

    def trace(self, start: str, seconds: float) -> Trace:
        """Find the paths from a router, and look for *seconds* how much passes on them.

        Raises: ManagementError when the first router can't be asked.
        """
        first = self._state(start)
        if first.error is not None:
            raise ManagementError(first.error)
        row = first.address
        if row is None:
            of_vhosts = self._of_vhosts(start)
            return Trace(
                address=self._address,
                start=start,
                treatment=None,
                publishers=(),
                paths=(),
                absent=_absent(first),
                vhost=self._other_vhost(),
                of_vhosts=of_vhosts,
                near=None if of_vhosts else self._near(start),
            )
        egresses = [start] if row["subscriberCount"] or row["inProcess"] else []
        egresses += [each for each in row["remoteHostRouters"] if each != start]
        ways = {egress: self._way(start, egress) for egress in egresses}
        self._measure({state for way, _ in ways.values() for state in way}, seconds)
        paths = [self._path(egress, *ways[egress]) for egress in egresses]
        treatment = str(row["distribution"])
        publishers = [each for each in first.parties if each["role"] == "publisher"]
        paths.sort(key=_preference(treatment))
        of_vhosts = [] if paths else self._of_vhosts(start)
        return Trace(
            address=self._address,
            start=start,
            treatment=treatment,
            publishers=publishers,
            paths=paths,
            absent=_absent(first),
            vhost="" if paths else self._other_vhost(),
            of_vhosts=of_vhosts,
            near=None if paths or of_vhosts else self._near(start),
            floods=[each for each in self._floods() if each.is_of(str(row["key"])[2:])],
        )

    def _floods(self) -> list[FloodingClient]:
        silent = [each.id for each in self._states.values() if each.error is not None]
        return ask_flooding_clients(self._client, self._attached, silent=silent)

    def _other_vhost(self) -> str:
        """The virtual host in which this user's clients name the address; empty for none, and where it is in that."""
        prefix = self._client.address_prefix()
        is_inside = not prefix or with_vhost(self._address, prefix) == self._address
        return "" if is_inside or self._address.startswith(f"{prefix}/") else prefix

    def _via(self, router: str) -> str | None:
        """The router that is to be asked by way of the one attached to; None for that one itself."""
        return None if router == self._attached else router

    def _of_vhosts(self, start: str) -> list[str]:
        return addresses_of_vhosts(self._client, start, self._address, router=self._via(start))

    def _near(self, start: str) -> str | None:
        return nearest_address(self._client, self._address, router=self._via(start))

    def _state(self, router: str) -> RouterState:
        if router in self._states:
            return self._states[router]
        state = self._states[router] = RouterState(router)
        via = self._via(router)
        try:
            nodes = self._client.query("router.node", NODE, router=via)
            state.nodes = {str(row["id"]): row for row in nodes}
            state.connections = self._neighbors(via)
            state.address = address_row(self._client, router, self._address, router=via)
            rows = ask_credit(self._client, router, router=via, text=self._address, limit=1)
            state.credit, state.parties = (rows[0], rows[1:]) if rows else (None, ())
        except ManagementError as error:
            state.error = str(error)
            state.is_foreign = isinstance(error, ForeignRouterError)
        return state

    def _neighbors(self, via: str | None) -> dict[str, Row]:
        rows = self._client.query("connection", CONNECTION, router=via)
        return {row["container"]: row for row in rows if row["role"] == "inter-router" and not row["isStandby"]}

    def _way(self, start: str, egress: str) -> tuple[list[str], str | None]:
        """Routers from *start* to *egress*, and why they don't reach it, if so."""
        way = [start]
        while way[-1] != egress:
            state = self._state(way[-1])
            if state.error is not None:
                return way, state.error
            node = state.nodes.get(egress)
            if node is None or not node["isReachable"]:
                return way, f"{way[-1]} has no path to {egress}: {(node and node['reason']) or 'unknown there'}"
            if node["nextHop"] in way or len(way) > MOST_HOPS:
                return way, f"{way[-1]} leads back to {node['nextHop']}: routers are finding other paths just now"
            way.append(str(node["nextHop"]))
        return way, self._state(egress).error

    def _measure(self, routers: Iterable[str], seconds: float) -> None:
        """Look at the counters of neighbors' connections again."""
        if seconds <= 0:
            return
        asked = sorted(router for router in routers if self._states[router].error is None)
        began: dict[str, float] = {}
        for router in asked:
            state = self._states[router]
            try:
                state.connections = self._neighbors(self._via(router))
            except ManagementError as error:
                state.error = str(error)
            began[router] = time.monotonic()
        time.sleep(seconds)
        for router in asked:
            state = self._states[router]
            if state.error is not None:
                continue
            try:
                later = self._neighbors(self._via(router))
            except ManagementError as error:
                state.error = str(error)
                continue
            passed = time.monotonic() - began[router]
            for neighbor, row in later.items():
                before = state.connections.get(neighbor)
                if before is not None and row["deliveriesOut"] >= before["deliveriesOut"]:
                    state.rates[neighbor] = (row["deliveriesOut"] - before["deliveriesOut"]) / passed

    def _path(self, egress: str, way: Sequence[str], error: str | None) -> Path:
        hops = [self._hop(one, other, egress) for one, other in pairwise(way)]
        node = self._states[way[0]].nodes.get(egress)
        end = self._states.get(egress)
        return Path(
            egress=egress,
            cost=node["cost"] if node is not None else None,
            hops=hops,
            subscribers=end.subscribers if end is not None else (),
            error=error,
            is_foreign=error is not None and self._states[way[-1]].is_foreign,
        )

    def _hop(self, one: str, other: str, egress: str) -> Hop:
        state = self._states[one]
        own, connection = state.nodes.get(one), state.connections.get(other)
        circuit = [
            row
            for row in state.parties
            if row["role"] in ("circuit out", "window") and row["neighbor"] == other and row["root"] in (egress, other)
        ]
        micros = connection["roundTripMicros"] if connection is not None else None
        return Hop(
            router=one,
            to=other,
            cost=own["linkCosts"].get(other) if own is not None else None,
            rate=state.rates.get(other),
            round_trip_ms=micros / 1000 if micros is not None else None,
            granted=sum(row["granted"] for row in circuit) if circuit else None,
            waiting=sum(row["waitingCount"] for row in circuit),
            oldest_s=max((row["oldestWaitSeconds"] for row in circuit), default=0),
            unsettled=sum(row["unsettledCount"] for row in circuit),
            error=state.error,
        )


def _absent(state: RouterState) -> list[str]:
    return [f"{row['id']} ({row['reason'] or 'no path'})" for row in state.nodes.values() if not row["isReachable"]]


def address_row(client: ManagementClient, me: str, text: str, *, router: str | None = None) -> Row | None:
    """Row of an address at a router, with the routers that have subscribers; None where the router knows no such one.

    Args:
        client: attached to some router of the mesh.
        me: the router that is asked.
        text: the address, as clients write it.
        router: the same, None when the client is attached to it.
    Raises: ManagementError.
    """
    for key in _keys(text, me):
        try:
            return client.read("router.address", identity=key, router=router)
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
    return None


def addresses_of_vhosts(client: ManagementClient, me: str, text: str, *, router: str | None = None) -> list[str]:
    """Addresses that a router knows and that clients of its isolated virtual hosts name *text*, by virtual host.

    Args: as those of `address_row`.
    Raises: ManagementError.
    """
    vhosts = client.query("vhostStats", ("id", "isIsolated"), router=router, limit=MOST_VHOSTS)
    inside = [with_vhost(text, str(each["id"])) for each in vhosts if each["isIsolated"]]
    return [each for each in inside if each != text and address_row(client, me, each, router=router) is not None]


def is_served(row: Row | None) -> bool:
    """Whether an address has subscribers anywhere, or a router answers it itself.

    Args:
        row: of the address at a router that reaches them; None for none.
    """
    return row is not None and bool(row["subscriberCount"] or row["inProcess"] or row["remoteHostRouters"])


def nearest_address(client: ManagementClient, text: str, *, vhost: str = "", router: str | None = None) -> str | None:
    """Find the address with subscribers, known to a router, that is most like an address without any.

    Args:
        client: attached to some router of the mesh.
        text: the address, as clients write it.
        vhost: isolated virtual host of these clients; empty for none.
        router: the one that is asked, None when the client is attached to it.
    Returns: the address as these clients write it; None where none is like *text*, or nothing is told.
    """
    names = ("key", "subscriberCount", "inProcess", "remoteHostRouters")
    try:
        rows = client.query("router.address", names, router=router, limit=MOST_COMPARED)
    except ManagementError:
        return None  # a hint less, in an answer that is an answer without it
    start = f"M0{vhost}/" if vhost else "M0"
    known = [key.removeprefix(start) for row in rows if is_served(row) and (key := str(row["key"])).startswith(start)]
    return None if text in known else nearest(text, known)


def _keys(text: str, me: str) -> list[str]:
    parsed = parse_address(text, me=RouterId(me))
    if parsed.kind is AddressKind.MOBILE:
        return [f"M0{parsed.text}", f"L{parsed.text}"]
    return [f"L{parsed.text}"] if parsed.kind is AddressKind.LOCAL else []


def _preference(treatment: str) -> Any:
    """Sort key of paths: by the wait where that decides, else by cost."""
    if treatment == "balanced":
        return lambda path: (path.error is not None, path.wait, path.cost or 0, path.egress)
    return lambda path: (path.error is not None, path.cost or 0, path.egress)
