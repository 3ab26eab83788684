"""SIGINT and SIGTERM where an exception would be lost or leave something half done: they are held back until it's safe.

An exception in the import of a compiled library may be taken for the lack of another one; in a call to Java, it leaves
the answer unread.
"""

from __future__ import annotations

import importlib
import signal
import threading
from collections.abc import Callable
from types import FrameType, ModuleType, TracebackType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class EndedBySignalError(Exception):
    """A block was ended by a signal whose handler raises nothing."""


class HeldSignals:
    """Holds signals back during a block; at its end the first one does what it would have done.

    In a thread other than the first one, to which no signal comes, it does nothing.

    Args:
        end: called for each signal, to let the block fail soon. It then ends with EndedBySignalError if the signal's
            own handler raises nothing. None: the block takes its time.
    """

    def __init__(self, end: Callable[[], None] | None = None) -> None:
        self.came: int | None = None
        """Number of the first signal that has come."""
        self._end = end
        self._at_first: dict[int, Any] = {}
        self._at_last: dict[int, Any] = {}

    def __enter__(self) -> HeldSignals:
        self.take()
        self._at_first = dict(self._at_last)
        return self

    def take(self) -> None:
        """Take the signals, again where somebody else has taken one, who gets it back if none has come."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            found = signal.getsignal(number)
            if found not in {self._note, signal.SIG_IGN, None}:
                self._at_last[number] = found
                signal.signal(number, self._note)

    def check(self) -> None:
        """End the block if a signal has come. Raises: EndedBySignalError."""
        if self.came is not None:
            raise EndedBySignalError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in (self._at_last if self.came is None else self._at_first).items():
            signal.signal(number, handler)
        if self.came is not None:
            signal.raise_signal(self.came)
            if self._end is not None:
                raise EndedBySignalError from None

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = self.came or number
        if self._end is not None:
            self._end()


def import_whole(name: str) -> ModuleType:
    """Import a module; a signal that comes meanwhile waits for its end."""
    with HeldSignals():
        return importlib.import_module(name)
