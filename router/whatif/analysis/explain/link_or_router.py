"""A link or a router in words: what it is, what it carries, what its loss does, and what is worst for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from router.whatif.analysis.explain import scenario
from router.whatif.analysis.explain.base_and_scenario import BaseAndScenario
from router.whatif.analysis.explain.explanation import Explanation, Listing, PictureHighlights
from router.whatif.analysis.link_demands import link_demands
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.model.elements import LinkEdge
from router.whatif.wording import amount, counted, listed, milliseconds, percent, rate


def explain_link(subject: BaseAndScenario, name: str) -> Explanation:
    """A link. Raises: TableError when the model has none of that name."""
    place = subject.link(name)
    link = subject.model.links[place]
    said = [_link(subject, place)]
    listings = [_directions(subject, place), _carried(subject, place), _worst(subject, name)]
    if subject.is_up(link):
        with subject.trying(links=[name]) as without:
            said += _loss(subject, without)
            listings.append(_rising(subject, without))
    else:
        said.append("It is down.")
    marks = PictureHighlights(
        utilisation=subject.by_link(subject.now),
        marked_links=frozenset([name]),
        failed_links=frozenset(subject.links),
        failed_routers=frozenset(subject.routers),
    )
    return Explanation(
        title=f"Link {name}",
        sentences=tuple(said),
        listings=tuple(listing for listing in listings if listing is not None),
        marks=marks,
    )


def _link(subject: BaseAndScenario, place: int) -> str:
    """Describe a link."""
    link = subject.model.links[place]
    said = f"It joins {link.a} and {link.b} at cost {link.cost}"
    if link.costs[1] != link.cost:
        said += f", and {link.costs[1]} back"
    if link.delay_ms is not None:
        said += f", {milliseconds(link.delay_ms)} one way"
    limits = [rate(link.capacity_msgs)] if link.capacity_msgs else []
    limits += [f"{amount(link.capacity_bytes)} bytes/s"] if link.capacity_bytes else []
    said += f", and can carry {listed(limits)} each way." if limits else "; what it can carry is not known."
    parallel = [each for each in subject.model.links if (each.a, each.b) == (link.a, link.b)]
    if len(parallel) > 1 and all(each.costs[0] == each.costs[1] for each in parallel):
        said += f" Of {len(parallel)} parallel links {_standing(subject, link, parallel)}."
    return said


def _standing(subject: BaseAndScenario, link: LinkEdge, parallel: Sequence[LinkEdge]) -> str:
    """Tell which of parallel links is in use, or which are."""
    living = sorted((each for each in parallel if subject.is_up(each)), key=lambda each: (each.cost, each.id))
    if not living:
        return "none is up"
    used = living[0]
    sharing = [each.id for each in living if each.cost == used.cost]
    if subject.is_split and len(sharing) > 1:
        if link.id in sharing:
            return f"it shares evenly with {listed([other for other in sharing if other != link.id])}"
        return f"{listed(sharing)} share evenly"
    if used is link:
        return "it is the one in use"
    return f"it stands by, {used.id} is in use" if subject.is_up(link) else f"{used.id} is in use"


def _directions(subject: BaseAndScenario, place: int) -> Listing:
    rates, sizes = subject.now.kernel.loads()
    used = subject.now.kernel.utilisations()
    rows = []
    for directed in (2 * place, 2 * place + 1):
        _, src, dst = subject.network.directed_link(directed)
        share = percent(float(used[directed]))
        size = float(subject.network.byte_rates(sizes[directed])) / MICRO
        rows.append((src, dst, rates[directed] / MICRO, size, share))
    return Listing(
        title="Load by direction", columns=("from", "to", "msg/s", "bytes/s", "utilisation"), rows=tuple(rows)
    )


def _carried(subject: BaseAndScenario, place: int) -> Listing | None:
    """The largest demands on a link."""
    if subject.is_split:
        return None  # then no link has the whole of a demand
    table = link_demands(subject.now, place)
    if not table.num_rows:
        return None
    names = ("demand_src", "demand_dst", "address", "msgs_per_s")
    rows = sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True), key=lambda row: -row[3])
    title = f"Demands on the link: all {len(rows):,}"
    if len(rows) > subject.shown:
        title = f"Demands on the link: the largest {subject.shown} of {len(rows):,}"
    return Listing(title=title, columns=("from", "to", "address", "msg/s"), rows=tuple(rows[: subject.shown]))


def _worst(subject: BaseAndScenario, name: str) -> Listing | None:
    """The scenarios of a run that load a link most."""
    rows = subject.rows("link_worst", link=name, variant=subject.variant)
    failures = subject.failures([number for row in rows for number in row["scenarios"]])
    ranks = ("scenario_utilisation", "scenarios", "scenario_msgs_per_s", "scenario_bytes_per_s")
    found = [
        (share, number, row["src"], sent, size)
        for row in rows
        for share, number, sent, size in zip(*(row[column] for column in ranks), strict=True)
    ]
    if not found:
        return None
    found.sort(key=lambda each: (-each[0], each[1], each[2]))
    columns = ("from", "msg/s", "bytes/s", "utilisation", "scenario", "what is down")
    shown = tuple(
        (src, sent, size, percent(share), number, failures.get(number))
        for share, number, src, sent, size in found[: subject.shown]
    )
    return Listing(title="Worst scenarios of the run for the link", columns=columns, rows=shown)


def _loss(subject: BaseAndScenario, without: RoutingState) -> Iterator[str]:
    """Explain what the loss of something that is up does, on top of what is down."""
    kernel, now = without.kernel, subject.now.kernel
    pairs = _lost_pairs(subject, without)
    dead = kernel.dead_addresses - now.dead_addresses
    starved = kernel.starved_publishers - now.starved_publishers
    harm = []  # what makes it one in the table `router_spof`
    if pairs:
        harm.append(f"{counted(pairs, 'ordered pair')} of other routers lose connectivity")
    if dead > 0:
        harm.append(f"{counted(dead, 'address')} {'has' if dead == 1 else 'have'} no subscriber")
    if starved > 0:
        finds = "finds" if starved == 1 else "find"
        harm.append(f"{counted(starved, 'demand')} of others {finds} no subscriber, or none with credit left")
    if harm:
        yield f"It is a single point of failure: without it {listed(harm)}."
    if not pairs:
        yield "Without it all others still reach each other, as far as they do now."
    lost = (kernel.lost_rate - now.lost_rate) / MICRO
    if lost > 0:
        more = " more" if now.lost_rate else ""
        is_router = len(without.failed_routers) > len(subject.routers)
        own = ", with the messages from and to itself" if is_router else ""
        yield f"{rate(lost)}{more} then reach nobody{own}."


def _lost_pairs(subject: BaseAndScenario, without: RoutingState) -> int:
    """Ordered pairs of living routers that lose each other now that something more is down."""
    kernel = without.kernel
    lost = kernel.unreachable_pairs - kernel.dead_end_pairs
    if not subject.is_failing:
        return lost
    src, dst = subject.now.kernel.lost_pairs()
    # Those of a router that is tried are lost now but no pairs of others then.
    dead = sorted(without.failed_routers)
    return lost - int((~np.isin(src, dead) & ~np.isin(dst, dead)).sum())


def _rising(subject: BaseAndScenario, without: RoutingState) -> Listing | None:
    """Links that get more to carry than they have now."""
    found = scenario.rising(subject, subject.now, without)
    return None if found is None else attrs.evolve(found, title="When it fails, these get more to carry")


def explain_router(subject: BaseAndScenario, name: str) -> Explanation:
    """A router. Raises: TableError when the model has none of that name."""
    place = subject.router(name)
    said = [_router(subject, place)]
    listings = [_neighbors(subject, place)]
    if name in subject.routers:
        said += ["It is down.", *_clients(subject, place)]
    else:
        with subject.trying(routers=[name]) as without:
            said += [*_clients(subject, place), *_loss(subject, without)]
            listings.append(_rising(subject, without))
    marks = PictureHighlights(
        utilisation=subject.by_link(subject.now),
        marked_routers=frozenset([name]),
        failed_links=frozenset(subject.links),
        failed_routers=frozenset(subject.routers),
    )
    return Explanation(
        title=f"Router {name}",
        sentences=tuple(said),
        listings=tuple(listing for listing in listings if listing is not None),
        marks=marks,
    )


def _router(subject: BaseAndScenario, place: int) -> str:
    router = subject.model.routers[place]
    neighbors = {other for link in subject.model.links for other in (link.a, link.b) if router.id in (link.a, link.b)}
    where = f" It stands at site {router.site}." if router.site else ""
    return f"It has {counted(len(neighbors - {router.id}), 'neighbor')}.{where}"


def _clients(subject: BaseAndScenario, place: int) -> Iterator[str]:
    """List what is published and subscribed to at a router."""
    network = subject.network
    sent = (
        network.demand_rate[network.demand_src == place].sum()
        + network.publisher_rate[network.publisher_src == place].sum()
    )
    if sent:
        yield f"Its publishers send {rate(float(sent) / MICRO)}."
    here = [site for site in subject.model.subscribers if site.router == network.routers[place]]
    if here:
        yield f"It has subscribers of {listed([site.address for site in here])}."
    if network.routers[place] in subject.routers:
        return
    living = Counter(site.address for site in subject.model.subscribers if site.router not in subject.routers)
    alone = [site.address for site in here if living[site.address] == 1]
    if alone:
        yield f"It is the only router{' left' if subject.is_failing else ''} with subscribers of {listed(alone)}."


def _neighbors(subject: BaseAndScenario, place: int) -> Listing | None:
    """Links of a router and their loads."""
    rates = subject.now.kernel.loads()[0]
    used = subject.now.kernel.utilisations()
    rows = []
    for link in np.flatnonzero((subject.network.link_a == place) | (subject.network.link_b == place)).tolist():
        out = 2 * link + int(subject.network.link_b[link] == place)
        name, _, neighbor = subject.network.directed_link(out)
        back = out ^ 1
        shares = percent(float(used[out])), percent(float(used[back]))
        cost = subject.model.links[link].costs[out % 2]
        rows.append((name, neighbor, cost, rates[out] / MICRO, shares[0], rates[back] / MICRO, shares[1]))
    columns = ("link", "neighbor", "cost", "msg/s out", "used out", "msg/s in", "used in")
    return Listing(title="Its links", columns=columns, rows=tuple(rows)) if rows else None
