"""Rows of what is configured, of the log, and of what is in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Final

from mesh_config.models import DEFAULT_ADDRESSES, AddressSettings
from mesh_config.user_names import ANYBODY, RESERVED_NAMES
from router import logs
from router.core.policy.denial import DenialKind
from router.management.config_log_and_memory_rows import (
    AddressConfigRow,
    AllocatorRow,
    PolicyRow,
    RouterLogRow,
    RouterLogStatsRow,
    VhostConfigRow,
)
from router.management.snapshot import LazyRows, LogLine
from router.runtime import Runtime

LOG_MODULE = "DEFAULT"


def address_config_rows(runtime: Runtime) -> LazyRows:
    """The treatments that are configured, then those that are built in."""
    configured = [(entry, False) for entry in runtime.settings.addresses]
    builtin = [(entry, True) for entry in DEFAULT_ADDRESSES]
    rows = []
    for index, (entry, is_builtin) in enumerate([*configured, *builtin]):
        rows.append(_address_row(index, entry, runtime.address_names.get(entry), is_builtin=is_builtin))
    return LazyRows(rows)


def _address_row(index: int, entry: AddressSettings, name: str | None, *, is_builtin: bool) -> AddressConfigRow:
    text = entry.prefix if entry.prefix is not None else entry.pattern
    return AddressConfigRow(
        name=name or f"address/{text}",
        identity=f"router.config.address/{index}:{text}",
        prefix=entry.prefix,
        pattern=entry.pattern,
        distribution=entry.treatment.value,
        distance_messages=entry.distance_messages,
        is_builtin=is_builtin,
        waypoint=False,
        ingress_phase=None,
        egress_phase=None,
        priority=None,
        enable_fallback=False,
    )


def log_row() -> RouterLogRow:
    """The log as it is set."""
    level = logs.get_level()
    name = f"log/{LOG_MODULE}"
    return RouterLogRow(
        name=name,
        identity=name,
        module=LOG_MODULE,
        enable=level if level == "none" else f"{level}+",
        format=logs.get_format(),
        include_timestamp=True,
        include_source=False,
        output_file="stderr",
    )


def log_stats_row() -> RouterLogStatsRow:
    """Row of the number of lines written since the start."""
    counts = logs.recent.counts
    return RouterLogStatsRow(
        name=LOG_MODULE,
        identity=f"logStats/{LOG_MODULE}",
        trace_count=0,
        debug_count=counts["debug"],
        info_count=counts["info"],
        notice_count=0,
        warning_count=counts["warning"],
        error_count=counts["error"],
        critical_count=0,
    )


def log_lines(most: int) -> list[LogLine]:
    """The last *most* lines, the oldest first."""
    lines = logs.recent.lines
    return [LogLine(int(at), level, text) for at, level, text in islice(lines, max(0, len(lines) - most), None)]


LOOKED: Final = 100
"""Links on which a message is looked for, to learn its size."""


def allocator_rows(runtime: Runtime) -> LazyRows:
    """Objects in memory, by kind."""
    return LazyRows([_allocator_row(*each) for each in _objects(runtime)])


def _objects(runtime: Runtime) -> Iterator[tuple[str, int, int]]:
    data_plane = runtime.data_plane
    connection = next(iter(runtime.connections.values()), None)
    link = next(iter(data_plane.links), None)
    transfer = next((each for one in islice(data_plane.links, LOOKED) for each in data_plane.transfers_on(one)), None)
    entry = next(runtime.fib.entries(), None)
    yield "connection", _size(connection), len(runtime.connections)
    yield "link", _size(link), len(data_plane.links)
    yield "delivery", _size(transfer), data_plane.settlement.count
    yield "address", _size(entry), runtime.fib.entry_count()


def _size(thing: object) -> int:
    return 0 if thing is None else sys.getsizeof(thing)


def _allocator_row(kind: str, size: int, count: int) -> AllocatorRow:
    return AllocatorRow(
        name=f"allocator/{kind}",
        identity=f"allocator/{kind}",
        type_name=kind,
        type_size=size,
        transfer_batch_size=0,
        local_free_list_max=0,
        global_free_list_max=0,
        total_alloc_from_heap=count,
        total_free_to_heap=0,
        held_by_threads=count,
        batches_rebalanced_to_threads=0,
        batches_rebalanced_to_global=0,
    )


def policy_row(runtime: Runtime) -> PolicyRow:
    """Policy as a whole."""
    policy = runtime.policy
    states = list(policy.vhosts())
    denied = sum(state.denials[DenialKind.CONNECTION] for state in states) + policy.denied_unknown
    links = sum(state.denials[kind] for state in states for kind in (DenialKind.SENDER, DenialKind.RECEIVER))
    messages = sum(state.denials[kind] for state in states for kind in (DenialKind.MESSAGE, DenialKind.USER_ID))
    default = next((state.settings.name for state in states if ANYBODY in state.settings.hostnames), "")
    return PolicyRow(
        name="policy/self",
        identity="policy/self",
        max_connections=65535,
        max_message_size=0,
        enable_vhost_policy=policy.is_active,
        enable_vhost_name_patterns=policy.is_active,
        policy_dir="",
        default_vhost=default,
        connections_processed=sum(state.admitted for state in states) + denied,
        connections_denied=denied,
        connections_current=sum(state.connections for state in states),
        links_denied=links,
        max_message_size_denied=0,
        total_denials=denied + links + messages,
    )


def vhost_config_rows(runtime: Runtime) -> LazyRows:
    """The virtual hosts."""
    rows = []
    for state in runtime.policy.vhosts():
        vhost = state.settings
        groups = {
            group.name: {
                "users": ",".join(group.users),
                "remoteHosts": ",".join(group.hosts),
                "sources": ",".join(group.sources),
                "targets": ",".join(group.targets),
                "maxSessions": group.max_sessions,
                "maxSenders": group.max_senders,
                "maxReceivers": group.max_receivers,
                "maxFrameSize": group.max_frame_bytes,
                "maxMessageSize": group.max_message_bytes,
                "allowDynamicSource": group.dynamic_addresses,
                "allowAnonymousSender": group.anonymous_senders,
                "allowUserIdProxy": group.any_user_id,
            }
            for group in vhost.groups
        }
        rows.append(
            VhostConfigRow(
                name=f"vhost/{vhost.name}",
                identity=f"vhost/{vhost.name}",
                hostname=vhost.name,
                aliases=list(vhost.hostnames),
                max_connections=vhost.max_connections,
                max_message_size=0,
                max_connections_per_user=0,
                max_connections_per_host=0,
                allow_unknown_user=any({*RESERVED_NAMES} & set(group.users) for group in vhost.groups),
                groups=groups,
            )
        )
    return LazyRows(rows)
