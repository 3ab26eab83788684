"""Messages and bytes that a router has exchanged with each neighbor since it started, connections that are gone too."""

from __future__ import annotations

import attrs

from router.closed_connection_traffic import TrafficTotals
from router.core.ids_and_conditions import RouterId
from router.runtime import Runtime
from router.views.link_address_rows import passed


def neighbor_traffic(runtime: Runtime) -> dict[str, list[int]]:
    """Add up what connections to neighbors have carried, by neighbor.

    Args:
        runtime: the router.
    Returns: messages received and sent, bytes received and sent, in the order of the neighbors' ids.
    """
    gone = runtime.traffic.neighbors
    found: dict[RouterId, TrafficTotals] = {}
    for connection in runtime.connections.values():
        name = connection.port.neighbor
        if name is None:
            continue
        if name not in found:
            found[name] = attrs.evolve(gone[name]) if name in gone else TrafficTotals()
        totals = found[name]
        messages = passed(connection, runtime.data_plane)
        totals.messages_in += messages.received
        totals.messages_out += messages.sent
        octets = runtime.octets[connection.id]()
        if octets is not None:
            totals.bytes_in += octets.received
            totals.bytes_out += octets.sent
    return {
        name: [totals.messages_in, totals.messages_out, totals.bytes_in, totals.bytes_out]
        for name, totals in sorted(found.items())
    }
