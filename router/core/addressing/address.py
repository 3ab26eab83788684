"""An AMQP address as this router reads it: who may answer for it, and under which text it is looked up there.

Source: docs/reference/inter-router-protocol.md#addresses.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from router.core.ids_and_conditions import AREA, RouterId

HELLO: Final = "qdhello"
"""Text of the address of HELLO, local to one hop."""

ROUTING: Final = "qdrouter"
"""Text of the addresses of RA, LSR and LSU."""

MOBILE_SYNC: Final = "qdrouter.ma"
"""Text of the addresses of MAU and MAR."""

CIRCUITS: Final = "amqp-mesh.circuits"
"""Text of the address of CIRCUITS, local to one hop."""

RESERVED: Final = frozenset({HELLO, ROUTING, MOBILE_SYNC, CIRCUITS})
"""Texts below a topological prefix that only control links may name."""

MANAGEMENT: Final = "$management"
"""Text of the management node's address."""

MAX_ADDRESS_BYTES: Final = 16384
"""Maximum length of an address that any router of the mesh may be set to take, bytes of UTF-8."""

_EVERY: Final = "all"
_DYNAMIC_PREFIX: Final = "temp."
_DYNAMIC_TARGET_PREFIX: Final = "_$temp."
_VOLATILE_PREFIX: Final = "amq.rabbitmq.reply-to."
_TAG_END: Final = "~"
"""Character behind the mark of a virtual host in a name made here; no random part has it."""
_SHOWN_CHARS: Final = 8
"""Number of characters shown of the random part of a name made here: enough to tell one from another, and no help to
guess the rest."""


class AddressKind(enum.Enum):
    """Kind of an address, by who answers for it."""

    LOCAL = "local"
    """This router and no other: `_local/x`, `_topo/0/<me>/x`."""
    EVERY_ROUTER = "every-router"
    """Each router once: `_topo/0/all/x`."""
    ROUTER = "router"
    """One other router, which looks `text` up as its own LOCAL: `_topo/0/<router>/x`."""
    MOBILE = "mobile"
    """The subscribers, wherever they are attached: everything without a topological prefix."""
    EDGE = "edge"
    """An edge router of a qdrouterd, which looks `text` up as its own: `_edge/<router>/x`."""
    FOREIGN = "foreign"
    """Well formed, but nobody here can answer: another area."""
    INVALID = "invalid"
    """Names nothing: empty, or a topological prefix without what follows."""


@attrs.frozen
class Address:
    """A normalised address."""

    kind: AddressKind
    text: str
    """Text that is looked up at the router that answers; FOREIGN and INVALID addresses keep their prefix."""
    router: RouterId | None = None
    """The router that answers, for ROUTER and EDGE; None otherwise."""

    @property
    def is_reserved(self) -> bool:
        """Whether only control links may send here (docs/reference/inter-router-protocol.md#reserved-addresses)."""
        return self.kind not in (AddressKind.MOBILE, AddressKind.EDGE) and self.text in RESERVED


def normalise(text: str) -> str:
    """The address without scheme, host and outer separators; "" when nothing remains.

    What it returns is its own normal form, so every router on the way finds the same text.
    """
    # qdrouterd removes one scheme and one slash; we go on until nothing changes, because the text travels on in
    # x-opt-qd.to and a second router must not read it otherwise than the first.
    # By offset: a text of nothing but schemes would be copied once for each.
    at = 0
    while True:
        if text.startswith("/", at):
            at += 1
        elif text.startswith(("amqp://", "amqps://"), at):
            end = text.find("/", text.index("://", at) + 3)
            at = end + 1 if end >= 0 else len(text)
        elif text.startswith(("amqp:/", "amqps:/"), at):
            at = text.index(":/", at) + 2
        else:
            return text[at:].rstrip("./")


def parse_address(text: str, *, me: RouterId) -> Address:
    """Parse an address as a terminus or a message's `to` has it, as it is meant on router *me*.

    Args:
        text: with or without `amqp:/`, `amqp://host/`, a leading `/`, trailing `/` and `.`.
        me: id of this router.
    Source: docs/reference/inter-router-protocol.md#addresses.
    """
    text = normalise(text)
    if not text.startswith("_"):
        return Address(AddressKind.MOBILE if text else AddressKind.INVALID, text)
    head, _, rest = text.partition("/")
    if head == "_local":
        return Address(AddressKind.LOCAL, rest) if rest else Address(AddressKind.INVALID, text)
    if head == "_edge":
        edge, _, name = rest.partition("/")
        return Address(AddressKind.EDGE, name, RouterId(edge)) if edge and name else Address(AddressKind.INVALID, text)
    if head == "_topo":
        return _topological(text, rest, me)
    return Address(AddressKind.MOBILE, text)


def _topological(text: str, below: str, me: RouterId) -> Address:
    """The meaning of *text*, which is `_topo/` and *below*."""
    area, _, rest = below.partition("/")
    if area not in (AREA, _EVERY):
        return Address(AddressKind.FOREIGN if rest else AddressKind.INVALID, text)
    # An id with a slash in it would be cut by partition: our own is compared whole first.
    if rest.startswith(me + "/"):
        return Address(AddressKind.LOCAL, rest[len(me) + 1 :])
    router, _, name = rest.partition("/")
    if not router or not name:
        return Address(AddressKind.INVALID, text)
    if router == _EVERY:
        return Address(AddressKind.EVERY_ROUTER, name)
    return Address(AddressKind.ROUTER, name, RouterId(router))


