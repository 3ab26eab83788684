"""A control plane's play: `>>` something happens, `<<` the next action it must ask for; an unnamed one is a failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from router.core.controlplane import ControlPlane
from router.core.events import Action, Event


class Playbook:
    """Plays *control* from time *now*; actions of the kinds in *ignore* are left out."""

    def __init__(self, control: ControlPlane, *, now: float = 0.0, ignore: tuple[type[Action], ...] = ()) -> None:
        self.control = control
        self.now = now
        self.ignore = ignore
        self.actions: list[Action] = []

    def __rshift__(self, events: Event | Sequence[Event]) -> Self:
        """One turn with one event, or with several."""
        turn = [events] if isinstance(events, Event) else events
        return self._take(self.control.handle(turn, now=self.now))

    def __lshift__(self, action: Action | type[Action]) -> Self:
        """The next action is this one, or of this kind."""
        assert self.actions, f"no action is left, {action} is due"
        head = self.actions.pop(0)
        if isinstance(action, type):
            assert isinstance(head, action)
        else:
            assert head == action
        return self

    def at(self, now: float) -> Self:
        """Go to time *now*, with every deadline until then."""
        while (deadline := self.control.next_deadline()) <= now:
            self.now = max(self.now, deadline)
            self._take(self.control.handle_deadline(now=self.now))
            assert self.control.next_deadline() > self.now
        self.now = now
        return self

    def end(self) -> Self:
        """Nothing else was asked for."""
        assert not self.actions, self.actions
        self.control.check_invariants()
        return self

    def rest(self) -> list[Action]:
        """All actions not yet named; they are gone from here."""
        rest, self.actions = self.actions, []
        self.control.check_invariants()
        return rest

    def _take(self, actions: Sequence[Action]) -> Self:
        self.actions.extend(action for action in actions if not isinstance(action, self.ignore))
        return self
