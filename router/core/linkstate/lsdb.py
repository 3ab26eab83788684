"""The link state database: what each other router said last of itself, how new it is, and the graph that follows.

What an unreachable router said is kept until it ages out, so that it is there again with the router. Whether it still
holds then is not known: much may have changed beyond a partition. Where news comes unasked, which is soon, it doesn't
count until the router has confirmed it.

Source: docs/reference/inter-router-protocol.md#link-state.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Container, Mapping
from typing import Final

import attrs

from mesh_config.models import LinkStateSettings
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.messages import MAX_BOOT_JUMP, MAX_FIRST, MAX_JUMP, LinkStateUpdate, RouterAdvertisement

LEAST_IN_MICROSECONDS: Final = 2**40
"""Smallest boot number that is a time in microseconds; a lower one is in seconds, as a qdrouterd's are."""
MOST_UNHEARD: Final = 500
"""Maximum number of routers that are taken for there though they have said nothing yet, since others name them as their
neighbors. More than that are there once their own advertisements come."""


class BootComparison(enum.Enum):
    """Outcome of comparing the boot number of a message with the one that is held."""

    HELD = "held"
    NEWER = "newer"
    """The router started anew: nothing held of it counts any more."""
    OLDER = "older"
    """A late copy from before a restart, or a second router of the same id."""


@attrs.define(kw_only=True, eq=False)
class Node:
    """Link state and sequence numbers held of one other router."""

    id: RouterId
    instance: int | None = None
    instance_since: float
    heard_at: float
    """Time of the last news of its own boot: advertisement or accepted link state, seconds."""
    has_link_state: bool = False
    is_unasked: bool = False
    """Whether the link state came without a request, as it does among routers of our kind."""
    doubt_at: float = math.inf
    """Time from which what is held of it may have changed unheard, since it is unreachable, seconds."""
    is_unconfirmed: bool = False
    """Whether the router was unreachable beyond `doubt_at`, and has not told of its link state since."""
    has_trees: bool = False
    """Whether the router passes multicasts on along trees only, as it says."""
    ls_seq: int = 0
    peers: Mapping[RouterId, int] = attrs.field(factory=dict)
    changed_at: float
    """Time of the last change of its peers, seconds."""
    advertised_ls_seq: int = 0
    advertised_mobile_seq: int = 0
    """Newest sequence of addresses that the router's advertisements spoke of."""
    relayed_at: float = -math.inf
    """Time when an advertisement of it was last relayed, seconds."""
    is_reachable: bool = False
    is_update_spread: bool = False
    is_advertisement_spread: bool = False
    """Whether the advertisement was relayed since the router last was unreachable: routers beyond this one may have
    come up in between, so the first copy after that is passed on even when it is no news here."""
    ask_at: float | None = None
    """Time to ask for its link state (again), if it does not come by itself, seconds."""
    asked: int = 0
    """Number of requests sent without an answer."""
    doubted_seq: int = 0
    """Newest sequence that the router was asked about, since it said less itself."""
    rival: RouterAdvertisement | None = None
    """Latest advertisement that others tell of it, and that the neighbor of this id has not overruled."""
    rival_since: float = math.inf
    """Time since which the neighbor has said nothing new in spite of `rival`, seconds."""
    brought_by: RouterId | None = None
    """The neighbor that was the first to tell of it."""
    peers_by: RouterId | None = None
    """The neighbor that told of its peers."""
    via: ConnectionId | None = None
    """Connection by which its last advertisement came: the way to it while the graph has none."""

    @property
    def is_behind(self) -> bool:
        """Whether newer link state than the one held is known to exist, or none is held."""
        return not self.has_link_state or self.ls_seq < self.advertised_ls_seq

    @property
    def is_current(self) -> bool:
        """Whether what is held of it is the newest there is, as far as is known."""
        return not (self.is_behind or self.is_unconfirmed)

    def update(self) -> LinkStateUpdate:
        """Link state as the router sent it; there is some."""
        assert self.instance is not None
        return LinkStateUpdate(
            id=self.id, instance=self.instance, ls_seq=self.ls_seq, peers=self.peers, has_trees=self.has_trees
        )

    def advertisement(self) -> RouterAdvertisement:
        """An advertisement of what is held of it."""
        assert self.instance is not None
        return RouterAdvertisement(
            id=self.id, instance=self.instance, ls_seq=self.ls_seq, mobile_seq=self.advertised_mobile_seq
        )


