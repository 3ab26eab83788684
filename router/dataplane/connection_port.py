"""Port: one connection as the data plane sees it, what it holds, and what is asked of the engine.

It carries state and no rules. The engine makes one for each connection, and hears of the data plane through its
callbacks. Sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import cython

from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.connection_memory import ConnectionMemory
from router.dataplane.sender_rights import SenderAddressRights

if TYPE_CHECKING:  # they know their port
    from router.dataplane.links import (
        EgressCircuitLink,
        EgressDatagramLink,
        EgressLargeMessagesLink,
        EgressLink,
        IngressCircuitLink,
        IngressLink,
        Transfer,
    )
if not cython.compiled:  # else it comes by the .pxd
    from router.binding.proton_functions import NULL, Handle
    from router.dataplane.transfer_stages import PIECE_BYTES

UNWRITTEN_ROOM: Final = 1000
"""Minimum number of messages to a neighbor kept until they are written before those with an outcome are looked for."""


def _absent(*_: object) -> None:
    raise AssertionError("nobody on this connection is asked for that")


class Port:
    """One connection, as the data plane sees it."""

    __slots__ = (
        "asking", "blocked", "charge", "circuits_in", "circuits_out", "close_circuit", "close_link", "data_links",
        "data_sessions", "end_circuit", "held_bytes", "id", "is_dirty", "is_laden", "is_leaving",
        "is_over", "is_router", "is_stopped", "leaving_bytes", "lost_bytes", "neighbor", "open_circuit",
        "open_stream", "paused", "rights", "stopped", "streams", "takes_numbers", "tell_circuits", "touched",
        "unwritten", "unwritten_bytes", "unwritten_room", "vhost", "withdraw",
    )  # fmt: skip

    def __init__(
        self, port_id: ConnectionId, touched: Callable[[Port], None], withdraw: Callable[[EgressLink, int], None]
    ) -> None:
        self.id = port_id
        self.touched = touched
        """Function called when there is something new to write and `is_dirty` was False."""
        self.is_dirty = False
        self.is_router = False
        self.neighbor: RouterId | None = None
        self.takes_numbers = False
        """Whether the neighbor takes each multicast once, by its number (`multicast_repair.py`)."""
        self.vhost: str | None = None
        """Prefix of every address of this client, from the host name of its Open."""
        self.rights: SenderAddressRights | None = None
        """Policy for what this client, or neighbor, names in messages; None where there is no policy."""
        self.data_links: list[EgressDatagramLink] = []  # to a neighbor, by priority, lowest first
        self.data_sessions: dict[Handle, int] = {}
        """Number of data links of a neighbor on which messages come in, by session."""
        self.open_stream: Callable[[], EgressLargeMessagesLink | None] | None = None
        """Function that attaches one more data link in a session of its own, if there may be one; None when the
        neighbor doesn't allow it."""
        self.streams: list[EgressLargeMessagesLink] = []  # those links, in the order in which they were attached
        self.open_circuit: Callable[[str, RouterId, bool], EgressCircuitLink | None] | None = None
        """Function that attaches a circuit for an address, its root, and whether it is a multicast; None where there
        can be none."""
        self.close_circuit: Callable[[EgressCircuitLink], None] = _absent
        """Ends a circuit of our own, which `RouterDataPlane.remove_egress` has forgotten already."""
        self.end_circuit: Callable[[IngressCircuitLink], None] = _absent
        """Ends a neighbor's circuit to an address that is no more; tells it so, that it does not try again at once."""
        self.close_link: Callable[[IngressLink, PeerProtocolError], None] = _absent
        """Closes a link whose peer broke its rules: a client's alone, a neighbor's with its connection."""
        self.tell_circuits: Callable[[Mapping[str, int], Sequence[str], Mapping[str, tuple[int, int]]], None] = _absent
        """Tells the neighbor the weights of our circuits, which of its own are closed, and loads where these lead."""
        self.withdraw = withdraw
        """Lets the engine know that a link has no credit at all, which it counts as so many below zero."""
        self.circuits_in: dict[str, IngressCircuitLink] = {}  # by link name
        self.circuits_out: dict[str, EgressCircuitLink] = {}
        self.unwritten: list[Transfer] = []
        """Unsettled messages to a neighbor whose bytes may not be with the kernel yet."""
        self.unwritten_room = UNWRITTEN_ROOM
        """Number of messages in `unwritten` from which on those that have an outcome are looked for."""
        self.unwritten_bytes = 0
        """Bytes of messages given to the engine since the kernel had everything; the engine doesn't tell what it has
        encoded."""
        self.lost_bytes: dict[int, int] = {}
        """Bytes that proton counts as unwritten for ever, since their link is gone, by the address of the session."""
        self.held_bytes = 0
        self.leaving_bytes = 0  # of large messages on their way to it, what the engine was not given yet
        self.charge = ConnectionMemory()
        self.is_over = False  # it has sent too much: no message of it is begun, and its publishers get no credit
        self.is_leaving = False  # it has ended, and still has links: nothing is sent to it either
        self.is_laden = False  # it takes too little: nothing more is sent to it
        self.is_stopped = False  # so much more that nothing is read from its socket; of a neighbor, they are released
        self.stopped: dict[IngressLink, None] = {}
        """Ingress links that are not read while `is_over`."""
        self.asking: Transfer | None = None
        """Last message that was begun while `is_over`, though its address was not known."""
        self.paused: dict[IngressLink, None] = {}
        """Ingress links that are not read until this connection has written more."""
        self.blocked: dict[Handle, dict[EgressLink, None]] = {}  # links that have credit and may not send, see `block`

    def serve_client(
        self,
        vhost: str | None,
        close_link: Callable[[IngressLink, PeerProtocolError], None],
        rights: SenderAddressRights | None = None,
    ) -> None:
        """Tell that it is a client."""
        self.vhost = vhost
        self.rights = rights
        self.close_link = close_link

    def lead_to(
        self,
        neighbor: RouterId,
        close_link: Callable[[IngressLink, PeerProtocolError], None],
        *,
        takes_numbers: bool,
        open_stream: Callable[[], EgressLargeMessagesLink | None] | None,
    ) -> None:
        """Tell that it is a neighbor."""
        self.close_link = close_link
        self.is_router = True
        self.neighbor = neighbor
        self.takes_numbers = takes_numbers
        self.open_stream = open_stream

    def bound(self, rights: SenderAddressRights) -> None:
        """Tell what a neighbor may name in messages."""
        self.rights = rights

    def serve_circuits(
        self,
        open_circuit: Callable[[str, RouterId, bool], EgressCircuitLink | None],
        close_circuit: Callable[[EgressCircuitLink], None],
        end_circuit: Callable[[IngressCircuitLink], None],
        tell_circuits: Callable[[Mapping[str, int], Sequence[str], Mapping[str, tuple[int, int]]], None],
    ) -> None:
        """Tell that it is a neighbor that takes circuits."""
        self.open_circuit = open_circuit
        self.close_circuit = close_circuit
        self.end_circuit = end_circuit
        self.tell_circuits = tell_circuits

    def count_in_session(self, session: Handle, change: int) -> None:
        """Count data links of a neighbor that come in one session: *change* more."""
        count = self.data_sessions.pop(session, 0) + change
        if count:
            self.data_sessions[session] = count

    def open_no_more(self) -> None:
        """Make no more links: the neighbor is gone."""
        self.open_stream = self.open_circuit = None

    def block(self, link: EgressLink, session: Handle) -> None:
        """Let a link that has credit go on when enough of what is unwritten of its *session* and connection is written.

        NULL stands for the memory of the connection: it goes on when that is below its mark.
        """
        links = self.blocked.get(session)
        if links is None:
            self.blocked[session] = {link: None}
        else:
            links[link] = None

    def unblock(self, link: EgressLink) -> None:
        """Forget a link that is gone."""
        for session in (link.session, NULL):
            links = self.blocked.get(session, {})
            links.pop(link, None)
            if not links:
                self.blocked.pop(session, None)

    def lose_unwritten(self, size: int) -> None:
        """Count off bytes that will never be written: their link is gone."""
        self.unwritten_bytes = max(0, self.unwritten_bytes - size)

    def may_be_unwritten(self) -> bool:
        """Whether to look if the kernel has everything, and tell so by `links.forget_unwritten`."""
        return bool(self.unwritten) or self.unwritten_bytes > PIECE_BYTES

    def touch(self) -> None:
        """Ask for a flush: there is something to write."""
        if not self.is_dirty:
            self.is_dirty = True
            self.touched(self)
