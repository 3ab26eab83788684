"""`amqp-mesh service-unit`: the unit file for systemd, which comes with the program."""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import click

from router.cli.errors import CommandError
from router.core.terminal_escaping import escaped

UNIT: Final = "amqp-mesh@.service"
INSTALLED: Final = "/usr/bin/amqp-mesh"
"""Program in the file, in whose place the one that is called stands."""
SETTINGS: Final = "/etc/amqp-mesh/mesh.yaml"
HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - nothing is written there
"""Folders that the unit hides from the router, or gives it others of: ProtectHome and PrivateTmp."""

_PLAIN_WORD: Final = re.compile(r"[\w@%$+=:,./-]+", re.ASCII)
"""Words that systemd takes as they are, once specifiers and variables are escaped."""
_NOT_IN_A_PROGRAM: Final = re.compile(r"[\x00-\x1f\x7f\"'\\]")
"""Characters that systemd runs no program with, however they are escaped (string_is_safe of its sources)."""


@click.command("service-unit", short_help="Write a systemd unit file.")
@click.option(
    "--settings",
    default=SETTINGS,
    show_default=True,
    metavar="FILE",
    help="Settings file on the host where the unit runs.",
)
def service_unit(settings: str) -> None:
    """Write a systemd unit file to standard output.

    With it `systemctl start amqp-mesh@A` runs router A of the settings file: sandboxed, watched, and restarted whenever
    it ends. The unit names this program, and FILE by its absolute path.
    """
    settings = str(Path(settings).absolute())
    called = Path(sys.argv[0])
    program = str(called.resolve()) if called.is_file() else shutil.which("amqp-mesh") or INSTALLED
    for path in sorted({program, os.path.realpath(sys.executable), os.path.realpath(settings)}):
        if any(Path(path).is_relative_to(folder) for folder in HIDDEN):
            click.echo(
                f"warning: {escaped(path)}: the unit hides that folder from the router; take /opt, or /etc", err=True
            )
    if _NOT_IN_A_PROGRAM.search(program):
        said = "systemd runs no program whose path has quotes, backslashes or control characters"
        raise CommandError(f"{escaped(program)}: {said}; expected the program at another place, such as /opt/amqp-mesh")
    text = (resources.files("router.deployment") / UNIT).read_text(encoding="utf-8")
    words = {INSTALLED: unit_word(program, has_variables=False), SETTINGS: unit_word(settings)}
    click.echo(re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text), nl=False)


def unit_word(text: str, *, has_variables: bool = True) -> str:
    """*text* as one word of a command line in a unit: escaped, and in quotes where it would be split (systemd.syntax).

    Args:
        text: the word; may have octets that are no UTF-8.
        has_variables: whether systemd puts variables of the environment there, as it does but for the program's path.
    """
    word = text.replace("%", "%%").replace("$", "$$" if has_variables else "$")
    if _PLAIN_WORD.fullmatch(word):
        return word
    octets = word.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "surrogateescape")
    try:
        quoted = octets.decode("utf-8")
    except UnicodeDecodeError:
        quoted = "".join(chr(octet) if octet < 0x80 else f"\\x{octet:02x}" for octet in octets)
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", quoted) + '"'
