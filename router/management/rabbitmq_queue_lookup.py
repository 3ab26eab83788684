"""Requests of RabbitMQ's AMQP 1.0 clients about queues: `GET /queues/:name`.

A responder asks so whether its requester is still there. A router has no queues: one is an address that somebody
receives from, and is gone with its last receiver.

Source: RabbitMQ 4, AMQP 1.0 management, as its clients speak it; HTTP over AMQP 1.0 (working draft 06), 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import attrs

from router.engine.message_codec import Message, strings, uint, ulong

TO_PAIR: Final = "$me"
"""Reply address of a request: the other link of its pair."""
QUEUES: Final = "queues"
COLLECTIONS: Final = (QUEUES, "exchanges", "bindings", "auth")
"""First words of the paths that RabbitMQ's clients ask for."""
LONGEST_SHOWN: Final = 200
"""Characters of what was asked that an answer repeats."""


class QueueRequestRefused(Exception):
    """A request that isn't granted, or asks for what isn't there."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status


@attrs.frozen(kw_only=True)
class AddressAsQueue:
    """An address that somebody receives from."""

    receivers: int
    """Number of receivers at this router, plus one for each other router that has some."""
    waiting: int
    """Messages that wait at this router."""
    routers: tuple[str, ...]
    """Ids of the routers that have receivers."""
    is_exclusive: bool
    """Whether a router has made the address for one connection."""


FindQueue = Callable[[str], AddressAsQueue | None]
"""Finds the queue of a name, as its requester means it; raises QueueRequestRefused when it may not ask, or only another
router knows."""


def answer_queue_request(request: Message, find: FindQueue) -> Message:
    """The answer to one request, whatever is wrong with it."""
    try:
        name = _asked_name(request)
        queue = find(name)
        if queue is None:
            raise QueueRequestRefused(
                HTTPStatus.NOT_FOUND, f"no queue {_shown(name)}: nobody in the mesh receives from there"
            )
    except QueueRequestRefused as error:
        # Not a map: RabbitMQ's Go client takes any map for a queue.
        return _answer(request, error.status, str(error))
    return _answer(request, HTTPStatus.OK, _described(name, queue))


def refuse_queue_request(request: Message, reason: str, status: int = HTTPStatus.BAD_REQUEST) -> Message:
    """The answer to a request that cannot be read to its end, or not be answered."""
    return _answer(request, status, reason)


def _nothing_at(path: str) -> QueueRequestRefused:
    return QueueRequestRefused(HTTPStatus.NOT_FOUND, f"nothing is at {_shown(path)}: there is `/queues/:name`")


def _asked_name(request: Message) -> str:
    method, path = request.subject, request.to
    if request.reply_to != TO_PAIR:
        raise QueueRequestRefused(HTTPStatus.BAD_REQUEST, f"the `reply-to` of a request is `{TO_PAIR}`")
    if not method or not path:
        raise QueueRequestRefused(HTTPStatus.BAD_REQUEST, "a request has a method as `subject` and a path as `to`")
    first, *rest = path.partition("?")[0].removeprefix("/").split("/")
    if first not in COLLECTIONS:
        raise _nothing_at(path)
    if method != "GET":
        what = _shown(f"{method} {path}")
        raise QueueRequestRefused(
            HTTPStatus.METHOD_NOT_ALLOWED,
            f"{what} is not possible: a router has no queues, exchanges or bindings;"
            " an address is there while somebody receives from it",
        )
    if first != QUEUES or len(rest) != 1 or not rest[0]:
        raise _nothing_at(path)
    try:
        return unquote(rest[0], errors="strict")
    except UnicodeDecodeError as error:
        raise QueueRequestRefused(HTTPStatus.BAD_REQUEST, f"{_shown(path)} is no UTF-8, percent-encoded") from error


def _described(name: str, queue: AddressAsQueue) -> dict[str, object]:
    """Description of a queue as RabbitMQ gives it, of the types that its clients expect."""
    return {
        "name": name,
        "durable": False,
        "auto_delete": True,
        "exclusive": queue.is_exclusive,
        "type": "classic",
        "arguments": {},
        "leader": queue.routers[0],
        "replicas": strings(queue.routers),
        "message_count": ulong(queue.waiting),
        "consumer_count": uint(queue.receivers),
    }


def _answer(request: Message, status: int, body: object) -> Message:
    return Message(
        subject=str(status),
        correlation_id=request.message_id,
        application_properties={"http:response": "1.1"},
        body=body,
    )


def _shown(text: str) -> str:
    return f"`{text[:LONGEST_SHOWN]}`"
