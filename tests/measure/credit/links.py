"""Publishers and subscribers of `client`: sending and receiving links on proton's bare engine."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cproton_ffi import ffi, lib

if TYPE_CHECKING:
    from tests.measure.credit.client import Client

NEVER = -1
"""Credit at which a subscriber tops up: at none."""
OUTCOMES = {
    lib.PN_ACCEPTED: "accepted",
    lib.PN_REJECTED: "rejected",
    lib.PN_RELEASED: "released",
    lib.PN_MODIFIED: "modified",
}

# Made once: each message of a process goes through them.
_BUFFER = ffi.new("char[]", 1 << 20)
_TAG = ffi.new("char[8]")
_TAG_BYTES = ffi.new("pn_bytes_t *", {"size": 8, "start": _TAG})
_TAG_VIEW = memoryview(ffi.buffer(_TAG))
_PACK_TAG = struct.Struct(">Q").pack_into


def message(payload: bytes, *, header: bytes = b"") -> bytes:
    """A message with one data section, whose payload is its last bytes; *header* stands before it, encoded."""
    return header + b"\x00\x53\x75\xb0" + struct.pack(">I", len(payload)) + payload


class Publisher:
    """A sending link."""

    def __init__(self, client: Client, link: Any, *, presettled: bool) -> None:
        self.client = client
        self.sent = 0
        self.outcomes: Counter[str] = Counter()
        self.on_credit: Callable[[Publisher], None] | None = None
        """Called when a flow frame of the router is there."""
        self.on_outcome: Callable[[Publisher], None] | None = None
        self.closed: str | None = None
        """Once the router detached it: the condition's name."""
        self.is_attached = False
        self._link = link
        self._presettled = presettled

    @property
    def credit(self) -> int:
        """Messages that it may send now."""
        return int(lib.pn_link_credit(self._link))

    def send(self, data: bytes) -> None:
        """One whole message; proton keeps it until there is credit."""
        self.sent += 1
        _PACK_TAG(_TAG_VIEW, 0, self.sent)
        delivery = lib.pn_delivery(self._link, _TAG_BYTES[0])
        lib.pn_link_send(self._link, data, len(data))
        lib.pn_link_advance(self._link)
        if self._presettled:
            lib.pn_delivery_settle(delivery)
        self.client.touch()

    def be_busy(self, data: bytes, until: float = math.inf) -> None:
        """Send *data* whenever there is credit, until so many messages have been sent."""

        def send(publisher: Publisher) -> None:
            while publisher.credit > 0 and publisher.sent < until:
                publisher.send(data)

        self.on_credit = send
        send(self)

    def be_idle(self) -> None:
        """Send no more by itself."""
        self.on_credit = None

    def close(self) -> None:
        """Detach."""
        lib.pn_link_close(self._link)
        self.client.touch()

    def hear_flow(self) -> None:
        """Called by the connection."""
        if self.on_credit is not None:
            self.on_credit(self)

    def hear_delivery(self, delivery: Any) -> None:
        """Called by the connection."""
        if not lib.pn_delivery_updated(delivery):
            return
        self.outcomes[OUTCOMES.get(lib.pn_delivery_remote_state(delivery), "none")] += 1
        lib.pn_delivery_settle(delivery)
        if self.on_outcome is not None:
            self.on_outcome(self)


class Subscriber:
    """A receiving link."""

    def __init__(self, client: Client, link: Any, *, credit: int, top_up_at: int, settles: bool) -> None:
        self.client = client
        self.top_up_to = credit
        self.top_up_at = top_up_at
        """Credit at which it is topped up, after a message; 0: when all is used."""
        self.settles = settles
        """Whether it accepts each message at once; else it leaves them without an outcome."""
        self.granted = 0
        """Messages, since it attached."""
        self.received = 0
        self.on_message: Callable[[bytes], None] | None = None
        self.closed: str | None = None
        self.is_attached = False
        self._link = link

    @property
    def credit(self) -> int:
        """Granted and not yet used by what has arrived, messages."""
        return int(lib.pn_link_credit(self._link))

    @property
    def address(self) -> str:
        """That the router gave, for one that asked for a dynamic one."""
        return str(ffi.string(lib.pn_terminus_get_address(lib.pn_link_remote_source(self._link))).decode())

    def grant(self, count: int) -> None:
        """So many messages more."""
        self.granted += count
        lib.pn_link_flow(self._link, count)
        self.client.touch()

    def close(self) -> None:
        """Detach."""
        lib.pn_link_close(self._link)
        self.client.touch()

    def hear_flow(self) -> None:
        """Called by the connection."""

    def hear_delivery(self, delivery: Any) -> None:
        """Called by the connection."""
        if lib.pn_delivery_partial(delivery) or not lib.pn_delivery_readable(delivery):
            return
        size = lib.pn_delivery_pending(delivery)
        lib.pn_link_recv(self._link, _BUFFER, size)
        self.received += 1
        if lib.pn_delivery_settled(delivery):
            lib.pn_delivery_settle(delivery)
        elif self.settles:
            lib.pn_delivery_update(delivery, lib.PN_ACCEPTED)
            lib.pn_delivery_settle(delivery)
        else:
            lib.pn_link_advance(self._link)
        data = ffi.buffer(_BUFFER, size)[:]
        credit = lib.pn_link_credit(self._link)
        if credit <= self.top_up_at:
            self.grant(self.top_up_to - credit)
        if self.on_message is not None:
            self.on_message(data)
