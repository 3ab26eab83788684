"""Requests of a client that were accepted and may still be answered: a stop waits for them.

A server of oslo.messaging acknowledges a request before it answers, and a router looks into no message, so they can
only be counted: what was accepted of a client, less what came to its reply addresses. Pre-settled messages, such as
casts, don't count. What nobody answers, such as a notification, counts until the connection ends.
"""

from __future__ import annotations

from collections.abc import Collection

from router.core.addressing.address import Address, is_private
from router.core.forwarding.fib import AddressEntry
from router.dataplane.links import EgressLink, IngressLink, PublisherLink, SubscriberLink


class InflightRpcCalls:
    """Counter of unanswered requests, for one client."""

    __slots__ = ("_of_ended_links",)

    def __init__(self) -> None:
        self._of_ended_links = 0

    def end_link(self, link: IngressLink | EgressLink) -> None:
        """Keep what was counted for a link that is gone."""
        self._of_ended_links += _requests_less_replies(link)

    def count(self, links: Collection[IngressLink | EgressLink]) -> int:
        """Unanswered requests of the client that has *links*; 0 for one that no reply can come to."""
        if not any(isinstance(link, SubscriberLink) and _is_for_replies(link.entry) for link in links):
            return 0
        return max(0, self._of_ended_links + sum(_requests_less_replies(link) for link in links))


def _requests_less_replies(link: IngressLink | EgressLink) -> int:
    if isinstance(link, PublisherLink):
        return 0 if link.entry is not None and _is_for_replies(link.entry) else link.counters.accepted
    if isinstance(link, SubscriberLink) and _is_for_replies(link.entry):
        return -link.counters.deliveries
    return 0


def _is_for_replies(entry: AddressEntry) -> bool:
    return is_private(Address(entry.kind, entry.text))
