"""Constants: states of a connection, codes of performatives, and what the guard's readers return beside numbers.

Source: AMQP 1.0 part 2, 2.7; part 5, 5.3.3.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = 0
"""A protocol header is due,"""
SASL: Final = 1
"""or frames of SASL,"""
FRAMES: Final = 2
"""or frames of AMQP,"""
CLOSED: Final = 3
"""or nothing any more."""

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
"""A protocol header begins with it."""
NOBODY: Final = 0
"""A handle is free,"""
SENDER: Final = 1
"""or of a peer that sends,"""
RECEIVER: Final = 2
"""or of one that receives."""

WRONG: Final = -1
"""A field is not what it must be."""
ABSENT: Final = -2
"""It is null, or left out."""
MOST_REPEATED_BYTES: Final = 1 << 22
"""Of a large disposition, each of whose deliveries an engine gives a copy of its state."""
MOST_TAG_BYTES: Final = 32
"""Of a delivery."""
PLAIN_TRANSFER_BYTES: Final = 36
"""Fields of a transfer in so many bytes have no longer tag: each of the two before it takes one at least."""
FLOW_UINTS: Final = 8
"""Fields with which a flow of a link begins: the session's four, handle, delivery-count, link-credit, available."""
