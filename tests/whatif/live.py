"""A mesh of real router processes beside the model made of its file: links that can be cut, and what both say.

with LiveMesh(folder) as mesh:
    mesh.start()
    prediction = Prediction(mesh.model())
    mesh.wait_for(prediction.of())
    mesh.cut("R1--R5")
    mesh.wait_for(prediction.of(links=["R1--R5"]))
    mesh.repair()

Connectors reach their routers over addresses of loopback of their own, 127.0.1.1 and so on, where a relay of the test
listens: the file says what is so, and each link can be cut without its routers.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from mesh_config import yaml_text
from mesh_config.connector_matching import links
from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    LinkStateSettings,
    ListenerSettings,
    MeshSettings,
    Role,
    RouterSettings,
    Treatment,
)
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.whatif.formats.importer import import_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.demands import Demand
from router.whatif.model.elements import link_ids
from router.whatif.model.mesh_model import Model, with_demands
from tests.helpers.processes import MeshProcesses, wait_until

WAIT_S: Final = 20.0

EDGES: Final = (
    ("R1", "R4", 1),
    ("R1", "R5", 1),
    ("R1", "R5", 2),  # stands by
    ("R1", "R6", 1),
    ("R1", "R7", 2),
    ("R10", "R3", 1),  # a bridge
    ("R2", "R4", 2),
    ("R2", "R5", 2),
    ("R3", "R4", 1),
    ("R3", "R5", 1),
    ("R3", "R7", 2),
    ("R4", "R6", 2),
)
"""R1 and R3 both lead to R4, R5 and R7 at the same cost, as R4 and R5 do to R2. R10, whose id comes before R2, hangs on
R3. So for many of the 56 ordered pairs another choice between equal paths would give other next hops."""
ROUTERS: Final = tuple(sorted({router for one, other, _ in EDGES for router in (one, other)}))
LINKS: Final = tuple(link_ids((one, other) for one, other, _ in EDGES))

GRANTED: Final = 200
"""Credit of each subscriber, messages: none ever runs short of it."""
SITES: Final[Mapping[str, Mapping[str, int]]] = {
    **{f"to/{router}": {router: 1} for router in ROUTERS},
    "near/spines": {"R1": 1, "R3": 2},
    "near/leaves": {"R4": 1, "R5": 2, "R6": 1},
    "near/ends": {"R10": 1, "R2": 1, "R7": 1},
    "all/ends": {"R10": 1, "R2": 2, "R6": 1, "R7": 1},
    "all/others": {"R1": 1, "R4": 1, "R5": 1},
}
"""Subscribers by address and router."""
ADDRESSES: Final = (
    AddressSettings(prefix="near", treatment=Treatment.CLOSEST),
    AddressSettings(prefix="all", treatment=Treatment.MULTICAST),
)
Published = Mapping[tuple[str, str], int]
"""Messages by the router at which they enter and the address."""
Arc = tuple[str, str]
"""A link, and the router that sends."""


def settings() -> MeshSettings:
    """The eight routers; the later of two neighbors connects to the earlier."""
    connectors: dict[str, list[ConnectorSettings]] = {router: [] for router in ROUTERS}
    for number, (one, other, cost) in enumerate(EDGES, 1):
        connectors[other].append(
            ConnectorSettings(
                to=one, host=f"127.0.1.{number}", cost=cost, reconnect_initial_s=0.02, reconnect_max_s=0.1
            )
        )
    return MeshSettings(
        name="live",
        routers={
            router: RouterSettings(
                id=router,
                listeners=(ListenerSettings(idle_timeout_s=0), ListenerSettings(role=Role.INTER_ROUTER)),
                connectors=tuple(connectors[router]),
                addresses=ADDRESSES,
                link_state=LinkStateSettings(hello_interval_s=0.2),
            )
            for router in ROUTERS
        },
    )


class Relay:
    """What stands between the routers of each link: it passes bytes on, until the link is cut."""

    def __init__(self, ways: Mapping[str, tuple[tuple[str, int], tuple[str, int]]]) -> None:
        """Listen for all links.

        Args:
            ways: by link, where the relay listens and where it connects to.
        """
        self._ways = ways
        self._scopes: dict[str, tuple[trio.CancelScope, trio.Event]] = {}
        is_ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run, is_ready))
        self._thread.start()
        assert is_ready.wait(WAIT_S)

    def cut(self, link: str) -> None:
        """Close what the link has, and refuse new connections."""
        trio.from_thread.run(self._cut, link, trio_token=self._token)

    def heal(self, link: str) -> None:
        """Listen again."""
        trio.from_thread.run(self._open, link, trio_token=self._token)

    def close(self) -> None:
        """Cut every link, for ever."""
        trio.from_thread.run_sync(self._nursery.cancel_scope.cancel, trio_token=self._token)
        self._thread.join()

    async def _run(self, is_ready: threading.Event) -> None:
        async with trio.open_nursery() as self._nursery:
            self._token = trio.lowlevel.current_trio_token()
            for link in self._ways:
                await self._open(link)
            is_ready.set()
            await trio.sleep_forever()

    async def _open(self, link: str) -> None:
        (host, port), target = self._ways[link]
        listeners = await trio.open_tcp_listeners(port, host=host)
        self._scopes[link] = trio.CancelScope(), trio.Event()
        self._nursery.start_soon(self._serve, link, listeners, target)

    async def _cut(self, link: str) -> None:
        scope, is_over = self._scopes[link]
        scope.cancel()
        await is_over.wait()

    async def _serve(self, link: str, listeners: list[trio.SocketListener], target: tuple[str, int]) -> None:
        async def join(near: trio.SocketStream) -> None:
            async with near:
                try:
                    far = await trio.open_tcp_stream(*target)
                except OSError:
                    return  # the router is dead
                async with far, trio.open_nursery() as nursery:
                    for one, other in ((near, far), (far, near)):
                        nursery.start_soon(_pass_on, one, other, nursery.cancel_scope)

        scope, is_over = self._scopes[link]
        try:
            with scope:
                await trio.serve_listeners(join, listeners)
        finally:
            is_over.set()


async def _pass_on(one: trio.SocketStream, other: trio.SocketStream, scope: trio.CancelScope) -> None:
    try:
        async for data in one:
            await other.send_all(data)
    except trio.BrokenResourceError:
        pass  # a router died
    scope.cancel()


@attrs.frozen
class State:
    """What routers know, or should know, of a mesh in which something has failed, or nothing."""

    routes: Mapping[str, Mapping[str, tuple[int, str]]]
    """By router and another one that it reaches: cost and next hop."""
    links: Mapping[str, Mapping[str, bool]]
    """By router, its links; whether another one to the same neighbor is in use."""

    @property
    def lost(self) -> set[tuple[str, str]]:
        """Living routers, each with those that it does not reach, dead ones included."""
        return {
            (src, dst) for src, reached in self.routes.items() for dst in ROUTERS if dst != src and dst not in reached
        }


class Prediction:
    """What the kernel says of a model, by ids."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.network = Network.of(model)
        self.kernel = Kernel(self.network)

    def of(self, *, links: Sequence[str] = (), routers: Sequence[str] = ()) -> State:
        """The state after these have failed. What is lost, the kernel must say as well as its trees."""
        place = {router: number for number, router in enumerate(self.network.routers)}
        self.kernel.fail([self.network.links.index(link) for link in links], [place[router] for router in routers])
        alive = [router for router in self.network.routers if router not in routers]
        state = State({router: self._routes(place[router]) for router in alive}, self._links(alive, links))
        pairs = zip(*self.kernel.lost_pairs(with_dead_ends=True), strict=True)
        named = {(self.network.routers[src], self.network.routers[dst]) for src, dst in pairs}
        assert state.lost == {pair for pair in named if pair[0] in alive}
        assert {pair for pair in named if pair[0] not in alive} == {
            (dead, other) for dead in routers for other in ROUTERS if other != dead
        }
        self.kernel.restore()
        return state

    def _routes(self, src: int) -> dict[str, tuple[int, str]]:
        routers = self.network.routers
        return {
            routers[dst]: (self.kernel.distance(src, dst), routers[self.kernel.next_hop(src, dst)])
            for dst in range(len(routers))
            if dst != src and self.kernel.distance(src, dst) >= 0
        }

    def _links(self, alive: Sequence[str], failed: Sequence[str]) -> dict[str, dict[str, bool]]:
        found: dict[str, dict[str, bool]] = {router: {} for router in alive}
        used: set[tuple[str, str]] = set()
        for link in sorted(self.model.links, key=lambda it: (it.cost, it.id)):
            if link.id not in failed and link.a in alive and link.b in alive:
                found[link.a][link.id] = found[link.b][link.id] = (link.a, link.b) in used
                used.add((link.a, link.b))
        return found

    def nearest(self, router: str, address: str, *, links: Sequence[str] = ()) -> list[str]:
        """Of the routers with subscribers of an address those nearest to *router*, after some links have failed."""
        routes = self.of(links=links).routes[router]
        far = {site: routes[site][0] if site != router else 0 for site in SITES[address]}
        return sorted(site for site in far if far[site] == min(far.values()))

    def loads(self, published: Published, *, links: Sequence[str] = ()) -> dict[Arc, int]:
        """Messages that each link carries in each direction, after some links have failed.

        A message is a millionth of one per second here, the smallest amount there is: turns leave the same remainders.
        """
        demands = [
            Demand(src=src, msgs_per_s=count / MICRO, msg_bytes=0.0, **_target(address))
            for (src, address), count in published.items()
        ]
        network = Network.of(with_demands(self.model, demands))
        kernel = Kernel(network)
        kernel.fail([network.links.index(link) for link in links], [])
        assert kernel.lost_rate == 0
        rates, _ = kernel.loads()
        arcs = [network.directed_link(number)[:2] for number in range(len(rates))]
        return {arc: int(rate) for arc, rate in zip(arcs, rates, strict=True)}


