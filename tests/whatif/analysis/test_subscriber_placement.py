"""Where subscribers had better be: what is said of every router is what trying it gives."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import attrs
import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given

from mesh_config.models import Treatment
from router.whatif.analysis.connectivity import analyse
from router.whatif.analysis.subscriber_placement import (
    AddressUse,
    SingleFailures,
    SubscriberPlacement,
    load_places,
    loss_places,
)
from router.whatif.analysis.suggest import SuggestInput, SuggestOptions, distances, subscriber_rows
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
        failures = SingleFailures.of(analyse(len(network.routers), ends), len(ends), audience)
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
        failures = SingleFailures.of(connectivity, len(ends), audience)
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


class CountingSums(np.ndarray[Any, np.dtype[Any]]):
    """Rates that count how often they are summed up by part."""

    sums = 0

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        CountingSums.sums += func is np.bincount
        plain = [np.asarray(each) if isinstance(each, CountingSums) else each for each in args]
        return func(*plain, **kwargs)


def test_messages_are_summed_up_once_for_each_failure_however_many_subscribers() -> None:
    model = mesh(
        " ".join(f"{name}-M" for name in "ABCDEFGH"),
        addresses=[address("q")],
        subscribers=[site("q", router) for router in "ABCDEF"],
        demands=[demand(router, "q", 10) for router in "ABCDEFGH"],
    )
    ((network, audience),) = audiences(model)
    audience.rates = audience.rates.view(CountingSums)
    connectivity = analyse(9, list(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True)))
    CountingSums.sums = 0
    assert list(loss_places(audience, connectivity, 8))
    links_and_routers = 8 + 1 + 6
    sets_of_sites = 1 + 6
    assert CountingSums.sums <= links_and_routers + 1 + sets_of_sites


def ten_addresses() -> SuggestInput:
    """A line of routers, with subscribers of ten addresses at one end and publishers at the other."""
    texts = [f"q{number}" for number in range(10)]
    model = mesh(
        "A-B B-C C-D D-E E-F",
        addresses=[address(text) for text in texts],
        subscribers=[site(text, "F") for text in texts],
        demands=[demand("A", text, number + 1) for number, text in enumerate(texts)],
    )
    network = Network.of(model)
    return SuggestInput(model, network, Kernel(network), SuggestOptions(count=2))


class Asked(tuple[str, ...]):
    """Names of addresses; when one is looked for, the placements in memory are counted."""

    held: list[int]

    def __contains__(self, text: object) -> bool:
        self.held.append(sum(type(each) is SubscriberPlacement for each in gc.get_objects()))
        return super().__contains__(text)


def test_of_many_addresses_no_more_placements_are_held_than_are_suggested() -> None:
    mesh = ten_addresses()
    asked = Asked(mesh.network.addresses)
    asked.held = []
    rows = subscriber_rows(mesh, asked)
    assert rows == subscriber_rows(mesh)
    assert len(rows) == 4 * 2
    of_one_address = 4 * 5
    assert max(asked.held) - asked.held[0] <= len(rows) + of_one_address


def test_the_best_places_over_all_addresses_are_suggested_in_their_order() -> None:
    mesh = ten_addresses()
    places = [
        place
        for number in range(10)
        for place in load_places(AddressUse(mesh.network, mesh.kernel, mesh.distance, number))
        if place.taken_from is not None
    ]
    places.sort(key=lambda it: (-it.gain, it.address, it.router))
    rows = [row for row in subscriber_rows(mesh) if (row["kind"], row["measure"]) == ("move", "load")]
    assert [(row["address"], row["b"], row["gain"]) for row in rows] == [
        (mesh.network.addresses[place.address], mesh.network.routers[place.router], place.gain) for place in places[:2]
    ]
