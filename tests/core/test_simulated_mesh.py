"""Requests that no simulated mesh can do: they are refused in words, and not with what goes wrong later."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.testing import AnycastMesh, MulticastMesh, RouterId

A, Z = RouterId("A"), RouterId("Z")
AB = [("A", "B")]
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
        (lambda mesh: mesh.kill("a"), "no router 'a'; expected one of A, B, C; did you mean 'A'?"),
        (lambda mesh: mesh.cut(A, RouterId("C")), "no connection from 'A' to 'C'; expected one of B"),
        (lambda mesh: mesh.cut(RouterId("C"), A), "no connection from 'C' to 'A'; it never had a connection"),
        (lambda mesh: mesh.cut(A, A), "no connection from 'A' to 'A'"),
        (lambda mesh: mesh.run_for(float("inf")), "duration_s is inf; expected 0 at least"),
        (lambda mesh: mesh.add_subscriber("A", credit=1).grant(-1), "credit is -1; expected 0 at least"),
        (lambda mesh: mesh.remove_subscriber(AnycastMesh(AB).add_subscriber("A", credit=1)), "of another mesh"),
        (lambda mesh: mesh.remove_publisher(AnycastMesh(AB).add_publisher("A")), "of another mesh"),
        (lambda mesh: type(mesh)(["AB"]), "edge 'AB'; expected a pair of routers, such as"),
        (lambda mesh: type(mesh)([("A", "B", "C")]), "edge .*; expected a pair of routers"),
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
        call(kind(AB, routers="C"))


@pytest.mark.parametrize("kind", [AnycastMesh, MulticastMesh])
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda mesh: mesh.add_subscriber("A", credit=2.5), "credit is 2.5; expected a whole number, 0 at least"),
        (lambda mesh: mesh.add_subscriber("A", credit="5"), "credit is '5'; expected 0 at least"),
        (lambda mesh: mesh.add_subscriber("A", credit=1).grant(0.5), "credit is 0.5; expected a whole number"),
        (lambda mesh: mesh.add_publisher("A").offer("all"), "count is 'all'"),
        (lambda mesh: mesh.run_for("1"), "duration_s is '1'"),
        (lambda mesh: mesh.add_subscriber("A", credit=1, top_up="each"), "did you mean GrantHabit.EACH?"),
        (lambda mesh: mesh.add_subscriber("A", credit=1, accepts=None), "accepts is None; expected a SettlementHabit"),
    ],
)
def test_what_is_of_the_wrong_kind_is_refused(kind: type[Mesh], call: Callable[[Mesh], object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(kind(AB))


def test_of_many_routers_only_some_are_named() -> None:
    mesh = AnycastMesh((f"R{place}", f"R{place + 1}") for place in range(10, 90))
    with pytest.raises(ValueError, match=r"expected one of R10, .*R19 and 71 more; did you mean 'R42'\?$"):
        mesh.add_publisher("r42")


def test_a_subscriber_whose_router_died_may_be_removed() -> None:
    mesh = AnycastMesh(AB)
    subscriber = mesh.add_subscriber("A", credit=1)
    mesh.run_for(1)
    mesh.kill(A)
    mesh.remove_subscriber(subscriber)
    assert not mesh.subscribers


def test_what_a_multicast_sent_and_a_slow_subscriber_missed_is_counted_by_link() -> None:
    mesh = MulticastMesh(AB)
    fast = mesh.add_subscriber("B", credit=10)
    slow = mesh.add_subscriber("B", credit=2, top_up=None)
    mesh.add_publisher("A").offer(50)
    mesh.run_for(10)
    assert mesh.sent[fast.link] == fast.received
    assert len(fast.received) == 50
    assert mesh.sent[slow.link] == slow.received
    assert mesh.missed == {slow.link: 50 - len(slow.received)}


def test_a_connection_that_is_down_already_may_be_cut() -> None:
    mesh = AnycastMesh([("A", "B")])
    for _ in range(2):
        mesh.cut(A, RouterId("B"))
    assert not mesh.graph.edges
