"""The log: it never stops the router, it is bounded, and nobody writes into it what is none of theirs."""

from __future__ import annotations

import fcntl
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import structlog

from router import logs
from router.cli.management import ManagementClient
from router.core.terminal_escaping import CUT, escaped
from router.logs import BURST_LINES, LINES_PER_S, MOST_KINDS, SUMMARY_S, LineWriter, RateLimit
from tests.helpers.processes import ReservedPort, parse_log, wait_until
from tests.helpers.sockets import Sockets

STOP_S = 15
HOSTILE = "a\x1b[2J\r\n\x85\u2028\u202e\u2066\ud800\x00z"
ESCAPED = r"a\x1b[2J\r\n\x85\u2028\u202e\u2066\ud800\x00z"


# What peers chose


def test_what_steers_a_terminal_is_escaped() -> None:
    assert escaped(HOSTILE) == ESCAPED
    assert escaped("grüße, 世界 \\o/") == "grüße, 世界 \\o/"


def test_a_name_is_cut_and_never_within_an_escape(rng: random.Random) -> None:
    assert escaped("x" * 200, 200) == "x" * 200
    assert escaped("x" * 201, 200) == "x" * 200 + CUT
    assert escaped("\x1b" * 10, 11) == r"\x1b\x1b" + CUT
    for _ in range(1000):
        text = "".join(rng.choice("ab\x1b\u202e\U000e0001") for _ in range(rng.randrange(30)))
        most = rng.randrange(30)
        shown = escaped(text, most)
        assert shown.isprintable()
        assert len(shown) <= most + 1
        assert shown.endswith(CUT) == (len(escaped(text)) > most)


# The rate limit


def test_lines_of_one_event_and_host_are_limited_and_summed_up() -> None:
    limit = RateLimit()
    admitted = sum(limit.admits("opened", "10.0.0.1", 0.0) for _ in range(BURST_LINES + 7))
    assert admitted == BURST_LINES
    assert limit.admits("opened", "10.0.0.2", 0.0)
    assert limit.admits("closed", "10.0.0.1", 0.0)
    assert limit.next_summary == SUMMARY_S
    assert limit.summaries(SUMMARY_S - 0.1) == []
    assert limit.summaries(SUMMARY_S) == [("opened", "10.0.0.1", 7)]
    assert limit.summaries(2 * SUMMARY_S) == []
    assert sum(limit.admits("opened", "10.0.0.1", 1.0) for _ in range(50)) == LINES_PER_S


def test_ever_new_hosts_neither_fill_the_memory_nor_get_past_the_limit() -> None:
    limit = RateLimit()
    admitted = sum(limit.admits("opened", f"host-{number}", 0.0) for number in range(10 * MOST_KINDS))
    assert admitted == MOST_KINDS + BURST_LINES
    assert len(limit._kinds) <= MOST_KINDS + 1
    later = BURST_LINES / LINES_PER_S + 1
    assert limit.admits("opened", "another", later)
    assert len(limit._kinds) < 5


# The writer


def said_dropped(count: int) -> bytes:
    return b"dropped %d\n" % count


@contextmanager
def pipe(size: int = 4096) -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, size)
    try:
        yield reading, writing
    finally:
        for fd in (reading, writing):
            with suppress(OSError):  # the test has closed it
                os.close(fd)


def read_until(fd: int, end: bytes) -> bytes:
    found = b""
    while end not in found:
        piece = os.read(fd, 65536)
        assert piece
        found += piece
    return found


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_stalled_reader_never_blocks_and_hears_how_many_lines_were_dropped(is_blocking: bool) -> None:
    with pipe() as (reading, writing):
        os.set_blocking(writing, is_blocking)
        writer = LineWriter(writing, said_dropped, most_bytes=10_000, retry_s=0.01)
        for number in range(10_000):
            writer.put(b"line %d\n" % number)
        found = read_until(reading, b"dropped")
        os.set_blocking(reading, False)

        def is_drained() -> bool:
            nonlocal found
            try:
                found += os.read(reading, 65536)
            except BlockingIOError:
                return writer._held == 0
            return False

        wait_until(is_drained, "all is written", 10)
        os.set_blocking(reading, True)
        writer.put(b"end\n")
        found += read_until(reading, b"end\n")
        writer.close()
    lines = found.decode().splitlines()
    assert lines.pop() == "end"
    dropped = sum(int(line.removeprefix("dropped ")) for line in lines if line.startswith("dropped"))
    kept = [line for line in lines if line.startswith("line")]
    assert dropped > 0
    assert len(kept) + dropped == 10_000
    assert kept == sorted(kept, key=lambda line: int(line.removeprefix("line ")))


