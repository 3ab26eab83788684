"""One AMQP connection as an engine without a socket: bytes in, bytes out, events in between.

The pump feeds it (`tail`, `received`), empties it (`head`, `sent`) and tells it the time (`tick`). `dispatch` lets the
relay handle deliveries and flows; everything rarer goes to a `Handler`, which is also told of the end. No method waits.

Source: AMQP 1.0 part 2; part 5, 5.3 (SASL).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final, Protocol

import cython

from mesh_config.models import LinkSettings, Role
from router.binding import data
from router.binding import handles as pn
from router.binding.handles import text
from router.core.errors import RemoteProtocolError
from router.core.terms import Condition, ConnectionId
from router.dataplane.interface import DataPlane, EgressLink, IngressLink, Port
from router.engine.peer_open import PeerOpen, read_open
from router.engine.withdrawal import withdraw
from router.guard.frame_guard import FrameGuard

if not cython.compiled:  # else they come by the .pxd
    from router.binding.handles import (
        NULL,
        Handle,
        bytes_at,
        pn_event_type,
        pn_transport_capacity,
        pn_transport_closed,
        pn_transport_get_frames_input,
        pn_transport_head,
        pn_transport_pending,
        pn_transport_pop,
        pn_transport_process,
        pn_transport_tail,
        pni_transport_grow_capacity,
        push,
        read_tail,
        write_head,
    )

LSU_PUSH: Final = "amqp-mesh.lsu-push.1"
"""Capability: link-state updates may be flooded to this router unasked (design, section 4)."""
CIRCUITS: Final = "amqp-mesh.circuits.1"
"""Capability: this router takes circuits (design, section 6)."""
NUMBERS: Final = "amqp-mesh.multicast-numbers.1"
"""Capability: this router takes each multicast once, by the number in its delivery-tag."""
STREAMING_LINKS: Final = "qd.streaming-links"
ANONYMOUS_RELAY: Final = "ANONYMOUS-RELAY"
MIN_HEARTBEAT_MS: Final = 100
"""Shortest idle-time-out of a peer that is served: heartbeats go out at twice its rate."""
MAX_UNANSWERED: Final = 20_000
"""Begins and Attaches whose answers the peer leaves unread. Each takes 2 to 4 kB."""
MAX_REFUSED: Final = 1000
"""Links that were refused and that the peer never detaches."""
MAX_SESSION_LINKS: Final = 8192
"""Links of one session: proton takes time by the square of their number, half a second for so many."""


LEAST_PIECE_BYTES: Final = 4096
MOST_PIECE_BYTES: Final = 65536
PIECE_FRAMES: Final = 16
"""So many frames are read at once, as far as one can tell from those before, within these bounds: the receiver of small
messages works on the first ones, and grants credit anew, while the router still reads. All of what a socket has at
once is a little cheaper, and in a window of 250 messages everybody waits for somebody."""
PIECE_COPIES: Final = 2048
"""Of messages to many subscribers no more are read at once than will cause so many copies, as far as one can tell from
those before, so that others have their turn."""
LEAST_FAIR_PIECE_BYTES: Final = 256
"""What is read at once even then."""
LARGE_BYTES: Final = 16_000
"""What is written at once and is as large may be followed by more: the kernel is told to wait for it."""
MANY_COPIES: Final = 64
"""Others go before a connection that has caused so many by one piece."""


class Handler(Protocol):
    """Whoever owns the connections: called from `dispatch`, never during a call of its own into the engine."""

    def connection_opened(self, connection: Connection) -> None:
        """The peer's Open is there. Answer with `open`, or refuse with `close`."""

    def link_attached(self, connection: Connection, link: Handle) -> None:
        """The peer attached a link that this side has not opened, or answered one that it has."""

    def link_detached(self, connection: Connection, link: Handle, *, is_closed: bool) -> None:
        """The peer detached or closed a link."""

    def session_ended(self, connection: Connection, session: Handle) -> None:
        """The peer ended a session; its links are gone with it."""

    def delivery_arrived(self, connection: Connection, delivery: Handle) -> None:
        """Something happened to a delivery of a link that the relay does not know: a control link."""

    def connection_ended(self, connection: Connection) -> None:
        """The peer closed the connection, or its bytes ended. Its links are still there to be removed."""


