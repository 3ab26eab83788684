"""The tables that what-if runs write: their columns, what each means, and whether a table is what it should be.

Each table is a folder of Parquet files, read as one. `docs/reference/whatif-tables.md` is made from this module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from mesh_config.findings import nearest
from router.whatif.pipeline.layout_columns import (
    FORMAT,
    INT,
    REAL,
    TEXT,
    Column,
    Layout,
    TableError,
    count,
    directed,
    flag,
    listing,
    percentiles,
    real,
    scenario_number,
    text,
    variant_name,
)  # fmt: skip
from router.whatif.pipeline.live_layouts import (
    ADDRESS_RATE,
    DEMAND_FORECAST,
    DEMAND_PERIOD,
    DEMAND_RATE,
    LINK_FORECAST,
    LINK_RATE,
)  # fmt: skip
from router.whatif.pipeline.summary_layouts import (
    ADDRESS_SUMMARY,
    FAMILY_SUMMARY,
    PAIR_SUMMARY,
    SCENARIO_CURVE,
    WORST_SCENARIO,
)  # fmt: skip

__all__ = [
    "ADDRESS_IMPACT",
    "ADDRESS_RATE",
    "ADDRESS_SUMMARY",
    "CONVERGENCE",
    "CREDIT_PLAN",
    "Column",
    "DEMAND_FORECAST",
    "DEMAND_PERIOD",
    "DEMAND_RATE",
    "FAMILY_SUMMARY",
    "FORMAT",
    "LAYOUTS",
    "LINK_FORECAST",
    "LINK_LOAD",
    "LINK_RATE",
    "LINK_WORST",
    "Layout",
    "OF_LINKS",
    "OF_SCENARIOS",
    "PAIR_IMPACT",
    "PAIR_SUMMARY",
    "PLACEMENT",
    "ROUTER_SPOF",
    "RUN",
    "SCENARIO",
    "SCENARIO_CURVE",
    "SCENARIO_LOAD",
    "SUMMARIES",
    "TableError",
    "WORST_SCENARIO",
    "layout_of",
    "page",
    "plain",
]

SCENARIO: Final = Layout(
    name="scenario",
    doc="What each scenario does to the mesh. Everything that is compared is compared with the same variant before "
    "anything failed.",
    key=("scenario",),
    columns=(
        scenario_number(),
        variant_name(),
        text(
            "family",
            "What the scenario is one of: `none` (nothing fails: the first scenario of each variant), `links:2`, "
            "`links:1+routers:1`, `srlg`, `sites`, `maintenance`.",
        ),
        text("group", "The group that fails, or is held down while something else fails.", is_nullable=True),
        listing("failed_links", TEXT, "Links that fail by themselves; those of failed routers are not repeated."),
        listing("failed_routers", TEXT, "Routers that fail."),
        real(
            "probability",
            "That exactly this is down, from failure and repair rates; those of `maintenance` while the group is held "
            "down. They add up to at most 1 in each variant, so sum them within one. What has no rates of its own "
            "never fails: 0. Null when nothing in the model has rates.",
            "1",
            is_nullable=True,
        ),
        count("unreachable_pairs", "Ordered pairs of routers that had a path and have none.", unit="pairs"),
        count(
            "dead_end_pairs",
            "Those of them of which one router itself has failed; the others are living routers that lose each other.",
            unit="pairs",
        ),
        real(
            "lost_msgs_per_s",
            "Messages that don't arrive: demand for a router or an address that finds no way to one that takes it. It "
            "includes what clients of failed routers would send, and what is lost while nothing fails. Of a multicast "
            "each copy counts: the demand times its routers with subscribers that miss it, failed ones included; one "
            "copy when it has no subscribers.",
            "msg/s",
        ),
        real("lost_bytes_per_s", "The same in bytes.", "bytes/s"),
        count("dead_addresses", "Addresses all of whose subscribers sit at routers that failed.", unit="addresses"),
        count(
            "starved_publishers",
            "Demands for an address whose router lives and that find no subscriber, or none with credit left; of a "
            "multicast, those that reach no subscriber at all. It counts routers that send to an address, not rows of "
            "`demands` by class, nor clients. Which cause each has, `Run.lost_demands` tells.",
            unit="demands",
        ),
        real("max_utilisation", "The highest utilisation of a link direction, as in `link_load`.", "1"),
        text("max_utilisation_link", "The busiest link; null when nothing is sent.", is_nullable=True),
        text("max_utilisation_src", "The router that sends on it in the busiest direction.", is_nullable=True),
        *percentiles(
            "stretch",
            "Cost of the path after the failure by its cost before, rounded to thousandths, over the ordered pairs "
            "that had one and have one; null when there is no such pair.",
            "1",
        ),
        *percentiles(
            "delay",
            "One-way delay of the paths between all ordered pairs that have one; null where no delays are known.",
            "ms",
            "_ms",
        ),
        count("components", "Parts into which the living routers fall.", unit="parts"),
    ),
)

PAIR_IMPACT: Final = Layout(
    name="pair_impact",
    doc="Pairs of living routers that lose their path, or with `--pairs changed` also those whose path costs another "
    "amount. With `--pairs none` it is empty. Pairs with a failed router are not listed: they are all its pairs.",
    key=("scenario", "src", "dst"),
    columns=(
        scenario_number(),
        text("src", "The router at which messages enter."),
        text("dst", "The router that they are for."),
        flag("is_lost", "Whether there is no path any more."),
        count("base_cost", "Cost of the path before the failure.", unit="cost"),
        count("cost", "Cost after it; null when there is no path.", is_nullable=True, unit="cost"),
    ),
)

LINK_LOAD: Final = Layout(
    name="link_load",
    doc="Load of each direction of each link when nothing has failed.",
    key=("variant", "link", "src"),
    columns=(
        variant_name(),
        *directed(),
        real("msgs_per_s", "Messages sent.", "msg/s"),
        real("bytes_per_s", "Bytes of messages sent.", "bytes/s"),
        real(
            "capacity_msgs_per_s",
            "Capacity: `capacity_msgs` of the model; null when it does not say.",
            "msg/s",
            is_nullable=True,
        ),
        real("capacity_bytes_per_s", "The same in bytes: `capacity_bytes` of the model.", "bytes/s", is_nullable=True),
        real(
            "utilisation",
            "Load as a share of capacity, the larger of messages and bytes; 0 where the link has neither capacity. In "
            "a model without any it is a share of the busiest direction of the mesh as it is.",
            "1",
        ),
    ),
)

LINK_WORST: Final = Layout(
    name="link_worst",
    doc="The highest utilisation of each direction of each link over all scenarios of a variant, and what causes it. "
    "All families count: of a run with `links:2`, two failures at once as well. For some families alone ask "
    "`scenario_load`, or play these alone.",
    key=("variant", "link", "src"),
    columns=(
        variant_name(),
        *directed(),
        real("base_msgs_per_s", "Messages sent when nothing has failed.", "msg/s"),
        real("base_utilisation", "Its utilisation then, as in `link_load`.", "1"),
        real("worst_msgs_per_s", "Messages sent in the worst scenario.", "msg/s"),
        real("worst_bytes_per_s", "Bytes of messages sent in that scenario.", "bytes/s"),
        real("worst_utilisation", "Utilisation in that scenario; at least the base.", "1"),
        listing(
            "scenarios",
            INT,
            "Up to ten scenarios with the highest utilisations above the base, the highest first, then the lowest "
            "number; empty when no failure adds to it.",
        ),
        listing("scenario_msgs_per_s", REAL, "Messages sent in each of them.", "msg/s"),
        listing("scenario_bytes_per_s", REAL, "Bytes of messages sent in each of them.", "bytes/s"),
        listing("scenario_utilisation", REAL, "Utilisation in each of them.", "1"),
    ),
)

SCENARIO_LOAD: Final = Layout(
    name="scenario_load",
    doc="Load of each direction of each link in each scenario. It is there with `--loads all`; with `--loads changed` "
    "it lists the directions whose load isn't that of `link_load`, of the same variant. The table `run` says which.",
    key=("scenario", "link", "src"),
    columns=(
        scenario_number(),
        *directed(),
        real("msgs_per_s", "Messages sent.", "msg/s"),
        real("bytes_per_s", "Bytes of messages sent.", "bytes/s"),
        real("utilisation", "Load as a share of capacity, as in `link_load`.", "1"),
        flag("is_down", "Whether the link has failed, or a router at one of its ends."),
    ),
)

ADDRESS_IMPACT: Final = Layout(
    name="address_impact",
    doc="Addresses that lose subscribers or publishers, by scenario; those that lose nothing are not listed.",
    key=("scenario", "address"),
    columns=(
        scenario_number(),
        text("address", "The address."),
        count("subscriber_routers", "Routers with subscribers that still live.", unit="routers"),
        count("lost_subscriber_routers", "Routers with subscribers that failed.", unit="routers"),
        count(
            "starved_publishers",
            "Demands for it that are starved, as in `scenario`: how many demands, not how many clients.",
            unit="demands",
        ),
        real(
            "lost_msgs_per_s",
            "Messages for it that don't arrive, counted as in `scenario`: of a multicast each copy. So a multicast "
            "that reaches nine of ten routers has lost something, with no publisher starved.",
            "msg/s",
        ),
    ),
)

ROUTER_SPOF: Final = Layout(
    name="router_spof",
    doc="Single points of failure: what the loss of one router, link or group takes from all others.",
    key=("kind", "element"),
    columns=(
        text("kind", "`router`, `link`, or the kind of a group: `srlg`, `site`."),
        text("element", "Its id."),
        count("scenario", "The scenario in which it fails alone; null when the run has none.", is_nullable=True),
        flag("is_cut", "Whether living routers lose each other: a bridge or an articulation point."),
        count("unreachable_pairs", "Ordered pairs of living routers that lose each other.", unit="pairs"),
        count("dead_addresses", "Addresses that lose their last subscriber.", unit="addresses"),
        count("starved_publishers", "Demands that find no subscriber though their router lives.", unit="demands"),
        real(
            "lost_msgs_per_s",
            "As in `scenario`, less what is lost while nothing fails; of a router it includes what its own clients "
            "would send.",
            "msg/s",
        ),
    ),
)

CREDIT_PLAN: Final = Layout(
    name="credit_plan",
    doc="Credit that each path needs for what is offered, and what is configured: at most credit / round trip passes.",
    key=("address", "src", "dst"),
    columns=(
        text("address", "The address; of a demand for a router, the router's name."),
        text("src", "The router at which messages enter."),
        text("dst", "The router whose subscribers take them."),
        real(
            "msgs_per_s",
            "Messages offered to that path: those that it carries, and at the nearest router those that find no "
            "credit, which are lost until there is enough. So it may be more than `link_load` has.",
            "msg/s",
        ),
        real(
            "rtt_ms",
            "There and back, without the subscriber's time; null where no delays are known.",
            "ms",
            is_nullable=True,
        ),
        real("service_ms", "Time of the subscriber for one message.", "ms", is_nullable=True),
        count("needed", "Credit that this path alone needs for `msgs_per_s`.", is_nullable=True, unit="messages"),
        count(
            "shared_needed",
            "Credit that all paths of the address to that router need together, since they share it.",
            is_nullable=True,
            unit="messages",
        ),
        count(
            "configured",
            "Credit that the subscribers of that router grant; null when not known.",
            is_nullable=True,
            unit="messages",
        ),
        real(
            "limit_msgs_per_s",
            "What the configured credit lets pass on this path, if all that share it grow alike.",
            "msg/s",
            is_nullable=True,
        ),
        flag(
            "is_enough",
            "Whether configured credit is at least what all paths need together; null when one of them is not known.",
            is_nullable=True,
        ),
    ),
)

PLACEMENT: Final = Layout(
    name="placement",
    doc="Where one more link helps most, and which router a subscriber should sit at; the best first.",
    key=("kind", "measure", "rank"),
    columns=(
        text(
            "kind",
            "`link`: a link to be added; `move`: the subscribers of an address at one router, to be moved to another; "
            "`addition`: subscribers to be added at one more router.",
        ),
        text(
            "measure",
            "What is made better: `mean_cost` of the paths of all pairs; `load`, the sum of the costs of all links "
            "times the messages/s on them (for a link: without multicasts); `cut_pairs`, ordered pairs that lose each "
            "other, summed over every single failure; `lost_msgs`, messages/s that find no subscriber, summed "
            "likewise; `unreachable_pairs`, ordered pairs without a path though nothing fails; `max_utilisation`. "
            "`load` and `lost_msgs` of subscribers are told as if credit sufficed.",
        ),
        count("rank", "1 is the best of its kind by its measure."),
        text("a", "One end of the link; of subscribers, the router at which they are, or the nearest such one."),
        text("b", "The other end, or the router at which they should be."),
        text("address", "What they are subscribed to; null for a link.", is_nullable=True),
        count("cost", "Cost of the link that is added; null for subscribers.", is_nullable=True, unit="cost"),
        real("before", "The measure as it is.", "of the measure"),
        real("after", "The measure with the change.", "of the measure"),
        real("gain", "What is gained, positive when it is better.", "of the measure"),
    ),
)

CONVERGENCE: Final = Layout(
    name="convergence",
    doc="How long control planes take to agree, what they send and compute meanwhile: real control planes under "
    "virtual time, on a network and on machines that are simulated.",
    key=(
        "mesh",
        "routers",
        "links",
        "hello_interval_s",
        "hello_max_age_s",
        "ra_interval_s",
        "ra_interval_flux_s",
        "remote_ls_max_age_s",
        "spf_hold_down_s",
        "seed",
        "event",
    ),
    columns=(
        text("mesh", "Name of the model, or of the shape."),
        count("routers", "Routers in the mesh.", unit="routers"),
        count("links", "Links between them.", unit="links"),
        real("hello_interval_s", "The routers' setting.", "s"),
        real("hello_max_age_s", "The routers' setting.", "s"),
        real("ra_interval_s", "The routers' setting.", "s"),
        real("ra_interval_flux_s", "The routers' setting.", "s"),
        real("remote_ls_max_age_s", "The routers' setting.", "s"),
        real("spf_hold_down_s", "The routers' setting.", "s"),
        count("seed", "Of delays, of what fails, and of the shape where it takes one."),
        count("event", "0 is the cold start; then failures and repairs, one after the other."),
        text(
            "kind",
            "`start`: all routers at once. `link`: a connection breaks and both ends are told. `router`: a process is "
            "killed. `silent-link`, `silent-router`: a link or a machine is gone and nobody is told. `repair`: what "
            "failed last is back. `calm`: nothing happens.",
        ),
        text("what", "The link or router; empty for all of them."),
        real(
            "converge_s",
            "From the event to the last change of any router's routes, all of which are shortest paths then. Null "
            "when that did not come to be in a minute and three `hello_max_age_s`, and for `calm`.",
            "s of virtual time",
            is_nullable=True,
        ),
        real(
            "known_s",
            "From the event until the last router knew who has appeared and who is gone, which is what routers log; "
            "null as above.",
            "s of virtual time",
            is_nullable=True,
        ),
        count("wrong", "Routes of the first router that is wrong in the end; 0 when all are right."),
        real("period_s", "Time in which the following was counted.", "s of virtual time"),
        count(
            "messages",
            "Control messages written by all routers; but for `calm` without HELLO and RA, which come by the clock.",
            unit="messages",
        ),
        count("bytes", "Bytes of them, without frames.", unit="bytes"),
        count("messages_busiest", "Those of the router that has written most.", unit="messages"),
        count("bytes_busiest", "Bytes of the router that has written most.", unit="bytes"),
        count("spf_runs", "Computations of all routes, by all routers."),
        count("dijkstra_runs", "Trees of shortest paths found for them and for multicasts, by all routers."),
        real("processor_s", "Processor time of all routers, as far as it is modelled.", "s"),
    ),
)

RUN: Final = Layout(
    name="run",
    doc="One row: what was run, on what, by what.",
    key=("model_hash",),
    columns=(
        text("model", "Name of the model."),
        text("model_hash", "SHA-256 of the model in its canonical form."),
        text("plan", "The plan as JSON: variants, families with their first scenario and number of scenarios."),
        text("plan_hash", "SHA-256 of that."),
        text("routing", "`mesh`, as the mesh routes, or `ecmp`."),
        text("pairs", "`lost`, `changed` or `none`: what `pair_impact` lists."),
        text("loads", "`none`, `changed` or `all`: what `scenario_load` lists; with `none` there is no such table."),
        count("seed", "Of samples."),
        count("scenarios", "Rows of `scenario`.", unit="scenarios"),
        count("routers", "Routers of the mesh as it is.", unit="routers"),
        count("links", "Links of the mesh as it is.", unit="links"),
        real(
            "coverage",
            "Sum of the probabilities of the scenarios of variant `base`, without `maintenance`; what has no rates "
            "counts as never failing.",
            "1",
            is_nullable=True,
        ),
        real("residual", "1 - `coverage`: the probability of what was not run.", "1", is_nullable=True),
        text("version", "Of amqp-mesh."),
        text("speed", "`compiled` or `interpreted`.", is_measured=True),
        text("engine", "`local` or `spark`, with its address when that is remote.", is_measured=True),
        text("started", "When, as ISO 8601 in UTC.", is_measured=True),
        real("wall_s", "How long it took.", "s", is_measured=True),
        real("scenarios_per_s", "Scenarios by wall time.", "1/s", is_measured=True),
    ),
)

OF_SCENARIOS: Final = (SCENARIO, PAIR_IMPACT, SCENARIO_LOAD, ADDRESS_IMPACT)
"""Tables with rows by scenario, of which Spark writes a folder for each variant and family."""
OF_LINKS: Final = (LINK_LOAD, LINK_WORST)
"""Tables of links, over all scenarios."""
SUMMARIES: Final = (FAMILY_SUMMARY, ADDRESS_SUMMARY, PAIR_SUMMARY, WORST_SCENARIO, SCENARIO_CURVE)
"""Tables that sum up scenarios."""

LAYOUTS: Final[Mapping[str, Layout]] = MappingProxyType(
    {
        layout.name: layout
        for layout in (
            SCENARIO, PAIR_IMPACT, LINK_LOAD, LINK_WORST, SCENARIO_LOAD, ADDRESS_IMPACT, *SUMMARIES, ROUTER_SPOF,
            CREDIT_PLAN, PLACEMENT, CONVERGENCE, LINK_RATE, ADDRESS_RATE, DEMAND_RATE, DEMAND_PERIOD, DEMAND_FORECAST,
            LINK_FORECAST, RUN,
        )
    }
)  # fmt: skip
"""Every table by its name."""


def layout_of(name: str) -> Layout:
    """The layout of a table.

    Raises: TableError that names the nearest table
    """
    if name not in LAYOUTS:
        raise TableError(f"no table is called {name!r}; {said_of_names(name, LAYOUTS)}")
    return LAYOUTS[name]


def said_of_names(name: str, known: Collection[str]) -> str:
    """Say which names there are, the nearest one first.

    Args:
        name: that there isn't.
        known: those that there are.
    """
    near = nearest(name, known)
    return f"did you mean {near!r}? There are {', '.join(known)}" if near else f"expected one of {', '.join(known)}"


def said_of_missing(name: str, there: Collection[str]) -> str:
    """Say why a table is not in a folder, or which tables are.

    Args:
        name: of a table that there can be.
        there: tables of the folder.
    """
    if name == SCENARIO_LOAD.name and RUN.name in there:
        return 'expected a run with loads by scenario, made with `--loads all` or `Options(loads="all")`'
    return said_of_names(name, there)


def plain(kind: pa.DataType) -> pa.DataType:
    """A type without what writers of Parquet choose: names of the elements of lists, and whether these may be null."""
    return pa.list_(kind.value_type) if pa.types.is_list(kind) else kind


# The reference page

_HEAD: Final = f"""# Tables of what-if runs

