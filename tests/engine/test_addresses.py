"""Addresses: treatments, reply addresses, anonymous senders, virtual hosts, and what a router keeps for itself."""

from __future__ import annotations

from collections import Counter

import pytest
from proton import Link, symbol

from router.core.addressing.address import is_volatile_reply
from router.engine.client_links import VOLATILE_QUEUE
from router.views.management_service import serve_management
from tests.helpers.engine import Bench, settle_modes
from tests.helpers.peer import Peer, PeerReceiver, decode, message

TRIANGLE = (("A", "B"), ("B", "C"), ("A", "C"))
MULTICAST = "openstack.org/om/rpc/multicast/openstack/topic"
CLOSEST = "openstack.org/om/rpc/unicast/openstack/topic/server"
BALANCED = "openstack.org/om/rpc/anycast/openstack/topic"


def accepting(client: Peer, address: str, credit: int = 1000) -> PeerReceiver:
    return client.receiver(address, credit=credit).accepting()


# Multicast


@pytest.mark.parametrize("settled", [False, True])
def test_a_multicast_reaches_every_subscriber_exactly_once_in_a_triangle(bench: Bench, settled: bool) -> None:
    routers = bench.mesh(*TRIANGLE)
    clients = [bench.client(router) for router in routers]
    receivers = [accepting(client, MULTICAST) for client in clients for _ in range(3)]
    for number, client in enumerate(clients):
        sender = client.sender(MULTICAST)
        sent = [sender.send(message(f"{number} {n}"), settled=settled) for n in range(10)]
        bench.advance(1)  # those who sent before are idle by then
        assert settled or {one.outcome for one in sent} == {"accepted"}
    expected = sorted(f"{number} {n}" for number in range(3) for n in range(10))
    for receiver in receivers:
        assert sorted(receiver.bodies) == expected
        for number in range(3):
            mine = [body for body in receiver.bodies if body.startswith(str(number))]
            assert mine == [f"{number} {n}" for n in range(10)]


def test_a_multicast_of_an_anonymous_sender_crosses_too(bench: Bench) -> None:
    routers = bench.mesh(*TRIANGLE)
    receivers = [accepting(bench.client(router), MULTICAST) for router in routers]
    sent = bench.client(routers[1]).sender(None).send(message("x", address=MULTICAST))
    bench.run()
    assert [receiver.bodies for receiver in receivers] == [["x"]] * 3
    assert sent.outcome == "accepted"


def test_a_multicast_of_several_frames_arrives_once_and_whole(bench: Bench) -> None:
    routers = bench.mesh(*TRIANGLE)
    receivers = [accepting(bench.client(router), MULTICAST) for router in routers]
    data = message("x" * 200_000)
    sent = bench.client(routers[0]).sender(MULTICAST).begin(data[:50_000])
    bench.run()
    assert not any(receiver.partial or receiver.messages for receiver in receivers)
    sent.end(data[50_000:])
    bench.run()
    assert [receiver.bodies for receiver in receivers] == [["x" * 200_000]] * 3
    assert sent.outcome == "accepted"


