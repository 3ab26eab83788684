"""Whether a router serves, or is on its way out of the mesh."""

from __future__ import annotations

import enum
from typing import Final

SHUTTING_DOWN: Final = "the router is shutting down"
"""Description of the error by which a router that stops closes its connections: its neighbors know that it isn't
dead."""
GO_ELSEWHERE: Final = "the router is drained: connect to another one"
"""Description of the error by which a router that is drained closes connections of clients."""


class DrainState(enum.StrEnum):
    """State of a router toward clients and paths; the words are those that management shows."""

    SERVING = "serving"
    DRAINING = "draining"
    """State in which paths are led elsewhere, what is in flight settles, and nothing new is taken."""
    DRAINED = "drained"
    """State in which no client is left; neighbors are still connected."""
    STOPPING = "stopping"
