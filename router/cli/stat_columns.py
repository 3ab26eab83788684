"""Columns that `stat` shows of each kind of entities, and an order in which trouble comes first."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
from rich.cells import cell_len

from router.core.terminal_escaping import escaped

Entity = Mapping[str, Any]
"""Attributes by name, as management gives them."""


class Measure(enum.Enum):
    """Kind of number that a text is of; its value says in words what may be compared with it."""

    DURATION = "a duration: seconds, or such as 3m10s, are expected"
    TIME = "a time: one such as 14:00 or 2026-11-30 14:00 is expected"


@attrs.frozen
class Column:
    """One column of a table."""

    title: str
    text: Callable[[Entity], object]
    is_number: bool = False
    is_detail: bool = False
    """Shown with `--verbose` only."""
    is_spare: bool = False
    """Left out first where a line has no room for all."""
    value: Callable[[Entity], int | None] | None = None
    """Number that the text is of, such as seconds: rows are sorted and compared by it; None for none."""
    measure: Measure | None = None
    """Kind of that number; None for none of these."""


@attrs.frozen(kw_only=True)
class View:
    """One table."""

    kind: str
    """Entity type."""
    noun: str
    columns: Sequence[Column]
    order: Callable[[Entity], Any]
    """Sort key; the smallest comes first."""
    style: Callable[[Entity], str | None] = lambda _: None
    """Style of a row on a terminal, when it needs attention."""
    counters: Sequence[tuple[str, str]] = ()
    """Titles and attributes of counters that have their rate beside them where a table renews itself."""


def _text(title: str, attribute: str, *, is_detail: bool = False, is_spare: bool = False) -> Column:
    return Column(title, lambda entity: entity[attribute], is_detail=is_detail, is_spare=is_spare)


def _number(title: str, attribute: str, *, is_detail: bool = False, is_spare: bool = False) -> Column:
    return Column(title, lambda entity: entity[attribute], is_number=True, is_detail=is_detail, is_spare=is_spare)


def printable(text: str) -> str:
    """Escape what would move the cursor, ring a bell or turn the direction of writing, as in the log."""
    return escaped(text)


def cell(value: object) -> str:
    """A value as a table shows it."""
    return "-" if value is None or value == "" else printable(str(value))


def aligned(rows: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> list[str]:
    """Rows as lines, the columns two blanks apart and numbers to the right; without blanks at the ends.

    Args:
        rows: with a text for each column.
        are_numbers: by column.
    """
    columns = []
    for texts, is_number in zip(zip(*rows, strict=True), are_numbers, strict=True):
        # Some characters take two places on a terminal.
        sizes = list(map(cell_len, texts))
        width = max(sizes)
        blanks = [" " * (width - size) for size in sizes]
        pairs = zip(blanks, texts, strict=True)
        columns.append([blank + text if is_number else text + blank for blank, text in pairs])
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def duration(seconds: int) -> str:
    """Seconds as an operator reads them: `42s`, `3m10s`, `5h02m`, `12d03h`."""
    for size, unit, part, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // part:02d}{small}"
    return f"{seconds}s"


def _duration(title: str, attribute: str) -> Column:
    return Column(
        title,
        lambda entity: duration(entity[attribute]),
        is_number=True,
        value=lambda entity: entity[attribute],
        measure=Measure.DURATION,
    )


# Connections


def _neighbor(entity: Entity) -> str | None:
    if entity["role"] != "inter-router":
        return None
    return "standby" if entity["isStandby"] else entity["neighborState"] or "no control links"


def _is_troubled(entity: Entity) -> bool:
    if entity["reading"] != "all" or entity["sending"] != "all":
        return True
    return not entity["opened"] or entity["operStatus"] != "up" or _neighbor(entity) not in (None, "two-way", "standby")


def _product(entity: Entity) -> str | None:
    properties = entity["properties"] or {}
    return " ".join(str(properties[key]) for key in ("product", "version") if key in properties) or None


CONNECTIONS: Final = View(
    kind="connection",
    noun="connections",
    columns=(
        Column("id", lambda entity: entity["identity"], is_number=True),
        _text("container", "container"),
        _text("host", "host"),
        _text("role", "role"),
        _text("dir", "dir", is_spare=True),
        Column("neighbor", _neighbor),
        _number("cost", "cost"),
        _text("user", "user", is_spare=True),
        Column("tls", lambda entity: "yes" if entity["isEncrypted"] else "no", is_spare=True),
        _number("links", "linkCount", is_spare=True),
        # A router of an earlier version doesn't say.
        Column("unansw", lambda entity: entity.get("unansweredCount"), is_number=True, is_spare=True),
        _duration("uptime", "uptimeSeconds"),
        _text("status", "operStatus"),
        _text("reading", "reading"),
        _text("sending", "sending"),
        _text("vhost", "tenant", is_detail=True),
        _text("sasl", "sasl", is_detail=True),
        _number("held bytes", "heldBytes", is_detail=True),
        _number("charged bytes", "chargedBytes", is_detail=True),
        Column("product", _product, is_detail=True),
    ),
    order=lambda entity: (not _is_troubled(entity), entity["role"] != "inter-router", int(entity["identity"])),
    style=lambda entity: "yellow" if _is_troubled(entity) else None,
    counters=(("in/s", "deliveriesIn"), ("out/s", "deliveriesOut")),
)


# Links


def link_state(entity: Entity) -> str:
    """Trouble with a link, in a word; empty when there is none."""
    if entity["isBlocked"]:
        return "blocked"
    if entity["deliveriesStuck"]:
        return "stuck"
    return "" if entity["creditAvailable"] else "no credit"


def address(key: str | None) -> str | None:
    """The address of a key: without class and phase."""
    if not key:
        return None
    return key[2:] if key.startswith("M") else key[1:]


LINKS: Final = View(
    kind="router.link",
    noun="links",
    columns=(
        Column("state", link_state),
        _number("id", "identity"),
        _number("conn", "connectionId", is_spare=True),
        _text("container", "container"),
        _text("type", "linkType", is_spare=True),
        _text("dir", "linkDir"),
        Column("address", lambda entity: address(entity["owningAddr"])),
        _number("credit", "creditAvailable"),
        _number("undeliv", "undeliveredCount"),
        _duration("waits", "zeroCreditSeconds"),
        _number("unsett", "unsettledCount"),
        _number("stuck", "deliveriesStuck"),
        _number("deliv", "deliveryCount"),
        _number("presett", "presettledCount", is_spare=True),
        _number("dropped", "droppedPresettledCount"),
        _number("acc", "acceptedCount", is_spare=True),
        _number("rej", "rejectedCount", is_spare=True),
        _number("rel", "releasedCount", is_spare=True),
        _number("mod", "modifiedCount", is_spare=True),
        _number("msg/s", "rate"),
        _number("settle/s", "settleRate", is_spare=True),
        _number("window", "capacity", is_detail=True),
        _number("pri", "priority", is_detail=True),
        _text("name", "linkName", is_detail=True),
    ),
    order=lambda entity: (
        not entity["isBlocked"],
        not entity["deliveriesStuck"],
        -entity["zeroCreditSeconds"],
        -entity["undeliveredCount"],
        -entity["deliveriesStuck"],
        -entity["droppedPresettledCount"],
        -entity["unsettledCount"],
        -entity["deliveryCount"],
        int(entity["identity"]),
    ),
    style=lambda entity: "red" if link_state(entity) in ("blocked", "stuck") else None,
)


# Addresses


def _address_state(entity: Entity) -> str:
    if entity["waitingCount"]:
        return "waiting"
    return "no subscriber" if not entity["isOpen"] else ""


ADDRESSES: Final = View(
    kind="router.address",
    noun="addresses",
    columns=(
        Column("state", _address_state),
        Column("address", lambda entity: address(entity["key"])),
        Column("class", lambda entity: {"M": "mobile", "L": "local", "R": "router"}.get(entity["key"][:1], "other")),
        _text("treatment", "distribution", is_spare=True),
        Column("local", lambda entity: entity["subscriberCount"] + entity["inProcess"], is_number=True),
        _number("remote", "remoteCount"),
        _number("publ", "publisherCount"),
        _number("credit", "creditAvailable"),
        _number("waiting", "waitingCount"),
        _duration("oldest", "oldestWaitSeconds"),
        _number("unsett", "trackedDeliveries", is_spare=True),
        _number("in", "deliveriesIngress"),
        _number("out", "deliveriesEgress"),
        _number("thru", "deliveriesTransit"),
        _number("released", "releasedCount"),
        _number("dropped", "droppedCount"),
        _number("bytes", "waitingBytes", is_detail=True),
        Column("routers", lambda entity: " ".join(entity["remoteHostRouters"]) or None, is_detail=True),
    ),
    order=lambda entity: (
        -entity["waitingCount"],
        entity["isOpen"] or not entity["publisherCount"],
        -entity["droppedCount"],
        not entity["key"].startswith("M"),
        -(entity["deliveriesIngress"] + entity["deliveriesEgress"] + entity["deliveriesTransit"]),
        entity["key"],
    ),
    style=lambda entity: "yellow" if entity["waitingCount"] or not entity["isOpen"] else None,
    counters=(("in/s", "deliveriesIngress"), ("out/s", "deliveriesEgress"), ("thru/s", "deliveriesTransit")),
)


# Routers


def _neighbors(entity: Entity) -> str:
    costs = entity["linkCosts"]
    return " ".join(router if cost == 1 else f"{router}({cost})" for router, cost in costs.items())


def moment(seconds: int | None) -> str | None:
    """A time as an operator reads it: of today without the date.

    Args:
        seconds: since 1970; None for none.
    """
    if seconds is None:
        return None
    there, now = time.localtime(seconds), time.localtime()
    return time.strftime("%T" if there[:3] == now[:3] else "%F %T", there)


def _moment(title: str, value: Callable[[Entity], int | None], *, is_detail: bool = False) -> Column:
    """Column of a time, which is sorted by the time itself: of another day the text has the date too."""
    return Column(title, lambda entity: moment(value(entity)), is_detail=is_detail, value=value, measure=Measure.TIME)


def _since() -> Column:
    return _moment("since", lambda entity: entity["since"])


def _why() -> Column:
    """Why it is not there; or why it was not, with the time of that beside it."""

    def words(entity: Entity) -> str | None:
        reason = entity["reason"]
        if reason:
            return str(reason)
        last = entity.get("lastFlapReason")  # a router of an earlier version doesn't say
        return f"last flap: {last}" if last else None

    return Column("why", words)


def _why_not_connected(entity: Entity) -> str | None:
    """Why a connector reaches nobody, and why it was lost before; or why it was lost, when it is back."""
    reason, last = entity["connectionMsg"], entity.get("lastFlapReason")
    if entity["connectionStatus"] == "SUCCESS":
        return f"last flap: {last}" if last else None
    if not reason:
        return str(last) if last else "it tries for the first time"
    return f"{reason}; lost before that: {last}" if last and last != reason else str(reason)


def _flaps() -> tuple[Column, Column]:
    return (
        Column("flaps", lambda entity: entity["flapCount"] or None, is_number=True),
        _moment("last flap", lambda entity: entity["lastFlap"]),
    )


def _flaps_since() -> Column:
    """Time of the first loss of late: that of a connector, and a router of an earlier version, is not told."""
    return _moment("flaps since", lambda entity: entity.get("firstRecentFlap"))


def _router_state(entity: Entity) -> str:
    if not entity["isReachable"]:
        return "ABSENT"
    return "drained" if entity.get("isDraining") else "up"  # a router of an earlier version doesn't say


def _state_since(entity: Entity) -> int | None:
    """Time since which a router is in its state: one that is drained has told its neighbors' costs anew then."""
    found: int | None = entity["lastTopoChange"] if _router_state(entity) == "drained" else entity["since"]
    return found


