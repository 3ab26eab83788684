"""Handshake: all that a peer writes before its first frame, protocol headers, and frames of SASL between two of them.

Source: AMQP 1.0 part 2, 2.2; part 5, 5.3.
"""

from __future__ import annotations

from typing import Final

import cython

from router.guard.performatives import PerformativeReader

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import (
        FRAMES,
        HEADER,
        SASL,
        SASL_CHALLENGE,
        SASL_INIT,
        SASL_MECHANISMS,
        SASL_OUTCOME,
        SASL_RESPONSE,
        WRONG,
    )
    from router.guard.performatives import size_at
    from router.guard.value_check import end_of

FRAMING_ERROR: Final = "amqp:connection:framing-error"
DECODE_ERROR: Final = "amqp:decode-error"
NOT_ALLOWED: Final = "amqp:not-allowed"

MIN_FRAME_BYTES: Final = 512
"""Maximum size of a frame that any peer may send, bytes, whatever was announced."""


class HandshakeGuard(PerformativeReader):
    """The beginning of one connection, and what both it and the frames are judged by."""

    def __init__(self, *, is_server: bool, max_frame_bytes: int) -> None:
        super().__init__()
        self._is_server = is_server
        self._max_frame = max(MIN_FRAME_BYTES, max_frame_bytes)
        self._phase = HEADER
        self._sasl = 0
        """Number of SASL frames since the header."""
        self._is_sasl_over = False
        self.is_sasl_done = False
        """Whether SASL was spoken, or left out, before the guard saw a byte: none may follow."""
        self.is_broken = False
        """Whether the peer has violated the protocol: nothing more may be handed on."""
        self.is_header_wrong = False
        """Whether the peer has violated the protocol in its header: what follows may be no AMQP."""
        self.condition = ""
        self.description = ""

    def limit_frames(self, max_frame_bytes: int) -> None:
        """Take no larger frames: this side announces less than it was made with."""
        self._max_frame = max(MIN_FRAME_BYTES, min(self._max_frame, max_frame_bytes))

    def _break(self, condition: str, description: str) -> bool:
        self.is_broken = True
        self.condition = condition
        self.description = description
        return False

    def _shake_hands(self, data: bytes | memoryview, at: int, size: int) -> int:
        """A protocol header or a SASL frame. Returns: its bytes; 0 when it isn't there, or is wrong."""
        left = size - at
        if self._phase == SASL and not (left and data[at] == 0x41):  # no frame may be as large as "A" would make it
            return self._check_sasl(data, at, left)
        for index in range(min(left, 4)):
            if data[at + index] != b"AMQP"[index]:
                return self._break_header("no protocol header of AMQP")
        if left < 8:
            return 0
        protocol, major, minor, revision = data[at + 4], data[at + 5], data[at + 6], data[at + 7]
        if (major, minor, revision) != (1, 0, 0) or protocol not in (0, 3):
            return self._break_header(f"protocol {protocol}, version {major}.{minor}.{revision}: not served here")
        if protocol == 3:
            if self._phase == SASL or self.is_sasl_done:
                return self._break_header("SASL within SASL")
            self._phase = SASL
        else:
            if self._phase == SASL and not (self._sasl if self._is_server else self._is_sasl_over):
                return self._break_header("AMQP before SASL is over")
            self._phase = FRAMES
        return 8

    def _break_header(self, description: str) -> int:
        self.is_header_wrong = True
        self._break(FRAMING_ERROR, description)
        return 0

    def _check_sasl(self, data: bytes | memoryview, at: int, left: int) -> int:
        if left < 8:
            return 0
        length = size_at(data, at)
        if length < 8 or length > self._max_frame:
            self._break(FRAMING_ERROR, f"a SASL frame of {length} bytes: 8 to {self._max_frame} are allowed")
            return 0
        if length > left:
            return 0
        body = at + 4 * data[at + 4]
        if data[at + 5] != 1 or body < at + 8 or body >= at + length:
            self._break(FRAMING_ERROR, "a frame that is none of SASL, before SASL is over")
            return 0
        code = self.begin_list(data, body, at + length)
        if code == WRONG or end_of(data, body, at + length) == WRONG:
            self._break(DECODE_ERROR, "a SASL frame that cannot be decoded")
            return 0
        is_first = not self._sasl
        if self._is_server:
            is_due = code == (SASL_INIT if is_first else SASL_RESPONSE)
        else:
            is_due = code == SASL_MECHANISMS if is_first else code in (SASL_CHALLENGE, SASL_OUTCOME)
            is_due = is_due and not self._is_sasl_over
            self._is_sasl_over = code == SASL_OUTCOME
        if not is_due:
            self._break(NOT_ALLOWED, f"SASL frame {code:#x} is not due")
            return 0
        self._sasl += 1
        return length
