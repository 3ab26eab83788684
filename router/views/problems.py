"""List of what is wrong now, in words, each with the command that shows more: a pure function of a snapshot.

    found = problems(snapshot)      # the most urgent first

`router.views.problem_snapshots` takes the snapshot of a running router.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final

import attrs

from router.core.terminal_escaping import escaped, shell_word
from router.drain_state import SHUTTING_DOWN
from router.management.client_display_name import client_name
from router.management.merged_problems import CERTAIN
from router.management.overdue_outcome_texts import overdue
from router.management.problem_kinds import PROBLEM_KINDS
from router.management.snapshot import ConnectorRow, MeshLinkRow, NodeRow, PartyRow
from router.views.file_problems import file_problems
from router.views.hanging_subscribers import hanging_subscribers
from router.views.problem_inputs import BESIDE, HEARSAY, AddressTrouble, Problem, ProblemInputs, command_at

FLAPPING: Final = 2
"""Number of losses within the last five minutes from which on something flaps."""
NAMED: Final = 3
"""Maximum number of subscribers, or addresses, that one sentence names."""
HUNG_S: Final = 10
"""Time without any outcome after which a subscriber is the cause of what waits for it, however much is sent,
seconds."""
APART_S: Final = 3.0
"""Time after which a router that was lost with a link would be known to be lost, seconds."""
MOST_UNNAMED: Final = 3
"""Maximum number of absent routers that are told of one by one though the mesh file doesn't name them; more of them are
one problem."""
MOST_WITHOUT_FILE: Final = 100
"""Maximum number of absent routers that are told of one by one where there is no mesh file; more are one problem."""
UNHEARD_S: Final = 5.0
"""Time after its own start, or after the mesh file named it, in which a router may still be about to hear of another
one, seconds."""


def problems(snapshot: ProblemInputs) -> list[Problem]:
    """All that is wrong, the most urgent kind first and in each kind the oldest.

    Args:
        snapshot: of one router.
    """
    found = [
        *_absent(snapshot),
        *_connectors(snapshot),
        *_duplicate_ids(snapshot),
        *_floods(snapshot),
        *hanging_subscribers(snapshot),
        *_addresses(snapshot),
        *_memory(snapshot),
        *_listeners(snapshot),
        *_dropped(snapshot),
        *_losses(snapshot),
        *file_problems(snapshot),
        *_drained(snapshot),
    ]
    return sorted(
        found,
        key=lambda it: (PROBLEM_KINDS.index(it.kind), it.since if it.since is not None else snapshot.now, it.subject),
    )


# The mesh


def _dialled_in_vain(snapshot: ProblemInputs) -> dict[str, ConnectorRow]:
    """Connectors that reach nobody, by the router that they are for."""
    return {
        each.router: each
        for each in snapshot.connectors
        if each.router and each.connection_status != "SUCCESS" and each.connection_msg
    }


def _far_end(link: MeshLinkRow, me: str) -> str | None:
    """The router at the other end of a link of router *me*; None of a link between others."""
    return link.other if link.one == me else link.one if link.other == me else None


def _absent(snapshot: ProblemInputs) -> Iterator[Problem]:
    me, dialled = snapshot.router, _dialled_in_vain(snapshot)
    beside = {_far_end(link, me) for link in snapshot.links}
    absent = _absent_routers(snapshot)
    reached_by = _last_absent_ones(snapshot, absent)
    lost = _lost_links(snapshot)
    missed = [
        node
        for node in snapshot.nodes
        if not node.is_reachable and (node.id in dialled or not _may_yet_come(node, snapshot.now))
    ]
    # Why a connector fails is told with the router that it is for, so that one stays by itself.
    unnamed = _many_unnamed(snapshot, [node for node in missed if node.id not in dialled])
    if unnamed:
        yield _unnamed_ones(me, unnamed)
    told = {node.id for node in unnamed}
    for node in missed:
        if node.id not in told:
            yield Problem(
                kind="router-absent",
                subject=node.id,
                sentence=f"router {node.id} is absent: {node.reason or 'no path leads there'}"
                f"{_dead_or_cut_off(node, lost.get(node.id, ()))}",
                since=node.since,
                command=command_at(f"stat {'connectors' if node.id in dialled else 'routers'}", me),
                closeness=CERTAIN if node.id in dialled else BESIDE if node.id in beside else HEARSAY,
                about=[f"router {each}" for each in dict.fromkeys((node.id, reached_by.get(node.id, node.id)))],
                explains=[f"router {node.id}"],
            )
    for link in snapshot.links:
        # Those of an absent router say nothing more.
        far = _far_end(link, me)
        is_missed = link.state == "absent" and (far in dialled or not _may_yet_come(link, snapshot.now))
        if is_missed and not {link.one, link.other} & absent:
            is_apart = link.last_flap is not None and snapshot.now - link.since >= APART_S
            yield Problem(
                kind="link-absent",
                subject=link.name,
                sentence=f"the link {link.name} is absent: {link.reason}; messages take other ways"
                + (f", by which {_living(link, me)}: the link is cut, no router is dead" if is_apart else ""),
                since=link.since,
                command=command_at("stat connectors", me) if far in dialled else _end_command(link, me),
                closeness=CERTAIN if far in dialled else BESIDE if far else HEARSAY,
                about=_of_link(link),
                explains=[f"link {link.name}"],
            )


def _many_unnamed(snapshot: ProblemInputs, missed: Sequence[NodeRow]) -> Sequence[NodeRow]:
    """Find among *missed* those that no mesh file names; none where they are few."""
    unnamed = [node for node in missed if not node.is_configured]
    has_file = any(node.is_configured for node in snapshot.nodes)
    return unnamed if len(unnamed) > (MOST_UNNAMED if has_file else MOST_WITHOUT_FILE) else ()


def _unnamed_ones(me: str, unnamed: Sequence[NodeRow]) -> Problem:
    last = sorted(unnamed, key=lambda node: (-node.since, node.id))
    return Problem(
        kind="router-absent",
        subject="routers that no mesh file names",
        sentence=f"{len(unnamed)} routers that no mesh file names are absent, last of all"
        f" {', '.join(node.id for node in last[:NAMED])}",
        since=last[0].since,
        command=command_at("stat routers", me),
        closeness=HEARSAY,
        about=[],
        explains=[],
    )


def _of_link(link: MeshLinkRow) -> list[str]:
    return [f"link {link.name}", f"router {link.one}", f"router {link.other}"]


def _living(link: MeshLinkRow, me: str) -> str:
    far = _far_end(link, me)
    return f"{far} is reached" if far is not None else f"{link.one} and {link.other} are reached"


def _lost_links(snapshot: ProblemInputs) -> Mapping[str, Sequence[MeshLinkRow]]:
    """Links that were lost, by the routers at their ends."""
    found: dict[str, list[MeshLinkRow]] = {}
    for link in snapshot.links:
        if link.last_flap is not None:
            found.setdefault(link.one, []).append(link)
            found.setdefault(link.other, []).append(link)
    return found


def _dead_or_cut_off(node: NodeRow, links: Sequence[MeshLinkRow]) -> str:
    """Tell whether a router that is lost can be anything but dead, by the *links* that it had."""
    if node.last_flap is None or SHUTTING_DOWN in (node.reason or ""):
        return ""  # it never was there, or has said itself that it goes
    if not links:
        return ""
    if len(links) == 1:
        return f"; {links[0].name} was its only link, so it is dead, or that is cut"
    return f"; all of its {len(links)} links are gone, so it is dead, or cut off altogether"


def _absent_routers(snapshot: ProblemInputs) -> set[str]:
    return {node.id for node in snapshot.nodes if not node.is_reachable}


def _may_yet_come(known: NodeRow | MeshLinkRow, now: float) -> bool:
    """Tell whether what is absent was never there, and is not missed yet at *now*, seconds."""
    return known.last_flap is None and now - known.since < UNHEARD_S


def _last_absent_ones(snapshot: ProblemInputs, absent: Set[str]) -> dict[str, str]:
    """Find what stands between routers that were lost and the mesh.

    Returns: of each the absent router that led there, itself where it has a link to a router that is reached; nothing
        of one without links.
    """
    neighbors: dict[str, set[str]] = {}
    for link in snapshot.links:
        if link.last_flap is not None or link.state == "unknown":
            neighbors.setdefault(link.one, set()).add(link.other)
            neighbors.setdefault(link.other, set()).add(link.one)
    nearest = {each: each for each in sorted(absent) if not neighbors.get(each, set()) <= absent}
    queue = deque(nearest)
    while queue:
        router = queue.popleft()
        for other in sorted(neighbors[router] & absent):
            if other not in nearest:
                nearest[other] = nearest[router]
                queue.append(other)
    return nearest


def _end_command(link: MeshLinkRow, me: str) -> str:
    """The command that shows why a link was lost, at an end of it: *me* if that is one."""
    return command_at("stat mesh", me if _far_end(link, me) else link.one)


def _drained(snapshot: ProblemInputs) -> Iterator[Problem]:
    for node in snapshot.nodes:
        if node.is_reachable and node.is_draining:
            yield Problem(
                kind="router-drained",
                subject=node.id,
                sentence=f"router {node.id} is drained, or being drained: clients and paths go elsewhere until it"
                " serves again",
                since=node.last_topo_change,
                command=f"amqp-mesh resume {shell_word(node.id)}",
                about=[f"router {node.id}"],
            )


def _connectors(snapshot: ProblemInputs) -> Iterator[Problem]:
    # Of an absent router or link it is said why this router can't connect.
    told = _absent_routers(snapshot) | {
        _far_end(link, snapshot.router) for link in snapshot.links if link.state == "absent"
    }
    for connector in snapshot.connectors:
        if connector.connection_status != "SUCCESS" and connector.connection_msg and connector.router not in told:
            toward = f" to router {connector.router}" if connector.router else ""
            link = _link_to(snapshot.router, connector.router)
            yield Problem(
                kind="connector-failed",
                subject=connector.name,
                sentence=f"the connector {connector.host}:{connector.port}{toward} finds no neighbor:"
                f" {escaped(connector.connection_msg)}",
                since=connector.since,
                command=command_at("stat connectors", snapshot.router),
                about=link,
                explains=link[:1],
            )
    for wrong in snapshot.wrong_roles:
        yield Problem(
            kind="wrong-role",
            subject=escaped(wrong.container),
            sentence=f"{escaped(wrong.container)} connects from {wrong.host} to the wrong listener:"
            f" {escaped(wrong.reason)}",
            since=wrong.since,
            command=command_at("stat listeners", snapshot.router),
            about=_link_to(snapshot.router, escaped(wrong.container)),
        )
    absent = [node for node in snapshot.nodes if not node.is_reachable and node.reason]
    for refusal in snapshot.refusals:
        who = f"router {escaped(refusal.container)}" if refusal.container else "whoever connects as a router"
        yield Problem(
            kind="router-refused",
            subject=escaped(refusal.container) or refusal.host,
            sentence=f"{who} from {refusal.host} is refused: {escaped(refusal.reason)}",
            since=refusal.since,
            command=command_at("stat routers", snapshot.router),
            about=_link_to(snapshot.router, escaped(refusal.container) or _explained(absent, refusal.reason)),
        )


def _explained(absent: Sequence[NodeRow], reason: str) -> str | None:
    """Find the router whose absence is told with the refusal of one that had not said its name; None for nobody."""
    return next((node.id for node in absent if (node.reason or "").endswith(reason)), None)


def _duplicate_ids(snapshot: ProblemInputs) -> Iterator[Problem]:
    for router in snapshot.duplicate_ids:
        yield Problem(
            kind="duplicate-router-id",
            subject=router,
            sentence=f"two routers call themselves {router}: each overrules what the other says of its links and"
            " addresses; stop one of them, or give it another id",
            since=None,
            command=command_at("stat mesh", snapshot.router),
            about=[f"router {router}"],
            explains=[f"router {router}"],
        )


def _link_to(me: str, other: str | None) -> list[str]:
    """The link of a router to another one, and that; nothing where it is not known."""
    return [f"link {min(me, other)} - {max(me, other)}", f"router {other}"] if other else []


def _losses(snapshot: ProblemInputs) -> Iterator[Problem]:
    """Problems of what is lost again and again, or was lost once of late and is back."""
    me = snapshot.router
    lost_routers = {node.id: node.recent_flaps for node in snapshot.nodes}
    beside = {_far_end(link, me) for link in snapshot.links}
    for node in snapshot.nodes:
        command = command_at("stat routers", me)
        closeness = BESIDE if node.id in beside else HEARSAY
        yield from _loss([f"router {node.id}"], node, node.is_reachable, command, closeness)
    for link in snapshot.links:
        # What a router's losses explain says nothing more.
        if link.recent_flaps > max(lost_routers.get(each, 0) for each in (link.one, link.other)):
            closeness = BESIDE if _far_end(link, me) else HEARSAY
            is_alone = not any(lost_routers.get(each) for each in (link.one, link.other))
            for loss in _loss(_of_link(link), link, link.state == "up", _end_command(link, me), closeness):
                alone = ", and its routers were not lost with it" if is_alone and loss.kind == "flapping" else ""
                yield attrs.evolve(loss, sentence=loss.sentence + alone)


def _loss(
    about: Sequence[str], row: NodeRow | MeshLinkRow, is_back: bool, command: str, closeness: int
) -> Iterator[Problem]:
    """Problem of a router or link, the first of *about*, the others of which it is part of."""
    if not row.recent_flaps or row.last_flap is None:
        return
    subject = about[0]
    reason = escaped(row.last_flap_reason) if row.last_flap_reason else ""
    # A router that hears of it from others may take one loss for two, as news overtakes news.
    if row.recent_flaps >= FLAPPING + (closeness == HEARSAY):
        yield Problem(
            kind="flapping",
            subject=subject,
            sentence=f"{subject} comes and goes: lost {row.recent_flaps} times in five minutes,"
            f" {row.flap_count} times in all" + (f"; the last time: {reason}" if reason else ""),
            since=row.first_recent_flap or row.last_flap,
            last=row.last_flap,
            command=command,
            closeness=closeness,
            about=about,
            explains=[subject],
        )
    elif is_back and closeness != HEARSAY:
        yield Problem(
            kind="lost-for-a-while",
            subject=subject,
            sentence=f"{subject} was lost for {max(0, row.since - row.last_flap)} s, and is back"
            + (f"; the reason: {reason}" if reason else ""),
            since=row.last_flap,
            command=command,
            closeness=closeness,
            about=about,
            explains=[subject],
        )


# Messages


def _floods(snapshot: ProblemInputs) -> Iterator[Problem]:
    for flood in snapshot.floods:
        most = f", most of them to {escaped(flood.address)}" if flood.address else ""
        about = [f"address {escaped(flood.address)}"] if flood.address else []
        yield Problem(
            kind="publisher-floods",
            subject=escaped(flood.container) or flood.host,
            sentence=f"client {_client(flood.container, flood.user, flood.host)} sends faster than its messages are"
            f" taken: {flood.under_way} are under way of {flood.most} that it may have{most}",
            since=flood.since,
            command=command_at("top", snapshot.router, "--by", "links"),
            about=about,
            explains=[*about, _client_at(snapshot, flood.container)],
        )


def _client(container: str | None, user: str | None, host: str | None) -> str:
    """The name of a client, of which it chose a part itself."""
    return escaped(client_name(container, user, host))


def _client_at(snapshot: ProblemInputs, container: str | None) -> str:
    return f"client {escaped(container or '')} at {snapshot.router}"


def _addresses(snapshot: ProblemInputs) -> Iterator[Problem]:
    absent = _absent_routers(snapshot)
    for trouble in snapshot.addresses:
        credit, text = trouble.credit, escaped(trouble.text)
        lost = [each for each in trouble.lost_with if each in absent] if not credit.has_subscriber else []
        why = _who(trouble.grantors) if credit.has_subscriber else _nobody(lost)
        about = [f"address {text}", *(f"router {each}" for each in lost)]
        command = command_at("stat credit", snapshot.router, "--address", trouble.text)
        if not credit.blocked_count:
            # Messages that no publisher's credit let in wait as well: its sender names no address, or is gone.
            verb = "waits" if credit.waiting_count == 1 else "wait"
            late = (
                f"{_count(credit.waiting_count, 'message')} of {text} {verb} at router {snapshot.router},"
                f" the oldest for {credit.oldest_wait_seconds} s"
                + (f", most of them from {escaped(trouble.origin)}" if trouble.origin else "")
            )
            yield Problem(
                kind="subscriber-slow" if credit.has_subscriber else "no-subscriber",
                subject=text,
                sentence=(
                    f"{_count(trouble.behind, 'publisher')} of {text} at other routers can't send"
                    if trouble.behind
                    else late
                )
                + f": {why}",
                since=_held_up_since(trouble, snapshot.now - (0 if trouble.behind else credit.oldest_wait_seconds)),
                command=command,
                closeness=CERTAIN if lost or _has_hung(trouble) else BESIDE,
                about=about,
                explains=_slow_ones(snapshot, trouble),
            )
            continue
        who = f"{credit.blocked_count} of {_count(credit.publisher_count, 'publisher')} of {text} can't send"
        verb = "waits" if credit.waiting_count == 1 else "wait"
        waiting = (
            f", {_count(credit.waiting_count, 'message')} {verb} at router {snapshot.router}"
            if credit.waiting_count
            else ""
        )
        yield Problem(
            kind="publishers-blocked" if credit.has_subscriber else "no-subscriber",
            subject=text,
            sentence=f"{who}{waiting}: {why}",
            since=_held_up_since(trouble, snapshot.now - credit.blocked_seconds),
            command=command,
            closeness=CERTAIN if lost else _blocked_closeness(trouble),
            about=[*about, *(f"address {text} at {root}" for root in _egresses(trouble.grantors))],
            explains=_slow_ones(snapshot, trouble),
        )


def _held_up_since(trouble: AddressTrouble, waited_since: float) -> float:
    """Time since which publishers or messages wait, but not for a subscriber as long as there was one."""
    since = min(trouble.since, waited_since)
    return since if trouble.credit.has_subscriber else max(since, trouble.closed_since)


def _nobody(lost: Sequence[str]) -> str:
    """Tell that an address has no subscriber, and with which routers the last ones were lost."""
    if not lost:
        return "nobody subscribes"
    return f"its subscribers were at {_routers(lost)}, which {'is' if len(lost) == 1 else 'are'} absent"


def _blocked_closeness(trouble: AddressTrouble) -> int:
    if trouble.credit.has_subscriber and _is_elsewhere(trouble.grantors):
        return HEARSAY
    return CERTAIN if _has_hung(trouble) else BESIDE


def _slow_ones(snapshot: ProblemInputs, trouble: AddressTrouble) -> list[str]:
    """Trouble at an address can explain: that of its publishers elsewhere, and of its own subscribers."""
    slow = [party for party in trouble.grantors if party.role == "subscriber" and party.unsettled_count]
    return [f"address {escaped(trouble.text)}", *(_client_at(snapshot, party.container) for party in slow[:NAMED])]


def _has_hung(trouble: AddressTrouble) -> bool:
    """Whether no subscriber here has given an outcome for long: then no client's sending is the cause."""
    slow = [party for party in trouble.grantors if party.role == "subscriber" and party.unsettled_count]
    waited_s = max(trouble.credit.oldest_wait_seconds, trouble.credit.blocked_seconds)
    known_s = [each.last_outcome_seconds if each.unsettled_seconds is None else each.unsettled_seconds for each in slow]
    ages_s = [waited_s if each_s is None else each_s for each_s in known_s]
    return bool(ages_s) and min(ages_s) >= HUNG_S