ROUTERS: Final = View(
    kind="router.node",
    noun="routers",
    columns=(
        _text("id", "id"),
        Column("state", _router_state),
        _moment("since", _state_since),
        _text("next hop", "nextHop"),
        _number("cost", "cost"),
        Column("neighbors", _neighbors),
        _number("addresses", "addressCount"),
        *_flaps(),
        _why(),
        _flaps_since(),
        Column("in the file", lambda entity: "yes" if entity["isConfigured"] else "no", is_detail=True),
        _number("conn", "routerLink", is_detail=True),
        _moment("links changed", lambda entity: entity["lastTopoChange"], is_detail=True),
        _number("instance", "instance", is_detail=True),
        _number("ls seq", "linkStateSequence", is_detail=True),
        _number("addr seq", "mobileSequence", is_detail=True),
    ),
    order=lambda entity: (entity["isReachable"], entity["cost"] or 0, entity["id"]),
    style=lambda entity: None if _router_state(entity) == "up" else "yellow" if entity["isReachable"] else "red",
)


# Virtual hosts


def _denied(entity: Entity) -> int:
    return sum(entity[name] for name in ("connectionsDenied", "senderDenied", "receiverDenied", "messagesDenied"))


VHOSTS: Final = View(
    kind="vhostStats",
    noun="virtual hosts",
    columns=(
        _text("name", "id"),
        Column("isolated", lambda entity: "yes" if entity["isIsolated"] else "no"),
        _number("conn", "connectionsCurrent"),
        Column("bound", lambda entity: entity["maxConnections"] or None, is_number=True),
        _number("came in", "connectionsApproved"),
        _number("denied", "connectionsDenied"),
        _number("senders denied", "senderDenied"),
        _number("receivers denied", "receiverDenied"),
        _number("messages denied", "messagesDenied"),
        _number("user-ids denied", "userIdsDenied"),
    ),
    order=lambda entity: (entity["id"] == "(none)", entity["id"]),
    style=lambda entity: "yellow" if _denied(entity) else None,
)

