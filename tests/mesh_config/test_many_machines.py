"""Meshes of many machines: what collides and what is reached is found without comparing all with all."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from mesh_config import check, connector_matching, loader
from mesh_config.findings import MOST_HINTS, nearest
from mesh_config.models import ConnectorSettings, HttpSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from tests.mesh_config.cases import FILE

HOSTS = (None, "10.0.0.1", "10.0.0.2", "10.0.0.02", "host", "HOST", "localhost", "127.0.0.1", "::1")
ADDRESSES = ("0.0.0.0", "::", "127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "10.0.0.1", "10.0.0.2", "host", "::1")
PORTS = (1, 2, 3)


def a_mesh(rng: random.Random) -> MeshSettings:
    """A mesh of up to eight routers whose hosts, addresses and ports are often the same."""

    def listener() -> ListenerSettings:
        return ListenerSettings(host=rng.choice(ADDRESSES), port=rng.choice(PORTS), role=rng.choice(list(Role)))

    routers = [
        RouterSettings(
            id=f"R{number}",
            host=rng.choice(HOSTS),
            http=HttpSettings(host=rng.choice(ADDRESSES), port=rng.choice((None, *PORTS))),
            listeners=tuple(listener() for _ in range(rng.randrange(3))),
            connectors=tuple(
                ConnectorSettings(host=rng.choice(ADDRESSES), port=rng.choice(PORTS)) for _ in range(rng.randrange(3))
            ),
        )
        for number in range(rng.randrange(1, 9))
    ]
    return MeshSettings(routers={each.id: each for each in routers})


class AllBefore:
    """`check._BoundIndex` that rules nothing out."""

    def __init__(self) -> None:
        self._all: list[Any] = []

    def add(self, bound: Any) -> None:
        self._all.append(bound)

    def near(self, bound: Any) -> Iterator[Any]:
        return iter(self._all)


def reached(mesh: MeshSettings, key: str, connector: ConnectorSettings) -> tuple[str, int] | None:
    """The first listener that the connector reaches, of all."""
    for name, target in mesh.routers.items():
        for index, listener in enumerate(target.listeners):
            if connector_matching._reaches(mesh.routers[key], connector, target, listener):
                return name, index
    return None


def test_those_that_are_compared_are_enough(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    collisions = 0
    for _ in range(1500):
        mesh = a_mesh(rng)
        listeners = connector_matching.ListenerIndex(mesh)
        for key, router in mesh.routers.items():
            for connector in router.connectors:
                assert listeners.target_of(key, connector) == reached(mesh, key, connector)
        found = [str(each) for each in check.check_mesh(mesh) if "collides" in each.message]
        with monkeypatch.context() as patch:
            patch.setattr(check, "_BoundIndex", AllBefore)
            assert found == [str(each) for each in check.check_mesh(mesh) if "collides" in each.message]
        collisions += len(found)
    assert collisions > 1000


def test_the_nearest_listener_is_looked_for_as_often_as_is_worth_it() -> None:
    listener = ListenerSettings(host="10.0.0.1", port=25672, role=Role.INTER_ROUTER)
    out = tuple(ConnectorSettings(host=f"10.0.0.{2 + number}", port=25672) for number in range(MOST_HINTS + 5))
    routers = {"A": RouterSettings(id="A", listeners=(listener,)), "B": RouterSettings(id="B", connectors=out)}
    found = [
        each for each in check.check_mesh(MeshSettings(routers=routers)) if "no router of this mesh" in each.message
    ]
    assert Counter(each.nearest for each in found) == {"10.0.0.1:25672": MOST_HINTS, None: 5}


def test_the_nearest_router_is_looked_for_once_for_each_name_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def counted(found: str, known: Iterable[str]) -> str | None:
        compared.append(found)
        return nearest(found, known)

    monkeypatch.setattr(loader, "nearest", counted)
    star = "".join(f"  R{number}: {{connectors: [{{to: R00}}]}}\n" for number in range(10, 99))
    findings = loader.parse_document(f"routers:\n{star}", FILE).findings
    assert compared == ["R00", "R00"]  # of all, and for the nearest itself of the others
    assert len(findings) == 89
    near = findings[0].nearest
    assert [each.key for each in findings if each.nearest != near] == [f"routers.{near}.connectors[0].to"]
    assert None not in {each.nearest for each in findings}
    assert "one of `R10`, `R12`, " in findings[1].expected
    assert "one of `R11`, `R12`, " in findings[0].expected
    assert " and 76 more, or also `host` and `port`" in findings[0].expected
    compared.clear()
    many = ", ".join(f"{{to: S{number}}}" for number in range(MOST_HINTS + 5))
    findings = loader.parse_document(f"routers: {{A: {{connectors: [{many}]}}, S: {{}}}}", FILE).findings
    assert len(findings) == MOST_HINTS + 5
    assert len(compared) == MOST_HINTS


@pytest.mark.parametrize("by_host", [True, False], ids=["a host for each router", "an address for each listener"])
def test_few_are_compared_where_each_router_has_a_machine(by_host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 200
    places = [f"10.0.{number // 250}.{1 + number % 250}" for number in range(count)]
    routers = [
        RouterSettings(
            id=f"R{number}",
            host=place if by_host else None,
            listeners=tuple(
                ListenerSettings(host="0.0.0.0" if by_host else place, port=port, role=role)
                for port, role in ((5672, Role.NORMAL), (25672, Role.INTER_ROUTER))
            ),
            connectors=(ConnectorSettings(host=places[number - 1], port=25672),) if number else (),
        )
        for number, place in enumerate(places)
    ]
    compared = 0

    def counting(function: Any) -> Any:
        def counted(*arguments: Any) -> bool:
            nonlocal compared
            compared += 1
            return bool(function(*arguments))

        return counted

    monkeypatch.setattr(check, "_collide", counting(check._collide))
    monkeypatch.setattr(connector_matching, "_reaches", counting(connector_matching._reaches))
    check.check_mesh(MeshSettings(routers={each.id: each for each in routers}))
    assert compared <= 4 * count
