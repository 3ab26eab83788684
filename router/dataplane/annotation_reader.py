"""Reads a message's annotations: the user's are counted, those of routers behind them are read.

On the hot path: plain ints and bytes, so that Cython can compile it.

Source: docs/reference/inter-router-protocol.md#router-annotations.
"""

from __future__ import annotations

from typing import Final

from router.core.errors import DecodeError
from router.dataplane.scan_result import InvalidAnnotation, Scan
from router.dataplane.value_skipping import integer, skip, text_end

_HIGHEST_PHASE: Final = 127
"""Highest phase that is passed on: what fits one byte. Phases that are in use are 0 to 9 and 22."""

KEY_TO: Final = b"\xa3\x0bx-opt-qd.to"
KEY_PHASE: Final = b"\xa3\x0ex-opt-qd.phase"
KEY_STREAM: Final = b"\xa3\x0fx-opt-qd.stream"
KEY_INGRESS: Final = b"\xa3\x10x-opt-qd.ingress"
KEY_TRACE: Final = b"\xa3\x0ex-opt-qd.trace"
KEY_EGRESS: Final = b"\xa3\x16x-opt-amqp-mesh.egress"
"""Key of the annotation that names the egress router, between our own routers only."""
_KEYS: Final = (KEY_PHASE, KEY_STREAM, KEY_TO, KEY_INGRESS, KEY_TRACE, KEY_EGRESS)
_KEYS_OBSOLETE: Final = (b"\xa3\x09x-opt-qd.", b"\xa3\x0ex-opt-qd.class")
"""The router annotations, as encoded symbols; these last two carry nothing any more."""
_ALL_KEYS: Final = (*_KEYS, *_KEYS_OBSOLETE)
_USER, _PHASE, _STREAM, _TO, _INGRESS, _TRACE, _EGRESS, _OBSOLETE = range(8)
"""Kinds of annotations: none of ours, one of `_KEYS` in their order, or one of `_KEYS_OBSOLETE`."""


def read_annotations(data: bytes, found: Scan, pos: int, end: int, count: int, from_client: bool) -> None:
    """Count the user's entries and read the router's behind them."""
    if count & 1:
        raise DecodeError("the message-annotations have a key without a value")
    found.user_start = found.user_end = pos
    left: int = count >> 1
    while left:
        if data.startswith(_ALL_KEYS, pos) or _is_long_router_key(data, pos, end):
            found.has_router_annotations = True
            break
        pos = skip(data, skip(data, pos, end), end)
        found.user_end = pos
        found.user_count += 1
        left -= 1
    if left:
        if from_client:
            # qdrouterd too throws away what a client put behind its router annotations.
            return
        try:
            pos = _read_router_annotations(data, found, pos, end, left)
        except UnicodeDecodeError as error:
            raise InvalidAnnotation("a router annotation is no UTF-8") from error
    if pos != end:
        raise DecodeError("bytes behind the last annotation")


def _is_long_router_key(data: bytes, pos: int, end: int) -> bool:
    """Whether a router annotation's key at *pos* is a sym32, as nobody was seen to write it."""
    return pos < end and data[pos] == 0xB3 and _router_key(data, pos, skip(data, pos, end)) != _USER


def _read_router_annotations(data: bytes, found: Scan, pos: int, end: int, left: int) -> int:
    """Read the *left* entries from *pos* on, all of them the router's; returns the offset behind them."""
    while left:
        if pos + 2 > end:
            raise DecodeError("the message-annotations count more than they hold")
        value: int = pos + 2 + data[pos + 1]
        key: bytes = data[pos:value]
        if key == KEY_TRACE:
            pos = _read_trace(data, found, value, end)
        elif key in (KEY_INGRESS, KEY_TO):
            pos = text_end(data, value, end)
            value += 2 if data[value] == 0xA1 else 5
            if key == KEY_TO:
                found.to_override = data[value:pos].decode()
            else:
                found.ingress = data[value + 2 if data[value : value + 2] == b"0/" else value : pos].decode()
        else:
            pos = _read_rare_annotation(data, found, pos, end)
        left -= 1
    if found.to_override is None:
        found.phase = 0
    return pos


def _read_trace(data: bytes, found: Scan, pos: int, end: int) -> int:
    """Read the list of strings at *pos*; returns the offset behind it."""
    stop: int = skip(data, pos, end)
    form: int = data[pos]
    left: int = 0
    if form == 0xC0 and stop >= pos + 3:
        left = data[pos + 2]
        pos += 3
    elif form == 0xD0 and stop >= pos + 9:
        left = int.from_bytes(data[pos + 5 : pos + 9], "big")
        pos += 9
    elif form == 0x45:
        pos = stop
    else:
        raise InvalidAnnotation("x-opt-qd.trace is no list")
    routers: list[str] = []
    while left and pos < stop:
        text: int = pos + 2 if data[pos] == 0xA1 else pos + 5
        pos = text_end(data, pos, stop)
        routers.append(data[text + 2 if data[text : text + 2] == b"0/" else text : pos].decode())
        left -= 1
    if left or pos != stop:
        raise InvalidAnnotation("x-opt-qd.trace does not fill its list")
    found.trace = tuple(routers)
    return stop


def _router_key(data: bytes, pos: int, stop: int) -> int:
    """Find which router annotation the symbol from *pos* to *stop* is; others with the same prefix are the user's."""
    key: bytes = data[pos:stop]
    if data[pos] == 0xB3:
        # Longer than any of ours when the size does not fit one byte; 255 then does as well.
        key = bytes((0xA3, min(stop - pos - 5, 255))) + data[pos + 5 : stop]
    if key in _KEYS:
        return _KEYS.index(key) + 1
    return _OBSOLETE if key in _KEYS_OBSOLETE else _USER


def _read_rare_annotation(data: bytes, found: Scan, pos: int, end: int) -> int:
    """Read an entry whose key is not one of the usual three in their usual form; returns the offset behind it."""
    value: int = skip(data, pos, end)
    key: int = _router_key(data, pos, value)
    if key == _USER:
        raise InvalidAnnotation("an annotation of the user behind those of a router")
    stop: int = skip(data, value, end)
    if key == _OBSOLETE:
        return stop
    if key == _TRACE:
        return _read_trace(data, found, value, end)
    if key in (_TO, _INGRESS, _EGRESS):
        stop = text_end(data, value, end)
        text: str = data[value + 2 if data[value] == 0xA1 else value + 5 : stop].decode()
        if key == _TO:
            found.to_override = text
        elif key == _EGRESS:
            found.egress = text
        else:
            found.ingress = text.removeprefix("0/")
        return stop
    number: int = integer(data, value, stop)
    if key == _STREAM:
        found.stream = True
    elif 0 <= number <= _HIGHEST_PHASE:
        found.phase = number
    else:
        raise InvalidAnnotation(f"x-opt-qd.phase is {number}")
    return stop
