"""The life of a `Transfer` as a table: which event leads from which stage to which. `advance` alone writes the stage.

A pair that isn't in the table is a fault of ours: `StageError`. `Forwarder.end_faulty` ends that one message with an
outcome. The picture in docs/explanation/walk-of-a-message.md and the table that C looks up (`transfer_lifecycle.pxd`)
are made from this one: `python docs/stages.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import cython

from router.dataplane.links import Transfer

if not cython.compiled:  # else they come by the .pxd
    from router.dataplane.transfer_stages import (
        BEGUN,
        DONE,
        FINISHED,
        GATHERED,
        HELD,
        HOLDING,
        LOST,
        NEW,
        OFFERED,
        POSTPONED,
        QUEUED,
        RETRIED,
        SELECTED,
        SENT,
        STRANDED,
        STREAMING,
        WAITING,
        WRITTEN,
    )

STAGES: Final = {
    NEW: "NEW",
    HOLDING: "HOLDING",
    QUEUED: "QUEUED",
    WAITING: "WAITING",
    STREAMING: "STREAMING",
    SENT: "SENT",
    STRANDED: "STRANDED",
    DONE: "DONE",
}
"""Names of stages, in the order in which a message passes them."""
EVENTS: Final = {
    HELD: "HELD",
    GATHERED: "GATHERED",
    OFFERED: "OFFERED",
    SELECTED: "SELECTED",
    POSTPONED: "POSTPONED",
    BEGUN: "BEGUN",
    WRITTEN: "WRITTEN",
    LOST: "LOST",
    RETRIED: "RETRIED",
    FINISHED: "FINISHED",
}
"""Names of events."""
TABLE: Final[Mapping[tuple[int, int], int]] = {
    (NEW, HELD): HOLDING,
    (QUEUED, HELD): HOLDING,
    (HOLDING, GATHERED): NEW,
    (NEW, OFFERED): QUEUED,
    (QUEUED, OFFERED): QUEUED,
    (NEW, SELECTED): NEW,
    (QUEUED, SELECTED): NEW,
    (WAITING, SELECTED): NEW,
    (NEW, POSTPONED): WAITING,
    (QUEUED, POSTPONED): WAITING,
    (NEW, BEGUN): STREAMING,
    (NEW, WRITTEN): SENT,
    (STREAMING, WRITTEN): SENT,
    (NEW, LOST): STRANDED,
    (STREAMING, LOST): STRANDED,
    (SENT, LOST): STRANDED,
    (STRANDED, RETRIED): NEW,
    **{(stage, FINISHED): DONE for stage in STAGES},
}
"""Next stage by stage and event."""
ABSENT: Final = -1


def next_stages() -> list[list[int]]:
    """Numbers of the next stages, a row for each stage, a column for each event; `ABSENT` for pairs without one."""
    return [[TABLE.get((stage, event), ABSENT) for event in sorted(EVENTS)] for stage in sorted(STAGES)]


if not cython.compiled:  # in C it is an array: see the .pxd
    _NEXT: Final = next_stages()

    def next_stage(stage: int, event: int) -> int:
        """The stage that an event leads to; `ABSENT` when the pair isn't in the table."""
        return _NEXT[stage][event]


class StageError(Exception):
    """A fault of ours: something has happened to a message that can't happen in its stage."""

    def __init__(self, transfer: Transfer, event: int) -> None:
        super().__init__(f"{EVENTS[event]} of a message that is {STAGES[transfer.state]}")
        self.transfer = transfer


def advance(transfer: Transfer, event: int) -> None:
    """Write the stage that *event* leads to.

    Raises:
        StageError: the event can't happen in the stage of the message, which stays as it is.
    """
    stage = next_stage(transfer.state, event)
    if stage < 0:
        raise StageError(transfer, event)
    transfer.state = stage
