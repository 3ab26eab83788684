"""Balanced calls on credit machines joined: no call waits at a busy server while another one is idle.

Four routers in a ring, a server with two workers at each, 50 ms a call; whoever has an answer calls again.
"""

from __future__ import annotations

import itertools
import math

import pytest

from router.core.forwarding.egress_load import HINT_S, RENEW_S, TELL_S, EgressLoad, LoadToldToNeighbor
from router.testing.anycast_mesh import AnycastMesh, jain_index
from router.testing.clients import GrantHabit, SettlementHabit, SimPublisher, SimSubscriber

RING = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]
WORKERS, SERVICE_S = 2, 0.05
REPLY_S = 0.001
TAKEN, DONE = SettlementHabit.WHEN_TAKEN, SettlementHabit.WHEN_DONE


class Calls:
    """Callers that call again as soon as they are answered, and servers."""

    def __init__(
        self,
        outstanding: int,
        accepts: SettlementHabit,
        *,
        homes: str = "A",
        servers: str = "ABCD",
        edges: list[tuple[str, str]] = RING,
        credit: int = 100,
        service_s: float = SERVICE_S,
    ) -> None:
        self.mesh = AnycastMesh(edges, has_outcomes=True, seed=1, delay_s=0.0003, distance=0.1)
        self.servers = [
            self.mesh.add_subscriber(
                name, credit=credit, top_up=GrantHabit.FULL, service_s=service_s, workers=WORKERS, accepts=accepts
            )
            for name in servers
        ]
        self.mesh.run_for(0.3)
        callers = [self.mesh.add_publisher(homes[n % len(homes)], is_settled=False) for n in range(outstanding)]
        self._caller_of: dict[int, SimPublisher] = {}
        self._done = dict.fromkeys(self.servers, 0)
        self._ideal = len(servers) * WORKERS / service_s
        for server in self.servers:
            server.on_served = lambda message, server=server: self._answer(server, message)  # type: ignore[misc]
        self.mesh.run_for(0.3)
        for number, caller in enumerate(callers):
            self.mesh.network.call_at(self.mesh.network.now + number * 1e-4, lambda caller=caller: self._call(caller))  # type: ignore[misc]
        self.mesh.run_for(1.0)

    def _call(self, caller: SimPublisher) -> None:
        caller.offer(1)

    def _answer(self, server: SimSubscriber, message: int) -> None:
        self._done[server] += 1
        caller = self.mesh.publishers[self.mesh.publisher_of[message]]
        self.mesh.network.call_at(self.mesh.network.now + REPLY_S, lambda: self._call(caller))

    def counts(self, duration_s: float = 5.0) -> list[int]:
        """Calls that each server answers from now on."""
        self._done = dict.fromkeys(self.servers, 0)
        self.mesh.run_for(duration_s)
        self.mesh.check_invariants()
        return list(self._done.values())

    def share(self, counts: list[int], duration_s: float = 5.0) -> float:
        """Of what the servers can do."""
        return sum(counts) / duration_s / self._ideal


@pytest.mark.parametrize(
    ("outstanding", "accepts", "share"),
    [(8, TAKEN, 0.74), (12, TAKEN, 0.99), (40, TAKEN, 0.99), (120, TAKEN, 0.99), (8, DONE, 0.95), (40, DONE, 0.99)],
)
def test_calls_of_one_router_come_near_to_what_all_servers_can_do(
    outstanding: int, accepts: SettlementHabit, share: float
) -> None:
    calls = Calls(outstanding, accepts)
    counts = calls.counts()
    assert calls.share(counts) >= share, counts
    if outstanding >= 12:
        assert max(counts) <= 1.1 * min(counts), counts


@pytest.mark.parametrize("credit", [2, 5])
def test_servers_with_little_credit_are_all_used_too(credit: int) -> None:
    calls = Calls(40, DONE, credit=credit)
    assert calls.share(calls.counts()) >= 0.95


