"""`amqp-mesh run`: one router, in the foreground."""

from __future__ import annotations

import concurrent.futures
import functools
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from mesh_config.check import check_router_and_mesh
from mesh_config.findings import Finding, SettingsError
from mesh_config.models import LogLevel, MeshSettings, RouterSettings
from router import background_call, logs
from router.address_space_headroom import share_one_malloc_arena
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import InvalidInputError
from router.cli.options import file_argument
from router.core.errors import LocalError
from router.daemon import OTHERS, STOPPING
from router.daemon import run as run_daemon
from router.findings_log import log_findings
from router.security.bounded_file import check_bounded

SIGNAL_LOOK_S: Final = 0.05
"""Time within which a signal is handled while the file is read, seconds."""


@click.command()
@file_argument
@click.option("--router", "router_id", metavar="ID", help="Router to run; needed when FILE has several.")
@click.option(
    "--log-level",
    type=HintingChoice([level.value for level in LogLevel]),
    metavar="LEVEL",
    help="Lowest level to write: debug, info, warning, error or none.  [default: `log.level` in FILE]",
)
def run(file: str, router_id: str | None, log_level: str | None) -> None:
    """Run one router until SIGTERM or SIGINT.

    FILE describes the router, or a mesh that it is part of. What `amqp-mesh config check` finds in it goes to the log;
    faults of other routers don't keep this one from running, unless it connects to one whose settings can't be read.

    On SIGHUP the router reads FILE again and changes what can be changed while it runs (as `amqp-mesh manage reload`).

    On SIGTERM or SIGINT the router accepts nothing new, lets what is in flight settle (the setting `shutdown_s`),
    closes every connection and exits with status 0. Exit status 1: its settings are wrong, or a listener cannot be
    bound.
    """
    share_one_malloc_arena()
    # Signals come to the daemon when it listens, but for a stop while the file is read, which ends the process; the
    # others end nothing, also after it has stopped.
    # Nor must one be ignored, as SIGINT is by what a shell starts in the background: trio sets anew what is set for it,
    # and the system drops one that is held back when it is set to be ignored. So it isn't SIG_IGN that is set here.
    ignored = [number for number in STOPPING if signal.getsignal(number) is signal.SIG_IGN]
    with _handled((*OTHERS, *ignored), _do_nothing), _held_back((*STOPPING, *OTHERS)):
        _run(file, router_id, log_level)


@contextmanager
def _held_back(numbers: Sequence[signal.Signals]) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled(numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, inherited in before.items():
            signal.signal(number, inherited)


def _read(file: str, router_id: str | None) -> tuple[RouterSettings, MeshSettings | None, tuple[Finding, ...]]:
    """Read FILE in a thread: a pipe that nobody writes must not hold up a signal, which ends the process meanwhile."""
    reading = background_call.begin(functools.partial(check_router_and_mesh, file, router_id), "settings")
    with _handled(STOPPING, _end):
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)  # one that waits is handled in this call
            while not reading.done():
                # One that comes just before the wait is handled after it.
                concurrent.futures.wait([reading], timeout=SIGNAL_LOOK_S)
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    return reading.result()


def _end(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal that nobody is there for any more."""


def _run(file: str, router_id: str | None, log_level: str | None) -> None:
    try:
        settings, mesh, findings = _read(file, router_id)
    except SettingsError as error:
        raise InvalidInputError(error) from error
    logs.configure(log_level or settings.log.level, form=settings.log.format, router=settings.id)
    log = logs.get(router=settings.id)
    try:
        log_findings(log, findings)
        run_daemon(settings, mesh, functools.partial(_read_again, file, router_id))
    except LocalError as error:
        log.error("cannot_start", reason=str(error))
        sys.exit(1)
    except Exception as error:  # else Python would write it, and wait for whoever reads standard error
        log.error("ended", exc_info=error)
        sys.exit(1)
    finally:
        logs.close()


def _read_again(file: str, router_id: str | None) -> tuple[RouterSettings, MeshSettings | None, tuple[Finding, ...]]:
    check_bounded(file)  # a pipe gives it once, at the start: whoever reads it again may wait for ever
    return check_router_and_mesh(file, router_id)
