"""A scenario in words: who loses whom, what is lost, which links get more to carry, which paths grow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from router.whatif.analysis.explain.base_and_scenario import SHOWN, BaseAndScenario
from router.whatif.analysis.explain.explanation import Explanation, Listing, PictureHighlights
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.model.connected_components import ConnectedComponents
from router.whatif.wording import (
    BASE,
    MAINTENANCE,
    amount,
    counted,
    listed,
    lose_each_other,
    parted,
    per_year,
    percent,
    rate,
    told_apart,
)


def explain_scenario(subject: BaseAndScenario) -> Explanation:
    """Explain a scenario: what is down, and all that follows."""
    listings = (_addresses(subject), _rising(subject), _longer(subject))
    return Explanation(
        title=title(subject),
        sentences=(
            *_what(subject),
            *_apart(subject),
            *_parts(subject),
            *lost(subject, subject.now),
            *_busiest(subject),
            *_paths(subject),
        ),
        listings=tuple(listing for listing in listings if listing is not None),
        marks=marks(subject),
    )


def title(subject: BaseAndScenario) -> str:
    """Title of a scenario: what is down."""
    number = f"Scenario {subject.row['scenario']}: " if subject.row else ""
    said = f"{number}{subject.failure} down" if subject.is_failing else f"{number}nothing down"
    variant = subject.variant
    return f"{said[0].upper()}{said[1:]}" + (f" ({variant})" if variant != BASE else "")


def marks(subject: BaseAndScenario) -> PictureHighlights:
    """The mesh with what is down, and how busy the rest is."""
    return PictureHighlights(
        utilisation=subject.by_link(subject.now),
        failed_links=frozenset(subject.links),
        failed_routers=frozenset(subject.routers),
    )


def _what(subject: BaseAndScenario) -> Iterator[str]:
    if not subject.is_failing:
        yield "Nothing fails: this is the base state of the mesh."
    probability = subject.row["probability"] if subject.row else None
    if subject.row and probability:
        if subject.row["family"] == MAINTENANCE:  # on condition of which the probability is
            yield f"Exactly this is the case {percent(probability)} of the time for which {subject.row['group']} lasts."
        else:
            yield f"Exactly this is the case {percent(probability)} of the time: {per_year(probability)} a year."


def _apart(subject: BaseAndScenario) -> Iterator[str]:
    """Say so if the mesh is in several parts whatever fails."""
    found = ConnectedComponents.of(subject.model)
    if said := parted(found.parts, found.apart_pairs):
        yield f"{said[0].upper()}{said[1:]}."


def _parts(subject: BaseAndScenario) -> Iterator[str]:
    """List who can't reach whom any more."""
    kernel = subject.now.kernel
    pairs = kernel.unreachable_pairs - kernel.dead_end_pairs
    if not pairs:
        up = len(subject.network.routers) - len(subject.routers)
        if subject.is_failing and up < 2:
            yield "No two routers are up." if up else "No router is up."
        elif subject.is_failing:
            yield "All routers that are up still reach each other, as far as they did before."
        return
    src, dst = kernel.lost_pairs()
    parts = _cut_off(src.tolist(), dst.tolist())
    yield f"{counted(pairs, 'ordered pair')} of routers that are up {lose_each_other(pairs)}."
    # The part from which all others are cut off is named by its size.
    for part in parts[:SHOWN]:
        far = {other for one, other in zip(src.tolist(), dst.tolist(), strict=True) if one in part}
        names = listed(subject.names(part), most=6)
        whom = listed(subject.names(far), most=6) if len(far) <= SHOWN else counted(len(far), "other router")
        yield f"{names} can't reach {whom}."


def _cut_off(src: list[int], dst: list[int]) -> list[frozenset[int]]:
    """Routers that have lost the same others, together; the smallest first, without the largest such part."""
    lost: dict[int, set[int]] = {}
    for one, other in zip(src, dst, strict=True):
        lost.setdefault(one, set()).add(other)
    parts: dict[frozenset[int], set[int]] = {}
    for one, others in lost.items():
        parts.setdefault(frozenset(others), set()).add(one)
    ordered = sorted((frozenset(part) for part in parts.values()), key=lambda part: (len(part), min(part)))
    return ordered[:-1] if len(ordered) > 1 else ordered


