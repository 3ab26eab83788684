"""A multicast to many subscribers of one router is copied in slices: others have their turns between them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator

import pytest

from router.dataplane.local_copier import FEW_COPIES, TURN_COPIES
from router.runtime import Runtime
from tests.engine.test_policy import everything
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import Peer, PeerReceiver, message

FANOUT = "broadcast/many"
MANY = FEW_COPIES + TURN_COPIES + 10


class Rounds:
    """A router of which the rounds are counted, with many subscribers of one client and a publisher."""

    def __init__(self, bench: Bench, *, credit: int = 10) -> None:
        self.bench = bench
        self.router: Runtime = bench.router("A")
        self.client = bench.client(self.router)
        self.receivers: list[PeerReceiver] = [self.client.receiver(FANOUT, credit=credit) for _ in range(MANY)]
        self.publisher = bench.client(self.router)
        self.sender = self.publisher.sender(FANOUT)
        bench.advance(0.1)

    def feed(self, peer: Peer) -> bool:
        """The router reads what a client has written. Returns: whether something is left for the next round."""
        plug = next(end for end in peer.wire.ends if isinstance(end, Plug))
        plug.handle = self.router.arrived
        self.router.begin(self.bench.now)
        plug.give(peer.take())
        plug.handle = self.router.turn
        return self.router.settle_round()

    def go_on(self) -> bool:
        """A round in which no socket is ready. Returns: as `feed`."""
        self.router.begin(self.bench.now)
        return self.router.settle_round()

    def finish(self) -> None:
        """Rounds until nothing is left."""
        while self.go_on():
            pass
        self.bench.run()
        self.bench.advance(0.1)

    def written(self) -> int:
        """Copies that were given to the engine."""
        return self.router.data_plane.egress.sent


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    bench = Bench()
    yield Rounds(bench)
    bench.close()


def test_no_round_writes_more_than_a_slice_of_a_multicast_to_many(rounds: Rounds) -> None:
    rounds.sender.send(message("one"), settled=True)
    is_more = rounds.feed(rounds.publisher)
    counts = [rounds.written()]
    while is_more:
        is_more = rounds.go_on()
        counts.append(rounds.written())
    assert max(after - before for before, after in itertools.pairwise(counts)) == TURN_COPIES
    assert counts[-1] - counts[0] == MANY
    rounds.bench.run()
    assert all(receiver.bodies == ["one"] for receiver in rounds.receivers)


def test_no_later_multicast_overtakes_and_each_has_one_outcome_at_its_end(rounds: Rounds) -> None:
    first = rounds.sender.send(message(0))
    assert rounds.feed(rounds.publisher)
    rounds.bench.wires[-1].move()
    assert first.outcome is None, "not before every copy was given to its link"
    sent = [first, *(rounds.sender.send(message(number)) for number in range(1, 4))]
    assert rounds.feed(rounds.publisher)
    rounds.finish()
    assert [one.outcome for one in sent] == ["accepted"] * 4
    assert all(receiver.bodies == [0, 1, 2, 3] for receiver in rounds.receivers)


def test_multicasts_that_wait_together_reach_a_subscriber_in_one_turn(rounds: Rounds) -> None:
    rounds.sender.send(message(0))
    assert rounds.feed(rounds.publisher)
    rounds.bench.wires[-1].move()  # that it may send more
    for number in range(1, 4):
        rounds.sender.send(message(number))
    is_more = rounds.feed(rounds.publisher)
    reached = 0
    before = [0] * MANY
    while is_more:
        is_more = rounds.go_on()
        rounds.bench.wires[0].move()
        after = [len(receiver.bodies) for receiver in rounds.receivers]
        reached += sum(map(operator.ne, before, after))
        before = after
    assert min(before) >= 3
    assert reached <= 2 * MANY, "the first one was alone when it came"
    rounds.finish()
    assert all(receiver.bodies == [0, 1, 2, 3] for receiver in rounds.receivers)


def test_multicasts_to_others_than_the_one_before_wait_until_that_is_written(rounds: Rounds) -> None:
    rounds.sender.send(message(0), settled=True)
    assert rounds.feed(rounds.publisher)
    late = rounds.client.receiver(FANOUT, credit=10)
    rounds.receivers.pop(0).close()
    rounds.feed(rounds.client)
    for number in (1, 2):
        rounds.sender.send(message(number), settled=True)
    rounds.feed(rounds.publisher)
    rounds.finish()
    assert all(receiver.bodies == [0, 1, 2] for receiver in rounds.receivers)
    assert late.bodies == [1, 2]


def test_those_who_leave_before_their_slice_get_nothing_and_the_others_get_theirs(rounds: Rounds) -> None:
    sent = rounds.sender.send(message("one"))
    assert rounds.feed(rounds.publisher)
    gone = rounds.receivers[::2]
    for receiver in gone:
        receiver.close()
    rounds.feed(rounds.client)
    rounds.finish()
    assert sent.outcome == "accepted"
    assert all(receiver.bodies == ["one"] for receiver in rounds.receivers[1::2])


def test_a_publisher_that_leaves_before_the_last_slice_has_sent_it_all_the_same(rounds: Rounds) -> None:
    rounds.sender.send(message("one"))
    assert rounds.feed(rounds.publisher)
    rounds.sender.close()
    rounds.feed(rounds.publisher)
    rounds.finish()
    assert all(receiver.bodies == ["one"] for receiver in rounds.receivers)


def test_one_that_drains_before_its_slice_gets_its_copy_first(rounds: Rounds) -> None:
    rounds.sender.send(message("one"), settled=True)
    assert rounds.feed(rounds.publisher)
    last = rounds.receivers[-1]
    last.drain()
    rounds.feed(rounds.client)
    rounds.finish()
    assert last.bodies == ["one"]
    assert last.credit == 0


def test_copies_that_are_not_written_yet_count_as_sent(rounds: Rounds) -> None:
    for number in range(12):
        rounds.sender.send(message(number), settled=True)
    rounds.bench.run()
    rounds.bench.advance(0.5)
    assert all(receiver.bodies == list(range(10)) for receiver in rounds.receivers), "no more than was granted"


def test_what_a_timer_releases_is_copied_a_slice_in_each_round(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(messages_per_s=1), everything("other")))
    client = bench.client(router, hostname="other")
    receivers = [client.receiver("broadcast/x", credit=10).accepting() for _ in range(1000)]
    sender = bench.client(router, hostname="shop").sender("broadcast/x")
    bench.advance(2)
    for number in range(2):
        sender.send(message(number))
    bench.run()
    router.tell_deadlines(changed=lambda: None, came=router.handle_deadline)
    bench.now += 1
    client.wire.is_still = True
    rounds = 1
    is_due = router.handle_time()
    while is_due:
        router.begin(bench.now)
        is_due = router.settle_round()
        rounds += 1
    client.wire.is_still = False
    bench.run()
    assert [receiver.bodies for receiver in receivers] == [[0, 1]] * 1000
    assert rounds >= 1000 // TURN_COPIES
