"""One AMQP connection as an engine without a socket: bytes in, bytes out, events in between.

The pump moves its bytes and tells it the time (`byte_streams.py`). `dispatch` lets the data plane handle deliveries and
flows; everything rarer goes to a `Handler`, which is also told of the end. No method waits.

Source: AMQP 1.0 part 2; part 5, 5.3 (SASL).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import cython

from mesh_config.models import ConnectionSettings, Role
from mesh_config.user_names import ANONYMOUS_USER
from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import text
from router.binding.unbind_in_thread import begin_unbinding
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition, ConnectionId
from router.core.policy.client_rights import ClientRights
from router.core.policy.denial import Denied
from router.core.policy.message_rate import MessageRate
from router.dataplane.connection_port import Port
from router.dataplane.data_plane import DataPlane
from router.dataplane.links import EgressLink, IngressLink
from router.engine.byte_streams import ANSWER_COPIES, ByteStreams
from router.engine.inflight_rpc_calls import InflightRpcCalls
from router.engine.links_awaiting_detach import ClosedLinks, UndetachedLinkCount
from router.engine.lowered_peer_credit import withdraw
from router.engine.memory_meter import ANSWER_BYTES, MemoryMeter
from router.engine.peer_identity import PeerIdentity
from router.engine.peer_open import PeerOpen, read_open
from router.guard.endpoints import default_outcome_of
from router.guard.frame_guard import FrameGuard

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import NULL, Handle, pn_event_type

SEARCHED_SESSIONS: Final = 2000
"""Number of sessions that proton searches in the time it takes to free a link. When a connection has more of them, a
thread takes them from its transport."""
LSU_PUSH: Final = "amqp-mesh.lsu-push.1"
"""Capability: link-state updates may be flooded to this router unasked.

Source: docs/reference/inter-router-protocol.md#news.
"""
CIRCUITS: Final = "amqp-mesh.circuits.1"
"""Capability: this router takes circuits.

Source: docs/reference/inter-router-protocol.md#circuits.
"""
NUMBERS: Final = "amqp-mesh.multicast-numbers.1"
"""Capability: this router takes each multicast once, by the number in its delivery-tag."""
STREAMING_LINKS: Final = "qd.streaming-links"
ANONYMOUS_RELAY: Final = "ANONYMOUS-RELAY"
MOST_SPARED: Final = 400
"""Maximum number of sessions that are spared for each kind of link between routers. As so many circuits may be
unanswered, it is below half of the refused links that a peer puts up with."""
MIN_HEARTBEAT_MS: Final = 100
"""Shortest idle-time-out of a peer that is served: heartbeats go out at twice its rate."""
MAX_UNANSWERED: Final = 20_000
"""Maximum number of Begins and Attaches whose answers the peer leaves unread. Each takes 2 to 4 kB."""
MAX_REFUSED: Final = 1000
"""Maximum number of links that were refused and that the peer never detaches."""
PROTON_BROKEN_OFF: Final = "amqp:connection:framing-error: connection aborted"
"""Text of proton's error when a peer's bytes end without a Close."""
BROKEN_OFF: Final = "broken off without a Close: its process died, or the network cut it"
"""Text that is logged in place of `PROTON_BROKEN_OFF`."""
LEAST_WINDOW_FRAMES: Final = 4
"""Minimum window of a client's session, frames, however many sessions there are."""


class Handler(Protocol):
    """Whoever owns the connections: called from `dispatch`, never during a call of its own into the engine."""

    def connection_opened(self, connection: Connection) -> None:
        """The peer's Open is there. Answer with `open`, or refuse with `close`."""

    def link_attached(self, connection: Connection, link: Handle) -> None:
        """The peer attached a link that this side has not opened, or answered one that it has."""

    def link_detached(self, connection: Connection, link: Handle, *, is_closed: bool) -> None:
        """The peer detached or closed a link."""

    def session_ended(self, connection: Connection, session: Handle) -> None:
        """The peer ended a session; its links are gone with it. When they are taken away, call `end_session`."""

    def delivery_arrived(self, connection: Connection, delivery: Handle) -> None:
        """Something happened to a delivery of a link that the data plane does not know: a control link."""

    def connection_ended(self, connection: Connection) -> None:
        """The peer closed the connection, or its bytes ended. Its links are still there to be removed."""