def _is_elsewhere(grantors: Sequence[PartyRow]) -> bool:
    """Whether only subscribers at other routers could grant credit."""
    return any(party.root is not None for party in grantors) and all(party.role != "subscriber" for party in grantors)


def _egresses(grantors: Sequence[PartyRow]) -> list[str]:
    """Other routers with subscribers, sorted."""
    return sorted({str(party.root) for party in grantors if party.role != "subscriber" and party.root is not None})


def _who(grantors: Sequence[PartyRow]) -> str:
    """Parties that could give credit and give none."""
    empty = [party for party in grantors if not party.granted]
    subscribers = [party for party in empty if party.role == "subscriber"]
    roots = _egresses(empty)
    parts = [
        f"subscriber {_client(party.container, party.user, party.host)} grants no credit"
        + (f" and has {_owed(party)}" if party.unsettled_count else "")
        for party in subscribers[:NAMED]
    ]
    if len(subscribers) > NAMED:
        parts.append(f"{len(subscribers) - NAMED} more subscribers grant none")
    if roots:
        parts.append(f"its subscribers at {_routers(roots)} grant none: ask there")
    return "; ".join(parts) or _with_credit(grantors) or "no subscriber grants credit"


def _with_credit(grantors: Sequence[PartyRow]) -> str:
    """Parties that have credit, those first that owe outcomes: what they have got holds up the rest."""
    able = [party for party in grantors if party.role == "subscriber" and party.granted]
    return "; ".join(
        f"subscriber {_client(party.container, party.user, party.host)} has {_taking(party)}"
        for party in sorted(able, key=lambda party: not party.unsettled_count)[:NAMED]
    )