class LinkStateDatabase:
    """Nodes by router id, without this router itself."""

    def __init__(self, router_id: RouterId, settings: LinkStateSettings) -> None:
        self.router_id = router_id
        self.nodes: dict[RouterId, Node] = {}
        self.next_aging = math.inf
        """Lower bound of the moment at which the next node ages out, seconds."""
        self._settings = settings
        self._brought: Counter[RouterId | None] = Counter()
        """Nodes by the neighbor that was the first to tell of them."""
        self._named: Counter[RouterId | None] = Counter()
        """Peers of all nodes by the neighbor that told of them."""

    def has_room(self, neighbor: RouterId) -> bool:
        """Whether one more router may be known, and by *neighbor*."""
        settings = self._settings
        return len(self.nodes) < settings.max_routers and self._brought[neighbor] < settings.max_neighbor_routers

    def make_room(self, kept: Container[RouterId]) -> RouterId | None:
        """Forget a router in favor of a new neighbor, if no room is left: the unreachable one unheard for longest.

        Args:
            kept: routers that are not forgotten.
        Returns: the router forgotten; None when there is room, or no such router.
        """
        if len(self.nodes) < self._settings.max_routers:
            return None
        spare = (node for node in self.nodes.values() if not node.is_reachable and node.id not in kept)
        oldest = min(spare, key=lambda node: (node.heard_at, node.id), default=None)
        if oldest is None:
            return None
        self._forget(oldest)
        return oldest.id

    def has_room_for(self, node: Node, peers: int, neighbor: RouterId) -> bool:
        """Whether *neighbor* may tell of as many peers of *node* as *peers*, beside those that it has told of."""
        present = len(node.peers) if node.peers_by == neighbor else 0
        return self._named[neighbor] - present + peers <= self._settings.max_neighbor_peers

    def is_plausible(self, router: RouterId, instance: int, *sequences: int) -> bool:
        """Whether a message about *router* is not too far ahead of what is held: see MAX_JUMP and MAX_BOOT_JUMP.

        Args:
            router: whom it speaks of.
            instance: boot number in it.
            sequences: of link state and addresses, if it speaks of both.
        """
        node = self.nodes.get(router)
        if node is None or node.instance is None:
            return max(instance, *sequences) <= MAX_FIRST
        if instance > node.instance:
            return instance <= _highest_boot(node) and max(sequences) <= MAX_FIRST
        held = (node.advertised_ls_seq, node.advertised_mobile_seq)
        return all(
            new <= old + MAX_JUMP if old else new <= MAX_FIRST for new, old in zip(sequences, held, strict=False)
        )

    def node(self, router: RouterId, now: float, neighbor: RouterId | None = None) -> Node:
        """The node of *router*, made when it is not known.

        Args:
            router: another one.
            now: seconds, monotonic.
            neighbor: who tells of it.
        """
        found = self.nodes.get(router)
        if found is None:
            assert router != self.router_id
            found = self.nodes[router] = Node(
                id=router, instance_since=now, heard_at=now, changed_at=now, brought_by=neighbor
            )
            self._brought[neighbor] += 1
            self.next_aging = min(self.next_aging, now + self._settings.remote_ls_max_age_s)
        return found

    def judge(self, node: Node, instance: int, now: float) -> BootComparison:
        """Compare boot number *instance* of *node* with the one held.

        It is the time of the start, so the higher is the newer. A lower one is believed, since a clock may have been
        set back, when the one held was not heard for `ra_interval_s`, or for `hello_max_age_s` and is unreachable.

        Args:
            node: the router that the message speaks of.
            instance: boot number of a message.
            now: seconds, monotonic.
        """
        if node.instance is None or node.instance == instance:
            return BootComparison.HELD
        patience_s = self._settings.ra_interval_s if node.is_reachable else self._settings.hello_max_age_s
        is_newer = instance > node.instance or node.heard_at + patience_s <= now
        return BootComparison.NEWER if is_newer else BootComparison.OLDER

    def is_duplicate(self, node: Node, now: float) -> bool:
        """Whether an older boot number means a second router of that id: late copies are gone by now."""
        return node.instance_since + self._settings.hello_max_age_s <= now

    def restart(self, node: Node, instance: int, now: float) -> None:
        """Forget the link state of *node*, which started anew.

        Args:
            node: the router.
            instance: boot number of the new start.
            now: seconds, monotonic.
        """
        self._clear(node, now)
        node.instance = instance
        node.instance_since = node.heard_at = now
        node.relayed_at = -math.inf
        self.face_rival(node, (instance, 0), now)

    def face_rival(self, node: Node, said: tuple[int, int], now: float) -> None:
        """Compare what a neighbor says of itself with what others tell of it.

        Args:
            node: what is held of it.
            said: boot number and sequence of link state.
            now: seconds, monotonic.
        """
        if node.rival is not None and said < node.rival.numbers[:2]:
            node.rival_since = now
        else:
            node.rival, node.rival_since = None, math.inf

    def take_instance(self, node: Node, instance: int, now: float) -> None:
        """Note that *node* was heard.

        Args:
            node: the router.
            instance: boot number that it was heard with, not older than the one held.
            now: seconds, monotonic.
        """
        if node.instance is None:
            node.instance_since = now
            node.instance = instance
        node.heard_at = now

    def note(self, node: Node, advertisement: RouterAdvertisement) -> bool:
        """Remember how far *node* has got. Returns: whether that was news."""
        is_news = advertisement.ls_seq > node.advertised_ls_seq or advertisement.mobile_seq > node.advertised_mobile_seq
        node.advertised_ls_seq = max(node.advertised_ls_seq, advertisement.ls_seq)
        node.advertised_mobile_seq = max(node.advertised_mobile_seq, advertisement.mobile_seq)
        return is_news

    def store(self, node: Node, update: LinkStateUpdate, now: float, neighbor: RouterId | None = None) -> bool:
        """Replace the link state of *node*; *update* is newer.

        Args:
            node: the router that it speaks of.
            update: its whole link state.
            now: seconds, monotonic.
            neighbor: who tells of it.
        Returns: whether what counts of it changed.
        """
        peers = {peer: cost for peer, cost in sorted(update.peers.items()) if peer != node.id}
        is_change = not node.has_link_state or peers != node.peers
        did_not_count = self.confirm(node)
        node.has_link_state = True
        node.has_trees = update.has_trees
        node.ls_seq = update.ls_seq
        node.advertised_ls_seq = max(node.advertised_ls_seq, update.ls_seq)
        self._name(node, peers, neighbor)
        if is_change:
            node.changed_at = now
        return is_change or did_not_count

    def confirm(self, node: Node) -> bool:
        """Note that *node* has told of the link state that is held of it. Returns: whether it did not count before."""
        was_unconfirmed, node.is_unconfirmed = node.is_unconfirmed, False
        node.doubt_at = math.inf
        return was_unconfirmed

    def reach(self, node: Node) -> None:
        """Mark *node* as reachable."""
        node.is_reachable = True
        node.doubt_at = math.inf

    def lose(self, router: RouterId) -> None:
        """Mark *router*, which is known, as unreachable; what it said is kept."""
        node = self.nodes[router]
        node.is_reachable = node.is_update_spread = node.is_advertisement_spread = False

    def doubt(self, router: RouterId, now: float) -> None:
        """Let link state of *router*, lost at *now* (seconds), count only when it is confirmed, unless it is soon back.

        What comes and goes faster than news spreads was not lost everywhere, so that not all pass confirmations on.
        """
        node = self.nodes.get(router)
        if node is not None and node.has_link_state and node.is_unasked and not node.is_unconfirmed:
            node.doubt_at = now + self._settings.hello_interval_s / 4

    def doubt_what_is_due(self, now: float) -> bool:
        """Let link state count no more of routers that are lost for long. Returns: whether there is any such.

        Args:
            now: seconds, monotonic.
        """
        is_any = False
        for node in self.nodes.values():
            if node.doubt_at <= now:
                node.is_unconfirmed = True
                node.doubt_at = math.inf
            is_any |= node.is_unconfirmed
        return is_any

    def age(self, now: float) -> tuple[list[RouterId], bool]:
        """Forget what nobody refreshed for `remote_ls_max_age_s`.

        Args:
            now: seconds, monotonic.
        Returns: routers forgotten altogether, which were unreachable; whether the graph may have changed.
        """
        forgotten: list[RouterId] = []
        is_change = False
        self.next_aging = math.inf
        for node in list(self.nodes.values()):
            expiry = node.heard_at + self._settings.remote_ls_max_age_s
            if expiry > now:
                self.next_aging = min(self.next_aging, expiry)
            elif not node.is_reachable:
                self._forget(node)
                forgotten.append(node.id)
                is_change = True
            else:
                # Another router names it as its neighbor, so it stays, as a router that nothing is known of.
                is_change |= node.has_link_state
                self._clear(node, now)
                node.heard_at = now
                self.next_aging = min(self.next_aging, now + self._settings.remote_ls_max_age_s)
        return forgotten, is_change

    def was_heard(self, router: RouterId) -> bool:
        """Whether *router* has ever said anything itself, and is not forgotten."""
        node = self.nodes.get(router)
        return node is not None and node.instance is not None

    def edges(
        self, own_peers: Mapping[RouterId, int], *, with_unconfirmed: bool = False
    ) -> dict[RouterId, dict[RouterId, int]]:
        """Make the graph: an edge counts when both ends advertise it, or the far end has said nothing yet.

        In that case the near end's cost counts in both directions.

        Args:
            own_peers: this router's link state.
            with_unconfirmed: as last heard, though a router that was unreachable has not confirmed it.
        """
        stated: dict[RouterId, Mapping[RouterId, int]] = {self.router_id: own_peers}
        stated.update(
            (node.id, node.peers)
            for node in self.nodes.values()
            # DEV-38: a qdrouterd takes what it has until it hears something else.
            if node.has_link_state and (with_unconfirmed or not node.is_unconfirmed)
        )
        edges: dict[RouterId, dict[RouterId, int]] = {router: {} for router in stated}
        unheard: set[RouterId] = set()
        for router, peers in stated.items():
            near = edges[router]
            for peer, cost in peers.items():
                far = stated.get(peer)
                if far is None:
                    if not self.was_heard(peer) and router != self.router_id:
                        if peer not in unheard and len(unheard) >= MOST_UNHEARD:
                            continue
                        unheard.add(peer)
                    near[peer] = cost
                    edges.setdefault(peer, {})[router] = cost
                # DEV-22: qdrouterd takes an edge that one end alone advertises.
                elif router in far:
                    near[peer] = cost
        return edges

    def _name(self, node: Node, peers: Mapping[RouterId, int], neighbor: RouterId | None) -> None:
        self._named[node.peers_by] -= len(node.peers)
        if not self._named[node.peers_by]:
            del self._named[node.peers_by]
        node.peers, node.peers_by = peers, neighbor
        if peers:
            self._named[neighbor] += len(peers)

    def _forget(self, node: Node) -> None:
        self._name(node, {}, None)
        del self.nodes[node.id]
        self._brought[node.brought_by] -= 1
        if not self._brought[node.brought_by]:
            del self._brought[node.brought_by]

    def _clear(self, node: Node, now: float) -> None:
        if node.has_link_state:
            node.changed_at = now
        node.has_link_state = node.is_unconfirmed = node.is_unasked = False
        node.doubt_at = math.inf
        node.ls_seq = node.advertised_ls_seq = node.advertised_mobile_seq = node.doubted_seq = 0
        self._name(node, {}, None)
        node.asked = 0
        node.ask_at = None
        node.is_update_spread = node.is_advertisement_spread = False

    def check_invariants(self) -> None:
        """Assert that sequences agree and nothing is older than it may be known to be."""
        assert self.router_id not in self.nodes
        assert self._brought == Counter(node.brought_by for node in self.nodes.values())
        named: Counter[RouterId | None] = Counter()
        for node in self.nodes.values():
            if node.peers:
                named[node.peers_by] += len(node.peers)
        assert self._named == named
        for router, node in self.nodes.items():
            assert router == node.id
            assert node.has_link_state or (not node.peers and node.ls_seq == 0)
            assert node.ls_seq <= node.advertised_ls_seq
            assert node.has_link_state or not (node.is_unconfirmed or node.doubt_at < math.inf)
            assert not (node.is_reachable and node.doubt_at < math.inf)
            assert router not in node.peers
            assert node.heard_at + self._settings.remote_ls_max_age_s >= self.next_aging


def _highest_boot(node: Node) -> int:
    """Highest boot number that a message about *node*, of which there is one, may have."""
    assert node.instance is not None
    held = node.instance
    if 0 < held < LEAST_IN_MICROSECONDS:  # DEV-7: it may be followed by one of ours, for a qdrouterd that was replaced
        held *= 1_000_000
    # What nobody has refreshed for long is cleared, so that a router which has got too far ahead is believed again.
    return held + MAX_BOOT_JUMP if node.advertised_ls_seq else max(held + MAX_BOOT_JUMP, MAX_FIRST)
