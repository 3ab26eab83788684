"""`amqp-mesh whatif` and its import, as an operator calls them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mesh_config.findings import SettingsError
from router.cli import main, whatif
from router.whatif.formats.importer import import_model
from router.whatif.formats.model_folder import read_model
from router.whatif.model.elements import GroupKind
from tests.whatif.models import TOPOHUB, ZOO


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["whatif", *map(str, arguments)], catch_exceptions=False)


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    file = tmp_path / "mesh.yaml"
    CliRunner().invoke(main, ["config", "generate", "ring", "--routers", "4", "-o", str(file)])
    return file


def test_a_mesh_with_all_that_goes_with_it(tmp_path: Path, mesh: Path) -> None:
    groups, more, demands = tmp_path / "groups.yaml", tmp_path / "more.yaml", tmp_path / "demands.csv"
    groups.write_text("groups: [{name: duct, kind: srlg, links: [R1--R2]}]\nsubscribers: [{address: x, router: R1}]\n")
    more.write_text("groups: [{name: duct, kind: site, routers: [R1]}]\n")
    demands.write_text("src,address,msgs_per_s,msg_bytes\nR3,x,1,1\nR3,y,1,1\n")
    found = run("import", mesh, "--details", groups, "--groups", more, "--demands", demands, "-o", tmp_path / "model")
    assert found.exit_code == 0
    assert found.stdout == (f"{tmp_path}/model: 4 routers, 4 links, 2 addresses, 1 subscriber, 2 demands, 1 group\n")
    assert found.stderr == f"{demands}:3: warning: address: address `y` has no subscriber\n"
    model = read_model(tmp_path / "model")
    assert model.groups[0].kind is GroupKind.SITE
    assert model.origin == "mesh.yaml + groups.yaml + more.yaml + demands.csv"


@pytest.mark.parametrize(
    ("file", "form", "expected"),
    [
        (ZOO / "Abilene.graphml", None, "11 routers, 14 links"),
        (ZOO / "Abilene.graphml", "graphml", "11 routers, 14 links"),
        (TOPOHUB / "sndlib_polska.json", None, "12 routers, 18 links, 132 demands"),
    ],
)
def test_topologies(tmp_path: Path, file: Path, form: str | None, expected: str) -> None:
    chosen = ("--format", form) if form else ()
    found = run("import", file, *chosen, "--message-bytes", 250, "-o", tmp_path / "model")
    assert (found.exit_code, found.stdout) == (0, f"{tmp_path}/model: {expected}\n")
    assert {demand.msg_bytes for demand in read_model(tmp_path / "model").demands} <= {250.0}


PARTED = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">
<node id="A"/><node id="B"/><node id="C"/><node id="D"/>
<edge source="A" target="B"/><edge source="C" target="D"/></graph></graphml>"""
PARTS = "the mesh is in 2 parts (A and B; C and D): 8 ordered pairs of routers have no path even when nothing fails"


def test_a_mesh_in_two_parts_is_told_by_each_command_that_judges_it(tmp_path: Path) -> None:
    file, folder, out = tmp_path / "parted.graphml", tmp_path / "model", tmp_path / "out"
    file.write_text(PARTED)
    found = run("import", file, "-o", folder)
    assert (found.exit_code, found.stderr) == (0, f"{file}: warning: {PARTS}\n")
    played = run("run", folder, "-o", out, "--engine", "local", "--workers", 1)
    assert (played.exit_code, played.stderr.splitlines()[0]) == (0, f"{folder}: warning: {PARTS}")
    assert f"Parts of the mesh: 2. T{PARTS[1:]}.\n" in played.stdout
    (verdict,) = (it for it in json.loads((out / "summary.json").read_text())["verdicts"] if "Parts" in it["label"])
    assert (verdict["value"], verdict["state"]) == ("2", "bad")
    for asked in (folder, out):
        assert f"T{PARTS[1:]}.\n" in run("explain", asked).stdout
    assert f"T{PARTS[1:]}.\n" in run("explain", folder, "--down", "A").stdout
    allowed = ("--no-single-point-of-failure", "--allow", "A--B", "--allow", "C--D")
    checked = run("check", out, "--max-lost-pairs", 8, *allowed)
    assert checked.exit_code == 0
    assert checked.stdout.count("(without 8 pairs that have no path even when nothing fails)") == 2
    agreed = run("converge", folder, "-o", tmp_path / "agreed", "--workers", 1, "--failures", 0)
    assert (agreed.exit_code, agreed.stderr.splitlines()[0]) == (0, f"{folder}: warning: {PARTS}")


