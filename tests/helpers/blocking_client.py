"""A client of python-proton that waits for each thing it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from proton import ConnectionException
from proton.utils import BlockingConnection

WAIT_S = 60.0


@contextmanager
def connected(url: str, *, may_be_closed: bool = False) -> Iterator[Any]:
    """A connection; Any, as not all of that library has types.

    Args:
        url: of the router.
        may_be_closed: by the router, before it is left.
    """
    connection: Any = BlockingConnection(url, timeout=WAIT_S)
    try:
        yield connection
    finally:
        with suppress(*[ConnectionException] if may_be_closed else []):
            connection.close()
