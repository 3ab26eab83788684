"""Socket of a connection during TLS and SASL, before there is an engine: plain bytes, or those within TLS."""

from __future__ import annotations

import os
import select
import socket
import ssl
from collections.abc import Callable
from typing import Final

import trio

from router.engine.tls_channel import FAILED, READ_BYTES, WOULD_BLOCK, TlsChannel

MOST_BYTES: Final = 65536
"""Maximum number of bytes read and not yet made use of."""

LINGER_S: Final = 1.0
"""Time that a peer that was refused has to read why, seconds."""
MOST_LINGERED: Final = 64
"""Maximum number of pieces that are read of a peer that was refused."""


class HandshakeFailed(Exception):
    """Error of a connection of which nothing comes; the message says why, for the log."""


class PeerLeft(HandshakeFailed):
    """The other side has ended it, or the network."""


class HandshakeSocket:
    """Socket whose peer has not authenticated yet."""

    def __init__(self, sock: socket.socket, words: Callable[[ssl.SSLError], str]) -> None:
        """*words*: says an error of TLS in words."""
        self._sock = sock
        self._fd = sock.fileno()
        self._words = words
        self.channel: TlsChannel | None = None
        self.data = bytearray()
        """Plain bytes that were read."""

    async def read(self, size: int) -> None:
        """Read until *size* bytes are in `data`, or more.

        Raises:
            PeerLeft: there will not be so many.
            HandshakeFailed: TLS has failed.
        """
        while len(self.data) < size:
            await self.read_more()

    async def read_more(self) -> None:
        """Read something.

        Raises: as `read`.
        """
        if len(self.data) > MOST_BYTES:
            raise HandshakeFailed(f"more than {MOST_BYTES} bytes, and no answer was awaited")
        while not self._read():
            await trio.lowlevel.wait_readable(self._sock)

    def _read(self) -> bool:
        channel = self.channel
        if channel is None:
            data = self._receive()
            if data is None:
                return False
            self.data += data
        else:
            buffer = bytearray(READ_BYTES)
            count = channel.read(self._fd, memoryview(buffer))
            if count == WOULD_BLOCK:
                return False
            if count == 0:
                raise PeerLeft("the other side closed it")
            if count < 0:
                if count == FAILED and channel.error is not None:
                    channel.flush(self._fd)
                    raise HandshakeFailed(self._words(channel.error))
                raise PeerLeft(os.strerror(-1 - count))
            self.data += memoryview(buffer)[:count]
        return True

    async def _await_bytes(self, channel: TlsChannel) -> bytes:
        try:
            while (data := self._receive()) is None:
                await trio.lowlevel.wait_readable(self._sock)
        except PeerLeft as error:
            hint = ": it may speak no TLS" if channel.is_new and not channel.is_server else ""
            raise PeerLeft(f"TLS: {error} during the handshake{hint}") from None
        return data

    def _receive(self) -> bytes | None:
        """Bytes that the socket has; None when it has none now."""
        try:
            data = self._sock.recv(READ_BYTES)
        except BlockingIOError:
            return None
        except OSError as error:
            raise PeerLeft(error.strerror or str(error)) from None
        if not data:
            raise PeerLeft("the other side closed it")
        return data

    def has_left(self) -> bool:
        """Whether the peer has closed its side, whatever of its bytes wasn't read yet."""
        poll = select.poll()
        poll.register(self._fd, select.POLLRDHUP)
        return bool(poll.poll(0))

    async def write(self, data: bytes) -> None:
        """Write all of *data*.

        Raises: as `read`.
        """
        if self.channel is not None:
            if not self.channel.write(data):
                assert self.channel.error is not None
                raise HandshakeFailed(self._words(self.channel.error))
            await self._write_out(self.channel)
            return
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._sock)
            except OSError as error:
                raise PeerLeft(error.strerror or str(error)) from None

    async def _write_out(self, channel: TlsChannel) -> None:
        while (result := channel.flush(self._fd)) != 0:
            if result != WOULD_BLOCK:
                raise PeerLeft(os.strerror(-1 - result))
            await trio.lowlevel.wait_writable(self._sock)

    async def hang_up(self) -> None:
        """Let the peer read what was written: it would be lost if the socket was closed on what it still writes."""
        with trio.move_on_after(LINGER_S):
            try:
                if self.channel is not None:
                    self.channel.close()
                    self.channel.flush(self._fd)
                self._sock.shutdown(socket.SHUT_WR)
                for _ in range(MOST_LINGERED):
                    await trio.lowlevel.wait_readable(self._sock)
                    if not self._sock.recv(READ_BYTES):
                        break
            except OSError:
                pass  # the peer is gone

    async def start_tls(self, channel: TlsChannel, threads: trio.CapacityLimiter) -> None:
        """Do the handshake; what is in `data` is its begin.

        Args:
            channel: that has read and written nothing.
            threads: limits how many steps are done at once, each of which may take a millisecond. It is done in a
                thread, without Python's lock: messages pass meanwhile.
        Raises: as `read`.
        """
        if self.data:
            channel.feed(bytes(self.data))
            self.data.clear()
        while True:
            try:
                is_over = await trio.to_thread.run_sync(channel.shake_hands, limiter=threads)
            except ssl.SSLError as error:
                channel.flush(self._fd)  # why, as an alert, if there is room for it
                raise HandshakeFailed(self._words(error)) from None
            await self._write_out(channel)
            if is_over:
                self.channel = channel
                return
            data = await self._await_bytes(channel)
            if channel.is_new and not channel.is_server and data.startswith(b"AMQP"):
                raise HandshakeFailed("TLS: the other side speaks plain AMQP")
            channel.feed(data)
