"""Topologies of files: the Topology Zoo's GraphML, TopoHub's JSON, SNDlib's networks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.findings import SettingsError
from router.whatif.formats import input_file, json_with_lines, topology_builder, xml_with_lines
from router.whatif.formats.importer import import_model
from router.whatif.formats.input_file import FileFindings
from router.whatif.formats.topology_builder import Edge, Node, build, router_ids
from router.whatif.model.mesh_model import Model
from tests.whatif.models import TOPOHUB, ZOO

NETWORKS = sorted(path.stem for path in ZOO.glob("*.graphml"))
# Names of the backbone's nodes are no ids: they have blanks, and some are there twice.
HUBS = sorted(path.stem for path in TOPOHUB.glob("*.json") if not path.stem.startswith("backbone"))


def imported(tmp_path: Path, name: str, text: str) -> Model:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    model, warnings = import_model(file)
    assert warnings == ()
    return model


def faults(tmp_path: Path, name: str, text: str) -> list[str]:
    """What is told of a file, each line from the number of the line in the file on."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        import_model(file)
    return [str(finding).removeprefix(f"{file}:") for finding in caught.value.findings]


# Data of others


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_the_zoo_is_what_networkx_reads(name: str) -> None:
    graph = nx.read_graphml(ZOO / f"{name}.graphml")
    model, warnings = import_model(ZOO / f"{name}.graphml")
    assert warnings == ()
    assert model.name == name
    ids = dict(zip(graph, router_ids([(key, data.get("label")) for key, data in graph.nodes(data=True)]), strict=True))
    assert sorted(ids.values()) == [router.id for router in model.routers]
    assert len(model.links) == graph.number_of_edges()
    assert sorted(tuple(sorted((ids[a], ids[b]))) for a, b in graph.edges()) == sorted(
        (it.a, it.b) for it in model.links
    )
    places = {router.id: (router.latitude, router.longitude) for router in model.routers}
    for key, data in graph.nodes(data=True):
        assert places[ids[key]] == (data.get("Latitude"), data.get("Longitude"))
    for link in model.links:
        assert (link.delay_ms is None) == (None in places[link.a] + places[link.b])


@pytest.mark.parametrize(("name", "parallel", "nowhere"), [
    ("Kdl", 4, 28), ("Cogentco", 2, 11), ("AttMpls", 1, 0), ("TataNld", 8, 2), ("Geant2012", 0, 3),
])  # fmt: skip
def test_multigraphs_and_missing_coordinates_are_kept(name: str, parallel: int, nowhere: int) -> None:
    model, _ = import_model(ZOO / f"{name}.graphml")
    assert len(model.links) - len({(link.a, link.b) for link in model.links}) == parallel
    assert sum("#" in link.id for link in model.links) == parallel
    assert sum(router.latitude is None for router in model.routers) == nowhere


def test_delays_and_capacities_are_those_of_the_ground() -> None:
    abilene, _ = import_model(ZOO / "Abilene.graphml")
    delays = {link.id: link.delay_ms for link in abilene.links}
    # New York to Chicago are 1,145 km.
    assert delays["Chicago--New-York"] == pytest.approx(1145 / 200, rel=0.01)
    uninett, _ = import_model(ZOO / "Uninett2010.graphml")
    assert {link.capacity_bytes for link in uninett.links} == {None, 1.25e8, 3.125e8, 1.25e9}


@pytest.mark.parametrize("name", HUBS)
def test_a_network_of_topohub_is_what_its_file_says(name: str) -> None:
    data = json.loads((TOPOHUB / f"{name}.json").read_text(encoding="utf-8"))
    model, warnings = import_model(TOPOHUB / f"{name}.json")
    assert warnings == ()
    names = {node["id"]: node["name"] for node in data["nodes"]}
    assert [router.id for router in model.routers] == sorted(names.values())
    found = {(link.a, link.b): link.delay_ms for link in model.links}
    expected = {tuple(sorted((names[it["source"]], names[it["target"]]))): it["dist"] for it in data["edges"]}
    assert found == pytest.approx({pair: km / 200 for pair, km in expected.items()})
    demands = data["graph"].get("demands", {})
    assert sum(it.msgs_per_s for it in model.demands) == pytest.approx(
        2 * sum(value for targets in demands.values() for value in targets.values())
    )


