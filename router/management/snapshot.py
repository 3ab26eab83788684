"""Snapshot of a router for management: plain rows, taken between two events.

One class for each entity type. A field is an attribute of the entity: its name on the wire is the field's in camel
case, its type is the field's, and its metadata hold a sentence for operators. The rows know nothing of AMQP, the engine
or the data plane; whoever owns those makes them (`View`).

Names are those of Qpid Dispatch where it has the attribute (docs/reference/management.md). Counts are messages
since the link, address or router began, unless the sentence says "now".
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs

from router.management.problem_kinds import PROBLEM_KINDS

Value = str | int | bool | None | Sequence[str] | Sequence[int] | Mapping[str, object]
"""Value of an attribute."""


def attribute(doc: str, *, name: str | None = None, default: Any = attrs.NOTHING) -> Any:
    """One attribute of an entity.

    Args:
        doc: a sentence for operators, with the unit where the name does not tell it.
        name: on the wire, where camel case does not give it.
        default: for what only some of the entities have.
    """
    return attrs.field(default=default, metadata={"doc": doc, "name": name})


@attrs.frozen(kw_only=True)
class Row:
    """One entity. `type` is added by the schema."""

    name: str = attribute("Name, unique among the entities of its type wherever the type allows it.")
    identity: str = attribute("Identity, unique among the entities of its type.")


@attrs.frozen(kw_only=True)
class RouterRow(Row):
    """The router that answers. There is one."""

    id: str = attribute("Name of the router, unique in the mesh.")
    mode: str = attribute("`interior` when it takes connections of other routers or makes some, else `standalone`.")
    area: str = attribute("Area of the routing protocol: always 0.")
    version: str = attribute("Version of the program.")
    speed: str = attribute("How messages are forwarded: by code that is `compiled` or `interpreted`.")
    site: str | None = attribute("Site of the router, as set in its settings.")
    metadata: str | None = attribute("Site of the router, under the name that Qpid Dispatch has for such remarks.")
    host_name: str = attribute("Name of the machine.")
    process_id: int = attribute("Process id.")
    uptime_seconds: int = attribute("Seconds since it started.")
    drain_state: str = attribute(
        "`serving`; `draining`, while clients and paths are sent elsewhere; `drained`; or `stopping`."
    )
    memory_usage: int = attribute("Resident memory in bytes; 0 where the system does not report it.")
    charged_bytes: int = attribute("Bytes held because of peers: messages, unread windows, unwritten output.")
    charged_mark_bytes: int = attribute("Mark of held bytes: above it, connections with more than their share wait.")
    is_above_mark: bool = attribute("Whether the held bytes exceed the mark now.")
    connections_above_mark: int = attribute("Connections above their own mark, or above their share of the process's.")
    worker_threads: int = attribute("Number of threads that route: always 1.")
    connection_count: int = attribute("Connections now.")
    link_count: int = attribute("Links of messages now.")
    addr_count: int = attribute("Addresses known now: with publishers or subscribers here, or subscribers elsewhere.")
    node_count: int = attribute("Other routers reachable now.")
    unreachable_node_count: int = attribute(
        "Routers that cannot be reached now, of those that the mesh file names or that were seen within a day."
    )
    link_route_count: int = attribute("Always 0: there are no link routes.")
    auto_link_count: int = attribute("Always 0: there are no auto-links.")
    links_blocked: int = attribute("Links now that have no credit while messages wait for them.")
    waiting_count: int = attribute("Messages that wait here now for a subscriber's or neighbor's credit.")
    waiting_bytes: int = attribute("Bytes of the messages that wait here at addresses now.")
    unsettled_count: int = attribute("Messages under way now that have no outcome yet.")
    presettled_deliveries: int = attribute("Messages received pre-settled.")
    dropped_presettled_deliveries: int = attribute("Settled messages that could go nowhere, multicast copies included.")
    accepted_deliveries: int = attribute("Messages of clients and neighbors that ended ACCEPTED.")
    rejected_deliveries: int = attribute("Messages that ended REJECTED.")
    released_deliveries: int = attribute("Messages that ended RELEASED.")
    modified_deliveries: int = attribute("Messages that ended MODIFIED.")
    deliveries_delayed1_sec: int = attribute("Messages under way now that arrived more than 1 s ago.")
    deliveries_delayed10_sec: int = attribute("Messages under way now that arrived more than 10 s ago.")
    deliveries_stuck: int = attribute("Messages under way now that count as stuck: they arrived more than 10 s ago.")
    deliveries_ingress: int = attribute("Messages that entered the mesh here.")
    deliveries_egress: int = attribute("Messages, or copies of a multicast, that left the mesh here.")
    deliveries_transit: int = attribute("Messages that passed from one neighbor to another.")
    deliveries_ingress_route_container: int = attribute("Always 0: there are no route containers.")
    deliveries_egress_route_container: int = attribute("Always 0: there are no route containers.")
    deliveries_redirected_to_fallback: int = attribute("Always 0: there are no fallback destinations.")
    neighbor_traffic: Mapping[str, object] = attribute(
        "For each neighbor a list of four totals since this router started: messages received from it and "
        "sent to it, bytes received and sent."
    )
    control_counters: Mapping[str, int] = attribute("Counters of the control plane, by name.")


@attrs.frozen(kw_only=True)
class ConnectionRow(Row):
    """A connection of a client or of a neighbor."""

    container: str = attribute("Container id of the peer; empty before its Open.")
    host: str = attribute("Host and port of the peer.")
    role: str = attribute("`normal` for clients, `inter-router` for neighbors.")
    dir: str = attribute("`in` when the peer connected to this router, `out` when this router connected to it.")
    protocol: str = attribute("Always `amqp`.")
    opened: bool = attribute("Whether the peer's Open has arrived.")
    active: bool = attribute("Whether the connection is used: false for a standby connection to a neighbor.")
    admin_status: str = attribute("`enabled`, or `deleted` while it is being closed. An UPDATE to `deleted` closes it.")
    oper_status: str = attribute("`up`, or `closing`.")
    uptime_seconds: int = attribute("Seconds since the TCP connection was made.")
    is_authenticated: bool = attribute("Whether the peer said who it is (SASL).")
    user: str = attribute("Authenticated user; `anonymous` when there is none.")
    sasl: str | None = attribute("SASL mechanism; null without a SASL layer.")
    is_encrypted: bool = attribute("Whether the connection is encrypted with TLS.")
    ssl: bool = attribute("Whether the connection is encrypted, as `isEncrypted`.")
    ssl_proto: str | None = attribute("Version of TLS.")
    ssl_cipher: str | None = attribute("Cipher of TLS.")
    ssl_ssf: int = attribute("Strength of the cipher in bits; 0 in the clear.")
    tenant: str | None = attribute("Virtual host of the connection; null for none.")
    address_prefix: str = attribute(
        "Prefix that routers put before the connection's addresses; empty where they are those of the whole mesh."
    )
    properties: Mapping[str, object] = attribute("Properties of the peer's Open.")
    link_count: int = attribute("Links of messages now.")
    unanswered_count: int = attribute(
        "Accepted messages of a client with a reply address, less the messages that came to its reply "
        "addresses. A stop waits for these replies; a notification, which nobody answers, counts too. 0 "
        "for others."
    )
    held_bytes: int = attribute("Bytes of incomplete messages held now for the connection.")
    charged_bytes: int = attribute("Bytes held because of the peer: messages, unread windows, unwritten output.")
    reading: str = attribute(
        "What the router reads from the connection: `all`; `no messages` above its mark; `nothing` far above it."
    )
    sending: str = attribute(
        "What the router sends on the connection: `all`, or `nothing` if the peer takes too little."
    )
    deliveries_in: int = attribute("Messages received on the connection's links, closed links included.")
    deliveries_out: int = attribute("Messages and copies sent on the connection's links, closed links included.")
    bytes_in: int | None = attribute("Bytes received, AMQP framing and control links included; null if unknown.")
    bytes_out: int | None = attribute("Bytes sent, AMQP framing and control links included; null if unknown.")
    round_trip_micros: int | None = attribute("Shortest recent TCP round trip, microseconds; null if unknown.")
    neighbor_state: str | None = attribute(
        "State by the neighbor's HELLOs: `silent`, `one-way` or `two-way`; null for clients and without control links."
    )
    cost: int | None = attribute("Cost of the link to a neighbor; the larger of both ends. Null for clients.")
    is_standby: bool = attribute("Whether another connection to the same neighbor is in use.")
    last_dlv_seconds: int | None = attribute("Seconds since the last message, sampled once a second; null for none.")
    enable_protocol_trace: bool = attribute("Always false.")


@attrs.frozen(kw_only=True)
class LinkRow(Row):
    """A link of messages. `name` is the link's own name."""

    link_name: str = attribute("Name of the link, as `name`.")
    link_type: str = attribute(
        "`endpoint` for clients, `inter-router` for circuits and data links to a neighbor, `router-control` for the two"
        " on which routers speak of the mesh."
    )
    link_dir: str = attribute("`in` when messages arrive on it, `out` when they leave.")
    connection_id: str = attribute("Identity of its connection.")
    container: str = attribute("Container id of the peer.")
    user: str = attribute("Authenticated user of its connection; `anonymous` when there is none.")
    host: str = attribute("Host and port of the peer.")
    owning_addr: str | None = attribute(
        "Key of its address, of a circuit too; null for a sender that names it in each message and for data links."
    )
    peer: str | None = attribute("Always null: there are no link routes.")
    admin_status: str = attribute("`enabled`.")
    oper_status: str = attribute("`up`.")
    capacity: int = attribute(
        "Maximum number of messages under way: for `in` the link's window, for `out` the credit granted by the peer."
    )
    priority: int = attribute("Priority of an outgoing data link to a neighbor, 0 to 9; 0 for other links.")
    credit_available: int = attribute("Credit now: messages that the sending side may still send.")
    zero_credit_seconds: int = attribute(
        "Seconds without credit. For `out`: time that the oldest message waiting for the link has waited, "
        "0 when none waits. For `in`: time that the publisher has had none, or that the oldest message at "
        "the address has waited."
    )
    is_blocked: bool = attribute("Whether the link has no credit while messages wait for it.")
    is_flooding: bool = attribute(
        "Whether a sender without an address of its own has about as many messages under way as it may, and they wait."
    )
    undelivered_count: int = attribute(
        "Undelivered messages now. For `in`: received and not yet sent on; for `out`: waiting for this "
        "link or at its address."
    )
    unsettled_count: int = attribute("Messages sent on that have no outcome yet.")
    delivery_count: int = attribute("Messages carried by the link.")
    presettled_count: int = attribute("Messages settled by their sender, or sent to a subscriber settled.")
    dropped_presettled_count: int = attribute("Settled messages and multicast copies of the link that were dropped.")
    accepted_count: int = attribute(
        "Messages that ended ACCEPTED. For `in`: messages received on the link; for `out`: messages to "
        "which its peer gave an outcome."
    )
    rejected_count: int = attribute("Messages that ended REJECTED.")
    released_count: int = attribute("Messages that ended RELEASED.")
    modified_count: int = attribute("Messages that ended MODIFIED.")
    deliveries_delayed1_sec: int = attribute("Messages under way on the link now that arrived more than 1 s ago.")
    deliveries_delayed10_sec: int = attribute("Messages under way on the link now that arrived more than 10 s ago.")
    deliveries_stuck: int = attribute(
        "Messages under way on the link now that count as stuck: they arrived more than 10 s ago."
    )
    rate: int = attribute("Messages/s between the last two samples: one sample a second, fewer from 2,000 links on.")
    settle_rate: int = attribute("Messages settled per second, between the last two samples.")


