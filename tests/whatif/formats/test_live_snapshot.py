"""Snapshots: of what management may say, and of real routers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result
from proton import Message

from mesh_config.findings import SettingsError
from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    ListenerSettings,
    MeshSettings,
    Role,
    RouterSettings,
    Treatment,
)
from router.cli import main
from router.cli.management import ManagementClient
from router.cli.whatif.mesh_client import MeshClient
from router.whatif.formats.importer import import_model
from router.whatif.formats.live_snapshot import Reading, checked_model, collect, measured_demands
from router.whatif.formats.model_folder import read_model
from router.whatif.model.elements import AddressNode, LinkCounter, LinkEdge, RouterNode, SubscriberSite
from router.whatif.model.mesh_model import Model
from tests.helpers.blocking_client import connected
from tests.helpers.processes import MeshProcesses, wait_until

Row = dict[str, Any]
WAIT_S = 60.0


# What management may say


def node(router: str, costs: Mapping[str, int], *, is_reachable: bool = True) -> Row:
    return {"id": router, "isReachable": is_reachable, "linkCosts": dict(costs)}


def connection(container: str, **fields: Any) -> Row:
    usual = {
        "identity": "1", "container": container, "role": "inter-router", "opened": True, "operStatus": "up",
        "neighborState": "two-way", "isStandby": False, "cost": 1,
        "deliveriesIn": 3, "deliveriesOut": 4, "bytesIn": 30, "bytesOut": 40, "roundTripMicros": 500,
    }  # fmt: skip
    return {**usual, **fields}


def address(key: str, treatment: str = "balanced", publishers: int = 0, ingress: int = 0) -> Row:
    return {"key": key, "distribution": treatment, "publisherCount": publishers, "deliveriesIngress": ingress}


def subscriber(key: str | None, credit: int = 0, unsettled: int = 0, **fields: Any) -> Row:
    usual = {"linkType": "endpoint", "linkDir": "out", "owningAddr": key}
    return {**usual, "creditAvailable": credit, "unsettledCount": unsettled, **fields}


@attrs.define
class Answers:
    """A mesh as management tells of it, by router and type of entity. A is the router that is asked."""

    nodes: list[Row]
    entities: dict[str, dict[str, list[Row]]]
    later: list[list[Row]] = attrs.field(factory=list)
    """What the nodes are when asked again, and then again."""
    asked: list[tuple[str, str | None]] = attrs.field(factory=list)

    def attached_to(self) -> str:
        return "A"

    def query(self, kind: str, attributes: Sequence[str], *, router: str | None) -> list[Row]:
        self.asked.append((kind, router))
        if kind == "router.node":
            nodes, self.nodes = self.nodes, self.later.pop(0) if self.later else self.nodes
            return nodes
        if kind == "router":
            return [{"site": f"site of {router or 'A'}"}]
        return self.entities.get(router or "A", {}).get(kind, [])


def model_of(answers: Answers) -> tuple[Model, list[str]]:
    model, warnings = checked_model(collect(answers), "amqp://a", name="live")
    return model, [str(it).removeprefix("amqp://a: warning: ") for it in warnings]


def pair(connections: Sequence[Row], costs: int = 1) -> Answers:
    """A and B, with these connections as A has them."""
    return Answers([node("A", {"B": costs}), node("B", {"A": costs})], {"A": {"connection": list(connections)}})


def test_the_end_with_the_smaller_id_tells_of_a_link() -> None:
    answers = pair([connection("client", role="normal"), connection("B", identity="2", cost=7)], costs=7)
    model, warnings = model_of(answers)
    assert warnings == []
    assert (model.name, model.origin) == ("live", "amqp://a, router A")
    assert model.routers == (RouterNode(id="A", site="site of A"), RouterNode(id="B", site="site of B"))
    assert model.links == (LinkEdge(id="A--B", a="A", b="B", cost=7, delay_ms=0.25),)
    assert model.counters == (
        LinkCounter(link="A--B", src="A", messages=4, bytes=40),
        LinkCounter(link="A--B", src="B", messages=3, bytes=30),
    )
    assert {router for _, router in answers.asked} == {None, "B"}


def test_standby_connections_are_parallel_links_and_others_are_none() -> None:
    rows = [
        connection("B", identity="1", cost=9, isStandby=True, neighborState="silent"),
        connection("B", identity="2", cost=2),
        connection("B", identity="3", opened=False),
        connection("B", identity="4", operStatus="closing"),
        connection("B", identity="5", neighborState="one-way"),
        connection("C", identity="6"),
        connection("B", identity="10", cost=2, isStandby=True),
    ]
    model, _ = model_of(pair(rows, costs=2))
    assert [(link.id, link.cost) for link in model.links] == [("A--B", 2), ("A--B#2", 2), ("A--B#3", 9)]


def test_a_router_that_counts_and_measures_nothing_has_no_counters() -> None:
    bare = {name: connection("B")[name] for name in ("identity", "container", "role", "opened", "operStatus")}
    for rows in ([bare], []):
        model, _ = model_of(pair(rows, costs=5))
        assert model.links == (LinkEdge(id="A--B", a="A", b="B", cost=5),)
        assert model.counters == ()
    silent = connection("B", bytesIn=None, bytesOut=None, roundTripMicros=None)
    model, _ = model_of(pair([silent]))
    assert {row.bytes for row in model.counters} == {None}
    assert model.links[0].delay_ms is None


def test_what_cannot_be_reached_or_is_one_sided_is_left_out_with_a_warning() -> None:
    nodes = [
        node("A", {"B": 1, "C": 1, "D": 1}),
        node("B", {"A": 1}),
        node("C", {}),
        node("D", {"A": 1}, is_reachable=False),
    ]
    model, warnings = model_of(Answers(nodes, {"A": {"connection": [connection("B"), connection("C")]}}))
    assert [router.id for router in model.routers] == ["A", "B", "C"]
    assert [link.id for link in model.links] == ["A--B"]
    assert warnings == [
        "links: router `A` has a link to `C`, which knows nothing of it: left out",
        "routers.D: router `D` cannot be reached, and is left out",
    ]


def test_a_mesh_that_changes_is_asked_again_and_told_when_it_goes_on_changing() -> None:
    before, after = [node("A", {})], [node("A", {"B": 1}), node("B", {"A": 1})]
    answers = Answers(before, {}, later=[after])
    model, warnings = model_of(answers)
    assert [router.id for router in model.routers] == ["A", "B"]
    assert warnings == []
    answers = Answers(before, {}, later=[after, before, after, before])
    _, warnings = model_of(answers)
    assert "links came or went while the mesh was asked, 3 times; the model may mix two states" in warnings


@pytest.mark.parametrize(("change", "told"), [
    ({"linkCosts": None}, "router.node[0].linkCosts: router `A` reports nothing; expected a mapping"),
    ({"linkCosts": {"B": "2"}}, "router.node[0].linkCosts: router `A` reports a mapping; expected a mapping of"),
    ({"isReachable": 1}, "router.node[0].isReachable: router `A` reports the number `1`; expected `true` or `false`"),
    ({"id": 7}, "router.node[0].id: router `A` reports the number `7`; expected text"),
])  # fmt: skip
def test_a_router_that_tells_something_else_is_named(change: Row, told: str) -> None:
    answers = Answers([{**node("A", {}), **change}], {})
    with pytest.raises(SettingsError) as caught:
        collect(answers)
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", ["connection", "router.link", "router.address"])
def test_a_reply_with_other_attributes_is_named(kind: str) -> None:
    answers = pair([])
    answers.entities["B"] = {kind: [{"name": "other"}]}
    with pytest.raises(SettingsError, match=r"router `B` reports nothing; expected"):
        collect(answers)


def test_what_left_while_routers_were_asked_is_told() -> None:
    answers = pair([connection("B")])
    answers.entities["A"]["router.link"] = [subscriber("M0gone", 5)]
    answers.entities["A"]["router.address"] = [address("M0odd", "unavailable", publishers=1)]
    model, warnings = model_of(answers)
    assert {it.text: it.treatment for it in model.addresses} == dict.fromkeys(("gone", "odd"), Treatment.BALANCED)
    assert [it.partition(": ")[2] for it in warnings] == [
        "address `gone` is known to no router any more; it counts as balanced",
        "address `odd` is `unavailable` at router `A`; it counts as balanced",
    ]


def test_a_router_that_leaves_after_it_was_asked_has_no_links() -> None:
    answers = pair([connection("B")])
    answers.later = [
        [
            node("A", {}),
        ]
    ] * 9
    assert model_of(answers)[0].links == ()
    answers = pair([connection("B")])
    nodes = answers.nodes
    answers.later = [[node("A", {})], nodes, [node("A", {})], nodes]
    assert model_of(answers)[0].links == ()


def test_subscribers_are_counted_with_all_that_they_grant() -> None:
    answers = pair([connection("B")])
    answers.entities = {
        "A": {
            "connection": [connection("B")],
            "router.link": [
                subscriber("M0orders", 10, 5),
                subscriber("M0orders", 1),
                subscriber("M0orders", 99, linkDir="in"),
                subscriber("M0orders", 99, linkType="inter-router"),
                subscriber("Ltemp.1", 99),
                subscriber("M0amq.rabbitmq.reply-to.A.xyz", 99),
                subscriber(None, 99),
            ],
            "router.address": [
                address("M0orders", "closest"),
                address("M0asked", publishers=1),
                address("M0old"),
                address("L$management", "closest", 1),
            ],
        },
        "B": {
            "router.link": [subscriber("M0orders", 0, 3)],
            "router.address": [address("M0orders", "multicast")],
        },
    }
    model, warnings = model_of(answers)
    assert model.subscribers == (
        SubscriberSite(address="orders", router="A", count=2, credit=16),
        SubscriberSite(address="orders", router="B", count=1, credit=3),
    )
    assert model.addresses == (
        AddressNode(text="asked", treatment=Treatment.BALANCED),
        AddressNode(text="orders", treatment=Treatment.CLOSEST),
    )
    assert warnings == [
        (
            "addresses.orders: address `orders` is closest at router `A` and multicast at router `B`;"
            " it counts as closest"
        )
    ]


def test_what_entered_between_two_readings_is_the_demand() -> None:
    def reading(ingress: int, messages: int, octets: int) -> Reading:
        client = connection("client", role="normal", identity="5", deliveriesIn=messages, bytesIn=octets)
        rows = [address("M0orders", ingress=ingress), address("M0idle", ingress=7), address("Ltemp.3", ingress=ingress)]
        return collect(Answers([node("A", {})], {"A": {"connection": [client], "router.address": rows}}))

    (demand,) = measured_demands(reading(10, 100, 5000), reading(30, 140, 9000), 4.0)
    assert (demand.src, demand.address, demand.msgs_per_s, demand.msg_bytes) == ("A", "orders", 5.0, 100.0)
    model, _ = checked_model(reading(30, 140, 9000), "amqp://a", demands=[demand])
    assert [it.text for it in model.addresses] == ["orders"]
    (unknown,) = measured_demands(reading(10, 100, 5000), reading(30, 100, 5000), 4.0)
    assert unknown.msg_bytes == 0.0


def test_a_router_that_has_started_anew_counts_from_its_start() -> None:
    def reading(instance: int, ingress: int, messages: int, octets: int, other: int) -> Reading:
        client = connection("client", role="normal", identity="5", deliveriesIn=messages, bytesIn=octets)
        rows = [address("M0orders", ingress=ingress), address("M0used-again", ingress=other)]
        nodes = [{**node("A", {}), "instance": instance}]
        return collect(Answers(nodes, {"A": {"connection": [client], "router.address": rows}}))

    found = measured_demands(reading(1, 1000, 800, 5000, 7), reading(2, 40, 10, 2000, 9), 4.0)
    assert [(each.address, each.msgs_per_s, each.msg_bytes) for each in found] == [
        ("orders", 10.0, 200.0), ("used-again", 2.25, 200.0)
    ]  # fmt: skip
    # An address that nobody had used for a while is counted anew by the same router.
    found = measured_demands(reading(1, 1000, 800, 5000, 7), reading(1, 1040, 810, 7000, 4), 4.0)
    assert [(each.address, each.msgs_per_s) for each in found] == [("orders", 10.0), ("used-again", 1.0)]


# Real routers


def router(name: str, *connectors: tuple[str, int], site: str | None = None) -> RouterSettings:
    return RouterSettings(
        id=name,
        site=site,
        listeners=(ListenerSettings(port=0), ListenerSettings(port=0, role=Role.INTER_ROUTER)),
        connectors=tuple(ConnectorSettings(to=to, cost=cost, role=Role.INTER_ROUTER) for to, cost in connectors),
        addresses=(AddressSettings(prefix="orders", treatment=Treatment.CLOSEST),),
    )


MESH = MeshSettings(
    name="live",
    routers={
        it.id: it
        for it in (
            router("A", site="east"),
            router("B", ("A", 7), ("A", 1)),
            router("C", ("B", 3), site="west"),
            router("D", ("C", 1), ("A", 9)),
        )
    },
)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """A = B - C - D - A; between A and B there are two connections."""
    with MeshProcesses(MESH, tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh


def snapshot(mesh: MeshProcesses, through: str, folder: Path, *arguments: str) -> Result:
    command = ["whatif", "snapshot", mesh.url(through), "-o", str(folder), "--name", "live", *arguments]
    return CliRunner().invoke(main, command, catch_exceptions=False)


def as_settings_say(model: Model) -> Model:
    """Without what only a live mesh can tell."""
    return attrs.evolve(
        model,
        links=[attrs.evolve(link, delay_ms=None) for link in model.links],
        addresses=(),
        subscribers=(),
        counters=(),
    )


@pytest.mark.interop
@pytest.mark.parametrize("through", "ABCD")
def test_a_live_mesh_is_the_mesh_of_its_file_whichever_router_is_asked(
    mesh: MeshProcesses, tmp_path: Path, through: str
) -> None:
    found = snapshot(mesh, through, tmp_path / "model")
    assert (found.exit_code, found.stderr) == (0, "")
    model = read_model(tmp_path / "model")
    written, _ = import_model(mesh.file)
    assert as_settings_say(model) == written
    assert [(link.id, link.cost) for link in model.links][:3] == [("A--B", 1), ("A--B#2", 7), ("A--D", 9)]
    assert model.origin == f"{mesh.url(through)}, router {through}"
    assert all(link.delay_ms is None or link.delay_ms > 0 for link in model.links)


@pytest.mark.interop
def test_subscribers_credit_and_counters_of_a_live_mesh(mesh: MeshProcesses, tmp_path: Path) -> None:
    with connected(mesh.url("A")) as near, connected(mesh.url("C")) as far, connected(mesh.url("D")) as other:
        receivers = [far.create_receiver("orders", name=name, credit=0) for name in ("one", "other")]
        for receiver, credit in zip(receivers, (10, 20), strict=True):
            receiver.link.flow(credit)
        far.create_receiver(None, dynamic=True, credit=5)
        other.create_receiver("broadcast/all", credit=7)
        near.create_sender("nobody/here")
        sender = near.create_sender("orders")
        for _ in range(12):
            near.wait(lambda: sender.link.credit > 0)
            sender.link.send(Message(body="x" * 1000))
            near.wait(lambda: not near.conn.transport.pending())
        far.wait(lambda: sum(len(receiver.fetcher.incoming) for receiver in receivers) == 12)
        found = snapshot(mesh, "A", tmp_path / "model")
    assert found.exit_code == 0, found.stderr
    assert found.stderr == ""
    model = read_model(tmp_path / "model")
    assert {(it.text, it.treatment) for it in model.addresses} == {
        ("orders", Treatment.CLOSEST),
        ("broadcast/all", Treatment.MULTICAST),
        ("nobody/here", Treatment.BALANCED),
    }
    # Twelve of the thirty are under way, without an outcome.
    assert model.subscribers == (
        SubscriberSite(address="broadcast/all", router="D", count=1, credit=7),
        SubscriberSite(address="orders", router="C", count=2, credit=30),
    )
    counters = {(row.link, row.src): row for row in model.counters}
    assert len(counters) == 2 * len(model.links)
    assert counters["A--B", "A"].messages >= 12
    assert counters["B--C", "B"].messages >= 12
    assert {counters[link, src].messages for link, src in (("A--B#2", "A"), ("A--B#2", "B"), ("A--D", "A"))} == {0}
    octets = counters["A--B", "A"].bytes
    assert octets is None or octets > 12_000


@pytest.mark.interop
def test_the_demands_of_a_live_mesh_are_what_is_counted(mesh: MeshProcesses) -> None:
    with ManagementClient(mesh.url("B"), timeout_s=WAIT_S) as management:
        client = MeshClient(management)
        with connected(mesh.url("A")) as near, connected(mesh.url("D")) as far:
            receiver = far.create_receiver("measured/here", credit=100)
            sender = near.create_sender("measured/here")
            near.wait(lambda: sender.link.credit > 0)
            before = collect(client)
            for _ in range(20):
                near.wait(lambda: sender.link.credit > 0)
                sender.link.send(Message(body="x" * 1000))
                near.wait(lambda: not near.conn.transport.pending())
            far.wait(lambda: len(receiver.fetcher.incoming) == 20)
            after = collect(client)
    demands = {(it.src, it.address): it for it in measured_demands(before, after, 4.0)}
    measured = demands.pop(("A", "measured/here"))
    assert demands == {}
    assert measured.msgs_per_s == 5.0
    assert measured.msg_bytes == 0.0 or 1000 < measured.msg_bytes < 1200


@pytest.mark.interop
def test_demands_are_measured_by_the_command(mesh: MeshProcesses, tmp_path: Path) -> None:
    found = snapshot(mesh, "A", tmp_path / "model", "--measure", "0.1")
    assert (found.exit_code, found.stderr) == (0, "")
    assert len(read_model(tmp_path / "model").demands) == 0


@pytest.mark.interop
def test_details_go_with_a_snapshot_and_with_an_error_nothing_is_written(mesh: MeshProcesses, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("defaults: {link: {capacity_msgs: 1000}}")
    bad.write_text("links: [{id: A--E}]")
    found = snapshot(mesh, "C", tmp_path / "model", "--details", str(bad))
    assert (found.exit_code, found.stderr.partition(";")[0]) == (2, f"{bad}:1: error: links[0].id: no link `A--E`")
    assert not (tmp_path / "model").exists()
    assert snapshot(mesh, "C", tmp_path / "model", "--details", str(good)).exit_code == 0
    assert {link.capacity_msgs for link in read_model(tmp_path / "model").links} == {1000.0}


@pytest.mark.interop
def test_a_router_that_is_gone_is_told(mesh: MeshProcesses, tmp_path: Path) -> None:
    url = mesh.url("D")
    mesh.kill("D")
    wait_until(lambda: "D" not in mesh.reachable("A"), "A misses D", WAIT_S)
    found = snapshot(mesh, "A", tmp_path / "model")
    assert (found.exit_code, found.stderr) == (
        0, f"{mesh.url('A')}: warning: routers.D: router `D` cannot be reached, and is left out\n",
    )  # fmt: skip
    model = read_model(tmp_path / "model")
    assert [router.id for router in model.routers] == ["A", "B", "C"]
    assert [link.id for link in model.links] == ["A--B", "A--B#2", "B--C"]
    found = CliRunner().invoke(main, ["whatif", "snapshot", url, "-o", str(tmp_path / "none")])
    assert found.exit_code == 1
    assert found.stderr.startswith(f"Error: no router answers at {url}")
    assert not (tmp_path / "none").exists()
    mesh.start("D")
    mesh.wait_converged()


def test_demands_are_either_measured_or_given() -> None:
    found = CliRunner().invoke(main, ["whatif", "snapshot", "amqp://x", "-o", "y", "--demands", "f", "--measure", "1"])
    assert found.exit_code == 2
    assert "--demands and --measure exclude each other" in found.stderr
