"""Settings of the HTTP listener: health, metrics and the console."""

from __future__ import annotations

import attrs

from mesh_config.models.setting_field import HOST_PATTERN, NAME_PATTERN, TEXT_PATTERN, TLS_PROFILE, setting


@attrs.frozen(kw_only=True)
class HttpSettings:
    """Health, metrics and the console by HTTP."""

    host: str = setting("Address to bind.", default="127.0.0.1", pattern=HOST_PATTERN)
    port: int | None = setting(
        "TCP port; 0 lets the system choose. Without it nothing is served by HTTP.", default=None, low=0, high=65535
    )
    tls: str | None = setting(
        "Name of the TLS profile, if it speaks TLS: then HTTPS alone is answered.",
        default=None,
        pattern=NAME_PATTERN,
        names=TLS_PROFILE,
    )
    users_file: str | None = setting(
        "Users who may see metrics and the console, from anywhere, by HTTP Basic: those of a group with `management`"
        " `read` or `write` where there are virtual hosts, else all of the file, which `amqp-mesh user` writes. Without"
        " it anybody sees the metrics, and the console is for who is on the same machine.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    names: tuple[str, ...] = setting(
        "Host names, or `host:port`, by which browsers and Prometheus reach it, besides `host`, `localhost` and"
        " addresses of numbers; a request for another name is refused, so that no foreign page reads the console.",
        default=(),
    )
    share_percent: float = setting(
        "Pages are made anew at most so often that this takes no more of the router's time.",
        default=2.0,
        unit="percent",
        low=0.1,
        high=50,
        beyond="the page before is given again",
    )
    max_connections: int = setting(
        "HTTP connections at one time.",
        default=64,
        unit="connections",
        low=1,
        high=10000,
        beyond="the oldest of them is closed",
    )
    max_requests_per_s: float = setting(
        "Requests answered in a second, of all HTTP connections together; one that comes in pieces counts for as many.",
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
        "Time in which a request must come, and in which some of a page must be taken.",
        default=30.0,
        unit="seconds",
        low=0.1,
        high=3600,
        beyond="closed",
    )
