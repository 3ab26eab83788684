"""Requests about queues, as RabbitMQ's AMQP 1.0 clients make them: a responder asks whether its requester is there."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from proton import Data, Link, Message, PropertyDict, symbol, uint, ulong

from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.engine.test_addresses import volatile
from tests.engine.test_policy import enter, everything, vhost
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, decode

NODE = "/management"
NAME = "management-link-pair"
MESSAGE_IDS = itertools.count(1)


def paired(link: Link) -> None:
    """Attach as RabbitMQ's clients do: settled, and one of a pair."""
    link.snd_settle_mode = Link.SND_SETTLED
    link.rcv_settle_mode = Link.RCV_FIRST
    link.properties = PropertyDict({symbol("paired"): True})
    link.source.address = link.target.address = NODE


class Pair:
    """A client's pair of links to the management node, in one session."""

    def __init__(self, client: Peer, name: str = NAME) -> None:
        session = client.session()
        self.sender = client.sender(NODE, name=name, session=session, prepare=paired)
        self.receiver = client.receiver(NODE, name=name, session=session, credit=100, prepare=paired)

    def ask(self, bench: Bench, path: str | None, method: str | None = "GET", **fields: Any) -> Message:
        """The answer to a request."""
        asked = {"reply_to": "$me", "id": f"id-{next(MESSAGE_IDS)}", **fields}
        before = len(self.receiver.messages)
        self.sender.send(bytes(Message(address=path, subject=method, inferred=False, **asked).encode()), settled=True)
        bench.run()
        (received,) = self.receiver.messages[before:]
        assert received.was_settled
        answer = decode(received.data)
        assert answer.correlation_id == asked["id"]
        assert answer.properties == {"http:response": "1.1"}
        return answer

    def status(self, bench: Bench, path: str | None, method: str | None = "GET", **fields: Any) -> tuple[str, str]:
        """The status of a request that asks for no queue, and its explanation."""
        answer = self.ask(bench, path, method, **fields)
        assert isinstance(answer.body, str)  # RabbitMQ's Go client takes any map for a queue
        return answer.subject, answer.body


def served(bench: Bench, **settings: Any) -> Runtime:
    router = bench.router("A", **settings)
    serve_management(router)
    return router


def test_the_answer_has_what_the_clients_of_rabbitmq_read(bench: Bench) -> None:
    router = served(bench)
    client = bench.client(router)
    client.receiver("orders", credit=0)
    answer = Pair(client).ask(bench, "/queues/orders")
    assert answer.subject == "200"
    assert answer.body == {
        "name": "orders",
        "durable": False,
        "auto_delete": True,
        "exclusive": False,
        "type": "classic",
        "arguments": {},
        "leader": "A",
        "replicas": answer.body["replicas"],
        "message_count": 0,
        "consumer_count": 1,
    }
    replicas = answer.body["replicas"]
    assert (replicas.type, list(replicas.elements)) == (Data.STRING, ["A"])
    assert type(answer.body["message_count"]) is ulong
    assert type(answer.body["consumer_count"]) is uint


def test_both_links_are_confirmed_as_a_pair(bench: Bench) -> None:
    pair = Pair(bench.client(served(bench)))
    for link in (pair.sender.link, pair.receiver.link):
        assert dict(link.remote_properties) == {"paired": True}
        assert (link.remote_source.address, link.remote_target.address) == (NODE, NODE)


