"""Service by HTTP of a router that runs: one server after the other, as its settings change, or none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import trio

from mesh_config.models import Role, RouterSettings
from router.http_extra import http_service
from router.net.connector import Connector
from router.net.listener import Listener
from router.net.open_file_shares import usable_files
from router.net.peer_authentication import PeerAuthentication
from router.runtime import Runtime
from router.views.runtime import RuntimeView

if TYPE_CHECKING:  # an extra brings what it needs
    from router.net.http_server import HttpServer


class HttpServerManager:
    """The HTTP listener of a router, if it has one."""

    def __init__(
        self,
        runtime: Runtime,
        view: RuntimeView,
        listeners: Sequence[Listener],
        connectors: Sequence[Connector],
        authentication: PeerAuthentication,
    ) -> None:
        """*listeners* and *connectors* are those for AMQP, which may change; *authentication* knows who may come in."""
        self._authentication = authentication
        self._runtime = runtime
        self._view = view
        self._listeners = listeners
        self._connectors = connectors
        self._server: HttpServer | None = None
        self._scope = trio.CancelScope()
        self._running: HttpServer | None = None
        """The one whose task runs; another one than `_server` until that task has been cancelled."""
        self._is_running = False

    def share_port(self, is_shared: bool) -> None:
        """Let another listener be bound at the port of this one, as it is to be closed, or no more."""
        if self._server is not None:
            self._server.share_port(is_shared)

    def prepare(
        self, settings: RouterSettings, place: str | None = None, *, shares_port: bool = False
    ) -> HttpServer | None:
        """Bind the listener that *settings* have.

        Args:
            settings: of the router.
            place: address of its host; None: it is looked up, which may take a while: not for a router that serves.
            shares_port: bind it also where a listener that shares its port has this one.
        Returns: None where they have none.
        Raises:
            LocalError: it cannot be bound, or what it needs is not installed.
        """
        if settings.http.port is None:
            return None
        server: HttpServer = http_service().http_server(
            self._runtime,
            self._view,
            self._listeners,
            self._connectors,
            settings.http,
            self._authentication,
            self._server,
            place,
            usable_files(settings, Role.NORMAL),
            shares_port=shares_port,
        )
        return server

    def take(self, server: HttpServer | None) -> None:
        """Serve by *server* from now on; connections of the one before it end."""
        if self._server is not None and self._server is not self._running:
            self._server.close()  # it was never served
        self._server = server
        self._scope.cancel()
        if self._is_running:
            self.tell()

    def tell(self) -> None:
        """Log where it listens."""
        if self._server is not None:
            self._runtime.log.info("http_listening", host=self._server.host, port=self._server.port)

    async def run(self, keep_up: Callable[..., Awaitable[None]]) -> None:
        """Serve by what was taken last, until cancelled; *keep_up* calls what has failed again."""
        self._is_running = True
        while True:
            server = self._running = self._server
            self._scope = trio.CancelScope()
            try:
                with self._scope:
                    if server is None:
                        await trio.sleep_forever()
                    else:
                        await keep_up(server.run)
            finally:
                if server is not None:
                    server.close()
