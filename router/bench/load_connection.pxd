from cpython.exc cimport PyErr_CheckSignals as look_for_signals
from libc.stdint cimport int64_t, uint64_t

from router.binding.proton_functions cimport (
    DELIVERY,
    LINK_FLOW,
    NULL,
    TRANSPORT,
    Handle,
    pn_collector_next,
    pn_event_delivery,
    pn_event_link,
    pn_event_session,
    pn_event_type,
    pn_link_recv,
    pn_transport_capacity,
    pn_transport_head,
    pn_transport_pending,
    pn_transport_pop,
    pn_transport_process,
    pn_transport_tail,
)

# What c_helpers_in_python.py has for interpreted code.
cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/socket.h>
    #include <time.h>

    static inline int64_t bench_now_ns(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }
    static inline ssize_t bench_result(ssize_t count) {
        return count >= 0 ? count : errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : -2;
    }
    static inline ssize_t bench_read(int fd, uintptr_t address, size_t size) {
        return bench_result(recv(fd, (void *)address, size, 0));
    }
    static inline ssize_t bench_write(int fd, uintptr_t address, size_t size) {
        return bench_result(send(fd, (const void *)address, size, MSG_NOSIGNAL));
    }
    static inline void bench_send_number(uintptr_t link, uint64_t number) {
        char bytes[8];
        for (int i = 0; i < 8; i++) bytes[i] = (char)(number >> (8 * i));
        pn_link_send(link, bytes, 8);
    }
    static inline uint64_t bench_receive_number(uintptr_t link, size_t size, uint64_t number) {
        static unsigned char buffer[65536];
        while (size > 0) {
            ssize_t count = pn_link_recv(link, (char *)buffer, size < sizeof buffer ? size : sizeof buffer);
            if (count <= 0) break;
            for (ssize_t i = count < 8 ? 0 : count - 8; i < count; i++)
                number = (number >> 8) | ((uint64_t)buffer[i] << 56);
            size -= (size_t)count;
        }
        return number;
    }
    """
    int64_t now_ns "bench_now_ns"() noexcept
    Py_ssize_t read_socket "bench_read"(int fd, Handle address, size_t size) noexcept
    Py_ssize_t write_socket "bench_write"(int fd, Handle address, size_t size) noexcept
    void send_number "bench_send_number"(Handle link, uint64_t number) noexcept
    uint64_t receive_number "bench_receive_number"(Handle link, size_t size, uint64_t before) noexcept

cdef enum:
    WOULD_BLOCK = -1


cdef class Endpoint:
    cdef public bint is_attached

    cpdef begin(self, Connection connection)
    cpdef attached(self, Connection connection, Handle link)
    cpdef flowed(self, Handle link)
    cpdef drained(self)
    cpdef delivered(self, Handle link, Handle delivery)
    cpdef resume(self)


cdef class Connection:
    cdef Loop _loop
    cdef object _sock
    cdef readonly int fd
    cdef Endpoint endpoint
    cdef public bint is_blocked
    cdef bint is_full
    cdef readonly bint is_closed
    cdef object _container
    cdef int _links
    cdef Handle _collector, _connection, _transport

    cpdef readable(self)
    cpdef turn(self)
    cpdef flush(self)
    cdef _dispatch(self)
    cdef _handle_rare(self, int kind, Handle event)
    cdef _lost(self)


cdef class Loop:
    cdef readonly bint is_closing
    cdef readonly bint has_sasl
    cdef object _poll, _listener, _make
    cdef list _all, _deferred
    cdef dict _connections
    cdef int64_t _ticked

    cpdef block(self, Connection connection)
    cpdef defer(self, Connection connection)
    cpdef forget(self, Connection connection)
    cpdef step(self, double timeout_s)
