"""The mutations fit the sources, and plays tell a rule that is spoilt from the one that is not."""

from __future__ import annotations

import builtins
import keyword
import re
from pathlib import Path

import pytest

import router
from tests.measure.mutations.__main__ import chosen, copy_sources, judge
from tests.measure.mutations.rule_mutations import MUTATIONS, Mutation

LEAST = 22


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_changes_one_place_of_its_module(mutation: Mutation) -> None:
    source = (Path(router.__file__).parent.parent / mutation.path).read_text(encoding="utf-8")
    changed = mutation.applied(source)
    assert changed != source
    compile(changed, mutation.path, "exec")
    known = {*re.findall(r"[A-Za-z_]\w*", source), *keyword.kwlist, *dir(builtins)}
    assert set(re.findall(r"[A-Za-z_]\w*", mutation.new)) <= known


def test_mutations_are_many_and_each_spoils_something_else() -> None:
    assert len({(one.module, one.old, one.new) for one in MUTATIONS}) == len(MUTATIONS) >= LEAST
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS)


def test_plays_notice_a_spoilt_rule_and_let_the_right_one_pass(tmp_path: Path) -> None:
    sources = copy_sources(tmp_path)
    (spoilt,) = chosen(["circuits hold is dealt a second time"])
    assert judge(spoilt, sources, plays=1).play
    assert not judge(None, sources, plays=1).play
