"""The forwarding information base: what the control plane writes and the data plane reads.

One `AddressEntry` for each address that somebody here publishes to, subscribes to, or that a reachable router
subscribes to; one `Route` for each reachable router. Nothing here looks at a clock or moves a message.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Final, Protocol

from mesh_config.models import Treatment
from router.core.addressing.address import AddressKind, edge_address, is_reserved, normalise, parse_address
from router.core.addressing.treatment_table import TreatmentTable
from router.core.forwarding.duration_histogram import DurationHistogram
from router.core.forwarding.egress_load import EgressLoad
from router.core.ids_and_conditions import ConnectionId, RouterId


class Subscriber(Protocol):
    """Local egress link, as far as choosing among several needs to know it."""

    outstanding: int
    """Number of deliveries sent on the link and not yet settled."""

    def has_credit(self) -> bool:
        """Whether a message can be sent on it at once."""


class Tree(Protocol):
    """Place of this router in the shortest-path tree of some root."""

    @property
    def predecessor(self) -> RouterId | None:
        """Neighbor toward the root; None at the root itself and outside the tree."""

    @property
    def children(self) -> Mapping[RouterId, frozenset[RouterId]]:
        """Neighbors away from the root, each with all routers that are reached through it, itself included."""

    @property
    def flooded(self) -> frozenset[RouterId]:
        """Routers of the whole tree that flood multicasts, and all below these."""


DOUBT_S: Final = 0.1
"""Seconds for which a route that has become longer is taken only where there is no other choice: news of a router that
died come from each of its neighbors, and until all have spoken it seems to be reachable by the others."""


MULTICAST: Final = Treatment.MULTICAST
CLOSEST: Final = Treatment.CLOSEST
BALANCED: Final = Treatment.BALANCED
"""The treatments as names of their own: a member of an enumeration is looked up at length each time."""
Service = Callable[[bytes, ConnectionId | None], bool]
"""Function that takes a whole message and the connection that it came on, and says whether there was room for it."""
LARGEST_REQUEST_BYTES: Final = 65536
"""Maximum size of a request that is answered in this process, bytes, unless something else is said."""
MOST_TARGETS: Final = 65536
"""Maximum number of addresses that are remembered as messages write them, so that not each has to be taken apart."""
MOST_FLOODS: Final = 10000
"""Maximum number of remembered traces for children that flood multicasts."""
LONGEST_TARGET: Final = 256
"""Maximum length of an address that is remembered, characters."""
OTHER_GROUP: Final = "(other)"
"""Group of addresses that no configured prefix or pattern matches."""
REPLY_GROUP: Final = "(reply)"
"""Group of addresses that routers made for replies."""
OWN_GROUP: Final = "(router)"
"""Group of addresses that a router answers itself."""
BUILT_IN_GROUPS: Final = (OTHER_GROUP, REPLY_GROUP, OWN_GROUP)
_OTHER, _REPLY, _OWN = range(3)
MOST_GROUPS: Final = 20_000
"""Maximum number of groups that a router has had since it started; addresses of further ones count as `(other)`."""


class Route:
    """Way to one reachable router."""

    __slots__ = ("connection", "cost", "doubtful_until", "next_hop", "router")

    def __init__(self, router: RouterId, connection: ConnectionId, next_hop: RouterId, cost: int) -> None:
        self.router = router
        self.connection = connection
        self.next_hop = next_hop
        self.cost = cost
        self.doubtful_until = 0.0
        """Time until which the route is in doubt, seconds. It leads a longer way since a link was lost: perhaps the
        router itself is lost, and the news is under way."""


class AddressEntry:
    """Entry of one address: its treatment, who takes its messages here and elsewhere, who sends, and what waits.

    `waiting` holds messages of this address for which no local subscriber has credit, oldest first; `turn` rotates
    among equals. Counters are messages since the entry was made.
    """

    __slots__ = (
        "controller",
        "distance",
        "dropped",
        "egress",
        "group",
        "holder",
        "ingress",
        "kind",
        "names",
        "owner",
        "publishers",
        "released",
        "remotes",
        "service",
        "service_bytes",
        "stream_debt_at",
        "stream_debt_s",
        "subscribers",
        "text",
        "transit",
        "treatment",
        "turn",
        "waiting",
        "waiting_bytes",
    )

    def __init__(self, text: str, kind: AddressKind, treatment: Treatment, owner: RouterId | None = None) -> None:
        self.text = text
        self.kind = kind
        self.treatment = treatment
        self.group = 0
        """Number of the addresses that it is counted with (`Fib.groups`)."""
        self.owner = owner
        """Router whose reply address this is (kind ROUTER)."""
        self.subscribers: list[Subscriber] = []
        self.remotes: dict[RouterId, EgressLoad] = {}
        """Reachable routers with subscribers, each with the messages there that have no outcome."""
        self.distance = 0.0
        """Weight of a unit of a path's cost when a message is balanced, messages per subscriber."""
        self.publishers: dict[object, None] = {}
        """Links of publishers, in the order in which they were attached."""
        self.controller: object | None = None
        """Controller that deals the credit of its subscribers, when somebody draws on it."""
        self.service: Service | None = None
        """Receiver in this process of whole messages, such as the management node."""
        self.service_bytes = 0
        """Maximum size of a message that the receiver in this process takes, bytes."""
        self.waiting: OrderedDict[object, None] = OrderedDict()
        self.waiting_bytes = 0
        self.names: list[str] = []
        """The forms in which messages have named it: see `Fib.target`."""
        self.turn = 0
        self.holder: ConnectionId | None = None
        """The connection that a name made by this router was made for."""
        self.stream_debt_s = self.stream_debt_at = 0.0
        """Time for which slow messages have kept others waiting (`slow_streams.py`), and as of when, both seconds."""
        self.ingress = self.egress = self.transit = self.released = self.dropped = 0

    @property
    def is_open(self) -> bool:
        """Whether anybody, anywhere reachable, takes its messages."""
        return bool(self.subscribers or self.remotes or self.service is not None)

    @property
    def is_idle(self) -> bool:
        """Whether nothing refers to it any more."""
        is_known = self.remotes and self.owner is None  # nobody tells of another router's reply addresses
        is_used = self.subscribers or is_known or self.publishers or self.waiting
        return not (is_used or self.controller is not None or self.service is not None)


