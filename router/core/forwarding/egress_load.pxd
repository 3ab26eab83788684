import cython


cdef class EgressLoad:
    cdef public Py_ssize_t unsettled
    cdef public Py_ssize_t datagrams
    cdef public Py_ssize_t elsewhere
    cdef public double believed_until
    cdef public Py_ssize_t subscribers
    cdef public Py_ssize_t chosen
    cdef public dict idle

    cpdef object sent(self)
    cpdef object settled(self, object subscriber, bint is_idle)
    cpdef object forget(self, object subscriber)
    @cython.locals(elsewhere=Py_ssize_t)
    cpdef Py_ssize_t messages(self, double now)
    cpdef Py_ssize_t wait(self, double now)


cdef class LoadToldToNeighbor:
    cdef public Py_ssize_t elsewhere
    cdef public Py_ssize_t subscribers
    cdef public double told_at

    @cython.locals(subscribers=Py_ssize_t, wait=double, believed=double)
    cpdef double next_time(self, EgressLoad load, Py_ssize_t own, double now)
    cpdef tuple tell(self, EgressLoad load, Py_ssize_t own, double now)