@attrs.frozen(kw_only=True)
class AddressRow(Row):
    """An address.

    Name and identity are its key: `M0` and a mobile address, `L` and a local one, `R` and another router's reply
    address after the router's id.
    """

    key: str = attribute("Key of the address, as `name`.")
    distribution: str = attribute("Treatment: `multicast`, `closest` or `balanced`.")
    is_open: bool = attribute("Whether a subscriber can be reached. Publishers have credit once it is granted.")
    in_process: int = attribute("1 when the router itself answers, as for `$management`.")
    subscriber_count: int = attribute("Subscribers attached here.")
    publisher_count: int = attribute("Publishers attached here to this address.")
    remote_count: int = attribute("Other reachable routers with subscribers.")
    container_count: int = attribute("Always 0: there are no route containers.")
    remote_host_routers: Sequence[str] = attribute("Other reachable routers with subscribers, sorted.")
    transit_outstanding: Sequence[int] = attribute(
        "Unsettled datagrams sent toward each router of `remoteHostRouters`; links of circuits count their own."
    )
    credit_available: int = attribute("Credit of the subscribers attached here.")
    waiting_count: int = attribute("Messages that wait here now for a subscriber's credit.")
    waiting_bytes: int = attribute("Bytes of the messages that wait here now.")
    oldest_wait_seconds: int = attribute("Seconds that the oldest message waiting here has waited.")
    tracked_deliveries: int = attribute("Messages sent to subscribers here and not yet settled.")
    deliveries_ingress: int = attribute("Messages that entered the mesh here.")
    deliveries_egress: int = attribute("Messages, or copies, that left the mesh here.")
    deliveries_transit: int = attribute("Messages passed from one neighbor to another.")
    released_count: int = attribute("Messages that this router RELEASED.")
    dropped_count: int = attribute("Settled messages, or multicast copies, that were dropped.")
    deliveries_to_container: int = attribute("Always 0.")
    deliveries_from_container: int = attribute("Always 0.")
    deliveries_ingress_route_container: int = attribute("Always 0.")
    deliveries_egress_route_container: int = attribute("Always 0.")
    deliveries_redirected_to_fallback: int = attribute("Always 0.")
    priority: int = attribute("Always -1: addresses have no priority of their own.")


