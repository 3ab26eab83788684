"""Changes that management orders of a running router: listeners, connectors, addresses, the log, connections.

What is created is checked as a settings file is, by the same code, and says the same when it is wrong.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol

import attrs

from mesh_config import yaml_text
from mesh_config.check import check_mesh, has_errors
from mesh_config.check_router import MOST_PATTERN_WORDS, count_pattern_words
from mesh_config.connector_matching import ListenerIndex
from mesh_config.defaults_merging import address_key
from mesh_config.findings import Finding
from mesh_config.loader import parse_document
from mesh_config.models import AddressSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from mesh_config.value_rules import fault_of, field_of
from router import logs
from router.changeable_daemon import ChangeableDaemon
from router.core.errors import LocalError
from router.core.ids_and_conditions import Condition, ConnectionId
from router.core.linkstate.spf import load_algorithms
from router.draining import Draining
from router.management.changes import ChangeError
from router.management.config_log_and_memory_rows import AddressConfigRow, RouterLogRow
from router.management.snapshot import ConnectionRow, ConnectorRow, ListenerRow, Row
from router.net.listener import address_of
from router.runtime import Runtime
from router.views.config_log_and_memory_rows import address_config_rows
from router.views.kept_treatments import kept_treatments
from router.views.reload import SettingsReloader, in_thread
from router.views.socket_rows import connector_identity

SOCKET: Final = {
    "name": "name",
    "host": "host",
    "port": "port",
    "role": "role",
    "cost": "cost",
    "maxFrameSize": "max_frame_bytes",
    "maxSessions": "max_sessions",
    "idleTimeoutSeconds": "idle_timeout_s",
}
LISTENER: Final = {
    **SOCKET,
    "maxConnections": "max_connections",
    "initialHandshakeTimeoutSeconds": "handshake_timeout_s",
    "multiTenant": "vhost_prefix",
}
ADDRESS: Final = {
    "prefix": "prefix",
    "pattern": "pattern",
    "distribution": "treatment",
    "distanceMessages": "distance_messages",
}
NAME: Final = field_of(ListenerSettings, "name")
"""Setting whose rule holds for the names of all that is created."""
INTEGERS: Final = ("port", "cost", "max_frame_bytes", "max_sessions", "max_connections")
SAID_ALREADY: Final[Mapping[str, object]] = {
    "authenticatePeer": False,
    "saslMechanisms": "ANONYMOUS",
    "http": False,
    "waypoint": False,
    "enableFallback": False,
}
"""Attributes that can't be set, with the values that change nothing."""
MOST_CREATED: Final = 1000
"""Maximum number of listeners, connectors, or addresses of a router that management may add to."""


class ManagedDaemon(ChangeableDaemon, Protocol):
    """A daemon that management can also have read its file again, drain and stop."""

    reloading: SettingsReloader
    draining: Draining


