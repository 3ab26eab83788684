"""When a router is ready for clients, under virtual time."""

from __future__ import annotations

from mesh_config.generators import generate
from router.mesh_presence import ExpectedMesh
from router.views.readiness import DIALLED_WITHIN_S, reasons_not_ready
from tests.helpers.engine import Bench

MESH = ExpectedMesh.of(generate("line", 3))
"""R1 - R2 - R3."""


def test_one_without_connectors_waits_for_the_first_that_dials_it() -> None:
    bench = Bench()
    one, two = bench.router("R1"), bench.router("R2")
    one.mesh_presence.expect(MESH, one.clock())
    assert reasons_not_ready(one, [], []) == ["no other router has connected yet, of R2"]
    bench.join(one, two)
    bench.advance(1)
    assert reasons_not_ready(one, [], []) == []


def test_one_that_nobody_dials_is_ready_soon_after_its_start() -> None:
    bench = Bench()
    middle = bench.router("R2")
    middle.mesh_presence.expect(MESH, middle.clock())
    bench.advance(DIALLED_WITHIN_S - 0.1)
    assert reasons_not_ready(middle, [], []) == ["no other router has connected yet, of R1, R3"]
    bench.advance(0.2)
    assert reasons_not_ready(middle, [], []) == []


def test_one_without_a_file_of_the_mesh_is_ready_at_once() -> None:
    assert reasons_not_ready(Bench().router("A"), [], []) == []
