"""One fault of each quick kind on three routers: nothing that must never be. `tox -e chaos` has the long run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.measure.chaos.faults import FAULTS
from tests.measure.chaos.run import Run
from tests.measure.chaos.stage import Stage
from tests.measure.chaos.tables import lines

KINDS = (
    "cut", "flap", "half-open", "delay", "client-cut", "client-stall", "client-half-open", "kill",
    "publisher", "subscriber", "descriptors",
)  # fmt: skip
SEED = 3
RATE = 150.0

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.mark.slow
def test_every_message_has_one_true_outcome_and_nothing_is_left_whatever_fails(tmp_path: Path) -> None:
    with Stage(tmp_path, rate=RATE) as stage:
        run = Run(stage, SEED)
        run.play([FAULTS[name] for name in KINDS], 1, math.inf)
        assert not stage.ledger.violations, "\n".join([*lines(run), *stage.ledger.examples])
        assert [row.count for row in run.rows.values()] == [1] * len(KINDS)
        assert stage.ledger.totals["accepted"] > 1000
