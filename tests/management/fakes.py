"""A router for the management node, without a router: rows made by hand."""

from __future__ import annotations

import typing
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import attrs

from router.core.ids_and_conditions import RouterId
from router.engine.message_codec import Message
from router.management.node import ManagementNode
from router.management.schema import TYPES, EntityType, Kind
from router.management.snapshot import LazyRows, LogLine, ManagementRow, Row

ROW_KINDS = [kind.row for kind in TYPES.values() if kind.row is not ManagementRow]
PYTHON_TYPES = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.NUMBER: (int, float),
    Kind.BOOLEAN: bool,
    Kind.LIST: list,
    Kind.MAP: dict,
}
"""Classes of the decoded values of each kind of attributes."""


def sample(kind: type[Row], number: int) -> Row:
    """A row with some value of the right type in every field."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: _value(hints[field.name], number) for field in attrs.fields(kind)}
    return kind(**{**fields, "name": f"name-{number}", "identity": str(number)})


def _value(hint: Any, number: int) -> Any:
    if hint is bool:
        return True
    if hint is int:
        return number
    if hint is str or type(None) in typing.get_args(hint):
        return "text" if str in (hint, *typing.get_args(hint)) else number
    return {"key": number} if typing.get_origin(hint) is not None and "Mapping" in str(hint) else ["item"]


class FakeView:
    """A router with *count* entities of each kind, and one of itself."""

    def __init__(self, count: int = 3) -> None:
        self.count = count

    @property
    def router_id(self) -> str:
        return RouterId("A")

    def rows(self, kind: type[Row], *, goes_on: bool = False) -> LazyRows:
        count = 1 if any(each.row is kind and each.is_singleton for each in TYPES.values()) else self.count
        return LazyRows(range(count), lambda number: sample(kind, number))

    def prepare(self, kind: type[Row], *, goes_on: bool = False) -> Generator[None, None, None]:
        yield from ()

    def rows_of_address(self, kind: type[Row], key: str) -> LazyRows:
        return LazyRows([attrs.evolve(sample(kind, 1), key=key)])  # type: ignore[call-arg]

    def of_vhost(self, vhost: str) -> FakeView:
        return FakeView(1)

    def log_lines(self, most: int) -> list[LogLine]:
        return [LogLine(1_800_000_000, "info", f"line {number}") for number in range(min(most, self.count))]

    def reachable_routers(self) -> Iterable[str]:
        return ["A", "B", "C"]


def answer(node: ManagementNode, request: Message) -> Message | None:
    """The reply that a node makes in pieces; None for a request that names no address to reply to."""
    work = node.work(request)
    while True:
        try:
            next(work)
        except StopIteration as done:
            reply: Message | None = done.value
            return reply


def ask(
    properties: Mapping[str, object], body: object = None, *, node: ManagementNode | None = None, **fields: Any
) -> Message:
    """The reply to one request, which there must be."""
    request = Message(reply_to="amqp:/_topo/0/A/temp.1", application_properties=properties, body=body, **fields)
    reply = answer(node or ManagementNode(FakeView()), request)
    assert reply is not None
    assert reply.to == "amqp:/_topo/0/A/temp.1"
    return reply


def status(reply: Message) -> tuple[int, str]:
    """Status code and description of a reply."""
    code, text = reply.application_properties["statusCode"], reply.application_properties["statusDescription"]
    assert isinstance(code, int)
    assert isinstance(text, str)
    return int(code), text


def types() -> list[EntityType]:
    return list(TYPES.values())
