"""Messages of `send` and `call`: one set of options for bodies and properties, and the messages that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

import attrs
import click
from proton import Message

from router.cli.amqp_value_formatting import from_json, name_and_value
from router.cli.did_you_mean import HintingChoice
from router.cli.errors import CommandError, unreadable
from router.cli.options import MAX_COUNT, MAX_SECONDS, UTF8, BoundedNumber, WholeNumber

Command = TypeVar("Command", bound=Callable[..., Any])

TEXT, BINARY, JSON = "text", "binary", "json"

MAX_BODY_BYTES: Final = 1 << 30
"""Maximum size of a body from a file, bytes, so that a wrong file name doesn't fill the memory."""


def _properties(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, object]:
    """Application properties, which are of simple types: of `NAME=VALUE`, where others are text."""
    found: dict[str, object] = {}
    for text in values:
        name, value = name_and_value(text)
        found[name] = text.partition("=")[2] if isinstance(value, dict | list) else value
    return found


@attrs.frozen(kw_only=True)
class MessageTemplate:
    """Choice of what is to be sent."""

    body: str | None
    """Text of the body."""
    file: str | None
    """File that has it; `-` for standard input."""
    is_by_lines: bool
    """Each line of the file is a message."""
    size_bytes: int | None
    """Size of a filled body, bytes."""
    form: str
    """`text`, `binary` or `json`: the AMQP type of the body."""
    count: int
    header: Mapping[str, Any]
    """Attributes of each message."""
    properties: Mapping[str, object]

    def messages(self) -> Iterator[Message]:
        """The messages, all of one body. Raises: CommandError when the file can't be read, or is no JSON."""
        body: bytes | None = None
        if self.size_bytes is not None:
            body = b"x" * self.size_bytes
        elif self.file is not None:
            body = _read(self.file)
        elif self.body is not None:
            body = self.body.encode("utf-8", "surrogateescape")
        typed = None if body is None else self._typed(body)
        for _ in range(self.count):
            yield self._message(typed)

    def message(self, body: bytes) -> Message:
        """A message with that body. Raises: CommandError when it is no JSON, or not UTF-8."""
        return self._message(self._typed(body))

    def _typed(self, octets: bytes) -> object:
        if self.form == BINARY:
            return octets
        try:
            text = octets.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CommandError(f"the body is not UTF-8: {error}; send it with --as binary") from error
        if self.form == TEXT:
            return text
        try:
            return from_json(text)
        except ValueError as error:
            raise CommandError(f"the body is no JSON: {error}") from error

    def _message(self, body: Any) -> Message:
        # `inferred`: bytes are a data section, as a body of bytes is expected to be.
        more: dict[str, Any] = {"properties": dict(self.properties)} if self.properties else {}
        return Message(body=body, inferred=isinstance(body, bytes), **self.header, **more)


def _read(path: str) -> bytes:
    """The file of a body. Raises: CommandError when it can't be read."""
    try:
        with click.open_file(path, "rb") as file:
            found: bytes = file.read(MAX_BODY_BYTES + 1)
    except OSError as error:
        raise unreadable(error, path, option="--file") from error
    if len(found) > MAX_BODY_BYTES:
        raise CommandError(f"{path}: more than {MAX_BODY_BYTES >> 20} MiB")
    return found


_OPTIONS: Final = (
    click.argument("body", required=False),
    click.option("--file", metavar="FILE", help="Take the body from a file; `-` is standard input."),
    click.option("--lines", is_flag=True, help="With --file: each line is a message."),
    click.option(
        "--size", type=WholeNumber(0, MAX_BODY_BYTES), metavar="BYTES", help="Fill the body with this many bytes."
    ),
    click.option(
        "--as",
        "body_type",
        type=HintingChoice((TEXT, BINARY, JSON)),
        help="AMQP type of the body: a string, bytes (a data section), or what the JSON is (a map, a list, a "
        "number).  [default: binary with --file, else text]",
    ),
    click.option(
        "-n",
        "--count",
        type=WholeNumber(1, MAX_COUNT),
        metavar="N",
        default=1,
        show_default=True,
        help="Number of messages to send.",
    ),
    click.option(
        "--ttl", type=BoundedNumber(min=0.001, max=MAX_SECONDS), metavar="SECONDS", help="Time to live of the message."
    ),
    click.option("--subject", type=UTF8, help="Subject of the message."),
    click.option("--id", "message_id", type=UTF8, help="Id of the message."),
    click.option(
        "--correlation-id", type=UTF8, help="Correlation id of the message; `call` gives each request one of its own."
    ),
    click.option("--reply-to", metavar="ADDRESS", type=UTF8, help="Address for replies; `call` has one of its own."),
    click.option(
        "--content-type", metavar="TYPE", type=UTF8, help="Content type of the message, such as application/json."
    ),
    click.option(
        "--priority",
        type=WholeNumber(0, 255),
        metavar="N",
        help="Priority of the message; without this option it counts as 4.",
    ),
    click.option("--durable", is_flag=True, help="Mark the message as durable. Routers store nothing."),
    click.option(
        "-p",
        "--property",
        "properties",
        multiple=True,
        metavar="NAME=VALUE",
        type=UTF8,
        callback=_properties,
        help="Application property. A VALUE that is JSON (`5`, `true`) is sent as that type. Can be repeated.",
    ),
)


def message_options(command: Command) -> Command:
    """Give a command the options of what it sends, which come to it as one argument, `template`."""

    @wraps(command)
    def called(
        *args: Any,
        body: str | None,
        file: str | None,
        lines: bool,
        size: int | None,
        body_type: str | None,
        count: int,
        ttl: float | None,
        subject: str | None,
        message_id: str | None,
        correlation_id: str | None,
        reply_to: str | None,
        content_type: str | None,
        priority: int | None,
        durable: bool,
        properties: Mapping[str, object],
        **others: Any,
    ) -> Any:
        if sum(each is not None for each in (body, file, size)) > 1:
            raise click.UsageError("BODY, --file and --size exclude each other")
        if size is not None and body_type == JSON:
            raise click.UsageError("--size fills with text or bytes: --as json has its body from BODY or --file")
        if lines and (file is None or count != 1):
            raise click.UsageError("--lines goes with --file, and has as many messages as there are lines")
        header = {
            "ttl": ttl,
            "subject": subject,
            "id": message_id,
            "correlation_id": correlation_id,
            "reply_to": reply_to,
            "content_type": content_type,
            "priority": priority,
            "durable": durable or None,
        }
        template = MessageTemplate(
            body=body,
            file=file,
            is_by_lines=lines,
            size_bytes=size,
            form=body_type or (BINARY if file is not None and not lines else TEXT),
            count=count,
            header={name: value for name, value in header.items() if value is not None},
            properties=properties,
        )
        return command(*args, template=template, **others)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called  # type: ignore[return-value]  # click adds its parameters to the function itself
