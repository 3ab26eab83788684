"""`amqp-mesh stat`: what routers know, over AMQP management."""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import attrs
import click
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from router.cli.address_path import addresses_of_vhosts, nearest_address
from router.cli.did_you_mean import HintingChoice
from router.cli.entity_rows import told
from router.cli.errors import say_error
from router.cli.flooding_clients import FloodingClient, ask_flooding_clients
from router.cli.live_screen import ScreenFrame, interval_option, looks_option, watch
from router.cli.management import NOT_OF_VHOST, ManagementClient
from router.cli.management_errors import ManagementError
from router.cli.options import NAME, WholeNumber, is_given, router_option
from router.cli.router_access import RouterAccess, access_options
from router.cli.row_choice import RowChoice
from router.cli.stat_columns import (
    GENERAL,
    GENERAL_COUNTERS,
    VIEWS,
    Column,
    Entity,
    View,
    aligned,
    cell,
    general_value,
    printable,
)
from router.cli.stat_credit import (
    ADDRESSES,
    ADDRESSES_SHOWN,
    PARTIES,
    ask_credit,
    credit_parts,
    first_addresses,
    is_in_trouble,
)
from router.cli.stat_problems import problem_parts
from router.cli.table_fitting import KEPT, fitted, no_room
from router.cli.table_output_width import UNBOUNDED_WIDTH, console, write_plain
from router.management.schema import find_type

FORMULA_STARTS: Final = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20")
"""Characters that begin a formula in some spreadsheet, also in full width."""

UNTOLD: Final[object] = "?"
"""Cell of what a router of another version does not tell."""
NOTHING: Final = ("0", "-", "0s")
"""Cells that say nothing."""

PROBLEMS: Final = "amqp-mesh.problem"
OF_ALL: Final = ("problems", "routers", "mesh", "connectors", "listeners")
"""Choices of the mesh or a whole router, not shown to users who may see only one virtual host."""

WHAT: Final = ("general", "problems", *VIEWS, "credit")


@click.command(short_help="Show the state of a router: connections, links, addresses, routers, credit, problems.")
@click.argument("what", type=HintingChoice(WHAT), default="general", metavar="[WHAT]")
@router_option
@click.option("--all-routers", is_flag=True, help="Query every router that can be reached.")
@click.option("--credit", "is_credit", is_flag=True, help="Show credit, like WHAT `credit`.")
@click.option(
    "--address",
    metavar="ADDRESS",
    type=NAME,
    help="With credit: show only this address, with each of its subscribers, publishers and circuits.",
)
@click.option(
    "--limit",
    type=WholeNumber(min=1),
    metavar="N",
    help=f"With credit: maximum number of addresses.  [default: {ADDRESSES_SHOWN} in a table, all in JSON and CSV]",
)
@click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Show only rows that meet the condition: `NAME=VALUE`, or `!=`, `<`, `>`, `<=`, `>=` or `~` "
    "(contains); NAME is a column or an attribute. Can be repeated.",
)
@click.option("--match", metavar="TEXT", help="Show only rows with TEXT in some column.")
@click.option(
    "--sort", metavar="NAME", help="Sort by a column or an attribute: numbers descending, words alphabetically."
)
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--watch", "is_watched", is_flag=True, help="Refresh continuously, with rates beside counters.")
@interval_option
@looks_option
@click.option("--json", "is_json", is_flag=True, help="Write a JSON list, with all attributes.")
@click.option("--csv", "is_csv", is_flag=True, help="Write CSV, with all attributes.")
@click.option(
    "-v",
    "--verbose",
    "--wide",
    "verbose",
    is_flag=True,
    help="Show all columns, also those with nothing but zeros; with credit, also the numbers of links.",
)
@access_options
def stat(
    what: str,
    router: str | None,
    all_routers: bool,
    is_credit: bool,
    address: str | None,
    limit: int | None,
    where: tuple[str, ...],
    match: str | None,
    sort: str | None,
    reverse: bool,
    is_watched: bool,
    interval: float,
    looks: int | None,
    is_json: bool,
    is_csv: bool,
    verbose: bool,
    access: RouterAccess,
) -> None:
    """Show the state of a router: connections, links, addresses, routers, credit, problems.

    WHAT is `general` (the router itself; the default), `connections`, `links`, `addresses`, `connectors`, `listeners`,
    `vhosts` (its virtual hosts), `routers` (all routers of the mesh), `mesh` (the links between routers), or `credit`
    (who grants and who holds how much credit, by address). `problems` explains what is wrong anywhere in the mesh, and
    which command shows more.

    What needs attention comes first: absent routers and links of the mesh file, links that messages wait for, addresses
    without a subscriber, publishers without credit. Exit status: 1 when a router cannot be queried (with --watch: at
    the last refresh), else 0.
    """
    if router is not None and all_routers:
        raise click.UsageError("--router and --all-routers exclude each other")
    if is_json and is_csv:
        raise click.UsageError("--json and --csv exclude each other")
    if is_credit and what not in ("general", "credit"):
        raise click.UsageError(f"--credit and {what} exclude each other")
    if not is_watched and (looks is not None or is_given("interval")):
        raise click.UsageError("--interval and --looks go with --watch")
    if is_watched and (is_json or is_csv):
        raise click.UsageError("--watch goes with a table; see `amqp-mesh top --json`")
    is_table = not (is_json or is_csv)
    choice = RowChoice(where=where, match=match, sort=sort, is_reversed=reverse)
    wanted = StatSelection(
        what="credit" if is_credit else what,
        address=address,
        limit=limit or (ADDRESSES_SHOWN if is_table else None),
        is_verbose=verbose,
        router=router,
        is_everywhere=all_routers,
        choice=choice,
    )
    _check(wanted, has_address_options=address is not None or limit is not None)
    with ManagementClient(access) as client:
        attached = client.attached_router()
        if is_watched:
            looking = _Looking(client, wanted, attached, access.suffix)
            sys.exit(0 if watch(looking.look, interval_s=interval, looks=looks) else 1)
        answers = _found(client, wanted, attached)
    _output(wanted, answers, "json" if is_json else "csv" if is_csv else "table", access.suffix)