class RuntimeChanges:
    """`management.changes.Changes` of a running router."""

    def __init__(self, runtime: Runtime, daemon: ManagedDaemon | None) -> None:
        """*daemon*: None where there is none, and no listener or connector can be made."""
        self._runtime = runtime
        self._daemon = daemon
        self._is_looking_up = False
        """Whether the host of a listener is being looked up, one at a time: a name server may take long."""

    # What can be done

    def create(self, kind: type[Row], attributes: Mapping[str, object]) -> Generator[None, None, str]:
        """See `Changes.create`."""
        if kind is AddressConfigRow:
            return self._create_address(attributes)
        if kind is ListenerRow:
            return (yield from self._create_listener(attributes))
        assert kind is ConnectorRow
        return (yield from self._create_connector(attributes))

    def update(self, row: Row, attributes: Mapping[str, object]) -> Row:
        """See `Changes.update`."""
        if isinstance(row, RouterLogRow):
            self._update_log(attributes)
            return row
        assert isinstance(row, ConnectionRow)
        return self._update_connection(row, attributes)

    def delete(self, row: Row) -> None:
        """See `Changes.delete`."""
        if isinstance(row, AddressConfigRow):
            self._delete_address(row)
            return
        daemon = self._need_daemon()
        if isinstance(row, ListenerRow):
            for listener in daemon.listeners:
                if listener.port == int(row.port) and listener.host == row.host:
                    daemon.close_listener(listener)
                    self._tell("listener deleted", listener.name)
                    return
        elif isinstance(row, ConnectorRow):
            for connector in daemon.connectors:
                if connector_identity(connector.settings) == row.identity:
                    daemon.end_connector(connector)
                    self._tell("connector deleted", connector.name)
                    return
        raise ChangeError(f"`{row.name}` is gone", status=404)

    def reload(self) -> Generator[None, None, dict[str, list[str]]]:
        """See `Changes.reload`."""
        return (yield from self._need_daemon().reloading.reload())

    def drain(self, kept: ConnectionId | None, *, is_to_stop: bool) -> dict[str, object]:
        """See `Changes.drain`."""
        draining = self._need_daemon().draining
        try:
            draining.begin(kept, is_to_stop=is_to_stop)
        except LocalError as error:
            raise ChangeError(str(error), status=HTTPStatus.CONFLICT) from error
        return {"state": str(self._runtime.drain_state), "withinSeconds": self._runtime.settings.shutdown_s}

    def resume(self) -> dict[str, object]:
        """See `Changes.resume`."""
        try:
            self._need_daemon().draining.resume()
        except LocalError as error:
            raise ChangeError(str(error), status=HTTPStatus.CONFLICT) from error
        return {"state": str(self._runtime.drain_state)}

    def _need_daemon(self) -> ManagedDaemon:
        if self._daemon is None:
            raise ChangeError("this router has no sockets", status=501)
        return self._daemon

    def _tell(self, what: str, name: str) -> None:
        self._runtime.log.info("changed_by_management", what=what, name=name)

    # Sockets

    def _create_listener(self, attributes: Mapping[str, object]) -> Generator[None, None, str]:
        daemon = self._need_daemon()
        if self._is_looking_up:
            raise ChangeError("the host of another listener is being looked up", status=HTTPStatus.CONFLICT)
        self._check_name("listener", attributes, [each.settings.name for each in daemon.listeners])
        _bound(daemon.listeners)
        (settings,) = self._checked(listeners=[_settings(attributes, LISTENER)]).listeners
        self._is_looking_up = True
        try:
            if settings.role is Role.INTER_ROUTER:
                yield from in_thread(load_algorithms)
            place = yield from in_thread(partial(address_of, settings))
            listener = daemon.open_listener(settings, place)
        except LocalError as error:
            raise ChangeError(str(error)) from error
        finally:
            self._is_looking_up = False
        self._tell("listener created", listener.name)
        named = f":{settings.name}" if settings.name else ""
        return f"listener/{listener.host}:{listener.port}{named}"

    def _create_connector(self, attributes: Mapping[str, object]) -> Generator[None, None, str]:
        daemon = self._need_daemon()
        yield from in_thread(load_algorithms)  # for what may be the first neighbor
        self._check_name("connector", attributes, [each.settings.name for each in daemon.connectors])
        _bound(daemon.connectors)
        wanted = {"role": "inter-router", **_settings(attributes, SOCKET)}
        (settings,) = self._checked(connectors=[wanted]).connectors
        bound = tuple(attrs.evolve(each.settings, host=each.host, port=each.port) for each in daemon.listeners)
        alone = MeshSettings(routers={self._runtime.me: attrs.evolve(self._runtime.settings, listeners=bound)})
        if ListenerIndex(alone).target_of(self._runtime.me, settings) is not None:
            raise ChangeError(f"this router listens at {settings.host}:{settings.port}: it would connect to itself")
        if settings.effective_name in [each.settings.effective_name for each in daemon.connectors]:
            raise ChangeError(
                f"there is a connector `{settings.effective_name}` already: give this one a name of its own"
            )
        connector = daemon.add_connector(settings)
        self._tell("connector created", connector.name)
        named = f":{settings.name}" if settings.name else ""
        return f"connector/{settings.host}:{settings.port}{named}"

    def _check_name(self, kind: str, attributes: Mapping[str, object], names: Sequence[str | None]) -> None:
        name = attributes.get("name")
        if name is not None and not isinstance(name, str):
            raise ChangeError(f"name is `{name}`; expected text")
        fault = fault_of(NAME, str(name)) if name is not None else None
        if fault is not None:
            raise ChangeError(f"name: {fault.message}; expected {fault.expected}")
        if name is not None and name in names:
            raise ChangeError(f"there is a {kind} `{name[:200]}` already")

    def _checked(self, **parts: Any) -> RouterSettings:
        """Settings of a router of this name with nothing but *parts*, as they are read from a file."""
        text = yaml_text.write({"router": {"id": self._runtime.me, **parts}})
        document = parse_document(text, "the request")
        findings = document.findings or check_mesh(document.mesh)
        if has_errors(findings):
            raise ChangeError("; ".join(_said(each) for each in findings[:5]))
        (settings,) = document.mesh.routers.values()
        return settings

    # Addresses

    def _create_address(self, attributes: Mapping[str, object]) -> str:
        runtime = self._runtime
        names = [runtime.address_names.get(entry) for entry in runtime.settings.addresses]
        self._check_name("router.config.address", attributes, names)
        _bound(runtime.settings.addresses)
        bound = {"address_bytes": runtime.settings.forwarding.address_bytes}
        wanted = _settings(attributes, ADDRESS, but=("name",))
        (entry,) = self._checked(addresses=[wanted], forwarding=bound).addresses
        if count_pattern_words([*runtime.settings.addresses, entry]) > MOST_PATTERN_WORDS:
            raise ChangeError(f"the patterns would have more than {MOST_PATTERN_WORDS} words together", status=403)
        key = address_key(entry.prefix, entry.pattern)
        if any(address_key(each.prefix, each.pattern) == key for each in runtime.settings.addresses):
            raise ChangeError(f"`{entry.prefix or entry.pattern}` is configured already")
        if attributes.get("name") is not None:
            runtime.address_names[entry] = str(attributes["name"])
        self._set_addresses((*runtime.settings.addresses, entry))
        self._tell("address created", str(entry.prefix or entry.pattern))
        return next(
            row.identity
            for row in address_config_rows(runtime)
            if isinstance(row, AddressConfigRow) and (row.prefix, row.pattern) == (entry.prefix, entry.pattern)
        )

    def _delete_address(self, row: AddressConfigRow) -> None:
        if row.is_builtin:
            raise ChangeError(f"{row.prefix or row.pattern} is built in: create another entry for it instead")
        addresses = self._runtime.settings.addresses
        kept = tuple(each for each in addresses if (each.prefix, each.pattern) != (row.prefix, row.pattern))
        self._set_addresses(kept)
        self._tell("address deleted", str(row.prefix or row.pattern))

    def _set_addresses(self, addresses: tuple[AddressSettings, ...]) -> None:
        settings, before = self._runtime.settings, self._runtime.fib.treatments
        self._runtime.take_settings(attrs.evolve(settings, addresses=addresses))
        for said in kept_treatments(self._runtime.fib, before, settings.vhosts):
            self._runtime.log.info("treatments_kept", what=said)

    # The log and connections

    def _update_log(self, attributes: Mapping[str, object]) -> None:
        _no_others(attributes, ("enable", "format", "name", "module"), "log")
        words = {"none": "none", "debug+": "debug", "info+": "info", "warning+": "warning", "error+": "error"}
        # Names of Qpid Dispatch for what this log does not tell apart.
        words |= {"trace+": "debug", "notice+": "info", "critical+": "error", "default": "info"}
        level, form = attributes.get("enable"), attributes.get("format")
        if form is not None and form not in logs.FORMATS:
            raise ChangeError(f"format is `{str(form)[:50]}`; expected one of {', '.join(logs.FORMATS)}")
        if level not in words and (level is not None or form is None):
            raise ChangeError(f"enable is `{str(level)[:50]}`; expected one of {', '.join(list(words)[:5])}")
        if form is not None:
            logs.set_format(str(form))
            self._tell("log format", str(form))
        if level is not None:
            logs.set_level(words[str(level)])
            self._runtime.log.info("log_level_changed", to=words[str(level)])

    def _update_connection(self, row: ConnectionRow, attributes: Mapping[str, object]) -> ConnectionRow:
        _no_others(attributes, ("adminStatus", "name"), "connection")
        status = attributes.get("adminStatus")
        if status not in ("deleted", "enabled"):
            raise ChangeError(f"adminStatus is `{str(status)[:50]}`; expected `enabled` or `deleted`")
        connection = self._runtime.connections.get(ConnectionId(int(row.identity)))
        if connection is None:
            raise ChangeError(f"connection {row.identity} is gone", status=404)
        if status != "deleted":
            return row
        self._tell("connection closed", row.identity)
        self._runtime.refuse(connection, Condition.CONNECTION_FORCED, "closed by management (adminStatus)")
        return attrs.evolve(row, admin_status="deleted", oper_status="closing")


