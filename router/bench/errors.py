"""Errors that keep the benchmark from going on."""

from __future__ import annotations


class BenchError(Exception):
    """Reason why it cannot go on, in words for its operator."""


class PeerRefusedError(BenchError):
    """A peer refused a connection or a link, or ended it; with the AMQP condition that it gave."""
