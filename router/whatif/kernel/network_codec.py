"""A network as bytes, in one form: what travels to whoever works scenarios out."""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from router.whatif.kernel.network_arrays import Network

CODEC: Final = "zstd"


def encode_network(network: Network) -> bytes:
    """The network as bytes: the length of a JSON head, the head, and the arrays one after the other, compressed."""
    numbers: dict[str, int] = {}
    texts: dict[str, list[str]] = {}
    arrays: dict[str, tuple[str, list[int]]] = {}
    body = bytearray()
    for field in attrs.fields(Network):
        value = getattr(network, field.name)
        if isinstance(value, np.ndarray):
            plain = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
            arrays[field.name] = (plain.dtype.str, list(plain.shape))
            body += plain.tobytes()
        elif isinstance(value, int):
            numbers[field.name] = value
        else:
            texts[field.name] = list(value)
    head = json.dumps({"numbers": numbers, "texts": texts, "arrays": arrays, "bytes": len(body)}).encode()
    whole = len(head).to_bytes(8, "little") + head + body
    return len(whole).to_bytes(8, "little") + bytes(pa.compress(whole, codec=CODEC, asbytes=True))


def decode_network(data: bytes) -> Network:
    """The network that `encode_network` made bytes of."""
    size = int.from_bytes(data[:8], "little")
    whole = pa.decompress(data[8:], decompressed_size=size, codec=CODEC, asbytes=True)
    start = 8 + int.from_bytes(whole[:8], "little")
    head = json.loads(whole[8:start])
    parts: dict[str, Any] = {name: tuple(value) for name, value in head["texts"].items()} | head["numbers"]
    for name, (kind, shape) in head["arrays"].items():
        count = int(np.prod(shape, dtype=np.int64))
        # A copy, since the bytes can't be written to, and to memory that is aligned.
        parts[name] = np.frombuffer(whole, dtype=kind, count=count, offset=start).reshape(shape).copy()
        start += count * np.dtype(kind).itemsize
    return Network(**parts)