Made from the program. Each table is a folder of Parquet files in the folder of a run: read it with
`pandas.read_parquet(FOLDER)`, `spark.read.parquet(FOLDER)` or `SELECT * FROM 'FOLDER/**/*.parquet'`. This is format
{FORMAT}; the metadata of files has unit and meaning of each column. Rows are sorted by the key.

Tables that Spark has written have folders for the values of `variant`, and those with scenarios also of `family`, such
as `scenario/variant=base/family=links%3A2`: whoever reads a part of the table reads that part of the files alone.
Readers of partitioned Parquet give both as columns, of `pair_impact`, `scenario_load` and `address_impact` too, and so
does `Run` in [programs](../how_to/what-if-notebook.md) and [SQL](../how_to/what-if-sql.md), whoever wrote them. Other
readers of what the local engine wrote join `scenario` for them.

`base` is the variant that is the mesh as it is, with all its failures; that nothing fails is the family `none`. Of a
link `src` and `dst` are the router that sends on it and the one that receives; of a pair or a demand they are the
router at which messages enter and the one that they are for. A count of 0 is one of what was played: which failures
these were is in `plan` of the table `run`. A table is missing where nobody has asked for it, and in runs of a version
that didn't have it yet: run again.

Rates and loads are exact sums of millionths, divided once at the end: no result depends on the order in which things
are added, on the engine or on the number of workers.
"""


def page() -> str:
    """All tables as Markdown."""
    return "\n".join([_HEAD, *(_section(layout) for layout in LAYOUTS.values())])


def _section(layout: Layout) -> str:
    rows = [
        f"| `{column.name}` | {_type_words(column.kind)} | {column.unit or '-'} | {column.doc}{_notes(column)} |"
        for column in layout.columns
    ]
    key = ", ".join(f"`{column}`" for column in layout.key)
    return "\n".join(
        [
            f"## {layout.name}\n",
            f"{layout.doc}\n",
            f"Key: {key}.\n",
            "| column | type | unit | is |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _type_words(kind: pa.DataType) -> str:
    return f"list of {kind.value_type}" if pa.types.is_list(kind) else str(kind)


def _notes(column: Column) -> str:
    notes = (["May be null."] if column.is_nullable and "ull" not in column.doc else []) + (
        ["Differs from run to run."] if column.is_measured else []
    )
    return "".join(f" {note}" for note in notes)
