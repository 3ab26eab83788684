"""Proton's C functions, called on bare handles: the narrow interface that the data plane and the engine work on.

python-qpid-proton's own module (`cproton_ffi`) exports the whole C library; this file opens that very library a second
time through cffi, so that both sides work on the same objects and no second copy of proton exists. Its own `lib` lacks
what a router needs (`pn_transport_tail`, session windows).

A handle is the address of a C object of proton, a number; 0 is none. Nothing is checked: a handle that was freed must
not be used again. The functions keep proton's names, so that proton's documentation is theirs. What compiled modules
call is declared in `handles.pxd` again and needs no cffi.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any, Final

import cffi
import cproton_ffi

from router.binding.cdef import PROTON

Handle = int
"""The address of a C object of proton."""

# Compiled modules look for proton's functions among those that are visible in the whole process.
ctypes.CDLL(cproton_ffi.__file__, mode=ctypes.RTLD_GLOBAL)

ffi: Final = cffi.FFI()
ffi.cdef(PROTON)
lib: Final[Any] = ffi.dlopen(cproton_ffi.__file__)
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
    """So many bytes of proton's memory."""
    return memoryview(ffi.buffer(ffi.cast("char *", address), size))


def new_delivery(link: Handle, number: int) -> Handle:
    """A delivery on a link on which nothing is half sent, with *number* as its tag."""
    _tag_bytes[0:8] = number.to_bytes(8, "little")
    delivery: Handle = lib.pn_delivery(link, _tag[0])
    return delivery


def new_tagged_delivery(link: Handle, tag: bytes) -> Handle:
    """The same with *tag*, of at most 32 bytes."""
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
    """Up to *size* bytes of the link's current delivery."""
    buffer = _scratch if size <= SCRATCH_BYTES else ffi.new("char[]", size)
    count: int = lib.pn_link_recv(link, buffer, size)
    return bytes(ffi.buffer(buffer, count)) if count > 0 else b""


def bytes_at(address: int, size: int) -> memoryview:
    """As `memory_at`, for what is only read."""
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
    """What `set_link_context` was last given for a link; None without."""
    return _contexts.get(link)


def delivery_context(delivery: Handle) -> Any:
    """What `set_delivery_context` was last given for a delivery; None without."""
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

