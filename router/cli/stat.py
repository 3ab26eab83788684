"""`amqp-mesh stat`: what routers know, over AMQP management."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

import attrs
import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from router.cli.credit import ADDRESSES_SHOWN, ask_credit, credit_parts, first_addresses
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import CommandError, say_error
from router.cli.management import ManagementClient, ManagementError, RefusedError
from router.cli.options import router_option
from router.cli.problems import problem_parts
from router.cli.router_access import RouterAccess, access_options
from router.cli.stat_columns import GENERAL, VIEWS, Entity, View, aligned, cell, general_value, printable
from router.cli.terminal import UNBOUNDED_WIDTH, console

FORMULA_STARTS: Final = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20")
"""With these a formula begins for some spreadsheet, also in full width."""

NOTHING: Final = ("0", "-", "0s")
"""Cells that say nothing."""
KEPT: Final = 2
"""Columns, the first ones, that are shown whatever they say."""

OF_ALL: Final = ("problems", "routers", "mesh")
"""Choices of the whole mesh, not shown to who sees a virtual host alone."""

WHAT: Final = ("general", "problems", *VIEWS, "credit")


@click.command(short_help="Show what a router knows.")
@click.argument("what", type=HintingChoice(WHAT), default="general")
@router_option
@click.option("--all-routers", is_flag=True, help="Ask every router that can be reached.")
@click.option("--credit", "is_credit", is_flag=True, help="The same as `credit`.")
@click.option("--address", metavar="ADDRESS", help="With credit: this address alone, with everybody who takes part.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"With credit: at most so many addresses; {ADDRESSES_SHOWN} in a table and all in JSON and CSV by default.",
)
@click.option("--json", "is_json", is_flag=True, help="Write a JSON list, with all attributes.")
@click.option("--csv", "is_csv", is_flag=True, help="Write CSV, with all attributes.")
@click.option(
    "-v",
    "--verbose",
    "--wide",
    "verbose",
    is_flag=True,
    help="All columns, also those with nothing but zeros; with credit, the numbers of links.",
)
@access_options
def stat(
    what: str,
    router: str | None,
    all_routers: bool,
    is_credit: bool,
    address: str | None,
    limit: int | None,
    is_json: bool,
    is_csv: bool,
    verbose: bool,
    access: RouterAccess,
) -> None:
    """Show what a router knows.

    That is itself (general), its connections, links, addresses, connectors, listeners or virtual hosts, the routers of
    the mesh, the links between them (mesh), or the credit of each address: who granted how much, who holds how much.
    `problems` says in words what is wrong anywhere in the mesh, and what to call to see more.

    What needs attention stands first: what the mesh file names and is absent, links that messages wait for, addresses
    without a subscriber, publishers without credit. Exit status: 1 when a router cannot be asked, else 0.
    """
    if router is not None and all_routers:
        raise click.UsageError("--router and --all-routers exclude each other")
    if is_json and is_csv:
        raise click.UsageError("--json and --csv exclude each other")
    if is_credit and what not in ("general", "credit"):
        raise click.UsageError(f"--credit and {what} exclude each other")
    is_table = not (is_json or is_csv)
    wanted = Wanted("credit" if is_credit else what, address, limit or (ADDRESSES_SHOWN if is_table else None), verbose)
    if wanted.what != "credit" and (address is not None or limit is not None):
        raise click.UsageError("--address and --limit go with credit")
    failed = False
    found: list[tuple[str, list[dict[str, Any]]]] = []
    try:
        with ManagementClient(access) as client:
            attached = client.attached_router()
            for each in _whom(client, wanted, attached, router, all_routers=all_routers):
                try:
                    found.append((each, _ask(client, wanted, each, None if each == attached else each)))
                except ManagementError as error:
                    failed = True
                    say_error(printable(f"{error}{_hint(client, router, error)}"))
    except ManagementError as error:
        raise CommandError(printable(str(error))) from error
    if not found:
        sys.exit(1)
    if not is_table and wanted.limit is not None:
        found = [(each, first_addresses(rows, wanted.limit)) for each, rows in found]
    if is_json:
        click.echo(json.dumps([{"router": each, **row} for each, rows in found for row in rows], indent=2))
    elif is_csv:
        _write_csv(found)
    else:
        _show(wanted, found, access.suffix)
    if failed:
        sys.exit(1)


@attrs.frozen
class Wanted:
    """Choice of what is to be shown."""

    what: str
    address: str | None
    """Of `credit`: this one alone."""
    limit: int | None
    """Of `credit`: at most so many addresses."""
    is_verbose: bool


def _ask(client: ManagementClient, wanted: Wanted, me: str, router: str | None) -> list[dict[str, Any]]:
    """The entities of one router, in the order in which they are shown.

    Args:
        client: attached to some router of the mesh.
        wanted: what is to be shown.
        me: id of the router.
        router: the same as *me*; None when the client is attached to it.
    """
    if wanted.what in OF_ALL and not client.sees_all:
        raise ManagementError(f"{wanted.what}: not shown to who sees a virtual host alone; needs `management: read`")
    if wanted.what == "general":
        return [client.read("router", router=router)]
    if wanted.what == "credit":
        return ask_credit(client, me, router=router, text=wanted.address, limit=wanted.limit)
    if wanted.what == "problems":
        return client.query("amqp-mesh.problem", router=router)
    view = VIEWS[wanted.what]
    return sorted(client.query(view.kind, router=router), key=view.order)


def _hint(client: ManagementClient, router: str | None, error: ManagementError) -> str:
    """Hint at the routers that there are, when the one asked for may be none."""
    if router is None or isinstance(error, RefusedError):
        return ""
    try:
        known = client.routers()
    except ManagementError:
        return ""
    return "" if router in known else f"; there are {', '.join(known)}"


# Output


def _write_csv(found: Sequence[tuple[str, Sequence[Entity]]]) -> None:
    names = list(dict.fromkeys(name for _, rows in found for row in rows for name in row))
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
    client: ManagementClient, wanted: Wanted, attached: str, router: str | None, *, all_routers: bool
) -> list[str]:
    """Routers to be asked: for problems all of them, if none is named; the one attached to first."""
    if all_routers or (wanted.what == "problems" and router is None):
        return sorted(client.routers(), key=lambda each: (each != attached, each))
    return [router or attached]


def _show(wanted: Wanted, found: Sequence[tuple[str, Sequence[Entity]]], suffix: str) -> None:
    out = console(UNBOUNDED_WIDTH)
    parts: list[Table | Text] = []
    if wanted.what == "problems":
        parts += problem_parts(found, suffix)
        found = ()
    for router, rows in found:
        if parts:
            parts.append(Text())
        if wanted.what == "general":
            parts.append(_general(rows[0]))
            continue
        if wanted.what == "credit":
            parts += credit_parts(router, rows, limit=wanted.limit, text=wanted.address, is_verbose=wanted.is_verbose)
            continue
        view = VIEWS[wanted.what]
        count = len(rows)
        parts.append(Text(f"{printable(router)}: {count} {view.noun if count != 1 else _singular(view.noun)}"))
        if rows:
            parts += _table(view, rows, out.width, is_verbose=wanted.is_verbose)
    if sys.stdout.isatty():
        out.print(*parts, sep="\n")
        return
    for part in parts:
        click.echo(part.plain.rstrip() if isinstance(part, Text) else _captured(out, part))


def _captured(out: Console, table: Table) -> str:
    with out.capture() as capture:
        out.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _general(router: Entity) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for title, attribute in GENERAL:
        table.add_row(title, Text(printable(general_value(attribute, router.get(attribute)))))
    return table


def _table(view: View, rows: Sequence[Entity], width: int, *, is_verbose: bool) -> list[Table | Text]:
    """A table of at most *width* characters, folded where it would be wider.

    What nobody asked for in full is left out where it says nothing: columns of nothing but zeros or absent values.
    """
    columns = [column for column in view.columns if is_verbose or not column.is_detail]
    cells = [[cell(column.text(row)) for column in columns] for row in rows]
    if not is_verbose:
        kept = [at for at in range(len(columns)) if at < KEPT or any(row[at] not in NOTHING for row in cells)]
        columns = [columns[at] for at in kept]
        cells = [[row[at] for at in kept] for row in cells]
    styles = [view.style(row) for row in rows]
    # Text, and no markup: names of containers and addresses are what peers have chosen.
    lines = aligned([[column.title for column in columns], *cells], [column.is_number for column in columns])
    if max(map(cell_len, lines)) <= width:
        # rich takes most of a millisecond for a row of a table, and a router may have 100,000 addresses.
        return [Text(line, style=style or "") for line, style in zip(lines, ["bold", *styles], strict=True)]
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for column in columns:
        table.add_column(column.title, justify="right" if column.is_number else "left", overflow="fold")
    for texts, style in zip(cells, styles, strict=True):
        table.add_row(*map(Text, texts), style=style)
    return [table]


def _singular(noun: str) -> str:
    if noun == "links of the mesh":
        return "link of the mesh"
    return noun.removesuffix("es") if noun == "addresses" else noun.removesuffix("s")
