"""An address in words: who subscribes and publishes, who sends to whom with what credit, what takes it away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mesh_config.models import Treatment
from router.simulation.whatif.credit_plan import Terms, credit_rows
from router.simulation.whatif.explain.explanation import Explanation, Listing, Marks
from router.simulation.whatif.explain.scenario import SHOWN
from router.simulation.whatif.explain.subject import Subject
from router.simulation.whatif.network import MICRO
from router.simulation.whatif.words import counted, listed, rate

RULES = {
    Treatment.CLOSEST: "each message goes to the nearest router with subscribers",
    Treatment.BALANCED: "each message goes to the nearest router whose subscribers have credit left",
    Treatment.MULTICAST: "each message goes to every subscriber",
}


def explain_address(subject: Subject, text: str) -> Explanation:
    """An address. Raises: TableError when the model has none of that name."""
    number = subject.address(text)
    flows = [flow for flow in subject.now.flows() if flow.address == number]
    used = {
        subject.network.links[link]
        for flow in flows
        if flow.dst is not None
        for link in subject.now.links(subject.now.path(flow.src, flow.dst))
    }
    listings = (_subscribers(subject, text), _flows(subject, text, number), _harm(subject, text))
    sites = {site.router for site in subject.model.subscribers if site.address == text}
    return Explanation(
        title=f"Address {text}",
        sentences=(*_what(subject, text), *_fate(subject, text, number), *_single(subject, text)),
        listings=tuple(listing for listing in listings if listing is not None),
        marks=Marks(
            marked_routers=frozenset(sites),
            failed_links=frozenset(subject.links),
            failed_routers=frozenset(subject.routers),
            path=tuple(sorted(used)),
        ),
    )


def _what(subject: Subject, text: str) -> Iterator[str]:
    address = next(each for each in subject.model.addresses if each.text == text)
    yield f"It is {address.treatment}: {RULES[address.treatment]}."
    if subject.is_failing:
        yield f"Down: {subject.failure}."


def _fate(subject: Subject, text: str, number: int) -> Iterator[str]:
    """What becomes of its messages."""
    network = subject.network
    here = network.publisher_address == number
    sent = int(network.publisher_rate[here].sum())
    if not sent:
        yield "Nobody publishes to it."
        return
    yield f"Publishers at {counted(int(here.sum()), 'router')} send {rate(sent / MICRO)}."
    lost = [flow for flow in subject.now.flows() if flow.address == number and flow.dst is None]
    if lost:
        where = listed(subject.names({flow.src for flow in lost}))
        yield f"{rate(sum(flow.rate for flow in lost) / MICRO)} of it, from {where}, reach nobody."
    else:
        yield "All of it reaches a subscriber."


def _single(subject: Subject, text: str) -> Iterator[str]:
    """Which single failures leave it without subscribers."""
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
    only = list(_alone(subject, text))
    if only:
        yield f"Each of these by itself keeps some of its publishers from all subscribers: {listed(only, most=8)}."


def _alone(subject: Subject, text: str) -> Iterator[str]:
    """Links and routers whose loss, on top of what is down, keeps living publishers from every subscriber."""
    network, found = subject.network, subject.connectivity
    down = {subject.router(router) for router in subject.routers}
    sites = {subject.router(site.router) for site in subject.model.subscribers if site.address == text} - down
    srcs = network.publisher_src[network.publisher_address == subject.address(text)].tolist()
    served = found.component[sorted(sites)]
    srcs = [src for src in srcs if found.component[src] in served]  # the others are never served
    for link in found.bridges:
        labels = found.labels_without_link(link)
        if any(labels[src] not in labels[sorted(sites)] for src in srcs):
            yield f"link {network.links[link]}"
    for router in sorted({*found.cuts, *sites}):
        labels = found.labels_without_node(router)
        living = labels[sorted(sites - {router})]
        if any(labels[src] not in living for src in srcs if src != router):
            yield f"router {network.routers[router]}"


def _subscribers(subject: Subject, text: str) -> Listing | None:
    rows = tuple(
        (site.router, site.count, site.credit, site.service_ms, "down" if site.router in subject.routers else "up")
        for site in subject.model.subscribers
        if site.address == text
    )
    columns = ("router", "subscribers", "credit", "service, ms", "is")
    return Listing(title="Subscribers", columns=columns, rows=rows) if rows else None


def _flows(subject: Subject, text: str, number: int) -> Listing | None:
    """Who sends to whom, and the credit that it takes."""
    keys = ("src", "dst", "msgs_per_s", "rtt_ms", "needed", "shared_needed", "configured", "limit_msgs_per_s")
    words = {True: "yes", False: "no", None: None}
    found: list[dict[str, Any]] = [
        row for row in credit_rows(subject.now, subject.model, Terms()) if row["address"] == text
    ]
    if not found:
        return None
    found.sort(key=lambda row: (-row["msgs_per_s"], row["src"], row["dst"]))
    rows = [(*(row[key] for key in keys), words[row["is_enough"]]) for row in found[: 2 * SHOWN]]
    columns = (
        "from", "to", "msg/s", "round trip, ms", "needs credit", "all need", "configured", "msg/s possible", "enough",
    )  # fmt: skip
    title = "Who sends to whom, and the credit that it takes"
    return Listing(title=title, columns=columns, rows=tuple(rows))


def _harm(subject: Subject, text: str) -> Listing | None:
    """The scenarios of the run, of this variant, that are worst for it."""
    rows = subject.variant_rows("address_impact", address=text)
    if not rows:
        return None
    rows.sort(key=lambda row: (-row["lost_msgs_per_s"], -row["starved_publishers"], row["scenario"]))
    failures = subject.failures([row["scenario"] for row in rows[:SHOWN]])
    shown = tuple(
        (row["scenario"], failures.get(row["scenario"]), row["subscriber_routers"], row["lost_msgs_per_s"])
        for row in rows[:SHOWN]
    )
    columns = ("scenario", "what is down", "routers with subscribers", "msg/s lost")
    return Listing(title=f"Scenarios of the run that touch it: {len(rows):,}, the worst", columns=columns, rows=shown)
