"""Connectors: one connection, again and again, until they are stopped."""

from __future__ import annotations

import random
import socket

import pytest
import trio

from mesh_config.models import ConnectorSettings
from router.net.connector import Connector


@pytest.mark.parametrize("where", ["serving", "pausing", "dialling"])
async def test_a_connector_that_is_stopped_connects_no_more(where: str, autojump_clock: object) -> None:
    taken: list[Connector] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        if where == "dialling":
            server.close()  # it fails, and tries again and again
        host, port = ("127.0.0.1", server.getsockname()[1]) if where != "dialling" else ("127.0.0.1", 1)
        connector = Connector(ConnectorSettings(host=host, port=port), random.Random(1))
        is_over = trio.Event()

        async def serve(sock: socket.socket, served: Connector) -> None:
            taken.append(served)
            sock.close()
            if where == "serving":
                connector.stop()
                await trio.sleep(100)  # what is there goes on
                is_over.set()

        with trio.fail_after(10_000):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connector.run, serve, lambda failed: None)
                if where != "serving":
                    await trio.sleep(200)
                    connector.stop()
    assert is_over.is_set() == (where == "serving")
    count = len(taken)
    await trio.sleep(1000)
    assert len(taken) == count
    assert (count == 0) == (where == "dialling")
