"""The reference of the management entities in Markdown, made from the schema.

python -m router.management.reference docs/reference/management.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from router.management.node import DEFAULT_COUNT, MAX_COUNT
from router.management.schema import OWN_PREFIX, PREFIX, TYPES, Attribute, EntityType

_OF_ADDRESS = " or ".join(f"`{kind.short_name}`" for kind in TYPES.values() if kind.is_of_address)

_LOG_LINES = (
    "list of the last lines of the log, each a list: module, level, text, null, 0, seconds since 1970; as many as the "
    "application property `limit` says, 100 by default, 1,000 at most; a line is cut after 1,000 characters"
)
_RELOADED = (
    "map: `applied`, a list of what was changed, in words; `needsRestart`, names of settings that stay as they were "
    "([how to](../how_to/change-a-running-router.md#read-the-file-again)); status 400 when the file has a fault: "
    "nothing was changed"
)
_DRAINED = (
    "map: `state`; `withinSeconds`, in which what is in flight settles: a second later at most the router's "
    "`drainState` is `drained` "
    "([how to](../how_to/drain-restart-upgrade.md#drain-a-router))"
)
_NODE_TYPE = "of an entity, for READ, CREATE, UPDATE and DELETE; `org.amqp.management` for the operations of the node"

_INTRO = f"""\
# Management

<!-- Made from router/management/snapshot.py by `python -m router.management.reference`; changes belong there. -->

Every router answers AMQP management requests, with the entity names of Qpid Dispatch and some of its own.
`amqp-mesh stat` shows what an operator looks for first; other programs send requests themselves.

A request is a message to `$management`, for the router that the client is attached to, or to
`amqp:/_topo/0/<router>/$management`, for any router of the mesh. Its `reply-to` is where the reply goes, best the
address of a dynamic source. Its application properties say what is wanted:

| application property | type | meaning |
|---|---|---|
| `operation` | string | see below |
| `type` | string | {_NODE_TYPE} |
| `entityType` | string | the type that QUERY and the GET operations are about; all types when absent |
| `name`, `identity` | string | which entity; one of them, and neither for `router` |
| `offset`, `count` | integer | part of a QUERY; {DEFAULT_COUNT} entities when `count` is absent, at most {MAX_COUNT} |
| `key` | string | of an address, such as `M0jobs`: a QUERY of {_OF_ADDRESS} gives what belongs to that one alone |

Names of types may be written without `{PREFIX}`. Those that begin with `{OWN_PREFIX}` are unknown to
Qpid Dispatch.

The reply is pre-settled. It carries the request's `correlation-id`, or its `message-id` when it has none, and the
application properties `statusCode` and `statusDescription`.

| operation | body of the request | body of the reply |
|---|---|---|
| `QUERY` | map: `attributeNames`, a list; empty or absent: all | map: `attributeNames`; `results`, a list of lists |
| `READ` | | map of all attributes |
| `GET-TYPES`, `GET-ATTRIBUTES`, `GET-OPERATIONS`, `GET-ANNOTATIONS` | | map from each type to a list of names |
| `GET-MGMT-NODES` | | list of the addresses of all management nodes that can be reached |
| `GET-SCHEMA`, `GET-JSON-SCHEMA` | | map, or text in JSON, of all types with their attributes and operations |
| `GET-LOG` | | {_LOG_LINES} |
| `RELOAD` | | {_RELOADED} |
| `DRAIN` | map: `stop`, true to stop the router afterwards; or empty | {_DRAINED} |
| `RESUME` | | map: `state`; status 409 while the router is still being drained, or about to stop |
| `CREATE` of `listener`, `connector`, `router.config.address` | map of attributes | map of all attributes; status 201 |
| `UPDATE` of `log`, `connection` | map of attributes | map of all attributes |
| `DELETE` of what can be created | | empty; status 204 |

| status | meaning |
|---|---|
| 200 | done |
| 201 | created; the body has all its attributes |
| 204 | deleted |
| 400 | the request is malformed, or names an unknown type or attribute; the description names the nearest one. |
| 403 | who asks may not do that, it is no matter of its virtual host, or there are 1,000 of its kind already |
| 404 | there is no such entity; the description names the nearest one, unless it was asked for by a number |
| 409 | the settings file is being read, another listener is being created, or the router is drained or about to be |
| 500 | a fault of the router, which it has logged |
| 501 | there is no such operation, or not for this type |

A reply is made in pieces, between which messages pass. It holds fewer entities than were asked for when they fill
1 MiB, or are more values than a client's proton decodes: the description then says which ones of how many, and
`offset` gives the others. With `management: own` the description of a QUERY ends with `; shown alone: virtual host X`:
what is of the whole router, such as listeners, is not among the answers. A request larger than
`management_request_bytes` is rejected with `amqp:link:message-size-exceeded`; so is one of a connection of which 100
wait already, with `amqp:resource-limit-exceeded`.