def _taking(party: PartyRow) -> str:
    """Credit of a subscriber, or outcomes that it owes: of one that goes on settling, its pace alone is the cause."""
    if not party.unsettled_count:
        return f"credit for {party.granted} more"
    if party.last_outcome_seconds is not None and party.last_outcome_seconds < HUNG_S:
        return f"{_owed(party)}: more come than it takes"
    return f"credit for {party.granted} more, but {_owed(party)}"


def _owed(party: PartyRow) -> str:
    return overdue(party.unsettled_count, party.unsettled_seconds, party.last_outcome_seconds)


def _routers(roots: Sequence[str]) -> str:
    more = f" and {len(roots) - NAMED} more" if len(roots) > NAMED else ""
    return f"router{'s' if len(roots) > 1 else ''} {', '.join(roots[:NAMED])}{more}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _memory(snapshot: ProblemInputs) -> Iterator[Problem]:
    command = command_at("stat connections", snapshot.router, "--wide")
    if snapshot.is_above_mark:
        yield Problem(
            kind="memory",
            subject=snapshot.router,
            sentence="the router holds more for its peers than forwarding.process_bytes: those with most must wait",
            since=None,
            command=command,
        )
    for held in snapshot.held:
        name = _client(held.container, held.user, held.host)
        size = f"{held.charged_bytes / 2**20:.1f} MiB"
        why = (
            f"takes too little of what it subscribes to: {size} are held for it, and nothing more is sent"
            if held.is_read
            else f"sends more than is taken: {size} of it are held, and no message more is read"
        )
        yield Problem(
            kind="memory",
            subject=escaped(held.container) or held.host,
            sentence=f"client {name} {why}",
            since=None,
            command=command,
            about=[_client_at(snapshot, held.container)],
        )


