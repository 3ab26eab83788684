"""Circuits to and from one neighbor: plain AMQP links, each for one address and the root of its tree.

The upstream router attaches and closes them, as sender, each alone in a session, so that none holds up another. Target:
the address, and the capability `amqp-mesh.circuit`; link properties: the root.

An own circuit is *held* until there are few enough under way, then *unanswered* until the neighbor's attach is there.
So a neighbor that refuses many does not take them for an attack, and both sides know of nearly every session and never
begin more than there are channels, after which proton falls silent.

A session is used again when its circuit is gone. For each End proton walks through all links of the connection, 2 ms
with 10,000 of them, and for each Begin through all channels.

Source: docs/reference/inter-router-protocol.md#circuits; docs/explanation/credit.md#circuits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from mesh_config.models import Treatment
from router.binding import proton_data
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle
from router.core.addressing.address import AddressKind, parse_address
from router.core.errors import PeerProtocolError
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.ids_and_conditions import Condition, LinkId, RouterId
from router.core.linkstate.messages import MAX_LOAD, MAX_WEIGHT, CircuitStates, is_router_id
from router.dataplane.data_plane import DataPlane
from router.dataplane.links import EgressCircuitLink, IngressCircuitLink
from router.engine.attach_fields import (
    ATTACH_BYTES,
    check_answer,
    link_name,
    new_link_name,
    read_address,
    write_termini,
)
from router.engine.connection import Connection

# DEV-28: a qdrouterd takes and makes none.
CIRCUIT: Final = "amqp-mesh.circuit"
"""Capability of a circuit's target."""
EGRESS: Final = "amqp-mesh.egress"
INGRESS: Final = "amqp-mesh.ingress"
"""Link property that names the root: of an anycast, of a multicast."""
MAX_NAMES: Final = 1000
"""Maximum number of circuits in one message about them."""
NO_LOADS: Final[Mapping[str, tuple[int, int]]] = {}


