"""Settings of addresses: treatments, and those that are built in."""

from __future__ import annotations

import enum

import attrs

from mesh_config.models.setting_field import setting


class Treatment(enum.StrEnum):
    """Rule by which the messages of an address are given to its subscribers."""

    MULTICAST = "multicast"
    CLOSEST = "closest"
    BALANCED = "balanced"


@attrs.frozen(kw_only=True)
class AddressSettings:
    """The treatment of every address below one prefix, or of one pattern."""

    prefix: str | None = setting(
        "Whole words of an address, separated by `/` or `.`; the longest prefix wins.", default=None
    )
    pattern: str | None = setting(
        "Words of an address: `*` stands for any one word and `#` for any number of words; within a word they are"
        " characters like others.",
        default=None,
    )
    treatment: Treatment = setting(
        "Rule by which messages are given to subscribers (*distribution* in Qpid Dispatch).", default=Treatment.BALANCED
    )
    distance_messages: float | None = setting(
        "`forwarding.distance_messages` for these addresses; it affects only balanced ones.",
        default=None,
        unit="messages",
        low=0,
        high=1000000,
    )


DEFAULT_ADDRESSES: tuple[AddressSettings, ...] = tuple(
    AddressSettings(prefix=prefix, treatment=treatment)
    for prefix, treatment in (
        ("openstack.org/om/rpc/multicast", Treatment.MULTICAST),
        ("openstack.org/om/rpc/unicast", Treatment.CLOSEST),
        ("openstack.org/om/rpc/anycast", Treatment.BALANCED),
        ("openstack.org/om/notify/multicast", Treatment.MULTICAST),
        ("openstack.org/om/notify/unicast", Treatment.CLOSEST),
        ("openstack.org/om/notify/anycast", Treatment.BALANCED),
        ("exclusive", Treatment.CLOSEST),
        ("unicast", Treatment.BALANCED),
        ("broadcast", Treatment.MULTICAST),
    )
)
