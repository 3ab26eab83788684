"""Every event and action turns into a plain dict, through JSON, and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router.core import events
from router.core.errors import LocalError
from router.core.events import Action, ControlLinkDown, Event, LastSubscriberLeft, Report
from router.core.ids_and_conditions import ConnectionId
from tests.helpers.examples import examples
from tests.helpers.records import records

KINDS = [kind for base in (Event, Action) for kind in base.__subclasses__() if kind.__module__ == events.__name__]
# attrs makes each class twice; only the one that the module shows counts.
NAMES = sorted({kind.__name__ for kind in KINDS})


def test_all_kinds_are_here() -> None:
    assert len(NAMES) == 15


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_round_trip(name: str, data: st.DataObject) -> None:
    record = data.draw(records(getattr(events, name)))
    base = Event if isinstance(record, Event) else Action
    plain = json.loads(json.dumps(record.to_dict()))
    assert plain["kind"] == name
    again = base.from_dict(plain)
    assert again == record
    assert type(again) is type(record)


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"kind": "Nonsense"},
        {"kind": "WithdrawRouter", "router": "A"},
        {"kind": "ControlLinkDown"},
        {"kind": "ControlLinkDown", "connection": "1"},
        {"kind": "ControlLinkDown", "connection": True},
        {"kind": "ControlLinkDown", "connection": 1, "surplus": 1},
        {"kind": "FirstSubscriberAttached", "address": "a", "treatment": "nearest"},
        {"kind": "ControlReceived", "connection": 1, "to": "", "message": 3, "ingress": None, "trace": []},
        {"kind": "ControlReceived", "connection": 1, "to": "", "message": {}, "ingress": None, "trace": []},
        {
            "kind": "ControlReceived", "connection": 1, "to": "", "ingress": None, "trace": "A",
            "message": {"opcode": "LSR", "body": {"id": "A"}},
        },
    ],
)  # fmt: skip
def test_what_is_no_event_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(LocalError):
        Event.from_dict(plain)


def test_a_kind_may_be_asked_for_by_name() -> None:
    event = LastSubscriberLeft(address="a")
    assert LastSubscriberLeft.from_dict(event.to_dict()) == event
    with pytest.raises(LocalError):
        ControlLinkDown.from_dict(event.to_dict())
    assert ControlLinkDown(connection=ConnectionId(1)).to_dict() == {"kind": "ControlLinkDown", "connection": 1}


def test_reports_show_their_fields_as_text() -> None:
    report = Report.warning("router_lost", router="A", cost=3)
    assert (report.level, report.fields) == ("warning", (("router", "A"), ("cost", "3")))
