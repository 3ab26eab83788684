"""Descriptors of the sections of a message, and what an open list, map or array says of its elements.

In `section_codes.pxd` again for C. Source: AMQP 1.0 part 3, 3.2.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = 0x70
MESSAGE_ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

PLAIN: Final = -1
"""State in a list or map: each element has a constructor of its own."""
UNREAD: Final = -2
"""State in an array whose elements' constructor comes next."""
DESCRIBED: Final = -3
"""State in an array whose elements have a described constructor, with its descriptor first."""
