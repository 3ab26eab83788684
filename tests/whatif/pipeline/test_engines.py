"""Every engine makes the same tables, bit for bit."""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession, functions

from router.cli import main
from router.whatif.analysis.derived_tables import write_answers
from router.whatif.formats.model_folder import write_model
from router.whatif.model.elements import LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline import spark_engine
from router.whatif.pipeline.chunk_evaluator import VariantWork, evaluator_of
from router.whatif.pipeline.run import SPARK_VARIABLES, Options, RunSummary, estimated_s, run
from router.whatif.pipeline.run_storage import LocalStorage
from router.whatif.pipeline.spark_failures import TaskError
from router.whatif.pipeline.spark_masters import SparkAddress
from router.whatif.pipeline.spark_parallel_map import map_tasks
from router.whatif.pipeline.spark_ranges import by_range
from router.whatif.pipeline.spark_session import pages
from router.whatif.pipeline.spark_tables import exact_sum
from router.whatif.pipeline.table_files import files_of, partition_of, read_table
from router.whatif.pipeline.table_layouts import layout_of
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import Chunk
from tests.whatif.runs import TABLES, assert_equal, everything, held_down, losing, made, nothing_beside, relieved

REQUEST = Request(
    families="links:1,routers:2,srlg,sites,links:1+routers:1,links:3",
    maintenance=("window",),
    links=("r00,r05,2",),
    sample=400,
    seed=5,
)

GROWING = Request(families="links:1,routers:1,srlg", growth="1:3:0.4")
"""Of six variants, of which each is a unit of work or more."""


@pytest.fixture(scope="module")
def model() -> Model:
    return everything(16, 30)


@attrs.frozen
class Made:
    """A run of Spark's, and what was told of it."""

    folder: Path
    summary: RunSummary
    steps: list[tuple[str, int, int]]


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, model: Model, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("whole") / "run"
    steps: list[tuple[str, int, int]] = []
    options = Options(pairs="changed", loads="all")  # `auto` is Spark where there is a session
    summary = run(model, REQUEST, folder, options, on_progress=lambda *step: steps.append(step))
    return Made(folder, summary, steps)


@pytest.fixture
def whole(by_spark: Made) -> Path:
    """The folder of that, which is only read."""
    return by_spark.folder


