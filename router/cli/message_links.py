"""Links of the commands `send`, `receive` and `call`: what is sent gets an outcome, what came is handed on.

with Client(access) as client:
    sender = client.sender("billing")
    client.wait(lambda: sender.credit > 0, 5.0)
    sender.send(message)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

import attrs
from proton import (
    Condition,
    ConnectionException,
    Delivery,
    Endpoint,
    LinkException,
    Message,
    MessageException,
    ProtonException,
    Timeout,
)
from proton.handlers import IncomingMessageHandler, OutgoingMessageHandler
from proton.reactor import AtLeastOnce, AtMostOnce
from proton.utils import BlockingReceiver, BlockingSender, ConnectionClosed, LinkDetached

from router.cli.amqp_value_formatting import UNREADABLE
from router.cli.connection_failure_words import is_gone, plain
from router.cli.message_decoding import decoded
from router.cli.router_access import RouterAccess
from router.core.terminal_escaping import escaped

OUTCOMES: Final[Mapping[int, str]] = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}
"""Words of AMQP for the outcomes."""

UNKNOWN: Final = "without outcome"

GONE: Final = "{name} went away: its process ended, or the network to it broke ({said})"
SILENT: Final = "{name} has given no sign of life for {seconds:g} s: it hangs, or the network to it broke"
IDLE: Final = "local-idle-timeout expired"
"""Words of proton where the other end was silent for too long: of this end, or in the Close of a router of that."""
HELD_UP: Final = "nothing came from here for too long, as when this process or its machine is stopped ({said})"
MIN_SILENCE_S: Final = 2.0
"""A router may be busy for a moment: shorter timeouts are for answers alone."""
NEXT: Final = "Try another router of the mesh (--url); `amqp-mesh stat problems` there says what is wrong"


class LinkError(Exception):
    """A link or connection was refused or lost; the message is for the operator."""


@attrs.frozen
class FailedOutcome:
    """An outcome other than ACCEPTED, with what the peer has said about it."""

    outcome: str
    condition: str | None = None
    description: str | None = None
    is_failed: bool = False
    """Whether a MODIFIED outcome has `delivery-failed`, as one of a router that had sent the message on."""

    def __str__(self) -> str:
        said = ": ".join(filter(None, (self.condition, self.description)))
        return f"{self.outcome} ({said})" if said else self.outcome

    @property
    def is_seen(self) -> bool | None:
        """Whether a subscriber has taken the message, and may act upon it; None where nobody knows.

        Source: AMQP 1.0 part 3, 3.4; docs/explanation/walk-of-a-message.md, "When it can't arrive".
        """
        if self.outcome == UNKNOWN or self.is_failed:
            return None
        return self.outcome == OUTCOMES[Delivery.ACCEPTED]


def outcome_of(delivery: Delivery) -> FailedOutcome:
    """The outcome that the peer gave a delivery."""
    word = OUTCOMES.get(int(delivery.remote_state), UNKNOWN)
    if delivery.remote_state == Delivery.MODIFIED:
        return FailedOutcome(word, is_failed=bool(delivery.remote.failed))
    try:
        condition = delivery.remote.condition if delivery.remote_state == Delivery.REJECTED else None
    except UNREADABLE:
        return FailedOutcome(word, description="what was said of it can't be read")
    if condition is None:
        return FailedOutcome(word)
    return FailedOutcome(word, condition.name, condition.description)


class Sender(OutgoingMessageHandler):
    """An outgoing link that counts outcomes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.link: Any = None
        self.sent = 0
        self.outcomes: Counter[FailedOutcome] = Counter()
        """Outcomes of messages that were not sent settled."""
        self._waiting: set[str] = set()
        """Tags of those that have none yet: proton tells of an outcome again when the link is closed behind it."""

    @property
    def credit(self) -> int:
        """Messages that may be sent now."""
        return int(self.link.credit)

    @property
    def unsettled(self) -> int:
        """Messages without an outcome yet."""
        return len(self._waiting)

    @property
    def unwritten_bytes(self) -> int:
        """Bytes of messages that the router has not taken yet."""
        return int(self.link.session.outgoing_bytes)

    @property
    def is_settled(self) -> bool:
        """Whether messages are sent settled: nobody tells of their outcome."""
        return bool(self.link.snd_settle_mode == self.link.SND_SETTLED)

    def send(self, message: Message) -> None:
        """Send one message; there has to be credit."""
        delivery = self.link.send(message)
        self.sent += 1
        if not self.is_settled:
            self._waiting.add(delivery.tag)

    def on_settled(self, event: Any) -> None:
        """Count an outcome."""
        if event.delivery.tag in self._waiting:
            self._waiting.discard(event.delivery.tag)
            self.outcomes[outcome_of(event.delivery)] += 1

    # One that is not settled is final too. A router that refuses a message which is still being sent settles it when
    # the rest of it has come, and by then may have closed the link.
    on_accepted = on_rejected = on_released = on_settled


class Receiver(IncomingMessageHandler):
    """An incoming link: what came is kept until it is taken and settled."""

    def __init__(self) -> None:
        super().__init__(auto_accept=False)
        self.link: Any = None
        self.incoming: deque[tuple[Message, Delivery]] = deque()
        self.unreadable: list[str] = []
        """Why messages could not be read, which were rejected."""

    @property
    def address(self) -> str:
        """Address of its source, as the router has given it."""
        return str(self.link.remote_source.address)

    def on_delivery(self, event: Any) -> None:
        """Take a message whole, and reject one that can't be read: else its sender would ruin who shows it."""
        delivery = event.delivery
        try:
            if not delivery.readable or delivery.partial or delivery.aborted:
                super().on_delivery(event)
                return
            octets = event.link.recv(delivery.pending)
            event.link.advance()
            self.incoming.append((decoded(octets), delivery))
        except (MessageException, *UNREADABLE) as error:
            self.unreadable.append(f"{type(error).__name__}: {error}")
            delivery.local.condition = Condition("amqp:decode-error", "the message can't be read")
            self.finish(delivery, Delivery.REJECTED)

    def finish(self, delivery: Delivery, outcome: int) -> None:
        """Give one message its outcome."""
        delivery.update(outcome)
        delivery.settle()


