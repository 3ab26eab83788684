"""`amqp-mesh replay`, and the recordings that a router writes: on a signal, after a fault, where there is no room."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from mesh_config.generators import generate
from mesh_config.models import RecorderSettings
from router.cli import main
from router.core.events import Action
from router.flight_recorder import FAULT_PAUSE_S, SIGNAL, FlightRecorder
from router.runtime import Runtime
from tests.helpers.engine import Bench
from tests.helpers.processes import MeshProcesses


@pytest.fixture
def bench() -> Iterator[Bench]:
    """Routers without sockets."""
    made = Bench()
    yield made
    made.close()


def replay(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


class Log:
    """Keeps lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []
        self.came = threading.Event()

    def __getattr__(self, level: str) -> Callable[..., None]:
        def line(event: str, **fields: Any) -> None:
            self.lines.append((level, event, fields))
            self.came.set()

        return line


def recorder_of(router: Runtime, log: Log, **settings: Any) -> FlightRecorder:
    """Another recorder of the router's control plane, with a log of its own."""
    new_file = settings.pop("new_file", None)
    words = {"new_file": new_file} if new_file else {}
    made = FlightRecorder(router.control, RecorderSettings(**settings), clock=router.clock, log=log, **words)
    router.recorder = made
    return made


def test_sigusr1_writes_a_recording_that_replay_plays(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    settings = generate("line", 2)
    recorder = RecorderSettings(directory=str(folder))
    routers = {name: attrs.evolve(router, recorder=recorder) for name, router in settings.routers.items()}
    with MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        router = mesh[next(iter(mesh.routers))]
        router.send_signal(signal.SIGUSR1)
        line = router.wait_log("recording_written")
        assert router.is_running
    path = Path(line.fields["path"])
    assert list(folder.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = replay(path)
    assert found.exit_code == 0, found.output
    assert "the replay does what was recorded" in found.output
    assert "is up, cost 1" in found.output


def test_without_a_directory_sigusr1_writes_to_that_of_temporary_files(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    recorder = recorder_of(bench.router("A"), Log())
    recorder.write(SIGNAL)
    recorder.close()
    (file,) = tmp_path.iterdir()
    assert replay(file).exit_code == 0


def test_after_a_fault_made_on_purpose_a_recording_is_there_and_names_it(bench: Bench, tmp_path: Path) -> None:
    a, b = bench.router("A", is_forgiving=True), bench.router("B")
    log = Log()
    recorder = recorder_of(a, log, directory=str(tmp_path))
    bench.join(a, b)
    bench.advance(2)
    driver = a.control.handle_deadline

    def broken(*, now: float) -> list[Action]:
        a.control.handle_deadline = driver  # type: ignore[method-assign]
        raise ZeroDivisionError("a bug")

    a.control.handle_deadline = broken  # type: ignore[method-assign]
    bench.advance(2)
    recorder.close()
    (file,) = tmp_path.iterdir()
    found = replay(file, "--last", 2)
    assert found.exit_code == 1
    assert "turn_fault" in found.output
    assert "recorded ZeroDivisionError raised" in found.output
    bench.advance(1)
    recorder.fault("turn_fault")
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 1, "one in each pause"
    bench.advance(FAULT_PAUSE_S)
    recorder.fault("turn_fault")
    recorder.close()
    assert len(list(tmp_path.iterdir())) == 2


def test_without_a_directory_a_fault_writes_nothing(bench: Bench) -> None:
    router, log = bench.router("A"), Log()
    recorder = recorder_of(router, log)
    recorder.fault("turn_fault")
    recorder.close()
    assert log.lines == []


def test_a_full_disk_is_told_of_once_and_touches_nothing_else(bench: Bench, tmp_path: Path) -> None:
    router, log = bench.router("A"), Log()
    recorder = recorder_of(router, log, directory=str(tmp_path), new_file=lambda _: os.open("/dev/full", os.O_WRONLY))
    for _ in range(3):
        recorder.fault("turn_fault")
        recorder.close()
        bench.advance(FAULT_PAUSE_S + 1)
    assert [(level, event) for level, event, _ in log.lines] == [("warning", "recording_failed")]
    assert log.lines[0][2]["reason"] == "No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_no_more_files_than_the_setting_says_and_none_is_overwritten(bench: Bench, tmp_path: Path) -> None:
    router, log = bench.router("A/\u202eB"), Log()
    recorder = recorder_of(router, log, directory=str(tmp_path), max_files=2)
    for _ in range(4):
        recorder.write(SIGNAL)
        recorder.close()
    assert [event for _, event, _ in log.lines] == ["recording_written"] * 2 + ["recording_failed"] * 2
    assert len(list(tmp_path.iterdir())) == 2
    assert "max_files" in log.lines[-1][2]["reason"]


@pytest.mark.parametrize("directory", ["/nonexistent", "/dev/null"])
def test_a_directory_that_is_none_is_told_of(bench: Bench, directory: str) -> None:
    router, log = bench.router("A"), Log()
    recorder = recorder_of(router, log, directory=directory)
    recorder.write(SIGNAL)
    recorder.close()
    assert [(event, fields["path"]) for _, event, fields in log.lines] == [("recording_failed", directory)]


def test_where_no_directory_for_temporary_files_can_be_used_that_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_usable() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none_usable)
    log = Log()
    recorder = recorder_of(bench.router("A"), log)
    recorder.write(SIGNAL)
    recorder.close()
    fields = {"path": "", "of": SIGNAL, "reason": "No usable temporary directory found"}
    assert log.lines == [("warning", "recording_failed", fields)]


def test_a_directory_where_nothing_can_be_written_is_told_of_at_the_start(bench: Bench, tmp_path: Path) -> None:
    router, log = bench.router("A"), Log()
    for directory in (None, str(tmp_path)):
        recorder_of(router, log, directory=directory).check_directory()
    assert log.lines == []
    for directory, reason in (("/nonexistent", "is no directory"), ("/dev/null", "is no directory")):
        recorder_of(router, log, directory=directory).check_directory()
        fields = {"path": directory, "of": "start", "reason": reason}
        assert log.lines.pop() == ("warning", "recording_failed", fields)


def test_a_recorder_that_is_off_keeps_nothing_and_says_so(bench: Bench, tmp_path: Path) -> None:
    router, log = bench.router("A"), Log()
    recorder = recorder_of(router, log, directory=str(tmp_path), max_bytes=0)
    assert recorder.plane is router.control
    recorder.fault("turn_fault")
    assert log.lines == []
    recorder.write(SIGNAL)
    assert log.lines[0][2]["reason"] == "the recorder is off"


def test_a_fault_of_the_recorder_itself_leaves_the_router_as_it_is(bench: Bench) -> None:
    a, b = bench.router("A"), bench.router("B")
    log = Log()
    recorder = recorder_of(a, log, max_calls=16)
    a.control.unpicklable = lambda: None  # type: ignore[attr-defined]
    bench.join(a, b)
    bench.advance(20)
    assert [event for _, event, _ in log.lines] == ["recorder_fault"]
    assert recorder.plane is a.control
    assert set(a.fib.routes) == {"B"}


@pytest.fixture
def recording(bench: Bench, tmp_path: Path) -> Path:
    """Of a router with a neighbor and a subscriber."""
    b = bench.router("B")
    bench._rng = random.Random(2)  # chance of its own, as a process has
    a = bench.router("A")
    recorder = recorder_of(a, Log(), directory=str(tmp_path))
    bench.join(a, b)
    bench.client(a).receiver("topic", credit=1)
    bench.advance(10)
    recorder.write(SIGNAL)
    recorder.close()
    (file,) = tmp_path.iterdir()
    return file


def test_replay_shows_events_actions_and_where_the_router_stood(recording: Path) -> None:
    found = replay(recording)
    assert found.exit_code == 0, found.output
    for words in (
        "recording of A", "first subscriber of topic, balanced", "connection 1 to B is up", "install router B",
        "next deadline", "the replay does what was recorded",
    ):  # fmt: skip
        assert words in found.output


def test_replay_says_why_calls_cannot_be_played(bench: Bench, tmp_path: Path) -> None:
    a, b = bench.router("A"), bench.router("B")
    recorder = recorder_of(a, Log(), directory=str(tmp_path), max_bytes=10_000)
    bench.join(a, b)
    bench.client(a).receiver("topic", credit=1)
    bench.advance(10)
    recorder.write(SIGNAL)
    recorder.close()
    (file,) = tmp_path.iterdir()
    for options in ((), ("--json",)):
        found = replay(file, *options)
        assert found.exit_code == 1
        assert f"Error: {file}: nothing of it could be played\n" in found.output
    found = replay(file)
    assert re.search(
        r"\n\d+ calls can't be played: the state before them was not kept, as it was too large, or another had been"
        r" made shortly before\n",
        found.output,
    ), found.output


def test_replay_writes_json_and_only_the_calls_asked_for(recording: Path) -> None:
    whole = json.loads(replay(recording, "--json").output)
    assert whole["differences"] == []
    assert [router["router"] for router in whole["end"]["routers"]] == ["A", "B"]
    part = json.loads(replay(recording, "--json", "--from", 2, "--to", 5).output)["calls"]
    assert part == [call for call in whole["calls"] if 2 <= call["at"] <= 5]
    assert part
    assert json.loads(replay(recording, "--json", "--last", 3).output)["calls"] == whole["calls"][-3:]


def test_of_a_cut_recording_replay_plays_what_is_there_and_says_so(recording: Path) -> None:
    *whole, last = recording.read_bytes().splitlines(keepends=True)
    recording.write_bytes(b"".join([*whole, last[: len(last) // 2]]))
    found = replay(recording)
    assert found.exit_code == 1
    assert "it is cut there; what comes before was played" in found.output
    assert "connection 1 to B is up" in found.output


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 1000, b"router: {id: A}\n"], ids=["empty", "binary", "settings"])
def test_what_is_no_recording_gets_one_line_that_says_so(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    found = replay(file)
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        f"Error: {file}: no recording of amqp-mesh: its first line has no 'amqp-mesh-recording'"
    ]


@pytest.mark.parametrize("option", [(), ("--json",)], ids=["words", "json"])
def test_values_of_a_wrong_kind_in_a_state_get_a_line_that_says_where(
    recording: Path, option: tuple[str, ...], rng: random.Random
) -> None:
    lines = recording.read_text().splitlines(keepends=True)
    values = list(re.finditer(r'(?<=[:,\[])(-?\d[\d.e-]*|"[A-Z]")(?=[],}])', lines[1]))
    errors = []
    for value in rng.sample(values, 150):
        other = "5" if value.group().startswith('"') else f'"{value.group()}"'
        spoilt = f"{lines[1][: value.start()]}{other}{lines[1][value.end() :]}"
        recording.write_text("".join((lines[0], spoilt, *lines[2:])))
        found = replay(recording, *option)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.output
        if found.exit_code and found.output.startswith("Error: "):
            errors.append(found.output)
    assert errors
    assert all(re.match(f"Error: {recording}: line 2: ", error) for error in errors)
