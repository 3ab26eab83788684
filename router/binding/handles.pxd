# Proton's C functions as compiled modules call them: the same names as in handles.py, handles as numbers. There are no
# headers of proton: the symbols are those of the library that handles.py has made visible in the process.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t, uint32_t

ctypedef size_t Handle

cdef extern from *:
    """
    #include <errno.h>
    #include <stdbool.h>
    #include <netinet/in.h>
    #include <netinet/tcp.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <sys/types.h>
    #include <unistd.h>

    typedef struct { size_t size; const char *start; } mesh_tag_t;

    #define LARGE_BYTES 16000

    extern uintptr_t pn_collector_next(uintptr_t);
    extern int pn_event_type(uintptr_t);
    extern uintptr_t pn_event_session(uintptr_t);
    extern uintptr_t pn_event_link(uintptr_t);
    extern uintptr_t pn_event_delivery(uintptr_t);

    extern ssize_t pn_transport_capacity(uintptr_t);
    extern ssize_t pni_transport_grow_capacity(uintptr_t, size_t);
    extern uintptr_t pn_transport_tail(uintptr_t);
    extern int pn_transport_process(uintptr_t, size_t);
    extern ssize_t pn_transport_pending(uintptr_t);
    extern uintptr_t pn_transport_head(uintptr_t);
    extern void pn_transport_pop(uintptr_t, size_t);
    extern bool pn_transport_closed(uintptr_t);
    extern uint64_t pn_transport_get_frames_input(uintptr_t);

    extern size_t pn_session_incoming_bytes(uintptr_t);
    extern size_t pn_session_outgoing_bytes(uintptr_t);

    extern uintptr_t pn_link_current(uintptr_t);
    extern bool pn_link_advance(uintptr_t);
    extern int pn_link_credit(uintptr_t);
    extern int pn_link_queued(uintptr_t);
    extern bool pn_link_get_drain(uintptr_t);
    extern int pn_link_drained(uintptr_t);
    extern uintptr_t pn_unsettled_head(uintptr_t);
    extern uintptr_t pn_unsettled_next(uintptr_t);
    extern ssize_t pn_link_send(uintptr_t, const char *, size_t);
    extern void pn_link_flow(uintptr_t, int);
    extern void pn_link_drain(uintptr_t, int);
    extern ssize_t pn_link_recv(uintptr_t, char *, size_t);

    extern void *pn_link_get_context(uintptr_t);
    extern void pn_link_set_context(uintptr_t, void *);

    extern uintptr_t pn_delivery(uintptr_t, mesh_tag_t);
    extern mesh_tag_t pn_delivery_tag(uintptr_t);
    extern void *pn_delivery_get_context(uintptr_t);
    extern void pn_delivery_set_context(uintptr_t, void *);
    extern uintptr_t pn_delivery_link(uintptr_t);
    extern uintptr_t pn_delivery_local(uintptr_t);
    extern uintptr_t pn_delivery_remote(uintptr_t);
    extern uint64_t pn_delivery_remote_state(uintptr_t);
    extern bool pn_delivery_settled(uintptr_t);
    extern size_t pn_delivery_pending(uintptr_t);
    extern bool pn_delivery_partial(uintptr_t);
    extern bool pn_delivery_aborted(uintptr_t);
    extern bool pn_delivery_updated(uintptr_t);
    extern void pn_delivery_update(uintptr_t, uint64_t);
    extern void pn_delivery_clear(uintptr_t);
    extern void pn_delivery_abort(uintptr_t);
    extern void pn_delivery_settle(uintptr_t);
    extern bool pn_delivery_buffered(uintptr_t);

    extern uintptr_t pn_disposition_condition(uintptr_t);
    extern bool pn_disposition_is_failed(uintptr_t);
    extern void pn_disposition_set_failed(uintptr_t, bool);
    extern bool pn_disposition_is_undeliverable(uintptr_t);
    extern void pn_disposition_set_undeliverable(uintptr_t, bool);
    extern uintptr_t pn_disposition_annotations(uintptr_t);
    extern int pn_condition_set_name(uintptr_t, const char *);
    extern int pn_condition_set_description(uintptr_t, const char *);
    extern int pn_condition_copy(uintptr_t, uintptr_t);
    extern uintptr_t pn_condition_info(uintptr_t);
    extern int pn_data_copy(uintptr_t, uintptr_t);

    static inline uintptr_t mesh_new_delivery(uintptr_t link, uint64_t number) {
        char bytes[8];
        for (int i = 0; i < 8; i++) bytes[i] = (char)(number >> (8 * i));
        mesh_tag_t tag = {8, bytes};
        return pn_delivery(link, tag);
    }

    static inline uintptr_t mesh_new_tagged_delivery(uintptr_t link, const char *bytes, size_t size) {
        mesh_tag_t tag = {size, bytes};
        return pn_delivery(link, tag);
    }

    static inline const char *mesh_delivery_tag(uintptr_t delivery, size_t *size) {
        mesh_tag_t tag = pn_delivery_tag(delivery);
        *size = tag.size;
        return tag.start;
    }

    static inline ssize_t mesh_read(uintptr_t transport, int fd, size_t size) {
        ssize_t count = read(fd, (char *)pn_transport_tail(transport), size);
        if (count >= 0) return count;
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : -1 - errno;
    }

    static inline ssize_t mesh_write(uintptr_t transport, int fd, ssize_t size) {
        ssize_t count;
        int flags = MSG_NOSIGNAL | (size >= LARGE_BYTES ? MSG_MORE : 0);
        do count = send(fd, (const char *)pn_transport_head(transport), size, flags);
        while (count < 0 && errno == EINTR);
        if (count >= 0) return count;
        return errno == EAGAIN || errno == EWOULDBLOCK ? -1 : -1 - errno;
    }

    static inline void mesh_push(int fd) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    """
    Handle pn_collector_next(Handle) noexcept
    int pn_event_type(Handle) noexcept
    Handle pn_event_session(Handle) noexcept
    Handle pn_event_link(Handle) noexcept
    Handle pn_event_delivery(Handle) noexcept

    Py_ssize_t pn_transport_capacity(Handle) noexcept
    Py_ssize_t pni_transport_grow_capacity(Handle, size_t) noexcept
    Handle pn_transport_tail(Handle) noexcept
    int pn_transport_process(Handle, size_t) noexcept
    Py_ssize_t pn_transport_pending(Handle) noexcept
    Handle pn_transport_head(Handle) noexcept
    void pn_transport_pop(Handle, size_t) noexcept
    bint pn_transport_closed(Handle) noexcept
    uint64_t pn_transport_get_frames_input(Handle) noexcept

    Py_ssize_t pn_session_incoming_bytes(Handle) noexcept
    Py_ssize_t pn_session_outgoing_bytes(Handle) noexcept

    Handle pn_link_current(Handle) noexcept
    bint pn_link_advance(Handle) noexcept
    int pn_link_credit(Handle) noexcept
    int pn_link_queued(Handle) noexcept
    bint pn_link_get_drain(Handle) noexcept
    int pn_link_drained(Handle) noexcept
    Handle pn_unsettled_head(Handle) noexcept
    Handle pn_unsettled_next(Handle) noexcept
    Py_ssize_t pn_link_send(Handle, const char *, size_t) noexcept
    void pn_link_flow(Handle, int) noexcept
    void pn_link_drain(Handle, int) noexcept
    Py_ssize_t pn_link_recv(Handle, char *, size_t) noexcept

    Handle pn_delivery_link(Handle) noexcept
    Handle pn_delivery_local(Handle) noexcept
    Handle pn_delivery_remote(Handle) noexcept
    uint64_t pn_delivery_remote_state(Handle) noexcept
    bint pn_delivery_settled(Handle) noexcept
    Py_ssize_t pn_delivery_pending(Handle) noexcept
    bint pn_delivery_partial(Handle) noexcept
    bint pn_delivery_aborted(Handle) noexcept
    bint pn_delivery_updated(Handle) noexcept
    void pn_delivery_update(Handle, uint64_t) noexcept
    void pn_delivery_clear(Handle) noexcept
    void pn_delivery_abort(Handle) noexcept
    void pn_delivery_settle(Handle) noexcept
    bint pn_delivery_buffered(Handle) noexcept

    Handle pn_disposition_condition(Handle) noexcept
    bint pn_disposition_is_failed(Handle) noexcept
    void pn_disposition_set_failed(Handle, bint) noexcept
    bint pn_disposition_is_undeliverable(Handle) noexcept
    void pn_disposition_set_undeliverable(Handle, bint) noexcept
    Handle pn_disposition_annotations(Handle) noexcept
    int pn_condition_set_name(Handle, const char *) noexcept
    int pn_condition_set_description(Handle, const char *) noexcept
    int pn_condition_copy(Handle, Handle) noexcept
    Handle pn_condition_info(Handle) noexcept
    int pn_data_copy(Handle, Handle) noexcept

    void *pn_link_get_context(Handle) noexcept
    void pn_link_set_context(Handle, void *) noexcept
    void *pn_delivery_get_context(Handle) noexcept
    void pn_delivery_set_context(Handle, void *) noexcept

    Handle mesh_new_delivery(Handle, uint64_t) noexcept
    Handle mesh_new_tagged_delivery(Handle, const char *, size_t) noexcept
    const char *mesh_delivery_tag(Handle, size_t *) noexcept
    Py_ssize_t mesh_read(Handle, int, size_t) noexcept
    Py_ssize_t mesh_write(Handle, int, Py_ssize_t) noexcept
    void mesh_push(int) noexcept

