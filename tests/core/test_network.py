"""The simulated network: order, chance by the seed alone, loss and copies."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from router.simulation.network import Network, NetworkConditions


def run(network: Network) -> None:
    while network.next_time() < 100.0:
        network.step()


def arrivals(seed: int, conditions: NetworkConditions, count: int = 50) -> list[tuple[float, str, int]]:
    network = Network(random.Random(seed), conditions)
    found: list[tuple[float, str, int]] = []
    for number in range(count):
        for stream in "xy":
            network.send(stream, lambda stream=stream, number=number: found.append((network.now, stream, number)))
    run(network)
    assert network.carried == len(found)
    return found


@given(st.integers(0, 2**32))
def test_parcels_of_a_stream_keep_their_order(seed: int) -> None:
    found = arrivals(seed, NetworkConditions(delay_s=0.001, jitter_s=0.5))
    for stream in "xy":
        assert [number for _, of, number in found if of == stream] == list(range(50))
    assert [time for time, _, _ in found] == sorted(time for time, _, _ in found)
    assert all(0.001 <= time <= 0.502 for time, _, _ in found)


def test_the_same_seed_gives_the_same_arrivals() -> None:
    conditions = NetworkConditions(loss=0.3, duplication=0.3, jitter_s=1.0)
    assert arrivals(1, conditions) == arrivals(1, conditions)
    assert arrivals(1, conditions) != arrivals(2, conditions)


def test_loss_and_duplication() -> None:
    assert arrivals(1, NetworkConditions(loss=1.0)) == []
    assert len(arrivals(1, NetworkConditions(duplication=1.0))) == 200
    assert 50 < len(arrivals(1, NetworkConditions(loss=0.5), count=100)) < 150


def test_calls_of_one_time_come_in_the_order_asked_for_and_never_in_the_past() -> None:
    network = Network(random.Random(0), NetworkConditions())
    order: list[tuple[int, float]] = []
    for number, time in enumerate([2.0, 1.0, 2.0, 0.0]):
        network.call_at(time, lambda number=number: order.append((number, network.now)))
    network.call_at(1.0, lambda: network.call_at(0.5, lambda: order.append((9, network.now))))
    run(network)
    assert order == [(3, 0.0), (1, 1.0), (9, 1.0), (0, 2.0), (2, 2.0)]
