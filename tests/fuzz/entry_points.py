"""Every entry point that takes bytes from outside, each with what must hold whatever they are.

`check` of an entry point takes any bytes, and raises when a promise is broken: an error that isn't documented comes
out, compiled and interpreted modules don't agree, what was read and written again reads otherwise. The first bytes
choose arguments and which of the comparisons is made, so that one run of `check` is fast.

The same functions are called by `test_entry_points.py` (short, always the same), by `volume.py` (millions) and by
`guided.py` (by coverage).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import attrs
import proton
from proton import Array, Described, symbol, ulong, ushort

from mesh_config.models import AddressSettings, Treatment
from router import speed
from router.binding.message import MalformedMessage, Message, decode_message, encode_message
from router.core.addressing import address
from router.core.addressing.treatment_table import TreatmentTable
from router.core.errors import DecodeError
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import KINDS, mobile_address, mobile_key
from router.dataplane import annotation_writer, section_scanner, section_tracker
from router.dataplane.scan_result import InvalidAnnotation, Scan
from router.engine import message_codec
from router.guard import frame_guard
from router.guard.flow_answers import flow_without_credit
from router.management.node import ManagementNode
from router.management.rabbitmq_queue_lookup import AddressAsQueue, answer_queue_request, refuse_queue_request
from tests.fuzz import mutation, twins
from tests.helpers.frames import AMQP_HEADER, SASL_HEADER, source, target, write
from tests.helpers.sections import NULL, binary, section, string
from tests.management.fakes import FakeView, answer
from tests.wire import vectors

IS_COMPILED: Final = speed.SPEED == speed.COMPILED
MAX_VALUES: Final = 1000
"""Of a request to `$management`, as the engine has it."""
ME: Final = RouterId("A")


@attrs.frozen(kw_only=True)
class EntryPoint:
    """A place where bytes come in."""

    name: str
    check: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    modules: tuple[str, ...]
    """Of which the coverage counts."""
    tokens: tuple[bytes, ...] = ()
    head: int = 0
    """Bytes at the beginning of an input that choose what is done."""
    parse: Callable[[bytes], mutation.Tree | None] | None = None
    max_bytes: int = 4096
    is_file: bool = False

    def mutator(self, more: Iterable[bytes] = ()) -> mutation.Mutator:
        """Makes inputs of the seeds, and of *more*."""
        return mutation.Mutator(
            [*self.seeds(), *more],
            self.tokens or (b"\0",),
            head=self.head,
            parse=self.parse,
            max_bytes=self.max_bytes,
        )


AMQP_TOKENS: Final = tuple(mutation.encoded(it) for it in mutation.LEAVES)


# Leading sections of messages that are passed on


def check_scan(data: bytes) -> Scan | None:
    """`section_scanner.scan`, `annotation_writer.annotate` and `annotation_writer.strip`; the first byte is
    arguments and which comparison."""
    flags, message = data[:1], data[1:]
    bits = flags[0] if flags else 0
    options = {"stop_at_annotations": bits & 2 > 0, "from_client": bits & 4 > 0}
    found, error = _scan(section_scanner, message, complete=bits & 1 > 0, **options)
    act = bits >> 3 & 3
    if act == 0:
        _compare_scans(message, found, error, complete=bits & 1 > 0, **options)
    elif act == 1:
        _cut_scan(message, (len(message) * (bits >> 5)) // 8, found, error, options)
    elif found is not None and act == 2:
        _annotate(message, found, bits >> 5)
    elif found is not None:
        _scan_beside_proton(message, found, options)
    return found


def _scan(module: Any, message: Any, *, complete: bool, **options: bool) -> tuple[Any, str]:
    """What it returns, or the name and text of the error."""
    try:
        return module.scan(message, complete, **options), ""
    except (DecodeError, InvalidAnnotation) as error:
        return None, f"{type(error).__name__}: {error}"
    except Exception as error:
        if type(error).__name__ != "InvalidAnnotation":  # of the interpreted twin it is another class
            raise
        return None, f"{type(error).__name__}: {error}"


def _fields(found: Any) -> dict[str, object] | None:
    return None if found is None else {name: getattr(found, name) for name in Scan.__slots__}


def _compare_scans(message: bytes, found: Scan | None, error: str, **options: bool) -> None:
    """Other kinds of buffer, and the interpreted twin, give the same."""
    for buffer in (memoryview(message), bytearray(message)):
        other, other_error = _scan(section_scanner, buffer, **options)
        assert (_fields(other), other_error) == (_fields(found), error)
    if IS_COMPILED:
        twin, twin_error = _scan(twins.interpreted("router.dataplane.section_scanner"), message, **options)
        assert (_fields(twin), twin_error) == (_fields(found), error), "compiled and interpreted"


def _cut_scan(message: bytes, cut: int, found: Scan | None, error: str, options: Mapping[str, bool]) -> None:
    """What is said of the beginning of a message stays true when the rest comes."""
    early, early_error = _scan(section_scanner, message[:cut], complete=False, **options)
    if early is None and not early_error:
        return
    assert bool(early_error) == bool(error), "a fault that the whole message doesn't have, or none"
    assert _fields(early) == _fields(found)


def _annotate(message: bytes, found: Scan, number: int) -> None:
    """What is written for the next router is read back, and nothing else of the message has changed."""
    to = (None, "q", "é" * 200, "a")[number & 3]
    trace = ("A", "b" * 270, "C")[: number & 3]
    egress = "E" if number & 4 else None
    phase = 9 if number & 1 and to is not None else 0
    head = annotation_writer.annotate(message, found, to, ME, trace, phase, egress)
    assert head == annotation_writer.annotate(memoryview(message), found, to, ME, trace, phase, egress)
    rest = message[found.rest_offset :]
    again, error = _scan(section_scanner, head + rest, complete=False)
    if again is None:  # longer than may be, or not whole
        assert not error or "beyond" in error or (found.properties_end == 0 and rest), error
        return
    assert (again.to_override, again.ingress, again.trace, again.phase) == (to, ME, trace, phase)
    assert (again.egress, again.stream) == (egress, found.stream)
    assert (again.priority, again.ttl_ms) == (found.priority, found.ttl_ms)
    assert again.user_count == found.user_count
    users = message[found.user_start : found.user_end]
    assert (head + rest)[again.user_start : again.user_end] == users
    if found.properties_end:
        assert again.to == found.to
    bare = annotation_writer.strip(message, found)
    if found.has_router_annotations:  # else the section stays as it was, in whatever width
        assert annotation_writer.strip(head + rest, again) == bare
    naked, error = _scan(section_scanner, bare + rest, complete=False)
    assert naked is None or not naked.has_router_annotations
    assert not error or (found.properties_end == 0 and rest), error


def _scan_beside_proton(message: bytes, found: Scan, options: Mapping[str, bool]) -> None:
    """What proton reads of the same sections is the same."""
    try:
        whole = decode_message(message[: found.properties_end or found.rest_offset])
    except MalformedMessage:
        return  # the section_scanner steps over what it needs not
    assert found.priority == min(4 if whole.priority is None else whole.priority, 9)
    assert found.ttl_ms == whole.ttl_ms
    if found.properties_end:
        assert found.to == whole.to or type(whole.to) is not str, "only a string is routed"
    if options["from_client"] or not found.has_router_annotations:
        return
    said = {str(key): value for key, value in whole.annotations.items() if isinstance(key, symbol)}
    assert found.to_override == said.get("x-opt-qd.to")
    assert found.egress == said.get("x-opt-amqp-mesh.egress")


def _scan_seeds() -> list[bytes]:
    files = [*vectors.files("data"), *vectors.files("control")[:6]]
    bodies = [vectors.load(file).data for file in files]
    return [bytes((number * 37 & 255,)) + body[:600] for number, body in enumerate(bodies)]


# Messages whose `user-id` or `to` policy goes by


def check_order(data: bytes) -> bool | None:
    """`section_tracker`: the first byte is the size of pieces. Whatever it takes, proton finds no second user in it."""
    step, message = (data[0] if data else 0) or 1, data[1:]
    error = _order_error(section_tracker, message, step)
    assert _order_error(section_tracker, message, len(message) or 1) == error, "whole and in pieces"
    if IS_COMPILED:
        twin = twins.interpreted("router.dataplane.section_tracker")
        assert _order_error(twin, message, step) == error, "compiled and interpreted"
    found, refused = _scan(section_scanner, message, complete=True, from_client=True)
    if error or refused:
        return None
    read = proton.Message()
    try:
        read.decode(message)
    except Exception:  # noqa: BLE001  whatever it is
        return True  # python-proton makes nothing of it, often for reasons of Python's own
    assert read.user_id in (b"", found.user_id)
    if found.to is not None:
        assert read.address in (None, found.to.partition("\0")[0]), "python-proton reads text up to a NUL"
    return True


def _order_error(module: Any, message: bytes, step: int) -> str:
    """What is wrong with the sections of a message in pieces; empty when nothing is."""
    order = module.SectionTracker()
    try:
        for at in range(0, len(message) or 1, step):
            order.follow(message[at : at + step], at + step >= len(message))
    except DecodeError as error:
        return str(error)
    return ""


def _order_seeds() -> list[bytes]:
    made = proton.Message(body=[1, {"a": "b"}], address="q", properties={"a": 1}, user_id=b"me")
    plain = section(0x73, NULL, binary(b"me"), string("q"))
    bodies = [
        bytes(made.encode()), plain + b"\0\x53\x75" + binary(b"x"), plain + plain, section(0x73, NULL, more=plain),
        plain + b"\0\x53\x77\xe0\x04\x02\x50\x01\x02", section(0x74, form=0xC1) + b"\0\x53\x77\x40" + plain,
    ]  # fmt: skip
    return [bytes((number * 37 + 1 & 255,)) + body for number, body in enumerate(bodies)] + _scan_seeds()


# Messages to the router itself


def check_message(data: bytes) -> Message | None:
    """`decode_message` and `encode_message`: what can be written reads as what it was."""
    try:
        found = decode_message(data)
    except MalformedMessage:
        return None
    if _is_writable(found):
        again = decode_message(encode_message(found))
        assert _same(attrs_of(again), attrs_of(found)), "read, written, read"
    return found


def attrs_of(message: Message) -> dict[str, Any]:
    """The fields of a message."""
    return {name: getattr(message, name) for name in Message.__dataclass_fields__}


def _is_writable(message: Message) -> bool:
    """Whether all that it has can stand in a message that this program makes."""
    numbers = ((message.priority, 8), (message.ttl_ms, 32), (message.delivery_count, 32))
    if any(value is not None and not 0 <= value < 1 << bits for value, bits in numbers):
        return False
    ids = (message.message_id, message.correlation_id)
    if any(isinstance(value, int) and not 0 <= value < 1 << 64 for value in ids):
        return False
    plain = (str, int, bytes, bool, type(None), float)
    if not all(isinstance(key, str) and key.isascii() for key in message.annotations):  # they are written as symbols
        return False
    if not all(isinstance(value, plain) for value in message.annotations.values()):
        return False
    if not all(isinstance(key, plain) for key in message.application_properties):
        return False
    return _is_plain([*message.application_properties.values(), message.body])


def _is_plain(value: object) -> bool:
    """Whether it has no array and nothing described, which `encode_message` need not write."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return not isinstance(value, Array | Described)


