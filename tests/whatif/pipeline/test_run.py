"""Runs: interrupted and resumed, all or nothing, what is shown meanwhile, exit codes."""

from __future__ import annotations

import multiprocessing
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from router.cli import main
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.network_arrays import Network
from router.whatif.kernel.network_codec import encode_network
from router.whatif.model.demands import Demand
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline import local_engine
from router.whatif.pipeline.chunk_evaluator import VariantWork
from router.whatif.pipeline.run import Options, run
from router.whatif.pipeline.run_staging import LocalRunStaging, RunError
from router.whatif.pipeline.table_files import files_of, read_table
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import Chunk, Plan, PlanError
from tests.helpers.terminal import written_to
from tests.whatif.runs import assert_equal, everything, made, nothing_beside

ROOT = Path(__file__).parents[3]
COMMAND = (sys.executable, "-m", "router", "whatif", "run")
HERE = Options(engine="local")
"""A test before may have left a session of Spark, which is taken otherwise."""
REQUEST = Request(families="links:1-2,routers:1,srlg", maintenance=("window",), growth="1:2:0.5")


@pytest.fixture(scope="module")
def model() -> Model:
    return everything(14, 24)


@pytest.fixture(scope="module")
def whole(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    made(model, REQUEST, folder, engine="local", workers=1)
    return folder


class Interrupt:
    """Ends a run when some scenarios have been played."""

    def __init__(self, *, after: int = 300, how: Callable[[], None]) -> None:
        self.after = after
        self.how = how

    def __call__(self, what: str, done: int, total: int) -> None:
        if what == "running scenarios" and self.after < done < total:
            self.how()


def interrupted() -> None:
    raise KeyboardInterrupt


# Resuming


def test_a_run_that_was_interrupted_goes_on_where_it_was(model: Model, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(model, REQUEST, out, HERE, on_progress=Interrupt(how=interrupted))
    assert not out.exists()
    summary = made(model, REQUEST, out, is_resumed=True)
    assert 300 < summary.resumed < summary.scenarios
    assert_equal(whole, out)
    assert nothing_beside(out)


def test_a_run_that_was_killed_goes_on_where_it_was(model: Model, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = (
        "import os, signal, sys\n"
        "from router.whatif.pipeline.run import run\n"
        "from tests.whatif.runs import everything\n"
        "from tests.whatif.pipeline.test_run import Interrupt, REQUEST\n"
        "kill = Interrupt(how=lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
        "run(everything(14, 24), REQUEST, sys.argv[1], on_progress=kill)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert not out.exists()
    # What was being written when it died.
    (tmp_path / ".run.partial" / "0123456789abcdef.tmp").write_bytes(b"half")
    summary = made(model, REQUEST, out, is_resumed=True)
    assert summary.resumed > 300
    assert_equal(whole, out)
    assert nothing_beside(out)
    assert not list(out.glob("*.tmp"))


def test_without_resume_a_run_starts_anew(model: Model, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(model, REQUEST, out, HERE, on_progress=Interrupt(how=interrupted))
    summary = made(model, REQUEST, out)
    assert summary.resumed == 0
    assert_equal(whole, out)


def test_a_run_with_other_input_is_not_resumed(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(model, REQUEST, out, HERE, on_progress=Interrupt(how=interrupted))
    with pytest.raises(RunError, match="differs in pairs, plan, request"):
        made(model, Request(families="links:2"), out, is_resumed=True, pairs="none")
    assert made(model, REQUEST, out, is_resumed=True).resumed, "what was there is still there"


def test_what_a_run_of_an_older_format_left_is_not_resumed(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as older:
        older.setattr("router.whatif.pipeline.run.FORMAT", 1)  # that of 0.2.0, without what is lost while nothing fails
        with pytest.raises(KeyboardInterrupt):
            run(model, REQUEST, out, HERE, on_progress=Interrupt(how=interrupted))
    with pytest.raises(RunError, match="differs in format"):
        made(model, REQUEST, out, is_resumed=True)


def test_nothing_to_resume_is_no_error(model: Model, whole: Path, tmp_path: Path) -> None:
    assert made(model, REQUEST, tmp_path / "run", is_resumed=True).resumed == 0
    assert_equal(whole, tmp_path / "run")


# All or nothing


def test_a_run_is_not_there_until_it_is_complete(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    seen = []

    def look(what: str, done: int, total: int) -> None:
        assert not out.exists()
        seen.append(what)

    def finish(folder: Path) -> None:
        (folder / "report.html").write_text("all is well")

    run(model, REQUEST, out, HERE, on_progress=look, finish=finish)
    assert list(dict.fromkeys(seen)) == ["planning", "running scenarios", "writing tables", "writing answers"]
    assert (out / "report.html").read_text() == "all is well"
    assert nothing_beside(out)


def test_a_run_that_is_there_stays_until_the_new_one_is_complete(model: Model, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    request = Request(families="links:1")

    def fail(folder: Path) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(model, request, out, HERE, finish=fail)
    assert_equal(whole, out)
    summary = made(model, request, out, is_resumed=True)
    assert summary.resumed == summary.scenarios == read_table(out, "scenario").num_rows == 25
    assert nothing_beside(out)


def test_a_run_at_a_link_is_put_where_the_link_leads(model: Model, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    link = tmp_path / "latest"
    link.symlink_to(tmp_path / "large" / "run", target_is_directory=True)
    for _ in range(2):
        made(model, Request(families="links:1"), link)
        assert read_table(link, "scenario").num_rows
        assert link.is_symlink()
        assert nothing_beside(link)
        assert nothing_beside(tmp_path / "large" / "run")


def test_bad_input_leaves_nothing_behind(model: Model, tmp_path: Path) -> None:
    with pytest.raises(PlanError):
        made(model, Request(families="links:2", maintenance=("nothing",)), tmp_path / "run")
    huge = Model(routers=model.routers, demands=[Demand(src="r00", dst="r01", msgs_per_s=1e12, msg_bytes=1e12)])
    with pytest.raises(ValueError, match="variant base: all demands together come to"):
        made(huge, Request(families="routers:1"), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_what_is_no_run_is_not_replaced(model: Model, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with pytest.raises(RunError, match="it exists and has other contents; expected a new folder"):
        made(model, REQUEST, tmp_path)
    with pytest.raises(RunError, match="it exists and is a file"):
        made(model, REQUEST, tmp_path / "precious")
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    (tmp_path / "empty").mkdir()
    assert made(model, Request(), tmp_path / "empty").scenarios == 39


@pytest.mark.parametrize("place", ["/", ".", ".."])
def test_a_folder_without_a_name_is_refused_before_anything_is_played(place: str, model: Model, tmp_path: Path) -> None:
    told: list[str] = []

    def tell(what: str, done: int, total: int) -> None:
        told.append(what)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with pytest.raises(RunError, match="not a named folder; expected a new folder"):
            run(model, REQUEST, place, HERE, on_progress=tell)
    assert told == ["planning"]
    assert not list(tmp_path.iterdir())


def test_a_run_holds_its_lock_until_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = LocalRunStaging(tmp_path / "out")
    stage.open({}, is_resumed=False)
    rename = Path.rename
    refused: list[Path] = []

    def meanwhile(path: Path, target: Path) -> Path:
        with pytest.raises(RunError, match="another run is writing there"):
            LocalRunStaging(tmp_path / "out").open({}, is_resumed=False)
        refused.append(path)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", meanwhile)
    stage.finish()
    assert refused == [stage.path]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not list((tmp_path / "out").iterdir())


def two_runs(folder: Path) -> tuple[LocalRunStaging, LocalRunStaging]:
    """Two runs into one place, of which the first has begun."""
    first, second = (LocalRunStaging(folder / "out") for _ in range(2))
    first.open({}, is_resumed=False)
    return first, second


def test_a_run_that_has_its_name_leaves_the_folder_of_the_next_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_runs(tmp_path)
    (first.path / "run").mkdir()
    unlink = Path.unlink

    def meanwhile(path: Path, missing_ok: bool = False) -> None:
        if path == first.out / "lock":
            second.open({}, is_resumed=False)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", meanwhile)
    first.finish()
    first.close()
    assert sorted(path.name for path in second.path.iterdir()) == ["input.json", "lock"]
    with pytest.raises(RunError, match="another run is writing there"):
        LocalRunStaging(tmp_path / "out").open({}, is_resumed=False)
    second.close()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_that_gives_up_leaves_the_folder_of_the_next_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_runs(tmp_path)
    unlink, begun = os.unlink, []

    def meanwhile(path: str, **rest: Any) -> None:
        unlink(path, **rest)
        if Path(path).name == "lock" and not begun:
            begun.append(path)
            second.open({}, is_resumed=False)

    monkeypatch.setattr(os, "unlink", meanwhile)
    first.close()
    assert sorted(path.name for path in second.path.iterdir()) == ["input.json", "lock"]
    second.close()
    assert not list(tmp_path.iterdir())


def two_that_replace(folder: Path) -> tuple[LocalRunStaging, LocalRunStaging]:
    """Two runs into the place of a whole one, of which the first has begun, and has made something."""
    (folder / "out" / "run").mkdir(parents=True)
    first, second = two_runs(folder)
    (first.path / "run" / "new").mkdir(parents=True)
    return first, second


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_run_interrupted_while_the_old_one_is_removed_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_followed: bool
) -> None:
    first, second = two_that_replace(tmp_path)
    remove = shutil.rmtree

    def meanwhile(path: Path, ignore_errors: bool = False) -> None:
        if path.suffix != ".old":
            remove(path, ignore_errors=ignore_errors)
            return
        monkeypatch.undo()
        if is_followed:
            second.open({}, is_resumed=False)
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        first.finish()
    first.close()
    assert [path.name for path in first.out.iterdir()] == ["run"]
    if is_followed:
        assert sorted(path.name for path in second.path.iterdir()) == ["input.json", "lock"]
        second.close()
    assert not first.path.exists()


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_run_interrupted_when_it_has_just_got_its_name_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_followed: bool
) -> None:
    first, second = two_that_replace(tmp_path)
    rename = Path.rename

    def meanwhile(path: Path, target: Path) -> None:
        rename(path, target)
        if path == first.path:
            monkeypatch.undo()
            if is_followed:
                second.open({}, is_resumed=False)
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        first.finish()
    first.close()
    assert (first.out / "run" / "new").is_dir()
    assert second.path.exists() == is_followed
    second.close()
    assert not first.path.exists()


def test_a_run_is_whole_though_the_next_one_has_replaced_it_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_runs(tmp_path)
    (first.path / "run").mkdir()
    rename = Path.rename

    def meanwhile(path: Path, target: Path) -> None:
        monkeypatch.undo()
        rename(path, target)
        second.open({}, is_resumed=False)
        (second.path / "run").mkdir()
        second.finish()

    monkeypatch.setattr(Path, "rename", meanwhile)
    first.finish()
    first.close()
    second.close()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in first.out.iterdir()] == ["run"]


def test_two_runs_do_not_write_into_one_folder(model: Model, tmp_path: Path) -> None:
    out = tmp_path / "run"
    refused: list[str] = []

    def another(what: str, done: int, total: int) -> None:
        if what == "running scenarios" and not refused:
            with pytest.raises(RunError, match="another run is writing there"):
                made(model, REQUEST, out)
            refused.append(what)

    run(model, REQUEST, out, HERE, on_progress=another)
    assert refused
    assert nothing_beside(out)


# Processes


@pytest.fixture(scope="module")
def work(model: Model) -> tuple[dict[int, VariantWork], tuple[Chunk, ...], Plan]:
    variants = REQUEST.variants(model)
    plan = REQUEST.plan(variants)
    works = {
        place: VariantWork(
            key=name,
            network=encode_network(Network.of(each)),
            plan=plan.of_variant(place),
            pairs="changed",
            routing="mesh",
        )
        for place, (name, each) in enumerate(variants)
    }
    return works, tuple(plan.chunks()), plan


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.parquet"))
        if "worst" not in str(path)  # which lists less when one process has played more
    }


def test_several_processes_write_what_one_writes(
    work: tuple[dict[int, VariantWork], tuple[Chunk, ...], Plan], tmp_path: Path
) -> None:
    works, chunks, _ = work
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    done: list[Chunk] = []
    local_engine.run(works, chunks, one, workers=1, on_done=done.append)
    assert done == list(chunks)
    done.clear()
    killed: list[int] = []

    def on_done(chunk: Chunk) -> None:
        done.append(chunk)
        children = multiprocessing.active_children()
        if children and not killed:
            killed.append(children[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    local_engine.run(works, chunks, two, workers=2, trial_s=0, pool_pays_s=0, on_done=on_done)
    assert killed, "one of them was killed while it worked"
    assert sorted(done, key=lambda chunk: chunk.number) == list(chunks)
    assert contents(one) == contents(two)
    assert not multiprocessing.active_children()


# Commands


def invoke(*args: object) -> Result:
    return CliRunner().invoke(main, ["whatif", "run", *map(str, args)])


@pytest.fixture(scope="module")
def model_folder(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    write_model(model, folder)
    return folder


def test_the_command_writes_a_run(model_folder: Path, whole: Path, tmp_path: Path) -> None:
    options = ("--fail", "links:1-2,routers:1", "--fail", "srlg", "--maintenance", "window", "--growth", "1:2:0.5")
    result = invoke(model_folder, "-o", tmp_path / "run", *options, "--no-report", "--engine", "local")
    assert result.exit_code == 0, result.output
    assert_equal(whole, tmp_path / "run")
    assert "running scenarios: 0 of " in result.stderr
    assert "scenarios in" in result.stdout
    assert not list((tmp_path / "run").glob("*.*")), "no report, no summary"
    for words in (
        ["explain", "--router", "r00"],
        ["explain", "--scenario", "1"],
        ["check", "--max-util", "9", "--no-single-point-of-failure", "--enough-credit"],
        ["credit"],
        ["diff", str(tmp_path / "run")],
        ["suggest"],
        ["report"],
    ):
        asked = CliRunner().invoke(main, ["whatif", words[0], str(tmp_path / "run"), *words[1:]])
        assert asked.exit_code in (0, 1), (words, asked.output)
        assert isinstance(asked.exception, SystemExit | None), (words, asked.exception)


def test_ecmp_loads_links_in_another_way(model_folder: Path, tmp_path: Path) -> None:
    for routing in ("mesh", "ecmp"):
        result = invoke(
            model_folder, "-o", tmp_path / routing, "--routing", routing, "--no-report", "--engine", "local"
        )
        assert result.exit_code == 0, result.output
    one, other = (read_table(tmp_path / routing, "link_load", ["msgs_per_s"]) for routing in ("mesh", "ecmp"))
    assert one != other


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--fail", "lnks:1"], "Error: --fail: `lnks:1`"),
        (["--maintenance", "widow"], "did you mean `window`"),
        (["--cost", "r00--r99=1"], "no link"),
        (["--growth", "x"], "--growth"),
        (["--sample", "0"], "--sample"),
        (["--master", "local[2]", "--remote", "sc://x"], "only one of them"),
        (["--engine", "local", "--master", "local[2]"], "works without Spark"),
        (["--spark-conf", "memory=2g"], "expected KEY=VALUE"),
        (["--engine", "spork"], "spork"),
    ],
)
def test_bad_options_exit_with_2(model_folder: Path, tmp_path: Path, options: list[str], words: str) -> None:
    result = invoke(model_folder, "-o", tmp_path / "run", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_model_exits_with_2(tmp_path: Path) -> None:
    result = invoke(tmp_path / "nothing", "-o", tmp_path / "run")
    assert result.exit_code == 2
    assert "no such folder" in result.stderr


def test_a_small_run_imports_nothing_large(model_folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from router.cli import main\n"
        "main(['whatif', 'run', *sys.argv[1:], '--no-report'], standalone_mode=False)\n"
        "assert not {'matplotlib', 'pyspark'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code, model_folder, "-o", tmp_path / "run"], cwd=ROOT, check=True)


def test_an_interrupt_exits_with_130_and_resume_goes_on(tmp_path: Path) -> None:
    write_model(everything(60, 260), tmp_path / "model")  # so much that it is still at it when the signal comes
    command = [*COMMAND, str(tmp_path / "model"), "-o", str(tmp_path / "run")]
    options = ["--fail", "links:2", "--no-report"]
    with subprocess.Popen([*command, *options], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "running scenarios" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "continue with the same command and --resume" in rest
    assert "Traceback" not in rest
    assert not (tmp_path / "run").exists()
    subprocess.run([*command, *options, "--resume"], cwd=ROOT, check=True, capture_output=True)
    assert read_table(tmp_path / "run", "scenario", ["scenario"]).num_rows == 1 + 260 * 259 // 2
    assert len(files_of(tmp_path / "run", "scenario")) > 8


def test_a_run_of_which_nothing_was_left_to_play_has_no_rate(tmp_path: Path) -> None:
    write_model(everything(), tmp_path / "model")
    asked = ["whatif", "run", str(tmp_path / "model"), "--engine", "local", "--fail", "links:1", "--no-report"]
    with patch("router.whatif.analysis.derived_tables.write_answers", side_effect=KeyboardInterrupt):
        assert CliRunner().invoke(main, [*asked, "-o", str(tmp_path / "run")]).exit_code == 130
    found = CliRunner().invoke(main, [*asked, "-o", str(tmp_path / "run"), "--resume"])
    assert re.search(r"run: 21 scenarios in [0-9.]+ s by local, 21 of them before\n", found.output)


def test_a_terminal_gets_a_bar(model_folder: Path, tmp_path: Path) -> None:
    parent, child = pty.openpty()
    command = [*COMMAND, str(model_folder), "-o", str(tmp_path / "run"), "--no-report"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, cwd=ROOT, stderr=child, stdout=subprocess.DEVNULL, env=environment)
    os.close(child)
    shown = written_to(parent)
    os.close(parent)
    assert process.wait() == 0
    assert "━" in shown.decode(errors="replace")
    assert b"/39" in shown


def test_a_run_of_several_variants_says_of_which_it_speaks(tmp_path: Path) -> None:
    write_model(everything(), tmp_path / "model")
    asked = ["whatif", "run", str(tmp_path / "model"), "--engine", "local"]
    words = "The lines below are about the unchanged mesh; the table family_summary has each variant.\n"
    found = CliRunner().invoke(main, [*asked, "-o", str(tmp_path / "one"), "--fail", "links:1"])
    assert found.exit_code == 0
    assert words not in found.output
    found = CliRunner().invoke(main, [*asked, "-o", str(tmp_path / "two"), "--fail", "links:1", "--growth", "2"])
    assert found.exit_code == 0
    assert words in found.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fail", ""), "--fail: no family is named; expected such as links:1"),
        (("--growth", ""), "--growth: empty value; expected FROM:TO:STEP"),
    ],
)
def test_an_empty_value_is_not_taken_for_the_default(
    model_folder: Path, tmp_path: Path, options: tuple[str, str], words: str
) -> None:
    result = invoke(model_folder, "-o", tmp_path / "run", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"engine": "foo"}, "engine: `foo`; expected one of auto, local, spark"),
        ({"engine": "lokal"}, "did you mean `local`"),
        ({"pairs": "foo"}, "pairs: `foo`; expected one of lost, changed, none"),
        ({"loads": None}, "loads: `None`; expected one of none, changed, all"),
        ({"routing": "ECMP"}, "did you mean `ecmp`"),
        (
            {"master": "foo"},
            "master: `foo` is no master of Spark; expected local[N], spark://HOST:PORT, yarn or k8s://",
        ),
        ({"workers": 0}, "workers: 0; expected 1 or more"),
        ({"master": "local", "remote": "sc://host"}, "master: remote is given too; expected only one of them"),
        (
            {"engine": "local", "remote": "sc://host"},
            "remote: engine local, which works without Spark, is given too; expected only one of them",
        ),
    ],
)
def test_options_that_cannot_be_are_refused_as_the_command_does(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=re.escape(words)):
        Options(**fields)
