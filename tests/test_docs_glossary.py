"""Words of which names of modules and classes consist: the glossary explains each, or any engineer brings it along."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import router

PACKAGE = Path(router.__file__).parent
GLOSSARY = Path(__file__).parent.parent / "docs" / "reference" / "glossary.md"
FOLDERS = ("core", "dataplane", "engine", "guard", "net")
"""What runs for each message, update and frame. Commands, settings and measurements have the words of other trades."""

SPECIFIED = """
    accepted adjacency amqp anycast client endpoint epoll handshake http lsdb open peer rabbitmq received
    receiver resumed rpc section sequence socket spf subscription tcp tls topology trio vhost
"""
"""Words of AMQP, routing, operating systems and libraries, each in the sense of its specification or manual."""
COMMON = """
    action answer arrival authenticated authentication backlog backpressure batch bucket budget byte call clock
    code codec comparison computation constant context controlplane copier copy counter credential database
    decode diff doubling duplicate duration entry envelope error event exclusion fair fanout field file format grant
    handler histogram identity ids internal key lifecycle limit list local manager meter name node notifier password
    policy predictor protocol queue range rate report result route rule scanner scheduler scope segment
    selection server service setting step sync table terminal throttle timer timing token total tracker transit
    type user value view writer
"""
"""Words that programs use for what everybody takes them for."""
INFLECTED = """
    all and arrived attached awaiting by changed check close closed current denial denied due ended escaping
    excluded failed first fixed foreign held incoming inflight install invalid kept kind known large last left
    lowered management many message outgoing outside over own pair part partly place player polled progress
    queued raised reading record recorded recording refusal refused remote reopened replayable return rewriting
    right selection send sent shared skipping spent tell throttled to told too toward undetached unknown
    unreadable unsupported up violating violation waiting withdraw withdrew
"""
"""English, and forms of words that are explained."""
UNEXPLAINED = {*SPECIFIED.split(), *COMMON.split(), *INFLECTED.split()}


def stem(word: str) -> str:
    """A word in the singular."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith(("ss", "us")):
            return word.removesuffix(ending) + instead
    return word


def words_of(name: str) -> set[str]:
    """The words of a name, in the singular and in lower case."""
    return {stem(word.lower()) for word in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", name)}


def names() -> set[str]:
    """Names of the modules and public classes of the folders."""
    files = [path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py") if path.name != "__init__.py"]
    classes = {
        node.name
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    return classes | {path.stem for path in files}


def terms() -> list[str]:
    """All terms of the glossary."""
    found = re.findall(r"^(\S[^\n]*)\n: ", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) > 100
    return found


def explained() -> set[str]:
    """The words of all terms of the glossary."""
    return {word for term in terms() for word in words_of(term)}


def test_a_term_for_several_things_says_of_which_and_means_only_these() -> None:
    names = [(name.partition(" (")[0], "(" in name) for term in terms() for name in term.split(", ")]
    several = {name for name, count in Counter(name for name, _ in names).items() if count > 1}
    assert {"drain", "group", "flood", "window"} <= several
    assert [name for name, is_of_one in names if name in several and not is_of_one] == []


def test_words_that_management_has_for_the_mesh_are_explained() -> None:
    # Of `stat` and `whatif`, and of management; those that are common English are left out.
    words = ("boot number", "virtual host", "isolated", "tenant", "brokered", "flap", "site", "headroom", "starved")
    assert [word for word in words if not any(word in term.split(", ") for term in terms())] == []


def test_every_word_of_a_name_is_in_the_glossary_or_needs_no_explanation() -> None:
    known = explained() | UNEXPLAINED
    strange = {name: sorted(words_of(name) - known) for name in names() if not words_of(name) <= known}
    assert strange == {}


def test_words_that_need_no_explanation_have_none_and_are_used() -> None:
    used = {word for name in names() for word in words_of(name)}
    assert sorted(UNEXPLAINED - used) == []
    assert sorted(UNEXPLAINED & explained()) == []
