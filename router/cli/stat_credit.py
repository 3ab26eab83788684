"""`amqp-mesh stat --credit`: for each address who granted how much credit, who holds how much, and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from router.cli.did_you_mean import suggestion
from router.cli.flooding_clients import FloodingClient
from router.cli.management import ManagementClient
from router.cli.stat_columns import Entity, address, cell, duration, printable
from router.core.addressing.address import AddressKind, parse_address
from router.core.ids_and_conditions import RouterId
from router.management.client_display_name import client_name
from router.management.overdue_outcome_texts import is_hanging

ADDRESSES: Final = "amqp-mesh.credit"
PARTIES: Final = "amqp-mesh.credit.party"
"""Entity types."""

ADDRESSES_SHOWN: Final = 20
"""Maximum number of addresses in a table, unless `--limit` says another."""
ADDRESSES_NAMED: Final = 5
"""Maximum number of addresses of virtual hosts to name where nobody is found outside them."""
PARTIES_SHOWN: Final = 5
"""Maximum rows of one role at one address, in a table with several addresses."""

HANGS: Final = "hangs"
"""State of a subscriber that has messages without outcome, and has given none for a minute."""
ROLES: Final = ("subscriber", "circuit out", "window", "circuit in", "publisher")
"""Roles of parties: who grants, then who holds."""


# Asking


def ask_credit(
    client: ManagementClient, me: str, *, router: str | None, text: str | None, limit: int | None
) -> list[dict[str, Any]]:
    """All addresses with credit at a router, blocked publishers first, each followed by its parties.

    Args:
        client: attached to some router of the mesh.
        me: the router.
        router: the same, None when the client is attached to it.
        text: an address: that one alone.
        limit: addresses with parties; those after them come alone. None: all have parties.
    Raises: ManagementError.
    """
    if text is not None:
        return _ask_one(client, _keys(text, me), router)
    found = sorted(client.query(ADDRESSES, router=router), key=address_order)
    if limit is None or limit >= len(found):
        everybody = sorted(client.query(PARTIES, router=router), key=lambda party: str(party["key"]))
        by_key = {key: list(group) for key, group in groupby(everybody, key=lambda party: str(party["key"]))}
    else:
        by_key = {each["key"]: client.query(PARTIES, router=router, key=each["key"]) for each in found[:limit]}
    return [entity for each in found for entity in (each, *sorted(by_key.get(str(each["key"]), ()), key=party_order))]


def _ask_one(client: ManagementClient, keys: Sequence[str], router: str | None) -> list[dict[str, Any]]:
    for key in keys:
        found = client.query(ADDRESSES, router=router, key=key)
        if found:
            return [*found, *sorted(client.query(PARTIES, router=router, key=key), key=party_order)]
    return []


def _keys(text: str, me: str) -> list[str]:
    """Keys that an address, as clients write it or as the table shows it, may have at a router."""
    parsed = parse_address(text, me=RouterId(me))
    if parsed.kind is AddressKind.ROUTER:
        return [f"R{parsed.router}/{parsed.text}"]
    if parsed.kind is AddressKind.MOBILE:
        return [f"M0{parsed.text}", f"L{parsed.text}", f"R{parsed.text}"]
    return [f"L{parsed.text}"] if parsed.kind is AddressKind.LOCAL else []


def first_addresses(rows: Sequence[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The first *limit* addresses of what `ask_credit` gave, with their parties."""
    wanted = {entity["key"] for entity, _ in _grouped(rows)[:limit]}
    return [row for row in rows if row["key"] in wanted]


# Order and words


def is_blocked(entity: Entity) -> bool:
    """Whether publishers of an address have had no credit for a second: for less is nothing unusual."""
    return bool(entity["blockedSeconds"])


def address_order(entity: Entity) -> Any:
    """Sort key of addresses: blocked publishers first, then what waits longest, then by name."""
    return not is_blocked(entity), -entity["oldestWaitSeconds"], -entity["blockedSeconds"], entity["key"]


def address_state(entity: Entity) -> str:
    """Trouble with the credit of an address, in a word; empty when there is none."""
    if is_blocked(entity):
        if not entity["hasSubscriber"]:
            return "no subscriber"
        return "blocked" if entity["isOpen"] else "closed"
    return "waiting" if entity["waitingCount"] else ""


