"""The daemon: a runtime with its sockets, its timers and its signals."""

from __future__ import annotations

import contextlib
import math
import operator
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import trio

from mesh_config.change_plan import ChangePlan
from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from router import __version__, speed
from router.binding.library import has_assertions
from router.clock_and_gc import MonotonicClock, share_interpreter, spare_collector
from router.connection_server import ConnectionServer
from router.core.errors import LocalError
from router.core.ids_and_conditions import Condition
from router.core.linkstate.spf import load_algorithms
from router.drain_state import DrainState
from router.draining import Draining
from router.flight_recorder import SIGNAL
from router.graceful_stop import CLOSE_PATIENCE_S, EXIT_S, stop_in_order
from router.http_extra import http_service
from router.http_server_manager import HttpServerManager
from router.management.changes import ChangeError
from router.mesh_presence import ExpectedMesh
from router.net.connector import Connector
from router.net.listener import Listener
from router.net.open_file_shares import usable_files
from router.net.peer_authentication import PeerAuthentication
from router.net.poller import Poller
from router.net.service_notifier import ServiceNotifier
from router.runtime import Runtime
from router.security.credential_store import CredentialStore
from router.security.credential_table import EndpointSettings
from router.views.management_service import serve_management
from router.views.reload import Read, SettingsReloader
from router.views.state_log_line import log_state

if TYPE_CHECKING:  # an extra brings what it needs
    from router.net.http_server import HttpServer

STOPPING = (signal.SIGTERM, signal.SIGINT)
OTHERS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that would end a process by default, and don't end a router."""

FAULT_PAUSE_S = 1.0
"""Pause after a fault of this program while it handled a deadline, which may be due still, seconds."""
USERS_S = 5.0
"""Time between two looks at the files of users, seconds."""
JUDGED_AT_ONCE = 250
"""Number of connections whose users are compared with the files before all else has a turn."""
RELOAD_LOOK_S = 0.01
"""Time between two looks whether the file has been read, seconds."""

STANDSTILL_S = 1.0
"""Delay of a timer from which on it is logged, seconds: the process did not run, or something kept it busy."""


