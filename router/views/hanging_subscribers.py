"""Problem of subscribers that hang: they have messages without outcome and give none, whatever credit they have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from router.core.terminal_escaping import escaped
from router.management.client_display_name import client_name
from router.management.merged_problems import CERTAIN
from router.management.overdue_outcome_texts import overdue
from router.management.snapshot import PartyRow
from router.views.problem_inputs import HangingSubscriber, Problem, ProblemInputs, command_at

NAMED: Final = 3
"""Maximum number of subscribers of one address that a sentence names."""


def hanging_subscribers(snapshot: ProblemInputs) -> Iterator[Problem]:
    """Yield a problem for each address, of those subscribers that no other problem of this router names as the cause.

    Args:
        snapshot: of the router, those first that have hung longest.
    """
    starved = {trouble.text for trouble in snapshot.addresses}
    found: dict[str, list[HangingSubscriber]] = {}
    for each in snapshot.hanging:
        if each.party.granted or each.text not in starved:
            found.setdefault(each.text, []).append(each)
    for text, hanging in found.items():
        shown = escaped(text)
        named = "; ".join(_said(each.party) for each in hanging[:NAMED])
        more = f"; and {len(hanging) - NAMED} more like this" if len(hanging) > NAMED else ""
        verb = "hangs, or takes" if len(hanging) == 1 else "hang, or take"
        yield Problem(
            kind="subscriber-hangs",
            subject=shown,
            sentence=f"messages of {shown} get no outcome: {named}{more}:"
            f" {'it' if len(hanging) == 1 else 'they'} {verb} longer than that for a message",
            since=min(each.since for each in hanging),
            command=command_at("stat credit", snapshot.router, "--address", text),
            closeness=CERTAIN,
            about=[f"address {shown}"],
            explains=[f"address {shown}", *_clients(snapshot.router, hanging[:NAMED])],
        )


def _said(party: PartyRow) -> str:
    owed = overdue(party.unsettled_count, party.unsettled_seconds, party.last_outcome_seconds)
    credit = f"credit for {party.granted} more" if party.granted else "no credit left"
    return f"subscriber {escaped(client_name(party.container, party.user, party.host))} has {owed}, and {credit}"


def _clients(router: str, hanging: Sequence[HangingSubscriber]) -> Iterator[str]:
    for each in hanging:
        yield f"client {escaped(each.party.container or '')} at {router}"
