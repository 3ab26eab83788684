"""The tables that what-if runs write: their columns, what each means, and whether a table is what it should be.

Each table is a folder of Parquet files, read as one. `docs/reference/whatif-tables.md` is made from this module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from mesh_config.findings import nearest
from router.whatif.pipeline.live_layouts import (
    ADDRESS_RATE,
    DEMAND_FORECAST,
    DEMAND_PERIOD,
    DEMAND_RATE,
    LINK_FORECAST,
    LINK_RATE,
)  # fmt: skip
from router.whatif.pipeline.schema_types import (
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
    doc="Effects of each scenario on the mesh. Everything that is compared is compared with the same "
    "variant before anything failed.",
    key=("scenario",),
    columns=(
        scenario_number(),
        variant_name(),
        text(
            "family",
            "Family of the scenario: `none` (nothing fails: the first scenario of each variant), `links:2`, "
            "`links:1+routers:1`, `srlg`, `sites`, `maintenance`.",
        ),
        text("group", "The group that fails, or is held down while something else fails.", is_nullable=True),
        listing("failed_links", TEXT, "Links that fail by themselves; those of failed routers are not repeated."),
        listing("failed_routers", TEXT, "Routers that fail."),
        real(
            "probability",
            "Probability that exactly this is down, from failure and repair rates; for `maintenance`, while "
            "the group is held down. They add up to at most 1 in each variant, so sum them within one. What "
            "has no rates of its own never fails: 0. Null when nothing in the model has rates.",
            "1",
            is_nullable=True,
        ),
        count("unreachable_pairs", "Ordered pairs of routers that had a path and have none.", unit="pairs"),
        count(
            "dead_end_pairs",
            "Unreachable pairs with a failed endpoint; the other unreachable pairs are running routers that "
            "lose connectivity.",
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
        real("lost_bytes_per_s", "Bytes/s that don't arrive, counted as `lost_msgs_per_s`.", "bytes/s"),
        count("dead_addresses", "Addresses whose subscribers are all at failed routers.", unit="addresses"),
        count(
            "starved_publishers",
            "Demands for an address whose router is up and that find no subscriber, or none with credit left; "
            "for a multicast, those that reach no subscriber at all. It counts routers that send to an "
            "address, not rows of `demands` by class, nor clients. `Run.lost_demands` shows the cause of "
            "each.",
            unit="demands",
        ),
        real("max_utilisation", "The highest utilisation of a link direction, as in `link_load`.", "1"),
        text("max_utilisation_link", "The busiest link; null when nothing is sent.", is_nullable=True),
        text("max_utilisation_src", "The router that sends on it in the busiest direction.", is_nullable=True),
        *percentiles(
            "stretch",
            "Cost of the path after the failure divided by its cost before, rounded to thousandths, over the "
            "ordered pairs that keep a path; null when there is no such pair.",
            "1",
        ),
        *percentiles(
            "delay",
            "One-way delay of the paths between all ordered pairs that have one; null where no delays are known.",
            "ms",
            "_ms",
        ),
        count("components", "Connected parts into which the running routers are split.", unit="parts"),
    ),
)

PAIR_IMPACT: Final = Layout(
    name="pair_impact",
    doc="Pairs of running routers that lose their path; with `--pairs changed` also pairs whose path has "
    "another cost. With `--pairs none` it is empty. Pairs with a failed router are not listed: they "
    "are all its pairs.",
    key=("scenario", "src", "dst"),
    columns=(
        scenario_number(),
        text("src", "The router at which messages enter."),
        text("dst", "The router for which the messages are."),
        flag("is_lost", "Whether the pair has no path any more."),
        count("base_cost", "Cost of the path before the failure.", unit="cost"),
        count("cost", "Cost of the path after the failure; null when there is no path.", is_nullable=True, unit="cost"),
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
        real(
            "capacity_bytes_per_s",
            "Capacity in bytes: `capacity_bytes` of the model; null when it does not say.",
            "bytes/s",
            is_nullable=True,
        ),
        real(
            "utilisation",
            "Load as a share of capacity, the larger of messages and bytes; 0 where the link has neither "
            "capacity. In a model without any it is a share of the busiest direction of the base mesh.",
            "1",
        ),
    ),
)

LINK_WORST: Final = Layout(
    name="link_worst",
    doc="The highest utilisation of each direction of each link over all scenarios of a variant, and what "
    "causes it. All families count: in a run with `links:2`, two failures at once as well. For some "
    "families only, query `scenario_load`, or run only these.",
    key=("variant", "link", "src"),
    columns=(
        variant_name(),
        *directed(),
        real("base_msgs_per_s", "Messages sent when nothing has failed.", "msg/s"),
        real("base_utilisation", "Utilisation when nothing has failed, as in `link_load`.", "1"),
        real("worst_msgs_per_s", "Messages sent in the worst scenario.", "msg/s"),
        real("worst_bytes_per_s", "Bytes of messages sent in the worst scenario.", "bytes/s"),
        real("worst_utilisation", "Utilisation in the worst scenario; at least `base_utilisation`.", "1"),
        listing(
            "scenarios",
            INT,
            "Up to ten scenarios with the highest utilisations above the base, the highest first, then the lowest "
            "number; empty when no failure adds to it.",
        ),
        listing("scenario_msgs_per_s", REAL, "Messages sent in each of `scenarios`.", "msg/s"),
        listing("scenario_bytes_per_s", REAL, "Bytes of messages sent in each of `scenarios`.", "bytes/s"),
        listing("scenario_utilisation", REAL, "Utilisation in each of `scenarios`.", "1"),
    ),
)

SCENARIO_LOAD: Final = Layout(
    name="scenario_load",
    doc="Load of each direction of each link in each scenario. It exists with `--loads all`; with "
    "`--loads changed` it lists the directions whose load differs from `link_load` of the same "
    "variant. The table `run` shows which.",
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
    doc="Addresses that lose subscribers, or other messages than while nothing fails, by scenario. The "
    "scenario in which nothing fails, the first of each variant, lists those that lose messages or have "
    "starved publishers even so. An address that a scenario does not list loses in it what that first one lists "
    "for it, or nothing.",
    key=("scenario", "address"),
    columns=(
        scenario_number(),
        text("address", "The address."),
        count("subscriber_routers", "Routers with subscribers that are still up.", unit="routers"),
        count("lost_subscriber_routers", "Routers with subscribers that failed.", unit="routers"),
        count(
            "starved_publishers",
            "Demands for the address that are starved, as in `scenario`: a number of demands, not of clients.",
            unit="demands",
        ),
        real(
            "lost_msgs_per_s",
            "Messages for the address that don't arrive, counted as in `scenario`: for a multicast each copy. "
            "So a multicast that reaches nine of ten routers has lost something, with no publisher starved. What is "
            "lost while nothing fails is included.",
            "msg/s",
        ),
    ),
)

ROUTER_SPOF: Final = Layout(
    name="router_spof",
    doc="Single points of failure: effects of the loss of one router, link or group on all others.",
    key=("kind", "element"),
    columns=(
        text("kind", "`router`, `link`, or the kind of a group: `srlg`, `site`."),
        text("element", "Id of the element."),
        count(
            "scenario", "The scenario in which only this element fails; null when the run has none.", is_nullable=True
        ),
        flag("is_cut", "Whether running routers lose connectivity: a bridge or an articulation point."),
        count("unreachable_pairs", "Ordered pairs of running routers that lose connectivity.", unit="pairs"),
        count("dead_addresses", "Addresses that lose their last subscriber.", unit="addresses"),
        count("starved_publishers", "Demands that find no subscriber although their router is up.", unit="demands"),
        real(
            "lost_msgs_per_s",
            "Messages that don't arrive, as in `scenario`, less what is lost while nothing fails; for a "
            "router with what its own clients would send.",
            "msg/s",
        ),
    ),
)

CREDIT_PLAN: Final = Layout(
    name="credit_plan",
    doc="Credit that each path needs for the messages offered, and the configured credit: the maximum "
    "rate is credit / round trip.",
    key=("address", "src", "dst"),
    columns=(
        text("address", "The address; for a demand for a router, the router's name."),
        text("src", "The router at which messages enter."),
        text("dst", "The router whose subscribers take the messages."),
        real(
            "msgs_per_s",
            "Messages offered to the path: those that it carries and, at the nearest router, those that find "
            "no credit, which are lost until there is enough. So it may be more than `link_load` has.",
            "msg/s",
        ),
        real(
            "rtt_ms",
            "Round trip without the subscriber's time; null where no delays are known.",
            "ms",
            is_nullable=True,
        ),
        real("service_ms", "Time of the subscriber for one message.", "ms", is_nullable=True),
        count("needed", "Credit that this path needs by itself for `msgs_per_s`.", is_nullable=True, unit="messages"),
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
            "Maximum rate on this path with the configured credit, if all paths that share it grow alike.",
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
            "The measure that is improved: `mean_cost` of the paths of all pairs; `load`, the sum of the "
            "costs of all links times the messages/s on them (for a link: without multicasts); `cut_pairs`, "
            "ordered pairs that lose connectivity, summed over every single failure; `lost_msgs`, messages/s "
            "that find no subscriber, summed over every single failure; `unreachable_pairs`, ordered pairs "
            "without a path though nothing fails; `max_utilisation`. `load` and `lost_msgs` of subscribers "
            "are computed as if credit sufficed.",
        ),
        count("rank", "Rank within its kind and measure; 1 is the best."),
        text("a", "One end of the link; for subscribers, the router at which they are, or the nearest such router."),
        text("b", "The other end of the link; for subscribers, the router at which they should be."),
        text("address", "Address of the subscribers; null for a link.", is_nullable=True),
        count("cost", "Cost of the link that is added; null for subscribers.", is_nullable=True, unit="cost"),
        real("before", "The measure without the change.", "of the measure"),
        real("after", "The measure with the change.", "of the measure"),
        real("gain", "Improvement of the measure; positive when it is better.", "of the measure"),
    ),
)

CONVERGENCE: Final = Layout(
    name="convergence",
    doc="How long control planes take to agree, and what they send and compute meanwhile: real control "
    "planes under virtual time, on a simulated network and simulated machines.",
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
        count("links", "Links of the mesh.", unit="links"),
        real("hello_interval_s", "Setting of the routers.", "s"),
        real("hello_max_age_s", "Setting of the routers.", "s"),
        real("ra_interval_s", "Setting of the routers.", "s"),
        real("ra_interval_flux_s", "Setting of the routers.", "s"),
        real("remote_ls_max_age_s", "Setting of the routers.", "s"),
        real("spf_hold_down_s", "Setting of the routers.", "s"),
        count("seed", "Seed of the delays, of the choice of failures, and of the shape where it takes one."),
        count("event", "Number of the event: 0 is the cold start; then failures and repairs, one after the other."),
        text(
            "kind",
            "Kind of the event. `start`: all routers start at once. `link`: a connection breaks and both ends "
            "notice. `router`: a process is killed. `silent-link`, `silent-router`: a link or a machine is "
            "gone and nobody is told. `repair`: what failed last is back. `calm`: nothing happens.",
        ),
        text("what", "The link or router of the event; empty for all of them."),
        real(
            "converge_s",
            "Time from the event to the last change of any router's routes, all of which are shortest paths "
            "then. Null when they did not agree within a minute and three `hello_max_age_s`, and for `calm`.",
            "s of virtual time",
            is_nullable=True,
        ),
        real(
            "known_s",
            "Time from the event until the last router knew which routers had appeared or gone, which is what "
            "routers log; null as for `converge_s`.",
            "s of virtual time",
            is_nullable=True,
        ),
        count("wrong", "Wrong routes in the end, of the first router that has any; 0 when all are right."),
        real("period_s", "Time in which the columns after this one were counted.", "s of virtual time"),
        count(
            "messages",
            "Control messages written by all routers; except for `calm` without HELLO and RA, which are periodic.",
            unit="messages",
        ),
        count("bytes", "Bytes of the control messages, without frames.", unit="bytes"),
        count("messages_busiest", "Control messages of the router that has written most.", unit="messages"),
        count("bytes_busiest", "Bytes of the control messages of the router that has written most.", unit="bytes"),
        count("spf_runs", "Computations of all routes, by all routers."),
        count("dijkstra_runs", "Shortest path trees computed for routes and for multicasts, by all routers."),
        real("processor_s", "CPU time of all routers, as far as it is modelled.", "s"),
    ),
)

RUN: Final = Layout(
    name="run",
    doc="One row about the run: its model, plan, options and program.",
    key=("model_hash",),
    columns=(
        text("model", "Name of the model."),
        text("model_hash", "SHA-256 of the model in its canonical form."),
        text("plan", "The plan as JSON: variants, families with their first scenario and number of scenarios."),
        text("plan_hash", "SHA-256 of the plan."),
        text("routing", "Routing of the run: `mesh` (one path, as these routers choose it) or `ecmp`."),
        text("pairs", "Pairs that `pair_impact` lists: `lost`, `changed` or `none`."),
        text(
            "loads",
            "Loads that `scenario_load` lists: `none`, `changed` or `all`; with `none` the table does not exist.",
        ),
        count("seed", "Seed of the random samples."),
        count("scenarios", "Number of scenarios: rows of `scenario`.", unit="scenarios"),
        count("routers", "Routers of the unchanged mesh.", unit="routers"),
        count("links", "Links of the unchanged mesh.", unit="links"),
        real(
            "coverage",
            "Sum of the probabilities of the scenarios of variant `base`, without `maintenance`; what has no rates "
            "counts as never failing.",
            "1",
            is_nullable=True,
        ),
        real("residual", "1 - `coverage`: the probability of what was not run.", "1", is_nullable=True),
        text("version", "Version of amqp-mesh."),
        text("speed", "Speed of the program: `compiled` or `interpreted`.", is_measured=True),
        text(
            "engine", "Engine of the run: `local` or `spark`, with its address when that is remote.", is_measured=True
        ),
        text("started", "Start of the run, as ISO 8601 in UTC.", is_measured=True),
        real("wall_s", "Duration of the run.", "s", is_measured=True),
        real("scenarios_per_s", "Scenarios run per second of wall time.", "1/s", is_measured=True),
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
{FORMAT}; the metadata of files has unit and meaning of each column. Rows are sorted by the key. Runs made by 0.2.0 have
format 1: `address_impact` and `address_summary` don't have what addresses lose while nothing fails.

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
