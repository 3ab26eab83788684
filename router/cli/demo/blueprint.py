"""Participants of the demonstration: four routers, each a neighbor of every other, RPC servers and callers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import attrs

from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings

ROUTERS = ("A", "B", "C", "D")
LINKS = tuple(combinations(ROUTERS, 2))
CUT = ("A", "C")
"""The link that is cut: its first router has a server, its second a caller."""
HOST = "127.0.0.1"
SERVERS = {"A": "server-A", "D": "server-D"}
"""Name of the RPC server attached to each of these routers."""
CALLERS = {"B": "caller-B", "C": "caller-C", "D": "caller-D"}
ANY = "any server"
"""Destination of a call that names no server."""
DESTINATIONS = (*SERVERS.values(), ANY)


def settings(clients: Mapping[str, int], neighbors: Mapping[str, int]) -> MeshSettings:
    """The mesh: of two neighbors the later connects to the earlier.

    Args:
        clients: ports of the listeners for clients, by router.
        neighbors: ports of the listeners for other routers, by router.
    """
    return MeshSettings(
        name="demo",
        routers={
            router: RouterSettings(
                id=router,
                listeners=(
                    ListenerSettings(name="clients", host=HOST, port=clients[router]),
                    ListenerSettings(name="routers", host=HOST, port=neighbors[router], role=Role.INTER_ROUTER),
                ),
                connectors=tuple(
                    ConnectorSettings(to=earlier, host=HOST, port=neighbors[earlier], reconnect_max_s=1.0)
                    for earlier in ROUTERS[: ROUTERS.index(router)]
                ),
            )
            for router in ROUTERS
        },
    )


def by_wire(router: RouterSettings, port: int) -> RouterSettings:
    """Settings of the later router of the link `CUT`, which connects to *port* instead of the earlier."""
    return attrs.evolve(
        router,
        connectors=tuple(
            attrs.evolve(connector, to=None, port=port) if connector.to == CUT[0] else connector
            for connector in router.connectors
        ),
    )
