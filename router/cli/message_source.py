"""Messages of `send` and `call`, one by one: those of lines each when its line has come, while the connection lives on.

with MessageSource(template) as source, Client(access) as client:
    source.attach(client)
    for message in source.messages(client):
        ...
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from proton import Message

from router.cli.errors import CommandError, unreadable
from router.cli.message_links import Client
from router.cli.message_options import MAX_BODY_BYTES, MessageTemplate

PIECE_BYTES: Final = 65536
"""Bytes that are read at once."""
STANDARD_INPUT: Final = "-"


class LineReader:
    """Reader of a file's lines, in the loop of a connection: while no line comes, heartbeats and messages pass.

    It is what proton calls a selectable, as its EventInjector is. Lines are read from the descriptor itself: nothing of
    them may be in a buffer of Python, which select knows nothing of.
    """

    _transport: ClassVar[None] = None
    """Proton asks whatever it reads for one."""

    def __init__(self, path: str) -> None:
        """Open *path*; `-` is standard input. Raises: CommandError."""
        self._path = path
        self._is_opened_here = path != STANDARD_INPUT
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if self._is_opened_here else sys.stdin.fileno()
        except OSError as error:
            raise unreadable(error, path, option="--file") from error
        self._lines: deque[bytes] = deque()
        self._rest = bytearray()
        """Beginning of the next line."""
        self._selectable: Any = None
        self._is_over = False
        self._fault: CommandError | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there is a line, or the end has been read."""
        return bool(self._lines) or self._is_over

    def take(self) -> bytes | None:
        """The next line, without its end; None after the last one. Raises: CommandError when it can't be read."""
        assert self.is_ready
        if not self._lines:
            if self._fault is not None:
                raise self._fault
            return None
        line = self._lines.popleft()
        if not self._lines and not self._is_over:
            self._set_reading(True)
        return line

    def fileno(self) -> int:
        """Descriptor that proton waits for."""
        return self._handle

    def close(self) -> None:
        """Close what was opened here; proton does so too, once it is told that nothing more is read."""
        if self._is_opened_here:
            self._is_opened_here = False
            os.close(self._handle)

    def detach(self) -> None:
        """Read no further: a connection that is closed waits for all that proton reads to end."""
        if self._selectable is not None:
            self._selectable.terminate()
            self._selectable.update()

    def on_selectable_init(self, event: Any) -> None:
        """Begin to read."""
        self._selectable = event.context
        self._set_reading(True)

    def on_selectable_readable(self, event: Any) -> None:
        """Take what has come, and read no further while there are lines."""
        try:
            octets = os.read(self._handle, PIECE_BYTES)
        except BlockingIOError:  # another process has read it
            return
        except OSError as error:
            self._end(unreadable(error, self._path, option="--file"))
            return
        self._rest += octets
        if b"\n" in octets:
            *lines, self._rest = self._rest.split(b"\n")
            self._lines.extend(map(bytes, lines))
        if not octets:
            self._lines.extend([bytes(self._rest)] if self._rest else [])
            self._end()
        elif len(self._rest) > MAX_BODY_BYTES:
            self._end(CommandError(f"{self._path}: a line of more than {MAX_BODY_BYTES >> 20} MiB"))
        elif self._lines:
            self._set_reading(False)

    def _end(self, fault: CommandError | None = None) -> None:
        self._is_over, self._fault = True, fault
        self.detach()

    def _set_reading(self, is_reading: bool) -> None:
        self._selectable.reading = is_reading
        self._selectable.update()


class MessageSource:
    """Messages that a template describes, in their order."""

    def __init__(self, template: MessageTemplate) -> None:
        """Raises: CommandError when the file can't be opened."""
        self._template = template
        self._messages = template.messages()
        self._reader: LineReader | None = None
        if template.is_by_lines:
            assert template.file is not None
            self._reader = LineReader(template.file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._reader is not None:
            self._reader.close()

    @property
    def total(self) -> int | None:
        """Number of messages; None when that depends on a file."""
        return None if self._reader is not None else self._template.count

    def attach(self, client: Client) -> None:
        """Have lines read while the client waits; it is closed before this source."""
        if self._reader is not None:
            client.attach_reader(self._reader, self._reader.detach)

    @property
    def is_ready(self) -> bool:
        """Whether there is a message, or the end is known."""
        return self._reader is None or self._reader.is_ready

    def take(self) -> Message | None:
        """The next message; None after the last. Raises: CommandError when the file can't be read, or is no JSON."""
        if self._reader is None:
            return next(self._messages, None)
        line = self._reader.take()
        return None if line is None else self._template.message(line)

    def messages(self, client: Client) -> Iterator[Message]:
        """All messages, waited for with *client*. Raises: LinkError when a link or the connection is lost meanwhile."""
        while client.wait(lambda: self.is_ready, None) and (message := self.take()) is not None:
            yield message
