"""A problem, and the state of a router in which `router.views.problems` looks for some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs

from router.core.terminal_escaping import shell_word
from router.management.snapshot import ConnectorRow, CreditRow, MeshLinkRow, NodeRow, PartyRow
from router.security.certificate_expiry import CertificateExpiry, UnusableFile

BESIDE: Final = 1
"""Closeness of a router to the cause of a problem, below `CERTAIN`: it is at an end of a link, or has the cause."""
HEARSAY: Final = 0
"""Closeness of a router that has only heard of a problem: others know more."""


@attrs.frozen(kw_only=True)
class Problem:
    """One thing that is wrong now."""

    kind: str
    """Kind of the problem, one of `PROBLEM_KINDS`."""
    subject: str
    """Router, link, connector, address, connection or file that it is about."""
    sentence: str
    """Explanation for an operator, without knowledge of the router's insides."""
    since: float | None
    """Time of its beginning, seconds since 1970; None where that is not known."""
    command: str
    """Command that shows more."""
    closeness: int = BESIDE
    """Nearness of the router to its cause: `CERTAIN` or `HEARSAY`, else `BESIDE`."""
    last: float | None = None
    """Time of the last one of several losses, seconds since 1970."""
    about: Sequence[str] = ()
    """Words for the subject, and for what that is part of, which problems have in common."""
    explains: Sequence[str] = ()
    """Words as in `about` for what the problem can be the cause of."""


@attrs.frozen(kw_only=True)
class AddressTrouble:
    """An address whose messages, or publishers, wait."""

    text: str
    """The address, masked where it is a reply address."""
    credit: CreditRow
    grantors: Sequence[PartyRow]
    """Subscribers, own circuits and windows that credit could come from; where there are many, only some of them."""
    behind: int = 0
    """Number of busy publishers at other routers that wait for the subscribers of this one."""
    since: float = math.inf
    """Time since which it is held up, with pauses, seconds since 1970; infinity where nobody has looked before."""
    closed_since: float = -math.inf
    """Time since which nobody subscribes, seconds since 1970; minus infinity where nobody has seen the last one go."""
    lost_with: Sequence[str] = ()
    """Routers that its last subscribers were attached to, where it was lost with these."""
    origin: str = ""
    """Sender of most of the messages that wait here: `client C` or `router R`; empty for several."""


@attrs.frozen(kw_only=True)
class HangingSubscriber:
    """A subscriber that has messages without outcome, and has given none for long."""

    text: str
    """Address of the subscriber, masked where it is a reply address."""
    party: PartyRow
    since: float
    """Time since which it has had some and has given none, seconds since 1970."""


@attrs.frozen(kw_only=True)
class TooFastAnonymousPublisher:
    """A publisher without an address that sends faster than its messages are taken."""

    container: str
    user: str = ""
    host: str
    under_way: int
    """Number of its messages that are without outcome."""
    most: int
    """Maximum number of messages without outcome that it may have."""
    address: str
    """Address of most of the messages; empty where that is not known."""
    since: float
    """Seconds since 1970."""


@attrs.frozen(kw_only=True)
class HeldConnection:
    """A connection of which, or to which, not everything is passed on now."""

    identity: str
    container: str
    user: str = ""
    host: str
    charged_bytes: int
    is_read: bool
    """Whether its peer is read, and what waits is for it."""


def command_at(what: str, router: str, *options: str) -> str:
    """The command that shows more at *router*, to be pasted into a shell whatever names peers chose.

    Args:
        what: of the program, such as `stat mesh`.
        router: id of the one to be asked.
        options: words behind that.
    """
    return " ".join(["amqp-mesh", what, "--router", *map(shell_word, (router, *options))])


@attrs.frozen(kw_only=True)
class FullListener:
    """A listener that takes no more connections."""

    name: str
    count: int
    most: int
    """Connections; or files of the process, of which it is short."""
    is_short_of_files: bool = False


@attrs.frozen(kw_only=True)
class DroppedMessages:
    """Messages of one address that were dropped lately."""

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
    duplicate_ids: Sequence[str] = ()
    """Router ids that two routers have."""
    floods: Sequence[TooFastAnonymousPublisher] = ()
    hanging: Sequence[HangingSubscriber] = ()
    """Hanging subscribers, those that have hung longest first."""
    addresses: Sequence[AddressTrouble] = ()
    is_above_mark: bool = False
    """Whether the process holds more than its mark."""
    held: Sequence[HeldConnection] = ()
    full_listeners: Sequence[FullListener] = ()
    dropped: Sequence[DroppedMessages] = ()
    dropped_to_nobody: DroppedMessages | None = None
    """Dropped messages of addresses without an entry, and refused messages, all together."""
    certificates: Sequence[CertificateExpiry] = ()
    unusable: Sequence[UnusableFile] = ()
