"""Inputs made of others: bytes changed, and AMQP values changed as what they are, so that sizes and counts stay right.

A value is a leaf, its bytes, or a list that begins with its constructor (0 for a described one) and goes on with what
is in it. `SECTIONS` and `FRAME` are constructors of our own: values one after the other, and a frame of which the first
item is what stands between size and performative, the last one the payload.

All chance comes from a generator that the caller has; the same one gives the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

SECTIONS: Final = -1
FRAME: Final = -2
LIST8, LIST32, MAP8, MAP32 = 0xC0, 0xD0, 0xC1, 0xD1
COMPOUND: Final = (LIST8, LIST32, MAP8, MAP32)
OTHER_WIDTH: Final = {LIST8: LIST32, LIST32: LIST8, MAP8: MAP32, MAP32: MAP8}
WIDTHS: Final = (-1, -1, -1, -1, 0, 1, 2, 4, 8, 16)
Tree = list[Any]


def text(content: bytes, code: int = 0xA1) -> bytes:
    """A string (0xA1), a symbol (0xA3) or binary (0xA0), as short as it can be."""
    if len(content) < 256:
        return bytes((code, len(content))) + content
    return bytes((code + 0x10,)) + len(content).to_bytes(4, "big") + content


NUMBERS: Final = (
    b"\x43", b"\x44", b"\x50\x00", b"\x50\x05", b"\x50\xff", b"\x51\x80", b"\x52\x00", b"\x52\x07", b"\x52\xff",
    b"\x53\x24", b"\x54\x01", b"\x54\x80", b"\x55\x7f", b"\x60\x00\x01", b"\x61\xff\xff", b"\x70\x7f\xff\xff\xff",
    b"\x70\xff\xff\xff\xff", b"\x71\x80\x00\x00\x00", b"\x80" + b"\xff" * 8, b"\x80\x00" + b"\xff" * 7,
    b"\x81\x80" + bytes(7), b"\x81\x7f" + b"\xff" * 7, b"\x83" + bytes(8), b"\x72\x7f\xc0\x00\x00",
    b"\x82\x7f\xf0" + bytes(6), b"\x73\x7f\xff\xff\xff", b"\x73\x00\x00\xd8\x00", b"\x74" + bytes(4),
    b"\x84" + bytes(8), b"\x94" + bytes(16), b"\x98" + bytes(range(16)),
)  # fmt: skip
TEXTS: Final = (
    b"", b"x", b"0/A", b"0/", b"A", b"all", b"a/b", b"amqp:/_topo/0/A/$management", b"_local/x", b"amqp://h/q", b"q.",
    b"\x00", b"a\x00b", b"\xff\xfe", b"\xc3\xa9", b"\xed\xa0\x80", b"x" * 300, b"x-opt-qd.to", b"x-opt-qd.phase",
    b"x-opt-qd.trace", b"x-opt-qd.ingress", b"x-opt-qd.stream", b"x-opt-qd.class", b"x-opt-qd.", b"x-opt-qd.zz",
    b"x-opt-amqp-mesh.egress", b"opcode", b"HELLO", b"RA", b"LSU", b"MAU", b"MAR", b"LSR", b"CIRCUITS", b"QUERY",
    b"READ", b"GET-TYPES", b"operation", b"entityType", b"attributeNames", b"offset", b"count", b"router.link", b"M0a",
    b"name", b"identity", b"type", b"key", b"id", b"pv", b"parts", b"part", b"exist", b"add", b"del", b"hints",
)  # fmt: skip
LEAVES: Final[tuple[Any, ...]] = (
    b"\x40", b"\x41", b"\x42", b"\x56\x00", b"\x56\x02", *NUMBERS, *(text(it) for it in TEXTS),
    *(text(it, 0xA3) for it in TEXTS), *(text(it, 0xA0) for it in TEXTS[:20]), b"\x45", [LIST8], [MAP8], [LIST32],
    [LIST8, b"\x40", b"\x43"], [MAP8, text(b"k"), b"\x40"], [MAP32, b"\x43", b"\x43"], [LIST8, text(b"0/A")],
    [LIST8, [LIST8, [LIST8, [MAP8, b"\x45", b"\x45"]]]], [0, b"\x53\x70", b"\x45"], [0, text(b"d", 0xA3), b"\x40"],
    b"\xe0\x06\x02\xa3\x01a\x01b", b"\xe0\x02\x00\x43", b"\xe0\x02\xff\x40", b"\xf0\0\0\0\x05\0\0\x03\xff\x45",
    b"\xb1\0\0\0\x01y", b"\xb3\0\0\0\x0bx-opt-qd.to", b"\xb0\0\0\0\0",
)  # fmt: skip
"""Values of every type, and what this program has a meaning for."""
BYTES: Final = (0, 1, 2, 0x40, 0x41, 0x43, 0x45, 0x53, 0x7F, 0x80, 0xA1, 0xA3, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0, 0xFF)


# AMQP


def parsed(data: bytes) -> Tree | None:
    """The values that stand in *data* one after the other; None when they don't fill it."""
    items: Tree = [SECTIONS]
    at = 0
    try:
        while at < len(data):
            value, at = _value(data, at)
            items.append(value)
    except IndexError:
        return None
    return items if at == len(data) else None


