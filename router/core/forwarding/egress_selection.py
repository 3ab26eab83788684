"""Choosing the egress of an anycast message without credit: a local subscriber, a route to another router, or to wait.

Which local subscriber is next the controller of the address knows (`router.dataplane.anycast_controller`). Both rules
look at the candidates of this moment only. `passed` are the routers that the message has been at (its
trace): none of them, and no next hop among them, is a candidate, so a message never turns back.
"""

from __future__ import annotations

from collections.abc import Collection

from router.core.forwarding.egress_load import EgressLoad
from router.core.forwarding.fib import BALANCED, AddressEntry, Route, Subscriber
from router.core.ids_and_conditions import RouterId

Routes = dict[RouterId, Route]


def choose(
    entry: AddressEntry,
    routes: Routes,
    passed: Collection[str],
    remote_window: int,
    now: float,
    local: Subscriber | None,
) -> Subscriber | Route | None:
    """Choose where the next message of *entry* goes.

    Args:
        entry: its address.
        routes: to all reachable routers.
        passed: routers that the message has been at.
        remote_window: unsettled datagrams toward one router above which `balanced` looks elsewhere, messages.
        now: seconds; a route in doubt is taken only where there is no other choice.
        local: the next local subscriber with credit; None when there is none, or others wait for it.
    Returns: *local*, a route, or None: then it waits here if there is a local subscriber, and can go
        nowhere if there is none.
    """
    if entry.treatment is BALANCED:
        return _balanced(entry, routes, passed, remote_window, now, local)
    return _closest(entry, routes, passed, now, local)


def _closest(
    entry: AddressEntry, routes: Routes, passed: Collection[str], now: float, local: Subscriber | None
) -> Subscriber | Route | None:
    if entry.subscribers:
        return local
    nearest = candidates(entry, routes, passed, now)
    if not nearest:
        return None
    entry.turn += 1
    if len(nearest) == 1:
        return nearest[0]
    cost = min([route.cost for route in nearest])
    equals = sorted([(route.router, route) for route in nearest if route.cost == cost])
    return equals[(entry.turn - 1) % len(equals)][1]


def _balanced(
    entry: AddressEntry,
    routes: Routes,
    passed: Collection[str],
    window: int,
    now: float,
    local: Subscriber | None,
) -> Subscriber | Route | None:
    # DEV-30: as `AnycastScheduler` chooses for messages that have credit.
    if not entry.remotes or (local is not None and local.outstanding == 0):
        return local
    found = candidates(entry, routes, passed, now)
    if local is not None and found and found[0].doubtful_until > now:
        return local
    best: Route | None = None
    best_load: EgressLoad | None = None
    least = 0.0
    latest = 0
    for route in found:
        load = entry.remotes[route.router]
        latest = max(latest, load.chosen)
        if load.datagrams >= window and entry.subscribers:
            continue
        wait = load.wait(now) + entry.distance * route.cost
        if best_load is None or wait < least or (wait == least and load.chosen < best_load.chosen):
            best, best_load, least = route, load, wait
    if best_load is None or (local is not None and local.outstanding <= least):
        return local
    best_load.chosen = latest + 1
    return best


def candidates(entry: AddressEntry, routes: Routes, passed: Collection[str], now: float) -> list[Route]:
    """Find routes to the routers with subscribers that do not lead back to where the message came from.

    Routes in doubt at *now* (seconds) are among them only when all are.
    """
    found = []
    is_any_sure = False  # DEV-26
    for router in entry.remotes:
        route = routes.get(router)
        # DEV-21: a closest message does not turn back either.
        if route is not None and not (passed and (router in passed or route.next_hop in passed)):
            found.append(route)
            is_any_sure = is_any_sure or route.doubtful_until <= now
    if is_any_sure and len(found) > 1:
        return [route for route in found if route.doubtful_until <= now]
    return found
