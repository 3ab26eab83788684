"""Values of AMQP as a person or a program is shown them: bodies as text, messages as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, Final

import click
from proton import Message

from router.cli.errors import BAD_INPUT, CommandError

FIELDS: Final = (
    "id", "correlation_id", "subject", "address", "reply_to", "content_type", "content_encoding", "group_id",
    "group_sequence", "reply_to_group_id", "priority", "durable", "delivery_count", "ttl", "creation_time",
    "expiry_time",
)  # fmt: skip
"""Attributes of a message that are shown where they say something."""

UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of proton's decoder, and of whoever walks through what it has made, when a message is no good one."""

LONG_END: Final = 1 << 63
"""First number that is too large for a long of AMQP."""

USUAL: Final = {"priority": 4, "content_type": "None", "content_encoding": "None"}
"""Values that say nothing: those by default, and what proton makes of absent symbols."""


def plain(value: Any) -> Any:
    """A decoded value without proton's own types, which print as what they are."""
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def from_json(text: str) -> Any:
    """A value of JSON.

    Raises:
        ValueError: it is none, or one that is nested too deep to be read.
        CommandError: AMQP has no whole number that large.
    """
    try:
        return json.loads(text, parse_int=_long)
    except RecursionError:
        raise ValueError("nested too deep") from None


def name_and_value(text: str) -> tuple[str, object]:
    """Name and value in `NAME=VALUE`: a VALUE that is JSON is that, anything else is text.

    Raises: BadParameter when there is no name.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"`{text}` is no NAME=VALUE")
    try:
        return name, from_json(value)
    except ValueError:
        return name, value


def _long(digits: str) -> int:
    found = int(digits)
    if not -LONG_END <= found < LONG_END:
        raise CommandError(f"{digits} is no whole number that AMQP has: -2^63 to 2^63-1", BAD_INPUT)
    return found


def jsonable(value: Any) -> Any:
    """A decoded value as JSON has it: bytes as `{"base64": ...}`, what JSON lacks as text."""
    found = plain(value)
    if isinstance(found, dict):
        return {str(key): jsonable(item) for key, item in found.items()}
    if isinstance(found, list):
        return [jsonable(item) for item in found]
    if isinstance(found, bytes | memoryview):
        return {"base64": base64.b64encode(bytes(found)).decode("ascii")}
    if isinstance(found, float) and not math.isfinite(found):
        return str(found)
    return found if found is None or isinstance(found, bool | int | float | str) else str(found)


def message_json(message: Message) -> dict[str, Any]:
    """A message as JSON has it, without what its sender has left out; times in seconds."""
    found: dict[str, Any] = {}
    for name in FIELDS:
        value = getattr(message, name)
        if value not in (None, "", 0, 0.0, USUAL.get(name)):
            found[name] = jsonable(value)
    if message.user_id:
        found["user_id"] = bytes(message.user_id).decode(errors="replace")
    for name in ("properties", "annotations"):
        if getattr(message, name):
            found[name] = jsonable(getattr(message, name))
    found["body"] = jsonable(message.body)
    return found


def json_line(value: Any, *, is_ascii: bool) -> str:
    """A value of JSON in one line. Where it is not all ASCII, what is not printable is an escape all the same."""
    text = json.dumps(value, ensure_ascii=is_ascii)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def body_text(message: Message) -> str:
    """The body of a message as text: JSON for what is neither text nor bytes, hexadecimal for bytes that are none."""
    body = message.body
    if isinstance(body, str):
        return str(body)
    if isinstance(body, bytes | memoryview):
        octets = bytes(body)
        try:
            return octets.decode("utf-8")
        except UnicodeDecodeError:
            return f"0x{octets.hex()}"
    return "" if body is None else json.dumps(jsonable(body), ensure_ascii=False)


def body_bytes(message: Message) -> bytes:
    """The body of a message as the bytes that a file is to have."""
    body = message.body
    return bytes(body) if isinstance(body, bytes | memoryview) else body_text(message).encode("utf-8", "replace")


def without_surrogates(text: str) -> str:
    """*text* as UTF-8 can have it: a character of AMQP may be half a pair of UTF-16."""
    return text.encode("utf-8", "replace").decode("utf-8")
