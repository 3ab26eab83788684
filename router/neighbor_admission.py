"""Rules for neighbors: whose router joins, of which mesh, under which id, and which addresses it may bring and use.

Source: docs/explanation/security.md#who-is-a-router.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from mesh_config.models import ConnectionSettings, ConnectorSettings, ListenerSettings, Mechanism, Role, RouterSettings
from router.core.addressing.address import AddressKind, is_private, is_reply_at_edge, parse_address, volatile_owner
from router.core.addressing.treatment_table import split_words
from router.core.errors import PeerProtocolError
from router.core.events import UNPLACED
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.linkstate.messages import MobileAddressUpdate, mobile_address
from router.engine.peer_identity import PeerIdentity
from router.engine.peer_open import PeerOpen

MESH_NAME: Final = "amqp-mesh.mesh"
"""Property of Open: name of the mesh."""
CONNECTOR: Final = "amqp-mesh.connector"
"""Property of the Open of the router that dials: place of its connector."""
ANY_ID: Final = "*"


def open_properties(router: RouterSettings, role: Role, connector: int | None = None) -> dict[str, object]:
    """Properties that our Open has beside those of every connection.

    Args:
        router: this one.
        role: of the connection.
        connector: place among the router's connectors of that which made it; None where the peer has dialled.
    """
    if role is not Role.INTER_ROUTER:
        return {}
    found: dict[str, object] = {} if router.mesh is None else {MESH_NAME: router.mesh}
    return found if connector is None else {**found, CONNECTOR: connector}


def connector_of(peer: PeerOpen) -> int:
    """Place of its connector that a peer which has dialled tells; `UNPLACED` when it tells none."""
    place = peer.properties.get(CONNECTOR)
    return place if isinstance(place, int) and 0 <= place < UNPLACED else UNPLACED


def check_neighbor(
    router: RouterSettings, settings: ConnectionSettings, peer: PeerOpen, identity: PeerIdentity | None
) -> None:
    """See whether the peer that has opened an inter-router connection may be a neighbor.

    Raises:
        PeerProtocolError: it may not; says why.
    """
    name = peer.properties.get(MESH_NAME)
    if router.mesh is not None and isinstance(name, str) and name != router.mesh:
        raise PeerProtocolError(f"router {peer.container} is of mesh {name}, and this one of mesh {router.mesh}")
    if isinstance(settings, ConnectorSettings) and settings.to is not None and peer.container != settings.to:
        raise PeerProtocolError(f"router {peer.container} is where router {settings.to} should be")
    if is_bound(settings):
        user = identity.user if identity is not None else ""
        ids = [each for rule in router.neighbors if rule.user == user for each in rule.ids or (user,)]
        if peer.container not in ids and ANY_ID not in ids:
            what = f"may not be router {peer.container}" if ids else "may not act as a router"
            raise PeerProtocolError(f"user {user} {what}", condition=Condition.UNAUTHORIZED_ACCESS)


def is_bound(settings: ConnectionSettings) -> bool:
    """Whether routers have to say there who they are, and so have no other id than they may."""
    return isinstance(settings, ListenerSettings) and Mechanism.ANONYMOUS not in settings.sasl


def check_hello(settings: ConnectionSettings, peer: PeerOpen | None, router_id: str) -> None:
    """See whether a HELLO has the id for which the connection was let in.

    Raises:
        PeerProtocolError: it has another one.
    """
    is_known = is_bound(settings) or (isinstance(settings, ConnectorSettings) and settings.to is not None)
    if is_known and (peer is None or router_id != peer.container):
        raise PeerProtocolError(
            f"a HELLO of router {router_id} from router {peer.container if peer is not None else ''}",
            condition=Condition.UNAUTHORIZED_ACCESS,
        )


class Prefixes:
    """Prefixes of addresses, by whole words."""

    def __init__(self, prefixes: Iterable[str]) -> None:
        self._words = [tuple(split_words(prefix.strip("/."))) for prefix in prefixes]

    def allow(self, address: str) -> bool:
        """Whether a mobile address, normalised, is below one of them."""
        words = tuple(split_words(address))
        return any(words[: len(prefix)] == prefix for prefix in self._words)


class NeighborAddressRights:
    """Rights of a neighbor with `allowed_prefixes` to send: to addresses below these, and to addresses for replies.

    An address for replies is known only to whom its owner has told it, so who answers needs no right for each.
    """

    prefix = ""

    def __init__(self, prefixes: Iterable[str], me: RouterId, refused: Callable[[str], None]) -> None:
        """*refused* is called with each address that a message may not be sent to."""
        self._prefixes = Prefixes(prefixes)
        self._me = me
        self._refused = refused

    def asks_other_router(self, address: str) -> bool:
        """Return False: what clients ask by way of other routers, those routers have looked at."""
        return False

    def message_target(self, address: str, connection: ConnectionId | None = None) -> str:
        """See that messages to *address* may come from there; see `SenderAddressRights`.

        Raises:
            PeerProtocolError: they may not.
        """
        parsed = parse_address(address, me=self._me)
        is_mobile = parsed.kind is AddressKind.MOBILE
        if is_private(parsed) or is_reply_at_edge(parsed) or (is_mobile and self._prefixes.allow(parsed.text)):
            return address
        self._refused(address)
        raise PeerProtocolError(
            f"no messages to {address} may come from this neighbor", condition=Condition.UNAUTHORIZED_ACCESS
        )

    def denied_user_id(self, error: Exception, connection: ConnectionId) -> None:
        """Do nothing: the user-id of a message was checked where it entered the mesh."""


def without_refused(update: MobileAddressUpdate, prefixes: tuple[str, ...]) -> tuple[MobileAddressUpdate, list[str]]:
    """The update with the addresses below *prefixes* alone, and those that were taken out of it.

    An address for replies that a router has made for a client of its own may come too.
    """
    allowed = Prefixes(prefixes)

    def is_allowed(key: str) -> bool:
        address = mobile_address(key)
        return address is not None and (allowed.allow(address) or volatile_owner(address) == update.id)

    keys = update.add if update.exist is None else update.exist
    kept = [index for index, key in enumerate(keys) if is_allowed(key)]
    if len(kept) == len(keys):
        return update, []
    left = set(kept)
    refused = [key for index, key in enumerate(keys) if index not in left]
    some = tuple(keys[index] for index in kept)
    hints = tuple(update.hints[index] for index in kept) if len(update.hints) == len(keys) else ()
    if update.exist is None:
        return attrs.evolve(update, add=some, hints=hints), refused
    return attrs.evolve(update, exist=some, hints=hints), refused
