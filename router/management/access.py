"""Access to management: the one place that decides what a requester may ask, and to change what.

Who asks is known where the requester is connected. A request that came through a neighbor has no user any more: where
there is policy it may read. The router where it entered the mesh has seen to it that its sender may do so.
"""

from __future__ import annotations

from typing import Final

import attrs

from mesh_config.models import ManagementRight
from router.core.ids_and_conditions import ConnectionId
from router.management.schema import GENERAL_OPERATIONS

READING: Final = frozenset({"READ", *GENERAL_OPERATIONS})
"""Operations that change nothing; every other one, also one that is added later, needs the right to change."""


@attrs.frozen(kw_only=True)
class Access:
    """Rights of one requester."""

    right: ManagementRight
    vhost: str | None = None
    """Virtual host of a requester that may see what is of it alone."""
    connection: ConnectionId | None = None
    """Connection of a requester that is connected here."""

    def allows(self, operation: str) -> bool:
        """Whether it may ask for an operation at all."""
        if self.right is ManagementRight.NONE:
            return False
        return operation in READING or self.right is ManagementRight.WRITE


EVERYTHING: Final = Access(right=ManagementRight.WRITE)
"""Access of everybody where there is no policy."""
BY_NEIGHBOR: Final = Access(right=ManagementRight.READ)
NOTHING: Final = Access(right=ManagementRight.NONE)
