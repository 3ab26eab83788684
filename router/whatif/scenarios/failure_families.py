"""Families of failures: each counts its members and makes any of them from its number."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from router.whatif.model.elements import GroupKind
from router.whatif.model.mesh_model import Model
from router.whatif.scenarios.combination_numbers import Ranks, rank, unrank
from router.whatif.wording import MAINTENANCE, NOTHING

HOURS_PER_YEAR: Final = 8760.0
NO_GROUP: Final = -1

Places = NDArray[np.int32]
"""Places of links or routers in the sorted ids of a mesh."""


def odds_of_failure(failures_per_year: float | None, repair_hours: float | None) -> float:
    """Time down by time up, of something that fails so often; 0 when a rate is not known.

    Args:
        failures_per_year: while it is up.
        repair_hours: hours that a repair takes.
    """
    if failures_per_year is None or repair_hours is None:
        return 0.0
    return failures_per_year * repair_hours / HOURS_PER_YEAR


@attrs.frozen(kw_only=True)
class FailureGroup:
    """A group by the places of its members."""

    name: str
    kind: GroupKind
    links: tuple[int, ...]
    routers: tuple[int, ...]
    odds: float


@attrs.frozen(kw_only=True, eq=False)
class FailureCandidates:
    """Elements of a mesh that may fail: routers and links by their places in the order of ids, and groups by name.

    Each fails independently of the others, a group besides its members; odds are time down by time up.
    """

    routers: tuple[str, ...]
    links: tuple[str, ...]
    ends: tuple[tuple[int, int], ...]
    """Routers of each link."""
    groups: tuple[FailureGroup, ...]
    router_odds: tuple[float, ...]
    link_odds: tuple[float, ...]

    @classmethod
    def of(cls, model: Model) -> FailureCandidates:
        """Groups of a model. The site of routers is a group too, unless a group has its name."""
        routers = {router.id: place for place, router in enumerate(model.routers)}
        links = {link.id: place for place, link in enumerate(model.links)}
        groups = [
            FailureGroup(
                name=group.name,
                kind=group.kind,
                links=tuple(sorted(links[link] for link in group.links)),
                routers=tuple(sorted(routers[router] for router in group.routers)),
                odds=odds_of_failure(group.failures_per_year, group.repair_hours),
            )
            for group in model.groups
        ]
        sites: dict[str, list[int]] = {}
        for place, router in enumerate(model.routers):
            if router.site is not None:
                sites.setdefault(router.site, []).append(place)
        for group in groups:
            sites.pop(group.name, None)
        groups += [
            FailureGroup(name=name, kind=GroupKind.SITE, links=(), routers=tuple(places), odds=0.0)
            for name, places in sites.items()
        ]
        return cls(
            routers=tuple(routers),
            links=tuple(links),
            ends=tuple((routers[link.a], routers[link.b]) for link in model.links),
            groups=tuple(sorted(groups, key=lambda group: group.name)),
            router_odds=tuple(odds_of_failure(it.failures_per_year, it.repair_hours) for it in model.routers),
            link_odds=tuple(odds_of_failure(it.failures_per_year, it.repair_hours) for it in model.links),
        )

    @cached_property
    def has_rates(self) -> bool:
        """Whether anything is known to fail."""
        return any(self.router_odds) or any(self.link_odds) or any(group.odds for group in self.groups)

    @cached_property
    def calm(self) -> float:
        """The probability that nothing is down."""
        return self.calm_without((), ())

    def calm_without(self, links: Iterable[int], routers: Iterable[int]) -> float:
        """The probability that nothing else than some links and routers is down."""
        gone_links, gone_routers = set(links), set(routers)
        up = [odds for place, odds in enumerate(self.link_odds) if place not in gone_links]
        up += [odds for place, odds in enumerate(self.router_odds) if place not in gone_routers]
        up += [group.odds for group in self.groups]
        # No logarithm: those of two machines may differ in the last bit.
        return math.prod(1.0 / (1.0 + odds) for odds in up)

    def group(self, name: str) -> int | None:
        """The place of a group."""
        return next((place for place, group in enumerate(self.groups) if group.name == name), None)


@attrs.frozen(kw_only=True, eq=False)
class Batch:
    """Failures of one family, one after the other: the i-th has `links[link_offsets[i]:link_offsets[i + 1]]`."""

    link_offsets: Places
    links: Places
    router_offsets: Places
    routers: Places
    groups: Places
    """Place of the group of each, or NO_GROUP."""
    probability: NDArray[np.float64] | None
    """None when the model has no rates."""

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[tuple[Places, Places]]:
        """Links and routers of each, ascending."""
        link_at, router_at = self.link_offsets.tolist(), self.router_offsets.tolist()
        for place in range(len(self)):
            yield (
                self.links[link_at[place] : link_at[place + 1]],
                self.routers[router_at[place] : router_at[place + 1]],
            )


Failure = tuple[Sequence[int], Sequence[int], int, float]
"""Links, routers, group, probability."""


def _batch(failures: Iterable[Failure], elements: FailureCandidates) -> Batch:
    rows = list(failures)
    return Batch(
        link_offsets=np.cumsum([0, *(len(row[0]) for row in rows)], dtype=np.int32),
        links=np.array([place for row in rows for place in row[0]], dtype=np.int32),
        router_offsets=np.cumsum([0, *(len(row[1]) for row in rows)], dtype=np.int32),
        routers=np.array([place for row in rows for place in row[1]], dtype=np.int32),
        groups=np.array([row[2] for row in rows], dtype=np.int32),
        probability=np.array([row[3] for row in rows]) if elements.has_rates else None,
    )


class Family(Protocol):
    """Failures of one sort, numbered from 0."""

    @property
    def text(self) -> str:
        """Family as an operator writes it, and as tables show it."""

    @property
    def group(self) -> str | None:
        """The group that it is about, if it is about one."""

    def count(self, elements: FailureCandidates) -> int:
        """Number of its members."""

    def batch(self, elements: FailureCandidates, numbers: Ranks) -> Batch:
        """Failures of these numbers."""


@attrs.frozen
class NoFailure:
    """Family of a single scenario, in which nothing fails."""

    text: str = attrs.field(default=NOTHING, init=False)
    group: None = attrs.field(default=None, init=False)

    def count(self, elements: FailureCandidates) -> int:
        """Number of its members: one."""
        return 1

    def batch(self, elements: FailureCandidates, numbers: Ranks) -> Batch:
        """Failures of no link and no router."""
        return _batch([((), (), NO_GROUP, elements.calm) for _ in numbers], elements)


@attrs.frozen
class Combinations:
    """Every choice of so many links and so many routers; of all links with the first choice of routers first."""

    links: int
    routers: int
    group: None = attrs.field(default=None, init=False)

    @property
    def text(self) -> str:
        """Name of the family, such as `links:2`, `routers:1`, `links:1+routers:1`."""
        parts = (("links", self.links), ("routers", self.routers))
        return "+".join(f"{word}:{count}" for word, count in parts if count)

    def count(self, elements: FailureCandidates) -> int:
        """The product of two binomials."""
        return math.comb(len(elements.links), self.links) * math.comb(len(elements.routers), self.routers)

    def batch(self, elements: FailureCandidates, numbers: Ranks) -> Batch:
        """Failures of these numbers (combinatorial unranking)."""
        choices = math.comb(len(elements.links), self.links)
        links = unrank(numbers % choices, len(elements.links), self.links)
        routers = unrank(numbers // choices, len(elements.routers), self.routers)
        probability = None
        if elements.has_rates:
            probability = np.full(len(numbers), elements.calm)
            for odds, chosen in ((elements.link_odds, links), (elements.router_odds, routers)):
                for column in chosen.T:
                    probability *= np.array(odds)[column]
        steps = np.arange(len(numbers) + 1, dtype=np.int32)
        return Batch(
            link_offsets=steps * np.int32(self.links),
            links=links.reshape(-1),
            router_offsets=steps * np.int32(self.routers),
            routers=routers.reshape(-1),
            groups=np.full(len(numbers), NO_GROUP, dtype=np.int32),
            probability=probability,
        )

    def number(self, elements: FailureCandidates, links: Sequence[int], routers: Sequence[int]) -> int:
        """The number of one choice; places ascend."""
        return rank(links) + rank(routers) * math.comb(len(elements.links), self.links)


WORDS: Final[Mapping[GroupKind, str]] = {
    GroupKind.SRLG: "srlg",
    GroupKind.SITE: "sites",
}
"""Names of the failures of all groups of a kind. What is down for maintenance is no failure by itself."""


@attrs.frozen
class Groups:
    """Each group of one kind fails as a whole, in the order of names."""

    kind: GroupKind
    group: None = attrs.field(default=None, init=False)

    @property
    def text(self) -> str:
        """Family as in WORDS."""
        return WORDS[self.kind]

    def places(self, elements: FailureCandidates) -> list[int]:
        """Indices of its groups."""
        return [place for place, group in enumerate(elements.groups) if group.kind is self.kind]

    def count(self, elements: FailureCandidates) -> int:
        """Groups of that kind."""
        return len(self.places(elements))

    def batch(self, elements: FailureCandidates, numbers: Ranks) -> Batch:
        """All members of each."""
        places = self.places(elements)
        chosen = ((places[number], elements.groups[places[number]]) for number in numbers.tolist())
        return _batch(
            ((group.links, group.routers, place, elements.calm * group.odds) for place, group in chosen), elements
        )


@attrs.frozen
class Maintenance:
    """A group is down, first alone, then with each other link, then with each other router.

    A link with an end at a router that is down is down too, and fails no more. Probabilities are those under the
    condition that the group is down.
    """

    group: str
    text: str = attrs.field(default=MAINTENANCE, init=False)

    def count(self, elements: FailureCandidates) -> int:
        """One, and one for each link and router that is left."""
        links, routers = self._left(elements)
        return 1 + len(links) + len(routers)

    def batch(self, elements: FailureCandidates, numbers: Ranks) -> Batch:
        """The group's members, each time with something else."""
        place, group = self._place(elements)
        links, routers = self._left(elements)
        gone = set(range(len(elements.links))).difference(links)
        calm = elements.calm_without(gone, group.routers) if elements.has_rates else 0.0

        def failure(number: int) -> Failure:
            if number == 0:
                return group.links, group.routers, place, calm
            if number <= len(links):
                link = links[number - 1]
                return sorted((*group.links, link)), group.routers, place, calm * elements.link_odds[link]
            router = routers[number - 1 - len(links)]
            return group.links, sorted((*group.routers, router)), place, calm * elements.router_odds[router]

        return _batch(map(failure, numbers.tolist()), elements)

    def number(self, elements: FailureCandidates, links: Collection[int], routers: Collection[int]) -> int | None:
        """The number of a failure, what the group takes down included; None when it is none of these."""
        _, group = self._place(elements)
        left_links, left_routers = self._left(elements)
        more_links = sorted(set(links) - set(group.links))
        more_routers = sorted(set(routers) - set(group.routers))
        if not (set(group.links) <= set(links) and set(group.routers) <= set(routers)):
            return None
        if not more_links and not more_routers:
            return 0
        if len(more_links) == 1 and not more_routers and more_links[0] in left_links:
            return 1 + left_links.index(more_links[0])
        if len(more_routers) == 1 and not more_links and more_routers[0] in left_routers:
            return 1 + len(left_links) + left_routers.index(more_routers[0])
        return None

    def _place(self, elements: FailureCandidates) -> tuple[int, FailureGroup]:
        place = elements.group(self.group)
        assert place is not None, self.group
        return place, elements.groups[place]

    def _left(self, elements: FailureCandidates) -> tuple[list[int], list[int]]:
        _, group = self._place(elements)
        links, routers = set(group.links), set(group.routers)
        return (
            [link for link, ends in enumerate(elements.ends) if link not in links and not routers.intersection(ends)],
            [router for router in range(len(elements.routers)) if router not in routers],
        )
