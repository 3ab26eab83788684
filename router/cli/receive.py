"""`amqp-mesh receive`: take messages of an address, and show them."""

from __future__ import annotations

import json
import sys
from typing import Final

import click
from proton import Delivery, Message

from router.cli.amqp_value_formatting import (
    UNREADABLE,
    body_bytes,
    body_text,
    json_line,
    message_json,
    without_surrogates,
)
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import say_error
from router.cli.interrupts import INTERRUPTED, interruptible
from router.cli.message_links import Client, LinkError, Receiver, Sender
from router.cli.options import (
    MAX_COUNT,
    MAX_SECONDS,
    BoundedNumber,
    WholeNumber,
    address_argument,
    verbose_messages_option,
)
from router.cli.router_access import RouterAccess, UnreachableError, access_options
from router.cli.stat_columns import printable

OUTCOMES: Final = {
    "accept": Delivery.ACCEPTED,
    "reject": Delivery.REJECTED,
    "release": Delivery.RELEASED,
    "modify": Delivery.MODIFIED,
}
TEXT, VERBOSE, JSON, RAW, QUIET = "text", "verbose", "json", "raw", "quiet"


@click.command(short_help="Receive messages from an address.")
@address_argument
@click.option(
    "-n", "--count", type=WholeNumber(1, MAX_COUNT), metavar="N", help="Stop after N messages.  [default: go on]"
)
@click.option(
    "--wait",
    type=BoundedNumber(min=0, min_open=True, max=MAX_SECONDS),
    metavar="SECONDS",
    help="Stop after SECONDS without a message.",
)
@click.option(
    "--credit",
    type=WholeNumber(1, 10_000),
    metavar="N",
    default=10,
    show_default=True,
    help="Credit to grant: the maximum number of messages under way.",
)
@click.option(
    "--outcome",
    type=HintingChoice(tuple(OUTCOMES)),
    default="accept",
    show_default=True,
    help="Outcome to send for each message.",
)
@click.option(
    "--pause",
    type=BoundedNumber(min=0, max=MAX_SECONDS),
    default=0.0,
    metavar="SECONDS",
    help="Wait SECONDS before settling each message.",
)
@click.option(
    "--echo", is_flag=True, help="Answer each message that has a reply-to with its own body, as a server would."
)
@click.option("--json", "form", flag_value=JSON, help="Write each message as a line of JSON, with all its sections.")
@verbose_messages_option
@click.option("--raw", "form", flag_value=RAW, help="Write the unchanged bytes of the bodies, and nothing else.")
@click.option("-q", "--quiet", "form", flag_value=QUIET, help="Show no messages, only their number.")
@access_options
def receive(
    address: str,
    count: int | None,
    wait: float | None,
    credit: int,
    outcome: str,
    pause: float,
    echo: bool,
    form: str | None,
    access: RouterAccess,
) -> None:
    """Subscribe to ADDRESS, and show the body of each message, one per line.

    Unless the address is multicast, the messages don't reach its other subscribers. Ctrl-C ends it; messages that were
    not shown yet go back to the router.

    Exit status: 1 when fewer than --count messages came, or the connection to the router was lost; else 0.
    """
    run = _Receiving(credit, OUTCOMES[outcome], pause, form or TEXT)
    error: str | None = None
    status = 1
    try:
        with interruptible(), Client(access) as client:
            run.play(client, address, count, wait, is_echo=echo)
    except (UnreachableError, LinkError) as lost:
        error = str(lost)
    except KeyboardInterrupt:
        error, status = "", INTERRUPTED if count is not None else 0
    if run.receiver is not None and form not in (JSON, RAW):
        click.echo(f"{run.taken} message{'' if run.taken == 1 else 's'} received from {printable(address)}", err=True)
    if error is not None:
        if error:
            say_error(printable(error))
        sys.exit(status)
    if count is not None and run.taken < count:
        waited = f": none for {wait:g} s (--wait)" if wait is not None else ""
        say_error(f"{run.taken} of {count} messages came{waited}")
        sys.exit(1)


