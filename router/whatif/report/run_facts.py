"""Facts of a report, read from the tables of a run, and what each element alone does, if there are not too many."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow.compute as pc

from router.whatif.analysis.availability import (
    Availability,
    availability,
    calm_losses,
    summary_rows,
)
from router.whatif.analysis.offered_deliveries import deliveries
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.model.connected_components import ConnectedComponents
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.chunk_evaluator import ECMP
from router.whatif.pipeline.local_summaries import ScenarioRange
from router.whatif.pipeline.run_folder import read_plan, variant_of
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import (
    ADDRESS_SUMMARY,
    FAMILY_SUMMARY,
    SCENARIO_CURVE,
    WORST_SCENARIO,
    TableError,
)  # fmt: skip
from router.whatif.report.single_failures import SingleFailure, single_failures
from router.whatif.scenarios.run_request import CHANGED
from router.whatif.wording import BASE, NOTHING

WORST: Final = 10
"""Scenarios shown of each kind of harm."""
ROWS: Final = 50
"""Rows of a table in the report; the tables of the run have all."""

Row = Mapping[str, Any]
"""A row of a table by column."""

HARMS: Final[Mapping[str, str]] = {
    "lost_msgs_per_s": "lost_msgs_per_s",
    "living_pairs": "lost_pairs",
    "max_utilisation": "max_utilisation",
    "stretch_p99": "stretch_p99",
}
"""Measures by which scenarios are ranked, with the name of each in `worst_scenario`."""


@attrs.frozen(kw_only=True)
class FamilyFacts:
    """Outcome of the scenarios of one family in one variant."""

    variant: str
    family: str
    scenarios: int
    harmful: int
    """Scenarios that do harm to others, as in `family_summary`."""
    worst_lost_msgs_per_s: float
    worst_living_pairs: int
    worst_utilisation: float
    worst_stretch_p99: float | None


@attrs.frozen(kw_only=True)
class VariantFacts:
    """One variant of the mesh: as it is, and at its worst."""

    name: str
    growth: float | None
    """Factor of its demands; None when these are others."""
    is_changed: bool
    """Whether more than demand is changed: costs, links or subscribers."""
    base_utilisation: float
    worst_utilisation: float
    base_lost_msgs_per_s: float
    worst_lost_msgs_per_s: float
    worst_living_pairs: int
    apart_pairs: int
    """Ordered pairs of routers without a path while nothing fails."""
    unknown_capacities: int
    """Links of which it is not known what they can carry."""


@attrs.frozen(kw_only=True)
class LinkFacts:
    """Load of a link in the direction that is worse."""

    link: str
    src: str
    dst: str
    base_msgs_per_s: float
    base_utilisation: float
    worst_msgs_per_s: float
    worst_bytes_per_s: float
    worst_utilisation: float
    scenarios: tuple[int, ...]
    """Numbers of the scenarios that cause the worst utilisation, the worst first."""


@attrs.frozen(kw_only=True)
class AddressFacts:
    """Effects of scenarios on an address."""

    address: str
    treatment: str
    subscriber_routers: int
    harmful: int
    """Scenarios in which it loses subscribers or messages, or has starved publishers, as in `address_summary`."""
    dead: int
    """Scenarios in which no subscriber is left."""
    worst_lost_msgs_per_s: float
    worst_scenario: int | None


@attrs.frozen(kw_only=True, eq=False)
class Facts:
    """All that a report says."""

    model: Model
    run: Row
    base: Row
    """Scenario 0."""
    families: tuple[FamilyFacts, ...]
    variants: tuple[VariantFacts, ...]
    worst: tuple[Row, ...]
    """Scenarios of the mesh as it is, the worst by each harm, each once."""
    worst_by: Mapping[str, Row | None]
    """The worst scenario by each of HARMS; None when there is no such harm."""
    harms: tuple[Row, ...]
    """Rows of `worst_scenario` of the mesh as it is."""
    curves: tuple[Row, ...]
    """Rows of `scenario_curve`."""
    links: tuple[LinkFacts, ...]
    """All links of the mesh as it is, the highest worst case first."""
    link_rows: tuple[Row, ...]
    """Scenarios that cause the worst cases of the links that are shown."""
    spof: tuple[Row, ...]
    """Single points of failure, the worst first."""
    addresses: tuple[AddressFacts, ...]
    credit: tuple[Row, ...]
    """Paths with credit that is not enough first, then by what is missing of it."""
    placement: tuple[Row, ...]
    availability: Availability | None
    single_failures: tuple[SingleFailure, ...]
    """Single failures of the unchanged mesh, evaluated here; empty where they are too many."""

    @property
    def sent_msgs_per_s(self) -> float:
        """All demands together."""
        return float(self.model.demands.msgs_per_s.sum())

    @property
    def wanted_msgs_per_s(self) -> float:
        """Messages that should come: as `sent_msgs_per_s`, but a multicast counts for each router with subscribers."""
        return deliveries(self.model)

    def growth_steps(self, *, is_changed: bool) -> list[tuple[float, VariantFacts]]:
        """Variants that differ in how much is sent, each with the factor of its demands, the least first.

        Args:
            is_changed: whether more than demand is changed in them.
        """
        steps = [(it.growth, it) for it in self.variants if it.is_changed == is_changed and it.growth is not None]
        return sorted(steps, key=lambda step: step[0])

    @property
    def has_capacities(self) -> bool:
        """Whether the model says what links can carry; otherwise utilisation is relative to the busiest link."""
        return self.model.has_capacities


def facts_of(folder: Path, model: Model) -> Facts:
    """Read the run in *folder*. Raises: TableError when a table is missing or not what it should be."""
    outcomes = Outcomes.read(folder)
    run = _rows(folder, "run")
    base = next(iter(outcomes.of_numbers([0])), None)
    if not run or base is None:
        raise TableError(f"{folder}: no scenario 0; expected the run of a model")
    calm = calm_losses(model)
    families = _by_variant(folder, read_plan(folder).ranges)
    harms = summary_rows(folder, WORST_SCENARIO.name, BASE)
    worst = {
        harm: tuple(row["scenario"] for row in harms if row["measure"] == measure and row["rank"] <= WORST)
        for harm, measure in HARMS.items()
    }
    shown = list(dict.fromkeys(number for numbers in worst.values() for number in numbers))
    rows = dict(zip(shown, outcomes.of_numbers(shown), strict=True))
    links = _links(folder)
    causes = sorted({number for link in links[:ROWS] for number in link.scenarios[:1]})
    return Facts(
        model=model,
        run=run[0],
        base=base,
        families=tuple(_families(families)),
        variants=tuple(_variants(folder, model, families)),
        worst=tuple(rows[number] for number in shown),
        worst_by={harm: rows[numbers[0]] if numbers else None for harm, numbers in worst.items()},
        harms=tuple(harms),
        curves=tuple(summary_rows(folder, SCENARIO_CURVE.name, BASE)),
        links=links,
        link_rows=tuple(outcomes.of_numbers(causes)),
        spof=tuple(sorted(_rows(folder, "router_spof"), key=_spof_order)),
        addresses=tuple(_addresses(folder, model, families, calm)),
        credit=tuple(sorted(_rows(folder, "credit_plan"), key=_credit_order)),
        placement=tuple(_rows(folder, "placement")),
        availability=availability(folder, model, calm),
        single_failures=single_failures(model, is_split=run[0]["routing"] == ECMP),
    )


def _rows(folder: Path, name: str) -> list[Row]:
    """All rows of a small table; none when the run has no such table."""
    if not (folder / name).is_dir():
        return []
    return list(read_table(folder, name).to_pylist())


def _by_variant(folder: Path, ranges: Sequence[ScenarioRange]) -> dict[str, list[Row]]:
    """Rows of `family_summary`: variants and families in the order in which they were played."""
    order = {family: place for place, family in enumerate(dict.fromkeys(each.family for each in ranges))}
    return {
        variant: sorted(summary_rows(folder, FAMILY_SUMMARY.name, variant), key=lambda row: order[row["family"]])
        for variant in dict.fromkeys(each.variant for each in ranges)
    }


def _families(families: Mapping[str, Sequence[Row]]) -> list[FamilyFacts]:
    return [
        FamilyFacts(
            variant=variant,
            family=row["family"],
            scenarios=row["scenarios"],
            harmful=row["harmful"],
            worst_lost_msgs_per_s=row["lost_msgs_per_s_max"],
            worst_living_pairs=int(row["lost_pairs_max"]),
            worst_utilisation=row["max_utilisation_max"],
            worst_stretch_p99=row["stretch_p99_max"],
        )
        for variant, rows in families.items()
        for row in rows
        if row["family"] != NOTHING
    ]


_GROWTH: Final = re.compile(r"growth ([0-9.]+)$")


def _variants(folder: Path, model: Model, families: Mapping[str, Sequence[Row]]) -> list[VariantFacts]:
    found = []
    models = {False: model}
    if CHANGED in families:
        models[True] = variant_of(folder, model, CHANGED)
    apart = {is_changed: ConnectedComponents.of(each).apart_pairs for is_changed, each in models.items()}
    for variant, rows in families.items():
        growth = _GROWTH.search(variant)
        is_changed = variant.startswith(CHANGED)
        calm = next((row for row in rows if row["family"] == NOTHING), None)
        found.append(
            VariantFacts(
                name=variant,
                growth=float(growth[1]) if growth else 1.0 if variant in (BASE, CHANGED) else None,
                is_changed=is_changed,
                base_utilisation=0.0 if calm is None else calm["max_utilisation_max"],
                worst_utilisation=max(row["max_utilisation_max"] for row in rows),
                base_lost_msgs_per_s=0.0 if calm is None else calm["lost_msgs_per_s_max"],
                worst_lost_msgs_per_s=max(row["lost_msgs_per_s_max"] for row in rows),
                worst_living_pairs=int(max(row["lost_pairs_max"] for row in rows)),
                apart_pairs=apart[is_changed],
                unknown_capacities=models[is_changed].unknown_capacities,
            )
        )
    return found


def _links(folder: Path) -> tuple[LinkFacts, ...]:
    """The worse direction of each link of the mesh as it is."""
    table = read_table(folder, "link_worst")
    table = table.filter(pc.equal(table.column("variant"), BASE))
    order = sorted(
        table.select(["link", "src", "dst", "base_msgs_per_s", "base_utilisation", "worst_msgs_per_s",
                      "worst_bytes_per_s", "worst_utilisation", "scenarios"]).to_pylist(),
        key=lambda row: (-row["worst_utilisation"], -row["base_utilisation"], row["link"], row["src"]),
    )  # fmt: skip
    worse: dict[str, LinkFacts] = {}
    for row in order:
        if row["link"] not in worse:
            worse[row["link"]] = LinkFacts(**{**row, "scenarios": tuple(row["scenarios"])})
    return tuple(worse.values())


def _addresses(
    folder: Path, model: Model, families: Mapping[str, Sequence[Row]], calm: Mapping[str, float]
) -> list[AddressFacts]:
    """Find what scenarios of the mesh as it is do to addresses.

    Args:
        folder: of the run.
        model: its model.
        families: as `_by_variant` has them.
        calm: as `calm_losses` has it.
    """
    rows = {row["address"]: row for row in summary_rows(folder, ADDRESS_SUMMARY.name, BASE)}
    sites = Counter(site.address for site in model.subscribers)
    scenarios = sum(row["scenarios"] for row in families[BASE])
    found = []
    for address in model.addresses:
        row = rows.get(address.text)
        is_worse = row is not None and row["max_lost_msgs_per_s"] >= calm[address.text]
        most = row["max_lost_msgs_per_s"] if row is not None and is_worse else calm[address.text]
        dead = 0 if row is None else row["dead_scenarios"]
        found.append(
            AddressFacts(
                address=address.text,
                treatment=str(address.treatment),
                subscriber_routers=sites[address.text],
                harmful=0 if row is None else row["scenarios"],
                dead=dead if address.text in sites else scenarios,
                worst_lost_msgs_per_s=most,
                worst_scenario=None if not most else row["worst_scenario"] if row is not None and is_worse else 0,
            )
        )
    return sorted(found, key=lambda it: (-it.dead, -it.worst_lost_msgs_per_s, -it.harmful, it.address))


def _spof_order(row: Row) -> tuple[Any, ...]:
    return -row["unreachable_pairs"], -row["lost_msgs_per_s"], -row["dead_addresses"], row["kind"], row["element"]


def _credit_order(row: Row) -> tuple[Any, ...]:
    """Sort key: paths without enough credit first, then by the share of the configured credit that its users need."""
    needed, configured = row["shared_needed"], row["configured"]
    share = needed / max(configured, 1) if needed and configured is not None else 0.0
    return row["is_enough"] is not False, -share, row["address"], row["src"], row["dst"]
