"""Errors as all commands say them: `Error: ` and what is wrong, or the place in a file, as compilers name it."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from mesh_config.findings import Finding, SettingsError, Severity
from router.core.terminal_escaping import escaped, without_passwords

FAILED: Final = 1
BAD_INPUT: Final = 2

MACHINE_FAULTS: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EIO))
"""A full or broken disk."""
_SAID: Final = f"{__name__}.said"
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def _lines(message: str) -> str:
    """*message* with its lines, as some have the end of a log; without what would move the cursor, and passwords."""
    return "\n".join(map(escaped, without_passwords(message).split("\n")))


class CommandError(click.ClickException):
    """Reason for which a command can't go on; written as `Error: ...`."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(_lines(message))
        self.exit_code = exit_code  # type: ignore[misc]  # click's own way to set it for one error


class InvalidInputError(CommandError):
    """Input with which the command can't go on; shows all its findings."""

    def __init__(self, error: SettingsError, exit_code: int = FAILED) -> None:
        super().__init__(str(error), exit_code)
        self._findings = error.findings

    def show(self, file: object = None) -> None:
        """Write the findings to standard error."""
        show(self._findings, err=True)


def unreadable(error: OSError, path: object, *, option: str = "", exit_code: int = FAILED) -> CommandError:
    """Error that names what can't be read, as findings of settings do.

    Args:
        error: as the system has raised it.
        path: what it was to be.
        option: that named it, such as `--ca`; empty for an argument.
        exit_code: status with which the command ends.
    """
    named = f" ({option})" if option else ""
    return CommandError(f"{path}: cannot be read: {error.strerror or error}{named}", exit_code)


def unwritable(error: OSError, path: object, exit_code: int = FAILED) -> CommandError:
    """Make the error for a file that can't be written."""
    return CommandError(f"{path}: cannot be written: {error.strerror or error}", _status(error, exit_code))


def file_error(error: OSError, path: object, exit_code: int = FAILED) -> CommandError:
    """Make the error for a file that could not be read or written."""
    return CommandError(f"{path}: {error.strerror or error}", _status(error, exit_code))


def _status(error: OSError, exit_code: int) -> int:
    """FAILED where the machine is at fault, which no other input would change; else *exit_code*."""
    return FAILED if error.errno in MACHINE_FAULTS else exit_code


@contextmanager
def faults_of(path: object, exit_code: int = FAILED) -> Iterator[None]:
    """End the command with all findings when input can't be used, and with the name of what can't be read or written.

    Args:
        path: named where the system names no file.
        exit_code: status with which the command ends then; with FAILED when no input is at fault.
    """
    try:
        yield
    except SettingsError as error:
        raise InvalidInputError(error, exit_code if error.is_of_input else FAILED) from error
    except OSError as error:
        raise file_error(error, error.filename or path, exit_code) from error


def say_error(message: str) -> None:
    """Write an error after which the command goes on."""
    click.echo(f"Error: {_lines(message)}", err=True)


def say_warning_once(message: str) -> None:
    """Write a warning, unless this call of a command has done so already; nothing where no command is called."""
    context = click.get_current_context(silent=True)
    if context is None:
        return
    said = context.find_root().meta.setdefault(_SAID, set())
    if message not in said:
        said.add(message)
        click.echo(f"Warning: {_lines(message)}", err=True)


def show(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Write each finding in one line, in colour on a terminal.

    Args:
        findings: in the order in which they are shown.
        err: to standard error.
    """
    for finding in findings:
        text = escaped(str(finding))
        line = text if finding.place else text[:1].upper() + text[1:]  # without a place as every other error
        click.secho(line, fg=_COLORS[finding.severity], err=err)
