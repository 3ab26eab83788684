"""RPC clients of the demonstration on oslo.messaging, one process each.

    python -m router.cli.demo.clients server NAME URL
    python -m router.cli.demo.clients caller NAME URL CALLS_PER_S

Each prints a line `{"ready": true}` when it is attached, and what it does as further lines of JSON, several times a
second. A caller begins at the word `go` on its standard input. Both stop at the word `stop` and say `{"done": true}`;
then a caller leaves the mesh at the word `leave`. Times are seconds of the monotonic clock, common to all processes of
a machine.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import threading
import time
import warnings
from typing import Any

import oslo_messaging
from oslo_config import cfg

from router.cli.demo.blueprint import ANY, DESTINATIONS

TOPIC = "demo"
CALL_TIMEOUT_S = 4
WORKERS = 4
"""Calls that one caller has under way to one destination, at most."""
READY_S = 30.0
REPORT_S = 0.1
CASTS_PER_S = 10
FANOUTS_PER_S = 5


class Reporter:
    """Collects what happened, and prints it now and then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[str, list[Any]] = {}

    def add(self, what: str, item: object) -> None:
        """One more thing of the kind *what*."""
        with self._lock:
            self._lists.setdefault(what, []).append(item)

    def print(self, **more: object) -> None:
        """Everything since the last time, if anything."""
        with self._lock:  # kept while printing: threads print, and a line and its end are written apart
            lists, self._lists = self._lists, {}
            if lists or more:
                print(json.dumps({**lists, **more}), flush=True)

    def print_until(self, is_over: threading.Event) -> None:
        """Print now and then."""
        while not is_over.wait(REPORT_S):
            self.print()


class ServerMethods:
    """Methods that the servers offer."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self, name: str, report: Reporter) -> None:
        self._name = name
        self._report = report

    def work(self, context: dict[str, str], number: int) -> list[object]:
        """Answer a call with the server's name and the number that came in."""
        return [self._name, number]

    def note(self, context: dict[str, str], ident: str) -> None:
        """Take a cast."""
        self._report.add("casts", ident)

    def notice(self, context: dict[str, str], ident: str) -> None:
        """Take a fanout cast."""
        self._report.add("fanouts", ident)


def serve(name: str, url: str) -> None:
    """Be an RPC server until told to stop."""
    report, is_over = Reporter(), threading.Event()
    transport = _transport(url)
    target = oslo_messaging.Target(topic=TOPIC, server=name)
    server = oslo_messaging.get_rpc_server(transport, target, [ServerMethods(name, report)], executor="threading")
    server.start()
    # It takes calls once the router has its links, which only a caller can tell.
    report.print(ready=True)
    printer = threading.Thread(target=report.print_until, args=(is_over,))
    printer.start()
    _await_word("stop")
    server.stop()
    server.wait()
    is_over.set()
    printer.join()
    report.print(done=True)
    transport.cleanup()


