"""The treatment of an address is that of the best pattern that matches it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mesh_config.models import DEFAULT_ADDRESSES, AddressSettings, Treatment
from router.core.addressing.treatment_table import TreatmentTable, pattern_words, precedence, split_words
from router.core.errors import LocalError

MULTICAST, CLOSEST, BALANCED = Treatment.MULTICAST, Treatment.CLOSEST, Treatment.BALANCED


def matches(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Brute force: every way in which each `#` may be filled."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(matches(pattern[1:], words[count:]) for count in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and matches(pattern[1:], words[1:])


def reference(settings: Sequence[AddressSettings], default: Treatment, text: str) -> Treatment:
    """The treatment found by trying every entry."""
    treatments = {pattern_words(entry): entry.treatment for entry in (*DEFAULT_ADDRESSES, *settings)}
    found = [words for words in treatments if matches(words, split_words(text))]
    return treatments[min(found, key=precedence)] if found else default


@pytest.mark.parametrize(
    ("text", "treatment"),
    [
        ("openstack.org/om/rpc/multicast/exchange/topic", MULTICAST),
        ("openstack.org/om/rpc/unicast/exchange/topic/server", CLOSEST),
        ("openstack.org/om/rpc/anycast", BALANCED),
        ("openstack.org/om/notify/multicast/x", MULTICAST),
        ("openstack.org/om/notify/unicast/x", CLOSEST),
        ("exclusive.exchange.topic", CLOSEST),
        ("exclusive/exchange", CLOSEST),
        ("exclusively", BALANCED),
        ("unicast/x", BALANCED),
        ("broadcast", MULTICAST),
        ("anything/else", BALANCED),
    ],
)
def test_built_in_prefixes_match_whole_words(text: str, treatment: Treatment) -> None:
    assert TreatmentTable([], BALANCED).lookup(text) is treatment


def test_configured_entries_override_the_built_in_ones() -> None:
    table = TreatmentTable([AddressSettings(prefix="broadcast", treatment=CLOSEST)], MULTICAST)
    assert table.lookup("broadcast/x") is CLOSEST
    assert table.lookup("other") is MULTICAST


def test_the_longest_prefix_wins() -> None:
    table = TreatmentTable(
        [AddressSettings(prefix="a", treatment=CLOSEST), AddressSettings(prefix="a.b", treatment=MULTICAST)], BALANCED
    )
    assert table.lookup("a/b/c") is MULTICAST
    assert table.lookup("a.bc") is CLOSEST
    assert table.lookup("a") is CLOSEST
    assert table.lookup("ab") is BALANCED


def test_an_exact_word_comes_before_any_word_before_any_words() -> None:
    table = TreatmentTable(
        [
            AddressSettings(pattern="a/b/#", treatment=MULTICAST),
            AddressSettings(pattern="a/*/c", treatment=CLOSEST),
            AddressSettings(pattern="a/#", treatment=BALANCED),
        ],
        CLOSEST,
    )
    assert table.lookup("a/b/c") is MULTICAST
    assert table.lookup("a/x/c") is CLOSEST
    assert table.lookup("a/x/d") is BALANCED


def test_a_pattern_ends_where_its_words_end() -> None:
    table = TreatmentTable([AddressSettings(pattern="a/*", treatment=MULTICAST)], BALANCED)
    assert table.lookup("a/b") is MULTICAST
    assert table.lookup("a") is BALANCED
    assert table.lookup("a/b/c") is BALANCED


def test_built_in_entries_count_as_configured() -> None:
    table = TreatmentTable([AddressSettings(prefix="a")], BALANCED)
    assert table.rule("a/b").is_configured
    assert table.rule("broadcast/x").is_configured
    assert not table.rule("b").is_configured


@pytest.mark.parametrize(
    "entry",
    [
        AddressSettings(),
        AddressSettings(prefix="a", pattern="b"),
        AddressSettings(prefix=""),
        AddressSettings(pattern="/"),
        AddressSettings(prefix="a/#"),
    ],
)
def test_an_entry_that_says_nothing_clear_is_refused(entry: AddressSettings) -> None:
    with pytest.raises(LocalError):
        TreatmentTable([entry], BALANCED)


WORDS = st.sampled_from(["a", "b", "c"])
PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=5).map("/".join)
ENTRIES = st.builds(AddressSettings, pattern=PATTERNS, treatment=st.sampled_from(Treatment)) | st.builds(
    AddressSettings,
    prefix=st.lists(WORDS, min_size=1, max_size=3).map(".".join),
    treatment=st.sampled_from(Treatment),
)


@given(st.lists(ENTRIES, max_size=8), st.sampled_from(Treatment), st.lists(WORDS, min_size=1, max_size=6))
@example(
    [AddressSettings(pattern="#/a/#", treatment=CLOSEST), AddressSettings(pattern="#/b", treatment=MULTICAST)],
    BALANCED,
    ["b", "a", "b"],
)
def test_the_trie_agrees_with_trying_every_pattern(
    entries: list[AddressSettings], default: Treatment, words: list[str]
) -> None:
    text = "/".join(words)
    assert TreatmentTable(entries, default).lookup(text) is reference(entries, default, text)
