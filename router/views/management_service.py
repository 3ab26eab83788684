"""Service of the management node: takes requests and sends replies in pieces, so that messages pass between them.

In one turn answers are made for `TURN_S`, a piece for one connection after the other, and the rest in turns of their
own. Before each of these is a pause three times as long as the one before it took: however much is asked, messages have
three quarters of the time.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Generator
from functools import partial
from http import HTTPStatus
from typing import Final

import attrs

from mesh_config.models import ManagementRight
from router.core.addressing.address import MANAGEMENT, is_reserved
from router.core.ids_and_conditions import ConnectionId
from router.core.policy.client_rights import ClientRights
from router.core.policy.denial import Denied
from router.engine import message_codec
from router.engine.rabbitmq_management_pairs import ManagementPair
from router.management.access import BY_NEIGHBOR, EVERYTHING, NOTHING, Access
from router.management.node import Answer, ManagementNode, reply
from router.management.rabbitmq_queue_lookup import answer_queue_request, refuse_queue_request
from router.runtime import Runtime
from router.views.changes import ManagedDaemon, RuntimeChanges
from router.views.receiver_existence import find_queue
from router.views.runtime import RuntimeView

MAX_VALUES: Final = 1000
"""Values in one request, those within lists and maps counted; each takes some 2 us to read."""
TURN_S: Final = 0.0005
"""Time in one turn after which no further row is made, seconds."""
TURNS_SHARE: Final = 1 / 4
"""Part of the time that answers get while there is no end of requests: messages have three quarters of it."""
MAX_WAITING: Final = 100
"""Maximum number of requests of one connection that wait for their answers."""
MAX_WAITING_BYTES: Final = 1024 * 1024
"""Maximum size of the requests of one connection that wait for their answers, bytes; one may wait whatever its size."""


def serve_management(
    runtime: Runtime, daemon: ManagedDaemon | None = None, measure: Callable[[], float] | None = None
) -> RuntimeView:
    """Answer what is sent to `$management` of this router, by its clients or from anywhere in the mesh.

    Its clients may also ask about queues, as RabbitMQ's do.

    Args:
        runtime: of the router.
        daemon: has its listeners and connectors; None where there are none.
        measure: seconds that the router has used; None for its clock.
    Returns: what it shows of the router.
    """
    view = RuntimeView(runtime, *((daemon.listeners, daemon.connectors) if daemon is not None else ((), ())))
    node = ManagementNode(view, RuntimeChanges(runtime, daemon))
    service = ManagementService(runtime, node, measure if measure is not None else runtime.clock)
    runtime.tell_work(service.go_on)
    most_bytes = runtime.settings.forwarding.management_request_bytes
    runtime.fib.serve(MANAGEMENT, service.take, most_bytes)
    runtime.pairs.serve(service.take, most_bytes)
    return view


@attrs.frozen
class WaitingRequest:
    """A request that is not begun."""

    data: bytes
    access: Access
    """Rights of the sender to management."""
    rights: ClientRights | None
    """Rights of the sender to send messages; None where there is no policy."""
    vhost: str
    """Word that the listener puts before the addresses of the sender; empty for none."""
    pair: ManagementPair | None
    """Pair of links that the request came by; None for a request to `$management`."""


@attrs.define(eq=False)
class ConnectionRequests:
    """The requests of one connection."""

    requests: deque[WaitingRequest] = attrs.field(factory=deque)
    """Requests that were not begun, oldest first."""
    size: int = 0
    """Bytes of the waiting requests."""
    work: Generator[None, None, None] | None = None
    """Work on the answer being made, which pauses after each row; None when there is none."""


class ManagementService:
    """Requests that wait, by connection, and the answers in the making."""

    def __init__(self, runtime: Runtime, node: ManagementNode, measure: Callable[[], float]) -> None:
        self._runtime = runtime
        self._node = node
        self._measure = measure
        self._waiting: OrderedDict[ConnectionId | None, ConnectionRequests] = OrderedDict()
        self._is_working = False
        self._turn_at = -math.inf
        """Time of the last turn in which an answer was made, seconds."""
        self._turn_s = 0.0
        """Time that answers have taken in the last such turn, seconds."""

    def take(self, data: bytes, source: ConnectionId | None, pair: ManagementPair | None = None) -> bool:
        """Take one request, which came by a pair of links or to `$management`. Returns: whether there was room."""
        waiting = self._waiting.setdefault(source, ConnectionRequests())
        if len(waiting.requests) >= MAX_WAITING or (waiting.size and waiting.size + len(data) > MAX_WAITING_BYTES):
            return False
        connection = self._runtime.connections.get(source) if source is not None else None
        vhost = (connection.port.vhost if connection is not None else None) or ""
        waiting.requests.append(WaitingRequest(data, *self._access(source), vhost, pair))
        waiting.size += len(data)
        if self._runtime.work_at == math.inf and not self._is_working:
            self.go_on()
        return True

    def _access(self, source: ConnectionId | None) -> tuple[Access, ClientRights | None]:
        """Find out what the sender of a request may ask; and its rights, when it is a client under policy."""
        runtime = self._runtime
        connection = runtime.connections.get(source) if source is not None else None
        is_here = connection is not None and not connection.port.is_router
        if not runtime.policy.is_active:
            return (Access(right=ManagementRight.WRITE, connection=source) if is_here else EVERYTHING), None
        if connection is None:
            return NOTHING, None
        if connection.port.is_router:
            return BY_NEIGHBOR, None
        rights = connection.rights
        if rights is None:
            return NOTHING, None
        right = rights.group.management
        vhost = rights.vhost if right is ManagementRight.OWN else None
        return Access(right=right, vhost=vhost, connection=source), rights

    def go_on(self) -> None:
        """Make answers, unless that would leave others too little time."""
        now = self._runtime.data_plane.clock.now
        if self._turn_at != now and now >= self._rest_until():
            self._turn_at, self._turn_s = now, 0.0
        if self._turn_at == now:
            self._work()
        if self._waiting:
            self._runtime.look_at_work(self._rest_until())

    def _rest_until(self) -> float:
        """Time at which the next turn may begin, seconds: after the last one others have their share."""
        return self._turn_at + self._turn_s / TURNS_SHARE

    def _work(self) -> None:
        """Make as much of the answers as the turn has room for.

        An answer may itself be a request to this router, which waits for its turn.
        """
        self._is_working = True
        begin, before = self._measure(), self._turn_s
        try:
            while self._waiting and self._turn_s < TURN_S:
                source, waiting = next(iter(self._waiting.items()))
                self._step(waiting)
                self._turn_s = before + self._measure() - begin
                if waiting.work is None and not waiting.requests:
                    del self._waiting[source]
                else:
                    self._waiting.move_to_end(source)
        finally:
            self._is_working = False

    def _step(self, waiting: ConnectionRequests) -> None:
        """Make a piece of the oldest answer of a connection."""
        if waiting.work is None:
            request = waiting.requests.popleft()
            waiting.size -= len(request.data)
            if request.pair is not None:
                waiting.work = self._answer_pair(request, request.pair)
            else:
                waiting.work = self._answer(request.data, request.access, request.rights)
        try:
            next(waiting.work)
        except StopIteration:
            waiting.work = None
        except Exception:  # a fault of ours: it must not keep others from their answers, nor end a connection
            waiting.work = None
            self._runtime.log.exception("management_fault")

    def _answer(self, data: bytes, access: Access, rights: ClientRights | None) -> Generator[None, None, None]:
        """Answer one request. Whatever it is, it does no harm to the connection that it came on."""
        runtime = self._runtime
        try:
            request = message_codec.decode_message(data, max_values=MAX_VALUES)
        except message_codec.UnreadableMessage as error:
            runtime.log.warning("management_request_malformed", reason=str(error))
            self._refuse(error, rights)
            return
        if self._reply_address(request.reply_to, rights) is None:
            return
        yield
        try:
            work = self._node.work(request, access)
            while True:
                try:
                    next(work)
                except StopIteration as done:
                    answer = done.value
                    break
                yield
            encoded = b"" if answer is None else message_codec.encode_message(answer)
        except Exception as error:  # a fault of ours: it must end neither the router nor somebody's connection
            runtime.log.exception("management_fault")
            fault = Answer(
                status=HTTPStatus.INTERNAL_SERVER_ERROR, description=f"fault of the router: {type(error).__name__}"
            )
            answer = reply(request, fault)
            encoded = message_codec.encode_message(answer)
        if answer is None or answer.to is None:
            runtime.log.warning("management_request_ignored", reason="it names no address to reply to")
            return
        self._publish(answer.to, encoded, rights)

    def _answer_pair(self, asked: WaitingRequest, pair: ManagementPair) -> Generator[None, None, None]:
        """Answer a request about a queue."""
        runtime = self._runtime
        try:
            request = message_codec.decode_message(asked.data, max_values=MAX_VALUES, is_body_anywhere=True)
        except message_codec.UnreadableMessage as error:
            runtime.log.warning("management_request_malformed", reason=str(error))
            answer = refuse_queue_request(error.read or message_codec.Message(), f"the request is not read: {error}")
        else:
            yield
            most = runtime.settings.forwarding.address_bytes
            find = partial(find_queue, runtime.fib, rights=asked.rights, vhost=asked.vhost, most_bytes=most)
            try:
                answer = answer_queue_request(request, find)
            except Exception as error:  # a fault of ours: it must end neither the router nor somebody's connection
                runtime.log.exception("management_fault")
                fault = f"fault of the router: {type(error).__name__}"
                answer = refuse_queue_request(request, fault, HTTPStatus.INTERNAL_SERVER_ERROR)
        if pair.reply_address is None:
            reason = "no receiver of its name is attached in its session"
            runtime.log.warning("management_request_ignored", reason=reason)
            return
        runtime.data_plane.publish(pair.reply_address, message_codec.encode_message(answer))

    def _reply_address(self, to: str | None, rights: ClientRights | None) -> str | None:
        """The address of a reply as the mesh knows it; None when its requester may not send there either.

        Else a client could have this router write where policy doesn't let it.
        """
        if rights is None or not to:
            return to or ""
        try:
            return rights.message_target(to)
        except Denied as denied:
            self._runtime.log.warning("management_request_ignored", reason=str(denied))
            return None

    def _publish(self, to: str, encoded: bytes, rights: ClientRights | None) -> None:
        address = self._reply_address(to, rights)
        if address:
            self._runtime.data_plane.publish(address, encoded)

    def _refuse(self, error: message_codec.UnreadableMessage, rights: ClientRights | None) -> None:
        """Answer what cannot be read, if it says before that where to."""
        request = error.read
        if request is not None and request.reply_to and not is_reserved(request.reply_to):
            answer = reply(
                request, Answer(status=HTTPStatus.BAD_REQUEST, description=f"the request is not read: {error}")
            )
            self._publish(request.reply_to, message_codec.encode_message(answer), rights)
