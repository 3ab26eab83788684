"""A router of another make: the smallest peer that is a full member of a mesh, on python-proton's engine.

It says HELLO, RA, LSU and MAU and answers LSR and MAR as a qdrouterd does, sends and takes data with router
annotations, and dials or listens. It shares no code with the router.

Source: docs/reference/inter-router-protocol.md#links, docs/reference/inter-router-protocol.md#fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proton import AnnotationDict, Data, Link, Message, int32, symbol

from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Received, Sent, decode

CONTROL = "qd.router"
DATA = "qd.router-data"
HELLO_TO = "amqp:/_local/qdhello"
ALL_TO = "amqp:/_topo/0/all/qdrouter"


def control_message(
    to: str, opcode: str, origin: str, body: Mapping[str, Any], ingress: str, trace: Sequence[str]
) -> bytes:
    """A control message of the router *origin*, with the router annotations *ingress* and *trace*, as proton has it."""
    annotations = AnnotationDict({symbol("x-opt-qd.ingress"): ingress, symbol("x-opt-qd.trace"): list(trace)})
    plain = {"id": origin, "pv": int32(1), "area": "0", **body}
    message = Message(body=plain, address=to, properties={"opcode": opcode}, annotations=annotations)
    return bytes(message.encode())


class Neighbor:
    """The router *router_id* at the other end of a peer's connection.

    Args:
        peer: its connection; `on_link` becomes this object's.
        dials: it attaches the links, the other side answers.
        pairs: of data links that it attaches, each in a session of its own: 10 is what a qdrouterd does.
    """

    def __init__(self, router_id: str, peer: Peer, *, dials: bool, pairs: int = 1, instance: int = 1) -> None:
        self.id = router_id
        self.peer = peer
        self.instance = instance
        self.heard: set[str] = set()
        """Neighbors, by their HELLOs."""
        self.has_heard_me = False
        self.known: dict[str, dict[str, int]] = {}
        """Link state of each router."""
        self._sequences: dict[str, int] = {}
        self.ls_seq = 0
        self.addresses: dict[str, set[str]] = {}
        """Mobile addresses of each router."""
        self.own_addresses: list[str] = []
        self.mobile_seq = 0
        self.counts: Counter[str] = Counter()
        self.received: list[tuple[Message, Received]] = []
        """Data that arrived, decoded."""
        self.on_data: Callable[[Message, Received], None] | None = None
        self.control_out: PeerSender | None = None
        self.control_in: PeerReceiver | None = None
        self.data_out: list[PeerSender] = []
        self.data_in: list[PeerReceiver] = []
        self.attached_by_other: list[tuple[str, str, str]] = []
        """Direction, and the capabilities of source and target, of each link that the other side attached."""
        self._pairs = pairs
        peer.on_link = self._on_link
        if dials:
            peer.connection.open()

    def attach(self) -> None:
        """Attach everything: one control pair, then the data pairs."""
        session = self.peer.session()
        self._attach(session, CONTROL, is_sender=False)
        self._attach(session, CONTROL, is_sender=True)
        for _ in range(self._pairs):
            session = self.peer.session()
            self._attach(session, DATA, is_sender=False)
            self._attach(session, DATA, is_sender=True)

    def attach_large_message_links(self, count: int) -> None:
        """Attach *count* more data links to the other side, all in one session: so a qdrouterd has them."""
        session = self.peer.session()
        for _ in range(count):
            self._attach(session, DATA, is_sender=True)

    def _attach(self, session: Any, capability: str, *, is_sender: bool) -> None:
        def prepare(link: Link) -> None:
            link.source.capabilities.put_symbol(symbol(capability))
            link.target.capabilities.put_symbol(symbol(capability))
            link.source.expiry_policy = link.target.expiry_policy = link.source.EXPIRE_WITH_LINK
            link.snd_settle_mode = Link.SND_MIXED

        if is_sender:
            self._keep(self.peer.sender(None, session=session, prepare=prepare, run=False), capability)
        else:
            self._keep(self.peer.receiver(None, session=session, prepare=prepare, run=False), capability)

    def _keep(self, link: PeerSender | PeerReceiver, capability: str) -> None:
        if isinstance(link, PeerSender):
            if capability == CONTROL:
                self.control_out = link
            else:
                self.data_out.append(link)
            return
        link.flow(250)
        if capability == CONTROL:
            self.control_in = link
            link.policy = self._on_control
        else:
            self.data_in.append(link)
            link.policy = self._on_data

    def _on_link(self, link: Any) -> None:
        own, other = (link.remote_source, link.remote_target)
        source, target = _capability(own.capabilities), _capability(other.capabilities)
        self.attached_by_other.append(("in" if link.is_receiver else "out", source, target))
        capability = target if link.is_receiver else source
        for terminus in (link.source, link.target):
            terminus.capabilities.put_symbol(symbol(capability))
        link.open()
        found = PeerReceiver(link) if link.is_receiver else PeerSender(link)
        found.is_attached = True
        self.peer.links.append(found)
        self._keep(found, capability)

    # Control

    def say(self, to: str, opcode: str, body: Mapping[str, Any], *, trace: list[str] | None = None) -> None:
        """Write a control message."""
        if self.control_out is None:
            return
        trail = trace or [f"0/{self.id}"]
        self.control_out.send(control_message(to, opcode, self.id, body, f"0/{self.id}", trail), settled=True)

    def hello(self) -> None:
        """What is due each second."""
        self.say(HELLO_TO, "HELLO", {"instance": int32(self.instance), "seen": sorted(self.heard)})

    def advertise(self) -> None:
        """What is due each 30 seconds, and when something has changed."""
        body = {"instance": int32(self.instance), "ls_seq": int32(self.ls_seq), "mobile_seq": int32(self.mobile_seq)}
        self.say(ALL_TO, "RA", body)

    def subscribe(self, address: str, hint: int = 3) -> None:
        """Advertise a mobile address."""
        self._change(["M0" + address], [], [hint])

    def host_edge(self, edge: str) -> None:
        """Advertise that an edge router is attached, as a qdrouterd does."""
        self._change(["H" + edge], [], [0])

    def lose_edge(self, edge: str) -> None:
        """Withdraw it."""
        self._change([], ["H" + edge], [])

    def unsubscribe(self, address: str) -> None:
        """Withdraw it."""
        self._change([], ["M0" + address], [])

    def _change(self, added: list[str], removed: list[str], hints: list[int]) -> None:
        self.own_addresses = [one for one in self.own_addresses if one not in removed] + added
        self.mobile_seq += 1
        body = {"mobile_seq": self.mobile_seq, "hints": list(map(int32, hints)), "add": added, "del": removed}
        self.say("_topo/0/all/qdrouter.ma", "MAU", body)
        self.advertise()

    def _on_control(self, received: Received) -> None:
        received.settle()
        assert self.control_in is not None
        self.control_in.flow(1)
        message = decode(received.data)
        opcode = (message.properties or {}).get("opcode")
        body = message.body
        origin = str(body["id"])
        self.counts[str(opcode)] += 1
        if opcode == "HELLO":
            is_new = origin not in self.heard
            self.heard.add(origin)
            had_heard = self.has_heard_me
            self.has_heard_me = self.id in body["seen"]
            if is_new:
                self.hello()
            if self.has_heard_me and not had_heard:
                self.ls_seq += 1
                self.advertise()
        elif opcode == "RA":
            if origin not in self.known or self._sequences.get(origin, 0) < body["ls_seq"]:
                self.say(f"amqp:/_topo/0/{origin}/qdrouter", "LSR", {})
            if body["mobile_seq"] > 0 and origin not in self.addresses:
                self.say(f"amqp:/_topo/0/{origin}/qdrouter.ma", "MAR", {"have_seq": 0})
        elif opcode == "LSR":
            state = {"id": self.id, "area": "0", "ls_seq": int32(self.ls_seq), "peers": self._peers()}
            body = {"instance": int32(self.instance), "ls_seq": int32(self.ls_seq), "ls": state}
            self.say(f"amqp:/_topo/0/{origin}/qdrouter", "LSU", body)
        elif opcode == "LSU":
            self._sequences[origin] = body["ls"]["ls_seq"]
            self.known[origin] = {str(peer): int(cost) for peer, cost in body["ls"]["peers"].items()}
        elif opcode == "MAR":
            hints = [int32(3)] * len(self.own_addresses)
            body = {"mobile_seq": self.mobile_seq, "exist": self.own_addresses, "hints": hints}
            self.say(f"amqp:/_topo/0/{origin}/qdrouter.ma", "MAU", body)
        elif opcode == "MAU":
            known = self.addresses.setdefault(origin, set())
            if "exist" in body:
                known.clear()
                known |= {str(one) for one in body["exist"]}
            else:
                known |= {str(one) for one in body["add"]}
                known -= {str(one) for one in body["del"]}

    def _peers(self) -> dict[str, int]:
        return {one: int32(1) for one in sorted(self.heard)}

    # Data

    def send(
        self,
        body: object,
        to: str,
        *,
        override: str | None = None,
        settled: bool = False,
        link: int = 0,
        ingress: str | None = None,
        trace: list[str] | None = None,
        **fields: Any,
    ) -> Sent:
        """Write a message: see `encoded`."""
        encoded = self.encoded(body, to, override=override, ingress=ingress, trace=trace, **fields)
        return self.data_out[link].send(encoded, settled=settled)

    def encoded(
        self,
        body: object,
        to: str,
        *,
        override: str | None = None,
        ingress: str | None = None,
        trace: list[str] | None = None,
        **fields: Any,
    ) -> bytes:
        """A message as a router writes it, its own annotations last."""
        annotations = AnnotationDict(fields.pop("annotations", None) or {})
        if override is not None:
            annotations[symbol("x-opt-qd.to")] = override
        annotations[symbol("x-opt-qd.ingress")] = f"0/{ingress or self.id}"
        annotations[symbol("x-opt-qd.trace")] = trace or [f"0/{self.id}"]
        return bytes(Message(body=body, address=to, annotations=annotations, **fields).encode())

    def _on_data(self, received: Received) -> None:
        message = decode(received.data)
        self.received.append((message, received))
        for link in self.data_in:
            if link.link == received.delivery.link:
                link.flow(1)
        if self.on_data is not None:
            self.on_data(message, received)


def _capability(data: Data) -> str:
    """A bare symbol; what is none is told apart."""
    data.rewind()
    if data.next() is None:
        return ""
    value = data.get_object()
    return str(value) if isinstance(value, symbol) else repr(value)
