"""Processor time of a router under load while it is watched, and while nobody watches: in turns, in one run.

    python -m tests.measure.watched_throughput [ROUNDS]

Watching is the console open in a real browser, `/metrics` scraped each second and `stat addresses --watch` each second,
all at the router through which messages pass. It has a processor for itself; the load and who watches share the others.
What watching takes of the router's time is what messages can't have of a router that is busy all the time. By processor
time, since the load generator is slower than the router, and since others on the machine don't change it much; at one
pace, since who watches takes processor time of the load generator too, and a message costs less the more there are.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
from proton.utils import BlockingConnection

from mesh_config.generators import generate
from mesh_config.models import HttpSettings
from router.bench.cases import STREAM
from router.bench.cases import Path as Way
from router.bench.measuring import RunResult, measure
from tests.helpers.browser import Browser
from tests.helpers.processes import MeshProcesses, ReservedPort, without_idle_timeout

ADDRESSES = 200
ROUNDS = 6
PACED = attrs.evolve(STREAM, name="paced", rate=20_000)
ROUND_S = 5.0
WARM_S = 2.0
"""Before each, in which whoever watches has begun."""
SCRAPE = "import sys, time, urllib.request\nwhile True: urllib.request.urlopen(sys.argv[1]).read(); time.sleep(1)"


@contextmanager
def watched(browser: Browser, url: str, router: str) -> Iterator[None]:
    """Let all three watch."""
    commands = [
        [sys.executable, "-m", "router", "stat", "addresses", "--watch", "--interval", "1", "--url", router],
        [sys.executable, "-c", SCRAPE, f"{url}metrics"],
    ]
    watching = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    browser.open(url)
    try:
        browser.wait("document.querySelectorAll('.node').length === 4")
        yield
        assert all(each.poll() is None for each in watching)
        state = browser.run("document.getElementById('state').innerText")
        if state != "all is well":
            print(f"the console says: {state}")
    finally:
        browser.open("about:blank")
        for each in watching:
            each.kill()
            each.wait()


def cost_us(run: RunResult) -> float:
    """Processor time of the router for each message, with all else that it does meanwhile, microseconds."""
    assert run.cpu_us is not None
    return run.cpu_us


def main(rounds: int) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        port = ReservedPort()
        stack.callback(port.close)
        made = without_idle_timeout(generate("full", 4))  # clients rest meanwhile
        first = attrs.evolve(made.routers["R1"], http=HttpSettings(port=port.number))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = attrs.evolve(made, routers={**made.routers, "R1": first})
        own, *others = sorted(os.sched_getaffinity(0), reverse=True)
        os.sched_setaffinity(0, others or {own})  # and of all that is started from here
        mesh = stack.enter_context(MeshProcesses(settings, folder / "mesh"))
        mesh.start()
        mesh.wait_converged()
        os.sched_setaffinity(mesh["R1"].pid, {own})
        client = BlockingConnection(mesh.url("R1"), heartbeat=0)
        for number in range(ADDRESSES):
            client.create_receiver(f"address-{number}", credit=10)
        browser = stack.enter_context(Browser(folder))
        host, _, number_ = mesh.url("R1").removeprefix("amqp://").partition(":")
        place = host, int(number_)
        way = Way(name="one router", hops=1, send_to=place, receive_from=place, pids=(mesh["R1"].pid,))
        runs: dict[bool, list[RunResult]] = {False: [], True: []}
        for number in range(rounds):
            for is_watched in (False, True) if number % 2 else (True, False):
                client.container.process()
                with ExitStack() as turn:
                    if is_watched:
                        turn.enter_context(watched(browser, f"http://127.0.0.1:{port.number}/", mesh.url("R1")))
                    runs[is_watched].append(measure(PACED, way, seconds=ROUND_S, warm_s=WARM_S))
                run = runs[is_watched][-1]
                print(f"{'watched' if is_watched else 'calm'}: {cost_us(run):.2f} us, {run.per_s:,.0f}/s", flush=True)
    calm, seen = (statistics.median(map(cost_us, runs[is_watched])) for is_watched in (False, True))
    rate = statistics.median(run.per_s for run in runs[True])
    share = rate * (seen - calm) / 1e6
    print(f"a message: {calm:.2f} us, watched {seen:.2f} us, at {rate:,.0f} a second")
    print(f"watching takes {100 * share:.1f} % of the router's processor: {1 - share:.3f} of its throughput is left")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
