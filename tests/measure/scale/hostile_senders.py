"""What a client does to keep callers from the very server that they call: it begins messages, and takes its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.measure.scale import hostile

if TYPE_CHECKING:
    from tests.measure.scale.hostile import Connect

CALLED: Final = "openstack.org/om/rpc/anycast/scale/called"
"""Address of the callers' server."""
HEAD: Final = b"\0\x53\x75\xb0\x7f\xff\xff\xff"
"""Begin of a message of which two gigabytes are to come."""
PART: Final = bytes(32_000)


def beginnings(connect: Connect) -> None:
    """A hundred connections that begin a message to the server, and go on with a few bytes at a time."""
    clients = [connect(f"hostile {number}") for number in range(100)]
    for client in clients:
        client.write(hostile.begin() + hostile.sender(0, CALLED))
        client.rest(0.02)
        client.write(hostile.transfer(0, 0, HEAD, more=True))
    while True:
        for client in clients:
            client.rest(0.02)
            client.write(hostile.transfer(0, 0, PART[:1000], more=True))


def slow_streams(connect: Connect) -> None:
    """Messages of more than is held until it is whole, of which the rest comes at four kilobytes a second."""
    client = connect("hostile")
    client.write(hostile.begin() + b"".join(hostile.sender(handle, CALLED) for handle in range(2)))
    client.rest(0.05)
    for part in range(530):
        for handle in range(2):
            client.write(hostile.transfer(handle, handle, PART if part else HEAD, more=True))
    while True:
        for handle in range(2):
            client.write(hostile.transfer(handle, handle, PART[:2000], more=True))
        client.rest(1)


KINDS: tuple[Callable[[Connect], None], ...] = (beginnings, slow_streams)
