"""The management node: a request message in, its reply out.

    work = node.work(request, access)     # a generator, which pauses after each row
    reply = yield from work               # None when nobody asked for one

Nothing here waits, moves a message or knows the engine. An operation is a method in one of two tables, those of the
node itself and those of one entity.

Source: AMQP Management 1.0 (working draft), in the form that Qpid Dispatch has given it; its recorded messages are in
tests/vectors/mgmt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Final, TypeVar

import attrs

from mesh_config.models import ManagementRight
from router.core.addressing.address import MANAGEMENT as MANAGEMENT_ADDRESS
from router.core.addressing.address import is_reserved, router_address
from router.core.ids_and_conditions import RouterId
from router.engine.message_codec import IncrementalList, Message, int32, plain_scalar
from router.management.access import EVERYTHING, Access
from router.management.changes import ChangeError, Changes, NoChanges
from router.management.schema import (
    CHANGING_OPERATIONS,
    GENERAL_OPERATIONS,
    MANAGEMENT,
    NODE_OPERATIONS,
    PREFIX,
    TYPES,
    EntityType,
    UnknownNameError,
    encoded_schema,
    find_type,
    nearest,
    schema_text,
)
from router.management.snapshot import ConnectionRow, LazyRows, ManagementRow, Row, View

LOG_MODULE: Final = "ROUTER"
"""Module that GET-LOG names: there is one log."""
DEFAULT_LOG_LINES: Final = 100
"""Number of lines in the answer to a GET-LOG without `limit`."""
MAX_LOG_LINES: Final = 1000
"""Maximum number of lines in the answer to a GET-LOG."""

DEFAULT_COUNT: Final = 500
"""Entities in the reply to a QUERY that does not say how many."""
MAX_COUNT: Final = 1000
"""Entities in one reply."""

MAX_RESULT_BYTES: Final = 1024 * 1024
"""Bytes of the entities in one reply: when there are so many no more are added; `offset` gives the others."""
MAX_RESULT_VALUES: Final = 50_000
"""Values in the entities of one reply, the same: proton, with which most clients read it, decodes 65,535."""

SETTABLE: Final = "text, a number, `true` or `false`"
"""Values that an attribute can be set to, whatever it is: none that can be set is a list or a map."""

SHOWN_ALONE: Final = "; shown alone: "
"""Words in the description of a QUERY's reply that come before the virtual host to which the requester's rights limit
it."""
OWN_CONNECTION: Final = "self"
"""Name by which a requester that is attached here may read its own connection."""
NAMES_COMPARED: Final = 500
"""Names among which the nearest to a wrong one is looked for; a comparison takes up to 50 us."""

NODE_TYPES: Final = (MANAGEMENT, f"{PREFIX}management", "management")
"""Types by which requests name the node itself."""
ENTITY_OPERATIONS: Final = ("CREATE", "READ", "UPDATE", "DELETE")


class RefusedError(Exception):
    """A request that cannot be granted."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status


@attrs.frozen(kw_only=True)
class Request:
    """Request of an operation, checked as far as all operations have it in common."""

    operation: str
    type: EntityType | None
    """Type of the entity, or of those that a QUERY asks for; None for all."""
    name: str | None
    identity: str | None
    key: str | None
    """Key of the address to which a QUERY is limited."""
    offset: int
    count: int
    limit: int | None
    """Lines that a GET-LOG asks for."""
    body: object
    access: Access
    """Rights of the requester."""


@attrs.frozen(kw_only=True)
class Answer:
    """Content of a reply."""

    status: int = HTTPStatus.OK
    description: str = "OK"
    body: object = attrs.field(factory=dict)


Work = Generator[None, None, Message | None]
"""The making of a reply, which pauses after each row."""
Steps = Generator[None, None, Answer]
"""The making of an answer."""
Changed = TypeVar("Changed")


