"""Settings are read again while the router runs: SIGHUP, and the operation RELOAD of management.

The file is read and checked in a thread of its own, since a large mesh takes a while and messages go on. Only what is
right as a whole is looked at further, and what can fail, such as binding, comes first: what fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from mesh_config.change_plan import ChangePlan, plan_change
from mesh_config.findings import Finding, SettingsError, has_errors
from mesh_config.models import HttpSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from router import background_call, logs
from router.changeable_daemon import ChangeableDaemon
from router.core.addressing.address import AddressKind
from router.core.errors import LocalError
from router.core.ids_and_conditions import Condition, RouterId
from router.core.policy.policy import Policy
from router.drain_state import DrainState
from router.engine.connection import Connection
from router.findings_log import log_findings
from router.management.changes import ChangeError
from router.mesh_presence import ExpectedMesh
from router.net.connector import Connector
from router.net.listener import Listener, address_of
from router.peer_event_handler import remote_address
from router.runtime import Runtime, treatment_table
from router.security.credential_store import CredentialStore
from router.views.kept_treatments import kept_treatments, treatments_of
from router.views.reload_merging import as_left_by_management, in_file_after, running_after

if TYPE_CHECKING:  # an extra brings what it needs
    from router.net.http_server import HttpServer

Found = tuple[RouterSettings, MeshSettings | None, tuple[Finding, ...]]
Read = Callable[[], Found]
"""Function that reads and checks the file that the router was started with. Raises: SettingsError."""

Result = TypeVar("Result")
Held = TypeVar("Held", Listener, Connector)
Places = Mapping[ListenerSettings | HttpSettings, str]
"""Addresses of the hosts of listeners, looked up."""
FINDINGS_SAID: Final = 5
"""Maximum number of faults of a file that the answer tells of; the log has them all."""
NAMES_SAID: Final = 20
"""Maximum number of routers of the mesh, and of links, that the answer names as others than before."""


class SettingsReloader:
    """The settings of one running router, as its file had them when it was read last."""

    def __init__(self, runtime: Runtime, daemon: ChangeableDaemon, read: Read | None) -> None:
        """*read*: None for a router that was started without a file."""
        self._runtime = runtime
        self._daemon = daemon
        self._read = read
        self._in_file = runtime.settings
        self._is_busy = False
        """Whether the file is being read."""

    def reload(self, *, waits: bool = False) -> Generator[None, None, dict[str, list[str]]]:
        """Read the file, and change what can be changed; pauses while it is read.

        Args:
            waits: begin once a reading that is under way is over, whose file may be another one than there is now;
                else that is an error.
        Returns: `applied`, sentences about what was changed, and `needsRestart`, names of settings that were not.
        Raises:
            ChangeError: nothing has changed; says why.
        """
        try:
            if self._read is None:
                raise ChangeError("this router was started without a file", status=501)
            while waits and self._is_busy:
                yield
            if self._is_busy:
                raise ChangeError("the file is being read already", status=HTTPStatus.CONFLICT)
            self._is_busy = True
            try:
                new, expected, findings = yield from in_thread(partial(_read_and_expect, self._read))
                log_findings(self._runtime.log, findings)
                if has_errors(findings):
                    raise ChangeError(_said(findings))
                listeners = [each.settings for each in self._daemon.listeners]
                connectors = [each.settings for each in self._daemon.connectors]
                addresses = self._runtime.settings.addresses
                left = as_left_by_management(self._in_file, new, listeners, connectors, addresses)
                plan = plan_change(left, new)
                places = yield from in_thread(partial(_places, plan, new.http))
                files = yield from in_thread(partial(self._daemon.read_files, new))
            finally:
                self._is_busy = False
            return self._take(new, expected, plan, places, files)
        except LocalError as error:
            self._runtime.log.warning("reload_refused", reason=str(error))
            raise ChangeError(str(error)) from error
        except ChangeError as error:
            self._runtime.log.warning("reload_refused", reason=str(error))
            raise
        except SettingsError as error:
            log_findings(self._runtime.log, error.findings)
            self._runtime.log.warning("reload_refused", reason=_said(error.findings))
            raise ChangeError(_said(error.findings)) from error

    def _take(
        self,
        new: RouterSettings,
        expected: ExpectedMesh | None,
        plan: ChangePlan,
        places: Places,
        files: CredentialStore,
    ) -> dict[str, list[str]]:
        if new.id != self._in_file.id:
            raise ChangeError(f"the file is of router `{new.id}` now, and this one is `{self._in_file.id}`")
        state = self._runtime.drain_state
        if state is not DrainState.SERVING:
            raise ChangeError(f"the router is {state}", status=HTTPStatus.CONFLICT)
        before, treatments = self._runtime.settings, self._runtime.fib.treatments
        self._apply(plan, new, places, files)
        self._in_file = in_file_after(self._in_file, new, plan)
        presence = self._runtime.mesh_presence
        is_kept = treatments_of(self._runtime.settings) != treatments_of(before)
        kept = kept_treatments(self._runtime.fib, treatments, new.vhosts) if is_kept else []
        applied = [*plan.described(), *kept, *_mesh_changes(presence.expected, expected, RouterId(new.id))]
        presence.expect(expected, self._runtime.clock())
        for said in applied:
            self._runtime.log.info("reload_applied", what=said)
        for name in plan.needs_restart:
            self._runtime.log.warning("reload_needs_restart", setting=name)
        self._runtime.log.info("reloaded", applied=len(applied), needs_restart=len(plan.needs_restart))
        return {"applied": applied, "needsRestart": list(plan.needs_restart)}

    def _apply(self, plan: ChangePlan, new: RouterSettings, places: Places, files: CredentialStore) -> None:
        daemon = self._daemon
        settings = running_after(self._runtime.settings, self._in_file, new, plan)
        treatment_table(settings)  # what it refuses is refused before anything has changed
        http = self._bind(plan, new, places, files)
        for before, after in plan.altered:
            for listener in _with(daemon.listeners, before):
                daemon.alter_listener(listener, after)
        for gone in plan.closed:
            for listener in _with(daemon.listeners, gone):
                daemon.close_listener(listener)
        for left in plan.ended:
            for connector in _with(daemon.connectors, left):
                daemon.end_connector(connector)
        for old, paced in plan.repaced:
            for connector in _with(daemon.connectors, old):
                daemon.repace_connector(connector, paced)
        for come in plan.added:
            daemon.add_connector(come)
        self._runtime.take_settings(settings)
        if "http" in plan.taken_over:
            daemon.serve_http(http)
        if "vhosts" in plan.taken_over:
            self._runtime.policy.take_settings(new.vhosts, self._runtime.clock())
            daemon.start(self._close_unwelcome)  # once the answer to who has asked is written
        if "log" in plan.taken_over:
            if new.log.level is not self._in_file.log.level:  # else that of the command line stays
                logs.set_level(new.log.level)
            logs.set_format(new.log.format)

    def _bind(self, plan: ChangePlan, new: RouterSettings, places: Places, files: CredentialStore) -> HttpServer | None:
        """Do what can fail. Returns: what is to serve HTTP, where that has changed.

        Raises:
            ChangeError: something has failed, and nothing has changed.
        """
        daemon = self._daemon
        http: HttpServer | None = None
        leaving = [listener for gone in plan.closed for listener in _with(daemon.listeners, gone)]
        with ExitStack() as undo, self._shared_ports(leaving):
            try:
                undo.callback(daemon.prepare(plan, new, files))
                if "http" in plan.taken_over and (http := daemon.prepare_http(new, places.get(new.http))) is not None:
                    undo.callback(http.close)
                for each in plan.opened:
                    opened = daemon.open_listener(each, places[each], shares_port=True)
                    undo.callback(daemon.close_listener, opened)
            except LocalError as error:
                raise ChangeError(str(error)) from error
            undo.pop_all()
        return http

    @contextmanager
    def _shared_ports(self, leaving: Sequence[Listener]) -> Iterator[None]:
        """Let a listener be bound before the one is closed that has its port: on all addresses, or on one of them."""
        self._daemon.share_ports(leaving, True)
        try:
            yield
        finally:
            self._daemon.share_ports(leaving, False)

    async def _close_unwelcome(self) -> None:
        """Close the clients that would not be let in as they were, by the virtual hosts that there are now."""
        runtime = self._runtime
        runtime.begin(runtime.clock())
        for connection in list(runtime.connections.values()):
            if objection := _objection(runtime.policy, connection):
                runtime.refuse(connection, Condition.CONNECTION_FORCED, f"{objection}: connect again")
        runtime.settle()


def _read_and_expect(read: Read) -> tuple[RouterSettings, ExpectedMesh | None, tuple[Finding, ...]]:
    """Read the file, and work out which routers and links its mesh has. Raises: SettingsError."""
    router, mesh, findings = read()
    return router, ExpectedMesh.of(mesh) if mesh is not None else None, findings


def _objection(policy: Policy, connection: Connection) -> str:
    """Reason why a client may not stay; empty when it may, for routers, and for peers that aren't let in yet."""
    if connection.port.is_router or connection.settings.role is not Role.NORMAL:
        return ""
    if connection.peer is None or connection.is_ending:
        return ""
    hostname = getattr(connection.settings, "vhost", None) or connection.peer.hostname
    rights = connection.rights
    if objection := policy.objection(rights, hostname, remote_address(connection.host)):
        return objection
    for link in connection.links.values():
        entry = getattr(link, "entry", None)
        if rights and entry is not None and entry.kind is AddressKind.MOBILE and rights.is_outside(entry.text):
            return f"{entry.text} is in a virtual host of others now"
    return ""


