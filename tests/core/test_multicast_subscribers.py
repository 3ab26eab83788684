"""Who of the local subscribers of a multicast address counts: each rule one small case."""

from __future__ import annotations

from itertools import pairwise

import pytest

from router.core.forwarding.multicast_subscribers import ExclusionTiming, MulticastSubscribers

GRACE_S, PAUSE_S = 1.0, 1.0
SHORTLY_S = 0.001


class Room:
    """An audience, and its time."""

    def __init__(self, *grants: int, is_elsewhere: bool = False) -> None:
        self.now = 100.0
        self.local_subscribers = MulticastSubscribers(
            ExclusionTiming(grace_s=GRACE_S, first_pause_s=PAUSE_S, longest_pause_s=60.0)
        )
        self.local_subscribers.set_elsewhere(is_elsewhere)
        for number, credit in enumerate(grants):
            self.local_subscribers.add(number)
            if credit:
                self.grant(number, credit)

    def grant(self, key: int, credit: int, *, is_draining: bool = False, is_withdrawn: bool = False) -> None:
        self.local_subscribers.changed(key, credit, self.now, is_draining=is_draining, is_withdrawn=is_withdrawn)
        self.look()

    def look(self) -> None:
        self.local_subscribers.update(self.now)
        self.local_subscribers.check_invariants()

    def wait(self, duration_s: float) -> None:
        """Let time pass, and look at each deadline."""
        end = self.now + duration_s
        while (due := self.local_subscribers.next_deadline()) <= end:
            assert due >= self.now, "late"
            self.now = due
            self.look()
        self.now = end

    def send(self) -> tuple[list[object], list[object]]:
        live, missed = self.local_subscribers.spend(self.now)
        self.local_subscribers.check_invariants()
        return list(live), list(missed)

    @property
    def live(self) -> list[object]:
        return sorted(subscriber.key for subscriber in self.local_subscribers.live)


def excluded_room() -> Room:
    """The first of two subscribers is excluded, a second after it had used up its ten."""
    room = Room(10, 100)
    for _ in range(10):
        room.send()
    room.wait(GRACE_S)
    assert room.live == [1]
    return room


# Counting


def test_one_that_has_not_granted_yet_does_not_count_and_misses_nothing() -> None:
    room = Room(0, 5)
    assert room.live == [1]
    assert room.local_subscribers.capacity == 5
    assert room.send() == ([1], [])


def test_it_counts_from_its_first_credit_on() -> None:
    room = Room(0, 5)
    room.grant(0, 2)
    assert room.live == [0, 1]
    assert room.local_subscribers.capacity == 2


def test_together_they_can_take_what_the_one_with_the_least_credit_can() -> None:
    room = Room(7, 3, 9)
    assert room.local_subscribers.capacity == 3
    assert room.send() == ([0, 1, 2], [])
    assert [s.credit for s in room.local_subscribers.live] == [6, 2, 8]


def test_nobody_takes_nothing() -> None:
    assert Room().local_subscribers.capacity == Room(0, 0).local_subscribers.capacity == 0


# Excluding


def test_one_at_zero_counts_within_the_grace_and_is_excluded_after_it() -> None:
    room = Room(1, 5)
    room.send()
    room.wait(GRACE_S - SHORTLY_S)
    assert room.live == [0, 1]
    assert room.local_subscribers.capacity == 0
    room.wait(SHORTLY_S)
    assert room.live == [1]
    assert room.local_subscribers.capacity == 4


def test_credit_within_the_grace_starts_it_anew() -> None:
    room = Room(1, 5)
    for _ in range(4):
        room.send()
        room.wait(GRACE_S - SHORTLY_S)
        room.grant(0, 1)
    assert room.live == [0, 1]


def test_lowering_on_purpose_is_the_same_as_having_used_it_up() -> None:
    room = Room(3, 5)
    room.grant(0, 0, is_withdrawn=True)
    room.wait(GRACE_S - SHORTLY_S)
    assert room.live == [0, 1]
    room.wait(SHORTLY_S)
    assert room.live == [1]