cdef enum:
    NULL = 0
    # Event types, as in handles.py: a test compares both with proton's own.
    LINK_FLOW = 26
    DELIVERY = 28
    TRANSPORT = 29
    RECEIVED = 0x23
    ACCEPTED = 0x24
    REJECTED = 0x25
    RELEASED = 0x26
    MODIFIED = 0x27


cdef inline Handle new_delivery(Handle link, uint64_t number) noexcept:
    return mesh_new_delivery(link, number)


cdef inline Handle new_tagged_delivery(Handle link, bytes tag) noexcept:
    return mesh_new_tagged_delivery(link, PyBytes_AS_STRING(tag), len(tag))


cdef inline bytes tag_of_size(Handle delivery, size_t size):
    cdef size_t found
    cdef const char *start = mesh_delivery_tag(delivery, &found)
    return PyBytes_FromStringAndSize(start, size) if found == size else None


cdef inline Py_ssize_t send_part(Handle link, bytes data, Py_ssize_t at, Py_ssize_t size) noexcept:
    return pn_link_send(link, PyBytes_AS_STRING(data) + at, size)


cdef inline const unsigned char *bytes_at(Handle address, Py_ssize_t size) noexcept:
    return <const unsigned char *>address


cdef inline Py_ssize_t read_tail(Handle transport, int fd, Py_ssize_t size) noexcept:
    return mesh_read(transport, fd, size)


