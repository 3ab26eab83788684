"""List of what is wrong now, in words, each with the command that shows more: a pure function of a snapshot.

    found = problems(snapshot)      # the most urgent first

`router.views.problem_snapshots` takes the snapshot of a running router.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from router.core.escapes import escaped
from router.management.snapshot import PROBLEM_KINDS, ConnectorRow, CreditRow, MeshLinkRow, NodeRow, PartyRow
from router.security.certificate_expiry import CertificateExpiry, UnusableFile

FLAPPING: Final = 2
"""Losses within the last five minutes from which on something flaps."""
CERTIFICATE_DAYS: Final = 30
"""Before its end a certificate is told of."""
NAMED: Final = 3
"""Subscribers, or addresses, that one sentence names."""
DAY_S: Final = 86400
TRIES: Final = 2
"""Closeness of a router to the cause of a problem: it tries in vain to connect;"""
BESIDE: Final = 1
"""it is at its own end of a link, or has the cause itself;"""
HEARSAY: Final = 0
"""others know more."""


@attrs.frozen(kw_only=True)
class Problem:
    """One thing that is wrong now."""

    kind: str
    """One of `PROBLEM_KINDS`."""
    subject: str
    """Router, link, connector, address, connection or file that it is about."""
    sentence: str
    """Explanation for whoever looks, without knowledge of the router's insides."""
    since: float | None
    """Time of its beginning, seconds since 1970; None where that is not known."""
    command: str
    """Command that shows more."""
    closeness: int = BESIDE
    """Nearness of the router to its cause: `TRIES` or `HEARSAY`, else `BESIDE`."""


@attrs.frozen(kw_only=True)
class AddressTrouble:
    """An address whose messages, or publishers, wait."""

    text: str
    """The address, masked where it is a reply address."""
    credit: CreditRow
    grantors: Sequence[PartyRow]
    """Some of the subscribers, circuits out and windows that credit could come from."""
    behind: int = 0
    """Busy publishers at other routers that wait for the subscribers of this one."""
    since: float = math.inf
    """Time since which it is held up, with pauses, seconds since 1970; infinity where nobody has looked before."""
    origin: str = ""
    """Sender of most of the messages that wait here: `client C` or `router R`; empty for several."""


@attrs.frozen(kw_only=True)
class TooFastAnonymousPublisher:
    """A publisher without an address that sends faster than its messages are taken."""

    container: str
    host: str
    under_way: int
    """Messages of it without outcome,"""
    most: int
    """nearly as many as there may be."""
    address: str
    """Address of most of them; empty where that is not known."""
    since: float
    """Seconds since 1970."""


@attrs.frozen(kw_only=True)
class HeldConnection:
    """A connection of which, or to which, not everything is passed on now."""

    identity: str
    container: str
    host: str
    charged_bytes: int
    is_read: bool
    """Whether its peer is read, and what waits is for it."""


@attrs.frozen(kw_only=True)
class FullListener:
    """A listener that takes no more connections."""

    name: str
    count: int
    most: int


@attrs.frozen(kw_only=True)
class DroppedMessages:
    """Messages of one address that were dropped of late."""

    text: str
    count: int
    """All since the router started."""
    last: float
    """Time of the last ones, seconds since 1970."""


@attrs.frozen(kw_only=True)
class WrongRole:
    """A peer at a listener that is not for it, within the last minute."""

    container: str
    host: str
    reason: str
    since: float


@attrs.frozen(kw_only=True)
class RouterRefusal:
    """A peer at a listener for routers that was not let in, within the last minute."""

    container: str
    """Empty where it had not said its name."""
    host: str
    reason: str
    since: float


@attrs.frozen(kw_only=True)
class ProblemInputs:
    """State of one router at one moment, as far as something in it can be a problem."""

    router: str
    """Id of the router."""
    now: float
    """Seconds since 1970."""
    nodes: Sequence[NodeRow] = ()
    links: Sequence[MeshLinkRow] = ()
    connectors: Sequence[ConnectorRow] = ()
    wrong_roles: Sequence[WrongRole] = ()
    refusals: Sequence[RouterRefusal] = ()
    floods: Sequence[TooFastAnonymousPublisher] = ()
    addresses: Sequence[AddressTrouble] = ()
    is_above_mark: bool = False
    """Whether the process holds more than its mark."""
    held: Sequence[HeldConnection] = ()
    full_listeners: Sequence[FullListener] = ()
    dropped: Sequence[DroppedMessages] = ()
    dropped_to_nobody: DroppedMessages | None = None
    """Of addresses without an entry, and of messages that were refused, all together."""
    certificates: Sequence[CertificateExpiry] = ()
    unusable: Sequence[UnusableFile] = ()