def test_credit_that_was_given_back_after_a_drain_is_the_same_as_none() -> None:
    room = Room(3, 5)
    room.grant(0, 3, is_draining=True)
    assert room.local_subscribers.is_draining
    room.local_subscribers.drained(room.local_subscribers.subscribers[0], room.now)
    assert not room.local_subscribers.is_draining
    room.wait(GRACE_S)
    assert room.live == [1]


def test_an_excluded_one_misses_copies_and_each_is_counted() -> None:
    room = excluded_room()
    assert room.send() == ([1], [0])
    assert room.send() == ([1], [0])
    assert room.local_subscribers.subscribers[0].missed == 2


def test_the_only_one_holds_up_nobody_and_is_never_excluded() -> None:
    room = Room(1)
    room.send()
    room.wait(1000.0)
    assert room.live == [0]


def test_it_is_excluded_when_there_are_subscribers_elsewhere() -> None:
    room = Room(1, is_elsewhere=True)
    room.send()
    room.wait(GRACE_S)
    assert room.live == []
    assert room.local_subscribers.capacity == 0


def test_nobody_is_excluded_while_all_are_at_zero_at_once_when_another_has_credit() -> None:
    room = Room(1, 1)
    room.send()
    room.wait(30.0)
    assert room.live == [0, 1]
    room.grant(1, 1)
    assert room.live == [1]


def test_one_that_leaves_holds_up_nobody() -> None:
    room = Room(1, 5)
    room.send()
    room.local_subscribers.remove(0, room.now)
    assert room.local_subscribers.capacity == 4


# Coming back


@pytest.mark.parametrize(("credit", "is_back"), [(1, False), (4, False), (5, True), (10, True)])
def test_an_excluded_one_counts_again_with_half_its_usual_grant(credit: int, is_back: bool) -> None:
    room = excluded_room()
    room.wait(PAUSE_S)
    room.grant(0, credit)
    assert (0 in room.live) is is_back


def test_the_usual_grant_is_the_largest_credit_it_had_after_a_grant() -> None:
    room = Room(2, 100)
    room.grant(0, 20)
    for _ in range(20):
        room.send()
    room.grant(0, 1)
    room.send()
    room.wait(GRACE_S + PAUSE_S)
    room.grant(0, 9)
    assert room.live == [1]
    room.grant(0, 10)
    assert room.live == [0, 1]


def test_not_before_it_has_paused() -> None:
    room = excluded_room()
    room.grant(0, 10)
    room.wait(PAUSE_S - SHORTLY_S)
    assert room.live == [1]
    room.wait(SHORTLY_S)
    assert room.live == [0, 1]


def test_not_while_it_asks_for_its_credit_back() -> None:
    room = excluded_room()
    room.grant(0, 10, is_draining=True)
    room.wait(10.0)
    assert room.live == [1]


def relapse(room: Room, after_s: float = 0.0) -> float:
    """An excluded subscriber comes back as early as it may, and stalls again. Returns how long it had to pause."""
    since = room.now
    room.grant(0, 10)
    room.wait(200.0)
    paused_s = room.local_subscribers.subscribers[0].readmitted_at - since
    room.now = room.local_subscribers.subscribers[0].readmitted_at + after_s
    room.grant(0, 0)
    room.wait(GRACE_S)
    assert 0 not in room.live
    return paused_s


def test_the_pause_doubles_with_each_relapse_from_one_second_to_sixty() -> None:
    room = excluded_room()
    pauses = [relapse(room) for _ in range(9)]
    assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60])


def test_one_that_stalls_again_long_after_it_came_back_has_not_relapsed() -> None:
    room = excluded_room()
    assert relapse(room) == pytest.approx(1)
    assert relapse(room, after_s=60.0) == pytest.approx(2)
    assert relapse(room) == pytest.approx(1)


def test_one_that_grants_less_than_it_used_to_counts_again_after_the_longest_pause() -> None:
    room = excluded_room()
    room.grant(0, 1)
    room.wait(60.0 - SHORTLY_S)
    assert room.live == [1]
    room.wait(SHORTLY_S)
    assert room.live == [0, 1]
    assert room.local_subscribers.subscribers[0].usual == 1, "its habit has changed"


