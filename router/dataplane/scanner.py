"""Finds the leading sections of an encoded message and what routing needs of them; the body is neither read nor copied.

On the hot path: plain ints and bytes, so that Cython can compile it. Offsets go from function to function, and what is
found goes into one object.

Source: AMQP 1.0 part 1 (encodings), part 3, 3.2 (sections); qdrouterd-protocol.md, section 9 (router annotations).
"""

from __future__ import annotations

from typing import Final

from router.core.errors import DecodeError, RemoteProtocolError
from router.core.terms import Condition

MAX_LEADING_BYTES: Final = 64 * 1024
"""All sections up to and including the properties must end within so many bytes."""

DEFAULT_PRIORITY: Final = 4
"""Priority of a message whose header names none (AMQP part 3, 3.2.1)."""

HIGHEST_PRIORITY: Final = 9
"""Larger ones are read as this (protocol, 12)."""

_HIGHEST_PHASE: Final = 127
"""Phases are 0 to 9 and 22; what fits one byte is passed on."""

_HEADER: Final = 0x70
_MESSAGE_ANNOTATIONS: Final = 0x72
_PROPERTIES: Final = 0x73
_APPLICATION_PROPERTIES: Final = 0x74
_FOOTER: Final = 0x78

# Bytes by which a value goes on after its constructor, by the constructor's upper half; the lower eight of them are the
# fixed widths, then come those whose first 1 or 4 bytes are a size (AMQP part 1, figure 1.3).
_FIXED_WIDTH: Final = (-1, -1, -1, -1, 0, 1, 2, 4, 8, 16)

_USER, _PHASE, _STREAM, _TO, _INGRESS, _TRACE, _OBSOLETE = range(7)

_PREFIX: Final = b"x-opt-qd."
KEY_TO: Final = b"\xa3\x0bx-opt-qd.to"
KEY_PHASE: Final = b"\xa3\x0ex-opt-qd.phase"
KEY_STREAM: Final = b"\xa3\x0fx-opt-qd.stream"
KEY_INGRESS: Final = b"\xa3\x10x-opt-qd.ingress"
KEY_TRACE: Final = b"\xa3\x0ex-opt-qd.trace"
_KEYS_OBSOLETE: Final = (b"\xa3\x09x-opt-qd.", b"\xa3\x0ex-opt-qd.class")
"""The router annotations, as encoded symbols; the last two carry nothing any more."""


class InvalidAnnotation(RemoteProtocolError):  # noqa: N818 - a state of the message, not of ours
    """A router annotation of the wrong type or out of place: the delivery is rejected, the link goes on."""

    condition = Condition.INVALID_FIELD


class Scan:
    """What `scan` found. Offsets are bytes from the start of the message; an absent section starts where it ends."""

    __slots__ = (
        "annotations_end",
        "annotations_start",
        "has_router_annotations",
        "header_end",
        "header_start",
        "ingress",
        "phase",
        "priority",
        "properties_end",
        "properties_start",
        "rest_offset",
        "stream",
        "to",
        "to_override",
        "trace",
        "trace_at",
        "ttl_ms",
        "user_count",
        "user_end",
        "user_start",
    )

    header_start: int
    header_end: int
    annotations_start: int
    """Of the message-annotations; where they would have to be inserted when there are none."""
    annotations_end: int
    properties_start: int
    properties_end: int
    """Both 0 when the properties are absent or were not read."""
    rest_offset: int
    """From here on the message is sent as it came, behind what `annotate`, `append_self` or `strip` return."""
    user_start: int
    """First byte of the annotations that are not the router's."""
    user_end: int
    user_count: int
    """Entries (pairs of key and value) between `user_start` and `user_end`."""
    has_router_annotations: bool
    to: str | None
    """`to` of the properties; None too when it is no string or the properties were not read."""
    to_override: str | None
    """`x-opt-qd.to`; when present it is the routing address."""
    phase: int
    """`x-opt-qd.phase`; 0 without `x-opt-qd.to`, as qdrouterd has it."""
    stream: bool
    """Whether `x-opt-qd.stream` was there: the message has no end in sight."""
    ingress: str | None
    """`x-opt-qd.ingress` without its area."""
    trace: tuple[str, ...]
    """`x-opt-qd.trace` without areas, the origin first."""
    trace_at: int
    """Offset of the trace's list when it is the last annotation, else 0."""
    priority: int
    """Of the header, 0 to 9."""
    ttl_ms: int | None
    """Of the header, milliseconds."""

    def __init__(self) -> None:
        self.header_start = self.header_end = 0
        self.annotations_start = self.annotations_end = 0
        self.properties_start = self.properties_end = 0
        self.rest_offset = 0
        self.user_start = self.user_end = self.user_count = 0
        self.has_router_annotations = self.stream = False
        self.to = self.to_override = self.ingress = self.ttl_ms = None
        self.phase = self.trace_at = 0
        self.trace = ()
        self.priority = DEFAULT_PRIORITY


