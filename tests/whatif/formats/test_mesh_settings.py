"""Settings of a mesh to a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config import generators
from mesh_config.findings import SettingsError
from mesh_config.graph import topology
from mesh_config.models import Treatment
from mesh_config.render import render_mesh
from router.whatif.formats.importer import import_model
from router.whatif.formats.input_file import FileFindings
from router.whatif.formats.mesh_settings import mesh_model, read_mesh

MESH = """\
mesh: {name: shop}
addresses:
  - {prefix: orders, treatment: closest}
  - {pattern: news/#, treatment: multicast}
defaults: {listener: {host: 127.0.0.1}}
routers:
  C:
    site: west
    listeners: [{port: 5903, role: inter-router}]
    connectors: [{to: A, cost: 2}, {to: B}, {to: B, name: by-radio, cost: 9}]
  A:
    listeners: [{port: 5901, role: inter-router, cost: 3}, {port: 5911}]
  B:
    listeners: [{port: 5902, role: inter-router}]
    connectors: [{to: A, cost: 4}]
    default_treatment: closest
"""


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mesh.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_routers_sites_and_the_larger_cost_of_both_ends(tmp_path: Path) -> None:
    model, warnings = import_model(write(tmp_path, MESH))
    assert model.name == "shop"
    assert [(it.id, it.site) for it in model.routers] == [("A", None), ("B", None), ("C", "west")]
    assert [(it.id, it.a, it.b, it.cost) for it in model.links] == [
        ("A--B", "A", "B", 4),
        ("A--C", "A", "C", 3),
        ("B--C", "B", "C", 1),
        ("B--C#2", "B", "C", 9),
    ]
    # What `config check` warns of: costs that differ, and the parallel link.
    assert [warning.line for warning in warnings] == [10, 10, 15]
    assert model.origin == "mesh.yaml"


def test_addresses_have_the_treatment_of_the_settings(tmp_path: Path) -> None:
    told = FileFindings("mesh.yaml")
    _, treatment_of = read_mesh(write(tmp_path, MESH), told)
    before = len(told.check())
    assert treatment_of("orders/eu") is Treatment.CLOSEST
    assert treatment_of("news/a/b") is Treatment.MULTICAST
    assert treatment_of("broadcast.x") is Treatment.MULTICAST  # built in
    assert len(told.check()) == before
    # Routers that don't agree: the first one counts, and it is told.
    assert treatment_of("other") is Treatment.BALANCED
    assert any(
        str(it).endswith(
            "address `other` is balanced at router `A` and closest at `B`; it counts as balanced;"
            " expected one treatment in the whole mesh"
        )
        for it in told.check()
    )


@given(st.sampled_from(sorted(generators.KINDS)), st.integers(2, 20), st.integers(0, 5))
def test_a_generated_mesh_has_the_links_of_its_picture(kind: str, routers: int, seed: int) -> None:
    mesh = generators.generate(kind, 20 if kind == "fat-tree" else routers, seed=seed)
    graph = topology(mesh)
    model = mesh_model(mesh)
    assert [router.id for router in model.routers] == sorted(graph)
    expected = sorted((*sorted((a, b)), cost) for a, b, cost in graph.edges(data="cost"))
    assert sorted((link.a, link.b, link.cost) for link in model.links) == expected


def test_a_mesh_that_cannot_run_makes_no_model(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        import_model(write(tmp_path, MESH.replace("{to: A, cost: 2}", "{to: D, cost: 0}")))
    assert [finding.line for finding in caught.value.findings] == [10, 10]
    parts = render_mesh(generators.generate("line", 2)).replace("connectors", "#")
    with pytest.raises(SettingsError):
        import_model(write(tmp_path, parts))


def test_one_router_is_a_mesh_of_one(tmp_path: Path) -> None:
    model, _ = import_model(write(tmp_path, "router: {id: A, listeners: [{port: 5901, role: inter-router}]}"))
    assert [router.id for router in model.routers] == ["A"]
    assert model.links == ()
