"""A receiver and a sender on python-qpid-proton, each attached to the router that its URL names.

    python proton_pair.py receive --url amqp://127.0.0.1:5674/orders
    python proton_pair.py send --url amqp://127.0.0.1:5672/orders --count 5

The sender starts whenever it likes: without a receiver anywhere in the mesh it gets no credit, and waits. Where the
router refuses the link, the condition is printed and the exit status is 1. A router that can't be reached is said, and
tried again until there is one: end it with Ctrl-C. The exit status is 1, too, when a message was not accepted.
"""

from __future__ import annotations

import argparse
import sys

from proton import Delivery, Event, Message, Url
from proton.handlers import MessagingHandler
from proton.reactor import Container

OUTCOMES = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


class Client(MessagingHandler):
    """Ends when its link is refused, and says why."""

    has_failed = False
    was_told = False

    def on_transport_error(self, event: Event) -> None:
        if not self.was_told:
            self.was_told = True
            print(f"{event.transport.condition.description}; trying again", file=sys.stderr, flush=True)

    def on_link_error(self, event: Event) -> None:
        self.has_failed = True
        condition = event.link.remote_condition
        print(f"refused, {condition.name}: {condition.description}", file=sys.stderr, flush=True)
        event.connection.close()


class Receiver(Client):
    """Prints what arrives, and accepts it. Proton grants credit for ten messages at a time."""

    def __init__(self, url: Url, count: int) -> None:
        super().__init__(prefetch=10)
        self.url = url
        self.count = count
        self.received = 0

    def on_start(self, event: Event) -> None:
        event.container.create_receiver(event.container.connect(self.url), self.url.path)

    def on_link_opened(self, event: Event) -> None:
        if event.link.remote_source.address:  # a link that is about to be refused has none
            print(f"receiving from {self.url.path}", flush=True)

    def on_message(self, event: Event) -> None:
        self.received += 1
        print(f"received {event.message.body}", flush=True)
        if self.received == self.count:
            self.accept(event.delivery)
            event.connection.close()


class Sender(Client):
    """Sends one message at a time, as long as it has credit, and prints what became of it."""

    def __init__(self, url: Url, count: int, pause_s: float) -> None:
        super().__init__(auto_settle=True)
        self.url = url
        self.count = count
        self.pause_s = pause_s
        self.sent = 0
        self.outcomes = 0
        self.is_waiting = False
        self.numbers: dict[Delivery, int] = {}

    def on_start(self, event: Event) -> None:
        self.sender = event.container.create_sender(event.container.connect(self.url), self.url.path)

    def on_sendable(self, event: Event) -> None:
        self.send_next(event.container)

    def on_timer_task(self, event: Event) -> None:
        self.is_waiting = False
        self.send_next(event.container)

    def send_next(self, container: Container) -> None:
        if not self.is_waiting and self.sent < self.count and self.sender.credit:
            self.sent += 1
            self.is_waiting = True
            self.numbers[self.sender.send(Message(body=f"message {self.sent}"))] = self.sent
            container.schedule(self.pause_s, self)

    def on_settled(self, event: Event) -> None:
        number = self.numbers.pop(event.delivery)
        outcome, condition = event.delivery.remote_state, event.delivery.remote.condition
        why = f", {condition.name}: {condition.description}" if condition else ""
        print(f"sent {number}, {OUTCOMES.get(outcome, 'no outcome')}{why}", flush=True)
        self.has_failed |= outcome != Delivery.ACCEPTED
        self.outcomes += 1
        if self.outcomes == self.count:
            event.connection.close()

    def on_disconnected(self, event: Event) -> None:
        # Proton connects again by itself; of these nobody can say what became of them.
        for number in self.numbers.values():
            print(f"sent {number}, connection lost", flush=True)
            self.has_failed = True
        self.outcomes += len(self.numbers)
        self.numbers.clear()
        if self.outcomes == self.count:
            event.container.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["receive", "send"])
    parser.add_argument("--url", default="amqp://127.0.0.1:5672/example", help="amqp://HOST:PORT/ADDRESS")
    parser.add_argument("--count", type=int, help="messages; a sender sends 10, a receiver never stops")
    parser.add_argument("--pause", type=float, default=0.0, metavar="SECONDS", help="between two messages")
    options = parser.parse_args()

    url = Url(options.url)
    if not url.path:
        parser.error("--url: expected an address behind the port, such as amqp://127.0.0.1:5672/example")
    if options.what == "send":
        handler: Client = Sender(url, options.count or 10, options.pause)
    else:
        handler = Receiver(url, options.count or 0)
    try:
        Container(handler).run()
    except KeyboardInterrupt:
        return 130
    return 1 if handler.has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
