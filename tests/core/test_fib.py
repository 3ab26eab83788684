"""The forwarding information base: what it remembers of the addresses that messages name has a bound."""

from __future__ import annotations

import pytest

from mesh_config.models import Treatment
from router.core.addressing.treatment_table import TreatmentTable
from router.core.forwarding.fib import LONGEST_TARGET, MOST_TARGETS, Fib
from router.core.ids_and_conditions import ConnectionId, RouterId

ME = RouterId("A")
NEIGHBOR = RouterId("B")


@pytest.fixture
def fib() -> Fib:
    table = Fib(ME, TreatmentTable((), Treatment.BALANCED))
    table.install_router(NEIGHBOR, ConnectionId(1), NEIGHBOR, 1, now=0.0)
    return table


def test_forms_of_an_address_are_remembered_in_bounded_number(fib: Fib) -> None:
    # an RPC server names the reply address of each of its clients, and clients come and go for ever
    entry = fib.target("_topo/0/B/temp.0")
    assert entry is not None
    for number in range(1, MOST_TARGETS + 1000):
        assert fib.target(f"_topo/0/B/temp.{number}") is entry
    assert len(entry.names) <= MOST_TARGETS
    assert len(entry.names) == len(set(entry.names))
    fib.check_invariants()


def test_a_long_form_of_an_address_is_not_remembered(fib: Fib) -> None:
    text = "_topo/0/B/" + "x" * LONGEST_TARGET
    entry = fib.target(text)
    assert entry is not None
    assert fib.target(text) is entry
    assert not entry.names
