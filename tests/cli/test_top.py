"""Rows of `amqp-mesh top`: what links taken together show."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from router.cli import top
from router.cli.link_sampler import LinkSample
from router.cli.top import rows_by

SENDER = LinkSample(
    router="A",
    container="shop",
    direction="in",
    address="busy",
    rate=3.0,
    waiting=0,
    waited_s=0,
    credit=224,
    unsettled=1,
    is_blocked=False,
    deliveries=3,
)
SUBSCRIBER = attrs.evolve(SENDER, direction="out", address="jobs", credit=10)
SLOW = attrs.evolve(SUBSCRIBER, credit=0, is_slow=True)
IDLE = attrs.evolve(SUBSCRIBER, credit=0)
BLOCKED = attrs.evolve(SENDER, credit=0, waiting=1, is_blocked=True)
FULL = attrs.evolve(SENDER, credit=2, address=None, is_full=True)


@pytest.mark.parametrize(
    ("links", "credit"),
    [
        ((SENDER, SUBSCRIBER), 234),
        ((SENDER, SLOW), 0),
        ((SLOW, SENDER), 0),
        ((SENDER, IDLE), 0),
        ((SENDER, BLOCKED, SUBSCRIBER), 0),
        ((SENDER, FULL, SLOW, FULL), 4),
        ((SENDER, attrs.evolve(SUBSCRIBER, waiting=1)), 10),
    ],
)
def test_credit_is_that_of_the_links_that_the_state_is_of(links: tuple[LinkSample, ...], credit: int) -> None:
    (row,) = rows_by(links, "clients")
    assert (row.credit, row.links) == (credit, len(links))
    assert [each.credit for each in rows_by(links, "links")] == [each.credit for each in links]


@pytest.mark.parametrize("shown", [top._json, top._screen])
def test_a_look_that_lacks_a_router_is_not_whole(shown: Any) -> None:
    for errors in ({}, {"B": "does not answer"}):
        seen = shown(SimpleNamespace(look=list, errors=errors, took_s=0.0), "clients", "trouble", None, None, 0)
        assert seen.is_whole is not bool(errors)


@pytest.mark.parametrize(
    ("text", "is_shown"),
    [("ALICE", True), ("alice/batch", True), ("10.0.0.7", True), ("busy", True), ("a", True), ("none", False)],
)
def test_a_text_is_looked_for_in_all_that_a_row_shows_of_its_client(text: str, is_shown: bool) -> None:
    link = attrs.evolve(SENDER, container="batch-7", user="alice", host="10.0.0.7:41234")
    silent = attrs.evolve(SENDER, address=None, router="Z", container="other", user="", host="")
    looking: Any = SimpleNamespace(look=lambda: [link, silent])
    _, rows = top._found(looking, "clients", "trouble", text)
    assert [row.container for row in rows] == ["batch-7"] * is_shown