def test_a_subscriber_that_stalls_misses_copies_and_holds_up_nobody(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    stalled = bench.client(routers[1]).receiver(MULTICAST, credit=5)
    late = bench.client(routers[1]).receiver(MULTICAST)
    receivers = [accepting(bench.client(router), MULTICAST) for router in routers]
    sender = bench.client(routers[0]).sender(MULTICAST)
    sent = [sender.send(message(n)) for n in range(20)]
    bench.advance(0.9)
    assert [len(receiver.messages) for receiver in receivers] == [5, 5], "held up by one that has no credit left"
    bench.advance(0.5)
    assert [receiver.bodies for receiver in receivers] == [list(range(20))] * 2
    assert {one.outcome for one in sent} == {"accepted"}
    assert stalled.bodies == list(range(5))
    entry = routers[1].fib.find(MULTICAST)
    assert entry is not None
    assert entry.dropped == 15
    assert late.bodies == [], "who has not granted anything yet does not count"
    stalled.flow(100)
    late.flow(100)
    bench.advance(2)
    sender.send(message("again"))
    bench.advance(0.1)
    assert [receiver.bodies[-1] for receiver in (*receivers, stalled, late)] == ["again"] * 4


def test_a_multicast_to_nobody_is_released(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    sent = client.sender(None).send(message("x", address=MULTICAST))
    bench.run()
    assert sent.outcome == "released"


# Closest and balanced


def test_closest_goes_to_the_nearest_and_by_turns_among_equals(bench: Bench) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    near = [accepting(bench.client(b), CLOSEST) for _ in range(2)]
    far = accepting(bench.client(c), CLOSEST)
    sender = bench.client(a).sender(CLOSEST)
    for n in range(10):
        sender.send(message(n))
        bench.run()
    assert [len(receiver.messages) for receiver in near] == [5, 5]
    assert far.messages == []
    for receiver in near:
        receiver.close()
    bench.run()
    sender.send(message("far"))
    bench.run()
    assert far.bodies == ["far"]


def test_closest_by_turns_among_routers_that_are_equally_near(bench: Bench) -> None:
    a, b, c = bench.mesh(*TRIANGLE)
    receivers = [accepting(bench.client(router), CLOSEST) for router in (b, c)]
    sender = bench.client(a).sender(CLOSEST)
    for n in range(10):
        sender.send(message(n))
        bench.run()
    assert [receiver.bodies for receiver in receivers] == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_balanced_is_shared_by_local_subscribers(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    receivers = [client.receiver(BALANCED, credit=100) for _ in range(4)]
    sender = client.sender(BALANCED)
    for n in range(40):
        sender.send(message(n))
    bench.run()
    assert [len(receiver.messages) for receiver in receivers] == [10] * 4


def test_balanced_spills_to_a_farther_router_when_the_nearer_falls_behind(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    near = bench.client(a).receiver(BALANCED, credit=60)
    far = bench.client(b).receiver(BALANCED, credit=1000)
    sender = bench.client(a).sender(BALANCED)
    for n in range(100):
        sender.send(message(n))
    bench.run()
    assert (len(near.messages), len(far.messages)) == (60, 40)


def test_balanced_goes_where_there_is_credit(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.client(a).receiver(BALANCED)
    far = accepting(bench.client(b), BALANCED)
    sent = bench.client(a).sender(BALANCED).send(message("x"))
    bench.run()
    assert far.bodies == ["x"]
    assert sent.outcome == "accepted"


# Reply addresses


def test_a_reply_address_is_reached_from_every_router_the_moment_it_is_given(bench: Bench) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    receiver = bench.client(a).receiver(None, dynamic=True, credit=10).accepting()
    address = receiver.address
    assert address is not None
    assert address.startswith("amqp:/_topo/0/A/temp.")
    for router in (a, b, c):
        client = bench.client(router)
        attached = client.sender(address).send(message(f"{router.me} attached"))
        anonymous = client.sender(None).send(message(f"{router.me} anonymous", address=address))
        bench.run()
        assert (attached.outcome, anonymous.outcome) == ("accepted", "accepted")
    assert receiver.bodies == [f"{one} {how}" for one in "ABC" for how in ("attached", "anonymous")]


def test_a_call_crosses_three_routers_and_comes_back(bench: Bench) -> None:
    a, _, c = bench.mesh(("A", "B"), ("B", "C"))
    server, caller = bench.client(c), bench.client(a)
    requests = server.receiver(CLOSEST, credit=100)
    answers = server.sender(None)

    def answer(request: object) -> None:
        received = decode(request.data)  # type: ignore[attr-defined]
        request.settle()  # type: ignore[attr-defined]
        answers.send(message(received.body * 2, address=received.reply_to, correlation_id=received.id), settled=True)

    requests.policy = answer
    replies = caller.receiver(None, dynamic=True, credit=100).accepting()
    sender = caller.sender(CLOSEST)
    for number in range(20):
        sender.send(message(number, id=f"call-{number}", reply_to=replies.address))
    bench.run()
    assert replies.bodies == [2 * number for number in range(20)]
    assert [decode(one.data).correlation_id for one in replies.messages] == [f"call-{n}" for n in range(20)]


def test_a_dead_reply_address_is_attached_without_credit_and_released_to(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    for router in (a, b):
        receiver = bench.client(a).receiver(None, dynamic=True, credit=10)
        address = receiver.address
        client = bench.client(router)
        sender = client.sender(address)
        assert sender.credit > 0
        receiver.close()
        bench.run()
        assert sender.closed is None
        sent = client.sender(None).send(message("late", address=address))
        bench.run()
        assert sent.outcome == "released"
    local = bench.client(a).sender(address)
    assert local.closed is None
    assert local.credit == 0


def test_two_reply_addresses_differ_and_go_with_their_links(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    receivers = [client.receiver(None, dynamic=True, credit=1) for _ in range(50)]
    assert len({receiver.address for receiver in receivers}) == 50
    for receiver in receivers:
        receiver.close()
    bench.run()
    assert not list(router.fib.entries())


# RabbitMQ's Direct Reply-To


def volatile(client: Peer) -> PeerReceiver:
    def prepare(link: Link) -> None:
        link.source.expiry_policy = link.source.EXPIRE_WITH_LINK
        settle_modes(snd_settle_mode=Link.SND_SETTLED)(link)

    return client.receiver(None, dynamic=True, credit=100, capabilities=[VOLATILE_QUEUE], prepare=prepare)


def test_a_volatile_queue_is_recognised_and_its_capability_echoed(bench: Bench) -> None:
    receiver = volatile(bench.client(bench.router("A")))
    assert receiver.address is not None
    assert is_volatile_reply(receiver.address)
    capabilities = receiver.link.remote_source.capabilities
    capabilities.rewind()
    capabilities.next()
    found = capabilities.get_object()
    assert list(getattr(found, "elements", [found])) == [symbol(VOLATILE_QUEUE)]


def test_a_responder_asks_whether_its_requester_is_still_there(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"), ("B", "C"))
    receiver = volatile(bench.client(routers[0]))
    clients = [bench.client(router) for router in routers]
    for client in clients:
        sender = client.sender(receiver.address)
        assert sender.closed is None
        sent = sender.send(message("reply"))
        bench.advance(0.2)  # who had the credit before is idle now
        assert sent.outcome == "accepted"
    assert receiver.bodies == ["reply"] * 3
    assert all(one.was_settled for one in receiver.messages)
    receiver.close()
    bench.run()
    for client in clients:
        assert client.sender(receiver.address).closed == "amqp:not-found"


def test_a_fresh_requester_is_known_wherever_its_request_comes(bench: Bench) -> None:
    # the advertisement is written before the answer to the attach, hence before any request
    a, _, c = bench.mesh(("A", "B"), ("B", "C"))
    server, caller = bench.client(c), bench.client(a)
    refused = []

    def answer(request: object) -> None:
        request.settle()  # type: ignore[attr-defined]
        sender = server.sender(decode(request.data).reply_to, run=False)  # type: ignore[attr-defined]
        refused.append(sender)

    server.receiver(CLOSEST, credit=100).policy = answer
    sender = caller.sender(CLOSEST)
    for _ in range(10):
        receiver = volatile(caller)
        sender.send(message("call", reply_to=receiver.address), settled=True)
        bench.run()
    assert len(refused) == 10
    assert [sender.closed for sender in refused] == [None] * 10


# Virtual hosts


def test_a_virtual_host_keeps_addresses_apart(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    listener = {"vhost_prefix": True}
    receivers = {
        vhost: accepting(bench.client(b, listener=listener, hostname=vhost), "topic") for vhost in ("one", "two", None)
    }
    plain = accepting(bench.client(b), "one/topic")
    for vhost in ("one", "two", None):
        client = bench.client(a, listener=listener, hostname=vhost)
        for link in (client.sender("topic"), client.sender(None)):
            link.send(message(f"for {vhost}", address="topic"))
        bench.run()
    assert receivers["two"].bodies == ["for two"] * 2
    assert receivers[None].bodies == ["for None"] * 2
    assert Counter(receivers["one"].bodies + plain.bodies) == {"for one": 2}
    assert receivers["two"].address == "topic"


def test_reply_addresses_cross_virtual_hosts(bench: Bench) -> None:
    router = bench.router("A")
    one = bench.client(router, listener={"vhost_prefix": True}, hostname="one")
    receiver = one.receiver(None, dynamic=True, credit=5).accepting()
    for client in (one, bench.client(router)):
        client.sender(None).send(message("x", address=receiver.address))
        client.sender(receiver.address).send(message("y"))
    bench.run()
    assert receiver.bodies == ["x", "y", "x", "y"]


def test_a_host_name_means_nothing_to_other_listeners(bench: Bench) -> None:
    router = bench.router("A")
    receiver = accepting(bench.client(router, hostname="some.host"), "topic")
    bench.client(router).sender("topic").send(message("x"))
    bench.run()
    assert receiver.bodies == ["x"]


# Routers as publishers' neighbors


def test_annotations_of_a_router_never_reach_a_client(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"), ("B", "C"))
    receiver = accepting(bench.client(routers[2]), "topic")
    client = bench.client(routers[0])
    own = {symbol("x-opt-mine"): "kept", symbol("another"): 7}
    for link in (client.sender("topic"), client.sender(None)):
        link.send(message("x", address="topic", annotations=own))
    bench.run()
    assert [decode(one.data).annotations for one in receiver.messages] == [own, own]


def test_annotations_that_only_routers_may_write_are_dropped(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    receiver = accepting(bench.client(routers[1]), "topic")
    client = bench.client(routers[0])
    forged = {symbol("x-opt-qd.to"): "elsewhere", symbol("x-opt-qd.trace"): ["0/B"], symbol("x-opt-qd.ingress"): "0/B"}
    sent = [
        link.send(message("x", address="topic", annotations=forged))
        for link in (client.sender("topic"), client.sender(None))
    ]
    bench.run()
    assert receiver.bodies == ["x", "x"]
    assert [one.outcome for one in sent] == ["accepted"] * 2


def test_every_section_crosses_unchanged(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"), ("B", "C"))
    receiver = accepting(bench.client(routers[2]), "topic")
    data = message(
        {"a": [1, 2.5, None, b"\x00"]},
        durable=True,
        priority=9,
        ttl=50.0,
        first_acquirer=True,
        delivery_count=3,
        instructions={symbol("x"): 1},
        annotations={symbol("y"): [1, 2]},
        id="id",
        user_id=b"me",
        subject="s",
        reply_to="r",
        correlation_id=7,
        content_type=symbol("a/b"),
        creation_time=1.0,
        group_id="g",
        properties={"k": "v"},
    )
    client = bench.client(routers[0])
    client.sender("topic").send(data)
    bench.run()
    assert [one.data for one in receiver.messages] == [data]
    # in a datagram the entries are copied; what is around them is written anew, as short as can be
    addressed = message("x", address="topic", annotations={symbol("y"): [1, 2]})
    client.sender(None).send(addressed)
    bench.run()
    assert receiver.messages[1].data == addressed.replace(
        b"\x00Sr\xd1\x00\x00\x00\x14\x00\x00\x00\x02", b"\x00Sr\xc1\x11\x02"
    )


# What the router answers itself


@pytest.mark.parametrize("address", ["$management", "amqp:/_topo/0/A/$management", "_local/$management"])
def test_the_management_node_is_attached_to_and_answers(bench: Bench, address: str) -> None:
    router = bench.router("A")
    serve_management(router)
    client = bench.client(router)
    replies = client.receiver(None, dynamic=True, credit=10).accepting()
    sender = client.sender(address)
    assert sender.closed is None
    assert sender.credit > 0
    query = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router", "type": "org.amqp.management"}
    body = {"attributeNames": ["id"]}
    sent = sender.send(message(body, reply_to=replies.address, correlation_id="q", properties=query))
    bench.run()
    assert sent.outcome == "accepted"
    answer = decode(replies.messages[0].data)
    assert answer.correlation_id == "q"
    assert answer.properties["statusCode"] == 200
    assert answer.body["results"] == [["A"]]


def test_nobody_takes_the_management_node_s_place(bench: Bench) -> None:
    router = bench.router("A")
    serve_management(router)
    client = bench.client(router)
    assert client.receiver("$management", credit=1).closed == "amqp:not-allowed"


def test_another_router_s_management_node_is_reached_by_its_id(bench: Bench) -> None:
    a, _, c = bench.mesh(("A", "B"), ("B", "C"))
    serve_management(c)
    client = bench.client(a)
    replies = client.receiver(None, dynamic=True, credit=10).accepting()
    query = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router", "type": "org.amqp.management"}
    to = "amqp:/_topo/0/C/$management"
    client.sender(None).send(message({"attributeNames": []}, address=to, reply_to=replies.address, properties=query))
    client.sender(to).send(message({"attributeNames": []}, reply_to=replies.address, properties=query))
    bench.run()
    assert [decode(one.data).properties["statusCode"] for one in replies.messages] == [200, 200]


@pytest.mark.parametrize("edges", [(("A", "X"),), (("A", "B"), ("B", "X")), (("A", "B"), ("B", "C"), ("C", "X"))])
def test_every_request_on_one_link_to_another_routers_management_is_answered(
    any_bench: Bench, edges: tuple[tuple[str, str], ...]
) -> None:
    routers = any_bench.mesh(*edges)
    serve_management(routers[-1])
    client = any_bench.client(routers[0])
    replies = client.receiver(None, dynamic=True, credit=600).accepting()
    sender = client.sender("amqp:/_topo/0/X/$management")
    query = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router", "type": "org.amqp.management"}
    body = {"attributeNames": ["id"]}
    for number in range(10):
        assert sender.credit > 0, number
        sender.send(message(body, reply_to=replies.address, correlation_id=number, properties=query))
        any_bench.run()
        any_bench.advance(0.01)
    assert [decode(one.data).correlation_id for one in replies.messages] == list(range(10))
    assert {sent.outcome for sent in sender.sent} == {"accepted"}
    any_bench.advance(100)  # the circuit is idle, and ended
    sender.send(message(body, reply_to=replies.address, correlation_id=10, properties=query))
    any_bench.advance(0.1)
    assert decode(replies.messages[-1].data).correlation_id == 10


def test_a_circuit_to_a_service_has_a_window_of_its_own_that_is_never_used_up(bench: Bench) -> None:
    a, x = bench.mesh(("A", "X"))
    served: list[bytes] = []

    def take(data: bytes, _: object) -> bool:
        served.append(data)
        return True

    x.fib.serve("echo", take, 1_000_000)
    sender = bench.client(a).sender("_topo/0/X/echo")
    for number in range(1000):
        assert sender.credit > 0, number
        sender.send(message(number), settled=number % 2 == 0)
        bench.run()
    sender.send(message("x" * 200_000))
    bench.run()
    assert [decode(data).body for data in served] == [*range(1000), "x" * 200_000]