def _never() -> bool:
    return False


class _Receiving:
    """One run of the command."""

    def __init__(self, credit: int, outcome: int, pause_s: float, form: str) -> None:
        self._credit = credit
        self._outcome = outcome
        self._pause_s = pause_s
        self._form = form
        self._asked = 0
        self.receiver: Receiver | None = None
        self.taken = 0

    def play(self, client: Client, address: str, count: int | None, wait_s: float | None, *, is_echo: bool) -> None:
        """Take messages until *count* are there, or none has come for *wait_s*."""
        receiver = self.receiver = client.receiver(address)
        replies = client.sender(None) if is_echo else None
        while count is None or self.taken < count:
            self._ask(receiver, count)
            if not client.wait(lambda: bool(receiver.incoming or receiver.unreadable), wait_s):
                return
            if receiver.unreadable:
                self._asked -= len(receiver.unreadable)
                say_unreadable(receiver)
                continue
            message, delivery = receiver.incoming.popleft()
            self._show(message)
            if self._pause_s:
                client.wait(_never, self._pause_s)
            if replies is not None and message.reply_to:
                self._reply(client, replies, message)
            receiver.finish(delivery, self._outcome)
            self.taken += 1
        client.wait(client.is_written, client.access.timeout_s)

    def _ask(self, receiver: Receiver, count: int | None) -> None:
        """Grant credit for what is still wanted, at most as much as may be under way."""
        open_count = self._asked - self.taken
        wanted = self._credit if count is None else min(self._credit, count - self.taken)
        if open_count < wanted and (open_count <= self._credit // 2 or wanted < self._credit):
            receiver.link.flow(wanted - open_count)
            self._asked += wanted - open_count

    def _reply(self, client: Client, replies: Sender, message: Message) -> None:
        correlation = message.correlation_id if message.correlation_id is not None else message.id
        is_data = isinstance(message.body, bytes | memoryview)
        reply = Message(address=message.reply_to, body=message.body, inferred=is_data)
        reply.correlation_id = correlation
        timeout_s = client.access.timeout_s
        if not client.wait(lambda: replies.credit > 0, timeout_s):
            say_error(
                f"no credit for the answer to {printable(str(message.reply_to))} within {timeout_s:g} s: not sent"
            )
            return
        try:
            replies.send(reply)
        except UNREADABLE as error:
            say_error(f"a message can't be echoed: {error}")

    def _show(self, message: Message) -> None:
        show(message, self._form)


def say_unreadable(receiver: Receiver) -> None:
    """Say of each message that could not be read why, once."""
    for why in receiver.unreadable:
        say_error(printable(f"a message that can't be read was rejected: {why}"))
    receiver.unreadable.clear()


def show(message: Message, form: str) -> None:
    """Write one message to standard output.

    Args:
        message: that came.
        form: `text`, `verbose`, `json`, `raw` or `quiet`.
    """
    try:
        _show(message, form)
    except UNREADABLE as error:
        say_error(printable(f"a message can't be shown: {error}"))


def _show(message: Message, form: str) -> None:
    if form == QUIET:
        return
    if form == RAW:
        stream = sys.stdout.buffer
        stream.write(body_bytes(message))
        stream.flush()
        return
    if form == JSON:
        click.echo(json_line(message_json(message), is_ascii=not sys.stdout.isatty()))
    else:
        if form == VERBOSE:
            for name, value in message_json(message).items():
                if name != "body":
                    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    click.echo(printable(without_surrogates(f"{name}: {text}")))
        text = without_surrogates(body_text(message))
        # What would move the cursor of a terminal is none of the sender's business; a file has it as it came.
        click.echo(printable(text) if sys.stdout.isatty() else text, color=True)
        if form == VERBOSE:
            click.echo()
    sys.stdout.flush()
