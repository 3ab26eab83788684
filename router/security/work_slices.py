"""Long work in a thread, cut into slices, so that the thread that forwards messages hardly waits for it."""

from __future__ import annotations

import threading
import time
from typing import Final

SLICE_S: Final = 0.001
PAUSE_S: Final = 0.001


class SlicePauses:
    """Pauses of work that holds the interpreter's lock: one after each slice, except in the main thread."""

    def __init__(self) -> None:
        self._is_beside = threading.current_thread() is not threading.main_thread()
        self._until = time.perf_counter() + SLICE_S

    def pause(self) -> None:
        """Pause, if a slice is over: call it often."""
        if self._is_beside and time.perf_counter() >= self._until:
            time.sleep(PAUSE_S)
            self._until = time.perf_counter() + SLICE_S