def _output(wanted: StatSelection, answers: StatAnswers, form: str, suffix: str) -> None:
    """Write what was found; ends the command with 1 when a router did not answer."""
    found = answers.found
    for said in answers.errors:
        say_error(said)
    if not found:
        sys.exit(1)
    if form != "table" and wanted.limit is not None:
        found = [(each, first_addresses(rows, wanted.limit)) for each, rows in found]
    if form == "json":
        click.echo(json.dumps([{"router": each, **row} for each, rows in found for row in rows], indent=2))
    elif form == "csv":
        _write_csv(_kinds(wanted.what), found)
    else:
        _show(wanted, answers, suffix)
    if answers.errors:
        sys.exit(1)


def _check(wanted: StatSelection, *, has_address_options: bool) -> None:
    """Say before anybody is asked what can't be shown. Raises: UsageError."""
    if wanted.what != "credit" and has_address_options:
        raise click.UsageError("--address and --limit go with credit")
    if wanted.choice.is_any:
        if wanted.what not in VIEWS:
            raise click.UsageError(f"--where, --match, --sort and --reverse go with {', '.join(VIEWS)}")
        wanted.choice.apply(VIEWS[wanted.what], ())


@attrs.frozen
class StatSelection:
    """Choice of what is to be shown."""

    what: str
    address: str | None
    """Only address that `credit` shows; None for all."""
    limit: int | None
    """Maximum number of addresses that `credit` shows; None for all."""
    is_verbose: bool
    router: str | None
    is_everywhere: bool
    choice: RowChoice


Found = list[tuple[str, list[dict[str, Any]]]]
"""Routers, each with its entities."""


@attrs.define
class StatAnswers:
    """Answers of the routers that were asked."""

    found: Found = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)
    """Reasons why some did not answer."""
    silent: list[str] = attrs.field(factory=list)
    """Ids of the routers that did not answer."""
    counts: dict[str, int] = attrs.field(factory=dict)
    """Number of rows of a table by router, before any was filtered out."""
    floods: Sequence[FloodingClient] = ()
    """Clients that send too much, as `ask_flooding_clients` finds them; only for `credit`."""
    of_vhosts: dict[str, list[str]] = attrs.field(factory=dict)
    """Addresses of virtual hosts that clients may mean, by router where the wanted address is not found; only for
    `credit`."""
    near: dict[str, str | None] = attrs.field(factory=dict)
    """Address most like the wanted one, by router where neither that nor one of a virtual host is found; None when none
    is like it; only for `credit`."""


def _found(client: ManagementClient, wanted: StatSelection, attached: str) -> StatAnswers:
    """Ask each router that is to be asked."""
    answers = StatAnswers()
    asked = _whom(client, wanted, attached, wanted.router, all_routers=wanted.is_everywhere)
    for each in asked:
        via = None if each == attached else each
        try:
            rows = _ask(client, wanted, each, via)
            if wanted.what == "credit" and wanted.address is not None and not rows:
                answers.of_vhosts[each] = addresses_of_vhosts(client, each, wanted.address, router=via)
                if not answers.of_vhosts[each]:
                    answers.near[each] = nearest_address(client, wanted.address, router=via)
            if wanted.what in VIEWS:
                answers.counts[each] = len(rows)
                rows = wanted.choice.apply(VIEWS[wanted.what], rows)
            answers.found.append((each, rows))
        except ManagementError as error:
            answers.errors.append(printable(str(error)))
            answers.silent.append(each)
    if wanted.what == "credit" and answers.found:
        shown = [each for each, _ in answers.found]
        is_waited_for = any(is_in_trouble(row) for _, rows in answers.found for row in rows)
        answers.floods = ask_flooding_clients(
            client,
            attached,
            shown=shown,
            silent=[each for each in asked if each not in shown],
            is_waited_for=is_waited_for or wanted.address is not None,
        )
    return answers


