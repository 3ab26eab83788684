"""The HTML page of a run: one file that needs nothing else, for any browser and any reader."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, Final

import jinja2

from router.whatif.analysis.availability import AddressAvailability, PairAvailability, Range
from router.whatif.analysis.suggest import MOST_ROUTERS
from router.whatif.report.html_parts import (
    Column,
    FailureChooser,
    Paragraph,
    Part,
    PictureRow,
    Section,
    Table,
    Terms,
    name,
)
from router.whatif.report.run_facts import ROWS, AddressFacts, Facts, FamilyFacts, LinkFacts, Row, VariantFacts
from router.whatif.report.themed_matplotlib_svg import CaptionedPicture, style_of_colors
from router.whatif.report.verdicts import Verdict
from router.whatif.wording import (
    BASE,
    MEASURES_OF_PLACEMENT,
    amount,
    counted,
    failure_of,
    per_year,
    percent,
    served,
    told_apart,
)

SIGNS: Final = {"good": "\N{CHECK MARK}", "fair": "!", "bad": "\N{MULTIPLICATION SIGN}", "unknown": "?"}
"""Signs for what colors say, for those who do not see them."""


def page(facts: Facts, found: list[Verdict], drawn: list[CaptionedPicture]) -> str:
    """The whole page."""
    pictures = {picture.name: picture for picture in drawn}
    sections = [Section(topic, title, make(facts, pictures)) for topic, title, make in SECTIONS]
    script = _part("page.js")
    # All is escaped but what the template says is safe: pictures, style and script, of our own making.
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(_part("page.html")).render(
        heading=f"What if: {facts.run['model']}",
        intro=_intro(facts),
        verdicts=found,
        signs=SIGNS,
        sections=[section for section in sections if section.parts],
        most_rows=ROWS,
        colors=style_of_colors(),
        style=_part("page.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _part(file: str) -> str:
    return resources.files(__package__).joinpath(file).read_text(encoding="utf-8")


def _intro(facts: Facts) -> str:
    run = facts.run
    routing = "routed as routers do" if run["routing"] == "mesh" else "split over all shortest paths (ECMP)"
    return (
        f"{counted(run['scenarios'], 'scenario')} on {counted(run['routers'], 'router')} and "
        f"{counted(run['links'], 'link')}, {amount(facts.sent_msgs_per_s)} msg/s, {routing}."
    )


Pictures = dict[str, CaptionedPicture]
"""Pictures by name, without those that would show nothing."""


def _figures(pictures: Pictures, *names: str) -> list[Part]:
    """Existing pictures of *names*, beside each other if several are wanted."""
    found = [pictures[key] for key in names if key in pictures]
    return [PictureRow(found, are_beside=len(names) > 1)] if found else []


def _mesh(facts: Facts, pictures: Pictures) -> list[Part]:
    tried = [FailureChooser(facts.single_failures)] if facts.single_failures else []
    return [*tried, *_figures(pictures, "mesh")]


def _spof(facts: Facts, pictures: Pictures) -> list[Part]:
    if not facts.spof:
        return [Paragraph("None: no single failure cuts off other routers or leaves an address without subscribers.")]
    columns = [
        name("kind", lambda row: row["kind"]),
        name("what fails", lambda row: row["element"]),
        Column("scenario", lambda row: row["scenario"]),
        Column("pairs losing connectivity", lambda row: row["unreachable_pairs"], _whole),
        Column("msg/s lost", lambda row: row["lost_msgs_per_s"], amount),
        Column("addresses without subscriber", lambda row: row["dead_addresses"], _whole),
        Column("publishers without subscriber", lambda row: row["starved_publishers"], _whole),
    ]
    caption = (
        "Elements whose single failure costs others a path or a subscriber. Pairs are ordered pairs of running routers."
    )
    helping = _links_that_help(facts, "unreachable_pairs", "cut_pairs")
    return [Table(caption, columns, facts.spof, "router_spof"), *helping]


def _scenarios(facts: Facts, pictures: Pictures) -> list[Part]:
    parts = _figures(pictures, "losses", "stretches")
    if facts.families:
        parts.append(_families(facts))
    if facts.worst:
        columns = [
            Column("scenario", lambda row: row["scenario"], _whole),
            name("what fails", failure_of, is_long=True),
            Column("msg/s lost", lambda row: row["lost_msgs_per_s"], amount),
            Column("pairs losing connectivity", lambda row: row["unreachable_pairs"] - row["dead_end_pairs"], _whole),
            Column("highest utilisation", lambda row: row["max_utilisation"], percent),
            name("at link", lambda row: row["max_utilisation_link"]),
            Column("stretch, 99 %", lambda row: row["stretch_p99"], amount),
            Column("delay, 99 %, ms", lambda row: row["delay_p99_ms"], amount),
            Column("probability", lambda row: row["probability"], _probability),
        ]
        caption = (
            "The worst scenarios by messages lost, pairs losing connectivity, utilisation and stretch. "
            "Stretch is the cost of a path divided by its cost when nothing fails; stretch and delay are 99th "
            "percentiles over the paths."
        )
        parts.append(Table(caption, columns, facts.worst, "scenario"))
        parts.append(Paragraph("explains one of them.", command="amqp-mesh whatif explain RUN --scenario NUMBER"))
    return [*parts, *_links_that_help(facts, "mean_cost")]


def _families(facts: Facts) -> Table:
    columns = [
        name("what fails", lambda it: it.family),
        Column("scenarios", lambda it: it.scenarios, _whole),
        Column("harmful", lambda it: it.harmful, _whole),
        Column("most msg/s lost", lambda it: it.worst_lost_msgs_per_s, amount),
        Column("most pairs losing connectivity", lambda it: it.worst_living_pairs, _whole),
        Column("highest utilisation", lambda it: it.worst_utilisation, percent),
        Column("highest stretch, 99 %", lambda it: it.worst_stretch_p99, amount),
    ]
    caption = (
        "Scenarios by family: by what fails. A scenario is harmful when running routers lose a path or a subscriber."
    )
    rows: list[FamilyFacts] = [it for it in facts.families if it.variant == BASE]
    return Table(caption, columns, rows, "scenario")


def _links(facts: Facts, pictures: Pictures) -> list[Part]:
    columns = [
        name("link", lambda it: it.link),
        name("toward", lambda it: it.dst),
        Column("msg/s", lambda it: it.base_msgs_per_s, amount),
        Column("utilisation", lambda it: it.base_utilisation, percent),
        Column("worst msg/s", lambda it: it.worst_msgs_per_s, amount),
        Column("worst bytes/s", lambda it: it.worst_bytes_per_s, amount),
        Column("worst utilisation", lambda it: it.worst_utilisation, percent),
        name("when this fails", _cause_of({row["scenario"]: row for row in facts.link_rows}), is_long=True),
    ]
    caption = "Links, each in its busier direction: when nothing fails, and in its worst scenario."
    helping = _links_that_help(facts, "max_utilisation", "load")
    return [*_figures(pictures, "loads"), Table(caption, columns, facts.links, "link_worst"), *helping]


def _cause_of(rows: dict[int, Row]) -> Callable[[LinkFacts], str | None]:
    def cause(link: LinkFacts) -> str | None:
        if not link.scenarios:
            return None
        more = f", and {len(link.scenarios) - 1} more" if len(link.scenarios) > 1 else ""
        first = rows.get(link.scenarios[0])
        return f"{failure_of(first) if first else f'scenario {link.scenarios[0]}'}{more}"

    return cause


def _addresses(facts: Facts, pictures: Pictures) -> list[Part]:
    if not facts.addresses:
        return []
    columns = [
        name("address", lambda it: it.address),
        name("treatment", lambda it: it.treatment),
        Column("routers with subscribers", lambda it: it.subscriber_routers, _whole),
        Column("scenarios with harm to it", lambda it: it.harmful, _whole),
        Column("without any subscriber", lambda it: it.dead, _whole),
        Column("most msg/s lost", lambda it: it.worst_lost_msgs_per_s, amount),
        Column("in scenario", lambda it: it.worst_scenario, _whole),
    ]
    rows: tuple[AddressFacts, ...] = facts.addresses
    return [Table("Addresses, those in danger first.", columns, rows, "address_impact"), *_subscribers_that_help(facts)]


def _credit(facts: Facts, pictures: Pictures) -> list[Part]:
    if not facts.credit:
        return []
    columns = [
        name("address", lambda row: row["address"]),
        name("from", lambda row: row["src"]),
        name("to", lambda row: row["dst"]),
        Column("msg/s offered", lambda row: row["msgs_per_s"], amount),
        Column("round trip, ms", lambda row: row["rtt_ms"], amount),
        Column("service, ms", lambda row: row["service_ms"], amount),
        Column("credit needed", lambda row: row["needed"], _whole),
        Column("credit needed (shared)", lambda row: row["shared_needed"], _whole),
        Column("configured", lambda row: row["configured"], _whole),
        Column("msg/s possible", lambda row: row["limit_msgs_per_s"], amount),
        name("enough", lambda row: {True: "yes", False: "no", None: None}[row["is_enough"]]),
    ]
    caption = "Credit that each path needs for the messages offered to it; paths that have too little come first."
    law = "The maximum rate of a path is its credit divided by the time from the grant of a credit to its next grant."
    return [Paragraph(law), Table(caption, columns, facts.credit, "credit_plan")]


def _variants(facts: Facts, pictures: Pictures) -> list[Part]:
    if len(facts.variants) < 2:
        return []
    columns = [
        name("variant", lambda it: it.name),
        Column("utilisation", lambda it: it.base_utilisation, percent),
        Column("worst utilisation", lambda it: it.worst_utilisation, percent),
        Column("msg/s lost", lambda it: it.base_lost_msgs_per_s, amount),
        Column("most msg/s lost", lambda it: it.worst_lost_msgs_per_s, amount),
        Column("most pairs losing connectivity", lambda it: it.worst_living_pairs, _whole),
    ]
    rows: tuple[VariantFacts, ...] = facts.variants
    caption = "Variants of the mesh: when nothing fails, and in the worst case."
    return [*_figures(pictures, "growth"), Table(caption, columns, rows, "scenario")]


def _availability(facts: Facts, pictures: Pictures) -> list[Part]:
    found = facts.availability
    if found is None:
        return []
    said = f"From the failure and repair rates of {counted(found.scenarios, 'scenario')}. "
    if found.residual:
        said += (
            f"They cover {percent(found.coverage)} of the time; in the other {percent(found.residual)} anything may be "
            "the case, so each share is a range."
        )
    parts: list[Part] = [Paragraph(said)]
    for what, share in (("messages delivered", found.demand), ("pairs with a path", found.pairs)):
        if share is not None:
            parts.append(Paragraph(f"Of all {what}: {_range(share)}. {_missing(share)}"))
    address_columns = [
        name("address", lambda it: it.address),
        *_shares("messages delivered", lambda it: it.demand),
        *_shares("time with a subscriber", lambda it: it.subscribed),
    ]
    addresses: tuple[AddressAvailability, ...] = found.addresses
    if addresses:
        caption = "Addresses, the least available first."
        parts.append(Table(caption, address_columns, addresses, "address_impact"))
    pairs: tuple[PairAvailability, ...] = found.worst_pairs
    if pairs:
        pair_columns = [
            name("from", lambda it: it.src),
            name("to", lambda it: it.dst),
            *_shares("time with a path", lambda it: it.connected),
        ]
        caption = "Pairs of routers that are without a path for the longest time, failures of both ends included."
        parts.append(Table(caption, pair_columns, pairs, "pair_impact"))
    return parts


def _missing(share: Range) -> str:
    """Tell what is lost from what is not known."""
    lost = f"In the scenarios of the run {per_year(1 - share.at_most)} a year are lost"
    unknown = share.at_most - share.at_least
    return f"{lost}; another {per_year(unknown)} a year are not covered." if unknown else f"{lost}."


def _range(share: Range) -> str:
    if served(share.at_least) == served(share.at_most):
        return served(share.at_least)
    return f"{served(share.at_least)} to {served(share.at_most)}"


def _shares(title: str, of: Callable[[Any], Range]) -> list[Column]:
    def column(word: str, value: Callable[[Range], float]) -> Column:
        return Column(f"{title}, {word}", lambda row: value(of(row)), served)

    return [column("at least", lambda it: it.at_least), column("at most", lambda it: it.at_most)]


def _links_that_help(facts: Facts, *measures: str) -> list[Part]:
    """Links that make some measures better, of the table `placement`."""
    rows = [row for row in facts.placement if row["kind"] == "link" and row["measure"] in measures]
    columns = [
        Column("rank", lambda row: row["rank"]),
        name("between", lambda row: f"{row['a']} and {row['b']}"),
        Column("cost", lambda row: row["cost"]),
        *gain_columns(),
    ]
    return [Table("What would help: where one more link helps most.", columns, rows, "placement")] if rows else []


def _subscribers_that_help(facts: Facts) -> list[Part]:
    """Places where subscribers had better sit, of the same table."""
    found: list[Part] = []
    for kind, caption in (
        ("move", "What would help: better routers for subscribers."),
        ("addition", "What would help: where one more subscriber helps most."),
    ):
        columns = [
            Column("rank", lambda row: row["rank"]),
            name("address", lambda row: row["address"]),
            *([name("from", lambda row: row["a"])] if kind == "move" else []),
            name("to", lambda row: row["b"]),
            *gain_columns(),
        ]
        rows = [row for row in facts.placement if row["kind"] == kind]
        if rows:
            found.append(Table(caption, columns, rows, "placement"))
    return found


def gain_columns() -> list[Column]:
    """Columns of what a change makes better: measure, before, after, and by how much."""

    def both(row: Row) -> list[str]:
        return told_apart(amount, row["before"], row["after"])

    return [
        name("improves", lambda row: MEASURES_OF_PLACEMENT[row["measure"]]),
        Column("before", lambda row: row["before"], of_row=lambda row: both(row)[0]),
        Column("after", lambda row: row["after"], of_row=lambda row: both(row)[1]),
        Column("gain", lambda row: row["gain"], amount),
    ]


def _not_looked_for(facts: Facts, pictures: Pictures) -> list[Part]:
    if facts.run["routers"] <= MOST_ROUTERS:
        return []
    said = f"With more than {MOST_ROUTERS} routers a run does not look for links that make paths or loads better: "
    return [Paragraph(f"{said}use amqp-mesh whatif suggest.")]


def _about(facts: Facts, pictures: Pictures) -> list[Part]:
    run = facts.run
    said = [
        ("Model", run["model"]),
        ("Source", facts.model.origin or "-"),
        ("Model hash", run["model_hash"]),
        ("Plan hash", run["plan_hash"]),
        ("Seed", run["seed"]),
        ("Pairs listed", run["pairs"]),
        ("Program", f"amqp-mesh {run['version']}, {run['speed']}"),
        ("Engine", run["engine"]),
        ("Started", run["started"]),
        ("Time", f"{amount(run['wall_s'])} s, {amount(run['scenarios_per_s'])} scenarios/s"),
    ]
    return [Terms(said)]


def _whole(value: int) -> str:
    return f"{value:,}"


def _probability(value: float) -> str:
    return "0" if value == 0 else f"{value:.2g}"


SECTIONS: Final[tuple[tuple[str, str, Callable[[Facts, Pictures], Sequence[Part]]], ...]] = (
    ("mesh", "The mesh", _mesh),
    ("spof", "Single points of failure", _spof),
    ("scenarios", "Scenarios", _scenarios),
    ("links", "Links", _links),
    ("addresses", "Addresses", _addresses),
    ("credit", "Credit", _credit),
    ("variants", "Growth and other variants", _variants),
    ("availability", "Availability", _availability),
    ("placement", "What would help", _not_looked_for),
    ("about", "About this run", _about),
)
"""Topic, title, and what makes the parts; a section without parts is left out."""
