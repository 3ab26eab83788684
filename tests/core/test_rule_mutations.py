"""The mutations of the credit rule fit the sources, so that `tox -e mutations` can make each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import router
from tests.measure.mutations.rule_mutations import MUTATIONS, Mutation

SOURCES = Path(router.__file__).parents[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_what_a_mutation_changes_stands_in_its_module_once(mutation: Mutation) -> None:
    source = (SOURCES / mutation.path).read_text(encoding="utf-8")
    assert mutation.applied(source) != source