class _Looking:
    """Looks of `--watch`, which compare counters with those of the look before."""

    def __init__(self, client: ManagementClient, wanted: StatSelection, attached: str, suffix: str) -> None:
        self._client = client
        self._wanted = wanted
        self._attached = attached
        self._suffix = suffix
        self._before: dict[tuple[str, str], tuple[float, dict[str, Any]]] = {}

    def look(self, height: int) -> ScreenFrame:
        """The next look, with rates; at most *height* lines of it if that isn't 0."""
        answers = _found(self._client, self._wanted, self._attached)
        if answers.errors and not answers.found:
            raise ManagementError(answers.errors[0])
        self._rate(answers.found)
        parts: list[RenderableType] = [Text(f"Error: {each}", style="red") for each in answers.errors]
        parts += _parts(self._wanted, answers, self._suffix, is_watched=True)
        return ScreenFrame(parts[:height] if height else parts, is_whole=not answers.errors)

    def _rate(self, found: Found) -> None:
        view = VIEWS.get(self._wanted.what)
        counters = GENERAL_COUNTERS if self._wanted.what == "general" else view.counters if view is not None else ()
        now = time.monotonic()
        seen = {}
        for router, rows in found:
            for row in rows:
                at, before = self._before.get((router, row["identity"]), (now, row))
                for title, name in counters:
                    if (count := row.get(name)) is not None and now > at:  # one of another version may not tell it
                        row[title] = round(max(0, count - before.get(name, count)) / (now - at))
                seen[router, row["identity"]] = (now, row)
        self._before = seen


def _ask(client: ManagementClient, wanted: StatSelection, me: str, router: str | None) -> list[dict[str, Any]]:
    """The entities of one router, in the order in which they are shown.

    Args:
        client: attached to some router of the mesh.
        wanted: what is to be shown.
        me: id of the router.
        router: the same as *me*; None when the client is attached to it.
    """
    if wanted.what in OF_ALL and not client.sees_all:
        raise ManagementError(NOT_OF_VHOST.format(wanted.what))
    if wanted.what == "general":
        return [client.read("router", router=router)]
    if router is not None:
        client.check(router)
    if wanted.what == "credit":
        return ask_credit(client, me, router=router, text=wanted.address, limit=wanted.limit)
    if wanted.what == "problems":
        return client.query(PROBLEMS, router=router)
    view = VIEWS[wanted.what]
    # Who looks is no part of what is looked at.
    rows = [row for row in client.query(view.kind, router=router) if row.get("container") != client.container]
    rows.sort(key=lambda row: told(lambda it: (True, view.order(it)), row, (False, None)))
    return rows


# Output


def _kinds(what: str) -> Sequence[str]:
    """Types of the entities that are shown."""
    if what in VIEWS:
        return (VIEWS[what].kind,)
    return {"general": ("router",), "problems": (PROBLEMS,), "credit": (ADDRESSES, PARTIES)}[what]


def _write_csv(kinds: Sequence[str], found: Sequence[tuple[str, Sequence[Entity]]]) -> None:
    """Write a heading, also where nothing follows, and the rows.

    Args:
        kinds: types of the entities, whose attributes come first.
        found: routers, each with its entities; those of another version may have more attributes.
    """
    known = (name for kind in kinds for name in find_type(kind).attributes)
    names = list(dict.fromkeys([*known, *(name for _, rows in found for row in rows for name in row)]))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["router", *names])
    for router, rows in found:
        writer.writerows([_csv_value(each) for each in (router, *map(row.get, names))] for row in rows)


def _csv_value(value: object) -> object:
    """A cell that no spreadsheet takes for a formula, whatever a peer has called itself; numbers stay what they are.

    Source: OWASP, CSV Injection.
    """
    if isinstance(value, list | dict):
        return json.dumps(value)
    if not isinstance(value, str):
        return value
    text = f"'{value}" if value.startswith(("\t", "\r", "\n")) or value.lstrip().startswith(FORMULA_STARTS) else value
    return printable(text) if sys.stdout.isatty() else text


