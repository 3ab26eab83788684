"""AMQP frames as they stand on the wire: read from a log of bytes, and written by hand where no library would.

Source: AMQP 1.0 part 2, 2.3 (framing) and 2.7 (performatives); part 5, 5.3.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from proton import Data, Described, uint, ulong

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
SASL_HEADER = b"AMQP\x03\x01\x00\x00"


def source(address: str) -> Described:
    """A source."""
    return Described(ulong(0x28), [address])


def target(address: str) -> Described:
    """A target."""
    return Described(ulong(0x29), [address])


NAMES = {
    0x10: "open",
    0x11: "begin",
    0x12: "attach",
    0x13: "flow",
    0x14: "transfer",
    0x15: "disposition",
    0x16: "detach",
    0x17: "end",
    0x18: "close",
    0x40: "sasl-mechanisms",
    0x41: "sasl-init",
    0x44: "sasl-outcome",
}
FLOW = (
    "next_incoming_id",
    "incoming_window",
    "next_outgoing_id",
    "outgoing_window",
    "handle",
    "delivery_count",
    "link_credit",
    "available",
    "drain",
    "echo",
)


@attrs.frozen
class Frame:
    """One frame."""

    size: int
    channel: int
    name: str
    """Of its performative; `heartbeat` without one."""
    fields: list[Any]
    payload: bytes = b""

    def field(self, index: int) -> Any:
        """A field of the performative, None when it was left out."""
        return self.fields[index] if index < len(self.fields) else None

    def flow(self, name: str) -> Any:
        """A field of a flow by its name."""
        return self.field(FLOW.index(name))


def read(log: bytes | bytearray) -> Iterator[Frame]:
    """The frames in *log*, protocol headers left out."""
    data = bytes(log)
    at = 0
    while at + 8 <= len(data):
        if data.startswith(b"AMQP", at):
            at += 8
            continue
        size, offset, _, channel = struct.unpack_from(">IBBH", data, at)
        body = data[at + 4 * offset : at + size]
        at += size
        if not body:
            yield Frame(size, channel, "heartbeat", [])
            continue
        decoder = Data()
        count = decoder.decode(body)
        decoder.rewind()
        decoder.next()
        try:
            value = decoder.get_object()
        except UnicodeDecodeError:  # a name that a peer made up and that is repeated
            yield Frame(size, channel, NAMES[body[2]], [], body[count:])
            continue
        assert isinstance(value, Described)
        yield Frame(size, channel, NAMES[int(value.descriptor)], list(value.value), body[count:])
    assert at == len(data), "the log ends within a frame"


def encoded(value: object) -> bytes:
    """The bytes of one value."""
    data = Data()
    data.put_object(value)
    return bytes(data.encode())


def write(performative: int, fields: Sequence[Any], *, channel: int = 0, payload: bytes = b"", kind: int = 0) -> bytes:
    """The bytes of a frame; whole numbers become uint."""
    plain = [uint(field) if type(field) is int else field for field in fields]
    body = encoded(Described(ulong(performative), plain)) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, kind, channel) + body
