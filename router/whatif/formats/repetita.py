"""REPETITA's topologies and demands: two text files, `.graph` and `.demands`.

A section begins with its name and how many lines it has, then comes a line for human readers, then one line for each
item. Nodes are numbered from 0 in their order. An edge has a direction: a link is two edges in opposite directions that
follow each other or not, and may have another weight each. Bandwidths are taken for kbit/s and delays for microseconds,
as REPETITA's own files have them; demands are in one direction.

Source: repetita.info.ucl.ac.be/DataFormat.html; Gay, Schaus, Vissicchio, REPETITA, arXiv:1710.08665, 2017.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from mesh_config.findings import Finding, nearest
from router.whatif.formats.input_file import FileFindings, FilePath, in_file, read_text
from router.whatif.formats.topology_builder import MAX_EDGES, MESSAGE_BYTES, Edge, Node, build, router_ids
from router.whatif.model.demands import Demand
from router.whatif.model.elements import LinkEdge
from router.whatif.model.mesh_model import Model, ModelError

HEAD: Final = re.compile(r"\s*(NODES|DEMANDS)\s+\d+\s*(\n|\r|$)")
"""The first line of both files."""
DEMANDS_SUFFIX: Final = ".demands"
BYTES_OF_KBIT: Final = 125.0
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "NODES": ("label", "x", "y"),
    "EDGES": ("label", "src", "dest", "weight", "bw", "delay"),
    "DEMANDS": ("label", "src", "dest", "bw"),
}
_SHARED: Final = {"capacity_bytes": "bw", "delay_ms": "delay"}
"""Fields that both directions of a link have in common, and their names in the file."""


@attrs.frozen(kw_only=True)
class Half:
    """One direction of a link."""

    label: str
    src: int
    dst: int
    values: Mapping[str, Any]
    line: int


def read_repetita(text: str, faults: FileFindings, *, name: str) -> tuple[Model, tuple[str, ...]]:
    """Read the model of a `.graph` file; it has no demands.

    Args:
        text: of the whole file.
        faults: gets what is wrong.
        name: of the model; the format has none.
    Returns: the model; ids of its routers in the order of the nodes, by which demands know them.
    Raises: SettingsError
    """
    if text.lstrip().startswith("DEMANDS"):
        faults.fail("demands without a topology", line=1, expected="a .graph file; --demands takes the .demands file")
    nodes: list[Node] = []
    halves: list[Half] = []
    for section, tokens, line in _items(text, faults, ("NODES", "EDGES")):
        if section == "NODES":
            nodes.append(_node(tokens, len(nodes), line, faults))
        else:
            halves += _half(tokens, len(nodes), line, faults)
    model = build(name, nodes, sorted(_edges(halves, faults), key=lambda edge: edge.line or 0), faults=faults)
    return model, tuple(router_ids([(node.key, node.label) for node in nodes]))


def is_demands(file: FilePath) -> bool:
    """Whether a file has demands in this format, as its name says."""
    return os.fspath(file).lower().endswith(DEMANDS_SUFFIX)


def with_repetita_demands(
    model: Model, file: FilePath, nodes: Sequence[str], *, message_bytes: float = MESSAGE_BYTES
) -> tuple[Model, tuple[Finding, ...]]:
    """The model with the demands of a `.demands` file.

    Args:
        model: of the `.graph` file to which they belong.
        file: its path.
        nodes: ids of routers in the order of the nodes; empty for a model of another format, which is refused.
        message_bytes: size of a message, bytes.
    Returns: the model, checked; warnings.
    Raises: SettingsError with all that is wrong.
    """
    faults = FileFindings(file)
    if not nodes:
        faults.fail("it numbers nodes", expected="with a .graph file of REPETITA; else a table, CSV or Parquet")
    found = []
    for _, tokens, line in _items(read_text(file), faults, ("DEMANDS",)):
        at = ("DEMANDS", tokens[0])
        src, dst = (_place(token, len(nodes), line, at, faults) for token in tokens[1:3])
        rate = faults.amount(tokens[3], line=line, key=(*at, "bw"))
        if rate is not None and rate < 0:
            faults.add(f"{rate} is out of range", line=line, key=(*at, "bw"), expected="a number not below 0")
        elif rate is not None and src is not None and dst is not None:
            if src == dst:
                faults.warn(f"traffic from node {src} to itself is left out", line=line, key=at)
            else:
                sent = rate * BYTES_OF_KBIT / message_bytes
                found.append(Demand(src=nodes[src], dst=nodes[dst], msgs_per_s=sent, msg_bytes=message_bytes))
    warnings = faults.check()
    loaded = attrs.evolve(model, demands=found)
    try:
        loaded.check()
    except ModelError as error:  # what no single line shows: the sum of all
        raise ModelError(in_file(error.findings, file)) from error
    return loaded, warnings


def _items(text: str, faults: FileFindings, sections: Sequence[str]) -> Iterator[tuple[str, Sequence[str], int]]:
    """Each item with its section and line.

    Raises: SettingsError when the sections themselves are not what they should be.
    """
    rest = iter(enumerate(_LINE_END.split(text), start=1))
    last = 1
    for section in sections:
        number, words = next(((at, line.split()) for at, line in rest if line.strip()), (last, []))
        if len(words) != 2 or words[0] != section or not words[1].isdecimal() or len(words[1]) > 9:
            found = f"`{' '.join(words)[:60]}`" if words else "the end of the file"
            near = nearest(words[0], sections) if words else None
            faults.fail(found, line=number, expected=f"`{section}` and how many they are", nearest=near)
        count = min(int(words[1]), 2 * MAX_EDGES + 1)
        last = next(rest, (number, ""))[0]
        for _ in range(count):
            last, line = next(rest, (last, ""))
            tokens = line.split()
            if not tokens:
                faults.fail(f"{section} has less than {words[1]} lines", line=last, expected=" ".join(_FIELDS[section]))
            if len(tokens) != len(_FIELDS[section]):
                faults.add(f"`{line.strip()[:80]}`", line=last, key=(section,), expected=" ".join(_FIELDS[section]))
            else:
                yield section, tokens, last
    for number, line in rest:
        if line.strip():
            faults.fail(f"`{line.strip()[:60]}`", line=number, expected=f"no line after the last of {sections[-1]}")


def _node(tokens: Sequence[str], number: int, line: int, faults: FileFindings) -> Node:
    at = ("NODES", tokens[0])
    longitude, latitude = (faults.amount(token, line=line, key=at) for token in tokens[1:])
    return Node(key=str(number), label=tokens[0], longitude=longitude, latitude=latitude, line=line, path=at)


def _half(tokens: Sequence[str], count: int, line: int, faults: FileFindings) -> Iterator[Half]:
    label, *ends, weight, bandwidth, delay = tokens
    at = ("EDGES", label)
    src, dst = (_place(token, count, line, at, faults) for token in ends)
    cost = faults.number(weight, LinkEdge, "cost", line=line, key=at)
    rate, far = (faults.amount(token, line=line, key=at) for token in (bandwidth, delay))
    if None in (src, dst, cost, rate, far):
        return
    assert src is not None
    assert dst is not None
    values: dict[str, Any] = {"cost": cost}
    if rate:  # 0 says that it is not known
        capacity = rate * BYTES_OF_KBIT
        values["capacity_bytes"] = faults.number(capacity, LinkEdge, "capacity_bytes", line=line, key=at)
    values["delay_ms"] = faults.number((far or 0.0) / 1000, LinkEdge, "delay_ms", line=line, key=at)
    yield Half(label=label, src=src, dst=dst, values=values, line=line)


def _place(token: str, count: int, line: int, at: tuple[str, ...], faults: FileFindings) -> int | None:
    """Number of a node; None, and a finding, when there is none."""
    if token.isdecimal() and len(token) <= 9 and int(token) < count:
        return int(token)
    faults.add(f"no node `{token[:40]}`", line=line, key=at, expected=f"the number of a node, from 0 to {count - 1}")
    return None


def _edges(halves: Sequence[Half], faults: FileFindings) -> Iterator[Edge]:
    """Links: each half and one in the opposite direction, of parallel ones the first of those most like it."""
    waiting: defaultdict[tuple[int, int], list[Half]] = defaultdict(list)
    for half in halves:
        there = waiting[half.dst, half.src]
        if not there or half.src == half.dst:
            waiting[half.src, half.dst].append(half)
            continue
        other = max(there, key=lambda each: _likeness(each, half))  # the first of equal ones
        there.remove(other)
        yield _edge(other, half, faults)
    for left in waiting.values():
        for half in left:
            if half.src == half.dst:
                yield Edge(source=str(half.src), target=str(half.dst), line=half.line, path=("EDGES", half.label))
                continue
            expected = "one from its destination to its source: links carry messages both ways"
            faults.add(
                "has no edge in the other direction", line=half.line, key=("EDGES", half.label), expected=expected
            )


def _likeness(one: Half, other: Half) -> tuple[bool, bool]:
    """Whether halves may be one link, and have one cost too."""
    is_one = all(one.values.get(field) == other.values.get(field) for field in _SHARED)
    return is_one, one.values["cost"] == other.values["cost"]


def _edge(half: Half, other: Half, faults: FileFindings) -> Edge:
    at = ("EDGES", other.label)
    for field, what in _SHARED.items():
        one, two = half.values.get(field), other.values.get(field)
        if one != two:
            expected = f"the same {what} in both directions"
            faults.add(f"{what} differs from that of `{half.label}`", line=other.line, key=at, expected=expected)
    values = dict(half.values)
    if other.values["cost"] != half.values["cost"]:
        values["cost_back"] = other.values["cost"]
    return Edge(source=str(half.src), target=str(half.dst), values=values, line=half.line, path=("EDGES", half.label))
