"""Facts of a report, read from the tables of a run: nothing is worked out anew, and nothing is drawn here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.analysis.availability import Availability, availability, calm_losses, connected_pairs
from router.whatif.analysis.offered_deliveries import deliveries
from router.whatif.analysis.scenario_outcomes import NOTHING, Outcomes
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run_folder import variant_of
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.scenarios.run_request import CHANGED
from router.whatif.wording import BASE

WORST: Final = 10
"""Scenarios shown of each kind of harm."""
ROWS: Final = 50
"""Rows of a table in the report; the tables of the run have all."""

Row = Mapping[str, Any]
"""A row of a table by column."""

HARMS: Final = ("lost_msgs_per_s", "living_pairs", "max_utilisation", "stretch_p99")
"""By what scenarios are bad, each in a way of its own."""


@attrs.frozen(kw_only=True)
class FamilyFacts:
    """Outcome of the scenarios of one family in one variant."""

    variant: str
    family: str
    scenarios: int
    harmful: int
    """Scenarios that do harm to others, see `is_harmful`."""
    worst_lost_msgs_per_s: float
    worst_living_pairs: int
    worst_utilisation: float
    worst_stretch_p99: float | None


@attrs.frozen(kw_only=True)
class VariantFacts:
    """One variant of the mesh: as it is, and at its worst."""

    name: str
    growth: float
    """Factor of its demands."""
    is_changed: bool
    """Whether more than demand is changed: costs, links or subscribers."""
    base_utilisation: float
    worst_utilisation: float
    base_lost_msgs_per_s: float
    worst_lost_msgs_per_s: float
    worst_living_pairs: int
    apart_pairs: int
    """Ordered pairs of routers without a path while nothing fails."""


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
    """That cause it, the worst first."""


@attrs.frozen(kw_only=True)
class AddressFacts:
    """Effects of scenarios on an address."""

    address: str
    treatment: str
    subscriber_routers: int
    harmful: int
    """Scenarios in which it loses a subscriber or a publisher."""
    dead: int
    """Scenarios in which no subscriber is left."""
    worst_lost_msgs_per_s: float
    worst_scenario: int | None


@attrs.frozen(kw_only=True, eq=False)
class Facts:
    """All that a report says."""

    model: Model
    run: Row
    outcomes: Outcomes
    base: Row
    """Scenario 0."""
    families: tuple[FamilyFacts, ...]
    variants: tuple[VariantFacts, ...]
    worst: tuple[Row, ...]
    """Scenarios of the mesh as it is, the worst by each harm, each once."""
    worst_by: Mapping[str, Row | None]
    """The worst scenario by each of HARMS; None when there is no such harm."""
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

    @property
    def sent_msgs_per_s(self) -> float:
        """All demands together."""
        return float(self.model.demands.msgs_per_s.sum())

    @property
    def wanted_msgs_per_s(self) -> float:
        """Messages that should come: as `sent_msgs_per_s`, but a multicast counts for each router with subscribers."""
        return deliveries(self.model)

    @property
    def has_capacities(self) -> bool:
        """Whether the model says what links can carry; otherwise utilisation is relative to the busiest link."""
        return self.model.has_capacities


def facts_of(folder: Path, model: Model) -> Facts:
    """Read the run in *folder*. Raises: TableError when a table is missing or not what it should be."""
    outcomes = Outcomes.read(folder)
    run = _rows(folder, "run")
    base = outcomes.row_of(0)
    if not run or base is None:
        raise TableError(f"{folder}: no scenario 0; expected the run of a model")
    calm = calm_losses(model)
    is_base = outcomes.having("variant", BASE)
    worst = {harm: outcomes.worst(_harm(outcomes, harm), WORST, is_base) for harm in HARMS}
    shown = list(dict.fromkeys(int(place) for places in worst.values() for place in places))
    rows = dict(zip(shown, outcomes.rows(shown), strict=True))
    links = _links(folder)
    causes = sorted({number for link in links[:ROWS] for number in link.scenarios[:1]})
    places = np.searchsorted(outcomes.numbers("scenario"), causes)
    return Facts(
        model=model,
        run=run[0],
        outcomes=outcomes,
        base=base,
        families=tuple(_families(outcomes)),
        variants=tuple(_variants(folder, model, outcomes)),
        worst=tuple(rows[place] for place in shown),
        worst_by={harm: rows[int(places[0])] if len(places) else None for harm, places in worst.items()},
        links=links,
        link_rows=tuple(outcomes.rows(places)),
        spof=tuple(sorted(_rows(folder, "router_spof"), key=_spof_order)),
        addresses=tuple(_addresses(folder, model, outcomes, calm)),
        credit=tuple(sorted(_rows(folder, "credit_plan"), key=_credit_order)),
        placement=tuple(_rows(folder, "placement")),
        availability=availability(folder, outcomes, model, calm),
    )


def _rows(folder: Path, name: str) -> list[Row]:
    """All rows of a small table; none when the run has no such table."""
    if not (folder / name).is_dir():
        return []
    return list(read_table(folder, name).to_pylist())


def _harm(outcomes: Outcomes, harm: str) -> NDArray[Any]:
    """The values by which scenarios are bad, 0 where they do no harm: nothing fails, or nothing is longer."""
    if harm == "living_pairs":
        return outcomes.living_pairs
    values = np.nan_to_num(outcomes.numbers(harm))
    if harm == "stretch_p99":
        return np.where(values > 1, values, 0.0)
    return np.where(outcomes.having("family", NOTHING), 0.0, values) if harm == "max_utilisation" else values


def is_harmful(outcomes: Outcomes) -> NDArray[np.bool_]:
    """By scenario: whether living routers lose each other, publishers all subscribers, or addresses all of theirs.

    What is lost with a failed router is no harm to others, and what is lost while nothing fails no harm of a failure.
    """
    found: NDArray[np.bool_] = outcomes.living_pairs > 0
    is_calm = outcomes.having("family", NOTHING)
    for variant in outcomes.values("variant"):
        here = outcomes.having("variant", variant)
        for name in ("starved_publishers", "dead_addresses"):
            values = outcomes.numbers(name)
            found = found | (here & (values > values[here & is_calm].max(initial=0)))
    return found


def _families(outcomes: Outcomes) -> list[FamilyFacts]:
    found = []
    harmful = is_harmful(outcomes)
    for variant in outcomes.values("variant"):
        of_variant = outcomes.having("variant", variant)
        for family in outcomes.values("family"):
            here = of_variant & outcomes.having("family", family)
            if family == NOTHING or not here.any():
                continue
            stretch = outcomes.numbers("stretch_p99")[here]
            found.append(
                FamilyFacts(
                    variant=variant,
                    family=family,
                    scenarios=int(here.sum()),
                    harmful=int((harmful & here).sum()),
                    worst_lost_msgs_per_s=float(outcomes.numbers("lost_msgs_per_s")[here].max()),
                    worst_living_pairs=int(outcomes.living_pairs[here].max()),
                    worst_utilisation=float(outcomes.numbers("max_utilisation")[here].max()),
                    worst_stretch_p99=None if np.isnan(stretch).all() else float(np.nanmax(stretch)),
                )
            )
    return found


_GROWTH: Final = re.compile(r"growth ([0-9.]+)$")


def _variants(folder: Path, model: Model, outcomes: Outcomes) -> list[VariantFacts]:
    found = []
    apart = {False: _apart_pairs(model)}
    if CHANGED in outcomes.values("variant"):
        apart[True] = _apart_pairs(variant_of(folder, model, CHANGED))
    utilisation, lost = outcomes.numbers("max_utilisation"), outcomes.numbers("lost_msgs_per_s")
    calm = outcomes.having("family", NOTHING)
    for variant in outcomes.values("variant"):
        here = outcomes.having("variant", variant)
        growth = _GROWTH.search(variant)
        is_changed = variant.startswith(CHANGED)
        found.append(
            VariantFacts(
                name=variant,
                growth=float(growth[1]) if growth else 1.0,
                is_changed=is_changed,
                base_utilisation=float(utilisation[here & calm].max(initial=0.0)),
                worst_utilisation=float(utilisation[here].max()),
                base_lost_msgs_per_s=float(lost[here & calm].max(initial=0.0)),
                worst_lost_msgs_per_s=float(lost[here].max()),
                worst_living_pairs=int(outcomes.living_pairs[here].max()),
                apart_pairs=apart[is_changed],
            )
        )
    return found


def _apart_pairs(model: Model) -> int:
    return len(model.routers) * (len(model.routers) - 1) - connected_pairs(model)


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


def _addresses(folder: Path, model: Model, outcomes: Outcomes, calm: Mapping[str, float]) -> list[AddressFacts]:
    """Find what scenarios of the mesh as it is do to addresses.

    Args:
        folder: of the run.
        model: its model.
        outcomes: its scenarios.
        calm: as `calm_losses` has it.
    """
    table = read_table(folder, "address_impact", ["scenario", "address", "subscriber_routers", "lost_msgs_per_s"])
    numbers = outcomes.numbers("scenario")
    is_base = np.zeros(int(numbers.max()) + 1, dtype=np.bool_)
    is_base[numbers[outcomes.having("variant", BASE)]] = True
    table = table.filter(pa.array(is_base[table.column("scenario").to_numpy()]))
    sites: dict[str, int] = {}
    for site in model.subscribers:
        sites[site.address] = sites.get(site.address, 0) + 1
    names = table.column("address").combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy(zero_copy_only=False)
    code_of = {name: code for code, name in enumerate(names.dictionary.to_pylist())}
    is_dead = table.column("subscriber_routers").to_numpy() == 0
    lost, scenario = table.column("lost_msgs_per_s").to_numpy(), table.column("scenario").to_numpy()
    found = []
    for address in model.addresses:
        here = np.flatnonzero(codes == code_of.get(address.text, -1))
        worst = int(here[np.lexsort((scenario[here], -lost[here]))[0]]) if here.size else None
        is_worse = worst is not None and lost[worst] >= calm[address.text]
        most = float(lost[worst]) if is_worse else calm[address.text]
        found.append(
            AddressFacts(
                address=address.text,
                treatment=str(address.treatment),
                subscriber_routers=sites.get(address.text, 0),
                harmful=here.size,
                dead=int(is_dead[here].sum()) if address.text in sites else int(is_base.sum()),
                worst_lost_msgs_per_s=most,
                worst_scenario=None if not most else int(scenario[worst]) if is_worse else 0,
            )
        )
    return sorted(found, key=lambda it: (-it.dead, -it.worst_lost_msgs_per_s, -it.harmful, it.address))


def _spof_order(row: Row) -> tuple[Any, ...]:
    return -row["unreachable_pairs"], -row["lost_msgs_per_s"], -row["dead_addresses"], row["kind"], row["element"]


def _credit_order(row: Row) -> tuple[Any, ...]:
    """Not enough first; then by the share of what is configured that is needed by all who share it."""
    needed, configured = row["shared_needed"], row["configured"]
    share = needed / max(configured, 1) if needed and configured is not None else 0.0
    return row["is_enough"] is not False, -share, row["address"], row["src"], row["dst"]
