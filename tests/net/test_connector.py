"""Connectors: one connection, again and again, until they are stopped."""

from __future__ import annotations

import itertools
import random
import socket
from typing import NoReturn

import attrs
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

        async def serve(sock: socket.socket, served: Connector) -> str:
            taken.append(served)
            sock.close()
            if where == "serving":
                connector.stop()
                await trio.sleep(100)  # what is there goes on
                is_over.set()
            return ""

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


async def test_what_failed_is_told_once_for_each_reason_and_again_after_success(autojump_clock: object) -> None:
    reasons = iter(["wrong listener", "wrong listener", "gone", "", "gone"])
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        connector = Connector(ConnectorSettings(host="127.0.0.1", port=server.getsockname()[1]), random.Random(1))

        async def serve(sock: socket.socket, served: Connector) -> str:
            sock.close()
            reason = next(reasons, None)
            if reason is None:
                assert served.status == "connected"
                connector.stop()
            return reason or ""

        with trio.fail_after(10_000):
            await connector.run(serve, lambda failed: told.append(failed.message))
    assert told == ["wrong listener", "gone", "gone"]


async def test_other_pauses_cut_a_longer_one_short(autojump_clock: object) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        slow = ConnectorSettings(host="127.0.0.1", port=port, reconnect_initial_s=1000.0, reconnect_max_s=3600.0)
        connector = Connector(slow, random.Random(1))
        attempts: list[float] = []

        async def serve(sock: socket.socket, served: Connector) -> str:
            sock.close()
            attempts.append(trio.current_time())
            return "of no use"

        with trio.fail_after(10_000):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(connector.run, serve, lambda failed: None)
                await trio.sleep(10)
                assert len(attempts) == 1
                connector.repace(attrs.evolve(slow, reconnect_initial_s=0.5, reconnect_max_s=2.0))
                await trio.sleep(20)
                connector.stop()
    assert attempts[1] - attempts[0] <= 12.0
    assert max(later - before for before, later in itertools.pairwise(attempts[1:])) <= 2.1


class NoNames(trio.abc.HostnameResolver):
    """Name servers that know no host."""

    async def getaddrinfo(self, host: object, *_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def getnameinfo(self, sockaddr: object, flags: int) -> NoReturn:
        raise NotImplementedError


async def test_a_host_that_is_not_known_is_named() -> None:
    trio.socket.set_custom_hostname_resolver(NoNames())
    connector = Connector(ConnectorSettings(host="nosuch.invalid"), random.Random(1))

    async def serve(sock: socket.socket, served: Connector) -> str:
        raise AssertionError("nobody is there")

    def stop(failed: Connector) -> None:
        failed.stop()

    with trio.fail_after(30):
        await connector.run(serve, stop)
    assert connector.message == "the host nosuch.invalid is not known"
