"""Every example runs, across routers, as its page says."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from proton import Event

from tests.helpers.fake_management import FakeRouter
from tests.helpers.fake_management import running as fake_router

pytestmark = pytest.mark.interop

EXAMPLES = Path(__file__).parents[2] / "examples"
STOP_S = 15
FOUND_S = 30

needs_oslo = pytest.mark.skipif(
    importlib.util.find_spec("oslo_messaging") is None and "AMQP_MESH_TEST_INSTALLED" not in os.environ,
    reason="needs the extra `demo`",
)


@contextmanager
def running(*command: str, until: str, told: list[str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed a line with `until`, up to which *told* gets all; ended by an interrupt."""
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if told is not None:
                    told.append(line)
                if until in line:
                    break
            else:
                pytest.fail(f"{command} ended with {process.wait()} before it printed {until!r}")
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def example(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(EXAMPLES / name), *arguments)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def mesh() -> Iterator[dict[str, str]]:
    """URL of each of four routers, as `amqp-mesh demo --keep` prints them."""
    with subprocess.Popen(
        [sys.executable, "-m", "router", "demo", "--keep"], stdout=subprocess.PIPE, text=True, bufsize=1
    ) as demo:
        assert demo.stdout is not None
        urls = {}
        for line in demo.stdout:
            router, url, *_ = line.split()
            urls[router] = url
            if len(urls) == 4:
                break
        try:
            assert sorted(urls) == ["A", "B", "C", "D"]
            yield urls
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(STOP_S)


class Cutting(FakeRouter):
    """Takes messages without an outcome, and cuts the connection at the second one."""

    def __init__(self) -> None:
        super().__init__(auto_accept=False)
        self.received = 0

    def on_message(self, event: Event) -> None:
        self.received += 1
        if self.received == 2:
            event.transport.close_tail()
            event.transport.close_head()


def test_the_proton_sender_ends_where_its_connection_is_lost_under_its_last_messages() -> None:
    with fake_router(Cutting()) as url:
        sent = run(*example("proton_pair.py", "send", "--url", f"{url}/example", "--count", "2"))
    assert sent.stdout.splitlines() == ["sent 1, connection lost", "sent 2, connection lost"]
    assert sent.returncode == 1


def test_the_proton_pair_crosses_the_mesh(mesh: dict[str, str]) -> None:
    receive = example("proton_pair.py", "receive", "--url", f"{mesh['D']}/example", "--count", "5")
    with running(*receive, until="receiving") as receiver:
        sent = run(*example("proton_pair.py", "send", "--url", f"{mesh['A']}/example", "--count", "5"))
        assert sent.stdout.splitlines() == [f"sent {number}, accepted" for number in range(1, 6)], sent.stderr
        assert sent.returncode == 0
        assert receiver.stdout is not None
        assert receiver.stdout.read().splitlines() == [f"received message {number}" for number in range(1, 6)]
        assert receiver.wait(STOP_S) == 0


def test_the_proton_pair_needs_an_address(mesh: dict[str, str]) -> None:
    refused = run(*example("proton_pair.py", "send", "--url", mesh["A"]))
    assert refused.returncode == 2
    assert "--url: expected an address" in refused.stderr


@pytest.mark.parametrize("what", ["receive", "send"])
def test_the_proton_pair_says_that_its_link_is_refused(mesh: dict[str, str], what: str) -> None:
    refused = run(*example("proton_pair.py", what, "--url", f"{mesh['A']}/{'x' * 2000}"))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "refused, amqp:invalid-field: " in refused.stderr


@needs_oslo
def test_the_oslo_caller_reaches_the_server_behind_another_router(mesh: dict[str, str]) -> None:
    with running(*example("oslo_server.py", f"{mesh['A']}/", "--name", "server-1"), until="serves") as server:
        called = run(*example("oslo_caller.py", f"{mesh['B']}/", "--count", "3"))
        assert called.returncode == 0, called.stderr
        answers = called.stdout.splitlines()
        assert [answer.partition(" (")[0] for answer in answers] == [
            *(f"hello caller {number}, this is server-1" for number in (1, 2, 3)),
            "cast to one, cast to all",
        ]
        assert server.stdout is not None
        got = [server.stdout.readline().strip() for _ in range(5)]
        greeted = [f"greet caller {number}" for number in (1, 2, 3)]
        assert sorted(got) == sorted([*greeted, "note one of you gets this", "note all of you get this"])


@pytest.mark.slow
@needs_oslo
def test_the_oslo_caller_says_that_nobody_answers(mesh: dict[str, str]) -> None:
    called = run(*example("oslo_caller.py", f"{mesh['C']}/", "--topic", "nobody", "--timeout", "1"))
    assert called.returncode == 1
    assert "no answer within 1 s" in called.stderr


@pytest.mark.slow
def test_a_staged_fault_is_one_that_an_operator_finds() -> None:
    told: list[str] = []
    staging = example("staged_faults.py", "dead-router", "slow-server", "--after", "0", "--seed", "1")
    with running(*staging, until="something is wrong", told=told) as staged:
        url = told[-2].strip().partition("AMQP_MESH_URL=")[2]
        problems = "router-absent", "grants no credit"
        said = ""
        end = time.monotonic() + FOUND_S
        while not all(each in said for each in problems):
            assert time.monotonic() < end, said
            said = run("-m", "router", "stat", "problems", "--url", url).stdout
        staged.send_signal(signal.SIGINT)
        assert staged.stdout is not None
        truth = staged.stdout.read().splitlines()
    assert [line.partition(":")[0] for line in truth] == ["It was a dead router", "It was a slow server"]


def test_the_what_if_script_names_the_pairs_that_a_dead_router_parts() -> None:
    asked = run(*example("what_if.py", str(EXAMPLES / "meshes" / "line.yaml"), "--kill", "B"))
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.splitlines()[-1] == "pairs that have lost each other: A-C"


def test_the_what_if_script_says_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "mesh.yaml").write_text("routers: {A: {listener: []}}")
    asked = run(*example("what_if.py", str(tmp_path / "mesh.yaml")))
    assert asked.returncode == 1
    assert "did you mean `listeners`?" in asked.stderr
    assert "Traceback" not in asked.stderr


def test_the_what_if_script_says_that_a_mesh_has_not_settled() -> None:
    """Without any time, as one would see of a fault of the routing protocol; also with `python -O`."""
    code = "import sys; sys.path[0] = sys.argv[1]; del sys.argv[1]; import what_if; what_if.LIMIT_S = 0; what_if.main()"
    words = [sys.executable, "-O", "-c", code, str(EXAMPLES), str(EXAMPLES / "meshes" / "line.yaml")]
    asked = subprocess.run(words, capture_output=True, text=True, check=False, cwd=EXAMPLES.parent)
    assert asked.returncode == 1, asked.stdout
    assert asked.stderr.startswith("after 0 s the control planes have other paths: ")


def test_the_what_if_script_names_the_routers_there_are() -> None:
    asked = run(*example("what_if.py", str(EXAMPLES / "meshes" / "blueprint.yaml"), "--kill", "Q"))
    assert asked.returncode == 2
    assert "there are A, B, C, D" in asked.stderr
