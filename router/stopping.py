"""Graceful stop of a router: nothing new is taken, what is in flight settles, what waits goes back, then all is closed."""

from __future__ import annotations

from typing import Final

import trio

from router.runtime import Runtime

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
        await _settle(runtime)
    if not runtime.connections:
        return
    runtime.close_all()
    with trio.move_on_after(CLOSE_PATIENCE_S):
        await empty.wait()


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
