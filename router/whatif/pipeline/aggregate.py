"""The last step of a run: what concerns all scenarios at once is made of what the chunks have written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from router.whatif.formats.parquet_file import read_parquet
from router.whatif.kernel.c_arrays import CAUSES
from router.whatif.kernel.network_arrays import MICRO, utilisation
from router.whatif.pipeline.chunk_evaluator import BASE_LOADS, WORST_LOADS, WORST_SCHEMA, file_name
from router.whatif.pipeline.table_files import SUFFIX, write_table
from router.whatif.pipeline.table_layouts import LINK_LOAD, LINK_WORST, OF_SCENARIOS, RUN, SCENARIO, SCENARIO_LOAD
from router.whatif.scenarios.failure_families import FailureCandidates, Maintenance
from router.whatif.scenarios.scenario_plan import Plan

STAGE: Final = (BASE_LOADS, WORST_LOADS)
"""Folders that are needed until this step only."""
KEPT: Final = CAUSES
"""Scenarios for each directed link: as many as the kernel keeps of each chunk, so that the worst of all are there."""


def write_links(folder: Path, plan: Plan) -> None:
    """Write `link_load` and `link_worst` into a run's folder, of what its chunks have written there."""
    loads: list[pa.Table] = []
    worsts: list[pa.Table] = []
    chunks = plan.chunks()
    for place, variant in enumerate(plan.variants):
        numbers = chunks.of_variant(place)
        base = read_parquet(folder / file_name(BASE_LOADS, numbers[0]))
        files = [folder / file_name(WORST_LOADS, number) for number in numbers]
        parts = [read_parquet(file) for file in files if file.exists()]
        worst = pa.concat_tables(parts) if parts else WORST_SCHEMA.empty_table()
        load, highest = _links(variant.name, variant.elements, base, worst)
        loads.append(load)
        worsts.append(highest)
    for layout, tables in ((LINK_LOAD, loads), (LINK_WORST, worsts)):
        whole = pa.concat_tables(tables).sort_by([(column, "ascending") for column in layout.key])
        write_table(folder, whole.combine_chunks(), layout.name)


def load_rows(variant: str, elements: FailureCandidates, base: pa.Table) -> pa.Table:
    """Make the rows of one variant for `link_load`.

    Args:
        variant: its name.
        elements: of it.
        base: of `base_loads`, all directed links in their order, which stays.
    """
    rates, sizes = base.column("rate").to_numpy(), base.column("bytes").to_numpy()
    capacity = [base.column(name).to_numpy() for name in ("capacity_rate", "capacity_bytes")]
    limits = [base.column(name).to_numpy() for name in ("limit_rate", "limit_bytes")]
    load = [
        pa.array([variant] * len(rates), pa.string()),
        *directions(elements),
        pa.array(rates / MICRO),
        pa.array(sizes / MICRO),
        *(pa.array(column / MICRO, mask=np.isinf(column)) for column in capacity),
        pa.array(utilisation(rates, sizes, limits)),
    ]
    return pa.table(load, schema=LINK_LOAD.schema)


def _links(variant: str, elements: FailureCandidates, base: pa.Table, worst: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Rows of one variant for `link_load` and `link_worst`."""
    load = load_rows(variant, elements, base)
    names = load.columns[:4]
    rates, sizes = base.column("rate").to_numpy(), base.column("bytes").to_numpy()
    utilisation = load.column("utilisation").to_numpy()
    schema = LINK_WORST.schema
    worst = _highest(worst)
    counts = np.bincount(worst.column("link"), minlength=len(rates))
    starts = np.concatenate(([0], np.cumsum(counts)))
    offsets = pa.array(starts.astype(np.int32))
    is_worse = counts > 0
    calm = (rates / MICRO, sizes / MICRO, utilisation)
    worse = (worst.column("rate").to_numpy() / MICRO, worst.column("bytes").to_numpy() / MICRO, worst.column("share"))
    highest = [*names, pa.array(calm[0]), pa.array(utilisation)]
    for before, after in zip(calm, worse, strict=True):
        top = before.copy()
        top[is_worse] = np.asarray(after)[starts[:-1][is_worse]]
        highest.append(pa.array(top))
    lists = (worst.column("scenario"), *worse)
    for name, column in zip(schema.names[-len(lists) :], lists, strict=True):
        highest.append(pa.ListArray.from_arrays(offsets, pa.array(np.asarray(column)), type=schema.field(name).type))
    return load, pa.table(highest, schema=schema)


def directions(elements: FailureCandidates) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Link, sender and receiver of each directed link, by their numbers, which is the order of link and sender."""
    links = [link for link in elements.links for _ in range(2)]
    ends = [(one, other) for a, b in elements.ends for one, other in ((a, b), (b, a))]
    senders = [elements.routers[one] for one, _ in ends]
    receivers = [elements.routers[other] for _, other in ends]
    return tuple(pa.array(column, pa.string()) for column in (links, senders, receivers))


def _highest(worst: pa.Table) -> pa.Table:
    """Keep the first KEPT rows of each directed link, by link, then the worst first."""
    link, share, number = (worst.column(name).to_numpy() for name in ("link", "share", "scenario"))
    order = np.lexsort((number, -share, link))
    starts = np.searchsorted(link[order], link[order], side="left")
    return worst.take(pa.array(order[np.arange(len(order)) - starts < KEPT]))


def write_empty(folder: Path, *, has_loads: bool) -> None:
    """An empty file for each table that no chunk has added to; *has_loads*: whether `scenario_load` is one."""
    for layout in OF_SCENARIOS:
        if layout == SCENARIO_LOAD and not has_loads:
            continue
        if not any((folder / layout.name).glob(f"*{SUFFIX}")):
            write_table(folder, layout.schema.empty_table(), layout.name)


def coverage(folder: Path, plan: Plan) -> float | None:
    """Sum of the probabilities of scenarios of the mesh as it is, without maintenance; None when there are none."""
    if not plan.variants[0].elements.has_rates:
        return None
    return min(1.0, math.fsum(_probabilities(folder, plan)))


def _probabilities(folder: Path, plan: Plan) -> Iterator[float]:
    ranges = [
        (section.first, section.stop)
        for section in plan.sections
        if section.variant == 0 and not isinstance(section.family, Maintenance)
    ]
    chunks = plan.chunks()
    for number in chunks.of_variant(0):
        chunk = chunks[number]
        file = folder / file_name(SCENARIO.name, chunk.number)
        column = read_parquet(file, ["probability"]).column(0).to_numpy()
        for first, stop in ranges:
            low, high = max(first, chunk.first), min(stop, chunk.stop)
            yield from column[max(0, low - chunk.first) : max(0, high - chunk.first)].tolist()


def write_run(folder: Path, row: dict[str, Any]) -> None:
    """Write the table `run`, of one row."""
    assert set(row) == set(RUN.names), set(row) ^ set(RUN.names)
    write_table(folder, pa.Table.from_pylist([row], schema=RUN.schema), RUN.name)