@attrs.frozen(kw_only=True)
class CreditRow(Row):
    """The credit of an address at this router.

    Name and identity are its key, as those of `router.address`; addresses with neither a subscriber, a publisher nor a
    circuit here are left out.
    """

    key: str = attribute("Key of the address, as `name`.")
    treatment: str = attribute("`multicast`, `closest` or `balanced`.")
    has_subscriber: bool = attribute("Whether a subscriber of the address can be reached.")
    is_open: bool = attribute(
        "Whether publishers may have credit: a subscriber can be reached, and not all have withdrawn their credit."
    )
    granted: int = attribute(
        "Credit now that can be lent here: the sum over subscribers attached here, own circuits and "
        "windows; for a multicast the smallest of them."
    )
    held_by_publishers: int = attribute("Credit that publishers attached here hold now.")
    held_by_circuits: int = attribute("Credit that circuits of neighbors hold now.")
    lowered: int = attribute("Credit in quarantine now, taken back from publishers attached here.")
    subscriber_count: int = attribute("Subscribers attached here.")
    publisher_count: int = attribute("Publishers attached here.")
    blocked_count: int = attribute("Publishers attached here that have no credit now.")
    blocked_seconds: int = attribute(
        "Longest time without credit of a publisher attached here, seconds; 0 when all have some."
    )
    waiting_count: int = attribute("Messages that wait here now for credit.")
    departed_count: int = attribute("Messages that wait here now and whose publishers have left.")
    oldest_wait_seconds: int = attribute("Seconds that the oldest message waiting here has waited.")


