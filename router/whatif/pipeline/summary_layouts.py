"""Tables that sum up the scenarios of a run: by family, by address, by pair of routers."""

from __future__ import annotations

from typing import Final

from router.whatif.pipeline.layout_columns import Column, Layout, count, percentiles, real, text, variant_name


def _distribution(name: str, doc: str, unit: str) -> tuple[Column, ...]:
    """Percentiles and the maximum of a column of `scenario`, over scenarios."""
    return (
        *percentiles(name, doc, unit, of="the scenarios", is_nullable=False),
        real(f"{name}_max", f"{doc} The most in any of them.", unit),
    )


FAMILY_SUMMARY: Final = Layout(
    name="family_summary",
    doc="What the scenarios of each family do, by variant: how many do harm, what is lost on the average of time, and "
    "percentiles over them. Each percentile is the value of a scenario, the nearest rank.",
    key=("variant", "family"),
    columns=(
        variant_name(),
        text("family", "As in `scenario`; all groups of `maintenance` together."),
        count("scenarios", "Scenarios of it that were played.", unit="scenarios"),
        count(
            "harmful",
            "Those in which living routers lose each other, or more publishers or addresses are without a subscriber "
            "than while nothing fails.",
            unit="scenarios",
        ),
        real(
            "probability",
            "Sum of their probabilities: the share of the time; null when the model has no rates, and for "
            "`maintenance`.",
            "1",
            is_nullable=True,
        ),
        real(
            "mean_lost_msgs_per_s",
            "Sum of what each loses times its probability: what the family adds to the mean of what is lost; null as "
            "above.",
            "msg/s",
            is_nullable=True,
        ),
        real(
            "mean_unreachable_pairs",
            "The same of ordered pairs without a path, those of failed routers included; null as above.",
            "pairs",
            is_nullable=True,
        ),
        *_distribution("lost_msgs_per_s", "Messages that don't arrive, as in `scenario`.", "msg/s"),
        *_distribution("lost_pairs", "Ordered pairs of living routers that lose each other.", "pairs"),
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
    doc="What scenarios do to each address, by variant. Addresses that no scenario touches are not listed.",
    key=("variant", "address"),
    columns=(
        variant_name(),
        text("address", "The address."),
        count("scenarios", "Scenarios in which it loses subscribers or publishers.", unit="scenarios"),
        count("dead_scenarios", "Those of them that leave it without subscribers.", unit="scenarios"),
        real("max_lost_msgs_per_s", "The most that doesn't arrive in any of them, as in `address_impact`.", "msg/s"),
        count("worst_scenario", "The first scenario in which it is so much."),
        real(
            "probability",
            "Sum of their probabilities, without `maintenance`; null when the model has no rates.",
            "1",
            is_nullable=True,
        ),
        real(
            "mean_lost_msgs_per_s",
            "Sum of what is lost in each times its probability; null as above.",
            "msg/s",
            is_nullable=True,
        ),
        real(
            "dead_probability",
            "Sum of the probabilities of those without subscribers; null as above.",
            "1",
            is_nullable=True,
        ),
    ),
)

PAIR_SUMMARY: Final = Layout(
    name="pair_summary",
    doc="Ordered pairs of routers that are without a path for longest, the first ten of each variant. Empty when the "
    "model has no rates, when `pair_impact` has no rows, and when it has more than four million.",
    key=("variant", "rank"),
    columns=(
        variant_name(),
        count("rank", "1 is the pair that is without a path for longest; of equal ones the first by its routers."),
        text("src", "The router at which messages enter."),
        text("dst", "The router that they are for."),
        real(
            "down_probability",
            "Share of the time in which one of them is down, or there is no path between them, in what was played "
            "without `maintenance`.",
            "1",
        ),
    ),
)

WORST_SCENARIO: Final = Layout(
    name="worst_scenario",
    doc="The scenarios that are worst in one way, the first twenty of each variant. Those in which nothing is lost, no "
    "path is longer, or nothing fails to load a link, are not listed.",
    key=("variant", "measure", "rank"),
    columns=(
        variant_name(),
        text("measure", "`lost_msgs_per_s`, `max_utilisation`, `stretch_p99` of `scenario`, or `lost_pairs`: ordered "
             "pairs of living routers that lose each other."),
        count("rank", "1 is the worst; of equal ones the first by its number."),
        count("scenario", "The scenario."),
        real("value", "What the measure is in it.", "as the measure"),
    ),
)  # fmt: skip

SCENARIO_CURVE: Final = Layout(
    name="scenario_curve",
    doc="Curves over scenarios of the mesh as it is: in how many of them a measure is so much or more. Of all "
    "scenarios by falling value some hundred are listed, close to each other among the worst.",
    key=("variant", "family", "measure", "rank"),
    columns=(
        variant_name(),
        text("family", "As in `scenario`; `all`: every failure, for `stretch_p50`, `_p95` and `_p99`, in which some "
             "pairs keep a path."),
        text("measure", "`lost_msgs_per_s`, `max_utilisation` or `stretch_p50`, `_p95`, `_p99` of `scenario`."),
        count("rank", "So many scenarios have this value or a larger one; of each curve the last row has all.",
              unit="scenarios"),
        real("value", "What the measure is in the scenario of this rank.", "as the measure"),
        count("larger", "So many scenarios have a larger value.", unit="scenarios"),
    ),
)  # fmt: skip
