"""Virtual hosts in management: their rows, and what belongs to one of them."""

from __future__ import annotations

from typing import Final

from router.core.addressing.address import Address, AddressKind, is_private, reply_tag
from router.core.forwarding.fib import AddressEntry
from router.core.policy.denial import DenialKind
from router.core.policy.policy import Policy
from router.core.policy.vhost_state import VhostState
from router.dataplane.links import IngressLink, SubscriberLink
from router.engine.connection import Connection
from router.management.snapshot import VhostRow
from router.runtime import Runtime
from router.views.credit import Party

NO_TAG: Final = "-"
"""Mark that no reply address has: of a virtual host that is no more, and has no client."""
NO_VHOST: Final = "(none)"
"""Name that stands for all virtual hosts that clients name and that there are not."""


class VhostMembership:
    """Tells which connections and addresses of this router are of one virtual host, at the moment of asking."""

    def __init__(self, runtime: Runtime, vhost: str) -> None:
        self.vhost = vhost
        self._runtime = runtime
        rights = (each.rights for each in runtime.connections.values())
        of_clients = [each.state for each in rights if each is not None]  # also of one that a reload has taken away
        states = [each for each in (*runtime.policy.vhosts(), *of_clients) if each.settings.name == vhost]
        state = states[0] if states else None
        self._tag = state.tag if state is not None else NO_TAG
        self._prefix = f"{vhost}/" if state is None or state.settings.isolated else ""
        self._attached: set[int] = set()
        """Addresses in use by its own links, by identity: of a virtual host without addresses of its own."""
        if not self._prefix:
            for connection in runtime.connections.values():
                if self.has_connection(connection):
                    links = connection.links.values()
                    self._attached.update(
                        id(link.entry) for link in links if isinstance(link, IngressLink | SubscriberLink)
                    )

    def has_connection(self, connection: Connection) -> bool:
        """Whether it is of one of its clients."""
        return connection.rights is not None and connection.rights.vhost == self.vhost

    def has_entry(self, entry: AddressEntry) -> bool:
        """Whether an address is in it, or one of its links' where it has no addresses of its own."""
        if not self._prefix:
            return id(entry) in self._attached
        if is_private(Address(entry.kind, entry.text)):
            return reply_tag(entry.text) == self._tag
        return entry.kind is AddressKind.MOBILE and entry.text.startswith(self._prefix)

    def has_party(self, party: Party) -> bool:
        """Whether it is a link of one of its clients."""
        port = getattr(party, "port", None)
        connection = self._runtime.connections.get(port.id) if port is not None else None
        return connection is not None and self.has_connection(connection)


def vhost_rows(policy: Policy, own: VhostMembership | None) -> list[VhostRow]:
    """The virtual hosts of a router; of *own* its own alone."""
    rows = [_row(state) for state in policy.vhosts() if own is None or own.vhost == state.settings.name]
    if policy.is_active and own is None:
        rows.append(_unknown(policy.denied_unknown))
    return rows


def _row(state: VhostState) -> VhostRow:
    settings, denials = state.settings, state.denials
    return VhostRow(
        name=settings.name,
        identity=settings.name,
        id=settings.name,
        hostname=settings.name,
        session_denied=0,
        per_user_state={},
        per_host_state={},
        max_message_size_denied=0,
        is_isolated=settings.isolated,
        max_connections=settings.max_connections,
        connections_current=state.connections,
        connections_approved=state.admitted,
        connections_denied=denials[DenialKind.CONNECTION],
        sender_denied=denials[DenialKind.SENDER],
        receiver_denied=denials[DenialKind.RECEIVER],
        messages_denied=denials[DenialKind.MESSAGE],
        user_ids_denied=denials[DenialKind.USER_ID],
    )


def _unknown(denied: int) -> VhostRow:
    return VhostRow(
        name=NO_VHOST,
        identity=NO_VHOST,
        id=NO_VHOST,
        hostname=NO_VHOST,
        session_denied=0,
        per_user_state={},
        per_host_state={},
        max_message_size_denied=0,
        is_isolated=False,
        max_connections=0,
        connections_current=0,
        connections_approved=0,
        connections_denied=denied,
        sender_denied=0,
        receiver_denied=0,
        messages_denied=0,
        user_ids_denied=0,
    )
