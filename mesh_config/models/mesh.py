"""Settings of one router and of a whole mesh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from mesh_config.models.addresses import AddressSettings, Treatment
from mesh_config.models.connections import ConnectionSettings, ConnectorSettings, ListenerSettings, Role
from mesh_config.models.forwarding import ForwardingSettings
from mesh_config.models.http import HttpSettings
from mesh_config.models.link_state import LinkStateSettings
from mesh_config.models.log import LogSettings
from mesh_config.models.recorder import RecorderSettings
from mesh_config.models.security import NeighborSettings, TlsSettings
from mesh_config.models.setting_field import HOST_PATTERN, ID_PATTERN, NAME_PATTERN, setting
from mesh_config.models.vhosts import VhostSettings

LEAST_ROUTER_SILENCE_S: Final = 4.0
"""Minimum time that a neighbor may be silent before its connection is closed, seconds, however often routers say HELLO;
only an `idle_timeout_s` may be shorter."""


@attrs.frozen(kw_only=True)
class RouterSettings:
    """Everything one router process needs."""

    id: str = setting(
        "Name of the router, unique in the mesh: up to 255 visible characters, but no blank and no `/`, and not `all`.",
        pattern=ID_PATTERN,
    )
    host: str | None = setting(
        "Host by which other routers reach this one; `to` resolves to it where a listener binds to all addresses.",
        default=None,
        pattern=HOST_PATTERN,
    )
    site: str | None = setting(
        "Site of the router, such as a data center; routers of one site may fail together.",
        default=None,
        pattern=NAME_PATTERN,
    )
    mesh: str | None = setting(
        "Name of the router's mesh; a neighbor of a mesh with another name is refused, unless one of the two "
        "has none. A mesh file has it in `mesh.name`, whose default, `mesh`, is none.",
        default=None,
        pattern=NAME_PATTERN,
    )
    tls: tuple[TlsSettings, ...] = setting("TLS profiles.", default=())
    neighbors: tuple[NeighborSettings, ...] = setting(
        "Routers that may join at listeners that make them authenticate. When absent in a mesh file: its other routers,"
        " each with its id as user.",
        default=(),
    )
    listeners: tuple[ListenerSettings, ...] = setting("Sockets that wait for connections.", default=())
    connectors: tuple[ConnectorSettings, ...] = setting("Connections that this router makes and keeps up.", default=())
    addresses: tuple[AddressSettings, ...] = setting(
        "Treatments of addresses (*distribution* in Qpid Dispatch); they override the built-in ones.", default=()
    )
    vhosts: tuple[VhostSettings, ...] = setting(
        "Virtual hosts. Without any, everybody who reaches a listener may do everything; with at least one, only what"
        " they allow.",
        default=(),
    )
    default_treatment: Treatment = setting("Treatment of every other address.", default=Treatment.BALANCED)
    link_state: LinkStateSettings = setting("Timers of the routing protocol.", factory=LinkStateSettings)
    forwarding: ForwardingSettings = setting("Windows and bounds of the data plane.", factory=ForwardingSettings)
    log: LogSettings = setting("Lines of the log.", factory=LogSettings)
    recorder: RecorderSettings = setting("Flight recorder: what is kept to explain a fault.", factory=RecorderSettings)
    http: HttpSettings = setting("Health, metrics and the console by HTTP.", factory=HttpSettings)
    reserved_files: int = setting(
        "Open files reserved for connections of routers, at most half of all; a client that would take one is refused.",
        default=64,
        unit="files",
        low=0,
        high=1000000,
        beyond="a client is closed at once, `files_short`",
    )
    shutdown_s: float = setting(
        "Time for messages in flight to settle after SIGTERM.", default=5.0, unit="seconds", low=0, high=3600
    )
    shutdown_replies_s: float = setting(
        "Maximum part of `shutdown_s` spent waiting for replies to accepted requests: slow calls are "
        "answered, and clients get no credit meanwhile.",
        default=3.0,
        unit="seconds",
        low=0,
        high=3600,
    )

    def most_silence_s(self, connection: ConnectionSettings) -> float:
        """Time after which a silent connection is closed, seconds; 0 for never, which is for clients alone.

        Routers say HELLO all the time, so one that is silent for much longer than it takes to be lost is dead, or what
        is between has forgotten its connection: the sooner that is made anew the better.
        """
        silence_s = connection.idle_timeout_s
        if connection.role is not Role.INTER_ROUTER:
            return silence_s
        most_s = max(LEAST_ROUTER_SILENCE_S, 2 * self.link_state.hello_max_age_s)
        return min(silence_s or most_s, most_s)


@attrs.frozen(kw_only=True)
class MeshSettings:
    """A whole mesh, by router id; defaults are already merged into each router."""

    name: str = setting(
        "Name of the mesh, in pictures and reports. Routers of meshes with different names are no neighbors, unless one"
        " name is `mesh`.",
        default="mesh",
        pattern=NAME_PATTERN,
    )
    routers: Mapping[str, RouterSettings] = setting("The routers by id.", factory=dict)

    def name_of(self, router: RouterSettings) -> str | None:
        """Name of the mesh that a router of it tells its neighbors; None for none."""
        return self.name if router.mesh is None and self.name != MeshSettings().name else router.mesh
