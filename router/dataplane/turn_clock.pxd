cdef class TurnClock:
    cdef readonly double now

    cpdef object set(self, double now)
