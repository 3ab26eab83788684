"""Proton's C functions, called on bare handles: the narrow interface that the data plane and the engine work on.

python-qpid-proton's own module (`cproton_ffi`) exports the whole C library; `library.py` opens that very library a
second time through cffi, so that both sides work on the same objects and no second copy of proton exists. Its own
`lib` lacks what a router needs (`pn_transport_tail`, session windows).

Which functions there are stands in `cdef.py`, once; `generate.py` writes the rest of their declarations from there.

A handle is the address of a C object of proton, a number; 0 is none. Nothing is checked: a handle that was freed must
not be used again. The functions keep proton's names, so that proton's documentation is theirs. Compiled modules
call them without cffi, as `proton_functions.pxd` has it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any, Final

import cproton_ffi

from router.binding.generated_functions import *  # noqa: F403 - all of them
from router.binding.library import ffi, lib

Handle = int
"""The address of a C object of proton."""

NULL: Final = 0

# Event types (proton's `pn_event_type_t`), the ones that a router handles.
CONNECTION_REMOTE_OPEN: Final = cproton_ffi.lib.PN_CONNECTION_REMOTE_OPEN
CONNECTION_REMOTE_CLOSE: Final = cproton_ffi.lib.PN_CONNECTION_REMOTE_CLOSE
SESSION_REMOTE_OPEN: Final = cproton_ffi.lib.PN_SESSION_REMOTE_OPEN
SESSION_REMOTE_CLOSE: Final = cproton_ffi.lib.PN_SESSION_REMOTE_CLOSE
SESSION_FINAL: Final = cproton_ffi.lib.PN_SESSION_FINAL
LINK_REMOTE_OPEN: Final = cproton_ffi.lib.PN_LINK_REMOTE_OPEN
LINK_REMOTE_CLOSE: Final = cproton_ffi.lib.PN_LINK_REMOTE_CLOSE
LINK_REMOTE_DETACH: Final = cproton_ffi.lib.PN_LINK_REMOTE_DETACH
LINK_FLOW: Final = cproton_ffi.lib.PN_LINK_FLOW
DELIVERY: Final = cproton_ffi.lib.PN_DELIVERY
TRANSPORT: Final = cproton_ffi.lib.PN_TRANSPORT
TRANSPORT_ERROR: Final = cproton_ffi.lib.PN_TRANSPORT_ERROR
TRANSPORT_CLOSED: Final = cproton_ffi.lib.PN_TRANSPORT_CLOSED

# Endpoint states, bits of `pn_state_t`.
LOCAL_UNINIT: Final = cproton_ffi.lib.PN_LOCAL_UNINIT
LOCAL_ACTIVE: Final = cproton_ffi.lib.PN_LOCAL_ACTIVE
LOCAL_CLOSED: Final = cproton_ffi.lib.PN_LOCAL_CLOSED
REMOTE_UNINIT: Final = cproton_ffi.lib.PN_REMOTE_UNINIT
REMOTE_ACTIVE: Final = cproton_ffi.lib.PN_REMOTE_ACTIVE
REMOTE_CLOSED: Final = cproton_ffi.lib.PN_REMOTE_CLOSED

# Delivery states (AMQP part 3, 3.4: descriptors 0x23 to 0x27).
RECEIVED: Final = 0x23
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
RELEASED: Final = 0x26
MODIFIED: Final = 0x27

# Terminus types, settle modes, expiry.
UNSPECIFIED: Final = cproton_ffi.lib.PN_UNSPECIFIED
SOURCE: Final = cproton_ffi.lib.PN_SOURCE
TARGET: Final = cproton_ffi.lib.PN_TARGET
COORDINATOR: Final = cproton_ffi.lib.PN_COORDINATOR
SND_UNSETTLED: Final = cproton_ffi.lib.PN_SND_UNSETTLED
SND_SETTLED: Final = cproton_ffi.lib.PN_SND_SETTLED
SND_MIXED: Final = cproton_ffi.lib.PN_SND_MIXED
EXPIRE_WITH_LINK: Final = cproton_ffi.lib.PN_EXPIRE_WITH_LINK
NONDURABLE: Final = cproton_ffi.lib.PN_NONDURABLE
DIST_MODE_COPY: Final = cproton_ffi.lib.PN_DIST_MODE_COPY
DIST_MODE_MOVE: Final = cproton_ffi.lib.PN_DIST_MODE_MOVE

TRACE_FRAMES: Final = cproton_ffi.lib.PN_TRACE_FRM


def text(chars: Any) -> str | None:
    """A C string of proton as text; None for NULL. Bytes that are no UTF-8 are replaced."""
    if chars == ffi.NULL:
        return None
    raw: bytes = ffi.string(chars)
    return raw.decode("utf-8", "replace")


def strict_text(chars: Any) -> str | None:
    """A C string of proton as text; None for NULL.

    Raises:
        UnicodeDecodeError: it is no UTF-8.
    """
    return None if chars == ffi.NULL else str(ffi.string(chars).decode("utf-8"))


def memory_at(address: int, size: int) -> memoryview:
    """Return *size* bytes of proton's memory, writable."""
    return memoryview(ffi.buffer(ffi.cast("char *", address), size))