def _value(data: bytes, at: int) -> tuple[Any, int]:
    """The value at *at*, and where it ends."""
    code = data[at]
    if code == 0:
        descriptor, end = _value(data, at + 1)
        content, end = _value(data, end)
        return [0, descriptor, content], end
    kind = code >> 4
    if kind < 10:
        end = at + 1 + WIDTHS[kind]
        if kind < 4 or end > len(data):
            raise IndexError
        return data[at:end], end
    width = 4 if kind & 1 else 1
    end = at + 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")
    if end > len(data):
        raise IndexError
    if code not in COMPOUND:
        return data[at:end], end
    at += 1 + 2 * width
    items: Tree = [code]
    while at < end:
        item, at = _value(data, at)
        items.append(item)
    return items, end


def parsed_frames(stream: bytes) -> Tree | None:
    """The headers and frames of *stream*; None when it isn't made of them."""
    items: Tree = [SECTIONS]
    at = 0
    while at < len(stream):
        if stream.startswith(b"AMQP", at):
            items.append(stream[at : at + 8])
            at += 8
            continue
        size = int.from_bytes(stream[at : at + 4], "big")
        body = at + 8
        if size < 8:
            return None
        try:
            value, end = _value(stream[: at + size], body) if size > 8 else (b"", body)
        except IndexError:
            return None
        items.append([FRAME, stream[at + 4 : body], value, stream[end : at + size]])
        at += size
    return items


