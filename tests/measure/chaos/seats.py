"""Clients that stay: each has a wire of its own to a router, and connects again whenever it has lost its connection."""

from __future__ import annotations

import time
from collections import deque

import attrs

from tests.helpers.relay import LOOPBACK
from tests.measure.chaos.ends import Receiver, Sender, attach_receiver, attach_sender
from tests.measure.chaos.ledger import Ledger
from tests.measure.chaos.wires import Wire
from tests.measure.credit.client import Client, Loop

AGAIN_S = 0.1
"""Between two attempts to connect."""
ATTACH_S = 6.0
"""Within which a router has to have answered; else a client connects anew."""
IDLE_S = 6.0
"""A router from which nothing was heard for so long is taken to be gone."""
BURST = 64
"""Messages that one publisher sends at a time, at most."""


@attrs.frozen
class Place:
    """What a seat is for."""

    name: str
    router: str
    address: str
    is_publisher: bool
    is_presettled: bool = False
    is_multicast: bool = False


@attrs.define(eq=False)
class Seat:
    """One client; its link is another one after each connection."""

    place: Place
    wire: Wire
    loop: Loop
    ledger: Ledger
    rate: float = 0.0
    """Messages in a second that it sends, at most."""
    is_on: bool = False
    """Whether it sends."""
    end: Sender | Receiver | None = None
    connections: int = 0
    """How often it has connected."""
    _client: Client | None = None
    _began: float = 0.0
    _due: float = 0.0
    """When it sends the next one, or connects again."""
    passed: deque[int] = attrs.field(factory=lambda: deque(maxlen=1000))

    @property
    def is_attached(self) -> bool:
        """Whether its link stands, as far as it knows."""
        return self.end is not None and self.end.is_attached and self._lost is None

    @property
    def _lost(self) -> str | None:
        """Why its connection is of no use any more."""
        client, end = self._client, self.end
        assert client is not None
        assert end is not None
        if client.is_closed or client.fault is not None:
            return client.fault or "closed"
        if end.closed is not None:
            return f"detached: {end.closed}"
        if not end.is_attached and time.monotonic() - self._began > ATTACH_S:
            return "no answer"
        return None

    def connect(self) -> None:
        """Begin a connection."""
        self._due = time.monotonic() + AGAIN_S
        try:
            client = self.loop.connect(f"amqp://{LOOPBACK}:{self.wire.port}", self.place.name, idle_timeout_s=IDLE_S)
        except OSError:
            return
        self._client = client
        self._began = time.monotonic()
        self.connections += 1
        place = self.place
        if place.is_publisher:
            source = self.ledger.new_source(
                place.address, is_presettled=place.is_presettled, is_multicast=place.is_multicast
            )
            self.end = attach_sender(client, self.ledger, source)
        else:
            self.end = attach_receiver(client, self.ledger, self.ledger.new_sink(place.address))

    def leave(self) -> None:
        """Drop the connection without a word."""
        client, end = self._client, self.end
        self._client = self.end = None
        if client is not None and end is not None:
            self.ledger.left(end.source if isinstance(end, Sender) else end.sink)
            client.drop()

    def act(self, now: float) -> None:
        """Connect again, send or answer, whatever is due."""
        if self.end is None:
            if now >= self._due:
                self.connect()
        elif self._lost is not None:
            self.leave()
            self._due = now + AGAIN_S
        elif isinstance(self.end, Receiver):
            self.end.answer()
        elif self.is_on and self.end.is_attached and now >= self._due:
            # What could not be sent in time is not made up for.
            self._due = max(self._due, now - BURST / self.rate)
            sent = self.end.fill(min(BURST, int((now - self._due) * self.rate) + 1))
            self._due += sent / self.rate if sent else 0.0
