"""A peer of a router made of python-proton's engine, without a socket: what it attaches, sends, receives and is told.

Nothing is done by itself but this: sessions that the router begins are answered, links go to `on_link`, deliveries are
read, and a settled outcome is settled here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import proton
from proton import Delivery, Endpoint, Event, Message, Transport, symbol

NAMES = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
    Delivery.RECEIVED: "received",
}


def message(body: object = "hello", **fields: Any) -> bytes:
    """The bytes of a message; *fields* as of `proton.Message`."""
    return bytes(Message(body=body, **fields).encode())


def body_of(data: bytes) -> Any:
    """The body of an encoded message."""
    return decode(data).body


def decode(data: bytes) -> Message:
    """The message in *data*."""
    found = Message()
    found.decode(data)
    return found


@attrs.define(eq=False)
class Sent:
    """A message that was sent, or begun, and what its receiver's side said of it."""

    delivery: Delivery
    link: Any
    is_settled: bool = False
    """By the sender or with the outcome."""
    outcomes: list[str] = attrs.field(factory=list)
    """Each state that was told, in its order; `none` for settled without one."""
    condition: proton.Condition | None = None
    failed: bool = False
    undeliverable: bool = False
    annotations: Any = None

    @property
    def outcome(self) -> str | None:
        """The one outcome, once there is one."""
        assert len(self.outcomes) <= 1, self.outcomes
        return self.outcomes[0] if self.outcomes else None

    def part(self, data: bytes) -> None:
        """More of it."""
        self.link.stream(data)

    def end(self, data: bytes = b"") -> None:
        """The last of it."""
        if data:
            self.link.stream(data)
        self.link.advance()

    def abort(self) -> None:
        self.delivery.abort()

    def settle(self) -> None:
        self.is_settled = True
        self.delivery.settle()

    def hear(self) -> None:
        delivery = self.delivery
        state = delivery.remote_state
        if not int(state) and not delivery.settled:
            return
        name = NAMES.get(state, "none" if not int(state) else str(state))
        remote = delivery.remote
        if not self.outcomes or self.outcomes[-1] != name:
            self.outcomes.append(name)
        self.condition = remote.condition if name == "rejected" else None
        if name == "modified":
            self.failed, self.undeliverable = remote.failed, remote.undeliverable
            self.annotations = remote.annotations
        if delivery.settled and not self.is_settled:
            self.settle()


