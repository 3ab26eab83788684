"""`amqp-mesh user`: the file of users that listeners check passwords by."""

from __future__ import annotations

import os
import stringprep
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from mesh_config.user_names import MOST_NAME_CHARS, MOST_PASSWORD_CHARS, RESERVED_NAMES
from router.cli.did_you_mean import HintingGroup, did_you_mean
from router.cli.errors import CommandError
from router.cli.options import WholeNumber, file_argument
from router.core.errors import LocalError
from router.core.terminal_escaping import escaped
from router.security.sasl_frames import SaslError
from router.security.scram import (
    DEFAULT_ITERATIONS,
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    prepare_name,
)
from router.security.users import Keys, locked, new_keys, read_users, write_users

NAME: Final = "visible characters, with blanks only between them"
"""Rule of a user's name in words."""


_name = click.argument("name")
_iterations = click.option(
    "--iterations",
    type=WholeNumber(LEAST_ITERATIONS, MOST_ITERATIONS),
    default=DEFAULT_ITERATIONS,
    show_default=True,
    metavar="N",
    help="Rounds of hashing: a client with SCRAM computes them for each connection, an attacker for each "
    "password that he tries.",
)


@click.group(cls=HintingGroup, short_help="Manage the users of listeners.")
def user() -> None:
    """Manage the users in a FILE: names, and keys derived from their passwords.

    Listeners name the file in `users_file`; a change of it takes effect at once. Passwords are prompted for on the
    terminal, or read as one line from standard input, and never taken from the command line, which others can see.
    """


@user.command()
@file_argument
@_name
@_iterations
def add(file: str, name: str, iterations: int) -> None:
    """Add the user NAME; FILE is created if needed."""
    prepared = _prepared(name)
    if prepared != prepared.strip():
        near = f"; did you mean '{prepared.strip()}'?" if prepared.strip() else ""
        raise CommandError(f"user '{prepared}': the name begins or ends with a blank; expected {NAME}{near}")
    if prepared in RESERVED_NAMES:
        raise CommandError(f"user {prepared}: policy means others by that name, so nobody can have it")
    if ":" in prepared:  # RFC 7617, 2: what stands behind the first one is the password
        raise CommandError(f"user {prepared}: a name with a colon cannot sign in by HTTP; expected one without")
    _check_unknown(file, _read_if_there(file), prepared)  # before a password is asked for in vain
    keys = _new_keys(iterations)
    with _changing(file):
        users = _read_if_there(file)
        _check_unknown(file, users, prepared)
        write_users(file, {**users, prepared: keys})
    click.echo(f"{file}: added {prepared}")


@user.command(short_help="Change the password of the user NAME.")
@file_argument
@_name
@_iterations
def passwd(file: str, name: str, iterations: int) -> None:
    """Change the password of the user NAME; routers close its connections within 10 seconds."""
    _known(file, _read(file), name)  # before a password is asked for in vain
    keys = _new_keys(iterations)
    with _changing(file):
        users = _read(file)
        prepared = _known(file, users, name)
        write_users(file, {**users, prepared: keys})
    click.echo(f"{file}: changed {prepared}")


@user.command(short_help="Remove the user NAME.")
@file_argument
@_name
def remove(file: str, name: str) -> None:
    """Remove the user NAME; routers close its connections within 10 seconds."""
    with _changing(file):
        users = _read(file)
        prepared = _known(file, users, name)
        write_users(file, {each: keys for each, keys in users.items() if each != prepared})
    click.echo(f"{file}: removed {prepared}")


@user.command(name="list")
@file_argument
def list_users(file: str) -> None:
    """List the names of the users, sorted, one per line."""
    for name in sorted(_read(file)):
        click.echo(escaped(name))


def _prepared(name: str) -> str:
    if len(name) > MOST_NAME_CHARS:
        said = f"user {escaped(name[:20])}...: the name has {len(name):,} characters"
        raise CommandError(f"{said}; expected at most {MOST_NAME_CHARS}")
    try:
        return prepare_name(name)
    except SaslError as error:
        shown = escaped(name)
        for character in filter(_is_prohibited, name):
            said = f"no name has the character {escaped(character)}"
            raise CommandError(f"user '{shown}': {said}; expected {NAME}") from None
        if not any(map(str.isprintable, name)):
            raise CommandError(f"user '{shown}': an empty name; expected {NAME}") from None
        raise CommandError(f"user '{shown}' cannot be a name: {error}") from None


def _is_prohibited(character: str) -> bool:
    try:
        prepare_name(f"x{character}")
    except SaslError:
        return not stringprep.in_table_d1(character)  # right to left, which is good among its like
    return False


def _check_unknown(file: str, users: dict[str, Keys], prepared: str) -> None:
    if prepared in users:
        raise CommandError(f"{file}: user {prepared} exists already; `user passwd` changes the password")


def _known(file: str, users: dict[str, Keys], name: str) -> str:
    prepared = _prepared(name)
    if prepared not in users:
        hint = did_you_mean(prepared, users)
        raise CommandError(f"{file}: no user {prepared}{f'.{hint}' if hint else ''}")
    return prepared


def _new_keys(iterations: int) -> Keys:
    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    else:
        password = sys.stdin.readline(MOST_PASSWORD_CHARS + 2).rstrip("\n")
    if len(password) > MOST_PASSWORD_CHARS:
        raise CommandError(f"the password has more than {MOST_PASSWORD_CHARS} characters")
    try:
        return new_keys(password, iterations)
    except LocalError as error:
        raise CommandError(str(error)) from None


@contextmanager
def _changing(file: str) -> Iterator[None]:
    """Make what is read and written inside one change: no other command's comes in between.

    Raises: CommandError when the file can't be written.
    """
    try:
        with locked(file):
            yield
    except LocalError as error:
        raise CommandError(str(error)) from None


def _read_if_there(file: str) -> dict[str, Keys]:
    return _read(file) if os.path.exists(file) else {}


def _read(file: str) -> dict[str, Keys]:
    try:
        return read_users(file)
    except LocalError as error:
        raise CommandError(str(error)) from None
