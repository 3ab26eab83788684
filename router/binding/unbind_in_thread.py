"""Unbinding of a transport in a thread: proton does it in one piece, a microsecond for each session."""

from __future__ import annotations

import threading

from router.binding.library import lib


def begin_unbinding(transport: int) -> threading.Thread:
    """Unbind a transport in a thread of its own, which holds Python up for nothing: cffi lets go of its lock meanwhile.

    Proton shares nothing between connections, so others are served. Nobody else may touch this one until the thread
    has ended.

    Args:
        transport: handle of the transport.
    Returns: the thread, which has begun.
    """
    thread = threading.Thread(target=lib.pn_transport_unbind, args=(transport,), name="unbind", daemon=True)
    thread.start()
    return thread
