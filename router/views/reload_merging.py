"""Merge of the settings that may differ at a reload: those of the file before, of the file now, and of what runs.

They differ since management creates and deletes listeners, connectors and addresses, and since some settings need a
restart. What each of the functions below takes, by setting:

| setting | `as_left_by_management` | `running_after` | `in_file_after` |
|---|---|---|---|
| listeners | of the file before, without deleted ones; created ones whose place the file has now | of the file now | of the file now |
| connectors | that run, as far as either file has them | of the file now | of the file now |
| addresses | of the file before, without deleted ones | of the file now, and created ones that it doesn't have | of the file now |
| `tls` | of the file before | of the file now | of the file now |
| `forwarding` | of the file before | of the file now, but for what needs a restart | the same |
| what the plan takes over | of the file before | of the file now | of the file now |
| what needs a restart | of the file before | that runs | of the file before |

So what needs a restart is in question at each reload until then, and what management has changed is in question only
where the file says something about it.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import attrs

from mesh_config.change_plan import ChangePlan, forwarding_as_it_runs
from mesh_config.defaults_merging import address_key
from mesh_config.models import AddressSettings, ConnectorSettings, ListenerSettings, RouterSettings

Entry = TypeVar("Entry", ListenerSettings, AddressSettings)


def as_left_by_management(
    file: RouterSettings,
    new: RouterSettings,
    listeners: Sequence[ListenerSettings],
    connectors: Sequence[ConnectorSettings],
    addresses: Sequence[AddressSettings],
) -> RouterSettings:
    """Settings to compare the file with: what it said before, as management has left what it may create and delete.

    Args:
        file: as it was read last.
        new: the file as it is now.
        listeners: that there are.
        connectors: that there are.
        addresses: entries that there are.
    """
    places = {(each.host, each.port) for each in new.listeners}
    named_anew = [each for each in listeners if each not in file.listeners and (each.host, each.port) in places]
    kept = {*file.connectors, *new.connectors}
    return attrs.evolve(
        file,
        listeners=(*_still_there(file.listeners, listeners), *named_anew),
        connectors=tuple(each for each in connectors if each in kept),
        addresses=_still_there(file.addresses, addresses),
    )


def running_after(
    running: RouterSettings, file: RouterSettings, new: RouterSettings, plan: ChangePlan
) -> RouterSettings:
    """Settings by which the router goes once the plan is carried out.

    Args:
        running: by which it goes now.
        file: as it was read last.
        new: the file as it is now.
        plan: what is to change.
    """
    in_file = {address_key(each.prefix, each.pattern) for each in new.addresses}
    created = [
        each
        for each in running.addresses
        if each not in file.addresses and address_key(each.prefix, each.pattern) not in in_file
    ]
    return attrs.evolve(
        running,
        listeners=new.listeners,
        connectors=new.connectors,
        addresses=(*new.addresses, *created),
        tls=new.tls,
        forwarding=forwarding_as_it_runs(running.forwarding, new.forwarding),
        **{name: getattr(new, name) for name in plan.taken_over},
    )


def in_file_after(file: RouterSettings, new: RouterSettings, plan: ChangePlan) -> RouterSettings:
    """Settings to take for the file's at the next reload: the new ones, with the old ones that need a restart."""
    kept = {name: getattr(file, name) for name in plan.needs_restart if hasattr(file, name)}
    return attrs.evolve(new, **kept, forwarding=forwarding_as_it_runs(file.forwarding, new.forwarding))


def _still_there(named: tuple[Entry, ...], held: Sequence[Entry]) -> tuple[Entry, ...]:
    """Settings that *named* and *held* have in common; equal ones are counted."""
    return tuple((Counter(named) & Counter(held)).elements())