class Client:
    """A connection to one router, for messages."""

    def __init__(self, access: RouterAccess) -> None:
        """Raises: UnreachableError when there is no connection within the timeout."""
        self.access = access
        self._silence_s = max(access.timeout_s, MIN_SILENCE_S)
        self._connection = access.connect(silence_s=self._silence_s)
        self._links: list[Any] = []
        self._before_close: list[Callable[[], None]] = []
        # Proton forgets it with the connection, and it is needed just then.
        found = self._connection.conn.remote_container if self._connection.conn is not None else None
        self.router = f"router {escaped(found)} at {access.shown}" if found else f"the router at {access.shown}"
        """The router, as errors name it: by its id, which is its container id, and where it is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for detach in self._before_close:
            detach()
        try:
            self._connection.close()
        except (ProtonException, OSError, *UNREADABLE):
            pass  # the router was first, and that has been said; or Ctrl-C came in the midst of proton's work

    def sender(self, address: str | None, *, is_settled: bool = False) -> Sender:
        """Attach a link to *address*; None for one on which each message names its own.

        Raises: LinkError when it is refused.
        """
        sender = Sender()
        options = AtMostOnce() if is_settled else AtLeastOnce()
        what = f"send to {address}" if address is not None else "send to addresses of messages"
        self._attach(what, lambda: self._connection.create_sender(address, handler=sender, options=options), sender)
        return sender

    def receiver(self, address: str | None) -> Receiver:
        """Attach a link from *address*, without credit; None for an address that the router makes.

        Raises: LinkError when it is refused.
        """
        receiver = Receiver()
        what = f"receive from {address}" if address is not None else "have an address for replies"
        is_dynamic = address is None
        self._attach(
            what,
            lambda: self._connection.create_receiver(address, credit=0, dynamic=is_dynamic, handler=receiver),
            receiver,
        )
        return receiver

    def attach_reader(self, reader: Any, detach: Callable[[], None]) -> None:
        """Have a delegate of proton's selectables, such as a LineReader, read in `wait`.

        Args:
            reader: the delegate.
            detach: called before the connection is closed.
        """
        self._connection.container.selectable(reader)
        self._before_close.append(detach)

    def wait(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
        """Let messages pass until *is_so*, at most for *timeout_s*; None for no bound. Returns: whether it is so.

        Raises: LinkError when a link or the connection is lost.
        """
        try:
            self._connection.wait(lambda: is_so() or self._closed() is not None, timeout=timeout_s)
        except Timeout:
            return is_so()
        except LinkDetached as error:
            raise LinkError(f"{self.router} has closed the link: {_said(error.link)}") from error
        except (ProtonException, OSError) as error:
            raise LinkError(self._lost(error)) from error
        closed = None if is_so() else self._closed()
        if closed is not None:
            raise LinkError(f"{self.router} has closed the link: {_said(closed)}")
        return True

    def _closed(self) -> Any:
        """A link that the router has closed; None when there is none."""
        return next((made.link for made in self._links if made.link.state & Endpoint.REMOTE_CLOSED), None)

    def is_written(self) -> bool:
        """Whether all that was to be sent has gone to the socket."""
        transport = self._connection.conn.transport if self._connection.conn is not None else None
        return transport is None or transport.pending() <= 0

    def _attach(self, what: str, make: Callable[[], BlockingSender | BlockingReceiver], end: Sender | Receiver) -> None:
        try:
            made = make()
        except LinkDetached as error:
            raise LinkError(f"{self.router} refuses to let this client {escaped(what)}: {_said(error.link)}") from error
        except Timeout as error:
            raise LinkError(f"{self.router} has not answered within {self.access.timeout_s:g} s. {NEXT}") from error
        except LinkException as error:
            raise LinkError(f"{self.router} refuses to let this client {escaped(what)}: {plain(error)}") from error
        except (ProtonException, OSError) as error:
            raise LinkError(self._lost(error)) from error
        end.link = made.link
        self._links.append(made)  # proton's wrapper takes its handler away from the link once nobody holds it

    def _lost(self, error: BaseException) -> str:
        if isinstance(error, ConnectionClosed) and IDLE in str(error):
            return f"{self.router} has closed the connection: {HELD_UP.format(said=IDLE)}"
        if IDLE in str(error):
            return f"{SILENT.format(name=self.router, seconds=self._silence_s)}. {NEXT}"
        if is_gone(error):
            return f"{GONE.format(name=self.router, said=plain(error))}. {NEXT}"
        if isinstance(error, ConnectionException):
            condition = getattr(error, "condition", None)
            return f"{self.router} has closed the connection: {plain(error)}" + (f" ({condition})" if condition else "")
        return f"{self.router}: {plain(error)}"


def _said(link: Any) -> str:
    """Reason that a peer gave for the detach of a link."""
    condition = link.remote_condition
    if condition is None:
        return "it gave no reason"
    return f"{condition.description} ({condition.name})" if condition.description else str(condition.name)
