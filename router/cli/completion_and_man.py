"""`amqp-mesh completion` and `amqp-mesh man`: what a shell and `man` need to know of the commands, made from these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import get_completion_class

from router import __version__
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import unwritable
from router.security.file_replacement import replace_file

PROGRAM: Final = "amqp-mesh"
SHELLS: Final = ("bash", "zsh", "fish")


@click.command(short_help="Write the completion script for a shell.")
@click.argument("shell", type=HintingChoice(SHELLS))
def completion(shell: str) -> None:
    """Write the completion script for SHELL: it completes commands, options and their values.

    bash: `amqp-mesh completion bash > /etc/bash_completion.d/amqp-mesh`, or
    `. <(amqp-mesh completion bash)` in ~/.bashrc. zsh: into a file `_amqp-mesh` in a folder of $fpath. fish: into
    ~/.config/fish/completions/amqp-mesh.fish.
    """
    made = get_completion_class(shell)
    assert made is not None
    # Without running bash, which would be asked for its version, and need not be there.
    script = made(click.Command(PROGRAM), {}, PROGRAM, "_AMQP_MESH_COMPLETE")
    click.echo(script.source_template % script.source_vars())


@click.command(short_help="Write the manual pages.")
@click.argument("folder", type=click.Path(file_okay=False))
@click.pass_context
def man(ctx: click.Context, folder: str) -> None:
    """Write a manual page for each command into FOLDER, which is created if needed.

    `amqp-mesh man /usr/local/share/man/man1` installs them: `man amqp-mesh-stat` shows one.
    """
    root = ctx.find_root()
    target = place = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for context in contexts(root.command, PROGRAM):
            place = target / f"{context.command_path.replace(' ', '-')}.1"
            replace_file(str(place), page(context), mode=0o666)
    except OSError as error:
        raise unwritable(error, place) from error


def contexts(
    command: click.Command, name: str, parent: click.Context | None = None, **settings: Any
) -> Iterator[click.Context]:
    """The context of a command, and those of all below it.

    Args:
        command: The command.
        name: What it is called by.
        parent: The context of the command above it.
        settings: What else a context of click takes, such as the width of the terminal; those below inherit it.
    """
    # With its own settings: click keeps the option for help as it was first asked for.
    context = command.context_class(command, info_name=name, parent=parent, **command.context_settings, **settings)
    yield context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            child = command.get_command(context, below)
            if child is not None and not child.hidden:
                yield from contexts(child, below, context)


def page(context: click.Context) -> str:
    """The manual page of a command, for `man`. Source: man-pages(7), groff_man(7)."""
    command, name = context.command, context.command_path
    title = name.replace(" ", "-")
    parts = [
        f'.TH "{_quoted(title.upper())}" "1" "" "{PROGRAM} {__version__}" "User Commands"',
        ".SH NAME",
        _roff(f"{title} - {command.get_short_help_str(200).rstrip('.')}"),
        ".SH SYNOPSIS",
        f".B {_roff(name)}",
        _roff(" ".join(command.collect_usage_pieces(context))),
    ]
    if command.help:
        parts.append(".SH DESCRIPTION")
        for number, paragraph in enumerate(re.split(r"\n\s*\n", command.help)):
            parts += ([".PP"] if number else []) + [_roff(" ".join(paragraph.split()))]
    records = [found for each in command.get_params(context) if (found := each.get_help_record(context)) is not None]
    if records:
        parts.append(".SH OPTIONS")
        for options, words in records:
            parts += [".TP", f".B {_roff(options)}", _roff(" ".join(words.split()))]
    if isinstance(command, click.Group):
        parts.append(".SH COMMANDS")
        for word in command.list_commands(context):
            child = command.get_command(context, word)
            if child is not None and not child.hidden:
                parts += [".TP", f".BR {_roff(f'{title}-{word}')} (1)", _roff(child.get_short_help_str(200))]
    if context.parent is not None:
        parts += [".SH SEE ALSO", f".BR {_roff(context.parent.command_path.replace(' ', '-'))} (1)"]
    return "\n".join(part for part in parts if part) + "\n"


def _roff(text: str) -> str:
    """Text without what troff would take for its own: backslashes, hyphens, and a dot or quote that begins a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _quoted(text: str) -> str:
    return text.replace("\\", "\\e").replace('"', "")