@attrs.frozen(kw_only=True)
class PartyRow(Row):
    """One grantor or holder of credit of an address at this router.

    Name and identity are those of its `router.link`; a window has no link, and both are made of address, root and
    neighbor.
    """

    key: str = attribute("Key of the address.")
    treatment: str = attribute("`multicast`, `closest` or `balanced`.")
    role: str = attribute(
        "`subscriber` and `publisher`, attached here; `circuit out`, on which a neighbor grants to this router; "
        "`circuit in`, on which this router grants to a neighbor; `window`: toward a neighbor without circuits."
    )
    connection_id: str | None = attribute("Identity of its connection; null for a window.", default=None)
    container: str | None = attribute("Container id of the peer; null for a window.", default=None)
    user: str | None = attribute("Authenticated user of its connection; null for a window.", default=None)
    host: str | None = attribute("Host and port of the peer; null for a window.", default=None)
    neighbor: str | None = attribute(
        "Router at the other end of a circuit or a window; null for clients.", default=None
    )
    root: str | None = attribute(
        "Egress router of a circuit or a window; for a multicast, the ingress router. Null for clients.",
        default=None,
    )
    granted: int = attribute(
        "Unused credit now of a subscriber or of the neighbor of an outgoing circuit; the free room of a "
        "window. 0 for holders.",
        default=0,
    )
    brokered: int = attribute(
        "Part of a subscriber's credit that can be lent now. Less than all when it granted more than a "
        "setting allows, and 0 while its connection takes nothing.",
        default=0,
    )
    held: int = attribute(
        "Credit now that a publisher, or the neighbor of an incoming circuit, may use. 0 for grantors.",
        default=0,
    )
    lowered: int = attribute("Credit in quarantine now, taken back from the publisher.", default=0)
    weight: int = attribute(
        "Busy publishers behind a circuit, as reported to the next router; for a publisher 1 when it is busy.",
        default=0,
    )
    waiting_count: int = attribute(
        "Messages of a holder that wait here now; for grantors, waiting messages that can go to no other.", default=0
    )
    oldest_wait_seconds: int = attribute("Seconds that the oldest message waiting here has waited.", default=0)
    unsettled_count: int = attribute("Messages sent to a grantor that have no outcome yet.", default=0)
    last_outcome_seconds: int | None = attribute(
        "Seconds since the last outcome, or the last message that needed none, sampled once a second. "
        "Null where there was none, and for holders.",
        default=None,
    )
    unsettled_seconds: int | None = attribute(
        "Seconds for which a subscriber has had messages without outcome and has given none, sampled once "
        "a second; null where it has no such messages, and for others.",
        default=None,
    )
    missed_count: int = attribute(
        "Copies that a multicast subscriber or an outgoing circuit missed while excluded.", default=0
    )
    zero_credit_seconds: int | None = attribute(
        "Seconds that a publisher, or a multicast subscriber that is not excluded, has had no credit; "
        "null when it has some, and for others.",
        default=None,
    )
    excluded_seconds: int | None = attribute(
        "Seconds that a subscriber or an outgoing circuit has been excluded from its multicast, because "
        "it was without credit for too long, or took next to nothing while others waited for it; null "
        "when it is not excluded, and for others.",
        default=None,
    )
    is_draining: bool = attribute("Whether a drain asks its credit back now.", default=False)
    is_withdrawn: bool = attribute("Whether a subscriber took its credit back instead of using it up.", default=False)


