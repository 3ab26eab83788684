"""Data plane as the engine calls it: the classes that stand above the engine implement these methods."""

from __future__ import annotations

from router.binding.proton_functions import Handle
from router.core.forwarding.fib import AddressEntry
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.links import EgressLink, IngressCircuitLink, IngressDatagramLink, IngressLink, PublisherLink


class LinkEventHandler:
    """Calls of a connection to the handler of deliveries, outcomes and flows."""

    def pump(self, collector: Handle) -> Handle:
        """Handle the events of a connection until one that is not the data plane's own: that one, or NULL."""
        raise NotImplementedError

    def sent(self) -> int:
        """Messages and copies of messages that have left on any link since the start, or will in the next turns."""
        raise NotImplementedError


class DataPlane:
    """Abstract data plane that the engine calls; `RouterDataPlane` implements it."""

    reader: LinkEventHandler
    current_settings: CurrentSettings

    @property
    def session_window_frames(self) -> int:
        """Number of frames that a peer may send on a session before they are read."""
        return self.current_settings.forwarding.session_window_frames

    @property
    def session_windows_bytes(self) -> int:
        """Number of bytes that a client may send unread on its n-th session, times n.

        500 sessions have less than all of what is held for a connection together.
        """
        return self.current_settings.forwarding.connection_bytes // 8

    def add_publisher(self, link: PublisherLink) -> None:
        """Take in a link on which messages of a client may arrive from now on."""
        raise NotImplementedError

    def add_data_link(self, link: IngressDatagramLink) -> None:
        """Take in a link on which datagrams of a neighbor may arrive from now on."""
        raise NotImplementedError

    def add_egress(self, link: EgressLink) -> None:
        """Take in a link on which messages may leave from now on."""
        raise NotImplementedError

    def add_circuit(self, link: IngressCircuitLink) -> None:
        """Take in a circuit that a neighbor has attached; it stands in `circuits_in` of its port."""
        raise NotImplementedError

    def remove_ingress(self, link: IngressLink) -> None:
        """Forget a link that is gone; its handle will not be used any more."""
        raise NotImplementedError

    def remove_egress(self, link: EgressLink) -> None:
        """Forget a link that is gone; its handle will not be used any more."""
        raise NotImplementedError

    def flowed(self, link: EgressLink) -> None:
        """Take note that a link may have credit or room."""
        raise NotImplementedError

    def reconsider(self, entry: AddressEntry) -> None:
        """Move credit, and what waits: others than before take the messages of an address."""
        raise NotImplementedError
