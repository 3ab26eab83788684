cdef class ArrivalProgress:
    cdef public Py_ssize_t message
    cdef public Py_ssize_t received
    cdef public double since
    cdef public Py_ssize_t most_unread
    cdef public double paused_at
    cdef public double paused_s

    cpdef object restart(self, Py_ssize_t message, double now)
    cpdef object found_unread(self, Py_ssize_t size)
    cpdef object pause(self, double now)
    cpdef object resume(self, double now)
    cpdef double elapsed(self, double now)
