"""Whatever bytes or files come from outside, each entry point reads them or refuses them as it says.

Short and always the same: seeds, what coverage has found (`corpus/`), what broke a promise once (`finds/`), and some
thousands of inputs made of these. AMQP_MESH_FUZZ_INPUTS and AMQP_MESH_FUZZ_SEED choose other ones.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz import corpus
from tests.fuzz.volume import ALL, run

INPUTS = int(os.environ.get("AMQP_MESH_FUZZ_INPUTS", "1500"))
"""For each entry point that takes bytes; a tenth of it for each kind of file."""
SEED = int(os.environ.get("AMQP_MESH_FUZZ_SEED", "1"))
FINDS = [(name, find) for name in ALL for find in corpus.finds(name)]
GROWTHS = (64, 128, 256)
"""How often a piece of an input stands in it, to see how the work grows."""


@pytest.mark.parametrize("name", ALL)
def test_seeds_and_what_is_kept_break_no_promise(name: str) -> None:
    entry = ALL[name]
    seeds = entry.seeds()
    assert sum(entry.check(data) is not None for data in seeds) >= len(seeds) // 4, "seeds that nobody reads"
    for data in corpus.kept(name):
        entry.check(data)


@pytest.mark.parametrize(("name", "find"), FINDS)
def test_what_broke_a_promise_once_breaks_none(name: str, find: str) -> None:
    ALL[name].check(corpus.finds(name)[find])


@pytest.mark.parametrize("name", ALL)
def test_changed_inputs_break_no_promise(name: str) -> None:
    entry = ALL[name]
    found, _, taken = run(entry, INPUTS // 10 if entry.is_file else INPUTS, SEED)
    assert not found, "\n".join(f"{where}: {data!r}\n{told}" for where, (data, told) in found.items())
    assert taken or entry.is_file, "nothing was read: the inputs are too far from what they were made of"
