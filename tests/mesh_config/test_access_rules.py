"""Patterns of addresses, and rules of hosts, in policy."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.access_rules import AddressRules, HostRules, RuleError, check_pattern, fit_all_of, parse_hosts

PATTERN_WORDS = st.sampled_from(["a", "ab", "b", "a*", "*", "#", "${user}"])
WORD_ROWS = st.lists(st.sampled_from(["a", "ab", "b", "abc", "u"]), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("#", ["a", "a/b", "a.b.c"], []),
        ("*", ["a", "abc"], ["a/b", "a.b"]),
        ("a/#", ["a", "a/b", "a.b.c"], ["ab", "b", "b/a"]),
        ("a/*", ["a/b", "a.b"], ["a", "a/b/c"]),
        ("a/*/c", ["a/b/c"], ["a/c", "a/b/b/c"]),
        ("#/z", ["z", "a/z", "a/b/z"], ["za", "z/a"]),
        ("a/#/z", ["a/z", "a/b/c/z", "a/z/z"], ["a", "a/z/b"]),
        ("a/#/#/*", ["a/b", "a/b/c"], ["a"]),
        ("tmp-*", ["tmp-", "tmp-1"], ["tmp", "tmp-1/x", "x/tmp-1"]),
        ("tmp-*/#", ["tmp-1", "tmp-1/x"], ["tmp"]),
        ("/a/b/", ["a/b"], ["a"]),
    ],
)
def test_patterns_fit_whole_words(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    check_pattern(pattern)
    rules = AddressRules([pattern], "alice")
    assert [text for text in fits if not rules.allows(text)] == []
    assert [text for text in fits_not if rules.allows(text)] == []


WORDS = st.sampled_from(["a", "b", "ab", "a*", "*", "#"])


@given(
    st.lists(WORDS, min_size=1, max_size=6), st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=1, max_size=6)
)
def test_a_pattern_fits_as_its_regular_expression_does(pattern: list[str], words: list[str]) -> None:
    parts = {"*": "[^/]+/", "#": "(?:[^/]+/)*", "a*": "a[^/]*/"}
    expected = re.fullmatch("".join(parts.get(word, f"{word}/") for word in pattern), "/".join(words) + "/")
    assert AddressRules(["/".join(pattern)], "").allows("/".join(words)) is (expected is not None)


def test_a_look_up_ends_whatever_the_combinations_of_words() -> None:
    rules = AddressRules(["/".join(["#", "a"] * 30) + "/z"], "")
    assert not rules.allows("/".join(["a"] * 512))  # by trying one after the other it would take years


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("a/b#", "a/b/#"),
        ("#foo", "#/foo"),
        ("x/#y/z", "x/#/y/z"),
        ("a#b", "a/#/b"),
        ("jobs/#*", "jobs/#"),
        ("jobs/##", "jobs/#"),
        ("jobs/**", "jobs/#"),
        ("a*b", "a*"),
        ("x/${usr}", "x/${user}"),
        ("x/${user", "x/${user}"),
        ("in/${user}*", "in/${user}/#"),
        ("/", "#"),
    ],
)
def test_a_pattern_that_means_something_else_is_refused_with_what_is_right(pattern: str, nearest: str) -> None:
    with pytest.raises(RuleError) as refused:
        check_pattern(pattern)
    assert refused.value.nearest == nearest
    check_pattern(nearest)


@given(st.text(alphabet="ab*#/.", min_size=1, max_size=12))
def test_what_is_proposed_for_a_pattern_leads_to_one_that_is_right(pattern: str) -> None:
    seen = {pattern}
    while (wrong := _refused(pattern)) is not None:
        assert wrong.nearest is not None
        pattern = wrong.nearest
        assert pattern not in seen
        seen.add(pattern)


def _refused(pattern: str) -> RuleError | None:
    try:
        check_pattern(pattern)
    except RuleError as wrong:
        return wrong
    return None


@pytest.mark.parametrize(
    ("rule", "nearest"),
    [
        ("10.0.0.1/8", "10.0.0.0/8"),
        ("fe80::1/10", "fe80::/10"),
        ("10.0.0.9-10.0.0.1", "10.0.0.1-10.0.0.9"),
        ("host.example", None),
        ("10.0.0.1-::1", None),
        ("10.0.0.0/33", None),
        ("300.1.1.1", None),
        ("", None),
        ("-", None),
    ],
)
def test_a_rule_of_hosts_that_cannot_be_read_is_refused(rule: str, nearest: str | None) -> None:
    with pytest.raises(RuleError) as refused:
        parse_hosts(rule)
    assert refused.value.nearest == nearest


@given(st.ip_addresses(v=4), st.integers(0, 32))
def test_an_address_is_in_its_own_network(address: object, size: int) -> None:
    network = ipaddress.ip_network(f"{address}/{size}", strict=False)
    assert HostRules([str(network)]).allows(str(address))


@pytest.mark.parametrize(
    ("patterns", "others"),
    [
        (["#"], ["a/#", "b", "*", "${user}/x"]),
        (["a/#"], ["a", "a/x", "a/*", "/a/#", "a.b.c*"]),
        (["/a/b/"], ["a.b"]),
        (["a/*", "b"], ["b", "a/x*", "a/${user}"]),
        (["*/x/#"], ["a/x", "*/x/y/#"]),
        (["#/z"], ["z", "a/b/z", "#/y/z"]),
        (["${user}/#"], ["${user}/in"]),
        (["job*"], ["jobs", "job*", "jobs-*"]),
    ],
)
def test_wider_patterns_fit_all_of_narrower_ones(patterns: list[str], others: list[str]) -> None:
    assert fit_all_of(patterns, others)
    assert not fit_all_of(["no"], others)


@pytest.mark.parametrize(
    ("pattern", "other"),
    [("a/*", "a/#"), ("a/*", "a"), ("a/x*", "a/*"), ("$*", "${user}"), ("*", "a/b"), ("a/#/z", "a/#"), ("", "a")],
)
def test_patterns_do_not_fit_all_of_what_is_wider_or_others(pattern: str, other: str) -> None:
    assert not fit_all_of([pattern] if pattern else [], [other])


@given(st.lists(PATTERN_WORDS, min_size=1, max_size=4), st.lists(PATTERN_WORDS, min_size=1, max_size=4), WORD_ROWS)
def test_what_fits_a_pattern_fits_what_is_said_to_be_wider(wide: list[str], narrow: list[str], row: list[str]) -> None:
    wider, narrower, address = ("/".join(words) for words in (wide, narrow, row))
    if fit_all_of([wider], [narrower]) and AddressRules([narrower], "u").allows(address):
        assert AddressRules([wider], "u").allows(address)
