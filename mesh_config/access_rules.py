"""Rules of policy as texts of a settings file: which addresses, and which remote hosts. Parsed here, and applied.

A rule that cannot be read raises `RuleError`, which says what was expected and what would be right.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from mesh_config.multi_pattern_matcher import (
    ANY_WORD,
    ANY_WORDS,
    BEGINNING,
    EXACT,
    MultiPatternMatcher,
    Token,
    split_words,
)

USER: Final = "${user}"
"""Placeholder in a pattern of addresses for the name of the user, as one word (`user_word`)."""
ANY_HOST: Final = "*"
MOST_COMPARED: Final = 10_000
"""Pairs of patterns that are compared after a change of policy; beyond, only equal ones count."""
_NOBODY: Final = "\0"
"""Stands for the user while patterns are compared: no pattern has it."""

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_SUBSTITUTION = re.compile(r"\$\{[^}]*\}?")


class RuleError(ValueError):
    """A rule that cannot be read."""

    def __init__(self, message: str, *, expected: str, nearest: str | None = None) -> None:
        super().__init__(message)
        self.expected = expected
        self.nearest = nearest


def user_word(user: str) -> str:
    """Write the name of a user as one word of an address: `john.doe` as `john%2Edoe`.

    Else what is below `john` would be `john.doe`'s too, since `.` separates words.
    """
    return user.replace("%", "%25").replace(".", "%2E").replace("/", "%2F")


def check_pattern(text: str) -> None:
    """See that *text* is a pattern of addresses.

    Raises:
        RuleError: it is none, or one that gives more than it seems to.
    """
    for found in _SUBSTITUTION.findall(text):
        if found != USER:
            raise RuleError(f"nothing stands for `{found}`", expected=f"`{USER}`", nearest=text.replace(found, USER))
    if not text.strip("/."):
        raise RuleError("an empty pattern", expected="words", nearest=ANY_WORDS)
    if f"{USER}*" in text:
        raise RuleError(
            f"with `{USER}*` a user called `al` is given what is `alice`'s",
            expected="a `/` or `.` between them",
            nearest=text.replace(f"{USER}*", f"{USER}/{ANY_WORDS}"),
        )
    for word in split_words(text.strip("/.")):
        if word in (ANY_WORD, ANY_WORDS):
            continue
        if ANY_WORDS in word:
            raise RuleError(
                f"`#` within the word `{word}`",
                expected="`#` as a word of its own",
                nearest=text.replace(word, _apart(word)),
            )
        if ANY_WORD in word[:-1]:
            raise RuleError(
                f"`*` within the word `{word}`",
                expected="`*` as a word of its own, or at the end of one",
                # Elsewhere `**` means what `#` does here.
                nearest=text.replace(word, ANY_WORDS if not word.strip(ANY_WORD) else word[: word.index(ANY_WORD) + 1]),
            )


def _apart(word: str) -> str:
    """A word with `#` in it, as words: `#foo` as `#/foo`."""
    parts = (part if part == ANY_WORDS else part.strip(ANY_WORD) for part in re.split(f"({ANY_WORDS})", word))
    return "/".join(part for part, _ in groupby(filter(None, parts)))


class AddressRules:
    """Patterns of addresses with the name of one user put in."""

    def __init__(self, patterns: Iterable[str], user: str) -> None:
        """*patterns* are right by `check_pattern`. What a user's own name has of `*` and `#` are plain characters."""
        rows = [_tokens(text, user_word(user)) for text in patterns]
        self.allows_all = any(tokens == [(ANY_WORDS, "")] for tokens in rows)
        self._automaton = MultiPatternMatcher(rows)

    def allows(self, text: str) -> bool:
        """Whether one of them fits the normalised address *text*."""
        return self.allows_all or self._automaton.first(split_words(text)) is not None


