"""How requests come to the management node, and replies leave."""

from __future__ import annotations

from collections.abc import Sequence

from router.core.addressing.address import MANAGEMENT
from router.core.errors import DecodeError
from router.engine import codec
from router.management.node import INTERNAL_ERROR, Answer, ManagementNode, reply
from router.net.connector import Connector
from router.net.listener import Listener
from router.runtime import Runtime
from router.views.runtime import RuntimeView


def serve_management(
    runtime: Runtime, listeners: Sequence[Listener] = (), connectors: Sequence[Connector] = ()
) -> ManagementNode:
    """Answer what is sent to `$management` of this router, by its clients or from anywhere in the mesh."""
    node = ManagementNode(RuntimeView(runtime, listeners, connectors))
    runtime.fib.serve(MANAGEMENT, lambda data: _received(runtime, node, data))
    return node


def _received(runtime: Runtime, node: ManagementNode, data: bytes) -> None:
    """Answer one request. Whatever it is, it does no harm to the connection that it came on."""
    try:
        request = codec.decode_message(data)
    except DecodeError as error:
        runtime.log.warning("management_request_malformed", reason=str(error))
        return
    try:
        answer = node.answer(request)
        encoded = b"" if answer is None else codec.encode_message(answer)
    except Exception as error:  # a fault of ours: it must end neither the router nor somebody's connection
        runtime.log.exception("management_fault")
        fault = Answer(status=INTERNAL_ERROR, description=f"fault of the router: {type(error).__name__}")
        answer = reply(request, fault)
        encoded = codec.encode_message(answer)
    if answer is None or answer.to is None:
        runtime.log.warning("management_request_ignored", reason="it names no address to reply to")
        return
    runtime.relay.publish(answer.to, encoded)