class Daemon:
    """One router process."""

    def __init__(
        self,
        settings: RouterSettings,
        mesh: MeshSettings | None = None,
        *,
        read: Read | None = None,
        clock: Callable[[], float] = trio.current_time,
        has_thread: bool = False,
    ) -> None:
        """Read the files of TLS and of users, and bind every listener.

        Args:
            settings: of the router.
            mesh: that it is part of, when it is known.
            read: reads both anew from their file; None when there is none.
            clock: trio's, seconds.
            has_thread: this thread is for the router alone: it may wait where waiting costs least.
        Raises:
            LocalError: a file cannot be used, or an address cannot be bound.
        """
        self._settings = settings
        self._has_thread = has_thread
        # Microseconds, so that a restart within the same second is a new instance; below 2**53, and an AMQP long.
        self.runtime = Runtime(settings, clock=clock, instance=time.time_ns() // 1000, rng=random.Random())
        self.runtime.pacer.measure_by(time.thread_time)  # what others on the machine take is no neighbor's fault
        if mesh is not None:
            self.runtime.mesh_presence.expect(ExpectedMesh.of(mesh), self.runtime.clock())
        self._rng = random.Random()
        self._credentials = CredentialStore(settings, self.runtime.log)
        self._authentication = PeerAuthentication(self._credentials, self.runtime.turn_fault)
        self.listeners = [
            Listener(listener, files=usable_files(settings, listener.role)) for listener in settings.listeners
        ]
        self.connectors = [Connector(connector, self._rng) for connector in settings.connectors]
        self.reloading = SettingsReloader(self.runtime, self, read)
        self.draining = Draining(self.runtime, self)
        self.view = serve_management(self.runtime, self)
        self.view.problem_scan.watch_certificates(self._credentials.certificates, self._credentials.unusable)
        self.http = HttpServerManager(self.runtime, self.view, self.listeners, self.connectors, self._authentication)
        self.http.take(self.http.prepare(settings))
        self._poller = Poller(self.runtime.clock, self.runtime)
        self._server = ConnectionServer(self.runtime, self._authentication, self._poller, self.connectors)
        self._started = self.runtime.clock()
        self._deadline_moved = trio.Event()
        self._set_at, self._used_s = self._started, time.process_time()
        """Time at which the next deadline was scheduled, and the processor time used by then, seconds."""
        self._paused_until = -math.inf
        """Time before which no deadline is looked at, seconds, since the last one had a fault."""
        self._told_to_stop = trio.Event()
        self._settling = trio.CancelScope()
        self._told_to_reload = trio.Event()
        self._manager = ServiceNotifier.from_environment()
        self._nursery: trio.Nursery | None = None
        self._accepting: trio.Nursery | None = None
        """Tasks that accept; None before the start and from the stop on."""
        self._scopes: dict[Listener, trio.CancelScope] = {}

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until SIGTERM or SIGINT, then stop as the settings say."""
        runtime = self.runtime
        runtime.tell_deadlines(changed=self._schedule, came=self._handle_deadline)
        _load_modules(self._settings)
        with trio.open_signal_receiver(*STOPPING, *OTHERS) as signals:
            before = signal.pthread_sigmask(signal.SIG_UNBLOCK, (*STOPPING, *OTHERS))
            async with trio.open_nursery() as nursery:
                accepting = trio.CancelScope()
                self._nursery = nursery
                runtime.tell_look(self._look)
                nursery.start_soon(self._wait_for_sockets, nursery)
                await nursery.start(self._accept, nursery, accepting)  # a drain finds what it has to end
                nursery.start_soon(self._keep_up, self._watch_users)
                for connector in self.connectors:
                    nursery.start_soon(self._connect, connector)
                for listener in self.listeners:
                    runtime.log.info(
                        "listening", host=listener.host, port=listener.port, role=listener.settings.role.value
                    )
                self.http.tell()
                nursery.start_soon(self.http.run, self._keep_up)
                runtime.log.info(
                    "started", version=__version__, instance=runtime.instance, speed=speed.SPEED, pid=os.getpid()
                )
                runtime.recorder.check_directory()
                self._credentials.report()
                if speed.SPEED == speed.INTERPRETED:
                    runtime.log.warning("interpreted", reason=speed.REASON)
                if has_assertions():
                    runtime.log.warning("proton_assertions")
                self._manager.ready()
                nursery.start_soon(self._manager.keep_telling)
                task_status.started()
                nursery.start_soon(self._watch, signals)
                nursery.start_soon(self._keep_up, self._reload_when_told)
                await self._told_to_stop.wait()
                self._manager.stopping(runtime.settings.shutdown_s + CLOSE_PATIENCE_S + EXIT_S)
                accepting.cancel()
                for connector in self.connectors:
                    connector.stop()
                await stop_in_order(runtime, self._settling, self.draining.under_way)
                nursery.cancel_scope.cancel()
            # `amqp-mesh run` holds them back, from the beginning to the end of its process.
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        runtime.recorder.close()
        self._manager.close()
        runtime.log.info("stopped")

    async def _watch(self, signals: AsyncIterator[int]) -> None:
        """Take signals.

        SIGTERM or SIGINT stops the router, a second one makes it hurry; SIGHUP has it read its file again, SIGUSR2 ends
        a drain.
        """
        async for number in signals:
            try:
                self._take_signal(number)
            except Exception as error:  # a fault of ours must not end the router
                self.runtime.turn_fault(error)

    def _take_signal(self, number: int) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGUSR1:
            tasks = trio.lowlevel.current_statistics().tasks_living
            log_state(self.runtime, started=self._started, tasks=tasks)
            self.runtime.recorder.write(SIGNAL)
        elif number == signal.SIGHUP:
            self._told_to_reload.set()
        elif number == signal.SIGUSR2:
            self._end_drain(name)
        else:
            self.runtime.log.info("stopping", signal=name)
            if self._told_to_stop.is_set():
                self._settling.cancel()
            self._told_to_stop.set()

    def _end_drain(self, name: str) -> None:
        """Serve again after a drain. A signal does this too, since policy may let nobody in who could ask for it."""
        runtime = self.runtime
        if runtime.drain_state is not DrainState.DRAINED:
            runtime.log.info("signal_ignored", signal=name)
            return
        runtime.begin(runtime.clock())
        try:
            self.draining.resume()
        except LocalError as error:
            runtime.log.warning("resume_refused", reason=str(error))
        finally:
            runtime.settle()

    async def _reload_when_told(self) -> None:
        """Read the file after each SIGHUP, once for all that came meanwhile."""
        runtime = self.runtime
        while True:
            await self._told_to_reload.wait()
            self._told_to_reload = trio.Event()
            work = self.reloading.reload(waits=True)
            while True:
                runtime.begin(runtime.clock())
                try:
                    next(work)
                except (StopIteration, ChangeError):  # either is in the log
                    break
                finally:
                    runtime.settle()
                await trio.sleep(RELOAD_LOOK_S)

    async def _accept(
        self, nursery: trio.Nursery, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]
    ) -> None:
        with scope:
            async with trio.open_nursery() as accepting:
                self._accepting = accepting
                for listener in self.listeners:
                    accepting.start_soon(self._accept_on, listener, self._new_scope(listener), nursery)
                task_status.started()
                await trio.sleep_forever()
        self._accepting = None
        for listener in self.listeners:
            listener.close()

    def _new_scope(self, listener: Listener) -> trio.CancelScope:
        """Scope of its task, which may be cancelled before that has begun."""
        self._scopes[listener] = trio.CancelScope()
        return self._scopes[listener]

    async def _accept_on(self, listener: Listener, scope: trio.CancelScope, nursery: trio.Nursery) -> None:
        try:
            with scope:
                await self._keep_up(listener.accept, nursery, self._server.serve_accepted, self._server.not_taken_in)
        finally:
            listener.close()

    # Changes while it runs

    def read_files(self, settings: RouterSettings) -> CredentialStore:
        """See `ChangeableDaemon.read_files`."""
        _load_modules(settings)
        return CredentialStore(settings, self.runtime.log)

    def prepare(self, plan: ChangePlan, new: RouterSettings, files: CredentialStore) -> Callable[[], None]:
        """See `ChangeableDaemon.prepare`."""
        changed: list[tuple[EndpointSettings, EndpointSettings]] = [*plan.altered, *plan.repaced]
        gone = [*plan.closed, *plan.ended, *(before for before, _ in changed), self.runtime.settings.http]
        come = [*plan.opened, *plan.added, *(after for _, after in changed), *_of_http(new)]
        endpoints = [*(Counter(self._endpoints()) - Counter(gone)), *come]
        return self._credentials.take(endpoints, new.tls, self._users_files(), files)

    def _endpoints(self) -> list[EndpointSettings]:
        listeners, connectors = (each.settings for each in self.listeners), (each.settings for each in self.connectors)
        return [*listeners, *connectors, *_of_http(self.runtime.settings)]

    def _users_files(self) -> set[str]:
        """Paths of the files by which users that are connected were checked."""
        identities = (connection.identity for connection in self.runtime.connections.values())
        return {each.users_file for each in identities if each is not None and each.users_file is not None}

    def alter_listener(self, listener: Listener, settings: ListenerSettings) -> None:
        """See `ChangeableDaemon.alter_listener`."""
        listener.take_settings(settings, usable_files(self.runtime.settings, settings.role))

    def share_ports(self, leaving: Sequence[Listener], is_shared: bool) -> None:
        """See `ChangeableDaemon.share_ports`."""
        for listener in leaving:
            listener.share_port(is_shared)
        self.http.share_port(is_shared)

    def open_listener(self, settings: ListenerSettings, place: str, *, shares_port: bool = False) -> Listener:
        """See `ChangeableDaemon.open_listener`."""
        files = usable_files(self.runtime.settings, settings.role)
        accepting, nursery = self._nurseries()
        listener = Listener(settings, place, files=files, shares_port=shares_port)
        self.listeners.append(listener)
        self._begin_accepting(listener, accepting, nursery)
        return listener

    def _nurseries(self) -> tuple[trio.Nursery, trio.Nursery]:
        """Nursery of the tasks that accept, and that of all others."""
        if self._accepting is None or self._nursery is None:
            raise LocalError("the router is stopping")
        return self._accepting, self._nursery

    def _begin_accepting(self, listener: Listener, accepting: trio.Nursery, nursery: trio.Nursery) -> None:
        accepting.start_soon(self._accept_on, listener, self._new_scope(listener), nursery)
        role = listener.settings.role.value
        self.runtime.log.info("listening", host=listener.host, port=listener.port, role=role)

    def close_listener(self, listener: Listener) -> None:
        """See `ChangeableDaemon.close_listener`."""
        self.listeners.remove(listener)
        self.stop_accepting(listener)

    def stop_accepting(self, listener: Listener) -> None:
        """See `ChangeableDaemon.stop_accepting`."""
        # The task that accepts closes it: nobody may wait for a descriptor that is closed.
        if listener in self._scopes:
            self._scopes.pop(listener).cancel()

    def accept_again(self, listener: Listener) -> None:
        """See `ChangeableDaemon.accept_again`."""
        accepting, nursery = self._nurseries()
        listener.bind_again()
        self._begin_accepting(listener, accepting, nursery)

    def prepare_http(self, settings: RouterSettings, place: str | None) -> HttpServer | None:
        """See `ChangeableDaemon.prepare_http`."""
        return self.http.prepare(settings, place, shares_port=True)

    def serve_http(self, server: HttpServer | None) -> None:
        """See `ChangeableDaemon.serve_http`."""
        self.http.take(server)

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """See `ChangeableDaemon.start`."""
        if self._nursery is None or self._told_to_stop.is_set():
            raise LocalError("the router is stopping")
        self._nursery.start_soon(self._keep_up, task)

    def stop(self) -> None:
        """See `ChangeableDaemon.stop`."""
        self.runtime.log.info("stopping", signal="")
        self._told_to_stop.set()

    def add_connector(self, settings: ConnectorSettings) -> Connector:
        """See `ChangeableDaemon.add_connector`."""
        connector = Connector(settings, self._rng)
        self.connectors.append(connector)
        if self._nursery is not None and not self._told_to_stop.is_set():
            self._nursery.start_soon(self._connect, connector)
        return connector

    def repace_connector(self, connector: Connector, settings: ConnectorSettings) -> None:
        """See `ChangeableDaemon.repace_connector`."""
        before = connector.settings
        connector.repace(settings)
        for connection in self.runtime.connections.values():
            if connection.settings is before:
                connection.take_settings(connector.settings)

    def end_connector(self, connector: Connector) -> None:
        """See `ChangeableDaemon.end_connector`."""
        self.connectors.remove(connector)
        connector.stop()
        self.runtime.mesh_presence.connector_removed(connector.settings, [each.settings for each in self.connectors])
        if self._nursery is not None and not self._told_to_stop.is_set():
            self.start(partial(self._close_connections, connector))

    async def _close_connections(self, connector: Connector) -> None:
        runtime = self.runtime
        runtime.begin(runtime.clock())
        for connection in list(runtime.connections.values()):
            if connection.settings is connector.settings:
                runtime.refuse(connection, Condition.CONNECTION_FORCED, "its connector was taken away")
        runtime.settle()

    async def _keep_up(self, serve: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Call *serve* again after each fault of ours in it, which must not end the router."""
        while True:
            try:
                await serve(*arguments)
                return
            except Exception as error:
                self.runtime.turn_fault(error)
                await trio.sleep(FAULT_PAUSE_S)

    async def _connect(self, connector: Connector) -> None:
        await self._keep_up(connector.run, self._server.serve_connected, self._server.connect_failed)

    def _look(self) -> None:
        """Look at what changes, so that it is known since when, and how fast, when somebody asks."""
        work = self.view.look()
        if next(work, work) is None and self._nursery is not None:  # of very many things a task looks at the rest
            self._nursery.start_soon(self._keep_up, self._look_on, work)

    async def _look_on(self, work: Iterator[None]) -> None:
        for _ in work:
            await trio.lowlevel.checkpoint()

    async def _watch_users(self) -> None:
        """Close connections of users that would not be let in now: by the file of users, or the revocation lists."""
        runtime, judged_by, newest = self.runtime, list[object](), 0
        while True:
            await trio.sleep(USERS_S)
            await self._authentication.files.refresh()
            contents = self._credentials.judged_by()
            is_changed = len(contents) != len(judged_by) or any(map(operator.is_not, contents, judged_by))
            judged_by, known = contents, 0 if is_changed else newest
            for number, connection in enumerate(list(runtime.connections.values())):
                if number % JUDGED_AT_ONCE == JUDGED_AT_ONCE - 1:
                    await trio.lowlevel.checkpoint()
                if connection.id > known and connection.identity is not None and not connection.is_ending:
                    newest = max(newest, connection.id)
                    if objection := self._credentials.objection(connection.identity):
                        runtime.begin(runtime.clock())
                        runtime.refuse(connection, Condition.UNAUTHORIZED_ACCESS, objection)
                        runtime.settle()
            self._credentials.forget_unused(self._endpoints(), self._users_files())

    # Time

    async def _wait_for_sockets(self, nursery: trio.Nursery) -> None:
        """Wait for sockets, and for time: both in the poller, if it may have the thread for that."""
        if self._has_thread and await self._poller.take_thread():
            self._schedule()
        else:
            self.runtime.tell_deadlines(changed=self._wake_timer, came=self._handle_deadline)
            nursery.start_soon(self._keep_up, self._keep_time)
        await self._poller.run()

    def _wake_timer(self) -> None:
        self._deadline_moved.set()

    async def _keep_time(self) -> None:
        runtime = self.runtime
        while True:
            self._schedule()
            with trio.move_on_at(runtime.scheduled):
                await self._deadline_moved.wait()
            self._deadline_moved = trio.Event()
            if runtime.clock() >= runtime.scheduled:
                self._handle_deadline()

    def _schedule(self) -> None:
        """Note when the next deadline is."""
        runtime = self.runtime
        runtime.next_deadline(self._paused_until)
        self._set_at, self._used_s = runtime.clock(), time.process_time()

    def _handle_deadline(self) -> None:
        runtime = self.runtime
        now = runtime.clock()
        late_s = now - max(runtime.scheduled, self._set_at)
        if late_s >= STANDSTILL_S:
            used_s = time.process_time() - self._used_s
            runtime.log.warning("stood_still", seconds=round(late_s, 1), processor_s=round(used_s, 1))
        try:
            runtime.handle_deadline()
        except Exception as error:  # a fault of ours must not end the router
            self._paused_until = now + FAULT_PAUSE_S
            runtime.turn_fault(error)
        self._schedule()


def _load_modules(settings: RouterSettings) -> None:
    """Import what a router with these *settings* needs later. Blocks, for 0.1 s and more.

    Later it would hold up everybody, and clients could leave no file to read it from.
    """
    if any(one.role is Role.INTER_ROUTER for one in (*settings.listeners, *settings.connectors)):
        load_algorithms()
    if settings.http.port is not None:
        with contextlib.suppress(LocalError):  # told when the listener is bound
            http_service()


def _of_http(settings: RouterSettings) -> list[EndpointSettings]:
    return [settings.http] if settings.http.port is not None else []


def run(settings: RouterSettings, mesh: MeshSettings | None = None, read: Read | None = None) -> None:
    """Run one router until it is told to stop.

    Args:
        settings: of the router.
        mesh: that it is part of, when it is known: what it names is shown as absent where it isn't there.
        read: reads both anew from their file, on SIGHUP; None when there is none.
    Raises:
        LocalError: a listener cannot be bound.
    """
    clock = MonotonicClock()

    async def main() -> None:
        daemon = Daemon(settings, mesh, read=read, clock=clock.current_time, has_thread=True)
        spare_collector()
        share_interpreter()
        await daemon.run()

    trio.run(main, clock=clock)