# Connectors, listeners, links of the mesh


def _connector_state(entity: Entity) -> str:
    return {"SUCCESS": "up", "CONNECTING": "connecting", "FAILED": "FAILED"}[entity["connectionStatus"]]


CONNECTORS: Final = View(
    kind="connector",
    noun="connectors",
    columns=(
        _text("name", "name"),
        _text("router", "router"),
        Column("state", _connector_state),
        _since(),
        *_flaps(),
        Column("why", _why_not_connected),
        Column("place", lambda entity: f"{entity['host']}:{entity['port']}", is_detail=True),
        _text("role", "role", is_detail=True),
        _number("cost", "cost", is_detail=True),
    ),
    order=lambda entity: (entity["connectionStatus"] == "SUCCESS", entity["name"]),
    style=lambda entity: None if entity["connectionStatus"] == "SUCCESS" else "red",
)

LISTENERS: Final = View(
    kind="listener",
    noun="listeners",
    columns=(
        _text("name", "name"),
        _text("host", "host"),
        _text("port", "port"),
        _text("role", "role"),
        Column("state", lambda entity: None if entity.get("isOpen", True) else "closed"),
        _number("connections", "connectionCount"),
        _number("most", "maxConnections"),
        _number("cost", "cost", is_detail=True),
    ),
    order=lambda entity: (entity["role"], entity["name"]),
)


