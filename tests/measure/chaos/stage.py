"""A mesh of three routers whose every connection can fail, clients that stay, and the ledger of their messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import attrs

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, MeshSettings, Role
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from tests.helpers.processes import MeshProcesses, resident_bytes
from tests.measure.chaos.ends import Receiver, Sender
from tests.measure.chaos.ledger import ACCEPTED, Ledger, Source
from tests.measure.chaos.seats import Place, Seat
from tests.measure.chaos.wires import Wire, Wires
from tests.measure.credit.client import Loop

ROUTERS = ("R1", "R2", "R3")
BALANCED, CLOSEST, MULTICAST, SETTLED = "chaos/balanced", "exclusive/chaos", "broadcast/chaos", "chaos/settled"
PLACES = (
    Place("balanced-from-1", "R1", BALANCED, is_publisher=True),
    Place("balanced-from-2", "R2", BALANCED, is_publisher=True),
    Place("balanced-at-2", "R2", BALANCED, is_publisher=False),
    Place("balanced-at-3", "R3", BALANCED, is_publisher=False),
    Place("closest-from-3", "R3", CLOSEST, is_publisher=True),
    Place("closest-at-1", "R1", CLOSEST, is_publisher=False),
    Place("multicast-from-1", "R1", MULTICAST, is_publisher=True, is_multicast=True),
    Place("multicast-at-1", "R1", MULTICAST, is_publisher=False),
    Place("multicast-at-2", "R2", MULTICAST, is_publisher=False),
    Place("multicast-at-3", "R3", MULTICAST, is_publisher=False),
    Place("settled-from-2", "R2", SETTLED, is_publisher=True, is_presettled=True),
    Place("settled-at-3", "R3", SETTLED, is_publisher=False),
)

STEP_S = 0.005
START_S = 300.0
"""Within which a router has to listen; the machine may be busy with other things."""
RECOVER_S = 60.0
"""Within which traffic has to flow again after healing."""
SLOW_S = 5.0
"""After that it is told what does not flow yet."""
CONVERGE_S = 60.0
QUIET_S = 20.0
"""Within which every message must have its outcome once nobody sends any more."""
GONE_S = 20.0
"""Within which nothing may be left at routers once every client has gone."""
CREDIT_S = 3.0
"""Within which what publishers hold is again within the bound."""
TABLES = ("unsettledCount", "waitingCount", "waitingBytes", "deliveriesDelayed10Sec")


def settings() -> MeshSettings:
    """A ring of three, which notice a silent neighbor within two seconds and leave no slow subscriber out."""
    mesh = generate("ring", 3)
    return attrs.evolve(
        mesh,
        routers={
            key: attrs.evolve(
                router,
                listeners=tuple(attrs.evolve(one, idle_timeout_s=8.0) for one in router.listeners),
                connectors=tuple(
                    attrs.evolve(one, idle_timeout_s=8.0, reconnect_max_s=0.5) for one in router.connectors
                ),
                link_state=attrs.evolve(router.link_state, hello_interval_s=0.5, hello_max_age_s=2.0),
                forwarding=attrs.evolve(router.forwarding, grace_s=30.0, circuit_idle_s=2.0),
                shutdown_s=1.0,
            )
            for key, router in mesh.routers.items()
        },
    )


class Stage:
    """All of it; a context manager that leaves no process behind."""

    def __init__(self, folder: Path, *, rate: float, command: Any = None) -> None:
        """*rate* is that of each publisher, messages in a second."""
        self.folder = folder
        self.rate = rate
        self.ledger = Ledger()
        self.loop = Loop()
        self.links: dict[tuple[str, str], Wire] = {}
        """Wires between routers, by who connects and to whom."""
        self.seats: list[Seat] = []
        self.before: dict[str, dict[str, int]] = {}
        """Tables of each router before the first client came."""
        self.resident: dict[int, list[int]] = {}
        """Resident memory whenever every client had gone, bytes, by process id."""
        self._stack = ExitStack()
        self._command = command

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.wires = stack.enter_context(Wires())
            more = {"command": self._command} if self._command else {}
            self.mesh = stack.enter_context(MeshProcesses(settings(), self.folder, through=self._through, **more))
            self.mesh.start(wait=False)
            for router in self.mesh.routers.values():
                router.wait_started(START_S)
            self.mesh.wait_converged(CONVERGE_S)
            for place in PLACES:
                wire = self.wires.to(self.port(place.router))
                self.seats.append(Seat(place, wire, self.loop, self.ledger, self.rate))
            self.before = {key: self.tables(key) for key in ROUTERS}
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for seat in self.seats:
            seat.leave()
        self._stack.__exit__(kind, error, traceback)

    def _through(self, router: str, to: str, port: int) -> int:
        wire = self.links[router, to] = self.wires.to(port)
        return wire.port

    def port(self, router: str, role: Role = Role.NORMAL) -> int:
        """Where *router* listens."""
        listeners: list[ListenerSettings] = [one for one in self.mesh[router].settings.listeners if one.role is role]
        return listeners[0].port

    # Time

    def step(self) -> None:
        """Let everything that is due happen."""
        self.loop.step(STEP_S)
        now = time.monotonic()
        for seat in self.seats:
            seat.act(now)

    def run_for(self, seconds: float) -> None:
        """Let traffic pass for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.step()

    def run_until(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Let traffic pass until *is_so*, for at most so long. Returns: whether it is."""
        end = time.monotonic() + timeout_s
        while not is_so():
            if time.monotonic() > end:
                return False
            self.step()
        return True

    def aside(self, run: Callable[[], Any]) -> Any:
        """Do what waits in a thread, while traffic passes. Returns: what it returns."""
        results: list[Any] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(run())
            except BaseException as error:  # noqa: BLE001 - it is raised below
                errors.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while thread.is_alive():
            self.step()
        if errors:
            raise errors[0]
        return results[0]

    # Traffic

    @property
    def publishers(self) -> list[Seat]:
        """Seats that send."""
        return [seat for seat in self.seats if seat.place.is_publisher]

    def resume(self) -> None:
        """Let all publishers send."""
        for seat in self.publishers:
            seat.is_on = True

    def pause(self) -> None:
        """Let nobody send."""
        for seat in self.publishers:
            seat.is_on = False

    def wait_flow(self, timeout_s: float = RECOVER_S) -> float | None:
        """Wait until a message that was sent from now on has arrived and been answered on every path.

        Returns: the seconds that it took; None when it did not happen in time.
        """
        began = time.monotonic()
        marks = {source.key: source.sent for source in self.ledger.sources.values()}
        left = {seat.place.name for seat in self.publishers} | {
            seat.place.name for seat in self.seats if not seat.place.is_publisher and not seat.is_attached
        }

        def flows() -> bool:
            for seat in self.seats:
                if seat.place.name in left and self._flows(seat, marks):
                    left.discard(seat.place.name)
            return not left

        if not self.run_until(flows, SLOW_S):
            self.ledger.examples.append(f"slow: {sorted(left)} after {SLOW_S:g} s: {self._states()}")
        if self.run_until(flows, timeout_s):
            return time.monotonic() - began
        self.ledger.violate("no recovery", f"{sorted(left)} within {timeout_s:g} s: {self._states()}")
        return None

    def _flows(self, seat: Seat, marks: dict[int, int]) -> bool:
        end = seat.end
        if not seat.is_attached or end is None:
            return False
        if isinstance(end, Receiver):
            return end.received > 0
        return _has_passed(end.source, marks.get(end.source.key, 0))

    def _states(self) -> str:
        return ", ".join(
            f"{seat.place.name} "
            + ("apart" if not seat.is_attached or seat.end is None else f"credit {seat.end.credit}")
            for seat in self.seats
        )

    # Checks

    def converge(self) -> None:
        """Wait until every router knows the right way to each other one."""
        try:
            self.aside(lambda: self.mesh.wait_converged(CONVERGE_S))
        except AssertionError as error:
            self.ledger.violate("no recovery", f"routers do not agree: {str(error)[:1500]}")

    def check_credit(self) -> None:
        """Compare, for each anycast address, what publishers hold and what is inside with what subscribers granted."""
        for address in (BALANCED, CLOSEST):
            if not self.run_until(lambda address=address: self.excess(address) <= 0, CREDIT_S):  # type: ignore[misc]
                self.ledger.violate(
                    "credit exceeded", f"{address}: {self.excess(address)} more than granted: {self._states()}"
                )

    def excess(self, address: str) -> int:
        """Credit held by publishers, and messages inside, beyond what is granted and one for each publisher."""
        held = 0
        for seat in self.seats:
            if seat.place.address == address and seat.end is not None:
                held += seat.end.credit if isinstance(seat.end, Sender) else -seat.end.credit
                if isinstance(seat.end, Sender):
                    held += seat.end.source.inside - 1
        return held

    def settle(self) -> None:
        """Stop all publishers, wait until nothing is under way, and let the ledger judge."""
        self.pause()
        self.run_until(lambda: self.ledger.unanswered == 0, QUIET_S)
        self.run_until(lambda: self.ledger.missing_copies() == 0, CREDIT_S)
        self.ledger.settle()

    def check_tables(self) -> dict[str, int]:
        """Let all clients leave and wait until routers have forgotten them. Returns: their resident memory, bytes."""
        for seat in self.seats:
            seat.leave()
        left: dict[str, dict[str, int]] = {}
        end = time.monotonic() + GONE_S
        while time.monotonic() < end:
            left = {key: self.left_behind(key) for key in ROUTERS}
            if not any(left.values()):
                break
            time.sleep(0.1)
        for key, found in left.items():
            if found:
                self.ledger.violate("left behind", f"at {key}: {found}")
        memory = {}
        for key in ROUTERS:
            memory[key] = resident_bytes(self.mesh[key].pid)
            self.resident.setdefault(self.mesh[key].pid, []).append(memory[key])
        return memory

    def tables(self, router: str) -> dict[str, int]:
        """What a router says of its tables, and how many clients' links it has."""
        with ManagementClient(self.mesh.url(router), timeout_s=20) as client:
            row = client.read("router")
            links = client.query("router.link", ["container"])
            addresses = client.query("router.address", ["name"])
        names = (*(place.name for place in PLACES), "large-", "dying-")
        return {
            **{name: int(row[name]) for name in TABLES},
            "links of clients": sum(str(link["container"]).startswith(names) for link in links),
            "addresses": sum(
                "chaos" in str(address["name"]) and "om/rpc" not in str(address["name"]) for address in addresses
            ),
        }

    def left_behind(self, router: str) -> dict[str, int]:
        """What there is more of than before the first client came."""
        try:
            found = self.tables(router)
        except ManagementError:
            return {"no answer": 1}
        return {name: count for name, count in found.items() if count > self.before[router][name]}


def _has_passed(source: Source, mark: int) -> bool:
    """Whether a message from *mark* on went all the way."""
    if source.is_presettled:
        return 1 in source.arrivals[mark:]
    return ACCEPTED in source.outcomes[mark:]
