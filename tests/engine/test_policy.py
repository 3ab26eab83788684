"""Policy at the links of clients: what is denied, with which condition, and that it is counted and told once."""

from __future__ import annotations

import math
from typing import Any

import pytest
from proton import symbol

from mesh_config.models import GroupSettings, ManagementRight, VhostSettings
from router.runtime import Runtime
from router.views.vhosts import VhostMembership
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, decode, message
from tests.helpers.sections import NULL, binary, section, string

DENIED = "amqp:unauthorized-access"
LIMIT = "amqp:resource-limit-exceeded"


def vhost(name: str = "shop", *, isolated: bool = False, bound: int = 0, **group: Any) -> VhostSettings:
    """A virtual host whose anonymous users may do what is said."""
    settings = {"name": "everybody", "users": ("anonymous",), **group}
    return VhostSettings(name=name, isolated=isolated, max_connections=bound, groups=(GroupSettings(**settings),))


def everything(name: str = "shop", **more: Any) -> VhostSettings:
    return vhost(
        name, **{"sources": ("#",), "targets": ("#",), "dynamic_addresses": True, "anonymous_senders": True, **more}
    )


def counted(router: Runtime, name: str = "shop") -> dict[str, int]:
    state = next(state for state in router.policy.vhosts() if state.settings.name == name)
    return {kind.value: count for kind, count in state.denials.items()}


def enter(bench: Bench, router: Runtime, name: str | None = "shop", **options: Any) -> Peer:
    return bench.client(router, hostname=name, **options)


# Who comes in


def test_without_virtual_hosts_everybody_may_do_everything(bench: Bench) -> None:
    router = bench.router("A")
    client = enter(bench, router, "whatever")
    assert client.sender("x").closed is None
    assert not router.policy.is_active


@pytest.mark.parametrize("name", ["shop", "SHOP", "shop.example", "a.shop.example", "b.a.shop.example"])
def test_a_virtual_host_is_known_by_all_its_names(bench: Bench, name: str) -> None:
    names = ("shop.example", "*.shop.example")
    shop = VhostSettings(name="shop", hostnames=names, groups=everything().groups, isolated=False)
    router = bench.router("A", vhosts=(shop, everything("other")))
    assert enter(bench, router, name).sender("x").closed is None


@pytest.mark.parametrize("name", ["shops", "example", "xshop.example", "", None])
def test_an_unknown_virtual_host_is_refused(bench: Bench, name: str | None) -> None:
    shop = VhostSettings(name="shop", hostnames=("*.shop.example",), groups=everything().groups)
    router = bench.router("A", vhosts=(shop,))
    client = enter(bench, router, name)
    assert client.closed == DENIED
    assert "there is no virtual host" in client.description
    assert router.policy.denied_unknown == 1


def test_a_client_of_a_virtual_host_that_is_gone_is_shown_no_more_than_before(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(), everything("rest")))
    enter(bench, router).receiver("mine")
    enter(bench, router, "rest").receiver("shop/theirs")
    router.policy.take_settings((everything("rest"),), bench.now)
    shown = VhostMembership(router, "shop")
    assert [entry.text for entry in router.fib.entries() if shown.has_entry(entry)] == ["mine"]


def test_of_a_very_long_host_name_the_beginning_is_told(bench: Bench) -> None:
    router = bench.router("A", vhosts=(vhost(),))
    client = enter(bench, router, "a\N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 3000)
    assert client.description.startswith("there is no virtual host `a\\u202exxx")
    assert len(client.description) < 300


def test_any_other_name_means_the_virtual_host_that_says_so(bench: Bench) -> None:
    rest = VhostSettings(name="rest", hostnames=("*",), groups=everything().groups, isolated=False)
    router = bench.router("A", vhosts=(vhost(), rest))
    for name in ("whatever", None):
        assert enter(bench, router, name).sender("x").closed is None
    assert enter(bench, router).sender("x").closed == DENIED


def test_a_listener_sets_the_virtual_host_whatever_its_clients_say(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(), vhost("other")))
    assert enter(bench, router, "other", listener={"vhost": "shop"}).sender("x").closed is None
    assert enter(bench, router, None, listener={"vhost": "other"}).sender("x").closed == DENIED


def test_who_is_in_no_group_does_not_come_in(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(users=("alice", "*")),))
    client = enter(bench, router)
    assert client.closed == DENIED
    assert "`anonymous`" in client.description
    assert counted(router) == {"connection": 1}


