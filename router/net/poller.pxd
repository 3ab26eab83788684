import cython

from libc.stdint cimport uint32_t, uint64_t

from router.net.epoll cimport MOST_READY, wait_ready
from router.net.trio_state cimport TrioState

cdef int LONGEST_WAIT_MS
cdef double ATTACHING_PAUSE
cdef double CALLING_S
cdef double SHARED_S
cdef uint32_t OUT
cdef uint64_t EVENTS


cdef class PolledSocket:
    cdef public bint is_heavy
    cdef public bint is_attaching
    cdef public Py_ssize_t served

    cpdef object read(self)
    cpdef object write(self)
    cpdef object go_on(self)


cdef class RoundHandler:
    cdef public double scheduled

    cpdef object begin(self, double now)
    cpdef bint settle_round(self) except -1
    cpdef bint handle_time(self) except -1


cdef class Poller:
    cdef object _clock
    cdef RoundHandler _turns
    cdef object _epoll
    cdef int _fd
    cdef uint64_t[::1] _ready
    cdef TrioState _trio
    cdef int _trio_fd
    cdef dict _channels
    cdef PolledSocket _serving
    cdef bint _is_due
    cdef dict _unfinished
    cdef public object leaving
    cdef double _rested
    cdef double _away_s
    cdef Py_ssize_t _heavy_turns
    cdef double _heavy_debt_s
    cdef double _attaching_at
    cdef double _begun
    cdef double _singles_at
    cdef public bint is_shared
    cdef public Py_ssize_t rounds

    cpdef object go_on(self, int fd)
    cpdef object share(self)
    @cython.locals(is_due=bint, is_trio_due=bint, count=int, timeout_ms=int, now=double, deadline=double)
    cdef bint _serve_rounds(self) except -1
    @cython.locals(state=TrioState, now=double, wait_ms=double)
    cdef int _time_to_wait(self, double until) except -1
    @cython.locals(state=TrioState, at=int)
    cdef bint _is_trio_due(self, int count) except -1
    @cython.locals(at=int, fd=int, events=uint32_t, channel=PolledSocket, heavy=list, is_any_light=bint, is_due=bint,
                   is_attaching=bint, end=double)
    cdef bint _serve(self, int count, double now) except -1
    @cython.locals(others=list)
    cdef list _allowed(self, list heavy, bint is_shared)
    @cython.locals(at=int, fd=int)
    cdef list _ready_to_go_on(self, int count)
    @cython.locals(fd=int, events=uint32_t, goes_on=bint, is_attaching=bint, channel=PolledSocket)
    cdef bint _serve_heavy(self, list heavy, double end) except -1
    cdef _begin(self, double now)
