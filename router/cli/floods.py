"""Clients that send more than is taken, in the whole mesh, as routers tell of them among their problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from router.cli.management import ManagementClient, ManagementError
from router.core.escapes import escaped
from router.management.merged_problems import merged

KIND: Final = "publisher-floods"
PROBLEM: Final = ("kind", "subject", "sentence", "closeness", "about", "explains")


@attrs.frozen(kw_only=True)
class Flood:
    """A client that sends more to an address than its subscribers take, though these do not hang."""

    router: str
    """Router to which it is attached."""
    sentence: str
    about: Sequence[str]

    def is_of(self, address: str) -> bool:
        """Whether most of its messages are for *address*, as the mesh has it."""
        return f"address {escaped(address)}" in self.about


def ask_floods(client: ManagementClient, attached: str) -> list[Flood]:
    """Ask all routers that can be reached; those that don't answer are left out.

    Args:
        client: attached to some router of the mesh.
        attached: that router.
    Returns: floods that are the cause of what waits, and don't follow from a subscriber that hangs.
    """
    told: list[tuple[str, dict[str, Any]]] = []
    try:
        routers = client.routers() if client.sees_all else []
    except ManagementError:
        return []
    for router in routers:
        try:
            rows = client.query("amqp-mesh.problem", PROBLEM, router=None if router == attached else router)
        except ManagementError:
            continue
        told += [(router, row) for row in rows]
    return [
        Flood(router=each.seen_by[0], sentence=str(each.row["sentence"]), about=each.row.get("about") or ())
        for each in merged(told)
        if each.row["kind"] == KIND
    ]