def test_neighbors_are_in_no_virtual_host(bench: Bench) -> None:
    a = bench.router("A", vhosts=(everything(),))
    b = bench.router("B", vhosts=(everything(),))
    bench.join(a, b)
    bench.advance(5)
    assert len(a.fib.routes) == 1
    received = enter(bench, b).receiver("x", credit=1).accepting()
    bench.advance(1)
    sent = enter(bench, a).sender("x").send(message("over there"))
    bench.run()
    assert (received.bodies, sent.outcome) == (["over there"], "accepted")


def test_connections_of_a_virtual_host_have_a_bound_and_come_back(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(bound=2),))
    first, second = enter(bench, router), enter(bench, router)
    third = enter(bench, router)
    assert third.closed == LIMIT
    assert (first.closed, second.closed) == (None, None)
    first.wire.cut()
    bench.advance(1)
    assert enter(bench, router).closed is None


def test_connections_of_a_user_have_a_bound(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(max_connections_of_user=1), everything("other")))
    assert enter(bench, router).closed is None
    assert enter(bench, router).closed == LIMIT
    assert enter(bench, router, "other").closed is None


# Links


@pytest.mark.parametrize("address", ["jobs", "jobs/a", "jobs.a.b", "/jobs/a", "amqp://host/jobs/a", "amqp:/jobs"])
def test_links_to_what_is_allowed_are_granted(bench: Bench, address: str) -> None:
    router = bench.router("A", vhosts=(vhost(sources=("jobs/#",), targets=("jobs/#",)),))
    client = enter(bench, router)
    assert client.receiver(address, credit=1).closed is None
    assert client.sender(address).closed is None


@pytest.mark.parametrize(
    "address",
    ["job", "jobsx", "other", "jobs-2/a", "_local/jobs/a", "amqp:/_topo/0/A/jobs/a", "_topo/0/B/jobs", "x/jobs"],
)
def test_links_to_anything_else_are_refused(bench: Bench, address: str) -> None:
    router = bench.router("A", vhosts=(vhost(sources=("jobs/#",), targets=("jobs/#",)),))
    client = enter(bench, router)
    assert client.receiver(address, credit=1).closed == DENIED
    assert client.sender(address).closed == DENIED
    assert counted(router) == {"receiver": 1, "sender": 1}


def test_who_may_send_may_not_receive_for_that(bench: Bench) -> None:
    router = bench.router("A", vhosts=(vhost(targets=("jobs",), sources=("results",)),))
    client = enter(bench, router)
    assert client.sender("jobs").closed is None
    assert client.receiver("jobs").closed == DENIED
    assert client.receiver("results").closed is None
    assert client.sender("results").closed == DENIED


def reply_receiver(client: Peer, kind: str) -> PeerReceiver:
    def prepare(link: Any) -> None:
        if kind == "volatile":
            link.source.capabilities.put_symbol(symbol("rabbitmq:volatile-queue"))

    return client.receiver(None, dynamic=True, credit=10, prepare=prepare).accepting()


def dynamic_sender(client: Peer) -> Any:
    def prepare(link: Any) -> None:
        link.target.dynamic = True

    return client.sender(None, prepare=prepare)


def test_dynamic_addresses_need_a_right_of_their_own(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(dynamic_addresses=False), everything("other")))
    client, other = enter(bench, router), enter(bench, router, "other")
    assert reply_receiver(client, "dynamic").closed == DENIED
    assert reply_receiver(client, "volatile").closed == DENIED
    assert dynamic_sender(client).closed == DENIED
    assert [reply_receiver(other, kind).closed for kind in ("dynamic", "volatile")] == [None, None]
    assert dynamic_sender(other).closed is None


@pytest.mark.parametrize("kind", ["dynamic", "volatile"])
@pytest.mark.parametrize("isolated", [True, False])
def test_who_is_told_of_a_reply_address_of_the_virtual_host_may_answer_there(
    bench: Bench, kind: str, isolated: bool
) -> None:
    policy = (vhost(dynamic_addresses=True, anonymous_senders=True, isolated=isolated),)
    a = bench.router("A", vhosts=policy)
    b = bench.router("B", vhosts=policy)
    bench.join(a, b)
    bench.advance(5)
    replies = reply_receiver(enter(bench, a), kind)
    bench.advance(1)
    for router in (a, b):
        client = enter(bench, router)
        named, anonymous = client.sender(replies.address), client.sender(None)
        assert (named.closed, anonymous.closed) == (None, None)
        bench.advance(1)
        for link in (named, anonymous):
            link.send(message("answer", address=replies.address))
        bench.run()
    assert replies.bodies == ["answer"] * 4


