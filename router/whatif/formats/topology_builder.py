"""Models from nodes and edges, as files of network topologies have them: ids of routers, delays, demands."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from mesh_config.findings import Step, nearest
from router.whatif.formats.input_file import FileFindings
from router.whatif.model.demands import Demand
from router.whatif.model.elements import LinkEdge, RouterNode, link_ids
from router.whatif.model.geography import fibre_between_ms
from router.whatif.model.mesh_model import Model

MAX_NODES: Final = 100_000
MAX_EDGES: Final = 1_000_000
MESSAGE_BYTES: Final = 1000.0
"""Size of a message where the file gives traffic without one."""

_NO_LABELS: Final = frozenset({"", "none", "null", "?"})
_NOT_IN_IDS: Final = re.compile(r"[\s/\x00-\x1f\x7f-\x9f]+")


@attrs.frozen(kw_only=True)
class Node:
    """A node of a topology."""

    key: str
    """Key by which edges and demands name it."""
    label: str | None = None
    longitude: float | None = None
    """Degrees, or something else when any of the file is out of range: then no node has coordinates."""
    latitude: float | None = None
    values: Mapping[str, Any] = attrs.field(factory=dict)
    """Further fields of RouterNode."""
    line: int | None = None
    path: tuple[Step, ...] = ()


@attrs.frozen(kw_only=True)
class Edge:
    """An edge of a topology, without direction."""

    source: str
    target: str
    values: Mapping[str, Any] = attrs.field(factory=dict)
    """Fields of LinkEdge but id and ends; a delay here goes before that which the coordinates give. Its first end is
    the source."""
    line: int | None = None
    path: tuple[Step, ...] = ()


@attrs.frozen(kw_only=True)
class Traffic:
    """Messages between two nodes, as many in each direction."""

    source: str
    target: str
    msgs_per_s: float
    line: int | None = None
    path: tuple[Step, ...] = ()


def build(
    name: str,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    traffic: Iterable[Traffic] = (),
    *,
    faults: FileFindings,
    message_bytes: float = MESSAGE_BYTES,
) -> Model:
    """The model of a topology.

    Edges from a node to itself carry nothing and are left out, with a warning.
    Args:
        name: of the model.
        nodes: become routers.
        edges: become links.
        traffic: becomes demands.
        faults: gets what is wrong.
        message_bytes: size of each message of *traffic*.
    Raises: SettingsError with all that *faults* has.
    """
    if len(nodes) > MAX_NODES or len(edges) > MAX_EDGES:
        found = f"{len(nodes)} nodes and {len(edges)} edges"
        faults.fail(found, expected=f"at most {MAX_NODES} nodes and {MAX_EDGES} edges")
    if not nodes:
        faults.add("no node", expected="at least one")
    by_key: dict[str, Node] = {}
    for node in nodes:
        if node.key in by_key:
            faults.add(f"node `{node.key}` is given twice", line=node.line, key=node.path, expected="each node once")
        by_key.setdefault(node.key, node)
    known = [edge for edge in edges if _has_ends(edge, by_key, faults)]
    demands = [it for it in traffic if _has_ends(it, by_key, faults)]
    items: list[Edge | Traffic] = [*known, *demands]
    loops = [it for it in items if it.source == it.target]
    for loop in loops:
        what = "traffic" if isinstance(loop, Traffic) else "an edge"
        faults.warn(f"{what} from `{loop.source}` to itself is left out", line=loop.line, key=loop.path)
    faults.check()
    ids = dict(zip(by_key, router_ids([(node.key, node.label) for node in nodes]), strict=True))
    located = nodes if _is_geographic(nodes) else [attrs.evolve(it, longitude=None, latitude=None) for it in nodes]
    places = {node.key: node for node in located}
    # Of parallel ones the cheapest, which is in use, has no number.
    straight = sorted(
        (edge for edge in known if edge.source != edge.target), key=lambda edge: edge.values.get("cost", 1)
    )
    names = link_ids((ids[edge.source], ids[edge.target]) for edge in straight)
    rates: defaultdict[tuple[str, str], float] = defaultdict(float)
    for it in demands:
        if it.source != it.target:
            rates[ids[it.source], ids[it.target]] += it.msgs_per_s
            rates[ids[it.target], ids[it.source]] += it.msgs_per_s
    return Model(
        name=name,
        routers=[_router(node, ids[node.key]) for node in located],
        links=[_link(edge, text, ids, places) for text, edge in zip(names, straight, strict=True)],
        demands=[
            Demand(src=src, dst=dst, msgs_per_s=rate, msg_bytes=message_bytes) for (src, dst), rate in rates.items()
        ],
    )


def router_ids(nodes: Sequence[tuple[str, str | None]]) -> list[str]:
    """Ids of routers, unique, and the same whatever the order of the nodes.

    The label, `-` in place of what no id may have. Where several nodes have one label, or none, their key is put behind
    it: `Athens-112`, `n7`.
    Args:
        nodes: key, unique, and label.
    """
    words = [_word(label) for _, label in nodes]
    count = Counter(words)
    ids = [
        _numbered(key) if not word else word if count[word] == 1 else f"{word}-{_word(key)}"
        for word, (key, _) in zip(words, nodes, strict=True)
    ]
    # What is still the same, say the label `A-1` next to two `A` of which one has the key 1: the label stays as it is,
    # the others are told apart in the order of their keys.
    count = Counter(ids)
    taken = {text for text, times in count.items() if times == 1}
    for place in sorted(range(len(ids)), key=lambda it: (ids[it], ids[it] != words[it], nodes[it][0])):
        text, number = ids[place], 1
        if count[text] == 1:
            continue
        while ids[place] in taken:
            number += 1
            ids[place] = f"{text}-{number}"
        taken.add(ids[place])
    return ids


def _router(node: Node, router_id: str) -> RouterNode:
    return RouterNode(id=router_id, latitude=node.latitude, longitude=node.longitude, **node.values)


def _link(edge: Edge, link_id: str, ids: Mapping[str, str], places: Mapping[str, Node]) -> LinkEdge:
    a, b = sorted((ids[edge.source], ids[edge.target]))
    values = dict(edge.values)
    if values.get("cost_back") is not None and a != ids[edge.source]:
        values["cost"], values["cost_back"] = values["cost_back"], values["cost"]
    if values.get("delay_ms") is None:
        values["delay_ms"] = fibre_between_ms(places[edge.source], places[edge.target])
    return LinkEdge(id=link_id, a=a, b=b, **values)


def _has_ends(item: Edge | Traffic, nodes: Mapping[str, Node], faults: FileFindings) -> bool:
    """Whether both ends are known; tells when not."""
    missing = [(field, name) for field in ("source", "target") if (name := getattr(item, field)) not in nodes]
    for field, name in missing:
        faults.add(
            f"no node `{name}`",
            line=item.line,
            key=(*item.path, field),
            expected="a node of this file",
            nearest=nearest(name, nodes),
        )
    return not missing


def _is_geographic(nodes: Iterable[Node]) -> bool:
    """Whether the coordinates may be degrees: those of made-up topologies lie in a plane."""
    return all(abs(node.latitude or 0) <= 90 and abs(node.longitude or 0) <= 180 for node in nodes)


def _word(text: str | None) -> str:
    word = _NOT_IN_IDS.sub("-", (text or "").strip()).strip("-")
    return "" if word.casefold() in _NO_LABELS else word


def _numbered(key: str) -> str:
    word = _word(key) or "node"
    return f"n{word}" if word.isdigit() else word
