cdef class TurnClock:
    cdef readonly double now
    cdef public Py_ssize_t inputs

    cpdef object set(self, double now)
