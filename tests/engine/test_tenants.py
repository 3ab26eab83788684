"""Isolated virtual hosts: nothing of one is named, seen or reached from another one, by whichever form of a name."""

from __future__ import annotations

from typing import Any

import pytest

from mesh_config.models import GroupSettings, ManagementRight, VhostSettings
from router.core.addressing.address import masked
from router.management.schema import TYPES
from router.management.snapshot import ManagementRow
from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.engine.test_policy import DENIED, dynamic_sender, enter, everything, reply_receiver
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, decode, message

BLUE, GREEN = everything("blue", isolated=True), everything("green", isolated=True)
SHARED = everything("shared")


@pytest.fixture
def routers(bench: Bench) -> list[Runtime]:
    """Routers A and B with two tenants, and a virtual host without addresses of its own."""
    routers = [bench.router(name, vhosts=(BLUE, GREEN, SHARED)) for name in ("A", "B")]
    bench.join(*routers)
    bench.advance(5)
    return routers


def forms(name: str) -> list[str]:
    plain = [name, f"/{name}", f"amqp:/{name}", f"amqp://host/{name}", f"{name}/", f"$other/{name}"]
    here = [f"_local/{name}", f"_topo/0/A/{name}", f"_topo/all/A/{name}"]
    return [*plain, *here, f"_topo/0/all/{name}", f"amqp:/_topo/0/B/{name}", f"_edge/e/{name}"]


def test_the_same_name_is_another_address_in_each_virtual_host(bench: Bench, routers: list[Runtime]) -> None:
    a, b = routers
    names = ("blue", "green", "shared")
    receivers = {name: enter(bench, b, name).receiver("topic", credit=10).accepting() for name in names}
    bench.advance(1)
    for name in names:
        client = enter(bench, a, name)
        links = client.sender("topic"), client.sender(None)
        bench.advance(1)
        for link in links:
            link.send(message(f"for {name}", address="topic"))
        bench.advance(1)
    assert {name: found.bodies for name, found in receivers.items()} == {name: [f"for {name}"] * 2 for name in names}
    assert receivers["blue"].address == "topic"


@pytest.mark.parametrize("where", ["green", "shared"])
def test_no_form_of_a_name_reaches_into_a_virtual_host(bench: Bench, routers: list[Runtime], where: str) -> None:
    a, b = routers
    victims = [enter(bench, router, "blue").receiver("x", credit=100).accepting() for router in routers]
    bench.advance(1)
    senders = 0
    receivers: list[PeerReceiver] = []
    for router in (a, b):
        stranger = enter(bench, router, where)
        anonymous = stranger.sender(None)
        for form in ["x", *forms("blue/x"), *forms("blue"), *forms("green/blue/x")]:
            link = stranger.sender(form)
            bench.run()
            if link.closed is None:
                senders += 1
                link.send(message("named", address=form))
            anonymous.send(message("anonymous", address=form))
            receivers.append(stranger.receiver(form, credit=100))
            bench.run()
    assert senders > 0  # `x` is its own
    sent = enter(bench, a, "blue").sender("x").send(message("own"))
    bench.run()
    assert sent.outcome == "accepted"
    assert [body for victim in victims for body in victim.bodies] == ["own"]
    assert not any("own" in receiver.bodies for receiver in receivers)


def test_a_virtual_host_has_no_addresses_outside_its_own(bench: Bench, routers: list[Runtime]) -> None:
    client = enter(bench, routers[0], "blue")
    anonymous = client.sender(None)
    bench.run()
    for form in (
        "_local/x",
        "_topo/0/A/x",
        "_topo/0/B/x",
        "_topo/0/all/x",
        "_topo/1/A/x",
        "_edge/e/x",
        "$x",
        "$management/x",
    ):
        assert client.receiver(form, credit=1).closed is not None
        assert client.sender(form).closed == DENIED
        sent = anonymous.send(message("x", address=form))
        bench.run()
        assert sent.outcome == "rejected"


def test_what_begins_with_an_underscore_is_an_address_like_others(bench: Bench, routers: list[Runtime]) -> None:
    received = enter(bench, routers[0], "blue").receiver("_x", credit=1).accepting()
    enter(bench, routers[0], "blue").sender("_x").send(message("x"))
    bench.run()
    assert received.bodies == ["x"]


# Names that a router made


