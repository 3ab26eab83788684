"""Whatever a file has, it makes a model that can be used or findings, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_config.findings import Finding, SettingsError
from mesh_config.generators import generate
from mesh_config.render import render_mesh
from router.whatif.formats.importer import import_model
from router.whatif.model.mesh_model import Model
from tests.helpers.examples import examples
from tests.whatif.formats import test_topologies as samples
from tests.whatif.formats.test_repetita import DEMANDS, GRAPH
from tests.whatif.models import TOPOHUB, ZOO

DETAILS = """\
defaults: {link: {failures_per_year: 2}, router: {repair_hours: 6}}
routers: [{id: R1, site: east}]
links: [{id: R1--R2, delay_ms: 3.5}]
addresses: [{text: orders, treatment: closest}]
subscribers: [{address: orders, router: R3, count: 2, credit: 200}]
groups: [{name: duct, kind: srlg, links: [R1--R2], routers: [R1]}]
"""
TABLE = "src,dst,address,msgs_per_s,msg_bytes,class\nR1,R3,,250,1200,rpc\nR2,,orders,40.5,800,\n"
MESH = render_mesh(generate("ring", 4))

FILES = {
    "mesh.yaml": MESH,
    "zoo.graphml": (ZOO / "Abilene.graphml").read_text(encoding="utf-8"),
    "hub.json": (TOPOHUB / "sndlib_polska.json").read_text(encoding="utf-8"),
    "net.txt": samples.NATIVE,
    "net.xml": samples.XML,
    "net.graph": GRAPH,
    "net.demands": DEMANDS,
    "groups.yaml": DETAILS,
    "demands.csv": TABLE,
}
BITS = (
    "",
    "0",
    "-1",
    "1e400",
    "9" * 400,
    "nan",
    "[]",
    "{}",
    '"',
    "\0",
    "\ud7ff",
    "<",
    ">",
    ",",
    ":",
    "\n",
    "R1",
    "null",
)


def spoilt(text: str, rng: random.Random) -> str:
    """The text with a few pieces gone, doubled or replaced."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice((0, 1, 2, 5, 40)))
        text = text[:start] + rng.choice((*BITS, text[start:end] * 2)) + text[end:]
    return text


def outcome(folder: Path, name: str, data: bytes) -> Model | tuple[Finding, ...]:
    """What becomes of a file of that name with these bytes, beside good ones."""
    mesh = folder / "good.yaml"
    mesh.write_text(MESH, encoding="utf-8")
    file = folder / name
    file.write_bytes(data)
    try:
        if name == "groups.yaml":
            return import_model(mesh, details=[file])[0]
        if name == "net.demands":
            graph = folder / "good.graph"
            graph.write_text(GRAPH, encoding="utf-8")
            return import_model(graph, demands=file)[0]
        if name == "demands.csv":
            return import_model(mesh, demands=file)[0]
        return import_model(file)[0]
    except SettingsError as error:
        return error.findings


def check(found: Model | tuple[Finding, ...], file: Path) -> None:
    if isinstance(found, Model):
        found.check()
    else:
        assert found
        assert {finding.file for finding in found} == {str(file)}


@pytest.mark.parametrize("name", FILES)
@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=examples(40), deadline=None)
def test_a_spoilt_file_makes_a_model_or_findings(
    tmp_path_factory: pytest.TempPathFactory, name: str, rng: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("spoilt")
    check(outcome(folder, name, spoilt(FILES[name], rng).encode(errors="replace")), folder / name)


@pytest.mark.parametrize("name", FILES)
@given(data=st.binary(max_size=200))
@settings(max_examples=examples(30), deadline=None)
def test_any_bytes_make_a_model_or_findings(tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    check(outcome(folder, name, data), folder / name)
