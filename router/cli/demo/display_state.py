"""DisplayState: all that the demonstration shows at one moment."""

from __future__ import annotations

import math
import time
from collections import Counter
from itertools import pairwise

import attrs

from router.cli.demo.blueprint import CALLERS, CUT, LINKS, ROUTERS, SERVERS
from router.cli.demo.measures import CUT_STREAM, CallStream, Measures, percentile, rate
from router.cli.demo.reported_routes import Routes, are_neighbors, path, path_text

SERVER_ROUTERS = {server: router for router, server in SERVERS.items()}


@attrs.define(kw_only=True)
class DisplayState:
    """The state of mesh and load."""

    seconds: float
    """Time under load."""
    started_at: float = attrs.field(factory=time.monotonic)
    """Begin of the command; events are told in seconds since then. Seconds, monotonic."""
    routes: Routes = attrs.field(factory=dict)
    measures: Measures = attrs.field(factory=Measures)
    events: list[tuple[float, str]] = attrs.field(factory=list)
    """Events: the time of each, and what happened."""
    paths_before: dict[tuple[str, str], tuple[str, ...] | None] = attrs.field(factory=dict)
    """Path from each caller's router to each server, before the cut."""

    @property
    def is_cut(self) -> bool:
        """Whether the link has been cut."""
        return self.measures.cut_at < math.inf

    @property
    def load_s(self) -> float:
        """Time under load so far."""
        began_at = self.measures.began_at
        return 0.0 if math.isnan(began_at) else min(self.seconds, time.monotonic() - began_at)

    def paths(self) -> dict[tuple[str, str], tuple[str, ...] | None]:
        """Path from each caller's router to each server, now."""
        return {
            (caller, server): path(self.routes, caller, router)
            for caller in CALLERS
            for server, router in SERVER_ROUTERS.items()
        }

    def up_links(self) -> set[tuple[str, str]]:
        """Links that messages take."""
        return {link for link in LINKS if are_neighbors(self.routes, *link)}

    def shown_links(self) -> set[tuple[str, str]]:
        """Links on the way of the calls that the cut is about."""
        way = path(self.routes, CUT[1], CUT[0]) or ()
        return {(min(pair), max(pair)) for pair in pairwise(way)}

    def known_routers(self) -> list[str]:
        """Routers that have answered."""
        return [router for router in ROUTERS if router in self.routes]

    def now(self, streams: list[CallStream]) -> tuple[float, float, float]:
        """Calls per second, p50 and p99 of their latency in seconds, lately."""
        at = time.monotonic()
        for stream in streams:
            stream.forget_old(at)
        latencies = [latency for stream in streams for _, latency, _ in stream.recent]
        return (
            rate(streams, at, self.measures.began_at),
            percentile(latencies, 0.5),
            percentile(latencies, 0.99),
        )

    def path_now(self, stream: CallStream) -> str:
        """The way of a stream's calls; of those that name no server, the ways by share."""
        paths = self.paths()
        if stream.where in SERVER_ROUTERS:
            return path_text(paths[stream.router, stream.where])
        # Calls from before the cut went by other paths than those of now.
        since = self.measures.cut_at if self.is_cut else 0.0
        servers = Counter(server for ended, latency, server in stream.recent if ended - latency >= since)
        return shares(servers, stream.router, paths, above=0.05)

    def resumed_s(self) -> float:
        """Seconds from the cut to the answer of the first call by another way; infinite while there is none."""
        return self.measures.resumed_at - self.measures.cut_at if self.is_cut else math.inf

    def path_of_cut_stream(self) -> str:
        """The way of the calls that the cut is about."""
        return self.path_now(self.measures.streams[CUT_STREAM])


def shares(
    servers: Counter[str], caller: str, paths: dict[tuple[str, str], tuple[str, ...] | None], *, above: float = 0.0
) -> str:
    """`C -> D 80 %, C -> A 20 %`: the ways of calls that name no server; only those with a share *above* 0 to 1."""
    total = servers.total()
    return ", ".join(
        f"{path_text(paths.get((caller, server)))} {100 * count / total:.0f} %"
        for server, count in sorted(servers.items(), key=lambda item: (-item[1], item[0]))
        if count > above * total
    )
