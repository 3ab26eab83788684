"""Metrics for Prometheus: what there is, and how it is written.

The table says each metric's name, kind, labels and meaning; the reference (docs/reference/metrics.md) is made from it.
Labels have few values: neighbors, listeners, configured prefixes and patterns of addresses, reasons. None is an
address that a client chose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

import attrs
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector, CollectorRegistry

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
PREFIX: Final = "amqp_mesh_"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"


@attrs.frozen
class MetricSpec:
    """One metric."""

    name: str
    """Without the prefix, and of a counter without `_total`."""
    kind: str
    doc: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Name as Prometheus shows it."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == COUNTER else ''}"


def _spec(kind: str) -> Callable[..., MetricSpec]:
    return lambda name, doc, *labels: MetricSpec(name, kind, doc, labels)


_counter, _gauge, _histogram = _spec(COUNTER), _spec(GAUGE), _spec(HISTOGRAM)

GROUPS: Final[Mapping[str, Sequence[MetricSpec]]] = {
    "The router": (
        _gauge("router_info", "Always 1; its labels say which router this is.", "router", "version", "speed", "site"),
        _gauge("ready", "1 when the router is ready: listeners are up and the mesh is joined (/readyz)."),
        _counter("messages", "Messages that entered the mesh here, left it here, or passed.", "direction"),
        _counter("outcomes", "Messages of clients and neighbors, by outcome.", "outcome"),
        _counter("presettled_messages", "Messages received pre-settled."),
        _counter("dropped_messages", "Settled messages and multicast copies that were dropped.", "reason"),
        _counter("waits_given_up", "Waiting messages that were given up, settled or not.", "reason"),
        _gauge("unsettled_deliveries", "Deliveries, incoming and outgoing, that have no outcome yet."),
        _gauge("waiting_messages", "Messages waiting here for a subscriber's or neighbor's credit."),
        _gauge("waiting_bytes", "Bytes of the messages waiting here."),
        _gauge("links", "Open data links.", "direction"),
    ),
    "Addresses": (
        _gauge("addresses", "Known addresses.", "pattern"),
        _counter(
            "address_messages",
            "Messages for these addresses that entered the mesh here, left it here, or passed.",
            "pattern",
            "direction",
        ),
        _counter("address_released_messages", "Messages that this router released.", "pattern"),
        _counter(
            "address_dropped_messages",
            "Settled messages and multicast copies for these addresses that were dropped.",
            "pattern",
        ),
        _gauge("address_publishers", "Publishers attached to this router.", "pattern"),
        _gauge("address_subscribers", "Subscribers attached to this router.", "pattern"),
        _gauge(
            "address_blocked_publishers",
            "Publishers attached here that have no credit although the address has a subscriber.",
            "pattern",
        ),
        _gauge(
            "address_blocked_seconds",
            "Longest time that a publisher attached here has been without credit although the address has a "
            "subscriber; 0 when none is.",
            "pattern",
        ),
        _gauge("address_subscribers_without_credit", "Subscribers attached here that grant no credit.", "pattern"),
        _gauge("address_waiting_messages", "Messages waiting at these addresses.", "pattern"),
        _gauge("address_waiting_bytes", "Bytes of the messages waiting at these addresses.", "pattern"),
        _gauge(
            "address_oldest_wait_seconds",
            "Time that the oldest message waiting at these addresses has waited; 0 when none waits.",
            "pattern",
        ),
        _histogram(
            "settle_seconds",
            "Time from the arrival of a message here to its outcome; sampled from one message in each round "
            "of reading.",
            "pattern",
        ),
    ),
    "Neighbors": (
        _gauge(
            "neighbor_up",
            "1 while a connection to the neighbor is in use; none of one that left the mesh file.",
            "neighbor",
        ),
        _gauge("neighbor_link_cost", "Cost of the link to the neighbor, the larger of both ends.", "neighbor"),
        _counter("neighbor_losses", "Times the connection to the neighbor was lost.", "neighbor"),
        _counter("neighbor_messages", "Messages from the neighbor (in) and to it (out).", "neighbor", "direction"),
        _counter(
            "neighbor_bytes",
            "Bytes on the connections to the neighbor, with AMQP framing and control messages.",
            "neighbor",
            "direction",
        ),
        _gauge("neighbor_unsettled_messages", "Messages sent to the neighbor that have no outcome yet.", "neighbor"),
        _gauge("neighbor_waiting_messages", "Messages waiting for credit on links to the neighbor.", "neighbor"),
        _gauge("neighbor_round_trip_seconds", "Shortest recent TCP round trip to the neighbor.", "neighbor"),
        _gauge("circuits", "Open circuits from the neighbor (in) and to it (out).", "neighbor", "direction"),
    ),
    "The mesh": (
        _gauge("problems", "Current problems, by kind; `amqp-mesh stat problems` explains each.", "kind"),
        _gauge("routers_reachable", "Other routers that can be reached."),
        _gauge("routers_expected", "Other routers named in the mesh file; 0 for a router with a file of its own."),
        _gauge(
            "routers_unreachable",
            "Routers whose link state is known but that cannot be reached; forgotten after "
            "`remote_ls_max_age_s` (`amqp_mesh_problems` with `router-absent` stays).",
        ),
        _gauge("routers_at_hops", "Routers that can be reached, by the number of hops to them.", "hops"),
        _counter("reroutes", "Times the path to a reachable router changed."),
        _counter("spf_runs", "Computations of all shortest paths."),
        _histogram(
            "convergence_seconds", "Time from the news of a topology change until this router's paths were updated."
        ),
        _counter("control_messages", "Routing protocol messages, by kind.", "direction", "opcode"),
        _counter(
            "control_messages_ignored", "Routing protocol messages that were ignored because they were of no use."
        ),
        _counter("control_messages_dropped", "Routing protocol messages that were dropped.", "reason"),
    ),
    "Connections": (
        _gauge("connections", "Open connections, by role.", "role"),
        _gauge("listener_connections", "Open connections of the listener.", "listener"),
        _counter("listener_accepted", "Connections accepted by the listener.", "listener"),
        _counter(
            "listener_refused",
            "Connections closed by the listener as soon as they came, or (`handshakes_full`) before their Open.",
            "listener",
            "reason",
        ),
        _gauge(
            "connector_up",
            "1 while the connector's neighbor speaks, or its connection stands by.",
            "connector",
        ),
        _counter("client_bytes", "Bytes on all client connections.", "direction"),
        _gauge("http_connections", "Open HTTP connections."),
        _counter("http_accepted", "HTTP connections accepted."),
        _counter("http_evicted", "HTTP connections closed because there were too many."),
    ),
    "Memory": (
        _gauge("held_bytes", "Bytes held because of peers: messages, unread windows, unwritten output."),
        _gauge(
            "held_mark_bytes", "Mark of held bytes above which connections with more than their share have to wait."
        ),
        _gauge("above_mark", "1 while held bytes exceed the mark."),
        _gauge("connections_above_mark", "Connections that exceed their own mark."),
    ),
}
"""Specifications of all metrics, by heading of the reference."""

SPECS: Final = {spec.name: spec for specs in GROUPS.values() for spec in specs}


class Measurements:
    """Values of metrics, in the making."""

    def __init__(self) -> None:
        self._values: dict[str, list[tuple[tuple[str, ...], Any]]] = {}

    def set(self, name: str, value: float, *labels: object) -> None:
        """Give the value of a metric for one set of its labels.

        Args:
            name: of a counter or gauge in the table.
            value: in the unit of its name.
            labels: in the order of the table.
        """
        assert len(labels) == len(SPECS[name].labels), name
        self._values.setdefault(name, []).append((tuple(map(str, labels)), value))

    def set_histogram(
        self, name: str, bounds: Sequence[float], counts: Sequence[int], total: float, *labels: object
    ) -> None:
        """Give the classes of a histogram.

        Args:
            name: of a histogram in the table.
            bounds: upper ends of its classes, in the unit of its name.
            counts: by class; one more, for all above.
            total: sum of all values.
            labels: in the order of the table.
        """
        assert len(counts) == len(bounds) + 1
        buckets, sum_so_far = [], 0
        for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
            sum_so_far += count
            buckets.append((bound, sum_so_far))
        self._values.setdefault(name, []).append((tuple(map(str, labels)), (buckets, total)))

    def families(self) -> Iterator[Metric]:
        """All metrics of the table, also those without a value."""
        for spec in SPECS.values():
            yield self._family(spec)

    def _family(self, spec: MetricSpec) -> Metric:
        name, values = PREFIX + spec.name, self._values.get(spec.name, ())
        if spec.kind == HISTOGRAM:
            histogram = HistogramMetricFamily(name, spec.doc, labels=spec.labels)
            for labels, (buckets, total) in values:
                histogram.add_metric(labels, buckets, total)
            return histogram
        kind = CounterMetricFamily if spec.kind == COUNTER else GaugeMetricFamily
        family = kind(name, spec.doc, labels=spec.labels)
        for labels, value in values:
            family.add_metric(labels, value)
        return family


@attrs.frozen
class SingleMetricRegistry:
    """A registry of one metric, for the writer of pages."""

    family: Metric

    def collect(self) -> Iterable[Metric]:
        """Return the only metric of the registry."""
        return (self.family,)


class MetricsSource(Protocol):
    """A router, as metrics see it."""

    def measure(self, into: Measurements) -> Generator[None, None, None]:
        """Take all values; each step takes a few, between two events."""


def process_registry() -> CollectorRegistry:
    """Figures of the process itself: memory, processor time, descriptors, Python's collector."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def metrics_page(source: MetricsSource, process: Collector | CollectorRegistry) -> Generator[None, None, bytes]:
    """Make the page, a piece with each step.

    Args:
        source: the router.
        process: figures of the process.
    Returns: the page, in Prometheus' format for text.
    """
    values = Measurements()
    yield from source.measure(values)
    parts = []
    for family in (*values.families(), *process.collect()):
        parts.append(generate_latest(cast("CollectorRegistry", SingleMetricRegistry(family))))
        yield
    return b"".join(parts)


