"""Policy of a router: which virtual host a client comes to, whether it may, and with which rights.

    rights = policy.admit(hostname, user, host, now)     # or Denied
    ...
    policy.leave(rights, host)

Where no virtual host is configured there is no policy: clients have no rights object, and nothing is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from mesh_config.access_rules import HostRules, fit_all_of
from mesh_config.models import GroupSettings, ManagementRight, VhostSettings
from mesh_config.user_names import ANONYMOUS_USER, ANYBODY
from router.core.ids_and_conditions import Condition, RouterId
from router.core.policy.client_rights import ClientRights
from router.core.policy.denial import DenialKind, Denied
from router.core.policy.message_rate import MessageRate, TokenBucket
from router.core.policy.vhost_state import VhostState
from router.core.terminal_escaping import escaped

RIGHTS = (ManagementRight.NONE, ManagementRight.OWN, ManagementRight.READ, ManagementRight.WRITE)
"""Rights to management, each with all that those before it have."""

MOST_SHOWN = 255
"""Characters that are shown of a host name: a peer's word, which may be as long as a frame."""
NAMELESS = "for who names none: one with `hostnames: ['*']` would take them, or a listener with `vhost`"


@attrs.define
class UserState:
    """Connections of one user to one virtual host."""

    rights: ClientRights
    bucket: TokenBucket | None
    """Rate of all its connections together; None for no bound."""
    connections: int = 0