@pytest.mark.parametrize("kind", ["dynamic", "volatile"])
@pytest.mark.parametrize("where", ["green", "shared"])
def test_a_reply_address_is_of_no_use_in_another_virtual_host(
    bench: Bench, routers: list[Runtime], kind: str, where: str
) -> None:
    replies = reply_receiver(enter(bench, routers[0], "blue"), kind)
    address = str(replies.address)
    text = address.rpartition("/")[2]
    bench.advance(1)
    for router in routers:
        stranger = enter(bench, router, where)
        anonymous = stranger.sender(None)
        bench.run()
        for form in {
            address,
            text,
            f"_local/{text}",
            f"amqp:/_topo/0/A/{text}",
            f"blue/{text}",
            address.replace("~", "~x~"),
        }:
            link = stranger.sender(form)
            assert link.closed in (None, DENIED, "amqp:not-found")
            if link.closed is None:
                link.send(message("y", address=form))
            anonymous.send(message("x", address=form))
            bench.run()
    assert replies.bodies == []


@pytest.mark.parametrize("kind", ["dynamic", "volatile"])
def test_a_reply_address_of_the_common_namespace_is_none_for_a_virtual_host(
    bench: Bench, routers: list[Runtime], kind: str
) -> None:
    replies = reply_receiver(enter(bench, routers[0], "shared"), kind)
    assert enter(bench, routers[1], "blue").sender(replies.address).closed == DENIED
    assert enter(bench, routers[1], "shared").sender(replies.address).closed is None


def test_a_dynamic_target_is_of_its_virtual_host(bench: Bench, routers: list[Runtime]) -> None:
    sender = dynamic_sender(enter(bench, routers[0], "blue"))
    receivers = {
        name: enter(bench, routers[1], name).receiver(sender.address, credit=1).accepting()
        for name in ("blue", "green", "shared")
    }
    bench.advance(1)
    sender.send(message("told"))
    bench.run()
    assert {name: found.bodies for name, found in receivers.items()} == {"blue": ["told"], "green": [], "shared": []}


def test_management_shows_of_a_marked_reply_address_no_more_than_of_others() -> None:
    assert masked("temp.0123456789abcdef~abcdefghijklmnopqrstuvwx") == "temp.0123456789abcdef~abcdefgh*"
    assert masked("amq.rabbitmq.reply-to.R~1.abcdefghijklmnopqrstuvwx") == "amq.rabbitmq.reply-to.R~1.abcdefgh*"
    assert masked("h~st/_$temp.abcdefghi") == "h~st/_$temp.abc*"


# Management


def tenant(name: str, right: ManagementRight) -> VhostSettings:
    group = GroupSettings(
        name="all",
        users=("anonymous",),
        sources=("#",),
        targets=("#",),
        dynamic_addresses=True,
        anonymous_senders=True,
        management=right,
    )
    return VhostSettings(name=name, groups=(group,))


@pytest.fixture
def managed(bench: Bench) -> list[Runtime]:
    """The same, with rights of management."""
    vhosts = (
        tenant("blue", ManagementRight.OWN),
        tenant("green", ManagementRight.NONE),
        tenant("reader", ManagementRight.READ),
        tenant("admin", ManagementRight.WRITE),
    )
    routers = [bench.router(name, vhosts=vhosts) for name in ("A", "B")]
    for router in routers:
        serve_management(router)
    bench.join(*routers)
    bench.advance(5)
    for name in ("blue", "green"):
        client = enter(bench, routers[0], name, container=f"{name}-client")
        client.receiver("topic", credit=5)
        client.sender("topic")
        reply_receiver(client, "dynamic")
    bench.advance(1)
    return routers


class Asker:
    """A client that asks a management node."""

    def __init__(self, bench: Bench, peer: Peer, to: str = "$management") -> None:
        self.bench = bench
        self.peer = peer
        self.replies: PeerReceiver = peer.receiver(None, dynamic=True, credit=100).accepting()
        self.sender = peer.sender(to)
        bench.advance(1)

    def ask(self, operation: str, **properties: Any) -> Any:
        """The reply."""
        count = len(self.replies.messages)
        self.sender.send(message({}, reply_to=self.replies.address, properties={"operation": operation, **properties}))
        self.bench.advance(1)
        assert len(self.replies.messages) == count + 1
        return decode(self.replies.messages[-1].data)

    def rows(self, kind: str) -> list[dict[str, Any]]:
        body = self.ask("QUERY", entityType=kind).body
        return [dict(zip(body["attributeNames"], row, strict=True)) for row in body["results"]]


KINDS = [kind.short_name for kind in TYPES.values() if kind.row is not ManagementRow]
"""Of entities, also of those that will be added."""


