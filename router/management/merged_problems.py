"""Problems that several routers tell of, merged: each once, the most urgent first, what follows from one beside it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from router.management.problem_kinds import PROBLEM_KINDS, SEEN_BY_ALL

CERTAIN: Final = 2
"""Closeness of a router to the cause of a problem: it tries in vain to connect, its own subscriber hangs, or it saw
with which router the subscribers were lost."""
OF_ADDRESS: Final = ("publishers-blocked", "subscriber-slow")
"""Kinds of problems of those who wait for a subscriber of an address, at its own router or another."""
FOLLOWING: Final = ("router-absent", "link-absent", "no-subscriber", *OF_ADDRESS, "memory", "dropped")
"""Problems that follow from the one beside which they are told; others are what else is known of it."""
MOST_BESIDE: Final = 4
"""Problems of one kind that are told beside another one; of further ones it is told how many there are."""
CAUSES_FIRST: Final = (
    "router-absent",
    "link-absent",
    "connector-failed",
    "router-drained",
    "flapping",
    "lost-for-a-while",
    "subscriber-hangs",
    "address-hangs",
    "no-subscriber",
    "publisher-floods",
    "subscriber-slow",
    "publishers-blocked",
    "memory",
    "dropped",
    "wrong-role",
    "router-refused",
)
"""Kinds of problems, causes first: of two kinds about one thing the earlier one is shown by itself; `address-hangs`
stands for problems of an address of which its router is certain."""

_WORD: Final = r"""(?:[\w@%+=:,./][\w@%+=:,./-]*|'(?!-)[^']*'(?:"'"'[^']*')*|\$'(?![-\\])(?:[^'\\]|\\.)*')"""
"""A word as `shell_word` writes it, that is no option."""
_COMMANDS: Final = re.compile(
    rf"amqp-mesh (?:stat \w+|top|manage get-log|resume)(?: --(?:router|address|by|wide|text)| {_WORD})*"
    rf"|openssl (?:crl|x509) -in {_WORD} -noout -(?:nextupdate|enddate)"
)
"""Commands that routers tell with their problems."""


@attrs.define
class ProblemNearestCause:
    """A problem as the router tells it that is nearest to its cause."""

    row: Mapping[str, Any]
    """Attributes of the problem."""
    seen_by: list[str]
    """Routers that tell of it, that one first."""
    also_at: list[str] = attrs.field(factory=list)
    """Routers where publishers wait for the subscribers that it is about."""
    beside: list[ProblemNearestCause] = attrs.field(factory=list)
    """Problems of the same cause, those that are most urgent first."""

    @property
    def command(self) -> str:
        """Command that shows more, to be pasted; empty if the router tells one that is none of those it may tell."""
        text = str(self.row["command"])
        return text if text.isprintable() and _COMMANDS.fullmatch(text) else ""

    def told_beside(self) -> Iterator[str]:
        """Sentences for the problems of the same cause, each with the word that says whether it follows."""
        for kind, count in Counter(str(each.row["kind"]) for each in self.beside).items():
            word = "so" if kind in FOLLOWING else "also"
            alike = (each.row["sentence"] for each in self.beside if each.row["kind"] == kind)
            for sentence in itertools.islice(alike, MOST_BESIDE):
                yield f"{word}: {sentence}"
            if count > MOST_BESIDE:
                yield f"{word}: {count - MOST_BESIDE} more like this"


def merged(told: Iterable[tuple[str, Mapping[str, Any]]]) -> list[ProblemNearestCause]:
    """Merge problems of several routers.

    Args:
        told: routers, each with a problem of it: with the attributes `kind`, `subject`, `closeness`, `about` and
            `explains`.
    Returns: what concerns the whole mesh once; what has its cause in another of them only beside that.
    """
    found: dict[tuple[str, ...], ProblemNearestCause] = {}
    for router, row in told:
        key = (row["kind"], row["subject"], *(() if row["kind"] in SEEN_BY_ALL else (router,)))
        known = found.get(key)
        if known is None:
            found[key] = ProblemNearestCause(row, [router])
        elif row["closeness"] > known.row["closeness"]:
            known.row = row
            known.seen_by.insert(0, router)
        else:
            known.seen_by.append(router)
    urgency = {kind: at for at, kind in enumerate(PROBLEM_KINDS)}
    urgent = sorted(found.values(), key=lambda each: urgency.get(str(each.row["kind"]), len(urgency)))
    causes = _by_what_they_explain(urgent)
    kept: list[ProblemNearestCause] = []
    waiting: dict[tuple[str, ...], ProblemNearestCause] = {}
    for each in urgent:
        cause = _cause(each, causes)
        is_told_elsewhere = each.row["kind"] in OF_ADDRESS and not each.row["closeness"]
        if cause is None and is_told_elsewhere:
            # Between two messages of a slow subscriber its own router has nothing to tell of it.
            cause = waiting.setdefault((each.row["kind"], *_words(each.row, "about")), each)
        if cause is None or cause is each:
            kept.append(each)
        elif is_told_elsewhere:
            cause.also_at += each.seen_by
        else:
            cause.beside.append(each)
    return kept


def _by_what_they_explain(problems: Sequence[ProblemNearestCause]) -> dict[str, ProblemNearestCause]:
    """Find the first cause of each thing that any of these is about."""
    found: dict[str, ProblemNearestCause] = {}
    for each in sorted(problems, key=_rank):
        for thing in _words(each.row, "explains"):
            found.setdefault(thing, each)
    return found


def _cause(problem: ProblemNearestCause, causes: Mapping[str, ProblemNearestCause]) -> ProblemNearestCause | None:
    """The problem that one is told beside, which is told itself; None where it is told by itself."""
    seen = problem
    while (nearer := _next(seen, causes)) is not None:
        seen = nearer
    return seen if seen is not problem else None


def _next(problem: ProblemNearestCause, causes: Mapping[str, ProblemNearestCause]) -> ProblemNearestCause | None:
    known = [causes[thing] for thing in _words(problem.row, "about") if thing in causes]
    return min((each for each in known if _rank(each) < _rank(problem)), key=_rank, default=None)


def _rank(problem: ProblemNearestCause) -> tuple[int, bool, bool]:
    """Order of causes: of two problems about one thing, the lower one is the cause of the other."""
    kind, closeness = problem.row["kind"], problem.row["closeness"]
    if kind in OF_ADDRESS:
        # A subscriber that hangs comes before all who send to it; two slow ones are no cause of each other.
        kind = "subscriber-slow" if closeness else "publishers-blocked"
        kind = "address-hangs" if closeness == CERTAIN else kind
    at = CAUSES_FIRST.index(kind) if kind in CAUSES_FIRST else len(CAUSES_FIRST)
    # A router before its links, and before the routers behind it.
    is_behind = kind == "router-absent" and len(_words(problem.row, "about")) > 1
    return at, str(problem.row["subject"]).startswith("link "), is_behind


def _words(row: Mapping[str, Any], attribute: str) -> Sequence[str]:
    """Value of an attribute; nothing of a router of an earlier version, which doesn't say."""
    return row.get(attribute) or ()
