"""The client of management as snapshots and watches of a live mesh ask it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from router.cli.management import ManagementClient
from router.cli.management_errors import RefusedError


class MeshClient:
    """Asks routers of which some may be of another version."""

    def __init__(self, client: ManagementClient) -> None:
        self._client = client

    def query(self, kind: str, attributes: Sequence[str], *, router: str | None) -> list[dict[str, Any]]:
        """All entities of a type; with all attributes from a router that doesn't know all of *attributes*.

        Raises: ManagementError
        """
        try:
            return self._client.query(kind, attributes, router=router)
        except RefusedError:
            return self._client.query(kind, router=router)

    def attached_to(self) -> str:
        """Id of the router that it is connected to."""
        return str(self._client.read("router")["id"])
