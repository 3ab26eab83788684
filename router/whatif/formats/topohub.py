"""TopoHub's JSON: a graph in networkx' node-link form.

A node has `id`, `name` and `pos` (longitude, latitude); an edge `source`, `target` and `dist` (km). `demands` of the
graph has traffic by both ends; as TopoHub counts it, so much flows in each direction. Its unit is taken for messages/s.

Source: Jurkiewicz, TopoHub: A repository of reference Gabriel graph and real-world topologies, SoftwareX 24, 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mesh_config.value_rules import found_words
from router.whatif.formats.input_file import FileFindings
from router.whatif.formats.json_with_lines import JsonObject
from router.whatif.formats.topology_builder import MESSAGE_BYTES, Edge, Node, Traffic, build
from router.whatif.model.elements import LinkEdge
from router.whatif.model.geography import fibre_ms
from router.whatif.model.mesh_model import Model

Path = tuple[str | int, ...]


def read_topohub(root: Any, faults: FileFindings, *, message_bytes: float = MESSAGE_BYTES) -> Model:
    """Read the model of a document that `json_with_lines.read` has read.

    Args:
        root: of the document.
        faults: gets what is wrong.
        message_bytes: size of a message where the file gives traffic without one, bytes.
    Raises: SettingsError
    """
    if not isinstance(root, JsonObject):
        faults.fail(found_words(root), line=1, expected="a mapping with `nodes` and `edges`")
    if root.get("directed"):
        expected = "`false`: a link of a mesh has the same cost in both directions"
        faults.add("edges have a direction", line=root.line, key=("directed",), expected=expected)
    graph = root.get("graph", {})
    if not isinstance(graph, dict):
        faults.add(found_words(graph), line=root.line, key=("graph",), expected="a mapping")
        graph = {}
    # networkx below 3.4 calls them links
    edges = "links" if "edges" not in root and "links" in root else "edges"
    return build(
        str(graph.get("name") or "mesh"),
        [_node(item, path, faults) for item, path in _items(root, "nodes", faults)],
        [_edge(item, path, faults) for item, path in _items(root, edges, faults)],
        list(_traffic(graph.get("demands", JsonObject()), faults)),
        faults=faults,
        message_bytes=message_bytes,
    )


def _items(root: JsonObject, name: str, faults: FileFindings) -> Iterator[tuple[JsonObject, Path]]:
    """The mappings in a list of the document, each with its path."""
    items = root.get(name)
    if not isinstance(items, list):
        faults.add(found_words(items), line=root.line, key=(name,), expected="a list")
        return
    for number, item in enumerate(items):
        if isinstance(item, JsonObject):
            yield item, (name, number)
        else:
            faults.add(found_words(item), line=root.line, key=(name, number), expected="a mapping")


def _node(item: JsonObject, path: Path, faults: FileFindings) -> Node:
    position = item.get("pos")
    coordinates: list[float | None] = [None, None]
    if position is not None:
        if isinstance(position, list) and len(position) == 2:
            coordinates = [faults.amount(value, line=item.line, key=(*path, "pos")) for value in position]
        else:
            expected = "a list of longitude and latitude"
            faults.add(found_words(position), line=item.line, key=(*path, "pos"), expected=expected)
    name = item.get("name")
    return Node(
        key=_key(item, "id", path, faults),
        label=None if name is None else str(name),
        longitude=coordinates[0],
        latitude=coordinates[1],
        line=item.line,
        path=path,
    )


def _edge(item: JsonObject, path: Path, faults: FileFindings) -> Edge:
    values = {}
    if item.get("dist") is not None:
        km = faults.amount(item["dist"], line=item.line, key=(*path, "dist"))
        if km is not None:
            at = (*path, "dist")
            values["delay_ms"] = faults.number(fibre_ms(km), LinkEdge, "delay_ms", line=item.line, key=at)
    return Edge(
        source=_key(item, "source", path, faults),
        target=_key(item, "target", path, faults),
        values=values,
        line=item.line,
        path=path,
    )


def _traffic(demands: Any, faults: FileFindings) -> Iterator[Traffic]:
    path: Path = ("graph", "demands")
    if not isinstance(demands, JsonObject):
        faults.add(found_words(demands), key=path, expected="a mapping")
        return
    for source, targets in demands.items():
        if not isinstance(targets, JsonObject):
            faults.add(found_words(targets), line=demands.line, key=(*path, source), expected="a mapping")
            continue
        for target, value in targets.items():
            at = (*path, source, target)
            rate = faults.amount(value, line=targets.line, key=at)
            if rate is not None and rate < 0:
                faults.add(f"{rate} is out of range", line=targets.line, key=at, expected="a number not below 0")
            elif rate is not None:
                yield Traffic(source=source, target=target, msgs_per_s=rate, line=targets.line, path=at)


def _key(item: JsonObject, name: str, path: Path, faults: FileFindings) -> str:
    """Key of a node: a number or a text, for keys of JSON are always text."""
    value = item.get(name)
    if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
        return str(value)
    faults.add(found_words(value), line=item.line, key=(*path, name), expected="text or a whole number")
    return ""
