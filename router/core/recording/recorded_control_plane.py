"""Control plane that keeps, within bounds, what moved it lately: its last calls, and a state from which they follow.

There are two segments at most, each with the state that its first call found. When the newer one is full the older one
is dropped and a third begins: so what is left always begins with a state. Each has three eighths of all room, since
the last call of one may be large. Calls are kept as the frozen objects that they had and gave; nothing is encoded
before somebody wants to read it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from router.core.controlplane import ControlPlane
from router.core.events import Action, ControlReceived, Event, SendControl
from router.core.linkstate.messages import Hello, LinkStateUpdate, MobileAddressRequest, MobileAddressUpdate
from router.core.recording.control_plane_state import freeze

CALL_BYTES: Final = 200
"""Memory that a call takes, bytes."""
EVENT_BYTES: Final = 600
"""Memory that an event with its message takes, bytes."""
ACTION_BYTES: Final = 300
"""Memory that an action takes, bytes."""
ITEM_BYTES: Final = 80
"""Memory that a router or an address in a list takes beside its text, bytes."""
CALLS_AT_ONCE: Final = 8
"""Maximum number of calls whose memory is counted together."""
LARGE_BYTES: Final = 65536
"""Memory of the calls counted last above which the next one is counted by itself, bytes."""
STATE_ADDRESS_BYTES: Final = 40
STATE_ROUTER_BYTES: Final = 300
"""Approximate memory of an address and of a router in a state, bytes."""
STATE_PAUSE_S: Final = 1e-6
"""Pause after a state for each of its bytes: a fortieth of it is what making it takes."""


@attrs.frozen
class Raised:
    """The outcome of a call that raised: a fault of this program."""

    error: str
    """Class of the exception."""


@attrs.frozen
class OutsideFault:
    """No call: a fault outside the control plane, between two calls."""

    what: str
    """The event of the log."""
    of: str = ""
    """Name of what it happened to."""


Outcome = Sequence[Action] | Raised | OutsideFault
Call = tuple[float, Sequence[Event] | None, Outcome]
"""Call: its time (seconds, monotonic), the events, None for a deadline, and what came of it."""


@attrs.define
class Segment:
    """Calls in a row."""

    began: float
    """Seconds, monotonic."""
    state: bytes | None
    """`freeze` of the control plane before the first of them; None when it is too large, or was too soon."""
    bytes: int
    """Estimate of the memory taken, bytes."""
    calls: list[Call] = attrs.field(factory=list)


def _link_state_bytes(message: LinkStateUpdate, _: Sequence[Action]) -> int:
    return ITEM_BYTES * len(message.peers)


def _addresses_bytes(message: MobileAddressUpdate, _: Sequence[Action]) -> int:
    lists = (message.add, message.delete, message.exist or ())
    return sum(ITEM_BYTES * len(texts) + sum(map(len, texts)) for texts in lists)


def _answer_bytes(_: MobileAddressRequest, actions: Sequence[Action]) -> int:
    sent = (action.message for action in actions if isinstance(action, SendControl))
    return sum(_addresses_bytes(message, ()) for message in sent if isinstance(message, MobileAddressUpdate))


_BYTES: Final[Mapping[type, Callable[[Any, Sequence[Action]], int]]] = {
    LinkStateUpdate: _link_state_bytes,
    MobileAddressUpdate: _addresses_bytes,
    MobileAddressRequest: _answer_bytes,
}
"""Memory of what may be large: a list in a message, or in the answer to it. What actions pass on is shared with it."""


class RecordedControlPlane:
    """A control plane whose last calls are kept. It is driven as the control plane itself.

    Args:
        control: what is called.
        max_bytes: memory for all that is kept, as estimated.
        max_calls: calls kept.
        now: seconds, monotonic.
        on_fault: told of a fault in here, which never reaches the caller; nothing is kept from then on.
    """

    def __init__(
        self,
        control: ControlPlane,
        *,
        max_bytes: int,
        max_calls: int,
        now: float,
        on_fault: Callable[[Exception], None],
    ) -> None:
        self._control = control
        self._max_bytes = max_bytes
        self._share_bytes = max_bytes * 3 // 8
        self._half_calls = max(1, max_calls // 2)
        self._on_fault = on_fault
        self._older: Segment | None = None
        self._state_at = -math.inf
        """Time from which another state may be made, seconds."""
        self._is_owed = False
        """Whether the newer segment has no state for no other reason than that it was too soon."""
        self._newer = self._begun(now)
        self._calls = self._newer.calls
        self._weighed = 0
        """Number of calls in the newer segment whose memory was counted."""
        self._weigh_at = min(CALLS_AT_ONCE, self._half_calls)
        """Number of calls in the newer segment at which their memory is counted next."""

    def handle(self, events: Sequence[Event], *, now: float) -> list[Action]:
        """See `ControlPlane.handle`."""
        try:
            actions = self._control.handle(events, now=now)
        except Exception as error:
            self.keep(now, events, Raised(type(error).__name__))
            raise
        calls = self._calls
        calls.append((now, events, actions))
        if len(calls) >= self._weigh_at:
            self._weigh(now)
        return actions

    def handle_deadline(self, *, now: float) -> list[Action]:
        """See `ControlPlane.handle_deadline`."""
        try:
            actions = self._control.handle_deadline(now=now)
        except Exception as error:
            self.keep(now, None, Raised(type(error).__name__))
            raise
        self.keep(now, None, actions)
        return actions

    def keep(self, now: float, events: Sequence[Event] | None, outcome: Outcome) -> None:
        """Keep what is no call, or no usual one. Never raises.

        Args:
            now: seconds, monotonic.
            events: that were handed over; None when there were none.
            outcome: of handling them.
        """
        calls = self._calls
        calls.append((now, events, outcome))
        if len(calls) >= self._weigh_at:
            self._weigh(now)

    def segments(self) -> list[Segment]:
        """All that is kept, the oldest first: a copy that others may read while this goes on."""
        kept = [segment for segment in (self._older, self._newer) if segment is not None]
        return [attrs.evolve(segment, calls=list(segment.calls)) for segment in kept]

    @property
    def bytes(self) -> int:
        """Memory taken, as estimated."""
        return sum(segment.bytes for segment in (self._older, self._newer) if segment is not None)

    def _weigh(self, now: float) -> None:
        """Count what the last calls take, and begin a new segment when this one is full."""
        try:
            newer, calls = self._newer, self._calls
            size = _size(calls[self._weighed :])
            newer.bytes += size
            self._weighed = len(calls)
            # One at a time where messages are large.
            self._weigh_at = len(calls) + (1 if size > LARGE_BYTES else CALLS_AT_ONCE)
            is_full = newer.bytes > self._share_bytes or len(calls) + CALLS_AT_ONCE > self._half_calls
            if is_full or (now >= self._state_at and self._lacks_state()):
                self._turn(now)
        except Exception as error:  # see `on_fault`
            self._on_fault(error)

    def _lacks_state(self) -> bool:
        """Whether nothing that is kept can be played until the next state, which could have been made."""
        return self._is_owed and (self._older is None or self._older.state is None)

    def _turn(self, now: float) -> None:
        """Begin a new segment, and drop the older one."""
        self._older = None  # gone before another state is made
        before = self._newer
        self._newer = self._begun(now)
        if before.bytes + self._share_bytes <= self._max_bytes:  # else its last call was a very large one
            self._older = before
        self._calls = self._newer.calls
        self._weighed, self._weigh_at = 0, min(CALLS_AT_ONCE, self._half_calls)

    def _begun(self, now: float) -> Segment:
        control, most = self._control, self._share_bytes // 2
        state: bytes | None = None
        size = STATE_ADDRESS_BYTES * control.known_addresses + STATE_ROUTER_BYTES * control.known_routers
        self._is_owed = size <= most and now < self._state_at
        if size <= most and not self._is_owed:
            state = freeze(control)
            self._state_at = now + STATE_PAUSE_S * len(state)
        if state is None or len(state) > most:
            return Segment(began=now, state=None, bytes=0)
        return Segment(began=now, state=state, bytes=len(state))


def _size(calls: Sequence[Call]) -> int:
    """Memory of *calls*, an estimate in bytes."""
    total = CALL_BYTES * len(calls)
    for _, events, outcome in calls:
        if type(outcome) is list and outcome:
            total += ACTION_BYTES * len(outcome)
        if events is None:
            continue
        for event in events:
            total += EVENT_BYTES
            if type(event) is ControlReceived:
                message = event.message
                total += len(event.to) + ITEM_BYTES * len(event.trace)
                kind = type(message)
                if kind is Hello:
                    total += ITEM_BYTES * len(message.seen)  # type: ignore[attr-defined]
                elif kind in _BYTES:
                    total += _BYTES[kind](message, outcome if type(outcome) is list else ())
    return total
