"""An address in words: who subscribes and publishes, who sends to whom with what credit, what takes it away."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from mesh_config.models import Treatment
from router.whatif.analysis.credit_plan import ClientCreditHabits, address_rows
from router.whatif.analysis.explain.base_and_scenario import BaseAndScenario
from router.whatif.analysis.explain.explanation import Explanation, Listing, PictureHighlights
from router.whatif.analysis.paths_and_flows import IngressEgressFlow
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO
from router.whatif.wording import NOTHING, counted, listed, rate

RULES = {
    Treatment.CLOSEST: "each message goes to the nearest router with subscribers",
    Treatment.BALANCED: "each message goes to the nearest router whose subscribers have credit left",
    Treatment.MULTICAST: "each message goes to every subscriber",
}


def explain_address(subject: BaseAndScenario, text: str) -> Explanation:
    """An address. Raises: TableError when the model has none of that name."""
    number = subject.address(text)
    flows = subject.now.flows({number})
    used = {
        subject.network.links[link]
        for flow in flows
        if flow.dst is not None
        for link in subject.now.links(subject.now.path(flow.src, flow.dst))
    }
    listings = (_subscribers(subject, text), _flows(subject, number), _harm(subject, text))
    sites = {site.router for site in subject.model.subscribers if site.address == text}
    return Explanation(
        title=f"Address {text}",
        sentences=(*_what(subject, text), *_fate(subject, number, flows), *_single(subject, text, flows)),
        listings=tuple(listing for listing in listings if listing is not None),
        marks=PictureHighlights(
            marked_routers=frozenset(sites),
            failed_links=frozenset(subject.links),
            failed_routers=frozenset(subject.routers),
            path=tuple(sorted(used)),
        ),
    )


def _what(subject: BaseAndScenario, text: str) -> Iterator[str]:
    address = next(each for each in subject.model.addresses if each.text == text)
    yield f"It is {address.treatment}: {RULES[address.treatment]}."
    if subject.is_failing:
        yield f"Down: {subject.failure}."


def _fate(subject: BaseAndScenario, number: int, flows: Sequence[IngressEgressFlow]) -> Iterator[str]:
    """Explain what becomes of its messages."""
    network = subject.network
    here = network.publisher_address == number
    sent = int(network.publisher_rate[here].sum())
    if not sent:
        yield "Nobody publishes to it."
        return
    yield f"Publishers at {counted(int(here.sum()), 'router')} send {rate(sent / MICRO)}."
    lost = [flow for flow in flows if flow.dst is None]
    if lost:
        where = listed(subject.names({flow.src for flow in lost}))
        yield f"{rate(sum(flow.rate for flow in lost) / MICRO)} of it, from {where}, reach nobody."
        if any(subject.now.distance(flow.src, site) is not None for flow in lost for site in _sites(subject, number)):
            yield "What finds no credit is listed below as offered to the nearest router with subscribers."
    else:
        yield "All of it reaches a subscriber."


def _single(subject: BaseAndScenario, text: str, flows: Sequence[IngressEgressFlow]) -> Iterator[str]:
    """List the single failures that leave it without subscribers."""
    known = [site.router for site in subject.model.subscribers if site.address == text]
    sites = [router for router in known if router not in subject.routers]
    if not sites:
        yield "All its subscribers are down." if known else "It has no subscribers."
    elif len(sites) == 1:
        left = " that are left" if len(known) > 1 else ""
        yield f"All its subscribers{left} are at {sites[0]}: without that router it has none."
    elif len(sites) < len(known):
        yield f"It has subscribers left at {len(sites):,} routers, so that no single router takes all of them away."
    else:
        yield f"It has subscribers at {counted(len(sites), 'router')}, so that no single router takes all of them away."
    if _is_bounded(subject, text):
        what, only = "all subscribers, or from those with credit left", _short(subject, subject.address(text), flows)
    else:
        what, only = "all subscribers", _cut_off(subject, subject.address(text))
    names = list(only)
    if names:
        yield f"Each of these by itself keeps some of its publishers from {what}: {listed(names, most=8)}."


def _is_bounded(subject: BaseAndScenario, text: str) -> bool:
    """Whether its subscribers take only what their credit lets pass."""
    treatment = next(each.treatment for each in subject.model.addresses if each.text == text)
    sites = [site for site in subject.model.subscribers if site.address == text]
    return treatment is Treatment.BALANCED and any(site.credit is not None for site in sites)


def _cut_off(subject: BaseAndScenario, number: int) -> Iterator[str]:
    """Links and routers whose loss, on top of what is down, keeps living publishers from every subscriber."""
    network, found = subject.network, subject.connectivity
    sites = _sites(subject, number)
    served = found.component[sorted(sites)]
    srcs = [src for src in _publishers(subject, number) if found.component[src] in served]  # others are never served
    for link in found.bridges:
        labels = found.labels_without_link(link)
        if any(labels[src] not in labels[sorted(sites)] for src in srcs):
            yield f"link {network.links[link]}"
    for router in sorted({*found.cuts, *sites}):
        labels = found.labels_without_node(router)
        living = labels[sorted(sites - {router})]
        if any(labels[src] not in living for src in srcs if src != router):
            yield f"router {network.routers[router]}"


def _short(subject: BaseAndScenario, number: int, flows: Sequence[IngressEgressFlow]) -> Iterator[str]:
    """Links and routers whose loss, on top of what is down, lets living publishers find less credit than now.

    Only those are played over which its messages go now, or which every way to its subscribers may need.
    """
    network, now, found = subject.network, subject.now, subject.connectivity
    missing = _missing(subject, number, flows)
    links, routers = set(found.bridges), {*found.cuts, *_sites(subject, number)}
    # Where all is served, a router that only sends leaves others its credit, and no path of theirs is another one.
    is_sender_harmless = not missing and not subject.is_split
    for flow in flows:
        if flow.dst is not None:
            path = now.path(flow.src, flow.dst)
            links.update(now.links(path))
            routers.update(path[1:] if is_sender_harmless else path)
    # Of all that the kernel could tell only this is asked, hundreds of times in a large mesh.
    is_own = network.publisher_address == number
    kernel = Kernel(network.publishing(is_own), is_split=subject.is_split, has_percentiles=False)
    for link in sorted(links):
        kernel.fail(now.failed_links | {link}, now.failed_routers)
        if _is_harm(subject, number, kernel, now.failed_routers, missing):
            yield f"link {network.links[link]}"
        kernel.restore()
    for router in sorted(routers):
        failed = now.failed_routers | {router}
        kernel.fail(now.failed_links, failed)
        if _is_harm(subject, number, kernel, failed, missing):
            yield f"router {network.routers[router]}"
        kernel.restore()


def _sites(subject: BaseAndScenario, number: int) -> set[int]:
    """Living routers with subscribers of an address."""
    return {int(subject.network.subscriber_router[site]) for site in subject.now.sites(number)}


def _publishers(subject: BaseAndScenario, number: int) -> list[int]:
    """Routers with publishers of an address."""
    srcs: list[int] = subject.network.publisher_src[subject.network.publisher_address == number].tolist()
    return srcs


def _missing(subject: BaseAndScenario, number: int, flows: Sequence[IngressEgressFlow]) -> dict[int, int]:
    """Living publishers of an address that find no subscriber for some of what they send now, and for how much of it.

    Returns: millionths of messages/s by router; 0 for one that sends nothing and reaches no subscriber.
    """
    now = subject.now
    found = {flow.src: flow.rate for flow in flows if flow.dst is None}
    for src in _publishers(subject, number):
        if src not in found and all(now.distance(src, site) is None for site in _sites(subject, number)):
            found[src] = 0
    return {src: rate for src, rate in found.items() if src not in now.failed_routers}


def _is_harm(
    subject: BaseAndScenario, number: int, kernel: Kernel, failed: Collection[int], missing: Mapping[int, int]
) -> bool:
    """Whether other publishers of a bounded address find less than they do now.

    Args:
        subject: the scenario, and the mesh as it is.
        number: place of the address.
        kernel: in which one thing more has failed.
        failed: routers that have failed then.
        missing: as `_missing` has it.
    """
    impact = next((row for row in kernel.address_impact() if row[0] == number), None)
    if impact is None:
        return False
    _, _, _, starved, lost = impact
    others = [rate for src, rate in missing.items() if src not in failed]
    if starved > len(others):
        return True
    network = subject.network
    is_own = (network.publisher_address == number) & np.isin(network.publisher_src, sorted(failed))
    return lost - int(network.publisher_rate[is_own].sum()) > sum(others)


def _subscribers(subject: BaseAndScenario, text: str) -> Listing | None:
    rows = tuple(
        (site.router, site.count, site.credit, site.service_ms, "down" if site.router in subject.routers else "up")
        for site in subject.model.subscribers
        if site.address == text
    )
    columns = ("router", "subscribers", "credit", "service, ms", "state")
    return Listing(title="Subscribers", columns=columns, rows=rows) if rows else None


def _flows(subject: BaseAndScenario, number: int) -> Listing | None:
    """List what is offered to whom, and the credit that it takes."""
    keys = ("src", "dst", "msgs_per_s", "rtt_ms", "needed", "shared_needed", "configured", "limit_msgs_per_s")
    words = {True: "yes", False: "no", None: None}
    found = address_rows(subject.now, subject.model, ClientCreditHabits(), {number})
    if not found:
        return None
    found.sort(key=lambda row: (-row["msgs_per_s"], row["src"], row["dst"]))
    rows = [(*(row[key] for key in keys), words[row["is_enough"]]) for row in found[: 2 * subject.shown]]
    columns = (
        "from", "to", "msg/s offered", "round trip, ms", "credit needed", "needed (shared)", "configured",
        "msg/s possible", "enough",
    )  # fmt: skip
    title = "Messages offered on each path, and the credit that they need"
    return Listing(title=title, columns=columns, rows=tuple(rows))


def _harm(subject: BaseAndScenario, text: str) -> Listing | None:
    """The scenarios of the run, of this variant, that are worst for it.

    What it loses while nothing fails it loses in all scenarios without a row too, so rows with less are none of the
    worst.
    """
    rows = subject.variant_rows("address_impact", address=text)
    if not rows:
        return None
    is_calm = subject.outcomes.having("family", NOTHING)[[row["scenario"] for row in rows]].tolist()
    calm = max((row["lost_msgs_per_s"] for row, is_it in zip(rows, is_calm, strict=True) if is_it), default=0.0)
    if calm:
        count = int(subject.outcomes.having("variant", subject.variant).sum())
        title = f"Worst of all {count:,} scenarios of the run: messages are lost while nothing fails"
        rows = [row for row in rows if row["lost_msgs_per_s"] >= calm]
    else:
        rows = [row for row, is_it in zip(rows, is_calm, strict=True) if not is_it]
        if not rows:
            return None
        title = f"Worst of the {len(rows):,} scenarios of the run that affect it"
    rows.sort(key=lambda row: (-row["lost_msgs_per_s"], -row["starved_publishers"], row["scenario"]))
    failures = subject.failures([row["scenario"] for row in rows[: subject.shown]])
    shown = tuple(
        (row["scenario"], failures.get(row["scenario"]), row["subscriber_routers"], row["lost_msgs_per_s"])
        for row in rows[: subject.shown]
    )
    columns = ("scenario", "what is down", "routers with subscribers", "msg/s lost")
    return Listing(title=title, columns=columns, rows=shown)
