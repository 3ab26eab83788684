"""Result of scanning a message: what is known of it without having decoded it."""

from __future__ import annotations

from typing import Final

from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition

DEFAULT_PRIORITY: Final = 4
"""Priority of a message whose header names none (AMQP part 3, 3.2.1)."""

HIGHEST_PRIORITY: Final = 9
"""Highest priority: larger ones are read as this (docs/reference/inter-router-protocol.md#data-links)."""


class InvalidAnnotation(PeerProtocolError):
    """A router annotation of the wrong type or out of place: the delivery is rejected, the link goes on."""

    condition = Condition.INVALID_FIELD


class Scan:
    """Sections and annotations that `scan` found. Offsets are bytes from the start of the message; an absent section
    starts where it ends."""

    __slots__ = (
        "annotations_start",
        "egress",
        "has_router_annotations",
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
        "ttl_ms",
        "user_count",
        "user_end",
        "user_id",
        "user_start",
    )

    annotations_start: int
    """Begin of the message-annotations; the place where they would have to be inserted when there are none."""
    properties_start: int
    properties_end: int
    """Both 0 when the properties are absent or were not read."""
    rest_offset: int
    """Offset from which on the message is sent as it came, behind what `annotate` or `strip` returns."""
    user_start: int
    """First byte of the annotations that are not the router's."""
    user_end: int
    user_count: int
    """Number of entries (pairs of key and value) between `user_start` and `user_end`."""
    has_router_annotations: bool
    to: str | None
    """`to` of the properties; None too when it is no string or the properties were not read."""
    user_id: bytes | None
    """`user-id` of the properties; None too when they were not read. One that is no binary has its constructor before
    it, so that it is nobody's."""
    to_override: str | None
    """`x-opt-qd.to`; when present it is the routing address."""
    phase: int
    """`x-opt-qd.phase`; 0 without `x-opt-qd.to`, as qdrouterd has it."""
    stream: bool
    """Whether `x-opt-qd.stream` was there: the message has no end in sight."""
    ingress: str | None
    """`x-opt-qd.ingress` without its area."""
    egress: str | None
    """`x-opt-amqp-mesh.egress`: the router that was chosen for it where it entered the mesh (DEV-33)."""
    trace: tuple[str, ...]
    """`x-opt-qd.trace` without areas, the origin first."""
    priority: int
    """Priority in the header, 0 to 9."""
    ttl_ms: int | None
    """Time to live in the header, milliseconds; None when there is none."""

    def __init__(self) -> None:
        self.annotations_start = 0
        self.properties_start = self.properties_end = 0
        self.rest_offset = 0
        self.user_start = self.user_end = self.user_count = 0
        self.has_router_annotations = self.stream = False
        self.to = self.user_id = self.to_override = self.ingress = self.egress = self.ttl_ms = None
        self.phase = 0
        self.trace = ()
        self.priority = DEFAULT_PRIORITY
