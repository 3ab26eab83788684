import cython


cdef class Poller:
    cdef object _clock
    cdef object _turns
    cdef object _epoll
    cdef dict _channels
    cdef object _serving
    cdef bint _is_late
    cdef Py_ssize_t _heavy_turns
    cdef public Py_ssize_t rounds

    @cython.locals(events=int, heavy=list)
    cdef _serve(self, list ready, double now)
    @cython.locals(events=int)
    cdef _serve_heavy(self, list heavy, double end)
    cdef _begin(self, double now)