def _target(address: str) -> dict[str, str]:
    """Addresses of one router's only subscriber are demands for that router."""
    router = address.removeprefix("to/")
    return {"dst": router} if router != address else {"address": address}


class LiveMesh(MeshProcesses):
    """The processes, the relay between them, and clients of management of each."""

    def __init__(self, folder: Path) -> None:
        super().__init__(settings(), folder)
        self._folder = folder
        self._cuts: set[str] = set()
        self._asking: dict[str, ManagementClient] = {}
        found = sorted(links(self.settings), key=lambda link: (link.pair, link.cost))
        names = link_ids(link.pair for link in found)
        self._names = {(*link.pair, link.cost): name for name, link in zip(names, found, strict=True)}
        self._relay = Relay(
            {
                name: ((link.connector.host, link.connector.port), (link.listener.host, link.listener.port))
                for name, link in zip(names, found, strict=True)
            }
        )

    def close(self) -> None:
        """Close everything."""
        for router in list(self._asking):
            self._forget(router)
        super().close()
        self._relay.close()

    def kill(self, router: str) -> None:
        """SIGKILL one router."""
        self._forget(router)
        super().kill(router)

    def cut(self, link: str) -> None:
        """Cut a link; its routers find their connection closed, and cannot make another one."""
        self._relay.cut(link)
        self._cuts.add(link)

    def repair(self) -> None:
        """Heal every link that is cut, and start every router that does not run."""
        for link in sorted(self._cuts):
            self._relay.heal(link)
        self._cuts.clear()
        self.start()

    def _forget(self, router: str) -> None:
        client = self._asking.pop(router, None)
        if client is not None:
            client.close()

    def _with_ports(self, mesh: MeshSettings) -> MeshSettings:
        hosts = {key: [connector.host for connector in router.connectors] for key, router in mesh.routers.items()}
        placed = super()._with_ports(mesh)
        routers = {}
        for key, router in placed.routers.items():
            # `localhost` is what may be reached by any address of loopback, so that the file has these links.
            listeners = [
                attrs.evolve(it, host="localhost") if it.role is Role.INTER_ROUTER else it for it in router.listeners
            ]
            connectors = [attrs.evolve(it, host=host) for it, host in zip(router.connectors, hosts[key], strict=True)]
            routers[key] = attrs.evolve(router, listeners=tuple(listeners), connectors=tuple(connectors))
        return attrs.evolve(placed, routers=routers)

    def model(self) -> Model:
        """Made of the file from which the routers were started, and a list of the subscribers."""
        sites = self._folder / "sites.yaml"
        rows = [
            {"address": address, "router": router, "count": count, "credit": count * GRANTED}
            for address, by_router in SITES.items()
            for router, count in by_router.items()
        ]
        sites.write_text(yaml_text.write({"subscribers": rows}), encoding="utf-8")
        model, _ = import_model(self.file, details=[sites])
        return model

    # What the routers say

    def ask(self, router: str, kind: str, attributes: Sequence[str]) -> list[dict[str, Any]]:
        """Entities of one router, from that router: nothing of this crosses the mesh."""
        if router not in self._asking:
            self._asking[router] = ManagementClient(self.url(router), timeout_s=WAIT_S)
        try:
            return self._asking[router].query(kind, attributes)
        except ManagementError:
            self._forget(router)
            raise

    def state(self) -> State:
        """What the running routers know."""
        return State(
            {router: self._routes(router) for router in self.running},
            {router: {name: row["isStandby"] for name, row in self.links(router)} for router in self.running},
        )

    def _routes(self, router: str) -> dict[str, tuple[int, str]]:
        nodes = self.ask(router, "router.node", ("id", "isReachable", "cost", "nextHop"))
        return {it["id"]: (it["cost"], it["nextHop"]) for it in nodes if it["isReachable"] and it["id"] != router}

    def links(self, router: str) -> list[tuple[str, dict[str, Any]]]:
        """The links of a router that are up, each with its connection."""
        names = ("container", "role", "opened", "operStatus", "neighborState", "isStandby", "cost",
                 "deliveriesIn", "deliveriesOut")  # fmt: skip
        found = []
        for row in self.ask(router, "connection", names):
            is_up = row["opened"] and row["operStatus"] == "up"
            if row["role"] == "inter-router" and is_up and (row["isStandby"] or row["neighborState"] == "two-way"):
                found.append((self._names[*sorted((router, row["container"])), row["cost"]], row))
        return found

    def counters(self) -> tuple[Counter[Arc], Counter[Arc]]:
        """Messages by link and the router that sends: as that one counts them, and as the other does."""
        sent: Counter[Arc] = Counter()
        received: Counter[Arc] = Counter()
        for router in self.running:
            for link, row in self.links(router):
                sent[link, router] = row["deliveriesOut"]
                received[link, row["container"]] = row["deliveriesIn"]
        return sent, received

    def wait_for(self, expected: State) -> None:
        """Wait until the running routers know what they should."""
        found: State | None = None

        def is_so() -> bool:
            nonlocal found
            try:
                found = self.state()
            except ManagementError:
                return False  # it is busy
            return found == expected

        wait_until(is_so, lambda: f"routers and model agree:\n{_differences(expected, found)}\n{self.logs()}", WAIT_S)


def _differences(expected: State, found: State | None) -> str:
    """Where routers say something else than the model, one line each."""
    if found is None:
        return "no router answers"
    lines = []
    for what in ("routes", "links"):
        right, said = getattr(expected, what), getattr(found, what)
        for router in right:
            for key in sorted(chain(right[router], said.get(router, ()))):
                values = right[router].get(key), said.get(router, {}).get(key)
                if values[0] != values[1]:
                    lines.append(f"{what} {router} {key}: model {values[0]}, router {values[1]}")
    return "\n".join(dict.fromkeys(lines))
