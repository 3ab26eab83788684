"""What somebody without credentials can do at real routers: tried, and compared with what the threat model says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection

from mesh_config.loader import load_mesh
from tests.helpers.processes import MeshProcesses
from tests.helpers.stranger import ATTEMPTS, SETTINGS, Place

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "threat-model.md"
ROW = re.compile(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, ...]]:
    """The three places, with somebody who receives from `inbox` wherever one may, and from `orders` at the open one."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "settings.yaml").write_text(SETTINGS, encoding="utf-8")
    with MeshProcesses(load_mesh(folder / "settings.yaml"), folder) as mesh:
        mesh.start()
        urls = {name: mesh.url(name) for name in ("OPEN", "CLOSED")}
        ports = {name: int(url.rpartition(":")[2]) for name, url in urls.items()}
        there = BlockingConnection(urls["OPEN"])
        guest = BlockingConnection(urls["CLOSED"], virtual_host="guests")
        # A receiver of settled messages gives no outcome: nobody has to answer for it.
        for connection, address in ((there, "inbox"), (there, "orders"), (guest, "inbox")):
            connection.create_receiver(address, credit=100, options=[AtMostOnce()])
        yield Place(ports["OPEN"], "127.0.0.1"), Place(ports["CLOSED"], "127.0.0.1"), Place(ports["CLOSED"], "guests")


def documented() -> dict[str, tuple[str, ...]]:
    """The rows of the page."""
    section = PAGE.read_text(encoding="utf-8").partition("## What a stranger can do")[2].partition("\n## ")[0]
    return {found[0]: found[1:] for found in ROW.findall(section)}


@pytest.mark.parametrize(("what", "attempt"), ATTEMPTS, ids=[what for what, _ in ATTEMPTS])
def test_a_stranger_can_do_what_the_threat_model_says(what: str, attempt: object, places: tuple[Place, ...]) -> None:
    assert callable(attempt)
    assert tuple(attempt(place) for place in places) == documented()[what]


def test_the_threat_model_tells_of_every_attempt() -> None:
    rows = documented()
    assert [what for what in rows if what not in ("a stranger", "---")] == [what for what, _ in ATTEMPTS]