def _mesh_changes(before: ExpectedMesh | None, after: ExpectedMesh | None, me: RouterId) -> Iterator[str]:
    """Say which other routers and links of the mesh are not as they were: `stat` shows them, absent ones too."""
    routers = [
        {str(key): site for key, site in each.routers.items() if key != me} if each is not None else {}
        for each in (before, after)
    ]
    links = [
        {" - ".join(pair): cost for pair, cost in each.links.items()} if each is not None else {}
        for each in (before, after)
    ]
    yield from _differences("routers", *routers, value="site")
    yield from _differences("links", *links, value="cost")


def _differences(what: str, old: Mapping[str, object], new: Mapping[str, object], *, value: str) -> Iterator[str]:
    """Name what has left, what has come, and of what the value is another."""
    changes = {
        "removed": [each for each in old if each not in new],
        "added": [each for each in new if each not in old],
        f"with another {value}": [each for each in new if each in old and new[each] != old[each]],
    }
    for change, names in changes.items():
        if names:
            more = f" and {len(names) - NAMES_SAID} more" if len(names) > NAMES_SAID else ""
            yield f"{what} of the file: {', '.join(names[:NAMES_SAID])}{more} {change}"


def _with(held: list[Held], settings: object) -> list[Held]:
    """The first of *held* that has these settings, as a list: management may have taken it away."""
    return [each for each in held if each.settings == settings][:1]


def _places(plan: ChangePlan, http: HttpSettings) -> Places:
    """Addresses of the hosts of the listeners that are to be bound, that for HTTP too. Raises: LocalError."""
    is_bound = "http" in plan.taken_over and http.port is not None
    listeners: list[ListenerSettings | HttpSettings] = [*plan.opened, *([http] if is_bound else [])]
    return {each: address_of(each) for each in listeners}


def in_thread(work: Callable[[], Result]) -> Generator[None, None, Result]:
    """Call *work* in a thread of its own, and pause meanwhile; what it raises is raised here."""
    found = background_call.begin(work, "change")
    while not found.done():
        yield
    return found.result()


def _said(findings: tuple[Finding, ...]) -> str:
    errors = [str(each) for each in findings if has_errors([each])]
    more = f"; and {len(errors) - FINDINGS_SAID} more" if len(errors) > FINDINGS_SAID else ""
    return "; ".join(errors[:FINDINGS_SAID]) + more
