"""`amqp-mesh top`: who sends, takes and waits most, live, in the whole mesh."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import attrs
import click
from rich.console import RenderableType
from rich.text import Text

from router.cli.did_you_mean import HintingChoice
from router.cli.link_sampler import LinkSample, LinkSampler
from router.cli.live_screen import ScreenFrame, interval_option, looks_option, watch
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.cli.options import NAME, WholeNumber
from router.cli.router_access import RouterAccess, access_options
from router.cli.stat_columns import Column, cell, duration, printable
from router.cli.table_fitting import WIDER, fitted_lines, no_room
from router.cli.table_output_width import console
from router.management.client_display_name import client_name

ROWS: Final = 20
"""Lines where no terminal bounds them."""
OTHER_LINES: Final = 2
"""Lines of a screen beside the rows and what stands above the table: the titles, and how many rows more there are."""

ORDERS: Final = {
    "rate": lambda one: (-one.rate, -one.waiting, one.container),
    "waiting": lambda one: (-one.waiting, -one.waited_s, -one.rate, one.container),
    "unsettled": lambda one: (-one.unsettled, -one.rate, one.container),
    "trouble": lambda one: (
        not one.is_full,
        not one.is_slow,
        not one.is_blocked,
        -one.waited_s,
        -one.waiting,
        -one.rate,
        one.container,
    ),
}
BY: Final = ("links", "clients", "addresses", "routers")


@click.command(short_help="Show live which clients send and wait most.")
@click.option("--by", type=HintingChoice(BY), default="clients", show_default=True, help="Group rows by this.")
@click.option(
    "--sort",
    "order",
    type=HintingChoice(tuple(ORDERS)),
    default="trouble",
    show_default=True,
    help="Sort by this, largest first; trouble: flooding, slow and credit-less clients first, then waiting "
    "messages, then traffic.",
)
@click.option("--match", metavar="TEXT", help="Show only rows with TEXT in their client, address or router.")
@click.option(
    "--rows",
    type=WholeNumber(min=1),
    metavar="N",
    help="Maximum number of rows.  [default: as many as fit on the screen]",
)
@click.option("--json", "is_json", is_flag=True, help="Write each refresh as a line of JSON.")
@click.option(
    "--router",
    metavar="ID",
    type=NAME,
    help="Query only this router, by way of the one at URL; by default all routers of the mesh.",
)
@interval_option
@looks_option
@access_options
def top(
    by: str,
    order: str,
    match: str | None,
    rows: int | None,
    is_json: bool,
    router: str | None,
    interval: float,
    looks: int | None,
    access: RouterAccess,
) -> None:
    """Show live which clients of the mesh send and receive most, and which wait, until Ctrl-C.

    Each router is queried for its clients' links every --interval seconds. `in/s` is the rate that clients send,
    `out/s` the rate that they receive; `waits` counts messages that no subscriber has room for yet, `for` is how long
    the oldest has waited, and `unsett` counts messages without an outcome. Causes come first. FLOODS: a sender without
    an address of its own that has about as many messages without outcome as it may; SLOW: a subscriber that messages
    wait for, because it grants no credit. Then the clients that wait. BLOCKED: a sender whose messages wait and that
    has no credit. `no credit`: a subscriber that grants none and is not the cause: no message waits only for it,
    or a client floods its address. `credit` is the credit of the links that are in this state.

    A router that can't be queried is named, in JSON under `errors`, and has no rows. Exit status: 1 when there was one
    at the last refresh, else 0.
    """
    with ManagementClient(access) as client:
        attached = client.attached_router()
        looking = LinkSampler(client, attached, [router] if router is not None else None)
        shown = partial(_json if is_json else _screen, looking, by, order, match, rows)
        failed = partial(_failed_json, router or attached) if is_json else None
        is_whole = watch(shown, interval_s=interval, looks=looks, in_plain=failed)
    if not is_whole:
        sys.exit(1)


@attrs.define
class Row:
    """One line: links taken together."""

    router: str
    container: str
    address: str
    user: str = ""
    host: str = ""
    rate_in: float = 0.0
    rate_out: float = 0.0
    waiting: int = 0
    waited_s: int = 0
    credit: int = 0
    """Credit of the links that determine the state: a subscriber that grants none may be of a client that sends too."""
    unsettled: int = 0
    links: int = 0
    is_blocked: bool = False
    is_full: bool = False
    """Whether a sender has about as many messages under way as it may."""
    is_slow: bool = False
    """Whether messages wait for a subscriber that grants no credit."""
    is_idle: bool = False
    """Whether a subscriber grants no credit."""

    @property
    def rate(self) -> float:
        """Messages a second, both ways."""
        return self.rate_in + self.rate_out


def rows_by(found: Iterable[LinkSample], by: str) -> list[Row]:
    """Take links together.

    Args:
        found: the links.
        by: `links` for each by itself, `clients`, `addresses` or `routers`.
    """
    rows: dict[tuple[object, ...], Row] = {}
    worst: dict[tuple[object, ...], int] = {}
    for number, link in enumerate(found):
        key: tuple[object, ...] = {
            "links": (number,),
            "clients": (link.router, link.container, link.user, link.host),
            "addresses": (link.address,),
            "routers": (link.router,),
        }[by]
        row = rows.get(key)
        if row is None:
            row = rows[key] = Row(link.router, link.container, link.address or "-", link.user, link.host)
        else:
            row.router = row.router if row.router == link.router else "*"
            row.container = row.container if row.container == link.container else "*"
            row.user = row.user if row.user == link.user else "*"
            row.host = row.host if row.host == link.host else "*"
            row.address = row.address if row.address == (link.address or "-") else "*"
        if link.direction == "in":
            row.rate_in += link.rate
        else:
            row.rate_out += link.rate
        row.waiting += link.waiting
        row.waited_s = max(row.waited_s, link.waited_s)
        row.unsettled += link.unsettled
        row.links += 1
        row.is_blocked |= link.is_blocked
        row.is_full |= link.is_full
        row.is_slow |= link.is_slow
        row.is_idle |= _is_idle(link)
        place = _place(link, is_idle=_is_idle(link))
        if place < worst.setdefault(key, place):
            worst[key], row.credit = place, 0
        if place == worst[key]:
            row.credit += link.credit
    return list(rows.values())


def _is_idle(link: LinkSample) -> bool:
    return link.direction == "out" and not link.credit


STATES: Final = ("FLOODS", "SLOW", "BLOCKED", "no credit", "waits", None)
"""States of links and of rows, the worst first."""


def _place(of: LinkSample | Row, *, is_idle: bool) -> int:
    """Place among STATES of the worst that can be said of a link, or of a row."""
    return (of.is_full, of.is_slow, of.is_blocked, is_idle, of.waiting > 0, True).index(True)


def _found(looking: LinkSampler, by: str, order: str, match: str | None) -> tuple[list[LinkSample], list[Row]]:
    links = looking.look()
    if match is not None:
        wanted = match.casefold()
        links = [each for each in links if any(wanted in text.casefold() for text in _texts(each))]
    return links, sorted(rows_by(links, by), key=ORDERS[order])


def _texts(link: LinkSample) -> tuple[str, ...]:
    """Texts of a link that `--match` looks at: those by which it is shown."""
    return client_name(link.container, link.user, link.host), link.address or "", link.router


def _screen(looking: LinkSampler, by: str, order: str, match: str | None, most: int | None, height: int) -> ScreenFrame:
    links, found = _found(looking, by, order, match)
    sums = [sum(each.rate for each in links if each.direction == way) for way in ("in", "out")]
    counts = {"flooding": "is_full", "slow": "is_slow", "blocked": "is_blocked"}
    told = [(sum(getattr(each, name) for each in links), word) for word, name in counts.items()]
    head = (
        f"{len(links)} link{'s' * (len(links) != 1)}, {sums[0]:.0f} msg/s in, {sums[1]:.0f} out, "
        f"{sum(each.waiting for each in links)} waiting, {', '.join(f'{count} {word}' for count, word in told)}; "
        f"look took {looking.took_s * 1000:.0f} ms"
    )
    parts: list[Any] = [Text(head)]
    parts += [Text(f"{name}: {printable(error)}", style="red") for name, error in sorted(looking.errors.items())]
    out = console()
    above = sum(len(part.wrap(out, out.width)) for part in parts)
    shown = found[: most or (max(1, height - OTHER_LINES - above) if height else ROWS)]
    table, left_out = _table(shown, out.width)
    if left_out and height and not most and len(shown) > 1:
        shown = shown[:-1]  # its line is that of what there is no room for
        table, left_out = _table(shown, out.width)
    styles = ["bold", *(_style(row) for row in shown)]
    parts += [Text(line, style=style, no_wrap=True, overflow="crop") for line, style in zip(table, styles, strict=True)]
    if left_out:
        parts.append(no_room(left_out, WIDER))
    if len(found) > len(shown):
        parts.append(Text(f"{len(found) - len(shown)} more"))
    return ScreenFrame(parts, is_whole=not looking.errors)


def _table(shown: list[Row], width: int) -> tuple[list[str], list[str]]:
    return fitted_lines(COLUMNS, [list(map(cell, _values(row))) for row in shown], width)


def _style(row: Row) -> str:
    """Red for the cause, yellow for who waits for it."""
    return "red" if row.is_full or row.is_slow else "yellow" if row.is_blocked else ""


def _state(row: Row) -> str | None:
    """The worst that can be said of it."""
    return STATES[_place(row, is_idle=row.is_idle)]


def _values(row: Row) -> tuple[object, ...]:
    return (
        _state(row),
        row.router,
        client_name(row.container, row.user),
        row.host,
        row.address,
        f"{row.rate_in:.0f}",
        f"{row.rate_out:.0f}",
        row.waiting or None,
        duration(row.waited_s) if row.waited_s else None,
        row.credit,
        row.unsettled or None,
        row.links,
    )


TITLES: Final = (
    "state",
    "router",
    "client",
    "from",
    "address",
    "in/s",
    "out/s",
    "waits",
    "for",
    "credit",
    "unsett",
    "links",
)
COLUMNS: Final = tuple(
    Column(title, lambda _: None, is_number=at > TITLES.index("address"), is_spare=title in ("from", "links"))
    for at, title in enumerate(TITLES)
)
"""Columns of a screen; their texts are those of `_values`."""


def _json(looking: LinkSampler, by: str, order: str, match: str | None, most: int | None, height: int) -> ScreenFrame:
    _, found = _found(looking, by, order, match)
    rows = [{**attrs.asdict(row), "rate": row.rate} for row in found[:most]]
    return ScreenFrame([Text(json.dumps({"rows": rows, "errors": looking.errors}))], is_whole=not looking.errors)


def _failed_json(router: str, error: ManagementError) -> RenderableType:
    """JSON of a refresh that failed because *router* did not answer."""
    return Text(json.dumps({"rows": [], "errors": {router: str(error)}}))
