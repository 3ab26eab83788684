"""The index of how-to pages has each page once, and what a host needs is computed of what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import router
from mesh_config.models import ForwardingSettings

ROOT = Path(__file__).parent.parent
HOW_TO = ROOT / "docs" / "how_to"
SIZES = (HOW_TO / "size-a-host.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "explanation" / "measurements.md").read_text(encoding="utf-8")
UNIT = Path(router.__file__).parent / "deployment" / "amqp-mesh@.service"
KB, MB, MIB, GIB = 1e3, 1e6, 2**20, 2**30
CLIENTS = 2000


def test_the_index_has_each_page_once_and_says_what_is_there() -> None:
    index = (HOW_TO / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^- \[[^]]+\]\(([\w-]+\.md)\)(.*)$", index, re.MULTILINE)
    assert sorted(page for page, _ in rows) == sorted(
        path.name for path in HOW_TO.glob("*.md") if path.name != "index.md"
    )
    assert [page for page, said in rows if not said.strip(" :.") and page != "when-a-router-dies.md"] == []


@pytest.mark.parametrize(
    ("kind", "shown", "measured"),
    [
        ("a client's connection", "41 kB", "client connections, a subscriber each | 41.2 kB"),
        ("each further link", "6 kB", "links on 20 connections | 6.1 kB"),
        ("each address that is subscribed here", "4.5 kB", "addresses subscribed at R1 | 4.5 kB"),
        ("each address that is subscribed at other", "0.9 kB", "the same addresses, known at R2 | 0.9 kB"),
        ("each [circuit]", "17 kB", "circuits from R2 to R1, with their clients | 16.7 kB at R1"),
    ],
)
def test_the_memory_of_each_thing_is_what_was_measured(kind: str, shown: str, measured: str) -> None:
    (row,) = [line for line in SIZES.splitlines() if line.startswith(f"| {kind}")]
    assert row.endswith(f"| {shown} |")
    assert measured in MEASURED


def test_the_example_of_two_thousand_clients_follows_from_the_formula() -> None:
    base = 70 * MB + CLIENTS * (41 + 3 * 6 + 4.5 + 17) * KB
    mark = ForwardingSettings().process_bytes

    def worst(process_bytes: float) -> str:
        return f"{(base + 3 * (1.75 * process_bytes + CLIENTS * 192 * 1024)) / GIB:.1f} GiB"

    assert mark == GIB
    assert f"= {base / MB:.0f} MB\n" in SIZES
    own, hostile, lower = re.findall(r"= ([\d.]+ GiB)$", SIZES, re.MULTILINE)
    assert own == f"{(base + 2 * mark) / GIB:.1f} GiB"
    assert hostile == worst(mark)
    (set_lower,) = re.findall(r"process_bytes: (\d+)", SIZES)
    assert int(set_lower) == 400 * MIB
    assert lower == worst(int(set_lower))
    # The limit of the service is enough for own programs, and for strangers with the lower mark.
    (limit,) = re.findall(r"^MemoryMax=(\d+)G$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    assert f"{limit} GiB" in SIZES
    assert float(own.split()[0]) < int(limit)
    assert float(lower.split()[0]) < int(limit)
