"""Long lists of management, page by page."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest

from router.management.snapshot import LazyRows
from router.views.paged_lists import KEPT_S, PagedLinks, PageOrder, at_once, sorted_in_pieces


class Sorter:
    """Things whose order is asked for; counts how often it is made."""

    def __init__(self, count: int) -> None:
        self.things = list(range(count))
        self.made = 0
        self.order = PageOrder(self._make)

    def _make(self) -> Generator[None, None, list[int]]:
        self.made += 1
        yield
        return sorted(self.things)

    def page(self, offset: int, count: int, now: float = 0.0) -> list[Any]:
        rows = LazyRows(self.order.get(now, goes_on=offset > 0), lambda thing: thing)
        return list(rows.page(offset, count))


def test_an_order_is_made_once_for_all_pages() -> None:
    sorter = Sorter(1000)
    assert [thing for offset in range(0, 1000, 10) for thing in sorter.page(offset, 10)] == list(range(1000))
    assert sorter.made == 1


def test_an_order_that_is_prepared_in_pieces_is_made_once() -> None:
    sorter = Sorter(20)
    for offset in (0, 10):
        for _ in sorter.order.prepare(0.0, goes_on=offset > 0):
            pass
        assert sorter.page(offset, 5) == list(range(offset, offset + 5))
    assert sorter.made == 1


def test_things_are_sorted_in_pieces(rng: random.Random) -> None:
    things = [rng.randrange(10_000) for _ in range(1000)]
    work = sorted_in_pieces(things, str, lambda thing: thing % 7 > 0)
    assert at_once(work) == sorted((thing for thing in things if thing % 7), key=str)


def test_whoever_begins_sees_what_is_new_and_whoever_goes_on_does_not() -> None:
    sorter = Sorter(20)
    sorter.page(0, 10)
    sorter.things.insert(0, -1)
    assert sorter.page(10, 5) == [10, 11, 12, 13, 14]
    assert sorter.page(0, 2) == [-1, 0]


def test_an_order_is_dropped_with_the_last_page_and_when_it_is_old() -> None:
    sorter = Sorter(20)
    sorter.page(0, 10)
    assert sorter.page(10, 10) == list(range(10, 20))
    assert sorter.order._things is None
    sorter.page(0, 10)
    sorter.things.clear()
    assert sorter.page(10, 5, KEPT_S + 1.0) == []


class Holder:
    """As much of a connection as the list needs."""

    def __init__(self, *links: str) -> None:
        self.links = {link: link for link in links}


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_links_come_connection_by_connection(size: int) -> None:
    connections: list[Any] = [Holder("a", "b", "c"), Holder(), Holder("d"), Holder("e", "f")]
    links = PagedLinks(connections)
    expected = [(connection, link) for connection in connections for link in connection.links]
    assert list(links) == expected
    assert len(links) == 6
    assert links[3] == expected[3]
    assert [found for offset in range(0, 8, size) for found in links[offset : offset + size]] == expected
