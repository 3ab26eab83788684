"""Demands by column: a mesh of 1,000 routers has a million of them, too many for an object each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from mesh_config.models import ID_PATTERN, TEXT_PATTERN, setting

DEFAULT_CLASS: Final = "default"
NOBODY: Final = -1
"""Place that stands for none in a column of names."""

Names = NDArray[np.int32]
"""Places in `Demands.names`, one for each demand."""
Amounts = NDArray[np.float64]


@attrs.frozen(kw_only=True)
class Demand:
    """Messages that publishers attached to one router send: to another router, or to an address."""

    src: str = setting("Router at which the messages enter the mesh.", pattern=ID_PATTERN)
    dst: str | None = setting(
        "Router at which they leave it. Either `dst` or `address`.", default=None, pattern=ID_PATTERN
    )
    address: str | None = setting(
        "Address that they are sent to; its treatment and subscribers decide where they go.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    msgs_per_s: float = setting("Messages sent.", unit="messages/s", low=0, high=10**12)
    msg_bytes: float = setting("Mean size of a message.", unit="bytes", low=0, high=10**12)
    klass: str = setting("Class of traffic, for reports.", default=DEFAULT_CLASS, pattern=TEXT_PATTERN)


@attrs.frozen(eq=False, repr=False)
class Demands(Sequence[Demand]):
    """Demands in one order: by source, destination, address, class, rate and size. The arrays can't be written to.

    Made by `of` or `of_columns`, which put them in order.
    """

    names: tuple[str, ...]
    """Routers, addresses and classes that occur, sorted."""
    src: Names
    dst: Names
    """NOBODY for a demand to an address."""
    address: Names
    """NOBODY for a demand to a router."""
    klass: Names
    msgs_per_s: Amounts
    msg_bytes: Amounts

    @classmethod
    def of(cls, demands: Iterable[Demand]) -> Demands:
        """Any demands; a `Demands` is given back as it is."""
        if isinstance(demands, Demands):
            return demands
        rows = list(demands)
        numbers: dict[str, int] = {}

        def number(name: str | None) -> int:
            return NOBODY if name is None else numbers.setdefault(name, len(numbers))

        places = [[number(getattr(row, field)) for row in rows] for field in ("src", "dst", "address", "klass")]
        return cls.of_columns(
            tuple(numbers),
            *(np.array(column, dtype=np.int32) for column in places),
            msgs_per_s=np.array([row.msgs_per_s for row in rows], dtype=np.float64),
            msg_bytes=np.array([row.msg_bytes for row in rows], dtype=np.float64),
        )

    @classmethod
    def of_columns(
        cls,
        names: Sequence[str],
        src: Names,
        dst: Names,
        address: Names,
        klass: Names,
        *,
        msgs_per_s: Amounts,
        msg_bytes: Amounts,
    ) -> Demands:
        """Make demands of columns in any order, with names in any order, some of them perhaps unused; each name once.

        Args:
            names: those that the next four columns point into, by place.
            src: places in *names* of who sends.
            dst: places of routers that it is for, or NOBODY.
            address: places of addresses that it is for, or NOBODY.
            klass: places of classes, or NOBODY.
            msgs_per_s: messages a second.
            msg_bytes: bytes of a message.
        """
        used = np.unique(np.concatenate([column[column >= 0] for column in (src, dst, address, klass)]))
        in_order = sorted(used.tolist(), key=names.__getitem__)
        place = np.full(len(names) + 1, NOBODY, dtype=np.int32)  # the last one is where NOBODY points to
        place[in_order] = np.arange(len(in_order), dtype=np.int32)
        columns = [place[column] for column in (src, dst, address, klass)]
        rates, sizes = msgs_per_s + 0.0, msg_bytes + 0.0  # no negative zero, which would be another form of the same
        keys: list[NDArray[Any]] = [*columns, rates, sizes]
        order = np.lexsort(keys[::-1])
        arrays = [np.ascontiguousarray(array[order]) for array in keys]
        for array in arrays:
            array.flags.writeable = False
        return cls(tuple(names[number] for number in in_order), *arrays)

    def chosen(self, mask: NDArray[np.bool_]) -> Demands:
        """Choose the demands at which *mask* is true.

        Args:
            mask: one for each demand.
        """
        return Demands.of_columns(
            self.names,
            self.src[mask],
            self.dst[mask],
            self.address[mask],
            self.klass[mask],
            msgs_per_s=self.msgs_per_s[mask],
            msg_bytes=self.msg_bytes[mask],
        )

    def grown(self, factor: float) -> Demands:
        """Multiply the messages.

        Args:
            factor: 0 or more.
        """
        return Demands.of_columns(
            self.names,
            self.src,
            self.dst,
            self.address,
            self.klass,
            msgs_per_s=self.msgs_per_s * factor,
            msg_bytes=self.msg_bytes,
        )

    def places(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Places of `self.names` in *names*; NOBODY for those that are not there."""
        place = {name: number for number, name in enumerate(names)}
        return np.array([place.get(name, NOBODY) for name in self.names], dtype=np.int32)

    def digest(self) -> str:
        """SHA-256 of names and columns, as hexadecimal text."""
        found = hashlib.sha256(json.dumps(self.names).encode())
        for array in (self.src, self.dst, self.address, self.klass):
            found.update(array.astype("<i4").tobytes())
        for amounts in (self.msgs_per_s, self.msg_bytes):
            found.update(amounts.astype("<f8").tobytes())
        return found.hexdigest()

    def __len__(self) -> int:
        return len(self.src)

    @overload
    def __getitem__(self, index: int) -> Demand: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Demand, ...]: ...

    def __getitem__(self, index: int | slice) -> Demand | tuple[Demand, ...]:
        """One demand, or some as a tuple."""
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        return Demand(
            src=self.names[self.src[index]],
            dst=self._name(self.dst[index]),
            address=self._name(self.address[index]),
            msgs_per_s=float(self.msgs_per_s[index]),
            msg_bytes=float(self.msg_bytes[index]),
            klass=self.names[self.klass[index]],
        )

    def __iter__(self) -> Iterator[Demand]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Demands):
            return NotImplemented
        return self.names == other.names and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in attrs.fields(Demands)
            if field.name != "names"
        )

    def __hash__(self) -> int:
        return hash((self.names, len(self)))

    def __repr__(self) -> str:
        return f"<Demands: {len(self)}>"

    def _name(self, number: np.int32) -> str | None:
        return None if number == NOBODY else self.names[number]
