"""A client of `$management`, for every command that asks a router something.

with ManagementClient("amqp://127.0.0.1:5672") as client:
    for node in client.query("router.node"):
        print(node["id"], node["cost"])
    client.query("router.link", router="B")     # from B, by way of the router attached to
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import attrs
from proton import ConnectionException, Delivery, LinkException, Message, ProtonException, Timeout
from proton.utils import BlockingConnection, LinkDetached, SendException, SyncRequestResponse

from router.cli.amqp_value_formatting import UNREADABLE, plain
from router.cli.connection_failure_words import is_gone, reason
from router.cli.did_you_mean import did_you_mean
from router.cli.entity_rows import checked
from router.cli.management_errors import ForeignRouterError, ManagementError, RefusedError, UnauthorizedError
from router.cli.router_access import DEFAULT_TIMEOUT_S, RouterAccess, UnreachableError, new_container_id
from router.core.addressing.address import MANAGEMENT, router_address
from router.core.ids_and_conditions import Condition, RouterId
from router.management.node import OWN_CONNECTION, SHOWN_ALONE

PAGE: Final = 200
"""Entities asked for at a time, so that the router is never long about it."""
MOST_ENTITIES: Final = 1_000_000
"""Entities of one type that are taken for the whole of them: a router that reports more never comes to an end."""
MOST_NAMED: Final = 20
"""Routers that an error lists."""

RIGHTS: Final = "its group has no `management` for it; `read` is for every router, `own` for the one attached to"

NOT_OF_VHOST: Final = "{}: not shown to users who may see only one virtual host; needs `management: read`"

ASK_ELSEWHERE: Final = "Ask another router of the mesh (--url) for what is wrong: amqp-mesh stat problems"
GONE: Final = (
    f"{{name}} went away while it was asked: its process ended, or the network to it broke ({{said}}). {ASK_ELSEWHERE}"
)
SILENT: Final = (
    "{name} has not answered within {seconds:g} s: it has just ended, hangs, or the way to it is jammed. "
    "{next}, or wait longer: --timeout"
)

NO_NODE: Final = "{} answers, but not as a management node"
FOREIGN: Final = "{} is no router of amqp-mesh: ask it with its own tools, a qdrouterd with qdstat and qdmanage"
NO_NAME: Final = HTTPStatus.BAD_REQUEST
"""Status of a `qdrouterd` for what is read without a name, as of a router of amqp-mesh `router` may be."""


@attrs.frozen
class Reply:
    """Answer of a router."""

    status: int
    description: str
    body: Any


class ManagementClient:
    """A connection to one router, through which any router of the mesh can be asked."""

    def __init__(self, place: str | RouterAccess, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Connect.

        Args:
            place: a listener, as a URL or with user, TLS and timeout.
            timeout_s: for each step, with a URL.
        Raises: ManagementError when the router cannot be reached in time, or speaks no AMQP 1.0.
        """
        access = RouterAccess(url=place, timeout_s=timeout_s) if isinstance(place, str) else place
        self.access = access
        self.url = access.shown
        self.timeout_s = access.timeout_s
        self.sees_all = True
        """False once `attached_router` has found that this user sees a virtual host alone."""
        self.shown_alone = ""
        """Words of the router for what the last query was limited to by the rights of this user; empty for no limit."""
        self.container = new_container_id()
        """Container id of this client, by which its own connection and links are known."""
        self._connection = self._connect()
        self._is_lost = False
        """Whether it broke, or an answer that is late may still come by it: the next request has another connection."""
        # Proton forgets it with the connection, and it is needed just then.
        container = self._connection.conn.remote_container if self._connection.conn is not None else None
        self._name = f"router {container} at {self.url}" if container else f"the router at {self.url}"
        self._requests: dict[str | None, SyncRequestResponse] = {}
        self._checked: set[str] = set()

    def _connect(self) -> BlockingConnection:
        try:
            return self.access.connect(container=self.container)
        except UnreachableError as error:
            raise ManagementError(str(error)) from error

    def _connect_again(self) -> None:
        self.close()
        self._requests.clear()
        self._connection = self._connect()
        self._is_lost = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        try:
            self._connection.close()
        except (ProtonException, OSError):
            pass  # the router was first
        except UNREADABLE:
            pass  # it looks once more at an answer that can't be read

    def _others(self, router: str | None) -> str:
        """Text to be added to the error that one can't be reached: those that can, empty where that isn't known."""
        try:
            known = [] if router is None else self.routers()
        except ManagementError:
            return ""
        if router is None or not known or router in known:
            return ""
        there = f"; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}" if len(known) <= MOST_NAMED else ""
        hint = did_you_mean(router, known)
        return f"{there}.{hint}" if hint else there

    def _whom(self, router: str | None) -> str:
        """The router that is asked, as errors name it."""
        return self.url if router is None else f"router {router}"

    @property
    def connection(self) -> BlockingConnection:
        """The connection, for other links on it."""
        return self._connection

    def wait_ended(self, timeout_s: float) -> str | None:
        """Wait until the router ends the connection, at most *timeout_s* seconds.

        Returns: its reason, or what the network says; None where the connection is still there.
        """
        try:
            self._connection.wait(lambda: False, timeout=max(timeout_s, 0.0))
        except Timeout:
            return None
        except (ProtonException, OSError) as error:
            self._is_lost = True
            return reason(error)
        return ""

    # What can be asked

    def query(
        self,
        kind: str,
        attributes: Sequence[str] = (),
        *,
        router: str | None = None,
        key: str | None = None,
        limit: int | None = None,
        is_checked: bool = True,
    ) -> list[dict[str, Any]]:
        """All entities of a type, or the first *limit*, with all attributes or those named.

        Args:
            kind: entity type, such as `router.link`.
            attributes: names; none: all.
            router: id of the router to ask, by default the one attached to.
            key: of an address: those that belong to it alone.
            limit: entities at most; None: all.
            is_checked: see `entity_rows.checked`; else whatever the router has answered.
        Raises: ManagementError.
        """
        of_address = {} if key is None else {"key": key}
        whom = self._whom(router)
        found: list[dict[str, Any]] = []
        while limit is None or len(found) < limit:
            count = PAGE if limit is None else min(PAGE, limit - len(found))
            properties = {"entityType": kind, "offset": len(found), "count": count, **of_address}
            try:
                reply = self.request("QUERY", properties, {"attributeNames": list(attributes)}, router=router)
                page = _entities(reply, whom)
                self.shown_alone = reply.description.partition(SHOWN_ALONE)[2]
                found.extend(checked(kind, page, whom) if is_checked else page)
            except ManagementError:
                if router is not None and not self._is_lost:
                    self.check(router)  # one of another make has other types, and other attributes
                raise
            # A router may give fewer than were asked for, and says so.
            if not page or (len(page) < count and " of " not in reply.description):
                break
            if len(found) > MOST_ENTITIES:
                raise ManagementError(
                    f"{whom} reports more than {MOST_ENTITIES:,} entities of type {kind}: ask for fewer"
                )
        return found

    def read(
        self, kind: str, *, name: str | None = None, identity: str | None = None, router: str | None = None
    ) -> dict[str, Any]:
        """One entity, by name or identity; of `router` there is only one.

        Raises: ManagementError.
        """
        whom = self._whom(router)
        chosen = {key: value for key, value in (("name", name), ("identity", identity)) if value is not None}
        try:
            found = self.request("READ", {"type": kind, **chosen}, router=router).body
        except RefusedError as refused:
            if kind == "router" and refused.status == NO_NAME:
                raise ForeignRouterError(FOREIGN.format(whom)) from refused
            raise
        if not isinstance(found, dict):
            raise ManagementError(NO_NODE.format(whom))
        return checked(kind, [found], whom)[0]

    def check(self, router: str) -> None:
        """Find out whether *router* is one of amqp-mesh, which is asked once.

        Raises: ForeignRouterError when it is not, ManagementError when there is no answer.
        """
        if router not in self._checked:
            try:
                self.read("router", router=router)
            except RefusedError:
                pass  # this user may not read that
            self._checked.add(router)

    def attached_router(self) -> str:
        """Id of the router that it is connected to.

        Raises: ManagementError.
        """
        try:
            found: str = self.read("router")["id"]
        except RefusedError as refused:
            if refused.status != HTTPStatus.FORBIDDEN:
                raise
            self.sees_all = False
            (found,) = self.routers()  # who sees no more than its virtual host is told of this router alone
        return found

    def address_prefix(self) -> str:
        """Word that stands before the addresses of this user's clients for the mesh; empty for none, and if not told.

        Raises: ManagementError when the router does not answer.
        """
        try:
            return str(self.read("connection", name=OWN_CONNECTION).get("addressPrefix") or "")
        except RefusedError:
            return ""

    def routers(self) -> list[str]:
        """Ids of the routers that can be asked, the one attached to included, sorted.

        Raises: ManagementError.
        """
        prefix, suffix = router_address(RouterId(""), "").removesuffix("/"), f"/{MANAGEMENT}"
        addresses: Iterable[str] = self.request("GET-MGMT-NODES").body
        if not isinstance(addresses, list) or not all(isinstance(it, str) for it in addresses):
            raise ManagementError(NO_NODE.format(self.url))
        return sorted(address.removeprefix(prefix).removesuffix(suffix) for address in addresses)

    def request(
        self,
        operation: str,
        properties: Mapping[str, Any] | None = None,
        body: Any = None,
        *,
        router: str | None = None,
    ) -> Reply:
        """Any operation.

        Args:
            operation: such as `READ`.
            properties: application properties beside the operation; the node itself is meant when they name no `type`.
            body: of the request, None for none.
            router: id of the router to ask, by default the one attached to.
        Raises:
            RefusedError: it answered with an error.
            ManagementError: there is no answer.
        """
        address = MANAGEMENT if router is None else router_address(RouterId(router), MANAGEMENT)
        whom = self._whom(router)
        of_node = {"type": "org.amqp.management", "name": "self"} if "type" not in (properties or {}) else {}
        message = Message(
            address=address,
            properties={"operation": operation, **of_node, **(properties or {})},
            body={} if body is None else body,
        )
        if self._is_lost:
            self._connect_again()
        try:
            # One link for all other routers; a router that is drained takes nothing on that, yet answers for itself.
            link = MANAGEMENT if router is None else None
            if link not in self._requests:
                self._requests[link] = SyncRequestResponse(self._connection, link)
            answer = self._requests[link].call(message)
        except SendException as error:
            if error.state == Delivery.REJECTED:
                raise RefusedError(HTTPStatus.FORBIDDEN, f"this user may not ask {whom}: {RIGHTS}") from error
            raise ManagementError(f"{whom} cannot be reached from {self.url}{self._others(router)}") from error
        except Timeout as error:
            self._is_lost = True
            name = self._name if router is None else f"router {router}"
            hint = ASK_ELSEWHERE if router is None else f"See amqp-mesh stat routers{self.access.suffix}"
            raise ManagementError(SILENT.format(name=name, seconds=self.timeout_s, next=hint)) from error
        except UNREADABLE as error:
            self._is_lost = True
            raise ManagementError(f"{whom} answers with a message that can't be read: {error}") from error
        except (ConnectionException, LinkException, ProtonException, OSError) as error:
            raise self._broken(error, whom) from error
        said: Mapping[str, Any] | None = answer.properties
        if said is None or not isinstance(said.get("statusCode"), int):
            raise ManagementError(NO_NODE.format(whom))
        status, description = int(said["statusCode"]), str(said.get("statusDescription", ""))
        if not 200 <= status < 300:
            raise RefusedError(status, description)
        return Reply(status, description, plain(answer.body))

    def _broken(self, error: Exception, whom: str) -> ManagementError:
        """Reason why *whom* could not be asked, when *error* has ended the link or the connection."""
        self._is_lost = not isinstance(error, LinkException)
        if isinstance(error, LinkDetached) and error.condition == Condition.UNAUTHORIZED_ACCESS:
            return UnauthorizedError(f"this user may not ask {whom}: {reason(error)}")
        if is_gone(error):
            return ManagementError(GONE.format(name=self._name, said=reason(error)))
        return ManagementError(f"{whom} does not answer: {reason(error)}")


def _entities(reply: Reply, whom: str) -> list[dict[str, Any]]:
    """The entities in the answer to a QUERY. Raises: ManagementError when it is none."""
    body = reply.body if isinstance(reply.body, dict) else {}
    names, results = body.get("attributeNames"), body.get("results")
    if not isinstance(names, list) or not isinstance(results, list) or not all(isinstance(it, str) for it in names):
        raise ManagementError(NO_NODE.format(whom))
    if not all(isinstance(values, list) and len(values) == len(names) for values in results):
        raise ManagementError(f"{whom} answers with entities that don't have the attributes that it names")
    return [dict(zip(names, values, strict=True)) for values in results]
