"""What a router does for a message or a tree, however many subscribers or trees there are."""

from __future__ import annotations

import pytest

from tests.helpers.controller_work import CASES, PATHS
from tests.helpers.work import counted_by

Work = dict[str, tuple[int, int]]


@pytest.fixture(scope="module")
def work() -> Work:
    """What each case takes with few and with many, counted in interpreted code."""
    return counted_by("tests.helpers.controller_work")


@pytest.mark.parametrize("case", CASES)
def test_a_message_costs_the_same_however_many_subscribers_there_are(case: str, work: Work) -> None:
    few, many = work[case]
    assert 0 < many <= 1.1 * few


def test_a_change_of_paths_costs_each_tree_the_same_however_many_there_are(work: Work) -> None:
    few, many = work[PATHS]
    assert 0 < many <= 1.2 * few
