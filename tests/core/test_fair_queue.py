"""Turns of clients: each in its order, none behind the many messages of another."""

from __future__ import annotations

import random
from collections import deque

import pytest

from router.core.forwarding.fair_queue import FairQueue


def test_clients_have_turns_and_each_its_own_order() -> None:
    queue = FairQueue()
    for number in range(3):
        queue.add(("many", number), "many")
    queue.add(("one", 0), "one")
    assert (len(queue), queue.client_count()) == (4, 2)
    assert [queue.pop() for _ in range(4)] == [("many", 0), ("one", 0), ("many", 1), ("many", 2)]
    assert (len(queue), queue.client_count()) == (0, 0)


def test_the_youngest_is_the_message_that_came_last_of_those_here() -> None:
    queue = FairQueue()
    for number in range(3):
        queue.add(number, number % 2)
    assert queue.youngest() == 2
    queue.discard(2)
    assert queue.youngest() == 1
    queue.clear()
    with pytest.raises(LookupError):
        queue.youngest()


def test_clients_that_are_new_each_time_keep_no_standing_client_from_its_turn() -> None:
    queue = FairQueue()
    for number in range(3):
        queue.add(("standing", number), "standing")
    served: list[object] = []
    for number in range(100):
        for each in (2 * number, 2 * number + 1):  # more than are served
            queue.add(("new", each), each)
        served.append(queue.pop())
    assert [message for message in served if message[0] == "standing"] == [("standing", number) for number in range(3)]


def test_who_sends_one_message_at_a_time_has_as_many_turns_as_who_sends_many() -> None:
    queue = FairQueue()
    for number in range(100):
        for client in ("a", "b"):
            queue.add((client, number), client)
    queue.add(("single", 0), "single")
    served = []
    for number in range(1, 91):
        served.append(queue.pop())
        if served[-1][0] == "single":
            queue.add(("single", number), "single")
    assert [sum(message[0] == client for message in served) for client in ("a", "b", "single")] == [30, 30, 30]


def test_nothing_can_be_taken_out_of_an_empty_queue() -> None:
    with pytest.raises(LookupError, match="no message waits"):
        FairQueue().pop()


def test_what_is_taken_out_in_between_is_not_served() -> None:
    queue = FairQueue()
    queue.add("a", 1)
    queue.add("b", 2)
    assert queue.discard("a")
    assert not queue.discard("a")
    assert queue.clear() == ["b"]
    assert not queue


def test_nobody_waits_for_more_than_one_message_of_each_other_client() -> None:
    rng = random.Random(7)
    queue = FairQueue()
    model: dict[int, deque[int]] = {}
    passed_over: dict[int, dict[int, int]] = {}
    for number in range(5000):
        if rng.random() < 0.55:
            client = min(int(rng.expovariate(0.5)), 9)
            queue.add(number, client)
            model.setdefault(client, deque()).append(number)
        elif model and rng.random() < 0.1:
            client = rng.choice(list(model))
            message = rng.choice(model[client])
            assert queue.discard(message)
            model[client].remove(message)
        elif model:
            message = queue.pop()
            client = next(c for c, waiting in model.items() if waiting and waiting[0] == message)
            model[client].popleft()
            for other in model:
                if other != client:
                    count = passed_over.setdefault(other, {})
                    count[client] = count.get(client, 0) + 1
                    assert count[client] <= 1
            passed_over.pop(client, None)
        for client in [c for c, waiting in model.items() if not waiting]:
            del model[client]
            passed_over.pop(client, None)
        assert len(queue) == sum(map(len, model.values()))
        assert queue.client_count() == len(model)
