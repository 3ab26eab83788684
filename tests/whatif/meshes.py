"""Meshes for the tests of the kernel, and how its state is compared with a naive evaluation."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, LinkEdge, RouterNode, SubscriberSite, link_ids
from router.whatif.model.mesh_model import Model
from tests.whatif.naive import Naive, State

NAMES = ("R1", "R10", "R2", "R9", "a", "B", "b-1", "Z", "r_3", "0")
"""Their order as texts is another one than the order in which they are used."""
COSTS = ((1,), (1, 2), (1, 2, 3), (1, 5, 17, 100), (65535, 1, 30000))
Failure = tuple[list[str], list[str]]
"""Ids of links and of routers."""


def model_of(
    ends: Sequence[tuple[str, str]],
    *,
    routers: Iterable[str] = (),
    costs: Sequence[int] | None = None,
    demands: Iterable[Demand] = (),
    addresses: Iterable[AddressNode] = (),
    subscribers: Iterable[SubscriberSite] = (),
) -> Model:
    """A model of links between these ends, with costs of 1 or as given, and of more routers without links."""
    links = [
        LinkEdge(id=text, a=min(pair), b=max(pair), cost=cost)
        for text, pair, cost in zip(link_ids(ends), ends, costs or [1] * len(ends), strict=True)
    ]
    ids = {*routers, *(end for pair in ends for end in pair)}
    model = Model(
        routers=[RouterNode(id=router) for router in ids],
        links=links,
        demands=demands,
        addresses=addresses,
        subscribers=subscribers,
    )
    model.check()
    return model


def everybody(routers: Iterable[str], msgs_per_s: float = 1.0, msg_bytes: float = 100.0) -> list[Demand]:
    """The same demand between all ordered pairs."""
    ids = list(routers)
    return [
        Demand(src=src, dst=dst, msgs_per_s=msgs_per_s, msg_bytes=msg_bytes) for src in ids for dst in ids if src != dst
    ]


def random_model(
    rng: random.Random, size: int, links: int, costs: Sequence[int], *, is_directed: bool = False
) -> Model:
    """A mesh of so many routers and links, several in parallel perhaps, with demands of all kinds.

    With *is_directed* links cost another amount in each direction, as in no mesh.
    """
    ids = rng.sample([f"{name}{tens}" for tens in range(1 + size // len(NAMES)) for name in NAMES], size)
    ends = [(rng.choice(ids[:place]), ids[place]) for place in range(1, size) if rng.random() < 0.95]
    if size > 1:
        ends += [tuple(rng.sample(ids, 2)) for _ in range(links - len(ends))]
    has_delays = rng.random() < 0.7
    has_credit = rng.random() < 0.5
    edges = [
        LinkEdge(
            id=text,
            a=min(pair),
            b=max(pair),
            cost=rng.choice(costs),
            cost_back=rng.choice(costs) if is_directed else None,
            delay_ms=rng.choice([None, 0.0, 1.5, 1.5, 3.25]) if has_delays else None,
            capacity_msgs=rng.choice([None, None, 5.0]),
            capacity_bytes=rng.choice([None, None, 300.0]),
        )
        for text, pair in zip(link_ids(ends), ends, strict=True)
    ]
    addresses = [
        AddressNode(text=f"{treatment}{number}", treatment=treatment) for treatment in Treatment for number in range(2)
    ]
    sites = [
        SubscriberSite(
            address=address.text,
            router=router,
            credit=rng.choice([None, 0, 1, 2, 5]) if has_credit else None,
            service_ms=rng.choice([None, 100, 500.5]),
        )
        for address in addresses
        for router in rng.sample(ids, rng.randint(0, min(size, 3)))
    ]
    demands = [
        Demand(src=src, dst=dst, msgs_per_s=rng.random() * 3, msg_bytes=rng.choice([0, 100, 33.3]))
        for src in ids
        for dst in ids
        if src != dst and rng.random() < 0.6
    ]
    demands += [
        Demand(src=router, address=address.text, msgs_per_s=rng.choice([0, rng.random()]), msg_bytes=10)
        for router in ids
        for address in addresses
        if rng.random() < 0.5
    ]
    model = Model(
        routers=[RouterNode(id=router) for router in ids],
        links=edges,
        addresses=addresses,
        subscribers=sites,
        demands=demands,
    )
    model.check()
    return model


def random_failure(rng: random.Random, model: Model) -> Failure:
    """Some links and routers, often only one or two."""
    links = rng.sample([link.id for link in model.links], min(len(model.links), rng.choice([0, 1, 1, 2, 2, 4])))
    routers = rng.sample([router.id for router in model.routers], min(len(model.routers), rng.choice([0, 0, 0, 1, 2])))
    return links, routers


@st.composite
def meshes(draw: st.DrawFn, *, most_routers: int = 8, is_directed: bool = False) -> Model:
    """Any mesh; in many of them there are paths of equal cost."""
    size = draw(st.integers(1, most_routers))
    links = draw(st.integers(0, 3 * size))
    costs = draw(st.sampled_from(COSTS))
    return random_model(draw(st.randoms(use_true_random=False)), size, links, costs, is_directed=is_directed)


@st.composite
def meshes_and_failures(
    draw: st.DrawFn, *, most_routers: int = 8, is_directed: bool = False
) -> tuple[Model, list[Failure]]:
    """A mesh and some failures of it."""
    model = draw(meshes(most_routers=most_routers, is_directed=is_directed))
    rng = draw(st.randoms(use_true_random=False))
    return model, [random_failure(rng, model) for _ in range(draw(st.integers(1, 5)))]


def everything(kernel: Kernel) -> tuple[object, ...]:
    """All that can be read of a state."""
    arrays = (*kernel.loads(), *kernel.changed_pairs(with_dead_ends=True), kernel.changed_links(), kernel.distances())
    size = len(kernel.network.routers)
    hops = [kernel.next_hop(src, dst) for src in range(size) for dst in range(size)]
    return (*(array.tolist() for array in arrays), hops, kernel.summary(), kernel.address_impact())


class Both:
    """A mesh in the kernel and in the naive evaluation."""

    def __init__(self, model: Model, naive: Naive | None = None, *, is_split: bool = False) -> None:
        self.model = model
        self.network = Network.of(model)
        self.kernel = Kernel(self.network, is_split=is_split)
        self.naive = naive or Naive(model, is_split=is_split)
        self.is_split = is_split
        self.routers = {router: number for number, router in enumerate(self.network.routers)}
        self.links = {link: number for number, link in enumerate(self.network.links)}

    def fail(self, failure: Failure) -> None:
        links, routers = failure
        self.kernel.fail([self.links[link] for link in links], [self.routers[router] for router in routers])

    def differences(self, failure: Failure = ([], [])) -> list[str]:
        """What the kernel, in which that has failed, says otherwise than the naive evaluation of it."""
        state = self.naive.state(*failure)
        return [*self._routing(state), *self._loads(state), *self._summary(state), *self._addresses(state, failure)]

    def _routing(self, state: State) -> Iterator[str]:
        for src, one in self.routers.items():
            for dst, other in self.routers.items():
                if src != dst:
                    found = self.kernel.distance(one, other)
                    if found != state.distance.get((src, dst), -1):
                        yield f"distance {src} {dst}: {found}"
                    hop = self.kernel.next_hop(one, other)
                    if (self.network.routers[hop] if hop >= 0 else None) != state.next_hop.get((src, dst)):
                        yield f"next hop {src} {dst}: {hop}"

    def _loads(self, state: State) -> Iterator[str]:
        found = self.kernel.loads()
        for link in self.model.links:
            for direction, src in enumerate((link.a, link.b)):
                for kind in (0, 1):
                    load = int(found[kind][2 * self.links[link.id] + direction])
                    expected = state.loads[link.id, src, kind]
                    if load != expected:
                        yield f"load {kind} of {link.id} from {src}: {load}, expected {expected}"

    def _summary(self, state: State) -> Iterator[str]:
        naive, kernel = self.naive, self.kernel
        expected: dict[str, object] = {
            "lost_rate": state.lost[0],
            "lost_bytes": state.lost[1],
            "unreachable_pairs": len(naive.unreachable(state)),
            "dead_end_pairs": sum(not set(pair) <= state.alive for pair in naive.unreachable(state)),
            "starved_publishers": len(state.starved),
            "dead_addresses": len(naive.dead_addresses(state)),
            "components": naive.components(state),
        }
        for percent in (50, 95, 99):
            expected[f"stretch_p{percent}"] = naive.stretch(state, percent)
            expected[f"delay_p{percent}_us"] = -1 if self.is_split else naive.delay_us(state, percent)
        shares = naive.utilisation(state)
        most = max(shares.values(), default=0.0)
        busiest = [self._directed(*key) for key, share in shares.items() if share == most]
        expected["max_utilisation"] = most
        expected["max_utilisation_link"] = min(busiest) if most else -1
        for name, value in expected.items():
            if getattr(kernel, name) != value:
                yield f"{name}: {getattr(kernel, name)}, expected {value}"

    def _addresses(self, state: State, failure: Failure) -> Iterator[str]:
        base = self.naive.base
        is_calm = failure == ([], [])
        expected = []
        for number, address in enumerate(self.network.addresses):
            sites = [site.router for site in self.naive.sites[address]]
            living = sum(router in state.alive for router in sites)
            starved = sum(name == address for _, name in state.starved)
            was_starved = {key for key in base.starved if key[1] == address}
            now_starved = {key for key in state.starved if key[1] == address}
            is_hit = living < len(sites) or was_starved != now_starved
            if is_calm:
                is_listed = starved > 0 or state.missing[address] > 0
            else:
                is_listed = is_hit or self.naive.misses(state, address) != self.naive.misses(base, address)
            if is_listed:
                expected.append((number, living, len(sites) - living, starved, state.missing[address]))
        found = self.kernel.address_impact()
        if found != expected:
            yield f"addresses: {found}, expected {expected}"

    def _directed(self, link: str, src: str) -> int:
        number = self.links[link]
        return 2 * number + (src != self.model.links[number].a)