def test_a_requester_is_there_until_it_has_gone(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"), ("B", "C"))
    pairs = []
    for router in routers:
        serve_management(router)
        pairs.append(Pair(bench.client(router)))
    requester = bench.client(routers[0])
    replies = volatile(requester)
    path = f"/queues/{replies.address}"
    for pair in pairs:
        answer = pair.ask(bench, path)
        assert (answer.subject, answer.body["leader"], answer.body["exclusive"]) == ("200", "A", True)
    replies.close()
    bench.run()
    for pair in pairs:
        status, why = pair.status(bench, path)
        assert (status, why) == ("404", f"no queue `{replies.address}`: nobody in the mesh receives from there")


def test_receivers_of_the_whole_mesh_are_counted(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"), ("B", "C"))
    serve_management(routers[0])
    for router in routers:
        client = bench.client(router)
        client.receiver("orders", credit=0)
        client.receiver("orders", credit=0)
    answer = Pair(bench.client(routers[0])).ask(bench, "/queues/orders")
    assert answer.body["consumer_count"] == 2 + 1 + 1
    assert list(answer.body["replicas"].elements) == ["A", "B", "C"]


def test_a_plain_reply_address_is_known_where_it_was_made(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    here, elsewhere = Pair(bench.client(routers[0])), Pair(bench.client(routers[1]))
    replies = bench.client(routers[0]).receiver(None, dynamic=True, credit=1)
    path = "/queues/" + str(replies.address).replace("/", "%2F").replace(":", "%3A")
    assert here.ask(bench, path).subject == "200"
    status, why = elsewhere.status(bench, path)
    assert status == "421"
    assert "only the router `A` knows" in why
    assert str(replies.address).rpartition(".")[2] not in why  # who knows it can send there
    replies.close()
    bench.run()
    assert here.status(bench, path)[0] == "404"
    bench.wires[0].cut()
    bench.advance(30)
    assert elsewhere.status(bench, path)[0] == "404"


def test_a_receiver_of_rabbitmq_s_own_spelling_is_found(bench: Bench) -> None:
    client = bench.client(served(bench))
    pair = Pair(client)
    client.receiver("/queues/my orders", credit=0)
    assert pair.ask(bench, "/queues/my%20orders").subject == "200"


def test_an_address_that_only_senders_name_is_no_queue(bench: Bench) -> None:
    client = bench.client(served(bench))
    pair = Pair(client)
    client.sender("orders")
    assert pair.status(bench, "/queues/orders")[0] == "404"


@pytest.mark.parametrize(
    ("path", "method", "status", "why"),
    [
        ("/queues/x", "PUT", "405", "a router has no queues, exchanges or bindings"),
        ("/queues/x", "DELETE", "405", "`DELETE /queues/x` is not possible"),
        ("/queues/x/messages", "DELETE", "405", "not possible"),
        ("/exchanges/x", "PUT", "405", "not possible"),
        ("/bindings", "POST", "405", "not possible"),
        ("/auth/tokens", "PUT", "405", "not possible"),
        ("/bindings?src=x&key=y", "GET", "404", "there is `/queues/:name`"),
        ("/queues/x/messages", "GET", "404", "there is `/queues/:name`"),
        ("/queues/", "GET", "404", "there is `/queues/:name`"),
        ("/", "GET", "404", "there is `/queues/:name`"),
        ("/somewhere", "GET", "404", "there is `/queues/:name`"),
        ("/queues/%ff", "GET", "400", "no UTF-8"),
        ("/queues/$management", "GET", "404", "nobody in the mesh receives"),
        ("/queues/qdhello", "GET", "404", "nobody in the mesh receives"),
        ("/queues/_topo%2F0%2Fall%2Fx", "GET", "404", "nobody in the mesh receives"),
        ("/queues/_local%2Fqdhello", "GET", "404", "nobody in the mesh receives"),
        (None, "GET", "400", "a path as `to`"),
        ("/queues/x", None, "400", "a method as `subject`"),
    ],
)
def test_everything_else_is_refused_with_a_reason(
    bench: Bench, path: str | None, method: str | None, status: str, why: str
) -> None:
    found = Pair(bench.client(served(bench))).status(bench, path, method)
    assert found[0] == status
    assert why in found[1]


def test_a_name_that_is_longer_than_any_address_is_nobodys(bench: Bench) -> None:
    router = served(bench, vhosts=(everything(),))
    status, why = Pair(enter(bench, router)).status(bench, "/queues/" + "a/" * 20_000)
    assert status == "404"
    assert len(why) < 300


def test_a_reply_goes_nowhere_but_to_the_other_link(bench: Bench) -> None:
    router = served(bench)
    client = bench.client(router)
    other = client.receiver("other", credit=10)
    pair = Pair(client)
    assert pair.status(bench, "/queues/x", reply_to="other")[0] == "400"
    assert not other.messages


def test_ids_that_cannot_be_written_back_are_left_out(bench: Bench) -> None:
    answer = Pair(bench.client(served(bench))).ask(bench, "/queues/x", id=None)
    assert answer.subject == "404"


def test_unreadable_requests_are_refused(bench: Bench) -> None:
    pair = Pair(bench.client(served(bench)))
    whole = bytes(Message(address="/queues/x", subject="GET", id="one", reply_to="$me", body=["x"] * 3).encode())
    pair.sender.send(whole[:-2], settled=True)
    bench.run()
    answer = decode(pair.receiver.messages[0].data)
    assert (answer.subject, answer.correlation_id) == ("400", "one")
    assert pair.status(bench, "/queues/x")[0] == "404"


def test_the_python_client_writes_the_body_first(bench: Bench) -> None:
    client = bench.client(served(bench))
    pair = Pair(client)
    client.receiver("x", credit=0)
    # rabbitmq-amqp-python-client 1.0.1, Management.queue_info and Management.declare_queue, with other names
    no_body = b"\x00Sw@\x00Ss\xc0\x1a\x05\xa1\x01x@\xa1\t/queues/x\xa1\x03GET\xa1\x03$me"
    with_body = (
        b"\x00Sw\xd1\x00\x00\x00\x10\x00\x00\x00\x02\xa1\x07durable\x56\x01"
        b"\x00Ss\xc0\x1a\x05\xa1\x01x@\xa1\t/queues/x\xa1\x03PUT\xa1\x03$me"
    )
    for request in (no_body, with_body):
        pair.sender.send(request, settled=True)
    bench.run()
    answers = [decode(one.data) for one in pair.receiver.messages]
    assert [(answer.subject, answer.correlation_id) for answer in answers] == [("200", "x"), ("405", "x")]


def test_several_pairs_of_a_connection_get_their_own_answers(bench: Bench) -> None:
    client = bench.client(served(bench))
    pairs = [Pair(client), Pair(client), Pair(client, "another")]
    for pair in (*pairs, *pairs):
        assert pair.status(bench, "/queues/x")[0] == "404"
    assert [len(pair.receiver.messages) for pair in pairs] == [2, 2, 2]


def test_a_request_without_a_receiver_is_dropped_and_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    router = served(bench)
    client = bench.client(router)
    pair = Pair(client)
    pair.receiver.close()
    bench.run()
    pair.sender.send(bytes(Message(address="/queues/x", subject="GET", reply_to="$me").encode()), settled=True)
    bench.run()
    assert "no receiver of its name" in capsys.readouterr().out
    pair.sender.close()
    bench.run()
    assert router.pairs.count == 0
    assert Pair(client).status(bench, "/queues/x")[0] == "404"


def test_nothing_of_a_pair_stays_behind(bench: Bench) -> None:
    router = served(bench)
    before = len(router.fib.all_entries())
    client = bench.client(router)
    for _ in range(3):
        pair = Pair(client)
        assert pair.status(bench, "/queues/x")[0] == "404"
        pair.sender.close()
        pair.receiver.close()
    Pair(client)
    bench.run()
    client.close()
    bench.run()
    bench.advance(5)
    assert (router.pairs.count, len(router.fib.all_entries())) == (0, before)


def test_without_the_property_it_is_an_address_as_any_other(bench: Bench) -> None:
    client = bench.client(served(bench))
    received = client.receiver(NODE, credit=10).accepting()
    assert client.sender("management").send(bytes(Message(body="hello").encode())) is not None
    bench.run()
    assert received.bodies == ["hello"]


# Policy


def test_whoever_may_send_to_an_address_may_ask(bench: Bench) -> None:
    router = served(bench, vhosts=(vhost(targets=("orders",), sources=("#",), isolated=False),))
    client = enter(bench, router)
    pair = Pair(client)
    client.receiver("orders", credit=0)
    client.receiver("secret", credit=0)
    assert pair.ask(bench, "/queues/orders").subject == "200"
    for name in ("secret", "neverseen"):
        status, why = pair.status(bench, f"/queues/{name}")
        assert (status, why) == ("403", f"user `anonymous` may not send to {name} in virtual host `shop`")


def test_queues_of_virtual_hosts_are_apart(bench: Bench) -> None:
    router = served(bench, vhosts=(everything("shop", isolated=True), everything("mill", isolated=True)))
    shop, mill = enter(bench, router, "shop"), enter(bench, router, "mill")
    shop.receiver("orders", credit=0)
    assert Pair(shop).ask(bench, "/queues/orders").subject == "200"
    pair = Pair(mill)
    assert pair.status(bench, "/queues/orders")[0] == "404"
    assert pair.status(bench, "/queues/shop%2Forders")[0] == "404"


def test_a_listener_s_virtual_hosts_are_apart_too(bench: Bench) -> None:
    router = served(bench)
    one, two = (bench.client(router, listener={"vhost_prefix": True}, hostname=name) for name in ("one", "two"))
    one.receiver("orders", credit=0)
    assert Pair(one).ask(bench, "/queues/orders").subject == "200"
    assert Pair(two).status(bench, "/queues/orders")[0] == "404"