def test_a_plane_has_no_latitudes() -> None:
    model, _ = import_model(TOPOHUB / "gabriel_100_0.json")
    assert {(router.latitude, router.longitude) for router in model.routers} == {(None, None)}
    polska, _ = import_model(TOPOHUB / "sndlib_polska.json")
    gdansk = next(router for router in polska.routers if router.id == "Gdansk")
    assert (gdansk.longitude, gdansk.latitude) == (18.6, 54.2)


# Ids


def test_ids_are_labels_as_far_as_these_tell_nodes_apart() -> None:
    nodes = [
        ("0", "New York"),
        ("1", "Athens"),
        ("2", "Athens"),
        ("3", None),
        ("x", "None"),
        ("5", "a/b\tc"),
        ("6", "?"),
    ]
    assert router_ids(nodes) == ["New-York", "Athens-1", "Athens-2", "n3", "x", "a-b-c", "n6"]
    assert router_ids([("1", "A"), ("2", "A"), ("3", "A-1")]) == ["A-1-2", "A-2", "A-1"]


@given(st.lists(st.tuples(st.text("ab1- ", min_size=1), st.none() | st.text("ab1-/ ")), unique_by=lambda it: it[0]))
def test_ids_are_unique_and_do_not_depend_on_the_order_of_nodes(nodes: list[tuple[str, str | None]]) -> None:
    ids = router_ids(nodes)
    assert len(set(ids)) == len(ids)
    assert all(text and not set(text) & set(" /\t") for text in ids)
    shuffled = random.Random(1).sample(nodes, len(nodes))
    assert dict(zip(nodes, ids, strict=True)) == dict(zip(shuffled, router_ids(shuffled), strict=True))


def test_the_cheapest_of_parallel_links_has_no_number() -> None:
    nodes = [Node(key="A"), Node(key="B")]
    edges = [Edge(source="A", target="B", values={"cost": cost}) for cost in (5, 2, 9)]
    model = build("x", nodes, edges, faults=FileFindings("x"))
    assert [(link.id, link.cost) for link in model.links] == [("A--B", 2), ("A--B#2", 5), ("A--B#3", 9)]


def test_a_loop_is_left_out_with_a_warning() -> None:
    told = FileFindings("file")
    model = build("x", [Node(key="A")], [Edge(source="A", target="A", line=7)], faults=told)
    assert model.links == ()
    assert [str(it) for it in told.check()] == ["file:7: warning: an edge from `A` to itself is left out"]


def test_more_than_anybody_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_builder, "MAX_NODES", 1)
    with pytest.raises(SettingsError, match="2 nodes and 0 edges; expected at most 1 nodes"):
        build("x", [Node(key="A"), Node(key="B")], [], faults=FileFindings("x"))


# GraphML

GRAPHML = """\
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="l" for="node" attr.name="label"/>
<key id="s" for="node" attr.name="site"><default>hall</default></key>
<key id="la" for="node" attr.name="Latitude"/>
<key id="c" for="edge" attr.name="cost"/>
<key id="d" for="all" attr.name="delay_ms"/>
<key id="f" for="edge" attr.name="failures_per_year"/>
<key id="n" for="node" attr.name="failures_per_year"/>
<graph edgedefault="undirected">
{}
</graph>
</graphml>
"""


def test_fields_of_a_model_may_stand_in_graphml(tmp_path: Path) -> None:
    file = tmp_path / "x.graphml"
    text = GRAPHML.format(
        '<node id="a"><data key="n">0.5</data></node><node id="b"><data key="s">yard</data></node>'
        '<edge source="b" target="a"><data key="c">10</data><data key="d">1.5</data><data key="f">2</data></edge>'
    )
    file.write_text(text, encoding="utf-8")
    model, warnings = import_model(file)
    half = "has `failures_per_year` without `repair_hours`: it counts as never failing"
    assert [warning.message for warning in warnings] == [f"router `a` {half}", f"link `a--b` {half}"]
    assert [(it.id, it.site, it.failures_per_year) for it in model.routers] == [("a", "hall", 0.5), ("b", "yard", None)]
    (link,) = model.links
    assert (link.a, link.b, link.cost, link.delay_ms, link.failures_per_year) == ("a", "b", 10, 1.5, 2.0)


