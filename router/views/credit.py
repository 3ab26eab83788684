"""Rows of credit, from the brokers and their links: who granted how much, who holds how much, and what waits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from router.binding.handles import pn_link_get_drain
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.forwarding.pools import Circuit, Pool
from router.core.forwarding.publishers import Publisher
from router.core.terms import ConnectionId, RouterId
from router.dataplane.anycast import AnycastBroker
from router.dataplane.broker import Broker
from router.dataplane.interface import EgressLink, IngressLink, Transfer
from router.dataplane.multicast import MulticastBroker
from router.engine.connection import Connection
from router.management.snapshot import CreditRow, PartyRow
from router.views.links import AnyLink, credit_of, key_of


@attrs.frozen
class Window:
    """Credit of the mesh's own making, toward a neighbor that takes no circuit."""

    broker: Broker
    root: RouterId
    neighbor: RouterId | None
    credit: int
    unsettled: int


Party = AnyLink | Window
"""Who grants or holds credit of an address."""


# Which there are


def entry_of(fib: Fib, key: str) -> AddressEntry | None:
    """The address of that key; None when there is none with credit here."""
    found: AddressEntry | None = None
    if key.startswith("R") or key.endswith("*"):
        found = next((entry for entry in fib.entries() if key_of(entry) == key), None)
    else:
        found = fib.find(key[2:] if key.startswith("M") else f"_local/{key[1:]}")
    return found if found is not None and key_of(found) == key and has_credit(found) else None


def has_credit(entry: AddressEntry) -> bool:
    """Whether there is somebody here whose credit can be told of."""
    return entry.service is None and bool(entry.broker is not None or entry.subscribers)


def parties(links: Iterable[AnyLink], brokers: Iterable[Broker]) -> Iterator[Party]:
    """Those of all addresses, links in the given order."""
    for link in links:
        is_client = link.root is None
        if isinstance(link.broker, Broker) or (isinstance(link, EgressLink) and is_client and link.entry is not None):
            yield link
    for broker in brokers:
        yield from _windows(broker)


def parties_of(entry: AddressEntry) -> Iterator[Party]:
    """Those of one address: who grants before who holds."""
    yield from _subscribers(entry)
    broker = _broker_of(entry)
    if broker is None:
        return
    yield from _own_circuits(broker)
    yield from _windows(broker)
    for pool in _pools(broker):
        for key in pool.circuits:
            assert isinstance(key, IngressLink)
            yield key
    for link, _ in _publishers(broker):
        yield link


def _broker_of(entry: AddressEntry) -> Broker | None:
    assert entry.broker is None or isinstance(entry.broker, Broker)
    return entry.broker


def _subscribers(entry: AddressEntry) -> list[EgressLink]:
    return [link for link in entry.subscribers if isinstance(link, EgressLink)]


def _own_circuits(broker: Broker) -> Iterable[EgressLink]:
    if isinstance(broker, (AnycastBroker, MulticastBroker)):
        return broker.own.values()
    return ()


def _datagrams(broker: Broker, egress: RouterId) -> int:
    load = broker.entry.remotes.get(egress)
    return load.datagrams if load is not None else 0


def _windows(broker: Broker) -> Iterator[Window]:
    if isinstance(broker, AnycastBroker):
        for egress in broker.windowed:
            pool = broker.machine.pools.get(egress)
            if pool is not None:
                yield Window(broker, egress, pool.next_hop, pool.capacity, _datagrams(broker, egress))
    elif isinstance(broker, MulticastBroker):
        for ingress, neighbor in broker.windowed:
            tree = broker.machine.trees.get(ingress)
            outlet = tree.children.get(neighbor) if tree is not None else None
            if outlet is not None:
                yield Window(broker, ingress, neighbor, outlet.credit, 0)


def _pools(broker: Broker) -> list[Pool]:
    if isinstance(broker, MulticastBroker):
        return [tree.pool for tree in broker.machine.trees.values()]
    assert isinstance(broker, AnycastBroker)
    return list(broker.machine.pools.values())


