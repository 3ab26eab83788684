"""The page about credit says what the machine does, and names tests that exist."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mesh_config.models import ForwardingSettings
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.dataplane.controller_context import RETIRED_S, RETRY_S
from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "explanation" / "credit.md").read_text(encoding="utf-8")


def load(name: str) -> ModuleType:
    """A program of docs/, which is no package's."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # attrs looks there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load("credit_example")


def test_the_tables_of_states_of_the_page_are_those_of_the_machine() -> None:
    pages = load("generate")
    made = PAGE.partition(pages.BEGIN_STATES)[2].partition(pages.END_STATES)[0]
    assert made.strip() == pages.credit_states().strip(), "run docs/generate.py"


def test_the_example_of_the_page_is_what_the_machine_does(example: ModuleType) -> None:
    made = PAGE.partition(example.BEGIN)[2].partition(example.END)[0]
    assert made.strip() == example.block().strip(), "run docs/credit_example.py, then read what it has written"


def test_in_the_example_no_message_waits_in_the_core_and_the_sum_is_within_the_most(example: ModuleType) -> None:
    for _, _, _, now in example.play():
        assert now["core"] == 0
        assert now["used"] <= now["allowed"]


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs" / "pictures").glob("credit-*.svg")), ids=lambda path: path.stem
)
def test_the_numbers_of_its_pictures_are_those_of_the_example(picture: Path, example: ModuleType) -> None:
    steps = [now for _, _, _, now in example.play()]
    marked = re.findall(r'data-step="(\d+)" data-value="(\w+)">(\d+)<', picture.read_text(encoding="utf-8"))
    assert all(steps[int(step) - 1][word] == int(number) for step, word, number in marked), marked
    assert f"pictures/{picture.name})" in PAGE


def test_the_picture_of_a_pool_has_numbers_of_the_example() -> None:
    assert 'data-value="b"' in (ROOT / "docs" / "pictures" / "credit-pool.svg").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist() -> None:
    folders = ("core", "engine")
    paths = [path for folder in folders for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    sources = "".join(path.read_text(encoding="utf-8") for path in paths)
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert len(set(named)) == len(named) > 0
    assert [name for name in named if f"def {name}(" not in sources] == []


def test_the_times_of_the_page_are_those_of_the_machine() -> None:
    timing, patience, settings = CreditTiming(), ExclusionTiming(), ForwardingSettings()
    units = {"ms": 0.001, "s": 1.0}
    table = PAGE.partition("## The times")[2]
    rows = re.findall(r"\| +(?:`(\w+)`)? *\| ([\d.]+) (ms|s) \|$", table, re.MULTILINE)
    assert [float(number) * units[unit] for _, number, unit in rows] == pytest.approx(
        [
            timing.busy_s,
            timing.idle_s,
            timing.debt_s,
            timing.quarantine_s,
            timing.linger_s,
            timing.drain_bound_s,
            patience.grace_s,
            patience.first_pause_s,
            patience.longest_pause_s,
            settings.circuit_idle_s,
            RETRY_S,
            RETIRED_S,
            settings.waiting_s,
        ]
    )
    for name, number, unit in rows:
        assert not name or getattr(settings, name) == pytest.approx(float(number) * units[unit])


def test_the_credit_to_grant_is_rate_times_round_trip() -> None:
    head = re.search(r"^\| round trip \|(.+)\|$", PAGE, re.MULTILINE)
    assert head is not None
    rates = [int(rate.replace(",", "")) for rate in re.findall(r"([\d,]+) messages/s", head[1])]
    rows = re.findall(r"^\| ([\d.]+) ms \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 5
    for round_trip, *wanted in rows:
        needed = [max(1, round(rate * float(round_trip) / 1000)) for rate in rates]
        assert [int(credit.replace(",", "")) for credit in wanted] == needed


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_one_publisher_reaches_the_part_of_credit_by_round_trip_that_the_page_says(hops: int) -> None:
    credit, wire_s, client_s, duration_s = 100, 0.0005, 0.0002, 0.5
    mesh = AnycastMesh([("A", "B"), ("B", "C")], delay_s=wire_s, jitter_s=0.0, client_delay_s=client_s, news_s=0.0)
    subscriber = mesh.add_subscriber("C", credit=credit, top_up=GrantHabit.HALF)
    mesh.add_publisher("CBA"[hops]).offer(10**9)
    mesh.run_for(0.3)
    before = len(subscriber.received)
    mesh.run_for(duration_s)
    rate = (len(subscriber.received) - before) / duration_s
    round_trip_s = 2 * (hops * wire_s + 2 * client_s * 1.125)  # a client's wire takes up to a quarter more, by chance
    said = re.search(r"a single publisher reaches (\d+) to (\d+) %", PAGE)
    assert said is not None
    assert int(said[1]) <= round(100 * rate * round_trip_s / credit) <= int(said[2])
