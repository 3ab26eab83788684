"""A console asks the routers that can be reached what is wrong there, and how much they do."""

from __future__ import annotations

import trio
import trio.testing

from router.views.management_service import serve_management
from router.views.mesh_status_poller import AT_ONCE, PATIENCE_S, QUESTIONS, MeshStatusPoller
from tests.helpers.engine import Bench

LONGEST_PAUSE_S = max(pause_s for pause_s, _ in QUESTIONS.values())


def test_a_console_is_answered_though_another_was_made_meanwhile(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    served = MeshStatusPoller(routers[0])
    served.ask()
    bench.run()
    before = served.figures("B")
    assert before
    # One that was to take its place, and never came to serve since another setting was wrong.
    MeshStatusPoller(routers[0])
    sender = bench.client(routers[1]).sender("x")
    bench.client(routers[1]).receiver("x", credit=10)
    sender.send(b"\x00Sw@", settled=True)
    bench.advance(5)
    served.ask()
    bench.run()
    after = served.figures("B")
    assert (before["in"], after["in"]) == (0, 1)


async def test_answers_are_waited_for(bench: Bench, autojump_clock: trio.testing.MockClock) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    questions = MeshStatusPoller(routers[0])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(questions.gather)
        await trio.testing.wait_all_tasks_blocked()
        assert not questions.figures("B")
        bench.run()
    told = questions.traffic("B")
    assert questions.figures("B")
    assert told is not None
    assert set(told.by_neighbor) == {"A"}
    assert trio.current_time() == 0, "no longer than it took"


async def test_who_is_silent_is_waited_for_once(bench: Bench, autojump_clock: trio.testing.MockClock) -> None:
    routers = bench.mesh(("A", "B"))
    serve_management(routers[0])  # nobody answers at the other
    questions = MeshStatusPoller(routers[0])
    await questions.gather()
    assert trio.current_time() == PATIENCE_S
    bench.advance(2 * LONGEST_PAUSE_S)
    await questions.gather()
    assert trio.current_time() == PATIENCE_S
    serve_management(routers[1])
    bench.advance(2 * LONGEST_PAUSE_S)
    await questions.gather()
    bench.run()
    assert questions.figures("B"), "it is asked all the same"
    assert not questions.ask(), "and not again at once"


async def test_the_first_page_has_the_answers_of_very_many_routers(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    names = tuple(f"R{number:02}" for number in range(AT_ONCE + 5))
    routers = bench.mesh(*(("R00", name) for name in names[1:]))
    for router in routers:
        serve_management(router)
    questions = MeshStatusPoller(routers[0])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(questions.gather)
        for _ in range(2):
            await trio.testing.wait_all_tasks_blocked()
            bench.run()
    assert all(questions.figures(name) for name in names[1:])
