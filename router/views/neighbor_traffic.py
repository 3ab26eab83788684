"""Messages and bytes that a router has exchanged with each neighbor since it started, connections that are gone too."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from router.core.ids_and_conditions import RouterId
from router.runtime import Runtime
from router.views.link_address_rows import passed


@attrs.define
class NeighborTraffic:
    """Totals of one neighbor."""

    messages_in: int = 0
    messages_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def as_list(self) -> list[int]:
        """The four, in this order."""
        return [self.messages_in, self.messages_out, self.bytes_in, self.bytes_out]


def neighbor_traffic(runtime: Runtime) -> Mapping[RouterId, NeighborTraffic]:
    """Add up what connections to neighbors have carried, by neighbor.

    Args:
        runtime: the router.
    """
    data_plane, gone = runtime.data_plane, runtime.traffic.neighbors
    found: dict[RouterId, NeighborTraffic] = {}
    for connection in runtime.connections.values():
        name = connection.port.neighbor
        if name is None:
            continue
        totals = found.get(name)
        if totals is None:
            before = gone.get(name)
            totals = found[name] = (
                NeighborTraffic(before.messages_in, before.messages_out, before.bytes_in, before.bytes_out)
                if before is not None
                else NeighborTraffic()
            )
        messages = passed(
            connection, data_plane.gone_ingress_of.get(connection.id), data_plane.gone_egress_of.get(connection.id)
        )
        totals.messages_in += messages.received
        totals.messages_out += messages.sent
        octets = runtime.octets[connection.id]()
        if octets is not None:
            totals.bytes_in += octets.received
            totals.bytes_out += octets.sent
    return found
