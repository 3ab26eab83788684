"""Standard output that says in a line why it can't be written: a full disk is no fault of the command."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from router.cli.errors import FAILED, CommandError


class _Output(io.FileIO):
    """Bytes of standard output. The first that can't be written end the command, whatever errors it expects itself."""

    _is_broken = False

    def write(self, octets: Any, /) -> int:
        """Write, or drop what comes after a failure: buffers are flushed again at the end of the process."""
        if self._is_broken:
            return memoryview(octets).nbytes
        try:
            return super().write(octets)
        except BrokenPipeError:
            self._is_broken = True
            raise SystemExit(FAILED) from None  # who has read enough, such as `head`, wants to hear no more
        except OSError as error:
            self._is_broken = True
            raise CommandError(f"cannot write the output: {error.strerror or error}") from error


@contextmanager
def failing_with(exit_code: int) -> Iterator[None]:
    """Have what fails, also what is to be written to standard output, end the command with a status of its own.

    Args:
        exit_code: for a command whose status FAILED is an answer.
    """
    try:
        yield
        sys.stdout.flush()
    except CommandError as error:
        error.exit_code = exit_code  # type: ignore[misc]  # click's own way to set it for one error
        raise
    except SystemExit as error:
        raise SystemExit(exit_code) from error


@contextmanager
def checked_output() -> Iterator[None]:
    """Have standard output written so that a failure ends the process with status 1 and one line, also at its end."""
    given = sys.stdout
    if not isinstance(given, io.TextIOWrapper):  # closed, or taken by somebody
        yield
        return
    given.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(given.fileno(), "w", closefd=False)),
        encoding=given.encoding,
        errors=given.errors,
        line_buffering=given.line_buffering,
        write_through=given.write_through,
    )
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except CommandError as error:
        error.show()
        sys.exit(error.exit_code)
    except UnicodeEncodeError as error:
        failure = CommandError(f"{error.object!r} is no text in UTF-8: {error.reason}")
        failure.show()
        sys.exit(failure.exit_code)
