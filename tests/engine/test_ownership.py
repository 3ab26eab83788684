"""Whose an address is: names that a router made are their connection's, one rule says what a name means, and no name
is so long that the mesh can't carry it."""

from __future__ import annotations

import pytest
from proton import symbol

from router.core.addressing.address import masked
from router.management.snapshot import AddressRow, LinkRow, PartyRow
from router.runtime import Runtime
from router.views.management_service import serve_management
from router.views.runtime import RuntimeView
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, message

VOLATILE = "rabbitmq:volatile-queue"
BEGIN = [None, 0, 2**31 - 1, 2**31 - 1]


def reply_receiver(client: Peer, kind: str) -> PeerReceiver:
    """A receiver from a name that its router makes."""

    def prepare(link: object) -> None:
        link.source.capabilities.put_symbol(symbol(VOLATILE))  # type: ignore[attr-defined]

    return client.receiver(None, dynamic=True, credit=10, prepare=prepare if kind == "volatile" else None).accepting()


@pytest.fixture(params=["dynamic", "volatile"])
def owned(request: pytest.FixtureRequest, bench: Bench) -> tuple[list[Runtime], Peer, PeerReceiver]:
    """Routers A and B, a client of A, and its receiver."""
    routers = bench.mesh(("A", "B"))
    owner = bench.client(routers[0])
    return routers, owner, reply_receiver(owner, request.param)


# Reply addresses


@pytest.mark.parametrize("where", [0, 1], ids=["same router", "another router"])
def test_another_connection_cannot_receive_from_a_reply_address(
    bench: Bench, owned: tuple[list[Runtime], Peer, PeerReceiver], where: int
) -> None:
    routers, _, replies = owned
    address = replies.address
    assert address is not None
    stranger = bench.client(routers[where])
    forms = {address, address.removeprefix("amqp:/")}
    if "temp." in address and where == 0:
        forms.add("_local/" + address.rpartition("/")[2])
    for form in forms:
        assert stranger.receiver(form, credit=10).closed == "amqp:unauthorized-access"
    bench.run()
    for router in routers:
        sender = bench.client(router).sender(None)
        for number in range(5):
            sender.send(message(number, address=address))
    bench.run()
    assert sorted(replies.bodies) == sorted([*range(5), *range(5)])


def test_the_owner_may_attach_a_second_receiver_to_its_reply_address(
    bench: Bench, owned: tuple[list[Runtime], Peer, PeerReceiver]
) -> None:
    _, owner, replies = owned
    assert owner.receiver(replies.address, credit=1).closed is None


def test_a_reply_address_is_nobody_else_s_once_its_owner_has_left(
    bench: Bench, owned: tuple[list[Runtime], Peer, PeerReceiver]
) -> None:
    routers, owner, replies = owned
    address = replies.address
    late = bench.client(routers[0]).sender(address)
    owner.wire.cut()
    bench.run()
    stranger = bench.client(routers[0])
    assert stranger.receiver(address, credit=1).closed == "amqp:unauthorized-access"
    assert late.closed is None


def test_every_router_refuses_a_reply_address_alike_whether_it_is_there_or_not(
    bench: Bench, owned: tuple[list[Runtime], Peer, PeerReceiver]
) -> None:
    routers, owner, replies = owned
    address = str(replies.address)
    strangers = [bench.client(router) for router in routers]
    never = address[:-5] + "never"  # the random part is as long
    answers = set()
    for is_there in (True, False):
        if not is_there:
            owner.wire.cut()
            bench.run()
        for stranger in strangers:
            for form in (address, never):
                refused = stranger.receiver(form, credit=1)
                answers.add((refused.closed, refused.description))
    ((condition, description),) = answers
    assert condition == "amqp:unauthorized-access"
    assert address[-10:-5] not in description


def test_names_that_a_router_did_not_make_cannot_be_received_from(bench: Bench) -> None:
    router = bench.router("A")
    client = bench.client(router)
    volatile = ("amq.rabbitmq.reply-to.A.x", "amq.rabbitmq.reply-to.B.x")
    for address in ("_local/temp.x", "amqp:/_topo/0/A/temp.x", *volatile):
        assert client.receiver(address, credit=1).closed == "amqp:unauthorized-access"


def test_management_shows_reply_addresses_masked(bench: Bench, owned: tuple[list[Runtime], Peer, PeerReceiver]) -> None:
    routers, _, replies = owned
    assert replies.address is not None
    bench.client(routers[1]).sender(replies.address)
    bench.client(routers[0]).sender(replies.address)
    random = replies.address.rpartition(".")[2]
    bench.run()
    keys = set()
    for router in routers:
        view = RuntimeView(router, (), ())
        for kind in (AddressRow, LinkRow, PartyRow):
            for row in view.rows(kind):
                assert random[:9] not in str(row)
                keys.add(getattr(row, "key", None))
    assert any(str(key).endswith(random[:8] + "*") for key in keys)


def test_a_masked_key_finds_the_credit_of_its_address(
    bench: Bench, owned: tuple[list[Runtime], Peer, PeerReceiver]
) -> None:
    routers, _, _ = owned
    view = RuntimeView(routers[0], (), ())
    key = next(row.key for row in view.rows(AddressRow) if row.name.endswith("*"))  # type: ignore[attr-defined]
    assert len(view.rows_of_address(PartyRow, key)) == 1


