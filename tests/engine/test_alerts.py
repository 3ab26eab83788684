"""Alert rules of examples/monitoring: each kind of problem has one, texts have whole numbers; promtool plays them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from router.core.forwarding.duration_histogram import BOUNDS_S
from router.management.snapshot import NOTICES, PROBLEM_KINDS

RULES = Path(__file__).parents[2] / "examples" / "monitoring" / "alerts.yaml"

OTHERWISE: Final = {
    "publishers-blocked": ("PublishersBlocked", "names the pattern, and has a time of its own"),
    "memory": ("MemoryMarkNear", "comes before clients have to wait; ConnectionsAboveMark when they do"),
    "dropped": ("MessagesDropped", "has the reason and the number"),
    "flapping": ("LinkFlaps", "each end of a link counts its losses, also when a router comes and goes"),
}
"""Kinds of problems that need no alert by kind: the alert that has a better metric, and why it is better."""

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")


def rules() -> dict[str, dict[str, Any]]:
    found = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    return {rule["alert"]: rule for rule in found}


def alerts_by_kind() -> dict[str, str]:
    """The alert of each kind of problem that a rule names."""
    found: dict[str, str] = {}
    for name, rule in rules().items():
        for kinds in re.findall(r'amqp_mesh_problems\{kind=~?"([^"]*)"\}', rule["expr"]):
            for kind in kinds.split("|"):
                assert kind not in found, f"{kind}: {found[kind]} and {name}"
                found[kind] = name
    return found


def play(folder: Path, series: Mapping[str, str], tests: Mapping[str, object]) -> str:
    """What promtool says against the rules with these series, one value every five seconds; empty: nothing."""
    page = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "5s",
        "tests": [
            {
                "interval": "5s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                **tests,
            }
        ],
    }
    path = folder / "played.yml"
    path.write_text(yaml.safe_dump(page), encoding="utf-8")
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr if done.returncode else ""


def firing(alert: str, at: str, labels: Sequence[str]) -> dict[str, object]:
    """Expect one firing alert with these labels beside its own."""
    severity = rules()[alert]["labels"]["severity"]
    expected = ",".join((f'alertname="{alert}"', 'alertstate="firing"', f'severity="{severity}"', *labels))
    return {
        "promql_expr_test": [
            {
                "expr": f'ALERTS{{alertname="{alert}",alertstate="firing"}}',
                "eval_time": at,
                "exp_samples": [{"labels": f"ALERTS{{{expected}}}", "value": 1}],
            }
        ]
    }


def test_each_kind_of_problem_has_an_alert_or_a_reason_why_not() -> None:
    by_kind = alerts_by_kind()
    assert sorted([*by_kind, *OTHERWISE, *NOTICES]) == sorted(PROBLEM_KINDS)
    assert {name for name, _ in OTHERWISE.values()} <= rules().keys()


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


@needs_promtool
def test_promtool_finds_no_fault_in_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize(("kind", "alert"), alerts_by_kind().items())
def test_a_problem_that_stays_has_an_alert_as_long_as_it_stays(kind: str, alert: str, tmp_path: Path) -> None:
    series = {f'amqp_mesh_problems{{instance="a:1",job="amqp-mesh",kind="{kind}"}}': "1x1000"}
    labels = ['instance="a:1"', f'kind="{kind}"']
    if not rules()[alert]["expr"].startswith("sum by"):
        labels.append('job="amqp-mesh"')
    at = "80m" if alert == "RouterDrained" else "20m"
    assert play(tmp_path, series, firing(alert, at, labels)) == ""


@needs_promtool
def test_a_dead_router_has_its_alert_after_its_link_state_is_forgotten(tmp_path: Path) -> None:
    # Twelve values: after a minute nobody knows its link state.
    series = {
        'amqp_mesh_routers_unreachable{instance="a:1",job="amqp-mesh"}': "1x12 0x300",
        'amqp_mesh_problems{instance="a:1",job="amqp-mesh",kind="router-absent"}': "1x312",
    }
    labels = ['instance="a:1"', 'job="amqp-mesh"', 'kind="router-absent"']
    for at in ("40s", "2m", "20m"):
        assert play(tmp_path, series, firing("RouterAbsent", at, labels)) == ""


@needs_promtool
def test_three_losses_of_a_link_are_told_as_three(tmp_path: Path) -> None:
    series = {
        'amqp_mesh_neighbor_losses_total{instance="a:1",job="amqp-mesh",neighbor="B"}': "0x60 1x5 2x5 3x40",
    }
    labels = {"instance": "a:1", "job": "amqp-mesh", "neighbor": "B", "severity": "warning"}
    annotations = {
        "summary": "Losses within ten minutes of the link from a:1 to B: 3.",
        "command": "amqp-mesh stat connections --router with the id of that router",
    }
    alert = {"exp_labels": labels, "exp_annotations": annotations}
    expected = {"alert_rule_test": [{"eval_time": "8m", "alertname": "LinkFlaps", "exp_alerts": [alert]}]}
    assert play(tmp_path, series, expected) == ""
