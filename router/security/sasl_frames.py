"""Frames of SASL, read and written.

A peer that has not said who it is gets no further than this: what is read is bounded, and each field has one type.

Source: AMQP 1.0 part 5, 5.3; part 1, 1.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"

MECHANISMS: Final = 0x40
INIT: Final = 0x41
CHALLENGE: Final = 0x42
RESPONSE: Final = 0x43
OUTCOME: Final = 0x44
NAMES: Final = {
    MECHANISMS: "sasl-mechanisms",
    INIT: "sasl-init",
    CHALLENGE: "sasl-challenge",
    RESPONSE: "sasl-response",
    OUTCOME: "sasl-outcome",
}

OK: Final = 0
AUTHENTICATION_FAILED: Final = 1
SYSTEM_ERROR: Final = 2

MOST_FRAME_BYTES: Final = 16384
"""Maximum size of a frame, bytes. The specification allows 512, which a password or a ticket of today may not fit."""
FRAME_HEAD_BYTES: Final = 8
MOST_MECHANISMS: Final = 64
"""Maximum number of mechanisms that a server offers."""

_BINARY = {0xA0: 1, 0xB0: 4}
_SYMBOL = {0xA3: 1, 0xB3: 4}
_ARRAY = {0xE0: 1, 0xF0: 4}


class SaslError(Exception):
    """SASL has failed; the message says why, for the log, and has no secret in it."""


@attrs.frozen(kw_only=True)
class SaslFrame:
    """Content of one frame. `data` may be a password, so it is not shown."""

    code: int
    mechanisms: tuple[str, ...] = ()
    """Mechanisms that the frame offers; in an init the one that was chosen."""
    data: bytes | None = attrs.field(default=None, repr=False)
    """Initial response, challenge, response or additional data; None when there is none."""
    outcome: int = OK


def split_frame(data: bytes | bytearray) -> tuple[SaslFrame, int] | None:
    """The first frame in *data* and its size in bytes; None while it isn't all there.

    Raises:
        SaslError: it is no frame of SASL.
    """
    if len(data) < FRAME_HEAD_BYTES:
        return None
    size = int.from_bytes(data[:4], "big")
    if data[5] != 1 or not FRAME_HEAD_BYTES <= 4 * data[4] < size <= MOST_FRAME_BYTES:
        raise SaslError("what came is no frame of SASL")
    if len(data) < size:
        return None
    return _read(bytes(data[4 * data[4] : size])), size


def mechanisms_frame(names: Sequence[str]) -> bytes:
    """A sasl-mechanisms, which the server begins with."""
    items = b"".join(_sized(name.encode("ascii")) for name in names)
    return _frame(MECHANISMS, [b"\xe0" + bytes([len(items) + 2, len(names), 0xA3]) + items])


def init_frame(mechanism: str, response: bytes | None, hostname: str | None) -> bytes:
    """A sasl-init, by which the client chooses."""
    fields = [b"\xa3" + _sized(mechanism.encode("ascii")), b"\x40" if response is None else _binary(response)]
    if hostname is not None:
        raw = hostname.encode()
        fields.append(b"\xb1" + len(raw).to_bytes(4, "big") + raw)
    return _frame(INIT, fields)


def challenge_frame(data: bytes) -> bytes:
    """A sasl-challenge."""
    return _frame(CHALLENGE, [_binary(data)])


def response_frame(data: bytes) -> bytes:
    """A sasl-response."""
    return _frame(RESPONSE, [_binary(data)])


def outcome_frame(code: int, data: bytes | None = None) -> bytes:
    """A sasl-outcome, with which the server ends."""
    return _frame(OUTCOME, [b"\x50" + bytes([code]), *([] if data is None else [_binary(data)])])


def _frame(code: int, fields: Sequence[bytes]) -> bytes:
    content = b"".join(fields)
    size = len(content) + 4
    body = b"\x00\x53" + bytes([code]) + b"\xd0" + size.to_bytes(4, "big") + len(fields).to_bytes(4, "big") + content
    return (FRAME_HEAD_BYTES + len(body)).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body


def _sized(raw: bytes) -> bytes:
    return bytes([len(raw)]) + raw


def _binary(data: bytes) -> bytes:
    if len(data) < 256:
        return b"\xa0" + _sized(data)
    return b"\xb0" + len(data).to_bytes(4, "big") + data


def _read(body: bytes) -> SaslFrame:
    fields = _Fields(body)
    code = fields.code
    if code == MECHANISMS:
        return SaslFrame(code=code, mechanisms=fields.symbols())
    if code == INIT:
        return SaslFrame(code=code, mechanisms=(fields.symbol(),), data=fields.binary())
    if code in (CHALLENGE, RESPONSE):
        return SaslFrame(code=code, data=fields.binary())
    if code == OUTCOME:
        return SaslFrame(code=code, outcome=fields.ubyte(), data=fields.binary())
    raise SaslError(f"a frame {code:#x}, which is none of SASL")


class _Fields:
    """Fields of a described list, one after the other."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0
        if self._take(1) != b"\x00":
            raise SaslError("a SASL frame that is no described list")
        kind = self._take(1)[0]
        if kind not in (0x53, 0x80):
            raise SaslError("a SASL frame that is no described list")
        self.code = int.from_bytes(self._take(1 if kind == 0x53 else 8), "big")
        kind = self._take(1)[0]
        self._left = 0
        if kind in (0xC0, 0xD0):
            width = 1 if kind == 0xC0 else 4
            size = self._number(width)
            if size != len(body) - self._at:
                raise SaslError("a SASL frame whose size is wrong")
            self._left = self._number(width)
        elif kind != 0x45:
            raise SaslError("a SASL frame that is no described list")

    def symbol(self) -> str:
        """A symbol."""
        kind = self._kind()
        if kind not in _SYMBOL:
            raise SaslError("a SASL frame without a mechanism")
        return self._text(_SYMBOL[kind])

    def symbols(self) -> tuple[str, ...]:
        """A symbol, or an array of them."""
        kind = self._kind()
        if kind in _SYMBOL:
            return (self._text(_SYMBOL[kind]),)
        if kind not in _ARRAY:
            raise SaslError("a SASL frame without a mechanism")
        self._number(_ARRAY[kind])
        count = self._number(_ARRAY[kind])
        item = self._take(1)[0]
        if item not in _SYMBOL or count > MOST_MECHANISMS:
            raise SaslError("a SASL frame with a list of mechanisms that cannot be read")
        return tuple(self._text(_SYMBOL[item]) for _ in range(count))

    def binary(self) -> bytes | None:
        """A binary, or None."""
        kind = self._kind()
        if kind is None:
            return None
        if kind not in _BINARY:
            raise SaslError("a SASL frame with something else than a binary")
        return self._take(self._number(_BINARY[kind]))

    def ubyte(self) -> int:
        """A ubyte."""
        if self._kind() != 0x50:
            raise SaslError("a SASL frame without an outcome")
        return self._take(1)[0]

    def _kind(self) -> int | None:
        """Constructor of the next field; None when it is null, or left out."""
        if not self._left:
            return None
        self._left -= 1
        kind = self._take(1)[0]
        return None if kind == 0x40 else kind

    def _text(self, width: int) -> str:
        return self._take(self._number(width)).decode("ascii", "replace")

    def _number(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._body):
            raise SaslError("a SASL frame that ends too early")
        taken = self._body[self._at : end]
        self._at = end
        return taken