def encoded(value: Any) -> bytes:
    """The bytes of a tree."""
    if isinstance(value, bytes):
        return value
    code = value[0]
    content = b"".join([it if isinstance(it, bytes) else encoded(it) for it in value[1:]])
    if code == SECTIONS:
        return content
    if code == FRAME:
        return (len(content) + 4).to_bytes(4, "big") + content
    if code == 0:
        return b"\0" + content
    count = len(value) - 1
    if code < LIST32 and len(content) < 255 and count < 256:
        return bytes((code, len(content) + 1, count)) + content
    return bytes((code | 0xD0,)) + (len(content) + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + content


def changed(tree: Tree, chance: Callable[[], float], pool: Sequence[Any]) -> Tree:
    """*tree* with one place in it changed; what is not on the way to there is shared."""
    root = node = list(tree)
    while True:
        inner = [index for index in range(1, len(node)) if isinstance(node[index], list)]
        if not inner or chance() < 0.25:
            break
        index = inner[int(chance() * len(inner))]
        node[index] = node = list(node[index])
    _change(node, chance, pool)
    return root


def _change(node: Tree, chance: Callable[[], float], pool: Sequence[Any]) -> None:
    """Change one item of *node*, or *node* itself."""
    count = len(node) - 1
    act = int(chance() * 8)
    if not count or act == 0:
        node.insert(1 + int(chance() * (count + 1)), pool[int(chance() * len(pool))])
        return
    at = 1 + int(chance() * count)
    if act in (1, 2, 3):
        node[at] = pool[int(chance() * len(pool))]
    elif act == 4:
        del node[at]
    elif act == 5:
        node.insert(at, node[1 + int(chance() * count)])
    elif act == 6:
        other = 1 + int(chance() * count)
        node[at], node[other] = node[other], node[at]
    elif node[0] in OTHER_WIDTH:
        node[0] = OTHER_WIDTH[node[0]]
    else:
        node[at] = [LIST8, node[at]]


# Bytes


def spoilt(data: bytes, chance: Callable[[], float], tokens: Sequence[bytes], times: int) -> bytes:
    """*data* with so many small changes anywhere."""
    found = bytearray(data)
    for _ in range(times):
        size = len(found)
        at = int(chance() * (size + 1))
        act = int(chance() * 7)
        if act == 0 or at == size:
            found[at:at] = tokens[int(chance() * len(tokens))]
        elif act == 1:
            found[at] = BYTES[int(chance() * len(BYTES))]
        elif act == 2:
            found[at] ^= 1 << int(chance() * 8)
        elif act == 3:
            del found[at : at + 1 + int(chance() * chance() * 40)]
        elif act == 4:
            end = at + 1 + int(chance() * chance() * 60)
            found[at:at] = found[at:end] * (1 + int(chance() * 3))
        elif act == 5:
            token = tokens[int(chance() * len(tokens))]
            found[at : at + len(token)] = token
        else:
            found[at] = (found[at] + (1 if chance() < 0.5 else 255)) & 255
    return bytes(found)


class Mutator:
    """Makes inputs of seeds.

    Args:
        seeds: inputs; whole ones.
        tokens: what is put in here and there.
        head: bytes of an input before what is AMQP.
        parse: makes a tree of what is behind them; None where inputs are no AMQP.
        max_bytes: of an input.
    """

    def __init__(
        self,
        seeds: Sequence[bytes],
        tokens: Sequence[bytes],
        *,
        head: int = 0,
        parse: Callable[[bytes], Tree | None] | None = None,
        max_bytes: int = 4096,
    ) -> None:
        self._seeds = [seed for seed in seeds if len(seed) <= max_bytes] or [b""]
        self._tokens = tokens
        self._head = head
        self._max = max_bytes
        parts = [(seed[:head], parse(seed[head:])) for seed in self._seeds] if parse is not None else []
        self._trees = [(start, tree) for start, tree in parts if tree is not None]
        self._pool: list[Any] = [*LEAVES]
        for _, tree in self._trees:
            self._pool += [item for item in tree[1:] if isinstance(item, list)][:4]

    def next(self, rng: Random) -> bytes:
        """One more input."""
        chance = rng.random
        if self._trees and chance() < 0.7:
            start, tree = self._trees[int(chance() * len(self._trees))]
            for _ in range(1 + int(chance() * chance() * 5)):
                tree = changed(tree, chance, self._pool)
            data = bytes([int(chance() * 256) for _ in start]) + encoded(tree)
            if chance() < 0.7:
                return data[: self._max]
            return spoilt(data, chance, self._tokens, 1 + int(chance() * 2))[: self._max]
        data = self._seeds[int(chance() * len(self._seeds))]
        if chance() < 0.1:  # the beginning of one, the end of another
            other = self._seeds[int(chance() * len(self._seeds))]
            data = data[: int(chance() * len(data))] + other[int(chance() * len(other)) :]
        return spoilt(data, chance, self._tokens, 1 + int(chance() ** 3 * 8))[: self._max]
