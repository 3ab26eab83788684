"""Requests that no simulated mesh can do: they are refused in words, and not with what goes wrong later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.testing import AnycastMesh, MulticastMesh, RouterId

A, Z = RouterId("A"), RouterId("Z")
Mesh = AnycastMesh | MulticastMesh


@pytest.mark.parametrize("kind", [AnycastMesh, MulticastMesh])
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda mesh: mesh.add_subscriber("Z", credit=1), "no router 'Z'; expected one of A, B"),
        (lambda mesh: mesh.add_publisher("Z"), "no router 'Z'"),
        (lambda mesh: mesh.cut(A, Z), "no router 'Z'"),
        (lambda mesh: mesh.join(Z, A), "no router 'Z'"),
        (lambda mesh: mesh.kill(Z), "no router 'Z'"),
        (lambda mesh: mesh.join(A, A), "a connection from 'A' to itself; expected two routers"),
        (lambda mesh: mesh.run_for(-1), "duration_s is -1; expected 0 at least"),
        (lambda mesh: mesh.run_for(float("nan")), "duration_s is nan"),
        (lambda mesh: mesh.run_until_true(lambda: True, limit_s=-1), "limit_s is -1"),
        (lambda mesh: mesh.add_subscriber("A", credit=-1), "credit is -1; expected 0 at least"),
        (lambda mesh: mesh.add_subscriber("A", credit=1, workers=0), "workers is 0; expected 1 at least"),
        (lambda mesh: mesh.add_subscriber("A", credit=1, service_s=-1), "service_s is -1"),
        (lambda mesh: mesh.add_publisher("A").offer(-1), "count is -1"),
        (lambda mesh: type(mesh)([("A", "A")]), "a connection from 'A' to itself"),
        (lambda mesh: type(mesh)([("A", "B")], delay_s=-1), "delay_s is -1"),
    ],
)
def test_what_no_mesh_can_do_is_refused(kind: type[Mesh], call: Callable[[Mesh], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call(kind([("A", "B")]))


def test_a_connection_that_is_down_already_may_be_cut() -> None:
    mesh = AnycastMesh([("A", "B")])
    for _ in range(2):
        mesh.cut(A, RouterId("B"))
    assert not mesh.graph.edges
