"""A pair of routers in words: the path between them, what can take it away, and what then takes its place."""

from __future__ import annotations

from collections.abc import Iterator

from router.whatif.analysis.connectivity import Connectivity
from router.whatif.analysis.explain.base_and_scenario import BaseAndScenario
from router.whatif.analysis.explain.explanation import Explanation, Listing, PictureHighlights
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.wording import amount, counted, listed, milliseconds, rate


def explain_pair(subject: BaseAndScenario, src: str, dst: str) -> Explanation:
    """Explain what connects two routers. Raises: TableError when the model has none of these names."""
    one, other = subject.router(src), subject.router(dst)
    now, before = subject.now.path(one, other), subject.base.path(one, other)
    said = [*_paths(subject, one, other), *_demand(subject, one, other), *_separating(subject, one, other)]
    listings = [_detours(subject, one, other), _losses(subject, src, dst)]
    network = subject.network
    is_other = subject.is_failing and before != now
    return Explanation(
        title=f"From {src} to {dst}",
        sentences=tuple(said),
        listings=tuple(listing for listing in listings if listing is not None),
        marks=PictureHighlights(
            marked_routers=frozenset([src, dst]),
            failed_links=frozenset(subject.links),
            failed_routers=frozenset(subject.routers),
            path=tuple(network.links[link] for link in subject.now.links(now)),
            old_path=tuple(network.links[link] for link in subject.base.links(before)) if is_other else (),
        ),
    )


def path_text(subject: BaseAndScenario, routes: RoutingState, src: int, dst: int) -> str:
    """A path: its routers, cost and delay."""
    path = routes.path(src, dst)
    said = " - ".join(subject.network.routers[router] for router in path)
    delay, is_known = routes.delay_us(src, dst)
    extra = f", {milliseconds(delay / 1000)} one way" if is_known and len(path) > 1 else ""
    return f"{said} (cost {routes.distance(src, dst)}{extra})"


def _paths(subject: BaseAndScenario, src: int, dst: int) -> Iterator[str]:
    before, now = subject.base.path(src, dst), subject.now.path(src, dst)
    if src == dst:
        yield "They are the same router: no link is between them."
        return
    if not before:
        yield "There is no path between them, even when nothing fails."
        return
    if not subject.is_failing:
        yield f"The path: {path_text(subject, subject.base, src, dst)}."
    elif not now:
        yield f"With {subject.failure} down there is no path."
        yield f"When nothing fails: {path_text(subject, subject.base, src, dst)}."
    elif now == before:
        yield f"With {subject.failure} down the path stays: {path_text(subject, subject.base, src, dst)}."
    else:
        yield f"With {subject.failure} down the path is {path_text(subject, subject.now, src, dst)}."
        yield f"When nothing fails: {path_text(subject, subject.base, src, dst)}."
    back = subject.now.path(dst, src)
    if now and back[::-1] != now:
        yield f"The way back is another one of the same cost: {path_text(subject, subject.now, dst, src)}."


def _demand(subject: BaseAndScenario, src: int, dst: int) -> Iterator[str]:
    network = subject.network
    here = (network.demand_src == src) & (network.demand_dst == dst)
    sent = int(network.demand_rate[here].sum())
    if sent:
        yield f"Messages for {network.routers[dst]} from there: {rate(sent / MICRO)}."
    for flow in subject.now.flows():
        if flow.src == src and flow.dst == dst and flow.rate and src != dst:
            yield f"To {network.addresses[flow.address]}: {rate(flow.rate / MICRO)}."


def _separating(subject: BaseAndScenario, src: int, dst: int) -> Iterator[str]:
    """The single failures that take the path away, on top of what is down."""
    if src == dst or not subject.now.path(src, dst):
        return
    network, found = subject.network, subject.connectivity
    links = [network.links[link] for link in found.bridges if _splits(found, link, src, dst)]
    routers = [router for router in found.cuts if router not in (src, dst)]
    names = [network.routers[router] for router in routers if _parts(found, router, src, dst)]
    if not links and not names:
        how = "further" if subject.is_failing else "single"
        yield f"No {how} failure of another router or a link takes every path away."
        return
    words = []
    if names:
        words.append(f"{counted(len(names), 'router')}: {listed(names, most=8)}")
    if links:
        words.append(f"{counted(len(links), 'link')}: {listed(links, most=8)}")
    yield f"Without any one of these{' too' if subject.is_failing else ''} there is no path. {'; '.join(words)}."


def _splits(found: Connectivity, link: int, src: int, dst: int) -> bool:
    labels = found.labels_without_link(link)
    return bool(labels[src] != labels[dst])


def _parts(found: Connectivity, router: int, src: int, dst: int) -> bool:
    labels = found.labels_without_node(router)
    return bool(labels[src] != labels[dst])


def _detours(subject: BaseAndScenario, src: int, dst: int) -> Listing | None:
    """The path when one link of it fails, on top of what is down."""
    before = subject.now.distance(src, dst)
    rows: list[tuple[object, ...]] = []
    for link in subject.now.links(subject.now.path(src, dst)):
        name = subject.network.links[link]
        with subject.trying(links=[name]) as without:
            cost = without.distance(src, dst)
            way = " - ".join(subject.network.routers[router] for router in without.path(src, dst))
        times = None if cost is None or not before else amount(cost / before)
        rows.append((name, cost, times, way or "none"))
    if not rows:
        return None
    columns = ("without link", "cost", "times", "path")
    return Listing(title="When one link of the path fails", columns=columns, rows=tuple(rows))


def _losses(subject: BaseAndScenario, src: str, dst: str) -> Listing | None:
    """Scenarios of the run, of this variant, in which the pair has no path though both live."""
    rows = subject.variant_rows("pair_impact", is_lost=True, src=src, dst=dst)
    if not rows:
        return None
    failures = subject.failures([row["scenario"] for row in rows[: subject.shown]])
    shown = tuple((row["scenario"], failures.get(row["scenario"])) for row in rows[: subject.shown])
    title = f"Scenarios of the run without a path: {len(rows):,}, of which"
    return Listing(title=title, columns=("scenario", "what is down"), rows=shown)
