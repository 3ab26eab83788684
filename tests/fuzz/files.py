"""Every kind of file that is read, each with what must hold whatever it has: a model or settings that can be used, or
findings."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from mesh_config.check import check_file, check_router, has_errors
from mesh_config.findings import Finding, SettingsError
from mesh_config.generators import generate
from mesh_config.loader import load_mesh, read_document
from mesh_config.render import render_mesh
from router.binding.message import MalformedMessage, Message, decode_message, encode_message
from router.cli.amqp_value_formatting import plain
from router.whatif.formats.importer import completed, import_model
from router.whatif.formats.live_snapshot import checked_model, collect, measured_demands
from router.whatif.model.mesh_model import Model
from tests.fuzz import mutation
from tests.fuzz.entry_points import AMQP_TOKENS, EntryPoint
from tests.whatif.formats import test_live_snapshot as answers
from tests.whatif.formats import test_spoilt_files as samples
from tests.whatif.formats import test_topologies as networks

BREAKS: Final = (b"\n", b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")
"""What ends a line, in UTF-8."""
MEMORY: Final = Path("/dev/shm")


@cache
def folder() -> Path:
    """A folder of this process, in memory where there is such a place."""
    made = Path(tempfile.mkdtemp(prefix="amqp-mesh-fuzz.", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def good_model() -> Model:
    """What a file of groups or demands is about."""
    mesh = folder() / "good.yaml"
    mesh.write_text(MESH, encoding="utf-8")
    return import_model(mesh)[0]


MESH: Final = render_mesh(generate("ring", 3))
HUB: Final = """\
{"directed": false, "multigraph": false, "graph": {"name": "hub", "demands": {"0": {"1": 3.5, "2": 0}}},
 "nodes": [{"id": 0, "name": "R1", "pos": [13.4, 52.5]}, {"id": 1, "name": "R2", "pos": [2.3, 48.8]}, {"id": 2}],
 "edges": [{"source": 0, "target": 1, "dist": 877.5, "ecmp_fwd": {"uni": 12}}, {"source": 1, "target": 2}]}
"""
GRAPHML: Final = """\
<?xml version="1.0" encoding="utf-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
 <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3" /><key attr.name="label" for="node" id="d2" />
 <key attr.name="Longitude" attr.type="double" for="node" id="d1" /><key attr.name="cost" for="edge" id="c">
 <default>2</default></key><key attr.name="Latitude" attr.type="double" for="node" id="d0" />
 <graph edgedefault="undirected"><node id="0"><data key="d0">40.7</data><data key="d1">-74.0</data>
 <data key="d2">New York</data></node><node id="1"><data key="d2">Chicago</data></node>
 <edge source="0" target="1" id="e0"><data key="d3">10000000.0</data><data key="c">7</data></edge></graph></graphml>
"""


def _outcome(file: Path) -> Model | tuple[Finding, ...]:
    """What becomes of a file: by its name groups, demands, or a mesh or network."""
    try:
        if file.name == "groups.yaml":
            return completed(good_model(), details=[file], demands=None)[0]
        if file.name == "demands.csv":
            return completed(good_model(), details=(), demands=file)[0]
        return import_model(file)[0]
    except SettingsError as error:
        return error.findings


def check_source(name: str, data: bytes) -> Model | None:
    """A file of that name with these bytes makes a model that can be used, or findings about the file."""
    file = folder() / name
    file.write_bytes(data)
    found = _outcome(file)
    if isinstance(found, Model):
        found.check()
        found.digest()
        return found
    assert found
    for finding in found:
        assert finding.file == str(file)
        assert str(finding)
        assert finding.line is None or 1 <= finding.line <= 1 + sum(map(data.count, BREAKS)), "a line of the file"
    return None


def check_mesh(data: bytes) -> object:
    """Settings: what is read reads the same when it was written, and what can't be has findings."""
    file = folder() / "mesh.yaml"
    file.write_bytes(data)
    document = read_document(file)
    findings = check_file(file)
    assert has_errors(findings) >= bool(document.findings)
    assert document.findings or document.mesh.routers
    for router in ("zz", *list(document.nodes)[:2]):
        try:
            check_router(file, router)
        except SettingsError as error:
            refused = has_errors(error.findings)
        else:
            refused = True
        assert refused
    try:
        mesh = load_mesh(file)
    except SettingsError as error:
        told = error.findings
    else:
        told = ()
    assert bool(told) == bool(document.findings)
    if told:
        return None
    again = folder() / "again.yaml"
    again.write_text(render_mesh(mesh), encoding="utf-8")
    assert load_mesh(again) == mesh, "written and read again"
    return mesh


