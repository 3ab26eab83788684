"""What became of every message: who sent it, which outcome it had, where it arrived and what was said there.

A link that sends is a *source*, a link that receives a *sink*: who connects again is another one. Every message is sent
once; its source and its number say which it is. The ledger is told what happens in the moment in which it happens, and
counts at once what must never be; `settle` looks at what can only be judged when nothing is under way any more.
"""

from __future__ import annotations

from collections import Counter

import attrs

NONE, ACCEPTED, REJECTED, RELEASED, MODIFIED, UNKNOWN = range(6)
"""Outcomes; UNKNOWN: its publisher's connection ended before it had one."""
OUTCOMES = ("none", "accepted", "rejected", "released", "modified", "unknown")

VIOLATIONS = {
    "no outcome": "an unsettled message without an outcome, though its publisher stayed",
    "two outcomes": "an outcome for a message that had one",
    "accepted by nobody": "ACCEPTED, and no subscriber had accepted it",
    "arrived twice": "a second arrival of one message, or of one copy at one subscriber",
    "released, yet received": "RELEASED or REJECTED, and a subscriber got it and said otherwise",
    "reordered": "overtaken by a later one of its link at one subscriber, while the path stood",
    "copy missing": "a multicast ACCEPTED while all was calm that a subscriber did not get",
    "damaged": "an arrival whose bytes are those of no message",
    "credit exceeded": "publishers held more than subscribers granted and one for each publisher",
    "no recovery": "traffic that did not flow again in time",
    "left behind": "links, addresses or messages at a router when every client had gone",
    "ended": "a router that ended by itself, or logged an error",
}
"""What must never be, by name."""


@attrs.define(eq=False)
class Source:
    """One link that sends."""

    key: int
    address: str
    is_presettled: bool = False
    is_multicast: bool = False
    outcomes: bytearray = attrs.field(factory=bytearray)
    """By number."""
    arrivals: bytearray = attrs.field(factory=bytearray)
    """By number; of an anycast, at any sink."""
    said: bytearray = attrs.field(factory=bytearray)
    """By number: what the sink said, NONE before it did."""
    copies: dict[int, bytearray] = attrs.field(factory=dict)
    """Of a multicast: arrivals by sink."""
    latest: dict[int, int] = attrs.field(factory=dict)
    """By sink: the highest number that arrived there."""
    calm_from: int = 0
    """The first number that was sent since the path stands."""
    settled_to: int = 0
    """Numbers below this one were looked at."""
    is_gone: bool = False

    @property
    def sent(self) -> int:
        """Messages so far."""
        return len(self.outcomes)

    @property
    def unanswered(self) -> int:
        """Unsettled messages that have no outcome yet, among those not looked at."""
        return 0 if self.is_presettled else self.outcomes.count(NONE, self.settled_to)

    @property
    def inside(self) -> int:
        """Messages of an anycast that have neither arrived nor an outcome, among those not looked at."""
        return sum(
            not outcome and not arrived
            for outcome, arrived in zip(self.outcomes[self.settled_to :], self.arrivals[self.settled_to :], strict=True)
        )


@attrs.define(eq=False)
class Sink:
    """One link that receives."""

    key: int
    address: str
    since: dict[int, int] = attrs.field(factory=dict)
    """By source of a multicast: the first number that it has to get, set when everything is calm."""


