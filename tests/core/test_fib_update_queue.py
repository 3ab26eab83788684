"""Addresses of routers that are reached and lost: the forwarding side learns all of them, some at a time."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from router.core.addressing import fib_update_queue
from router.core.addressing.fib_update_queue import (
    DIRECT,
    FIRST,
    MOST_CHANGES,
    PAUSE_S,
    ROUTINE,
    FibUpdateQueue,
)
from router.core.events import Action, ControlLinkDown, InstallAddress, WithdrawAddress, WithdrawRouter
from router.core.ids_and_conditions import RouterId
from tests.core.test_addresses_in_parts import TO_ME, parts_of
from tests.core.test_controlplane import TO_B, B, C, D, got, others, star


class Side:
    """What the control plane knows of some routers, and what the forwarding side was told."""

    def __init__(self, routers: Sequence[RouterId]) -> None:
        self.installation = FibUpdateQueue()
        self.held: dict[RouterId, dict[str, None]] = {router: {} for router in routers}
        self.reachable: set[RouterId] = set()
        self.told: dict[RouterId, set[str]] = {router: set() for router in routers}
        self.now = 0.0

    def carry_out(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, InstallAddress):
                assert action.router in self.reachable
                self.told[action.router].add(action.address)
            else:
                assert isinstance(action, WithdrawAddress)
                self.told[action.router].discard(action.address)

    def change(self, action: InstallAddress | WithdrawAddress) -> None:
        if not self.installation.change(action):
            self.carry_out([action])

    def step(self, rng: random.Random) -> None:
        router = rng.choice(list(self.held))
        address = f"a{rng.randrange(30)}"
        match rng.choice(("reach", "lose", "add", "add", "remove", "reset", "rest")):
            case "reach" if router not in self.reachable:
                self.reachable.add(router)
                self.installation.reach(router, self.held[router])
            case "lose" if router in self.reachable:
                self.reachable.discard(router)
                self.installation.lose(router, self.held[router])
            case "add" if address not in self.held[router]:
                self.held[router][address] = None
                if router in self.reachable:
                    self.change(InstallAddress(address=address, router=router, treatment=None))
            case "remove" if address in self.held[router]:
                del self.held[router][address]
                if router in self.reachable:
                    self.change(WithdrawAddress(address=address, router=router))
            case "reset" if router in self.reachable and self.held[router]:
                gone = [one for one in self.held[router] if rng.random() < 0.7]
                for one in gone:
                    del self.held[router][one]
                self.installation.withdraw(router, gone)
            case _:
                self.now += rng.choice((0.0, PAUSE_S))
        self.carry_out(self.installation.take(self.now))

    def rest(self) -> None:
        while self.installation.next_deadline() < math.inf:
            self.now = max(self.now, self.installation.next_deadline())
            self.carry_out(self.installation.take(self.now))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_comes_and_goes_in_between_the_forwarding_side_knows_all_in_the_end(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FIRST", 5), ("ROUTINE", 3), ("DIRECT", 1), ("MOST_CHANGES", 4), ("TURN", 2)):
        monkeypatch.setattr(fib_update_queue, name, value)
    rng = random.Random(seed)
    for _ in range(50):
        side = Side([B, C, D])
        for _ in range(rng.randrange(150)):
            side.step(rng)
        side.rest()
        assert side.told == {
            router: set(addresses) if router in side.reachable else set() for router, addresses in side.held.items()
        }
        assert not side.installation._backlogs


def test_one_that_flaps_keeps_no_more_than_it_has_addresses() -> None:
    installation = FibUpdateQueue()
    addresses = {f"a{number}": None for number in range(10 * FIRST)}
    for _ in range(50):
        installation.reach(B, addresses)
        assert len(installation.take(0.0)) <= FIRST
        installation.lose(B, addresses)
        assert len(installation.take(0.0)) <= FIRST
        (backlog,) = installation._backlogs.values() or [fib_update_queue.Backlog()]
        assert len(backlog.going) + len(backlog.coming) + len(backlog.changes) <= len(addresses)


def test_changes_beside_a_backlog_do_not_let_it_grow() -> None:
    installation = FibUpdateQueue()
    installation.reach(B, {f"a{number}": None for number in range(2 * FIRST)})
    installation.take(0.0)
    for number in range(3 * FIRST):
        assert installation.change(InstallAddress(address=f"b{number}", router=B, treatment=None))
        installation.take(0.0)
        (backlog,) = installation._backlogs.values()
        assert len(backlog.changes) < 1.1 * MOST_CHANGES


def test_of_many_changes_in_a_message_the_first_go_at_once_the_others_later() -> None:
    installation = FibUpdateQueue()
    changes = [InstallAddress(address=f"a{number}", router=B, treatment=None) for number in range(DIRECT + 2 * ROUTINE)]
    done: list[Action] = [change for change in changes if not installation.change(change)]
    assert len(done) == DIRECT
    assert installation.take(1.0) == []
    assert installation.change(WithdrawAddress(address="a0", router=B)), "it goes behind what waits"
    assert not installation.change(InstallAddress(address="x", router=C, treatment=None))
    for turn in (1, 2, 3):
        done += installation.take(installation.next_deadline())
        assert len(done) == min(DIRECT + ROUTINE * turn, len(changes) + 1)
    assert done == [*changes, WithdrawAddress(address="a0", router=B)]
    assert installation.next_deadline() == math.inf


def test_a_router_with_many_addresses_holds_up_none_with_few() -> None:
    installation = FibUpdateQueue()
    installation.reach(B, {f"a{number}": None for number in range(100 * FIRST)})
    installation.take(0.0)
    installation.reach(C, {"x": None})
    assert InstallAddress(address="x", router=C, treatment=None) in installation.take(0.0)


def test_a_control_plane_tells_of_many_addresses_in_turns_of_which_none_is_large() -> None:
    play = star()
    count = 3 * FIRST
    for part in parts_of(count, 1):
        play >> got(TO_B, part, to=TO_ME)
    play.at(play.now + PAUSE_S * (1 + MOST_CHANGES / ROUTINE))
    assert len(others(play.rest())) == count
    play >> ControlLinkDown(connection=TO_B)
    actions = others(play.rest())
    assert actions[FIRST] == WithdrawRouter(router=B), "what is many goes behind its router"
    turns = [len(actions)]
    withdrawn = [action.address for action in actions if isinstance(action, WithdrawAddress)]
    while len(withdrawn) < count:
        assert play.control.next_deadline() <= play.now + PAUSE_S
        play.at(play.now + PAUSE_S)
        actions = [action for action in play.rest() if isinstance(action, WithdrawAddress)]
        assert len(actions) <= ROUTINE
        turns.append(len(actions))
        withdrawn += (action.address for action in actions)
    assert len(set(withdrawn)) == count
    assert len(turns) == 1 + (count - FIRST) / ROUTINE
