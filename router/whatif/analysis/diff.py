"""Difference of two models, or two runs, and what of it makes the mesh worse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.analysis.spof import spof_rows
from router.whatif.formats.model_folder import read_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.demands import NOBODY, Demands
from router.whatif.model.mesh_model import Model
from router.whatif.model.validation import KEYS
from router.whatif.pipeline.chunk_evaluator import ECMP, MESH
from router.whatif.pipeline.run_folder import is_run, is_split, model_of, variant_of
from router.whatif.pipeline.table_files import read_table
from router.whatif.scenarios.run_request import CHANGED
from router.whatif.wording import BASE, amount, counted, failure_of, harm_of, listed, percent, rate, told_apart

SHOWN: Final = 10
"""Maximum number of rows of each list that are kept."""
FIELD_END: Final = "\x1e"
ITEM_END: Final = "\x1f"
NO_GROUP: Final = "\x00"
SLACK: Final = 1e-9
"""Maximum difference, relative to what was before, at which sums of floats count as equal."""


@attrs.frozen(kw_only=True)
class ModelElementChange:
    """One thing that is in one model only, or not the same in both."""

    part: str
    """`routers`, `links`, `addresses`, `subscribers`, `demands`, `groups`; `run` for how it was made."""
    key: str
    what: str
    """`added`, `removed`, or the field that changed."""
    before: object = None
    after: object = None


@attrs.frozen(kw_only=True)
class LinkLoadChange:
    """The load of a direction of a link that both models have."""

    link: str
    src: str
    before: float
    after: float
    """Messages/s."""


@attrs.frozen(kw_only=True)
class BaseStateImpact:
    """Effect of the changes while nothing fails, for routers that both models have."""

    lost_pairs: tuple[tuple[str, str], ...]
    """Ordered pairs that have a path in the first model only; the first SHOWN."""
    lost_count: int
    gained_count: int
    """Pairs that have a path only in the second model."""
    longer: int
    shorter: int
    """Pairs whose path costs more, or less."""
    moved: int
    """Pairs whose next hop is another one."""
    lost_before: float
    lost_after: float
    """Messages/s that reach nobody."""
    links: tuple[LinkLoadChange, ...]
    """Links whose load changes most."""


@attrs.frozen(kw_only=True)
class ScenarioChange:
    """A scenario that both runs have, and one of its measures."""

    fails: str
    measure: str
    before: float
    after: float


@attrs.frozen(kw_only=True)
class RunDifference:
    """Difference between the scenarios of two runs."""

    common: int
    common_failures: int
    """Scenarios in both runs in which something fails."""
    only_before: int
    only_after: int
    """Scenarios in both runs, and in one alone: what fails in them is not in the other model, or was not asked for."""
    worse: Mapping[str, int]
    better: Mapping[str, int]
    """Number of common scenarios, by measure, in which it is higher (`worse`) or lower (`better`) in the second run."""
    changes: tuple[ScenarioChange, ...]
    """Scenarios that get worse most; the first SHOWN of each measure."""
    highest: Mapping[str, tuple[float, float]]
    """Highest value in each run over the scenarios that both have, by measure."""
    unknown_capacities: tuple[int, int] = (0, 0)
    """Links of each run, in the variant that has most, of which it is not known what they can carry."""

    @property
    def is_apart(self) -> bool:
        """Whether failures were played, and none of them in both runs."""
        return not self.common_failures and bool(self.only_before or self.only_after)

    def without_capacities(self) -> str:
        """Say of how many links utilisation tells nothing; empty where that is told of all, or not compared."""
        before, after = self.unknown_capacities
        if MAX_UTILISATION not in self.highest or not before + after:
            return ""
        now = f"without {counted(after, 'link')} of which no capacity is known"
        return now if before == after else f"{now}, {before:,} before"


@attrs.frozen(kw_only=True)
class Difference:
    """Difference of two models or runs."""

    changes: tuple[ModelElementChange, ...]
    impact: BaseStateImpact
    new_spof: tuple[Mapping[str, Any], ...]
    gone_spof: tuple[Mapping[str, Any], ...]
    """Rows of `router_spof` of the second, or the first, alone."""
    counters: tuple[tuple[str, str, int], ...]
    """Link, sender, messages: what passed between two snapshots; empty where they are none."""
    run: RunDifference | None
    """Difference of two runs; None for models."""

    @property
    def is_none(self) -> bool:
        """Whether they are the same mesh, and the same answers."""
        is_run_equal = self.run is None or not (
            self.run.only_before or self.run.only_after or any(self.run.worse.values()) or any(self.run.better.values())
        )
        return not self.changes and not self.new_spof and not self.gone_spof and is_run_equal

    def worsenings(self) -> Iterator[str]:
        """All that is worse in the second, in words."""
        if self.impact.lost_count:
            pairs = listed([f"{src} to {dst}" for src, dst in self.impact.lost_pairs], most=3)
            yield f"{counted(self.impact.lost_count, 'pair')} of routers lost the path: {pairs}"
        if self.impact.lost_after > self.impact.lost_before * (1 + SLACK):
            now, then = told_apart(rate, self.impact.lost_after, self.impact.lost_before)
            yield f"{now} reach nobody, {then} before"
        for row in self.new_spof:
            yield f"{row['kind']} {row['element']} is a new single point of failure: {harm_of(row)}"
        for measure, (before, after) in (self.run.highest if self.run else {}).items():
            if after > before * (1 + SLACK):
                now, then = told_apart(percent if measure == MAX_UTILISATION else amount, after, before)
                said = f"{MEASURES[measure]} in the worst scenario: {now}, {then} before"
                unknown = self.run.without_capacities() if self.run and measure == MAX_UTILISATION else ""
                yield f"{said} ({unknown})" if unknown else said


MAX_UTILISATION: Final = "max_utilisation"
MEASURES: Final = {
    "living_pairs": "pairs losing connectivity",
    "lost_msgs_per_s": "messages/s lost",
    MAX_UTILISATION: "highest utilisation",
    "stretch_p99": "stretch of 99 % of the paths",
}


def compare(before: Path, after: Path) -> Difference:
    """Compare two models, two runs, or one of each, which are then compared as models.

    Raises: SettingsError, TableError for what can't be used.
    """
    found_runs = [is_run(folder) for folder in (before, after)]
    models = [
        model_of(folder) if is_one else read_model(folder)
        for folder, is_one in zip((before, after), found_runs, strict=True)
    ]
    are_runs = all(found_runs)
    are_split = [are_runs and is_split(folder) for folder in (before, after)]
    found = compare_models(*models, has_spof=not are_runs, are_split=are_split)
    if are_runs:
        # Else utilisation is relative to the busiest link of a model itself, which tells nothing of another's.
        are_known = all(model.has_capacities for model in models)
        measures = [name for name in MEASURES if name != MAX_UTILISATION or are_known]
        outcomes = Outcomes.read(before), Outcomes.read(after)
        unknown = _unknown((before, after), models, outcomes)
        compared = attrs.evolve(compare_runs(*outcomes, measures), unknown_capacities=unknown)
        found = attrs.evolve(found, run=compared)
        rows = [read_table(folder, "router_spof").to_pylist() for folder in (before, after)]
        found = attrs.evolve(found, new_spof=_only(rows[1], rows[0]), gone_spof=_only(rows[0], rows[1]))
    return found


def _unknown(folders: Sequence[Path], models: Sequence[Model], outcomes: Sequence[Outcomes]) -> tuple[int, int]:
    """Links without capacity of two runs: those of the mesh as it is, or as it is changed where that has more."""
    before, after = (
        max(
            variant_of(folder, model, name).unknown_capacities
            for name in {BASE, CHANGED}.intersection(rows.values("variant"))
        )
        for folder, model, rows in zip(folders, models, outcomes, strict=True)
    )
    return before, after


def compare_models(
    before: Model, after: Model, *, has_spof: bool = True, are_split: Sequence[bool] = (False, False)
) -> Difference:
    """Compare two models, and work out what the changes do.

    Args:
        before: the older model.
        after: the newer one.
        has_spof: whether single points of failure are looked for, which takes the longest.
        are_split: whether each of the two splits what is sent over all shortest paths (ECMP).
    """
    states = []
    for model, is_one_split in zip((before, after), are_split, strict=True):
        network = Network.of(model)
        states.append(RoutingState(network, Kernel(network, is_split=is_one_split)))
    rows: list[list[Mapping[str, Any]]] = [[], []]
    if has_spof:
        models = zip((before, after), states, strict=True)
        rows = [list(spof_rows(None, model, state.network, state.kernel)) for model, state in models]
    return Difference(
        changes=(*_routing(are_split), *changes(before, after)),
        impact=_impact(*states),
        new_spof=_only(rows[1], rows[0]),
        gone_spof=_only(rows[0], rows[1]),
        counters=tuple(_counters(before, after)),
        run=None,
    )


def _routing(are_split: Sequence[bool]) -> Iterator[ModelElementChange]:
    before, after = (ECMP if is_one_split else MESH for is_one_split in are_split)
    if before != after:
        yield ModelElementChange(part="run", key="--routing", what="routing", before=before, after=after)


def _only(rows: Iterable[Mapping[str, Any]], others: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Rows of `router_spof` whose element is not among others."""
    there = {(row["kind"], row["element"]) for row in others}
    found = [row for row in rows if (row["kind"], row["element"]) not in there]
    return tuple(sorted(found, key=lambda row: (-row["unreachable_pairs"], row["kind"], row["element"])))


