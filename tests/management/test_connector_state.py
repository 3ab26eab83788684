"""State of a connector whose other end is no neighbor, though its connection is there."""

from __future__ import annotations

import random

from mesh_config.models import ConnectorSettings
from router.management.snapshot import ConnectorRow
from router.net.connector import Connector
from router.peer_event_handler import connector_name
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench


def test_a_connector_that_finds_another_dialect_has_failed_until_a_neighbor_speaks() -> None:
    bench = Bench()
    a, b = (bench.router(name) for name in "AB")
    bench.join(a, b)
    (connection,) = (each for each in a.connections.values() if not each.is_server)
    settings = connection.settings = ConnectorSettings(port=5671)
    connector = Connector(settings, random.Random(0))
    connector.status = "connected"
    view = RuntimeView(a, [], [connector])

    def state() -> tuple[str, str]:
        (row,) = view.rows(ConnectorRow)
        assert isinstance(row, ConnectorRow)
        return row.connection_status, row.connection_msg

    assert state() == ("CONNECTING", "the other side has not said yet that it is a neighbor")
    a.mesh_presence.connector_not_understood(connector_name(settings), "no HELLO")
    assert state() == ("FAILED", "what the other side says can't be read: no HELLO")
    a.mesh_presence.connector_up(connector_name(settings), a.clock())
    assert state() == ("SUCCESS", "")
