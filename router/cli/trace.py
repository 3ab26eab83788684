"""`amqp-mesh trace`: the path that a message for an address would take from a router, and what is on it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Final

import attrs
import click
from rich.text import Text

from router.cli.address_path import Hop, Path, PathFinder, Trace
from router.cli.did_you_mean import suggestion
from router.cli.errors import CommandError
from router.cli.management import ManagementClient
from router.cli.options import MAX_SECONDS, BoundedNumber, address_argument, router_option
from router.cli.router_access import RouterAccess, access_options
from router.cli.stat_columns import Column, Entity, duration, printable
from router.cli.stat_credit import HANGS, party_state, there_is
from router.cli.table_fitting import WIDER, fitted_lines, no_room
from router.cli.table_output_width import UNBOUNDED_WIDTH, console
from router.core.addressing.address import AddressKind, parse_address, with_vhost
from router.core.ids_and_conditions import RouterId
from router.core.terminal_escaping import shell_word
from router.management.client_display_name import client_name
from router.management.overdue_outcome_texts import overdue

INDENT: Final = "  "
SHOWN: Final = 10
"""Subscribers of a router, and publishers, in words."""
LATE_S: Final = 10
"""A subscriber that has messages without outcome and has given none for so long is told of in words."""

CHOICES: Final = {
    "closest": "a message goes to the nearest with credit",
    "balanced": "a message goes where its expected wait is the least",
    "multicast": "a copy goes to each",
}


@click.command(short_help="Show the path of a message to an address.")
@address_argument
@router_option
@click.option(
    "--seconds",
    type=BoundedNumber(min=0, max=MAX_SECONDS),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for which to measure the message rate of each link; 0: don't measure.",
)
@click.option("--json", "is_json", is_flag=True, help="Write JSON.")
@access_options
def trace(address: str, router: str | None, seconds: float, is_json: bool, access: RouterAccess) -> None:
    """Show the path that a message for ADDRESS would take from a router: each hop, and the subscribers at the end.

    Each router on the path is queried. For each hop: cost, messages/s on the link (of all addresses), credit granted by
    the next router, messages waiting for it and for how long, and messages without an outcome. If several routers have
    subscribers, each has a path, the most likely one first. A client at any router that sends more to ADDRESS than is
    taken is named first.

    Exit status: 1 when there are no subscribers, or no path can deliver now (no credit, or every subscriber with credit
    hangs); else 0.
    """
    with ManagementClient(access) as client:
        attached = client.attached_router()
        if (said := _no_mobile(address, attached)) is not None:
            raise CommandError(said)
        found = PathFinder(client, attached, address).trace(router or attached, seconds)
    if is_json:
        click.echo(json.dumps(attrs.asdict(found), indent=2))
    else:
        out = console(UNBOUNDED_WIDTH)
        for line in _lines(found, out.width):
            out.print(Text(printable(line)))  # whatever of it the routers have said
    if not any(_is_free(path) for path in found.paths):
        sys.exit(1)


def _no_mobile(address: str, me: str) -> str | None:
    """Why no message for *address* looks for subscribers in the mesh; None when it does."""
    meant = parse_address(address, me=RouterId(me))
    match meant.kind:
        case AddressKind.MOBILE:
            return None
        case AddressKind.ROUTER | AddressKind.LOCAL:
            at = meant.router if meant.router is not None else me
            return (
                f"{address} is an address of router {at} only: see amqp-mesh stat addresses --router {shell_word(at)}"
            )
        case AddressKind.EVERY_ROUTER:
            return (
                f"{address} is an address of every router, not of subscribers; expected one that clients receive from"
            )
        case AddressKind.EDGE:
            return f"{address} is an address of edge router {meant.router}; expected one that clients receive from"
        case _:
            return f"{address} names nothing; expected an address that clients receive from"


def _is_free(path: Path) -> bool:
    """Whether a message could arrive now and be taken: of subscribers, one has credit and doesn't hang.

    Of a router of another make that isn't known.
    """
    if path.error is not None:
        return path.is_foreign
    return not path.subscribers or any(row["granted"] and party_state(row) != HANGS for row in path.subscribers)


def _lines(found: Trace, width: int) -> list[str]:
    address = printable(found.address)
    if found.treatment is None:
        return [
            f"{found.start}: nobody subscribes to {address} or publishes to it, as far as it reaches{_near(found)}",
            *_elsewhere(found),
            *(f"  router {printable(each)} is absent" for each in found.absent),
        ]
    count = f"{len(found.paths)} router{'' if len(found.paths) == 1 else 's'} with subscribers"
    lines = [f"{address} from {found.start}: {found.treatment}, {count}"]
    if found.paths:
        lines[0] += f"; {CHOICES.get(found.treatment, '')}" if len(found.paths) > 1 else ""
    else:
        lines.append(f"  nobody subscribes: publishers have no credit{_near(found)}")
        lines += _elsewhere(found)
        lines += [f"  router {printable(each)} is absent" for each in found.absent]
    lines += [f"  FLOOD at {printable(each.router)}: {printable(each.sentence)}" for each in found.floods]
    lines += [f"  {line}" for line in _publishers(found)]
    for path in found.paths:
        lines += ["", *_path(found, path, width - len(INDENT))]
    return lines


def _near(found: Trace) -> str:
    return "" if found.near is None else f".{printable(suggestion(found.near))}"


def _elsewhere(found: Trace) -> list[str]:
    """Hint at the address that clients of this user's virtual host mean, and at those of others that there are."""
    lines = []
    own = with_vhost(found.address, found.vhost) if found.vhost else None
    if own is not None:
        said = f"outside virtual host {printable(found.vhost)}, that is: its clients mean {printable(own)}; trace that"
        lines.append(f"  {said}")
    others = [each for each in found.of_vhosts if each != own]
    return [*lines, f"  {printable(there_is(others))}: trace that"] if others else lines


