"""Runs whose folder is on a file system that this machine's paths don't reach, by Hadoop's client."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from click.testing import CliRunner

from router.cli import main
from router.whatif.analysis.derived_tables import write_answers
from router.whatif.library import open_run
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline import hadoop_run_staging
from router.whatif.pipeline.hadoop_run_staging import HadoopRunStaging, copy_run
from router.whatif.pipeline.hadoop_storage import HadoopStorage
from router.whatif.pipeline.missing_hadoop_client import client_error
from router.whatif.pipeline.run import Options, run, silent
from router.whatif.pipeline.run_completeness import check_complete
from router.whatif.pipeline.run_staging import RunError
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.report.finish_run import complete_run
from router.whatif.scenarios.run_request import Request
from tests.whatif.runs import assert_equal, everything

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REQUEST = Request(families="links:1,srlg")


@attrs.frozen
class Elsewhere:
    """A file system of Hadoop's with a folder of this machine behind it, under another name."""

    address: str
    """Of its folder `data`."""
    behind: Path

    def names(self) -> set[str]:
        """What is in that folder."""
        return {path.name for path in self.behind.iterdir()}


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> Elsewhere:
    # Its client keeps file systems by their authority: each test has one of its own.
    authority = f"t{secrets.token_hex(6)}"
    behind = tmp_path / "behind"
    behind.mkdir()
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{authority}.link./data", behind.as_uri())
    return Elsewhere(f"viewfs://{authority}/data", behind)


@pytest.fixture(scope="module")
def model() -> Model:
    return everything(12, 20)


@pytest.fixture(scope="module")
def local(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    run(
        model,
        REQUEST,
        folder,
        Options(engine="local", loads="changed"),
        finish=lambda path: complete_run(path, model),
    )
    return folder


def play(model: Model, out: str, *, finish: Callable[[Path], object] | None = None, is_resumed: bool = False) -> None:
    def complete(folder: Path) -> None:
        (finish or (lambda folder: write_answers(folder, model)))(folder)

    run(model, REQUEST, out, Options(loads="changed", is_resumed=is_resumed), finish=complete, on_progress=silent)


@pytest.mark.slow
def test_a_run_elsewhere_has_the_same_tables_and_takes_its_place_as_a_whole(
    spark: SparkSession, elsewhere: Elsewhere, model: Model, local: Path
) -> None:
    out = f"{elsewhere.address}/run"
    (elsewhere.behind / "run" / "run").mkdir(parents=True)  # an earlier one, whose place it takes
    (elsewhere.behind / "run" / "rest").write_text("old")
    play(model, out, finish=lambda folder: complete_run(folder, model))
    assert elsewhere.names() == {"run"}
    assert not (elsewhere.behind / "run" / "rest").exists()
    assert_equal(local, elsewhere.behind / "run")
    assert {"report.html", "summary.json", "model", "router_spof"} <= {
        it.name for it in (elsewhere.behind / "run").iterdir()
    }
    # Whoever asks it has a copy, without what is a hundred times as large as all else; Spark reads all of it there.
    opened = open_run(out)
    assert opened.tables == open_run(local).tables
    one, other = (each.explain(link=model.links[0].id).explanation for each in (opened, open_run(local)))
    assert one == other
    with pytest.raises(TableError, match=r"table scenario_load of viewfs://.* is too large for a copy"):
        opened.arrow("scenario_load")
    loads = opened.spark("scenario_load", spark)
    assert opened.folder.is_dir()
    assert loads.count() == read_table(local, "scenario_load").num_rows
    opened.views(spark, "far_")
    asked = spark.sql("SELECT count(*) AS found FROM far_scenario WHERE family = 'srlg'").first()
    assert asked is not None
    assert asked.found > 0
    folder = opened.folder
    del opened
    assert not folder.exists()
    said = CliRunner().invoke(main, ["whatif", "explain", out, "--link", model.links[0].id])
    assert said.exit_code == 0, said.output
    assert model.links[0].id in said.output


@pytest.mark.slow
def test_a_run_elsewhere_that_was_interrupted_goes_on(elsewhere: Elsewhere, model: Model, local: Path) -> None:
    out = f"{elsewhere.address}/run"

    def fail(folder: Path) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        play(model, out, finish=fail)
    assert elsewhere.names() == {".run.partial"}
    # One that was killed has left its lock.
    lock = elsewhere.behind / ".run.partial" / "lock"
    lock.write_text(json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1}))  # above all there can be
    before = {
        path: path.stat().st_mtime_ns for path in (elsewhere.behind / ".run.partial" / "played").rglob("*.parquet")
    }
    assert before
    with pytest.raises(RunError, match="differs in pairs"):
        run(model, REQUEST, out, Options(pairs="none", loads="changed", is_resumed=True))
    seen = []

    def keep(folder: Path) -> None:
        seen.append({path: path.stat().st_mtime_ns for path in before})

    play(model, out, finish=keep, is_resumed=True)
    assert seen == [before]
    assert elsewhere.names() == {"run"}
    assert_equal(local, elsewhere.behind / "run")


