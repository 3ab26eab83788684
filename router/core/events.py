"""Events that move the control plane (past tense), and actions that it asks for (orders).

Both are frozen, register themselves by name and turn into plain dicts and back (`to_dict`, `from_dict`), so that a
recording of them can be replayed (`router.core.recording`). None is made per message.
"""

from __future__ import annotations

from typing import ClassVar, Final, Self

import attrs

from mesh_config.models import Treatment
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.linkstate.messages import ControlMessage
from router.core.replayable_records import ReplayableRecord

UNPLACED: Final = 2**31 - 1
"""Place of a connector that is not known: after all others."""


@attrs.frozen(kw_only=True)
class Event(ReplayableRecord):
    """Something that happened outside the control plane. `Event.from_dict` makes any kind of event."""


@attrs.frozen(kw_only=True)
class ControlLinkUp(Event):
    """Both control links of an inter-router connection are attached. Source: engine.

    Nothing is known of the neighbor yet but what its Open said; it becomes a neighbor by its HELLO.
    """

    connection: ConnectionId
    peer: RouterId
    """Container id of the peer's Open."""
    cost: int
    """Cost of the link, the larger of both ends' cost."""
    local_conn_id: int
    """`qd.conn-id` that we sent in Open."""
    remote_conn_id: int
    """`qd.conn-id` of the peer's Open, 0 when absent."""
    is_dialer: bool
    """Whether this router made the connection, and its peer has accepted it."""
    connector: int
    """Place of the link's connector among those of the router that made it; `UNPLACED` when that one doesn't say."""
    pushes_lsu: bool
    """Whether the peer offers and desires `amqp-mesh.lsu-push.1`: link state may be flooded to it unasked."""


@attrs.frozen(kw_only=True)
class ControlLinkDown(Event):
    """A control link or the whole connection is gone. Source: engine."""

    connection: ConnectionId


@attrs.frozen(kw_only=True)
class ControlReceived(Event):
    """A control message arrived. Source: engine, after decoding."""

    connection: ConnectionId
    to: str
    """`to` of its properties, as written on the wire."""
    message: ControlMessage
    ingress: RouterId | None
    """Router that made it (`x-opt-qd.ingress` without its area), when the annotation was there."""
    trace: tuple[RouterId, ...]
    """Routers that it passed, origin first (`x-opt-qd.trace` without areas)."""


@attrs.frozen(kw_only=True)
class FirstSubscriberAttached(Event):
    """The first local subscriber of a mobile address attached. Source: forwarding."""

    address: str
    treatment: Treatment


@attrs.frozen(kw_only=True)
class LastSubscriberLeft(Event):
    """The last local subscriber of a mobile address left. Source: forwarding."""

    address: str


@attrs.frozen(kw_only=True)
class TransitEnded(Event):
    """This router is about to stop, and paths are to lead elsewhere where they can. Source: the operator."""


@attrs.frozen(kw_only=True)
class TransitResumed(Event):
    """This router stays, and paths may lead through it again. Source: the operator."""


@attrs.frozen(kw_only=True)
class Action(ReplayableRecord):
    """Something that the control plane asks for. `Action.from_dict` makes any kind of action."""


@attrs.frozen(kw_only=True)
class SendControl(Action):
    """Write one control message on the control link of *connection*."""

    connection: ConnectionId
    to: str
    message: ControlMessage
    ingress: RouterId
    trace: tuple[RouterId, ...]
    """Routers that it passed, this one included as the last."""


@attrs.frozen(kw_only=True)
class CloseConnection(Action):
    """Close an inter-router connection, for instance because of a duplicate router id."""

    connection: ConnectionId
    condition: Condition
    description: str


@attrs.frozen(kw_only=True)
class InstallRouter(Action):
    """*router* is reachable by *connection*; replaces what was installed for it."""

    router: RouterId
    connection: ConnectionId
    next_hop: RouterId
    """The neighbor at the other end of *connection*; *router* itself when it is a neighbor."""
    cost: int


@attrs.frozen(kw_only=True)
class WithdrawRouter(Action):
    """*router* is no longer reachable; its addresses are withdrawn by actions of their own, before this one."""

    router: RouterId


@attrs.frozen(kw_only=True)
class InstallAddress(Action):
    """*router*, reachable, has subscribers of the mobile address."""

    address: str
    router: RouterId
    treatment: Treatment | None
    """The advertised hint; used only when no treatment is configured here and nobody knows the address yet."""


@attrs.frozen(kw_only=True)
class WithdrawAddress(Action):
    """*router* has no subscriber of the mobile address any more, or is unreachable."""

    address: str
    router: RouterId


@attrs.frozen(kw_only=True)
class TopologyChanged(Action):
    """Trees worked out before this are stale (`ControlPlane.tree`). Comes after the routers of the same change."""


@attrs.frozen(kw_only=True)
class Report(Action):
    """A change of state or a peer's fault, for the log: one line, once."""

    INFO: ClassVar[str] = "info"
    WARNING: ClassVar[str] = "warning"

    level: str
    what: str
    """Past tense with underscores: `neighbor_up`, `router_unreachable`, `duplicate_router_id`."""
    fields: tuple[tuple[str, str], ...] = ()

    @classmethod
    def info(cls, what: str, **fields: object) -> Self:
        """A report of an expected change."""
        return cls(level=cls.INFO, what=what, fields=tuple((k, str(v)) for k, v in fields.items()))

    @classmethod
    def warning(cls, what: str, **fields: object) -> Self:
        """A report of a peer's or an operator's fault."""
        return cls(level=cls.WARNING, what=what, fields=tuple((k, str(v)) for k, v in fields.items()))
