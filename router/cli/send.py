"""`amqp-mesh send`: send messages to an address, and say what became of them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import attrs
import click
from proton import Delivery, Message

from router.cli.errors import say_error
from router.cli.interrupts import INTERRUPTED, interruptible
from router.cli.message_links import OUTCOMES, Client, FailedOutcome, LinkError, Sender
from router.cli.message_options import MessageTemplate, message_options
from router.cli.message_source import MessageSource
from router.cli.options import BoundedNumber, address_argument
from router.cli.router_access import RouterAccess, UnreachableError, access_options
from router.cli.stat_columns import printable
from router.cli.waiting_reasons import why_released, why_waiting

SEEN: Final = "delivery-failed: a subscriber may have seen it"
"""Explanation for a message that a router had sent on before the next router or the subscriber was lost."""
NOT_SEEN: Final = "a subscriber gave it back"
LATE_S: Final = 0.05
"""Time that a message may be late and yet not slow down those behind it, seconds: a busy machine wakes late.

What is later, such as the first message or one that waited for credit, was not held up by the clock: the next one comes
its whole distance after it."""


@click.command(short_help="Send messages to an address.")
@address_argument
@message_options
@click.option("--settled", is_flag=True, help="Send settled: faster, but without knowing whether a message arrived.")
@click.option(
    "--anonymous", is_flag=True, help="Send over a link without an address: only the message names it (`to`)."
)
@click.option("--rate", type=BoundedNumber(min=0, min_open=True), metavar="N", help="Maximum send rate, messages/s.")
@click.option("--json", "is_json", is_flag=True, help="Write the outcomes as JSON.")
@access_options
def send(
    address: str,
    template: MessageTemplate,
    settled: bool,
    anonymous: bool,
    rate: float | None,
    is_json: bool,
    access: RouterAccess,
) -> None:
    """Send messages with BODY to ADDRESS, and report their outcomes.

    ADDRESS is the address of a subscriber anywhere in the mesh, such as `billing`. Without BODY, --file or --size a
    message is empty. Nothing is sent without credit: a message that no subscriber has room for waits up to --timeout
    seconds for it.

    Exit status: 0 when all were accepted (with --settled: sent), else 1; standard error says why.
    """
    error: str | None = None
    status = 1
    with MessageSource(template) as source:
        run = _Sending(address, source, SendPace(rate))
        try:
            with interruptible(), Client(access) as client:
                error = run.play(client, is_settled=settled, is_anonymous=anonymous)
        except (UnreachableError, LinkError) as lost:
            error = str(lost)
        except KeyboardInterrupt:
            error, status = "stopped", INTERRUPTED
    if is_json:
        click.echo(json.dumps(run.result(error), indent=2))
    elif run.sender is not None:
        click.echo(run.summary())
    if error is not None:
        say_error(printable(error))
        sys.exit(status)
    if any(each.outcome != "accepted" for each in run.outcomes):
        sys.exit(1)


@attrs.define
class SendPace:
    """Times at which messages may be sent: what was missed for want of credit is not made up for."""

    rate: float | None
    """Maximum send rate, messages/s; None for no bound."""
    due: float = 0.0
    """Time from which the next message may be sent, seconds, monotonic."""

    def note_sent(self, now: float) -> None:
        """Take note of a message that was sent at *now*, seconds."""
        if self.rate is not None:
            self.due = (now if now - self.due > LATE_S else self.due) + 1 / self.rate


class _Sending:
    """One run of the command."""

    def __init__(self, address: str, source: MessageSource, pace: SendPace) -> None:
        self._address = address
        self._source = source
        self._pace = pace
        self._next: Message | None = None
        self._taken = 0
        self._is_over = False
        """Whether the last message was taken from the source."""
        self._began = time.monotonic()
        self._ended: float | None = None
        self.sender: Sender | None = None
        self._advance()  # a body that can't be sent needs no router

    @property
    def outcomes(self) -> dict[Any, int]:
        """Number of messages by outcome."""
        return dict(self.sender.outcomes) if self.sender is not None else {}

    def play(self, client: Client, *, is_settled: bool, is_anonymous: bool) -> str | None:
        """Send all. Returns: why that was not possible; None when every message has an outcome."""
        try:
            return self._play(client, is_settled=is_settled, is_anonymous=is_anonymous)
        finally:
            self._end()

    def _end(self) -> None:
        """Note the time, if it is not over yet: who asks why takes none of the messages'."""
        if self._ended is None:
            self._ended = time.monotonic()

    @property
    def _seconds(self) -> float:
        return 0.0 if self._ended is None else self._ended - self._began

    def _play(self, client: Client, *, is_settled: bool, is_anonymous: bool) -> str | None:
        sender = self.sender = client.sender(None if is_anonymous else self._address, is_settled=is_settled)
        timeout_s = client.access.timeout_s
        self._source.attach(client)
        self._began = progress = time.monotonic()
        before = (0, 0, 0)
        while not self._is_over or self._next is not None or sender.unsettled:
            now = time.monotonic()
            if self._next is not None and sender.credit and now >= self._pace.due:
                self._send(sender, now, is_anonymous=is_anonymous)
                continue
            news = (self._taken, sender.sent, sender.outcomes.total())
            if news != before or (self._next is None and not sender.unsettled):  # then it waits for its input alone
                before, progress = news, now
            if now - max(progress, self._pace.due) >= timeout_s:
                return self._why(client, sender)
            is_paced = self._next is not None and sender.credit > 0
            client.wait(self._news(sender, is_paced=is_paced), self._pace.due - now if is_paced else timeout_s / 10)
            self._advance()
        if is_settled and not client.wait(client.is_written, timeout_s):
            return f"{client.router} has not taken all from its socket within {timeout_s:g} s"
        self._end()
        released = sum(times for each, times in sender.outcomes.items() if each.outcome == "released")
        why = why_released(client.access, self._address) if released else ""
        if why:
            count = f"{released} message{'s' if released > 1 else ''} to {printable(self._address)}"
            return f"{count} came back, released.{why}"
        return None

    def _news(self, sender: Sender, *, is_paced: bool) -> Callable[[], bool]:
        """Condition for which there is something to do: an outcome, credit, or a message from the source."""
        settled = sender.outcomes.total()
        waits_for_credit = self._next is not None and not is_paced
        waits_for_input = self._next is None and not self._is_over
        return lambda: (
            sender.outcomes.total() > settled
            or (waits_for_credit and sender.credit > 0)
            or (waits_for_input and self._source.is_ready)
        )

    def _send(self, sender: Sender, now: float, *, is_anonymous: bool) -> None:
        assert self._next is not None
        if is_anonymous:
            self._next.address = self._address
        sender.send(self._next)
        self._pace.note_sent(now)
        self._next = None
        self._advance()

    def _advance(self) -> None:
        """Take the next message, unless there is one still, or it has not come yet."""
        if self._next is None and not self._is_over and self._source.is_ready:
            self._next = self._source.take()
            self._is_over = self._next is None
            self._taken += 1

    def _why(self, client: Client, sender: Sender) -> str:
        self._end()
        waited = f"within {client.access.timeout_s:g} s"
        address = printable(self._address)
        is_sent = self._next is None or bool(sender.credit)
        if not is_sent:
            said = f"{client.router} gave no credit for {address} {waited}."
        else:
            said = f"{sender.unsettled} of the messages to {address} had no outcome {waited}."
            if sender.unwritten_bytes:
                return f"{said} Of these, {sender.unwritten_bytes} bytes are still to be written: see --timeout."
        return said + why_waiting(client.access, self._address, is_sent=is_sent)

    def summary(self) -> str:
        """Fate of the messages, in a line, and a line for each reason of a refusal."""
        assert self.sender is not None
        sent, seconds = self.sender.sent, self._seconds
        rate = f", {sent / seconds:.0f} a second" if sent > 1 and seconds > 0 else ""
        count = f"{sent} message{'' if sent == 1 else 's'}"
        if self._source.total is not None and sent < self._source.total:
            count = f"{sent} of {self._source.total} messages"
        how = "sent settled" if self.sender.is_settled else "sent"
        count += f" {how} to {printable(self._address)} in {seconds:.3f} s{rate}"
        if self.sender.is_settled:
            return f"{count}: {'its outcome is' if sent == 1 else 'their outcomes are'} not reported" if sent else count
        words: dict[str, int] = {}
        for each, times in self.sender.outcomes.items():
            words[each.outcome] = words.get(each.outcome, 0) + times
        if self.sender.unsettled:
            words["without outcome"] = self.sender.unsettled
        lines = [
            count + (": " if words else "") + ", ".join(f"{times} {word}" for word, times in sorted(words.items()))
        ]
        lines += [printable(f"  {each.outcome}: {why}") for each in self.sender.outcomes if (why := _why(each))]
        return "\n".join(lines)

    def result(self, error: str | None) -> dict[str, object]:
        """Result of the command for a program."""
        sender = self.sender
        return {
            "address": self._address,
            "sent": sender.sent if sender is not None else 0,
            "unsettled": sender.unsettled if sender is not None else 0,
            "seconds": round(self._seconds, 6),
            "outcomes": [
                {
                    "outcome": each.outcome,
                    "condition": each.condition,
                    "description": each.description,
                    "delivery_failed": each.is_failed,
                    "count": times,
                }
                for each, times in self.outcomes.items()
            ],
            "error": error,
        }


def _why(outcome: FailedOutcome) -> str:
    """Words of the peer for an outcome, or what it promises; empty where its name says it all."""
    if outcome.outcome == OUTCOMES[Delivery.MODIFIED]:
        return SEEN if outcome.is_failed else NOT_SEEN
    if outcome.condition is not None:
        return f"{outcome.description or ''} ({outcome.condition})"
    return outcome.description or ""