class ManagementNode:
    """The management node of one router."""

    def __init__(self, view: View, changes: Changes | None = None) -> None:
        """*changes* carries out what is ordered; without it nothing can be changed."""
        self._view = view
        self._changes = changes if changes is not None else NoChanges()
        self._general: dict[str, Callable[[Request], Answer]] = {
            "GET-TYPES": self._get_types,
            "GET-ATTRIBUTES": self._get_attributes,
            "GET-OPERATIONS": self._get_operations,
            "GET-ANNOTATIONS": self._get_annotations,
            "GET-MGMT-NODES": self._get_mgmt_nodes,
            "GET-SCHEMA": self._get_schema,
            "GET-JSON-SCHEMA": self._get_json_schema,
        }
        self._long: dict[str, Callable[[Request], Steps]] = {"QUERY": self._query, "GET-LOG": self._get_log}
        """Operations whose answers are made in pieces."""
        self._of_entity: dict[str, Callable[[Request], Steps]] = {
            "READ": self._read,
            "CREATE": self._create,
            "UPDATE": self._update,
            "DELETE": self._delete,
        }
        self._ordered: dict[str, Callable[[Request], dict[str, object]]] = {
            "DRAIN": self._drain,
            "RESUME": lambda _: self._changes.resume(),
        }
        assert {*self._long, *self._general} == set(GENERAL_OPERATIONS)
        assert {"RELOAD", *self._ordered} == set(CHANGING_OPERATIONS)

    def work(self, request: Message, access: Access = EVERYTHING) -> Work:
        """Answer a request in pieces: pauses after each row, so that the caller may ask for the next one later.

        Every request that can be answered gets exactly one reply, whatever is wrong with it.

        Args:
            request: to be answered.
            access: rights of who has sent it.
        Returns: the reply, to be sent to its `to`; None for a request that names no address to reply to.
        """
        to = request.reply_to
        if not to or is_reserved(to):
            # Nothing can be asked for without an answer, and the addresses of routers are not to be written to.
            return None
        try:
            answer = yield from self._handle(request, access)
        except RefusedError as refused:
            answer = Answer(status=refused.status, description=str(refused))
        return reply(request, answer)

    def _handle(self, message: Message, access: Access) -> Steps:
        request = _read_request(message, access)
        if request.operation in (*NODE_OPERATIONS, *ENTITY_OPERATIONS) and not access.allows(request.operation):
            held = f"only reading is allowed, and {request.operation} would change something"
            if access.right is ManagementRight.NONE:
                held = "no management is allowed"
            raise RefusedError(
                HTTPStatus.FORBIDDEN, f"{held}: see `management` of the user's group, or ask the router itself"
            )
        if request.operation in self._long:
            return (yield from self._long[request.operation](request))
        if request.operation in self._general:
            return self._general[request.operation](request)
        if request.operation == "RELOAD":
            return (yield from self._reload())
        if request.operation in self._ordered:
            return Answer(body=self._change(lambda: self._ordered[request.operation](request)))
        if request.operation not in ENTITY_OPERATIONS:
            known = (*NODE_OPERATIONS, *ENTITY_OPERATIONS)
            near = nearest(request.operation, known)
            hint = f"the nearest is {near}" if near else f"there are {', '.join(known)}"
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, f"no operation `{request.operation[:200]}`; {hint}")
        if request.type is None:
            request = yield from self._with_type(request)
        assert request.type is not None
        if request.operation not in request.type.operations:
            raise RefusedError(
                HTTPStatus.NOT_IMPLEMENTED,
                f"{request.operation} of {request.type.short_name} is not possible; there is "
                + ", ".join(request.type.operations),
            )
        return (yield from self._of_entity[request.operation](request))

    def _with_type(self, request: Request) -> Generator[None, None, Request]:
        """Complete a request with the type of the entity that it names, which may be left out with an identity."""
        if request.operation == "CREATE" or (request.name is None and request.identity is None):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{request.operation} needs the `type` of the entity")
        for kind in TYPES.values():
            for row in (yield from self._rows(kind, request.access)):
                if (request.identity is None or row.identity == request.identity) and (
                    request.name is None or row.name == request.name
                ):
                    return attrs.evolve(request, type=kind)
                yield
        said = request.identity if request.identity is not None else request.name
        raise RefusedError(HTTPStatus.NOT_FOUND, f"no entity of any type is `{str(said)[:200]}`")

    # One entity

    def _read(self, request: Request) -> Steps:
        kind = request.type
        assert kind is not None
        is_own = kind.row is ConnectionRow and request.name == OWN_CONNECTION and request.identity is None
        if is_own and request.access.connection is not None:
            request = attrs.evolve(request, name=None, identity=str(request.access.connection))
        return Answer(body=kind.values((yield from self._find(request))))

    def _find(self, request: Request) -> Generator[None, None, Row]:
        """The entity with that identity, or that name, or both."""
        kind, name, identity = request.type, request.name, request.identity
        assert kind is not None
        rows = yield from self._rows(kind, request.access)
        if name is None and identity is None:
            if kind.is_singleton:
                for row in rows:
                    return row
                raise RefusedError(
                    HTTPStatus.FORBIDDEN, f"{kind.short_name} is of the whole router, and not of a virtual host"
                )
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"which {kind.short_name}? No `name` or `identity` is given")
        names: list[str] = []
        for row in rows:
            if (identity is None or row.identity == identity) and (name is None or row.name == name):
                return row
            if len(names) < NAMES_COMPARED:
                names.append(row.name if identity is None else row.identity)
            yield
        if name is not None and identity is not None:
            said = f"name `{name[:200]}` and identity `{identity[:200]}`"
            raise RefusedError(HTTPStatus.NOT_FOUND, f"no {kind.short_name} has {said}")
        wanted = name or identity or ""
        # Numbers that look alike are of others: who closes connection 27 instead of 17 has harmed a stranger.
        near = None if wanted.isdecimal() else nearest(wanted[:200], [name[:200] for name in names])
        hint = f"; the nearest is {near}" if near else ""
        raise RefusedError(HTTPStatus.NOT_FOUND, f"no {kind.short_name} `{wanted[:200]}`{hint}")

    def _create(self, request: Request) -> Steps:
        assert request.type is not None
        wanted = self._attributes(request)
        if request.name is not None:
            wanted.setdefault("name", request.name)
        try:
            identity = yield from self._changes.create(request.type.row, wanted)
        except ChangeError as error:
            raise RefusedError(error.status, str(error)) from error
        made = attrs.evolve(request, identity=identity, name=None)
        row = yield from self._find(made)
        return Answer(status=HTTPStatus.CREATED, description="Created", body=request.type.values(row))

    def _update(self, request: Request) -> Steps:
        assert request.type is not None
        wanted = self._attributes(request)
        row = yield from self._find(request)
        # What was changed may be gone by now, as a connection that was closed.
        values = request.type.values(self._change(lambda: self._changes.update(row, wanted)))
        for each in (yield from self._rows(request.type, request.access)):
            if each.identity == row.identity:
                values = request.type.values(each)
                break
            yield
        return Answer(body=values)

    def _delete(self, request: Request) -> Steps:
        row = yield from self._find(request)
        self._change(lambda: self._changes.delete(row))
        return Answer(status=HTTPStatus.NO_CONTENT, description="No Content")

    def _attributes(self, request: Request) -> dict[str, object]:
        """Attributes that a request gives; each has to be one of its type, and its value one that can be set."""
        kind, body = request.type, request.body
        assert kind is not None
        if not isinstance(body, Mapping) or not all(isinstance(name, str) for name in body):
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"the body of {request.operation} is a map of attributes")
        wanted: dict[str, object] = {}
        for key, value in body.items():
            name = str(key)
            if name in ("type", "identity"):
                continue
            if name not in kind.attributes:
                what = f"attribute of {kind.short_name}"
                raise RefusedError(HTTPStatus.BAD_REQUEST, str(UnknownNameError(what, name, list(kind.attributes))))
            try:
                wanted[name] = plain_scalar(value)
            except TypeError as error:
                raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} is {error}; expected {SETTABLE}") from error
        return wanted

    def _change(self, order: Callable[[], Changed]) -> Changed:
        try:
            return order()
        except ChangeError as error:
            raise RefusedError(error.status, str(error)) from error

    # The node itself

    def _query(self, request: Request) -> Steps:
        kinds = _kinds(request)
        if request.key is not None and not all(kind.is_of_address for kind in kinds):
            able = ", ".join(kind.short_name for kind in TYPES.values() if kind.is_of_address)
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"`key` goes with a QUERY of {able}")
        names = self._wanted(request, kinds)
        results = IncrementalList()
        total = 0
        is_full = False
        for kind in kinds:
            rows = yield from self._rows(kind, request.access, request.key, goes_on=request.offset > 0)
            page = rows.page(max(0, request.offset - total), 0 if is_full else request.count - len(results))
            for row in page:
                results.append([kind.value(row, name) for name in names])
                yield
                if results.size > MAX_RESULT_BYTES or results.values > MAX_RESULT_VALUES:
                    is_full = True
                    break
            total += len(rows)
            yield
        description = "OK"
        if request.offset + len(results) < total and len(results):
            description = f"OK: {request.offset} to {request.offset + len(results) - 1} of {total}"
        if request.access.vhost is not None:
            description += f"{SHOWN_ALONE}virtual host {request.access.vhost}"
        return Answer(description=description, body={"attributeNames": names, "results": results})

    def _wanted(self, request: Request, kinds: Sequence[EntityType]) -> list[str]:
        """Names of the attributes that a QUERY asks for; all that the types have when it names none."""
        known = list(dict.fromkeys(chain.from_iterable(kind.attributes for kind in kinds)))
        body = request.body
        if body is None:
            return known
        if not isinstance(body, Mapping):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the body of a QUERY is a map with `attributeNames`")
        names = body.get("attributeNames")
        if names is None:
            return known
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "`attributeNames` is a list of strings")
        wanted = list(dict.fromkeys(map(str, names)))
        for name in wanted:
            if name not in known:
                of = request.type.short_name if request.type is not None else "any entity"
                raise RefusedError(HTTPStatus.BAD_REQUEST, str(UnknownNameError(f"attribute of {of}", name, known)))
        return wanted or known

    def _rows(
        self, kind: EntityType, access: Access, key: str | None = None, *, goes_on: bool = False
    ) -> Generator[None, None, LazyRows]:
        view = self._view if access.vhost is None else self._view.of_vhost(access.vhost)
        if kind.row is ManagementRow:
            return LazyRows([ManagementRow(name="self", identity="self")])
        if key is not None:
            return view.rows_of_address(kind.row, key)
        yield from view.prepare(kind.row, goes_on=goes_on)
        return view.rows(kind.row, goes_on=goes_on)

    def _reload(self) -> Steps:
        try:
            return Answer(body=(yield from self._changes.reload()))
        except ChangeError as error:
            raise RefusedError(error.status, str(error)) from error

    def _drain(self, request: Request) -> dict[str, object]:
        wanted = request.body if request.body is not None else {}
        if not isinstance(wanted, Mapping) or not set(wanted) <= {"stop"}:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the body of a DRAIN is a map with nothing but `stop`")
        is_to_stop = wanted.get("stop", False)
        if not isinstance(is_to_stop, bool):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "`stop` is true or false")
        return self._changes.drain(request.access.connection, is_to_stop=is_to_stop)

    def _get_types(self, request: Request) -> Answer:
        # Qpid Dispatch lists the types that each one extends; ours extend nothing.
        return Answer(body={kind.name: [] for kind in _kinds(request)})

    def _get_attributes(self, request: Request) -> Answer:
        return Answer(body={kind.name: list(kind.attributes) for kind in _kinds(request)})

    def _get_operations(self, request: Request) -> Answer:
        return Answer(body={kind.name: list(kind.operations) for kind in _kinds(request)})

    def _get_annotations(self, request: Request) -> Answer:
        return Answer(body={kind.name: [] for kind in _kinds(request)} if request.type is not None else {})

    def _get_mgmt_nodes(self, request: Request) -> Answer:
        is_own = request.access.vhost is not None
        routers = [self._view.router_id] if is_own else self._view.reachable_routers()
        return Answer(body=[router_address(RouterId(router), MANAGEMENT_ADDRESS) for router in routers])

    def _get_schema(self, _: Request) -> Answer:
        return Answer(body=encoded_schema())

    def _get_json_schema(self, _: Request) -> Answer:
        return Answer(body=schema_text())

    def _get_log(self, request: Request) -> Steps:
        if request.access.vhost is not None:
            raise RefusedError(HTTPStatus.FORBIDDEN, "the log is of the whole router, and not of a virtual host")
        found = IncrementalList()
        for line in self._view.log_lines(
            min(DEFAULT_LOG_LINES if request.limit is None else request.limit, MAX_LOG_LINES)
        ):
            found.append([LOG_MODULE, line.level, line.text, None, 0, line.time])
            yield
        return Answer(body=found)


