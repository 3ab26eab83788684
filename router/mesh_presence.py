"""Memory of the mesh: routers, links and own connectors that are expected or were seen, present or absent, since when.

What the mesh file names is never forgotten; what it names no more, when that is read, if it is absent by then; what it
never named, a day after it was last there. Nothing here is asked by the routing protocol: it is for who looks after the
mesh.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Final, TypeVar

import attrs

from mesh_config.connector_matching import link_costs
from mesh_config.models import ConnectorSettings, MeshSettings
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.spf import Edges

KEPT_S: Final = 86400.0
"""Time for which what no file names is remembered after it was there last."""
MOST_UNEXPECTED: Final = 10_000
"""Maximum number of absent routers, and of links, that no file names; those absent longest are forgotten beyond."""
CROWDED_LOOK_S: Final = 10.0
"""Time between two looks for what is to be forgotten where more than twice as many are known, seconds."""
MOST_REFUSED: Final = 100
"""Maximum number of peers at a listener of the wrong role, and of peers refused as routers, that are remembered: those
seen last."""
MOST_REASON: Final = 300
"""Maximum number of characters of a reason that are kept: it may have words of a stranger."""
TOLD_AGAIN_S: Final = 3600.0
"""Time in which a refusal that goes on is said once, seconds."""

RECENT_S: Final = 300.0
"""Age up to which losses count as recent, seconds."""
MOST_LOSSES: Final = 16
"""Maximum number of losses that are told apart."""

COMPARED: Final = 200
"""Maximum number of links looked at in one turn after the graph has changed: a few hundred routers may all be neighbors
of each other."""
PAUSE_S: Final = 0.005
"""Pause until the next turn of such looks, seconds."""

Pair = tuple[RouterId, RouterId]
"""Both ends of a link, in the order of their ids."""


@attrs.frozen(kw_only=True)
class ExpectedMesh:
    """Routers and links that a mesh file names."""

    name: str
    routers: Mapping[RouterId, str | None]
    """Site of each, by id."""
    links: Mapping[Pair, int]
    """Cost of each link."""

    @classmethod
    def of(cls, mesh: MeshSettings) -> ExpectedMesh:
        """Take from a mesh file what it names."""
        return cls(
            name=mesh.name,
            routers={RouterId(key): mesh.routers[key].site for key in sorted(mesh.routers)},
            links={(RouterId(min(pair)), RouterId(max(pair))): cost for pair, cost in sorted(link_costs(mesh).items())},
        )


@attrs.define(kw_only=True)
class Presence:
    """Whether one thing is there, since when, and how often it was lost."""

    is_expected: bool = False
    is_removed: bool = False
    """Whether a link was taken out of the mesh file while it was there: it is forgotten as it goes."""
    is_present: bool = False
    since: float
    """Time of the last change, seconds, monotonic; that of the start for what was never there."""
    was_seen: bool = False
    flaps: int = 0
    """Times that it was lost."""
    last_flap: float | None = None
    """Time of the last loss, seconds."""
    losses: deque[float] = attrs.field(factory=lambda: deque(maxlen=MOST_LOSSES))
    """Times of the last losses, seconds."""
    reason: str = ""
    """Cause of its absence, as far as it is known."""
    last_reason: str = ""
    """Cause of the last loss, kept when it is back."""
    is_not_understood: bool = False
    """Whether the other end of a connector says nothing that this router understands."""
    cost: int | None = None
    """Last known cost of a link; None for what is no link."""

    def come(self, now: float) -> None:
        """Note that it is there at *now*, seconds."""
        if not self.is_present:
            self.is_present = self.was_seen = True
            self.since, self.reason = now, ""
            self.is_not_understood = False

    def because(self, reason: str) -> None:
        """Note why it was lost."""
        self.reason = self.last_reason = reason

    def go(self, now: float, reason: str = "") -> None:
        """Note that it is lost at *now*, seconds, and why."""
        if self.is_present:
            self.is_present = False
            self.since = self.last_flap = now
            self.flaps += 1
            self.losses.append(now)
            self.because(reason)

    def recent(self, now: float) -> int:
        """Count the losses of the last five minutes.

        Args:
            now: seconds, monotonic.
        """
        return sum(now - at <= RECENT_S for at in self.losses)

    def first_recent(self, now: float) -> float | None:
        """Time of the first loss within the last five minutes, seconds; None for none.

        Args:
            now: seconds, monotonic.
        """
        return next((at for at in self.losses if now - at <= RECENT_S), None)


@attrs.frozen(kw_only=True)
class WrongListenerPeer:
    """A peer that came to a listener of the wrong role, or of another mesh."""

    container: str
    host: str
    reason: str
    first: float
    last: float


@attrs.frozen(kw_only=True)
class RefusedRouter:
    """A peer at a listener for routers that was not let in as one."""

    container: str
    """Name of the peer for itself; empty where it was refused before it could say it."""
    host: str
    reason: str
    """Reason of the last refusal."""
    first: float
    last: float


@attrs.frozen
class LastDisconnect:
    """End of the last connection to a neighbor."""

    at: float
    reason: str
    """Reason in words, never empty."""


class MeshPresence:
    """Memory that one router has of its mesh.

    Args:
        me: this router.
        expected: what the mesh file names; None for a router with a file of its own.
        now: seconds, monotonic.
    """

    def __init__(self, me: RouterId, expected: ExpectedMesh | None, now: float) -> None:
        self.me = me
        self.expected = expected
        self.started = now
        self.routers: dict[RouterId, Presence] = {}
        """Presence of all other routers, by id."""
        self.links: dict[Pair, Presence] = {}
        self.connectors: dict[str, Presence] = {}
        """Connectors of this router that were ever of use, by the name that logs have for them."""
        self.misdirected: dict[tuple[str, str], WrongListenerPeer] = {}
        """Peers that came to a listener for others, by container and reason."""
        self.refused_routers: dict[tuple[str, str], RefusedRouter] = {}
        """Peers that were refused as routers, by container and host."""
        self._dials: dict[str, str] = {}
        """Reasons of the last failures of connectors to routers that are named, by router."""
        self.due = math.inf
        """Time at which `go_on` has something to do, seconds; infinity when all is told."""
        self._adjacent: dict[RouterId, set[RouterId]] = {}
        """Other ends of `links`, by router."""
        self._graph: Edges = {}
        """Links as the routing protocol has them."""
        self._edges: Edges = {}
        """Links of the present graph, by router."""
        self._compared: dict[RouterId, Mapping[RouterId, int]] = {}
        """Links that were last compared with `links`, by router."""
        self._uncompared: deque[RouterId] = deque()
        """Routers whose links are still to be compared."""
        self._ends: dict[str, LastDisconnect] = {}
        self._just_lost: deque[RouterId] = deque()
        """Routers whose loss has no reason yet: others may be lost with them."""
        self._looked_at = now
        self.expect(expected, now)

    def expect(self, expected: ExpectedMesh | None, now: float) -> None:
        """Take what a mesh file names, the first time or after it has changed.

        Args:
            expected: None when there is no such file.
            now: seconds, monotonic.
        """
        self.expected = expected
        routers: Iterable[RouterId] = expected.routers if expected is not None else ()
        links: Iterable[Pair] = expected.links if expected is not None else ()
        _expect(self.routers, set(routers) - {self.me}, now)
        for pair, link in self.links.items():
            is_left_out = expected is not None and pair not in expected.links
            link.is_removed = is_left_out and (link.is_removed or link.is_expected)
        _expect(self.links, set(links), now)
        self._forget_links_to_nobody()
        self._connect_all()

    # What happens

    def reached(self, router: RouterId, now: float) -> None:
        """Note that there is a path to *router* at *now*, seconds."""
        if router not in self.routers:
            self.routers[router] = Presence(since=now)
        self._explain_losses(len(self._just_lost))
        self.routers[router].come(now)
        self._dials.pop(router, None)
        for key in [key for key in self.refused_routers if key[0] == router]:
            del self.refused_routers[key]

    def lost(self, router: RouterId, now: float, adjacent: Collection[RouterId] = ()) -> None:
        """Note that no path to *router* is left.

        Args:
            router: another one.
            now: seconds, monotonic.
            adjacent: neighbors that this router and they hear now. One of them is not lost: it has started just now,
                and its first link state doesn't name this router yet. When it goes, `neighbor_lost` is due.
        """
        if router in adjacent:
            return
        known = self.routers.get(router)
        if known is not None and known.is_present:
            known.go(now)
            self._just_lost.append(router)

    def _explain_losses(self, most: int) -> None:
        """Note why routers were lost, now that all of those are known that were lost with them."""
        for _ in range(min(most, len(self._just_lost))):
            router = self._just_lost.popleft()
            known = self.routers.get(router)
            if known is not None and not known.is_present:
                known.because(self._loss(router, known))

    def neighbor_lost(self, router: RouterId, now: float, adjacent: Collection[RouterId], *, has_path: bool) -> None:
        """Note that a neighbor is one no more.

        Args:
            router: the neighbor.
            now: seconds, monotonic.
            adjacent: the neighbors that are left.
            has_path: whether it is still reached, by other routers.
        """
        if not has_path:
            self.lost(router, now, adjacent)
        self.topology_changed(self._graph, now, adjacent)

    def topology_changed(self, edges: Edges, now: float, adjacent: Collection[RouterId] = ()) -> None:
        """Compare the links that there are with those before; where they are many, some now and the others when `due`.

        Args:
            edges: cost of each, in each direction.
            now: seconds, monotonic.
            adjacent: neighbors that this router and they hear now: a link to one of them is not lost where the graph
                lacks it, since the first link state of a router doesn't name all of its neighbors.
        """
        self._graph = edges
        kept = self._own_links_in_use(edges, adjacent)
        if kept:
            edges = {**edges, self.me: {**edges.get(self.me, {}), **kept}}
        self._edges = edges
        nothing: Mapping[RouterId, int] = {}
        self._uncompared = deque(
            near
            for near in edges.keys() | self._compared.keys()
            if edges.get(near, nothing) != self._compared.get(near, nothing)  # as of few
        )
        self.go_on(now)

    def _own_links_in_use(self, edges: Edges, adjacent: Collection[RouterId]) -> dict[RouterId, int]:
        """Costs of the links to neighbors that the graph lacks, and that were there before."""
        own = edges.get(self.me, {})
        found = ((far, self.links.get((min(self.me, far), max(self.me, far)))) for far in adjacent if far not in own)
        return {far: link.cost for far, link in found if link and link.is_present and link.cost is not None}

    def go_on(self, now: float) -> None:
        """Look at a few more links and losses at *now*, seconds."""
        left = COMPARED
        while left > 0 and self._just_lost:
            left -= 1 + len(self._adjacent.get(self._just_lost[0], ()))
            self._explain_losses(1)
        while left > 0 and self._uncompared:
            left -= 1 + self._compare(self._uncompared.popleft(), now)
        self.due = now + PAUSE_S if self._just_lost or self._uncompared else math.inf

    def _compare(self, near: RouterId, now: float) -> int:
        """Compare the links of one router with those before. Returns: how many there were and are."""
        nothing: Mapping[RouterId, int] = {}
        peers, old = self._edges.get(near, nothing), self._compared.pop(near, nothing)
        if peers:
            self._compared[near] = peers
        for far in (links := peers.keys() | old.keys()):
            costs = [cost for cost in (peers.get(far), self._edges.get(far, nothing).get(near)) if cost is not None]
            self._link_changed((near, far) if near < far else (far, near), max(costs, default=None), now)
        return len(links)

    def _connect_all(self) -> None:
        self._adjacent.clear()
        for pair in self.links:
            self._connect(pair)

    def _connect(self, pair: Pair) -> None:
        for near, far in (pair, pair[::-1]):
            self._adjacent.setdefault(near, set()).add(far)

    def _link_changed(self, pair: Pair, cost: int | None, now: float) -> None:
        """*cost* is None when there is no such link any more."""
        link = self.links.get(pair)
        if cost is not None:
            if link is None:
                link = self.links[pair] = Presence(since=now)
                self._connect(pair)
            link.come(now)
            link.cost = cost
            if self.me in pair:
                self._dials.pop(self._other(pair), None)
        elif link is not None and link.is_present:
            link.go(now, self._link_loss(pair, now))
            if link.is_removed or not self._has_both_ends(pair):
                self._forget_link(pair)

    def _has_both_ends(self, pair: Pair) -> bool:
        """Whether both routers are known: one that has left the file and the mesh is not, whatever others say of it."""
        return all(each == self.me or each in self.routers for each in pair)

    def _forget_link(self, pair: Pair) -> None:
        del self.links[pair]
        for near, far in (pair, pair[::-1]):
            self._adjacent[near].discard(far)

    def _forget_links_to_nobody(self) -> None:
        """Forget links that are absent, and that led to a router which is forgotten."""
        for pair in [pair for pair, it in self.links.items() if not it.is_present and not self._has_both_ends(pair)]:
            del self.links[pair]

    def _other(self, pair: Pair) -> RouterId:
        """The router at the other end of an own link."""
        return pair[1] if pair[0] == self.me else pair[0]

    def _link_loss(self, pair: Pair, now: float) -> str:
        """Give the reason why a link is lost at *now*, seconds: in words that stay true when it is back."""
        if self.me in pair:
            end = self._ends.get(self._other(pair))
            return _ended(end) if end is not None and now - end.at < END_S else SILENT
        lost = [each for each in pair if not self.is_present(each)]
        if lost:
            return f"{' and '.join(lost)} {'was' if len(lost) == 1 else 'were'} lost"
        return "its ends saw each other no more"

    def connector_up(self, name: str, now: float) -> None:
        """Note that a connector has reached a neighbor at *now*, seconds."""
        if name not in self.connectors:
            self.connectors[name] = Presence(since=now, is_expected=True)
        self.connectors[name].come(now)

    def connector_not_understood(self, name: str, reason: str) -> None:
        """Note that whoever a connector has reached has said nothing yet that this router understands, and why."""
        known = self.connectors.setdefault(name, Presence(since=self.started, is_expected=True))
        if not known.is_present:
            known.reason = f"what the other side says can't be read: {reason}"
            known.is_not_understood = True

    def connector_down(self, name: str, reason: str, now: float) -> None:
        """Note that its connection is over at *now*, seconds, and why."""
        if name in self.connectors:
            self.connectors[name].go(now, reason)

    def connector_removed(self, gone: ConnectorSettings, others: Iterable[ConnectorSettings]) -> None:
        """Forget a connector that was taken away, but what holds for *others*, those that stay, as well."""
        left = list(others)
        if gone.effective_name not in (each.effective_name for each in left):
            self.connectors.pop(gone.effective_name, None)
        if gone.to is not None and gone.to not in {each.to for each in left}:
            self._dials.pop(gone.to, None)

    def connection_ended(self, container: str, reason: str, now: float) -> None:
        """Note how a connection to a neighbor has ended at *now*, seconds, for the reason of its absence."""
        self._ends.pop(container, None)
        self._ends[container] = end = LastDisconnect(now, reason)
        # Its end may be heard of late: after the silence for which it was given up.
        router = RouterId(container)
        known = self.routers.get(router)
        if known is not None and not known.is_present and known.was_seen and abs(now - known.since) < END_S:
            known.because(_ended(end))
        link = self.links.get((min(self.me, router), max(self.me, router)))
        if link is not None and not link.is_present and link.was_seen and abs(now - link.since) < END_S:
            link.because(_ended(end))
        if len(self._ends) > MOST_UNEXPECTED:
            del self._ends[next(iter(self._ends))]

    def refused(self, container: str, host: str, reason: str, now: float) -> bool:
        """Note that a peer came to the wrong listener. Returns: whether that is to be said in the log.

        Args:
            container: its name for itself.
            host: where it came from, without port.
            reason: in words.
            now: seconds, monotonic.
        """
        before = self.misdirected.pop((container, reason), None)
        is_news = before is None or now - before.last >= TOLD_AGAIN_S
        first = now if before is None or is_news else before.first
        self.misdirected[container, reason] = WrongListenerPeer(
            container=container, host=host, reason=reason, first=first, last=now
        )
        if len(self.misdirected) > MOST_REFUSED:
            del self.misdirected[next(iter(self.misdirected))]
        return is_news

    def dial_failed(self, router: str, reason: str) -> None:
        """Note why a connector to *router* has failed."""
        self._dials[router] = reason[:MOST_REASON]

    def router_refused(self, container: str, host: str, reason: str, now: float) -> None:
        """Note that a peer that came to a listener for routers was not let in.

        Args:
            container: its name for itself; empty where it had not said it.
            host: where it came from, without port.
            reason: in words.
            now: seconds, monotonic.
        """
        before = self.refused_routers.pop((container, host), None)
        is_new = before is None or now - before.last >= RECENT_S
        self.refused_routers[container, host] = RefusedRouter(
            container=container,
            host=host,
            reason=reason[:MOST_REASON],
            first=now if before is None or is_new else before.first,
            last=now,
        )
        if len(self.refused_routers) > MOST_REFUSED:
            del self.refused_routers[next(iter(self.refused_routers))]

    def router_let_in(self, host: str) -> None:
        """Forget a peer refused from *host* before it had said its name: a router came from there."""
        self.refused_routers.pop(("", host), None)

    # What is asked

    def reason(self, router: RouterId) -> str:
        """Say why *router* is absent, in a sentence without its full stop; empty when it is present."""
        known = self.routers.get(router)
        if known is None or known.is_present:
            return ""
        return self._absence(router, known) + self._refusal(router, known.since)

    def _refusal(self, router: RouterId, since: float) -> str:
        """Reason why it doesn't come back: one at this end, or a peer refused here since then that may be it."""
        if router in self._dials:
            return _dialled_in_vain(self._dials[router])
        if self.me not in self.neighbors(router):
            return ""
        latest = [each for each in reversed(self.refused_routers.values()) if each.last >= since]
        for each in latest:
            if each.container == router:
                return f"; it was refused here: {each.reason}"
        for each in latest:
            if not each.container:
                return f"; a router from {each.host} was refused here, which may be it: {each.reason}"
        return ""

    def _absence(self, router: RouterId, known: Presence) -> str:
        if not known.was_seen:
            return "never seen since this router started"
        return known.reason or self._loss(router, known)

    def _loss(self, router: RouterId, known: Presence) -> str:
        end = self._ends.get(router)
        if end is not None and abs(end.at - known.since) < END_S:
            return _ended(end)
        neighbors = self.neighbors(router)
        if self.me in neighbors:
            return SILENT
        left = [each for each in neighbors if self.routers[each].is_present]
        if left:
            return f"lost by its neighbors: {', '.join(left[:SHOWN])}{' ...' if len(left) > SHOWN else ''}"
        return "no path is left: its neighbors are absent too" if neighbors else "no path is left"

    def neighbors(self, router: RouterId) -> list[RouterId]:
        """Routers to which it has, had or should have a link, sorted."""
        found: Set[RouterId] = self._adjacent.get(router, frozenset())
        return sorted(each for each in found if each == self.me or each in self.routers)

    def link_reason(self, pair: Pair) -> str:
        """Say why the link between two routers is absent; empty when it is there, or nobody tells of it."""
        link = self.links[pair]
        if link.is_present and self.is_known(pair):
            return ""
        if not link.was_seen:
            found = "its ends have never seen each other"
        else:
            found = link.reason or self._link_loss(pair, link.since)  # of one that nobody tells of any more
        dial = self._dials.get(self._other(pair)) if self.me in pair else None
        return found + (_dialled_in_vain(dial) if dial else "")

    def is_present(self, router: RouterId) -> bool:
        """Whether there is a path to another router."""
        return router in self.routers and self.routers[router].is_present

    def is_known(self, pair: Pair) -> bool:
        """Whether any router that can be reached tells of a link."""
        return any(each == self.me or self.is_present(each) for each in pair)

    def forget_old(self, now: float) -> None:
        """Forget what no file names and is absent for a day. Cheap when called often.

        Args:
            now: seconds, monotonic.
        """
        is_much = max(len(self.routers), len(self.links)) > 2 * MOST_UNEXPECTED
        if now < (self._looked_at + CROWDED_LOOK_S if is_much else self._looked_at + KEPT_S / 24):
            return
        self._looked_at = now
        self.routers = _kept(self.routers, now)
        self.links = _kept(self.links, now)
        self._forget_links_to_nobody()
        self._connect_all()


