"""A console asks the routers that can be reached what is wrong there, and how much they do."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from router.engine import message_codec
from router.views import router_row
from router.views.management_service import serve_management
from router.views.mesh_status_poller import AT_ONCE, MOST_BYTES, PATIENCE_S, QUESTIONS, MeshStatusPoller
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


async def test_a_router_with_a_thousand_neighbors_tells_its_totals(
    bench: Bench, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    traffic = {f"router-{number}": [10**9, 10**9, 10**12, 10**12] for number in range(1000)}
    monkeypatch.setattr(router_row, "neighbor_traffic", lambda _: traffic)
    questions = MeshStatusPoller(routers[0])
    questions.ask()
    bench.run()
    told = questions.traffic("B")
    assert told is not None
    assert told.by_neighbor == traffic
    assert questions.figures("B")["connections"] == 1


async def test_one_answer_that_is_always_missing_makes_no_page_late(
    bench: Bench, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    traffic = {f"router-{number}": [10**9, 10**9, 10**12, 10**12] for number in range(3000)}
    monkeypatch.setattr(router_row, "neighbor_traffic", lambda _: traffic)  # larger than an answer may be
    questions = MeshStatusPoller(routers[0])
    for waited_s in (PATIENCE_S, 0.0, 0.0):
        begin = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(questions.gather)
            await trio.testing.wait_all_tasks_blocked()
            bench.run()
        assert trio.current_time() - begin == pytest.approx(waited_s)
        bench.advance(2 * LONGEST_PAUSE_S)


def test_of_an_answer_numbers_are_numbers_and_texts_are_texts(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    questions = MeshStatusPoller(routers[0])
    questions.ask()

    def tell(kind: str, row: dict[str, object]) -> None:
        answer = message_codec.Message(
            correlation_id=f"{kind} B {questions._token}",
            body={"attributeNames": list(row), "results": [list(row.values())]},
        )
        questions._take(message_codec.encode_message(answer), None)

    tell("router", {"waitingCount": 1.5, "connectionCount": "many", "deliveriesIngress": 3})
    figures = questions.figures("B")
    assert (figures["waiting"], figures["connections"], figures["in"]) == (None, None, 3)
    tell("problem", {"kind": "memory", "subject": 7, "sentence": 5, "since": "long", "last": True, "closeness": None})
    ((router, problem),) = questions.problems()
    assert router == "B"
    assert {key: problem[key] for key in ("subject", "sentence", "command", "since", "last", "closeness")} == {
        "subject": "7",
        "sentence": "5",
        "command": "",
        "since": None,
        "last": None,
        "closeness": 1,
    }


def test_what_no_asked_router_can_have_sent_takes_no_room(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    questions = MeshStatusPoller(routers[0])
    questions.ask()
    forged = message_codec.encode_message(message_codec.Message(correlation_id="router B 0", body="x" * 60_000))
    assert len(forged) < MOST_BYTES
    for _ in range(1000):
        questions._take(forged, None)
    bench.run()
    assert questions.figures("B")
