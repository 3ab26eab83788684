"""A model as the arrays that the kernel computes on: routers, links and addresses are places in sorted order.

Rates are whole numbers of millionths (of a message or a byte) per second, so that sums are exact in whatever order they
are made: an incremental result equals a full one bit for bit, and so do two machines' results. Where all bytes together
would not fit into 64 bits they are counted in a larger unit, a power of two of millionths, see `Network.byte_shift`.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from mesh_config.models import Treatment
from router.whatif.model.demands import NOBODY
from router.whatif.model.mesh_model import Model

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

MICRO: Final = 1_000_000
"""Millionths in one: of a message, a byte, a second."""
MAX_ROUTERS: Final = 32_000
"""Places of routers are numbers of 16 bits."""
MAX_RATE: Final = 2**62
"""Sum that all demands together may come to, in their units; sums of them fit into 64 bits."""
MAX_BYTE_SHIFT: Final = 20
"""Binary digits: the largest unit in which bytes are counted is 1.05 byte/s."""
MAX_CREDIT: Final = 4_000_000
"""Messages; more credit than this at one router counts as this."""
CREDIT_UNIT: Final = MICRO * MICRO
"""Credit is counted in millionths of a message times a second's millionths: rate times time without rounding."""
TREATMENTS: Final = (Treatment.CLOSEST, Treatment.BALANCED, Treatment.MULTICAST)
"""Treatments in the order of the numbers that stand for them."""


