"""Measure the kernel of what-if at several sizes, on one core, and print a table.

    python -m tests.measure.whatif.speed              50 to 2,000 routers, about two minutes
    python -m tests.measure.whatif.speed --sizes 300 400      at other sizes
    python -m tests.measure.whatif.speed --delays     with delays of links, whose percentiles then are worked out too

Random meshes of twice as many links as routers, costs from 1 to 10, a demand between every two routers. A scenario is
worked out with its whole summary, and the worst loads of links are kept. Time is that of the processor. The last column
has the exponent with which a figure grows: 0 when it does not depend on the size, 1 when it doubles with it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import time
from collections.abc import Callable, Sequence

import numpy as np

from router.speed import describe
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.kernel.scenario_loop import fail_one_by_one
from router.whatif.kernel.worst_utilisation import WorstUtilisations
from router.whatif.model.demands import DEFAULT_CLASS, NOBODY, Demands
from router.whatif.model.elements import LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model
from tests.measure.scale.stand import Table
from tests.measure.scale.tables import show

SIZES = (50, 100, 300, 400, 1000, 2000)
LONG_ENOUGH_S = 1.0
"""Of processor time, for each figure."""
ROW = 600
"""Double failures of links in a row that share one, as they do when all of them are played."""


def random_mesh(size: int, *, has_delays: bool = False, seed: int = 1) -> Model:
    """Twice as many links as routers, and the same size of message between all of them."""
    rng = random.Random(seed)
    ids = [f"R{number:05}" for number in range(size)]
    ends = {(rng.randrange(number), number) for number in range(1, size)}
    while len(ends) < min(2 * size, size * (size - 1) // 2):
        one, other = sorted(rng.sample(range(size), 2))
        ends.add((one, other))
    links = [
        LinkEdge(
            id=f"{ids[a]}--{ids[b]}",
            a=ids[a],
            b=ids[b],
            cost=rng.randint(1, 10),
            delay_ms=rng.uniform(0.1, 10) if has_delays else None,
        )
        for a, b in sorted(ends)
    ]
    src, dst = (axis.astype(np.int32) for axis in np.divmod(np.arange(size * size), size))
    chosen = src != dst
    src, dst = src[chosen], dst[chosen]
    demands = Demands.of_columns(
        (*ids, DEFAULT_CLASS),
        src,
        dst,
        np.full(len(src), NOBODY, dtype=np.int32),
        np.full(len(src), size, dtype=np.int32),
        msgs_per_s=np.random.default_rng(seed).random(len(src)),
        msg_bytes=np.full(len(src), 1000.0),
    )
    model = Model(routers=[RouterNode(id=router) for router in ids], links=links, demands=demands)
    model.check()
    return model


def rate(play: Callable[[Sequence[tuple[int, ...]]], None], failures: Sequence[tuple[int, ...]]) -> float:
    """Scenarios for each second of processor time: the best of several rounds, since others use the machine too."""
    best = 0.0
    spent = 0.0
    while spent < LONG_ENOUGH_S:
        began = time.process_time()
        play(failures)
        took = time.process_time() - began
        spent += took
        best = max(best, len(failures) / took)
    return best


def measure(size: int, has_delays: bool) -> dict[str, tuple[float, str]]:
    """Figures of one size, with their units."""
    rng = random.Random(size)
    network = Network.of(random_mesh(size, has_delays=has_delays))
    began = time.process_time()
    kernel = Kernel(network)
    base_s = time.process_time() - began
    worst = WorstUtilisations(kernel)
    links = len(network.links)

    def play(failures: Sequence[tuple[int, ...]], *, are_routers: bool = False) -> None:
        for number, failure in enumerate(failures):
            kernel.fail((), failure) if are_routers else kernel.fail(failure, ())
            worst.offer(number)
            kernel.summary()
            kernel.restore()
        worst.clear()

    def play_rows(failures: Sequence[tuple[int, ...]]) -> None:
        flat = [link for failure in failures for link in failure]
        offsets = list(range(0, len(flat) + 1, 2))
        for place in fail_one_by_one(kernel, flat, offsets, [], [0] * len(offsets)):
            worst.offer(place)
            kernel.summary()
        worst.clear()

    few = max(10, 60_000 // size)
    one = rng.randrange(links)
    doubles = [(one, other) for other in rng.sample(range(links), min(links, ROW)) if other != one]
    return {
        "base state": (base_s, "s"),
        "single failures of links": (rate(play, [(link,) for link in rng.choices(range(links), k=few)]), "/s"),
        "single failures of routers": (
            rate(
                lambda failures: play(failures, are_routers=True),
                [(router,) for router in rng.choices(range(size), k=few)],
            ),
            "/s",
        ),
        "double failures of links, in any order": (
            rate(play, [tuple(rng.sample(range(links), 2)) for _ in range(few)]),
            "/s",
        ),
        "double failures of links, all": (rate(play_rows, doubles), "/s"),
        "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0, "B"),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="speed", description="Measure the kernel of what-if.")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="routers; by default 50 to 2,000")
    parser.add_argument("--delays", dest="has_delays", action="store_true", help="with delays of links")
    options = parser.parse_args()
    table = Table(f"Scenarios a second on one core, {describe()}")
    # Each size in a process of its own, which has its own memory.
    context = multiprocessing.get_context("spawn")
    for size in options.sizes:
        with context.Pool(1) as pool:
            for what, (value, unit) in pool.apply(measure, (size, options.has_delays)).items():
                table.add(size, what, value, unit)  # type: ignore[arg-type]
    show(table)


if __name__ == "__main__":
    main()
