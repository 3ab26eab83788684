"""All addresses of a router, told in parts: nobody writes, reads or installs a hundred thousand of them at one go.

Who asks says how many parts it takes (DEV-32) and asks for more when these are there, so that other messages never wait
behind more than those. All parts show one state of the addresses; what changes meanwhile is kept by the one who asked,
and follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from mesh_config.models import Treatment
from router.core.linkstate.messages import HINT_OF_TREATMENT, MobileAddressUpdate, mobile_key
from router.core.terms import RouterId

PART: Final = 500
"""Addresses in one message."""
PARTS: Final = 4
"""Parts that may be under way."""
MOST_PARTS: Final = 100
"""Parts that are sent for one question."""
MOST_CHANGES: Final = 1000
"""Changes that are kept until all parts are there; whoever misses one asks again."""


class Answer:
    """What one router is told of all addresses.

    Args:
        mobile_seq: the state that it shows.
        in_parts: else it is one message.
    """

    def __init__(
        self, me: RouterId, mobile_seq: int, addresses: Sequence[tuple[str, Treatment]], *, in_parts: bool
    ) -> None:
        self.mobile_seq = mobile_seq
        self._me = me
        self._addresses = addresses
        self._size = PART if in_parts else max(1, len(addresses))
        self.count = max(1, -(-len(addresses) // self._size))
        """Its parts."""

    def part(self, number: int) -> MobileAddressUpdate:
        """One of them, from 0."""
        chosen = self._addresses[number * self._size : (number + 1) * self._size]
        return MobileAddressUpdate(
            id=self._me,
            mobile_seq=self.mobile_seq,
            exist=tuple(mobile_key(address) for address, _ in chosen),
            hints=tuple(HINT_OF_TREATMENT[treatment] for _, treatment in chosen),
            part=number,
            parts=self.count,
        )


@attrs.define(eq=False)
class Arriving:
    """What has come of all addresses of another router."""

    mobile_seq: int
    """The state that the parts show."""
    next_part: int = 0
    addresses: set[str] = attrs.field(factory=set)
    """Those of the parts that are there."""
    changes: dict[int, MobileAddressUpdate] = attrs.field(factory=dict)
    """What has changed since, by sequence."""

    def is_next(self, message: MobileAddressUpdate) -> bool:
        """Whether it is the part that is awaited."""
        return message.mobile_seq == self.mobile_seq and message.part == self.next_part

    def keep(self, message: MobileAddressUpdate) -> None:
        """A change that came before all parts were there."""
        if message.mobile_seq > self.mobile_seq and len(self.changes) < MOST_CHANGES:
            self.changes[message.mobile_seq] = message