# Proton's functions under their own names, as the data plane calls them.
pn_collector: Final[Any] = lib.pn_collector
pn_collector_free: Final[Any] = lib.pn_collector_free
pn_collector_next: Final[Any] = lib.pn_collector_next
pn_event_type: Final[Any] = lib.pn_event_type
pn_event_session: Final[Any] = lib.pn_event_session
pn_event_link: Final[Any] = lib.pn_event_link
pn_event_delivery: Final[Any] = lib.pn_event_delivery
pn_transport: Final[Any] = lib.pn_transport
pn_transport_free: Final[Any] = lib.pn_transport_free
pn_transport_set_server: Final[Any] = lib.pn_transport_set_server
pn_transport_bind: Final[Any] = lib.pn_transport_bind
pn_transport_unbind: Final[Any] = lib.pn_transport_unbind
pn_transport_require_auth: Final[Any] = lib.pn_transport_require_auth
pn_transport_is_authenticated: Final[Any] = lib.pn_transport_is_authenticated
pn_transport_is_encrypted: Final[Any] = lib.pn_transport_is_encrypted
pn_transport_get_user: Final[Any] = lib.pn_transport_get_user
pn_transport_condition: Final[Any] = lib.pn_transport_condition
pn_transport_set_channel_max: Final[Any] = lib.pn_transport_set_channel_max
pn_transport_get_channel_max: Final[Any] = lib.pn_transport_get_channel_max
pn_transport_set_max_frame: Final[Any] = lib.pn_transport_set_max_frame
pn_transport_set_idle_timeout: Final[Any] = lib.pn_transport_set_idle_timeout
pn_transport_get_remote_idle_timeout: Final[Any] = lib.pn_transport_get_remote_idle_timeout
pn_transport_capacity: Final[Any] = lib.pn_transport_capacity
pni_transport_grow_capacity: Final[Any] = lib.pni_transport_grow_capacity
pn_transport_tail: Final[Any] = lib.pn_transport_tail
pn_transport_process: Final[Any] = lib.pn_transport_process
pn_transport_close_tail: Final[Any] = lib.pn_transport_close_tail
pn_transport_pending: Final[Any] = lib.pn_transport_pending
pn_transport_head: Final[Any] = lib.pn_transport_head
pn_transport_pop: Final[Any] = lib.pn_transport_pop
pn_transport_close_head: Final[Any] = lib.pn_transport_close_head
pn_transport_closed: Final[Any] = lib.pn_transport_closed
pn_transport_get_frames_input: Final[Any] = lib.pn_transport_get_frames_input
pn_transport_get_frames_output: Final[Any] = lib.pn_transport_get_frames_output
pn_transport_tick: Final[Any] = lib.pn_transport_tick
pn_sasl: Final[Any] = lib.pn_sasl
pn_sasl_allowed_mechs: Final[Any] = lib.pn_sasl_allowed_mechs
pn_sasl_get_mech: Final[Any] = lib.pn_sasl_get_mech
pn_connection: Final[Any] = lib.pn_connection
pn_connection_free: Final[Any] = lib.pn_connection_free
pn_connection_collect: Final[Any] = lib.pn_connection_collect
pn_connection_open: Final[Any] = lib.pn_connection_open
pn_connection_close: Final[Any] = lib.pn_connection_close
pn_connection_state: Final[Any] = lib.pn_connection_state
pn_connection_condition: Final[Any] = lib.pn_connection_condition
pn_connection_remote_condition: Final[Any] = lib.pn_connection_remote_condition
pn_connection_set_container: Final[Any] = lib.pn_connection_set_container
pn_connection_set_hostname: Final[Any] = lib.pn_connection_set_hostname
pn_connection_remote_container: Final[Any] = lib.pn_connection_remote_container
pn_connection_remote_hostname: Final[Any] = lib.pn_connection_remote_hostname
pn_connection_offered_capabilities: Final[Any] = lib.pn_connection_offered_capabilities
pn_connection_desired_capabilities: Final[Any] = lib.pn_connection_desired_capabilities
pn_connection_properties: Final[Any] = lib.pn_connection_properties
pn_connection_remote_offered_capabilities: Final[Any] = lib.pn_connection_remote_offered_capabilities
pn_connection_remote_desired_capabilities: Final[Any] = lib.pn_connection_remote_desired_capabilities
pn_connection_remote_properties: Final[Any] = lib.pn_connection_remote_properties
pn_session: Final[Any] = lib.pn_session
pn_session_free: Final[Any] = lib.pn_session_free
pn_session_head: Final[Any] = lib.pn_session_head
pn_session_open: Final[Any] = lib.pn_session_open
pn_session_close: Final[Any] = lib.pn_session_close
pn_session_state: Final[Any] = lib.pn_session_state
pn_session_set_incoming_window_and_lwm: Final[Any] = lib.pn_session_set_incoming_window_and_lwm
pn_session_incoming_bytes: Final[Any] = lib.pn_session_incoming_bytes
pn_session_outgoing_bytes: Final[Any] = lib.pn_session_outgoing_bytes
pn_sender: Final[Any] = lib.pn_sender
pn_receiver: Final[Any] = lib.pn_receiver
pn_link_free: Final[Any] = lib.pn_link_free
pn_link_head: Final[Any] = lib.pn_link_head
pn_link_next: Final[Any] = lib.pn_link_next
pn_link_name: Final[Any] = lib.pn_link_name
pn_link_is_sender: Final[Any] = lib.pn_link_is_sender
pn_link_state: Final[Any] = lib.pn_link_state
pn_link_condition: Final[Any] = lib.pn_link_condition
pn_link_remote_condition: Final[Any] = lib.pn_link_remote_condition
pn_link_session: Final[Any] = lib.pn_link_session
pn_link_open: Final[Any] = lib.pn_link_open
pn_link_close: Final[Any] = lib.pn_link_close
pn_link_detach: Final[Any] = lib.pn_link_detach
pn_link_source: Final[Any] = lib.pn_link_source
pn_link_target: Final[Any] = lib.pn_link_target
pn_link_remote_source: Final[Any] = lib.pn_link_remote_source
pn_link_remote_target: Final[Any] = lib.pn_link_remote_target
pn_link_properties: Final[Any] = lib.pn_link_properties
pn_link_remote_properties: Final[Any] = lib.pn_link_remote_properties
pn_link_current: Final[Any] = lib.pn_link_current
pn_link_advance: Final[Any] = lib.pn_link_advance
pn_link_credit: Final[Any] = lib.pn_link_credit
pn_link_queued: Final[Any] = lib.pn_link_queued
pn_link_get_drain: Final[Any] = lib.pn_link_get_drain
pn_link_drained: Final[Any] = lib.pn_link_drained
pn_link_remote_snd_settle_mode: Final[Any] = lib.pn_link_remote_snd_settle_mode
pn_link_set_snd_settle_mode: Final[Any] = lib.pn_link_set_snd_settle_mode
pn_link_set_rcv_settle_mode: Final[Any] = lib.pn_link_set_rcv_settle_mode
pn_link_set_max_message_size: Final[Any] = lib.pn_link_set_max_message_size
pn_link_remote_max_message_size: Final[Any] = lib.pn_link_remote_max_message_size
pn_unsettled_head: Final[Any] = lib.pn_unsettled_head
pn_unsettled_next: Final[Any] = lib.pn_unsettled_next
pn_link_send: Final[Any] = lib.pn_link_send
pn_link_flow: Final[Any] = lib.pn_link_flow
pn_link_drain: Final[Any] = lib.pn_link_drain
pn_terminus_get_type: Final[Any] = lib.pn_terminus_get_type
pn_terminus_set_type: Final[Any] = lib.pn_terminus_set_type
pn_terminus_get_address: Final[Any] = lib.pn_terminus_get_address
pn_terminus_set_address: Final[Any] = lib.pn_terminus_set_address
pn_terminus_set_expiry_policy: Final[Any] = lib.pn_terminus_set_expiry_policy
pn_terminus_set_durability: Final[Any] = lib.pn_terminus_set_durability
pn_terminus_set_timeout: Final[Any] = lib.pn_terminus_set_timeout
pn_terminus_get_distribution_mode: Final[Any] = lib.pn_terminus_get_distribution_mode
pn_terminus_set_distribution_mode: Final[Any] = lib.pn_terminus_set_distribution_mode
pn_terminus_is_dynamic: Final[Any] = lib.pn_terminus_is_dynamic
pn_terminus_set_dynamic: Final[Any] = lib.pn_terminus_set_dynamic
pn_terminus_capabilities: Final[Any] = lib.pn_terminus_capabilities
pn_terminus_filter: Final[Any] = lib.pn_terminus_filter
pn_terminus_properties: Final[Any] = lib.pn_terminus_properties
pn_terminus_copy: Final[Any] = lib.pn_terminus_copy
pn_delivery_link: Final[Any] = lib.pn_delivery_link
pn_delivery_local: Final[Any] = lib.pn_delivery_local
pn_delivery_remote: Final[Any] = lib.pn_delivery_remote
pn_delivery_remote_state: Final[Any] = lib.pn_delivery_remote_state
pn_delivery_settled: Final[Any] = lib.pn_delivery_settled
pn_delivery_pending: Final[Any] = lib.pn_delivery_pending
pn_delivery_partial: Final[Any] = lib.pn_delivery_partial
pn_delivery_aborted: Final[Any] = lib.pn_delivery_aborted
pn_delivery_updated: Final[Any] = lib.pn_delivery_updated
pn_delivery_update: Final[Any] = lib.pn_delivery_update
pn_delivery_clear: Final[Any] = lib.pn_delivery_clear
pn_delivery_abort: Final[Any] = lib.pn_delivery_abort
pn_delivery_settle: Final[Any] = lib.pn_delivery_settle
pn_delivery_buffered: Final[Any] = lib.pn_delivery_buffered
pn_disposition_condition: Final[Any] = lib.pn_disposition_condition
pn_disposition_is_failed: Final[Any] = lib.pn_disposition_is_failed
pn_disposition_set_failed: Final[Any] = lib.pn_disposition_set_failed
pn_disposition_is_undeliverable: Final[Any] = lib.pn_disposition_is_undeliverable
pn_disposition_set_undeliverable: Final[Any] = lib.pn_disposition_set_undeliverable
pn_disposition_annotations: Final[Any] = lib.pn_disposition_annotations
pn_condition_is_set: Final[Any] = lib.pn_condition_is_set
pn_condition_get_name: Final[Any] = lib.pn_condition_get_name
pn_condition_set_name: Final[Any] = lib.pn_condition_set_name
pn_condition_get_description: Final[Any] = lib.pn_condition_get_description
pn_condition_set_description: Final[Any] = lib.pn_condition_set_description
pn_condition_copy: Final[Any] = lib.pn_condition_copy
pn_condition_info: Final[Any] = lib.pn_condition_info
pn_data_copy: Final[Any] = lib.pn_data_copy
