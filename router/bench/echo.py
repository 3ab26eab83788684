"""The yardstick of calls: 200 bytes to another process and back over TCP, by plain epoll loops in Python.

`python -m router.bench.echo` is the other process: it prints its port and ends with its standard input.
"""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import time
from types import TracebackType
from typing import Final, Self

from router.bench.errors import BenchError
from router.bench.routers import ROOT
from router.child_processes import mortal

BYTES: Final = 200
WAIT_S: Final = 10.0


class EchoServer:
    """The other process; a context manager that leaves none behind."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self) -> Self:
        """Start it.

        Raises: BenchError
        """
        self._process = subprocess.Popen(
            mortal([sys.executable, "-m", "router.bench.echo"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            process_group=0,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("the echo server did not start")
        self._port = int(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def round_trip_us(self, seconds: float) -> float:
        """Measure the median of all round trips in *seconds*.

        Args:
            seconds: time to measure.
        Returns: microseconds.
        Raises: BenchError
        """
        times = []
        with socket.create_connection(("127.0.0.1", self._port), WAIT_S) as sock, select.epoll() as poll:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(sock, select.EPOLLIN)
            data = b"x" * BYTES
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                began = time.perf_counter_ns()
                sock.send(data)
                left = BYTES
                while left:
                    if not poll.poll(WAIT_S):
                        raise BenchError("the echo server does not answer")
                    left -= len(sock.recv(4096)) or left
                times.append(time.perf_counter_ns() - began)
        return sorted(times)[len(times) // 2] / 1000


def serve() -> None:
    """Send back whatever comes, on every connection, until standard input ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener, select.epoll() as poll:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        poll.register(listener, select.EPOLLIN)
        poll.register(0, select.EPOLLIN)
        peers: dict[int, socket.socket] = {}
        while True:
            for fd, _ in poll.poll():
                if fd == 0:
                    return
                if fd == listener.fileno():
                    sock, _ = listener.accept()
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    peers[sock.fileno()] = sock
                    poll.register(sock, select.EPOLLIN)
                    continue
                data = peers[fd].recv(4096)
                if data:
                    peers[fd].send(data)
                else:
                    poll.unregister(fd)
                    peers.pop(fd).close()


if __name__ == "__main__":
    serve()
