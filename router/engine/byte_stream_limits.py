"""Limits of what is read from a socket at once, bytes and frames.

In `byte_stream_limits.pxd` again for C.
"""

from __future__ import annotations

from typing import Final

LEAST_PIECE_BYTES: Final = 4096
MOST_PIECE_BYTES: Final = 131072
MOST_SHARED_PIECE_BYTES: Final = 65536
"""Maximum number of bytes read at once while others have single messages: a call beside a flood of 10 kB would wait
twice as long."""
PIECE_FRAMES: Final = 16
"""Number of frames read at once, estimated from the size of those before, from `LEAST_PIECE_BYTES` to
`MOST_PIECE_BYTES`. The receiver of small messages works on the first ones, and grants credit anew, while the router
still reads. Reading all of what a socket has is a little cheaper, but in a window of 250 messages everybody waits for
somebody."""
PIECE_COPIES: Final = 2048
"""Number of copies that one read may cause, estimated from the reads before: a publisher to many subscribers is read in
smaller pieces, so that others have their turn."""
LEAST_FAIR_PIECE_BYTES: Final = 256
"""Minimum number of bytes read at once, however many copies these cause."""
