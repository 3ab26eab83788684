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
        "A neighbor that is silent for this time is lost.", default=3.0, unit="seconds", low=0.05, high=3600
    )
    ra_interval_s: float = setting(
        "Time between two advertisements in calm times.", default=30.0, unit="seconds", low=0.1, high=3600
    )
    ra_interval_flux_s: float = setting(
        "The same after a change of topology.", default=4.0, unit="seconds", low=0.1, high=3600
    )
    remote_ls_max_age_s: float = setting(
        "Link state that was not refreshed for this time is forgotten.", default=60.0, unit="seconds", low=1, high=86400
    )
    spf_hold_down_s: float = setting(
        "Changes that arrive within this time are computed together.", default=0.005, unit="seconds", low=0, high=10
    )
    max_routers: int = setting(
        "Other routers known at one time; of further ones nothing is kept.",
        default=10000,
        unit="routers",
        low=1,
        high=1000000,
        beyond="not kept, logged once",
    )
    max_neighbor_routers: int = setting(
        "The same for routers that one neighbor was the first to tell of.",
        default=5000,
        unit="routers",
        low=1,
        high=1000000,
        beyond="not kept, logged once",
    )
    max_neighbor_peers: int = setting(
        "Peers of other routers of which one neighbor has told: the time to compute paths depends on them.",
        default=10000,
        unit="peers",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_addresses: int = setting(
        "Mobile addresses of all other routers together, each counted once for each router that has it.",
        default=2000000,
        unit="addresses",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_router_addresses: int = setting(
        "The same for one router.",
        default=500000,
        unit="addresses",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_control_messages: int = setting(
        "Control messages that one neighbor may send in a second, and ten times as many at once; more are dropped, and"
        " what was missed is asked for later.",
        default=2000,
        unit="messages a second",
        low=10,
        high=1000000,
        beyond="dropped, logged once",
    )
