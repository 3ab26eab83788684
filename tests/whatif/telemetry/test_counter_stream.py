"""`whatif watch` on real routers and real Spark: what it counts, and that nothing is lost when it is killed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import math
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from mesh_config.generators import generate
from mesh_config.models import Treatment
from router.cli import main
from router.cli.whatif.watch import CONNECT, ROWS, Screen
from router.whatif.forecasting.capacity_forecast import Wanted, forecast
from router.whatif.forecasting.demand_history import CALENDARS, Calendar
from router.whatif.forecasting.link_trends import ForecastSettings
from router.whatif.formats.model_folder import write_model
from router.whatif.model.elements import AddressNode, LinkEdge, RouterNode, SubscriberSite
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run_staging import RunError
from router.whatif.pipeline.spark_session import LOGGED_BY_PY4J
from router.whatif.pipeline.table_files import from_rows, read_table
from router.whatif.telemetry.counter_stream import CURRENT, StreamingJob, WatchSpec
from tests.helpers.peer import message
from tests.helpers.processes import MeshProcesses, wait_until, without_idle_timeout
from tests.helpers.secured_mesh import PASSWORD, USER, secured_mesh
from tests.helpers.sockets import Sockets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]  # on a busy machine Spark takes its time to start

LINKS = ("R1--R2", "R2--R3")


class Traffic:
    """A publisher at the first router of a line, and a subscriber at the last one."""

    def __init__(self, mesh: MeshProcesses) -> None:
        self._sockets = Sockets()
        client = self._sockets.client(mesh.url("R3"))
        self._receiver = client.receiver("watched", credit=1000).accepting()
        self._sender = self._sockets.client(mesh.url("R1")).sender("watched")
        self._sockets.wait(lambda: self._sender.credit > 0)

    def send(self, count: int) -> None:
        """So many messages, all of which have arrived when this returns."""
        wanted = len(self._receiver.messages) + count
        for _ in range(count):
            self._sockets.wait(lambda: self._sender.credit > 0)
            self._sender.send(message("x" * 100))
            self._receiver.flow(1)
        self._sockets.wait(lambda: len(self._receiver.messages) >= wanted)

    def idle(self) -> None:
        """Keep the connections alive for a moment."""
        self._sockets.step(0.05)

    def close(self) -> None:
        self._sockets.close()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    settings = without_idle_timeout(generate("line", 3))  # Spark may take long to start
    with MeshProcesses(settings, tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh


@pytest.fixture
def traffic(mesh: MeshProcesses) -> Iterator[Traffic]:
    made = Traffic(mesh)
    yield made
    made.close()


def totals(out: Path) -> Counter[tuple[str, str]]:
    """Messages by link and sender, of all intervals."""
    found: Counter[tuple[str, str]] = Counter()
    for row in read_table(out, "link_rate").to_pylist():
        found[row["link"], row["src"]] += row["messages"]
    return found


def forth(out: Path, link: str, *, asked: int = 1) -> int:
    """Messages that passed over a link away from R1, without those of management.

    Args:
        asked: routers beyond the link that are asked, or answer, over it; each reading is counted in the next interval.
    """
    table = read_table(out, "link_rate").to_pylist()
    intervals = sum(1 for row in table if (row["link"], row["src"]) == (link, link[:2]))
    return totals(out)[link, link[:2]] - asked * intervals


def assert_without_gaps(table: pa.Table) -> None:
    """Each interval of a link begins where the one before ended."""
    ended: dict[tuple[str, str], Any] = {}
    for row in table.to_pylist():
        key = (row["link"], row["src"])
        assert row["begun"] < row["ended"]
        assert ended.get(key, row["begun"]) == row["begun"]
        ended[key] = row["ended"]


def run_once(session: SparkSession, watch: WatchSpec, traffic: Traffic) -> list[pa.Table]:
    """One reading, in this process."""
    shown: list[pa.Table] = []
    job = StreamingJob(watch, shown.append)
    try:
        query = job.start(session, interval_s=None)
        while query.isActive:
            traffic.idle()
        error = query.exception()
        if error is not None:
            raise error
    finally:
        job.close()
    return shown


def test_each_interval_is_what_the_routers_counted(
    mesh: MeshProcesses, traffic: Traffic, spark: SparkSession, tmp_path: Path
) -> None:
    links = (
        LinkEdge(id="R1--R2", a="R1", b="R2", capacity_msgs=1000.0),
        LinkEdge(id="R2--R3", a="R2", b="R3", capacity_msgs=1e6, capacity_bytes=500.0),
    )
    watch = WatchSpec(
        urls=("amqp://127.0.0.1:1", mesh.url("R2")),  # the first one does not answer
        connect=CONNECT, checkpoint=tmp_path / "job", out=tmp_path / "out", links=links,
    )  # fmt: skip
    assert run_once(spark, watch, traffic) == []  # the first reading has nothing to be compared with
    traffic.send(300)
    (table,) = run_once(spark, watch, traffic)
    rows = {(row["link"], row["src"]): row for row in table.to_pylist()}
    assert sorted(rows) == [("R1--R2", "R1"), ("R1--R2", "R2"), ("R2--R3", "R2"), ("R2--R3", "R3")]
    for link, src in (("R1--R2", "R1"), ("R2--R3", "R2")):
        row = rows[link, src]
        seconds = (row["ended"] - row["begun"]).total_seconds()
        assert row["messages"] == 300 + 1  # R2 has asked, or was answered
        assert row["bytes"] > 300 * 100
        assert row["msgs_per_s"] == 301 / seconds
        assert row["bytes_per_s"] == row["bytes"] / seconds
        assert row["headroom"] == 1 - row["utilisation"]
        assert row["is_reset"] is False
    first, second = rows["R1--R2", "R1"], rows["R2--R3", "R2"]
    assert first["utilisation"] == first["msgs_per_s"] / 1000.0
    assert second["utilisation"] == second["bytes_per_s"] / 500.0  # the larger one
    (none,) = run_once(spark, watch, traffic)
    assert {row["messages"] for row in none.to_pylist()} == {1}
    whole = read_table(tmp_path / "out", "link_rate")
    assert whole.num_rows == 8
    assert_without_gaps(whole)
    assert pq.read_table(tmp_path / "out" / CURRENT).to_pylist() == sorted(
        none.to_pylist(), key=lambda row: (row["link"], row["src"])
    )


@pytest.mark.slow
def test_what_enters_is_told_by_router_and_address(
    mesh: MeshProcesses, traffic: Traffic, spark: SparkSession, tmp_path: Path
) -> None:
    watch = WatchSpec(
        urls=(mesh.url("R2"),), connect=CONNECT, checkpoint=tmp_path / "job", out=tmp_path / "out", has_addresses=True
    )
    run_once(spark, watch, traffic)
    sent: list[int] = []
    while len(sent) < 4 or periods_of(tmp_path / "out") < 3:
        sent.append((80, 0, 40)[len(sent) % 3])
        traffic.send(sent[-1])
        run_once(spark, watch, traffic)
    table = read_table(tmp_path / "out", "address_rate")
    rows = [row for row in table.to_pylist() if row["address"]]
    assert [(row["router"], row["address"], row["messages"]) for row in rows] == [
        ("R1", "watched", count) for count in sent if count
    ]
    for row in rows:
        assert row["msgs_per_s"] == row["messages"] / (row["ended"] - row["begun"]).total_seconds()
        assert 100 < row["msg_bytes"] < 300
    together = [row for row in table.to_pylist() if not row["address"]]
    assert [row["messages"] for row in together if row["router"] == "R1"] == sent
    assert [row["messages"] for row in together if row["router"] != "R1"] == [0] * (2 * len(sent))
    # Each router is asked two things: over the link go two questions, or two answers.
    assert forth(tmp_path / "out", "R1--R2", asked=2) == sum(sent)
    assert_forecast_of(spark, tmp_path)


def bucket_s(out: Path) -> int:
    """Whole seconds that half of the intervals do not exceed."""
    rows = read_table(out, "address_rate").to_pylist()
    return math.ceil(median((row["ended"] - row["begun"]).total_seconds() for row in rows))


def periods_of(out: Path) -> int:
    """Periods of so many seconds, of each of which the better part was watched in intervals that aren't too long."""
    seconds = bucket_s(out)
    watched: Counter[int] = Counter()
    for row in read_table(out, "address_rate").to_pylist():
        begun, ended = row["begun"].timestamp(), row["ended"].timestamp()
        if (row["router"], row["address"]) == ("R1", "") and ended - begun <= 2 * seconds:
            for bucket in range(int(begun // seconds), int(ended // seconds) + 1):
                part = min(ended, (bucket + 1) * seconds) - max(begun, bucket * seconds)
                watched[bucket] += round(1e6 * max(0.0, part))
    return sum(micros > 0.51e6 * seconds for micros in watched.values())


def assert_forecast_of(spark: SparkSession, folder: Path) -> None:
    """What has been watched can be forecast: the demands of each period are what the link carried."""
    seconds = bucket_s(folder / "out")
    model = Model(
        routers=[RouterNode(id=name) for name in ("R1", "R2", "R3")],
        links=[LinkEdge(id=f"{a}--{b}", a=a, b=b, capacity_msgs=1e6) for a, b in (("R1", "R2"), ("R2", "R3"))],
        subscribers=[SubscriberSite(address="watched", router="R3")],
        addresses=[AddressNode(text="watched", treatment=Treatment.BALANCED)],
    )
    wanted = Wanted(outlook=ForecastSettings(horizon=2), period="short")
    with mock.patch.dict(CALENDARS, short=Calendar(bucket_s=seconds, period_s=seconds)):
        forecast(spark, folder / "out", model, folder / "plan", wanted)
    demands = read_table(folder / "plan", "demand_period").to_pylist()
    assert len(demands) >= 3
    assert {(row["router"], row["address"]) for row in demands} == {("R1", "watched")}
    loads = read_table(folder / "plan" / "run", "link_load").to_pylist()
    last = {row["link"]: row["msgs_per_s"] for row in loads if row["variant"] == "period 0" and row["src"] < row["dst"]}
    assert last == pytest.approx(dict.fromkeys(LINKS, demands[-1]["busy"]), abs=1e-6)
    found = read_table(folder / "plan", "link_forecast").to_pylist()
    assert {row["periods"] for row in found} == {len(demands)}


@pytest.mark.slow
def test_a_batch_that_fails_is_worked_out_again_with_the_same_rows(
    mesh: MeshProcesses, traffic: Traffic, spark: SparkSession, tmp_path: Path
) -> None:
    watch = WatchSpec(urls=(mesh.url("R2"),), connect=CONNECT, checkpoint=tmp_path / "job", out=tmp_path / "out")
    run_once(spark, watch, traffic)
    traffic.send(50)
    written: list[pa.Table] = []

    def fail(table: pa.Table) -> None:
        # After the files were written, before Spark has noted that the batch is done: the worst moment.
        written.append(table)
        raise KeyError("killed")

    job = StreamingJob(watch, fail)
    query = job.start(spark, interval_s=None)
    while query.isActive:
        traffic.idle()
    job.close()
    assert "killed" in str(query.exception())
    traffic.send(70)
    again = run_once(spark, watch, traffic)
    assert again[0].equals(written[0])
    # What came after is in an interval of its own.
    if len(again) == 1:
        again += run_once(spark, watch, traffic)
    assert forth(tmp_path / "out", "R1--R2") == forth(tmp_path / "out", "R2--R3") == 120
    assert_without_gaps(read_table(tmp_path / "out", "link_rate"))


@pytest.mark.slow
def test_a_router_that_starts_anew_is_counted_from_its_beginning(
    mesh: MeshProcesses, spark: SparkSession, tmp_path: Path
) -> None:
    watch = WatchSpec(urls=(mesh.url("R2"),), connect=CONNECT, checkpoint=tmp_path / "job", out=tmp_path / "out")
    traffic = Traffic(mesh)
    run_once(spark, watch, traffic)
    traffic.send(40)
    run_once(spark, watch, traffic)
    mesh.kill("R1")
    mesh.wait_converged()
    (away,) = run_once(spark, watch, traffic)
    traffic.close()
    assert {row["link"] for row in away.to_pylist()} == {"R2--R3"}
    mesh.start("R1")
    mesh.wait_converged()
    traffic = Traffic(mesh)
    traffic.send(30)
    (back,) = run_once(spark, watch, traffic)
    traffic.close()
    resets = {(row["link"], row["src"]): (row["is_reset"], row["messages"]) for row in back.to_pylist()}
    assert resets["R1--R2", "R1"] == (True, 30)  # nobody had asked it yet
    assert resets["R2--R3", "R2"] == (False, 30 + 1)
    assert totals(tmp_path / "out")["R1--R2", "R1"] == 40 + 1 + 30


def test_two_jobs_share_neither_folder(tmp_path: Path) -> None:
    def watch(checkpoint: str, out: str | None) -> StreamingJob:
        place = None if out is None else tmp_path / out
        spec = WatchSpec(urls=("amqp://127.0.0.1:1",), connect=CONNECT, checkpoint=tmp_path / checkpoint, out=place)
        return StreamingJob(spec, lambda _: None)

    job = watch("one", "out")
    for checkpoint, out, held in (("one", None, "one"), ("two", "out", "out"), ("one", "other", "one")):
        with pytest.raises(RunError, match=f"{held}: error: another process watches with it"):
            watch(checkpoint, out)
    watch("two", None).close()
    job.close()
    watch("two", "out").close()
    watch("one", "one").close()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_rates_may_be_written_where_nothing_can_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    locked, lock = [], fcntl.flock

    def refused(file: IO[str], operation: int) -> None:
        locked.append(Path(file.name).parent.name)
        if locked[-1] == "mounted":
            raise OSError(number, os.strerror(number))
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", refused)

    def watch(checkpoint: str, out: str) -> StreamingJob:
        spec = WatchSpec(
            urls=("amqp://127.0.0.1:1",), connect=CONNECT, checkpoint=tmp_path / checkpoint, out=tmp_path / out
        )
        return StreamingJob(spec, lambda _: None)

    watch("job", "mounted").close()
    assert locked == ["job", "mounted"]
    with pytest.raises(OSError, match=os.strerror(number)):
        watch("mounted", "mounted")


# The command


def test_of_many_links_the_busiest_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    rates = [link_rate("A", f"B{number:02}", number) for number in range(50)]
    Screen(lambda: None, ()).show(from_rows("link_rate", [*rates[:49], {**rates[49], "is_reset": True}]))
    title, _, *lines, more = capsys.readouterr().out.splitlines()
    assert title.strip() == "2026-11-20 12:00:05 UTC, 5.0 s"
    assert len(lines) == ROWS
    assert lines[0].split() == ["A--B49", "A", "B49", "49.0", "4.9", "-", "-", "new", "connection"]
    assert more == "and 10 more"


def link_rate(src: str, dst: str, number: int = 1, *, ended: int = 5) -> dict[str, Any]:
    """A row of the table for the five seconds before second *ended* of a minute."""
    begun_at, ended_at = (datetime(2026, 11, 20, 12, 0, second, tzinfo=UTC) for second in (ended - 5, ended))
    return {
        "begun": begun_at, "ended": ended_at, "link": f"{src}--{dst}", "src": src, "dst": dst,
        "messages": 5 * number, "bytes": 500 * number, "msgs_per_s": float(number), "bytes_per_s": 100.0 * number,
        "capacity_msgs": None, "capacity_bytes": None, "utilisation": None, "headroom": None, "is_reset": False,
    }  # fmt: skip


def test_names_in_brackets_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(lambda: None, ()).show(from_rows("link_rate", [link_rate("A[red]", "B[/x]:warning:")]))
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == [
        "A[red]--B[/x]:warning:", "A[red]", "B[/x]:warning:",
    ]  # fmt: skip


def test_links_that_a_router_tells_nothing_of_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(lambda: None, ())
    silent = [link_rate("B", dst) for dst in "CDEFG"]
    screen.show(from_rows("link_rate", [link_rate("A", "B"), *silent]))
    assert "nothing" not in capsys.readouterr().out
    screen.show(from_rows("link_rate", [link_rate("A", "B", ended=10)]))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "B has reported nothing about B--C, B--D, B--E and 2 more since 12:00:05 UTC"
    screen.show(from_rows("link_rate", [link_rate("A", "B", ended=15), *silent]))
    assert "nothing" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("routers", "said"),
    [
        (None, "no router answers at amqp://a or amqp://b; going on\n"),
        (["A"], "the router at amqp://a or amqp://b reaches no other; going on\n"),
        (["A", "B"], ""),
    ],
)
def test_why_there_is_no_interval_is_said_once_when_it_is_not_sparks_fault(
    routers: list[str] | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen(lambda: routers, ("amqp://a", "amqp://b"))
    screen.complain(60.0)
    assert capsys.readouterr().err == ""
    for _ in range(3):
        screen.complain(0.0)
    assert capsys.readouterr().err == said


def start_watch(mesh: MeshProcesses, folder: Path) -> subprocess.Popen[bytes]:
    """The command in a process, and a process group, of its own."""
    command = [sys.executable, "-m", "router", "whatif", "watch", mesh.url("R3"), "--interval", "0.5"]
    command += ["--checkpoint", str(folder / "job"), "-o", str(folder / "out"), "--capacity-msgs", "1000"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def files(folder: Path) -> int:
    return len(list((folder / "out" / "link_rate").glob("*.parquet")))


def no_warning(process: subprocess.Popen[bytes]) -> None:
    """Kill it with Java, without a moment for anything."""


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does, without a terminal."""
    process.send_signal(signal.SIGINT)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """As `timeout` does."""
    os.killpg(process.pid, signal.SIGTERM)


def end_all(process: subprocess.Popen[bytes]) -> None:
    """As systemd does: all processes of a service, Java among them."""
    found = [process.pid]
    for pid in found:
        children = Path(f"/proc/{pid}/task").glob("*/children")
        found += [int(child) for file in children for child in file.read_text(encoding="ascii").split()]
    assert len(found) > 1
    for pid in reversed(found):
        with contextlib.suppress(ProcessLookupError):  # it has ended with another one
            os.kill(pid, signal.SIGTERM)


def test_java_is_not_in_the_process_group_that_is_signalled(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    assert os.getpgid(gateway.proc.pid) != os.getpgid(0)


def test_the_end_of_java_is_no_traceback_of_those_that_listen_to_it(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    server: Any = spark.sparkContext._accumulatorServer
    for error, is_told in ((EOFError(), False), (ConnectionResetError(), False), (ValueError("no token"), True)):
        try:
            raise error
        except type(error):
            server.handle_error(None, ("127.0.0.1", 1))
        assert ("Traceback" in capsys.readouterr().err) is is_told
    said = logging.LogRecord("root", logging.ERROR, "", 0, LOGGED_BY_PY4J, (), None)
    assert not logging.getLogger().filter(said)


@pytest.mark.slow
def test_killed_and_started_again_it_has_lost_nothing_and_counted_nothing_twice(
    mesh: MeshProcesses, traffic: Traffic, tmp_path: Path
) -> None:
    sent, endings = 0, (no_warning, interrupt, end_group, end_all)
    for number, end in enumerate(endings):
        before = files(tmp_path)
        process = start_watch(mesh, tmp_path)
        try:
            while files(tmp_path) < before + 2:
                assert process.poll() is None, (tmp_path / "log").read_text(errors="replace")[-3000:]
                traffic.idle()
            traffic.send(100 + number)
            sent += 100 + number
            if end is not no_warning:
                wait_until(lambda sent=sent: forth(tmp_path / "out", "R1--R2") >= sent, "all intervals", 30.0)
                end(process)
                assert process.wait(30.0) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        # Nobody watches.
        traffic.send(10)
        sent += 10
    # A reading that was made and not kept, when the job was killed, leaves its messages to the next one.
    assert 0 <= forth(tmp_path / "out", "R1--R2") - (sent - 10) <= 2
    assert 0 <= forth(tmp_path / "out", "R2--R3", asked=2) - (sent - 10) <= 4
    assert_without_gaps(read_table(tmp_path / "out", "link_rate"))
    text = (tmp_path / "log").read_text(encoding="utf-8")
    assert not {"Traceback", "Exception", "ERROR"} & set(re.findall(r"\w+", text)), text
    assert "utilisation" in text


def test_the_command_shows_one_interval(
    mesh: MeshProcesses, traffic: Traffic, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for `run`, which takes these variables: this command works on this machine.
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    monkeypatch.setenv("MASTER", "spark://127.0.0.1:1")
    model = Model(
        name="line",
        routers=[RouterNode(id=name) for name in ("R1", "R2", "R3")],
        links=[LinkEdge(id="wire", a="R1", b="R2", capacity_msgs=0.001), LinkEdge(id="R2--R3", a="R2", b="R3")],
    )
    write_model(model, tmp_path / "model")
    arguments = ["whatif", "watch", mesh.url("R1"), "--once", "--interval", "0.2"]
    arguments += ["--checkpoint", str(tmp_path / "job"), "--model", str(tmp_path / "model")]
    traffic.send(5)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    traffic.send(20)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith(("wire", "R2--R3"))]
    assert rows[0][:3] == ["wire", "R1", "R2"], "the busiest one comes first"
    assert rows[0][6] == "%"
    assert [row[5] for row in rows if row[0] == "R2--R3"] == ["-", "-"]
    assert not (tmp_path / "link_rate").exists()


@pytest.mark.slow
def test_the_command_comes_by_tls_and_as_a_user(spark: SparkSession, tmp_path: Path) -> None:
    made = secured_mesh(tmp_path / "files")
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n", encoding="utf-8")
    with MeshProcesses(made.settings, tmp_path / "mesh") as mesh:
        mesh.start()
        mesh.wait_converged()
        url = mesh["A"].url(index=1).replace("amqp://", "amqps://").replace("127.0.0.1", "localhost")
        arguments = ["whatif", "watch", "amqp://127.0.0.1:1", url, "--once", "--interval", "0.1"]
        arguments += ["--checkpoint", str(tmp_path / "job"), "--user", USER, "--ca", made.certificates.ca]
        arguments += ["-o", str(tmp_path / "rates"), "--addresses"]
        result = CliRunner().invoke(main, [*arguments, "--password-file", str(secret), "--sasl", "SCRAM-SHA-256"])
        assert result.exit_code == 0, result.output
        assert "A--B" in result.stdout
        entered = read_table(tmp_path / "rates", "address_rate").to_pylist()
        assert {(row["router"], row["address"], row["messages"]) for row in entered} == {("A", "", 0), ("B", "", 0)}
        kept = [
            path for path in (tmp_path / "job").rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()
        ]
        assert not kept


def test_the_command_says_that_nobody_answers_before_spark_starts(tmp_path: Path) -> None:
    arguments = ["whatif", "watch", "amqp://127.0.0.1:1", "--once", "--interval", "0.1", "--checkpoint"]
    result = CliRunner().invoke(main, [*arguments, str(tmp_path / "job")])
    assert result.exit_code == 1
    assert "no router answers at amqp://127.0.0.1:1" in result.output
    assert not (tmp_path / "job").exists()
