"""Limits of the files that a process may have open, shared out by the role of connections."""

from __future__ import annotations

import resource
from typing import Final

from mesh_config.models import Role, RouterSettings
from router.net.listener import NO_BOUND

DIALLING_FILES: Final = 16
"""Number of files kept for connections that this router makes, and for what it reads of the system."""


def most_files() -> int:
    """Limit of the files that this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return NO_BOUND if soft == resource.RLIM_INFINITY else soft


def usable_files(settings: RouterSettings, role: Role) -> int:
    """Count the descriptors of this process that connections of a role may take.

    Clients leave some for routers, and routers that dial a few for those that this one dials.
    """
    most = most_files()
    reserved = min(settings.reserved_files, most // 2)
    return most - (reserved if role is Role.NORMAL else min(reserved // 2, DIALLING_FILES))
