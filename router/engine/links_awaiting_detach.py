"""Links that this side has closed for a fault of the peer, until the peer has closed them too.

The peer may still be sending on them. What comes is thrown away, so that others of its session have room.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle

PIECE_BYTES: Final = 65536
"""Maximum number of discarded bytes that are read at once."""
NO_OUTCOME: Final = 0
MOST_UNSETTLED: Final = 16
"""Maximum number of closed links of a connection whose message is kept until the link is freed, since it takes
memory."""


class UndetachedLinkCount:
    """Count of a connection's links that this side has refused or closed and its peer has not detached."""

    def __init__(self) -> None:
        self.count = 0
        self._of_session: Counter[Handle] = Counter()

    def add(self, link: Handle) -> None:
        """Count a link that this side has closed."""
        self.count += 1
        self._of_session[pn.pn_link_session(link)] += 1

    def remove(self, link: Handle) -> None:
        """Count a link no more, since its peer has detached it."""
        self.count -= 1
        self._of_session[pn.pn_link_session(link)] -= 1

    def end_session(self, session: Handle) -> None:
        """Count none of a session's links any more: they are about to be freed with it."""
        self.count -= self._of_session.pop(session, 0)


class ClosedLinks:
    """The links of one connection that this side has closed for a fault of the peer.

    An engine writes an outcome again with each part of its message that is read, and once more when it is settled, and
    clients take each for another outcome. So the outcome of the message that was under way is written once, with the
    link's end, and the message is settled when the link is freed; on a connection with `MOST_UNSETTLED` such links,
    when its last part has come.
    """

    def __init__(self) -> None:
        self._under_way: dict[Handle, Handle] = {}
        """Delivery that was under way when the link was closed, by link; NULL for none."""

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, link: Handle) -> bool:
        return link in self._under_way

    def add(self, link: Handle) -> None:
        """Note a link that has been closed just now."""
        delivery = pn.pn_link_current(link)
        is_under_way = delivery != pn.NULL and pn.pn_delivery_partial(delivery)
        self._under_way[link] = delivery if is_under_way and len(self._under_way) < MOST_UNSETTLED else pn.NULL
        self._read(link)

    def remove(self, link: Handle) -> None:
        """Forget a link that its peer has closed too."""
        del self._under_way[link]

    def end_session(self, session: Handle) -> None:
        """Forget a session's links, which are about to be freed with it."""
        for link in [link for link in self._under_way if pn.pn_link_session(link) == session]:
            del self._under_way[link]

    def throw_away(self, link: Handle) -> None:
        """Read what has come on one of them since; its end is written."""
        delivery = pn.pn_link_current(link)
        if delivery != pn.NULL and delivery == self._under_way[link]:
            pn.pn_delivery_update(delivery, NO_OUTCOME)
        self._read(link)

    def _read(self, link: Handle) -> None:
        while (delivery := pn.pn_link_current(link)) != pn.NULL:
            if not pn.pn_delivery_aborted(delivery):  # of an aborted one proton says for ever that a byte is pending
                while size := pn.pn_delivery_pending(delivery):
                    pn.receive(link, min(size, PIECE_BYTES))
                if pn.pn_delivery_partial(delivery):
                    return  # kept, so that its last part is known as a part of it
            if delivery == self._under_way[link]:
                pn.pn_link_advance(link)
            else:
                pn.pn_delivery_settle(delivery)  # advances the link
