"""All addresses of a router, told in parts: nobody writes, reads or installs a hundred thousand of them at one go.

A request says that its sender takes parts (DEV-32). The answer shows one state of the addresses, though they change
while its parts are under way; what changes meanwhile is kept by the other side and follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from mesh_config.models import Treatment
from router.core.linkstate.messages import HINT_OF_TREATMENT, MobileAddressUpdate, mobile_key
from router.core.terms import ConnectionId, RouterId

PART: Final = 500
"""Addresses in one message."""
PAUSE_S: Final = 0.001
"""Between two of them, so that whatever else there is has its turn."""
MOST_CHANGES: Final = 1000
"""Changes that are kept until all parts are there; whoever misses one asks again."""


class Answer:
    """What one router is told of all addresses, part by part.

    Args:
        via: connection that the question came by.
        takes_parts: else everything goes in one message.
    """

    def __init__(
        self,
        me: RouterId,
        mobile_seq: int,
        addresses: Sequence[tuple[str, Treatment]],
        via: ConnectionId,
        *,
        takes_parts: bool,
    ) -> None:
        self.via = via
        self._me = me
        self._mobile_seq = mobile_seq
        self._addresses = addresses
        self._size = PART if takes_parts else max(1, len(addresses))
        self._next = 0

    @property
    def _count(self) -> int:
        return max(1, -(-len(self._addresses) // self._size))

    @property
    def is_complete(self) -> bool:
        """Whether all was told."""
        return self._next == self._count

    def take(self) -> MobileAddressUpdate:
        """The next part."""
        chosen = self._addresses[self._next * self._size : (self._next + 1) * self._size]
        update = MobileAddressUpdate(
            id=self._me,
            mobile_seq=self._mobile_seq,
            exist=tuple(mobile_key(address) for address, _ in chosen),
            hints=tuple(HINT_OF_TREATMENT[treatment] for _, treatment in chosen),
            part=self._next,
            parts=self._count,
        )
        self._next += 1
        return update


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
