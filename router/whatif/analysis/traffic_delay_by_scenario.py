"""Delay of the messages of one address, or of one class, in each scenario of a run.

The table `scenario` has the delay of all pairs of routers, whoever sends to whom. Which paths the messages of an
address take follows from its treatment and from what has failed, so scenarios are played again, but for those in which
no pair of routers at all is as far apart as what was found before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.analysis.paths_and_flows import IngressEgressFlow, RoutingState
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network, micro
from router.whatif.kernel.scenario_loop import fail_one_by_one
from router.whatif.model.demands import NOBODY
from router.whatif.model.mesh_model import Model

PERCENT: Final = 99
"""Percentile of the delays: this share of the messages with a path is not under way for longer."""

Sent = tuple[int, int]
"""Messages of one demand: delay in microseconds, millionths of messages/s."""


@attrs.frozen(kw_only=True, eq=False)
class TrafficSelection:
    """Messages of an address, or of a class."""

    most_us: float
    """The limit: a longer delay is to be found in every scenario that has one."""
    pairs: tuple[tuple[int, int, int], ...]
    """Source, destination and rate of demands for routers."""
    parts: Mapping[tuple[int, int], float]
    """Share of the chosen messages in what a source sends to an address, by (address, source)."""

    @classmethod
    def to_address(cls, network: Network, text: str, most_ms: float) -> TrafficSelection:
        """Traffic to one address, which there has to be; *most_ms* is its limit."""
        address = network.addresses.index(text)
        srcs = network.publisher_src[network.publisher_address == address].tolist()
        return cls(most_us=1000 * most_ms, pairs=(), parts={(address, src): 1.0 for src in srcs})

    @classmethod
    def of_class(cls, network: Network, model: Model, name: str, most_ms: float) -> TrafficSelection:
        """Traffic of one class, which there has to be; *most_ms* is its limit."""
        demands = model.demands
        chosen = demands.chosen(demands.klass == demands.names.index(name))
        routers = chosen.places(network.routers)
        rates = micro(chosen.msgs_per_s, "messages/s")
        is_pair = chosen.dst != NOBODY
        ends = zip(*(routers[column[is_pair]].tolist() for column in (chosen.src, chosen.dst)), strict=True)
        pairs = tuple((src, dst, rate) for (src, dst), rate in zip(ends, rates[is_pair].tolist(), strict=True))
        own: dict[tuple[int, int], int] = {}
        addresses = chosen.places(network.addresses)[chosen.address[~is_pair]]
        for key in zip(
            addresses.tolist(), routers[chosen.src[~is_pair]].tolist(), rates[~is_pair].tolist(), strict=True
        ):
            own[key[:2]] = own.get(key[:2], 0) + key[2]
        published = dict(
            zip(
                zip(network.publisher_address.tolist(), network.publisher_src.tolist(), strict=True),
                network.publisher_rate.tolist(),
                strict=True,
            )
        )
        return cls(
            most_us=1000 * most_ms,
            pairs=pairs,
            parts={key: rate / published[key] for key, rate in own.items() if published[key]},
        )


def delays_ms(
    outcomes: Outcomes, among: NDArray[np.bool_], network: Network, traffic: Sequence[TrafficSelection]
) -> list[NDArray[np.float64]]:
    """Find the delay that 99 % of the messages with a path do not exceed, for each kind of traffic.

    Args:
        outcomes: of a run.
        among: mask of the rows that are looked at, all of the variant that *network* is.
        network: of the run's variant.
        traffic: what is looked at.
    Returns: for each traffic an array by row, milliseconds. NaN for rows that are not looked at, in which none of the
        messages has a path, or in which the delay is neither above the limit nor the highest of all.
    """
    found = [np.full(len(outcomes), np.nan) for _ in traffic]
    highest = [-1] * len(traffic)
    rows = np.flatnonzero(among)
    kernel = Kernel(network)
    for place, routes in played(outcomes, rows, network, kernel):
        longest = kernel.longest_delay_us()
        left = [at for at, each in enumerate(traffic) if longest > min(each.most_us, max(highest[at], 0)) or not place]
        if not left:
            continue
        for at, delay in zip(left, _delays(routes, [traffic[at] for at in left]), strict=True):
            if delay is not None:
                found[at][rows[place]] = delay / 1000
                highest[at] = max(highest[at], delay)
    return found


def played(
    outcomes: Outcomes, rows: NDArray[np.intp], network: Network, kernel: Kernel
) -> Iterator[tuple[int, RoutingState]]:
    """Play scenarios of a run again.

    Args:
        outcomes: of the run.
        rows: of the scenarios, all of the variant that *network* is.
        network: of the run's variant.
        kernel: of *network*, in its base state, as it is again afterwards.
    Yields: the place of each in *rows*, and the state of the kernel, in which it has failed until the next one.
    """
    links, link_offsets = _failed(outcomes, rows, "failed_links", network.links)
    routers, router_offsets = _failed(outcomes, rows, "failed_routers", network.routers)
    for place in fail_one_by_one(kernel, links, link_offsets, routers, router_offsets):
        own = links[link_offsets[place] : link_offsets[place + 1]]
        yield place, RoutingState(network, kernel, own, routers[router_offsets[place] : router_offsets[place + 1]])


def _failed(
    outcomes: Outcomes, rows: NDArray[np.intp], column: str, names: tuple[str, ...]
) -> tuple[list[int], list[int]]:
    """Places of what has failed in each row, one after the other, and where those of each row begin and end."""
    lists = outcomes.column(column).take(pa.array(rows)).combine_chunks()
    places = pc.index_in(pc.list_flatten(lists), value_set=pa.array(names, pa.string()))
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return places.to_pylist(), [0, *np.cumsum(counts).tolist()]


def _delays(routes: RoutingState, traffic: Sequence[TrafficSelection]) -> Iterator[int | None]:
    """99th percentile of the delay of each kind of traffic, microseconds; None when none of its messages has a path."""
    flows: dict[tuple[int, int], list[IngressEgressFlow]] = {}
    for flow in routes.flows({address for each in traffic for address, _ in each.parts}):
        flows.setdefault((flow.address, flow.src), []).append(flow)
    for each in traffic:
        yield percentile([*_of_pairs(routes, each), *_of_flows(routes, each, flows)])


def _of_pairs(routes: RoutingState, traffic: TrafficSelection) -> Iterator[Sent]:
    for src, dst, rate in traffic.pairs:
        if routes.distance(src, dst) is not None:
            yield routes.kernel.delay_us(src, dst), rate


def _of_flows(
    routes: RoutingState, traffic: TrafficSelection, flows: Mapping[tuple[int, int], list[IngressEgressFlow]]
) -> Iterator[Sent]:
    for key, part in traffic.parts.items():
        for flow in flows.get(key, ()):
            if flow.dst is not None:
                yield routes.kernel.delay_us(flow.src, flow.dst), round(flow.rate * part)


def percentile(sent: Iterable[Sent]) -> int | None:
    """The least delay that PERCENT of the messages do not exceed; None when there are none."""
    rows = sorted(sent)
    total = sum(rate for _, rate in rows)
    passed = 0
    for delay, rate in rows:
        passed += rate
        if total and 100 * passed >= PERCENT * total:
            return delay
    return None
