"""GraphML, as the Topology Zoo has it.

Of a node: `label`, `Latitude`, `Longitude`; of an edge: `LinkSpeedRaw`, bits/s. Any other program may also write the
fields of a model (`cost`, `delay_ms`, `site`, ...) under their own names.

Source: graphml.graphdrawing.org, the GraphML primer; Knight et al., The Internet Topology Zoo, IEEE JSAC 29(9), 2011.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from mesh_config.findings import nearest
from router.whatif.formats.input_file import FileFindings
from router.whatif.formats.topology_builder import Edge, Node, build
from router.whatif.formats.xml_with_lines import Element, text_of
from router.whatif.model.elements import LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model

ROUTER_NUMBERS: Final = ("failures_per_year", "repair_hours")
LINK_NUMBERS: Final = ("cost", "delay_ms", "capacity_msgs", "capacity_bytes", "failures_per_year", "repair_hours")
_OTHER_FORMS: Final = ("hyperedge", "port")
_BITS: Final = 8.0


@attrs.frozen
class _Key:
    """Declaration by a `key` element: the name of an attribute, and what it is where none is given."""

    name: str
    default: str | None


def read_graphml(root: Element, faults: FileFindings) -> Model:
    """The model of a document. Raises: SettingsError."""
    if root.tag != "graphml":
        faults.fail(f"the document is a `{root.tag}`", line=root.sourceline, expected="`graphml`")
    graphs = list(root.iterchildren("graph"))
    if len(graphs) != 1:
        line = graphs[1].sourceline if graphs else root.sourceline
        faults.fail(f"{len(graphs)} graphs", line=line, expected="one `graph`")
    graph = graphs[0]
    keys = _keys(root, faults)
    direction = graph.get("edgedefault", "undirected")
    if direction != "undirected":
        faults.add(
            f"edges are `{direction}`",
            line=graph.sourceline,
            key=("edgedefault",),
            expected="`undirected`: a link of a mesh has the same cost in both directions",
        )
    for other in _OTHER_FORMS:
        for element in graph.iterchildren(other):
            faults.add(f"a `{other}`", line=element.sourceline, expected="nodes and edges")
    nodes = [_node(element, keys["node"], faults) for element in graph.iterchildren("node")]
    edges = [_edge(element, keys["edge"], faults) for element in graph.iterchildren("edge")]
    values = _values(graph, keys["graph"], faults)
    name = values.get("label") or values.get("Network") or graph.get("id") or "mesh"
    return build(name, nodes, edges, faults=faults)


def _keys(root: Element, faults: FileFindings) -> dict[str, dict[str, _Key]]:
    """Declared attributes by what they belong to, and key."""
    found: dict[str, dict[str, _Key]] = {"node": {}, "edge": {}, "graph": {}}
    for element in root.iterchildren("key"):
        key_id = element.get("id")
        if key_id is None:
            faults.add("a `key` without an id", line=element.sourceline, key=("id",), expected="text")
            continue
        default = element.find("default")
        key = _Key(element.get("attr.name", key_id), text_of(default) if default is not None else None)
        owner = element.get("for", "all")
        for name in found if owner == "all" else (owner,):
            found.get(name, {})[key_id] = key
    return found


def _values(element: Element, keys: Mapping[str, _Key], faults: FileFindings) -> dict[str, str]:
    """Attributes of a node, an edge or a graph by name."""
    values = {key.name: key.default for key in keys.values() if key.default is not None}
    for data in element.iterchildren("data"):
        key_id = data.get("key", "")
        if key_id in keys:
            values[keys[key_id].name] = text_of(data)
        else:
            faults.add(
                f"no key `{key_id}` is declared for a {element.tag}",
                line=data.sourceline,
                key=("key",),
                expected="the id of a `key`",
                nearest=nearest(key_id, keys),
            )
    return values


def _node(element: Element, keys: Mapping[str, _Key], faults: FileFindings) -> Node:
    values = _values(element, keys, faults)
    key = _required(element, "id", faults)
    for inner in element.iterchildren("graph"):
        faults.add("a graph in a node", line=inner.sourceline, expected="nodes and edges")
    coordinates = _plain_numbers(values, ("Longitude", "Latitude"), element, key, faults)
    return Node(
        key=key,
        label=values.get("label"),
        longitude=coordinates["Longitude"],
        latitude=coordinates["Latitude"],
        values={
            "site": values.get("site") or None,
            **_numbers(values, RouterNode, ROUTER_NUMBERS, element, ("nodes", key), faults),
        },
        line=element.sourceline,
        path=("nodes", key),
    )


def _edge(element: Element, keys: Mapping[str, _Key], faults: FileFindings) -> Edge:
    values = _values(element, keys, faults)
    source, target = _required(element, "source", faults), _required(element, "target", faults)
    path = ("edges", f"{source}--{target}")
    if element.get("directed", "false") != "false":
        faults.add("the edge is directed", line=element.sourceline, key=(*path, "directed"), expected="`false`")
    numbers = _numbers(values, LinkEdge, LINK_NUMBERS, element, path, faults)
    speed = _plain_numbers(values, ("LinkSpeedRaw",), element, path[1], faults)["LinkSpeedRaw"]
    if speed and "capacity_bytes" not in numbers:
        numbers["capacity_bytes"] = speed / _BITS
    return Edge(source=source, target=target, values=numbers, line=element.sourceline, path=path)


def _required(element: Element, name: str, faults: FileFindings) -> str:
    value: str = element.get(name, "")
    if not value:
        faults.add(f"a `{element.tag}` without `{name}`", line=element.sourceline, key=(name,), expected="text")
    return value


def _numbers(
    values: Mapping[str, str],
    cls: type[attrs.AttrsInstance],
    names: tuple[str, ...],
    element: Element,
    path: tuple[str, ...],
    faults: FileFindings,
) -> dict[str, Any]:
    """Fields of a model's class; those that are absent or empty are left out."""
    there = {name: values[name] for name in names if values.get(name)}
    found = {name: faults.number(text, cls, name, line=element.sourceline, key=path) for name, text in there.items()}
    return {name: number for name, number in found.items() if number is not None}


def _plain_numbers(
    values: Mapping[str, str], names: tuple[str, ...], element: Element, key: str, faults: FileFindings
) -> dict[str, float | None]:
    """Attributes of the Topology Zoo; None for those that are absent or empty."""
    found: dict[str, float | None] = {}
    for name in names:
        text = values.get(name)
        found[name] = faults.amount(text, line=element.sourceline, key=(f"{element.tag}s", key, name)) if text else None
    return found