@attrs.frozen(kw_only=True)
class NodeRow(Row):
    """A router of the mesh, this one included, reachable or not."""

    id: str = attribute("Name of the router.")
    address: str = attribute("Address of its own terminuses: `amqp:/_topo/0/<id>`.")
    is_reachable: bool = attribute("Whether there is a path to it now.")
    is_draining: bool = attribute("Whether the router is drained, draining or stopping: paths avoid it if they can.")
    is_configured: bool = attribute("Whether the mesh file names it; what it doesn't name is forgotten after a day.")
    since: int = attribute(
        "Time at which it was reached or lost: seconds since 1970, UTC; for one that was never there, the "
        "start of this router."
    )
    reason: str | None = attribute("Reason why it is absent, as far as this router knows; null when it is reachable.")
    flap_count: int = attribute("Number of times it was lost since this router started.")
    recent_flaps: int = attribute("Number of times it was lost within the last five minutes, at most 16.")
    first_recent_flap: int | None = attribute(
        "Time of the first loss within the last five minutes: seconds since 1970, UTC; null for none."
    )
    last_flap: int | None = attribute("Time of the last loss: seconds since 1970, UTC; null for never.")
    last_flap_reason: str | None = attribute("Reason of the last loss, also when it is back; null for never.")
    next_hop: str | None = attribute(
        "Neighbor on the path to the router, the router itself if it is one; `(self)` for this router; "
        "null without a path."
    )
    cost: int | None = attribute("Cost of the path; 0 for this router; null when unreachable.")
    router_link: str | None = attribute("Identity of the connection toward it.")
    link_state: Sequence[str] = attribute("Neighbors of the router, as it advertises them, sorted.")
    link_costs: Mapping[str, int] = attribute("Cost of the router's link to each of its neighbors.")
    valid_origins: Sequence[str] = attribute("Always empty: multicast follows the tree of its ingress router.")
    address_count: int = attribute("Mobile addresses with subscribers there, as known here.")
    protocol_version: int = attribute("Version of the routing protocol.")
    instance: int | None = attribute("Boot number of the router; null as long as it is only known from other routers.")
    link_state_sequence: int = attribute("Sequence number of its link state.")
    mobile_sequence: int = attribute("Sequence number of the router's mobile addresses, as known here.")
    last_topo_change: int = attribute("Time of the last change of its neighbors: seconds since 1970, UTC.")
    index: int = attribute("Number in this list, 0 for this router.")


