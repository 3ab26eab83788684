"""A thread for what may never end, such as a name server's answer: the process ends without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def begin(work: Callable[[], Result], name: str) -> Future[Result]:
    """Call *work* in a thread of its own, called *name*. Returns: what will have its result, or what it raises."""
    found: Future[Result] = Future()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:  # it is raised where the result is taken
            found.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return found
