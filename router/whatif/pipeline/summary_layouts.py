"""Tables that sum up the scenarios of a run: by family, by address, by pair of routers."""

from __future__ import annotations

from typing import Final

from router.whatif.pipeline.schema_types import Column, Layout, count, percentiles, real, text, variant_name


def _distribution(name: str, doc: str, unit: str) -> tuple[Column, ...]:
    """Percentiles and the maximum of a column of `scenario`, over scenarios."""
    return (
        *percentiles(name, doc, unit, of="the scenarios", is_nullable=False),
        real(f"{name}_max", f"{doc} Maximum over the scenarios.", unit),
    )


FAMILY_SUMMARY: Final = Layout(
    name="family_summary",
    doc="Effects of the scenarios of each family, by variant: how many do harm, the mean loss over time, "
    "and percentiles over the scenarios. Each percentile is the value of a scenario, the nearest "
    "rank.",
    key=("variant", "family"),
    columns=(
        variant_name(),
        text("family", "Family of the scenarios, as in `scenario`; all groups of `maintenance` together."),
        count("scenarios", "Scenarios of the family that were run.", unit="scenarios"),
        count(
            "harmful",
            "Scenarios in which running routers lose connectivity, or more publishers or addresses are "
            "without a subscriber than while nothing fails.",
            unit="scenarios",
        ),
        real(
            "probability",
            "Sum of the probabilities of the scenarios, as a share of the time; null when the model has no "
            "rates, and for `maintenance`.",
            "1",
            is_nullable=True,
        ),
        real(
            "mean_lost_msgs_per_s",
            "Contribution of the family to the mean loss: the sum over its scenarios of the loss times the "
            "probability; null as for `probability`.",
            "msg/s",
            is_nullable=True,
        ),
        real(
            "mean_unreachable_pairs",
            "Contribution of the family to the mean number of ordered pairs without a path, pairs of failed "
            "routers included; null as for `probability`.",
            "pairs",
            is_nullable=True,
        ),
        *_distribution("lost_msgs_per_s", "Messages that don't arrive, as in `scenario`.", "msg/s"),
        *_distribution("lost_pairs", "Ordered pairs of running routers that lose connectivity.", "pairs"),
        *_distribution("max_utilisation", "Highest utilisation of a link direction.", "1"),
        real(
            "stretch_p99_max",
            "The highest `stretch_p99` of a scenario; null when no pair keeps a path in any.",
            "1",
            is_nullable=True,
        ),
    ),
)

ADDRESS_SUMMARY: Final = Layout(
    name="address_summary",
    doc="Effects of scenarios on each address, by variant. An address that loses messages while nothing fails "
    "loses the same in each scenario that `address_impact` does not list for it, and these count too. A failure can "
    "also lower the loss of a balanced address, by bringing publishers to subscribers with credit. Addresses that no "
    "scenario affects are not listed.",
    key=("variant", "address"),
    columns=(
        variant_name(),
        text("address", "The address."),
        count(
            "scenarios",
            "Scenarios in which the address loses subscribers or messages, or has starved publishers. When it has "
            "losses or starved publishers while nothing fails, these are all of the variant but those in which a "
            "failure ends that.",
            unit="scenarios",
        ),
        count(
            "dead_scenarios",
            "Scenarios in which all subscribers of the address are at failed routers, as `dead_addresses` of "
            "`scenario` counts: 0 when nobody subscribes to it.",
            unit="scenarios",
        ),
        real("max_lost_msgs_per_s", "Maximum message loss in any scenario, as in `address_impact`.", "msg/s"),
        count("worst_scenario", "The first scenario with the maximum loss."),
        real(
            "probability",
            "Sum of the probabilities of these scenarios, without `maintenance`; null when the model has no rates.",
            "1",
            is_nullable=True,
        ),
        real(
            "mean_lost_msgs_per_s",
            "Mean loss: the sum over the scenarios of the loss times the probability, what is lost while nothing "
            "fails included; null as for `probability`. With the losses of demands for routers these add up to "
            "`mean_lost_msgs_per_s` of all families in `family_summary`.",
            "msg/s",
            is_nullable=True,
        ),
        real(
            "dead_probability",
            "Sum of the probabilities of `dead_scenarios`; null as for `probability`.",
            "1",
            is_nullable=True,
        ),
    ),
)

PAIR_SUMMARY: Final = Layout(
    name="pair_summary",
    doc="The ten ordered pairs of routers of each variant that are without a path for the longest time. "
    "Empty when the model has no rates, when `pair_impact` has no rows, and when it has more than "
    "four million.",
    key=("variant", "rank"),
    columns=(
        variant_name(),
        count("rank", "Rank of the pair: 1 is without a path for the longest time; ties by the names of the routers."),
        text("src", "The router at which messages enter."),
        text("dst", "The router that they are for."),
        real(
            "down_probability",
            "Share of the time in which one of the routers is down, or no path connects them, over all "
            "scenarios without `maintenance`.",
            "1",
        ),
    ),
)

WORST_SCENARIO: Final = Layout(
    name="worst_scenario",
    doc="The worst twenty scenarios of each variant by each measure. Scenarios in which nothing is lost, "
        "no path is longer, or nothing fails to load a link, are not listed.",
    key=("variant", "measure", "rank"),
    columns=(
        variant_name(),
        text("measure", "`lost_msgs_per_s`, `max_utilisation`, `stretch_p99` of `scenario`, or `lost_pairs`: ordered "
                        "pairs of running routers that lose connectivity."),
        count("rank", "Rank of the scenario: 1 is the worst; ties by its number."),
        count("scenario", "The scenario."),
        real("value", "Value of the measure in the scenario.", "as the measure"),
    ),
)  # fmt: skip

SCENARIO_CURVE: Final = Layout(
    name="scenario_curve",
    doc="Exceedance curves of the unchanged mesh: the number of scenarios in which a measure reaches a "
        "value. Of all scenarios by falling value some hundred are listed, close to each other among the "
        "worst.",
    key=("variant", "family", "measure", "rank"),
    columns=(
        variant_name(),
        text("family", "Family of the scenarios, as in `scenario`; `all`: every failure, for `stretch_p50`, `_p95` and "
                       "`_p99`, in which some pairs keep a path."),
        text("measure", "`lost_msgs_per_s`, `max_utilisation` or `stretch_p50`, `_p95`, `_p99` of `scenario`."),
        count("rank", "Number of scenarios that have this value or a larger one; the last row of a curve has all.",
              unit="scenarios"),
        real("value", "Value of the measure in the scenario of this rank.", "as the measure"),
        count("larger", "Number of scenarios that have a larger value.", unit="scenarios"),
    ),
)  # fmt: skip
