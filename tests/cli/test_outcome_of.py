"""Outcomes as `send` tells them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from proton import Condition, Data, Delivery

from router.cli.message_links import FailedOutcome, outcome_of


class Broken:
    """The state of a delivery whose error a router passed on as it came."""

    @property
    def condition(self) -> Condition:
        found = Data()
        found.decode(b"\xa1\x02\xff\xfe")
        found.rewind()
        found.next()
        return Condition("a:b", str(found.get_object()))


@pytest.mark.parametrize(
    ("remote", "said"),
    [
        (SimpleNamespace(condition=None), "rejected"),
        (SimpleNamespace(condition=Condition("a:b", "why")), "rejected (a:b: why)"),
        (Broken(), "rejected (what was said of it can't be read)"),
    ],
    ids=["bare", "with an error", "with an error that is none"],
)
def test_an_outcome_is_told_with_what_can_be_read_of_it(remote: Any, said: str) -> None:
    delivery: Any = SimpleNamespace(remote=remote, remote_state=Delivery.REJECTED)
    assert str(outcome_of(delivery)) == said


@pytest.mark.parametrize("is_failed", [False, True])
def test_of_a_modified_message_it_is_known_whether_its_delivery_failed(is_failed: bool) -> None:
    delivery: Any = SimpleNamespace(remote=SimpleNamespace(failed=is_failed), remote_state=Delivery.MODIFIED)
    assert outcome_of(delivery) == FailedOutcome("modified", is_failed=is_failed)


@pytest.mark.parametrize(
    ("outcome", "is_seen"),
    [
        (FailedOutcome("accepted"), True),
        (FailedOutcome("rejected"), False),
        (FailedOutcome("released"), False),
        (FailedOutcome("modified"), False),
        (FailedOutcome("modified", is_failed=True), None),
        (FailedOutcome("without outcome"), None),
    ],
    ids=str,
)
def test_an_outcome_promises_that_nobody_has_seen_a_message_or_not(
    outcome: FailedOutcome, is_seen: bool | None
) -> None:
    assert outcome.is_seen is is_seen
