"""Pairs of links with which RabbitMQ's clients ask about queues: a sender to `/management`, and a receiver from there.

Both have the same name in the same session, and the property `paired`. A request names no reply address but `$me`, the
other link of its pair. So a pair gets two addresses that only its client knows: that of its requests, which are
answered in this process, and that of its receiver.

Source: AMQP Link Pairing 1.0 (committee specification 01), 2.1; RabbitMQ 4, AMQP 1.0 management.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.core.addressing.address import dynamic_address, parse_address
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.ids_and_conditions import ConnectionId, LinkId
from router.engine.attach_fields import link_name, read_address, secret_part
from router.engine.connection import Connection

PAIR_ADDRESS: Final = "/management"
"""Address of both links of a pair. Without the property `paired` it is a mobile address as any other."""
PAIRED: Final = "paired"
"""Link property that both links of a pair have."""

PairKey = tuple[ConnectionId, Handle, str]
"""Key of a pair: connection, session, and the name that both links have."""


@attrs.define(eq=False)
class ManagementPair:
    """A sender of requests and the receiver of their answers, of which one may not be attached yet, or any more."""

    key: PairKey
    reply_address: str | None = None
    """Address of the receiver at this router; None when there is none."""
    requests: AddressEntry | None = None
    """Entry that the sender's requests come to; None when there is none."""


PairService = Callable[[bytes, ConnectionId | None, ManagementPair], bool]
"""Function that takes a whole request of a pair, and says whether there was room for it."""


def is_paired(handle: Handle) -> bool:
    """Whether a peer's link is one of a pair."""
    own = pn.pn_link_remote_source if pn.pn_link_is_sender(handle) else pn.pn_link_remote_target
    return (
        read_address(own(handle)) == PAIR_ADDRESS
        and proton_data.read_map(pn.pn_link_remote_properties(handle)).get(PAIRED) is True
    )


def confirm(handle: Handle) -> None:
    """Say in the answer to an attach that the link is one of a pair."""
    proton_data.write_map(pn.pn_link_properties(handle), {PAIRED: True})


class ManagementPairs:
    """The pairs of all clients of this router."""

    def __init__(self, fib: Fib) -> None:
        self._fib = fib
        self._pairs: dict[PairKey, ManagementPair] = {}
        self._of_link: dict[LinkId, ManagementPair] = {}
        self._service: PairService | None = None
        self._most_bytes = 0

    def serve(self, service: PairService, most_bytes: int) -> None:
        """Let there be pairs from now on.

        Args:
            service: answers their requests.
            most_bytes: of a request.
        """
        self._service, self._most_bytes = service, most_bytes

    @property
    def count(self) -> int:
        """Pairs of which at least one link is attached."""
        return len(set(self._of_link.values()))

    def has(self, handle: Handle) -> bool:
        """Whether a link that a peer attaches is to become one of a pair."""
        return self._service is not None and is_paired(handle)

    def requests(self, connection: Connection, handle: Handle) -> AddressEntry:
        """Find where a client's requests go; `add` follows, with the link."""
        assert self._service is not None
        pair = self._pair(connection, handle)
        name = parse_address(self._new_address(), me=self._fib.me).text
        pair.requests = self._fib.serve(name, partial(_take, self._service, pair), self._most_bytes)
        return pair.requests

    def replies(self, connection: Connection, handle: Handle) -> str:
        """Make the address of a client's receiver; `add` follows, with the link."""
        pair = self._pair(connection, handle)
        pair.reply_address = self._new_address()
        return pair.reply_address

    def add(self, connection: Connection, handle: Handle, link: LinkId) -> None:
        """Note that a link is one of a pair, and say so to its peer."""
        self._of_link[link] = self._pairs[_key(connection, handle)]
        confirm(handle)

    def remove(self, link: LinkId, *, is_receiver: bool) -> None:
        """A link of this router is gone, perhaps one of a pair."""
        pair = self._of_link.pop(link, None)
        if pair is None:
            return
        if is_receiver:
            pair.reply_address = None
        elif (entry := pair.requests) is not None:
            entry.service = pair.requests = None
            self._fib.forget(entry)
        if pair.reply_address is None and pair.requests is None and self._pairs.get(pair.key) is pair:
            del self._pairs[pair.key]

    def _new_address(self) -> str:
        return dynamic_address(self._fib.me, secret_part())

    def _pair(self, connection: Connection, handle: Handle) -> ManagementPair:
        """The pair of a new link: a second one of the same name, which AMQP doesn't allow, begins another pair."""
        key = _key(connection, handle)
        pair = self._pairs.get(key)
        is_taken = (
            pair is not None and (pair.reply_address if pn.pn_link_is_sender(handle) else pair.requests) is not None
        )
        if pair is None or is_taken:
            pair = self._pairs[key] = ManagementPair(key)
        return pair


def _take(service: PairService, pair: ManagementPair, data: bytes, source: ConnectionId | None) -> bool:
    return service(data, source, pair)


def _key(connection: Connection, handle: Handle) -> PairKey:
    return connection.id, pn.pn_link_session(handle), link_name(handle)
