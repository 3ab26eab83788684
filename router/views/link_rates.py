"""Rates of links, and when each last had a message: by looks at their counters, so that no message costs more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Final

import attrs

from router.binding.proton_functions import pn_link_credit
from router.dataplane.links import EgressLink, IngressLink, PublisherLink, SubscriberLink
from router.management.overdue_outcome_texts import HANGS_S
from router.runtime import Runtime

FULL_SHARE: Final = 0.75
"""Part of its credit that a publisher has used from which on it counts as full."""
FULL_S: Final = 0.5
"""Time that a full publisher's messages take from which on it sends too much, seconds."""
MOST_LOOKED: Final = 2000
"""Maximum number of links looked at in one look; where there are more, each look takes the next ones."""
AT_ONCE: Final = 250
"""Maximum number of links looked at between two events."""


@attrs.define
class LinkSample:
    """State of a link at the last look."""

    at: float
    """Time of the look, seconds, monotonic."""
    deliveries: int
    settled: int
    rate: float = 0.0
    """Messages a second between the last two looks."""
    settle_rate: float = 0.0
    """Messages settled a second between the last two looks."""
    last: float | None = None
    """Time of the last look that found new messages, seconds, monotonic."""
    last_outcome: float | None = None
    """Time of the last look that found new outcomes, seconds, monotonic."""
    owing_since: float | None = None
    """Time of the first sample since which a subscriber that has messages without outcome has given none, seconds; None
    for others."""


@attrs.frozen
class TooFastPublisher:
    """A publisher that sends faster than its messages are taken."""

    link: PublisherLink
    since: float
    """Time of the first look that found it so, seconds, monotonic."""


class LinkRates:
    """Samples of all links of a router."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._samples: dict[IngressLink | EgressLink, LinkSample] = {}
        self._full: dict[PublisherLink, float] = {}
        """Publishers that were nearly full, and their messages late, at each look since this time, seconds."""
        self._hanging: dict[SubscriberLink, float] = {}
        """Subscribers that have messages without outcome and have given none since this time, seconds."""
        self._offset = 0
        self.looked_at = -math.inf
        """Time of the last look, seconds, monotonic."""

    def look(self) -> Iterator[None]:
        """Look at links, at all where they are not very many; pauses after each few. To be called each second or so."""
        now = self.looked_at = self._runtime.clock()
        known = self._runtime.data_plane.links
        if len(self._samples) > len(known):
            self._samples = {link: sample for link, sample in self._samples.items() if link in known}
            self._full = {link: since for link, since in self._full.items() if link in known}
            self._hanging = {link: since for link, since in self._hanging.items() if link in known}
        links = list(islice(known, self._offset, self._offset + MOST_LOOKED))
        self._offset = self._offset + MOST_LOOKED if len(links) == MOST_LOOKED else 0
        for index, link in enumerate(links):
            if index % AT_ONCE == AT_ONCE - 1:
                yield
                now = self._runtime.clock()
            if link in known:  # it may be gone by now
                self._look_at(link, now)
                self._look_for_flood(link, now)

    def _look_at(self, link: IngressLink | EgressLink, now: float) -> None:
        deliveries = link.counters.deliveries
        settled = deliveries - (link.in_flight if isinstance(link, IngressLink) else link.outstanding)
        sample = self._samples.get(link)
        if sample is None:
            last = now if deliveries else None
            sample = self._samples[link] = LinkSample(at=now, deliveries=deliveries, settled=settled, last=last)
            self._look_for_hang(link, sample, now, is_settling=False)
            return
        passed_s = now - sample.at
        if passed_s <= 0:
            return
        if deliveries != sample.deliveries:
            sample.last = now
        if settled > sample.settled:
            sample.last_outcome = now
        self._look_for_hang(link, sample, now, is_settling=settled > sample.settled)
        sample.rate = (deliveries - sample.deliveries) / passed_s
        sample.settle_rate = max(0, settled - sample.settled) / passed_s
        sample.at, sample.deliveries, sample.settled = now, deliveries, settled

    def _look_for_hang(
        self, link: IngressLink | EgressLink, sample: LinkSample, now: float, *, is_settling: bool
    ) -> None:
        # Of a message that is still being sent, the subscriber can't give an outcome yet.
        if not isinstance(link, SubscriberLink) or not link.outstanding or link.current is not None:
            sample.owing_since = None
        elif sample.owing_since is None or is_settling:
            sample.owing_since = now
        if sample.owing_since is not None and now - sample.owing_since >= HANGS_S:
            assert isinstance(link, SubscriberLink)
            self._hanging.setdefault(link, sample.owing_since)
        elif self._hanging:
            self._hanging.pop(link, None)  # type: ignore[call-overload]

    def hanging(self) -> Iterator[tuple[SubscriberLink, float]]:
        """Subscribers with messages without outcome that give none, and since when, those first that began first."""
        known = self._runtime.data_plane.links
        found = [(since, link) for link, since in self._hanging.items() if link in known and link.outstanding]
        return ((link, since) for since, link in sorted(found, key=lambda it: (it[0], it[1].id)))

    def _look_for_flood(self, link: IngressLink | EgressLink, now: float) -> None:
        if not isinstance(link, PublisherLink) or link.controller is not None:
            return  # the credit of an address is dealt to its publishers: none of them can send too much
        # It sends on with each outcome, so that at the moment of a look some may be missing.
        if 0 < FULL_SHARE * link.window <= link.in_flight and self._is_late(link, now):
            self._full.setdefault(link, now)
        else:
            self._full.pop(link, None)

    def _is_late(self, link: PublisherLink, now: float) -> bool:
        """Whether messages of it wait for their outcomes, the first of them and all."""
        oldest = next(iter(self._runtime.data_plane.transfers_on(link)), None)
        is_late = oldest is not None and now - oldest.arrived >= FULL_S
        return is_late and FULL_S * self._samples[link].settle_rate < link.in_flight

    def floods(self) -> list[TooFastPublisher]:
        """Publishers without an address that the last look found nearly full, those first that were so first."""
        known = self._runtime.data_plane.links
        return [TooFastPublisher(link, since) for link, since in self._full.items() if link in known]

    def is_flooding(self, link: IngressLink | EgressLink) -> bool:
        """Whether the last look found the publisher to be one of the floods."""
        return isinstance(link, PublisherLink) and link in self._full

    def of(self, link: IngressLink | EgressLink) -> LinkSample | None:
        """The sample of a link; None for one that nobody has looked at yet."""
        return self._samples.get(link)

    def last_of(self, links: list[IngressLink | EgressLink]) -> float | None:
        """Time of the last message on any of *links*, as far as looks have found it, seconds, monotonic."""
        now = self._runtime.clock()
        found = [
            now if sample is None or link.counters.deliveries != sample.deliveries else sample.last
            for link, sample in ((link, self._samples.get(link)) for link in links)
            if sample is not None or link.counters.deliveries
        ]
        return max((each for each in found if each is not None), default=None)


def capacity(link: IngressLink | EgressLink) -> int:
    """Most messages that may be under way on a link now: by its window, or by what its peer has granted."""
    if isinstance(link, IngressLink):
        return link.window
    return max(0, int(pn_link_credit(link.handle))) + link.outstanding
