"""The link state protocol: finds neighbors, spreads this router's link state, keeps that of the others, finds routes.

News spreads by flooding: whoever learns of a newer sequence passes it to every neighbor where it has not been, at once.
Between our own routers the news is the link state itself (LSU); a qdrouterd is told of it by an advertisement (RA), and
asks. An advertisement that says nothing new only shows that its origin lives: the first copy is passed on in the same
way, the others that come within `copy_age_s` are not. (Copies of one refresh differ by milliseconds, refreshes by
seconds; a check against the origin's tree would say the same, at the price of one tree for each router and change.)

All is driven by deadlines. An own loss is advertised in the turn in which it happens; what is good news, or comes in
quick succession, waits for a `Throttle`.

Source: docs/reference/inter-router-protocol.md#link-state; docs/explanation/walk-of-an-update.md.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from mesh_config.models import LinkStateSettings
from router.core.events import ControlReceived, Report
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.control_message_sender import (
    ALL,
    ALL_LINK_STATE_TO,
    ControlMessageSender,
    FloodScope,
    link_state_to,
    target_of,
)
from router.core.linkstate.duplicate_ids import DuplicateIds
from router.core.linkstate.hello_sender import HelloSender
from router.core.linkstate.link_state_requests import LinkStateRequests
from router.core.linkstate.lsdb import BootComparison, LinkStateDatabase, Node
from router.core.linkstate.messages import (
    MAX_BOOT_JUMP,
    MAX_FIRST,
    MAX_JUMP,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    RouterAdvertisement,
)
from router.core.linkstate.neighbor_sync import catch_up
from router.core.linkstate.neighbors import Neighbors
from router.core.linkstate.routes import RouteComputation, RoutesDiff
from router.core.linkstate.spf import Topology
from router.core.linkstate.superseded_instances import LATER_NEWS, SupersededInstances
from router.core.linkstate.throttle import Throttle

RA_JITTER: Final = 0.25
"""Part by which intervals are shortened at most, at random, so that a thousand routers do not act in step."""
OVERRULE_PAUSE_S: Final = 0.5
"""Minimum time between two answers to what others say in this router's name, seconds."""
MAX_STEPS: Final = 64
"""Maximum number of steps of MAX_BOOT_JUMP announced in one such answer. A router that is still too far behind believes
it after `remote_ls_max_age_s`, when what it holds is cleared."""