def test_two_runs_do_not_write_to_one_place(elsewhere: Elsewhere, model: Model) -> None:
    out = f"{elsewhere.address}/run"
    partial = elsewhere.behind / ".run.partial"
    partial.mkdir()
    (partial / "lock").write_text(json.dumps({"host": "far", "pid": 7}))
    with pytest.raises(RunError, match="another run is writing there: process 7 of host far; expected another folder"):
        play(model, out)
    (partial / "lock").write_text(json.dumps({"host": os.uname().nodename, "pid": os.getpid()}))
    with pytest.raises(RunError, match="another run is writing there"):
        play(model, out)
    assert elsewhere.names() == {".run.partial"}


def test_a_lock_that_is_not_all_there_is_held(elsewhere: Elsewhere, model: Model) -> None:
    partial = elsewhere.behind / ".run.partial"
    partial.mkdir()
    for text in ("", '{"host": "fa', "[]", '{"host": "far"}'):
        (partial / "lock").write_text(text)
        with pytest.raises(RunError, match="another run is writing there; expected another folder"):
            play(model, f"{elsewhere.address}/run")
    assert elsewhere.names() == {".run.partial"}


@pytest.fixture
def both(spark: SparkSession, elsewhere: Elsewhere, tmp_path: Path) -> tuple[HadoopRunStaging, HadoopRunStaging]:
    """Two runs into one place."""
    first, second = (
        HadoopRunStaging(HadoopStorage(spark, f"{elsewhere.address}/run"), tmp_path / name) for name in ("one", "two")
    )
    return first, second


def two_that_replace(
    both: tuple[HadoopRunStaging, HadoopRunStaging], elsewhere: Elsewhere
) -> tuple[HadoopRunStaging, HadoopRunStaging]:
    """Both, into the place of a whole one; the first has begun, and has made something."""
    (elsewhere.behind / "run" / "run").mkdir(parents=True)
    both[0].open({}, is_resumed=False)
    both[0].storage.write("run/part.parquet", b"x")
    return both


def test_one_of_two_runs_takes_the_lock_that_a_killed_one_has_left(
    both: tuple[HadoopRunStaging, HadoopRunStaging], elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = both
    partial = elsewhere.behind / ".run.partial"
    partial.mkdir()
    (partial / "lock").write_text(json.dumps({"host": os.uname().nodename, "pid": 2**22 + 1}))
    read, begun = HadoopStorage.read, []

    def meanwhile(storage: HadoopStorage, name: str) -> bytes:
        found = read(storage, name)
        if name == "lock" and not begun:
            begun.append(name)
            first.open({}, is_resumed=False)
        return found

    monkeypatch.setattr(HadoopStorage, "read", meanwhile)
    with pytest.raises(RunError, match=f"another run is writing there: process {os.getpid()} of"):
        second.open({}, is_resumed=False)
    assert {path.name for path in partial.iterdir() if not path.name.endswith(".crc")} == {"input.json", "lock"}
    first.close()
    assert elsewhere.names() == set()


def test_a_lock_that_goes_while_it_is_looked_at_is_free(
    spark: SparkSession, elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = HadoopRunStaging(HadoopStorage(spark, f"{elsewhere.address}/run"), tmp_path / "here")
    lock = elsewhere.behind / ".run.partial" / "lock"
    lock.parent.mkdir()
    lock.write_text(json.dumps({"host": "far", "pid": 7}))
    read = HadoopStorage.read

    def meanwhile(storage: HadoopStorage, name: str) -> bytes:
        monkeypatch.undo()
        lock.unlink()
        return read(storage, name)

    monkeypatch.setattr(HadoopStorage, "read", meanwhile)
    assert stage.open({}, is_resumed=False) == set()
    stage.close()
    assert elsewhere.names() == set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RunError])