def scan(
    data: bytes | memoryview, complete: bool, stop_at_annotations: bool = False, from_client: bool = False
) -> Scan | None:
    """Read the leading sections of a message.

    Args:
        data: the message from its first byte, as far as it is there.
        complete: nothing follows *data*.
        stop_at_annotations: do not wait for the properties nor read them (the link has a target address).
        from_client: router annotations are to be thrown away unread. Everything behind the first one goes with it.
    Returns: None when *data* does not reach far enough yet.
    Raises:
        DecodeError: this is no AMQP message, or its leading sections exceed MAX_LEADING_BYTES.
        InvalidAnnotation: a router annotation breaks the protocol.
    """
    if not isinstance(data, bytes):
        # An index into bytes is twice as fast, and no more than this is ever looked at.
        data = bytes(data[: MAX_LEADING_BYTES + 32])
    found = Scan()
    size: int = len(data)
    pos: int = 0
    last: int = 0
    while pos != size or not complete:
        body: int = _descriptor_end(data, pos, size, complete)
        if body < 0:
            return None
        code: int = data[body - 1]
        if code >= _APPLICATION_PROPERTIES or (code == _PROPERTIES and stop_at_annotations):
            break
        if code <= last:
            raise DecodeError(f"section {code:#x} after section {last:#x}")
        end: int = _section_end(data, body, size, code, complete)
        if end < 0:
            return None
        _read_section(data, found, pos, body, end, from_client)
        if code == _PROPERTIES:
            break
        if code < _MESSAGE_ANNOTATIONS:
            found.annotations_start = found.annotations_end = found.rest_offset = end
        last = code
        pos = end
    if size == 0:
        raise DecodeError("a message without a section")
    return found


def _descriptor_end(data: bytes, pos: int, size: int, complete: bool) -> int:
    """Offset behind the section's descriptor at *pos*, which ends in its code; -1 when more bytes are needed."""
    if size - pos >= 4 and data[pos] == 0 and data[pos + 1] == 0x53:
        end = pos + 3
    elif pos < size and data[pos] != 0:
        raise DecodeError(f"a section begins with {data[pos]:#x} and not with a descriptor")
    elif size - pos < 4 or (data[pos + 1] == 0x80 and size - pos < 11):
        if complete:
            raise DecodeError("the message ends within a section's descriptor")
        return -1
    elif data[pos + 1] == 0x80 and data.startswith(b"\0\0\0\0\0\0\0", pos + 2):
        end = pos + 10
    else:
        raise DecodeError(f"a section's descriptor has the constructor {data[pos + 1]:#x}")
    if not _HEADER <= data[end - 1] <= _FOOTER:
        raise DecodeError(f"no section has the descriptor {data[end - 1]:#x}")
    return end


def _section_end(data: bytes, body: int, size: int, code: int, complete: bool) -> int:
    """Offset behind the section whose list or map starts at *body* < *size*; -1 when more bytes are needed."""
    form: int = data[body]
    compound: int = 0xC0 if code in (_HEADER, _PROPERTIES) else 0xC1
    end: int
    if form == compound:
        end = body + 2 + data[body + 1] if body + 1 < size else body + 3
        short = end < body + 3
    elif form == 0x45 and compound == 0xC0:
        end = body + 1
        short = False
    elif form == compound + 0x10:
        end = body + 5 + int.from_bytes(data[body + 1 : body + 5], "big") if body + 5 <= size else body + 9
        short = end < body + 9
    else:
        raise DecodeError(f"section {code:#x} has the constructor {form:#x}")
    if short:
        raise DecodeError(f"section {code:#x} is smaller than its own count")
    if end > MAX_LEADING_BYTES:
        raise DecodeError(f"section {code:#x} ends beyond {MAX_LEADING_BYTES} bytes")
    if end > size:
        if complete:
            raise DecodeError(f"the message ends within section {code:#x}")
        return -1
    return end