def reply(request: Message, answer: Answer) -> Message:
    """The message that carries *answer* to where *request* wants it."""
    return Message(
        to=request.reply_to,
        correlation_id=request.correlation_id if request.correlation_id is not None else request.message_id,
        application_properties={"statusCode": int32(answer.status), "statusDescription": answer.description},
        body=answer.body,
    )


def _kinds(request: Request) -> list[EntityType]:
    return [request.type] if request.type is not None else list(TYPES.values())


def _read_request(message: Message, access: Access) -> Request:
    properties = message.application_properties
    operation = _text(properties, "operation")
    if operation is None:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "a request needs the application property `operation`")
    operation = operation.upper()  # qdmanage writes get-log
    count = _number(properties, "count")
    return Request(
        operation=operation,
        type=_type(properties, is_general=operation in NODE_OPERATIONS),
        name=_text(properties, "name"),
        identity=_text(properties, "identity"),
        key=_text(properties, "key"),
        offset=_number(properties, "offset") or 0,
        count=DEFAULT_COUNT if count is None else min(count, MAX_COUNT),
        limit=_number(properties, "limit") if operation == "GET-LOG" else None,
        body=message.body,
        access=access,
    )


def _type(properties: Mapping[str, object], *, is_general: bool) -> EntityType | None:
    """Requests to the node itself have the wanted type in `entityType`, and that of the node in `type`."""
    name = _text(properties, "entityType") or None
    if name is None:
        name = _text(properties, "type") or None
        if is_general and name in NODE_TYPES:
            return None
    if name is None:
        return None
    try:
        return find_type(name)
    except UnknownNameError as error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from error


def _text(properties: Mapping[str, object], key: str) -> str | None:
    value = properties.get(key)
    if value is not None and not isinstance(value, str):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"`{key}` is a string")
    return None if value is None else str(value)


def _number(properties: Mapping[str, object], key: str) -> int | None:
    value = properties.get(key)
    if value is None:
        return None
    if key == "limit" and isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)  # as qdmanage writes what its schema does not have
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"`{key}` is a number from 0 on")
    return int(value)
