"""Whether anybody in the mesh receives from an address, as a client asks that would call it a queue.

Who may send to an address may ask: it would learn the same by attaching a sender.
"""

from __future__ import annotations

from http import HTTPStatus

from router.core.addressing.address import AddressKind, is_private, is_reserved, masked, parse_address, with_vhost
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.policy.client_rights import ClientRights
from router.core.policy.denial import Denied
from router.dataplane.links import SubscriberLink
from router.management.rabbitmq_queue_lookup import QUEUES, AddressAsQueue, QueueRequestRefused


def find_queue(fib: Fib, name: str, rights: ClientRights | None, vhost: str, most_bytes: int) -> AddressAsQueue | None:
    """Find the queue that a client means by a name.

    A client that receives from `/queues/x`, which is what RabbitMQ calls the queue `x`, receives from the address
    `queues/x` of the mesh; `x` itself goes before it.

    Args:
        fib: of this router.
        name: of the queue, decoded.
        rights: of the client; None where there is no policy.
        vhost: word that its listener puts before its addresses; empty for none.
        most_bytes: of an address.
    Raises:
        QueueRequestRefused: the client may not send there, or only another router knows.
    """
    if len(name.encode()) > most_bytes:
        return None  # nobody could attach to it
    addresses = (name, f"/{QUEUES}/{name}")
    denied: list[Denied] = []
    for address in addresses:
        try:
            queue = _find(fib, rights.target(address) if rights is not None else with_vhost(address, vhost))
        except Denied as error:
            denied.append(error)
        else:
            if queue is not None:
                return queue
    if len(denied) == len(addresses):
        raise QueueRequestRefused(HTTPStatus.FORBIDDEN, str(denied[0]))
    return None


def _find(fib: Fib, address: str) -> AddressAsQueue | None:
    """Find the receivers of an address as the mesh knows it."""
    if is_reserved(address):
        return None
    parsed = parse_address(address, me=fib.me)
    if parsed.kind is AddressKind.ROUTER and parsed.router in fib.routes:
        raise QueueRequestRefused(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"only the router `{parsed.router}` knows whether anybody receives from `{masked(parsed.text)}`: ask there;"
            " of reply addresses in the manner of RabbitMQ every router knows",
        )
    if parsed.kind not in (AddressKind.MOBILE, AddressKind.LOCAL):
        return None
    entry = fib.find(address)
    return _queue(fib, entry, is_exclusive=is_private(parsed)) if entry is not None and entry.service is None else None


def _queue(fib: Fib, entry: AddressEntry, *, is_exclusive: bool) -> AddressAsQueue | None:
    here = sum(
        isinstance(link, SubscriberLink) and not (link.is_gone or link.port.is_leaving) for link in entry.subscribers
    )
    routers = ((fib.me,) if here else ()) + tuple(sorted(entry.remotes))
    if not routers:
        return None
    receivers = here + len(entry.remotes)
    return AddressAsQueue(receivers=receivers, waiting=len(entry.waiting), routers=routers, is_exclusive=is_exclusive)
