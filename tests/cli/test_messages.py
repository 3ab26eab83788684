"""`send`, `receive` and `call`, as an operator calls them, on a line of three real routers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from proton import Event, Message

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, Role
from router.cli import main
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.cli.message_links import Client
from router.cli.router_access import RouterAccess
from tests.helpers.fake_management import FakeRouter, running
from tests.helpers.peer import message
from tests.helpers.processes import MeshProcesses, wait_until
from tests.helpers.secured_mesh import PASSWORD, USER, secured_mesh
from tests.helpers.sockets import Sockets

pytestmark = pytest.mark.interop

WAIT_S = 20
SMALL_BYTES = 1000
LARGE_BYTES = 20_000_000
IMPATIENT, IMPATIENT_S = 2, 3.0
"""Number among the listeners for clients, from 0, and the time after which it closes silent connections."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 - R2 - R3; other listeners of R1 take only small messages, or wait for heartbeats only a moment."""
    settings = generate("line", 3)
    first = settings.routers["R1"]
    impatient = ListenerSettings(idle_timeout_s=IMPATIENT_S)
    listeners = (*first.listeners, ListenerSettings(max_message_bytes=SMALL_BYTES), impatient)
    routers = {**settings.routers, "R1": attrs.evolve(first, listeners=listeners)}
    with MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh


def command(mesh: MeshProcesses, router: str, words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "router", *words, "--url", mesh.url(router)]


