"""Graceful stop of a router: paths lead elsewhere, nothing new is taken, what is in flight settles, all is closed.

What clients still wait to send goes back to them before that.
"""

from __future__ import annotations

from typing import Final

import trio

from router.core.events import TransitEnded
from router.runtime import Runtime

REROUTE_S: Final = 0.3
"""From the moment when others hear that paths are to lead elsewhere until nothing new is taken. They hear it at
once, and compute new paths after their `spf_hold_down_s`."""
REPLIES_S: Final = 0.25
"""From the moment when all is settled until clients get back what they wait to send: a server of oslo.messaging
acknowledges a request before it answers."""
HAND_BACK_S: Final = 0.25
"""And then, in which they send what waited for credit, and get it back."""
CLOSE_PATIENCE_S: Final = 1.0
"""For peers to answer our Close."""


async def stop_in_order(runtime: Runtime, settling: trio.CancelScope) -> None:
    """Close every connection, once what is in flight has settled.

    Args:
        runtime: of the router; nobody is let in any more.
        settling: entered here, with the deadline that the settings say: cancelled by who can't wait.
    """
    empty = trio.Event()
    runtime.emptied = empty.set
    with settling:
        settling.deadline = trio.current_time() + runtime.settings.shutdown_s
        if sum(connection.port.is_router for connection in runtime.connections.values()) > 1:
            _end_transit(runtime)
            await trio.sleep(REROUTE_S)
        await _settle(runtime)
    if not runtime.data_plane.settlement.is_stopping:
        runtime.stop_taking()  # there was no time for anything
    if not runtime.connections:
        return
    runtime.close_all()
    with trio.move_on_after(CLOSE_PATIENCE_S):
        await empty.wait()


def _end_transit(runtime: Runtime) -> None:
    """Have paths lead through other routers where they can."""
    runtime.data_plane.set_now(runtime.clock())
    runtime.is_draining = True
    runtime.events.append(TransitEnded())
    runtime.settle()


async def _settle(runtime: Runtime) -> None:
    quiet = trio.Event()
    runtime.quieted = quiet.set
    runtime.stop_taking()
    await quiet.wait()
    if not runtime.has_clients:
        return
    await trio.sleep(REPLIES_S)
    if not runtime.data_plane.is_quiet():
        quiet = trio.Event()
        runtime.quieted = quiet.set
        await quiet.wait()
    runtime.hand_back()
    await trio.sleep(HAND_BACK_S)