def _counted_cost(entity: Entity) -> int | None:
    cost: int | None = entity["cost"] if entity["cost"] is not None else entity["configuredCost"]
    return cost


def _link_cost(entity: Entity) -> str:
    cost, configured = entity["cost"], entity["configuredCost"]
    if configured is None or cost is None or cost == configured:
        return str(_counted_cost(entity))
    return f"{cost} (file: {configured})"


MESH: Final = View(
    kind="amqp-mesh.mesh.link",
    noun="links of the mesh",
    columns=(
        _text("one", "one"),
        _text("other", "other"),
        Column("state", lambda entity: entity["state"] if entity["state"] == "up" else entity["state"].upper()),
        _since(),
        Column("cost", _link_cost, is_number=True, value=_counted_cost),
        *_flaps(),
        _why(),
        _flaps_since(),
        Column("in the file", lambda entity: "yes" if entity["isConfigured"] else "no", is_detail=True),
    ),
    order=lambda entity: (entity["state"] == "up", entity["one"], entity["other"]),
    style=lambda entity: None if entity["state"] == "up" else "red",
)

VIEWS: Final = {
    "connections": CONNECTIONS,
    "links": LINKS,
    "addresses": ADDRESSES,
    "routers": ROUTERS,
    "vhosts": VHOSTS,
    "mesh": MESH,
    "connectors": CONNECTORS,
    "listeners": LISTENERS,
}

GENERAL: Final = (
    ("router", "id"),
    ("version", "version"),
    ("mode", "mode"),
    ("site", "site"),
    ("host", "hostName"),
    ("process", "processId"),
    ("uptime", "uptimeSeconds"),
    ("state", "drainState"),
    ("memory", "memoryUsage"),
    ("held for peers", "chargedBytes"),
    ("... above which they wait", "chargedMarkBytes"),
    ("connections that wait", "connectionsAboveMark"),
    ("connections", "connectionCount"),
    ("links", "linkCount"),
    ("links blocked", "linksBlocked"),
    ("addresses", "addrCount"),
    ("other routers reachable", "nodeCount"),
    ("other routers absent", "unreachableNodeCount"),
    ("messages waiting for credit", "waitingCount"),
    ("messages without outcome yet", "unsettledCount"),
    ("either for more than 10 s", "deliveriesStuck"),
    ("entered the mesh here", "deliveriesIngress"),
    ("left the mesh here", "deliveriesEgress"),
    ("passed through", "deliveriesTransit"),
    ("came in settled", "presettledDeliveries"),
    ("dropped", "droppedPresettledDeliveries"),
    ("accepted", "acceptedDeliveries"),
    ("rejected", "rejectedDeliveries"),
    ("released", "releasedDeliveries"),
    ("modified", "modifiedDeliveries"),
)
"""Lines of `stat general`: what it is, and the attribute of the router."""

GENERAL_COUNTERS: Final = tuple(
    (f"{attribute}/s", attribute)
    for _, attribute in GENERAL
    if attribute.endswith("Deliveries") or attribute in ("deliveriesIngress", "deliveriesEgress", "deliveriesTransit")
)
"""Counters that `--watch` gives a rate, by the name of that."""


def general_value(attribute: str, value: object) -> str:
    """A value of `stat general` with its unit."""
    if attribute == "uptimeSeconds" and isinstance(value, int):
        return duration(value)
    if attribute in ("memoryUsage", "chargedBytes", "chargedMarkBytes") and isinstance(value, int):
        return f"{value / 2**20:.1f} MiB"
    return "-" if value is None else str(value)