# Withdrawing


def test_all_have_withdrawn_when_each_that_counts_has_not_when_one_used_up_credit() -> None:
    room = Room(1, 2)
    room.grant(1, 0, is_withdrawn=True)
    assert not room.local_subscribers.is_withdrawn
    room.grant(0, 0, is_withdrawn=True)
    assert room.local_subscribers.is_withdrawn
    room.grant(0, 1)
    assert not room.local_subscribers.is_withdrawn
    room.grant(1, 1)
    room.send()
    assert not room.local_subscribers.is_withdrawn, "used up"
    room.grant(0, 1)
    room.grant(1, 1)
    for key in (0, 1):
        room.grant(key, 0)
    assert not room.local_subscribers.is_withdrawn, "it can take nothing now"


# Taking next to nothing


def drip(room: Room, *, count: int, every_s: float, times: int, offered: int = 1000) -> int:
    """The first subscriber grants *count* each *every_s*, and all others what they had, while publishers wait.

    Returns: messages that were sent.
    """
    usual = {subscriber.key: subscriber.credit for subscriber in room.local_subscribers.subscribers.values()}
    sent = 0
    for _ in range(times):
        while room.local_subscribers.capacity and sent < offered and 0 in room.live:
            room.send()
            sent += 1
        for key, credit in usual.items():
            if key != 0:
                room.grant(key, credit)
        room.local_subscribers.press(room.now, is_wanted=sent < offered)
        room.wait(every_s)
        room.grant(0, count)
    return sent


@pytest.mark.parametrize("every_s", [0.55, 0.9, 0.999])
@pytest.mark.parametrize("others", [(1,), (5, 5), (100, 100, 100)])
def test_one_that_grants_one_credit_just_within_each_grace_is_excluded(every_s: float, others: tuple[int, ...]) -> None:
    room = Room(1, *others)
    assert drip(room, count=1, every_s=every_s, times=2) <= 2
    assert 0 not in room.live


def test_one_that_takes_no_tenth_of_what_the_others_can_take_at_once_is_excluded() -> None:
    room = Room(1, 100, 100)
    drip(room, count=1, every_s=0.15, times=8)
    assert room.live == [1, 2]


@pytest.mark.parametrize("others", [10, 100, 1000, 1000000])
def test_one_that_grants_in_bursts_is_waited_for(others: int) -> None:
    room = Room(100, others, others)
    drip(room, count=100, every_s=0.5, times=20, offered=10**6)
    assert room.live == [0, 1, 2]


def test_one_that_is_slower_than_others_with_as_little_credit_is_waited_for() -> None:
    room = Room(5, 5, 5)
    drip(room, count=1, every_s=0.3, times=20)
    assert room.live == [0, 1, 2]


def test_one_with_very_much_credit_gets_no_others_excluded() -> None:
    room = Room(5, 5, 5, 1000000)
    drip(room, count=1, every_s=0.2, times=20)
    assert room.live == [0, 1, 2, 3]


def test_one_that_is_slow_while_nobody_waits_is_not_excluded() -> None:
    room = Room(1, 100)
    drip(room, count=1, every_s=0.95, times=10, offered=0)
    assert room.live == [0, 1]


def test_the_only_one_may_take_as_little_as_it_likes() -> None:
    room = Room(1)
    drip(room, count=1, every_s=0.9, times=10)
    assert room.live == [0]


def test_one_that_took_next_to_nothing_counts_again_after_a_pause_and_may_relapse() -> None:
    room = Room(1, 100)
    drip(room, count=1, every_s=0.9, times=2)
    assert room.live == [1]
    room.wait(PAUSE_S)
    assert room.live == [0, 1]
    drip(room, count=1, every_s=0.9, times=2)
    assert room.live == [1]
    assert room.local_subscribers.subscribers[0].pause_s == 2 * PAUSE_S


# Leaving, and coming back as another one


