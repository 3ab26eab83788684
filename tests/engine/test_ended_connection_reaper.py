"""Links of ended connections are taken away, each connection's by itself, however many have ended."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from router.ended_connection_reaper import LINKS_AT_ONCE, EndedLinkReaper

Taken = list[tuple[Any, int]]


class Ended:
    """A connection that has ended: the reaper asks nothing else of it than who it is."""


@pytest.fixture
def taken() -> Taken:
    """Connections and how many of their links were taken away, in order."""
    return []


@pytest.fixture
def reaper(taken: Taken) -> EndedLinkReaper:
    return EndedLinkReaper(
        take=lambda connection, links: taken.append((connection, len(links))),
        lose=lambda connection, link, most: 0,
        look_at=lambda at: None,
        clock=lambda: 0.0,
    )


def end(reaper: EndedLinkReaper, connection: Any, links: int) -> None:
    reaper.begin(connection, [object()] * links, 1.0)  # type: ignore[list-item]


def test_asking_for_one_connection_costs_the_same_however_many_have_ended(
    reaper: EndedLinkReaper,
) -> None:
    connections: list[Any] = [Ended() for _ in range(1000)]
    for connection in connections:
        end(reaper, connection, 2 * LINKS_AT_ONCE)
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        has_last = reaper.has(connections[-1])
    finally:
        sys.setprofile(None)
    assert has_last
    assert steps <= 10


def test_a_connection_has_links_until_the_last_of_all_its_sessions_is_taken(
    reaper: EndedLinkReaper, taken: Taken
) -> None:
    one: Any = Ended()
    other: Any = Ended()
    for connection in (one, other, one):
        end(reaper, connection, 2 * LINKS_AT_ONCE)
    gone: list[Any] = []
    reaper.when_gone(one, lambda: gone.append(one))
    reaper.finish(one)
    assert gone == [one]
    assert (reaper.has(one), reaper.has(other)) == (False, True)
    while reaper.has(other):
        reaper.go_on(2.0)
    for connection in (one, other):
        assert sum(count for whose, count in taken if whose is connection) == LINKS_AT_ONCE * (
            4 if connection is one else 2
        )
