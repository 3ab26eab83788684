"""The arithmetic of the measurements; the figures themselves are for `tox -e credit`."""

from __future__ import annotations

import pytest
from proton import Message

from tests.helpers import frames
from tests.helpers.relay import CONNECTOR, LISTENER
from tests.measure.credit.fairness import jain
from tests.measure.credit.relay import FrameReader, Ledger, performative
from tests.measure.credit.rpc import request
from tests.measure.credit.stand import percentile

ATTACH, FLOW, TRANSFER = 0x12, 0x13, 0x14
BEGIN = [None, 0, 100, 100]
"""What stands before a flow's handle."""


def attach(*, is_receiver: bool, handle: int, start: int | None = None) -> bytes:
    fields = ["link", handle, is_receiver, None, None, frames.source("news"), frames.target("news"), None, None, start]
    return frames.write(ATTACH, fields)


def granted(count: int | None, credit: int) -> bytes:
    return frames.write(FLOW, [*BEGIN, 3, count, credit])


def transfer(payload: bytes = b"x", *, more: bool = False) -> bytes:
    return frames.write(TRANSFER, [5, 0, b"tag", 0, True, more], payload=payload)


def ledger() -> Ledger:
    """Of a link on which the one that connected receives, with handle 3, and the other sends, with handle 5."""
    found = Ledger()
    found.hear(0, CONNECTOR, attach(is_receiver=True, handle=3))
    found.hear(0, CONNECTOR, granted(None, 2))
    found.hear(0, LISTENER, attach(is_receiver=False, handle=5, start=7))
    return found


def test_a_ledger_tells_what_is_granted_and_not_used() -> None:
    account = ledger()
    link = account.to("news")
    assert (link.granted, link.sent, link.unspent) == (2, 0, 2)
    account.hear(0, LISTENER, transfer())
    account.hear(0, LISTENER, transfer(b""))
    assert (link.sent, link.unspent, link.empty, link.overruns) == (2, 0, 1, 0)
    account.hear(0, CONNECTOR, granted(8, 4))  # it has seen one of the two
    assert (link.granted, link.unspent, link.most_unspent) == (5, 3, 3)


def test_a_message_of_several_frames_is_one() -> None:
    account = ledger()
    for more in (True, True, False):
        account.hear(0, LISTENER, transfer(more=more))
    assert account.to("news").sent == 1


def test_a_ledger_tells_a_message_without_credit() -> None:
    account = ledger()
    for _ in range(3):
        account.hear(0, LISTENER, transfer())
    assert account.to("news").overruns == 1


def test_what_others_say_of_the_same_handle_does_not_matter() -> None:
    account = ledger()
    account.hear(1, LISTENER, transfer())
    account.hear(0, CONNECTOR, transfer())
    assert account.to("news").sent == 0


def test_frames_are_whole_however_the_bytes_come() -> None:
    log = frames.AMQP_HEADER + attach(is_receiver=True, handle=3) + granted(1, 2) + b"\x00\x00\x00\x08\x02\x00\x00\x00"
    reader = FrameReader()
    found = [performative(frame) for at in range(len(log)) for frame in reader.read(log[at : at + 1])]
    assert found == ["attach", "flow", "heartbeat"] == [performative(frame) for frame in FrameReader().read(log)]


def test_a_request_is_what_the_driver_sends() -> None:
    found = Message()
    found.decode(request("some/where", "reply/here", b"x" * 1024))
    assert (found.address, found.reply_to, found.id, found.ttl) == ("some/where", "reply/here", "call", 60.0)
    assert found.body == b"x" * 1024


def test_jain_s_index_is_one_for_equal_shares_and_a_tenth_for_one_of_ten() -> None:
    assert jain([7] * 10) == pytest.approx(1)
    assert jain([7] + [0] * 9) == pytest.approx(0.1)
    assert jain([0] * 10) == 0


def test_a_percentile_is_one_of_the_values() -> None:
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 0.99) == 3
    assert percentile([1], 0.0) == 1
