"""Drain of a router: clients and paths go elsewhere as when it stops, but it stays in the mesh, for maintenance.

Neighbors stay connected, so that it can be asked, told to serve again, or stopped.
"""

from __future__ import annotations

import trio

from mesh_config.models import Role
from router.changeable_daemon import ChangeableDaemon
from router.core.errors import LocalError
from router.core.events import TransitResumed
from router.core.ids_and_conditions import Condition, ConnectionId
from router.drain_state import GO_ELSEWHERE, DrainState
from router.engine.connection import Connection
from router.graceful_stop import CLOSE_PATIENCE_S, none_left, take_no_more
from router.net.listener import Listener
from router.runtime import Runtime


class Draining:
    """The drains of one router."""

    def __init__(self, runtime: Runtime, daemon: ChangeableDaemon) -> None:
        self._runtime = runtime
        self._daemon = daemon
        self._kept: ConnectionId | None = None
        """Connection of the client that has asked for the drain, which is kept."""
        self._is_to_stop = False
        self._over = trio.Event()

    @property
    def under_way(self) -> trio.Event | None:
        """Set once the drain is over that has begun; None when the router serves."""
        return None if self._runtime.drain_state is DrainState.SERVING else self._over

    def begin(self, kept: ConnectionId | None, *, is_to_stop: bool) -> None:
        """Begin to drain. Nothing happens when that has been done already, but that the router may stop afterwards.

        Args:
            kept: connection of who has asked, which is not closed.
            is_to_stop: stop once it is drained.
        Raises: LocalError when the router is stopping.
        """
        state = self._runtime.drain_state
        if state is DrainState.STOPPING:
            raise LocalError("the router is stopping")
        self._is_to_stop |= is_to_stop
        if state is DrainState.DRAINED and is_to_stop:
            self._daemon.stop()
        if state is not DrainState.SERVING:
            return
        self._over, self._kept = trio.Event(), kept
        self._daemon.start(self._run)
        self._runtime.enter(DrainState.DRAINING)
        for listener in self._client_listeners():
            if not listener.is_closed:
                self._daemon.stop_accepting(listener)
        self._runtime.log.info("draining", clients=len(self._clients()), within_s=self._runtime.settings.shutdown_s)

    def resume(self) -> None:
        """Serve clients and paths again.

        Raises: LocalError when it is not drained, or a listener cannot be bound: all stay closed, then.
        """
        runtime = self._runtime
        if runtime.drain_state is DrainState.SERVING:
            return
        if runtime.drain_state is not DrainState.DRAINED or self._is_to_stop:
            raise LocalError(f"the router is {'to stop' if self._is_to_stop else runtime.drain_state}")
        try:
            for listener in self._client_listeners():
                if listener.is_closed:
                    self._daemon.accept_again(listener)
        except LocalError:
            for listener in self._client_listeners():
                self._daemon.stop_accepting(listener)
            raise
        runtime.enter(DrainState.SERVING)
        runtime.take_again()
        runtime.events.append(TransitResumed())
        runtime.settle()
        runtime.log.info("resumed")

    def _client_listeners(self) -> list[Listener]:
        return [listener for listener in self._daemon.listeners if listener.settings.role is Role.NORMAL]

    def _clients(self) -> list[Connection]:
        """Clients, but for the one that has asked for the drain."""
        return [
            connection
            for connection in self._runtime.connections.values()
            if connection.settings.role is Role.NORMAL and connection.id != self._kept
        ]

    async def _run(self) -> None:
        """Drain. After a fault of ours this is called again: it is over only when it went well."""
        runtime = self._runtime
        with trio.move_on_after(runtime.settings.shutdown_s):
            await take_no_more(runtime, is_told=True)
        if not runtime.data_plane.settlement.is_stopping:
            runtime.stop_taking()  # there was no time for anything
        await self._close_clients()
        if runtime.drain_state is DrainState.DRAINING:
            runtime.enter(DrainState.DRAINED)
            runtime.log.info("drained", clients=len(self._clients()))
        self._over.set()
        if self._is_to_stop:
            self._daemon.stop()

    async def _close_clients(self) -> None:
        """Close all clients; those that don't answer within a while without a word."""
        runtime = self._runtime
        runtime.begin(runtime.clock())
        for connection in self._clients():
            connection.close(Condition.CONNECTION_FORCED, GO_ELSEWHERE)
        runtime.settle()
        with trio.move_on_after(CLOSE_PATIENCE_S):
            await none_left(runtime, lambda: not self._clients())
        for connection in self._clients():
            runtime.aborters[connection.id]()