def _listeners(snapshot: ProblemInputs) -> Iterator[Problem]:
    for listener in snapshot.full_listeners:
        why = (
            f"and the process may have no more files open than {listener.most} (LimitNOFILE of its unit, ulimit -n)"
            if listener.is_short_of_files
            else "as many as max_connections allows"
        )
        yield Problem(
            kind="listener-full",
            subject=listener.name,
            sentence=f"listener {listener.name} has {listener.count} connections, {why}: new ones are closed",
            since=None,
            command=command_at("stat connections", snapshot.router),
        )


def _dropped(snapshot: ProblemInputs) -> Iterator[Problem]:
    for dropped in snapshot.dropped:
        yield Problem(
            kind="dropped",
            subject=escaped(dropped.text),
            sentence=f"pre-settled messages or copies of {escaped(dropped.text)} are dropped, {dropped.count} in all,"
            " the last within a minute",
            since=dropped.last,
            command=command_at("stat addresses", snapshot.router),
            about=[f"address {escaped(dropped.text)}"],
        )
    if snapshot.dropped_to_nobody is not None:
        yield Problem(
            kind="dropped",
            subject=snapshot.router,
            sentence="pre-settled messages that nobody takes, or that were refused (no address, not allowed, malformed)"
            f", are dropped, {snapshot.dropped_to_nobody.count} in all, the last within a minute",
            since=snapshot.dropped_to_nobody.last,
            command=command_at("stat general", snapshot.router),
        )
