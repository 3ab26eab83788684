"""Outcomes as `send` tells them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from proton import Condition, Data, Delivery

from router.cli.message_links import outcome_of


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