def test_a_tenant_sees_what_is_its_own(bench: Bench, managed: list[Runtime]) -> None:
    asker = Asker(bench, enter(bench, managed[0], "blue"))
    seen = {kind: asker.rows(kind) for kind in KINDS}
    assert "green" not in str(seen)
    assert {row["tenant"] for row in seen["connection"]} == {"blue"}
    assert len(seen["connection"]) == 2
    assert len(seen["router.link"]) == 5
    keys = [row["key"] for row in seen["router.address"]]
    assert "M0blue/topic" in keys
    assert sum(key.startswith("Ltemp.") for key in keys) == 2
    assert [row["key"] for row in seen["amqp-mesh.credit"]] == [key for key in keys if not key.startswith("L$")]
    assert seen["amqp-mesh.credit.party"]
    assert [row["id"] for row in seen["vhostStats"]] == ["blue"]
    own = {"connection", "router.link", "router.address", "amqp-mesh.credit", "amqp-mesh.credit.party", "vhostStats"}
    assert {kind for kind, found in seen.items() if found} == own
    for attempt in (
        asker.ask("READ", type="router"),
        asker.ask("READ", type="connection", identity="1"),
        asker.ask("QUERY", entityType="amqp-mesh.credit.party", key="M0green/topic"),
    ):
        assert attempt.properties["statusCode"] in (200, 403, 404)
        assert "green" not in str(attempt.body)
    assert asker.ask("READ", type="router").properties["statusCode"] == 403
    assert asker.ask("GET-MGMT-NODES").body == ["amqp:/_topo/0/A/$management"]


@pytest.mark.parametrize(
    "to", ["$management", "_local/$management", "amqp:/_topo/0/A/$management", "_topo/0/B/$management"]
)
def test_who_has_no_right_reaches_no_management(bench: Bench, managed: list[Runtime], to: str) -> None:
    client = enter(bench, managed[0], "green")
    to += "$management"
    assert client.sender(to).closed == DENIED
    anonymous = client.sender(None)
    bench.run()
    sent = anonymous.send(message({}, address=to, reply_to="x", properties={"operation": "QUERY"}))
    bench.run()
    assert sent.outcome == "rejected"


def test_a_tenant_asks_no_other_router(bench: Bench, managed: list[Runtime]) -> None:
    assert enter(bench, managed[0], "blue").sender("_topo/0/B/$management").closed == DENIED
    assert enter(bench, managed[0], "reader").sender("_topo/0/B/$management").closed is None


def test_who_may_read_sees_everything_at_every_router(bench: Bench, managed: list[Runtime]) -> None:
    for to in ("$management", "_topo/0/B/$management"):
        asker = Asker(bench, enter(bench, managed[0], "reader"), to)
        assert len(asker.rows("router.node")) == 2
        assert asker.ask("READ", type="router").properties["statusCode"] == 200
        assert [row["id"] for row in asker.rows("vhostStats")] == ["blue", "green", "reader", "admin", "(none)"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_changing_is_a_right_beyond_reading_and_of_one_s_own_router(
    bench: Bench, managed: list[Runtime], operation: str
) -> None:
    statuses = {}
    for who, to in (("reader", "$management"), ("admin", "$management"), ("admin", "_topo/0/B/$management")):
        asker = Asker(bench, enter(bench, managed[0], who), to)
        statuses[who, to] = asker.ask(operation, type="listener", name="x").properties["statusCode"]
    assert statuses["reader", "$management"] == 403
    assert statuses["admin", "_topo/0/B/$management"] == 403
    assert statuses["admin", "$management"] != 403


def test_a_reply_goes_nowhere_that_its_requester_may_not_send_to(bench: Bench, managed: list[Runtime]) -> None:
    victim = enter(bench, managed[0], "green").receiver("x", credit=10).accepting()
    asker = Asker(bench, enter(bench, managed[0], "blue"))
    for to in ("green/x", "_topo/0/A/green/x", "_local/x", "$management", "x"):
        asker.sender.send(message({}, reply_to=to, properties={"operation": "GET-TYPES"}))
        bench.advance(1)
    assert victim.bodies == []


def test_a_reply_to_an_address_of_the_virtual_host_arrives(bench: Bench, managed: list[Runtime]) -> None:
    peer = enter(bench, managed[0], "blue")
    replies = peer.receiver("answers", credit=10).accepting()
    sender = peer.sender("$management")
    bench.run()
    sender.send(message({}, reply_to="answers", properties={"operation": "GET-TYPES"}))
    bench.advance(1)
    assert len(replies.messages) == 1