def test_all_faults_of_graphml_are_told_with_their_lines(tmp_path: Path) -> None:
    body = """\
<node id="a"/>
<node id="a"><data key="la">north</data></node>
<node/>
<node id="b"><data key="lable">x</data></node>
<node id="c"><graph/></node>
<edge source="a" target="B"/>
<edge source="a"><data key="c">1.5</data></edge>
<edge source="a" target="b" directed="true"><data key="c">0</data></edge>
<edge source="a" target="b"><data key="d">-1</data></edge>
<hyperedge/>"""
    text = GRAPHML.format(body).replace('"undirected"', '"directed"')
    assert faults(tmp_path, "x.graphml", text) == [
        (
            "9: error: edgedefault: edges are `directed`;"
            " expected `undirected`: a link of a mesh has the same cost in both directions"
        ),
        "11: error: nodes.a: node `a` is given twice; expected each node once",
        '11: error: nodes.a.Latitude: the text "north"; expected a number',
        "12: error: id: a `node` without `id`; expected text",
        "13: error: key: no key `lable` is declared for a node; expected the id of a `key`",
        "14: error: a graph in a node; expected nodes and edges",
        "15: error: edges.a--B.target: no node `B`; expected a node of this file; did you mean `b`?",
        '16: error: edges.a--.cost: the text "1.5"; expected a whole number from 1 to 65535',
        "16: error: target: a `edge` without `target`; expected text",
        "17: error: edges.a--b.cost: 0 is out of range; expected a whole number from 1 to 65535; did you mean `1`?",
        "17: error: edges.a--b.directed: the edge is directed; expected `false`",
        (
            "18: error: edges.a--b.delay_ms: -1.0 is out of range;"
            " expected a number from 0 to 1000000 (milliseconds); did you mean `0`?"
        ),
        "19: error: a `hyperedge`; expected nodes and edges",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<graphml>", "1: error: not readable as XML: Premature end of data in tag graphml line 1"),
        ("<a>\n<b></a>", "2: error: not readable as XML: Opening and ending tag mismatch: b line 2 and a"),
        ("", "1: error: not readable as XML: Document is empty"),
        ("<a>\n&b;</a>", "2: error: not readable as XML: Entity 'b' not defined"),
        ("<html/>", "1: error: the document is a `html`; expected `graphml`"),
        ("<graphml/>", "1: error: 0 graphs; expected one `graph`"),
        ("<graphml><graph/>\n<graph/></graphml>", "2: error: 2 graphs; expected one `graph`"),
        ("<graphml><graph/></graphml>", " error: no node; expected at least one"),
        (
            '<!DOCTYPE x [\n<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">]>\n<graphml>&b;</graphml>',
            "2: error: an entity is declared; expected none",
        ),
        ("<a>" * 300 + "</a>" * 300, "1: error: not readable as XML: Excessive depth in document: 256"),
    ],
)
def test_what_is_no_graphml_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert faults(tmp_path, "x.graphml", text) == [expected]


BOMB = "".join(f'<!ENTITY a{at} "{f"&a{at - 1};" * 10}">\n' for at in range(1, 12))
"""Entities that would grow to 3 * 10**11 characters."""


@pytest.mark.parametrize(
    "body", ["<graphml>&a11;</graphml>", '<graphml id="&a11;"/>'], ids=["as text", "as an attribute"]
)
def test_entities_that_would_fill_the_memory_are_refused(tmp_path: Path, body: str) -> None:
    (told,) = faults(tmp_path, "x.graphml", f'<!DOCTYPE graphml [\n<!ENTITY a0 "lol">\n{BOMB}]>\n{body}')
    assert told.endswith("error: not readable as XML: Maximum entity amplification factor exceeded")


@pytest.mark.parametrize(
    "declared",
    ['<!DOCTYPE graphml [\n<!ENTITY a SYSTEM "{}">]>', '<!DOCTYPE graphml [\n<!ENTITY % a SYSTEM "{}">\n%a;]>'],
    ids=["general", "parameter"],
)
def test_files_that_an_entity_names_are_never_read(tmp_path: Path, declared: str) -> None:
    other = tmp_path / "other"
    other.write_text("<!ENTITY b 'secret'> secret <", encoding="utf-8")
    head = declared.format(other.as_uri())
    # As a part of the document it would be a fault of its own.
    assert faults(tmp_path, "x.graphml", f"{head}\n<graphml>&a;</graphml>") == [
        "2: error: an entity is declared; expected none"
    ]


def test_a_document_type_that_lies_elsewhere_is_never_read(tmp_path: Path) -> None:
    other = tmp_path / "other.dtd"
    other.write_text('<!ATTLIST graph edgedefault CDATA "directed"> <', encoding="utf-8")
    text = f'<!DOCTYPE graphml SYSTEM "{other.as_uri()}">\n<graphml><graph><node id="A"/></graph></graphml>'
    assert [router.id for router in imported(tmp_path, "x.graphml", text).routers] == ["A"]


