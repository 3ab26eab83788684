"""Constants: states of a connection, codes of performatives, places in a frame, and what stands for no number.

This is a transfer like most, above it the offsets of its bytes, below it their names here (`CODE_AT` and so on):

    0           4    5    6       8    9   10   11   12   13     14
    00 00 00 2a 02   00   00 05   00   53  14   c0   0a   05     52 03  52 09 a0 01 74 43     42      ...
    size        HEAD TYPE CHANNEL BODY     CODE LIST SIZE COUNT8 handle id    tag      format settled payload

SIZE is in bytes, from COUNT8 on. A longer list has d0 at LIST and a SIZE of four bytes, from COUNT32 on, which has
four bytes too; its fields begin at FIELDS32 instead of FIELDS8.

Source: AMQP 1.0 part 2, 2.3 and 2.7; part 5, 5.3.3.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = 0
"""Phase in which a protocol header is due."""
SASL: Final = 1
"""Phase in which frames of SASL are due."""
FRAMES: Final = 2
"""Phase in which frames of AMQP are due."""
CLOSED: Final = 3
"""Phase in which nothing may come any more."""

OPEN: Final = 0x10
BEGIN: Final = 0x11
ATTACH: Final = 0x12
FLOW: Final = 0x13
TRANSFER: Final = 0x14
DISPOSITION: Final = 0x15
DETACH: Final = 0x16
END: Final = 0x17
CLOSE: Final = 0x18
SASL_MECHANISMS: Final = 0x40
SASL_INIT: Final = 0x41
SASL_CHALLENGE: Final = 0x42
SASL_RESPONSE: Final = 0x43
SASL_OUTCOME: Final = 0x44

ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27
AMQP: Final = 0x414D5150
"""First four bytes of a protocol header, as a number."""
NOBODY: Final = 0
"""Role at a handle that is free."""
SENDER: Final = 1
"""Role at a handle of a peer that sends."""
RECEIVER: Final = 2
"""Role at a handle of a peer that receives."""

WRONG: Final = -1
"""Result for a field that is not what it must be."""
ABSENT: Final = -2
"""Result for a field that is null, or left out."""
MOST_REPEATED_BYTES: Final = 1 << 22
"""Maximum size of a large disposition times its deliveries, bytes: an engine gives each a copy of its state."""
MOST_TAG_BYTES: Final = 32
"""Maximum length of the tag of a delivery, bytes."""
MOST_TRANSFER_BYTES: Final = 256
"""Maximum size of the fields of a transfer, bytes. An engine keeps the state among them, which senders hardly ever
write, until the delivery is settled."""
MOST_STATE_BYTES: Final = 64
"""Maximum size of a state that does not end its delivery, bytes: an engine keeps it until another one does."""
PLAIN_TRANSFER_BYTES: Final = 36
"""Size up to which the fields of a transfer can have no longer tag, bytes: each of the two before it takes one at
least."""
FLOW_UINTS: Final = 8
"""Fields with which a flow of a link begins: the session's four, handle, delivery-count, link-credit, available."""

HEAD_AT: Final = 4
"""Offset of a frame's data offset (in words of four bytes), with which the rest of its header begins, bytes."""
TYPE_AT: Final = 5
"""Offset of a frame's type, bytes; the type is 0 for AMQP."""
CHANNEL_AT: Final = 6
"""Offset of a frame's channel, bytes; the channel has two bytes."""
BODY_AT: Final = 8
"""Offset of a frame's performative when its header is not extended, bytes; it begins with 0 for a described value."""
CODE_FORM_AT: Final = 9
"""Offset of the form of a performative's descriptor, bytes; the form is 0x53 for a number of one byte."""
CODE_AT: Final = 10
"""Offset of a performative's code, bytes: the number of one byte in its descriptor."""
LIST_AT: Final = 11
"""Offset of the form of a performative's list, bytes; the form is 0xC0 or 0xD0."""
SIZE_AT: Final = 12
"""Offset of the size of a performative's list, bytes; the size has one byte or four."""
COUNT8_AT: Final = 13
"""Offset of the count of a performative's fields, bytes, when the size before it has one byte."""
FIELDS8_AT: Final = 14
"""Offset of a performative's first field, bytes, when the size of its list has one byte."""
COUNT32_AT: Final = 16
"""Offset of the count of a performative's fields, bytes, when the size before it has four bytes; so has the count."""
FIELDS32_AT: Final = 20
"""Offset of a performative's first field, bytes, when the size of its list has four bytes."""

MASK: Final = 0xFFFF_FFFF
"""Bits of a serial number."""
HALF: Final = 0x7FFF_FFFF
"""Distance of serial numbers from which on a number counts as behind."""