def test_details_that_join_the_parts_of_a_mesh_leave_nothing_to_warn_of(tmp_path: Path) -> None:
    file, details = tmp_path / "parted.graphml", tmp_path / "details.yaml"
    file.write_text(PARTED)
    details.write_text("new_links: [{a: B, b: C}]\n")
    assert run("import", file, "--details", details, "-o", tmp_path / "model").stderr == ""


def test_half_a_pair_of_rates_is_warned_of_with_what_is_missing(tmp_path: Path) -> None:
    file, details = tmp_path / "parted.graphml", tmp_path / "details.yaml"
    file.write_text(PARTED)
    details.write_text(
        "new_links: [{a: B, b: C, failures_per_year: 2}]\n"
        "defaults: {router: {repair_hours: 4}}\n"
        "routers: [{id: D, failures_per_year: 1}]\n"
        "groups: [{name: duct, kind: srlg, links: [A--B], failures_per_year: 1, repair_hours: 2}]\n"
    )
    found = run("import", file, "--details", details, "-o", tmp_path / "model")
    told = "it counts as never failing"
    assert found.exit_code == 0
    assert found.stderr == (
        f"{file}: warning: router `A` has `repair_hours` without `failures_per_year`: {told}, and so do 2 more\n"
        f"{file}: warning: link `B--C` has `failures_per_year` without `repair_hours`: {told}\n"
    )


def test_a_file_may_have_any_name(tmp_path: Path, mesh: Path) -> None:
    for source, expected in (
        (ZOO / "Abilene.graphml", "11 routers"),
        (TOPOHUB / "sndlib_polska.json", "12 routers"),
        (mesh, "4 routers"),
    ):
        file = tmp_path / "net"
        file.write_bytes(source.read_bytes())
        assert expected in run("import", file, "-o", tmp_path / "model").stdout


def test_with_an_error_nothing_is_written_and_what_was_there_stays(tmp_path: Path, mesh: Path) -> None:
    out = tmp_path / "model"
    bad = tmp_path / "bad.csv"
    bad.write_text("src,dst,msgs_per_s,msg_bytes\nR1,r4,1,1\n")
    found = run("import", mesh, "--demands", bad, "-o", out)
    assert found.exit_code == 2
    assert found.stderr == (
        f"{bad}:2: error: dst: no router `r4`; expected a router of the model; did you mean `R4`?\n"
    )
    assert not out.exists()
    assert run("import", mesh, "-o", out).exit_code == 0
    assert run("import", mesh, "--demands", bad, "-o", out).exit_code == 2
    assert len(read_model(out).routers) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "mesh.yaml", "model"]


def test_what_is_in_the_way_is_told(tmp_path: Path, mesh: Path) -> None:
    found = run("import", mesh, "-o", tmp_path)
    assert (found.exit_code, found.stderr) == (
        2, f"{tmp_path}: error: it exists and has other contents; expected a new folder, or a model to replace\n",
    )  # fmt: skip
    assert run("import", mesh, "-o", tmp_path / "a" / "b").exit_code == 0, "folders above it are made, as by `run`"
    assert run("import", mesh, "--format", "gml", "-o", "x").exit_code == 2


