"""What the engine asks of the data plane, which stands above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from router.binding.proton_functions import Handle
from router.core.forwarding.fib import AddressEntry
from router.dataplane.links import EgressLink, IngressCircuitLink, IngressDataLink, IngressLink, Port, PublisherLink


class DataPlaneInterface:
    """What the engine asks of the data plane."""

    session_window_frames: int
    """Frames that a peer may send on a session before they are read,"""
    session_windows_bytes: int
    """and bytes that a client may on its n-th session, times n."""

    def pump(self, collector: Handle) -> Handle:
        """Handle the events of a connection until one that is not the data plane's own: that one, or NULL."""
        raise NotImplementedError

    def sent(self) -> int:
        """Messages and copies of messages that have left on any link since the start, or will in the next turns."""
        raise NotImplementedError

    def add_publisher(self, link: PublisherLink) -> None:
        """Messages of a client may arrive on it from now on."""
        raise NotImplementedError

    def add_data_link(self, link: IngressDataLink) -> None:
        """Datagrams of a neighbor may arrive on it from now on."""
        raise NotImplementedError

    def add_egress(self, link: EgressLink) -> None:
        """Messages may leave on it from now on."""
        raise NotImplementedError

    def add_circuit(self, link: IngressCircuitLink) -> None:
        """A neighbor attached a circuit; it stands in `circuits_in` of its port."""
        raise NotImplementedError

    def circuits_told(
        self, port: Port, weights: Mapping[str, int], closed: Sequence[str], loads: Mapping[str, tuple[int, int]]
    ) -> None:
        """The neighbor's word on circuits: weights of its own, which of ours are closed, and loads where ours lead."""
        raise NotImplementedError

    def remove_ingress(self, link: IngressLink) -> None:
        """The link is gone; its handle will not be used any more."""
        raise NotImplementedError

    def remove_egress(self, link: EgressLink) -> None:
        """The link is gone; its handle will not be used any more."""
        raise NotImplementedError

    def flowed(self, link: EgressLink) -> None:
        """The link may have credit or room."""
        raise NotImplementedError

    def reconsider(self, entry: AddressEntry) -> None:
        """Who takes the messages of an address has changed."""
        raise NotImplementedError
