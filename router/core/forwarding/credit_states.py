"""States of what the credit machines keep, and the events that lead from one to another.

Each table names every event that may come in a state; another one is an error of ours. docs/explanation/credit.md shows
the tables as docs/generate.py draws them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final


class PoolState(enum.IntEnum):
    """State of the credit toward one egress router."""

    UNREACHABLE = 0
    """State of a pool to which no path leads, or that has no subscribers."""
    AWAITED = 1
    """State of a pool that has subscribers, of whose credit nothing was heard yet."""
    OPEN = 2
    """State of a pool that had credit since, though it may be used up."""
    CLOSED = 3
    """State of a pool whose subscribers have all withdrawn, as the neighbors upstream were told."""


class PoolEvent(enum.StrEnum):
    """Event that changes the state of a pool."""

    PATH_FOUND = "a path is found"
    PATH_LOST = "the path is lost, or the last subscriber leaves"
    CREDIT = "credit comes"
    WITHDRAWN = "all have withdrawn for the linger, or the next hop says so"
    RESUMED = "subscribers count again that have not granted yet"


class SubscriberState(enum.StrEnum):
    """State of a local subscriber of a multicast address."""

    NEW = "new"
    """State of a subscriber that has never granted, and does not count."""
    READY = "ready"
    """State of a subscriber that counts, and can take a message."""
    STALLED = "stalled"
    """State of a subscriber that counts and has no credit, and so holds up the others."""
    EXCLUDED = "excluded"
    """State of a subscriber that does not count any more, and misses messages."""


class SubscriberEvent(enum.StrEnum):
    """Event that changes the state of a subscriber."""

    GRANTS = "it grants"
    NO_CREDIT = "its credit is used up or taken back"
    TAKES_TOO_LITTLE = "it held up others for the grace, or took next to nothing in it"
    COMES_BACK = "it holds enough again, and its pause is over"


POOL_TRANSITIONS: Final[Mapping[tuple[PoolState, PoolEvent], PoolState]] = {
    (PoolState.UNREACHABLE, PoolEvent.PATH_FOUND): PoolState.AWAITED,
    (PoolState.AWAITED, PoolEvent.CREDIT): PoolState.OPEN,
    (PoolState.AWAITED, PoolEvent.WITHDRAWN): PoolState.CLOSED,
    (PoolState.AWAITED, PoolEvent.PATH_LOST): PoolState.UNREACHABLE,
    (PoolState.OPEN, PoolEvent.WITHDRAWN): PoolState.CLOSED,
    (PoolState.OPEN, PoolEvent.PATH_LOST): PoolState.UNREACHABLE,
    (PoolState.CLOSED, PoolEvent.CREDIT): PoolState.OPEN,
    (PoolState.CLOSED, PoolEvent.WITHDRAWN): PoolState.CLOSED,
    (PoolState.CLOSED, PoolEvent.RESUMED): PoolState.AWAITED,
    (PoolState.CLOSED, PoolEvent.PATH_LOST): PoolState.UNREACHABLE,
}
SUBSCRIBER_TRANSITIONS: Final[Mapping[tuple[SubscriberState, SubscriberEvent], SubscriberState]] = {
    (SubscriberState.NEW, SubscriberEvent.GRANTS): SubscriberState.READY,
    (SubscriberState.READY, SubscriberEvent.NO_CREDIT): SubscriberState.STALLED,
    (SubscriberState.READY, SubscriberEvent.TAKES_TOO_LITTLE): SubscriberState.EXCLUDED,
    (SubscriberState.STALLED, SubscriberEvent.GRANTS): SubscriberState.READY,
    (SubscriberState.STALLED, SubscriberEvent.TAKES_TOO_LITTLE): SubscriberState.EXCLUDED,
    (SubscriberState.EXCLUDED, SubscriberEvent.COMES_BACK): SubscriberState.READY,
}