def _circuit(link: IngressLink) -> Circuit | None:
    """What the machine knows of a neighbor's circuit."""
    broker, root = link.broker, link.root
    if root is None:
        return None
    if isinstance(broker, MulticastBroker):
        return broker.machine.trees[root].pool.circuits.get(link)
    assert isinstance(broker, AnycastBroker)
    return broker.machine.pools[root].circuits.get(link)


def _publishers(broker: Broker) -> Iterator[tuple[IngressLink, Publisher | None]]:
    """Each link, with what the machine knows of it."""
    for key, publisher in broker.publishers.attached.items():
        assert isinstance(key, IngressLink)
        yield key, publisher
    if isinstance(broker, AnycastBroker):
        for link in (*broker.first, *broker.second):
            yield link, None


def _held(link: IngressLink, publisher: Publisher | None) -> int:
    return publisher.held if publisher is not None else credit_of(link)


def _blocked_s(link: IngressLink, publisher: Publisher | None, now: float) -> float | None:
    """Seconds that a publisher has been without credit; None when it has some."""
    if _held(link, publisher):
        return None
    since = publisher.since if publisher is not None else -math.inf
    return max(0.0, now - max(since, link.attached_at))


# One address


def credit_row(entry: AddressEntry, now: float) -> CreditRow:
    """The credit of one address, at *now* (seconds, monotonic)."""
    key = key_of(entry)
    subscribers = _subscribers(entry)
    broker = _broker_of(entry)
    publishers = list(_publishers(broker)) if broker is not None else []
    blocked = [seconds for seconds in (_blocked_s(*each, now) for each in publishers) if seconds is not None]
    oldest = next(iter(entry.waiting), None)
    return CreditRow(
        name=key,
        identity=key,
        key=key,
        treatment=entry.treatment.value,
        has_subscriber=entry.is_open,
        is_open=_is_open(broker) if broker is not None else any(map(credit_of, subscribers)),
        granted=_granted(entry, subscribers, broker),
        held_by_publishers=sum(_held(*each) for each in publishers),
        held_by_circuits=sum(c.out for pool in _pools(broker) for c in pool.circuits.values()) if broker else 0,
        lowered=broker.publishers.lowered if broker is not None else 0,
        subscriber_count=len(subscribers),
        publisher_count=len(publishers),
        blocked_count=len(blocked),
        blocked_seconds=int(max(blocked, default=0.0)),
        waiting_count=len(entry.waiting),
        departed_count=broker.publishers.departed if broker is not None else 0,
        oldest_wait_seconds=_age(oldest.arrived if isinstance(oldest, Transfer) else now, now),
    )


def _is_open(broker: Broker) -> bool:
    if isinstance(broker, MulticastBroker):
        return broker.machine.own.machine.is_open
    assert isinstance(broker, AnycastBroker)
    # To a reply address one credit is given before any was granted.
    is_reached = any(pool.has_path for pool in broker.machine.pools.values())
    return broker.machine.is_open or (broker.is_reply and is_reached)


def _granted(entry: AddressEntry, subscribers: list[EgressLink], broker: Broker | None) -> int:
    """What can be dealt here."""
    if isinstance(broker, MulticastBroker):
        return _granted_together(broker)
    circuits = _own_circuits(broker) if broker is not None else ()
    windows = _windows(broker) if broker is not None else ()
    return sum(map(credit_of, (*subscribers, *circuits))) + sum(window.credit for window in windows)


def _granted_together(broker: MulticastBroker) -> int:
    machine = broker.machine
    is_ingress = bool(machine.own.machine.publishers.attached)
    trees = [machine.own] if is_ingress else [tree for tree in machine.trees.values() if tree is not machine.own]
    found = [outlet.credit for tree in trees for outlet in tree.children.values() if not outlet.is_closed]
    if machine.audience.live:
        found.append(machine.audience.capacity)
    return min(found, default=0)


def _age(arrived: float, now: float) -> int:
    return int(max(0.0, now - arrived))


# One party


