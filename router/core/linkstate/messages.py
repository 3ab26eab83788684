"""The six messages of the routing protocol and the one on circuits, and their bodies as plain dicts.

A body has text keys and holds text, ints, lists and dicts only; bytes are what `router.engine.message_codec` makes.
Messages keep what they were read from (raw address keys, all hints), so that a relayed one reaches a qdrouterd behind
this router whole.

Source: docs/reference/inter-router-protocol.md#fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Self, TypedDict, TypeGuard

import attrs

from mesh_config.models import Treatment
from router.core.errors import DecodeError
from router.core.ids_and_conditions import AREA, RouterId

PROTOCOL_VERSION: Final = 1
"""Our `pv`. What has a higher one is ignored; an absent one counts as 0."""

MAX_ROUTER_ID_CHARS: Final = 255
MAX_INT: Final = 2**63 - 1
"""Largest sequence and instance: what an AMQP long holds."""

MAX_JUMP: Final = 2**40
"""Maximum rise of a sequence by one message, above what is held of its router. Nothing real comes near it, and a router
that would take the highest number there is, so that the true router can't have a higher one, needs millions of
messages, each answered by the true router."""
MAX_BOOT_JUMP: Final = 2**48
"""Maximum rise of a boot number by one message, microseconds: a router may have run for nine years before it starts
again."""
MAX_FIRST: Final = 2**62
"""Largest sequence and boot number that are taken while nothing is held: as much is left above it."""

MAX_WEIGHT: Final = 2**31 - 1
"""Largest weight of a circuit: what an AMQP int holds."""
MAX_LOAD: Final = 2**31 - 1
"""Maximum number of messages, and of subscribers, that a load tells of."""

MAX_COST: Final = 2**31 - 1
"""Largest cost of a link, so that the cost of every path fits 64 bits."""

MOBILE_PREFIX: Final = "M0"
"""Class and phase of the addresses that this router serves; the other classes but one are carried and not used."""
EDGE_PREFIX: Final = "H"
"""Class of the names of edge routers, which a qdrouterd advertises that such are attached to."""

HINT_OF_TREATMENT: Final[Mapping[Treatment, int]] = {
    Treatment.MULTICAST: 1,
    Treatment.CLOSEST: 2,
    Treatment.BALANCED: 3,
}
TREATMENT_OF_HINT: Final[Mapping[int, Treatment]] = {hint: treatment for treatment, hint in HINT_OF_TREATMENT.items()}
"""Hints 0 (flood), 4 (link-balanced) and 5 (unavailable) name no treatment of a mobile address."""


def mobile_key(address: str) -> str:
    """The key by which mobile address *address* is advertised."""
    return MOBILE_PREFIX + address


def mobile_address(key: str) -> str | None:
    """The mobile address of an advertised key; None for the other classes and for an empty address.

    That of an edge router is `_edge/<id>`, for what is sent to `_edge/<id>/x`.
    """
    if key.startswith(EDGE_PREFIX) and "/" not in key and len(key) > 1:
        return f"_edge/{key[1:]}"
    address = key.removeprefix(MOBILE_PREFIX)
    return address if address and address != key else None


@attrs.frozen(kw_only=True)
class ControlMessage:
    """Fields that every control message carries; made of a body by `from_body`, never itself sent."""

    opcode: ClassVar[str] = ""

    id: RouterId
    """The router that made it."""
    pv: int = PROTOCOL_VERSION
    area: str = AREA

    def to_body(self) -> dict[str, object]:
        """The body in qdrouterd's order of keys: text, ints, lists and dicts."""
        return {"id": self.id, "pv": self.pv, "area": self.area, **self._own_keys()}

    def _own_keys(self) -> dict[str, object]:
        return {}

    @classmethod
    def _read(cls, body: _Body) -> Self:
        return cls(**body.envelope())


@attrs.frozen(kw_only=True)
class Hello(ControlMessage):
    """HELLO, to the other end of one connection."""

    opcode: ClassVar[str] = "HELLO"

    instance: int
    """Boot number of the sender; another one means that it restarted."""
    seen: tuple[RouterId, ...]
    """Routers that the sender heard lately, on any of its connections."""

    def _own_keys(self) -> dict[str, object]:
        return {"instance": self.instance, "seen": list(self.seen)}

    @classmethod
    def _read(cls, body: _Body) -> Self:
        return cls(**body.envelope(), instance=body.integer("instance", low=-MAX_INT), seen=body.routers("seen"))


