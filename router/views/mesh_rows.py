"""Rows of the mesh: routers and links, those that are expected and absent among them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Final

from router.core.controlplane import NodeView
from router.core.ids_and_conditions import AREA, RouterId
from router.core.linkstate.messages import PROTOCOL_VERSION
from router.core.linkstate.neighbors import TRANSIT_ENDED_COST
from router.drain_state import DrainState
from router.management.snapshot import LazyRows, MeshLinkRow, NodeRow
from router.mesh_presence import MeshPresence, Pair, Presence, when
from router.runtime import Runtime

AT_ONCE: Final = 25
"""Number of routers or links that are looked at between two events."""


def node_rows(runtime: Runtime, offset: float) -> LazyRows:
    """All routers, this one first.

    Args:
        runtime: of the router that is asked.
        offset: from its clock to seconds since 1970.
    """
    presence = runtime.mesh_presence
    presence.forget_old(runtime.clock())
    counts = runtime.control.address_counts()

    def make(numbered: tuple[int, RouterId]) -> NodeRow:
        index, router = numbered
        return _node(runtime, index, _view(router, runtime), counts, offset)

    return LazyRows(list(enumerate(_known_routers(runtime))), make)


def troubled_rows(runtime: Runtime, offset: float) -> Generator[None, None, tuple[list[NodeRow], list[MeshLinkRow]]]:
    """Rows of those routers and links alone that can be a problem: absent, drained, lost of late, or told of by nobody.

    Pauses after each few that it has looked at. Addresses are not counted for these rows.

    Args:
        runtime: of the router that is asked.
        offset: from its clock to seconds since 1970.
    """
    presence = runtime.mesh_presence
    presence.forget_old(runtime.clock())
    nodes: list[NodeRow] = []
    for index, router in enumerate(_known_routers(runtime)):
        if index % AT_ONCE == AT_ONCE - 1:
            yield
        view = _view(router, runtime)
        known = presence.routers.get(view.id)
        is_absent = view.id != runtime.me and view.cost is None
        is_draining = runtime.drain_state is not DrainState.SERVING if view.id == runtime.me else _is_draining(view)
        if is_absent or is_draining or (known is not None and known.recent(runtime.clock())):
            nodes.append(_node(runtime, index, view, {}, offset))
    links: list[MeshLinkRow] = []
    for index, pair in enumerate(sorted(presence.links)):
        if index % AT_ONCE == AT_ONCE - 1:
            yield
        link, now = presence.links.get(pair), runtime.clock()
        if link is None:
            continue  # it has gone meanwhile
        if link.recent(now) or link.is_present is not presence.is_known(pair):
            links.append(_mesh_link(presence, pair, now, offset))
    return nodes, links


def _known_routers(runtime: Runtime) -> list[RouterId]:
    """This router, those that it hears of, and those that are absent."""
    heard = runtime.control.node_ids()
    return [runtime.me, *heard, *sorted(runtime.mesh_presence.routers.keys() - heard)]


def _view(router: RouterId, runtime: Runtime) -> NodeView:
    if router == runtime.me:
        return runtime.control.own_node()
    return runtime.control.node(router) or _unheard(router, runtime.mesh_presence)


def _unheard(router: RouterId, presence: MeshPresence) -> NodeView:
    """A router of which nothing is held any more, or yet."""
    since = presence.routers[router].since if router in presence.routers else presence.started
    return NodeView(
        id=router, instance=None, ls_seq=0, mobile_seq=0, peers={}, next_hop=None, cost=None, changed_at=since
    )


def _node(runtime: Runtime, index: int, view: NodeView, counts: Mapping[RouterId, int], offset: float) -> NodeRow:
    presence, now = runtime.mesh_presence, runtime.clock()
    is_self = view.id == runtime.me
    route = runtime.fib.route(view.id)
    own = Presence(since=presence.started, is_present=True)
    known = own if is_self else presence.routers.get(view.id) or Presence(since=view.changed_at)
    is_expected = presence.expected is not None and view.id in presence.expected.routers
    return NodeRow(
        name=f"router.node/{view.id}",
        identity=f"router.node/{view.id}",
        id=view.id,
        address=f"amqp:/_topo/{AREA}/{view.id}",
        is_reachable=is_self or view.cost is not None,
        is_draining=runtime.drain_state is not DrainState.SERVING if is_self else _is_draining(view),
        is_configured=is_expected,
        since=int(known.since + offset),
        reason=presence.reason(view.id) or None,
        flap_count=known.flaps,
        recent_flaps=known.recent(now),
        first_recent_flap=when(known.first_recent(now), offset),
        last_flap=when(known.last_flap, offset),
        last_flap_reason=known.last_reason or None,
        # DEV-23: Qpid Dispatch has null for a neighbor.
        next_hop="(self)" if is_self else view.next_hop,
        cost=view.cost,
        router_link=str(route.connection) if route is not None else None,
        link_state=sorted(view.peers),
        link_costs={peer: view.peers[peer] for peer in sorted(view.peers)},
        valid_origins=[],
        address_count=counts.get(view.id, 0),
        protocol_version=PROTOCOL_VERSION,
        instance=view.instance,
        link_state_sequence=view.ls_seq,
        mobile_sequence=view.mobile_seq,
        last_topo_change=int(view.changed_at + offset),
        index=index,
    )


def _is_draining(view: NodeView) -> bool:
    """Whether no path is to lead through a router: all of its links say that they cost the most."""
    return bool(view.peers) and min(view.peers.values()) >= TRANSIT_ENDED_COST


def mesh_link_rows(runtime: Runtime, offset: float) -> LazyRows:
    """All links, by the ids of their routers; *offset*: from the router's clock to seconds since 1970."""
    presence, now = runtime.mesh_presence, runtime.clock()
    presence.forget_old(now)
    pairs: Sequence[Pair] = sorted(presence.links)
    return LazyRows(pairs, lambda pair: _mesh_link(presence, pair, now, offset) if pair in presence.links else None)


def _mesh_link(presence: MeshPresence, pair: Pair, now: float, offset: float) -> MeshLinkRow:
    known = presence.links[pair]
    state = "unknown" if not presence.is_known(pair) else "up" if known.is_present else "absent"
    name = f"{pair[0]} - {pair[1]}"
    return MeshLinkRow(
        name=name,
        identity=name,
        one=pair[0],
        other=pair[1],
        state=state,
        cost=known.cost,
        configured_cost=presence.expected.links.get(pair) if presence.expected is not None else None,
        is_configured=known.is_expected,
        since=int(known.since + offset),
        reason=presence.link_reason(pair) or None,
        flap_count=known.flaps,
        recent_flaps=known.recent(now),
        first_recent_flap=when(known.first_recent(now), offset),
        last_flap=when(known.last_flap, offset),
        last_flap_reason=known.last_reason or None,
    )
