"""Reasons why a message for an address has no credit, or no outcome: sentences, from what the router says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from router.cli.address_path import address_row, is_served, nearest_address
from router.cli.did_you_mean import suggestion
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError, UnauthorizedError
from router.cli.router_access import RouterAccess
from router.cli.stat_columns import duration
from router.cli.stat_credit import ask_credit
from router.core.addressing.address import with_vhost
from router.core.terminal_escaping import shell_word
from router.management.client_display_name import client_name
from router.management.overdue_outcome_texts import is_hanging, overdue

ROUTERS_ASKED: Final = 3
"""Maximum number of routers with subscribers to query, to which publishers here send."""
ASKED_S: Final = 2.0
"""Maximum time to wait for each answer, seconds: the command's timeout has passed already."""
NAMED: Final = 3
"""Subscribers of one router that are told of, each by itself."""

NO_RIGHT: Final = " This user may not ask the router why: its group needs `management: own`."
"""Rights without which the router tells nothing."""
GIVEN_BACK: Final = "A subscriber gave it back, or no way led to one any more."
"""Explanation for a message that was released although its address has subscribers."""


def why_waiting(access: RouterAccess, address: str, *, is_sent: bool) -> str:
    """A sentence, which begins with a blank; none when the router does not answer.

    Args:
        access: of the router.
        address: as a client writes it.
        is_sent: whether messages were sent, and have no outcome; else there is no credit for one.
    """
    try:
        return _asked(access, address, partial(_sentences, is_sent=is_sent))
    except UnauthorizedError:
        return NO_RIGHT


def why_released(access: RouterAccess, address: str) -> str:
    """Reasons why messages came back, like `why_waiting`; none if there are subscribers, who may have released them."""
    try:
        return _asked(access, address, _nobody)
    except UnauthorizedError:
        return ""  # a subscriber may have had its reasons


def who_released(access: RouterAccess, address: str) -> str:
    """Reasons, like `why_released`; if there are subscribers, that one of them or the path to them released them."""
    try:
        return _asked(access, address, lambda asked: _nobody(asked) or GIVEN_BACK)
    except UnauthorizedError:
        return f" {GIVEN_BACK}"


@attrs.frozen
class AskedAddress:
    """An address at the router that is asked for it."""

    client: ManagementClient
    router: str
    """The one that it is attached to."""
    name: str
    """The address as a client writes it."""
    text: str
    """Address as the mesh knows it."""
    vhost: str
    """Virtual host that stands before it; empty for none."""

    def nobody(self) -> str:
        """A sentence which says that nobody subscribes, and where that was looked for."""
        where = f" (in virtual host {self.vhost}: {self.text} for the mesh)" if self.vhost else ""
        near = nearest_address(self.client, self.name, vhost=self.vhost)
        hint = "" if near is None else suggestion(near)
        return f"Nobody subscribes to it{where}, as far as {self.router} reaches.{hint}"


def _asked(access: RouterAccess, address: str, ask: Callable[[AskedAddress], str]) -> str:
    """Ask a router in brief, so as not to hold up who waits for the command's end.

    What a client of a virtual host with addresses of its own names is looked for there.

    Returns: the sentence that *ask* has of *address*, and where there is more; empty for none.
    Raises: UnauthorizedError.
    """
    brief = attrs.evolve(access, timeout_s=min(access.timeout_s, ASKED_S))
    try:
        with ManagementClient(brief) as client:
            router, vhost = client.attached_router(), client.address_prefix()
            text = with_vhost(address, vhost)
            said = ask(AskedAddress(client, router, address, text, vhost if text != address else ""))
    except UnauthorizedError:
        raise
    except ManagementError:
        return ""
    return f" {said} More: amqp-mesh trace {shell_word(text)}{access.suffix}" if said else ""


def _nobody(asked: AskedAddress) -> str:
    return "" if is_served(address_row(asked.client, asked.router, asked.text)) else asked.nobody()


def _sentences(asked: AskedAddress, *, is_sent: bool) -> str:
    client, me, address = asked.client, asked.router, asked.text
    rows = ask_credit(client, me, router=None, text=address, limit=1)
    # A message that names its address itself is on nobody's account, and needs no circuit to get there.
    row = None if rows and rows[0]["hasSubscriber"] else address_row(client, me, address)
    if not (rows and rows[0]["hasSubscriber"]) and not is_served(row):
        return asked.nobody()
    told = [_of_subscribers(me, rows, is_sent=is_sent)]
    known = {each["root"] for each in rows[1:] if each["role"] in ("circuit out", "window") and each["root"]}
    roots = sorted(known | set(row["remoteHostRouters"] if row is not None else ()) - {me})
    told += [
        _of_subscribers(root, ask_credit(client, root, router=root, text=address, limit=1), is_sent=is_sent)
        for root in roots[:ROUTERS_ASKED]
    ]
    if len(roots) > ROUTERS_ASKED:
        told.append(f"There are more at {', '.join(roots[ROUTERS_ASKED:])}.")
    return " ".join(filter(None, told)) or "Its subscribers have no credit left."


def _of_subscribers(router: str, rows: Sequence[Mapping[str, Any]], *, is_sent: bool) -> str:
    """State of the subscribers at one router; empty when it has none."""
    here = [row for row in rows if row.get("role") == "subscriber"]
    idle = [row for row in here if not row["granted"]]
    if here and not idle:
        owing = _owing(router, here, is_hung=not is_sent)
        if is_sent:
            return owing or f"Subscribers at {router} have credit left, and no messages without outcome."
        lent = f"Subscribers at {router} have granted credit, and other publishers hold it."
        return f"{lent} {owing}" if owing else lent
    if not idle:
        return ""
    longest = max((row["zeroCreditSeconds"] or 0) for row in idle)
    since = f" for {duration(longest)}" if longest else ""
    held = sum(int(row["unsettledCount"]) for row in idle)
    have = "has" if len(here) == 1 else "have"
    keeps = f" and {have} {overdue(held, None, None)}" if held else ""
    if len(here) == 1:
        keeps = f" and has {_overdue(here[0])}" if held else ""
        return f"The subscriber {_client(here[0])} at {router} has no credit left{since}{keeps}."
    return f"{len(idle)} of {len(here)} subscribers at {router} have no credit left{since}{keeps}."


def _owing(router: str, rows: Sequence[Mapping[str, Any]], *, is_hung: bool) -> str:
    """Tell of subscribers that have messages without outcome, those first that have given none for longest.

    Args:
        router: theirs.
        rows: of them.
        is_hung: only of those that give none any more.
    """
    found = [row for row in rows if row["unsettledCount"] and (is_hanging(row.get("unsettledSeconds")) or not is_hung)]
    found.sort(key=lambda row: -(row.get("unsettledSeconds") or 0))
    told = [f"The subscriber {_client(row)} at {router} has {_overdue(row)}." for row in found[:NAMED]]
    if len(found) > NAMED:
        told.append(f"{len(found) - NAMED} more subscribers there have some too.")
    return " ".join(told)


def _overdue(row: Mapping[str, Any]) -> str:
    # A router of an earlier version tells of no times.
    return overdue(int(row["unsettledCount"]), row.get("unsettledSeconds"), row.get("lastOutcomeSeconds"))


def _client(row: Mapping[str, Any]) -> str:
    return client_name(row["container"], row.get("user"), row.get("host"))
