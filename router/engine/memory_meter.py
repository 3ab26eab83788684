"""Meter of what this process holds because of the peer of one connection, counted from time to time.

Nothing is counted for each message: links and sessions are asked when so much was read from the connection, or given to
it to write, that it may have changed. There are two sums, since two things are done about them:

- *taken*: what the peer has sent, or has caused by it, and what is kept until it reads our answers;
- *given*: messages to it that it doesn't take, or has not settled.

Beside them stands *unread*: what lies in the windows of its sessions.
"""

from __future__ import annotations

from typing import Final

import cython

from router.dataplane.connection_port import Port
from router.dataplane.links import EgressLink, IngressLink

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        Handle,
        pn_link_queued,
        pn_session_incoming_bytes,
        pn_session_outgoing_bytes,
    )
    from router.dataplane.transfer_stages import NEW

DUE_BYTES: Final = 65536
"""Number of bytes read from the peer, written, or queued for it after which its memory is counted again."""
DUE_LINK_BYTES: Final = 64
"""Number of such bytes for each session and link: the count is due when both bounds are passed, since it looks at
each."""
MESSAGE_BYTES: Final = 512
"""Bytes of a message on each side beside its own until it has an outcome: a delivery of proton, half a passage."""
ANSWER_BYTES: Final = 4096
"""Bytes that an unread answer to a Begin or Attach takes, with what it answers."""


class MemoryMeter:
    """The bytes of one connection."""

    def __init__(self, port: Port, links: dict[int, IngressLink | EgressLink], sessions: dict[Handle, bool]) -> None:
        """*links* and *sessions*: the connection's own, which it goes on changing."""
        self._port = port
        self._links = links
        self._sessions = sessions
        self._to_write = 0
        """Number of bytes that were to be written when the memory was last counted."""
        self._due_bytes = DUE_BYTES
        """Value of `DUE_BYTES` as a C number, since it is compared for each message."""

    @property
    def parts(self) -> int:
        """Number of links and sessions that a count looks at."""
        return len(self._links) + len(self._sessions)

    def is_due(self, moved: int) -> bool:
        """Whether it may have become much more or less. *moved*: bytes read and written since it was counted."""
        port = self._port
        change = port.unwritten_bytes + port.leaving_bytes - self._to_write
        moved += change if change >= 0 else -change
        if moved <= self._due_bytes:
            return False
        return moved > DUE_LINK_BYTES * (len(self._links) + len(self._sessions))

    def count(self, caused: int) -> None:
        """Count it and tell the port. *caused*: what the engine keeps until the peer reads, bytes."""
        port = self._port
        self._to_write = port.unwritten_bytes + port.leaving_bytes
        given = port.leaving_bytes + max(port.unwritten_bytes, self._queued_bytes() if port.is_router else 0)
        taken = port.held_bytes + caused
        backlog = unread = 0
        for link in self._links.values():
            if isinstance(link, IngressLink):
                ingress = link
                backlog += ingress.backlog_bytes
                taken += MESSAGE_BYTES * ingress.in_flight
                if ingress.is_paused:
                    unread += MESSAGE_BYTES * pn_link_queued(ingress.handle)
                if ingress.current is not None:
                    if ingress.current.state == NEW:
                        taken += ingress.current.size  # its address is not known yet
                    if ingress.progress is not None:
                        taken += ingress.progress.most_unread
            else:
                egress = link
                given += MESSAGE_BYTES * egress.outstanding
        for session in self._sessions:
            unread += pn_session_incoming_bytes(session)
        charge = port.charge
        charge.taken_bytes = taken + backlog
        charge.backlog_bytes = backlog
        charge.given_bytes = given
        charge.unread_bytes = unread

    def _queued_bytes(self) -> int:
        """Bytes that the engine has for a neighbor, which may be control messages that wait for its credit."""
        queued = 0
        for session in self._sessions:
            queued += pn_session_outgoing_bytes(session)
        return queued - sum(self._port.lost_bytes.values())
