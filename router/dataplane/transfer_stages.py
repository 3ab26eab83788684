"""Where the passage of a message stands, and how much of one may lie here.

Numbers, in `transfer_stages.pxd` again for C.
"""

from __future__ import annotations

from typing import Final

QUEUED: Final = 7
"""Waits for the end of this turn, when credit is dealt."""
NEW: Final = 0
"""Its destination is not known yet."""
HOLDING: Final = 1
"""Its parts are collected until it is whole."""
WAITING: Final = 2
"""For credit of a subscriber, or of one link."""
STREAMING: Final = 3
"""Its parts are sent as they arrive."""
SENT: Final = 4
"""Sent as a whole; the outcome is still to come."""
STRANDED: Final = 6
"""Its way was lost before it was written: it takes another one as soon as the routes are known."""
DONE: Final = 5
"""It has its outcome; what still arrives of it is thrown away."""

STREAM_BUFFER_BYTES: Final = 1024 * 1024
"""Bytes of one session or one streaming message that may lie in this process before its source is no longer read."""
PIECE_BYTES: Final = 2 * (16384 - 48)
"""Most of a message that the engine is given at a time: it keeps as much memory until the outcome is there, and after
that for the next messages of the connection. Two frames as most peers take them."""
