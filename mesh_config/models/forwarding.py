"""Settings of the data plane: windows of credit, and bounds of what is held."""

from __future__ import annotations

import attrs

from mesh_config.models.setting_field import MIB, setting


@attrs.frozen(kw_only=True)
class ForwardingSettings:
    """Windows and bounds of the data plane."""

    publisher_window: int = setting(
        "Credit that a router gives by itself toward subscribers behind a neighbor that takes no circuits.",
        default=250,
        unit="messages",
        low=1,
        high=1000000,
    )
    anonymous_window: int = setting(
        "Maximum credit of a sender that names its destination in each message; it begins with 4, doubles "
        "with use, and each released message halves it.",
        default=250,
        unit="messages",
        low=1,
        high=1000000,
    )
    distance_messages: float = setting(
        "Messages per subscriber that one unit of path cost is worth to a balanced message: it takes the "
        "costlier path when that has this many fewer without an outcome, per unit of extra cost.",
        default=0.1,
        unit="messages",
        low=0,
        high=1000000,
    )
    router_window: int = setting(
        "Credit given on each data link to a neighbor.", default=1000, unit="messages", low=1, high=1000000
    )
    held_message_bytes: int = setting(
        "A multi-frame message up to this size is held until whole before a client gets it; a larger one streams, "
        "and a larger multicast is rejected.",
        default=16 * MIB,
        unit="bytes",
        low=0,
        high=1024 * MIB,
        beyond="passed on in parts; a multicast is rejected",
    )
    held_connection_bytes: int = setting(
        "Bytes of multi-frame messages that may be held until whole for one connection, all messages together.",
        default=64 * MIB,
        unit="bytes",
        low=0,
        high=16384 * MIB,
        beyond="passed on in parts; a multicast is rejected",
    )
    unfinished_s: float = setting(
        "Time after which an unfinished message is given up if fewer than `unfinished_bytes` of it "
        "arrived in this time; between routers after twice as long. Only time in which its sender could "
        "go on counts.",
        default=30.0,
        unit="seconds",
        low=0.1,
        high=86400,
        beyond="rejected, and the link of a client closed",
    )
    unfinished_bytes: int = setting(
        "Bytes of an unfinished message that must arrive in `unfinished_s`.",
        default=32768,
        unit="bytes",
        low=1,
        high=1024 * MIB,
    )
    waiting_messages: int = setting(
        "Messages that may wait for credit at one address, or at one link. Messages that came without credit have half "
        "of the room of an address at most.",
        default=10000,
        unit="messages",
        low=1,
        high=10000000,
        beyond="RELEASED or, pre-settled, dropped and counted",
    )
    waiting_bytes: int = setting(
        "Bytes of messages that may wait for credit at one address, or at one link. Messages that came without credit "
        "have half of the room of an address at most.",
        default=64 * MIB,
        unit="bytes",
        low=1,
        high=16384 * MIB,
        beyond="RELEASED or, pre-settled, dropped and counted",
    )
    connection_bytes: int = setting(
        "Bytes that may be held of what one client has sent. Above this no further message of it is "
        "begun; far above, its socket is not read. It also bounds what the client is to receive: above "
        "this nothing more is sent to it.",
        default=128 * MIB,
        unit="bytes",
        low=MIB,
        high=16384 * MIB,
        beyond="it has to wait, `connection_above_mark`",
    )
    process_bytes: int = setting(
        "Bytes that may be held because of all peers together; above this each connection with more than "
        "its share has to wait.",
        default=1024 * MIB,
        unit="bytes",
        low=4 * MIB,
        high=1024 * 1024 * MIB,
        beyond="connections above their share have to wait, `process_above_mark`",
    )
    stopped_s: float = setting(
        "Time after which a client is closed that is so far above its mark that its socket is not read.",
        default=60.0,
        unit="seconds",
        low=0.1,
        high=86400,
        beyond="closed, `amqp:resource-limit-exceeded`",
    )
    waiting_s: float = setting(
        "Longest time that a message waits, except at its publisher's own router.",
        default=60.0,
        unit="seconds",
        low=0.1,
        high=86400,
        beyond="RELEASED or, pre-settled, dropped and counted",
    )
    brokered_messages: int = setting(
        "Largest part of a subscriber's credit that is lent out at a time.",
        default=10000,
        unit="messages",
        low=1,
        high=1000000,
    )
    quarantine_s: float = setting(
        "Time for which credit taken back from a client counts as held; it must be longer than a client's round trip.",
        default=0.05,
        unit="seconds",
        low=0.001,
        high=10,
    )
    linger_s: float = setting(
        "Time after which publishers lose their credit when all subscribers of the address have taken theirs back.",
        default=1.0,
        unit="seconds",
        low=0,
        high=3600,
    )
    drain_bound_s: float = setting(
        "Time after which a drain is answered, whatever has come back; what a neighbor has not returned "
        "counts as returned.",
        default=1.0,
        unit="seconds",
        low=0.01,
        high=60,
    )
    grace_s: float = setting(
        "Time for which a multicast subscriber that has no credit, or takes next to nothing, may hold up "
        "others; a neighbor that does not exclude such subscribers may for a bit more than four times as "
        "long.",
        default=1.0,
        unit="seconds",
        low=0,
        high=3600,
    )
    kept_multicast_s: float = setting(
        "Time for which multicasts that have passed are kept: when paths change, a router that lacks one "
        "gets it again.",
        default=5.0,
        unit="seconds",
        low=0,
        high=60,
        beyond="forgotten",
    )
    kept_multicast_bytes: int = setting(
        "Bytes of multicasts that are kept, all addresses together; the oldest are forgotten first.",
        default=16 * MIB,
        unit="bytes",
        low=0,
        high=16384 * MIB,
        beyond="the oldest are forgotten",
    )
    circuit_idle_s: float = setting(
        "Time after which an unused circuit is ended.", default=60.0, unit="seconds", low=0.1, high=86400
    )
    session_window_frames: int = setting(
        "Frames of a session that may wait here unread before its sender is stopped.",
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
        "Share of all time for control messages of neighbors that have used up their allowance of 0.5 s, "
        "all these neighbors together.",
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
        "Maximum number of links of one connection.",
        default=65536,
        unit="links",
        low=1,
        high=1000000,
        beyond="the link is refused, `amqp:resource-limit-exceeded`",
    )
    max_session_links: int = setting(
        "Maximum number of links of one session of a client. They end together with it, which takes time "
        "that grows with the square of their number.",
        default=2048,
        unit="links",
        low=1,
        high=65536,
        beyond="the link is refused, `amqp:resource-limit-exceeded`",
    )
    max_circuits: int = setting(
        "Maximum number of circuits of one connection to a neighbor, in both directions together.",
        default=30000,
        unit="circuits",
        low=0,
        high=31000,
        beyond="the circuit is refused; messages go as datagrams",
    )