def test_lines_are_known_in_long_documents_too(tmp_path: Path) -> None:
    text = "<graphml><graph>" + "\n" * 100_000 + "<port/></graph></graphml>"
    assert "100001: error: a `port`; expected nodes and edges" in faults(tmp_path, "x.graphml", text)


def test_large_documents_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_with_lines, "MAX_ELEMENTS", 3)
    assert faults(tmp_path, "x.graphml", "<a>\n<a/><a/>\n<a/></a>") == [
        "3: error: too many elements; expected at most 3"
    ]
    monkeypatch.setattr(input_file, "MAX_TEXT_BYTES", 4)
    assert faults(tmp_path, "x.graphml", "<a>\n<a/></a>") == [" error: the file is too large; expected at most 0 MiB"]


# TopoHub


def test_other_writers_of_node_link_json_are_read(tmp_path: Path) -> None:
    text = json.dumps({
        "graph": {"demands": {"0": {"1": 4}, "1": {"0": 2}}},
        "nodes": [{"id": 0}, {"id": 1, "name": "B"}],
        "links": [{"source": 0, "target": 1}],
    })  # fmt: skip
    model = imported(tmp_path, "x.json", text)
    assert [router.id for router in model.routers] == ["B", "n0"]
    assert [link.id for link in model.links] == ["B--n0"]
    # Each demand flows in both directions, so two of them add up.
    assert [(it.src, it.dst, it.msgs_per_s, it.msg_bytes) for it in model.demands] == [
        ("B", "n0", 6.0, 1000.0),
        ("n0", "B", 6.0, 1000.0),
    ]


def test_all_faults_of_json_are_told_with_their_lines(tmp_path: Path) -> None:
    text = """\
{"directed": true,
 "graph": {"demands": {
   "0": {"7": 1, "1": -5, "0": 3},
   "1": {"0": "many"},
   "2": 4}},
 "nodes": [
   {"id": 0, "pos": [1, 2, 3]},
   {"id": 1.5},
   {"id": 1, "pos": ["east", 2]},
   {"id": 0},
   5],
 "edges": [
   {"source": 0, "target": 2},
   {"source": 0, "target": 1, "dist": -3}]}
"""
    assert faults(tmp_path, "x.json", text) == [
        ("1: error: directed: edges have a direction;"
        " expected `false`: a link of a mesh has the same cost in both directions"),
        "1: error: nodes[4]: the number `5`; expected a mapping",
        "2: error: graph.demands.2: the number `4`; expected a mapping",
        "3: warning: graph.demands.0.0: traffic from `0` to itself is left out",
        "3: error: graph.demands.0.1: -5.0 is out of range; expected a number not below 0",
        "3: error: graph.demands.0.7.target: no node `7`; expected a node of this file",
        '4: error: graph.demands.1.0: the text "many"; expected a number',
        "7: error: nodes[0].pos: a list; expected a list of longitude and latitude",
        "8: error: nodes[1].id: the number `1.5`; expected text or a whole number",
        '9: error: nodes[2].pos: the text "east"; expected a number',
        "10: error: nodes[3]: node `0` is given twice; expected each node once",
        "13: error: edges[0].target: no node `2`; expected a node of this file",
        ("14: error: edges[1].dist.delay_ms: -0.015 is out of range;"
        " expected a number from 0 to 1000000 (milliseconds); did you mean `0`?"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "1: error: not readable as JSON to its end: it ends too early"),
        ("", "1: error: not readable as JSON to its end: it ends too early"),
        ('{"nodes": [\n1,]}', "2: error: not readable as JSON from `]}` on"),
        ('{"nodes": [1,\n ]}', "2: error: not readable as JSON from `]}` on"),
        ('{"nodes": 1,\n}', "2: error: not readable as JSON from `}` on"),
        ("[,\n]", "1: error: not readable as JSON from `,` on"),
        ('["a"\n"b"]', '2: error: not readable as JSON from `"b"]` on'),
        ('{"nodes\n": 1}', "1: error: not readable as JSON beyond the end of this line"),
        ("[1] " + "x" * 100, f"1: error: not readable as JSON from `{'x' * 20}` on"),
        ("[" + "9" * 5000 + "]", " error: not readable as JSON: a number of 5000 digits"),
        ("[]", "1: error: a list; expected a mapping with `nodes` and `edges`"),
        ('{"nodes": [],\n"nodes": []}', "1: error: key `nodes` is given twice; expected each key once"),
        ('{"nodes": NaN}', " error: not readable as JSON: NaN is no number"),
        ("[" * 100_000, " error: nested too deep"),
    ],
)
def test_what_is_no_topohub_file_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert faults(tmp_path, "x.json", text)[0] == expected


