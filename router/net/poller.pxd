import cython


cdef class Poller:
    cdef object _clock
    cdef object _turns
    cdef object _epoll
    cdef dict _channels
    cdef object _serving
    cdef bint _is_late
    cdef dict _unfinished
    cdef public object leaving
    cdef Py_ssize_t _heavy_turns
    cdef double _heavy_debt_s
    cdef public Py_ssize_t rounds

    cpdef object go_on(self, int fd)
    @cython.locals(events=int, heavy=list, is_any_light=bint, is_due=bint)
    cdef _serve(self, list ready, double now)
    cdef list _ready_to_go_on(self, list ready)
    @cython.locals(events=int, goes_on=bint)
    cdef _serve_heavy(self, list heavy, double end)
    cdef _begin(self, double now)
