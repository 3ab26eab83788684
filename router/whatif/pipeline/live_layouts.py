"""Tables of what is watched of a live mesh, and of forecasts that are made of it: their columns, what each means."""

from __future__ import annotations

from typing import Final

from router.whatif.pipeline.schema_types import (
    MOMENT,
    TEXT,
    Column,
    Layout,
    count,
    directed,
    flag,
    listing,
    real,
    text,
)  # fmt: skip

LINK_RATE: Final = Layout(
    name="link_rate",
    doc="Traffic of each link of a live mesh, interval by interval, as `whatif watch` reads it from the "
    "routers' counters. Intervals of a link follow each other without a gap as long as its routers "
    "answer.",
    key=("ended", "link", "src"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="Time of the previous reading of the counters."),
        Column(name="ended", kind=MOMENT, doc="Time of the reading of the counters."),
        *directed(),
        count("messages", "Messages sent in the interval.", unit="messages"),
        count("bytes", "Bytes sent in the interval, with AMQP framing.", unit="bytes"),
        real("msgs_per_s", "Messages per second in the interval.", "msg/s"),
        real("bytes_per_s", "Bytes per second in the interval.", "B/s"),
        real(
            "capacity_msgs",
            "Capacity of the link in this direction, from the model or --capacity-msgs; null when not known.",
            "msg/s",
            is_nullable=True,
        ),
        real(
            "capacity_bytes",
            "Capacity of the link in this direction in bytes/s, from the model or --capacity-bytes; null when "
            "not known.",
            "B/s",
            is_nullable=True,
        ),
        real(
            "utilisation",
            "Rate divided by capacity, the larger of messages and bytes; null without a capacity.",
            "1",
            is_nullable=True,
        ),
        real("headroom", "1 - `utilisation`.", "1", is_nullable=True),
        flag(
            "is_reset",
            "Whether the link's connection is new since `begun`: it broke, or a router restarted. What the "
            "previous one carried after its last reading is not known.",
        ),
    ),
)

ADDRESS_RATE: Final = Layout(
    name="address_rate",
    doc="Traffic that entered a live mesh at each router for each address, interval by interval, as "
    "`whatif watch --addresses` reads it from the routers' counters. Addresses for which nothing came "
    "have no row.",
    key=("ended", "router", "address"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="Time of the previous reading of the counters."),
        Column(name="ended", kind=MOMENT, doc="Time of the reading of the counters."),
        text("router", "The router whose clients sent."),
        text("address", "The address; empty for all addresses together: every interval of a router has such a row."),
        count("messages", "Messages that entered the mesh in the interval.", unit="messages"),
        real("msgs_per_s", "Messages per second in the interval.", "msg/s"),
        real(
            "msg_bytes",
            "Mean size of all messages that the router's current clients have sent, with AMQP framing; null "
            "when they sent nothing.",
            "bytes",
            is_nullable=True,
        ),
        flag(
            "is_reset",
            "Whether the counter was reset since `begun`: the router restarted, or nobody used the address "
            "for a while. What came between `begun` and the reset is not known.",
        ),
    ),
)


def _trend(what: str, unit: str) -> tuple[Column, ...]:
    """Columns of a straight line through the periods of a history."""
    return (
        count("periods", "Periods of the history on which the trend is based.", unit="periods"),
        real("level", f"{what} in the last period, by the fitted line.", unit),
        real("growth", "Change of the fitted line in each period.", f"{unit} a period"),
        real("error", "Standard deviation of the periods from the fitted line.", unit),
        real("expected", "Value of the fitted line at the horizon.", unit),
        real("low", "Lower end of the prediction band at the horizon, for the confidence level of the run.", unit),
        real("high", "Upper end of the prediction band at the horizon.", unit),
    )


_PUBLISHED: Final = (
    text("router", "The router whose clients send."),
    text("address", "The address that they send to."),
)

DEMAND_RATE: Final = Layout(
    name="demand_rate",
    doc="Demand matrix of each hour (of each minute, with `--period hour`): what entered the mesh at a router for an "
    "address. Hours of which less than half was watched are left out, and addresses for which nothing came.",
    key=("begun", "router", "address"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="Beginning of the hour."),
        *_PUBLISHED,
        real("msgs_per_s", "Messages per second of the time that was watched.", "msg/s"),
        real("msg_bytes", "Mean size of a message; null when not known.", "bytes", is_nullable=True),
    ),
)

DEMAND_PERIOD: Final = Layout(
    name="demand_period",
    doc="Demands by period, such as a week, made from the hours of `demand_rate`, with those without "
    "messages. Periods of which the router was watched for less than four hours in five are left out.",
    key=("begun", "router", "address"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="Beginning of the period, UTC; a week begins on Monday."),
        *_PUBLISHED,
        count("hours", "Hours of the period that were watched.", unit="hours"),
        real("mean", "Mean over the hours of the period.", "msg/s"),
        real("p50", "Median over the hours of the period.", "msg/s"),
        real("p95", "95th percentile over the hours of the period.", "msg/s"),
        real("p99", "99th percentile over the hours of the period.", "msg/s"),
        real("max", "Rate in the busiest hour of this demand.", "msg/s"),
        real(
            "busy",
            "Rate in the busy hour of the mesh: the hour in which most messages entered at all routers together. The "
            "mean if the router was not watched in that hour.",
            "msg/s",
        ),
        real("msg_bytes", "Mean size of a message; null when not known.", "bytes", is_nullable=True),
    ),
)

DEMAND_FORECAST: Final = Layout(
    name="demand_forecast",
    doc="The trend of each demand, for the level of the run (`busy` by default).",
    key=("router", "address"),
    columns=(
        *_PUBLISHED,
        *_trend("Demand", "msg/s"),
        real(
            "msg_bytes",
            "Mean size of a message in the last period that has it; null when not known.",
            "bytes",
            is_nullable=True,
        ),
    ),
)

LINK_FORECAST: Final = Layout(
    name="link_forecast",
    doc="When each direction of each link will be full: while nothing fails, and in the failure that "
    "fills it first. The demands of each period are run through all failures, and the trend is that "
    "of the utilisation in the same failure from period to period. Links without capacity are left "
    "out.",
    key=("link", "src", "is_failure"),
    columns=(
        *directed(),
        flag("is_failure", "Whether something fails; else the row is about the mesh without failures."),
        listing("failed_links", TEXT, "Links that fail."),
        listing("failed_routers", TEXT, "Routers that fail."),
        text("group", "The group that fails.", is_nullable=True),
        *_trend("Utilisation", "1"),
        count(
            "full_in",
            "Periods from the last one until the line reaches the limit, 0 when it has; null when it doesn't within "
            "the horizon.",
            is_nullable=True,
            unit="periods",
        ),
        count(
            "earliest",
            "Periods until the upper end of the band reaches the limit; null when it doesn't within the horizon.",
            is_nullable=True,
            unit="periods",
        ),
        count(
            "latest",
            "Periods until the lower end of the band reaches the limit; null when it doesn't within the horizon.",
            is_nullable=True,
            unit="periods",
        ),
        Column(name="full_at", kind=MOMENT, doc="Beginning of the period of `full_in`.", is_nullable=True),
        real(
            "upgrade",
            "Factor by which the capacity must grow to keep the link below the limit until the horizon, by the "
            "upper end of the band; null when the present capacity is enough.",
            "1",
            is_nullable=True,
        ),
    ),
)