def problems(snapshot: ProblemInputs) -> list[Problem]:
    """All that is wrong, the most urgent kind first and in each kind the oldest.

    Args:
        snapshot: of one router.
    """
    found = [
        *_absent(snapshot),
        *_connectors(snapshot),
        *_floods(snapshot),
        *_addresses(snapshot),
        *_memory(snapshot),
        *_listeners(snapshot),
        *_dropped(snapshot),
        *_losses(snapshot),
        *_certificates(snapshot),
        *_unusable(snapshot),
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
    for node in snapshot.nodes:
        if not node.is_reachable:
            yield Problem(
                kind="router-absent",
                subject=node.id,
                sentence=f"router {node.id} is absent: {node.reason or 'no path leads there'}",
                since=node.since,
                command=f"amqp-mesh stat {'connectors' if node.id in dialled else 'routers'} --router {me}",
                closeness=TRIES if node.id in dialled else BESIDE if node.id in beside else HEARSAY,
            )
    for link in snapshot.links:
        # Those of an absent router say nothing more.
        if link.state == "absent" and not {link.one, link.other} & absent:
            far = _far_end(link, me)
            yield Problem(
                kind="link-absent",
                subject=link.name,
                sentence=f"the link {link.name} is absent: {link.reason}; messages take other ways",
                since=link.since,
                command=f"amqp-mesh stat connectors --router {me}" if far in dialled else _end_command(link, me),
                closeness=TRIES if far in dialled else BESIDE if far else HEARSAY,
            )


def _absent_routers(snapshot: ProblemInputs) -> set[str]:
    return {node.id for node in snapshot.nodes if not node.is_reachable}


def _end_command(link: MeshLinkRow, me: str) -> str:
    """The command that shows why a link was lost, at an end of it: *me* if that is one."""
    return f"amqp-mesh stat mesh --router {me if _far_end(link, me) else link.one}"


def _drained(snapshot: ProblemInputs) -> Iterator[Problem]:
    for node in snapshot.nodes:
        if node.is_reachable and node.is_draining:
            yield Problem(
                kind="router-drained",
                subject=node.id,
                sentence=f"router {node.id} is drained, or being drained: clients and paths go elsewhere until it"
                " serves again",
                since=node.last_topo_change,
                command=f"amqp-mesh resume {node.id}",
            )


def _connectors(snapshot: ProblemInputs) -> Iterator[Problem]:
    # Of an absent router or link it is said why this router can't connect.
    told = _absent_routers(snapshot) | {
        _far_end(link, snapshot.router) for link in snapshot.links if link.state == "absent"
    }
    for connector in snapshot.connectors:
        if connector.connection_status != "SUCCESS" and connector.connection_msg and connector.router not in told:
            toward = f" to router {connector.router}" if connector.router else ""
            yield Problem(
                kind="connector-failed",
                subject=connector.name,
                sentence=f"the connector {connector.host}:{connector.port}{toward} finds no neighbor:"
                f" {escaped(connector.connection_msg)}",
                since=connector.since,
                command=f"amqp-mesh stat connectors --router {snapshot.router}",
            )
    for wrong in snapshot.wrong_roles:
        yield Problem(
            kind="wrong-role",
            subject=escaped(wrong.container),
            sentence=f"{escaped(wrong.container)} connects from {wrong.host} to the wrong listener:"
            f" {escaped(wrong.reason)}",
            since=wrong.since,
            command=f"amqp-mesh stat listeners --router {snapshot.router}",
        )
    for refusal in snapshot.refusals:
        who = f"router {escaped(refusal.container)}" if refusal.container else "whoever connects as a router"
        yield Problem(
            kind="router-refused",
            subject=escaped(refusal.container) or refusal.host,
            sentence=f"{who} from {refusal.host} is refused: {escaped(refusal.reason)}",
            since=refusal.since,
            command=f"amqp-mesh stat routers --router {snapshot.router}",
        )


def _losses(snapshot: ProblemInputs) -> Iterator[Problem]:
    """Problems of what is lost again and again, or was lost once of late and is back."""
    me = snapshot.router
    lost_routers = {node.id: node.recent_flaps for node in snapshot.nodes}
    beside = {_far_end(link, me) for link in snapshot.links}
    for node in snapshot.nodes:
        command = f"amqp-mesh stat routers --router {me}"
        closeness = BESIDE if node.id in beside else HEARSAY
        yield from _loss(f"router {node.id}", node, node.is_reachable, command, closeness)
    for link in snapshot.links:
        # What a router's losses explain says nothing more.
        if link.recent_flaps > max(lost_routers.get(each, 0) for each in (link.one, link.other)):
            closeness = BESIDE if _far_end(link, me) else HEARSAY
            yield from _loss(f"link {link.name}", link, link.state == "up", _end_command(link, me), closeness)


def _loss(subject: str, row: NodeRow | MeshLinkRow, is_back: bool, command: str, closeness: int) -> Iterator[Problem]:
    if not row.recent_flaps or row.last_flap is None:
        return
    reason = escaped(row.last_flap_reason) if row.last_flap_reason else ""
    # Who hears of it from others may take one loss for two, as news overtakes news.
    if row.recent_flaps >= FLAPPING + (closeness == HEARSAY):
        yield Problem(
            kind="flapping",
            subject=subject,
            sentence=f"{subject} comes and goes: lost {row.recent_flaps} times in five minutes,"
            f" {row.flap_count} times in all" + (f"; the last time: {reason}" if reason else ""),
            since=row.last_flap,
            command=command,
            closeness=closeness,
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
        )


# Messages


def _floods(snapshot: ProblemInputs) -> Iterator[Problem]:
    for flood in snapshot.floods:
        name = escaped(flood.container) or flood.host
        most = f", most of them to {escaped(flood.address)}" if flood.address else ""
        yield Problem(
            kind="publisher-floods",
            subject=name,
            sentence=f"client {name} sends faster than its messages are taken: {flood.under_way} are under way"
            f" of {flood.most} that it may have{most}",
            since=flood.since,
            command=f"amqp-mesh top --router {snapshot.router} --by links",
        )


def _addresses(snapshot: ProblemInputs) -> Iterator[Problem]:
    for trouble in snapshot.addresses:
        credit, text = trouble.credit, escaped(trouble.text)
        command = f"amqp-mesh stat credit --router {snapshot.router} --address {text}"
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
                + f": {_who(trouble.grantors) if credit.has_subscriber else 'nobody subscribes'}",
                since=min(trouble.since, snapshot.now - (0 if trouble.behind else credit.oldest_wait_seconds)),
                command=command,
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
            sentence=f"{who}{waiting}: {_who(trouble.grantors) if credit.has_subscriber else 'nobody subscribes'}",
            since=min(trouble.since, snapshot.now - credit.blocked_seconds),
            command=command,
            closeness=HEARSAY if credit.has_subscriber and _is_elsewhere(trouble.grantors) else BESIDE,
        )


