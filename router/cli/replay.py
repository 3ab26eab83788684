"""`amqp-mesh replay`: play what a router has recorded, and show what went in, what came out and where it stood."""

from __future__ import annotations

import json
import math
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import click
from rich.table import Table
from rich.text import Text

from router import __version__
from router.cli.errors import CommandError, say_error, unreadable
from router.cli.options import BoundedNumber, WholeNumber, file_argument
from router.cli.replay_words import action_words, event_words
from router.cli.table_output_width import UNBOUNDED_WIDTH, console
from router.core.errors import LocalError
from router.core.recording.recording_format import Recording, decode
from router.core.recording.recording_player import Player, Step
from router.core.terminal_escaping import escaped

MOST_ACTIONS: Final = 20
"""Lines of actions shown of one call; `--json` has all."""
LONGEST_HEADER: Final = 65536
"""Characters of the first line: a file without lines is no recording."""


@click.command(short_help="Replay a recording of a router offline.")
@file_argument
@click.option("--json", "is_json", is_flag=True, help="Write JSON: one document.")
@click.option("--from", "first_s", type=BoundedNumber(min=0), metavar="SECONDS", help="Show from this time on.")
@click.option("--to", "last_s", type=BoundedNumber(min=0), metavar="SECONDS", help="Show up to this time.")
@click.option("--last", type=WholeNumber(min=0), metavar="N", help="Show the last N calls only.")
def replay(file: str, is_json: bool, first_s: float | None, last_s: float | None, last: int | None) -> None:
    """Replay a recording of a router's control plane through the same code, offline.

    FILE is a recording that a router wrote after a fault of the program or on SIGUSR1. Shown are the time of each call
    in seconds since the start of the recording, what had happened, what the control plane asked for, each call whose
    outcome differs from the recorded one, and the state at the end. The whole recording is played, whatever is shown.

    Exit status: 1 when FILE is no recording, could not be read to its end, nothing of it could be played, or some
    outcome differs; else 0.
    """
    recording = _read(file)
    began = recording.entries[0].at if recording.entries else 0.0
    player = Player(recording)
    shown: deque[Step] = deque(maxlen=last)
    different: list[Step] = []
    try:
        for step in player.steps():
            if step.difference:
                different.append(step)
            at_s = step.entry.at - began
            if (first_s is None or first_s <= at_s) and (last_s is None or at_s <= last_s) and not step.entry.is_state:
                shown.append(step)
        end_difference = player.end_difference()
        with player.blaming_state():
            made = _document if is_json else _words
            parts = list(made(player, began, shown, different, end_difference))
    except LocalError as error:
        raise CommandError(_with_version(f"{file}: {error}", recording)) from error
    for part in parts:
        if isinstance(part, str):
            click.echo(part)
        else:
            console(UNBOUNDED_WIDTH).print(part)
    if recording.fault:
        say_error(f"{file}: {recording.fault}; what comes before was played")
    elif player.control is None:
        say_error(f"{file}: nothing of it could be played")
    if recording.fault or player.control is None or different or end_difference:
        sys.exit(1)


def _read(file: str) -> Recording:
    try:
        with Path(file).open(encoding="utf-8", errors="replace", newline="\n") as lines:
            return decode(_lines(lines))
    except OSError as error:
        raise unreadable(error, file) from error
    except LocalError as error:
        raise CommandError(f"{file}: {error}") from error


def _lines(file: Any) -> Iterator[str]:
    yield file.readline(LONGEST_HEADER)
    yield from file


def _with_version(words: str, recording: Recording) -> str:
    made_by = escaped(str(recording.header.get("program", "?")), 50)
    return words if made_by == __version__ else f"{words} (made by amqp-mesh {made_by}; this is {__version__})"


# Words


def _words(
    player: Player, began: float, shown: Iterable[Step], different: list[Step], end_difference: str
) -> Iterator[str | Table | Text]:
    header = player.recording.header
    said = {key: escaped(str(header.get(key, "?")), 200) for key in ("router", "written", "reason", "program")}
    yield f"recording of {said['router']}, written {said['written']}, reason: {said['reason']}"
    if said["program"] != __version__:
        yield f"made by amqp-mesh {said['program']}, played by {__version__}: what was changed since may differ"
    if player.unplayed:
        why = "the state before them was not kept, as it was too large, or another had been made shortly before"
        yield f"{player.unplayed} calls can't be played: {why}"
    for step in shown:
        yield from _step_lines(step, began)
    yield ""
    for part in _standing(player):
        yield part
        yield ""
    for step in different[:MOST_ACTIONS]:
        yield click.style(f"differs at {_at(step, began).strip()}: {escaped(step.difference)}", fg="red")
    if len(different) > MOST_ACTIONS:
        yield click.style(f"and {len(different) - MOST_ACTIONS} times more", fg="red")
    if end_difference:
        yield click.style(f"differs at the end: {escaped(end_difference)}", fg="red")
    if not different and not end_difference and player.control is not None:
        yield "the replay does what was recorded"


