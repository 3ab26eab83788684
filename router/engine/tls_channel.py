"""TLS between a socket and whoever reads and writes plain bytes. Nothing here waits.

OpenSSL works on memory, not on the socket: so many records are read by one call of the system, and the frame guard sees
each plain byte before the engine does, as it does without TLS.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Callable
from typing import Final

READ_BYTES: Final = 65536
"""Maximum number of bytes read from the socket at once."""
WOULD_BLOCK: Final = -1
FAILED: Final = -1 - errno.EPROTO
"""Result of reading and writing after TLS has failed."""


class TlsChannel:
    """TLS of one connection."""

    def __init__(self, context: ssl.SSLContext, *, is_server: bool, host: str | None = None) -> None:
        """*host*: of the certificate that the server must show."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_server, server_hostname=host)
        self._unwritten = memoryview(b"")
        self.is_server = is_server
        self.is_new = True
        """Whether the peer has written nothing yet."""
        self.may_have_more = False
        """Whether there may be plain bytes, or an end, that need no reading from the socket."""
        self.error: ssl.SSLError | None = None
        """Failure of TLS; None while there is none."""
        self.words: Callable[[ssl.SSLError], str] = str
        """Function that says an error in words."""

    def feed(self, data: bytes) -> None:
        """Take bytes that were read from the socket."""
        self._incoming.write(data)
        self.is_new = False

    def shake_hands(self) -> bool:
        """Go on with the handshake. Returns: whether it is over; else `flush`, and `feed` more.

        Raises:
            ssl.SSLError: it has failed; `flush` what is to be said of it.
        """
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self.may_have_more = True
        return True

    def has_unwritten(self) -> bool:
        """Whether something waits for `flush`."""
        return bool(self._unwritten) or self._outgoing.pending > 0

    def read(self, fd: int, buffer: memoryview) -> int:
        """Read plain bytes, from the socket at most once.

        Args:
            fd: of a non-blocking socket.
            buffer: filled from its begin, in part.
        Returns: bytes; 0 when the peer has ended; -1 when nothing was there; below that an error, as `-1 - errno`.
        """
        has_read = False
        while True:
            try:
                count = int(self.tls.read(len(buffer), buffer))
                self.may_have_more = not count or self.tls.pending() > 0 or self._incoming.pending > 0
                return count
            except ssl.SSLWantReadError:
                self.may_have_more = False
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):  # with TLS's own end, or without
                self.may_have_more = True
                return 0
            except ssl.SSLError as error:
                self.error = self.error or error
                self.may_have_more = True
                return FAILED
            if has_read:
                return WOULD_BLOCK
            has_read = True
            try:
                data = os.read(fd, READ_BYTES)
            except BlockingIOError:
                return WOULD_BLOCK
            except OSError as error:
                return -1 - (error.errno or errno.EIO)
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def write(self, data: bytes | memoryview) -> bool:
        """Encrypt bytes, all of them; `flush` writes them. Returns: False when TLS has failed."""
        try:
            self.tls.write(data)
        except ssl.SSLError as error:
            self.error = self.error or error
            return False
        return True

    def flush(self, fd: int) -> int:
        """Write what is encrypted. Returns: 0; -1 when the kernel takes no more now; below that `-1 - errno`."""
        while True:
            if not self._unwritten:
                if not self._outgoing.pending:
                    return 0
                self._unwritten = memoryview(self._outgoing.read())
            try:
                self._unwritten = self._unwritten[os.write(fd, self._unwritten) :]
            except BlockingIOError:
                return WOULD_BLOCK
            except OSError as error:
                return -1 - (error.errno or errno.EIO)

    def close(self) -> None:
        """Say that nothing more will be written; `flush` writes it."""
        try:
            self.tls.unwrap()
        except (ssl.SSLError, ValueError, OSError):
            pass  # the peer has not said so, or all is over