class Caller:
    """One caller: calls to each server by its name and to any of them, casts and fanout casts, at a steady pace."""

    def __init__(self, name: str, url: str) -> None:
        self.report = Reporter()
        self.is_over = threading.Event()
        self._name = name
        self._transport = _transport(url)
        self._destinations = {where: self._client(where if where != ANY else None) for where in DESTINATIONS}
        self._fanout = self._destinations[ANY].prepare(fanout=True)

    def _client(self, server: str | None) -> Any:
        target = oslo_messaging.Target(topic=TOPIC, version="1.0", server=server)
        return oslo_messaging.get_rpc_client(self._transport, target, timeout=CALL_TIMEOUT_S)

    def attach(self) -> bool:
        """Make a call to each destination until it is answered. Returns: whether all were in time."""
        deadline = time.monotonic() + READY_S
        for client in self._destinations.values():
            while True:
                try:
                    client.call({}, "work", number=-1)
                except oslo_messaging.MessagingException:
                    if time.monotonic() > deadline:
                        return False
                else:
                    break
        self._fanout.cast({}, "notice", ident="attach")
        return True

    def run(self, calls_per_s: float) -> None:
        """Call and cast until told to stop.

        Args:
            calls_per_s: calls a second, to all destinations together.
        """
        share = calls_per_s / len(self._destinations)
        threads = [threading.Thread(target=self.report.print_until, args=(self.is_over,))]
        for where in self._destinations:
            pace = Pace(share, self.is_over)
            threads += [threading.Thread(target=self._call, args=(where, pace)) for _ in range(WORKERS)]
        threads.append(threading.Thread(target=self._cast, args=("note", "casts", CASTS_PER_S)))
        threads.append(threading.Thread(target=self._cast, args=("notice", "fanouts", FANOUTS_PER_S)))
        for thread in threads:
            thread.start()
        _await_word("stop")
        self.is_over.set()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """Leave the router."""
        self._transport.cleanup()

    def _call(self, where: str, pace: Pace) -> None:
        client = self._destinations[where]
        while (number := pace.next()) is not None:
            began = time.monotonic()
            server, error = "", ""
            try:
                server, answer = client.call({}, "work", number=number)
                if answer != number or where not in (ANY, server):
                    error = f"wrong reply: {answer} of {server} instead of {number} of {where}"
            except oslo_messaging.MessagingException as failure:
                error = f"{type(failure).__name__}: {failure}"
            self.report.add("calls", [where, began, time.monotonic(), server, error])

    def _cast(self, method: str, kind: str, per_s: float) -> None:
        client = self._fanout if kind == "fanouts" else self._destinations[ANY]
        pace = Pace(per_s, self.is_over)
        while (number := pace.next()) is not None:
            ident = f"{self._name}/{number}"
            # Told before it is sent: the server's word of it may be read first.
            self.report.add(kind, [ident, time.monotonic()])
            client.cast({}, method, ident=ident)


class Pace:
    """Turns for several threads, at random within their share of the time; a late one is not made up for.

    At random, since callers that keep step would call all at once and wait for each other.
    """

    def __init__(self, per_s: float, is_over: threading.Event) -> None:
        self._interval_s = 1 / per_s
        self._is_over = is_over
        self._lock = threading.Lock()
        self._number = 0
        self._due = time.monotonic() + random.uniform(0, self._interval_s)

    def next(self) -> int | None:
        """Wait for the next turn. Returns: its number, from 0; None when it is over."""
        with self._lock:
            self._due = due = max(self._due + random.uniform(0.5, 1.5) * self._interval_s, time.monotonic())
            number = self._number
            self._number += 1
        return None if self._is_over.wait(due - time.monotonic()) else number


def call(name: str, url: str, calls_per_s: float) -> None:
    """Be a caller until told to stop.

    Args:
        name: of the caller.
        url: of its router.
        calls_per_s: calls a second, to all destinations together.
    """
    caller = Caller(name, url)
    caller.report.print(ready=caller.attach())
    _await_word("go")
    caller.run(calls_per_s)
    caller.report.print(done=True)
    _await_word("leave")  # what was cast may be on its way to the router
    caller.close()


def _transport(url: str) -> Any:
    conf = cfg.CONF  # oslo.messaging looks for some of its options here only
    conf([])
    # Shorter than its 10 s: a message given back by a router whose path has died is sent again after this time.
    transport = oslo_messaging.get_rpc_transport(conf, url=f"{url}/?link_retry_delay=1")
    # The driver warns of its own deprecated classes with each message, and sees to it that this is shown.
    warnings.simplefilter("ignore", DeprecationWarning)
    return transport


def _await_word(word: str) -> None:
    for line in sys.stdin:
        if line.strip() == word:
            return


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    kind, *arguments = sys.argv[1:]
    if kind == "server":
        serve(arguments[0], arguments[1])
    else:
        call(arguments[0], arguments[1], float(arguments[2]))
