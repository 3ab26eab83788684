"""Counters that the system keeps of a TCP connection: read when somebody asks, at no cost to messages."""

from __future__ import annotations

import socket
import struct
from typing import Final

import attrs

_INFO_SIZE: Final = 216
_BYTES_RECEIVED: Final = 128
_MIN_RTT: Final = 148
_BYTES_SENT: Final = 200
_UNKNOWN_RTT: Final = 2**32 - 1
"""Places in `struct tcp_info` of Linux, and what stands there before the first round trip."""


@attrs.frozen
class TcpCounters:
    """Counters of one connection, since it was made."""

    received: int
    sent: int
    """Number of bytes sent, without what was sent again."""
    round_trip_us: int | None
    """Shortest of the latest round trips, microseconds."""


def octets(sock: socket.socket) -> TcpCounters | None:
    """Bytes that *sock* has carried; None where the system does not tell, and when the socket is closed.

    Source: include/uapi/linux/tcp.h, of Linux 4.19 and later.
    """
    if not hasattr(socket, "TCP_INFO"):
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
    except OSError:
        return None
    if len(info) < _INFO_SIZE:
        return None
    (received,) = struct.unpack_from("=Q", info, _BYTES_RECEIVED)
    sent, sent_again = struct.unpack_from("=QQ", info, _BYTES_SENT)
    (round_trip,) = struct.unpack_from("=I", info, _MIN_RTT)
    return TcpCounters(received, sent - sent_again, round_trip if round_trip < _UNKNOWN_RTT else None)
