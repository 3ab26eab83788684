"""Synchronization with a new neighbor: all that it is told, so that both know the same from then on.

Routers of our kind give each other all the link state they hold, but for what they doubt themselves: after a partition
each side has missed what happened in the other. Neighbors that reached each other by other ways before have missed
nothing, since all news is flooded, and one more wire in a mesh of a thousand routers costs a few messages, not
thousands.
"""

from __future__ import annotations

from router.core.linkstate.control_message_sender import ALL_LINK_STATE_TO, ControlMessageSender
from router.core.linkstate.lsdb import LinkStateDatabase
from router.core.linkstate.messages import LinkStateUpdate, RouterAdvertisement
from router.core.linkstate.neighbors import ControlConnection


def catch_up(
    sender: ControlMessageSender,
    database: LinkStateDatabase,
    neighbor: ControlConnection,
    own: tuple[LinkStateUpdate | None, RouterAdvertisement],
) -> None:
    """Bring a neighbor up to date that is new, on another connection, or started anew.

    Args:
        sender: sends it.
        database: has what it is told of others.
        neighbor: its active connection.
        own: this router's link state, unless it was sent in this turn, and its advertisement.
    """
    update, advertisement = own
    if neighbor.pushes_lsu:
        if update is not None:
            sender.write(neighbor.connection, ALL_LINK_STATE_TO, update)
        _return_own(sender, database, neighbor)
        if not _is_in_touch(sender, database, neighbor):
            _tell_all(sender, database, neighbor)
    sender.write(neighbor.connection, ALL_LINK_STATE_TO, advertisement)


def _return_own(sender: ControlMessageSender, database: LinkStateDatabase, neighbor: ControlConnection) -> None:
    # The neighbor's own link state: so a router that was started twice with one boot number learns of it.
    node = database.nodes[neighbor.router]
    if node.has_link_state:
        sender.write(neighbor.connection, ALL_LINK_STATE_TO, node.update(), (node.id,))


def _is_in_touch(sender: ControlMessageSender, database: LinkStateDatabase, neighbor: ControlConnection) -> bool:
    node = database.nodes[neighbor.router]
    route = sender.route(neighbor.router)
    # By a direct route it was not told what got lost on the connection before this one.
    return node.has_link_state and route is not None and route.next_hop != neighbor.router


def _tell_all(sender: ControlMessageSender, database: LinkStateDatabase, neighbor: ControlConnection) -> None:
    for router in sorted(database.nodes):
        node = database.nodes[router]
        if router == neighbor.router or not node.is_reachable or not node.has_link_state or node.is_unconfirmed:
            continue
        sender.write(neighbor.connection, ALL_LINK_STATE_TO, node.update(), (router,))
        if node.advertised_mobile_seq > 0:
            sender.write(neighbor.connection, ALL_LINK_STATE_TO, node.advertisement(), (router,))