# Models


def changes(before: Model, after: Model) -> Iterator[ModelElementChange]:
    """Each thing that is not the same, by part and key; of counters nothing, since they always change."""
    for part in ("routers", "links", "addresses", "subscribers"):
        yield from _part(part, before, after)
    yield from _demands(before.demands, after.demands)
    yield from _part("groups", before, after)


def _part(part: str, before: Model, after: Model) -> Iterator[ModelElementChange]:
    one, other = ({KEYS[part](item): item for item in getattr(model, part)} for model in (before, after))
    for key in sorted(one.keys() | other.keys()):
        text = " at ".join(key)
        if key not in other:
            yield ModelElementChange(part=part, key=text, what="removed")
        elif key not in one:
            yield ModelElementChange(part=part, key=text, what="added")
        elif one[key] != other[key]:
            for field in attrs.fields(type(one[key])):
                old, new = getattr(one[key], field.name), getattr(other[key], field.name)
                if old != new:
                    yield ModelElementChange(
                        part=part, key=text, what=field.name, before=_plain(old), after=_plain(new)
                    )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _demands(before: Demands, after: Demands) -> Iterator[ModelElementChange]:
    if before == after:
        return
    one, other = _rates(before), _rates(after)
    for key in sorted(one.keys() | other.keys()):
        old, new = one.get(key), other.get(key)
        if old != new:
            src, dst, is_address, klass = key
            text = f"{src} to {'address' if is_address else 'router'} {dst}"
            text += f" ({klass})" if klass != "default" else ""
            if old is None or new is None:
                what = "removed" if new is None else "added"
                yield ModelElementChange(
                    part="demands", key=text, what=what, before=old and old[0], after=new and new[0]
                )
                continue
            if old[0] != new[0]:
                yield ModelElementChange(part="demands", key=text, what="msgs_per_s", before=old[0], after=new[0])
            small, large = sorted(sizes := [volume / sent if sent else 0.0 for sent, volume in (old, new)])
            if large - small > SLACK * large:
                yield ModelElementChange(part="demands", key=text, what="msg_bytes", before=sizes[0], after=sizes[1])


