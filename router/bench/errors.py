"""What keeps the benchmark from going on."""

from __future__ import annotations


class BenchError(Exception):
    """Why it cannot go on, in words for its operator."""


class PeerRefusedError(BenchError):
    """A peer refused a connection or a link, or ended it; with the AMQP condition that it gave."""