@attrs.frozen(kw_only=True)
class RouterAdvertisement(ControlMessage):
    """RA, to all routers: how far the sender's link state and addresses have got."""

    opcode: ClassVar[str] = "RA"

    instance: int
    ls_seq: int
    mobile_seq: int

    @property
    def numbers(self) -> tuple[int, int, int]:
        """All three: the later of two advertisements has the higher ones."""
        return self.instance, self.ls_seq, self.mobile_seq

    def _own_keys(self) -> dict[str, object]:
        return {"instance": self.instance, "ls_seq": self.ls_seq, "mobile_seq": self.mobile_seq}

    @classmethod
    def _read(cls, body: _Body) -> Self:
        return cls(
            **body.envelope(),
            instance=body.integer("instance", low=-MAX_INT),
            ls_seq=body.integer("ls_seq"),
            mobile_seq=body.integer("mobile_seq"),
        )


@attrs.frozen(kw_only=True)
class LinkStateRequest(ControlMessage):
    """LSR, to one router: send me your link state."""

    opcode: ClassVar[str] = "LSR"


@attrs.frozen(kw_only=True)
class LinkStateUpdate(ControlMessage):
    """LSU: the sender's neighbors and what it costs to reach each.

    A qdrouterd sends it to one router that asked; ours flood it to each other as well.
    """

    opcode: ClassVar[str] = "LSU"

    instance: int
    ls_seq: int
    """Sequence within `ls`, the one that counts; the outer one is the same."""
    peers: Mapping[RouterId, int] = attrs.field(hash=False)
    """Cost of the edge to each neighbor, 1 at least."""
    has_trees: bool = attrs.field(default=False, eq=False)
    """No link state: the sender passes multicasts on along trees only; a qdrouterd, which does not, ignores the key."""

    def _own_keys(self) -> dict[str, object]:
        peers: dict[str, object] = {str(peer): cost for peer, cost in self.peers.items()}
        inner: dict[str, object] = {"id": self.id, "area": self.area, "ls_seq": self.ls_seq, "peers": peers}
        trees: dict[str, object] = {"trees": 1} if self.has_trees else {}
        return {"instance": self.instance, "ls_seq": self.ls_seq, "ls": inner, **trees}

    @classmethod
    def _read(cls, body: _Body) -> Self:
        # The outer ls_seq says nothing that the inner one does not, so one is enough.
        inner = body.inner("ls")
        if inner.router("id") != body.router("id"):
            raise DecodeError(f"LSU of {body.router('id')} holds the link state of {inner.router('id')}")
        return cls(
            **body.envelope(),
            instance=body.integer("instance", low=-MAX_INT),
            ls_seq=inner.integer("ls_seq"),
            peers=inner.costs("peers"),
            has_trees=body.integer("trees", default=0) > 0,
        )


@attrs.frozen(kw_only=True)
class MobileAddressUpdate(ControlMessage):
    """MAU: what changed since `mobile_seq` - 1 (to all routers), or all there is (to one that asked).

    Addresses are keys as on the wire, with class and phase (`mobile_key`, `mobile_address`).
    """

    opcode: ClassVar[str] = "MAU"

    mobile_seq: int
    add: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    exist: tuple[str, ...] | None = None
    """All keys of the sender; None in a differential update, else `add` and `delete` are empty."""
    hints: tuple[int, ...] = ()
    """Treatment of each of `add` or `exist` (`TREATMENT_OF_HINT`); not to be used when their number differs."""
    part: int = 0
    """Number of this part, from 0, in an absolute update that comes in parts."""
    parts: int = 1

    @property
    def is_absolute(self) -> bool:
        """Whether it replaces everything that was known of the sender's addresses."""
        return self.exist is not None

    def treatments(self) -> tuple[Treatment | None, ...]:
        """The hint for each of `exist` or `add` as a treatment; None where there is no usable one."""
        keys = self.add if self.exist is None else self.exist
        if len(self.hints) != len(keys):
            return (None,) * len(keys)
        return tuple(TREATMENT_OF_HINT.get(hint) for hint in self.hints)

    def _own_keys(self) -> dict[str, object]:
        if self.exist is not None:
            # DEV-32: a qdrouterd, which knows no parts, gets all in one.
            parts: dict[str, object] = {"part": self.part, "parts": self.parts} if self.parts > 1 else {}
            return {"mobile_seq": self.mobile_seq, "exist": list(self.exist), "hints": list(self.hints), **parts}
        return {
            "mobile_seq": self.mobile_seq,
            "hints": list(self.hints),
            "add": list(self.add),
            "del": list(self.delete),
        }

    @classmethod
    def _read(cls, body: _Body) -> Self:
        hints = body.hints("hints")
        mobile_seq = body.integer("mobile_seq")
        if body.has("exist"):
            if body.has("add") or body.has("del"):
                raise DecodeError("MAU is both differential and absolute")
            part, parts = body.integer("part", default=0), body.integer("parts", default=1)
            if part >= parts:
                raise DecodeError(f"MAU with part {part} of {parts}")
            return cls(
                **body.envelope(),
                mobile_seq=mobile_seq,
                exist=body.texts("exist"),
                hints=hints,
                part=part,
                parts=parts,
            )
        add, delete = body.texts("add"), body.texts("del")
        return cls(**body.envelope(), mobile_seq=mobile_seq, add=add, delete=delete, hints=hints)


