"""Rights of one user of a virtual host: what may be named in links and messages, and what it is called in the mesh."""

from __future__ import annotations

from typing import Final

from mesh_config.access_rules import AddressRules, user_word
from mesh_config.models import GroupSettings, ManagementRight, VhostSettings
from router.core.addressing.address import (
    MANAGEMENT,
    AddressKind,
    is_dynamic_target,
    is_private,
    normalise,
    parse_address,
    reply_tag,
)
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.policy.denial import DenialKind, Denied
from router.core.policy.vhost_state import VhostState

MOST_REMEMBERED: Final = 1024
"""Maximum number of addresses in messages of one user whose verdicts are remembered."""
LONGEST_REMEMBERED: Final = 256
"""Maximum length of an address whose verdict is remembered, characters."""


class ClientRights:
    """Rights of one user, shared by all its connections.

    Addresses are judged by their normal form, so one that is spelled otherwise is the same. What policy lets pass comes
    back as the mesh knows it: in an isolated virtual host `x` is `<vhost>/x`.
    """

    def __init__(
        self, state: VhostState, group: GroupSettings, user: str, me: RouterId, isolated: frozenset[str]
    ) -> None:
        """*isolated* are the names of all isolated virtual hosts, whose addresses nobody else can name."""
        vhost: VhostSettings = state.settings
        self.state = state
        self.vhost = vhost.name
        self.user = user
        self.prefix = vhost.name if vhost.isolated else ""
        """Word before each of its addresses; empty where they are those of the whole mesh."""
        self.tag = state.tag
        """Mark of its reply addresses."""
        self._me = me
        self.take_group(group, isolated)

    def take_group(self, group: GroupSettings, isolated: frozenset[str]) -> None:
        """Have what *group* has from now on; see `__init__`."""
        self.group = group
        self._outside = isolated - {self.prefix}
        self._sources = AddressRules(group.sources, self.user)
        self._targets = AddressRules(group.targets, self.user)
        self._verdicts: dict[str, str | Denied] = {}

    @property
    def user_id(self) -> bytes | None:
        """The only `user-id` that its messages may have; None for any."""
        return None if self.group.any_user_id else self.user.encode()

    def is_outside(self, text: str) -> bool:
        """Whether a mobile address, normalised as the mesh knows it, is in a virtual host of others."""
        return text.partition("/")[0] in self._outside

    def source(self, address: str) -> str:
        """The address that a receiver asks for.

        Raises:
            Denied: it may not receive from there.
        """
        return self._resolved(address, self._sources, DenialKind.RECEIVER)

    def target(self, address: str) -> str:
        """The address of a sender's link.

        Raises:
            Denied: it may not send there.
        """
        return self._resolved(address, self._targets, DenialKind.SENDER)

    def message_target(self, address: str, connection: ConnectionId | None = None) -> str:
        """The address that a message names: by the same rules as that of a link, and remembered.

        Args:
            address: it.
            connection: that the message came from, where it did.
        Raises:
            Denied: it may not be sent there.
        """
        verdict = self._verdicts.get(address)
        if verdict is None:
            try:
                verdict = self._resolved(address, self._targets, DenialKind.MESSAGE)
            except Denied as error:
                verdict = error
            if len(address) <= LONGEST_REMEMBERED:
                if len(self._verdicts) >= MOST_REMEMBERED:
                    self._verdicts.clear()
                self._verdicts[address] = verdict
        if isinstance(verdict, Denied):
            # One of its own has no traceback.
            denied = Denied(verdict.kind, str(verdict), condition=verdict.condition, connection=connection)
            self.state.denied(denied, self.user, address)
            raise denied
        return verdict

    def asks_other_router(self, address: str) -> bool:
        """Whether *address* is that of another router's management, or of several ones'."""
        parsed = parse_address(address, me=self._me)
        return parsed.text == MANAGEMENT and parsed.kind not in (AddressKind.LOCAL, AddressKind.MOBILE)

    @property
    def _may_manage(self) -> bool:
        """Whether it may ask management at all: with that goes what tools ask with.

        Those of Qpid Dispatch, and our own, name the node in each message, and get their answers at a dynamic address.
        """
        return self.group.management is not ManagementRight.NONE

    def denied_user_id(self, error: Exception, connection: ConnectionId) -> None:
        """Count a message whose `user-id` was not its sender's."""
        self.state.denied(Denied(DenialKind.USER_ID, str(error), connection=connection), self.user, "")

    def check_dynamic(self, kind: DenialKind) -> None:
        """See that the router may make an address for it.

        Raises:
            Denied: it may not.
        """
        is_for_replies = kind is DenialKind.RECEIVER and self._may_manage
        if not (self.group.dynamic_addresses or is_for_replies):
            raise Denied(kind, f"user `{self.user}` may not have dynamic addresses in virtual host `{self.vhost}`")

    def check_anonymous_sender(self) -> None:
        """See that it may name an address in each message.

        Raises:
            Denied: it may not.
        """
        if not (self.group.anonymous_senders or self._may_manage):
            raise Denied(
                DenialKind.SENDER,
                f"user `{self.user}` may not attach a sender without an address in virtual host `{self.vhost}`",
            )

    def check_links(self, kind: DenialKind, count: int) -> None:
        """See that it may attach one more link.

        Args:
            kind: SENDER or RECEIVER.
            count: of links of that kind that its connection has.
        Raises:
            Denied: it has as many as it may.
        """
        group = self.group
        most = group.max_senders if kind is DenialKind.SENDER else group.max_receivers
        if most and count >= most:
            raise Denied(
                kind,
                f"user `{self.user}` may have {most} {kind}s on one connection to virtual host `{self.vhost}`",
                condition=Condition.RESOURCE_LIMIT_EXCEEDED,
            )

    def _resolved(self, address: str, rules: AddressRules, kind: DenialKind) -> str:
        parsed = parse_address(address, me=self._me)
        text = normalise(address)
        head = text.partition("/")[0]
        if parsed.text == MANAGEMENT and parsed.kind is not AddressKind.INVALID:
            self._check_management(parsed.kind, kind)
            return address
        if is_private(parsed):
            if reply_tag(parsed.text) != self.tag:
                raise Denied(kind, f"a reply address of another virtual host than `{self.vhost}`")
            return address
        # DEV-37: in qdrouterd a tenant may name what is local or topological, and replies of other tenants.
        if self.prefix:
            if parsed.kind is not AddressKind.MOBILE or text.startswith("$"):
                raise Denied(kind, f"{address} is outside virtual host `{self.vhost}`")
        elif head in self._outside:
            raise Denied(kind, f"{address} is in virtual host `{head}`")
        if not (is_dynamic_target(text) or rules.allows(text)):
            what = "receive from" if kind is DenialKind.RECEIVER else "send to"
            denied = f"user `{self.user}` may not {what} {address} in virtual host `{self.vhost}`"
            raise Denied(kind, f"{denied}{self._hint(address)}")
        return f"{self.prefix}/{text}" if self.prefix else address

    def _hint(self, address: str) -> str:
        """Say how the user's name is written in addresses, to who has written it otherwise."""
        word = user_word(self.user)
        is_plain = word == self.user or self.user not in address
        return "" if is_plain else f"; as one word of an address `{self.user}` is `{word}`"

    def _check_management(self, where: AddressKind, kind: DenialKind) -> None:
        right = self.group.management
        is_here = where in (AddressKind.LOCAL, AddressKind.MOBILE)
        if right is ManagementRight.NONE or (right is ManagementRight.OWN and not is_here):
            what = f"management of {'this router' if is_here else 'other routers'}"
            raise Denied(kind, f"user `{self.user}` may not use the {what} in virtual host `{self.vhost}`")
