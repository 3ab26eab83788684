"""Limits of what is read from a socket at once, bytes and frames.

In `byte_stream_limits.pxd` again for C.
"""

from __future__ import annotations

from typing import Final

LEAST_PIECE_BYTES: Final = 4096
MOST_PIECE_BYTES: Final = 131072
MOST_SHARED_PIECE_BYTES: Final = 65536
"""Bytes read at once while others have single messages: a call beside a flood of 10 kB would wait twice as long."""
PIECE_FRAMES: Final = 16
"""So many frames are read at once, as far as one can tell from those before, within these bounds: the receiver of small
messages works on the first ones, and grants credit anew, while the router still reads. All of what a socket has at
once is a little cheaper, and in a window of 250 messages everybody waits for somebody."""
PIECE_COPIES: Final = 2048
"""Of messages to many subscribers no more are read at once than will cause so many copies, as far as one can tell from
those before, so that others have their turn."""
LEAST_FAIR_PIECE_BYTES: Final = 256
"""Bytes read at once even then."""
