"""Every engine makes the same tables, bit for bit."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from pyspark.sql import SparkSession

from router.whatif.model.mesh_model import Model
from router.whatif.pipeline import spark_engine as engine
from router.whatif.pipeline.chunk_evaluator import VariantWork, evaluator_of
from router.whatif.pipeline.run import SPARK_VARIABLES, Options, run
from router.whatif.pipeline.spark_failures import TaskError
from router.whatif.pipeline.spark_parallel_map import map_tasks
from router.whatif.pipeline.table_files import files_of, read_table
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import Chunk
from tests.whatif.runs import TABLES, assert_equal, everything, made

REQUEST = Request(
    families="links:1,routers:2,srlg,sites,links:1+routers:1,links:3",
    maintenance=("window",),
    links=("r00,r05,2",),
    sample=400,
    seed=5,
)


@pytest.fixture(scope="module")
def model() -> Model:
    return everything(16, 30)


@pytest.fixture(scope="module")
def local(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    made(model, REQUEST, folder, engine="local", workers=1, pairs="changed")
    return folder


def test_spark_makes_the_tables_of_this_process(spark: SparkSession, model: Model, local: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    options = Options(engine="spark", pairs="changed")
    summary = run(model, REQUEST, tmp_path / "run", options, on_progress=lambda *step: seen.append(step))
    assert summary.engine == "spark local[2,2]"
    assert_equal(local, tmp_path / "run")
    assert [done for what, done, _ in seen if what == "playing scenarios"][-1] == summary.scenarios
    for name in TABLES:  # more than is asked of it: the very files
        if name != "run":
            assert [path.read_bytes() for path in files_of(local, name)] == [
                path.read_bytes() for path in files_of(tmp_path / "run", name)
            ]


def test_a_run_that_one_engine_began_another_one_can_end(
    spark: SparkSession, model: Model, local: Path, tmp_path: Path
) -> None:
    def interrupt(what: str, done: int, total: int) -> None:
        if done > 600:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(model, REQUEST, tmp_path / "run", Options(engine="local", pairs="changed"), on_progress=interrupt)
    summary = made(model, REQUEST, tmp_path / "run", engine="spark", pairs="changed", is_resumed=True)
    assert 0 < summary.resumed < summary.scenarios
    assert_equal(local, tmp_path / "run")


def test_ecmp_is_the_same_on_spark(spark: SparkSession, model: Model, tmp_path: Path) -> None:
    for name in ("local", "spark"):
        made(model, Request(), tmp_path / name, engine=name, routing="ecmp")
    assert_equal(tmp_path / "local", tmp_path / "spark")


def test_a_member_that_is_dropped_from_a_group_is_noticed(
    spark: SparkSession, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison would be worth nothing if it did not see such a mistake in one of two engines."""
    request = Request(families="srlg")
    made(model, request, tmp_path / "right", engine="spark")
    whole = FailureCandidates.of

    def dropping(wrong: Model) -> FailureCandidates:
        found = whole(wrong)
        return attrs.evolve(found, groups=tuple(attrs.evolve(it, links=it.links[:-1]) for it in found.groups))

    monkeypatch.setattr(FailureCandidates, "of", dropping)
    made(model, request, tmp_path / "wrong", engine="local")
    with pytest.raises(AssertionError, match="scenario"):
        assert_equal(tmp_path / "right", tmp_path / "wrong")


def test_tables_of_a_run_are_read_by_spark(spark: SparkSession, local: Path) -> None:
    for name in TABLES:
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
        engine.run(engine.SparkAddress(), {0: work}, [chunk], tmp_path, on_done=lambda chunk: None)
    assert len(str(caught.value).splitlines()) == 1


def test_work_of_another_version_is_refused(model: Model) -> None:
    request = Request()
    plan = request.plan(request.variants(model))
    work = VariantWork(key="old", network=b"", plan=plan, pairs="none", routing="mesh", version="0.0.1")
    with pytest.raises(RuntimeError, match=r"is installed here; the work comes from 0\.0\.1"):
        evaluator_of(work)


# Which engine


def test_auto_is_spark_where_its_address_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SPARK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert not Options().wants_spark
    assert Options(engine="spark").wants_spark
    assert Options(master="spark://host:7077").wants_spark
    assert Options(remote="sc://host").wants_spark
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    assert Options().wants_spark
    assert not Options(engine="local").wants_spark


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
