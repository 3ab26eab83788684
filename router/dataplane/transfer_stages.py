"""Numbers of the stages of a message and of what happens to it, and how much of one may lie here.

In `transfer_stages.pxd` again for C. What leads where: `transfer_lifecycle.py`.
"""

from __future__ import annotations

from typing import Final

# Stages

NEW: Final = 0
"""The destination of the message is not known yet."""
HOLDING: Final = 1
"""The parts of the message are collected until it is whole."""
WAITING: Final = 2
"""The message waits for credit of a subscriber, or of one link."""
STREAMING: Final = 3
"""The parts of the message are sent as they arrive."""
SENT: Final = 4
"""The message was sent as a whole; the outcome is still to come."""
DONE: Final = 5
"""The message has its outcome; what still arrives of it is thrown away."""
STRANDED: Final = 6
"""The way of the message was lost before it was written: it takes another one as soon as the routes are known."""
QUEUED: Final = 7
"""The message waits for the end of this turn, when credit is dealt."""

# Events

HELD: Final = 0
"""Event: the message must be whole before it may leave, and isn't."""
GATHERED: Final = 1
"""Event: the message is whole, or too large to be held."""
OFFERED: Final = 2
"""Event: the controller of its address has taken the message."""
SELECTED: Final = 3
"""Event: there is credit for the message, or another way is to be found."""
POSTPONED: Final = 4
"""Event: there is no credit for the message now."""
BEGUN: Final = 5
"""Event: the first part was given to the link that leads on, and more follow."""
WRITTEN: Final = 6
"""Event: the last byte was given to the link that leads on, and somebody is to give an outcome."""
LOST: Final = 7
"""Event: the link that leads on is gone, or there is none, and nobody has seen the message."""
RETRIED: Final = 8
"""Event: routes are up to date."""
FINISHED: Final = 9
"""Event: the message has its outcome."""

STREAM_BUFFER_BYTES: Final = 1024 * 1024
"""Bytes of one session or one streaming message that may lie in this process before its source is no longer read."""
PIECE_BYTES: Final = 2 * (16384 - 48)
"""Maximum number of bytes of a message that the engine is given at a time: it keeps as much memory until the outcome is
there, and after that for the next messages of the connection. Two frames as most peers take them."""