@pytest.mark.parametrize("accepts", [TAKEN, DONE])
@pytest.mark.parametrize("outstanding", [8, 12, 40])
def test_callers_at_all_routers_don_t_stampede_one_server(outstanding: int, accepts: SettlementHabit) -> None:
    calls = Calls(outstanding, accepts, homes="ABCD")
    counts = calls.counts()
    assert jain_index(counts) >= 0.95, counts
    assert calls.share(counts) >= 0.95, counts


@pytest.mark.parametrize("homes", ["A", "AD"])
def test_calls_stay_at_an_idle_server_of_their_own_router(homes: str) -> None:
    counts = Calls(len(homes), DONE, homes=homes).counts()
    assert counts[0] / sum(counts) >= (0.99 if homes == "A" else 0.49)
    assert counts[1] == counts[2] == 0


@pytest.mark.parametrize("servers", ["BBBBBBBBBBC", "CCCCCCCCCCA", "ABBBBBBBBBB"])
def test_ten_servers_at_one_router_and_one_at_another_share_by_server(servers: str) -> None:
    counts = Calls(66, TAKEN, servers=servers).counts()
    assert jain_index(counts) >= 0.99, counts


@pytest.mark.parametrize("homes", ["A", "ABCD"])
def test_a_server_that_becomes_slower_gets_less_within_a_second_and_later_more_again(homes: str) -> None:
    calls = Calls(40, TAKEN, homes=homes, service_s=0.005)
    slow = calls.servers[1]
    before = calls.counts(1.0)
    slow.service_s *= 10
    calls.mesh.run_for(1.0)
    while_slow = calls.counts(1.0)
    slow.service_s /= 10
    calls.mesh.run_for(1.0)
    after = calls.counts(1.0)
    assert before[1] == pytest.approx(before[0], rel=0.1)
    assert while_slow[1] <= 0.2 * while_slow[0]
    assert while_slow[0] == pytest.approx(before[0], rel=0.1)
    assert after[1] == pytest.approx(after[0], rel=0.1)


def test_servers_nine_hops_away_are_reached_by_calls_that_would_wait() -> None:
    names = "ABCDEFGHIJ"
    calls = Calls(12, TAKEN, servers="ACEJ", edges=list(itertools.pairwise(names)))
    counts = calls.counts()
    assert calls.share(counts) >= 0.93, counts


# Loads and what is told of them


def test_a_wait_is_what_is_before_the_next_message_at_the_least_busy_subscriber() -> None:
    load = EgressLoad()
    load.told(9, 10, now=0.0)
    assert load.wait(0.0) == 0, "one of the ten has none"
    load.sent()
    assert load.wait(0.0) == 1
    load.told(-1, 10, now=0.0)
    assert load.messages(0.0) == 0


def test_what_was_told_is_believed_for_a_while_only() -> None:
    load = EgressLoad()
    load.told(50, 1, now=10.0)
    load.sent()
    assert load.wait(10.0 + HINT_S / 2) == 51
    assert load.wait(10.0 + HINT_S) == 1


def test_a_neighbor_is_told_when_it_matters_and_no_more_often_than_that() -> None:
    load, report = EgressLoad(), LoadToldToNeighbor()
    assert report.next_time(load, 0, now=1.0) == math.inf, "it takes for granted that nothing is there"
    load.unsettled = 3
    assert report.next_time(load, 3, now=1.0) == math.inf, "these are its own"
    assert report.next_time(load, 1, now=1.0) <= 1.0
    assert report.tell(load, 1, now=1.0) == (2, 1)
    assert report.next_time(load, 1, now=1.0) == 1.0 + RENEW_S, "it would be forgotten"
    load.unsettled = 9
    assert report.next_time(load, 1, now=1.0) == 1.0 + TELL_S
    load.unsettled = 3
    assert report.next_time(load, 1, now=1.0) == 1.0 + RENEW_S, "too little has changed"


def test_subscribers_that_come_and_go_are_told_where_there_are_messages() -> None:
    load, report = EgressLoad(), LoadToldToNeighbor()
    load.subscribers = 5
    assert report.next_time(load, 0, now=1.0) == math.inf
    load.unsettled = 1
    assert report.next_time(load, 1, now=1.0) <= 1.0
    assert report.tell(load, 1, now=1.0) == (0, 5)