@pytest.fixture(scope="module")
def local(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    made(model, REQUEST, folder, engine="local", workers=1, pairs="changed", loads="all")
    return folder


def test_spark_makes_the_tables_of_this_process(by_spark: Made, local: Path) -> None:
    assert by_spark.summary.engine == "spark local[2,2]"
    assert_equal(local, by_spark.folder)
    assert [done for what, done, _ in by_spark.steps if what == "running scenarios"][-1] == by_spark.summary.scenarios
    assert nothing_beside(by_spark.folder)
    assert sorted(path.name for path in by_spark.folder.iterdir()) == sorted([*TABLES, "scenario_load"])


def test_spark_writes_a_folder_for_each_variant_and_family(spark: SparkSession, whole: Path, local: Path) -> None:
    """Spark's readers find these columns again, also in tables that don't have them else."""
    scenario = read_table(local, "scenario")
    wanted = set(zip(*(scenario.column(name).to_pylist() for name in ("variant", "family")), strict=True))
    folders = {tuple(partition_of(file, whole / "scenario").values()) for file in files_of(whole, "scenario")}
    assert folders == wanted
    for name in ("scenario", "pair_impact", "scenario_load", "address_impact"):
        frame = spark.read.parquet(str(whole / name))
        assert set(frame.columns) == {*layout_of(name).names, "variant", "family"}
        assert frame.count() == read_table(local, name).num_rows
        assert (whole / name / "_SUCCESS").exists()
    field = spark.read.parquet(str(whole / "scenario")).schema["delay_p99_ms"]
    assert field.metadata["unit"] == "ms"


class Interrupt:
    """Ends a run when more than so many scenarios have been played, or when tables are made."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.played: list[int] = []

    def __call__(self, what: str, done: int, total: int) -> None:
        if what == "running scenarios":
            self.played.append(done)
        if (what == "running scenarios" and done > self.after) or what == "writing tables":
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def uninterrupted(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    made(model, GROWING, folder, engine="local", workers=1, loads="changed")
    return folder


@pytest.mark.parametrize(
    ("first", "second"), [pytest.param("local", "spark", marks=pytest.mark.slow), ("spark", "local")]
)
def test_a_run_that_one_engine_began_another_one_can_end(
    first: str, second: str, spark: SparkSession, model: Model, uninterrupted: Path, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(model, GROWING, tmp_path / "run", Options(engine=first, loads="changed"), on_progress=Interrupt(60))
    summary = made(model, GROWING, tmp_path / "run", engine=second, is_resumed=True, loads="changed")
    assert 60 < summary.resumed < summary.scenarios
    assert_equal(uninterrupted, tmp_path / "run")
    assert nothing_beside(tmp_path / "run")


def test_the_local_engine_ends_a_run_of_which_spark_has_made_the_tables(
    spark: SparkSession, model: Model, tmp_path: Path
) -> None:
    """All tables are of one engine afterwards, those of links too, and of what a task left unfinished nothing."""

    def interrupted(folder: Path) -> None:
        begun = folder / "scenario" / "_temporary" / "0" / "part-00000.snappy.parquet"
        begun.parent.mkdir(parents=True)
        begun.write_bytes(b"PAR1")
        (folder / "scenario" / "_SUCCESS").unlink()
        raise KeyboardInterrupt

    request, out = Request(families="links:1"), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run(model, request, out, Options(engine="spark"), finish=interrupted)
    assert files_of(tmp_path / ".run.partial", "link_load"), "Spark's are there"
    made(model, request, out, is_resumed=True)
    made(model, request, tmp_path / "local")
    assert_equal(tmp_path / "local", out)
    assert not list(out.rglob("_temporary"))


@pytest.mark.slow
def test_spark_goes_on_where_it_was(spark: SparkSession, model: Model, uninterrupted: Path, tmp_path: Path) -> None:
    out, begun = tmp_path / "run", tmp_path / ".run.partial" / "played" / "unit=0000090-0000099" / "_temporary"
    options = Options(engine="spark", is_resumed=True, loads="changed")
    with pytest.raises(KeyboardInterrupt):
        run(model, GROWING, out, options, on_progress=Interrupt(60))
    begun.mkdir(parents=True)  # what a task was writing when all ended
    again = Interrupt(10**9)
    with pytest.raises(KeyboardInterrupt):
        run(model, GROWING, out, options, on_progress=again)
    assert 60 < min(again.played) < max(again.played), "what was committed isn't played again"
    assert not begun.exists()
    summary = made(model, GROWING, out, engine="spark", is_resumed=True, loads="changed")
    assert summary.resumed == summary.scenarios, "all had been played: only tables were made"
    assert_equal(uninterrupted, out)
    assert nothing_beside(out)


def test_every_command_opens_a_run_of_spark_without_a_report(
    spark: SparkSession, model: Model, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    write_answers(tmp_path / "run", model)
    for words in (
        ["explain", "--router", "r00"],
        ["explain", "--link", model.links[0].id],
        ["explain", "--address", "news", "--scenario", "7"],
        ["check", "--max-util", "9", "--no-single-point-of-failure", "--enough-credit"],
        ["credit"],
        ["diff", str(tmp_path / "run")],
        ["suggest"],
        ["report"],
    ):
        asked = CliRunner().invoke(main, ["whatif", words[0], str(tmp_path / "run"), *words[1:]])
        assert asked.exit_code in (0, 1), (words, asked.output)
        assert isinstance(asked.exception, SystemExit | None), (words, asked.exception)


def test_the_pages_of_spark_say_what_its_jobs_are_about(spark: SparkSession, whole: Path) -> None:
    address = pages(spark)
    assert address is not None
    assert address.startswith("http://127.0.0.1:"), "nobody else needs to see them"
    place = f"{address}/api/v1/applications/{spark.sparkContext.applicationId}/jobs"
    with urllib.request.urlopen(place) as answer:  # noqa: S310 - the scheme is http
        said = {job.get("description", "") for job in json.load(answer)}
    assert any(re.fullmatch(r"what-if: play scenarios 0 to \d+ of variant base", words) for words in said)
    for name in ("scenario", "pair_impact", "scenario_load", "address_impact", "link_load", "link_worst"):
        assert f"what-if: make table {name} of what was played" in said
    for what in ("the probabilities of scenarios", "scenarios by family", "scenarios by address"):
        assert f"what-if: sum up {what}" in said
    assert "what-if: find the pairs that are without a path for longest" in said


def test_a_table_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    model = Model(routers=[RouterNode(id="A"), RouterNode(id="B")])
    for engine in ("local", "spark"):
        made(model, Request(families="routers:1"), tmp_path / engine, engine=engine, pairs="none", loads="changed")
    assert_equal(tmp_path / "local", tmp_path / "spark")
    assert spark.read.parquet(str(tmp_path / "spark" / "pair_impact")).count() == 0


def test_ranges_of_scenarios_are_partitions_in_their_order(spark: SparkSession) -> None:
    rows = by_range(spark.range(0, 30_000).withColumnRenamed("id", "scenario"), 30_000, cores=4)
    place = functions.spark_partition_id().alias("place")
    found = rows.groupBy(place).agg(functions.min("scenario"), functions.max("scenario")).orderBy("place").collect()
    assert [tuple(row) for row in found] == [(at, 3750 * at, 3750 * at + 3749) for at in range(8)]
    assert by_range(rows, 30_000, cores=99).rdd.getNumPartitions() == 15, "a few thousand scenarios in each"


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_sum_is_that_of_fsum(seed: int, spark: SparkSession) -> None:
    rng = random.Random(seed)
    values = [rng.uniform(-1, 1) * 2.0 ** rng.randint(-300, 300) for _ in range(500)] + [5e-324, 0.0, 1.7e308, 1.0]
    frame = spark.createDataFrame([(value,) for value in values] + [(None,)], "value double").repartition(3)
    assert exact_sum(frame, "value") == math.fsum(values)


def test_ecmp_is_the_same_on_spark_in_a_folder_whose_name_means_something_in_paths(
    spark: SparkSession, model: Model, tmp_path: Path
) -> None:
    folder = tmp_path / "{a}[1] b%20*"
    for name in ("local", "spark"):
        made(model, Request(families="links:1"), folder / name, engine=name, routing="ecmp")
    assert_equal(folder / "local", folder / "spark")


def test_both_engines_count_what_is_lost_while_nothing_fails(spark: SparkSession, tmp_path: Path) -> None:
    request = Request(families="links:1-2,routers:1", maintenance=("window",), growth="1:3:2")
    for name in ("local", "spark"):
        made(losing(), request, tmp_path / name, engine=name)
        made(relieved(), Request(families="links:1-2"), tmp_path / f"{name}-relieved", engine=name)
    assert_equal(tmp_path / "local", tmp_path / "spark")
    assert_equal(tmp_path / "local-relieved", tmp_path / "spark-relieved")
    found = {row["address"]: row["scenarios"] for row in read_table(tmp_path / "spark", "address_summary").to_pylist()}
    assert found["nobody"] > found["served"]


def test_by_both_engines_what_maintenance_alone_does_has_a_probability_of_zero(
    spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("local", "spark"):
        made(held_down(), Request(families="links:1", maintenance=("window",)), tmp_path / name, engine=name)
    assert_equal(tmp_path / "local", tmp_path / "spark")
    (row,) = read_table(tmp_path / "local", "address_summary").to_pylist()
    assert row["max_lost_msgs_per_s"] == 5
    assert (row["probability"], row["mean_lost_msgs_per_s"], row["dead_probability"]) == (0, 0, 0)


def test_a_member_that_is_dropped_from_a_group_is_noticed(
    whole: Path, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison would be worth nothing if it did not see such a mistake in one of two engines."""
    candidates = FailureCandidates.of

    def dropping(wrong: Model) -> FailureCandidates:
        found = candidates(wrong)
        return attrs.evolve(found, groups=tuple(attrs.evolve(it, links=it.links[:-1]) for it in found.groups))

    monkeypatch.setattr(FailureCandidates, "of", dropping)
    made(model, REQUEST, tmp_path / "wrong", engine="local", workers=1, pairs="changed", loads="all")
    with pytest.raises(AssertionError, match="scenario"):
        assert_equal(whole, tmp_path / "wrong")


def test_tables_of_a_run_are_read_by_spark(spark: SparkSession, local: Path) -> None:
    for name in (*TABLES, "scenario_load"):
        frame = spark.read.parquet(str(local / name))
        assert frame.count() == read_table(local, name).num_rows
    worst = spark.read.parquet(str(local / "scenario")).orderBy("lost_msgs_per_s", ascending=False).first()
    assert worst is not None
    assert worst.lost_msgs_per_s == max(read_table(local, "scenario").column("lost_msgs_per_s").to_pylist())


def test_what_a_task_raises_comes_out(spark: SparkSession, model: Model, tmp_path: Path) -> None:
    request = Request()
    work = VariantWork(
        key="bad", network=b"12345678 bad", plan=request.plan(request.variants(model)), pairs="none", routing="mesh"
    )
    chunk = Chunk(number=0, variant=0, first=0, stop=1)
    with pytest.raises(TaskError, match="a task of Spark failed: ") as caught:
        spark_engine.run(
            SparkAddress(),
            {0: work},
            [chunk],
            LocalStorage(tmp_path),
            log=tmp_path / "spark.log",
            plan=work.plan,
            on_done=lambda chunk: None,
        )
    assert len(str(caught.value).splitlines()) == 1


def test_work_of_another_version_is_refused(model: Model) -> None:
    request = Request()
    plan = request.plan(request.variants(model))
    work = VariantWork(key="old", network=b"", plan=plan, pairs="none", routing="mesh", version="0.0.1")
    with pytest.raises(RuntimeError, match=r"is installed here; the work comes from 0\.0\.1"):
        evaluator_of(work)


# Which engine


TWO_RUNS = """
import sys
from pathlib import Path
from router.whatif import Options, play, read_model
from tests.whatif.cluster import FEW_ROWS
folder = Path(sys.argv[1])
model = read_model(folder / "model")
options = Options(engine="spark", master="local[1]", settings=FEW_ROWS)
for name in ("one", "two"):
    play(model, folder / name, families="links:1", options=options)
"""


def test_a_program_may_make_one_run_on_spark_after_the_other(tmp_path: Path) -> None:
    """It has no session of its own: each run starts Spark and ends it, by the master that is given."""
    write_model(everything(6, 8), tmp_path / "model")
    variables = {**os.environ, "SPARK_REMOTE": "sc://127.0.0.1:1", "MASTER": "spark://127.0.0.1:1"}
    command = [sys.executable, "-c", TWO_RUNS, tmp_path]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_equal(tmp_path / "one", tmp_path / "two")


def test_auto_is_spark_where_its_address_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SPARK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert Options(engine="spark").wants_spark
    assert Options(master="spark://host:7077").wants_spark
    assert Options(remote="sc://host").wants_spark
    assert not Options(engine="local").wants_spark
    with ThreadPoolExecutor(1) as elsewhere:  # sessions belong to threads
        assert not elsewhere.submit(lambda: Options().wants_spark).result()
        monkeypatch.setenv("SPARK_REMOTE", "sc://host")
        assert elsewhere.submit(lambda: Options().wants_spark).result()


def test_auto_is_spark_where_there_is_a_session(by_spark: Made, tmp_path: Path) -> None:
    assert by_spark.summary.engine == "spark local[2,2]"
    local = run(everything(8, 10), Request(families="links:1"), tmp_path / "run", Options(engine="local"))
    assert local.engine == "local"


def test_auto_is_spark_when_much_is_to_be_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ends = [(f"R{at:03}", f"R{at + 1:03}") for at in range(299)]
    model = Model(
        routers=[RouterNode(id=f"R{at:03}") for at in range(300)],
        links=[LinkEdge(id=f"{a}--{b}", a=a, b=b, cost=1) for a, b in ends],
    )
    few, many = (Request(families=families).plan([("base", model)]) for families in ("links:1", "links:3"))
    assert estimated_s(few, 2) < 1 < 60 < estimated_s(many, 2) < estimated_s(many, 1)
    with ThreadPoolExecutor(1) as elsewhere:
        assert not elsewhere.submit(Options(workers=2).takes_spark, few).result()
        assert elsewhere.submit(Options(workers=2).takes_spark, many).result()
        assert not Options(engine="local", workers=2).takes_spark(many)
        # Without Java it is the local engine that takes the hours.
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        assert not elsewhere.submit(Options(workers=2).takes_spark, many).result()


def out_of_memory(_: int) -> bytes:
    raise MemoryError


def without_a_module(_: int) -> bytes:
    importlib.import_module("nothing_of_that_name")
    return b""


def killed(_: int) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def of_its_own(_: int) -> bytes:
    raise ValueError("the\nlast line")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (out_of_memory, "a worker has too little memory; expected --spark-conf spark.executor.memoryOverhead=1g"),
        (
            without_a_module,
            "workers lack the Python module `nothing_of_that_name`; expected --spark-conf spark.pyspark",
        ),
        (killed, "a Python worker died, .* expected --spark-conf spark.executor.memoryOverhead=1g"),
        (of_its_own, "a task of Spark failed: ValueError: the"),
    ],
)
def test_a_task_that_dies_is_one_line(
    spark: SparkSession, function: Callable[[int], bytes], words: str, tmp_path: Path
) -> None:
    with pytest.raises(TaskError, match=words) as caught:
        list(map_tasks(spark, function, [1], tmp_path))
    assert len(str(caught.value).splitlines()) == 1