@attrs.frozen(kw_only=True)
class MobileAddressRequest(ControlMessage):
    """MAR, to one router: send me your addresses when you are past `have_seq`."""

    opcode: ClassVar[str] = "MAR"

    have_seq: int
    parts: int = 0
    """Parts of the answer that may come now (DEV-32); 0: it must come in one."""
    part: int = 0
    """Number of the first part that is wanted."""
    part_seq: int = 0
    """Value of `mobile_seq` in the parts before the first that is wanted."""

    def _own_keys(self) -> dict[str, object]:
        keys: dict[str, object] = {"have_seq": self.have_seq}
        if self.parts:
            keys["parts"] = self.parts
        if self.part:
            keys.update({"part": self.part, "part_seq": self.part_seq})
        return keys

    @classmethod
    def _read(cls, body: _Body) -> Self:
        part, part_seq = body.integer("part", default=0), body.integer("part_seq", default=0)
        return cls(
            **body.envelope(),
            have_seq=body.integer("have_seq"),
            parts=body.integer("parts", default=0),
            part=part,
            part_seq=part_seq if part else 0,  # before the first one there is none
        )


@attrs.frozen(kw_only=True)
class CircuitStates(ControlMessage):
    """CIRCUITS, to a neighbor that takes circuits: what has changed of those on one connection.

    The engine hands it to the data plane; it is no message of the routing protocol, and never passed on.
    """

    opcode: ClassVar[str] = "CIRCUITS"

    weights: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    """Busy publishers behind each circuit of the sender, by link name: 0 to MAX_WEIGHT."""
    closed: tuple[str, ...] = ()
    """Link names of circuits of the receiver whose address has no subscriber behind the sender."""
    loads: Mapping[str, tuple[int, int]] = attrs.field(factory=dict, hash=False)
    """Loads at the egress routers of circuits of the receiver, by link name: messages without an outcome that did not
    come by the circuit, -MAX_LOAD to MAX_LOAD, and subscribers that can take one, 1 to MAX_LOAD. Absent when none has
    changed."""

    def _own_keys(self) -> dict[str, object]:
        keys: dict[str, object] = {"weights": dict(self.weights), "closed": list(self.closed)}
        if self.loads:
            keys["loads"] = {name: list(load) for name, load in self.loads.items()}
        return keys

    @classmethod
    def _read(cls, body: _Body) -> Self:
        return cls(
            **body.envelope(),
            weights=body.weights("weights"),
            closed=body.texts("closed"),
            loads=body.loads("loads") if body.has("loads") else {},
        )


@attrs.frozen(kw_only=True)
class UnknownMessage(ControlMessage):
    """A message of a newer protocol or unknown kind: never read any further, reported once for each connection."""

    opcode: ClassVar[str] = "FOREIGN"

    name: str
    """Opcode on the wire."""

    def _own_keys(self) -> dict[str, object]:
        return {"name": self.name}


KINDS: Final[Mapping[str, type[ControlMessage]]] = {
    kind.opcode: kind
    for kind in (
        Hello,
        RouterAdvertisement,
        LinkStateRequest,
        LinkStateUpdate,
        MobileAddressUpdate,
        MobileAddressRequest,
        CircuitStates,
    )
}


