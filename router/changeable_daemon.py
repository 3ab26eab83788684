"""Interface of a daemon to what changes it while it runs: drains, reloads and management.

`router.daemon.Daemon` is the only one that does it; it makes those who call it, so they can't import it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from mesh_config.change_plan import ChangePlan
from mesh_config.models import ConnectorSettings, ListenerSettings, RouterSettings
from router.net.connector import Connector
from router.net.listener import Listener
from router.security.credential_store import CredentialStore

if TYPE_CHECKING:  # an extra brings what it needs
    from router.net.http_server import HttpServer


class ChangeableDaemon(Protocol):
    """A daemon whose listeners and connectors can be changed while it runs."""

    listeners: list[Listener]
    connectors: list[Connector]

    # Listeners

    def open_listener(self, settings: ListenerSettings, place: str, *, shares_port: bool = False) -> Listener:
        """Bind a listener, and accept.

        Args:
            settings: host, port and role.
            place: address of the host.
            shares_port: bind it also where a listener that shares its port has this one.
        Raises:
            LocalError: it cannot be bound, or the router stops.
        """

    def alter_listener(self, listener: Listener, settings: ListenerSettings) -> None:
        """Give it other settings for the connections to come; it stays bound."""

    def close_listener(self, listener: Listener) -> None:
        """Accept no more on it; its connections stay."""

    def stop_accepting(self, listener: Listener) -> None:
        """Close it, and leave it in the list."""

    def accept_again(self, listener: Listener) -> None:
        """Bind a closed listener anew, and accept.

        Raises:
            LocalError: it cannot be bound, or the router stops.
        """

    def share_ports(self, leaving: Sequence[Listener], is_shared: bool) -> None:
        """Let others be bound at the ports of *leaving* and of HTTP, as these are to be closed, or no more."""

    # Connectors

    def add_connector(self, settings: ConnectorSettings) -> Connector:
        """Begin to connect."""

    def repace_connector(self, connector: Connector, settings: ConnectorSettings) -> None:
        """Give it other pauses between its attempts; its connection goes on."""

    def end_connector(self, connector: Connector) -> None:
        """Connect no more, and close the connection once the request's answer, which may go by it, is written."""

    # HTTP

    def prepare_http(self, settings: RouterSettings, place: str | None) -> HttpServer | None:
        """Bind the HTTP listener that *settings* have, at the address *place* of its host; None where they have none.

        It is bound also where a listener that shares its port has this one.

        Raises:
            LocalError: it cannot be bound, or what it needs is not installed.
        """

    def serve_http(self, server: HttpServer | None) -> None:
        """Serve HTTP by *server* from now on; connections of the one before it end."""

    # Files

    def read_files(self, settings: RouterSettings) -> CredentialStore:
        """Read all files of TLS, users and passwords that *settings* name. Blocks. Raises: LocalError."""

    def prepare(self, plan: ChangePlan, new: RouterSettings, files: CredentialStore) -> Callable[[], None]:
        """Take the files of TLS and of users that listeners and connectors need.

        Args:
            plan: what is to change.
            new: settings afterwards.
            files: has read those of the new settings.
        Returns: what takes it back, should something else fail.
        Raises:
            LocalError: one of them cannot be used, and nothing has changed.
        """

    # Tasks

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run *task* beside all else. After a fault of ours, which is told of, it is called again, until it returns.

        Raises:
            LocalError: the router stops.
        """

    def stop(self) -> None:
        """Stop, as SIGTERM has it."""
