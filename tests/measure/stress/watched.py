"""`amqp-mesh` that says what it keeps: on SIGRTMIN it writes counts as JSON to `<pid>.json` in the folder FOLDER.

python -m tests.measure.stress.watched run mesh.yaml --router A
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import signal
import sys
from collections import Counter, deque
from pathlib import Path
from typing import Any

from router.binding.heap_trim import trim
from router.cli import main
from router.dataplane.backpressure import IngressBackpressure
from router.dataplane.credit_manager import CreditManager
from router.dataplane.link_event_reader import LinkEventReader
from router.dataplane.message_forwarder import Forwarder
from router.dataplane.router_data_plane import RouterDataPlane
from router.dataplane.sender_violations import ViolatingLinks
from router.dataplane.settlement import Settlement
from router.dataplane.waiting_messages import WaitingMessages
from router.runtime import Runtime

FOLDER = "AMQP_MESH_STRESS_FOLDER"
TABLES = {
    each.__name__
    for each in (
        IngressBackpressure,
        CreditManager,
        Forwarder,
        LinkEventReader,
        RouterDataPlane,
        Runtime,
        ViolatingLinks,
        Settlement,
        WaitingMessages,
    )
}
"""Classes whose tables must be empty when nobody is there."""


class _Mallinfo2(ctypes.Structure):
    """As in malloc.h of glibc."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "c")
    ]


def malloc_bytes() -> int:
    """What C has allocated and not freed; proton's objects are in it. 0 where the system doesn't tell."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    mallinfo2.restype = _Mallinfo2
    info = mallinfo2()
    return int(info.uordblks + info.hblkhd)


def length(table: dict[Any, Any] | list[Any] | set[Any] | deque[Any]) -> int:
    """Of a table; links of streams don't count, since neighbors keep them for the next one."""
    return sum(not getattr(row, "is_stream", False) for row in table)


def counts() -> dict[str, dict[str, int]]:
    """Objects of this program by their class, lengths of tables, and memory."""
    gc.collect()
    objects: Counter[str] = Counter()
    tables: dict[str, int] = {}
    for each in gc.get_objects():
        kind = type(each)
        if not str(kind.__module__).startswith("router."):
            continue
        objects[kind.__qualname__ + " of streams" * getattr(each, "is_stream", False)] += 1
        if kind.__name__ in TABLES:
            for name in dir(each):
                table = None if name.startswith("__") else getattr(each, name, None)
                if isinstance(table, dict | list | set | deque):
                    tables[f"{kind.__name__}.{name}"] = length(table)
    trim()  # a router does so some time after many links have gone; what is left then is the same after each round
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    memory = {
        "resident": pages * os.sysconf("SC_PAGE_SIZE"),
        "malloc": malloc_bytes(),
        "blocks": sys.getallocatedblocks(),
        "fds": len(os.listdir("/proc/self/fd")),
    }
    return {"objects": dict(objects), "tables": tables, "memory": memory}


def write(*_: object) -> None:
    """Write the file, at once."""
    path = Path(os.environ[FOLDER]) / f"{os.getpid()}.json"
    path.with_suffix(".part").write_text(json.dumps(counts()), encoding="utf-8")
    path.with_suffix(".part").rename(path)


if __name__ == "__main__":
    faulthandler.enable()  # a crash shows in the log where it was
    signal.signal(signal.SIGRTMIN, write)
    main(prog_name="amqp-mesh")
