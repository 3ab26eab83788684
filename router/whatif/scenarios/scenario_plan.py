"""The plan of a run: which scenarios there are, each with a number, and what fails in any of them.

Scenario 0 is the mesh as it is. Then come, for each variant of the mesh, the families of failures that were asked for,
each with a range of numbers without a gap. Nothing but numbers needs to travel to whoever works scenarios out.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from mesh_config.findings import Finding, SettingsError, Severity, nearest
from router.whatif.model.elements import nearest_name
from router.whatif.scenarios.combination_numbers import SAMPLE_LIMIT, Shuffle, ranks
from router.whatif.scenarios.failure_families import (
    WORDS,
    Batch,
    Combinations,
    FailureCandidates,
    Family,
    Groups,
    Maintenance,
    NoFailure,
)
from router.whatif.wording import BASE, NAMED, counted, listed

MAX_SIZE: Final = 16
"""Maximum number of links, or of routers, that fail at once."""
MAX_SCENARIOS: Final = 10**8
"""Maximum number of scenarios of a run: the program that makes it holds some numbers of each in the end."""

SMALLEST_CHUNK: Final = 64
LARGEST_CHUNK: Final = 16384
CHUNKS: Final = 32
"""Minimum number of chunks of a variant that has enough scenarios."""
CHUNK_ROUTERS: Final = 1000
CHUNK_SCENARIOS: Final = 512
"""Number of scenarios that take about a second in a mesh of CHUNK_ROUTERS routers."""


class PlanError(SettingsError):
    """A plan that can't be; `findings` has all that is wrong."""


def plan_error(key: str, message: str, expected: str = "", near: str | None = None) -> PlanError:
    """A PlanError of one finding; *key* is the option or the field."""
    return PlanError([Finding(severity=Severity.ERROR, key=key, message=message, expected=expected, nearest=near)])


@attrs.frozen(kw_only=True)
class Failure:
    """Elements that fail in one scenario, by ids."""

    number: int
    variant: str
    family: str
    group: str | None
    links: tuple[str, ...]
    routers: tuple[str, ...]
    probability: float | None


@attrs.frozen(kw_only=True)
class Section:
    """The scenarios of one family in one variant."""

    variant: int
    family: Family
    first: int
    count: int
    shuffle: Shuffle | None
    """Permutation whose first `count` entries are run (sampling); None: all are run."""

    @property
    def stop(self) -> int:
        """The number after the last."""
        return self.first + self.count


@attrs.frozen(kw_only=True)
class Chunk:
    """Consecutive scenarios of one variant, worked out and written together."""

    number: int
    """Number of the chunk, counted from 0 over all variants."""
    variant: int
    first: int
    stop: int


@attrs.frozen
class Chunks:
    """Chunks of a plan in their order, each made when it is asked for: there may be a million."""

    starts: tuple[range, ...]
    """First scenarios of the chunks of each variant."""
    _bounds: tuple[int, ...] = attrs.field(init=False, repr=False)
    """Number of the first chunk of each variant, then that of all chunks."""

    @_bounds.default
    def _bounds_of_starts(self) -> tuple[int, ...]:
        return tuple(itertools.accumulate(map(len, self.starts), initial=0))

    def __len__(self) -> int:
        return self._bounds[-1]

    def __iter__(self) -> Iterator[Chunk]:
        return (
            self._chunk(variant, number) for variant in range(len(self.starts)) for number in self.of_variant(variant)
        )

    def __getitem__(self, number: int) -> Chunk:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._chunk(bisect.bisect_right(self._bounds, number) - 1, number)

    def _chunk(self, variant: int, number: int) -> Chunk:
        starts = self.starts[variant]
        first = starts[number - self._bounds[variant]]
        return Chunk(number=number, variant=variant, first=first, stop=min(first + starts.step, starts.stop))

    def of_variant(self, variant: int) -> range:
        """Numbers of the chunks of a variant."""
        return range(self._bounds[variant], self._bounds[variant + 1])


@attrs.frozen(kw_only=True)
class VariantCandidates:
    """A variant by its name, and what may fail in it."""

    name: str
    elements: FailureCandidates