class NetworkError(ValueError):
    """A model that is sound but too large for the kernel's numbers."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Network:
    """Arrays of a model, as the kernel needs them.

    A pair of neighbors is an adjacency, however many links are between them; each of its two directions is an arc.
    The arcs that leave a router are next to each other, by the place of their head. Direction 0 of a link leads from
    its end `a` to its end `b`, whose place is higher; `2 * link + direction` is a directed link.
    """

    routers: tuple[str, ...]
    """Ids, sorted: a router is its place here."""
    links: tuple[str, ...]
    """Ids, sorted: a link is its place here."""
    link_a: Ints
    link_b: Ints
    link_cost: Ints
    """Costs in direction 0, by link."""
    link_cost_back: Ints
    """Costs in direction 1, by link."""
    link_delay_us: Longs
    """One way, microseconds; -1 where it is not known."""
    link_capacity: Floats
    """Capacities by link, in each direction: millionths of messages/s, bytes/s in their unit; infinite if not given."""
    free_capacity: Floats
    """Capacities of links that have neither; 0: the load of the busiest direction of this mesh. Infinite, so that such
    links are never busy, where any link's capacity is known: that tells nothing of the others."""
    first: Ints
    """First arc of each router, by router; at the end the number of arcs."""
    head: Ints
    """Router to which each arc leads, by arc."""
    back: Ints
    """Arc of the other direction, by arc."""
    adjacency: Ints
    """Adjacency of each arc, by arc."""
    parallel_first: Ints
    """First place of each adjacency in `parallel`, by adjacency; at the end the number of links."""
    parallel: Ints
    """Links by adjacency, by (cost, id) in direction 0: the first that works is the one that is used."""
    parallel_back: Ints
    """Links by adjacency, by (cost, id) in direction 1, like `parallel`."""
    demand_src: Ints
    demand_dst: Ints
    demand_rate: Longs
    demand_bytes: Longs
    """Demands between two routers, summed, sorted by (destination, source)."""
    addresses: tuple[str, ...]
    """Texts, sorted: an address is its place here."""
    treatment: Ints
    """Treatment of each address as a place in TREATMENTS, by address."""
    subscriber_first: Ints
    """First subscriber site of each address, by address; at the end the number of sites. Sites are sorted by router."""
    subscriber_router: Ints
    subscriber_credit: Longs
    """Credit by site, CREDIT_UNITs; -1 where it bounds nothing, as credit or time is not known."""
    subscriber_service_us: Longs
    """Service times by site, microseconds; 0 where not known."""
    publisher_src: Ints
    publisher_address: Ints
    publisher_rate: Longs
    publisher_bytes: Longs
    """Demands for addresses, summed by router and address, sorted by them."""
    byte_shift: int = 0
    """Amounts of bytes are in units of two to this power of millionths, the least in which sums of all of them fit.
    Floating point divides by it without a remainder, so shares of a capacity are the same in any unit."""

    @classmethod
    def of(cls, model: Model) -> Network:
        """The arrays of a model that has been checked.

        Raises: NetworkError when it is too large.
        """
        if len(model.routers) > MAX_ROUTERS:
            raise NetworkError(f"{len(model.routers)} routers; expected {MAX_ROUTERS} at most")
        routers = tuple(router.id for router in model.routers)
        place = {router: number for number, router in enumerate(routers)}
        parts = _addresses(model, place)
        shift = _byte_shift(model, _copies(parts["treatment"], parts["subscriber_first"]))
        parts |= _links(model, place, shift)
        parts |= _arcs(len(routers), *(parts[name] for name in ("link_a", "link_b", "link_cost", "link_cost_back")))
        parts |= _pair_demands(model, routers, shift)
        parts |= _publishers(model, routers, shift)
        network = cls(routers=routers, byte_shift=shift, **parts)
        network.check()
        return network

    def check(self) -> None:
        """Check that sums of rates fit into 64 bits and distances into 30.

        Raises: NetworkError
        """
        copies = _copies(self.treatment, self.subscriber_first)
        for unit, pairs, published, shift, most_shift in (
            ("messages/s", self.demand_rate, self.publisher_rate, 0, 0),
            ("bytes/s", self.demand_bytes, self.publisher_bytes, self.byte_shift, MAX_BYTE_SHIFT),
        ):
            total = (
                pairs.astype(np.float64).sum() + (published.astype(np.float64) * copies[self.publisher_address]).sum()
            )
            if total > MAX_RATE:
                raise NetworkError(
                    f"all demands together come to {total * 2**shift / MICRO:.3g} {unit}, a multicast counted for each "
                    f"router with subscribers; expected {MAX_RATE * 2**most_shift / MICRO:.3g} at most"
                )
        most = int(max(self.link_cost.max(initial=1), self.link_cost_back.max(initial=1)))
        longest = most * len(self.routers)
        if longest >= 2**30:
            raise NetworkError(
                f"{len(self.routers)} routers with a cost of {most}: a path may cost "
                f"{longest}; expected less than {2**30}"
            )

    def measured_as(self, base: Network, busiest: Floats) -> Network:
        """Copy of the network with links measured like those of its base, so that both can be compared.

        Where nothing is known of what links of *base* can carry, all are measured by the busiest of them, links too
        that a change has added with a capacity.

        Args:
            base: the mesh of which this is a variant.
            busiest: messages and bytes of the busiest direction of *base*, see `Kernel.busiest`.
        """
        if base.has_capacities:
            return self
        # Growth may have made the unit of bytes another one.
        same = busiest * (1.0, 2.0 ** (base.byte_shift - self.byte_shift))
        return attrs.evolve(self, link_capacity=np.full_like(self.link_capacity, np.inf), free_capacity=same)

    def publishing(self, is_kept: NDArray[np.bool_]) -> Network:
        """Copy of the network with some of its publishers, by a mask, and without demands for routers."""
        none = slice(0)
        return attrs.evolve(
            self,
            **{name: getattr(self, name)[none] for name in ("demand_src", "demand_dst", "demand_rate", "demand_bytes")},
            **{
                name: getattr(self, name)[is_kept]
                for name in ("publisher_src", "publisher_address", "publisher_rate", "publisher_bytes")
            },
        )

    def byte_rates(self, amounts: NDArray[Any]) -> Floats:
        """Amounts of bytes, in this network's unit, as millionths of bytes/s."""
        found: Floats = amounts * 2.0**self.byte_shift
        return found

    @property
    def has_asymmetric_costs(self) -> bool:
        """Whether any link has another cost in each direction."""
        return bool((self.link_cost != self.link_cost_back).any())

    def refuse_asymmetric_costs(self) -> None:
        """Refuse what routes as a mesh does, in which each link has one cost, the larger of what both ends say.

        Raises: NetworkError where a link has another cost in each direction.
        """
        found = np.flatnonzero(self.link_cost != self.link_cost_back).tolist()
        if found:
            more = f" and {len(found) - 1} more have" if len(found) > 1 else " has"
            raise NetworkError(
                f"link {self.links[found[0]]}{more} another cost in each direction, and a mesh uses the larger one for "
                "both; expected the same cost both ways, or a run with --routing ecmp"
            )

    @property
    def has_capacities(self) -> bool:
        """Whether it is known of any link what it can carry."""
        return bool(np.isfinite(self.link_capacity).any())

    @property
    def has_delays(self) -> bool:
        """Whether the delay of any link is known."""
        return bool((self.link_delay_us > 0).any())

    def router(self, number: int) -> str:
        """Id of a router."""
        return self.routers[number]

    def directed_link(self, number: int) -> tuple[str, str, str]:
        """Id of the link, the router that sends, the router that receives."""
        link, direction = divmod(number, 2)
        one, other = self.routers[self.link_a[link]], self.routers[self.link_b[link]]
        return (self.links[link], one, other) if direction == 0 else (self.links[link], other, one)