def _same(one: Any, other: Any) -> bool:
    """Equal, NaN being equal to itself, and each value of the other's type."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(_same(a[0], b[0]) and _same(a[1], b[1]) for a, b in pairs)
    return bool(one == other)


def _message_seeds() -> list[bytes]:
    return _recorded("control", 700) + _recorded("mgmt", 700)[:40]


def _recorded(folder: str, most: int) -> list[bytes]:
    """The recorded messages of a folder that have no more bytes."""
    files = [vectors.FOLDER / file for file in vectors.files(folder)]
    return [data for file in files if len(data := file.read_bytes()) <= most]


# Control messages of neighbors


def check_control(data: bytes) -> message_codec.ControlEnvelope | None:
    """`decode_control` and `encode_control`: what is read can be passed on, and reads the same at the next router."""
    try:
        found = message_codec.decode_control(data)
    except DecodeError:
        return None
    if found.message.opcode in KINDS and found.ingress is not None:
        again = message_codec.decode_control(
            message_codec.encode_control(found.to, found.message, found.ingress, found.trace)
        )
        assert again == found, "passed on"
    return found


def _control_seeds() -> list[bytes]:
    circuits = {
        "id": "B", "pv": 1, "area": "0", "weights": {"c1": 3, "c2": 0}, "closed": ["c3"], "loads": {"c1": [5, 2]}
    }  # fmt: skip
    parts = {"id": "B", "pv": 1, "area": "0", "mobile_seq": 4, "exist": ["M0a"], "hints": [1], "part": 1, "parts": 3}
    asked = {"id": "B", "pv": 1, "area": "0", "have_seq": 4, "parts": 4, "part": 2, "part_seq": 3}
    own = [("CIRCUITS", circuits), ("MAU", parts), ("MAR", asked)]
    made = [
        encode_message(Message(
            to="_local/x", annotations={"x-opt-qd.ingress": "0/B", "x-opt-qd.trace": ["0/B"]},
            application_properties={"opcode": opcode}, body=body,
        ))
        for opcode, body in own
    ]  # fmt: skip
    return _recorded("control", 900) + made


# Requests to `$management`


@cache
def _node() -> ManagementNode:
    return ManagementNode(FakeView(2))


def check_management(data: bytes) -> Message | None:
    """A request as it comes in: there is a reply or none, and every reply can be written and read."""
    try:
        request = message_codec.decode_message(data, max_values=MAX_VALUES)
    except message_codec.UnreadableMessage as error:
        request = error.read or Message()
    reply = answer(_node(), request)
    if reply is None:
        return None
    assert reply.to == request.reply_to
    written = message_codec.decode_message(message_codec.encode_message(reply))
    status = written.application_properties["statusCode"]
    assert status in (200, 400, 404, 501), status
    assert written.correlation_id == reply.correlation_id
    return reply


def _management_seeds() -> list[bytes]:
    made = []
    for operation, more, body in (
        ("QUERY", {"entityType": "router.link", "count": 2, "offset": 1}, {"attributeNames": ["name", "identity"]}),
        ("QUERY", {"entityType": "amqp-mesh.credit", "key": "orders"}, {}),
        ("READ", {"type": "org.apache.qpid.dispatch.router.address", "name": "name-1"}, None),
        ("READ", {"type": "listener", "identity": "1"}, {}),
        ("GET-TYPES", {"type": "org.amqp.management", "name": "self"}, {}),
        ("GET-MGMT-NODES", {}, None),
        ("UPDATE", {"type": "router.link", "identity": "1"}, {"adminStatus": "disabled"}),
    ):
        properties = {"operation": operation, **more}
        message = Message(reply_to="amqp:/_topo/0/A/temp.1", correlation_id=7, application_properties=properties)
        message.body = body
        made.append(encode_message(message))
    return made + [data for data in _recorded("mgmt", 500) if b"operation" in data]


# Requests about queues


def check_queue_request(data: bytes) -> Message:
    """A request as it comes in by a pair of links: there is an answer that can be written and read, whatever it is."""
    try:
        request = message_codec.decode_message(data, max_values=MAX_VALUES, is_body_anywhere=True)
    except message_codec.UnreadableMessage as error:
        answer = refuse_queue_request(error.read or Message(), str(error))
    else:
        answer = answer_queue_request(request, _find_queue)
    written = message_codec.decode_message(message_codec.encode_message(answer))
    assert written.subject in ("200", "400", "404", "405"), written.subject
    assert isinstance(written.body, dict if written.subject == "200" else str)
    assert written.correlation_id == answer.correlation_id
    return answer


def _find_queue(name: str) -> AddressAsQueue | None:
    return AddressAsQueue(receivers=1, waiting=0, routers=("A",), is_exclusive=False) if name == "orders" else None


def _queue_request_seeds() -> list[bytes]:
    asked = (
        ("GET", "/queues/orders"),
        ("GET", "/queues/%c3%a9%2F"),
        ("PUT", "/exchanges/x"),
        ("GET", "/bindings?src=x"),
    )
    made = [encode_message(Message(subject=it, to=to, reply_to="$me", message_id="1")) for it, to in asked]
    # as RabbitMQ's Python client writes it
    return [*made, b"\x00Sw@\x00Ss\xc0\x1a\x05\xa1\x01x@\xa1\t/queues/x\xa1\x03GET\xa1\x03$me"]


# Frames


def check_guard(data: bytes) -> object:
    """`FrameGuard`: a verdict and nothing else, the same however the bytes are cut, compiled and interpreted.

    The first byte is arguments and what was said before, the second one where to cut.
    """
    bits, cuts, stream = (*data[:2], 0, 0)[0], (*data[:2], 0, 0)[1], data[2:]
    whole = _verdict(frame_guard, stream, bits, 0)
    if bits & 16:
        other = _verdict(frame_guard, stream, bits, cuts | 1)
        assert other == whole, "cut into other pieces"
    elif IS_COMPILED:
        twin = _verdict(twins.interpreted("router.guard.frame_guard"), stream, bits, cuts)
        assert twin == whole, "compiled and interpreted"
    return whole


def _verdict(module: Any, stream: bytes, bits: int, cuts: int) -> tuple[object, ...]:
    """What a guard says of *stream* in pieces that *cuts* chooses, 0: in one."""
    guard = module.FrameGuard(
        is_server=bits & 1 > 0, max_frame_bytes=512 if bits & 2 else 4096, channel_max=9, handle_max=99
    )
    if bits & 4:
        shake = guard.check(_greeting())
        assert shake == len(_greeting()), guard.description
        for own in _pieces(_own_frames(bits), cuts):
            guard.own.show(own)
    buffer = b""
    start = 0  # of what is in the buffer, in the stream
    corrections = []
    for piece in _pieces(stream, cuts):
        buffer += piece
        is_part = True
        while is_part:
            passed = guard.check(buffer)
            assert 0 <= passed <= len(buffer)
            corrections += [(start + at, content) for at, content in guard.corrections]
            if guard.is_broken:
                assert guard.condition
                assert guard.description
                assert guard.check(b"AMQP") == 0, "nothing is taken behind a violation"
                place = start + passed
                return place, guard.condition, guard.description, guard.is_header_wrong, corrections, guard.answers()
            is_part = passed < len(buffer)
            assert not is_part or (passed and not guard.kept), "a part ends with a frame"
            assert 0 <= guard.kept <= passed
            start += passed - guard.kept
            buffer = buffer[passed - guard.kept :]
    assert all(at + len(content) <= start for at, content in corrections), "of whole frames only"
    without = flow_without_credit(guard.peer_sessions, guard.receivers, b"link", 5)
    defaults = [link.default_outcome for at in guard.peer_sessions.values() for link in at.links.values()]
    return start, "", "", False, corrections, guard.answers(), without, defaults


def _pieces(stream: bytes, cuts: int) -> Iterator[bytes]:
    """The stream in pieces of sizes that *cuts* gives; whole for 0."""
    if not cuts:
        yield stream
        return
    at = 0
    while at < len(stream):
        cuts = cuts * 1103515245 + 12345 & 0x7FFFFFFF
        size = 1 + (cuts >> 16) % (3 if cuts & 0x300 else 60)
        yield stream[at : at + size]
        at += size


@cache
def _greeting() -> bytes:
    """What the peer has said before: a session on channel 0 with a receiver at handle 0 and a sender at 1."""
    return b"".join((
        AMQP_HEADER, write(0x10, ["peer"]), write(0x11, [None, 7, 100, 100]),
        write(0x12, ["link", 0, True, None, None, source("a"), target("a"), None, None, 0]),
        write(0x12, ["back", 1, False, None, None, source("a"), target("a"), None, None, 0]),
    ))  # fmt: skip


@cache
def _own_frames(bits: int) -> bytes:
    """What this side has said: an answer to that session, and one of its own."""
    answer = write(0x11, [ushort(0), 3, 100, 100])
    links = [
        write(0x12, ["link", 5, False, None, None, source("a"), target("a"), None, None, 2]),
        write(0x12, ["back", 6, True, None, None, source("a"), target("a")]),
        write(0x13, [7, 50, 3, 100, 6, 0, 10, None, False]),
        write(0x14, [5, 3, b"tag", 0, True], payload=b"x" * 200),
        write(0x14, [5, 4, b"tag", 0], payload=b"x"),
    ]
    first = write(0x11, [None, 0, 10, 10], channel=1)
    return b"".join([AMQP_HEADER, write(0x10, ["me"]), *([answer, *links] if bits & 8 else []), first])


RELEASED: Final = Described(symbol("amqp:released:list"), [])


def _guard_seeds() -> list[bytes]:
    data = b"\x00Sw\xa1\x01x"
    body = [
        write(0x14, [1, 7, b"t", 0], payload=data),
        write(0x14, [1, 8, b"t", 0, True], payload=data),
        write(0x13, [3, 100, 9, 100, 0, 2, 10, None, False, True]),
        write(0x13, [3, 100, 9, 100, None, None, None, None, None, True]),
        write(0x13, [3, 100, 9, 100, 0, 2, 2**32 - 1]),
        write(0x15, [True, 0, 1, True]),
        write(0x15, [True, 0, 1, True, Described(symbol("amqp:accepted:list"), [])]),
        write(0x15, [True, 0, None, None, Described(ulong(0x25), [Described(ulong(0x1D), ["my:no", "x"])])]),
        write(0x15, [True, 0, 1, True, Described(symbol("amqp:modified:list"), [True, None, {"k": "v" * 250}])]),
        write(0x11, [ushort(1), 0, 10, 10], channel=2),
        write(0x12, ["a\0b", 2, True]),
        write(0x12, ["third", 2, True, None, None, source("a\0b"), target("a"), None, None, 2**32 - 1], channel=2),
        write(0x12, ["far", 99, False, None, None, source("a"), target("a"), {symbol("k"): 1}, None, 0], channel=2),
        write(0x12, ["own", 3, True, None, None, Described(ulong(0x28), ["a", *[None] * 7, RELEASED])], channel=2),
        write(0x14, [99, 0, b"t", 0, True], payload=data, channel=2),
        write(0x16, [2, True], channel=2),
        write(0x17, [], channel=2),
        b"\0\0\0\x08\x02\0\0\0",
        write(0x18, []),
    ]
    start = [AMQP_HEADER, write(0x10, ["peer", "host", 4096, ushort(9)]), write(0x11, [None, 7, 100, 100])]
    sasl = [SASL_HEADER, write(0x41, [symbol("ANONYMOUS")], kind=1), *start]
    answered = [SASL_HEADER, write(0x40, [symbol("ANONYMOUS")], kind=1), write(0x44, [0], kind=1), *start]
    recorded = [vectors.load(file).data for file in vectors.files("frames")]
    short = [stream for stream in recorded if len(stream) < 2000]
    seeds = [bytes((number * 29 & 255, number)) + stream for number, stream in enumerate(short)]
    for bits in (4, 5, 12, 13, 20, 28):
        seeds += [bytes((bits, 3)) + b"".join(body[at:]) for at in range(0, len(body), 2)]
    for bits, stream in ((1, sasl), (0, answered), (0, start), (17, sasl), (16, answered), (19, start)):
        seeds.append(bytes((bits, 7)) + b"".join(stream))
    return seeds


# Addresses


@cache
def _table() -> TreatmentTable:
    entries = [("a/*/c", Treatment.CLOSEST), ("a.#", Treatment.MULTICAST), ("#/end", Treatment.BALANCED), ("*", None)]
    settings = [AddressSettings(pattern=text, treatment=it or Treatment.CLOSEST) for text, it in entries]
    return TreatmentTable([*settings, AddressSettings(prefix="a.b", treatment=Treatment.BALANCED)], Treatment.CLOSEST)


def check_address(data: bytes) -> object:
    """What a peer calls an address, in every function that reads one."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None  # refused before
    plain = address.normalise(text)
    assert address.normalise(plain) == plain, "its own normal form"
    found = address.parse_address(text, me=ME)
    assert found == address.parse_address(plain, me=ME)
    assert address.is_reserved(text) == address.is_reserved(plain)
    if found.kind is address.AddressKind.ROUTER:
        assert found.router is not None
        there = address.parse_address(text, me=found.router)
        assert (there.kind, there.text) == (address.AddressKind.LOCAL, found.text), "the same at that router"
    inside = address.with_vhost(text, "host")
    assert address.with_vhost(text, "") == text
    assert address.normalise(inside) == plain or inside == f"host/{plain}"
    shown = address.masked(found.text)
    assert shown == found.text or (shown.endswith("*") and found.text.startswith(shown[:-1]))
    owner = address.volatile_owner(plain)
    assert address.is_volatile_reply(text) == (owner is not None)
    rule = _table().rule(found.text)
    assert isinstance(rule.treatment, Treatment)
    assert rule.distance >= 0
    if found.text:
        assert mobile_address(mobile_key(found.text)) == found.text
    address.is_private(found)
    address.is_reserved_mobile(found.text)
    return found