def _rates(demands: Demands) -> dict[tuple[str, str, bool, str], tuple[float, float]]:
    """Messages/s and bytes/s by source, destination, whether that is an address, and class."""
    names = demands.names
    to = np.where(demands.dst == NOBODY, demands.address, demands.dst)
    found: dict[tuple[str, str, bool, str], tuple[float, float]] = {}
    columns = (demands.src, to, demands.dst == NOBODY, demands.klass, demands.msgs_per_s, demands.msg_bytes)
    for src, dst, is_address, klass, sent, size in zip(*(column.tolist() for column in columns), strict=True):
        key = names[src], names[dst], is_address, names[klass]
        messages, volume = found.get(key, (0.0, 0.0))
        found[key] = messages + sent, volume + sent * size
    return found


def _counters(before: Model, after: Model) -> Iterator[tuple[str, str, int]]:
    old = {(row.link, row.src): row.messages for row in before.counters}
    for row in after.counters:
        if (row.link, row.src) in old:
            since = row.messages - old[row.link, row.src]
            # A connection that was made anew counts from 0.
            yield row.link, row.src, since if since >= 0 else row.messages


# What changes do


def _impact(before: RoutingState, after: RoutingState) -> BaseStateImpact:
    names = sorted(set(before.network.routers) & set(after.network.routers))
    old, new = (_view(routes, names) for routes in (before, after))
    lost, gained = (old >= 0) & (new < 0), (old < 0) & (new >= 0)
    both = (old >= 0) & (new >= 0)
    hops = [_next_hops(routes, names) for routes in (before, after)]
    places = np.argwhere(lost)
    return BaseStateImpact(
        lost_pairs=tuple((names[src], names[dst]) for src, dst in places[:SHOWN]),
        lost_count=len(places),
        gained_count=int(gained.sum()),
        longer=int((both & (new > old)).sum()),
        shorter=int((both & (new < old)).sum()),
        moved=0 if before.kernel.is_split or after.kernel.is_split else int((both & (hops[0] != hops[1])).sum()),
        lost_before=before.kernel.lost_rate / MICRO,
        lost_after=after.kernel.lost_rate / MICRO,
        links=tuple(_link_changes(before, after)),
    )


