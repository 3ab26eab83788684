"""Links of clients: what a terminus asks for, whether it is granted, and what goes away with the link.

Source: AMQP 1.0 part 2, 2.6.3 and part 3, 3.5;
docs/reference/inter-router-protocol.md#dynamic-addresses; docs/how_to/oslo-messaging.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.core.addressing.address import (
    AddressKind,
    dynamic_address,
    dynamic_target,
    is_private,
    is_reserved,
    is_reserved_mobile,
    is_volatile_reply,
    masked,
    parse_address,
    tagged,
    volatile_reply_address,
    with_vhost,
)
from router.core.errors import PeerProtocolError
from router.core.forwarding.doubling_window import first_window
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.ids_and_conditions import Condition, LinkId
from router.core.policy.denial import DenialKind, Denied
from router.dataplane.data_plane import DataPlane
from router.dataplane.links import IngressLink, PublisherLink, SubscriberLink
from router.engine.attach_fields import check_answer, link_name, read_address, secret_part
from router.engine.connection import Connection
from router.engine.rabbitmq_management_pairs import ManagementPairs

VOLATILE_QUEUE = "rabbitmq:volatile-queue"
"""Capability of a source that asks for a reply address in the manner of RabbitMQ's Direct Reply-To."""
ROUTER_CAPABILITY_PREFIX = "qd.router"
SERVICE_CAPABILITY_PREFIX = "qd."
"""Prefix of the other capabilities that a terminus may ask a qdrouterd for, such as `qd.waypoint` and `qd.fallback`."""


class Refused(PeerProtocolError):
    """The attach cannot be granted; the link is closed with the condition."""