def lost(subject: BaseAndScenario, routes: RoutingState) -> Iterator[str]:
    """Describe what reaches nobody in some state."""
    now, before = routes.kernel.lost_rate / MICRO, subject.base.kernel.lost_rate / MICRO
    if not subject.wanted_msgs_per_s:
        return
    if not now:
        yield "Every message still finds its way."
        return
    more = f", {rate(before)} of them also when nothing fails" if before else ""
    share = min(1.0, now / subject.wanted_msgs_per_s)
    yield f"{rate(now)} reach nobody, {percent(share)} of what should arrive{more}."
    starved = routes.kernel.starved_publishers
    if starved:
        yield (
            f"{counted(starved, 'demand')} for an address {'finds' if starved == 1 else 'find'} no subscriber, or none "
            "with credit left."
        )


def _busiest(subject: BaseAndScenario) -> Iterator[str]:
    kernel = subject.now.kernel
    if kernel.max_utilisation_link < 0:
        return
    link, src, dst = subject.network.directed_link(kernel.max_utilisation_link)
    before = subject.base.kernel.utilisations()[kernel.max_utilisation_link]
    now, calm = told_apart(percent, kernel.max_utilisation, float(before))
    said = f"The busiest link is {link} from {src} to {dst}: {now}"
    yield said + (f", {calm} when nothing fails." if subject.is_failing else ".")
    if np.isinf(subject.network.link_capacity).all():
        yield "The model has no capacities: 100 % is the busiest link when nothing fails."


def _paths(subject: BaseAndScenario) -> Iterator[str]:
    kernel = subject.now.kernel
    if not subject.is_failing:
        return
    _, _, before, now = kernel.changed_pairs()
    longer = int((now > before).sum())
    if not longer:
        yield "No path costs more than before."
        return
    yield f"{counted(longer, 'pair')} {'has' if longer == 1 else 'have'} a path that costs more."
    half, most, nearly = (amount(each / 1000) for each in (kernel.stretch_p50, kernel.stretch_p95, kernel.stretch_p99))
    yield (
        f"Half of all paths cost at most {half}, 95 % at most {most}, 99 % at most {nearly} times as much as before."
    )


def _addresses(subject: BaseAndScenario) -> Listing | None:
    rows = [
        (subject.network.addresses[address], living, gone, starved, missing / MICRO)
        for address, living, gone, starved, missing in subject.now.kernel.address_impact()
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: (-row[4], row[1], row[0]))
    columns = ("address", "subscriber routers left", "subscriber routers lost", "starved publishers", "msg/s lost")
    heading = "Affected addresses" if subject.is_failing else "Addresses that lose messages or have starved publishers"
    return Listing(title=heading, columns=columns, rows=tuple(rows[: subject.shown]))


def _rising(subject: BaseAndScenario) -> Listing | None:
    """Links that get the most more to carry."""
    if not subject.is_failing:
        return None
    return rising(subject, subject.base, subject.now)


def rising(subject: BaseAndScenario, old: RoutingState, new: RoutingState) -> Listing | None:
    """Links by how much more they carry in a new state than in an old one."""
    before, now = old.kernel.loads()[0], new.kernel.loads()[0]
    more = now - before
    places = np.flatnonzero(more > 0)
    places = places[np.lexsort((places, -more[places]))][: subject.shown]
    if not places.size:
        return None
    shares = old.kernel.utilisations(), new.kernel.utilisations()
    rows = []
    for place in places.tolist():
        link, src, dst = subject.network.directed_link(place)
        share = told_apart(percent, *(float(each[place]) for each in shares))
        rows.append((link, src, dst, before[place] / MICRO, now[place] / MICRO, *share))
    columns = ("link", "from", "to", "msg/s before", "msg/s", "utilisation before", "utilisation")
    return Listing(title="Links whose load rises", columns=columns, rows=tuple(rows))


def _longer(subject: BaseAndScenario) -> Listing | None:
    """Paths that grow the most."""
    src, dst, before, now = subject.now.kernel.changed_pairs()
    longer = np.flatnonzero((now > before) & (src < dst))
    if not longer.size:
        return None
    stretch = now[longer] / before[longer]
    places = longer[np.lexsort((dst[longer], src[longer], -stretch))][: subject.shown]
    rows = tuple(
        (
            subject.network.routers[src[place]],
            subject.network.routers[dst[place]],
            int(before[place]),
            int(now[place]),
            " - ".join(
                subject.network.routers[router] for router in subject.now.path(int(src[place]), int(dst[place]))
            ),
        )
        for place in places
    )
    columns = ("from", "to", "cost before", "cost", "path")
    return Listing(title="Paths that grow the most", columns=columns, rows=rows)
