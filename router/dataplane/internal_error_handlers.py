"""Callbacks by which the data plane tells of faults of the program itself."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from router.core.forwarding.fib import AddressEntry
from router.dataplane.connection_port import Port
from router.dataplane.links import Transfer


@attrs.frozen
class InternalErrorHandlers:
    """Functions that log a fault, and end what it happened to where the data plane can't."""

    of_address: Callable[[AddressEntry, Exception], None]
    """Handles a fault with one address, whose credit is not dealt in this turn."""
    of_port: Callable[[Port, Exception], None]
    """Handles a fault with what one connection has sent: in another one's turn, or in none."""
    of_message: Callable[[Transfer, Exception], None]
    """Handles a fault with one message, which is about to get its outcome."""
