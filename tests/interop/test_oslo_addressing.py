"""oslo.messaging's ways to name things: virtual hosts in the address and in Open, routable and legacy addresses."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from mesh_config.models import GroupSettings, ListenerSettings, ManagementRight, MeshSettings, VhostSettings
from tests.helpers.oslo import LINE, OsloError, OsloWorker, mesh_of, needs_oslo, oslo_url, wait_fanout
from tests.helpers.processes import MeshProcesses

pytestmark = [pytest.mark.interop, needs_oslo]

WAYS = {
    "routable, in the address": {},
    "routable, in Open": {"pseudo_vhost": False},
    "legacy, in the address": {"addressing_mode": "legacy"},
    "legacy, in Open": {"addressing_mode": "legacy", "pseudo_vhost": False},
}


@attrs.define(eq=False)
class Field:
    mesh: MeshProcesses
    servers: OsloWorker
    callers: OsloWorker


def tenants() -> MeshSettings:
    """A line of routers with `blue`, `green` and `red` as tenants, and the rest in the common namespace."""
    group = GroupSettings(
        name="all",
        users=("anonymous",),
        sources=("openstack.org/om/#", "exclusive/#", "unicast/#", "broadcast/#"),
        targets=("openstack.org/om/#", "exclusive/#", "unicast/#", "broadcast/#"),
        dynamic_addresses=True,
        anonymous_senders=True,
    )
    rest = attrs.evolve(group, sources=("#",), targets=("#",), management=ManagementRight.READ)
    vhosts = (
        VhostSettings(name="blue", groups=(group,)),
        VhostSettings(name="green", groups=(group,)),
        VhostSettings(name="red", groups=(group,)),
        VhostSettings(name="rest", hostnames=("*",), isolated=False, groups=(rest,)),
    )
    mesh = mesh_of(LINE, listener=ListenerSettings(name="clients"))
    routers = {key: attrs.evolve(router, vhosts=vhosts) for key, router in mesh.routers.items()}
    return attrs.evolve(mesh, routers=routers)


MESHES = {
    "prefixes": lambda: mesh_of(LINE, listener=ListenerSettings(name="clients", vhost_prefix=True)),
    "policy": tenants,
}


@pytest.fixture(scope="module", params=MESHES)
def field(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("oslo")
    with (
        MeshProcesses(MESHES[request.param](), folder) as mesh,
        OsloWorker(folder / "servers.log") as servers,
        OsloWorker(folder / "callers.log") as callers,
    ):
        mesh.start()
        mesh.wait_converged()
        yield Field(mesh, servers, callers)


@pytest.mark.parametrize("way", WAYS)
def test_virtual_hosts_do_not_see_each_other(field: Field, way: str) -> None:
    """Two servers of the same topic in `blue`, at two routers, and one in `green`; a caller in each."""
    options = WAYS[way]
    places = {"blue-A": ("blue", "A"), "blue-B": ("blue", "B"), "green-A": ("green", "A")}
    topic = "topic-" + way.replace(" ", "-").replace(",", "")

    def name(server: str) -> str:
        return f"{topic} {server}"

    for server, (vhost, router) in places.items():
        url = oslo_url(field.mesh, router, vhost=vhost, **options)
        field.servers.do("open", transport=name(server), url=url)
        field.servers.do("serve", transport=name(server), topic=topic, server=server, name=name(server))
    for vhost in ("blue", "green"):
        field.callers.do("open", transport=name(vhost), url=oslo_url(field.mesh, "B", vhost=vhost, **options))
        wanted = [server for server, (where, _) in places.items() if where == vhost]
        wait_fanout(field.callers, name(vhost), topic, field.servers, [name(server) for server in wanted])

    for vhost in ("blue", "green"):
        wanted = [server for server, (where, _) in places.items() if where == vhost]
        order = {"transport": name(vhost), "topic": topic, "method": "echo"}
        for number in range(4):
            server, key, _ = field.callers.do("call", args={"key": f"{vhost}-any-{number}"}, **order)
            assert (server in wanted, key) == (True, f"{vhost}-any-{number}")
        for server in wanted:  # the names in other virtual hosts would do as well, if they were seen
            assert field.callers.do("call", args={"key": f"{vhost}-{server}"}, server=server, **order)[0] == server
        field.callers.do("cast", args={"key": f"{vhost}-all"}, fanout=True, **order)
        for server in wanted:
            got = field.servers.wait_keys(name(server), "echo", {f"{vhost}-all"})
            assert got.count(f"{vhost}-all") == 1
    for server, (vhost, _) in places.items():
        assert all(key.startswith(vhost) for key in field.servers.keys(name(server), "echo"))
        assert all(key.startswith(f"probe-{name(vhost)}") for key in field.servers.keys(name(server), "note"))
    with pytest.raises(OsloError) as caught:
        field.callers.do(
            "call", transport=name("green"), topic=topic, method="echo", args={"key": 0}, server="blue-B", timeout=1
        )
    assert caught.value.name == "MessagingTimeout"


def test_virtual_hosts_and_none_are_apart(field: Field) -> None:
    lost = []
    for way, options in WAYS.items():
        topic = "none-" + way.replace(" ", "-").replace(",", "")
        field.servers.do("open", transport=topic, url=oslo_url(field.mesh, "A", **options))
        field.servers.do("serve", transport=topic, topic=topic, server="s", name=topic)
        for vhost, where in (("", f"{topic} none"), ("red", f"{topic} red")):
            field.callers.do("open", transport=where, url=oslo_url(field.mesh, "B", vhost=vhost, **options))
        call = {"topic": topic, "method": "echo", "args": {"key": 1}}
        assert field.callers.do("call", transport=f"{topic} none", **call) == ["s", 1, ""]
        lost.append((topic, field.callers.begin("call", transport=f"{topic} red", timeout=1, **call)))
    for topic, order in lost:
        with pytest.raises(OsloError) as caught:
            order.result()
        assert caught.value.name == "MessagingTimeout"
        assert field.servers.keys(topic, "echo") == [1]


def test_legacy_addresses_have_their_treatments(field: Field) -> None:
    """`broadcast.` is multicast, `unicast.` goes to one of several, `exclusive.` to the one named."""
    for router in ("A", "B"):
        field.servers.do("open", transport=f"old {router}", url=oslo_url(field.mesh, router, addressing_mode="legacy"))
        field.servers.do("serve", transport=f"old {router}", topic="old", server=f"old-{router}")
    field.callers.do("open", transport="old", url=oslo_url(field.mesh, "B", addressing_mode="legacy"))
    for server in ("old-A", "old-B"):
        reply = field.callers.do("call", transport="old", topic="old", method="echo", args={"key": 1}, server=server)
        assert reply == [server, 1, ""]
    records = field.callers.do("burst", transport="old", topic="old", count=40, prefix="b")
    assert {record["outcome"] for record in records} == {"ok"}
    field.callers.do("cast", transport="old", topic="old", method="note", args={"key": "all"}, fanout=True)
    for server in ("old-A", "old-B"):
        assert field.servers.wait_keys(server, "note", {"all"}) == ["all"]