def _copies(treatment: Ints, subscriber_first: Ints) -> NDArray[np.int64]:
    """Count how often a message to each address may be lost: a multicast once for each router with subscribers."""
    sites = np.diff(subscriber_first)
    copies = np.where(treatment == TREATMENTS.index(Treatment.MULTICAST), sites, 1)
    found: NDArray[np.int64] = np.maximum(1, copies).astype(np.int64)
    return found


def _byte_shift(model: Model, copies: NDArray[np.int64]) -> int:
    """See `Network.byte_shift`; MAX_BYTE_SHIFT where no unit is large enough."""
    demands = model.demands
    addresses = np.append(demands.places([address.text for address in model.addresses]), NOBODY)
    # NOBODY, as a name's place and as an address's, takes the last of each.
    times = np.append(copies, 1)[addresses[demands.address]]
    total = float((demands.msgs_per_s * demands.msg_bytes * times).sum()) * MICRO
    return next((shift for shift in range(MAX_BYTE_SHIFT) if total <= MAX_RATE * 2**shift), MAX_BYTE_SHIFT)


def micro(amounts: Floats, unit: str, shift: int = 0) -> Longs:
    """Convert amounts to whole millionths, or to a larger unit, rounded, half to even.

    Args:
        amounts: each 0 or more.
        unit: of them, for errors.
        shift: see `Network.byte_shift`.
    Returns: of the same shape.
    Raises: NetworkError when sums of them would not fit into 64 bits.
    """
    if amounts.sum() * MICRO > MAX_RATE * 2**shift:
        raise NetworkError(
            f"all demands together come to {amounts.sum():.3g} {unit}; "
            f"expected {MAX_RATE * 2**shift / MICRO:.3g} at most"
        )
    return np.rint(amounts * MICRO / (1 << shift)).astype(np.int64)


def utilisation(rates: NDArray[Any], sizes: NDArray[Any], limits: Any) -> NDArray[np.float64]:
    """Shares of what links can carry: of messages or of bytes, the larger one.

    Args:
        rates: messages that links carry, millionths a second.
        sizes: bytes, in the same unit as the second of *limits*.
        limits: of messages, and of bytes: an array each.
    """
    found: NDArray[np.float64] = np.maximum(rates / limits[0], sizes / limits[1])
    return found


def capacity_units(value: float | None) -> float:
    """Convert a capacity to millionths a second, as the kernel counts; infinite if it is not known.

    Args:
        value: messages/s or bytes/s.
    """
    return np.inf if value is None else float(max(1, round(value * MICRO)))


def _links(model: Model, place: dict[str, int], byte_shift: int) -> dict[str, Any]:
    links = model.links
    delays = [-1 if link.delay_ms is None else round(link.delay_ms * 1000) for link in links]
    capacity = [
        [
            capacity_units(value) / unit
            for value, unit in ((link.capacity_msgs, 1), (link.capacity_bytes, 2**byte_shift))
        ]
        for link in links
    ]
    return {
        "links": tuple(link.id for link in links),
        "link_a": np.array([place[link.a] for link in links], dtype=np.int32),
        "link_b": np.array([place[link.b] for link in links], dtype=np.int32),
        "link_cost": np.array([link.costs[0] for link in links], dtype=np.int32),
        "link_cost_back": np.array([link.costs[1] for link in links], dtype=np.int32),
        "link_delay_us": np.array(delays, dtype=np.int64),
        "link_capacity": np.array(capacity, dtype=np.float64).reshape(len(links), 2),
        "free_capacity": np.full(2, np.inf if np.isfinite(capacity).any() else 0.0),
    }