def test_a_writer_whose_reader_stalls_is_closed_in_a_bounded_time() -> None:
    with pipe() as (_, writing):
        writer = LineWriter(writing, said_dropped)
        writer.put(b"x" * 100_000)
        began = time.monotonic()
        writer.close(0.05)
        assert time.monotonic() - began < 5


def test_everything_is_written_at_the_end_when_somebody_reads(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        writer = LineWriter(file.fileno(), said_dropped)
        for number in range(5000):
            writer.put(b"%d\n" % number)
        writer.close()
    assert (tmp_path / "log").read_bytes() == b"".join(b"%d\n" % number for number in range(5000))


def test_lines_that_cannot_be_written_are_counted_and_told_when_they_can(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, (tmp_path / "log").open("wb") as file:
        fd = os.dup(full.fileno())
        writer = LineWriter(fd, said_dropped, retry_s=0.0)
        for _ in range(3):
            writer.put(b"lost\n")
            wait_until(lambda: not writer._lines, "the line was tried", 10)
        os.dup2(file.fileno(), fd)  # there is room again
        writer.put(b"line\n")
        writer.close()
        os.close(fd)
    told, *lines = (tmp_path / "log").read_text().splitlines()
    assert told == "dropped 3"
    assert lines == ["line"]


def test_a_line_that_was_torn_is_ended_before_the_next_one() -> None:
    with pipe() as (reading, writing):
        os.set_blocking(writing, False)
        writer = LineWriter(writing, said_dropped, retry_s=0.01)
        writer._is_torn = True
        writer.put(b"line\n")
        writer.close()
        assert os.read(reading, 100) == b"\nline\n"


# A router


@contextmanager
def router(tmp_path: Path, stderr: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A process of `amqp-mesh run` that answers, with its URL."""
    port = ReservedPort()
    file = tmp_path / "router.yaml"
    file.write_text(f"router: {{id: A, listeners: [{{port: {port.number}}}]}}", encoding="utf-8")
    url = f"amqp://127.0.0.1:{port.number}"
    with subprocess.Popen([sys.executable, "-m", "router", "run", str(file)], stderr=stderr, stdout=stderr) as process:
        try:
            yield process, url
        finally:
            if process.poll() is None:
                process.kill()
            port.close()


def answers(url: str) -> bool:
    try:
        with ManagementClient(url, timeout_s=5) as client:
            return bool(client.read("router")["id"] == "A")
    except Exception:  # noqa: BLE001  it does not listen yet
        return False


def flood(url: str, container: str, count: int) -> None:
    """Connections with long container ids, one after the other."""
    host, _, port = url.removeprefix("amqp://").partition(":")
    for _ in range(count):
        sockets = Sockets()
        peer = sockets.dial(f"amqp://{host}:{port}", container=container)
        peer.connection.open()
        sockets.wait(lambda peer=peer: bool(peer.connection.state & peer.connection.REMOTE_ACTIVE))  # type: ignore[misc]
        sockets.close()


def stop(process: subprocess.Popen[bytes]) -> int:
    process.terminate()
    return process.wait(STOP_S)


def test_a_router_serves_on_while_its_log_is_gone(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with router(tmp_path, writing) as (process, url):
        os.close(writing)
        os.close(reading)
        wait_until(lambda: answers(url), "it answers", 20)
        flood(url, "client", 5)
        assert answers(url)
        assert stop(process) == 0


def test_a_router_serves_on_while_its_log_is_on_a_full_disk(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full, router(tmp_path, full.fileno()) as (process, url):
        wait_until(lambda: answers(url), "it answers", 20)
        flood(url, "client", 5)
        assert answers(url)
        assert stop(process) == 0


def test_a_router_serves_on_while_nobody_reads_its_log(tmp_path: Path) -> None:
    with pipe() as (_, writing), router(tmp_path, writing) as (process, url):
        wait_until(lambda: answers(url), "it answers", 20)
        flood(url, "x" * 10_000, 40)
        assert answers(url)
        assert stop(process) == 0


def test_a_router_without_standard_error_serves_on(tmp_path: Path) -> None:
    port = ReservedPort()
    file = tmp_path / "router.yaml"
    file.write_text(f"router: {{id: A, listeners: [{{port: {port.number}}}]}}", encoding="utf-8")
    url = f"amqp://127.0.0.1:{port.number}"
    command = ["sh", "-c", 'exec "$0" -m router run "$1" 0<&- 1>&- 2>&-', sys.executable, str(file)]
    with subprocess.Popen(command) as process:
        try:
            wait_until(lambda: answers(url), "it answers", 20)
            assert {os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
            assert stop(process) == 0
        finally:
            if process.poll() is None:
                process.kill()
            port.close()


def test_a_crowd_with_long_and_hostile_names_writes_little_and_no_control_character(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file, router(tmp_path, file.fileno()) as (process, url):
        wait_until(lambda: answers(url), "it answers", 20)
        hostile = HOSTILE.replace("\ud800", "").replace("\x00", "")
        flood(url, hostile + "x" * 30_000, 2 * BURST_LINES)
        assert stop(process) == 0
    text = log.read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert text.replace("\n", "").isprintable()
    lines = list(parse_log(text))
    opened = [line for line in lines if line.event == "connection_opened" and "2J" in line.fields["container"]]
    assert opened
    assert len(opened[0].fields["container"]) <= 200 + len(CUT)
    more = [line for line in lines if line.event == "more_like_this" and line.fields["of"] == "connection_opened"]
    assert sum(int(line.fields["count"]) for line in more) + len(opened) >= 2 * BURST_LINES
    assert {line.fields["host"] for line in more} == {"127.0.0.1"}


def test_a_traceback_stays_one_line_and_without_control_characters() -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        line = logs.escape_values(None, "", {"exception": f"Traceback\n{error}"})
    assert line["exception"].replace("\n", "").isprintable()


# As JSON


def test_a_line_of_json_is_whole_whatever_stands_in_it(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", form="json", router="A")
    try:
        log = logs.get(router="A")
        log.info("one", host=HOSTILE, count=3, share=0.5, is_so=True, none=None, odd=float("inf"))
        try:
            raise ValueError(HOSTILE)
        except ValueError as error:
            log.error("two", exc_info=error)
        log.debug("never")
    finally:
        logs.close()
        logs.set_format("key-value")
        structlog.reset_defaults()  # others in this process read what a router prints
    first, second = (json.loads(line) for line in capfd.readouterr().err.splitlines())
    assert list(first)[:3] == ["timestamp", "level", "event"]
    assert {key: value for key, value in first.items() if key != "timestamp"} == {
        "level": "info",
        "event": "one",
        "router": "A",
        "host": ESCAPED,
        "count": 3,
        "share": 0.5,
        "is_so": True,
        "none": None,
        "odd": "inf",
    }
    assert second["exception"].splitlines()[0] == "Traceback (most recent call last):"


def test_the_file_says_level_and_form_and_the_command_line_goes_before(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listeners = f"listeners: [{{port: {taken.getsockname()[1]}}}]"
        file.write_text(f"router: {{id: A, log: {{level: none, format: json}}, {listeners}}}", encoding="utf-8")
        for options, events in (((), []), (("--log-level", "error"), ["cannot_start"])):
            command = [sys.executable, "-m", "router", "run", str(file), *options]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1
            assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == events


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("10.0.0.7:5672", "10.0.0.7"),
        ("10.0.0.7", "10.0.0.7"),
        ("[2001:db8::17]:5672", "2001:db8::17"),
        ("2001:db8::17", "2001:db8::17"),
        ("::1", "::1"),
        ("", ""),
        (None, ""),
    ],
)
def test_lines_are_counted_by_the_whole_address_of_a_host_with_and_without_its_port(value: object, host: str) -> None:
    assert logs.host_of(value) == host
