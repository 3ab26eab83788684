import cython


cdef class Poller:
    cdef object _clock
    cdef object _turns
    cdef object _epoll
    cdef dict _channels
    cdef public Py_ssize_t rounds

    @cython.locals(events=int, out=int)
    cdef _serve(self, list ready, double now)