class ComparedName(str):
    """Name in a JSON text that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        ComparedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_a_key_that_is_given_twice_is_found_without_comparing_all_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = json.loads

    def compared(text: str, *, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any], **rest: Any) -> Any:
        return loads(
            text, object_pairs_hook=lambda pairs: object_pairs_hook([(ComparedName(k), v) for k, v in pairs]), **rest
        )

    monkeypatch.setattr(json, "loads", compared)
    keys = (*range(2000), 1998)
    with pytest.raises(SettingsError, match="key `1998` is given twice"):
        json_with_lines.read("{" + ", ".join(f'"{key}": 1' for key in keys) + "}", FileFindings("x.json"))
    assert ComparedName.compared < 10 * len(keys)


# SNDlib

NATIVE = """\
?SNDlib native format; type: network; version: 1.0
# a comment
META ( )
NODES (
  A ( 13.4 52.5 ) () ()
  B ( 11.6 48.1 )  # another
  C ( 9.9 53.6 )
)
LINKS (
  L1 ( A B ) 155.00 0.00 7.00 0.00 ( 155.00 1.00 622.00 3.00 )
  L2 ( B C ) 0.00 0.00 0.00 0.00 ( )
  L3 ( C B ) 0.00 0.00 0.00 0.00 ( 40.00 1.00 )
)
DEMANDS (
  D1 ( A C ) 2 10.50 UNLIMITED
)
ADMISSIBLE_PATHS (
  D1 (
    P_0 ( L1 L2 )
    P_1 ( L1 L3 )
  )
)
"""
# As SNDlibNativeWriter of SNDlib's own library, sndlib.core, lays paths out.

XML = """\
<?xml version="1.0"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <networkStructure>
  <nodes coordinatesType="geographical">
   <node id="A"><coordinates><x>13.4</x><y>52.5</y></coordinates></node>
   <node id="B"><coordinates><x>11.6</x><y>48.1</y></coordinates></node>
   <node id="C"><coordinates><x>9.9</x><y>53.6</y></coordinates></node>
  </nodes>
  <links>
   <link id="L1"><source>A</source><target>B</target>
    <preInstalledModule><capacity>155.0</capacity><cost>0.0</cost></preInstalledModule></link>
   <link id="L2"><source>B</source><target>C</target></link>
   <link id="L3"><source>C</source><target>B</target>
    <additionalModules><addModule><capacity>40.0</capacity><cost>1.0</cost></addModule></additionalModules></link>
  </links>
 </networkStructure>
 <demands>
  <demand id="D1"><source>A</source><target>C</target><routingUnit>2</routingUnit>
   <demandValue>10.5</demandValue></demand>
 </demands>
</network>
"""


@pytest.mark.parametrize(("name", "text"), [("net.txt", NATIVE), ("net.xml", XML)])
def test_both_forms_of_sndlib_are_the_same_network(tmp_path: Path, name: str, text: str) -> None:
    model = imported(tmp_path, name, text)
    assert model.name == "net"
    assert next((it.id, it.longitude, it.latitude) for it in model.routers) == ("A", 13.4, 52.5)
    assert [(it.id, it.cost, it.capacity_msgs) for it in model.links] == [
        ("A--B", 1, 155.0),
        ("B--C", 1, None),
        ("B--C#2", 1, None),
    ]
    assert model.links[0].delay_ms == pytest.approx(504 / 200, rel=0.01)  # Berlin to Munich
    assert [(it.src, it.dst, it.msgs_per_s) for it in model.demands] == [("A", "C", 21.0), ("C", "A", 21.0)]


@pytest.mark.parametrize(
    "paths",
    [
        "D1 ( P_0 ( L1\n L2 )\n P_1 ( L3 ) )\n)",
        "D1 (\n P_0 (\n L1 L2\n ) )\nD2 ( )\n)",
        "D1 (\n P_0 ( L1 L2 ) ) )",
        "D1 ( P_0 (\n L1 L2 )\n)\n)",
    ],
)
def test_paths_of_sndlib_may_be_laid_out_as_one_likes(tmp_path: Path, paths: str) -> None:
    head, end = (
        "?SNDlib native format; type: network; version: 1.0\nADMISSIBLE_PATHS (\n",
        "\nNODES (\n A ( )\n B ( )\n)\n",
    )
    model = imported(tmp_path, "net.txt", f"{head}{paths}{end}LINKS (\n L1 ( A B ) 1 0 0 0 ( )\n)\n")
    assert [link.id for link in model.links] == ["A--B"]


def test_pixels_are_no_degrees(tmp_path: Path) -> None:
    model = imported(tmp_path, "net.xml", XML.replace("geographical", "pixel"))
    assert {router.latitude for router in model.routers} == {None}


def test_all_faults_of_the_text_format_are_told_with_their_lines(tmp_path: Path) -> None:
    text = """\