def call(mesh: MeshProcesses, *words: str, said: str | bytes = "") -> subprocess.CompletedProcess[str]:
    """Run a command at R1; *said* is its standard input."""
    text = said.encode() if isinstance(said, str) else said
    done = subprocess.run(command(mesh, "R1", words), capture_output=True, input=text, timeout=60, check=False)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def killed_at_the_end(process: subprocess.Popen[str]) -> Iterator[None]:
    """Leave no process behind, whatever becomes of the test."""
    with process:
        try:
            yield
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line of its standard output; what there is of it when it ends, or has written none in time."""
    assert process.stdout is not None
    late = threading.Timer(WAIT_S, process.kill)
    late.start()
    try:
        return process.stdout.readline()
    finally:
        late.cancel()


@contextmanager
def receiving(mesh: MeshProcesses, address: str, *words: str, router: str = "R3") -> Iterator[subprocess.Popen[str]]:
    """`receive` at R3, once R1 knows of it."""
    process = subprocess.Popen(
        command(mesh, router, ("receive", address, *words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with killed_at_the_end(process):
        with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
            wait_until(
                lambda: any(each["key"] == f"M0{address}" for each in client.query("router.address", ["key"])),
                f"R1 knows {address}",
                WAIT_S,
            )
        yield process


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    return process.communicate(timeout=60)


def test_what_is_sent_is_received_with_its_properties(mesh: MeshProcesses) -> None:
    with receiving(mesh, "all", "--count", "2", "--json") as receiver:
        sent = call(
            mesh, "send", "all", '{"a": [1]}', "--as", "json", "-n", "2", "--ttl", "60", "--subject", "s",
            "-p", "number=5", "-p", "text=x", "--id", "7",
        )  # fmt: skip
        assert (sent.returncode, sent.stderr) == (0, "")
        assert sent.stdout.startswith("2 messages sent to all in ")
        assert sent.stdout.endswith(": 2 accepted\n")
        output, said = ended(receiver)
    assert receiver.returncode == 0
    assert said == ""
    for line in output.splitlines():
        message = json.loads(line)
        assert message["body"] == {"a": [1]}
        assert message["properties"] == {"number": 5, "text": "x"}
        assert (message["id"], message["subject"]) == ("7", "s")
        assert 59 < message["ttl"] <= 60


def test_the_bytes_of_a_file_arrive_as_they_are(mesh: MeshProcesses, tmp_path: Path) -> None:
    octets = bytes(range(256)) * 300
    (tmp_path / "body").write_bytes(octets)
    sent = ("send", "file", "--file", str(tmp_path / "body"))
    with (tmp_path / "got").open("wb") as got:
        receiver = subprocess.Popen(command(mesh, "R3", ("receive", "file", "--count", "1", "--raw")), stdout=got)
        assert call(mesh, *sent, "--timeout", str(WAIT_S)).returncode == 0
        assert receiver.wait(WAIT_S) == 0
    assert (tmp_path / "got").read_bytes() == octets


def test_each_line_of_standard_input_is_a_message(mesh: MeshProcesses) -> None:
    with receiving(mesh, "lines", "--count", "3") as receiver:
        sent = call(mesh, "send", "lines", "--file", "-", "--lines", "--json", said="one\ntwo\nthree\n")
        assert json.loads(sent.stdout)["outcomes"] == [
            {"outcome": "accepted", "condition": None, "description": None, "delivery_failed": False, "count": 3}
        ]
        output, said = ended(receiver)
    assert output.splitlines() == ["one", "two", "three"]
    assert said == "3 messages received from lines\n"


def wait_old(mesh: MeshProcesses, container: str, uptime_s: int) -> None:
    """Wait until the connection of a process to the listener of R1 for the impatient has been there for so long."""
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:

        def is_old() -> bool:
            rows = client.query("connection", ["container", "uptimeSeconds"])
            ours = [row for row in rows if row["container"].startswith(container)]
            return bool(ours) and ours[0]["uptimeSeconds"] >= uptime_s

        wait_until(is_old, f"{container} has stayed {uptime_s} s", WAIT_S)


@pytest.mark.parametrize("is_file", [False, True], ids=["standard input", "a FIFO"])
def test_a_line_is_sent_when_it_comes_and_a_pause_of_the_input_harms_nothing(
    mesh: MeshProcesses, tmp_path: Path, is_file: bool
) -> None:
    with receiving(mesh, "slow-lines", "--count", "3") as receiver:
        os.mkfifo(tmp_path / "fifo")
        words = ("send", "slow-lines", "--file", str(tmp_path / "fifo") if is_file else "-", "--lines")
        url = ("--url", mesh["R1"].url(index=IMPATIENT))
        sender = subprocess.Popen(
            [sys.executable, "-m", "router", *words, *url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with killed_at_the_end(sender), ExitStack() as pipes:
            lines = sender.stdin
            if is_file:
                # Open for both ways it needs no reader: a sender that has failed leaves nobody waiting here.
                descriptor = os.open(tmp_path / "fifo", os.O_RDWR)
                lines = pipes.enter_context(os.fdopen(descriptor, "w"))
            assert lines is not None
            for text in ("one", "two"):
                lines.write(f"{text}\n")
                lines.flush()
                assert next_line(receiver) == f"{text}\n"
            wait_old(mesh, f"amqp-mesh-{sender.pid}-", int(2 * IMPATIENT_S))
            lines.write("three")
            pipes.close()
            output = sender.communicate(timeout=WAIT_S)[0]
        assert sender.returncode == 0
        assert next_line(receiver) == "three\n"
        assert output.startswith("3 messages sent to slow-lines in ")
        assert output.endswith(": 3 accepted\n")


def test_a_call_of_a_line_is_made_when_it_comes_and_a_pause_harms_nothing(mesh: MeshProcesses) -> None:
    with receiving(mesh, "slow-calls", "--echo", "--quiet"):
        words = ("call", "slow-calls", "--file", "-", "--lines", "--url", mesh["R1"].url(index=IMPATIENT))
        caller = subprocess.Popen(
            [sys.executable, "-m", "router", *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        with killed_at_the_end(caller):
            assert caller.stdin is not None
            caller.stdin.write("one\n")
            caller.stdin.flush()
            assert next_line(caller) == "one\n"
            wait_old(mesh, f"amqp-mesh-{caller.pid}-", int(2 * IMPATIENT_S))
            assert caller.communicate("two\n", timeout=WAIT_S)[0] == "two\n"
            assert caller.returncode == 0


def test_a_command_that_was_stopped_is_not_told_that_the_router_was_silent(mesh: MeshProcesses) -> None:
    words = ("receive", "stopped", "--timeout", "60", "--url", mesh["R1"].url(index=IMPATIENT))
    stopped = subprocess.Popen([sys.executable, "-m", "router", *words], stderr=subprocess.PIPE, text=True)
    name = f"amqp-mesh-{stopped.pid}-"
    with killed_at_the_end(stopped):
        with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:

            def is_there() -> bool:
                return any(row["container"].startswith(name) for row in client.query("connection", ["container"]))

            wait_until(is_there, "it is connected", WAIT_S)
            stopped.send_signal(signal.SIGSTOP)
            wait_until(lambda: not is_there(), "the router has closed its connection", WAIT_S)
        stopped.send_signal(signal.SIGCONT)
        said = stopped.communicate(timeout=WAIT_S)[1]
    assert stopped.returncode == 1
    assert "router R1 at " in said
    assert "has closed the connection: nothing came from here for too long" in said


def test_a_password_may_stand_before_the_body_on_standard_input(mesh: MeshProcesses) -> None:
    with receiving(mesh, "after-password", "--count", "3") as receiver:
        words = ("--file", "-", "--user", "u", "--password-file", "-")
        assert call(mesh, "send", "after-password", *words, said="secret\nhello").returncode == 0
        assert call(mesh, "send", "after-password", "--lines", *words, said="secret\nto\nyou").returncode == 0
        assert ended(receiver)[0] == "hello\nto\nyou\n"


class OneRequest(FakeRouter):
    """Sends a request to who subscribes, and grants no credit for the answer."""

    def __init__(self) -> None:
        super().__init__(prefetch=0)
        self.is_sent = False

    def on_link_opening(self, event: Event) -> None:
        event.link.source.address = event.link.remote_source.address
        event.link.target.address = event.link.remote_target.address

    def on_sendable(self, event: Event) -> None:
        if not self.is_sent:
            self.is_sent = True
            event.sender.send(Message("request", reply_to="gone/reply"))


def test_an_answer_that_gets_no_credit_is_told_of() -> None:
    with running(OneRequest()) as url:
        words = ["receive", "x", "--echo", "--count", "1", "--timeout", "0.5", "--url", url]
        found = CliRunner().invoke(main, words)
    assert found.stdout == "request\n"
    assert "Error: no credit for the answer to gone/reply within 0.5 s: not sent" in found.stderr
    assert found.stderr.endswith("1 message received from x\n")


@pytest.mark.parametrize("outcome", ["reject", "release", "modify"])
def test_who_sends_is_told_that_a_message_was_not_taken(mesh: MeshProcesses, outcome: str) -> None:
    with receiving(mesh, outcome, "--count", "2", "--outcome", outcome):
        sent = call(mesh, "send", outcome, "x", "--count", "2")
    assert sent.returncode == 1
    assert sent.stdout.endswith(
        {
            "reject": ": 2 rejected\n",
            "release": ": 2 released\n",
            "modify": ": 2 modified\n  modified: a subscriber gave it back\n",
        }[outcome]
    )


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, 2 * SMALL_BYTES), (3, 2 * SMALL_BYTES), (1, LARGE_BYTES)],
    ids=["one", "three", "refused before all of it has been sent"],
)
def test_a_message_that_is_too_large_is_counted_once_and_ends_its_link(
    mesh: MeshProcesses, count: int, size: int
) -> None:
    url = mesh["R1"].url(Role.NORMAL, 1)
    words = ("send", "small", "--size", str(size), "--count", str(count), "--json", "--url", url)
    with receiving(mesh, "small"):
        done = subprocess.run([sys.executable, "-m", "router", *words], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["sent"] == told["unsettled"] + sum(each["count"] for each in told["outcomes"])
    assert [each["outcome"] for each in told["outcomes"]] == ["rejected"]
    if count > 1:
        assert "has closed the link: " in told["error"]
        assert "larger than" in told["error"]


def test_it_is_said_that_nobody_subscribes(mesh: MeshProcesses) -> None:
    sent = call(mesh, "send", "nobody", "x", "--timeout", "0.5")
    assert sent.returncode == 1
    assert sent.stdout.startswith("0 of 1 messages sent to nobody in ")
    url = mesh.url("R1")
    assert f"Error: router R1 at {url} gave no credit for nobody within 0.5 s." in sent.stderr
    assert "Nobody subscribes to it, as far as R1 reaches." in sent.stderr
    assert f"amqp-mesh trace nobody --url {url}" in sent.stderr


def test_of_an_address_that_nobody_has_the_nearest_one_is_named(mesh: MeshProcesses) -> None:
    with receiving(mesh, "parcels"):
        sent = call(mesh, "send", "parcles", "x", "--timeout", "0.5")
    assert "Nobody subscribes to it, as far as R1 reaches. Did you mean 'parcels'? More: " in sent.stderr


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (
            1,
            "1 message",
        ),
        (3, "3 messages"),
    ],
)
def test_of_what_is_sent_settled_nobody_tells(mesh: MeshProcesses, count: int, words: str) -> None:
    with receiving(mesh, "settled"):
        sent = call(mesh, "send", "settled", "x", "--settled", "--count", str(count))
    assert sent.returncode == 0, sent.stderr
    what = "its outcome is" if count == 1 else "their outcomes are"
    assert re.fullmatch(
        rf"{words} sent settled to settled in [\d.]+ s(, \d+ a second)?: {what} not reported\n", sent.stdout
    )


def test_it_is_said_who_holds_the_credit(mesh: MeshProcesses) -> None:
    with Client(RouterAccess(mesh.url("R3"))) as client:
        slow = client.receiver("slow")
        slow.link.flow(1)
        sender = subprocess.Popen(
            command(mesh, "R1", ("send", "slow", "x", "--count", "2", "--timeout", "1")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert client.wait(lambda: bool(slow.incoming), WAIT_S)
        output, said = ended(sender)
    assert sender.returncode == 1
    assert ": 1 modified, 1 released\n  modified: delivery-failed: a subscriber may have seen it" in output
    assert "at R3 has no credit left" in said
    assert "1 message without outcome" in said


def test_a_call_shows_the_reply(mesh: MeshProcesses) -> None:
    with receiving(mesh, "echo", "--echo", "--quiet"):
        asked = call(mesh, "call", "echo", "hello", "--count", "3")
        assert (asked.returncode, asked.stdout) == (0, "hello\n" * 3)
        assert asked.stderr.startswith("3 calls answered: fastest ")


def test_a_call_that_is_refused_is_told_from_one_that_is_not_answered(mesh: MeshProcesses) -> None:
    with receiving(mesh, "refuses", "--outcome", "reject"):
        refused = call(mesh, "call", "refuses", "x")
    with receiving(mesh, "silent", "--quiet"):
        silent = call(mesh, "call", "silent", "x", "--timeout", "0.5")
    assert [refused.returncode, silent.returncode] == [1, 1]
    assert "the request to refuses was rejected: no server has taken it" in refused.stderr
    assert "no reply from silent within 0.5 s: a server took the request and has not answered" in silent.stderr


UNREADABLE = {
    "no UTF-8": b"\0\x53\x77\xa1\x02\xff\xfe",
    "a map with a list for a key": b"\0\x53\x77\xc1\x03\x02\x45\x40",
}


def test_a_message_that_cannot_be_read_is_rejected_and_the_next_one_shown(mesh: MeshProcesses) -> None:
    sockets = Sockets()
    with receiving(mesh, "odd", "--count", "3", "--credit", "2") as receiver:
        sender = sockets.client(mesh.url("R1")).sender("odd")
        sent = []
        half = b"\0\x53\x77\x73\0\0\xd8\0"  # a character that is half a pair
        numbers = b"\0\x53\x77\x72\x7f\xc0\0\0"  # a float that is no number
        for data in (*UNREADABLE.values(), half, *UNREADABLE.values(), numbers, message("good")):
            sockets.wait(lambda: sender.credit)
            sent.append(sender.send(data))
        sockets.wait(lambda: all(one.outcome for one in sent))
        output, said = ended(receiver)
    sockets.close()
    assert [one.outcome for one in sent] == [*2 * ["rejected"], "accepted", *2 * ["rejected"], *2 * ["accepted"]]
    assert sent[0].condition is not None
    assert sent[0].condition.name == "amqp:decode-error"
    assert (receiver.returncode, output.splitlines()) == (0, ["?", '"nan"', "good"])
    assert said.count("Error: a message that can't be read was rejected: ") == 4


def test_a_reply_that_cannot_be_read_is_said(mesh: MeshProcesses) -> None:
    sockets = Sockets()
    server = sockets.client(mesh.url("R3"))
    requests = server.receiver("oddly", credit=1).accepting()
    caller = subprocess.Popen(
        command(mesh, "R1", ("call", "oddly", "x", "--timeout", str(WAIT_S))), stderr=subprocess.PIPE, text=True
    )
    sockets.wait(lambda: requests.messages)
    request = Message()
    request.decode(requests.messages[0].data)
    replies = server.sender(request.reply_to)
    sockets.wait(lambda: replies.credit)
    sent = replies.send(UNREADABLE["no UTF-8"])
    sockets.wait(lambda: sent.outcome)
    _, said = caller.communicate(timeout=60)
    sockets.close()
    assert sent.outcome == "rejected"
    assert caller.returncode == 1
    assert said.startswith("Error: the reply from oddly can't be read: ")


def test_fewer_messages_than_were_asked_for_are_an_error(mesh: MeshProcesses) -> None:
    got = call(mesh, "receive", "quiet", "--count", "2", "--wait", "0.2")
    assert got.returncode == 1
    assert got.stderr == ("0 messages received from quiet\nError: 0 of 2 messages came: none for 0.2 s (--wait)\n")
    assert call(mesh, "receive", "quiet", "--wait", "0.2").returncode == 0


def test_a_router_that_refuses_the_link_says_why(mesh: MeshProcesses) -> None:
    got = call(mesh, "receive", "amqp:/_topo/0/R2/x", "--wait", "1")
    assert got.returncode == 1
    assert f"router R1 at {mesh.url('R1')} refuses to let this client receive from amqp:/_topo/0/R2/x: " in got.stderr


def test_a_router_killed_under_a_command_is_named_with_what_to_do(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 2), tmp_path / "mesh") as mesh:
        mesh.start()
        mesh.wait_converged()
        url = mesh.url("R1")
        with receiving(mesh, "x", "--count", "1", router="R1") as receiver:
            with ManagementClient(url) as client:
                client.query("router")
                mesh.kill("R1")
                with pytest.raises(Exception, match=f"router R1 at {url} went away while it was asked: .*--url"):
                    client.query("router")
            _, said = ended(receiver)
        assert receiver.returncode == 1
        assert f"Error: router R1 at {url} went away: its process ended, or the network to it broke" in said
        assert "`amqp-mesh stat problems` there says what is wrong" in said


def test_who_asks_again_is_answered_by_a_router_that_came_back(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 2), tmp_path / "mesh") as mesh:
        mesh.start("R1")
        url = mesh.url("R1")
        with ManagementClient(url) as client:
            assert client.attached_router() == "R1"
            mesh.kill("R1")
            for words in ("went away while it was asked", "no router answers at"):
                with pytest.raises(ManagementError, match=words):
                    client.attached_router()
            mesh.start("R1")
            assert client.attached_router() == "R1"


def count_links(client: ManagementClient) -> int:
    """How many links others than *client* have, by now."""
    return sum(row["container"] != client.container for row in client.query("router.link", ["container"]))


@pytest.mark.slow
def test_all_commands_end_in_time_when_their_router_stands_still(tmp_path: Path) -> None:
    commands = (("receive", "x"), ("receive", "y", "--count", "1"), ("send", "z", "m"), ("call", "z", "m"))
    with MeshProcesses(generate("line", 2), tmp_path / "mesh") as mesh, ExitStack() as started:
        mesh.start("R1")
        url = mesh.url("R1")
        processes = []
        for words in commands:
            line = command(mesh, "R1", (*words, "--timeout", "4"))
            process = started.enter_context(subprocess.Popen(line, stderr=subprocess.PIPE, text=True))
            started.callback(process.kill)
            processes.append(process)
        with ManagementClient(url) as client:
            wait_until(lambda: len(client.query("connection", ["identity"])) > len(commands), "all came", WAIT_S)
        mesh["R1"].send_signal(signal.SIGSTOP)
        processes.append(
            subprocess.Popen(command(mesh, "R1", ("stat", "--timeout", "1")), stderr=subprocess.PIPE, text=True)
        )
        started.enter_context(processes[-1])
        said = [process.communicate(timeout=WAIT_S)[1] for process in processes]
    assert [process.returncode for process in processes] == [1] * len(processes)
    for text in said:
        assert text.splitlines()[-1].startswith("Error: "), text
        assert url in text
    for text in said[:2]:
        assert f"router R1 at {url} has given no sign of life for 4 s" in text


def test_a_message_may_name_its_address_itself(mesh: MeshProcesses) -> None:
    with receiving(mesh, "named", "--count", "1", "--json") as receiver:
        assert call(mesh, "send", "named", "x", "--anonymous").returncode == 0
        assert json.loads(ended(receiver)[0])["address"] == "named"


def test_of_messages_that_name_their_address_it_is_said_who_takes_none(mesh: MeshProcesses) -> None:
    nobody = call(mesh, "send", "nobody/here", "x", "--anonymous")
    assert (nobody.returncode, nobody.stdout.endswith(": 1 released\n")) == (1, True)
    assert "1 message to nobody/here came back, released. Nobody subscribes to it, as far as R1" in nobody.stderr
    with receiving(mesh, "stuck", "--credit", "1", "--pause", "60"):
        sent = call(mesh, "send", "stuck", "x", "--anonymous", "--count", "3", "--timeout", "1")
    assert sent.returncode == 1
    assert "Nobody subscribes" not in sent.stderr
    assert "at R3 has no credit left" in sent.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("send", "x", "body", "--size", "5"), "BODY, --file and --size exclude each other"),
        (("send", "x", "--lines"), "--lines goes with --file"),
        (("send", "x", "{", "--as", "json"), "the body is no JSON"),
        (("send", "x", "[" * 100_000, "--as", "json"), "the body is no JSON: nested too deep"),
        (("send", "x", "-p", "novalue"), "`novalue` is no NAME=VALUE"),
        (("send", "x", "--file", "absent"), "absent: cannot be read: No such file or directory (--file)"),
        (("send", "x", "--file", "absent", "--lines"), "absent: cannot be read: No such file or directory (--file)"),
        (
            ("send", "x", "--user", "a", "--password-file", "absent"),
            "absent: cannot be read: No such file or directory (--password-file)",
        ),
        (
            ("send", "x", "--url", "amqps://h", "--ca", "absent"),
            "absent: cannot be read: No such file or directory (--ca)",
        ),
        (("call", "x", "--as", "jsn"), "Did you mean 'json'?"),
        (("receive", "x", "--outcome", "acept"), "Did you mean 'accept'?"),
        (("receive", "x", "--password-file", "y"), "--password-file goes with --user"),
    ],
)
def test_what_cannot_be_sent_is_said(words: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code in (1, 2)
    assert said in result.output


# TLS and users


@pytest.mark.slow
def test_all_commands_come_by_tls_with_a_user(tmp_path: Path) -> None:
    made = secured_mesh(tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    (tmp_path / "wrong").write_text("wrong\n", encoding="utf-8")
    with MeshProcesses(made.settings, tmp_path / "mesh") as mesh:
        mesh.start("A")
        url = mesh["A"].url(index=1).replace("amqp://127.0.0.1", "amqps://localhost")

        def run(*words: str, ca: str = made.certificates.ca) -> subprocess.CompletedProcess[str]:
            line = [sys.executable, "-m", "router", *words, "--url", url, "--ca", ca]
            return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)

        user = ("--user", USER, "--password-file", str(tmp_path / "password"))
        found = json.loads(run("manage", "query", "--type", "connection", *user).stdout)
        assert [(each["user"], each["isEncrypted"]) for each in found if each["user"] == USER] == [(USER, True)]
        assert run("ping", "--certificate", made.client, "--sasl", "EXTERNAL").returncode in (0, 1)
        with Client(RouterAccess(mesh.url("A"), user=USER, password=PASSWORD)) as client:
            taker = client.receiver("x")
            taker.link.flow(1)
            sender = subprocess.Popen(
                [sys.executable, "-m", "router", "send", "x", "y", "--url", url, "--ca", made.certificates.ca, *user]
            )
            assert client.wait(lambda: bool(taker.incoming), WAIT_S)
            message, delivery = taker.incoming.popleft()
            assert isinstance(message, Message)
            taker.finish(delivery, 0x24)  # ACCEPTED
            client.wait(client.is_written, WAIT_S)
            assert sender.wait(WAIT_S) == 0
        words = ("whatif", "snapshot", url, "-o", str(tmp_path / "model"), "--ca", made.certificates.ca)
        snapshot = CliRunner().invoke(main, [*words, *user])
        assert snapshot.exit_code == 0, snapshot.output
        assert (tmp_path / "model").is_dir()
        refused = CliRunner().invoke(main, [*words, "--user", USER, "--password-file", str(tmp_path / "wrong")])
        assert "user or password is wrong" in refused.output
        plain = CliRunner().invoke(main, ["stat", "--url", url.replace("amqps://", "amqp://")])
        assert "use amqps:// in --url" in plain.output
        wrong = run("send", "x", "--user", USER, "--password-file", str(tmp_path / "wrong"))
        assert "no connection to" in wrong.stderr
        assert "user or password is wrong" in wrong.stderr
        other = run("stat", *user, ca=made.client)
        assert "--ca" in other.stderr
        assert other.returncode == 1
