"""A mesh as a graph: routers and the links that their connectors make, for computing and for Graphviz."""

from __future__ import annotations

import networkx as nx

from mesh_config.connector_matching import link_costs
from mesh_config.models import MeshSettings


def topology(mesh: MeshSettings) -> nx.Graph[str]:
    """The graph of a mesh: a node for each router, an edge for each pair of neighbors.

    Returns: nodes by key in the order of the file, with `site`; edges with `cost`, the one that counts, in both
        directions; of parallel connections the cheapest. What check.py calls an error has no edge.
    """
    graph: nx.Graph[str] = nx.Graph(name=mesh.name)
    for key, router in mesh.routers.items():
        graph.add_node(key, site=router.site)
    for pair, cost in link_costs(mesh).items():
        graph.add_edge(*pair, cost=cost)
    return graph


def sites(graph: nx.Graph[str]) -> dict[str, str | None]:
    """Site of each router of the graph."""
    return {node: graph.nodes[node].get("site") for node in graph}


def costs(graph: nx.Graph[str]) -> list[tuple[str, str, int]]:
    """Links of the graph in the order of ids: both routers and the cost."""
    return sorted((min(pair), max(pair), int(graph.edges[pair]["cost"])) for pair in graph.edges)


def dot(graph: nx.Graph[str]) -> str:
    """The graph in the language of Graphviz; sites are clusters, costs other than 1 are labels."""
    lines = [f"graph {_quoted(graph.name or 'mesh')} {{", "  node [shape=circle];"]
    by_node = sites(graph)
    for number, site in enumerate(sorted({site for site in by_node.values() if site is not None})):
        members = " ".join(f"{_quoted(node)};" for node, its in by_node.items() if its == site)
        lines.append(f"  subgraph cluster_{number} {{ label={_quoted(site)}; {members} }}")
    lines += [f"  {_quoted(node)};" for node, site in by_node.items() if site is None]
    for one, other, cost in costs(graph):
        label = f" [label={_quoted(str(cost))}]" if cost != 1 else ""
        lines.append(f"  {_quoted(one)} -- {_quoted(other)}{label};")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    """A quoted identifier of the DOT language, in which labels have escapes of their own."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