class Circuits:
    """The circuits of one connection, both ways."""

    def __init__(
        self,
        connection: Connection,
        data_plane: DataPlane,
        fib: Fib,
        link_ids: Iterator[int],
        tell: Callable[[CircuitStates], None],
    ) -> None:
        """*tell* sends a control message to the neighbor."""
        self._connection = connection
        self._data_plane = data_plane
        self._fib = fib
        self._ids = link_ids
        self._tell = tell
        self._spare: dict[int, Handle] = {}
        """Own sessions without a circuit, by the address of their handle; they need not have begun."""
        self._handles: dict[int, int] = {}
        """Address of the handle of the circuit that a session of our own has, by the address of the session's
        handle."""
        self._held: dict[int, EgressCircuitLink] = {}
        self._unsaid: dict[str, int] = {}
        """Weights of circuits that are not attached yet, by link name: the neighbor could do nothing with them
        before."""
        self._unanswered: set[int] = set()
        self._closing: set[int] = set()
        """Addresses of the handles of own circuits that we have closed; these may be unanswered as well."""
        connection.port.serve_circuits(self.open, self.close, self.end_incoming, self.tell)

    # Our own

    def open(self, address: str, root: RouterId, is_multicast: bool) -> EgressCircuitLink | None:
        """Attach a circuit for *address* along the tree of *root*: its egress router, or a multicast's ingress router.

        Returns: None when there are as many as the settings or the channels allow, or the neighbor's frames are too
            small for its Attach.
        """
        connection = self._connection
        fits = len(f"{address}{root}".encode()) + ATTACH_BYTES <= connection.peer_frame_bytes
        session = self._session() if fits and self._has_room() else None
        if session is None:
            return None
        name = new_link_name("circuit")
        handle = pn.pn_sender(session, name.encode())
        _describe(handle, address, root, is_multicast=is_multicast)
        link_id = LinkId(next(self._ids))
        link = EgressCircuitLink(link_id, connection.port, handle, name, root=root, address=address)
        key = self._handles[session] = handle
        connection.add_link(link)
        connection.port.circuits_out[name] = link
        self._data_plane.add_egress(link)
        if self._held or len(self._unanswered) >= self._pace:
            self._held[key] = link
        else:
            self._attach(link)
        return link

    def _session(self) -> Handle | None:
        if self._spare:
            return self._spare.popitem()[1]
        return self._connection.new_session(begins=False) if self._free_channels > len(self._held) else None

    @property
    def _free_channels(self) -> int:
        """Number of sessions that may begin."""
        # Half of the reserve is for circuits of the neighbor under way to us, half for links of other kinds.
        return self._connection.free_channels - 2 * self._pace

    def _has_room(self) -> bool:
        port, settings = self._connection.port, self._data_plane.current_settings.forwarding
        known = len(port.circuits_in) + len(port.circuits_out)
        return known < settings.max_circuits and len(self._connection.links) < settings.max_links

    @property
    def _pace(self) -> int:
        """Maximum number of own circuits that may be unanswered."""
        return max(1, self._connection.spared_channels)

    def _attach(self, link: EgressCircuitLink) -> None:
        if pn.pn_session_state(link.session) & pn.LOCAL_UNINIT:
            self._connection.begin(link.session)
        pn.pn_link_open(link.handle)
        self._connection.port.touch()
        self._unanswered.add(link.handle)

    def _attach_held(self) -> None:
        """Attach what is held, as far as the answers have come."""
        weights: dict[str, int] = {}
        while self._held and len(self._unanswered) < self._pace and not self._connection.is_ending:
            link = self._held.pop(next(iter(self._held)))
            weight = self._unsaid.pop(link.name, None)
            if self._free_channels <= 0 and pn.pn_session_state(link.session) & pn.LOCAL_UNINIT:
                self._give_up(link)  # sessions of the neighbor have come meanwhile
                continue
            self._attach(link)
            if weight is not None:
                weights[link.name] = weight
        self._tell_weights(weights)

    def _give_up(self, link: EgressCircuitLink) -> None:
        self._connection.take_link(link.handle)
        del self._connection.port.circuits_out[link.name]
        link.is_refused = True
        self._data_plane.remove_egress(link)
        del self._handles[link.session]
        pn.pn_session_free(link.session)

    def answered(self, handle: Handle) -> None:
        """The neighbor answered an attach, with another one or with one that a refusal follows."""
        self._unanswered.discard(handle)
        self._attach_held()

    def close(self, link: EgressCircuitLink) -> None:
        """Close a circuit of our own that the data plane has forgotten, behind what was sent on it."""
        connection = self._connection
        handle = link.handle
        if connection.port.circuits_out.pop(link.name, None) is None:
            return  # the neighbor was faster: its handle is gone
        connection.take_link(handle)
        key = handle
        if key in self._held:
            self._forget(link.session)
            self._spare[link.session] = link.session
            pn.pn_link_free(handle)
        elif link.has_aborted:
            # No Detach would be written, nor an End or Close: the neighbor would lend credit to the circuit for ever.
            connection.give_up("messages for a circuit that is over could not be written")
        elif not connection.is_ending:
            self._closing.add(key)
            pn.pn_link_close(handle)
            connection.port.touch()

    def is_closing(self, handle: Handle) -> bool:
        """Whether it is a circuit that we closed."""
        return handle in self._closing

    def free(self, handle: Handle) -> None:
        """A link is detached on both sides and about to be freed: if it is a circuit of ours, its session is spare."""
        key, session = handle, pn.pn_link_session(handle)
        if self._handles.get(session) != key:
            return
        self._forget(session)
        if pn.pn_session_outgoing_bytes(session):
            pn.pn_session_close(session)  # these would count as unwritten for ever
        else:
            self._spare[session] = session
        self._attach_held()

    def session_ended(self, session: Handle) -> None:
        """The neighbor ended a session; its circuit is removed already."""
        self._spare.pop(session, None)
        self._forget(session)
        self._attach_held()

    def _forget(self, session: Handle) -> None:
        key = self._handles.pop(session, None)
        if key is not None:
            held = self._held.pop(key, None)
            if held is not None:
                self._unsaid.pop(held.name, None)
            self._unanswered.discard(key)
            self._closing.discard(key)

    def tell(
        self, weights: Mapping[str, int], closed: Sequence[str], loads: Mapping[str, tuple[int, int]] = NO_LOADS
    ) -> None:
        """Tell the neighbor the weights of our circuits, which of its own are closed, and loads where they lead."""
        if self._connection.is_ending:
            return
        known: dict[str, int] = {}
        for name, weight in weights.items():
            link = self._connection.port.circuits_out.get(name)
            if link is not None:
                table = self._unsaid if link.handle in self._held else known
                table[name] = weight
        self._tell_weights(known)
        for at in range(0, len(closed), MAX_NAMES):
            self._tell(CircuitStates(id=self._fib.me, closed=tuple(closed[at : at + MAX_NAMES])))
        items = list(loads.items())
        for at in range(0, len(items), MAX_NAMES):
            told = {name: (_bounded(messages), _bounded(who)) for name, (messages, who) in items[at : at + MAX_NAMES]}
            self._tell(CircuitStates(id=self._fib.me, loads=told))

    def _tell_weights(self, weights: Mapping[str, int]) -> None:
        items = list(weights.items())
        for at in range(0, len(items), MAX_NAMES):
            told = {name: min(weight, MAX_WEIGHT) for name, weight in items[at : at + MAX_NAMES]}
            self._tell(CircuitStates(id=self._fib.me, weights=told))

    # The neighbor's

    def accept(self, handle: Handle) -> None:
        """The neighbor attached a circuit.

        Raises:
            PeerProtocolError: it is refused for this.
        """
        connection = self._connection
        port, session = connection.port, pn.pn_link_session(handle)
        name = link_name(handle)
        if not self._has_room():
            raise PeerProtocolError("too many circuits", condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        if connection.count_links(session):
            raise PeerProtocolError("a circuit needs a session of its own", condition=Condition.NOT_ALLOWED)
        if name in port.circuits_in:
            raise PeerProtocolError(f"there is a circuit {name!r} already", condition=Condition.NOT_ALLOWED)
        check_answer(handle, connection.peer_frame_bytes)
        root, is_multicast = _root_of(handle)
        address = read_address(pn.pn_link_remote_target(handle))
        if not address:
            raise PeerProtocolError("a circuit needs an address", condition=Condition.INVALID_FIELD)
        if port.rights is not None:
            port.rights.message_target(address, port.id)
        entry = self._entry(address, is_multicast=is_multicast)
        link_id = LinkId(next(self._ids))
        link = IngressCircuitLink(link_id, port, handle, name, root=root, entry=entry, address=address)
        pn.pn_terminus_copy(pn.pn_link_source(handle), pn.pn_link_remote_source(handle))
        pn.pn_terminus_copy(pn.pn_link_target(handle), pn.pn_link_remote_target(handle))
        pn.pn_link_set_snd_settle_mode(handle, pn.SND_MIXED)
        pn.pn_link_open(handle)
        connection.add_link(link)
        port.circuits_in[name] = link
        self._data_plane.add_circuit(link)

    def _entry(self, address: str, *, is_multicast: bool) -> AddressEntry:
        # No router is called "", so our own reply addresses come out as ROUTER, and what is local to a hop as LOCAL.
        parsed = parse_address(address, me=RouterId(""))
        if parsed.kind not in (AddressKind.MOBILE, AddressKind.ROUTER) or parsed.is_reserved:
            raise PeerProtocolError(f"no circuit leads to {address}", condition=Condition.INVALID_FIELD)
        entry = self._fib.attach(address)
        if entry.kind is AddressKind.LOCAL and not entry.is_open:
            self._fib.forget(entry)
            raise PeerProtocolError(f"nobody receives from {address}", condition=Condition.NOT_FOUND)
        if is_multicast != (entry.treatment is Treatment.MULTICAST):
            self._fib.forget(entry)
            raise PeerProtocolError(
                f"{address} is {entry.treatment.value} at router {self._fib.me}",
                condition=Condition.PRECONDITION_FAILED,
            )
        return entry

    # The end

    def end_incoming(self, link: IngressCircuitLink) -> None:
        """End a circuit of the neighbor: there is nobody behind its address any more."""
        connection = self._connection
        if connection.is_ending or connection.take_link(link.handle) is None:
            return
        self.remove(link)
        proton_data.set_condition(pn.pn_link_condition(link.handle), Condition.NOT_FOUND, f"{link.address} is gone")
        pn.pn_link_close(link.handle)
        connection.refused.add(link.handle)
        pn.pn_link_free(link.handle)
        connection.port.touch()

    def remove(self, link: IngressCircuitLink | EgressCircuitLink) -> None:
        """The neighbor detached a circuit, or it goes with its session or the connection."""
        port = self._connection.port
        if isinstance(link, IngressCircuitLink):
            del port.circuits_in[link.name]
            self._data_plane.remove_ingress(link)
            if link.entry is not None:
                self._fib.forget(link.entry)
        else:
            del port.circuits_out[link.name]
            link.is_refused = bool(pn.pn_condition_is_set(pn.pn_link_remote_condition(link.handle)))
            self._data_plane.remove_egress(link)


def _bounded(number: int) -> int:
    return max(-MAX_LOAD, min(number, MAX_LOAD))


def _describe(handle: Handle, address: str, root: RouterId, *, is_multicast: bool) -> None:
    _, target = write_termini(handle)
    pn.pn_terminus_set_address(target, address.encode())
    proton_data.write_symbol(pn.pn_terminus_capabilities(target), CIRCUIT)
    proton_data.write_map(pn.pn_link_properties(handle), {INGRESS if is_multicast else EGRESS: str(root)})


def _root_of(handle: Handle) -> tuple[RouterId, bool]:
    """The root that the neighbor's link properties name, and whether it is that of a multicast."""
    properties = proton_data.read_map(pn.pn_link_remote_properties(handle))
    keys = [key for key in (EGRESS, INGRESS) if key in properties]
    if len(keys) != 1:
        raise PeerProtocolError(f"a circuit has one of {EGRESS} and {INGRESS}", condition=Condition.INVALID_FIELD)
    root = properties[keys[0]]
    if not isinstance(root, str) or not is_router_id(root):
        raise PeerProtocolError(f"{keys[0]} names no router", condition=Condition.INVALID_FIELD)
    return RouterId(str(root)), keys[0] == INGRESS
