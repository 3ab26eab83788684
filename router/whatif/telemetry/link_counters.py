"""Counters of a live mesh as readings: what has passed over each link, and entered at each router, between two of them.

A reading is plain text and numbers, so that it can be kept: whoever has two of them has all that passed in between, no
matter when he looks. Routers count from the start of a connection; a connection that is new counts from its beginning.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import attrs

from router.whatif.formats.management_queries import ManagementQueries, mobile_address, order_of_choice
from router.whatif.formats.management_rows import Row
from router.whatif.model.elements import LinkEdge, link_ids

NODE: Final = ("id", "isReachable", "instance")
CONNECTION: Final = (
    "identity", "container", "role", "opened", "cost", "isStandby", "dir",
    "deliveriesIn", "deliveriesOut", "bytesIn", "bytesOut", "properties",
)  # fmt: skip
PRODUCT: Final = "amqp-mesh"
"""Product that routers of amqp-mesh name in their Open; others can't be asked for counters."""
FORGOTTEN_US: Final = 7 * 86400 * 1_000_000
"""Time after which a router is forgotten that could not be asked meanwhile: routers may have new ids at each start."""
ADDRESS: Final = ("key", "deliveriesIngress")


@attrs.frozen(kw_only=True)
class Connection:
    """Counters of one router on one connection to a neighbor with a larger id, or of another make."""

    peer: str
    cost: int
    is_standby: bool
    messages_out: int
    messages_in: int
    bytes_out: int
    bytes_in: int
    is_accepted: bool = False
    """Whether the neighbor has dialled. The last field: readings kept by versions before it have none."""


@attrs.frozen(kw_only=True)
class RouterCounters:
    """Counters of one router."""

    instance: int
    """Boot number: another one when it has started anew. Microseconds since 1970."""
    at: int
    """Time at which it was asked, microseconds since 1970, by the clock of who asked."""
    connections: Mapping[str, Connection]
    """Connections by identity, which no other connection of the same start of the router has."""
    entered: Mapping[str, int] | None = None
    """Messages that entered the mesh here, by address that had some; None where that was not asked."""
    clients: tuple[int, int] = (0, 0)
    """Messages and bytes that the clients sent which are connected, since they are."""


ALL: Final = ""
"""Stands in place of an address for all addresses together."""
Reading = Mapping[str, RouterCounters]
"""Counters of each router, by its id."""


@attrs.frozen(kw_only=True)
class LinkTraffic:
    """Traffic over a link in one direction between two readings."""

    link: str
    src: str
    dst: str
    begun: int
    """Beginning of the time that is counted, microseconds since 1970."""
    ended: int
    messages: int
    bytes: int
    is_reset: bool
    """The connection, or the router, is new since the first reading. What the one before carried at its end is not
    known."""


@attrs.frozen(kw_only=True)
class AddressTraffic:
    """Messages to an address that entered the mesh at a router between two readings."""

    router: str
    address: str
    """ALL for those of all addresses."""
    begun: int
    """Beginning of the time that is counted, microseconds since 1970."""
    ended: int
    messages: int
    msg_bytes: float | None
    """Mean size of what the router's clients send, none when they sent nothing."""
    is_reset: bool
    """The router counts anew since the first reading: it has started anew, or nobody used the address for a while."""


def reachable(client: ManagementQueries) -> dict[str, int]:
    """Ask the router that the client is connected to which routers it reaches, itself among them.

    Returns: boot numbers by id.
    """
    nodes = client.query("router.node", NODE, router=None)
    return {str(node["id"]): int(node["instance"] or 0) for node in nodes if node["isReachable"]}


def read(client: ManagementQueries, now: Callable[[], int], *, has_addresses: bool = False) -> Reading:
    """Ask every router that can be reached.

    Args:
        client: attached to some router of the mesh.
        now: tells the time, microseconds since 1970.
        has_addresses: whether routers are asked for their addresses too.
    Raises: OSError when the router does not answer that the client is connected to.
    """
    me = client.attached_to()
    found = {}
    for router, instance in reachable(client).items():
        target = None if router == me else router
        try:
            rows = tuple(client.query("connection", CONNECTION, router=target))
            addresses = client.query("router.address", ADDRESS, router=target) if has_addresses else None
        except OSError:
            if router == me:
                raise
            continue  # it has just gone
        found[router] = RouterCounters(
            instance=instance,
            at=now(),
            connections=dict(_connections(router, rows)),
            entered=None if addresses is None else dict(sorted(_entered(addresses))),
            clients=(0, 0) if addresses is None else _clients(rows),
        )
    return dict(sorted(found.items()))


def _connections(router: str, rows: Iterable[Row]) -> Iterator[tuple[str, Connection]]:
    for row in rows:
        # Each link is told by one of its ends: so no time passes between the counts of its two directions.
        is_told_here = str(row["container"]) > router or _is_foreign(row)
        if row["role"] == "inter-router" and row["opened"] and is_told_here:
            yield (
                str(row["identity"]),
                Connection(
                    peer=str(row["container"]),
                    cost=int(row["cost"] or 1),
                    is_standby=bool(row["isStandby"]),
                    messages_out=int(row["deliveriesOut"]),
                    messages_in=int(row["deliveriesIn"]),
                    bytes_out=int(row["bytesOut"] or 0),
                    bytes_in=int(row["bytesIn"] or 0),
                    is_accepted=row.get("dir") == "in",
                ),
            )


def _is_foreign(row: Row) -> bool:
    """Whether the peer of a connection is a router of another make, such as a qdrouterd."""
    properties = row.get("properties")
    return properties is not None and properties.get("product") != PRODUCT