@attrs.frozen(kw_only=True)
class MeshLinkRow(Row):
    """A link between two routers, as the mesh file names it or as both advertise it; those that are gone too."""

    one: str = attribute("Router at one end of the link: the one with the lower id.")
    other: str = attribute("Router at the other end of the link.")
    state: str = attribute("`up`; `absent`; or `unknown`, when neither of its routers can be reached.")
    cost: int | None = attribute("Current cost, or the last one known; null for a link that was never there.")
    configured_cost: int | None = attribute("Cost in the mesh file; null when it doesn't name the link.")
    is_configured: bool = attribute("Whether the mesh file names it; what it doesn't name is forgotten after a day.")
    since: int = attribute("Time when it came up or was lost: seconds since 1970, UTC; else the start of this router.")
    reason: str | None = attribute("Reason why it is absent, as far as this router knows; null when it is up.")
    flap_count: int = attribute("Number of times it was lost since this router started.")
    recent_flaps: int = attribute("Number of times it was lost within the last five minutes, at most 16.")
    first_recent_flap: int | None = attribute(
        "Time of the first loss within the last five minutes: seconds since 1970, UTC; null for none."
    )
    last_flap: int | None = attribute("Time of the last loss: seconds since 1970, UTC; null for never.")
    last_flap_reason: str | None = attribute("Reason of the last loss, also when it is back; null for never.")


@attrs.frozen(kw_only=True)
class ProblemRow(Row):
    """Something that is wrong now, in words. The most urgent come first."""

    kind: str = attribute(f"One of {', '.join(f'`{kind}`' for kind in PROBLEM_KINDS)}.")
    subject: str = attribute("Router, link, connector, address, connection or file that the problem is about.")
    sentence: str = attribute("Explanation of the problem in one sentence.")
    since: int | None = attribute("Time when the problem began: seconds since 1970, UTC; null if unknown.")
    command: str = attribute("Command that shows more.")
    last: int | None = attribute(
        "Time of the last occurrence of a repeated problem: seconds since 1970, UTC; else null.", default=None
    )
    closeness: int = attribute(
        "Closeness of this router to the cause: 2 where its own connector fails, or its own subscriber "
        "has given no outcome for ten seconds; 0 where others know more; else 1.",
        default=1,
    )
    about: Sequence[str] = attribute(
        "Things that the problem is about, and what they are part of, in words that problems have in "
        "common: `router R`, `link R - S`, `address A`, `client C at R`.",
        default=(),
    )
    explains: Sequence[str] = attribute(
        "Things for which the problem can be the cause, in the words of `about`: a problem about one of "
        "them is shown beside it.",
        default=(),
    )


@attrs.frozen(kw_only=True)
class ConfiguredSocketRow(Row):
    """Attributes that listeners and connectors have in common."""

    host: str = attribute("Host to bind, or to connect to.")
    port: str = attribute("TCP port; of a listener the one that is bound, also where the setting is 0.")
    role: str = attribute("`normal` for clients, `inter-router` for neighbors.")
    cost: int = attribute("Cost of the link to a neighbor.")
    sasl_mechanisms: str = attribute("SASL mechanisms, separated by blanks.")
    ssl_profile: str | None = attribute("Name of its TLS profile; null in the clear.")
    max_frame_size: int = attribute("Largest frame accepted, bytes.")
    max_sessions: int = attribute("Maximum number of sessions of one connection.")
    idle_timeout_seconds: int = attribute("Time after which a silent connection is closed, seconds.")


@attrs.frozen(kw_only=True)
class ListenerRow(ConfiguredSocketRow):
    """A socket that waits for connections."""

    connection_count: int = attribute("Connections now.")
    max_connections: int = attribute("Maximum number of connections at one time.")
    initial_handshake_timeout_seconds: int = attribute("Time within which the peer's Open must arrive, seconds.")
    link_capacity: int = attribute(
        "Credit that this router gives by itself toward subscribers behind a neighbor without circuits."
    )
    multi_tenant: bool = attribute("Whether the host name of a client's Open is put before its addresses.")
    is_open: bool = attribute(
        "Whether the listener accepts connections: false for a listener for clients while the router is drained."
    )
    authenticate_peer: bool = attribute("Whether peers must say who they are.")
    http: bool = attribute("Always false.")