cdef inline Py_ssize_t write_head(Handle transport, int fd, Py_ssize_t size) noexcept:
    return mesh_write(transport, fd, size)


cdef inline void push(int fd) noexcept:
    mesh_push(fd)


# A context keeps what it refers to alive until it is set to None.

cdef inline object link_context(Handle link):
    found = pn_link_get_context(link)
    return <object>found if found != <void *>0 else None


cdef inline void set_link_context(Handle link, object value):
    before = pn_link_get_context(link)
    if value is None:
        pn_link_set_context(link, <void *>0)
    else:
        Py_INCREF(value)
        pn_link_set_context(link, <void *>value)
    if before != <void *>0:
        Py_DECREF(<object>before)


cdef inline object delivery_context(Handle delivery):
    found = pn_delivery_get_context(delivery)
    return <object>found if found != <void *>0 else None


cdef inline void set_delivery_context(Handle delivery, object value):
    before = pn_delivery_get_context(delivery)
    if value is None:
        pn_delivery_set_context(delivery, <void *>0)
    else:
        Py_INCREF(value)
        pn_delivery_set_context(delivery, <void *>value)
    if before != <void *>0:
        Py_DECREF(<object>before)


cdef inline bytes receive(Handle link, Py_ssize_t size):
    data = <bytes>PyBytes_FromStringAndSize(NULL, size)
    count = pn_link_recv(link, PyBytes_AS_STRING(data), size)
    if count == size:
        return data
    return data[:count] if count > 0 else b""