def is_in_trouble(row: Entity) -> bool:
    """Whether a row is that of an address where messages or publishers wait."""
    return row["type"] == ADDRESSES and bool(address_state(row))


def party_order(party: Entity) -> Any:
    """Sort key of the parties of an address: who grants before who holds; first those with the least, for longest."""
    return (
        ROLES.index(party["role"]) if party["role"] in ROLES else len(ROLES),
        -(party["zeroCreditSeconds"] or party["excludedSeconds"] or 0),
        -party["oldestWaitSeconds"],
        party["granted"] + party["held"],
        len(party["identity"]),
        party["identity"],
    )


def party_state(party: Entity) -> str:
    """Trouble with one party, in a word."""
    if party["excludedSeconds"] is not None:
        return "excluded"
    if party["role"] == "publisher":
        if party["zeroCreditSeconds"]:
            return "blocked"
        return "busy" if party["weight"] else ""
    for attribute, word in (("isWithdrawn", "withdrawn"), ("isDraining", "draining")):
        if party[attribute]:
            return word
    if is_hanging(party.get("unsettledSeconds")):
        return HANGS
    # A circuit that nobody uses is granted nothing.
    is_idle = party["role"] == "circuit in" or (party["role"] == "circuit out" and not party["weight"])
    return "" if is_idle or party["granted"] else "no credit"


def _address_text(entity: Entity) -> str:
    notes = [str(address(entity["key"])), entity["treatment"]]
    if is_blocked(entity):
        notes.append(f"{entity['blockedCount']} of {_counted(entity['publisherCount'], 'publisher')} blocked")
    if entity["departedCount"]:
        notes.append(f"{_counted(entity['departedCount'], 'message')} of publishers that left")
    return ", ".join([*notes, *_notes(entity, (("lowered", "in quarantine"),))])


def party_text(party: Entity, *, is_verbose: bool) -> str:
    """Name of a party, and what the other columns do not tell."""
    neighbor, root = party["neighbor"], party["root"]
    if neighbor is None:
        words = [f"{party['role']} {client_name(party['container'], party.get('user'), party.get('host'))}"]
    else:
        words = [f"{party['role']} {'from' if party['role'] == 'circuit in' else 'to'} {neighbor}"]
        if root != neighbor:
            words.append(f"{'ingress' if party['treatment'] == 'multicast' else 'egress'} {root}")
        words += [f"weight {party['weight']}"] if party["weight"] else []
    if party["role"] == "subscriber" and party["brokered"] < party["granted"]:
        words.append(f"publishers get {party['brokered']} of it now" if party["brokered"] else "its connection is full")
    words += _notes(party, (("unsettledCount", "unsettled"), ("missedCount", "missed"), ("lowered", "in quarantine")))
    if is_verbose and party["connectionId"] is not None:
        words += [f"connection {party['connectionId']}", f"link {party['identity']}"]
    return ", ".join(words)