def from_body(opcode: str, body: Mapping[str, object]) -> ControlMessage:
    """The message that has this opcode and body.

    Args:
        opcode: one of `KINDS`; any other, and a `pv` above 1, make a `UnknownMessage`.
        body: text keys; values of text, int, list (or tuple) and dict. Unknown keys are ignored.
    Raises: DecodeError when a mandatory key is missing or has another shape; the message is then dropped.
    """
    reader = _Body(opcode, body)
    version = reader.integer("pv", default=0)
    kind = KINDS.get(opcode)
    if kind is None or version > PROTOCOL_VERSION:
        name = reader.text("name", default=opcode) if opcode == UnknownMessage.opcode else opcode
        return UnknownMessage(id=reader.router("id"), pv=version, name=name)
    return kind._read(reader)


def is_router_id(text: str) -> bool:
    """Whether *text* can name a router: no blank, control character or slash, and not the word for all routers."""
    if not 0 < len(text) <= MAX_ROUTER_ID_CHARS or text == "all":
        return False
    return text.isprintable() and " " not in text and "/" not in text


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


class _Envelope(TypedDict):
    id: RouterId
    pv: int
    area: str


@attrs.frozen
class _Body:
    """Reads the keys of one body; each method raises DecodeError that names message and key."""

    opcode: str
    body: Mapping[str, object]

    def has(self, key: str) -> bool:
        return self.body.get(key) is not None

    def envelope(self) -> _Envelope:
        area = self.text("area", default=AREA)
        if len(area) > MAX_ROUTER_ID_CHARS:  # nobody looks at it, but it is kept with the message
            raise self._wrong("area")
        return {"id": self.router("id"), "pv": self.integer("pv", default=0), "area": area}

    def integer(self, key: str, *, low: int = 0, default: int | None = None) -> int:
        value = self._get(key, default)
        if not _is_int(value) or not low <= value <= MAX_INT:
            raise self._wrong(key)
        return value

    def text(self, key: str, *, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key)
        return value

    def router(self, key: str) -> RouterId:
        return self._router(self._get(key), key)

    def routers(self, key: str) -> tuple[RouterId, ...]:
        return tuple(self._router(item, key) for item in self._list(key))

    def texts(self, key: str) -> tuple[str, ...]:
        items = self._list(key)
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) != len(items):
            raise self._wrong(key)
        return texts

    def hints(self, key: str) -> tuple[int, ...]:
        # They only advise, so absent or odd ones are no reason to lose the addresses: a wrong count voids them all.
        value = self.body.get(key)
        if not isinstance(value, (list, tuple)):
            return ()
        return tuple(item for item in value if _is_int(item) and -MAX_INT <= item <= MAX_INT)  # passed on as longs

    def costs(self, key: str) -> dict[RouterId, int]:
        value = self._get(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key)
        costs: dict[RouterId, int] = {}
        for peer, cost in value.items():
            # A cost below 1 would let shortest paths run in circles.
            if not _is_int(cost) or not 1 <= cost <= MAX_COST:
                raise self._wrong(key)
            costs[self._router(peer, key)] = cost
        return costs

    def weights(self, key: str) -> dict[str, int]:
        value = self._get(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key)
        weights: dict[str, int] = {}
        for name, weight in value.items():
            if not isinstance(name, str) or not _is_int(weight) or not 0 <= weight <= MAX_WEIGHT:
                raise self._wrong(key)
            weights[name] = int(weight)
        return weights

    def loads(self, key: str) -> dict[str, tuple[int, int]]:
        value = self._get(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key)
        loads: dict[str, tuple[int, int]] = {}
        for name, load in value.items():
            if not isinstance(name, str) or not isinstance(load, (list, tuple)) or len(load) != 2:
                raise self._wrong(key)
            messages, subscribers = load
            if not _is_int(messages) or not -MAX_LOAD <= messages <= MAX_LOAD:
                raise self._wrong(key)
            if not _is_int(subscribers) or not 1 <= subscribers <= MAX_LOAD:
                raise self._wrong(key)
            loads[name] = (int(messages), int(subscribers))
        return loads

    def inner(self, key: str) -> _Body:
        value = self._get(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key)
        return _Body(self.opcode, value)

    def _get(self, key: str, default: object = None) -> object:
        value = self.body.get(key, default)
        if value is None:
            raise DecodeError(f"{self.opcode} without {key}")
        return value

    def _list(self, key: str) -> Sequence[object]:
        value = self._get(key)
        if not isinstance(value, (list, tuple)):
            raise self._wrong(key)
        return value

    def _router(self, value: object, key: str) -> RouterId:
        if not isinstance(value, str) or not is_router_id(value):
            raise self._wrong(key)
        return RouterId(value)

    def _wrong(self, key: str) -> DecodeError:
        return DecodeError(f"{self.opcode} with a malformed {key}")
