"""All addresses of a router, told in parts: nobody writes, reads or installs a hundred thousand of them at one go.

Who asks says how many parts it takes (DEV-32) and asks for more when these are there, so that other messages never wait
behind more than those. All parts show one state of the addresses; what changes meanwhile is kept by the one who asked,
and follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import attrs

from mesh_config.models import Treatment
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import HINT_OF_TREATMENT, MobileAddressUpdate, mobile_key

PART: Final = 500
"""Maximum number of addresses in one message."""
PART_BYTES: Final = 256 * 1024
"""Maximum size of the addresses in one message, bytes of UTF-8: less than any router refuses, however long addresses
may be."""
PARTS: Final = 4
"""Maximum number of parts that are under way."""
MOST_PARTS: Final = 100
"""Parts that are sent for one question."""
MOST_LISTS: Final = 4
"""States of its own addresses that a router keeps for those who read them; who reads an older one begins anew."""
MOST_LIST_AGE_S: Final = 60.0
"""Time after which such a list is dropped that nobody has read any further, seconds."""
MOST_CHANGES: Final = 1000
"""Maximum number of changes that are kept until all parts are there; a router that misses one asks again."""
MOST_CHANGED_BYTES: Final = 1024 * 1024
"""Maximum size of the changes that are kept of one router, bytes, as `size_of` estimates it."""
MOST_CHANGED_BYTES_OF_ALL: Final = 32 * MOST_CHANGED_BYTES
"""Maximum size of the changes that are kept of all routers together: many may be made up by one neighbor."""
KEY_BYTES: Final = 100
"""Memory of a key beside its characters, bytes."""


def size_of(change: MobileAddressUpdate) -> int:
    """Estimate the memory of a change, bytes."""
    return KEY_BYTES + sum(KEY_BYTES + len(key) for keys in (change.add, change.delete) for key in keys)


def cut(addresses: Sequence[str]) -> list[int]:
    """Cut *addresses* into parts of at most PART and PART_BYTES: the start of each part, then the end of all.

    Nothing has no part. The same addresses are always cut in the same way.
    """
    longest = 4 * max(map(len, addresses), default=0)  # no character takes more bytes
    if longest * PART <= PART_BYTES:
        return [*range(0, len(addresses), PART), len(addresses)]
    starts = [0]
    size = 0
    for number, address in enumerate(addresses):
        one = len(address) if address.isascii() else len(address.encode())
        size += one
        if number > starts[-1] and (size > PART_BYTES or number - starts[-1] == PART):
            starts.append(number)
            size = one
    return [*starts, len(addresses)] if addresses else [0]


def pieces(addresses: Sequence[str]) -> Iterable[Sequence[str]]:
    """*addresses* by parts."""
    ends = cut(addresses)
    return [addresses[start:end] for start, end in pairwise(ends)]


class OutgoingAddressList:
    """All addresses of this router in one state, as others are told of them in parts.

    Args:
        mobile_seq: the state that it shows.
        addresses: copied, since parts are asked for while addresses change.
        in_parts: else it is one message.
    """

    def __init__(self, me: RouterId, mobile_seq: int, addresses: Mapping[str, Treatment], *, in_parts: bool) -> None:
        self.mobile_seq = mobile_seq
        self.asked_at = -math.inf
        """Time at which somebody last asked for a part, seconds."""
        self._me = me
        self._addresses = tuple(addresses)
        self._treatments = tuple(addresses.values())
        self._cuts = cut(self._addresses) if in_parts else [0, len(addresses)]
        self.count = max(1, len(self._cuts) - 1)
        """Number of its parts."""

    def note_question(self, now: float) -> None:
        """Note that somebody asks for parts at *now* (seconds)."""
        self.asked_at = now

    def part(self, number: int) -> MobileAddressUpdate:
        """One of the parts, by its number from 0."""
        chosen = slice(*self._cuts[number : number + 2])
        return MobileAddressUpdate(
            id=self._me,
            mobile_seq=self.mobile_seq,
            exist=tuple(map(mobile_key, self._addresses[chosen])),
            hints=tuple(HINT_OF_TREATMENT[treatment] for treatment in self._treatments[chosen]),
            part=number,
            parts=self.count,
        )


@attrs.define(eq=False)
class IncomingAddressList:
    """Parts that have come of all addresses of another router."""

    mobile_seq: int
    """Sequence of the state that the parts show."""
    next_part: int = 0
    addresses: set[str] = attrs.field(factory=set)
    """Addresses in the parts that have come, those alone that are kept."""
    changes: dict[int, MobileAddressUpdate] = attrs.field(factory=dict)
    """Changes since `mobile_seq`, by sequence."""
    changed_bytes: int = 0
    """Estimated memory of `changes`."""

    def is_next(self, message: MobileAddressUpdate) -> bool:
        """Whether it is the part that is awaited."""
        return message.mobile_seq == self.mobile_seq and message.part == self.next_part

    def keep(self, message: MobileAddressUpdate, room_bytes: int) -> int:
        """Keep a change that came before all parts were there, if there is room.

        Args:
            message: the change.
            room_bytes: memory that it may take.
        Returns: memory that it takes, bytes; 0 if it is not kept.
        """
        size = size_of(message)
        is_room = len(self.changes) < MOST_CHANGES and self.changed_bytes + size <= MOST_CHANGED_BYTES
        is_new = message.mobile_seq > self.mobile_seq and message.mobile_seq not in self.changes
        if not (is_new and is_room and size <= room_bytes):
            return 0
        self.changes[message.mobile_seq] = message
        self.changed_bytes += size
        return size
