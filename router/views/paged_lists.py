"""Long lists that are shown page by page, without a look at all of them for each page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar, overload

from router.engine.connection import Connection
from router.views.link_address_rows import AnyLink

KEPT_S: Final = 10.0
"""An order is used for so long after a page was asked for, seconds."""

T = TypeVar("T")


class Order(Generic[T]):
    """The order in which things are shown: made for the first page, used for the others, dropped with the last.

    What comes meanwhile is not shown, and what goes is shown as it is then.

    Args:
        make: lists all things in order.
    """

    def __init__(self, make: Callable[[], list[T]]) -> None:
        self._make = make
        self._things: list[T] | None = None
        self._used_at = 0.0

    def get(self, now: float, *, goes_on: bool) -> Sequence[T]:
        """All things.

        Args:
            now: seconds, monotonic.
            goes_on: the first ones were shown before.
        """
        things = self._things
        if things is None or not goes_on or now - self._used_at > KEPT_S:
            things = self._things = self._make()
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
    """The data links of all connections, each with its connection, in the order in which they came."""

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


class Joined(Sequence[Any]):
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