def fit_all_of(patterns: Iterable[str], others: Iterable[str]) -> bool:
    """Whether every address that fits one of *others* fits one of *patterns*, as far as two patterns alone can tell.

    Args:
        patterns: right by `check_pattern`.
        others: likewise.
    """
    wide = {tuple(_tokens(text, _NOBODY)) for text in patterns}
    left = {tuple(_tokens(text, _NOBODY)) for text in others} - wide
    if len(left) * len(wide) > MOST_COMPARED:
        return False
    return all(any(_fits_all_of(each, narrow) for each in wide) for narrow in left)


def _fits_all_of(wide: tuple[Token, ...], narrow: tuple[Token, ...]) -> bool:
    """Whether every address that fits *narrow* fits *wide*; a no may be wrong."""
    reached = {0}
    """Places in *wide* that lie before what is left of it."""
    for kind, text in narrow:
        reached = _past_any_words(wide, reached)
        reached = {
            place if wide[place][0] == ANY_WORDS else place + 1
            for place in reached
            if place < len(wide) and _takes(wide[place], kind, text)
        }
    return len(wide) in _past_any_words(wide, reached)


def _past_any_words(wide: tuple[Token, ...], places: set[int]) -> set[int]:
    found = set(places)
    for place, (kind, _) in enumerate(wide):
        if kind == ANY_WORDS and place in found:
            found.add(place + 1)
    return found


def _takes(token: Token, kind: str, text: str) -> bool:
    """Whether one token fits whatever another one does."""
    own, beginning = token
    if own == ANY_WORDS:
        return True
    if kind == ANY_WORDS:
        return False
    if own == ANY_WORD:
        return True
    if kind == ANY_WORD:
        return False
    return text.startswith(beginning) if own == BEGINNING else (own, beginning) == (kind, text)


def _tokens(text: str, user: str) -> list[Token]:
    tokens: list[Token] = []
    for word in split_words(text.strip("/.")):
        if word in (ANY_WORD, ANY_WORDS):
            tokens.append((word, ""))
            continue
        is_beginning = word.endswith(ANY_WORD)
        text_of_word = word.removesuffix(ANY_WORD).replace(USER, user)
        tokens.append((BEGINNING if is_beginning else EXACT, text_of_word))
    return tokens


def parse_hosts(text: str) -> tuple[IpAddress, IpAddress] | None:
    """The first and the last address of a rule; None for every one.

    Raises:
        RuleError: it is neither an address, a network, a range nor `*`.
    """
    if text == ANY_HOST:
        return None
    first, is_range, last = text.partition("-")
    try:
        if is_range:
            ends = ipaddress.ip_address(first.strip()), ipaddress.ip_address(last.strip())
        elif "/" in text:
            network = ipaddress.ip_network(text, strict=False)
            if ipaddress.ip_address(text.partition("/")[0]) != network[0]:
                raise RuleError(f"`{text}` is within a network", expected="a network", nearest=str(network))
            ends = network[0], network[-1]
        else:
            ends = (ipaddress.ip_address(text),) * 2
    except RuleError:
        raise
    except ValueError as error:
        raise RuleError(
            f"`{text}` is no address of a host: {error}",
            expected="an address, a network (`10.1.0.0/16`), a range (`10.1.0.5-10.1.0.9`) or `*`; names are not looked"
            " up",
        ) from error
    if ends[0].version != ends[1].version:
        raise RuleError(f"`{text}` begins with IPv{ends[0].version}", expected="two ends of one kind")
    if int(ends[1]) < int(ends[0]):
        raise RuleError(f"`{text}` ends before it begins", expected="a range", nearest=f"{ends[1]}-{ends[0]}")
    return ends


class HostRules:
    """Remote hosts that are allowed."""

    def __init__(self, rules: Iterable[str]) -> None:
        """*rules* are right by `parse_hosts`."""
        parsed = [parse_hosts(rule) for rule in rules]
        self._allows_all = None in parsed
        self._ranges = [ends for ends in parsed if ends is not None]

    def allows(self, host: str) -> bool:
        """Whether *host*, an address without port, is one of them."""
        if self._allows_all:
            return True
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)  # a socket of IPv6 takes connections of IPv4 too
        address = mapped if mapped is not None else address
        return any(
            address.version == first.version and int(first) <= int(address) <= int(last) for first, last in self._ranges
        )
