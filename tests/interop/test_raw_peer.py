"""A neighbor of another make joins a mesh of real router processes, as connector and as listener."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from mesh_config.render import render_mesh
from tests.helpers.neighbor import Neighbor
from tests.helpers.peer import message
from tests.helpers.processes import ReservedPort, RouterProcess
from tests.helpers.sockets import Sockets

pytestmark = pytest.mark.interop


@attrs.define
class Joined:
    """Two routers R1 and R2, the raw neighbor of R1, and the connections of this process."""

    routers: dict[str, RouterProcess]
    sockets: Sockets
    raw: Neighbor


def start(folder: Path, ports: list[ReservedPort], connector: ConnectorSettings | None) -> dict[str, RouterProcess]:
    """R1 and R2, R2 dialling R1; R1 dials *connector* too."""
    numbers = [port.number for port in ports]

    def listeners(client: int, router: int) -> tuple[ListenerSettings, ...]:
        return (ListenerSettings(port=client), ListenerSettings(port=router, role=Role.INTER_ROUTER))

    mesh = MeshSettings(
        routers={
            "R1": RouterSettings(
                id="R1", listeners=listeners(*numbers[:2]), connectors=() if connector is None else (connector,)
            ),
            "R2": RouterSettings(
                id="R2", listeners=listeners(*numbers[2:4]), connectors=(ConnectorSettings(port=numbers[1]),)
            ),
        }
    )
    file = folder / "mesh.yaml"
    file.write_text(render_mesh(mesh), encoding="utf-8")
    routers = {key: RouterProcess(settings, file, folder / f"{key}.log") for key, settings in mesh.routers.items()}
    for router in routers.values():
        router.start()
    for router in routers.values():
        router.wait_started()
    return routers


@pytest.fixture(scope="module", params=["dials", "dials, 22 links", "listens"])
def joined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    dials = request.param != "listens"
    ports = [ReservedPort() for _ in range(4)]
    sockets = Sockets()
    routers: dict[str, RouterProcess] = {}
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            connector = None if dials else ConnectorSettings(port=server.getsockname()[1])
            routers = start(tmp_path_factory.mktemp("mesh"), ports, connector)
            if dials:
                peer = sockets.dial(routers["R1"].url(Role.INTER_ROUTER), container="RAW", sasl=True)
            else:
                server.settimeout(20)
                peer = sockets.adopt(server.accept()[0], container="RAW", is_server=True)
        raw = Neighbor("RAW", peer, dials=dials, pairs=10 if "22" in request.param else 1)
        peer.connection.open()
        sockets.wait(lambda: peer.connection.state & peer.connection.REMOTE_ACTIVE)
        if dials:
            raw.attach()
        sockets.on_tick = [raw.hello]
        sockets.wait(lambda: raw.control_out is not None and raw.control_out.credit > 0)
        raw.hello()
        raw.advertise()
        sockets.wait(lambda: {"R1", "R2"} <= set(raw.known))
        yield Joined(routers, sockets, raw)
    finally:
        sockets.close()
        for router in routers.values():
            if router.is_running:
                router.kill()
        for port in ports:
            port.close()


def test_our_routers_list_it(joined: Joined) -> None:
    def lists(router: RouterProcess) -> bool:
        return any("RAW" in line.fields.values() for line in router.log_lines("router_reachable"))

    joined.sockets.wait(lambda: all(lists(router) for router in joined.routers.values()))
    joined.sockets.wait(lambda: joined.raw.known == {"R1": {"R2": 1, "RAW": 1}, "R2": {"R1": 1}})


@pytest.mark.parametrize("router", ["R1", "R2"])
def test_it_is_reached(joined: Joined, router: str) -> None:
    sockets, raw = joined.sockets, joined.raw
    address = f"raw/{router}"
    raw.subscribe(address)
    raw.received.clear()
    client = sockets.client(joined.routers[router].url())
    sender = client.sender(address)
    sockets.wait(lambda: sender.credit > 0)
    anonymous = client.sender(None)
    sockets.wait(lambda: anonymous.credit > 0)
    sent = [link.send(message(body, address=address)) for link, body in ((sender, "a"), (anonymous, "b"))]
    sent.append(sender.send(message("c" * 200_000)))
    sockets.wait(lambda: len(raw.received) == 3)
    by_body = {str(found.body)[0]: received for found, received in raw.received}
    by_body["a"].settle()
    by_body["b"].reject("raw:no", "no")
    by_body["c"].modify(failed=False, undeliverable=True)
    sockets.wait(lambda: all(one.outcomes for one in sent))
    assert [one.outcome for one in sent] == ["accepted", "rejected", "modified"]
    assert (sent[2].failed, sent[2].undeliverable) == (False, True)
    ingress = {found.annotations["x-opt-qd.ingress"] for found, _ in raw.received}
    # a circuit carries no annotations: what comes by one enters the mesh of routers without circuits at R1
    assert ingress == {"0/R1", f"0/{router}"}


@pytest.mark.parametrize("router", ["R1", "R2"])
def test_it_reaches_ours(joined: Joined, router: str) -> None:
    sockets, raw = joined.sockets, joined.raw
    address = f"mesh/{router}"
    client = sockets.client(joined.routers[router].url())
    receiver = client.receiver(address, credit=10)
    reply = client.receiver(None, dynamic=True, credit=10).accepting()
    sockets.wait(lambda: reply.is_attached and "M0" + address in raw.addresses.get(router, ()))
    sent = [raw.send(number, address) for number in range(3)]
    replied = raw.send("reply", str(reply.address))
    sockets.wait(lambda: len(receiver.messages) == 3)
    receiver.messages[0].settle()
    receiver.messages[1].reject("mesh:no", "no")
    receiver.messages[2].settle(receiver.messages[2].delivery.RELEASED)
    sockets.wait(lambda: all(one.outcomes for one in (*sent, replied)))
    assert [one.outcome for one in (*sent, replied)] == ["accepted", "rejected", "released", "accepted"]
    assert receiver.bodies == [0, 1, 2]
    assert reply.bodies == ["reply"]
