"""Tables of what is watched of a live mesh, and of forecasts that are made of it: their columns, what each means."""

from __future__ import annotations

from typing import Final

from router.whatif.pipeline.layout_columns import (
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
    doc="What has passed over each link of a live mesh, interval by interval, as `whatif watch` reads it from the "
    "routers' counters. Intervals of a link follow each other without a gap as long as its routers answer.",
    key=("ended", "link", "src"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="When the counters were read before."),
        Column(name="ended", kind=MOMENT, doc="When they were read."),
        *directed(),
        count("messages", "Messages that the sender has sent in between.", unit="messages"),
        count("bytes", "Bytes of these, everything of AMQP included.", unit="bytes"),
        real("msgs_per_s", "Messages by time.", "msg/s"),
        real("bytes_per_s", "Bytes by time.", "B/s"),
        real(
            "capacity_msgs",
            "Capacity of the link in this direction, the model's or that of --capacity-msgs; null when not known.",
            "msg/s",
            is_nullable=True,
        ),
        real("capacity_bytes", "The same in bytes, or that of --capacity-bytes.", "B/s", is_nullable=True),
        real(
            "utilisation",
            "Rate by capacity, the larger one of messages and bytes; null without a capacity.",
            "1",
            is_nullable=True,
        ),
        real("headroom", "1 - `utilisation`.", "1", is_nullable=True),
        flag(
            "is_reset",
            "Whether the link's connection is new since `begun`: it broke, or a router started anew. What the one "
            "before carried after it was read last is not known.",
        ),
    ),
)

ADDRESS_RATE: Final = Layout(
    name="address_rate",
    doc="What has entered a live mesh at each router for each address, interval by interval, as `whatif watch "
    "--addresses` reads it from the routers' counters. Addresses for which nothing came have no row.",
    key=("ended", "router", "address"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="When the counters were read before."),
        Column(name="ended", kind=MOMENT, doc="When they were read."),
        text("router", "The router whose clients sent."),
        text("address", "The address; empty for all together, a row that there is of every interval of a router."),
        count("messages", "Messages that entered in between.", unit="messages"),
        real("msgs_per_s", "Messages by time.", "msg/s"),
        real(
            "msg_bytes",
            "Mean size of all that the router's clients have sent since they came, everything of AMQP included; null "
            "when they sent nothing.",
            "bytes",
            is_nullable=True,
        ),
        flag(
            "is_reset",
            "Whether the router counts anew since `begun`: it has started anew, or nobody used the address for a "
            "while. What came between `begun` and then is not known.",
        ),
    ),
)


def _trend(what: str, unit: str) -> tuple[Column, ...]:
    """Columns of a straight line through the periods of a history."""
    return (
        count("periods", "Periods of the history that it is made of.", unit="periods"),
        real("level", f"{what} in the last of them, by the line through all.", unit),
        real("growth", "What is added in each period.", f"{unit} a period"),
        real("error", "Standard deviation of the periods from the line.", unit),
        real("expected", "The line at the horizon.", unit),
        real("low", "Lower end of its band there, of the confidence that was asked.", unit),
        real("high", "Upper end of its band there.", unit),
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
        Column(name="begun", kind=MOMENT, doc="When the hour began."),
        *_PUBLISHED,
        real("msgs_per_s", "Messages by the time that was watched.", "msg/s"),
        real("msg_bytes", "Mean size; null when not known.", "bytes", is_nullable=True),
    ),
)

DEMAND_PERIOD: Final = Layout(
    name="demand_period",
    doc="Demands by period, such as a week: of the hours of `demand_rate`, those without messages included. Only of "
    "periods of which four hours in five were watched.",
    key=("begun", "router", "address"),
    columns=(
        Column(name="begun", kind=MOMENT, doc="When the period began: a week on Monday, UTC."),
        *_PUBLISHED,
        count("hours", "Hours of it that were watched.", unit="hours"),
        real("mean", "Mean of them.", "msg/s"),
        real("p50", "Half of them have no more.", "msg/s"),
        real("p95", "95 % of them have no more.", "msg/s"),
        real("p99", "99 % of them have no more.", "msg/s"),
        real("max", "The busiest hour of this demand.", "msg/s"),
        real("busy", "The busy hour of the mesh: the one in which most entered at all routers together.", "msg/s"),
        real("msg_bytes", "Mean size; null when not known.", "bytes", is_nullable=True),
    ),
)

DEMAND_FORECAST: Final = Layout(
    name="demand_forecast",
    doc="The trend of each demand, of the level that was asked for (`busy`, unless said otherwise).",
    key=("router", "address"),
    columns=(
        *_PUBLISHED,
        *_trend("Demand", "msg/s"),
        real("msg_bytes", "Mean size in the last period that has it; null when not known.", "bytes", is_nullable=True),
    ),
)

LINK_FORECAST: Final = Layout(
    name="link_forecast",
    doc="When each direction of each link will be full: while nothing fails, and in the failure that fills it first. "
    "The demands of each period are played through all failures, and the trend is that of the utilisation in the same "
    "failure from period to period. Links without capacity are left out.",
    key=("link", "src", "is_failure"),
    columns=(
        *directed(),
        flag("is_failure", "Whether something fails; else the row is about the mesh as it is."),
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
        count("earliest", "The same of the upper end of the band.", is_nullable=True, unit="periods"),
        count("latest", "The same of the lower end of the band.", is_nullable=True, unit="periods"),
        Column(name="full_at", kind=MOMENT, doc="When that period (`full_in`) begins.", is_nullable=True),
        real(
            "upgrade",
            "So many times its capacity keep it below the limit at the horizon, at the upper end of the band; null "
            "when what it has does.",
            "1",
            is_nullable=True,
        ),
    ),
)
