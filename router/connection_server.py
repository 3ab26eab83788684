"""The life of a connection in the daemon: who has connected is let in, or told why not, and served until the end."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final

import trio

from mesh_config.models import ConnectorSettings, ListenerSettings, Role
from router import __version__
from router.engine.amqps_connection import AmqpsConnection
from router.engine.connection import Connection
from router.neighbor_admission import open_properties
from router.net.connector import Connector
from router.net.handshake_socket import HandshakeFailed, PeerLeft
from router.net.listener import AcceptedConnection, Listener, Refusal, peer_name
from router.net.open_file_shares import most_files
from router.net.peer_authentication import AuthenticatedPeer, PeerAuthentication
from router.net.poller import Poller
from router.net.pump import Pump
from router.runtime import Runtime

HANDSHAKE_TIMEOUT_S: Final = 10.0
"""Maximum time for TLS and SASL of a connection that this router makes, and again until the peer's Open is there,
seconds."""


class ConnectionServer:
    """Serves sockets that listeners accept and connectors dial, each in the task of its caller."""

    def __init__(
        self, runtime: Runtime, authentication: PeerAuthentication, poller: Poller, connectors: Sequence[Connector]
    ) -> None:
        """*connectors*: those of the router, which goes on changing them."""
        self._runtime = runtime
        self._authentication = authentication
        self._poller = poller
        self._connectors = connectors

    def not_taken_in(self, listener: Listener, reason: Refusal, host: str) -> None:
        """Tell of one that a listener has closed unseen: *reason* says what there is too much of."""
        log, settings = self._runtime.log, listener.settings
        if reason is Refusal.FULL:
            log.warning("listener_full", listener=listener.name, host=host, max_connections=settings.max_connections)
        elif reason is Refusal.HOST_FULL:
            most = settings.max_connections_of_host
            log.warning("host_full", listener=listener.name, host=host, max_connections_of_host=most)
        elif reason is Refusal.HANDSHAKES_FULL:
            log.warning("handshakes_full", listener=listener.name, host=host, max_handshakes=settings.max_handshakes)
        else:
            log.warning("files_short", listener=listener.name, host=host, files=listener.files, max_files=most_files())

    def connect_failed(self, connector: Connector) -> None:
        """Tell of a connector that has reached nobody, or nobody that lets it in."""
        if connector.settings.to is not None:
            self._runtime.mesh_presence.dial_failed(connector.settings.to, connector.message)
        self._runtime.log.warning("connect_failed", connector=connector.name, reason=connector.message)

    async def serve_accepted(self, sock: socket.socket, settings: ListenerSettings, guest: AcceptedConnection) -> None:
        """Let in a peer that has connected to a listener with *settings*, and serve it until the end."""
        deadline = trio.current_time() + settings.handshake_timeout_s
        admitted = await self._admit(sock, settings, guest, deadline)
        if admitted is not None:
            await self._serve(sock, settings, guest, admitted, deadline - trio.current_time())

    async def _admit(
        self, sock: socket.socket, settings: ListenerSettings, guest: AcceptedConnection, deadline: float
    ) -> AuthenticatedPeer | None:
        """Let somebody in. Returns: None when it is not to be served; the socket is closed, and the log says why."""
        reason = f"no Open within {settings.handshake_timeout_s:g} s"
        waiting = trio.CancelScope(deadline=deadline)

        def give_up(why: str) -> None:
            nonlocal reason
            reason = why
            waiting.cancel()

        guest.served_by(give_up)
        log, host, is_refused = self._runtime.log, peer_name(sock, guest.host), False
        try:
            with waiting:
                return await self._authentication.admit(sock, settings, guest.host)
        except HandshakeFailed as error:
            reason, is_refused = str(error), not isinstance(error, PeerLeft)
            # A peer that has left without a word may be any program, such as one that looks whether the port is open.
            if settings.role is Role.INTER_ROUTER and (is_refused or reason.startswith(("SASL", "TLS"))):
                self._runtime.mesh_presence.router_refused("", guest.host, reason, self._runtime.clock())
        except Exception as error:  # a fault of ours must end one connection and not the router
            self._runtime.turn_fault(error)
            reason = "internal error of the router"
        if is_refused:
            # The port that it came to: the settings may leave that to the system.
            name = settings.name or f"{settings.host}:{sock.getsockname()[1]}"
            log.warning("peer_refused", host=host, listener=name, reason=reason)
        else:
            connection = self._runtime.next_connection_id()
            log.info("connection_closed", connection=connection, host=host, container="", reason=reason)
        sock.close()
        return None

    async def serve_connected(self, sock: socket.socket, connector: Connector) -> str:
        """Tell a peer that a connector has dialled who this router is, and serve it until the end.

        Returns: why it was of no use; empty when it was.
        """
        admitted = None
        try:
            with connector.until_stopped(), trio.fail_after(HANDSHAKE_TIMEOUT_S):
                admitted = await self._authentication.dial(sock, connector.settings, connector.blocking_calls)
            if admitted is None or connector not in self._connectors:
                raise HandshakeFailed("its connector was taken away")
        except HandshakeFailed as error:
            sock.close()
            return str(error)
        except trio.TooSlowError:
            sock.close()
            is_ours = connector.blocking_calls.borrowed_tokens > 0
            return f"no {'password or ticket of this router' if is_ours else 'answer'} within {HANDSHAKE_TIMEOUT_S:g} s"
        except BaseException:
            sock.close()
            raise
        # Its settings may be others than when it was dialled.
        connection = await self._serve(sock, connector.settings, None, admitted, HANDSHAKE_TIMEOUT_S)
        if connection is None or connection.was_of_use:
            return ""
        assert connection.end_reason, "an end has its reason"
        return connection.end_reason

    async def _serve(
        self,
        sock: socket.socket,
        settings: ListenerSettings | ConnectorSettings,
        guest: AcceptedConnection | None,
        admitted: AuthenticatedPeer,
        timeout_s: float,
    ) -> Connection | None:
        """Serve until the end of the connection. Returns: it, None where none could be made."""
        runtime = self._runtime
        is_server = guest is not None
        try:
            connection = runtime.new_connection(
                settings,
                is_server=is_server,
                identity=admitted.identity,
                host=peer_name(sock),
                connector=0 if is_server else self._number_of(settings),
                is_tls=admitted.channel is not None,
            )
            if admitted.channel is not None:
                assert isinstance(connection, AmqpsConnection)
                connection.start_tls(admitted.channel)
            connection.unread(admitted.rest)
        except Exception as error:  # a fault of ours, such as no memory, must end one connection and not the router
            sock.close()
            runtime.turn_fault(error)
            return None
        pump = Pump(sock, connection, runtime, self._poller)
        runtime.add_connection(connection, pump.flush, pump.octets, pump.abort)
        try:
            if not is_server:
                connection.open(
                    runtime.settings.id,
                    hostname=getattr(settings, "host", None),
                    properties=open_properties(runtime.settings, settings.role, connection.connector),
                    version=__version__,
                )
            if guest is None:
                await pump.run(handshake_timeout_s=timeout_s)
            else:
                guest.served_by(pump.give_up)
                await pump.run(handshake_timeout_s=timeout_s, opened=guest.opened, ended=guest.ended)
            gone = trio.Event()
            runtime.teardowns.when_gone(connection, gone.set)
            await gone.wait()
        except Exception as error:  # a fault of ours must end one connection and not the router
            runtime.connection_fault(connection, error)
        finally:
            runtime.remove_connection(connection)
        return connection

    def _number_of(self, settings: ListenerSettings | ConnectorSettings) -> int:
        return next(number for number, each in enumerate(self._connectors) if each.settings is settings)
