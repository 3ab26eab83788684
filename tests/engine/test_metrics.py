"""Metrics: names that Prometheus' linter takes, labels that are bounded, values of real links, queries that fit."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from pathlib import Path

import attrs
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from mesh_config.models import AddressSettings, Treatment
from router import closed_connection_traffic
from router.core.ids_and_conditions import RouterId
from router.management.metrics import COUNTER, GROUPS, HISTOGRAM, SPECS, metrics_page, process_registry, reference_text
from router.mesh_presence import ExpectedMesh
from router.net.http_server import HttpCounters
from router.net.tcp_counters import TcpCounters
from router.runtime import Runtime
from router.views.metrics import MORE, MOST_PATTERNS, RuntimeMetrics
from router.views.problem_snapshots import ProblemScanner
from tests.helpers.engine import Bench
from tests.helpers.peer import message

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "examples" / "monitoring"
PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "up"}
PUT_ON_BY_PROMETHEUS = {"instance", "job", "le"}

Values = dict[str, dict[tuple[tuple[str, str], ...], float]]


def metrics_of(runtime: Runtime) -> RuntimeMetrics:
    return RuntimeMetrics(runtime, [], [], lambda: True, HttpCounters(), ProblemScanner(runtime, [], []).find_problems)


def page_of(source: RuntimeMetrics) -> str:
    return rest_of(metrics_page(source, process_registry()))


def rest_of(work: Generator[None, None, bytes]) -> str:
    while True:
        try:
            next(work)
        except StopIteration as done:
            return bytes(done.value).decode()


def values_of(source: Runtime | RuntimeMetrics) -> Values:
    return values_of_page(page_of(source if isinstance(source, RuntimeMetrics) else metrics_of(source)))


def values_of_page(page: str) -> Values:
    found: Values = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


# The table


def test_the_reference_is_the_one_made_from_the_table() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert page == reference_text(), "write it anew: python -m router.management.metrics docs/reference/metrics.md"


@pytest.mark.parametrize("name", SPECS)
def test_names_are_those_that_the_linter_of_prometheus_takes(name: str) -> None:
    # Source: `promtool check metrics`, whose rules these are.
    spec = SPECS[name]
    assert re.fullmatch("[a-z][a-z0-9_]*", spec.full_name)
    assert spec.full_name.endswith("_total") == (spec.kind == COUNTER)
    assert not re.search(
        "_(ms|millis|milliseconds|us|minutes|hours|kb|mb|percent|kilobytes|count|sum|bucket)(_|$)", name
    )
    assert not {"counter", "gauge", "histogram", "metric"} & set(name.split("_"))
    assert spec.doc.endswith((".", ")."))
    assert not any(re.search("[A-Z]", label) or label in PUT_ON_BY_PROMETHEUS for label in spec.labels)
    if spec.kind == HISTOGRAM:
        assert name.endswith("_seconds")


def test_a_metric_stands_in_one_group_alone() -> None:
    assert len(SPECS) == sum(map(len, GROUPS.values()))


# Values


def test_messages_credit_and_blocked_publishers_are_counted_by_pattern(bench: Bench) -> None:
    rpc = AddressSettings(prefix="rpc", treatment=Treatment.BALANCED)
    a, b = (bench.router(name, addresses=(rpc,)) for name in "AB")
    bench.join(a, b)
    bench.run()
    worker = bench.client(b).receiver("rpc/compute", credit=2)
    sender = bench.client(a).sender("rpc/compute")
    for _ in range(3):
        sender.send(message(1))
        bench.advance(0.01)
    worker.accepting()
    bench.advance(6.0)
    entered, left = values_of(a), values_of(b)
    pattern = ("pattern", "rpc")
    assert entered["amqp_mesh_messages_total"][("direction", "ingress"),] == 3
    assert entered["amqp_mesh_address_messages_total"][("direction", "ingress"), pattern] == 3
    assert left["amqp_mesh_address_messages_total"][("direction", "egress"), pattern] == 2
    assert entered["amqp_mesh_address_waiting_messages"][pattern,] == 1
    assert entered["amqp_mesh_address_oldest_wait_seconds"][pattern,] == pytest.approx(6.0, abs=0.1)
    assert entered["amqp_mesh_address_blocked_publishers"][pattern,] == 1
    assert entered["amqp_mesh_address_blocked_seconds"][pattern,] == pytest.approx(6.0, abs=0.1)
    assert left["amqp_mesh_address_subscribers_without_credit"][pattern,] == 1
    assert entered["amqp_mesh_outcomes_total"][("outcome", "accepted"),] == 2
    assert entered["amqp_mesh_settle_seconds_count"][pattern,] >= 1
    assert entered["amqp_mesh_neighbor_messages_total"][("direction", "out"), ("neighbor", "B")] == 2
    assert left["amqp_mesh_neighbor_messages_total"][("direction", "in"), ("neighbor", "A")] == 2
    assert entered["amqp_mesh_circuits"][("direction", "out"), ("neighbor", "B")] == 1
    assert entered["amqp_mesh_neighbor_up"][("neighbor", "B"),] == 1
    assert entered["amqp_mesh_routers_at_hops"][("hops", "1"),] == 1
    assert entered["amqp_mesh_convergence_seconds_count"][()] >= 1


def test_totals_never_fall_when_links_addresses_and_neighbors_go(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")
    wire = bench.join(a, b)
    bench.run()
    receiver, client = bench.client(b).receiver("topic", credit=10), bench.client(a)
    sender = client.sender("topic")
    sender.send(message(1))
    bench.run()
    receiver.accepting()
    bench.run()
    source = metrics_of(a)
    before = values_of(source)
    client.connection.close()
    receiver.link.close()
    bench.advance(1.0)
    wire.cut()
    bench.advance(70.0)
    after = values_of(source)
    assert "amqp_mesh_neighbor_up" in after
    assert after["amqp_mesh_neighbor_up"][("neighbor", "B"),] == 0
    assert after["amqp_mesh_neighbor_losses_total"][("neighbor", "B"),] == 1
    for spec in SPECS.values():
        if spec.kind == COUNTER:
            for labels, value in before.get(spec.full_name, {}).items():
                assert after[spec.full_name][labels] >= value, (spec.full_name, labels)


def test_groups_of_addresses_keep_their_names_when_a_reload_changes_the_patterns(bench: Bench) -> None:
    kept = AddressSettings(prefix="rpc", treatment=Treatment.BALANCED)
    router = bench.router("A", addresses=(kept,))
    source = metrics_of(router)

    def use(address: str) -> None:
        """Have one message to it accepted, and let the address go."""
        client = bench.client(router)
        client.receiver(address, credit=10).accepting()
        sent = client.sender(address).send(message(1))
        bench.advance(1.0)
        assert sent.outcome == "accepted"
        client.connection.close()
        bench.advance(1.0)

    for address in ("rpc/1", "jobs", "zz"):
        use(address)
    waits = bench.client(router)
    waits.receiver("rpc/2", credit=10)
    more = [AddressSettings(prefix=name, treatment=Treatment.BALANCED) for name in ("aa", "kk", "qq", "zz")]
    router.take_settings(attrs.evolve(router.settings, addresses=(*more, kept)))
    for address in ("rpc/1", "jobs", "zz"):
        use(address)
    router.take_settings(attrs.evolve(router.settings, addresses=(kept,)))
    for address in ("rpc/1", "jobs", "zz"):
        use(address)
    found = values_of(source)
    ingress = found["amqp_mesh_address_messages_total"]
    counts = {name: ingress[("direction", "ingress"), ("pattern", name)] for name in ("rpc", "(other)", "zz")}
    assert counts == {"rpc": 3, "(other)": 5, "zz": 1}
    timed = found["amqp_mesh_settle_seconds_count"]
    assert {name: timed[("pattern", name),] for name in counts} == counts
    assert found["amqp_mesh_addresses"][("pattern", "rpc"),] == 1


def test_of_a_neighbor_that_left_the_mesh_only_totals_go_on(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")

    def expect(*others: str) -> None:
        routers: dict[RouterId, str | None] = {RouterId(name): None for name in ("A", *others)}
        links = {(RouterId("A"), RouterId(name)): 1 for name in others}
        a.mesh_presence.expect(ExpectedMesh(name="mesh", routers=routers, links=links), a.clock())

    neighbor = (("neighbor", "B"),)
    expect("B")
    wire = bench.join(a, b)
    bench.advance(2.0)
    assert values_of(a)["amqp_mesh_neighbor_up"][neighbor] == 1
    wire.cut()
    bench.advance(70.0)
    assert values_of(a)["amqp_mesh_neighbor_up"][neighbor] == 0
    expect()
    found = values_of(a)
    assert neighbor not in found.get("amqp_mesh_neighbor_up", {})
    assert found["amqp_mesh_neighbor_losses_total"][neighbor] == 1


def test_neighbors_that_are_counted_together_are_up_while_one_of_them_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed_connection_traffic, "MOST_NEIGHBORS", 1)
    a, b, c, d = (bench.router(name) for name in "ABCD")
    wires = [bench.join(a, other) for other in (b, c, d)]
    bench.advance(2.0)
    others = (("neighbor", "(others)"),)
    for wire, is_up in zip(wires[1:], (1, None), strict=True):
        assert values_of(a)["amqp_mesh_neighbor_up"][others] == 1
        wire.cut()
        bench.advance(70.0)
        assert values_of(a)["amqp_mesh_neighbor_up"].get(others) == is_up


def test_bytes_never_fall_when_a_connection_ends_while_the_page_is_made(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")
    wire = bench.join(a, b)
    client = bench.client(a)
    client.receiver("topic", credit=1)
    bench.advance(2.0)
    a.octets.update(dict.fromkeys(a.octets, lambda: TcpCounters(received=1000, sent=500, round_trip_us=None)))
    source = metrics_of(a)
    before = values_of(source)
    work = metrics_page(source, process_registry())
    next(work)
    client.connection.close()
    wire.cut()
    bench.run()
    assert not a.connections
    for after in (values_of_page(rest_of(work)), values_of(source)):
        assert after["amqp_mesh_client_bytes_total"] == before["amqp_mesh_client_bytes_total"]
        assert after["amqp_mesh_neighbor_bytes_total"] == before["amqp_mesh_neighbor_bytes_total"]
    assert before["amqp_mesh_client_bytes_total"][("direction", "in"),] == 1000


def test_settled_messages_that_nobody_takes_are_dropped_by_reason(bench: Bench) -> None:
    a = bench.router("A")
    sender = bench.client(a).sender(None)
    sender.send(message(1, address="nobody"), settled=True)
    bench.run()
    assert values_of(a)["amqp_mesh_dropped_messages_total"][("reason", "undeliverable"),] == 1


def test_labels_are_bounded_whatever_clients_and_settings_name(bench: Bench) -> None:
    many = tuple(AddressSettings(prefix=f"p{number:03}") for number in range(MOST_PATTERNS + 20))
    a = bench.router("A", addresses=many)
    client = bench.client(a)
    for number in range(MOST_PATTERNS + 20):
        client.receiver(f"p{number:03}/x", credit=1)
        client.receiver(f"free.{number}", credit=1)
    bench.run()
    values = values_of(a)["amqp_mesh_address_subscribers"]
    assert len(values) <= MOST_PATTERNS + 4
    assert values[("pattern", "(other)"),] == MOST_PATTERNS + 20
    assert values[("pattern", MORE),] > 0
    assert sum(values.values()) == 2 * (MOST_PATTERNS + 20)


# What watches them


def alert_queries() -> Iterator[tuple[str, str]]:
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]


def dashboard_queries() -> Iterator[tuple[str, str]]:
    board = json.loads((MONITORING / "grafana-dashboard.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


QUERIES = [
    pytest.param(query, id=f"{name}-{at}") for at, (name, query) in enumerate((*alert_queries(), *dashboard_queries()))
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_name_metrics_labels_and_values_that_there_are(query: str) -> None:
    series = {f"{spec.full_name}{end}": spec for spec in SPECS.values() for end in _ends(spec.kind)}
    names = set(re.findall(r"\b(?:amqp_mesh|process)_\w+|\bup\b", query))
    assert names
    assert names <= series.keys() | PROCESS
    labels = {label for name in names if name in series for label in series[name].labels} | PUT_ON_BY_PROMETHEUS
    used = {word for words in re.findall(r"(?:by|without) \(([\w, ]+)\)", query) for word in words.split(", ")}
    used |= set(re.findall(r"(\w+)=~?\"", query))
    assert used <= labels


def _ends(kind: str) -> tuple[str, ...]:
    return ("_bucket", "_count", "_sum") if kind == HISTOGRAM else ("",)


@pytest.mark.parametrize("name", [name for name, _ in alert_queries()])
def test_an_alert_says_in_a_sentence_what_is_wrong_and_where_to_look(name: str) -> None:
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    (rule,) = (rule for rule in rules if rule["alert"] == name)
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["command"]
    assert rule["labels"]["severity"] in ("critical", "warning")