@attrs.frozen(kw_only=True)
class ConnectorRow(ConfiguredSocketRow):
    """A connection that this router makes and keeps up."""

    connection_status: str = attribute(
        "`SUCCESS`: a neighbor is at the other end and speaks to this router; `CONNECTING`; `FAILED`, also while what"
        " comes on a connection can't be read."
    )
    connection_msg: str = attribute("Reason of the last failure; empty while it is connected.")
    failover_urls: str = attribute("Host and port to connect to.")
    router: str | None = attribute("Router at the other end, by the mesh file or as it reports itself; else null.")
    since: int = attribute(
        "Time at which the neighbor came up or was lost: seconds since 1970, UTC; for one never there, "
        "the start of this router."
    )
    flap_count: int = attribute("Number of times the neighbor was lost.")
    last_flap: int | None = attribute("Time of the last loss: seconds since 1970, UTC; null for never.")
    last_flap_reason: str | None = attribute("Reason of the last loss, also when it is back; null for never.")


@attrs.frozen(kw_only=True)
class VhostRow(Row):
    """A virtual host: who is connected to it here, and what was denied. `(none)` stands for those that aren't."""

    id: str = attribute("Name of the virtual host.")
    hostname: str = attribute("Name of the virtual host, as Qpid Dispatch calls it.")
    is_isolated: bool = attribute("Whether the addresses of the virtual host are its own.")
    max_connections: int = attribute("Maximum number of connections at one time; 0 for no bound of its own.")
    connections_current: int = attribute("Connections now.")
    connections_approved: int = attribute("Connections that were accepted.")
    connections_denied: int = attribute("Connections that were denied.")
    session_denied: int = attribute("Always 0: a session too many closes its connection.")
    per_user_state: Mapping[str, object] = attribute("Always empty: connections have their users in `connection`.")
    per_host_state: Mapping[str, object] = attribute("Always empty: connections have their hosts in `connection`.")
    max_message_size_denied: int = attribute("Always 0: the link is closed.")
    sender_denied: int = attribute("Refused links on which clients wanted to send.")
    receiver_denied: int = attribute("Refused links on which clients wanted to receive.")
    messages_denied: int = attribute("Messages rejected because their sender may not send to the address.")
    user_ids_denied: int = attribute("Messages rejected because their `user-id` was not that of their sender.")


@attrs.frozen(kw_only=True)
class ManagementRow(Row):
    """The management node itself. There is one, called `self`."""


class LazyRows:
    """Things of one kind, each made into a row when it is asked for: a page costs no more than its own length.

    Args:
        things: a list, or what looks like one and slices as fast.
        make: gives None for what is gone by the time that its row is made.
    """

    def __init__(self, things: Sequence[Any] = (), make: Callable[[Any], Row | None] = lambda thing: thing) -> None:
        self._things = things
        self._make = make

    def __len__(self) -> int:
        return len(self._things)

    def __iter__(self) -> Iterator[Row]:
        return self._rows(self._things)

    def page(self, offset: int, count: int) -> Iterator[Row]:
        """Iterate over at most *count* rows, from number *offset* on."""
        return self._rows(self._things[offset : offset + count])

    def begun_with(self, is_first: Callable[[Any], bool]) -> LazyRows:
        """Reorder the rows: those first of whose things *is_first* holds, else as they were."""
        return LazyRows(sorted(self._things, key=is_first, reverse=True), self._make)

    def _rows(self, things: Iterable[Any]) -> Iterator[Row]:
        return (row for row in map(self._make, things) if row is not None)


@attrs.frozen
class LogLine:
    """One line of the log."""

    time: int
    """Seconds since 1970."""
    level: str
    text: str


class View(Protocol):
    """A router, as management sees it. Each call gives the state of that moment."""

    @property
    def router_id(self) -> str:
        """Name of the router."""

    def rows(self, kind: type[Row], *, goes_on: bool = False) -> LazyRows:
        """All entities of one kind, in a lasting order.

        Args:
            kind: class of its rows.
            goes_on: somebody has seen the first of them and asks for more: what is there of an order may be used again.
        """

    def prepare(self, kind: type[Row], *, goes_on: bool = False) -> Generator[None, None, None]:
        """Do in pieces what the next call of `rows`, with the same arguments, would do at once."""

    def rows_of_address(self, kind: type[Row], key: str) -> LazyRows:
        """Entities of one address, of a kind that belongs to addresses."""

    def of_vhost(self, vhost: str) -> View:
        """The part of it that belongs to one virtual host."""

    def reachable_routers(self) -> Iterable[str]:
        """Ids of the routers that a request can be sent to, this one included, sorted."""

    def log_lines(self, most: int) -> Sequence[LogLine]:
        """The last *most* lines of the log, the oldest first."""
