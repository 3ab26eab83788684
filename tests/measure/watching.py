"""Processor time that watching costs a router: metrics scraped, the console open, `stat --watch` running.

    python -m tests.measure.watching [SECONDS]

Processor time and not throughput, so that others on the machine don't change it: what watching takes is what messages
can't have.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import attrs
from proton.utils import BlockingConnection

from mesh_config.generators import generate
from mesh_config.models import HttpSettings
from tests.helpers.processes import MeshProcesses, ReservedPort

ADDRESSES = 200
PAGES = ("/api/mesh", "/metrics", "/api/mesh")
"""One each half of a second, the last two at once: the console asks twice as often."""


def processor_s(pid: int) -> float:
    """Of a process so far, seconds."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def main(seconds: float) -> None:
    with ExitStack() as stack:
        port = ReservedPort()
        stack.callback(port.close)
        made = generate("full", 4)
        first = attrs.evolve(made.routers["R1"], http=HttpSettings(port=port.number))
        mesh_settings = attrs.evolve(made, routers={**made.routers, "R1": first})
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        mesh = stack.enter_context(MeshProcesses(mesh_settings, Path(folder)))
        mesh.start()
        mesh.wait_converged()
        client = BlockingConnection(mesh.url("R1"), heartbeat=0)
        for number in range(ADDRESSES):
            client.create_receiver(f"address-{number}", credit=10)
        for words, pages in (("nobody watches", ()), ("watched", PAGES)):
            if pages:
                command = [sys.executable, "-m", "router", "stat", "addresses", "--watch", "--interval", "1"]
                watch = subprocess.Popen([*command, "--url", mesh.url("R1")], stdout=subprocess.DEVNULL)
                stack.callback(watch.wait)
                stack.callback(watch.kill)
            begin, used = time.monotonic(), processor_s(mesh["R1"].pid)
            while time.monotonic() - begin < seconds:
                for asked in (pages[:1], pages[1:]):
                    for page in asked:
                        urllib.request.urlopen(f"http://127.0.0.1:{port.number}{page}").read()
                    client.container.process()
                    time.sleep(0.5)
            share = (processor_s(mesh["R1"].pid) - used) / (time.monotonic() - begin)
            print(f"{words}: {100 * share:.2f} % of a core")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