def _publishers(found: Trace) -> list[str]:
    blocked = [row for row in found.publishers if row["zeroCreditSeconds"]]
    if not found.publishers:
        return []
    words = f"{len(found.publishers)} publisher{'' if len(found.publishers) == 1 else 's'} at {found.start}"
    if not blocked:
        return [words]
    names = ", ".join(f"{_client(row)} for {duration(row['zeroCreditSeconds'])}" for row in blocked[:SHOWN])
    more = f" and {len(blocked) - SHOWN} more" if len(blocked) > SHOWN else ""
    return [f"{words}, {len(blocked)} BLOCKED without credit: {names}{more}"]


def _path(found: Trace, path: Path, width: int) -> list[str]:
    route = " -> ".join([found.start, *(hop.to for hop in path.hops)])
    if path.error is not None and (not path.hops or path.hops[-1].to != path.egress):
        route += f" -> ? -> {path.egress}"
    lines = [f"{printable(route)}, cost {path.cost if path.cost is not None else '-'}"]
    if path.hops:
        lines += _table(HOP, [_hop(hop) for hop in path.hops], width)
    if path.error is not None:
        return [*lines, f"  {'NOT KNOWN' if path.is_foreign else 'NO PATH'}: {printable(path.error)}"]
    if not path.subscribers:
        return [*lines, f"  {path.egress} itself answers"]
    columns = [_column(f"subscriber at {printable(path.egress)}"), *SUBSCRIBER]
    lines += _table(columns, [_subscriber(row) for row in path.subscribers[:SHOWN]], width)
    if len(path.subscribers) > SHOWN:
        lines.append(f"  and {len(path.subscribers) - SHOWN} more")
    return lines + [f"  {_client(row)} has {_overdue(row)}" for row in path.subscribers[:SHOWN] if _is_late(row)]


def _is_late(row: Entity) -> bool:
    return bool(row["unsettledCount"]) and (row.get("unsettledSeconds") or 0) >= LATE_S


def _overdue(row: Entity) -> str:
    return overdue(row["unsettledCount"], row["unsettledSeconds"], row["lastOutcomeSeconds"])


def _table(columns: Sequence[Column], cells: list[list[str]], width: int) -> list[str]:
    lines, left_out = fitted_lines(columns, cells, width)
    if left_out:
        lines.append(no_room(left_out, WIDER).plain)
    return [f"{INDENT}{line}" for line in lines]


def _column(title: str, *, is_number: bool = False, is_spare: bool = False) -> Column:
    return Column(title, lambda _: None, is_number=is_number, is_spare=is_spare)


HOP: Final = (
    _column("hop"),
    *(
        _column(title, is_number=True, is_spare=title in ("msg/s", "rtt ms", "unsett"))
        for title in ("cost", "msg/s", "rtt ms", "credit", "waits", "for", "unsett")
    ),
)
"""Columns of a hop; their texts are those of `_hop`."""
SUBSCRIBER: Final = (
    _column("state"),
    *(_column(title, is_number=True, is_spare=title == "unsett") for title in ("credit", "unsett", "waits", "for")),
)
"""Columns of a subscriber beside its name; their texts are those of `_subscriber`."""


def _hop(hop: Hop) -> list[str]:
    return [
        printable(f"{hop.router} -> {hop.to}"),
        "-" if hop.cost is None else str(hop.cost),
        "-" if hop.rate is None else f"{hop.rate:.0f}",
        "-" if hop.round_trip_ms is None else f"{hop.round_trip_ms:.2f}",
        "-" if hop.granted is None else str(hop.granted),
        str(hop.waiting or "-"),
        duration(hop.oldest_s) if hop.waiting else "-",
        str(hop.unsettled or "-"),
    ]


def _subscriber(row: Entity) -> list[str]:
    seconds = row["zeroCreditSeconds"] or row["excludedSeconds"] or row["oldestWaitSeconds"] or 0
    state = party_state(row)
    seconds = max(seconds, row["unsettledSeconds"]) if state == HANGS else seconds
    return [
        _client(row),
        (state or "ready").upper() if not row["granted"] or state == HANGS else "ready",
        str(row["granted"]),
        str(row["unsettledCount"] or "-"),
        str(row["waitingCount"] or "-"),
        duration(seconds) if seconds else "-",
    ]


def _client(row: Entity) -> str:
    return printable(client_name(row["container"], row.get("user"), row.get("host")))