def test_links_of_a_connection_have_bounds_for_each_direction(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(max_senders=2, max_receivers=1),))
    client = enter(bench, router)
    assert [client.sender(f"s{number}").closed for number in range(3)] == [None, None, LIMIT]
    receiver = client.receiver("r")
    assert client.receiver("r2").closed == LIMIT
    receiver.close()
    bench.run()
    assert client.receiver("r3").closed is None
    assert enter(bench, router).sender("s").closed is None


def test_the_bound_of_sessions_is_announced_and_kept(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(max_sessions=2),))
    client = enter(bench, router)
    assert client.transport.remote_channel_max == 1
    assert [client.sender("x").closed for _ in range(2)] == [None, None]
    other = bench.raw(router)
    other.write(frames.AMQP_HEADER + frames.write(0x10, ["odd", "shop"]))
    for channel in range(3):
        other.write(frames.write(0x11, [None, 0, 100, 100], channel=channel))
    bench.run()
    closes = [frame.fields for frame in frames.read(other.read) if frame.name == "close"]
    assert LIMIT in str(closes)


def test_the_bound_of_frames_is_announced(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(max_frame_bytes=1024),))
    client = enter(bench, router)
    assert client.transport.remote_max_frame_size == 1024


@pytest.mark.parametrize(("listener", "group", "bound"), [(0, 100, 100), (50, 100, 50), (100, 0, 100)])
def test_the_lower_bound_of_messages_holds(bench: Bench, listener: int, group: int, bound: int) -> None:
    router = bench.router("A", vhosts=(everything(max_message_bytes=group),))
    client = enter(bench, router, listener={"max_message_bytes": listener})
    client.receiver("x", credit=10).accepting()
    sender = client.sender("x")
    assert sender.link.remote_max_message_size == bound
    sender.send(message("y" * 200))
    bench.run()
    assert sender.closed == "amqp:link:message-size-exceeded"


# Messages


def test_an_anonymous_sender_needs_a_right_of_its_own(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(anonymous_senders=False),))
    assert enter(bench, router).sender(None).closed == DENIED


@pytest.mark.parametrize("times", [1, 3])
def test_a_message_to_what_a_link_may_not_have_is_rejected(bench: Bench, times: int) -> None:
    a, b = (
        bench.router(name, vhosts=(vhost(targets=("jobs/#",), anonymous_senders=True), everything("other")))
        for name in "AB"
    )
    bench.join(a, b)
    bench.advance(5)
    secret = enter(bench, b, "other").receiver("secret", credit=20).accepting()
    jobs = enter(bench, b, "other").receiver("jobs/1", credit=20).accepting()
    bench.advance(1)
    client = enter(bench, a)
    sender = client.sender(None)
    bench.run()
    for _ in range(times):
        sent = [sender.send(message("x", address=to)) for to in ("secret", "jobs/1", "_topo/0/B/secret", "/secret")]
        bench.run()
        assert [one.outcome for one in sent] == ["rejected", "accepted", "rejected", "rejected"]
        assert all(one.condition.name == DENIED for one in (sent[0], sent[2], sent[3]))
    assert (secret.bodies, jobs.bodies) == ([], ["x"] * times)
    assert counted(a) == {"message": 3 * times}
    assert sender.closed is None
    assert sender.credit > 0


def test_verdicts_on_addresses_in_messages_are_bounded(bench: Bench) -> None:
    router = bench.router("A", vhosts=(vhost(targets=("jobs/#",), anonymous_senders=True),))
    client = enter(bench, router)
    sender = client.sender(None)
    bench.run()
    for number in range(3000):
        sender.send(message("x", address=f"no/{number}"), settled=True)
        if number % 3 == 0:
            bench.run()
    bench.run()
    rights = next(iter(router.connections.values())).rights
    assert rights is not None
    assert len(rights._verdicts) <= 1024
    assert counted(router) == {"message": 3000}