def _read_section(data: bytes, found: Scan, start: int, body: int, end: int, from_client: bool) -> None:
    """Take what is needed from one whole section, which starts at *start* and its list or map at *body*."""
    form: int = data[body]
    pos: int
    count: int
    if form == 0x45:
        pos = end
        count = 0
    elif form < 0xD0:
        pos = body + 3
        count = data[body + 2]
    else:
        pos = body + 9
        count = int.from_bytes(data[body + 5 : body + 9], "big")
    if count > end - pos:
        raise DecodeError("a section counts more values than it has bytes")
    code: int = data[body - 1]
    if code == _MESSAGE_ANNOTATIONS:
        found.annotations_start = start
        found.annotations_end = found.rest_offset = end
        _read_annotations(data, found, pos, end, count, from_client)
    elif code == _HEADER:
        found.header_start = start
        found.header_end = end
        _read_header(data, found, pos, end, count)
    elif code == _PROPERTIES:
        found.properties_start = start
        found.properties_end = end
        _read_properties(data, found, pos, end, count)


def _read_header(data: bytes, found: Scan, pos: int, end: int, count: int) -> None:
    """Priority and ttl: the second and third element, an ubyte and an uint."""
    if count < 2:
        return
    pos = _skip(data, pos, end)
    code: int = data[pos] if pos < end else 0
    if code == 0x50 and pos + 2 <= end:
        found.priority = min(data[pos + 1], HIGHEST_PRIORITY)
        pos += 2
    elif code == 0x40:
        pos += 1
    else:
        raise DecodeError("the header's priority is no ubyte")
    if count < 3:
        return
    code = data[pos] if pos < end else 0
    if code == 0x70 and pos + 5 <= end:
        found.ttl_ms = int.from_bytes(data[pos + 1 : pos + 5], "big")
    elif code == 0x52 and pos + 2 <= end:
        found.ttl_ms = data[pos + 1]
    elif code == 0x43:
        found.ttl_ms = 0
    elif code != 0x40:
        raise DecodeError("the header's ttl is no uint")