def new_delivery(link: Handle, number: int) -> Handle:
    """A delivery on a link on which nothing is half sent, with *number* as its tag."""
    _tag_bytes[0:8] = number.to_bytes(8, "little")
    delivery: Handle = lib.pn_delivery(link, _tag[0])
    return delivery


def new_tagged_delivery(link: Handle, tag: bytes) -> Handle:
    """Make a delivery whose tag is *tag*, at most 32 bytes."""
    start = ffi.from_buffer(tag)
    delivery: Handle = lib.pn_delivery(link, ffi.new("pn_delivery_tag_t *", (len(tag), start))[0])
    return delivery


def tag_of_size(delivery: Handle, size: int) -> bytes | None:
    """The tag of a delivery if it has *size* bytes."""
    tag = lib.pn_delivery_tag(delivery)
    return bytes(ffi.buffer(tag.start, size)) if tag.size == size else None


def send_part(link: Handle, data: bytes, at: int, size: int) -> int:
    """Give the link's current delivery *size* bytes of *data*, from *at* on. Returns: how many it took."""
    count: int = lib.pn_link_send(link, ffi.from_buffer(data) + at, size)
    return count


def receive(link: Handle, size: int) -> bytes:
    """Read up to *size* bytes of the link's current delivery."""
    buffer = _scratch if size <= SCRATCH_BYTES else ffi.new("char[]", size)
    count: int = lib.pn_link_recv(link, buffer, size)
    return bytes(ffi.buffer(buffer, count)) if count > 0 else b""


def bytes_at(address: int, size: int) -> memoryview:
    """Return *size* bytes of proton's memory that are only read."""
    return memory_at(address, size)


def read_tail(transport: Handle, fd: int, size: int) -> int:
    """Read from a non-blocking socket, straight into proton's buffer, whose capacity must be *size* at least.

    Returns: bytes read, which `pn_transport_process` is to be told; 0 when the peer has ended; -1 when nothing was
        there; below that an error, as `-1 - errno`.
    """
    try:
        return os.readv(fd, (memory_at(lib.pn_transport_tail(transport), size),))
    except BlockingIOError:
        return -1
    except OSError as error:
        return -1 - (error.errno or errno.EIO)


def write_head(transport: Handle, fd: int, size: int) -> int:
    """Write *size* pending bytes to a non-blocking socket, straight from proton's buffer, as far as it takes them.

    Returns: bytes written, which `pn_transport_pop` is to be told; -1 when the kernel takes none now; below that an
        error, as `-1 - errno`. The kernel may hold back what is large until `push`.
    """
    try:
        return os.write(fd, memory_at(lib.pn_transport_head(transport), size))
    except BlockingIOError:
        return -1
    except OSError as error:
        return -1 - (error.errno or errno.EIO)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_char_p)  # type: ignore[untyped-decorator]
def discard(context: int, subsystem: int, level: int, line: object) -> None:
    """Take a line of proton's own log, and do nothing with it.

    By ctypes: a callback of cffi needs memory that may be written and executed, which a hardened system forbids.
    """


DISCARD_ADDRESS = ctypes.cast(discard, ctypes.c_void_p).value


def silence(transport: Handle) -> None:
    """Have proton log nothing of a transport by itself.

    It would write lines of what a peer does to standard error, as many as the peer likes, and wait there for a reader.
    """
    lib.pn_logger_set_log_sink(lib.pn_transport_logger(transport), DISCARD_ADDRESS, 0)


def push(fd: int) -> None:
    """Have the kernel write what it holds back: nothing, when interpreted."""


def report_error(transport: Handle, condition: str, description: str) -> None:
    """End a connection for a fault of its peer: nothing more is read; a Close with the error is written if it can be.

    It is what proton does where it finds a fault by itself.
    """
    text = description.replace("%", "%%")
    lib.pn_do_error(transport, condition.encode(), text.encode())


def send_frame(transport: Handle, channel: int, body: bytes) -> None:
    """Write a frame behind those that are ready to be written."""
    lib.pn_framing_send_amqp(transport, channel, (len(body), ffi.from_buffer(body)))


def link_context(link: Handle) -> Any:
    """Object that `set_link_context` was last given for a link; None without."""
    return _contexts.get(link)


def delivery_context(delivery: Handle) -> Any:
    """Object that `set_delivery_context` was last given for a delivery; None without."""
    return _contexts.get(delivery)


def set_context(handle: Handle, value: object) -> None:
    """Keep *value* with a link or a delivery until it is set to None, as it must be before the handle is freed."""
    if value is None:
        _contexts.pop(handle, None)
    else:
        _contexts[handle] = value


set_link_context = set_delivery_context = set_context
_contexts: Final[dict[Handle, Any]] = {}

SCRATCH_BYTES: Final = 65536
_scratch: Final = ffi.new("char[]", SCRATCH_BYTES)
_tag_bytes: Final = ffi.new("char[8]")
_tag: Final = ffi.new("pn_delivery_tag_t *", (8, _tag_bytes))