def is_reserved(text: str) -> bool:
    """Whether *text*, in any form, is an address that only control links may name, at whichever router.

    A mobile address that happens to be called `qdrouter` is not.
    Source: docs/reference/inter-router-protocol.md#reserved-addresses.
    """
    # No router is called "", so its own addresses come out as ROUTER here, which changes nothing.
    return parse_address(text, me=RouterId("")).is_reserved


def edge_address(edge: str) -> str:
    """Mobile address by which the edge router *edge* is known, for what is sent to `_edge/<edge>/x`."""
    return f"_edge/{edge}"


def is_edge_address(text: str) -> bool:
    """Whether *text* is the mobile address of an edge router."""
    return text.startswith("_edge/") and text.count("/") == 1


def is_reply_at_edge(address: Address) -> bool:
    """Whether an edge router made this address for a client of its own."""
    return address.kind is AddressKind.EDGE and address.text.startswith(_DYNAMIC_PREFIX)


def router_address(router: RouterId, text: str) -> str:
    """The wire form of *text* at *router*: `amqp:/_topo/0/<router>/<text>`."""
    return f"amqp:/_topo/{AREA}/{router}/{text}"


def local_address(text: str) -> str:
    """The wire form of *text* at whoever receives it: `amqp:/_local/<text>`."""
    return f"amqp:/_local/{text}"


def dynamic_address(router: RouterId, random: str) -> str:
    """Address of a dynamic terminus on *router*, reachable from anywhere without being advertised.

    Args:
        router: that made the terminus.
        random: text without `/`, long enough that no other terminus of the router's lifetime has it.
    """
    return router_address(router, _DYNAMIC_PREFIX + random)


def dynamic_target(random: str) -> str:
    """Address of a dynamic target: mobile, so that whoever is told of it receives from it wherever it is attached.

    Args:
        random: text without `/`, never used twice in the mesh.
    """
    return f"amqp:/{_DYNAMIC_TARGET_PREFIX}{random}"


def volatile_reply_address(router: RouterId, random: str) -> str:
    """Address of a reply receiver in the manner of RabbitMQ's Direct Reply-To.

    It is mobile, hence advertised: every router knows when it is gone and can refuse a sender's attach to it.

    Args:
        router: where the receiver is attached; keeps the addresses of two routers apart.
        random: text without `/` and `.`, never used twice by *router*.
    """
    return f"{_VOLATILE_PREFIX}{router}.{random}"


def is_volatile_reply(text: str) -> bool:
    """Whether *text*, in any form, was made by `volatile_reply_address`."""
    return normalise(text).startswith(_VOLATILE_PREFIX)


def volatile_owner(text: str) -> RouterId | None:
    """The router that made *text*, a normalised address of `volatile_reply_address`; None for other addresses."""
    if not text.startswith(_VOLATILE_PREFIX):
        return None
    return RouterId(text.removeprefix(_VOLATILE_PREFIX).rpartition(".")[0])


def tagged(tag: str, random: str) -> str:
    """The random part of a name made by a router for a client of an isolated virtual host.

    Args:
        tag: mark of the virtual host; empty for none.
        random: text without `~`.
    """
    return f"{tag}{_TAG_END}{random}" if tag else random


def reply_tag(text: str) -> str:
    """The mark of a virtual host in *text*, the text of a private address (`is_private`); empty when it has none."""
    tag, end, _ = text.rpartition(".")[2].partition(_TAG_END)
    return tag if end else ""


def is_dynamic_target(text: str) -> bool:
    """Whether *text*, normalised, was made by `dynamic_target`."""
    return text.startswith(_DYNAMIC_TARGET_PREFIX)


def is_private(address: Address) -> bool:
    """Whether only the connection that a router made this address for may receive from it."""
    if address.kind is AddressKind.MOBILE:
        return address.text.startswith(_VOLATILE_PREFIX)
    return address.kind in (AddressKind.LOCAL, AddressKind.ROUTER) and address.text.startswith(_DYNAMIC_PREFIX)


def is_reserved_mobile(text: str) -> bool:
    """Whether the mobile address *text*, normalised, is nobody's to receive from: those of the routers themselves."""
    return text.startswith(("$", "_")) and not text.startswith(_DYNAMIC_TARGET_PREFIX)


def masked(text: str) -> str:
    """*text*, the text of an address, for whoever isn't its owner.

    Of a name made by a router, which is secret as a password is, only the beginning of the random part, followed by
    `*`.
    """
    if text.startswith(_DYNAMIC_PREFIX):
        start = len(_DYNAMIC_PREFIX)
    elif text.startswith(_DYNAMIC_TARGET_PREFIX) or f"/{_DYNAMIC_TARGET_PREFIX}" in text:
        # perhaps behind a virtual host
        start = text.rindex(_DYNAMIC_TARGET_PREFIX) + len(_DYNAMIC_TARGET_PREFIX)
    elif text.startswith(_VOLATILE_PREFIX):
        start = max(len(_VOLATILE_PREFIX), text.rfind(".") + 1)
    else:
        return text
    start = text.find(_TAG_END, start) + 1 or start
    return text[: start + min(_SHOWN_CHARS, (len(text) - start) // 3)] + "*"


def with_vhost(text: str, vhost: str) -> str:
    """*text* inside a virtual host: `<vhost>/<text>`, normalised.

    Reply addresses name one terminus of the whole mesh, and `$...` the router itself: they, `_topo/`, `_local/` and
    `_edge/` come back as they were given, as does everything when *vhost* is empty.

    Source: docs/reference/inter-router-protocol.md#virtual-hosts.
    """
    plain = normalise(text)
    if not vhost or not plain or plain.startswith(("$", _VOLATILE_PREFIX)):
        return text
    if plain.partition("/")[0] in ("_topo", "_local", "_edge"):
        return text
    return f"{vhost}/{plain}"
