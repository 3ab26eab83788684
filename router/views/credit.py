"""Rows of credit, from the controllers and their links: who granted how much, who holds how much, and what waits."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import attrs

from router.binding.proton_functions import pn_link_get_drain
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.forwarding.pool_toward_egress import IncomingCircuit, PoolTowardEgress
from router.core.forwarding.publisher_credit import Publisher
from router.core.forwarding.subscriber_credit_pool import busy_publishers
from router.core.forwarding.tree_branch import TreeBranch
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.anycast_controller import AnycastController
from router.dataplane.credit_controller import CreditController
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLink,
    IngressCircuitLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
    local_subscribers,
)
from router.dataplane.multicast_controller import MulticastController
from router.engine.connection import Connection
from router.management.snapshot import CreditRow, PartyRow
from router.views.link_address_rows import AnyLink, credit_of, key_of
from router.views.link_rates import LinkRates
from router.views.paged_lists import AT_ONCE


@attrs.frozen
class CircuitlessNeighborCredit:
    """Credit of the mesh's own making, toward a neighbor that takes no circuit."""

    controller: CreditController
    root: RouterId
    neighbor: RouterId | None
    credit: int
    unsettled: int


Party = AnyLink | CircuitlessNeighborCredit
"""Grantor or holder of credit of an address."""


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
    """Whether an address has a party here whose credit can be told of."""
    return entry.service is None and bool(entry.controller is not None or entry.subscribers)


def parties_in_pieces(
    links: Iterable[AnyLink], controllers: Iterable[CreditController]
) -> Generator[None, None, list[Party]]:
    """List those of all addresses, links in the given order; pauses after each few."""
    found: list[Party] = []
    for number, link in enumerate(links):
        if isinstance(link, SubscriberLink) or _controller_of(link) is not None:
            found.append(link)
        if number % AT_ONCE == AT_ONCE - 1:
            yield
    for number, controller in enumerate(controllers):
        found += _windows(controller)
        if number % AT_ONCE == AT_ONCE - 1:
            yield
    return found


def _controller_of(link: AnyLink) -> CreditController | None:
    """The one that deals the credit of a publisher's link or of a circuit."""
    found = link.controller if isinstance(link, IngressLink | EgressCircuitLink) else None
    return found if isinstance(found, CreditController) else None


def parties_of(entry: AddressEntry) -> Iterator[Party]:
    """Parties of one address: grantors before holders."""
    yield from local_subscribers(entry)
    controller = _broker_of(entry)
    if controller is None:
        return
    yield from _own_circuits(controller)
    yield from _windows(controller)
    for pool in _pools(controller):
        for key in pool.circuits:
            assert isinstance(key, IngressLink)
            yield key
    for link, _ in _publishers(controller):
        yield link


def grantors_of(entry: AddressEntry, most: int) -> list[Party]:
    """List at most *most* parties of an address that grant credit here: subscribers, own circuits and windows."""
    controller = _broker_of(entry)
    own: list[Party] = [*_own_circuits(controller), *_windows(controller)] if controller is not None else []
    return list(islice(chain(local_subscribers(entry), own), most))


def may_be_blocked(entry: AddressEntry) -> bool:
    """Whether publishers attached here may be without credit: a quick look, that is wrong at times."""
    controller = _broker_of(entry)
    return controller is not None and bool(entry.publishers) and bool(entry.waiting or not _is_open(controller))


def oldest_wait_s(entry: AddressEntry, now: float) -> float:
    """Find for how long the first of the messages that wait at an address has waited; 0 when none waits.

    Args:
        entry: the address.
        now: seconds, monotonic.
    Returns: seconds.
    """
    oldest = next(iter(entry.waiting), None)
    return max(0.0, now - oldest.arrived) if isinstance(oldest, Transfer) else 0.0


def busy_behind(entry: AddressEntry) -> int:
    """Busy publishers at other routers that wait for subscribers here, when none of these has credit; else 0."""
    controller = _broker_of(entry)
    if controller is None or not entry.subscribers:
        return 0
    weights = [circuit.weight for pool in _pools(controller) for circuit in pool.circuits.values() if not circuit.out]
    busy = sum(_busy(controller, weight) for weight in weights)
    return 0 if not busy or any(map(credit_of, local_subscribers(entry))) else busy


def _busy(controller: object, weight: int) -> int:
    """Return the number of busy publishers that the weight of a circuit of a controller's address stands for."""
    return busy_publishers(weight) if isinstance(controller, MulticastController) else weight


def _broker_of(entry: AddressEntry) -> CreditController | None:
    assert entry.controller is None or isinstance(entry.controller, CreditController)
    return entry.controller


def _own_circuits(controller: CreditController) -> Iterable[EgressCircuitLink]:
    if isinstance(controller, (AnycastController, MulticastController)):
        return controller.own.values()
    return ()


def _datagrams(controller: CreditController, egress: RouterId) -> int:
    load = controller.entry.remotes.get(egress)
    return load.datagrams if load is not None else 0


