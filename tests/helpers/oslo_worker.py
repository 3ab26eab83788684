"""One process with oslo.messaging clients and servers, driven by JSON lines on stdin and stdout.

    {"id": 7, "do": "call", "transport": "t", "topic": "x", ...}  ->  {"id": 7, "value": ...} or {"id": 7, "error": ...}

Each order runs in a thread of its own, so a driver that hangs holds up its own answer only, and whoever drives this
process can kill it. Times are `time.monotonic()`, which all processes of a machine share. Nothing of the router is
imported.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import sys
import threading
import time
import traceback
import warnings
from typing import Any

import oslo_messaging as messaging
from oslo_config import cfg

CONF = cfg.CONF  # the driver looks for some of its options there only


class TypedFault(Exception):
    """What a server raises; its module is allowed to travel, where the test says so."""


class UnlistedFault(Exception):
    """The same in a module that is never allowed."""


class Endpoint:
    """The methods of every server; each notes what it was asked."""

    target = messaging.Target(version="1.0")

    def __init__(self, name: str, echo_s: float = 0.0) -> None:
        self.name = name
        self.echo_s = echo_s
        self.seen: list[list[Any]] = []
        self.gate = threading.Event()
        self.gate.set()

    def _note(self, method: str, key: Any) -> None:
        self.seen.append([method, key, time.monotonic()])

    def measure(self, context: dict[str, Any], key: Any, data: str) -> None:
        self._note("measure", [key, len(data), hashlib.sha256(data.encode()).hexdigest()])

    def echo(self, context: dict[str, Any], key: Any, data: str = "") -> list[Any]:
        self._note("echo", key)
        self.gate.wait(60)
        if self.echo_s:
            time.sleep(self.echo_s)
        return [self.name, key, data]

    def note(self, context: dict[str, Any], key: Any, data: str = "") -> None:
        self._note("note", key)

    def blob(self, context: dict[str, Any], key: Any, size: int) -> str:
        self._note("blob", key)
        return text_of(size, key)

    def digest(self, context: dict[str, Any], key: Any, data: str) -> list[Any]:
        self._note("digest", key)
        return [len(data), hashlib.sha256(data.encode()).hexdigest()]

    def fail(self, context: dict[str, Any], key: Any, how: str) -> None:
        self._note("fail", key)
        if how == "typed":
            raise TypedFault(f"fault {key}")
        if how == "unlisted":
            raise UnlistedFault(f"fault {key}")
        raise ValueError(f"fault {key}")  # of Python itself: always allowed

    def slow(self, context: dict[str, Any], key: Any, seconds: float) -> list[Any]:
        self._note("slow", key)
        time.sleep(seconds)
        return [self.name, key]


class Listener:
    """The methods of a notification listener."""

    def __init__(self) -> None:
        self.seen: list[list[Any]] = []
        self.requeues = 0
        """How many of the next notifications are given back."""

    def _take(self, priority: str, publisher: str, event: str, payload: Any) -> Any:
        self.seen.append([priority, publisher, event, payload])
        if self.requeues > 0:
            self.requeues -= 1
            return messaging.NotificationResult.REQUEUE
        return messaging.NotificationResult.HANDLED

    def info(self, ctxt: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> Any:
        return self._take("info", publisher_id, event_type, payload)

    def error(self, ctxt: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> Any:
        return self._take("error", publisher_id, event_type, payload)


def text_of(size: int, seed: Any) -> str:
    """*size* characters that nothing compresses or confuses."""
    return random.Random(str(seed)).randbytes(size // 2 + 1).hex()[:size]


class Load:
    """Threads that call one after the other until they are stopped."""

    def __init__(self, call: Any, threads: int, prefix: str) -> None:
        self._over = threading.Event()
        self._call = call
        self._lock = threading.Lock()
        self.records: list[dict[str, Any]] = []
        self._threads = [
            threading.Thread(target=self._run, args=(f"{prefix}-{number}",), daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, prefix: str) -> None:
        count = 0
        while not self._over.is_set():
            count += 1
            record = self._call(f"{prefix}-{count}")
            with self._lock:
                self.records.append(record)
            if record["outcome"] != "ok":
                self._over.wait(0.05)  # a refused call returns at once: do not fill the machine with them

    def stop(self, timeout: float) -> list[dict[str, Any]]:
        self._over.set()
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            raise TimeoutError("a call has no outcome")
        return self.records


class Worker:
    """The orders: each public method is one."""

    def __init__(self) -> None:
        self.transports: dict[str, Any] = {}
        self.servers: dict[str, Any] = {}
        self.endpoints: dict[str, Any] = {}
        self.loads: dict[str, Load] = {}

    def open(self, transport: str, url: str, kind: str = "rpc", exmods: tuple[str, ...] = ()) -> None:
        if kind == "rpc":
            made = messaging.get_rpc_transport(CONF, url=url, allowed_remote_exmods=list(exmods))
        else:
            made = messaging.get_notification_transport(CONF, url=url)
        self.transports[transport] = made

    def cleanup(self, transport: str) -> float:
        began = time.monotonic()
        self.transports.pop(transport).cleanup()
        return time.monotonic() - began

    def serve(
        self,
        transport: str,
        topic: str,
        server: str,
        name: str | None = None,
        workers: int | None = None,
        echo_s: float = 0.0,
    ) -> None:
        """*workers*: threads that run calls, by default as many as oslo.messaging has; *echo_s*: time of an `echo`."""
        name = name or server
        endpoint = self.endpoints[name] = Endpoint(server, echo_s)
        target = messaging.Target(topic=topic, server=server)
        made = messaging.get_rpc_server(self.transports[transport], target, [endpoint], executor="threading")
        made.start(override_pool_size=workers)
        self.servers[name] = made

    def listen(self, transport: str, topic: str, name: str) -> None:
        endpoint = self.endpoints[name] = Listener()
        made = messaging.get_notification_listener(
            self.transports[transport],
            [messaging.Target(topic=topic)],
            [endpoint],
            executor="threading",
            allow_requeue=True,
        )
        made.start()
        self.servers[name] = made

    def stop(self, name: str) -> None:
        server = self.servers.pop(name)
        server.stop()
        server.wait()

    def seen(self, name: str) -> list[list[Any]]:
        return list(self.endpoints[name].seen)

    def gate(self, name: str, is_open: bool) -> None:
        gate = self.endpoints[name].gate
        if is_open:
            gate.set()
        else:
            gate.clear()

    def requeue(self, name: str, count: int) -> None:
        self.endpoints[name].requeues = count

    def notify(
        self, transport: str, topic: str, event: str, payload: Any, priority: str = "info", retry: int = -1
    ) -> None:
        notifier = messaging.Notifier(
            self.transports[transport], driver="messaging", topics=[topic], publisher_id="tests", retry=retry
        )
        getattr(notifier, priority)({}, event, payload)

    def _client(self, transport: str, topic: str, timeout: float, server: str | None, fanout: bool, retry: int) -> Any:
        target = messaging.Target(topic=topic, version="1.0", server=server, fanout=fanout or None)
        return messaging.get_rpc_client(self.transports[transport], target, timeout=timeout, retry=retry)

    def call(
        self,
        transport: str,
        topic: str,
        method: str,
        args: dict[str, Any],
        timeout: float = 20,
        server: str | None = None,
        retry: int = -1,
        monitor: float | None = None,
    ) -> Any:
        client = self._client(transport, topic, timeout, server, False, retry)
        if monitor is not None:
            client = client.prepare(call_monitor_timeout=monitor)
        return client.call({}, method, **args)

    def cast(
        self,
        transport: str,
        topic: str,
        method: str,
        args: dict[str, Any],
        timeout: float = 20,
        server: str | None = None,
        fanout: bool = False,
    ) -> None:
        self._client(transport, topic, timeout, server, fanout, -1).cast({}, method, **args)

    def casts(self, transport: str, topic: str, count: int, prefix: str) -> None:
        """That many casts of `echo`, one after the other."""
        client = self._client(transport, topic, 20, None, False, -1)
        for number in range(count):
            client.cast({}, "echo", key=f"{prefix}-{number}")

    def upload(self, transport: str, topic: str, size: int, key: str, timeout: float = 60) -> bool:
        """A call with a large request: whether the server got just that."""
        data = text_of(size, key)
        got = self.call(transport, topic, "digest", {"key": key, "data": data}, timeout)
        return bool(got == [size, hashlib.sha256(data.encode()).hexdigest()])

    def broadcast(self, transport: str, topic: str, size: int, key: str) -> list[Any]:
        """A large fanout cast; what each server has to see of it."""
        data = text_of(size, key)
        self.cast(transport, topic, "measure", {"key": key, "data": data}, fanout=True)
        return [key, size, hashlib.sha256(data.encode()).hexdigest()]

    def download(self, transport: str, topic: str, size: int, key: str, timeout: float = 60) -> bool:
        """A call with a large reply: whether it is just that."""
        return bool(self.call(transport, topic, "blob", {"key": key, "size": size}, timeout) == text_of(size, key))

    def _record(self, client: Any, key: str) -> dict[str, Any]:
        began = time.monotonic()
        record = {"key": key, "began": began, "server": None}
        try:
            server, got, data = client.call({}, "echo", key=key, data=f"data of {key}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this call's outcome
            record["outcome"] = type(error).__name__
        else:
            record["server"] = server
            record["outcome"] = "ok" if (got, data) == (key, f"data of {key}") else "wrong"
        record["ended"] = time.monotonic()
        return record

    def burst(
        self, transport: str, topic: str, count: int, prefix: str, timeout: float = 30, server: str | None = None
    ) -> list[dict[str, Any]]:
        """*count* callers, one call each, all at once."""
        client = self._client(transport, topic, timeout, server, False, -1)
        start = threading.Barrier(count)
        records: list[dict[str, Any]] = []

        def one(number: int) -> None:
            start.wait()
            records.append(self._record(client, f"{prefix}-{number}"))

        threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return records

    def load(
        self, name: str, transport: str, topic: str, threads: int, timeout: float = 30, server: str | None = None
    ) -> None:
        client = self._client(transport, topic, timeout, server, False, -1)
        self.loads[name] = Load(lambda key: self._record(client, key), threads, name)

    def progress(self, name: str) -> int:
        return sum(record["outcome"] == "ok" for record in list(self.loads[name].records))

    def stop_load(self, name: str, timeout: float = 60) -> list[dict[str, Any]]:
        return self.loads.pop(name).stop(timeout)


def main() -> None:
    if "--debug" in sys.argv:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    warnings.showwarning = lambda *_, **__: None  # the driver asks for all of them, for each message
    CONF([])
    worker = Worker()
    writing = threading.Lock()

    def obey(order: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": order.pop("id")}
        try:
            answer["value"] = getattr(worker, order.pop("do"))(**order)
        except Exception as error:  # noqa: BLE001 - it is the answer
            answer["error"] = type(error).__name__
            answer["module"] = type(error).__module__
            answer["message"] = str(error)
            answer["traceback"] = traceback.format_exc()
        with writing:
            print(json.dumps(answer), flush=True)

    print(json.dumps({"id": 0, "value": "ready"}), flush=True)
    for line in sys.stdin:
        threading.Thread(target=obey, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    sys.modules["oslo_worker"] = sys.modules["__main__"]  # where a caller looks for TypedFault
    TypedFault.__module__ = "oslo_worker"
    UnlistedFault.__module__ = "elsewhere"
    main()