def _step_lines(step: Step, began: float) -> Iterator[str]:
    entry, at = step.entry, _at(step, began)
    if entry.mark is not None:
        yield escaped(f"{at}  ! {entry.mark.what} {entry.mark.of}".rstrip())
        return
    if entry.events is None:
        yield f"{at}  deadline"
    for event in entry.events or ():
        yield f"{at}  {event_words(event)}"
    if entry.raised and not step.raised:
        yield f"{'':>12}  ! {escaped(entry.raised)} was raised"
    if step.raised:
        yield f"{'':>12}  ! {escaped(step.raised)}"
    lines = action_words(step.actions or ())
    for line in lines[:MOST_ACTIONS]:
        yield f"{'':>12}  -> {line}"
    if len(lines) > MOST_ACTIONS:
        yield f"{'':>12}  -> and {len(lines) - MOST_ACTIONS} more"
    if step.difference:
        yield f"{'':>12}  DIFFERS: {escaped(step.difference)}"


def _at(step: Step, began: float) -> str:
    return f"{step.entry.at - began:12.6f}"


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _standing(player: Player) -> Iterator[Table | Text]:
    control = player.control
    if control is None:
        return
    connections = _table("connection", "router", "state", "cost", "")
    for link in control.neighbors():
        cells = (str(link.connection), link.router, link.state, str(link.cost), "standby" if link.is_standby else "")
        connections.add_row(*(Text(escaped(cell)) for cell in cells))
    yield connections
    counts = control.address_counts()
    routers = _table("router", "next hop", "cost", "addresses", "its neighbors")
    for node in (control.own_node(), *control.nodes()):
        cost = "unreachable" if node.cost is None else str(node.cost)
        peers = " ".join(sorted(node.peers))
        row = (str(node.id), str(node.next_hop or "-"), cost, str(counts.get(node.id, 0)), peers)
        routers.add_row(*(Text(escaped(cell)) for cell in row))
    yield routers
    due, end = control.next_deadline(), player.recording.end
    at = float(end["t"]) if end is not None else player.recording.entries[-1].at
    yield Text(f"next deadline {due - at:.3f} s later" if due < math.inf else "no deadline")


# JSON


def _document(
    player: Player, began: float, shown: Iterable[Step], different: list[Step], end_difference: str
) -> Iterator[str]:
    document = {
        "recording": dict(player.recording.header),
        "fault": player.recording.fault or None,
        "unplayed": player.unplayed,
        "calls": [_plain_step(step, began) for step in shown],
        "differences": [_plain_difference(step, began) for step in different],
        "end_difference": end_difference or None,
        "end": _plain_end(player),
    }
    yield json.dumps(document, indent=2)


def _plain_difference(step: Step, began: float) -> dict[str, object]:
    return {"line": step.entry.line, "at": step.entry.at - began, "difference": step.difference}


def _plain_step(step: Step, began: float) -> dict[str, object]:
    entry = step.entry
    plain: dict[str, object] = {"line": entry.line, "at": entry.at - began}
    if entry.mark is not None:
        return {**plain, "mark": entry.mark.what, "of": entry.mark.of}
    return {
        **plain,
        "events": None if entry.events is None else [event.to_dict() for event in entry.events],
        "actions": None if step.actions is None else [action.to_dict() for action in step.actions],
        "raised": step.raised or None,
        "recorded": {"actions": dict(entry.actions), "raised": entry.raised or None},
        "difference": step.difference or None,
    }


def _plain_end(player: Player) -> dict[str, object] | None:
    control = player.control
    if control is None:
        return None
    due = control.next_deadline()
    counts = control.address_counts()
    return {
        "connections": [
            {"connection": link.connection, "router": link.router, "state": link.state, "cost": link.cost}
            for link in control.neighbors()
        ],
        "routers": [
            {
                "router": node.id,
                "next_hop": node.next_hop,
                "cost": node.cost,
                "addresses": counts.get(node.id, 0),
                "neighbors": dict(node.peers),
            }
            for node in (control.own_node(), *control.nodes())
        ],
        "addresses": control.known_addresses,
        "next_deadline": due if due < math.inf else None,
    }