def sent_beside_deserters(room: Room, *, stays_s: float, at_once: int, duration_s: float) -> list[float]:
    """So many subscribers at once that grant one credit, are waited for, leave, and come back as others.

    Publishers always wait, and who stays grants as much as is sent.

    Returns: times at which messages were sent, seconds from the first one's coming.
    """
    began, times, next_key = room.now, list[float](), 1000
    usual = {each.key: each.credit for each in room.local_subscribers.live}
    here: list[tuple[int, float]] = []
    while room.now < began + duration_s:
        if not here or (len(here) < at_once and room.now >= here[-1][1] + stays_s / at_once):
            room.local_subscribers.add(next_key)
            here.append((next_key, room.now))
            room.grant(next_key, 1)
            next_key += 1
        while room.local_subscribers.capacity and any(key >= 1000 for key in room.live):
            room.send()
            times.append(room.now - began)
            for key, credit in usual.items():
                room.grant(key, credit)
            room.local_subscribers.press(room.now, is_wanted=True)
        room.local_subscribers.press(room.now, is_wanted=True)
        room.wait(stays_s / at_once / 4)
        if not any(key >= 1000 for key in room.live):
            times.append(room.now - began)
        if here and room.now >= here[0][1] + stays_s:
            room.local_subscribers.remove(here.pop(0)[0], room.now)
            room.look()
    return times


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("stays_s", [0.3, 0.9, 0.999])
def test_those_that_leave_and_come_back_hold_up_a_multicast_a_tenth_of_the_time(stays_s: float, at_once: int) -> None:
    room = Room(100, 100)
    times = sent_beside_deserters(room, stays_s=stays_s, at_once=at_once, duration_s=60.0)
    idle = [b - a for a, b in pairwise(times) if b - a > stays_s / at_once]
    assert sum(idle) <= 2 * GRACE_S + 0.1 * 60.0 + stays_s


def use_up(room: Room, *keys: int) -> None:
    """Newcomers grant one credit each, and it is used: publishers wait for the next."""
    for key in keys:
        room.local_subscribers.add(key)
        room.grant(key, 1)
    room.send()
    room.local_subscribers.press(room.now, is_wanted=True)
    room.look()


def newcomer_beside(deserters: int, *, stays_s: float) -> Room:
    """Two that stay; so many others came, were waited for and left; then a newcomer, 7, has used up its only credit."""
    room = Room(100, 100)
    for key in range(1000, 1000 + deserters):
        use_up(room, key)
        room.wait(stays_s)
        room.local_subscribers.remove(key, room.now)
    use_up(room, 7)
    return room


@pytest.mark.parametrize(("deserters", "is_waited_for"), [(0, True), (1, True), (2, False)])
def test_who_comes_after_many_that_left_is_not_waited_for(deserters: int, is_waited_for: bool) -> None:
    room = newcomer_beside(deserters, stays_s=0.9)
    assert (7 in room.live) is is_waited_for


def test_one_that_is_not_waited_for_has_what_is_sent_while_it_holds_credit() -> None:
    room = newcomer_beside(2, stays_s=0.9)
    assert room.send() == ([0, 1], [7])
    room.grant(7, 1)
    assert room.send() == ([0, 1, 7], [])
    room.local_subscribers.press(room.now, is_wanted=True)
    room.look()
    assert room.send() == ([0, 1], [7])


def test_one_that_has_been_here_for_long_is_waited_for_whoever_leaves() -> None:
    room = Room(100, 1)
    room.wait(600.0)
    for key in range(1000, 1003):
        use_up(room, key)
        room.wait(0.9)
        room.local_subscribers.remove(key, room.now)
        room.grant(1, 1)
    use_up(room, 7)
    assert room.live == [0, 1]


def test_many_that_leave_at_once_count_once() -> None:
    room = Room(100, 100)
    many = range(1000, 1100)
    use_up(room, *many)
    room.wait(0.5)
    for key in many:
        room.local_subscribers.remove(key, room.now)
    use_up(room, 7)
    assert 7 in room.live


def test_those_that_left_are_forgotten_in_ten_times_the_time_that_they_held_up() -> None:
    room = newcomer_beside(2, stays_s=0.9)
    room.wait(8.0)  # 1.8 s, of which a grace is nobody's fault
    use_up(room, 8)
    assert 8 in room.live