@pytest.mark.parametrize("target", ["x", None])
@pytest.mark.parametrize(
    ("user_id", "outcome"),
    [(b"anonymous", "accepted"), (b"", "accepted"), (b"root", "rejected"), (b"anonymous2", "rejected")],
)
def test_a_message_carries_no_user_id_but_its_sender_s(
    bench: Bench, target: str | None, user_id: bytes, outcome: str
) -> None:
    router = bench.router("A", vhosts=(everything(),))
    receiver = enter(bench, router).receiver("x", credit=20).accepting()
    sender = enter(bench, router).sender(target)
    bench.run()
    for number in range(12):  # each uses a credit, and gets it back
        sent = sender.send(message(number, address="x", user_id=user_id))
        bench.run()
        assert sent.outcome == outcome
    if outcome == "rejected":
        assert sent.condition is not None
        assert sent.condition.name == DENIED
        assert counted(router) == {"user-id": 12}
    assert len(receiver.messages) == (12 if outcome == "accepted" else 0)
    last = sender.send(message("last", address="x"))
    bench.run()
    assert last.outcome == "accepted"


def test_a_message_may_carry_another_s_user_id_where_that_is_allowed(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(any_user_id=True),))
    receiver = enter(bench, router).receiver("x", credit=10).accepting()
    sender = enter(bench, router).sender("x")
    bench.run()
    sender.send(message(1, user_id=b"root"))
    bench.run()
    assert decode(receiver.messages[0].data).user_id == b"root"


def test_a_user_id_is_looked_at_in_messages_that_come_in_parts(any_bench: Bench) -> None:
    bench = any_bench
    router = bench.router("A", vhosts=(everything(),))
    receiver = enter(bench, router).receiver("x", credit=10).accepting()
    sender = enter(bench, router).sender("x")
    bench.run()
    data = message("y" * 5000, user_id=b"root", id="m" * 300)
    sent = sender.begin(data[:20])
    for at in range(20, len(data), 700):
        bench.run()
        sent.part(data[at : at + 700])
    sent.end()
    bench.run()
    assert sent.outcome == "rejected"
    good = sender.send(message("y" * 5000, user_id=b"anonymous"))
    bench.run()
    assert good.outcome == "accepted"
    assert len(receiver.messages) == 1


FORGED = section(0x73, NULL, binary(b"root"), string("x"))
"""Properties of somebody else's message to `x`."""


@pytest.mark.parametrize(
    "data",
    [
        message("m", user_id=b"anonymous", address="x").replace(b"\0\x53\x77", FORGED + b"\0\x53\x77"),
        message("m", address="x") + FORGED,
        message("m", address="x", properties={"a": "b"}).replace(b"\0\x53\x77", FORGED + b"\0\x53\x77"),
    ],
    ids=["twice", "behind the body", "behind the application's"],
)
@pytest.mark.parametrize("target", ["x", None])
@pytest.mark.parametrize("settled", [False, True])
def test_a_user_id_in_a_second_place_is_refused(bench: Bench, target: str | None, data: bytes, settled: bool) -> None:
    router = bench.router("A", vhosts=(everything(),))
    receiver = enter(bench, router).receiver("x", credit=20).accepting()
    sender = enter(bench, router).sender(target)
    bench.run()
    for _ in range(12):
        sent = sender.send(data, settled=settled)
        bench.run()
        assert settled or (sent.outcome, sent.condition.name) == ("rejected", "amqp:decode-error")
    assert receiver.messages == []
    last = sender.send(message("last", address="x"))
    bench.run()
    assert last.outcome == "accepted"
    assert sender.closed is None


def test_an_anonymous_sender_s_message_names_one_target(bench: Bench) -> None:
    router = bench.router("A", vhosts=(everything(targets=("x",), any_user_id=True),))
    receiver = enter(bench, router).receiver("x", credit=20).accepting()
    sender = enter(bench, router).sender(None)
    bench.run()
    sent = sender.send(section(0x73, NULL, NULL, string("x")) + message("m", address="other"))
    bench.run()
    assert (sent.outcome, sent.condition.name) == ("rejected", "amqp:decode-error")
    assert receiver.messages == []


@pytest.mark.parametrize("size", [5_000, 400_000])  # one is held whole, of the other most has gone on
def test_a_forged_end_of_a_message_in_parts_aborts_it(any_bench: Bench, size: int) -> None:
    bench = any_bench
    router = bench.router("A", vhosts=(everything(),), forwarding={"held_message_bytes": 100_000})
    receiver = enter(bench, router).receiver("x", credit=10).accepting()
    sender = enter(bench, router).sender("x")
    bench.run()
    data = message("y" * size) + FORGED
    step = size // 7
    sent = sender.begin(data[:20])
    for at in range(20, len(data), step):
        bench.run()
        sent.part(data[at : at + step])
    sent.end()
    bench.run()
    assert (sent.outcome, sent.condition.name) == ("rejected", "amqp:decode-error")
    good = sender.send(message("y" * size))
    bench.run()
    assert good.outcome == "accepted"
    assert [len(body) for body in receiver.bodies] == [size]


