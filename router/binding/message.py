"""Whole messages to bytes and back, by proton's codec: for control and management, never for what is only passed on.

Values are plain Python ones. Where AMQP has more types than Python (symbol, int, ulong ...) they are subclasses of
`str` and `int`: ask with `isinstance`, make them with the functions here; a plain `int` is written as long, a plain
`str` as string. What has no counterpart at all is a `proton.Array` or `proton.Described`.

`proton.Data` does the work and not `proton.Message`, which writes no symbols as keys of application properties, reads
an absent content-type as "None", and hands out binary that points into memory freed with the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeGuard, TypeVar, cast, overload
from uuid import UUID

import proton

from router.binding.proton_data import UNREADABLE, is_surrogate

MessageId = str | int | bytes | UUID
"""Types of message-id and correlation-id; an int is written as ulong (AMQP part 3, 3.2.11)."""

HEADER: Final = 0x70
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78
"""Descriptors of the sections of a message. Source: AMQP 1.0 part 3, 3.2."""

_MAX_DEPTH: Final = 64
"""Maximum depth of lists and maps within each other; nothing that this program understands has more than five."""
MOST_VALUES: Final = 65_000
"""Values of one message: about what proton takes."""
MAX_SECTIONS: Final = 100
"""Maximum number of sections of one message: each costs a call of proton, and what is meant for a router has eight at
most."""

_T = TypeVar("_T")


class MalformedMessage(ValueError):
    """Bytes that proton cannot read as a message."""

    def __init__(self, reason: str, read: Message | None = None) -> None:
        super().__init__(reason)
        self.read = read
        """Message as far as it was read, with the sections before the one that cannot be read."""


@dataclass(kw_only=True, slots=True)
class Message:
    """A decoded message. None is an absent field; fields that no part of this program uses are left out."""

    durable: bool | None = None
    priority: int | None = None
    """Priority, 0 to 255."""
    ttl_ms: int | None = None
    """Time to live, milliseconds, at least 1."""
    delivery_count: int | None = None
    annotations: Mapping[str, object] = field(default_factory=dict)
    """Message-annotations, in order; written with symbols as keys."""
    message_id: MessageId | None = None
    user_id: bytes | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: MessageId | None = None
    application_properties: Mapping[str, object] = field(default_factory=dict)
    """Application properties in their order on the wire; each key is written as what it is, a string or a symbol."""
    body: object = None
    """Content of the amqp-value section; of a data section its bytes, of a sequence its list."""


def symbol(text: str) -> str:
    """*text* (ASCII) to be written as a symbol."""
    return proton.symbol(text)


def int32(number: int) -> int:
    """*number* to be written as an int of 32 bits, signed."""
    return proton.int32(number)


def uint(number: int) -> int:
    """*number* to be written as an uint of 32 bits."""
    return proton.uint(number)


def ulong(number: int) -> int:
    """*number* to be written as an ulong of 64 bits."""
    return proton.ulong(number)


def timestamp(milliseconds: int) -> int:
    """*milliseconds* since 1970, UTC, to be written as a timestamp."""
    return proton.timestamp(milliseconds)


def strings(items: Iterable[str]) -> object:
    """*items* to be written as an array of strings, for clients that read no list."""
    undescribed: Any = proton.UNDESCRIBED
    return proton.Array(undescribed, proton.Data.STRING, *items)


def is_symbol(value: object) -> TypeGuard[str]:
    """Whether a decoded value is a symbol, and not a string."""
    return isinstance(value, proton.symbol)


def is_int32(value: object) -> TypeGuard[int]:
    """Whether a value is to be written as an int of 32 bits."""
    return isinstance(value, proton.int32)


def plain_scalar(value: object) -> str | int | float | bool | None:
    """A decoded value as one of Python's own types.

    Args:
        value: text, a number, a truth value or null.
    Raises: TypeError: it is of another type; names it, as AMQP does.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and not isinstance(value, (proton.decimal32, proton.decimal64, proton.timestamp)):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(next(name for kind, name in _TYPE_NAMES if isinstance(value, kind)))


_TYPE_NAMES: Final[Sequence[tuple[type | tuple[type, ...], str]]] = (
    ((proton.decimal32, proton.decimal64, proton.decimal128), "a decimal"),
    (proton.timestamp, "a timestamp"),
    (bytes, "binary"),
    (UUID, "a uuid"),
    (list, "a list"),
    (Mapping, "a map"),
    (proton.Array, "an array"),
    (proton.Described, "a described value"),
    (object, "of an unknown type"),
)
"""Words for values of types that no attribute can be set to, the first that fits."""


