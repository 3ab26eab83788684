"""Table of treatments by address: prefixes and patterns of whole words, the built-in ones below the configured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from mesh_config.models import DEFAULT_ADDRESSES, AddressSettings, Treatment
from mesh_config.multi_pattern_matcher import ANY_WORD, ANY_WORDS, EXACT, MultiPatternMatcher, Token
from mesh_config.multi_pattern_matcher import split_words as split_words  # noqa: PLC0414 - for rings without it
from router.core.errors import LocalError

_EXACT_RANK, _ANY_WORD_RANK, _END_RANK, _ANY_WORDS_RANK = range(4)


def pattern_words(settings: AddressSettings) -> tuple[str, ...]:
    """The words of one entry's pattern; a prefix is the pattern of its own words, literally, and then any.

    Raises:
        LocalError: not exactly one of prefix and pattern is given, or it has no word.
    """
    text = settings.prefix if settings.prefix is not None else settings.pattern
    if text is None or (settings.prefix is not None and settings.pattern is not None):
        raise LocalError("an address entry has either a prefix or a pattern")
    stripped = text.strip("/.")
    if not stripped:
        raise LocalError("the prefix or pattern of an address entry is empty")
    words = tuple(split_words(stripped))
    if settings.prefix is None:
        return words
    if ANY_WORD in words or ANY_WORDS in words:
        raise LocalError(f"`*` and `#` are words of a pattern, not of the prefix {text!r}")
    return (*words, ANY_WORDS)


def precedence(words: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Sort key of a pattern: of all that match an address, the smallest wins.

    The first word where two patterns differ decides: an exact word before `*`, before the pattern's end, before `#`;
    so the longest prefix wins. The words themselves only make the order total.
    """
    ranks = [_rank(word) for word in words]
    return (*ranks, _END_RANK), tuple(words)


def is_branching(words: Sequence[str]) -> bool:
    """Whether the words of an address leave open where they are in the pattern, so that a dictionary doesn't do."""
    return ANY_WORD in words or ANY_WORDS in words[:-1]


def _rank(word: str) -> int:
    if word == ANY_WORD:
        return _ANY_WORD_RANK
    return _ANY_WORDS_RANK if word == ANY_WORDS else _EXACT_RANK


_NONE: Final = 1 << 30
"""Precedence of a node where no pattern ends: worse than any."""


@attrs.define(eq=False)
class _Node:
    """One word of the trie; its place is among the patterns sorted by precedence, 0 the first."""

    words: dict[str, _Node] = attrs.field(factory=dict)
    place: int = _NONE
    """Place of the entry that ends here."""
    place_of_rest: int = _NONE
    """Place of the entry that ends here with a `#` more: it matches whatever follows."""


@attrs.frozen(kw_only=True)
class AddressRule:
    """Treatment of the addresses of one entry, or of those of none."""

    treatment: Treatment
    distance: float
    """Weight of a unit of a path's cost for a balanced message, messages per subscriber."""
    group: int
    """Place of the entry in `TreatmentTable.groups`, another one in another table; their count for those of none."""
    is_configured: bool
    """Whether there is an entry, configured or built in: only without one is a neighbor's hint asked."""


class TreatmentTable:
    """The treatments of a router's addresses, unchangeable.

    A table of prefixes costs one dictionary look-up for each word. Patterns with `*`, or with `#` before their end, are
    an automaton, whose cost goes by their words and those of the address.
    """

    def __init__(self, settings: Iterable[AddressSettings], default: Treatment, distance: float = 0.0) -> None:
        """Make the table.

        Of two entries for the same pattern the later wins, and any entry wins over the built-in one.

        Args:
            settings: configured entries, each with either a prefix or a pattern.
            default: treatment where nothing matches.
            distance: what a unit of cost is worth where no entry says so, messages.
        Raises:
            LocalError: an entry without exactly one of prefix and pattern.
        """
        entries = {pattern_words(entry): entry for entry in (*DEFAULT_ADDRESSES, *settings)}
        ordered = sorted(entries, key=precedence)
        self._rules = [_rule(entries[words], place, distance) for place, words in enumerate(ordered)]
        self._other = AddressRule(treatment=default, distance=distance, group=len(ordered), is_configured=False)
        self.groups = [_label(entries[words]) for words in ordered]
        """The prefix or pattern of each entry, as it is written, in the order in which they are looked at."""
        self._root = _Node()
        branching = [(place, words) for place, words in enumerate(ordered) if is_branching(words)]
        self._places = [place for place, _ in branching]
        """Places of the automaton's patterns, in their order."""
        self._automaton = MultiPatternMatcher([_token(word) for word in words] for _, words in branching)
        for place, words in enumerate(ordered):
            if not is_branching(words):
                self._insert(words, place)

    def _insert(self, words: Sequence[str], place: int) -> None:
        node = self._root
        for word in words:
            if word == ANY_WORDS:
                node.place_of_rest = place
                return
            node = node.words.setdefault(word, _Node())
        node.place = place

    def lookup(self, text: str) -> Treatment:
        """The treatment of the address *text*, normalised (`Address.text`), with its virtual host if it has one."""
        return self.rule(text).treatment

    def rule(self, text: str) -> AddressRule:
        """Everything that holds for the address *text*, normalised, with its virtual host if it has one."""
        place = self._place(text)
        return self._other if place == _NONE else self._rules[place]

    def _place(self, text: str) -> int:
        """The precedence of the best pattern that matches; _NONE when none does."""
        words = split_words(text)
        number = self._automaton.first(words)
        best = _NONE if number is None else self._places[number]
        node: _Node | None = self._root
        for word in words:
            assert node is not None
            best = min(best, node.place_of_rest)
            node = node.words.get(word)
            if node is None:
                return best
        assert node is not None
        return min(best, node.place, node.place_of_rest)


def _rule(entry: AddressSettings, place: int, distance: float) -> AddressRule:
    own = entry.distance_messages
    return AddressRule(
        treatment=entry.treatment, distance=distance if own is None else own, group=place, is_configured=True
    )


def _label(entry: AddressSettings) -> str:
    return entry.prefix if entry.prefix is not None else entry.pattern or ""


def _token(word: str) -> Token:
    return (word, "") if word in (ANY_WORD, ANY_WORDS) else (EXACT, word)