def _notes(entity: Entity, what: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{entity[attribute]} {word}" for attribute, word in what if entity[attribute]]


def _counted(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"


# The table


def credit_parts(
    router: str,
    rows: Sequence[Entity],
    *,
    limit: int | None,
    text: str | None,
    is_verbose: bool,
    floods: Sequence[FloodingClient] = (),
    of_vhosts: Sequence[str] = (),
    near: str | None = None,
) -> list[Table | Text]:
    """Tables that are shown of one router.

    Args:
        router: its id.
        rows: as `ask_credit` gives them.
        limit: addresses shown; None: all.
        text: the address that was asked for.
        is_verbose: show links and counters too.
        floods: clients that send too much, anywhere: named where what they send to waits, or is asked for, and at
            their own router unless an address is asked for.
        of_vhosts: addresses of virtual hosts whose clients name them *text*, where it is nobody's.
        near: the address most like *text* where nobody has it under any name; None for none.
    """
    found = _grouped(rows)
    if text is not None and not found:
        said = f"{printable(router)}: nobody subscribes to {printable(text)} here, and no publisher's link names it"
        hint = f"; {printable(there_is(of_vhosts))}" if of_vhosts else ""
        hint += f".{printable(suggestion(near))}" if near is not None else ""
        return [Text(said + hint), *_floods([text], floods, None)]
    count = _counted(len(found), "address")
    parts: list[Table | Text] = [Text(f"{printable(router)}: {count}, {_blocked(found)} with blocked publishers")]
    shown = found if limit is None else found[:limit]
    troubled = shown if text is not None else [each for each in shown if is_in_trouble(each[0])]
    addresses = [str(address(entity["key"])) for entity, _ in troubled]
    parts += _floods(addresses, floods, router if text is None else None)
    if shown:
        parts.append(_table(shown, most=PARTIES_SHOWN if text is None else None, is_verbose=is_verbose))
    left = found[len(shown) :]
    if left:
        count = _counted(len(left), "more address")
        parts.append(Text(f"{count}, {_blocked(left)} with blocked publishers: see --limit and --address"))
    return parts


def there_is(of_vhosts: Sequence[str]) -> str:
    """Name addresses of virtual hosts, the first of them, for who has left out the virtual host."""
    more = f" and {len(of_vhosts) - ADDRESSES_NAMED} more" if len(of_vhosts) > ADDRESSES_NAMED else ""
    return f"there is {', '.join(of_vhosts[:ADDRESSES_NAMED])}{more}"


def _floods(addresses: Sequence[str], floods: Sequence[FloodingClient], router: str | None) -> list[Table | Text]:
    """Lines of the floods of these addresses, and of those at *router*."""
    return [
        Text(f"flood at {printable(flood.router)}: {printable(flood.sentence)}", style="red")
        for flood in floods
        if flood.router == router or any(map(flood.is_of, addresses))
    ]


Group = tuple[Entity, list[Entity]]
"""An address and its parties."""


def _grouped(rows: Sequence[Entity]) -> list[Group]:
    found: list[Group] = []
    for row in rows:
        if row["type"] == ADDRESSES:
            found.append((row, []))
        else:
            found[-1][1].append(row)
    return found


def _blocked(groups: Sequence[Group]) -> int:
    return sum(is_blocked(entity) for entity, _ in groups)


def _table(groups: Sequence[Group], *, most: int | None, is_verbose: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for title in ("state", "granted", "held", "waits", "for", "who"):
        table.add_column(title, justify="left" if title in ("state", "who") else "right", overflow="fold")
    for entity, parties in groups:
        _add_address(table, entity)
        for role, group in groupby(parties, key=lambda party: str(party["role"])):
            of_role = list(group)
            for party in of_role[:most]:
                _add_party(table, party, is_verbose=is_verbose)
            left = len(of_role[most:]) if most is not None else 0
            if left:
                table.add_row("", "", "", "", "", Padding(Text(f"{left} more: {role}"), (0, 0, 0, 2)))
    return table


def _add_address(table: Table, entity: Entity) -> None:
    state = address_state(entity)
    seconds = max(entity["blockedSeconds"], entity["oldestWaitSeconds"])
    values = (
        state,
        entity["granted"],
        entity["heldByPublishers"] + entity["heldByCircuits"],
        entity["waitingCount"],
        duration(seconds) if state else None,
        _address_text(entity),
    )
    style = "bold red" if is_blocked(entity) else "bold yellow" if state else "bold"
    # Text, and no markup: names of containers and addresses are what peers have chosen.
    table.add_row(*(Text(cell(value)) for value in values), style=style)


def _add_party(table: Table, party: Entity, *, is_verbose: bool) -> None:
    state = party_state(party)
    is_holder = party["role"] in ("circuit in", "publisher")
    seconds = max(party["zeroCreditSeconds"] or party["excludedSeconds"] or 0, party["oldestWaitSeconds"])
    seconds = max(seconds, party["unsettledSeconds"]) if state == HANGS else seconds
    values = (
        state or None,
        None if is_holder else party["granted"],
        party["held"] if is_holder else None,
        party["waitingCount"] or None,
        duration(seconds) if seconds else None,
    )
    who = Padding(Text(cell(party_text(party, is_verbose=is_verbose))), (0, 0, 0, 2))
    style = {"blocked": "red", "excluded": "red", HANGS: "red"}.get(state)
    table.add_row(*(Text("" if value is None else cell(value)) for value in values), who, style=style)
