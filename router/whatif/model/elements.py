"""Elements of a mesh, as data: routers, links, addresses, subscribers, groups, counters."""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Collection, Container, Iterable
from typing import Any, Final

import attrs

from mesh_config.findings import nearest
from mesh_config.models import ID_PATTERN, TEXT_PATTERN, Treatment, setting

MAX_COST: Final = 65535
"""Maximum cost of a link, as in the settings of routers."""


class GroupKind(enum.StrEnum):
    """Kind of a group, by what its members have in common."""

    SRLG = "srlg"
    SITE = "site"
    MAINTENANCE = "maintenance"


def _failures() -> Any:
    return setting("How often it fails.", default=None, unit="failures/year", low=0, high=10**6)


def _repair() -> Any:
    return setting("Mean time until it works again.", default=None, unit="hours", low=0, high=10**6)


@attrs.frozen(kw_only=True)
class RouterNode:
    """A router."""

    id: str = setting("Its id in the mesh.", pattern=ID_PATTERN)
    site: str | None = setting("Where it stands; routers of one site may fail together.", default=None)
    latitude: float | None = setting("North of the equator.", default=None, unit="degrees", low=-90, high=90)
    longitude: float | None = setting("East of Greenwich.", default=None, unit="degrees", low=-180, high=180)
    failures_per_year: float | None = _failures()
    repair_hours: float | None = _repair()


@attrs.frozen(kw_only=True)
class LinkEdge:
    """A link between two routers. Of parallel ones the mesh uses the one with the least (cost, id)."""

    id: str = setting("`a--b`, of parallel links `a--b#2` and so on.", pattern=TEXT_PATTERN)
    a: str = setting("The end whose id is the smaller one.", pattern=ID_PATTERN)
    b: str = setting("The other end.", pattern=ID_PATTERN)
    cost: int = setting("Cost, in both directions or from `a` to `b`.", default=1, low=1, high=MAX_COST)
    cost_back: int | None = setting(
        "Cost from `b` to `a` where that is another one, as no mesh has it.", default=None, low=1, high=MAX_COST
    )
    delay_ms: float | None = setting("One way.", default=None, unit="milliseconds", low=0, high=10**6)
    capacity_msgs: float | None = setting(
        "What it can carry in each direction.", default=None, unit="messages/s", low=1e-6, high=9 * 10**12
    )
    capacity_bytes: float | None = setting(
        "What it can carry in each direction.", default=None, unit="bytes/s", low=1e-6, high=4 * 10**18
    )
    failures_per_year: float | None = _failures()
    repair_hours: float | None = _repair()

    @property
    def costs(self) -> tuple[int, int]:
        """Costs from `a` to `b`, and from `b` to `a`."""
        return self.cost, self.cost if self.cost_back is None else self.cost_back

    @property
    def has_capacity(self) -> bool:
        """Whether anything is known of what it can carry."""
        return bool(self.capacity_msgs or self.capacity_bytes)


@attrs.frozen(kw_only=True)
class AddressNode:
    """An address and what is done with its messages."""

    text: str = setting("The address, without scheme and host.", pattern=TEXT_PATTERN)
    treatment: Treatment = setting("How its messages are given to its subscribers.")


@attrs.frozen(kw_only=True)
class SubscriberSite:
    """The subscribers that an address has at one router."""

    address: str = setting("What they subscribe to.", pattern=TEXT_PATTERN)
    router: str = setting("Router to which they are attached.", pattern=ID_PATTERN)
    count: int = setting("How many they are.", default=1, unit="subscribers", low=1, high=1_000_000)
    credit: int | None = setting(
        "What all of them together grant.", default=None, unit="messages", low=0, high=2**31 - 1
    )
    service_ms: float | None = setting(
        "From the arrival of a message to its outcome.", default=None, unit="milliseconds", low=0, high=10**9
    )


@attrs.frozen(kw_only=True)
class Group:
    """Links and routers that fail together, or are taken down together."""

    name: str = setting("Its name.", pattern=TEXT_PATTERN)
    kind: GroupKind = setting("What its members share: a risk, a site, or a maintenance window.")
    links: tuple[str, ...] = setting("Ids of links.", default=())
    routers: tuple[str, ...] = setting("Ids of routers.", default=())
    failures_per_year: float | None = _failures()
    repair_hours: float | None = _repair()


@attrs.frozen(kw_only=True)
class LinkCounter:
    """Count of what one router has sent over a link since the link came up."""

    link: str = setting("Id of the link.", pattern=TEXT_PATTERN)
    src: str = setting("The router that sent.", pattern=ID_PATTERN)
    messages: int = setting("Messages sent.", unit="messages", low=0, high=2**63 - 1)
    bytes: int | None = setting(
        "Bytes of these; none when the router does not count them.", default=None, unit="bytes", low=0, high=2**63 - 1
    )


def link_ids(ends: Iterable[tuple[str, str]]) -> list[str]:
    """The usual ids of links between these routers, in the same order: `a--b`, then `a--b#2`, `a--b#3`...

    Args:
        ends: both routers of each link, in either order.
    """
    count: Counter[str] = Counter()
    ids = []
    for one, other in ends:
        text = _of_ends(one, other)
        count[text] += 1
        ids.append(_numbered(text, count[text]))
    return ids


def free_link_id(one: str, other: str, taken: Container[str]) -> str:
    """The first usual id of a link between two routers that is not taken."""
    usual = (_numbered(_of_ends(one, other), number) for number in itertools.count(1))
    return next(name for name in usual if name not in taken)


def _of_ends(one: str, other: str) -> str:
    """Id of the first link between two routers."""
    return f"{min(one, other)}--{max(one, other)}"


def _numbered(text: str, number: int) -> str:
    """Id of one of several links with the same ends, the first of which has the number 1 and the id *text*."""
    return text if number == 1 else f"{text}#{number}"


def nearest_name(name: str, known: Collection[str]) -> str | None:
    """The known name of an element most like one that there isn't; None if none is like it.

    Args:
        name: of a link by the larger id first, or any other.
        known: those that there are.
    """
    ends, mark, number = name.partition("#")
    turned = "--".join(reversed(ends.split("--"))) + mark + number
    return turned if turned in known else nearest(name, known)
