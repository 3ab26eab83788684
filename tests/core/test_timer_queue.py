"""A queue of timers gives what a look at all of them would."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from router.core.forwarding.timer_queue import SPARE, TimerQueue

TIMES = st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0, math.inf])
STEPS = st.lists(st.tuples(st.sampled_from(["set", "cancel", "take"]), st.integers(0, 5), TIMES), max_size=300)


@given(STEPS)
def test_it_knows_who_is_due_and_forgets_what_was_put_off(steps: list[tuple[str, int, float]]) -> None:
    queue = TimerQueue()
    times: dict[int, float] = {}
    for what, thing, time in steps:
        if what == "set":
            queue.set(thing, time)
            times[thing] = time
        elif what == "cancel":
            queue.cancel(thing)
            times[thing] = math.inf
        elif time < math.inf:
            due = queue.take(time)
            assert sorted(due) == sorted(thing for thing, at in times.items() if at <= time)
            assert [times[each] for each in due] == sorted(times[each] for each in due)
            times.update(dict.fromkeys(due, math.inf))
        earliest = min(times.values(), default=math.inf)
        assert queue.next() == earliest
        assert times.get(queue.first(), math.inf) == earliest
        assert all(queue.time_of(each) == at for each, at in times.items())
        assert len(queue) == sum(at < math.inf for at in times.values())


def test_of_equal_times_the_one_set_first_is_first() -> None:
    queue = TimerQueue()
    for thing in "bac":
        queue.set(thing, 1.0)
    assert queue.first() == "b"
    assert queue.take(1.0) == ["b", "a", "c"]


def test_times_that_were_put_off_do_not_pile_up() -> None:
    queue = TimerQueue()
    for time in range(100_000):
        queue.set(time % 10, float(time))
        assert len(queue._heap) <= 2 * 10 + SPARE + 1
