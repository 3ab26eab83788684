"""Plays a recording through the very core that made it, and says where what comes out is not what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import attrs

from router.core.controlplane import ControlPlane
from router.core.errors import LocalError
from router.core.events import Action
from router.core.recording.control_plane_state import from_plain, to_plain
from router.core.recording.recording_format import Entry, Recording, digest, kinds, standing

WRONG_VALUE: Final = (ArithmeticError, AttributeError, LookupError, LocalError, RecursionError, TypeError, ValueError)
"""Errors that values of a wrong kind, in a state of somebody else, lead to."""


@attrs.frozen(kw_only=True)
class Step:
    """One entry of a recording, played."""

    entry: Entry
    actions: Sequence[Action] | None
    """Actions that came out; None when it was no call, could not be played, or raised."""
    raised: str = ""
    """Class and words of what was raised."""
    difference: str = ""
    """Difference of the outcome from the recorded one; empty when there is none."""


class Player:
    """Plays *recording*, step by step."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.control: ControlPlane | None = None
        """Control plane as it stands after the last step; None as long as there was no state to begin with."""
        self.differences = 0
        self.unplayed = 0
        """Number of calls that came before there was a state."""
        self._now = 0.0
        self._state_line = 0
        """Number of the line with the state from which the calls are played."""

    def steps(self) -> Iterator[Step]:
        """All of it, played while it is asked for.

        Raises:
            LocalError: a state in it is none.
        """
        for entry in self.recording.entries:
            self._now = entry.at
            if entry.is_state:
                self._state_line = entry.line
            with self.blaming_state():
                step = self._take_state(entry) if entry.is_state else self._play(entry)
            self.differences += bool(step.difference)
            yield step

    @contextmanager
    def blaming_state(self) -> Iterator[None]:
        """Turn errors of what is done with values of the state into one that names its line.

        Raises:
            LocalError: the state is none, or has values of a wrong kind.
        """
        try:
            yield
        except WRONG_VALUE as error:
            is_named = isinstance(error, LocalError)
            words = str(error) if is_named else f"no state of a control plane: {type(error).__name__}: {error}"
            raise LocalError(f"line {self._state_line}: {words}") from error

    def end_difference(self) -> str:
        """Difference between how the control plane stands and stood when it was recorded; empty if there is none.

        Raises:
            LocalError: the state has values of a wrong kind.
        """
        if self.control is None or self.recording.end is None:
            return ""
        wanted = self.recording.end
        with self.blaming_state():
            found = standing(self.control, self._now)
        words = [
            f"{key}: {found[key]} played, {wanted.get(key)} recorded"
            for key in ("routers", "addresses", "connections", "due")
            if found[key] != wanted.get(key)
        ]
        return "; ".join(words)

    def _take_state(self, entry: Entry) -> Step:
        if entry.state is None:
            return Step(entry=entry, actions=None)
        difference = ""
        recorded = from_plain(entry.state)
        if self.control is not None and to_plain(self.control) != entry.state:
            difference = "the state is another than the recorded one, from which it goes on"
        self.control = recorded
        return Step(entry=entry, actions=None, difference=difference)

    def _play(self, entry: Entry) -> Step:
        if entry.mark is not None:
            return Step(entry=entry, actions=None)
        if self.control is None:
            self.unplayed += 1
            return Step(entry=entry, actions=None)
        try:
            if entry.events is None:
                actions = self.control.handle_deadline(now=entry.at)
            else:
                actions = self.control.handle(entry.events, now=entry.at)
        except Exception as error:  # what the router met is met here too: it is what is looked for
            name = type(error).__name__
            difference = (
                "" if name == entry.raised else f"{name} raised, recorded {entry.raised or words(entry.actions)}"
            )
            return Step(entry=entry, actions=None, raised=f"{name}: {error}", difference=difference)
        return Step(entry=entry, actions=actions, difference=_difference(entry, actions))


def words(found: Mapping[str, int]) -> str:
    """Say in words how many actions of each kind there are."""
    return ", ".join(f"{count} {kind}" for kind, count in found.items()) or "no action"


def _difference(entry: Entry, actions: Sequence[Action]) -> str:
    if entry.raised:
        return f"{words(kinds(actions))}, recorded {entry.raised} raised"
    if entry.digest == digest(actions):
        return ""
    found = kinds(actions)
    if found == entry.actions:
        return f"{words(found)}, as recorded, but with other contents or in another order"
    return f"{words(found)}, recorded {words(entry.actions)}"
