"""Graceful stop of a router: paths lead elsewhere, nothing new is taken, what is in flight settles, all is closed.

What clients still wait to send goes back to them before that. Up to there a drain is the same (`router.draining`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from router.core.events import TransitEnded
from router.core.ids_and_conditions import Condition
from router.drain_state import SHUTTING_DOWN, DrainState
from router.runtime import Runtime

REROUTE_S: Final = 0.3
"""Time from the moment when others have heard that paths are to lead elsewhere, and their `spf_hold_down_s` is over,
until nothing new is taken, seconds: they compute in this time, and what is on its way arrives. They are taken to have
the same setting as this router."""
REPLIES_S: Final = 0.25
"""Time from the moment when all is settled until unanswered requests are counted, seconds: in it come answers to
requests that don't count."""
COUNT_S: Final = 0.1
"""Time between two counts of unanswered requests, seconds."""
HAND_BACK_S: Final = 0.25
"""Time from the moment when credit is handed back until connections are closed, seconds: clients send what waited for
credit, and get it back."""
CLOSE_PATIENCE_S: Final = 1.0
"""Maximum wait for peers to answer our Close, seconds."""
EXIT_S: Final = 5.0
"""Maximum time from then until the process has ended, seconds: one with very many addresses needs some to give them
up."""


async def stop_in_order(runtime: Runtime, settling: trio.CancelScope, drained: trio.Event | None = None) -> None:
    """Close every connection, once what is in flight has settled.

    Args:
        runtime: of the router; nobody is let in any more.
        settling: entered here, with the deadline that the settings say: cancelled by who can't wait.
        drained: set once a drain that has begun before is over; None when the router served until now.
    """
    runtime.enter(DrainState.STOPPING)
    with settling:
        settling.deadline = trio.current_time() + runtime.settings.shutdown_s
        if drained is None:
            await take_no_more(runtime, is_told=neighbor_count(runtime) > 1)
        else:
            await drained.wait()
    if not runtime.data_plane.settlement.is_stopping:
        runtime.stop_taking()  # there was no time for anything
    if not runtime.connections:
        return
    runtime.begin(runtime.clock())
    for connection in list(runtime.connections.values()):
        connection.close(Condition.CONNECTION_FORCED, SHUTTING_DOWN)
    runtime.settle()
    with trio.move_on_after(CLOSE_PATIENCE_S):
        await none_left(runtime, lambda: not runtime.connections)


async def none_left(runtime: Runtime, is_so: Callable[[], bool]) -> None:
    """Wait until *is_so*, looking when a connection is gone."""
    while not is_so():
        removed = trio.Event()
        runtime.tell_removed(removed.set)
        await removed.wait()


async def take_no_more(runtime: Runtime, *, is_told: bool) -> None:
    """Lead paths elsewhere, take nothing new, wait until what is in flight has settled, and give clients the rest back.

    Args:
        runtime: of the router.
        is_told: have others hear that paths are to lead elsewhere.
    """
    if is_told:
        runtime.data_plane.set_now(runtime.clock())
        runtime.events.append(TransitEnded())
        runtime.settle()
    if neighbor_count(runtime) > 1:
        await trio.sleep(runtime.settings.link_state.spf_hold_down_s + REROUTE_S)
    await _settle(runtime)


def neighbor_count(runtime: Runtime) -> int:
    """Connections to other routers."""
    return sum(connection.port.is_router for connection in runtime.connections.values())


async def _settle(runtime: Runtime) -> None:
    quiet = trio.Event()
    runtime.tell_quiet(quiet.set)
    runtime.stop_taking()
    with trio.move_on_at(_hand_back_at()):
        await quiet.wait()
    if all(connection.port.is_router for connection in runtime.connections.values()):
        return
    await _wait_for_replies(runtime)
    if not runtime.data_plane.is_quiet():
        quiet = trio.Event()
        runtime.tell_quiet(quiet.set)
        with trio.move_on_at(_hand_back_at()):
            await quiet.wait()
    runtime.hand_back()
    await trio.sleep(HAND_BACK_S)


def _hand_back_at() -> float:
    """Return the latest time at which credit is handed back, seconds: clients need a moment for what they then send."""
    return trio.current_effective_deadline() - 2 * HAND_BACK_S


async def _wait_for_replies(runtime: Runtime) -> None:
    """Wait until each request is answered, or `shutdown_replies_s` are over; there is time left to hand back."""
    most_s = runtime.settings.shutdown_replies_s
    until = min(trio.current_time() + most_s, _hand_back_at())
    await trio.sleep(min(REPLIES_S, most_s))
    if unanswered := _unanswered_requests(runtime):
        runtime.log.info("waiting_for_replies", clients=len(unanswered), requests=sum(unanswered), within_s=most_s)
    while unanswered and trio.current_time() < until:
        await trio.sleep(COUNT_S)
        unanswered = _unanswered_requests(runtime)


def _unanswered_requests(runtime: Runtime) -> list[int]:
    """Numbers of unanswered requests, of each client that has any."""
    clients = (each for each in runtime.connections.values() if not each.port.is_router)
    return [unanswered for client in clients if (unanswered := client.count_unanswered_requests())]
