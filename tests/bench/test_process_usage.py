"""Processor time of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from router.bench.process_usage import cpu_seconds

WORK_S = 0.2


def work() -> None:
    """Use the processor for a while."""
    while time.thread_time() < WORK_S:
        sum(range(1000))


def test_the_time_of_threads_that_have_ended_counts() -> None:
    before = cpu_seconds([os.getpid()])
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert cpu_seconds([os.getpid()]) - before > WORK_S - 0.05


def test_a_process_that_is_gone_has_used_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    assert child.wait(60) == 0
    assert cpu_seconds([child.pid]) == 0.0
