"""Alert rules of examples/monitoring, played by promtool: what fires, when, and what it says."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.helpers.alert_rules import RULES, alerts_by_kind, rules


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


def test_promtool_finds_no_fault_in_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "alert"), alerts_by_kind().items())
def test_a_problem_that_stays_has_an_alert_as_long_as_it_stays(kind: str, alert: str, tmp_path: Path) -> None:
    series = {f'amqp_mesh_problems{{instance="a:1",job="amqp-mesh",kind="{kind}"}}': "1x1000"}
    labels = ['instance="a:1"', f'kind="{kind}"']
    if not rules()[alert]["expr"].startswith("sum by"):
        labels.append('job="amqp-mesh"')
    at = "80m" if alert == "RouterDrained" else "20m"
    assert play(tmp_path, series, firing(alert, at, labels)) == ""


def test_a_dead_router_has_its_alert_after_its_link_state_is_forgotten(tmp_path: Path) -> None:
    # Twelve values: after a minute nobody knows its link state.
    series = {
        'amqp_mesh_routers_unreachable{instance="a:1",job="amqp-mesh"}': "1x12 0x300",
        'amqp_mesh_problems{instance="a:1",job="amqp-mesh",kind="router-absent"}': "1x312",
    }
    labels = ['instance="a:1"', 'job="amqp-mesh"', 'kind="router-absent"']
    for at in ("40s", "2m", "20m"):
        assert play(tmp_path, series, firing("RouterAbsent", at, labels)) == ""


def test_routers_that_live_and_miss_each_other_are_a_partition_a_dead_one_is_none(tmp_path: Path) -> None:
    # The mesh is cut for two minutes: c on one side. Later c dies.
    series = {
        'up{instance="a:1",job="amqp-mesh"}': "1x120",
        'up{instance="b:1",job="amqp-mesh"}': "1x120",
        'up{instance="c:1",job="amqp-mesh"}': "1x60 0x60",
        'amqp_mesh_routers_reachable{instance="a:1",job="amqp-mesh"}': "2x10 1x24 2x25 1x60",
        'amqp_mesh_routers_reachable{instance="b:1",job="amqp-mesh"}': "2x10 1x24 2x25 1x60",
        'amqp_mesh_routers_reachable{instance="c:1",job="amqp-mesh"}': "2x10 0x24 2x25 _x60",
    }
    alert = 'ALERTS{alertname="MeshPartitioned",alertstate="firing"}'
    for at, count in (("45s", 0), ("2m", 3), ("4m", 0), ("8m", 0)):
        samples = [{"labels": "{}", "value": count}] if count else []
        played = {"promql_expr_test": [{"expr": f"count({alert})", "eval_time": at, "exp_samples": samples}]}
        assert play(tmp_path, series, played) == ""


def test_a_partition_is_told_of_its_own_mesh_only(tmp_path: Path) -> None:
    # The mesh of three is cut for two minutes; the smaller one, with a job of its own, is sound.
    cut = {"a:1": "2x10 1x24 2x85", "b:1": "2x10 1x24 2x85", "c:1": "2x10 0x24 2x85"}
    series = {
        **{f'up{{instance="{router}",job="amqp-mesh"}}': "1x120" for router in cut},
        **{f'amqp_mesh_routers_reachable{{instance="{router}",job="amqp-mesh"}}': told for router, told in cut.items()},
        **{f'up{{instance="{router}",job="smaller"}}': "1x120" for router in ("d:1", "e:1")},
        **{f'amqp_mesh_routers_reachable{{instance="{router}",job="smaller"}}': "1x120" for router in ("d:1", "e:1")},
    }
    alert = 'ALERTS{alertname="MeshPartitioned",alertstate="firing"}'
    for at, count in (("45s", 0), ("2m", 3), ("4m", 0)):
        samples = [{"labels": '{job="amqp-mesh"}', "value": count}] if count else []
        played = {"promql_expr_test": [{"expr": f"count by (job) ({alert})", "eval_time": at, "exp_samples": samples}]}
        assert play(tmp_path, series, played) == ""


def test_a_link_that_was_lost_twice_has_its_alert_as_long_as_it_is_a_problem(tmp_path: Path) -> None:
    series = {
        'amqp_mesh_neighbor_losses_total{instance="a:1",job="amqp-mesh",neighbor="B"}': "0x5 1x5 2x180",
        'amqp_mesh_neighbor_up{instance="a:1",job="amqp-mesh",neighbor="B"}': "1x200",
        'amqp_mesh_problems{instance="a:1",job="amqp-mesh",kind="flapping"}': "0x12 1x54 0x120",
    }
    labels = ['instance="a:1"', 'job="amqp-mesh"', 'kind="flapping"']
    for at in ("70s", "3m", "5m"):
        assert play(tmp_path, series, firing("LinkFlaps", at, labels)) == ""
    over = {"alert_rule_test": [{"eval_time": "8m", "alertname": "LinkFlaps", "exp_alerts": []}]}
    assert play(tmp_path, series, over) == ""