def test_a_run_elsewhere_is_whole_though_the_one_it_replaces_is_not_gone(
    both: tuple[HadoopRunStaging, HadoopRunStaging],
    elsewhere: Elsewhere,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
) -> None:
    first, second = two_that_replace(both, elsewhere)
    remove = HadoopStorage.remove

    def meanwhile(storage: HadoopStorage, name: str) -> None:
        if not name.endswith(".old"):
            remove(storage, name)
            return
        monkeypatch.undo()
        second.open({}, is_resumed=False)
        raise error([])

    monkeypatch.setattr(HadoopStorage, "remove", meanwhile)
    with contextlib.suppress(KeyboardInterrupt):
        first.finish()
    first.close()
    assert first.out.children("") == ["run"]
    assert second.storage.children("") == ["input.json", "lock"]
    second.close()
    assert not second.storage.exists("")


def test_a_run_elsewhere_interrupted_when_it_has_just_got_its_name_is_whole(
    both: tuple[HadoopRunStaging, HadoopRunStaging], elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_that_replace(both, elsewhere)
    rename = HadoopStorage._rename

    def meanwhile(storage: HadoopStorage, source: Any, target: Any) -> None:
        rename(storage, source, target)
        if source.getName() == ".run.partial":
            monkeypatch.undo()
            second.open({}, is_resumed=False)
            raise KeyboardInterrupt

    monkeypatch.setattr(HadoopStorage, "_rename", meanwhile)
    with pytest.raises(KeyboardInterrupt):
        first.finish()
    first.close()
    assert first.out.children("") == ["input.json", "lock", "run"]
    assert second.storage.children("") == ["input.json", "lock"]


def test_a_run_elsewhere_that_gives_up_leaves_the_folder_of_the_next_one_alone(
    both: tuple[HadoopRunStaging, HadoopRunStaging], elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = both
    first.open({}, is_resumed=False)
    remove = HadoopStorage.remove

    def meanwhile(storage: HadoopStorage, name: str) -> None:
        monkeypatch.undo()
        storage.remove("lock")  # the first of what is in the folder
        second.open({}, is_resumed=False)
        remove(storage, name)

    monkeypatch.setattr(HadoopStorage, "remove", meanwhile)
    first.close()
    assert second.storage.children("") == ["input.json", "lock"]
    second.close()
    assert elsewhere.names() == set()


def test_what_cannot_be_is_told_in_one_line(spark: SparkSession, elsewhere: Elsewhere, model: Model) -> None:
    (elsewhere.behind / "notes").mkdir()
    (elsewhere.behind / "notes" / "diary").write_text("dear")
    for out, words in (
        (f"{elsewhere.address}/notes", "it exists and has other contents; expected a new folder, or a run to replace"),
        (f"{elsewhere.address}/notes/diary", "it exists and is a file"),
        ("nothing://name/run", "Spark's package has no client for nothing://"),
        ("viewfs://nowhere/run", "nowhere"),
        ("hdfs://no-such-host.invalid/run", "UnknownHostException: no-such-host.invalid"),
    ):
        with pytest.raises(RunError) as caught:
            play(model, out)
        assert words in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(RunError, match="the local engine writes to folders of this machine; expected --engine spark"):
        run(model, REQUEST, f"{elsewhere.address}/run", Options(engine="local"))
    with pytest.raises(RunError, match="it is neither a run nor a model"):
        copy_run(f"{elsewhere.address}/none", elsewhere.behind / "copy")
    assert elsewhere.names() == {"notes"}


def test_files_elsewhere_appear_as_a_whole_and_are_replaced(spark: SparkSession, elsewhere: Elsewhere) -> None:
    storage = HadoopStorage(spark, f"{elsewhere.address}/run[1]")
    storage.make()
    storage.write("a b", b"one")
    storage.write("a b", b"two")
    assert storage.read("a b") == b"two"
    assert storage.children("") == ["a b"]
    assert storage.create("lock", b"x")
    assert not storage.create("lock", b"y")
    assert storage.read("lock") == b"x"
    storage.remove("none")
    storage.remove("a b")
    assert not storage.exists("a b")
    assert storage.children("none") == storage.files("none") == []
    assert storage.size("none") == 0
    assert storage.address("x", is_read=True).endswith("/run\\[1\\]/x")


def test_a_folder_elsewhere_takes_the_place_of_another_or_leaves_it(spark: SparkSession, elsewhere: Elsewhere) -> None:
    out = HadoopStorage(spark, f"{elsewhere.address}/run")
    out.make()
    out.write("file", b"old")
    missing = out.beside(".missing")
    with pytest.raises(RunError):
        missing.place(out)
    assert (elsewhere.names(), out.read("file")) == ({"run"}, b"old")
    new = out.beside(".run.partial")
    new.make()
    new.write("file", b"new")
    (elsewhere.behind / ".run.0123abcd.old").mkdir()  # of one that was killed
    new.place(out)
    out.remove_replaced()
    assert (elsewhere.names(), out.read("file")) == ({"run"}, b"new")


def test_large_tables_of_scenarios_stay_where_they_are(
    spark: SparkSession, elsewhere: Elsewhere, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop_run_staging, "MOST_BYTES", 0)
    out = f"{elsewhere.address}/run"
    here: list[set[str]] = []

    def finish(folder: Path) -> None:
        here.append({path.name for path in folder.iterdir()})
        complete_run(folder, model)

    play(model, out, finish=finish)
    large = {"address_impact", "pair_impact", "scenario_load"}
    assert large.isdisjoint(here[0])
    assert large <= {path.name for path in (elsewhere.behind / "run").iterdir()}
    assert set(copy_run(out, tmp_path / "copy")) == large
    check_complete(tmp_path / "copy")
    said = CliRunner().invoke(main, ["whatif", "explain", out, "--address", model.addresses[0].text])
    assert said.exit_code == 0, said.output


@pytest.mark.parametrize(
    ("address", "said", "told"),
    [
        (
            "s3a://bucket/run",
            "RuntimeException: java.lang.ClassNotFoundException: Class org.apache.hadoop.S3AFileSystem not found",
            (
                "s3a://bucket/run: error: Spark's package has no client for s3a://, of which the class"
                " org.apache.hadoop.S3AFileSystem is missing; expected the client's package by --spark-conf"
                " spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.1, or by spark-defaults.conf in the folder"
                " SPARK_CONF_DIR"
            ),
        ),
        (
            "abfss://box@host/run",
            "NoClassDefFoundError: com/azure/core/Client",
            (
                "the class com.azure.core.Client is missing; expected the client's package by --spark-conf"
                " spark.jars.packages=org.apache.hadoop:hadoop-azure:3.4.1"
            ),
        ),
        (
            "s3://bucket/run",
            'UnsupportedFileSystemException: No FileSystem for scheme "s3"',
            "s3://bucket/run: error: Spark's package has no client for s3://; did you mean `s3a://bucket/run`?",
        ),
        (
            "gs://bucket/run",
            'UnsupportedFileSystemException: No FileSystem for scheme "gs"',
            "no client for gs://; expected the client's package by --spark-conf spark.jars.packages=GROUP:NAME:VERSION",
        ),
        (
            "hdfs://nowhere/run",
            "UnknownHostException: nowhere",
            "hdfs://nowhere/run: error: UnknownHostException: nowhere",
        ),
    ],
)
def test_the_package_of_a_client_that_spark_lacks_is_named(address: str, said: str, told: str) -> None:
    assert told in str(client_error(address, said, "3.4.1"))


def test_an_address_that_spark_has_no_client_for_ends_in_one_line(spark: SparkSession, model: Model) -> None:
    with pytest.raises(RunError) as refused:
        play(model, "s3a://bucket/run")
    (line,) = str(refused.value).splitlines()
    assert "Spark's package has no client for s3a://" in line
    version = spark.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
    assert f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}" in line
