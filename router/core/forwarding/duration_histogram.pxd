import cython


cdef class DurationHistogram:
    cdef public list counts
    cdef public double total_s

    @cython.locals(place=Py_ssize_t, bound=double)
    cpdef object add(self, double duration_s)
