"""Plays many scenarios in a row, and holds down meanwhile what they have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from router.whatif.kernel.mesh_kernel import Kernel

LEAST_RUN: Final = 100
"""Scenarios in a row for which it is worth while to hold down what they share."""

Failure = tuple[Sequence[int], Sequence[int]]
"""Links and routers."""


def fail_one_by_one(
    kernel: Kernel,
    links: Sequence[int],
    link_offsets: Sequence[int],
    routers: Sequence[int],
    router_offsets: Sequence[int],
) -> Iterator[int]:
    """Have one scenario after the other fail in *kernel*, of which nothing has failed before and afterwards.

    Args:
        kernel: in its base state.
        links: of all scenarios, one after the other; likewise *routers*.
        link_offsets: where those of each scenario begin, and where the last ones end; likewise *router_offsets*.
        routers: of all scenarios, one after the other.
        router_offsets: the same of *routers*.
    Yields: the place of each scenario, which has failed then.
    """
    failures: list[Failure] = [
        (links[first_link:last_link], routers[first_router:last_router])
        for (first_link, last_link), (first_router, last_router) in zip(
            pairwise(link_offsets), pairwise(router_offsets), strict=True
        )
    ]
    place = 0
    try:
        while place < len(failures):
            stop, shared = run_with_shared_failures(failures, place)
            if stop - place >= LEAST_RUN:
                kernel.hold(*shared)
            for number in range(place, stop):
                kernel.fail(*failures[number])
                yield number
                kernel.restore()
            kernel.release()
            place = stop
    finally:
        kernel.release()


def run_with_shared_failures(failures: Sequence[Failure], place: int) -> tuple[int, Failure]:
    """Find the end of the scenarios from *place* on that share something, and what all of them share."""
    links, routers = failures[place]
    stop = place + 1
    if len(links) + len(routers) < 2:  # to hold down all of a scenario helps no other
        return stop, ([], [])
    while stop < len(failures):
        next_links = [link for link in links if link in failures[stop][0]]
        next_routers = [router for router in routers if router in failures[stop][1]]
        if not next_links and not next_routers:
            break
        links, routers = next_links, next_routers
        stop += 1
    return stop, (links, routers)
