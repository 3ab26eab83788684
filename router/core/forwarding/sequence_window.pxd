cdef class SequenceWindow:
    cdef public object highest
    cdef object _bits
    cdef Py_ssize_t _behind
    cdef object _last_behind

    cpdef bint see(self, object number, bint is_first=*) except -1
