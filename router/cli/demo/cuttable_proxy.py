"""A TCP connection's way through a process of its own, so that it can be cut: `LISTEN_PORT HOST PORT [LISTEN_HOST]`.

What is connected to here is connected on to HOST:PORT. To cut the wire, kill the process: the kernel closes both sides
and refuses what tries again. Not within the demonstration's own process, whose screen would delay every message.
"""

from __future__ import annotations

import socket
import sys
import threading
import time

_CHUNK_BYTES = 65536
_RETRY_S = 0.02


def main(place: tuple[str, int], target: tuple[str, int]) -> None:
    """Carry bytes for ever between who connects to *place*, and *target*."""
    listener = socket.create_server(place)
    while True:
        near, _ = listener.accept()
        threading.Thread(target=_serve, args=(near, target), daemon=True).start()


def _serve(near: socket.socket, target: tuple[str, int]) -> None:
    with near, _connect(target) as far:
        back = threading.Thread(target=_carry, args=(far, near), daemon=True)
        back.start()
        _carry(near, far)
        back.join()


def _connect(target: tuple[str, int]) -> socket.socket:
    while True:
        try:
            return socket.create_connection(target)
        except OSError:
            time.sleep(_RETRY_S)  # its process is still starting


def _carry(source: socket.socket, sink: socket.socket) -> None:
    try:
        sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := source.recv(_CHUNK_BYTES):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # The other thread's reading ends too.
        for sock in (source, sink):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


if __name__ == "__main__":
    main((sys.argv[4] if sys.argv[4:] else "127.0.0.1", int(sys.argv[1])), (sys.argv[2], int(sys.argv[3])))
