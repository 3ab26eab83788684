"""Handler of what peers do, as the engine sees it: opens, attaches, detaches, control messages and ends.

`PeerEventHandler` answers each by the rules of its listener's role, keeps account of neighbors and clients, and tells
the control plane what concerns it by events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import attrs

from mesh_config.models import ConnectorSettings, Role, RouterSettings
from router import __version__
from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.control_pacer import ControlPacer, FirstPacingEvent
from router.core.addressing.address import AddressKind
from router.core.errors import PeerProtocolError
from router.core.events import (
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    FirstSubscriberAttached,
    LastSubscriberLeft,
)
from router.core.forwarding.fib import MULTICAST, AddressEntry
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.linkstate.messages import (
    MAX_COST,
    CircuitStates,
    Hello,
    MobileAddressUpdate,
    RouterAdvertisement,
    mobile_address,
)
from router.core.policy.denial import Denied
from router.core.policy.policy import Policy
from router.dataplane.links import EgressLink, IngressLink
from router.dataplane.router_data_plane import RouterDataPlane
from router.drain_state import GO_ELSEWHERE, SHUTTING_DOWN, DrainState
from router.ended_connection_reaper import EndedLinkReaper
from router.engine import message_codec
from router.engine.client_links import AllClientLinks, link_ids, refuse
from router.engine.connection import LSU_PUSH, Connection
from router.engine.neighbor_links import NeighborLinks
from router.engine.peer_open import PeerOpen
from router.engine.rabbitmq_management_pairs import ManagementPairs
from router.mesh_presence import MOST_REFUSED, TOLD_AGAIN_S, MeshPresence
from router.neighbor_admission import (
    NeighborAddressRights,
    check_hello,
    check_neighbor,
    connector_of,
    open_properties,
    without_refused,
)

LINK_BYTES: Final = 8192
"""Approximate memory of a link, bytes; what was held for a connection that has ended counts as so many links."""
WRONG_ROLE: Final = (Condition.QD_FORBIDDEN, Condition.QD_CONNECTION_ROLE)
"""Conditions of links that are refused since the listener is for others."""


class PeerEventHandler:
    """Everybody at the other end of a connection (an `engine.connection.Handler`)."""

    def __init__(
        self,
        settings: RouterSettings,
        data_plane: RouterDataPlane,
        log: Any,
        presence: MeshPresence,
        *,
        emit: Callable[[Event], None],
        freed: Callable[[int], None],
        teardowns: EndedLinkReaper,
        pacer: ControlPacer,
        policy: Policy,
        drain_state: Callable[[], DrainState],
    ) -> None:
        """Handle nobody yet.

        Args:
            settings: of the router.
            data_plane: gets links of clients and circuits.
            log: of the router.
            presence: told of neighbors that come and go.
            emit: takes events for the control plane.
            freed: hears how many links have given back their memory.
            teardowns: take away links of clients that have left.
            pacer: says which control messages have to wait.
            policy: says which clients may come in, and with which rights.
            drain_state: says whether the router serves clients at all.
        """
        self._settings = settings
        self._me = RouterId(settings.id)
        self._data_plane = data_plane
        self._log = log
        self._presence = presence
        self._emit = emit
        self._freed = freed
        self.neighbors: dict[ConnectionId, NeighborLinks] = {}
        self._lost_neighbors: dict[ConnectionId, NeighborLinks] = {}
        """Links to neighbors whose connections have ended, until the last of them is taken away."""
        self.asking: Connection | None = None
        """Connection of the client that asks to be let in, or for a link, at this moment."""
        self.torn: set[ConnectionId] = set()
        """Connections whose end has failed: something may refer to their handles still."""
        self._teardowns = teardowns
        self._pacer = pacer
        self._policy = policy
        self._drain_state = drain_state
        self._link_ids = link_ids()
        self._told_prefixes: set[ConnectionId] = set()
        """Connections of which it was logged that some of their addresses are refused."""
        self._told_ignored: set[ConnectionId] = set()
        """Connections of which it was logged that they send control messages that can't be read."""
        self._futile: dict[str, str] = {}
        """Connectors whose last connection was of no use, by name, and why."""
        self._misled: dict[tuple[str, Role], float] = {}
        """Times at which peers came to a listener for others, by container id and role of the listener, seconds."""
        self._repeated: set[ConnectionId] = set()
        """Connections that are the next of many that come to nothing: these are logged at DEBUG only."""
        self._told_messages: set[ConnectionId] = set()
        """Connections of which it was logged that their messages to some addresses are refused."""
        self._client_links = AllClientLinks(data_plane.fib, data_plane, self._link_ids, self._changed)

    @property
    def pairs(self) -> ManagementPairs:
        """Links with which clients of RabbitMQ ask about queues."""
        return self._client_links.pairs

    def take_settings(self, settings: RouterSettings) -> None:
        """Go by other settings from the next neighbor on."""
        self._settings = settings

    def connection_opened(self, connection: Connection) -> None:
        """Look at the peer's Open; answer with ours, or refuse it."""
        peer = connection.peer
        assert peer is not None
        settings = connection.settings
        if settings.role is Role.INTER_ROUTER:
            if not peer.container:
                if connection.is_closed_by_peer:
                    return  # its Close says why
                self.close(connection, Condition.INVALID_FIELD, "a router needs a container id")
                return
            host = remote_address(connection.host)
            if peer.container == self._me:
                self._log.warning(
                    "duplicate_router_id", connection=connection.id, host=connection.host, id=peer.container
                )
                reason = f"router id {self._me} is already in use: it is mine"
                if connection.is_server:
                    self._presence.router_refused(peer.container, host, reason, self._data_plane.clock.now)
                self.close(connection, Condition.NOT_ALLOWED, reason)
                return
            try:
                check_neighbor(self._settings, settings, peer, connection.identity)
            except PeerProtocolError as error:
                connection.end_because(str(error))
                if connection.is_server:
                    self._presence.router_refused(peer.container, host, str(error), self._data_plane.clock.now)
                self.close(connection, error.condition, str(error))
                return
            if connection.is_server:
                self._presence.router_let_in(host)
            neighbor = NeighborLinks(connection, self._data_plane, self._data_plane.fib, self._link_ids)
            if settings.allowed_prefixes:
                connection.port.bound(self._neighbor_rights(connection))
            self.neighbors[connection.id] = neighbor
            self._data_plane.ports[connection.id] = connection.port
        else:
            connection.note_use()
            state = self._drain_state()
            if state is not DrainState.SERVING:  # it was accepted before, or by a listener that is new
                reason = SHUTTING_DOWN if state is DrainState.STOPPING else GO_ELSEWHERE
                self.close(connection, Condition.CONNECTION_FORCED, reason)
                return
            if self._policy.is_active and not self._admit(connection, peer):
                return
            has_vhost = getattr(settings, "vhost_prefix", False) and peer.hostname
            close_link, rights = partial(self._close_link, connection), connection.rights
            vhost = peer.hostname if has_vhost and rights is None else None
            connection.port.serve_client(vhost, close_link, rights)
        if self._is_repeated(connection, peer):
            self._repeated.add(connection.id)
        self._tell_opened(connection, peer)
        if connection.is_server:
            properties = open_properties(self._settings, settings.role)
            connection.open(self._settings.id, properties=properties, version=__version__)
        elif settings.role is Role.INTER_ROUTER:
            self.neighbors[connection.id].attach_all()

    def _is_repeated(self, connection: Connection, peer: PeerOpen) -> bool:
        """Whether a connection is the next of many that come to nothing."""
        settings = connection.settings
        if isinstance(settings, ConnectorSettings):
            return settings.effective_name in self._futile
        came = self._misled.get((peer.container, settings.role), -math.inf)
        return self._data_plane.clock.now - came < TOLD_AGAIN_S

    def _tell_opened(self, connection: Connection, peer: PeerOpen) -> None:
        number, host, role = connection.id, connection.host, connection.settings.role.value
        if connection.id in self._repeated:
            self._log.debug("connection_opened", connection=number, host=host, container=peer.container, role=role)
        else:
            self._log.info("connection_opened", connection=number, host=host, container=peer.container, role=role)

    def _tell_closed(self, connection: Connection, container: str) -> None:
        reason, settings = connection.end_reason, connection.settings
        assert reason, "an end has its reason"
        is_repeated = connection.id in self._repeated
        self._repeated.discard(connection.id)
        if isinstance(settings, ConnectorSettings):
            before = self._futile.pop(settings.effective_name, None)
            is_repeated = is_repeated and reason == before
            if not connection.was_of_use:
                self._futile[settings.effective_name] = reason
        number, host = connection.id, connection.host
        if is_repeated:
            self._log.debug("connection_closed", connection=number, host=host, container=container, reason=reason)
        else:
            self._log.info("connection_closed", connection=number, host=host, container=container, reason=reason)

    def _neighbor_rights(self, connection: Connection) -> NeighborAddressRights:
        return NeighborAddressRights(
            connection.settings.allowed_prefixes, self._me, partial(self._messages_refused, connection)
        )

    def _messages_refused(self, connection: Connection, address: str) -> None:
        if connection.id not in self._told_messages:
            self._told_messages.add(connection.id)
            self._log.warning("messages_refused", connection=connection.id, host=connection.host, address=address)

    def _admit(self, connection: Connection, peer: PeerOpen) -> bool:
        """Ask policy whether a client may come in; one that may not is closed. Returns: whether it may."""
        hostname = getattr(connection.settings, "vhost", None) or peer.hostname
        now = self._data_plane.clock.now
        self.asking = connection
        try:
            rights = self._policy.admit(hostname, connection.user, remote_address(connection.host), now)
        except Denied as denied:
            connection.deny(denied)
            return False
        finally:
            self.asking = None
        connection.permit(rights, self._policy.rate(rights, now))
        return True

    def link_attached(self, connection: Connection, link: Handle) -> None:
        """A link of a neighbor or of a client."""
        neighbor = self.neighbors.get(connection.id)
        try:
            if neighbor is not None:
                was_up = neighbor.is_up
                neighbor.accept(link)
                if neighbor.is_up and not was_up:
                    self._control_link_up(connection)
            elif pn.pn_link_state(link) & pn.LOCAL_UNINIT:
                self.asking = connection
                self._client_links.attach(connection, link)
        except PeerProtocolError as error:
            # A router that takes this for a neighbor's listener is refused twenty links in a row.
            if not isinstance(error, Denied) and connection.note_refusal(str(error)):  # policy tells of its own
                self._tell_refusal(connection, error)
            refuse(link, error.condition, str(error))
            connection.refused.add(link)
        finally:
            self.asking = None
        connection.port.touch()

    def _tell_refusal(self, connection: Connection, error: PeerProtocolError) -> None:
        """Log why a link was refused; of a peer that comes again and again to the wrong listener, once."""
        if error.condition in WRONG_ROLE and connection.peer is not None:
            host = remote_address(connection.host)
            now = self._data_plane.clock.now
            key = (connection.peer.container, connection.settings.role)
            self._misled.pop(key, None)
            self._misled[key] = now
            if len(self._misled) > MOST_REFUSED:
                del self._misled[next(iter(self._misled))]
            if not self._presence.refused(connection.peer.container, host, str(error), now):
                return
        self._log.warning(
            "attach_refused",
            connection=connection.id,
            host=connection.host,
            condition=str(error.condition),
            reason=str(error),
        )

    def _control_link_up(self, connection: Connection) -> None:
        peer = connection.peer
        assert peer is not None
        cost = peer.properties.get("qd.inter-router-cost")
        remote_id = peer.properties.get("qd.conn-id")
        self._emit(
            ControlLinkUp(
                connection=connection.id,
                peer=RouterId(peer.container),
                cost=max(connection.settings.cost, min(int(cost), MAX_COST) if isinstance(cost, int) else 1),
                local_conn_id=int(connection.id),
                remote_conn_id=int(remote_id) if isinstance(remote_id, int) else 0,
                is_dialer=not connection.is_server,
                connector=connector_of(peer) if connection.is_server else connection.connector,
                pushes_lsu=peer.has(LSU_PUSH),
            )
        )

    def link_detached(self, connection: Connection, link: Handle, *, is_closed: bool) -> None:
        """A link is gone: with its messages, its subscription, or its neighbor."""
        neighbor = self.neighbors.get(connection.id)
        circuits = neighbor.circuits if neighbor is not None else None
        if neighbor is not None and neighbor.control.has(link):
            if not (connection.is_server or connection.was_of_use):
                condition = proton_data.read_condition(pn.pn_link_remote_condition(link))
                connection.end_because(f"{connection.host} wants no neighbor: {condition}")
                connection.close(Condition.CONNECTION_FORCED, "no control links")
                connection.end()
                return
            neighbor.detach(link)
            self._pacer.forget(connection.id)
            self._emit(ControlLinkDown(connection=connection.id))
        elif link in connection.closed_links:
            connection.closed_links.remove(link)
            connection.refused.remove(link)
        elif link in connection.links:
            self._detach(connection, link)
        elif pn.pn_link_state(link) & pn.LOCAL_CLOSED and (circuits is None or not circuits.is_closing(link)):
            connection.refused.remove(link)
            return
        if is_closed:
            pn.pn_link_close(link)
        else:
            pn.pn_link_detach(link)
        if circuits is not None:
            circuits.free(link)
        pn.pn_link_free(link)
        self._freed(1)
        connection.port.touch()

    def _close_link(self, connection: Connection, link: IngressLink, error: PeerProtocolError) -> None:
        """Close a client's link for a fault of the client's; its connection goes on."""
        handle = link.handle
        self._log.warning(
            "link_closed",
            connection=connection.id,
            host=connection.host,
            link=link.name,
            condition=error.condition,
            reason=str(error),
        )
        self._detach(connection, handle)
        proton_data.set_condition(pn.pn_link_condition(handle), error.condition, str(error))
        pn.pn_link_close(handle)
        connection.closed_links.add(handle)
        connection.refused.add(handle)
        connection.port.touch()

    def _detach(self, connection: Connection, link: Handle) -> None:
        neighbor = self.neighbors.get(connection.id, self._lost_neighbors.get(connection.id))
        if neighbor is None:
            self._client_links.detach(connection, link)
        else:
            neighbor.detach(link)

    def session_ended(self, connection: Connection, session: Handle) -> None:
        """All links of a session are gone."""
        neighbor = self.neighbors.get(connection.id)
        if neighbor is not None and neighbor.end_control(session):
            self._pacer.forget(connection.id)
            self._emit(ControlLinkDown(connection=connection.id))
        links = connection.links_of(session)
        end = partial(connection.end_session, session)
        if neighbor is None:
            for link in links:
                if isinstance(link, EgressLink):
                    link.end()
            self._teardowns.begin(connection, links, self._data_plane.clock.now, end)
            return
        fault = self.take_away(connection, [link for link in links if isinstance(link, EgressLink)])
        if neighbor.circuits is not None:
            neighbor.circuits.session_ended(session)
        self._teardowns.begin(connection, _most_needed_first(links), self._data_plane.clock.now, end)
        if fault is not None:
            raise fault

    def delivery_arrived(self, connection: Connection, delivery: Handle) -> None:
        """A control message, or part of one."""
        neighbor = self.neighbors.get(connection.id)
        if neighbor is None:
            link = pn.pn_delivery_link(delivery)
            if link in connection.closed_links:
                connection.closed_links.throw_away(link)
                connection.port.touch()
            return
        begin = self._pacer.measure()
        limit = self._data_plane.current_settings.forwarding.control_message_bytes
        message = neighbor.control.read(delivery, limit)
        self._pacer.note_read(connection.id, self._pacer.measure() - begin, self._data_plane.clock.now)
        if message is None:
            return
        if self._pacer.may_pass(connection.id, message, self._data_plane.clock.now):
            self.take_control(connection, neighbor, message)
            return
        what = self._pacer.keep(connection.id, message, self._data_plane.clock.now)
        container = connection.peer.container if connection.peer is not None else ""
        if what is FirstPacingEvent.WAITED:
            self._log.warning("control_messages_wait", connection=connection.id, neighbor=container)
        elif what is FirstPacingEvent.DROPPED:
            self._log.warning("control_messages_dropped", connection=connection.id, neighbor=container)

    def take_control(self, connection: Connection, neighbor: NeighborLinks, message: bytes) -> None:
        """Take a whole control message: what it asks for is among the next events."""
        begin = self._pacer.measure()
        event = None
        try:
            event = self._read_control(connection, neighbor, message)
        finally:
            used_s = self._pacer.measure() - begin
            if event is not None:
                self._pacer.note(connection.id, len(message), used_s)
                self._emit(event)
            else:
                self._pacer.charge_at_once(connection.id, used_s, self._data_plane.clock.now)

    def _read_control(self, connection: Connection, neighbor: NeighborLinks, message: bytes) -> ControlReceived | None:
        """Read a control message. Returns: what the control plane is to hear of it; None for nothing."""
        known = neighbor.control.known(message)
        if known is not None:
            return known
        try:
            control = message_codec.decode_control(message)
        except PeerProtocolError as error:
            self._ignored(connection, str(error))
            if isinstance(connection.settings, ConnectorSettings):
                self._presence.connector_not_understood(connection.settings.effective_name, str(error))
            return None
        content = control.message
        if isinstance(content, Hello):
            try:
                check_hello(connection.settings, connection.peer, content.id)
            except PeerProtocolError as error:
                connection.end_because(str(error))
                self.close(connection, error.condition, str(error))
                return None
        elif isinstance(content, MobileAddressUpdate) and connection.settings.allowed_prefixes:
            control = attrs.evolve(control, message=self._allowed(connection, content))
        if not connection.was_of_use:
            self._became_of_use(connection)
        if isinstance(content, CircuitStates):
            self._circuits_told(connection, neighbor, content)
            return None
        received = ControlReceived(
            connection=connection.id,
            to=control.to,
            message=control.message,
            ingress=control.ingress,
            trace=control.trace,
        )
        if isinstance(content, Hello | RouterAdvertisement):
            neighbor.control.remember(message, received)
        return received

    def _became_of_use(self, connection: Connection) -> None:
        """Note that a neighbor has said something that this router understands."""
        connection.note_use()
        if connection.id in self._repeated and connection.peer is not None:
            self._repeated.discard(connection.id)
            self._tell_opened(connection, connection.peer)
        if isinstance(connection.settings, ConnectorSettings):
            self._presence.connector_up(connection.settings.effective_name, self._data_plane.clock.now)

    def _allowed(self, connection: Connection, update: MobileAddressUpdate) -> MobileAddressUpdate:
        allowed, refused = without_refused(update, connection.settings.allowed_prefixes)
        if refused and connection.id not in self._told_prefixes:
            self._told_prefixes.add(connection.id)
            self._log.warning(
                "addresses_refused",
                connection=connection.id,
                host=connection.host,
                remote=update.id,
                address=mobile_address(refused[0]) or refused[0],
                count=len(refused),
            )
        return allowed

    def _circuits_told(self, connection: Connection, neighbor: NeighborLinks, message: CircuitStates) -> None:
        if neighbor.circuits is None:
            self._ignored(connection, "there are no circuits")
        else:
            self._data_plane.circuits_told(connection.port, message.weights, message.closed, message.loads)

    def _ignored(self, connection: Connection, reason: str) -> None:
        if connection.id not in self._told_ignored:  # a router of another make says the same each second
            self._told_ignored.add(connection.id)
            self._log.warning("control_message_ignored", connection=connection.id, host=connection.host, reason=reason)

    def connection_ended(self, connection: Connection) -> None:
        """Take away everything that came with it.

        Raises: the first fault of ours with one of a neighbor's links, after all of them were seen to.
        """
        fault = None
        now, links = self._data_plane.clock.now, list(connection.links.values())
        self._freed(connection.port.charge.total_bytes // LINK_BYTES)
        neighbor = self.neighbors.get(connection.id)
        if neighbor is not None:
            # Messages that lose their way while the links go one by one must not be sent to this neighbor again.
            self._data_plane.ports.pop(connection.id, None)
            connection.port.open_no_more()
            fault = self.take_away(connection, [link for link in links if isinstance(link, EgressLink)])
            if connection.port.neighbor is not None:
                self._data_plane.repair.lost(connection.port.neighbor)
            del self.neighbors[connection.id]
            self._lost_neighbors[connection.id] = neighbor
            self._teardowns.begin(
                connection, _most_needed_first(links), now, partial(self._lost_neighbors.pop, connection.id)
            )
            self._pacer.forget(connection.id)
            self._emit(ControlLinkDown(connection=connection.id))
        else:
            connection.port.is_leaving = True
            self._teardowns.begin(connection, links, now)
        self._told_prefixes.discard(connection.id)
        self._told_ignored.discard(connection.id)
        self._told_messages.discard(connection.id)
        if connection.rights is not None:
            self._policy.leave(connection.rights, remote_address(connection.host))
        container = connection.peer.container if connection.peer is not None else ""
        if connection.settings.role is Role.INTER_ROUTER:
            self._connection_to_router_ended(connection, container)
        if not connection.is_denied:
            self._tell_closed(connection, container)
        if fault is not None:
            raise fault

    def _connection_to_router_ended(self, connection: Connection, container: str) -> None:
        now, reason = self._data_plane.clock.now, connection.end_reason
        assert reason, "an end has its reason"
        if container:
            self._presence.connection_ended(container, reason, now)
        if isinstance(connection.settings, ConnectorSettings):
            self._presence.connector_down(connection.settings.effective_name, reason, now)

    def take_away(self, connection: Connection, links: list[IngressLink | EgressLink]) -> Exception | None:
        """Take away *links* of a connection that has ended. Returns: the first fault of ours with one of them."""
        faults = []
        for link in links:
            if connection.links.get(link.handle) is not link:
                continue  # it went while it waited, and its handle may be another one's
            try:
                self._detach(connection, link.handle)
            except Exception as error:  # a fault of ours with one link must not leave the others behind
                faults.append(error)
        self._freed(len(links))
        if not faults:
            return None
        self.torn.add(connection.id)
        return faults[0]

    def close(self, connection: Connection, condition: Condition, description: str) -> None:
        """Close a connection with an error, and take away at once what came with it."""
        self._log.warning(
            "connection_refused",
            connection=connection.id,
            host=connection.host,
            condition=str(condition),
            reason=description,
        )
        connection.close(condition, description)
        connection.end()  # its subscriptions must not be given messages until the peer has closed too

    def _changed(self, entry: AddressEntry, is_subscribed: bool) -> None:
        is_withdrawn = self._data_plane.settlement.is_stopping and entry.treatment is not MULTICAST
        if entry.kind is not AddressKind.MOBILE or is_withdrawn:
            return
        if is_subscribed:
            self._emit(FirstSubscriberAttached(address=entry.text, treatment=entry.treatment))
        else:
            self._emit(LastSubscriberLeft(address=entry.text))


def remote_address(host: str) -> str:
    """The address in *host*, which is `address:port` or `[address]:port`; empty for none."""
    return host.rpartition(":")[0].strip("[]")


def _most_needed_first(links: Iterable[IngressLink | EgressLink]) -> list[IngressLink | EgressLink]:
    """Links on which a neighbor publishes, those first that hold credit or messages: others wait for these."""
    ingress = [link for link in links if isinstance(link, IngressLink)]
    ingress.sort(key=lambda link: not (pn.pn_link_credit(link.handle) or pn.pn_unsettled_head(link.handle)))
    return list(ingress)
