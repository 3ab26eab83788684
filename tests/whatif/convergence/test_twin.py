"""The twin: planes agree after whatever fails, what is told of it is so, and it does not matter where it was run."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from click.testing import CliRunner

from mesh_config.models import LinkStateSettings
from router.cli import main
from router.core.ids_and_conditions import RouterId
from router.simulation.mesh import Mesh
from router.simulation.network import NetworkConditions
from router.whatif.convergence import twin_runs
from router.whatif.convergence.simulation_parameters import CPU_COSTS, LOOPBACK, SimulationParameters
from router.whatif.convergence.twin import CAN_FAIL, EventKind, Row, Twin, TwinCase, TwinTopology, run_case
from router.whatif.convergence.twin_runs import TwinGridError
from router.whatif.formats.model_folder import write_model
from router.whatif.model.elements import LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run_staging import RunError, lock_folder
from router.whatif.pipeline.spark_masters import SparkAddress
from router.whatif.pipeline.table_files import are_equal, from_rows, read_table
from tests.whatif.models import edges

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTANT = SimulationParameters(cpu_costs=None)
TEN = TwinTopology(name="chords", routers=10)
SQUARE = TwinTopology(
    name="square",
    ids=tuple("ABCD"),
    links=(("A", "B", 1, 0.001), ("B", "C", 1, 0.001), ("C", "D", 1, 0.02), ("A", "D", 1, None)),
    routers=4,
)


def small(**changes: Any) -> TwinCase:
    """A case that takes no time."""
    return attrs.evolve(TwinCase(ground=TEN, seed=1, failures=4, conditions=INSTANT), **changes)


@pytest.mark.slow
def test_a_hundred_planes_agree_from_a_cold_start_and_after_each_of_twenty_failures() -> None:
    rows = run_case(TwinCase(ground=TwinTopology(name="chords", routers=100), seed=3, failures=20, is_repaired=False))
    assert [row["kind"] for row in rows[:6]] == ["start", "link", "router", "link", "router", "silent-router"]
    assert len(rows) == 21
    assert [row["wrong"] for row in rows] == [0] * 21
    for row in rows[1:]:
        longest_s = 4.0 if row["kind"] == "silent-router" else 0.3
        assert isinstance(row["converge_s"], float)
        assert 0.005 < row["converge_s"] < longest_s
        assert isinstance(row["known_s"], float)
        assert row["known_s"] <= row["converge_s"]


@pytest.mark.parametrize("kind", CAN_FAIL)
def test_each_kind_of_failure_takes_as_long_as_somebody_needs_to_notice(kind: EventKind) -> None:
    rows = run_case(small(kinds=(kind,), failures=3))
    assert [row["kind"] for row in rows] == ["start", *(3 * [kind.value, "repair"])]
    quick, slow = (0.0, 0.1), (1.9, 3.5)  # nobody tells: HELLOs are missed for three seconds
    low, high = slow if kind in (EventKind.SILENT_LINK, EventKind.SILENT_ROUTER) else quick
    for row in rows[1::2]:
        assert isinstance(row["converge_s"], float)
        assert low < row["converge_s"] < high
    assert {row["wrong"] for row in rows} == {0}


def test_what_has_failed_is_back_before_the_next_failure() -> None:
    twin = Twin(small(kinds=CAN_FAIL, failures=4))
    whole = twin.mesh.graph()
    for row in twin.rows():
        is_whole = row["kind"] in ("start", "repair")
        assert (set(twin.mesh.graph().edges) == set(whole.edges)) is is_whole


def test_failures_add_up_until_nothing_is_left() -> None:
    rows = run_case(small(ground=SQUARE, kinds=(EventKind.ROUTER,), failures=20, is_repaired=False))
    assert len(rows) == 4  # the last router of four is not killed
    assert len({row["what"] for row in rows}) == 4


def test_a_kind_of_which_nothing_is_left_ends_neither_the_others_nor_the_calm() -> None:
    line = TwinTopology(name="line", ids=("A", "B", "C"), links=(("A", "B", 1, None), ("B", "C", 1, None)), routers=3)
    kinds = (EventKind.LINK, EventKind.LINK, EventKind.LINK, EventKind.ROUTER)
    rows = run_case(small(ground=line, kinds=kinds, failures=4, is_repaired=False, calm_s=1.0))
    assert [row["kind"] for row in rows] == ["start", "link", "link", "router", "calm"]


def test_messages_and_computations_are_those_of_the_planes() -> None:
    twin = Twin(small(failures=1, kinds=(EventKind.LINK,), is_repaired=False))
    start, cut = twin.rows()
    planes = [router.plane for router in twin.mesh.living()]
    sent = sum(
        plane.counters().get(f"control_sent_{opcode}", 0) for plane in planes for opcode in ("LSU", "LSR", "MAU")
    )
    assert start["messages"] + cut["messages"] == sent  # type: ignore[operator]
    assert start["spf_runs"] + cut["spf_runs"] == sum(plane.spf_runs for plane in planes)  # type: ignore[operator]
    # Two floods over all links but the one that broke, each link once or twice; each message of some hundred bytes.
    links = len(twin.mesh.wires) - 1
    assert isinstance(cut["messages"], int)
    assert isinstance(cut["bytes"], int)
    assert 2 * links <= cut["messages"] <= 4 * links
    assert 200 < cut["bytes"] / cut["messages"] < 600
    # A link that one end has given up is gone; what the other end tells changes no graph, and is computed all the same.
    assert isinstance(cut["spf_runs"], int)
    assert 10 == cut["dijkstra_runs"] <= cut["spf_runs"]


def test_in_calm_times_there_are_hellos_and_refreshes() -> None:
    *_, calm = run_case(small(failures=0, calm_s=60.0))
    assert calm["kind"] == "calm"
    assert calm["converge_s"] is None
    degrees = 2 * int(str(calm["links"]))
    assert isinstance(calm["messages"], int)
    assert 60 * degrees <= calm["messages"] <= 60 / 0.9 * degrees + 5 * 10 * degrees


def test_slow_machines_need_longer_and_shared_cores_longer_still() -> None:
    def took(conditions: SimulationParameters) -> float:
        row = run_case(small(ground=TwinTopology(name="chords", routers=20), conditions=conditions, failures=2))[3]
        assert (row["kind"], row["wrong"]) == ("router", 0)
        assert isinstance(row["converge_s"], float)
        return row["converge_s"]

    slow = attrs.evolve(CPU_COSTS, turn_s=0.002)
    assert took(INSTANT) < took(SimulationParameters()) < took(SimulationParameters(cpu_costs=slow))
    assert took(SimulationParameters()) < took(SimulationParameters(cpu_costs=attrs.evolve(CPU_COSTS, cores=1)))


def test_a_mesh_on_one_machine_agrees_in_tens_of_milliseconds() -> None:
    # As real processes do: docs/explanation/measurements.md.
    rows = run_case(
        TwinCase(ground=TwinTopology(name="geometric", routers=20), seed=1, conditions=LOOPBACK, failures=4)
    )
    for row in rows:
        if row["kind"] == "router":
            assert isinstance(row["converge_s"], float)
            assert 0.010 < row["converge_s"] < 0.080


def test_links_have_the_delays_of_the_model() -> None:
    far = run_case(small(ground=SQUARE, failures=0))[0]["converge_s"]
    near = run_case(
        small(ground=attrs.evolve(SQUARE, links=tuple((a, b, c, 0.001) for a, b, c, _ in SQUARE.links)), failures=0)
    )
    assert isinstance(far, float)
    assert isinstance(near[0]["converge_s"], float)
    assert far > near[0]["converge_s"] + 0.05  # a handshake and HELLOs, 20 ms each way


def test_parallel_links_stand_by() -> None:
    links = (("A", "B", 1, None), ("A", "B", 1, None), ("B", "C", 1, None))
    ground = TwinTopology(name="pair", routers=3, ids=("A", "B", "C"), links=links)
    rows = run_case(small(ground=ground, failures=6, kinds=(EventKind.LINK,)))
    assert {row["wrong"] for row in rows} == {0}
    assert rows[0]["links"] == 3


def test_routers_without_links_are_part_of_the_mesh() -> None:
    # D has nothing to learn, and A, B, C can't learn of it: all agree on what can be reached.
    model = Model(routers=[RouterNode(id=name) for name in "ABCD"], links=edges("AB", "BC"))
    ground = TwinTopology.of_model(model)
    twin = Twin(small(ground=ground, kinds=(EventKind.ROUTER,), failures=20, is_repaired=False))
    rows = list(twin.rows())
    assert sorted(twin.mesh.routers) == ["A", "B", "C", "D"]
    assert [(row["kind"], row["routers"], row["links"], row["wrong"]) for row in rows] == [
        ("start", 4, 2, 0), ("router", 4, 2, 0), ("router", 4, 2, 0), ("router", 4, 2, 0),
    ]  # fmt: skip
    assert "D" in {row["what"] for row in rows}


def test_parts_of_a_mesh_agree_each_for_itself() -> None:
    model = Model(routers=[RouterNode(id=name) for name in "ABCDE"], links=edges("AB", "CD", "DE"))
    rows = run_case(small(ground=TwinTopology.of_model(model), failures=4))
    assert {row["wrong"] for row in rows} == {0}
    assert len(rows) == 9


def test_a_model_is_no_shape_whatever_its_name_is() -> None:
    # A router alone knows all that it can.
    ground = TwinTopology.of_model(Model(name="ring", routers=[RouterNode(id="A"), RouterNode(id="B")]))
    (start,) = run_case(small(ground=ground, failures=0))
    assert (start["links"], start["converge_s"], start["wrong"]) == (0, 0.0, 0)


def test_a_mesh_that_never_agrees_is_said_to_be_wrong() -> None:
    deaf = SimulationParameters(cpu_costs=None, network=NetworkConditions(loss=1.0))
    (row,) = run_case(small(conditions=deaf, failures=0))
    assert row["converge_s"] is None
    assert row["known_s"] is None
    assert isinstance(row["wrong"], int)
    assert row["wrong"] > 0


def test_a_machine_that_vanished_and_is_back_is_a_neighbor_again() -> None:
    mesh = Mesh.of_edges([("A", "B", 1), ("B", "C", 1)], seed=1)
    mesh.run_for(2.0)
    mesh.vanish("B")
    mesh.run_for(0.5)
    # Nobody has noticed; then the machine is back, and its new process knows nothing of the old connections.
    assert RouterId("B") in mesh.routers[RouterId("A")].forwarding.routes
    mesh.restart("B")
    mesh.run_for(4.0)
    assert mesh.routers[RouterId("A")].forwarding.routes[RouterId("C")].cost == 2
    mesh.check_invariants()


# Grids


def test_a_grid_has_a_case_for_each_choice_once() -> None:
    settings = [LinkStateSettings(), LinkStateSettings(hello_interval_s=0.5), LinkStateSettings()]
    cases = twin_runs.grid(twin_runs.shapes(["ring", "line:3"], [4, 5]), settings, [1, 2], TwinCase)
    assert len(cases) == 3 * 2 * 2
    assert {(case.ground.name, case.ground.routers) for case in cases} == {("ring", 4), ("ring", 5), ("line", 3)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: twin_runs.shapes(["geometrical"], [3]), "there is no shape `geometrical`.*did you mean `geometric`"),
        (lambda: twin_runs.shapes(["ring"], []), "`ring` has no number of routers.*ring:N, or --sizes"),
        (lambda: twin_runs.shapes(["ring:many"], []), "`ring:many` has no number of routers"),
        (lambda: twin_runs.shapes(["fat-tree:6"], []), "fat-tree:6: no fat tree has 6 routers; the nearest has 5"),
        (lambda: twin_runs.timers("hello_intervals=1"), "no timer `hello_intervals`.*did you mean `hello_interval_s`"),
        (lambda: twin_runs.timers("hello_interval_s=soon"), "`hello_interval_s=soon` has no number"),
        (lambda: twin_runs.timers("hello_interval_s"), "expected hello_interval_s=SECONDS"),
        (lambda: twin_runs.timers("hello_interval_s=0"), "hello_interval_s: 0.0 is out of range.*did you mean `0.01`"),
        (lambda: twin_runs.timers("hello_max_age_s=0.5"), "neighbors are lost between two HELLOs.*more than"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TwinGridError, match=message):
        make()


def test_processes_and_this_process_make_the_same_table(tmp_path: Path) -> None:
    cases = twin_runs.grid([TEN, SQUARE], [LinkStateSettings()], [1, 2], lambda **own: small(failures=2, **own))
    shown: list[tuple[str, int, int]] = []
    here = twin_runs.run(cases, tmp_path / "here", workers=1, on_progress=lambda *progress: shown.append(progress))
    there = twin_runs.run(cases, tmp_path / "there", workers=2)
    assert are_equal(here, there, "convergence")
    assert are_equal(here, read_table(tmp_path / "there", "convergence"), "convergence")
    assert [done for _, done, _ in shown] == [0, 1, 2, 3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "there"]


def test_spark_makes_the_same_table(tmp_path: Path, spark: SparkSession) -> None:
    cases = twin_runs.grid([TEN, SQUARE], [LinkStateSettings()], [1, 2], lambda **own: small(failures=2, **own))
    here = twin_runs.run(cases, tmp_path / "here", workers=1)
    there = twin_runs.run(cases, tmp_path / "there", spark=SparkAddress())
    assert are_equal(here, there, "convergence")


def test_a_process_that_is_killed_costs_nothing_but_time(tmp_path: Path) -> None:
    cases = [small(seed=seed) for seed in range(6)]
    killed: list[int] = []

    def on_progress(_what: str, done: int, _total: int) -> None:
        children = multiprocessing.active_children()
        if done and children and not killed:
            killed.append(children[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    table = twin_runs.run(cases, tmp_path / "out", workers=2, on_progress=on_progress)
    assert killed, "one of them was killed while it worked"
    assert are_equal(table, twin_runs.run(cases, tmp_path / "here", workers=1), "convergence")


def test_an_interrupted_grid_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = twin_runs.grid([TEN], [LinkStateSettings()], [1, 2, 3], lambda **own: small(failures=1, **own))
    played: list[int] = []

    def interrupted(case: TwinCase) -> list[Row]:
        if len(played) == 2:
            raise KeyboardInterrupt
        played.append(case.seed)
        return run_case(case)

    out = tmp_path / "out"
    monkeypatch.setattr(twin_runs, "run_case", interrupted)
    with pytest.raises(KeyboardInterrupt):
        twin_runs.run(cases, out, workers=1)
    assert not out.exists()
    played.clear()
    table = twin_runs.run(cases, out, workers=1, is_resumed=True)
    assert played == [3]
    monkeypatch.undo()
    assert are_equal(table, twin_runs.run(cases, tmp_path / "whole", workers=1), "convergence")


def test_a_table_replaces_the_one_before_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "out"
    twin_runs.run([small()], out, workers=1)
    (out / "run").mkdir()
    assert twin_runs.run([small(seed=2)], out, workers=1).column("seed").to_pylist() == [2] * 9
    assert sorted(path.name for path in out.iterdir()) == ["convergence", "run"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "letters.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(TwinGridError, match="something else is in"):
        twin_runs.run([small()], other, workers=1)


def test_what_another_version_has_left_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(twin_runs, "_put", ended)
        patched.setattr(twin_runs, "__version__", "0.0.1", raising=False)
        with pytest.raises(KeyboardInterrupt):
            twin_runs.run([small()], out, workers=1)
    with pytest.raises(RunError, match="the interrupted run differs in version; expected the same model"):
        twin_runs.run([small()], out, workers=1, is_resumed=True)
    assert twin_runs.run([small()], out, workers=1).num_rows == 9


def test_a_grid_that_ends_leaves_the_folder_of_the_next_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, begun = shutil.rmtree, []

    def meanwhile(path: str | Path, **rest: Any) -> None:
        lock = Path(path) / "lock"
        if lock.exists():
            lock.unlink()  # the first of what is in the folder
            begun.append(lock_folder(tmp_path / ".out.twins", tmp_path / "out"))
        remove(path, **rest)

    monkeypatch.setattr(shutil, "rmtree", meanwhile)
    twin_runs.run([small()], tmp_path / "out", workers=1)
    assert [path.name for path in (tmp_path / ".out.twins").iterdir()] == ["lock"]
    begun[0].close()


def test_a_second_grid_at_the_same_place_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused: list[str] = []

    def meanwhile(_what: str, done: int, _total: int) -> None:
        if done == 1:
            with pytest.raises(RunError, match="another run is writing there") as caught:
                twin_runs.run([small(seed=9)], out, workers=1)
            refused.append(str(caught.value))

    cases = [small(seed=1), small(seed=2)]
    assert twin_runs.run(cases, out, workers=1, on_progress=meanwhile).num_rows == 18
    assert len(refused) == 1


def test_the_median_of_two_events_lies_between_them(tmp_path: Path) -> None:
    table = twin_runs.run([small(failures=2)], tmp_path / "out", workers=1)
    kind = table.column("kind").to_pylist()[0]
    rows = [
        row | {"kind": kind, "converge_s": second} for row, second in zip(table.to_pylist(), (1.0, 3.0), strict=False)
    ]
    (found,) = twin_runs.summary(from_rows("convergence", rows))
    assert (found["median_s"], found["most_s"]) == (2.0, 3.0)


# The command


def converge(*arguments: str | Path) -> Any:
    return CliRunner().invoke(main, ["whatif", "converge", *map(str, arguments)])


def test_the_command_shows_and_writes_what_twins_say(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = converge(
        "--generate", "ring", "--sizes", "4,6", "--timers", "", "--timers", "hello_interval_s=0.3,hello_max_age_s=0.9",
        "--failures", "2", "--kinds", "router,silent-link", "--workers", "1", "--calm", "5", "-o", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert sum("silent-link" in line for line in lines) == 4
    assert any(line[:2] == ["ring", "6"] and "hello_interval_s=0.3," in line for line in lines)
    table = read_table(out, "convergence")
    assert table.num_rows == 4 * (1 + 4 + 1)
    assert set(table.column("wrong").to_pylist()) == {0}
    rows = [row for row in table.to_pylist() if row["kind"] == "silent-link"]
    # With HELLOs three times as often a silent link is found in a third of the time.
    assert all((row["converge_s"] < 1.1) is (row["hello_interval_s"] == 0.3) for row in rows)


def test_the_command_takes_a_model(tmp_path: Path) -> None:
    model = Model(
        name="three",
        routers=[RouterNode(id=name) for name in "ABC"],
        links=[LinkEdge(id=f"{a}--{b}", a=a, b=b, delay_ms=3.0) for a, b in ("AB", "BC")],
    )
    write_model(model, tmp_path / "model")
    result = converge(tmp_path / "model", "--failures", "1", "--instant", "--accumulate", "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    rows = read_table(tmp_path / "out", "convergence").to_pylist()
    assert [(row["mesh"], row["routers"], row["kind"]) for row in rows] == [("three", 3, "start"), ("three", 3, "link")]
    assert rows[0]["converge_s"] > 0.012


def test_the_command_refuses_a_model_without_links(tmp_path: Path) -> None:
    write_model(Model(name="apart", routers=[RouterNode(id=name) for name in "AB"]), tmp_path / "model")
    result = converge(tmp_path / "model", "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert "the model `apart` has no links" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either MODEL or --generate"),
        (("--generate", "rings:4"), "did you mean `ring`"),
        (("--generate", "ring", "--sizes", "4,x"), "expected numbers of routers"),
        (("--generate", "ring:4", "--kinds", "links"), "`links` is none of link, router, silent-link, silent-router"),
        (("--generate", "ring:4", "--timers", "spf_hold_down=1"), "did you mean `spf_hold_down_s`"),
        (("--generate", "ring:4", "--instant", "--cores", "2"), "contradict each other"),
        (("--generate", "ring:4", "--engine", "local", "--master", "local[2]"), "works without Spark"),
        (("missing",), "missing"),
    ],
)
def test_the_command_refuses_what_cannot_be(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = converge(*arguments, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "out").exists()