class LinkState:
    """The link state protocol of one router.

    Args:
        instance: boot number; one that starts later has a higher one.
        rng: for jitter.
        mobile_seq: tells this router's current address sequence.
        raise_mobile_seq: makes it higher than the one given.
        topology: empty, for the graph and the paths in it.
        on_restart: told of each router whose addresses are void: it started anew or is forgotten.
    """

    def __init__(
        self,
        *,
        sender: ControlMessageSender,
        neighbors: Neighbors,
        settings: LinkStateSettings,
        instance: int,
        rng: random.Random,
        mobile_seq: Callable[[], int],
        raise_mobile_seq: Callable[[int], None],
        on_restart: Callable[[RouterId], None],
        topology: Topology,
    ) -> None:
        self.router_id = sender.router_id
        self.ls_seq = 0
        self.peers: Mapping[RouterId, int] = {}
        """Own link state as last advertised."""
        self.changed_at = -math.inf
        """Time of the last change of the graph, seconds."""
        self.database = LinkStateDatabase(sender.router_id, settings)
        self.routes = RouteComputation(sender=sender, neighbors=neighbors, database=self.database, topology=topology)
        self.copy_age_s = min(settings.hello_interval_s, settings.ra_interval_flux_s / 2)
        """Time within which copies of one refresh arrive, seconds."""
        self.requests = LinkStateRequests(sender=sender, neighbors=neighbors, database=self.database, settings=settings)
        self.superseded_instances = SupersededInstances(neighbors=neighbors, database=self.database, settings=settings)
        self._settings = settings
        self._rng = rng
        self._sender = sender
        self._neighbors = neighbors
        self._mobile_seq = mobile_seq
        self._raise_mobile_seq = raise_mobile_seq
        self._on_restart = on_restart
        self._greeter = HelloSender(sender=sender, neighbors=neighbors, settings=settings, instance=instance, rng=rng)
        self._used: dict[RouterId, ConnectionId] = {}
        """Connections to the neighbors that were told of this router's link state, which names them."""
        self._revision = 0
        self._spf_throttle = Throttle(settings.spf_hold_down_s)
        self._own_throttle = Throttle(settings.spf_hold_down_s)
        self._duplicates = DuplicateIds(sender)
        self._is_full_told = self._is_dense_told = False
        self._started_at = math.inf
        self._claim: tuple[int, int, int] | None = None
        """Boot number and sequences, of link state and addresses, that others take for this router's."""
        self._claimed_by = sender.router_id
        self._overruled_at = -math.inf
        self._overrule_at = math.inf
        self._ra_at = self._spf_at = self._own_at = math.inf
        self.convergence_s = 0.0
        """Time from the last news of a change until the routes followed it, seconds."""
        self._stale_at = math.inf
        """Time of the first change that the routes do not follow yet, seconds."""

    @property
    def instance(self) -> int:
        """Boot number of this router as it is advertised."""
        return self._greeter.instance

    # Messages

    def on_hello(self, received: ControlReceived, hello: Hello, now: float) -> None:
        """Handle a HELLO that came by a known connection.

        Args:
            received: the event that brought it.
            hello: what it says.
            now: seconds, monotonic.
        """
        if not self._neighbors.hear(received.connection, hello, now):
            return
        node = self._neighbor_node(hello.id, now)
        boot = self.database.judge(node, hello.instance, now)
        if boot is BootComparison.OLDER and node.heard_at + self._settings.hello_max_age_s <= now:
            if (route := self._sender.route(node.id)) is not None and route.next_hop != node.id:
                self._neighbors.refuse_all(node.id, LATER_NEWS, now)
                return
            # The neighbor itself says so, and it is no HELLO that was overtaken by news of a restart.
            boot = BootComparison.NEWER
        if boot is BootComparison.NEWER:
            self._restart(node, hello.instance, now)
        if boot is not BootComparison.OLDER:
            self.database.take_instance(node, hello.instance, node.heard_at)

    def on_advertisement(self, received: ControlReceived, message: RouterAdvertisement, now: float) -> bool:
        """Handle an RA.

        Args:
            received: the event that brought it.
            message: what it says.
            now: seconds, monotonic.
        Returns: whether it speaks for the present boot of its origin, another router.
        """
        if message.id == self.router_id:
            self.on_own_claim(message.instance, message.ls_seq, message.mobile_seq, received, now)
            return False
        if self.is_hearsay(received):
            self._on_hearsay(received, message, now)
            return False
        node = self._accept(received, message.instance, now, message.ls_seq, message.mobile_seq)
        if node is None:
            return False
        node.via = received.connection
        is_news = self.database.note(node, message)
        is_unknown_beyond = message.mobile_seq > 0 and not node.is_advertisement_spread
        if is_news or is_unknown_beyond or node.relayed_at + self.copy_age_s <= now:
            node.is_advertisement_spread = True
            node.relayed_at = now
            told = () if is_news or is_unknown_beyond else self.routes.told_along(received.trace or (message.id,))
            self._sender.relay(received, message, ALL_LINK_STATE_TO, is_news=is_news, told=told)
        if is_news:
            self._sender.tell_origin(received, message, link_state_to(node.id))
        if node.is_behind:
            self.requests.want(node, now)
        elif message.ls_seq == node.ls_seq:
            self._confirm(node, now)
        return True

    def on_update(self, received: ControlReceived, message: LinkStateUpdate, now: float) -> None:
        """Handle an LSU, asked for or pushed.

        Args:
            received: the event that brought it.
            message: what it says.
            now: seconds, monotonic.
        """
        if message.id == self.router_id:
            self.on_own_claim(message.instance, message.ls_seq, 0, received, now)
            return
        if self.is_hearsay(received):
            claim = RouterAdvertisement(id=message.id, instance=message.instance, ls_seq=message.ls_seq, mobile_seq=0)
            self._on_hearsay(received, claim, now)
            return
        known = self.database.nodes.get(message.id)
        is_old = known is not None and known.instance == message.instance and message.ls_seq <= known.ls_seq
        if known is not None and is_old:
            self._on_old_update(received, known, message, now)
            return
        node = self._accept(received, message.instance, now, message.ls_seq)
        if node is None or message.ls_seq <= node.ls_seq:
            return
        self.database.face_rival(node, (message.instance, message.ls_seq), now)
        neighbor, size = self._neighbors.connections[received.connection].router, len(message.peers)
        if size > self._settings.max_routers or not self.database.has_room_for(node, size, neighbor):
            self._report_dense(node, neighbor)
            return
        node.via = received.connection
        node.is_unasked = target_of(received.to) == ALL
        if self.database.store(node, message, now, neighbor):
            self._compute_after_hold_down(now)
        node.asked = 0
        node.ask_at = None
        self._sender.tell_origin(received, message, link_state_to(node.id))
        if target_of(received.to) == ALL:
            self._spread(received, node, message, now)
        else:
            self._doubt(node)

    def _on_old_update(self, received: ControlReceived, node: Node, message: LinkStateUpdate, now: float) -> None:
        if message.ls_seq == node.ls_seq:
            self._confirm(node, now)
        if message.ls_seq == node.ls_seq and target_of(received.to) == ALL and not node.is_update_spread:
            self._spread(received, node, message, now)
        elif target_of(received.to) == self.router_id:
            self._doubt(node)

    def _confirm(self, node: Node, now: float) -> None:
        """Take note that *node* has told of the link state that is held of it."""
        if self.database.confirm(node):
            node.asked = 0
            node.ask_at = None
            self._compute_after_hold_down(now)

    def on_request(self, received: ControlReceived, message: LinkStateRequest) -> None:
        """Answer an LSR with the link state last advertised, which is what its sequence stands for."""
        # DEV-11: never with changes that have no number yet.
        if message.id == self.router_id:
            return
        ways = [received.connection]
        way = self._sender.way(message.id)
        if way is not None and way[1] == message.id:
            ways = [way[0]]
        elif way is not None and way[0] != received.connection:
            # Old link state may lead the answer in a circle; back by where the question came from is no such way.
            ways.append(way[0])
        for connection in ways:
            self._sender.write(connection, link_state_to(message.id), self.own_update())

    def own_update(self) -> LinkStateUpdate:
        """This router's link state."""
        return LinkStateUpdate(
            id=self.router_id, instance=self.instance, ls_seq=self.ls_seq, peers=self.peers, has_trees=True
        )

    def own_advertisement(self) -> RouterAdvertisement:
        """Advertisement of this router's newest sequence numbers."""
        return RouterAdvertisement(
            id=self.router_id, instance=self.instance, ls_seq=self.ls_seq, mobile_seq=self._mobile_seq()
        )

    def is_hearsay(self, received: ControlReceived) -> bool:
        """Whether a message speaks of a neighbor of our kind, and came from another one.

        Such a neighbor tells all its news itself, so what others say of it is at most a reason to ask it.
        """
        # DEV-36: qdrouterd believes whoever is first, and lies that come without end are stronger than corrections.
        router = received.message.id
        active = self._neighbors.active.get(router)
        return (
            active is not None
            and active.pushes_lsu
            and self._neighbors.connections[received.connection].router != router
        )

    def _on_hearsay(self, received: ControlReceived, claim: RouterAdvertisement, now: float) -> None:
        node = self.database.nodes.get(claim.id)
        if node is None or not self.database.is_plausible(node.id, claim.instance, claim.ls_seq, claim.mobile_seq):
            return
        is_later_boot = node.instance is not None and claim.instance > node.instance
        is_news = claim.instance == node.instance and self.database.note(node, claim)
        if is_later_boot or is_news:
            self._sender.tell_origin(received, claim, link_state_to(node.id))
        is_untold = is_news and node.is_behind
        if is_later_boot or is_untold:
            self.superseded_instances.note(node, claim, now)
        if is_untold:  # its own word is on its way, if that is true
            self.requests.want(node, now + self._settings.hello_interval_s / 4)

    def _accept(self, received: ControlReceived, instance: int, now: float, *sequences: int) -> Node | None:
        """The node that a message speaks of, when it comes from its present boot."""
        router = received.message.id
        if router == self.router_id or not self.database.is_plausible(router, instance, *sequences):
            return None
        neighbor = self._neighbors.connections[received.connection].router
        if router == neighbor:
            node = self._neighbor_node(router, now)
        elif router in self.database.nodes or self.database.has_room(neighbor):
            node = self.database.node(router, now, neighbor)
        else:
            self._report_full(neighbor)
            return None
        boot = self.database.judge(node, instance, now)
        if boot is BootComparison.OLDER:
            if self.database.is_duplicate(node, now):
                self._duplicates.report_older(router, instance, now)
            return None
        if boot is BootComparison.NEWER:
            self._restart(node, instance, now)
        self.database.take_instance(node, instance, now)
        return node

    def _neighbor_node(self, router: RouterId, now: float) -> Node:
        """The node of a neighbor that speaks for itself, for which there is always room."""
        if router not in self.database.nodes:
            gone = self.database.make_room({each.router for each in self._neighbors.connections.values()})
            if gone is not None:
                self._on_restart(gone)
                self._compute_after_hold_down(now)
        return self.database.node(router, now, router)

    # What others say in this router's name

    def on_own_claim(self, instance: int, ls_seq: int, mobile_seq: int, received: ControlReceived, now: float) -> None:
        """Overrule what others say in this router's name, when it is newer than its own word: say more still.

        Args:
            instance: boot number that others may now take for this router's; 0 if it was not said.
            ls_seq: the same of its link state.
            mobile_seq: the same of its addresses.
            received: the message that says so.
            now: seconds, monotonic.
        """
        own = (self.instance, self.ls_seq, self._mobile_seq())
        is_newer = instance > own[0] or (instance == own[0] and (ls_seq > own[1] or mobile_seq > own[2]))
        if not is_newer or instance > max(own[0] + MAX_BOOT_JUMP, MAX_FIRST):
            return
        self._claim = max(self._claim or (0, 0, 0), (instance, ls_seq, mobile_seq))
        self._claimed_by = self._neighbors.connections[received.connection].router
        # Two routers of one id would overrule each other for ever: not more often than this.
        self._overrule_at = max(now, self._overruled_at + OVERRULE_PAUSE_S)
        if self._overrule_at <= now:
            self._overrule(now)

    def _overrule(self, now: float) -> None:
        self._overrule_at = math.inf
        if self._claim is None:
            return
        (instance, ls_seq, mobile_seq), self._claim = self._claim, None
        self._overruled_at = now
        self._duplicates.report_overruled(self._claimed_by, instance, ls_seq, now)
        # DEV-7: soon after the start, neighbors that hold link state of this very boot number hold that of a process
        # before this one, started with the same number; its addresses count no more either.
        is_second_start = ls_seq > self.ls_seq and now - self._started_at < 2 * self._settings.hello_max_age_s
        is_far = ls_seq >= self.ls_seq + MAX_JUMP or mobile_seq >= self._mobile_seq() + MAX_JUMP
        if instance > self.instance or is_second_start or is_far:
            self._climb(instance)
            self._greeter.raise_instance(max(instance, self.instance) + 1)
            self._duplicates.report_raised(self.instance)
        else:
            self.ls_seq = max(self.ls_seq, ls_seq)
            self._raise_mobile_seq(mobile_seq)
        self._advertise(now)
        self._sender.flood(ALL_LINK_STATE_TO, self.own_advertisement(), FloodScope.PUSHING)
        self._greeter.hello(now)

    def _climb(self, instance: int) -> None:
        """Raise the boot number toward *instance* in steps that a router can believe that has heard none of them."""
        steps = min(max(0, instance - self.instance) // MAX_BOOT_JUMP, MAX_STEPS)
        for _ in range(steps):
            self._greeter.raise_instance(self.instance + MAX_BOOT_JUMP)
            self._sender.flood(ALL_LINK_STATE_TO, self.own_advertisement())

    def _doubt(self, node: Node) -> None:
        """Tell *node*, which said less itself than others said in its name, so that it can say more."""
        if node.is_behind and node.doubted_seq < node.advertised_ls_seq:
            node.doubted_seq = node.advertised_ls_seq
            claim = attrs.evolve(node.advertisement(), ls_seq=node.advertised_ls_seq)
            self._sender.send(node.id, link_state_to(node.id), claim, node.via)

    def _report_full(self, neighbor: RouterId) -> None:
        if not self._is_full_told:
            self._is_full_told = True
            self._sender.do(Report.warning("too_many_routers", neighbor=neighbor, known=len(self.database.nodes)))

    def _report_dense(self, node: Node, neighbor: RouterId) -> None:
        if not self._is_dense_told:
            self._is_dense_told = True
            most = min(self._settings.max_neighbor_peers, self._settings.max_routers)
            self._sender.do(Report.warning("too_many_peers", neighbor=neighbor, remote=node.id, most=most))

    def _restart(self, node: Node, instance: int, now: float) -> None:
        self._duplicates.report_restarted(node.id, node.instance, instance, now)
        self.database.restart(node, instance, now)
        self._on_restart(node.id)
        self._compute_after_hold_down(now)
        self.requests.want(node, now + self._settings.hello_interval_s / 4)
        # A neighbor that did so on a standing connection has to be told everything again.
        if self._used.pop(node.id, None) is not None:
            self._revision = -1

    def _spread(self, received: ControlReceived, node: Node, message: LinkStateUpdate, now: float) -> None:
        """Pass on news of *node*: as it is to routers like this one, as an advertisement to the others."""
        node.is_update_spread = True
        # It shows that the origin lives, as a refresh would.
        node.relayed_at = now
        self._sender.relay(received, message, ALL_LINK_STATE_TO, FloodScope.PUSHING, is_news=True)
        self._sender.relay(received, node.advertisement(), ALL_LINK_STATE_TO, FloodScope.PLAIN)

    # Turns

    def duplicate_ids(self, within_s: float, now: float) -> list[RouterId]:
        """Ids that two distant routers have had within *within_s* seconds before *now* (seconds), sorted."""
        return self._duplicates.lasting(within_s, now)

    def next_deadline(self) -> float:
        """Time at which `settle` has something to do without any event, seconds; `math.inf` when never."""
        return min(
            self._greeter.next_hello,
            self._ra_at,
            self._spf_at,
            self._own_at,
            self._overrule_at,
            self.superseded_instances.due,
            self.requests.next_ask,
            self.database.next_aging,
            self._neighbors.next_silence,
        )

    def elapse(self, now: float) -> None:
        """Do what is due by the clock alone.

        Args:
            now: seconds, monotonic.
        """
        self._greeter.elapse(now)
        if self._overrule_at <= now:
            self._overrule(now)
        if self.superseded_instances.due <= now:
            self.superseded_instances.refuse(now)
        if self._ra_at <= now:
            self._sender.flood(ALL_LINK_STATE_TO, self.own_advertisement())
            self._ra_at = now + self._ra_interval(now)
        if self.database.next_aging <= now:
            forgotten, is_change = self.database.age(now)
            for router in forgotten:
                self._on_restart(router)
            if is_change:
                self._compute_by(now, now)

    def settle(self, now: float) -> RoutesDiff | None:
        """End a turn: greet, advertise, compute.

        Args:
            now: seconds, monotonic.
        Returns: what became of the routes.
        """
        self._started_at = min(self._started_at, now)
        self._greeter.settle(now)
        lost: Sequence[ConnectionId] = ()
        if self._neighbors.revision != self._revision or self._own_at <= now:
            lost = self._follow_neighbors(now)
        if self._spf_at <= now:
            return self._compute(now)
        return self.routes.drop(set(lost)) if lost else None

    # This router's own link state

    def _follow_neighbors(self, now: float) -> Sequence[ConnectionId]:
        """Take over what has become of the neighbors.

        Returns: connections whose routes are to be given up in this turn, since others are computed later.
        """
        self._revision = self._neighbors.revision
        costs = self._neighbors.costs()
        is_loss = any(costs.get(peer) != cost for peer, cost in self.peers.items())
        is_change = costs != self.peers
        self._own_at = math.inf
        if is_change and not is_loss and self._own_throttle.due(now) > now:
            self._own_at = self._own_throttle.due(now)
            is_change = False
        if is_change:
            self.peers = costs
            self._own_throttle.ran(now, len(self.database.nodes))
            self._advertise(now)
        # While good news is held back a new neighbor is told nothing: that it isn't named would be bad news to it, and
        # to all that reach this router through it.
        used = {router: active.connection for router, active in self._neighbors.active.items() if router in self.peers}
        self._report_neighbors(costs, used)
        given_up: Sequence[ConnectionId] = ()
        if used != self._used:
            for router, connection in used.items():
                if self._used.get(router) != connection:
                    active = self._neighbors.active[router]
                    update = self.own_update() if not is_change else None
                    catch_up(self._sender, self.database, active, (update, self.own_advertisement()))
            lost = [connection for router, connection in self._used.items() if used.get(router) != connection]
            gone = self._used.keys() - self._neighbors.active.keys()
            self._used = used
            for claim in self.superseded_instances.believe(gone):
                node = self.database.nodes[claim.id]
                if claim.instance != node.instance:
                    self._restart(node, claim.instance, now)
                self.database.note(node, claim)
                self.requests.want_of_others(node, now)
            due = self._spf_throttle.due(now)
            if lost and due > now:
                # Routes over a lost connection must not stand. Others are found at once, unless that takes so long
                # that a neighbor which comes and goes could hold up all others.
                if self._spf_throttle.is_worth_a_pause(self.routes.topology.count_edges()):
                    given_up = lost
                else:
                    due = now
            self._compute_by(due, now)
        return given_up

    def _advertise(self, now: float) -> None:
        """Tell everybody of the own link state, which is new."""
        self.ls_seq += 1
        # DEV-13 and DEV-14: at once, and unasked to those that take it so.
        self._sender.flood(ALL_LINK_STATE_TO, self.own_update(), FloodScope.PUSHING)
        self._sender.flood(ALL_LINK_STATE_TO, self.own_advertisement(), FloodScope.PLAIN)
        self._compute_by(self._spf_throttle.due(now), now)
        self.expect_flux(now)

    def _report_neighbors(self, costs: Mapping[RouterId, int], used: Mapping[RouterId, ConnectionId]) -> None:
        for router in sorted(self._used.keys() - costs.keys()):
            self._sender.do(Report.warning("neighbor_down", neighbor=router))
        for router, connection in sorted(used.items()):
            if self._used.get(router) != connection:
                what = "neighbor_moved" if router in self._used else "neighbor_up"
                self._sender.do(Report.info(what, neighbor=router, connection=connection, cost=costs[router]))

    def expect_flux(self, now: float) -> None:
        """Advertise again soon: something changed that a lost message could hide from others.

        Args:
            now: seconds, monotonic.
        """
        self._ra_at = min(self._ra_at, now + self._jittered(self._settings.ra_interval_flux_s))

    def _ra_interval(self, now: float) -> float:
        if not self._neighbors.active:
            return math.inf
        is_flux = now - self.changed_at < 2 * self._settings.ra_interval_flux_s
        return self._jittered(self._settings.ra_interval_flux_s if is_flux else self._settings.ra_interval_s)

    def _jittered(self, interval_s: float) -> float:
        return interval_s * (1 - RA_JITTER * self._rng.random())

    # Routes

    def _compute_after_hold_down(self, now: float) -> None:
        """Compute when other news of the same change has come too."""
        self._compute_by(max(now + self._settings.spf_hold_down_s, self._spf_throttle.due(now)), now)

    def _compute_by(self, at: float, now: float) -> None:
        self._spf_at = min(self._spf_at, at)
        self._stale_at = min(self._stale_at, now)

    def _compute(self, now: float) -> RoutesDiff | None:
        self._spf_at = math.inf
        change = self.routes.compute(self.peers, now)
        self.convergence_s = max(0.0, now - self._stale_at)
        self._stale_at = math.inf
        self._spf_throttle.ran(now, len(self.database.nodes), self.routes.topology.count_edges())
        if change.is_topology:
            self.changed_at = now
            self.expect_flux(now)
        for router in change.found:
            self._reached(router, now)
        return change or None

    def _reached(self, router: RouterId, now: float) -> None:
        node = self.database.nodes[router]
        if not node.is_current:
            active = self._neighbors.active.get(router)
            is_plain = active is not None and not active.pushes_lsu
            # What is pushed is on its way, most likely.
            self.requests.want(node, now if is_plain else now + self._settings.hello_interval_s / 4)

    def check_invariants(self) -> None:
        """Assert that routes, nodes and neighbors agree."""
        self._neighbors.check_invariants()
        self.database.check_invariants()
        self.routes.check_invariants()
        assert set(self.peers) <= set(self._neighbors.active)
