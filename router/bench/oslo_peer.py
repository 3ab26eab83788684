"""One side of calls by oslo.messaging: a server, or callers with one call each at a time, at a given pace.

    python -m router.bench.oslo_peer server URL TOPIC
    python -m router.bench.oslo_peer callers URL TOPIC COUNT BYTES CALLS_PER_S

Each prints a line when it is ready: a server once its links are on the way, callers once each has had an answer. Then
callers answer every line of their standard input by one with the number of calls answered so far, and of those that
failed. The end of the input ends both.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any, Final

import oslo_messaging
from oslo_config import cfg

CALL_TIMEOUT_S: Final = 10
READY_S: Final = 20.0


class Methods:
    """Methods of the server."""

    target = oslo_messaging.Target(version="1.0")

    def echo(self, context: dict[str, str], data: str) -> str:
        """Give back what came."""
        return data


class Callers:
    """Threads that call at random times of their own, on one connection."""

    def __init__(self, client: Any, count: int, size: int, calls_per_s: float) -> None:
        """*count* threads, *size* of what they send, bytes, and their pace together."""
        self._client = client
        self._data = "x" * size
        self._interval_s = count / calls_per_s
        self._answered = [0] * count
        self._failed = [0] * count

    def start(self) -> bool:
        """Begin to call. Returns: whether each had an answer in time."""
        for number in range(len(self._answered)):
            threading.Thread(target=self._run, args=(number,), daemon=True).start()
        end = time.monotonic() + READY_S
        while not all(self._answered) and time.monotonic() < end:
            time.sleep(0.01)
        return all(self._answered)

    def _run(self, number: int) -> None:
        due = time.monotonic()
        while True:
            # At random, since callers that keep step would call all at once.
            due = max(due + random.uniform(0.5, 1.5) * self._interval_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                is_right = self._client.call({}, "echo", data=self._data) == self._data
            except oslo_messaging.MessagingException:
                is_right = False
            (self._answered if is_right else self._failed)[number] += 1

    def counts(self) -> str:
        """Calls answered so far, and those that failed."""
        return f"{sum(self._answered)} {sum(self._failed)}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(words: Sequence[str]) -> None:
    """Be a server, or callers, until the standard input ends."""
    kind, url, topic, *more = words
    cfg.CONF([])  # oslo.messaging looks for some of its options here only
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=f"{url}/?link_retry_delay=1")
    warnings.simplefilter("ignore", DeprecationWarning)  # the driver warns of its own classes with each message
    if kind == "server":
        target = oslo_messaging.Target(topic=topic, server="bench")
        oslo_messaging.get_rpc_server(transport, target, [Methods()], executor="threading").start()
        _say("ready")
        sys.stdin.read()
    else:
        target = oslo_messaging.Target(topic=topic, version="1.0")
        client = oslo_messaging.get_rpc_client(transport, target, timeout=CALL_TIMEOUT_S)
        count, size, calls_per_s = map(int, more)
        callers = Callers(client, count, size, calls_per_s)
        _say("ready" if callers.start() else "no answer")
        for _ in sys.stdin:
            _say(callers.counts())
    os._exit(0)  # its threads have no other end


if __name__ == "__main__":
    main(sys.argv[1:])