@attrs.frozen(kw_only=True)
class Plan:
    """All scenarios of a run. Make one with `Plan.of`."""

    variants: tuple[VariantCandidates, ...]
    sections: tuple[Section, ...]
    seed: int

    @classmethod
    def of(
        cls,
        variants: Sequence[tuple[str, FailureCandidates]],
        families: Sequence[Family],
        *,
        sample: int | None = None,
        seed: int = 0,
    ) -> Plan:
        """Each family in each variant.

        Args:
            variants: names and elements; the mesh as it is comes first.
            families: of failures; those that repeat are left out.
            sample: of families with more members, only so many are played, chosen by *seed*.
            seed: of the samples.
        Raises: PlanError
        """
        sections: list[Section] = []
        first = 0
        for place, (_, elements) in enumerate(variants):
            for family in dict.fromkeys((NoFailure(), *families)):
                population = _checked_count(family, elements)
                shuffle = None
                if sample is not None and population > sample:
                    if population > SAMPLE_LIMIT:
                        raise plan_error("--fail", f"{family.text}: too many", "fewer failures at once")
                    shuffle = Shuffle(population, seed, family.text + (f" {family.group}" if family.group else ""))
                count = population if shuffle is None or sample is None else sample
                if count:
                    sections.append(Section(variant=place, family=family, first=first, count=count, shuffle=shuffle))
                first += count
        if first > MAX_SCENARIOS:
            expected = f"at most {MAX_SCENARIOS:,}: fewer failures at once, or --sample of a run"
            raise plan_error("--fail", f"{first:,} scenarios", expected)
        named = tuple(VariantCandidates(name=name, elements=elements) for name, elements in variants)
        return cls(variants=named, sections=tuple(sections), seed=seed)

    def __len__(self) -> int:
        return self.sections[-1].stop

    def section(self, number: int) -> Section:
        """The one that has a scenario.

        Raises: PlanError
        """
        found = next((each for each in self.sections if each.first <= number < each.stop), None)
        if found is None:
            raise plan_error("scenario", f"there is no scenario {number}", f"a number from 0 to {len(self) - 1}")
        return found

    def failure(self, number: int) -> Failure:
        """Failure of one scenario.

        Raises: PlanError
        """
        section = self.section(number)
        variant = self.variants[section.variant]
        elements = variant.elements
        batch = self.batch(section, number, number + 1)
        links, routers = next(iter(batch))
        group = int(batch.groups[0])
        return Failure(
            number=number,
            variant=variant.name,
            family=section.family.text,
            group=elements.groups[group].name if group >= 0 else None,
            links=tuple(elements.links[link] for link in links.tolist()),
            routers=tuple(elements.routers[router] for router in routers.tolist()),
            probability=None if batch.probability is None else float(batch.probability[0]),
        )

    def batch(self, section: Section, first: int, stop: int) -> Batch:
        """The scenarios of one section from number *first* to *stop* - 1."""
        assert section.first <= first <= stop <= section.stop
        first, stop = first - section.first, stop - section.first
        chosen = ranks(range(first, stop)) if section.shuffle is None else section.shuffle.places(first, stop)
        return section.family.batch(self.variants[section.variant].elements, chosen)

    def batches(self, first: int, stop: int) -> Iterator[tuple[Section, int, Batch]]:
        """Failures of scenarios *first* to *stop* - 1, section by section, each with its first number."""
        for section in self.sections:
            low, high = max(first, section.first), min(stop, section.stop)
            if low < high:
                yield section, low, self.batch(section, low, high)

    def number(
        self,
        *,
        links: Iterable[str] = (),
        routers: Iterable[str] = (),
        group: str | None = None,
        variant: str = BASE,
    ) -> int | None:
        """The scenario in which exactly this fails; None when the plan has none.

        Args:
            links: ids of all that fail.
            routers: ids of all that fail.
            group: by itself: the scenario in which it fails, or is down alone. With links and routers: the scenario of
                its maintenance in which these fail as well.
            variant: name of it.
        Raises: PlanError when a name is not known
        """
        elements = next((each.elements for each in self.variants if each.name == variant), None)
        if elements is None:
            names = [each.name for each in self.variants]
            raise plan_error("variant", f"no variant `{variant}`", ", ".join(names), nearest(variant, names))
        link_places = _places("link", links, elements.links)
        router_places = _places("router", routers, elements.routers)
        if group is not None:
            _places("group", (group,), tuple(each.name for each in elements.groups))
        for section in self.sections:
            if self.variants[section.variant].name == variant:
                member = _member(section.family, elements, link_places, router_places, group)
                if member is not None and section.shuffle is not None:
                    member = section.shuffle.place_of(member)
                if member is not None and member < section.count:
                    return section.first + member
        return None

    def chunks(self) -> Chunks:
        """All scenarios in pieces, which depend on the plan alone; none has scenarios of two variants."""
        starts = []
        for place, variant in enumerate(self.variants):
            own = [section for section in self.sections if section.variant == place]
            first, stop = own[0].first, own[-1].stop
            starts.append(range(first, stop, chunk_size(len(variant.elements.routers), stop - first)))
        return Chunks(tuple(starts))

    def of_variant(self, place: int) -> Plan:
        """Part of the plan that concerns one variant alone, with the same numbers."""
        own = (attrs.evolve(section, variant=0) for section in self.sections if section.variant == place)
        return Plan(variants=(self.variants[place],), sections=tuple(own), seed=self.seed)

    def to_json(self) -> str:
        """Variants and sections as JSON, in one form."""
        sections = [
            {
                "variant": self.variants[section.variant].name,
                "family": section.family.text,
                "group": section.family.group,
                "first": section.first,
                "count": section.count,
                "population": section.count if section.shuffle is None else section.shuffle.size,
            }
            for section in self.sections
        ]
        document = {"variants": [each.name for each in self.variants], "seed": self.seed, "sections": sections}
        return json.dumps(document, sort_keys=True, separators=(",", ":"))

    def digest(self) -> str:
        """SHA-256 of what it is, as hexadecimal text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _checked_count(family: Family, elements: FailureCandidates) -> int:
    names = [each.name for each in elements.groups]
    if family.group is not None and elements.group(family.group) is None:
        raise plan_error(
            "--maintenance",
            f"the model has no group `{family.group}`",
            f"one of {listed(names, most=NAMED)}" if names else "a group; the model has none",
            nearest(family.group, names),
        )
    count = family.count(elements)
    if not count and isinstance(family, Groups):
        raise plan_error("--fail", f"`{family.text}`: the model has no group of kind {family.kind}")
    # Single failures are what is played unless it is said: a mesh without links may be asked for them.
    if not count and isinstance(family, Combinations) and family.links + family.routers > 1:
        there = f"{counted(len(elements.links), 'link')} and {counted(len(elements.routers), 'router')}"
        raise plan_error("--fail", f"`{family.text}`: the mesh has {there}", "fewer failures at once")
    return count


def _places(what: str, names: Iterable[str], known: Sequence[str]) -> list[int]:
    place = {name: number for number, name in enumerate(known)}
    wanted = sorted(set(names))
    for name in wanted:
        if name not in place:
            raise plan_error(what, f"no {what} `{name}`", f"a {what} of the model", nearest_name(name, known))
    return [place[name] for name in wanted]


def _member(
    family: Family, elements: FailureCandidates, links: Sequence[int], routers: Sequence[int], group: str | None
) -> int | None:
    """The number of a failure within a family, None when it has no such member."""
    match family:
        case Maintenance():
            if family.group != group:
                return None
            held = elements.groups[elements.group(family.group) or 0]
            return family.number(elements, {*held.links, *links}, {*held.routers, *routers})
        case Groups():
            names = [elements.groups[place].name for place in family.places(elements)]
            return names.index(group) if group in names and not links and not routers else None
        case Combinations() if group is None and (len(links), len(routers)) == (family.links, family.routers):
            return family.number(elements, links, routers)
        case NoFailure() if group is None and not links and not routers:
            return 0
    return None


def second_of_work(routers: int) -> float:
    """Scenarios that one core plays in about a second, on a mesh of so many routers."""
    return float(CHUNK_SCENARIOS * (CHUNK_ROUTERS / max(routers, 1)) ** 1.7)


def chunk_size(routers: int, scenarios: int) -> int:
    """Scenarios in a chunk: about a second of work, a power of two, and less where there would be few chunks."""
    enough = min(second_of_work(routers), scenarios / CHUNKS, LARGEST_CHUNK)
    size = SMALLEST_CHUNK
    while size < enough:
        size *= 2
    return size


# What operators write

_TERM: Final = re.compile(r"(links|routers):([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NEARLY: Final = re.compile(r"(link|router)s?[ :=]*(\d?)")


def families_of(text: str) -> tuple[Family, ...]:
    """Families as they are written after `--fail`: `links:2,routers:1,srlg,sites,links:1+routers:1,links:1-2`.

    Raises: PlanError
    """
    found: list[Family] = []
    for term in (each.strip() for each in text.split(",")):
        kinds = [kind for kind, word in WORDS.items() if word == term]
        found += [Groups(kind) for kind in kinds] or _combinations(term)
    return tuple(dict.fromkeys(found))


def _meant(term: str) -> str | None:
    """The term that one without its number, or with another sign before it, stands for; None if it is no such."""
    match = _NEARLY.fullmatch(term.casefold())
    return f"{match[1]}s:{int(match[2] or 0) or 1}" if match is not None else None


def _combinations(term: str) -> list[Combinations]:
    counts = {"links": range(1), "routers": range(1)}
    for part in term.split("+"):
        match = _TERM.fullmatch(part.strip())
        if match is None:
            words = ["links:1", "links:2", "routers:1", "routers:2", "links:1+routers:1", *WORDS.values()]
            raise plan_error(
                "--fail",
                f"`{term}`" if term else "no family is named",
                f"such as {', '.join(words)}",
                _meant(term) or nearest(term, words),
            )
        word, low, high = match[1], int(match[2]), int(match[3] or match[2])
        if counts[word] != range(1):
            raise plan_error("--fail", f"`{term}` has {word} twice", f"such as {word}:2")
        if not 1 <= low <= high <= MAX_SIZE:
            raise plan_error("--fail", f"`{part}`", f"numbers from 1 to {MAX_SIZE}, the lower one first")
        counts[word] = range(low, high + 1)
    return [Combinations(links, routers) for links in counts["links"] for routers in counts["routers"]]
