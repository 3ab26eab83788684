"""Virtual hosts that change while clients are there: who keeps its connection, and who has to come again."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from mesh_config.models import GroupSettings, ManagementRight, VhostSettings
from router.core.ids_and_conditions import RouterId
from router.core.policy.denial import Denied
from router.core.policy.policy import Policy

HOST = "10.1.0.7"
GROUP = GroupSettings(name="all", users=("alice",), sources=("jobs",), targets=("jobs",))
SHOP = VhostSettings(name="shop", isolated=False, groups=(GROUP,))


def shop(**group: Any) -> VhostSettings:
    return attrs.evolve(SHOP, groups=(attrs.evolve(GROUP, **group),))


@pytest.fixture
def policy() -> Policy:
    return Policy((SHOP,), RouterId("A"))


def test_more_rights_are_there_at_once(policy: Policy) -> None:
    rights = policy.admit("shop", "alice", HOST, 0.0)
    with pytest.raises(Denied):
        rights.message_target("news")
    policy.take_settings((shop(targets=("jobs", "news"), management=ManagementRight.READ, max_senders=3),), 1.0)
    assert policy.objection(rights, "shop", HOST) == ""
    assert rights.message_target("news") == "news"
    assert rights.target("$management") == "$management"
    assert rights.group.max_senders == 3


@pytest.mark.parametrize(
    "changed",
    [
        shop(targets=()),
        shop(sources=("other",)),
        shop(users=("bob",)),
        shop(any_user_id=True),
        attrs.evolve(SHOP, isolated=True),
    ],
    ids=["no targets", "other sources", "another user", "another form", "isolated"],
)
def test_who_has_lost_something_comes_again(policy: Policy, changed: VhostSettings) -> None:
    rights = policy.admit("shop", "alice", HOST, 0.0)
    policy.take_settings((changed,), 1.0)
    said = "the rights of user `alice` in virtual host `shop` have changed"
    assert policy.objection(rights, "shop", HOST) == said


def test_who_was_in_a_virtual_host_that_is_gone_is_told_so(policy: Policy) -> None:
    rights = policy.admit("shop", "alice", HOST, 0.0)
    policy.take_settings((attrs.evolve(SHOP, name="mill"),), 1.0)
    assert policy.objection(rights, "shop", HOST) == "there is no virtual host `shop` any more"


def test_connections_with_old_rights_and_new_ones_are_counted_apart(policy: Policy) -> None:
    old = policy.admit("shop", "alice", HOST, 0.0)
    limited = shop(sources=("other",), max_connections_of_user=1)
    policy.take_settings((limited,), 1.0)
    new = policy.admit("shop", "alice", HOST, 1.0)
    assert new is not old
    policy.leave(old, HOST)
    with pytest.raises(Denied, match=r"^there is 1 connection of user `alice`, as many as may be$"):
        policy.admit("shop", "alice", HOST, 2.0)
    policy.leave(new, HOST)
    (state,) = policy.vhosts()
    assert (state.connections, state.admitted, state.hosts) == (0, 2, {})
    assert policy.admit("shop", "alice", HOST, 3.0) is not new


def test_a_host_name_that_means_another_virtual_host_is_an_objection() -> None:
    named = attrs.evolve(SHOP, hostnames=("shop.example",))
    policy = Policy((named,), RouterId("A"))
    rights = policy.admit("shop.example", "alice", HOST, 0.0)
    policy.take_settings((SHOP, attrs.evolve(named, name="mill")), 1.0)
    assert "does not mean virtual host `shop`" in policy.objection(rights, "shop.example", HOST)
    assert policy.objection(rights, "shop", HOST) == ""


def test_a_remote_host_that_may_not_come_any_more_is_an_objection(policy: Policy) -> None:
    rights = policy.admit("shop", "alice", HOST, 0.0)
    policy.take_settings((shop(hosts=("10.2.0.0/16",)),), 1.0)
    assert "may not come from this remote host" in policy.objection(rights, "shop", HOST)


def test_policy_that_begins_or_ends_is_an_objection_to_everybody(policy: Policy) -> None:
    rights = policy.admit("shop", "alice", HOST, 0.0)
    assert policy.objection(None, "shop", HOST) == "there are virtual hosts now"
    policy.take_settings((), 1.0)
    assert policy.objection(rights, "shop", HOST) == "there are no virtual hosts any more"
    assert policy.objection(None, "shop", HOST) == ""
    policy.leave(rights, HOST)


def test_the_rate_of_a_user_counts_for_new_connections(policy: Policy) -> None:
    old = policy.admit("shop", "alice", HOST, 0.0)
    assert policy.rate(old, 0.0) is None
    policy.take_settings((shop(messages_per_s_of_user=1),), 1.0)
    new = policy.admit("shop", "alice", HOST, 1.0)
    assert new is old
    rate = policy.rate(new, 1.0)
    assert rate is not None
    rate.take()
    assert rate.wait(1.0) == pytest.approx(1.0)


def test_addresses_of_a_new_isolated_virtual_host_are_outside(policy: Policy) -> None:
    rights = policy.admit("shop", "alice", HOST, 0.0)
    assert not rights.is_outside("mill/jobs")
    policy.take_settings((SHOP, attrs.evolve(SHOP, name="mill", isolated=True)), 1.0)
    assert policy.objection(rights, "shop", HOST) == ""
    assert rights.is_outside("mill/jobs")