def _whom(
    client: ManagementClient, wanted: StatSelection, attached: str, router: str | None, *, all_routers: bool
) -> list[str]:
    """Routers to be asked: for problems all of them, if none is named; the one attached to first."""
    if all_routers or (wanted.what == "problems" and router is None):
        return sorted(client.routers(), key=lambda each: (each != attached, each))
    return [router or attached]


def _show(wanted: StatSelection, answers: StatAnswers, suffix: str) -> None:
    parts = _parts(wanted, answers, suffix)
    if sys.stdout.isatty():
        console().print(*parts, sep="\n")
        return
    for part in parts:
        write_plain(part)


def _parts(wanted: StatSelection, answers: StatAnswers, suffix: str, *, is_watched: bool = False) -> list[Table | Text]:
    """Lines and tables that are shown; of one that renews itself with rates."""
    found = answers.found
    width = console(UNBOUNDED_WIDTH).width
    parts: list[Table | Text] = []
    if wanted.what == "problems":
        parts += problem_parts(found, suffix, silent=answers.silent)
        found = []
    for router, rows in found:
        if parts:
            parts.append(Text())
        if wanted.what == "general":
            parts.append(_general(rows[0]))
            continue
        if wanted.what == "credit":
            parts += credit_parts(
                router,
                rows,
                limit=wanted.limit,
                text=wanted.address,
                is_verbose=wanted.is_verbose,
                floods=answers.floods,
                of_vhosts=answers.of_vhosts.get(router, ()),
                near=answers.near.get(router),
            )
            continue
        view = VIEWS[wanted.what]
        if is_watched:
            rates = tuple(Column(title, partial(_rate_of, title), is_number=True) for title, _ in view.counters)
            view = attrs.evolve(view, columns=(*view.columns, *rates))
        count = answers.counts[router]
        of_all = f"{len(rows)} of " if wanted.choice.is_narrowing else ""
        noun = view.noun if count != 1 else _singular(view.noun)
        parts.append(Text(f"{printable(router)}: {of_all}{count} {noun}"))
        if rows:
            parts += _table(view, rows, width, is_verbose=wanted.is_verbose)
    return parts


def _rate_of(title: str, row: Entity) -> object:
    return row.get(title)


def _general(router: Entity) -> Table:
    rates = {name: router.get(title) for title, name in GENERAL_COUNTERS}
    is_rated = any(rate is not None for rate in rates.values())
    table = Table(box=None, show_header=False, pad_edge=False)
    for title, attribute in GENERAL:
        cells: list[RenderableType] = [title, Text(printable(general_value(attribute, router.get(attribute))))]
        if is_rated:
            rate = rates.get(attribute)
            cells.append(Text("" if rate is None else f"{rate}/s", justify="right"))
        table.add_row(*cells)
    return table


def _table(view: View, rows: Sequence[Entity], width: int, *, is_verbose: bool) -> list[Table | Text]:
    """A table of at most *width* characters, folded where it would be wider.

    What nobody asked for in full is left out where it says nothing: columns of nothing but zeros or absent values.
    """
    columns = [column for column in view.columns if is_verbose or not column.is_detail]
    cells = [[cell(told(column.text, row, UNTOLD)) for column in columns] for row in rows]
    if not is_verbose:
        kept = [at for at in range(len(columns)) if at < KEPT or any(row[at] not in NOTHING for row in cells)]
        columns = [columns[at] for at in kept]
        cells = [[row[at] for at in kept] for row in cells]
    is_untold = any(UNTOLD in row for row in cells)
    left_out: list[str] = []
    if not is_verbose:
        columns, cells, left_out = fitted(columns, cells, width)
    styles = [told(view.style, row, None) for row in rows]
    # Text, and no markup: names of containers and addresses are what peers have chosen.
    lines = aligned([[column.title for column in columns], *cells], [column.is_number for column in columns])
    parts: list[Table | Text]
    if max(map(cell_len, lines)) <= width:
        # rich takes most of a millisecond for a row of a table, and a router may have 100,000 addresses.
        parts = [Text(line, style=style or "") for line, style in zip(lines, ["bold", *styles], strict=True)]
    else:
        table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
        for column in columns:
            table.add_column(column.title, justify="right" if column.is_number else "left", overflow="fold")
        for texts, style in zip(cells, styles, strict=True):
            table.add_row(*map(Text, texts), style=style)
        parts = [table]
    if left_out:
        parts.append(no_room(left_out, "--wide"))
    if is_untold:
        parts.append(Text(f"{UNTOLD}: not reported by this router; is it another version?", style="dim"))
    return parts


def _singular(noun: str) -> str:
    if noun == "links of the mesh":
        return "link of the mesh"
    return noun.removesuffix("es") if noun == "addresses" else noun.removesuffix("s")