@attrs.define(eq=False)
class Ledger:
    """The account of all messages."""

    sources: dict[int, Source] = attrs.field(factory=dict)
    sinks: dict[int, Sink] = attrs.field(factory=dict)
    violations: Counter[str] = attrs.field(factory=Counter)
    totals: Counter[str] = attrs.field(factory=Counter)
    """Messages by outcome, arrivals, and what was no fault but worth counting."""
    examples: list[str] = attrs.field(factory=list)
    """The first violations, in words."""
    is_calm: bool = False
    """Whether every path stands."""
    _keys: int = 0

    # What happens

    def new_source(self, address: str, *, is_presettled: bool = False, is_multicast: bool = False) -> Source:
        """A link that sends has been made."""
        self._keys += 1
        source = self.sources[self._keys] = Source(self._keys, address, is_presettled, is_multicast)
        return source

    def new_sink(self, address: str) -> Sink:
        """A link that receives has been made."""
        self._keys += 1
        sink = self.sinks[self._keys] = Sink(self._keys, address)
        return sink

    def sent(self, source: Source) -> int:
        """It sends a message. Returns: its number."""
        number = len(source.outcomes)
        for table in (source.outcomes, source.arrivals, source.said):
            table.append(NONE)
        self.totals["sent"] += 1
        return number

    def answered(self, source: Source, number: int, outcome: int) -> None:
        """It was told an outcome."""
        if source.outcomes[number] != NONE:
            self.violate("two outcomes", f"{_name(source, number)}: {outcome} after {source.outcomes[number]}")
            return
        source.outcomes[number] = outcome
        self.totals[OUTCOMES[outcome]] += 1

    def arrived(self, sink: Sink, key: int, number: int) -> None:
        """A message, or a copy, came whole to a subscriber."""
        self.totals["arrived"] += 1
        source = self.sources.get(key)
        if source is None:
            self.totals["of forgotten publishers"] += 1
            return
        if number >= source.sent:
            self.violate("damaged", f"{_name(source, number)} at {sink.key}: only {source.sent} were sent")
            return
        table = source.arrivals
        if source.is_multicast:
            table = source.copies.setdefault(sink.key, bytearray())
            table.extend(bytes(max(0, source.sent - len(table))))
        if table[number]:
            self.violate("arrived twice", f"{_name(source, number)} at sink {sink.key}, calm={self.is_calm}")
        table[number] = 1
        latest = source.latest.get(sink.key, -1)
        if number < latest:
            if self.is_calm and number >= source.calm_from:
                self.violate("reordered", f"{_name(source, number)} at sink {sink.key}, after {latest}")
            else:
                self.totals["reordered while paths changed"] += 1
        else:
            source.latest[sink.key] = number

    def said(self, key: int, number: int, outcome: int) -> None:
        """A subscriber gave its outcome."""
        if (source := self.sources.get(key)) is not None and number < source.sent:
            source.said[number] = outcome

    def damaged(self, what: str) -> None:
        """Something arrived that is none of the messages."""
        self.violate("damaged", what)

    def left(self, end: Source | Sink) -> None:
        """The connection of a link has ended; its publisher will hear of no outcome any more."""
        if isinstance(end, Sink):
            self.sinks.pop(end.key, None)
            return
        end.is_gone = True
        if not end.is_presettled:
            for number in range(end.settled_to, end.sent):
                if end.outcomes[number] == NONE:
                    end.outcomes[number] = UNKNOWN
                    self.totals["unknown"] += 1

    def violate(self, name: str, what: str) -> None:
        """Count something that must never be."""
        assert name in VIOLATIONS, name
        self.violations[name] += 1
        if self.violations[name] <= 5:
            self.examples.append(f"{name}: {what}")

    # Calm and storm

    def calm(self) -> None:
        """From now on every path stands, and every sink gets every multicast of its address that is sent."""
        self.is_calm = True
        for source in self.sources.values():
            source.calm_from = source.sent
        for sink in self.sinks.values():
            sink.since = {
                source.key: source.sent
                for source in self.sources.values()
                if source.is_multicast and source.address == sink.address and not source.is_gone
            }

    def storm(self) -> None:
        """From now on paths change: what is under way is not expected to keep its order."""
        self.is_calm = False
        for sink in self.sinks.values():
            sink.since = {}

    # Looking, while nothing is under way

    @property
    def unanswered(self) -> int:
        """Unsettled messages of publishers that stay which have no outcome yet."""
        return sum(source.unanswered for source in self.sources.values() if not source.is_gone)

    def missing_copies(self) -> int:
        """Copies that sinks have to get and have not got."""
        return sum(len(self._missing(sink, key)) for sink in self.sinks.values() for key in sink.since)

    def _missing(self, sink: Sink, key: int) -> list[int]:
        source = self.sources.get(key)
        if source is None:
            return []
        got = source.copies.get(sink.key, b"")
        return [
            number
            for number in range(max(sink.since[key], source.settled_to), source.sent)
            if source.outcomes[number] == ACCEPTED and not (number < len(got) and got[number])
        ]

    def settle(self) -> None:
        """Judge all that was sent since the last time, and forget publishers that were gone then already."""
        for sink in self.sinks.values():
            for key in sink.since:
                for number in self._missing(sink, key):
                    self.violate("copy missing", f"{_name(self.sources[key], number)} at sink {sink.key}")
        for source in list(self.sources.values()):
            if source.is_gone and source.settled_to == source.sent:
                del self.sources[source.key]
                continue
            for number in range(source.settled_to, source.sent):
                self._judge(source, number)
            source.settled_to = source.sent
            source.copies = {key: table for key, table in source.copies.items() if key in self.sinks}
            source.latest = {key: number for key, number in source.latest.items() if key in self.sinks}

    def _judge(self, source: Source, number: int) -> None:
        outcome = source.outcomes[number]
        if source.is_presettled:
            self.totals["pre-settled, received"] += source.arrivals[number]
            self.totals["pre-settled, lost"] += not source.arrivals[number]
            return
        if outcome == NONE:
            self.violate("no outcome", f"{_name(source, number)}, arrived {source.arrivals[number]}")
        if source.is_multicast:
            return  # accepted by the first router
        said = source.said[number]
        if outcome == ACCEPTED and said != ACCEPTED:
            self.violate("accepted by nobody", f"{_name(source, number)}: the subscriber said {OUTCOMES[said]}")
        if outcome in (RELEASED, REJECTED) and source.arrivals[number] and said != outcome:
            self.violate(
                "released, yet received",
                f"{_name(source, number)} {OUTCOMES[outcome]}: the subscriber said {OUTCOMES[said]}",
            )
        if outcome == MODIFIED:
            self.totals["modified, and received" if source.arrivals[number] else "modified, not received"] += 1


def _name(source: Source, number: int) -> str:
    return f"message {number} of source {source.key} to {source.address}"