def _is_elsewhere(grantors: Sequence[PartyRow]) -> bool:
    """Whether only subscribers at other routers could grant credit."""
    return any(party.root is not None for party in grantors) and all(party.role != "subscriber" for party in grantors)


def _who(grantors: Sequence[PartyRow]) -> str:
    """Whoever could give credit and gives none."""
    empty = [party for party in grantors if not party.granted]
    subscribers = [party for party in empty if party.role == "subscriber"]
    roots = sorted({str(party.root) for party in empty if party.role != "subscriber" and party.root is not None})
    parts = [
        f"subscriber {escaped(party.container or '')} grants no credit"
        + (f" and has {_owed(party)}" if party.unsettled_count else "")
        for party in subscribers[:NAMED]
    ]
    if len(subscribers) > NAMED:
        parts.append(f"{len(subscribers) - NAMED} more subscribers grant none")
    if roots:
        parts.append(f"its subscribers at {_routers(roots)} grant none: ask there")
    return "; ".join(parts) or _unsettled(grantors) or "no subscriber grants credit"


def _unsettled(grantors: Sequence[PartyRow]) -> str:
    """Whoever has credit and owes outcomes: what they have got holds up the rest."""
    owing = [party for party in grantors if party.role == "subscriber" and party.granted and party.unsettled_count]
    return "; ".join(
        f"subscriber {escaped(party.container or '')} has credit for {party.granted} more, but {_owed(party)}"
        for party in owing[:NAMED]
    )


