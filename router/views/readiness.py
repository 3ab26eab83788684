"""Whether a router is ready for clients, in words."""

from __future__ import annotations

from collections.abc import Sequence

from router.drain_state import DrainState
from router.net.connector import Connector
from router.net.listener import Listener
from router.runtime import Runtime


def reasons_not_ready(runtime: Runtime, listeners: Sequence[Listener], connectors: Sequence[Connector]) -> list[str]:
    """Sentences that say why not; none when the router is ready.

    It is ready when its listeners are up and, if it connects to other routers, one of these is its neighbor.
    """
    reasons = []
    if runtime.drain_state is not DrainState.SERVING:
        return [f"the router is {runtime.drain_state}"]
    reasons += [f"listener {listener.name} does not listen" for listener in listeners if listener.is_closed]
    if connectors and not runtime.fib.routes:
        told = [f"{connector.name}: {connector.message or connector.status}" for connector in connectors]
        reasons.append(f"no other router is reached ({'; '.join(told)})")
    return reasons
