# Proton's C functions as compiled modules call them: the same names as in proton_functions.py, handles as numbers.
# generated_functions.pxi declares them: there are no headers of proton. The symbols are those of the library that router/speed.py
# makes visible in the process.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

ctypedef size_t Handle

include "generated_functions.pxi"

cdef extern from *:
    """
    #include <errno.h>
    #include <netinet/in.h>
    #include <netinet/tcp.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <unistd.h>

    #define LARGE_BYTES 16000

    static inline uintptr_t mesh_new_delivery(uintptr_t link, uint64_t number) {
        char bytes[8];
        for (int i = 0; i < 8; i++) bytes[i] = (char)(number >> (8 * i));
        pn_delivery_tag_t tag = {8, bytes};
        return pn_delivery(link, tag);
    }

    static inline uintptr_t mesh_new_tagged_delivery(uintptr_t link, const char *bytes, size_t size) {
        pn_delivery_tag_t tag = {size, bytes};
        return pn_delivery(link, tag);
    }

    static inline const char *mesh_delivery_tag(uintptr_t delivery, size_t *size) {
        pn_delivery_tag_t tag = pn_delivery_tag(delivery);
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

    static void mesh_discard(intptr_t context, int subsystem, int level, const char *line) {}

    static inline void mesh_silence(uintptr_t transport) {
        pn_logger_set_log_sink(pn_transport_logger(transport), (uintptr_t)mesh_discard, 0);
    }

    static inline void mesh_push(int fd) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    """

    Handle mesh_new_delivery(Handle, uint64_t) noexcept
    Handle mesh_new_tagged_delivery(Handle, const char *, size_t) noexcept
    const char *mesh_delivery_tag(Handle, size_t *) noexcept
    Py_ssize_t mesh_read(Handle, int, size_t) noexcept
    Py_ssize_t mesh_write(Handle, int, Py_ssize_t) noexcept
    void mesh_silence(Handle) noexcept
    void mesh_push(int) noexcept

cdef enum:
    NULL = 0
    # Event types, as in proton_functions.py: a test compares both with proton's own.
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


cdef inline void silence(Handle transport) noexcept:
    mesh_silence(transport)


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
