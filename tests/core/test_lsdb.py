"""The link state database: which edges count, what is newer, what is forgotten."""

from __future__ import annotations

from mesh_config.models import LinkStateSettings
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.lsdb import BootComparison, LinkStateDatabase
from router.core.linkstate.messages import LinkStateUpdate, RouterAdvertisement
from router.core.linkstate.throttle import Throttle

A, B, C, D = (RouterId(name) for name in "ABCD")
SETTINGS = LinkStateSettings()


def database() -> LinkStateDatabase:
    return LinkStateDatabase(A, SETTINGS)


def store(base: LinkStateDatabase, router: RouterId, seq: int, peers: dict[RouterId, int], now: float = 0.0) -> bool:
    return base.store(base.node(router, now), LinkStateUpdate(id=router, instance=1, ls_seq=seq, peers=peers), now)


def test_an_edge_counts_when_both_ends_advertise_it() -> None:
    base = database()
    store(base, B, 1, {A: 1, C: 2})
    store(base, C, 1, {D: 1})
    assert base.edges({B: 1}) == {A: {B: 1}, B: {A: 1}, C: {D: 1}, D: {C: 1}}
    store(base, C, 2, {B: 3, D: 1})
    assert base.edges({B: 1}) == {A: {B: 1}, B: {A: 1, C: 2}, C: {B: 3, D: 1}, D: {C: 1}}


def test_an_edge_to_a_router_that_has_said_nothing_yet_counts_both_ways() -> None:
    base = database()
    base.node(B, 0.0)
    assert base.edges({B: 4}) == {A: {B: 4}, B: {A: 4}}
    store(base, B, 1, {})
    assert base.edges({B: 4}) == {A: {}, B: {}}


def lost(is_unasked: bool) -> LinkStateDatabase:
    """B, which was lost at 1."""
    base = database()
    store(base, B, 1, {A: 1, C: 2})
    base.nodes[B].is_unasked = is_unasked
    base.reach(base.nodes[B])
    base.lose(B)
    base.doubt(B, 1.0)
    return base


ALL_EDGES = {A: {B: 1}, B: {A: 1, C: 2}, C: {B: 2}}


def test_what_a_lost_router_said_does_not_count_until_it_is_confirmed() -> None:
    base = lost(is_unasked=True)
    assert not base.doubt_what_is_due(1.2)
    assert base.edges({B: 1}) == ALL_EDGES
    assert base.doubt_what_is_due(1.25)
    assert base.edges({B: 1}) == {A: {B: 1}, B: {A: 1}}, "as if it had said nothing"
    assert base.edges({B: 1}, with_unconfirmed=True) == ALL_EDGES
    assert base.confirm(base.nodes[B])
    assert not base.confirm(base.nodes[B])
    assert base.edges({B: 1}) == ALL_EDGES


def test_the_same_link_state_again_is_a_change_where_it_did_not_count() -> None:
    base = lost(is_unasked=True)
    base.doubt_what_is_due(9.0)
    assert store(base, B, 2, {A: 1, C: 2}, now=9.0)
    assert base.nodes[B].changed_at == 0.0, "its peers are the same"
    assert base.edges({B: 1}) == ALL_EDGES


def test_who_is_reached_again_soon_is_not_doubted() -> None:
    base = lost(is_unasked=True)
    base.reach(base.nodes[B])
    assert not base.doubt_what_is_due(9.0)


def test_link_state_that_comes_when_it_is_asked_for_is_not_doubted() -> None:
    assert not lost(is_unasked=False).doubt_what_is_due(9.0)


def test_a_router_is_no_peer_of_its_own() -> None:
    base = database()
    store(base, B, 1, {A: 1, B: 1})
    assert base.edges({B: 1}) == {A: {B: 1}, B: {A: 1}}


def test_link_state_is_a_change_only_when_the_peers_are_others() -> None:
    base = database()
    assert store(base, B, 1, {A: 1}, now=1.0)
    assert not store(base, B, 2, {A: 1}, now=2.0)
    assert base.nodes[B].ls_seq == 2
    assert base.nodes[B].changed_at == 1.0
    assert store(base, B, 3, {A: 2}, now=3.0)
    assert base.nodes[B].changed_at == 3.0


