"""Control and management messages to bytes and back.

Control messages are written as qdrouterd 1.19 writes them, and read as tolerantly as it reads them.

Source: docs/reference/inter-router-protocol.md#control-messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from router.binding.message import (
    APPLICATION_PROPERTIES,
    HEADER,
    MESSAGE_ANNOTATIONS,
    MOST_VALUES,
    PROPERTIES,
    VALUE,
    EncodedMap,
    IncrementalList,
    MalformedMessage,
    Message,
    MessageId,
    int32,
    is_symbol,
    plain_scalar,
    strings,
    symbol,
    timestamp,
    uint,
    ulong,
)
from router.binding.message import decode_message as decode_by_proton
from router.binding.message import encode_message as encode_by_proton
from router.core.errors import DecodeError, LocalError
from router.core.ids_and_conditions import AREA, RouterId
from router.core.linkstate.messages import (
    KINDS,
    MAX_ROUTER_ID_CHARS,
    ControlMessage,
    Hello,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    from_body,
)
from router.engine.control_value_codec import ControlValueReader, ControlValueWriter, UnsupportedValue
from router.guard.value_check import count_values

__all__ = [
    "ControlEnvelope",
    "EncodedMap",
    "IncrementalList",
    "Message",
    "MessageId",
    "UnreadableMessage",
    "decode_control",
    "decode_message",
    "encode_control",
    "encode_message",
    "int32",
    "is_symbol",
    "plain_scalar",
    "strings",
    "symbol",
    "timestamp",
    "uint",
    "ulong",
]

_INGRESS: Final = "x-opt-qd.ingress"
_TRACE: Final = "x-opt-qd.trace"
_AREA_PREFIX: Final = f"{AREA}/"
_INT_MAX: Final = 2**31 - 1
_DESCRIPTOR: Final = b"\x00\x53"
"""Bytes before the code of a section: the constructor of a descriptor, and that of a small ulong."""
_SECTIONS: Final = (HEADER, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, VALUE)
REMEMBERED: Final = 256
"""Maximum number of HELLOs and advertisements whose bytes are remembered: at rest they are the same again and again."""
MOST_REMEMBERED_BYTES: Final = 4096
"""Maximum size of one that is remembered, bytes: others may have chosen what is in it."""
LONGEST_TRACE: Final = 1000
"""Maximum number of routers in the trace of a control message. What has passed more is not read, so this bounds the
paths of a mesh, too: far above those of one that works."""


class UnreadableMessage(DecodeError):
    """A message that is malformed, or more than is read."""

    def __init__(self, reason: str, read: Message | None) -> None:
        super().__init__(reason)
        self.read = read
        """Message as far as it was read, with the sections before the one that cannot be read; None when there are
        none."""


@attrs.frozen(kw_only=True)
class ControlEnvelope:
    """A control message with its envelope, as `ControlReceived` and `SendControl` have it."""

    to: str
    message: ControlMessage
    ingress: RouterId | None
    trace: tuple[RouterId, ...]


def decode_message(data: bytes, *, max_values: int | None = None, is_body_anywhere: bool = False) -> Message:
    """Read a management message: properties, application properties and body, plain.

    Args:
        data: the whole message, bytes.
        max_values: values in it, those within lists and maps counted; None: MOST_VALUES.
        is_body_anywhere: the amqp-value section may stand before others, as RabbitMQ's Python client writes it.
    Raises:
        UnreadableMessage: it is no AMQP message, or has more sections or values than may be.
    """
    try:
        return decode_by_proton(
            data,
            max_values=max_values or MOST_VALUES,
            count_values=count_values,
            is_body_anywhere=is_body_anywhere,
        )
    except MalformedMessage as error:
        raise UnreadableMessage(str(error), error.read) from error


def encode_message(message: Message) -> bytes:
    """The bytes of a management message, its body as amqp-value."""
    return encode_by_proton(message)


def decode_control(data: bytes) -> ControlEnvelope:
    """The control message in *data*.

    Integers of any width do, and symbol or binary where a string belongs; missing router annotations are tolerated.

    Raises:
        DecodeError: not a control message, or a mandatory key is missing or of the wrong type; to be dropped.
    """
    try:
        to, annotations, properties, body = _plain_sections(data)
    except (UnsupportedValue, IndexError):
        to, annotations, properties, body = _sections_by_proton(data)
    ingress = annotations.get(_INGRESS)
    trace = annotations.get(_TRACE, [])
    if not isinstance(trace, list) or len(trace) > LONGEST_TRACE:
        raise DecodeError(f"{_TRACE} is no list of at most {LONGEST_TRACE} routers")
    return ControlEnvelope(
        to=to,
        message=from_body(_text(properties.get("opcode")), body),
        ingress=None if ingress is None else _without_area(ingress),
        trace=tuple(_without_area(router) for router in trace),
    )


Sections = tuple[str, Mapping[str, object], Mapping[str, object], Mapping[str, object]]
"""Parts of a control message: its address, annotations, application properties and body."""


def _plain_sections(data: bytes) -> Sections:
    """The sections of a control message as every router writes them.

    Raises:
        UnsupportedValue: it is written in another way, or malformed; proton will tell.
        IndexError: it isn't whole.
    """
    found: dict[int, object] = {}
    values = ControlValueReader(data, 0)
    last, left = 0, MOST_VALUES
    while values.at < len(data) and last != VALUE:
        start = values.at
        code = data[start + 2]
        if data[start : start + 2] != _DESCRIPTOR or code <= last or code not in _SECTIONS:
            raise UnsupportedValue
        count = count_values(data, start, left)
        if not 0 <= count <= left:
            raise UnsupportedValue
        left -= count
        values.at = start + 3
        found[code] = values.value()
        last = code
    fields, annotations = found.get(PROPERTIES), found.get(MESSAGE_ANNOTATIONS, {})
    properties, body = found.get(APPLICATION_PROPERTIES), found.get(VALUE)
    to = fields[2] if isinstance(fields, list) and len(fields) > 2 else None
    if not (
        isinstance(to, str)
        and isinstance(annotations, dict)
        and isinstance(properties, dict)
        and isinstance(body, dict)
    ):
        raise UnsupportedValue
    return to, annotations, properties, body


def _sections_by_proton(data: bytes) -> Sections:
    """The sections of a control message in any valid encoding, read by proton."""
    message = decode_message(data)
    if message.to is None:
        raise DecodeError("a control message without `to`")
    properties = {_text(key): value for key, value in message.application_properties.items()}
    annotations = {_text(key): value for key, value in message.annotations.items()}
    if not isinstance(message.body, Mapping):
        raise DecodeError("the body of a control message is no map")
    body = _plain(message.body)
    assert isinstance(body, dict)
    return message.to, annotations, properties, body


def encode_control(to: str, message: ControlMessage, ingress: RouterId, trace: Sequence[RouterId]) -> bytes:
    """The bytes of a control message.

    The form is the one captured from qdrouterd, byte for byte, but for two encodings of the same values: proton writes
    the annotations' map and list with sizes of four bytes and not of one, and an empty list in MAU as list0.

    Args:
        to: address as `core.addressing` writes it.
        message: what is said.
        ingress: the router that made the message.
        trace: the routers that it passed, the origin first, this one last.
    Raises: LocalError when *message* is of a kind that this router does not speak.
    """
    if not isinstance(message, Hello | RouterAdvertisement):
        return _encode(to, message, ingress, trace)
    what = (to, message, ingress, tuple(trace))
    known = _remembered.get(what)
    if known is None:
        known = _encode(*what)
        if len(known) <= MOST_REMEMBERED_BYTES:
            if len(_remembered) >= REMEMBERED:
                del _remembered[next(iter(_remembered))]
            _remembered[what] = known
    return known


def _encode(to: str, message: ControlMessage, ingress: RouterId, trace: Sequence[RouterId]) -> bytes:
    if message.opcode not in KINDS:
        raise LocalError(f"a message of kind {message.opcode} can only be read")
    # In qdrouterd the mobile addresses are C code and the rest is Python, which shows in keys, integers and properties.
    is_of_addresses = isinstance(message, (MobileAddressUpdate, MobileAddressRequest))
    written = ControlValueWriter()
    written.section(HEADER, [False])
    trail: list[object] = [_AREA_PREFIX + router for router in trace]
    written.section(MESSAGE_ANNOTATIONS, {symbol(_INGRESS): _AREA_PREFIX + ingress, symbol(_TRACE): trail})
    written.section(PROPERTIES, [None, None, to] if is_of_addresses else [None, None, to, None, None, None])
    key = symbol("opcode") if is_of_addresses else "opcode"
    written.section(APPLICATION_PROPERTIES, {key: message.opcode})
    if is_of_addresses:
        body = {symbol(key): _narrow(value) if key == "hints" else value for key, value in _items(message)}
    else:
        body = {key: _narrow(value) for key, value in _items(message)}
    written.section(VALUE, body)
    return bytes(written.data)


_remembered: Final[dict[tuple[str, ControlMessage, RouterId, tuple[RouterId, ...]], bytes]] = {}
"""Bytes of recurring messages, the oldest first."""


def _items(message: ControlMessage) -> list[tuple[str, object]]:
    return list(message.to_body().items())


def _narrow(value: object) -> object:
    """*value* with its integers as int where they fit, else as long."""
    if isinstance(value, int):
        return int32(value) if -_INT_MAX <= value <= _INT_MAX else value
    if isinstance(value, list):
        return [_narrow(item) for item in value]
    if isinstance(value, dict):
        return {key: _narrow(item) for key, item in value.items()}
    return value


def _plain(value: object) -> object:
    """*value* with text, plain ints, lists and dicts only; what is none of these stays, for `from_body` to refuse."""
    if isinstance(value, (str, bytes)):
        return _text(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {_text(key): _plain(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def _text(value: object) -> str:
    """String, symbol or binary as text."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise DecodeError("binary that stands for text is no UTF-8") from error
    if isinstance(value, str):
        return str(value)
    raise DecodeError(f"text was expected, not {type(value).__name__}")


def _without_area(value: object) -> RouterId:
    router = _text(value).removeprefix(_AREA_PREFIX)
    if len(router) > MAX_ROUTER_ID_CHARS:
        raise DecodeError(f"a router id of more than {MAX_ROUTER_ID_CHARS} characters")
    return RouterId(router)