def _said(finding: Finding) -> str:
    """A finding about a file as one about a request: of its path the last word."""
    key = finding.key.rpartition(".")[2]
    expected = f"; expected {finding.expected}" if finding.expected else ""
    return f"{finding.message}{expected}" if "[" in key else f"{key}: {finding.message}{expected}"


def _settings(
    attributes: Mapping[str, object], known: Mapping[str, str], *, but: Sequence[str] = ()
) -> dict[str, object]:
    """Settings as a file has them, from attributes by their names on the wire."""
    _no_others(attributes, (*known, *but), "new entity")
    found: dict[str, object] = {}
    for name, value in attributes.items():
        if name not in known or value is None:
            continue
        key = known[name]
        is_number = isinstance(value, str) and value.isdecimal() and value.isascii() and key in INTEGERS
        found[key] = int(str(value)) if is_number else value
    return found


def _no_others(attributes: Mapping[str, object], known: Sequence[str], what: str) -> None:
    for name, value in attributes.items():
        if name not in known and not (name in SAID_ALREADY and value == SAID_ALREADY[name]):
            raise ChangeError(f"`{name}` of a {what} can't be set; there are {', '.join(known)}")


def _bound(there: Sequence[object]) -> None:
    if len(there) >= MOST_CREATED:
        raise ChangeError(f"there are {MOST_CREATED} already", status=403)
