"""Where subscribers had better be: what is said of every router is what trying it gives."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given

from mesh_config.models import Treatment
from router.whatif.analysis.connectivity import analyse
from router.whatif.analysis.subscriber_placement import AddressUse, SingleFailures, load_places, loss_places
from router.whatif.analysis.suggest import distances
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.elements import SubscriberSite
from router.whatif.model.mesh_model import Model
from tests.whatif.small import address, demand, mesh, models, site


def audiences(model: Model) -> Iterator[tuple[Network, AddressUse]]:
    network = Network.of(model)
    kernel = Kernel(network)
    for number in range(len(network.addresses)):
        yield network, AddressUse(network, kernel, distances(kernel), number)


def with_sites(model: Model, text: str, routers: list[str]) -> Model:
    others = [each for each in model.subscribers if each.address != text]
    sites = [SubscriberSite(address=text, router=router) for router in sorted(set(routers))]
    return attrs.evolve(model, subscribers=[*others, *sites])


def load_of(model: Model, text: str) -> float:
    """Cost times messages on all links, with this address alone; infinite when somebody reaches nobody."""
    alone = attrs.evolve(model, demands=[each for each in model.demands if each.address == text])
    network = Network.of(alone)
    kernel = Kernel(network)
    if kernel.lost_rate:
        return float("inf")
    carried = kernel.loads()[0].reshape(-1, 2).sum(axis=1)
    return float((carried * network.link_cost).sum()) / MICRO


def lost_of(model: Model, text: str) -> float:
    """Messages/s of living routers that find nobody, over every single failure, by trying each."""
    whole = nx.MultiGraph()
    whole.add_nodes_from(router.id for router in model.routers)
    whole.add_edges_from((link.a, link.b, link.id) for link in model.links)
    sites = {each.router for each in model.subscribers if each.address == text}
    sent = [(each.src, each.msgs_per_s) for each in model.demands if each.address == text]

    def lost(among: nx.MultiGraph) -> float:
        served = {router for at in sites if at in among for router in nx.node_connected_component(among, at)}
        return sum(rate for src, rate in sent if src in among and src not in served)

    total = 0.0
    for edge in list(whole.edges(keys=True)):
        rest = whole.copy()
        rest.remove_edge(*edge)
        total += lost(rest)
    for router in list(whole):
        rest = whole.copy()
        rest.remove_node(router)
        total += lost(rest)
    return total


@given(models(most=6))
def test_the_load_of_every_place_is_what_the_kernel_finds(model: Model) -> None:
    unbounded = attrs.evolve(model, subscribers=[attrs.evolve(each, credit=None) for each in model.subscribers])
    for network, audience in audiences(unbounded):
        text = network.addresses[audience.address]
        for rest in (list(audience.sites), list(audience.sites)[1:]):
            found = audience.loads_with(rest)
            for router, name in enumerate(network.routers):
                wanted = load_of(with_sites(unbounded, text, [*(network.routers[at] for at in rest), name]), text)
                assert found[router] == pytest.approx(wanted, abs=1e-4)


@given(models(most=6))
def test_what_is_lost_with_every_place_is_what_trying_every_failure_gives(model: Model) -> None:
    for network, audience in audiences(model):
        text = network.addresses[audience.address]
        ends = list(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True))
        failures = SingleFailures.of(analyse(len(network.routers), ends), len(ends), audience.sites)
        for rest in (list(audience.sites), list(audience.sites)[1:]):
            found = audience.losses_with(rest, failures)
            for router, name in enumerate(network.routers):
                wanted = lost_of(with_sites(model, text, [*(network.routers[at] for at in rest), name]), text)
                assert found[router] == pytest.approx(wanted, abs=1e-3)


@given(models(most=6))
def test_places_are_better_than_what_there_is_and_none_is_missed(model: Model) -> None:
    for network, audience in audiences(model):
        ends = list(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True))
        assume(audience.sites and audience.srcs.size)
        connectivity = analyse(len(network.routers), ends)
        failures = SingleFailures.of(connectivity, len(ends), audience.sites)
        for places, values in (
            (list(load_places(audience)), audience.loads_with),
            (list(loss_places(audience, connectivity, len(ends))), lambda sites: audience.losses_with(sites, failures)),  # noqa: B023
        ):
            said = {(place.taken_from, place.router): place.after for place in places}
            for gone in (None, *audience.sites):
                rest = [at for at in audience.sites if at != gone]
                before = values(audience.sites)[audience.sites[0]]
                for router, after in enumerate(values(rest)):
                    is_better = router not in audience.sites and after < before * (1 - 1e-6)
                    if np.isfinite(before):
                        assert ((gone, router) in said) == is_better
                    if (gone, router) in said:
                        assert said[gone, router] == after


def test_subscribers_go_to_where_messages_come_from() -> None:
    model = mesh(
        "A-B B-C C-D D-E",
        addresses=[address("q")],
        subscribers=[site("q", "E")],
        demands=[demand("A", "q", 10), demand("B", "q", 90)],
    )
    ((network, audience),) = audiences(model)
    best = max((place for place in load_places(audience) if place.taken_from is not None), key=lambda it: it.gain)
    assert network.routers[best.router] == "B"
    assert (best.before, best.after) == (10 * 4 + 90 * 3, 10)


def test_a_multicast_grows_by_the_way_to_its_tree_only() -> None:
    model = mesh(
        "A-B B-C C-D C-E",
        addresses=[address("all", Treatment.MULTICAST)],
        subscribers=[site("all", "D")],
        demands=[demand("A", "all", 2)],
    )
    ((network, audience),) = audiences(model)
    found = dict(zip(network.routers, audience.loads_with(audience.sites).tolist(), strict=True))
    assert found == {"A": 6, "B": 6, "C": 6, "D": 6, "E": 8}
