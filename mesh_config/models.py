"""Settings of one router and of a whole mesh: plain frozen data, checked elsewhere (`mesh_config.check`).

Every field is made by `setting()`, which carries what the generated reference, the JSON Schema and the checks need: a
sentence, a unit and a range. Units inside the program are seconds, bytes and messages.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import attrs

MIB = 1024 * 1024

ID_PATTERN = "(?!all$)[^\\s/\\u0000-\\u001f\\u007f-\\u009f]{1,255}"
"""Of what a router id consists: it becomes a word of `amqp:/_topo/0/<id>/...`, so no blank and no `/` may be in it, and
`all` means every router there. Neighbors take no longer one."""
HOST_PATTERN = "[^\\s/]+"
"""A host name or an address; IPv6 without brackets."""
TEXT_PATTERN = "[^\\u0000-\\u001f\\u007f-\\u009f]+"
"""An address, or a name for people."""


class Treatment(enum.StrEnum):
    """Rule by which the messages of an address are given to its subscribers."""

    MULTICAST = "multicast"
    CLOSEST = "closest"
    BALANCED = "balanced"


class Role(enum.StrEnum):
    """Role of who is at the other end of a listener's or connector's connections (names of Qpid Dispatch)."""

    NORMAL = "normal"
    INTER_ROUTER = "inter-router"


def setting(
    doc: str,
    *,
    default: Any = attrs.NOTHING,
    factory: Callable[[], Any] | None = None,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    pattern: str | None = None,
    beyond: str = "",
) -> Any:
    """One setting: an attrs field whose metadata the loader, the checks, the schema and the reference read.

    Args:
        doc: a sentence for operators.
        default: as in `attrs.field`; without it and *factory* the setting must be written.
        factory: as in `attrs.field`.
        unit: of a number, in words; empty for a plain number.
        low: least value of a number, in that unit.
        high: greatest value of a number, in that unit.
        pattern: regular expression (common to Python and ECMA 262) that the whole of a text must match.
        beyond: of a bound, what happens to what is beyond it; for the table in docs/explanation/hostile-peers.md.
    """
    metadata: Mapping[str, object] = {
        "doc": doc,
        "unit": unit,
        "low": low,
        "high": high,
        "pattern": pattern,
        "beyond": beyond,
    }
    if factory is not None:
        return attrs.field(factory=factory, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


@attrs.frozen(kw_only=True)
class AddressSettings:
    """The treatment of every address below one prefix, or of one pattern."""

    prefix: str | None = setting(
        "Whole words of an address, separated by `/` or `.`; the longest prefix wins.", default=None
    )
    pattern: str | None = setting(
        "Words of which `*` stands for any one and `#` for any number; within a word they are characters like others.",
        default=None,
    )
    treatment: Treatment = setting("What is done with its messages.", default=Treatment.BALANCED)
    distance_messages: float | None = setting(
        "`forwarding.distance_messages` for these addresses; has an effect on balanced ones only.",
        default=None,
        unit="messages",
        low=0,
        high=1000000,
    )


DEFAULT_ADDRESSES: tuple[AddressSettings, ...] = tuple(
    AddressSettings(prefix=prefix, treatment=treatment)
    for prefix, treatment in (
        ("openstack.org/om/rpc/multicast", Treatment.MULTICAST),
        ("openstack.org/om/rpc/unicast", Treatment.CLOSEST),
        ("openstack.org/om/rpc/anycast", Treatment.BALANCED),
        ("openstack.org/om/notify/multicast", Treatment.MULTICAST),
        ("openstack.org/om/notify/unicast", Treatment.CLOSEST),
        ("openstack.org/om/notify/anycast", Treatment.BALANCED),
        ("exclusive", Treatment.CLOSEST),
        ("unicast", Treatment.BALANCED),
        ("broadcast", Treatment.MULTICAST),
    )
)


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """Settings that a listener and a connector have in common: the AMQP side of a connection."""

    role: Role = setting(
        "Who connects here: clients (`normal`) or other routers (`inter-router`).", default=Role.NORMAL
    )
    cost: int = setting(
        "Cost of the link to the neighbor; the larger of both ends counts.", default=1, low=1, high=65535
    )
    max_frame_bytes: int = setting(
        "Largest frame accepted.",
        default=32768,
        unit="bytes",
        low=512,
        high=16 * MIB,
        beyond="closed, `amqp:connection:framing-error`",
    )
    max_sessions: int = setting(
        "Sessions of one connection (channel-max + 1).",
        default=32768,
        unit="sessions",
        low=1,
        high=32768,
        beyond="closed, `amqp:connection:framing-error`",
    )
    idle_timeout_s: float = setting(
        "A connection silent for so long is closed; 0 never.", default=16.0, unit="seconds", low=0, high=86400
    )


@attrs.frozen(kw_only=True)
class ListenerSettings(ConnectionSettings):
    """A socket that waits for connections."""

    name: str | None = setting("Name in logs and management; host:port when absent.", default=None)
    host: str = setting("Address to bind.", default="127.0.0.1", pattern=HOST_PATTERN)
    port: int = setting("TCP port; 0 lets the system choose.", default=5672, low=0, high=65535)
    handshake_timeout_s: float = setting(
        "Time until the peer's Open must be there.", default=10.0, unit="seconds", low=0.1, high=3600, beyond="closed"
    )
    vhost_prefix: bool = setting(
        "Put the host name of the client's Open before each of its addresses (oslo.messaging with pseudo_vhost=false);"
        " other clients mostly put there the host they dialled. A treatment may name the address with it or without.",
        default=False,
    )
    max_message_bytes: int = setting(
        "Largest message of a client, announced to it; the link of a larger one is closed. 0: no limit.",
        default=0,
        unit="bytes",
        low=0,
        high=1024 * 1024 * MIB,
        beyond="its link is closed, `amqp:link:message-size-exceeded`",
    )
    max_connections: int = setting(
        "Connections at one time.",
        default=10000,
        unit="connections",
        low=1,
        high=1000000,
        beyond="closed at once, `listener_full`",
    )
    max_connections_of_host: int = setting(
        "Connections at one time of one remote host; 0 for no bound of its own.",
        default=0,
        unit="connections",
        low=0,
        high=1000000,
        beyond="closed at once, `host_full`",
    )
    max_handshakes: int = setting(
        "Connections at one time whose peer has not said who it is; one more, and the oldest of them is closed.",
        default=1000,
        unit="connections",
        low=1,
        high=1000000,
        beyond="the oldest of them is closed",
    )


@attrs.frozen(kw_only=True)
class ConnectorSettings(ConnectionSettings):
    """A connection that this router makes and keeps up."""

    name: str | None = setting("Name in logs and management; host:port when absent.", default=None)
    role: Role = setting(
        "What is at the other end: another router. With the role `normal` it would carry nothing, and is refused.",
        default=Role.INTER_ROUTER,
    )
    to: str | None = setting(
        "Router of the same file to connect to: host and port are those of its inter-router listener.",
        default=None,
        pattern=ID_PATTERN,
    )
    host: str = setting("Host to connect to.", default="127.0.0.1", pattern=HOST_PATTERN)
    port: int = setting("TCP port to connect to.", default=5672, low=1, high=65535)
    reconnect_initial_s: float = setting(
        "Pause before the first new attempt; doubled each time, with jitter.",
        default=0.05,
        unit="seconds",
        low=0.001,
        high=3600,
    )
    reconnect_max_s: float = setting(
        "Longest pause between attempts.", default=5.0, unit="seconds", low=0.01, high=3600
    )


@attrs.frozen(kw_only=True)
class LinkStateSettings:
    """Timers of the routing protocol (names and defaults of Qpid Dispatch, where it has them)."""

    hello_interval_s: float = setting(
        "Between two HELLOs to a neighbor.", default=1.0, unit="seconds", low=0.01, high=3600
    )
    hello_max_age_s: float = setting(
        "A neighbor silent for so long is lost.", default=3.0, unit="seconds", low=0.05, high=3600
    )
    ra_interval_s: float = setting(
        "Between two advertisements in calm times.", default=30.0, unit="seconds", low=0.1, high=3600
    )
    ra_interval_flux_s: float = setting(
        "The same after a change of topology.", default=4.0, unit="seconds", low=0.1, high=3600
    )
    remote_ls_max_age_s: float = setting(
        "Link state that nobody refreshed for so long is forgotten.", default=60.0, unit="seconds", low=1, high=86400
    )
    spf_hold_down_s: float = setting(
        "Changes that arrive within this time are computed together.", default=0.005, unit="seconds", low=0, high=10
    )
    max_routers: int = setting(
        "Other routers known at one time; of more nothing is kept.",
        default=10000,
        unit="routers",
        low=1,
        high=1000000,
        beyond="not kept, logged once",
    )
    max_neighbor_routers: int = setting(
        "Those of them that one neighbor was the first to tell of.",
        default=5000,
        unit="routers",
        low=1,
        high=1000000,
        beyond="not kept, logged once",
    )
    max_neighbor_peers: int = setting(
        "Peers of other routers of which one neighbor has told: the time that paths take goes by them.",
        default=25000,
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
        "The same of one router.",
        default=500000,
        unit="addresses",
        low=1,
        high=100000000,
        beyond="not kept, logged once",
    )
    max_control_messages: int = setting(
        "Control messages that one neighbor may send in a second, and ten times as many at once; more are dropped, and "
        "what was missed is asked for later.",
        default=2000,
        unit="messages a second",
        low=10,
        high=1000000,
        beyond="dropped, logged once",
    )


@attrs.frozen(kw_only=True)
class ForwardingSettings:
    """Windows and bounds of the data plane."""

    publisher_window: int = setting(
        "Credit that a router makes of its own toward subscribers behind a neighbor that takes no circuits.",
        default=250,
        unit="messages",
        low=1,
        high=1000000,
    )
    anonymous_window: int = setting(
        "Most credit of a sender that names its destination in each message; it begins with 4, and grows with use.",
        default=250,
        unit="messages",
        low=1,
        high=1000000,
    )
    distance_messages: float = setting(
        "What a unit of a path's cost is worth to a balanced message: it goes that way while so many messages fewer per"
        " subscriber are without an outcome there.",
        default=0.1,
        unit="messages",
        low=0,
        high=1000000,
    )
    router_window: int = setting(
        "Credit given on each data link to a neighbor.", default=1000, unit="messages", low=1, high=1000000
    )
    held_message_bytes: int = setting(
        "A multi-frame message up to this size is held until whole before a client gets it; a larger one streams.",
        default=16 * MIB,
        unit="bytes",
        low=0,
        high=1024 * MIB,
        beyond="passed on in parts; a multicast is rejected",
    )
    held_connection_bytes: int = setting(
        "The same for all messages held for one connection.",
        default=64 * MIB,
        unit="bytes",
        low=0,
        high=16384 * MIB,
        beyond="passed on in parts; a multicast is rejected",
    )
    unfinished_s: float = setting(
        "A message that is not finished, and of which fewer than `unfinished_bytes` have come in so long, is given up;"
        " between routers in twice as long. Only time counts in which its sender could go on.",
        default=30.0,
        unit="seconds",
        low=0.1,
        high=86400,
        beyond="rejected, and the link of a client closed",
    )
    unfinished_bytes: int = setting(
        "What must come of an unfinished message in `unfinished_s`.",
        default=32768,
        unit="bytes",
        low=1,
        high=1024 * MIB,
    )
    waiting_messages: int = setting(
        "Messages that may wait for credit at one address, or at one link.",
        default=10000,
        unit="messages",
        low=1,
        high=10000000,
        beyond="RELEASED or, pre-settled, dropped and counted",
    )
    waiting_bytes: int = setting(
        "The same in bytes.",
        default=64 * MIB,
        unit="bytes",
        low=1,
        high=16384 * MIB,
        beyond="RELEASED or, pre-settled, dropped and counted",
    )
    connection_bytes: int = setting(
        "What may be held of what one client has sent; above this no further message of it is begun, far above nothing "
        "is read of it. The same of what it is to get; above this nothing more is sent to it.",
        default=128 * MIB,
        unit="bytes",
        low=MIB,
        high=16384 * MIB,
        beyond="it has to wait, `connection_above_mark`",
    )
    process_bytes: int = setting(
        "What may be held because of all peers; above this each connection with more than its share has to wait.",
        default=1024 * MIB,
        unit="bytes",
        low=4 * MIB,
        high=1024 * 1024 * MIB,
        beyond="who has more than a share has to wait, `process_above_mark`",
    )
    stopped_s: float = setting(
        "A client far above its mark, so that nothing is read of it, is closed after this.",
        default=60.0,
        unit="seconds",
        low=0.1,
        high=86400,
        beyond="closed, `amqp:resource-limit-exceeded`",
    )
    waiting_s: float = setting(
        "Longest time that a message waits which is not at its publisher's own router.",
        default=60.0,
        unit="seconds",
        low=0.1,
        high=86400,
        beyond="RELEASED or, pre-settled, dropped and counted",
    )
    brokered_messages: int = setting(
        "Of the credit that a subscriber grants, at most so much is lent out at a time.",
        default=10000,
        unit="messages",
        low=1,
        high=1000000,
    )
    quarantine_s: float = setting(
        "Credit taken back from a client counts as held for so long; longer than a client's round trip.",
        default=0.05,
        unit="seconds",
        low=0.001,
        high=10,
    )
    linger_s: float = setting(
        "When all subscribers of an address have taken their credit back, publishers lose theirs after this.",
        default=1.0,
        unit="seconds",
        low=0,
        high=3600,
    )
    drain_bound_s: float = setting(
        "A subscriber's drain is answered after this, even when not all that was lent of its credit has come back.",
        default=1.0,
        unit="seconds",
        low=0.01,
        high=60,
    )
    grace_s: float = setting(
        "A subscriber of a multicast without credit, or that takes next to nothing, holds up others for so long; a"
        " neighbor that does not exclude its own, for a bit more than four times as long.",
        default=1.0,
        unit="seconds",
        low=0,
        high=3600,
    )
    kept_multicast_s: float = setting(
        "Multicasts that have passed are kept for so long: when paths change, who lacks one gets it again.",
        default=5.0,
        unit="seconds",
        low=0,
        high=60,
        beyond="forgotten",
    )
    kept_multicast_bytes: int = setting(
        "The same in bytes, all addresses together; the oldest are forgotten first.",
        default=16 * MIB,
        unit="bytes",
        low=0,
        high=16384 * MIB,
        beyond="the oldest are forgotten",
    )
    circuit_idle_s: float = setting(
        "A circuit that nobody needs is ended after this.", default=60.0, unit="seconds", low=0.1, high=86400
    )
    session_window_frames: int = setting(
        "Frames of a session that may lie unread here before its sender is stopped.",
        default=256,
        unit="frames",
        low=2,
        high=65536,
        beyond="the window of the session is closed until they are read",
    )
    address_bytes: int = setting(
        "Longest address of a link or a message, in UTF-8; a link with a longer one is refused, a message rejected.",
        default=1024,
        unit="bytes",
        low=64,
        high=16384,
        beyond="the link is refused, the message rejected",
    )
    control_message_bytes: int = setting(
        "Largest control message that a neighbor may send; a larger one ends its connection.",
        default=4 * MIB,
        unit="bytes",
        low=MIB,
        high=256 * MIB,
        beyond="closed",
    )
    control_percent: int = setting(
        "Time for control messages of neighbors that have used up their allowance: 0.5 s, and this part of all time.",
        default=20,
        unit="percent",
        low=1,
        high=90,
        beyond="they wait, HELLOs excepted, `control_messages_wait`; above `control_message_bytes` dropped",
    )
    management_request_bytes: int = setting(
        "Largest request to the management node; a larger one is rejected.",
        default=65536,
        unit="bytes",
        low=1024,
        high=16 * MIB,
        beyond="rejected, `amqp:link:message-size-exceeded`",
    )
    max_links: int = setting(
        "Links of one connection.",
        default=65536,
        unit="links",
        low=1,
        high=1000000,
        beyond="the link is refused, `amqp:resource-limit-exceeded`",
    )
    max_session_links: int = setting(
        "Links of one session of a client. They end with it at once, in a time by the square of their number.",
        default=2048,
        unit="links",
        low=1,
        high=65536,
        beyond="the link is refused, `amqp:resource-limit-exceeded`",
    )
    max_circuits: int = setting(
        "Circuits of one connection to a neighbor, both ways together.",
        default=30000,
        unit="circuits",
        low=0,
        high=31000,
        beyond="the circuit is refused; messages go as datagrams",
    )


@attrs.frozen(kw_only=True)
class RecorderSettings:
    """The flight recorder: what moved the control plane lately."""

    max_bytes: int = setting(
        "Memory for what moved the control plane lately, as estimated; 0 keeps nothing.",
        default=8 * MIB,
        unit="bytes",
        low=0,
        high=1024 * MIB,
        beyond="the oldest half is forgotten",
    )
    max_calls: int = setting(
        "Calls of the control plane that are kept.",
        default=20000,
        unit="calls",
        low=2,
        high=10000000,
        beyond="the oldest half is forgotten",
    )
    directory: str | None = setting(
        "Where a recording is written after a fault of the program, and on SIGUSR1. When absent only SIGUSR1 writes"
        " one, to the system's directory for temporary files.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    max_files: int = setting(
        "Recordings of this router that may be there.",
        default=10,
        unit="files",
        low=1,
        high=1000,
        beyond="not written, `recording_failed`",
    )


@attrs.frozen(kw_only=True)
class RouterSettings:
    """Everything one router process needs."""

    id: str = setting(
        "Name of the router, unique in the mesh, without blanks and `/`, and not `all`.", pattern=ID_PATTERN
    )
    host: str | None = setting(
        "Host by which other routers reach this one; where a listener binds to all addresses, `to` resolves to it.",
        default=None,
        pattern=HOST_PATTERN,
    )
    site: str | None = setting("Where it stands; routers of one site may fail together.", default=None)
    listeners: tuple[ListenerSettings, ...] = setting("Sockets that wait for connections.", default=())
    connectors: tuple[ConnectorSettings, ...] = setting("Connections to make.", default=())
    addresses: tuple[AddressSettings, ...] = setting("Treatments; they override the built-in ones.", default=())
    default_treatment: Treatment = setting("Treatment of every other address.", default=Treatment.BALANCED)
    link_state: LinkStateSettings = setting("Timers of the routing protocol.", factory=LinkStateSettings)
    forwarding: ForwardingSettings = setting("Windows and bounds of the data plane.", factory=ForwardingSettings)
    recorder: RecorderSettings = setting("What is kept to explain a fault.", factory=RecorderSettings)
    reserved_files: int = setting(
        "Open files kept for connections of routers, but half of all at most; a client that would take one is refused.",
        default=64,
        unit="files",
        low=0,
        high=1000000,
        beyond="a client is closed at once, `files_short`",
    )
    shutdown_s: float = setting(
        "On SIGTERM, time for what is in flight to settle.", default=5.0, unit="seconds", low=0, high=3600
    )


@attrs.frozen(kw_only=True)
class MeshSettings:
    """A whole mesh, by router id; defaults are already merged into each router."""

    name: str = setting("Name of the mesh, for pictures and reports.", default="mesh")
    routers: Mapping[str, RouterSettings] = setting("The routers by id.", factory=dict)