?SNDlib native format; type: network; version: 1.0
NODE (
NODES (
  A ( north 52.5 )
  A ( 1 2
)
LINKS (
  L1 ( A B ) 155.00
  L2 ( A D ) 0 0 0 0 ( )
  L3 ( A A ) -3 0 0 0 ( )
)
DEMANDS (
  D1 ( A A )
  D2 ( A B ) 1 many UNLIMITED
  D3 ( A A ) 1 -1 UNLIMITED
"""
    assert faults(tmp_path, "x.txt", text) == [
        (
            "2: error: `NODE (` begins no section; expected one of `META (`, `NODES (`, `LINKS (`, `DEMANDS (`,"
            " `ADMISSIBLE_PATHS (`; did you mean `NODES`?"
        ),
        '4: error: NODES.A: the text "north"; expected a number',
        "5: error: NODES: `A ( 1 2`; expected `id ( longitude latitude )`",
        (
            "8: error: LINKS: `L1 ( A B ) 155.00`; expected `id ( source target ) pre_installed_capacity"
            " pre_installed_capacity_cost routing_cost setup_cost ( {module_capacity module_cost}* )`"
        ),
        "9: error: LINKS.L2.target: no node `D`; expected a node of this file",
        "10: warning: LINKS.L3: an edge from `A` to itself is left out",
        (
            "10: error: LINKS.L3.capacity_msgs: -3.0 is out of range; expected a number from 1e-06 to 9000000000000"
            " (messages/s); did you mean `1e-06`?"
        ),
        "12: error: the section DEMANDS does not end; expected a line with `)` alone",
        "13: error: DEMANDS: `D1 ( A A )`; expected `id ( source target ) routing_unit demand_value max_path_length`",
        '14: error: DEMANDS.D2: the text "many"; expected a number',
        "15: error: DEMANDS.D3: -1.0 is out of range; expected a number not below 0",
    ]


def test_all_faults_of_the_xml_are_told_with_their_lines(tmp_path: Path) -> None:
    text = (
        XML.replace('id="B"', 'id="b"')
        .replace("<source>A</source>", "", 1)
        .replace("<demandValue>10.5</demandValue>", "")
        .replace("<x>9.9</x>", "<x>9,9</x>")
    )
    assert faults(tmp_path, "x.xml", text) == [
        '7: error: nodes.C.x: the text "9,9"; expected a number',
        "10: error: links.L1: `source` is missing; expected the id of a node",
        "10: error: links.L1.source: no node ``; expected a node of this file",
        "10: error: links.L1.target: no node `B`; expected a node of this file; did you mean `b`?",
        "12: error: links.L2.source: no node `B`; expected a node of this file; did you mean `b`?",
        "13: error: links.L3.target: no node `B`; expected a node of this file; did you mean `b`?",
        "18: error: demands.D1: `demandValue` is missing; expected a number",
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.txt", "?SNDlib native format; type: model; version: 1.0", "1: error: no header; expected `?SNDlib"),
        ("x.xml", "<network xmlns='http://sndlib.zib.de/network'/>", "1: error: the document is a `network`; expected"),
        ("x.sndlib", "sndlib", "1: error: no header; expected"),
    ],
)
def test_what_is_no_network_of_sndlib_is_refused(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (found,) = faults(tmp_path, name, text)
    assert found.startswith(expected)


@pytest.mark.parametrize("name", ["x.graphml", "x.json", "x.txt"])
def test_what_is_not_utf_8_or_not_there_is_told(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        import_model(file)
    file.write_bytes(b"<graphml>\n\xff")
    words = r":2: error: cannot be read: byte 0xff is not UTF-8; expected a file saved as UTF-8$"
    with pytest.raises(SettingsError, match=words):
        import_model(file)
