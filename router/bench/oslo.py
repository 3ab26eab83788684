"""Calls by oslo.messaging as it is installed: what they cost the routers in between."""

from __future__ import annotations

import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import IO, Final, Self

import attrs

from router.bench.cases import Path
from router.bench.errors import BenchError
from router.bench.process_usage import cpu_seconds, resident_bytes
from router.bench.routers import ROOT
from router.child_processes import mortal

CALLERS: Final = 20
CALL_BYTES: Final = 1024
CALLS_PER_S: Final = 750
"""Number of calls per second of all callers together, as a busy controller of OpenStack sends, each alone."""
STOP_S: Final = 5.0
_NUMBERS: Final = itertools.count(1)


@attrs.frozen(kw_only=True)
class OsloRun:
    """One run."""

    over: str
    """Name of the path."""
    hops: int
    per_s: float
    """Number of calls answered per second."""
    cpu_us: float | None
    """Processor time of all routers in between, for each call and each router; None when it cannot be read."""
    resident_bytes: int | None
    """Resident memory of the router in between that has most."""
    failed: int
    """Number of calls without an answer, or with a wrong one."""


class _Peer:
    """A process of clients; a context manager that ends it."""

    def __init__(self, errors: IO[bytes], *words: str) -> None:
        self._errors = errors
        self._process = subprocess.Popen(
            mortal([sys.executable, "-m", "router.bench.oslo_peer", *words]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._process.communicate(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def ask(self) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Wait for a line.

        Raises: BenchError with what the process has said, when it has ended.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            self._errors.seek(0)
            said = self._errors.read()[-2000:].decode(errors="replace")
            raise BenchError(f"clients of oslo.messaging have ended: {said}")
        return line


def check_oslo() -> None:
    """See that there is an oslo.messaging.

    Raises: BenchError
    """
    if importlib.util.find_spec("oslo_messaging") is None:
        raise BenchError("the case oslo needs oslo.messaging: pip install '.[demo]' in a clone of its repository")


def measure_oslo(path: Path, *, seconds: float, warm_s: float) -> OsloRun:
    """Call over *path*, which has routers, at the pace of `CALLS_PER_S`.

    Args:
        path: the routers that calls pass.
        seconds: of the measured part.
        warm_s: how long they call before, from when each caller has had an answer.
    Raises: BenchError
    """
    assert path.receive_from is not None
    assert path.send_to is not None
    topic = f"bench-{os.getpid()}-{next(_NUMBERS)}"
    callers = ("callers", _url(*path.send_to), topic, str(CALLERS), str(CALL_BYTES), str(CALLS_PER_S))
    with tempfile.TemporaryFile() as errors, _Peer(errors, "server", _url(*path.receive_from), topic) as server:
        server.answer()
        with _Peer(errors, *callers) as peer:
            if peer.answer() != "ready":
                raise BenchError(f"oslo, {path.name}: not every caller had an answer")
            time.sleep(warm_s)
            before, cpu, began = _counts(peer), cpu_seconds(path.pids), time.monotonic()
            time.sleep(seconds)
            after, cpu, took = _counts(peer), cpu_seconds(path.pids) - cpu, time.monotonic() - began
    answered, failed = (now - then for now, then in zip(after, before, strict=True))
    if not answered:
        raise BenchError(f"oslo, {path.name}: no call was answered within {seconds:g} s")
    return OsloRun(
        over=path.name,
        hops=path.hops,
        per_s=answered / took,
        cpu_us=cpu * 1e6 / answered / path.hops if path.pids else None,
        resident_bytes=max(map(resident_bytes, path.pids), default=0) or None,
        failed=failed,
    )


def _counts(peer: _Peer) -> tuple[int, int]:
    peer.ask()
    answered, failed = peer.answer().split()
    return int(answered), int(failed)


def _url(host: str, port: int) -> str:
    return f"amqp://[{host}]:{port}" if ":" in host else f"amqp://{host}:{port}"