Names that routers made for reply addresses are shown masked, with a `*` for most of their random part: who knows such a
name can send to it. A masked key does as `key` too. Of what a peer says of itself 20 properties are shown, and 200
characters of each text.

A request without `reply-to`, or that is no message at all, is logged and otherwise ignored.

Clients of RabbitMQ 4 ask [in their own way](#as-rabbitmqs-clients-ask) whether somebody receives from an address.

What is created is checked like a settings file, and is gone with the process: to keep it, write it into the file. Of a
listener these attributes can be set: `name`, `host`, `port`, `role`, `cost`, `maxFrameSize`, `maxSessions`,
`idleTimeoutSeconds`, `maxConnections`, `initialHandshakeTimeoutSeconds`, `multiTenant`; of a connector the first eight;
of a `router.config.address` `name`, `prefix` or `pattern`, `distribution` and `distanceMessages`, which hold for
addresses that nobody uses at that moment. An UPDATE of `log` sets `enable`, of which Qpid Dispatch's
`trace+`, `notice+` and `critical+` count as the nearest, and `format`, one of `connection` sets `adminStatus` to
`deleted`, which closes it. A listener that is deleted takes no more connections and keeps those that it has; a
connector that is deleted closes its own. READ, UPDATE and DELETE find an entity by `identity` or `name` also without a
`type`.

Below, beside the name of each type, stand the operations that GET-OPERATIONS tells of it. QUERY and the GET operations
are of the node, `management`, and can be about any type.

Counts are messages since the link, the address or the router began, unless the text says "now". Numbers are of the type
long; what may be null says so.
"""


_QUEUES = """\
## As RabbitMQ's clients ask

AMQP 1.0 clients of RabbitMQ 4 manage queues by requests to `/management`, and a responder asks there whether its
requester is still waiting: `GET /queues/:name`. That is answered, at the router where the client is attached: a queue
is an address that somebody in the mesh receives from, and is gone with its last receiver.

The client attaches a pair of links of one name in one session, a sender to `/management` and a receiver from there,
both with the property `paired`. Without it `/management` is an address as any other.

| request | |
|---|---|
| `subject` | method: `GET` |
| `to` | `/queues/` and the name, percent-encoded; also one that is attached to as `/queues/:name` is found |
| `reply-to` | `$me`: the answer comes by the receiver of the pair |
| `message-id` | comes back as `correlation-id` |

The answer's `subject` is its status, its body a map with 200 and else a text that says why.

| status | meaning |
|---|---|
| 200 | somebody receives from there |
| 400 | the request is malformed |
| 403 | the user may not send there: only who may send may ask, and needs no right to management |
| 404 | nobody receives from there, or the path is another one |
| 405 | another method: a router has no queues, exchanges or bindings that could be declared or deleted |
| 421 | the address was made by another router for replies (`_topo/0/...`), and only that router knows |

Of an address made as for [RabbitMQ's Direct Reply-To](../explanation/deviations.md) every router knows, so 421 is
never said of one.

| key | type | value |
|---|---|---|
| `name` | string | as it was asked for |
| `type`, `durable`, `auto_delete` | | `classic`, false and true: what an address is most like |
| `exclusive` | boolean | a router made the address, for one connection |
| `leader`, `replicas` | string, array | first one, and all of the routers where receivers are attached |
| `consumer_count` | uint | receivers at this router, and one for each other router that has any |
| `message_count` | ulong | messages that wait at this router |
| `arguments` | map | empty |

RabbitMQ's Python client (rabbitmq-amqp-python-client 1.0.1) works so with its `Management` on its `BlockingConnection`;
its `Connection` turns every server away that doesn't call itself RabbitMQ.
"""


def reference_text() -> str:
    """The page."""
    return "\n".join([_INTRO, *(_section(kind) for kind in TYPES.values()), _QUEUES])


def _section(kind: EntityType) -> str:
    lines = [f"## {kind.short_name}", "", kind.doc, "", f"`{kind.name}`: {', '.join(kind.operations)}."]
    lines += ["", "| attribute | type | meaning |", "|---|---|---|", *map(_line, kind.attributes.values()), ""]
    return "\n".join(lines)


def _line(attribute: Attribute) -> str:
    kind = f"{attribute.kind} or null" if attribute.is_optional else str(attribute.kind)
    return f"| `{attribute.name}` | {kind} | {attribute.doc} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text(), encoding="utf-8")
