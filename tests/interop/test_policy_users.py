"""Policy by users who have shown who they are: real routers, real clients, passwords."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from proton import ConnectionException, Message
from proton.reactor import AtMostOnce
from proton.utils import BlockingConnection, LinkDetached, SendException

from mesh_config.models import (
    ConnectorSettings,
    GroupSettings,
    ListenerSettings,
    ManagementRight,
    Mechanism,
    MeshSettings,
    Role,
    RouterSettings,
    VhostSettings,
)
from router.security.users import new_keys, write_users
from tests.helpers.processes import MeshProcesses

pytestmark = pytest.mark.interop

USERS = ("alice", "bob", "worker", "eve")
ITERATIONS = 4096
DENIED = "amqp:unauthorized-access"


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """Routers A and B with one virtual host: customers have an inbox each, workers answer, eve is nobody."""
    # A receiver of settled messages gives no outcome, so nobody has to answer while a test waits for one.
    folder = tmp_path_factory.mktemp("users")
    write_users(str(folder / "users"), {user: new_keys(f"password of {user}", ITERATIONS) for user in USERS})
    customers = GroupSettings(
        name="customers",
        users=("alice", "bob"),
        sources=("inbox/${user}",),
        targets=("jobs",),
        max_connections_of_user=2,
    )
    workers = GroupSettings(
        name="workers", users=("worker",), sources=("jobs",), targets=("inbox/#",), any_user_id=True
    )
    operators = GroupSettings(name="all", users=("anonymous",), management=ManagementRight.READ)
    vhosts = (
        VhostSettings(name="shop", groups=(customers, workers)),
        VhostSettings(name="operators", hostnames=("127.0.0.1",), groups=(operators,)),
    )
    clients = ListenerSettings(
        sasl=(Mechanism.PLAIN, Mechanism.ANONYMOUS), users_file=str(folder / "users"), plain_without_tls=True
    )
    routers = {
        key: RouterSettings(
            id=key,
            listeners=(clients, ListenerSettings(role=Role.INTER_ROUTER)),
            connectors=(ConnectorSettings(to="A"),) if key == "B" else (),
            vhosts=vhosts,
        )
        for key in ("A", "B")
    }
    with MeshProcesses(MeshSettings(name="users", routers=routers), folder / "mesh") as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh


def connect(mesh: MeshProcesses, router: str, user: str, **options: Any) -> BlockingConnection:
    return BlockingConnection(
        mesh.url(router),
        virtual_host="shop",
        user=user,
        password=f"password of {user}",
        allow_insecure_mechs=True,
        allowed_mechs="PLAIN",
        timeout=20,
        **options,
    )


def test_each_user_has_what_is_its_own_across_routers(mesh: MeshProcesses) -> None:
    alice, bob, worker = connect(mesh, "A", "alice"), connect(mesh, "B", "bob"), connect(mesh, "B", "worker")
    inbox = alice.create_receiver("inbox/alice", credit=10, options=[AtMostOnce()])
    with pytest.raises(LinkDetached, match="may not receive from inbox/alice"):
        bob.create_receiver("inbox/alice")
    with pytest.raises(LinkDetached, match="may not send to inbox/bob"):
        alice.create_sender("inbox/bob")
    jobs = worker.create_receiver("jobs", credit=10, options=[AtMostOnce()])
    alice.create_sender("jobs").send(Message("job", user_id=b"alice"))
    job = jobs.receive(timeout=20)
    assert (job.body, job.user_id) == ("job", b"alice")
    worker.create_sender("inbox/alice").send(Message("done", user_id=b"alice"))
    assert inbox.receive(timeout=20).body == "done"
    for client in (alice, bob, worker):
        client.close()


def test_a_user_cannot_send_as_another(mesh: MeshProcesses) -> None:
    alice, worker = connect(mesh, "A", "alice"), connect(mesh, "B", "worker")
    worker.create_receiver("jobs", credit=10)
    with pytest.raises(SendException):
        alice.create_sender("jobs").send(Message("job", user_id=b"bob"))
    for client in (alice, worker):
        client.close()


def test_who_is_in_no_group_stays_out_however_right_the_password(mesh: MeshProcesses) -> None:
    with pytest.raises(ConnectionException, match=DENIED):
        connect(mesh, "A", "eve")
    with pytest.raises(ConnectionException, match=DENIED):
        BlockingConnection(mesh.url("A"), virtual_host="shop", timeout=20)


def test_connections_of_a_user_are_counted_for_that_user(mesh: MeshProcesses) -> None:
    clients = [connect(mesh, "A", "bob") for _ in range(2)]
    with pytest.raises(ConnectionException, match="amqp:resource-limit-exceeded"):
        connect(mesh, "A", "bob")
    clients.append(connect(mesh, "A", "alice"))
    for client in clients:
        client.close()
