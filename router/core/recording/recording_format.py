"""The format of a recording: lines of JSON, the first of which says what it is and the last that nothing is missing.

| line | keys |
|---|---|
| the first | `amqp-mesh-recording` (the version of the format), `program`, `router`, `instance`, `reason`, `written` |
| a state | `t`, `state`: see `router.core.recording.control_plane_state`; None when too large, too soon, unwritable |
| a call | `t`, `events` (None: a deadline), `actions` (how many of each kind), `digest` of all of them |
| a call that raised | `t`, `events`, `raised` |
| a fault between calls | `t`, `mark`, `of` |
| the last | `end`: how the control plane stood, `t` |

`t` is in seconds, monotonic.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from router.core.controlplane import ControlPlane
from router.core.errors import LocalError
from router.core.events import Action, Event
from router.core.recording.control_plane_state import thaw, to_plain
from router.core.recording.recorded_control_plane import Call, OutsideFault, Raised, Segment
from router.core.terminal_escaping import escaped

VERSION: Final = 1
"""Version of the format."""
MAGIC: Final = "amqp-mesh-recording"
DIGEST_BYTES: Final = 8
HELD_AT_ONCE: Final = 200
"""Number of values of a list in a state that are encoded at once: no other thread runs meanwhile."""


def digest(actions: Sequence[Action]) -> str:
    """A short text that is another one when an action, or their order, is."""
    plain = json.dumps([action.to_dict() for action in actions], sort_keys=True)
    return hashlib.blake2b(plain.encode(), digest_size=DIGEST_BYTES).hexdigest()


def kinds(actions: Sequence[Action]) -> dict[str, int]:
    """Count the actions of each kind."""
    return dict(sorted(Counter(type(action).__name__ for action in actions).items()))


def standing(control: ControlPlane, now: float) -> dict[str, object]:
    """Sum up how *control* stands at *now* (seconds), in a few numbers."""
    due = control.next_deadline()
    return {
        "routers": control.known_routers,
        "addresses": control.known_addresses,
        "connections": len(control.neighbors()),
        "due": due if math.isfinite(due) else None,
        "t": now,
    }


def encode(header: Mapping[str, object], segments: Sequence[Segment], end: Mapping[str, object]) -> Iterator[str]:
    """The text of a recording in pieces, none of which takes long to make.

    Args:
        header: what the first line says beside the version of the format.
        segments: oldest first.
        end: `standing` after the last call.
    """
    yield _line({MAGIC: VERSION, **header})
    for segment in segments:
        yield from _state_pieces(segment)
        for call in segment.calls:
            yield _call_line(call)
    yield _line({"end": end})


def _state_pieces(segment: Segment) -> Iterator[str]:
    """The line of a state; one with its fault behind it when there is no state because of that."""
    try:
        items = to_plain(thaw(segment.state)) if segment.state is not None else None
    except Exception as error:  # the calls, and the other segment, must be written all the same
        yield _line({"t": segment.began, "state": None})
        yield _unwritable(segment.began, error)
        return
    if items is None:
        yield _line({"t": segment.began, "state": None})
        return
    yield f'{{"t":{_json(segment.began)},"state":['
    for number, item in enumerate(items):
        yield "," if number else ""
        yield from _item_pieces(item)
    yield "]}\n"


def _item_pieces(item: Any) -> Iterator[str]:
    """An item of a state, whose last part may be a list of all addresses."""
    *words, held = item
    if not isinstance(held, list):
        yield _json(item)
        return
    yield f"[{''.join(f'{_json(word)},' for word in words)}["
    for begin in range(0, len(held), HELD_AT_ONCE):
        yield f"{',' if begin else ''}{_json(held[begin : begin + HELD_AT_ONCE])[1:-1]}"
    yield "]]"


def _json(plain: object) -> str:
    return json.dumps(plain, separators=(",", ":"), allow_nan=False)


def _line(plain: Mapping[str, object]) -> str:
    return _json(plain) + "\n"


def _unwritable(at: float, error: Exception) -> str:
    return _line({"t": at, "mark": "unwritable", "of": f"{type(error).__name__}: {error}"})


def _call_line(call: Call) -> str:
    try:
        return _line(_plain_call(call))
    except Exception as error:  # what is broken may be what is looked for: the rest must be written all the same
        return _unwritable(call[0], error)


def _plain_event(event: object) -> dict[str, object]:
    # What is no event at all was refused by the control plane, as this is when it is played.
    return event.to_dict() if isinstance(event, Event) else {"kind": Event.__name__}


def _plain_call(call: Call) -> dict[str, object]:
    now, events, outcome = call
    if isinstance(outcome, OutsideFault):
        return {"t": now, "mark": outcome.what, "of": outcome.of}
    plain: dict[str, object] = {
        "t": now,
        "events": [_plain_event(event) for event in events] if events is not None else None,
    }
    if isinstance(outcome, Raised):
        return {**plain, "raised": outcome.error}
    return {**plain, "actions": kinds(outcome), "digest": digest(outcome)}


# Reading


@attrs.frozen(kw_only=True)
class Entry:
    """One line of a recording, between the first and the last."""

    line: int
    """Number of the line, from 1."""
    at: float
    """Seconds, monotonic."""
    is_state: bool = False
    state: object = None
    """State as `to_plain` gave it, if one was kept."""
    events: Sequence[Event] | None = None
    """Events of the call; None at a deadline."""
    actions: Mapping[str, int] = attrs.field(factory=dict)
    digest: str = ""
    raised: str = ""
    mark: OutsideFault | None = None


@attrs.frozen(kw_only=True)
class Recording:
    """Content of a recording's file."""

    header: Mapping[str, Any]
    entries: Sequence[Entry]
    end: Mapping[str, Any] | None
    """`standing` when it was written; None when the end is missing."""
    fault: str = ""
    """Reason why it could not be read to its end."""


