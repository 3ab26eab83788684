"""Size of a control message on a wire, bytes, without writing it: what `router.engine.message_codec` would make of it.

The simulation knows no engine, and counts millions. A test compares with the codec's own bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from router.core.ids_and_conditions import AREA, RouterId
from router.core.linkstate.messages import ControlMessage, MobileAddressRequest, MobileAddressUpdate

_COMPOUND: Final = 9
"""Code, size and count of a map or list that has something in it, as proton writes them."""
_SECTION: Final = 3
"""Descriptor of a section."""
_HEADER: Final = _SECTION + _COMPOUND + 1
_ANNOTATIONS: Final = _SECTION + _COMPOUND + 2 + len("x-opt-qd.ingress") + 2 + len("x-opt-qd.trace")
_INT_MAX: Final = 2**31 - 1

MAX_KEPT: Final = 10_000
"""Messages whose sizes are kept."""


class ControlSizes:
    """Sizes of control messages."""

    def __init__(self) -> None:
        # Both are asked for again and again: by each router that passes a flooded message on, for each neighbor.
        self._fixed: dict[int, tuple[ControlMessage, int]] = {}
        self._names: dict[str, int] = {}
        self._last: tuple[ControlMessage | None, str, str, Sequence[RouterId]] = (None, "", "", ())
        self._last_size = 0

    def of(self, to: str, message: ControlMessage, ingress: RouterId, trace: Sequence[RouterId]) -> int:
        """Size of one, bytes, without the frames that carry it. Arguments as of `codec.encode_control`."""
        last = self._last
        if last[0] is message and last[1:] == (to, ingress, trace):
            return self._last_size
        known = self._fixed.get(id(message))
        if known is None:
            if len(self._fixed) >= MAX_KEPT:
                self._fixed.clear()
            known = self._fixed[id(message)] = (message, _fixed(message))  # kept, so that no other gets its id
        size = known[1] + _text(to) + self._name(ingress) + (_COMPOUND if trace else 1)
        names = self._names
        for router in trace:
            size += names.get(router) or self._name(router)
        self._last, self._last_size = (message, to, ingress, trace), size
        return size

    def _name(self, router: RouterId) -> int:
        known = self._names.get(router)
        if known is None:
            known = self._names[router] = _text(router, len(AREA) + 1)
        return known


def _fixed(message: ControlMessage) -> int:
    """Part of the size that does not depend on who sends it where, bytes."""
    is_of_addresses = isinstance(message, (MobileAddressUpdate, MobileAddressRequest))
    nulls = 2 if is_of_addresses else 5
    properties = _SECTION + _COMPOUND + nulls
    opcode = _SECTION + _COMPOUND + _text("opcode") + _text(message.opcode)
    body = message.to_body()
    items = sum(
        # Of addresses, the hints alone are written as ints; the rest is long.
        _text(key) + _value(value, is_long=is_of_addresses and key != "hints")
        for key, value in body.items()
    )
    return _HEADER + _ANNOTATIONS + properties + opcode + _SECTION + _COMPOUND + items


def _value(value: object, *, is_long: bool) -> int:
    match value:
        case int():
            if -128 <= value <= 127:
                return 2
            return 9 if is_long or not -_INT_MAX <= value <= _INT_MAX else 5
        case str():
            return _text(value)
        case Mapping():
            return _COMPOUND + sum(_text(key) + _value(item, is_long=is_long) for key, item in value.items())
        case list():
            return _COMPOUND + sum(_value(item, is_long=is_long) for item in value) if value else 1
    raise AssertionError(f"no control message holds a {type(value).__name__}")


def _text(text: str, more: int = 0) -> int:
    size = (len(text) if text.isascii() else len(text.encode())) + more
    return size + (2 if size <= 255 else 5)
