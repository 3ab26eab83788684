"""Clients that send more than is taken, in the whole mesh, as routers tell of them among their problems."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.core.terminal_escaping import escaped
from router.management.merged_problems import merged

KIND: Final = "publisher-floods"
PROBLEM: Final = ("kind", "subject", "sentence", "closeness", "about", "explains")

Told = tuple[str, Mapping[str, Any]]
"""A router, and a problem that it tells of."""


@attrs.frozen(kw_only=True)
class FloodingClient:
    """A client that sends more to an address than its subscribers take, though these do not hang."""

    router: str
    """Router to which it is attached."""
    sentence: str
    about: Sequence[str]

    def is_of(self, address: str) -> bool:
        """Whether most of its messages are for *address*, as the mesh has it."""
        return f"address {escaped(address)}" in self.about


def ask_flooding_clients(
    client: ManagementClient,
    attached: str,
    *,
    shown: Collection[str] = (),
    silent: Collection[str] = (),
    is_waited_for: bool = True,
) -> list[FloodingClient]:
    """Ask routers for clients that send too much; those that don't answer are left out.

    Args:
        client: attached to some router of the mesh.
        attached: that router.
        shown: routers that are asked in any case: who floods there is told of, whether anybody waits there or not.
        silent: those that didn't answer just now, and aren't waited for again.
        is_waited_for: whether all others are asked too; if not, they are where one of those shown tells of a flood,
            which may follow from a subscriber elsewhere.
    Returns: floods that are the cause of what waits, and don't follow from a subscriber that hangs.
    """
    if not client.sees_all:
        return []
    told = _ask(client, attached, shown)
    if is_waited_for or _floods(told):
        try:
            routers = client.routers()
        except ManagementError:
            routers = []
        told += _ask(client, attached, [each for each in routers if each not in shown and each not in silent])
    return _floods(told)


def _ask(client: ManagementClient, attached: str, routers: Iterable[str]) -> list[Told]:
    told: list[Told] = []
    for router in routers:
        try:
            rows = client.query("amqp-mesh.problem", PROBLEM, router=None if router == attached else router)
        except ManagementError:
            continue
        told += [(router, row) for row in rows]
    return told


def _floods(told: Iterable[Told]) -> list[FloodingClient]:
    return [
        FloodingClient(router=each.seen_by[0], sentence=str(each.row["sentence"]), about=each.row.get("about") or ())
        for each in merged(told)
        if each.row["kind"] == KIND
    ]
