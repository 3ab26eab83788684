"""Rows of listeners and connectors."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Final, TypedDict

from mesh_config.models import ConnectorSettings, ListenerSettings, Mechanism, RouterSettings
from router.engine.connection import Connection
from router.management.snapshot import ConnectorRow, LazyRows, ListenerRow
from router.mesh_presence import Presence, when
from router.net.connector import Connector
from router.net.listener import Listener
from router.runtime import Runtime

CONNECTOR_STATUS: Final = {"connected": "CONNECTING", "connecting": "CONNECTING", "failed": "FAILED"}
"""Words of Qpid Dispatch for those of `net.connector`, of one that has no neighbor."""


class _SocketFields(TypedDict):
    role: str
    cost: int
    sasl_mechanisms: str
    ssl_profile: str | None
    max_frame_size: int
    max_sessions: int
    idle_timeout_seconds: int


def _socket_fields(settings: ListenerSettings | ConnectorSettings, router: RouterSettings) -> _SocketFields:
    mechanisms = " ".join(settings.sasl) if isinstance(settings, ListenerSettings) else settings.sasl.value
    return _SocketFields(
        role=settings.role.value,
        cost=settings.cost,
        sasl_mechanisms=mechanisms,
        ssl_profile=settings.tls,
        max_frame_size=settings.max_frame_bytes,
        max_sessions=settings.max_sessions,
        idle_timeout_seconds=round(router.most_silence_s(settings)),
    )


def listener_row(listener: Listener, router: RouterSettings) -> ListenerRow:
    """One listener, open or closed, of *router*."""
    settings, host, port = listener.settings, listener.host, str(listener.port)
    return ListenerRow(
        name=settings.name or f"listener/{host}:{port}",
        identity=f"listener/{host}:{port}" + (f":{settings.name}" if settings.name else ""),
        host=host,
        port=port,
        **_socket_fields(settings, router),
        connection_count=listener.count,
        max_connections=settings.max_connections,
        initial_handshake_timeout_seconds=round(settings.handshake_timeout_s),
        link_capacity=router.forwarding.publisher_window,
        multi_tenant=settings.vhost_prefix,
        is_open=not listener.is_closed,
        authenticate_peer=Mechanism.ANONYMOUS not in settings.sasl,
        http=False,
    )


def connector_rows(runtime: Runtime, connectors: Sequence[Connector], offset: float) -> LazyRows:
    """All connectors of a router.

    Args:
        runtime: of the router.
        connectors: its connectors.
        offset: from its clock to seconds since 1970.
    """
    # A connection has the same object as settings as its connector.
    served = {id(each.settings): each for each in runtime.connections.values() if not each.is_server}
    up = up_connectors(runtime, connectors)
    return LazyRows(connectors, lambda connector: _connector_row(runtime, connector, served, up, offset))


def up_connectors(runtime: Runtime, connectors: Sequence[Connector]) -> set[Connector]:
    """Connectors that are of use: their neighbor speaks, or their connection stands by."""
    # On a connection that stands by no HELLO is sent; there are few, and may be many connections of clients.
    standby = [view.connection for view in runtime.control.neighbors() if view.is_standby]
    spares = {id(runtime.connections[each].settings) for each in standby if each in runtime.connections}
    names = {name for name, known in runtime.mesh_presence.connectors.items() if known.is_present}
    return {each for each in connectors if each.name in names or id(each.settings) in spares}


def connector_identity(settings: ConnectorSettings) -> str:
    """Identity of a connector for management: those to one place differ by their names."""
    return f"connector/{settings.host}:{settings.port}" + (f":{settings.name}" if settings.name else "")


def _connector_row(
    runtime: Runtime,
    connector: Connector,
    served: Mapping[int, Connection],
    up: Container[Connector],
    offset: float,
) -> ConnectorRow:
    settings = connector.settings
    place = f"{settings.host}:{settings.port}"
    connection = served.get(id(settings))
    known = runtime.mesh_presence.connectors.get(connector.name) or Presence(since=runtime.mesh_presence.started)
    is_up = connector in up
    message = connector.message or known.reason
    if not message:
        message = "the other side has not said yet that it is a neighbor" if connection is not None else ""
    peer = connection.peer if connection is not None else None
    status = CONNECTOR_STATUS["failed" if connection is not None and known.is_not_understood else connector.status]
    return ConnectorRow(
        name=settings.name or f"connector/{place}",
        identity=connector_identity(settings),
        host=settings.host,
        port=str(settings.port),
        **_socket_fields(settings, runtime.settings),
        connection_status="SUCCESS" if is_up else status,
        connection_msg="" if is_up else message,
        failover_urls=f"amqp://{place}",
        router=settings.to or (peer.container if peer is not None else None),
        since=int(known.since + offset),
        flap_count=known.flaps,
        last_flap=when(known.last_flap, offset),
        last_flap_reason=known.last_reason or None,
    )
