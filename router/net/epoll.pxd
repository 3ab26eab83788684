from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint64_t

cdef enum:
    MOST_READY = 64

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <sys/epoll.h>

    static inline int router_wait_ready(int fd, uint64_t *ready, int timeout_ms) {
        struct epoll_event events[64];
        int count = epoll_wait(fd, events, 64, timeout_ms);
        for (int i = 0; i < count; i++)
            ready[i] = (uint64_t)events[i].data.fd << 32 | events[i].events;
        return count >= 0 ? count : -errno;
    }
    enum { ROUTER_EINTR = EINTR };
    """
    int router_wait_ready(int fd, uint64_t *ready, int timeout_ms) noexcept nogil
    int ROUTER_EINTR


cdef inline int wait_ready(object poll, int fd, uint64_t[::1] ready, int timeout_ms) except -1:
    cdef int count
    with nogil:
        count = router_wait_ready(fd, &ready[0], timeout_ms)
    if count >= 0:
        return count
    if count != -ROUTER_EINTR:
        raise OSError(-count, "epoll_wait")
    PyErr_CheckSignals()
    return 0
