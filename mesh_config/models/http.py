"""Settings of the HTTP listener: health, metrics and the console."""

from __future__ import annotations

import attrs

from mesh_config.models.setting_field import HOST_PATTERN, NAME_PATTERN, TEXT_PATTERN, TLS_PROFILE, setting


@attrs.frozen(kw_only=True)
class HttpSettings:
    """Health, metrics and the console by HTTP."""

    host: str = setting("Address to bind.", default="127.0.0.1", pattern=HOST_PATTERN)
    port: int | None = setting(
        "TCP port; 0 lets the system choose. Without it nothing is served over HTTP.", default=None, low=0, high=65535
    )
    tls: str | None = setting(
        "Name of the TLS profile, if it speaks TLS: then only HTTPS is answered.",
        default=None,
        pattern=NAME_PATTERN,
        names=TLS_PROFILE,
    )
    users_file: str | None = setting(
        "File of users who may see metrics and the console from anywhere, with HTTP Basic; `amqp-mesh user` writes it."
        " If there are virtual hosts, only users of a group with `management` `read` or `write` may. Without this file"
        " everybody may see the metrics, and only the same machine may see the console.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    names: tuple[str, ...] = setting(
        "Host names, or `host:port`, by which browsers and Prometheus reach it, besides `host`, "
        "`localhost` and IP addresses; a request for another name is refused, so that no foreign page can "
        "read the console.",
        default=(),
    )
    share_percent: float = setting(
        "Maximum share of the router's time for making pages; until a page may be made again, the "
        "previous one is sent.",
        default=2.0,
        unit="percent",
        low=0.1,
        high=50,
        beyond="the previous page is sent again",
    )
    max_connections: int = setting(
        "Maximum number of HTTP connections at one time.",
        default=64,
        unit="connections",
        low=1,
        high=10000,
        beyond="the oldest of them is closed",
    )
    max_requests_per_s: float = setting(
        "Maximum number of requests answered per second, all HTTP connections together; a request that "
        "comes in several pieces counts once for each.",
        default=200.0,
        unit="requests",
        low=1,
        high=100000,
        beyond="they wait",
    )
    header_bytes: int = setting(
        "Largest head of an HTTP request.",
        default=16384,
        unit="bytes",
        low=1024,
        high=1048576,
        beyond="answered with 431, and closed",
    )
    timeout_s: float = setting(
        "Time within which a request must arrive, and within which some of a page must be read.",
        default=30.0,
        unit="seconds",
        low=0.1,
        high=3600,
        beyond="closed",
    )
