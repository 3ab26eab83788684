"""`call`, beside servers that die, give a request back, or answer something else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from proton import Delivery, Message

from mesh_config.generators import generate
from router.cli import main
from tests.helpers.processes import MeshProcesses
from tests.helpers.sockets import Sockets

pytestmark = pytest.mark.interop

WAIT_S = 20


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with MeshProcesses(generate("line", 1), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        yield mesh.url("R1")


@contextmanager
def requested(
    url: str, timeout_s: float, *, credit: int = 1
) -> Iterator[tuple[Sockets, Any, Any, subprocess.Popen[str]]]:
    """A server with the request of a `call`. Yields: sockets, its connection, its link, and the command."""
    sockets = Sockets()
    server = sockets.client(url)
    requests = server.receiver("odd", credit=credit)
    words = ("call", "odd", "x", "--url", url, "--timeout", str(timeout_s))
    caller = subprocess.Popen(
        [sys.executable, "-m", "router", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with caller:
        sockets.wait(lambda: requests.messages)
        yield sockets, server, requests, caller
        sockets.close()


def test_of_a_server_that_dies_it_is_not_said_that_none_has_seen_the_request(url: str) -> None:
    with requested(url, WAIT_S) as (sockets, _, _, caller):
        sockets.close()
        _, said = caller.communicate(timeout=WAIT_S)
    assert caller.returncode == 1
    assert said == (
        "Error: the request to odd was modified (delivery-failed): a server may have seen it, and acted upon it\n"
    )


@pytest.mark.parametrize("is_failed", [False, True])
def test_a_request_that_is_given_back_is_told_by_its_flag(url: str, is_failed: bool) -> None:
    with requested(url, WAIT_S) as (sockets, _, requests, caller):
        requests.messages[0].modify(failed=is_failed, undeliverable=False)
        sockets.step()
        _, said = ended(sockets, caller)
    assert caller.returncode == 1
    assert ("no server has taken it" in said) is not is_failed
    assert ("a server may have seen it" in said) is is_failed


def test_of_a_server_that_holds_the_request_it_is_said_that_it_has_no_outcome(url: str) -> None:
    with requested(url, 1.0, credit=50) as (sockets, _, _, caller):
        _, said = ended(sockets, caller)
    assert caller.returncode == 1
    assert "The subscriber " in said
    assert " at R1 has 1 message without outcome" in said
    assert "other publishers hold it" not in said


def test_of_a_request_that_a_server_releases_it_is_not_said_who_holds_the_credit(url: str) -> None:
    with requested(url, WAIT_S, credit=50) as (sockets, _, requests, caller):
        requests.messages[0].settle(Delivery.RELEASED)
        sockets.step()
        _, said = ended(sockets, caller)
    assert caller.returncode == 1
    begun = "Error: the request to odd was released: no server has taken it. A subscriber gave it back, or "
    assert said.startswith(begun)


def ended(sockets: Sockets, process: subprocess.Popen[str]) -> tuple[str, str]:
    """What a command has written when it has ended, while what is on the sockets passes."""
    sockets.wait(lambda: process.poll() is not None)
    return process.communicate()


@pytest.mark.parametrize(("correlation", "shown"), [("other", "`other`"), (None, "none"), (7, "`7`")])
def test_a_reply_to_another_request_is_told_with_its_correlation_id(url: str, correlation: object, shown: str) -> None:
    def stray(request: Message) -> bytes:
        return bytes(Message(body="reply", correlation_id=correlation).encode())

    status, output, said = answered(url, stray, timeout_s=1.0)
    assert (status, output) == (1, "")
    assert said == (
        "Error: no reply to this request from odd within 1 s: a reply came, whose correlation id is " + shown + "\n"
    )


def test_a_reply_whose_body_is_cut_off_is_no_empty_one(url: str) -> None:
    def cut_off(request: Message) -> bytes:
        return bytes(Message(body="reply", correlation_id=request.correlation_id).encode())[:-3]

    status, output, said = answered(url, cut_off, timeout_s=WAIT_S)
    assert (status, output) == (1, "")
    assert said.startswith("Error: the reply from odd can't be read: ")


def test_a_reply_in_a_file_is_as_it_came(url: str) -> None:
    body = "a\x1b[31mred\x1b[0m\x07\N{RIGHT-TO-LEFT OVERRIDE}"

    def steering(request: Message) -> bytes:
        return bytes(Message(body=body, correlation_id=request.correlation_id).encode())

    status, output, _ = answered(url, steering, timeout_s=WAIT_S)
    assert (status, output) == (0, f"{body}\n")


def answered(url: str, answer: Callable[[Message], bytes], *, timeout_s: float) -> tuple[int, str, str]:
    """Status, output and errors of a `call` that is answered so."""
    with requested(url, timeout_s) as (sockets, server, requests, caller):
        requests.accepting()
        request = Message()
        request.decode(requests.messages[0].data)
        replies = server.sender(request.reply_to)
        sockets.wait(lambda: replies.credit)
        replies.send(answer(request))
        output, said = ended(sockets, caller)
    return caller.returncode, output, said


def test_a_body_in_a_file_is_as_it_came(url: str, tmp_path: Path) -> None:
    body = "a\x1b[31mred\x1b[0m"
    with (tmp_path / "got").open("wb") as got:
        words = [sys.executable, "-m", "router", "receive", "esc", "--count", "1", "--url", url]
        receiver = subprocess.Popen(words, stdout=got, stderr=subprocess.DEVNULL)
        sent = [sys.executable, "-m", "router", "send", "esc", body, "--url", url, "--timeout", str(WAIT_S)]
        assert subprocess.run(sent, capture_output=True, check=False).returncode == 0
        assert receiver.wait(WAIT_S) == 0
    assert (tmp_path / "got").read_text() == f"{body}\n"


def test_without_a_reply_nothing_is_written_but_why_also_as_json(url: str) -> None:
    words = ("call", "nobody", "x", "--json", "--timeout", "0.2", "--url", url)
    asked = subprocess.run([sys.executable, "-m", "router", *words], capture_output=True, text=True, timeout=WAIT_S)
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr.startswith("Error: ")
    told = " ".join(CliRunner().invoke(main, ["call", "--help"], terminal_width=200).stdout.split())
    assert "Then nothing is written to standard output, not even with --json" in told