def _view(routes: RoutingState, names: list[str]) -> Any:
    """Costs between some routers, -1 without a path."""
    place = {router: at for at, router in enumerate(routes.network.routers)}
    places = [place[name] for name in names]
    return routes.kernel.distances()[np.ix_(places, places)]


def _next_hops(routes: RoutingState, names: list[str]) -> Any:
    """Next hops between some routers, by the places of their names; -1 without one, or one that is not among them."""
    place = {router: at for at, router in enumerate(routes.network.routers)}
    places = [place[name] for name in names]
    back = np.full(len(routes.network.routers) + 1, -1)
    back[places] = np.arange(len(names))
    found = [[routes.kernel.next_hop(src, dst) for dst in places] for src in places]
    return back[np.array(found, dtype=np.int64).reshape(len(names), len(names))]


def _link_changes(before: RoutingState, after: RoutingState) -> list[LinkLoadChange]:
    """Directions of links that both have, by how much their load changes."""
    old, new = (dict(_loads(routes)) for routes in (before, after))
    found = [
        LinkLoadChange(link=link, src=src, before=old[link, src] / MICRO, after=new[link, src] / MICRO)
        for link, src in sorted(old.keys() & new.keys())
        if old[link, src] != new[link, src]
    ]
    return sorted(found, key=lambda it: (-abs(it.after - it.before), it.link, it.src))[:SHOWN]


def _loads(routes: RoutingState) -> Iterator[tuple[tuple[str, str], int]]:
    for directed, sent in enumerate(routes.kernel.loads()[0].tolist()):
        link, src, _ = routes.network.directed_link(directed)
        yield (link, src), sent


# Runs


def compare_runs(before: Outcomes, after: Outcomes, measures: Iterable[str]) -> RunDifference:
    """Scenarios of two runs in which the same fails in the same variant, by some of MEASURES."""
    # For each row of the second run the row of the first one in which the same fails.
    row = pc.index_in(_failures(after), _failures(before))
    other = np.flatnonzero(pc.is_valid(row).to_numpy(zero_copy_only=False))
    one = row.drop_null().to_numpy()
    worse: dict[str, int] = {}
    better: dict[str, int] = {}
    changed: list[ScenarioChange] = []
    highest: dict[str, tuple[float, float]] = {}
    for measure in measures:
        values = [_values(outcomes, measure) for outcomes in (before, after)]
        a, b = values[0][one], values[1][other]
        more = b - a
        slack = SLACK * np.maximum(np.abs(a), np.abs(b))
        worse[measure], better[measure] = int((more > slack).sum()), int((more < -slack).sum())
        places = np.flatnonzero(more > slack)
        worst = places[np.lexsort((places, -more[places]))][:SHOWN]
        for place, scenario in zip(worst, after.rows(other[worst]), strict=True):
            fails = failure_of(scenario)
            changed.append(ScenarioChange(fails=fails, measure=measure, before=float(a[place]), after=float(b[place])))
        highest[measure] = (float(a.max(initial=0)), float(b.max(initial=0)))
    return RunDifference(
        common=len(other),
        common_failures=int(_is_failure(after)[other].sum()),
        only_before=len(before) - len(other),
        only_after=len(after) - len(other),
        worse=worse,
        better=better,
        changes=tuple(changed),
        highest=highest,
    )


def _failures(outcomes: Outcomes) -> pa.Array:
    """Text for each scenario of its variant and what fails in it; control characters part these."""
    columns = [outcomes.column(name) for name in ("variant", "family", "group")]
    lists = (outcomes.column(name).cast(pa.list_(pa.string())) for name in ("failed_links", "failed_routers"))
    columns.extend(pc.binary_join(ids, ITEM_END) for ids in lists)
    texts = pc.binary_join_element_wise(
        *(column.cast(pa.large_string()) for column in columns),
        pa.scalar(FIELD_END, pa.large_string()),
        null_handling="replace",
        null_replacement=NO_GROUP,
    )
    return texts.combine_chunks()


def _is_failure(outcomes: Outcomes) -> Any:
    """Mask of the scenarios in which something fails."""
    links, routers = (pc.list_value_length(outcomes.column(name)) for name in ("failed_links", "failed_routers"))
    return pc.greater(pc.add(links, routers), 0).to_numpy()


def _values(outcomes: Outcomes, measure: str) -> Any:
    if measure == "living_pairs":
        return outcomes.living_pairs.astype(np.float64)
    return np.nan_to_num(outcomes.numbers(measure)).astype(np.float64)
