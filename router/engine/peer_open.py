"""Reading of the peer's Open.

Source: AMQP 1.0 part 2, 2.7.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle, text


@attrs.frozen(kw_only=True)
class PeerOpen:
    """Content of the peer's Open."""

    container: str
    hostname: str | None
    properties: Mapping[str, object]
    offered: tuple[str, ...]
    desired: tuple[str, ...]

    def has(self, capability: str) -> bool:
        """Whether the peer offers and desires it."""
        return capability in self.offered and capability in self.desired


def read_open(connection: Handle) -> PeerOpen:
    """The Open that has arrived on a connection."""
    return PeerOpen(
        container=text(pn.pn_connection_remote_container(connection)) or "",
        hostname=text(pn.pn_connection_remote_hostname(connection)),
        properties=proton_data.read_map(pn.pn_connection_remote_properties(connection)),
        offered=proton_data.read_symbols(pn.pn_connection_remote_offered_capabilities(connection)),
        desired=proton_data.read_symbols(pn.pn_connection_remote_desired_capabilities(connection)),
    )