def _address_seeds() -> list[bytes]:
    made: Sequence[str] = (
        "q", "amqp://host:5672/q/", "amqps://h", "amqp:/_topo/0/B/$management", "_topo/0/all/qdrouter", "_topo/1/B/x",
        "_local/qdhello", "_edge/E/x", "/a/b.c.", "a.b.end", "_$temp.abcdefghijklmnop",
        "amq.rabbitmq.reply-to.A.abcdefgh",
        "_topo/0/A/temp.abcdefghijklmn", "host/_$temp.abcdefgh", "$management", "é/ü", "amqp:/amqp://x/amqps:/y",
        "_topo/all/A/x",
    )  # fmt: skip
    return [text.encode() for text in made]


SCANNER: Final = ("router.dataplane.section_scanner", "router.dataplane.annotation_writer",
                  "router.dataplane.annotation_reader", "router.dataplane.value_skipping")  # fmt: skip
GUARD: Final = ("router.guard.frame_guard", "router.guard.endpoint_guard", "router.guard.sent_frame_tracker",
                "router.guard.value_check", "router.guard.endpoints",
                "router.guard.outcome_rewriting", "router.guard.performatives")  # fmt: skip
ADDRESS_TOKENS: Final = tuple(
    it.encode()
    for it in ("amqp:/", "amqps://", "amqp://", "/", ".", "_topo/0/", "_topo/", "0/", "all/", "A/", "_local/", "_edge/",
               "$", "_", "_$temp.", "temp.", "amq.rabbitmq.reply-to.", "qdrouter", "a", "b", "c", "end", "é", "\0",
               "#", "*")
)  # fmt: skip

