"""State of a connector whose other end is no neighbor, though its connection is there."""

from __future__ import annotations

import random

from prometheus_client import CollectorRegistry

from mesh_config.models import ConnectorSettings
from router.management.metrics import metrics_page
from router.management.snapshot import ConnectorRow
from router.net.connector import Connector
from router.net.http_server import HttpCounters
from router.views.metrics import RuntimeMetrics
from router.views.problem_snapshots import ProblemScanner
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench


def test_a_connector_that_finds_another_dialect_has_failed_until_a_neighbor_speaks() -> None:
    bench = Bench()
    a, b = (bench.router(name) for name in "AB")
    bench.join(a, b)
    (connection,) = (each for each in a.connections.values() if not each.is_server)
    connector = Connector(ConnectorSettings(port=5671), random.Random(0))
    settings = connector.settings
    connection.take_settings(settings)
    connector.status = "connected"
    view = RuntimeView(a, [], [connector])

    def state() -> tuple[str, str]:
        (row,) = view.rows(ConnectorRow)
        assert isinstance(row, ConnectorRow)
        return row.connection_status, row.connection_msg

    # Two that are called alike are one series, or Prometheus would refuse them all.
    alike = [connector, Connector(settings, random.Random(0))]
    metrics = RuntimeMetrics(a, [], alike, lambda: True, HttpCounters(), ProblemScanner(a, [], []).find_problems)

    def metric() -> str:
        work = metrics_page(metrics, CollectorRegistry())
        while True:
            try:
                next(work)
            except StopIteration as done:
                lines = bytes(done.value).decode().splitlines()
                (line,) = (line for line in lines if line.startswith("amqp_mesh_connector_up{"))
                return line.rpartition(" ")[2]

    assert state() == ("CONNECTING", "the other side has not said yet that it is a neighbor")
    assert float(metric()) == 0
    a.mesh_presence.connector_not_understood(settings.effective_name, "no HELLO")
    assert state() == ("FAILED", "what the other side says can't be read: no HELLO")
    a.mesh_presence.connector_up(settings.effective_name, a.clock())
    assert state() == ("SUCCESS", "")
    assert float(metric()) == 1