class MessageTotalsOfAddresses:
    """Messages of several addresses together."""

    __slots__ = ("dropped", "egress", "ingress", "released", "transit")

    def __init__(self) -> None:
        self.ingress = self.egress = self.transit = self.released = self.dropped = 0

    def add(self, other: AddressEntry | MessageTotalsOfAddresses) -> None:
        """Count those of *other* too."""
        self.ingress += other.ingress
        self.egress += other.egress
        self.transit += other.transit
        self.released += other.released
        self.dropped += other.dropped


class Fib:
    """All addresses and routes of one router.

    Methods that may open or close an address return the entry; the caller then looks at `is_open` and moves credit.

    Args:
        me: this router.
        treatments: of addresses, until `take_treatments`.
        tree_of: asked for the tree of a multicast's ingress router the first time after each change of topology; a
            router without multicasts needs none.
        flood_of: asked for the trace that a multicast of an ingress router gets for a child that floods it.
    """

    def __init__(
        self,
        me: RouterId,
        treatments: TreatmentTable,
        tree_of: Callable[[RouterId], Tree] | None = None,
        flood_of: Callable[[RouterId, RouterId, frozenset[RouterId]], tuple[RouterId, ...] | None] | None = None,
    ) -> None:
        self.me = me
        self.treatments = treatments
        self.routes: dict[RouterId, Route] = {}
        self._mobile: dict[str, AddressEntry] = {}
        self._local: dict[str, AddressEntry] = {}
        self._toward: dict[RouterId, AddressEntry] = {}
        self._reply: dict[RouterId, dict[str, AddressEntry]] = {}
        self._trees: dict[RouterId, Tree] = {}
        self.groups: list[str] = []
        """Names of groups of addresses that are counted together: the built-in ones, then one for each prefix and
        pattern that is, or was, configured. Totals never fall, so none goes, and each keeps its place."""
        self.gone: list[MessageTotalsOfAddresses] = []
        """Messages of addresses that are forgotten, by group."""
        self.times: list[DurationHistogram] = []
        """Times from the arrival of a message to its outcome, by group."""
        self._places: dict[str, int] = {}
        """Places in `groups`, by name."""
        self._place_of_rule: list[int] = []
        """Places in `groups`, by the number that a rule of `treatments` has."""
        for name in BUILT_IN_GROUPS:
            self._place(name)
        self.take_treatments(treatments)
        self._targets: dict[str, AddressEntry] = {}
        """Entries that addresses in messages were found to mean."""
        self._tree_of = tree_of
        self._flood_of = flood_of
        self._floods: dict[tuple[RouterId, RouterId, frozenset[RouterId]], tuple[RouterId, ...] | None] = {}

    def take_treatments(self, treatments: TreatmentTable) -> None:
        """Go by other treatments from now on, for addresses that are not known yet."""
        self.treatments = treatments
        self._place_of_rule = [*map(self._place, treatments.groups), _OTHER]

    def _place(self, name: str) -> int:
        """Place of a group, which is made when there is none of that name."""
        place = self._places.get(name)
        if place is None:
            if len(self.groups) >= MOST_GROUPS:
                return _OTHER
            place = self._places[name] = len(self.groups)
            self.groups.append(name)
            self.gone.append(MessageTotalsOfAddresses())
            self.times.append(DurationHistogram())
        return place

    # Looking up

    def find(self, text: str) -> AddressEntry | None:
        """Find the entry that a message to *text* belongs to; None when nobody here knows such an address."""
        address = parse_address(text, me=self.me)
        if address.kind is AddressKind.MOBILE:
            return self._served(address.text) or self._mobile.get(address.text)
        if address.kind is AddressKind.LOCAL:
            return self._local.get(address.text)
        if address.kind is AddressKind.ROUTER and address.router is not None:
            return self._toward.get(address.router)
        if address.kind is AddressKind.EDGE and address.router is not None:
            return self._mobile.get(edge_address(address.router))
        return None

    def target(self, text: str) -> AddressEntry | None:
        """Find the entry of the address that a message names; None too when only control links may write to it."""
        entry = self._targets.get(text)
        if entry is None and not is_reserved(text):
            entry = self.find(text)
            if entry is not None and len(text) <= LONGEST_TARGET:
                if len(self._targets) >= MOST_TARGETS:
                    self._forget_all_names()
                self._targets[text] = entry
                entry.names.append(text)
        return entry

    def _forget_all_names(self) -> None:
        for entry in self._targets.values():
            entry.names.clear()
        self._targets.clear()

    def _forget_names(self, entry: AddressEntry) -> None:
        for name in entry.names:
            self._targets.pop(name, None)
        entry.names.clear()

    def attach(self, text: str, *, plain: str | None = None) -> AddressEntry:
        """Find the entry for a link's address, or make it. Release it with `forget` when the link is gone.

        Args:
            text: the address.
            plain: the address without its virtual host, when a listener has put one before it: the treatment is that of
                *plain* unless one is configured for the whole of *text*.
        """
        address = parse_address(text, me=self.me)
        if address.kind is AddressKind.MOBILE:
            return self._served(address.text) or self._mobile_entry(
                address.text, self.treatments.lookup(normalise(plain)) if plain else None
            )
        if address.kind is AddressKind.ROUTER and address.router is not None:
            return self._reply_entry(address.router, address.text)
        entry = self._local.get(address.text)
        if entry is None:
            entry = self._local[address.text] = AddressEntry(address.text, AddressKind.LOCAL, Treatment.CLOSEST)
            entry.group = _REPLY
        return entry

    def forget(self, entry: AddressEntry) -> None:
        """Drop the entry if nothing refers to it any more."""
        if not entry.is_idle:
            return
        table = self._mobile if entry.kind is AddressKind.MOBILE else self._local
        if entry.owner is not None:
            table = self._reply.get(entry.owner, {})
        if table.get(entry.text) is not entry:
            return  # it was forgotten before
        del table[entry.text]
        self._forget_names(entry)
        self.gone[entry.group].add(entry)
        if entry.owner is not None and not table:
            del self._reply[entry.owner]

    def entries(self) -> Iterator[AddressEntry]:
        """Go through all entries: mobile, local, and reply addresses of other routers with publishers here."""
        yield from self._mobile.values()
        yield from self._local.values()
        for entries in self._reply.values():
            yield from entries.values()

    def all_entries(self) -> list[AddressEntry]:
        """All entries at once, those of other routers themselves too, in no order of use to a reader."""
        found = [*self._mobile.values(), *self._local.values(), *self._toward.values()]
        for entries in self._reply.values():
            found += entries.values()
        return found

    def count_in_pieces(self, at_once: int) -> Generator[None, None, MessageTotalsOfAddresses]:
        """Sum up the messages of all addresses since the start, of those that are forgotten too, in pieces.

        What is forgotten meanwhile counts as it stood at last.

        Args:
            at_once: addresses that are looked at before each pause.
        """
        counts = MessageTotalsOfAddresses()
        for gone in self.gone:
            counts.add(gone)
        counted = 0
        for entry in self.all_entries():
            counts.add(entry)
            counted += 1
            if counted >= at_once:
                counted = 0
                yield
        return counts

    def entry_count(self) -> int:
        """Number of the entries that `entries` goes through."""
        return len(self._mobile) + len(self._local) + sum(map(len, self._reply.values()))

    def route(self, router: RouterId) -> Route | None:
        """Find the way to *router*; None when it is unreachable."""
        return self.routes.get(router)

    # Written by the control plane

    def install_router(
        self, router: RouterId, connection: ConnectionId, next_hop: RouterId, cost: int, *, now: float
    ) -> list[AddressEntry]:
        """Note that *router* is reachable.

        Args:
            router: the one that is reachable.
            connection: to the next hop.
            next_hop: neighbor on the way there.
            cost: of the path.
            now: seconds; a route that has become longer is in doubt for a while from then on.
        Returns: its reply addresses that have publishers here.
        """
        before = self.routes.get(router)
        route = self.routes[router] = Route(router, connection, next_hop, cost)
        if before is not None and cost > before.cost:
            route.doubtful_until = now + DOUBT_S
        toward = self._toward.get(router)
        if toward is None:
            toward = self._toward[router] = AddressEntry(
                f"_topo/0/{router}", AddressKind.ROUTER, Treatment.CLOSEST, router
            )
            toward.group = _REPLY
        toward.remotes.setdefault(router, EgressLoad())
        entries = list(self._reply.get(router, {}).values())
        for entry in entries:
            entry.remotes.setdefault(router, EgressLoad())
        return entries

    def withdraw_router(self, router: RouterId) -> list[AddressEntry]:
        """Note that *router* is unreachable. Returns: its reply addresses that have publishers here."""
        self.routes.pop(router, None)
        toward = self._toward.pop(router, None)
        if toward is not None:
            self._forget_names(toward)
            self.gone[toward.group].add(toward)
        entries = list(self._reply.get(router, {}).values())
        for entry in entries:
            entry.remotes.pop(router, None)
        return entries

    def install_address(self, text: str, router: RouterId, hint: Treatment | None) -> AddressEntry:
        """Note that *router* has subscribers of the mobile address *text*.

        Args:
            text: the address.
            router: the one that has subscribers.
            hint: its treatment there, which holds unless one is configured here.
        Returns: the entry.
        """
        entry = self._mobile_entry(text, hint)
        entry.remotes.setdefault(router, EgressLoad())
        return entry

    def withdraw_address(self, text: str, router: RouterId) -> AddressEntry | None:
        """Note that *router* has no subscribers of *text* any more. Returns: the entry, None if it was not known."""
        entry = self._mobile.get(text)
        if entry is not None:
            entry.remotes.pop(router, None)
            self.forget(entry)
        return entry

    def topology_changed(self) -> None:
        """Forget every tree, since paths may be others now."""
        self._trees.clear()
        self._floods.clear()

    # Written by links and services of this router

    def subscribe(self, entry: AddressEntry, link: Subscriber) -> bool:
        """Add a local subscriber. Returns: whether it is the first one of this router."""
        entry.subscribers.append(link)
        return len(entry.subscribers) == 1

    def unsubscribe(self, entry: AddressEntry, link: Subscriber) -> bool:
        """Remove a local subscriber. The entry itself stays until `forget`.

        Returns: whether it was the last one of this router.
        """
        entry.subscribers.remove(link)
        return not entry.subscribers

    def serve(self, name: str, service: Service, max_bytes: int = LARGEST_REQUEST_BYTES) -> AddressEntry:
        """Answer messages to `name` and `_topo/0/<me>/name` in this process.

        Args:
            name: text of a local address.
            service: takes each whole message, and says whether it does.
            max_bytes: a larger one is rejected.
        Returns: the entry.
        """
        entry = self._local.setdefault(name, AddressEntry(name, AddressKind.LOCAL, Treatment.CLOSEST))
        if name in self._mobile:
            self._forget_names(self._mobile[name])
        entry.group = _OWN
        entry.service = service
        entry.service_bytes = max_bytes
        return entry

    # Multicast

    def multicast_hops(self, entry: AddressEntry, ingress: RouterId) -> list[Route]:
        """Find the next hops that get a copy of a multicast that entered the mesh at *ingress*.

        One for each child of this router in the tree of *ingress* below which there is a subscriber, in the order of
        their ids.
        """
        if not entry.remotes:
            return []
        children = self._tree(ingress).children
        hops = []
        for child in sorted(children):
            if not children[child].isdisjoint(entry.remotes):
                route = self.routes.get(child)
                if route is not None:
                    hops.append(route)
        return hops

    def flood_trace(self, entry: AddressEntry, ingress: RouterId, child: RouterId) -> tuple[RouterId, ...] | None:
        """Find the trace of a copy for a child that floods it.

        Returns: the trace, empty when there is nothing to be said but how the copy came; None when the child gets one
            from another router anyway.
        """
        # DEV-1: a qdrouterd floods copies along every path that the trace does not name.
        key = (ingress, child, frozenset(entry.remotes))
        if key not in self._floods:
            if self._flood_of is None:
                return ()
            if len(self._floods) >= MOST_FLOODS:
                self._floods.clear()
            self._floods[key] = self._flood_of(*key)
        return self._floods[key]

    def below(self, ingress: RouterId, child: RouterId) -> frozenset[RouterId]:
        """Routers that multicasts of *ingress* reach by way of *child*, itself included."""
        return self._tree(ingress).children.get(child, frozenset())

    def flooded(self, ingress: RouterId) -> frozenset[RouterId]:
        """Routers that copies of multicasts of *ingress* reach without a number, since a router floods on their way."""
        return self._tree(ingress).flooded

    def is_on_tree(self, ingress: RouterId, neighbor: RouterId | None) -> bool:
        """Whether a multicast of *ingress* may come from *neighbor*: only this router's predecessor in its tree."""
        # DEV-1: qdrouterd floods copies along every path; those off the tree are duplicates.
        return neighbor is not None and self._tree(ingress).predecessor == neighbor

    def predecessor(self, ingress: RouterId) -> RouterId | None:
        """Find the neighbor from which multicasts of *ingress* come; None when that is this router."""
        return self._tree(ingress).predecessor

    def _tree(self, root: RouterId) -> Tree:
        tree = self._trees.get(root)
        if tree is None:
            assert self._tree_of is not None
            tree = self._trees[root] = self._tree_of(root)
        return tree

    def _served(self, text: str) -> AddressEntry | None:
        """Find an entry by name among those that this process answers itself, which go before others.

        Else a name without prefix means the mobile address alone, and `_local/` the local one.
        """
        entry = self._local.get(text)
        return entry if entry is not None and entry.service is not None else None

    def _mobile_entry(self, text: str, hint: Treatment | None) -> AddressEntry:
        entry = self._mobile.get(text)
        if entry is None:
            rule = self.treatments.rule(text)
            treatment = rule.treatment if hint is None or rule.is_configured else hint
            entry = self._mobile[text] = AddressEntry(text, AddressKind.MOBILE, treatment)
            entry.distance = rule.distance
            entry.group = self._place_of_rule[rule.group]
        return entry

    def _reply_entry(self, router: RouterId, text: str) -> AddressEntry:
        entries = self._reply.setdefault(router, {})
        entry = entries.get(text)
        if entry is None:
            entry = entries[text] = AddressEntry(text, AddressKind.ROUTER, Treatment.CLOSEST, router)
            entry.group = _REPLY
            if router in self.routes:
                entry.remotes[router] = EgressLoad()
        return entry

    def check_invariants(self) -> None:
        """Check that the tables do not contradict each other. Raises: AssertionError when they do."""
        for text, entry in self._mobile.items():
            assert entry.text == text
            assert entry.kind is AddressKind.MOBILE
            assert not entry.is_idle, text
            assert all(router in self.routes for router in entry.remotes), text
        for router, entries in self._reply.items():
            for entry in entries.values():
                assert entry.owner == router
                assert (router in entry.remotes) == (router in self.routes)
        for text, entry in self._targets.items():
            assert self.find(text) is entry, text
