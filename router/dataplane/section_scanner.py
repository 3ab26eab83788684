"""Finds the leading sections of an encoded message and what routing needs of them; the body is neither read nor copied.

On the hot path: plain ints and bytes, so that Cython can compile it. Offsets go from function to function, and what is
found goes into one object.

Source: AMQP 1.0 part 1 (encodings), part 3, 3.2 (sections).
"""

from __future__ import annotations

from typing import Final

import cython

from router.core.errors import DecodeError
from router.dataplane.annotation_reader import read_annotations
from router.dataplane.scan_result import HIGHEST_PRIORITY, Scan
from router.dataplane.value_skipping import skip

if not cython.compiled:  # else they come by the .pxd
    from router.dataplane.section_codes import (
        APPLICATION_PROPERTIES,
        FOOTER,
        HEADER,
        MESSAGE_ANNOTATIONS,
        PROPERTIES,
    )

MAX_LEADING_BYTES: Final = 64 * 1024
"""Maximum size of all sections up to and including the properties, bytes."""

_BEFORE_REPLY_TO: Final = 4
"""Number of fields of the properties before reply-to."""


def scan(
    message: bytes | bytearray | memoryview,
    complete: bool,
    stop_at_annotations: bool = False,
    from_client: bool = False,
) -> Scan | None:
    """Read the leading sections of a message.

    Args:
        message: from its first byte on, as far as it is there.
        complete: nothing follows.
        stop_at_annotations: do not wait for the properties nor read them (the link has a target address).
        from_client: router annotations are to be thrown away unread. Everything behind the first one goes with it.
    Returns: None when *message* does not reach far enough yet.
    Raises:
        DecodeError: this is no AMQP message, or its leading sections exceed MAX_LEADING_BYTES.
        InvalidAnnotation: a router annotation breaks the protocol.
    """
    # An index into bytes is twice as fast, and no more than this is ever looked at.
    data = message if isinstance(message, bytes) else bytes(message[: MAX_LEADING_BYTES + 32])
    found = Scan()
    size: int = len(data)
    pos: int = 0
    last: int = 0
    while pos != size or not complete:
        body: int = pos + 3
        # The usual descriptor is seen here, the rest and all errors there.
        if body >= size or data[pos] != 0 or data[pos + 1] != 0x53:
            body = _descriptor_end(data, pos, size, complete)
            if body < 0:
                return None
        code: int = data[body - 1]
        if code >= APPLICATION_PROPERTIES or (code == PROPERTIES and stop_at_annotations):
            if code > FOOTER:
                raise DecodeError(f"no section has the descriptor {code:#x}")
            break
        if code <= last or code < HEADER:
            raise DecodeError(f"no section {code:#x} can follow section {last:#x}")
        end: int = _section_end(data, body, size, code, complete)
        if end < 0:
            return None
        if end - body != 1:  # an empty list says nothing
            _read_section(data, found, body, end, from_client)
        if code == MESSAGE_ANNOTATIONS:
            found.annotations_start = pos
            found.rest_offset = end
        elif code == PROPERTIES:
            found.properties_start = pos
            found.properties_end = end
            break
        if code < MESSAGE_ANNOTATIONS:
            found.annotations_start = found.rest_offset = end
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
    return end


def _section_end(data: bytes, body: int, size: int, code: int, complete: bool) -> int:
    """Offset behind the section whose list or map starts at *body* < *size*; -1 when more bytes are needed."""
    form: int = data[body]
    compound: int = 0xC0 if code in (HEADER, PROPERTIES) else 0xC1
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


def _read_section(data: bytes, found: Scan, body: int, end: int, from_client: bool) -> None:
    """Take what is needed from a whole section, whose list or map, at *body*, is not empty by its constructor."""
    pos: int = body + 3
    count: int
    if data[body] < 0xD0:
        count = data[body + 2]
    else:
        pos = body + 9
        count = int.from_bytes(data[body + 5 : pos], "big")
    if count > end - pos:
        raise DecodeError("a section counts more values than it has bytes")
    code: int = data[body - 1]
    if code == MESSAGE_ANNOTATIONS:
        read_annotations(data, found, pos, end, count, from_client)
    elif code == HEADER:
        _read_header(data, found, pos, end, count)
    elif code == PROPERTIES:
        _read_properties(data, found, pos, end, count)


def _read_header(data: bytes, found: Scan, pos: int, end: int, count: int) -> None:
    """Priority and ttl: the second and third element, an ubyte and an uint."""
    if count < 2:
        return
    pos = skip(data, pos, end)
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
    """`user-id` and `to`: the second and third element, behind message-id."""
    if count < 2:
        return
    pos = pos + 1 if data[pos] == 0x40 else skip(data, pos, end)
    stop: int
    if pos < end and data[pos] == 0x40:
        pos += 1
    else:
        stop = skip(data, pos, end)
        code: int = data[pos]
        found.user_id = data[pos + (2 if code == 0xA0 else 5 if code == 0xB0 else 0) : stop]
        pos = stop
    if count < 3:
        return
    stop = skip(data, pos, end)
    # AMQP lets an address be of any type; only a string can be routed.
    if data[pos] in (0xA1, 0xB1):
        try:
            pos += 2 if data[pos] == 0xA1 else 5
            found.to = data[pos:stop].decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError("`to` is no UTF-8") from error


def read_reply_to(properties: bytes) -> str | None:
    """Find the `reply-to` of a properties section: the fifth element. None where there is no text.

    Args:
        properties: a whole section that `scan` has found, its descriptor included.
    Raises:
        DecodeError: it is damaged.
    """
    end: int = len(properties)
    body: int = _descriptor_end(properties, 0, end, True)
    code: int = properties[body]
    if code == 0x45:
        return None
    pos: int = body + 3 if code < 0xD0 else body + 9
    count: int = properties[body + 2] if code < 0xD0 else int.from_bytes(properties[body + 5 : pos], "big")
    if count <= _BEFORE_REPLY_TO:
        return None
    for _ in range(_BEFORE_REPLY_TO):
        pos = skip(properties, pos, end)
    stop: int = skip(properties, pos, end)
    if properties[pos] not in (0xA1, 0xB1):
        return None
    try:
        return properties[pos + (2 if properties[pos] == 0xA1 else 5) : stop].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("`reply-to` is no UTF-8") from error
