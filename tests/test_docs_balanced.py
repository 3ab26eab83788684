"""The page about balanced addresses says what the code does, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mesh_config.models import ForwardingSettings
from router.core.forwarding.egress_load import HINT_S, RENEW_S, TELL_S
from router.core.forwarding.pool_toward_egress import WANTED_S
from router.dataplane.anycast_controller import LOOKED_AT
from tests.measure.credit import expected_wait

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "explanation" / "balanced.md").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist() -> None:
    sources = "".join((ROOT / "tests" / ring / "test_balanced.py").read_text() for ring in ("core", "engine"))
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert named
    assert [name for name in named if f"def {name}(" not in sources] == []


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    text = " ".join(PAGE.split())
    assert f"kept ready for {WANTED_S:g} s" in text
    assert f"than each {TELL_S * 1000:g} ms, and again after {RENEW_S:g} s" in text
    assert f"forgotten after {HINT_S:g} s" in text
    assert f"the fewest of the next {LOOKED_AT} in turn" in text
    assert f"path's cost is worth: {ForwardingSettings().distance_messages:g} messages" in text


def test_the_table_of_the_model_is_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    expected_wait.main()
    assert capsys.readouterr().out in PAGE
