"""Single points of failure: routers, links and groups whose loss alone takes something from the others.

What was played in a run is read from its table; what was not, since other failures were asked for or only a sample, is
played here. Where no path is lost nothing can be lost but credit that a longer path keeps for longer, so that without
bounded credit only bridges, articulation points and routers with subscribers are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from mesh_config.models import Treatment
from router.whatif.analysis.connectivity import Connectivity, analyse
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, TREATMENTS, Network
from router.whatif.model.elements import GroupKind
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import from_rows
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.wording import BASE

Row = dict[str, object]


@attrs.frozen(kw_only=True)
class Harm:
    """Harm that a scenario does to those that live; rates in millionths."""

    scenario: int | None
    pairs: int
    dead_addresses: int
    starved_publishers: int
    lost_rate: int


def spof_table(outcomes: Outcomes, model: Model, network: Network, kernel: Kernel) -> pa.Table:
    """The table `router_spof` of the mesh as it is.

    Args:
        outcomes: of a run.
        model: that was run.
        network: of that model.
        kernel: of that network, in its base state; so it is left.
    """
    return from_rows("router_spof", spof_rows(outcomes, model, network, kernel))


def spof_rows(
    outcomes: Outcomes | None, model: Model, network: Network, kernel: Kernel, *, variant: str = BASE
) -> Iterator[Row]:
    """Rows of the table `router_spof`, in no order; without outcomes everything is played here.

    Args:
        outcomes: outcomes of a run; None when there is none.
        model: the mesh.
        network: network of *model*.
        kernel: kernel of *network*, in its base state.
        variant: name of the variant of the run's model that *model* is.
    """
    elements = FailureCandidates.of(model)
    kinds = {group.name: str(group.kind) for group in elements.groups}
    calm = Harm(
        scenario=0,
        pairs=0,
        dead_addresses=kernel.dead_addresses,
        starved_publishers=kernel.starved_publishers,
        lost_rate=kernel.lost_rate,
    )
    played: set[tuple[str, str]] = set()
    for word, name, row in () if outcomes is None else outcomes.alone(variant=variant):
        key = kinds[name] if word == "group" else word, name
        played.add(key)
        yield from _row(*key, _harm_of(row), calm)
    for kind, name, links, routers in _candidates(elements, network):
        if (kind, name) not in played:
            kernel.fail(links, routers)
            harm = Harm(
                scenario=None,
                pairs=kernel.unreachable_pairs - kernel.dead_end_pairs,
                dead_addresses=kernel.dead_addresses,
                starved_publishers=kernel.starved_publishers,
                lost_rate=kernel.lost_rate,
            )
            kernel.restore()
            yield from _row(kind, name, harm, calm)


def _harm_of(row: dict[str, Any]) -> Harm:
    return Harm(
        scenario=row["scenario"],
        pairs=row["unreachable_pairs"] - row["dead_end_pairs"],
        dead_addresses=row["dead_addresses"],
        starved_publishers=row["starved_publishers"],
        lost_rate=round(row["lost_msgs_per_s"] * MICRO),
    )


def _row(kind: str, element: str, harm: Harm, calm: Harm) -> Iterator[Row]:
    """The row of an element, if its loss takes anything that was there before."""
    dead = harm.dead_addresses - calm.dead_addresses
    starved = max(0, harm.starved_publishers - calm.starved_publishers)
    if harm.pairs or dead > 0 or starved:
        yield {
            "kind": kind,
            "element": element,
            "scenario": harm.scenario,
            "is_cut": harm.pairs > 0,
            "unreachable_pairs": harm.pairs,
            "dead_addresses": dead,
            "starved_publishers": starved,
            "lost_msgs_per_s": max(0, harm.lost_rate - calm.lost_rate) / MICRO,
        }


def _candidates(
    elements: FailureCandidates, network: Network
) -> Iterator[tuple[str, str, Iterable[int], Iterable[int]]]:
    """Candidates for a single point of failure: kind, name, links and routers."""
    found = analyse(len(elements.routers), elements.ends)
    has_bounds = bool((network.subscriber_credit >= 0).any()) and bool(
        (network.treatment == TREATMENTS.index(Treatment.BALANCED)).any()
    )
    links = range(len(elements.links)) if has_bounds else found.bridges
    routers = range(len(elements.routers)) if has_bounds else _routers(found, network)
    for link in links:
        yield "link", elements.links[link], [link], ()
    for router in routers:
        yield "router", elements.routers[router], (), [router]
    for group in elements.groups:
        if group.kind is not GroupKind.MAINTENANCE:
            yield str(group.kind), group.name, group.links, group.routers


def _routers(found: Connectivity, network: Network) -> list[int]:
    """Articulation points, and routers with subscribers."""
    return sorted({*found.cuts, *np.unique(network.subscriber_router).tolist()})
