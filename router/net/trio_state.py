"""State of the trio loop in whose thread the poller waits: whether it has something to do, when, and what wakes it.

Which tasks are due an instrument hears. Of deadlines, and of the epoll instance, trio tells nobody but itself, so it
stands here alone which of its attributes are read. Where another trio has them no longer, `watch` says so, and the
poller waits as any task does: by trio, at a higher price for each message.
"""

from __future__ import annotations

from math import inf
from typing import Any

import trio


class RunQueue(trio.abc.Instrument):
    """Tasks that go on as soon as the one that runs waits: those that trio has not come to, too."""

    def __init__(self) -> None:
        self.tasks: set[trio.lowlevel.Task] = set()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """Note that a task is due."""
        self.tasks.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Note that a task has its turn."""
        self.tasks.discard(task)


class TrioState:
    """Trio's loop as its own thread sees it between two steps of a task."""

    def __init__(self, deadlines: Any, fd: int) -> None:
        self._deadlines = deadlines
        self.fd = fd
        """Descriptor of trio's epoll instance: readable when a socket is, after a signal, and when a thread is done."""
        self.instrument = RunQueue()
        self._tasks = self.instrument.tasks

    def has_runnable(self) -> bool:
        """Whether another task is due."""
        return bool(self._tasks)

    def next_deadline(self) -> float:
        """Time of the earliest deadline, by trio's clock, or an earlier one that was given up; infinity without any."""
        heap = self._deadlines._heap
        if not heap:
            return inf
        first = heap[0]
        return float(first[0])


def find(runner: Any) -> TrioState | None:
    """Find the state that trio's *runner* keeps. None where this trio keeps it otherwise, or on a virtual clock."""
    try:
        state = TrioState(runner.deadlines, runner.io_manager._epoll.fileno())
        state.next_deadline()
        is_virtual = runner.clock_autojump_threshold < inf
    except (AttributeError, TypeError, ValueError, IndexError):
        return None
    return None if is_virtual else state


async def watch() -> TrioState | None:
    """Watch the loop that runs this task; `unwatch` follows. None where that can't be done."""
    state = find(getattr(trio._core._run.GLOBAL_RUN_CONTEXT, "runner", None))
    if state is not None:
        trio.lowlevel.add_instrument(state.instrument)
        for _ in range(2):  # by then all have had their turn that were due before
            await trio.lowlevel.checkpoint()
    return state


def unwatch(state: TrioState) -> None:
    """Watch it no longer."""
    trio.lowlevel.remove_instrument(state.instrument)
