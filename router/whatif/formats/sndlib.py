"""SNDlib's networks, in its own text format and in XML.

Traffic and capacities have one unit, which is taken for messages/s: `demand_value * routing_unit` in each direction,
and the capacity that is installed already. Costs of SNDlib are those of building; the cost of each link is 1.

Source: sndlib.zib.de, Network input file; Orlowski et al., SNDlib 1.0, Networks 55(3), 2010.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mesh_config.findings import nearest
from router.whatif.formats.input_file import FileFindings
from router.whatif.formats.topology_builder import MESSAGE_BYTES, Edge, Node, Traffic, build
from router.whatif.formats.xml_with_lines import Element, text_of
from router.whatif.model.elements import LinkEdge
from router.whatif.model.mesh_model import Model

HEADER: Final = "?SNDlib native format"
PATHS: Final = "ADMISSIBLE_PATHS"
"""Section of which nothing is read: paths in parentheses of each demand, laid out over lines or not."""
SECTIONS: Final = ("META", "NODES", "LINKS", "DEMANDS", PATHS)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
"""End of a line as editors count lines: for Python a vertical tab ends one too."""
_TOKEN: Final = re.compile(r"[()]|[^\s()]+")

Tokens = Sequence[str]


# The text format


def read_native(text: str, faults: FileFindings, *, name: str, message_bytes: float = MESSAGE_BYTES) -> Model:
    """The model of a file that begins with HEADER.

    Args:
        text: of the whole file.
        faults: gets what is wrong.
        name: of the model; the format has none.
        message_bytes: size of a message where the file gives traffic without one, bytes.
    Raises: SettingsError.
    """
    nodes: list[Node] = []
    edges: list[Edge] = []
    traffic: list[Traffic] = []
    for section, tokens, line in _lines(text, faults):
        if section == "NODES":
            nodes += _native_node(tokens, line, faults)
        elif section == "LINKS":
            edges += _native_link(tokens, line, faults)
        elif section == "DEMANDS":
            traffic += _native_demand(tokens, line, faults)
    return build(name, nodes, edges, traffic, faults=faults, message_bytes=message_bytes)


def _lines(text: str, faults: FileFindings) -> Iterator[tuple[str, Tokens, int]]:
    """Each item with its section and line."""
    lines = _LINE_END.split(text)
    head = lines[0].replace(" ", "").casefold() if lines else ""
    if not head.startswith(HEADER.replace(" ", "").casefold()) or "type:network" not in head:
        faults.fail("no header", line=1, expected=f"`{HEADER}; type: network; version: 1.0`")
    section, opened, nested = "", 1, 0
    for number, line in enumerate(lines[1:], start=2):
        tokens = _TOKEN.findall(line.partition("#")[0])
        if not tokens:
            continue
        if section == PATHS:
            nested += tokens.count("(") - tokens.count(")")
            if nested < 0:
                section, nested = "", 0
        elif section:
            # Counted by lines: an item that lacks a parenthesis is told, and hides none of those that follow.
            if tokens == [")"]:
                section, nested = (section, nested - 1) if nested else ("", 0)
            elif not nested:
                yield section, tokens, number
            nested += tokens[-1] == "("
        elif tokens[0] in SECTIONS and tokens[1:] == ["("]:
            section, opened = tokens[0], number
        elif tokens[0] not in SECTIONS or tokens[1:] != ["(", ")"]:
            near = nearest(tokens[0], SECTIONS)
            expected = f"one of {', '.join(f'`{word} (`' for word in SECTIONS)}"
            faults.add(f"`{line.strip()[:60]}` begins no section", line=number, expected=expected, nearest=near)
    if section:
        faults.add(f"the section {section} does not end", line=opened, expected="a line with `)` alone")


def _native_node(tokens: Tokens, line: int, faults: FileFindings) -> Iterator[Node]:
    match tokens:
        case [key, "(", x, y, ")", *_]:
            at = ("NODES", key)
            yield Node(
                key=key,
                label=key,
                longitude=faults.amount(x, line=line, key=at),
                latitude=faults.amount(y, line=line, key=at),
                line=line,
                path=at,
            )
        case [key] | [key, "(", ")", *_]:
            yield Node(key=key, label=key, line=line, path=("NODES", key))
        case _:
            _refuse(tokens, line, ("NODES",), "`id ( longitude latitude )`", faults)


def _native_link(tokens: Tokens, line: int, faults: FileFindings) -> Iterator[Edge]:
    match tokens:
        case [key, "(", source, target, ")", capacity, _, _, _, *_]:
            at = ("LINKS", key)
            values = _capacity(capacity, line, at, faults)
            yield Edge(source=source, target=target, values=values, line=line, path=at)
        case _:
            expected = (
                "`id ( source target ) pre_installed_capacity pre_installed_capacity_cost routing_cost setup_cost "
                "( {module_capacity module_cost}* )`"
            )
            _refuse(tokens, line, ("LINKS",), expected, faults)


def _native_demand(tokens: Tokens, line: int, faults: FileFindings) -> Iterator[Traffic]:
    match tokens:
        case [key, "(", source, target, ")", unit, value, *_]:
            yield from _demand((source, target), (unit, value), line, ("DEMANDS", key), faults)
        case _:
            expected = "`id ( source target ) routing_unit demand_value max_path_length`"
            _refuse(tokens, line, ("DEMANDS",), expected, faults)


def _refuse(tokens: Tokens, line: int, at: tuple[str, ...], expected: str, faults: FileFindings) -> None:
    faults.add(f"`{' '.join(tokens)[:80]}`", line=line, key=at, expected=expected)


# XML


def read_xml(root: Element, faults: FileFindings, *, name: str, message_bytes: float = MESSAGE_BYTES) -> Model:
    """Read the model of a document whose root is `network`.

    Args:
        root: of the document.
        faults: gets what is wrong.
        name: of the model.
        message_bytes: size of a message where the file gives traffic without one, bytes.
    Raises: SettingsError
    """
    structure = root.find("networkStructure")
    if root.tag != "network" or structure is None:
        expected = "`network` with `networkStructure`"
        faults.fail(f"the document is a `{root.tag}`", line=root.sourceline, expected=expected)
    nodes, links = (structure if found is None else found for found in map(structure.find, ("nodes", "links")))
    is_plane = nodes.get("coordinatesType") == "pixel"
    demands = root.find("demands")
    return build(
        name,
        [_xml_node(element, faults, is_plane=is_plane) for element in nodes.iterchildren("node")],
        [_xml_link(element, faults) for element in links.iterchildren("link")],
        [
            it
            for element in (demands.iterchildren("demand") if demands is not None else ())
            for it in _xml_demand(element, faults)
        ],
        faults=faults,
        message_bytes=message_bytes,
    )


def _xml_node(element: Element, faults: FileFindings, *, is_plane: bool) -> Node:
    key = element.get("id", "")
    at = ("nodes", key)
    if not key:
        faults.add("a `node` without `id`", line=element.sourceline, key=("id",), expected="text")
    x, y = (None if is_plane else element.find(f"coordinates/{axis}") for axis in ("x", "y"))
    return Node(
        key=key,
        label=key,
        longitude=None if x is None or y is None else faults.amount(text_of(x), line=x.sourceline, key=(*at, "x")),
        latitude=None if x is None or y is None else faults.amount(text_of(y), line=y.sourceline, key=(*at, "y")),
        line=element.sourceline,
        path=at,
    )


def _xml_link(element: Element, faults: FileFindings) -> Edge:
    at = ("links", element.get("id", ""))
    capacity = element.find("preInstalledModule/capacity")
    values = _capacity(text_of(capacity), capacity.sourceline, at, faults) if capacity is not None else {}
    source, target = _ends(element, at, faults)
    return Edge(source=source, target=target, values=values, line=element.sourceline, path=at)


def _xml_demand(element: Element, faults: FileFindings) -> Iterator[Traffic]:
    at = ("demands", element.get("id", ""))
    value, unit = element.find("demandValue"), element.find("routingUnit")
    if value is None:
        faults.add("`demandValue` is missing", line=element.sourceline, key=at, expected="a number")
        return
    amounts = ("1" if unit is None else text_of(unit), text_of(value))
    yield from _demand(_ends(element, at, faults), amounts, element.sourceline, at, faults)


def _ends(element: Element, at: tuple[str, ...], faults: FileFindings) -> tuple[str, str]:
    """Text of `source` and `target`."""
    found = []
    for name in ("source", "target"):
        end = element.find(name)
        if end is None:
            faults.add(f"`{name}` is missing", line=element.sourceline, key=at, expected="the id of a node")
        found.append("" if end is None else text_of(end))
    return found[0], found[1]


# Both


def _demand(
    ends: tuple[str, str], amounts: tuple[str, str], line: int, at: tuple[str, ...], faults: FileFindings
) -> Iterator[Traffic]:
    """Traffic of a demand, *amounts* being its routing unit and its value."""
    numbers = [faults.amount(text, line=line, key=at) for text in amounts]
    if None in numbers:
        return
    rate = (numbers[0] or 0.0) * (numbers[1] or 0.0)
    if rate < 0:
        faults.add(f"{rate} is out of range", line=line, key=at, expected="a number not below 0")
        return
    yield Traffic(source=ends[0], target=ends[1], msgs_per_s=rate, line=line, path=at)


def _capacity(text: str, line: int, at: tuple[str, ...], faults: FileFindings) -> dict[str, float]:
    """The capacity of a link; 0 says that nothing is installed yet, so that nothing is known."""
    amount = faults.amount(text, line=line, key=(*at, "capacity"))
    if not amount:
        return {}
    checked = faults.number(amount, LinkEdge, "capacity_msgs", line=line, key=at)
    return {} if checked is None else {"capacity_msgs": checked}