def test_a_higher_boot_number_is_newer_and_a_lower_one_is_late() -> None:
    base = database()
    node = base.node(B, 0.0)
    assert base.judge(node, 5, 0.0) is BootComparison.HELD
    base.take_instance(node, 5, 0.0)
    node.is_reachable = True
    assert base.judge(node, 5, 0.0) is BootComparison.HELD
    assert base.judge(node, 6, 0.0) is BootComparison.NEWER
    assert base.judge(node, 4, 0.0) is BootComparison.OLDER


def test_a_lower_boot_number_is_believed_when_the_higher_one_is_gone() -> None:
    base = database()
    node = base.node(B, 0.0)
    base.take_instance(node, 5, 0.0)
    assert base.judge(node, 4, SETTINGS.hello_max_age_s - 0.1) is BootComparison.OLDER
    assert base.judge(node, 4, SETTINGS.hello_max_age_s) is BootComparison.NEWER
    node.is_reachable = True
    assert base.judge(node, 4, SETTINGS.ra_interval_s - 1) is BootComparison.OLDER
    assert base.judge(node, 4, SETTINGS.ra_interval_s) is BootComparison.NEWER


def test_a_restart_forgets_the_link_state() -> None:
    base = database()
    store(base, B, 7, {A: 1})
    node = base.nodes[B]
    base.note(node, RouterAdvertisement(id=B, instance=1, ls_seq=9, mobile_seq=3))
    assert node.is_behind
    base.restart(node, 2, 1.0)
    assert (node.instance, node.ls_seq, node.has_link_state, dict(node.peers)) == (2, 0, False, {})
    assert (node.advertised_ls_seq, node.advertised_mobile_seq) == (0, 0)
    base.check_invariants()


def test_only_what_goes_further_is_news() -> None:
    base = database()
    node = base.node(B, 0.0)
    steps = [((1, 0), True), ((1, 0), False), ((0, 1), True), ((0, 0), False), ((1, 1), False), ((2, 1), True)]
    for (ls_seq, mobile_seq), is_news in steps:
        advertisement = RouterAdvertisement(id=B, instance=1, ls_seq=ls_seq, mobile_seq=mobile_seq)
        assert base.note(node, advertisement) is is_news


def test_unheard_routers_are_forgotten_if_unreachable_and_asked_anew_if_reachable() -> None:
    base = database()
    store(base, B, 1, {A: 1}, now=0.0)
    store(base, C, 1, {B: 1}, now=0.0)
    store(base, D, 1, {B: 1}, now=20.0)
    base.nodes[B].is_reachable = True
    assert base.next_aging == SETTINGS.remote_ls_max_age_s
    assert base.age(30.0) == ([], False)
    assert base.age(60.0) == ([C], True)
    assert sorted(base.nodes) == [B, D]
    assert not base.nodes[B].has_link_state
    assert base.next_aging == 80.0
    base.check_invariants()
    assert base.age(80.0) == ([D], True)


def test_a_throttle_is_open_in_calm_times_and_doubles_its_pauses() -> None:
    throttle = Throttle(1.0)
    assert throttle.due(0.0) == 0.0
    for time, pause in ((0.0, 1.0), (1.0, 2.0), (3.0, 4.0)):
        assert throttle.due(time) == time
        throttle.ran(time, 100)
        assert throttle.due(time) == time + pause
    assert throttle.due(11.0) == 11.0
    throttle.ran(11.0, 100)
    assert throttle.due(11.5) == 12.0


def test_after_paths_in_a_large_graph_there_is_a_pause_of_many_times_what_they_take() -> None:
    throttle = Throttle(0.005)
    throttle.ran(0.0, 60, 60 * 59)
    assert throttle.due(0.001) == 0.005
    throttle = Throttle(0.0)
    throttle.ran(0.0, 300, 90_000)
    assert throttle.due(0.001) >= 0.5


def test_the_longest_pause_grows_with_the_mesh_and_one_of_zero_stays_zero() -> None:
    for routers, longest in ((10, 2.0), (1000, 33.0)):
        throttle, none = Throttle(1.0), Throttle(0.0)
        now = 0.0
        for _ in range(20):
            throttle.ran(now, routers)
            none.ran(now, routers)
            assert none.due(now) == now
            assert throttle.due(now) <= now + longest
            pause, now = throttle.due(now) - now, throttle.due(now)
        assert pause == longest
