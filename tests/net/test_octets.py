"""What the system counts of a connection."""

from __future__ import annotations

import socket
import sys

import pytest

from router.net.tcp_counters import octets


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")
def test_bytes_are_counted_in_both_directions_and_a_closed_socket_tells_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as near:
        far, _ = server.accept()
        with far:
            near.sendall(b"x" * 1000)
            assert len(far.recv(1000, socket.MSG_WAITALL)) == 1000
            far.sendall(b"y" * 10)
            assert len(near.recv(10, socket.MSG_WAITALL)) == 10
            sent, received = octets(near), octets(far)
            assert sent is not None
            assert received is not None
            assert (sent.sent, sent.received) == (1000, 10)
            assert (received.sent, received.received) == (10, 1000)
            assert sent.round_trip_us is not None
            assert sent.round_trip_us > 0
    assert octets(near) is None


def test_a_socket_of_another_kind_tells_nothing() -> None:
    with socket.socket(socket.AF_UNIX) as other:
        assert octets(other) is None