def test_without_the_extra_it_is_said_what_to_install(mesh: Path) -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from router.cli import main; main(sys.argv[1:])"
    line = [sys.executable, "-c", code, "whatif", "import", str(mesh), "-o", "model"]
    found = subprocess.run(line, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    words = " whatif needs pyarrow, which is not installed: pip install '.[whatif]' in a clone of its repository\n"
    assert found.returncode == 1
    assert found.stderr.startswith("Error: ")
    assert found.stderr.endswith(words)


def test_the_help_names_every_command_and_imports_nothing_large() -> None:
    code = (
        "import sys\nfrom router.cli import main\nmain(['whatif', '--help'], standalone_mode=False)\n"
        f"print(sorted({sorted(whatif.EXTRA_MODULES)!r} & sys.modules.keys() if False else"
        f" set({sorted(whatif.EXTRA_MODULES)!r}) & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.endswith("[]\n")
    for name, command in whatif.COMMANDS.items():
        assert f"  {name} " in found.stdout
        assert command.help.split()[0] in found.stdout


@pytest.mark.parametrize("name", sorted(whatif.COMMANDS))
def test_every_command_of_the_table_is_there(name: str) -> None:
    found = run(name, "--help")
    assert found.exit_code == 0
    assert "Usage:" in found.stdout
    short = whatif.whatif.get_command(None, name)  # type: ignore[arg-type]
    assert short is not None
    assert short.short_help == whatif.COMMANDS[name].help


@pytest.mark.parametrize(
    "text", ["groups: [{name: duct, kind: srlg, links: [R1--R2]}]\n", "routers:\n  - {id: R1, site: east}\n"]
)
def test_details_in_place_of_a_mesh_are_said_to_go_by_another_option(text: str, tmp_path: Path) -> None:
    file = tmp_path / "details.yaml"
    file.write_text(text)
    found = run("import", file, "-o", tmp_path / "model")
    said = "details of a mesh, such as groups and subscribers; expected a mesh or topology; give this file by --details"
    assert (found.exit_code, found.stderr) == (2, f"{file}: error: {said}\n")


def test_a_pipe_is_refused_where_a_file_is_read_twice(tmp_path: Path, mesh: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for words in ((pipe,), (mesh, "--demands", pipe)):
        found = run("import", *words, "-o", tmp_path / "model")
        assert (found.exit_code, found.stderr) == (2, f"{pipe}: error: a pipe or a device; expected a regular file\n")


def test_demands_without_a_heading_or_rows_are_told_in_one_line(tmp_path: Path, mesh: Path) -> None:
    file = tmp_path / "demands.csv"
    file.write_text("R1,R2,5,100\n")
    found = run("import", mesh, "--demands", file, "-o", tmp_path / "model")
    said = "no line with the names of the columns; expected the columns src, msgs_per_s, msg_bytes"
    assert (found.exit_code, found.stderr) == (2, f"{file}:1: error: {said}\n")
    file.write_text("src,dst,msgs_per_s,msg_bytes\n")
    found = run("import", mesh, "--demands", file, "-o", tmp_path / "model")
    assert (found.exit_code, found.stderr) == (0, f"{file}: warning: no demand: the table has no rows\n")
    told = run("credit", tmp_path / "model").stdout
    assert told.startswith("no path: the model has no demands; `amqp-mesh whatif import --demands FILE`")
    told = run("optimise", tmp_path / "model").stderr
    assert "no link of the model has a capacity; `amqp-mesh whatif import --details FILE`" in told


@pytest.mark.parametrize(("word", "meant"), [("sugest", "suggest"), ("optimize", "optimise")])
def test_a_command_that_is_misspelt_is_answered_with_the_nearest(word: str, meant: str) -> None:
    found = run(word)
    assert (found.exit_code, f"Did you mean '{meant}'?" in found.stderr) == (2, True)


def test_a_file_of_no_known_format_is_told_which_there_are(tmp_path: Path) -> None:
    file = tmp_path / "network.txt"
    file.write_text("VERTICES 2\nlabel x y\n")
    found = run("import", file, "-o", tmp_path / "model")
    assert found.exit_code == 2
    assert f"{file}: error: its format is not recognized; expected one of mesh (YAML" in found.stderr
    for name in ("graphml", "topohub", "sndlib", "--format"):
        assert name in found.stderr


def test_the_library_takes_one_file_of_details_and_a_format_by_its_name(tmp_path: Path, mesh: Path) -> None:
    details = tmp_path / "details.yaml"
    details.write_text("groups: [{name: duct, kind: srlg, links: [R1--R2]}]\n")
    for given in (str(details), details, [details]):
        model, _ = import_model(mesh, details=given)
        assert [group.name for group in model.groups] == ["duct"]
    renamed = tmp_path / "abilene.txt"
    renamed.write_bytes((ZOO / "Abilene.graphml").read_bytes())
    assert len(import_model(renamed, form="graphml")[0].routers) == 11
    with pytest.raises(SettingsError, match=r"form: `graphm`; expected one of mesh, .*; did you mean `graphml`\?"):
        import_model(renamed, form="graphm")
