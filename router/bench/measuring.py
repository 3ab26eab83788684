"""One case over one path, once: attach, warm up, measure, let everything settle, leave."""

from __future__ import annotations

import itertools
import os
import time
from typing import Final

import attrs

from router.bench.cases import ATTACH_S, CREDIT, Path, Workload
from router.bench.errors import BenchError
from router.bench.load_connection import Endpoint, Loop
from router.bench.load_endpoints import Caller, Receiver, Responder, Sender
from router.bench.process_usage import cpu_seconds, resident_bytes
from router.bench.tally import Tally

FIRST_S: Final = 60.0
"""Time that the first message of each sender may take: subscribers become known over several routers."""
SETTLE_S: Final = 3.0
MULTICAST: Final = "openstack.org/om/rpc/multicast/"
"""Begin of addresses of which everybody gets a copy: that of oslo.messaging's fanouts."""
_NUMBERS: Final = itertools.count(1)


@attrs.frozen(kw_only=True)
class RunResult:
    """Result of one run."""

    per_s: float
    """Number of messages accepted (presettled: received), or of calls answered, per second."""
    messages: int
    """Number of messages accepted, or of calls answered, in the measured part."""
    seconds: float
    cpu_us: float | None
    """Processor time of all routers in between, for each message or call and each router; None when it cannot be
    read."""
    p50_us: float | None
    """Median time of a message from the sender's engine to the receiver, or of a call until its reply."""
    p99_us: float | None
    resident_bytes: int | None
    """Resident memory of the router in between that has most, at the end of the measured part."""
    refused: int
    """Number of messages with another outcome than ACCEPTED in the measured part."""


def measure(case: Workload, path: Path, *, seconds: float, warm_s: float, address: str | None = None) -> RunResult:
    """Run *case* over *path*.

    Args:
        case: what is sent, and by how many.
        path: the routers that it passes.
        seconds: of the measured part.
        warm_s: how long all of it runs before, from the first message on.
        address: of all messages; None for one of its own.
    Raises: BenchError
    """
    load = LoadConnections(case, path, address)
    try:
        load.attach()
        load.warm(warm_s)
        return load.measure(seconds)
    finally:
        load.close()