def reference_text() -> str:
    """Text of `docs/reference/metrics.md`: every metric with its kind, labels and meaning."""
    parts = [_HEAD]
    for title, specs in GROUPS.items():
        parts.append(f"\n## {title}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n")
        for spec in specs:
            labels = ", ".join(f"`{label}`" for label in spec.labels)
            parts.append(f"| `{spec.full_name}` | {spec.kind} | {labels} | {spec.doc} |\n")
    return "".join(parts) + _TAIL


_HEAD: Final = """\
# Metrics

<!-- Made by `python -m router.management.metrics docs/reference/metrics.md`; changes belong there. -->

What a router answers to `GET /metrics` on its HTTP listener ([how to](../how_to/monitor.md)), in the format of
Prometheus. Times are seconds, sizes bytes; what ends in `_total` counts since the router started, everything else is
the state of the moment.

`pattern` is a configured or built-in prefix or pattern of `addresses`, as it is written there; `(other)` stands for
addresses that none matches, `(reply)` for those that routers made for replies, `(router)` for those that routers answer
themselves, `(more)` for all patterns after the first hundred. No label has an address that a client chose, so the
number of series is bounded by the settings: 35 for each pattern in use, 12 for each neighbor, 6 for each listener.
"""

_TAIL: Final = """
## The process

Those of `prometheus_client`: `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`,
`process_start_time_seconds`, `python_gc_collections_total`, `python_info` and so on.
"""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text(), encoding="utf-8")
