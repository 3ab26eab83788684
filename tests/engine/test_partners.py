"""A neighbor with `allowed_prefixes`: what comes from there is for addresses below them alone, and for replies."""

from __future__ import annotations

import pytest

from mesh_config.models import Role
from router.neighbor_admission import Prefixes
from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.engine.test_raw_neighbor import live
from tests.helpers.engine import Bench
from tests.helpers.neighbor import Neighbor
from tests.helpers.peer import Peer, Sent, decode, message

PREFIXES = ("partner",)
DENIED = "amqp:unauthorized-access"


@pytest.fixture
def routers(bench: Bench) -> list[Runtime]:
    """A and B of one mesh, and PARTNER, which has dialled A."""
    routers = bench.mesh(("A", "B"))
    partner = bench.router("PARTNER")
    dialled = bench.plug(partner, role=Role.INTER_ROUTER, is_server=False)
    bench.wire(dialled, bench.plug(routers[0], role=Role.INTER_ROUTER, allowed_prefixes=PREFIXES))
    bench.run()
    bench.advance(5)
    assert "PARTNER" in routers[1].fib.routes
    return [*routers, partner]


@pytest.mark.parametrize("prefix", ["partner", "/partner", "partner/", "./partner."])
def test_separators_at_the_ends_of_a_prefix_count_for_nothing(prefix: str) -> None:
    allowed = Prefixes([prefix])
    assert allowed.allow("partner")
    assert allowed.allow("partner/in")
    assert not allowed.allow("partners")
    assert not allowed.allow("orders/partner")


def outcome(bench: Bench, router: Runtime, to: str, *, is_anonymous: bool) -> str | None:
    """What becomes of a message of a client of *router*; None while nothing does."""
    sender = bench.client(router).sender(None if is_anonymous else to)
    bench.run()
    bench.advance(0.5)
    if sender.credit <= 0:
        return None
    sent = sender.send(message("x", address=to))
    bench.run()
    bench.advance(0.5)
    return sent.outcome


@pytest.mark.parametrize("is_anonymous", [False, True], ids=["attached", "anonymous"])
@pytest.mark.parametrize("at", [0, 1], ids=["its neighbor", "one hop on"])
def test_messages_come_to_allowed_addresses_alone(
    bench: Bench, routers: list[Runtime], at: int, is_anonymous: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    receivers = {
        address: bench.client(routers[at]).receiver(address, credit=10).accepting()
        for address in ("partner/in", "partners", "orders")
    }
    bench.advance(1)
    assert outcome(bench, routers[2], "partner/in", is_anonymous=is_anonymous) == "accepted"
    for address in ("partners", "orders"):
        assert outcome(bench, routers[2], address, is_anonymous=is_anonymous) != "accepted"
        assert receivers[address].bodies == []
        assert outcome(bench, routers[1 - at], address, is_anonymous=is_anonymous) == "accepted"
    assert receivers["partner/in"].bodies == ["x"]
    assert capsys.readouterr().out.count("messages_refused") == 1


def condition(sent: Sent) -> str | None:
    """Why a message was rejected."""
    return sent.condition.name if sent.condition is not None else None


@pytest.mark.parametrize("address", ["_topo/0/A/$management", "_topo/0/all/$management", "_local/$management"])
def test_management_is_nobody_s_who_may_send_to_some_addresses(
    bench: Bench, routers: list[Runtime], address: str
) -> None:
    serve_management(routers[0])
    raw = join(bench, routers[0])
    sent = raw.send("x", "x", override=address)
    bench.run()
    assert (sent.outcome, condition(sent)) == ("rejected", DENIED)


def join(bench: Bench, router: Runtime) -> Neighbor:
    """A router of another make, which sends everything on data links."""
    peer = Peer(bench.run, container="RAW", sasl=True, is_server=False)
    peer.wire = bench.wire(peer, bench.plug(router, role=Role.INTER_ROUTER, allowed_prefixes=PREFIXES))
    bench.peers.append(peer)
    raw = Neighbor("RAW", peer, dials=True)
    bench.run()
    raw.attach()
    bench.run()
    live(bench, raw, 3)
    return raw


def test_a_neighbor_of_another_make_has_the_same_bounds(
    bench: Bench, routers: list[Runtime], capsys: pytest.CaptureFixture[str]
) -> None:
    raw = join(bench, routers[0])
    receivers = {
        address: bench.client(routers[1]).receiver(address, credit=10).accepting() for address in ("orders", "partner")
    }
    bench.advance(1)
    for _ in range(3):
        sent = raw.send("x", "orders")
        settled = raw.send("x", "orders", settled=True)
        allowed = raw.send("y", "partner", override="amqp:/partner")
        bench.run()
        bench.advance(0.5)
        assert (sent.outcome, condition(sent)) == ("rejected", DENIED)
        assert settled.outcome is None
        assert allowed.outcome == "accepted"
    assert (receivers["orders"].bodies, receivers["partner"].bodies) == ([], ["y"] * 3)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "messages_refused" in line]
    assert "address=orders" in line


def test_replies_come_back_from_there(bench: Bench, routers: list[Runtime]) -> None:
    served = bench.client(routers[2]).receiver("partner/server", credit=10)
    bench.advance(1)
    client = bench.client(routers[1])
    replies = client.receiver(None, dynamic=True, credit=10).accepting()
    sender = client.sender("partner/server")
    bench.run()
    bench.advance(0.5)
    sender.send(message("question", reply_to=replies.address))
    bench.run()
    bench.advance(0.5)
    (received,) = served.messages
    question = decode(received.data)
    assert outcome(bench, routers[2], question.reply_to, is_anonymous=True) == "accepted"
    assert outcome(bench, routers[2], question.reply_to, is_anonymous=False) == "accepted"
    assert replies.bodies == ["x", "x"]
