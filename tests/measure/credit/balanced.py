"""Figure 10: oslo.messaging servers at the four routers of a ring, and all callers at one of them.

Each server is a process of its own with two threads, which sleep for 50 ms in each call, and has the driver's own
credit of 100; the driver accepts a call when a thread takes it. So the servers can do 160 calls a second. The callers
are threads of one process. What they come to is compared with that, and the servers with each other.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from contextlib import ExitStack

from tests.helpers.oslo import OsloWorker, hosts_url
from tests.helpers.processes import LOOPBACK
from tests.measure.credit.stand import Line, Row, Stand

TITLE = "balanced calls to oslo.messaging servers at four routers"
ROUTERS = 4
THREADS = 2
SERVICE_S = 0.05
IDEAL_PER_S = ROUTERS * THREADS / SERVICE_S
WANTED = {8: 0.72, 12: 0.93, 40: 0.95, 120: 0.95}
"""Share of that, by callers: with 8 a thread that works can't be seen, since its call is accepted."""
SPREAD = 1.1
"""Calls of the most used server by those of the least used one, from 40 callers on."""
WARM_S, RUN_S = 2.0, 10.0


def measure(stand: Stand) -> Iterator[Row]:
    """A row for each number of callers."""
    if importlib.util.find_spec("oslo_messaging") is None:
        yield Row(10, "balanced calls", "not measured: needs the extra `demo`", "measured", is_met=False)
        return
    folder = stand.folder / "oslo-balanced"
    folder.mkdir()
    with stand.line(ROUTERS, kind="ring") as ring, ExitStack() as stack:
        for number in range(ROUTERS):
            server = stack.enter_context(OsloWorker(folder / f"server{number}.log"))
            _open(server, ring, number, f"server{number}")
            server.do("serve", transport="t", topic="spill", server=f"s{number}", workers=THREADS, echo_s=SERVICE_S)
        callers = stack.enter_context(OsloWorker(folder / "callers.log"))
        _open(callers, ring, 0, "callers")
        callers.do("call", transport="t", topic="spill", method="echo", args={"key": "first"})
        for count, wanted in WANTED.items():
            yield _row(callers, count, wanted)


def _open(worker: OsloWorker, ring: Line, number: int, name: str) -> None:
    worker.do("open", transport="t", url=hosts_url(f"{LOOPBACK}:{ring.port(number)}", container_name=name))


def _row(callers: OsloWorker, count: int, wanted: float) -> Row:
    callers.do("load", name=f"load{count}", transport="t", topic="spill", threads=count)
    time.sleep(WARM_S)
    began = time.monotonic()
    time.sleep(RUN_S)
    ended = time.monotonic()
    records = callers.do("stop_load", name=f"load{count}", within_s=60)
    done = [record["server"] for record in records if record["outcome"] == "ok" and began < record["ended"] <= ended]
    counts = [done.count(f"s{number}") for number in range(ROUTERS)]
    share = len(done) / (ended - began) / IDEAL_PER_S
    failed = sum(record["outcome"] != "ok" for record in records)
    is_even = count < 40 or max(counts) <= SPREAD * min(counts)
    measured = f"{share:.2f} of what they can do; by server {', '.join(map(str, counts))}; {failed} failed"
    even = f", servers within {SPREAD - 1:.0%} of each other" if count >= 40 else ""
    return Row(10, f"{count} callers", measured, f"at least {wanted}{even}", share >= wanted and is_even and not failed)
