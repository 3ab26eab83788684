"""REPETITA's .graph and .demands: two edges make a link, nodes are numbered in their order, units are kbit and us."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mesh_config.findings import SettingsError
from router.cli import main
from router.whatif.formats.importer import import_model
from router.whatif.formats.model_folder import read_model, write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.pipeline.table_files import read_table

GRAPH = """\
NODES 4
label x y
Z_East 13.4 52.5
A_South 11.6 48.1
West 7.0 51.4
North 10.0 53.6

EDGES 10
label src dest weight bw delay
e0 0 1 10 1000000 2500
e1 1 0 10 1000000 2500
e2 1 2 5 400000 2400
e3 0 3 7 0 1300
e4 1 2 5 100000 3000
e5 2 1 5 100000 3000
e6 2 1 5 400000 2400
e7 3 0 7 0 1300
e8 3 2 1 1000000 1200
e9 2 3 1 1000000 1200
"""
DEMANDS = """\
DEMANDS 3
label src dest bw
d0 0 2 8000
d1 2 0 4000
d2 3 1 800
"""


def written(folder: Path, graph: str = GRAPH, demands: str | None = DEMANDS) -> tuple[Path, Path | None]:
    file = folder / "net.graph"
    file.write_text(graph, encoding="utf-8")
    if demands is None:
        return file, None
    table = folder / "net.0000.demands"
    table.write_text(demands, encoding="utf-8")
    return file, table


def told(folder: Path, graph: str = GRAPH, demands: str | None = None) -> list[str]:
    file, table = written(folder, graph, demands)
    with pytest.raises(SettingsError) as caught:
        import_model(file, demands=table)
    return [str(finding).removeprefix(f"{folder}/") for finding in caught.value.findings]


def test_a_topology_and_its_demands_make_a_model(tmp_path: Path) -> None:
    file, table = written(tmp_path)
    model, warnings = import_model(file, demands=table, message_bytes=500)
    assert warnings == ()
    assert (model.name, model.origin) == ("net", "net.graph + net.0000.demands")
    assert [(it.id, it.longitude) for it in model.routers] == [
        ("A_South", 11.6), ("North", 10.0), ("West", 7.0), ("Z_East", 13.4)
    ]  # fmt: skip
    assert [(it.id, it.cost, it.capacity_bytes, it.delay_ms) for it in model.links] == [
        ("A_South--West", 5, 50_000_000, 2.4),
        ("A_South--West#2", 5, 12_500_000, 3.0),
        ("A_South--Z_East", 10, 125_000_000, 2.5),
        ("North--West", 1, 125_000_000, 1.2),
        ("North--Z_East", 7, None, 1.3),
    ]
    # 8,000 kbit/s are 1,000,000 bytes/s, which are 2,000 messages of 500 bytes; each in one direction.
    assert [(it.src, it.dst, it.msgs_per_s, it.msg_bytes) for it in model.demands] == [
        ("North", "A_South", 200, 500), ("West", "Z_East", 1000, 500), ("Z_East", "West", 2000, 500)
    ]  # fmt: skip


def test_an_edge_in_each_direction_may_have_a_weight_of_its_own(tmp_path: Path) -> None:
    # e0 leads from Z_East to A_South, e1 back; a link begins at the smaller id.
    file, table = written(tmp_path, GRAPH.replace("e1 1 0 10", "e1 1 0 3").replace("e8 3 2 1 ", "e8 3 2 2 "))
    model, _ = import_model(file, demands=table)
    costs = {it.id: (it.cost, it.cost_back) for it in model.links}
    assert (costs["A_South--Z_East"], costs["North--West"], costs["North--Z_East"]) == ((3, 10), (2, 1), (7, None))
    write_model(model, tmp_path / "model")
    assert read_model(tmp_path / "model").links == model.links


def directed(folder: Path) -> Path:
    """A model in which A_South - Z_East costs 3 there and 10 back."""
    file, table = written(folder, GRAPH.replace("e1 1 0 10", "e1 1 0 3"))
    write_model(import_model(file, demands=table)[0], folder / "model")
    return folder / "model"


def test_parallel_edges_with_weights_by_direction_are_paired_by_their_bandwidths(tmp_path: Path) -> None:
    edges = ("0 1 1 10 5", "0 1 1 20 5", "1 0 2 20 5", "1 0 2 10 5")
    text = "NODES 2\nlabel x y\nA 0 0\nB 1 1\n\nEDGES 4\nlabel src dest weight bw delay\n"
    (tmp_path / "net.graph").write_text(text + "".join(f"e{at} {edge}\n" for at, edge in enumerate(edges)))
    model, _ = import_model(tmp_path / "net.graph")
    assert [(it.cost, it.cost_back, it.capacity_bytes) for it in model.links] == [(1, 2, 1250.0), (1, 2, 2500.0)]


def test_costs_by_direction_are_played_with_splitting(tmp_path: Path) -> None:
    model, out = directed(tmp_path), tmp_path / "run"
    found = command("run", model, "-o", out, "--routing", "ecmp", "--engine", "local", "--no-report")
    assert found.exit_code == 0, found.output
    loads = {(row["link"], row["src"]): row["bytes_per_s"] for row in read_table(out, "link_load").to_pylist()}
    # Z_East to West: 7 + 1 by North. Back: 5 + 3 by A_South as much as 1 + 7 by North, on three links.
    assert loads["North--Z_East", "Z_East"] == 1_000_000
    assert loads["North--Z_East", "North"] == pytest.approx(500_000 / 3, abs=1)
    assert loads["A_South--Z_East", "A_South"] == pytest.approx(1_000_000 / 3, abs=1)
    for arguments in (
        ("check", out, "--max-util", "0.9", "--min-availability", "0"),
        ("explain", out, "--link", "A_South--Z_East"),
        ("credit", out),
        ("diff", out, out),
        ("report", out),
    ):
        found = command(*arguments)
        assert found.exit_code in (0, 1), found.output
        assert found.exception is None or isinstance(found.exception, SystemExit), arguments
    assert "at cost 3, and 10 back" in command("explain", out, "--link", "A_South--Z_East").output


@pytest.mark.parametrize(
    "arguments",
    [("run", "-o", "run"), ("explain",), ("credit",), ("suggest",), ("converge", "-o", "run")],
    ids=lambda words: words[0],
)
def test_costs_by_direction_are_refused_where_a_mesh_is_meant(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    rest = [str(tmp_path / word) if word == "run" else word for word in arguments[1:]]
    found = command(arguments[0], directed(tmp_path), *rest)
    assert found.exit_code == 2
    assert "another cost in each direction, and" in found.output
    assert "the larger one for both; expected the same cost both ways" in found.output
    assert not (tmp_path / "run").exists()


def test_its_loads_are_those_of_splitting_over_parallel_links(tmp_path: Path) -> None:
    file, table = written(tmp_path)
    kernel = Kernel(Network.of(import_model(file, demands=table)[0]), is_split=True)
    sizes = dict(zip(((link, way) for link in kernel.network.links for way in (0, 1)), kernel.loads()[1], strict=True))
    # North to A_South by way of West, on both links.
    assert [sizes[link, 1] // MICRO for link in ("A_South--West", "A_South--West#2")] == [50_000, 50_000]


def test_what_a_file_is_its_first_line_tells_too(tmp_path: Path) -> None:
    file = tmp_path / "net"
    file.write_text(GRAPH.replace("\n", "\r\n"), encoding="utf-8")
    assert len(import_model(file)[0].links) == 5


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("NODES 4", "NODE 4", ":1: error: `NODE 4`; expected `NODES` and how many they are; did you mean `NODES`?"),
        ("EDGES 10", "EDGES", ":8: error: `EDGES`; expected `EDGES` and how many they are"),
        ("EDGES 10", "EDGES 11", ":20: error: EDGES has less than 11 lines; expected label src dest weight bw delay"),
        ("EDGES 10", "EDGES 9", ":19: error: `e9 2 3 1 1000000 1200`; expected no line after the last of EDGES"),
        ("e8 3 2 1", "e8 4 2 1", ":18: error: EDGES.e8: no node `4`; expected the number of a node, from 0 to 3"),
        ("e8 3 2 1", "e8 3 2 0", ":18: error: EDGES.e8.cost: 0 is out of range; expected a whole number"),
        ("e8 3 2 1 ", "e8 3 2 ", ":18: error: EDGES: `e8 3 2 1000000 1200`; expected label src dest weight bw delay"),
        ("e8 3 2 1 1000000", "e8 3 2 1 fast", ':18: error: EDGES.e8: the text "fast"; expected a number'),
        ("e8 3 2", "e8 2 3", ":18: error: EDGES.e8: has no edge in the other direction; expected one from"),
        ("e8 3 2 1 1000000", "e8 3 2 1 5", ":19: error: EDGES.e9: bw differs from that of `e8`; expected the same bw"),
        ("West 7.0", "West west", ':5: error: NODES.West: the text "west"; expected a number'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_topology_is_told_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GRAPH
    assert any(line.startswith(f"net.graph{expected}") for line in told(tmp_path, GRAPH.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "d1 2 0 4000",
            "d1 2 9 4000",
            ":4: error: DEMANDS.d1: no node `9`; expected the number of a node, from 0 to 3",
        ),
        ("d1 2 0 4000", "d1 2 0 -4", ":4: error: DEMANDS.d1.bw: -4.0 is out of range; expected a number not below 0"),
        ("d1 2 0 4000", "d1 2 0", ":4: error: DEMANDS: `d1 2 0`; expected label src dest bw"),
        ("DEMANDS 3", "NODES 3", ":1: error: `NODES 3`; expected `DEMANDS` and how many they are"),
    ],
)
def test_what_is_wrong_with_demands_is_told_with_its_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert any(
        line.startswith(f"net.0000.demands{expected}") for line in told(tmp_path, demands=DEMANDS.replace(old, new))
    )


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["whatif", *map(str, arguments)])


def test_the_command_takes_both_files(tmp_path: Path) -> None:
    file, table = written(tmp_path)
    found = command("import", file, "--demands", table, "--message-bytes", 100, "-o", tmp_path / "model")
    assert (found.exit_code, found.stdout) == (0, f"{tmp_path}/model: 4 routers, 5 links, 3 demands\n")
    assert {it.msg_bytes for it in read_model(tmp_path / "model").demands} == {100.0}


def test_demands_need_the_topology_that_numbers_their_nodes(tmp_path: Path) -> None:
    _, table = written(tmp_path)
    assert table is not None
    found = command("import", table, "-o", tmp_path / "model")
    assert found.exit_code == 2
    assert f"{table}:1: error: demands without a topology; expected a .graph file" in found.stderr
    mesh = tmp_path / "mesh.yaml"
    CliRunner().invoke(main, ["config", "generate", "ring", "--routers", "3", "-o", str(mesh)])
    found = command("import", mesh, "--demands", table, "-o", tmp_path / "model")
    assert found.exit_code == 2
    assert f"{table}: error: it numbers nodes; expected with a .graph file of REPETITA" in found.stderr
    assert not (tmp_path / "model").exists()


def test_an_unknown_format_lists_those_that_are_known(tmp_path: Path) -> None:
    file = tmp_path / "net.gml"
    file.write_text("graph [ node [ id 0 ] ]\n", encoding="utf-8")
    for options in ((), ("--format", "gml")):
        found = command("import", file, *options, "-o", tmp_path / "model")
        for form in ("mesh", "graphml", "topohub", "sndlib", "repetita"):
            assert form in found.stderr, options