def _windows(controller: CreditController) -> Iterator[CircuitlessNeighborCredit]:
    if isinstance(controller, AnycastController):
        for egress in controller.windowed:
            pool = controller.machine.pools.get(egress)
            if pool is not None:
                yield CircuitlessNeighborCredit(
                    controller, egress, pool.next_hop, pool.capacity, _datagrams(controller, egress)
                )
    elif isinstance(controller, MulticastController):
        for ingress, neighbor in controller.windowed:
            tree = controller.machine.trees.get(ingress)
            branch = tree.children.get(neighbor) if tree is not None else None
            if branch is not None:
                yield CircuitlessNeighborCredit(controller, ingress, neighbor, branch.credit, 0)


def _pools(controller: CreditController) -> list[PoolTowardEgress]:
    if isinstance(controller, MulticastController):
        return [tree.pool for tree in controller.machine.trees.values()]
    assert isinstance(controller, AnycastController)
    return list(controller.machine.pools.values())


def _circuit(link: IngressLink) -> IncomingCircuit | None:
    """State of a neighbor's circuit in the machine."""
    if not isinstance(link, IngressCircuitLink):
        return None
    controller, root = link.controller, link.root
    if isinstance(controller, MulticastController):
        return controller.machine.trees[root].pool.circuits.get(link)
    assert isinstance(controller, AnycastController)
    return controller.machine.pools[root].circuits.get(link)


def _branch(link: EgressLink) -> TreeBranch | None:
    """Find the branch of a multicast's tree that a circuit of ours is for; None of another link."""
    if not isinstance(link, EgressCircuitLink) or not isinstance(link.controller, MulticastController):
        return None
    tree = link.controller.machine.trees.get(link.root)
    return tree.children.get(link.port.neighbor) if tree is not None and link.port.neighbor is not None else None


def _publishers(controller: CreditController) -> Iterator[tuple[PublisherLink, Publisher | None]]:
    """Each link, with what the machine knows of it."""
    for key, publisher in controller.publishers.attached.items():
        assert isinstance(key, PublisherLink)
        yield key, publisher
    if isinstance(controller, AnycastController):
        for link in (*controller.first, *controller.second):
            yield link, None


def _held(link: IngressLink, publisher: Publisher | None) -> int:
    return publisher.held if publisher is not None else credit_of(link)


def _blocked_s(link: IngressLink, publisher: Publisher | None, now: float) -> float | None:
    """Seconds that a publisher has been without credit; None when it has some."""
    if _held(link, publisher):
        return None
    since = publisher.since if publisher is not None else -math.inf
    attached_at = link.attached_at if isinstance(link, PublisherLink) else 0.0
    return max(0.0, now - max(since, attached_at))


def blocked_seconds(link: PublisherLink, now: float) -> float | None:
    """Find for how long a publisher of an address has been without credit; None when it has some, or none deals it.

    Args:
        link: the publisher's, not gone.
        now: seconds, monotonic.
    """
    controller = link.controller
    if controller is None:
        return None
    return _blocked_s(link, controller.publishers.attached.get(link), now)


# One address


def credit_row(entry: AddressEntry, now: float) -> CreditRow:
    """The credit of one address, at *now* (seconds, monotonic)."""
    key = key_of(entry)
    subscribers = local_subscribers(entry)
    controller = _broker_of(entry)
    publishers = list(_publishers(controller)) if controller is not None else []
    blocked = [seconds for seconds in (_blocked_s(*each, now) for each in publishers) if seconds is not None]
    return CreditRow(
        name=key,
        identity=key,
        key=key,
        treatment=entry.treatment.value,
        has_subscriber=entry.is_open,
        is_open=_is_open(controller) if controller is not None else any(map(credit_of, subscribers)),
        granted=_granted(entry, subscribers, controller),
        held_by_publishers=sum(_held(*each) for each in publishers),
        held_by_circuits=sum(c.out for pool in _pools(controller) for c in pool.circuits.values()) if controller else 0,
        lowered=controller.publishers.lowered if controller is not None else 0,
        subscriber_count=len(subscribers),
        publisher_count=len(publishers),
        blocked_count=len(blocked),
        blocked_seconds=int(max(blocked, default=0.0)),
        waiting_count=len(entry.waiting),
        departed_count=controller.publishers.departed if controller is not None else 0,
        oldest_wait_seconds=int(oldest_wait_s(entry, now)),
    )


def _is_open(controller: CreditController) -> bool:
    if isinstance(controller, MulticastController):
        return controller.machine.own.machine.is_open()
    assert isinstance(controller, AnycastController)
    # To a reply address one credit is given before any was granted.
    is_reached = any(pool.has_path for pool in controller.machine.pools.values())
    return controller.machine.is_open() or (controller.is_reply and is_reached)


def _granted(entry: AddressEntry, subscribers: list[SubscriberLink], controller: CreditController | None) -> int:
    """Credit that can be dealt here."""
    if isinstance(controller, MulticastController):
        return _granted_together(controller)
    circuits = _own_circuits(controller) if controller is not None else ()
    windows = _windows(controller) if controller is not None else ()
    return sum(map(credit_of, (*subscribers, *circuits))) + sum(window.credit for window in windows)


