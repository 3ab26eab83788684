"""The two links to a neighbor for control messages: read whole and acknowledged, written pre-settled.

Source: docs/reference/inter-router-protocol.md#links.
"""

from __future__ import annotations

from typing import Final

import cython

from mesh_config.models import MIB
from router.core.errors import PeerProtocolError
from router.core.events import ControlReceived
from router.core.ids_and_conditions import Condition
from router.dataplane.connection_port import Port

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        ACCEPTED,
        NULL,
        Handle,
        new_delivery,
        pn_delivery_aborted,
        pn_delivery_link,
        pn_delivery_partial,
        pn_delivery_pending,
        pn_delivery_settle,
        pn_delivery_update,
        pn_link_advance,
        pn_link_credit,
        pn_link_current,
        pn_link_flow,
        pn_link_queued,
        pn_link_remote_max_message_size,
        pn_link_send,
        pn_link_session,
        pn_session_outgoing_bytes,
        receive,
    )

CONTROL_WINDOW: Final = 250
CONTROL_BACKLOG: Final = 10000
"""Maximum number of control messages that wait for a neighbor's credit before it is given up."""
CONTROL_BACKLOG_BYTES: Final = 64 * MIB
"""Maximum size of what waits for a neighbor in the session of its control link, bytes. A large mesh may tell one that
joins it more than it reads meanwhile; what does not fit is dropped, and the neighbor asks for it again."""
MOST_BACKLOG_BYTES: Final = 2 * CONTROL_BACKLOG_BYTES
"""Maximum size of all that waits when there are messages that nobody asks for again, bytes."""
TOO_LARGE: Final = "too_large"
"""Why a message was dropped: the neighbor takes none of that size."""
BACKLOG: Final = "backlog"
"""Why a message was dropped: too much waits for the neighbor already."""
REMEMBERED: Final = 256
"""Maximum number of recurring control messages that are remembered for one neighbor."""
MOST_REMEMBERED_BYTES: Final = 512
"""Maximum size of a control message that is remembered, bytes."""


class ControlLinks:
    """The control links of one connection, as far as they are attached."""

    def __init__(self, port: Port, assumed_bytes: int) -> None:
        """*assumed_bytes*: maximum size of what a neighbor takes that announces none; 0 for any size."""
        self._port = port
        self._assumed_bytes = assumed_bytes
        self.announced_bytes = 0
        """Maximum size of a message that the neighbor was told it may send."""
        self.incoming: Handle = NULL
        self.outgoing: Handle = NULL
        self.sent = self.received = 0
        """Number of messages that were written, and that were read."""
        self._parts = bytearray()
        """Bytes that have come of an incomplete message."""
        self.remembered: dict[bytes, ControlReceived] = {}
        """HELLOs and advertisements that were read, by their bytes: most come again as they are, with nothing new."""

    def add(self, handle: Handle, is_sender: bool) -> None:
        """Take a link that was attached for control messages; give credit on an incoming one."""
        if is_sender:
            self.outgoing = handle
        else:
            self.incoming = handle
            pn_link_flow(handle, CONTROL_WINDOW)

    def has(self, handle: Handle) -> bool:
        """Whether it is one of the two."""
        return handle != NULL and handle in (self.incoming, self.outgoing)

    def of_session(self, session: Handle) -> list[Handle]:
        """Return those of the two links that belong to *session*."""
        return [each for each in (self.incoming, self.outgoing) if each != NULL and pn_link_session(each) == session]

    def remove(self, handle: Handle) -> None:
        """Forget one that is gone, with what has arrived of a message on it."""
        if handle == self.incoming:
            self.incoming = NULL
            self._parts = bytearray()
        elif handle == self.outgoing:
            self.outgoing = NULL

    def send(self, message: bytes, may_drop: bool) -> str | None:
        """Write one control message, if the link for it is there.

        Args:
            message: its bytes.
            may_drop: whether the neighbor asks again for what it says, or another such message is due.

        Returns: why it was dropped, `TOO_LARGE` or `BACKLOG`; None when it was not.
        Raises:
            PeerProtocolError: too many messages wait for the neighbor already, or one that may not be dropped is too
                large for it or for what waits.
        """
        link = self.outgoing
        if link == NULL:
            return None
        size = len(message)
        most = pn_link_remote_max_message_size(link) or self._assumed_bytes
        waiting = pn_session_outgoing_bytes(pn_link_session(link))
        if 0 < most < size:
            if may_drop:
                return TOO_LARGE  # it may be another's, which must not end this connection
            why = f"a control message of {size} bytes is due, and {most} are taken"
            raise PeerProtocolError(why, condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        if pn_link_queued(link) > CONTROL_BACKLOG:
            raise PeerProtocolError("no credit for control messages", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        if waiting > CONTROL_BACKLOG_BYTES and may_drop:
            return BACKLOG
        if waiting > MOST_BACKLOG_BYTES:
            raise PeerProtocolError("control messages are not read", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        self.sent += 1
        delivery = new_delivery(link, self.sent)
        pn_link_send(link, message, len(message))
        pn_link_advance(link)
        pn_delivery_settle(delivery)
        self._port.touch()
        return None

    def read(self, delivery: Handle, limit: int) -> bytes | None:
        """The control message of *delivery*, None while it is not complete; credit is given anew when half is used.

        What has arrived behind it is read with its own event: an attach that it speaks of may be between the two.

        Args:
            delivery: of any link of the connection.
            limit: most bytes of a message, or what was announced before, if that is more.

        Raises:
            PeerProtocolError: it is larger.
        """
        link = self.incoming
        if link == NULL or pn_delivery_link(delivery) != link or pn_link_current(link) != delivery:
            return None
        message: bytes | None = None
        if not pn_delivery_aborted(delivery):
            size = pn_delivery_pending(delivery)
            if size > 0:
                self._parts += receive(link, size)
            limit = max(limit, self.announced_bytes)
            if len(self._parts) > limit:
                why = f"control message is larger than {limit} bytes"
                raise PeerProtocolError(why, condition=Condition.RESOURCE_LIMIT_EXCEEDED)
            if pn_delivery_partial(delivery):
                return None
            message = bytes(self._parts)
            pn_delivery_update(delivery, ACCEPTED)
        self._parts.clear()
        self.received += 1
        pn_delivery_settle(delivery)  # advances the link
        left = pn_link_credit(link)
        if 2 * left <= CONTROL_WINDOW:  # a frame for each message would wake a neighbor at rest twice as often
            pn_link_flow(link, CONTROL_WINDOW - left)
        self._port.touch()
        return message

    def known(self, message: bytes) -> ControlReceived | None:
        """Find what *message* says, if it has come before. Returns: None when it has to be read."""
        return self.remembered.get(message)

    def remember(self, message: bytes, read: ControlReceived) -> None:
        """Remember what *message*, which may come again, says."""
        if len(message) <= MOST_REMEMBERED_BYTES:
            if len(self.remembered) >= REMEMBERED:
                del self.remembered[next(iter(self.remembered))]
            self.remembered[message] = read
