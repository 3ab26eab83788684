"""Links to one neighbor: a pair for control messages, pairs for data by priority, streaming links and circuits.

The side that dialled attaches everything, the other answers with the same termini. A link is known by a bare symbol
among the capabilities of its terminus.

Source: docs/reference/inter-router-protocol.md#links.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.core.addressing.address import CIRCUITS as CIRCUITS_ADDRESS
from router.core.addressing.address import local_address
from router.core.errors import PeerProtocolError
from router.core.forwarding.fib import Fib
from router.core.ids_and_conditions import Condition, LinkId, RouterId
from router.core.linkstate.messages import CircuitStates
from router.dataplane.data_plane import DataPlane
from router.dataplane.links import (
    EgressCircuitLink,
    EgressDatagramLink,
    EgressLargeMessagesLink,
    IngressCircuitLink,
    IngressDatagramLink,
    IngressLargeMessagesLink,
    IngressLink,
)
from router.engine.attach_fields import link_name, new_link_name, write_termini
from router.engine.circuits import CIRCUIT, Circuits
from router.engine.connection import CIRCUITS, LSU_PUSH, NUMBERS, STREAMING_LINKS, Connection
from router.engine.control_links import ControlLinks
from router.engine.message_codec import encode_control

CONTROL: Final = "qd.router"
DATA: Final = "qd.router-data"
LINK: Final = "qdlink"
"""Beginning of the names of links to a neighbor, but for circuits."""
PRIORITIES: Final = 10
"""Number of data link pairs to a qdrouterd; between our own routers one is enough, since priority reorders nothing."""
CIRCUITS_TO: Final = local_address(CIRCUITS_ADDRESS)


@attrs.frozen
class ControlLinkView:
    """A control link, as management shows it."""

    id: int
    direction: str
    """Direction of the link, `in` or `out`."""
    handle: Handle
    name: str
    count: int
    """Number of messages on the link."""


class NeighborLinks:
    """The links of one inter-router connection."""

    def __init__(
        self,
        connection: Connection,
        data_plane: DataPlane,
        fib: Fib,
        link_ids: Iterator[int],
    ) -> None:
        self._connection = connection
        self._data_plane = data_plane
        self._ids = link_ids
        peer = connection.peer
        assert peer is not None, "the neighbor has not said who it is"
        # One of an older version announces none, and most likely has the same setting.
        most_bytes = data_plane.current_settings.forwarding.control_message_bytes
        self.control = ControlLinks(connection.port, most_bytes if peer.has(LSU_PUSH) else 0)
        self._control_ids: dict[str, tuple[Handle, int]] = {}
        self._pairs = 1 if peer.has(LSU_PUSH) else PRIORITIES
        """Number of data links each way that are there from the start; what is attached later carries large
        messages."""
        self._incoming = 0
        self.is_up = False
        """Whether both control links are attached."""
        connection.port.lead_to(
            RouterId(peer.container),
            self._close_link,
            takes_numbers=peer.has(NUMBERS),
            open_stream=self._open_stream if STREAMING_LINKS in peer.offered else None,
        )
        self.circuits: Circuits | None = None
        """Circuits of the connection; None when the neighbor takes none."""
        if peer.has(CIRCUITS):
            self.circuits = Circuits(connection, data_plane, fib, link_ids, self._tell)

    def _close_link(self, _: IngressLink, error: PeerProtocolError) -> None:
        self._connection.fail(error)

    # Attaching

    def attach_all(self) -> None:
        """Attach control and data links: the task of the side that dialled.

        Raises:
            PeerProtocolError: the connection may have fewer sessions than these need.
        """
        needed, channels = 1 + self._pairs, self._connection.channels
        if channels < needed:
            raise PeerProtocolError(
                f"links between routers need {needed} sessions, and this connection may have {channels}",
                condition=Condition.RESOURCE_LIMIT_EXCEEDED,
            )
        session = self._connection.new_session()
        self._attach(session, CONTROL, is_sender=False)
        self._attach(session, CONTROL, is_sender=True)
        for _ in range(self._pairs):
            session = self._connection.new_session()
            self._attach(session, DATA, is_sender=False)
            self._attach(session, DATA, is_sender=True)

    def _attach(self, session: Handle, capability: str, *, is_sender: bool) -> None:
        name = new_link_name(LINK).encode()
        handle = pn.pn_sender(session, name) if is_sender else pn.pn_receiver(session, name)
        self._open(handle, capability)
        self._register(handle, capability)

    def _open(self, handle: Handle, capability: str) -> None:
        if capability == CONTROL and not pn.pn_link_is_sender(handle):
            most_bytes = self._data_plane.current_settings.forwarding.control_message_bytes
            pn.pn_link_set_max_message_size(handle, most_bytes)
            self.control.announced_bytes = most_bytes
        _open(handle, capability)

    def accept(self, handle: Handle) -> None:
        """The peer attached a link, or answered one of ours.

        Raises:
            PeerProtocolError: it is no link between routers.
        """
        if pn.pn_link_state(handle) & pn.LOCAL_UNINIT:
            is_sender = pn.pn_link_is_sender(handle)
            terminus = pn.pn_link_remote_source(handle) if is_sender else pn.pn_link_remote_target(handle)
            capability = proton_data.read_single_symbol(pn.pn_terminus_capabilities(terminus))
            if capability == CIRCUIT and not is_sender and self.circuits is not None:
                self.circuits.accept(handle)
                return
            if capability not in (CONTROL, DATA):
                condition = Condition.QD_NO_ROUTE if self.is_up else Condition.QD_CONNECTION_ROLE
                raise PeerProtocolError("this listener is for routers, not for clients", condition=condition)
            if capability == CONTROL and (self.control.outgoing if is_sender else self.control.incoming):
                raise PeerProtocolError("a connection has one control link each way")
            if len(self._connection.links) >= self._data_plane.current_settings.forwarding.max_links:
                raise PeerProtocolError("too many links", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
            self._open(handle, capability)
            self._register(handle, capability)
        elif self.circuits is not None:
            self.circuits.answered(handle)
        self._look_up()

    def _register(self, handle: Handle, capability: str) -> None:
        is_sender = pn.pn_link_is_sender(handle)
        if capability == CONTROL:
            self.control.add(handle, is_sender)
        elif is_sender:
            link = EgressDatagramLink(self._new_id(), self._connection.port, handle, link_name(handle))
            self._add_egress(link)
            if len(self._connection.port.data_links) < PRIORITIES:
                self._connection.port.data_links.append(link)
        else:
            self._ingress(handle)
        self._connection.port.touch()

    def _new_id(self) -> LinkId:
        return LinkId(next(self._ids))

    def _add_egress(self, link: EgressDatagramLink) -> None:
        self._connection.add_link(link)
        self._data_plane.add_egress(link)

    def _ingress(self, handle: Handle) -> None:
        self._incoming += 1
        kind = IngressLargeMessagesLink if self._incoming > self._pairs else IngressDatagramLink
        port, window = self._connection.port, self._data_plane.current_settings.forwarding.router_window
        link = kind(self._new_id(), port, handle, link_name(handle), window=window)
        self._connection.add_link(link)
        self._data_plane.add_data_link(link)

    def _open_stream(self) -> EgressLargeMessagesLink | None:
        """One more data link, for messages whose end is not there yet; None when there are sessions for no more.

        Source: docs/reference/inter-router-protocol.md#streaming-links.
        """
        connection = self._connection
        # Of the sessions that circuits leave, a half is for the neighbor's circuits under way to us, and a quarter for
        # streams of each side: neither knows of the other's before these are there.
        reserve = connection.spared_channels
        if len(connection.port.streams) >= reserve // 2 or connection.free_channels <= reserve:
            return None
        handle = pn.pn_sender(self._connection.new_session(), new_link_name(LINK).encode())
        _open(handle, DATA)
        link = EgressLargeMessagesLink(self._new_id(), self._connection.port, handle, link_name(handle))
        self._add_egress(link)
        self._connection.port.touch()
        return link

    def _look_up(self) -> None:
        both = (self.control.incoming, self.control.outgoing)
        self.is_up = all(handle and pn.pn_link_state(handle) == pn.LOCAL_ACTIVE | pn.REMOTE_ACTIVE for handle in both)

    # Detaching

    def end_control(self, session: Handle) -> bool:
        """Forget the control links of a session that is over; whether there were any. Their handles go with it."""
        gone = self.control.of_session(session)
        for handle in gone:
            self.detach(handle)
        return bool(gone)

    def detach(self, handle: Handle) -> None:
        """The link is gone. Without a control link the neighbor is lost: `is_up` tells."""
        if self.control.has(handle):
            self.is_up = False
            self.control.remove(handle)
            return
        connection = self._connection
        link = connection.take_link(handle)
        if isinstance(link, IngressCircuitLink | EgressCircuitLink):
            assert self.circuits is not None
            self.circuits.remove(link)
        elif isinstance(link, EgressDatagramLink):
            if isinstance(link, EgressLargeMessagesLink):
                pn.pn_session_close(link.session)  # there is nothing else in it
            if link in connection.port.data_links:
                connection.port.data_links.remove(link)
            self._data_plane.remove_egress(link)
        elif isinstance(link, IngressLink):
            self._data_plane.remove_ingress(link)

    # Control messages

    def control_ends(self) -> list[ControlLinkView]:
        """Control links that are there, for management."""
        found = []
        links = self.control
        for way, handle, count in (("out", links.outgoing, links.sent), ("in", links.incoming, links.received)):
            if handle:
                known = self._control_ids.get(way)
                if known is None or known[0] != handle:  # numbers are given to those alone that somebody looks at
                    known = self._control_ids[way] = (handle, next(self._ids))
                found.append(ControlLinkView(known[1], way, handle, link_name(handle), count))
        return found

    def _tell(self, message: CircuitStates) -> None:
        # The data plane may ask for it in another connection's turn, so the fault is raised when ours comes.
        me = message.id
        if self.is_up:
            try:
                self.control.send(bytes(encode_control(CIRCUITS_TO, message, me, (me,))), may_drop=False)
            except PeerProtocolError as error:
                self._connection.fail(error)


def _open(handle: Handle, capability: str) -> None:
    """Attach a link between routers: its termini are the same from both sides, without an address."""
    for terminus in write_termini(handle):
        proton_data.write_symbol(pn.pn_terminus_capabilities(terminus), capability)
    pn.pn_link_open(handle)
