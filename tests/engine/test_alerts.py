"""Alert rules of examples/monitoring: each kind of problem has one, and texts have whole numbers.

`tests/measure/alerts` plays them by promtool.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from router.core.forwarding.duration_histogram import BOUNDS_S
from router.management.problem_kinds import NOTICES, PROBLEM_KINDS
from tests.helpers.alert_rules import alerts_by_kind, rules

PAGE: Final = Path(__file__).parents[2] / "docs" / "how_to" / "alert-on-a-partition.md"
OTHERWISE: Final = {
    "publishers-blocked": ("PublishersBlocked", "names the pattern, and has a time of its own"),
    "memory": ("MemoryMarkNear", "comes before clients have to wait; ConnectionsAboveMark when they do"),
    "dropped": ("MessagesDropped", "has the reason and the number"),
}
"""Kinds of problems that need no alert by kind: the alert that has a better metric, and why it is better."""


def test_each_kind_of_problem_has_an_alert_or_a_reason_why_not() -> None:
    by_kind = alerts_by_kind()
    assert sorted([*by_kind, *OTHERWISE, *NOTICES]) == sorted(PROBLEM_KINDS)
    assert {name for name, _ in OTHERWISE.values()} <= rules().keys()


def test_a_rule_that_names_a_job_compares_with_no_other() -> None:
    # With a job for each mesh, the sum of one would be compared with routers of all.
    named = {name: rule["expr"] for name, rule in rules().items() if "job=" in rule["expr"]}
    assert {"RouterGone", "MeshPartitioned"} == named.keys()
    for expression in named.values():
        metrics = re.findall(r"\b(?:up|amqp_mesh_\w+)\b(\S*)", expression)
        assert metrics
        assert all(selected.startswith('{job="amqp-mesh"}') for selected in metrics)


def test_the_page_has_the_rule_of_a_partition_and_names_those_with_a_job() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (shown,) = yaml.safe_load(block)
    rule = rules()["MeshPartitioned"]
    assert shown == {key: value for key, value in rule.items() if key != "annotations"}
    assert "the rules that name a job, `RouterGone` and this one" in text


@pytest.mark.parametrize("name", rules())
def test_texts_have_numbers_that_a_person_would_write(name: str) -> None:
    # `increase` extrapolates: of one lost link it makes 1.034.
    rule = rules()[name]
    summary = rule["annotations"]["summary"]
    assert "{{ $value }}" not in summary
    assert not re.search(r"\$value \}\} [a-z]", summary), "a noun after a number is wrong for 1, or for 2"
    if "increase(" in rule["expr"]:
        assert '{{ printf "%.0f" $value }}' in summary


@pytest.mark.parametrize("name", [name for name, rule in rules().items() if "histogram_quantile" in rule["expr"]])
def test_texts_of_histograms_tell_only_a_bound_of_a_class(name: str) -> None:
    # What is computed of a class lies anywhere in it: 59 s where everything took 30.
    rule = rules()[name]
    bound = rule["expr"].rpartition("> ")[2]
    assert float(bound) in BOUNDS_S
    assert f"after more than {bound} s." in rule["annotations"]["summary"]
    assert "$value" not in rule["annotations"]["summary"]
