"""Works a chunk of scenarios out: from its numbers to the files that it adds to the tables of a run.

A chunk makes the same files wherever it is worked out. So no engine has anything to put together: files are named by
their chunk, and a table is the files of all chunks in the order of their names.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from router import __version__
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.kernel.network_codec import decode_network
from router.whatif.kernel.scenario_loop import fail_one_by_one
from router.whatif.kernel.worst_utilisation import WorstUtilisations
from router.whatif.pipeline.scenario_load_rows import LOAD_ROWS, ScenarioLoads, loads_as_laid_out
from router.whatif.pipeline.table_files import SUFFIX
from router.whatif.pipeline.table_layouts import ADDRESS_IMPACT, PAIR_IMPACT, SCENARIO, SCENARIO_LOAD
from router.whatif.scenarios.failure_families import Batch, FailureCandidates
from router.whatif.scenarios.scenario_plan import Chunk, Plan, Section

LOST: Final = "lost"
CHANGED: Final = "changed"
NO_PAIRS: Final = "none"
PAIRS: Final = (LOST, CHANGED, NO_PAIRS)
"""Choices of the pairs that `pair_impact` lists."""
NO_LOADS: Final = "none"
CHANGED_LOADS: Final = "changed"
ALL_LOADS: Final = "all"
LOADS: Final = (NO_LOADS, CHANGED_LOADS, ALL_LOADS)
"""Choices of the loads that `scenario_load` lists."""
MESH: Final = "mesh"
ECMP: Final = "ecmp"
ROUTINGS: Final = (MESH, ECMP)
"""Choices of how the mesh routes."""

BASE_LOADS: Final = "base_loads"
WORST_LOADS: Final = "worst_loads"
"""Tables of whole numbers that the last step makes `link_load` and `link_worst` of."""
PAIR_ROWS: Final = 1_000_000
"""A file of pairs has not many more."""

Ints = NDArray[np.int32]

_LONG: Final = pa.int64()
BASE_SCHEMA: Final = pa.schema(
    [
        ("link", _LONG),
        ("rate", _LONG),
        ("bytes", pa.float64()),
        ("capacity_rate", pa.float64()),
        ("capacity_bytes", pa.float64()),
        ("limit_rate", pa.float64()),
        ("limit_bytes", pa.float64()),
    ]
)
"""Schema of loads and capacities by directed link, millionths; capacities are infinite where the model has none, limits
as in `Kernel.limits`."""
WORST_SCHEMA: Final = pa.schema(
    [("link", _LONG), ("scenario", _LONG), ("share", pa.float64()), ("rate", _LONG), ("bytes", pa.float64())]
)
"""Schema of worst scenarios by directed link: utilisation as a share, loads in millionths."""


@attrs.frozen(kw_only=True)
class VariantWork:
    """Work on one variant: all that must be known to work out its scenarios. It travels as it is."""

    key: str
    """Two works with the same key are the same."""
    network: bytes
    """Network, encoded by `network_codec.encode_network`."""
    plan: Plan
    pairs: str
    routing: str
    loads: str = NO_LOADS
    version: str = __version__
    """Version of the driver; a worker of another version refuses the work."""


@attrs.frozen(kw_only=True)
class OutputFile:
    """A file of a run: its name in the folder, and what is in it."""

    name: str
    data: bytes

    @property
    def table(self) -> str:
        """Name of the table to which it belongs."""
        return self.name.partition("/")[0]


def file_name(table: str, chunk: int, part: int = 0) -> str:
    """The file that a chunk adds to a table."""
    return f"{table}/part-{chunk:07}-{part:03}{SUFFIX}"


_latest: list[tuple[str, Evaluator]] = []
"""The evaluator that this process used last: to make one takes longer than many scenarios."""


def evaluator_of(work: VariantWork) -> Evaluator:
    """An evaluator, made once for each variant that a process works on.

    Raises: RuntimeError where another version is installed than where the work comes from.
    """
    if work.version != __version__:
        raise RuntimeError(f"amqp-mesh {__version__} is installed here; the work comes from {work.version}")
    if not _latest or _latest[0][0] != work.key:
        _latest.clear()  # first, so that two are never in memory
        _latest.append((work.key, Evaluator(work)))
    return _latest[0][1]


class Evaluator:
    """Plays the scenarios of one variant."""

    def __init__(self, work: VariantWork) -> None:
        self.network = decode_network(work.network)
        self.kernel = Kernel(self.network, is_split=work.routing == ECMP)
        self._plan = work.plan
        self._pairs = work.pairs
        self._worst = WorstUtilisations(self.kernel)
        self._loads = None
        if work.loads != NO_LOADS:
            self._loads = ScenarioLoads(self.kernel, only_changed=work.loads == CHANGED_LOADS)
        self._offered: set[int] = set()
        """Chunks whose scenarios `_worst` has seen."""
        self._routers = pa.array(self.network.routers, pa.string())
        self._links = pa.array(self.network.links, pa.string())
        self._addresses = pa.array(self.network.addresses, pa.string())

    def evaluate(self, chunk: Chunk) -> Iterator[OutputFile]:
        """Play a chunk: its files; that of the scenarios comes last."""
        parts: Counter[str] = Counter()
        for name, rows in self._tables(chunk):
            whole = loads_as_laid_out(rows) if name == SCENARIO_LOAD.name else rows
            yield output_file(file_name(name, chunk.number, parts[name]), whole)
            parts[name] += 1

    def _tables(self, chunk: Chunk) -> Iterator[tuple[str, pa.Table]]:
        """Play a chunk: the rows that it adds to each table, in parts; its scenarios come last, and in one part."""
        if chunk.number in self._offered:  # tried again: no scenario may be offered twice
            self._worst.clear()
            self._offered.clear()
        if self._loads is not None:
            self._loads.clear()
        self._offered.add(chunk.number)
        tables: list[pa.Table] = []
        pairs = _Pairs()
        impacts: list[tuple[int, ...]] = []
        for section, first, batch in self._plan.batches(chunk.first, chunk.stop):
            outcomes = []
            for number, outcome in enumerate(self._play(batch), start=first):
                outcomes.append(outcome)
                self._note(number, pairs, impacts)
                if pairs.count >= PAIR_ROWS:
                    yield PAIR_IMPACT.name, self._pair_table(pairs)
                if self._loads is not None:
                    self._loads.add(number, *_failures(batch, number - first))
                    if self._loads.count >= LOAD_ROWS:
                        yield SCENARIO_LOAD.name, self._loads.taken()
            tables.append(self._scenarios(section, first, batch, outcomes))
        if pairs.count:
            yield PAIR_IMPACT.name, self._pair_table(pairs)
        if self._loads is not None and self._loads.count:
            yield SCENARIO_LOAD.name, self._loads.taken()
        if impacts:
            yield ADDRESS_IMPACT.name, self._impacts(impacts)
        worst = self._worst_loads(chunk)
        if worst.num_rows:
            yield WORST_LOADS, worst
        if chunk.first == self._plan.sections[0].first:
            yield BASE_LOADS, self._base_loads()
        yield SCENARIO.name, pa.concat_tables(tables)

    def _play(self, batch: Batch) -> Iterator[tuple[int | float, ...]]:
        """The summary of each scenario, which has failed when it is given and is taken back afterwards."""
        offsets = batch.link_offsets.tolist(), batch.router_offsets.tolist()
        for _ in fail_one_by_one(self.kernel, batch.links.tolist(), offsets[0], batch.routers.tolist(), offsets[1]):
            yield self.kernel.summary()

    def _note(self, number: int, pairs: _Pairs, impacts: list[tuple[int, ...]]) -> None:
        """Keep what a scenario does beside its summary."""
        kernel = self.kernel
        self._worst.offer(number)
        is_listed = self._pairs == CHANGED or (self._pairs == LOST and kernel.unreachable_pairs > kernel.dead_end_pairs)
        if is_listed:
            pairs.add(number, self.kernel.changed_pairs(only_lost=self._pairs == LOST))
        if self.network.addresses:
            impacts.extend((number, *row) for row in kernel.address_impact())

    def _pair_table(self, pairs: _Pairs) -> pa.Table:
        number, src, dst, before, now = pairs.taken()
        is_lost = now < 0
        columns = [
            pa.array(number),
            self._routers.take(pa.array(src)),
            self._routers.take(pa.array(dst)),
            pa.array(is_lost),
            pa.array(before.astype(np.int64)),
            pa.array(now.astype(np.int64), mask=is_lost),
        ]
        return pa.table(columns, schema=PAIR_IMPACT.schema)

    def _scenarios(self, section: Section, first: int, batch: Batch, outcomes: Sequence[tuple[Any, ...]]) -> pa.Table:
        elements = self._plan.variants[section.variant].elements
        found = [np.array(column) for column in zip(*outcomes, strict=True)]
        unreachable, dead_ends, lost, lost_bytes, dead, starved, most, busiest = found[:8]
        stretches = (pa.array(each / 1000, mask=each == 0) for each in found[8:11])
        delays = (pa.array(each / 1000, mask=each < 0) for each in found[11:14])
        count = len(outcomes)
        probability = pa.nulls(count, pa.float64()) if batch.probability is None else pa.array(batch.probability)
        columns = [
            pa.array(np.arange(first, first + count, dtype=np.int64)),
            _repeated(self._plan.variants[section.variant].name, count),
            _repeated(section.family.text, count),
            _group_names(elements, batch),
            _lists(batch.link_offsets, self._links.take(pa.array(batch.links))),
            _lists(batch.router_offsets, self._routers.take(pa.array(batch.routers))),
            probability,
            pa.array(unreachable),
            pa.array(dead_ends),
            pa.array(lost / MICRO),
            pa.array(self.network.byte_rates(lost_bytes) / MICRO),
            pa.array(dead),
            pa.array(starved),
            pa.array(most),
            *self._directed(busiest),
            *stretches,
            *delays,
            pa.array(found[14]),
        ]
        return pa.table(columns, schema=SCENARIO.schema)

    def _directed(self, numbers: NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
        """Ids of links and of the routers that send, of directed links; null for -1."""
        network = self.network
        is_none = numbers < 0
        links = np.where(is_none, 0, numbers // 2)
        if not len(network.links):
            return pa.nulls(len(numbers), pa.string()), pa.nulls(len(numbers), pa.string())
        senders = np.where(numbers % 2 == 0, network.link_a[links], network.link_b[links])
        return (
            self._links.take(pa.array(links, mask=is_none)),
            self._routers.take(pa.array(senders, mask=is_none)),
        )

    def _impacts(self, rows: Sequence[tuple[int, ...]]) -> pa.Table:
        number, address, living, gone, starved, lost = np.array(rows, dtype=np.int64).T
        columns = [
            pa.array(number),
            self._addresses.take(pa.array(address)),
            pa.array(living),
            pa.array(gone),
            pa.array(starved),
            pa.array(lost / MICRO),
        ]
        return pa.table(columns, schema=ADDRESS_IMPACT.schema)

    def _worst_loads(self, chunk: Chunk) -> pa.Table:
        """Loads of the chunk among the highest of all that was played here: all chunks together have them all."""
        link, number, *amounts = self._worst.rows()
        own = (number >= chunk.first) & (number < chunk.stop)
        share, rate, size = amounts
        columns = [link.astype(np.int64), number, share, rate, self.network.byte_rates(size)]
        return pa.table([pa.array(column[own]) for column in columns], schema=WORST_SCHEMA)

    def _base_loads(self) -> pa.Table:
        rates, sizes = self.kernel.base_loads()
        limits = np.repeat(np.column_stack((self.network.link_capacity, self.kernel.limits())), 2, axis=0)
        limits[:, 1::2] = self.network.byte_rates(limits[:, 1::2])
        columns = (np.arange(len(limits), dtype=np.int64), rates, self.network.byte_rates(sizes), *limits.T)
        return pa.table([pa.array(np.ascontiguousarray(column)) for column in columns], schema=BASE_SCHEMA)


class _Pairs:
    """Changed pairs of scenarios, as they come: made rows of many at once, since to make an array takes its time."""

    def __init__(self) -> None:
        self._found: list[tuple[int, tuple[Ints, Ints, Ints, Ints]]] = []
        self.count = 0

    def add(self, number: int, found: tuple[Ints, Ints, Ints, Ints]) -> None:
        """Sources, destinations, costs before and now of one scenario."""
        self._found.append((number, found))
        self.count += len(found[0])

    def taken(self) -> tuple[NDArray[np.int64], Ints, Ints, Ints, Ints]:
        """Numbers of scenarios and the columns of all, by scenario; none are left here."""
        numbers = np.array([number for number, _ in self._found], dtype=np.int64)
        counts = [len(found[0]) for _, found in self._found]
        columns = zip(*(found for _, found in self._found), strict=True)
        src, dst, before, now = (np.concatenate(column) for column in columns)
        self._found, self.count = [], 0
        return np.repeat(numbers, counts), src, dst, before, now


def output_file(name: str, rows: pa.Table) -> OutputFile:
    """A file with rows of a table."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd")
    return OutputFile(name=name, data=sink.getvalue())


def _failures(batch: Batch, place: int) -> tuple[Ints, Ints]:
    """Links and routers of the scenario at a place of a batch."""
    links, routers = batch.link_offsets, batch.router_offsets
    return batch.links[links[place] : links[place + 1]], batch.routers[routers[place] : routers[place + 1]]


def _repeated(text: str, count: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(count, dtype=np.int64)))


def _lists(offsets: NDArray[np.int32], values: pa.Array) -> pa.Array:
    kind = SCENARIO.schema.field("failed_links").type
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind)


def _group_names(elements: FailureCandidates, batch: Batch) -> pa.Array:
    names = pa.array([group.name for group in elements.groups], pa.string())
    return names.take(pa.array(batch.groups, mask=batch.groups < 0))