class AllClientLinks:
    """The links of all client connections of this router."""

    def __init__(
        self,
        fib: Fib,
        data_plane: DataPlane,
        link_ids: Iterator[int],
        changed: Callable[[AddressEntry, bool], None],
    ) -> None:
        """*changed* is told of the first (True) and of the last (False) local subscriber of an address."""
        self._fib = fib
        self._data_plane = data_plane
        self._ids = link_ids
        self._changed = changed
        self.pairs = ManagementPairs(fib)

    def attach(self, connection: Connection, handle: Handle) -> None:
        """Grant or refuse what the peer asks for.

        Raises:
            Refused: with the condition to close the link with.
        """
        settings = self._data_plane.current_settings.forwarding
        if len(connection.links) >= settings.max_links:
            raise Refused("too many links on this connection", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        if connection.count_links(pn.pn_link_session(handle)) >= settings.max_session_links:
            raise Refused("too many links in this session", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        for terminus in (pn.pn_link_remote_source(handle), pn.pn_link_remote_target(handle)):
            read_address(terminus)  # that at the peer's side is repeated in the answer
            for capability in proton_data.read_symbols(pn.pn_terminus_capabilities(terminus)):
                if capability.startswith(ROUTER_CAPABILITY_PREFIX):
                    raise Refused("this listener is for clients, not for routers", condition=Condition.QD_FORBIDDEN)
                if capability.startswith(SERVICE_CAPABILITY_PREFIX):
                    raise Refused(f"{capability} is not offered here", condition=Condition.NOT_IMPLEMENTED)
        check_answer(handle, connection.peer_frame_bytes)
        attach = self._attach_subscriber if pn.pn_link_is_sender(handle) else self._attach_publisher
        try:
            attach(connection, handle)
        except Denied as denied:
            assert connection.rights is not None
            own = pn.pn_link_remote_source if pn.pn_link_is_sender(handle) else pn.pn_link_remote_target
            connection.rights.state.denied(denied, connection.rights.user, read_address(own(handle)) or "")
            raise

    def _attach_subscriber(self, connection: Connection, handle: Handle) -> None:
        source = pn.pn_link_remote_source(handle)
        if pn.pn_terminus_get_type(source) != pn.SOURCE:
            raise Refused("a receiver needs a source with an address", condition=Condition.INVALID_FIELD)
        capabilities = proton_data.read_symbols(pn.pn_terminus_capabilities(source))
        is_volatile = VOLATILE_QUEUE in capabilities
        is_paired = False
        plain: str | None = None
        rights = connection.rights
        if rights is not None:
            rights.check_links(DenialKind.RECEIVER, len(connection.links) - connection.publishers)
        if pn.pn_terminus_is_dynamic(source):
            if rights is not None:
                rights.check_dynamic(DenialKind.RECEIVER)
            make = volatile_reply_address if is_volatile else dynamic_address
            random = secret_part()
            address = make(self._fib.me, tagged(rights.tag, random) if rights is not None else random)
            check_answer(handle, connection.peer_frame_bytes, address)
        elif is_paired := self.pairs.has(handle):
            address = self.pairs.replies(connection, handle)
        else:
            plain = read_address(source)
            address = self._checked(plain, connection, rights.source if rights is not None else None)
            self._check_source(address, connection)
        entry = self._fib.attach(address, plain=plain)
        if is_paired or pn.pn_terminus_is_dynamic(source):
            entry.holder = connection.id
        link = SubscriberLink(
            LinkId(next(self._ids)),
            connection.port,
            handle,
            link_name(handle),
            entry=entry,
            address=address,
            is_presettled=pn.pn_link_remote_snd_settle_mode(handle) == pn.SND_SETTLED,
            most_bytes=pn.pn_link_remote_max_message_size(handle),
        )
        link.default_outcome = connection.default_outcome(link.name)
        self._mirror(handle, address if pn.pn_terminus_is_dynamic(source) else None)
        if is_volatile and pn.pn_terminus_is_dynamic(source):
            proton_data.write_symbol(pn.pn_terminus_capabilities(pn.pn_link_source(handle)), VOLATILE_QUEUE)
        if is_paired:
            self.pairs.add(connection, handle, link.id)
        connection.add_link(link)
        self._data_plane.add_egress(link)
        is_first = self._fib.subscribe(entry, link)
        pn.pn_link_open(handle)
        if is_first:
            self._changed(entry, True)
            self._data_plane.reconsider(entry)
        self._data_plane.flowed(link)

    def _attach_publisher(self, connection: Connection, handle: Handle) -> None:
        target = pn.pn_link_remote_target(handle)
        kind = pn.pn_terminus_get_type(target)
        if kind == pn.COORDINATOR:
            raise Refused("transactions are not supported", condition=Condition.PRECONDITION_FAILED)
        address = read_address(target)
        rights = connection.rights
        if rights is not None:
            rights.check_links(DenialKind.SENDER, connection.publishers)
        plain: str | None = None
        entry: AddressEntry | None = None
        if pn.pn_terminus_is_dynamic(target):
            if rights is not None:
                rights.check_dynamic(DenialKind.SENDER)
            address = dynamic_target(secret_part())
            check_answer(handle, connection.peer_frame_bytes, address)
        is_paired = self.pairs.has(handle)
        if is_paired:
            entry = self.pairs.requests(connection, handle)
        elif address:
            plain = address
            address = self._checked(address, connection, rights.target if rights is not None else None)
            parsed = parse_address(address, me=self._fib.me)
            if parsed.kind in (AddressKind.EVERY_ROUTER, AddressKind.FOREIGN, AddressKind.INVALID):
                raise Refused(f"nobody here can send to {address}", condition=Condition.QD_NO_ROUTE)
            if parsed.kind is not AddressKind.EDGE:  # else each message looks for it, as its edge router may move
                entry = self._fib.attach(address, plain=plain)
            # DEV-20: a responder can ask whether its requester is still there.
            if entry is not None and is_volatile_reply(entry.text) and not entry.is_open:
                self._fib.forget(entry)
                raise Refused(f"the requester behind {address} is gone", condition=Condition.NOT_FOUND)
        elif rights is not None:
            rights.check_anonymous_sender()
        settings = self._data_plane.current_settings.forwarding
        window = settings.publisher_window if entry is not None else settings.anonymous_window
        link = PublisherLink(
            LinkId(next(self._ids)),
            connection.port,
            handle,
            link_name(handle),
            window=window if entry is not None else first_window(window),
            most_window=window,
            most_bytes=_most_message_bytes(connection),
            entry=entry,
            address=address or None,
        )
        if rights is not None:
            elsewhere = address is not None and rights.asks_other_router(address)
            link.bind_messages(rights.user_id, asks_other_router=elsewhere)
            link.rate = connection.rate
        pn.pn_link_set_max_message_size(handle, link.most_bytes)
        # without the virtual host, which is put before it when a receiver attaches to it
        self._mirror(handle, plain if pn.pn_terminus_is_dynamic(target) else None)
        if is_paired:
            self.pairs.add(connection, handle, link.id)
        connection.add_link(link)
        pn.pn_link_open(handle)
        self._data_plane.add_publisher(link)

    def _check_source(self, address: str, connection: Connection) -> None:
        """Refuse a receiver from what it may not receive from."""
        parsed = parse_address(address, me=self._fib.me)
        if parsed.kind not in (AddressKind.MOBILE, AddressKind.LOCAL) and not is_private(parsed):
            raise Refused(f"nobody here can receive from {address}", condition=Condition.QD_NO_ROUTE)
        found = self._fib.find(address)
        if found is not None and found.service is not None:
            raise Refused(f"{address} is answered by the router itself", condition=Condition.NOT_ALLOWED)
        if parsed.kind is AddressKind.MOBILE and is_reserved_mobile(parsed.text):
            raise Refused(f"{address} is for routers: it begins with $ or _", condition=Condition.NOT_ALLOWED)
        if is_private(parsed) and (found is None or found.holder != connection.id):
            raise Refused(
                f"{masked(parsed.text)} belongs to the connection that it was made for",
                condition=Condition.UNAUTHORIZED_ACCESS,
            )

    def _checked(self, address: str | None, connection: Connection, permitted: Callable[[str], str] | None) -> str:
        """The address with the virtual host of its connection; *permitted* asks policy for it, if there is one."""
        if not address:
            raise Refused("a link needs an address", condition=Condition.INVALID_FIELD)
        rights = connection.rights
        vhost = (connection.port.vhost if rights is None else rights.prefix) or ""
        size = len(address.encode()) + len(vhost.encode()) + bool(vhost)
        limit = self._data_plane.current_settings.forwarding.address_bytes
        if size > limit:
            raise Refused(
                f"the address {address[:20]!r}... has {size} bytes, and may have {limit}",
                condition=Condition.INVALID_FIELD,
            )
        if is_reserved(address):
            raise Refused(f"{address} is for routers", condition=Condition.UNAUTHORIZED_ACCESS)
        if permitted is not None:
            return permitted(address)
        return with_vhost(address, vhost) if vhost else address

    def _mirror(self, handle: Handle, dynamic: str | None) -> None:
        """Answer with the peer's termini, less what this router does not do.

        Its own terminus goes with the link and keeps nothing, and has no filters, copies, and capabilities of queues.
        """
        source, target = pn.pn_link_source(handle), pn.pn_link_target(handle)
        pn.pn_terminus_copy(source, pn.pn_link_remote_source(handle))
        pn.pn_terminus_copy(target, pn.pn_link_remote_target(handle))
        proton_data.clear(pn.pn_terminus_filter(source))
        for terminus in (source, target):
            proton_data.clear(pn.pn_terminus_capabilities(terminus))
        own = source if pn.pn_link_is_sender(handle) else target
        if pn.pn_terminus_get_type(own) != pn.UNSPECIFIED:
            pn.pn_terminus_set_durability(own, pn.NONDURABLE)
            pn.pn_terminus_set_expiry_policy(own, pn.EXPIRE_WITH_LINK)
            pn.pn_terminus_set_timeout(own, 0)
            if pn.pn_terminus_get_distribution_mode(own) == pn.DIST_MODE_COPY:
                pn.pn_terminus_set_distribution_mode(own, pn.DIST_MODE_MOVE)
            if dynamic is not None:
                proton_data.keep_delete_on_close(pn.pn_terminus_properties(own))
            else:
                proton_data.clear(pn.pn_terminus_properties(own))
        if dynamic is not None:
            pn.pn_terminus_set_address(own, dynamic.encode())
        pn.pn_link_set_snd_settle_mode(handle, pn.pn_link_remote_snd_settle_mode(handle))
        pn.pn_link_set_rcv_settle_mode(handle, 0)

    def detach(self, connection: Connection, handle: Handle) -> None:
        """The link is gone: withdraw what it stood for. The handle itself is freed by the caller."""
        link = connection.take_link(handle)
        if isinstance(link, IngressLink):
            self._data_plane.remove_ingress(link)
            self.pairs.remove(link.id, is_receiver=False)
        elif isinstance(link, SubscriberLink):
            self._remove_subscriber(link)
            self.pairs.remove(link.id, is_receiver=True)

    def _remove_subscriber(self, link: SubscriberLink) -> None:
        entry = link.entry
        is_last = self._fib.unsubscribe(entry, link)
        self._data_plane.remove_egress(link)
        if is_last:
            self._changed(entry, False)
            self._data_plane.reconsider(entry)
        self._fib.forget(entry)


def _most_message_bytes(connection: Connection) -> int:
    """Bound of a client's messages, the lower one of its listener's and its group's; 0 for none."""
    bounds = [getattr(connection.settings, "max_message_bytes", 0)]
    if connection.rights is not None:
        bounds.append(connection.rights.group.max_message_bytes)
    return min((bound for bound in bounds if bound), default=0)


def refuse(handle: Handle, condition: str, description: str) -> None:
    """Answer an attach with a null terminus and close the link with an error (AMQP part 2, 2.6.3)."""
    own = pn.pn_link_source(handle) if pn.pn_link_is_sender(handle) else pn.pn_link_target(handle)
    pn.pn_terminus_set_type(own, pn.UNSPECIFIED)
    pn.pn_link_open(handle)
    proton_data.set_condition(pn.pn_link_condition(handle), condition, description)
    pn.pn_link_close(handle)
    pn.pn_link_free(handle)


def link_ids() -> Iterator[int]:
    """Numbers for links, from 1."""
    return itertools.count(1)
