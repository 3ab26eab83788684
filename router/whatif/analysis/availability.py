"""Availability, the part of the time in which the mesh serves whom: scenarios weighted by their probabilities.

A run plays some of all possible states of the mesh. What it did not play has a probability too, the *residual*, and in
these states anything may be the case: so each availability is a range, whose ends differ by the residual.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from router.whatif.analysis.connectivity import analyse
from router.whatif.analysis.offered_deliveries import deliveries, deliveries_to
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import files_of, read_table
from router.whatif.wording import BASE, MAINTENANCE, counted, listed

SHOWN: Final = 10
"""Pairs that are named."""
MOST_ROWS: Final = 4_000_000
"""Of `pair_impact`: with more, no pairs are named, since it would take longer than all else together."""


@attrs.frozen(kw_only=True)
class Range:
    """A share of the time, as far as it is known."""

    at_least: float
    at_most: float

    @classmethod
    def of(cls, lost: float, residual: float) -> Range:
        """From the share that is lost in what was played.

        Args:
            lost: sum of probabilities, each times what is lost.
            residual: the probability of what was not played.
        """
        return cls(at_least=min(1.0, max(0.0, 1 - lost - residual)), at_most=min(1.0, max(0.0, 1 - lost)))


@attrs.frozen(kw_only=True)
class AddressAvailability:
    """Part of the time in which an address is served."""

    address: str
    demand: Range
    """Of its messages, the share that reaches a subscriber; a multicast counts for each router with subscribers."""
    subscribed: Range
    """Of the time, the share in which it has a subscriber that lives."""


@attrs.frozen(kw_only=True)
class PairAvailability:
    """Part of the time in which one router has a path to another."""

    src: str
    dst: str
    connected: Range


@attrs.frozen(kw_only=True)
class Availability:
    """Availability as the scenarios of a run tell it."""

    scenarios: int
    """That have a probability and were counted."""
    coverage: float
    """Their probabilities together."""
    residual: float
    """1 - coverage."""
    demand: Range | None
    """Of all messages, the share that is delivered, multicasts as above; None when nothing is sent."""
    lost_msgs_per_s: float
    """The mean, over what was played."""
    pairs: Range | None
    """Of all pairs of routers with a path when nothing fails, the mean share that has one; both routers live."""
    addresses: tuple[AddressAvailability, ...]
    """Those with subscribers or publishers, the least available first."""
    worst_pairs: tuple[PairAvailability, ...]
    """The least available first; empty when the run lists no pairs."""


def availability(
    folder: Path,
    outcomes: Outcomes,
    model: Model,
    calm: Mapping[str, float],
    variant: str = BASE,
    among: NDArray[np.bool_] | None = None,
) -> Availability | None:
    """From a run's tables; None when its scenarios have no probabilities.

    Args:
        folder: of the run.
        outcomes: its scenarios.
        model: that of the *variant*.
        calm: its `calm_losses`.
        variant: of the run's model.
        among: mask of the scenarios that count, others being as those that were not played; None: all of them do.
    Raises: TableError.
    """
    rows = _counted(outcomes, variant)
    if among is not None:
        rows = rows[among[rows]]
    if not rows.size:
        return None
    probability = outcomes.numbers("probability")
    coverage = min(1.0, math.fsum(probability[rows]))
    residual = 1 - coverage
    sent = deliveries(model)
    lost = math.fsum(probability[rows] * outcomes.numbers("lost_msgs_per_s")[rows])
    pairs = connected_pairs(model)
    apart = math.fsum(probability[rows] * outcomes.numbers("unreachable_pairs")[rows])
    weights = np.zeros(int(outcomes.numbers("scenario").max()) + 1)
    weights[outcomes.numbers("scenario")[rows]] = probability[rows]
    return Availability(
        scenarios=len(rows),
        coverage=coverage,
        residual=residual,
        demand=Range.of(lost / sent, residual) if sent else None,
        lost_msgs_per_s=lost,
        pairs=Range.of(apart / pairs, residual) if pairs else None,
        addresses=tuple(_addresses(folder, model, calm, weights, residual)),
        worst_pairs=tuple(_worst_pairs(folder, outcomes, model, weights, residual)),
    )


def unrated(model: Model) -> str:
    """Links and routers that count as never failing, in words: it is not known how often and for how long they do."""
    counts = [
        counted(sum(it.failures_per_year is None or it.repair_hours is None for it in parts), what)
        for parts, what in ((model.links, "link"), (model.routers, "router"))
    ]
    return listed([text for text in counts if not text.startswith("0 ")])


def _counted(outcomes: Outcomes, variant: str) -> NDArray[np.intp]:
    """Rows that count: of a variant, with a probability; no maintenance, whose probabilities have a condition.

    No state of the mesh is there twice: families have no scenario in common, and samples don't repeat.
    """
    is_known = ~np.isnan(outcomes.numbers("probability"))
    return np.flatnonzero(is_known & outcomes.having("variant", variant) & ~outcomes.having("family", MAINTENANCE))


def connected_pairs(model: Model) -> int:
    """Ordered pairs of different routers that have a path when nothing fails."""
    place = {router.id: at for at, router in enumerate(model.routers)}
    sizes = analyse(len(place), [(place[link.a], place[link.b]) for link in model.links]).sizes
    return int((sizes * (sizes - 1)).sum())


def _addresses(
    folder: Path, model: Model, calm: Mapping[str, float], weights: NDArray[np.float64], residual: float
) -> Sequence[AddressAvailability]:
    table = read_table(folder, "address_impact", ["scenario", "address", "subscriber_routers", "lost_msgs_per_s"])
    weight = weights[table.column("scenario").to_numpy()]
    played = math.fsum(weights.tolist())
    lost = weight * table.column("lost_msgs_per_s").to_numpy()
    dead = np.where(table.column("subscriber_routers").to_numpy() == 0, weight, 0.0)
    names = table.column("address").combine_chunks().dictionary_encode()
    codes, known = names.indices.to_numpy(), names.dictionary.to_pylist()
    lost_of = dict(zip(known, np.bincount(codes, lost, len(known)).tolist(), strict=True))
    dead_of = dict(zip(known, np.bincount(codes, dead, len(known)).tolist(), strict=True))
    listed_of = dict(zip(known, np.bincount(codes, weight, len(known)).tolist(), strict=True))
    sent = deliveries_to(model)
    has_subscribers = {site.address for site in model.subscribers}
    found = []
    for name in (address.text for address in model.addresses):
        if name not in has_subscribers and not sent.get(name):
            continue
        # In a scenario that is not listed as much is lost as while nothing fails.
        missing = lost_of.get(name, 0.0) + calm[name] * max(0.0, played - listed_of.get(name, 0.0))
        found.append(
            AddressAvailability(
                address=name,
                demand=Range.of(missing / sent[name] if sent.get(name) else 0.0, residual),
                subscribed=Range.of(dead_of.get(name, 0.0) if name in has_subscribers else played, residual),
            )
        )
    return sorted(found, key=lambda it: (it.demand.at_least, it.subscribed.at_least, it.address))


def calm_losses(model: Model) -> dict[str, float]:
    """By address: messages/s that reach nobody while nothing fails.

    Raises: NetworkError
    """
    if not model.addresses:
        return {}
    network = Network.of(model)
    losses = Kernel(network, is_split=network.has_asymmetric_costs).address_losses()
    return {name: lost / MICRO for name, lost in zip(network.addresses, losses, strict=True)}


# Pairs


def _worst_pairs(
    folder: Path, outcomes: Outcomes, model: Model, weights: NDArray[np.float64], residual: float
) -> list[PairAvailability]:
    """The pairs that are without a path for longest."""
    if not (folder / "pair_impact").is_dir():  # it is elsewhere, and too large for a copy
        return []
    files = files_of(folder, "pair_impact")
    rows = sum(pq.read_metadata(file).num_rows for file in files)
    count = len(model.routers)
    if not 0 < rows <= MOST_ROWS or not count:
        return []
    place = {router.id: at for at, router in enumerate(model.routers)}
    lost = _ends_down(outcomes, place, weights)
    for file in files:
        for batch in pq.ParquetFile(file, read_dictionary=["src", "dst"]).iter_batches(
            columns=["scenario", "src", "dst", "is_lost"]
        ):
            is_lost = batch.column("is_lost").to_numpy(zero_copy_only=False)
            number = batch.column("scenario").to_numpy()
            pair = _places(batch.column("src"), place) * count + _places(batch.column("dst"), place)
            lost += np.bincount(pair[is_lost], weights[number[is_lost]], count * count).reshape(count, count)
    np.fill_diagonal(lost, -1.0)
    flat = lost.ravel()
    order = np.lexsort((np.arange(flat.size), -flat))[:SHOWN]
    ids = [router.id for router in model.routers]
    return [
        PairAvailability(src=ids[at // count], dst=ids[at % count], connected=Range.of(float(flat[at]), residual))
        for at in order
        if flat[at] > 0
    ]


def _places(column: Any, place: Mapping[str, int]) -> NDArray[np.int64]:
    numbers = np.array([place[name] for name in column.dictionary.to_pylist()], dtype=np.int64)
    found: NDArray[np.int64] = numbers[column.indices.to_numpy()]
    return found


def _ends_down(outcomes: Outcomes, place: Mapping[str, int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """By pair: the probability that one of its routers is itself down, from what was played."""
    count = len(place)
    one, both = np.zeros(count), np.zeros((count, count))
    weight = weights[outcomes.numbers("scenario")]
    down = outcomes.column("failed_routers")
    places = np.flatnonzero((weight > 0) & (pc.list_value_length(down).to_numpy() > 0))
    for at, names in zip(places, down.take(pa.array(places)).to_pylist(), strict=True):
        failed = [place[name] for name in names if name in place]
        one[failed] += weight[at]
        if len(failed) > 1:
            both[np.ix_(failed, failed)] += weight[at]
    np.fill_diagonal(both, 0.0)
    ends: NDArray[np.float64] = one[:, None] + one[None, :] - both
    return ends
