"""Ctrl-C where it would leave something half made, and after the end of what it is to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

import click

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells have it."""


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, which is to be short: what is half made ends in tracebacks."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_told() -> Iterator[None]:
    """End the command on Ctrl-C with a word and INTERRUPTED, wherever it is; click says `Aborted!`, and 1."""
    try:
        yield
    except KeyboardInterrupt:
        _end_interrupted()
    except click.Abort as error:
        if not isinstance(error.__context__, KeyboardInterrupt):  # the end of what is typed
            raise
        _end_interrupted()


def _end_interrupted() -> NoReturn:
    click.echo("\ninterrupted", err=True)
    raise SystemExit(INTERRUPTED) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the block, and change nothing after it: what has become of that is still told, and its status.

    In a thread other than the first one, to which no signal comes, it does nothing.
    """
    try:
        yield
    finally:
        context = click.get_current_context(silent=True)
        before = signal.getsignal(signal.SIGINT)
        if context is not None and before is signal.default_int_handler:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, _do_nothing)  # not SIG_IGN, which programs that are started would inherit
                context.find_root().call_on_close(lambda: signal.signal(signal.SIGINT, before))


def _do_nothing(number: int, frame: object) -> None:
    pass
