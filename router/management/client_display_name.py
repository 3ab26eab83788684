"""Names of clients, for people."""

from __future__ import annotations

NOBODY_IN_PARTICULAR = ("", "anonymous")


def client_name(container: str | None, user: str | None = None, host: str | None = None) -> str:
    """Name a client so that it is found: its user, its own name for itself, and where it comes from.

    Args:
        container: id that it gives itself, which several may have in common; empty before its Open.
        user: that it signed in as.
        host: host and port.
    Returns: such as `alice/batch-7 (10.0.0.7:41234)`, without what is not known.
    """
    name = "/".join(part for part in (user if user not in NOBODY_IN_PARTICULAR else None, container) if part)
    if not name:
        return host or "-"
    return f"{name} ({host})" if host else name
