"""`amqp-mesh demo` and `amqp-mesh demo --keep`, as an operator runs them."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import attrs
import proton
import pytest
from proton.utils import BlockingConnection

pytestmark = pytest.mark.interop

MARK = "AMQP_MESH_TEST_MARK"
"""Variable of the environment by which processes that a test started are found."""
ROUTER_LINE = re.compile(r"(?P<router>[A-D]) (?P<url>amqp://127\.0\.0\.1:\d+) pid (?P<pid>\d+)\n")
STOP_S = 20.0
START_S = 40.0
WITHOUT_OSLO = "import sys; sys.modules['oslo_messaging'] = None; from router.cli import main; main(sys.argv[1:])"

needs_oslo = pytest.mark.skipif(
    importlib.util.find_spec("oslo_messaging") is None and "AMQP_MESH_TEST_INSTALLED" not in os.environ,
    reason="needs the extra `demo`",
)


def processes(mark: str) -> list[int]:
    """Processes that were started with *mark*, by whomever, and live."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it has just ended
            continue
    return sorted(found)


def wait_for(condition: Callable[[], object], what: str, seconds: float = STOP_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} not within {seconds:g} s"
        time.sleep(0.05)


def demo(*arguments: str, mark: str, without_oslo: bool = False) -> subprocess.Popen[str]:
    how = ["-c", WITHOUT_OSLO] if without_oslo else ["-m", "router"]
    return subprocess.Popen(
        [sys.executable, *how, "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
    )


@attrs.frozen
class Kept:
    """A running `demo --keep`."""

    process: subprocess.Popen[str]
    mark: str
    urls: dict[str, str]
    pids: dict[str, int]


@contextmanager
def kept() -> Iterator[Kept]:
    mark = uuid.uuid4().hex
    with demo("--keep", mark=mark, without_oslo=True) as process:
        try:
            assert process.stdout is not None
            found = [ROUTER_LINE.fullmatch(process.stdout.readline()) for _ in range(4)]
            lines = [match for match in found if match is not None]
            assert [match["router"] for match in lines] == ["A", "B", "C", "D"]
            yield Kept(
                process,
                mark,
                {match["router"]: match["url"] for match in lines},
                {match["router"]: int(match["pid"]) for match in lines},
            )
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def mesh() -> Iterator[Kept]:
    with kept() as running:
        yield running


def cross(url_in: str, url_out: str, address: str) -> object:
    """The body of a message that was sent to one router and received from another."""

    def receive() -> object:
        connection = BlockingConnection(url_out, timeout=STOP_S)
        try:
            receiver = connection.create_receiver(address)
            message = receiver.receive(timeout=STOP_S)
            receiver.accept()
            return message.body
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(receive)
        connection = BlockingConnection(url_in, timeout=STOP_S)
        try:
            connection.create_sender(address).send(proton.Message(body=f"from {url_in}"))
        finally:
            connection.close()
        return received.result(STOP_S)


@needs_oslo
@pytest.mark.slow
def test_calls_go_on_by_another_way_after_the_cut(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with demo("--seconds", "6", "--rate", "45", "--logs", str(tmp_path), mark=mark) as process:
        output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, output + errors
    assert errors == ""
    assert "the link A-C is cut" in output
    assert re.search(r"\d ms after the cut: calls go by C -> (B|D) -> A", output)
    assert re.search(r" C +server-A +\d+ +\d+  C -> A +C -> (B|D) -> A ", output)
    assert re.search(r" server-D +\d+ +0  C -> D +C -> D ", output)
    assert re.search(r" B +server-A +\d+ +0  B -> A +B -> A ", output)
    assert re.search(r"^casts: +[1-9]\d+ sent, [1-9]\d+ received$", output, re.MULTILINE)
    assert re.search(r"^fanout casts: [1-9]\d* sent, received \d+ by server-A, \d+ by server-D$", output, re.MULTILINE)
    assert "calls were answered" in output
    assert processes(mark) == []
    faults = [
        line
        for path in tmp_path.glob("router-*.log")
        for line in path.read_text().splitlines()
        if "level=error" in line
    ]
    assert faults == []


def test_keep_prints_where_the_routers_are_and_nothing_else(mesh: Kept) -> None:
    for router, pid in mesh.pids.items():
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        assert command[1:4] == ["-m", "router", "run"]
        assert command[-3:-1] == ["--router", router]
    mesh.process.send_signal(signal.SIGINT)
    output, errors = mesh.process.communicate(timeout=STOP_S)
    assert (output, errors, mesh.process.returncode) == ("", "", 0)


def test_messages_cross_the_kept_mesh(mesh: Kept) -> None:
    for one, other in ("AD", "DB", "BC", "CA"):
        assert cross(mesh.urls[one], mesh.urls[other], "demo/keep") == f"from {mesh.urls[one]}"


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_keep_ends_its_routers_when_it_is_told_to_end(mesh: Kept, number: signal.Signals) -> None:
    mesh.process.send_signal(number)
    assert mesh.process.wait(STOP_S) == 0
    assert processes(mesh.mark) == []


@pytest.mark.slow
def test_told_to_end_twice_it_ends_once(mesh: Kept) -> None:
    """The second signal comes while it waits for a router that doesn't end."""
    command = Path(f"/proc/{mesh.pids['A']}/cmdline").read_bytes().decode().split("\0")
    folder = Path(command[4]).parent
    assert folder.is_dir()
    os.kill(mesh.pids["A"], signal.SIGSTOP)
    mesh.process.send_signal(signal.SIGTERM)
    wait_for(lambda: mesh.pids["D"] not in processes(mesh.mark), "the end of the others")
    mesh.process.send_signal(signal.SIGTERM)
    mesh.process.send_signal(signal.SIGHUP)
    os.kill(mesh.pids["A"], signal.SIGCONT)
    assert mesh.process.wait(STOP_S) == 0
    assert processes(mesh.mark) == []
    assert not folder.exists()


def test_routers_do_not_outlive_a_keep_that_was_killed(mesh: Kept) -> None:
    assert len(processes(mesh.mark)) == 1 + len(mesh.pids)
    mesh.process.kill()
    wait_for(lambda: not processes(mesh.mark), "the end of all routers")


def test_the_other_routers_stay_when_one_is_killed(mesh: Kept) -> None:
    os.kill(mesh.pids["B"], signal.SIGKILL)
    assert mesh.process.stderr is not None
    line = mesh.process.stderr.readline()
    assert line.startswith(f"router B (pid {mesh.pids['B']}) was ended by SIGKILL")
    assert cross(mesh.urls["A"], mesh.urls["C"], "demo/rest") == f"from {mesh.urls['A']}"
    assert mesh.process.poll() is None
    mesh.process.send_signal(signal.SIGINT)
    assert mesh.process.wait(STOP_S) == 0
    assert processes(mesh.mark) == []


@needs_oslo
@pytest.mark.slow
def test_nothing_outlives_a_demonstration_that_was_killed(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    with demo("--logs", str(tmp_path), mark=mark) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "begin" in line:
                    break
            assert len(processes(mark)) == 1 + 4 + 1 + 1 + 5  # itself, routers, wire, watch, clients
        finally:
            process.kill()
        process.communicate(timeout=STOP_S)
    wait_for(lambda: not processes(mark), "the end of all processes")


def test_without_the_extra_it_says_how_to_install_it() -> None:
    with demo(mark=uuid.uuid4().hex, without_oslo=True) as process:
        output, errors = process.communicate(timeout=START_S)
    assert output == ""
    assert errors.splitlines() == [
        "Error: this needs oslo.messaging: pip install '.[demo]' in a clone of its repository"
    ]
    assert process.returncode == 2
