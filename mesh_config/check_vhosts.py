"""Checks of one router's virtual hosts: names given twice, unreadable rules, what gives nothing or too much."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from mesh_config.access_rules import ANY_HOST, RuleError, check_pattern, parse_hosts
from mesh_config.findings import Finding, Severity, nearest
from mesh_config.models import (
    HOST_PATTERN,
    PASSWORD_MECHANISMS,
    GroupSettings,
    ListenerSettings,
    ManagementRight,
    Mechanism,
    MeshSettings,
    Role,
    RouterSettings,
    VhostSettings,
)
from mesh_config.multi_pattern_matcher import ANY_WORD, ANY_WORDS
from mesh_config.user_names import ANONYMOUS_USER, ANYBODY, RESERVED_NAMES, prepare_name
from mesh_config.yaml_text import Place

At = Callable[..., Place]
"""Steps to a setting to the place where it stands."""

MIN_FRAME_BYTES = 512
MANAGES: Final = {
    ManagementRight.READ: "see clients, users and addresses of all by management",
    ManagementRight.WRITE: "change this router by management, and close connections",
}
"""Rights to all of the management, and deeds that each allows."""
OUTSIDE = ("_topo", "_local", "_edge")
"""First words of addresses that no isolated virtual host has."""


def vhost_findings(router: RouterSettings, at: At) -> Iterator[Finding]:
    """Findings about the virtual hosts of a router.

    Args:
        router: whose they are.
        at: called with the steps to a setting of it.
    """
    first: dict[str, int] = {}
    for index, vhost in enumerate(router.vhosts):

        def below(*steps: str | int, index: int = index) -> Place:
            return at("vhosts", index, *steps)

        for steps, name in _names(vhost):
            if first.setdefault(name.lower(), index) != index:
                yield below(*steps).finding(
                    f"`{name}` already means virtual host `{router.vhosts[first[name.lower()]].name}`",
                    expected="a host name that means one virtual host",
                )
        yield from _hostname_findings(vhost, below)
        yield from _group_findings(vhost, router, below)
        yield from _user_findings(vhost, router, below)
        yield from _management_findings(vhost, router, below)
    yield from _listener_findings(router, at)


def vhost_differences(mesh: MeshSettings, locate: At) -> Iterator[Finding]:
    """Findings about routers with clients whose virtual hosts are not those of others: each judges its own clients."""
    with_clients = {
        key: router for key, router in mesh.routers.items() if any(it.role is Role.NORMAL for it in router.listeners)
    }
    first = next(((key, router) for key, router in with_clients.items() if router.vhosts), None)
    if first is None:
        return
    other, model = first
    for key, router in with_clients.items():
        if not router.vhosts:
            yield locate(key).finding(
                f"router `{key}` has no `vhosts`, and router `{other}` has: a client of `{key}` may use every address"
                f" of the mesh, those of tenants of `{other}` too",
                expected="the same `vhosts` at all routers with clients, below `defaults.router`",
                severity=Severity.WARNING,
            )
        elif _by_name(router) != _by_name(model):
            yield locate(key, "vhosts").finding(
                f"the `vhosts` of router `{key}` are not those of router `{other}`: who may do what depends on where"
                " one connects",
                expected="the same `vhosts` at all routers with clients, below `defaults.router`",
                severity=Severity.WARNING,
            )


def _by_name(router: RouterSettings) -> dict[str, VhostSettings]:
    return {vhost.name: vhost for vhost in router.vhosts}


def _names(vhost: VhostSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    yield ("name",), vhost.name
    for index, name in enumerate(vhost.hostnames):
        if name.lower() != vhost.name.lower():
            yield ("hostnames", index), name


def _hostname_findings(vhost: VhostSettings, at: At) -> Iterator[Finding]:
    for index, name in enumerate(vhost.hostnames):
        rest = "" if name == ANYBODY else name.removeprefix("*.")
        if name != ANYBODY and (ANYBODY in rest or not re.fullmatch(HOST_PATTERN, rest)):
            near = f"*.{name.rpartition(ANYBODY)[2].lstrip('.')}" if name.rpartition(ANYBODY)[2].strip(".") else None
            yield at("hostnames", index).finding(
                f"`{name}` is no host name", expected="a host name, `*.` and a domain, or `*`", nearest=near
            )


def _group_findings(vhost: VhostSettings, router: RouterSettings, at: At) -> Iterator[Finding]:
    names: set[str] = set()
    owners: dict[str, str] = {}
    mechanisms = {mechanism for it in listeners_of(vhost, router) for mechanism in it.sasl}
    asks_for_passwords = not mechanisms.isdisjoint(PASSWORD_MECHANISMS)
    if not vhost.groups:
        yield at("name").finding(
            f"nobody may connect to virtual host `{vhost.name}`", expected="a group", severity=Severity.WARNING
        )
    for index, group in enumerate(vhost.groups):

        def below(*steps: str | int, index: int = index) -> Place:
            return at("groups", index, *steps)

        if group.name in names:
            yield below("name").finding(f"two groups are called `{group.name}`", expected="a name of its own")
        names.add(group.name)
        for place, user in enumerate(group.users):
            if not user:
                yield below("users", place).finding("an empty name, which nobody has", expected="the name of a user")
            if asks_for_passwords and user not in RESERVED_NAMES:
                yield from _form_findings(user, below("users", place))
            if owners.setdefault(user, group.name) != group.name:
                yield below("users", place).finding(
                    f"user `{user}` is in group `{owners[user]}` already", expected="each user in one group"
                )
        if not group.users:
            yield below("name").finding(
                f"nobody is in group `{group.name}`",
                expected="`users`; `*` is everybody who said who it is, `anonymous` who did not",
                severity=Severity.WARNING,
            )
        yield from _rule_findings(group, below, is_isolated=vhost.isolated)


def _form_findings(user: str, at: Place) -> Iterator[Finding]:
    """A finding about a user whose name is in another form than that in which names are compared."""
    try:
        prepared = prepare_name(user)
    except ValueError:
        return  # nobody signs in with it, but a certificate may have it
    if prepared != user:
        yield at.finding(
            f"no user who gives a password is `{user}`: SASL writes that name in another form (NFKC)",
            expected="the name as SASL writes it",
            nearest=prepared,
            severity=Severity.WARNING,
        )


def listeners_of(vhost: VhostSettings, router: RouterSettings) -> list[ListenerSettings]:
    """Listeners of a router by which clients come to a virtual host of it."""
    return [each for each in router.listeners if each.role is Role.NORMAL and each.vhost in (None, vhost.name)]


def _management_findings(vhost: VhostSettings, router: RouterSettings, at: At) -> Iterator[Finding]:
    """Groups whose users ask for all of the management, and didn't say who they are."""
    open_ones = [each for each in listeners_of(vhost, router) if Mechanism.ANONYMOUS in each.sasl]
    for index, group in enumerate(vhost.groups):
        may = MANAGES.get(group.management)
        if open_ones and group.hosts and may is not None and ANONYMOUS_USER in group.users:
            where = ", ".join(f"{each.host}:{each.port}" for each in open_ones)
            where += f" from {', '.join(group.hosts)}" if ANY_HOST not in group.hosts else ""
            yield at("groups", index, "management").finding(
                f"whoever reaches {where} may {may}, as `{ANONYMOUS_USER}` is in group `{group.name}`",
                expected=f"`{ManagementRight.NONE}`, `{ManagementRight.OWN}`, or a group of users who say who they are",
                severity=Severity.WARNING,
            )


