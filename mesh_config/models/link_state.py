"""Settings of the routing protocol: timers, and bounds of what other routers may tell."""

from __future__ import annotations

import attrs

from mesh_config.models.setting_field import setting


@attrs.frozen(kw_only=True)
class LinkStateSettings:
    """Timers of the routing protocol (names and defaults of Qpid Dispatch, where it has them)."""

    hello_interval_s: float = setting(
        "Time between two HELLOs to a neighbor.", default=1.0, unit="seconds", low=0.01, high=3600
    )
    hello_max_age_s: float = setting(
        "Time after which a silent neighbor is lost.", default=3.0, unit="seconds", low=0.05, high=3600
    )
    ra_interval_s: float = setting(
        "Time between two advertisements in calm times.", default=30.0, unit="seconds", low=0.1, high=3600
    )
    ra_interval_flux_s: float = setting(
        "Time between two advertisements after a change of topology.", default=4.0, unit="seconds", low=0.1, high=3600
    )
    remote_ls_max_age_s: float = setting(
        "Time after which link state that was not refreshed is forgotten.",
        default=60.0,
        unit="seconds",
        low=1,
        high=86400,
    )
    spf_hold_down_s: float = setting(
        "Time within which arriving changes are collected and computed together.",
        default=0.005,
        unit="seconds",
        low=0,
        high=10,
    )
    max_routers: int = setting(
        "Maximum number of other routers known at one time; nothing is kept about further ones.",
        default=10000,
        unit="routers",
        low=1,
        high=1000000,
        beyond="not kept, logged once",
    )
    max_neighbor_routers: int = setting(
        "Maximum number of routers first reported by the same neighbor.",
        default=5000,
        unit="routers",
        low=1,
        high=1000000,
        beyond="not kept, logged once",
    )
    max_neighbor_peers: int = setting(
        "Maximum number of peers of other routers that one neighbor has reported: the time to compute "
        "paths depends on them.",
        default=10000,
        unit="peers",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_addresses: int = setting(
        "Maximum number of mobile addresses of all other routers together, each counted once for each "
        "router that has it.",
        default=2000000,
        unit="addresses",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_router_addresses: int = setting(
        "Maximum number of mobile addresses of one other router.",
        default=500000,
        unit="addresses",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_control_messages: int = setting(
        "Maximum number of control messages of one neighbor per second, and ten times as many at once; "
        "more are dropped, and what was missed is requested later.",
        default=2000,
        unit="messages a second",
        low=10,
        high=1000000,
        beyond="dropped, logged once",
    )
