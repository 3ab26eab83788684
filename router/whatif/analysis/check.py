"""Whether a run keeps within limits: the gate of a pipeline. What can't be told from a run is not within them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from router.whatif.analysis.availability import availability, calm_losses, unrated
from router.whatif.analysis.credit_plan import ClientCreditHabits, PathCountsByCredit, address_rows, credit_rows
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.analysis.spof import spof_rows
from router.whatif.analysis.traffic_delay_by_scenario import TrafficSelection, delays_ms, played
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.connected_components import ConnectedComponents
from router.whatif.model.elements import nearest_name
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run_folder import is_split, variant_of
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.wording import (
    BASE,
    NOTHING,
    NumberWriter,
    amount,
    counted,
    exact,
    failure_of,
    harm_of,
    milliseconds,
    percent,
    rate,
    served,
    told_apart,
    without_capacities,
    without_credit,
)

ALWAYS: Final = "--enough-credit-always"
SHOWN: Final = 5
"""Scenarios, or others at fault, that are named for each limit."""


@attrs.frozen(kw_only=True)
class Limits:
    """Limits that a mesh has to keep within; None and False: no such limit."""

    max_util: float | None = None
    """Utilisation of any link in any scenario, as a share."""
    max_base_util: float | None = None
    """Maximum utilisation of any link while nothing fails."""
    no_single_point_of_failure: bool = False
    """Whatever fails alone, all others keep their paths, and every address a subscriber."""
    max_lost_pairs: int | None = None
    """Ordered pairs of living routers that lose each other in any scenario."""
    max_lost_msgs: float | None = None
    """Messages per second that reach nobody in any scenario."""
    max_dead_addresses: int | None = None
    """Addresses that lose their last subscriber in any scenario."""
    max_starved_publishers: int | None = None
    """Demands of living routers that find no subscriber in any scenario."""
    max_stretch: float | None = None
    """Cost of paths after a failure by that before, for 99 % of the pairs in any scenario."""
    max_delay_ms: float | None = None
    """One-way delay for 99 % of the pairs in any scenario."""
    max_address_delay_ms: Mapping[str, float] = attrs.field(factory=dict)
    """Maximum one-way delay of 99 % of the messages to an address in any scenario, by address, milliseconds."""
    max_class_delay_ms: Mapping[str, float] = attrs.field(factory=dict)
    """Maximum delay by class of demands, milliseconds."""
    min_availability: float | None = None
    """Minimum share of all messages (without demands: of all pairs) that is served; time not covered by scenarios
    counts as lost."""
    enough_credit: bool = False
    """Every path has the credit that its rate needs while nothing fails."""
    enough_credit_always: bool = False
    """Whether every path must have enough credit in every scenario."""
    allowed: Collection[str] = ()
    """Ids of routers, links and groups that may be single points of failure."""
    families: Collection[str] = ()
    """Only scenarios of these families count, such as `links:1`; all when empty."""
    variant: str = BASE
    """Only scenarios of this variant count."""


@attrs.frozen(kw_only=True)
class LimitResult:
    """One limit, and whether the run keeps it."""

    limit: str
    """Limit as an operator writes it: `--max-util 0.8`."""
    is_kept: bool
    found: str
    """Value found, in words."""
    faults: tuple[str, ...] = ()
    """Items at fault, the worst first, up to SHOWN."""
    count: int = 0
    """Number of items at fault."""
    scenarios: tuple[int, ...] = ()
    """Numbers of the faulty scenarios, where the faults are scenarios."""


def check(folder: Path, limits: Limits, model: Model) -> list[LimitResult]:
    """Compare the run in *folder* with limits; *model* is what was run.

    Returns: an answer for each limit that is set.
    Raises: TableError, also for a family, a variant or an element that is not there.
    """
    outcomes = Outcomes.read(folder)
    _refuse_unknown("variant", [limits.variant], outcomes.values("variant"))
    _refuse_unknown("family", limits.families, [name for name in outcomes.values("family") if name != NOTHING])
    refuse_unknown_elements(limits.allowed, model)
    _refuse_unknown("address", limits.max_address_delay_ms, [address.text for address in model.addresses])
    _refuse_unknown("class of demands", limits.max_class_delay_ms, _classes(model))
    found: list[LimitResult] = []
    for make in (_utilisation, _spof, _counts, _paths, _delays, _availability, _credit):
        found += make(folder, outcomes, limits, model)
    return found


def refuse_unknown_elements(names: Collection[str], model: Model) -> None:
    """Refuse names of what no single point of failure can be. Raises: TableError for one that the model lacks."""
    elements = [router.id for router in model.routers] + [link.id for link in model.links]
    elements += [group.name for group in model.groups]
    elements += sorted({router.site for router in model.routers if router.site})
    _refuse_unknown("router, link or group", names, elements)


def _refuse_unknown(what: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            near = nearest_name(name, known)
            expected = f"; expected one of {', '.join(known)}" if len(known) <= 10 else ""
            hint = f"; did you mean `{near}`?" if near else ""
            raise TableError(f"no {what} `{name}`{expected}{hint}")


def _counting(outcomes: Outcomes, limits: Limits) -> NDArray[np.bool_]:
    """Mask of the scenarios that count, by row. The scenario in which nothing fails always does."""
    here = outcomes.having("variant", limits.variant)
    if not limits.families:
        return here
    wanted = outcomes.having("family", NOTHING)
    for family in limits.families:
        wanted = wanted | outcomes.having("family", family)
    return here & wanted


def _at_most(
    outcomes: Outcomes,
    among: NDArray[np.bool_],
    option: str,
    most: float,
    values: NDArray[Any],
    text: NumberWriter,
    what: str,
    nothing: str = "",
) -> LimitResult:
    """A limit for a value of each scenario; NaN is no value, and no value looks like the limit that it isn't.

    *what* is said of a value, *nothing* where no scenario has one.
    """
    counts = among & ~np.isnan(values)
    limit = f"{option} {exact(most)}"
    if not counts.any():
        return LimitResult(limit=limit, is_kept=True, found=nothing or f"no scenario has {what}")
    highest, _ = told_apart(text, float(values[counts].max()), most)
    over = counts & (values > most)
    if not over.any():
        return LimitResult(limit=limit, is_kept=True, found=f"at most {highest} {what}")
    worst = np.flatnonzero(over)
    worst = worst[np.lexsort((worst, -values[worst]))][:SHOWN]
    rows = outcomes.rows(worst)
    return LimitResult(
        limit=limit,
        is_kept=False,
        found=f"{highest} {what}",
        faults=tuple(
            f"scenario {row['scenario']}: {failure_of(row)}: "
            f"{told_apart(text, float(values[place]), most)[0]}{_where(row, option)}"
            for row, place in zip(rows, worst, strict=True)
        ),
        count=int(over.sum()),
        scenarios=tuple(row["scenario"] for row in rows),
    )


def _where(row: dict[str, Any], option: str) -> str:
    """The link of the highest utilisation."""
    if not option.endswith("util") or row["max_utilisation_link"] is None:
        return ""
    return f" on {row['max_utilisation_link']} from {row['max_utilisation_src']}"


def _utilisation(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    calm = outcomes.having("variant", limits.variant) & outcomes.having("family", NOTHING)
    for option, most, among in (
        ("--max-base-util", limits.max_base_util, calm),
        ("--max-util", limits.max_util, _counting(outcomes, limits)),
    ):
        if most is None:
            continue
        if not model.has_capacities:
            found = "can't be determined: the model has no capacities of links"
            yield LimitResult(limit=f"{option} {exact(most)}", is_kept=False, found=found)
            continue
        what = "utilisation"
        if unknown := without_capacities(variant_of(folder, model, limits.variant).unknown_capacities):
            what += f" ({unknown})"
        yield _at_most(outcomes, among, option, most, outcomes.numbers("max_utilisation"), percent, what)


def _spof(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    if not limits.no_single_point_of_failure:
        return
    limit = "--no-single-point-of-failure"
    found = list(_spof_rows(folder, outcomes, limits, model))
    rows = [row for row in found if row["element"] not in limits.allowed]
    if not rows:
        said = "none" + (" but those allowed" if limits.allowed else "") + _apart(folder, limits, model)
        yield LimitResult(limit=limit, is_kept=True, found=said)
        return
    rows.sort(key=lambda row: (-row["unreachable_pairs"], -row["lost_msgs_per_s"], row["kind"], row["element"]))
    yield LimitResult(
        limit=limit,
        is_kept=False,
        found=counted(len(rows), "single point") + " of failure",
        faults=tuple(f"{row['kind']} {row['element']}: {harm_of(row)}" for row in rows[:SHOWN]),
        count=len(rows),
        scenarios=tuple(row["scenario"] for row in rows[:SHOWN] if row["scenario"] is not None),
    )


def _spof_rows(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterable[dict[str, Any]]:
    """Rows of `router_spof`; the run has those of the mesh as it is, of other variants they are made here."""
    if limits.variant == BASE:
        found: list[dict[str, Any]] = read_table(folder, "router_spof").to_pylist()
        return found
    changed, routes = _variant(folder, limits, model)
    return spof_rows(outcomes, changed, routes.network, routes.kernel, variant=limits.variant)


def _counts(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    among = _counting(outcomes, limits)
    pairs = "that lose connectivity" + ("" if limits.max_lost_pairs is None else _apart(folder, limits, model))
    for option, most, values, text, what in (
        ("--max-lost-pairs", limits.max_lost_pairs, outcomes.living_pairs, _count("pair"), pairs),
        ("--max-lost-msgs", limits.max_lost_msgs, outcomes.numbers("lost_msgs_per_s"), rate, "lost"),
        (
            "--max-dead-addresses", limits.max_dead_addresses, outcomes.numbers("dead_addresses"), _count("address"),
            "without a subscriber",
        ),
        (
            "--max-starved-publishers", limits.max_starved_publishers, outcomes.numbers("starved_publishers"),
            _count("publisher"), "without a subscriber",
        ),
    ):  # fmt: skip
        if most is not None:
            yield _at_most(outcomes, among, option, most, values, text, what)


def _apart(folder: Path, limits: Limits, model: Model) -> str:
    """Say that a limit leaves out pairs without a path even when nothing fails; empty where there are none."""
    pairs = ConnectedComponents.of(variant_of(folder, model, limits.variant)).apart_pairs
    return f" (without {counted(pairs, 'pair')} that have no path even when nothing fails)" if pairs else ""


def _count(noun: str) -> NumberWriter:
    """A way to write how many there are of something."""

    def words(value: float, /, *, more: int = 0) -> str:
        return counted(int(value), noun)

    return words


def _paths(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    among = _counting(outcomes, limits)
    if limits.max_stretch is not None:
        stretch = outcomes.numbers("stretch_p99")
        nothing = "no pair of routers keeps a path in any scenario"
        what = "the cost for 99 %"
        yield _at_most(outcomes, among, "--max-stretch", limits.max_stretch, stretch, _times, what, nothing)
    if limits.max_delay_ms is not None:
        limit = f"--max-delay-ms {exact(limits.max_delay_ms)}"
        delay = outcomes.numbers("delay_p99_ms")
        if np.isnan(delay[among]).all():
            why = "the model has no delays of links"
            if is_split(folder):
                why = "no path is the only one with --routing ecmp"
            yield LimitResult(limit=limit, is_kept=False, found=f"can't be determined: {why}")
        else:
            yield _at_most(outcomes, among, "--max-delay-ms", limits.max_delay_ms, delay, milliseconds, "for 99 %")


def _classes(model: Model) -> list[str]:
    return [model.demands.names[number] for number in np.unique(model.demands.klass)]


def _delays(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    """Limits by address and by class."""
    asked = [("--max-address-delay-ms", *each) for each in sorted(limits.max_address_delay_ms.items())]
    asked += [("--max-class-delay-ms", *each) for each in sorted(limits.max_class_delay_ms.items())]
    if not asked:
        return
    changed = variant_of(folder, model, limits.variant)
    network = Network.of(changed)
    if is_split(folder) or not network.has_delays:
        why = "no path is the only one with --routing ecmp" if is_split(folder) else "the model has no delays of links"
        for option, name, most in asked:
            yield LimitResult(
                limit=f"{option} {name}={exact(most)}", is_kept=False, found=f"can't be determined: {why}"
            )
        return
    traffic = [
        TrafficSelection.to_address(network, name, most)
        if option == "--max-address-delay-ms"
        else TrafficSelection.of_class(network, changed, name, most)
        for option, name, most in asked
    ]
    among = _counting(outcomes, limits)
    what = "for 99 % of the messages"
    if unknown := sum(link.delay_ms is None for link in changed.links):
        what += f" ({counted(unknown, 'link')} of which no delay is known counted as 0)"
    for (option, name, most), values in zip(asked, delays_ms(outcomes, among, network, traffic), strict=True):
        nothing = "no message arrives in any scenario"
        found = _at_most(outcomes, among, option, most, values, milliseconds, what, nothing)
        yield attrs.evolve(found, limit=f"{option} {name}={exact(most)}")


def _times(value: float, *, more: int = 0) -> str:
    return f"{amount(value, more=more)} times"


def _availability(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    least = limits.min_availability
    if least is None:
        return
    limit = f"--min-availability {exact(least)}"
    changed = variant_of(folder, model, limits.variant)
    found = availability(folder, changed, calm_losses(changed), limits.variant, limits.families)
    share = None if found is None else found.demand or found.pairs
    if found is None or share is None:
        yield LimitResult(
            limit=limit, is_kept=False, found="can't be determined: the model has no failure and repair rates"
        )
        return
    what = "messages" if found.demand else "pairs"
    low, high, _ = told_apart(served, share.at_least, share.at_most, least)
    said = f"at least {low} of all {what}, at most {high}"
    if without := unrated(changed):
        said += f", if {without} without failure and repair rates never fail"
    faults: tuple[str, ...] = ()
    if share.at_least < least <= share.at_most:
        rest = percent(found.residual)
        faults = (f"{rest} of the time is not covered by the scenarios: more of them may give an answer",)
    yield LimitResult(limit=limit, is_kept=share.at_least >= least, found=said, faults=faults)


def _credit(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> Iterator[LimitResult]:
    if limits.enough_credit:
        yield _calm_credit(folder, limits, model)
    if limits.enough_credit_always:
        calm = _calm_credit(folder, limits, model)
        is_told = calm.is_kept or calm.count > 0
        yield _credit_always(folder, outcomes, limits, model) if is_told else attrs.evolve(calm, limit=ALWAYS)


def _credit_always(folder: Path, outcomes: Outcomes, limits: Limits, model: Model) -> LimitResult:
    """Credit in every scenario that counts."""
    changed = variant_of(folder, model, limits.variant)
    network = Network.of(changed)
    kernel = Kernel(network, is_split=is_split(folder))
    rows = np.flatnonzero(_counting(outcomes, limits))
    faults: list[str] = []
    scenarios: list[int] = []
    count = 0
    for place, routes in played(outcomes, rows, network, kernel):
        short = [row for row in address_rows(routes, changed, ClientCreditHabits()) if row["is_enough"] is False]
        if not short:
            continue
        count += 1
        if len(faults) < SHOWN:
            (row,) = outcomes.rows([rows[place]])
            scenarios.append(row["scenario"])
            worst = min(
                short, key=lambda each: (each["configured"] - each["shared_needed"], each["address"], each["dst"])
            )
            faults.append(
                f"scenario {row['scenario']}: {failure_of(row)}: {worst['address']} at {worst['dst']}: "
                f"{worst['shared_needed']:,} needed, {worst['configured']:,} configured"
            )
    if not count:
        found = f"enough credit on every path in {counted(len(rows), 'scenario')}"
        return LimitResult(limit=ALWAYS, is_kept=True, found=found)
    return LimitResult(
        limit=ALWAYS,
        is_kept=False,
        found=f"{counted(count, 'scenario')} with paths short of credit",
        faults=tuple(faults),
        count=count,
        scenarios=tuple(scenarios),
    )


def _calm_credit(folder: Path, limits: Limits, model: Model) -> LimitResult:
    """Credit while nothing fails."""
    limit = "--enough-credit"
    rows = _credit_rows(folder, limits, model)
    counts = PathCountsByCredit.of(rows, model)
    without = without_credit(counts.unknown)
    short = [row for row in rows if row["is_enough"] is False]
    if short:
        # The credit of a router's subscribers is that of all paths that end there.
        pools = Counter((row["address"], row["dst"], row["shared_needed"], row["configured"]) for row in short)
        worst = sorted(pools, key=lambda pool: (pool[3] - pool[2], pool))
        return LimitResult(
            limit=limit,
            is_kept=False,
            found=f"{counted(len(short), 'path')} of {counts.known:,} short of credit{without}",
            faults=tuple(
                f"{address} at {dst}: {needed:,} needed by {counted(pools[address, dst, needed, configured], 'path')}, "
                f"{configured:,} configured"
                for address, dst, needed, configured in worst[:SHOWN]
            ),
            count=len(pools),
        )
    if not counts.known:
        why = "has no credit of subscribers, or no delays of links" if rows else "sends nothing to subscribers"
        found = f"can't be determined: the model {why}"
        return LimitResult(limit=limit, is_kept=False, found=found)
    return LimitResult(limit=limit, is_kept=True, found=f"{counted(counts.known, 'path')} with enough credit{without}")


def _credit_rows(folder: Path, limits: Limits, model: Model) -> list[dict[str, Any]]:
    """Rows of `credit_plan`; the run has those of the mesh as it is, of other variants they are made here."""
    if limits.variant == BASE:
        found: list[dict[str, Any]] = read_table(folder, "credit_plan").to_pylist()
        return found
    changed, routes = _variant(folder, limits, model)
    return credit_rows(routes, changed, ClientCreditHabits())


def _variant(folder: Path, limits: Limits, model: Model) -> tuple[Model, RoutingState]:
    """The variant that is asked about, and its state while nothing fails."""
    changed = variant_of(folder, model, limits.variant)
    network = Network.of(changed)
    return changed, RoutingState(network, Kernel(network, is_split=is_split(folder)))
