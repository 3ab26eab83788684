"""What a multicast credit machine does for one event, however many subscribers and trees it has."""

from __future__ import annotations

import pytest

from tests.helpers.multicast_work import (
    COMES_BACK,
    COPIES,
    DEALING,
    EVENTS,
    FEW,
    FEW_TREES,
    MANY,
    MANY_TREES,
    TREE_EVENTS,
)
from tests.helpers.work import counted_by

Work = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def work() -> Work:
    """What each event takes with few and with many, counted in interpreted code."""
    return counted_by("tests.helpers.multicast_work")


@pytest.mark.parametrize("event", [*EVENTS, COMES_BACK])
def test_an_event_costs_the_same_however_many_subscribers_there_are(event: str, work: Work) -> None:
    few, many = work[event]
    assert 0 < many <= 2 * few


def test_a_copy_costs_the_same_however_many_subscribers_there_are(work: Work) -> None:
    few, many = work[COPIES]
    assert 0 < many / MANY <= 2 * few / FEW


@pytest.mark.parametrize("event", TREE_EVENTS)
def test_an_event_looks_at_no_tree_that_it_does_not_concern(event: str, work: Work) -> None:
    few, many = work[event]
    assert 0 < many <= few + 4


def test_what_is_dealt_costs_the_same_however_many_trees_there_are(work: Work) -> None:
    """But for looking once at each."""
    few, many = work[DEALING]
    assert 0 < many // MANY_TREES <= 2 * (few // FEW_TREES)