ENTRY_POINTS: Final[Mapping[str, EntryPoint]] = {
    it.name: it
    for it in (
        EntryPoint(
            name="sections", check=check_scan, seeds=_scan_seeds, modules=SCANNER, tokens=AMQP_TOKENS, head=1,
            parse=mutation.parsed,
        ),
        EntryPoint(
            name="order", check=check_order, seeds=_order_seeds, modules=("router.dataplane.section_tracker",),
            tokens=AMQP_TOKENS, head=1, parse=mutation.parsed,
        ),
        EntryPoint(
            name="messages", check=check_message, seeds=_message_seeds, modules=("router.binding.message",),
            tokens=AMQP_TOKENS, parse=mutation.parsed,
        ),
        EntryPoint(
            name="control", check=check_control, seeds=_control_seeds,
            modules=("router.engine.message_codec", "router.engine.control_value_codec",
                     "router.core.linkstate.messages", "router.binding.message"),
            tokens=AMQP_TOKENS, parse=mutation.parsed,
        ),
        EntryPoint(
            name="management", check=check_management, seeds=_management_seeds,
            modules=("router.management.node", "router.management.schema", "router.binding.message"),
            tokens=AMQP_TOKENS, parse=mutation.parsed,
        ),
        EntryPoint(
            name="queues", check=check_queue_request, seeds=_queue_request_seeds,
            modules=("router.management.rabbitmq_queue_lookup", "router.binding.message"),
            tokens=(*AMQP_TOKENS, b"/queues/", b"%2F", b"$me"), parse=mutation.parsed,
        ),
        EntryPoint(
            name="frames", check=check_guard, seeds=_guard_seeds, modules=GUARD, tokens=AMQP_TOKENS, head=2,
            parse=mutation.parsed_frames,
        ),
        EntryPoint(
            name="addresses", check=check_address, seeds=_address_seeds,
            modules=("router.core.addressing.address", "router.core.addressing.treatment_table"), tokens=ADDRESS_TOKENS,
            max_bytes=300,
        ),
    )
}  # fmt: skip
