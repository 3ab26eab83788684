cdef class TurnClock:
    cdef readonly double now
    cdef readonly Py_ssize_t inputs

    cpdef object set(self, double now)
    cpdef object begin_input(self)
