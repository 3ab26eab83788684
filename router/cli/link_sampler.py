"""Links of a mesh, looked at again and again: messages a second of each between two looks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from router.cli.flooding_clients import ask_flooding_clients
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.cli.stat_columns import address

LINK: Final = (
    "identity", "linkType", "linkDir", "container", "user", "host", "owningAddr", "creditAvailable",
    "zeroCreditSeconds", "undeliveredCount", "unsettledCount", "deliveryCount", "droppedPresettledCount", "rate",
    "isBlocked", "isFlooding",
)  # fmt: skip


PATIENCE_S: Final = 1
"""Time without credit up to which nobody is said to wait: in a burst it just happens; seconds."""


@attrs.frozen(kw_only=True)
class LinkSample:
    """A client's link at one look."""

    router: str
    container: str
    direction: str
    """`in` when it sends to the router."""
    address: str | None
    rate: float
    """Messages a second since the look before."""
    waiting: int
    """Messages of it, or for it, that wait."""
    waited_s: int
    """Seconds that the oldest of them has waited."""
    credit: int
    unsettled: int
    is_blocked: bool
    """Whether a publisher, or one of its messages, waits for credit."""
    deliveries: int
    is_full: bool = False
    """Whether a sender without an address of its own has about as many messages under way as it may, and they wait."""
    is_slow: bool = False
    """Whether messages wait for a subscriber because it grants no credit."""
    user: str = ""
    host: str = ""


class LinkSampler:
    """Looks at the links of routers."""

    def __init__(self, client: ManagementClient, attached: str, routers: Sequence[str] | None) -> None:
        """*routers* are those to be asked; None for all that there are at each look."""
        self._client = client
        self._attached = attached
        self._routers = routers
        self._before: dict[tuple[str, str], tuple[float, int]] = {}
        self.errors: dict[str, str] = {}
        """Routers that did not answer at the last look, and why."""
        self.took_s = 0.0
        """Seconds that the last look took."""

    def look(self) -> list[LinkSample]:
        """Look once.

        Raises: ManagementError when no router can be asked.
        """
        began = time.monotonic()
        routers = list(self._routers) if self._routers is not None else self._client.routers()
        found: list[LinkSample] = []
        seen: dict[tuple[str, str], tuple[float, int]] = {}
        self.errors = {}
        for router in routers:
            try:
                rows = self._client.query("router.link", LINK, router=None if router == self._attached else router)
            except ManagementError as error:
                if router == self._attached or self._routers is not None:
                    raise
                self.errors[router] = str(error)
                continue
            now = time.monotonic()
            for row in rows:
                if row["linkType"] != "endpoint" or row["container"] == self._client.container:
                    continue  # between routers, and its own
                found.append(self._look_at(router, row, now))
                seen[router, row["identity"]] = (now, row["deliveryCount"])
        found = self._with_slow_ones(found)
        self._before = seen
        self.took_s = time.monotonic() - began
        return found

    def _with_slow_ones(self, found: Sequence[LinkSample]) -> list[LinkSample]:
        """Mark subscribers without credit that messages wait for, wherever in the mesh they wait.

        Where a client sends more than is taken, its address alone would make all subscribers slow: none of them is.
        """
        waits = {each.address for each in found if each.is_blocked or each.is_slow}
        is_full = any(each.is_full for each in found)
        floods = ask_flooding_clients(self._client, self._attached, silent=self.errors) if is_full else []
        flooded = {each for each in waits if each is not None and any(flood.is_of(each) for flood in floods)}
        return [
            attrs.evolve(each, is_slow=each.address in waits and each.address not in flooded)
            if each.direction == "out" and not each.credit
            else each
            for each in found
        ]

    def _look_at(self, router: str, row: Mapping[str, Any], now: float) -> LinkSample:
        count = int(row["deliveryCount"])
        before = self._before.get((router, row["identity"]))
        # At the first look the router's own figure, of the second before.
        rate = float(row["rate"])
        if before is not None and now > before[0]:
            rate = max(0, count - before[1]) / (now - before[0])
        is_in, is_late = row["linkDir"] == "in", row["zeroCreditSeconds"] >= PATIENCE_S
        return LinkSample(
            router=router,
            container=row["container"],
            direction=row["linkDir"],
            address=address(row["owningAddr"]),
            rate=rate,
            waiting=row["undeliveredCount"],
            waited_s=row["zeroCreditSeconds"],
            credit=row["creditAvailable"],
            unsettled=row["unsettledCount"],
            is_blocked=is_late and is_in and not row["creditAvailable"] and bool(row["undeliveredCount"]),
            deliveries=count,
            is_full=is_in and (bool(row["isFlooding"]) or _has_all_under_way(row)),
            is_slow=is_late and not is_in and bool(row["isBlocked"]),
            user=row["user"],
            host=row["host"],
        )


def _has_all_under_way(row: Mapping[str, Any]) -> bool:
    """Whether a sender without an address may send no more: between two looks of its router."""
    return row["owningAddr"] is None and not row["creditAvailable"] and bool(row["unsettledCount"])
