"""Whether a router is ready for clients, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.drain_state import DrainState
from router.net.connector import Connector
from router.net.listener import Listener
from router.runtime import Runtime

DIALLED_WITHIN_S: Final = 10.0
"""Time since the start of a router without connectors within which others are to have dialled it, seconds: those that
have lost it try again every `reconnect_max_s`, 5 s by default."""


def reasons_not_ready(runtime: Runtime, listeners: Sequence[Listener], connectors: Sequence[Connector]) -> list[str]:
    """Sentences that say why not; none when the router is ready.

    It is ready when its listeners are up and, if it connects to other routers, one of these is its neighbor. One that
    others connect to, by the file of the mesh, waits for one of them `DIALLED_WITHIN_S`: they may be down.
    """
    reasons = []
    if runtime.drain_state is not DrainState.SERVING:
        return [f"the router is {runtime.drain_state}"]
    reasons += [f"listener {listener.name} does not listen" for listener in listeners if listener.is_closed]
    if connectors and not runtime.fib.routes:
        told = [f"{connector.name}: {connector.message or connector.status}" for connector in connectors]
        reasons.append(f"no other router is reached ({'; '.join(told)})")
    elif not runtime.fib.routes and (expected := _expected_neighbors(runtime)):
        reasons.append(f"no other router has connected yet, of {', '.join(expected)}")
    return reasons


def _expected_neighbors(runtime: Runtime) -> list[str]:
    """The routers that are to dial this one soon after its start; none later, and none without a file of the mesh."""
    presence = runtime.mesh_presence
    if presence.expected is None or runtime.clock() >= presence.started + DIALLED_WITHIN_S:
        return []
    me = runtime.settings.id
    return sorted(router for pair in presence.expected.links if me in pair for router in pair if router != me)