# What is told


def came_from(router: Runtime) -> tuple[str, str]:
    """The fields that tell of the newest connection."""
    connection = list(router.connections.values())[-1]
    return f"connection={connection.id}", f"host={connection.host}"


def test_the_connection_of_a_message_that_is_denied_is_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    router = bench.router("A", vhosts=(everything("other"), vhost(anonymous_senders=True)))
    for _ in range(2):
        client = enter(bench, router, "shop")
        sender = client.sender(None)
        bench.run()
        capsys.readouterr()
        where = came_from(router)
        sent = sender.send(message("x", address="secret"))
        bench.run()
        assert sent.outcome == "rejected"
        (line,) = [it for it in capsys.readouterr().out.splitlines() if "policy_denied" in it]
        assert all(part in line for part in where), line
        bench.advance(130)  # the kind is forgotten


def test_denials_are_told_once_and_then_summed_up(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    router = bench.router("A", vhosts=(vhost(sources=("jobs",)),))

    def told() -> list[str]:
        return [line for line in capsys.readouterr().out.splitlines() if "policy_denied" in line]

    client = enter(bench, router)
    for number in range(50):
        client.receiver(f"secret/{number}")
    (line,) = told()
    said = ("asked=secret/0", DENIED, "what=receiver", "vhost=shop", "user=anonymous", *came_from(router))
    assert all(part in line for part in said)
    bench.advance(61)
    (line,) = told()
    assert all(part in line for part in ("more=49", "asked=secret/49"))
    bench.advance(61)
    assert router.denials.due == math.inf
    client.receiver("again")
    (line,) = told()
    assert "asked=again" in line
    assert "more" not in line


def test_connections_that_are_denied_are_told_once_too(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    router = bench.router("A", vhosts=(vhost(),))
    for number in range(20):
        assert enter(bench, router, f"wrong{number}").closed == DENIED
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "connection=1 host=" in out


def test_who_names_no_virtual_host_is_told_what_would_let_it_in(bench: Bench) -> None:
    client = enter(bench, bench.router("A", vhosts=(vhost(),)), None)
    assert "with `hostnames: ['*']`" in client.description


def test_who_may_manage_has_what_tools_ask_with_and_no_more(bench: Bench) -> None:
    router = bench.router("A", vhosts=(vhost(management=ManagementRight.READ), everything("other")))
    victim = enter(bench, router, "other").receiver("x", credit=10).accepting()
    client = enter(bench, router)
    assert reply_receiver(client, "dynamic").closed is None
    assert dynamic_sender(client).closed == DENIED
    sender = client.sender(None)
    assert sender.closed is None
    bench.run()
    sent = sender.send(message("x", address="x"))
    bench.run()
    assert (sent.outcome, victim.bodies) == ("rejected", [])


@pytest.mark.parametrize("is_bound", [True, False])
@pytest.mark.parametrize("any_user_id", [True, False])
def test_a_request_to_another_router_names_no_reply_to_that_its_sender_may_not(
    bench: Bench, is_bound: bool, any_user_id: bool
) -> None:
    policy = (
        vhost("open", management=ManagementRight.READ, targets=("public",), any_user_id=any_user_id),
        everything("tenant", isolated=True),
    )
    a, b = (bench.router(name, vhosts=policy) for name in ("A", "B"))
    bench.join(a, b)
    bench.advance(5)
    client = enter(bench, a, "open")
    foreign, own = (reply_receiver(enter(bench, a, name), "dynamic").address for name in ("tenant", "open"))
    management = "_topo/0/B/$management"
    link = client.sender(management if is_bound else None)
    bench.advance(1)
    properties = {"operation": "READ", "type": "org.apache.qpid.dispatch.router"}
    sent = [
        link.send(message(None, address=management, reply_to=reply_to, properties=properties))
        for reply_to in (own, "public", None, "tenant/jobs", foreign, "_topo/all/all/tenant/jobs", "others")
    ]
    bench.advance(1)
    refused = [each.outcome == "rejected" and each.condition.name == DENIED for each in sent if each.condition]
    assert [each.outcome == "rejected" for each in sent] == [False] * 3 + [True] * 4
    assert refused == [True] * 4
    assert counted(a, "open")["message"] == 4
