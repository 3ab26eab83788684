"""A connection whose bytes are those of TLS: they are decrypted into the engine's buffer, and encrypted from it."""

from __future__ import annotations

from typing import Any, Final

import cython

from router.binding import proton_functions as pn
from router.engine.connection import Connection
from router.engine.tls_channel import FAILED, TlsChannel

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        pn_transport_capacity,
        pn_transport_head,
        pn_transport_tail,
        pni_transport_grow_capacity,
    )

MOST_WRITTEN_BYTES: Final = 65536
"""Maximum number of bytes encrypted at once: what the kernel does not take of it is held."""


class AmqpsConnection(Connection):
    """One connection within TLS. What a plain one does with its socket is done with a `TlsChannel` here."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Make an engine as `Connection` does; then call `start_tls`."""
        super().__init__(*arguments, **keywords)
        self._tls: TlsChannel | None = None

    def start_tls(self, channel: TlsChannel) -> None:
        """Use a channel whose handshake is over. Nothing may have been read or written before."""
        self._tls = channel

    def has_rest(self) -> bool:
        """Whether there is more to process without reading from the socket."""
        if pn_transport_capacity(self._transport) <= 0:
            return False
        return bool(self._rest) or (self._tls is not None and self._tls.may_have_more)

    def _read(self, fd: int, most: int) -> int:
        total = 0
        tls = self._tls
        assert tls is not None, "start_tls comes first"
        while total < most:
            capacity = pn_transport_capacity(self._transport)
            if capacity <= 0:
                break
            size = min(capacity, most - total)
            count = tls.read(fd, pn.memory_at(pn_transport_tail(self._transport), size))
            if count <= 0:
                if count == FAILED and tls.error is not None and not total:
                    self.end_because(tls.words(tls.error))
                return total or count
            self._take(count)
            total += count
            if self._rest or not tls.may_have_more:
                break
            if count == capacity:
                pni_transport_grow_capacity(self._transport, 2 * capacity)
        return total

    def _write(self, fd: int, most: int) -> int:
        total = 0
        tls = self._tls
        assert tls is not None, "start_tls comes first"
        while True:
            if tls.has_unwritten():
                count = tls.flush(fd)
                if count < 0:
                    return -1 if count == -1 else count - 1
            size = self._writable()
            if size == 0:
                return total
            if size < 0:
                tls.close()
                tls.flush(fd)
                return -2
            if total >= most:
                return -1
            size = min(size, MOST_WRITTEN_BYTES)
            if not tls.write(pn.memory_at(pn_transport_head(self._transport), size)):
                return FAILED - 1
            self.sent(size)
            total += size