def test_masks_keep_what_is_no_secret() -> None:
    assert masked("temp.abcdefghijklmnopqrstuvwx") == "temp.abcdefgh*"
    assert masked("temp.abcdef") == "temp.ab*"
    assert masked("amq.rabbitmq.reply-to.R.1.abcdefghijklmnopqrstuvwx") == "amq.rabbitmq.reply-to.R.1.abcdefgh*"
    assert masked("_$temp.abcdefghi") == "_$temp.abc*"
    assert masked("host/_$temp.abcdefghi") == "host/_$temp.abc*"
    assert masked("temperature.of.rooms") == "temperature.of.rooms"


def test_a_dynamic_target_is_received_from_by_whoever_is_told_of_it(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))

    def prepare(link: object) -> None:
        link.target.dynamic = True  # type: ignore[attr-defined]

    sender = bench.client(a).sender(None, prepare=prepare)
    receiver = bench.client(b).receiver(sender.address, credit=1).accepting()
    bench.run()
    sender.send(message("told"))
    bench.run()
    assert receiver.bodies == ["told"]


# What a name means


@pytest.mark.parametrize("order", ["local first", "mobile first"])
@pytest.mark.parametrize("side", ["sender", "receiver"])
def test_a_local_address_does_not_hide_the_mobile_one_of_its_name(bench: Bench, order: str, side: str) -> None:
    a, b = bench.mesh(("A", "B"))
    stranger = bench.client(a)

    def hide() -> PeerReceiver | None:
        if side == "sender":
            stranger.sender("_local/x")
            return None
        return stranger.receiver("_local/x", credit=10).accepting()

    hidden = hide() if order == "local first" else None
    server = bench.client(a).receiver("x", credit=10).accepting()
    hidden = hide() if order == "mobile first" else hidden
    bench.run()
    for router in (a, b):
        client = bench.client(router)
        anonymous, attached = client.sender(None), client.sender("x")
        bench.run()
        sent = [anonymous.send(message("by name", address="x")), attached.send(message("attached"))]
        bench.run()
        assert [one.outcome for one in sent] == ["accepted", "accepted"]
    assert sorted(server.bodies) == ["attached", "attached", "by name", "by name"]
    if hidden is not None:
        bench.client(a).sender(None).send(message("local", address="_local/x"))
        bench.run()
        assert hidden.bodies == ["local"]


def test_a_mobile_address_is_not_answered_by_a_local_one_of_its_name(bench: Bench) -> None:
    router = bench.router("A")
    local = bench.client(router).receiver("_local/x", credit=10).accepting()
    sent = bench.client(router).sender(None).send(message("x", address="x"))
    bench.run()
    assert sent.outcome == "released"
    assert not local.messages


@pytest.mark.parametrize("address", ["$management", "$other", "_x", "$management/x"])
def test_names_of_the_routers_themselves_cannot_be_received_from(bench: Bench, address: str) -> None:
    router = bench.router("A")
    serve_management(router)
    assert bench.client(router).receiver(address, credit=1).closed == "amqp:not-allowed"


# How long a name may be


@pytest.mark.parametrize("host", [None, "h" * 100])
def test_a_link_to_a_longer_address_than_may_be_is_refused(bench: Bench, host: str | None) -> None:
    router = bench.router("A", forwarding={"address_bytes": 300})
    client = bench.client(router, listener={"vhost_prefix": host is not None}, hostname=host)
    room = 300 if host is None else 300 - 101
    for text in ("x" * room, "é" * (room // 2)):
        assert client.receiver(text, credit=1).closed is None
        assert client.sender(text).closed is None
    for text in ("x" * (room + 1), "é" * (room // 2 + 1)):
        for link in (client.receiver(text, credit=1), client.sender(text)):
            assert link.closed == "amqp:invalid-field"
            assert "may have 300" in link.description


def test_a_message_to_a_longer_address_than_may_be_is_rejected(bench: Bench) -> None:
    router = bench.router("A", forwarding={"address_bytes": 300})
    receiver = bench.client(router).receiver("é" * 150, credit=1).accepting()
    sender = bench.client(router).sender(None)
    sent = [sender.send(message("x", address=text)) for text in ("é" * 151, "é" * 150)]
    bench.run()
    assert [one.outcome for one in sent] == ["rejected", "accepted"]
    assert sent[0].condition is not None
    assert sent[0].condition.name == "amqp:invalid-field"
    assert len(receiver.messages) == 1


@pytest.mark.parametrize("is_receiver", [True, False])
def test_an_address_that_is_no_utf8_is_refused(bench: Bench, is_receiver: bool) -> None:
    router = bench.router("A")
    stranger = bench.raw(router)
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["odd"]) + frames.write(0x11, BEGIN))
    termini = [frames.source("a??"), frames.target("a??")]
    attach = frames.write(0x12, ["r", 0, is_receiver, None, None, *termini, None, None, 0])
    stranger.write(attach.replace(b"a??", b"a\xff\xfe"))
    bench.run()
    detached = [frame.fields for frame in frames.read(stranger.read) if frame.name == "detach"]
    assert "amqp:invalid-field" in str(detached[0])
    assert not list(router.fib.entries())


def test_subscriptions_to_long_addresses_do_not_part_neighbors(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"address_bytes": 16384, "control_message_bytes": 1024 * 1024})
    client = bench.client(a)
    for number in range(200):
        client.receiver(f"{number}/" + "x" * 15_000, credit=1)
    bench.run()
    bench.advance(3)
    c = bench.router("C", forwarding={"address_bytes": 16384, "control_message_bytes": 1024 * 1024})
    bench.join(b, c)
    bench.advance(3)
    for router in (b, c):
        assert router.control.address_counts()["A"] == 200
