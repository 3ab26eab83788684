"""Addresses in use keep their treatment when the settings change, and the answer names them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from mesh_config.models import AddressSettings, Treatment
from router.runtime import Runtime
from router.views.kept_treatments import NAMED, kept_treatments, treatments_of
from tests.engine.test_tenants import BLUE, enter
from tests.helpers.engine import Bench

NEWS = AddressSettings(prefix="news", treatment=Treatment.MULTICAST)
SAID = "addresses in use keep their treatment as long as anybody uses them: "


def kept(runtime: Runtime, **changed: Any) -> list[str]:
    """What is said after a change of settings."""
    settings, before = runtime.settings, runtime.fib.treatments
    runtime.take_settings(attrs.evolve(settings, **changed))
    return kept_treatments(runtime.fib, before, settings.vhosts)


@pytest.fixture
def router(bench: Bench) -> Runtime:
    return bench.router("A")


def subscribe(bench: Bench, router: Runtime, *addresses: str) -> None:
    client = bench.client(router)
    for address in addresses:
        client.receiver(address)
    bench.run()


def test_addresses_in_use_are_named(bench: Bench, router: Runtime) -> None:
    subscribe(bench, router, "news/z", "other")
    assert kept(router, addresses=(NEWS,)) == [f"{SAID}news/z"]
    subscribe(bench, router, "news/y")
    assert kept(router, addresses=(NEWS, AddressSettings(prefix="x"))) == [f"{SAID}news/z"]
    assert kept(router, addresses=()) == [f"{SAID}news/y"]


def test_an_address_that_nobody_uses_any_more_is_not_named(bench: Bench, router: Runtime) -> None:
    client = bench.client(router)
    client.receiver("news/z")
    bench.run()
    client.wire.cut()
    bench.run()
    bench.advance(60.0)
    assert kept(router, addresses=(NEWS,)) == []


def test_of_many_addresses_some_are_named_and_the_others_counted(bench: Bench, router: Runtime) -> None:
    subscribe(bench, router, *(f"news/{number:02}" for number in range(NAMED + 3)))
    (said,) = kept(router, addresses=(NEWS,))
    assert said.endswith(f"news/{NAMED - 1:02} and 3 more")


def test_another_default_holds_for_new_addresses(bench: Bench, router: Runtime) -> None:
    subscribe(bench, router, "jobs")
    assert kept(router, default_treatment=Treatment.CLOSEST) == [f"{SAID}jobs"]
    assert kept(router, default_treatment=Treatment.BALANCED) == []


def test_another_worth_of_distance_holds_for_new_addresses(bench: Bench, router: Runtime) -> None:
    subscribe(bench, router, "jobs")
    before = router.settings
    farther = attrs.evolve(before.forwarding, distance_messages=5.0)
    assert kept(router, forwarding=farther) == [f"{SAID}jobs"]
    assert treatments_of(router.settings) != treatments_of(before)


def test_what_a_neighbor_has_given_its_treatment_is_not_named(bench: Bench) -> None:
    one, other = bench.router("A"), bench.router("B", addresses=(NEWS,))
    bench.join(one, other)
    subscribe(bench, other, "news/z")
    bench.advance(5.0)
    assert one.fib.find("news/z") is not None
    assert kept(one, addresses=(AddressSettings(prefix="x"),)) == []


def test_an_address_of_a_virtual_host_is_named_by_what_holds_for_it_inside(bench: Bench) -> None:
    router = bench.router("A", vhosts=(BLUE,))
    enter(bench, router, "blue").receiver("news/z")
    bench.run()
    assert kept(router, addresses=(NEWS,)) == [f"{SAID}blue/news/z"]
    assert kept(router, addresses=()) == []