@attrs.define(eq=False)
class Received:
    """A message that arrived whole."""

    delivery: Delivery
    data: bytes
    was_settled: bool

    @property
    def body(self) -> Any:
        return body_of(self.data)

    def settle(self, state: Any = Delivery.ACCEPTED) -> None:
        if not self.was_settled:
            self.delivery.update(state)
        self.delivery.settle()

    def reject(self, name: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        self.delivery.local.condition = proton.Condition(name, description, info)
        self.settle(Delivery.REJECTED)

    def modify(self, *, failed: bool, undeliverable: bool, annotations: dict[Any, Any] | None = None) -> None:
        self.delivery.local.failed = failed
        self.delivery.local.undeliverable = undeliverable
        if annotations is not None:
            self.delivery.local.annotations = annotations
        self.settle(Delivery.MODIFIED)


class PeerLink:
    """What sender and receiver have in common."""

    def __init__(self, link: Any) -> None:
        self.link = link
        self.is_attached = False
        self.closed: str | None = None
        """Once the router closed it: the condition's name, empty without one."""
        self.description = ""
        self.was_closed: bool | None = None
        """Whether the detach said closed."""

    @property
    def name(self) -> str:
        return str(self.link.name)

    @property
    def address(self) -> str | None:
        """That the router gave, or repeats."""
        terminus = self.link.remote_source if self.link.is_receiver else self.link.remote_target
        found: str | None = terminus.address
        return found

    @property
    def is_refused(self) -> bool:
        return self.closed is not None

    def close(self) -> None:
        self.link.close()

    def detach(self) -> None:
        self.link.detach()

    def end_session(self) -> None:
        self.link.session.close()

    def free(self) -> None:
        """Forget the link, so that its name can be used again."""
        self.link.free()


class PeerSender(PeerLink):
    """A publisher."""

    def __init__(self, link: Any) -> None:
        super().__init__(link)
        self.sent: list[Sent] = []
        self._tag = 0

    @property
    def credit(self) -> int:
        return int(self.link.credit)

    def begin(self, data: bytes = b"", *, settled: bool = False) -> Sent:
        """Begin a message; `part` and `end` follow."""
        self._tag += 1
        delivery = self.link.delivery(f"{self.link.name}-{self._tag}")
        sent = Sent(delivery, self.link)
        self.sent.append(sent)
        if data:
            self.link.stream(data)
        if settled:
            sent.is_settled = True
        return sent

    def send(self, data: bytes, *, settled: bool = False) -> Sent:
        """A whole message."""
        sent = self.begin(data)
        self.link.advance()
        if settled:
            sent.settle()
        return sent

    def hear(self, delivery: Delivery) -> None:
        if not delivery.updated:
            return
        for sent in self.sent:
            if sent.delivery == delivery and not sent.is_settled:
                sent.hear()


class PeerReceiver(PeerLink):
    """A subscriber."""

    def __init__(self, link: Any) -> None:
        super().__init__(link)
        self.messages: list[Received] = []
        self._parts: list[bytes] = []
        self.aborted = 0
        self.policy: Callable[[Received], None] | None = None
        """Called with each message."""

    @property
    def bodies(self) -> list[Any]:
        return [received.body for received in self.messages]

    @property
    def credit(self) -> int:
        return int(self.link.credit)

    @property
    def partial(self) -> bytes:
        """What is there of a message that is not whole."""
        return b"".join(self._parts)

    @partial.setter
    def partial(self, data: bytes) -> None:
        self._parts = [data]

    def flow(self, credit: int) -> None:
        self.link.flow(credit)

    def drain(self, credit: int = 0) -> None:
        self.link.drain(credit)

    def accepting(self) -> PeerReceiver:
        """Accept each message, also those that are there already."""
        self.policy = Received.settle
        for received in self.messages:
            received.settle()
        return self

    def hear(self, delivery: Delivery) -> None:
        while (current := self.link.current) is not None:
            if current.aborted:
                self.aborted += 1
                self._parts.clear()
                current.settle()
                continue
            data = self.link.recv(current.pending) if current.pending else b""
            self._parts.append(data or b"")
            if current.partial:
                return
            received = Received(current, self.partial, current.settled)
            self._parts.clear()
            self.messages.append(received)
            self.link.advance()
            if self.policy is not None:
                self.policy(received)


class Peer:
    """A connection of its own to a router.

    Args:
        run: moves the bytes.
        sasl: begin with a SASL layer, ANONYMOUS.
        configure: called with the transport before anything is written.
    """

    wire: Any

    def __init__(
        self,
        run: Callable[[], None],
        *,
        sasl: bool = False,
        container: str = "client",
        hostname: str | None = None,
        properties: dict[Any, Any] | None = None,
        offered: Sequence[str] = (),
        is_server: bool = False,
        configure: Callable[[Transport], None] | None = None,
    ) -> None:
        self.run = run
        self.transport = Transport(Transport.SERVER if is_server else Transport.CLIENT)
        if sasl or is_server:
            self.transport.sasl().allowed_mechs("ANONYMOUS")
        if configure is not None:
            configure(self.transport)
        self.connection = proton.Connection()
        self.connection.container = container
        if hostname is not None:
            self.connection.hostname = hostname
        if properties is not None:
            self.connection.properties = properties
        if offered:
            self.connection.offered_capabilities = list(map(symbol, offered))
            self.connection.desired_capabilities = list(map(symbol, offered))
        self.collector = proton.Collector()
        self.connection.collect(self.collector)
        self.transport.bind(self.connection)
        self.links: list[PeerSender | PeerReceiver] = []
        self.on_link: Callable[[Any], None] | None = None
        """Called with each link that the router attaches by itself."""
        self.closed: str | None = None
        """Once the router closed the connection: the condition's name, empty without one."""
        self.description = ""
        self.fault: str | None = None
        """What proton holds against the router's bytes."""
        self.has_ended = False
        self.is_cut = False
        self._names = 0

    # Attaching

    def sender(
        self,
        address: str | None,
        *,
        session: Any = None,
        name: str | None = None,
        prepare: Callable[[Any], None] | None = None,
        run: bool = True,
    ) -> PeerSender:
        """Attach a publisher, in a session of its own if none is given; *prepare* gets proton's link before."""
        link = self._session(session).sender(name or self._name("sender"))
        link.target.address = address
        link.source.address = address
        return self._attach(PeerSender(link), prepare, run)

    def receiver(
        self,
        address: str | None,
        *,
        credit: int = 0,
        session: Any = None,
        name: str | None = None,
        dynamic: bool = False,
        capabilities: Sequence[str] = (),
        prepare: Callable[[Any], None] | None = None,
        run: bool = True,
    ) -> PeerReceiver:
        """Attach a subscriber, its credit behind the attach in one write."""
        link = self._session(session).receiver(name or self._name("receiver"))
        if dynamic:
            link.source.dynamic = True
        else:
            link.source.address = address
            link.target.address = address
        if capabilities:
            link.source.capabilities.put_array(False, proton.Data.SYMBOL)
            link.source.capabilities.enter()
            for capability in capabilities:
                link.source.capabilities.put_symbol(symbol(capability))
            link.source.capabilities.exit()
        found = PeerReceiver(link)
        if credit:
            link.flow(credit)
        return self._attach(found, prepare, run)

    def session(self) -> Any:
        """Begin a session."""
        session = self.connection.session()
        session.open()
        return session

    def _session(self, session: Any) -> Any:
        return self.session() if session is None else session

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}-{self._names}"

    def _attach(self, link: Any, prepare: Callable[[Any], None] | None, run: bool) -> Any:
        if prepare is not None:
            prepare(link.link)
        self.links.append(link)
        link.link.open()
        if run:
            self.run()
        return link

    # The end of a wire

    def take(self) -> bytes:
        pending = self.transport.pending()
        if pending < 0:
            self.has_ended = True
            return b""
        data = bytearray()
        while pending > 0:
            piece = self.transport.peek(pending)
            data += piece
            self.transport.pop(len(piece))
            pending = self.transport.pending()
        self._hear()
        return bytes(data)

    def give(self, data: bytes) -> None:
        while data:
            size = self.transport.capacity()
            if size <= 0:
                return
            self.transport.push(data[:size])
            data = data[size:]
            self._hear()

    def give_end(self) -> None:
        try:
            self.transport.close_tail()
        except proton.TransportException:
            pass
        self._hear()

    def tick(self, now: float) -> float:
        # proton cuts the milliseconds off, so that a deadline would be a millisecond away for ever
        deadline: float = self.transport.tick((round(now * 1000) + 0.5) / 1000)
        self._hear()
        return deadline or math.inf

    def close(self) -> None:
        self.is_cut = True
        self.has_ended = True

    # Events

    def _hear(self) -> None:
        while (event := self.collector.peek()) is not None:
            self._handle(event)
            self.collector.pop()

    def _find(self, link: Any) -> Any:
        return next((one for one in self.links if one.link == link), None)

    def _handle(self, event: Event) -> None:
        kind = event.type
        if kind == Event.DELIVERY:
            found = self._find(event.delivery.link)
            if found is not None:
                found.hear(event.delivery)
        elif kind == Event.SESSION_REMOTE_OPEN:
            if event.session.state & Endpoint.LOCAL_UNINIT:
                event.session.open()
        elif kind == Event.LINK_REMOTE_OPEN:
            found = self._find(event.link)
            if found is not None:
                found.is_attached = True
            elif self.on_link is not None:
                self.on_link(event.link)
        elif kind in (Event.LINK_REMOTE_CLOSE, Event.LINK_REMOTE_DETACH):
            self._detached(event.link, is_closed=kind == Event.LINK_REMOTE_CLOSE)
        elif kind == Event.CONNECTION_REMOTE_CLOSE:
            condition = self.connection.remote_condition
            self.closed = condition.name if condition is not None else ""
            self.description = condition.description if condition is not None else ""
            self.connection.close()
        elif kind == Event.TRANSPORT_ERROR:
            self.fault = str(self.transport.condition)

    def _detached(self, link: Any, *, is_closed: bool) -> None:
        found = self._find(link)
        if found is not None:
            condition = link.remote_condition
            found.closed = condition.name if condition is not None else ""
            found.description = condition.description if condition is not None else ""
            found.was_closed = is_closed
        if is_closed:
            link.close()
        else:
            link.detach()
