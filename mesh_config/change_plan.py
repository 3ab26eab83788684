"""The plan of what a running router has to change, so that it is as its file says now.

Nothing is changed here, and nothing is known of sockets: the plan is a list of what to open, close and take over, and
of what a router reads at its start alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

import attrs

from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    ForwardingSettings,
    ListenerSettings,
    RouterSettings,
    TlsSettings,
)
from mesh_config.value_rules import fields_of

Socket = TypeVar("Socket", bound=Hashable)
SocketSettings = TypeVar("SocketSettings", ListenerSettings, ConnectorSettings)
Settings = TypeVar("Settings", RouterSettings, ListenerSettings, ConnectorSettings, ForwardingSettings)

TAKEN_OVER: Final = ("neighbors", "default_treatment", "log", "shutdown_s", "shutdown_replies_s", "vhosts", "http")
"""Settings that count from the next time that they are looked at."""
MOST_SAID: Final = 20
"""Things of a kind that a change is told of each by itself: each is a line of the log."""
IN_PARTS: Final = ("listeners", "connectors", "addresses", "tls", "forwarding")
"""Settings of which each part is looked at by itself."""
OF_THE_NEXT_DIAL: Final = ("reconnect_initial_s", "reconnect_max_s")
"""Settings of a connector that say when it dials again: its connection needs not to end for them."""
FORWARDING_AT_START: Final = (
    "publisher_window",
    "brokered_messages",
    "circuit_idle_s",
    "quarantine_s",
    "linger_s",
    "drain_bound_s",
    "grace_s",
    "management_request_bytes",
)
"""Settings of `forwarding` that are looked at at the start: most are of credit, which goes on from what was lent."""


@attrs.frozen(kw_only=True)
class ChangePlan:
    """Changes to be made in a running router."""

    opened: tuple[ListenerSettings, ...] = ()
    """Listeners to bind."""
    closed: tuple[ListenerSettings, ...] = ()
    """Listeners that accept no more."""
    altered: tuple[tuple[ListenerSettings, ListenerSettings], ...] = ()
    """Listeners that stay bound and get other settings: before and after."""
    added: tuple[ConnectorSettings, ...] = ()
    """Connections to begin to make."""
    ended: tuple[ConnectorSettings, ...] = ()
    """Connections to make no more, and to close. One whose settings have changed is ended and added."""
    repaced: tuple[tuple[ConnectorSettings, ConnectorSettings], ...] = ()
    """Connections that go on, and are dialled after other pauses when they are lost: before and after."""
    addresses_added: tuple[AddressSettings, ...] = ()
    addresses_removed: tuple[AddressSettings, ...] = ()
    profiles: tuple[TlsSettings, ...] = ()
    """TLS profiles whose names are new."""
    profiles_altered: tuple[TlsSettings, ...] = ()
    """TLS profiles that have other settings than before."""
    profiles_removed: tuple[str, ...] = ()
    """Names of TLS profiles that have left."""
    forwarding: tuple[str, ...] = ()
    """Names of settings of `forwarding` that are taken over."""
    taken_over: tuple[str, ...] = ()
    """Names of settings that need no more than to be known."""
    needs_restart: tuple[str, ...] = ()
    """Names of settings that are others in the file now, and stay as they were until the next start."""

    def described(self) -> list[str]:
        """Say what is changed at once, a sentence for each; of very many of a kind how many more there are."""
        return [
            *_first("listener", map(_place, self.opened), "opened"),
            *_first("listener", map(_place, self.closed), "closed"),
            *_first("listener", (_altered(*pair) for pair in self.altered), "changed, for new connections"),
            *_first("connector", map(_place, self.ended), "ended"),
            *_first("connector", map(_place, self.added), "added"),
            *_first("connector", (_altered(*pair) for pair in self.repaced), "changed, for its next attempt"),
            *_first("address", (each.prefix or each.pattern for each in self.addresses_removed), "removed"),
            *_first("address", (each.prefix or each.pattern for each in self.addresses_added), "added"),
            *_first("tls profile", (each.name for each in self.profiles), "added"),
            *_first("tls profile", (each.name for each in self.profiles_altered), "changed, for new connections"),
            *_first("tls profile", self.profiles_removed, "removed"),
            *(f"forwarding.{name} changed" for name in self.forwarding),
            *(f"{name} changed" for name in self.taken_over),
        ]


def _first(kind: str, things: Iterable[str | None], change: str) -> list[str]:
    """Say what has happened to the first of some things, and to how many more of them."""
    names = list(things)
    said = [f"{kind} {name} {change}" for name in names[:MOST_SAID]]
    more = len(names) - MOST_SAID
    return [*said, f"{kind}: {more:,} more {change}"] if more > 0 else said


def _altered(before: SocketSettings, after: SocketSettings) -> str:
    return f"{_place(after)}: {', '.join(_differences(before, after))}"


def plan_change(old: RouterSettings, new: RouterSettings) -> ChangePlan:
    """Compare the settings of a router with those that it should have.

    Args:
        old: as its file was when it was read last.
        new: as the file is now, checked.
    """
    closed, opened = _without_common(old.listeners, new.listeners)
    altered = _take_pairs(closed, opened, lambda before, after: (before.host, before.port) == (after.host, after.port))
    ended, added = _without_common(old.connectors, new.connectors)
    repaced = _take_pairs(ended, added, lambda before, after: {*_differences(before, after)} <= {*OF_THE_NEXT_DIAL})
    removed_addresses, added_addresses = _without_common(old.addresses, new.addresses)
    names = {profile.name for profile in old.tls}
    changed = _differences(old, new)
    restart = [name for name in changed if name not in (*TAKEN_OVER, *IN_PARTS)]
    bounds = _differences(old.forwarding, new.forwarding)
    restart += [f"forwarding.{name}" for name in bounds if name in FORWARDING_AT_START]
    return ChangePlan(
        opened=tuple(opened),
        closed=tuple(closed),
        altered=tuple(altered),
        ended=tuple(ended),
        added=tuple(added),
        repaced=tuple(repaced),
        addresses_added=tuple(added_addresses),
        addresses_removed=tuple(removed_addresses),
        profiles=tuple(each for each in new.tls if each.name not in names),
        profiles_altered=tuple(each for each in new.tls if each.name in names and each not in old.tls),
        profiles_removed=tuple(sorted(names - {each.name for each in new.tls})),
        forwarding=tuple(name for name in bounds if name not in FORWARDING_AT_START),
        taken_over=tuple(name for name in changed if name in TAKEN_OVER),
        needs_restart=tuple(restart),
    )


def forwarding_as_it_runs(old: ForwardingSettings, new: ForwardingSettings) -> ForwardingSettings:
    """Combine the settings that a router goes by after a change: *new*, but for what counts at its start alone."""
    return attrs.evolve(new, **{name: getattr(old, name) for name in FORWARDING_AT_START})


def _without_common(old: Sequence[Socket], new: Sequence[Socket]) -> tuple[list[Socket], list[Socket]]:
    """Entries of *old* that are not in *new*, and the other way round; equal ones are counted."""
    gone, come = Counter(old), Counter(new)
    return list((gone - come).elements()), list((come - gone).elements())


def _take_pairs(
    gone: list[Socket], come: list[Socket], is_same: Callable[[Socket, Socket], bool]
) -> list[tuple[Socket, Socket]]:
    """Take those of both lists that are the same with other settings. Returns: each as it was before and is after."""
    pairs = []
    for after in tuple(come):
        before = next((each for each in gone if is_same(each, after)), None)
        if before is not None:
            pairs.append((before, after))
            gone.remove(before)
            come.remove(after)
    return pairs


def _place(socket: ListenerSettings | ConnectorSettings) -> str:
    place = f"{socket.host}:{socket.port}"
    return f"{socket.name} ({place})" if socket.name else place


def _differences(before: Settings, after: Settings) -> list[str]:
    names = [field.name for field in fields_of(type(after))]
    return [name for name in names if getattr(before, name) != getattr(after, name)]
