"""State of a virtual host at one router: who is connected, and how often what was denied."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Final

from mesh_config.models import VhostSettings
from router.core.policy.denial import DenialKind, Denied

TAG_CHARS: Final = 16
"""Number of characters of a mark in reply addresses: 64 bits of a hash, so that it tells nothing and has no separator
in it."""


class VhostState:
    """Connections of a virtual host now, and its denials since the start."""

    def __init__(self, settings: VhostSettings, told: Callable[[Denied, str, str, str], None]) -> None:
        """*told* hears of each denial: it, the virtual host, the user and what was asked for."""
        self.take_settings(settings)
        self.connections = 0
        self.admitted = 0
        """Number of connections that came in since the start."""
        self.hosts: dict[str, int] = {}
        self.denials: Counter[DenialKind] = Counter()
        self._told = told

    def take_settings(self, settings: VhostSettings) -> None:
        """Go by other settings of the same virtual host from now on."""
        self.settings = settings
        self.tag = hashlib.sha256(settings.name.encode()).hexdigest()[:TAG_CHARS] if settings.isolated else ""

    def join(self, host: str) -> None:
        """Count a connection that came in from the remote *host*."""
        self.connections += 1
        self.admitted += 1
        self.hosts[host] = self.hosts.get(host, 0) + 1

    def leave(self, host: str) -> None:
        """Count a connection from the remote *host* no more: it is gone."""
        self.connections -= 1
        self.hosts[host] -= 1
        if not self.hosts[host]:
            del self.hosts[host]

    def denied(self, denied: Denied, user: str, what: str) -> None:
        """Count a denial of one of its users, or of a client that may not come in.

        Args:
            denied: it.
            user: who asked.
            what: the client asked for, such as an address.
        """
        self.denials[denied.kind] += 1
        self._told(denied, self.settings.name, user, what)
