"""The command `amqp-mesh demo`."""

from __future__ import annotations

import importlib.util
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import click
import trio

from router.cli.demo.demo_run import show
from router.cli.demo.mesh import DemoError
from router.cli.demo.playground import keep
from router.cli.errors import BAD_INPUT, CommandError, say_error, unwritable
from router.cli.options import BoundedNumber, WholeNumber

INSTALL_HINT = "this needs oslo.messaging: pip install '.[demo]' in a clone of its repository"
_NEEDED = ("oslo_messaging", "pyngus")


@click.command(short_help="Show a mesh at work, with RPC across it.")
@click.option(
    "--seconds",
    type=BoundedNumber(4, 3600),
    default=20,
    show_default=True,
    help="Duration of the load; the link is cut halfway.",
)
@click.option(
    "--rate",
    type=WholeNumber(5, 2000),
    default=100,
    show_default=True,
    help="Calls per second that each caller tries to make.",
)
@click.option(
    "--live/--no-live", default=None, help="Show a live view, or plain lines.  [default: a live view in a terminal]"
)
@click.option(
    "--keep", "is_kept", is_flag=True, help="Only start the four routers, print their addresses, and keep running."
)
@click.option(
    "--logs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder in which to keep the mesh file and the logs.",
)
@click.pass_context
def demo(
    context: click.Context, seconds: float, rate: int, live: bool | None, is_kept: bool, logs: Path | None
) -> None:
    """Show a mesh at work: four routers, RPC over oslo.messaging, a link that is cut.

    Routers A, B, C and D run as processes on this machine, each a neighbor of every other. RPC servers are attached to
    A and D, callers to B, C and D. Halfway the link between A and C is cut: the calls of C take another path. Ends with
    a summary and exit status 0; 1 when a call failed that needn't have, or a fanout cast was lost or came twice.

    With --keep it starts only the four routers, prints a line with address and process id for each once they have found
    each other, and runs until it is interrupted. This needs the base installation; the rest the extra `demo`.
    """
    if not is_kept and not all(map(_is_installed, _NEEDED)):
        raise CommandError(INSTALL_HINT, BAD_INPUT)
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-demo-") as temporary:
        folder = logs.absolute() if logs is not None else Path(temporary)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error, folder) from error
        if is_kept:
            context.exit(_run(partial(_keep, folder), stopped_status=0))
        is_live = sys.stdout.isatty() if live is None else live
        context.exit(_run(partial(show, folder, seconds=seconds, rate=rate, is_live=is_live)))


async def _keep(folder: Path) -> int:
    await keep(folder)
    return 0


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _run(job: Callable[[], Awaitable[int]], stopped_status: int | None = None) -> int:
    """Run *job* until it ends or a signal comes.

    Args:
        job: called within trio; gives the exit status.
        stopped_status: exit status after a signal; 128 + its number when None.
    Returns: the exit status.
    """

    async def main() -> int:
        stopped: int | None = None
        scope = trio.CancelScope()

        async def watch(signals: AsyncIterator[int]) -> None:
            # To the end: a signal that nobody takes would end this process before the others are stopped.
            nonlocal stopped
            async for number in signals:
                if stopped is None:
                    stopped = 128 + number if stopped_status is None else stopped_status
                    if stopped_status is None:
                        click.echo("interrupted", err=True)
                    scope.cancel()

        status = 1
        with trio.open_signal_receiver(*_signals()) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch, signals)
                with scope:
                    status = await job()
                nursery.cancel_scope.cancel()
        return status if stopped is None else stopped

    try:
        return trio.run(main)
    except* DemoError as errors:
        for error in _leaves(errors):
            say_error(str(error))
    return 1


def _signals() -> Iterator[signal.Signals]:
    """Yield the signals that end a demonstration. One that is ignored, such as SIGHUP under `nohup`, stays so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            yield number


def _leaves(group: BaseExceptionGroup[DemoError]) -> Iterator[DemoError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
