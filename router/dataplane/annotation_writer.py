"""New leading bytes for a message: with this router's annotations, or without any.

Each function returns what takes the place of the first `Scan.rest_offset` bytes; everything behind them crosses the
mesh as it came, and so do the header and the user's annotations, byte for byte. On the hot path, as `scanner` is.

Source: docs/reference/inter-router-protocol.md#router-annotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.dataplane.annotation_reader import KEY_EGRESS, KEY_INGRESS, KEY_PHASE, KEY_STREAM, KEY_TO, KEY_TRACE
from router.dataplane.scan_result import Scan

_MAP8: Final = b"\x00\x53\x72\xc1"
_MAP32: Final = b"\x00\x53\x72\xd1"
_STREAM_ENTRY: Final = KEY_STREAM + b"\x54\x01"
_INGRESS_HEAD: Final = tuple(KEY_INGRESS + bytes((0xA1, size)) + b"0/" for size in range(256))
_ROUTER_HEAD: Final = tuple(bytes((0xA1, size)) + b"0/" for size in range(256))
"""Bytes that come before a router's id, by the length of the id in bytes plus two for its area."""


def annotate(
    data: bytes | memoryview,
    found: Scan,
    to: str | None,
    ingress: str,
    trace: Sequence[str],
    phase: int = 0,
    egress: str | None = None,
) -> bytes:
    """The leading bytes with router annotations, in place of those that were there.

    Args:
        data: the message, at least to `found.rest_offset`.
        found: what `scan` returned for it.
        to: address that overrides the message's own; None to write none.
        ingress: id of the router where the message entered the mesh.
        trace: ids of the routers that it passed, the origin first, this one last.
        phase: 0 to 127; above 0 it means something only together with *to*.
        egress: id of the router whose subscriber gets it; None to write none.
    """
    if not isinstance(data, bytes):
        data = bytes(data[: found.rest_offset])
    content: bytes = data[found.user_start : found.user_end]
    entries: int = found.user_count + 2
    if phase:
        content += KEY_PHASE + bytes((0x54, phase))
        entries += 1
    if egress is not None:
        content += KEY_EGRESS + _string(egress.encode())
        entries += 1
    if found.stream:
        content += _STREAM_ENTRY
        entries += 1
    if to is not None:
        content += KEY_TO + _string(to.encode())
        entries += 1
    raw: bytes = ingress.encode()
    size: int = len(raw) + 2
    content += _INGRESS_HEAD[size] + raw if size < 256 else KEY_INGRESS + _string(b"0/" + raw)
    routers: bytes = b""
    for router in trace:
        raw = router.encode()
        size = len(raw) + 2
        routers += _ROUTER_HEAD[size] + raw if size < 256 else _string(b"0/" + raw)
    size = len(routers)
    if size < 255 and len(trace) < 256:
        content += KEY_TRACE + bytes((0xC0, size + 1, len(trace))) + routers
    else:
        content += KEY_TRACE + b"\xd0" + (size + 4).to_bytes(4, "big") + len(trace).to_bytes(4, "big") + routers
    return data[: found.annotations_start] + _section(content, entries)


def strip(data: bytes | memoryview, found: Scan) -> bytes:
    """The leading bytes without router annotations; without the section when the user has none either."""
    if not isinstance(data, bytes):
        data = bytes(data[: found.rest_offset])
    if not found.has_router_annotations:
        return data[: found.rest_offset]
    if not found.user_count:
        return data[: found.annotations_start]
    return data[: found.annotations_start] + _section(data[found.user_start : found.user_end], found.user_count)


def _section(content: bytes, entries: int) -> bytes:
    """Write the message-annotations section of *entries* encoded entries."""
    size: int = len(content) + 1
    if size < 256 and entries < 128:
        return _MAP8 + bytes((size, entries + entries)) + content
    return _MAP32 + (size + 3).to_bytes(4, "big") + (entries + entries).to_bytes(4, "big") + content


def _string(raw: bytes) -> bytes:
    """An encoded string."""
    size: int = len(raw)
    return (bytes((0xA1, size)) if size < 256 else b"\xb1" + size.to_bytes(4, "big")) + raw
