"""A live mesh to a model, by what its routers tell over management. Any one router leads to all others.

`collect` asks; `snapshot_model` makes the model of the answers. Who asks is an argument: this module knows no socket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from mesh_config.findings import Finding
from mesh_config.models import Treatment
from router.whatif.formats.input_file import FileFindings
from router.whatif.formats.management_queries import ManagementQueries, mobile_address, order_of_choice
from router.whatif.formats.management_rows import Attribute, Kind, Row, checked_rows
from router.whatif.formats.mesh_settings import built_in_treatment
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, LinkCounter, LinkEdge, RouterNode, SubscriberSite, link_ids
from router.whatif.model.mesh_model import Model

ATTEMPTS: Final = 3
"""Attempts to ask everything when the mesh changes meanwhile."""
TREATMENTS: Final = frozenset(it.value for it in Treatment)

NODE: Final = (
    Attribute("id", Kind.TEXT), Attribute("isReachable", Kind.FLAG), Attribute("linkCosts", Kind.COSTS),
    Attribute("instance", Kind.COUNT, True),
)  # fmt: skip
CONNECTION: Final = (
    Attribute("identity", Kind.TEXT), Attribute("container", Kind.TEXT, True), Attribute("role", Kind.TEXT),
    Attribute("opened", Kind.FLAG), Attribute("operStatus", Kind.TEXT), Attribute("neighborState", Kind.TEXT, True),
    Attribute("isStandby", Kind.FLAG, True), Attribute("cost", Kind.COUNT, True), Attribute("dir", Kind.TEXT, True),
    Attribute("deliveriesIn", Kind.COUNT, True), Attribute("deliveriesOut", Kind.COUNT, True),
    Attribute("bytesIn", Kind.COUNT, True), Attribute("bytesOut", Kind.COUNT, True),
    Attribute("roundTripMicros", Kind.COUNT, True),
)  # fmt: skip
LINK: Final = (
    Attribute("linkType", Kind.TEXT), Attribute("linkDir", Kind.TEXT), Attribute("owningAddr", Kind.TEXT, True),
    Attribute("creditAvailable", Kind.COUNT), Attribute("unsettledCount", Kind.COUNT),
)  # fmt: skip
ADDRESS: Final = (
    Attribute("key", Kind.TEXT), Attribute("distribution", Kind.TEXT), Attribute("publisherCount", Kind.COUNT),
    Attribute("deliveriesIngress", Kind.COUNT),
)  # fmt: skip
ROUTER: Final = (Attribute("site", Kind.TEXT, True),)


@attrs.frozen(kw_only=True)
class RouterReading:
    """Reading of one router."""

    site: str | None
    connections: tuple[Row, ...]
    links: tuple[Row, ...]
    addresses: tuple[Row, ...]


@attrs.frozen(kw_only=True)
class Reading:
    """Reading of a mesh at one time."""

    asked: str
    """The router through which the others were asked."""
    nodes: tuple[Row, ...]
    """Rows of `router.node`, as that router has them."""
    routers: Mapping[str, RouterReading]
    """Routers that can be reached."""
    is_settled: bool
    """Whether links and routers were the same before and after."""


def collect(client: ManagementQueries, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Reading:
    """Ask every router that can be reached; all again, a few times, when links come or go meanwhile.

    Args:
        client: attached to some router of the mesh.
        progress: told how many routers were asked, and how many there are.
    Raises: SettingsError when a router tells something that is no such thing.
    """
    me = client.attached_to()
    nodes = _nodes(client, me)
    for _ in range(ATTEMPTS):
        ids = sorted(str(node["id"]) for node in nodes if node["isReachable"])
        routers = {}
        for done, router in enumerate(ids):
            progress(done, len(ids))
            routers[router] = _ask(client, None if router == me else router, me)
        progress(len(ids), len(ids))
        after = _nodes(client, me)
        is_settled = after == nodes
        nodes = after
        if is_settled:
            break
    return Reading(asked=me, nodes=nodes, routers=routers, is_settled=is_settled)


def snapshot_model(
    reading: Reading, faults: FileFindings, *, name: str = "mesh", demands: Sequence[Demand] = ()
) -> Model:
    """The model of a mesh that tells so.

    Of parallel links the one in use is among the others; each delay is half the round trip of TCP. Addresses of replies
    are left out.
    Args:
        reading: of all routers.
        faults: gets warnings: what is not reachable, and what routers don't agree on.
        name: of the model.
        demands: what `measured_demands` found.
    """
    if not reading.is_settled:
        faults.warn(f"links came or went while the mesh was asked, {ATTEMPTS} times; the model may mix two states")
    alive = reading.routers
    for node in reading.nodes:
        if str(node["id"]) not in alive:
            faults.warn(f"router `{node['id']}` cannot be reached, and is left out", key=("routers", str(node["id"])))
    links, counters = _links(reading, faults)
    subscribers = _subscribers(alive)
    used = [site.address for site in subscribers] + [it.address for it in demands if it.address is not None]
    return Model(
        name=name,
        routers=[RouterNode(id=router, site=found.site or None) for router, found in alive.items()],
        links=links,
        addresses=_addresses(alive, used, faults),
        subscribers=subscribers,
        demands=demands,
        counters=counters,
    )


def measured_demands(before: Reading, after: Reading, seconds: float) -> list[Demand]:
    """Measure what publishers sent between two readings: a demand for each address and router where messages entered.

    Sizes are the mean of all that the router's clients sent, everything of AMQP included. A router that has started
    anew in between, or an address that it had forgotten, counts from 0: what came before that is missing.

    Args:
        before: the first reading.
        after: the second one.
        seconds: between the two.
    """
    found = []
    instances = {str(node["id"]): node["instance"] for node in before.nodes}
    same = {str(node["id"]) for node in after.nodes if instances.get(str(node["id"])) == node["instance"]}
    for router, reading in after.routers.items():
        if router not in before.routers:
            continue
        known = before.routers[router] if router in same else None
        size = _mean_bytes(known, reading)
        was = {row["key"]: row["deliveriesIngress"] for row in known.addresses} if known is not None else {}
        for row in reading.addresses:
            text = mobile_address(row["key"])
            count, old = row["deliveriesIngress"], was.get(row["key"], 0)
            count -= old if old <= count else 0
            if text is not None and count > 0:
                found.append(Demand(src=router, address=text, msgs_per_s=count / seconds, msg_bytes=size))
    return found


def _nodes(client: ManagementQueries, me: str) -> tuple[Row, ...]:
    return tuple(sorted(_rows(client, "router.node", NODE, None, me), key=lambda row: str(row["id"])))


def _ask(client: ManagementQueries, router: str | None, me: str) -> RouterReading:
    own = _rows(client, "router", ROUTER, router, me)
    return RouterReading(
        site=own[0]["site"] if own else None,
        connections=_rows(client, "connection", CONNECTION, router, me),
        links=_rows(client, "router.link", LINK, router, me),
        addresses=_rows(client, "router.address", ADDRESS, router, me),
    )


def _rows(
    client: ManagementQueries, entity: str, attributes: Sequence[Attribute], router: str | None, me: str
) -> tuple[Row, ...]:
    """Check what a router tells of its entities of one type.

    Raises: SettingsError
    """
    rows = client.query(entity, tuple(it.name for it in attributes), router=router)
    return checked_rows(rows, attributes, entity=entity, router=me if router is None else router)


# Links


def _links(reading: Reading, faults: FileFindings) -> tuple[list[LinkEdge], list[LinkCounter]]:
    """Links and their counters, as the end with the smaller id tells of the connections."""
    # A router that went while others were asked is no longer among the nodes.
    costs: defaultdict[str, Mapping[str, int]] = defaultdict(dict)
    costs.update((str(node["id"]), node["linkCosts"]) for node in reading.nodes)
    found: list[tuple[str, str, Row]] = []
    for a in sorted(reading.routers):
        for b in sorted(router for router in costs[a] if router in reading.routers):
            if a not in costs[b]:
                faults.warn(f"router `{a}` has a link to `{b}`, which knows nothing of it: left out", key=("links",))
            elif a < b:
                found += [(a, b, row) for row in _between(reading, a, b, max(costs[a][b], costs[b][a]))]
    links, counters = [], []
    for text, (a, b, row) in zip(link_ids((a, b) for a, b, _ in found), found, strict=True):
        round_trip = row.get("roundTripMicros")
        delay_ms = None if round_trip is None else round(round_trip / 2000, 6)
        links.append(LinkEdge(id=text, a=a, b=b, cost=row["cost"], delay_ms=delay_ms))
        if None not in (row.get("deliveriesOut"), row.get("deliveriesIn")):
            counters += [
                LinkCounter(link=text, src=a, messages=row["deliveriesOut"], bytes=row.get("bytesOut")),
                LinkCounter(link=text, src=b, messages=row["deliveriesIn"], bytes=row.get("bytesIn")),
            ]
    return links, counters


def _between(reading: Reading, a: str, b: str, cost: int) -> list[Row]:
    """The connections between two routers, the one in use first: it has the least cost."""
    rows = [
        row
        for row in reading.routers[a].connections
        if row["role"] == "inter-router"
        and row["container"] == b
        and row["opened"]
        and row["operStatus"] == "up"
        and (row["isStandby"] or row["neighborState"] in (None, "two-way"))
    ]
    # One that came after its link state was asked for, or of a router that doesn't tell the cost of a connection.
    known = [row if row.get("cost") is not None else {**row, "cost": cost} for row in rows] or [{"cost": cost}]
    return sorted(known, key=_order)


def _order(row: Row) -> tuple[int, bool, bool, str]:
    return order_of_choice(
        cost=row["cost"],
        is_standby=bool(row.get("isStandby")),
        is_accepted=row.get("dir") == "in",
        identity=row.get("identity", ""),
    )


# Addresses


def _subscribers(routers: Mapping[str, RouterReading]) -> list[SubscriberSite]:
    """Subscribers of mobile addresses. Their credit is what they grant when nothing is under way."""
    credit: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for router, reading in routers.items():
        for row in reading.links:
            text = mobile_address(row["owningAddr"] or "")
            if row["linkType"] == "endpoint" and row["linkDir"] == "out" and text is not None:
                credit[text, router].append(row["creditAvailable"] + row["unsettledCount"])
    return [
        SubscriberSite(address=text, router=router, count=len(amounts), credit=sum(amounts))
        for (text, router), amounts in credit.items()
    ]


def _addresses(routers: Mapping[str, RouterReading], used: Iterable[str], faults: FileFindings) -> list[AddressNode]:
    """Addresses that are used or have publishers, each with the treatment that the first router gives it."""
    wanted = set(used)
    said: dict[str, dict[str, str]] = {}
    for router, reading in sorted(routers.items()):
        for row in reading.addresses:
            text = mobile_address(row["key"])
            if text is not None:
                said.setdefault(text, {}).setdefault(row["distribution"], router)
                if row["publisherCount"]:
                    wanted.add(text)
    for text in sorted(wanted):
        if len(said.get(text, ())) > 1:
            words = " and ".join(f"{treatment} at router `{router}`" for treatment, router in said[text].items())
            first = next(iter(said[text]))
            faults.warn(f"address `{text}` is {words}; it counts as {first}", key=("addresses", text))
    return [AddressNode(text=text, treatment=_treatment(text, said.get(text, {}), faults)) for text in wanted]


def _treatment(text: str, said: Mapping[str, str], faults: FileFindings) -> Treatment:
    """Treatment that the first router tells; the built-in one where a mobile address can't have it, or none is told."""
    word, router = next(iter(said.items()), ("", ""))
    if word in TREATMENTS:
        return Treatment(word)
    usual = built_in_treatment(text)
    told = f"`{word}` at router `{router}`" if router else "known to no router any more"
    faults.warn(f"address `{text}` is {told}; it counts as {usual}", key=("addresses", text))
    return usual


def _mean_bytes(before: RouterReading | None, after: RouterReading) -> float:
    """Bytes for each message that clients sent since a reading, or since the router started; 0 when not known."""
    was = {row["identity"]: row for row in before.connections} if before is not None else {}
    messages = octets = 0
    for row in after.connections:
        old = was.get(row["identity"], {"deliveriesIn": 0, "bytesIn": 0})
        numbers = (row["deliveriesIn"], row["bytesIn"], old["deliveriesIn"], old["bytesIn"])
        if row["role"] == "inter-router" or None in numbers:
            continue
        count = row["deliveriesIn"] - old["deliveriesIn"]
        if count > 0:
            messages += count
            octets += row["bytesIn"] - old["bytesIn"]
    return octets / messages if messages else 0.0


def checked_model(
    reading: Reading, url: str, *, name: str = "mesh", demands: Sequence[Demand] = ()
) -> tuple[Model, tuple[Finding, ...]]:
    """The model of a reading, checked, and warnings about it."""
    faults = FileFindings(url)
    model = snapshot_model(reading, faults, name=name, demands=demands)
    model = attrs.evolve(model, origin=f"{url}, router {reading.asked}")
    model.check()
    return model, faults.check()
