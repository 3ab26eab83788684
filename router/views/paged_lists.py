"""Long lists that are shown page by page, without a look at all of them for each page."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar, cast, overload

from router.engine.connection import Connection
from router.views.link_address_rows import AnyLink

AT_ONCE: Final = 100
"""Number of things that are looked at between two events."""
KEPT_S: Final = 10.0
"""Time for which an order is used after a page was asked for, seconds."""

T = TypeVar("T")


def at_once(work: Generator[None, None, T]) -> T:
    """Do all of *work* without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return cast("T", done.value)


def sorted_in_pieces(
    things: Iterable[T], key: Callable[[T], str], is_shown: Callable[[T], bool]
) -> Generator[None, None, list[T]]:
    """Sort the things that are shown; pauses after each few.

    Args:
        things: listed before the first pause.
        key: by which they are sorted.
        is_shown: whether one is among them.
    """
    listed = list(things)
    parts: list[list[tuple[str, int, T]]] = []
    for begin in range(0, len(listed), AT_ONCE):
        chosen = enumerate(listed[begin : begin + AT_ONCE], begin)
        parts.append(sorted((key(thing), number, thing) for number, thing in chosen if is_shown(thing)))
        yield
    found: list[T] = []
    for _, _, thing in heapq.merge(*parts):
        found.append(thing)
        if len(found) % AT_ONCE == 0:
            yield
    return found


class PageOrder(Generic[T]):
    """The order in which things are shown: made for the first page, used for the others, dropped with the last.

    What comes meanwhile is not shown, and what goes is shown as it is then.

    Args:
        make: lists all things in order, in pieces.
    """

    def __init__(self, make: Callable[[], Generator[None, None, list[T]]]) -> None:
        self._make = make
        self._things: list[T] | None = None
        self._used_at = 0.0
        self._is_prepared = False

    def prepare(self, now: float, *, goes_on: bool) -> Generator[None, None, None]:
        """Make in pieces what the next call of `get`, with the same arguments, would make at once.

        Args:
            now: seconds, monotonic.
            goes_on: the first ones were shown before.
        """
        if self._is_to_be_made(now, goes_on):
            self._things = yield from self._make()
        self._is_prepared = True

    def _is_to_be_made(self, now: float, goes_on: bool) -> bool:
        return self._things is None or not goes_on or now - self._used_at > KEPT_S

    def get(self, now: float, *, goes_on: bool) -> Sequence[T]:
        """All things.

        Args:
            now: seconds, monotonic.
            goes_on: the first ones were shown before.
        """
        things = self._things
        if things is None or (not self._is_prepared and self._is_to_be_made(now, goes_on)):
            things = self._things = at_once(self._make())
        self._is_prepared = False
        self._used_at = now
        return _Pages(things, self._drop)

    def _drop(self) -> None:
        self._things = None


class _Pages(Sequence[T]):
    """A list that tells when its end was read."""

    def __init__(self, things: list[T], ended: Callable[[], None]) -> None:
        self._things = things
        self._ended = ended

    def __len__(self) -> int:
        return len(self._things)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice) and index.stop >= len(self._things):
            self._ended()
        return self._things[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._things)


class PagedLinks(Sequence[tuple[Connection, AnyLink]]):
    """The links of messages of all connections, each with its connection, in the order in which they came."""

    def __init__(self, connections: Iterable[Connection]) -> None:
        self._connections = list(connections)

    def __len__(self) -> int:
        return sum(len(connection.links) for connection in self._connections)

    def __iter__(self) -> Iterator[tuple[Connection, AnyLink]]:
        for connection in self._connections:
            for link in list(connection.links.values()):  # a reply is made in pieces, and links come and go between
                yield connection, link

    @overload
    def __getitem__(self, index: int) -> tuple[Connection, AnyLink]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Connection, AnyLink]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Connection, AnyLink] | list[tuple[Connection, AnyLink]]:
        if isinstance(index, int):
            return self[index : index + 1][0]
        skipped, count = index.start or 0, index.stop - (index.start or 0)
        found: list[tuple[Connection, AnyLink]] = []
        for connection in self._connections:
            if len(found) >= count:
                break
            if skipped >= len(connection.links):
                skipped -= len(connection.links)
                continue
            links = islice(connection.links.values(), skipped, skipped + count - len(found))
            found.extend((connection, link) for link in links)
            skipped = 0
        return found


class ConcatenatedLists(Sequence[Any]):
    """Two lists after each other, which are sliced only where they are asked for."""

    def __init__(self, first: Sequence[Any], second: Sequence[Any]) -> None:
        self._first = first
        self._second = second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __iter__(self) -> Iterator[Any]:
        yield from self._first
        yield from self._second

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, int):
            return self[index : index + 1][0]
        begin, end, size = index.start or 0, index.stop, len(self._first)
        found = list(self._first[begin:end])
        if end > size:
            found += self._second[max(0, begin - size) : end - size]
        return found
