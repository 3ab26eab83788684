"""Availability, the part of the time in which the mesh serves whom: scenarios weighted by their probabilities.

A run plays some of all possible states of the mesh. What it did not play has a probability too, the *residual*, and in
these states anything may be the case: so each availability is a range, whose ends differ by the residual.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from router.whatif.analysis.connectivity import analyse
from router.whatif.analysis.offered_deliveries import deliveries, deliveries_to
from router.whatif.formats.parquet_file import parquet_schema
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.local_summaries import LocalSummaries
from router.whatif.pipeline.run_folder import model_of, read_plan, variant_of
from router.whatif.pipeline.table_files import files_of, read_table
from router.whatif.pipeline.table_layouts import ADDRESS_SUMMARY, FAMILY_SUMMARY, PAIR_SUMMARY, RUN
from router.whatif.wording import BASE, NOTHING, counted, listed

_ROUNDING: Final = 1e-12
"""A share below which nothing is meant: what rounding leaves of sums of probabilities."""


@attrs.frozen(kw_only=True)
class Range:
    """A share of the time, as far as it is known."""

    at_least: float
    at_most: float

    @classmethod
    def of(cls, lost: float, residual: float) -> Range:
        """Range of the share of the time that is left by what is lost in what was played.

        Args:
            lost: sum of probabilities, each times what is lost.
            residual: the probability of what was not played.
        """
        # Less than what is left by rounding is nothing.
        least, most = (share if share > _ROUNDING else 0.0 for share in (1 - lost - residual, 1 - lost))
        return cls(at_least=min(1.0, least), at_most=min(1.0, most))


@attrs.frozen(kw_only=True)
class AddressAvailability:
    """Part of the time in which an address is served."""

    address: str
    demand: Range
    """Share of its messages that reaches a subscriber; a multicast counts for each router with subscribers."""
    subscribed: Range
    """Share of the time in which it has a subscriber at a running router."""


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
    """Number of scenarios that have a probability and were counted."""
    coverage: float
    """Sum of the probabilities of the scenarios."""
    residual: float
    """1 - coverage."""
    demand: Range | None
    """Share of all messages that is delivered, each multicast counted for each router with subscribers; None when
    nothing is sent."""
    lost_msgs_per_s: float
    """Mean number of messages/s that are lost, over what was played."""
    pairs: Range | None
    """Mean share of the pairs of routers with a path when nothing fails that have one; both routers are up."""
    addresses: tuple[AddressAvailability, ...]
    """Addresses with subscribers or publishers, the least available first."""
    worst_pairs: tuple[PairAvailability, ...]
    """The least available first; empty when the run lists no pairs."""


def availability(
    folder: Path,
    model: Model,
    calm: Mapping[str, float],
    variant: str = BASE,
    families: Collection[str] = (),
) -> Availability | None:
    """Availability from the tables that sum up the scenarios of a run; None when these have no probabilities.

    Args:
        folder: folder of the run.
        model: model of the *variant*.
        calm: `calm_losses` of *model*.
        variant: name of the variant of the run's model.
        families: scenarios of these and the mesh as it is count, others being as those that were not played, and
            nothing is said of single addresses and pairs; empty: all families count.
    Raises: TableError.
    """
    rows = [
        row
        for row in summary_rows(folder, FAMILY_SUMMARY.name, variant)
        if row["probability"] is not None and (not families or row["family"] in {NOTHING, *families})
    ]
    if not rows:
        return None
    played = math.fsum(row["probability"] for row in rows)
    coverage = min(1.0, played)
    residual = 1 - coverage
    sent = deliveries(model)
    lost = math.fsum(row["mean_lost_msgs_per_s"] for row in rows)
    pairs = connected_pairs(model)
    apart = math.fsum(row["mean_unreachable_pairs"] for row in rows)
    return Availability(
        scenarios=sum(row["scenarios"] for row in rows),
        coverage=coverage,
        residual=residual,
        demand=Range.of(lost / sent, residual) if sent else None,
        lost_msgs_per_s=lost,
        pairs=Range.of(apart / pairs, residual) if pairs else None,
        addresses=() if families else tuple(_addresses(folder, model, calm, variant, played, residual)),
        worst_pairs=() if families else tuple(_worst_pairs(folder, variant, residual)),
    )


def summary_rows(folder: Path, name: str, variant: str) -> list[dict[str, Any]]:
    """Rows of a variant in a table that sums up scenarios; of a run that an older version made, made now.

    Args:
        folder: of the run.
        name: of the table.
        variant: of the run's model.
    Raises: TableError.
    """
    if not (folder / name).is_dir():
        plan = read_plan(folder)
        routers = {each: [it.id for it in variant_of(folder, model_of(folder), each).routers] for each in plan.variants}
        table = LocalSummaries(folder, plan.ranges, routers).tables()[name]
    else:
        table = read_table(folder, name)
    return [row for row in table.to_pylist() if row["variant"] == variant]


def unrated(model: Model) -> str:
    """Links and routers that count as never failing, in words: it is not known how often and for how long they do."""
    counts = [
        (sum(it.failures_per_year is None or it.repair_hours is None for it in parts), what)
        for parts, what in ((model.links, "link"), (model.routers, "router"))
    ]
    return listed([counted(count, what) for count, what in counts if count])


def connected_pairs(model: Model) -> int:
    """Ordered pairs of different routers that have a path when nothing fails."""
    place = {router.id: at for at, router in enumerate(model.routers)}
    sizes = analyse(len(place), [(place[link.a], place[link.b]) for link in model.links]).sizes
    return int((sizes * (sizes - 1)).sum())


def _addresses(
    folder: Path, model: Model, calm: Mapping[str, float], variant: str, played: float, residual: float
) -> Sequence[AddressAvailability]:
    rows = {row["address"]: row for row in summary_rows(folder, ADDRESS_SUMMARY.name, variant)}
    sent = deliveries_to(model)
    is_whole = _has_calm_losses(folder)
    has_subscribers = {site.address for site in model.subscribers}
    found = []
    for name in (address.text for address in model.addresses):
        if name not in has_subscribers and not sent.get(name):
            continue
        row = rows.get(name, {})
        touched, lost, dead = (
            row.get(each) or 0.0 for each in ("probability", "mean_lost_msgs_per_s", "dead_probability")
        )
        # In a scenario that is not listed as much is lost as while nothing fails.
        missing = lost if row and is_whole else lost + calm[name] * max(0.0, played - touched)
        found.append(
            AddressAvailability(
                address=name,
                demand=Range.of(missing / sent[name] if sent.get(name) else 0.0, residual),
                subscribed=Range.of(dead if name in has_subscribers else played, residual),
            )
        )
    return sorted(found, key=lambda it: (it.demand.at_least, it.subscribed.at_least, it.address))


def _has_calm_losses(folder: Path) -> bool:
    """Whether the sums of a run have what addresses lose while nothing fails; those of 0.2.0, of format 1, don't."""
    metadata = parquet_schema(files_of(folder, RUN.name)[0]).metadata or {}
    return int(metadata.get(b"format", b"1")) > 1


def calm_losses(model: Model) -> dict[str, float]:
    """Messages/s that reach nobody while nothing fails, by address.

    Raises: NetworkError
    """
    if not model.addresses:
        return {}
    network = Network.of(model)
    losses = Kernel(network, is_split=network.has_asymmetric_costs).address_losses()
    return {name: lost / MICRO for name, lost in zip(network.addresses, losses, strict=True)}


def _worst_pairs(folder: Path, variant: str, residual: float) -> list[PairAvailability]:
    """The pairs that are without a path for longest."""
    return [
        PairAvailability(src=row["src"], dst=row["dst"], connected=Range.of(row["down_probability"], residual))
        for row in summary_rows(folder, PAIR_SUMMARY.name, variant)
    ]