class PartyView:
    """Makes rows of parties, at one moment.

    Args:
        now: seconds, monotonic.
    """

    def __init__(self, connections: Mapping[ConnectionId, Connection], now: float) -> None:
        self._connections = connections
        self._now = now
        self._waiting: dict[AddressEntry, dict[IngressLink | None, list[float]]] = {}
        """When the messages arrived that wait at an address, by the link on which they came; seconds."""

    def row(self, party: Party) -> PartyRow:
        """Its row."""
        if isinstance(party, Window):
            return _window_row(party)
        entry = party.broker.entry if isinstance(party.broker, Broker) else party.entry
        assert entry is not None
        if isinstance(party, EgressLink):
            row = self._granting(entry, party)
            return self._subscribing(entry, party, row) if party.root is None else row
        return self._holding(entry, party)

    def _row(self, entry: AddressEntry, link: AnyLink, role: str) -> PartyRow:
        """What all links have."""
        connection = self._connections.get(link.port.id)
        peer = connection.peer if connection is not None else None
        return PartyRow(
            name=link.name,
            identity=str(link.id),
            key=key_of(entry),
            treatment=entry.treatment.value,
            role=role,
            connection_id=str(link.port.id),
            container=peer.container if peer is not None else "",
            neighbor=link.port.neighbor,
            root=link.root,
        )

    def _granting(self, entry: AddressEntry, link: EgressLink) -> PartyRow:
        granted = credit_of(link)
        oldest = next(iter(link.waiting), None)
        return attrs.evolve(
            self._row(entry, link, "subscriber" if link.root is None else "circuit out"),
            granted=granted,
            weight=link.weight,
            waiting_count=len(link.waiting),
            oldest_wait_seconds=_age(oldest.arrived if oldest is not None else self._now, self._now),
            unsettled_count=link.outstanding,
            is_draining=granted > 0 and bool(pn_link_get_drain(link.handle)),
        )

    def _subscribing(self, entry: AddressEntry, link: EgressLink, row: PartyRow) -> PartyRow:
        broker = entry.broker
        known = broker.machine.audience.subscribers.get(link) if isinstance(broker, MulticastBroker) else None
        return attrs.evolve(
            row,
            brokered=link.brokered if broker is not None else row.granted,
            missed_count=known.missed if known is not None else 0,
            zero_credit_seconds=self._since(known.zero_since) if known is not None else None,
            excluded_seconds=self._since(known.excluded_at) if known is not None else None,
            is_withdrawn=link.is_withdrawn and row.granted == 0,
        )

    def _holding(self, entry: AddressEntry, link: IngressLink) -> PartyRow:
        row = self._row(entry, link, "publisher" if link.root is None else "circuit in")
        waiting = self._waiting_of(entry).get(link, ())
        row = attrs.evolve(
            row, waiting_count=len(waiting), oldest_wait_seconds=_age(min(waiting, default=self._now), self._now)
        )
        circuit = _circuit(link)
        if circuit is not None:
            return attrs.evolve(row, held=circuit.out, weight=circuit.weight, is_draining=circuit.is_draining)
        broker = entry.broker
        publisher = broker.publishers.attached.get(link) if isinstance(broker, Broker) else None
        blocked_s = _blocked_s(link, publisher, self._now)
        return attrs.evolve(
            row,
            held=_held(link, publisher),
            lowered=publisher.lowered if publisher is not None else 0,
            weight=int(publisher is not None and publisher.is_busy),
            zero_credit_seconds=int(blocked_s) if blocked_s is not None else None,
        )

    def _waiting_of(self, entry: AddressEntry) -> Mapping[IngressLink | None, Sequence[float]]:
        found = self._waiting.get(entry)
        if found is None:
            found = self._waiting[entry] = {}
            for transfer in entry.waiting:
                assert isinstance(transfer, Transfer)
                found.setdefault(transfer.ingress, []).append(transfer.arrived)
        return found

    def _since(self, time: float) -> int | None:
        return None if time == math.inf else _age(time, self._now)


def _window_row(window: Window) -> PartyRow:
    entry = window.broker.entry
    name = f"window/{key_of(entry)}/{window.root}/{window.neighbor}"
    return PartyRow(
        name=name,
        identity=name,
        key=key_of(entry),
        treatment=entry.treatment.value,
        role="window",
        neighbor=window.neighbor,
        root=window.root,
        granted=window.credit,
        unsettled_count=window.unsettled,
    )
