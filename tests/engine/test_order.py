"""Order: what one sender sends comes to one subscriber in the order in which it was sent, while the path stays."""

from __future__ import annotations

import random

import pytest

from tests.helpers.engine import Bench
from tests.helpers.peer import message

BALANCED = "openstack.org/om/rpc/anycast/openstack/topic"
CLOSEST = "exclusive.topic"


def test_a_message_without_credit_waits_at_its_address_from_its_own_turn_on(bench: Bench) -> None:
    """Whatever its controller knew of credit that came and went before."""
    router = bench.router("A")
    receiver = bench.client(router).receiver(BALANCED, credit=1).accepting()
    sender = bench.client(router).sender(None)
    for number in range(2):
        sender.send(message(number, address=BALANCED))
        bench.run()
    receiver.flow(1)
    bench.run()
    assert receiver.bodies == [0, 1]
    entry = router.fib.find(BALANCED)
    assert entry is not None
    for number in range(2, 5):
        sender.send(message(number, address=BALANCED))
        bench.run()
        assert len(entry.waiting) == number - 1


@pytest.mark.parametrize("address", [BALANCED, CLOSEST])
@pytest.mark.parametrize("seed", range(20))
def test_a_subscriber_that_takes_one_at_a_time_gets_them_in_order(seed: int, address: str) -> None:
    """A busy subscriber at the sender's router never settles; another one, at the next router, takes one at a time.
    What several connections bring shares turns."""
    bench = Bench(seed=seed, shares_turns=True)
    rng = random.Random(seed)
    a, b = bench.mesh(("A", "B"))
    busy = [bench.client(a).receiver(address, credit=100)] if address == BALANCED else []
    idle = bench.client(b).receiver(address, credit=1)
    sender = bench.client(a).sender(None)
    bench.run()
    sent = settled = 0
    for _ in range(5000):
        if sent < 60 and sender.link.credit > 0 and rng.random() < 0.6:
            sender.send(message(sent, address=address))
            sent += 1
        if settled < len(idle.messages) and rng.random() < 0.6:
            idle.messages[settled].settle()
            settled += 1
            idle.flow(1)
        bench.step()
        bench.now += 0.001
        if len(idle.messages) + sum(len(receiver.messages) for receiver in busy) == 60:
            break
    assert len(idle.bodies) > 20
    assert idle.bodies == sorted(idle.bodies)
    assert sorted(idle.bodies + [body for receiver in busy for body in receiver.bodies]) == list(range(60))
    bench.close()
