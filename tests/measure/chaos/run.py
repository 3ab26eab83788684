"""One run: faults in an order that the seed says, each with its checks, and what each kind came to."""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence

import attrs

from tests.measure.chaos.calls import Calls
from tests.measure.chaos.faults import Fault
from tests.measure.chaos.stage import ROUTERS, START_S, Stage

CALM_S = 0.5
"""Traffic after each recovery, before everything is counted."""
TABLES_EVERY = 20
"""Faults between two looks at what routers keep when every client has gone."""


@attrs.define
class Row:
    """What one kind of fault came to."""

    fault: Fault
    count: int = 0
    sent: int = 0
    violations: Counter[str] = attrs.field(factory=Counter)
    recoveries: list[float] = attrs.field(factory=list)
    """Seconds, from healing until traffic flowed on every path."""

    @property
    def median(self) -> float:
        """Of the recoveries, seconds."""
        return statistics.median(self.recoveries) if self.recoveries else float("nan")

    @property
    def worst(self) -> float:
        """Of the recoveries, seconds."""
        return max(self.recoveries, default=float("nan"))


class Run:
    """Plays faults on a stage."""

    def __init__(self, stage: Stage, seed: int, *, calls: bool = False) -> None:
        self.stage = stage
        self.seed = seed
        self.rows: dict[str, Row] = {}
        self.memory: list[dict[str, int]] = []
        """Resident bytes of each router whenever every client had gone."""
        self.seconds = 0.0
        self.calls = Calls(stage) if calls else None
        self._rng = random.Random(seed)
        self._errors: Counter[str] = Counter()

    def play(self, faults: Sequence[Fault], count: int, end: float) -> None:
        """Play *count* of each, in rounds of one of each, and begin none after *end* (of the monotonic clock)."""
        began = time.monotonic()
        self.rows = {fault.name: Row(fault) for fault in faults}
        self._begin()
        number = 0
        try:
            for _ in range(count):
                for fault in self._rng.sample(list(faults), len(faults)):
                    if time.monotonic() > end:
                        return
                    self._one(fault)
                    number += 1
                    if number % TABLES_EVERY == 0:
                        self._look()
        finally:
            self.seconds = time.monotonic() - began
            if sys.exc_info()[0] is None:
                self._look(is_last=True)
                self.seconds = time.monotonic() - began
                if self.calls is not None:
                    self.calls.finish()

    def _begin(self) -> None:
        if self.calls is not None:
            self.stage.aside(self.calls.resume)
        self.stage.resume()
        self.stage.wait_flow()
        self.stage.ledger.calm()

    def _one(self, fault: Fault) -> None:
        stage, ledger, row = self.stage, self.stage.ledger, self.rows[fault.name]
        before, sent = ledger.violations.copy(), ledger.totals["sent"]
        if not fault.keeps_paths:
            ledger.storm()
        for seconds in fault.act(stage, self._rng):
            stage.run_for(seconds)
        self._look_at_processes()
        recovery = stage.wait_flow()
        if not fault.keeps_paths:
            stage.converge()
            stage.run_for(CALM_S)
            ledger.calm()
        stage.run_for(CALM_S)
        stage.check_credit()
        stage.settle()
        self._look_at_processes()
        stage.resume()
        row.count += 1
        row.sent += ledger.totals["sent"] - sent
        row.violations += ledger.violations - before
        if recovery is not None:
            row.recoveries.append(recovery)
        flowed = "no recovery" if recovery is None else f"{recovery:.2f} s"
        print(
            f"{fault.name} {row.count}: {flowed}, "
            f"{ledger.totals['sent']} sent {dict(ledger.violations - before) or ''}",
            file=sys.stderr,
            flush=True,
        )
        for example in ledger.examples:
            print(f"    {example}", file=sys.stderr, flush=True)
        ledger.examples.clear()

    def _look_at_processes(self) -> None:
        """Count routers that ended by themselves, and start them again; and errors that routers logged."""
        for key in ROUTERS:
            process = self.stage.mesh[key]
            if not process.is_running:
                self.stage.ledger.violate("ended", f"{key} ended by itself:\n{process.log_text()[-2000:]}")
                process.start()
                self.stage.aside(lambda process=process: process.wait_started(START_S))  # type: ignore[misc]
                continue
            name = f"{key} {process.pid}"
            errors = [line for line in process.log_text().splitlines() if " level=error " in line]
            for line in errors[self._errors[name] :]:
                self.stage.ledger.violate("ended", f"{key} logged {line[:1000]}")
            self._errors[name] = len(errors)

    def _look(self, *, is_last: bool = False) -> None:
        self.stage.settle()
        before = self.stage.ledger.violations.copy()
        if self.calls is not None:
            self.stage.aside(self.calls.pause)
        self.memory.append(self.stage.check_tables())
        print(
            f"nobody left: { ({key: f'{size / 1e6:.1f} MB' for key, size in self.memory[-1].items()}) } "
            f"{dict(self.stage.ledger.violations - before) or ''} {self.stage.ledger.examples}",
            file=sys.stderr,
            flush=True,
        )
        if not is_last:
            self._begin()