def _arcs(count: int, link_a: Ints, link_b: Ints, link_cost: Ints, link_cost_back: Ints) -> dict[str, Ints]:
    """Adjacencies and arcs of links between *count* routers."""
    # The last key decides first; links are in the order of their ids.
    parallel, parallel_back = (
        np.lexsort((np.arange(len(link_a)), cost, link_b, link_a)).astype(np.int32)
        for cost in (link_cost, link_cost_back)
    )
    low, high = link_a[parallel], link_b[parallel]
    is_new = np.ones(len(parallel), dtype=bool)
    is_new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    starts = np.flatnonzero(is_new)
    low, high = low[starts], high[starts]
    tail, head = np.concatenate((low, high)), np.concatenate((high, low))
    order = np.lexsort((head, tail))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    adjacencies = len(starts)
    return {
        "first": np.searchsorted(tail[order], np.arange(count + 1)).astype(np.int32),
        "head": head[order].astype(np.int32),
        "back": place[(order + adjacencies) % max(1, 2 * adjacencies)],
        "adjacency": (order % max(1, adjacencies)).astype(np.int32),
        "parallel_first": np.append(starts, len(parallel)).astype(np.int32),
        "parallel": parallel,
        "parallel_back": parallel_back,
    }


def _summed(keys: tuple[Ints, Ints], amounts: tuple[Longs, Longs]) -> tuple[NDArray[Any], ...]:
    """Keys that differ, sorted by the first, then the second, and the sums of the amounts that they have."""
    order = np.lexsort(keys[::-1])
    one, two = (key[order] for key in keys)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    starts = np.flatnonzero(is_new)
    sums = [np.add.reduceat(amount[order], starts) if len(starts) else amount for amount in amounts]
    return one[starts], two[starts], *sums


def _amounts(rates: Floats, sizes: Floats, byte_shift: int) -> tuple[Longs, Longs]:
    """Messages/s and bytes/s in their units."""
    return micro(rates, "messages/s"), micro(rates * sizes, "bytes/s", byte_shift)


def _pair_demands(model: Model, routers: tuple[str, ...], byte_shift: int) -> dict[str, NDArray[Any]]:
    demands = model.demands
    places = demands.places(routers)
    mask = demands.dst != NOBODY
    src, dst = (places[column[mask]] for column in (demands.src, demands.dst))
    rates = demands.msgs_per_s[mask]
    dst, src, rate, size = _summed((dst, src), _amounts(rates, demands.msg_bytes[mask], byte_shift))
    return {"demand_src": src, "demand_dst": dst, "demand_rate": rate, "demand_bytes": size}


def _publishers(model: Model, routers: tuple[str, ...], byte_shift: int) -> dict[str, NDArray[Any]]:
    demands = model.demands
    at_router = demands.places(routers)
    at_address = demands.places([address.text for address in model.addresses])
    mask = demands.address != NOBODY
    rates = demands.msgs_per_s[mask]
    keys = at_router[demands.src[mask]], at_address[demands.address[mask]]
    src, address, rate, size = _summed(keys, _amounts(rates, demands.msg_bytes[mask], byte_shift))
    return {"publisher_src": src, "publisher_address": address, "publisher_rate": rate, "publisher_bytes": size}


def _addresses(model: Model, place: dict[str, int]) -> dict[str, Any]:
    texts = tuple(address.text for address in model.addresses)
    number = {text: at for at, text in enumerate(texts)}
    # A model has them sorted by address and router.
    sites = model.subscribers
    has_delays = any(link.delay_ms for link in model.links)
    credit = [
        NOBODY
        if site.credit is None or not (has_delays or site.service_ms)
        else min(site.credit, MAX_CREDIT) * CREDIT_UNIT
        for site in sites
    ]
    owners = np.array([number[site.address] for site in sites], dtype=np.int32)
    return {
        "addresses": texts,
        "treatment": np.array([TREATMENTS.index(address.treatment) for address in model.addresses], dtype=np.int32),
        "subscriber_first": np.searchsorted(owners, np.arange(len(texts) + 1)).astype(np.int32),
        "subscriber_router": np.array([place[site.router] for site in sites], dtype=np.int32),
        "subscriber_credit": np.array(credit, dtype=np.int64),
        "subscriber_service_us": np.array([round((site.service_ms or 0) * 1000) for site in sites], dtype=np.int64),
    }
