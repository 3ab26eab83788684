"""Subscribers that have messages and give no outcome, in the words of `trace`, `send` and `call`."""

from __future__ import annotations

from typing import Any

import pytest

from router.cli.address_path import Path, Trace
from router.cli.trace import _is_free, _lines
from router.cli.waiting_reasons import _of_subscribers
from router.management.overdue_outcome_texts import HANGS_S
from tests.cli.test_stat_credit import party


def worker(seconds: int | None, *, granted: int = 45, unsettled: int = 5) -> dict[str, Any]:
    return party("subscriber", container="worker", granted=granted, unsettledCount=unsettled, unsettledSeconds=seconds)


def path(*subscribers: dict[str, Any]) -> Path:
    return Path(egress="A", cost=0, hops=(), subscribers=subscribers, error=None)


def traced(*subscribers: dict[str, Any]) -> str:
    found = Trace(address="jobs", start="A", treatment="balanced", publishers=(), paths=[path(*subscribers)], absent=())
    return "\n".join(_lines(found, 200))


@pytest.mark.parametrize(("seconds", "state"), [(None, "ready"), (HANGS_S - 1, "ready"), (HANGS_S, "HANGS")])
def test_trace_names_a_subscriber_that_hangs_with_credit(seconds: int | None, state: str) -> None:
    assert state in traced(worker(seconds))
    assert ("worker has 5 messages without outcome" in traced(worker(seconds))) is (seconds is not None)


def test_a_path_that_leads_only_to_who_hangs_is_not_free() -> None:
    assert not _is_free(path(worker(HANGS_S)))
    assert not _is_free(path(worker(HANGS_S), worker(3, granted=0)))
    assert _is_free(path(worker(HANGS_S), worker(3)))


SAID = "The subscriber worker at A has 5 messages without outcome, none settled for 40 s."
HELD = "Subscribers at A have granted credit, and other publishers hold it."


@pytest.mark.parametrize(
    ("rows", "is_sent", "said"),
    [
        ([worker(40)], True, SAID),
        ([worker(40)], False, HELD),
        ([worker(70)], False, f"{HELD} {SAID.replace('40', '70')}"),
        ([worker(3), worker(40)], True, f"{SAID} {SAID.replace('40', '3')}"),
        ([worker(3)] * 5, True, f"{' '.join([SAID.replace('40', '3')] * 3)} 2 more subscribers there have some too."),
        ([worker(None, unsettled=0)], True, "Subscribers at A have credit left, and no messages without outcome."),
        (
            [worker(40, granted=0)],
            True,
            "The subscriber worker at A has no credit left and has 5 messages without outcome, none settled for 40 s.",
        ),
        (
            [worker(40, granted=0), worker(3)],
            True,
            "1 of 2 subscribers at A have no credit left and have 5 messages without outcome.",
        ),
        ([], True, ""),
    ],
)
def test_the_reason_names_who_has_the_messages(rows: list[dict[str, Any]], is_sent: bool, said: str) -> None:
    assert _of_subscribers("A", rows, is_sent=is_sent) == said


def test_a_router_of_an_earlier_version_tells_no_times() -> None:
    row = worker(40)
    del row["unsettledSeconds"]
    assert _of_subscribers("A", [row], is_sent=True) == "The subscriber worker at A has 5 messages without outcome."
    assert "worker" in traced(row)