def _entered(rows: Iterable[Row]) -> Iterator[tuple[str, int]]:
    for row in rows:
        text, count = mobile_address(str(row["key"])), int(row["deliveriesIngress"])
        # Each router knows the addresses of all; few are sent to there.
        if text is not None and count:
            yield text, count


def _clients(rows: Iterable[Row]) -> tuple[int, int]:
    own = [row for row in rows if row["role"] != "inter-router" and row["bytesIn"] is not None]
    return sum(int(row["deliveriesIn"]) for row in own), sum(int(row["bytesIn"]) for row in own)


def merged(before: Reading, after: Reading) -> Reading:
    """A reading with what was known of routers that could not be asked the second time, unless they are long gone."""
    last = max((found.at for found in after.values()), default=0)
    kept = {router: found for router, found in before.items() if last - found.at <= FORGOTTEN_US}
    return dict(sorted({**kept, **after}.items()))


# As text


def to_text(reading: Reading) -> str:
    """A reading as compact JSON."""
    plain = {
        router: [
            found.instance,
            found.at,
            {identity: list(attrs.astuple(one)) for identity, one in found.connections.items()},
            *([] if found.entered is None else [found.entered, list(found.clients)]),
        ]
        for router, found in reading.items()
    }
    return json.dumps(plain, separators=(",", ":"), sort_keys=True)


def from_text(text: str) -> Reading:
    """The reading that `to_text` has written."""
    names = [field.name for field in attrs.fields(Connection)]
    return {
        router: RouterCounters(
            instance=instance,
            at=at,
            connections={
                identity: Connection(**dict(zip(names[: len(values)], values, strict=True)))
                for identity, values in connections.items()
            },
            entered=more[0] if more else None,
            clients=tuple(more[1]) if more else (0, 0),
        )
        for router, (instance, at, connections, *more) in json.loads(text).items()
    }


# Between two readings


def passed(before: Reading, after: Reading, links: tuple[LinkEdge, ...] = ()) -> Iterator[LinkTraffic]:
    """Traffic over each link in each direction, by link and sender.

    Routers that were not asked the second time are left out: what they have counted is in a later difference.
    Args:
        before: the first reading.
        after: the second one.
        links: of the model, whose ids of parallel links are taken; else they are numbered by cost.
    """
    if not before:
        return  # from here on is counted
    began = max(found.at for found in before.values())
    for router, found in after.items():
        known = before.get(router)
        if known is not None and found.at <= known.at:
            continue
        if known is None and found.instance < began:
            continue  # it was there, and could not be asked: what it has counted so far is older
        for link, identity in _named(router, found, links):
            new = found.connections[identity]
            is_same = known is not None and known.instance == found.instance
            old = known.connections.get(identity) if known is not None and is_same else None
            for src, dst, out in ((router, new.peer, True), (new.peer, router, False)):
                messages, octets = (
                    _count(new, out=out)
                    if old is None
                    else tuple(a - b for a, b in zip(_count(new, out=out), _count(old, out=out), strict=True))
                )
                yield LinkTraffic(
                    link=link,
                    src=src,
                    dst=dst,
                    begun=known.at if known is not None else began,
                    ended=found.at,
                    messages=messages,
                    bytes=octets,
                    is_reset=old is None,
                )


def entered(before: Reading, after: Reading) -> Iterator[AddressTraffic]:
    """Messages that entered the mesh at each router for each address that had some, and for ALL in any case.

    Routers that were not asked for it at both times are left out.
    Args:
        before: the first reading.
        after: the second one.
    """
    began = max((found.at for found in before.values()), default=0)
    for router, found in after.items():
        known = before.get(router)
        if found.entered is None or not before or (known is not None and found.at <= known.at):
            continue
        is_same = known is not None and known.instance == found.instance
        if (is_same and known is not None and known.entered is None) or (known is None and found.instance < began):
            continue
        old = known.entered or {} if is_same and known is not None else {}
        sent, octets = found.clients
        rows = [
            (text, count - old.get(text, 0) if count >= old.get(text, 0) else count, count < old.get(text, 0))
            for text, count in found.entered.items()
        ]
        total = (ALL, sum(count for _, count, _ in rows), False)
        for text, count, is_anew in (total, *rows):
            if count or text == ALL:
                yield AddressTraffic(
                    router=router,
                    address=text,
                    begun=known.at if known is not None else began,
                    ended=found.at,
                    messages=count,
                    msg_bytes=octets / sent if sent else None,
                    is_reset=is_anew or not is_same,
                )


def _count(connection: Connection, *, out: bool) -> tuple[int, ...]:
    if out:
        return connection.messages_out, connection.bytes_out
    return connection.messages_in, connection.bytes_in


def _named(router: str, found: RouterCounters, links: tuple[LinkEdge, ...]) -> list[tuple[str, str]]:
    """The link of each connection, by its id."""
    by_peer: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for identity, one in sorted(found.connections.items(), key=_order):
        by_peer[one.peer].append((one.cost, identity))
    named = []
    for peer in sorted(by_peer):
        modelled = [link for link in links if {link.a, link.b} == {router, peer}]
        free = sorted(modelled, key=lambda link: (link.cost, link.id))
        usual = link_ids([(router, peer)] * (len(by_peer[peer]) + len(free)))
        spare = [text for text in usual if text not in {link.id for link in modelled}]
        for cost, identity in by_peer[peer]:
            # When one of several is down, the cost tells which ones are left.
            fitting = next((link for link in free if link.cost == cost), free[0] if free else None)
            if fitting is not None:
                free.remove(fitting)
            named.append((fitting.id if fitting is not None else spare.pop(0), identity))
    return sorted(named)


def _order(item: tuple[str, Connection]) -> tuple[int, bool, bool, str]:
    identity, one = item
    return order_of_choice(cost=one.cost, is_standby=one.is_standby, is_accepted=one.is_accepted, identity=identity)
