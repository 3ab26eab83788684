"""Messages that their senders do not finish: found by a least rate over a window of time.

A link carries one message at a time, so one that is streamed and never finished shuts its subscriber off from everybody
else, and one that is held until it is whole keeps its memory. Only the time counts in which the sender could go on:
not that in which its link is not read, since a subscriber or a connection takes no more.
"""

from __future__ import annotations

from math import inf
from typing import Final

import cython

from router.dataplane.arrival_progress import ArrivalProgress
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.links import IngressLink

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import NULL, Handle, pn_delivery_partial, pn_link_current
    from router.dataplane.transfer_stages import DONE


class UnfinishedDeliveries:
    """The links on which a message has begun whose end has not come, with the progress of each."""

    def __init__(self, settings: CurrentSettings) -> None:
        self.due = inf
        """Time at which `stalled` is to be called, seconds; infinity when there is no unfinished message."""
        self._settings = settings
        self._links: dict[IngressLink, None] = {}
        self._by_session: dict[Handle, dict[IngressLink, None]] = {}

    @property
    def window_s(self) -> float:
        """Length of a window in which some of a message must come, or its end, seconds."""
        return self._settings.forwarding.unfinished_s

    @property
    def least_bytes(self) -> int:
        """Bytes of a message that must come in a window."""
        return self._settings.forwarding.unfinished_bytes

    @property
    def ahead_bytes(self) -> int:
        """Bytes for a connection that takes no more, up to which messages that block others are read all the same.

        A message that is held until it is whole would have had the first half of them.
        """
        return 2 * self._settings.forwarding.held_message_bytes

    def watch(self, link: IngressLink, received: int, now: float) -> None:
        """Watch a link: the first *received* bytes of a message have come at *now*, seconds, and not its end."""
        link.progress = ArrivalProgress(link.counters.deliveries, received, now)
        self._links[link] = None
        self._by_session.setdefault(link.session, {})[link] = None
        if self.due == inf:
            self.due = now + self.window_s / LOOKS

    def forget(self, link: IngressLink) -> None:
        """Watch a link no more: it is gone, or nothing on it is unfinished."""
        link.progress = None
        if link in self._links:
            del self._links[link]
            siblings = self._by_session[link.session]
            del siblings[link]
            if not siblings:
                del self._by_session[link.session]

    def has_sibling(self, link: IngressLink) -> bool:
        """Whether another link of its session has a message whose end has not come.

        Its sender may not get to that end while this link is not read: what lies unread closes their session's window.
        """
        finished = []
        has_other = False
        for sibling in self._by_session.get(link.session, ()):
            if sibling is link:
                continue
            if not self._is_finished(sibling):
                has_other = True
                break
            finished.append(sibling)
        for sibling in finished:
            self.forget(sibling)
        return has_other

    def stalled(self, now: float) -> list[IngressLink]:
        """Look at all of them at *now*, seconds. Returns: the links whose messages are to be given up.

        In a session that links of a neighbor share, that is also one that has not been read for a window: it keeps the
        window of their session closed, and none of the others is given up for that.
        """
        found = []
        for link in list(self._links):
            progress = link.progress
            assert progress is not None
            if self._is_finished(link):
                self.forget(link)
            elif (
                progress.message != link.counters.deliveries
                or progress.received >= self.least_bytes
                or (link.current is not None and link.current.state == DONE)
                or (link.port.is_stopped and not link.port.is_router)  # nothing is read of it
            ):
                progress.restart(link.counters.deliveries, now)
            elif progress.paused_at != inf:
                if link.shares_session() and now - progress.paused_at >= self.window_of(link) - GRAIN_S:
                    found.append(link)
            elif progress.elapsed(now) >= self.window_of(link) - GRAIN_S:
                if link.shares_session() and self._is_blocked(link, now - self.window_of(link) / 2):
                    progress.restart(link.counters.deliveries, now)
                else:
                    found.append(link)
        self.due = now + self.window_s / LOOKS if self._links else inf
        return found

    def window_of(self, link: IngressLink) -> float:
        """The window of a link, seconds: a neighbor's is longer, so that the router decides where a message entered."""
        return self.window_s * NEIGHBOR_WINDOWS if link.port.is_router else self.window_s

    def _is_blocked(self, link: IngressLink, since: float) -> bool:
        """Whether another unfinished one of its session has not been read *since* then, seconds."""
        for sibling in self._by_session[link.session]:
            progress = sibling.progress
            if progress is not None and progress.paused_at <= since:
                return True
        return False

    def _is_finished(self, link: IngressLink) -> bool:
        if link.current is not None:
            return False
        delivery = pn_link_current(link.handle)  # of one that has begun without a byte there is nothing else
        return delivery == NULL or not pn_delivery_partial(delivery)


LOOKS: Final = 8
"""Number of looks in a window at the progress of messages."""
NEIGHBOR_WINDOWS: Final = 2
"""Length of the window of a neighbor's link, in windows of this router: the router at which the message entered the
mesh gives it up first, and not the neighbor that passes it on."""
GRAIN_S: Final = 0.001
"""Error that sums of times may have, seconds."""