class LoadConnections:
    """The connections of one run, in this process."""

    def __init__(self, case: Workload, path: Path, address: str | None = None) -> None:
        """*address* of all messages, or its beginning; None: one of its own, which every router balances."""
        self._case = case
        self._path = path
        self._loop = Loop(path.has_sasl)
        self._tally = Tally()
        self._senders: list[Sender | Caller] = []
        self._receivers: list[Endpoint] = []
        self._in_turn = itertools.cycle(self._senders)
        """Senders in the order in which they send at a given pace."""
        kind = MULTICAST if case.is_multicast else ""
        self._address = address if address is not None else f"{kind}bench/{os.getpid()}/{next(_NUMBERS)}"

    # Attaching

    def attach(self) -> None:
        """Connect all of them: receiving sides first.

        Raises: BenchError
        """
        case, path = self._case, self._path
        wanted = case.receivers
        if path.send_to is None or path.receive_from is None:
            send_to = "127.0.0.1", self._loop.listen(self._accepted)
            wanted = count = max(case.senders, case.receivers)  # each end of a connection is one side of the load
        else:
            send_to, count = path.send_to, case.senders
            for number in range(case.receivers):
                receiver = self._receiver(self._address_of(number))
                self._receivers.append(receiver)
                self._loop.connect(*path.receive_from, receiver, f"{self._address}/in{number}")
        for number in range(count):
            sender = self._sender(self._address_of(number))
            self._senders.append(sender)
            self._loop.connect(*send_to, sender, f"{self._address}/out{number}")

        def is_attached() -> bool:
            return len(self._receivers) == wanted and all(one.is_attached for one in self._everybody())

        if not self._loop.run_until(is_attached, ATTACH_S):
            raise BenchError(f"{self._about()}: not everything was attached within {ATTACH_S:g} s")

    def _everybody(self) -> list[Endpoint]:
        return [*self._receivers, *self._senders]

    def _about(self) -> str:
        return f"{self._case.name}, {self._path.name}"

    def _address_of(self, number: int) -> str:
        return f"{self._address}/{number}" if self._case.is_paired else self._address

    def _sender(self, address: str) -> Sender | Caller:
        case = self._case
        if case.is_rpc:
            return Caller(self._tally, address, case.size)
        return Sender(self._tally, address, case.size, case.is_presettled)

    def _receiver(self, address: str | None) -> Endpoint:
        return Responder(address, CREDIT) if self._case.is_rpc else Receiver(self._tally, address, CREDIT)

    def _accepted(self) -> Endpoint:
        receiver = self._receiver(None)
        self._receivers.append(receiver)
        return receiver

    # Running

    def warm(self, seconds: float) -> None:
        """Start, and run for a while.

        Args:
            seconds: of real time, after every sender has had an answer.
        Raises: BenchError
        """
        tally = self._tally
        tally.is_on = True
        for sender in self._senders:
            sender.resume()
        if not self._loop.run_until(self._has_begun, FIRST_S):
            reason = f"{tally.refused} were refused" if tally.refused else "there was no credit, or no answer"
            raise BenchError(f"{self._about()}: after {FIRST_S:g} s not every sender had a message accepted: {reason}")
        if self._case.rate:
            tally.allowed = tally.sent
            self._loop.run_until(self._is_settled, SETTLE_S)
        self._run_for(seconds)

    def _run_for(self, seconds: float) -> None:
        """Let all of it run, at the pace of the case.

        Args:
            seconds: of real time.
        Raises: BenchError
        """
        if not self._case.rate:
            self._loop.run_for(seconds)
            return
        tally, rate, began = self._tally, self._case.rate, time.monotonic()
        before = tally.allowed
        while (now := time.monotonic() - began) < seconds:
            tally.allowed = before + int(now * rate) + 1
            for sender in itertools.islice(self._in_turn, len(self._senders)):
                if tally.sent >= tally.allowed:
                    break
                sender.resume()
            next_at = (tally.allowed - before) / rate
            self._loop.step(max(0.0, next_at - (time.monotonic() - began)))

    def _has_begun(self) -> bool:
        if self._case.is_presettled:
            return self._tally.received > 0
        return all(sender.accepted for sender in self._senders)

    def _count(self) -> int:
        tally = self._tally
        case = self._case
        return tally.received if case.is_presettled or case.is_rpc or case.is_multicast else tally.accepted

    def measure(self, seconds: float) -> RunResult:
        """Measure.

        Args:
            seconds: of real time, at least; until a message has passed.
        Raises: BenchError
        """
        tally, pids, hops = self._tally, self._path.pids, self._path.hops
        tally.is_measuring = True
        count, refused, cpu, began = self._count(), tally.refused, cpu_seconds(pids), time.monotonic()
        self._run_for(seconds)
        if self._count() == count and not self._loop.run_until(lambda: self._count() > count, FIRST_S):
            raise BenchError(f"{self._about()}: no message passed within {seconds + FIRST_S:g} s")
        took = time.monotonic() - began
        cpu = cpu_seconds(pids) - cpu
        messages = self._count() - count
        tally.is_measuring = False
        resident = max(map(resident_bytes, pids), default=0)
        p50, p99 = tally.percentiles(0.5, 0.99) or (None, None)
        return RunResult(
            per_s=messages / took,
            messages=messages,
            seconds=took,
            cpu_us=cpu * 1e6 / messages / hops if pids else None,
            p50_us=p50 * 1e6 if p50 is not None else None,
            p99_us=p99 * 1e6 if p99 is not None else None,
            resident_bytes=resident or None,
            refused=tally.refused - refused,
        )

    def close(self) -> None:
        """Let what is on its way settle, and leave."""
        tally = self._tally
        tally.is_on = False
        try:
            self._loop.run_until(self._is_settled, SETTLE_S)
        finally:
            self._loop.close()

    def _is_settled(self) -> bool:
        tally = self._tally
        return tally.sent <= (tally.received if self._case.is_presettled else tally.accepted + tally.refused)
