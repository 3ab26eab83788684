"""What a mesh carries and loses, worked out anew for every scenario in plain Python: slow, and easy to read.

Trees come from `router/core/linkstate/spf.py`, the one that routers use; everything else is written apart from the
kernel and knows nothing of its arrays: routers, links and addresses go by their ids.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import attrs
import networkx as nx

from mesh_config.models import Treatment
from router.core.linkstate.spf import Paths, Topology
from router.whatif.model.elements import LinkEdge, SubscriberSite
from router.whatif.model.mesh_model import Model

Arc = tuple[str, str]
"""The router that sends, the router that receives."""
Amount = tuple[int, int]
"""Millionths of messages/s, millionths of bytes/s."""
TreeRule = Callable[[Mapping[str, Mapping[str, int]], str], Paths]
"""The tree of a root, by costs of directed edges."""


def mesh_rule(edges: Mapping[str, Mapping[str, int]], root: str) -> Paths:
    """As routers do it."""
    topology = Topology()
    topology.replace(edges)
    paths = topology.paths(root)
    assert paths is not None
    return paths


def rule_by_greatest_id(edges: Mapping[str, Mapping[str, int]], root: str) -> Paths:
    """Wrong: of predecessors at the same distance the one with the greatest id."""
    return _wrong(edges, root, lambda far, router: (far, [-ord(letter) for letter in router], -len(router)))


def rule_by_id_alone(edges: Mapping[str, Mapping[str, int]], root: str) -> Paths:
    """Wrong: of predecessors the one with the least id, however far it is."""
    return _wrong(edges, root, lambda far, router: router)


def _wrong(edges: Mapping[str, Mapping[str, int]], root: str, key: Callable[[int, str], Any]) -> Paths:
    """A tree with predecessors chosen by another key of (distance, id), which tests have to notice."""
    right = mesh_rule(edges, root)
    chosen: dict[str, str] = {}
    first: dict[str, str] = {}
    for router in right.order[1:]:
        there = [peer for peer, cost in edges[router].items() if right.distance[peer] + cost == right.distance[router]]
        before = chosen[router] = min(there, key=lambda peer: key(right.distance[peer], peer))
        first[router] = router if before == root else first[before]
    return attrs.evolve(right, predecessor=chosen, next_hop=first)


def micro(amount: float) -> int:
    return round(amount * 1e6)


def directed(link: LinkEdge) -> list[tuple[Arc, int]]:
    """Cost of each direction."""
    return [((link.a, link.b), link.costs[0]), ((link.b, link.a), link.costs[1])]


def split(total: int, shares: int) -> list[int]:
    """In equal parts, by turns from the first."""
    return [total // shares + (turn < total % shares) for turn in range(shares)]


class Naive:
    """A model, evaluated from nothing each time."""

    def __init__(self, model: Model, rule: TreeRule = mesh_rule, *, is_split: bool = False) -> None:
        self.model = model
        self.rule = rule
        self.is_split = is_split
        self.treatment = {address.text: address.treatment for address in model.addresses}
        self.sites: dict[str, list[SubscriberSite]] = defaultdict(list)
        for site in model.subscribers:
            self.sites[site.address].append(site)
        self.pairs: Counter[tuple[str, str, int]] = Counter()
        self.published: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        for demand in model.demands:
            amounts = micro(demand.msgs_per_s), micro(demand.msgs_per_s * demand.msg_bytes)
            for kind in (0, 1):
                if demand.dst is not None:
                    self.pairs[demand.src, demand.dst, kind] += amounts[kind]
                else:
                    assert demand.address is not None
                    self.published[demand.src, demand.address][kind] += amounts[kind]
        self.base = self.state()

    # One state.

    def state(self, links: Iterable[str] = (), routers: Iterable[str] = ()) -> State:
        return State(self, set(links), set(routers))

    # What is compared with the base state.

    def unreachable(self, now: State) -> set[Arc]:
        return set(self.base.distance) - set(now.distance)

    def stretches(self, now: State) -> list[int]:
        """Thousandths, rounded half up, of all ordered pairs that had a path and have one; ascending."""
        return sorted(
            (2000 * cost + self.base.distance[pair]) // (2 * self.base.distance[pair])
            for pair, cost in now.distance.items()
        )

    def stretch(self, now: State, percent: int) -> int:
        found = self.stretches(now)
        return found[math.ceil(percent * len(found) / 100) - 1] if found else 0

    def delay_us(self, now: State, percent: int) -> int:
        """Of all ordered pairs that have a path; -1 when there is none, or no delay is known."""
        if not any(link.delay_ms for link in self.model.links) or not now.distance:
            return -1
        found = sorted(now.delay_us(src, dst) for src, dst in now.distance)
        return found[math.ceil(percent * len(found) / 100) - 1]

    def dead_addresses(self, now: State) -> set[str]:
        had = {site.address for site in self.model.subscribers}
        return had - {site.address for site in self.model.subscribers if site.router in now.alive}

    def misses(self, state: State, address: str) -> dict[str, int]:
        """Messages of each router to an address that reach nobody."""
        return {src: amount for (src, text), amount in state.missing_from.items() if text == address and amount}

    def components(self, now: State) -> int:
        graph = nx.Graph()
        graph.add_nodes_from(now.alive)
        graph.add_edges_from(tuple(ends) for ends in now.used)
        return nx.number_connected_components(graph)

    def utilisation(self, now: State, yardstick: Naive | None = None) -> dict[tuple[str, str], float]:
        """By link and router that sends, for those that are in use.

        Args:
            yardstick: by whose busiest link all are measured, if it is not known of any of its links what it can carry.
        """
        found = {}
        calm = (yardstick or self).base.loads
        is_known = any(link.capacity_msgs or link.capacity_bytes for link in (yardstick or self).model.links)
        busiest = [max((v for (*_, k), v in calm.items() if k == kind), default=0) for kind in (0, 1)]
        for link in now.in_use():
            given = link.capacity_msgs, link.capacity_bytes
            for src in (link.a, link.b):
                shares = [0.0]
                for kind in (0, 1):
                    load = now.loads[link.id, src, kind]
                    if is_known and given[kind] is not None:
                        shares.append(load / max(1, micro(given[kind])))
                    elif not is_known and busiest[kind]:
                        shares.append(load / busiest[kind])
                found[link.id, src] = max(shares)
        return found


class State:
    """A mesh with something failed, or nothing."""

    def __init__(self, naive: Naive, links: set[str], routers: set[str]) -> None:
        self.naive = naive
        model = naive.model
        self.alive = frozenset(router.id for router in model.routers) - routers
        up = [link for link in model.links if link.id not in links and {link.a, link.b} <= self.alive]
        self.used: dict[Arc, LinkEdge] = {}
        self.cheapest: dict[Arc, list[LinkEdge]] = defaultdict(list)
        """From each router to a neighbor those links that cost the least, by id."""
        for link in sorted(up, key=lambda it: it.id):
            for ends, cost in directed(link):
                there = self.cheapest[ends]
                least = min((dict(directed(each))[ends] for each in there), default=cost)
                if cost < least:
                    there.clear()
                if cost <= least:
                    there.append(link)
        for ends, there in self.cheapest.items():
            self.used[ends] = there[0]
        self.edges: dict[str, dict[str, int]] = {router: {} for router in sorted(self.alive)}
        for ends, link in self.used.items():
            self.edges[ends[0]][ends[1]] = dict(directed(link))[ends]
        self.trees = {router: naive.rule(self.edges, router) for router in sorted(self.alive)}
        self.distance = {
            (src, dst): cost for src, tree in self.trees.items() for dst, cost in tree.distance.items() if src != dst
        }
        self.next_hop = {(src, dst): hop for src, tree in self.trees.items() for dst, hop in tree.next_hop.items()}
        self.loads: Counter[tuple[str, str, int]] = Counter()
        """By link, router that sends, and 0 for messages or 1 for bytes."""
        self.lost = [0, 0]
        self.starved: set[tuple[str, str]] = set()
        """Living routers and addresses to which they send, of which something is taken by nobody."""
        self.missing: Counter[str] = Counter()
        """Messages to an address that reach nobody, those of dead routers included."""
        self.missing_from: Counter[tuple[str, str]] = Counter()
        self.delivered_hops = 0
        """Sum over all that arrives of messages times links passed; of a multicast each copy that a link carries."""
        self.toward: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
        """With equal splitting: what routers send, by destination."""
        self._flow()

    def _flow(self) -> None:
        for (src, dst, kind), amount in self.naive.pairs.items():
            if not self.send(src, dst, kind, amount):
                self.lost[kind] += amount
        bounded: dict[str, list[tuple[str, list[int]]]] = defaultdict(list)
        for (src, address), amounts in sorted(self.naive.published.items()):
            treatment = self.naive.treatment[address]
            if treatment is Treatment.MULTICAST:
                self.multicast(src, address, amounts)
            elif treatment is Treatment.CLOSEST:
                self.closest(src, address, amounts)
            else:
                bounded[address].append((src, amounts))
        for address, published in bounded.items():
            self.balanced(address, published)
        for (dst, kind), sent in self.toward.items():
            self.split_toward(dst, kind, sent)

    def in_use(self) -> list[LinkEdge]:
        """Links over which messages may go."""
        is_split = self.naive.is_split
        found = [link for ends, links in self.cheapest.items() for link in (links if is_split else [self.used[ends]])]
        return list({link.id: link for link in found}.values())

    def carry(self, src: str, dst: str, kind: int, amount: int, link: LinkEdge | None = None) -> None:
        self.loads[(link or self.used[src, dst]).id, src, kind] += amount
        if kind == 0:
            self.delivered_hops += amount

    def path(self, src: str, dst: str) -> list[str]:
        """Hop by hop, each router by its own tree."""
        found = [src]
        while found[-1] != dst:
            found.append(self.next_hop[found[-1], dst])
        return found

    def is_joined(self, src: str, dst: str) -> bool:
        return src in self.alive and (src == dst or (src, dst) in self.distance)

    def send(self, src: str, dst: str, kind: int, amount: int) -> bool:
        if not self.is_joined(src, dst):
            return False
        if self.naive.is_split:
            self.toward[dst, kind][src] += amount
            return True
        for one, other in pairwise(self.path(src, dst)):
            self.carry(one, other, kind, amount)
        return True

    def split_toward(self, dst: str, kind: int, sent: Counter[str]) -> None:
        """What flows to *dst*, the farthest router first, split equally over all links on shortest paths."""
        far = {src: cost for (src, to), cost in self.distance.items() if to == dst} | {dst: 0}
        for router in sorted(far.keys() - {dst}, key=lambda it: (-far[it], it)):
            hops = [
                peer
                for peer, cost in sorted(self.edges[router].items())
                if far.get(peer, math.inf) + cost == far[router]
            ]
            ways = [(hop, link) for hop in hops for link in self.cheapest[router, hop]]
            for (hop, link), amount in zip(ways, split(sent[router], len(ways)), strict=True):
                self.carry(router, hop, kind, amount, link)
                sent[hop] += amount

    # Addresses.

    def reachable(self, src: str, address: str) -> list[tuple[int, SubscriberSite]]:
        """Sites and how far they are, the nearest first."""
        found = [
            (self.trees[src].distance[site.router], site)
            for site in self.naive.sites[address]
            if self.is_joined(src, site.router)
        ]
        return sorted(found, key=lambda it: (it[0], it[1].router))

    def miss(self, src: str, address: str, amounts: Iterable[int], copies: int = 1) -> None:
        for kind, amount in enumerate(amounts):
            self.lost[kind] += amount * copies
            if kind == 0:
                self.missing[address] += amount * copies
                self.missing_from[src, address] += amount * copies

    def closest(self, src: str, address: str, amounts: list[int]) -> None:
        there = self.reachable(src, address)
        if not there:
            self.miss(src, address, amounts)
            if src in self.alive:
                self.starved.add((src, address))
            return
        nearest = [site for far, site in there if far == there[0][0]]
        for kind, amount in enumerate(amounts):
            for site, share in zip(nearest, split(amount, len(nearest)), strict=True):
                assert self.send(src, site.router, kind, share)

    def multicast(self, src: str, address: str, amounts: list[int]) -> None:
        sites = [site.router for site in self.naive.sites[address]]
        reached = [router for router in sites if self.is_joined(src, router)]
        arcs: set[Arc] = set()
        for node in reached:
            while node != src:
                before = self.trees[src].predecessor[node]
                arcs.add((before, node))
                node = before  # noqa: PLW2901
        for kind, amount in enumerate(amounts):
            for one, other in arcs:
                self.carry(one, other, kind, amount)
        self.miss(src, address, amounts, max(1, len(sites)) - len(reached))
        if src in self.alive and not reached:
            self.starved.add((src, address))

    def balanced(self, address: str, published: list[tuple[str, list[int]]]) -> None:
        has_delays = any(link.delay_ms for link in self.naive.model.links)
        left = {src: list(amounts) for src, amounts in published}
        total = dict(published)
        credit = {site.router: site.credit for site in self.naive.sites[address]}
        free = {router: None if given is None else given * 10**12 for router, given in credit.items()}
        found: set[str] = set()
        offers = [(far, src, site.router, site) for src in left for far, site in self.reachable(src, address)]
        for _, src, dst, site in sorted(offers, key=lambda it: it[:3]):
            found.add(src)
            taken = left[src][0]
            busy_us = 2 * self.delay_us(src, dst) + round((site.service_ms or 0) * 1000)
            room = free[dst]
            if room is not None and (has_delays or site.service_ms) and busy_us:
                taken = min(taken, room // busy_us)
                free[dst] = room - taken * busy_us
            size = left[src][1]
            if taken < left[src][0]:
                size = min(size, int(float(total[src][1]) * (float(taken) / float(total[src][0]))))
            for kind, amount in enumerate((taken, size)):
                assert self.send(src, dst, kind, amount)
                left[src][kind] -= amount
        for src, amounts in left.items():
            if amounts[0] or src not in found:
                self.miss(src, address, amounts)
                if src in self.alive:
                    self.starved.add((src, address))

    def delay_us(self, src: str, dst: str) -> int:
        """One way; links whose delay is not known add nothing."""
        used = (self.used[ends] for ends in pairwise(self.path(src, dst)))
        return sum(round((link.delay_ms or 0) * 1000) for link in used)