class Answers:
    """A mesh whose routers tell whatever a message has: by router, entities by their type."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def attached_to(self) -> str:
        return "A"

    def query(self, kind: str, attributes: Sequence[str], *, router: str | None) -> list[dict[str, Any]]:
        entities = self._body.get(router or "A")
        rows = entities.get(kind) if isinstance(entities, dict) else None
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def check_snapshot(data: bytes) -> Model | None:
    """What routers tell of a mesh makes a model that can be used, or findings."""
    try:
        body = plain(decode_message(data).body)
    except MalformedMessage:
        return None
    if not isinstance(body, dict):
        return None
    mesh = Answers(body)
    try:
        before, after = collect(mesh), collect(mesh)
        model, _ = checked_model(after, "amqp://a", demands=measured_demands(before, after, 2.0))
    except SettingsError as error:
        findings = error.findings
    else:
        model.check()
        return model
    assert all(map(str, findings))
    assert findings
    return None


def _snapshot_seeds() -> list[bytes]:
    """What two routers tell; of each type of entity in a message of its own, so that changes come everywhere."""
    nodes = [answers.node("A", {"B": 2}), answers.node("B", {"A": 2})]
    entities = {
        "router.node": nodes,
        "router": [{"site": "east"}],
        "connection": [answers.connection("B"), answers.connection("client", role="normal", cost=None, identity="2")],
        "router.link": [answers.subscriber("M0orders", 5, 1), answers.subscriber(None)],
        "router.address": [answers.address("M0orders", ingress=4), answers.address("Tqdrouter", "flood")],
    }
    made = [{"A": {"router.node": nodes, kind: rows}, "B": {kind: rows}} for kind, rows in entities.items()]
    return [encode_message(Message(body=body)) for body in (*made, {"A": entities, "B": entities})]


def _source(name: str) -> Callable[[bytes], object]:
    return lambda data: check_source(name, data)


def _seeds(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in texts]


COMMON: Final = (b"\xff", b"\xed\xa0\x80", b"\xc3", *(it.encode() for it in (
    "0", "-1", "1e400", "9" * 400, "9" * 20, "nan", "inf", "0x10", "1_0", "[]", "{}",
    '"', "'", "\0", "\r", "\t", "<", ">", ",",
    ":", "\n", " ", "#", "R1", "R2", "null", "true", "~", "é", "\u2028", "\ufeff", "--", "/", "\x85", "\x7f",
)))  # fmt: skip
YAML: Final = tuple(it.encode() for it in (
    "- ", ": ", "  ", "&a ", "*a", "!!str ", "!!int ", "!x ", "|\n", ">-\n", "? ", "---\n", "...\n", "%YAML 1.2\n",
    "<<: ",
    "[" * 120, "{a: " * 30, "port: 0", "port: 99999", "to: R2", "host: \"\"", "routers:", "listeners:", "connectors:",
    "defaults:", "mesh:", "addresses:", "prefix: a", "pattern: '#'", "role: inter-router", "cost: 3", "id: R1",
    "name: x",
))  # fmt: skip
XML: Final = tuple(it.encode() for it in (
    "<node/>", "<edge/>", "<graph>", "</graph>", "<data key='d0'>", "</data>", "<!ENTITY a 'b'>", "<!DOCTYPE g [", "]>",
    "&amp;", "&a;", "&#0;", "&#55296;", "<![CDATA[", "]]>", "<?xml?>", "id=''", "key='d2'", "<key id='k'/>",
    "directed='true'",
    "<a:b/>", "xmlns:a='b'", " source='1'", "<link/>", "<demand/>", "<!--", "-->", "encoding='utf-16'", "<default>",
))  # fmt: skip
JSON: Final = tuple(it.encode() for it in (
    "[" * 60, "NaN", "Infinity", "-0", "1E5", '"id"', '"pos"', '"dist"', '"\\ud800"', '"\\u0000"', '{"a": 1}',
    "[1, 2]", "false",
    '"graph"', '"demands"', '"links"',
))  # fmt: skip
NATIVE: Final = (b"NODES (", b"LINKS (", b"DEMANDS (", b")\n", b"( ", b" ) ", b"META (", b"# ", b"UNLIMITED")
TABLE: Final = tuple(it.encode() for it in (
    "src,", "dst,", "address,", "msgs_per_s,", "class", "R1,R2,,1,1,\n", '"a\nb"', '""', "\r\n", "orders", ",,,,,",
    "1e308",
))  # fmt: skip

SNAPSHOT: Final = ("router.whatif.formats.live_snapshot", "router.whatif.formats.management_rows")

FILES: Final[Mapping[str, EntryPoint]] = {
    it.name: it
    for it in (
        EntryPoint(
            name="mesh.yaml", check=check_mesh, seeds=_seeds(MESH), is_file=True, tokens=COMMON + YAML,
            modules=(
                "mesh_config.loader", "mesh_config.yaml_text", "mesh_config.defaults_merging",
                "mesh_config.structuring",
            ),
        ),
        EntryPoint(
            name="groups.yaml", check=_source("groups.yaml"), seeds=_seeds(samples.DETAILS), is_file=True,
            tokens=COMMON + YAML, modules=("router.whatif.formats.details_file", "mesh_config.yaml_text"),
        ),
        EntryPoint(
            name="net.graphml", check=_source("net.graphml"), seeds=_seeds(GRAPHML), is_file=True, tokens=COMMON + XML,
            modules=("router.whatif.formats.graphml", "router.whatif.formats.xml_with_lines"),
        ),
        EntryPoint(
            name="hub.json", check=_source("hub.json"), seeds=_seeds(HUB), is_file=True, tokens=COMMON + JSON,
            modules=("router.whatif.formats.topohub", "router.whatif.formats.json_with_lines"),
        ),
        EntryPoint(
            name="net.txt", check=_source("net.txt"), seeds=_seeds(networks.NATIVE), is_file=True,
            tokens=COMMON + NATIVE,
            modules=("router.whatif.formats.sndlib",),
        ),
        EntryPoint(
            name="net.xml", check=_source("net.xml"), seeds=_seeds(networks.XML), is_file=True, tokens=COMMON + XML,
            modules=("router.whatif.formats.sndlib", "router.whatif.formats.xml_with_lines"),
        ),
        EntryPoint(
            name="demands.csv", check=_source("demands.csv"), seeds=_seeds(samples.TABLE), is_file=True,
            tokens=COMMON + TABLE,
            modules=("router.whatif.formats.demand_file", "router.whatif.formats.csv_parquet"),
        ),
        EntryPoint(
            name="snapshot", check=check_snapshot, seeds=_snapshot_seeds, is_file=True, tokens=AMQP_TOKENS,
            modules=SNAPSHOT, parse=mutation.parsed,
        ),
    )
}  # fmt: skip