def _owed(party: PartyRow) -> str:
    """Messages that a subscriber has settled none of, and the age of its last outcome: it is slow, or it hangs."""
    last_s = party.last_outcome_seconds
    since = "" if last_s is None else f", the last outcome {last_s} s ago"
    return f"{_count(party.unsettled_count, 'message')} without outcome{since}"


def _routers(roots: Sequence[str]) -> str:
    more = f" and {len(roots) - NAMED} more" if len(roots) > NAMED else ""
    return f"router{'s' if len(roots) > 1 else ''} {', '.join(roots[:NAMED])}{more}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _memory(snapshot: ProblemInputs) -> Iterator[Problem]:
    command = f"amqp-mesh stat connections --router {snapshot.router} --wide"
    if snapshot.is_above_mark:
        yield Problem(
            kind="memory",
            subject=snapshot.router,
            sentence="the router holds more for its peers than forwarding.process_bytes: those with most must wait",
            since=None,
            command=command,
        )
    for held in snapshot.held:
        name = escaped(held.container) or held.host
        size = f"{held.charged_bytes / 2**20:.1f} MiB"
        why = (
            f"takes too little of what it subscribes to: {size} are held for it, and nothing more is sent"
            if held.is_read
            else f"sends more than is taken: {size} of it are held, and no message more is read"
        )
        yield Problem(kind="memory", subject=name, sentence=f"client {name} {why}", since=None, command=command)


def _listeners(snapshot: ProblemInputs) -> Iterator[Problem]:
    for listener in snapshot.full_listeners:
        yield Problem(
            kind="listener-full",
            subject=listener.name,
            sentence=f"listener {listener.name} has {listener.count} connections, as many as max_connections allows:"
            " new ones are closed",
            since=None,
            command=f"amqp-mesh stat connections --router {snapshot.router}",
        )


def _dropped(snapshot: ProblemInputs) -> Iterator[Problem]:
    for dropped in snapshot.dropped:
        yield Problem(
            kind="dropped",
            subject=escaped(dropped.text),
            sentence=f"pre-settled messages or copies of {escaped(dropped.text)} are dropped, {dropped.count} in all,"
            " the last within a minute",
            since=dropped.last,
            command=f"amqp-mesh stat addresses --router {snapshot.router}",
        )
    if snapshot.dropped_to_nobody is not None:
        yield Problem(
            kind="dropped",
            subject=snapshot.router,
            sentence="pre-settled messages that nobody takes, or that were refused (no address, not allowed, malformed)"
            f", are dropped, {snapshot.dropped_to_nobody.count} in all, the last within a minute",
            since=snapshot.dropped_to_nobody.last,
            command=f"amqp-mesh stat general --router {snapshot.router}",
        )


def _unusable(snapshot: ProblemInputs) -> Iterator[Problem]:
    for each in snapshot.unusable:
        yield Problem(
            kind="unusable-file",
            subject=escaped(each.subject),
            sentence=f"{escaped(each.reason)}; what was read before counts still, and after a restart nothing will",
            since=None,
            command=f"amqp-mesh manage get-log --router {snapshot.router}",
        )


def _certificates(snapshot: ProblemInputs) -> Iterator[Problem]:
    for certificate in snapshot.certificates:
        left_s = certificate.ends - snapshot.now
        if left_s < CERTIFICATE_DAYS * DAY_S:
            day = time.strftime("%F", time.gmtime(certificate.ends))
            ends = f"ended on {day}" if left_s <= 0 else f"ends on {day}, in {int(left_s // DAY_S)} days"
            yield Problem(
                kind="certificate",
                subject=certificate.file,
                sentence=f"the certificate of {escaped(certificate.subject) or 'no name'} in {certificate.file} {ends}",
                since=None,
                command=f"openssl x509 -in {certificate.file} -noout -enddate",
            )
