"""A router that is at the limit of its open files goes on with its neighbors, and says what is the matter."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from mesh_config.generators import generate
from mesh_config.models import HttpSettings, MeshSettings
from tests.helpers.processes import COMMAND, MeshProcesses, ReservedPort, wait_until

pytestmark = pytest.mark.interop

FILES = 80
RESERVED = 24
FEW_FILES = ("sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh", *COMMAND)
WAIT_S = 30


@contextmanager
def mesh(tmp_path: Path, http: HttpSettings | None = None, **listener: float) -> Iterator[MeshProcesses]:
    """R1 listens, R2 dials; both may open few files. R1 has *http*."""
    routers = {
        key: attrs.evolve(
            router,
            reserved_files=RESERVED,
            http=http if http is not None and key == "R1" else router.http,
            listeners=tuple(attrs.evolve(each, **listener) for each in router.listeners),
        )
        for key, router in generate("line", 2).routers.items()
    }
    with MeshProcesses(MeshSettings(routers=routers), tmp_path, command=FEW_FILES) as processes:
        processes.start()
        wait_until(lambda: joined(processes), "they are neighbors", WAIT_S)
        yield processes


def joined(processes: MeshProcesses) -> bool:
    return processes.reachable("R1") == {"R2"} and processes.reachable("R2") == {"R1"}


@contextmanager
def crowd(url: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    host, _, port = url.removeprefix("amqp://").partition(":")
    sockets = [socket.create_connection((host, int(port))) for _ in range(count)]
    try:
        yield sockets
    finally:
        for sock in sockets:
            sock.close()


def test_clients_that_take_all_descriptors_keep_no_neighbor_away(tmp_path: Path) -> None:
    with mesh(tmp_path) as processes, crowd(processes.url("R1"), 2 * FILES):
        short = processes["R1"].wait_log("files_short")
        assert (short.level, short.fields["files"], short.fields["max_files"]) == (
            "warning",
            str(FILES - RESERVED),
            str(FILES),
        )
        processes.kill("R2")
        wait_until(lambda: processes.reachable("R1") == set(), "R2 is gone", WAIT_S)
        processes.start("R2")
        wait_until(lambda: joined(processes), "R2 is back", WAIT_S)


def test_clients_that_take_all_descriptors_keep_no_connector_from_dialling(tmp_path: Path) -> None:
    with mesh(tmp_path) as processes, crowd(processes.url("R2"), 2 * FILES):
        processes["R2"].wait_log("files_short")
        processes.kill("R1")
        wait_until(lambda: processes.reachable("R2") == set(), "R1 is gone", WAIT_S)
        processes.start("R1")
        wait_until(lambda: joined(processes), "R2 has dialled again", WAIT_S)


def test_who_asks_by_http_takes_no_descriptor_of_routers(tmp_path: Path) -> None:
    port = ReservedPort()
    with mesh(tmp_path, HttpSettings(port=port.number)) as processes, crowd(processes.url("R1"), 2 * FILES):
        processes["R1"].wait_log("files_short")
        with crowd(f"amqp://127.0.0.1:{port.number}", FILES):
            processes.kill("R2")
            wait_until(lambda: processes.reachable("R1") == set(), "R2 is gone", WAIT_S)
            processes.start("R2")
            wait_until(lambda: joined(processes), "R2 is back", WAIT_S)
            with socket.create_connection(("127.0.0.1", port.number), WAIT_S) as client:
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    port.close()


def test_clients_come_in_again_when_the_crowd_is_gone(tmp_path: Path) -> None:
    with mesh(tmp_path) as processes:
        with crowd(processes.url("R1"), 2 * FILES):
            processes["R1"].wait_log("files_short")
        processes.wait_converged(WAIT_S)


def test_peers_that_say_nothing_keep_no_client_and_no_router_away(tmp_path: Path) -> None:
    with mesh(tmp_path, max_handshakes=8, handshake_timeout_s=3600) as processes:
        router = processes["R1"]
        with crowd(router.url(), 40), crowd(router.url(list(router.settings.listeners)[1].role), 40):
            assert router.wait_log("handshakes_full", WAIT_S).fields["max_handshakes"] == "8"
            processes.kill("R2")
            processes.start("R2")
            processes.wait_converged(WAIT_S)  # it asks as a client