class Connection(ByteStreams):
    """One connection, with the `identity` of its peer; without one it speaks SASL itself, by which all are anonymous.

    It is closed when the peer has been silent for `most_silence_s`, seconds; 0 for never. Handles of its links and
    sessions are valid until `free_some`.
    """

    def __init__(
        self,
        connection_id: ConnectionId,
        settings: ConnectionSettings,
        data_plane: DataPlane,
        handler: Handler,
        touched: Callable[[Port], None],
        *,
        is_server: bool,
        identity: PeerIdentity | None = None,
        host: str = "",
        since: float = 0.0,
        connector: int = 0,
        most_silence_s: float,
    ) -> None:
        channel_max = min(settings.max_sessions - 1, 32767)
        guard = FrameGuard(is_server=is_server, max_frame_bytes=settings.max_frame_bytes, channel_max=channel_max)
        super().__init__(guard)
        self.id = connection_id
        self.settings = settings
        self.port = port = Port(connection_id, touched, functools.partial(withdraw, self._transport, self._guard))
        self.is_server, self.identity = is_server, identity
        self.peer: PeerOpen | None = None
        self.links: dict[int, IngressLink | EgressLink] = {}
        """Links of messages, by the address of their handle; see `add_link` and `take_link`."""
        self.rights: ClientRights | None = None
        """Policy for the client; None where there is no policy, and for neighbors."""
        self.rate: MessageRate | None = None
        """Maximum rate at which the client's messages are read; None for no bound."""
        self.is_denied = False
        """Whether policy refused the client."""
        self.publishers = 0
        """Number of links on which the peer sends messages."""
        self._most_sessions = 0
        self._session_links: dict[int, dict[int, IngressLink | EgressLink]] = {}
        self.host, self.since, self.connector = host, since, connector
        """Host and port of the peer, for management; time at which the socket was there, seconds; number of the
        connector among those of this router, 0 where the peer has dialled."""
        self.refused = UndetachedLinkCount()
        self.was_of_use = False
        """Whether the peer's Open has come, or, of a neighbor, a control message."""
        self.told_refusal = ""
        """Reason why the last link was refused."""
        self.closed_links = ClosedLinks()
        """Links that this side has closed for a fault: what still comes on them is thrown away."""
        self._sessions: dict[Handle, bool] = {}  # whether it has had a link
        """Sessions that have begun, and so have a channel."""
        self.weight, self._unanswered = MemoryMeter(port, self.links, self._sessions), InflightRpcCalls()
        self._failure: PeerProtocolError | None = None
        self._after_end = 0
        """Number of Begins and Attaches that came after the end."""
        self._unbinding: threading.Thread | None = None
        """Thread that takes the transport from the sessions, when there are very many."""
        self._is_unbound = False
        """Whether the connection's parts are being freed."""
        self._next_link: Handle = NULL
        """Next link to be freed."""
        self._data_plane = data_plane
        self._handler = handler
        self._bind(settings, channel_max, most_silence_s)

    def _bind(self, settings: ConnectionSettings, channel_max: int, most_silence_s: float) -> None:
        self._collector = pn.pn_collector()
        self._connection = pn.pn_connection()
        pn.pn_connection_collect(self._connection, self._collector)
        if self.is_server:
            pn.pn_transport_set_server(self._transport)
        if self.identity is None:
            # A server that does not require authentication recognises a peer without a SASL layer by its header.
            sasl = pn.pn_sasl(self._transport)
            pn.pn_sasl_allowed_mechs(sasl, b"ANONYMOUS")
        else:
            self._guard.is_sasl_done = True
        pn.pn_transport_require_auth(self._transport, False)
        pn.pn_transport_set_max_frame(self._transport, settings.max_frame_bytes)
        pn.pn_transport_set_channel_max(self._transport, channel_max)
        pn.pn_transport_set_idle_timeout(self._transport, int(most_silence_s * 1000))
        pn.pn_transport_bind(self._transport, self._connection)

    # Opening and closing

    def open(
        self, container: str, *, hostname: str | None = None, properties: Mapping[str, object], version: str
    ) -> None:
        """Send our Open. *properties* are added to the ones that every connection carries."""
        connection = self._connection
        pn.pn_connection_set_container(connection, container.encode())
        if hostname is not None:
            pn.pn_connection_set_hostname(connection, hostname.encode())
        capabilities: tuple[str, ...] = (ANONYMOUS_RELAY,)
        own: dict[str, object] = {"product": "amqp-mesh", "version": version, "qd.conn-id": int(self.id)}
        if self.settings.role is Role.INTER_ROUTER:
            capabilities = (ANONYMOUS_RELAY, STREAMING_LINKS, LSU_PUSH, CIRCUITS, NUMBERS)
            own["qd.annotations-version"] = 1
            if self.settings.cost > 1:
                own["qd.inter-router-cost"] = self.settings.cost
        proton_data.write_symbols(pn.pn_connection_offered_capabilities(connection), capabilities)
        proton_data.write_symbols(pn.pn_connection_desired_capabilities(connection), capabilities)
        proton_data.write_map(pn.pn_connection_properties(connection), {**own, **properties})
        pn.pn_connection_open(connection)
        if self.is_server:  # else it is written after the SASL layer, whenever that is
            self._owe_frame()
        self.port.touch()

    def take_settings(self, settings: ConnectionSettings) -> None:
        """Go by other settings of the same listener or connector: those that count while a connection is open."""
        self.settings = settings

    def note_use(self) -> None:
        """Note that the peer's Open has come, or, of a neighbor, a control message that is understood."""
        self.was_of_use = True

    def note_refusal(self, reason: str) -> bool:
        """Note why a link is refused. Returns: whether the one before had another reason."""
        is_new, self.told_refusal = reason != self.told_refusal, reason
        return is_new

    def deny(self, denied: Denied) -> None:
        """Close it, since policy refuses the client."""
        self.is_denied = True
        self.close(denied.condition, str(denied))
        self.end()

    def permit(self, rights: ClientRights, rate: MessageRate | None) -> None:
        """Let a client have what policy gives it: before `open`, which announces the bounds.

        Args:
            rights: its.
            rate: of the messages that are read; None for no bound.
        """
        self.rights = rights
        self.rate = rate
        group = rights.group
        if group.max_sessions:
            self._most_sessions = group.max_sessions
            channel_max = min(group.max_sessions, self.settings.max_sessions) - 1
            pn.pn_transport_set_channel_max(self._transport, min(channel_max, 32767))
        if group.max_frame_bytes:
            most = min(group.max_frame_bytes, self.settings.max_frame_bytes)
            pn.pn_transport_set_max_frame(self._transport, most)
            self._guard.limit_frames(most)

    def close(self, condition: Condition | None = None, description: str = "") -> None:
        """Send Close, with an error if there is one. Bytes are still to be written afterwards."""
        state = pn.pn_connection_state(self._connection)
        if state & pn.LOCAL_CLOSED:
            return
        if condition is not None:
            proton_data.set_condition(pn.pn_connection_condition(self._connection), condition, description)
        if state & pn.LOCAL_UNINIT:
            pn.pn_connection_open(self._connection)  # a Close needs an Open before it
        pn.pn_connection_close(self._connection)
        self.is_closing = True
        self.port.touch()

    @property
    def is_closed_by_peer(self) -> bool:
        """Whether the peer's Close has come."""
        return bool(pn.pn_connection_state(self._connection) & pn.REMOTE_CLOSED)

    def give_up(self, reason: str) -> None:
        """End it without a word: the engine could not write one."""
        self.end_because(reason)
        self.received_end()
        self.sent_end()
        self.port.touch()

    def fail(self, error: PeerProtocolError) -> None:
        """Have `dispatch` raise *error*: for a fault of the peer that is found in another connection's turn."""
        self._failure = self._failure or error
        self.port.touch()

    # Sessions

    def new_session(self, *, begins: bool = True) -> Handle:
        """A session of our own; for one that does not begin at once, `begin` follows."""
        session: Handle = pn.pn_session(self._connection)
        if begins:
            self.begin(session)
        return session

    def begin(self, session: Handle) -> None:
        """Send Begin."""
        self._sessions[session] = False
        frames = self._data_plane.session_window_frames
        if self.settings.role is not Role.INTER_ROUTER:  # what many sessions may send unread is bounded together
            room = self._data_plane.session_windows_bytes // (self.settings.max_frame_bytes * len(self._sessions))
            frames = min(frames, max(LEAST_WINDOW_FRAMES, room))
        pn.pn_session_set_incoming_window_and_lwm(session, frames, (frames + 1) // 2)
        pn.pn_session_open(session)
        self.port.touch()

    def end_session(self, session: Handle) -> None:
        """Answer an End: no handle of the session or its links may be used any more."""
        self.closed_links.end_session(session)  # some may have been closed while others were taken away
        self.refused.end_session(session)
        pn.pn_session_close(session)
        if self._sessions.pop(session, False):
            # Proton may hold a message that was written in part: if it let go of it after the session, it would free
            # the link twice. Sessions that begin and end in one read, without links, are answered together.
            pn.pn_transport_pending(self._transport)
        pn.pn_session_free(session)
        self.port.lost_bytes.pop(session, None)
        self.port.touch()

    @property
    def peer_frame_bytes(self) -> int:
        """Maximum size of a frame that the peer takes, bytes."""
        return self._guard.peer_frame_bytes

    @property
    def channels(self) -> int:
        """Sessions that both sides together may have; known once the peer's Open is there."""
        return int(pn.pn_transport_get_channel_max(self._transport)) + 1

    @property
    def free_channels(self) -> int:
        """Channels that no session has. Proton falls silent for good when one begins beyond them."""
        return self.channels - len(self._sessions)

    @property
    def spared_channels(self) -> int:
        """Number of channels that circuits leave for others under way, and as many again for streams.

        Both ends of a connection come to the same number.
        """
        return min(MOST_SPARED, self.channels // 8)

    # Links

    def add_link(self, link: IngressLink | EgressLink) -> None:
        """A link of messages is attached."""
        key = link.handle
        self.publishers += isinstance(link, IngressLink)
        self.links[key] = self._session_links.setdefault(link.session, {})[key] = link

    def take_link(self, handle: Handle) -> IngressLink | EgressLink | None:
        """A link of messages is gone: the link, None when there is none with this handle."""
        key = handle
        link = self.links.pop(key, None)
        if link is not None:
            self.publishers -= isinstance(link, IngressLink)
            self._unanswered.end_link(link)
            session = link.session
            siblings = self._session_links[session]
            del siblings[key]
            if not siblings:
                del self._session_links[session]
        return link

    def count_unanswered_requests(self) -> int:
        """Requests of its client that were accepted and may still be answered (`inflight_rpc_calls.py`)."""
        return self._unanswered.count(self.links.values())

    def count_links(self, session: Handle) -> int:
        """Links of messages of a session."""
        return len(self._session_links.get(session, ()))

    def links_of(self, session: Handle) -> list[IngressLink | EgressLink]:
        """The links of messages of a session."""
        return list(self._session_links.get(session, {}).values())

    # Who the peer is

    @property
    def user(self) -> str:
        """Authenticated user, `anonymous` when there is none."""
        return self.identity.user if self.identity is not None else ANONYMOUS_USER

    @property
    def is_authenticated(self) -> bool:
        """Whether the peer said who it is, if only that it is anonymous."""
        if self.identity is not None:
            return self.identity.mechanism is not None
        return self.sasl_mechanism is not None and bool(pn.pn_transport_is_authenticated(self._transport))

    @property
    def sasl_mechanism(self) -> str | None:
        """SASL mechanism that was used; None without a SASL layer."""
        if self.identity is not None:
            return self.identity.mechanism
        return text(pn.pn_sasl_get_mech(pn.pn_sasl(self._transport)))

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is in use."""
        return self.identity is not None and self.identity.tls_version is not None

    # Events

    def dispatch(self) -> None:
        """Handle everything that the bytes of the peer, or this process, have caused on the connection.

        Raises:
            PeerProtocolError: the connection is to be closed with it.
        """
        if self._failure is not None and not self.is_ending:
            raise self._failure
        reader = self._data_plane.reader
        before = reader.sent()
        while True:
            event: Handle = reader.pump(self._collector)
            if event == NULL:
                self._copies += reader.sent() - before
                if self._violation is not None and not self.is_ending:
                    raise self._violation
                return
            self._handle(pn_event_type(event), event)

    def _handle(self, kind: int, event: Handle) -> None:
        if self._is_to_be_answered(kind, event):
            self._count_unanswered()
        if self.is_ending:
            return  # what the peer wrote before it has read our Close, or behind its own, changes nothing any more
        handler = self._handler
        if kind == pn.LINK_REMOTE_OPEN:
            link = pn.pn_event_link(event)
            session = pn.pn_link_session(link)
            if session in self._sessions:
                self._sessions[session] = True
            handler.link_attached(self, link)
        elif kind == pn.LINK_REMOTE_CLOSE:
            handler.link_detached(self, pn.pn_event_link(event), is_closed=True)
        elif kind == pn.LINK_REMOTE_DETACH:
            handler.link_detached(self, pn.pn_event_link(event), is_closed=False)
        elif kind == pn.DELIVERY:
            handler.delivery_arrived(self, pn.pn_event_delivery(event))
        elif kind == pn.SESSION_REMOTE_OPEN:
            session = pn.pn_event_session(event)
            if pn.pn_session_state(session) & pn.LOCAL_UNINIT:
                if self._most_sessions and len(self._sessions) >= self._most_sessions:
                    raise PeerProtocolError(
                        f"more than {self._most_sessions} session{'' if self._most_sessions == 1 else 's'}",
                        condition=Condition.RESOURCE_LIMIT_EXCEEDED,
                    )
                self.begin(session)
        elif kind == pn.SESSION_REMOTE_CLOSE:
            session = pn.pn_event_session(event)
            handler.session_ended(self, session)
        elif kind == pn.CONNECTION_REMOTE_OPEN:
            self._opened()
        elif kind == pn.TRANSPORT_ERROR:
            self._note_broken_transport()
        elif kind in (pn.CONNECTION_REMOTE_CLOSE, pn.TRANSPORT_CLOSED):
            self.end()

    def _is_to_be_answered(self, kind: int, event: Handle) -> bool:
        """Whether it is a Begin or an Attach, and no answer to one of ours."""
        if kind == pn.SESSION_REMOTE_OPEN:
            return bool(pn.pn_session_state(pn.pn_event_session(event)) & pn.LOCAL_UNINIT)
        if kind == pn.LINK_REMOTE_OPEN:
            return bool(pn.pn_link_state(pn.pn_event_link(event)) & pn.LOCAL_UNINIT)
        return False

    def _opened(self) -> None:
        if self.peer is not None:
            raise PeerProtocolError("a second Open", condition=Condition.FRAMING_ERROR)
        self.peer = read_open(self._connection)
        if 0 < pn.pn_transport_get_remote_idle_timeout(self._transport) < MIN_HEARTBEAT_MS:
            raise PeerProtocolError(  # AMQP part 2, 2.4.5: close when it cannot be met
                f"an idle-time-out below {MIN_HEARTBEAT_MS} ms", condition=Condition.RESOURCE_LIMIT_EXCEEDED
            )
        self._handler.connection_opened(self)

    def _count_unanswered(self) -> None:
        if self.peer is None:
            # Neither its role nor its virtual host is known. Proton lets this pass, and writes no Close before an Open.
            self.end_because("a frame before Open")
            self.received_end()
            self.end()
            return
        self._owe_frame()
        self._copies += ANSWER_COPIES
        self._after_end += self.is_ending
        if not self.is_ending:
            if self.unanswered > MAX_UNANSWERED:
                raise PeerProtocolError("too many answers unread", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
            if self.refused.count > MAX_REFUSED:
                raise PeerProtocolError("too many refused links", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        elif self._after_end > MAX_REFUSED:
            self.received_end()  # it does not hear that it is closed either

    def end(self) -> None:
        """The connection is over for the router: report it once, and answer a Close."""
        if self.is_ending:
            return
        self.is_ending = True
        self._note_broken_transport()  # proton tells that it is closed before why, where writing has failed first
        if not self.end_reason:
            condition = proton_data.read_condition(pn.pn_connection_remote_condition(self._connection))
            self.end_because(condition or self._end_in_order())
        self._handler.connection_ended(self)
        self.close()

    def _note_broken_transport(self) -> None:
        """Take the reason of proton's transport, if it has one and no other is known."""
        found = proton_data.read_condition(pn.pn_transport_condition(self._transport))
        self.end_because(BROKEN_OFF if found == PROTON_BROKEN_OFF else found)

    def _end_in_order(self) -> str:
        """Say in words which side ended it, where nothing was at fault."""
        connection = self._connection
        if not pn.pn_connection_state(connection) & pn.LOCAL_CLOSED:
            return "the other side closed it in order"
        own = proton_data.read_condition(pn.pn_connection_condition(connection))
        return f"this router closed it: {own}" if own else "this router closed it in order"

    def free_some(self, most: int) -> bool:
        """Give at most *most* links or sessions back to proton. No handle may be used any more.

        One of very many sessions counts for several links, since proton looks for it among all. Before the first of
        these is freed a thread has to end, meanwhile nothing is.

        Returns: whether that was the last of it; then this must not be called again.
        """
        connection = self._connection
        if not self._is_unbound:
            if len(self._sessions) > SEARCHED_SESSIONS:
                self._unbinding = self._unbinding or begin_unbinding(self._transport)
                if self.is_unbinding():
                    return False
            self._is_unbound = True
            pn.pn_transport_unbind(self._transport)  # which finds nothing to do behind the thread
            pn.pn_transport_free(self._transport)
            pn.pn_collector_free(self._collector)
            self._next_link = pn.pn_link_head(connection, 0)
        left = most
        while left > 0:
            link = self._next_link
            if link != NULL:
                self._next_link = pn.pn_link_next(link, 0)  # the head of all is found by way of the sessions
                pn.pn_link_free(link)
                left -= 1
                continue
            session = pn.pn_session_head(connection, 0)
            if session == NULL:
                pn.pn_connection_free(connection)
                return True
            pn.pn_session_free(session)
            left -= 1 + len(self._sessions) // SEARCHED_SESSIONS
        return False

    def is_unbinding(self) -> bool:
        """Whether `free_some` has to wait for a thread."""
        return self._unbinding is not None and self._unbinding.is_alive()

    def default_outcome(self, name: str) -> tuple[int, bool, bool] | None:
        """The default outcome of a receiver's link that isn't answered yet, by its name; None for none.

        Returns: a state, and delivery-failed and undeliverable-here of a MODIFIED.
        """
        guard = self._guard
        return default_outcome_of(guard.receivers, name.encode()) if guard.has_default_outcomes else None

    def weigh(self) -> None:
        """Count what is held because of its peer, and tell its port."""
        guard = self._guard
        answers = ANSWER_BYTES * self.unanswered + guard.asked_bytes + self.unwritten_bytes()
        self.moved_bytes = 0
        self.weight.count(answers + 2 * guard.attach_bytes)  # theirs, and ours that repeats it
