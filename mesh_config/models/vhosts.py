"""Settings of policy: virtual hosts, and what the users of each may do."""

from __future__ import annotations

import enum

import attrs

from mesh_config.models.setting_field import MIB, NAME_PATTERN, UNSEEN, setting

VHOST_PATTERN = f"(?![$_])[^\\s/:{UNSEEN}]{{1,255}}"
"""Pattern of a virtual host's name: it becomes the first word of addresses, which `$` and `_` would make the router's
own, and a `:` a scheme."""


class ManagementRight(enum.StrEnum):
    """Right to what a user may ask of the management nodes; each includes those before it."""

    NONE = "none"
    OWN = "own"
    READ = "read"
    WRITE = "write"


def _bound(what: str, unit: str, beyond: str, high: int = 1000000) -> int:
    bound: int = setting(f"{what} 0: no separate bound.", default=0, unit=unit, low=0, high=high, beyond=beyond)
    return bound


@attrs.frozen(kw_only=True)
class GroupSettings:
    """Users of a virtual host, and what they may do. What is not written they may not."""

    name: str = setting("Name in logs and management, unique in the virtual host.", pattern=NAME_PATTERN)
    users: tuple[str, ...] = setting(
        "Users, by their SASL names; `*` is everybody who has authenticated, `anonymous` everybody who "
        "has not. A group that names a user takes precedence over one with `*`.",
        default=(),
    )
    hosts: tuple[str, ...] = setting(
        "Hosts from which users may connect: addresses, networks (`10.1.0.0/16`), ranges "
        "(`10.1.0.5-10.1.0.9`), or `*`.",
        default=("*",),
    )
    sources: tuple[str, ...] = setting(
        "Addresses from which users may receive, as patterns of words: `*` is one word, `#` any number of "
        "words, `*` at the end of a word any end of it; `${user}` is the name of the user as one word, "
        "with `.`, `/` and `%` in it written as `%2E`, `%2F` and `%25`.",
        default=(),
    )
    targets: tuple[str, ...] = setting(
        "Addresses to which users may send, as patterns like those of `sources`.", default=()
    )
    dynamic_addresses: bool = setting(
        "Whether the router makes addresses for the users: for replies, and as dynamic targets. Any "
        "client of the same virtual host that knows such an address may use it.",
        default=False,
    )
    anonymous_senders: bool = setting(
        "Whether users may attach senders without an address. Each message is then checked: one to an "
        "address that `targets` does not allow is rejected.",
        default=False,
    )
    any_user_id: bool = setting(
        "Whether a message may have a `user-id` that is not its sender's; otherwise it is rejected.", default=False
    )
    management: ManagementRight = setting(
        "Right to use `$management`: `none`; `own`, to read from this router what belongs to the user's "
        "virtual host; `read`, to read anything from any router; `write`, to read anything and to change "
        "the router that the user is connected to. All but `none` include an address for replies and "
        "senders without an address, which tools need.",
        default=ManagementRight.NONE,
    )
    max_connections_of_user: int = _bound(
        "Maximum number of connections at one time of one user.",
        "connections",
        "closed, `amqp:resource-limit-exceeded`",
    )
    max_connections_of_host: int = _bound(
        "Maximum number of connections at one time of one remote host to the same virtual host.",
        "connections",
        "closed, `amqp:resource-limit-exceeded`",
    )
    max_sessions: int = _bound(
        "Maximum number of sessions of one connection, announced to the client.",
        "sessions",
        "closed, `amqp:resource-limit-exceeded`",
        32768,
    )
    max_senders: int = _bound(
        "Maximum number of links of one connection on which the client sends.",
        "links",
        "the link is refused, `amqp:resource-limit-exceeded`",
    )
    max_receivers: int = _bound(
        "Maximum number of links of one connection on which the client receives.",
        "links",
        "the link is refused, `amqp:resource-limit-exceeded`",
    )
    max_frame_bytes: int = _bound(
        "Largest frame, announced to the client; the listener's bound holds too. At least 512 where it is not 0.",
        "bytes",
        "closed, `amqp:connection:framing-error`",
        16 * MIB,
    )
    max_message_bytes: int = _bound(
        "Largest message, announced to the client; the listener's bound holds too.",
        "bytes",
        "its link is closed, `amqp:link:message-size-exceeded`",
        1024 * 1024 * MIB,
    )
    messages_per_s: int = _bound(
        "Maximum number of messages read from one connection per second.",
        "messages a second",
        "they wait to be read",
        10000000,
    )
    messages_per_s_of_user: int = _bound(
        "Maximum number of messages read per second from all connections of one user to this router together.",
        "messages a second",
        "they wait to be read",
        10000000,
    )


@attrs.frozen(kw_only=True)
class VhostSettings:
    """A virtual host: what clients name in their Open, and which of them are let in."""

    name: str = setting(
        "Name of the virtual host, which clients write as the host name of their Open: without `/`, `:` "
        "and blanks, and no `$` or `_` first.",
        pattern=VHOST_PATTERN,
    )
    hostnames: tuple[str, ...] = setting(
        "Other host names for this virtual host: complete names, `*.example.org` for all below that, `*` "
        "for any other name and for none.",
        default=(),
    )
    isolated: bool = setting(
        "Whether the virtual host's addresses are its own: for all routers `x` is `<name>/x`, and clients "
        "outside can't name it. Otherwise they are those of the whole mesh.",
        default=True,
    )
    max_connections: int = _bound(
        "Maximum number of connections at one time.", "connections", "closed, `amqp:resource-limit-exceeded`"
    )
    groups: tuple[GroupSettings, ...] = setting("Groups of users; a user in none of them is refused.", default=())
