"""A virtual mesh for tests of AMQP clients: the credit machines of real routers, under virtual time, without sockets.

`AnycastMesh` and `MulticastMesh` are meshes for one address each. Publishers and subscribers come and go on them,
connections and routers die, and each flow, transfer and drain takes the time that its wire takes. See
docs/how_to/test-a-client.md.
"""

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.ids_and_conditions import RouterId
from router.testing.anycast_mesh import AnycastMesh, jain_index
from router.testing.clients import GrantHabit, SettlementHabit, SimPublisher, SimSubscriber
from router.testing.links import AmqpLink, OneWayWire
from router.testing.multicast_mesh import MulticastMesh, is_connected

__all__ = [
    "AnycastMesh",
    "MulticastMesh",
    "SimPublisher",
    "SimSubscriber",
    "GrantHabit",
    "SettlementHabit",
    "CreditTiming",
    "ExclusionTiming",
    "RouterId",
    "AmqpLink",
    "OneWayWire",
    "jain_index",
    "is_connected",
]