def _read_properties(data: bytes, found: Scan, pos: int, end: int, count: int) -> None:
    """`to`: the third element, behind message-id and user-id."""
    if count < 3:
        return
    pos = pos + 1 if data[pos] == 0x40 else _skip(data, pos, end)
    pos = pos + 1 if pos < end and data[pos] == 0x40 else _skip(data, pos, end)
    stop = _skip(data, pos, end)
    # AMQP lets an address be of any type; only a string can be routed.
    if data[pos] in (0xA1, 0xB1):
        try:
            found.to = str(data[pos + 2 if data[pos] == 0xA1 else pos + 5 : stop], "utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError("`to` is no UTF-8") from error


def _read_annotations(data: bytes, found: Scan, pos: int, end: int, count: int, from_client: bool) -> None:
    """The user's entries are counted, the router's behind them read."""
    if count & 1:
        raise DecodeError("the message-annotations have a key without a value")
    found.user_start = found.user_end = pos
    left: int = count >> 1
    while left:
        value: int = _skip(data, pos, end)
        key: int = _USER
        if data[pos] == 0xA3 and data.startswith(_PREFIX, pos + 2):
            key = _router_key(data[pos:value])
        elif data[pos] == 0xB3 and data.startswith(_PREFIX, pos + 5):
            key = _router_key(b"\xa3" + bytes((min(value - pos - 5, 255),)) + data[pos + 5 : value])
        if key != _USER:
            found.has_router_annotations = True
            if from_client:
                # qdrouterd too throws away what a client put behind its router annotations.
                return
            pos = _read_router_value(data, found, key, value, end)
            if key != _TRACE:
                found.trace_at = 0
        elif found.has_router_annotations:
            raise InvalidAnnotation("an annotation of the user behind those of a router")
        else:
            pos = found.user_end = _skip(data, value, end)
            found.user_count += 1
        left -= 1
    if pos != end:
        raise DecodeError("bytes behind the last annotation")
    if found.to_override is None:
        found.phase = 0


def _router_key(key: bytes) -> int:
    """Which router annotation the encoded symbol *key* names; others with the same prefix are the user's."""
    if key == KEY_TRACE:
        return _TRACE
    if key == KEY_INGRESS:
        return _INGRESS
    if key == KEY_TO:
        return _TO
    if key == KEY_PHASE:
        return _PHASE
    if key == KEY_STREAM:
        return _STREAM
    return _OBSOLETE if key in _KEYS_OBSOLETE else _USER


def _read_router_value(data: bytes, found: Scan, key: int, pos: int, end: int) -> int:
    """Read the value at *pos* of a router annotation; returns the offset behind it."""
    if key == _TRACE:
        found.trace_at = pos
        return _read_trace(data, found, pos, end)
    if key == _TO:
        stop = _text_end(data, pos, end)
        found.to_override = _text(data, pos, stop)
        return stop
    if key == _INGRESS:
        stop = _text_end(data, pos, end)
        found.ingress = _text(data, pos, stop).removeprefix("0/")
        return stop
    stop = _skip(data, pos, end)
    if key == _OBSOLETE:
        return stop
    code: int = data[pos]
    number: int
    if code in (0x43, 0x44):
        number = 0
    elif code in (0x54, 0x55, 0x51, 0x71, 0x81, 0x61):
        number = int.from_bytes(data[pos + 1 : stop], "big", signed=True)
    elif code in (0x52, 0x53, 0x50, 0x70, 0x80, 0x60):
        number = int.from_bytes(data[pos + 1 : stop], "big")
    else:
        raise InvalidAnnotation("x-opt-qd.phase and x-opt-qd.stream are integers")
    if key == _PHASE:
        if not 0 <= number <= _HIGHEST_PHASE:
            raise InvalidAnnotation(f"x-opt-qd.phase is {number}")
        found.phase = number
    else:
        found.stream = True
    return stop


def _read_trace(data: bytes, found: Scan, pos: int, end: int) -> int:
    """Read the list of strings at *pos*; returns the offset behind it."""
    stop: int = _skip(data, pos, end)
    form: int = data[pos]
    left: int
    if form == 0xC0 and stop >= pos + 3:
        left = data[pos + 2]
        pos += 3
    elif form == 0xD0 and stop >= pos + 9:
        left = int.from_bytes(data[pos + 5 : pos + 9], "big")
        pos += 9
    elif form == 0x45:
        left = 0
        pos = stop
    else:
        raise InvalidAnnotation("x-opt-qd.trace is no list")
    routers: list[str] = []
    while left and pos < stop:
        after: int = _text_end(data, pos, stop)
        routers.append(_text(data, pos, after).removeprefix("0/"))
        pos = after
        left -= 1
    if left or pos != stop:
        raise InvalidAnnotation("x-opt-qd.trace does not fill its list")
    found.trace = tuple(routers)
    return stop


def _text_end(data: bytes, pos: int, end: int) -> int:
    """Offset behind the string at *pos*."""
    stop: int = -1
    if pos + 2 <= end and data[pos] == 0xA1:
        stop = pos + 2 + data[pos + 1]
    elif pos + 5 <= end and data[pos] == 0xB1:
        stop = pos + 5 + int.from_bytes(data[pos + 1 : pos + 5], "big")
    if stop < 0 or stop > end:
        raise InvalidAnnotation("a router annotation is no string")
    return stop


def _text(data: bytes, pos: int, stop: int) -> str:
    """The string whose constructor is at *pos* and which ends at *stop*."""
    try:
        return str(data[pos + 2 if data[pos] == 0xA1 else pos + 5 : stop], "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidAnnotation("a router annotation is no UTF-8") from error


def _skip(data: bytes, pos: int, end: int) -> int:
    """Offset behind the value at *pos*, which must end by *end*. Its constructor is there then."""
    left: int = 1
    while left:
        if pos >= end:
            raise DecodeError("a value is cut off by the end of its section")
        code: int = data[pos]
        kind: int = code >> 4
        if 4 <= kind <= 9:
            pos += 1 + _FIXED_WIDTH[kind]
            left -= 1
        elif kind >= 10:
            # Even kinds have a size of one byte, odd ones of four, but 0xd (list32, map32) and 0xc change places.
            if kind in (10, 12, 14):
                pos = pos + 2 + data[pos + 1] if pos + 1 < end else end + 1
            else:
                pos = pos + 5 + int.from_bytes(data[pos + 1 : pos + 5], "big") if pos + 5 <= end else end + 1
            left -= 1
        elif code == 0:
            # Described: the descriptor and the value proper follow, both values themselves.
            pos += 1
            left += 1
        else:
            raise DecodeError(f"no value has the constructor {code:#x}")
    if pos > end:
        raise DecodeError("a value ends beyond its section")
    return pos
