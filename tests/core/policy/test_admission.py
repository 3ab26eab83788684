"""Who may come in: groups, remote hosts, names of virtual hosts, and bounds that are given back."""

from __future__ import annotations

import pytest

from mesh_config.models import GroupSettings, VhostSettings
from router.core.ids_and_conditions import RouterId
from router.core.policy.denial import Denied
from router.core.policy.policy import Policy

ME = RouterId("A")


def group(name: str, *users: str, **more: object) -> GroupSettings:
    return GroupSettings(name=name, users=users, **more)  # type: ignore[arg-type]


def policy(*groups: GroupSettings, **vhost: object) -> Policy:
    return Policy([VhostSettings(name="shop", groups=groups, **vhost)], ME)  # type: ignore[arg-type]


def enters(found: Policy, user: str, host: str = "127.0.0.1", hostname: str = "shop") -> str | None:
    """Name of the group that a user comes in with, None when it may not."""
    try:
        return found.admit(hostname, user, host, 0.0).group.name
    except Denied:
        return None


def test_a_group_that_names_a_user_goes_before_one_for_everybody() -> None:
    found = policy(group("all", "*"), group("staff", "alice", "bob"))
    assert [enters(found, user) for user in ("alice", "bob", "carol")] == ["staff", "staff", "all"]


def test_everybody_is_who_said_who_it_is() -> None:
    assert enters(policy(group("all", "*")), "anonymous") is None
    assert enters(policy(group("guests", "anonymous")), "anonymous") == "guests"
    assert enters(policy(group("guests", "anonymous")), "alice") is None


def test_a_user_called_star_is_not_everybody() -> None:
    found = policy(group("staff", "alice"), group("all", "*"))
    assert enters(found, "*") == "all"
    assert enters(policy(group("staff", "alice")), "*") is None


@pytest.mark.parametrize(
    ("rules", "host", "may"),
    [
        (("10.1.0.0/16",), "10.1.2.3", True),
        (("10.1.0.0/16",), "10.2.2.3", False),
        (("10.1.0.5-10.1.0.9",), "10.1.0.5", True),
        (("10.1.0.5-10.1.0.9",), "10.1.0.9", True),
        (("10.1.0.5-10.1.0.9",), "10.1.0.10", False),
        (("127.0.0.1", "::1"), "::1", True),
        (("127.0.0.1", "::1"), "127.0.0.2", False),
        (("127.0.0.0/8",), "::ffff:127.0.0.1", True),
        (("fe80::/10",), "fe80::1%eth0", True),
        (("0.0.0.0/0",), "::1", False),
        (("*",), "", True),
        (("10.0.0.0/8",), "", False),
        ((), "127.0.0.1", False),
    ],
)
def test_a_group_comes_from_its_hosts(rules: tuple[str, ...], host: str, may: bool) -> None:
    assert (enters(policy(group("staff", "alice", hosts=rules)), "alice", host) is not None) is may


def test_connections_of_a_remote_host_have_a_bound_in_the_virtual_host() -> None:
    found = policy(group("staff", "alice", "bob", max_connections_of_host=2))
    first = found.admit("shop", "alice", "10.0.0.1", 0.0)
    assert enters(found, "bob", "10.0.0.1") == "staff"
    assert enters(found, "bob", "10.0.0.1") is None
    assert enters(found, "bob", "10.0.0.2") == "staff"
    found.leave(first, "10.0.0.1")
    assert enters(found, "bob", "10.0.0.1") == "staff"


def test_what_is_known_of_users_and_hosts_goes_with_their_last_connection() -> None:
    found = policy(group("all", "*"))
    rights = [found.admit("shop", f"user{number % 50}", f"10.0.0.{number % 20}", 0.0) for number in range(100)]
    for number, each in enumerate(rights):
        found.leave(each, f"10.0.0.{number % 20}")
    (state,) = found.vhosts()
    assert (state.connections, state.hosts, found._users) == (0, {}, {})
    assert state.admitted == 100


def test_the_longest_domain_wins() -> None:
    names = {"a": ("*.example",), "b": ("*.east.example",), "c": ("*",)}
    groups = (group("all", "*"),)
    found = Policy([VhostSettings(name=name, hostnames=each, groups=groups) for name, each in names.items()], ME)
    for hostname, name in (
        ("x.example", "a"),
        ("x.east.example", "b"),
        ("east.example", "a"),
        ("other", "c"),
        ("b", "b"),
    ):
        assert found.admit(hostname, "alice", "", 0.0).vhost == name


def test_what_stands_for_the_user_is_that_user_s_alone() -> None:
    found = policy(group("all", "*", sources=("inbox/${user}/#", "tmp-${user}"), targets=("inbox/*",)), isolated=False)
    alice = found.admit("shop", "alice", "", 0.0)
    for address in ("inbox/alice", "inbox/alice/x/y", "inbox.alice", "tmp-alice"):
        assert alice.source(address) == address
    for address in ("inbox/bob", "inbox/alice2", "inbox/alicex/y", "tmp-alice2", "inbox", "inbox/${user}"):
        with pytest.raises(Denied):
            alice.source(address)
    assert alice.target("inbox/bob") == "inbox/bob"


@pytest.mark.parametrize(
    ("user", "word"),
    [
        ("#", "#"),
        ("*", "*"),
        ("a/#", "a%2F#"),
        ("*.*", "*%2E*"),
        ("alice/bob", "alice%2Fbob"),
        ("alice%2Ebob", "alice%252Ebob"),
        ("alice.bob@REALM.EXAMPLE", "alice%2Ebob@REALM%2EEXAMPLE"),
    ],
)
def test_a_user_s_name_is_no_pattern_and_one_word(user: str, word: str) -> None:
    found = policy(group("all", "*", sources=("inbox/${user}/#",)), isolated=False)
    rights = found.admit("shop", user, "", 0.0)
    assert rights.source(f"inbox/{word}/x") == f"inbox/{word}/x"
    for address in ("inbox/bob", "inbox/a/bob", "inbox/x.y", "inbox", "inbox/alice/bob", "inbox/alice.bob"):
        with pytest.raises(Denied):
            rights.source(address)


def test_a_user_has_nothing_of_one_whose_name_begins_with_its_own() -> None:
    found = policy(group("all", "*", sources=("inbox/${user}/#",)), isolated=False)
    john, doe = (found.admit("shop", user, "", 0.0) for user in ("john", "john.doe"))
    for rights, others in ((john, "inbox/john%2Edoe/x"), (doe, "inbox/john/doe"), (doe, "inbox/john.doe")):
        with pytest.raises(Denied):
            rights.source(others)
    with pytest.raises(Denied, match=r"; as one word of an address `john\.doe` is `john%2Edoe`$"):
        doe.source("inbox/john.doe")
    with pytest.raises(Denied, match=r"in virtual host `shop`$"):
        doe.source("inbox/john")