class Policy:
    """The virtual hosts of one router.

    Args:
        vhosts: their settings; without any there is no policy.
        me: id of the router.
        told: hears of each denial: it, the virtual host (empty for none), the user and what was asked for.
    """

    def __init__(
        self,
        vhosts: Iterable[VhostSettings],
        me: RouterId,
        told: Callable[[Denied, str, str, str], None] = lambda denied, vhost, user, what: None,
    ) -> None:
        self._me = me
        self._told = told
        self._users: dict[tuple[str, str], UserState] = {}
        """Users that are connected, by virtual host and name."""
        self.denied_unknown = 0
        """Number of connections to virtual hosts that there are not, since the start."""
        self._states: dict[str, VhostState] = {}
        self._know(vhosts)

    def _know(self, vhosts: Iterable[VhostSettings]) -> None:
        before, self._states = self._states, {}
        for vhost in vhosts:
            state = before.get(vhost.name)
            if state is None or state.settings.isolated is not vhost.isolated:
                state = VhostState(vhost, self._told)
            else:
                state.take_settings(vhost)
            self._states[vhost.name] = state
        self._isolated = frozenset(name for name, state in self._states.items() if state.settings.isolated)
        self._exact: dict[str, VhostState] = {}
        self._domains: list[tuple[str, VhostState]] = []
        self._any: VhostState | None = None
        self._hosts: dict[tuple[str, str], HostRules] = {}
        for state in self._states.values():
            self._name(state)
        self._domains.sort(key=lambda found: -len(found[0]))

    def take_settings(self, vhosts: Iterable[VhostSettings], now: float) -> None:
        """Go by other virtual hosts from now on; `objection` tells which clients have to leave.

        Who has as much as before, or more, has it at once. Who has lost something may not stay: links that it has
        would go on. Rates count for new connections.

        Args:
            vhosts: their settings.
            now: seconds, monotonic.
        """
        self._know(vhosts)
        for key, known in list(self._users.items()):
            name, user = key
            rights, state = known.rights, self._states.get(name)
            group = group_of(state.settings, user) if state is rights.state else None
            if group is None or not has_all_of(group, rights.group):
                del self._users[key]  # who comes again has new rights
                continue
            if group.messages_per_s_of_user != rights.group.messages_per_s_of_user:
                rate = group.messages_per_s_of_user
                known.bucket = TokenBucket(rate, now) if rate else None
            rights.take_group(group, self._isolated)

    def objection(self, rights: ClientRights | None, hostname: str | None, host: str) -> str:
        """Say why a client that was let in may not stay; empty when it may.

        Args:
            rights: its own; None for one that came while there was no policy.
            hostname: as in `admit`.
            host: address that it comes from.
        """
        if rights is None:
            return "there are virtual hosts now" if self.is_active else ""
        if not self.is_active:
            return "there are no virtual hosts any more"
        if rights.vhost not in self._states:
            return f"there is no virtual host `{rights.vhost}` any more"
        known = self._users.get((rights.vhost, rights.user))
        if known is None or known.rights is not rights:
            return f"the rights of user `{rights.user}` in virtual host `{rights.vhost}` have changed"
        if self._find(hostname or "") is not rights.state:
            return f"`{escaped(hostname or '', MOST_SHOWN)}` does not mean virtual host `{rights.vhost}` any more"
        if not self._hosts[rights.vhost, rights.group.name].allows(host):
            return f"user `{rights.user}` may not come from this remote host any more"
        return ""

    def _name(self, state: VhostState) -> None:
        for name in (state.settings.name, *state.settings.hostnames):
            if name == ANYBODY:
                self._any = state
            elif name.startswith("*."):
                self._domains.append((name[1:].lower(), state))
            else:
                self._exact[name.lower()] = state
        for group in state.settings.groups:
            self._hosts[state.settings.name, group.name] = HostRules(group.hosts)

    @property
    def is_active(self) -> bool:
        """Whether any virtual host is configured."""
        return bool(self._states)

    def vhosts(self) -> Iterator[VhostState]:
        """Go through the states of all virtual hosts, in the order of the settings."""
        yield from self._states.values()

    def admit(self, hostname: str | None, user: str, host: str, now: float) -> ClientRights:
        """Let a client in, and count its connection until `leave`.

        Args:
            hostname: of its Open, or the one that its listener sets.
            user: as it was authenticated.
            host: address that it comes from, without port.
            now: seconds, monotonic.
        Raises:
            Denied: it may not come in.
        """
        state = self._find(hostname or "")
        if state is None:
            self.denied_unknown += 1
            which = f"`{escaped(hostname, MOST_SHOWN)}`" if hostname else NAMELESS
            denied = Denied(DenialKind.CONNECTION, f"there is no virtual host {which}")
            self._told(denied, "", user, hostname or "")
            raise denied
        try:
            return self._admit(state, user, host, now)
        except Denied as denied:
            state.denied(denied, user, "")
            raise

    def _find(self, hostname: str) -> VhostState | None:
        name = hostname.lower()
        found = self._exact.get(name)
        if found is None:
            found = next((state for suffix, state in self._domains if name.endswith(suffix)), self._any)
        return found

    def _admit(self, state: VhostState, user: str, host: str, now: float) -> ClientRights:
        vhost = state.settings
        group = group_of(vhost, user)
        if group is None:
            raise Denied(DenialKind.CONNECTION, f"user `{user}` may not use virtual host `{vhost.name}`")
        if not self._hosts[vhost.name, group.name].allows(host):
            raise Denied(
                DenialKind.CONNECTION, f"user `{user}` may not use virtual host `{vhost.name}` from this remote host"
            )
        known = self._users.get((vhost.name, user))
        for most, count, of in (
            (vhost.max_connections, state.connections, f"virtual host `{vhost.name}`"),
            (group.max_connections_of_user, known.connections if known is not None else 0, f"user `{user}`"),
            (group.max_connections_of_host, state.hosts.get(host, 0), "this remote host"),
        ):
            if most and count >= most:
                raise Denied(
                    DenialKind.CONNECTION,
                    f"there {'is 1 connection' if most == 1 else f'are {most} connections'} of {of}, as many as may be",
                    condition=Condition.RESOURCE_LIMIT_EXCEEDED,
                )
        if known is None:
            rate = group.messages_per_s_of_user
            known = self._users[vhost.name, user] = UserState(
                ClientRights(state, group, user, self._me, self._isolated), TokenBucket(rate, now) if rate else None
            )
        known.connections += 1
        state.join(host)
        return known.rights

    def rate(self, rights: ClientRights, now: float) -> MessageRate | None:
        """The bound of messages of one more connection with these rights; None when there is none.

        Args:
            rights: of its client.
            now: seconds, monotonic.
        """
        own = rights.group.messages_per_s
        shared = self._users[rights.vhost, rights.user].bucket
        buckets = ([TokenBucket(own, now)] if own else []) + ([shared] if shared is not None else [])
        return MessageRate(buckets) if buckets else None

    def may_read_management(self, user: str, host: str) -> bool:
        """Whether a user, from a remote host, has the right to read management in any of the virtual hosts.

        Everybody has it where there are none.
        """
        for state in self._states.values():
            group = group_of(state.settings, user)
            if group is None or RIGHTS.index(group.management) < RIGHTS.index(ManagementRight.READ):
                continue
            if self._hosts[state.settings.name, group.name].allows(host):
                return True
        return not self.is_active

    def leave(self, rights: ClientRights, host: str) -> None:
        """A connection that was let in is gone."""
        rights.state.leave(host)
        user = self._users.get((rights.vhost, rights.user))
        if user is None or user.rights is not rights:
            return  # they were taken away meanwhile
        user.connections -= 1
        if not user.connections:
            del self._users[rights.vhost, rights.user]


def has_all_of(group: GroupSettings, before: GroupSettings) -> bool:
    """Whether a user in *group* may do what it might do in *before*; bounds are not looked at."""
    return (
        fit_all_of(group.sources, before.sources)
        and fit_all_of(group.targets, before.targets)
        and group.dynamic_addresses >= before.dynamic_addresses
        and group.anonymous_senders >= before.anonymous_senders
        and group.any_user_id is before.any_user_id  # links have their own copy
        and RIGHTS.index(group.management) >= RIGHTS.index(before.management)
    )


def group_of(vhost: VhostSettings, user: str) -> GroupSettings | None:
    """The group of a user: the one that names it, else the first that takes all authenticated users."""
    for group in vhost.groups:
        if user in group.users and user != ANYBODY:
            return group
    if user == ANONYMOUS_USER:
        return None
    return next((group for group in vhost.groups if ANYBODY in group.users), None)