CountValues = Callable[[bytes, int, int], int]
"""Function that counts the values of a section: data, where it begins, and most; negative when it is malformed."""


def decode_message(
    data: bytes,
    *,
    max_values: int = MOST_VALUES,
    count_values: CountValues | None = None,
    is_body_anywhere: bool = False,
) -> Message:
    """Read the message in *data*, in time proportional to its bytes.

    Fields with their default value may be absent, written out or null: that is kept.

    Args:
        data: the whole message, bytes.
        max_values: values in it, those within lists and maps counted, by what *count_values* says.
        count_values: for bytes of a stranger; without it there is no bound but proton's. That makes a tree of a section
            before anybody can look at it, and a large one of an array of nulls, which has no bytes.
        is_body_anywhere: the amqp-value section may stand before others, as RabbitMQ's Python client writes it.
    Raises:
        MalformedMessage: no AMQP, sections out of order or more than MAX_SECTIONS, too many values, or a field of a
            type that it cannot have.
    """
    message = Message()
    try:
        _read_sections(data, message, _Reader(max_values), count_values, is_body_anywhere)
    except MalformedMessage as error:
        error.read = message
        raise
    except UNREADABLE as error:
        reason = str(error)
    else:
        return message
    # Raised out here, the first error is gone, and with it what proton has read: up to 6 MB that Python doesn't count.
    raise MalformedMessage(f"no message: {reason}", message)


def _read_sections(
    data: bytes, message: Message, reader: _Reader, count_values: CountValues | None, is_body_anywhere: bool
) -> None:
    """Put what *data* says into *message*."""
    body = _Body()
    rest = memoryview(data)
    count = last = 0
    while rest:
        count += 1
        if count > MAX_SECTIONS:
            raise MalformedMessage(f"more than {MAX_SECTIONS} sections")
        values = count_values(data, len(data) - len(rest), reader.left) if count_values is not None else 0
        if values < 0:
            raise MalformedMessage("no message: a value that isn't whole, or holds what isn't within it")
        if values > reader.left:
            raise MalformedMessage(f"more than {reader.max_values} values")
        section = proton.Data()
        rest = rest[section.decode(cast("bytes", rest)) :]  # without a copy for each section
        section.rewind()
        section.next()
        code, value = reader.section(section)
        if code < last or (code == last and code not in (DATA, SEQUENCE)):
            raise MalformedMessage(f"section {code:#x} after section {last:#x}")
        if code in (DATA, SEQUENCE):
            body.add(code, value)
        else:
            _take_section(message, code, value)
        if code == VALUE and is_body_anywhere:
            last = last or HEADER
            continue
        last = code
        if code == VALUE:
            # A footer tells us nothing, and qdrouterd writes a stray map behind some of its replies' null bodies.
            break
    if not last:
        raise MalformedMessage("no message: no section")
    if body.parts and last != VALUE:
        message.body = body.joined()


