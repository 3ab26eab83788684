"""Tables that sum up the scenarios of a run, made of its tables on this machine: the reference for those of Spark.

Rows of `scenario` are in the order of their numbers, which have no gaps, so that variant and family of a row follow
from the plan alone, and one column at a time is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.pipeline.exact_sums import exact_sums
from router.whatif.pipeline.scenario_extremes import (
    ALL,
    FALLING,
    HARMS,
    POINT_SCHEMA,
    RANKS,
    STRETCHES,
    is_harm,
    measured,
    nearest_rank,
    points_of,
    worst,
)
from router.whatif.pipeline.table_files import from_rows, read_table, row_count
from router.whatif.pipeline.table_layouts import (
    ADDRESS_IMPACT,
    ADDRESS_SUMMARY,
    FAMILY_SUMMARY,
    PAIR_IMPACT,
    PAIR_SUMMARY,
    SCENARIO,
    SCENARIO_CURVE,
    WORST_SCENARIO,
)
from router.whatif.scenarios.scenario_plan import Plan
from router.whatif.wording import BASE, MAINTENANCE, NOTHING

PAIRS: Final = 10
"""Number of pairs kept for each variant."""
MOST_PAIR_ROWS: Final = 4_000_000
"""Maximum rows of `pair_impact`: with more, no pairs are named, since it would take longer than all else together."""

Row = dict[str, Any]


@attrs.frozen
class ScenarioRange:
    """Consecutive scenarios of one family in one variant."""

    variant: str
    family: str
    first: int
    stop: int


def of_plan(folder: Path, plan: Plan) -> LocalSummaries:
    """Prepare the tables of a run.

    Args:
        folder: of the run, with all tables of scenarios.
        plan: of it.
    """
    routers = {variant.name: variant.elements.routers for variant in plan.variants}
    ranges = [
        ScenarioRange(plan.variants[each.variant].name, each.family.text, each.first, each.stop)
        for each in plan.sections
    ]
    return LocalSummaries(folder, ranges, routers)


@attrs.frozen
class ScenarioSums:
    """Number and probabilities of some scenarios of a variant."""

    scenarios: int
    probability: float
    """Sum of their probabilities, without those of maintenance; 0 when the model has no rates."""


def add_unlisted(row: Row, calm: float, played: ScenarioSums, harmless: ScenarioSums) -> None:
    """Add the scenarios that don't list an address to its row, where it loses messages while nothing fails.

    Args:
        row: of `address_summary`, of the scenarios that list the address: of these one is that in which nothing fails.
        calm: messages/s that it loses there, and in each scenario that doesn't list it.
        played: all scenarios of the variant.
        harmless: those that list it and in which it loses nothing: a failure can bring its publishers to credit.
    """
    row["scenarios"] = played.scenarios - harmless.scenarios
    if row["probability"] is not None:
        row["mean_lost_msgs_per_s"] += calm * (played.probability - row["probability"])
        row["probability"] = played.probability - harmless.probability


class LocalSummaries:
    """Makes the tables.

    Args:
        folder: of the run, with all tables of scenarios.
        ranges: of its plan.
        routers: ids of the routers of each variant, in their order.
    """

    def __init__(self, folder: Path, ranges: Sequence[ScenarioRange], routers: Mapping[str, Sequence[str]]) -> None:
        self._folder = folder
        self._ranges = ranges
        self._routers = routers
        self._variants = list(dict.fromkeys(each.variant for each in ranges))

    def tables(self) -> dict[str, pa.Table]:
        """All of them by name."""
        return {
            FAMILY_SUMMARY.name: self.families(),
            ADDRESS_SUMMARY.name: self.addresses(),
            PAIR_SUMMARY.name: self.pairs(),
            WORST_SCENARIO.name: self.worst(),
            SCENARIO_CURVE.name: self.curves(),
        }

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of `scenario`, of which no other is read."""
        return read_table(self._folder, SCENARIO.name, [name]).column(0)

    # Families

    def families(self) -> pa.Table:
        """The table `family_summary`."""
        groups: dict[tuple[str, str], list[slice]] = {}
        for each in self._ranges:
            groups.setdefault((each.variant, each.family), []).append(slice(each.first, each.stop))
        rows: dict[tuple[str, str], Row] = {key: {"variant": key[0], "family": key[1]} for key in groups}

        def by_group(values: NDArray[Any]) -> Iterator[tuple[Row, NDArray[Any]]]:
            for key, slices in groups.items():
                yield rows[key], np.concatenate([values[each] for each in slices])

        lost, pairs = self._column("lost_msgs_per_s"), self._column("unreachable_pairs")
        living = measured(self, "lost_pairs")
        for row, values in by_group((living > 0) | self._is_worse()):
            row |= {"scenarios": len(values), "harmful": int(values.sum())}
        for name, values in (
            ("lost_msgs_per_s", lost),
            ("lost_pairs", living),
            ("max_utilisation", self._column("max_utilisation")),
        ):
            for row, own in by_group(values):
                ordered = np.sort(own)
                row |= {f"{name}_p{rank}": ordered[nearest_rank(len(own), rank) - 1] for rank in RANKS}
                row[f"{name}_max"] = ordered[-1]
        for row, own in by_group(self._column("stretch_p99")):
            row["stretch_p99_max"] = None if np.isnan(own).all() else np.nanmax(own)
        chance = self._column("probability")
        for name, values in (
            ("probability", chance),
            ("mean_lost_msgs_per_s", chance * lost),
            ("mean_unreachable_pairs", chance * pairs),
        ):
            for row, own in by_group(values):
                known = own[~np.isnan(own)] if row["family"] != MAINTENANCE else own[:0]
                row[name] = float(exact_sums(np.zeros(len(known), np.int64), known, 1)[0]) if len(known) else None
        return from_rows(FAMILY_SUMMARY.name, rows.values())

    # Worst scenarios, and curves

    def worst(self) -> pa.Table:
        """The table `worst_scenario`."""
        numbers = np.arange(self._ranges[-1].stop, dtype=np.int64)
        variants, is_calm = self._variant_places(), np.zeros(len(numbers), dtype=np.bool_)
        for each in self._ranges:
            is_calm[each.first : each.stop] = each.family == NOTHING
        rows: list[Row] = []
        for measure in HARMS:
            values = measured(self, measure)
            harm = is_harm(measure, values, is_calm)
            for at, variant in enumerate(self._variants):
                for rank, place in enumerate(worst(values, numbers, harm & (variants == at)).tolist(), start=1):
                    row = {"variant": variant, "measure": measure, "rank": rank, "scenario": place}
                    rows.append({**row, "value": float(values[place])})
        return from_rows(WORST_SCENARIO.name, rows)

    def curves(self) -> pa.Table:
        """The table `scenario_curve`."""
        groups: dict[str, list[slice]] = {}
        for each in self._ranges:
            if each.variant == BASE and each.family != NOTHING:
                groups.setdefault(each.family, []).append(slice(each.first, each.stop))
        every = [own for slices in groups.values() for own in slices]
        asked = [(measure, family, slices) for measure in FALLING for family, slices in groups.items()]
        asked += [(measure, ALL, every) for measure in STRETCHES if every]
        rows: list[Row] = []
        for measure, family, slices in asked:
            whole = measured(self, measure)
            own = np.concatenate([whole[each] for each in slices])
            values, counts = np.unique(own[~np.isnan(own)], return_counts=True)
            counted = values, counts.astype(np.int64), np.cumsum(counts)
            found = points_of(BASE, family, measure, counted, int(counts.sum()))
            named = (dict(zip(POINT_SCHEMA.names, each, strict=True)) for each in found)
            rows += [{name: row[name] for name in SCENARIO_CURVE.names} for row in named if not row["percentile"]]
        return from_rows(SCENARIO_CURVE.name, rows)

    def _is_worse(self) -> NDArray[np.bool_]:
        """Mask of the scenarios in which more publishers or addresses lack a subscriber than while nothing fails."""
        found = np.zeros(self._ranges[-1].stop, dtype=np.bool_)
        for name in ("starved_publishers", "dead_addresses"):
            values = self._column(name)
            for variant in self._variants:
                own = [each for each in self._ranges if each.variant == variant]
                calm = max((values[each.first] for each in own if each.family == NOTHING), default=0)
                for each in own:
                    found[each.first : each.stop] |= values[each.first : each.stop] > calm
        return found

    def _column(self, name: str) -> NDArray[Any]:
        """A column of numbers; NaN where a real is null."""
        column = self.column(name)
        if pa.types.is_float64(column.type):
            column = pc.fill_null(column, float("nan"))
        found: NDArray[Any] = column.to_numpy()
        return found

    def _weights(self) -> NDArray[np.float64]:
        """Probabilities by scenario; NaN without one, and for maintenance, whose probabilities have a condition."""
        found: NDArray[np.float64] = self._column("probability").copy()
        for each in self._ranges:
            if each.family == MAINTENANCE:
                found[each.first : each.stop] = np.nan
        return found

    def _variant_places(self) -> NDArray[np.int64]:
        """Place of the variant of each scenario, by scenario."""
        sizes = [each.stop - each.first for each in self._ranges]
        return np.repeat([self._variants.index(each.variant) for each in self._ranges], sizes)

    # Addresses

    def addresses(self) -> pa.Table:
        """The table `address_summary`."""
        table = read_table(self._folder, ADDRESS_IMPACT.name)
        if not table.num_rows:
            return from_rows(ADDRESS_SUMMARY.name, ())
        scenario = table.column("scenario").to_numpy()
        coded = table.column("address").combine_chunks().dictionary_encode()
        names: list[str] = coded.dictionary.to_pylist()
        weights, variants = self._weights(), self._variant_places()
        place = variants[scenario] * len(names) + coded.indices.to_numpy()
        count = len(self._variants) * len(names)
        lost, weight = table.column("lost_msgs_per_s").to_numpy(), weights[scenario]
        has_lost_sites = table.column("lost_subscriber_routers").to_numpy() > 0
        is_dead = has_lost_sites & (table.column("subscriber_routers").to_numpy() == 0)
        is_harmless = ~has_lost_sites & (lost == 0) & (table.column("starved_publishers").to_numpy() == 0)
        is_known, is_played = ~np.isnan(weight), ~np.isnan(weights)
        touched, dead = np.bincount(place, minlength=count), np.bincount(place[is_dead], minlength=count)
        worst = np.lexsort((scenario, -lost, place))
        first_of = worst[np.searchsorted(place[worst], np.arange(count))[touched > 0]]
        rated = np.bincount(variants[is_played], minlength=len(self._variants)) > 0
        sums = {
            "probability": exact_sums(place[is_known], weight[is_known], count),
            "mean_lost_msgs_per_s": exact_sums(place[is_known], (weight * lost)[is_known], count),
            "dead_probability": exact_sums(place[is_known & is_dead], weight[is_known & is_dead], count),
        }
        rows = [
            {
                "variant": self._variants[at // len(names)],
                "address": names[at % len(names)],
                "scenarios": int(touched[at]),
                "dead_scenarios": int(dead[at]),
                "max_lost_msgs_per_s": float(lost[first]),
                "worst_scenario": int(scenario[first]),
                **{name: float(values[at]) if rated[at // len(names)] else None for name, values in sums.items()},
            }
            for at, first in zip(np.flatnonzero(touched).tolist(), first_of.tolist(), strict=True)
        ]
        sizes = np.bincount(variants, minlength=len(self._variants)).tolist()
        played = exact_sums(variants[is_played], weights[is_played], len(self._variants)).tolist()
        spared = np.bincount(place[is_harmless], minlength=count)
        is_spared = is_known & is_harmless
        spared_chance = exact_sums(place[is_spared], weight[is_spared], count)
        is_calm = np.isin(scenario, [each.first for each in self._ranges if each.family == NOTHING])
        calm = dict(zip(place[is_calm].tolist(), lost[is_calm].tolist(), strict=True))
        for at, row in zip(np.flatnonzero(touched).tolist(), rows, strict=True):
            if at in calm:
                number = at // len(names)
                every = ScenarioSums(sizes[number], played[number])
                add_unlisted(row, calm[at], every, ScenarioSums(int(spared[at]), float(spared_chance[at])))
        return from_rows(ADDRESS_SUMMARY.name, rows)

    # Pairs

    def pairs(self) -> pa.Table:
        """The table `pair_summary`."""
        weights = self._weights()
        if np.isnan(weights).all() or not 0 < row_count(self._folder, PAIR_IMPACT.name) <= MOST_PAIR_ROWS:
            return from_rows(PAIR_SUMMARY.name, ())
        rows: list[Row] = []
        table = read_table(self._folder, PAIR_IMPACT.name, ["scenario", "src", "dst", "is_lost"])
        table = table.filter(table.column("is_lost"))
        variants = self._variant_places()
        for at, variant in enumerate(self._variants):
            here = np.where((variants == at) & ~np.isnan(weights), weights, 0.0)
            own = table.filter(pa.array(here[table.column("scenario").to_numpy()] > 0))
            rows += self._worst_pairs(variant, own, here)
        return from_rows(PAIR_SUMMARY.name, rows)

    def _worst_pairs(self, variant: str, lost: pa.Table, weights: NDArray[np.float64]) -> Iterator[Row]:
        """Rows of one variant.

        Args:
            variant: its name.
            lost: pairs without a path, of its scenarios with a probability.
            weights: probabilities by scenario, 0 where it isn't of the variant.
        """
        ids = self._routers[variant]
        place = {name: at for at, name in enumerate(ids)}
        count = len(ids)
        src, dst = (_places(lost, name, place) for name in ("src", "dst"))
        without = exact_sums(src * count + dst, weights[lost.column("scenario").to_numpy()], count * count)
        down = without.reshape(count, count) + self._ends_down(place, weights)
        np.fill_diagonal(down, 0.0)
        flat = down.ravel()
        order = np.lexsort((np.arange(flat.size), -flat))[:PAIRS]
        for rank, at in enumerate((at for at in order.tolist() if flat[at] > 0), start=1):
            yield {
                "variant": variant,
                "rank": rank,
                "src": ids[at // count],
                "dst": ids[at % count],
                "down_probability": float(flat[at]),
            }

    def _ends_down(self, place: Mapping[str, int], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability that one of two routers is itself down, by pair of routers."""
        count = len(place)
        column = read_table(self._folder, SCENARIO.name, ["failed_routers"]).column(0)
        places = np.flatnonzero((weights > 0) & (pc.list_value_length(column).to_numpy() > 0))
        lists = column.take(pa.array(places)).to_pylist()
        one = [(place[name], at) for at, names in zip(places.tolist(), lists, strict=True) for name in names]
        both = [
            (place[name] * count + place[other], at)
            for at, names in zip(places.tolist(), lists, strict=True)
            for name in names
            for other in names
            if other != name
        ]
        single, double = (
            exact_sums(keys, weights[rows], size)
            for (keys, rows), size in ((_columns(one), count), (_columns(both), count * count))
        )
        found: NDArray[np.float64] = (single[:, None] + single[None, :]) - double.reshape(count, count)
        return found


def _places(table: pa.Table, name: str, place: Mapping[str, int]) -> NDArray[np.int64]:
    coded = table.column(name).combine_chunks().dictionary_encode()
    numbers = np.array([place[text] for text in coded.dictionary.to_pylist()], dtype=np.int64)
    found: NDArray[np.int64] = numbers[coded.indices.to_numpy()]
    return found


def _columns(rows: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    both = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