Key = TypeVar("Key", RouterId, Pair)

SILENT: Final = "it fell silent, or speaks to this router no more"
"""Reason of a loss that nothing else explains."""
SHOWN: Final = 4
"""Maximum number of neighbors that a reason names."""
END_S: Final = 2.0
"""Maximum time between the end of a connection and the loss of the router that it led to for one to explain the other,
seconds."""


def _expect(known: dict[Key, Presence], expected: set[Key], now: float) -> None:
    """Forget what was expected, is no more, and is absent."""
    left = {key for key, it in known.items() if it.is_expected and not it.is_present and key not in expected}
    for key in left:
        del known[key]
    for key, presence in known.items():
        presence.is_expected = key in expected
    for key in sorted(expected - known.keys()):
        known[key] = Presence(is_expected=True, since=now)


def _ended(end: LastDisconnect) -> str:
    return f"its connection ended: {end.reason}"


def _dialled_in_vain(reason: str) -> str:
    return f"; connecting to it fails: {reason}"


def _kept(known: dict[Key, Presence], now: float) -> dict[Key, Presence]:
    strange = sorted(
        (key for key, it in known.items() if not (it.is_present or it.is_expected)), key=lambda key: -known[key].since
    )
    gone = {key for at, key in enumerate(strange) if at >= MOST_UNEXPECTED or now - known[key].since > KEPT_S}
    return {key: it for key, it in known.items() if key not in gone}


def when(time: float | None, offset: float) -> int | None:
    """Seconds since 1970 of a monotonic time; None for none.

    Args:
        time: seconds, monotonic.
        offset: of the two clocks, seconds.
    """
    return None if time is None or math.isinf(time) else int(time + offset)
