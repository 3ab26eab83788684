"""`amqp-mesh call`: send a request to an address, and show the reply and how long it took."""

from __future__ import annotations

import statistics
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Final

import attrs
import click
from proton import Delivery, Message

from router.cli.errors import say_error
from router.cli.interrupts import INTERRUPTED, interruptible
from router.cli.message_links import Client, FailedOutcome, LinkError, Receiver, Sender
from router.cli.message_options import MessageTemplate, message_options
from router.cli.message_source import MessageSource
from router.cli.options import address_argument, verbose_messages_option
from router.cli.receive import JSON, QUIET, RAW, TEXT, show
from router.cli.router_access import RouterAccess, UnreachableError, access_options
from router.cli.stat_columns import printable
from router.cli.waiting_reasons import who_released, why_waiting

REPLY_CREDIT: Final = 10
"""Replies that may be under way: late ones are thrown away."""


@click.command(short_help="Send a request, show the reply.")
@address_argument
@message_options
@click.option("--json", "form", flag_value=JSON, help="Write each reply as a line of JSON, with all its sections.")
@verbose_messages_option
@click.option("--raw", "form", flag_value=RAW, help="Write the unchanged bytes of the reply.")
@click.option("-q", "--quiet", "form", flag_value=QUIET, help="Show no replies, only how long they took.")
@access_options
def call(address: str, template: MessageTemplate, form: str | None, access: RouterAccess) -> None:
    """Send a request with BODY to ADDRESS, and show the reply.

    The request has a reply-to and a correlation id of its own, and a message id for servers that reply by it. With
    --count, requests are sent one after another, and the time that they took is shown at the end.

    Exit status: 1 when no reply came within --timeout. Then nothing is written to standard output, not even with
    --json; standard error says whether the request was refused, waits in the mesh, may have been seen by a server that
    is gone, or was taken by a server that has not answered.
    """
    run = _Calling(address, form or TEXT)
    error: str | None = None
    status = 1
    try:
        with MessageSource(template) as source, interruptible(), Client(access) as client:
            error = run.play(client, source)
    except (UnreachableError, LinkError) as lost:
        error = str(lost)
    except KeyboardInterrupt:
        error, status = "stopped", INTERRUPTED
    if run.took_ms and form not in (JSON, RAW):
        click.echo(run.summary(), err=form != QUIET)
    if error is not None:
        say_error(printable(error))
        sys.exit(status)


@attrs.define
class _Calling:
    """One run of the command."""

    address: str
    form: str
    took_ms: list[float] = attrs.field(factory=list)
    strays: list[object] = attrs.field(factory=list)
    """Correlation ids of replies to no request, of the last call."""

    def play(self, client: Client, source: MessageSource) -> str | None:
        """Call, once for each message. Returns: why there is no reply; None when each has one."""
        replies = client.receiver(None)
        replies.link.flow(REPLY_CREDIT)
        requests = client.sender(self.address)
        source.attach(client)
        for request in source.messages(client):
            error = self._call(client, requests, replies, request)
            if error is not None:
                return error
        return None

    def _call(self, client: Client, requests: Sender, replies: Receiver, request: Message) -> str | None:
        timeout_s = client.access.timeout_s
        if not client.wait(lambda: requests.credit > 0, timeout_s):
            said = f"{client.router} gave no credit for {printable(self.address)} within {timeout_s:g} s: not sent."
            return said + why_waiting(client.access, self.address, is_sent=False)
        request.reply_to = replies.address
        correlation = request.correlation_id = str(uuid.uuid4())
        if request.id is None:
            request.id = correlation  # some servers answer by it
        before = dict(requests.outcomes)
        known = requests.outcomes.total()
        requests.send(request)
        self.strays.clear()
        began = time.monotonic()

        def is_over() -> bool:
            is_answered = bool(replies.incoming or replies.unreadable)
            return is_answered or (requests.outcomes.total() > known and not self._was_accepted(requests))

        while True:
            left = timeout_s - (time.monotonic() - began)
            is_news = client.wait(is_over, max(left, 0.0))
            if replies.unreadable:
                return f"the reply from {printable(self.address)} can't be read: {printable(replies.unreadable[0])}"
            while replies.incoming:
                reply, delivery = replies.incoming.popleft()
                replies.finish(delivery, Delivery.ACCEPTED)
                replies.link.flow(1)
                if reply.correlation_id in (correlation, request.id):
                    self.took_ms.append((time.monotonic() - began) * 1000)
                    show(reply, self.form)
                    return None
                self.strays.append(reply.correlation_id)
            if not is_news or left <= 0 or (is_over() and not replies.incoming):
                return self._why(client, requests, before)

    def _was_accepted(self, requests: Sender) -> bool:
        return all(each.outcome == "accepted" for each in requests.outcomes)

    def _why(self, client: Client, requests: Sender, before: Mapping[FailedOutcome, int]) -> str:
        """Reason for which there is no reply."""
        address, waited = printable(self.address), f"within {client.access.timeout_s:g} s"
        if self.strays:
            # That of a call before may have come twice, or late.
            last = self.strays[-1]
            which = "none" if last is None else printable(f"`{last}`")
            count = "a reply" if len(self.strays) == 1 else f"{len(self.strays)} replies"
            return f"no reply to this request from {address} {waited}: {count} came, whose correlation id is {which}"
        new = [each for each, times in requests.outcomes.items() if times != before.get(each, 0)]
        if not new:
            said = f"no reply from {address} {waited}, and no outcome: the request waits, or a server holds it."
            return said + why_waiting(client.access, self.address, is_sent=True)
        if new[0].outcome == "accepted":
            return f"no reply from {address} {waited}: a server took the request and has not answered"
        if new[0].is_seen is None:
            how = "modified (delivery-failed)" if new[0].is_failed else "settled without an outcome"
            return f"the request to {address} was {how}: a server may have seen it, and acted upon it"
        said = f"the request to {address} was {new[0]}: no server has taken it."
        return said + (who_released(client.access, self.address) if new[0].outcome != "rejected" else "")

    def summary(self) -> str:
        """Times that the calls took, in a line."""
        took = sorted(self.took_ms)
        if len(took) == 1:
            return f"answered in {took[0]:.1f} ms"
        return (
            f"{len(took)} calls answered: fastest {took[0]:.1f} ms, median {statistics.median(took):.1f} ms, "
            f"slowest {took[-1]:.1f} ms"
        )