class _Body:
    """Data or sequence sections, joined once all are there: each joined to those before would copy all of them."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def add(self, code: int, value: object) -> None:
        """One more section: bytes or a list, all of one kind since none may follow the other."""
        if not isinstance(value, bytes if code == DATA else list):
            raise MalformedMessage("a body that is not what its section says")
        if self.parts and type(self.parts[0]) is not type(value):
            self.parts = []
        self.parts.append(value)

    def joined(self) -> object:
        """The body."""
        return b"".join(self.parts) if isinstance(self.parts[0], bytes) else list(chain.from_iterable(self.parts))


def _descriptor(code: object) -> str:
    """A descriptor as an error shows it: in hex, and as the letters that a peer may have made it of."""
    if not isinstance(code, proton.ulong):
        return repr(code)
    letters = code.to_bytes(8, "big").decode("latin-1")
    return f"{int(code):#x}" + (f" ({letters})" if letters.isascii() and letters.isprintable() else "")


class _Reader:
    """Reads values out of proton's memory, as many as are allowed."""

    def __init__(self, max_values: int) -> None:
        self.max_values = max_values
        self.left = max_values

    def section(self, data: proton.Data) -> tuple[int, object]:
        """Descriptor and content of the section that *data* stands on."""
        if not data.is_described() or not data.enter():
            raise MalformedMessage("a section without a descriptor")
        data.next()
        code = data.get_object()
        data.next()
        if not isinstance(code, proton.ulong) or not HEADER <= code <= FOOTER:
            raise MalformedMessage(f"no section has the descriptor {_descriptor(code)}")
        return int(code), self.value(data, 0)

    def char(self, data: proton.Data) -> object:
        """The char that *data* stands on."""
        try:
            found: object = data.get_object()
        except (OverflowError, ValueError):  # by Python's version
            found = None
        if found is None or is_surrogate(found):
            raise MalformedMessage("a char that Unicode does not have")
        return found

    def value(self, data: proton.Data, depth: int) -> object:
        """The value that *data* stands on."""
        self.left -= 1
        if depth > _MAX_DEPTH:
            raise MalformedMessage(f"values nested deeper than {_MAX_DEPTH}")
        kind = data.type()
        if kind == proton.Data.BINARY:
            return bytes(data.get_binary())
        if kind not in (proton.Data.LIST, proton.Data.MAP, proton.Data.ARRAY, proton.Data.DESCRIBED):
            return self.char(data) if kind == proton.Data.CHAR else data.get_object()
        _, array_is_described, element_type = data.get_array() if kind == proton.Data.ARRAY else (0, False, 0)
        items: list[Any] = []
        data.enter()
        while data.next() is not None:
            items.append(self.value(data, depth + 1))
        data.exit()
        if kind == proton.Data.LIST:
            return items
        if kind == proton.Data.MAP:
            return dict(zip(items[::2], items[1::2], strict=True))
        if kind == proton.Data.DESCRIBED:
            return proton.Described(*items)
        descriptor: Any = items.pop(0) if array_is_described else proton.UNDESCRIBED
        return proton.Array(descriptor, element_type or 0, *items)


def _take_section(message: Message, code: int, value: object) -> None:
    """Put the content of one section where it belongs."""
    if code == HEADER:
        durable, priority, ttl, _, delivery_count = _fields(value, 5)
        message.durable = _optional("durable", durable, bool)
        message.priority = _optional("priority", priority, int)
        message.ttl_ms = _optional("ttl", ttl, int)
        message.delivery_count = _optional("delivery-count", delivery_count, int)
    elif code == MESSAGE_ANNOTATIONS:
        message.annotations = _map(value)
    elif code == PROPERTIES:
        fields = _fields(value, 13)
        # The first: there it is told what is wrong with the others.
        message.reply_to = _optional("reply-to", fields[4], str)
        message.message_id = _read_message_id(fields[0])
        message.user_id = _optional("user-id", fields[1], bytes)
        message.to = _optional("to", fields[2], str)
        message.subject = _optional("subject", fields[3], str)
        message.correlation_id = _read_message_id(fields[5])
    elif code == APPLICATION_PROPERTIES:
        message.application_properties = _map(value)
    elif code == VALUE:
        message.body = value


def _fields(value: object, count: int) -> list[object]:
    """A section's list, with null for each field that was left out."""
    if not isinstance(value, list) or len(value) > count:
        raise MalformedMessage("a section that is no list of its fields")
    return [*value, *[None] * (count - len(value))]