def _granted_together(controller: MulticastController) -> int:
    machine = controller.machine
    is_ingress = bool(machine.publishers.attached)
    trees = [machine.own] if is_ingress else [tree for tree in machine.trees.values() if tree is not machine.own]
    found = [branch.credit for tree in trees for branch in tree.children.values() if branch.is_counting]
    if machine.local_subscribers.live:
        found.append(machine.local_subscribers.capacity)
    return min(found, default=0)


def _age(arrived: float, now: float) -> int:
    return int(max(0.0, now - arrived))


# One party


class PartyRows:
    """Makes rows of parties, at one moment.

    Args:
        connections: of the router.
        now: seconds, monotonic.
        rates: of its links; None where nobody looks at them.
    """

    def __init__(
        self, connections: Mapping[ConnectionId, Connection], now: float, rates: LinkRates | None = None
    ) -> None:
        self._connections = connections
        self._now = now
        self._rates = rates
        self._waiting: dict[AddressEntry, dict[IngressLink | None, list[float]]] = {}
        """Times of arrival of the messages that wait at an address, by the link on which they came; seconds."""

    def row(self, party: Party) -> PartyRow:
        """Make the row of a party."""
        if isinstance(party, CircuitlessNeighborCredit):
            return _window_row(party)
        if isinstance(party, SubscriberLink):
            return self._subscribing(party.entry, party, self._granting(party.entry, party))
        controller = _controller_of(party)
        assert controller is not None
        if isinstance(party, IngressLink):
            return self._holding(controller.entry, party)
        return self._granting(controller.entry, party)

    def _row(self, entry: AddressEntry, link: AnyLink, role: str) -> PartyRow:
        """Attributes that all links have."""
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
            user=connection.user if connection is not None else "",
            host=connection.host if connection is not None else "",
            neighbor=link.port.neighbor,
            root=link.root if isinstance(link, IngressCircuitLink | EgressCircuitLink) else None,
        )

    def _granting(self, entry: AddressEntry, link: EgressLink) -> PartyRow:
        granted = credit_of(link)
        oldest = next(iter(link.waiting), None)
        branch = _branch(link)
        return attrs.evolve(
            self._row(entry, link, "circuit out" if isinstance(link, EgressCircuitLink) else "subscriber"),
            granted=granted,
            weight=_busy(entry.controller, link.weight) if isinstance(link, EgressCircuitLink) else 0,
            waiting_count=len(link.waiting),
            oldest_wait_seconds=_age(oldest.arrived if oldest is not None else self._now, self._now),
            unsettled_count=link.outstanding,
            last_outcome_seconds=self._since_outcome(link),
            is_draining=granted > 0 and bool(pn_link_get_drain(link.handle)),
            missed_count=branch.missed if branch is not None else 0,
            excluded_seconds=self._since(branch.excluded_at) if branch is not None else None,
        )

    def _since_outcome(self, link: EgressLink) -> int | None:
        sample = self._rates.of(link) if self._rates is not None else None
        return self._since(sample.last_outcome) if sample is not None and sample.last_outcome is not None else None

    def _owing_since(self, link: SubscriberLink) -> float:
        sample = self._rates.of(link) if self._rates is not None and link.outstanding else None
        return math.inf if sample is None or sample.owing_since is None else sample.owing_since

    def _subscribing(self, entry: AddressEntry, link: SubscriberLink, row: PartyRow) -> PartyRow:
        controller = entry.controller
        known = (
            controller.machine.local_subscribers.subscribers.get(link)
            if isinstance(controller, MulticastController)
            else None
        )
        return attrs.evolve(
            row,
            unsettled_seconds=self._since(self._owing_since(link)),
            brokered=controller.lendable(link) if isinstance(controller, CreditController) else row.granted,
            missed_count=known.missed if known is not None else 0,
            zero_credit_seconds=self._since(known.zero_since) if known is not None else None,
            excluded_seconds=self._since(known.excluded_at) if known is not None else None,
            is_withdrawn=link.is_withdrawn and row.granted == 0,
        )

    def _holding(self, entry: AddressEntry, link: IngressLink) -> PartyRow:
        row = self._row(entry, link, "circuit in" if isinstance(link, IngressCircuitLink) else "publisher")
        waiting = self._waiting_of(entry).get(link, ())
        row = attrs.evolve(
            row, waiting_count=len(waiting), oldest_wait_seconds=_age(min(waiting, default=self._now), self._now)
        )
        circuit = _circuit(link)
        if circuit is not None:
            is_asked = circuit.is_draining or circuit.unreturned > 0
            held = circuit.out + circuit.unreturned
            return attrs.evolve(row, held=held, weight=_busy(entry.controller, circuit.weight), is_draining=is_asked)
        controller = entry.controller
        publisher = controller.publishers.attached.get(link) if isinstance(controller, CreditController) else None
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


def _window_row(window: CircuitlessNeighborCredit) -> PartyRow:
    entry = window.controller.entry
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