def _user_findings(vhost: VhostSettings, router: RouterSettings, at: At) -> Iterator[Finding]:
    """Groups of users who cannot be, since no listener asks anybody who it is."""
    listeners = listeners_of(vhost, router)
    if not listeners or any(mechanism is not Mechanism.ANONYMOUS for it in listeners for mechanism in it.sasl):
        return
    for index, group in enumerate(vhost.groups):
        if group.users and ANONYMOUS_USER not in group.users:
            yield at("groups", index, "users").finding(
                f"nobody can be in group `{group.name}`: no listener of router `{router.id}` for clients of virtual"
                f" host `{vhost.name}` has a mechanism but ANONYMOUS, so all of them are `{ANONYMOUS_USER}`",
                expected=f"`sasl` with SCRAM-SHA-256, PLAIN or EXTERNAL at a listener, or the user `{ANONYMOUS_USER}`",
                severity=Severity.WARNING,
            )


def _rule_findings(group: GroupSettings, at: At, *, is_isolated: bool) -> Iterator[Finding]:
    for index, rule in enumerate(group.hosts):
        yield from _told(lambda rule=rule: parse_hosts(rule), at("hosts", index))  # type: ignore[misc]
    if not group.hosts:
        yield at("hosts").finding(
            f"no user of group `{group.name}` may connect from any host",
            expected="hosts",
            nearest=ANY_HOST,
            severity=Severity.WARNING,
        )
    for key in ("sources", "targets"):
        for index, text in enumerate(getattr(group, key)):
            place = at(key, index)
            yield from _told(lambda text=text: check_pattern(text), place)  # type: ignore[misc]
            yield from _pattern_findings(text, place, is_isolated=is_isolated)
    if 0 < group.max_frame_bytes < MIN_FRAME_BYTES:
        yield at("max_frame_bytes").finding(
            f"{group.max_frame_bytes} is less than any peer may send", expected="512 or more", nearest="512"
        )


def _pattern_findings(text: str, place: Place, *, is_isolated: bool) -> Iterator[Finding]:
    head = text.strip("/.").partition("/")[0]
    if text == ANY_WORD:
        yield place.finding(
            "`*` is any one word, and an address may have several",
            expected="`#` for all addresses",
            nearest=ANY_WORDS,
            severity=Severity.WARNING,
        )
    elif head == "$management":
        yield place.finding(
            "`$management` is no matter of addresses",
            expected="the setting `management` of the group",
            nearest=f"management: {ManagementRight.READ}",
        )
    elif is_isolated and head in OUTSIDE:
        yield place.finding(
            f"`{head}/` is outside every isolated virtual host, so this allows nothing",
            expected="an address of the virtual host",
            severity=Severity.WARNING,
        )


def _told(parse: Callable[[], object], place: Place) -> Iterator[Finding]:
    try:
        parse()
    except RuleError as error:
        yield place.finding(str(error), expected=error.expected, nearest=error.nearest)


def _listener_findings(router: RouterSettings, at: At) -> Iterator[Finding]:
    names = [vhost.name for vhost in router.vhosts]
    for index, listener in enumerate(router.listeners):
        if listener.vhost is not None and listener.role is Role.INTER_ROUTER:
            yield at("listeners", index, "vhost").finding(
                "routers are in no virtual host", expected=f"a listener with the role `{Role.NORMAL}`, or no `vhost`"
            )
        elif listener.vhost is not None and listener.vhost not in names:
            yield at("listeners", index, "vhost").finding(
                f"no virtual host `{listener.vhost}`",
                expected=f"one of {', '.join(f'`{name}`' for name in names)}" if names else "`vhosts` of this router",
                nearest=nearest(listener.vhost, names),
            )
        if listener.vhost_prefix and router.vhosts:
            yield at("listeners", index, "vhost_prefix").finding(
                "`vhost_prefix` has no effect where there are `vhosts`",
                expected="`isolated` of each virtual host",
                nearest="false",
            )