class Connection:
    """One connection. Handles of its links and sessions are valid until `free`."""

    def __init__(
        self,
        connection_id: ConnectionId,
        settings: LinkSettings,
        relay: DataPlane,
        handler: Handler,
        port: Port,
        *,
        is_server: bool,
    ) -> None:
        self.id = connection_id
        self.settings = settings
        self.port = port
        self.is_server = is_server
        self.peer: PeerOpen | None = None
        self.links: dict[int, IngressLink | EgressLink] = {}
        """Its data links, by the address of their handle; see `add_link` and `take_link`."""
        self._session_links: dict[int, dict[int, IngressLink | EgressLink]] = {}
        self.host = ""
        """Host and port of the peer, for management."""
        self.since = 0.0
        """When its socket was there, seconds."""
        self.is_ending = False
        """Its end was reported; only bytes are still to be written."""
        self.is_closing = False
        """Our Close is on its way."""
        self.fault: str | None = None
        """Why the connection failed, as proton says it."""
        self._piece = LEAST_PIECE_BYTES
        """What is read at once, bytes,"""
        self._fair_piece = MOST_PIECE_BYTES
        """and at most, for the sake of others."""
        self._count = 0
        """What was read last, bytes."""
        self._may_have_more = False
        """It was as much as was to be read at once."""
        self._copies = 0
        """Messages that have left because of that."""
        self.refused = 0
        """Links that were refused and that the peer has not detached yet."""
        self.closed_links: set[Handle] = set()
        """Those that were attached once: what still comes on them is thrown away."""
        self._sessions = 0
        """Sessions that have begun, and so have a channel."""
        self._failure: RemoteProtocolError | None = None
        self._after_end = 0
        """Begins and Attaches that came after the end."""
        self._unanswered = 0
        """Begins and Attaches of the peer since everything was written,"""
        self._frames_before = 0
        """and the frames written before them."""
        self._relay = relay
        self._handler = handler
        self._collector = pn.pn_collector()
        self._connection = pn.pn_connection()
        pn.pn_connection_collect(self._connection, self._collector)
        self._transport = pn.pn_transport()
        self._violation: RemoteProtocolError | None = None
        """What the guard has found."""
        self._bind(settings)

    def _bind(self, settings: LinkSettings) -> None:
        channel_max = min(settings.max_sessions - 1, 32767)
        max_frame = settings.max_frame_bytes
        self._guard = FrameGuard(is_server=self.is_server, max_frame_bytes=max_frame, channel_max=channel_max)
        self.port.withdraw = functools.partial(withdraw, self._transport, self._guard)
        if self.is_server:
            pn.pn_transport_set_server(self._transport)
        # A server that does not require authentication recognises a peer without a SASL layer by its header.
        sasl = pn.pn_sasl(self._transport)
        pn.pn_sasl_allowed_mechs(sasl, b"ANONYMOUS")
        pn.pn_transport_require_auth(self._transport, False)
        pn.pn_transport_set_max_frame(self._transport, settings.max_frame_bytes)
        pn.pn_transport_set_channel_max(self._transport, channel_max)
        pn.pn_transport_set_idle_timeout(self._transport, int(settings.idle_timeout_s * 1000))
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
        data.write_symbols(pn.pn_connection_offered_capabilities(connection), capabilities)
        data.write_symbols(pn.pn_connection_desired_capabilities(connection), capabilities)
        data.write_map(pn.pn_connection_properties(connection), {**own, **properties})
        pn.pn_connection_open(connection)
        if self.is_server:  # else it is written after the SASL layer, whenever that is
            self._owe_frame()
        self.port.touch()

    def close(self, condition: Condition | None = None, description: str = "") -> None:
        """Send Close, with an error if there is one. Bytes are still to be written afterwards."""
        state = pn.pn_connection_state(self._connection)
        if state & pn.LOCAL_CLOSED:
            return
        if condition is not None:
            data.set_condition(pn.pn_connection_condition(self._connection), condition, description)
        if state & pn.LOCAL_UNINIT:
            pn.pn_connection_open(self._connection)  # a Close needs an Open before it
        pn.pn_connection_close(self._connection)
        self.is_closing = True
        self.port.touch()

    def fail(self, error: RemoteProtocolError) -> None:
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
        self._sessions += 1
        frames = self._relay.session_window_frames
        pn.pn_session_set_incoming_window_and_lwm(session, frames, (frames + 1) // 2)
        pn.pn_session_open(session)
        self.port.touch()

    @property
    def channels(self) -> int:
        """Sessions that both sides together may have; known once the peer's Open is there."""
        return int(pn.pn_transport_get_channel_max(self._transport)) + 1

    @property
    def free_channels(self) -> int:
        """Channels that no session has. Proton falls silent for good when one begins beyond them."""
        return self.channels - self._sessions

    # Links

    def add_link(self, link: IngressLink | EgressLink) -> None:
        """A data link is attached."""
        key = link.handle
        self.links[key] = self._session_links.setdefault(link.session, {})[key] = link

    def take_link(self, handle: Handle) -> IngressLink | EgressLink | None:
        """A data link is gone: the link, None when there is none with this handle."""
        key = handle
        link = self.links.pop(key, None)
        if link is not None:
            session = link.session
            siblings = self._session_links[session]
            del siblings[key]
            if not siblings:
                del self._session_links[session]
        return link

    def count_links(self, session: Handle) -> int:
        """Data links of a session."""
        return len(self._session_links.get(session, ()))

    def links_of(self, session: Handle) -> list[IngressLink | EgressLink]:
        """The data links of a session."""
        return list(self._session_links.get(session, {}).values())

    # Bytes and time

    def capacity(self) -> int:
        """Bytes that can be fed now; negative when no more are wanted."""
        return int(pn_transport_capacity(self._transport))

    def tail(self, size: int) -> memoryview:
        """Where to put the next *size* bytes, at most `capacity`; then call `received`."""
        return pn.memory_at(pn_transport_tail(self._transport), size)

    def received(self, size: int) -> None:
        """So many bytes stand in `tail`. What they cause is handled by `dispatch`."""
        self._take(size)

    def _take(self, size: int) -> None:
        """Let the engine have what stands in its buffer, as far as the guard lets it pass."""
        guard = self._guard
        tail = pn_transport_tail(self._transport)
        kept = guard.kept
        passed = guard.feed(bytes_at(tail - kept, kept + size), kept + size) - kept
        for at, right in guard.corrections:
            pn.memory_at(tail - kept + at, len(right))[:] = right
        if guard.is_broken:
            self._break(passed)
            return
        pn_transport_process(self._transport, size)
        end = pn_transport_tail(self._transport)
        if end != NULL and end != tail - kept + guard.kept and pn_transport_capacity(self._transport) >= 0:
            # The guard would look at what isn't there.
            self._violation = RemoteProtocolError("the engine lost count", condition=Condition.INTERNAL_ERROR)
            pn.report_error(self._transport, str(Condition.INTERNAL_ERROR), "the engine lost count")

    def _break(self, passed: int) -> None:
        """Take no more from a peer that has violated the protocol, and tell it so."""
        guard = self._guard
        if passed > 0:
            pn_transport_process(self._transport, passed)
        if self._violation is not None:
            return
        self.fault = self.fault or guard.description
        self._violation = RemoteProtocolError(guard.description, condition=Condition(guard.condition))
        if guard.is_header_wrong:
            # The answer is the header that is served here, and then the end. The engine must not take it for TLS.
            pn.memory_at(pn_transport_tail(self._transport), 8)[:] = 8 * b"\xff"
            pn_transport_process(self._transport, 8)
        else:
            pn.report_error(self._transport, guard.condition, guard.description)

    def fill(self, fd: int) -> int:
        """Read a piece from a non-blocking socket; what that causes is handled by `dispatch`.

        Returns: bytes read; 0 when the peer has ended; -1 when nothing was there; below that an error, as `-1 - errno`.
        """
        fair = 2 * self._fair_piece  # what says nothing of copies, such as flows, must not hide what follows it
        if self._copies:
            fair = min(fair, PIECE_COPIES * self._count // self._copies)
        self._fair_piece = min(MOST_PIECE_BYTES, max(LEAST_FAIR_PIECE_BYTES, fair))
        self._copies = 0
        before = pn_transport_get_frames_input(self._transport)
        most = min(self._piece, self._fair_piece)
        count = self._read(fd, most)
        if count > 0:
            frames = pn_transport_get_frames_input(self._transport) - before
            self._piece = min(MOST_PIECE_BYTES, max(LEAST_PIECE_BYTES, PIECE_FRAMES * count // max(1, frames)))
            self._count = count
        self._may_have_more = count == most
        return count

    def _read(self, fd: int, most: int) -> int:
        """Read until nothing more is there, or *most* bytes, straight into the engine's buffer.

        The buffer of a connection that fills it grows, up to the largest frame. Returns: as `fill`.
        """
        total = 0
        while total < most:
            capacity = pn_transport_capacity(self._transport)
            if capacity <= 0:
                break
            size = min(capacity, most - total)
            count = read_tail(self._transport, fd, size)
            if count <= 0:
                return total or count
            self._take(count)
            total += count
            if count == capacity:
                pni_transport_grow_capacity(self._transport, 2 * capacity)
            if count < size:
                break
        return total

    def is_heavy(self) -> bool:
        """Whether others go before it: there is more to read than was read last, or that has caused many copies."""
        return self._may_have_more or self._copies >= MANY_COPIES

    def empty(self, fd: int, most: int) -> int:
        """Write what is pending to a non-blocking socket, straight from the engine's buffer.

        Args:
            most: bytes after which no further piece is written.
        Returns: bytes written when these were all; -1 when there are more than the kernel takes now, or than *most*; -2
            when nothing will ever be written again; below that an error, as `-2 - errno`.
        """
        count = self._write(fd, most)
        if count >= 0 and self._has_more_to_say():
            more = self._write(fd, most)
            count = count + more if more >= 0 else more
        return count

    def _write(self, fd: int, most: int) -> int:
        total = 0
        is_held = False
        while True:
            size = pn_transport_pending(self._transport)
            if size <= 0:
                total = total if size == 0 else -2
                break
            if total >= most:
                total = -1
                break
            count = write_head(self._transport, fd, size)
            if count < 0:
                total = -1 if count == -1 else count - 1
                break
            is_held = size >= LARGE_BYTES
            self.sent(count)
            total += count
        if is_held:
            push(fd)
        return total

    def received_end(self) -> None:
        """The peer sends nothing more."""
        pn.pn_transport_close_tail(self._transport)

    def pending(self) -> int:
        """Bytes that wait to be written; negative when nothing will ever be written again."""
        size = int(pn_transport_pending(self._transport))
        if size == 0 and self._has_more_to_say():
            size = int(pn_transport_pending(self._transport))
        return size

    def _has_more_to_say(self) -> bool:
        """Whether there may be more to write, now that everything is written."""
        if not self._unanswered and not self._guard.has_questions:
            return False
        if self._unanswered:
            self._check_answers()
        if self._guard.has_questions and not self.is_closing:
            for channel, body in self._guard.answers():
                pn.send_frame(self._transport, channel, body)
        return True

    def _owe_frame(self) -> None:
        if not self._unanswered:
            self._frames_before = self._frames_written()
        self._unanswered += 1

    def _check_answers(self) -> None:
        """Everything is written: see that the answers are among it.

        When one would be beyond the peer's handle-max, or the channel-max, proton writes nothing any more and tells
        nobody. Such a connection would take messages for ever and pass on none.
        """
        if self._frames_written() - self._frames_before < self._unanswered and not self.is_ending:
            self.fault = "answers beyond handle-max or channel-max"
            self.received_end()
        self._unanswered = 0

    def _frames_written(self) -> int:
        return int(pn.pn_transport_get_frames_output(self._transport))

    def head(self, size: int) -> memoryview:
        """The first *size* pending bytes; then call `sent`."""
        return pn.memory_at(pn_transport_head(self._transport), size)

    def sent(self, size: int) -> None:
        """So many of them are written."""
        self._guard.own.watch(bytes_at(pn_transport_head(self._transport), size), size)
        pn_transport_pop(self._transport, size)

    def sent_end(self) -> None:
        """Nothing more can be written."""
        pn.pn_transport_close_head(self._transport)

    def tick(self, now: float) -> float | None:
        """Heartbeats and idle timeout. Returns when to call again, seconds on the same clock, or None."""
        deadline = pn.pn_transport_tick(self._transport, max(1, round(now * 1000)))
        return deadline / 1000 if deadline else None

    @property
    def is_closed(self) -> bool:
        """Whether both directions have ended."""
        return bool(pn_transport_closed(self._transport))

    @property
    def user(self) -> str:
        """Authenticated user, `anonymous` when there is none."""
        return text(pn.pn_transport_get_user(self._transport)) or "anonymous"

    @property
    def is_authenticated(self) -> bool:
        """Whether the peer said who it is, if only that it is anonymous."""
        return self.sasl_mechanism is not None and bool(pn.pn_transport_is_authenticated(self._transport))

    @property
    def sasl_mechanism(self) -> str | None:
        """SASL mechanism that was used; None without a SASL layer."""
        return text(pn.pn_sasl_get_mech(pn.pn_sasl(self._transport)))

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is in use."""
        return bool(pn.pn_transport_is_encrypted(self._transport))

    # Events

    def dispatch(self) -> None:
        """Handle everything that the bytes of the peer, or this process, have caused on the connection.

        Raises:
            RemoteProtocolError: the connection is to be closed with it.
        """
        if self._failure is not None and not self.is_ending:
            raise self._failure
        relay = self._relay
        before = relay.sent()
        while True:
            event: Handle = relay.pump(self._collector)
            if event == NULL:
                self._copies += relay.sent() - before
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
            handler.link_attached(self, pn.pn_event_link(event))
        elif kind == pn.LINK_REMOTE_CLOSE:
            handler.link_detached(self, pn.pn_event_link(event), is_closed=True)
        elif kind == pn.LINK_REMOTE_DETACH:
            handler.link_detached(self, pn.pn_event_link(event), is_closed=False)
        elif kind == pn.DELIVERY:
            handler.delivery_arrived(self, pn.pn_event_delivery(event))
        elif kind == pn.SESSION_REMOTE_OPEN:
            session = pn.pn_event_session(event)
            if pn.pn_session_state(session) & pn.LOCAL_UNINIT:
                self.begin(session)
        elif kind == pn.SESSION_REMOTE_CLOSE:
            session = pn.pn_event_session(event)
            handler.session_ended(self, session)
            pn.pn_session_close(session)
            pn.pn_session_free(session)
            self.port.lost_bytes.pop(session, None)
            self._sessions -= 1
        elif kind == pn.CONNECTION_REMOTE_OPEN:
            self._opened()
        elif kind == pn.TRANSPORT_ERROR:
            self.fault = self.fault or data.read_condition(pn.pn_transport_condition(self._transport))
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
            raise RemoteProtocolError("a second Open", condition=Condition.FRAMING_ERROR)
        self.peer = read_open(self._connection)
        if 0 < pn.pn_transport_get_remote_idle_timeout(self._transport) < MIN_HEARTBEAT_MS:
            raise RemoteProtocolError(  # AMQP part 2, 2.4.5: close when it cannot be met
                f"an idle-time-out below {MIN_HEARTBEAT_MS} ms", condition=Condition.RESOURCE_LIMIT_EXCEEDED
            )
        self._handler.connection_opened(self)

    def _count_unanswered(self) -> None:
        if self.peer is None:
            # Neither its role nor its virtual host is known. Proton lets this pass, and writes no Close before an Open.
            self.fault = "a frame before Open"
            self.received_end()
            self.end()
            return
        self._owe_frame()
        self._after_end += self.is_ending
        if not self.is_ending:
            if self._unanswered > MAX_UNANSWERED:
                raise RemoteProtocolError("too many answers unread", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
            if self.refused > MAX_REFUSED:
                raise RemoteProtocolError("too many refused links", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        elif self._after_end > MAX_REFUSED:
            self.received_end()  # it does not hear that it is closed either

    def end(self) -> None:
        """The connection is over for the router: report it once, and answer a Close."""
        if self.is_ending:
            return
        self.is_ending = True
        if self.fault is None:
            self.fault = data.read_condition(pn.pn_connection_remote_condition(self._connection))
        self._handler.connection_ended(self)
        self.close()

    def free(self) -> None:
        """Give everything back to proton. No handle of this connection may be used afterwards."""
        pn.pn_transport_unbind(self._transport)
        pn.pn_transport_free(self._transport)
        pn.pn_collector_free(self._collector)
        pn.pn_connection_free(self._connection)
