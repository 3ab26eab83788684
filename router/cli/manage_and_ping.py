"""`amqp-mesh manage` and `amqp-mesh ping`: any operation of management, and whether every router answers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Collection, Sequence
from typing import Any

import click

from router.cli.amqp_value_formatting import jsonable, name_and_value
from router.cli.did_you_mean import HintingChoice
from router.cli.management import NOT_OF_VHOST, ManagementClient
from router.cli.management_errors import ForeignRouterError, ManagementError
from router.cli.options import NAME, UTF8, router_option
from router.cli.router_access import RouterAccess, access_options
from router.cli.stat_columns import aligned, printable

OF_NODE = ("reload", "drain", "resume")
"""Operations of the router itself that change it."""
OF_ENTITY = ("read", "create", "update", "delete")
"""Operations of one entity."""
OF_REQUEST = {"get-log": ("limit",), "drain": ("stop",)}
"""Attributes that operations of the node take; those of GET-LOG are properties of the request."""
OPERATIONS = (
    *("query", "read", "create", "update", "delete"),
    *("get-types", "get-attributes", "get-operations", "get-annotations", "get-schema", "get-json-schema"),
    *("get-log", "get-mgmt-nodes", *OF_NODE),
)


@click.command(short_help="Call any management operation of a router.")
@click.argument("operation", type=HintingChoice(OPERATIONS), metavar="OPERATION")
@click.argument("attributes", nargs=-1, type=UTF8, metavar="[NAME=VALUE]...")
@click.option("--type", "kind", metavar="TYPE", type=NAME, help="Entity type, such as `listener` or `router.link`.")
@click.option("--name", type=NAME, help="Name of the entity.")
@click.option("--id", "identity", metavar="IDENTITY", type=NAME, help="Identity of the entity; needs no type.")
@router_option
@click.option("--text", "is_text", is_flag=True, help="With `get-log`: write the log as lines of text.")
@access_options
def manage(
    operation: str,
    attributes: tuple[str, ...],
    kind: str | None,
    name: str | None,
    identity: str | None,
    router: str | None,
    is_text: bool,
    access: RouterAccess,
) -> None:
    """Call any management operation of a router, and write the answer as JSON.

    OPERATION is, for entities, `query`, `read`, `create`, `update` or `delete`; for entity types, `get-types`,
    `get-attributes`, `get-operations`, `get-annotations`, `get-schema` or `get-json-schema`; for the router itself,
    `get-log`, `get-mgmt-nodes`, `reload`, `drain` or `resume`.

    With `create` and `update` the attributes are given as NAME=VALUE: `amqp-mesh manage create --type listener --name
    more host=127.0.0.1 port=5673`. A value that is JSON (`5`, `true`, `null`) is sent as that type, anything else as
    text. With `query` give only the names of the attributes to show. `get-log` takes `limit=N`, the number of lines;
    --text writes them as plain text.

    With `reload` the router reads its settings file again, and answers with what it has changed (`applied`) and what
    needs a restart (`needsRestart`); a file with an error changes nothing. Exit status: 1 when the router refuses.
    """
    properties: dict[str, Any] = {key: value for key, value in (("name", name), ("identity", identity)) if value}
    # What is wrong in itself needs no router.
    body = dict(map(name_and_value, attributes)) if operation != "query" else {}
    _check(operation, kind, properties, body)
    if is_text and operation != "get-log":
        raise click.UsageError("--text goes with get-log")
    with ManagementClient(access) as client:
        if operation == "query":
            assert kind is not None
            found: Any = client.query(kind, attributes, router=router, is_checked=False)
            if client.shown_alone:
                click.echo(f"Only shown: what belongs to {printable(client.shown_alone)} (`management: own`)", err=True)
        else:
            is_of_node = operation not in OF_ENTITY
            if kind is not None:
                properties["entityType" if is_of_node else "type"] = kind
            elif not is_of_node:
                properties["type"] = ""  # that of the entity which is named
            if is_of_node:
                properties |= _properties(operation, body)
            found = client.request(operation.upper(), properties, body, router=router).body
    if is_text:
        for line in found:
            click.echo(_log_line(line))
    elif found or operation == "query":
        click.echo(json.dumps(jsonable(found), indent=2))


def _check(operation: str, kind: str | None, named: Collection[str], attributes: Collection[str]) -> None:
    """Say what doesn't go with the operation, before a router would leave it out. Raises: UsageError."""
    if operation in ("query", "create") and kind is None:
        raise click.UsageError(f"{operation} needs --type")
    if operation in OF_ENTITY and kind is None and not named:
        raise click.UsageError(f"{operation} needs --name or --id of the entity, or --type where that has but one")
    if operation not in OF_ENTITY and named:
        goes = f"--name and --id go with {', '.join(OF_ENTITY)}"
        raise click.UsageError(f"{operation} is about no single entity: {goes}")
    if operation == "create" and "identity" in named:
        raise click.UsageError("the router gives what it creates an identity: --name goes with create, and not --id")
    if operation in ("read", "delete"):
        for name in attributes:
            raise click.UsageError(f"{operation} has no attribute `{name}`; it takes none")


def _log_line(line: Sequence[Any]) -> str:
    """A line of the log, of what GET-LOG answers: module, level, text, file, line and time."""
    _, level, text, _, _, at = line
    return f"{time.strftime('%F %T', time.localtime(at))} {level:<7} {printable(str(text))}"


def _properties(operation: str, attributes: dict[str, object]) -> dict[str, object]:
    """Take out of *attributes* what the request itself has to say."""
    known = OF_REQUEST.get(operation, ())
    for name in attributes:
        if name not in known:
            takes = f"it takes {' and '.join(known)}" if known else "it takes none"
            raise click.UsageError(f"{operation} has no attribute `{name}`; {takes}")
    return {name: attributes.pop(name) for name in list(attributes) if operation == "get-log"}


@click.command(short_help="Ping every router of the mesh.")
@access_options
def ping(access: RouterAccess) -> None:
    """Ping every router known to the one at URL, and show how long each takes to answer.

    Absent routers are shown too: those named in the mesh file, and any other for a day. Exit status: 1 when a
    router doesn't answer.
    """
    rows = [["router", "answer", "ms", "hops' cost"]]
    is_missing = False
    with ManagementClient(access) as client:
        attached = client.attached_router()
        if not client.sees_all:
            raise ManagementError(NOT_OF_VHOST.format("ping"))
        for node in sorted(client.query("router.node"), key=lambda each: (each["cost"] is None, each["id"])):
            there, took_ms = _ping(client, node, None if node["id"] == attached else node["id"])
            is_missing |= took_ms is None
            shown = "-" if took_ms is None else f"{took_ms:.1f}"
            rows.append([printable(node["id"]), there, shown, str(node["cost"] if node["cost"] is not None else "-")])
    click.echo("\n".join(aligned(rows, [False, False, True, True])))
    if is_missing:
        sys.exit(1)


def _ping(client: ManagementClient, node: dict[str, Any], router: str | None) -> tuple[str, float | None]:
    """Answer of one router, and the milliseconds that it took; None when it doesn't."""
    if not node["isReachable"]:
        return f"ABSENT: {printable(node['reason'] or 'no path leads there')}", None
    began = time.monotonic()
    try:
        version = client.read("router", router=router)["version"]
    except ForeignRouterError:
        return "no router of amqp-mesh, but it answers", (time.monotonic() - began) * 1000
    except ManagementError as error:
        return f"NO ANSWER: {printable(str(error))}", None
    return f"version {printable(str(version))}", (time.monotonic() - began) * 1000