def _map(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise MalformedMessage("a section that is no map")
    # Keys may be integers (annotations) or binary (qdrouterd takes that for text): rare, and no lie to those who look
    # keys up by their names.
    return value


_KINDS: Final[Mapping[type, str]] = {bool: "boolean", int: "number", bytes: "binary", str: "string"}


def _optional(name: str, value: object, kind: type[_T]) -> _T | None:
    if value is None:
        return None
    # Symbols and chars are text too in Python, but not where AMQP wants a string, nor where compiled code does.
    if not isinstance(value, kind) or isinstance(value, proton.symbol | proton.char):
        raise MalformedMessage(f"{name} is no {_KINDS[kind]}: {type(value).__name__}")
    return value


def _read_message_id(value: object) -> MessageId | None:
    if isinstance(value, int) and not 0 <= value < 2**64:
        return None  # a number that no id can be: it could not be written back
    if value is None or isinstance(value, (str, int, bytes, UUID)):
        return value
    raise MalformedMessage(f"a message id is {type(value).__name__}")


def _count_values(value: object) -> int:
    """A value and all that it holds."""
    if isinstance(value, Mapping):
        return 1 + len(value) + sum(_count_values(each) for each in value.values())
    if isinstance(value, list | tuple):
        return 1 + sum(_count_values(each) for each in value)
    return 1


class IncrementalList(Sequence[object]):
    """A list whose items are encoded as they are added: written a piece at a time, and larger than proton's are."""

    def __init__(self) -> None:
        self._items: list[bytes] = []
        self.size = 0
        """Bytes of all items."""
        self.values = 0
        """Values in them, those in lists and maps included."""

    def append(self, item: object) -> None:
        """Add one more."""
        data = proton.Data()
        data.put_object(item)
        encoded = bytes(data.encode())
        self._items.append(encoded)
        self.size += len(encoded)
        self.values += _count_values(item)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> list[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return [self._decoded(item) for item in self._items[index]]
        return self._decoded(self._items[index])

    def __eq__(self, other: object) -> bool:
        return list(self) == (list(other) if isinstance(other, IncrementalList) else other)

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def _decoded(item: bytes) -> object:
        data = proton.Data()
        data.decode(item)
        data.rewind()
        data.next()
        return _Reader(MOST_VALUES).value(data, 0)

    def encoded(self) -> bytes:
        """The whole list as AMQP's list32."""
        count = len(self._items)
        return b"".join((b"\xd0", (self.size + 4).to_bytes(4, "big"), count.to_bytes(4, "big"), *self._items))


class EncodedMap(Mapping[str, object]):
    """A map that never changes, encoded once, when it is first written."""

    def __init__(self, items: Mapping[str, object]) -> None:
        self._items = items
        self._encoded = b""

    def __getitem__(self, key: str) -> object:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def encoded(self) -> bytes:
        """The map as AMQP's."""
        if not self._encoded:
            self._encoded = _encode_value(dict(self._items))
        return self._encoded


def _encode_body(body: object) -> bytes:
    """The amqp-value section; a map may have values that are `IncrementalList`s."""
    head = b"\x00\x53" + bytes((VALUE,))
    if not (isinstance(body, dict) and any(isinstance(value, IncrementalList) for value in body.values())):
        return head + _encode_value(body)
    pieces: list[bytes] = []
    for key, value in body.items():
        pieces.append(_encode_value(key))
        pieces.append(_encode_value(value))
    size = sum(map(len, pieces)) + 4
    return b"".join((head, b"\xd1", size.to_bytes(4, "big"), len(pieces).to_bytes(4, "big"), *pieces))


def _encode_value(value: object) -> bytes:
    if isinstance(value, IncrementalList | EncodedMap):
        return value.encoded()
    data = proton.Data()
    data.put_object(value)
    return bytes(data.encode())


def encode_message(message: Message) -> bytes:
    """The bytes of *message*, its body as amqp-value; a section without a field is left out.

    Args:
        message: its sections, decoded.
    """
    data = proton.Data()
    header = [message.durable, _ubyte(message.priority), _uint(message.ttl_ms), None, _uint(message.delivery_count)]
    _put_list(data, HEADER, _trimmed(header))
    if message.annotations:
        _put_map(data, MESSAGE_ANNOTATIONS, ((symbol(key), value) for key, value in message.annotations.items()))
    properties = [
        _message_id(message.message_id),
        message.user_id,
        message.to,
        message.subject,
        message.reply_to,
        _message_id(message.correlation_id),
    ]
    _put_list(data, PROPERTIES, _trimmed(properties))
    if message.application_properties:
        _put_map(data, APPLICATION_PROPERTIES, message.application_properties.items())
    return bytes(data.encode()) + _encode_body(message.body)


def _message_id(value: MessageId | None) -> MessageId | None:
    return ulong(value) if isinstance(value, int) else value


def _ubyte(value: int | None) -> int | None:
    return None if value is None else proton.ubyte(value)


def _uint(value: int | None) -> int | None:
    return None if value is None else uint(value)


def _trimmed(values: Sequence[object]) -> Sequence[object]:
    """*values* without the nulls at the end."""
    count = len(values)
    while count and values[count - 1] is None:
        count -= 1
    return values[:count]


def _put_list(data: proton.Data, descriptor: int, values: Sequence[object]) -> None:
    """A section that is a list; none when it is empty."""
    if not values:
        return
    _open_section(data, descriptor)
    data.put_list()
    data.enter()
    for value in values:
        data.put_object(value)
    data.exit()
    data.exit()


def _put_map(data: proton.Data, descriptor: int, entries: Iterable[tuple[object, object]]) -> None:
    """A section that is a map."""
    _open_section(data, descriptor)
    data.put_map()
    data.enter()
    for key, value in entries:
        data.put_object(key)
        data.put_object(value)
    data.exit()
    data.exit()


def _open_section(data: proton.Data, descriptor: int) -> None:
    data.put_described()
    data.enter()
    data.put_ulong(descriptor)