def decode(lines: Iterable[str]) -> Recording:
    """Read a recording; of one that is cut, what comes before the cut.

    Raises:
        LocalError: it is no recording, or its format has another version.
    """
    numbered = enumerate(lines, start=1)
    header = _header(next(numbered, (1, ""))[1])
    entries: list[Entry] = []
    number = 1
    for number, line in numbered:
        try:
            plain = json.loads(line)
            if "end" in plain:
                end = {**plain["end"], "t": _time(plain["end"]["t"])}
                return Recording(header=header, entries=entries, end=end)
            entries.append(_entry(number, plain))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            LocalError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            what = "it is cut there" if not line.endswith("\n") else f"it is spoilt there: {escaped(str(error), 200)}"
            return Recording(header=header, entries=entries, end=None, fault=f"line {number}: {what}")
    fault = f"line {number} is the last, and no end of a recording: it is cut there"
    return Recording(header=header, entries=entries, end=None, fault=fault)


def _header(line: str) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or MAGIC not in header:
        raise LocalError(f"no recording of amqp-mesh: its first line has no {MAGIC!r}")
    if header[MAGIC] != VERSION:
        found = escaped(str(header[MAGIC]), 20)
        raise LocalError(f"a recording of version {found}, made by amqp-mesh {_text(header, 'program')}; "
                         f"this program reads version {VERSION}")  # fmt: skip
    return header


def _text(header: Mapping[str, Any], key: str) -> str:
    return escaped(str(header.get(key, "?")), 50)


def _time(value: Any) -> float:
    at = float(value)
    if not math.isfinite(at):
        raise ValueError(f"{at} is no time")
    return at


def _entry(number: int, plain: Mapping[str, Any]) -> Entry:
    at = _time(plain["t"])
    if "state" in plain:
        return Entry(line=number, at=at, is_state=True, state=plain["state"])
    if "mark" in plain:
        return Entry(line=number, at=at, mark=OutsideFault(str(plain["mark"]), str(plain["of"])))
    events = plain["events"]
    return Entry(
        line=number,
        at=at,
        events=None if events is None else [Event.from_dict(event) for event in events],
        raised=str(plain.get("raised", "")),
        actions={str(kind): int(count) for kind, count in plain.get("actions", {}).items()},
        digest=str(plain.get("digest", "")),
    )
