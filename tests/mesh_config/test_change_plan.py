"""What a running router changes when its file has changed."""

from __future__ import annotations

import attrs
import pytest

from mesh_config.change_plan import (
    FORWARDING_AT_START,
    IN_PARTS,
    TAKEN_OVER,
    ChangePlan,
    forwarding_as_it_runs,
    plan_change,
)
from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    ForwardingSettings,
    ListenerSettings,
    Role,
    RouterSettings,
    TlsSettings,
    Treatment,
)
from mesh_config.value_rules import fields_of

CLIENTS = ListenerSettings(port=5672)
ROUTERS = ListenerSettings(port=25672, role=Role.INTER_ROUTER)
TO_B = ConnectorSettings(to="B", host="127.0.0.1", port=25673)
TO_C = ConnectorSettings(to="C", host="127.0.0.1", port=25674)
SAME = RouterSettings(id="A", listeners=(CLIENTS, ROUTERS), connectors=(TO_B, TO_C))


def test_the_same_settings_change_nothing() -> None:
    plan = plan_change(SAME, attrs.evolve(SAME))
    assert plan == ChangePlan()
    assert plan.described() == []


def test_the_order_of_a_list_is_no_change() -> None:
    turned = attrs.evolve(SAME, listeners=(ROUTERS, CLIENTS), connectors=(TO_C, TO_B))
    assert plan_change(SAME, turned) == ChangePlan()


def test_what_left_is_ended_and_what_came_is_added() -> None:
    to_d = attrs.evolve(TO_C, to="D", port=25675)
    more = ListenerSettings(port=5673)
    plan = plan_change(SAME, attrs.evolve(SAME, listeners=(CLIENTS, more), connectors=(TO_B, to_d)))
    assert plan == ChangePlan(opened=(more,), closed=(ROUTERS,), ended=(TO_C,), added=(to_d,))
    assert plan.described() == [
        "listener 127.0.0.1:5673 opened",
        "listener 127.0.0.1:25672 closed",
        "connector 127.0.0.1:25674 ended",
        "connector 127.0.0.1:25675 added",
    ]


def test_a_connector_with_another_cost_is_ended_and_added() -> None:
    dear = attrs.evolve(TO_B, cost=5)
    plan = plan_change(SAME, attrs.evolve(SAME, connectors=(dear, TO_C)))
    assert plan == ChangePlan(ended=(TO_B,), added=(dear,))


def test_a_connector_with_other_pauses_goes_on() -> None:
    hasty = attrs.evolve(TO_B, reconnect_initial_s=0.1, reconnect_max_s=1.0)
    plan = plan_change(SAME, attrs.evolve(SAME, connectors=(TO_C, hasty)))
    assert plan == ChangePlan(repaced=((TO_B, hasty),))
    assert plan.described() == [
        "connector 127.0.0.1:25673: reconnect_initial_s, reconnect_max_s changed, for its next attempt"
    ]


def test_a_listener_at_the_same_place_stays_bound() -> None:
    fuller = attrs.evolve(CLIENTS, max_connections=7)
    plan = plan_change(SAME, attrs.evolve(SAME, listeners=(fuller, ROUTERS)))
    assert plan == ChangePlan(altered=((CLIENTS, fuller),))
    assert plan.described() == ["listener 127.0.0.1:5672: max_connections changed, for new connections"]


def test_each_of_two_equal_listeners_counts() -> None:
    anywhere = ListenerSettings(port=0)
    plan = plan_change(
        attrs.evolve(SAME, listeners=(anywhere, anywhere)), attrs.evolve(SAME, listeners=(anywhere, anywhere, anywhere))
    )
    assert plan == ChangePlan(opened=(anywhere,))


def test_an_address_with_another_treatment_is_removed_and_added() -> None:
    before = AddressSettings(prefix="jobs", treatment=Treatment.CLOSEST)
    after = attrs.evolve(before, treatment=Treatment.MULTICAST)
    plan = plan_change(attrs.evolve(SAME, addresses=(before,)), attrs.evolve(SAME, addresses=(after,)))
    assert plan == ChangePlan(addresses_removed=(before,), addresses_added=(after,))


def test_profiles_are_added_changed_and_removed() -> None:
    profile = TlsSettings(name="inner", ca="ca.pem")
    old = attrs.evolve(SAME, tls=(profile, TlsSettings(name="left", ca="ca.pem")))
    new = attrs.evolve(SAME, tls=(attrs.evolve(profile, ca="other.pem"), TlsSettings(name="outer", ca="ca.pem")))
    plan = plan_change(old, new)
    assert plan.profiles == (new.tls[1],)
    assert plan.profiles_altered == (new.tls[0],)
    assert plan.profiles_removed == ("left",)
    assert plan.needs_restart == ()
    assert plan.described() == [
        "tls profile outer added",
        "tls profile inner changed, for new connections",
        "tls profile left removed",
    ]


def test_of_very_many_it_is_said_how_many_more_there_are() -> None:
    new = attrs.evolve(SAME, addresses=tuple(AddressSettings(prefix=f"p{number}") for number in range(5000)))
    said = plan_change(attrs.evolve(SAME, addresses=()), new).described()
    assert said == [*(f"address p{number} added" for number in range(20)), "address: 4,980 more added"]


@pytest.mark.parametrize("name", [field.name for field in fields_of(ForwardingSettings)])
def test_every_bound_is_taken_over_or_said_to_need_a_restart(name: str) -> None:
    old = SAME.forwarding
    other = attrs.evolve(old, **{name: getattr(old, name) + 1})
    plan = plan_change(SAME, attrs.evolve(SAME, forwarding=other))
    is_at_start = name in FORWARDING_AT_START
    if is_at_start:
        assert plan == ChangePlan(needs_restart=(f"forwarding.{name}",))
    else:
        assert plan == ChangePlan(forwarding=(name,))
        assert plan.described() == [f"forwarding.{name} changed"]
    assert forwarding_as_it_runs(old, other) == (old if is_at_start else other)


@pytest.mark.parametrize("name", [field.name for field in fields_of(RouterSettings) if field.name not in IN_PARTS])
def test_every_other_setting_is_taken_over_or_said_to_need_a_restart(name: str) -> None:
    plan = plan_change(SAME, attrs.evolve(SAME, **{name: object()}))
    if name in TAKEN_OVER:
        assert plan == ChangePlan(taken_over=(name,))
        assert plan.described() == [f"{name} changed"]
    else:
        assert plan == ChangePlan(needs_restart=(name,))
