"""Rows of what is configured, of the log and of memory, with the attributes of Qpid Dispatch.

Some of its types have no entities here, such as link routes. They are there all the same, empty, so that its tools get
an answer and no error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from router.management.snapshot import Row, attribute


@attrs.frozen(kw_only=True)
class AddressConfigRow(Row):
    """The treatment of addresses below a prefix, or of a pattern; built in, from the file, or created."""

    prefix: str | None = attribute("Whole words of an address; null where there is a pattern.", default=None)
    pattern: str | None = attribute("Words, with `*` for one and `#` for any number; null where there is a prefix.")
    distribution: str = attribute("Treatment: `multicast`, `closest` or `balanced`.")
    distance_messages: float | None = attribute(
        "Messages that one unit of cost is worth; null for the router's setting."
    )
    is_builtin: bool = attribute("Whether the entry is built in: it can't be deleted, only overridden.")
    waypoint: bool = attribute("Always false: there are no waypoints.")
    ingress_phase: int | None = attribute("Always null.")
    egress_phase: int | None = attribute("Always null.")
    priority: int | None = attribute("Always null: addresses have no priority of their own.")
    enable_fallback: bool = attribute("Always false.")


@attrs.frozen(kw_only=True)
class LinkRouteRow(Row):
    """A link route. There are none."""

    prefix: str | None = attribute("Always null.")
    pattern: str | None = attribute("Always null.")
    direction: str = attribute("`in` or `out`.")
    distribution: str = attribute("`linkBalanced`.")
    connection: str | None = attribute("Always null.")
    container_id: str | None = attribute("Always null.")
    add_external_prefix: str | None = attribute("Always null.")
    del_external_prefix: str | None = attribute("Always null.")
    oper_status: str = attribute("`inactive` or `active`.")


@attrs.frozen(kw_only=True)
class AutoLinkRow(Row):
    """An auto-link. There are none."""

    address: str = attribute("Address of the entity.")
    direction: str = attribute("`in` or `out`.")
    phase: int | None = attribute("Always null.")
    container_id: str | None = attribute("Always null.")
    connection: str | None = attribute("Always null.")
    external_address: str | None = attribute("Always null.")
    fallback: bool = attribute("Always false.")
    link_ref: str | None = attribute("Always null.")
    oper_status: str | None = attribute("Always null.")
    last_error: str | None = attribute("Always null.")


@attrs.frozen(kw_only=True)
class ExchangeRow(Row):
    """An exchange. There are none."""

    address: str = attribute("Address of the entity.")
    phase: int = attribute("Always 0.")
    alternate_address: str | None = attribute("Always null.")
    alternate_phase: int = attribute("Always 0.")
    match_method: str = attribute("`amqp` or `mqtt`.")
    binding_count: int = attribute("Always 0.")
    received_count: int = attribute("Always 0.")
    dropped_count: int = attribute("Always 0.")
    forwarded_count: int = attribute("Always 0.")
    diverted_count: int = attribute("Always 0.")


@attrs.frozen(kw_only=True)
class BindingRow(Row):
    """A binding of an exchange. There are none."""

    exchange_name: str = attribute("Exchange of the binding.")
    binding_key: str | None = attribute("Always null.")
    next_hop_address: str = attribute("Next hop of the binding.")
    next_hop_phase: int = attribute("Always 0.")
    matched_count: int = attribute("Always 0.")


@attrs.frozen(kw_only=True)
class RouterLogRow(Row):
    """The log. There is one, for all modules: `log/DEFAULT`."""

    module: str = attribute("Always `DEFAULT`.")
    enable: str = attribute(
        "Lowest level that is written, with a `+`: `debug+`, `info+`, `warning+` or `error+`; `none` for none."
    )
    format: str = attribute("Form of a line: `key-value` or `json`.")
    include_timestamp: bool = attribute("Always true.")
    include_source: bool = attribute("Always false.")
    output_file: str = attribute("Always `stderr`.")


@attrs.frozen(kw_only=True)
class RouterLogStatsRow(Row):
    """Lines of the log since the start, written or not. There is one: `logStats/DEFAULT`."""

    trace_count: int = attribute("Always 0.")
    debug_count: int = attribute("Lines of the level `debug`.")
    info_count: int = attribute("Lines of the level `info`.")
    notice_count: int = attribute("Always 0.")
    warning_count: int = attribute("Lines of the level `warning`.")
    error_count: int = attribute("Lines of the level `error`.")
    critical_count: int = attribute("Always 0.")


@attrs.frozen(kw_only=True)
class AllocatorRow(Row):
    """Objects of one kind that are in memory now. There are no pools, nor threads beside the one that routes."""

    type_name: str = attribute("Kind of objects: `connection`, `link`, `delivery` or `address`.")
    type_size: int = attribute("Bytes of one object, as Python counts them: what it refers to is left out.")
    transfer_batch_size: int = attribute("Always 0.")
    local_free_list_max: int = attribute("Always 0.")
    global_free_list_max: int = attribute("Always 0.")
    total_alloc_from_heap: int = attribute("Objects in memory now.")
    total_free_to_heap: int = attribute("Always 0: what is freed is not counted.")
    held_by_threads: int = attribute("Objects in memory now, as `totalAllocFromHeap`.")
    batches_rebalanced_to_threads: int = attribute("Always 0.")
    batches_rebalanced_to_global: int = attribute("Always 0.")


@attrs.frozen(kw_only=True)
class PolicyRow(Row):
    """Policy as a whole."""

    max_connections: int = attribute("Always 65535: listeners and groups have bounds of their own.")
    max_message_size: int = attribute("Always 0: listeners and groups have bounds of their own.")
    enable_vhost_policy: bool = attribute("Whether any virtual host is configured.")
    enable_vhost_name_patterns: bool = attribute(
        "Whether host names of virtual hosts may be patterns: true if any is configured."
    )
    policy_dir: str = attribute("Always empty.")
    default_vhost: str = attribute("Name of the virtual host of clients that name none; empty where there is none.")
    connections_processed: int = attribute("Connections of clients that were accepted or denied.")
    connections_denied: int = attribute("Connections of clients that were denied.")
    connections_current: int = attribute("Connections of clients under policy now.")
    links_denied: int = attribute("Links that were denied.")
    max_message_size_denied: int = attribute("Always 0: links are closed and counted as closed.")
    total_denials: int = attribute("Number of denials of all kinds.")


@attrs.frozen(kw_only=True)
class VhostConfigRow(Row):
    """A virtual host as it is configured."""

    hostname: str = attribute("Name of the virtual host.")
    aliases: Sequence[str] = attribute("Other names of the virtual host.")
    max_connections: int = attribute("Maximum number of connections at one time; 0 for no bound of its own.")
    max_message_size: int = attribute("Always 0: groups have bounds of their own.")
    max_connections_per_user: int = attribute("Always 0: groups have bounds of their own.")
    max_connections_per_host: int = attribute("Always 0: groups have bounds of their own.")
    allow_unknown_user: bool = attribute("Whether a group is for everybody.")
    groups: Mapping[str, object] = attribute("Groups by name, each a map.")
