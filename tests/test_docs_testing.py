"""The page about `router.testing` shows a test that passes, and names what is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import router.testing
from router.testing import AnycastMesh, MulticastMesh, SimPublisher, SimSubscriber

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "how_to" / "test-a-client.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize("name", re.findall(r"^def (test_\w+)", EXAMPLE, re.MULTILINE))
def test_the_tests_that_the_page_shows_pass(name: str) -> None:
    module: dict[str, Any] = {"__name__": "example"}
    exec(compile(EXAMPLE, "docs/how_to/test-a-client.md", "exec"), module)  # noqa: S102
    module[name]()


def test_the_names_in_the_table_of_the_page_are_there() -> None:
    mesh, crowd = AnycastMesh([("A", "B")]), MulticastMesh([("A", "B")])
    publisher, subscriber = mesh.add_publisher("A"), mesh.add_subscriber("B", credit=1)
    assert isinstance(publisher, SimPublisher)
    assert isinstance(subscriber, SimSubscriber)
    table = PAGE.partition("## What there is")[2]
    cells = " ".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    names = re.findall(r"`(?:AnycastMesh\.|MulticastMesh\.)?(?:network\.)?(\w+)", cells)
    assert len(names) > 15
    assert [n for n in names if not any(hasattr(it, n) for it in (mesh, mesh.network, crowd))] == []
    said = re.findall(r"`(\w+)(?:\(\w+\))?`", table.rpartition("|")[2])
    there = (publisher, subscriber, router.testing)
    assert [name for name in said if not any(hasattr(it, name) for it in there)] == []


def test_a_subscriber_without_a_habit_grants_only_what_it_is_told() -> None:
    mesh = AnycastMesh([("A", "B")])
    subscriber = mesh.add_subscriber("B", credit=3, top_up=None)
    mesh.add_publisher("A").offer(100)
    mesh.run_for(1.0)
    assert len(subscriber.received) == 3
    subscriber.grant(4)
    mesh.run_for(1.0)
    assert len(subscriber.received) == 7


def test_everything_that_is_public_is_there_and_documented() -> None:
    for name in router.testing.__all__:
        assert getattr(router.testing, name).__doc__, name
