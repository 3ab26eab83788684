"""Measures of a mesh: what must be true of one that has settled, and how far it is from that."""

from __future__ import annotations

from collections.abc import Callable, Collection

import networkx as nx

from router.core.controlplane import ControlPlane
from router.core.ids_and_conditions import RouterId
from router.simulation.mesh import Mesh, Router

Distances = dict[RouterId, dict[RouterId, float]]
"""Cost of the shortest path between any two routers that have one."""


def distances_of(graph: nx.Graph[RouterId]) -> Distances:
    """Distances in the graph of a mesh, by networkx alone."""
    return dict(nx.all_pairs_dijkstra_path_length(graph, weight="cost"))


def differences(mesh: Mesh) -> list[str]:
    """Each way in which a control plane's routes or addresses differ from what the living wires and routers give."""
    return _differences(mesh, distances_of(mesh.graph()))


def first_differences(mesh: Mesh, distances: Distances) -> list[str]:
    """The differences of the first router that has some, from distances that were worked out before."""
    return _differences(mesh, distances, is_first_enough=True)


def settled(mesh: Mesh) -> Callable[[], bool]:
    """A question for `Mesh.run_until_true`: have all control planes the right routes and addresses?

    Ask for a new one after each change of wires or routers.
    """
    distances = distances_of(mesh.graph())
    return lambda: not first_differences(mesh, distances)


def multicast_faults(mesh: Mesh, root: RouterId, receivers: Collection[RouterId] | None = None) -> list[str]:
    """Send a multicast that enters at *root* along the control planes' trees.

    Args:
        mesh: at rest or not.
        root: router where it enters.
        receivers: routers with subscribers, all that *root* reaches when absent.
    Returns: each receiver that got no copy or more than one, and each copy refused because it came off the tree.
    """
    planes = {router.id: router.plane for router in mesh.living()}
    wanted = set(nx.node_connected_component(mesh.graph(), root))
    wanted = wanted & set(receivers) if receivers is not None else wanted
    copies = dict.fromkeys(wanted, 0)
    faults: list[str] = []
    pending: list[tuple[RouterId, RouterId | None]] = [(root, None)]
    # A copy that runs in circles would never end.
    for _ in range(4 * len(planes)):
        if not pending:
            break
        at, before = pending.pop()
        tree = planes[at].tree(root)
        if tree.predecessor != before:
            faults.append(f"{at} refused a copy from {before}, it expects {tree.predecessor}")
            continue
        if at in copies:
            copies[at] += 1
        pending.extend((child, at) for child, below in tree.children.items() if below & wanted)
    else:
        faults.append("copies without end")
    faults.extend(f"{router} got {count} copies" for router, count in sorted(copies.items()) if count != 1)
    return faults


def _differences(mesh: Mesh, distances: Distances, *, is_first_enough: bool = False) -> list[str]:
    found: list[str] = []
    subscribed: dict[RouterId, Collection[str]] = {router.id: router.subscriptions for router in mesh.living()}
    for router in mesh.living():
        if isinstance(router.participant, ControlPlane):
            found.extend(_of_router(router, distances[router.id], subscribed))
            if found and is_first_enough:
                break
    return found


def _of_router(
    router: Router, distances: dict[RouterId, float], subscribed: dict[RouterId, Collection[str]]
) -> list[str]:
    found: list[str] = []
    costs = {other: route.cost for other, route in router.forwarding.routes.items()}
    wanted = {other: distance for other, distance in distances.items() if other != router.id}
    if costs != wanted:
        found.extend(
            f"{router.id} -> {other}: {costs.get(other)} instead of {wanted.get(other)}"
            for other in sorted(costs.keys() | wanted.keys())
            if costs.get(other) != wanted.get(other)
        )
    installed = {(a, other) for a, others in router.forwarding.addresses.items() for other in others}
    expected = {(a, other) for other in wanted for a in subscribed[other]}
    found.extend(f"{router.id}: {a} at {other} is missing" for a, other in sorted(expected - installed))
    found.extend(f"{router.id}: {a} at {other} is left over" for a, other in sorted(installed - expected))
    return found
