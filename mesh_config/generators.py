"""Meshes of well-known shapes, for examples, simulations and load tests; all on loopback.

Router number *i*, from 0, listens for clients at `base_port + 2 i` and for other routers at the port after; of two
neighbors the later connects to the earlier. What is random is drawn from a generator with the seed given.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping

import networkx as nx

from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings

BASE_PORT = 21000
MAX_ROUTERS = 10000
"""Two ports each must fit into the range of ports."""
MAX_FULL = 1000
"""Maximum number of routers of a full mesh: the file of 1,400 would be larger than any that is read."""

Edge = tuple[int, int, int]
"""Two routers by number and the cost of their link."""


def line(routers: int, *, base_port: int = BASE_PORT) -> MeshSettings:
    """One router after the other."""
    return _mesh("line", routers, ((i, i + 1, 1) for i in range(routers - 1)), base_port)


def ring(routers: int, *, base_port: int = BASE_PORT) -> MeshSettings:
    """A line closed to a circle; of two routers or fewer, a line."""
    edges = [(i, i + 1, 1) for i in range(routers - 1)]
    return _mesh("ring", routers, edges + ([(0, routers - 1, 1)] if routers > 2 else []), base_port)


def star(routers: int, *, base_port: int = BASE_PORT) -> MeshSettings:
    """The first router in the middle, the others around it."""
    return _mesh("star", routers, ((0, i, 1) for i in range(1, routers)), base_port)


def tree(routers: int, *, branches: int = 2, base_port: int = BASE_PORT) -> MeshSettings:
    """A balanced tree, filled level by level.

    Args:
        routers: number of routers, from 1.
        branches: routers below each one, from 1.
        base_port: TCP port of the first listener.
    """
    _at_least("branches", branches, 1)
    return _mesh("tree", routers, (((i - 1) // branches, i, 1) for i in range(1, routers)), base_port)


def full(routers: int, *, base_port: int = BASE_PORT) -> MeshSettings:
    """Every router a neighbor of every other.

    Args:
        routers: number of routers, from 1 to `MAX_FULL`.
        base_port: TCP port of the first listener.
    Raises:
        ValueError: more routers.
    """
    if routers > MAX_FULL:
        raise ValueError(
            f"a full mesh of {routers} routers has {routers * (routers - 1) // 2:,} links: {MAX_FULL} routers at most"
        )
    return _mesh("full", routers, ((i, j, 1) for i in range(routers) for j in range(i + 1, routers)), base_port)


def geometric(routers: int, *, seed: int = 0, neighbors: float = 4.0, base_port: int = BASE_PORT) -> MeshSettings:
    """Routers strewn over a square, neighbors where they are near: a random geometric graph, made whole.

    Args:
        routers: number of routers, from 1.
        seed: of the places.
        neighbors: of a router, on average.
        base_port: TCP port of the first listener.
    Returns: a mesh in one part; the cost of a link is its length, the longest possible (a diagonal) being 100.
    """
    rng = random.Random(seed)
    points = [(rng.random(), rng.random()) for _ in range(routers)]
    radius = math.sqrt(neighbors / (math.pi * max(routers - 1, 1)))

    def cost(i: int, j: int) -> int:
        return max(1, round(math.dist(points[i], points[j]) / math.sqrt(2) * 100))

    near = [(i, j) for i in range(routers) for j in range(i + 1, routers) if math.dist(points[i], points[j]) <= radius]
    joined = near + _joints(points, near)
    return _mesh("geometric", routers, ((i, j, cost(i, j)) for i, j in sorted(joined)), base_port)


def chords(routers: int, *, seed: int = 0, neighbors: int = 4, base_port: int = BASE_PORT) -> MeshSettings:
    """A ring, and links between routers drawn at random: few hops from anywhere to anywhere.

    Args:
        routers: number of routers, from 1.
        seed: of the draws.
        neighbors: of a router, on average, at most; 2 or less is the ring alone.
        base_port: TCP port of the first listener.
    """
    rng = random.Random(seed)
    pairs = {(i, i + 1) for i in range(routers - 1)} | ({(0, routers - 1)} if routers > 2 else set())
    wanted = min(routers * neighbors // 2, routers * (routers - 1) // 2)
    while len(pairs) < wanted:
        i, j = sorted(rng.sample(range(routers), 2))
        pairs.add((i, j))
    return _mesh("chords", routers, ((i, j, 1) for i, j in sorted(pairs)), base_port)


def fat_tree(routers: int, *, base_port: int = BASE_PORT) -> MeshSettings:
    """A fat tree of k pods: (k/2)^2 routers in the core, k/2 aggregating and k/2 at the edge of each pod.

    Args:
        routers: 5 k^2 / 4 of an even k: 5, 20, 45, 80, 125 ...
        base_port: TCP port of the first listener.
    Raises:
        ValueError: another number of routers.
    Source: Al-Fares, Loukissas and Vahdat, A Scalable, Commodity Data Center Network Architecture, 2008.
    """
    pods = math.isqrt(4 * routers // 5)
    if pods < 2 or pods % 2 or 5 * pods * pods != 4 * routers:
        near = min((5 * even * even // 4 for even in range(2, pods + 3, 2)), key=lambda size: abs(size - routers))
        raise ValueError(f"no fat tree has {routers} router{'' if routers == 1 else 's'}; the nearest has {near}")
    half = pods // 2
    core = half * half
    edges: list[Edge] = []
    for pod in range(pods):
        above = core + pod * pods
        for i in range(half):
            edges += [(i * half + j, above + i, 1) for j in range(half)]
            edges += [(above + i, above + half + j, 1) for j in range(half)]
    return _mesh("fat-tree", routers, edges, base_port)


KINDS: Mapping[str, Callable[..., MeshSettings]] = {
    "line": line,
    "ring": ring,
    "star": star,
    "tree": tree,
    "full": full,
    "geometric": geometric,
    "chords": chords,
    "fat-tree": fat_tree,
}
SEEDED = frozenset({"chords", "geometric"})
"""Kinds that take a seed."""


def generate(kind: str, routers: int, *, seed: int = 0, base_port: int = BASE_PORT) -> MeshSettings:
    """A mesh of one of the `KINDS`.

    Args:
        kind: one of the `KINDS`.
        routers: number of routers, from 1.
        seed: used by the kinds in `SEEDED`.
        base_port: TCP port of the first listener.
    Raises:
        KeyError: an unknown kind.
        ValueError: the kind has no mesh of so many routers, or its ports would not fit.
    """
    return KINDS[kind](routers, base_port=base_port, **({"seed": seed} if kind in SEEDED else {}))


def _mesh(name: str, routers: int, edges: Iterable[Edge], base_port: int) -> MeshSettings:
    _at_least("routers", routers, 1)
    if base_port < 1 or base_port + 2 * routers - 1 > 65535:
        raise ValueError(
            f"{routers} routers from port {base_port} need ports up to {base_port + 2 * routers - 1}; the last is 65535"
        )
    width = len(str(routers))
    ids = [f"R{i + 1:0{width}d}" for i in range(routers)]
    connectors: list[list[ConnectorSettings]] = [[] for _ in ids]
    for one, other, cost in edges:
        early, late = min(one, other), max(one, other)
        connectors[late].append(ConnectorSettings(to=ids[early], port=base_port + 2 * early + 1, cost=cost))
    return MeshSettings(
        name=f"{name}-{routers}",
        routers={
            router_id: RouterSettings(
                id=router_id,
                listeners=(
                    ListenerSettings(port=base_port + 2 * i),
                    ListenerSettings(port=base_port + 2 * i + 1, role=Role.INTER_ROUTER),
                ),
                connectors=tuple(connectors[i]),
            )
            for i, router_id in enumerate(ids)
        },
    )


def _joints(points: list[tuple[float, float]], near: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The shortest links that make one part of many."""
    graph: nx.Graph[int] = nx.Graph(near)
    graph.add_nodes_from(range(len(points)))
    joints = []
    parts = sorted((sorted(part) for part in nx.connected_components(graph)), key=len)
    while len(parts) > 1:
        part, others = parts[0], [node for other in parts[1:] for node in other]
        _, i, j = min((math.dist(points[i], points[j]), i, j) for i in part for j in others)
        joints.append((min(i, j), max(i, j)))
        graph.add_edge(i, j)
        parts = sorted((sorted(part) for part in nx.connected_components(graph)), key=len)
    return joints


def _at_least(word: str, value: int, low: int) -> None:
    if value < low:
        raise ValueError(f"{word} must be at least {low}, not {value}")
